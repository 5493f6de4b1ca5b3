"""Ways to mask features: what a model is shown where a feature is unassigned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.attribution._bits import as_bits
from skescore.attribution._contrasts import joined, parts
from skescore.attribution._decisions import Crossroads
from skescore.attribution._refinement import mixed, packed, uniforms

__all__ = [
    "BackgroundMasks",
    "KleeneMasks",
    "ReplacedMasks",
    "SampledMasks",
    "SupervaluationMasks",
]

Places = NDArray[np.int64]
Masks = NDArray[np.bool_]
#: Cells of tables that are alive at a time.
_CELLS = 1 << 24


class KleeneMasks:
    """The model reads unassigned inputs itself and may answer "unassigned", which is a change.

    Parameters
    ----------
    model : Formula
        Anything with ``evaluate_kleene``.
    X : array-like, shape (n_rows, n_inputs)
        Rows of zeros and ones.
    max_batch : int
        Rows asked for at once, at most.
    """

    antitone = True

    def __init__(self, model: Any, X: Any, max_batch: int) -> None:
        rows = as_bits(X, getattr(model, "n_inputs", np.shape(X)[1]))
        self._signs = np.where(rows, 1, -1).astype(np.int8)
        self._model, self._max_batch = model, max_batch
        self.n_model_rows = 0
        self._own = self._ask(self._signs)

    def _ask(self, signs: NDArray[np.int8]) -> NDArray[Any]:
        self.n_model_rows += len(signs)
        parts = [
            np.asarray(self._model.evaluate_kleene(signs[start : start + self._max_batch]))
            for start in range(0, len(signs), self._max_batch)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int8)

    def same(self, places: Places, masks: Masks) -> NDArray[np.bool_]:
        """Tell whether masks keep the decision."""
        signs = np.where(masks, np.int8(0), self._signs[places])
        return np.asarray(self._ask(signs) == self._own[places])


class ReplacedMasks:
    """Masked features take other values: those of one row for all, or of one for each.

    Parameters
    ----------
    roads : Crossroads
        The model between rows and what replaces them.
    """

    antitone = False

    def __init__(self, roads: Crossroads) -> None:
        self._roads = roads

    @property
    def n_model_rows(self) -> int:
        """Rows that the model answered."""
        return self._roads.n_queries

    def same(self, places: Places, masks: Masks) -> NDArray[np.bool_]:
        """Tell whether masks keep the decision."""
        return ~self._roads.changes(places, masks)


class SampledMasks(ReplacedMasks):
    """A mask keeps the decision if neither flipping all of it nor random parts of it change it.

    Parameters
    ----------
    roads : Crossroads
        The model between rows and their contrasts.
    keys : ndarray of uint64, shape (n_rows,)
        What random parts depend on, beside the mask.
    n_completions : int
        Number of parts.
    """

    def __init__(self, roads: Crossroads, keys: NDArray[np.uint64], n_completions: int) -> None:
        super().__init__(roads)
        self._keys, self._n = keys, n_completions

    def same(self, places: Places, masks: Masks) -> NDArray[np.bool_]:
        """Tell whether masks seem to keep the decision."""
        keys = self._keys[places]
        for word in packed(masks).T:
            keys = mixed(keys ^ mixed(word))
        same = ~self._roads.changes(places, masks)
        n_features = masks.shape[1]
        for number in range(self._n):  # who is known to change needs no more parts
            open_ = np.flatnonzero(same)
            if not len(open_):
                break
            some = masks[open_] & (uniforms(keys[open_], number, n_features) < 0.5)
            same[open_] = ~self._roads.changes(places[open_], some)
        return same


class BackgroundMasks:
    """Masked features take the values of background rows, most of which must keep the decision.

    Parameters
    ----------
    model : estimator or callable
        What decides.
    X, background : array-like or DataFrame, shape (any, n_features)
        The rows, and what replaces them.
    max_batch : int
        Rows asked for at once, at most.
    """

    antitone = False

    def __init__(self, model: Any, X: Any, background: Any, max_batch: int) -> None:
        both, n_rows = joined(X, background)
        first = both.iloc[:1] if isinstance(both, pd.DataFrame) else both[:1]
        self._roads = Crossroads(model, both, first, max_batch)
        self._others = np.arange(n_rows, len(both))
        self._max_batch = max_batch
        own = np.repeat(np.arange(n_rows)[:, None], both.shape[1], axis=1)
        self._own = self._roads._ask(own)

    @property
    def n_model_rows(self) -> int:
        """Rows that the model answered."""
        return self._roads.n_queries

    def same(self, places: Places, masks: Masks) -> NDArray[np.bool_]:
        """Tell whether masks keep the decision for more than half of the background."""
        n_others = len(self._others)
        same = np.empty(len(places), dtype=np.bool_)
        length = max(1, self._max_batch // n_others)
        for start in range(0, len(places), length):
            at, some = places[start : start + length], masks[start : start + length]
            indices = np.where(some[:, None], self._others[:, None], at[:, None, None])
            answers = self._roads._ask(indices.reshape(-1, masks.shape[1]))
            kept = answers.reshape(len(at), n_others) == self._own[at, None]
            same[start : start + length] = 2 * kept.sum(axis=1) > n_others
        return same


class SupervaluationMasks:
    """A mask keeps the decision if flipping no part of it changes it: all flips are looked at.

    Parameters
    ----------
    roads : Crossroads
        The model between rows and their contrasts, which differ in at most 16 features.
    """

    antitone = True

    def __init__(self, roads: Crossroads) -> None:
        self._roads = roads
        n_rows, n_features = roads.n_rows, roads.n_features
        self._columns = np.flatnonzero(roads.differs.any(axis=0))
        width = len(self._columns)
        table = np.empty((n_rows, 1 << width), dtype=np.bool_)
        codes = np.arange(1 << width)
        shared = roads.two_valued()
        if len(shared) and np.array_equal(shared, self._columns) and n_rows > 0:
            answers, own = roads.table(shared)
            for start, stop in parts(n_rows, _CELLS >> width):
                at = own[start:stop, None]
                table[start:stop] = answers[at ^ codes] != answers[at]
            # Only flips of what differs from the contrast are flips.
            frozen = ~roads.differs[:, self._columns] @ (1 << np.arange(width))
            table &= (codes & frozen[:, None]) == 0
        else:
            flips = np.zeros((len(codes), n_features), dtype=np.bool_)
            flips[:, self._columns] = codes[:, None] >> np.arange(width) & 1
            for place in range(n_rows):
                table[place] = roads.changes(np.full(len(codes), place), flips)
        for bit in range(width):
            view = table.reshape(n_rows, -1, 2, 1 << bit)
            view[:, :, 1] |= view[:, :, 0]
        self._changes = table

    @property
    def n_model_rows(self) -> int:
        """Rows that the model answered."""
        return self._roads.n_queries

    def same(self, places: Places, masks: Masks) -> NDArray[np.bool_]:
        """Tell whether masks keep the decision."""
        codes = masks[:, self._columns] @ (1 << np.arange(len(self._columns)))
        return np.asarray(~self._changes[places, codes])
