"""Exact degree of responsibility of each input for a model's decision.

A *flip set* of a row is a set of inputs whose joint flip changes the decision; it is *minimal* if
no proper subset is one. The degree of responsibility of an input is one over the size of the
smallest minimal flip set that contains it. Sets of inputs are represented by bits of an integer.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import check_choice, check_integer
from skescore.attribution._contrasts import ContrastPairs, batches
from skescore.attribution._formula import Formula, as_bits, halves

__all__ = ["Responsibilities", "responsibility"]

_METHODS = ("auto", "exhaustive", "levelwise", "linear")
#: Maximum number of inputs for method="exhaustive".
_EXHAUSTIVE_LIMIT = 20
#: Maximum number of inputs for which "auto" tries all flips, by row or in one table for all rows.
_ROW_LIMIT, _TABLE_LIMIT = 12, 16
#: Maximum size in bytes of a table for a block of rows. Three tables are in memory at a time.
_BUDGET = 1 << 25

#: By row and input: the size of the smallest minimal flip set (0 for none), and the set.
FlipSets = tuple[NDArray[np.int16], NDArray[np.int64]]
Witness = tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Responsibilities:
    """Degrees of responsibility with witnesses.

    ``np.asarray(result)`` returns `values`. Created by `responsibility` with
    ``return_witnesses=True``. The arrays have one row per explained row; for a single row they have
    one dimension less.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows, n_inputs)
        Degrees, ``1 / (1 + witness size)``; 0 without a witness.
    witness_sizes : ndarray of int, shape (n_rows, n_inputs)
        Number of other inputs that must flip so that the input decides alone; -1 without a witness.
    witnesses : tuple of tuples
        For each row and input, the other inputs of a smallest minimal flip set, or None.
    resolved : ndarray of bool, shape (n_rows, n_inputs)
        Whether the degree is exact. Only the levelwise method may leave degrees open, at 0.
    upper : ndarray of float, shape (n_rows, n_inputs)
        Upper bounds on the degrees; equal to `values` where they are resolved.
    n_queries : int
        Number of rows that a black box predicted; 0 for a `Formula`.
    method : {"exhaustive", "levelwise", "linear"}
        Method that computed the degrees.
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
    """Compute the degree of responsibility of each input for a decision, from 0 to 1.

    Use it as ground truth for attributions if the model is a formula, and as an attribution for
    models with few features.

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier, or a function that predicts labels of rows (or one column of
        scores per class; the largest decides).
    X : array-like or DataFrame, shape (n_rows, n_inputs), or one row
        Rows to explain. Values must be 0 and 1 unless there is a `contrast`.
    method : {"auto", "exhaustive", "levelwise", "linear"}, default="auto"
        ``"linear"`` makes two passes over the gates of a read-once formula. ``"exhaustive"`` tries
        all flips of at most 20 relevant inputs. ``"levelwise"`` tries flips of up to `max_size`
        inputs, smallest first. ``"auto"`` selects the first exact and affordable method: for black
        boxes, exhaustive with at most 12 features that differ from the contrast, or 16 two-valued
        features whose table serves all rows. For more features it selects levelwise, which may
        leave values open; `BReX` needs fewer queries there.
    contrast : array-like or DataFrame, optional
        Value that a flipped feature takes: one row, or one per row of `X`, for example from
        `nearest_contrasts`. By default, 0 and 1 are exchanged. Features with the same value in both
        are never responsible.
    max_size : int, default=3
        Levelwise: maximum number of inputs that are flipped together.
    max_queries : int, default=10_000
        Levelwise: maximum number of flips per row. A size is tried completely or not at all, so the
        values are exact.
    max_batch : int, default=8192
        Maximum number of rows per query of a black box. Results do not depend on it.
    return_witnesses : bool, default=False
        Whether to return `Responsibilities`, with witnesses and flags, instead of only the values.

    Returns
    -------
    ndarray of float, shape (n_rows, n_inputs), or Responsibilities
        Degrees; for one row without the first dimension.

    Raises
    ------
    ValueError
        If the method does not fit the model or the number of inputs, or an argument is invalid.
    TypeError
        If the model is a regressor, or cannot be queried.

    Warns
    -----
    RuntimeWarning
        If the levelwise method leaves values open and ``return_witnesses=False``.

    Notes
    -----
    A set of inputs is a minimal flip set of a row if flipping all of them changes the decision and
    flipping any proper subset does not. The degree of an input is one over the size of the smallest
    minimal flip set that contains it, or 0 if there is none (Definitions 4 and 5 of the paper; the
    other members are the witness). Without minimality, an irrelevant input would inherit the degree
    of a decisive one. With a contrast (*contrastive* degrees), flipped inputs take its values.

    The linear algorithm of the paper treats the case in which both operands must flip before those
    in which one suffices, and compares gates with the value of the whole formula. Both are errors;
    this implementation follows Theorem 2 instead.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import Formula, responsibility
    >>> formula = Formula.parse("x1 & (x2 | x3)", n_inputs=4)
    >>> responsibility(formula, [[1, 1, 0, 0], [1, 1, 1, 1]]).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0]]
    >>> result = responsibility(formula, [1, 1, 1, 1], return_witnesses=True)
    >>> result.witnesses
    ((), (2,), (1,), None)

    For any classifier, between a row and a contrast:

    >>> def richer(X):
    ...     return X[:, 0] + X[:, 1] > 100
    >>> responsibility(richer, [80.0, 70.0, 3.0], contrast=[10.0, 20.0, 4.0]).tolist()
    [1.0, 1.0, 0.0]
    """
    check_choice("method", method, _METHODS)
    max_size = check_integer("max_size", max_size, 1, remedy="Pass 1 for single flips.")
    max_queries = check_integer("max_queries", max_queries, 1, remedy="10 000 is the default.")
    max_batch = check_integer("max_batch", max_batch, 1, remedy="8192 is the default.")
    one_row = np.ndim(X) == 1
    rows = _as_table(X) if one_row else X
    if isinstance(model, Formula) and contrast is None and method != "levelwise":
        result = _of_formula(model, rows, method, return_witnesses)
    elif method == "linear":
        raise ValueError(
            "method must be 'exhaustive' or 'levelwise' for black boxes and contrasts, got "
            "'linear', which requires the gates of a read-once Formula. Pass method='auto'."
        )
    else:
        pairs = ContrastPairs(model, rows, contrast, max_batch)
        plan = _plan(pairs, method)
        if plan == "levelwise":
            result = _levelwise(pairs, max_size, max_queries, max_batch, return_witnesses)
        else:
            result = _exhaustive(pairs, plan == "table", return_witnesses)
    if not return_witnesses and not result.resolved.all():
        warnings.warn(
            f"{int((~result.resolved).sum())} of {result.resolved.size} degrees of responsibility "
            "were not determined and are set to 0; they are at most "
            f"{result.upper[~result.resolved].max():.3g}. Pass a larger max_size or max_queries, "
            "or return_witnesses=True to see which degrees were determined.",
            RuntimeWarning,
            stacklevel=2,
        )
    if one_row:
        result = _first(result)
    return result if return_witnesses else result.values


