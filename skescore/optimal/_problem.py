"""Inputs of a search for optimal rules: rows, search space and limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._rows import weighted_mean
from skescore._validation import (
    check_choice,
    check_integer,
    check_number,
    check_squares,
    finite_numbers,
    label_order,
    python_value,
    row_weights,
    whole_labels,
)
from skescore.optimal._cuts import Cuts, candidate_cuts, column_names
from skescore.rules import RowTable, RuleSet, RuleStatistics

LOSSES = ("errors", "squared_error", "absolute_error")
#: Largest number of rules; every number of rules needs a separate search, so more are a mistake.
MAX_RULES = 10_000


@dataclass(frozen=True)
class SearchSpace:
    """Space of the rules that a search compares.

    Parameters
    ----------
    max_rules : int, optional
        Largest number of rules, at most 10,000. By default 4 rules for :func:`optimal_trees` and
        :func:`optimal_lists`, and all sizes that may have a better score for
        :func:`skescore.certificates.certify`.
    max_conditions : {1, 2, 3}, default=2
        Largest number of tests in a premise of a list; ignored for trees. With 3, time and memory
        grow with the third power of the number of tests.
    cuts : Cuts, int or None, default=8
        Cuts of the features; an integer is passed to :func:`candidate_cuts`. None: cuts between all
        neighboring values.
    """

    max_rules: int | None = None
    max_conditions: int = 2
    cuts: Cuts | int | None = 8

    def __post_init__(self) -> None:
        check_integer("max_rules", self.max_rules, 1, MAX_RULES, optional=True)
        check_integer("max_conditions", self.max_conditions, 1, 3)
        if not (self.cuts is None or isinstance(self.cuts, Cuts)):
            check_integer("cuts", self.cuts, 1)

    def cuts_of(self, X: Any) -> Cuts:
        """Return the cuts of the features of a table.

        Parameters
        ----------
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        Cuts
            The cuts of the space, or candidate cuts of these rows.

        Raises
        ------
        ValueError
            If `cuts` ignores the missing values of a feature.
        """
        if not isinstance(self.cuts, Cuts):
            return candidate_cuts(X, self.cuts)
        self.cuts.check_missing_features(X)
        return self.cuts


@dataclass(frozen=True)
class SolverLimits:
    """Limits on the resources that a search may use.

    Parameters
    ----------
    time_limit : float, optional
        Wall time in seconds after which the search returns the bounds proven so far.
    max_nodes : int, optional
        Number of nodes after which the search returns the bounds proven so far. Unlike with
        `time_limit`, the result is the same on every machine.
    memory_limit : float, default=2**30
        Bytes that the bounds of a search for lists may use. If the limit is too small, only
        constants are compared, and the lower bounds for more rules are trivial.
    n_jobs : int, optional
        Number of processes of a search for lists. With `max_nodes` or `max_work`, a single process
        is used, so that the result does not depend on this parameter.
    max_work : float, optional
        Counted work after which the search returns the bounds proven so far, in units of about one
        CPU second of a typical core. As with `max_nodes`, the result is the same on every machine;
        unlike with `max_nodes`, all tables take a similar time.
    """

    time_limit: float | None = None
    max_nodes: int | None = None
    memory_limit: float = 2**30
    n_jobs: int | None = None
    max_work: float | None = None

    def __post_init__(self) -> None:
        check_number("time_limit", self.time_limit, 0, optional=True)
        check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check_number("memory_limit", self.memory_limit, 0)
        check_number("max_work", self.max_work, 0, optional=True)

    def deadline(self, started: float) -> float:
        """Return the time of ``time.monotonic()`` at which the search ends.

        Parameters
        ----------
        started : float
            Time at which the search started.

        Returns
        -------
        float
            The time; infinity without a limit.
        """
        return math.inf if self.time_limit is None else started + self.time_limit

    @property
    def node_limit(self) -> float:
        """Largest number of nodes; infinity without a limit."""
        return math.inf if self.max_nodes is None else self.max_nodes

    @property
    def work_limit(self) -> float:
        """Largest amount of work; infinity without a limit."""
        return math.inf if self.max_work is None else self.max_work

    @property
    def is_deterministic(self) -> bool:
        """Whether the result must be the same with any number of processes."""
        return self.max_nodes is not None or self.max_work is not None


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows, targets, weights and loss of a search.

    Parameters
    ----------
    table : RowTable
        The rows.
    target : ndarray of shape (n_rows,)
        Class indices, or numbers.
    weights : ndarray of float, shape (n_rows,)
        Weight of each row.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss that is summed over the rows.
    classes : tuple or None
        Labels by class index; None in regression.
    """

    table: RowTable
    target: np.ndarray
    weights: np.ndarray
    loss: str
    classes: tuple[Any, ...] | None

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        *,
        loss: str,
        classes: Sequence[Any] | None = None,
        sample_weight: Any = None,
    ) -> TrainingRows:
        """Check rows, targets and weights.

        Parameters
        ----------
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Labels, or numbers.
        loss : {"errors", "squared_error", "absolute_error"}
            Loss that is summed over the rows.
        classes : sequence, optional
            Labels by class index; by default the sorted labels of y.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        TrainingRows
            The checked rows.
        """
        check_choice("loss", loss, LOSSES)
        table = RowTable.of(X, column_names(X))
        n_rows = len(table)
        target = whole_labels("y", y) if loss == "errors" else finite_numbers("y", y)
        if n_rows == 0 or target.shape != (n_rows,):
            raise ValueError(
                f"y must hold one value for each of the {n_rows} rows of X, and X at least one, "
                f"got y of shape {target.shape}."
            )
        weights = np.ones(n_rows) if sample_weight is None else row_weights(sample_weight, n_rows)
        if loss != "errors":
            check_squares("y", target)
            return cls(table, target, weights, loss, None)
        values = [python_value(value) for value in target.tolist()]
        ordered = sorted(set(values), key=label_order) if classes is None else classes
        labels = tuple(map(python_value, ordered))
        index = {label: i for i, label in enumerate(labels)}
        unknown = sorted(set(values) - set(index), key=label_order)
        if unknown:
            raise ValueError(f"classes must hold all labels of y, but it lacks {unknown[0]!r}.")
        codes = np.array([index[value] for value in values], dtype=np.intp)
        return cls(table, codes, weights, loss, labels)

    @property
    def task(self) -> str:
        """Task of the rules: ``"classification"`` or ``"regression"``."""
        return "regression" if self.classes is None else "classification"

    def fit_constant(self, rows: np.ndarray) -> tuple[Any, float, RuleStatistics]:
        """Find the output with the smallest loss on some rows.

        Parameters
        ----------
        rows : ndarray
            Indices or a mask of the rows.

        Returns
        -------
        tuple
            The output (a label or number), its loss, and the statistics of the rows.
        """
        y, weights = self.target[rows], self.weights[rows]
        total = float(weights.sum())
        if self.classes is not None:
            counts = np.bincount(y, weights, minlength=len(self.classes))
            best = int(counts.argmax())
            # Unlike a difference of sums, the sum of the other classes cannot be negative.
            loss = float(np.delete(counts, best).sum())
            return self.classes[best], loss, RuleStatistics(total, tuple(counts.tolist()))
        fit_weights = weights if total > 0 else np.ones_like(weights)
        mean = weighted_mean(y, fit_weights)
        spread = math.sqrt(float(np.average((y - mean) ** 2, weights=fit_weights)))
        value = mean
        if self.loss == "absolute_error":
            order = np.argsort(y, kind="stable")
            sums = np.cumsum(fit_weights[order])
            value = float(y[order][np.searchsorted(sums, sums[-1] / 2)])
        deviation = np.abs(y - value)
        costs = deviation if self.loss == "absolute_error" else deviation**2
        statistics = RuleStatistics(total, mean=mean, standard_deviation=spread)
        return value, float((weights * costs).sum()), statistics

    def holds(self, rules: RuleSet) -> np.ndarray:
        """Evaluate the premises of rules.

        Parameters
        ----------
        rules : RuleSet
            The rules.

        Returns
        -------
        ndarray of bool, shape (n_rules, n_rows)
            Whether each rule holds for each row.
        """
        table = RowTable.of(self.table, rules.feature_names)
        masks = np.ones((len(rules), len(table)), dtype=bool)
        for mask, rule in zip(masks, rules, strict=True):
            for condition in rule.conditions:
                mask &= table.holds(condition)
        return masks

    def partition(self, rules: RuleSet) -> np.ndarray:
        """Return the first rule that holds for each row.

        Parameters
        ----------
        rules : RuleSet
            The rules.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Index of the rule; the number of rules if no rule holds.
        """
        holds_somewhere = np.ones(len(self.table), dtype=bool)
        return np.vstack([self.holds(rules), holds_somewhere]).argmax(axis=0)


