"""Flip sets by size: all single flips, all pairs, and so on, as far as the budget goes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._decisions import Crossroads

__all__ = ["levelwise_flip_sets"]

FoundSets = list[dict[int, tuple[int, ...]]]


class _Row:
    """What is known of one row: minimal flip sets, and which features are still open."""

    def __init__(self, place: int, differs: NDArray[np.bool_]) -> None:
        self.place = place
        self.features = np.flatnonzero(differs)
        self.sets: list[tuple[int, ...]] = []
        self.smallest: dict[int, tuple[int, ...]] = {}
        self.queries = 0
        self.tried = 0  # all sets of up to so many features have been looked at
        self.exhausted = len(self.features) == 0

    def candidates(self, size: int, budget: int) -> NDArray[np.int64] | None:
        """Sets of this size that contain no flip set; None if there are too many to look at."""
        open_ = self._open()
        count = math.comb(len(open_), size)
        if count > budget - self.queries:
            return None
        flat = np.fromiter(
            chain.from_iterable(combinations(open_, size)), dtype=np.int64, count=count * size
        )
        sets = flat.reshape(count, size)
        keep = np.ones(count, dtype=np.bool_)
        for known in self.sets:
            if len(known) > 1:
                keep &= np.isin(sets, known).sum(axis=1) < len(known)
        return sets[keep]

    def _open(self) -> list[int]:
        """Features that larger minimal sets may have: those that are no flip set alone."""
        single = {members[0] for members in self.sets if len(members) == 1}
        return [feature for feature in self.features.tolist() if feature not in single]

    def learn(self, size: int, sets: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
        """Take in what flipping the candidates of a size did."""
        for members in map(tuple, sets[changed].tolist()):
            self.sets.append(members)
            for feature in members:
                self.smallest.setdefault(feature, members)
        self.tried = size
        # Without candidates of this size every larger set contains a flip set, so none is minimal.
        self.exhausted = (
            len(sets) == 0 or size >= len(self._open()) or len(self.smallest) == len(self.features)
        )


def levelwise_flip_sets(
    roads: Crossroads, max_size: int, max_queries: int, max_batch: int
) -> tuple[FoundSets, NDArray[np.bool_], NDArray[np.int64]]:
    """Find smallest minimal flip sets of up to a size.

    Parameters
    ----------
    roads : Crossroads
        The rows and their contrasts.
    max_size : int
        Size of the largest sets that are tried.
    max_queries : int
        Questions about one row, at most. A size is tried as a whole or not at all.
    max_batch : int
        Sets that are asked for at once, at most.

    Returns
    -------
    found : list of dict
        Of each row: by feature, its smallest minimal flip set.
    exhausted : ndarray of bool, shape (n_rows,)
        Whether features without a set have none of any size.
    tried : ndarray of int, shape (n_rows,)
        The size up to which all sets have been tried.
    """
    rows = [_Row(place, roads.differs[place]) for place in range(roads.n_rows)]
    for size in range(1, max_size + 1):
        for batch in _batches(rows, size, max_queries, max_batch):
            places = np.concatenate(
                [np.full(len(sets), row.place, dtype=np.int64) for row, sets in batch]
            )
            changed = np.empty(len(places), dtype=np.bool_)
            offset = 0
            everything = np.concatenate([sets for _, sets in batch])
            for start in range(0, len(places), max_batch):
                part = slice(start, start + max_batch)
                flipped = np.zeros((len(places[part]), roads.n_features), dtype=np.bool_)
                np.put_along_axis(flipped, everything[part], True, axis=1)
                changed[part] = roads.changes(places[part], flipped)
            for row, sets in batch:
                row.queries += len(sets)
                row.learn(size, sets, changed[offset : offset + len(sets)])
                offset += len(sets)
    return (
        [row.smallest for row in rows],
        np.array([row.exhausted for row in rows]),
        np.array([row.tried for row in rows], dtype=np.int64),
    )


def _batches(
    rows: list[_Row], size: int, max_queries: int, max_batch: int
) -> Iterator[list[tuple[_Row, NDArray[np.int64]]]]:
    """Rows with their candidates, until there are enough of them to ask."""
    batch: list[tuple[_Row, NDArray[np.int64]]] = []
    waiting = 0
    for row in rows:
        if row.exhausted or row.tried < size - 1:
            continue
        sets = row.candidates(size, max_queries)
        if sets is None:
            continue
        batch.append((row, sets))
        waiting += len(sets)
        if waiting >= max_batch:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch
