"""Removal of features from the rows of a table, or of tokens from texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skescore._text import short_repr
from skescore._validation import as_pandas, check_choice

__all__ = [
    "Pieces",
    "Removal",
    "SparseRows",
    "TableRows",
    "Texts",
    "find_fill",
    "find_units",
    "is_text",
    "rows_like",
    "text_tokens",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
STATISTICS = ("mean", "median", "mode")


@dataclass(frozen=True, eq=False, repr=False)
class Removal:
    """Removal of features from rows, or of tokens from texts.

    Use it as `removal` of :func:`faithfulness` and :func:`attribution_infidelity` to set more than
    the replacement.

    Parameters
    ----------
    value : float, array-like, DataFrame or str, default=None
        Replacement of a removed feature of a table: a number, one per feature, ``"mean"``,
        ``"median"`` or ``"mode"`` of `reference`, or rows of a background sample (also
        ``"background"`` with `reference`), over which predictions are averaged. For texts,
        ``"delete"`` or ``"mask"``. By default 0 and ``"delete"``. Sparse rows allow only 0.
    reference : array-like or DataFrame, default=None
        The rows from which named replacements are computed.
    groups : list of lists, default=None
        Columns that are removed together, by index or name, such as the columns of a one-hot
        encoded feature. Their scores are summed.
    features : {"all", "changed"}, default="all"
        Features of a table that are measured: all of them, or only the features of each row whose
        values the removal changes, which suits bags of words.
    align : {"tokens", "columns"}, default="tokens"
        Units of attributions of texts: tokens, or the input columns of the last step of a pipeline,
        which are set to 0 to remove them.
    tokenizer : callable, default=None
        Function that splits a text into tokens; see :func:`text_tokens`.
    join : str or None, default=" "
        Separator between the tokens passed to the model; None passes lists of tokens.
    mask_token : str, default="[MASK]"
        Replacement of a masked token.
    leave_one_out : {"delete", "mask"}, default=None
        How single tokens are removed for leave-one-out effects; by default as by `value`.

    Examples
    --------
    >>> from skescore.metrics.attribution import Removal, faithfulness
    >>> X = [[1.0, 2.0], [3.0, 4.0]]
    >>> measures = faithfulness(lambda X: X[:, 0], X, X, removal=Removal("mean", reference=X))
    >>> measures["aopc_compr"].tolist()
    [-0.5, 0.5]
    """

    value: Any = None
    reference: Any = None
    groups: Any = None
    features: str = "all"
    align: str = "tokens"
    tokenizer: Callable[[str], Sequence[str]] | None = None
    join: str | None = " "
    mask_token: str = "[MASK]"
    leave_one_out: str | None = None

    def __post_init__(self) -> None:
        check_choice("features", self.features, ("all", "changed"))
        check_choice("align", self.align, ("tokens", "columns"))

    __repr__ = short_repr

    @classmethod
    def of(cls, removal: Any) -> Removal:
        """Return a removal, or create one from a value."""
        return removal if isinstance(removal, cls) else cls(removal)


class _UnitRows:
    """Base of dense and sparse tables, whose columns are grouped into units."""

    copies = 1

    def __init__(self, unit_of: Indices, changed_only: bool) -> None:
        self.unit_of = unit_of
        self.n_units = int(unit_of.max()) + 1
        self.changed_only = changed_only

    def __len__(self) -> int:
        raise NotImplementedError

    def columns(self, row: int) -> Indices:
        """Return the columns of a row that removal changes."""
        raise NotImplementedError

    def sizes(self) -> list[int]:
        return [len(self.unit_of)] * len(self)

    def _active(self, row: int) -> Indices:
        if self.changed_only:
            return np.unique(self.unit_of[self.columns(row)])
        return np.arange(self.n_units)

    def unit_scores(self, row: int, scores: Floats) -> Floats:
        pooled = np.zeros(self.n_units)
        np.add.at(pooled, self.unit_of, scores)
        return pooled[self._active(row)]

    def parts(self, row: int, removed: Bools) -> Bools:
        """Convert masks of units to masks of the columns that removal changes."""
        return removed[:, np.searchsorted(self._active(row), self.unit_of[self.columns(row)])]

    def leave_one_out(self, row: int) -> tuple[Indices, Bools]:
        """Return the units that removal changes, and the mask of the columns of each."""
        owners = self.unit_of[self.columns(row)]
        units = np.unique(owners)
        indices = np.searchsorted(self._active(row), units)
        return indices, owners[np.newaxis, :] == units[:, np.newaxis]


class TableRows(_UnitRows):
    """Rows of an array or DataFrame, whose removed features are replaced by background rows."""

    def __init__(self, X: Any, fill: Any, unit_of: Indices, changed_only: bool) -> None:
        super().__init__(unit_of, changed_only)
        self.X, self.fill = X, fill
        self.copies = len(fill)
        if isinstance(X, pd.DataFrame):
            pairs = (
                (X.iloc[:, j].to_numpy(), fill.iloc[:, j].to_numpy()) for j in range(X.shape[1])
            )
        else:
            pairs = ((X[:, j], fill[:, j]) for j in range(X.shape[1]))
        # Compare column by column, because all columns at once would need too much memory.
        self._changed = np.column_stack([_differs(*pair) for pair in pairs])

    def __len__(self) -> int:
        return len(self.X)

    def columns(self, row: int) -> Indices:
        return np.flatnonzero(self._changed[row])

    def originals(self, rows: Sequence[int]) -> Any:
        return self.X.iloc[list(rows)] if isinstance(self.X, pd.DataFrame) else self.X[list(rows)]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> Any:
        """Return the rows of each query, once per background row."""
        rows = np.concatenate([np.full(len(masks), row) for row, masks in blocks])
        marks = np.zeros((len(rows), self.X.shape[1]), dtype=bool)
        start = 0
        for row, masks in blocks:
            marks[start : start + len(masks), self.columns(row)] = masks
            start += len(masks)
        rows, marks = np.repeat(rows, self.copies), np.repeat(marks, self.copies, axis=0)
        fill_rows = np.tile(np.arange(self.copies), len(rows) // self.copies)
        if isinstance(self.X, pd.DataFrame):
            return self._frame(rows, marks, fill_rows)
        return np.where(marks, self.fill[fill_rows], self.X[rows])

    def _frame(self, rows: Indices, marks: Bools, fill_rows: Indices) -> pd.DataFrame:
        columns = {}
        for j in range(self.X.shape[1]):
            column, fill_column = self.X.iloc[:, j], self.fill.iloc[:, j]
            if _is_plain(column) and _is_plain(fill_column):
                columns[j] = pd.Series(
                    np.where(
                        marks[:, j], fill_column.to_numpy()[fill_rows], column.to_numpy()[rows]
                    )
                )
            else:
                values = column.to_numpy(dtype=object)[rows]
                values[marks[:, j]] = fill_column.to_numpy(dtype=object)[fill_rows][marks[:, j]]
                columns[j] = pd.Series(values, dtype=column.dtype)
        frame = pd.DataFrame(columns)
        frame.columns = self.X.columns
        return frame


class SparseRows(_UnitRows):
    """Rows of a sparse matrix, from which removed entries are deleted."""

    def __init__(self, X: Any, unit_of: Indices, changed_only: bool) -> None:
        super().__init__(unit_of, changed_only)
        self.X = X.tocsr().copy()
        self.X.sum_duplicates()
        self.X.eliminate_zeros()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def columns(self, row: int) -> Indices:
        return self.X.indices[self.X.indptr[row] : self.X.indptr[row + 1]]

    def originals(self, rows: Sequence[int]) -> Any:
        return self.X[list(rows)]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> Any:
        data, indices, lengths = [], [], []
        for row, masks in blocks:
            stored_masks = ~masks
            begin, end = self.X.indptr[row], self.X.indptr[row + 1]
            data.append(np.broadcast_to(self.X.data[begin:end], stored_masks.shape)[stored_masks])
            indices.append(
                np.broadcast_to(self.X.indices[begin:end], stored_masks.shape)[stored_masks]
            )
            lengths.append(stored_masks.sum(axis=1))
        pointers = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return type(self.X)(
            (np.concatenate(data), np.concatenate(indices), pointers),
            shape=(len(pointers) - 1, self.X.shape[1]),
        )


def _differs(column: Any, fill: Any) -> Bools:
    """Return for each entry of a column whether it differs from its replacements."""
    distinct = pd.unique(pd.Series(fill))
    if len(distinct) > 1:  # No entry is equal to two different values.
        return np.ones(len(column), dtype=bool)
    missing = pd.isna(column)
    if pd.isna(distinct[0]):
        return ~missing
    return missing | ~np.asarray(column == distinct[0], dtype=bool)


def _is_plain(column: pd.Series) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"


def find_fill(removal: Any, reference: Any, X: Any) -> Any:
    """Return the background rows as an array or DataFrame of shape (n_background, n_features).

    A number, one number per feature, or a statistic yields a single background row.
    """
    frame = isinstance(X, pd.DataFrame)
    if isinstance(removal, str):
        check_choice("removal", removal, (*STATISTICS, "background"))
        if reference is None:
            raise ValueError(
                f"reference must be given with removal={removal!r}: the rows of the statistic, "
                f"such as the training rows. Pass Removal({removal!r}, reference=X_train)."
            )
        sample = rows_like(reference, X, "reference")
        fill = sample if removal == "background" else _statistic(sample, removal)
    elif np.ndim(removal) == 0:
        if isinstance(removal, bool) or not isinstance(removal, (int, float, np.number)):
            raise TypeError(
                f"removal must be a number, an array or the name of a statistic, got {removal!r}."
            )
        row = np.full((1, X.shape[1]), removal)
        fill = pd.DataFrame(row, columns=X.columns) if frame else row
    else:
        fill = rows_like(removal, X, "removal")
    if not len(fill):
        raise ValueError("removal must have at least one background row, got none.")
    if frame:
        return _fitting(fill, X)
    return np.asarray(fill) if X.dtype == object else _as_numbers(fill, X.dtype, "any")


def rows_like(value: Any, X: Any, name: str) -> Any:
    """Return rows with the columns of X, in their order."""
    n_features, value = X.shape[1], as_pandas(value)
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, pd.Series):
        value = value.to_frame().T.infer_objects()
    if isinstance(value, pd.DataFrame) and isinstance(X, pd.DataFrame):
        missing = [column for column in X.columns if column not in value.columns]
        if missing:
            raise ValueError(f"{name} must have the columns of X, but {missing[0]!r} is missing.")
        return value.loc[:, X.columns]
    array = np.atleast_2d(np.asarray(value))
    if array.ndim != 2 or array.shape[1] != n_features:
        raise ValueError(
            f"{name} must have one value for each of the {n_features} features, or rows of such "
            f"values, got shape {np.shape(value)}."
        )
    return pd.DataFrame(array, columns=X.columns) if isinstance(X, pd.DataFrame) else array


def _statistic(sample: Any, name: str) -> Any:
    table = pd.DataFrame(sample)
    columns = []
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        if name == "mode":
            # The smallest of equally frequent values does not depend on the order of the rows.
            columns.append(column.mode(dropna=True).iloc[:1].reset_index(drop=True))
        elif not pd.api.types.is_numeric_dtype(column):
            raise TypeError(
                f"removal={name!r} needs numbers, but column {table.columns[j]!r} holds "
                f"{column.dtype}. Use removal='mode' or a background sample."
            )
        else:
            columns.append(pd.Series([getattr(column, name)()]))
        if columns[-1].empty or columns[-1].isna().all():
            raise ValueError(
                f"reference must have values in column {table.columns[j]!r} for "
                f"removal={name!r}, but there are none."
            )
    fill = pd.concat(columns, axis=1)
    fill.columns = table.columns
    return fill if isinstance(sample, pd.DataFrame) else fill.to_numpy()


def _fitting(fill: pd.DataFrame, X: pd.DataFrame) -> pd.DataFrame:
    """Convert the fill to the types of X's columns if this preserves all values."""
    columns = {}
    for j in range(X.shape[1]):
        target_column, fill_column = X.iloc[:, j], fill.iloc[:, j].reset_index(drop=True)
        if _is_plain(target_column):
            columns[j] = pd.Series(_as_numbers(fill_column, target_column.dtype, X.columns[j]))
        else:
            _check_fits(target_column, fill_column, X.columns[j])
            columns[j] = fill_column
    out = pd.DataFrame(columns)
    out.columns = X.columns
    return out


