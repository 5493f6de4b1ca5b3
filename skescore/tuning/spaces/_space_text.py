"""Search spaces as text: a line, a table, HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

if TYPE_CHECKING:
    from skescore.tuning.spaces._space import SearchSpace

_HEAD = ("parameter", "values", "scale", "asked if")


def as_line(space: SearchSpace) -> str:
    """All parameters in one line, for ``repr``."""
    parts = []
    for name, values, scale, condition in _rows(space):
        log = " (log)" if scale == "log" else ""
        parts.append(f"{name} {values}{log}" + (f" if {condition}" if condition else ""))
    title = f" of {space.title}" if space.title else ""
    return f"<{type(space).__name__}{title}: {'; '.join(parts) or 'empty'}>"


def as_table(space: SearchSpace) -> str:
    """A line per parameter, in columns."""
    rows = [_HEAD, *_rows(space)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    if not space.conditions:
        widths, rows = widths[:-1], [row[:-1] for row in rows]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([space.title, *lines] if space.title else lines)


def as_html(space: SearchSpace) -> str:
    """A table for notebooks."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    caption = f"<caption>{html.escape(space.title)}</caption>" if space.title else ""
    body = "".join(row(cells, "td") for cells in _rows(space))
    return f"<table>{caption}<thead>{row(_HEAD, 'th')}</thead><tbody>{body}</tbody></table>"


def _rows(space: SearchSpace) -> list[tuple[str, ...]]:
    conditions = space.conditions
    return [
        (name, _values(distribution), _scale(distribution), _condition(conditions.get(name, {})))
        for name, distribution in space.items()
    ]


def _values(distribution: BaseDistribution) -> str:
    if isinstance(distribution, CategoricalDistribution):
        return ", ".join(map(repr, distribution.choices))
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return repr(distribution)
    if distribution.low == distribution.high:
        return _number(distribution.low)
    whole_step = isinstance(distribution, IntDistribution) and distribution.step == 1
    step = "" if whole_step or distribution.step is None else f" by {_number(distribution.step)}"
    return f"{_number(distribution.low)} to {_number(distribution.high)}{step}"


def _scale(distribution: BaseDistribution) -> str:
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return "choice"
    if distribution.low == distribution.high:
        return "fixed"
    return "log" if distribution.log else "linear"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _condition(wanted: dict[str, tuple[Any, ...]]) -> str:
    return " and ".join(
        f"{name} is {' or '.join(map(repr, values))}" for name, values in wanted.items()
    )
