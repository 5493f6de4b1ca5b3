"""Whether extractors differ over data sets: Friedman's test, those after it, and their diagram."""

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


#: Shuffles of the ranks, from which the p-value of Friedman's test comes; where there are no more
#: all of them are made.
_SHUFFLES = 9999
#: With fewer data sets, what is not found may well be there.
_FEW = 10


@dataclass(eq=False)
class Comparison:
    """What ranks over data sets tell of extractors; made by :func:`compare_ranks`.

    Parameters
    ----------
    ranks : pandas.DataFrame
        Rank of each extractor (column) on each data set (row), 1 is best.
    average_ranks : pandas.Series
        By extractor, the best first.
    statistic, p_value : float
        Of Friedman's test; NaN where there is nothing to test.
    critical_difference : float
        Average ranks that differ by as much differ by Nemenyi's test.
    pairs : pandas.DataFrame
        Each two extractors, the difference of their average ranks and Nemenyi's p-value.
    against_best : pandas.DataFrame
        Each other extractor against the best one: p-value, and the same adjusted by Holm.
    groups : list of list of str
        Largest groups of neighboring extractors that cannot be told apart, of at least two.
    alpha : float
        Level of the tests.
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
        """Whether Friedman's test finds that the extractors differ at all."""
        return self.p_value < self.alpha

    @property
    def verdict(self) -> str:
        """What it means, in words."""
        n_data, best = len(self.ranks), extractor_label(str(self.average_ranks.index[0]))
        if len(self.average_ranks) < 2:
            return "There is only one extractor, so there is nothing to compare."
        if n_data < 2:
            return (
                "There is only one data set, so the ranks describe it, and tell nothing about "
                "others."
            )
        test = f"Friedman's test over {n_data} data sets, p = {_shown(self.p_value)}"
        if not self.significant:
            return (
                f"No extractor can be called better than another: chance alone makes average ranks "
                f"differ as much ({test}, not below {self.alpha:g})."
            )
        worse = [
            extractor_label(str(name))
            for name, rank in self.average_ranks.items()
            if rank - self.average_ranks.iloc[0] >= self.critical_difference
        ]
        found = f"The extractors differ ({test})."
        others = [extractor_label(str(name)) for name in self.average_ranks.index[1:]]
        apart = [name for name in others if name not in worse]
        if not worse:
            return (
                f"{found} But it cannot be said which: no two average ranks differ by "
                f"{self.critical_difference:.2f} or more (Nemenyi)."
            )
        told = (
            f" It cannot be told apart from {_listed(apart)}."
            if apart
            else " It is better than all others."
        )
        return (
            f"{found} {best} is better than {_listed(worse)}: average ranks differ by at least "
            f"{self.critical_difference:.2f} (Nemenyi).{told}"
        )

    @property
    def caveat(self) -> str:
        """What the number of data sets does not allow to conclude; empty if there are enough."""
        n_data, n_extractors = self.ranks.shape
        if n_data < 2 or n_extractors < 2 or n_data >= _FEW:
            return ""
        largest = n_extractors - 1
        if self.critical_difference > largest:
            return (
                f"With {n_data} data sets and {n_extractors} extractors no two can be told apart, "
                f"whatever happens: average ranks would have to differ by "
                f"{self.critical_difference:.2f}, but cannot by more than {largest}. More data "
                "sets are needed."
            )
        return (
            f"With only {n_data} data sets just large differences are found (average ranks that "
            f"differ by {self.critical_difference:.2f} or more): what cannot be told apart here "
            "need not be alike."
        )


