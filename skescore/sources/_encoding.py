"""Batches of rows encoded as numbers: bins of columns, codes of classes, weights and nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.sources._scale import Scale

Floats = NDArray[np.float64]

#: Number of rows that are summed at once; their sums are exact in double precision.
_PIECE_ROWS = 1 << 16


class Binner:
    """Assignment of numbers to bins.

    The range of the cuts is divided into cells of equal width, so narrow that each contains at most
    one cut. A number is compared only with the cut of its cell. The result is exact, because even
    with rounding, the index of the cell never decreases as the number grows.
    """

    _MAX_CELLS = 1 << 13

    def __init__(self, cuts: Sequence[float]) -> None:
        self._cuts = np.array(cuts, dtype=np.float64)
        self._n_cells = 0
        if len(cuts) < 2:
            return
        with np.errstate(over="ignore"):
            min_gap, cut_range = np.diff(self._cuts).min(), self._cuts[-1] - self._cuts[0]
            n_cells, cells_per_unit = cut_range / min_gap * 1.5, 1.5 / min_gap
        if not (n_cells < self._MAX_CELLS and cells_per_unit < math.inf):
            return
        self._n_cells = int(n_cells) + 2
        self._start, self._cells_per_unit = self._cuts[0], cells_per_unit
        cells = self._cells_of(self._cuts)
        if len(np.unique(cells)) < len(cells):
            self._n_cells = 0
            return
        self._n_cuts_below = np.searchsorted(cells, np.arange(self._n_cells)).astype(np.int16)
        self._cut_of_cell = np.full(self._n_cells, np.inf)
        self._cut_of_cell[cells] = self._cuts

    def _cells_of(self, numbers: Floats) -> NDArray[np.intp]:
        with np.errstate(over="ignore"):
            position = (numbers - self._start) * self._cells_per_unit
        # fmax and fmin ignore NaN, so missing numbers are in the first cell.
        np.fmax(position, 0.0, out=position)
        np.fmin(position, self._n_cells - 1, out=position)
        return position.astype(np.intp)

    def bins(self, numbers: Floats) -> NDArray[Any]:
        """Return the bin of each number; NaN belongs to the bin after the last."""
        if len(self._cuts) == 1:
            bins: NDArray[Any] = (numbers > self._cuts[0]).astype(np.int16)
        elif not self._n_cells:
            bins = np.searchsorted(self._cuts, numbers)
        else:
            cells = self._cells_of(numbers)
            bins = self._n_cuts_below[cells]
            bins += numbers > self._cut_of_cell[cells]
        missing_mask = np.isnan(numbers)
        if missing_mask.any():
            bins[missing_mask] = len(self._cuts) + 1
        return bins


@dataclass(frozen=True)
class EncodedRows:
    """A batch of rows encoded as numbers.

    Parameters
    ----------
    columns : sequence of ndarray
        Numeric columns as floats, categories as indices of their values.
    label : ndarray
        Codes of classes, or numbers.
    weight : ndarray, optional
        Weights of the rows.
    node : ndarray, optional
        Index of the node of each row; None if there is a single node.
    measured : sequence of ndarray
        Columns of linear equations.
    """

    columns: Sequence[NDArray[Any]]
    label: NDArray[Any]
    weight: Floats | None
    node: NDArray[Any] | None = None
    measured: Sequence[Floats] = ()

    def take(self, rows: Any) -> EncodedRows:
        """Select rows by a slice, a mask or indices."""
        weight, node = self.weight, self.node
        return EncodedRows(
            [column[rows] for column in self.columns],
            self.label[rows],
            None if weight is None else weight[rows],
            None if node is None else node[rows],
            [column[rows] for column in self.measured],
        )

    def pieces(self) -> Iterable[EncodedRows]:
        """Yield small pieces of the rows that belong to a node."""
        for begin in range(0, len(self.label), _PIECE_ROWS):
            piece = self.take(slice(begin, begin + _PIECE_ROWS))
            if piece.node is not None and (piece.node < 0).any():
                piece = piece.take(np.flatnonzero(piece.node >= 0))
            yield piece

    def steps(self, scale: Scale) -> list[Floats]:
        """Return the measured columns relative to their centers, in units of their steps."""
        pairs = zip(self.measured, scale.measured, strict=True)
        return [(values - m.center) * (1 / m.step) for values, m in pairs]

    def whole_weights(self, scale: Scale) -> Floats | None:
        """Return the weights as integers; None if every row counts as one."""
        if self.weight is None:
            return None
        return scale.round_to(self.weight, scale.weight_unit or 1.0)

    def summands(self, scale: Scale) -> list[Floats | None]:
        """Return the integers that are summed in each bin; None stands for ones.

        They are weights, labels, squared labels, steps, products of steps, and products of steps
        and labels; classification sums only weights.
        """
        weight = self.weight
        summands = [self.whole_weights(scale)]
        if scale.with_labels and scale.classes is None:
            deviation = self.label - scale.center
            weighted_deviation = deviation if weight is None else weight * deviation
            summands.append(scale.round_to(weighted_deviation, scale.label_unit))
            summands.append(scale.round_to(weighted_deviation * deviation, scale.square_unit))
            steps, unit = self.steps(scale), scale.product_unit
            weighted_steps = steps if weight is None else [weight * step for step in steps]
            summands += [scale.round_to(step, unit) for step in weighted_steps]
            summands += [
                scale.round_to(step * other_step, unit)
                for i, step in enumerate(weighted_steps)
                for other_step in steps[i:]
            ]
            summands += [
                scale.round_to(step * deviation, scale.label_unit) for step in weighted_steps
            ]
        return summands
