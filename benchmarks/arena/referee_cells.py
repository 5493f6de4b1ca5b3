"""Cells of the arena, and the statistics that the referee computes from them."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm, studentized_range, wilcoxon

NAN = math.nan
Row = dict[str, Any]
#: Scores whose smallest values are best.
LOSSES = ("fire", "q")


def read_cells(path: Path, texts: Sequence[str]) -> list[Row]:
    """Return the rows of a CSV file; columns except `texts` are numbers, NaN where empty."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {k: v if k in texts else float(v) if v else NAN for k, v in row.items()}
            for row in csv.DictReader(file)
        ]


def group_by(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of columns, in the order of their first rows."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def values_of(rows: Iterable[Row], name: str) -> list[float]:
    """Return the numbers of a column that are not NaN."""
    return [row[name] for row in rows if not math.isnan(row[name])]


def mean(values: Iterable[float]) -> float:
    """Return the mean of the numbers that are not NaN; NaN if there are none."""
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else NAN


def is_tied(a: float, b: float) -> bool:
    """Return whether two numbers differ by rounding only."""
    return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def signed_rank(differences: Iterable[float], is_rounded: bool = False) -> float:
    """Return the p-value of Wilcoxon's test of the differences, or NaN for fewer than six."""
    numbers = [round(d, 12) if is_rounded else d for d in differences]
    return float(wilcoxon(numbers).pvalue) if len(numbers) > 5 else NAN


def rank_biserial(differences: Iterable[float]) -> float:
    """Return the rank sum of gains minus the rank sum of losses, relative to both; 0 if all tie."""
    numbers = list(differences)
    smallest = 1e-9 * max([1.0, *map(abs, numbers)])
    numbers = [d for d in numbers if abs(d) > smallest]
    ranks = ordinal_ranks([(round(abs(d), 12), 0.0) for d in numbers])
    signed = math.fsum(math.copysign(r, d) for r, d in zip(ranks, numbers, strict=True))
    return signed / math.fsum(ranks) if ranks else 0.0


def correct_by_holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values that are corrected for the number of tests by Holm's procedure."""
    corrected, largest = dict(p_values), 0.0
    tested = sorted((p, name) for name, p in p_values.items() if not math.isnan(p))
    for i, (p, name) in enumerate(tested):
        largest = max(largest, p * (len(tested) - i))
        corrected[name] = min(largest, 1.0)
    return corrected


def ordinal_ranks(keys: Sequence[tuple[float, float]]) -> list[float]:
    """Return the ranks of keys, the smallest first; equal keys share the mean of their ranks."""
    less, tied = [], []
    for part in np.array(keys, dtype=float).reshape(-1, 2).T:
        a, b = part[:, None], part
        with np.errstate(invalid="ignore"):  # differences of infinities
            is_tied = (a == b) | (np.abs(a - b) <= 1e-9 * np.maximum(np.abs(a), np.abs(b)))
        tied.append(is_tied)
        less.append((b < a) & ~is_tied)
    precedes = np.where(tied[0], less[1], less[0])  # of a row, the keys before it
    is_equal = ~precedes & ~precedes.T
    return (1 + precedes.sum(axis=1) + (is_equal.sum(axis=1) - 1) / 2).tolist()


def mean_ranks(rows: Sequence[Row], score: str) -> dict[str, float]:
    """Return the mean rank of each method over tables; failed cells come last."""
    sign = 1 if score in LOSSES else -1
    by_table = group_by(rows, "data")
    methods = sorted({row["method"] for row in rows})
    totals = dict.fromkeys(methods, 0.0)
    for part in by_table.values():
        keys = []
        cells = group_by(part, "method")
        for method in methods:
            measured = cells[(method,)]
            values = values_of([row for row in measured if not row["error"]], score)
            loss = sign * mean(values) if values else math.inf
            keys.append((1 - len(values) / len(measured), loss))
        for method, rank in zip(methods, ordinal_ranks(keys), strict=True):
            totals[method] += rank
    means = {method: total / len(by_table) for method, total in totals.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def holm_p_values(ranks: Mapping[str, float], n_tables: int) -> dict[str, float]:
    """Return Holm's p-values of the comparisons of the best mean rank with all others."""
    k = len(ranks)
    error = math.sqrt(k * (k + 1) / (6 * n_tables))
    best, *other_ranks = ranks.items()
    raw = {name: 2 * float(norm.sf((rank - best[1]) / error)) for name, rank in other_ranks}
    return correct_by_holm(raw)


def critical_difference(k: int, n_tables: int) -> float:
    """Return Nemenyi's critical difference of mean ranks at 5 %."""
    quantile = float(studentized_range.ppf(0.95, k, np.inf))
    return quantile * math.sqrt(k * (k + 1) / (12 * n_tables))


def kendall(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Kendall's tau-b of the pairs without NaN; NaN if it is not defined."""
    pairs = np.array([p for p in zip(first, second, strict=True) if not np.isnan(p).any()])
    if len(pairs) < 2:
        return NAN
    signs = [np.sign(column[:, None] - column[None, :]) for column in pairs.T]
    n_ordered = [np.count_nonzero(sign) for sign in signs]
    if not all(n_ordered):
        return NAN
    return float((signs[0] * signs[1]).sum() / math.sqrt(n_ordered[0] * n_ordered[1]))


def fire_of(loss: float, n_rules: float, psi: float = 1.0) -> float:
    """Return FiRe by its definition."""
    return loss * math.ceil(round(n_rules / psi, 9)) * n_rules**0.05


def q_of(loss: float, n_rules: float, completeness: float) -> float:
    """Return Q_s by its definition."""
    return loss * n_rules * (2 - completeness)


def ice_of(p: float, n_rules: float, completeness: float, phi: float = 1, rho: float = 1) -> float:
    """Return ICE by its definition."""
    performance = 1 / (1 + math.exp(5 * (phi * (1 - p) - 1)))
    return performance / (1 + math.exp(0.3 * rho * n_rules - 5)) * completeness
