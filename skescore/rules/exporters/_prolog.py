"""Rules as a Prolog theory that SWI-Prolog and tuProlog load as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skescore.rules._domain import label_array
from skescore.rules._prediction import VOTING_TEXTS
from skescore.rules._rule import LinearOutput
from skescore.rules._ruleset import RuleSet
from skescore.rules._text import feature_name
from skescore.rules.exporters import _prolog_voting
from skescore.rules.exporters._common import class_labels
from skescore.rules.exporters._prolog_goals import (
    NO_NUMBER,
    PLAIN_ATOM,
    Goals,
    atom,
    comment_text,
    number_text,
    terms_of,
    value_text,
)
from skescore.rules.exporters._text import can_be_lost

#: Atoms that stand for a missing value.
_MISSING = ("null", "nan")
#: The arguments that a predicate of SWI-Prolog can take.
_MOST_ARGUMENTS = 1024


def to_prolog(
    ruleset: RuleSet,
    *,
    predicate: str = "prediction",
    missing: Sequence[str] = _MISSING,
    X: Any = None,
) -> str:
    """Write a rule set as a Prolog theory.

    Use it where rules are to be reasoned with, or to hand them to a system that speaks Prolog.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    predicate : str, default="prediction"
        Name of the predicate, which takes the features in order and the answer. Helpers that
        rules with voting need begin with the same name.
    missing : sequence of str, default=("null", "nan")
        Atoms that stand for a missing value.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows on which numbers may be shortened, see :meth:`RuleSet.shorten`; exact numbers by
        default.

    Returns
    -------
    str
        The clauses, after a comment that names the features and gives an example of a query.

    Raises
    ------
    TypeError
        If `predicate` is no text, or `missing` no sequence of texts.
    ValueError
        If `predicate` is no plain atom, the fallback asks for the nearest rule, two different
        labels or values would be one in Prolog, a text cannot be written as UTF-8, or there are
        more features than a predicate has arguments.

    Notes
    -----
    - Texts are atoms, True and False are ``true`` and ``false``. A feature that is compared with
      numbers takes numbers only (truth values as 1 and 0): anything else counts as missing there.
    - A missing value satisfies no condition. A rule that needs it for its number answers ``nan``.
    - The first clause that holds answers, whatever answer is asked about; rules of unordered sets
      stand in the order in which they answer. Without a fallback the query fails where no rule
      holds.
    - Code is plain ASCII (but for rare characters such as emoji), so that atoms are the same under
      every locale; only comments hold other letters.
    - SWI-Prolog computes with floats, as Python does, and answers alike to the last bit; it raises
      an error where a sum overflows. tuProlog computes with decimals: give it numbers in the
      shortest form, as Python's repr writes them, and expect sums of features or of weights to
      differ in the last digits.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"), Rule([Interval(0, lower=5)], "virginica")],
    ...     ["petal length (cm)"],
    ...     task="classification",
    ...     fallback=Fallback("versicolor"),
    ... )
    >>> print(to_prolog(rules))
    % 2 rules for classification; the first that holds answers.
    % prediction(Petal_length_cm, Output) takes the features in this order:
    %   Petal_length_cm  number  petal length (cm)
    % A missing value is null or nan and satisfies no condition.
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
    if not isinstance(predicate, str):
        raise TypeError(f"predicate must be a str, got {predicate!r}.")
    if not PLAIN_ATOM.fullmatch(predicate):
        raise ValueError(
            "predicate must begin with a small letter and go on with letters, digits and "
            f"underscores of ASCII, got {predicate!r}."
        )
    if X is not None:
        from skescore.rules.exporters._rounding import shorten_numbers

        ruleset = shorten_numbers(ruleset, X)
    if isinstance(missing, str) or not all(isinstance(text, str) for text in missing):
        raise TypeError(f"missing must be a sequence of texts, got {missing!r}.")
    return _Theory(ruleset, predicate, tuple(missing)).text()