def _as_table(row: Any) -> Any:
    if isinstance(row, pd.Series):  # keep the feature names, which the model may need
        return row.to_frame().T.infer_objects()
    return np.asarray(row)[None, :]


def _first(result: Responsibilities) -> Responsibilities:
    return replace(
        result,
        witnesses=result.witnesses[0] if result.witnesses else (),
        **{
            name: getattr(result, name)[0]
            for name in ("values", "witness_sizes", "resolved", "upper")
        },
    )


def _exact(
    sizes: NDArray[Any], witnesses: tuple[Any, ...], n_queries: int, method: str
) -> Responsibilities:
    """Return exact results from the sizes of flip sets; 0 means that there is none."""
    counts = sizes.astype(np.int64)
    values = np.divide(1.0, counts, out=np.zeros(counts.shape), where=counts > 0)
    resolved = np.ones(counts.shape, dtype=np.bool_)
    return Responsibilities(
        values, counts - 1, witnesses, resolved, values.copy(), n_queries, method
    )


def _witness(sets: Mapping[int, Sequence[int]], n_inputs: int) -> tuple[Witness, ...]:
    """Return the other members of each input's flip set; None if there is none."""
    witness: list[Witness] = [None] * n_inputs
    for index, members in sets.items():
        witness[index] = tuple(member for member in members if member != index)
    return tuple(witness)


