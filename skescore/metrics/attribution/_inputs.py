"""The scores of each row for its own target, out of whatever an explainer handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.metrics.attribution._containers import Explained

__all__ = ["scores_for_targets"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def scores_for_targets(
    explained: Explained,
    sizes: Sequence[int],
    targets: Indices,
    n_columns: int,
    *,
    spoken_of: Indices | None,
    chosen: bool,
    X: Any = None,
) -> list[Floats]:
    """One vector of scores for each row.

    Parameters
    ----------
    explained : Explained
        The attributions.
    sizes : sequence of int
        How many scores each row must have.
    targets : array of shape (n_rows,)
        The column whose answers are measured.
    n_columns : int
        How many columns the black box answers.
    spoken_of : array of shape (n_rows,), optional
        The column that attributions of one output speak of.
    chosen : bool
        Whether the caller chose the targets.
    X : optional
        A frame, by whose names the scores are put in order.
    """
    if explained.weights is not None:
        return _lime_scores(explained, sizes, targets, n_columns)
    rows = explained.rows
    if explained.per_class:
        _check_classes(rows, n_columns)
        if spoken_of is not None:
            raise ValueError(
                "explains must be left out, as the attributions have a value for each class."
            )
        rows = [row[:, target] for row, target in zip(rows, targets, strict=True)]
    else:
        signs = _signs(explained, targets, n_columns, spoken_of, chosen)
        if not (signs == 1).all():
            rows = [sign * row for sign, row in zip(signs, rows, strict=True)]
    for number, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if len(row) != size:
            what = "tokens" if X is None else "features"
            raise ValueError(
                f"attributions must have one number for each feature or token, but row {number} "
                f"has {len(row)} for {size} {what}."
                + (" text_tokens(model, X) shows the tokens." if X is None else "")
            )
    order = _order(explained, X)
    if order is not None:
        rows = [row[order] for row in rows]
    if isinstance(X, pd.DataFrame) and explained.index is not None:
        rows = [rows[place] for place in _places(explained.index, X.index)]
    return list(rows)


def _check_classes(rows: Sequence[Floats], n_columns: int) -> None:
    widths = {row.shape[1] if row.ndim == 2 else 1 for row in rows}
    if widths != {n_columns}:
        raise ValueError(
            f"attributions have {sorted(widths)} values for each feature, but the model answers "
            f"{n_columns} columns. Their last axis must be the classes; sum over the axis of an "
            "embedding first."
        )


def _signs(
    explained: Explained,
    targets: Indices,
    n_columns: int,
    spoken_of: Indices | None,
    chosen: bool,
) -> Floats:
    """What turns attributions of one class into those of the target: minus for the other of two."""
    ones = np.ones(len(targets))
    if spoken_of is None:
        if explained.unclear and n_columns > 1 and not chosen:
            raise ValueError(
                "attributions are of a single output, and target is each row's predicted class. "
                "Say which class the explanation speaks of by explains=1, or explains='target' if "
                "each row explains its own predicted class, or choose the target."
            )
        return ones
    other = spoken_of != targets
    if other.any() and n_columns != 2:
        row = int(np.flatnonzero(other)[0])
        raise ValueError(
            f"explains must be the target, as attributions of one class of {n_columns} tell "
            f"nothing of another: row {row} explains column {int(spoken_of[row])}, its target is "
            f"{int(targets[row])}. Set target, or explain each row's predicted class."
        )
    return np.where(other, -1.0, 1.0)


def _lime_scores(
    explained: Explained, sizes: Sequence[int], targets: Indices, n_columns: int
) -> list[Floats]:
    assert explained.weights is not None
    found = []
    for number, (weights, size) in enumerate(zip(explained.weights, sizes, strict=True)):
        target, sign = int(targets[number]), 1.0
        if explained.of_numbers:
            target = 1
        elif target not in weights and n_columns == 2 and 1 - target in weights:
            # A line through one probability of two is the mirrored line through the other.
            target, sign = 1 - target, -1.0
        if target not in weights:
            raise ValueError(
                f"attributions of row {number} are of the classes {sorted(weights)}, but its "
                f"target is {target}. Let LIME explain it by labels=({target},), or set target."
            )
        scores = np.zeros(size)
        for unit, weight in weights[target]:
            if not 0 <= unit < size or not np.isfinite(weight):
                raise ValueError(
                    f"attributions of row {number} hold {weight!r} for feature {unit}, but X has "
                    f"{size}. Explain the very rows that are passed as X."
                )
            scores[unit] = sign * weight
        found.append(scores)
    return found


def _order(explained: Explained, X: Any) -> Indices | None:
    """Where X's columns are among those of the attributions, if both have names."""
    names = explained.names
    if names is None or not isinstance(X, pd.DataFrame):
        return None
    wanted = [str(column) for column in X.columns]
    if names == wanted:
        return None
    if len(set(names)) == len(names) and set(names) == set(wanted):
        return np.array([names.index(name) for name in wanted], dtype=np.intp)
    if explained.kind == "frame" and names != [str(i) for i in range(len(names))]:
        strange = [name for name in names if name not in wanted] or names
        raise ValueError(
            f"attributions must have the columns of X, but {strange[0]!r} is none of them. Name "
            "the columns alike, or pass an array."
        )
    return None


def _places(index: pd.Index, wanted: pd.Index) -> Any:
    if index.equals(wanted) or (
        isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(wanted)))
    ):
        return range(len(wanted))
    if index.is_unique and wanted.is_unique and set(index) == set(wanted):
        return index.get_indexer(wanted)
    raise ValueError(
        "attributions must have the index of X, or none, but its labels are others. Pass the rows "
        "of X that were explained, or an array."
    )
