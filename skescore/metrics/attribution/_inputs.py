"""Inputs of the metrics of attributions: rows or texts, and their scores for the targets.

Attributions can be arrays, DataFrames, tensors, or explanations of shap, LIME and this package.
Explanations are recognized by their attributes, so shap and LIME are not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skescore._validation import as_pandas, check_choice
from skescore.metrics.attribution._maps import numeric_array, off_graph
from skescore.metrics.attribution._removal import (
    Pieces,
    Removal,
    SparseRows,
    TableRows,
    Texts,
    find_fill,
    find_units,
    is_text,
    text_tokens,
)

__all__ = ["Explained", "open_attributions", "open_inputs", "scores_for_targets"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
_REMEDY = "Pass one row of numbers for each row of X."


@dataclass
class Explained:
    """Attributions of the rows, per class or for one output."""

    #: Scores of each row, of shape (n,) or (n, n_classes); empty for LIME.
    rows: Sequence[Floats] = ()
    #: LIME's weights of some units of each row, per explained class.
    weights: list[dict[int, list[tuple[int, float]]]] | None = None
    #: Whether the attributions have one output and do not state its class.
    is_ambiguous: bool = False
    #: Whether LIME explains a number instead of a class.
    explains_numbers: bool = False
    names: list[str] | None = None
    index: pd.Index | None = None
    pieces: list[Pieces] | None = None
    kind: str = field(default="array")

    def __len__(self) -> int:
        return len(self.rows) if self.weights is None else len(self.weights)

    def by_occurrence(self, row: int, scores: Floats) -> Floats:
        """Return one score per word in the order of the text, from the scores of the units."""
        if self.pieces is None:
            return scores
        units = self.pieces[row].units
        owners = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
        return scores[owners[np.argsort(np.concatenate([np.empty(0), *units]), kind="stable")]]

    @property
    def per_class(self) -> bool:
        """True if the attributions have a value for each class."""
        return self.weights is None and any(row.ndim == 2 for row in self.rows)


def open_attributions(attributions: Any, n_rows: int) -> Explained:
    """Read attributions of any supported type and check their number of rows."""
    explained = _open(attributions, n_rows)
    if len(explained) != n_rows:
        raise ValueError(
            f"attributions must have one row for each row of X, but there are {len(explained)} "
            f"for {n_rows}. Explain exactly the rows of X."
        )
    for number, row in enumerate(explained.rows):
        if not np.isfinite(row).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(row))[0])
            raise ValueError(
                f"attributions must be finite, got {float(row[at])!r} in row {number} at "
                f"{at[0] if len(at) == 1 else at}. Drop such rows, or use 0 where nothing is "
                "attributed."
            )
    return explained


def _open(attributions: Any, n_rows: int) -> Explained:
    if hasattr(attributions, "local_exp"):
        return _lime([attributions])
    attributions = as_pandas(attributions)
    if isinstance(attributions, pd.DataFrame):
        values = numeric_array("attributions", attributions.to_numpy())
        names = [str(name) for name in attributions.columns]
        return Explained(list(values), names=names, index=attributions.index, kind="frame")
    if hasattr(attributions, "base_values") and hasattr(attributions, "values"):
        return _shap(attributions, n_rows)
    if sparse.issparse(attributions):
        return Explained([row.toarray().ravel() for row in attributions.tocsr()])
    if hasattr(attributions, "values") and not callable(attributions.values):
        feature_names = getattr(attributions, "feature_names", None)
        inner = _open(attributions.values, n_rows)
        inner.names = None if feature_names is None else [str(name) for name in feature_names]
        return inner
    if isinstance(attributions, (list, tuple)):
        return _list(list(attributions), n_rows)
    if isinstance(attributions, (str, dict)) or attributions is None:
        raise TypeError(
            f"attributions must be an array, DataFrame, tensor or explanation of shap, LIME or "
            f"captum, got {type(attributions).__name__}. {_REMEDY}"
        )
    return Explained(_rows_of(off_graph(attributions), n_rows))


def _list(items: list[Any], n_rows: int) -> Explained:
    if items and all(hasattr(item, "local_exp") for item in items):
        return _lime(items)
    arrays = [numeric_array("attributions", item) for item in items]
    if arrays and all(array.ndim == 0 for array in arrays):
        return Explained(_rows_of(np.array(arrays), n_rows))
    if arrays and all(array.ndim == 2 for array in arrays):
        # Older explainers return one matrix per class.
        shapes = {array.shape for array in arrays}
        by_class = len(shapes) == 1 and arrays[0].shape[0] == n_rows
        if by_class and len(arrays) == n_rows:
            raise ValueError(
                f"attributions is a list of {n_rows} matrices of shape {arrays[0].shape}, which "
                "may be one per row or one per class. Stack them: np.stack(list, axis=-1) if they "
                "are classes, np.stack(list) if they are rows."
            )
        if by_class:
            return Explained(list(np.stack(arrays, axis=-1)))
    return Explained([_row(array) for array in arrays])


def _shap(explanation: Any, n_rows: int) -> Explained:
    values, data = explanation.values, getattr(explanation, "data", None)
    single = _is_single(values, data)
    rows = [numeric_array("attributions", values)] if single else _ragged(values)
    texts = [data] if single and data is not None else data
    pieces = None
    if texts is not None and len(texts) and _is_tokens(texts[0]):
        pieces = [Pieces.of([str(piece) for piece in text]) for text in texts]
    names = getattr(explanation, "feature_names", None)
    by_name = (
        [str(name) for name in names]
        if pieces is None and names is not None and not isinstance(names, str)
        else None
    )
    one_output = all(row.ndim == 1 for row in rows)
    return Explained(rows, is_ambiguous=one_output, names=by_name, pieces=pieces, kind="shap")


def _is_single(values: Any, data: Any) -> bool:
    """Return whether an explanation contains a single row, like ``explanation[0]``."""
    shape = (len(values),) if _is_object(values) else np.shape(values)
    if data is None or isinstance(data, (list, tuple)):
        return len(shape) == 1 and not _is_object(values)
    first = np.ravel(data)[:1]
    flat = np.ndim(data) == 1 and not (len(first) and isinstance(first[0], (list, np.ndarray)))
    return flat and not _is_object(values)


def _is_tokens(text: Any) -> bool:
    return not isinstance(text, str) and all(isinstance(piece, str) for piece in text)


def _lime(explanations: list[Any]) -> Explained:
    weights: list[dict[int, list[tuple[int, float]]]] = []
    pieces: list[Pieces] = []
    modes = {getattr(one, "mode", "classification") for one in explanations}
    if len(modes) > 1:
        raise ValueError("attributions mix LIME's explanations of classes and of regressions.")
    for one in explanations:
        weights.append(
            {
                int(label): [(int(unit), float(weight)) for unit, weight in pairs]
                for label, pairs in one.local_exp.items()
            }
        )
        indexed = getattr(getattr(one, "domain_mapper", None), "indexed_string", None)
        if indexed is not None:
            units = [
                np.atleast_1d(np.asarray(indexed.positions[unit], dtype=np.intp))
                for unit in range(indexed.num_words())
            ]
            pieces.append(Pieces([str(piece) for piece in indexed.as_list], units))
    return Explained(
        weights=weights,
        explains_numbers=modes == {"regression"},
        pieces=pieces or None,
        kind="LIME",
    )


def _row(array: Floats) -> Floats:
    if array.ndim not in (1, 2):
        raise ValueError(
            "Each row of attributions must have shape (n_features,) or (n_features, n_classes), "
            f"got {array.shape!r}. Sum over other axes first, such as an embedding."
        )
    return array


def _ragged(values: Any) -> list[Floats]:
    if _is_object(values) or isinstance(values, (list, tuple)):
        return [_row(numeric_array("attributions", row)) for row in values]
    array = numeric_array("attributions", values)
    return [_row(row) for row in array] if array.ndim > 1 else [array]


def _rows_of(values: Any, n_rows: int) -> Sequence[Floats]:
    if _is_object(values) and np.ndim(values) == 1:
        return _ragged(values)
    array = numeric_array("attributions", values)
    if array.ndim == 1 and n_rows == 1:
        array = array[np.newaxis]
    if array.ndim not in (2, 3):
        raise ValueError(
            "attributions must have shape (n_rows, n_features), or (n_rows, n_features, "
            f"n_classes), got {array.shape!r}. {_REMEDY}"
        )
    return list(array)


def _is_object(values: Any) -> bool:
    """Return whether an array holds rows of different lengths."""
    return getattr(values, "dtype", None) == np.dtype(object)


def scores_for_targets(
    explained: Explained,
    sizes: Sequence[int],
    targets: Indices,
    n_columns: int,
    *,
    explained_columns: Indices | None,
    is_target_chosen: bool,
    X: Any = None,
) -> list[Floats]:
    """Return the scores of each row for its target.

    Parameters
    ----------
    explained : Explained
        The attributions.
    sizes : sequence of int
        Number of scores of each row.
    targets : ndarray of int, shape (n_rows,)
        Columns of the predictions that are measured, one per row.
    n_columns : int
        Number of columns of the predictions.
    explained_columns : ndarray of int, optional
        Columns that attributions with one output explain, one per row.
    is_target_chosen : bool
        Whether the explained class is known.
    X : DataFrame, optional
        Table whose column names determine the order of the scores.

    Returns
    -------
    list of ndarray
        Scores of the units of each row.
    """
    if explained.weights is not None:
        return _lime_scores(explained, sizes, targets, n_columns)
    rows = explained.rows
    if isinstance(X, pd.DataFrame) and explained.index is not None:
        rows = [rows[i] for i in _row_indices(explained.index, X.index)]
    if explained.per_class:
        _check_classes(rows, n_columns)
        if explained_columns is not None:
            raise ValueError(
                f"explains must be None, because the attributions have one value per class; got "
                f"{explained_columns.tolist()}. Omit it."
            )
        rows = [row[:, target] for row, target in zip(rows, targets, strict=True)]
    else:
        signs = _signs(explained, targets, n_columns, explained_columns, is_target_chosen)
        if not (signs == 1).all():
            rows = [sign * row for sign, row in zip(signs, rows, strict=True)]
    for number, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if len(row) != size:
            unit_name = "tokens" if X is None else "features"
            raise ValueError(
                f"attributions must have one number for each feature or token, but row {number} "
                f"has {len(row)} for {size} {unit_name}."
                + (" text_tokens(model, X) shows the tokens." if X is None else "")
            )
    order = _order(explained, X)
    if order is not None:
        rows = [row[order] for row in rows]
    return list(rows)


def _check_classes(rows: Sequence[Floats], n_columns: int) -> None:
    widths = {row.shape[1] if row.ndim == 2 else 1 for row in rows}
    if widths != {n_columns}:
        raise ValueError(
            f"attributions have {sorted(widths)} values for each feature, but the model predicts "
            f"{n_columns} columns. The last axis must be the classes; sum over the axis of an "
            "embedding first."
        )


def _signs(
    explained: Explained,
    targets: Indices,
    n_columns: int,
    explained_columns: Indices | None,
    is_target_chosen: bool,
) -> Floats:
    """Return -1 for each row whose attributions explain the other of two classes, else 1."""
    ones = np.ones(len(targets))
    if explained_columns is None:
        if explained.is_ambiguous and n_columns > 1 and not is_target_chosen:
            raise ValueError(
                "attributions have one value per feature, so it is unknown which class they "
                "explain; the default target is the predicted class of each row. Pass "
                "target=Target(explains=1) if they explain column 1, "
                "target=Target(explains='target') if each row explains its predicted class, or "
                "the explained class as target."
            )
        return ones
    other = explained_columns != targets
    if other.any() and n_columns != 2:
        row = int(np.flatnonzero(other)[0])
        raise ValueError(
            f"explains must be the target if there are {n_columns} classes, because attributions "
            f"of one class do not explain another class. In row {row}, they explain column "
            f"{int(explained_columns[row])}, but the target is column {int(targets[row])}. Set "
            "target to the explained class, or pass attributions of the predicted classes."
        )
    return np.where(other, -1.0, 1.0)


def _lime_scores(
    explained: Explained, sizes: Sequence[int], targets: Indices, n_columns: int
) -> list[Floats]:
    assert explained.weights is not None
    row_scores = []
    for number, (weights, size) in enumerate(zip(explained.weights, sizes, strict=True)):
        target, sign = int(targets[number]), 1.0
        if explained.explains_numbers:
            target = 1
        elif target not in weights and n_columns == 2 and 1 - target in weights:
            # The linear model of the other class has the opposite weights.
            target, sign = 1 - target, -1.0
        if target not in weights:
            raise ValueError(
                f"attributions of row {number} explain the classes {sorted(weights)}, but its "
                f"target is {target}. Pass labels=({target},) to LIME, or set target."
            )
        scores = np.zeros(size)
        for unit, weight in weights[target]:
            if not 0 <= unit < size or not np.isfinite(weight):
                raise ValueError(
                    f"attributions of row {number} must be finite and for one of the {size} "
                    f"features of X, numbered from 0, got {weight!r} for feature {unit}. Explain "
                    "exactly the rows of X."
                )
            scores[unit] = sign * weight
        row_scores.append(scores)
    return row_scores


def _order(explained: Explained, X: Any) -> Indices | None:
    """Return the position of each column of X in the attributions; None if the order is equal."""
    names = explained.names
    if names is None or not isinstance(X, pd.DataFrame):
        return None
    column_names = [str(column) for column in X.columns]
    if names == column_names:
        return None
    if len(set(names)) == len(names) and set(names) == set(column_names):
        return np.array([names.index(name) for name in column_names], dtype=np.intp)
    if explained.kind == "frame" and names != [str(i) for i in range(len(names))]:
        unknown = [name for name in names if name not in column_names] or names
        raise ValueError(
            f"attributions must have the columns of X, but {unknown[0]!r} is not one of them. "
            "Rename the columns, or pass an array."
        )
    return None


def _row_indices(index: pd.Index, target_index: pd.Index) -> Any:
    if index.equals(target_index) or (
        isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(target_index)))
    ):
        return range(len(target_index))
    if index.is_unique and target_index.is_unique and set(index) == set(target_index):
        return index.get_indexer(target_index)
    raise ValueError(
        "attributions must have the index of X, or the default index. Pass the explained rows as "
        "X, or an array."
    )


class Inputs(NamedTuple):
    """Rows with their removal and attributions.

    Parameters
    ----------
    model : callable or estimator
        The model, or the last step of a pipeline.
    rows : TableRows, SparseRows or Texts
        The rows.
    loo_rows : TableRows, SparseRows or Texts
        The rows for leave-one-out effects; texts may use another removal for them.
    explained : Explained
        The attributions.
    table : Any
        Table whose column names determine the order of the scores; None for texts.
    """

    model: Any
    rows: Any
    loo_rows: Any
    explained: Explained
    table: Any

    def scores(
        self,
        targets: Indices,
        n_columns: int,
        *,
        explained_columns: Indices | None,
        is_target_chosen: bool,
    ) -> list[Floats]:
        """Return the scores of each row for its target; see :func:`scores_for_targets`."""
        return scores_for_targets(
            self.explained,
            self.rows.sizes(),
            targets,
            n_columns,
            explained_columns=explained_columns,
            is_target_chosen=is_target_chosen,
            X=self.table,
        )


def open_inputs(model: Any, X: Any, attributions: Any, removal: Removal) -> Inputs:
    """Check rows and attributions, and prepare the removal."""
    if isinstance(X, str):
        raise TypeError("X must be a list of texts, got a single text. Pass [text].")
    if removal.align == "columns":
        if not is_text(X):
            raise ValueError("align='columns' is for texts, but X is a table. Omit it.")
        model, X = _last_step(model, X)
        removal = replace(removal, features="changed")
    if is_text(X):
        return _open_texts(model, list(X), attributions, removal)
    if removal.leave_one_out is not None:
        raise ValueError("leave_one_out is for texts, but X is a table.")
    X = as_pandas(X)
    rows = _table(X, removal)
    return Inputs(model, rows, rows, open_attributions(attributions, len(rows)), X)


def _last_step(predict_proba: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a text pipeline, and the columns that it receives."""
    method = getattr(predict_proba, "__name__", None)
    owner = getattr(predict_proba, "__self__", predict_proba)
    owner = getattr(owner, "best_estimator_", owner)
    if len(getattr(owner, "steps", ())) < 2:
        raise TypeError(
            "align='columns' needs a pipeline that turns texts into columns, got "
            f"{type(predict_proba).__name__}. Alternatively, pass the columns as X."
        )
    last = owner[-1]
    queried = getattr(last, method) if method in ("predict_proba", "decision_function") else last
    return queried, owner[:-1].transform(X)