def _shown(p_value: float) -> str:
    return "0.0001" if p_value <= 0.0001 else f"{p_value:.2g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def compare_ranks(ranks: pd.DataFrame, *, alpha: float = 0.05) -> Comparison:
    """Test whether extractors differ, over data sets that stand for many.

    Use it after a benchmark over several data sets. Folds and seeds of one data set share rows
    and are no further evidence: they are averaged before.

    Parameters
    ----------
    ranks : pandas.DataFrame of shape (n_data, n_extractors)
        Ranks within each row, 1 is best, equals share the mean of their ranks.
    alpha : float, default=0.05
        Level of the tests.

    Returns
    -------
    Comparison
        Tests, groups, and what they mean in words.

    Raises
    ------
    ValueError
        If ranks are missing, or `alpha` is no probability.

    Notes
    -----
    The tests and the diagram are those of Demšar, "Statistical Comparisons of Classifiers over
    Multiple Data Sets", JMLR 7 (2006), except that the p-value of Friedman's test comes from
    shuffling the ranks within the data sets, always in the same way, as the usual approximations
    need more data sets than most benchmarks have. It is no smaller than 0.0001.

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
    enough = n_data >= 2 and n_extractors >= 2
    statistic, p_value = friedman_test(ranks.to_numpy()) if enough else (math.nan, math.nan)
    difference = nemenyi_difference(n_extractors, n_data, alpha) if enough else math.nan
    names = list(map(str, average.index))
    values = average.to_numpy()
    p_values = nemenyi_p_values(values, n_data) if enough else np.full((len(names),) * 2, math.nan)
    pairs = pd.DataFrame(
        [
            (names[i], names[j], values[j] - values[i], p_values[i, j])
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ],
        columns=["better", "worse", "difference", "p_value"],
    )
    against = holm_against(values, n_data) if enough else (np.array([]), np.array([]))
    best = pd.DataFrame({"p_value": against[0], "p_value_holm": against[1]})
    best.insert(0, "extractor", names[1:] if enough else [])
    groups = _groups(names, values, difference) if enough else []
    return Comparison(ranks, average, statistic, p_value, difference, pairs, best, groups, alpha)


def friedman_test(ranks: np.ndarray) -> tuple[float, float]:
    """Test whether all columns have the same ranks but for chance.

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
    if scatter == 0:  # all tied everywhere
        return 0.0, 1.0

    def chi_squared(*columns: np.ndarray, axis: int) -> np.ndarray:
        sums = np.stack([column.sum(axis=axis) for column in columns]) - n_data * (k + 1) / 2
        return np.asarray((k - 1) / scatter * (sums**2).sum(axis=0))

    # SciPy's friedmanchisquare knows no two columns, and no p-values for few rows.
    test = stats.permutation_test(
        list(ranks.T),
        chi_squared,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=_SHUFFLES,
        batch=1111,
        random_state=np.random.default_rng(0),
    )
    return float(test.statistic), float(test.pvalue)


def nemenyi_difference(n_extractors: int, n_data: int, alpha: float = 0.05) -> float:
    """Give the difference of average ranks from which two extractors differ.

    Examples
    --------
    >>> round(nemenyi_difference(4, 14), 2)
    1.25
    """
    quantile = stats.studentized_range.ppf(1 - alpha, n_extractors, math.inf) / math.sqrt(2)
    return float(quantile * _standard_error(n_extractors, n_data))


def nemenyi_p_values(average_ranks: np.ndarray, n_data: int) -> np.ndarray:
    """Give Nemenyi's p-values of all pairs."""
    average_ranks = np.asarray(average_ranks, dtype=float)
    error = _standard_error(len(average_ranks), n_data)
    distances = np.abs(np.subtract.outer(average_ranks, average_ranks)) / error * math.sqrt(2)
    values = stats.studentized_range.sf(distances, len(average_ranks), math.inf)
    return np.asarray(np.clip(values, 0.0, 1.0))


