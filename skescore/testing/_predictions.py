"""Checks of what a fitted extractor answers, and that the rules alone answer it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score

from skescore.rules import RuleSet
from skescore.testing._samples import (
    around,
    check,
    expect,
    fitted,
    frozen,
    need_reproducible,
    neighbours,
    recording,
    rows_around,
    sample,
    skip,
    task_of,
    with_rules,
)

#: Two labels of every type that black boxes answer, in sorted order.
LABELS: dict[str, np.ndarray] = {
    "text": np.array(["no, thanks", "yes"]),
    "objects": np.array(["b", "c"], dtype=object),
    "whole numbers": np.array([7, 1000]),
    "negative numbers": np.array([-3, -1]),
    "small numbers": np.array([-1, 1], dtype=np.int8),
    "float codes": np.array([1.0, 2.0]),
    "truth values": np.array([False, True]),
}


def _same(found: Any, expected: Any) -> bool:
    """Compare answers; missing ones are alike."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind == "f" and found.dtype.kind in "fiu":
        return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True))
    return found.tolist() == expected.tolist()


@check
def check_answers_follow_rules(name: str, extractor: Any) -> None:
    """`covers` is true where a rule holds, and `predict` answers there what the rule says."""
    copied = fitted(extractor)
    X, _ = sample(task_of(extractor))
    rows = np.vstack([X, rows_around(X)])
    covered = np.asarray(copied.covers(rows))
    expect(
        covered.dtype == bool and np.array_equal(covered, copied.rules_.covers(rows)),
        name,
        f"covers must give rules_.covers, truth values of shape {(len(rows),)}, got "
        f"{covered.dtype} of shape {covered.shape}.",
    )
    answers = np.asarray(copied.predict(rows))
    expect(
        answers.shape == (len(rows),),
        name,
        f"predict must answer every row once, {(len(rows),)}, got shape {answers.shape}.",
    )
    expect(
        _same(answers[covered], copied.rules_.predict(rows[covered])),
        name,
        "predict must answer what rules_.predict answers, where a rule holds.",
    )


@check
def check_uncovered_rows(name: str, extractor: Any) -> None:
    """Where no rule holds `predict` still answers, by default with a class or a number."""
    task = task_of(extractor)
    default = {"uncovered": "default"} if "uncovered" in extractor.get_params(deep=False) else {}
    copied = fitted(extractor, **default)
    X, _ = sample(task)
    rows = np.vstack([rows_around(X), X - 1e6, X + 1e6])
    answers = np.asarray(copied.predict(rows))
    if task == "classification":
        unknown = sorted(set(answers.tolist()) - set(copied.rules_.classes or ()), key=repr)
        expect(not unknown, name, f"predict must answer classes only, got {unknown[:3]}.")
    else:
        good = answers.dtype.kind in "fiu" and np.isfinite(answers).all()
        expect(good, name, "predict must answer every row with a finite number.")
    lost = ~np.asarray(copied.covers(rows))
    if lost.any():
        expect(
            copied.rules_.fallback is not None,
            name,
            f"no rule holds for {lost.sum()} of {len(rows)} rows, so rules_ needs a fallback.",
        )
        expect(
            _same(answers[lost], copied.rules_.predict(rows[lost])),
            name,
            "predict must answer what rules_.fallback says, where no rule holds.",
        )


@check
def check_uncovered_policies(name: str, extractor: Any) -> None:
    """`uncovered` decides what is answered where no rule holds, and nothing else."""
    if "uncovered" not in extractor.get_params(deep=False):
        skip("has no parameter uncovered")
    task = task_of(extractor)
    X, _ = sample(task)
    rows = np.vstack([X, rows_around(X), X - 1e6])
    default = fitted(extractor, uncovered="default")
    lost = ~np.asarray(default.covers(rows))
    expected = np.asarray(default.predict(rows))
    for policy in ("nearest", "abstain"):
        other = fitted(extractor, uncovered=policy)
        found = np.asarray(other.predict(rows))
        same_rows = np.array_equal(~np.asarray(other.covers(rows)), lost)
        if not same_rows or not _same(found[~lost].tolist(), expected[~lost].tolist()):
            need_reproducible(extractor)
            raise AssertionError(f"{name}: uncovered={policy!r} must not change the rules.")
        if task == "classification":
            known = {label in (other.rules_.classes or ()) for label in found[lost].tolist()}
        else:
            known = set(np.isfinite(found[lost].astype(float)).tolist())
        expect(
            known <= {policy == "nearest"},
            name,
            f"uncovered={policy!r} must answer rows without a rule "
            + ("as the nearest rule does." if policy == "nearest" else "with no class or NaN."),
        )


