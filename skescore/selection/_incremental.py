"""A score of many candidate rule sets at once, from the rows that each changes.

How well a candidate predicts and how large it is comes out exactly. How much of the domain it
covers is bounded from above, and only measured for the candidates that may be the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from skescore.metrics._completeness import unit_boxes, volume_completeness
from skescore.metrics._prediction import METRICS
from skescore.rules import Domain, Rule
from skescore.rules._volumes import sampling_stream, subtract, volume_outside
from skescore.rules.simplification._on_rows import RuleRows, Step, without_rule
from skescore.scorers import COMPLETENESSES, RuleScorer, ScoreSpec
from skescore.scorers._evaluation import SIZES

#: What sampling may get wrong of a volume.
_SAMPLED = 0.01
#: So many boxes what is left of one may fall into, once others are cut out of it.
_FRAGMENTS = 2_000
#: Random points where it falls into more.
_POINTS = 5_000
#: The volume of so few rules is always exact.
_FEW_RULES = 12
#: Numbers that are worked on at a time.
_AT_A_TIME = 2_000_000


class KnownScore:
    """The score of rules in the making, and of what single steps make of them."""

    def __init__(
        self, spec: ScoreSpec, settings: Mapping[str, Any], rows: RuleRows, X: Any,
        y_black_box: np.ndarray,
    ) -> None:  # fmt: skip
        self._rows = rows
        self._settings = settings
        self._spec = spec
        task = rows.ruleset.task
        self._metric = spec.metric(task, settings[spec.prediction])
        kind = _Labels if task == "classification" else _Numbers
        self._tally = kind(rows, y_black_box, self._settings["uncovered"] == "ignore")
        self._volumes = None
        if self._settings.get("completeness") == "volume":
            domain = rows.ruleset.domain or Domain.around(np.asarray(X, dtype=float))
            self._volumes = _Volumes(rows, domain)

    @classmethod
    def of(cls, scorer: Any, rows: RuleRows, X: Any, y_black_box: np.ndarray) -> KnownScore | None:
        """The score, or None if it can only be asked for as a whole."""
        spec = scorer.spec if isinstance(scorer, RuleScorer) else None
        if spec is None:
            return None
        task, settings = rows.ruleset.task, scorer.settings
        name = spec.metric(task, settings[spec.prediction])
        metric = METRICS.get(name) if isinstance(name, str) else None
        known = (
            metric is not None
            and metric.of_sums is not None
            and task in metric.tasks
            and settings["size"] in SIZES
            and settings.get("completeness", "volume") in COMPLETENESSES
        )
        return cls(spec, settings, rows, X, y_black_box) if known else None

    def bounds(self, steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
        """The best score that the rules may have after each step, and whether it is just that."""
        number, row, value = self._rows.effects(steps)
        self._predicted = self._tally.after(len(steps), number, row, value, self._metric)
        total = sum(self._size(self._rows.rules[place]) for place in self._rows.indices)
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
        """Whether :meth:`measured` has to measure the volume of all rules."""
        return self._volumes is not None and not self._volumes.by_parts

    @property
    def is_followed(self) -> bool:
        """Whether volumes are estimates, of which only the changes are known."""
        return self._volumes is not None and self._volumes.is_followed

    def take(self, step: Step) -> None:
        """Follow a step that is taken; to be called before the rows take it."""
        if self._volumes is not None:
            self._volumes.take(step)

    def measured(self, step: Step, number: int) -> float:
        """The score after a step, the one with that number in the last call of :meth:`bounds`."""
        assert self._volumes is not None
        share = np.array([self._volumes.measured(step)])
        at = slice(number, number + 1)
        return float(self._scores(self._predicted[at], self._sizes[at], share)[0])

    def _size(self, rule: Rule) -> int:
        kind = self._settings["size"]
        return 1 if kind == "rules" else int(getattr(rule, f"n_{kind}"))

    def _scores(self, predicted: np.ndarray, sizes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        undefined = self._settings["undefined"]
        scores = np.full(len(predicted), -np.inf if math.isnan(undefined) else float(undefined))
        some = np.isfinite(predicted)
        if not some.any():
            return scores
        p, r, c = predicted[some], sizes[some], shares[some]
        if self._spec.prediction == "loss" and METRICS[self._metric].greater_is_better:
            p = np.maximum(1 - p, 0.0)
        scores[some] = self._spec.signed(np.asarray(self._spec.value(p, r, c, self._settings)))
        return scores


def _shares_after(
    current: np.ndarray, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """The share of rows with a rule after each step."""
    change = without_rule(current[row]).astype(float) - without_rule(value)
    gained = np.bincount(number, weights=change, minlength=n_steps)
    return np.asarray((np.count_nonzero(~without_rule(current)) + gained) / len(current))


class _Labels:
    """How often each label is predicted where each label is true."""

    def __init__(self, rows: RuleRows, y_black_box: np.ndarray, ignored: bool) -> None:
        self.rows = rows
        self.ignored = ignored
        codes = {label: i for i, label in enumerate(rows.ruleset.classes or ())}
        truth = [codes.setdefault(label, len(codes)) for label in y_black_box.tolist()]
        self.truth = np.array(truth, dtype=np.intp)
        self.n_labels = len(codes)

    def after(
        self, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray, metric: str
    ) -> np.ndarray:
        """The measure after each step."""
        n_cells = (self.n_labels + 1) * self.n_labels
        cells = self._cells(self.truth, self.rows.values)
        now = np.bincount(cells, minlength=n_cells)
        order = np.argsort(number, kind="stable")
        number, old, new = number[order], cells[row[order]], self._cells(self.truth[row], value)
        new = new[order]
        size = max(1, _AT_A_TIME // n_cells)
        parts = []
        for first in range(0, n_steps, size):
            n_here = min(size, n_steps - first)
            at = slice(*np.searchsorted(number, [first, first + n_here]))
            base = (number[at] - first) * n_cells
            counts = np.bincount(base + new[at], minlength=n_here * n_cells)
            counts -= np.bincount(base + old[at], minlength=n_here * n_cells)
            shape = n_here, self.n_labels + 1, self.n_labels
            parts.append(self._measured(counts.reshape(shape) + now.reshape(shape[1:]), metric))
        return np.concatenate(parts) if parts else np.empty(0)

    def _cells(self, truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        predicted = np.where(np.isnan(values), self.n_labels, values).astype(np.intp)
        return np.asarray(predicted * self.n_labels + truth)

    def _measured(self, counts: np.ndarray, metric: str) -> np.ndarray:
        hits = np.diagonal(counts, axis1=1, axis2=2)
        predicted = counts[:, :-1].sum(axis=2)
        actual = (counts[:, :-1] if self.ignored else counts).sum(axis=1)
        return _of_sums(metric, hits, predicted, actual)


class _Numbers:
    """Sums over the counted rows: how many, deviations and errors, and their squares."""

    def __init__(self, rows: RuleRows, y_black_box: np.ndarray, ignored: bool) -> None:
        self.rows = rows
        self.ignored = ignored
        self.truth = y_black_box.astype(float)
        self.centre = float(self.truth.mean())
        fallback = rows.ruleset.fallback
        self.default = self.centre if fallback is None else float(fallback.output)

    def after(
        self, n_steps: int, number: np.ndarray, row: np.ndarray, value: np.ndarray, metric: str
    ) -> np.ndarray:
        """The measure after each step."""
        current = self._terms(self.truth, self.rows.values)
        change = self._terms(self.truth[row], value) - current[:, row]
        sums = [
            now.sum() + np.bincount(number, weights=more, minlength=n_steps)
            for now, more in zip(current, change, strict=True)
        ]
        return self._measured(np.array(sums), metric)

    def _terms(self, truth: np.ndarray, values: np.ndarray) -> np.ndarray:
        lacking = np.isnan(values)
        deviation = truth - self.centre
        with np.errstate(over="ignore"):
            error = np.abs(truth - np.where(lacking, self.default, values))
            terms = [np.ones(len(truth)), deviation, deviation**2, error, error**2]
        return np.where(lacking & self.ignored, 0.0, terms)

    def _measured(self, sums: np.ndarray, metric: str) -> np.ndarray:
        n_rows, deviation, squares, absolute, squared = sums
        absolute, squared = np.maximum(absolute, 0.0), np.maximum(squared, 0.0)
        n_rows = np.where(np.round(n_rows) >= 1, n_rows, np.nan)
        return _of_sums(metric, n_rows, deviation, squares, absolute, squared)


def _of_sums(metric: str, *sums: np.ndarray) -> np.ndarray:
    """A metric of many candidates; NaN for those that count no rows."""
    function = METRICS[metric].of_sums
    assert function is not None
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return function(*sums)


class _Volumes:
    """How much of the domain rules cover, and what a step adds to it or takes away.

    A step changes what is covered inside of few boxes only: those of the new rule, or those of the
    rule taken out. What other rules leave uncovered there is a volume of few and small boxes; the
    union of all is measured only once per step taken.
    """

    def __init__(self, rows: RuleRows, domain: Domain) -> None:
        self.rows = rows
        self.domain = domain
        #: Whether what a step changes can be measured by itself.
        self.by_parts = False
        #: Whether the share is an estimate, to which changes are added from step to step.
        self.is_followed = False
        self._share: float | None = None
        #: Boxes of the rules that were looked at, with the rule, by the number of the object.
        self._known: dict[int, tuple[Rule, _RuleBoxes]] = {}

    def measured(self, step: Step) -> float:
        """The share of the domain that rules cover after a step."""
        share = self._after(step) if self.by_parts else None
        if share is None:
            after = self.rows.result(step).replace(domain=self.domain)
            return float(volume_completeness(after))
        # What rounding leaves of equal volumes must not decide.
        return min(max(round(share, 12), 0.0), 1.0)

    def take(self, step: Step) -> None:
        """Follow the share that is covered, where it cannot be measured as a whole."""
        self._share = self._after(step) if self.is_followed else None

    def _after(self, step: Step) -> float | None:
        """The share after a step, by what it changes; None if that is not known exactly."""
        assert self._share is not None
        if step.new is not None:
            boxes, others, sign = self._of([step.new])[0], slice(None), 1.0
        else:
            assert step.lost is not None
            boxes, others, sign = self._current[step.lost], self._place != step.lost, -1.0
        lower, upper = self._lower[others], self._upper[others]
        if len(boxes.lower) > 1 or len(self._lower) > len(self._current):
            place = self._place[others]
            change = volume_outside(boxes.lower, boxes.upper, lower, upper, place, _FRAGMENTS)
            if change is not None:
                return self._share + sign * change
        parts = [
            _uncovered(low, high, lower, upper, estimated=self.is_followed)
            for low, high in zip(boxes.lower, boxes.upper, strict=True)
        ]
        changes = [part for part in parts if part is not None]
        return self._share + sign * math.fsum(changes) if len(changes) == len(parts) else None

    def bounds(self, steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
        """The share that may be covered at most after each step, and whether it is just that."""
        ruleset, places = self.rows.result().replace(domain=self.domain), self.rows.indices
        is_exact = False
        if self._share is None or len(places) <= _FEW_RULES:
            whole = volume_completeness(ruleset)
            self._share, is_exact = float(whole), whole.exact
        now = self._of(ruleset.rules)
        made = [i for i, step in enumerate(steps) if step.new is not None]
        new = dict(zip(made, self._of([steps[i].new for i in made]), strict=True))
        self.by_parts = all(boxes.pure for boxes in (*now, *new.values()))
        self.is_followed = self.by_parts and not is_exact
        self._current = dict(zip(places, now, strict=True))
        self._lower = np.concatenate([boxes.lower for boxes in now])
        self._upper = np.concatenate([boxes.upper for boxes in now])
        self._place = np.repeat(places, [len(boxes.lower) for boxes in now])
        shares, exact = np.full(len(steps), self._share), np.zeros(len(steps), dtype=bool)
        for i, step in enumerate(steps):
            if not self.by_parts:
                shares[i] += (new[i].volume if i in new else 0.0) + _SAMPLED
            elif step.new is None:
                shared = self._shared(step.indices[0])
                shares[i] -= max(0.0, self._current[step.indices[0]].volume - shared)
                exact[i] = shared == 0
            else:
                old = [self._current[place] for place in step.indices]
                both = _common(old[0], old[1:]).sum() if len(old) == 2 else 0.0
                shares[i] += max(0.0, new[i].volume - sum(boxes.volume for boxes in old) + both)
                exact[i] = self.rows.ruleset.disjoint
        return np.clip(shares, 0.0, 1.0), exact

    def _shared(self, place: int) -> float:
        """The volumes that a rule has in common with each of the others, added up."""
        others = [boxes for other, boxes in self._current.items() if other != place]
        return float(_common(self._current[place], others).sum())

    def _of(self, rules: Sequence[Rule | None]) -> list[_RuleBoxes]:
        """The boxes of rules, in units of the domain."""
        unknown = [rule for rule in rules if rule is not None and id(rule) not in self._known]
        if unknown:
            ruleset = self.rows.ruleset.replace(rules=unknown, domain=self.domain, disjoint=False)
            boxes = unit_boxes(ruleset, comparable=True)
            ends = np.searchsorted(boxes.rule, np.arange(len(unknown) + 1))
            for rule, start, end in zip(unknown, ends[:-1], ends[1:], strict=True):
                at = slice(start, end)
                its = _RuleBoxes(boxes.lower[at], boxes.upper[at], bool(boxes.pure[at].all()))
                self._known[id(rule)] = rule, its
        return [self._known[id(rule)][1] for rule in rules]


class _RuleBoxes:
    """The boxes that stand for a rule; `pure` if they are all that it requires."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray, pure: bool) -> None:
        self.lower, self.upper, self.pure = lower, upper, pure
        self.volume = float(np.prod(upper - lower, axis=1).sum())

    @cached_property
    def sides(self) -> np.ndarray:
        """The intervals that a pure rule allows along each feature, of shape (2, n_features, n)."""
        if len(self.lower) == 1:
            return np.stack([self.lower.T, self.upper.T])
        ends = np.stack([self.lower.T, self.upper.T], axis=2)
        distinct = [np.unique(pairs, axis=0) for pairs in ends]
        sides = np.zeros((2, len(distinct), max(map(len, distinct), default=1)))
        for feature, pairs in enumerate(distinct):
            sides[:, feature, : len(pairs)] = pairs.T
        return sides


