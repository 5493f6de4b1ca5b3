"""Models of dbt run in the real dbt with DuckDB, on rows that are easily misread."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from loaded_files import load_file

from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet

duckdb = pytest.importorskip("duckdb")
for module in ("dbt.cli", "dbt.adapters.duckdb"):
    pytest.importorskip(module, reason=f"needs dbt-core and dbt-duckdb: {module}")

TESTS = Path(__file__).parents[1]
SOURCES = {"version": 2, "sources": [{"name": "shop", "schema": "main", "tables": [{"name": "t"}]}]}


def run_dbt(folder: Path, table: pd.DataFrame, models: dict[str, str]) -> dict[str, list[Any]]:
    """Run models on a table; return the last column of each, in the order of the rows."""
    database = str(folder / "rows.duckdb")
    with duckdb.connect(database, config={"threads": 1}) as connection:
        connection.register("frame", table.assign(position=np.arange(len(table))))
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
    (folder / "models").mkdir()
    for name, text in ({"base": "select * from {{ source('shop', 't') }}"} | models).items():
        (folder / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
    (folder / "models" / "sources.yml").write_text(json.dumps(SOURCES))
    profile = {"type": "duckdb", "path": database, "threads": 1}
    profiles = {"rules": {"target": "dev", "outputs": {"dev": profile}}}
    (folder / "profiles.yml").write_text(json.dumps(profiles))
    project = {"name": "rules", "version": "1.0", "profile": "rules", "model-paths": ["models"]}
    (folder / "dbt_project.yml").write_text(json.dumps(project))
    program = "import sys; from dbt.cli.main import cli; cli()"
    words = ["--no-send-anonymous-usage-stats", "--quiet", "run", "--project-dir", str(folder)]
    run = subprocess.run(
        [sys.executable, "-c", program, *words, "--profiles-dir", str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    with duckdb.connect(database, read_only=True) as connection:
        results = {}
        for name in models:
            relation = connection.execute(f'SELECT * FROM "{name}" ORDER BY position')
            results[name] = [None if v != v else v for *_, v in relation.fetchall()]
    return results


@pytest.mark.parametrize("n_sets", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_dbt_predicts_hostile_rows(n_sets: int, tmp_path: Path) -> None:
    arbitrary = load_file("rules/exporters/arbitrary.py")
    rulesets, X = arbitrary.hostile_sets(n_sets, 3), arbitrary.hostile_rows(10_000)
    models = {f"m{i}": rs.to("dbt", table="base", exact=True) for i, rs in enumerate(rulesets)}
    results = run_dbt(tmp_path, X, models)
    for name, ruleset in zip(models, rulesets, strict=True):
        expected = arbitrary.answers(ruleset, X)
        pairs = enumerate(zip(results[name], expected, strict=True))
        wrong = [(X.iloc[i].to_dict(), a, b) for i, (a, b) in pairs if a != b]
        assert not wrong, f"{len(wrong)} rows: {wrong[:3]}\n{ruleset!r}\n{models[name]}"


def test_dbt_keeps_names_and_texts(tmp_path: Path) -> None:
    """Names and texts with syntax of Jinja or SQL remain columns and values."""
    texts = [
        *load_file("rules/exporters/arbitrary.py").TEXTS,
        "{{ x }}",
        "{% raw %}",
        "{% endraw %}",
        "{# no #}",
        "{{{",
    ]
    for position, name in enumerate(["{{ size }}", "it's {# odd #}", "from", "2nd"]):
        rules = [Rule([OneOf(1, [text])], f"<{text}>") for text in texts]
        rules.append(Rule([Interval(0, upper=2.5)], "{{ small }}"))
        ruleset = RuleSet(
            rules, [name, "kind"], task="classification", fallback=Fallback("{% other %}")
        )
        table = pd.DataFrame(
            {name: [9.0] * len(texts) + [1.0, 3.0, None], "kind": [*texts, None, None, "unseen"]}
        )
        models = {
            "predicted": ruleset.to("dbt", table="base"),
            "assigned": ruleset.to("dbt", table="shop.t", kind="assign", materialized="table"),
        }
        folder = tmp_path / f"project{position}"
        folder.mkdir()
        results = run_dbt(folder, table, models)
        assert results["predicted"] == ruleset.predict(table).tolist()
        numbers = (ruleset.assign(table) + 1).tolist()
        assert results["assigned"] == [number or None for number in numbers]
