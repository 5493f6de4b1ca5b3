"""Ranges and samples of the axes on which scores are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from skescore.plots._style import matplotlib_module

#: More steps than these within a picture are finer than its lines.
_MOST_STEPS = 2000


def checked_range(
    name: str,
    given: Any,
    low: float,
    high: float,
    *,
    at_least: float = -np.inf,
    at_most: float = np.inf,
) -> tuple[float, float]:
    """A range that the caller passed, or the default one.

    Parameters
    ----------
    name : str
        Of the parameter.
    given : (float, float) or None
        What the caller passed.
    low, high : float
        The default.
    at_least : float, default=-inf
        What it may not go below.
    at_most : float, default=inf
        What it may not go above.

    Returns
    -------
    (float, float)
        The range.

    Raises
    ------
    ValueError
        If it is no pair of rising finite numbers from `at_least` on.
    """
    if given is None:
        return low, high
    try:
        ends = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        ends = np.empty(0)
    fits = ends.shape == (2,) and bool(np.isfinite(ends).all())
    if not fits or not at_least <= ends[0] < ends[1] <= at_most:
        limits = f", from {at_least:g} on" if np.isfinite(at_least) else ""
        limits += f", up to {at_most:g}" if np.isfinite(at_most) else ""
        raise ValueError(
            f"{name} must be two rising finite numbers (low, high){limits}, got {given!r}."
        )
    return float(ends[0]), float(ends[1])


def checked_weights(name: str, given: Any) -> list[float]:
    """One weight or several, all positive.

    Parameters
    ----------
    name : str
        Of the parameter.
    given : float or sequence of float
        What the caller passed.

    Returns
    -------
    list of float
        At least one.

    Raises
    ------
    ValueError
        If one is not a positive finite number.
    """
    try:
        values = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"{name} must be a positive number or several of them, got {given!r}. "
            "Pass 1.0 for a neutral weight."
        )
    return [float(value) for value in values]


def sizes_with_steps(low: float, high: float, psi: float, n: int = 400) -> np.ndarray:
    """Numbers of rules from one end to the other, with both sides of every step of FiRe.

    Parameters
    ----------
    low, high : float
        The ends.
    psi : float
        Length of a step.
    n : int, default=400
        Samples besides.

    Returns
    -------
    ndarray of float
        Ascending and different.
    """
    even = np.linspace(low, high, n)
    if (high - low) / psi > _MOST_STEPS:
        return even
    edges = psi * np.arange(np.ceil(low / psi), np.floor(high / psi) + 1)
    # Far enough behind a step to be on the next one, which rounding takes for noise otherwise.
    both = np.concatenate([even, edges, edges * (1 + 1e-9)])
    return np.unique(both[(both >= low) & (both <= high)])


def whole_ticks(axis: Any) -> None:
    """Put ticks on whole numbers only: there are no halves of rules."""
    axis.set_major_locator(matplotlib_module("ticker").MaxNLocator(integer=True))


def log_ticks(axis: Any) -> None:
    """Put ticks on 1, 2, 5, 10, 20, 50, ... of a logarithmic axis, written as plain numbers."""
    ticker = matplotlib_module("ticker")
    axis.set_major_locator(ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def round_levels(low: float, high: float) -> list[float]:
    """Levels of 1, 2, 5, 10, ... between two positive values, up to seven.

    Parameters
    ----------
    low, high : float
        The values.

    Returns
    -------
    list of float
        Ascending; the greatest ones if there are more.
    """
    if not high > 0:
        return []
    low = max(low, high / 1e4)
    tens = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    levels = np.sort(np.outer(tens, [1.0, 2.0, 5.0]).ravel())
    return [float(level) for level in levels[(levels > low) & (levels < high)][-7:]]


def number(value: float) -> str:
    """Write a number with three digits, for labels of lines and weights."""
    return f"{value:.3g}"
