"""Editor of rules: change them by hand, see the effect of each change, and keep a log."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from skescore._validation import check_instance, python_value
from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.constraints import Constraints, UndecidableError, constrain, violations
from skescore.editing._edits import (
    EDITS,
    apply_edit,
    feature_index,
    rule_index,
    rule_to_json,
)
from skescore.editing._effect import Effect, EffectRows
from skescore.editing._log import EditLog, describe_edit, rules_data
from skescore.editing._premises import interval_of
from skescore.editing._refit import Reoptimization, refit
from skescore.editing._suggestions import Suggestion, suggest
from skescore.extractors import Oracle
from skescore.metrics import labels_of_rules
from skescore.optimal import SolverLimits
from skescore.rules import (
    LinearOutput,
    RowTable,
    Rule,
    RuleSet,
    as_ruleset,
    with_statistics,
    with_target,
)


class RuleEditor:
    """Edit rules by hand, measure each edit, and log it.

    Parameters
    ----------
    rules : RuleSet, or any model that :func:`skescore.rules.as_ruleset` reads
        Rules to edit.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows in the units of the rules, from which statistics are counted and new rules extracted.
    y : array-like of shape (n_rows,), optional
        Labels or numbers of these rows in the data.
    black_box : estimator or callable, optional
        Fitted model that the rules explain. Pass it, `y`, or both.
    held_out : tuple of two array-likes, optional
        Rows and labels on which effects are measured; by default X and y. Effects on rows from
        which the rules were extracted are too optimistic for new rows.
    constraints : Constraints, optional
        Constraints that the rules must satisfy; violations are reported with every effect.
    author : str, optional
        Name of the person who edits, for the log.

    Attributes
    ----------
    rules_ : RuleSet
        The current rules.
    log_ : EditLog
        Log of all edits.

    Notes
    -----
    Rules are identified by the number in their text, from 1, and features by name or index. Every
    method that edits rules returns an :class:`Effect`; its parameter `because` states the reason
    for the log.

    Examples
    --------
    >>> from skescore.editing import RuleEditor
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> editor = RuleEditor(rules, [[16], [17], [18], [40]], ["no", "no", "no", "yes"])
    >>> effect = editor.set_bound(1, "age", upper=18, because="the law says 18")
    >>> effect.figures[0].before, effect.figures[0].after
    (0.75, 1.0)
    >>> print(editor.rules_)
    1. IF age ≤ 18 THEN no
    2. ELSE yes
    >>> _ = editor.undo()
    >>> print(editor.rules_[0])
    IF age ≤ 17 THEN no
    """

    def __init__(
        self,
        rules: Any,
        X: Any,
        y: Any = None,
        black_box: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        constraints: Constraints | None = None,
        author: str | None = None,
    ) -> None:
        if y is None and black_box is None:
            raise ValueError(
                "y and black_box are both None. Pass y, a black_box, or both: effects are measured "
                "against labels or predictions."
            )
        check_instance("author", author, str, optional=True)
        ruleset = as_ruleset(rules)
        self._oracle = None if black_box is None else _oracle(black_box, X, ruleset)
        self.training_rows = self._read(ruleset, X, y, "rows used for editing")
        self.rows = self.training_rows
        if held_out is not None:
            self.rows = self._read(ruleset, *held_out, "held-out rows")
        self.author = author
        check_instance("constraints", constraints, Constraints, optional=True)
        self.constraints = constraints
        self.log_ = EditLog(
            ruleset,
            {
                "name": self.rows.name,
                "n_rows": len(self.rows),
                "references": [
                    name
                    for name, values in (("data", self.rows.y), ("model", self.rows.model))
                    if values is not None
                ],
            },
        )

    def _read(self, rules: RuleSet, X: Any, y: Any, name: str) -> EffectRows:
        n_rows = len(RowTable.of(X, rules.feature_names))
        if n_rows == 0:
            raise ValueError(f"The {name} must include at least one row, got none. Pass rows as X.")
        labels = None if y is None else labels_of_rules(rules, "y", y)
        if labels is not None and len(labels) != n_rows:
            raise ValueError(
                f"y must hold one value for each of the {n_rows} rows, got {len(labels)}."
            )
        if labels is not None and rules.task == "regression":
            labels = labels.astype(float)
        model = None
        if self._oracle is not None:
            model = labels_of_rules(rules, "black_box", self._oracle.query(X))
        return EffectRows(X, labels, model, name)

    @property
    def rules_(self) -> RuleSet:
        """Current rules."""
        return self.log_.rules

    # --- edits ------------------------------------------------------------------------------------

    def drop(self, number: int, *, because: str | None = None) -> Effect:
        """Remove a rule.

        Parameters
        ----------
        number : int
            Number of the rule, from 1.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, action="drop", number=number)

    def add(self, rule: Rule, number: int | None = None, *, because: str | None = None) -> Effect:
        """Insert a rule.

        Parameters
        ----------
        rule : Rule
            The rule.
        number : int, optional
            Number of the new rule; by default it becomes the last one.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        check_instance("rule", rule, Rule)
        data = rule_to_json(self.rules_, rule)
        numbered = {} if number is None else {"number": number}
        return self._edit(because, action="add", rule=data, **numbered)

    def move(self, number: int, to: int, *, because: str | None = None) -> Effect:
        """Move a rule to another position in the list.

        Parameters
        ----------
        number, to : int
            Number of the rule before and after the move, from 1.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, action="move", number=number, to=to)

    def merge(self, first: int, second: int, *, because: str | None = None) -> Effect:
        """Replace two rules with the same output by the smallest rule that contains both.

        In regression, outputs are averaged, weighted by the rows of the rules.

        Parameters
        ----------
        first, second : int
            Numbers of the rules; the merged rule takes the position of the first.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, action="merge", first=first, second=second)

    def split(
        self,
        number: int,
        feature: str | int,
        bound: float | None = None,
        *,
        values: Iterable[Any] | None = None,
        because: str | None = None,
    ) -> Effect:
        """Split a rule into two rules with the same output, which changes no prediction.

        Rows without a value of the feature belong to the second part, unless the rule or the domain
        excludes them.

        Parameters
        ----------
        number : int
            Number of the rule; the second part gets the next one.
        feature : str or int
            Feature at which to split.
        bound : float, optional
            The first part has values up to this bound.
        values : iterable, optional
            The first part has these values of a categorical feature.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        parts: dict[str, Any] = {} if bound is None else {"bound": python_value(bound)}
        if values is not None:
            parts["values"] = [python_value(v) for v in values]
        return self._edit(
            because, action="split", number=number, feature=self._name(feature), **parts
        )

    def set_bound(
        self,
        number: int,
        feature: str | int,
        *,
        lower: float | None = None,
        upper: float | None = None,
        lower_closed: bool | None = None,
        upper_closed: bool | None = None,
        missing: bool | None = None,
        shared: bool | None = None,
        because: str | None = None,
    ) -> Effect:
        """Change, add or remove a bound of a numeric feature.

        Parameters
        ----------
        number : int
            Number of the rule.
        feature : str or int
            The feature.
        lower, upper : float, optional
            New bounds; ``-inf`` removes the lower bound, and ``inf`` the upper one.
        lower_closed, upper_closed : bool, optional
            Whether the bound itself satisfies the condition. By default, new lower bounds are open,
            new upper bounds are closed, and changed bounds stay open or closed.
        missing : bool, optional
            Whether a missing value satisfies the condition; by default as before.
        shared : bool, optional
            Whether equal bounds of all other rules change too, like a split of a tree. By default
            True for disjoint rules, so that they remain disjoint.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect

        Raises
        ------
        ValueError
            If nothing is to be changed, the bounds contradict each other, or the feature is
            categorical.
        """
        changes: dict[str, Any] = {
            name: value if not isinstance(value, float) or math.isfinite(value) else None
            for name, value in (
                ("lower", python_value(lower)),
                ("upper", python_value(upper)),
                ("lower_closed", lower_closed),
                ("upper_closed", upper_closed),
                ("missing", missing),
                ("shared", shared),
            )
            if value is not None
        }
        for name, free in (("lower", -math.inf), ("upper", math.inf)):
            value = {"lower": lower, "upper": upper}[name]
            if name in changes and changes[name] is None and value != free:
                raise ValueError(f"{name} must be a number, or {free} for no bound, got {value!r}.")
        rule = self.rules_[rule_index(self.rules_, number)]
        old = interval_of(rule, feature_index(self.rules_, feature))
        for side in ("lower", "upper"):  # so that the log states the side of a moved bound
            if changes.get(side) is not None and math.isfinite(getattr(old, side)):
                changes.setdefault(f"{side}_closed", getattr(old, f"{side}_closed"))
        return self._edit(
            because, action="set_bound", number=number, feature=self._name(feature), **changes
        )

    def set_categories(
        self,
        number: int,
        feature: str | int,
        values: Iterable[Any] | None,
        *,
        negated: bool = False,
        missing: bool | None = None,
        because: str | None = None,
    ) -> Effect:
        """Change the values of a categorical feature that satisfy a rule.

        Parameters
        ----------
        number : int
            Number of the rule.
        feature : str or int
            The feature.
        values : iterable or None
            The values; None removes the condition.
        negated : bool, default=False
            Whether to select all values except these.
        missing : bool, optional
            Whether a missing value satisfies the condition; by default as before.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        listed = None if values is None else [python_value(v) for v in values]
        flags: dict[str, Any] = {"negated": True} if negated else {}
        if missing is not None:
            flags["missing"] = missing
        return self._edit(
            because,
            action="set_categories",
            number=number,
            feature=self._name(feature),
            values=listed,
            **flags,
        )

    def set_output(self, number: int, output: Any, *, because: str | None = None) -> Effect:
        """Change the class or number that a rule predicts.

        Parameters
        ----------
        number : int
            Number of the rule.
        output : class label, float or LinearOutput
            The new output.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        value = python_value(output)
        if isinstance(output, LinearOutput):
            value = {"intercept": output.intercept, "terms": [list(t) for t in output.terms]}
        return self._edit(because, action="set_output", number=number, output=value)

    def set_fallback(self, output: Any, *, because: str | None = None) -> Effect:
        """Change the prediction for uncovered rows.

        Parameters
        ----------
        output : class label or float
            The new prediction.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, action="set_fallback", output=python_value(output))

    def forbid(self, feature: str | int, *, because: str | None = None) -> Effect:
        """Remove all conditions on a feature.

        Disjoint rules may overlap afterwards; they become an ordered list. :meth:`reoptimize`
        finds better rules without the feature.

        Parameters
        ----------
        feature : str or int
            The feature.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, action="forbid", feature=self._name(feature))

    def replace_rules(self, rules: RuleSet, *, because: str | None = None) -> Effect:
        """Replace all rules at once, for example by newly extracted ones.

        Parameters
        ----------
        rules : RuleSet
            The new rules, with the same features and task.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        check_instance("rules", rules, RuleSet)
        return self._edit(because, action="replace_rules", rules_json=rules_data(rules))

    def recount(self, *, because: str | None = None) -> Effect:
        """Recompute the statistics of all rules on the editing rows.

        An edit removes the statistics that it makes invalid.

        Parameters
        ----------
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
            Effect without changed predictions.

        Raises
        ------
        ValueError
            If the predictions of the rules depend on their statistics.
        """
        recounted = self._recounted(self.rules_)
        return self._edit(because, action="recount", rules_json=rules_data(recounted))

    def _recounted(self, rules: RuleSet) -> RuleSet:
        if rules.voting is not None or not (rules.ordered or rules.disjoint):
            raise ValueError(
                "rules must be an ordered list or disjoint for new statistics. The statistics of "
                "these rules determine which of several rules predicts, or how rules vote, so new "
                "statistics would change predictions."
            )
        rows = self.training_rows
        labels = self._labels
        reference = "black_box" if rows.model is not None else "data"
        result = with_statistics(rules.replace(reference=reference), rows.X, labels)
        if rows.y is not None and (rows.model is not None or rules.task == "regression"):
            result = with_target(result, rows.X, rows.y, rows.model)
        return result

    def undo(self, *, because: str | None = None) -> Effect:
        """Undo the last edit.

        Parameters
        ----------
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect

        Raises
        ------
        ValueError
            If there is no edit to undo.
        """
        return self._edit(because, action="undo")

    def redo(self, *, because: str | None = None) -> Effect:
        """Apply the last undone edit again.

        Parameters
        ----------
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect

        Raises
        ------
        ValueError
            If no edit was undone, or a new edit was made since then.
        """
        return self._edit(because, action="redo")

    def reoptimize(
        self,
        pinned: Iterable[int] = (),
        *,
        max_rules: int | None = None,
        limits: SolverLimits | None = None,
        because: str | None = None,
    ) -> Reoptimization:
        """Replace all rules except pinned ones by refitted rules, and record the edit.

        Parameters
        ----------
        pinned : iterable of int, default=()
            Numbers of the rules that remain unchanged, at their positions if there are enough other
            rules before them, and otherwise earlier.
        max_rules : int, optional
            Largest number of rules; by default the current number.
        limits : SolverLimits, optional
            Limits of the search; by default about 5 seconds, the same on every machine.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Reoptimization
            Comparison of the edited rules with the refitted ones. If no better rules are found, the
            rules remain unchanged and nothing is recorded.

        Raises
        ------
        ValueError
            If the rules vote, no rules satisfy the constraints, or `max_rules` is below the number
            of pinned rules.

        Notes
        -----
        New rules are extracted from the predictions of the black box if there is one, otherwise
        from `y`. They satisfy the constraints of the editor. Together with the pinned rules, they
        may violate some constraints, which the effect names.
        """
        numbers = sorted(set(pinned))
        indices = [rule_index(self.rules_, number, "pinned") for number in numbers]
        before, rows = self.rules_, self.training_rows
        refitted = refit(
            before,
            rows.X,
            self._labels,
            pinned=indices,
            constraints=self.constraints,
            max_rules=max_rules,
            limits=limits,
        )
        if refitted is None:
            raise ValueError("No rules satisfy the constraints; find_conflict may name the cause.")
        refitted = self._recounted(refitted)
        if self._quality(refitted) <= self._quality(before):
            return Reoptimization(Effect(before, before, self.rows), numbers, False)
        return Reoptimization(self.replace_rules(refitted, because=because), numbers, True)

    def repair(self, *, because: str | None = None) -> Effect:
        """Change the rules so that they satisfy the constraints, and record the edit.

        Parameters
        ----------
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect

        Raises
        ------
        ValueError
            If there are no constraints, the rules cannot be repaired, or the constraints contradict
            each other; see :func:`skescore.constraints.constrain`.
        """
        if not self.constraints:
            raise ValueError("There are no constraints; pass constraints to RuleEditor.")
        result = constrain(self.rules_, self.constraints, self.training_rows.X, self._labels)
        if result.ruleset is None:
            raise ValueError(f"The rules cannot be repaired: {result}")
        if result.ruleset == self.rules_:
            return Effect(self.rules_, self.rules_, self.rows, "repair: nothing to change")
        return self.replace_rules(result.ruleset, because=because)

    def _quality(self, rules: RuleSet) -> tuple[float, float, float]:
        """Return a sort key of rules by their quality on the editing rows; greater is better."""
        rows = self.training_rows
        effect = Effect(rules, rules, EffectRows(rows.X, self._labels, None, rows.name))
        figure = effect.figures[0]
        correctness = figure.after if figure.greater_is_better else -figure.after
        return -len(self._violations(rules)), correctness, -len(rules)

    @property
    def _labels(self) -> np.ndarray:
        """Labels from which rules are extracted: predictions of the black box, or y."""
        rows = self.training_rows
        labels = rows.model if rows.model is not None else rows.y
        assert labels is not None
        return labels

    def suggestions(
        self, *, share: float = 0.9, limit: int = 5, pinned: Iterable[int] = ()
    ) -> list[Suggestion]:
        """List the cheapest single edits that restore the agreement lost by all edits.

        Parameters
        ----------
        share : float, default=0.9
            Share of the lost agreement to restore: agreement with the black box if there is one,
            otherwise with y.
        limit : int, default=5
            Largest number of suggestions.
        pinned : iterable of int, default=()
            Numbers of the rules that must not be changed.

        Returns
        -------
        list of Suggestion
            See :func:`suggest`.
        """
        return suggest(
            self.log_.start,
            self.rules_,
            self.training_rows.X,
            self._labels,
            share=share,
            limit=limit,
            constraints=self.constraints,
            pinned=[rule_index(self.rules_, number, "pinned") for number in pinned],
        )

    # --- results ----------------------------------------------------------------------------------

    def apply(self, edit: Mapping[str, Any], *, because: str | None = None) -> Effect:
        """Apply an edit in the form of a mapping, see :func:`apply_edit`.

        Parameters
        ----------
        edit : mapping
            Name of the edit as ``"action"``, and its arguments.
        because : str, optional
            Reason for the edit, which the log records.

        Returns
        -------
        Effect
        """
        return self._edit(because, **edit)

    def effect_of_all(self) -> Effect:
        """Compare the current rules with the rules before the first edit.

        Returns
        -------
        Effect
        """
        return Effect(
            self.log_.start,
            self.rules_,
            self.rows,
            f"all {len(self.log_.records)} steps",
            self._violations(self.rules_),
        )

    def _edit(self, because: str | None, **edit: Any) -> Effect:
        check_instance("because", because, str, optional=True)
        edit = json.loads(json.dumps(edit, allow_nan=False))
        before = self.rules_
        effect = None
        if edit["action"] in EDITS:  # an edit whose effect cannot be measured is not logged
            effect = self._effect(before, apply_edit(before, edit), edit)
        self.log_.append(
            edit,
            author=self.author,
            reason=because,
            time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        return effect or self._effect(before, self.rules_, edit)

    def _effect(self, before: RuleSet, after: RuleSet, edit: Mapping[str, Any]) -> Effect:
        return Effect(before, after, self.rows, describe_edit(edit), self._violations(after))

    def _violations(self, rules: RuleSet) -> Sequence[str]:
        """Return descriptions of the violated constraints."""
        if not self.constraints:
            return ()
        X = self.training_rows.X
        try:
            return tuple(map(str, violations(rules, self.constraints, X, self._labels)))
        except UndecidableError as error:
            return (f"a constraint cannot be decided for these rules: {error}",)

    def _name(self, feature: str | int) -> str:
        return self.rules_.feature_names[feature_index(self.rules_, feature)]


def _oracle(black_box: Any, X: Any, rules: RuleSet) -> Oracle:
    """Return the oracle of a fitted model or function."""
    if isinstance(black_box, Oracle):
        return black_box
    if callable(black_box) and not hasattr(black_box, "predict"):
        if rules.task == "classification":
            black_box = CallableClassifier(black_box, classes=rules.classes)
        else:
            black_box = CallableRegressor(black_box)
    is_frozen = isinstance(black_box, FrozenEstimator)
    return Oracle(black_box.estimator if is_frozen else black_box, like=X)
