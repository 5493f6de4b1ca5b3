"""Attributions as their makers hand them over: arrays, frames, tensors, shap, LIME, our own.

Nothing of theirs is imported: an explanation is known by the attributes that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Explained", "Pieces", "dense_maps", "open_attributions"]

Floats = NDArray[np.float64]
_REMEDY = "Pass one row of numbers for each row of X."


class Pieces(NamedTuple):
    """A text as its explainer cut it: joined without blanks, the pieces are the text again."""

    pieces: list[str]
    #: Which pieces go together as one unit; whatever is in none is never removed.
    units: list[NDArray[np.intp]]


@dataclass
class Explained:
    """Attributions, not yet cut down to the target of each row."""

    #: Rows of numbers of shape (n,) or, per class, (n, n_classes); LIME has none of these.
    rows: Sequence[Floats] = ()
    #: What LIME knows of each row: weights of some units by the class that they speak of.
    weights: list[dict[int, list[tuple[int, float]]]] | None = None
    #: One output, and nobody says of which class it speaks.
    unclear: bool = False
    #: LIME's explanation of a number rather than of a class.
    of_numbers: bool = False
    names: list[str] | None = None
    index: pd.Index | None = None
    pieces: list[Pieces] | None = None
    kind: str = field(default="array")

    def __len__(self) -> int:
        return len(self.rows) if self.weights is None else len(self.weights)

    def by_occurrence(self, row: int, scores: Floats) -> Floats:
        """The scores of a text's units as scores of its words, in the order of the text."""
        if self.pieces is None:
            return scores
        units = self.pieces[row].units
        owners = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
        return scores[owners[np.argsort(np.concatenate([np.empty(0), *units]), kind="stable")]]

    @property
    def per_class(self) -> bool:
        return self.weights is None and any(row.ndim == 2 for row in self.rows)


def open_attributions(attributions: Any, n_rows: int) -> Explained:
    """Read whatever holds attributions, for so many rows."""
    explained = _open(attributions, n_rows)
    if len(explained) != n_rows:
        raise ValueError(
            f"attributions must have one row for each row of X, but there are {len(explained)} "
            f"for {n_rows}. Explain the very rows that are passed as X."
        )
    for number, row in enumerate(explained.rows):
        if not np.isfinite(row).all():
            at = tuple(int(i) for i in np.argwhere(~np.isfinite(row))[0])
            raise ValueError(
                f"attributions must be finite, got {float(row[at])!r} in row {number} at "
                f"{at[0] if len(at) == 1 else at}. Leave such rows out, or put 0 where nothing is "
                "attributed."
            )
    return explained


def dense_maps(name: str, maps: Any, *, remedy: str) -> Floats:
    """One matrix of maps, for measures that need no model; a single map is one row."""
    values = maps
    if hasattr(maps, "values") and not callable(maps.values):
        values = maps.values
    if sparse.issparse(values):
        values = values.toarray()
    array = _numbers(name, values)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must be one map or rows of maps with at least one feature, got shape "
            f"{array.shape!r}. {remedy}"
        )
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, got {float(array[at])!r} at position "
            f"{at[0] if len(at) == 1 else at}. {remedy}"
        )
    return array


# --- who made it ---------------------------------------------------------------------------------


def _open(attributions: Any, n_rows: int) -> Explained:
    if hasattr(attributions, "local_exp"):
        return _lime([attributions])
    if isinstance(attributions, pd.DataFrame):
        values = _numbers("attributions", attributions.to_numpy())
        names = [str(name) for name in attributions.columns]
        return Explained(list(values), names=names, index=attributions.index, kind="frame")
    if hasattr(attributions, "base_values") and hasattr(attributions, "values"):
        return _shap(attributions, n_rows)
    if sparse.issparse(attributions):
        return Explained([row.toarray().ravel() for row in attributions.tocsr()])
    if hasattr(attributions, "values") and not callable(attributions.values):
        given = getattr(attributions, "feature_names", None)
        inner = _open(attributions.values, n_rows)
        inner.names = None if given is None else [str(name) for name in given]
        return inner
    if isinstance(attributions, (list, tuple)):
        return _list(list(attributions), n_rows)
    if isinstance(attributions, (str, dict)) or attributions is None:
        raise TypeError(
            f"attributions must be an array, a frame, a tensor or an explanation of shap, LIME or "
            f"captum, got {type(attributions).__name__}. {_REMEDY}"
        )
    return Explained(_rows_of(_to_array(attributions), n_rows))


