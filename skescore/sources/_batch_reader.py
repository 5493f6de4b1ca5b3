"""Reader of batches of several libraries, which converts their columns to pandas."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import check_only_numbers, one_dimension, python_value
from skescore.extractors import Column, is_categorical
from skescore.metrics._rule_counts import RowPasses
from skescore.rules import RuleSet
from skescore.rules._conditions import as_numbers
from skescore.rules._row_table import without_null_categories
from skescore.sources._encoding import EncodedRows
from skescore.sources._scale import Scale
from skescore.sources._tables import ColumnError, SourceError, check_columns, check_weights

Floats = NDArray[np.float64]

#: Maximum number of different categories, or of labels in classification.
MAX_VALUES = 1000


@dataclass(frozen=True)
class ColumnSummary:
    """Range or values of a column, and its number of missing values."""

    low: float = math.inf
    high: float = -math.inf
    values: frozenset[Any] = frozenset()
    n_missing: int = 0

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        values = self.values if len(self.values) > MAX_VALUES else self.values | other.values
        return ColumnSummary(
            min(self.low, other.low),
            max(self.high, other.high),
            values,
            self.n_missing + other.n_missing,
        )

    @property
    def is_numeric(self) -> bool:
        """Whether the column has no categories."""
        return not self.values

    @classmethod
    def of_numbers(cls, numbers: Floats) -> ColumnSummary:
        """Summarize a numeric column in which NaN is missing."""
        missing_mask = np.isnan(numbers)
        present = numbers[~missing_mask] if missing_mask.any() else numbers
        if not len(present):
            return cls(n_missing=int(missing_mask.sum()))
        # Adding 0 makes zeros positive; sources differ in which of -0.0 and 0.0 is smallest.
        low, high = float(present.min()) + 0.0, float(present.max()) + 0.0
        return cls(low, high, n_missing=int(missing_mask.sum()))

    @classmethod
    def of_values(cls, column: pd.Series) -> ColumnSummary:
        """Summarize a column of categories or labels."""
        n_missing = int(column.isna().sum())
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = np.unique(column.cat.codes.to_numpy())
            values = [column.cat.categories[code] for code in codes if code >= 0]
        else:
            values = column.dropna().unique().tolist()
        unique_values = frozenset(map(python_value, values[: MAX_VALUES + 1]))
        return cls(values=unique_values, n_missing=n_missing)


@dataclass(frozen=True)
class BatchReader:
    """Reader of the columns of Arrow, pandas and polars batches.

    Parameters
    ----------
    name : str
        Name of the source in messages.
    features : tuple of str
        Names of the features.
    target : str, optional
        Column of labels.
    weight : str, optional
        Column of weights.
    black_box : estimator or callable, optional
        Model that predicts the labels from the features if there is no target.
    """

    name: str
    features: tuple[str, ...]
    target: str | None
    weight: str | None
    black_box: Any = None

    @property
    def columns(self) -> list[str]:
        """Columns to read."""
        label_columns = (name for name in (self.target, self.weight) if name is not None)
        return list(dict.fromkeys([*self.features, *label_columns]))

    def check(self, columns: Sequence[str]) -> None:
        """Raise a ColumnError if a column does not exist."""
        check_columns(columns, self.features, self.target, self.weight, self.name)

    def frame(self, batch: Any) -> pd.DataFrame:
        """Return the rows with positive weight as a DataFrame with categories."""
        columns = {}
        if _is_arrow(batch):
            self.check(batch.schema.names)
            for name in self.columns:
                columns[name] = _series_from_arrow(batch.column(name))
        else:
            batch = self._check_frame(batch)
            for name in self.columns:
                column = batch[name]
                if not hasattr(column, "iloc"):
                    column = _series_from_polars(column)
                elif str(column.dtype).startswith("dictionary<"):  # pandas with Arrow types
                    column = _series_from_arrow(column.array.__arrow_array__())
                # Columns are aligned by position, not by index.
                columns[name] = column.reset_index(drop=True)
        frame = pd.DataFrame(columns, copy=False)
        if self.target is not None and _are_decimals(frame[self.target]):
            frame[self.target] = frame[self.target].map(plain_value)  # rules have no Decimal labels
        if self.weight is not None:
            weights = self._numbers(frame[self.weight])
            if (weights == 0).any():
                frame = frame[weights != 0]
        return frame

    def _check_frame(self, batch: Any) -> Any:
        """Return a frame with its column names as strings, or raise a ColumnError."""
        if not hasattr(batch, "columns"):
            raise ColumnError(
                f"A batch must be an Arrow batch or table, or a pandas or polars frame, got "
                f"{type(batch).__name__}."
            )
        self.check(list(map(str, batch.columns)))
        return with_text_names(batch)

    def _check_labels(self, labels: Any) -> None:
        """Raise a ColumnError if labels are dates, bytes or other objects."""
        kind: str = np.asarray(labels[:0].to_numpy()).dtype.kind
        if kind == "O" and not isinstance(labels.dtype, pd.CategoricalDtype):
            inferred_kind = pd.api.types.infer_dtype(labels.to_numpy(), skipna=True)
            if inferred_kind.startswith(("date", "time", "bytes", "period", "interval", "complex")):
                kind = inferred_kind
        if kind in "biufOUT":
            return
        raise ColumnError(
            f"The target {self.target!r} of {self.name} must hold strings, numbers or booleans, "
            f"but its type is {labels.dtype}. Convert it to a string or a number."
        )

    def labels(self, frame: pd.DataFrame) -> pd.Series:
        """Return the labels: the target, or the predictions of the black box."""
        if self.target is not None:
            self._check_labels(frame[self.target])
            return frame[self.target]
        return pd.Series(self._predict(frame[list(self.features)]), index=frame.index)

    def _predict(self, features: Any) -> NDArray[Any]:
        predict = getattr(self.black_box, "predict", self.black_box)
        return one_dimension("The output of black_box", predict(features))

    def _numbers(self, column: pd.Series) -> Floats:
        """Convert a column to floats, with NaN for missing values."""
        try:
            if column.dtype.kind in "mMSV":
                raise TypeError(f"type {column.dtype}")
            if column.dtype.kind == "O":  # a text is not a number, even if it spells one
                return as_numbers(np.asarray(column.to_numpy()))
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ColumnError(
                f"Column {column.name!r} of {self.name} must hold numbers or categories ({error}). "
                "Convert it, or exclude it from features=..."
            ) from error

    def rule_rows(self, batch: Any, ruleset: RuleSet) -> RowPasses | None:
        """Return the rows with positive weight for counts of rules; None if there are none."""
        if _is_arrow(batch):
            self.check(batch.schema.names)
        frame = self._check_frame(_frame_from_arrow(batch) if _is_arrow(batch) else batch)
        if self.target is not None:
            self._check_labels(frame[self.target])
        weights = None
        if self.weight is not None:
            try:
                check_only_numbers("sample_weight", np.asarray(frame[self.weight]))
            except TypeError as error:
                raise ColumnError(
                    f"The weights {self.weight!r} of {self.name} must be numbers ({error})"
                ) from error
            weights = np.asarray(frame[self.weight], dtype=float)
        if weights is not None and (weights == 0).any():
            positive_rows = np.flatnonzero(weights)
            weights = weights[positive_rows]
            frame = frame.iloc[positive_rows] if hasattr(frame, "iloc") else frame[positive_rows]
        if not len(frame):
            return None
        if self.target is None:
            y = self._predict(frame[list(self.features)])
        else:
            y = np.asarray(frame[self.target].to_numpy())
            if _are_decimals(y):  # rules have no Decimal labels
                y = as_numbers(y)
        columns = set(map(str, frame.columns))
        absent_names = [name for name in ruleset.feature_names if name not in columns]
        if absent_names:  # no rule uses these columns, but the rule set expects all of them
            nan_columns = {name: np.full(len(frame), np.nan) for name in absent_names}
            add_columns = frame.assign if hasattr(frame, "assign") else frame.with_columns
            frame = add_columns(**nan_columns)
        return RowPasses(ruleset, frame, y, weights)

    def summarize(self, batch: Any, task: str) -> tuple[int, list[ColumnSummary]]:
        """Return the number of rows and summaries of the features, the labels and the weights."""
        frame = self.frame(batch)
        labels = self.labels(frame) if len(frame) else pd.Series(dtype=float)
        summaries = [
            ColumnSummary.of_values(frame[name])
            if is_categorical(frame[name]) or _holds_categories(frame[name])
            else ColumnSummary.of_numbers(self._numbers(frame[name]))
            for name in self.features
        ]
        if task == "classification":
            summaries.append(ColumnSummary.of_values(labels))
        else:
            summaries.append(ColumnSummary.of_numbers(self._numbers(labels)))
        weight = ColumnSummary()
        if self.weight is not None:
            weight = ColumnSummary.of_numbers(self._numbers(frame[self.weight]))
        return len(frame), [*summaries, weight]

    def count_labels(self, batch: Any, task: str) -> Counter[Any]:
        """Count the rows of each class; in regression, count all rows under the key None."""
        frame = self.frame(batch)
        if self.weight is not None and len(frame):
            weights = self._numbers(frame[self.weight])
            n_missing = int(np.isnan(weights).sum())
            check_weights(self.name, n_missing, float(weights.min()), float(weights.max()))
        labels = self.labels(frame)
        if labels.isna().any():
            raise SourceError(
                f"The target of {self.name} must hold a label in every row. Drop such rows first."
            )
        if task == "regression":
            return Counter({None: len(labels)})
        return Counter({python_value(k): int(n) for k, n in labels.value_counts().items() if n})

    def draw(self, batch: Any, probabilities: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Draw rows of a batch, each with the probability of its class.

        The random numbers are seeded with the first rows of the batch, so they depend neither on
        the order of the batches nor on the process that reads them.
        """
        frame = self.frame(batch)
        first_rows = frame.head(64)
        try:
            hashes = pd.util.hash_pandas_object(first_rows, index=False)
        except TypeError:  # lists have no hashes
            hashes = pd.util.hash_pandas_object(first_rows.astype(str), index=False)
        rng = np.random.default_rng([seed, len(frame), zlib.crc32(hashes.to_numpy().tobytes())])
        probability: Any = probabilities.get(None)
        if probability is None:
            labels = self.labels(frame).astype(object).map(python_value)
            probability = labels.map(dict(probabilities)).to_numpy(dtype=float)
        drawn = frame[rng.random(len(frame)) < probability]
        texts = {
            name: drawn[name].astype(object)
            for name in drawn.columns
            if isinstance(drawn[name].dtype, pd.CategoricalDtype)
        }
        return drawn.assign(**texts)

    def encode(
        self, batch: Any, columns: Sequence[Column], scale: Scale, nodes: RuleSet | None
    ) -> EncodedRows:
        """Encode the rows of a batch."""
        frame = self.frame(batch)
        arrays = [
            self._numbers(frame[c.name])
            if c.values is None
            else _codes(frame[c.name], c.values, self.name)
            for c in columns
        ]
        label: NDArray[Any] = np.zeros(len(frame))
        if scale.with_labels and len(frame):
            label = self._encode_labels(self.labels(frame), scale)
        weight = None if self.weight is None else self._numbers(frame[self.weight])
        node = None
        if nodes is not None:
            used_names = {self.features[j] for j in nodes.used_features}
            values_by_name = {
                column.name: values if column.values is None else _decode(values, column)
                for column, values in zip(columns, arrays, strict=True)
                if column.name in used_names
            }
            node = _assign_nodes(nodes, values_by_name, len(frame))
        measured = [self._numbers(frame[m.name]) for m in scale.measured]
        return EncodedRows(arrays, label, weight, node, measured)

    def _encode_labels(self, labels: pd.Series, scale: Scale) -> NDArray[Any]:
        if scale.classes is None:
            return self._numbers(labels)
        codes = _codes(labels, scale.classes, self.name)
        if (codes == len(scale.classes)).any():
            raise SourceError(f"{self.name} changed while it was read: labels are missing.")
        return codes


