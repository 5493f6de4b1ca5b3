"""Rule sets: the results of extractors, and the input of metrics, scorers and exporters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from skescore._io import expand_home, write_atomically
from skescore._validation import (
    TASKS,
    check_choice,
    check_flag,
    check_instance,
    check_integer,
    check_label,
    check_sequence,
    label_order,
)
from skescore.rules._boxes import BoxTable
from skescore.rules._domain import Domain, Fallback, domain_around
from skescore.rules._json import ruleset_from_json, ruleset_to_json
from skescore.rules._matching import Matcher, run_in_chunks
from skescore.rules._prediction import check_voting, predict, predict_proba
from skescore.rules._row_table import RowTable
from skescore.rules._rule import (
    REFERENCES,
    Conclusions,
    LinearOutput,
    Rule,
    check_rules,
    combine_statistics,
)
from skescore.rules._text import NumberFormat, line, plain_number, to_text

if TYPE_CHECKING:
    import pandas as pd

    from skescore.rules._explanation import Explanation

#: Largest number of rules that an interpreter or notebook displays.
_SHOWN_RULES = 60
#: Number of pairs of rows and rules in a batch, and smallest number of rows in a batch.
_PAIRS, _MIN_ROWS = 1 << 22, 256


class RuleSet(Sequence[Rule]):
    """Immutable list of rules that predicts rows.

    Parameters
    ----------
    rules : iterable of Rule
        The rules, in order.
    feature_names : sequence of str of length n_features
        Name of each column.
    task : {"classification", "regression"}
        Whether outputs are class labels or numbers.
    classes : sequence of str, int, float or bool, optional
        Class labels, in the order of the class counts in statistics; by default the sorted outputs
        of the rules and the fallback. Classification only.
    domain : Domain, optional
        Box for which the rules are intended; required for completeness by volume.
    ordered : bool, default=True
        True: the first rule that holds predicts. False: of several rules that hold, the one with
        the highest purity predicts (if equal, and in regression, the one with the most rows),
        unless rules vote.
    disjoint : bool, default=False
        Whether no two rules can hold for the same row, which makes volumes fast to compute.
    fallback : Fallback, optional
        Prediction for uncovered rows; without it, :meth:`predict` raises a ValueError for them.
    voting : {"votes", "probabilities", "logistic", "mean", "sum"}, optional
        Method that combines all rules that hold into one prediction, by their weights; requires
        ``ordered=False``. None: a single rule predicts. In classification, the class with the
        largest sum is predicted (the first if equal): ``"votes"`` adds each rule's weight to
        its class, ``"probabilities"`` distributes the weight in proportion to the rule's class
        counts, and ``"logistic"`` adds weights that are log odds. In regression, the prediction is
        the weighted ``"mean"`` or ``"sum"`` of the outputs. A mean whose weights sum to 0 or less
        is undefined; the fallback then predicts.
    reference : {"black_box", "data"}, optional
        Labels from which the statistics of the rules were computed: the black box's predictions, or
        the target of the training rows; None if unknown. Extractors and importers set it. It
        determines how texts describe the share of a rule's class.

    Attributes
    ----------
    rules : tuple of Rule
        The rules.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"), Rule([Interval(0, lower=5)], "virginica")],
    ...     ["petal length (cm)"],
    ...     task="classification",
    ...     fallback=Fallback("versicolor"),
    ... )
    >>> print(rules)
    1. IF petal length (cm) ≤ 2.5 THEN setosa
    2. ELSE IF petal length (cm) > 5 THEN virginica
    otherwise, where no rule holds: versicolor
    >>> rules.predict([[1.0], [3.0], [6.0]]).tolist(), rules.assign([[1.0], [3.0], [6.0]]).tolist()
    (['setosa', 'versicolor', 'virginica'], [0, -1, 1])
    """

    _fields = (
        "_rules",
        "_boxes",
        "_conclusions",
        "feature_names",
        "task",
        "classes",
        "domain",
        "ordered",
        "disjoint",
        "fallback",
        "voting",
        "reference",
    )
    _defaults: ClassVar[dict[str, Any]] = {
        "classes": None,
        "domain": None,
        "ordered": True,
        "disjoint": False,
        "fallback": None,
        "voting": None,
        "reference": None,
    }
    _rules: tuple[Rule, ...] | None
    _boxes: BoxTable | None
    _conclusions: Conclusions | None
    feature_names: tuple[str, ...]
    task: str
    classes: tuple[Any, ...] | None
    domain: Domain | None
    ordered: bool
    disjoint: bool
    fallback: Fallback | None
    voting: str | None
    reference: str | None

    def __init__(
        self,
        rules: Iterable[Rule],
        feature_names: Sequence[str],
        *,
        task: str,
        classes: Sequence[Any] | None = None,
        domain: Domain | None = None,
        ordered: bool = True,
        disjoint: bool = False,
        fallback: Fallback | None = None,
        voting: str | None = None,
        reference: str | None = None,
    ) -> None:
        rules = tuple(rules)
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(
                    f"rules must hold Rule objects, got {type(rule).__name__}: {rule!r}. "
                    "Use as_ruleset(...) to convert other libraries' rules to a RuleSet."
                )
        if classes is None and task == "classification":
            outputs = {r.output for r in rules if not isinstance(r.output, LinearOutput)}
            if isinstance(fallback, Fallback):
                outputs.add(fallback.output)
            classes = sorted(outputs, key=label_order)
        settings = {
            "feature_names": feature_names,
            "task": task,
            "classes": classes,
            "domain": domain,
            "ordered": ordered,
            "disjoint": disjoint,
            "fallback": fallback,
            "voting": voting,
            "reference": reference,
        }
        self._set(rules, None, None, settings)
        check_rules(rules, self.feature_names, self.classes)

    def _set(
        self,
        rules: tuple[Rule, ...] | None,
        boxes: BoxTable | None,
        conclusions: Conclusions | None,
        settings: dict[str, Any],
    ) -> None:
        """Check the settings, add defaults, and store all parts."""
        if unknown := settings.keys() - set(self._fields[3:]):
            raise TypeError(f"A RuleSet has no parameter {min(unknown)!r}.")
        settings = {**self._defaults, **settings}
        names = check_sequence("feature_names", settings["feature_names"], "names")
        names = settings["feature_names"] = tuple(map(str, names))
        if len(set(names)) != len(names):
            repeated = sorted({n for n in names if names.count(n) > 1})
            raise ValueError(f"feature_names must differ from each other, got {repeated} twice.")
        task, domain, fallback = (settings[name] for name in ("task", "domain", "fallback"))
        check_choice("task", task, TASKS)
        check_instance("domain", domain, Domain, optional=True)
        check_instance("fallback", fallback, Fallback, optional=True)
        if domain is not None and len(domain.lower) != len(names):
            raise ValueError(
                f"domain has {len(domain.lower)} features, feature_names has {len(names)}."
            )
        settings["classes"] = _check_classes(task, settings["classes"])
        if fallback is not None:
            fallback.check(settings["classes"])
        for flag in ("ordered", "disjoint"):
            settings[flag] = check_flag(flag, settings[flag])
        voting = check_voting(settings["voting"], task, ordered=settings["ordered"])
        if voting is not None and fallback is not None and fallback.policy == "nearest":
            raise ValueError(
                "A fallback with policy='nearest' predicts by one rule, which is not possible with "
                f"voting={voting!r}: choose policy='default' or 'abstain'."
            )
        check_choice("reference", settings["reference"], tuple(REFERENCES))
        parts = {"_rules": rules, "_boxes": boxes, "_conclusions": conclusions}
        self.__setstate__({**parts, **settings})

    @classmethod
    def from_boxes(
        cls,
        boxes: BoxTable,
        conclusions: Conclusions,
        feature_names: Sequence[str],
        **settings: Any,
    ) -> RuleSet:
        """Create a rule set from arrays; the Rule objects are created on first access.

        Parameters
        ----------
        boxes : BoxTable
            Box of each rule.
        conclusions : Conclusions
            The outputs and statistics of the rules.
        feature_names : sequence of str
            Name of each column.
        **settings
            Keyword parameters of the class; `classes` is required in classification.

        Raises
        ------
        ValueError
            If the arrays do not match each other, the names or the classes.
        """
        self = cls.__new__(cls)
        self._set(None, boxes, conclusions, {"feature_names": feature_names, **settings})
        if boxes.lower.shape[1] != self.n_features:
            raise ValueError(
                f"boxes has {boxes.lower.shape[1]} features, feature_names has {self.n_features}."
            )
        conclusions.check(len(boxes), None if self.classes is None else len(self.classes))
        used = [f for output in conclusions.linear.values() for f, _ in output.terms]
        if used and max(used) >= self.n_features:
            raise ValueError(
                f"A linear output uses feature {max(used)}, but there are only {self.n_features}."
            )
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A RuleSet cannot be changed; use replace(...) instead of {name}=...")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("A RuleSet cannot be changed.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (
            self.rules,
            self.feature_names,
            self.task,
            self.classes,
            self.domain,
            self.ordered,
            self.disjoint,
            self.fallback,
            self.voting,
            self.reference,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return self is other or self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Rules, in order."""
        rules: Iterable[Rule]
        if self._rules is not None:
            rules = self._rules
        else:
            assert self._conclusions is not None
            classes, boxes, make_rule = self.classes, self.boxes, self._conclusions.rule
            rules = (make_rule(i, boxes, classes) for i in range(len(self)))
        return tuple(rule.in_ruleset(self, i) for i, rule in enumerate(rules))

    def __len__(self) -> int:
        return len(self._rules) if self._rules is not None else len(self.boxes)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> RuleSet: ...
    def __getitem__(self, index: int | slice) -> Rule | RuleSet:
        if isinstance(index, slice):
            return self.replace(rules=self.rules[index])
        return self.rules[index]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def replace(self, **changes: Any) -> RuleSet:
        """Return a copy in which the given constructor parameters have new values."""
        settings = {name: getattr(self, name) for name in self._fields[3:]}
        if self._rules is None and not changes.keys() & {"rules", "task", "classes"}:
            return RuleSet.from_boxes(self.boxes, self.conclusions, **(settings | changes))
        return RuleSet(**({"rules": self.rules} | settings | changes))

    def with_arbitrary_fallback(self) -> RuleSet:
        """Return a copy that predicts an arbitrary class, or 0, for uncovered rows.

        If the rules have no fallback, :meth:`predict` raises an error for uncovered rows. The copy
        predicts all rows; use only its predictions of rows that :meth:`covers` marks.

        Returns
        -------
        RuleSet
            The copy.
        """
        output = 0.0 if self.classes is None else (self.classes or (None,))[0]
        return self.replace(fallback=Fallback(output))

    def with_boxes(
        self, boxes: BoxTable, non_intervals: Sequence[Sequence[Any]] | None = None
    ) -> RuleSet:
        """Return a copy with different interval conditions.

        Parameters
        ----------
        boxes : BoxTable
            Intervals of each rule.
        non_intervals : sequence of sequences of conditions, optional
            Conditions of each rule that are not intervals; by default they do not change.

        Returns
        -------
        RuleSet
            The copy.
        """
        if self._rules is None and non_intervals is None:
            settings = {name: getattr(self, name) for name in self._fields[3:]}
            return RuleSet.from_boxes(boxes, self.conclusions, **settings)
        rules = [
            Rule(
                (
                    *boxes.intervals(i),
                    *(rule.non_intervals if non_intervals is None else non_intervals[i]),
                ),
                rule.output,
                rule.statistics,
                rule.weight,
            )
            for i, rule in enumerate(self.rules)
        ]
        return self.replace(rules=rules)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @cached_property
    def n_conditions(self) -> int:
        """Number of conditions in all rules; a two-sided interval counts as one."""
        return sum(rule.n_conditions for rule in self.rules)

    @cached_property
    def n_literals(self) -> int:
        """Number of literals in all premises, see :attr:`Rule.n_literals`."""
        return sum(rule.n_literals for rule in self.rules)

    @cached_property
    def n_terms(self) -> int:
        """Number of literals in all premises plus the number of terms in all linear outputs."""
        return sum(rule.n_terms for rule in self.rules)

    @cached_property
    def used_features(self) -> frozenset[int]:
        """Indices of the features in conditions, outputs and weights."""
        used = {f for rule in self.rules for c in rule.conditions for f in c.features}
        for rule in self.rules:
            for part in (rule.output, rule.weight):
                if isinstance(part, LinearOutput):
                    used.update(feature for feature, _ in part.terms)
        return frozenset(used)

    @cached_property
    def boxes(self) -> BoxTable:
        """Interval conditions of all rules as arrays."""
        if self._boxes is not None:
            return self._boxes
        return BoxTable.from_intervals([r.intervals for r in self.rules], self.n_features)

    @cached_property
    def conclusions(self) -> Conclusions:
        """Outputs and class counts of all rules as arrays."""
        if self._conclusions is not None:
            return self._conclusions
        return Conclusions.from_rules(self.rules, self.classes)

    @cached_property
    def boxes_only(self) -> bool:
        """True if all conditions are intervals, so that :attr:`boxes` contains all premises."""
        return self._rules is None or not any(rule.non_intervals for rule in self._rules)

    @cached_property
    def assignment_order(self) -> np.ndarray:
        """Indices of the rules by decreasing priority (ndarray of int)."""
        if self.ordered or self.disjoint:
            return np.arange(len(self))
        purity = [rule.purity(self.output_index(rule)) or 0.0 for rule in self.rules]
        rows = [rule.statistics.n_rows if rule.statistics else 0 for rule in self.rules]
        return np.lexsort((-np.asarray(rows, float), -np.asarray(purity, float)))

    def output_index(self, rule: Rule) -> int | None:
        """Return the index of a rule's label in ``classes``; None in regression."""
        return None if self.classes is None else self.classes.index(rule.output)

    @cached_property
    def weights(self) -> Sequence[Any] | np.ndarray:
        """Weight of each rule when rules predict together: numbers, or LinearOutput objects."""
        if self._rules is not None:
            return [rule.weight for rule in self._rules]
        weights: Any = self.conclusions.weights
        if weights is None:
            weights = np.ones(len(self))
        return weights

    @cached_property
    def matcher(self) -> Matcher:
        """Matcher of the premises of all rules, in order."""
        return self._matcher(np.arange(len(self)))

    @cached_property
    def _matcher_by_priority(self) -> Matcher:
        if self.ordered or self.disjoint:
            return self.matcher
        return self._matcher(self.assignment_order)

    def _matcher(self, order: np.ndarray) -> Matcher:
        non_intervals: list[Any] = [()] * len(self)
        if not self.boxes_only:
            non_intervals = [self.rules[i].non_intervals for i in order]
        return Matcher(self.boxes.take(order), non_intervals)

    def match(self, X: Any) -> np.ndarray:
        """Find which rules hold for which rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            The rows. Columns of a frame are identified by name. Missing values (NaN, None) satisfy
            only conditions that include them.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_rules)
            Truth of each rule's premise, regardless of the order of the rules.
        """
        return self.matcher.match(RowTable.of(X, self.feature_names))

    def iter_match(
        self, X: Any, *, batch_size: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Match rows in batches, so that memory does not grow with the number of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            The rows.
        batch_size : int, optional
            Number of rows in a batch; by default fewer for more rules.

        Yields
        ------
        rows : slice
            The rows of the batch.
        held : ndarray of bool, shape (n_rows of the batch, n_rules)
            The result of :meth:`match` for these rows.
        """
        table = RowTable.of(X, self.feature_names)
        size = batch_size or max(_MIN_ROWS, _PAIRS // max(1, len(self)))
        for begin in range(0, len(table), size):
            rows = slice(begin, min(begin + size, len(table)))
            yield rows, self.matcher.match(table, rows)

    def covers(self, X: Any) -> np.ndarray:
        """Mark the rows for which at least one rule holds; the fallback does not count.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
        """
        return self.matcher.covers(RowTable.of(X, self.feature_names))

    def assign(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Find the rule that each row is assigned to.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            The rows.
        n_jobs : int, optional
            Number of threads; None is 1, and -1 is the number of processors.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Index of the assigned rule; -1 if no rule holds.

        Raises
        ------
        ValueError
            If the rules predict together (``voting``).
        """
        self.check_one_rule_per_row("assign")
        check_integer("n_jobs", n_jobs, -1, optional=True)
        table = RowTable.of(X, self.feature_names)
        result = np.empty(len(table), dtype=np.intp)

        def fill(rows: slice) -> None:
            result[rows] = self.assigned(table, rows)

        run_in_chunks(fill, len(table), n_jobs)
        return result

    def assigned(self, table: RowTable, rows: slice) -> np.ndarray:
        """Find the rule that each row in a range of a table is assigned to.

        Parameters
        ----------
        table : RowTable
            The table.
        rows : slice
            The rows, from a start to a stop.

        Returns
        -------
        ndarray of int
            Indices of rules, as in :meth:`assign`.
        """
        return np.append(self.assignment_order, -1).take(self.first(table, rows), mode="clip")

    def first(self, table: RowTable, rows: slice) -> np.ndarray:
        """Return the position in ``assignment_order`` of the rule that each row is assigned to.

        Parameters
        ----------
        table : RowTable
            The table.
        rows : slice
            The rows, from a start to a stop.

        Returns
        -------
        ndarray of int
            Positions, of any integer type; at least the number of rules if no rule holds.
        """
        return self._matcher_by_priority.first(table, rows)

    def check_one_rule_per_row(self, purpose: str) -> None:
        """Raise a ValueError if the rules vote, so that no single rule predicts a row.

        Parameters
        ----------
        purpose : str
            Name of the operation that needs one rule per row; the message begins with it.
        """
        if self.voting is not None:
            raise ValueError(
                f"{purpose} requires that one rule predicts each row, but in this rule set "
                f"(voting={self.voting!r}) all rules that hold predict together. match(X) and "
                "covers(X) return which rules hold; replace(voting=None) lets the rule with the "
                "highest purity predict."
            )

    def predict(self, X: Any, *, n_jobs: int | None = None) -> np.ndarray:
        """Predict every row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            The rows.
        n_jobs : int, optional
            Number of threads, unless rules vote; None is 1, and -1 is the number of processors.

        Returns
        -------
        ndarray of shape (n_rows,)
            Class labels or numbers. The fallback determines the prediction of uncovered rows.

        Raises
        ------
        ValueError
            If no rule holds for some row and there is no fallback.
        """
        check_integer("n_jobs", n_jobs, -1, optional=True)
        return predict(self, RowTable.of(X, self.feature_names), n_jobs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities from the class counts of the assigned rule, or from votes.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of ``classes``. A rule without counts predicts its class with
            probability 1. If rules vote, the sums of the classes are normalized, by a softmax for
            ``voting="logistic"``; if this is impossible, for example because a sum is negative, the
            predicted class has probability 1. Uncovered rows get equal probabilities if the rule
            set abstains.

        Raises
        ------
        ValueError
            If no rule holds for some row and there is no fallback.
        AttributeError
            If the task is regression.
        """
        if self.classes is None:
            raise AttributeError("predict_proba needs rules for classification. Use predict.")
        return predict_proba(self, RowTable.of(X, self.feature_names))

    def simplify(self, X: Any = None, tolerance: float = 0.0) -> RuleSet:
        """Simplify rules without changing predictions, or within a tolerance.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows whose predictions must not change beyond the tolerance. By default, no prediction
            in the domain may change or, without a domain, no prediction for any row, including rows
            with missing values.
        tolerance : float, default=0.0
            Largest share of the rows of X whose predictions may change, at least 0 and less than 1.
            In regression, largest 1 - R² with respect to the predictions of the original rules.

        Returns
        -------
        RuleSet
            The rules in the original order; the same object if nothing can be simplified.

        Raises
        ------
        TypeError
            If `tolerance` is not a number.
        ValueError
            If `tolerance` is out of range or requires X, X does not match the rules, or the rules
            vote.

        Notes
        -----
        Without X, no prediction changes at any point of the domain, by a rule or by the fallback.
        This is proven, not sampled. The following steps are repeated until none applies:

        - A rule is removed if it never holds, if earlier rules cover it, or if later rules with
          the same output cover it. If one later rule of an ordered list takes over its rows, the
          statistics of both are added. If several rules may do so, they lose their statistics.
        - Two rules with the same output are merged if their union is a box, or if they differ only
          in the values of one categorical feature, unless this affects a rule with another output
          between them. Statistics are pooled. Because a merge changes priorities in unordered
          sets, rules are merged there only if no prediction changes.
        - A bound that the domain implies is dropped. The rule then also predicts beyond the
          training range, and for missing values if no bound is left.
        - A bound in an ordered list is dropped if earlier rules cover everything beyond it, and a
          value of a categorical feature if an earlier rule covers all rows with this value.
        - In an M-of-N condition, two conditions on a feature are united if only one can hold.

        A rule is kept if its check needs too many box subtractions. Linear conditions are kept.
        Categorical features are assumed to have values that are not listed. If the fallback is the
        nearest rule, only bounds at the border of the domain are dropped, and only neighbors in the
        list are merged. In this case, nothing changes if a rule tests whether a value is missing.

        With X, predictions for other rows may change. The search is greedy: it first takes steps
        that change no prediction, then those that remove the most rules and comparisons per changed
        prediction. A step removes a rule, drops a condition, or replaces two rules by the smallest
        box around both. In regression, their outputs may differ; the merged rule gets the mean
        prediction. A row that becomes covered or uncovered counts as changed, even if its
        prediction is the same; in regression, it counts at least as much as an error of one
        standard deviation. Rules declared disjoint remain disjoint.

        With X, a rule whose assigned rows change keeps only their number as statistics. In an
        unordered set whose rules may overlap, all statistics are kept, because they determine the
        priority.

        Examples
        --------
        >>> from skescore.rules import Domain, Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [
        ...         Rule([Interval(0, upper=3)], "low"),
        ...         Rule([Interval(0, 3, 5)], "low"),
        ...         Rule([Interval(0, 5, 9)], "high"),
        ...     ],
        ...     ["x"],
        ...     task="classification",
        ...     domain=Domain((0,), (9,)),
        ... )
        >>> print(rules.simplify())
        1. IF x ≤ 5 THEN low
        2. ELSE high
        """
        from skescore.rules.simplification import simplify

        self.check_one_rule_per_row("simplify")
        return simplify(self, X, tolerance)

    def without_repeated_end(self) -> RuleSet:
        """Merge the last rules of an ordered list if they have the same output.

        Rules are merged only if the last rule has no conditions, so predictions do not change.

        Returns
        -------
        RuleSet
            The shorter list; the same object if nothing is repeated.

        Examples
        --------
        ``ELSE IF x0 > 3 THEN yes, ELSE yes`` is one rule:

        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = [Rule([Interval(0, upper=1)], "no"), Rule([Interval(0, lower=3)], "yes")]
        >>> rules = [*rules, Rule([], "yes")]
        >>> print(RuleSet(rules, ["x0"], task="classification").without_repeated_end())
        1. IF x0 ≤ 1 THEN no
        2. ELSE yes
        """
        if not self.ordered or len(self) < 2 or self.rules[-1].conditions:
            return self
        rules = list(self.rules)
        while len(rules) > 1 and rules[-2].output == rules[-1].output:
            statistics = combine_statistics(rules[-2].statistics, rules[-1].statistics)
            rules[-2:] = [Rule((), rules[-1].output, statistics)]
        return self if len(rules) == len(self) else self.replace(rules=rules)

    def with_class_names(self, class_names: Mapping[Any, Any] | Sequence[Any]) -> RuleSet:
        """Rename the classes.

        Use it, for example, to show *no* and *yes* for a model trained on 0 and 1.

        Parameters
        ----------
        class_names : mapping or sequence
            Names of the classes, by label or in the order of :attr:`classes`.

        Returns
        -------
        RuleSet
            The rules, which predict the new names.

        Raises
        ------
        ValueError
            If the task is regression, a class has no name, or two classes have the same name.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=30)], 0), Rule([], 1)], ["age"], task="classification"
        ... )
        >>> print(rules.with_class_names(["no", "yes"]))
        1. IF age ≤ 30 THEN no
        2. ELSE yes
        """
        from dataclasses import replace

        if self.classes is None:
            raise ValueError("class_names are for classification; this is a regression.")
        if isinstance(class_names, Mapping):
            unnamed = [label for label in self.classes if label not in class_names]
            if unnamed:
                raise ValueError(
                    f"class_names must name every class, got no name for {unnamed[0]!r}. Classes "
                    f"are {list(self.classes)}."
                )
            new_labels = {label: class_names[label] for label in self.classes}
        else:
            names = check_sequence("class_names", class_names, "names")
            if len(names) != len(self.classes):
                raise ValueError(
                    f"class_names must hold one name for each of the {len(self.classes)} classes "
                    f"{list(self.classes)}, got {len(names)}."
                )
            new_labels = dict(zip(self.classes, names, strict=True))
        new_labels = {label: check_label("class_names", name) for label, name in new_labels.items()}
        fallback = self.fallback
        if fallback is not None:
            fallback = replace(fallback, output=new_labels[fallback.output])
        rules = [replace(rule, output=new_labels[rule.output]) for rule in self.rules]
        return self.replace(rules=rules, classes=list(new_labels.values()), fallback=fallback)

    def standalone(self) -> RuleSet:
        """Rewrite the rules so that each is valid on its own, without ``ELSE``.

        Use it to quote single rules.

        Returns
        -------
        RuleSet
            Disjoint rules. Rules that are split into several parts have no statistics.

        Raises
        ------
        ValueError
            If the rules vote, or would be split into too many parts.

        Notes
        -----
        Predictions may change only for rows with missing values of features for which neither the
        domain nor a condition mentions missing values. For such a row, a standalone ``age > 30``
        does not hold, whereas ``ELSE`` does.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=30), Interval(1, upper=2)], "a"),
        ...      Rule([Interval(1, upper=2)], "b"), Rule([], "c")],
        ...     ["age", "size"], task="classification",
        ... )
        >>> print(rules.standalone())
        1. IF age ≤ 30 AND size ≤ 2 THEN a
        2. IF age > 30 AND size ≤ 2 THEN b
        3. IF size > 2 THEN c
        """
        from skescore.rules.simplification import standalone

        self.check_one_rule_per_row("standalone")
        return standalone(self)

    def shorten(self, X: Any, *, reach: float | None = None) -> RuleSet:
        """Shorten all bounds to the fewest digits with which conditions hold for the same rows.

        Use it before rules are displayed or exported: ``x ≤ 2.449999988`` becomes ``x ≤ 2`` if no
        row of `X` lies between these bounds.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            Rows for which the truth of every condition must not change, usually the training rows.
        reach : float, optional
            Largest change of a bound, such as 0.001, as a share of the range of the bounded values
            in X. By default, only the values in X limit the change.

        Returns
        -------
        RuleSet
            The rules with shorter bounds in intervals and linear conditions, including those in
            M-of-N conditions. Coefficients, outputs and the domain are unchanged.

        Raises
        ------
        ValueError
            If X has no rows or lacks features of the rules, or `reach` is negative.

        Notes
        -----
        A bound gets the fewest possible decimals; a whole number gets the fewest digits before its
        trailing zeros. Among equally short numbers, the nearest is used. A bound does not change if
        no shorter number is possible or X holds no numbers in the column.

        Equal bounds of a feature remain equal and other bounds keep their order, so boxes touch,
        overlap or are separate as before. If the nearest rule predicts uncovered rows, bounds move
        less far, so that these predictions for X do not change either.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.449999988)], "setosa"),
        ...      Rule([Interval(0, lower=2.449999988)], "other")],
        ...     ["petal length (cm)"], task="classification",
        ... )
        >>> print(rules.shorten([[1.4], [1.9], [3.0], [5.1]]))
        1. IF petal length (cm) ≤ 2 THEN setosa
        2. ELSE IF petal length (cm) > 2 THEN other
        >>> rules.shorten([[2.41], [2.46], [5.1]])[0].conditions[0].upper
        2.45
        """
        from skescore.rules.exporters import shorten_numbers

        return shorten_numbers(self, X, reach)

    @overload
    def explain(self, x: Mapping[str, Any] | pd.Series) -> Explanation: ...
    @overload
    def explain(self, x: Any) -> Any: ...
    def explain(self, x: Any) -> Any:
        r"""Explain the prediction for one row, or for each of several rows.

        The explanation lists the rules that hold, the source of the prediction, and a small change
        of the row that changes the prediction (a counterfactual).

        Parameters
        ----------
        x : mapping, sequence, Series, array-like or DataFrame
            Values of one row by feature name or in the order of the features, or several rows.

        Returns
        -------
        Explanation or list of Explanation
            A list if x holds several rows.

        Raises
        ------
        ValueError
            If x holds no row or lacks features, or no rule holds and there is no fallback.

        Notes
        -----
        The distance of a change is :math:`\sum_j |x'_j - x_j| / r_j`, where :math:`r_j` is the
        range of the feature in the domain, or 1 without a domain. A changed category and a filled
        missing value each have the distance 1. Three kinds of changes are tried: all changes of one
        feature that affect an interval or a list of values; the smallest change that satisfies each
        rule; and, if none of these suffices, pairs of them. No changes are derived from linear
        conditions. In regression, a prediction counts as changed if it comes from other rules and
        differs by more than rounding errors. New values lie slightly inside open bounds and have
        few digits.

        References
        ----------
        S. Wachter, B. Mittelstadt, C. Russell: Counterfactual explanations without opening the
        black box. Harvard Journal of Law & Technology 31(2), 2018.

        Examples
        --------
        >>> from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.5)], "setosa"), Rule([Interval(1, 1.75)], "virginica")],
        ...     ["length", "width"], task="classification", domain=Domain((1, 0), (7, 2.5)),
        ...     fallback=Fallback("versicolor"),
        ... )
        >>> print(rules.explain({"length": 4.5, "width": 1.5}))
        prediction: versicolor, by the fallback, because no rule holds
        nearest other prediction: virginica, by rule 2, if
          width were 1.76 instead of 1.5
        """
        from skescore.rules._explanation import explain

        return explain(self, x)

    def domain_around(self, X: Any, sample_weight: Any = None) -> Domain:
        """Return the domain around rows, with a margin of 1e-9 of each feature's range.

        Use it for rules of other libraries, which do not store the range of their training rows:
        ``rules.replace(domain=rules.domain_around(X))``.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, at least one. Missing and infinite values are ignored.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows for the shares of missing values. Rows with weight 0 are ignored.

        Returns
        -------
        Domain
            The domain. Columns of text, and columns that rules compare with lists of values, are
            categorical.

        Raises
        ------
        ValueError
            If X has no rows, all weights are 0, or rules compare a column of text with numbers.

        Examples
        --------
        >>> import pandas as pd
        >>> from skescore.rules import OneOf, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([OneOf(1, ["red"])], "a")], ["size", "color"], task="classification"
        ... )
        >>> X = pd.DataFrame({"size": [1.0, 3.0], "color": ["red", "blue"]})
        >>> rules.domain_around(X).categories
        ((1, ('blue', 'red')),)
        """
        return domain_around(self, X, sample_weight)

    def to(self, language: str, **options: Any) -> Any:
        """Write the rules in the given language or format.

        Parameters
        ----------
        language : str
            One of ``"text"``, ``"sentences"``, ``"tree"``, ``"markdown"``, ``"html"``,
            ``"prolog"``, ``"sql"``, ``"python"``, ``"javascript"``, ``"java"``, ``"onnx"``,
            ``"pmml"``, ``"dmn"``, ``"excel"``, ``"excel-formula"``, ``"dbt"``, ``"csv"`` and
            ``"json"``.
        **options
            Parameters of the corresponding method, such as :meth:`to_sql`, or function in
            :mod:`skescore.rules.exporters`, such as :func:`~skescore.rules.exporters.to_onnx`.

        Returns
        -------
        str or bytes
            The rules; bytes for ``"onnx"`` and ``"excel"``.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rule = Rule([Interval(0, upper=2.5)], "small")
        >>> rules = RuleSet([rule], ["size"], task="classification")
        >>> print(rules.to("sentences"))
        1. If size is at most 2.5, then the prediction is small.
        """
        from skescore._rule_writers import RULE_WRITERS

        check_choice("language", language, RULE_WRITERS)
        return RULE_WRITERS[language].write(self, **options)

    def to_text(self, limit: int | None = None) -> str:
        """Write the rules, one per line, numbered from 1.

        Parameters
        ----------
        limit : int, optional
            Largest number of rules to write; the number of further rules is stated after them. By
            default, all rules are written.
        """
        return to_text(self, limit)

    def line(self, position: int) -> str:
        """Write one rule as in :meth:`to_text`.

        Parameters
        ----------
        position : int
            Index of the rule, from 0.

        Returns
        -------
        str
            The line without its number, such as ``ELSE IF age > 30 THEN yes   [12 rows]``.
        """
        return line(self, range(len(self))[position])

    def to_sentences(self) -> str:
        """Write a rule set as English sentences, one rule per line.

        Use it for readers who prefer sentences to formulas, or to read rules aloud.

        Returns
        -------
        str
            The numbered rules. Further lines describe the voting and the fallback, if any.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet, RuleStatistics
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0))),
        ...      Rule([Interval(0, 4, 6), OneOf(1, ["red", "blue"])], "rose", RuleStatistics(1))],
        ...     ["petal length", "color"],
        ...     task="classification",
        ...     classes=["setosa", "rose"],
        ...     fallback=Fallback("rose"),
        ... )
        >>> print(rules.to_sentences())
        1. If petal length is at most 2.45, then the prediction is setosa. (50 rows, all of this
        class) 2. Otherwise, if petal length is above 4 and at most 6, and (color is blue or red),
        then the prediction is rose. (1 row)
        Where no rule holds, the prediction is rose.
        """
        from skescore.rules.exporters import to_sentences

        return to_sentences(self)

    def to_tree_text(self, *, number: NumberFormat | None = None) -> str:
        """Write a rule set as an indented tree.

        Use it for rules that share conditions, such as those of a tree: each is written once.

        Parameters
        ----------
        number : callable, optional
            Function that formats a bound, given the index of the feature and the bound. By default
            bounds are exact, with the fewest digits that identify the float.

        Returns
        -------
        str
            One line per condition and output, indented below the conditions that it requires.

        Raises
        ------
        ValueError
            If the rules vote, which a tree cannot express.

        Notes
        -----
        Disjoint rules are written as a tree that separates them, regardless of their order. Other
        rules are written by priority, and neighbors share their first conditions. The prediction is
        then the first output whose conditions all hold; the first line of the text states this.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore.rules import as_ruleset
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
        >>> print(as_ruleset(tree).shorten(X, reach=0.001).to_tree_text())
        |--- petal width (cm) <= 0.8
        |   |--- class: 0   (50 rows, 100 % right (data))
        |--- petal width (cm) > 0.8
        |   |--- petal width (cm) <= 1.75
        |   |   |--- class: 1   (54 rows, 91 % right (data))
        |   |--- petal width (cm) > 1.75
        |   |   |--- class: 2   (46 rows, 98 % right (data))
        """
        from skescore.rules.exporters import to_tree_text

        self.check_one_rule_per_row("A tree")
        return to_tree_text(self, plain_number if number is None else number)

    def to_markdown(self) -> str:
        """Write a rule set as a Markdown table with a caption.

        Use it for README files, issues and notebooks.

        Returns
        -------
        str
            A caption and a table with one row per rule, escaped for Markdown and HTML.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, Rule, RuleSet, RuleStatistics
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.5)], "setosa", RuleStatistics(50, (50, 0))),
        ...      Rule([Interval(0, lower=5)], "virginica", RuleStatistics(40, (0, 40)))],
        ...     ["petal length (cm)"],
        ...     task="classification",
        ...     fallback=Fallback("setosa"),
        ... )
        >>> print(rules.to_markdown())
        2 rules; the first that holds gives the prediction; otherwise, where no rule holds: setosa
        <BLANKLINE>
        | Rule | Premise | Conclusion | Seen |
        | ---: | --- | --- | --- |
        | 1 | if petal length (cm) ≤ 2.5 | setosa | 50 rows, 100 % of this class |
        | 2 | else if petal length (cm) &gt; 5 | virginica | 40 rows, 100 % of this class |
        <BLANKLINE>
        """
        from skescore.rules.exporters import to_markdown

        return to_markdown(self)

    def to_html(
        self, *, standalone: bool = False, title: str | None = None, limit: int | None = None
    ) -> str:
        """Write the rules as an HTML table for notebooks, or as a complete page.

        Parameters
        ----------
        standalone : bool, default=False
            Whether to write a complete page, which needs neither scripts nor network access.
        title : str, optional
            Title of the page; by default a description of the rules.
        limit : int, optional
            Largest number of rules to write; the number of further rules is stated after them. By
            default, all rules are written.

        Returns
        -------
        str
            The HTML. Names and labels are escaped.
        """
        from skescore.rules.exporters import to_html

        return to_html(self, limit, standalone=standalone, title=title)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Return the first rules; ``str`` and :meth:`to_text` return all."""
        kind = "ordered" if self.ordered else "unordered"
        return (
            f"<RuleSet: {len(self)} {kind} rule{'' if len(self) == 1 else 's'} "
            f"for {self.task} on {self.n_features} feature{'' if self.n_features == 1 else 's'}>\n"
            f"{self.to_text(_SHOWN_RULES)}"
        )

    def _repr_html_(self) -> str:
        from skescore.rules.exporters._html import rules_view

        return rules_view(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the rules as a pandas DataFrame, one row per rule.

        Returns
        -------
        pandas.DataFrame
            Indexed by rule number from 1, with the columns ``premise``, ``output``, ``conditions``
            (their number) and ``rows``. In classification, ``purity`` is the share of the rule's
            class among the labels of the `reference`, and ``correctness`` its share in the target,
            if the target was counted separately. In regression, further columns are ``mean`` and
            ``standard_deviation`` of the labels, ``model_error`` and ``target_error``.
        """
        from skescore.rules.exporters import to_frame

        return to_frame(self)

    def to_conditions(self) -> pd.DataFrame:
        """Write a rule set as a table with one row per condition.

        Returns
        -------
        pandas.DataFrame
            Table with the columns ``rule`` (number from 1), ``feature``, ``operator`` (``<``,
            ``<=``, ``>``, ``>=``, ``=``, ``in`` or ``not in``, each optionally followed by ``or
            missing``; ``is missing`` or ``is known``), ``value``, ``class`` or ``number`` (the
            output), ``rows`` if they were counted, and ``weight`` if rules predict together. A rule
            that always holds has one row without a feature. The fallback is the rule ``otherwise``.

        Raises
        ------
        ValueError
            If a condition, output or fallback cannot be written in a cell.

        Notes
        -----
        The table contains neither the domain, nor the class counts, nor whether rules are ordered;
        :func:`skescore.rules.importers.read_table` has parameters for the domain and the order.
        JSON is lossless.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, 1, 2), OneOf(1, ["red"])], "a")], ["size", "color"],
        ...     task="classification", fallback=Fallback("b"),
        ... )
        >>> print(rules.to_conditions().to_csv(index=False).strip())
        rule,feature,operator,value,class
        1,size,>,1.0,a
        1,size,<=,2.0,a
        1,color,in,"[""red""]",a
        otherwise,,,,b
        """
        from skescore.rules.exporters import to_conditions

        return to_conditions(self)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write the rule set as lossless JSON; see :meth:`from_json`.

        Parameters
        ----------
        indent : int or None, default=2
            Number of spaces per level; None writes one line.

        Raises
        ------
        ValueError
            If conditions are nested so deeply that :meth:`from_json` would reject them.
        """
        return ruleset_to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> RuleSet:
        """Read the output of :meth:`to_json`, without running code.

        Raises
        ------
        ValueError
            If the text is invalid; the message states the location of the error.
        """
        return ruleset_from_json(cls, text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the rule set as lossless JSON, which :meth:`load` reads.

        Parameters
        ----------
        path : str or path-like
            The file. An existing file is replaced atomically.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet([Rule([Interval(0, upper=2)], "a")], ["size"], task="classification")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rules.save(Path(folder) / "rules.json")
        ...     RuleSet.load(Path(folder) / "rules.json") == rules
        True
        """
        write_atomically(Path(path), self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RuleSet:
        """Read a file that :meth:`save` or ``skescore tune`` wrote, without running code.

        Parameters
        ----------
        path : str or path-like
            The file, or the output folder of ``skescore tune``, which contains ``rules.json``.

        Returns
        -------
        RuleSet
            The rules.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file contains something else; the message names a function that reads it, if any.
        """
        file = expand_home(path)
        if (file / "rules.json").is_file():
            file /= "rules.json"
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no file {file}; pass a file of rules.") from None
        except IsADirectoryError:
            raise ValueError(f"{file} is a folder without rules.json; pass a file.") from None
        if content[:1] == b"\x80" or content[:2] == b"PK":  # a pickle, or a ZIP file of skops
            raise ValueError(
                f"{file} holds a saved model, not rules. Load it with the tool that saved it, or "
                "skescore.black_boxes.load_black_box, and pass it to skescore.as_ruleset."
            )
        try:
            return cls.from_json(content.decode("utf-8-sig"))
        except ValueError as error:
            raise ValueError(
                f"{file} was not written by RuleSet.save: {error} Read rules of other tools with "
                "skescore.as_ruleset, or on the command line with skescore import."
            ) from error

    def to_python(self, *, function_name: str = "predict", X: Any = None) -> str:
        """Write a rule set as the source of a Python function without dependencies.

        Use it to predict where skescore is not installed. The function predicts one row exactly
        like :meth:`predict`.

        Parameters
        ----------
        function_name : str, default="predict"
            Name of the function.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which bounds are shortened, see :meth:`shorten`; by default bounds are exact.

        Returns
        -------
        str
            Source for Python 3.10 or newer. The function takes one row: a mapping from feature
            names to values (a dict, a row of a data frame), which may contain further names, or a
            sequence of all values in the order of the features. It returns a label or a float.

        Raises
        ------
        ValueError
            If `function_name` is not a valid name in Python.

        Notes
        -----
        A missing value (None or NaN) satisfies only conditions that include it. For an uncovered
        row without a fallback, the function raises a ValueError, like `RuleSet.predict`. Sums are
        computed in the same order, so numbers are identical. The function accepts all numbers that
        `float` accepts; category values must have the same type as in the rules.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.5)], "setosa"),
        ...      Rule([Interval(0, lower=5)], "virginica")],
        ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
        ... )
        >>> source = rules.to_python()
        >>> print(source[source.index("    # Rule 1"):].rstrip())
            # Rule 1
            if petal_length_cm <= 2.5:
                return "setosa"
            # Rule 2
            if petal_length_cm > 5.0:
                return "virginica"
            # No rule holds.
            return "versicolor"
        """
        from skescore.rules.exporters import to_python

        return to_python(self if X is None else self.shorten(X), function_name)

    def to_sql(
        self,
        *,
        dialect: str | None = None,
        table: str | Sequence[str] | None = None,
        X: Any = None,
        kind: str = "predict",
        output_name: str | None = None,
        columns: Mapping[str, str] | None = None,
        booleans: Sequence[str] | None = None,
        exact: bool = False,
    ) -> str:
        """Write a rule set as a ``CASE`` expression, or as a query that predicts a table.

        Use it to predict, or to count the rows of each rule, in a database such as DuckDB,
        PostgreSQL, SQLite, Spark or a data warehouse.

        Parameters
        ----------
        dialect : str, optional
            ``"duckdb"``, ``"postgres"`` and ``"sqlite"`` are written directly; other dialects of
            sqlglot (``"spark"``, ``"bigquery"``, ``"snowflake"``, ``"tsql"``, ``"mysql"``,
            ...) require the extra ``sql``. By default, standard SQL is written.
        table : str or sequence of str, optional
            Table to query, or its path such as ``("schema", "table")``. By default only the
            expression is written, which can be used in any query.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which bounds are shortened, see :meth:`shorten`; by default bounds are exact.
        kind : {"predict", "assign"}, default="predict"
            ``"predict"`` returns the prediction, and ``"assign"`` the number of the assigned rule
            from 1 (NULL if no rule holds), for rule sets without voting.
        output_name : str, optional
            Name of the added column, by default ``"prediction"`` or ``"rule"``; requires `table`.
        columns : mapping of str to str, optional
            Column names by feature name, for features that have other names in the table.
        booleans : sequence of str, optional
            Features with BOOLEAN columns. Because few databases compare these with numbers, they
            are converted to 0 and 1 in conditions such as ``smoker > 0.5``. Other columns are
            compared with 1 and 0 instead of True and False. By default, in databases that do not
            compare the two types (such as PostgreSQL), columns are assumed to be BOOLEAN if rules
            compare them only with True and False.
        exact : bool, default=False
            Whether columns may contain NaN in addition to NULL, or have 32 bits (FLOAT, REAL).
            False: write plain comparisons such as ``"age" > 30.5``, which are readable and allow
            databases to use indices. They are correct for DOUBLE, DECIMAL and integer columns whose
            missing values are NULL. But NaN satisfies ``>`` in databases that sort NaN above all
            numbers, and DuckDB rounds bounds to the 32 bits of a FLOAT column.

        Returns
        -------
        str
            The expression or query, without a semicolon.

        Raises
        ------
        ValueError
            If the dialect is unknown; if a name, label or number cannot be written in it; if two
            features have the same column; if outputs have different types; if the fallback is the
            nearest rule; or, for ``kind="assign"``, if the rules vote.
        ImportError
            If the dialect requires sqlglot, which is not installed.

        Notes
        -----
        NULL and the floating-point NaN are missing values, which satisfy only ``or missing`` and
        ``is missing``. Many databases sort NaN above all numbers; with ``exact=True``, ``x > 2.5``
        is then written as ``0e0 - x < -2.5e0``, which NaN does not satisfy. Uncovered rows get the
        fallback's prediction. It is NULL if there is no fallback, or if rules for regression
        abstain. The prediction is also NULL if a linear output depends on a missing value.

        Outputs and summands have an exponent (``2.5e0``), which makes them floating-point numbers
        in standard SQL. The same is true of bounds with more than 15 digits and, with
        ``exact=True``, of all bounds that are not whole. Rules compare DECIMAL and BIGINT columns
        as DOUBLE; in a database that compares them exactly, a value with more than 15 digits may
        fall on the other side of a bound close to it. Columns that rules compare with numbers must
        be numeric or listed in `booleans`. The database must treat texts as equal only if they are
        identical; choose a binary collation in MySQL and SQL Server.

        Additions have the order of :meth:`predict`, so sums are identical. Sums of more than 900
        rules are added in blocks, because databases limit the depth of expressions, and may differ
        in the last digit. PostgreSQL, MySQL and SQL Server raise an error if a sum or product
        overflows or underflows. If infinite weights that depend on the row cancel, only DuckDB and
        PostgreSQL count the vote like NumPy.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.5)], "setosa"),
        ...      Rule([Interval(0, 4.5, 7)], "virginica")],
        ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
        ... )
        >>> print(rules.to_sql())
        CASE
          WHEN "petal length (cm)" <= 2.5 THEN 'setosa'
          WHEN "petal length (cm)" > 4.5 AND "petal length (cm)" <= 7 THEN 'virginica'
          ELSE 'versicolor'
        END

        A query that counts the rows that each rule predicts (NULL: uncovered):

        >>> names = {"petal length (cm)": "length"}
        >>> inner = rules.to_sql(kind="assign", table="iris", columns=names)
        >>> print(f"SELECT rule, COUNT(*) FROM ({inner}) AS predicted GROUP BY rule")
        SELECT rule, COUNT(*) FROM (SELECT *, CASE
          WHEN "length" <= 2.5 THEN 1
          WHEN "length" > 4.5 AND "length" <= 7 THEN 2
        END AS "rule" FROM "iris") AS predicted GROUP BY rule
        """
        from skescore.rules.exporters import to_sql

        return to_sql(
            self if X is None else self.shorten(X),
            dialect=dialect,
            table=table,
            kind=kind,
            output_name=output_name,
            columns=columns or {},
            booleans=booleans,
            exact=exact,
        )

    def to_prolog(
        self,
        *,
        predicate: str = "prediction",
        missing: Sequence[str] = ("null", "nan"),
        X: Any = None,
    ) -> str:
        """Write a rule set as a Prolog theory.

        Use it to reason about rules, or to pass them to a system that reads Prolog.

        Parameters
        ----------
        predicate : str, default="prediction"
            Name of the predicate, whose arguments are the features, in order, and the prediction.
            The names of helper predicates for voting begin with the same name.
        missing : sequence of str, default=("null", "nan")
            Atoms that stand for a missing value.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which bounds are shortened, see :meth:`shorten`; by default bounds are exact.

        Returns
        -------
        str
            A comment with the features and an example query, followed by the clauses.

        Raises
        ------
        TypeError
            If `predicate` is not text, or `missing` is not a sequence of texts.
        ValueError
            If `predicate` is not a plain atom, the fallback is the nearest rule, two different
            labels or values would be the same in Prolog, a text cannot be written as UTF-8, or
            there are more features than a predicate may have arguments.

        Notes
        -----
        - Texts are atoms, True and False are ``true`` and ``false``. A feature that rules compare
          with numbers must be a number (1 or 0 for truth values); other values count as missing.
        - A missing value satisfies only conditions that include it. If an output depends on a
          missing value, the prediction is ``nan``.
        - The first clause whose conditions hold predicts, even if the query contains a prediction.
          Rules of unordered sets are written by priority. Without a fallback, the query fails if
          no rule holds.
        - Code is plain ASCII (except for rare characters such as emoji), so atoms are the same in
          every locale; only comments contain other letters.
        - SWI-Prolog computes with floats like Python, so predictions are bit-identical; it raises
          an error if a sum overflows. tuProlog computes with decimals: pass numbers in the shortest
          form, like Python's repr. Its sums of features or weights may differ in the last digits.

        Examples
        --------
        >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=2.5)], "setosa"),
        ...      Rule([Interval(0, lower=5)], "virginica")],
        ...     ["petal length (cm)"],
        ...     task="classification",
        ...     fallback=Fallback("versicolor"),
        ... )
        >>> print(rules.to_prolog())
        % 2 rules for classification; the first that holds gives the prediction.
        % prediction(Petal_length_cm, Output) takes the features in this order:
        %   Petal_length_cm  number  petal length (cm)
        % A missing value is null or nan; it satisfies only conditions that accept it.
        % Example:
        %   ?- prediction(0.0, Output).
        <BLANKLINE>
        % 1. IF petal length (cm) =< 2.5 THEN setosa
        prediction(Petal_length_cm, Output) :-
            number(Petal_length_cm), Petal_length_cm =< 2.5,
            !, Output = setosa.
        % 2. ELSE IF petal length (cm) > 5 THEN virginica
        prediction(Petal_length_cm, Output) :-
            number(Petal_length_cm), Petal_length_cm > 5.0,
            !, Output = virginica.
        % otherwise, where no rule holds
        prediction(_, versicolor).
        <BLANKLINE>
        """
        from skescore.rules.exporters import to_prolog

        return to_prolog(self if X is None else self.shorten(X), predicate, missing)


def _check_classes(task: str, classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Return the checked class labels; None in regression."""
    if task == "regression":
        if classes is not None:
            raise ValueError("classes are for classification; pass classes=None for regression.")
        return None
    listed = check_sequence("classes", classes, "labels")
    labels = tuple(check_label("classes", label) for label in listed)
    if len(set(labels)) != len(labels):
        raise ValueError(f"classes must differ from each other, got {list(labels)}.")
    return labels
