"""Searches and candidates as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from skescore._text import plural
from skescore.registry import extractor_label
from skescore.scorers import measured_quantities
from skescore.tuning import Candidates, ExtractorSearchCV

# The colors are inherited from the notebook, which may be dark. All texts are escaped.

_MAX_CANDIDATES, _MAX_CANDIDATES_OF_SEARCH = 20, 10
_CELL = "text-align:left;padding:.2em .8em .2em 0;border-bottom:1px solid rgba(128,128,128,.35)"
_NUMBER = _CELL.replace("left", "right", 1)
_TABLE = "border-collapse:collapse;margin:.3em 0 .8em 0;background:transparent;color:inherit"
_CAPTION = "text-align:left;color:inherit"
_OUTCOME = ["extractor", "score", "n_rules", "loss", "completeness_volume"]
#: Columns besides the score; their headings and digits are those of the measured quantities.
_COLUMNS = ("performance", "loss", "n_rules", "completeness_volume", "completeness_instances")


def candidates_html(candidates: Candidates) -> str:
    """Return candidates as an HTML table with the means of their measures.

    Parameters
    ----------
    candidates : Candidates
        Only the first twenty are shown.

    Returns
    -------
    str
        HTML.
    """
    n_candidates = len(candidates)
    first = f"the first {_MAX_CANDIDATES} of " if n_candidates > _MAX_CANDIDATES else ""
    heading = f"{first}{plural(n_candidates, 'candidate')}, means over the folds"
    return records_html(candidates.table().head(_MAX_CANDIDATES), heading)


def search_html(search: ExtractorSearchCV, settings: str) -> str:
    """Return a fitted search as HTML: rules, best candidates, best trade-offs and settings.

    Parameters
    ----------
    search : ExtractorSearchCV
        Fitted, with its winner.
    settings : str
        HTML of the parameters of the search.

    Returns
    -------
    str
        HTML.
    """
    rules, board, front = search.rules_, search.leaderboard_, search.pareto_front_
    best = board.iloc[0]
    parts = [
        f"<div><strong>{html.escape(extractor_label(str(best['extractor'])))}</strong>: "
        f"{plural(len(rules), 'rule')} from all rows; score {best['score']:.4g} "
        f"± {best['score_std']:.2g} on held-out rows</div>",
        _styled(rules.to_html(limit=_MAX_CANDIDATES_OF_SEARCH)),
    ]
    complete_trials = board[board["state"] == "complete"]
    different_outcomes = complete_trials[~complete_trials.duplicated(subset=_OUTCOME)]
    first = (
        f"the best {_MAX_CANDIDATES_OF_SEARCH} of "
        if len(different_outcomes) > _MAX_CANDIDATES_OF_SEARCH
        else ""
    )
    heading = (
        f"{plural(len(board), 'trial')}, "
        f"{first}{plural(len(different_outcomes), 'different outcome')}, the winner first"
    )
    parts.append(records_html(different_outcomes.head(_MAX_CANDIDATES_OF_SEARCH), heading))
    if len(front) > 1:
        parts.append(records_html(front, "best trade-offs between loss, rules and space covered"))
    parts.append(f"<details><summary>settings</summary>{settings}</details>")
    return f'<div style="color:inherit">{"".join(parts)}</div>'


def _styled(table: str) -> str:
    """Rules in the style of the other tables; their own texts are escaped, and hold no tags."""
    for tag, style in (("table", _TABLE), ("caption", _CAPTION), ("td", _CELL)):
        table = table.replace(f"<{tag}>", f'<{tag} style="{style}">')
    return table.replace("<th scope", f'<th style="{_CELL}" scope')


def records_html(table: pd.DataFrame, heading: str) -> str:
    """Show candidates, one per row, with what can be read of them at a glance."""
    quantities = measured_quantities()
    columns = {"score": ("score", 4)} if "score" in table else {}
    columns |= {
        name: (quantities[name].heading, quantities[name].digits)
        for name in _COLUMNS
        if name in table
    }
    rows = [
        [
            extractor_label(str(record["extractor"])),
            *(_number(record[name], digits) for name, (_, digits) in columns.items()),
            ", ".join(f"{key}={_value(value)}" for key, value in record["params"].items()),
            "knee" if record.get("knee") else "",
        ]
        for record in table.to_dict(orient="records")
    ]
    head = ["extractor", *(title for title, _ in columns.values()), "parameters", ""]
    if "knee" not in table:
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table_html(head, rows, heading, left=("extractor", "parameters", ""))


def table_html(
    head: Sequence[str], rows: Iterable[Sequence[str]], heading: str, *, left: Sequence[str]
) -> str:
    """Write a table; columns that are not named in `left` are aligned to the right."""
    style = [_CELL if name in left else _NUMBER for name in head]

    def row(cells: Sequence[str], tag: str) -> str:
        written = zip(cells, style, strict=True)
        return "".join(f'<{tag} style="{s}">{html.escape(text)}</{tag}>' for text, s in written)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">'
        f"{html.escape(heading)}</caption><thead><tr>{row(head, 'th')}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _number(value: Any, digits: int) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 10 or digits == 1 else f"{value:.{digits + 1}g}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
