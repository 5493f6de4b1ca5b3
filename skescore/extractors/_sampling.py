"""Query rows: generated rows that the black box labels, in addition to the training rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from skescore._random import combine, draw_seed
from skescore._rows import content_order
from skescore._validation import check_integer
from skescore.extractors._input import CategoryEncoder, check_columns, frame_column, is_categorical
from skescore.extractors._oracle import CachedBlackBox, FrameKinds, Oracle
from skescore.extractors._out_of_fold import OUT_OF_FOLD
from skescore.rules import convert_rows

#: Names of the generators of query rows.
SAMPLINGS = ("permute", "permute-near", "permute-mixed", "interpolate", "boundary", "uniform")
#: Default number of query rows.
N_QUERIES = 8000
#: Probability that a generated row takes a value from its second parent.
_EXCHANGE_PROBABILITY = 0.5
#: Number of nearest rows from which the second parent of a generated row is drawn.
_N_PARTNERS = 10
#: Bisection steps towards the decision boundary.
_N_BISECTIONS = 3
#: Largest number of rows among which neighbors are searched.
_MAX_NEIGHBORS = 5000
#: Independent streams of random numbers per row.
_FIRST, _SECOND, _POSITION, _COLUMNS = range(4)

Sampling = str | Callable[..., Any] | None


def check_sampling(sampling: Any, n_queries: Any) -> None:
    """Raise an error unless `sampling` and `n_queries` are valid parameters of an extractor.

    Parameters
    ----------
    sampling : str, callable or None
        The generator: one of `SAMPLINGS`, ``"out-of-fold"`` or a function.
    n_queries : int
        Number of rows to generate.

    Raises
    ------
    ValueError, TypeError
        If one of them is invalid.
    """
    names = (*SAMPLINGS, OUT_OF_FOLD)
    if sampling is not None and sampling not in names and not callable(sampling):
        raise ValueError(
            f"sampling must be None, one of {', '.join(map(repr, names))}, or a function "
            f"(X, n_rows, random_state) that returns rows, got {sampling!r}."
        )
    check_integer("n_queries", n_queries, 1)


@dataclass(frozen=True, eq=False)
class ColumnKinds:
    """Kinds of the columns of a table, which generated values must match.

    Parameters
    ----------
    is_category : ndarray of bool, shape (n_features,)
        Columns of category codes, whose values are only copied.
    is_whole : ndarray of bool, shape (n_features,)
        Columns of whole numbers.
    lower, upper : ndarray of shape (n_features,)
        Smallest and largest observed value; NaN for a column without values.
    """

    is_category: np.ndarray
    is_whole: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, categories: Mapping[int, Any]) -> ColumnKinds:
        """Determine the kinds from rows with codes and NaN for missing values."""
        is_category = np.isin(np.arange(X.shape[1]), list(categories))
        observed = ~np.isnan(X)
        lower = np.where(observed, X, np.inf).min(axis=0)
        upper = np.where(observed, X, -np.inf).max(axis=0)
        has_values = observed.any(axis=0)
        is_whole = ((np.round(X) == X) | ~observed).all(axis=0)
        return cls(
            is_category,
            is_whole & ~is_category,
            np.where(has_values, lower, np.nan),
            np.where(has_values, upper, np.nan),
        )

    def between(self, first: np.ndarray, second: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Return points between pairs of rows; values that cannot be interpolated are copied.

        Parameters
        ----------
        first, second : ndarray of shape (n_rows, n_features)
            First and second rows of the pairs.
        position : ndarray of shape (n_rows, 1)
            Position from 0 (the first row) to 1 (the second row).

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The points. Categories and missing values come from the nearer row; integers stay whole.
        """
        nearer = np.where(position < 0.5, first, second)
        points = (1 - position) * first + position * second
        # Rounding must not vary a constant column.
        points = np.clip(points, np.minimum(first, second), np.maximum(first, second))
        points = np.where(self.is_whole, np.round(points), points)
        is_copied = self.is_category | np.isnan(points)
        return np.where(is_copied, nearer, points)


