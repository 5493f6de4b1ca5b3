"""Taking features out of the rows of a table, or tokens out of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from skescore._text import short_repr
from skescore._validation import check_choice

__all__ = [
    "Pieces",
    "Removal",
    "SparseRows",
    "TableRows",
    "Texts",
    "find_fill",
    "find_units",
    "is_text",
    "text_tokens",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
STATISTICS = ("mean", "median", "mode")


@dataclass(frozen=True, eq=False, repr=False)
class Removal:
    """How features are taken out of rows, or tokens out of texts.

    Use it as `removal` of :func:`faithfulness` and :func:`attribution_infidelity` where the value
    alone does not say enough.

    Parameters
    ----------
    value : float, array-like, DataFrame or str, default=None
        What replaces a removed feature of a table: a number, one for each feature, ``"mean"``,
        ``"median"`` or ``"mode"`` of `reference`, or rows of a background sample (also
        ``"background"`` with `reference`), over which the predictions are averaged. For texts
        ``"delete"`` or ``"mask"``. By default 0 and ``"delete"``. Sparse rows know 0 only.
    reference : array-like or DataFrame, default=None
        The rows that the named replacements are taken from.
    groups : list of lists, default=None
        Columns that are removed together, by index or name, such as those of one category; their
        scores are added up.
    features : {"all", "changed"}, default="all"
        The features that are looked at in a table: all, or those of a row that removal changes,
        as befits bags of words.
    align : {"tokens", "columns"}, default="tokens"
        What attributions of texts belong to: tokens, or columns of what the last step of a
        pipeline sees, set to 0.
    tokenizer : callable, default=None
        Splits a text into tokens; see :func:`text_tokens`.
    join : str or None, default=" "
        What tokens are joined by for the model; None passes lists of tokens.
    mask_token : str, default="[MASK]"
        What replaces a masked token.
    leave_one_out : {"delete", "mask"}, default=None
        How a single token is left out, if other than `value` says.

    Examples
    --------
    >>> from skescore.metrics.attribution import Removal, faithfulness
    >>> X = [[1.0, 2.0], [3.0, 4.0]]
    >>> found = faithfulness(lambda X: X[:, 0], X, X, removal=Removal("mean", reference=X))
    >>> found["aopc_compr"].tolist()
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
        """Return a removal, or one by a value."""
        return removal if isinstance(removal, cls) else cls(removal)


class _Rows:
    """What dense and sparse tables share: columns pooled into units, and which of them matter."""

    copies = 1

    def __init__(self, unit_of: Indices, changed_only: bool) -> None:
        self.unit_of = unit_of
        self.n_units = int(unit_of.max()) + 1
        self.changed_only = changed_only

    def __len__(self) -> int:
        raise NotImplementedError

    def columns(self, row: int) -> Indices:
        """The columns that removal changes at all; queries about others would be a waste."""
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
        """Marks of units as marks of the columns that matter."""
        return removed[:, np.searchsorted(self._active(row), self.unit_of[self.columns(row)])]

    def leave_one_out(self, row: int) -> tuple[Indices, Bools]:
        """The units that make a difference, and which columns go with each."""
        owners = self.unit_of[self.columns(row)]
        units = np.unique(owners)
        indices = np.searchsorted(self._active(row), units)
        return indices, owners[np.newaxis, :] == units[:, np.newaxis]