def _open_texts(model: Any, texts: list[Any], attributions: Any, removal: Removal) -> Inputs:
    if removal.groups is not None or removal.reference is not None:
        raise ValueError("groups and reference apply only to tables, but X holds texts.")
    kinds = ("delete", "mask")
    how = "delete" if removal.value is None else removal.value
    check_choice("removal", how, kinds)
    single = how if removal.leave_one_out is None else removal.leave_one_out
    check_choice("leave_one_out", single, kinds)
    explained = open_attributions(attributions, len(texts))
    if explained.pieces is not None:
        _check_pieces(explained, texts)
        pieces, join = explained.pieces, "" if isinstance(texts[0], str) else removal.join
    else:
        tokens = text_tokens(model, texts, tokenizer=removal.tokenizer)
        pieces, join = [Pieces.of(row) for row in tokens], removal.join
    removed_texts, loo_texts = (
        Texts(pieces, join=join, mask_token=removal.mask_token if kind == "mask" else None)
        for kind in (how, single)
    )
    return Inputs(
        model, removed_texts, removed_texts if how == single else loo_texts, explained, None
    )


def _table(X: Any, removal: Removal) -> Any:
    changed_only = removal.features == "changed"
    value = removal.value
    if sparse.issparse(X):
        if value is not None and (np.ndim(value) or isinstance(value, str) or value != 0):
            raise ValueError(
                f"removal of sparse rows must be 0, got {value!r}. Use X.toarray() otherwise."
            )
        return SparseRows(X, find_units(removal.groups, X), changed_only)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(off_graph(X))
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must be a table of features, a list of texts or of lists of tokens, got shape "
            f"{X.shape}. Pass a single row as a list of one row."
        )
    if not isinstance(X, pd.DataFrame) and X.dtype.kind not in "iufbO":
        raise TypeError(
            f"X must hold numbers, got {X.dtype}. Pass a DataFrame for columns of text, or a list "
            "of texts for documents."
        )
    fill = find_fill(0 if value is None else value, removal.reference, X)
    return TableRows(X, fill, find_units(removal.groups, X), changed_only)


def _check_pieces(explained: Explained, texts: list[Any]) -> None:
    """Raise an error unless an explanation with its own tokens explains these texts."""
    assert explained.pieces is not None
    for number, (pieces, text) in enumerate(zip(explained.pieces, texts, strict=True)):
        if isinstance(text, str):
            same = _squeezed("".join(pieces.pieces)) == _squeezed(text)
        else:
            same = [piece.strip() for piece in pieces.pieces] == [str(token) for token in text]
        if not same:
            raise ValueError(
                f"attributions must explain the texts in X, but row {number} explains "
                f"{''.join(pieces.pieces)!r:.80}. Explain the same texts, or pass lists of tokens "
                "as X and arrays as attributions."
            )


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
