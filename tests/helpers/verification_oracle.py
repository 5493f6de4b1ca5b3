"""Comparison of verifications with the enumeration of all cells of small problems."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_ensembles import SmallProblem, enumerate_cells

from skescore.rules import RuleSet
from skescore.verification import VerificationLimits, verify


def check_problem(problem: SmallProblem) -> None:
    """Verify a problem, and compare everything with the enumeration of its cells."""
    result = verify(
        problem.rules,
        problem.model,
        problem.X,
        tolerance=problem.tolerance,
        radius=problem.radius,
        limits=VerificationLimits(time_limit=20.0, max_splits=300),
    )
    assert result.engine == "leaf boxes", (problem.label, result.reason)
    cells = enumerate_cells(problem)
    predictions = np.ravel(problem.model.predict(cells.rows))
    assigned = problem.rules.assign(cells.rows)
    has_output = (assigned >= 0) | (problem.rules.fallback is not None)
    outputs = np.full(len(cells.rows), None, dtype=object)
    outputs[has_output] = problem.rules.predict(cells.rows[has_output])
    if problem.tolerance is None:
        wrong = predictions != outputs
        deviations = np.zeros(len(wrong))
    else:
        deviations = np.abs(predictions - np.where(has_output, outputs, np.nan).astype(float))
        wrong = deviations > problem.tolerance
    for weights, name in ((cells.volume, "volume"), (cells.near, "near")):
        check_interval(
            getattr(result, f"{name}_disagreement"), weights[has_output], wrong[has_output]
        )
        for rule in result.rules:
            own = assigned == rule.index
            check_interval(getattr(rule, f"{name}_disagreement"), weights[own], wrong[own])
            mass = rule.volume if name == "volume" else rule.near_rows
            assert mass == pytest.approx(weights[own].sum(), abs=1e-6), problem.label
    for rule in result.rules:
        own = assigned == rule.index
        check_details(problem, rule, cells.rows[own], wrong[own], deviations[own])


def check_interval(interval, weights: np.ndarray, wrong: np.ndarray) -> None:
    """Check that an interval contains the exact share."""
    total = weights.sum()
    if total < 1e-9:
        return
    share = weights[wrong].sum() / total
    assert interval.proven_lower - 1e-6 <= share <= interval.proven_upper + 1e-6
    assert interval.lower - 1e-6 <= share <= interval.upper + 1e-6
    if interval.is_exact:
        assert (interval.lower, interval.upper) == (interval.proven_lower, interval.proven_upper)


def check_details(problem, rule, rows: pd.DataFrame, wrong: np.ndarray, deviations) -> None:
    """Check witness, trusted part, deviation and range of a rule."""
    for witness in filter(None, (rule.witness, rule.worst)):
        row = pd.DataFrame([witness.row]).astype(problem.X.dtypes.to_dict())
        prediction = np.ravel(problem.model.predict(row))[0]
        assert problem.rules.assign(row)[0] == rule.index, problem.label
        assert prediction == pytest.approx(witness.prediction, abs=1e-12)
        if problem.tolerance is None:
            assert prediction != rule.output
        else:
            assert abs(prediction - rule.output) > problem.tolerance
    if rule.volume > 1e-9 and wrong.any():
        assert rule.witness is not None, problem.label
    if rule.trusted is not None and len(rows):
        sub_rule = RuleSet([rule.trusted.rule], rule.trusted.feature_names, task=problem.rules.task)
        assert not wrong[sub_rule.covers(rows)].any(), problem.label
    if rule.max_deviation is not None and len(rows):
        assert deviations.max() <= rule.max_deviation + 1e-9
    check_range(problem, rule, rows)


def check_range(problem, rule, rows: pd.DataFrame) -> None:
    """Check that the proven range contains the output of the model in every cell."""
    bounds = rule.output_range
    if bounds.lower is None or not len(rows):
        return
    if problem.tolerance is not None:
        values = np.ravel(problem.model.predict(rows))
    elif rule.output in problem.model.classes_:
        position = problem.model.classes_.tolist().index(rule.output)
        values = problem.model.predict_proba(rows)[:, position]
    else:
        return
    assert bounds.lower <= values.min() + 1e-9, problem.label
    assert values.max() <= bounds.upper + 1e-9, problem.label
