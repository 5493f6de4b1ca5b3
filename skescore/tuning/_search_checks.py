"""What can be found wrong with a search before it starts, and what tells its data from others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import optuna

from skescore.extractors import black_box_task
from skescore.registry import extractor_spec
from skescore.tuning._winner import choose_by
from skescore.tuning.folds import Fold
from skescore.tuning.goals import Goal
from skescore.tuning.objective import check_measures


def check_search(search: Any) -> tuple[str, Goal]:
    """Raise for parameters of a search that cannot be used; give its task and its goal.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.

    Returns
    -------
    task : {"classification", "regression"}
        What the black box does.
    goal : Goal
        What candidates are compared by.

    Raises
    ------
    ValueError, TypeError
        If one cannot be used.
    """
    task = black_box_task(search.estimator)
    if isinstance(search.extractors, str) or not (
        isinstance(search.extractors, Sequence) and len(search.extractors)
    ):
        raise ValueError(
            "extractors must be a sequence of at least one name, such as ('cart', 'gridex'), "
            f"got {search.extractors!r}."
        )
    if len(set(search.extractors)) < len(search.extractors):
        raise ValueError(f"extractors must differ from each other, got {search.extractors!r}.")
    for name in search.extractors:
        if task not in (able := extractor_spec(name).tasks):
            raise ValueError(
                f"The extractor {name!r} does {' and '.join(able)} only, but the black box "
                f"{type(search.estimator).__name__} does {task}. Leave it out of extractors."
            )
    _check_budget(search)
    unknown = set(search.spaces or {}) - set(search.extractors)
    if unknown:
        raise ValueError(f"spaces names {sorted(unknown)}, not among extractors.")
    unknown = set(search.studies or {}) - set(search.extractors)
    if unknown:
        raise ValueError(f"studies names {sorted(unknown)}, not among extractors.")
    if search.allocation not in ("halving", "even"):
        raise ValueError(f"allocation must be 'halving' or 'even', got {search.allocation!r}.")
    if (
        not isinstance(search.standard_errors, Real)
        or isinstance(search.standard_errors, bool)
        or not 0 <= float(search.standard_errors) < np.inf
    ):
        raise ValueError(
            f"standard_errors must be a number of at least 0, got {search.standard_errors!r}."
        )
    goal = Goal.of(search.scoring, choose_by(search))
    check_measures(search.measures)
    if not goal.objectives and not isinstance(search.refit, bool | np.bool_):
        raise ValueError(
            "refit must be True or False where scoring is a single score, which chooses by "
            f"itself, got {search.refit!r}."
        )
    _check_pruner(search, goal)
    return task, goal


def _check_budget(search: Any) -> None:
    if search.n_trials is None:
        if search.timeout is None:
            raise ValueError("n_trials=None needs a timeout in seconds.")
    elif not isinstance(search.n_trials, int | np.integer) or search.n_trials < len(
        search.extractors
    ):
        raise ValueError(
            "n_trials must be an integer of at least one per extractor "
            f"({len(search.extractors)}), got {search.n_trials!r}."
        )
    if search.timeout is None:
        return
    if not isinstance(search.timeout, Real) or isinstance(search.timeout, bool):
        raise TypeError(f"timeout must be a number of seconds or None, got {search.timeout!r}.")
    if not 0 <= float(search.timeout) < np.inf:
        raise ValueError(
            f"timeout must be a finite number of seconds or None, got {search.timeout!r}."
        )


def _check_pruner(search: Any, goal: Goal) -> None:
    if search.pruner is None:
        return
    if search.pruner != "bound" and not isinstance(search.pruner, optuna.pruners.BasePruner):
        raise TypeError(f"pruner must be 'bound', an Optuna pruner or None, got {search.pruner!r}.")
    if goal.objectives:
        raise ValueError("A pruner compares one score; with several measures pass pruner=None.")
    if search.pruner == "bound" and goal.best_possible is None:
        raise ValueError(
            f"pruner='bound' needs a score whose best value is known (ICE, FiRe or Q), got "
            f"scoring={search.scoring!r}. Pass an Optuna pruner or None."
        )


def digest_of(folds: list[Fold]) -> str:
    """Text that tells other rows, or other splits of them, from these."""
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(np.asarray(fold.test, dtype=np.int64).tobytes())
        digest.update(_content(fold.X_test))
        digest.update(_content(fold.y_test))
    return digest.hexdigest()[:16]


def _content(values: Any) -> bytes:
    array = np.asarray(values)
    # Names are hashed as text: an array of objects holds no more than their addresses.
    return repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
