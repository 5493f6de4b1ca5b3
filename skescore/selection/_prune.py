"""Pruning: single steps towards fewer and wider rules, as long as a score likes them better."""

from __future__ import annotations

import heapq
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skescore._deadline import check_deadline
from skescore._text import listed
from skescore._validation import check_instance, check_integer, one_dimension
from skescore.rules import RuleSet, RuleStatistics
from skescore.rules._matching import Table
from skescore.rules.simplification import RuleRows, Step
from skescore.scorers import RuleScorer, get_rule_scorer
from skescore.selection._incremental import KnownScore

__all__ = ["prune"]

#: Merges and shortened rules that are tried at a time; of rules that go, all are.
_MERGES, _DROPS = 200, 2000
#: Merges and shortened rules tried at a time by a score that is only known as a whole.
_FEW = 100
#: So many volumes are measured per step of larger rule sets, once one of them is for the better.
_VOLUMES = 20
#: A gain must exceed this, relative to the score, or rounding errors would prune.
_GAIN = 1e-12


def prune(
    ruleset: RuleSet,
    X: Any,
    y_black_box: Any,
    scorer: Any = "ice",
    *,
    max_steps: int | None = None,
) -> RuleSet:
    """Take out, merge and shorten rules as long as a score rises.

    Use it after an extraction that was generous with rules: a score of knowledge as a whole (ICE,
    Q, FiRe) then decides which of them are worth reading.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows to score on.
    y_black_box : array-like of shape (n_rows,)
        The black box's predictions on these rows.
    scorer : str, RuleScorer or callable, default="ice"
        ``"ice"``, ``"neg_q"``, ``"neg_fire"``, a scorer made by :func:`make_ice_scorer` and its
        like, or any ``scorer(ruleset, X, y) -> float``; greater is better.
    max_steps : int, optional
        Steps to take at most; None goes on until no step is for the better.

    Returns
    -------
    RuleSet
        Rules whose score is no worse; the very rule set where no step makes it better. At least
        one rule stays.

    Raises
    ------
    TypeError
        If `ruleset` is no RuleSet, or the scorer gives no single number.
    ValueError
        If there is no such score, X and y_black_box do not fit each other or the rules, or all
        rules that hold vote.

    Notes
    -----
    At every step all of these are tried, and the one with the best score is taken, the first of
    equal ones:

    - two rules of one output become the smallest box around both, in the place of either. Adjacent
      boxes come first, then those whose hull adds least; 200 pairs at most;
    - each rule is taken out;
    - each rule does without one of its bounds, a whole interval or another condition; the 2000
      that gain most rows at most.

    In a set that is declared disjoint, a box that would meet a third rule is not tried; with
    ``ruleset.replace(ordered=True, disjoint=False)`` such boxes are tried as well.

    Once a step is taken, the statistics of all rules are counted anew: the rows of X that each
    predictions, with the class counts or the mean and standard deviation of `y_black_box` there. A
    rule that predicts none has none. Only in an unordered set whose rules may overlap, where
    statistics decide who predicts, they stay; those of merged rules add up.

    Q counts errors on covered rows only, so "neg_q" tends to throw out impure rules until little
    is covered; "ice" and "neg_fire" do not.

    ICE, Q and FiRe with named measures are followed from step to step by the rows that change and
    by what the boxes that change cover alone, so that scores of all candidates cost little, and
    every step taken is confirmed by the scorer itself. Where the volume of all rules can only be
    estimated, the changes are added to the first estimate, and the scorer confirms the last step.
    Where rules have conditions on several features at once, the volume of all is measured for the
    most promising candidates; of more than 20 rules, the best of the 20 most promising ones is then
    taken if one of them is for the better.
    Other scorers are called for each candidate, with 100 pairs and 100 shortened rules at most. A
    score that is undefined (NaN) counts as worse than any other.

    With a RuleScorer the rows' truth is `y_black_box`, whatever its `reference`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.selection import prune
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> black_box = KNeighborsClassifier(9).fit(X, y)
    >>> rules = CARTExtractor(black_box, max_leaf_nodes=8, random_state=0).fit(X, y).rules_
    >>> print(prune(rules, X, black_box.predict(X), "ice"))
    1. IF petal width (cm) ≤ 0.8 THEN 0   [50 rows, 100 % pure]
    2. ELSE IF petal length (cm) ≤ 4.75 THEN 1   [45 rows, 100 % pure]
    3. ELSE 2   [55 rows, 93 % pure]
    """
    remedy = "Pass a fitted extractor's rules_, or use as_ruleset(...) first."
    check_instance("ruleset", ruleset, RuleSet, remedy=remedy)
    ruleset.check_one_rule_per_row("prune")
    check_integer("max_steps", max_steps, 0, optional=True, remedy="None is no limit.")
    scorer = get_rule_scorer(scorer)
    if isinstance(scorer, RuleScorer):
        if scorer.gives_dict:
            raise TypeError(
                f"scorer must give one number, but {scorer!r} gives several. Choose one of "
                f"{listed([spec.scorer_name for spec in scorer.specs])}."
            )
        scorer = RuleScorer(scorer.name, scorer.measure, "data", scorer.settings)
    y = one_dimension("y_black_box", y_black_box)
    table = Table(X, ruleset.feature_names)
    if y.shape != (len(table),):
        raise ValueError(
            f"y_black_box must hold one prediction per row, shape ({len(table)},), got shape "
            f"{y.shape}. Pass black_box.predict(X)."
        )
    if len(ruleset) == 0 or max_steps == 0:
        return ruleset
    rows = RuleRows(ruleset, table)
    known = KnownScore.of(scorer, rows, X, y)
    # Scores of ours read the columns from the table, which keeps what holds where.
    ours = known is not None and ruleset.domain is not None
    score = _scored(scorer, table if ours else X, y)
    first = best = score(ruleset)
    taken, is_estimate = 0, False
    while max_steps is None or taken < max_steps:
        found = _best_step(rows, known, score, best, is_estimate=is_estimate)
        if found is None:
            break
        step, best = found
        if known is not None:
            known.take(step)
            is_estimate |= known.is_followed
        rows.take(step)
        taken += 1
    if not taken or (is_estimate and not _is_better(score(rows.result()), first)):
        return ruleset
    return rows.result() if rows.by_priority else _recounted(rows, y)


