"""Conjunctions of comparisons as text, such as ``a <= 10.0 and b > 3.0``, in skope-rules' form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TERM = re.compile(r"(?P<name>.+?) (?P<operator><=|>=|==|<|>) (?P<value>\S+)")


class Rule:
    """Conjunction in which redundant comparisons are merged.

    Rules with the same merged comparisons are equal, regardless of their original order.

    Parameters
    ----------
    rule : str
        Comparisons joined by ``and``, each of a name, an operator and a number, separated by
        spaces. ``a == a`` always holds.
    args : object, optional
        Object associated with the rule; ``tuple(rule)`` is the text and this object.

    Raises
    ------
    ValueError
        If the text does not consist of such comparisons.

    Examples
    --------
    >>> str(Rule("b > 3 and a <= 12 and a <= 10"))
    'a <= 10.0 and b > 3.0'
    >>> Rule("a <= 10 and a <= 12") == Rule("a <= 10")
    True
    """

    def __init__(self, rule: str, args: Any = None) -> None:
        self.rule = rule
        self.args = args
        self.terms: dict[tuple[str, str], float | str] = {}
        for text in rule.split(" and "):
            self._add_term(text)

    def _add_term(self, text: str) -> None:
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise ValueError(
                f"rule must join comparisons such as 'a <= 10' by ' and ', got {text!r} in "
                f"{self.rule!r}."
            )
        name, operator, value = match["name"], match["operator"], match["value"]
        key = name, operator
        if operator == "==":
            self.terms[key] = value
            return
        number = float(value)
        if key in self.terms:
            tighter = min if operator.startswith("<") else max
            number = tighter(number, float(self.terms[key]))
        self.terms[key] = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        terms = ((*key, value) for key, value in sorted(self.terms.items(), key=lambda t: t[0]))
        return " and ".join(f"{name} {operator} {value}" for name, operator, value in terms)

    def __repr__(self) -> str:
        return f"Rule({str(self)!r})"

    def __iter__(self) -> Iterator[Any]:
        yield str(self)
        yield self.args


def replace_feature_name(rule: str, replace_dict: Mapping[str, str]) -> str:
    """Replace names in the text of a rule.

    Parameters
    ----------
    rule : str
        The rule.
    replace_dict : mapping of str to str
        New names by old names.

    Returns
    -------
    str

    Examples
    --------
    >>> replace_feature_name("x1 <= 3 and x10 > 4", {"x1": "age", "x10": "size (cm)"})
    'age <= 3 and size (cm) > 4'
    """
    names = sorted(map(re.escape, replace_dict), key=len, reverse=True)
    if not names:
        return rule
    pattern = rf"(?<!\w)(?:{'|'.join(names)})(?!\w)"
    return re.sub(pattern, lambda match: replace_dict[match[0]], rule)
