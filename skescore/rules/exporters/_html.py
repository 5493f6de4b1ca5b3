"""Export of rules to Markdown and HTML tables and to pages."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from skescore._html import (
    Html,
    bar_html,
    details_html,
    notebook_view,
    table_html,
    text_html,
    tiles_html,
)
from skescore._text import plural
from skescore.rules._rule import REFERENCES
from skescore.rules._text import (
    caption,
    closing_lines,
    format_number,
    percent_text,
    table_head,
    table_row,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


#: Characters with a meaning in Markdown text or tables: an underscore at the ends of words, and a
#: colon before the name of an emoji or in an address.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=[\w+-]+:|//)")


def to_markdown(ruleset: RuleSet) -> str:
    """Write a rule set as a Markdown table; see :meth:`RuleSet.to_markdown`."""
    head = ["Rule", *table_head(ruleset)]
    lines = [_table_line(head), _table_line(["---:", *["---"] * (len(head) - 1)])]
    for position in range(len(ruleset)):
        cells = map(_escape, table_row(ruleset, position))
        lines.append(_table_line([str(position + 1), *cells]))
    return "\n".join([_escape(caption(ruleset)), "", *lines, ""])


def _table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Escape a text for Markdown."""
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
        more = f"... and {len(ruleset) - n_shown} more; to_frame() returns all"
        rows.append(f'<tr><td colspan="{len(headings)}">{more}</td></tr>')
    head = "".join(f'<th scope="col">{c}</th>' for c in headings)
    # Line breaks make the source readable.
    gap = "\n" if standalone else ""
    table = (
        f"<table><caption>{html.escape(caption(ruleset))}</caption>{gap}"
        f"<thead><tr>{head}</tr></thead><tbody>{gap}{gap.join(rows)}{gap}</tbody></table>"
    )
    if not standalone:
        return table
    heading = html.escape(f"Rules for {ruleset.task}" if title is None else title)
    return _PAGE.format(title=heading, table=table)


# --- in notebooks --------------------------------------------------------------------------------


#: Largest number of rules in a view.
MAX_VIEWED_RULES = 60


def rules_view(ruleset: RuleSet, *, model: str | None = None, settings: str = "") -> Html:
    """Return a rule set, or a fitted extractor, as a view for notebooks.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    model : str, optional
        Name of the model from which the rules were extracted.
    settings : str, default=""
        HTML of the parameters of the extractor.

    Returns
    -------
    Html
        The view.
    """
    columns = f"using {len(ruleset.used_features)} of {plural(ruleset.n_features, 'column')}"
    headline = f"{plural(len(ruleset), 'rule')} for {ruleset.task}, {columns}"
    if model is not None:
        headline = f"{plural(len(ruleset), 'rule')} instead of {model}, {columns}"
    tiles = counted_tiles(ruleset, "training rows" if model else "counted rows")
    parts = [text_html("headline", headline), *([tiles_html(tiles)] if tiles else [])]
    parts += rules_parts(ruleset, MAX_VIEWED_RULES)
    return notebook_view(parts, details_html("Parameters", Html(settings)) if settings else "")


def counted_tiles(ruleset: RuleSet, rows_name: str) -> list[tuple[str, str, str]]:
    """Return the agreement and correctness of all rules together, from the counts of each rule.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    rows_name : str
        Name of the rows that were counted.

    Returns
    -------
    list of tuple of str
        Figure, meaning and rows of each tile; empty if rules may share rows, or have no counts.
    """
    counted = [rule.statistics for rule in ruleset if rule.statistics is not None]
    if ruleset.classes is None or not (ruleset.ordered or ruleset.disjoint) or ruleset.voting:
        return []
    n_rows = math.fsum(statistics.n_rows for statistics in counted)
    if len(counted) < len(ruleset) or not n_rows:
        return []
    kind = "weighted " if any(statistics.weighted for statistics in counted) else ""
    outputs = [ruleset.output_index(rule) for rule in ruleset]
    tiles: list[tuple[str, str, str]] = []
    for reference, name in ((ruleset.reference, "class_counts"), ("data", "target_counts")):
        counts = [getattr(statistics, name) for statistics in counted]
        if any(one is None for one in counts) or (name == "target_counts" and not tiles):
            continue
        total = n_rows if name == "target_counts" else math.fsum(map(math.fsum, counts))
        hits = math.fsum(one[output] for one, output in zip(counts, outputs, strict=True))
        rows = f"of {format_number(n_rows)} {kind}{rows_name} with a rule"
        if not math.isclose(total, n_rows):
            rows = f"of {format_number(total)} queried rows with a rule"
        tiles.append((percent_text(hits / total), REFERENCES[reference], rows))
    return tiles


def rules_parts(ruleset: RuleSet, limit: int) -> list[Html]:
    """Return the first rules as a table with a bar of the rows of each rule."""
    n_shown = min(limit, len(ruleset))
    head = ["", "Rule", "Prediction", *table_head(ruleset)[2:-1], "Rows"]
    rows: list[list[str]] = []
    for position in range(n_shown):
        *cells, row_text = table_row(ruleset, position)
        bar = _rows_bar(ruleset, position)
        rows.append([str(position + 1), *cells, Html(bar + html.escape(row_text))])
    if n_shown < len(ruleset):
        rows.append(["", f"... and {len(ruleset) - n_shown} more; to_frame() returns all"])
    rows += [["", line] for line in closing_lines(ruleset)]
    order = (
        "; the first that holds gives the prediction"
        if ruleset.ordered and len(ruleset) > 1
        else ""
    )
    table = table_html(head, rows, plural(len(ruleset), "rule") + order, kind="rules")
    return [table, *_bar_key(ruleset)]


def _rows_bar(ruleset: RuleSet, position: int) -> str:
    """Return a bar of the rows of a rule, as a share of the rows of all rules."""
    rule = ruleset.rules[position]
    n_rows = [other.statistics.n_rows for other in ruleset.rules if other.statistics is not None]
    shares_no_rows = ruleset.ordered or ruleset.disjoint
    total = math.fsum(n_rows) if shares_no_rows else max(n_rows, default=0)
    if rule.statistics is None or not total > 0:
        return ""
    share = rule.statistics.n_rows / total
    correctness = rule.correctness(ruleset.output_index(rule))
    if correctness is None and ruleset.classes is not None:
        correctness = rule.purity(ruleset.output_index(rule))
    if correctness is None:
        return bar_html({"counted": share})
    return bar_html({"right": share * correctness, "wrong": share * (1 - correctness)})


def _bar_key(ruleset: RuleSet) -> list[Html]:
    """Return the legend of the bars; empty if they show only numbers of rows."""
    statistics = [rule.statistics for rule in ruleset if rule.statistics is not None]
    if ruleset.classes is None or not any(one.class_counts for one in statistics):
        return []
    by_data = ruleset.reference == "data" or any(one.target_counts for one in statistics)
    texts = ("right (data)", "wrong (data)") if by_data else ("agree with the model", "do not")
    if ruleset.reference is None and not by_data:
        texts = ("of this class", "of other classes")
    keys = zip(("right", "wrong"), texts, strict=True)
    spans = "".join(f'<span class="{kind}"></span>{text}' for kind, text in keys)
    return [Html(f'<p class="key muted">{spans}</p>')]


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
