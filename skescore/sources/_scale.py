"""Integer units of weights and labels, so that sums do not depend on the order of the rows.

The units are powers of two, chosen so that no sum over all rows can overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.extractors import Column, MeasuredColumn

Floats = NDArray[np.float64]

#: Bits of the largest weight or label; sums of 65,536 rows are exact in double precision.
_VALUE_BITS = 36
#: Bits of the largest sum.
_SUM_BITS = 62
#: Smallest half range of a column in an equation, which limits its reciprocal.
_MIN_HALF_RANGE = 1e-280


@dataclass(frozen=True)
class Scale:
    """Units in which weights and labels are summed as integers.

    Parameters
    ----------
    classes : tuple, optional
        Labels of a classification.
    weight_unit : float, optional
        Unit of the weights; None if every row counts as one.
    center : float, default=0.0
        Number, at most the smallest label, that is subtracted from labels before summation.
    label_unit : float, default=1.0
        Unit of the weighted differences.
    square_unit : float, default=1.0
        Unit of the weighted squares of the differences.
    bits : int, default=36
        Bits of the largest weight or label.
    with_labels : bool, default=True
        Whether labels or classes are summed, or only weights.
    measured : tuple of MeasuredColumn, default=()
        Columns whose values and products a regression sums for linear equations.
    """

    classes: tuple[Any, ...] | None
    weight_unit: float | None = None
    center: float = 0.0
    label_unit: float = 1.0
    square_unit: float = 1.0
    bits: int = _VALUE_BITS
    with_labels: bool = True
    measured: tuple[MeasuredColumn, ...] = ()

    @classmethod
    def choose(
        cls,
        n_rows: int,
        classes: tuple[Any, ...] | None,
        label_range: tuple[float, float],
        max_weight: float | None,
    ) -> Scale:
        """Choose units in which no sum over `n_rows` rows can overflow."""
        bits = min(_VALUE_BITS, _SUM_BITS - n_rows.bit_length())
        weight = 1.0 if max_weight is None else max_weight
        unit = None if max_weight is None else unit_of(weight, bits)
        if classes is not None:
            return cls(classes, unit, bits=bits)
        low, high = label_range
        step = unit_of(high / 2 - low / 2, -1)
        if not math.isfinite(step) or not math.isfinite(weight * step * step):
            raise ValueError(
                f"Labels must have finite squares for a regression, got labels from {low!r} to "
                f"{high!r}. Scale them."
            )
        center = math.floor(low / step) * step if step else low
        max_deviation = high - center
        return cls(
            None,
            unit,
            center,
            unit_of(weight * max_deviation, bits),
            unit_of(weight * max_deviation * max_deviation, bits),
            bits,
        )

    @property
    def n_sums(self) -> int:
        """Number of sums of each bin."""
        if not self.with_labels:
            return 1
        m = len(self.measured)
        return 3 + 2 * m + m * (m + 1) // 2 if self.classes is None else len(self.classes)

    @property
    def product_unit(self) -> float:
        """Unit of weighted measured columns and of their products."""
        return self.weight_unit or unit_of(1.0, self.bits)

    def residual_unit(self, equation: Floats) -> float:
        """Return the unit of weighted residuals from an equation."""
        weight = self.product_unit * 2.0**self.bits
        label = self.label_unit * 2.0**self.bits / weight
        return unit_of(weight * (label + float(np.abs(equation).sum())), self.bits)

    def round_to(self, values: Floats, unit: float) -> Floats:
        """Round values to multiples of a unit and return the multiples.

        The division is exact, since the unit is a power of two.
        """
        return np.floor(values / unit + 0.5)


def measured_column(column: Column, index: int) -> MeasuredColumn | None:
    """Scale a numeric column for linear equations; None if it is constant or not numeric."""
    half = column.high / 2 - column.low / 2
    if column.values is not None or not _MIN_HALF_RANGE < half < 1 / _MIN_HALF_RANGE:
        return None
    step = unit_of(half, -1)
    center = math.floor(column.low / step) * step
    return MeasuredColumn(column.name, index, center, unit_of(column.high - center, 0))


def unit_of(largest: float, bits: int) -> float:
    """Return the power of two in which `largest` has the given number of bits."""
    if not largest > 0:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1000))