def holm_against(average_ranks: np.ndarray, n_data: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare the first extractor with each other one, and adjust the p-values by Holm."""
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


def _groups(names: Sequence[str], values: np.ndarray, difference: float) -> list[list[str]]:
    """Runs of neighbors whose ends cannot be told apart, none inside another."""
    groups: list[tuple[int, int]] = []
    for start in range(len(names)):
        end = max(j for j in range(start, len(names)) if values[j] - values[start] < difference)
        if end > start and not (groups and groups[-1][1] >= end):
            groups.append((start, end))
    return [list(names[start : end + 1]) for start, end in groups]


# --- critical-difference diagrams -----------------------------------------------------------------


_LINE, _GROUP = "#333333", "#0072B2"  # the blue of a palette for the color-blind


def critical_difference_plot(
    comparison: Comparison, *, title: str | None = None, ax: Any = None
) -> Any:
    """Draw average ranks on a line; bars join extractors that cannot be told apart.

    Use it beside the tables of a benchmark over several data sets.

    Parameters
    ----------
    comparison : Comparison
        Of :func:`skescore.bench.rank_extractors`.
    title : str, optional
        What was ranked.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn; ``ax.figure.savefig`` writes it to a file.

    Raises
    ------
    ImportError
        If matplotlib is missing.

    Notes
    -----
    The best rank is on the left. The bar above the axis is Nemenyi's critical difference. Where
    Friedman's test finds no difference at all, one bar joins everybody.

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
    height = 1.4 + 0.28 * half + 0.14 * len(groups)
    if ax is None:
        figures = import_optional("matplotlib.figure", extra="plots", purpose="Drawing ranks")
        figure = figures.Figure(figsize=(7.0, height), layout="constrained")
        ax = figure.add_subplot()
    most = max(n_names, 2)
    ax.set_axis_off()
    ax.set_xlim(1 - 0.75 * (most - 1) * 0.6, most + 0.75 * (most - 1) * 0.6)
    ax.hlines(0, 1, most, color=_LINE, linewidth=1.2)
    for rank in range(1, most + 1):
        ax.vlines(rank, 0, 0.12, color=_LINE, linewidth=1.2)
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=9)
    below = 0.25 + 0.2 * len(groups)
    place = dict(zip(names, values, strict=True))
    for position, group in enumerate(groups):
        y = -0.2 - 0.2 * position
        start, end = place[group[0]], place[group[-1]]
        ax.plot(
            [start - 0.03, end + 0.03],
            [y, y],
            color=_GROUP,
            linewidth=4,
            solid_capstyle="round",
            label="cannot be told apart" if position == 0 else None,
        )
    margin = 0.04 * (most - 1)
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        left = index < half
        y = -below - 0.4 * ((index if left else n_names - 1 - index) + 0.5)
        end = 1 - margin if left else most + margin
        ax.plot([value, value, end], [0, y, y], color=_LINE, linewidth=0.9)
        label = extractor_label(name)
        text = f"{label}  {value:.2f}" if left else f"{value:.2f}  {label}"
        ax.text(
            end - margin / 2 if left else end + margin / 2,
            y,
            text,
            ha="right" if left else "left",
            va="center",
            fontsize=9,
        )
    top = 0.65
    difference = comparison.critical_difference
    if difference <= most - 1:
        ax.plot([1, 1 + difference], [0.75, 0.75], color=_LINE, linewidth=1.6, marker="|")
        ax.text(
            1 + difference / 2,
            0.85,
            f"critical difference {difference:.2f}",
            ha="center",
            va="bottom",
            fontsize=9,
        )
        top = 1.3
    bottom = -below - 0.4 * half - 0.2
    if groups:
        bottom -= 0.3
        text = "bars join extractors that cannot be told apart"
        ax.text((1 + most) / 2, bottom + 0.1, text, ha="center", color=_GROUP, fontsize=9)
    ax.set_ylim(bottom, top)
    n_data = len(comparison.ranks)
    about = f"average rank over {n_data} data set{'' if n_data == 1 else 's'}, 1 is best"
    ax.set_title(about if title is None else f"{title}: {about}", fontsize=10)
    return ax
