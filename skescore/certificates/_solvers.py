"""Solvers of certificates: proven bounds for each kind of rules, with a common interface."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from skescore.certificates._problem import CertificateProblem, measure_incumbent
from skescore.optimal import (
    SOLVERS,
    F1Bound,
    Frontier,
    SolverLimits,
    bound_f1_of_trees,
)
from skescore.rules import RuleSet

#: Smallest number of classes for which the number of errors is a poor bound of the weighted F1.
_MANY_CLASSES = 6
#: Number of nodes of a first search, which finds good rules before bounds are proven.
_FIRST_NODES = 200


@dataclass(frozen=True, eq=False)
class KindProof:
    """Proven bounds of one kind of rules.

    Parameters
    ----------
    frontier : Frontier
        Bounds of the loss, for every number of rules.
    measured : tuple of mapping of str to float
        Metrics and ``"n_rules"`` of the incumbent of each size.
    f1_bounds : tuple of F1Bound, default=()
        Bounds of the weighted F1 that are tighter than those from the loss.
    """

    frontier: Frontier
    measured: tuple[Mapping[str, float], ...]
    f1_bounds: tuple[F1Bound, ...] = ()


class KindSolver:
    """Solver for one kind of rules.

    Parameters
    ----------
    problem : CertificateProblem
        The problem.
    kind : {"tree", "list"}
        Kind of the rules.
    deadline : float
        Time of ``time.monotonic()`` at which the proof ends.
    """

    def __init__(self, problem: CertificateProblem, kind: str, deadline: float) -> None:
        self.problem, self.kind, self.deadline = problem, kind, deadline
        rules = problem.given_rules["rules"]
        self._start: list[RuleSet] = []
        if kind == "list" and rules is not None and rules.feature_names == problem.table.names:
            self._start.append(rules)
        is_f1_of_trees = (kind, problem.score.metric) == ("tree", "f1_weighted")
        self._bounds_f1 = is_f1_of_trees and problem.tolerance is not None
        #: Share of the time for the bounds of the loss.
        self._loss_share = 1.0
        if self._bounds_f1:
            n_classes = len(problem.rows["class_weights"])
            self._loss_share = 0.5 if n_classes < _MANY_CLASSES else 0.1

    def prove(self) -> KindProof:
        """Search until the bounds are proven or a limit is reached."""
        problem = self.problem
        prior, goal, best_signed = None, None, -math.inf
        if problem.tolerance is not None:
            prior = self._search(None, None, _FIRST_NODES, 1.0)
            best_signed = max(problem.signed_score, problem.score.best_signed(self._measure(prior)))
            goal = best_signed + problem.tolerance
            if self.kind == "list":
                self._start += [rules for rules in prior.rules if rules is not None]
        while True:
            frontier = self._search(goal, prior, problem.limits.max_nodes, self._loss_share)
            frontier = frontier if prior is None else frontier.with_bounds(prior)
            measured = self._measure(frontier)
            previous_best = best_signed
            best_signed = max(problem.signed_score, problem.score.best_signed(measured))
            if (
                problem.tolerance is None
                or self._bounds_f1
                or best_signed >= previous_best
                or time.monotonic() >= self.deadline
            ):
                break
            # The rules with fewer errors have a worse score, so the goal is lower.
            prior, goal = frontier, best_signed + problem.tolerance
        bounds: tuple[F1Bound, ...] = ()
        if self._bounds_f1:
            bounds = _F1TreeSolver(problem, frontier, best_signed, self.deadline).prove()
        return KindProof(frontier, measured, bounds)

    def _search(
        self, goal: float | None, prior: Frontier | None, max_nodes: int | None, time_share: float
    ) -> Frontier:
        """Search the rules of all sizes until none can have a score above the goal."""
        problem = self.problem
        targets = None if goal is None or prior is None else self._loss_targets(goal, prior)
        return SOLVERS[self.kind](
            problem.table,
            problem.target,
            problem.space,
            loss=problem.loss,
            sample_weight=problem.weights,
            start=self._start,
            targets=targets,
            limits=_limits_until(self.deadline, problem.limits, max_nodes, time_share),
        )

    def _measure(self, frontier: Frontier) -> tuple[dict[str, float], ...]:
        """Measure the incumbents with all metrics that follow from the loss."""
        problem = self.problem
        measured = []
        for rules in frontier.rules:
            assert rules is not None
            measured.append(
                measure_incumbent(rules, frontier.loss, problem.X, problem.target, problem.weights)
            )
        return tuple(measured)

    def _loss_targets(self, goal: float, prior: Frontier) -> list[float]:
        """Return for each size the smallest loss for which no score is above the goal."""
        score, rows = self.problem.score, self.problem.rows

        def exceeds_goal(loss: float, size: int) -> bool:
            best_metric = score.bound_metric(loss, size, rows, prior.total_weight)
            return score.signed_from_metric(best_metric, size) > goal

        targets = []
        for size in prior.sizes:
            low, high = 0.0, float(prior.upper[0])
            if not exceeds_goal(low, size):
                high = 0.0
            elif exceeds_goal(high, size):
                high = math.inf
            else:
                for _ in range(14):
                    middle = (low + high) / 2
                    low, high = (middle, high) if exceeds_goal(middle, size) else (low, middle)
            targets.append(high)
        return targets


class _F1TreeSolver:
    """Bounds of the weighted F1 of trees, for sizes at which bounds from the errors are too weak.

    A first pass with few nodes finds good trees; the better they are, the weaker are the bounds
    that must be proven for all sizes.

    Parameters
    ----------
    problem : CertificateProblem
        The problem.
    frontier : Frontier
        Bounds of the errors of trees.
    best_signed : float
        Signed score of the best rules found so far.
    deadline : float
        Time of ``time.monotonic()`` at which the proof ends.
    """

    def __init__(
        self, problem: CertificateProblem, frontier: Frontier, best_signed: float, deadline: float
    ) -> None:
        self._problem, self._best_signed, self._deadline = problem, best_signed, deadline
        self._tolerance = problem.tolerance or 0.0
        self._bounds: dict[int, F1Bound] = {}
        #: Bound of the F1 for each size that follows from the errors.
        self._f1_from_errors = {
            size: problem.score.bound_metric(loss, size, problem.rows, frontier.total_weight)
            for size, loss in zip(frontier.sizes, frontier.lower.tolist(), strict=True)
        }

    def prove(self) -> tuple[F1Bound, ...]:
        """Return the bounds, by increasing size."""
        for is_first_pass in (True, False):
            open_sizes = [size for size in self._f1_from_errors if self._is_open(size)]
            end = self._deadline
            if is_first_pass and math.isfinite(end):
                end = time.monotonic() + (end - time.monotonic()) / 4
            max_nodes = _FIRST_NODES if is_first_pass else self._problem.limits.max_nodes
            for i, size in enumerate(open_sizes):
                self._bound_size(size, end, max_nodes, 1 / (len(open_sizes) - i))
        for size, bound in self._bounds.items():
            if bound.upper_bound >= self._f1_from_errors[size]:
                self._bounds[size] = replace(bound, upper_bound=1.0, proof={})
        return tuple(self._bounds[size] for size in sorted(self._bounds))

    def _is_open(self, size: int) -> bool:
        """Return whether trees of a size may beat the best score by more than the tolerance."""
        f1 = self._f1_from_errors[size]
        if size in self._bounds:
            f1 = min(f1, self._bounds[size].upper_bound)
        goal = self._best_signed + self._tolerance
        return self._problem.score.signed_from_metric(f1, size) > goal + 1e-12

    def _largest_f1(self, size: int) -> float:
        """Return the largest F1 whose score exceeds the best one by at most the tolerance."""
        goal = self._best_signed + self._tolerance
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            exceeds_goal = self._problem.score.signed_from_metric(middle, size) > goal
            low, high = (low, middle) if exceeds_goal else (middle, high)
        return low

    def _bound_size(self, size: int, end: float, max_nodes: int | None, time_share: float) -> None:
        """Bound the F1 of one size, repeatedly if better trees raise the target."""
        problem = self._problem
        while True:
            target = self._largest_f1(size)
            bound = bound_f1_of_trees(
                problem.table,
                problem.target,
                size,
                target=target,
                cuts=problem.space.cuts,
                sample_weight=problem.weights,
                limits=_limits_until(end, problem.limits, max_nodes, time_share),
            )
            previous = self._bounds.get(size, bound)
            tightest = min(bound, previous, key=lambda b: b.upper_bound)
            best = max(bound, previous, key=lambda b: b.incumbent)
            self._bounds[size] = replace(tightest, incumbent=best.incumbent, rules=best.rules)
            if bound.rules is not None:
                signed_score = problem.score.signed_from_metric(bound.incumbent, len(bound.rules))
                self._best_signed = max(self._best_signed, signed_score)
            if bound.incumbent <= target or self._largest_f1(size) <= target:
                return


def _limits_until(
    end: float, limits: SolverLimits, max_nodes: int | None, time_share: float
) -> SolverLimits:
    """Return limits with a share of the remaining time."""
    seconds_left = max(0.0, time_share * (end - time.monotonic()))
    time_limit = seconds_left if math.isfinite(seconds_left) else None
    return replace(limits, time_limit=time_limit, max_nodes=max_nodes)


def prove_all_kinds(problem: CertificateProblem) -> list[KindProof]:
    """Prove the bounds of all kinds of rules, each with an equal share of the remaining time."""
    end = problem.limits.deadline(time.monotonic())
    proofs = []
    for i, kind in enumerate(problem.kinds):
        now = time.monotonic()
        deadline = now + max(0.0, end - now) / (len(problem.kinds) - i)
        proofs.append(KindSolver(problem, kind, deadline).prove())
    return proofs
