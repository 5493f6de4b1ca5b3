"""View of a verification for notebooks, and as a self-contained HTML page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from skescore._html import (
    Html,
    bar_html,
    details_html,
    notebook_view,
    page_html,
    table_html,
    text_html,
)
from skescore.verification._intervals import ShareInterval
from skescore.verification._picture import DisagreementMap

if TYPE_CHECKING:
    from skescore.verification._result import RuleVerification, Verification

_COLORS = ("var(--good)", "var(--bad)", "transparent")
_KEYS = {
    "agree": "proven agreement",
    "disagree": "disagreement",
    "sampled": "agreement by samples",
    "unknown": "unknown",
}


def verification_html(result: Verification) -> str:
    """Return a verification as a self-contained HTML page.

    Parameters
    ----------
    result : Verification
        The result.

    Returns
    -------
    str
        HTML of the page.
    """
    return page_html("Where the rules agree with the model", _verification_parts(result))


def verification_view(result: Verification) -> str:
    """Return a verification as a view for notebooks."""
    return notebook_view(_verification_parts(result))


def _verification_parts(result: Verification) -> list[str]:
    head, *sentences = result.to_text().split("\n\n")[0].split("\n")
    keys = "".join(f'<span class="{kind}"></span>{text}' for kind, text in _KEYS.items())
    remark = (
        "Near the data means a row of the data with each number moved by up to "
        f"{result.radius:g} standard deviations. {result.n_queries:,} queries of the model, "
        f"{result.seconds:.1f} seconds."
    )
    return [
        text_html("headline", head),
        *sentences,
        Html(f'<p class="key muted">{keys}</p>'),
        *(part for rule in result.rules for part in _rule_section(result, rule)),
        *([_picture(result.picture)] if result.picture else []),
        text_html("muted", remark),
    ]


def _rule_section(result: Verification, rule: RuleVerification) -> list[str]:
    """Return the bars, the trusted part and the witness of a rule."""
    from skescore.verification._result import rule_title

    near_share = rule.near_proven.agreeing if rule.near_proven else 0.0
    volume = rule.volume_proven.agreeing if rule.volume_proven else 0.0
    rows = [
        _bar_row("near the data", rule.near_disagreement, near_share),
        _bar_row("by volume", rule.volume_disagreement, volume),
    ]
    title = rule_title(result.ruleset, rule.index).partition("   [")[0]
    number = f"{rule.index + 1}. " if rule.index >= 0 else ""
    parts: list[str] = [
        text_html("title", number + title),
        table_html(["", "", "Disagreement"], rows, "", kind="bars"),
    ]
    if rule.max_deviation is not None:
        parts.append(f"Proven largest deviation: {rule.max_deviation:.4g}.")
    if rule.trusted is not None:
        shares = (
            f"Agreement is proven for {100 * rule.trusted.row_share:.3g} % of its rows, "
            f"{100 * rule.trusted.volume_share:.3g} % of its volume"
        )
        parts.append(details_html(shares, text_html("plain", rule.trusted.to_text())))
    witnesses = (rule.witness, rule.worst if rule.worst != rule.witness else None)
    texts = [text_html("plain", one.to_text()) for one in witnesses if one is not None]
    if texts:
        parts.append(details_html("Rows of disagreement", *texts))
    return parts


def _bar_row(label: str, interval: ShareInterval, agreeing: float) -> list[str]:
    """Return a table row: label, bar of agreement and disagreement, share of disagreement."""
    shares = interval.bar(agreeing)
    if not shares:
        return [label, "", "no mass"]
    return [label, bar_html(shares), f"{interval} disagree"]


def _picture(picture: DisagreementMap) -> Html:
    """Return a map of two features as SVG."""
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
    return Html(
        f'<p class="title">Around the most confident disagreement with {title}</p>'
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
        '<p class="muted">All other features are as in the marked row. Other rules predict the '
        "empty area.</p>"
    )


def _position(value: float, values: tuple[float, ...]) -> float:
    return (value - values[0]) / (values[-1] - values[0])
