"""Sufficient subsets: the values of a row that determine a prediction by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skescore._binomial import clopper_pearson
from skescore._text import percentage, plural, value_text
from skescore._validation import as_pandas, check_integer, check_number, python_value
from skescore.attribution._contrasts import in_columns_of, in_types_of, label_function
from skescore.attribution._formula import Formula, as_bits
from skescore.rules import convert_rows
from skescore.rules._text import feature_name

__all__ = ["SufficientSubset", "SufficientSubsets", "sufficient_subsets"]

#: Maximum number of inputs of a formula for which all subsets are examined.
_MAX_INPUTS = 20
#: Width of the beam: number of subsets of one size that the search extends.
_BEAM_WIDTH = 5
#: Number of generated rows on which the search compares subsets.
_N_SEARCH_ROWS = 400
#: Confidence level of the interval of an agreement.
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class SufficientSubset:
    """Features of a row whose values suffice for its prediction.

    Parameters
    ----------
    features : tuple of int
        Indices of the features.
    names : tuple of str
        Names of the features.
    values : tuple
        Values of the features in the row.
    agreement : float
        Share of generated rows with these values that get the same prediction; 1 for a proof.
    interval : tuple of float
        Clopper-Pearson interval of the agreement at 95 %; (1, 1) for a proof.
    n_rows : int
        Number of generated rows, which the search did not use; 0 for a proof.
    others : str, default="for all values of the others"
        Text that states for which values of the other features a proof holds.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    values: tuple[Any, ...]
    agreement: float
    interval: tuple[float, float]
    n_rows: int
    others: str = "for all values of the others"

    @property
    def is_proven(self) -> bool:
        """True if all stated values of the other features were examined."""
        return self.n_rows == 0

    def __len__(self) -> int:
        return len(self.features)

    def __str__(self) -> str:
        pairs = zip(self.names, self.values, strict=True)
        texts = (f"{feature_name([name], 0)} = {value_text(value)}" for name, value in pairs)
        condition = " AND ".join(texts) or "no value"
        if self.is_proven:
            return f"{condition} ({self.others})"
        rows = plural(self.n_rows, "generated row")
        return f"{condition} ({percentage(self.agreement, digits=1)} of {rows})"


@dataclass(frozen=True)
class SufficientSubsets:
    """Sufficient subsets of one row.

    Parameters
    ----------
    prediction : object
        Prediction of the row.
    subsets : tuple of SufficientSubset
        Disjoint subsets, or all minimal ones of a formula; smaller ones first.
    necessary : tuple of int
        Indices of the features that are part of all `subsets` and without which all others together
        do not suffice. For a formula, they are part of every sufficient subset.
    n_features : int
        Number of features of the row.
    """

    prediction: Any
    subsets: tuple[SufficientSubset, ...]
    necessary: tuple[int, ...]
    n_features: int

    def __str__(self) -> str:
        prediction = value_text(self.prediction)
        if not self.subsets:
            return f"No subset of the features suffices for {prediction}."
        lines = [
            f"{len(subset)} of {plural(self.n_features, 'value')} "
            f"{'suffices' if len(subset) == 1 else 'suffice'} for {prediction}: {subset}"
            for subset in self.subsets
        ]
        names = {j: name for s in self.subsets for j, name in zip(s.features, s.names, strict=True)}
        if self.necessary:
            necessary = ", ".join(feature_name([names[j]], 0) for j in self.necessary)
            lines.append(f"necessary, because all others together do not suffice: {necessary}")
        return "\n".join(lines)