def _recounted(rows: RuleRows, y: np.ndarray) -> RuleSet:
    """The rules with statistics of the rows assigned to each."""
    order = np.argsort(rows.assigned, kind="stable")
    assigned, places = rows.assigned[order], rows.indices
    ends = zip(
        np.searchsorted(assigned, places).tolist(),
        np.searchsorted(assigned, places, side="right").tolist(),
        strict=True,
    )
    rules = [
        replace(
            rows.rules[place],
            statistics=_seen(y[order[start:end]], rows.ruleset) if start < end else None,
        )
        for place, (start, end) in zip(places, ends, strict=True)
    ]
    return rows.ruleset.replace(rules=rules)


def _seen(y: np.ndarray, ruleset: RuleSet) -> RuleStatistics:
    """What was seen where a rule predicts some rows, at least one."""
    n_rows = len(y)
    if ruleset.classes is not None:
        counted = Counter(y.tolist())
        counts = tuple(counted[label] for label in ruleset.classes)
        # Shares of the classes alone would hide labels that are none of them.
        return RuleStatistics(n_rows, counts if sum(counts) == n_rows else None)
    numbers = y.astype(float)
    scale = float(np.abs(numbers).max())
    if not math.isfinite(scale):
        return RuleStatistics(n_rows)
    if (numbers == numbers[0]).all():  # free of rounding
        return RuleStatistics(n_rows, mean=float(numbers[0]), standard_deviation=0.0)
    shares = numbers / scale
    mean, standard_deviation = float(shares.mean()), float(shares.std())
    return RuleStatistics(n_rows, mean=mean * scale, standard_deviation=standard_deviation * scale)


def _scored(scorer: Any, X: Any, y: np.ndarray) -> Callable[[RuleSet], float]:
    """The score of a rule set; minus infinity where it is undefined."""

    def score(ruleset: RuleSet) -> float:
        with warnings.catch_warnings():
            # A candidate without a score is no candidate; there is nothing to tell.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            value = scorer(ruleset, X, y)
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"scorer must give one number, got {type(value).__name__}: {value!r}."
            ) from None
        return -math.inf if math.isnan(value) else value

    return score


def _is_better(value: float, best: float) -> bool:
    return value > (best + _GAIN * abs(best) if math.isfinite(best) else best)


def _best_step(
    rows: RuleRows,
    known: KnownScore | None,
    score: Callable[[RuleSet], float],
    best: float,
    *,
    is_estimate: bool,
) -> tuple[Step, float] | None:
    """The step to the best score above the given one, and that score."""
    check_deadline()
    if known is None:
        found = None
        for step in _candidates(rows, _FEW, _FEW):
            check_deadline()
            value = score(rows.result(step))
            if _is_better(value, best):
                found, best = (step, value), value
        return found
    steps = _candidates(rows, _MERGES, _DROPS)
    bounds, exact = known.bounds(steps)
    if is_estimate and not known.is_followed:
        best = score(rows.result())
    # Best first: what is on top with its own score is better than what any other can reach.
    queue = [(-bound, i, done) for i, (bound, done) in enumerate(zip(bounds, exact, strict=True))]
    queue = [entry for entry in queue if _is_better(-entry[0], best)]
    heapq.heapify(queue)
    measured, promising = 0, False
    while queue:
        check_deadline()
        bound, i, done = heapq.heappop(queue)
        if not _is_better(-bound, best):
            break
        if not done:
            if known.is_costly and promising and measured >= _VOLUMES < len(rows.indices):
                continue
            value = known.measured(steps[i], i)
            measured += 1
            promising = promising or _is_better(value, best)
            heapq.heappush(queue, (-value, i, True))
            continue
        value = -bound if known.is_followed else score(rows.result(steps[i]))
        if _is_better(value, best):
            return steps[i], value
    return None


def _candidates(rows: RuleRows, n_merges: int, n_drops: int) -> list[Step]:
    places = rows.indices
    # Merges first: where either does, the rows of both rules are told.
    steps = rows.merges(n_merges, alike=True)
    if len(places) > 1:
        steps += [rows.removal(place) for place in places]
    drops = rows.drops(places)
    if len(drops) > n_drops:
        gains = np.array([len(step.rows) for step in drops])
        drops = [drops[i] for i in np.argsort(-gains, kind="stable")[:n_drops]]
    return steps + drops
