"""What can be found wrong with a search before it starts, and what tells its data from others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import optuna

from skescore.extractors import black_box_task, has_categories
from skescore.registry import extractor_spec, suitable_extractors
from skescore.tuning._evaluation import Fold
from skescore.tuning._goals import Goal
from skescore.tuning._objective import check_measures
from skescore.tuning._winner_parts import choose_by


def check_search(search: Any, X: Any) -> tuple[str, tuple[str, ...], Goal]:
    """Raise for parameters of a search that cannot be used; tell what it is about.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    task : {"classification", "regression"}
        What the black box does.
    names : tuple of str
        The extractors to try.
    goal : Goal
        What candidates are compared by.

    Raises
    ------
    ValueError, TypeError
        If one cannot be used.
    """
    task = black_box_task(search.estimator)
    names = _extractor_names(search, task, X)
    _check_budget(search, names)
    unknown = set(search.spaces or {}) - set(names)
    if unknown:
        raise ValueError(f"spaces names {sorted(unknown)}, not among extractors.")
    unknown = set(search.studies or {}) - set(names)
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
    return task, names, goal


def _extractor_names(search: Any, task: str, X: Any) -> tuple[str, ...]:
    if search.extractors is None:
        suitable = suitable_extractors(task, categories=has_categories(X))
        # Each needs a trial; _check_budget complains about a number that is none.
        return suitable[: search.n_trials] if is_count(search.n_trials) else suitable
    if isinstance(search.extractors, str) or not (
        isinstance(search.extractors, Sequence) and len(search.extractors)
    ):
        raise ValueError(
            "extractors must be a sequence of at least one name, such as ('cart', 'gridex'), or "
            f"None for all that suit, got {search.extractors!r}."
        )
    if len(set(search.extractors)) < len(search.extractors):
        raise ValueError(f"extractors must differ from each other, got {search.extractors!r}.")
    for name in search.extractors:
        if task not in (able := extractor_spec(name).tasks):
            raise ValueError(
                f"The extractor {name!r} does {' and '.join(able)} only, but the black box "
                f"{type(search.estimator).__name__} does {task}. Leave it out of extractors."
            )
    return tuple(search.extractors)


def is_count(n_trials: Any) -> bool:
    """Whether this is a number of trials that a search can make."""
    if isinstance(n_trials, bool) or not isinstance(n_trials, int | np.integer):
        return False
    return int(n_trials) > 0


def _check_budget(search: Any, names: tuple[str, ...]) -> None:
    if search.n_trials is None:
        if search.timeout is None:
            raise ValueError("n_trials=None needs a timeout in seconds.")
    elif not is_count(search.n_trials) or search.n_trials < len(names):
        raise ValueError(
            "n_trials must be an integer of at least one per extractor "
            f"({len(names)}), got {search.n_trials!r}."
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
