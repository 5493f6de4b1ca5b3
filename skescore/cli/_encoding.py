"""What a stream does with signs that its encoding lacks."""

from __future__ import annotations

import codecs

__all__ = ["ENCODING_ERRORS"]

# A rule with "?" in place of its sign could mean anything.
ENCODING_ERRORS = "skescore.plain"
_PLAIN = {"≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "²": "2", "·": "*", "∞": "inf"}


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write what a terminal's encoding lacks with characters that all have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    signs = [_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text]
    return "".join(signs), error.end


codecs.register_error(ENCODING_ERRORS, _plain)
