"""Prices of constraints: proven bounds on the score that rules lose by satisfying them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    finite_numbers,
    label_order,
    one_dimension,
    python_value,
    whole_labels,
)
from skescore.certificates import Certificate, certify, measure_incumbent
from skescore.constraints import Constraints, Cutoffs, violations
from skescore.editing._constrained_trees import ConstrainedTrees, TreeRows
from skescore.metrics import PREDICTION_METRICS
from skescore.optimal import KINDS, Cuts, F1Bound, Frontier, SearchSpace, SolverLimits
from skescore.rules import RowTable, Rule, RuleSet, convert_rows
from skescore.scorers import SCORE_SPECS

#: Constraints that restrict the search space, so that solvers respect them.
_OF_SPACE = ("forbidden", "thresholds", "together", "max_rules")
#: Number of checks of constraints that count as one unit of work.
_CHECKS_PER_WORK = 2000


@dataclass(frozen=True, eq=False)
class Price:
    """Proven interval of the price of constraints for all rules of a kind.

    Parameters
    ----------
    lower, upper : float
        Bounds of the price: the best score of all rules of the kind and size, minus the best score
        of those that satisfy the constraints. `upper` is infinite if no such rules were found.
    unconstrained, constrained : tuple of two float
        Score of the best rules found, and proven bound on it, without and with the constraints.
    rules : RuleSet or None
        Best rules found that satisfy the constraints.
    free_rules : RuleSet or None
        Best rules found without the constraints.
    constraints : Constraints
        The constraints.
    kind : {"tree", "list"}
        Kind of rules.
    max_rules : int
        Largest number of rules.
    score_label : str
        Name of the score.
    reference : str
        Reference of the predictions, such as the labels.
    n_rows : int
        Number of rows.
    """

    lower: float
    upper: float
    unconstrained: tuple[float, float]
    constrained: tuple[float, float]
    rules: RuleSet | None
    free_rules: RuleSet | None
    constraints: Constraints
    kind: str
    max_rules: int
    score_label: str
    reference: str
    n_rows: int

    @property
    def width(self) -> float:
        """Length of the interval; 0 if the price is known exactly."""
        return self.upper - self.lower

    def to_text(self) -> str:
        """Describe the price in a sentence."""
        names = ", ".join(self.constraints.parts())
        space = (
            f"any {self.kind} of at most {self.max_rules} rules, {self.score_label} against "
            f"{self.reference} on {self.n_rows} rows"
        )
        if self.rules is None:
            return f"{names}: no rules that satisfy it were found ({space})."
        if self.width <= 1e-9:
            return f"{names} costs exactly {self.lower:.4f} ({space})."
        return f"{names} costs between {self.lower:.4f} and {self.upper:.4f} ({space})."

    def __str__(self) -> str:
        return self.to_text()


def price(
    constraints: Constraints,
    X: Any,
    y: Any,
    *,
    kind: str = "tree",
    max_rules: int = 4,
    scoring: Any = "ice",
    space: SearchSpace | None = None,
    tolerance: float | None = None,
    limits: SolverLimits | None = None,
    sample_weight: Any = None,
) -> Price:
    """Bound the price of constraints for all rules of a kind and size.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or fitted estimator
        Labels or numbers, or a black box whose predictions the rules should reproduce. Floats are
        the target of a regression unless a classifier predicts them; other values are classes.
    kind : {"tree", "list"}, default="tree"
        Kind of rules.
    max_rules : int, default=4
        Largest number of rules.
    scoring : str or scorer, default="ice"
        Score, see :func:`skescore.certificates.certify`.
    space : SearchSpace, optional
        Cuts and conditions of the rules; by default 8 cuts per feature, plus allowed thresholds
        next to them.
    tolerance : float, optional
        Sufficient width of each bound, see :func:`skescore.certificates.certify`.
    limits : SolverLimits, optional
        Joint limits of all searches; by default 60 seconds.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    Price
        Interval of the price, in units of the score.

    Raises
    ------
    ValueError
        If a parameter is invalid, or the score cannot be bounded.

    Notes
    -----
    Both best scores lie between the score of the best rules found and a proven bound, so the price
    lies between (best found without the constraints) - (bound with them) and (bound without them) -
    (best found with them). Forbidden features, thresholds, categories kept together and numbers of
    rules restrict the search space. For other constraints, trees with up to 4 leaves, each
    with rows of positive weight, are enumerated in the order of their loss until one satisfies
    them. For lists, and if there are too many trees, the interval is wider.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.constraints import Constraints
    >>> from skescore.editing import price
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> wish = Constraints(forbidden=["petal length (cm)", "petal width (cm)"])
    >>> cost = price(wish, X, y, max_rules=3, scoring="fire")
    >>> round(cost.lower, 4), round(cost.upper, 4)
    (0.5188, 0.5188)
    """
    check_instance("constraints", constraints, Constraints)
    check_choice("kind", kind, KINDS)
    check_integer("max_rules", max_rules, 1)
    limits = limits or SolverLimits(time_limit=60.0)
    started = time.monotonic()
    problem = PriceProblem(
        constraints, convert_rows(X), y, kind, max_rules, scoring, tolerance, sample_weight
    )
    free_space, constrained_space = problem.spaces(space or SearchSpace())
    is_same_space = free_space == constrained_space
    n_searches = 1 + (not is_same_space) + bool(problem.further)
    time_limit = limits.time_limit
    share = replace(limits, time_limit=None if time_limit is None else time_limit / n_searches)
    free = problem.certify(free_space, share)
    if is_same_space and not problem.further:
        return problem.without_price(free)
    relaxed = free if is_same_space else problem.certify(constrained_space, share)
    deadline = limits.deadline(started)
    constrained = problem.certify_constrained(constrained_space, relaxed, share, deadline)
    return problem.price(free, constrained)


@dataclass(frozen=True, eq=False)
class _Proof:
    """Certificate in which some sizes may have no rules.

    Parameters
    ----------
    certificate : Certificate
        Certificate of the search.
    is_possible : ndarray of bool, optional
        Mask of the sizes for which rules may exist; by default all.
    has_rules : ndarray of bool, optional
        Mask of the sizes for which rules were found; by default all.
    rules_by_size : tuple of RuleSet or None
        Rules by size; by default, the rules of the certificate.
    """

    certificate: Certificate
    is_possible: np.ndarray | None = None
    has_rules: np.ndarray | None = None
    rules_by_size: tuple[RuleSet | None, ...] = ()

    def _signed_scores(self, kind: str) -> tuple[list[float], list[float]]:
        """Return the scores of the rules found, and the bounds; greater is better."""
        signed = SCORE_SPECS[self.certificate.score].signed
        corridor = self.certificate.corridor(kind)
        incumbents = [float(signed(size.incumbent)) for size in corridor]
        return incumbents, [float(signed(size.bound)) for size in corridor]

    def interval(self, kind: str) -> tuple[float, float]:
        """Return the score of the best rules found and its bound; greater is better."""
        if self.is_possible is None or self.has_rules is None:
            interval = self.certificate.interval(kind)
            signed = SCORE_SPECS[self.certificate.score].signed
            return float(signed(interval.incumbent)), float(signed(interval.bound))
        incumbents, bounds = self._signed_scores(kind)
        best = max([-math.inf, *np.array(incumbents)[self.has_rules]])
        return float(best), float(max([best, *np.array(bounds)[self.is_possible]]))

    def rules(self, kind: str) -> RuleSet | None:
        """Return the rules with the best score; None if no rules were found."""
        if self.has_rules is None:
            return self.certificate.best_rules(kind)
        incumbents, _ = self._signed_scores(kind)
        best = int(np.argmax(np.where(self.has_rules, incumbents, -np.inf)))
        return self.rules_by_size[best]


@dataclass(eq=False)
class PriceProblem:
    """Search problem that determines a price."""

    constraints: Constraints
    X: Any
    y: Any
    kind: str
    max_rules: int
    scoring: Any
    tolerance: float | None
    sample_weight: Any
    max_checks: float = math.inf

    def __post_init__(self) -> None:
        predict = getattr(self.y, "predict", self.y if callable(self.y) else None)
        self.target = one_dimension("y", self.y if predict is None else predict(self.X))
        columns = getattr(self.X, "columns", None)
        n_columns = np.shape(self.X)[1]
        self.names = (
            [f"x{j}" for j in range(n_columns)] if columns is None else [*map(str, columns)]
        )
        self.table = RowTable.of(self.X, self.names)
        whole_labels("y", self.target)
        self.is_numeric = self.target.dtype.kind == "f" and not hasattr(self.y, "classes_")
        self._constant = self._constant_rules()
        self.constraints.check_names(self.names, self._constant.classes)
        self.further = self._further_constraints()

    def _constant_rules(self) -> RuleSet:
        """Return one rule that always holds, as the rules to certify."""
        classes = None
        output: Any = 0.0
        if self.is_numeric:
            output = float(finite_numbers("y", self.target).mean())
        else:
            counts = Counter(map(python_value, self.target.tolist()))
            classes = sorted(counts, key=label_order)
            output = max(classes, key=counts.__getitem__)
        return RuleSet(
            [Rule((), output)],
            self.names,
            task="regression" if self.is_numeric else "classification",
            classes=classes,
        )

    def _further_constraints(self) -> Constraints:
        """Return the constraints that no search space expresses."""
        defaults = Constraints()
        others = self.constraints.replace(**{name: getattr(defaults, name) for name in _OF_SPACE})
        groups = self.constraints.together.items()  # of numbers, which thresholds may separate
        return others.replace(together={f: g for f, g in groups if not isinstance(g[0][0], str)})

    def spaces(self, space: SearchSpace) -> tuple[SearchSpace, SearchSpace]:
        """Return the spaces without and with the constraints; the first contains the second."""
        base = space.cuts_of(self.X)
        allowed_cuts = self._allowed_cuts(base)
        union = _union_of_cuts(base, allowed_cuts)
        n_rules = min(self.max_rules, self.constraints.max_rules or self.max_rules)
        return (
            replace(space, cuts=union, max_rules=self.max_rules),
            SearchSpace(n_rules, space.max_conditions, allowed_cuts),
        )

    def _allowed_cuts(self, base: Cuts) -> Cuts:
        thresholds: dict[int, tuple[float, ...]] = {}
        for j, values in base.thresholds.items():
            allowed_thresholds = self.constraints.allowed_thresholds(self.names[j])
            if allowed_thresholds is None:
                thresholds[j] = values
                continue
            bounds = {n for c in values for n in allowed_thresholds.near(c)}
            if isinstance(allowed_thresholds, Cutoffs):
                bounds |= set(allowed_thresholds.values)
            thresholds[j] = tuple(sorted(bounds))
        categories = dict(base.categories)
        sets = dict(base.category_sets)
        for name, groups in self.constraints.together.items():
            j = self.names.index(name)
            if j in thresholds:
                continue
            grouped_values = {value for group in groups for value in group}
            categories[j] = tuple(v for v in categories.get(j, ()) if v not in grouped_values)
            undivided = (s for s in sets.get(j, ()) if _separates_none(s, groups))
            sets[j] = (*undivided, *_join_overlapping(groups))
        allowed_cuts = replace(
            base, thresholds=thresholds, categories=categories, category_sets=sets
        )
        forbidden = {self.names.index(name) for name in self.constraints.forbidden}
        return allowed_cuts.select([j for j in range(len(self.names)) if j not in forbidden])

    def certify(self, space: SearchSpace, limits: SolverLimits) -> Certificate:
        """Bound the best score of a space; the enumeration of trees closes gaps of the solver."""
        self.max_checks = _CHECKS_PER_WORK * limits.work_limit
        deadline = limits.deadline(time.monotonic())
        time_limit = None if limits.time_limit is None else 0.6 * limits.time_limit
        certificate = certify(
            self._constant,
            self.X,
            self.y,
            scoring=self.scoring,
            kinds=[self.kind],
            space=space,
            tolerance=self.tolerance,
            limits=replace(limits, time_limit=time_limit),
            sample_weight=self.sample_weight,
        )
        return self.tighten(certificate, space, deadline)

    def certify_constrained(
        self, space: SearchSpace, relaxed: Certificate, limits: SolverLimits, deadline: float
    ) -> _Proof:
        """Bound the best score under the constraints.

        `relaxed` is the certificate of the space, without the constraints that it cannot express.
        """
        if not self.further:
            return _Proof(relaxed)
        lower: list[float] = []
        upper: list[float] = []
        rules: list[RuleSet | None] = []
        frontiers = [relaxed.frontiers[0]]
        limit = self.constraints.max_conditions
        if self.kind == "list" and isinstance(limit, int) and limit < space.max_conditions:
            # Rules with `limit` tests satisfy it; an interval is one condition with two tests.
            frontiers += self.certify(replace(space, max_conditions=limit), limits).frontiers
        for low, high, incumbent in self._bounds_of_sizes(space, frontiers, deadline):
            lower.append(min([low, *lower]))  # rule sets may have fewer rules
            if upper and high >= upper[-1]:
                high, incumbent = upper[-1], rules[-1]
            upper.append(high)
            rules.append(incumbent)
        is_possible, has_rules = np.isfinite(lower), np.array([r is not None for r in rules])
        if not has_rules.any():  # the bounds ignore the further constraints
            frontier = replace(relaxed.frontiers[0], rules=tuple(rules))
            certificate = replace(relaxed, frontiers=(frontier,))
            return _Proof(certificate, is_possible, has_rules, tuple(rules))
        candidates = [bound.rules for bound in relaxed.f1_bounds if bound.rules is not None]
        further_rules = [one for one in candidates if self._satisfies(one)]
        certificate = self._certificate(relaxed, np.array(lower), upper, rules)
        if certificate.settings["metric"] == "f1_weighted":
            f1_bounds = self._f1_bounds(space, certificate, deadline, self.further)
            certificate = replace(certificate, f1_bounds=f1_bounds)
            further_rules += [bound.rules for bound in f1_bounds if bound.rules is not None]
        proof = _Proof(certificate, is_possible, has_rules, tuple(rules))
        return self._with_better_rules(proof, further_rules)

    def tighten(self, certificate: Certificate, space: SearchSpace, deadline: float) -> Certificate:
        """Bound the F1 of all trees of a space by enumeration, if the certificate has a gap."""
        interval = certificate.interval(self.kind)
        gap = abs(interval.bound - interval.incumbent)
        is_f1 = (self.kind, certificate.settings["metric"]) == ("tree", "f1_weighted")
        if not is_f1 or gap <= max(1e-9, self.tolerance or 0.0):
            return certificate
        proven = {bound.max_leaves: bound for bound in certificate.f1_bounds}
        for bound in self._f1_bounds(space, certificate, deadline, Constraints()):
            old = proven.get(bound.max_leaves, bound)
            best = max(bound, old, key=lambda one: one.incumbent)
            upper_bound = min(bound.upper_bound, old.upper_bound)
            proven[bound.max_leaves] = replace(best, upper_bound=upper_bound)
        return replace(certificate, f1_bounds=tuple(proven[size] for size in sorted(proven)))

    def _f1_bounds(
        self,
        space: SearchSpace,
        certificate: Certificate,
        deadline: float,
        constraints: Constraints,
    ) -> tuple[F1Bound, ...]:
        """Bound the F1 of trees of each size more tightly than their errors do."""
        search = self._search(space, certificate.frontiers[0].loss, deadline, constraints)
        bounds: list[F1Bound] = []
        known_f1 = 0.0
        for size in certificate.frontiers[0].sizes if search is not None else ():
            assert search is not None
            bound = search.solve_f1(size, known_f1, (self.tolerance or 0.0) / 2)
            if bound is None:
                break
            upper_bound = max([bound.upper_bound, *(b.upper_bound for b in bounds)])
            bounds.append(replace(bound, upper_bound=upper_bound))
            known_f1 = max(known_f1, bound.incumbent)
        return tuple(bounds)

    def _with_better_rules(self, proof: _Proof, further_rules: Sequence[RuleSet]) -> _Proof:
        """Use rules with a better metric, which need not have the fewest errors, as incumbents."""
        certificate, rules = proof.certificate, list(proof.rules_by_size)
        measured = list(certificate.measured[0])
        metric = certificate.settings["metric"]
        for one in further_rules:
            metrics = self._measure(one, certificate.frontiers[0].loss)
            is_better = (
                metrics[metric] > measured[len(one) - 1][metric]
                if PREDICTION_METRICS[metric].greater_is_better
                else metrics[metric] < measured[len(one) - 1][metric]
            )
            if is_better or rules[len(one) - 1] is None:
                measured[len(one) - 1], rules[len(one) - 1] = metrics, one
        return replace(
            proof,
            certificate=replace(certificate, measured=(tuple(measured),)),
            has_rules=np.array([r is not None for r in rules]),
            rules_by_size=tuple(rules),
        )

    def best_rules(self, space: SearchSpace, limits: SolverLimits) -> RuleSet | None:
        """Return the rules with the smallest loss under the constraints; None if none are found."""
        _, constrained_space = self.spaces(space)
        deadline = limits.deadline(time.monotonic())
        relaxed = self.certify(constrained_space, limits)
        proof = self.certify_constrained(constrained_space, relaxed, limits, deadline)
        return proof.certificate.frontiers[0].rules[-1]

    def _certificate(
        self,
        relaxed: Certificate,
        lower: np.ndarray,
        upper: Sequence[float],
        rules: Sequence[RuleSet | None],
    ) -> Certificate:
        """Return a certificate in which sizes without rules have the loss of a constant."""
        old = relaxed.frontiers[0]
        worst = float(max(old.upper[0], *(u for u in upper if math.isfinite(u))))
        upper_bounds = np.where(np.isfinite(upper), upper, worst)
        lower_bounds = np.minimum(lower, upper_bounds)
        frontier = Frontier(
            old.kind,
            old.loss,
            old.sizes,
            np.maximum.accumulate(lower_bounds[::-1])[::-1],
            upper_bounds,
            tuple(rules),
            old.total_weight,
            old.space,
            tuple(
                "optimal" if low == high and one is not None else "time_limit"
                for low, high, one in zip(lower_bounds, upper_bounds, rules, strict=True)
            ),
        )
        feasible = next(one for one in rules if one is not None)
        measured = tuple(self._measure(one or feasible, old.loss) for one in rules)
        return replace(relaxed, frontiers=(frontier,), measured=(measured,), f1_bounds=())

    def _measure(self, rules: RuleSet, loss: str) -> dict[str, float]:
        """Measure rules with all metrics that follow from a loss."""
        return measure_incumbent(rules, loss, self.X, self.target, self.sample_weight)

    def _bounds_of_sizes(
        self, space: SearchSpace, frontiers: Sequence[Frontier], deadline: float
    ) -> list[tuple[float, float, RuleSet | None]]:
        """Return lower bound, upper bound and rules of each number of rules."""
        frontier = frontiers[0]
        results: list[tuple[float, float, RuleSet | None]] = []
        search = self._search(space, frontier.loss, deadline, self.further)
        best = math.inf
        for position, size in enumerate(frontier.sizes):
            low = float(frontier.lower[position])
            incumbents = [(float(one.upper[position]), one.rules[position]) for one in frontiers]
            satisfying = [one for one in incumbents if one[1] and self._satisfies(one[1])]
            high, incumbent = satisfying[0] if satisfying else (math.inf, None)
            bounds = None
            if incumbent is None and search is not None:
                bounds = search.solve(size, best)
            if bounds is not None:
                low = max(low, min(bounds.lower, best))
                high, incumbent = bounds.upper, bounds.rules
            best = min(best, high)
            results.append((low, high, incumbent))
        return results

    def _search(
        self, space: SearchSpace, loss: str, deadline: float, constraints: Constraints
    ) -> ConstrainedTrees | None:
        """Return the search among trees; None if it is not possible."""
        if self.kind != "tree" or loss == "absolute_error":
            return None
        classes = self._constant.classes
        target = self.target
        if classes is not None:
            index = {label: i for i, label in enumerate(classes)}
            target = np.array([index[label] for label in self.target.tolist()])
        weights = np.ones(len(target)) if self.sample_weight is None else self.sample_weight
        rows = TreeRows(self.table, target, np.asarray(weights, dtype=float), classes)
        cuts = space.cuts_of(self.X)
        return ConstrainedTrees(rows, cuts, constraints, self.X, deadline, self.max_checks)

    def _satisfies(self, rules: RuleSet) -> bool:
        domain = rules.domain_around(self.X)
        return not violations(rules.replace(domain=domain), self.further, self.X, self.target)

    def without_price(self, free: Certificate) -> Price:
        """Return the price of constraints that all rules of the space satisfy."""
        return replace(self.price(free, _Proof(free)), lower=0.0, upper=0.0)

    def price(self, free: Certificate, constrained: _Proof) -> Price:
        """Combine both certificates."""
        spec = SCORE_SPECS[free.score]
        unconstrained = _Proof(free).interval(self.kind)
        with_constraints = constrained.interval(self.kind)
        incumbent = max(unconstrained[0], with_constraints[0])
        bound = min(with_constraints[1], unconstrained[1])
        upper = max(0.0, unconstrained[1] - with_constraints[0])
        return Price(
            min(upper, max(0.0, incumbent - bound)),
            upper,
            (spec.signed(incumbent), spec.signed(unconstrained[1])),
            (spec.signed(with_constraints[0]), spec.signed(bound)),
            constrained.rules(self.kind),
            free.best_rules(self.kind),
            self.constraints,
            self.kind,
            self.max_rules,
            spec.label,
            free.rows["reference"],
            len(self.target),
        )


def _separates_none(values: Sequence[Any], groups: Sequence[Sequence[Any]]) -> bool:
    """Return whether each group is completely inside or completely outside of some values."""
    return all(set(group) <= set(values) or not set(group) & set(values) for group in groups)


def _join_overlapping(groups: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Merge groups that have values in common."""
    joined: list[tuple[Any, ...]] = []
    for group in groups:
        common = [one for one in joined if not set(one).isdisjoint(group)]
        values = dict.fromkeys(value for one in (*common, group) for value in one)
        joined = [*(one for one in joined if one not in common), tuple(values)]
    return joined


def _union_of_cuts(one: Cuts, other: Cuts) -> Cuts:
    """Return the union of two sets of cuts."""

    def union(a: Any, b: Any) -> dict[int, tuple[Any, ...]]:
        return {j: tuple(dict.fromkeys((*a.get(j, ()), *b.get(j, ())))) for j in sorted({*a, *b})}

    thresholds = {j: tuple(sorted(v)) for j, v in union(one.thresholds, other.thresholds).items()}
    return replace(
        one,
        thresholds=thresholds,
        categories=union(one.categories, other.categories),
        category_sets=union(one.category_sets, other.category_sets),
        missing_features=tuple(sorted({*one.missing_features, *other.missing_features})),
    )
