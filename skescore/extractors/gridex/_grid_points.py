"""The points of a grid extraction: how they go into cells, and with them from box to box."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(eq=False)
class GridCells:
    """The cells that boxes were cut into, before any of them join.

    Parameters
    ----------
    cell : ndarray of int, shape (n_points,)
        Index of each point's cell; -1 for a queried point in a cell without rows.
    parent : ndarray of int, shape (n_cells,)
        Box that each cell was cut from.
    slices : ndarray of int, shape (n_cells, n_cut_features)
        Slice numbers of each cell along the cut features.
    n_rows : ndarray of int, shape (n_cells,)
        Rows in each cell.
    key : ndarray of uint64, shape (n_cells,)
        Structural key of each cell.
    drawn, drawn_answers, owner : ndarray or None
        Points drawn to fill up cells, what the black box answered, and the cell of each.
    """

    cell: np.ndarray
    parent: np.ndarray
    slices: np.ndarray
    n_rows: np.ndarray
    key: np.ndarray
    drawn: np.ndarray | None = None
    drawn_answers: np.ndarray | None = None
    owner: np.ndarray | None = None

    def compact(self) -> GridCells:
        """The same, with the points' cells in as few bytes as possible."""
        for kind in (np.int8, np.int16, np.int32):
            if len(self.n_rows) <= np.iinfo(kind).max:
                return replace(self, cell=self.cell.astype(kind))
        return self


class GridPoints:
    """Rows first, then queried points: where they are, what was answered, in which box.

    Moves are put off until someone looks: nobody does where all boxes are known already.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    answers : ndarray of shape (n_rows,)
        What the black box answered.
    """

    def __init__(self, X: np.ndarray, answers: np.ndarray) -> None:
        self.X, self.answers, self.n_rows = X, answers, len(X)
        self.box: Any = None  # None: all in box 0
        self._waiting: list[GridCells | np.ndarray] = []

    def enter_later(self, cells: GridCells) -> None:
        """Put every point into its cell, and add those that were drawn."""
        self._waiting.append(cells)

    def move_later(self, new_box: np.ndarray) -> None:
        """Renumber boxes; points whose box gets -1 are done with, and dropped."""
        self._waiting.append(new_box)

    def settled(self) -> GridPoints:
        """The same points, once all moves are made."""
        for move in self._waiting:
            if isinstance(move, GridCells):
                self._go_to(move.cell.astype(np.intp, copy=False))
                if move.drawn is not None:
                    self._add(move.drawn, move.drawn_answers, move.owner)
            else:
                self._go_to(move[self.box])
        self._waiting.clear()
        return self

    def _go_to(self, box: np.ndarray) -> None:
        keep = box >= 0
        if keep.all():
            self.box = box
            return
        self.n_rows = int(np.count_nonzero(keep[: self.n_rows]))
        self.X, self.answers, self.box = self.X[keep], self.answers[keep], box[keep]

    def _add(self, X: np.ndarray, answers: Any, box: Any) -> None:
        self.X = np.concatenate([self.X, X])
        self.answers = np.concatenate([self.answers, answers])
        self.box = np.concatenate([self.box, box])
