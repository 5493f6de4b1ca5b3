"""Passes of B-ReX over many rows at once, and bounds that the predictions for masks prove.

Blocks of features that affect the decision are divided into smaller ones. No mask is queried twice,
and none is queried whose result follows from other masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._contrasts import batches
from skescore.attribution._masks import packed, uniforms

__all__ = [
    "MOST_PROVEN",
    "Certificates",
    "Evidence",
    "MaskCache",
    "cut",
    "evidence",
    "fewest_masked",
    "refine",
]

#: Largest number of 64-bit words in one comparison of new masks with known ones.
_WORDS = 1 << 22
#: Tolerated rounding error of sums of weights.
_TOLERANCE = 1e-12
#: Largest number of features for proofs, which consider all sets of features.
MOST_PROVEN = 16

Index = NDArray[np.int64]
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class MaskCache:
    """Cache that stores for each row which masks keep its decision, and queries each mask once.

    A mask is a set of features that are replaced by the values of the contrast.

    Parameters
    ----------
    query : callable
        Function of row indices and masks that returns whether each mask keeps the decision.
    n_rows : int
        Number of rows.
    n_features : int
        Number of features.
    inference : bool
        Whether to infer results: a subset of a mask that keeps the decision is assumed to keep it,
        and a superset of a mask that changes it is assumed to change it.
    max_queries : int or None
        Largest number of queries per row.

    Attributes
    ----------
    queries : ndarray of int, shape (n_rows,)
        Number of queries of each row, including one for the unmasked row.
    exhausted : ndarray of bool, shape (n_rows,)
        Whether `max_queries` prevented a query of the row.
    """

    def __init__(
        self,
        query: Callable[[Index, Masks], NDArray[np.bool_]],
        n_rows: int,
        n_features: int,
        *,
        inference: bool,
        max_queries: int | None,
    ) -> None:
        self._query = query
        self._limit = np.iinfo(np.int64).max if max_queries is None else max_queries
        self._inference = inference
        self._known: dict[bytes, bool] = {}
        self.queries = np.ones(n_rows, dtype=np.int64)
        self.exhausted = np.zeros(n_rows, dtype=np.bool_)
        # Masks of each row, by whether they keep the decision. Unused entries must not lead to
        # inferences. Among masks that keep the decision, they are empty, so only the empty mask is
        # a subset of them. Among masks that change it, they have all bits set, including a spare
        # bit that is not set in any mask, so they are not a subset of any mask.
        shape = (n_rows, 4, n_features // 64 + 1)
        self._fill = {True: np.uint64(0), False: ~np.uint64(0)}
        self._sets = {is_same: np.full(shape, fill) for is_same, fill in self._fill.items()}
        self._counts = {is_same: np.zeros(n_rows, dtype=np.int64) for is_same in self._fill}

    def keeps_decision(self, index: Index, masks: Masks) -> NDArray[np.int8]:
        """Return 1 for masks that keep the decision, 0 for others, -1 if no query is left."""
        words = packed(masks)
        results = np.full(len(index), -1, dtype=np.int8)
        results[~masks.any(axis=1)] = 1
        if self._inference:
            self._infer(index, words, results)
        pending = np.flatnonzero(results < 0)
        if not len(pending):
            return results
        row_words = np.concatenate([index[pending, None].astype(np.uint64), words[pending]], axis=1)
        keys = row_words.view(f"V{8 * row_words.shape[1]}").ravel().tolist()
        queried: dict[bytes, int] = {}
        for key, row, at in zip(keys, index[pending].tolist(), pending.tolist(), strict=True):
            if key in self._known or key in queried:
                continue
            if self.queries[row] >= self._limit:
                self.exhausted[row] = True
                continue
            self.queries[row] += 1
            queried[key] = at
        if queried:
            positions = np.fromiter(queried.values(), dtype=np.int64, count=len(queried))
            is_same = self._query(index[positions], masks[positions])
            self._known.update(zip(queried, is_same.tolist(), strict=True))
            if self._inference:
                self._learn(index[positions], words[positions], is_same)
        results[pending] = [self._known.get(key, -1) for key in keys]
        return results

    def _infer(self, index: Index, words: Words, results: NDArray[np.int8]) -> None:
        """Set the results that follow from known masks."""
        n_known = max(sets.shape[1] for sets in self._sets.values())
        for part in batches(len(index), _WORDS // (n_known * words.shape[1])):
            new, row = words[part, None, :], index[part]
            implies_same = ((new & ~self._sets[True][row]) == 0).all(axis=2).any(axis=1)
            implies_change = ((self._sets[False][row] & ~new) == 0).all(axis=2).any(axis=1)
            results[part][implies_same] = 1
            results[part][implies_change & ~implies_same] = 0

    def _learn(self, index: Index, words: Words, is_same: NDArray[np.bool_]) -> None:
        """Append the results of queries to the known masks of their rows."""
        for kind, selected in ((True, is_same), (False, ~is_same)):
            row, masks = index[selected], words[selected]
            if not len(row):
                continue
            order = np.argsort(row, kind="stable")
            row, masks = row[order], masks[order]
            starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
            rank = np.arange(len(row)) - np.repeat(starts, np.diff(np.r_[starts, len(row)]))
            slots = self._counts[kind][row] + rank
            sets = self._sets[kind]
            if slots.max() >= sets.shape[1]:
                width = max(2 * sets.shape[1], int(slots.max()) + 1)
                wider = np.full((len(sets), width, sets.shape[2]), self._fill[kind])
                wider[:, : sets.shape[1]] = sets
                self._sets[kind] = sets = wider
            sets[row, slots] = masks
            np.maximum.at(self._counts[kind], row, slots + 1)

    def implied(self, n_features: int) -> tuple[Words, Words]:
        """Return two tables of all masks: which are implied to keep, and to change, a decision.

        The tables have shape (2**n_features, n_words). The entry for row r of X is bit r % 64 of
        word r // 64.
        """
        n_words = -(-len(self.queries) // 64)
        tables = []
        for sets in self._sets.values():
            table = np.zeros((1 << n_features, n_words), dtype=np.uint64)
            row, slot = np.nonzero(sets[:, :, 0] < np.uint64(1 << n_features))
            code = sets[row, slot, 0].astype(np.int64)
            bits = np.uint64(1) << (row % 64).astype(np.uint64)
            np.bitwise_or.at(table, (code, row // 64), bits)
            tables.append(table)
        for bit in range(n_features):
            same, change = (table.reshape(-1, 2, 1 << bit, n_words) for table in tables)
            same[:, 0] |= same[:, 1]
            change[:, 1] |= change[:, 0]
        return tables[0], tables[1]


class Certificates(NamedTuple):
    """Masks under which one more masked feature changes the decision, with row and feature."""

    rows: Index
    features: Index
    masks: Masks


def cut(members: Masks, weights: Floats, draws: Floats, n_blocks: int) -> NDArray[np.int64]:
    """Divide sets of features at random into up to `n_blocks` blocks of similar weight.

    `weights` are estimates of the responsibilities of features, and `draws` are random numbers.
    Returns the index of each feature's block, -1 for features outside the set.
    """
    n, n_features = members.shape
    counts = members.sum(axis=1)
    weights = np.where(members, weights, 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    weights = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), members / counts[:, None])
    # Sorting exponential variables with these rates draws a weighted order without replacement.
    # Features without weight come last, in random order.
    rank = np.full(members.shape, np.inf)
    np.divide(-np.log(draws), weights, out=rank, where=weights > 0)
    fractions = -np.log(draws) / -np.log(2.0**-54)
    rank = np.where(members & (weights == 0), np.finfo(float).max * (0.5 + fractions / 2), rank)
    order = np.argsort(rank, axis=1, kind="stable")
    ordered_weights = np.take_along_axis(weights, order, axis=1)
    labels = np.full(members.shape, -1, dtype=np.int64)
    rows = np.arange(n)
    filled, current = np.zeros(n), np.zeros(n, dtype=np.int64)
    for position in range(n_features):
        is_member = position < counts
        labels[rows[is_member], order[is_member, position]] = current[is_member]
        filled += ordered_weights[:, position]
        is_full = (filled >= 1 / n_blocks - _TOLERANCE) & (current < n_blocks - 1)
        current[is_full] += 1
        filled[is_full] = 0.0
    positions = np.empty_like(order)
    np.put_along_axis(positions, order, np.arange(n_features)[None, :], axis=1)
    # A set that is a single block would never become smaller, so it is divided in two.
    alone = (labels.max(axis=1) == 0) & (counts > 1)
    cut_position = 1 + (draws[:, 0] * (counts - 1)).astype(np.int64)
    labels = np.where(alone[:, None] & members, positions >= cut_position[:, None], labels)
    return np.where((counts <= n_blocks)[:, None] & members, positions, labels)


def refine(
    cache: MaskCache,
    index: Index,
    keys: Words,
    weights: Floats,
    *,
    stream: int,
    n_blocks: int,
    keep_witness: bool,
) -> tuple[Floats, Certificates]:
    """Run pass number `stream`, level by level; all rows and blocks of a level share queries.

    `keys` are the seeds of the rows, and `weights` are the responsibilities so far, which guide the
    cuts. With `keep_witness`, the mask under which the decision depends on a block remains active
    while the block is refined, and certificates are collected. Returns the responsibilities of this
    pass, and the certificates.
    """
    n, n_features = weights.shape
    values = np.zeros((n, n_features))
    parts = np.ones((n, n_features), dtype=np.bool_)
    masks = np.zeros((n, n_features), dtype=np.bool_)
    row = np.arange(n)
    nothing = np.empty(0, dtype=np.int64)
    blocks_by_level: list[tuple[Index, Index, Masks]] = [(nothing, nothing, masks[:0])]
    depth = 0
    while len(row):
        draws = uniforms(keys, (stream << 16) + depth, n_features)[row]
        labels = cut(parts, weights[row], draws, n_blocks)
        sizes, witnesses = _smallest(cache, index[row], masks, labels, n_blocks)
        task, block = np.nonzero(sizes >= 0)
        members = labels[task] == block[:, None]
        size = sizes[task, block]
        at, feature = np.nonzero(members)
        values[row[task[at]], feature] = 1.0 / (1 + size[at])
        # A block without a witness has no responsibility, whatever its parent had.
        lost_task, lost_feature = np.nonzero(labels >= 0)
        none = sizes[lost_task, labels[lost_task, lost_feature]] < 0
        values[row[lost_task[none]], lost_feature[none]] = 0.0
        inner = masks[task]
        is_single = members.sum(axis=1) == 1
        if keep_witness:
            code = witnesses[task, block][:, None]
            inner = inner | ((labels[task] >= 0) & (code >> np.maximum(labels[task], 0) & 1 == 1))
            blocks_by_level.append(
                (index[row[task[is_single]]], members[is_single].argmax(axis=1), inner[is_single])
            )
        row, parts, masks = row[task[~is_single]], members[~is_single], inner[~is_single]
        depth += 1
    return values, Certificates(
        *(np.concatenate(column) for column in zip(*blocks_by_level, strict=True))
    )


def _smallest(
    cache: MaskCache, index: Index, masks: Masks, labels: NDArray[np.int64], n_blocks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find for each block a smallest set of other blocks whose masking makes the block decisive.

    Returns the sizes of these sets, -1 if there is none, and the sets as bits of an integer.
    """
    n = len(index)
    n_used = labels.max(axis=1) + 1
    same = np.full((n, 1 << n_blocks), -2, dtype=np.int8)  # -2: not queried yet
    same[:, 0] = 1
    sizes = np.full((n, n_blocks), -1, dtype=np.int64)
    witnesses = np.zeros((n, n_blocks), dtype=np.int64)
    is_open = np.arange(n_blocks) < n_used[:, None]
    codes = np.arange(1 << n_blocks)
    existing = codes < 1 << n_used[:, None]

    def learn(requested: NDArray[np.bool_]) -> None:
        task, code = np.nonzero(requested & (same == -2))
        if len(task):
            chosen = (code[:, None] >> np.maximum(labels[task], 0) & 1 == 1) & (labels[task] >= 0)
            same[task, code] = cache.keeps_decision(index[task], masks[task] | chosen)

    for size in range(n_blocks):
        of_size = codes[np.bitwise_count(codes) == size]
        requested = np.zeros(same.shape, dtype=np.bool_)
        for code in of_size:
            other_blocks = code >> np.arange(n_blocks) & 1 == 0
            requested[:, code] = existing[:, code] & (is_open & other_blocks).any(axis=1)
        learn(requested)
        requested = np.zeros(same.shape, dtype=np.bool_)
        for code in of_size:
            for block in range(n_blocks):
                if not code >> block & 1:
                    bigger = code | 1 << block
                    requested[:, bigger] |= (same[:, code] == 1) & is_open[:, block]
        learn(requested)
        for block in range(n_blocks):
            for code in of_size:
                if not code >> block & 1:
                    hit = (same[:, code] == 1) & (same[:, code | 1 << block] == 0)
                    hit &= is_open[:, block] & (sizes[:, block] < 0)
                    sizes[hit, block] = size
                    witnesses[hit, block] = code
        is_open &= sizes < 0
        if not is_open.any():
            break
    return sizes, witnesses


