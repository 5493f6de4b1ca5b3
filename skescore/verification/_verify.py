"""Verification of rules against a model over a whole domain."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._random import child_generator
from skescore._validation import check_instance, check_number, python_value
from skescore.black_boxes import fit_black_box, is_fitted, type_name
from skescore.rules import Domain, Interval, LinearOutput, Missing, OneOf, Rule, RuleSet
from skescore.verification._branch import (
    AGREES,
    DISAGREES,
    UNKNOWN,
    BranchAndBound,
    Node,
    Partition,
    Target,
    bound_gap,
    nearest_point,
    partition_region,
)
from skescore.verification._clock import Deadline
from skescore.verification._ensemble import LeafEnsemble, ReadModel, leaf_ensemble, read_model
from skescore.verification._grid import CellBoxes, CellGrid, UnreadableModelError, cuts_of
from skescore.verification._intervals import (
    PointSampler,
    SamplingPlan,
    ShareInterval,
    covers_fallback,
    pooled_interval,
    share_interval,
)
from skescore.verification._limits import VerificationLimits
from skescore.verification._measures import RADIUS, Neighborhoods
from skescore.verification._picture import DisagreementMap, draw_map
from skescore.verification._queries import PointQueries
from skescore.verification._regions import (
    RuleRegion,
    flat_conditions,
    premise_boxes,
    rule_regions,
)
from skescore.verification._result import (
    OutputRange,
    ProvenShares,
    RuleVerification,
    TrustedPart,
    Verification,
)
from skescore.verification._rows import RowCodes, column_positions
from skescore.verification._trusted import clip, trusted_box
from skescore.verification._witness import Witness, WitnessSearch

#: Number of stored points of disagreement per rule, and of points with probabilities.
_N_STORED, _N_PROBABILITIES = 2000, 1000
#: Factors of the radius with which a search for witnesses continues.
_WIDER = (5.0, 25.0)
#: Shares of the remaining time of a rule for each step; the last step may use the rest.
_PARTITION_TIME, _GAP_TIME, _SAMPLING_TIME = 0.15, 0.1, 0.45


def verify(
    rules: RuleSet,
    black_box: Any,
    X: Any,
    y: Any = None,
    *,
    tolerance: float | None = None,
    radius: float = RADIUS,
    confidence: float = 1 - 1e-6,
    limits: VerificationLimits | None = None,
    random_state: Any = 0,
) -> Verification:
    """Compare rules with a model over the whole domain and near the data.

    For every rule, the share of its region in which the model has another prediction is bounded
    from both sides. The function also searches for the row of disagreement closest to the data, and
    for a part of the rule in which agreement is proven.

    Parameters
    ----------
    rules : RuleSet
        Rules that do not vote; one rule predicts each row. In a list, the region of a rule is its
        premise without the premises of earlier rules.
    black_box : estimator
        Model to compare with; if it is not fitted, a clone is fitted on X and y. Trees, forests and
        boosted trees of scikit-learn, XGBoost, LightGBM and CatBoost are read exactly; other models
        are sampled.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that the model accepts, with the columns of the rules.
    y : array-like, optional
        Target, for a model that is not fitted.
    tolerance : float, optional
        Regression: largest deviation that counts as agreement. By default half the standard
        deviation of the model's predictions for X.
    radius : float, default=0.1
        Radius of the neighborhood of a row, in standard deviations of each column.
    confidence : float, default=1 - 1e-6
        Confidence of each sampled interval.
    limits : VerificationLimits, optional
        Required widths, and limits of time and work; by default 60 seconds.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the samples.

    Returns
    -------
    Verification
        The result.

    Raises
    ------
    ValueError
        If the rules vote, have oblique conditions or a nearest-rule fallback, if X lacks columns,
        or if `tolerance` is set for classification.

    Notes
    -----
    A row near the data is one of the rows, in which each number is replaced by a uniform value
    within the radius and the observed range. Integers remain integers, and categories and missing
    values do not change. Volumes are parts of the rules' domain, with a weight for missing values;
    integers have the counting measure. A result is reproducible with the same `random_state` unless
    it is limited by time.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.verification import verify
    >>> X = np.linspace(0, 10, 41)[:, None]
    >>> model = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=5)], False), Rule([], True)],
    ...     ["x"],
    ...     task="classification",
    ... )
    >>> result = verify(rules, model, X)
    >>> print(result.rules[0].volume_disagreement)
    exactly 17.5 %
    >>> result.rules[0].witness.row
    {'x': 4.25}
    >>> print(result.rules[1].volume_disagreement)
    exactly 0 %
    """
    start = time.monotonic()
    check_instance("rules", rules, RuleSet)
    rules.check_one_rule_per_row("verify")
    if rules.fallback is not None and rules.fallback.policy == "nearest":
        raise ValueError(
            "verify requires rules whose fallback has the policy 'default' or 'abstain', got "
            "'nearest'. Replace the fallback: rules.replace(fallback=None)."
        )
    radius = check_number("radius", radius, 0.0, finite=True)
    confidence = _checked_confidence(confidence)
    limits = limits or VerificationLimits()
    check_instance("limits", limits, VerificationLimits)
    deadline = Deadline.after(limits.time_limit, limits.clock)
    if not is_fitted(black_box):
        black_box = fit_black_box(black_box, X, y)
    problem = _Problem.of(rules, black_box, X, radius)
    if rules.task == "regression":
        tolerance = _tolerance(tolerance, problem)
    elif tolerance is not None:
        raise ValueError("tolerance is for regressions; omit it for rules of classes.")
    verifier = _Verifier(problem, tolerance, confidence, limits, deadline)
    results = [verifier.verify_rule(k, random_state) for k in range(len(problem.regions))]
    results.sort(key=lambda result: (result.index < 0, result.index))
    return _overall(problem, results, verifier, time.monotonic() - start)


def _checked_confidence(confidence: Any) -> float:
    value = check_number("confidence", confidence, finite=True)
    if not 0 < value < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    return value


def _tolerance(tolerance: float | None, problem: _Problem) -> float:
    """Return the largest deviation that counts as agreement."""
    if tolerance is None:
        std = float(problem.predictions.astype(float).std())
        return 0.5 * std if std > 0 else 1e-9
    return check_number("tolerance", tolerance, 0.0, finite=True)


def _overall(
    problem: _Problem, results: list[RuleVerification], verifier: _Verifier, seconds: float
) -> Verification:
    """Combine the results of all rules."""
    confidence = verifier.confidence
    return Verification(
        ruleset=problem.rules,
        rules=tuple(results),
        volume_disagreement=pooled_interval(
            [result.volume_disagreement for result in results],
            [result.volume for result in results],
            confidence,
        ),
        near_disagreement=pooled_interval(
            [result.near_disagreement for result in results],
            [result.near_rows for result in results],
            confidence,
        ),
        model=type_name(problem.queries.black_box).rpartition(".")[2],
        engine="sampling" if problem.ensemble is None else "leaf boxes",
        reason=problem.reason,
        radius=problem.radius,
        tolerance=verifier.tolerance,
        confidence=confidence,
        domain=describe_domain(problem.grid),
        n_queries=problem.queries.n_queries,
        seconds=seconds,
        picture=verifier.picture,
    )


def describe_domain(grid: CellGrid) -> list[dict[str, Any]]:
    """Return the columns of the domain as JSON values."""
    columns = []
    for j, name in enumerate(grid.codes.names):
        column: dict[str, Any] = {"name": name, "missing": float(grid.missing_share[j])}
        if grid.is_category[j]:
            values = [python_value(value) for value in grid.codes.categories[j]]
            column |= {"kind": "category", "values": values}
        else:
            kind = "integer" if grid.codes.is_whole[j] else "number"
            lower, upper = float(grid.domain_lower[j]), float(grid.domain_upper[j])
            column |= {"kind": kind, "lower": lower, "upper": upper}
        columns.append(column)
    return columns


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rules and model in the same cells.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    columns : list of int
        Column of each feature of the rules.
    grid : CellGrid
        The cells.
    regions : list of RuleRegion
        Regions in the order of priority, and one for the fallback if it predicts.
    order : list of int
        Index of the rule of each region, -1 for the fallback.
    ensemble : LeafEnsemble or None
        The model; None if it cannot be read.
    reason : str
        Reason why it cannot be read, or an empty string.
    queries : PointQueries
        Queries of rules and model by their predict methods.
    radius : float
        Radius of neighborhoods.
    predictions, assigned : ndarray
        Predictions of the model, and deciding rules, for the rows.
    """

    rules: RuleSet
    columns: list[int]
    grid: CellGrid
    regions: list[RuleRegion]
    order: list[int]
    ensemble: LeafEnsemble | None
    reason: str
    queries: PointQueries
    radius: float
    predictions: np.ndarray
    assigned: np.ndarray

    @classmethod
    def of(cls, rules: RuleSet, black_box: Any, X: Any, radius: float) -> _Problem:
        """Read rules and model."""
        row_codes = RowCodes(X, names=rules.feature_names)
        columns = column_positions(rules.feature_names, row_codes.names)
        read, reason = _read(black_box, row_codes)
        parts = [(rules, columns)] + ([(read.ruleset, read.columns)] if read else [])
        conditions = [
            (condition, part_columns)
            for ruleset, part_columns in parts
            for rule in ruleset.rules
            for condition in flat_conditions(rule.conditions)
        ]
        code_columns = {
            part_columns[condition.feature]
            for condition, part_columns in conditions
            if isinstance(condition, OneOf)
        }
        codes = (
            RowCodes(X, code_columns, rules.feature_names)
            if code_columns - row_codes.categories.keys()
            else row_codes
        )
        cuts = [
            cuts_of(
                [c for rule in ruleset.rules for c in flat_conditions(rule.conditions)],
                part_columns,
                codes.n_features,
            )
            for ruleset, part_columns in parts
        ]
        grid = CellGrid(
            codes,
            rows_domain(rules, columns, codes),
            [np.unique(np.concatenate(column)) for column in zip(*cuts, strict=True)],
        )
        ensemble = None
        if read is not None:
            try:
                ensemble = leaf_ensemble(read, grid)
            except UnreadableModelError as error:
                reason = str(error)
        order = rules.assignment_order.tolist()
        premises = [premise_boxes(grid, rules.rules[i], columns) for i in order]
        regions = rule_regions(grid, premises, covers_fallback(rules))
        if covers_fallback(rules):
            # A list without uncovered rows needs no fallback.
            order = [*order, -1] if len(regions[-1].boxes) else order
        queries = PointQueries(rules, black_box, codes)
        return cls(
            rules,
            columns,
            grid,
            regions[: len(order)],
            order,
            ensemble,
            reason,
            queries,
            radius,
            queries.predict(codes.matrix),
            rules.assign(codes.rows),
        )

    def output(self, index: int) -> Any:
        """Return the prediction of a rule, or of the fallback for -1."""
        if index >= 0:
            return self.rules.rules[index].output
        assert self.rules.fallback is not None
        return self.rules.fallback.output


