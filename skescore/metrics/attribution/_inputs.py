"""The scores of each row for its own target, out of whatever an explainer handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skescore.metrics.attribution._containers import Explained, open_attributions
from skescore.metrics.attribution._maps import check_choice
from skescore.metrics.attribution._removal import (
    SparseRows,
    TableRows,
    Texts,
    find_fill,
    find_units,
    is_text,
    text_tokens,
)

__all__ = ["after_vectoriser", "open_inputs", "scores_for_targets"]

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


# --- what faithfulness is measured on: rows of a table or texts, together with their attr --------


def after_vectoriser(predict_proba: Any, X: Any, classes: Any) -> tuple[Any, Any, Any]:
    """A pipeline of texts as its last step, and the columns that this step sees."""
    method = getattr(predict_proba, "__name__", None)
    owner = getattr(predict_proba, "__self__", predict_proba)
    owner = getattr(owner, "best_estimator_", owner)
    if len(getattr(owner, "steps", ())) < 2:
        raise TypeError(
            "align='columns' needs a pipeline that turns texts into columns, got "
            f"{type(predict_proba).__name__}. Or pass the columns as X."
        )
    last = owner[-1]
    matrix = owner[:-1].transform(X)
    asked = getattr(last, method) if method in ("predict_proba", "decision_function") else last
    return asked, matrix, classes


def open_inputs(
    model: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any,
    reference: Any,
    groups: Any,
    features: str,
    tokenizer: Any,
    join: str | None,
    mask_token: str,
    loo_removal: str | None,
) -> tuple[Any, Any, Explained]:
    """The rows with things to remove, the same for leaving one out, and the attributions."""
    if isinstance(X, str):
        raise TypeError("X must be a list of texts, got a single text. Pass [text].")
    if is_text(X):
        if groups is not None or reference is not None:
            raise ValueError("groups and reference are for tables, but X holds texts.")
        kinds = ("delete", "mask")
        removal = "delete" if removal is None else removal
        check_choice("removal", removal, kinds)
        if loo_removal is not None:
            check_choice("loo_removal", loo_removal, kinds)
        texts = list(X)
        explained = open_attributions(attributions, len(texts))

        def build(kind: str) -> Texts:
            mask = mask_token if kind == "mask" else None
            if explained.pieces is not None:
                _check_pieces(explained, texts)
                glue = "" if isinstance(texts[0], str) else join
                return Texts(explained.pieces, join=glue, mask_token=mask)
            tokens = text_tokens(model, texts, tokenizer=tokenizer)
            return Texts.of_tokens(tokens, join=join, mask_token=mask)

        inputs = build(removal)
        other = loo_removal is not None and loo_removal != removal
        return inputs, build(str(loo_removal)) if other else inputs, explained
    if loo_removal is not None:
        raise ValueError("loo_removal is for texts, but X is a table.")
    rows = _table(X, removal, reference, groups, features)
    return rows, rows, open_attributions(attributions, len(rows))


def _table(X: Any, removal: Any, reference: Any, groups: Any, features: str) -> Any:
    changed_only = features == "changed"
    if sparse.issparse(X):
        if removal is not None and (np.ndim(removal) or isinstance(removal, str) or removal != 0):
            raise ValueError(
                f"removal of sparse rows must be 0, got {removal!r}. Use X.toarray() for others."
            )
        return SparseRows(X, find_units(groups, X), changed_only)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X.detach().cpu().numpy() if hasattr(X, "detach") else X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must be rows of features, a list of texts or of lists of tokens, got shape "
            f"{X.shape}. A single row is a list of one."
        )
    if not isinstance(X, pd.DataFrame) and X.dtype.kind not in "iufbO":
        raise TypeError(
            f"X must hold numbers, got {X.dtype}. Pass a DataFrame for columns of text, or a list "
            "of texts for documents."
        )
    removal = 0 if removal is None else removal
    fill = find_fill(removal, reference, X)
    return TableRows(X, fill, find_units(groups, X), changed_only)


def _check_pieces(explained: Explained, texts: list[Any]) -> None:
    """An explanation that brings its own tokens must be of the very texts."""
    assert explained.pieces is not None
    for number, (pieces, text) in enumerate(zip(explained.pieces, texts, strict=True)):
        if isinstance(text, str):
            same = _squeezed("".join(pieces.pieces)) == _squeezed(text)
        else:
            same = [piece.strip() for piece in pieces.pieces] == [str(token) for token in text]
        if not same:
            raise ValueError(
                f"attributions must be of the texts in X, but row {number} explains "
                f"{''.join(pieces.pieces)!r:.80}. Explain the same texts, or pass lists of tokens "
                "as X and plain arrays."
            )


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
