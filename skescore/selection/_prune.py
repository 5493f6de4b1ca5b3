"""Pruning: greedy steps towards fewer and wider rules while a score improves."""

from __future__ import annotations

import heapq
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skescore._deadline import check_deadline
from skescore._text import listed
from skescore._validation import check_instance, check_integer, one_dimension
from skescore.metrics import PREDICTION_METRICS, volume_completeness
from skescore.metrics._completeness import unit_boxes
from skescore.rules import Domain, RowTable, Rule, RuleSet, RuleStatistics
from skescore.rules._volumes import sampling_stream, subtract, volume_outside
from skescore.rules.simplification import RuleRows, Step
from skescore.rules.simplification._on_rows import mark_uncovered
from skescore.scorers import COMPLETENESSES, SIZES, RuleScorer, ScoreSpec, get_rule_scorer

__all__ = ["prune"]


# --- scores of many candidates at once, from the rows that each changes ---------------------------

# The prediction and the size of a candidate are computed exactly. Its completeness by volume is
# bounded from above, and measured only for candidates that may be the best.

#: Tolerance of sampled volumes.
_SAMPLING_TOLERANCE = 0.01
#: Maximum number of boxes into which a box may split when others are subtracted.
_MAX_FRAGMENTS = 2_000
#: Number of random points for the volume of a box that splits into more.
_N_POINTS = 5_000
#: Maximum number of rules for which the volume is computed anew in every step.
_FEW_RULES = 12
#: Number of values per batch.
_BATCH_SIZE = 2_000_000