def _as_numbers(values: Any, dtype: Any, column: Any) -> Any:
    """Convert numbers to the type of a column, on which the model was trained."""
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        try:
            array = np.array([np.nan if pd.isna(value) else value for value in array], dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"removal must be numbers for column {column!r}, got {array.tolist()!r:.80}."
            ) from None
    if dtype.kind == "f" or array.dtype == dtype:
        return array.astype(dtype)
    if np.isfinite(array).all():
        with np.errstate(invalid="ignore"):
            cast = array.astype(dtype)
        return cast if (cast == array).all() else array
    return array.astype(np.float64)


def _check_fits(target_column: pd.Series, fill_column: pd.Series, name: Any) -> None:
    """Raise a TypeError if a column that is not numeric cannot hold its replacements."""
    values = [value for value in fill_column if not pd.isna(value)]
    if hasattr(target_column.dtype, "categories"):
        misfits = [value for value in values if value not in set(target_column.dtype.categories)]
    elif pd.api.types.is_numeric_dtype(target_column):
        misfits = [value for value in values if not isinstance(value, (int, float, np.number))]
    else:
        allowed_types = {type(value) for value in target_column}
        misfits = [value for value in values if type(value) not in allowed_types]
    if misfits:
        raise TypeError(
            f"removal={misfits[0]!r} does not fit column {name!r} of {target_column.dtype}. Use "
            "removal='mode' with reference, or a background sample."
        )


