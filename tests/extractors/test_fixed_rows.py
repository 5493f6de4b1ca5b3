"""Candidates of a search share results that depend on rows only, without side effects."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skescore.extractors import CachedBlackBox, CARTExtractor
from skescore.registry import extractor_class


def table(kind: str) -> pd.DataFrame | np.ndarray:
    """Return 120 rows as an array, a frame of numbers, or one with text and missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(0, 10, 120).round(2),
            "count": rng.integers(0, 9, 120),
            "weight": rng.normal(size=120).round(3),
        }
    )
    if kind == "array":
        return frame.to_numpy(dtype=float)
    if kind == "frame":
        return frame
    frame["color"] = rng.choice(["red", "green", "blue"], 120)
    frame["shape"] = pd.Categorical(rng.choice(["round", "flat"], 120))
    frame.loc[::7, "size"] = np.nan
    frame.loc[3, "color"] = None
    return frame


def text_columns(X: pd.DataFrame | np.ndarray) -> list[int]:
    """Return the positions of the columns after the three columns of numbers."""
    return list(range(3, X.shape[1]))


def fitted_black_box(X: pd.DataFrame | np.ndarray, task: str) -> CachedBlackBox:
    columns = np.asarray(X)[:, :3].astype(float)
    numbers = np.nan_to_num(columns[:, 0]) + 3 * columns[:, 1]
    is_classification = task == "classification"
    model = HistGradientBoostingClassifier if is_classification else HistGradientBoostingRegressor
    encoder = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), text_columns),
        remainder="passthrough",
    )
    y = np.where(numbers > 15, "high", "low") if is_classification else numbers
    return CachedBlackBox(make_pipeline(encoder, model(max_iter=5, random_state=0)).fit(X, y))


def outcome(extractor, X: pd.DataFrame | np.ndarray, X_test: pd.DataFrame | np.ndarray):
    """Return all results of an extraction and an evaluation."""
    extractor = clone(extractor).fit(X)
    return (
        extractor.rules_.to_json(),
        extractor.oracle_.n_calls,
        extractor.oracle_.n_rows,
        list(getattr(extractor, "feature_names_in_", ["no names"])),
        extractor.n_features_in_,
        extractor.coverage_,
        extractor.predict(X_test).tolist(),
        extractor.covers(X_test).tolist(),
        extractor.fidelity(X_test),
    )


@pytest.mark.parametrize("kind", ["array", "frame", "text and missing values"])
def test_fixed_rows_keep_results_of_candidates(make, name, able, kind):
    if kind.startswith("text") and not extractor_class(name).takes_categories:
        pytest.skip(f"{name} takes numbers only")
    X = table(kind)
    X_test = X[60:] if isinstance(X, np.ndarray) else X.iloc[60:].copy()
    before = pickle.dumps((X, X_test))
    model = fitted_black_box(X, able)
    expected = outcome(make(model), X, X_test)

    shared = CachedBlackBox(model.estimator)
    for rows in (X, X_test):
        shared.fixed_rows.add(rows)
    # The second candidate reads what the first one has stored.
    for _ in range(2):
        assert outcome(make(shared), X, X_test) == expected
    assert pickle.dumps((X, X_test)) == before


def test_fixed_rows_still_reject_invalid_rows():
    X = table("frame")
    bad_rows = X.assign(weight=np.inf)
    shared = fitted_black_box(X, "classification")
    shared.fixed_rows.add(bad_rows)
    rules_of_size = CARTExtractor(shared, features=["size"], max_leaf_nodes=2).fit(X)
    # A rule that does not use the invalid column predicts the rows.
    assert len(rules_of_size.predict(bad_rows)) == len(X)
    rules_of_weight = CARTExtractor(shared, features=["weight"], max_leaf_nodes=2).fit(X)
    for _ in range(2):
        with pytest.raises(ValueError, match="column 'weight' holds inf"):
            rules_of_weight.predict(bad_rows)
        with pytest.raises(ValueError, match="column 'weight' holds inf"):
            CARTExtractor(shared).fit(bad_rows)


def fixed_rows():
    return fitted_black_box(table("array"), "regression").fixed_rows


def test_fixed_rows_do_not_share_other_rows():
    X = np.array([[1.0], [2.0]])
    fixed = fixed_rows()
    fixed.add(X)
    assert fixed.once(X, "sum", X.sum) == 3.0
    assert fixed.once(X, "sum", lambda: -1.0) == 3.0
    assert fixed.once(X, "number", lambda: 2) == 2
    other = X.copy()
    assert fixed.once(other, "sum", lambda: -1.0) == -1.0


def test_fixed_rows_copies_hold_no_rows():
    X = np.zeros((100_000, 2))
    fixed = fixed_rows()
    fixed.add(X)
    fixed.once(X, "sum", X.sum)
    for copied in (copy.copy(fixed), copy.deepcopy(fixed), pickle.loads(pickle.dumps(fixed))):
        assert X not in copied
    assert len(pickle.dumps(fixed)) < 200