class IncrementalScore:
    """Score of the current rules, and of the rules after each possible step."""

    def __init__(
        self,
        spec: ScoreSpec,
        settings: Mapping[str, Any],
        rows: RuleRows,
        X: Any,
        y_black_box: np.ndarray,
    ) -> None:
        self._rows = rows
        self._settings = settings
        self._spec = spec
        task = rows.ruleset.task
        self._metric = spec.metric(task, settings[spec.prediction])
        kind = _LabelTally if task == "classification" else _NumberTally
        self._tally = kind(rows, y_black_box, self._settings["uncovered"] == "ignore")
        self._volumes = None
        if self._settings.get("completeness") == "volume":
            domain = rows.ruleset.domain or rows.ruleset.domain_around(X)
            self._volumes = _CoveredVolume(rows, domain)

    @classmethod
    def of(
        cls, scorer: Any, rows: RuleRows, X: Any, y_black_box: np.ndarray
    ) -> IncrementalScore | None:
        """Build the score; return None if every candidate must be scored anew."""
        spec = scorer.spec if isinstance(scorer, RuleScorer) else None
        if spec is None:
            return None
        task, settings = rows.ruleset.task, scorer.settings
        name = spec.metric(task, settings[spec.prediction])
        metric = PREDICTION_METRICS.get(name) if isinstance(name, str) else None
        is_supported = (
            metric is not None
            and metric.of_sums is not None
            and task in metric.tasks
            and settings["size"] in SIZES
            and settings.get("completeness", "volume") in COMPLETENESSES
        )
        return cls(spec, settings, rows, X, y_black_box) if is_supported else None

    def bounds(self, steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
        """Return an upper bound of the score after each step, and whether the bound is exact."""
        number, row, value = self._rows.effects(steps)
        self._predicted = self._tally.metrics_after(len(steps), number, row, value, self._metric)
        total = sum(self._size(self._rows.rules[rule_index]) for rule_index in self._rows.indices)
        sizes = [
            total - sum(map(self._size, step.old)) + (self._size(step.new) if step.new else 0)
            for step in steps
        ]
        self._sizes = np.maximum(np.array(sizes, dtype=float), 1.0)
        shares, exact = np.ones(len(steps)), np.ones(len(steps), dtype=bool)
        if self._volumes is not None:
            shares, exact = self._volumes.bounds(steps)
        elif self._settings.get("completeness") == "instances":
            shares = _shares_after(self._rows.values, len(steps), number, row, value)
        return self._scores(self._predicted, self._sizes, shares), exact

    @property
    def is_costly(self) -> bool:
        """Whether :meth:`measure` has to measure the volume of all rules."""
        return self._volumes is not None and not self._volumes.by_parts

    @property
    def is_estimated(self) -> bool:
        """True if volumes are estimates that are updated by changes."""
        return self._volumes is not None and self._volumes.is_estimated

    def take(self, step: Step) -> None:
        """Update the score for a chosen step; call this before updating the rows."""
        if self._volumes is not None:
            self._volumes.take(step)

    def measure(self, step: Step, number: int) -> float:
        """Compute the score after a step, by its number in the last call of :meth:`bounds`."""
        assert self._volumes is not None
        predicted, sizes = self._predicted[[number]], self._sizes[[number]]
        return float(self._scores(predicted, sizes, np.array([self._volumes.measure(step)]))[0])

    def _size(self, rule: Rule) -> int:
        kind = self._settings["size"]
        return 1 if kind == "rules" else int(getattr(rule, f"n_{kind}"))

    def _scores(self, predicted: np.ndarray, sizes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        undefined = self._settings["undefined"]
        scores = np.full(len(predicted), -np.inf if math.isnan(undefined) else float(undefined))
        is_defined = np.isfinite(predicted)
        if not is_defined.any():
            return scores
        p, r, c = predicted[is_defined], sizes[is_defined], shares[is_defined]
        if self._spec.prediction == "loss" and PREDICTION_METRICS[self._metric].greater_is_better:
            p = np.maximum(1 - p, 0.0)
        scores[is_defined] = self._spec.signed(
            np.asarray(self._spec.value(p, r, c, self._settings))
        )
        return scores


def _shares_after(
    current: np.ndarray, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """Compute the share of covered rows after each step."""
    change = mark_uncovered(current[row]).astype(float) - mark_uncovered(value)
    gained = np.bincount(number, weights=change, minlength=n_steps)
    return np.asarray((np.count_nonzero(~mark_uncovered(current)) + gained) / len(current))


class _LabelTally:
    """Numbers of rows by predicted and true label, from which metrics are computed."""

    def __init__(self, rows: RuleRows, y_black_box: np.ndarray, ignored: bool) -> None:
        self.rows = rows
        self.ignored = ignored
        codes = {label: i for i, label in enumerate(rows.ruleset.classes or ())}
        truth = [codes.setdefault(label, len(codes)) for label in y_black_box.tolist()]
        self.truth = np.array(truth, dtype=np.intp)
        self.n_labels = len(codes)

    def metrics_after(
        self, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray, metric: str
    ) -> np.ndarray:
        """Compute the metric after each step."""
        n_cells = (self.n_labels + 1) * self.n_labels
        cells = self._cells(self.truth, self.rows.values)
        current = np.bincount(cells, minlength=n_cells)
        order = np.argsort(number, kind="stable")
        number, old, new = number[order], cells[row[order]], self._cells(self.truth[row], value)
        new = new[order]
        size = max(1, _BATCH_SIZE // n_cells)
        parts = []
        for start in range(0, n_steps, size):
            n_batch = min(size, n_steps - start)
            batch = slice(*np.searchsorted(number, [start, start + n_batch]))
            base = (number[batch] - start) * n_cells
            counts = np.bincount(base + new[batch], minlength=n_batch * n_cells)
            counts -= np.bincount(base + old[batch], minlength=n_batch * n_cells)
            shape = n_batch, self.n_labels + 1, self.n_labels
            parts.append(self._metrics(counts.reshape(shape) + current.reshape(shape[1:]), metric))
        return np.concatenate(parts) if parts else np.empty(0)

    def _cells(self, truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the cell of each row in the flattened table of predicted and true labels."""
        predicted = np.where(np.isnan(values), self.n_labels, values).astype(np.intp)
        return np.asarray(predicted * self.n_labels + truth)

    def _metrics(self, counts: np.ndarray, metric: str) -> np.ndarray:
        hits = np.diagonal(counts, axis1=1, axis2=2)
        predicted_counts = counts[:, :-1].sum(axis=2)
        true_counts = (counts[:, :-1] if self.ignored else counts).sum(axis=1)
        return _metric_of_sums(metric, hits, predicted_counts, true_counts)


class _NumberTally:
    """Sums over the counted rows: number, deviations, errors, and their squares."""

    def __init__(self, rows: RuleRows, y_black_box: np.ndarray, ignored: bool) -> None:
        self.rows = rows
        self.ignored = ignored
        self.truth = y_black_box.astype(float)
        self.center = float(self.truth.mean())
        fallback = rows.ruleset.fallback
        self.default = self.center if fallback is None else float(fallback.output)

    def metrics_after(
        self, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray, metric: str
    ) -> np.ndarray:
        """Compute the metric after each step."""
        current = self._terms(self.truth, self.rows.values)
        change = self._terms(self.truth[row], value) - current[:, row]
        sums = [
            terms.sum() + np.bincount(number, weights=term_change, minlength=n_steps)
            for terms, term_change in zip(current, change, strict=True)
        ]
        return self._metrics(np.array(sums), metric)

    def _terms(self, truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        has_no_rule = np.isnan(values)
        deviation = truth - self.center
        with np.errstate(over="ignore"):
            error = np.abs(truth - np.where(has_no_rule, self.default, values))
            terms = [np.ones(len(truth)), deviation, deviation**2, error, error**2]
        return np.where(has_no_rule & self.ignored, 0.0, terms)

    def _metrics(self, sums: np.ndarray, metric: str) -> np.ndarray:
        n_rows, deviation, squares, absolute, squared = sums
        absolute, squared = np.maximum(absolute, 0.0), np.maximum(squared, 0.0)
        n_rows = np.where(np.round(n_rows) >= 1, n_rows, np.nan)
        return _metric_of_sums(metric, n_rows, deviation, squares, absolute, squared)


def _metric_of_sums(metric: str, *sums: np.ndarray) -> np.ndarray:
    """Compute a metric of many candidates; NaN for those without counted rows."""
    function = PREDICTION_METRICS[metric].of_sums
    assert function is not None
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return function(*sums)


class _CoveredVolume:
    """Volume of the domain that rules cover, and its change by each step.

    A step changes the covered region only inside a few boxes, those of the new or of the removed
    rule. The part of them that other rules leave uncovered is a volume of few small boxes. The
    union of all boxes is measured only once per chosen step.
    """

    def __init__(self, rows: RuleRows, domain: Domain) -> None:
        self.rows = rows
        self.domain = domain
        #: Whether the change by a step can be measured separately.
        self.by_parts = False
        #: Whether the share is an estimate that is updated by changes.
        self.is_estimated = False
        self._share: float | None = None
        #: Cached boxes of rules, with the rule, by the id of the object.
        self._cache: dict[int, tuple[Rule, _RuleBoxes]] = {}

    def measure(self, step: Step) -> float:
        """Measure the share of the domain that rules cover after a step."""
        share = self._share_after(step) if self.by_parts else None
        if share is None:
            after = self.rows.result(step).replace(domain=self.domain)
            return float(volume_completeness(after))
        # Rounding errors of equal volumes must not matter.
        return min(max(round(share, 12), 0.0), 1.0)

    def take(self, step: Step) -> None:
        """Update the covered share for a chosen step if it cannot be measured as a whole."""
        self._share = self._share_after(step) if self.is_estimated else None

    def _share_after(self, step: Step) -> float | None:
        """Compute the share after a step from its change; None if that is not known exactly."""
        assert self._share is not None
        if step.new is not None:
            boxes, is_other, sign = self._boxes_of([step.new])[0], slice(None), 1.0
        else:
            assert step.removed is not None
            boxes = self._current[step.removed]
            is_other, sign = self._owners != step.removed, -1.0
        lower, upper = self._lower[is_other], self._upper[is_other]
        if len(boxes.lower) > 1 or len(self._lower) > len(self._current):
            owner = self._owners[is_other]
            change = volume_outside(boxes.lower, boxes.upper, lower, upper, owner, _MAX_FRAGMENTS)
            if change is not None:
                return self._share + sign * change
        volumes = [
            _volume_outside(low, high, lower, upper, estimated=self.is_estimated)
            for low, high in zip(boxes.lower, boxes.upper, strict=True)
        ]
        changes = [volume for volume in volumes if volume is not None]
        return self._share + sign * math.fsum(changes) if len(changes) == len(volumes) else None

    def bounds(self, steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
        """Return an upper bound of the covered share after each step, and whether it is exact."""
        ruleset, rule_indices = self.rows.result().replace(domain=self.domain), self.rows.indices
        is_exact = False
        if self._share is None or len(rule_indices) <= _FEW_RULES:
            completeness = volume_completeness(ruleset)
            self._share, is_exact = float(completeness), completeness.exact
        current = self._boxes_of(ruleset.rules)
        changing_steps = [i for i, step in enumerate(steps) if step.new is not None]
        new = dict(
            zip(changing_steps, self._boxes_of([steps[i].new for i in changing_steps]), strict=True)
        )
        self.by_parts = all(boxes.pure for boxes in (*current, *new.values()))
        self.is_estimated = self.by_parts and not is_exact
        self._current = dict(zip(rule_indices, current, strict=True))
        self._lower = np.concatenate([boxes.lower for boxes in current])
        self._upper = np.concatenate([boxes.upper for boxes in current])
        self._owners = np.repeat(rule_indices, [len(boxes.lower) for boxes in current])
        shares, exact = np.full(len(steps), self._share), np.zeros(len(steps), dtype=bool)
        for i, step in enumerate(steps):
            if not self.by_parts:
                shares[i] += (new[i].volume if i in new else 0.0) + _SAMPLING_TOLERANCE
            elif step.new is None:
                overlap = self._overlap(step.indices[0])
                shares[i] -= max(0.0, self._current[step.indices[0]].volume - overlap)
                exact[i] = overlap == 0
            else:
                old = [self._current[rule_index] for rule_index in step.indices]
                common_volume = _shared_volumes(old[0], old[1:]).sum() if len(old) == 2 else 0.0
                shares[i] += max(
                    0.0, new[i].volume - sum(boxes.volume for boxes in old) + common_volume
                )
                exact[i] = self.rows.ruleset.disjoint
        return np.clip(shares, 0.0, 1.0), exact

    def _overlap(self, rule_index: int) -> float:
        """Sum the volumes of the intersections of a rule with each other rule."""
        other_boxes = [boxes for other, boxes in self._current.items() if other != rule_index]
        return float(_shared_volumes(self._current[rule_index], other_boxes).sum())

    def _boxes_of(self, rules: Sequence[Rule | None]) -> list[_RuleBoxes]:
        """Convert rules to boxes, in units of the domain."""
        new_rules = [rule for rule in rules if rule is not None and id(rule) not in self._cache]
        if new_rules:
            ruleset = self.rows.ruleset.replace(rules=new_rules, domain=self.domain, disjoint=False)
            boxes = unit_boxes(ruleset, comparable=True)
            ends = np.searchsorted(boxes.rule, np.arange(len(new_rules) + 1))
            for rule, start, end in zip(new_rules, ends[:-1], ends[1:], strict=True):
                part = slice(start, end)
                pure = bool(boxes.pure[part].all())
                self._cache[id(rule)] = rule, _RuleBoxes(boxes.lower[part], boxes.upper[part], pure)
        return [self._cache[id(rule)][1] for rule in rules]


class _RuleBoxes:
    """Boxes of a rule; `pure` if their union is exactly the region that the rule covers."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray, pure: bool) -> None:
        self.lower, self.upper, self.pure = lower, upper, pure
        self.volume = float(np.prod(upper - lower, axis=1).sum())

    @cached_property
    def sides(self) -> np.ndarray:
        """Intervals that a pure rule accepts along each feature, of shape (2, n_features, n)."""
        if len(self.lower) == 1:
            return np.stack([self.lower.T, self.upper.T])
        ends = np.stack([self.lower.T, self.upper.T], axis=2)
        varies = (ends != ends[:, :1]).any(axis=(1, 2))
        distinct = [
            np.unique(pairs, axis=0) if changes else pairs[:1]
            for pairs, changes in zip(ends, varies, strict=True)
        ]
        sides = np.zeros((2, len(distinct), max(map(len, distinct), default=1)))
        for feature, pairs in enumerate(distinct):
            sides[:, feature, : len(pairs)] = pairs.T
        return sides


def _shared_volumes(boxes: _RuleBoxes, other_boxes: Sequence[_RuleBoxes]) -> np.ndarray:
    """Compute the volume of the intersection of a rule with each of several others."""
    n_sides = max((other.sides.shape[2] for other in other_boxes), default=0)
    sides = np.zeros((2, len(other_boxes), boxes.sides.shape[1], n_sides))
    for position, other in enumerate(other_boxes):
        sides[:, position, :, : other.sides.shape[2]] = other.sides
    lower = np.maximum(boxes.sides[0][:, :, None], sides[0][:, :, None])
    upper = np.minimum(boxes.sides[1][:, :, None], sides[1][:, :, None])
    return np.asarray(np.maximum(upper - lower, 0.0).sum(axis=(2, 3)).prod(axis=1))


def _volume_outside(
    low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, estimated: bool
) -> float | None:
    """Compute the volume of a box outside others.

    If there are too many parts, the result is an estimate with `estimated`, otherwise None.
    """
    lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    inside = (lower < upper).all(axis=1)
    lower, upper = lower[inside], upper[inside]
    cut = ((lower > low) | (upper < high)).any(axis=0)
    uncut_volume = float(np.prod(high[~cut] - low[~cut]))
    low, high, lower, upper = low[cut], high[cut], lower[:, cut], upper[:, cut]
    largest = np.argsort(-np.prod(upper - lower, axis=1), kind="stable")
    rest_low, rest_high = low[None], high[None]
    for box in largest:
        rest = subtract(rest_low, rest_high, lower[box], upper[box], _MAX_FRAGMENTS)
        if rest is None:
            if not estimated:
                return None
            return uncut_volume * float(np.prod(high - low)) * _free_share(low, high, lower, upper)
        rest_low, rest_high = rest
        if not len(rest_low):
            break
    return uncut_volume * math.fsum(np.prod(rest_high - rest_low, axis=1))


def _free_share(low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Estimate the share of a box that lies outside others, by random points."""
    points = low + sampling_stream(0).random((_N_POINTS, len(low))) * (high - low)
    is_outside = np.ones(_N_POINTS, dtype=bool)
    for box_low, box_high in zip(lower, upper, strict=True):
        is_inside = is_outside.copy()
        for j in np.flatnonzero((box_low > low) | (box_high < high)):
            is_inside &= (box_low[j] < points[:, j]) & (points[:, j] <= box_high[j])
        is_outside &= ~is_inside
    return float(is_outside.mean())


# --- pruning --------------------------------------------------------------------------------------


#: Maximum number of merges and of shortened rules per step; all removals are tried.
_MAX_MERGES, _MAX_DROPS = 200, 2000
#: Maximum number of merges and of shortened rules per step if every candidate is scored anew.
_MAX_SCORED = 100
#: Maximum number of volumes measured per step of larger rule sets after the first improvement.
_MAX_VOLUMES = 20
#: Smallest relative gain of a step, above rounding errors.
_MIN_GAIN = 1e-12


def prune(
    ruleset: RuleSet,
    X: Any,
    y_black_box: Any,
    scorer: Any = "ice",
    *,
    max_steps: int | None = None,
) -> RuleSet:
    """Remove, merge and shorten rules as long as a score increases.

    Use it after an extraction with many rules: a score of the whole rule set (ICE, Q, FiRe) then
    determines which of them to keep.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows for the score.
    y_black_box : array-like of shape (n_rows,)
        The black box's predictions on these rows.
    scorer : str, RuleScorer or callable, default="ice"
        ``"ice"``, ``"neg_q"``, ``"neg_fire"``, a scorer created by :func:`make_ice_scorer` or a
        similar function, or any ``scorer(ruleset, X, y) -> float``; greater is better.
    max_steps : int, optional
        Maximum number of steps; None continues until no step improves the score.

    Returns
    -------
    RuleSet
        Rules with a score that is not worse; the same rule set if no step improves it. At least one
        rule remains.

    Raises
    ------
    TypeError
        If `ruleset` is not a RuleSet, or the scorer does not return a single number.
    ValueError
        If there is no such score, X and y_black_box do not fit each other or the rules, or the
        rules vote.

    Notes
    -----
    In every step the following changes are tried, and the one with the best score is chosen (the
    first if scores are equal):

    - merge two rules with the same output into the smallest box that contains both, at the position
      of either rule; at most 200 pairs, first adjacent boxes, then those whose common box exceeds
      them least;
    - remove a rule;
    - drop a bound, an interval or another condition of a rule; at most the 2000 changes that add
      the most rows to their rule.

    If the rules are declared disjoint, boxes that would overlap a third rule are skipped;
    ``ruleset.replace(ordered=True, disjoint=False)`` allows them.

    After a step, the statistics of all rules are recounted on the rows of X that each predicts:
    class counts, or mean and standard deviation, of `y_black_box`. A rule that predicts no row has
    no statistics. In an unordered set whose rules may overlap, statistics determine which rule
    predicts, so they are kept, and are added when rules are merged.

    Q counts only errors on covered rows, so "neg_q" tends to remove impure rules until little is
    covered; "ice" and "neg_fire" do not.

    ICE, Q and FiRe with named measures are updated from the rows and boxes that change, so scores
    of all candidates are cheap; the scorer confirms every chosen step. If the volume of all rules
    can only be estimated, the changes are added to the first estimate, and the scorer confirms the
    last step. If rules have conditions on several features, the volume is measured for the most
    promising candidates; with more than 20 rules, the best of the 20 most promising ones is chosen
    if it improves the score. Other scorers are called for each candidate, with at most 100 pairs
    and 100 shortened rules. An undefined score (NaN) is worse than any other. A RuleScorer always
    compares with `y_black_box`, whatever its `reference`.

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
    1. IF petal width (cm) ≤ 0.8 THEN 0   [50 rows, 100 % agree with the model]
    2. ELSE IF petal length (cm) ≤ 4.75 THEN 1   [45 rows, 100 % agree with the model]
    3. ELSE 2   [55 rows, 93 % agree with the model]
    """
    remedy = "Pass a fitted extractor's rules_, or use as_ruleset(...) first."
    check_instance("ruleset", ruleset, RuleSet, remedy=remedy)
    ruleset.check_one_rule_per_row("prune")
    check_integer("max_steps", max_steps, 0, optional=True, remedy="None means no limit.")
    scorer = get_rule_scorer(scorer)
    if isinstance(scorer, RuleScorer):
        if scorer.gives_dict:
            raise TypeError(
                f"scorer must give one number, but {scorer!r} returns several. Choose one of "
                f"{listed([spec.scorer_name for spec in scorer.specs])}."
            )
        scorer = RuleScorer(scorer.name, scorer.measure, "data", scorer.settings)
    y = one_dimension("y_black_box", y_black_box)
    table = RowTable(X, ruleset.feature_names)
    if y.shape != (len(table),):
        raise ValueError(
            f"y_black_box must hold one prediction per row, shape ({len(table)},), got shape "
            f"{y.shape}. Pass black_box.predict(X)."
        )
    if len(ruleset) == 0 or max_steps == 0:
        return ruleset
    rows = RuleRows(ruleset, table)
    incremental_score = IncrementalScore.of(scorer, rows, X, y)
    # Scorers of this package read the table, which caches the matches.
    reads_table = incremental_score is not None and ruleset.domain is not None
    score = _score_function(scorer, table if reads_table else X, y)
    initial = best = score(ruleset)
    n_steps, is_estimate = 0, False
    while max_steps is None or n_steps < max_steps:
        next_step = _best_step(rows, incremental_score, score, best, is_estimate=is_estimate)
        if next_step is None:
            break
        step, best = next_step
        if incremental_score is not None:
            incremental_score.take(step)
            is_estimate |= incremental_score.is_estimated
        rows.take(step)
        n_steps += 1
    if not n_steps or (is_estimate and not _is_better(score(rows.result()), initial)):
        return ruleset
    return rows.result() if rows.by_priority else _recount(rows, y)


def _recount(rows: RuleRows, y: np.ndarray) -> RuleSet:
    """Return the rules with statistics of the rows assigned to each."""
    order = np.argsort(rows.assigned, kind="stable")
    assigned, rule_indices = rows.assigned[order], rows.indices
    ends = zip(
        np.searchsorted(assigned, rule_indices).tolist(),
        np.searchsorted(assigned, rule_indices, side="right").tolist(),
        strict=True,
    )
    rules = [
        replace(
            rows.rules[rule_index],
            statistics=_label_statistics(y[order[start:end]], rows.ruleset)
            if start < end
            else None,
        )
        for rule_index, (start, end) in zip(rule_indices, ends, strict=True)
    ]
    return rows.ruleset.replace(rules=rules, reference="black_box")


def _label_statistics(y: np.ndarray, ruleset: RuleSet) -> RuleStatistics:
    """Compute the statistics of the labels of the rows that a rule predicts."""
    n_rows = len(y)
    if ruleset.classes is not None:
        label_counts = Counter(y.tolist())
        counts = tuple(label_counts[label] for label in ruleset.classes)
        # Shares of the classes would hide labels that are not classes.
        return RuleStatistics(n_rows, counts if sum(counts) == n_rows else None)
    numbers = y.astype(float)
    scale = float(np.abs(numbers).max())
    if not math.isfinite(scale):
        return RuleStatistics(n_rows)
    if (numbers == numbers[0]).all():  # exact
        return RuleStatistics(n_rows, mean=float(numbers[0]), standard_deviation=0.0)
    shares = numbers / scale
    mean, standard_deviation = float(shares.mean()), float(shares.std())
    return RuleStatistics(n_rows, mean=mean * scale, standard_deviation=standard_deviation * scale)


def _score_function(scorer: Any, X: Any, y: np.ndarray) -> Callable[[RuleSet], float]:
    """Return a function that scores a rule set; minus infinity for an undefined score."""

    def score(ruleset: RuleSet) -> float:
        with warnings.catch_warnings():
            # A candidate with an undefined score is skipped without a warning.
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
    return value > (best + _MIN_GAIN * abs(best) if math.isfinite(best) else best)


def _best_step(
    rows: RuleRows,
    incremental_score: IncrementalScore | None,
    score: Callable[[RuleSet], float],
    best: float,
    *,
    is_estimate: bool,
) -> tuple[Step, float] | None:
    """Find the step with the best score above `best`, and return both."""
    check_deadline()
    if incremental_score is None:
        best_step = None
        for step in _list_candidates(rows, _MAX_SCORED, _MAX_SCORED):
            check_deadline()
            value = score(rows.result(step))
            if _is_better(value, best):
                best_step, best = (step, value), value
        return best_step
    steps = _list_candidates(rows, _MAX_MERGES, _MAX_DROPS)
    bounds, exact = incremental_score.bounds(steps)
    if is_estimate and not incremental_score.is_estimated:
        best = score(rows.result())
    # Best first: an exact score at the top of the queue exceeds the bounds of all others.
    queue = [
        (-bound, i, is_exact) for i, (bound, is_exact) in enumerate(zip(bounds, exact, strict=True))
    ]
    queue = [entry for entry in queue if _is_better(-entry[0], best)]
    heapq.heapify(queue)
    n_measured, promising = 0, False
    while queue:
        check_deadline()
        bound, i, is_exact = heapq.heappop(queue)
        if not _is_better(-bound, best):
            break
        if not is_exact:
            if (
                incremental_score.is_costly
                and promising
                and n_measured >= _MAX_VOLUMES < len(rows.indices)
            ):
                continue
            value = incremental_score.measure(steps[i], i)
            n_measured += 1
            promising = promising or _is_better(value, best)
            heapq.heappush(queue, (-value, i, True))
            continue
        value = -bound if incremental_score.is_estimated else score(rows.result(steps[i]))
        if _is_better(value, best):
            return steps[i], value
    return None


def _list_candidates(rows: RuleRows, n_merges: int, n_drops: int) -> list[Step]:
    """Return possible steps: merges, removals and shortened rules."""
    rule_indices = rows.indices
    # Merges come first: on a tie they keep the rows of both rules.
    steps = rows.merges(n_merges, same_output=True)
    if len(rule_indices) > 1:
        steps += [rows.removal(rule_index) for rule_index in rule_indices]
    drops = rows.drops(rule_indices)
    if len(drops) > n_drops:
        gains = np.array([len(step.rows) for step in drops])
        drops = [drops[i] for i in np.argsort(-gains, kind="stable")[:n_drops]]
    return steps + drops
