"""Files of version 0.1 can be read and keep their meaning.

``python tests/test_formats.py`` writes the rules anew; the other files are a run of ``skescore tune
iris --black-box knn --trials 3 --extractors cart``, its journal, its certificate and a bench.
"""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import optuna
import pytest

from skescore.bench import csv_text, read_rows
from skescore.certificates import Certificate
from skescore.datasets import load_dataset
from skescore.metrics import RuleCounts, count_rows
from skescore.report import read_candidates, write_report
from skescore.rules import RuleSet
from skescore.tuning.storage import open_storage

FORMATS = Path(__file__).parent / "data" / "formats"
RULES = FORMATS / "rules.json"


def answers(ruleset, rows):
    """Return which rules hold for each row, and the predictions (None for uncovered rows)."""
    with np.errstate(all="ignore"):
        try:
            predictions = ruleset.predict(rows).tolist()
        except ValueError:
            predictions = None
    predictions = predictions and [None if v != v else v for v in predictions]
    return {"match": ruleset.match(rows).tolist(), "predict": predictions}


def as_rows(values):
    rows = np.empty((len(values), len(values[0])), dtype=object)
    rows[:] = [[float(v) if v in ("inf", "-inf") else v for v in row] for row in values]
    return rows


def test_stored_rules_predict_as_before():
    records = json.loads(RULES.read_text(encoding="utf-8"))
    assert len(records) == 60
    for record in records:
        text = json.dumps(record["rules"])
        ruleset = RuleSet.from_json(text)
        assert json.loads(ruleset.to_json()) == record["rules"]
        assert answers(ruleset, as_rows(record["rows"])) == record["answers"], text


def test_stored_run_is_read_and_shown(tmp_path):
    stored = read_candidates((FORMATS / "run" / "candidates.json").read_text(encoding="utf-8"))
    assert (len(stored.candidates), stored.winner) == (3, 0)
    ice = stored.candidates.scores("ice")
    assert ice.max() == pytest.approx(0.97593, abs=5e-6)
    page = tmp_path / "report.html"
    write_report(FORMATS / "run", path=page)
    assert "petal width (cm)" in page.read_text(encoding="utf-8")


def test_stored_journal_contains_its_trials(tmp_path):
    path = tmp_path / "journal.log"
    path.write_bytes((FORMATS / "journal.log").read_bytes())
    storage = open_storage(str(path))
    trials = [
        t for study in storage.get_all_studies() for t in storage.get_all_trials(study._study_id)
    ]
    assert [t.state for t in trials] == [optuna.trial.TrialState.COMPLETE] * 3


def test_stored_certificate_keeps_its_text():
    text = (FORMATS / "certificate.json").read_text(encoding="utf-8")
    certificate = Certificate.from_json(text)
    assert json.loads(certificate.to_json()) == json.loads(text)


def test_stored_bench_rows_survive_a_round_trip():
    path = FORMATS / "bench_rows.csv"
    rows = read_rows(path)
    assert len(rows) == 8
    assert csv_text(rows) == path.read_text(encoding="utf-8")


def test_stored_counts_add_up_as_before():
    ruleset = RuleSet.from_json((FORMATS / "run" / "rules.json").read_text(encoding="utf-8"))
    data = load_dataset("iris")
    text = (FORMATS / "counts.json").read_text(encoding="utf-8")
    assert RuleCounts.from_json(text).to_json() == count_rows(ruleset, data.X, data.y).to_json()


def _write() -> None:
    path = Path(__file__).parent / "hostile" / "test_tables.py"
    spec = importlib.util.spec_from_file_location("hostile_tables", path)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    records = []
    for number in range(60):
        rng = np.random.default_rng(number)
        kinds, ruleset = tables.rule_set(rng)
        columns = [tables.column(rng, kind, 8) for kind in kinds]
        rows = [
            [str(v) if isinstance(v, float) and math.isinf(v) else v for v in row]
            for row in zip(*columns, strict=True)
        ]
        predictions = answers(ruleset, as_rows(rows))
        records.append(
            {"rules": json.loads(ruleset.to_json()), "rows": rows, "answers": predictions}
        )
    RULES.write_text(
        "[\n" + ",\n".join(json.dumps(r, ensure_ascii=True) for r in records) + "\n]\n",
        encoding="utf-8",
    )
    ruleset = RuleSet.from_json((FORMATS / "run" / "rules.json").read_text(encoding="utf-8"))
    data = load_dataset("iris")
    (FORMATS / "counts.json").write_text(count_rows(ruleset, data.X, data.y).to_json() + "\n")


if __name__ == "__main__":
    _write()
