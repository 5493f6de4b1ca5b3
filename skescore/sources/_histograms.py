"""Histograms of a row source, from which extractors learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skescore.extractors import Column, LabelMoments, MeasuredColumn
from skescore.extractors._binned import Equations
from skescore.rules import RuleSet
from skescore.sources._reducers import RowSource
from skescore.sources._scale import Scale, measured_column
from skescore.sources._sums import (
    BinReducer,
    CellReducer,
    Cells,
    LabelReducer,
    ResidualReducer,
)
from skescore.sources._tables import ColumnError, SourceError

Sums = NDArray[np.int64]


class Histograms:
    """A row source whose columns are cut; see :class:`skescore.extractors.HistogramSource`.

    Parameters
    ----------
    source : RowSource
        The rows.
    columns : sequence of Column
        The features with their cuts.
    scale : Scale
        The units of the sums.
    label_range : tuple of float
        The smallest and the largest label of a regression.
    """

    def __init__(
        self,
        source: RowSource,
        columns: Sequence[Column],
        scale: Scale,
        label_range: tuple[float, float],
    ) -> None:
        self._source, self._scale = source, scale
        self.columns, self.classes = list(columns), scale.classes
        self.label_range, self.weighted = label_range, scale.weight_unit is not None
        self.unit, self.label_unit = scale.weight_unit or 1.0, scale.label_unit
        self.square_unit, self.center = scale.square_unit, scale.center
        self._used: list[int] = list(range(len(columns)))
        self.n_passes = 0

    @property
    def measured(self) -> Sequence[MeasuredColumn]:
        """Columns of linear equations."""
        return self._scale.measured

    @property
    def product_unit(self) -> float:
        """Unit of the sums of measured columns and of their products."""
        return self._scale.product_unit

    def use(self, columns: Sequence[int], measured: Sequence[int] = ()) -> None:
        """Restrict the sums to the bins of some columns, and choose the measured columns."""
        self._used = list(columns) or [0]
        scaled = (measured_column(self.columns[j], j) for j in measured)
        self._scale = replace(self._scale, measured=tuple(m for m in scaled if m is not None))

    def histograms(self, nodes: RuleSet | None, totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Return the sums of the bins of each node, by column."""
        self.n_passes += 1
        used_columns = [self.columns[j] for j in self._used]
        column_sums = self._source.reduce(BinReducer(nodes, used_columns, self._scale))
        n_nodes = 1 if nodes is None else len(nodes)
        # The sums of every column must agree with each other and with earlier passes.
        expected = column_sums[0].sum(axis=1) if totals is None else np.array(totals)
        self._check_equal(*((sums.sum(axis=1), expected) for sums in column_sums))
        result = []
        for node in range(n_nodes):
            node_sums = [
                np.zeros((c.n_bins + 1, self._scale.n_sums), np.int64) for c in self.columns
            ]
            for sums in node_sums:
                sums[0] = expected[node]
            for j, sums in zip(self._used, column_sums, strict=True):
                node_sums[j] = sums[node]
            result.append(node_sums)
        return result

    def _check_equal(self, *pairs: tuple[Sums, Sums]) -> None:
        if any((sums != expected).any() for sums, expected in pairs):
            raise SourceError(
                f"{self._source.name} changed while it was read. Read a table at rest, or a "
                "snapshot."
            )

    def cells(self) -> tuple[NDArray[np.intp], Sums]:
        """Return the bins of each cell, shape (n_cells, n_columns), and the sums of its rows."""
        if math.prod(Cells.sizes(self.columns)) >= 1 << 62:
            raise ColumnError(Cells.too_many("perhaps far more than"))
        self.n_passes += 1
        cells = self._source.reduce(CellReducer(None, self.columns, self._scale))
        return cells.bins(self.columns), cells.sums

    def labels(self, nodes: RuleSet) -> list[LabelMoments]:
        """Return weight, mean and standard deviation of the labels of each node."""
        self.n_passes += 1
        sums = self._source.reduce(LabelReducer(nodes, self.columns, self._scale))
        return [node_labels.moments(self._scale) for node_labels in sums]

    def residuals(
        self, nodes: RuleSet, equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Return the summed absolute residuals of the labels of each node from its equations."""
        self.n_passes += 1
        scale = self._scale
        node_sums = self._source.reduce(ResidualReducer(nodes, self.columns, scale, equations))
        self._check_equal(*((s[:1], total[:1]) for s, total in zip(node_sums, totals, strict=True)))
        return [
            [
                Fraction(scale.residual_unit(equation)) * int(n)
                for equation, n in zip(of_node, sums[1:], strict=True)
            ]
            for of_node, sums in zip(equations, node_sums, strict=True)
        ]