def _read(black_box: Any, codes: RowCodes) -> tuple[ReadModel | None, str]:
    """Read a model; return None and the reason if that is not possible."""
    try:
        return read_model(black_box, codes.rows, codes.names), ""
    except UnreadableModelError as error:
        return None, str(error)


def rows_domain(rules: RuleSet, columns: Sequence[int], codes: RowCodes) -> Domain:
    """Return the domain of the rules, on the columns of the rows.

    Parameters
    ----------
    rules : RuleSet
        The rules, with or without a domain.
    columns : sequence of int
        Column of each feature of the rules.
    codes : RowCodes
        The rows.

    Returns
    -------
    Domain
        Domain of the rules; the range of the rows for other columns.
    """
    extent = Domain.around(codes.matrix, categories=codes.categories)
    if rules.domain is None:
        return extent
    lower, upper, missing = list(extent.lower), list(extent.upper), list(extent.missing)
    for feature, j in enumerate(columns):
        missing[j] = rules.domain.missing[feature]
        if j not in codes.categories and rules.domain.values_of(feature) is None:
            lower[j], upper[j] = rules.domain.lower[feature], rules.domain.upper[feature]
    return replace(extent, lower=tuple(lower), upper=tuple(upper), missing=tuple(missing))


class _Verifier:
    """Verification of the rules of a problem one by one."""

    def __init__(
        self,
        problem: _Problem,
        tolerance: float | None,
        confidence: float,
        limits: VerificationLimits,
        deadline: Deadline,
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.confidence = confidence
        self.limits = limits
        self.deadline = deadline
        self.neighborhoods = Neighborhoods.around(problem.grid, problem.radius)
        self.witnesses = WitnessSearch(problem.queries, problem.grid)
        self.picture: DisagreementMap | None = None
        self._pictured_mass = 0.0

    def verify_rule(self, k: int, random_state: Any) -> RuleVerification:
        """Verify the rule with the k-th priority."""
        problem = self.problem
        end = self.deadline.part(1 / (len(problem.regions) - k))
        index = problem.order[k]
        target, search = self._target(index)
        task = _RuleTask(self, k, target, search, child_generator(random_state, k))
        task.divide(end.part(_PARTITION_TIME))
        task.bound(end.part(_GAP_TIME))
        volume, near = task.intervals(end.part(_SAMPLING_TIME))
        witness, worst = task.find_witnesses()
        near_rows = task.total(task.partition.near)
        if task.worst_point is not None and near_rows * near.lower > self._pictured_mass:
            self._pictured_mass = near_rows * near.lower
            self.picture = draw_map(problem.grid, problem.queries, target, index, task.worst_point)
        trusted = task.trusted_part(end)
        return RuleVerification(
            index=index,
            output=problem.output(index),
            n_rows=int((problem.assigned == index).sum()),
            volume=task.total(task.partition.volume),
            near_rows=near_rows,
            volume_disagreement=volume,
            near_disagreement=near,
            volume_proven=task.proven(task.partition.volume),
            near_proven=task.proven(task.partition.near),
            witness=witness,
            worst=worst,
            trusted=trusted,
            output_range=task.output_range(),
            max_deviation=task.max_deviation(),
        )

    def _target(self, index: int) -> tuple[Target, BranchAndBound | None]:
        """Return the statement to prove about a rule, and the search if the model was read."""
        problem = self.problem
        output = problem.output(index)
        columns = problem.columns
        if problem.ensemble is None:
            return Target(np.empty((0, 1)), output, self.tolerance, columns=columns), None
        target = Target.of_rule(problem.ensemble, output, self.tolerance, columns)
        search = BranchAndBound(
            problem.grid, problem.ensemble, target, problem.queries.predict, self.neighborhoods
        )
        return target, search


class _RuleTask:
    """Verification of one rule: proofs, intervals, witnesses and the trusted part."""

    def __init__(
        self,
        verifier: _Verifier,
        k: int,
        target: Target,
        search: BranchAndBound | None,
        rng: np.random.Generator,
    ) -> None:
        self.verifier = verifier
        self.problem = verifier.problem
        self.index = self.problem.order[k]
        self.region = self.problem.regions[k]
        self.target = target
        self.search = search
        self.rng = rng
        self.partition = Partition([], 0)
        self.worst_boxes: Partition | None = None
        self.worst_point: np.ndarray | None = None
        rows = self.problem.queries.codes.matrix
        self.is_own = self.problem.assigned == self.index
        agrees = target.agrees(self.problem.predictions, rows)
        self.agreeing_rows = rows[self.is_own & agrees]
        self.wrong_rows = rows[self.is_own & ~agrees]
        self._wrong_points: list[np.ndarray] = []
        self._outputs: list[tuple[float, float]] = []

    def divide(self, deadline: Deadline) -> None:
        """Divide the region into boxes by what can be proven."""
        if self.search is not None:
            self.partition = partition_region(
                self.search,
                self.region.boxes,
                max_splits=self.verifier.limits.max_splits,
                deadline=deadline,
            )
            return
        boxes, grid = self.region.boxes, self.problem.grid
        volumes = grid.volumes(boxes)
        nodes = []
        for i in range(len(boxes)):
            masses = self.verifier.neighborhoods.masses(boxes, i)
            rows = np.flatnonzero(masses > 0)
            empty = np.empty(0)
            node = Node(boxes.take([i]), empty, float(volumes[i]), rows, masses[rows])
            if node.volume > 0 or len(rows):
                nodes.append(node)
        self.partition = Partition(nodes, 0)

    def bound(self, deadline: Deadline) -> None:
        """Bound the largest deviation, or the smallest probability of the rule's class."""
        if self.search is not None and len(self.region.boxes):
            self.worst_boxes = bound_gap(
                self.search,
                self.region.boxes,
                max_splits=self.verifier.limits.max_splits,
                deadline=deadline,
            )

    def total(self, measure: Any) -> float:
        """Return the measure of the region."""
        return float(sum(measure(status) for status in (AGREES, DISAGREES, UNKNOWN)))

    def proven(self, measure: Any) -> ProvenShares | None:
        """Return the proven shares of the region; None without mass."""
        total = self.total(measure)
        if not total:
            return None
        agreeing, disagreeing = measure(AGREES) / total, measure(DISAGREES) / total
        return ProvenShares(agreeing, disagreeing, measure(UNKNOWN) / total)

    def intervals(self, deadline: Deadline) -> tuple[ShareInterval, ShareInterval]:
        """Return the intervals of disagreement by volume and near the data."""
        limits, n_regions = self.verifier.limits, len(self.problem.regions)
        # The error probabilities of all rules sum to at most the error probability of the list.
        confidence = 1 - (1 - self.verifier.confidence) / n_regions
        nodes = self.partition.select(UNKNOWN)
        results = []
        for width, neighborhoods in (
            (limits.volume_width, None),
            (limits.near_width, self.verifier.neighborhoods),
        ):
            plan = SamplingPlan(width, confidence, limits.max_samples, deadline)
            sampler = PointSampler(self.problem.grid, nodes, neighborhoods)
            results.append(share_interval(self.partition, sampler, self._disagrees, plan, self.rng))
        volume, near = results
        return volume, near

    def _disagrees(self, points: np.ndarray) -> np.ndarray:
        """Query the model; store some points of disagreement and the range of outputs."""
        predictions = self.problem.queries.predict(points)
        wrong = ~self.target.agrees(predictions, points)
        if sum(map(len, self._wrong_points)) < _N_STORED:
            self._wrong_points.append(points[wrong][:_N_STORED])
        if self.target.tolerance is not None and len(predictions):
            numbers = predictions.astype(float)
            self._outputs.append((float(numbers.min()), float(numbers.max())))
        return np.asarray(wrong)

    def _points_of_boxes(self) -> np.ndarray:
        """Return points of boxes with proven disagreement and of the worst boxes."""
        nodes = self.partition.select(DISAGREES)[:200]
        if self.worst_boxes is not None:
            nodes += self.worst_boxes.nodes[:50]
        rows = self.problem.queries.codes.matrix
        points = [
            nearest_point(
                self.problem.grid, node.box, 0, rows[node.rows[0]] if len(node.rows) else None
            )
            for node in nodes
        ]
        return np.array(points).reshape(len(points), rows.shape[1])

    def find_witnesses(self) -> tuple[Witness | None, Witness | None]:
        """Return the nearest and the worst disagreement that can be found."""
        candidates = [self.wrong_rows, *self._wrong_points]
        box_points = self._points_of_boxes()
        candidates.append(
            box_points[self.verifier.witnesses.disagrees(box_points, self.target, self.index)]
        )
        points = np.concatenate(candidates)
        for factor in _WIDER:
            if len(points):
                break
            points = self._wrong_points_within(factor * self.problem.radius)
        if not len(points):
            return None, None
        search = self.verifier.witnesses
        nearest = search.nearest(points, self.target, self.index)
        if nearest is None:
            return None, None
        points = points[search.disagrees(points, self.target, self.index)]
        worst = search.most_confident(points, self.target)
        self.worst_point = nearest if worst is None else worst
        return search.describe(nearest), None if worst is None else search.describe(worst)

    def _wrong_points_within(self, radius: float) -> np.ndarray:
        """Return points of disagreement in larger neighborhoods of the rows."""
        neighborhoods = Neighborhoods.around(self.problem.grid, radius)
        own_rows = np.flatnonzero(self.is_own)
        nodes = []
        for i in range(len(self.region.boxes)):
            masses = neighborhoods.masses(self.region.boxes, i, own_rows)
            box, is_used = self.region.boxes.take([i]), masses > 0
            if is_used.any():
                nodes.append(Node(box, np.empty(0), 0.0, own_rows[is_used], masses[is_used]))
        if not nodes:
            return np.empty((0, self.problem.grid.n_features))
        sampler = PointSampler(self.problem.grid, nodes, neighborhoods)
        points = sampler.draw(_N_STORED, self.rng)
        return points[self._disagrees(points)]

    def trusted_part(self, deadline: Deadline) -> TrustedPart | None:
        """Return the largest part with proven agreement that the search finds, or None."""
        if self.search is None or not len(self.region.boxes):
            return None
        grid = self.problem.grid
        n_features = grid.n_features
        counterexamples = np.concatenate(
            [np.empty((0, n_features)), self.wrong_rows, *self._wrong_points]
        )
        search = BranchAndBound(
            grid, self.search.ensemble, self.target, self.problem.queries.predict
        )
        box = trusted_box(
            search,
            self.region,
            self.agreeing_rows,
            counterexamples,
            deadline=deadline,
            max_steps=self.verifier.limits.max_splits * 10,
        )
        if box is None:
            return None
        n_rows = int(grid.contains(box, 0, self.agreeing_rows).sum())
        parts = [
            clip(grid, self.region.boxes.take([i]), box) for i in range(len(self.region.boxes))
        ]
        volumes = grid.volumes(CellBoxes.concatenate(parts))
        volume = float(grid.volumes(self.region.boxes).sum())
        return TrustedPart(
            self._sub_rule(box),
            tuple(grid.codes.names),
            n_rows,
            n_rows / max(int(self.is_own.sum()), 1),
            float(volumes.sum()) / volume if volume else 0.0,
        )

    def _sub_rule(self, box: CellBoxes) -> Rule:
        """Return the rule with the conditions of a box, on the columns of the rows."""
        conditions: list[Any] = []
        for j in range(self.problem.grid.n_features):
            condition = box_condition(self.problem.grid, j, box)
            if condition is not None:
                conditions.append(condition)
        output = self.problem.output(self.index)
        if isinstance(output, LinearOutput):
            terms = [(self.problem.columns[feature], value) for feature, value in output.terms]
            output = LinearOutput(output.intercept, tuple(terms))
        return Rule(tuple(conditions), output)

    def output_range(self) -> OutputRange:
        """Return the range of the probability of the rule's class, or of the predicted number."""
        if self.target.tolerance is not None:
            own_predictions = self.problem.predictions[self.is_own].astype(float)
            ranges = (
                [(float(own_predictions.min()), float(own_predictions.max()))]
                if len(own_predictions)
                else []
            )
            ranges += self._outputs
            observed_bounds = (
                (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else ()
            )
        else:
            observed_bounds = self._observed_probabilities()
        lower, upper = self._proven_range()
        low, high = observed_bounds or (None, None)
        return OutputRange(lower, upper, low, high)

    def _observed_probabilities(self) -> Any:
        """Return the smallest and largest probability of the rule's class at some points."""
        points = np.concatenate([self.agreeing_rows, self.wrong_rows, *self._wrong_points])[
            :_N_PROBABILITIES
        ]
        if not len(points):
            return ()
        probabilities = self.problem.queries.probabilities(points)
        if probabilities is None or self.target.output not in self.problem.queries.classes:
            return ()
        column = probabilities[:, self.problem.queries.classes.index(self.target.output)]
        return float(column.min()), float(column.max())

    def _proven_range(self) -> tuple[float | None, float | None]:
        """Return proven bounds of the output, from the bounds of all boxes."""
        if self.search is None or self.worst_boxes is None or not self.worst_boxes.nodes:
            return None, None
        ensemble = self.search.ensemble
        if ensemble.classes is not None and self.target.output not in ensemble.classes:
            return None, None  # the scores of a class unknown to the model are not probabilities
        bounds = [
            output_bounds(ensemble, self.target, node.lower, node.upper)
            for node in self.worst_boxes.nodes
        ]
        if any(low is None or high is None for low, high in bounds):
            return None, None
        return min(low for low, _ in bounds), max(high for _, high in bounds)  # type: ignore[type-var]

    def max_deviation(self) -> float | None:
        """Return the proven upper bound of the deviation, or None without a proof."""
        if self.target.tolerance is None or self.worst_boxes is None:
            return None
        gaps = [self.target.gap(node.lower, node.upper) for node in self.worst_boxes.nodes]
        return max(gaps) + self.target.rounding if gaps else None


def output_bounds(
    ensemble: LeafEnsemble, target: Target, lower: np.ndarray, upper: np.ndarray
) -> tuple[float | None, float | None]:
    """Return bounds of the probability of the rule's class, or of the predicted number.

    Parameters
    ----------
    ensemble : LeafEnsemble
        The model.
    target : Target
        Output of the rule.
    lower, upper : ndarray of shape (n_contrasts,)
        Bounds of the scores in a box; in regression, of the difference of model and rule.

    Returns
    -------
    tuple of float or None
        The bounds; None if the scores are not probabilities, or the rule is linear.
    """
    error = target.rounding
    if target.is_linear:
        return None, None
    if target.tolerance is not None:
        error += 1e-12 * abs(target.output)
        return float(lower[0]) + target.output - error, float(upper[0]) + target.output + error
    if ensemble.link == "logistic":
        with np.errstate(over="ignore"):
            low = 1 / (1 + np.exp(-(lower - error)).sum())
            high = 1 / (1 + np.exp(-(upper + error)).sum())
        return float(low), float(high)
    if ensemble.link == "probabilities" and not ensemble.may_skip.any():
        n_classes = len(lower) + 1
        total = float(ensemble.values[ensemble.tree_starts].sum())
        low = (1 + (lower - error).sum() / total) / n_classes
        high = (1 + (upper + error).sum() / total) / n_classes
        return max(float(low), 0.0), min(float(high), 1.0)
    return None, None


def box_condition(grid: CellGrid, j: int, box: CellBoxes) -> Interval | OneOf | Missing | None:
    """Return the condition of a box on a column; None if the box includes the whole column.

    Parameters
    ----------
    grid : CellGrid
        The grid of cells.
    j : int
        Index of the column.
    box : CellBoxes
        A single box of cells.

    Returns
    -------
    Interval, OneOf, Missing or None
        The condition.
    """
    if grid.is_category[j]:
        bits = grid.unpack(j, box.words[0])
        has_missing = bool(bits[-1])
        values = [v for v, bit in zip(grid.codes.categories[j], bits[:-1], strict=True) if bit]
        if len(values) == len(bits) - 1 and (has_missing or not grid.has_missing[j]):
            return None
        if not values:
            return Missing(j)
        return OneOf(j, tuple(values), missing=has_missing)
    low, high = int(box.low[0, j]), int(box.high[0, j])
    has_missing = bool(box.missing[0, j])
    if low >= high:
        return Missing(j)
    n_intervals = len(grid.starts[j])
    if (low, high) == (0, n_intervals):
        return Missing(j, negated=True) if grid.has_missing[j] and not has_missing else None
    start, stop = grid.bounds(j, box, 0)
    lower = start if low > 0 else -math.inf
    upper = math.inf
    if high < n_intervals:
        # Beyond 2^53, subtracting 1 does not change a number.
        upper = math.nextafter(stop, -math.inf)
        upper = min(stop - 1, upper) if grid.codes.is_whole[j] else upper
    if not grid.codes.is_whole[j]:
        lower, upper = _inner_bound(grid, j, lower, 1), _inner_bound(grid, j, upper, -1)
    return Interval(j, lower, upper, True, True, missing=has_missing)


def _inner_bound(grid: CellGrid, j: int, bound: float, direction: int) -> float:
    """Return a bound with few digits, moved inwards by less than a millionth of the range.

    No row of the data lies between the bound and the result.
    """
    if math.isinf(bound):
        return bound
    max_shift = 1e-6 * float(grid.upper[j] - grid.lower[j])
    values = direction * grid.codes.matrix[:, j]
    size = math.floor(math.log10(max_shift)) if max_shift > 0 else 0
    for n_digits in range(-size - 2, -size + 8):
        result = round(bound, n_digits)
        if direction * result < direction * bound:
            result = round(result + direction * 10.0**-n_digits, n_digits)
        low, high = direction * bound, direction * result
        is_crossed = ((values >= low) & (values < high)).any()
        if low <= high <= low + max_shift and not is_crossed:
            return result
    return bound
