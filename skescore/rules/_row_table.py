"""Access to the columns of arrays, sparse matrices and data frames by feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skescore._text import listed, rename_hint
from skescore.rules._conditions import Condition, as_numbers, is_missing

#: Arrow types whose values NumPy reads without a copy.
_ARROW_FLOATS = ("double", "float")
#: Libraries whose tables are not in memory.
_LAZY_LIBRARIES = ("dask", "dask_expr")
#: Size of the rows from which columns are copied at a time; they fit into the cache of a core.
_COPIED_BYTES = 2**19
#: Smallest number of rows that are copied at a time, which limits the number of NumPy calls.
_MIN_COPIED_ROWS = 512
_ARROW_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


class _ColumnPieces:
    """Column that is stored in several arrays.

    Parameters
    ----------
    arrays : list of ndarray
        Parts of the column, in order; at least one.
    """

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays
        self._ends = np.cumsum([len(array) for array in arrays])

    def whole(self) -> np.ndarray:
        """Return the column as one array, which is a copy only if there are several parts."""
        return self._arrays[0] if len(self._arrays) == 1 else np.concatenate(self._arrays)

    def take(self, rows: slice) -> np.ndarray:
        """Return a range of rows, which is a copy only if it spans several parts."""
        if len(self._arrays) == 1:
            return self._arrays[0][rows]
        first = int(np.searchsorted(self._ends, rows.start, side="right"))
        parts = []
        for array, end in zip(self._arrays[first:], self._ends[first:].tolist(), strict=True):
            begin = end - len(array)
            if begin >= rows.stop:
                break
            parts.append(array[max(0, rows.start - begin) : rows.stop - begin])
        return parts[0] if len(parts) == 1 else np.concatenate([self._arrays[0][:0], *parts])


class RowTable:
    """Uniform access to an array or data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame or Arrow table of shape (n_rows, n_features)
        The rows. Columns of a table are identified by name, so their order does not matter and
        other columns are ignored. Columns of an array, or of a frame whose column names are 0, 1,
        2, ..., are identified by position.
    names : sequence of str
        Feature names of the rules.

    Raises
    ------
    ValueError
        If X is not two-dimensional, or columns are missing, ambiguous or too many.
    """

    def __init__(self, X: Any, names: Sequence[str]) -> None:
        self._names = names
        X = X if _is_arrow(X) else convert_rows(X)
        self._frame: Any = X if _is_frame(X) or _is_arrow(X) else None
        self._sparse = sparse.issparse(X)  # only used columns are converted to dense arrays
        self._cache: dict[int, np.ndarray] = {}
        self._codes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._truths: dict[Condition, np.ndarray] = {}
        self._pieces: dict[int, _ColumnPieces | None] = {}
        if self._frame is not None:
            columns = self._frame.schema.names if _is_arrow(X) else self._frame.columns
            column_names = [str(c) for c in columns]
            available = set(column_names)
            missing = [n for n in names if n not in available]
            if not missing:
                self._position = _positions(names, column_names)
                self._n_rows = len(self._frame)
                return
            if not _are_positions(columns):
                remedy = rename_hint(missing, sorted(available.difference(names))) or (
                    " Add them; columns that no rule tests may be empty, such as those that "
                    "X.reindex(columns=rules.feature_names) adds."
                )
                raise ValueError(
                    f"X lacks the feature{'s' if len(missing) > 1 else ''} {listed(missing)} "
                    f"of the rules; its columns are {listed(column_names)}.{remedy}"
                )
            self._frame = None  # numbered columns are identified by position
        array = X.tocsc() if self._sparse and X.ndim == 2 else _as_array(X)
        if array.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional (rows, features), got shape {array.shape}. "
                "Pass one row as X.iloc[[0]] of a frame, or X[[0]] of an array."
            )
        if array.shape[1] != len(names):
            raise ValueError(
                f"X has {array.shape[1]} features, but the rules have {len(names)}: "
                f"{listed(names)}. Pass the columns of the rules, in this order."
            )
        self._array: Any = array
        self._n_rows = array.shape[0]

    @classmethod
    def of(cls, X: Any, names: Sequence[str]) -> RowTable:
        """Return X as a table; a table is returned unchanged."""
        return X if isinstance(X, RowTable) else cls(X, names)

    def __len__(self) -> int:
        return self._n_rows

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names."""
        return tuple(self._names)

    def column(self, feature: int) -> np.ndarray:
        """Return the values of one feature without conversion."""
        if self._frame is None and not self._sparse:
            return self._check_values(feature, self._array[:, feature])
        if feature not in self._cache:
            values = (
                self._array[:, [feature]].toarray()[:, 0]
                if self._frame is None
                else self._series(feature)
            )
            self._cache[feature] = self._check_values(feature, values)
        return self._cache[feature]

    def _series(self, feature: int) -> np.ndarray:
        frame, at = self._frame, self._position[feature]
        if (pieces := self._column_pieces(feature)) is not None:
            return pieces.whole()
        if _is_arrow(frame):  # convert only the used columns
            frame, at = convert_rows(frame.select([at])), 0
        if not hasattr(frame, "iloc"):
            series = frame[:, at]
            wide = str(series.dtype).endswith("Int128")  # NumPy has no such type
            values = np.zeros(0) if wide else np.asarray(series.to_numpy())
            if wide or (series.dtype.is_integer() and _may_be_rounded(values)):
                values = np.array(series.to_list(), dtype=object)
            return values
        series = frame.iloc[:, at]
        values = np.asarray(series.to_numpy())
        if values.dtype.kind == "f" and _holds_integers(series) and _may_be_rounded(values):
            values = series.astype(object).to_numpy()
        return values

    def _column_pieces(self, feature: int) -> _ColumnPieces | None:
        """Return a column of an Arrow or polars table without a copy, or None if it needs one."""
        if self._frame is None or hasattr(self._frame, "iloc"):
            return None
        if feature not in self._pieces:
            parts = _numeric_parts(self._frame, self._position[feature])
            self._pieces[feature] = _ColumnPieces(parts) if parts else None
        return self._pieces[feature]

    def _check_values(self, feature: int, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind not in "biufOUT":
            raise ValueError(
                f"Rules compare numbers and labels, but X holds {values.dtype} in feature "
                f"{self._names[feature]!r}. Convert that column to numbers or text."
            )
        return values

    def holds(self, condition: Condition, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return whether a condition holds for the given rows.

        A condition on a column of text is evaluated once for each distinct value.
        """
        feature = condition.features[0]
        if len(condition.features) > 1 or self.column(feature).dtype.kind not in "OUT":
            return condition.holds(lambda j: self.column(j)[rows])
        if feature not in self._codes:
            self._codes[feature] = self._code(feature)
        codes, values = self._codes[feature]
        if condition not in self._truths:
            self._truths[condition] = condition.holds(lambda _: values)
        return np.asarray(self._truths[condition][codes[rows]])

    def _code(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the code of each row's value, and the distinct values, including missing ones."""
        if hasattr(self._frame, "iloc"):
            series = self._frame.iloc[:, self._position[feature]]
            if isinstance(series.dtype, pd.CategoricalDtype):
                # The code -1 of missing values is the index of the last value.
                values = [*series.cat.categories, np.nan]
                return series.cat.codes.to_numpy(), pd.Series(values, dtype=object).to_numpy()
        return pd.factorize(self.column(feature).astype(object), use_na_sentinel=False)

    def numbers(self, feature: int, rows: slice) -> np.ndarray:
        """Return the values of a feature as contiguous floats."""
        return self._as_floats(feature, self.column(feature)[rows])

    def _as_floats(self, feature: int, values: np.ndarray) -> np.ndarray:
        try:
            return np.ascontiguousarray(as_numbers(values))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The rules compare feature {self._names[feature]!r} with numbers, but X holds "
                f"{values.dtype}: {error}. Convert that column to numbers."
            ) from error

    def floats(self, feature: int, rows: slice) -> np.ndarray:
        """Return a range of values of a feature as contiguous floats.

        Single precision is preserved. A column that is contiguous in memory is not copied.
        """
        pieces = self._column_pieces(feature)
        values = self.column(feature)[rows] if pieces is None else pieces.take(rows)
        if values.dtype == np.float32:
            return np.ascontiguousarray(values)
        return self._as_floats(feature, values)

    def float_columns(self, features: Sequence[int], rows: slice) -> Iterator[np.ndarray]:
        """Yield a range of values of several features as contiguous floats, as in `floats`.

        If most columns of a row-major array are requested, they are copied a few rows at a time,
        so that each row is read from memory once.
        """
        if not self.is_row_major or 2 * len(features) < len(self._names):
            yield from (self.floats(feature, rows) for feature in features)
            return
        block = self.block(rows).T
        columns = np.empty(block.shape, dtype=block.dtype)
        size = max(_MIN_COPIED_ROWS, _COPIED_BYTES // block[:, :1].nbytes)
        for start in range(0, block.shape[1], size):
            columns[:, start : start + size] = block[:, start : start + size]
        yield from (columns[feature] for feature in features)

    @property
    def is_row_major(self) -> bool:
        """Whether the rows are a row-major array of floats."""
        if self._frame is not None or self._sparse:
            return False
        row, column = np.abs(self._array.strides)
        return self._array.dtype in (np.float64, np.float32) and bool(column < row)

    def block(self, rows: slice) -> np.ndarray:
        """Return a view of a range of rows of the array."""
        return np.asarray(self._array[rows])

    def missing(self, feature: int, rows: slice) -> np.ndarray:
        """Return a mask of the missing values of a feature."""
        return is_missing(self.column(feature)[rows])

    def matrix(self, rows: np.ndarray, features: Sequence[int]) -> np.ndarray:
        """Return rows as a float matrix, with NaN in all features except the given ones."""
        result = np.full((len(rows), len(self._names)), np.nan)
        for feature in features:
            result[:, feature] = self.numbers(feature, slice(None))[rows]
        return result


def _is_arrow(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("columns", "to_pandas", "schema")) and not _is_frame(X)


def _numeric_parts(frame: Any, position: int) -> list[np.ndarray]:
    """Return views of the parts of a numeric column; no parts if values must be converted.

    Columns with missing values must be converted, unless they are NaN.
    """
    if not _is_arrow(frame):
        series = frame[:, position]
        if not series.dtype.is_float():
            return []
        return [np.asarray(part.to_numpy()) for part in series.get_chunks()]
    column = frame.column(position)
    kind = str(column.type)
    if kind not in _ARROW_FLOATS and (kind not in _ARROW_INTEGERS or column.null_count):
        return []
    parts = getattr(column, "chunks", [column])
    return [part.to_numpy(zero_copy_only=False) for part in parts]


def _may_be_rounded(values: np.ndarray) -> bool:
    """Return whether integers may have been rounded when they were converted to floats."""
    return values.dtype.kind == "f" and bool((np.abs(values) >= 2.0**53).any())


def _holds_integers(series: pd.Series) -> bool:
    kind = series.cat.categories.dtype if hasattr(series, "cat") else series.dtype
    return pd.api.types.is_integer_dtype(kind)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_column"))


def convert_rows(X: Any) -> Any:
    """Convert tables of other libraries to data frames, and masked arrays to arrays.

    If such a table were converted to an array, its column names would be lost.

    Raises
    ------
    TypeError
        If a table is not from pandas, polars or Arrow, or is not in memory.
    """
    if type(X).__module__.partition(".")[0] in _LAZY_LIBRARIES:
        raise TypeError(
            f"X must be rows in memory, got a {type(X).__name__} of "
            f"{type(X).__module__.partition('.')[0]}. Pass X.compute(), or read the rows with "
            "skescore.sources."
        )
    if isinstance(X, np.ma.MaskedArray):  # masked entries are missing values
        numbers = np.ma.filled(X.astype(float), np.nan) if X.dtype.kind in "biuf" else None
        if numbers is not None and (X.dtype.kind == "f" or not _may_be_rounded(numbers)):
            return numbers
        values = np.array(X, dtype=object)
        values[np.ma.getmaskarray(X)] = None
        return values
    if not hasattr(X, "columns") or _is_frame(X) or isinstance(X, np.ndarray | RowTable):
        return X
    if _is_arrow(X):
        X = without_null_categories(X)
        frame = X.to_pandas()
        for i, kind in enumerate(X.schema.types):
            name = str(kind).replace("i", "I").replace("u", "U")  # name of the type in pandas
            if name.startswith(("Int", "UInt")) and _may_be_rounded(frame.iloc[:, i].to_numpy()):
                frame.isetitem(i, pd.Series(X.column(i).to_pylist(), frame.index, dtype=name))
        return frame
    raise TypeError(
        f"X must be an array or a data frame of pandas or polars, got a {type(X).__name__} of "
        f"{type(X).__module__.partition('.')[0]}. Convert it to a pandas data frame first."
    )


def without_null_categories(table: Any) -> Any:
    """Return an Arrow table without nulls in dictionaries, which pandas cannot represent."""
    for position, kind in enumerate(table.schema.types):
        if not str(kind).startswith("dictionary<"):
            continue
        column = table.column(position)
        parts = getattr(column, "chunks", [column])
        if any(part.dictionary.null_count for part in parts):
            encoded = column.cast(kind.value_type).dictionary_encode()
            table = table.set_column(position, table.schema.names[position], encoded)
    return table


def _as_array(X: Any) -> np.ndarray:
    if hasattr(X, "toarray"):
        raise TypeError(
            f"X must be a sparse matrix of SciPy with rows and columns, got {type(X).__name__} of "
            f"shape {getattr(X, 'shape', None)}. Pass X.toarray()."
        )
    array = np.asarray(X)
    if not isinstance(X, np.ndarray) and (array.dtype.kind in "US" or _may_be_rounded(array)):
        array = np.asarray(X, dtype=object)  # in mixed columns, values keep their types
    return array


def _are_positions(columns: Any) -> bool:
    """Return whether the column names of a frame are only their positions: 0, 1, 2, ..."""
    return all(
        isinstance(column, Integral) and not isinstance(column, bool | np.bool_) and column == i
        for i, column in enumerate(columns)
    )


def _positions(names: Sequence[str], column_names: Sequence[str]) -> list[int]:
    """Return the position of each name; raise a ValueError for a repeated name."""
    index_of = {name: at for at, name in enumerate(column_names)}
    if len(index_of) < len(column_names):
        twice = [n for n in names if column_names.count(n) > 1]
        if twice:
            raise ValueError(
                f"X has more than one column {listed(twice)}: rename or drop all but one of each."
            )
    return [index_of[name] for name in names]
