"""One pass of B-ReX over many rows at once: blocks that matter are cut into smaller ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MOST_PROVEN",
    "Certificates",
    "Evidence",
    "Memo",
    "counted",
    "cut",
    "evidence",
    "mixed",
    "packed",
    "refine",
    "uniforms",
]


# --- what is known of masks: no model is asked twice, nor for what follows from its answe --------

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


# --- One pass of B-ReX over many rows at once: blocks that matter are cut into smaller on --------

_STEP = np.uint64(0x9E3779B97F4A7C15)
_TOLERANCE = 1e-12

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


# --- what answers about masks prove: the best responsibility that is shown, and the best  --------
# It holds where a part of a mask that keeps the decision keeps it too, as in strong Kleene logic.
# Sixty-four rows are looked at in a word. Sets of features are the bits of a number.

#: Features of which all sets are looked at.
MOST_PROVEN = 16

Sizes = NDArray[np.int64]


class Evidence(NamedTuple):
    """Witness sizes of features, and what answers prove of them.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_rows, n_features)
        Fewest masked others under which a feature was found to decide; -1 where it never did.
    witnesses : ndarray of bool, shape (n_rows, n_features, n_features)
        Those others.
    least : ndarray of int, shape (n_rows, n_features)
        Fewest with which the answers are compatible; -1 where there cannot be any.
    proven : ndarray of bool, shape (n_rows, n_features)
        Where the answers show that so many suffice, and exclude fewer; or exclude any number.
    """

    sizes: Sizes
    witnesses: Masks
    least: Sizes
    proven: Masks


def counted(certificates: Certificates, n_rows: int, n_features: int) -> tuple[Sizes, Masks]:
    """Count of each certificate the masked features that decide elsewhere, and keep the least.

    The others on a mask decide nothing under any mask, so that they are not needed there.

    Parameters
    ----------
    certificates : Certificates
        All that were found.
    n_rows, n_features : int
        Size of the problem.

    Returns
    -------
    sizes : ndarray of int, shape (n_rows, n_features)
        Fewest masked others; -1 without a certificate.
    witnesses : ndarray of bool, shape (n_rows, n_features, n_features)
        Those others.
    """
    places, features, masks = certificates
    sizes = np.full((n_rows, n_features), -1, dtype=np.int64)
    witnesses = np.zeros((n_rows, n_features, n_features), dtype=np.bool_)
    deciding = np.zeros((n_rows, n_features), dtype=np.bool_)
    deciding[places, features] = True
    masks = masks & deciding[places]
    counts = masks.sum(axis=1)
    order = np.argsort(-counts, kind="stable")  # what is written last stays
    sizes[places[order], features[order]] = counts[order]
    witnesses[places[order], features[order]] = masks[order]
    return sizes, witnesses


def evidence(memo: Memo, places: Sizes, sizes: Sizes, witnesses: Masks) -> Evidence:
    """Compare what was found with what all answers together imply.

    Parameters
    ----------
    memo : Memo
        The answers, with inference.
    places : ndarray of int, shape (n,)
        Rows to look at.
    sizes : ndarray of int, shape (n, n_features)
        Witness sizes as counted.
    witnesses : ndarray of bool, shape (n, n_features, n_features)
        The witnesses.

    Returns
    -------
    Evidence
        Of these rows, with sizes corrected where the answers show better, or refute.
    """
    n, n_features = sizes.shape
    same, change = tables(memo, places, n_features)
    codes = np.arange(1 << n_features)
    popular = np.bitwise_count(codes).astype(np.int64)
    least = np.full(sizes.shape, -1, dtype=np.int64)
    proven = np.zeros(sizes.shape, dtype=np.bool_)
    sizes, witnesses = sizes.copy(), witnesses.copy()
    for feature in range(n_features):
        without = codes[codes >> feature & 1 == 0]
        without = without[np.argsort(popular[without], kind="stable")]
        added = without | 1 << feature
        first = _first(~change[without] & ~same[added], n)
        least[:, feature] = np.where(first < 0, -1, popular[without[first]])
        shown = _first(same[without] & change[added], n)
        shown_size = np.where(shown < 0, -1, popular[without[shown]])
        proven[:, feature] = shown_size == least[:, feature]
        # A count below what is possible at all is refuted, as is one where nothing is possible.
        old = sizes[:, feature]
        refuted = (old >= 0) & ((least[:, feature] < 0) | (old < least[:, feature]))
        better = (shown >= 0) & ((old < 0) | refuted | (shown_size < old))
        sizes[refuted, feature] = -1
        sizes[better, feature] = shown_size[better]
        members = without[shown[better], None] >> np.arange(n_features) & 1 == 1
        witnesses[better, feature] = members
    return Evidence(sizes, witnesses, least, proven)


def tables(memo: Memo, places: Sizes, n_features: int) -> tuple[Words, Words]:
    """Of all sets, whether the answers imply that they keep, or change, the decision.

    Parameters
    ----------
    memo : Memo
        The answers.
    places : ndarray of int, shape (n,)
        Rows to look at.
    n_features : int
        Number of features.

    Returns
    -------
    tuple of ndarray of uint64, shape (2**n_features, words)
        Row r is bit r % 64 of word r // 64.
    """
    n = len(places)
    n_words = -(-n // 64)
    made = []
    for sets in (memo.same_sets, memo.change_sets):
        table = np.zeros((1 << n_features, n_words), dtype=np.uint64)
        own = sets[places, :, 0]
        row, slot = np.nonzero(own < np.uint64(1 << n_features))
        code = own[row, slot].astype(np.int64)
        bits = np.uint64(1) << (row % 64).astype(np.uint64)
        np.bitwise_or.at(table, (code, row // 64), bits)
        made.append(table)
    for bit in range(n_features):
        same, change = (table.reshape(-1, 2, 1 << bit, n_words) for table in made)
        same[:, 0] |= same[:, 1]
        change[:, 1] |= change[:, 0]
    return made[0], made[1]


def _first(hits: Words, n: int) -> Sizes:
    """Of each row the first entry with its bit set; -1 for none."""
    found = np.full(n, -1, dtype=np.int64)
    missing = np.full(hits.shape[1], ~np.uint64(0))
    step = 64
    for start in range(0, len(hits), step):
        some = np.bitwise_or.reduce(hits[start : start + step], axis=0) & missing
        if not some.any():
            continue
        bits = np.unpackbits(hits[start : start + step].view(np.uint8), axis=1, bitorder="little")
        rows = np.flatnonzero(
            np.unpackbits(some.view(np.uint8), bitorder="little", count=n).view(np.bool_)
        )
        found[rows] = start + bits[:, rows].argmax(axis=0)
        missing &= ~some
        if not missing.any():
            break
    return found
