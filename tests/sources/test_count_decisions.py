"""Counts of decisions in databases and batches equal those of the rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import sqlalchemy

from skescore.metrics import count_decisions
from skescore.rules import (
    Domain,
    Fallback,
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)
from skescore.sources import DataSource, SourceError, count_source_decisions

CLASSIFICATION = RuleSet(
    [
        Rule([Interval(0, upper=0.4), OneOf(1, ("a", "b"))], "no"),
        Rule([Interval(0, lower=0.7, missing=True)], "yes"),
        Rule([Missing(2)], "no"),
    ],
    ["x", "kind", "z"],
    task="classification",
    ordered=True,
    domain=Domain((0.0, 0.0, 0.1), (1.0, 2.0, 0.9), [(1, ("a", "b"))]),
    fallback=Fallback("no"),
)
REGRESSION = RuleSet(
    [
        Rule([Interval(0, upper=0.4)], 1.0),
        Rule([Interval(2, upper=0.6)], LinearOutput(0.5, [(2, 2.0)])),
    ],
    ["x", "kind", "z"],
    task="regression",
    ordered=True,
    domain=Domain((0.0, 0.0, 0.1), (1.0, 0.0, 0.9)),
)


def frame(task: str, n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-0.1, 1.1, n)),
            "kind": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
            "z": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(size=n)),
        }
    )
    if task == "classification":
        labels = np.array(["no", "yes", "maybe", None], dtype=object)
        return X.assign(y=rng.choice(labels, n), model=rng.choice(labels[:2], n))
    y = np.where(rng.random(n) < 0.2, np.nan, rng.normal(1, 1, n))
    return X.assign(y=y, model=rng.normal(1, 1, n))


@pytest.mark.parametrize("kind", ["batches", "duckdb", "nullable", "parquet", "sqlite"])
@pytest.mark.parametrize("ruleset", [CLASSIFICATION, REGRESSION], ids=lambda r: r.task)
@pytest.mark.parametrize("fallback", [True, False])
def test_source_decisions_equal_those_of_rows(
    kind: str, ruleset: RuleSet, fallback: bool, tmp_path: Path
) -> None:
    if not fallback:
        ruleset = ruleset.replace(fallback=None)
    elif ruleset.classes is None:
        ruleset = ruleset.replace(fallback=Fallback(0.3))
    rows = frame(ruleset.task)
    tolerances: dict[str, Any] = {}
    if ruleset.classes is None:
        tolerances = {"error_tolerances": (0.5, np.inf, 1), "model_tolerances": (1, 0.2, np.inf)}
    expected = count_decisions(
        ruleset, rows[["x", "kind", "z"]], rows["y"], model_predictions=rows["model"], **tolerances
    )
    source: Any = [rows.iloc[:1000], rows.iloc[1000:]]
    if kind == "nullable":
        source = [batch.convert_dtypes() for batch in source]
    elif kind == "parquet":
        rows.to_parquet(tmp_path / "part.parquet")
        source = str(tmp_path)
    elif kind in ("duckdb", "sqlite"):
        source = f"{kind}:///{tmp_path / 'rows.db'}"
        if kind == "duckdb":
            import duckdb

            with duckdb.connect(str(tmp_path / "rows.db")) as connection:
                connection.execute("CREATE TABLE t AS SELECT * FROM rows")
        else:
            engine = sqlalchemy.create_engine(source)
            rows.to_sql("t", engine, index=False)
            engine.dispose()
        source += "?table=t"
    counts = count_source_decisions(ruleset, source, "y", model_column="model", **tolerances)
    assert counts.to_dict() == expected.to_dict()
    unlabeled = count_source_decisions(ruleset, source)
    assert unlabeled.n_labeled.sum() == 0
    assert unlabeled.n_outside.tolist() == expected.n_outside.tolist()


@pytest.mark.parametrize("tolerances", [None, [1.0]])
def test_source_decisions_require_a_tolerance_per_rule(tolerances: Any, tmp_path: Path) -> None:
    frame("regression").to_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match="a tolerance for each of 2 rules"):
        count_source_decisions(REGRESSION, tmp_path, "y", error_tolerances=tolerances)


def test_source_decisions_reject_labels_of_another_type() -> None:
    with pytest.raises(SourceError, match="labels of the type of the classes"):
        count_source_decisions(CLASSIFICATION, [frame("regression")], "y")


@pytest.mark.parametrize("lazy", [False, True])
def test_source_decisions_compare_integers_of_polars_exactly(lazy: bool) -> None:
    codes = [2**53 + 1, 2**53, None, None]
    batch = polars.DataFrame({"code": codes, "y": [*codes[:3], 2**53 + 1]})
    rules = RuleSet(
        [Rule([OneOf(0, [2**53 + 1])], 2**53 + 1)],
        ["code"],
        task="classification",
        classes=[2**53 + 1, 2**53],
        fallback=Fallback(2**53),
    )
    counts = count_source_decisions(rules, batch.lazy() if lazy else batch, "y")
    assert counts.n_rows.tolist() == [1, 3]
    assert counts.n_labeled.tolist() == [1, 2]
    assert counts.n_errors.tolist() == [0, 1]


def test_source_decisions_read_columns_of_folders(tmp_path: Path) -> None:
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame({"y": ["a", "b"]}).to_parquet(tmp_path / f"year={year}" / "part.parquet")
    rules = RuleSet([Rule([Interval(0, upper=2024)], "a")], ["year"], task="classification")
    source = DataSource(tmp_path, "y", partitioning="hive")
    assert count_source_decisions(rules, source).n_rows.tolist() == [2, 2]
