"""Rules edited in the page equal those of Python, as do figures, statistics and hashes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from loaded_files import load_file
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from skescore.editing import (
    EditLog,
    Effect,
    EffectRows,
    canonical_json,
    predict_rows,
    rules_sha256,
)
from skescore.report import write_report
from skescore.rules import Fallback, Interval, LinearOutput, Rule, RuleSet, with_statistics
from skescore.scorers import evaluate_rules, make_fire_scorer, make_ice_scorer

#: One edit in the page: its message, and the figures and rules after it.
APPLY = """
const editor = page.editor;
editor.apply(arguments[0]);
return { message: byId("edit-message").textContent, set: editor.log.set,
         figures: editor.now.figures, silent: editor.now.silent, hash: sha256Of(editor.log.set),
         intervals: ["correctness", "fidelity"].map((one) => editor.intervalOf(one, editor.now)) };
"""
KINDS = ("list", "tree", "unordered", "regression list", "regression tree")


@pytest.fixture(scope="module")
def cases() -> ModuleType:
    """Return the rule sets of every kind from the tests of the editor."""
    return load_file("editing/edit_cases.py")


class FixedPredictions(BaseEstimator):
    """A black box that predicts the same for the rows of the page."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = labels

    def fit(self, X: Any, y: Any) -> FixedPredictions:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        return self.labels[: len(X)]


def page_edit(random: np.random.Generator, rules: RuleSet) -> dict[str, Any]:
    """Return a random edit of those that the page offers."""
    number = int(random.integers(1, len(rules) + 1))
    choices: list[dict[str, Any]] = [{"action": "undo"}, {"action": "redo"}]
    if len(rules) > 2:
        choices.append({"action": "drop", "number": number})
    if random.random() < 0.1:
        choices.append({"action": "forbid", "feature": str(random.choice(rules.feature_names))})
    output = rules[int(random.integers(len(rules)))].output
    if not isinstance(output, LinearOutput) and not isinstance(
        rules[number - 1].output, LinearOutput
    ):
        choices.append({"action": "set_output", "number": number, "output": output})
    for condition in rules[number - 1].intervals:
        for side in ("lower", "upper"):
            if np.isfinite(getattr(condition, side)):
                value = float(np.round(random.uniform(-1, 9), int(random.integers(0, 3))))
                feature = rules.feature_names[condition.feature]
                edit = {"action": "set_bound", "number": number, "feature": feature, side: value}
                choices += [edit] * 3
    return choices[int(random.integers(len(choices)))]


