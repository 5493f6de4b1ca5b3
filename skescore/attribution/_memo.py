"""What is known of masks: no model is asked twice, nor for what follows from its answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memo", "packed"]

#: Words that a comparison of new masks with known ones may take.
_WORDS = 1 << 22

Places = NDArray[np.int64]
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]


def packed(masks: Masks) -> Words:
    """Write masks as the bits of words, with at least one bit to spare.

    Parameters
    ----------
    masks : ndarray of bool, shape (n, n_features)
        The masks; feature i becomes bit i.

    Returns
    -------
    ndarray of uint64, shape (n, n_features // 64 + 1)
        The words.
    """
    n_words = masks.shape[1] // 64 + 1
    octets = np.zeros((len(masks), 8 * n_words), dtype=np.uint8)
    bits = np.packbits(masks, axis=1, bitorder="little")
    octets[:, : bits.shape[1]] = bits
    return octets.view("<u8")


class Memo:
    """Answers about masks, by row.

    Parameters
    ----------
    ask : callable
        From places (numbers of rows) and masks to whether the decision is still the same.
    n_rows, n_features : int
        Size of the problem.
    inference : bool
        Whether a part of a mask that keeps the decision keeps it too. Then much need not be asked.
    max_queries : int or None
        How many masks are asked for per row, at most; the row as it is counts as one.

    Attributes
    ----------
    queries : ndarray of int, shape (n_rows,)
        Distinct masks that were asked for.
    exhausted : ndarray of bool, shape (n_rows,)
        Where a question was left unanswered because of `max_queries`.
    same_sets, change_sets : list of ndarray
        With inference: the masks that were found to keep, and to change, the decision.
    """

    def __init__(
        self,
        ask: Callable[[Places, Masks], NDArray[np.bool_]],
        n_rows: int,
        n_features: int,
        *,
        inference: bool,
        max_queries: int | None,
    ) -> None:
        self._ask = ask
        self._limit = np.iinfo(np.int64).max if max_queries is None else max_queries
        self._inference = inference
        self._answers: dict[bytes, bool] = {}
        self.queries = np.ones(n_rows, dtype=np.int64)
        self.exhausted = np.zeros(n_rows, dtype=np.bool_)
        n_words = n_features // 64 + 1
        # Of what is not there yet, nothing is a part (but the empty mask, which keeps everything),
        # and it is a part of nothing, as the spare bit of masks is never set.
        self.same_sets = np.zeros((n_rows, 4, n_words), dtype=np.uint64)
        self.change_sets = np.full((n_rows, 4, n_words), ~np.uint64(0))
        self._counts = np.zeros((2, n_rows), dtype=np.int64)

    def same(self, places: Places, masks: Masks) -> NDArray[np.int8]:
        """Tell whether masks keep the decision.

        Parameters
        ----------
        places : ndarray of int, shape (n,)
            Numbers of the rows.
        masks : ndarray of bool, shape (n, n_features)
            What is masked.

        Returns
        -------
        ndarray of int8, shape (n,)
            1 for yes, 0 for no, and -1 where nobody may be asked any more.
        """
        words = packed(masks)
        known = np.full(len(places), -1, dtype=np.int8)
        known[~masks.any(axis=1)] = 1
        if self._inference:
            self._infer(places, words, known)
        open_ = np.flatnonzero(known < 0)
        if not len(open_):
            return known
        both = np.concatenate([places[open_, None].astype(np.uint64), words[open_]], axis=1)
        keys = both.view(f"V{8 * both.shape[1]}").ravel().tolist()
        new: dict[bytes, int] = {}
        for key, place, index in zip(keys, places[open_].tolist(), open_.tolist(), strict=True):
            if key in self._answers or key in new:
                continue
            if self.queries[place] >= self._limit:
                self.exhausted[place] = True
                continue
            self.queries[place] += 1
            new[key] = index
        if new:
            indices = np.fromiter(new.values(), dtype=np.int64, count=len(new))
            answers = self._ask(places[indices], masks[indices])
            self._answers.update(zip(new, answers.tolist(), strict=True))
            if self._inference:
                self._learn(places[indices], words[indices], answers)
        known[open_] = [self._answers.get(key, -1) for key in keys]
        return known

    def _infer(self, places: Places, words: Words, known: NDArray[np.int8]) -> None:
        n_known = max(self.same_sets.shape[1], self.change_sets.shape[1])
        length = max(1, _WORDS // (n_known * words.shape[1]))
        for start in range(0, len(places), length):
            part = slice(start, start + length)
            asked, at = words[part, None, :], places[part]
            inside = ((asked & ~self.same_sets[at]) == 0).all(axis=2).any(axis=1)
            beyond = ((self.change_sets[at] & ~asked) == 0).all(axis=2).any(axis=1)
            known[part][inside] = 1
            known[part][beyond & ~inside] = 0

    def _learn(self, places: Places, words: Words, answers: NDArray[np.bool_]) -> None:
        """Keep the masks in the tables, each behind those that its row has already."""
        for kind, chosen in ((0, answers), (1, ~answers)):
            at, masks = places[chosen], words[chosen]
            if not len(at):
                continue
            order = np.argsort(at, kind="stable")
            at, masks = at[order], masks[order]
            first = np.r_[True, at[1:] != at[:-1]]
            starts = np.flatnonzero(first)
            rank = np.arange(len(at)) - np.repeat(starts, np.diff(np.r_[starts, len(at)]))
            slots = self._counts[kind, at] + rank
            table = self.same_sets if kind == 0 else self.change_sets
            if slots.max() >= table.shape[1]:
                shape = (len(table), max(2 * table.shape[1], int(slots.max()) + 1), table.shape[2])
                wider = np.full(shape, np.uint64(0) if kind == 0 else ~np.uint64(0))
                wider[:, : table.shape[1]] = table
                table = wider
                if kind == 0:
                    self.same_sets = table
                else:
                    self.change_sets = table
            table[at, slots] = masks
            np.maximum.at(self._counts[kind], at, slots + 1)
