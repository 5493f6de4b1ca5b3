"""HTML page with one line per rule: change, time, certainty, and recommended action."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from skescore.monitoring._monitor import MONITOR_KINDS, RuleChange, RuleMonitor

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem;
  padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .45rem .6rem; text-align: left;
  vertical-align: top; }
th { font-weight: 600; } td.rule { max-width: 24rem; }
tr.changed td:first-child { border-left: 4px solid #c0392b; }
tr.unchanged td:first-child { border-left: 4px solid #2d8a4e; }
svg { display: block; } .note { color: #777; font-size: .87em; } dl { margin: 0; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; }
"""
_WIDTH, _HEIGHT = 220, 44


def monitor_page(monitor: RuleMonitor, title: str = "Rules over time") -> str:
    """Return an HTML page about a monitor, without scripts and external files.

    Parameters
    ----------
    monitor : RuleMonitor
        The monitor.
    title : str, default="Rules over time"
        Title of the page.

    Returns
    -------
    str

    Examples
    --------
    >>> from skescore.monitoring import RuleBaseline, RuleMonitor, monitor_page
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> baseline = RuleBaseline.from_rows(rules, [[1], [3]], ["low", "high"])
    >>> monitor_page(RuleMonitor(rules, baseline)).count("<tr")
    4
    """
    changes = monitor.changes()
    names = [monitor.group_name(group) for group in range(len(monitor.ruleset) + 2)]
    rows = []
    for group, name in enumerate(names):
        of_rule = [c for c in changes if c.rule == name]
        status = "changed" if of_rule else "unchanged"
        text = monitor.group_text(group)
        described = "" if text == name else f'<div class="note">{escape(text)}</div>'
        rows.append(
            f'<tr class="{status}"><td class="rule"><b>{escape(name)}</b>{described}</td>'
            f"<td>{_plot(monitor, group)}</td><td>{_descriptions(of_rule)}</td></tr>"
        )
    n_changed = len({c.rule for c in changes})
    summary = (
        f"{monitor.n_rows:,} rows, {monitor.n_labels:,} labels. "
        + (f"{n_changed} of {len(names)} rows of this table changed." if changes else "No change.")
        + f" The probability of ever raising a false alarm is at most {100 * monitor.alpha:g} %."
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f'</title><meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"</head><body><h1>{escape(title)}</h1><p>{escape(summary)}</p><table><thead><tr>"
        f"<th>rule</th><th>{_plotted_kind(monitor)} over time</th><th>what changed, since when, "
        "how sure, what to do</th></tr></thead><tbody>\n"
        + "\n".join(rows)
        + '\n</tbody></table><p class="note">Line: rate of the rows of each period. Band: 95 % '
        "confidence interval of the held-out rate. The confidence of the intervals of changed "
        "rates holds for all batches and all possible times of change together.</p></body></html>\n"
    )


def _plotted_kind(monitor: RuleMonitor) -> str:
    return next((k for k in ("error", "disagreement") if k in monitor.kinds), "share")


def _descriptions(changes: list[RuleChange]) -> str:
    """Return the changes of a rule as HTML."""
    if not changes:
        return '<span class="note">no change</span>'
    parts = []
    for c in changes:
        if c.kind == "any":
            parts.append(f"<dt>evidence of all monitors together</dt><dd>{escape(str(c))}.</dd>")
            continue
        low, high = c.difference_interval
        since = f"row {c.since['row']:,} (batch {c.since['batch']})"
        if c.earliest["row"] != c.latest["row"]:
            since += f", plausible range {c.earliest['row']:,} to {c.latest['row']:,}"
        parts.append(
            f"<dt>{escape(c.kind)}: {c.baseline_rate:.3g} → {c.rate:.3g} "
            f"({low:+.3g} to {high:+.3g})</dt><dd>"
            f"{escape(MONITOR_KINDS[c.kind].meaning)}; since {escape(since)}"
            f"{', with a return to normal' if c.has_returned else ''}. False alarm "
            f"probability at most {c.false_alarm_probability:.1g}. "
            f"<b>To do:</b> {escape(c.action)}.</dd>"
        )
    return f"<dl>{''.join(parts)}</dl>"


def _plot(monitor: RuleMonitor, group: int) -> str:
    """Plot the rate of a group of rows over time."""
    series = monitor.rate_history(_plotted_kind(monitor), group)
    if series is None:
        return '<span class="note">not monitored</span>'
    rows, rates, (low, high) = series
    top = max([high, *(rate for rate in rates if not math.isnan(rate))]) * 1.1 or 1.0

    def height(rate: float) -> float:
        return _HEIGHT - 4 - (_HEIGHT - 8) * rate / top

    band = (
        f'<rect x="0" width="{_WIDTH}" y="{height(high):.1f}" '
        f'height="{max(height(low) - height(high), 0.5):.1f}" fill="#2d8a4e" opacity=".25"/>'
    )
    last = max(rows[-1], 1) if len(rows) else 1
    points = [
        f"{_WIDTH * row / last:.1f},{height(rate):.1f}"
        for row, rate in zip(rows, rates, strict=True)
        if not math.isnan(rate)
    ]
    label = _label(rates, low, high)
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">{band}'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="currentColor" '
        f'stroke-width="1.5"/></svg><span class="note">{label}</span>'
    )


def _label(rates: Any, low: float, high: float) -> str:
    observed = [rate for rate in rates if not math.isnan(rate)]
    last = f"last {observed[-1]:.3g}" if observed else "no rows yet"
    return f"{last}, held out {low:.3g} to {high:.3g}"