def expected_figures(
    rules: RuleSet, X: pd.DataFrame, y: np.ndarray, model: np.ndarray
) -> dict[str, float]:
    """Measure rules with the scorers of the package."""
    predictions, has_prediction = predict_rows(rules, X)
    figures: dict[str, float] = {"rules": len(rules)}
    for name, reference in (("correctness", y), ("fidelity", model)):
        if rules.task == "regression":
            middle = y.mean() if name == "correctness" else model.mean()
            stand_in = np.where(has_prediction, predictions, middle)
            figures[name] = float(np.abs(reference - stand_in).mean())
        else:
            figures[name] = float((predictions == reference).mean())
    evaluation = evaluate_rules(rules, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a covered row ICE is undefined
        figures["ice"] = make_ice_scorer(completeness="instances").score(evaluation)
        figures["fire"] = -make_fire_scorer().score(evaluation)
    return figures


def check_edits(browser: Any, cases: ModuleType, folder: Path, seed: int, n_edits: int) -> int:
    """Make random edits in the page and in Python, and compare; return the number made."""
    random = np.random.default_rng(seed)
    rules, X, y = cases.rule_set(random, KINDS[seed % len(KINDS)])
    model = np.asarray(y).copy()
    model[::7] = model[3]
    box = FrozenEstimator(FixedPredictions(model))
    browser.open(write_report(rules, X, y, path=folder / f"edit{seed}.html", black_box=box))
    log = EditLog(rules, browser.run("return page.content.editing.about"))
    assert browser.run("return page.editor.log.start") == log.seal
    n_made = 0
    for _ in range(n_edits):
        edit = page_edit(random, log.rules)
        before = log.rules
        try:
            log.append(edit, time="now")
        except ValueError:
            outcome = browser.run(APPLY, edit)
            assert outcome["message"], edit
            assert outcome["hash"] == rules_sha256(before)
            continue
        outcome = browser.run(APPLY, edit)
        assert not outcome["message"], (edit, outcome["message"])
        assert outcome["hash"] == rules_sha256(log.rules), (
            edit,
            canonical_json(outcome["set"]),
            log.rules.to_json(indent=None),
        )
        n_made += 1
        expected = expected_figures(log.rules, X, np.asarray(y), model)
        for name, value in expected.items():
            page_value = outcome["figures"][name]
            if np.isnan(value):
                assert page_value is None
            else:
                assert page_value == pytest.approx(value, rel=1e-9, abs=1e-12), (name, edit)
        changes = Effect(rules, log.rules, EffectRows(X, np.asarray(y), model, "rows")).figures
        for interval, change in zip(outcome["intervals"], changes, strict=True):
            ends = [change.difference.low, change.difference.high]
            assert interval == pytest.approx(ends, rel=1e-6, abs=1e-9), edit
        assert outcome["silent"] == (~predict_rows(log.rules, X)[1]).sum()
    text = browser.run("return page.editor.log.toJson()")
    assert list(json.loads(text)) == list(json.loads(log.to_json()))
    replayed = EditLog.from_json(text)
    assert replayed.rules == log.rules
    assert rules_sha256(replayed.rules) == rules_sha256(log.rules)
    assert not browser.complaints()
    return n_made


def test_page_edits_equal_python(browser: Any, cases: ModuleType, tmp_path: Path) -> None:
    assert sum(check_edits(browser, cases, tmp_path, seed, 10) for seed in range(5)) >= 30


@pytest.mark.slow
def test_page_edits_equal_python_1000_times(
    browser: Any, cases: ModuleType, tmp_path: Path
) -> None:
    total = sum(check_edits(browser, cases, tmp_path, seed, 40) for seed in range(5, 42))
    assert total >= 1000


def test_page_hash_is_sha256(browser: Any, cases: ModuleType, tmp_path: Path) -> None:
    import hashlib

    rules, X, y = cases.rule_set(np.random.default_rng(0), "list")
    browser.open(write_report(rules, X, y, path=tmp_path / "hash.html"))
    for text in ("", "abc", "é日本" * 30, "x" * 55, "x" * 56, "x" * 64, "x" * 1000):
        assert browser.run("return sha256(arguments[0])", text) == (
            hashlib.sha256(text.encode()).hexdigest()
        )
    numbers = [1e21, 1e-7, 123456.789, 5e-324, -0.5, 2.0, 1e16, 0.1]
    assert browser.run("return canonicalJson(arguments[0])", numbers) == canonical_json(numbers)


def test_editor_fields_change_rules(browser: Any, tmp_path: Path) -> None:
    X = pd.DataFrame({"age": np.arange(10.0, 70.0), "income": np.arange(60.0) % 7})
    y = np.where(X["age"] > 40, "yes", "no")
    rules = RuleSet(
        [Rule([Interval(0, upper=30)], "no"), Rule([Interval(1, upper=2)], "no")],
        list(X),
        task="classification",
        fallback=Fallback("yes"),
        classes=["no", "yes"],
    )
    rules = with_statistics(rules, X, y)
    browser.open(write_report(rules, X, y, path=tmp_path / "page.html"))
    field = "#edit-rules li:nth-child(1) input"
    change = (
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('change'))"
    )
    browser.run(change, field, "40")
    assert "60 with another prediction" in browser.text("#edit-changes")
    assert [r["then"] for r in browser.run("return page.editor.log.set.rules")] == ["no", "no"]
    browser.run(change, field, "-5000")
    browser.element("#edit-rules li:nth-child(2) button").click()
    assert len(browser.texts("#edit-rules > li")) == 1
    browser.element("#edit-undo").click()
    assert len(browser.texts("#edit-rules > li")) == 2
    browser.run("byId('edit-forbid').value = 'income'")
    browser.element("#edit-forbid-form button").click()
    assert "Otherwise" in browser.texts("#edit-rules > li")[1]
    assert len(browser.run("return page.editor.log.steps")) == 5
    assert not browser.violations()
    assert not browser.requests()
