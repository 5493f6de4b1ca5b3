"""Canonical JSON of edit logs, identical in Python and on the report page, and its hash."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

#: Range of decimal exponents for which JavaScript writes numbers without an exponent.
_LEAST_EXPONENT, _LARGEST_EXPONENT = -6, 21


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys, without blanks, and with numbers as JavaScript writes them.

    Parameters
    ----------
    value : JSON value
        Dicts with string keys, lists, strings, finite numbers, booleans and None.

    Returns
    -------
    str
        JSON, the same for equal values in Python and in a browser.

    Examples
    --------
    >>> canonical_json({"b": [1.0, 1e-7, True], "a": None})
    '{"a":null,"b":[1,1e-7,true]}'
    """
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(k, ensure_ascii=False)}:{canonical_json(value[k])}" for k in sorted(value)
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def sha256_of(*parts: Any) -> str:
    """Return the SHA-256 of the canonical JSON of some values, as hexadecimal digits."""
    text = "\n".join(map(canonical_json, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _number(value: float) -> str:
    """Return a finite float in the shortest form, as JavaScript writes it."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if len(text) <= point <= _LARGEST_EXPONENT:
        text += "0" * (point - len(text))
    elif 0 < point <= _LARGEST_EXPONENT:
        text = f"{text[:point]}.{text[point:]}"
    elif _LEAST_EXPONENT < point <= 0:
        text = "0." + "0" * -point + text
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        text = f"{text[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if sign else text
