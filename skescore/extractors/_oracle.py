"""Queries of the black box, with a cache of its predictions."""

from __future__ import annotations

import copy
import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import get_tags

from skescore._deadline import check_deadline, spend_queries
from skescore._validation import one_dimension, own_rows
from skescore.black_boxes import QueryCost, explained_refusal
from skescore.rules import convert_rows

T = TypeVar("T")

#: Size limit of a cache of results, and the overhead of an entry, in bytes.
_MAX_BYTES, _OVERHEAD = 256 * 2**20, 512
#: Size limit of an oracle's cache of predictions, in bytes.
_MAX_BYTES_OF_PREDICTIONS = 2**30
#: Number of rows that are hashed at a time.
_HASH_BLOCK_ROWS = 65536


class ResultCache:
    """Cache with a size limit that drops the least recently used results first.

    Copies and pickles of a cache are empty, so that they are quickly sent to other processes.

    Parameters
    ----------
    max_bytes : int, default=268435456
        Size limit of all results. A single result may use up to half of it, which is enough for the
        default number of query rows with 2000 columns.

    Examples
    --------
    >>> cache = ResultCache(max_bytes=4000)
    >>> cache.put("a", 1); cache.put("b", (2, 3))
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    (1, (2, 3), None)
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._results: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()  # several threads may use the same black box

    def get(self, key: Hashable) -> Any:
        """Return the result of a key, or None."""
        with self._lock:
            if key not in self._results:
                return None
            self._results.move_to_end(key)
            return self._results[key][0]

    def put(self, key: Hashable, value: Any) -> None:
        """Store a result unless it is too large; replace an earlier result of the key."""
        size = _count_bytes(value) + _OVERHEAD
        with self._lock:
            self.n_bytes -= self._results.pop(key, (None, 0))[1]
            if size > self.max_bytes // 2:
                return
            self._results[key] = value, size
            self.n_bytes += size
            while self.n_bytes > self.max_bytes:
                self.n_bytes -= self._results.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._results)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.max_bytes,)


def _count_bytes(value: Any) -> int:
    """Return the size in bytes of all arrays in a result, its items and its attributes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(_count_bytes, value))
    return sum(map(_count_bytes, vars(value).values())) if hasattr(value, "__dict__") else 0


def digest(*arrays: np.ndarray) -> bytes:
    """Return a digest of the content, type and shape of arrays."""
    result = hashlib.sha256()
    for array in arrays:
        result.update(f"{array.dtype}{array.shape}".encode())
        result.update(np.ascontiguousarray(array).data)
    return result.digest()


