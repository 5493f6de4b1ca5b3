"""The one place that queries the black box, and the cache of what it predicted."""

from __future__ import annotations

import copy
import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

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

from skescore._deadline import check_deadline
from skescore._validation import one_dimension, own_rows
from skescore.black_boxes import explained_refusal
from skescore.rules import convert_rows

#: What one black box's cache may hold, and what a key and its objects cost beside their arrays.
_MOST_BYTES, _OVERHEAD = 32 * 2**20, 512
#: What an oracle's cache of predictions may hold.
_MOST_BYTES_OF_PREDICTIONS = 2**30
_HASHED_ROWS = 65536


class ResultCache:
    """A cache bounded in bytes, of which the least recently used results leave first.

    Copies and pickles start empty: results can be worked out again, and would only make what is
    sent to other processes large.

    Parameters
    ----------
    most_bytes : int, default=33554432
        Bytes that all results together may take; none may take more than a quarter.

    Examples
    --------
    >>> cache = ResultCache(most_bytes=4000)
    >>> cache.put("a", 1); cache.put("b", (2, 3))
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    (1, (2, 3), None)
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.n_bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()  # threads may search with one black box

    def get(self, key: Hashable) -> Any:
        """Give what is kept under a key, or None."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a result, in place of an earlier one of that key, unless it is too large."""
        size = _bytes_of(value) + _OVERHEAD
        with self._lock:
            self.n_bytes -= self._kept.pop(key, (None, 0))[1]
            if size > self.most_bytes // 4:
                return
            self._kept[key] = value, size
            self.n_bytes += size
            while self.n_bytes > self.most_bytes:
                self.n_bytes -= self._kept.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.most_bytes,)