def _common(one: _RuleBoxes, others: Sequence[_RuleBoxes]) -> np.ndarray:
    """The volume that a rule has in common with each of some others."""
    n_sides = max((other.sides.shape[2] for other in others), default=0)
    sides = np.zeros((2, len(others), one.sides.shape[1], n_sides))
    for place, other in enumerate(others):
        sides[:, place, :, : other.sides.shape[2]] = other.sides
    lower = np.maximum(one.sides[0][:, :, None], sides[0][:, :, None])
    upper = np.minimum(one.sides[1][:, :, None], sides[1][:, :, None])
    return np.asarray(np.maximum(upper - lower, 0.0).sum(axis=(2, 3)).prod(axis=1))


def _uncovered(
    low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, estimated: bool
) -> float | None:
    """The volume of a box outside of some others; None if it would have to be `estimated`."""
    lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    inside = (lower < upper).all(axis=1)
    lower, upper = lower[inside], upper[inside]
    cut = ((lower > low) | (upper < high)).any(axis=0)
    factor = float(np.prod(high[~cut] - low[~cut]))
    low, high, lower, upper = low[cut], high[cut], lower[:, cut], upper[:, cut]
    largest = np.argsort(-np.prod(upper - lower, axis=1), kind="stable")
    left_low, left_high = low[None], high[None]
    for box in largest:
        left = subtract(left_low, left_high, lower[box], upper[box], _FRAGMENTS)
        if left is None:
            if not estimated:
                return None
            return factor * float(np.prod(high - low)) * _outside(low, high, lower, upper)
        left_low, left_high = left
        if not len(left_low):
            break
    return factor * math.fsum(np.prod(left_high - left_low, axis=1))


def _outside(low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """The share of a box that lies outside of some others, by random points."""
    points = low + sampling_stream(0).random((_POINTS, len(low))) * (high - low)
    free = np.ones(_POINTS, dtype=bool)
    for one_low, one_high in zip(lower, upper, strict=True):
        held = free.copy()
        for j in np.flatnonzero((one_low > low) | (one_high < high)):
            held &= (one_low[j] < points[:, j]) & (points[:, j] <= one_high[j])
        free &= ~held
    return float(free.mean())
