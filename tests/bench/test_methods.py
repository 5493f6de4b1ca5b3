"""Custom methods in a benchmark, and rows with a time limit."""

from __future__ import annotations

import json
import sys

import pytest

from skescore.bench import (
    BenchCallback,
    ConfigurationError,
    config_from,
    read_methods,
    run_bench,
)


class NoMoreRows(BenchCallback):
    """Callback that fails when a row is measured."""

    def on_row(self, row):
        pytest.fail("a row was measured again")


PROGRAM = """
import os
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from skescore.extractors import CARTExtractor
from skescore.rules import Interval, Rule, RuleSet

def stump(X, y, random_state):
    rules = [Rule([Interval(2, upper=2.45)], 0), Rule([], 1)]
    return RuleSet(rules, list(X.columns), task="classification", classes=[0, 1, 2])

def endless(X, y, random_state):
    while True:
        pass

def dies(X, y, random_state):
    os._exit(7)

class Learner:
    def __call__(self, X, y, random_state):
        return DecisionTreeClassifier(max_leaf_nodes=2).fit(X, y)

METHODS = {
    "object": {"classification": Learner()},
    "tree": {
        "classification": DecisionTreeClassifier(max_leaf_nodes=3),
        "regression": DecisionTreeRegressor(max_leaf_nodes=3),
    },
    "stump": {"classification": stump},
    "ours": CARTExtractor(None, max_leaf_nodes=3),
    "by name": {"name": "cart", "params": {"max_leaf_nodes": 3}},
}
"""


@pytest.fixture
def entries(tmp_path):
    path = tmp_path / "mine.py"

    def entries(more="", *labels):
        path.write_text(PROGRAM + more)
        return [e for e in read_methods(path) if not labels or e["label"] in labels]

    return entries


def config(entries, data=("iris", "diabetes"), **more):
    raw = {"data": list(data), "black_boxes": ["decision-tree"], "extractors": entries, "folds": 1}
    return config_from(raw | more)


def test_methods_may_be_learners_functions_or_extractors(entries, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "skescore_methods_mine", raising=False)
    result = run_bench(config(entries()), tmp_path / "out", keep_rules=True)
    rows = result.rows.set_index(["data", "extractor"])
    assert rows["state"].eq("complete").all()
    # Labels of the table, although the function returns 0 and 1.
    assert rows.loc[("iris", "stump"), "n_rules"] == 2
    assert 0.5 < rows.loc[("iris", "stump"), "fidelity"] < 0.8
    assert ("diabetes", "stump") not in rows.index
    same = rows.loc[[("iris", "ours"), ("iris", "by name"), ("iris", "tree")], "ice"]
    assert same.nunique() == 1
    lines = (tmp_path / "out" / "rules.jsonl").read_text().splitlines()[1:]
    retained = {(r["data"], r["extractor"]): r for r in map(json.loads, lines)}
    assert set(retained) == set(rows.index)
    assert "IF petal length (cm) ≤ 2.45 THEN setosa" in retained["iris", "stump"]["text"]
    assert retained["iris", "stump"]["features"] == ["petal length (cm)"]
    # The same file is the same benchmark: nothing is measured again.
    second_rows = run_bench(config(entries()), tmp_path / "out", callback=NoMoreRows())
    assert second_rows.rows.equals(result.rows)
    # The same applies if both have been moved.
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "mine.py").rename(tmp_path / "elsewhere" / "mine.py")
    monkeypatch.delitem(sys.modules, "skescore_methods_mine")  # in another process
    folder = (tmp_path / "out").rename(tmp_path / "elsewhere" / "out")
    second_rows = run_bench(config(read_methods(moved)), folder, callback=NoMoreRows())
    assert second_rows.rows.equals(result.rows)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("", "must define METHODS, a dict of methods by label, got None"),
        ("METHODS = {}", "must define METHODS"),
        (
            "from sklearn.tree import DecisionTreeClassifier as T\nMETHODS = {'t': T}",
            "'t': a class must be an extractor; pass a learner as an instance",
        ),
    ],
)
def test_read_methods_rejects_files_without_methods(program, says, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(program)
    with pytest.raises(ConfigurationError, match=says):
        read_methods(path)


def test_read_methods_rejects_missing_file(tmp_path):
    with pytest.raises(ConfigurationError, match="is not a Python file"):
        read_methods(tmp_path / "none.py")


@pytest.mark.slow
def test_time_limit_fails_single_rows_only(entries, tmp_path):
    more = "METHODS = {'endless': endless, 'dies': dies, **METHODS}"
    without = run_bench(config(entries(), ["iris"]), tmp_path / "a").rows
    limited = config(entries(more), ["iris"], time_limit=2)
    rows = run_bench(limited, tmp_path / "b").rows
    failed = rows[rows["state"] == "failed"].set_index("extractor")["error"].to_dict()
    assert failed == {
        "endless": "TimeoutError: no rules within 2 s; its process was killed",
        "dies": "RuntimeError: its process ended with exit code 7",
    }
    rest = rows[rows["state"] == "complete"].reset_index(drop=True)
    measured = [name for name in rest.columns if name != "seconds"]
    assert rest[measured].equals(without[measured])
