"""Rules as tables in Markdown and HTML, or as a page of their own."""

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


def to_html(ruleset: RuleSet, limit: int | None, *, standalone: bool, title: str | None) -> str:
    """Write an HTML table, or a page; see :meth:`RuleSet.to_html`."""
    n_shown = len(ruleset) if limit is None else min(limit, len(ruleset))
    headings = ["Rule" if standalone else "", *table_head(ruleset)]
    rows = []
    for position in range(n_shown):
        cells = "".join(f"<td>{html.escape(c)}</td>" for c in table_row(ruleset, position))
        rows.append(f'<tr><th scope="row">{position + 1}</th>{cells}</tr>')
    if n_shown < len(ruleset):
        more = f"... and {len(ruleset) - n_shown} more; to_frame() gives all"
        rows.append(f'<tr><td colspan="{len(headings)}">{more}</td></tr>')
    head = "".join(f'<th scope="col">{c}</th>' for c in headings)
    # Lines of their own keep a page of many rules readable as text, too.
    gap = "\n" if standalone else ""
    table = (
        f"<table><caption>{html.escape(caption(ruleset))}</caption>{gap}"
        f"<thead><tr>{head}</tr></thead><tbody>{gap}{gap.join(rows)}{gap}</tbody></table>"
    )
    if not standalone:
        return table
    heading = html.escape(f"Rules for {ruleset.task}" if title is None else title)
    return _PAGE.format(title=heading, table=table)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem; font: 1rem/1.5 sans-serif;
  color: CanvasText; background: Canvas; }}
table {{ width: 100%; border-collapse: collapse; }}
caption {{ padding-bottom: 1rem; text-align: left; }}
th, td {{ padding: .4rem .8rem; border-bottom: 1px solid GrayText; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; white-space: pre-wrap; }}
th {{ white-space: nowrap; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{table}
</main>
</body>
</html>
"""
