"""Rows of formulae for scikit-learn: data sets, and formulae as fitted classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from skescore._random import ASSIGNMENTS, child_generator
from skescore._text import did_you_mean
from skescore.attribution._bits import LARGEST_TABLE, all_assignments, as_whole
from skescore.attribution._formula import Formula

__all__ = ["FormulaClassifier", "make_boolean_dataset"]

_CODINGS = ("01", "+-1")


def _check_coding(coding: object) -> None:
    if coding not in _CODINGS:
        raise ValueError(
            f"coding must be '01' or '+-1', got {coding!r}. {did_you_mean(coding, _CODINGS)}"
        )


def make_boolean_dataset(
    formula: Formula,
    n_samples: int | None = None,
    *,
    coding: str = "01",
    replace: bool = False,
    random_state: Any = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make rows and the labels that a formula gives them.

    Use it to train and explain models of which the truth is known.

    Parameters
    ----------
    formula : Formula
        What labels the rows.
    n_samples : int, optional
        Number of rows, drawn uniformly; all assignments in the order of `all_assignments` if not
        given.
    coding : {"01", "+-1"}, default="01"
        How false and true are written in `X`. Labels are 0 and 1 in both.
    replace : bool, default=False
        Whether an assignment may be drawn twice.
    random_state : int, Generator, SeedSequence or RandomState, optional
        What the drawing depends on. The same number gives formulae and rows independent streams.

    Returns
    -------
    X : ndarray of int, shape (n_samples, formula.n_inputs)
        The rows.
    y : ndarray of int, shape (n_samples,)
        The labels.

    Raises
    ------
    ValueError
        If more distinct rows are wanted than there are, or an argument is not allowed.

    Examples
    --------
    >>> from skescore.attribution import Formula, make_boolean_dataset
    >>> X, y = make_boolean_dataset(Formula.parse("x1 & x2"))
    >>> X.tolist(), y.tolist()
    ([[0, 0], [1, 0], [0, 1], [1, 1]], [0, 0, 0, 1])
    >>> X, y = make_boolean_dataset(Formula.parse("x1 ^ x2", 12), 500, random_state=0)
    >>> X.shape, X.max()
    ((500, 12), np.int64(1))
    """
    _check_coding(coding)
    if not isinstance(formula, Formula):
        raise TypeError(
            f"formula must be a Formula, got {formula!r}. Make it: Formula.parse(text)."
        )
    n_inputs = formula.n_inputs
    if n_samples is None:
        bits = all_assignments(n_inputs).astype(np.bool_)
    else:
        n_samples = as_whole("n_samples", n_samples, low=1, remedy="None gives all assignments.")
        if not replace and n_samples > 2**n_inputs:
            raise ValueError(
                f"n_samples must be at most 2**n_inputs = {2**n_inputs} distinct rows, got "
                f"{n_samples!r}. Pass replace=True, or None for all of them."
            )
        bits = _drawn(n_inputs, n_samples, replace, child_generator(random_state, ASSIGNMENTS))
    y = formula.evaluate(bits).astype(np.int64)
    X = bits.astype(np.int64)
    return (X if coding == "01" else 2 * X - 1), y


def _drawn(
    n_inputs: int, n_samples: int, replace: bool, generator: np.random.Generator
) -> NDArray[np.bool_]:
    if not replace and n_inputs <= LARGEST_TABLE:
        codes = generator.choice(2**n_inputs, n_samples, replace=False, shuffle=True)
        return (codes[:, None] >> np.arange(n_inputs) & 1).astype(np.bool_)
    bits = generator.integers(0, 2, (n_samples, n_inputs), dtype=np.int8).astype(np.bool_)
    while not replace:  # so many inputs that a row hardly ever comes twice
        _, first = np.unique(bits, axis=0, return_index=True)
        bits = bits[np.sort(first)]
        missing = n_samples - len(bits)
        if not missing:
            break
        more = generator.integers(0, 2, (missing, n_inputs), dtype=np.int8).astype(np.bool_)
        bits = np.vstack([bits, more])
    return bits


class FormulaClassifier(ClassifierMixin, BaseEstimator):
    """A formula as a scikit-learn classifier.

    Use it where a fitted classifier is wanted: extractors, explainers, searches. There is nothing
    to learn, so `fit` only checks the formula.

    Parameters
    ----------
    formula : Formula
        What answers.
    coding : {"01", "+-1"}, default="01"
        How false and true are written in the rows.

    Attributes
    ----------
    classes_ : ndarray of int
        0 and 1.
    n_features_in_ : int
        Number of inputs of the formula.

    Examples
    --------
    >>> from skescore.attribution import Formula
    >>> model = Formula.parse("x1 & ~x2").as_classifier(coding="+-1")
    >>> model.predict([[1, -1], [1, 1]]).tolist()
    [1, 0]
    >>> model.predict_proba([[1, -1]]).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, formula: Formula, *, coding: str = "01") -> None:
        self.formula = formula
        self.coding = coding

    def fit(self, X: Any = None, y: Any = None) -> FormulaClassifier:
        """Check the formula; nothing is learned.

        Parameters
        ----------
        X : array-like, optional
            Ignored.
        y : array-like, optional
            Ignored.

        Returns
        -------
        FormulaClassifier
            The classifier itself.
        """
        if not isinstance(self.formula, Formula):
            raise TypeError(
                f"formula must be a Formula, got {self.formula!r}. Make it: Formula.parse(text)."
            )
        _check_coding(self.coding)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = self.formula.n_inputs
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Answer rows with 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            The rows, in the classifier's coding.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            The labels.
        """
        self.fit()  # an unfitted formula knows as much as a fitted one
        if self.coding == "01":
            return self.formula.predict(X)
        rows = np.asarray(X)
        if ((rows != -1) & (rows != 1)).any():
            raise ValueError(
                f"X must hold -1 or +1, got {np.unique(rows)[:5].tolist()!r}. Pass coding='01' for "
                "zeros and ones."
            )
        return self.formula.predict(rows > 0)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Answer rows with the probabilities of 0 and 1, which are 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            The rows, in the classifier's coding.

        Returns
        -------
        ndarray of float, shape (n_rows, 2)
            The probabilities.
        """
        return np.eye(2)[self.predict(X)]