class TableRows(_Rows):
    """Rows of an array or a frame, removed features replaced by those of background rows."""

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
        # Column by column: rows × background × columns at once would not fit for many rows.
        self._changed = np.column_stack([_differs(*pair) for pair in pairs])

    def __len__(self) -> int:
        return len(self.X)

    def columns(self, row: int) -> Indices:
        return np.flatnonzero(self._changed[row])

    def originals(self, rows: Sequence[int]) -> Any:
        return self.X.iloc[list(rows)] if isinstance(self.X, pd.DataFrame) else self.X[list(rows)]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> Any:
        """Each request once for every background row, these next to each other."""
        rows = np.concatenate([np.full(len(masks), row) for row, masks in blocks])
        marks = np.zeros((len(rows), self.X.shape[1]), dtype=bool)
        start = 0
        for row, masks in blocks:
            marks[start : start + len(masks), self.columns(row)] = masks
            start += len(masks)
        rows, marks = np.repeat(rows, self.copies), np.repeat(marks, self.copies, axis=0)
        behind = np.tile(np.arange(self.copies), len(rows) // self.copies)
        if isinstance(self.X, pd.DataFrame):
            return self._frame(rows, marks, behind)
        return np.where(marks, self.fill[behind], self.X[rows])

    def _frame(self, rows: Indices, marks: Bools, behind: Indices) -> pd.DataFrame:
        columns = {}
        for j in range(self.X.shape[1]):
            own, other = self.X.iloc[:, j], self.fill.iloc[:, j]
            if _is_plain(own) and _is_plain(other):
                columns[j] = pd.Series(
                    np.where(marks[:, j], other.to_numpy()[behind], own.to_numpy()[rows])
                )
            else:
                values = own.to_numpy(dtype=object)[rows]
                values[marks[:, j]] = other.to_numpy(dtype=object)[behind][marks[:, j]]
                columns[j] = pd.Series(values, dtype=own.dtype)
        frame = pd.DataFrame(columns)
        frame.columns = self.X.columns
        return frame


class SparseRows(_Rows):
    """Rows of a sparse matrix, where removing is to leave an entry out."""

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
            kept = ~masks
            begin, end = self.X.indptr[row], self.X.indptr[row + 1]
            data.append(np.broadcast_to(self.X.data[begin:end], kept.shape)[kept])
            indices.append(np.broadcast_to(self.X.indices[begin:end], kept.shape)[kept])
            lengths.append(kept.sum(axis=1))
        pointers = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return type(self.X)(
            (np.concatenate(data), np.concatenate(indices), pointers),
            shape=(len(pointers) - 1, self.X.shape[1]),
        )


def _differs(own: Any, fill: Any) -> Bools:
    """Which entries of a column are not the same as all those that would replace them."""
    distinct = pd.unique(pd.Series(fill))
    if len(distinct) > 1:  # no entry is the same as two different ones
        return np.ones(len(own), dtype=bool)
    missing = pd.isna(own)
    if pd.isna(distinct[0]):
        return ~missing
    return missing | ~np.asarray(own == distinct[0], dtype=bool)


def _is_plain(column: pd.Series) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"


def find_fill(removal: Any, reference: Any, X: Any) -> Any:
    """Background rows in the shape of X: an array or a frame of shape (n_background, n_features).

    A single number, one for each feature, and a statistic are a background of one row.
    """
    frame = isinstance(X, pd.DataFrame)
    if isinstance(removal, str):
        check_choice("removal", removal, (*STATISTICS, "background"))
        if reference is None:
            raise ValueError(
                f"reference must be given with removal={removal!r}: the rows to take it from, such "
                f"as those of the training. Pass Removal({removal!r}, reference=X_train)."
            )
        sample = _like(reference, X, "reference")
        fill = sample if removal == "background" else _statistic(sample, removal)
    elif np.ndim(removal) == 0:
        if isinstance(removal, bool) or not isinstance(removal, (int, float, np.number)):
            raise TypeError(
                f"removal must be a number, an array or the name of a statistic, got {removal!r}."
            )
        row = np.full((1, X.shape[1]), removal)
        fill = pd.DataFrame(row, columns=X.columns) if frame else row
    else:
        fill = _like(removal, X, "removal")
    if not len(fill):
        raise ValueError("removal must have at least one background row, got none.")
    if frame:
        return _fitting(fill, X)
    return np.asarray(fill) if X.dtype == object else _as_numbers(fill, X.dtype, "any")


def _like(value: Any, X: Any, name: str) -> Any:
    """Rows with the columns of X, in their order."""
    n_features = X.shape[1]
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
            f"{name} must have one value for each of the {n_features} features, or rows of them, "
            f"got shape {np.shape(value)}."
        )
    return pd.DataFrame(array, columns=X.columns) if isinstance(X, pd.DataFrame) else array