class Evidence(NamedTuple):
    """Witnesses and their sizes by row and feature, with proven bounds on the sizes.

    `min_sizes` is a lower bound on the number of other masked features, from all predictions; -1 if
    no witness is possible. `proven` marks entries whose size is proven to be smallest, or for which
    no witness exists.
    """

    sizes: Index
    witnesses: Masks
    min_sizes: Index
    proven: Masks


def fewest_masked(certificates: Certificates, n_rows: int, n_features: int) -> tuple[Index, Masks]:
    """Return the smallest certificate by row and feature, as its size (-1 if none) and mask.

    The size of a mask is its number of features that have certificates of their own. The other
    features do not affect the decision under any mask.
    """
    index, features, masks = certificates
    sizes = np.full((n_rows, n_features), -1, dtype=np.int64)
    witnesses = np.zeros((n_rows, n_features, n_features), dtype=np.bool_)
    deciding = np.zeros((n_rows, n_features), dtype=np.bool_)
    deciding[index, features] = True
    masks = masks & deciding[index]
    counts = masks.sum(axis=1)
    order = np.argsort(-counts, kind="stable")  # the smallest is written last
    sizes[index[order], features[order]] = counts[order]
    witnesses[index[order], features[order]] = masks[order]
    return sizes, witnesses


