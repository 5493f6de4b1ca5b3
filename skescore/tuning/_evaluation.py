"""Cross-validation that asks the black box once per fold, however many candidates follow."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from skescore.extractors import CachedBlackBox, Oracle
from skescore.metrics._prediction import prediction_performance
from skescore.scorers import RuleScorer, evaluate_rules, make_knowledge_scorer


@dataclass(eq=False)
class Fold:
    """One split: a black box fitted on the training rows, and held-out rows to score on."""

    black_box: CachedBlackBox
    X_train: Any
    X_test: Any
    y_test: Any
    test: np.ndarray


def target_or_answers(black_box: Any, X: Any, y: Any) -> Any:
    """Give y, or a fitted black box's predictions in its place, so that fidelity is scored."""
    return Oracle(black_box, like=X).query(X) if y is None else y


def make_folds(
    black_box: Any, X: Any, y: Any, cv: Any, task: str, *, fitted: bool, groups: Any = None
) -> list[Fold]:
    """Split the data and fit the black box on each training part.

    The black box is cloned and fitted per split unless `fitted`; `cv` is as in scikit-learn,
    and an int stratifies where the task is classification.
    """
    folds = []
    for train, test in check_cv(cv, y, classifier=task == "classification").split(X, y, groups):
        X_train = _safe_indexing(X, train)
        model = black_box if fitted else clone(black_box).fit(X_train, _safe_indexing(y, train))
        X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
        folds.append(Fold(CachedBlackBox(model), X_train, X_test, y_test, np.asarray(test)))
    return folds


def fold_of_all_rows(black_box: Any, X: Any, y: Any, *, fitted: bool) -> Fold:
    """Take all rows to extract from and to score on, which is what the final rules are made of."""
    model = black_box if fitted else clone(black_box).fit(X, y)
    places = np.arange(len(y))
    X, y = _safe_indexing(X, places), _safe_indexing(y, places)
    return Fold(CachedBlackBox(model), X, X, y, places)


def black_box_quality(folds: list[Fold], task: str) -> dict[str, float]:
    """Held-out performance of the black box itself, averaged over the folds."""
    names = ("accuracy", "f1_weighted") if task == "classification" else ("r2",)
    result = {}
    for name in names:
        values = [
            prediction_performance(
                fold.y_test, fold.black_box.predict(fold.X_test), metric=name, task=task
            )
            for fold in folds
        ]
        result[name] = float(np.mean(values))
    return result


def evaluate_on_fold(
    extractor: Any,
    fold: Fold,
    scorer: Any,
    measures: Mapping[str, Any] | None = None,
    knowledge: RuleScorer | None = None,
) -> dict[str, Any]:
    """Extract on the training rows of a fold and score on the others.

    Parameters
    ----------
    extractor : extractor
        Cloned; its black box is replaced by the fold's.
    fold : Fold
        The split.
    scorer : callable
        Gives the score of a fitted extractor.
    measures : dict of str to callable, optional
        Further scorers.
    knowledge : RuleScorer, optional
        That of :func:`knowledge_like` the scorer, where other processes may know fewer scores.

    Returns
    -------
    dict
        ``score``, what all scores are made of, `measures`, ``seconds`` of the
        extraction, ``black_box_calls`` and ``black_box_rows`` that it asked for (some may have
        been answered from memory), and ``warnings`` raised.
    """
    knowledge = knowledge_like(scorer) if knowledge is None else knowledge
    its_scores = [spec.scorer_name for spec in knowledge.specs]
    # The black box goes first: its own is not to be cloned, the fold's clones as itself.
    candidate = clone(copy.copy(extractor).set_params(estimator=fold.black_box))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        candidate.fit(fold.X_train)
        seconds = time.perf_counter() - begin
        # Its own questions: what reaches the black box depends on who asked before.
        asked = getattr(candidate, "oracle_", None)  # not every package's extractor counts
        calls, rows = (math.nan, math.nan) if asked is None else (asked.n_calls, asked.n_rows)
        evaluation = evaluate_rules(
            candidate, fold.X_test, fold.y_test, reference=knowledge.reference
        )
        parts = knowledge.score(evaluation)
        scores = {}
        for name, function in {"score": scorer, **(measures or {})}.items():
            known = isinstance(function, RuleScorer) and function.reference == knowledge.reference
            score = (
                function.score(evaluation)
                if known
                else function(candidate, fold.X_test, fold.y_test)
            )
            if isinstance(score, dict):
                raise several_scores(function)
            scores[name] = float(score)
        size = evaluation.size(getattr(scorer, "settings", {}).get("size", "rules"))
    return (
        {"score": scores.pop("score")}
        | {name: value for name, value in parts.items() if name not in its_scores}
        | {"size": size}
        | scores
        | {
            "seconds": seconds,
            "black_box_calls": calls,
            "black_box_rows": rows,
            "warnings": sorted({str(w.message) for w in caught}),
        }
    )


def knowledge_like(scorer: Any) -> RuleScorer:
    """All measures, those of the scorer itself with its own settings: they make up its score."""
    own = [scorer] if isinstance(scorer, RuleScorer) and scorer.spec is not None else []
    return make_knowledge_scorer(reference=getattr(scorer, "reference", "data"), scorers=own)


def several_scores(scorer: Any) -> TypeError:
    """The error for a scorer that gives a dict where candidates must be put in one order."""
    return TypeError(
        f"scoring must give one number per candidate, but {scorer!r} gives a dict: choose one of "
        "its scores, for example scoring='ice'."
    )


def mean_of(results: list[dict[str, Any]], name: str) -> float:
    """Average of a measure over the folds; NaN if it is undefined on one of them."""
    return math.fsum(result[name] for result in results) / len(results)