def _statistic(sample: Any, name: str) -> Any:
    table = pd.DataFrame(sample)
    columns = []
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        if name == "mode":
            # Of equally frequent values the smallest, whatever the order of the rows.
            found = column.mode(dropna=True)
            columns.append(found.iloc[:1].reset_index(drop=True))
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
    """The fill in the types of X's columns where nothing is lost by it."""
    columns = {}
    for j in range(X.shape[1]):
        own, other = X.iloc[:, j], fill.iloc[:, j].reset_index(drop=True)
        if _is_plain(own):
            columns[j] = pd.Series(_as_numbers(other, own.dtype, X.columns[j]))
        else:
            _check_fits(own, other, X.columns[j])
            columns[j] = other
    out = pd.DataFrame(columns)
    out.columns = X.columns
    return out


def _as_numbers(values: Any, dtype: Any, column: Any) -> Any:
    """Numbers in the type of a column: a model must not see other types than in training."""
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


def _check_fits(own: pd.Series, other: pd.Series, column: Any) -> None:
    """Whether a column that is not of plain numbers can hold what would replace its values."""
    values = [value for value in other if not pd.isna(value)]
    if hasattr(own.dtype, "categories"):
        strange = [value for value in values if value not in set(own.dtype.categories)]
    elif pd.api.types.is_numeric_dtype(own):
        strange = [value for value in values if not isinstance(value, (int, float, np.number))]
    else:
        known = {type(value) for value in own}
        strange = [value for value in values if type(value) not in known]
    if strange:
        raise TypeError(
            f"removal={strange[0]!r} cannot stand in column {column!r} of {own.dtype}. Use "
            "removal='mode' with reference, or a background sample."
        )


def find_units(groups: Any, X: Any) -> Indices:
    """The unit of each column: its group, or the column by itself, numbered as they come."""
    n_features = X.shape[1]
    if groups is None:
        return np.arange(n_features)
    names = list(X.columns) if isinstance(X, pd.DataFrame) else []
    unit_of = np.full(n_features, -1, dtype=np.intp)
    if isinstance(groups, str) or not all(
        isinstance(group, (list, tuple, np.ndarray)) for group in groups
    ):
        raise TypeError(
            f"groups must be a list of lists of columns, got {groups!r}, such as [[0, 1], [3, 4]]."
        )
    for number, group in enumerate(groups):
        for column in group:
            j = names.index(column) if column in names else column
            whole = isinstance(j, (int, np.integer)) and not isinstance(j, bool)
            if not whole or not 0 <= j < n_features:
                raise ValueError(
                    f"groups must hold columns of X, got {column!r} in group {number}. Use names "
                    f"of a frame or indices from 0 to {n_features - 1}."
                )
            if unit_of[j] >= 0:
                raise ValueError(f"groups must not share columns, but {column!r} is in two groups.")
            unit_of[j] = number
    # Numbered by their first column, so that ties are ordered as the columns are.
    labels = np.where(unit_of < 0, len(groups) + np.arange(n_features), unit_of)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


class Pieces(NamedTuple):
    """A text as its explainer cut it: joined without blanks, the pieces are the text again."""

    pieces: list[str]
    #: Which pieces go together as one unit; whatever is in none is never removed.
    units: list[Indices]

    @classmethod
    def of(cls, tokens: list[str]) -> Pieces:
        """Every token is a unit."""
        return cls(tokens, [np.array([i], dtype=np.intp) for i in range(len(tokens))])


