"""Small helpers for the texts of errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the closing sentence of an error about an unknown name.

    Use it wherever a name is looked up in a table: algorithms, scores, data sets, columns.

    Parameters
    ----------
    name : object
        What the caller passed. Anything that is not text simply has no near match.
    known : iterable of str
        The names that would have been accepted. They are listed sorted.

    Returns
    -------
    str
        The nearest known name, if there is one, and all known names.

    Notes
    -----
    Case is ignored when looking for the nearest name, as are blanks at the ends.

    Examples
    --------
    >>> from skescore._text import did_you_mean
    >>> did_you_mean("GridX", ["gridex", "cart"])
    "Did you mean 'gridex'? Known: cart, gridex."
    >>> did_you_mean("svm", ["gridex", "cart"])
    'Known: cart, gridex.'
    """
    names = sorted(set(known))
    if not names:
        return "Known: none."
    listed = f"Known: {', '.join(names)}."
    if not isinstance(name, str):
        return listed
    folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return f"Did you mean {folded[near[0]]!r}? {listed}" if near else listed
