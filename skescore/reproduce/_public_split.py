"""FiRe's Table 1 on the split into halves of PSyKE's public demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from skescore.datasets import load_dataset
from skescore.extractors._features import feature_importances
from skescore.metrics import fire_score
from skescore.registry import make_extractor
from skescore.reproduce._printed import (
    FIRE_BLACK_BOX,
    FIRE_TABLE,
    PSI,
    losses_that_fit,
    rounding_interval,
)

__all__ = ["PUBLIC_ROWS", "PublicRow", "measure_black_box", "measure_public_row", "verdict"]

_BOX = (
    "rows outside the box around the training rows count as uncovered, because all boxes of PSyKE "
    "lie inside it"
)
_RANKED = "features are ranked on all rows, as in PSyKE's demonstrations, and " + _BOX
_EXCHANGED = (
    "the rules on {} have the figures that the paper prints for {}, and vice versa; " + _BOX
)
_NEEDS_PSYKE = "Only PSyKE reproduces this row: skescore reproduce fire --psyke."


class PublicRow(NamedTuple):
    """Settings of a row of the table on the public split.

    Attributes
    ----------
    change : str
        Difference from the settings that the paper states; empty if there is none.
    missing : str
        Experiment that shows why a figure is not reproduced.
    impossible : str
        Reason why a printed figure cannot be reproduced.
    is_tree : bool
        Whether the rules are a tree, which has no outer bounds.
    measured_as : str
        Row whose rules are measured instead; empty if there is none.
    feature_order : sequence of int
        Order of the features in which PSyKE breaks ties.
    """

    change: str = ""
    missing: str = ""
    impossible: str = ""
    is_tree: bool = False
    measured_as: str = ""
    feature_order: Sequence[int] = (0, 1, 2, 3)


#: Settings by row of the table.
PUBLIC_ROWS: Mapping[str, PublicRow] = {
    "CART": PublicRow(is_tree=True),
    "ITER": PublicRow(
        "nearly all steps tie, and PSyKE breaks ties by the order of the features, which depends "
        "on Python's hash seed (15 of the 24 orders give this row; used here: sepal length, sepal "
        "width, petal width, petal length); " + _BOX,
        "Our implementation breaks ties by class probabilities and cuts elsewhere. " + _NEEDS_PSYKE,
        feature_order=(0, 1, 3, 2),
    ),
    "clustering, 4 features": PublicRow(
        _EXCHANGED.format("2 features", "4"),
        "Our implementation standardizes columns and finds other clusters. " + _NEEDS_PSYKE,
        measured_as="clustering, 2 features",
    ),
    "clustering, 2 features": PublicRow(
        _EXCHANGED.format("4 features", "2"), measured_as="clustering, 4 features"
    ),
    "GridEx, 8 slices": PublicRow(
        _RANKED,
        "On the training half, petal width ranks before petal length; PSyKEExtractor always uses "
        "the training rows.",
    ),
    "GridEx, 2 slices twice": PublicRow(
        _RANKED,
        "On the training half, petal width ranks before petal length; PSyKEExtractor always uses "
        "the training rows.",
    ),
    "GridEx, 4 x 4 slices": PublicRow(
        _BOX + "; PSyKE's rounding separates cells that our implementation joins",
        "Without the rounding there are 2 errors in 62 rows instead of 69. " + _NEEDS_PSYKE,
        "No error rate gives the printed 0.11 (psi = 3) together with the other two scores.",
    ),
}


class _Halves(NamedTuple):
    """Rows of iris: the training half, the other half, and all rows."""

    train: tuple[Any, Any]
    test: tuple[np.ndarray, np.ndarray]
    rows: Any


def _split_iris() -> _Halves:
    data = load_dataset("iris")
    left, right, y_left, y_right = train_test_split(data.X, data.y, test_size=0.5, random_state=0)
    return _Halves((left, y_left), (np.asarray(right, dtype=float), np.asarray(y_right)), data.X)


def measure_black_box() -> dict[str, float]:
    """Return the accuracy of the 9-NN on the public split."""
    halves = _split_iris()
    X_test, y_test = halves.test
    black_box = KNeighborsClassifier(9).fit(
        np.asarray(halves.train[0], dtype=float), halves.train[1]
    )
    return {"accuracy": float(black_box.score(X_test, y_test))}


def measure_public_row(
    row: PublicRow, extractor: str, params: Mapping[str, Any], random_state: int
) -> dict[str, Any]:
    """Measure one row of the table on the public split.

    Rows outside the box around the training rows are uncovered unless the rules are a tree.
    """
    halves = _split_iris()
    order = list(row.feature_order if extractor.startswith("psyke:") else (0, 1, 2, 3))
    X_train = np.asarray(halves.train[0], dtype=float)
    (X_test, y_test), y_train = halves.test, halves.train[1]
    params = dict(params)
    if extractor == "gridex":
        params["importances"] = _importances(np.asarray(halves.rows, dtype=float), X_train, y_train)
    model = make_extractor(extractor, KNeighborsClassifier(9))
    model.set_params(random_state=random_state, **params).fit(X_train[:, order], y_train)
    is_counted = np.asarray(model.covers(X_test[:, order]))
    if not row.is_tree:
        ignored = _importances(X_train, X_train, y_train) < params.get("ignore_threshold", 0.0)
        lower, upper = X_train.min(axis=0), X_train.max(axis=0)
        is_inside = (X_test >= lower) & (X_test <= upper)
        is_counted &= (is_inside | ignored).all(axis=1)
    n_errors = int((np.asarray(model.predict(X_test[:, order])) != y_test)[is_counted].sum())
    n_counted, n_rules = int(is_counted.sum()), len(model.rules_)
    loss = n_errors / n_counted
    return {
        "accuracy": 1 - loss,
        "n_errors": n_errors,
        "n_counted": n_counted,
        "n_rules": n_rules,
        "covered": n_counted / len(y_test),
        **{f"fire_{psi}": float(fire_score(loss, n_rules, psi=psi)) for psi in PSI},
    }


def _importances(rows: np.ndarray, X_train: np.ndarray, y_train: Any) -> np.ndarray:
    """Return the importance of each feature for the black box's predictions of some rows."""
    predictions = KNeighborsClassifier(9).fit(X_train, y_train).predict(rows)
    codes = np.unique(predictions, return_inverse=True)[1]
    return feature_importances(rows, codes, "classification")


