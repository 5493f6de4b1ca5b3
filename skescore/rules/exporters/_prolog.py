"""Export of rules to Prolog theories for SWI-Prolog and tuProlog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skescore._names import VOTING_TEXTS
from skescore._validation import check_instance, check_sequence
from skescore.rules._conditions import Condition, Interval, Linear, Missing, OneOf, truth_table
from skescore.rules._domain import label_array
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules._text import feature_name, may_need_fallback
from skescore.rules.exporters._common import class_labels, flatten_conditions, to_ascii

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


#: Value of a function with a missing argument.
NO_NUMBER = "nan"
PLAIN_ATOM = re.compile(r"[a-z][a-zA-Z0-9_]*")
#: Variables of the generated clauses, which features must not use.
_RESERVED_VARIABLES = re.compile(r"(Output|Said|Sums|Weight|Total|Rest|(Held|Sum|Said)\d+)")
_SYMBOLS = frozenset("#$&*+-./:<=>?@^~\\,;|!")
#: In some locales, some systems warn about non-ASCII characters, even in comments.
_ASCII_OPERATORS = str.maketrans({"≤": "=<", "≥": ">=", "≠": "\\=", "·": "*", "±": "+-"})
#: Words that are operators in some Prolog systems and therefore require parentheses.
_OPERATORS = re.compile(
    r"as|discontiguous|divs?|dynamic|ensure_loaded|import|include|initialization|is|meta_predicate"
    r"|mod|module_transparent|multifile|public|rdiv|rem|set_prolog_flag|table|tdiv"
    r"|thread_initialization|thread_local|tnot|volatile|xor"
)


def atom(text: str) -> str:
    """Write a text as an atom."""
    if _OPERATORS.fullmatch(text):
        return f"({text})"
    if PLAIN_ATOM.fullmatch(text):
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"Prolog cannot hold the text {text!r}: {error.reason}.") from error
    quoted = "".join(map(_quoted_character, text))
    # An operator needs parentheses if it is an operand.
    return f"('{quoted}')" if text and set(text) <= _SYMBOLS else f"'{quoted}'"


def _quoted_character(character: str) -> str:
    if character in "'\\":
        return {"'": "''", "\\": "\\\\"}[character]
    if " " <= character <= "~" or character > "\uffff":
        return character  # tuProlog has no escapes beyond the basic multilingual plane
    return f"\\x{ord(character):x}\\"


def number_text(value: float) -> str:
    """Write a number; Prolog requires a digit after the decimal point of a float."""
    text = repr(value)
    if isinstance(value, float) and "." not in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}.0e{exponent}"
    return text


def value_text(label: Any) -> str:
    """Write a label or category."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return atom(label) if isinstance(label, str) else number_text(label)


def comment_text(text: str) -> str:
    """Escape unprintable characters for a comment, and write operators in ASCII."""
    text = text.translate(_ASCII_OPERATORS)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _variables(names: Sequence[str]) -> list[str]:
    """Return a distinct variable name for each feature."""
    variables: list[str] = []
    used_names: set[str] = set()
    for j, name in enumerate(names):
        stem = "_".join(re.findall(r"[A-Za-z0-9]+", to_ascii(name)))[:40]
        stem = stem[0].upper() + stem[1:] if stem[:1].isalpha() else f"X{j}_{stem}".rstrip("_")
        variable, count = stem, 1
        while variable in used_names or _RESERVED_VARIABLES.fullmatch(variable):
            count += 1
            variable = f"{stem}_{count}"
        used_names.add(variable)
        variables.append(variable)
    return variables


def join_goals(goals: Sequence[str]) -> str:
    """Join goals by commas."""
    return ", ".join(goals) or "true"


def terms_of(value: Any) -> set[int]:
    """Return the features on which an output or a weight depends."""
    return {f for f, _ in value.terms} if isinstance(value, LinearOutput) else set()


