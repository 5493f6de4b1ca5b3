"""Rules as an indented tree of text, as scikit-learn's ``export_text`` draws its trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._text import (
    NumberFormat,
    bounds_text,
    feature_name,
    format_label,
    linear_text,
    plain_number,
)
from skescore.rules.exporters._splits import Node, split_tree
from skescore.rules.exporters._text import closing_lines, output_index

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_ASCII = str.maketrans({"≤": "<=", "≥": ">="})
_BRANCH, _INDENT = "|--- ", "|   "


def to_tree_text(ruleset: RuleSet, *, number: NumberFormat | None = None) -> str:
    """Write a rule set as an indented tree.

    Use it where rules share conditions, as those of a tree do: each is then written once.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    number : callable, optional
        Writes a bound of the feature with the given index; by default
        :attr:`RuleSet.number`, which rounds to what a reader needs.

    Returns
    -------
    str
        One line for each condition and each conclusion, indented below the conditions it needs.

    Raises
    ------
    ValueError
        If all rules that hold answer together, which no tree can say.

    Notes
    -----
    Rules that never hold together are drawn as the tree that parts them, however its leaves were
    listed. All others keep the order in which they answer, neighbours sharing the conditions that
    both begin with; from the top, the first conclusion whose conditions all hold is the answer,
    and the first line says so.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> print(to_tree_text(as_ruleset(tree)))
    |--- petal width (cm) <= 0.8
    |   |--- class: 0   (50 rows, 100 % pure)
    |--- petal width (cm) > 0.8
    |   |--- petal width (cm) <= 1.75
    |   |   |--- class: 1   (54 rows, 91 % pure)
    |   |--- petal width (cm) > 1.75
    |   |   |--- class: 2   (46 rows, 98 % pure)
    """
    ruleset.check_one_answers("A tree")
    return "\n".join(_lines(ruleset, ruleset.number if number is None else number))


def _lines(ruleset: RuleSet, number: NumberFormat) -> Iterator[str]:
    if not len(ruleset):
        yield "(no rules)"
    elif ruleset.disjoint and ruleset.boxes_only:
        nodes = list(split_tree(ruleset.boxes))
        if any(len(node.rules) > 1 for node in nodes):
            yield _FROM_THE_TOP
        for node in nodes:
            if node.condition is not None:
                condition = condition_text(node.condition, ruleset.feature_names, number)
                yield f"{_INDENT * (node.depth - 1)}{_BRANCH}{condition}"
            yield from _branches(ruleset, _remaining(node), number, node.depth)
    else:
        if len(ruleset) > 1:
            yield _FROM_THE_TOP
        rules = [(i, ruleset.rules[i].conditions) for i in ruleset._priority.tolist()]
        yield from _branches(ruleset, rules, number, 0)
    yield from closing_lines(ruleset)


_FROM_THE_TOP = "(from the top, the first conclusion whose conditions all hold answers)"


def _remaining(node: Node) -> list[tuple[int, Sequence[Condition]]]:
    """The rules that end at a node, with the conditions that the way there has not asked."""
    return list(zip(node.rules, node.remaining, strict=True))


def _branches(
    ruleset: RuleSet,
    rules: Iterable[tuple[int, Sequence[Condition]]],
    number: NumberFormat,
    depth: int,
) -> Iterator[str]:
    """Rules in order, each below the conditions that the one before it began with as well."""
    names = ruleset.feature_names
    before: Sequence[Condition] = ()
    for position, conditions in rules:
        shared = 0
        for old, new in zip(before, conditions, strict=False):
            if old != new:
                break
            shared += 1
        for level, condition in enumerate(conditions[shared:], depth + shared):
            yield f"{_INDENT * level}{_BRANCH}{condition_text(condition, names, number)}"
        yield f"{_INDENT * (depth + len(conditions))}{_BRANCH}{_leaf(ruleset, position)}"
        before = conditions


def _leaf(ruleset: RuleSet, position: int) -> str:
    rule = ruleset.rules[position]
    numeric = ruleset.task == "regression"
    text = f"{'value' if numeric else 'class'}: "
    text += rule.output_text(ruleset.feature_names, numeric=numeric)
    seen = rule.statistics_text(output_index(ruleset, rule), weighted=False)
    return f"{text}   ({seen})" if seen else text


def condition_text(
    condition: Condition,
    names: Sequence[str] | None = None,
    number: NumberFormat = plain_number,
) -> str:
    """Write a condition with signs of ASCII.

    Parameters
    ----------
    condition : Interval, OneOf, AtLeast or Linear
        The condition.
    names : sequence of str, optional
        Feature names; ``x0``, ``x1``, ... by default.
    number : callable, optional
        Writes the bounds of intervals.

    Returns
    -------
    str
        The condition.

    Examples
    --------
    >>> from skescore.rules import Interval, OneOf
    >>> condition_text(Interval(0, 1, 2)), condition_text(OneOf(1, ["red"], negated=True))
    ('1 < x0 <= 2', 'x1 != red')
    """
    if isinstance(condition, AtLeast):
        inner = "; ".join(condition_text(c, names, number) for c in condition.conditions)
        return f"at least {condition.m} of ({inner})"
    if isinstance(condition, OneOf):
        if len(condition.values) > 1 or not condition.negated:
            return condition.to_text(names)
        return f"{feature_name(names, condition.feature)} != {format_label(condition.values[0])}"
    if isinstance(condition, Interval):
        feature, middle = condition.feature, feature_name(names, condition.feature)
    else:
        feature, middle = 0, linear_text(condition.terms, names)
        number = plain_number
    bounds = bounds_text(
        "\0",  # only the signs around the name become ASCII
        condition.lower,
        condition.upper,
        condition.lower_closed,
        condition.upper_closed,
        lambda value: number(feature, value),
    )
    return bounds.translate(_ASCII).replace("\0", middle)