def _bytes_of(value: Any) -> int:
    """Bytes of the arrays in a result: of an array, or of all in a tuple or an object's fields."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(_bytes_of, value))
    return sum(map(_bytes_of, vars(value).values())) if hasattr(value, "__dict__") else 0


class Oracle:
    """Queries a black box in batches, caches its predictions and counts the queries.

    Parameters
    ----------
    estimator : estimator
        A fitted black box with ``predict``.
    like : array-like or DataFrame, optional
        Rows in the container that the extractor was given. It decides what the black box is shown
        when the black box itself does not say: one with ``feature_names_in_`` gets a DataFrame
        with those columns, a scikit-learn one fitted without names gets an array, any other gets
        a frame if this is one, else the rows as they come.
    feature_names : sequence of str, optional
        Column names for arrays that must become frames.
    batch_size : int, optional
        Most rows in one call; by default all at once.

    Attributes
    ----------
    n_calls : int
        Calls of the black box's ``predict``.
    n_rows : int
        Rows in those calls.
    n_rows_cached : int
        Rows whose predictions came from the cache.
    seconds : float
        Time spent in those calls.
    first_query : bytes or None
        Digest of the rows of the first query: an extractor's training rows. None if they are
        neither numbers nor text.
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
        self._cache = ResultCache(_MOST_BYTES_OF_PREDICTIONS)
        self._feature_names = None if feature_names is None else list(feature_names)
        self._names = getattr(estimator, "feature_names_in_", None)
        self._library = type(like).__module__.partition(".")[0]
        self._array_only = self._names is None and hasattr(estimator, "n_features_in_")
        if self._names is None and not self._array_only and hasattr(like, "columns"):
            self._names = self._feature_names or list(like.columns)
        self._kinds = FrameKinds(like)

    def query(self, X: Any, *, cache: bool = True) -> np.ndarray:
        """Predict rows, one label or number per row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; columns of a frame that the black box knows by name may come in any order.
        cache : bool, default=True
            False for points that nobody will query again.

        Raises
        ------
        ValueError
            If the black box does not give one prediction per row.
        """
        X = convert_rows(X)
        X = X if hasattr(X, "columns") else np.asarray(X)
        return self._query(X, _content_key(X) if cache else None, cache)

    def _query(self, X: Any, key: bytes | None, cache: bool) -> np.ndarray:
        check_deadline()
        if self.n_calls == 0:
            self.first_query = key
        cached = None if key is None else self._cache.get(key)
        if cached is not None:
            self.n_rows_cached += len(X)
            return np.array(cached)
        converted = self._shown(X)
        n_rows = len(converted)
        size = self.batch_size or max(1, n_rows)
        # Rows that are shown as they are and all at once need no second digest further on.
        key_of_all = key if converted is X and n_rows <= size else None
        parts = [
            self._call(converted, start, start + size, cache, key_of_all)
            for start in range(0, n_rows, size)
        ]
        predictions = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if key is not None:
            self._cache.put(key, predictions.copy())
        return predictions

    def count_again(self, n_rows: int) -> None:
        """Count a query whose predictions are known already.

        What an extractor counts must not depend on what others have queried before.

        Parameters
        ----------
        n_rows : int
            Rows that :meth:`query` would have been given.
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
        # A pandas frame with numbers as row labels could be sliced by label otherwise.
        rows = converted.iloc[start:stop] if hasattr(converted, "iloc") else converted[start:stop]
        begin = time.perf_counter()
        if isinstance(self.estimator, CachedBlackBox):
            inner = self.estimator.oracle
            if key_of_all is None:
                predictions = inner.query(rows, cache=cache)
            else:
                predictions = inner._query(rows, key_of_all, cache)
        else:
            with explained_refusal(self.estimator, rows):
                predictions = quick_predict(self.estimator, rows)
        self.seconds += time.perf_counter() - begin
        self.n_calls += 1
        self.n_rows += len(rows)
        if predictions.ndim == 2 and predictions.shape[1] == 1:
            predictions = predictions[:, 0]
        if predictions.shape != (len(rows),):
            raise ValueError(
                f"The black box {self._black_box_name} must predict one label or number per row, "
                f"but for {len(rows)} rows it gave an array of shape {predictions.shape}. Extract "
                "rules for one output at a time: select_output(model, 0)."
            )
        return predictions

    def _shown(self, X: Any) -> Any:
        """Put the rows into the container that the black box was fitted on."""
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
        # LightGBM writes the blanks in names as underscores.
        written = {str(column).replace(" ", "_"): column for column in columns}
        if missing and len(written) == len(columns) and written.keys() >= set(names):
            return X[[written[name] for name in names]]
        if missing:
            raise ValueError(
                f"The black box {self._black_box_name} was fitted on the columns "
                f"{names}, but X has {columns}: {missing} "
                f"{'is' if len(missing) == 1 else 'are'} missing. Rename the columns, or pass "
                "an array with the black box's columns in order."
            )
        return X[names]

    def _as_frame(self, array: np.ndarray, names: list[Any]) -> Any:
        """Name the columns of an array: as the extractor's rows were named, if they were."""
        if self._feature_names is not None:
            names = self._feature_names
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(
                f"X must have one column for each of {[str(n) for n in names]}, got an array of "
                f"shape {array.shape}."
            )
        if self._library == "polars":
            import polars

            return polars.DataFrame(array, schema=[str(n) for n in names], orient="row")
        return self._kinds.restored(pd.DataFrame(array, columns=names))

    def __repr__(self) -> str:
        return (
            f"<Oracle {self._black_box_name}: {self.n_calls} calls, {self.n_rows} rows, "
            f"{self.n_rows_cached} rows from the cache>"
        )