def _bounds(variable: str, condition: Interval | Linear) -> list[str]:
    """Return comparisons with the finite bounds."""
    goals = []
    if condition.lower > float("-inf"):
        sign = ">=" if condition.lower_closed else ">"
        goals.append(f"{variable} {sign} {number_text(condition.lower)}")
    if condition.upper < float("inf"):
        sign = "=<" if condition.upper_closed else "<"
        goals.append(f"{variable} {sign} {number_text(condition.upper)}")
    return goals


def _check_truth(subject: str, values: set[tuple[type, Any]]) -> None:
    for truth in (True, False):
        text = str(truth).lower()
        if (bool, truth) in values and (str, text) in values:
            raise ValueError(
                f"{subject} hold both {truth} and the text {text!r}, which are the same atom in "
                "Prolog. Rename the text."
            )


class Goals:
    """Writer of Prolog goals for the conditions and functions of one rule set.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    missing : sequence of str
        Atoms that denote a missing value.
    """

    def __init__(self, ruleset: RuleSet, missing: Sequence[str]) -> None:
        self.ruleset, self.missing = ruleset, tuple(missing)
        self.variables = _variables(ruleset.feature_names)
        #: Number of auxiliary variables in the current clause.
        self.fresh = 0
        #: Values in the conditions on each feature, with their types.
        self.values: dict[int, set[tuple[type, Any]]] = {}
        #: Features that are compared with numbers, or occur in sums.
        self.numbers: set[int] = set()
        for condition in flatten_conditions(c for rule in ruleset.rules for c in rule.conditions):
            if isinstance(condition, OneOf):
                values = self.values.setdefault(condition.feature, set())
                values.update((type(v), v) for v in condition.values)
            elif not isinstance(condition, Missing):
                self.numbers.update(condition.features)
        for rule in ruleset.rules:
            self.numbers |= terms_of(rule.output) | terms_of(rule.weight)
        self._check_labels()

    def _check_labels(self) -> None:
        """Raise a ValueError if two labels or values would be the same atom in Prolog."""
        ruleset = self.ruleset
        labels = {(type(label), label) for label in ruleset.classes or ()}
        fallback = ruleset.fallback
        if ruleset.classes is not None and fallback is not None and fallback.policy == "abstain":
            label = fallback.abstention(ruleset.classes)
            labels.add((type(label), label))
        _check_truth("The classes", labels)
        for feature, values in self.values.items():
            name = ruleset.feature_names[feature]
            _check_truth(f"The values of feature {name!r}", values)
            domain_values = ruleset.domain.values_of(feature) if ruleset.domain else None
            clash = {v for _, v in values} | set(domain_values or ())
            for text in self.missing:
                if text in clash:
                    raise ValueError(
                        f"Feature {name!r} has the value {text!r}, which would count as missing. "
                        "Pass missing=[...] with atoms that are not values of any feature."
                    )

    def function(
        self, variable: str, function: LinearOutput, unknown: str, factor: str = ""
    ) -> str:
        """Return a goal that computes a function, or `unknown` if a feature is missing."""
        features_known = join_goals([self._is_known(feature) for feature, _ in function.terms])
        expression = self._sum(function.terms, number_text(function.intercept))
        expression = f"{factor}({expression})" if factor else expression
        return f"( {features_known} -> {variable} is {expression} ; {variable} = {unknown} )"

    def _is_known(self, feature: int) -> str:
        # In SWI-Prolog, NaN is a number that does not equal itself.
        variable = self.variables[feature]
        return f"number({variable}), {variable} =:= {variable}"

    def _sum(self, terms: Iterable[tuple[int, float]], text: str = "") -> str:
        """Return a sum of products in the order in which NumPy adds them."""
        for feature, coefficient in terms:
            product = f"{number_text(abs(coefficient) if text else coefficient)}*"
            product += self.variables[feature]
            text = f"{text} {'-' if coefficient < 0 else '+'} {product}" if text else product
        return text

    def premise(self, conditions: Iterable[Condition]) -> list[str]:
        """Return one goal for each condition of a rule."""
        self.fresh = 0  # every clause has its own variables
        return [join_goals(self._condition(condition)) for condition in conditions]

    def _condition(self, condition: Condition) -> list[str]:
        """Return the goals of a condition; a disjunction (``;``) may have several solutions."""
        if isinstance(condition, Missing):
            holds_if_missing = truth_table(condition).missing
            write = self._lacks_value if holds_if_missing else self._has_value
            return [write(condition.feature)]
        if isinstance(condition, Interval | OneOf):
            comparison = self._comparison(condition)
            if not truth_table(condition).missing:
                return comparison
            return [f"( {join_goals(comparison)} ; {self._lacks_value(condition.feature)} )"]
        if isinstance(condition, Linear):
            self.fresh += 1
            total = f"Sum{self.fresh}"
            goals = [self._is_known(feature) for feature in condition.features]
            compared = _bounds(total, condition)
            computed = f"{total} is {self._sum(condition.terms)}"
            return [*goals, computed, *compared] if compared else goals
        indicators, goals = [], []
        for inner in condition.conditions:
            inner_goals = join_goals(self._condition(inner))
            self.fresh += 1
            indicators.append(f"Held{self.fresh}")
            goals.append(f"( {inner_goals} -> {indicators[-1]} = 1 ; {indicators[-1]} = 0 )")
        return [*goals, f"{' + '.join(indicators)} >= {condition.m}"]

    def _comparison(self, condition: Interval | OneOf) -> list[str]:
        """Return the goals of a comparison, which fail for missing values."""
        if isinstance(condition, OneOf):
            return [self._one_of(condition)]
        variable = self.variables[condition.feature]
        comparisons = _bounds(variable, condition)
        return [f"number({variable})", *(comparisons or [f"{variable} =:= {variable}"])]

    def _has_value(self, feature: int) -> str:
        """Return a goal that tests for an observed value, in some rules for a number."""
        is_number, variable = self._is_known(feature), self.variables[feature]
        if feature in self.numbers and feature not in self.values:
            return is_number
        differs = "".join(f", {variable} \\== {atom(text)}" for text in self.missing)
        return f"( atom({variable}){differs} ; {is_number} )"

    def _lacks_value(self, feature: int) -> str:
        has_value = self._has_value(feature)
        return f"\\+ {has_value if has_value.startswith('( ') else f'( {has_value} )'}"

    def _one_of(self, condition: OneOf) -> str:
        """Return a goal that tests whether a value is in a set, or not in it if negated."""
        variable = self.variables[condition.feature]
        atoms, numbers = [], []
        texts = {v for kind, v in self.values[condition.feature] if kind is str}
        for value in condition.values:
            if isinstance(value, str):
                atoms.append(atom(value))
                continue
            numbers.append(number_text(int(value) if isinstance(value, bool) else value))
            # In Python, True equals 1 and False equals 0.
            if value in (0, 1) and (truth := str(bool(value)).lower()) not in texts:
                atoms.append(truth)
        if condition.negated:
            missing = [atom(text) for text in self.missing]
            differs = "".join(f", {variable} \\== {other}" for other in [*missing, *atoms])
            unequal = "".join(f", {variable} =\\= {number}" for number in numbers)
            return f"( atom({variable}){differs} ; {self._is_known(condition.feature)}{unequal} )"
        options = [f"{variable} == {text}" for text in atoms]
        options += [f"number({variable}), {variable} =:= {number}" for number in numbers]
        return f"( {' ; '.join(options)} )" if len(options) > 1 else options[0]


