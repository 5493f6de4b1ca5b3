"""The paper's Figure 2 for a run: divergence by arity, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skescore._optional import import_optional
from skescore.reproduce._brex import BrexRun, TableLine, table_lines

#: Okabe and Ito's colours, which the colour-blind tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
_MARKERS = "osD^vPX*"
_PANELS = {3: "non-monotone", 4: "monotone"}


def plot_divergence(run: BrexRun, *, kinds: str = "formula", axes: Any = None) -> Any:
    """Draw the mean divergence of each method by arity, ours solid and the paper's dashed.

    Parameters
    ----------
    run : BrexRun
        Results of Tables 3 or 4.
    kinds : {"formula", "three-valued", "two-valued"}, default="formula"
        Which methods: those that ask the formula itself, or those on a kind of network.
    axes : sequence of matplotlib Axes, optional
        One for each of the tables that was made; a new figure if not given.

    Returns
    -------
    list of matplotlib Axes

    Raises
    ------
    ValueError
        If there are no such results.
    """
    tables = {table: lines for table, lines in table_lines(run).items() if table in _PANELS}
    tables = {table: _of_kind(lines, kinds) for table, lines in tables.items()}
    tables = {table: lines for table, lines in tables.items() if lines}
    if not tables:
        raise ValueError(
            f"There is no result for Figure 2 of kinds={kinds!r}: run Tables 3 or 4 with methods "
            "of that kind."
        )
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", extra="plots", purpose="Drawing Figure 2")
        _, grid = pyplot.subplots(
            1, len(tables), figsize=(5.6 * len(tables), 4.6), sharey=True, squeeze=False,
            layout="constrained",
        )  # fmt: skip
        axes = grid[0]
    axes = list(axes)
    if len(axes) != len(tables):
        raise ValueError(f"axes must hold {len(tables)} Axes, one per table, got {len(axes)}.")
    styles = _styles(tables)
    for ax, (table, lines) in zip(axes, tables.items(), strict=True):
        _panel(ax, lines, styles)
        ax.set_title(f"{_PANELS[table]} formulae")
        ax.set_xlabel("number of variables")
    for ax in axes:  # not before all is drawn: a limit of shared axes ends their scaling
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("JSD from the exact responsibilities (bits)")
    axes[-1].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return axes


def _of_kind(lines: Sequence[TableLine], kinds: str) -> list[TableLine]:
    """Our lines of one kind of method, each paper's row before its first."""
    ours = [
        line for line in lines
        if line.method is not None and (line.method.partition(":")[2] or "formula") == kinds
    ]  # fmt: skip
    names = {line.printed for line in ours}
    return [line for line in lines if line in ours or (not line.method and line.printed in names)]


def _styles(tables: Mapping[int, Sequence[TableLine]]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each of our methods, and the paper's row in that of its first."""
    styles: dict[str, tuple[str, str]] = {}
    for lines in tables.values():
        for line in lines:
            if line.method is not None and line.label not in styles:
                place = len(styles) % len(_COLOURS)
                styles[line.label] = _COLOURS[place], _MARKERS[place]
    return styles


def _panel(ax: Any, lines: Sequence[TableLine], styles: Mapping[str, tuple[str, str]]) -> None:
    first: dict[str, tuple[str, str]] = {}
    for line in lines:
        if line.method is not None:
            first.setdefault(line.printed, styles[line.label])
    for line in lines:
        arities = [int(column) for column in line.values]
        values = list(line.values.values())
        if line.method is None:
            colour, _ = first[line.printed]
            ax.plot(arities, values, "--", color=colour, linewidth=1, label=line.label)
            continue
        colour, marker = styles[line.label]
        widths = [0.0 if w != w else w for w in line.half_widths.values()]
        ax.errorbar(
            arities, values, yerr=widths, color=colour, marker=marker, markersize=5,
            linewidth=1.5, capsize=3, label=line.label,
        )  # fmt: skip
    ax.set_xticks(sorted({int(column) for line in lines for column in line.values}))
    ax.grid(alpha=0.25)