def find_units(groups: Any, X: Any) -> Indices:
    """Return the unit of each column: its group, or a separate unit."""
    n_features = X.shape[1]
    if groups is None:
        return np.arange(n_features)
    names = list(X.columns) if isinstance(X, pd.DataFrame) else []
    unit_of = np.full(n_features, -1, dtype=np.intp)
    if isinstance(groups, str) or not all(
        isinstance(group, (list, tuple, np.ndarray)) for group in groups
    ):
        raise TypeError(
            f"groups must be a list of lists of columns, such as [[0, 1], [3, 4]], got {groups!r}."
        )
    for number, group in enumerate(groups):
        for column in group:
            j = names.index(column) if column in names else column
            is_index = isinstance(j, (int, np.integer)) and not isinstance(j, bool)
            if not is_index or not 0 <= j < n_features:
                raise ValueError(
                    f"groups must hold columns of X, got {column!r} in group {number}. Use names "
                    f"of a DataFrame or indices from 0 to {n_features - 1}."
                )
            if unit_of[j] >= 0:
                raise ValueError(f"groups must not share columns, but {column!r} is in two groups.")
            unit_of[j] = number
    # Units are numbered by their first column, so ties follow the order of the columns.
    labels = np.where(unit_of < 0, len(groups) + np.arange(n_features), unit_of)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


