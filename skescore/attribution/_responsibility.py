"""Exact degree of responsibility of each input for a model's answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._text import did_you_mean
from skescore.attribution._bits import as_bits, as_whole
from skescore.attribution._decisions import Crossroads
from skescore.attribution._flip_sets import (
    EXHAUSTIVE_LIMIT,
    FlipSets,
    blocks,
    from_changes,
    from_table,
)
from skescore.attribution._formula import Formula
from skescore.attribution._levelwise import levelwise_flip_sets
from skescore.attribution._read_once import read_once_flip_sets

__all__ = ["Responsibilities", "responsibility"]

_METHODS = ("auto", "exhaustive", "levelwise", "linear")
# What "auto" spends on certainty: questions about one row, or about all of them together.
_ROW_LIMIT = 12
_TABLE_LIMIT = 16

Witness = tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Responsibilities:
    """Degrees of responsibility with what shows them.

    Use it as an array where one is wanted: ``np.asarray(result)`` gives `values`. Made by
    `responsibility` with ``return_witnesses=True``. The arrays have one row per explained row; of a
    single row they have one dimension less.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows, n_inputs)
        The degrees, ``1 / (1 + witness size)``; 0 without a witness.
    witness_sizes : ndarray of int, shape (n_rows, n_inputs)
        How many other inputs must flip so that the input decides alone; -1 without a witness.
    witnesses : tuple of tuples
        Of each row and input the other inputs of a smallest minimal flip set, or None.
    resolved : ndarray of bool, shape (n_rows, n_inputs)
        Where the degree is exact. Only the levelwise method leaves some open, with value 0.
    upper : ndarray of float, shape (n_rows, n_inputs)
        What the degree is at most: the value where it is resolved.
    n_queries : int
        Rows that a black box was asked about. A `Formula` is read, not asked.
    method : {"exhaustive", "levelwise", "linear"}
        How they were found.
    """

    values: NDArray[np.float64]
    witness_sizes: NDArray[np.int64]
    witnesses: tuple[Any, ...]
    resolved: NDArray[np.bool_]
    upper: NDArray[np.float64]
    n_queries: int
    method: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)


def responsibility(
    model: Any,
    X: Any,
    *,
    method: str = "auto",
    contrast: Any = None,
    max_size: int = 3,
    max_queries: int = 10_000,
    max_batch: int = 8192,
    return_witnesses: bool = False,
) -> NDArray[np.float64] | Responsibilities:
    """Degree of responsibility of each input for a decision, from 0 to 1.

    Use it as the truth that attributions are judged by where the model is a formula, and as an
    attribution of its own for models of few features.

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier, or a function that answers rows with labels (or with one
        column of scores per class, of which the largest decides).
    X : array-like or DataFrame, shape (n_rows, n_inputs), or one row
        What to explain. Zeros and ones, unless there is a `contrast`.
    method : {"auto", "exhaustive", "levelwise", "linear"}, default="auto"
        ``"linear"`` takes two passes over the gates of a read-once formula. ``"exhaustive"`` tries
        all flips, of at most 20 inputs that matter. ``"levelwise"`` tries flips of up to
        `max_size` inputs, smallest first. ``"auto"`` takes the first that is exact and affordable:
        exhaustive for black boxes of at most 12 features that differ from the contrast, or 16
        two-valued ones whose table serves all rows; levelwise, which may leave values open, for
        wider ones (`BReX` is more economical there).
    contrast : array-like or DataFrame, optional
        The value that a flipped feature takes: one row, or one per row of `X`, such as
        `nearest_contrasts` finds. The other of 0 and 1 if not given. Features that have the same
        value in both are never responsible.
    max_size : int, default=3
        Levelwise: how many inputs are flipped together, at most.
    max_queries : int, default=10_000
        Levelwise: how many flips are tried per row, at most. A size is tried as a whole or not at
        all, so that found values are exact.
    max_batch : int, default=8192
        How many rows a black box is asked about at once, at most. Results do not depend on it.
    return_witnesses : bool, default=False
        Whether to give `Responsibilities`, with witnesses and flags, instead of the values.

    Returns
    -------
    ndarray of float, shape (n_rows, n_inputs), or Responsibilities
        The degrees; of one row without the first dimension.

    Raises
    ------
    ValueError
        If the method does not suit the model, there are too many inputs for it, or an argument is
        not allowed.
    TypeError
        If the model is a regressor, or cannot be asked.

    Warns
    -----
    RuntimeWarning
        If the levelwise method leaves values open and flags are not asked for.

    Notes
    -----
    A set of inputs is a minimal flip set of a row if flipping all of them changes the decision and
    flipping any part of them does not. The degree of an input is one over the size of the smallest
    minimal flip set it belongs to, or 0 if there is none (Definitions 4 and 5 of the paper; the
    other members are the witness). Minimality matters: otherwise an irrelevant input would borrow
    a decisive one. With a contrast the same holds on the way between two rows, a *contrastive*
    degree of responsibility.

    The paper's linear algorithm takes the case where both operands must flip before those where
    one suffices, and compares gates with the value of the whole formula; both would be wrong, and
    we do as its Theorem 2 says. All assignments of 12 inputs take well under a second either way.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulae. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import Formula, responsibility
    >>> formula = Formula.parse("x1 & (x2 | x3)", n_inputs=4)
    >>> responsibility(formula, [[1, 1, 0, 0], [1, 1, 1, 1]]).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0]]
    >>> found = responsibility(formula, [1, 1, 1, 1], return_witnesses=True)
    >>> found.witnesses
    ((), (2,), (1,), None)

    Any classifier, between a row and a contrast:

    >>> def richer(X):
    ...     return X[:, 0] + X[:, 1] > 100
    >>> responsibility(richer, [80.0, 70.0, 3.0], contrast=[10.0, 20.0, 4.0]).tolist()
    [1.0, 1.0, 0.0]
    """
    if method not in _METHODS:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}. "
            f"{did_you_mean(method, _METHODS)}"
        )
    max_size = as_whole("max_size", max_size, low=1, remedy="Single flips are of size 1.")
    max_queries = as_whole("max_queries", max_queries, low=1, remedy="10 000 is the default.")
    max_batch = as_whole("max_batch", max_batch, low=1, remedy="8192 is the default.")
    one_row = np.ndim(X) == 1
    rows = _as_table(X) if one_row else X
    if isinstance(model, Formula) and contrast is None and method != "levelwise":
        result = _of_formula(model, rows, method, return_witnesses)
    elif method == "linear":
        raise ValueError(
            "method must be 'exhaustive' or 'levelwise' for black boxes and contrasts, got "
            "'linear', which reads the gates of a read-once Formula. Pass method='auto'."
        )
    else:
        roads = Crossroads(model, rows, contrast, max_batch)
        plan = _plan(roads, method)
        if plan == "levelwise":
            result = _levelwise(roads, max_size, max_queries, max_batch, return_witnesses)
        else:
            result = _exhaustive(roads, plan == "table", return_witnesses)
    if not return_witnesses and not result.resolved.all():
        warnings.warn(
            f"{int((~result.resolved).sum())} of {result.resolved.size} degrees are open and given "
            f"as 0; they are at most {result.upper[~result.resolved].max():.3g}. Pass "
            "return_witnesses=True for the flags, or a larger max_size or max_queries.",
            RuntimeWarning,
            stacklevel=2,
        )
    if one_row:
        result = _first(result)
    return result if return_witnesses else result.values


def _as_table(row: Any) -> Any:
    if isinstance(row, pd.Series):  # the names of its features are what the model knows
        return row.to_frame().T.infer_objects()
    return np.asarray(row)[None, :]


def _first(result: Responsibilities) -> Responsibilities:
    return Responsibilities(
        result.values[0],
        result.witness_sizes[0],
        result.witnesses[0] if result.witnesses else (),
        result.resolved[0],
        result.upper[0],
        result.n_queries,
        result.method,
    )


def _exact(
    sizes: NDArray[Any], witnesses: tuple[Any, ...], n_queries: int, method: str
) -> Responsibilities:
    """Results of which every value is known; of sizes 0 stands for no flip set."""
    counts = sizes.astype(np.int64)
    values = np.divide(1.0, counts, out=np.zeros(counts.shape), where=counts > 0)
    resolved = np.ones(counts.shape, dtype=np.bool_)
    return Responsibilities(
        values, counts - 1, witnesses, resolved, values.copy(), n_queries, method
    )


# --- formulae ----------------------------------------------------------------------------------


def _of_formula(formula: Formula, X: Any, method: str, sets: bool) -> Responsibilities:
    bits = as_bits(X, formula.n_inputs)
    if bits.ndim != 2:
        raise ValueError(f"X must be one row or a table of rows, got shape {bits.shape!r}.")
    if method == "linear" and not formula.is_read_once:
        raise ValueError(
            f"method='linear' takes read-once formulae, got {str(formula)[:60]!r}, in which a "
            "variable occurs twice. Pass method='exhaustive'."
        )
    if method == "linear" or (method == "auto" and formula.is_read_once):
        return _linear(formula, bits, sets)
    if formula.arity > EXHAUSTIVE_LIMIT:
        raise ValueError(
            f"exhaustive responsibilities take a formula of at most {EXHAUSTIVE_LIMIT} variables, "
            f"got {formula.arity!r} of which some occur twice. Pass method='levelwise'."
        )
    columns = np.array(formula.variables)
    table = formula.truth_table(variables=formula.variables)
    codes = bits[:, columns] @ (1 << np.arange(len(columns)))
    found = from_table(table, codes, np.ones((len(bits), len(columns)), dtype=np.bool_), sets)
    return _placed(found, columns, formula.n_inputs, sets, 0)


def _linear(formula: Formula, bits: NDArray[np.bool_], sets: bool) -> Responsibilities:
    if not sets:
        return _exact(read_once_flip_sets(formula, bits, False)[0], (), 0, "linear")
    sizes, witnesses = [], []
    # Sets take the square of the inputs per row until they are written as tuples.
    length = max(1, (1 << 25) // formula.n_inputs**2)
    for start in range(0, len(bits), length):
        part_sizes, members = read_once_flip_sets(formula, bits[start : start + length], True)
        assert members is not None
        sizes.append(part_sizes)
        for row, row_sizes in zip(members, part_sizes, strict=True):
            witness: list[Witness] = [None] * formula.n_inputs
            for index in np.flatnonzero(row_sizes).tolist():
                witness[index] = tuple(i for i in np.flatnonzero(row[index]).tolist() if i != index)
            witnesses.append(tuple(witness))
    empty = np.zeros((0, formula.n_inputs), dtype=np.int64)
    return _exact(np.concatenate([empty, *sizes]), tuple(witnesses), 0, "linear")


def _placed(
    found: FlipSets, columns: NDArray[Any], n_inputs: int, sets: bool, n_queries: int
) -> Responsibilities:
    """Bring what was found for some inputs to their places among all."""
    sizes = np.zeros((len(found[0]), n_inputs), dtype=np.int64)
    sizes[:, columns] = found[0]
    witnesses: tuple[Any, ...] = ()
    if sets:
        names = columns.tolist()
        written = {
            int(code): tuple(name for bit, name in enumerate(names) if int(code) >> bit & 1)
            for code in np.unique(found[1])
        }
        rows = []
        for codes in found[1].tolist():
            witness: list[Witness] = [None] * n_inputs
            for name, code in zip(names, codes, strict=True):
                if code:
                    witness[name] = tuple(i for i in written[code] if i != name)
            rows.append(tuple(witness))
        witnesses = tuple(rows)
    return _exact(sizes, witnesses, n_queries, "exhaustive")


# --- black boxes -------------------------------------------------------------------------------


def _plan(roads: Crossroads, method: str) -> str:
    """How to ask: one "table" for all rows, all flips of each "row", or "levelwise"."""
    if method == "levelwise":
        return "levelwise"
    widest = int(roads.differs.sum(axis=1).max())
    columns = roads.two_valued()
    alone = sum(1 << int(count) for count in roads.differs.sum(axis=1))
    limits = (_TABLE_LIMIT, _ROW_LIMIT) if method == "auto" else (EXHAUSTIVE_LIMIT,) * 2
    if len(columns) and len(columns) <= limits[0] and 1 << len(columns) <= alone:
        return "table"
    if widest <= limits[1]:
        return "row"
    if method == "auto":
        return "levelwise"
    raise ValueError(
        f"method='exhaustive' takes at most {EXHAUSTIVE_LIMIT} features that differ from the "
        f"contrast, got a row with {widest!r}. Pass method='levelwise'."
    )


def _exhaustive(roads: Crossroads, table: bool, sets: bool) -> Responsibilities:
    if table:
        columns = roads.two_valued()
        decisions, codes = roads.table(columns)
        found = from_table(decisions, codes, roads.differs[:, columns], sets)
        return _placed(found, columns, roads.n_features, sets, roads.n_queries)
    sizes = np.zeros((roads.n_rows, roads.n_features), dtype=np.int64)
    witnesses: list[Any] = [(None,) * roads.n_features] * roads.n_rows
    patterns, inverse = np.unique(roads.differs, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns = np.flatnonzero(pattern)
        members = np.flatnonzero(inverse == number)
        for block in blocks(len(members), len(columns)):
            places = members[block]

            def changes(
                part: slice,
                columns: NDArray[np.int64] = columns,
                places: NDArray[np.int64] = places,
            ) -> NDArray[np.bool_]:
                return _changes_of_sets(roads, places, columns, part)

            found = from_changes(changes, len(places), len(columns), sets)
            placed = _placed(found, columns, roads.n_features, sets, 0)
            sizes[places] = placed.witness_sizes + 1
            for place, witness in zip(places.tolist(), placed.witnesses, strict=False):
                witnesses[place] = witness
    return _exact(sizes, tuple(witnesses) if sets else (), roads.n_queries, "exhaustive")


def _changes_of_sets(
    roads: Crossroads, places: NDArray[np.int64], columns: NDArray[np.int64], part: slice
) -> NDArray[np.bool_]:
    """Ask about flips of the sets of a slice, of each row."""
    codes = np.arange(part.start, part.stop)
    flipped = np.zeros((len(codes), roads.n_features), dtype=np.bool_)
    flipped[:, columns] = codes[:, None] >> np.arange(len(columns)) & 1
    answers = [
        roads.changes(np.repeat(places, len(few)), np.tile(few, (len(places), 1)))
        for few in np.array_split(flipped, max(1, len(flipped) * len(places) // (1 << 18)))
    ]
    shaped = [answer.reshape(len(places), -1).T for answer in answers]
    return np.concatenate(shaped)


def _levelwise(
    roads: Crossroads, max_size: int, max_queries: int, max_batch: int, sets: bool
) -> Responsibilities:
    found, exhausted, tried = levelwise_flip_sets(roads, max_size, max_queries, max_batch)
    sizes = np.zeros((roads.n_rows, roads.n_features), dtype=np.int64)
    witnesses = []
    for place, smallest in enumerate(found):
        witness: list[Witness] = [None] * roads.n_features
        for feature, members in smallest.items():
            sizes[place, feature] = len(members)
            witness[feature] = tuple(member for member in members if member != feature)
        witnesses.append(tuple(witness))
    exact = _exact(sizes, tuple(witnesses) if sets else (), roads.n_queries, "levelwise")
    resolved = (sizes > 0) | exhausted[:, None] | ~roads.differs
    upper = np.where(resolved, exact.values, 1 / (1.0 + tried[:, None]))
    return Responsibilities(
        exact.values, exact.witness_sizes, exact.witnesses, resolved, upper, exact.n_queries,
        "levelwise",
    )  # fmt: skip