class _Theory:
    """The clauses of one rule set."""

    def __init__(self, ruleset: RuleSet, predicate: str, missing: tuple[str, ...]) -> None:
        if ruleset.n_features >= _MOST_ARGUMENTS:
            raise ValueError(
                f"The rules have {ruleset.n_features} features, but a Prolog predicate takes "
                f"{_MOST_ARGUMENTS} arguments at most, the answer among them: make the rules from "
                "fewer columns."
            )
        self.ruleset, self.predicate = ruleset, predicate
        self.goals = Goals(ruleset, missing)

    def text(self) -> str:
        """Write everything."""
        clauses = self._together() if self.ruleset.voting else self._first_match()
        return "\n".join([*self._header(), "", *clauses, ""])

    def _header(self) -> Iterator[str]:
        ruleset, goals = self.ruleset, self.goals
        how = ""
        if ruleset.voting:
            how = f"; {VOTING_TEXTS[ruleset.voting]}"
        elif len(ruleset) > 1 and ruleset.ordered:
            how = "; the first that holds answers"
        elif len(ruleset) > 1:
            how = "; in the order in which they answer"
        count = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
        yield f"% {count} for {ruleset.task}{how}."
        yield f"% {self._head(range(ruleset.n_features))} takes the features in this order:"
        width = max(map(len, goals.variables), default=0)
        examples = []
        for j, variable in enumerate(goals.variables):
            values = self._known_values(j)
            examples.append(value_text(values[0]) if values else self._middle(j))
            kind = "value " if values else "number"
            # In quotation marks where nobody would see it otherwise.
            name = comment_text(feature_name(ruleset.feature_names, j))
            yield f"%   {variable:<{width}}  {kind}  {name}"
        if goals.missing:
            listed = " or ".join(map(atom, goals.missing))
            yield f"% A missing value is {listed} and satisfies no condition."
        yield "% Example:"
        yield f"%   ?- {self.predicate}({', '.join([*examples, 'Output'])})."

    def _known_values(self, feature: int) -> list[Any]:
        """The values of a categorical feature; none for a number."""
        domain = self.ruleset.domain
        known = domain.values_of(feature) if domain else None
        return list(known or sorted((v for _, v in self.goals.values.get(feature, ())), key=str))

    def _middle(self, feature: int) -> str:
        domain = self.ruleset.domain
        middle = domain.lower[feature] / 2 + domain.upper[feature] / 2 if domain else 0.0
        return number_text(float(f"{middle:.4g}"))

    # --- the first rule that holds answers ---

    def _first_match(self) -> Iterator[str]:
        ruleset = self.ruleset
        for i in ruleset._priority.tolist():
            rule = ruleset.rules[i]
            output = rule.output
            if isinstance(output, LinearOutput) and output.terms:
                answer = self.goals.function("Output", output, NO_NUMBER)
            else:
                constant = output.intercept if isinstance(output, LinearOutput) else output
                answer = f"Output = {self._answer(constant)}"
            # The cut stands before the answer: a question about another answer must not get on
            # to the rules that come later.
            lines = [*self.goals.premise(rule.conditions), f"!, {answer}"]
            yield self._rule_comment(i)
            yield self._clause(self._head(self._features(i)), lines)
        if all(rule.conditions for rule in ruleset.rules):
            yield from self._fallback("otherwise, where no rule holds")

    def _fallback(self, comment: str) -> Iterator[str]:
        ruleset, fallback = self.ruleset, self.ruleset.fallback
        if fallback is None:
            if not len(ruleset):
                yield "% no rule ever answers"
                yield f"{self._head((), '_')} :- fail."
            return
        if fallback.policy == "nearest" and len(ruleset):
            raise ValueError(
                "Prolog clauses cannot look for the nearest rule, as the fallback's "
                "policy='nearest' asks. Pass ruleset.replace(fallback=Fallback("
                f"{fallback.output!r})) to answer {fallback.output!r} there, or fallback=None to "
                "let the query fail."
            )
        answer = self._answer(fallback.output)
        if fallback.policy == "abstain":
            answer = NO_NUMBER
            if ruleset.classes is not None:
                labels = [*ruleset.classes, fallback.abstention(ruleset.classes)]
                answer = value_text(label_array(labels).tolist()[-1])
        yield f"% {comment}"
        yield f"{self._head((), answer)}."

    def _answer(self, output: Any) -> str:
        """A constant answer, of the type in which the rule set answers it."""
        classes = self.ruleset.classes
        if classes is None:
            return number_text(float(output))
        return value_text(class_labels(self.ruleset)[classes.index(output)])

    # --- all rules that hold answer together ---

    def _together(self) -> Iterator[str]:
        ruleset = self.ruleset
        everything = range(ruleset.n_features)
        if len(ruleset):
            rule_head = self._head(everything, "Said", "_rule")
            lines = _prolog_voting.answer_goals(ruleset, self.predicate, rule_head)
            yield self._clause(self._head(everything), lines)
        if can_be_lost(ruleset):
            or_weightless = " or the weights add up to 0 or less"
            yield from self._fallback(
                "otherwise, where no rule holds"
                + (or_weightless if ruleset.voting == "mean" else "")
            )
        if not len(ruleset):
            return
        yield ""
        yield "% what each rule adds to the sums"
        shares = None
        if ruleset.voting == "shares":
            shares = ruleset.conclusions.shares(len(ruleset.classes or ())).tolist()
        for i, rule in enumerate(ruleset.rules):
            said, lines = _prolog_voting.contribution(
                ruleset, self.goals, rule, shares and shares[i]
            )
            premise = self.goals.premise(rule.conditions)
            if premise:
                lines = [f"once(( {', '.join(premise)} ))", *lines]
            yield self._rule_comment(i)
            yield self._clause(self._head(self._features(i), said, "_rule"), lines)
        yield ""
        yield from _prolog_voting.helpers(ruleset, self.predicate)

    # --- parts of clauses ---

    def _features(self, position: int) -> set[int]:
        """The features that a rule looks at."""
        rule = self.ruleset.rules[position]
        used = {f for condition in rule.conditions for f in condition.features}
        used |= terms_of(rule.output)
        return used | terms_of(rule.weight) if self.ruleset.voting else used

    def _head(self, features: Iterable[int], last: str = "Output", suffix: str = "") -> str:
        """The head of a clause; features that it does not look at have no name."""
        used = set(features)
        arguments = [v if j in used else "_" for j, v in enumerate(self.goals.variables)]
        return f"{self.predicate}{suffix}({', '.join([*arguments, last])})"

    def _clause(self, head: str, lines: Sequence[str]) -> str:
        return f"{head} :-\n    " + ",\n    ".join(lines) + "." if lines else f"{head}."

    def _rule_comment(self, position: int) -> str:
        return f"% {position + 1}. {comment_text(self.ruleset.line(position))}"