def sufficient_subsets(
    model: Any,
    x: Any,
    X: Any = None,
    *,
    neutral: Any = None,
    confidence: float = 0.95,
    n_subsets: int | None = None,
    max_size: int | None = None,
    n_samples: int = 2000,
    random_state: Any = 0,
) -> SufficientSubsets:
    """Find small sets of a row's values that suffice for its prediction.

    Use it to explain one prediction of a black box or of rules in a sentence: "these 3 of 14 values
    suffice".

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier or rule set, or a function that predicts labels of rows.
    x : array-like of shape (n_features,), or DataFrame or Series of one row
        The row.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows whose values the other features take; required unless `model` is a formula or
        `neutral` is set.
    neutral : array-like of shape (n_features,), optional
        Values of the other features, instead of rows of X. A subset then suffices if the prediction
        stays the same when all other features take these values, as in B-ReX.
    confidence : float, default=0.95
        Smallest share of generated rows with the subset's values that get the same prediction.
    n_subsets : int, optional
        Largest number of subsets; by default 1, or all minimal subsets of a formula. The subsets of
        a black box are disjoint.
    max_size : int, optional
        Largest number of features of a subset; by default all.
    n_samples : int, default=2000
        Number of generated rows on which a subset is confirmed.
    random_state : int, RandomState instance or None, default=0
        Seed of the generated rows.

    Returns
    -------
    SufficientSubsets
        The subsets with their agreement, and the necessary features.

    Raises
    ------
    ValueError, TypeError
        If the model, the row or a parameter is invalid.

    Notes
    -----
    For a formula with up to 20 inputs, the result is exact. A set suffices if every row with
    another decision differs from `x` in one of the features of the set, so one pass over all
    subsets of the inputs finds the sets that do not suffice.

    For a black box, a set suffices with a confidence: its values replace values of rows that are
    drawn from `X`. A beam search adds features until the agreement on 400 such rows reaches the
    `confidence`. It removes features as long as this agreement suffices, and confirms the reduced
    set, or else the set before the removal, on `n_samples` other rows. If both fail, the search
    continues. It may miss a smaller subset.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982, Definition 3.

    A. Darwiche, A. Hirth: On the reasons behind decisions. ECAI 2020.

    M. T. Ribeiro, S. Singh, C. Guestrin: Anchors: high-precision model-agnostic explanations. AAAI
    2018.

    Examples
    --------
    >>> from skescore.attribution import Formula, sufficient_subsets
    >>> result = sufficient_subsets(Formula.parse("(x1 & x2) | x3"), [1, 1, 1])
    >>> [subset.features for subset in result.subsets], result.necessary
    ([(2,), (0, 1)], ())
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> print(sufficient_subsets(forest, X.iloc[[0]], X))
    1 of 4 values suffices for 0: petal width (cm) = 0.2 (100.0 % of 2000 generated rows)
    necessary, because all others together do not suffice: petal width (cm)
    """
    check_number("confidence", confidence, 0.0, 1.0)
    check_integer("n_subsets", n_subsets, 1, optional=True)
    check_integer("max_size", max_size, 0, optional=True)
    check_integer("n_samples", n_samples, 1)
    if isinstance(model, Formula) and neutral is None:
        return _subsets_of_formula(model, x, n_subsets, max_size)
    rows = _PerturbedRows(model, x, X, neutral, n_samples, random_state)
    size = rows.n_features if max_size is None else min(max_size, rows.n_features)
    subsets: list[SufficientSubset] = []
    excluded: set[int] = set()
    for _ in range(n_subsets or 1):
        features = _search(rows, confidence, size, excluded)
        if features is None:
            break
        subsets.append(rows.describe(features))
        excluded |= set(features)
        if not features:
            break
    everything = set(range(rows.n_features))
    # A subset may suffice with a confidence although a larger one does not.
    shared = everything.intersection(*(subset.features for subset in subsets))
    necessary = [j for j in sorted(shared) if rows.confirmed(everything - {j}) < confidence]
    ordered = tuple(sorted(subsets, key=len))
    return SufficientSubsets(rows.prediction, ordered, tuple(necessary), rows.n_features)


# --- formulas ------------------------------------------------------------------------------------


def _subsets_of_formula(
    formula: Formula, x: ArrayLike, n_subsets: int | None, max_size: int | None
) -> SufficientSubsets:
    """Return the minimal sufficient subsets of a row of a formula, all of them by default."""
    n = formula.n_inputs
    if n > _MAX_INPUTS:
        raise ValueError(
            f"model must have at most {_MAX_INPUTS} inputs for an exact result, got {n}. Pass "
            "formula.predict and X for a search with a confidence."
        )
    row = as_bits(np.reshape(np.asarray(x), (1, -1)), n, "x")
    decision = bool(formula.evaluate(row)[0])
    codes = np.arange(1 << n)
    assignments = (codes[:, None] >> np.arange(n) & 1).astype(np.uint8)
    differs = formula.evaluate(assignments ^ row.astype(np.uint8)) != decision
    # Entry k: whether some row with another decision differs from x only in features of set k.
    for j in range(n):
        halves = differs.reshape(-1, 2, 1 << j)
        halves[:, 1] |= halves[:, 0]
    suffices = ~differs[::-1]  # the features outside of a set must not change the decision
    is_minimal = suffices.copy()
    for j in range(n):
        is_minimal.reshape(-1, 2, 1 << j)[:, 1] &= ~suffices.reshape(-1, 2, 1 << j)[:, 0]
    masks = np.flatnonzero(is_minimal)
    sets = [tuple(np.flatnonzero(assignments[mask]).tolist()) for mask in masks]
    sets = sorted(sets, key=lambda features: (len(features), features))
    small_sets = [features for features in sets if max_size is None or len(features) <= max_size]
    subsets = tuple(
        SufficientSubset(
            features,
            tuple(f"x{j + 1}" for j in features),
            tuple(int(row[0, j]) for j in features),
            1.0,
            (1.0, 1.0),
            0,
        )
        for features in small_sets[:n_subsets]
    )
    necessary = tuple(j for j in range(n) if all(j in features for features in sets))
    return SufficientSubsets(int(decision), subsets, necessary, n)


# --- black boxes ---------------------------------------------------------------------------------


