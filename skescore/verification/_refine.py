"""Repair of rules: exceptions where a model contradicts a rule near the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore._random import child_generator
from skescore._validation import check_instance, check_integer, check_number, python_value
from skescore.rules import (
    Condition,
    Domain,
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    as_ruleset,
    with_statistics,
)
from skescore.verification._branch import Target
from skescore.verification._grid import CellGrid
from skescore.verification._measures import Neighborhoods
from skescore.verification._queries import PointQueries
from skescore.verification._result import Verification
from skescore.verification._rows import RowCodes, column_positions

#: Numbers of leaves of trees that propose exceptions, and number of rules with proposals per step.
_MAX_LEAVES, _N_RULES = (2, 3, 4), 5
#: Minimum share of a rule's generated rows that an exception covers.
_MIN_SHARE = 0.02
#: Maximum p-value of the sign test on held-out rows for accepted exceptions.
_MAX_P_VALUE = 1e-3
#: Number of rows drawn per query row to find rows of disagreement.
_N_DRAWN_PER_ROW = 5


def refine(
    rules: RuleSet,
    verification: Verification,
    black_box: Any,
    X: Any,
    *,
    max_new_rules: int = 2,
    n_rows: int = 20_000,
    random_state: Any = 0,
) -> RuleSet:
    """Add exceptions to rules where the model contradicts them near the data.

    An exception is a rule that is inserted before another rule. It has the conditions of that rule,
    further conditions, and another output. Exceptions are proposed at the boundaries of the trusted
    part of the rule, or by a small tree fitted to generated rows. An exception is accepted if it
    removes significantly more disagreements than it adds on other generated rows. Predictions for
    rows outside the exception do not change.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    verification : Verification
        Result of :func:`verify` for these rules.
    black_box : estimator
        The fitted model.
    X : array-like or DataFrame
        Rows of the verification.
    max_new_rules : int, default=2
        Maximum number of exceptions.
    n_rows : int, default=20_000
        Number of rows generated for proposals; as many are generated for tests.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the generated rows.

    Returns
    -------
    RuleSet
        The rules with exceptions as an ordered list, with statistics of their agreement with the
        model; `rules` itself if no exception was accepted.

    Raises
    ------
    ValueError
        If the verification belongs to other rules.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.verification import refine, verify
    >>> X = np.linspace(0, 10, 41)[:, None]
    >>> model = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=6)], False), Rule([], True)],
    ...     ["x"],
    ...     task="classification",
    ... )
    >>> better = refine(rules, verify(rules, model, X), model, X, max_new_rules=1)
    >>> len(better), bool((better.predict(X) == model.predict(X)).all())
    (3, True)
    """
    check_instance("rules", rules, RuleSet)
    check_instance("verification", verification, Verification)
    check_integer("max_new_rules", max_new_rules, 0)
    check_integer("n_rows", n_rows, 1000)
    if verification.ruleset != rules:
        raise ValueError(
            "verification must belong to these rules, but it is of other rules. Call verify again."
        )
    repair = _Repair(verification, black_box, X, n_rows, random_state)
    for _ in range(max_new_rules):
        if not repair.add_exception():
            break
    return repair.result(rules)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Generated rows with the predictions of the model.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_features)
        The rows, with codes and NaN.
    rows : DataFrame or ndarray
        The same rows, in the container that the model and the rules accept.
    predictions : ndarray
        Predictions of the model.
    """

    points: np.ndarray
    rows: Any
    predictions: np.ndarray

    def take(self, mask: np.ndarray) -> _Sample:
        """Return the selected rows."""
        rows = self.rows[mask] if isinstance(self.rows, np.ndarray) else _selected(self.rows, mask)
        return _Sample(self.points[mask], rows, self.predictions[mask])


def _selected(frame: Any, mask: np.ndarray) -> Any:
    return frame.loc[mask] if hasattr(frame, "loc") else frame.filter(mask)