class Pieces(NamedTuple):
    """Pieces of a text, which is their concatenation.

    Parameters
    ----------
    pieces : list of str
        The pieces.
    units : list of ndarray of int
        Indices of the pieces of each unit; pieces in no unit are never removed.
    """

    pieces: list[str]
    units: list[Indices]

    @classmethod
    def of(cls, tokens: list[str]) -> Pieces:
        """Return tokens as pieces, with one unit per token."""
        return cls(tokens, [np.array([i], dtype=np.intp) for i in range(len(tokens))])


def is_text(X: Any) -> bool:
    """Return whether X is a collection of texts or of lists of tokens instead of a table."""
    if hasattr(X, "columns") or (hasattr(X, "dtype") and getattr(X, "ndim", 1) != 1):
        return False
    if not hasattr(X, "__len__") or not len(X):
        return False
    rows = list(X)
    if all(isinstance(row, str) for row in rows):
        return True
    return all(
        isinstance(row, (list, tuple, np.ndarray)) and all(isinstance(token, str) for token in row)
        for row in rows
    ) and any(len(row) for row in rows)


def text_tokens(
    model: Any, texts: Sequence[Any], *, tokenizer: Callable[[str], Sequence[str]] | None = None
) -> list[list[str]]:
    """Split texts into the tokens that :func:`faithfulness` removes.

    Use it to find the tokens that need one attribution each.

    Parameters
    ----------
    model : estimator or callable
        A scikit-learn pipeline with a vectorizer, or its ``predict_proba``.
    texts : sequence of str or of lists of str
        The texts; lists of tokens are not split.
    tokenizer : callable, default=None
        Function that splits a text into tokens; by default the preprocessing and the tokenizer of
        the vectorizer.

    Returns
    -------
    list of lists of str
        The tokens of each text in order, including repeated tokens.

    Raises
    ------
    TypeError
        If `texts` is a single text, or contains other objects.
    ValueError
        If there is no tokenizer and the model has no word vectorizer.

    Notes
    -----
    Stop words are also tokens, although the model ignores them. N-grams are not tokens; removing
    one of their words removes them.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skescore.metrics.attribution import text_tokens
    >>> model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB())
    >>> text_tokens(model, ["A good, good film!"])
    [['good', 'good', 'film']]
    """
    if isinstance(texts, str):
        raise TypeError("X must be a list of texts, got a single text. Pass [text].")
    split: Callable[[str], Sequence[str]] | None = None
    token_lists = []
    for number, text in enumerate(texts):
        if isinstance(text, str):
            split = split or tokenizer or _vectorizer_tokenizer(model)
            token_lists.append([str(token) for token in split(text)])
        elif isinstance(text, (list, tuple, np.ndarray)) and all(
            isinstance(token, str) for token in text
        ):
            token_lists.append([str(token) for token in text])
        else:
            raise TypeError(
                f"X must hold texts or lists of tokens, got {text!r:.80} in row {number}."
            )
    return token_lists


