"""Rows and labels as the measures of single rules read them: in batches, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skescore.metrics._arguments import as_numbers, row_weights
from skescore.rules._columns import Table
from skescore.rules._ruleset import RuleSet

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Labels on the border of a closed interval stay inside whatever the last bits of its ends are.
BORDER = 32 * np.finfo(np.float64).eps
#: Share of squared deviations below which too few digits of a difference of squares are left.
_NARROW = 1e-3
#: Pairs of row and rule matched at a time.
_PAIRS = 1 << 22
#: Rows matched at a time at least, however many rules there are.
_LEAST_ROWS = 256

_ALPHA_REMEDY = "Pass a share such as 0.05 for 5 %."


def held_in_batches(ruleset: RuleSet, table: Table) -> Iterator[tuple[slice, Flags]]:
    """Go through rows in batches that fit memory.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    table : Table
        The rows.

    Yields
    ------
    rows : slice
        The rows of the batch.
    held : ndarray of bool, shape (n_rows of the batch, n_rules)
        Which rules hold for which of them.
    """
    size = max(_LEAST_ROWS, _PAIRS // max(1, len(ruleset)))
    for begin in range(0, len(table), size):
        rows = slice(begin, min(begin + size, len(table)))
        yield rows, ruleset._matcher_in_order.match(table, rows)


class LabelMoments:
    """Means and standard deviations of labels per rule, from batches of rows.

    Sums of squares are cheap, but little is left of their digits where labels lie close together
    and far from the centre. Such rules are `narrow`, and want a second look.

    Parameters
    ----------
    n_rules : int
        Number of rules.
    centre : float
        Where labels lie; numbers near zero lose the fewest digits.
    """

    def __init__(self, n_rules: int, centre: float) -> None:
        self._centre = centre
        self._sums = np.zeros((3, n_rules))
        self._looks = np.zeros((2, 0))

    def add(self, held: Flags, labels: Floats, weights: Floats | None) -> None:
        """Take in some rows."""
        deviations = labels - self._centre
        factor = np.ones(len(labels)) if weights is None else weights
        numbers = held.astype(np.float64)
        # One power at a time: products of thin matrices are slow, the more so on several threads.
        for total in self._sums:
            total += factor @ numbers
            factor = factor * deviations

    @property
    def weight(self) -> Floats:
        """What the rows of each rule weigh."""
        return np.asarray(self._sums[0])

    @property
    def narrow(self) -> NDArray[np.intp]:
        """Indices of the rules whose rows should be looked at again."""
        weight, first, second = self._sums
        spread = second - first**2 / np.where(weight > 0, weight, 1.0)
        return np.flatnonzero((weight > 0) & (spread <= _NARROW * second))

    def look_again(self, held: Flags, labels: Floats, weights: Floats | None) -> None:
        """Take in some rows once more, for the rules that are narrow."""
        narrow = self.narrow
        if not self._looks.size:
            self._looks = np.zeros((2, len(narrow)))
        deviations = labels[:, None] - self._rough_mean()[narrow]
        shares = held[:, narrow] * (1.0 if weights is None else weights[:, None])
        for total in self._looks:
            shares *= deviations
            total += shares.sum(axis=0)

    def _rough_mean(self) -> Floats:
        weight = np.where(self.weight > 0, self.weight, np.nan)
        return np.asarray(self._centre + self._sums[1] / weight)

    def result(self) -> tuple[Floats, Floats]:
        """Means and population standard deviations; NaN without rows."""
        weight = np.where(self.weight > 0, self.weight, np.nan)
        mean, squares = self._rough_mean(), self._sums[2] - self._sums[1] ** 2 / weight
        if self._looks.size:
            narrow = self.narrow
            first, second = self._looks
            mean[narrow] += first / weight[narrow]
            squares[narrow] = second - first**2 / weight[narrow]
        spread = np.sqrt(np.maximum(squares, 0.0) / weight)
        # Equal labels have a spread of zero, which their rounded mean must not hide.
        return mean, np.where(spread <= BORDER * np.abs(mean), 0.0, spread)


def label_spread(y: Floats, weights: Floats | None, centre: float) -> float:
    """Sample standard deviation (ddof 1) of all labels around their mean; NaN for a single row."""
    shares = np.ones(len(y)) if weights is None else weights
    total = shares.sum()
    if not total > 1:
        return np.nan
    spread = float(np.sqrt(shares @ (y - centre) ** 2 / (total - 1)))
    return 0.0 if spread <= BORDER * abs(centre) else spread


def checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats | None:
    """Weights of rows, at least one of which counts; None where all count the same."""
    if not n_rows:
        raise ValueError("X must hold at least one row to count rows of rules, got 0 rows.")
    if sample_weight is None:
        return None
    weights = row_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_rows} zeros. Pass "
            "sample_weight=None to weigh all rows alike."
        )
    return weights


def label_codes(ruleset: RuleSet, y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """Positions of labels among the classes of a rule set, -1 for others."""
    found, labels = pd.factorize(_one_per_row(y, n_rows))
    if found.min() < 0:
        raise ValueError(
            f"y must hold a label in every row, but row {int(found.argmin())} has none. "
            "Drop such rows first."
        )
    classes = {label: code for code, label in enumerate(ruleset.classes or ())}
    codes = np.array([classes.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if len(ruleset) and codes.max() < 0:
        raise ValueError(
            f"y must hold labels that the rules know, {list(classes)}, but it holds "
            f"{labels.tolist()[:5]!r}. Pass labels of the same kind, such as texts for texts."
        )
    return np.asarray(codes[found])


def finite_labels(y: ArrayLike, n_rows: int) -> Floats:
    """Labels of a regression as numbers."""
    labels = _one_per_row(y, n_rows)
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers for rules of a regression: {error}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(
            f"y must hold finite numbers, got {float(numbers[row])!r} in row {row}. Drop such rows."
        )
    return numbers


def _one_per_row(y: ArrayLike, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y must hold one label per row, shape ({n_rows},), got shape {labels.shape}."
        )
    return labels


def check_alpha(alpha: float) -> None:
    """Raise a ValueError for what is no level of significance."""
    value = float(as_numbers("alpha", alpha, low=0.0, high=1.0, strict=True, remedy=_ALPHA_REMEDY))
    if value == 1.0:
        raise ValueError(f"alpha must be < 1, got {alpha!r}. {_ALPHA_REMEDY}")
