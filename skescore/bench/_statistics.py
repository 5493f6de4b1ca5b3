"""Tests of differences between extractors over data sets, and critical-difference diagrams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from skescore._optional import import_optional
from skescore.registry import extractor_label

__all__ = [
    "Comparison",
    "compare_ranks",
    "critical_difference_plot",
    "friedman_test",
    "holm_against",
    "nemenyi_difference",
    "nemenyi_p_values",
]


#: Number of permutations of the ranks in Friedman's test, which is exact if there are fewer.
_N_PERMUTATIONS = 9999
#: Number of data sets below which the tests have little power.
_MIN_DATA_SETS = 10


@dataclass(eq=False)
class Comparison:
    """Comparison of extractors by ranks over data sets, as returned by :func:`compare_ranks`.

    Parameters
    ----------
    ranks : pandas.DataFrame
        Rank of each extractor (column) on each data set (row); 1 is best.
    average_ranks : pandas.Series
        Average ranks by extractor, the best first.
    statistic, p_value : float
        Results of Friedman's test; NaN with a single extractor or data set.
    critical_difference : float
        Smallest significant difference of two average ranks in Nemenyi's test.
    pairs : pandas.DataFrame
        Pairs of extractors, the difference of their average ranks and Nemenyi's p-value.
    against_best : pandas.DataFrame
        Other extractors compared with the best one: p-value, and p-value adjusted by Holm.
    groups : list of list of str
        Maximal groups of at least two extractors without significant differences.
    alpha : float
        Significance level of the tests.
    """

    ranks: pd.DataFrame
    average_ranks: pd.Series
    statistic: float
    p_value: float
    critical_difference: float
    pairs: pd.DataFrame
    against_best: pd.DataFrame
    groups: list[list[str]]
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether Friedman's test finds a difference between the extractors."""
        return self.p_value < self.alpha

    @property
    def verdict(self) -> str:
        """Result of the tests in sentences."""
        n_data, best = len(self.ranks), extractor_label(str(self.average_ranks.index[0]))
        if len(self.average_ranks) < 2:
            return "There is only one extractor, so there is nothing to compare."
        if n_data < 2:
            return "There is only one data set, so the ranks cannot be generalized to others."
        p_value = "0.0001" if self.p_value <= 0.0001 else f"{self.p_value:.2g}"
        test = f"Friedman's test over {n_data} data sets, p = {p_value}"
        if not self.significant:
            return (
                f"No extractor is significantly better than another: chance alone can explain such "
                f"differences of average ranks ({test}, not below {self.alpha:g})."
            )
        worse = [
            extractor_label(str(name))
            for name, rank in self.average_ranks.items()
            if rank - self.average_ranks.iloc[0] >= self.critical_difference
        ]
        summary = f"The extractors differ ({test})."
        rivals = [extractor_label(str(name)) for name in self.average_ranks.index[1:]]
        similar = [name for name in rivals if name not in worse]
        if not worse:
            return (
                f"{summary} But no pair differs significantly: no two average ranks differ by "
                f"{self.critical_difference:.2f} or more (Nemenyi)."
            )
        addition = (
            f" It does not differ significantly from {_join_names(similar)}."
            if similar
            else " It is better than all others."
        )
        return (
            f"{summary} {best} is better than {_join_names(worse)}: average ranks differ by at "
            f"least {self.critical_difference:.2f} (Nemenyi).{addition}"
        )

    @property
    def caveat(self) -> str:
        """Warning that there are too few data sets; empty if there are enough."""
        n_data, n_extractors = self.ranks.shape
        if n_data < 2 or n_extractors < 2 or n_data >= _MIN_DATA_SETS:
            return ""
        largest = n_extractors - 1
        if self.critical_difference > largest:
            return (
                f"With {n_data} data sets and {n_extractors} extractors, no difference can be "
                f"significant: average ranks would have to differ by "
                f"{self.critical_difference:.2f}, but differ by at most {largest}. More data "
                "sets are needed."
            )
        return (
            f"With only {n_data} data sets, only large differences are significant (average ranks "
            f"that differ by {self.critical_difference:.2f} or more); smaller ones may be real."
        )


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def compare_ranks(ranks: pd.DataFrame, *, alpha: float = 0.05) -> Comparison:
    """Test whether extractors differ, given their ranks on several data sets.

    Use it after a benchmark over several data sets. First average over folds and seeds of each data
    set: they share rows and are not independent.

    Parameters
    ----------
    ranks : pandas.DataFrame of shape (n_data, n_extractors)
        Ranks within each row; 1 is best, and ties share the mean of their ranks.
    alpha : float, default=0.05
        Significance level of the tests.

    Returns
    -------
    Comparison
        Results of the tests.

    Raises
    ------
    ValueError
        If ranks are missing, or `alpha` is not between 0 and 1.

    Notes
    -----
    The tests and the diagram are those of Demšar, "Statistical Comparisons of Classifiers over
    Multiple Data Sets", JMLR 7 (2006), except that Friedman's test is a permutation test with a
    fixed seed, because the usual approximations need more data sets than most benchmarks have. Its
    p-value is at least 0.0001.

    Examples
    --------
    >>> import pandas as pd
    >>> ranks = pd.DataFrame({"cart": [1, 1, 1, 1, 2], "iter": [2, 2, 2, 2, 1]})
    >>> comparison = compare_ranks(ranks)
    >>> comparison.average_ranks.to_dict(), comparison.significant
    ({'cart': 1.2, 'iter': 1.8}, False)
    """
    if ranks.isna().to_numpy().any():
        raise ValueError("ranks must not be missing: compare extractors that ran on all data sets.")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}.")
    n_data, n_extractors = ranks.shape
    average = ranks.mean().sort_values(kind="stable")
    can_test = n_data >= 2 and n_extractors >= 2
    statistic, p_value = friedman_test(ranks.to_numpy()) if can_test else (math.nan, math.nan)
    difference = nemenyi_difference(n_extractors, n_data, alpha) if can_test else math.nan
    names = list(map(str, average.index))
    values = average.to_numpy()
    p_values = (
        nemenyi_p_values(values, n_data) if can_test else np.full((len(names),) * 2, math.nan)
    )
    pairs = pd.DataFrame(
        [
            (names[i], names[j], values[j] - values[i], p_values[i, j])
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ],
        columns=["better", "worse", "difference", "p_value"],
    )
    against = holm_against(values, n_data) if can_test else (np.array([]), np.array([]))
    best = pd.DataFrame({"p_value": against[0], "p_value_holm": against[1]})
    best.insert(0, "extractor", names[1:] if can_test else [])
    groups = _maximal_groups(names, values, difference) if can_test else []
    return Comparison(ranks, average, statistic, p_value, difference, pairs, best, groups, alpha)