def _vectorizer_tokenizer(model: Any) -> Callable[[str], Sequence[str]]:
    owner = getattr(model, "__self__", model)
    # A fitted search predicts with its best pipeline.
    pipeline = getattr(owner, "best_estimator_", owner)
    steps = [step for _, step in getattr(pipeline, "steps", [])]
    for step in steps:
        if hasattr(step, "build_tokenizer") and not callable(step.analyzer):
            prepare, split = step.build_preprocessor(), step.build_tokenizer()
            return lambda text: split(prepare(text))
    raise ValueError(
        f"tokenizer must be given, as {type(owner).__name__} has no word vectorizer. Pass a "
        "function from a text to its tokens, or lists of tokens as X, or the predict_proba of a "
        "pipeline."
    )


class Texts:
    """Texts whose units can be deleted or masked."""

    copies = 1

    def __init__(self, rows: Sequence[Pieces], *, join: str | None, mask_token: str | None) -> None:
        self.rows = list(rows)
        self.join = join
        self.mask_token = mask_token

    def __len__(self) -> int:
        return len(self.rows)

    def sizes(self) -> list[int]:
        """Return the number of units of each text."""
        return [len(row.units) for row in self.rows]

    def unit_scores(self, row: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores

    def parts(self, row: int, removed: Bools) -> Bools:
        """Return the masks of units, because each unit of a text is a part."""
        return removed

    def leave_one_out(self, row: int) -> tuple[NDArray[np.intp], Bools]:
        n = len(self.rows[row].units)
        return np.arange(n), np.eye(n, dtype=bool)

    def originals(self, rows: Sequence[int]) -> list[Any]:
        return [self._text(self.rows[row].pieces) for row in rows]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> list[Any]:
        """Return texts without the units of each mask."""
        return [self._without(self.rows[row], mask) for row, masks in blocks for mask in masks]

    def _without(self, row: Pieces, mask: Bools) -> Any:
        removed_pieces = {int(i) for unit in np.flatnonzero(mask) for i in row.units[unit]}
        if self.mask_token is None:
            return self._text(
                [piece for i, piece in enumerate(row.pieces) if i not in removed_pieces]
            )
        return self._text(
            [
                self._masked(piece) if i in removed_pieces else piece
                for i, piece in enumerate(row.pieces)
            ]
        )

    def _masked(self, piece: str) -> str:
        """Replace a word by the mask token, but not the blanks around it."""
        core = piece.strip()
        assert self.mask_token is not None
        return piece.replace(core, self.mask_token, 1) if core else piece

    def _text(self, pieces: list[str]) -> Any:
        return list(pieces) if self.join is None else self.join.join(pieces)