class FixedRows:
    """Tables that are never modified, with a cache of results that depend only on their rows.

    A search extracts rules from the same few tables many times, but checks, encodes and hashes
    their rows only once. Tables are identified by their ``id``. Copies and pickles are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from skescore.extractors import CachedBlackBox
    >>> X = np.array([[1.0, 2.0]])
    >>> fixed = CachedBlackBox(DummyClassifier().fit(X, ["a"])).fixed_rows
    >>> fixed.add(X)
    >>> float(fixed.once(X, "sum", X.sum))
    3.0
    >>> X in fixed, X.copy() in fixed
    (True, False)
    """

    def __init__(self) -> None:
        # References to the tables ensure that no other object gets the same id.
        self._tables: dict[int, tuple[Any, dict[Hashable, Any]]] = {}

    def add(self, X: Any) -> None:
        """Add a table, which must not be modified from then on."""
        self._tables.setdefault(id(X), (X, {}))

    def __contains__(self, X: Any) -> bool:
        return id(X) in self._tables

    def once(self, X: Any, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of a key for a table; callers must not modify it.

        The result is computed once for tables that were added, and in every call for others.
        """
        if X not in self:
            return make()
        results = self._tables[id(X)][1]
        if key not in results:
            results[key] = make()
        result: T = results[key]
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Oracle:
    """Queries a black box in batches, caches its predictions and counts the queries.

    Parameters
    ----------
    estimator : estimator
        A fitted black box with ``predict``.
    like : array-like or DataFrame, optional
        Training rows of the extractor, in the container and with the column types that the black
        box may require. A black box with ``feature_names_in_`` gets a DataFrame with these columns,
        and a scikit-learn model without this attribute gets an array. Any other black box gets a
        DataFrame if `like` is one, and otherwise the rows unchanged.
    feature_names : sequence of str, optional
        Column names for arrays that are converted to data frames.
    batch_size : int, optional
        Largest number of rows in one call; by default all rows.

    Attributes
    ----------
    n_calls : int
        Number of calls of the black box's ``predict``.
    n_rows : int
        Number of rows in these calls.
    n_rows_cached : int
        Number of rows whose predictions came from the cache.
    seconds : float
        Total duration of these calls in seconds.
    first_query : bytes or None
        Digest of the rows of the first query, which are the training rows of an extractor. None if
        the rows contain values other than numbers and text.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        like: Any = None,
        feature_names: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.batch_size = batch_size
        self.n_calls = 0
        self.n_rows = 0
        self.n_rows_cached = 0
        self.seconds = 0.0
        self.first_query: bytes | None = None
        self._cache = ResultCache(_MAX_BYTES_OF_PREDICTIONS)
        self._feature_names = None if feature_names is None else list(feature_names)
        self._names = getattr(estimator, "feature_names_in_", None)
        self._has_own_names = self._names is not None
        self._library = type(like).__module__.partition(".")[0]
        self._array_only = self._names is None and hasattr(estimator, "n_features_in_")
        if self._names is None and not self._array_only and hasattr(like, "columns"):
            self._names = self._feature_names or list(like.columns)
        self._fixed_rows = fixed_rows_of(estimator)
        self._kinds = self._fixed_rows.once(like, "column types", lambda: FrameKinds(like))

    @property
    def cost(self) -> QueryCost:
        """Number of rows that the black box predicted, and the duration in seconds."""
        return QueryCost(self.n_rows, self.seconds)

    def query(self, X: Any, *, cache: bool = True) -> np.ndarray:
        """Return one prediction per row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; columns may be in any order if the black box has their names.
        cache : bool, default=True
            Whether to cache the predictions.

        Raises
        ------
        ValueError
            If the black box does not return one prediction per row.
        """
        X = convert_rows(X)
        X = X if hasattr(X, "columns") else np.asarray(X)
        key = self._fixed_rows.once(X, "digest", lambda: _content_key(X)) if cache else None
        return self._query(X, key, cache)

    def query_outputs(self, X: Any) -> np.ndarray:
        """Return class probabilities if the black box predicts them, otherwise its predictions.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            The outputs, which are not cached.
        """
        estimator = self.estimator
        if isinstance(estimator, CachedBlackBox):
            estimator = estimator.oracle.estimator
        predict_proba = getattr(estimator, "predict_proba", None)
        if predict_proba is None:
            return self.query(X, cache=False)
        X = convert_rows(X)
        converted = self._convert_rows(X if hasattr(X, "columns") else np.asarray(X))
        n_rows, parts = len(converted), []
        size = self.batch_size or max(1, n_rows)
        for start in range(0, n_rows, size):
            rows = converted[start : start + size]
            if hasattr(converted, "iloc"):
                rows = converted.iloc[start : start + size]
            parts.append(np.asarray(predict_proba(rows)))
            self.n_calls += 1
        self.n_rows += n_rows
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _query(self, X: Any, key: bytes | None, cache: bool) -> np.ndarray:
        check_deadline()
        if self.n_calls == 0:
            self.first_query = key
        cached = None if key is None else self._cache.get(key)
        if cached is not None:
            self.n_rows_cached += len(X)
            return np.array(cached)
        converted = self._convert_rows(X)
        n_rows = len(converted)
        size = self.batch_size or max(1, n_rows)
        # If all rows are in one call and their conversion depends only on the black box, a cached
        # black box can reuse their digest.
        is_own = converted is X or (hasattr(X, "columns") and self._has_own_names)
        key_of_all = key if is_own and n_rows <= size else None
        parts = [
            self._call(converted, start, start + size, cache, key_of_all)
            for start in range(0, n_rows, size)
        ]
        predictions = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if key is not None:
            self._cache.put(key, predictions.copy())
        return predictions

    def count_again(self, n_rows: int) -> None:
        """Count a query whose predictions are already available.

        The counts of an extractor must not depend on queries that other extractors made before.

        Parameters
        ----------
        n_rows : int
            Number of rows of the query.
        """
        self.n_calls += math.ceil(n_rows / (self.batch_size or max(1, n_rows)))
        self.n_rows += n_rows

    @property
    def _black_box_name(self) -> str:
        frozen = isinstance(self.estimator, FrozenEstimator)
        return type(self.estimator.estimator if frozen else self.estimator).__name__

    def _call(
        self, converted: Any, start: int, stop: int, cache: bool, key_of_all: bytes | None
    ) -> np.ndarray:
        # Without iloc, a pandas frame with numeric row labels would be sliced by label.
        rows = converted.iloc[start:stop] if hasattr(converted, "iloc") else converted[start:stop]
        begin = time.perf_counter()
        if isinstance(self.estimator, CachedBlackBox):
            inner = self.estimator.oracle
            if key_of_all is None:
                predictions = inner.query(rows, cache=cache)
            else:
                predictions = inner._query(rows, key_of_all, cache)
        else:
            spend_queries(len(rows))
            predict = partial(quick_predict, self.estimator)
            with explained_refusal(self.estimator, rows, predict):
                predictions = predict(rows)
        self.seconds += time.perf_counter() - begin
        self.n_calls += 1
        self.n_rows += len(rows)
        if predictions.ndim == 2 and predictions.shape[1] == 1:
            predictions = predictions[:, 0]
        if predictions.shape != (len(rows),):
            raise ValueError(
                f"The black box {self._black_box_name} must predict one label or number per row, "
                f"but for {len(rows)} rows it returned an array of shape {predictions.shape}. "
                "Extract rules for one output at a time: select_output(model, 0)."
            )
        return predictions

    def _convert_rows(self, X: Any) -> Any:
        """Convert the rows to the container that the black box was fitted on."""
        is_frame = hasattr(X, "columns")
        if self._names is None:
            return _as_array(X) if is_frame and self._array_only else X
        names = list(self._names)
        if not is_frame:
            X = self._as_frame(X, names)
        columns = list(X.columns)
        if columns == names:
            return X
        missing = [n for n in names if n not in columns]
        # LightGBM replaces blanks in names with underscores.
        column_of = {str(column).replace(" ", "_"): column for column in columns}
        if missing and len(column_of) == len(columns) and column_of.keys() >= set(names):
            return X[[column_of[name] for name in names]]
        if missing:
            raise ValueError(
                f"The black box {self._black_box_name} was fitted on the columns "
                f"{names}, but X has {columns}: {missing} "
                f"{'is' if len(missing) == 1 else 'are'} missing. Rename the columns, or pass "
                "an array with the black box's columns in order."
            )
        return X[names]

    def _as_frame(self, array: np.ndarray, names: list[Any]) -> Any:
        """Convert an array to a data frame with the extractor's column names, or with `names`."""
        if self._feature_names is not None:
            names = self._feature_names
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(
                f"X must have one column for each of {[str(n) for n in names]}, got an array of "
                f"shape {array.shape}."
            )
        if self._library == "polars":
            import polars

            frame = polars.DataFrame(array, schema=[str(n) for n in names], orient="row")
            return self._kinds.restore_polars(frame)
        return self._kinds.frame(array, names)

    def __repr__(self) -> str:
        return (
            f"<Oracle {self._black_box_name}: {self.n_calls} calls, {self.n_rows} rows, "
            f"{self.n_rows_cached} rows from the cache>"
        )


class FrameKinds:
    """Column types of a data frame, to which query points are converted.

    Points are arrays of floats. Columns of integers become integers again if all their numbers are
    whole, and columns of other floats, such as ``float32``, get their type. A black box that
    encodes booleans, or numbers in columns of type ``object``, accepts only values that it was
    fitted on, so points are moved to the nearest of these values.
    """

    def __init__(self, like: Any) -> None:
        #: Numbers of the observed values, the values, the missing value, and the type.
        self._observed: dict[Any, tuple[np.ndarray, np.ndarray, Any, Any]] = {}
        self._integer_types: dict[Any, Any] = {}
        self._float_types: dict[Any, Any] = {}
        #: Numeric types of a polars frame, and whether missing values are null (otherwise NaN).
        self._polars_types: dict[str, tuple[Any, bool]] = {}
        if type(like).__module__.partition(".")[0] == "polars" and hasattr(like, "get_columns"):
            self._polars_types = {
                column.name: (column.dtype, column.dtype.is_integer() or column.null_count() > 0)
                for column in like.get_columns()
                if column.dtype.is_integer() or column.dtype.is_float()
            }
        if not isinstance(like, pd.DataFrame) or not like.columns.is_unique:
            return
        for name, column in like.items():
            if pd.api.types.is_integer_dtype(column.dtype):
                self._integer_types[name] = column.dtype
                continue
            if pd.api.types.is_float_dtype(column.dtype):
                if column.dtype != np.float64:
                    self._float_types[name] = column.dtype
                continue
            if not (column.dtype == object or pd.api.types.is_bool_dtype(column.dtype)):
                continue
            values = column.dropna().drop_duplicates()
            try:
                numbers = values.to_numpy(dtype=float)
            except (TypeError, ValueError):
                continue  # a column of text
            if not len(values):
                continue
            order = np.argsort(numbers)
            observed_values = values.to_numpy(dtype=object)[order]
            entry = numbers[order], observed_values, first_missing(column), column.dtype
            self._observed[name] = entry

    def frame(self, array: np.ndarray, names: Sequence[Any]) -> pd.DataFrame:
        """Return points as a data frame with the original column types, see :meth:`restore`.

        Parameters
        ----------
        array : ndarray of shape (n_points, n_columns)
            The points.
        names : sequence
            Names of the columns.

        Returns
        -------
        DataFrame
            The points.
        """
        is_whole = np.zeros(len(names), dtype=bool)
        if array.dtype == np.float64:
            is_whole[:] = [self._integer_types.get(name) == np.int64 for name in names]
            is_whole[is_whole] = _are_whole(array[:, is_whole])
        if not is_whole.any():
            return self.restore(pd.DataFrame(array, columns=pd.Index(names)))
        # Columns of 64-bit integers are converted together, which is faster than one by one.
        frame = pd.DataFrame(array[:, is_whole].astype(np.int64))
        if not is_whole.all():
            order = np.argsort(np.argsort(is_whole, kind="stable"))
            frame = pd.concat([pd.DataFrame(array[:, ~is_whole]), frame], axis=1).iloc[:, order]
        frame.columns = pd.Index(names)
        return self.restore(frame, {names[j] for j in np.flatnonzero(is_whole).tolist()})

    def restore(self, frame: pd.DataFrame, converted: Collection[Any] = ()) -> pd.DataFrame:
        """Restore column types, and decode encoded columns to the nearest observed values.

        The integer columns named in `converted` already have their type.
        """
        for name, dtype in self._integer_types.items():
            if name in frame.columns and name not in converted:
                numbers = frame[name].to_numpy(dtype=float)
                is_missing = np.isnan(numbers)
                if not is_missing.any():
                    if _are_whole(numbers):
                        whole = numbers.astype(np.int64)
                        frame[name] = pd.Series(whole, dtype=dtype, index=frame.index)
                elif pd.api.types.is_extension_array_dtype(dtype):
                    numbers = np.where(is_missing, 0.0, numbers)
                    if _are_whole(numbers):
                        nullable = pd.Series(numbers.astype(np.int64), frame.index, dtype="Int64")
                        frame[name] = nullable.mask(is_missing).astype(dtype)
        for name, dtype in self._float_types.items():
            if name in frame.columns:
                frame[name] = frame[name].astype(dtype)
        for name, (numbers, values, missing, dtype) in self._observed.items():
            if name in frame.columns:
                middles = numbers[:-1] / 2 + numbers[1:] / 2
                points = frame[name].to_numpy(dtype=float, na_value=np.nan)
                is_missing = np.isnan(points)
                restored = values[np.searchsorted(middles, np.where(is_missing, 0.0, points))]
                restored[is_missing] = missing
                frame[name] = pd.Series(restored, dtype=dtype, index=frame.index)
        return frame

    def restore_polars(self, frame: Any) -> Any:
        """Restore numeric types and nulls of a polars frame, in which missing values are NaN."""
        for name, (dtype, has_nulls) in self._polars_types.items():
            if name not in frame.columns:
                continue
            column = frame[name].fill_nan(None) if has_nulls else frame[name]
            if dtype.is_float() or _are_whole(column.drop_nulls().to_numpy()):
                column = column.cast(dtype)
            frame = frame.with_columns(column)
        return frame


def first_missing(column: pd.Series) -> Any:
    """Return the first missing value of a column, such as None; NaN if there is none."""
    return next(iter(column[column.isna()].head(1)), np.nan)


def _are_whole(numbers: np.ndarray) -> np.ndarray:
    """Return for each column (or for one array) whether all its numbers are exact integers."""
    whole = (numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**53)
    return np.asarray(whole.all(axis=0))


def _as_array(X: Any) -> np.ndarray:
    """Convert rows to an array; columns of mixed types become floats if possible.

    Text is never converted: "01" and "1" are different codes.
    """
    array = np.asarray(X)
    if array.dtype == object and not any(isinstance(value, str) for value in array.flat):
        try:
            return array.astype(float)
        except (TypeError, ValueError):
            return array
    return array


def _content_key(X: Any) -> bytes | None:
    """Return a digest of the rows' content; None if they are neither numbers nor text."""
    content = hashlib.sha256()
    others = X
    if isinstance(X, pd.DataFrame):
        is_plain = np.array([isinstance(t, np.dtype) and t.kind in "fiub" for t in X.dtypes])
        content.update(is_plain.tobytes() + ",".join(map(str, X.columns)).encode())
        if is_plain.any() and not is_plain.all():
            # Columns of numbers are hashed together, which is faster than one by one.
            _update_digest(content, _as_array(X.loc[:, is_plain]))
            others = X.loc[:, ~is_plain]
    elif hasattr(X, "columns"):
        content.update(",".join(map(str, X.columns)).encode())
    array = _as_array(others)
    if array.dtype.kind not in "fiub" and isinstance(others, pd.DataFrame):
        # In columns of objects, 1 and "1" have the same hash in pandas.
        value_types = [_value_type(column) for _, column in others.items()]
        if {"mixed", "mixed-integer"} & {*value_types}:
            return None
        try:
            array = pd.util.hash_pandas_object(others, index=False).to_numpy()[:, None]
        except TypeError:  # a value cannot be hashed
            return None
        content.update(f"{value_types}".encode())
    if array.dtype.kind not in "fiub" or array.ndim != 2:
        return None
    _update_digest(content, array)
    return content.digest()


def _update_digest(content: Any, array: np.ndarray) -> None:
    """Add the content, type and shape of an array to a digest."""
    for start in range(0, len(array), _HASH_BLOCK_ROWS):  # limits the size of copies
        content.update(np.ascontiguousarray(array[start : start + _HASH_BLOCK_ROWS]).data)
    content.update(f"{array.shape}{array.dtype}".encode())


def _value_type(column: pd.Series) -> str:
    """Return pandas' name for the type of a column's values, such as "mixed"."""
    values = column.cat.categories if hasattr(column, "cat") else column
    return pd.api.types.infer_dtype(values) if values.dtype == object else str(values.dtype)


class CachedBlackBox(FrozenEstimator):
    """Fitted black box with a cache that is shared by estimators that query the same rows.

    A search passes it to all candidates; ``fit`` and ``clone`` do not change it.

    Parameters
    ----------
    estimator : estimator
        The fitted black box.

    Attributes
    ----------
    oracle : Oracle
        Counts the queries that reach the black box.
    cache : ResultCache
        Shared results, limited in size. They are not copied or pickled.
    fixed_rows : FixedRows
        Tables that the search does not modify. They are not copied or pickled.
    """

    def __init__(self, estimator: Any) -> None:
        super().__init__(estimator)
        self.oracle = Oracle(estimator)
        self.cache = ResultCache()
        self.fixed_rows = FixedRows()

    def __sklearn_tags__(self) -> Any:
        # Every check requests the tags; copying the tags of a frozen estimator would be slow.
        black_box = self.estimator
        while isinstance(black_box, FrozenEstimator):
            black_box = black_box.estimator
        tags = copy.copy(get_tags(black_box))
        tags._skip_test = True
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows, or return cached predictions."""
        return self.oracle.query(X)


def fixed_rows_of(estimator: Any) -> FixedRows:
    """Return the tables that a search does not modify; no tables if the black box is not cached."""
    return estimator.fixed_rows if isinstance(estimator, CachedBlackBox) else FixedRows()


# --- fast predictions of forests --------------------------------------------

# An extractor queries its black box hundreds of times, with a few hundred points each time. In such
# a call, a forest spends most of the time on checks, threads and the encoder. The functions below
# call its trees directly and in the same order, so predictions are bit-identical.

_CLASSIFIERS = (RandomForestClassifier, ExtraTreesClassifier)
_REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)


def quick_predict(estimator: Any, X: Any) -> np.ndarray:
    """Return ``estimator.predict(X)``, computed faster for forests.

    The faster computation applies to forests, alone or in a pipeline after a
    :class:`~sklearn.compose.ColumnTransformer` that one-hot encodes columns or passes them through.
    For all other black boxes, and for rows that a forest would reject, ``predict`` is called.

    Parameters
    ----------
    estimator : estimator
        The fitted black box.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, in the container of its training rows.

    Returns
    -------
    ndarray
        The predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> bool((quick_predict(forest, X) == forest.predict(X)).all())
    True
    """
    model = estimator.estimator if type(estimator) is FrozenEstimator else estimator
    first, forest = None, model
    if type(model) is Pipeline and len(model.steps) == 2:
        first, forest = model.steps[0][1], model.steps[1][1]
    if type(forest) in (*_CLASSIFIERS, *_REGRESSORS) and _is_supported(forest):
        rows = _forest_input(forest, X) if first is None else _transform_columns(first, X)
        if rows is not None and _accepts_rows(forest, rows):
            return _predict_by_trees(forest, rows)
    # Some models modify rows in place, so they get a copy.
    return one_dimension("The prediction of the black box", estimator.predict(own_rows(X)))


def _is_supported(forest: Any) -> bool:
    """Return whether a forest is fitted, has one output and one thread, and is not verbose."""
    fitted = hasattr(forest, "estimators_") and forest.n_outputs_ == 1
    return fitted and forest.n_jobs in (None, 1) and not forest.verbose


def _accepts_rows(forest: Any, rows: np.ndarray) -> bool:
    """Return whether the forest accepts the rows without an error."""
    if rows.shape[1] != forest.n_features_in_ or not len(rows) or np.isinf(rows).any():
        return False
    return not np.isnan(rows).any() or get_tags(forest.estimators_[0]).input_tags.allow_nan


def _predict_by_trees(forest: Any, rows: np.ndarray) -> np.ndarray:
    trees = forest.estimators_
    classifies = type(forest) in _CLASSIFIERS
    total = np.zeros((len(rows), forest.n_classes_ if classifies else 1))
    for tree in trees:
        total += tree.tree_.predict(rows)
    total /= len(trees)
    return forest.classes_.take(total.argmax(axis=1), axis=0) if classifies else total[:, 0]


def _forest_input(forest: Any, X: Any) -> np.ndarray | None:
    """Return the rows as input of a forest's trees; None if their columns do not match."""
    if isinstance(X, pd.DataFrame):
        if list(X.columns) != list(getattr(forest, "feature_names_in_", ())):
            return None
        plain = all(isinstance(t, np.dtype) and t.kind in "fiu" for t in X.dtypes)
        X = X.to_numpy(dtype=float) if plain else None
    elif hasattr(forest, "feature_names_in_"):
        return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiu":
        return None
    return _to_single_precision(X)


def _stack_numeric(columns: list[pd.Series]) -> np.ndarray | None:
    """Return numeric columns as an array; None if a column is not numeric."""
    if not all(isinstance(c.dtype, np.dtype) and c.dtype.kind in "fiu" for c in columns):
        return None
    return np.column_stack([column.to_numpy(dtype=float) for column in columns])


def _to_single_precision(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # overflow to infinity raises an error later
        return np.ascontiguousarray(numbers, dtype=np.float32)


def _transform_columns(transformer: Any, X: Any) -> np.ndarray | None:
    """Return the rows transformed by a column transformer; None if it is not supported."""
    if type(transformer) is not ColumnTransformer or not isinstance(X, pd.DataFrame):
        return None
    if list(X.columns) != list(getattr(transformer, "feature_names_in_", ())):
        return None
    blocks = []
    for _, part, columns in transformer.transformers_:
        if isinstance(columns, list) and not columns:
            continue
        selected = _select_columns(X, columns)
        if selected is None:
            return None
        if type(part) is OneHotEncoder:
            block = _one_hot_columns(part, selected)
        elif part == "passthrough" or (type(part) is FunctionTransformer and part.func is None):
            block = _stack_numeric(selected)
        else:
            return None
        if block is None:
            return None
        blocks.append(block)
    weights = transformer.transformer_weights
    return _to_single_precision(np.hstack(blocks)) if blocks and not weights else None


def _select_columns(X: pd.DataFrame, columns: Any) -> list[pd.Series] | None:
    """Select columns by a list of names or indices; return None for other selectors."""
    kinds = {type(column) for column in columns} if isinstance(columns, list) else set()
    if not X.columns.is_unique or kinds not in ({str}, {int}):
        return None
    return [X[column] if kinds == {str} else X.iloc[:, column] for column in columns]


def _one_hot_columns(encoder: OneHotEncoder, columns: list[pd.Series]) -> np.ndarray | None:
    """Return one-hot columns, 0 for unseen values; None if the encoder has other settings."""
    merges = encoder.min_frequency is not None or encoder.max_categories is not None
    if encoder.handle_unknown != "ignore" or encoder.drop is not None or merges:
        return None
    sizes = [len(category_values) for category_values in encoder.categories_]
    n_rows, start = len(columns[0]), 0
    result, rows = np.zeros((n_rows, sum(sizes))), np.arange(n_rows)
    for category_values, column in zip(encoder.categories_, columns, strict=True):
        labels, values = category_values.tolist(), column.to_numpy(dtype=object).tolist()
        if any(value is pd.NA for value in (*labels, *values)):
            return None
        # For a few hundred rows, a dict is faster than vectorized lookups.
        code_of = {value: code for code, value in enumerate(labels) if value == value}
        nan_code = len(code_of) if len(code_of) < len(labels) else -1  # NaN comes last
        codes = np.array(
            [code_of.get(v, -1) if v == v else nan_code for v in values], dtype=np.intp
        )
        is_known = codes >= 0
        result[rows[is_known], start + codes[is_known]] = 1.0
        start += len(category_values)
    return result
