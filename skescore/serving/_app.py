"""Web application of a rule set: a form, and an endpoint for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from skescore._io import json_of
from skescore._optional import import_optional
from skescore.datasets import Preparation
from skescore.rules import RuleSet
from skescore.serving._page import form_page
from skescore.serving._rows import RowError, RowReader

#: Limits of a request.
MAX_BYTES, MAX_ROWS = 8_000_000, 10_000
#: Names of this machine; requests contain IPv6 addresses in brackets.
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1", "[::1]")
_PURPOSE = "Serving rules"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class RequestError(Exception):
    """Request that cannot be processed, with its HTTP status and errors."""

    def __init__(self, status: int, errors: Sequence[RowError | str]) -> None:
        self.status = status
        self.errors = [
            {"row": None, "column": None, "value": None, "message": error}
            if isinstance(error, str)
            else error.to_dict()
            for error in errors
        ]
        super().__init__("; ".join(str(error["message"]) for error in self.errors))


def make_app(
    ruleset: RuleSet,
    *,
    preparation: Preparation | None = None,
    hosts: Sequence[str] = LOCAL_HOSTS,
) -> Any:
    """Return a Starlette application that predicts rows with rules.

    ``GET /`` is a form for one row, ``POST /predict`` predicts rows as JSON, and ``GET /rules``
    returns the rules. No request is stored or logged.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    preparation : Preparation, optional
        Record of how the training table was read, so that rows may contain its columns of dates. By
        default it is inferred from the names of the features.
    hosts : sequence of str, default=LOCAL_HOSTS
        Accepted host names of requests, so that other web pages cannot access the rules.

    Returns
    -------
    starlette.applications.Starlette
        Application for any ASGI server.

    Raises
    ------
    ImportError
        If Starlette is not installed.

    Examples
    --------
    >>> from skescore.serving import make_app
    >>> app = make_app(rules)  # doctest: +SKIP
    """
    applications = import_optional("starlette.applications", extra="serve", purpose=_PURPOSE)
    routing = import_optional("starlette.routing", extra="serve", purpose=_PURPOSE)
    responses = import_optional("starlette.responses", extra="serve", purpose=_PURPOSE)
    middleware = import_optional("starlette.middleware", extra="serve", purpose=_PURPOSE)
    hosting = import_optional("starlette.middleware.trustedhost", extra="serve", purpose=_PURPOSE)
    reader = RowReader(ruleset, preparation)
    text = ruleset.to_json(indent=None)

    def as_json(value: Any, status: int = 200) -> Any:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return responses.Response(body, status, _HEADERS, media_type="application/json")

    async def rules(request: Any) -> Any:
        return responses.Response(text, 200, _HEADERS, media_type="application/json")

    async def predict(request: Any) -> Any:
        try:
            return as_json(predictions_of(ruleset, reader, rows_of(await read_body(request))))
        except RequestError as error:
            return as_json({"errors": error.errors}, error.status)

    async def page(request: Any) -> Any:
        values: dict[str, str] | None = None
        if request.method == "POST":
            body = (await read_body(request)).decode("utf-8", "replace")
            fields = parse_qs(body, keep_blank_values=True, max_num_fields=10_000)
            values = {name: texts[0] for name, texts in fields.items()}
        html, status = form_page(ruleset, reader, values)
        return responses.HTMLResponse(html, status, _HEADERS)

    async def request_error(request: Any, error: Any) -> Any:
        return as_json({"errors": error.errors}, error.status)

    return applications.Starlette(
        routes=[
            routing.Route("/", page, methods=["GET", "POST"]),
            routing.Route("/predict", predict, methods=["POST"]),
            routing.Route("/rules", rules),
        ],
        middleware=[
            middleware.Middleware(hosting.TrustedHostMiddleware, allowed_hosts=list(hosts))
        ],
        exception_handlers={RequestError: request_error},
    )


async def read_body(request: Any) -> bytes:
    """Return the body of a request, up to a limit."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise RequestError(
                413, [f"A request may have at most {MAX_BYTES:,} bytes. Send fewer rows at a time."]
            )
    return bytes(body)


def rows_of(body: bytes) -> list[Any]:
    """Return the rows of a request: a list, an object with ``rows``, or one row."""
    try:
        value = json_of(body.decode("utf-8"), finite=True)
    except ValueError as error:
        raise RequestError(400, [f"The request must be JSON in UTF-8: {error}."]) from error
    if isinstance(value, Mapping):
        value = value["rows"] if isinstance(value.get("rows"), list) else [value]
    if not isinstance(value, list):
        raise RequestError(400, ['The request must be {"rows": [{"column": value, ...}, ...]}.'])
    if not 1 <= len(value) <= MAX_ROWS:
        raise RequestError(
            400, [f"A request must have from 1 to {MAX_ROWS:,} rows, got {len(value)}."]
        )
    return value


def predictions_of(ruleset: RuleSet, reader: RowReader, rows: list[Any]) -> dict[str, Any]:
    """Predict rows and return the response as JSON values."""
    table, errors = reader.read(rows)
    if errors:
        raise RequestError(422, errors)
    has_prediction = np.ones(len(table), dtype=bool)
    if ruleset.fallback is None:
        has_prediction = np.asarray(ruleset.covers(table), dtype=bool)
    predictions = np.full(len(table), None, dtype=object)
    if has_prediction.any():
        predictions[has_prediction] = np.asarray(ruleset.predict(table[has_prediction]), object)
    index = np.full(len(table), -1)
    if ruleset.voting is None:
        index = np.asarray(ruleset.assign(table))
    return {
        "predictions": [
            {
                "prediction": value.item() if hasattr(value, "item") else value,
                "rule": rule + 1 if rule >= 0 else None,
                "text": ruleset.line(rule).partition("   [")[0] if rule >= 0 else None,
            }
            for value, rule in zip(predictions.tolist(), index.tolist(), strict=True)
        ]
    }