def prediction_goals(ruleset: RuleSet, name: str, rule_head: str) -> list[str]:
    """Return the body of the clause that predicts."""
    zeros = ", ".join(["0.0"] * _n_sums(ruleset))
    goals = [
        f"findall(Said, {rule_head}, [Said1|Rest])",
        f"{name}_sum([Said1|Rest], [{zeros}], Sums)",
    ]
    if ruleset.classes is not None:
        labels = ", ".join(map(value_text, class_labels(ruleset)))
        return [*goals, "!", f"{name}_greatest(Sums, [{labels}], Said2), Output = Said2"]
    if ruleset.voting == "sum":
        return [*goals, "!", "Sums = [Output]"]
    return [
        *goals,
        "Sums = [Weight, Total], Weight > 0",
        f"!, {name}_mean(Total, Weight, Said2), Output = Said2",
    ]


def contribution(
    ruleset: RuleSet, goals: Goals, rule: Rule, shares: Sequence[float] | None
) -> tuple[str, list[str]]:
    """Return the list of numbers that a rule adds to the sums, and the goals that compute them."""
    if ruleset.classes is None:
        weight = _weight(rule)
        first = [number_text(weight)] if ruleset.voting == "mean" else []
        output = rule.output
        if isinstance(output, LinearOutput) and output.terms:
            goal = goals.function("Said2", output, NO_NUMBER, f"{number_text(weight)}*")
            return f"[{', '.join([*first, 'Said2'])}]", [goal]
        constant = output.intercept if isinstance(output, LinearOutput) else float(output)
        return f"[{', '.join([*first, number_text(weight * constant)])}]", []
    parts = shares
    if parts is None:
        class_index = ruleset.classes.index(rule.output)
        parts = [float(k == class_index) for k in range(len(ruleset.classes))]
    if not isinstance(rule.weight, LinearOutput) or not rule.weight.terms:
        return f"[{', '.join(number_text(_weight(rule) * part) for part in parts)}]", []
    # If the weight is unknown because of a missing value, the rule does not contribute.
    lines = [goals.function("Weight", rule.weight, "0.0")]
    summands = [f"Said{k}" if part else "0.0" for k, part in enumerate(parts)]
    lines += [f"Said{k} is Weight*{number_text(part)}" for k, part in enumerate(parts) if part]
    return f"[{', '.join(summands)}]", lines