class RowGenerator:
    """Generate rows that resemble the rows of a table.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows, with codes in categorical columns and NaN for missing values. The generated rows
        do not depend on their order.
    categories : mapping of int to tuple
        Values of the categorical columns.
    seed : int
        Seed of the random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.extractors import RowGenerator
    >>> generator = RowGenerator(np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]), {}, seed=0)
    >>> generator.permute(4).shape
    (4, 2)
    """

    def __init__(self, X: np.ndarray, categories: Mapping[int, Any], seed: int) -> None:
        order = content_order(*np.where(np.isnan(X), np.inf, X).T)
        self.X = X[order]
        self.kinds = ColumnKinds.of(X, categories)
        self._seed = np.uint64(seed)
        self._order = order

    def _uniform(self, stream: int, n_rows: int) -> np.ndarray:
        """Return one number in [0, 1) per row."""
        keys = combine(combine(self._seed, stream), np.arange(n_rows))
        return (keys >> np.uint64(11)) * 2.0**-53

    def _uniform_cells(self, n_rows: int) -> np.ndarray:
        """Return one number in [0, 1) per row and column."""
        streams = np.arange(self.X.shape[1]) + _COLUMNS
        keys = combine(combine(self._seed, streams)[None, :], np.arange(n_rows)[:, None])
        return (keys >> np.uint64(11)) * 2.0**-53

    def _draw_rows(self, stream: int, n_rows: int) -> np.ndarray:
        """Draw indices of rows with replacement; first parents are spread evenly over the rows."""
        n_parents, shares = len(self.X), self._uniform(stream, n_rows)
        if stream == _FIRST:
            shares = (np.arange(n_rows) + shares) / n_rows
        return np.minimum((shares * n_parents).astype(np.intp), n_parents - 1)

    def permute(self, n_rows: int) -> np.ndarray:
        """Return rows that take each value from one of two random rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows. Every value (and missing value) occurs in its column of the table.
        """
        first, second = (self._draw_rows(stream, n_rows) for stream in (_FIRST, _SECOND))
        return self._exchange(first, second)

    def permute_near(self, n_rows: int) -> np.ndarray:
        """Return rows that take each value from one of two neighboring rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows, nearer to the data than those of :meth:`permute`.
        """
        first = self._draw_rows(_FIRST, n_rows)
        return self._exchange(first, self._draw_neighbors(first))

    def permute_mixed(self, n_rows: int) -> np.ndarray:
        """Return rows of :meth:`permute` and of :meth:`permute_near`, half of each.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows of :meth:`permute`, followed by those of :meth:`permute_near`.
        """
        n_far = n_rows // 2
        return np.concatenate([self.permute(n_far), self.permute_near(n_rows - n_far)])

    def _exchange(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return rows with each value from one of two rows."""
        is_exchanged = self._uniform_cells(len(first)) < _EXCHANGE_PROBABILITY
        return np.where(is_exchanged, self.X[second], self.X[first])

    def interpolate(self, n_rows: int) -> np.ndarray:
        """Return points on the lines between random pairs of neighboring rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows.
        """
        first = self._draw_rows(_FIRST, n_rows)
        second = self._draw_neighbors(first)
        position = self._uniform(_POSITION, n_rows)[:, None]
        return self.kinds.between(self.X[first], self.X[second], position)

    def uniform(self, n_rows: int) -> np.ndarray:
        """Return rows with uniform values from the range, or the categories, of each column.

        Parameters
        ----------
        n_rows : int
            Number of rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The rows. Values are missing with the same probability as in the table.
        """
        kinds, shares = self.kinds, self._uniform_cells(n_rows)
        is_counted = kinds.is_whole | kinds.is_category
        # Whole numbers from lower to upper are equally likely.
        span = kinds.upper - kinds.lower + is_counted
        points = kinds.lower + shares * span
        points = np.where(is_counted, np.floor(points), points)
        points = np.clip(points, kinds.lower, kinds.upper)
        gap_shares = np.isnan(self.X).mean(axis=0)
        # The leading bits of a share determine the value; the last bits determine missing values.
        is_missing = (shares * 2.0**26) % 1.0 < gap_shares
        return np.where(is_missing, np.nan, points)

    def boundary(self, n_rows: int, query: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return points near the decision boundary of the black box.

        Parameters
        ----------
        n_rows : int
            Number of points. The points of all steps of each bisection are returned.
        query : callable
            Returns the predictions of the black box for rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Points on lines between rows with different predictions, found by bisection towards the
            change of the prediction.
        """
        n_lines = -(-n_rows // _N_BISECTIONS)
        predictions = query(self.X)
        first = self._draw_rows(_FIRST, n_lines)
        second = self._draw_opposites(first, predictions)
        low, high = np.zeros((n_lines, 1)), np.ones((n_lines, 1))
        parts = []
        for step in range(_N_BISECTIONS):
            jitter = self._uniform(_POSITION + step, n_lines)[:, None]
            position = low + (0.25 + 0.5 * jitter) * (high - low)
            points = self.kinds.between(self.X[first], self.X[second], position)
            parts.append(points)
            if step + 1 < _N_BISECTIONS:
                is_first_side = (query(points) == predictions[first])[:, None]
                low = np.where(is_first_side, position, low)
                high = np.where(is_first_side, high, position)
        return np.concatenate(parts)[:n_rows]

    def _draw_neighbors(self, first: np.ndarray) -> np.ndarray:
        """Draw one of the nearest rows for each of some rows."""
        nearest = self._nearest_rows()
        n_each = nearest.shape[1]
        choice = (self._uniform(_SECOND, len(first)) * n_each).astype(np.intp)
        return nearest[first, np.minimum(choice, n_each - 1)]

    def _nearest_rows(self) -> np.ndarray:
        """Return the indices of the rows nearest to each row, among the first `_MAX_NEIGHBORS`."""
        scaled = self._scale_rows()
        candidates = np.arange(len(scaled))[:_MAX_NEIGHBORS]  # rows are in random order
        n_each = min(_N_PARTNERS + 1, len(candidates))
        search = NearestNeighbors(n_neighbors=n_each).fit(scaled[candidates])
        indices = search.kneighbors(scaled, return_distance=False)
        return np.asarray(candidates[indices[:, 1:] if n_each > 1 else indices])

    def _scale_rows(self) -> np.ndarray:
        """Return the rows in units of standard deviations, with an indicator per category."""
        columns = []
        for j in range(self.X.shape[1]):
            values = self.X[:, j]
            is_missing = np.isnan(values)
            if self.kinds.is_category[j]:
                codes = np.unique(values[~is_missing])
                columns.append((values[:, None] == codes) / np.sqrt(2))
                continue
            filled = np.where(is_missing, 0.0, values - np.nan_to_num(self.kinds.lower[j]))
            span = float(filled.max())
            filled = filled / span if span > 0 else filled  # so that squares do not overflow
            filled[is_missing] = filled[~is_missing].mean() if not is_missing.all() else 0.0
            spread = float(filled.std())
            columns.append((filled / spread if spread > 0 else filled)[:, None])
        return np.hstack(columns)

    def _draw_opposites(self, first: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Draw a row with another prediction for each row at `first`; any row if all agree."""
        order = np.argsort(predictions, kind="stable")
        ordered = predictions[order]
        start = np.searchsorted(ordered, predictions[first], side="left")
        stop = np.searchsorted(ordered, predictions[first], side="right")
        n_others = len(order) - (stop - start)
        draw = (self._uniform(_SECOND, len(first)) * np.maximum(n_others, 1)).astype(np.intp)
        draw = np.minimum(draw, np.maximum(n_others - 1, 0))
        # The rows with the same prediction are skipped.
        position = np.where(draw < start, draw, draw + (stop - start))
        return np.asarray(order[np.where(n_others > 0, position, draw)])


@dataclass(frozen=True, eq=False)
class QueriedRows:
    """Rows with the predictions of the black box.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The rows, with codes in categorical columns and NaN for missing values.
    predictions : ndarray of shape (n_rows,)
        Labels or numbers, as the black box returns them.
    origin : hashable, default=None
        How the rows, or out-of-fold predictions, were generated; None for plain training rows.
    """

    rows: np.ndarray
    predictions: np.ndarray
    origin: Hashable = None


@dataclass(frozen=True, eq=False)
class QuerySampler:
    """Generate query rows, and query the black box for them.

    Parameters
    ----------
    sampling : str or callable
        The generator.
    n_queries : int
        Number of rows.
    seed : int
        Seed of the generator.
    encoder : CategoryEncoder
        Converts codes to categories.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The training rows as the user passed them, for a callable `sampling`.
    """

    sampling: Sampling
    n_queries: int
    seed: int
    encoder: CategoryEncoder
    X: Any

    def query(self, training: QueriedRows, oracle: Oracle) -> QueriedRows:
        """Return the query rows with their predictions.

        Candidates of a search that use the same query rows share them in a cache.

        Parameters
        ----------
        training : QueriedRows
            The training rows.
        oracle : Oracle
            Queries the black box.

        Returns
        -------
        QueriedRows
            The query rows.
        """
        name = self.sampling if isinstance(self.sampling, str) else repr(self.sampling)
        origin = name, self.n_queries, self.seed
        black_box, first_query = oracle.estimator, oracle.first_query
        cache = black_box.cache if isinstance(black_box, CachedBlackBox) else None
        # A user's function may return different rows in every call, so they are not shared.
        is_shared = cache is not None and first_query is not None and not callable(self.sampling)
        key = "query rows", first_query, oracle.batch_size, *origin
        if cache is not None and is_shared and (shared := cache.get(key)) is not None:
            oracle.count_again(len(shared.rows))
            return shared
        rows = self.generate(training, oracle)
        queried = QueriedRows(rows, self._predict(rows, oracle), origin)
        if cache is not None and is_shared:
            cache.put(key, queried)
        return queried

    def generate(self, training: QueriedRows, oracle: Oracle | None) -> np.ndarray:
        """Return the generated rows, with codes in categorical columns.

        Parameters
        ----------
        training : QueriedRows
            The training rows.
        oracle : Oracle or None
            Queries the black box; required only for ``"boundary"``.

        Returns
        -------
        ndarray of shape (n_queries, n_features)
            The rows.
        """
        if callable(self.sampling):
            return self._call_sampling(training.rows.shape[1])
        generator = RowGenerator(training.rows, self.encoder.categories, self.seed)
        if self.sampling == "boundary":
            assert oracle is not None
            return generator.boundary(self.n_queries, lambda rows: self._predict(rows, oracle))
        method = getattr(generator, str(self.sampling).replace("-", "_"))
        return np.asarray(method(self.n_queries))

    def _predict(self, rows: np.ndarray, oracle: Oracle) -> np.ndarray:
        return oracle.query(self.encoder.decode(rows) if self.encoder else rows, cache=False)

    def _call_sampling(self, n_features: int) -> np.ndarray:
        """Return the rows of the user's function, with codes in categorical columns."""
        assert callable(self.sampling)
        drawn = convert_rows(self.sampling(self.X, self.n_queries, self.seed))
        if self.encoder:
            names = list(self.X.columns)
            if not hasattr(drawn, "columns") or list(drawn.columns) != names:
                raise ValueError(
                    f"sampling must return a data frame with the columns {names}, got "
                    f"{type(drawn).__name__}."
                )
            self._check_categories(drawn)
            encoded = self.encoder.codes(drawn).to_numpy(dtype=float)
        else:
            encoded = numbers_of(drawn)
        if encoded.ndim != 2 or encoded.shape[1] != n_features or not len(encoded):
            raise ValueError(
                f"sampling must return at least one row with {n_features} columns, got the shape "
                f"{encoded.shape}."
            )
        if np.isinf(encoded).any():
            raise ValueError("sampling must return finite numbers or NaN, got infinity.")
        return encoded

    def _check_categories(self, drawn: Any) -> None:
        """Raise a ValueError for categories that do not occur in the training rows."""
        for position, values in self.encoder.categories.items():
            column = frame_column(drawn, position)
            unknown = column[column.notna() & ~column.isin(list(values))]
            if len(unknown):
                raise ValueError(
                    f"sampling must return values of the training rows in column "
                    f"{str(drawn.columns[position])!r}, got {unknown.iloc[0]!r}. Draw from "
                    f"{list(values)} or return missing values."
                )


def generate_rows(
    X: Any, n_rows: int, sampling: Sampling = "permute", *, random_state: Any = None
) -> Any:
    """Generate rows that resemble the rows of a table, in its container and with its categories.

    Use it to query a model at rows that it was not trained on.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows: numbers or missing values; in data frames also categories.
    n_rows : int
        Number of rows to generate.
    sampling : str or callable, default="permute"
        The generator: "permute", "permute-near", "permute-mixed", "interpolate", "uniform" or a
        function, see :class:`RowGenerator`.
    random_state : int, RandomState instance or None, default=None
        Seed. Pass an int for the same rows on every run.

    Returns
    -------
    ndarray or DataFrame of shape (n_rows, n_features)
        The rows.

    Raises
    ------
    ValueError
        If the generator is unknown or needs a black box, or a column holds dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import generate_rows
    >>> X = pd.DataFrame({"size": [1, 2, 3], "color": ["red", "blue", "red"]})
    >>> generate_rows(X, 2, random_state=0).columns.tolist()
    ['size', 'color']
    """
    check_sampling(sampling, n_rows)
    if sampling is None or sampling in ("boundary", OUT_OF_FOLD):
        raise ValueError(
            f"sampling={sampling!r} does not generate rows without a black box. Choose another one "
            f"of {', '.join(map(repr, SAMPLINGS))}."
        )
    X = convert_rows(X)
    if hasattr(X, "columns"):
        columns = range(len(X.columns))
        categorical = [j for j in columns if is_categorical(frame_column(X, j))]
        check_columns(X, "generate_rows", categorical)
    encoder = CategoryEncoder(X)
    rows = encoder.codes(X).to_numpy(dtype=float) if encoder else numbers_of(X)
    sampler = QuerySampler(sampling, n_rows, draw_seed(random_state), encoder, X)
    generated = sampler.generate(QueriedRows(rows, np.empty(len(rows))), None)
    if encoder:
        return encoder.decode(generated)
    if hasattr(X, "iloc"):
        return FrameKinds(X).restore(pd.DataFrame(generated, columns=X.columns))
    if hasattr(X, "get_columns"):
        return FrameKinds(X).restore_polars(type(X)(generated, schema=X.columns, orient="row"))
    return generated


def numbers_of(X: Any) -> np.ndarray:
    """Return the rows of a table without categories as floats, NaN for missing values."""
    if hasattr(X, "columns"):
        columns = [frame_column(X, j) for j in range(len(X.columns))]
        return np.column_stack([c.to_numpy(dtype=float, na_value=np.nan) for c in columns])
    return np.asarray(X, dtype=float)