class FrameKinds:
    """The columns of a pandas frame that hold truth values or Python objects.

    A black box that encodes such columns knows their values and no numbers in between, so that
    points drawn there are shown as the nearest value that occurred.
    """

    def __init__(self, like: Any) -> None:
        self._known: dict[Any, tuple[np.ndarray, np.ndarray, Any]] = {}
        if not isinstance(like, pd.DataFrame) or not like.columns.is_unique:
            return
        for name, column in like.items():
            if not (column.dtype == object or pd.api.types.is_bool_dtype(column.dtype)):
                continue
            values = column.drop_duplicates()
            try:
                numbers = values.to_numpy(dtype=float)
            except (TypeError, ValueError):
                continue  # a categorical column
            order = np.argsort(numbers)
            observed_values = values.to_numpy(dtype=object)[order]
            self._known[name] = (numbers[order], observed_values, column.dtype)

    def restored(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Exchange numbers for the nearest of the values that occurred."""
        for name, (numbers, values, dtype) in self._known.items():
            if name in frame.columns:
                middles = numbers[:-1] / 2 + numbers[1:] / 2
                nearest = np.searchsorted(middles, frame[name].to_numpy(dtype=float))
                frame[name] = pd.Series(values[nearest], dtype=dtype, index=frame.index)
        return frame


def _as_array(X: Any) -> np.ndarray:
    """Make an array of rows; columns of several types become floats where they can.

    Texts never do: "01" and "1" are two codes.
    """
    array = np.asarray(X)
    if array.dtype == object and not any(isinstance(value, str) for value in array.flat):
        try:
            return array.astype(float)
        except (TypeError, ValueError):
            return array
    return array


def _content_key(X: Any) -> bytes | None:
    """Digest the rows' content; None where they are neither numbers nor text."""
    array = _as_array(X)
    kinds: list[str] = []
    if array.dtype.kind not in "fiub" and isinstance(X, pd.DataFrame):
        # pandas gives 1 and "1" one hash where columns hold objects.
        kinds = [_kind(column) for _, column in X.items()]
        if {"mixed", "mixed-integer"} & {*kinds}:
            return None
        try:
            array = pd.util.hash_pandas_object(X, index=False).to_numpy()[:, None]
        except TypeError:  # something in it has no hash
            return None
    if array.dtype.kind not in "fiub" or array.ndim != 2:
        return None
    names = ",".join(map(str, X.columns)) if hasattr(X, "columns") else ""
    digest = hashlib.sha256()
    for start in range(0, len(array), _HASHED_ROWS):  # a column-wise array is not copied as a whole
        digest.update(np.ascontiguousarray(array[start : start + _HASHED_ROWS]).data)
    digest.update(f"{array.shape}{array.dtype}{kinds}{names}".encode())
    return digest.digest()


def _kind(column: pd.Series) -> str:
    """What the objects of a column are: "mixed" ones are of several types, not all numbers."""
    values = column.cat.categories if hasattr(column, "cat") else column
    return pd.api.types.infer_dtype(values) if values.dtype == object else str(values.dtype)


class CachedBlackBox(FrozenEstimator):
    """A fitted black box that is queried once for the same rows, however many estimators query.

    A search hands it to all its candidates: ``fit`` and ``clone`` leave it as it is.

    Parameters
    ----------
    estimator : estimator
        The fitted black box.

    Attributes
    ----------
    oracle : Oracle
        Counts what really reached the black box.
    cache : ResultCache
        What estimators that query the same rows have worked out for each other. Bounded; left
        behind by pickles and copies.
    """

    def __init__(self, estimator: Any) -> None:
        super().__init__(estimator)
        self.oracle = Oracle(estimator)
        self.cache = ResultCache()

    def __sklearn_tags__(self) -> Any:
        # As of any frozen estimator, but without the deep copy: every check of scikit-learn's asks.
        tags = copy.copy(get_tags(self.estimator))
        tags._skip_test = True
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows, from the cache where they have been queried before."""
        return self.oracle.query(X)


# --- forests without what their predict costs per call --------------------------------------------

# An extractor queries its black box hundreds of times for a few hundred points, and a forest of 100
# trees spends nearly all of such a call on checks, threads and the encoder in front of it. Here its
# trees are asked themselves, in the same order, so that predictions are the same to the last bit.

_CLASSIFIERS = (RandomForestClassifier, ExtraTreesClassifier)
_REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)


def quick_predict(estimator: Any, X: Any) -> np.ndarray:
    """Predict rows: what ``estimator.predict(X)`` gives, sooner where it is a forest.

    A forest by itself, or behind a :class:`~sklearn.compose.ColumnTransformer` that turns columns
    into 0/1 columns and lets others through, is looked into; any other black box is just called, as
    is one whose rows would have to be complained about.

    Parameters
    ----------
    estimator : estimator
        The fitted black box.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, in the container that it was fitted on.

    Returns
    -------
    ndarray
        Its predictions.

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
    if type(forest) in (*_CLASSIFIERS, *_REGRESSORS) and _is_simple(forest):
        rows = _numbers(forest, X) if first is None else _encoded(first, X)
        if rows is not None and _is_sound(forest, rows):
            return _of_trees(forest, rows)
    # Some models work in place, on rows that are the caller's or that others will ask about.
    return one_dimension("What the black box predicts", estimator.predict(own_rows(X)))


def _is_simple(forest: Any) -> bool:
    """Whether one output is predicted, by one thread, of which nothing is told."""
    fitted = hasattr(forest, "estimators_") and forest.n_outputs_ == 1
    return fitted and forest.n_jobs in (None, 1) and not forest.verbose


def _is_sound(forest: Any, rows: np.ndarray) -> bool:
    """Whether the forest would take the rows without complaint."""
    if rows.shape[1] != forest.n_features_in_ or not len(rows) or np.isinf(rows).any():
        return False
    return not np.isnan(rows).any() or get_tags(forest.estimators_[0]).input_tags.allow_nan


def _of_trees(forest: Any, rows: np.ndarray) -> np.ndarray:
    trees = forest.estimators_
    classifies = type(forest) in _CLASSIFIERS
    total = np.zeros((len(rows), forest.n_classes_ if classifies else 1))
    for tree in trees:
        total += tree.tree_.predict(rows)
    total /= len(trees)
    return forest.classes_.take(total.argmax(axis=1), axis=0) if classifies else total[:, 0]


def _numbers(forest: Any, X: Any) -> np.ndarray | None:
    """The rows as a forest's trees take them; None if they are not what it was fitted on."""
    if isinstance(X, pd.DataFrame):
        if list(X.columns) != list(getattr(forest, "feature_names_in_", ())):
            return None
        plain = all(isinstance(t, np.dtype) and t.kind in "fiu" for t in X.dtypes)
        X = X.to_numpy(dtype=float) if plain else None
    elif hasattr(forest, "feature_names_in_"):
        return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiu":
        return None
    return _floats(X)


def _numeric(columns: list[pd.Series]) -> np.ndarray | None:
    """The numbers of some columns; None if they hold anything else."""
    if not all(isinstance(c.dtype, np.dtype) and c.dtype.kind in "fiu" for c in columns):
        return None
    return np.column_stack([column.to_numpy(dtype=float) for column in columns])


def _floats(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large is infinite, and complained about
        return np.ascontiguousarray(numbers, dtype=np.float32)


def _encoded(transformer: Any, X: Any) -> np.ndarray | None:
    """The rows as a column transformer gives them; None if that is not known here."""
    if type(transformer) is not ColumnTransformer or not isinstance(X, pd.DataFrame):
        return None
    if list(X.columns) != list(getattr(transformer, "feature_names_in_", ())):
        return None
    blocks = []
    for _, part, columns in transformer.transformers_:
        if isinstance(columns, list) and not columns:
            continue
        selected = _selected(X, columns)
        if selected is None:
            return None
        if type(part) is OneHotEncoder:
            block = _one_hot(part, selected)
        elif part == "passthrough" or (type(part) is FunctionTransformer and part.func is None):
            block = _numeric(selected)
        else:
            return None
        if block is None:
            return None
        blocks.append(block)
    weights = transformer.transformer_weights
    return _floats(np.hstack(blocks)) if blocks and not weights else None


def _selected(X: pd.DataFrame, columns: Any) -> list[pd.Series] | None:
    """Columns by a list of names or of indices; None for what else they may be selected by."""
    kinds = {type(column) for column in columns} if isinstance(columns, list) else set()
    if not X.columns.is_unique or kinds not in ({str}, {int}):
        return None
    return [X[column] if kinds == {str} else X.iloc[:, column] for column in columns]


def _one_hot(encoder: OneHotEncoder, columns: list[pd.Series]) -> np.ndarray | None:
    """Columns of 0 and 1, all 0 for what was never seen; None if the encoder does otherwise."""
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
        # A dict is quicker for some hundred rows than what larger tables need.
        code_of = {value: at for at, value in enumerate(labels) if value == value}
        gap = len(code_of) if len(code_of) < len(labels) else -1  # NaN comes last
        codes = np.array([code_of.get(v, -1) if v == v else gap for v in values], dtype=np.intp)
        is_known = codes >= 0
        result[rows[is_known], start + codes[is_known]] = 1.0
        start += len(category_values)
    return result