class _Repair:
    """Ordered list of rules to which exceptions are added.

    The first of two samples of generated rows is for proposals, the second for tests.
    """

    def __init__(
        self, verification: Verification, black_box: Any, X: Any, n_rows: int, random_state: Any
    ) -> None:
        rules = verification.ruleset
        code_columns = [
            j for j, column in enumerate(verification.domain) if column["kind"] == "category"
        ]
        self.codes = RowCodes(X, code_columns, rules.feature_names)
        self.tolerance = verification.tolerance
        self.rules = [rules.rules[i] for i in rules.assignment_order]
        self.ruleset = rules.replace(rules=self.rules, ordered=True, disjoint=False)
        self.columns = column_positions(rules.feature_names, self.codes.names)
        self.queries = PointQueries(rules, black_box, self.codes)
        self.n_added = 0
        self._trusted = {
            id(rule): record.trusted.rule
            for rule, i in zip(self.rules, rules.assignment_order.tolist(), strict=True)
            for record in verification.rules
            if record.index == i and record.trusted is not None
        }
        self.samples: list[_Sample] = []
        for stream in range(2):
            rng = child_generator(random_state, stream)
            points = draw_near(self.codes, verification.radius, n_rows, rng)
            drawn_rows = self.codes.decode(points)
            self.samples.append(_Sample(points, drawn_rows, self.queries.predict(points)))

    def result(self, rules: RuleSet) -> RuleSet:
        """Return the rules with statistics, or the original rules without exceptions."""
        if not self.n_added:
            return rules
        predictions = self.queries.predict(self.codes.matrix)
        result = self.ruleset.replace(rules=self.rules)
        return with_statistics(result, self.codes.rows, predictions).replace(reference="black_box")

    def add_exception(self) -> bool:
        """Insert the best exception that the test sample confirms; return whether there is one.

        Proposals are ranked by gain: removed disagreements minus added ones.
        """
        ruleset = self.ruleset.replace(rules=self.rules)
        sample, held_out = self.samples
        assigned = ruleset.assign(sample.rows)
        proposals = []
        for i in self._worst_rules(assigned, sample):
            rule_sample = sample.take(assigned == i)
            for conditions in self._proposals(i, rule_sample):
                proposal = self._exception(i, conditions, rule_sample)
                if proposal is not None:
                    proposals.append((*proposal, i))
        proposals.sort(key=lambda pair: -pair[0])
        held_out_assigned = ruleset.assign(held_out.rows)
        for gain, exception, i in proposals[:5]:
            n_fixed, n_broken = self._changes(i, exception, held_out.take(held_out_assigned == i))
            if gain <= 0 or n_fixed <= n_broken:
                continue
            if binomtest(n_fixed, n_fixed + n_broken, alternative="greater").pvalue > _MAX_P_VALUE:
                continue
            self.rules.insert(i, exception)
            self.n_added += 1
            return True
        return False

    def _target(self, rule: Rule) -> Target:
        return Target(np.empty((0, 1)), rule.output, self.tolerance, columns=self.columns)

    def _worst_rules(self, assigned: np.ndarray, sample: _Sample) -> list[int]:
        """Return the rules with the most disagreements."""
        n_wrong = []
        for i, rule in enumerate(self.rules):
            rule_sample = sample.take(assigned == i)
            n_wrong.append(
                int((~self._target(rule).agrees(rule_sample.predictions, rule_sample.points)).sum())
            )
        order = np.argsort(-np.array(n_wrong), kind="stable")[:_N_RULES]
        return [i for i in order.tolist() if n_wrong[i] > 0]

    def _proposals(self, i: int, sample: _Sample) -> Iterator[list[Condition]]:
        """Yield lists of additional conditions for exceptions to a rule, on columns of the rows."""
        trusted = self._trusted.get(id(self.rules[i]))
        if trusted is not None:
            for condition in trusted.conditions:
                for outside in complements(condition, self.codes):
                    yield [outside]
        points = sample.points
        target = self._target(self.rules[i])
        labels: Any = sample.predictions
        ranks, orders = self._ranked(points, ~target.agrees(labels, points))
        tree_type = DecisionTreeClassifier
        if self.tolerance is not None:
            labels = labels.astype(float) - target.outputs(points)
            ranks, labels = ranks[~np.isnan(labels)], labels[~np.isnan(labels)]
            tree_type = DecisionTreeRegressor
        for max_leaves in _MAX_LEAVES:
            min_rows = max(1, int(_MIN_SHARE * len(points)))
            tree = tree_type(
                max_leaf_nodes=max_leaves, min_samples_leaf=min_rows, random_state=0
            ).fit(ranks, labels)
            for leaf in as_ruleset(tree, missing=True, simplify=False).rules:
                conditions = [
                    _in_categories(_rounded(condition, self.codes), orders, self.codes)
                    for condition in leaf.conditions
                ]
                if conditions and None not in conditions:
                    yield [condition for condition in conditions if condition is not None]

    def _ranked(
        self, points: np.ndarray, wrong: np.ndarray
    ) -> tuple[np.ndarray, dict[int, list[float]]]:
        """Replace codes of categories with ranks by their share of disagreements."""
        ranks, orders = points.copy(), {}
        for j, values in self.codes.categories.items():
            codes = [float(code) for code in range(len(values))]
            shares = [float(wrong[points[:, j] == code].sum()) for code in codes]
            sizes = [max(int((points[:, j] == code).sum()), 1) for code in codes]
            order = sorted(codes, key=lambda code: shares[int(code)] / sizes[int(code)])
            orders[j] = order
            rank_of = np.empty(len(codes))
            rank_of[np.array(order, dtype=np.intp)] = np.arange(len(codes))
            is_observed = ~np.isnan(points[:, j])
            ranks[is_observed, j] = rank_of[points[is_observed, j].astype(np.intp)]
        return ranks, orders

    def _exception(
        self, i: int, conditions: list[Condition], sample: _Sample
    ) -> tuple[int, Rule] | None:
        """Return an exception with its gain on generated rows; None if it is not useful."""
        rule = self.rules[i]
        feature_of = {column: feature for feature, column in enumerate(self.columns)}
        if any(condition.features[0] not in feature_of for condition in conditions):
            return None
        own_conditions = [_with_feature(c, feature_of[c.features[0]]) for c in conditions]
        try:
            exception = Rule((*rule.conditions, *own_conditions), rule.output)
        except ValueError:  # the conditions contradict the rule
            return None
        is_covered = self._covered(exception, sample)
        if is_covered.sum() < max(1, _MIN_SHARE * len(is_covered)):
            return None
        output = self._new_output(rule, sample.take(is_covered))
        classes = self.ruleset.classes
        is_unknown = classes is not None and output not in classes
        if is_unknown or output == rule.output:
            return None
        exception = replace(exception, output=output)
        n_fixed, n_broken = self._changes(i, exception, sample)
        return n_fixed - n_broken, exception

    def _new_output(self, rule: Rule, sample: _Sample) -> Any:
        """Return the most frequent class, or the rule's output shifted to agree with most rows."""
        if self.tolerance is None:
            values, counts = np.unique(sample.predictions, return_counts=True)
            return python_value(values[counts.argmax()])
        residuals = sample.predictions.astype(float) - self._target(rule).outputs(sample.points)
        shift = densest_center(residuals, self.tolerance)
        if isinstance(rule.output, LinearOutput):
            return replace(rule.output, intercept=rule.output.intercept + shift)
        return float(rule.output) + shift

    def _covered(self, rule: Rule, sample: _Sample) -> np.ndarray:
        return self.ruleset.replace(rules=[rule], fallback=None).covers(sample.rows)

    def _changes(self, i: int, exception: Rule, sample: _Sample) -> tuple[int, int]:
        """Return the numbers of disagreements that an exception removes and adds."""
        covered = sample.take(self._covered(exception, sample))
        before = self._target(self.rules[i]).agrees(covered.predictions, covered.points)
        after = self._target(exception).agrees(covered.predictions, covered.points)
        return int((after & ~before).sum()), int((before & ~after).sum())