def _expand_results(
    flip_sets: FlipSets, columns: NDArray[Any], n_inputs: int, sets: bool, n_queries: int
) -> Responsibilities:
    """Expand results for selected inputs to all inputs, and sets to tuples."""
    sizes = np.zeros((len(flip_sets[0]), n_inputs), dtype=np.int64)
    sizes[:, columns] = flip_sets[0]
    witnesses: list[tuple[Witness, ...]] = []
    if sets:
        names = columns.tolist()
        written = {
            int(code): [name for bit, name in enumerate(names) if int(code) >> bit & 1]
            for code in np.unique(flip_sets[1])
        }
        for codes in flip_sets[1].tolist():
            of_row = {name: written[code] for name, code in zip(names, codes, strict=True) if code}
            witnesses.append(_witness(of_row, n_inputs))
    return _exact(sizes, tuple(witnesses), n_queries, "exhaustive")


def _plan(pairs: ContrastPairs, method: str) -> str:
    """Choose the queries: one "table" for all rows, all flips of each "row", or "levelwise"."""
    if method == "levelwise":
        return "levelwise"
    widest = int(pairs.differs.sum(axis=1).max())
    columns = pairs.two_valued()
    alone = sum(1 << int(count) for count in pairs.differs.sum(axis=1))
    limits = (_TABLE_LIMIT, _ROW_LIMIT) if method == "auto" else (_EXHAUSTIVE_LIMIT,) * 2
    if len(columns) and len(columns) <= limits[0] and 1 << len(columns) <= alone:
        return "table"
    if widest <= limits[1]:
        return "row"
    if method == "auto":
        return "levelwise"
    raise ValueError(
        f"method='exhaustive' supports at most {_EXHAUSTIVE_LIMIT} features that differ from the "
        f"contrast, got a row with {widest!r}. Pass method='levelwise'."
    )


