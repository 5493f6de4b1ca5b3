"""The parts that Prolog clauses are made of: atoms, numbers, variables, goals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from skescore.rules._conditions import Condition, Interval, Linear, OneOf
from skescore.rules._rule import LinearOutput
from skescore.rules.exporters._common import elementary, plain_letters

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: What a number that a missing value leaves unknown is.
NO_NUMBER = "nan"
PLAIN_ATOM = re.compile(r"[a-z][a-zA-Z0-9_]*")
#: Variables of our own, which no feature may be called.
_OUR_VARIABLES = re.compile(r"(Output|Said|Sums|Weight|Total|Rest|(Held|Sum|Said)\d+)")
_SYMBOLS = frozenset("#$&*+-./:<=>?@^~\\,;|!")
#: Some systems warn of what is not ASCII, even in comments, unless the locale is right.
_SIGNS = str.maketrans({"≤": "=<", "≥": ">=", "≠": "\\=", "·": "*", "±": "+-"})
#: Words that are operators somewhere, and could be taken for such without brackets.
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
    # An operator needs brackets wherever it is an operand itself.
    return f"('{quoted}')" if text and set(text) <= _SYMBOLS else f"'{quoted}'"


def _quoted_character(character: str) -> str:
    if character in "'\\":
        return {"'": "''", "\\": "\\\\"}[character]
    if " " <= character <= "~" or character > "\uffff":
        return character  # tuProlog has no escapes beyond the basic plane
    return f"\\x{ord(character):x}\\"


def number_text(value: float) -> str:
    """Write a number; Prolog wants a digit after the point of every float."""
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
    """A text that stays on its line, with signs of ASCII where they are ours."""
    text = text.translate(_SIGNS)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _variables(names: Sequence[str]) -> list[str]:
    """Name a variable after each feature, no two alike."""
    variables: list[str] = []
    taken: set[str] = set()
    for j, name in enumerate(names):
        stem = "_".join(re.findall(r"[A-Za-z0-9]+", plain_letters(name)))[:40]
        stem = stem[0].upper() + stem[1:] if stem[:1].isalpha() else f"X{j}_{stem}".rstrip("_")
        variable, count = stem, 1
        while variable in taken or _OUR_VARIABLES.fullmatch(variable):
            count += 1
            variable = f"{stem}_{count}"
        taken.add(variable)
        variables.append(variable)
    return variables


def joined(goals: Sequence[str]) -> str:
    """All goals at once."""
    return ", ".join(goals) or "true"


def terms_of(value: Any) -> set[int]:
    """The features that an output or a weight depends on."""
    return {f for f, _ in value.terms} if isinstance(value, LinearOutput) else set()


def _bounds(variable: str, condition: Interval | Linear) -> list[str]:
    """Comparisons with the bounds that are not free."""
    goals = []
    if condition.lower > float("-inf"):
        sign = ">=" if condition.lower_closed else ">"
        goals.append(f"{variable} {sign} {number_text(condition.lower)}")
    if condition.upper < float("inf"):
        sign = "=<" if condition.upper_closed else "<"
        goals.append(f"{variable} {sign} {number_text(condition.upper)}")
    return goals


def _check_truth(what: str, values: set[tuple[type, Any]]) -> None:
    for truth in (True, False):
        text = str(truth).lower()
        if (bool, truth) in values and (str, text) in values:
            raise ValueError(
                f"{what} hold both {truth} and the text {text!r}, which are one atom in Prolog: "
                "rename the text."
            )


class Goals:
    """Writes conditions and functions of one rule set as goals.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, which know the names of features.
    missing : sequence of str
        Atoms that stand for a missing value.
    """

    def __init__(self, ruleset: RuleSet, missing: Sequence[str]) -> None:
        self.ruleset, self.missing = ruleset, tuple(missing)
        self.variables = _variables(ruleset.feature_names)
        self.fresh = 0
        #: The values that conditions compare each feature with.
        self.values: dict[int, set[tuple[type, Any]]] = {}
        for condition in elementary(c for rule in ruleset.rules for c in rule.conditions):
            if isinstance(condition, OneOf):
                known = self.values.setdefault(condition.feature, set())
                known.update((type(v), v) for v in condition.values)
        self._check_labels()

    def _check_labels(self) -> None:
        """Raise a ValueError where Prolog could not tell two things apart."""
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
            known = ruleset.domain.values_of(feature) if ruleset.domain else None
            clash = {v for _, v in values} | set(known or ())
            for text in self.missing:
                if text in clash:
                    raise ValueError(
                        f"Feature {name!r} has the value {text!r}, which would count as missing: "
                        "pass missing=[...] with atoms that are no value of any feature."
                    )

    def function(
        self, variable: str, function: LinearOutput, unknown: str, factor: str = ""
    ) -> str:
        """A goal that computes a function, or gives `unknown` where a value is missing."""
        known = joined([self._is_known(feature) for feature, _ in function.terms])
        expression = self._sum(function.terms, number_text(function.intercept))
        expression = f"{factor}({expression})" if factor else expression
        return f"( {known} -> {variable} is {expression} ; {variable} = {unknown} )"

    def _is_known(self, feature: int) -> str:
        # SWI-Prolog has a float that is not a number, and that does not equal itself.
        variable = self.variables[feature]
        return f"number({variable}), {variable} =:= {variable}"

    def _sum(self, terms: Iterable[tuple[int, float]], text: str = "") -> str:
        """A sum of products, from left to right as NumPy adds them."""
        for feature, coefficient in terms:
            product = f"{number_text(abs(coefficient) if text else coefficient)}*"
            product += self.variables[feature]
            text = f"{text} {'-' if coefficient < 0 else '+'} {product}" if text else product
        return text

    def premise(self, conditions: Iterable[Condition]) -> list[str]:
        """One goal for each condition of a rule."""
        self.fresh = 0  # every clause has its own variables
        return [joined(self._condition(condition)) for condition in conditions]

    def _condition(self, condition: Condition) -> list[str]:
        """The goals of one condition; only :meth:`_one_of` may hold in more than one way."""
        if isinstance(condition, Interval):
            variable = self.variables[condition.feature]
            compared = _bounds(variable, condition)
            return [f"number({variable})", *(compared or [f"{variable} =:= {variable}"])]
        if isinstance(condition, OneOf):
            return [self._one_of(condition)]
        if isinstance(condition, Linear):
            self.fresh += 1
            total = f"Sum{self.fresh}"
            goals = [self._is_known(feature) for feature in condition.features]
            compared = _bounds(total, condition)
            computed = f"{total} is {self._sum(condition.terms)}"
            return [*goals, computed, *compared] if compared else goals
        held, goals = [], []
        for inner in condition.conditions:
            inner_goals = joined(self._condition(inner))
            self.fresh += 1
            held.append(f"Held{self.fresh}")
            goals.append(f"( {inner_goals} -> {held[-1]} = 1 ; {held[-1]} = 0 )")
        return [*goals, f"{' + '.join(held)} >= {condition.m}"]

    def _one_of(self, condition: OneOf) -> str:
        """Equal to some value (to none, negated): atoms by name, numbers by size."""
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
