"""One pass of B-ReX over many rows at once: blocks that matter are cut into smaller ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._memo import Memo

__all__ = ["Certificates", "cut", "mixed", "refine", "uniforms"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_TOLERANCE = 1e-12

Places = NDArray[np.int64]
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Certificates(NamedTuple):
    """Masks under which one more masked feature changes the decision.

    Parameters
    ----------
    places : ndarray of int, shape (n,)
        Numbers of the rows.
    features : ndarray of int, shape (n,)
        What decides.
    masks : ndarray of bool, shape (n, n_features)
        Under which masks.
    """

    places: Places
    features: Places
    masks: Masks


def mixed(words: Words) -> Words:
    """Scramble words so that neighbours have nothing in common (Steele's splitmix64).

    Parameters
    ----------
    words : ndarray of uint64
        What is to be scrambled.

    Returns
    -------
    ndarray of uint64
        As many words.
    """
    with np.errstate(over="ignore"):
        words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def uniforms(keys: Words, stream: int, n: int) -> Floats:
    """Draw numbers that depend on keys and on nothing else.

    What is drawn for a row must not depend on its neighbours, their order or the size of batches.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_keys,)
        What the numbers depend on.
    stream : int
        Purpose; other streams are independent.
    n : int
        Numbers per key.

    Returns
    -------
    ndarray of float, shape (n_keys, n)
        Between 0 and 1, both excluded.
    """
    with np.errstate(over="ignore"):
        own = mixed(keys + np.uint64(stream + 1) * _STEP)
        words = mixed(own[:, None] + np.arange(1, n + 1, dtype=np.uint64) * _STEP)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def cut(parts: Masks, weights: Floats, draws: Floats, n_blocks: int) -> NDArray[np.int64]:
    """Cut sets of features into blocks of about equal weight, in random order.

    Parameters
    ----------
    parts : ndarray of bool, shape (n, n_features)
        The sets.
    weights : ndarray of float, shape (n, n_features)
        How much responsibility is believed to sit where; uniform for a set that has none.
    draws : ndarray of float, shape (n, n_features)
        Random numbers between 0 and 1.
    n_blocks : int
        How many blocks, at most.

    Returns
    -------
    ndarray of int, shape (n, n_features)
        Number of the block of each feature; -1 outside the set.
    """
    n, n_features = parts.shape
    counts = parts.sum(axis=1)
    weights = np.where(parts, weights, 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    weights = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), parts / counts[:, None])
    # Smallest first of exponentials with these rates is a weighted order without replacement;
    # features without weight come last, in random order.
    rank = np.full(parts.shape, np.inf)
    np.divide(-np.log(draws), weights, out=rank, where=weights > 0)
    shares = -np.log(draws) / -np.log(2.0**-54)
    rank = np.where(parts & (weights == 0), np.finfo(float).max * (0.5 + shares / 2), rank)
    order = np.argsort(rank, axis=1, kind="stable")
    ordered = np.take_along_axis(weights, order, axis=1)
    labels = np.full(parts.shape, -1, dtype=np.int64)
    rows = np.arange(n)
    filled, current = np.zeros(n), np.zeros(n, dtype=np.int64)
    for position in range(n_features):
        inside = position < counts
        labels[rows[inside], order[inside, position]] = current[inside]
        filled += ordered[:, position]
        full = (filled >= 1 / n_blocks - _TOLERANCE) & (current < n_blocks - 1)
        current[full] += 1
        filled[full] = 0.0
    # One block alone would never get smaller.
    whole = np.flatnonzero((labels.max(axis=1) == 0) & (counts > 1))
    if len(whole):
        at = 1 + (draws[whole, 0] * (counts[whole] - 1)).astype(np.int64)
        places = np.empty((len(whole), n_features), dtype=np.int64)
        np.put_along_axis(places, order[whole], np.arange(n_features)[None, :], axis=1)
        labels[whole] = np.where(parts[whole], (places >= at[:, None]).astype(np.int64), -1)
    few = np.flatnonzero(counts <= n_blocks)
    if len(few):
        places = np.empty((len(few), n_features), dtype=np.int64)
        np.put_along_axis(places, order[few], np.arange(n_features)[None, :], axis=1)
        labels[few] = np.where(parts[few], places, -1)
    return labels


def refine(
    memo: Memo,
    places: Places,
    keys: Words,
    weights: Floats,
    *,
    stream: int,
    n_blocks: int,
    keep_witness: bool,
) -> tuple[Floats, Certificates]:
    """Run one pass, level by level, all rows and blocks of a level together.

    Parameters
    ----------
    memo : Memo
        Who is asked.
    places : ndarray of int, shape (n,)
        Numbers of the rows.
    keys : ndarray of uint64, shape (n,)
        What random numbers depend on.
    weights : ndarray of float, shape (n, n_features)
        Responsibilities so far, which guide the cuts.
    stream : int
        Number of the pass.
    n_blocks : int
        Blocks that a set is cut into, at most.
    keep_witness : bool
        Whether the masks that made the decision depend on a block stay on while it is refined.

    Returns
    -------
    values : ndarray of float, shape (n, n_features)
        Responsibilities of this pass.
    certificates : Certificates
        What was found of single features; nothing unless witnesses are kept.
    """
    n, n_features = weights.shape
    values = np.zeros((n, n_features))
    parts = np.ones((n, n_features), dtype=np.bool_)
    masks = np.zeros((n, n_features), dtype=np.bool_)
    row = np.arange(n)
    found: list[tuple[Places, Places, Masks]] = []
    depth = 0
    while len(row):
        draws = uniforms(keys, (stream << 16) + depth, n_features)[row]
        labels = cut(parts, weights[row], draws, n_blocks)
        sizes, witnesses = _smallest(memo, places[row], masks, labels, n_blocks)
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
        if keep_witness:
            code = witnesses[task, block][:, None]
            inner = inner | ((labels[task] >= 0) & (code >> np.maximum(labels[task], 0) & 1 == 1))
        single = members.sum(axis=1) == 1
        if keep_witness:
            found.append((places[row[task[single]]], members[single].argmax(axis=1), inner[single]))
        row, parts, masks = row[task[~single]], members[~single], inner[~single]
        depth += 1
    if not found:
        found.append((np.empty(0, np.int64), np.empty(0, np.int64), masks[:0]))
    return values, Certificates(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _smallest(
    memo: Memo, places: Places, masks: Masks, labels: NDArray[np.int64], n_blocks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each block the fewest others that make the decision depend on it: how many, and which.

    Sets of blocks are the bits of a number; -1 where there are none.
    """
    n = len(places)
    n_used = labels.max(axis=1) + 1
    same = np.full((n, 1 << n_blocks), -2, dtype=np.int8)  # -2: nobody has wanted to know yet
    same[:, 0] = 1
    sizes = np.full((n, n_blocks), -1, dtype=np.int64)
    witnesses = np.zeros((n, n_blocks), dtype=np.int64)
    open_ = np.arange(n_blocks) < n_used[:, None]
    codes = np.arange(1 << n_blocks)
    existing = codes < 1 << n_used[:, None]

    def learn(wanted: NDArray[np.bool_]) -> None:
        task, code = np.nonzero(wanted & (same == -2))
        if len(task):
            chosen = (code[:, None] >> np.maximum(labels[task], 0) & 1 == 1) & (labels[task] >= 0)
            same[task, code] = memo.same(places[task], masks[task] | chosen)

    for size in range(n_blocks):
        of_size = codes[np.bitwise_count(codes) == size]
        wanted = np.zeros(same.shape, dtype=np.bool_)
        for code in of_size:
            others = code >> np.arange(n_blocks) & 1 == 0
            wanted[:, code] = existing[:, code] & (open_ & others).any(axis=1)
        learn(wanted)
        wanted = np.zeros(same.shape, dtype=np.bool_)
        for code in of_size:
            for block in range(n_blocks):
                if not code >> block & 1:
                    bigger = code | 1 << block
                    wanted[:, bigger] |= (same[:, code] == 1) & open_[:, block]
        learn(wanted)
        for block in range(n_blocks):
            for code in of_size:
                if not code >> block & 1:
                    hit = (same[:, code] == 1) & (same[:, code | 1 << block] == 0)
                    hit &= open_[:, block] & (sizes[:, block] < 0)
                    sizes[hit, block] = size
                    witnesses[hit, block] = code
        open_ &= sizes < 0
        if not open_.any():
            break
    return sizes, witnesses
