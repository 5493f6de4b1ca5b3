"""Searches and candidates as HTML for notebooks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from skescore._html import (
    Html,
    bold_html,
    details_html,
    notebook_view,
    table_html,
    text_html,
    tiles_html,
    warnings_html,
)
from skescore._text import plural
from skescore.black_boxes import is_prefit
from skescore.registry import extractor_label
from skescore.rules._text import format_number, percent_text
from skescore.rules.exporters._html import rules_parts
from skescore.scorers import measured_quantities
from skescore.tuning import Candidates, ExtractorSearchCV

_MAX_CANDIDATES, _MAX_CANDIDATES_OF_SEARCH = 20, 10
_OUTCOME = ["extractor", "score", "n_rules", "loss", "completeness_volume"]
#: Columns besides the score; their headings and digits come from the measured quantities.
_COLUMNS = ("performance", "loss", "n_rules", "completeness_volume", "completeness_instances")


def candidates_html(candidates: Candidates) -> str:
    """Return candidates as an HTML table with the means of their measures.

    Parameters
    ----------
    candidates : Candidates
        The candidates; only the first 20 are shown.

    Returns
    -------
    str
        HTML.
    """
    n_candidates = len(candidates)
    first = f"the first {_MAX_CANDIDATES} of " if n_candidates > _MAX_CANDIDATES else ""
    heading = f"{first}{plural(n_candidates, 'candidate')}, means over the folds"
    return notebook_view([records_html(candidates.table().head(_MAX_CANDIDATES), heading)])


def search_html(search: ExtractorSearchCV, settings: str) -> str:
    """Return a fitted search as HTML: its rules with their quality, trade-offs and settings.

    Parameters
    ----------
    search : ExtractorSearchCV
        A fitted search with a winner.
    settings : str
        HTML of the parameters of the search.

    Returns
    -------
    str
        HTML.
    """
    rules, board, front = search.rules_, search.leaderboard_, search.pareto_front_
    best = board.iloc[0]
    target = bold_html(str(getattr(search.data_.y, "name", None) or "the target"))
    verb = "predicts" if len(rules) == 1 else "predict"
    model = search.estimator.estimator if is_prefit(search.estimator) else search.estimator
    model_name = bold_html(type(model).__name__)
    headline = (f"{plural(len(rules), 'rule')} that {verb} ", target, ", instead of ", model_name)
    found_by = (
        f"{extractor_label(str(best['extractor']))} from all rows; score {best['score']:.4g} "
        f"± {best['score_std']:.2g} on held-out rows"
    )
    parts: list[Html] = [
        text_html("headline", *headline, "."),
        *warnings_html([str(suspicion) for suspicion in search.suspicions_]),
        tiles_html(_quality_tiles(search)),
        *rules_parts(rules, _MAX_CANDIDATES_OF_SEARCH),
        text_html("muted", f"Extracted by {found_by}."),
    ]
    if len(front) > 1:
        parts.append(records_html(front, "Best trade-offs between loss, rules and space covered"))
    parts.append(_outcomes(board))
    return notebook_view(parts, details_html("Settings", Html(settings)))


def _outcomes(board: pd.DataFrame) -> Html:
    """Return a table of the best distinct outcomes of the trials."""
    complete_trials = board[board["state"] == "complete"]
    outcomes = complete_trials[~complete_trials.duplicated(subset=_OUTCOME)]
    first = f"the best {_MAX_CANDIDATES_OF_SEARCH} of "
    if len(outcomes) <= _MAX_CANDIDATES_OF_SEARCH:
        first = ""
    heading = f"{first}{plural(len(outcomes), 'different outcome')}, the winner first"
    table = records_html(outcomes.head(_MAX_CANDIDATES_OF_SEARCH), heading)
    return details_html(plural(len(board), "trial"), table)


def _quality_tiles(search: ExtractorSearchCV) -> list[tuple[str, str, str]]:
    """Return the quality of the winner on held-out rows, and its size."""
    best, data, rules = search.leaderboard_.iloc[0], search.data_, search.rules_
    is_regression = rules.task == "regression"
    weighed = ", with weighted rows" if data.row_weights is not None else ""
    black_box = search.black_box_quality_.get("r2" if is_regression else "accuracy")
    tiles = []

    def write(value: float) -> str:
        return format_number(value) if is_regression else percent_text(value)

    if pd.notna(best.get("correctness")):
        text = "R² (data)" if is_regression else "right (data)"
        remark = "" if black_box is None else f"; model: {write(black_box)}"
        rows = f"on held-out rows{weighed}{remark}"
        tiles.append((write(best["correctness"]), text, rows))
    if pd.notna(best.get("fidelity")):
        rows = "held-out rows, on which the model was not fitted" + weighed
        if data.is_fitted:
            rows = "generated rows, which the model has not seen"
        text = "R² against the model" if is_regression else "agree with the model"
        tiles.append((write(best["fidelity"]), text, f"on {rows}"))
    uncovered = 1 - best["completeness_instances"]
    tiles.append((percent_text(max(uncovered, 0.0)), "without a rule", "of held-out rows"))
    columns = f"using {len(rules.used_features)} of {plural(rules.n_features, 'column')}"
    tiles.append((str(len(rules)), "rule" if len(rules) == 1 else "rules", columns))
    return tiles


def records_html(table: pd.DataFrame, heading: str) -> Html:
    """Return candidates, one per row, with their main quantities."""
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
    numbers = [title for title, _ in columns.values()]
    head = ["extractor", *numbers, "parameters", ""]
    if "knee" not in table:
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table_html(head, rows, heading, numbers=numbers)


def _number(value: Any, digits: int) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 10 or digits == 1 else f"{value:.{digits + 1}g}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
