"""Rules as a Markdown table, as GitHub and most others read it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skescore.rules._text import caption, table_head, table_row

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: What means something within a line of text, or of a table. An underscore does so at the ends of
#: words, a colon where it begins the name of an emoji or goes on to an address.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=[\w+-]+:|//)")


def to_markdown(ruleset: RuleSet) -> str:
    """Write a rule set as a Markdown table; see :meth:`RuleSet.to_markdown`."""
    head = ["Rule", *table_head(ruleset)]
    lines = [_line(head), _line(["---:", *["---"] * (len(head) - 1)])]
    for position in range(len(ruleset)):
        cells = map(_escaped, table_row(ruleset, position))
        lines.append(_line([str(position + 1), *cells]))
    return "\n".join([_escaped(caption(ruleset)), "", *lines, ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return html.escape(_SPECIAL.sub(r"\\\g<0>", text), quote=False)
