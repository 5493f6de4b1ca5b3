"""Page with a form for one row, the prediction and the deciding rule, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from skescore._html import Html, page_html, text_html, warnings_html
from skescore.rules import RuleSet
from skescore.rules.exporters._html import rules_view
from skescore.serving._rows import RowReader

_STYLE = """
form.row{display:grid;gap:.7rem;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));
margin:1rem 0}
form.row label{display:grid;font-weight:600;gap:.2rem;overflow-wrap:anywhere}
form.row :is(input,select,button){border:1px solid GrayText;border-radius:.3rem;font:inherit;
padding:.3rem .5rem}
form.row button{align-self:end}
.answer{border:1px solid GrayText;border-radius:.5rem;margin:1rem 0;overflow-wrap:anywhere;
padding:.5rem 1rem}
"""


def form_page(
    ruleset: RuleSet, reader: RowReader, values: Mapping[str, str] | None
) -> tuple[str, int]:
    """Return the page and its HTTP status.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    reader : RowReader
        Reader of rows.
    values : mapping of str to str or None
        Contents of the fields; None before the form was sent.

    Returns
    -------
    page : str
        HTML.
    status : int
        200, or 422 if a value is invalid.
    """
    answer: list[Html] = []
    status = 200
    if values is not None:
        answer, status = _answer_html(ruleset, reader, values)
    fields = "".join(_field(reader, name, (values or {}).get(name, "")) for name in reader.columns)
    form = (
        f'<style>{_STYLE}</style><form class="row" method="post" action="/" autocomplete="off">'
        f"{fields}<button>Predict</button></form>"
    )
    hint = "An empty field is a missing value. Nothing that you enter is stored."
    parts = [text_html("muted", hint), Html(form), *answer, rules_view(ruleset)]
    return page_html("Predict a row with rules", parts), status


def _answer_html(
    ruleset: RuleSet, reader: RowReader, values: Mapping[str, str]
) -> tuple[list[Html], int]:
    """Return the prediction with its explanation, or the errors."""
    row = {name: _parse_field(reader, name, values.get(name, "")) for name in reader.columns}
    table, errors = reader.read([row])
    if errors:
        return warnings_html([error.message for error in errors]), 422
    if ruleset.fallback is None and not ruleset.covers(table)[0]:
        return [Html('<div class="answer" role="status"><p>No rule holds.</p></div>')], 200
    headline, *lines = str(ruleset.explain(table)).split("\n")
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return [
        Html(f'<div class="answer" role="status"><p><b>{escape(headline)}</b></p>{text}</div>')
    ], 200


def _parse_field(reader: RowReader, name: str, text: str) -> Any:
    """Return the content of a field as a JSON value."""
    if not text.strip():
        return None
    if name in reader.categories or name in reader.dates:
        return text
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _field(reader: RowReader, name: str, value: str) -> str:
    known_values = reader.categories.get(name)
    label = escape(name)
    if known_values is None:
        mode = "" if name in reader.categories else ' inputmode="decimal"'
        if name in reader.dates:
            mode = f' placeholder="{escape(reader.example_date(name))}"'
        field = f'<input name="{label}" value="{escape(value)}"{mode}>'
    else:
        options = "".join(
            f'<option value="{escape(option)}"{" selected" if option == value else ""}>'
            f"{escape(option) or '(missing)'}</option>"
            for option in ["", *map(str, known_values)]
        )
        field = f'<select name="{label}">{options}</select>'
    return f"<label>{label}{field}</label>"