def losses_of_partitions(
    X: Any,
    y: Any,
    rulesets: Sequence[RuleSet],
    *,
    loss: str = "errors",
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> list[tuple[int, float]]:
    """Return the loss of each rule set with the best constants as outputs.

    Parameters
    ----------
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Labels or numbers.
    rulesets : sequence of RuleSet
        Rule sets, in which the first rule that holds predicts.
    loss : {"errors", "squared_error", "absolute_error"}, default="errors"
        Loss that is summed over the rows.
    classes : sequence, optional
        The labels; by default the sorted labels of y.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    list of tuple
        Number of rules that predict rows (plus one for uncovered rows) and loss of each rule set.
    """
    rows = TrainingRows.read(X, y, loss=loss, classes=classes, sample_weight=sample_weight)
    results = []
    for rules in rulesets:
        partition = rows.partition(rules)
        parts = np.unique(partition).tolist()
        losses = [rows.fit_constant(partition == part)[1] for part in parts]
        results.append((len(parts), math.fsum(losses)))
    return results


def read_targets(targets: Any, max_rules: int) -> np.ndarray:
    """Check the lower bounds at which the search stops, one per number of rules.

    Parameters
    ----------
    targets : sequence of float or None
        Lower bounds at which the search stops; None to search for the smallest loss.
    max_rules : int
        Largest number of rules.

    Returns
    -------
    ndarray of shape (max_rules,)
        The bounds; infinity to search for the smallest loss.
    """
    if targets is None:
        return np.full(max_rules, np.inf)
    bounds = np.array(targets, dtype=float)
    if bounds.shape != (max_rules,) or np.isnan(bounds).any():
        raise ValueError(
            f"targets must hold one number for each of the {max_rules} sizes, got {targets!r}."
        )
    return bounds