def helpers(ruleset: RuleSet, name: str) -> Iterator[str]:
    """Yield the predicates that add up the contributions of the rules.

    Alternatives are separate clauses, because tuProlog's parser takes minutes for a clause with
    arithmetic both before and inside a disjunction.
    """
    unknown = any(terms_of(rule.output) for rule in ruleset.rules)
    numbers = range(1, _n_sums(ruleset) + 1)
    summands, old, new = (", ".join(f"{letter}{k}" for k in numbers) for letter in "ABC")
    yield f"{name}_sum([], Sums, Sums)."
    yield f"{name}_sum([[{summands}]|Rest], [{old}], Sums) :-"
    for k in numbers:
        plus = f"{name}_plus(A{k}, B{k}, C{k})"
        yield f"    {plus if unknown else f'C{k} is B{k} + A{k}'},"
    yield f"    {name}_sum(Rest, [{new}], Sums)."
    if unknown:
        yield f"{name}_plus(A, B, C) :- number(A), number(B), !, C is B + A."
        yield f"{name}_plus(_, _, {NO_NUMBER})."
    if ruleset.classes is not None:
        yield from (
            "% the first label with the greatest sum",
            f"{name}_greatest([Sum|Sums], [Label|Labels], Best) :-",
            f"    {name}_greatest(Sums, Labels, Sum, Label, Best).",
            f"{name}_greatest([], [], _, Label, Label).",
            f"{name}_greatest([Sum|Sums], [Label|Labels], Least, _, Best) :-",
            "    Sum > Least, !,",
            f"    {name}_greatest(Sums, Labels, Sum, Label, Best).",
            f"{name}_greatest([_|Sums], [_|Labels], Least, Label, Best) :-",
            f"    {name}_greatest(Sums, Labels, Least, Label, Best).",
        )
    elif ruleset.voting == "mean":
        yield from (
            "% tuProlog divides to nine digits, so the remainder is divided again",
            f"{name}_mean({NO_NUMBER}, _, {NO_NUMBER}) :- !.",
            f"{name}_mean(Total, Weight, Mean) :-",
            "    Quotient is Total / Weight, Left is Total - Quotient*Weight,",
            f"    {name}_mean(Total, Weight, Quotient, Left, Mean).",
            f"{name}_mean(Total, _, Quotient, Left, Quotient) :-",
            "    abs(Left) =< abs(Total)*1.0e-12, !.",
            f"{name}_mean(_, Weight, Quotient, Left, Mean) :- Mean is Quotient + Left / Weight.",
        )