@check
def check_asks_no_black_box(name: str, extractor: Any) -> None:
    """`predict`, `covers`, `predict_proba` and `score` answer without the black box."""
    task = task_of(extractor)
    X, y = sample(task)
    black_box = recording(task).fit(X, y)
    copied = with_rules(around(extractor, FrozenEstimator(black_box)).fit(X, y))
    asked = len(black_box.shown_)
    rows = rows_around(X)
    for method in ("predict", "covers", "predict_proba", "score"):
        if not hasattr(copied, method):
            continue
        truth = (np.resize(y, len(rows)),) if method == "score" else ()
        getattr(copied, method)(rows, *truth)
        expect(
            len(black_box.shown_) == asked,
            name,
            f"{method} must be answered by the rules alone, but it asked the black box.",
        )


def _measure(task: str) -> Any:
    return accuracy_score if task == "classification" else r2_score


@check
def check_score(name: str, extractor: Any) -> None:
    """`score` is accuracy or R², and a weight of two counts as two rows."""
    copied = fitted(extractor)
    if not hasattr(copied, "score"):
        skip("has no score")
    task = task_of(extractor)
    X, y = sample(task)
    found, right = copied.score(X, y), _measure(task)(y, copied.predict(X))
    expect(
        isinstance(found, float) and math.isclose(found, right, rel_tol=1e-9),
        name,
        f"score must be {_measure(task).__name__} of y and predict(X), {right!r}, got {found!r}.",
    )
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    found, right = copied.score(X, y, sample_weight=weights), copied.score(X[repeated], y[repeated])
    expect(
        math.isclose(found, right, rel_tol=1e-9),
        name,
        f"score with weights must be that of repeated rows, {right!r}, got {found!r}.",
    )


@check
def check_fidelity(name: str, extractor: Any) -> None:
    """`fidelity` compares the rules' answers with the black box's own."""
    task = task_of(extractor)
    X, y = sample(task)
    black_box = frozen(task, X, y)
    copied = with_rules(around(extractor, black_box).fit(X, y))
    if not hasattr(copied, "fidelity"):
        skip("has no fidelity")
    around_X = rows_around(X)
    for rows in (X, around_X[np.asarray(copied.covers(around_X))]):
        found = copied.fidelity(rows)
        right = _measure(task)(black_box.predict(rows), copied.predict(rows))
        expect(
            math.isclose(found, right, rel_tol=1e-9),
            name,
            f"fidelity must compare with the black box's answers, {right!r}, got {found!r}.",
        )


@check
def check_labels(name: str, extractor: Any) -> None:
    """Labels of every type go in and come out, and are names only: the rules stay the same."""
    if task_of(extractor) != "classification":
        skip("labels are of classification")
    X, y = sample("classification")
    plain = fitted(extractor)
    for kind, labels in LABELS.items():
        copied = around(extractor, neighbours("classification")).fit(X, labels[y])
        answers = np.asarray(with_rules(copied).predict(X))
        expect(
            answers.dtype.kind == labels.dtype.kind,
            name,
            f"labels that are {kind} must be answered as such ({labels.dtype}), got "
            f"{answers.dtype}.",
        )
        outputs = [rule.output for rule in copied.rules_]
        expected = [labels.tolist()[rule.output] for rule in plain.rules_]
        conditions = [rule.conditions for rule in copied.rules_]
        if conditions != [rule.conditions for rule in plain.rules_] or outputs != expected:
            need_reproducible(extractor)
            raise AssertionError(
                f"{name}: rules must not depend on what classes are called, but those for "
                f"{labels.tolist()} differ from those for [0, 1]:\n{copied.rules_}\n{plain.rules_}"
            )


@check
def check_json(name: str, extractor: Any) -> None:
    """The rules are the same, and answer the same, after a journey through JSON."""
    copied = fitted(extractor)
    X, _ = sample(task_of(extractor))
    travelled = RuleSet.from_json(copied.rules_.to_json())
    expect(travelled == copied.rules_, name, "RuleSet.from_json(rules_.to_json()) must be rules_.")
    covered = X[copied.rules_.covers(X)]
    expect(
        _same(travelled.predict(covered), copied.rules_.predict(covered)),
        name,
        "rules must answer the same after a journey through JSON.",
    )
