"""HTML elements of the notebook views of results.

Views need neither scripts nor other files. Text is escaped, and the style applies only inside the
view. Text and lines have the color of the notebook, whether it is light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = [
    "Html",
    "bar_html",
    "details_html",
    "notebook_view",
    "page_html",
    "table_html",
    "tiles_html",
    "warnings_html",
]

#: Number of columns above which tables may be wider than a notebook.
_MAX_FIXED_COLUMNS = 5
_LIGHT = "--good:#2e7d5b;--bad:#d9584e;--sampled:#d99a2b;--accent:#2450c8;--alert:#b3261e;"
_DARK = "--good:#5cc193;--bad:#f07f76;--sampled:#e9b872;--accent:#93b4ff;--alert:#ff9d94;"
#: Notebooks that declare a theme: JupyterLab, VS Code and Colab.
_DARK_THEMES = (
    "[data-jp-theme-light=false]",
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
    "html[theme=dark]",
)
_LIGHT_THEMES = (
    "[data-jp-theme-light=true]",
    ".vscode-light",
    ".vscode-high-contrast-light",
    "html[theme=light]",
)


def _themed(themes: Sequence[str]) -> str:
    return ",".join(f"{theme} .skescore-view" for theme in themes)


_STYLE = (
    f"""
.skescore-view{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.skescore-view{{{_DARK}}}}}
{_themed(_LIGHT_THEMES)}{{{_LIGHT}}}
{_themed(_DARK_THEMES)}{{{_DARK}}}
"""
    + """
div.skescore-view{--line:color-mix(in srgb,currentColor 22%,transparent);
--muted:color-mix(in srgb,currentColor 75%,transparent);max-width:64rem;padding:.2rem 0;
color:inherit;font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
overflow-wrap:anywhere;text-align:left;container-type:inline-size}
div.skescore-view p{margin:.3rem 0}
div.skescore-view .headline{font-size:1.1em;margin:0 0 .5rem}
div.skescore-view .muted{color:var(--muted);font-size:.92em}
div.skescore-view .title{font-weight:600;margin-top:1rem}
div.skescore-view .warnings{border:1px solid var(--line);border-left:4px solid var(--alert);
border-radius:.3rem;margin:.6rem 0;padding:.4rem .8rem}
div.skescore-view ul{margin:.2rem 0;padding-left:1.2rem}
div.skescore-view ul.tiles{display:flex;flex-wrap:wrap;gap:.5rem;list-style:none;margin:.6rem 0;
padding:0}
div.skescore-view .tiles li{border:1px solid var(--line);border-radius:.5rem;flex:1 1 8.5rem;
list-style:none;margin:0;min-width:0;padding:.4rem .7rem}
div.skescore-view .tiles b{font-size:1.5em;line-height:1.2}
div.skescore-view .tiles span{display:block}
div.skescore-view .scroll{overflow-x:auto}
div.skescore-view table{background:none;border:0;border-collapse:collapse;color:inherit;
font-size:.95em;margin:.4rem 0;overflow-wrap:break-word;table-layout:auto;width:100%}
div.skescore-view caption{caption-side:top;color:var(--muted);padding:.2rem 0;text-align:left}
div.skescore-view tbody tr:nth-child(n){background:none}
div.skescore-view tbody tr:nth-child(n):hover{background:none}
div.skescore-view :is(th,td){background:none;border:0;border-top:1px solid var(--line);
color:inherit;max-width:none;padding:.3rem .9rem .3rem 0;text-align:left;vertical-align:top;
white-space:normal}
div.skescore-view thead :is(th,td){border:0;font-weight:600}
div.skescore-view :is(th,td).number{font-variant-numeric:tabular-nums;text-align:right}
div.skescore-view .rules tbody th{width:1.5rem}
div.skescore-view .rules tbody td:nth-child(2){width:48%}
div.skescore-view .rules tbody td:nth-child(3){font-weight:600}
div.skescore-view .bars tbody :is(th,td):nth-child(-n+2){width:9rem}
div.skescore-view .bars tbody td:nth-child(2){width:40%}
div.skescore-view .bounds{max-width:32rem}
@container (max-width:36rem){
div.skescore-view :is(.rules,.bars) thead{display:none}
div.skescore-view :is(.rules,.bars) :is(tbody,caption){display:block}
div.skescore-view :is(.rules,.bars) tbody tr{border-top:1px solid var(--line);display:grid;
grid-template-columns:1.5rem minmax(0,1fr);padding:.3rem 0}
div.skescore-view .bars tbody tr:nth-child(n){grid-template-columns:minmax(0,1fr)}
div.skescore-view :is(.rules,.bars) tbody :is(th,td):nth-child(n){border:0;grid-column:-2;
padding:.05rem 0;width:auto}
div.skescore-view .rules tbody :is(th,td):nth-child(1){grid-column:1}
div.skescore-view .rules tbody td:nth-child(3)::before{content:"\\2192  "}
}
div.skescore-view .bar{border-radius:.2rem;display:flex;height:.5rem;margin:.3rem 0 .1rem;
background:var(--line);overflow:hidden;min-width:5rem;print-color-adjust:exact}
div.skescore-view .bar span{display:block;height:100%}
div.skescore-view .key span{border-radius:.15rem;display:inline-block;height:.7rem;
margin:0 .3rem 0 .8rem;width:.7rem}
div.skescore-view .key span:first-child{margin-left:0}
div.skescore-view :is(.agree,.right){background:var(--good)}
div.skescore-view .key .unknown,div.skescore-view .bar .unknown{background:var(--muted)}
div.skescore-view .sampled{background:var(--sampled)}
div.skescore-view :is(.disagree,.wrong){background:var(--bad)}
div.skescore-view .counted{background:var(--accent)}
div.skescore-view summary{color:inherit;cursor:pointer;display:list-item;margin:.4rem 0}
div.skescore-view svg{max-width:26rem;width:100%}
div.skescore-view svg text{fill:currentColor;font-size:12px}
"""
)


class Html(str):
    """Text that already is HTML, which the functions of this module do not escape."""

    __slots__ = ()


def _escaped(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)


def notebook_view(parts: Iterable[str], footer: str = "") -> Html:
    """Return the parts of a view with their style.

    Parameters
    ----------
    parts : iterable of str
        HTML, or texts, which become paragraphs.
    footer : str, default=""
        HTML with its own style, below the view.

    Returns
    -------
    Html
        The view.

    Examples
    --------
    >>> view = notebook_view(["a < b"])
    >>> view.endswith('<div class="skescore-view"><p>a &lt; b</p></div>')
    True
    """
    body = "".join(part if isinstance(part, Html) else f"<p>{escape(part)}</p>" for part in parts)
    return Html(f'<style>{_STYLE}</style><div class="skescore-view">{body}</div>{footer}')


def page_html(title: str, parts: Iterable[str]) -> str:
    """Return a view as a complete page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>:root{{color-scheme:light dark}}"
        "body{font-family:system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem}"
        "</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>\n{notebook_view(parts)}\n</main></body></html>\n"
    )