def verdict(name: str, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Compare a row measured on the public split with every printed figure.

    Parameters
    ----------
    name : str
        Row of the table, or "9-NN".
    measured : mapping of str to Any
        Figures of the row.

    Returns
    -------
    dict of str to Any
        ``figures``, whether each printed figure is reproduced; ``verdict``, "reproduced",
        "reproduced with a change" or "not reproduced"; ``why``, the change, or the experiment that
        shows the cause.
    """
    if name == "9-NN":
        is_equal = _rounds_to(measured["accuracy"], FIRE_BLACK_BOX)
        text = "reproduced" if is_equal else "not reproduced"
        return {"figures": {"accuracy": is_equal}, "verdict": text, "why": ""}
    printed, row = FIRE_TABLE[name], PUBLIC_ROWS[name]
    figures = {
        "accuracy": _rounds_to(measured["accuracy"], printed.accuracy),
        "n_rules": measured["n_rules"] == printed.n_rules,
        **{
            f"fire_{psi}": _rounds_to(measured[f"fire_{psi}"], text)
            for psi, text in zip(PSI, printed.fire, strict=True)
        },
    }
    # A figure that contradicts the others of its row cannot be reproduced.
    n_possible = 5 if losses_that_fit(printed) is not None else 4
    change = f"{row.change[:1].upper()}{row.change[1:]}." if row.change else ""
    n_errors = f"{measured['n_errors']} errors in {measured['n_counted']} rows."
    if sum(figures.values()) < n_possible:
        return {
            "figures": figures,
            "verdict": "not reproduced",
            "why": " ".join(filter(None, [n_errors, row.missing, row.impossible])),
        }
    text = "reproduced with a change" if row.change else "reproduced"
    text += "".join(f", except psi={psi}" for psi in PSI if not figures[f"fire_{psi}"])
    return {
        "figures": figures,
        "verdict": text,
        "why": " ".join(filter(None, [n_errors, change, row.impossible])),
    }


def _rounds_to(value: float, printed: str) -> bool:
    lower, upper = rounding_interval(printed)
    return lower <= value <= upper
