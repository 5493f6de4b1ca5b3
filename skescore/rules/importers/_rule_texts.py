"""Reader of rules as texts, each of which is a conjunction of comparisons."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

from skescore._text import did_you_mean
from skescore._validation import check_sequence
from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._domain import Fallback
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet

_JOINT = re.compile(r"\s+(?:and|AND|&&?)\s+")
_COMPARISON = re.compile(r"\s*(<=|>=|==|!=|<|>|=)\s*(.+)")


def read_rule_texts(
    texts: Iterable[str], feature_names: Sequence[str], *, label: Any = 1, otherwise: Any = 0
) -> RuleSet:
    """Convert rule texts such as ``"age > 30.5 & sex == 'f'"`` to a rule set for one class.

    Use it for the rules of libraries that return strings, such as TE2Rules.

    Parameters
    ----------
    texts : iterable of str
        Rules: comparisons of features with numbers or quoted texts, joined by ``and`` or ``&``.
    feature_names : sequence of str
        Names of all features, in the order of the columns.
    label : str, int, float or bool, default=1
        Class that the rules predict.
    otherwise : str, int, float or bool, default=0
        Class of uncovered rows.

    Returns
    -------
    RuleSet

    Raises
    ------
    ValueError
        If a text is not such a rule, or names an unknown feature.

    Examples
    --------
    >>> texts = ["age > 30.5 & age <= 60", "sex == 'f' and age <= 18"]
    >>> print(read_rule_texts(texts, ["age", "sex"], label="yes", otherwise="no"))
    1. IF 30.5 < age ≤ 60 THEN yes
    2. IF age ≤ 18 AND sex = f THEN yes
    otherwise, where no rule holds: no
    """
    names = [str(name) for name in check_sequence("feature_names", feature_names, "names")]
    rules = []
    for text in texts:
        terms = _JOINT.split(text.strip())
        rules.append(Rule(tuple(_condition(term, text, names) for term in terms), label))
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=[otherwise, label],
        ordered=False,
        fallback=Fallback(otherwise),
    )


def _condition(term: str, rule: str, names: Sequence[str]) -> Condition:
    """Read one comparison; the longest name that matches is the feature."""
    term = term.strip().strip("()")
    for name in sorted(names, key=len, reverse=True):
        match = _COMPARISON.fullmatch(term[len(name) :]) if term.startswith(name) else None
        if match is not None:
            return _comparison(names.index(name), match[1], match[2].strip(), rule)
    name = re.split(r"\s*[<>=!]", term)[0]
    raise ValueError(
        f"The rule {rule!r} compares {name!r}, which is not a feature. {did_you_mean(name, names)}"
    )


def _comparison(feature: int, operator: str, text: str, rule: str) -> Condition:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        raise ValueError(
            f"The rule {rule!r} compares with {text}, which is neither a number nor a text in "
            "quotation marks. Write it as 3.5 or 'text'."
        ) from None
    if operator in ("==", "=", "!="):
        return OneOf(feature, (value,), negated=operator == "!=")
    side = "upper" if operator[0] == "<" else "lower"
    is_closed = operator.endswith("=")
    return Interval(feature, **{side: value, f"{side}_closed": is_closed})