def is_text(X: Any) -> bool:
    """Whether X is a collection of texts or of lists of tokens, rather than a table."""
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

    Use it to see which tokens attributions have to be aligned to, one number for each.

    Parameters
    ----------
    model : estimator or callable
        A scikit-learn pipeline with a vectorizer, or its ``predict_proba``.
    texts : sequence of str or of lists of str
        The texts; lists of tokens stay as they are.
    tokenizer : callable, default=None
        Splits a text into tokens. By default the vectorizer's own one, after its preprocessing.

    Returns
    -------
    list of lists of str
        The tokens of each text in their order, repeated ones included.

    Raises
    ------
    TypeError
        If `texts` is a single text, or holds something else.
    ValueError
        If there is no tokenizer and the model has no vectorizer of words.

    Notes
    -----
    Stop words are tokens like others: the model knows how to ignore them. N-grams are not tokens;
    they go when one of their words does.

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
    found = []
    for number, text in enumerate(texts):
        if isinstance(text, str):
            split = split or tokenizer or _vectorizer_tokenizer(model)
            found.append([str(token) for token in split(text)])
        elif isinstance(text, (list, tuple, np.ndarray)) and all(
            isinstance(token, str) for token in text
        ):
            found.append([str(token) for token in text])
        else:
            raise TypeError(
                f"X must hold texts or lists of tokens, got {text!r:.80} in row {number}."
            )
    return found


def _vectorizer_tokenizer(model: Any) -> Callable[[str], Sequence[str]]:
    owner = getattr(model, "__self__", model)
    # A search predicts by the pipeline that it found to be the best.
    pipeline = getattr(owner, "best_estimator_", owner)
    steps = [step for _, step in getattr(pipeline, "steps", [])]
    for step in steps:
        if hasattr(step, "build_tokenizer") and not callable(step.analyzer):
            prepare, split = step.build_preprocessor(), step.build_tokenizer()
            return lambda text: split(prepare(text))
    raise ValueError(
        "tokenizer must be given, as no vectorizer of words was found in "
        f"{type(owner).__name__}. Pass a function from a text to its tokens, or lists of tokens as "
        "X, or a pipeline's own predict_proba."
    )


class Texts:
    """Texts as units that can be deleted or masked, one by one or together."""

    copies = 1

    def __init__(self, rows: Sequence[Pieces], *, join: str | None, mask_token: str | None) -> None:
        self.rows = list(rows)
        self.join = join
        self.mask_token = mask_token

    def __len__(self) -> int:
        return len(self.rows)

    def sizes(self) -> list[int]:
        """How many attributions each text needs."""
        return [len(row.units) for row in self.rows]

    def unit_scores(self, row: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores

    def parts(self, row: int, removed: Bools) -> Bools:
        """Every unit of a text is a part of its own."""
        return removed

    def leave_one_out(self, row: int) -> tuple[NDArray[np.intp], Bools]:
        n = len(self.rows[row].units)
        return np.arange(n), np.eye(n, dtype=bool)

    def originals(self, rows: Sequence[int]) -> list[Any]:
        return [self._text(self.rows[row].pieces) for row in rows]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> list[Any]:
        """Texts without the units that are marked."""
        return [self._without(self.rows[row], mask) for row, masks in blocks for mask in masks]

    def _without(self, row: Pieces, mask: Bools) -> Any:
        taken = {int(i) for unit in np.flatnonzero(mask) for i in row.units[unit]}
        if self.mask_token is None:
            return self._text([piece for i, piece in enumerate(row.pieces) if i not in taken])
        return self._text(
            [self._masked(piece) if i in taken else piece for i, piece in enumerate(row.pieces)]
        )

    def _masked(self, piece: str) -> str:
        """The mask in place of the word, with the blanks around it that explainers keep."""
        core = piece.strip()
        assert self.mask_token is not None
        return piece.replace(core, self.mask_token, 1) if core else piece

    def _text(self, pieces: list[str]) -> Any:
        return list(pieces) if self.join is None else self.join.join(pieces)