def _list(items: list[Any], n_rows: int) -> Explained:
    if items and all(hasattr(item, "local_exp") for item in items):
        return _lime(items)
    arrays = [_numbers("attributions", item) for item in items]
    if arrays and all(array.ndim == 0 for array in arrays):
        return Explained(_rows_of(np.array(arrays), n_rows))
    if arrays and all(array.ndim == 2 for array in arrays):
        # Older explainers hand over one matrix for each class.
        shapes = {array.shape for array in arrays}
        by_class = len(shapes) == 1 and arrays[0].shape[0] == n_rows
        if by_class and len(arrays) == n_rows:
            raise ValueError(
                f"attributions is a list of {n_rows} matrices of shape {arrays[0].shape}, which "
                "may be one for each row or one for each class. Stack them: np.stack(list, "
                "axis=-1) if each is a class, np.stack(list) if each is a row."
            )
        if by_class:
            return Explained(list(np.stack(arrays, axis=-1)))
    return Explained([_row(array) for array in arrays])


def _shap(explanation: Any, n_rows: int) -> Explained:
    values, data = explanation.values, getattr(explanation, "data", None)
    single = _is_single(values, data)
    rows = [_numbers("attributions", values)] if single else _ragged(values)
    texts = [data] if single and data is not None else data
    pieces = None
    if texts is not None and len(texts) and _is_tokens(texts[0]):
        cut = [[str(piece) for piece in text] for text in texts]
        pieces = [
            Pieces(text, [np.array([i], dtype=np.intp) for i in range(len(text))]) for text in cut
        ]
    names = getattr(explanation, "feature_names", None)
    by_name = (
        [str(name) for name in names]
        if pieces is None and names is not None and not isinstance(names, str)
        else None
    )
    one_output = all(row.ndim == 1 for row in rows)
    return Explained(rows, unclear=one_output, names=by_name, pieces=pieces, kind="shap")


def _is_single(values: Any, data: Any) -> bool:
    """Whether an explanation was cut down to one row, ``explanation[0]``."""
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
        raise ValueError("attributions mix LIME's explanations of classes and of numbers.")
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
        weights=weights, of_numbers=modes == {"regression"}, pieces=pieces or None, kind="LIME"
    )


# --- numbers -------------------------------------------------------------------------------------


def _is_object(values: Any) -> bool:
    """Whether an array holds rows of different lengths."""
    return getattr(values, "dtype", None) == np.dtype(object)


def _to_array(values: Any) -> Any:
    """A tensor leaves the graph and the device that it lives on first."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    return values


def _numbers(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(_to_array(values))
    except ValueError:
        raise ValueError(
            f"{name} must be rows of equal length here, got {values!r:.200}. {_REMEDY}"
        ) from None
    if array.dtype == object and array.size:
        try:
            array = np.array(array.tolist())
        except ValueError:
            array = np.array(["ragged"])
    if array.dtype.kind not in "iufb":
        raise TypeError(
            f"{name} must hold numbers, got {values!r:.200} of type {type(values).__name__}. "
            "Convert it to floats first."
        )
    return array.astype(np.float64)


def _row(array: Floats) -> Floats:
    if array.ndim not in (1, 2):
        raise ValueError(
            "Each row of attributions must be numbers of shape (n_features,), or (n_features, "
            f"n_classes), got shape {array.shape!r}. Sum over other axes first, such as those of "
            "an embedding."
        )
    return array


def _ragged(values: Any) -> list[Floats]:
    if _is_object(values) or isinstance(values, (list, tuple)):
        return [_row(_numbers("attributions", row)) for row in values]
    array = _numbers("attributions", values)
    return [_row(row) for row in array] if array.ndim > 1 else [array]


def _rows_of(values: Any, n_rows: int) -> Sequence[Floats]:
    if _is_object(values) and np.ndim(values) == 1:
        return _ragged(values)
    array = _numbers("attributions", values)
    if array.ndim == 1 and n_rows == 1:
        array = array[np.newaxis]
    if array.ndim not in (2, 3):
        raise ValueError(
            "attributions must have shape (n_rows, n_features), or (n_rows, n_features, "
            f"n_classes), got {array.shape!r}. {_REMEDY}"
        )
    return list(array)
