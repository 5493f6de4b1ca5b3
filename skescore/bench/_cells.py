"""Measuring one cell: rules extracted on the rows of a fold, scored on those held out."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skescore.bench._configuration import BlackBoxEntry, ExtractorEntry, text_of_object
from skescore.bench._plan import Cell, split_rows
from skescore.black_boxes import make_black_box
from skescore.datasets import Dataset
from skescore.extractors import Oracle, fit_black_box
from skescore.metrics import fidelity
from skescore.metrics._prediction import prediction_performance
from skescore.registry import make_extractor
from skescore.rules import RuleSet
from skescore.scorers import (
    SCORE_SPECS,
    RuleScorer,
    evaluate_rules,
    get_rule_scorer,
    knowledge,
    register_score,
)
from skescore.tuning import ExtractorSearchCV

__all__ = ["Group", "failed_row", "measure_group"]


class Group(NamedTuple):
    """Cells that share a black box: one data set, one seed, one fold."""

    dataset: Dataset
    data: str
    black_box: BlackBoxEntry
    seed: int
    fold: int
    folds: int
    test_size: float
    entries: tuple[ExtractorEntry, ...]
    model: FrozenEstimator | None = None
    scorer: RuleScorer = knowledge
    measures: tuple[tuple[str, Any], ...] = ()

    def cell(self, entry: ExtractorEntry) -> Cell:
        """The cell of an extractor."""
        return Cell(self.data, self.black_box.label, entry.label, self.seed, self.fold)


def measure_group(
    group: Group,
    *,
    limit: Callable[[], AbstractContextManager[None]] = nullcontext,
    ready: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """Fit the black box once and measure one extractor after the other.

    Parameters
    ----------
    group : Group
        What to measure.
    limit : callable, optional
        Gives a context for each cell.
    ready : callable, optional
        Called once the black box is fitted.

    Notes
    -----
    Libraries compute with one thread: sums are then added in the same order however many processes
    there are, and times are those of one core.
    """
    for spec in group.scorer.specs:
        if spec.name not in SCORE_SPECS:  # in a process of its own
            register_score(spec)
    splits = split_rows(group.dataset, group.seed, group.folds, group.test_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rare classes have a note
        train, test = list(splits)[group.fold]
    X, y = group.dataset.X, group.dataset.y
    rows = _Rows(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test])
    with threadpool_limits(limits=1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the black box; its quality is in the rows
                # A model from a file is frozen: this leaves it as it is.
                model = fit_black_box(_black_box(group), rows.X_train, rows.y_train)
                y_box = Oracle(model, like=rows.X_test).query(rows.X_test)
        except Exception as error:
            for entry in group.entries:
                yield failed_row(group, entry, error, "the black box cannot be trained: ")
            return
        task = group.dataset.task
        quality = prediction_performance(
            rows.y_test, y_box, metric=SCORE_SPECS["ice"].metric(task), task=task
        )
        ready()
        for entry in group.entries:
            try:
                with limit():
                    row = _measured(group, entry, rows, model, y_box)
            except Exception as error:  # a row of the results, not the end of the benchmark
                row = failed_row(group, entry, error)
            yield row | {"black_box_quality": quality}


class _Rows(NamedTuple):
    """The rows of a fold."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any


def _black_box(group: Group) -> Any:
    box, dataset = group.black_box, group.dataset
    if group.model is not None:
        return group.model
    if box.kind == "object":
        return _seeded(clone(box.estimator), group.seed)
    return make_black_box(
        box.name, dataset.task, group.seed, dataset.categories, scaled=box.scaled, params=box.params
    )


def _start(group: Group, entry: ExtractorEntry) -> dict[str, Any]:
    cell = group.cell(entry)._asdict()
    return {**cell, "task": group.dataset.task, "params": _text_of(entry.params)}


def failed_row(
    group: Group, entry: ExtractorEntry, error: Exception, where: str = ""
) -> dict[str, Any]:
    """The row of a cell that gave no rules, with the reason."""
    text = f"{where}{type(error).__name__}: {error}"
    return _start(group, entry) | {"state": "failed", "error": text}


