"""Reader of rules as texts, each of which is a conjunction of comparisons."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skescore._text import did_you_mean
from skescore._validation import check_sequence
from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._domain import Fallback
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet

_OPERATOR = r"\s*(<=|>=|==|!=|<|>|=)\s*"
_VALUE = r"""('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^\s()&'"]++)"""


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
    # Names may contain parts of rules; the longest name that matches is the feature.
    name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    term = re.compile(rf"[\s(]*({name}){_OPERATOR}{_VALUE}[\s)]*((?:and|AND)(?=\W)|&&?|$)")
    rules = [Rule(tuple(_conditions(text, term, names)), label) for text in texts]
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=[otherwise, label],
        ordered=False,
        fallback=Fallback(otherwise),
    )


def _conditions(text: str, term: re.Pattern[str], names: Sequence[str]) -> Iterator[Condition]:
    """Read comparisons up to the end of the text."""
    position, joint = 0, "&"
    while joint:
        match = term.match(text, position)
        if match is None:
            rest = re.split(r"\s(?:and|AND|&&?)\s", text[position:])[0].strip().strip("()")
            name, *value = re.split(r"\s*[<>=!]+\s*", rest, maxsplit=1)
            if name in names and value:
                raise _no_value(text, value[0])
            raise ValueError(
                f"The rule {text!r} compares {name!r}, which is not a feature. "
                f"{did_you_mean(name, names)}"
            )
        yield _comparison(names.index(match[1]), match[2], match[3], text)
        position, joint = match.end(), match[4]


def _no_value(rule: str, text: str) -> ValueError:
    return ValueError(
        f"The rule {rule!r} compares with {text}, which is neither a number nor a text in "
        "quotation marks. Write it as 3.5 or 'text'."
    )


def _comparison(feature: int, operator: str, text: str, rule: str) -> Condition:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        raise _no_value(rule, text) from None
    if operator in ("==", "=", "!="):
        return OneOf(feature, (value,), negated=operator == "!=")
    side = "upper" if operator[0] == "<" else "lower"
    is_closed = operator.endswith("=")
    return Interval(feature, **{side: value, f"{side}_closed": is_closed})