def _exhaustive(pairs: ContrastPairs, table: bool, sets: bool) -> Responsibilities:
    if table:
        columns = pairs.two_valued()
        decisions, codes = pairs.table(columns)
        flip_sets = _from_table(decisions, codes, pairs.differs[:, columns], sets)
        return _expand_results(flip_sets, columns, pairs.n_features, sets, pairs.n_queries)
    sizes = np.zeros((pairs.n_rows, pairs.n_features), dtype=np.int64)
    witnesses: list[Any] = [(None,) * pairs.n_features] * pairs.n_rows
    patterns, inverse = np.unique(pairs.differs, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        columns = np.flatnonzero(pattern)
        members = np.flatnonzero(inverse == number)
        for block in _blocks(len(members), len(columns)):
            index = members[block]
            changes = partial(_changes_of_sets, pairs, index, columns)
            flip_sets = _from_changes(changes, len(index), len(columns), sets)
            expanded = _expand_results(flip_sets, columns, pairs.n_features, sets, 0)
            sizes[index] = expanded.witness_sizes + 1
            for row, witness in zip(index.tolist(), expanded.witnesses, strict=False):
                witnesses[row] = witness
    return _exact(sizes, tuple(witnesses) if sets else (), pairs.n_queries, "exhaustive")


def _changes_of_sets(
    pairs: ContrastPairs, index: NDArray[np.int64], columns: NDArray[np.int64], part: slice
) -> NDArray[np.bool_]:
    """Return whether flips of a slice of sets change the decisions of rows: (sets, rows)."""
    codes = np.arange(part.start, part.stop)
    flipped = np.zeros((len(codes), pairs.n_features), dtype=np.bool_)
    flipped[:, columns] = codes[:, None] >> np.arange(len(columns)) & 1
    return np.concatenate(
        [
            pairs.changes(np.repeat(index, len(chunk)), np.tile(chunk, (len(index), 1)))
            .reshape(len(index), -1)
            .T
            for chunk in np.array_split(flipped, max(1, len(flipped) * len(index) // (1 << 18)))
        ]
    )


def _blocks(n_rows: int, n_flips: int) -> Iterator[slice]:
    """Split rows into blocks whose tables of flips fit into the memory budget."""
    return batches(n_rows, max(1, (8 * _BUDGET >> n_flips) // 64) * 64)


def _from_table(
    table: NDArray[np.generic], codes: NDArray[np.int64], flips: NDArray[np.bool_], sets: bool
) -> FlipSets:
    """Find the smallest minimal flip sets of rows that are the entries `codes` of a truth table.

    `flips` marks inputs that may flip; `sets` is whether to return sets, not only their sizes.
    """
    n_rows, n_inputs = flips.shape
    sizes = np.zeros((n_rows, n_inputs), dtype=np.int16)
    set_codes = np.zeros((n_rows, n_inputs), dtype=np.int64)
    # An irrelevant input is in no minimal set, and omitting it halves the work.
    relevant = [
        bit for bit, (low, high) in enumerate(halves(table)) if not np.array_equal(low, high)
    ]
    if not relevant:
        return sizes, set_codes
    small = table[_spread(np.arange(1 << len(relevant)), relevant)]
    bits = 1 << np.arange(len(relevant))
    small_codes = (codes[:, None] >> np.array(relevant) & 1) @ bits
    patterns = flips[:, relevant] @ bits
    # Rows that differ only in irrelevant inputs have the same flip sets.
    keys, inverse = np.unique(small_codes << len(relevant) | patterns, return_inverse=True)
    small_codes, patterns = keys >> len(relevant), keys & ((1 << len(relevant)) - 1)
    for pattern in np.unique(patterns[patterns > 0]):
        members = np.flatnonzero(patterns == pattern)
        active_bits = [bit for bit in range(len(relevant)) if pattern >> bit & 1]
        spread = _spread(np.arange(1 << len(active_bits)), active_bits)
        columns = [relevant[bit] for bit in active_bits]
        for block in _blocks(len(members), len(active_bits)):
            base = small_codes[members[block]]

            def changes(
                part: slice, base: NDArray[np.int64] = base, spread: NDArray[np.int64] = spread
            ) -> NDArray[np.bool_]:
                return np.asarray(small[base ^ spread[part, None]] != small[base])

            part_sizes, part_sets = _from_changes(changes, len(base), len(active_bits), sets)
            rows = np.full(len(keys), -1)
            rows[members[block]] = np.arange(len(base))
            index = rows[inverse]
            covered = np.flatnonzero(index >= 0)
            sizes[np.ix_(covered, np.array(columns))] = part_sizes[index[covered]]
            if sets:
                set_codes[np.ix_(covered, np.array(columns))] = _spread(
                    part_sets[index[covered]], columns
                )
    return sizes, set_codes


def _spread(codes: NDArray[np.int64], bits: list[int]) -> NDArray[np.int64]:
    """Move bit i of each code to bit `bits[i]`."""
    result = np.zeros_like(codes)
    for old, new in enumerate(bits):
        result |= (codes >> old & 1) << new
    return result


def _from_changes(
    changes: Callable[[slice], NDArray[np.bool_]], n_rows: int, n_inputs: int, sets: bool
) -> FlipSets:
    """Find the smallest minimal flip sets of a block of rows from the effects of all flips.

    `changes` returns for a slice of the sets 0, 1, ..., 2**n - 1 whether flipping them changes the
    decision, of shape (sets, rows). The first of several smallest sets is used.
    """
    sizes = np.zeros((n_rows, n_inputs), dtype=np.int16)
    set_codes = np.zeros((n_rows, n_inputs), dtype=np.int64)
    if n_rows == 0 or n_inputs == 0:
        return sizes, set_codes
    minimal = _minimal(_packed(changes, n_rows, n_inputs), n_inputs)
    codes = np.arange(1 << n_inputs)
    set_sizes = np.bitwise_count(codes)
    missing = np.full((n_inputs, minimal.shape[1]), ~np.uint64(0))
    for size in range(1, n_inputs + 1):
        of_size = codes[set_sizes == size]
        level = minimal[of_size]
        if not level.any():
            continue
        for bit in range(n_inputs):
            holding = np.flatnonzero(of_size >> bit & 1)
            new = np.bitwise_or.reduce(level[holding], axis=0) & missing[bit]
            if not new.any():
                continue
            missing[bit] &= ~new
            rows = np.flatnonzero(_unpacked(new, n_rows))
            sizes[rows, bit] = size
            if sets:
                first = _unpacked(level[holding], n_rows)[:, rows].argmax(axis=0)
                set_codes[rows, bit] = of_size[holding[first]]
    return sizes, set_codes


def _packed(
    changes: Callable[[slice], NDArray[np.bool_]], n_rows: int, n_inputs: int
) -> NDArray[np.uint64]:
    """Pack the table of changes, 64 rows per word."""
    n_sets = 1 << n_inputs
    n_words = -(-n_rows // 64)
    octets = np.zeros((n_sets, 8 * n_words), dtype=np.uint8)
    for part in batches(n_sets, _BUDGET // (8 * n_rows)):
        packed = np.packbits(changes(part), axis=1, bitorder="little")
        octets[part, : packed.shape[1]] = packed
    return octets.view(np.uint64)


def _unpacked(words: NDArray[np.uint64], n_rows: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little", count=n_rows)
    return bits.view(np.bool_)


def _minimal(changes: NDArray[np.uint64], n_inputs: int) -> NDArray[np.uint64]:
    """Keep the minimal flip sets, in place."""
    n_words = changes.shape[1]

    def cube(table: NDArray[np.uint64], bit: int) -> NDArray[np.uint64]:
        return table.reshape(-1, 2, 1 << bit, n_words)

    supersets = changes.copy()  # sets that contain a flip set
    for bit in range(n_inputs):
        view = cube(supersets, bit)
        view[:, 1] |= view[:, 0]
    # A set is not minimal if it contains a flip set without one of its members.
    for bit in range(n_inputs):
        cube(changes, bit)[:, 1] &= ~cube(supersets, bit)[:, 0]
    return changes


class _Row:
    """State of one row: minimal flip sets and the features that are still open."""

    def __init__(self, index: int, differs: NDArray[np.bool_]) -> None:
        self.index = index
        self.features = np.flatnonzero(differs)
        self.sets: list[tuple[int, ...]] = []
        self.smallest: dict[int, tuple[int, ...]] = {}
        self.queries = 0
        self.tried = 0  # all sets with at most this number of features were tested
        self.exhausted = len(self.features) == 0

    def candidates(self, size: int, budget: int) -> NDArray[np.int64] | None:
        """Return the sets of this size that contain no flip set; None if there are too many."""
        features = self._open()
        count = math.comb(len(features), size)
        if count > budget - self.queries:
            return None
        flat = np.fromiter(
            chain.from_iterable(combinations(features, size)), dtype=np.int64, count=count * size
        )
        sets = flat.reshape(count, size)
        keep = np.ones(count, dtype=np.bool_)
        for flip_set in self.sets:
            if len(flip_set) > 1:
                keep &= np.isin(sets, flip_set).sum(axis=1) < len(flip_set)
        return sets[keep]

    def _open(self) -> list[int]:
        """Return the features that can be in larger minimal sets."""
        single = {members[0] for members in self.sets if len(members) == 1}
        return [feature for feature in self.features.tolist() if feature not in single]

    def learn(self, size: int, sets: NDArray[np.int64], changed: NDArray[np.bool_]) -> None:
        """Record the effects of flipping the candidates of a size."""
        for members in map(tuple, sets[changed].tolist()):
            self.sets.append(members)
            for feature in members:
                self.smallest.setdefault(feature, members)
        self.queries += len(sets)
        self.tried = size
        # Without candidates of this size, every larger set contains a flip set, so none is minimal.
        self.exhausted = (
            len(sets) == 0 or size >= len(self._open()) or len(self.smallest) == len(self.features)
        )


def _levelwise(
    pairs: ContrastPairs, max_size: int, max_queries: int, max_batch: int, sets: bool
) -> Responsibilities:
    rows = [_Row(index, differs) for index, differs in enumerate(pairs.differs)]
    for size in range(1, max_size + 1):
        for batch in _batches(rows, size, max_queries, max_batch):
            index = np.repeat([row.index for row, _ in batch], [len(tried) for _, tried in batch])
            changed = np.empty(len(index), dtype=np.bool_)
            everything = np.concatenate([tried for _, tried in batch])
            for part in batches(len(index), max_batch):
                flipped = np.zeros((len(index[part]), pairs.n_features), dtype=np.bool_)
                np.put_along_axis(flipped, everything[part], True, axis=1)
                changed[part] = pairs.changes(index[part], flipped)
            offset = 0
            for row, tried in batch:
                row.learn(size, tried, changed[offset : offset + len(tried)])
                offset += len(tried)
    sizes = np.zeros((pairs.n_rows, pairs.n_features), dtype=np.int64)
    witnesses = []
    for row in rows:
        for feature, members in row.smallest.items():
            sizes[row.index, feature] = len(members)
        witnesses.append(_witness(row.smallest, pairs.n_features))
    exact = _exact(sizes, tuple(witnesses) if sets else (), pairs.n_queries, "levelwise")
    exhausted = np.array([row.exhausted for row in rows])
    tried_up_to = np.array([row.tried for row in rows])
    resolved = (sizes > 0) | exhausted[:, None] | ~pairs.differs
    upper = np.where(resolved, exact.values, 1 / (1.0 + tried_up_to[:, None]))
    return replace(exact, resolved=resolved, upper=upper)


def _batches(
    rows: list[_Row], size: int, max_queries: int, max_batch: int
) -> Iterator[list[tuple[_Row, NDArray[np.int64]]]]:
    """Yield rows with their candidates in batches of the size of a query."""
    batch: list[tuple[_Row, NDArray[np.int64]]] = []
    waiting = 0
    for row in rows:
        if row.exhausted or row.tried < size - 1:
            continue
        sets = row.candidates(size, max_queries)
        if sets is None:
            continue
        batch.append((row, sets))
        waiting += len(sets)
        if waiting >= max_batch:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


# Larger than any number of flips; sums of several stay below the largest int64.
_NEVER = 1 << 40


def _of_formula(formula: Formula, X: Any, method: str, sets: bool) -> Responsibilities:
    bits = as_bits(X, formula.n_inputs)
    if bits.ndim != 2:
        raise ValueError(f"X must be one row or a table of rows, got shape {bits.shape!r}.")
    if method == "linear" and not formula.is_read_once:
        raise ValueError(
            f"method='linear' requires read-once formulas, got {str(formula)[:60]!r}, in which a "
            "variable occurs twice. Pass method='exhaustive'."
        )
    if method == "linear" or (method == "auto" and formula.is_read_once):
        return _linear(formula, bits, sets)
    if formula.arity > _EXHAUSTIVE_LIMIT:
        raise ValueError(
            "exhaustive responsibilities require a formula of at most "
            f"{_EXHAUSTIVE_LIMIT} variables if some occur twice, got {formula.arity!r}. Pass "
            "method='levelwise'."
        )
    columns = np.array(formula.variables)
    table = formula.truth_table(variables=formula.variables)
    codes = bits[:, columns] @ (1 << np.arange(len(columns)))
    flip_sets = _from_table(table, codes, np.ones((len(bits), len(columns)), dtype=np.bool_), sets)
    return _expand_results(flip_sets, columns, formula.n_inputs, sets, 0)


def _linear(formula: Formula, bits: NDArray[np.bool_], sets: bool) -> Responsibilities:
    """Run Algorithms 1 and 2 of the paper with a corrected order of cases."""
    sizes = np.zeros(bits.shape, dtype=np.int64)
    witnesses: list[tuple[Witness, ...]] = []
    width = len(formula.gates) * (24 + (2 * formula.arity if sets else 0))
    # Sets need memory quadratic in the inputs per row until they are converted to tuples.
    width = max(width, formula.n_inputs**2 if sets else 0)
    for part in batches(len(bits), _BUDGET // width):
        members = np.zeros((*bits[part].shape, formula.n_inputs), dtype=np.bool_) if sets else None
        _read_once(formula, np.ascontiguousarray(bits[part].T), sizes[part], members)
        for row, row_members in enumerate(members if members is not None else ()):
            responsible = np.flatnonzero(sizes[part][row]).tolist()
            of_row = {i: np.flatnonzero(row_members[i]).tolist() for i in responsible}
            witnesses.append(_witness(of_row, formula.n_inputs))
    return _exact(sizes, tuple(witnesses), 0, "linear")


def _read_once(
    formula: Formula,
    columns: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    members: NDArray[np.bool_] | None,
) -> None:
    """Compute the sizes and members of the smallest minimal flip sets by row and input."""
    gates, n_rows = formula.gates, columns.shape[1]
    values: list[NDArray[np.bool_]] = []
    costs: list[NDArray[np.int64]] = []  # number of input flips that flip the gate
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    nobody = np.zeros(n_rows, dtype=np.bool_)
    for operator, left, right in gates:
        must = (nobody, nobody)
        if operator == "var":
            values.append(columns[left])
            costs.append(np.ones(n_rows, dtype=np.int64))
        elif operator == "not":
            values.append(~values[left])
            costs.append(costs[left])
        else:
            a, b = values[left], values[right]
            # A false operand controls a conjunction: while it stays, nothing else can flip the
            # gate. A true one controls a disjunction. No single operand controls an xor.
            if operator == "and":
                values.append(a & b)
                must = (~a, ~b)
            elif operator == "or":
                values.append(a | b)
                must = (a, b)
            else:
                values.append(a ^ b)
            costs.append(
                np.where(
                    must[0] | must[1],
                    costs[left] * must[0] + costs[right] * must[1],
                    np.minimum(costs[left], costs[right]),
                )
            )
        forced.append(must)
    cheapest = None if members is None else _cheapest(formula, costs, forced)
    _descend(formula, costs, forced, cheapest, sizes, members)


def _cheapest(
    formula: Formula,
    costs: list[NDArray[np.int64]],
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
) -> list[NDArray[np.bool_]]:
    """Return for each gate a smallest set of inputs that flips it, as (arity, rows)."""
    number = {index: i for i, index in enumerate(formula.variables)}
    smallest_sets: list[NDArray[np.bool_]] = []
    for position, (operator, left, right) in enumerate(formula.gates):
        if operator == "var":
            flipped = np.zeros((formula.arity, len(costs[0])), dtype=np.bool_)
            flipped[number[left]] = True
        elif operator == "not":
            flipped = smallest_sets[left]
        else:
            by_left, by_right = forced[position]
            is_undecided = ~(by_left | by_right)
            left_first = costs[left] <= costs[right]
            flipped = smallest_sets[left] & (by_left | (is_undecided & left_first))
            flipped |= smallest_sets[right] & (by_right | (is_undecided & ~left_first))
        smallest_sets.append(flipped)
    return smallest_sets


def _descend(
    formula: Formula,
    costs: list[NDArray[np.int64]],
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    cheapest: list[NDArray[np.bool_]] | None,
    sizes: NDArray[np.int64],
    members: NDArray[np.bool_] | None,
) -> None:
    """Compute top-down how many other inputs must flip for a gate to control the root."""
    n_rows = len(costs[0])
    costs_beside: dict[int, NDArray[np.int64]] = {len(costs) - 1: np.zeros(n_rows, dtype=np.int64)}
    company: dict[int, NDArray[np.bool_]] = {}
    if cheapest is not None:
        company[len(costs) - 1] = np.zeros((formula.arity, n_rows), dtype=np.bool_)
    indices = np.array(formula.variables)
    for position in range(len(costs) - 1, -1, -1):
        operator, left, right = formula.gates[position]
        count, with_it = costs_beside.pop(position), company.pop(position, None)
        if operator == "var":
            is_reached = count < _NEVER
            sizes[:, left] = np.where(is_reached, count + 1, 0)
            if members is not None and with_it is not None:
                members[:, left, indices] = (with_it & is_reached).T
                members[:, left, left] = is_reached
        elif operator == "not":
            costs_beside[left] = count
            if with_it is not None:
                company[left] = with_it
        else:
            for child, child_controls, sibling, other in (
                (left, forced[position][0], right, forced[position][1]),
                (right, forced[position][1], left, forced[position][0]),
            ):
                # A child with a controlling sibling counts only if it controls too, and both flip.
                both_control = child_controls & other
                costs_beside[child] = np.where(
                    other & ~child_controls, _NEVER, count + costs[sibling] * both_control
                )
                if with_it is not None and cheapest is not None:
                    company[child] = with_it | (cheapest[sibling] & both_control)