def _n_sums(ruleset: RuleSet) -> int:
    if ruleset.classes is not None:
        return len(ruleset.classes)
    return 2 if ruleset.voting == "mean" else 1


def _weight(rule: Rule) -> float:
    return rule.weight.intercept if isinstance(rule.weight, LinearOutput) else rule.weight


#: Largest number of arguments of a predicate in SWI-Prolog.
_MAX_ARGUMENTS = 1024


def to_prolog(ruleset: RuleSet, predicate: str, missing: Sequence[str]) -> str:
    """Write a Prolog theory; see :meth:`RuleSet.to_prolog`."""
    check_instance("predicate", predicate, str)
    if not PLAIN_ATOM.fullmatch(predicate):
        raise ValueError(
            "predicate must be a lowercase ASCII letter followed by ASCII letters, digits and "
            f"underscores, got {predicate!r}."
        )
    for text in check_sequence("missing", missing, "texts"):
        check_instance("missing", text, str)
    return _Theory(ruleset, predicate, tuple(missing)).text()


class _Theory:
    """Writer of a Prolog theory for one rule set."""

    def __init__(self, ruleset: RuleSet, predicate: str, missing: tuple[str, ...]) -> None:
        if ruleset.n_features >= _MAX_ARGUMENTS:
            raise ValueError(
                f"The rules have {ruleset.n_features} features, but a Prolog predicate takes at "
                f"most {_MAX_ARGUMENTS} arguments, including the prediction. Extract the rules "
                "from fewer columns."
            )
        self.ruleset, self.predicate = ruleset, predicate
        self.goals = Goals(ruleset, missing)

    def text(self) -> str:
        """Return the text of the theory."""
        clauses = self._joint_prediction() if self.ruleset.voting else self._first_match()
        return "\n".join([*self._header(), "", *clauses, ""])

    def _header(self) -> Iterator[str]:
        ruleset, goals = self.ruleset, self.goals
        how = ""
        if ruleset.voting:
            how = f"; {VOTING_TEXTS[ruleset.voting]}"
        elif len(ruleset) > 1 and ruleset.ordered:
            how = "; the first that holds gives the prediction"
        elif len(ruleset) > 1:
            how = "; listed in the order in which they are applied"
        count = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
        yield f"% {count} for {ruleset.task}{how}."
        yield f"% {self._head(range(ruleset.n_features))} takes the features in this order:"
        width = max(map(len, goals.variables), default=0)
        examples = []
        for j, variable in enumerate(goals.variables):
            values = self._known_values(j)
            examples.append(value_text(values[0]) if values else self._domain_center(j))
            kind = "value " if values else "number"
            # Quotation marks make blank names visible.
            name = comment_text(feature_name(ruleset.feature_names, j))
            yield f"%   {variable:<{width}}  {kind}  {name}"
        if goals.missing:
            listed = " or ".join(map(atom, goals.missing))
            yield f"% A missing value is {listed}; it satisfies only conditions that accept it."
        yield "% Example:"
        yield f"%   ?- {self.predicate}({', '.join([*examples, 'Output'])})."

    def _known_values(self, feature: int) -> list[Any]:
        """Return the values of a categorical feature; no values for a number."""
        domain = self.ruleset.domain
        domain_values = domain.values_of(feature) if domain else None
        return list(
            domain_values or sorted((v for _, v in self.goals.values.get(feature, ())), key=str)
        )

    def _domain_center(self, feature: int) -> str:
        domain = self.ruleset.domain
        middle = domain.lower[feature] / 2 + domain.upper[feature] / 2 if domain else 0.0
        return number_text(float(f"{middle:.4g}"))

    def _first_match(self) -> Iterator[str]:
        ruleset = self.ruleset
        for i in ruleset.assignment_order.tolist():
            rule = ruleset.rules[i]
            output = rule.output
            if isinstance(output, LinearOutput) and output.terms:
                prediction = self.goals.function("Output", output, NO_NUMBER)
            else:
                constant = output.intercept if isinstance(output, LinearOutput) else output
                prediction = f"Output = {self._prediction(constant)}"
            # The cut precedes the prediction, so queries with other predictions do not backtrack.
            lines = [*self.goals.premise(rule.conditions), f"!, {prediction}"]
            yield self._rule_comment(i)
            yield self._clause(self._head(self._features(i)), lines)
        if all(rule.conditions for rule in ruleset.rules):
            yield from self._fallback("otherwise, where no rule holds")

    def _fallback(self, comment: str) -> Iterator[str]:
        ruleset, fallback = self.ruleset, self.ruleset.fallback
        if fallback is None:
            if not len(ruleset):
                yield "% no rule ever predicts"
                yield f"{self._head((), '_')} :- fail."
            return
        if fallback.policy == "nearest" and len(ruleset):
            raise ValueError(
                "Prolog clauses cannot find the nearest rule, which the fallback's "
                "policy='nearest' requires. Pass ruleset.replace(fallback=Fallback("
                f"{fallback.output!r})) to predict {fallback.output!r} for uncovered rows, or "
                "fallback=None to let the query fail."
            )
        prediction = self._prediction(fallback.output)
        if fallback.policy == "abstain":
            prediction = NO_NUMBER
            if ruleset.classes is not None:
                labels = [*ruleset.classes, fallback.abstention(ruleset.classes)]
                prediction = value_text(label_array(labels).tolist()[-1])
        yield f"% {comment}"
        yield f"{self._head((), prediction)}."

    def _prediction(self, output: Any) -> str:
        """Return a constant prediction, with the type of the rule set's predictions."""
        classes = self.ruleset.classes
        if classes is None:
            return number_text(float(output))
        return value_text(class_labels(self.ruleset)[classes.index(output)])

    def _joint_prediction(self) -> Iterator[str]:
        ruleset = self.ruleset
        everything = range(ruleset.n_features)
        if len(ruleset):
            rule_head = self._head(everything, "Said", "_rule")
            lines = prediction_goals(ruleset, self.predicate, rule_head)
            yield self._clause(self._head(everything), lines)
        if may_need_fallback(ruleset):
            or_weightless = " or the weights add up to 0 or less"
            yield from self._fallback(
                "otherwise, where no rule holds"
                + (or_weightless if ruleset.voting == "mean" else "")
            )
        if not len(ruleset):
            return
        yield ""
        yield "% terms that each rule adds to the sums"
        shares = None
        if ruleset.voting == "probabilities":
            shares = ruleset.conclusions.class_probabilities(len(ruleset.classes or ())).tolist()
        for i, rule in enumerate(ruleset.rules):
            summands, lines = contribution(ruleset, self.goals, rule, shares and shares[i])
            premise = self.goals.premise(rule.conditions)
            if premise:
                lines = [f"once(( {', '.join(premise)} ))", *lines]
            yield self._rule_comment(i)
            yield self._clause(self._head(self._features(i), summands, "_rule"), lines)
        yield ""
        yield from helpers(ruleset, self.predicate)

    def _features(self, position: int) -> set[int]:
        """Return the features that a rule uses."""
        rule = self.ruleset.rules[position]
        used = {f for condition in rule.conditions for f in condition.features}
        used |= terms_of(rule.output)
        return used | terms_of(rule.weight) if self.ruleset.voting else used

    def _head(self, features: Iterable[int], last: str = "Output", suffix: str = "") -> str:
        """Return the head of a clause; unused features are anonymous variables."""
        used = set(features)
        arguments = [v if j in used else "_" for j, v in enumerate(self.goals.variables)]
        return f"{self.predicate}{suffix}({', '.join([*arguments, last])})"

    def _clause(self, head: str, lines: Sequence[str]) -> str:
        return f"{head} :-\n    " + ",\n    ".join(lines) + "." if lines else f"{head}."

    def _rule_comment(self, position: int) -> str:
        return f"% {position + 1}. {comment_text(self.ruleset.line(position))}"
