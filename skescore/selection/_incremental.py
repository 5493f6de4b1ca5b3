"""A score of many candidate rule sets at once, from the rows that each changes.

How well a candidate predicts and how large it is comes out exactly. How much of the domain it
covers is bounded from above, and only measured for the candidates that may be the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skescore.metrics._completeness import volume_completeness
from skescore.metrics._prediction import METRICS
from skescore.rules import Domain, Rule, RuleSet
from skescore.rules.simplification import RuleRows, Step
from skescore.scorers import COMPLETENESSES, RuleScorer, ScoreSpec
from skescore.scorers._evaluation import SIZES

#: What sampling may get wrong of a volume.
_SAMPLED = 0.01
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

    def measured(self, step: Step, number: int) -> float:
        """The score after a step, the one with that number in the last call of :meth:`bounds`."""
        assert self._volumes is not None
        share = np.array([self._volumes.measured(self._rows.result(step))])
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
    change = np.isnan(current[row]).astype(float) - np.isnan(value)
    gained = np.bincount(number, weights=change, minlength=n_steps)
    return np.asarray((np.count_nonzero(~np.isnan(current)) + gained) / len(current))


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
    """How much of the domain rules cover, and at most may cover after a step."""

    def __init__(self, rows: RuleRows, domain: Domain) -> None:
        self.rows = rows
        self.domain = domain
        low, high = np.asarray(domain.lower), np.asarray(domain.upper)
        self.varying = high > low
        self.low, self.high = low[self.varying], high[self.varying]
        self.constants = low[~self.varying]
        self.missing = np.asarray(domain.missing)

    def measured(self, ruleset: RuleSet) -> float:
        """The share of the domain that rules cover."""
        return float(volume_completeness(ruleset.replace(domain=self.domain)))

    def bounds(self, steps: list[Step]) -> tuple[np.ndarray, np.ndarray]:
        """The share that may be covered at most after each step, and whether it is just that."""
        current = self.measured(self.rows.result())
        shares, exact = np.full(len(steps), current), np.zeros(len(steps), dtype=bool)
        pure = not any(self.rows.rules[place].others for place in self.rows.indices)
        pure &= not self.missing.any()
        low, high = self._unit(self.rows.lower, self.rows.upper)
        high = np.where(self.rows.alive[:, None], high, low)
        volumes = np.prod(high - low, axis=1)
        made = [i for i, step in enumerate(steps) if step.new is not None]
        sides = [np.array([steps[i].sides[side] for i in made]) for side in (0, 1)]
        shape = len(made), self.rows.ruleset.n_features
        new_sides = sides[0].reshape(shape), sides[1].reshape(shape)
        new_low, new_high = self._unit(*new_sides)
        whole = np.zeros(len(steps))
        whole[made] = np.prod(new_high - new_low, axis=1)
        if self.missing.any():
            whole[made] = self._with_missing(*new_sides)
        if not pure:
            return np.minimum(1.0, current + whole + _SAMPLED), exact
        # The many shortened rules all at once.
        wide = [i for i in made if steps[i].lost is None]
        grown = whole[wide] - volumes[[place for i in wide for place in steps[i].indices]]
        shares[wide] = np.minimum(1.0, current + np.maximum(0.0, grown))
        exact[wide] = self.rows.ruleset.disjoint
        met: dict[int, np.ndarray] = {}
        for i, step in enumerate(steps):
            if step.lost is None:
                continue
            first = step.kept if step.kept is not None else step.indices[0]
            if first not in met:
                sides = np.minimum(high, high[first]) - np.maximum(low, low[first])
                met[first] = np.prod(np.maximum(sides, 0.0), axis=1)
            if step.new is None:
                shared = float(met[first].sum() - met[first][first])
                shares[i] = current - max(0.0, volumes[first] - shared)
                exact[i] = shared == 0
                continue
            known = volumes[list(step.indices)].sum() - met[first][step.lost]
            more = whole[i] - known
            shares[i] = min(1.0, current + max(0.0, more))
            exact[i] = self.rows.ruleset.disjoint
        return np.clip(shares, 0.0, 1.0), exact

    def _with_missing(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """What boxes measure if they take missing values along every feature."""
        low, high = np.asarray(self.domain.lower), np.asarray(self.domain.upper)
        inside = (lower <= high) & (low <= upper)
        lengths = np.minimum(upper, high) / 2 - np.maximum(lower, low) / 2
        whole = np.where(self.varying, high / 2 - low / 2, 1.0)
        shares = np.where(inside, np.where(self.varying, lengths / whole, 1.0), 0.0)
        return np.asarray(np.prod(shares * (1 - self.missing) + self.missing, axis=1))

    def _unit(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boxes in units of the domain; those that miss a constant are empty."""
        fixed = ~self.varying
        holds = (lower[:, fixed] <= self.constants) & (self.constants <= upper[:, fixed])
        length = self.high - self.low
        low, high = (
            (np.clip(bound[:, self.varying], self.low, self.high) - self.low) / length
            for bound in (lower, upper)
        )
        if not self.varying.any():  # then each rule covers all of the domain or nothing
            low, high = np.zeros((len(lower), 1)), np.ones((len(lower), 1))
        inside = np.asarray(holds.all(axis=1))
        return low, np.where(inside[:, None], high, low)