def text_html(kind: str, *parts: str) -> Html:
    """Return a paragraph of a kind: a headline, a muted remark or a title."""
    return Html(f'<p class="{kind}">{"".join(map(_escaped, parts))}</p>')


def bold_html(text: str) -> Html:
    """Return a text in bold."""
    return Html(f"<b>{escape(text)}</b>")


def details_html(summary: str, *parts: Html) -> Html:
    """Return parts that are collapsed below a summary."""
    return Html(f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>")


def warnings_html(texts: Sequence[str]) -> list[Html]:
    """Return a box with warnings; an empty list without warnings."""
    if not texts:
        return []
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return [Html(f'<div class="warnings"><b>Read this first</b><ul>{items}</ul></div>')]


def tiles_html(tiles: Iterable[tuple[str, str, str]]) -> Html:
    """Return figures as tiles.

    Parameters
    ----------
    tiles : iterable of tuple of str
        Figure, description, and remark, which may be empty.

    Returns
    -------
    Html
        HTML list.
    """
    items = [
        f"<li><b>{escape(figure)}</b><span>{escape(text)}</span>"
        + (f'<span class="muted">{escape(remark)}</span>' if remark else "")
        + "</li>"
        for figure, text, remark in tiles
    ]
    return Html(f'<ul class="tiles">{"".join(items)}</ul>')


def bar_html(shares: Mapping[str, float]) -> Html:
    """Return a bar of parts; the text next to it must state the same shares.

    Parameters
    ----------
    shares : mapping of str to float
        Shares of the width by kind, which is a CSS class.

    Returns
    -------
    Html
        The bar.
    """
    parts = "".join(
        f'<span class="{kind}" style="width:{100 * share:.3f}%"></span>'
        for kind, share in shares.items()
    )
    return Html(f'<div class="bar" aria-hidden="true">{parts}</div>')


def table_html(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    *,
    numbers: Sequence[str] = (),
    kind: str = "",
) -> Html:
    """Return a table, which scrolls in a narrow notebook.

    Parameters
    ----------
    head : sequence of str
        Headings of the columns.
    rows : iterable of sequence of str
        Cells of each row; the first is the heading of the row. A row may be shorter: its last cell
        takes the remaining columns.
    caption : str
        Caption.
    numbers : sequence of str, default=()
        Headings of columns that are aligned to the right.
    kind : str, default=""
        CSS class of the table.

    Returns
    -------
    Html
        The table.
    """
    classes = [' class="number"' if name in numbers else "" for name in head]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, style) in enumerate(zip(row, classes, strict=False)):
            n_columns = len(head) - number if number == len(row) - 1 else 1
            span = f' colspan="{n_columns}"' if n_columns > 1 else ""
            tag, scope = ("th", ' scope="row"') if number == 0 and cell else ("td", "")
            cells.append(f"<{tag}{scope}{style}{span}>{_escaped(cell)}</{tag}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    headings = "".join(
        f'<th scope="col"{style}>{escape(name)}</th>' if name else "<td></td>"
        for name, style in zip(head, classes, strict=True)
    )
    # Wide tables scroll, which must be possible with the keyboard.
    scroll = ' role="region" aria-label="Table, can be scrolled" tabindex="0"'
    scroll = scroll if len(head) > _MAX_FIXED_COLUMNS else ""
    return Html(
        f'<div class="scroll"{scroll}><table class="{kind}">{title}'
        f"<thead><tr>{headings}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