def draw_near(codes: RowCodes, radius: float, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw random points in the neighborhoods of rows.

    Parameters
    ----------
    codes : RowCodes
        The rows.
    radius : float
        Radius of the neighborhoods, in standard deviations.
    n_rows : int
        Number of points.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        The points, with codes and NaN.
    """
    domain = Domain.around(codes.matrix, categories=codes.categories)
    grid = CellGrid(codes, domain, [np.empty(0)] * codes.n_features)
    neighborhoods = Neighborhoods.around(grid, radius)
    rows = rng.integers(0, len(neighborhoods), n_rows)
    return neighborhoods.draw(grid.whole_space(), 0, rows, rng)


@dataclass(frozen=True, eq=False)
class WitnessSampling:
    """Generator of query rows near the data, including rows where rules and model disagree.

    Pass it as `sampling` to an extractor, to add query rows to its training rows. The rules of an
    earlier extraction and the model disagree on some of these query rows, at most on the share
    `share`. The other query rows are drawn near the data, because rows of disagreement alone would
    distort the class distribution.

    Parameters
    ----------
    verification : Verification
        Result of :func:`verify` for the earlier rules.
    black_box : estimator
        The fitted model.
    share : float, default=0.1
        Largest share of query rows on which rules and model disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.verification import WitnessSampling, verify
    >>> X = np.linspace(0, 10, 11)[:, None]
    >>> model = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    >>> extractor = CARTExtractor(FrozenEstimator(model), random_state=0)
    >>> result = verify(extractor.fit(X).rules_, model, X, radius=0.5)
    >>> sampling = WitnessSampling(result, model)
    >>> sampling(X, 1000, 0).shape
    (1000, 1)
    """

    verification: Verification
    black_box: Any
    share: float = 0.1

    def __post_init__(self) -> None:
        check_instance("verification", self.verification, Verification)
        check_number("share", self.share, 0.0, 1.0)

    def __deepcopy__(self, memo: Any) -> WitnessSampling:
        """Return the object itself, so that clones of an extractor share the model."""
        return self

    def __call__(self, X: Any, n_rows: int, random_state: Any) -> Any:
        """Return query rows, in the container of X."""
        rules, rng = self.verification.ruleset, child_generator(random_state, 0)
        code_columns = [
            j for j, column in enumerate(self.verification.domain) if column["kind"] == "category"
        ]
        codes = RowCodes(X, code_columns, rules.feature_names)
        queries = PointQueries(rules, self.black_box, codes)
        points = draw_near(codes, self.verification.radius, _N_DRAWN_PER_ROW * n_rows, rng)
        assigned, outputs = queries.apply_rules(points)
        predictions = queries.predict(points)
        if self.verification.tolerance is None:
            disagrees = predictions != outputs
        else:
            disagrees = ~(np.abs(predictions - outputs) <= self.verification.tolerance)
        is_predicted = (assigned >= 0) | (rules.fallback is not None)
        wrong = points[disagrees & is_predicted][: int(self.share * n_rows)]
        return codes.decode(np.concatenate([points[: n_rows - len(wrong)], wrong]))


def densest_center(values: np.ndarray, half_width: float) -> float:
    """Return the center of an interval of given width that contains the most values.

    Parameters
    ----------
    values : ndarray of float
        The values, at least one; NaN are not counted.
    half_width : float
        Half the width of the interval.

    Returns
    -------
    float
        The midpoint of the smallest and the largest value in the interval; 0 if all are NaN.
    """
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return 0.0
    stops = np.searchsorted(values, values + 2 * half_width, side="right")
    first = int((stops - np.arange(len(values))).argmax())
    return float(values[first] + values[stops[first] - 1]) / 2


def complements(condition: Condition, codes: RowCodes) -> list[Condition]:
    """Return conditions that accept the values that a condition rejects, one for each side.

    Parameters
    ----------
    condition : Condition
        An interval, listed values or a missing value of a column.
    codes : RowCodes
        Values of categorical columns.

    Returns
    -------
    list of Condition
        The conditions. They accept missing values if the column has any that `condition` rejects.
    """
    j = condition.features[0]
    has_missing = bool(np.isnan(codes.matrix[:, j]).any())
    if isinstance(condition, Interval):
        missing = has_missing and not condition.missing
        result: list[Condition] = []
        if np.isfinite(condition.lower):
            bound, is_closed = condition.lower, not condition.lower_closed
            result.append(Interval(j, upper=bound, upper_closed=is_closed, missing=missing))
        if np.isfinite(condition.upper):
            bound, is_closed = condition.upper, not condition.upper_closed
            result.append(Interval(j, lower=bound, lower_closed=is_closed, missing=missing))
        return result
    if isinstance(condition, OneOf):
        missing = has_missing and not condition.missing
        other_values = [
            v for v in codes.categories[j] if (v in condition.values) == condition.negated
        ]
        if other_values:
            return [OneOf(j, tuple(other_values), missing=missing)]
        return [Missing(j)] if missing else []
    if isinstance(condition, Missing):
        return [replace(condition, negated=not condition.negated)]
    return []


def _rounded(condition: Condition, codes: RowCodes) -> Condition:
    """Round the bounds of an interval of numbers to a thousandth of the column's range."""
    j = condition.features[0]
    if not isinstance(condition, Interval) or j in codes.categories:
        return condition
    precision = 1e-3 * float(codes.upper[j] - codes.lower[j])
    n_digits = -math.floor(math.log10(precision)) if precision > 0 else 0
    lower, upper = round(condition.lower, n_digits), round(condition.upper, n_digits)
    return replace(condition, lower=lower, upper=upper) if lower < upper else condition


def _in_categories(
    condition: Condition, orders: Mapping[int, Sequence[float]], codes: RowCodes
) -> Condition | None:
    """Convert a condition on ranks to a condition on categories; None if this is impossible."""
    j = condition.features[0]
    if j not in orders or isinstance(condition, Missing):
        return condition
    if not isinstance(condition, Interval):
        return None
    accepted = [
        codes.categories[j][int(code)]
        for rank, code in enumerate(orders[j])
        if condition.lower < rank <= condition.upper
    ]
    if not accepted:
        return Missing(j) if condition.missing else None
    return OneOf(j, tuple(accepted), missing=condition.missing)


def _with_feature(condition: Any, feature: int) -> Condition:
    result: Condition = replace(condition, feature=feature)
    return result
