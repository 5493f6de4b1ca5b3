"""Ways to mask features, masks packed into words, and random numbers seeded by rows and masks.

Every class has a method ``keeps_decision(index, masks)``, which returns whether masks of shape (n,
n_features) keep the decisions of the rows with these indices, and `n_model_rows`, the number of
predicted rows. It is `antitone` if subsets of masks that keep the decision keep it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.attribution._contrasts import ContrastPairs, background_rows, batches, stacked
from skescore.attribution._formula import as_bits

__all__ = [
    "BackgroundMasks",
    "KleeneMasks",
    "ReplacedMasks",
    "SampledMasks",
    "SupervaluationMasks",
    "packed",
    "row_keys",
    "uniforms",
]

Index = NDArray[np.int64]
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]
#: Maximum number of cells of tables in memory.
_CELLS = 1 << 24


class KleeneMasks:
    """Masks for models that accept unassigned inputs; an unassigned prediction is a change."""

    antitone = True

    def __init__(self, model: Any, X: Any, max_batch: int) -> None:
        bits = as_bits(X, getattr(model, "n_inputs", np.shape(X)[1]))
        self._signs = np.where(bits, 1, -1).astype(np.int8)
        self._model, self._max_batch = model, max_batch
        self.n_model_rows = 0
        self._own = self._predict(self._signs.copy())

    def _predict(self, signs: NDArray[np.int8]) -> NDArray[Any]:
        self.n_model_rows += len(signs)
        parts = [
            np.asarray(self._model.evaluate_kleene(signs[part]))
            for part in batches(len(signs), self._max_batch)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int8)

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.bool_]:
        """Return whether masks keep the decision."""
        signs = np.where(masks, np.int8(0), self._signs[index])
        return np.asarray(self._predict(signs) == self._own[index])


class ReplacedMasks:
    """Masks that replace features by the values of one row for all, or of one row for each."""

    antitone = False

    def __init__(self, pairs: ContrastPairs) -> None:
        self._pairs = pairs

    @property
    def n_model_rows(self) -> int:
        """Number of predicted rows."""
        return self._pairs.n_queries

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.bool_]:
        """Return whether masks keep the decision."""
        return ~self._pairs.changes(index, masks)


class SampledMasks(ReplacedMasks):
    """Masks that keep the decision if flipping all of them or random subsets does not change it.

    The `n_completions` random subsets depend on the mask and on the row's key.
    """

    def __init__(self, pairs: ContrastPairs, keys: Words, n_completions: int) -> None:
        super().__init__(pairs)
        self._keys, self._n_completions = keys, n_completions

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.bool_]:
        """Return whether masks keep the decision for all sampled subsets."""
        keys = self._keys[index]
        for word in packed(masks).T:
            keys = _mixed(keys ^ _mixed(word))
        same = super().keeps_decision(index, masks)
        for number in range(self._n_completions):  # stops early where a change is known
            undecided = np.flatnonzero(same)
            if not len(undecided):
                break
            drawn_masks = masks[undecided] & (
                uniforms(keys[undecided], number, masks.shape[1]) < 0.5
            )
            same[undecided] = super().keeps_decision(index[undecided], drawn_masks)
        return same


class BackgroundMasks(ReplacedMasks):
    """Masks that keep the decision if most background rows, as replacements, keep it."""

    def __init__(self, model: Any, X: Any, background: Any, max_batch: int) -> None:
        all_rows = stacked(X, background_rows(X, background))
        first = all_rows.iloc[:1] if isinstance(all_rows, pd.DataFrame) else all_rows[:1]
        super().__init__(ContrastPairs(model, all_rows, first, max_batch))
        self._others = np.arange(len(X), len(all_rows))
        self._max_batch = max_batch
        row_index = np.repeat(np.arange(len(X))[:, None], all_rows.shape[1], axis=1)
        self._own = self._pairs.predict_mixed(row_index)

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.bool_]:
        """Return whether masks keep the decision for more than half of the background."""
        n_others = len(self._others)
        same = np.empty(len(index), dtype=np.bool_)
        for part in batches(len(index), self._max_batch // n_others):
            row_index, part_masks = index[part], masks[part]
            points = np.where(part_masks[:, None], self._others[:, None], row_index[:, None, None])
            y_pred = self._pairs.predict_mixed(points.reshape(-1, masks.shape[1]))
            is_same = y_pred.reshape(len(row_index), n_others) == self._own[row_index, None]
            same[part] = 2 * is_same.sum(axis=1) > n_others
        return same


class SupervaluationMasks(ReplacedMasks):
    """Masks that keep the decision if flipping no subset of them changes it.

    Rows and contrasts differ in at most 16 features.
    """

    antitone = True

    def __init__(self, pairs: ContrastPairs) -> None:
        super().__init__(pairs)
        n_rows, n_features = pairs.n_rows, pairs.n_features
        self._columns = np.flatnonzero(pairs.differs.any(axis=0))
        width = len(self._columns)
        table = np.empty((n_rows, 1 << width), dtype=np.bool_)
        codes = np.arange(1 << width)
        shared = pairs.two_valued()
        if len(shared) and np.array_equal(shared, self._columns):
            y_pred, row_decisions = pairs.table(shared)
            for part in batches(n_rows, _CELLS >> width):
                at = row_decisions[part, None]
                table[part] = y_pred[at ^ codes] != y_pred[at]
            # Only features that differ from the contrast can be flipped.
            frozen = ~pairs.differs[:, self._columns] @ (1 << np.arange(width))
            table &= (codes & frozen[:, None]) == 0
        else:
            flips = np.zeros((len(codes), n_features), dtype=np.bool_)
            flips[:, self._columns] = codes[:, None] >> np.arange(width) & 1
            for row in range(n_rows):
                table[row] = pairs.changes(np.full(len(codes), row), flips)
        for bit in range(width):
            view = table.reshape(n_rows, -1, 2, 1 << bit)
            view[:, :, 1] |= view[:, :, 0]
        self._changes = table

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.bool_]:
        """Return whether masks keep the decision."""
        codes = masks[:, self._columns] @ (1 << np.arange(len(self._columns)))
        return np.asarray(~self._changes[index, codes])


def packed(masks: Masks) -> Words:
    """Pack masks into words, feature i as bit i, with at least one unused bit."""
    n_words = masks.shape[1] // 64 + 1
    octets = np.zeros((len(masks), 8 * n_words), dtype=np.uint8)
    bits = np.packbits(masks, axis=1, bitorder="little")
    octets[:, : bits.shape[1]] = bits
    return octets.view("<u8")


_STEP = np.uint64(0x9E3779B97F4A7C15)


def _mixed(words: Words) -> Words:
    """Mix the bits of words by Steele's splitmix64."""
    with np.errstate(over="ignore"):
        words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def row_keys(X: Any, seed: int) -> Words:
    """Return a key for each row that depends only on its values and the seed."""
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    keys = np.full(len(X), seed, dtype=np.uint64)
    if values.dtype.kind == "O":
        columns = [pd.Series(values[:, j]) for j in range(values.shape[1])]
        words = [pd.util.hash_array(c.to_numpy(), categorize=False) for c in columns]
    else:
        numbers = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        words = list(np.ascontiguousarray(numbers.T).view(np.uint64))
    for word in words:
        keys = _mixed(keys ^ _mixed(np.asarray(word, dtype=np.uint64)))
    return keys


def uniforms(keys: Words, stream: int, n: int) -> NDArray[np.float64]:
    """Draw `n` numbers strictly between 0 and 1 for each key and stream."""
    with np.errstate(over="ignore"):
        row_bits = _mixed(keys + np.uint64(stream + 1) * _STEP)
        words = _mixed(row_bits[:, None] + np.arange(1, n + 1, dtype=np.uint64) * _STEP)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
