"""Rule sets: the language that extractors, metrics, scorers and exporters share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from skescore._validation import check_flag, check_label, label_order
from skescore.rules import _json as json_format
from skescore.rules import _prediction as answers
from skescore.rules._arrays import BoxTable, Conclusions
from skescore.rules._columns import Table
from skescore.rules._domain import Domain, Fallback
from skescore.rules._matching import Matcher
from skescore.rules._prediction import check_voting
from skescore.rules._rule import LinearOutput, Rule, check_rules
from skescore.rules._text import NumberFormat
from skescore.rules.exporters import _text as exporters
from skescore.rules.simplification import _exact as simplification

if TYPE_CHECKING:
    from skescore.rules._explanation import Explanation


# --- what a rule set is told beside its rules, checked -------------------------------------------

TASKS = ("classification", "regression")


def checked_settings(
    *,
    feature_names: Sequence[str],
    task: str,
    classes: Sequence[Any] | None,
    domain: Domain | None,
    ordered: bool,
    disjoint: bool,
    fallback: Fallback | None,
    voting: str | None,
) -> dict[str, Any]:
    """Give the settings of a rule set in the form in which it keeps them.

    The parameters are those of :class:`~skescore.rules.RuleSet`; `classes` must be there for
    classification.

    Raises
    ------
    TypeError, ValueError
        If one cannot be used, or two do not go together.
    """
    if isinstance(feature_names, str):
        raise TypeError(f"feature_names must be a sequence of names, got {feature_names!r}.")
    names = tuple(str(name) for name in feature_names)
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    if len(set(names)) != len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"feature_names must differ from each other, got {twice} twice.")
    if not isinstance(domain, Domain | None):
        raise TypeError(f"domain must be a Domain or None, got {domain!r}.")
    if not isinstance(fallback, Fallback | None):
        raise TypeError(f"fallback must be a Fallback or None, got {fallback!r}.")
    if domain is not None and len(domain.lower) != len(names):
        raise ValueError(
            f"domain has {len(domain.lower)} features, feature_names has {len(names)}."
        )
    labels = _labels(task, classes)
    if fallback is not None:
        fallback.check(labels)
    ordered, disjoint = check_flag("ordered", ordered), check_flag("disjoint", disjoint)
    voting = check_voting(voting, task, ordered=ordered)
    if voting is not None and fallback is not None and fallback.policy == "nearest":
        raise ValueError(
            f"A fallback by policy='nearest' lets one rule answer, which does not go with "
            f"voting={voting!r}: choose policy='default' or 'abstain'."
        )
    return {
        "feature_names": names,
        "task": task,
        "classes": labels,
        "domain": domain,
        "ordered": ordered,
        "disjoint": disjoint,
        "fallback": fallback,
        "voting": voting,
    }


def _labels(task: str, classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if task != "classification":
        if classes is not None:
            raise ValueError("classes belong to classification; pass classes=None for regression.")
        return None
    if classes is None or isinstance(classes, str):
        raise TypeError(f"classes must be a sequence of labels, got {classes!r}.")
    labels = tuple(check_label("classes", c) for c in classes)
    if len(set(labels)) != len(labels):
        raise ValueError(f"classes must differ from each other, got {list(labels)}.")
    return labels


# --- the ways a rule set can be read: by people, programs and databases --------------------------

#: Longer rule sets are cut short where an interpreter or notebook shows them unasked.
_SHOWN_RULES = 60


class Readable:
    """What :class:`~skescore.rules.RuleSet` can be written as; it is the only subclass."""

    @property
    def _whole(self) -> RuleSet:
        return cast("RuleSet", self)

    @cached_property
    def number(self) -> NumberFormat:
        """Writes bounds with a precision that follows the domain, different ones differently."""
        return exporters.number_for(self._whole)

    # --- people ------------------------------------------------------------------------------

    def to_text(self) -> str:
        """Write the rules, one per line, numbered from 1."""
        return exporters.to_text(self._whole)

    def line(self, position: int) -> str:
        """Write one rule, as it stands in :meth:`to_text`.

        Parameters
        ----------
        position : int
            Index of the rule, from 0.

        Returns
        -------
        str
            One line without its number, such as ``ELSE IF age > 30 THEN yes   [12 rows]``.
        """
        return exporters.line(self._whole, range(len(self._whole))[position])

    def to_sentences(self) -> str:
        """Write the rules as English sentences, one per line, numbered from 1."""
        from skescore.rules.exporters._sentences import to_sentences

        return to_sentences(self._whole)

    def to_tree_text(self) -> str:
        """Write the rules as an indented tree, as scikit-learn's ``export_text`` does.

        Returns
        -------
        str
            Rules that begin alike share their branches.

        Raises
        ------
        ValueError
            If all rules that hold answer together, which no tree can say.
        """
        from skescore.rules.exporters._tree import to_tree_text

        return to_tree_text(self._whole)

    def to_markdown(self) -> str:
        """Write the rules as a Markdown table."""
        from skescore.rules.exporters._markdown import to_markdown

        return to_markdown(self._whole)

    def to_html(self, *, standalone: bool = False, title: str | None = None) -> str:
        """Write the rules as an HTML table.

        Parameters
        ----------
        standalone : bool, default=False
            True writes a whole page, with its style and without scripts.
        title : str, optional
            Title of the page.
        """
        return exporters.to_html(self._whole, standalone=standalone, title=title)

    # --- tables ------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """Give the rules as a pandas DataFrame, one row per rule.

        Returns
        -------
        pandas.DataFrame
            Indexed by rule number from 1, with the columns ``premise``, ``output``,
            ``conditions``, ``rows`` and ``purity`` (classification) or ``mean`` and ``spread``.
        """
        return exporters.to_frame(self._whole)

    def to_conditions(self) -> Any:
        """Give the rules as a pandas DataFrame, one row per condition.

        Returns
        -------
        pandas.DataFrame
            With the columns ``rule``, ``feature``, ``operator``, ``value``, ``class`` (``number``
            in a regression) and, where rules have them, ``weight`` and ``rows``;
            :func:`skescore.as_ruleset` reads it back.

        Raises
        ------
        ValueError
            If a condition or output needs more than one cell (M-of-N, sums of features); JSON
            holds everything.
        """
        from skescore.rules.exporters._table import to_conditions

        return to_conditions(self._whole)

    # --- programs ----------------------------------------------------------------------------

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write everything as JSON, without loss; see :meth:`RuleSet.from_json`.

        Parameters
        ----------
        indent : int or None, default=2
            Spaces per level; None writes one line.
        """
        return json_format.to_json(self._whole, indent=indent)

    def to_python(self, *, function_name: str = "predict", X: Any = None) -> str:
        """Write a Python function that answers rows and needs nothing but Python.

        Parameters
        ----------
        function_name : str, default="predict"
            Name of the function.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.

        Returns
        -------
        str
            The source code.
        """
        from skescore.rules.exporters._python import to_python

        return to_python(self._whole, function_name=function_name, X=X)

    def to_sql(
        self,
        *,
        dialect: str | None = None,
        table: str | Sequence[str] | None = None,
        X: Any = None,
        kind: str = "predict",
        output_name: str | None = None,
        columns: Mapping[str, str] | None = None,
        booleans: Sequence[str] = (),
        nan: bool = True,
    ) -> str:
        """Write the answer as an SQL expression, or as a query on a table.

        Parameters
        ----------
        dialect : str, optional
            A dialect that sqlglot knows, such as ``"postgres"``; standard SQL by default.
        table : str or sequence of str, optional
            Name or path of a table; gives a whole SELECT rather than an expression.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.
        kind : {"predict", "assign"}, default="predict"
            The answer, or the number of the answering rule.
        output_name : str, optional
            Name of the added column, by default ``"prediction"`` or ``"rule"``. Needs `table`.
        columns : mapping of str to str, optional
            Names of the table's columns for features that are called otherwise there.
        booleans : sequence of str, default=()
            Features whose columns are BOOLEAN where rules compare them with numbers.
        nan : bool, default=True
            Whether columns may hold NaN besides NULL. False writes plain comparisons.

        Returns
        -------
        str
            The SQL; :func:`skescore.rules.exporters._sql.to_sql` says more of it.
        """
        from skescore.rules.exporters._sql import to_sql

        return to_sql(
            self._whole,
            dialect=dialect,
            table=table,
            X=X,
            kind=kind,
            output_name=output_name,
            columns=columns,
            booleans=booleans,
            nan=nan,
        )

    def to_prolog(
        self,
        *,
        predicate: str = "prediction",
        missing: Sequence[str] = ("null", "nan"),
        X: Any = None,
    ) -> str:
        """Write a Prolog theory.

        Parameters
        ----------
        predicate : str, default="prediction"
            Name of the predicate, which takes the features in order and the answer.
        missing : sequence of str, default=("null", "nan")
            Atoms that stand for missing values.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.

        Returns
        -------
        str
            The clauses, for any standard Prolog.
        """
        from skescore.rules.exporters._prolog import to_prolog

        return to_prolog(self._whole, predicate=predicate, missing=missing, X=X)

    def shorten(self, X: Any) -> RuleSet:
        """Write bounds with fewer digits, as long as no rule changes on any of the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, usually those of the training.

        Returns
        -------
        RuleSet
            The same rules with the shortest bounds for which every condition holds on the same
            rows of X as before.
        """
        from skescore.rules.exporters._rounding import shorten_numbers

        return shorten_numbers(self._whole, X)

    # --- answers -----------------------------------------------------------------------------

    def explain(self, x: Any) -> Explanation:
        """Tell why a row is answered as it is, and what would change the answer.

        Parameters
        ----------
        x : sequence, mapping, or frame of one row
            The row.

        Returns
        -------
        Explanation
            The rules that hold, who answers, and the nearest change of the row that the rules
            answer otherwise; ``print`` it. See :func:`skescore.rules._explanation.explain`.
        """
        from skescore.rules._explanation import explain

        return explain(self._whole, x)

    def with_weights(self, measure: Any, X: Any, y: Any, **options: Any) -> RuleSet:
        """Let all rules that hold vote, each with the weight that a measure gives it.

        Parameters
        ----------
        measure : str or Measure
            A measure of single rules, such as ``"c2"``; see :data:`skescore.metrics.MEASURES`.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows to measure on.
        y : array-like of shape (n_rows,)
            Their labels.
        **options
            See :func:`skescore.selection.with_weights`.

        Returns
        -------
        RuleSet
            The rules, unordered and with weights.
        """
        # The one look upwards: a measure is asked for by name where the rules are at hand.
        from skescore.selection._weighting import with_weights

        return with_weights(self._whole, measure, X, y, **options)

    # --- shown unasked -----------------------------------------------------------------------

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Some of the rules; ``str`` and :meth:`to_text` give all."""
        me = self._whole
        kind = "ordered" if me.ordered else "unordered"
        return (
            f"<RuleSet: {len(me)} {kind} rule{'' if len(me) == 1 else 's'} "
            f"for {me.task} on {me.n_features} feature{'' if me.n_features == 1 else 's'}>\n"
            f"{exporters.to_text(me, limit=_SHOWN_RULES)}"
        )

    def _repr_html_(self) -> str:
        return exporters.to_html(self._whole, limit=_SHOWN_RULES)


# --- Rule sets: the language that extractors, metrics, scorers and exporters share ---------------


class RuleSet(Readable, Sequence[Rule]):
    """An immutable list of rules with all that is needed to answer by them.

    Parameters
    ----------
    rules : iterable of Rule
        The rules, in order.
    feature_names : sequence of str of length n_features
        Name of each column.
    task : {"classification", "regression"}
        Whether outputs are class labels or numbers.
    classes : sequence of str, int, float or bool, optional
        The class labels, in the order of the statistics' class counts. By default the sorted
        outputs of the rules. Classification only.
    domain : Domain, optional
        The box in which the rules are meant to answer; needed for completeness by volume.
    ordered : bool, default=True
        True: the first rule that holds answers. False: rules stand by themselves, and where
        several hold the purest answers (then the one with most rows, then the first).
    disjoint : bool, default=False
        Declares that no two rules ever hold together, which makes volumes cheap.
    fallback : Fallback, optional
        What to say where no rule holds. Without it :meth:`predict` raises a ValueError there.
    voting : {"votes", "shares", "logistic", "mean", "sum"}, optional
        How all rules that hold answer together, each with its weight; None lets one rule answer.
        Needs ``ordered=False``. Classification: ``"votes"`` adds each rule's weight to its class,
        ``"shares"`` divides the weight by the rule's class counts, ``"logistic"`` adds like
        ``"votes"`` but means log odds; the greatest sum wins, the first class of equal ones.
        Regression: ``"mean"`` is the weighted mean of the outputs, ``"sum"`` their weighted sum.

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
    )
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
    ) -> None:
        rules = tuple(rules)
        for rule in rules:
            if not isinstance(rule, Rule):
                raise TypeError(
                    f"rules must hold Rule objects, got {type(rule).__name__}: {rule!r}. "
                    "Use as_ruleset(...) to turn other libraries' rules into a RuleSet."
                )
        if classes is None and task == "classification":
            outputs = {r.output for r in rules if not isinstance(r.output, LinearOutput)}
            if isinstance(fallback, Fallback):
                outputs.add(fallback.output)
            classes = sorted(outputs, key=label_order)
        self._set(
            rules,
            None,
            None,
            feature_names=feature_names,
            task=task,
            classes=classes,
            domain=domain,
            ordered=ordered,
            disjoint=disjoint,
            fallback=fallback,
            voting=voting,
        )
        check_rules(rules, self.feature_names, self.classes)

    def _set(
        self,
        rules: tuple[Rule, ...] | None,
        boxes: BoxTable | None,
        conclusions: Conclusions | None,
        **settings: Any,
    ) -> None:
        made = {"_rules": rules, "_boxes": boxes, "_conclusions": conclusions}
        for name, value in (made | checked_settings(**settings)).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_boxes(
        cls,
        boxes: BoxTable,
        conclusions: Conclusions,
        feature_names: Sequence[str],
        **settings: Any,
    ) -> RuleSet:
        """Make a rule set from arrays; the Rule objects are only made when they are looked at.

        Parameters
        ----------
        boxes : BoxTable
            One box per rule.
        conclusions : Conclusions
            The output of every rule and what was seen there.
        feature_names : sequence of str
            Name of each column.
        **settings
            The keyword parameters of the class; a classification needs its `classes`.

        Raises
        ------
        ValueError
            If the arrays do not fit each other, the names or the classes.
        """
        self = cls.__new__(cls)
        defaults: dict[str, Any] = {
            "classes": None, "domain": None, "ordered": True, "disjoint": False, "fallback": None,
            "voting": None,
        }  # fmt: skip
        self._set(None, boxes, conclusions, feature_names=feature_names, **(defaults | settings))
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

    # --- immutable, comparable, hashable, picklable ------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A RuleSet cannot be changed; make a new one instead of {name}=...")

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
            self.rules, self.feature_names, self.task, self.classes, self.domain, self.ordered,
            self.disjoint, self.fallback, self.voting,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return self is other or self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    # --- the rules ---------------------------------------------------------------------------

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in order."""
        rules: Iterable[Rule]
        if self._rules is not None:
            rules = self._rules
        else:
            assert self._conclusions is not None
            classes, boxes, made = self.classes, self.boxes, self._conclusions.rule
            rules = (made(i, boxes, classes) for i in range(len(self)))
        return tuple(rule.at_home(self, i) for i, rule in enumerate(rules))

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
        """Return a copy with some parameters of the class changed."""
        settings = {name: getattr(self, name) for name in self._fields[3:]}
        if self._rules is None and not changes.keys() & {"rules", "task", "classes"}:
            return RuleSet.from_boxes(self.boxes, self.conclusions, **(settings | changes))
        return RuleSet(**({"rules": self.rules} | settings | changes))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.feature_names)

    @cached_property
    def n_conditions(self) -> int:
        """Conditions in all rules; a two-sided interval is one."""
        return sum(rule.n_conditions for rule in self.rules)

    @cached_property
    def n_literals(self) -> int:
        """Elementary comparisons in all rules; a two-sided interval is two."""
        return sum(rule.n_literals for rule in self.rules)

    @cached_property
    def boxes(self) -> BoxTable:
        """The interval conditions of all rules as arrays."""
        if self._boxes is not None:
            return self._boxes
        return BoxTable.from_intervals([r.intervals for r in self.rules], self.n_features)

    @cached_property
    def conclusions(self) -> Conclusions:
        """The outputs of all rules as arrays."""
        if self._conclusions is not None:
            return self._conclusions
        return Conclusions.from_rules(self.rules, self.classes)

    @cached_property
    def boxes_only(self) -> bool:
        """Whether every rule is a pure box, so that :attr:`boxes` says it all."""
        return self._rules is None or not any(rule.others for rule in self._rules)

    # --- answering ---------------------------------------------------------------------------

    @cached_property
    def _priority(self) -> np.ndarray:
        """Indices of the rules, the one that answers first in front."""
        if self.ordered or self.disjoint:
            return np.arange(len(self))
        purity = [rule.purity(self._output_index(rule)) or 0.0 for rule in self.rules]
        rows = [rule.statistics.n_rows if rule.statistics else 0 for rule in self.rules]
        return np.lexsort((-np.asarray(rows, float), -np.asarray(purity, float)))

    def _output_index(self, rule: Rule) -> int | None:
        return None if self.classes is None else self.classes.index(rule.output)

    def _matcher(self, order: np.ndarray) -> Matcher:
        others: list[Any] = [()] * len(self)
        if not self.boxes_only:
            others = [self.rules[i].others for i in order]
        return Matcher(self.boxes.take(order), others)

    @cached_property
    def _matcher_in_order(self) -> Matcher:
        return self._matcher(np.arange(len(self)))

    @cached_property
    def _matcher_by_priority(self) -> Matcher:
        if self.ordered or self.disjoint:
            return self._matcher_in_order
        return self._matcher(self._priority)

    def _table(self, X: Any) -> Table:
        return X if isinstance(X, Table) else Table(X, self.feature_names)

    def match(self, X: Any) -> np.ndarray:
        """Tell which rules hold for which rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows. Columns of a frame are found by name. Missing values satisfy no condition.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_rules)
            Whether each rule's premise holds, whatever the order of the rules.
        """
        return self._matcher_in_order.match(self._table(X))

    def covers(self, X: Any) -> np.ndarray:
        """Tell which rows some rule holds for; the fallback does not count.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
        """
        return self._matcher_in_order.covers(self._table(X))

    def assign(self, X: Any) -> np.ndarray:
        """Tell which rule answers each row.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Index of the answering rule, -1 where no rule holds.

        Raises
        ------
        ValueError
            If the rules answer together (:attr:`voting`).
        """
        self.check_one_answers("assign")
        first = self._matcher_by_priority.first(self._table(X))
        if self.ordered or self.disjoint:
            return first
        return np.append(self._priority, -1)[first]

    def check_one_answers(self, purpose: str) -> None:
        """Raise a ValueError where all rules that hold answer together.

        Parameters
        ----------
        purpose : str
            What needs one answering rule per row, to begin the message.
        """
        if self.voting is not None:
            raise ValueError(
                f"{purpose} needs rules of which one answers each row, but in this rule set "
                f"(voting={self.voting!r}) all rules that hold answer together. match(X) and "
                "covers(X) tell which rules hold; replace(voting=None) lets the purest answer."
            )

    def predict(self, X: Any) -> np.ndarray:
        """Answer every row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Class labels or numbers. Rows without a rule get the fallback's answer.

        Raises
        ------
        ValueError
            If some row has no rule and there is no fallback.
        """
        return answers.predict(self, self._table(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class shares of the answering rule.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of :attr:`classes`. A rule without counts is sure of its class; where an
            abstaining rule set has no rule, all classes get the same share.
        """
        if self.classes is None:
            raise AttributeError("predict_proba is for classification; this is a regression.")
        return answers.predict_proba(self, self._table(X))

    # --- fewer words -------------------------------------------------------------------------

    def simplify(self, X: Any = None, tolerance: float = 0.0) -> RuleSet:
        """Say the same with fewer and shorter rules, or nearly the same with fewer still.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which the answers count. Without them every answer on the whole domain does
            (everywhere, for a rule set without a domain).
        tolerance : float, default=0.0
            What may change on the rows: the share of answers (classification), or one minus the R²
            against the answers before (regression). From 0 to less than 1; needs `X` if above 0.

        Returns
        -------
        RuleSet
            Touching boxes of one output are joined; needless rules, conditions and bounds are left
            out. Ordered lists keep their order.

        Raises
        ------
        ValueError
            If the tolerance is out of range or lacks its rows, or all rules answer together.

        Notes
        -----
        Without rows, the same rules answer alike wherever they did, and no row gains or loses an
        answer. A bound at the domain's border goes, so that rules then answer beyond it.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet(
        ...     [Rule([Interval(0, upper=1)], "low"), Rule([Interval(0, 1, 2)], "low"),
        ...      Rule([Interval(0, lower=2)], "high")],
        ...     ["length"], task="classification",
        ... )
        >>> print(rules.simplify())
        1. IF length ≤ 2 THEN low
        2. ELSE IF length > 2 THEN high
        """
        self.check_one_answers("simplify")
        return simplification.simplified(self, X, tolerance)

    # --- files -------------------------------------------------------------------------------

    @classmethod
    def from_json(cls, text: str) -> RuleSet:
        """Read what :meth:`to_json` wrote. Never runs code.

        Raises
        ------
        ValueError
            If the text is not such JSON, naming the place and what was expected.
        """
        return json_format.from_json(text)
