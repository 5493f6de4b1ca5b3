"""Scores along one of the things that they depend on, with slopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from skescore._validation import check_choice
from skescore.metrics._knowledge import fire_score, ice_performance, ice_readability
from skescore.plots._scales import (
    checked_range,
    checked_weights,
    number,
    sizes_with_steps,
    whole_ticks,
)
from skescore.plots._style import axes_or_new, colours_of, legend_beside

__all__ = ["fire_curves", "ice_part_curves"]

_STYLES = ("-", "--", "-.", ":")


def fire_curves(
    along: str = "n_rules",
    *,
    psi: Any = 1.0,
    fixed: Any = 1.0,
    over: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw FiRe along the number of rules or along the loss, for some psi and fixed values.

    Use it to see the steps of a psi, and how loss and rules buy each other.

    Parameters
    ----------
    along : {"n_rules", "loss"}, default="n_rules"
        What grows along the axis.
    psi : float or sequence of float, default=1.0
        So many rules weigh as much as one.
    fixed : float or sequence of float, default=1.0
        Value of the other one: of the loss, or of the number of rules. There is one line per psi
        and value.
    over : (float, float), optional
        Range of what grows: from 1 to 20 rules, or a loss from 0 to 10, by default.
    legend : bool, default=True
        Whether a legend stands beside the axes.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If a name, weight, value or range is out of its domain.

    Notes
    -----
    Compare Figure 2 of F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation
    metrics: the FiRe score. ECAI 2023, doi:10.3233/FAIA230496.

    Examples
    --------
    >>> from skescore.plots import fire_curves
    >>> ax = fire_curves("n_rules", psi=[1, 3, 5, 10], fixed=5.0)  # doctest: +SKIP
    """
    check_choice("along", along, ("n_rules", "loss"))
    weights = checked_weights("psi", psi)
    values = np.atleast_1d(np.asarray(fixed, dtype=float)).tolist()
    of_rules = along == "n_rules"
    low, high = checked_range(
        "over", over, *((1.0, 20.0) if of_rules else (0.0, 10.0)), at_least=1.0 if of_rules else 0.0
    )
    lines = []
    for weight in weights:
        at = sizes_with_steps(low, high, weight) if of_rules else np.linspace(low, high, 200)
        for value in values:
            pair = (value, at) if of_rules else (at, value)
            lines.append((weight, value, at, np.asarray(fire_score(*pair, psi=weight))))
    ax = axes_or_new(ax)
    for i, ((weight, value, at, score), colour) in enumerate(
        zip(lines, colours_of(len(lines)), strict=True)
    ):
        parts = [f"ψ = {number(weight)}"] if len(weights) > 1 or len(lines) == 1 else []
        if len(values) > 1 or len(lines) == 1:
            parts.append(f"{'p' if of_rules else 'r'} = {number(value)}")
        ax.plot(at, score, color=colour, linestyle=_STYLES[i % 4], label=", ".join(parts))
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("readability loss r (number of rules)" if of_rules else "predictive loss p")
    ax.set_ylabel("FiRe (smaller is better)")
    if of_rules:
        whole_ticks(ax.xaxis)
    rest = []
    if len(weights) == 1:
        rest.append(f"ψ = {number(weights[0])}")
    if len(values) == 1:
        rest.append(f"{'p' if of_rules else 'r'} = {number(values[0])}")
    ax.set_title("FiRe" + (f" with {', '.join(rest)}" if rest else ""))
    if legend:
        legend_beside(ax)
    return ax


def ice_part_curves(
    part: str = "performance",
    *,
    weights: Any = (0.5, 1.0, 2.0, 3.0, 5.0),
    derivative: int = 0,
    over: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw one of the two sigmoids of ICE, or its slope, for some weights.

    Use it to see from where on a lost point of performance, or another rule, costs most.

    Parameters
    ----------
    part : {"performance", "readability"}, default="performance"
        Which one.
    weights : float or sequence of float, default=(0.5, 1.0, 2.0, 3.0, 5.0)
        Values of phi or rho.
    derivative : {0, 1, 2}, default=0
        The sigmoid itself, its slope, or the change of its slope.
    over : (float, float), optional
        Range of the performance (by default from 0 to 1) or of the numbers of rules (from 1 to 50).
    legend : bool, default=True
        Whether a legend stands beside the axes.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If a name, weight or range is out of its domain.

    Notes
    -----
    With a sigmoid :math:`S` of slope :math:`k` in its exponent (:math:`k = 5 \varphi`, or
    :math:`k = -0.3 \rho`), :math:`S' = k S (1 - S)` and
    :math:`S'' = k^2 S (1 - S) (1 - 2 S)`. Compare Figure 3 of F. Sabbatini, R. Calegari: ICE: an
    evaluation metric to assess symbolic knowledge quality. 2024.

    Examples
    --------
    >>> from skescore.plots import ice_part_curves
    >>> ax = ice_part_curves("performance", derivative=1)  # doctest: +SKIP
    """
    check_choice("part", part, ("performance", "readability"))
    check_choice("derivative", derivative, (0, 1, 2))
    checked = checked_weights("weights", weights)
    is_performance = part == "performance"
    name, at_name, sign = ("P", "p", "φ") if is_performance else ("R", "r", "ρ")
    low, high = (
        checked_range("over", over, 0.0, 1.0, at_most=1.0)
        if is_performance
        else checked_range("over", over, 1.0, 50.0, at_least=1e-9)
    )
    at = np.linspace(low, high, 400)
    curves = []
    for weight in checked:
        if is_performance:
            value, slope = np.asarray(ice_performance(at, phi=weight)), 5.0 * weight
        else:
            value, slope = np.asarray(ice_readability(at, rho=weight)), -0.3 * weight
        if derivative == 1:
            value = slope * value * (1.0 - value)
        elif derivative == 2:
            value = slope**2 * value * (1.0 - value) * (1.0 - 2.0 * value)
        curves.append(value)
    ax = axes_or_new(ax)
    for i, (weight, curve) in enumerate(zip(checked, curves, strict=True)):
        ax.plot(
            at, curve, color=colours_of(len(checked))[i], linestyle=_STYLES[i % 4],
            label=f"{sign} = {number(weight)}",
        )  # fmt: skip
    symbol = {0: f"{name}({at_name}, {sign})", 1: f"∂{name}/∂{at_name}",
              2: f"∂²{name}/∂{at_name}²"}[derivative]  # fmt: skip
    ax.set_xlim(low, high)
    ax.set_xlabel("predictive performance p" if is_performance else "size r (number of rules)")
    ax.set_ylabel(symbol)
    ax.set_title(f"ICE: part of {part}" if derivative == 0 else f"ICE: {symbol}")
    if derivative:
        ax.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    if legend:
        legend_beside(ax)
    return ax
