"""Where to cut a numeric feature into bins: at quantiles, or where trees do."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

#: Trees tell so many groups of neighbouring values apart at first.
_MOST_GROUPS = 4096
#: Leaves of the tree on all features, and rows that it is grown on.
_JOINT_LEAVES, _JOINT_ROWS = 32, 20_000


def halfway(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers between neighbouring values: at least the lower, less than the higher."""
    # Halves first: the sum of numbers near the largest float would overflow.
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def quantile_boundaries(ordered: np.ndarray, n_bins: int, least: int) -> np.ndarray:
    """Positions in sorted values after which to cut, so that bins have about equally many rows.

    Cuts fall between different values only: each goes where the next value begins, or where the
    present one began if that is nearer to the quantile.
    """
    n_rows = len(ordered)
    cuts: list[int] = []
    begin = 0
    for k in range(1, n_bins):
        wanted = n_rows * k / n_bins
        value = ordered[min(int(wanted), n_rows - 1)]
        sides = [int(np.searchsorted(ordered, value, side)) for side in ("left", "right")]
        # Of equally near places the lower one.
        for cut in sorted(sides, key=lambda side: abs(side - wanted)):
            if cut - begin >= least and n_rows - cut >= least:
                cuts.append(cut - 1)
                begin = cut
                break
    return np.array(cuts, dtype=np.intp)


def tree_boundaries(
    ordered: np.ndarray, answers: np.ndarray, n_bins: int, least: int
) -> np.ndarray:
    """Positions in sorted values after which to cut, so that a tree's leaves become the bins.

    The answers go with the sorted values: floats, or class labels coded from 0.
    Of very many distinct values, groups of neighbours are told apart first; then each cut is moved
    to where it is best within the groups on either side.
    """
    ends = np.flatnonzero(ordered[:-1] < ordered[1:])  # the last places of distinct values
    coarse = ends
    if len(ends) > _MOST_GROUPS:
        wanted = np.arange(1, _MOST_GROUPS) * (len(ordered) / _MOST_GROUPS)
        coarse = np.unique(
            ends[np.searchsorted(ends, wanted.astype(np.intp)).clip(0, len(ends) - 1)]
        )
    chosen = _grow(coarse, answers, n_bins, least)
    if len(coarse) == len(ends):
        return coarse[chosen]
    edges = np.concatenate([[-1], coarse, [len(ordered) - 1]])
    fine = []
    for place in chosen:
        begin, end = edges[place] + 1, edges[place + 2]
        inner = ends[(ends >= begin) & (ends < end)]
        cut = _grow(inner - begin, answers[begin : end + 1], 2, 1)
        fine.append(inner[cut[0]] if len(cut) else coarse[place])
    bins = np.diff(fine, prepend=-1, append=len(ordered) - 1)
    return np.array(fine, dtype=np.intp) if (bins >= least).all() else coarse[chosen]


def _grow(ends: np.ndarray, answers: np.ndarray, n_leaves: int, least: int) -> np.ndarray:
    """Grow a tree on groups of rows; the indices of the `ends` between its leaves."""
    n_rows, n_groups = len(answers), len(ends) + 1
    sizes = np.diff(ends, prepend=-1, append=n_rows - 1)
    group = np.repeat(np.arange(n_groups), sizes)
    if answers.dtype.kind == "f":
        kind, weights = DecisionTreeRegressor, sizes.astype(float)
        values = np.bincount(group, weights=answers) / sizes  # what lies within counts nowhere
        group = np.arange(n_groups)
    else:
        n_labels = int(answers.max()) + 1
        counts = np.bincount(group * n_labels + answers, minlength=n_groups * n_labels)
        cells = np.flatnonzero(counts)
        kind, weights = DecisionTreeClassifier, counts[cells].astype(float)
        group, values = np.divmod(cells, n_labels)
    tree = kind(
        max_leaf_nodes=n_leaves,
        # Half a row less, lest rounding makes a bin that is just large enough too small.
        min_weight_fraction_leaf=(least - 0.5) / n_rows,
        random_state=0,  # a single feature leaves nothing for it to decide
    )
    grown = _fitted(tree, group[:, None], values, weights).tree_
    return np.unique(np.floor(grown.threshold[grown.feature >= 0]).astype(np.intp))


def _fitted(tree: Any, rows: np.ndarray, answers: np.ndarray, weights: Any = None) -> Any:
    """Fit a tree on whole numbers; checking them once more would take longer than the tree."""
    with sklearn.config_context(skip_parameter_validation=True):
        return tree.fit(rows.astype(np.float32), answers, sample_weight=weights, check_input=False)


def joint_cuts(rows: np.ndarray, answers: np.ndarray) -> list[np.ndarray]:
    """Cuts of one tree on all features; grown on evenly spaced rows if there are many."""
    if len(rows) > _JOINT_ROWS:
        places = np.arange(_JOINT_ROWS) * len(rows) // _JOINT_ROWS
        rows, answers = rows[places], answers[places]
    # Ranks, because trees round numbers to 32 bits.
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in rows.T])
    kind = DecisionTreeRegressor if answers.dtype.kind == "f" else DecisionTreeClassifier
    tree = _fitted(kind(max_leaf_nodes=_JOINT_LEAVES, random_state=0), ranks, answers)
    reached = tree.decision_path(ranks).tocsc()
    cuts: list[list[float]] = [[] for _ in rows.T]
    for node in np.flatnonzero(tree.tree_.feature >= 0):
        members = reached.indices[reached.indptr[node] : reached.indptr[node + 1]]
        j = tree.tree_.feature[node]
        left = ranks[members, j] <= tree.tree_.threshold[node]
        values = rows[members, j]
        cuts[j].append(float(halfway(values[left].max(), values[~left].min())))
    return [np.unique(found) for found in cuts]


def united(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All cuts of both, but only the first of those between the same two values."""
    cuts = np.concatenate([first, second])
    places = np.searchsorted(np.sort(values), cuts, side="right")
    return cuts[np.unique(places, return_index=True)[1]]