def friedman_test(ranks: np.ndarray) -> tuple[float, float]:
    """Run Friedman's test of equal ranks and return its statistic and p-value.

    Examples
    --------
    >>> import numpy as np
    >>> statistic, p_value = friedman_test(np.tile([1.0, 2.0, 3.0], (6, 1)))
    >>> statistic, p_value < 0.001
    (12.0, True)
    """
    ranks = np.asarray(ranks, dtype=float)
    n_data, k = ranks.shape
    scatter = ((ranks - (k + 1) / 2) ** 2).sum()
    if scatter == 0:  # all ranks are tied
        return 0.0, 1.0

    def chi_squared(*columns: np.ndarray, axis: int) -> np.ndarray:
        sums = np.stack([column.sum(axis=axis) for column in columns]) - n_data * (k + 1) / 2
        return np.asarray((k - 1) / scatter * (sums**2).sum(axis=0))

    # SciPy's friedmanchisquare needs three columns, and its p-values need many rows.
    test = stats.permutation_test(
        list(ranks.T),
        chi_squared,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=_N_PERMUTATIONS,
        batch=1111,
        random_state=np.random.default_rng(0),
    )
    return float(test.statistic), float(test.pvalue)


def nemenyi_difference(n_extractors: int, n_data: int, alpha: float = 0.05) -> float:
    """Return the smallest significant difference of average ranks in Nemenyi's test.

    Examples
    --------
    >>> round(nemenyi_difference(4, 14), 2)
    1.25
    """
    quantile = stats.studentized_range.ppf(1 - alpha, n_extractors, math.inf) / math.sqrt(2)
    return float(quantile * _standard_error(n_extractors, n_data))


def nemenyi_p_values(average_ranks: np.ndarray, n_data: int) -> np.ndarray:
    """Return Nemenyi's p-values of all pairs."""
    average_ranks = np.asarray(average_ranks, dtype=float)
    error = _standard_error(len(average_ranks), n_data)
    distances = np.abs(np.subtract.outer(average_ranks, average_ranks)) / error * math.sqrt(2)
    values = stats.studentized_range.sf(distances, len(average_ranks), math.inf)
    return np.asarray(np.clip(values, 0.0, 1.0))