def evidence(cache: MaskCache, sizes: Index, witnesses: Masks) -> Evidence:
    """Improve witnesses by the implications of all predictions.

    Valid if every subset of a mask that keeps the decision keeps it too, as in strong Kleene logic.
    """
    n, n_features = sizes.shape
    same, change = cache.implied(n_features)
    codes = np.arange(1 << n_features)
    n_members = np.bitwise_count(codes).astype(np.int64)
    min_sizes = np.full(sizes.shape, -1, dtype=np.int64)
    proven = np.zeros(sizes.shape, dtype=np.bool_)
    sizes, witnesses = sizes.copy(), witnesses.copy()
    for feature in range(n_features):
        without = codes[codes >> feature & 1 == 0]
        without = without[np.argsort(n_members[without], kind="stable")]
        added = without | 1 << feature
        first = _first(~change[without] & ~same[added], n)
        min_sizes[:, feature] = np.where(first < 0, -1, n_members[without[first]])
        witness = _first(same[without] & change[added], n)
        shown_size = np.where(witness < 0, -1, n_members[without[witness]])
        proven[:, feature] = shown_size == min_sizes[:, feature]
        # A size is refuted if it is below the lower bound, or if no witness is possible.
        old = sizes[:, feature]
        refuted = (old >= 0) & ((min_sizes[:, feature] < 0) | (old < min_sizes[:, feature]))
        better = (witness >= 0) & ((old < 0) | refuted | (shown_size < old))
        sizes[refuted, feature] = -1
        sizes[better, feature] = shown_size[better]
        members = without[witness[better], None] >> np.arange(n_features) & 1 == 1
        witnesses[better, feature] = members
    return Evidence(sizes, witnesses, min_sizes, proven)


def _first(hits: Words, n: int) -> Index:
    """Return for each row the index of the first entry with its bit set; -1 for none."""
    first_entry = np.full(n, -1, dtype=np.int64)
    missing = np.full(hits.shape[1], ~np.uint64(0))
    step = 64
    for start in range(0, len(hits), step):
        block_bits = np.bitwise_or.reduce(hits[start : start + step], axis=0) & missing
        if not block_bits.any():
            continue
        bits = np.unpackbits(hits[start : start + step].view(np.uint8), axis=1, bitorder="little")
        rows = np.flatnonzero(
            np.unpackbits(block_bits.view(np.uint8), bitorder="little", count=n).view(np.bool_)
        )
        first_entry[rows] = start + bits[:, rows].argmax(axis=0)
        missing &= ~block_bits
        if not missing.any():
            break
    return first_entry