class _PerturbedRows:
    """Rows that combine values of one row with values of other rows, and their predictions."""

    def __init__(
        self, model: Any, x: Any, X: Any, neutral: Any, n_samples: int, random_state: Any
    ) -> None:
        if X is None and neutral is None:
            raise ValueError(
                "X must hold the rows whose values the other features take, got None. Pass the "
                "training rows, or `neutral` values."
            )
        self._decide = label_function(model)
        x, reference = _table_of(x), _table_of(x if X is None else X)
        self._is_array = not isinstance(reference, pd.DataFrame)
        if self._is_array:
            array, names = np.atleast_2d(reference), getattr(x, "columns", None)
            if names is None or len(names) != array.shape[1]:
                names = [f"x{j}" for j in range(array.shape[1])]
            reference, x = pd.DataFrame(array, columns=names), np.asarray(x)
        background = reference
        if neutral is not None:
            background = in_columns_of(reference, _table_of(neutral), "neutral")
        row = in_columns_of(background, x, "x")
        if row.shape != (1, background.shape[1]):
            raise ValueError(
                f"x must be one row with {background.shape[1]} values, got shape {row.shape}. Pass "
                "one value for each column of X."
            )
        self._row = in_types_of(background, row, "x")
        self.n_features = background.shape[1]
        random = (
            np.random.RandomState(random_state)
            if not hasattr(random_state, "randint")
            else random_state
        )
        n_search = 1 if neutral is not None else _N_SEARCH_ROWS
        n_confirm = 1 if neutral is not None else n_samples
        self._is_single = neutral is not None
        self._search_rows = background.iloc[random.randint(len(background), size=n_search)]
        self._other_rows = background.iloc[random.randint(len(background), size=n_confirm)]
        self.prediction = python_value(self._predict(self._row)[0])
        self._agreement: dict[tuple[frozenset[int], bool], float] = {}

    def _predict(self, table: pd.DataFrame) -> NDArray[Any]:
        return np.asarray(self._decide(table.to_numpy() if self._is_array else table))

    def _measure(self, features: set[int] | frozenset[int], is_confirmation: bool) -> float:
        key = frozenset(features), is_confirmation
        if key not in self._agreement:
            rows = self._other_rows if is_confirmation else self._search_rows
            table = rows.reset_index(drop=True)
            for j in features:
                values = self._row.iloc[[0] * len(table), j]
                table.isetitem(j, values.set_axis(table.index))
            self._agreement[key] = float(np.mean(self._predict(table) == self.prediction))
        return self._agreement[key]

    def searched(self, features: set[int] | frozenset[int]) -> float:
        """Return the agreement on the rows of the search."""
        return self._measure(features, is_confirmation=False)

    def confirmed(self, features: set[int] | frozenset[int]) -> float:
        """Return the agreement on the rows that confirm a subset."""
        return self._measure(features, is_confirmation=True)

    def describe(self, features: Sequence[int]) -> SufficientSubset:
        """Return the subset with its figures."""
        agreement = self.confirmed(set(features))
        n_rows = len(self._other_rows)
        interval = (1.0, 1.0)
        if not self._is_single:
            interval = clopper_pearson(round(agreement * n_rows), n_rows, _CONFIDENCE)
        return SufficientSubset(
            tuple(features),
            tuple(str(self._row.columns[j]) for j in features),
            tuple(python_value(self._row.iloc[0, j]) for j in features),
            agreement,
            interval,
            0 if self._is_single else n_rows,
            *(["with the neutral values of the others"] if self._is_single else []),
        )


def _search(
    rows: _PerturbedRows, confidence: float, max_size: int, excluded: set[int]
) -> tuple[int, ...] | None:
    """Return a small confirmed subset without the excluded features; None if there is none."""
    candidates = [j for j in range(rows.n_features) if j not in excluded]
    beam: list[frozenset[int]] = [frozenset()]
    for size in range(min(max_size, len(candidates)) + 1):
        sufficient = [s for s in _by_agreement(rows, beam) if rows.searched(s) >= confidence]
        for subset in sufficient:
            smaller = _drop_redundant(rows, subset, confidence)
            if rows.confirmed(smaller) >= confidence:
                return tuple(sorted(smaller))
            if rows.confirmed(subset) >= confidence:
                return tuple(sorted(subset))
        if size < min(max_size, len(candidates)):
            extended = {subset | {j} for subset in beam for j in candidates if j not in subset}
            beam = list(_by_agreement(rows, extended))[:_BEAM_WIDTH]
    return None


def _by_agreement(
    rows: _PerturbedRows, subsets: Sequence[frozenset[int]] | set[frozenset[int]]
) -> Iterator[frozenset[int]]:
    """Yield subsets in the order of their agreement, the highest first; ties by features."""
    yield from sorted(subsets, key=lambda s: (-rows.searched(s), sorted(s)))


def _drop_redundant(
    rows: _PerturbedRows, subset: frozenset[int], confidence: float
) -> frozenset[int]:
    """Remove features, the least important first, as long as the others suffice."""
    while subset:
        subsets = [subset - {j} for j in sorted(subset)]
        best = max(subsets, key=lambda part: (rows.searched(part), [-j for j in sorted(part)]))
        if rows.searched(best) < confidence:
            break
        subset = best
    return subset


def _table_of(rows: Any) -> Any:
    """Return rows as an array or a data frame of pandas."""
    rows = as_pandas(convert_rows(rows))
    return rows.to_frame().T.infer_objects() if isinstance(rows, pd.Series) else rows
