"""Rules as a Markdown table, as GitHub and most others read it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skescore.rules.exporters._text import caption, table_head, table_row

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: What means something within a line of text, or of a table. An underscore does so at the ends of
#: words, a colon where it begins the name of an emoji or goes on to an address.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=[\w+-]+:|//)")


def to_markdown(ruleset: RuleSet) -> str:
    """Write a rule set as a Markdown table with a caption.

    Use it for README files, issues and notebooks.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.

    Returns
    -------
    str
        A line that tells how the rules answer, and a table with one row per rule. Whatever means
        something in Markdown or HTML is escaped in names and labels.

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
    >>> print(to_markdown(rules))
    2 rules, the first that holds answers; otherwise, where no rule holds: setosa
    <BLANKLINE>
    | Rule | Premise | Conclusion | Seen |
    | ---: | --- | --- | --- |
    | 1 | if petal length (cm) ≤ 2.5 | setosa | 50 rows, 100 % pure |
    | 2 | else if petal length (cm) &gt; 5 | virginica | 40 rows, 100 % pure |
    <BLANKLINE>
    """
    head = ["Rule", *table_head(ruleset)]
    lines = [_line(head), _line(["---:", *["---"] * (len(head) - 1)])]
    for position in range(len(ruleset)):
        cells = map(_escaped, table_row(ruleset, position))
        lines.append(_line([str(position + 1), *cells]))
    return "\n".join([_escaped(caption(ruleset)), "", *lines, ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    return html.escape(_SPECIAL.sub(r"\\\g<0>", text), quote=False)