def holm_against(average_ranks: np.ndarray, n_data: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare the first extractor with the others; return p-values, and those adjusted by Holm."""
    average_ranks = np.asarray(average_ranks, dtype=float)
    error = _standard_error(len(average_ranks), n_data)
    p_values = 2 * stats.norm.sf(np.abs(average_ranks[1:] - average_ranks[0]) / error)
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return p_values, adjusted


def _standard_error(n_extractors: int, n_data: int) -> float:
    return math.sqrt(n_extractors * (n_extractors + 1) / (6 * n_data))


def _maximal_groups(names: Sequence[str], values: np.ndarray, difference: float) -> list[list[str]]:
    """Return the maximal runs of extractors whose average ranks do not differ significantly."""
    groups: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = max(j for j in range(start, len(names)) if values[j] - values[start] < difference)
        if end > start and not (groups and groups[-1][1] >= end):
            groups.append((start, end))
    return [list(names[start : end + 1]) for start, end in groups]


# --- critical-difference diagrams -----------------------------------------------------------------


_LINE, _GROUP = "#333333", "#0072B2"  # the blue of a palette for color-blind readers


def critical_difference_plot(
    comparison: Comparison, *, title: str | None = None, ax: Any = None
) -> Any:
    """Plot average ranks on a line; bars join extractors without a significant difference.

    Use it in addition to the tables of a benchmark over several data sets.

    Parameters
    ----------
    comparison : Comparison
        A comparison from :func:`skescore.bench.rank_extractors`.
    title : str, optional
        Title of the diagram.
    ax : matplotlib.axes.Axes, optional
        Axes to plot in; by default the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; ``ax.figure.savefig`` writes the diagram to a file.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Notes
    -----
    The best rank is on the left. The bar above the axis is Nemenyi's critical difference. If
    Friedman's test finds no difference, one bar joins all extractors.

    Examples
    --------
    >>> from skescore.bench import critical_difference_plot
    >>> ax = critical_difference_plot(comparison)  # doctest: +SKIP
    >>> ax.figure.savefig("ranks.svg")  # doctest: +SKIP
    """
    average = comparison.average_ranks
    names, values = [str(name) for name in average.index], average.to_numpy(dtype=float)
    n_names = len(names)
    half = (n_names + 1) // 2
    groups = comparison.groups
    if n_names > 1 and len(comparison.ranks) > 1 and not comparison.significant:
        groups = [names]
    if ax is None:
        figures = import_optional("matplotlib.figure", extra="plots", purpose="Drawing ranks")
        height = 1.4 + 0.28 * half + 0.14 * len(groups)
        ax = figures.Figure(figsize=(7.0, height), layout="constrained").add_subplot()
    worst = max(n_names, 2)
    ax.set_axis_off()
    ax.set_xlim(1 - 0.75 * (worst - 1) * 0.6, worst + 0.75 * (worst - 1) * 0.6)
    ax.hlines(0, 1, worst, color=_LINE, linewidth=1.2)
    for rank in range(1, worst + 1):
        ax.vlines(rank, 0, 0.12, color=_LINE, linewidth=1.2)
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=9)
    _draw_group_bars(ax, groups, dict(zip(names, values, strict=True)))
    below = 0.25 + 0.2 * len(groups)
    _draw_extractors(ax, names, values, below)
    top = 0.65
    if comparison.critical_difference <= worst - 1:
        _draw_critical_difference(ax, comparison.critical_difference)
        top = 1.3
    bottom = -below - 0.4 * half - 0.2
    if groups:
        bottom -= 0.3
        text = "bars join extractors without a significant difference"
        ax.text((1 + worst) / 2, bottom + 0.1, text, ha="center", color=_GROUP, fontsize=9)
    ax.set_ylim(bottom, top)
    n_data = len(comparison.ranks)
    subtitle = f"average rank over {n_data} data set{'' if n_data == 1 else 's'}, 1 is best"
    ax.set_title(subtitle if title is None else f"{title}: {subtitle}", fontsize=10)
    return ax


def _draw_group_bars(ax: Any, groups: list[list[str]], average_ranks: dict[str, float]) -> None:
    """Draw a bar for each group of extractors without a significant difference."""
    for index, group in enumerate(groups):
        y = -0.2 - 0.2 * index
        start, end = average_ranks[group[0]], average_ranks[group[-1]]
        ax.plot(
            [start - 0.03, end + 0.03],
            [y, y],
            color=_GROUP,
            linewidth=4,
            solid_capstyle="round",
            label="no significant difference" if index == 0 else None,
        )


def _draw_extractors(ax: Any, names: Sequence[str], values: np.ndarray, below: float) -> None:
    """Draw a line from each average rank to the extractor's label on the left or right."""
    n_names, half = len(names), (len(names) + 1) // 2
    worst = max(n_names, 2)
    margin = 0.04 * (worst - 1)
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        is_left = index < half
        y = -below - 0.4 * ((index if is_left else n_names - 1 - index) + 0.5)
        end = 1 - margin if is_left else worst + margin
        ax.plot([value, value, end], [0, y, y], color=_LINE, linewidth=0.9)
        label = extractor_label(name)
        ax.text(
            end - margin / 2 if is_left else end + margin / 2,
            y,
            f"{label}  {value:.2f}" if is_left else f"{value:.2f}  {label}",
            ha="right" if is_left else "left",
            va="center",
            fontsize=9,
        )


def _draw_critical_difference(ax: Any, difference: float) -> None:
    """Draw a bar as long as the critical difference above the axis."""
    ax.plot([1, 1 + difference], [0.75, 0.75], color=_LINE, linewidth=1.6, marker="|")
    ax.text(
        1 + difference / 2,
        0.85,
        f"critical difference {difference:.2f}",
        ha="center",
        va="bottom",
        fontsize=9,
    )