def _measured(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any, y_box: np.ndarray
) -> dict[str, Any]:
    """Extract, then score with weights of 1, as a search does; the rules are in the row as well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        rules, cost = _extract(group, entry, rows, model)
        X_test = rows.X_test
        if isinstance(rules, RuleSet):  # read by name: the data may have further columns
            X_test = X_test[list(rules.feature_names)]
        evaluation = evaluate_rules(rules, X_test, rows.y_test)
        if evaluation.black_box is None:  # rules of others do not know it, but measures ask it
            query = Oracle(model, like=rows.X_test).query
            evaluation = replace(evaluation, rows=rows.X_test, black_box=query)
        parts = group.scorer.score(evaluation)
        for spec in group.scorer.specs:
            parts[spec.name] = spec.signed(parts.pop(spec.scorer_name))
        scores = parts | {
            "n_rules": int(parts["n_rules"]),
            "size": evaluation.size("rules"),
            "fidelity": (
                fidelity(evaluation.ruleset, lambda _: y_box, evaluation.X)
                if len(evaluation.ruleset)
                else math.nan
            ),
        }
        for name, measure in group.measures:
            of_rules = isinstance(measure, RuleScorer) and measure.reference == "data"
            found = measure.score(evaluation) if of_rules else measure(rules, X_test, rows.y_test)
            scores[name] = float(found)
    texts = sorted({" ".join(str(w.message).split()) for w in caught})
    return (
        _start(group, entry)
        | {"state": "complete", "error": "", "warnings": " | ".join(texts)}
        | scores
        | cost
        | {"rules": evaluation.ruleset}
    )


def _extract(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any
) -> tuple[Any, dict[str, Any]]:
    """The rules (or what holds them), and what they cost."""
    begin = time.perf_counter()
    params = entry.params
    if entry.kind == "rules":
        ruleset = RuleSet.from_json(Path(entry.name).read_text(encoding="utf-8"))
        return ruleset, {"seconds": 0.0, "black_box_calls": 0, "black_box_rows": 0}
    if entry.kind == "search":
        # Unfitted: its own folds must not be scored by a black box that has seen them.
        search = ExtractorSearchCV(
            _black_box(group),
            extractors=tuple(params["extractors"]),
            scoring=get_rule_scorer(params["scoring"]),
            n_trials=params["trials"],
            cv=params["cv"],
            random_state=group.seed,
        ).fit(rows.X_train, rows.y_train)
        seconds = time.perf_counter() - begin
        board, best = search.leaderboard_, search.best_extractor_
        found = {"extractor": search.best_name_, **search.best_params_}
        queries = {
            name: _whole(board[name].sum() * params["cv"] + getattr(best.oracle_, counter))
            for name, counter in (("black_box_calls", "n_calls"), ("black_box_rows", "n_rows"))
        }
        return best, {"params": _text_of(found), "seconds": seconds} | queries
    # Each extractor queries a black box of its own: nobody profits from the queries of another.
    box = FrozenEstimator(model)
    if entry.kind == "extractor":
        extractor = make_extractor(entry.name, box, **params)
    elif isinstance(entry.extractor, type):
        extractor = entry.extractor(box, **params)
    else:
        extractor = clone(entry.extractor).set_params(estimator=box, **params)
    _seeded(extractor, group.seed)
    begin = time.perf_counter()
    extractor.fit(rows.X_train)
    seconds = time.perf_counter() - begin
    oracle = getattr(extractor, "oracle_", None)  # not every package's extractor counts
    calls, queried = (math.nan,) * 2 if oracle is None else (oracle.n_calls, oracle.n_rows)
    return extractor, {
        "seconds": seconds, "black_box_calls": calls, "black_box_rows": queried,
    }  # fmt: skip


def _seeded(estimator: Any, seed: int) -> Any:
    """An estimator whose random numbers come from the seed, unless it has one of its own."""
    if estimator.get_params(deep=False).get("random_state", seed) is None:
        estimator.set_params(random_state=seed)
    return estimator


def _text_of(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=text_of_object)


def _whole(value: float) -> float | int:
    """Means over folds times their number are whole, but for rounding."""
    return value if math.isnan(value) else round(value)
