"""What answers about masks prove: the best responsibility that is shown, and the best possible.

It holds where a part of a mask that keeps the decision keeps it too, as in strong Kleene logic.
Sixty-four rows are looked at in a word. Sets of features are the bits of a number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._memo import Memo
from skescore.attribution._refinement import Certificates

__all__ = ["MOST_PROVEN", "Evidence", "counted", "evidence"]

#: Features of which all sets are looked at.
MOST_PROVEN = 16

Sizes = NDArray[np.int64]
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]


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