def with_text_names(frame: Any) -> Any:
    """Return a frame with column names as strings; only pandas and dask have others."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.rename(columns={name: str(name) for name in frame.columns})


def _is_arrow(batch: Any) -> bool:
    return hasattr(batch, "schema") and hasattr(batch, "num_rows")


def _assign_nodes(
    nodes: RuleSet, values_by_name: Mapping[str, Any], n_rows: int
) -> NDArray[np.intp]:
    """Return the node of each row, from the columns that nodes use."""
    if not values_by_name or not n_rows:
        return np.zeros(n_rows, dtype=np.intp)
    nan_column = np.broadcast_to(np.nan, n_rows)
    frame = pd.DataFrame(
        {name: values_by_name.get(name, nan_column) for name in nodes.feature_names}, copy=False
    )
    return np.asarray(nodes.assign(frame))


def _decode(codes: NDArray[Any], column: Column) -> NDArray[Any]:
    assert column.values is not None
    values = np.empty(len(column.values) + 1, dtype=object)
    values[:] = [*column.values, None]
    return values[codes]


def _frame_from_arrow(batch: Any) -> pd.DataFrame:
    batch = without_null_categories(batch)
    frame = batch.to_pandas()
    for position, kind in enumerate(batch.schema.types):
        if re.fullmatch(r"u?int64", str(kind)) and _are_rounded(batch.column(position)):
            exact = _exact_integers(batch.column(position))
            frame.isetitem(position, exact.set_axis(frame.index))
    return frame


def _are_rounded(column: Any) -> bool:
    """Return whether integers next to missing values would be rounded to floats."""
    if not column.null_count:
        return False
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py().values()
    return any(end is not None and abs(end) > 2**53 for end in ends)


def _series_from_polars(column: Any) -> pd.Series:
    if column.null_count() and column.dtype.is_integer():
        ends = column.min() or 0, column.max() or 0
        if max(map(abs, ends)) > 2**53:  # NumPy would round them to floats
            dtype = "UInt64" if column.dtype.is_unsigned_integer() else "Int64"
            return pd.Series(column.to_list(), dtype=dtype)
    return pd.Series(column.to_numpy())


def _exact_integers(column: Any) -> pd.Series:
    dtype = "UInt64" if str(column.type).startswith("u") else "Int64"
    return pd.Series(column.to_pylist(), dtype=dtype)


def _series_from_arrow(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return pd.Series(column.to_pandas(), dtype=object)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.dictionary_encode().to_pandas()
    if pa.types.is_integer(kind) and _are_rounded(column):
        return _exact_integers(column)
    return column.to_pandas()


def _codes(column: pd.Series, values: Sequence[Any], source: str) -> NDArray[np.intp]:
    """Return the index of each value of a column; missing values have the index after the last."""
    index = pd.Index(list(values), dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        category_codes = index.get_indexer(pd.Index(column.cat.categories, dtype=object))
        codes = np.append(category_codes, len(values))[column.cat.codes.to_numpy()]
    elif column.dtype.kind in "iuf" and _are_exact_floats(values):
        sorted_values = np.array(values, dtype=float)
        numbers = column.to_numpy(dtype=float)
        codes = np.searchsorted(sorted_values, numbers)
        in_range = codes < len(sorted_values)
        codes[in_range] = np.where(
            sorted_values[codes[in_range]] == numbers[in_range], codes[in_range], -1
        )
        codes[(codes == len(sorted_values)) & ~np.isnan(numbers)] = -1
    else:
        codes = index.get_indexer(column.to_numpy(dtype=object))
        codes[pd.isna(column).to_numpy()] = len(values)
    if (codes < 0).any():
        raise SourceError(
            f"{source} changed while it was read: it now holds values that it did not hold at "
            "first. Read a table that does not change, or a snapshot."
        )
    return codes


def _are_exact_floats(values: Sequence[Any]) -> bool:
    """Return whether all values are numbers that floats represent exactly."""
    return len(values) > 0 and all(isinstance(v, int | float) and abs(v) <= 2**53 for v in values)


def _holds_categories(column: pd.Series) -> bool:
    """Return whether a column holds only strings or only booleans, apart from missing values.

    As in Parquet, strings are categories even if they spell numbers.
    """
    if column.dtype.kind in "biufcmM":
        return False
    return pd.api.types.infer_dtype(column, skipna=True) in ("string", "boolean")


def _are_decimals(values: Any) -> bool:
    """Return whether all values, apart from missing ones, are of the type Decimal."""
    return values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=True) == "decimal"


def plain_value(value: Any) -> Any:
    """Convert a value of a database or of NumPy to a plain Python value."""
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == int(value) else float(value)
    return python_value(value)
