"""A verification as one self-contained HTML page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from skescore.verification._intervals import ShareInterval
from skescore.verification._picture import DisagreementMap

if TYPE_CHECKING:
    from skescore.verification._result import RuleVerification, Verification

_STYLE = """
:root { color-scheme: light dark; --agree: #2a7f62; --disagree: #c2452d; --sampled: #e9b872;
  --unknown: #9aa3ad; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
.bar { border: 1px solid var(--line); display: flex; height: 1.1rem; width: 100%; }
.bar span { display: block; height: 100%; }
.agree { background: var(--agree); } .disagree { background: var(--disagree); }
.sampled { background: var(--sampled); } .unknown { background: var(--unknown); }
table { border-collapse: collapse; width: 100%; } td { padding: .15rem .6rem .15rem 0; }
td:first-child { white-space: nowrap; } td:nth-child(2) { width: 45%; }
.key span { display: inline-block; height: .8rem; margin: 0 .3rem 0 1rem; width: .8rem; }
svg { max-width: 26rem; width: 100%; } svg text { fill: currentColor; font-size: 12px; }
.note { color: color-mix(in srgb, currentColor 75%, transparent); }
"""
_COLORS = ("var(--agree)", "var(--disagree)", "transparent")


def verification_html(result: Verification) -> str:
    """Write a verification as an HTML page.

    Parameters
    ----------
    result : Verification
        The result.

    Returns
    -------
    str
        The page, which needs no other files.
    """
    head, *sentences = result.to_text().split("\n\n")[0].split("\n")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Verification of rules</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Where the rules agree with the model</h1>",
        f"<p>{escape(head)}</p>",
        *(f"<p>{escape(sentence)}</p>" for sentence in sentences),
        '<p class="key">'
        '<span class="agree"></span>proven agreement'
        '<span class="disagree"></span>disagreement'
        '<span class="sampled"></span>agreement by samples'
        '<span class="unknown"></span>unknown</p>',
        *(_rule_section(result, rule) for rule in result.rules),
        *([_picture(result.picture)] if result.picture else []),
        f'<p class="note">Near the data means a row of the data with each number moved by up to '
        f"{result.radius:g} standard deviations. {result.n_queries:,} queries of the model, "
        f"{result.seconds:.1f} seconds.</p>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _rule_section(result: Verification, rule: RuleVerification) -> str:
    """Write the bars, the trusted part and the witness of a rule."""
    from skescore.verification._result import rule_title

    near = rule.near_proven.agreeing if rule.near_proven else 0.0
    volume = rule.volume_proven.agreeing if rule.volume_proven else 0.0
    lines = [
        f"<h2>{escape(rule_title(result.ruleset, rule.index))}</h2><table>",
        _bar_row("near the data", rule.near_disagreement, near),
        _bar_row("by volume", rule.volume_disagreement, volume),
        "</table>",
    ]
    if rule.max_deviation is not None:
        lines.append(f"<p>Proven largest deviation: {rule.max_deviation:.4g}.</p>")
    if rule.trusted is not None:
        lines.append(
            f"<p>Agreement is proven in: {escape(rule.trusted.to_text())} "
            f"({100 * rule.trusted.row_share:.3g} % of the rule's rows, "
            f"{100 * rule.trusted.volume_share:.3g} % of its volume).</p>"
        )
    for witness in (rule.witness, rule.worst if rule.worst != rule.witness else None):
        if witness is not None:
            lines.append(f"<p>{escape(witness.to_text())}</p>")
    return "\n".join(lines)


def _bar_row(label: str, interval: ShareInterval, agreeing: float) -> str:
    """Write a bar: proven agreement, agreement by samples, unknown, disagreement."""
    shares = interval.bar(agreeing)
    if not shares:
        return f"<tr><td>{label}</td><td></td><td>no mass</td></tr>"
    spans = "".join(
        f'<span class="{name}" style="width:{100 * share:.3f}%"></span>'
        for name, share in shares.items()
    )
    text = f"{escape(str(interval))} disagree"
    return (
        f'<tr><td>{label}</td><td><div class="bar" role="img" aria-label="{text}">{spans}</div>'
        f"</td><td>{text}</td></tr>"
    )


def _picture(picture: DisagreementMap) -> str:
    """Write a map of two features as SVG."""
    n_x, n_y = len(picture.x_values), len(picture.y_values)
    size = 300 / max(n_x, n_y)
    cells = [
        f'<rect x="{40 + i * size:.2f}" y="{10 + (n_y - 1 - k) * size:.2f}" '
        f'width="{size:.2f}" height="{size:.2f}" fill="{_COLORS[state]}"/>'
        for k, row in enumerate(picture.states)
        for i, state in enumerate(row)
        if state < 2
    ]
    x = 40 + 300 * _position(picture.point[0], picture.x_values)
    y = 310 - 300 * _position(picture.point[1], picture.y_values)
    names = [escape(name) for name in picture.features]
    title = "the fallback" if picture.rule < 0 else f"rule {picture.rule + 1}"
    return (
        f"<h2>Around the most certain wrong answer of {title}</h2>"
        f'<svg viewBox="0 0 360 350" role="img" aria-label="Agreement by {names[0]} and '
        f'{names[1]}"><rect x="40" y="10" width="300" height="300" fill="none" '
        f'stroke="var(--line)"/>{"".join(cells)}'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" stroke="currentColor" '
        'stroke-width="2"/>'
        f'<text x="40" y="328">{picture.x_values[0]:.4g}</text>'
        f'<text x="340" y="328" text-anchor="end">{picture.x_values[-1]:.4g}</text>'
        f'<text x="190" y="345" text-anchor="middle">{names[0]}</text>'
        f'<text x="35" y="310" text-anchor="end">{picture.y_values[0]:.4g}</text>'
        f'<text x="35" y="20" text-anchor="end">{picture.y_values[-1]:.4g}</text>'
        f'<text x="14" y="160" text-anchor="middle" transform="rotate(-90 14 160)">{names[1]}'
        "</text></svg>"
        '<p class="note">All other features are those of the marked row. Other rules predict the '
        "empty area.</p>"
    )


def _position(value: float, values: tuple[float, ...]) -> float:
    return (value - values[0]) / (values[-1] - values[0])
