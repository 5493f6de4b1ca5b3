"""Faithfulness on tables: known values, a slow reference, and invariances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skescore.metrics.attribution import (
    FAITHFULNESS,
    Rationales,
    Removal,
    Target,
    attribution_infidelity,
    faithfulness,
    removal_curves,
)

ALL = tuple(FAITHFULNESS)


def additive(*weights: float) -> Any:
    """Return a model that predicts the weighted sum of the features."""
    return lambda X: np.asarray(X, dtype=float) @ np.array(weights)


def two_classes(function: Any) -> Any:
    def predict_proba(X: Any) -> np.ndarray:
        p = np.asarray(function(np.asarray(X, dtype=float)))
        return np.column_stack([1 - p, p])

    return predict_proba


def sums(X: np.ndarray) -> np.ndarray:
    """Predict a product of two features plus a small part of the third: not additive, with ties."""
    return 0.1 + 0.6 * X[:, 0] * X[:, 1] + 0.2 * X[:, 2]


# --- values computed by hand ---------------------------------------------------------------------


def test_faithfulness_equals_values_computed_by_hand() -> None:
    """Three features: thresholds give 0, 0, 0, 1, 1, 1, 2, 2, 2, 3 features.

    f = 0.1 + 0.6 ab + 0.2 c at (1, 1, 1) is 0.9. In the order c, a, b the rationales are c, ca and
    cab. Without them f is 0.7, 0.1, 0.1; of them alone 0.3, 0.3, 0.9. Leaving out one changes f by
    0.6, 0.6, 0.2 for a, b, c with the scores 2, 1, 3: of three pairs one is tied, two discordant.
    """
    measure_values, details = faithfulness(
        two_classes(sums), [[1, 1, 1]], [[2, 1, 3]], measures=ALL, return_details=True
    )
    assert details["lengths"][0].tolist() == [1, 2, 3]
    assert details["without"][0] == pytest.approx([0.7, 0.1, 0.1])
    assert details["only"][0] == pytest.approx([0.3, 0.3, 0.9])
    assert details["loo"][0] == pytest.approx([0.6, 0.6, 0.2])
    assert details["base"].tolist() == pytest.approx([0.9])
    assert measure_values["aopc_compr"][0] == pytest.approx((0.2 + 0.8 + 0.8) / 3)
    assert measure_values["aopc_suff"][0] == pytest.approx((0.6 + 0.6 + 0) / 3)
    assert measure_values["taucorr_loo"][0] == pytest.approx(-2 / math.sqrt(3 * 2))
    assert measure_values["spearmancorr_loo"][0] == pytest.approx(-math.sqrt(3) / 2)
    assert measure_values["pearsoncorr_loo"][0] == pytest.approx(-math.sqrt(3) / 2)
    assert measure_values["prediction_gap_important"][0] == pytest.approx(1.8 / 3)
    assert measure_values["prediction_gap_unimportant"][0] == pytest.approx(1.2 / 3)
    # All subsets of the features are queried once, except for b alone.
    assert details["queries"].tolist() == [1 + 6]


def test_faithfulness_ignores_negative_scores_by_default() -> None:
    model = two_classes(sums)
    measure_values, details = faithfulness(
        model, [[1, 1, 1]], [[-2, -1, -3]], measures=ALL, return_details=True
    )
    assert details["lengths"][0].tolist() == []
    assert measure_values["aopc_compr"].tolist() == [0.0]
    assert measure_values["aopc_suff"].tolist() == [1.0]
    assert np.isnan(measure_values["prediction_gap_important"]).all()
    assert measure_values["taucorr_loo"][0] == pytest.approx(2 / math.sqrt(6))
    assert details["queries"].tolist() == [1 + 3]
    signed = faithfulness(
        model, [[1, 1, 1]], [[-2, -1, -3]], rationales=Rationales(only_positive=False)
    )
    # The order is b, a, c: without b, ba and bac the prediction is 0.3, 0.3 and 0.1.
    assert signed["aopc_compr"][0] == pytest.approx((0.6 + 0.6 + 0.8) / 3)


def test_faithfulness_of_numbers_is_nan_without_rationale() -> None:
    measure_values = faithfulness(additive(1, 2), [[3.0, 4.0]], [[-1, -2]])
    assert measure_values["aopc_compr"].tolist() == [0.0]
    assert np.isnan(measure_values["aopc_suff"]).all()
    measure_values = faithfulness(additive(1, 2), [[3.0, 4.0]], [[3, 8]])
    # Without the second feature the prediction falls by 8, without both by 11, without the
    # first by 3.
    assert measure_values["aopc_compr"].tolist() == [(8 + 11) / 2]
    assert measure_values["aopc_suff"].tolist() == [(3 + 0) / 2]


def test_faithfulness_normalizes_numbers() -> None:
    X = [[3.0, 4.0], [1.0, 0.0]]  # The predictions 11 and 1 have the standard deviation 5.
    plain = faithfulness(additive(1, 2), X, [[3, 8], [1, 0]], measures=ALL)
    normalized = faithfulness(
        additive(1, 2), X, [[3, 8], [1, 0]], measures=ALL, target=Target(normalize=True)
    )
    for name in ALL:
        scale = 1 if name.endswith("_loo") else 5
        np.testing.assert_allclose(normalized[name] * scale, plain[name])
    with pytest.raises(ValueError, match="predictions that differ"):
        faithfulness(additive(1, 2), X[:1], [[3, 8]], target=Target(normalize=True))
    with pytest.raises(ValueError, match="probabilities"):
        faithfulness(two_classes(sums), [[1, 1, 1]], [[1, 1, 1]], target=Target(normalize=True))


@pytest.mark.parametrize(
    ("n", "lengths"),
    [
        (1, [1]),
        (3, [1, 2, 3]),
        (10, list(range(1, 11))),
        (25, [2, 5, 7, 10, 12, 15, 17, 20, 22, 25]),
    ],
)
def test_rationales_have_default_lengths(n: int, lengths: list[int]) -> None:
    _, details = faithfulness(
        additive(*range(1, n + 1)), np.ones((1, n)), np.ones((1, n)), return_details=True
    )
    assert details["lengths"][0].tolist() == lengths


def test_rationales_lengths_depend_on_options() -> None:
    scores = [[0.5, -0.2, 0.1, 0.3, 0.0]]

    def lengths(**options: Any) -> list[int]:
        _, details = faithfulness(
            additive(1, 2, 3, 4, 5),
            np.ones((1, 5)),
            scores,
            rationales=Rationales(**options),
            return_details=True,
        )
        return details["lengths"][0].tolist()

    assert lengths() == [1, 2, 3]
    assert lengths(dedupe=False) == [1, 1, 2, 2, 3, 3, 3, 3, 3]
    assert lengths(only_positive=False) == [1, 2, 3, 4, 5]
    assert lengths(thresholds=[0.2, 0.6, 0.4]) == [1, 3, 2]
    assert lengths(by="count", thresholds=[1, 2, 9]) == [1, 2, 3]
    assert lengths(by="count", thresholds=[1, 2, 9], only_positive=False) == [1, 2, 5]
    # Thresholds of scores include negative scores and empty rationales.
    assert lengths(by="score", thresholds=[0.2, -0.1, 9]) == [2, 4, 0]
    # The product 0.29 * 100 is slightly below 29.
    _, details = faithfulness(
        additive(*range(100)),
        np.ones((1, 100)),
        np.ones((1, 100)),
        rationales=Rationales([0.1, 0.29]),
        return_details=True,
    )
    assert details["lengths"][0].tolist() == [10, 29]


def test_rationales_accept_all_features_as_fraction() -> None:
    lengths = Rationales([0.5, 1.0]).lengths(np.array([3.0, 1.0, 2.0, 4.0]))
    assert list(lengths) == [2, 4]


def test_faithfulness_orders_equal_scores() -> None:
    _, details = faithfulness(
        additive(1, 10, 100), np.ones((1, 3)), np.ones((1, 3)), return_details=True
    )
    assert details["without"][0].tolist() == [11, 1, 0]


def test_correlations_of_constants_are_nan() -> None:
    for scores, weights in (([1, 1, 1], (1, 2, 3)), ([1, 2, 3], (0, 0, 0)), ([1, 2, 3], (5, 5, 5))):
        measure_values = faithfulness(
            additive(*weights),
            np.ones((1, 3)),
            [scores],
            measures=["taucorr_loo", "spearmancorr_loo", "pearsoncorr_loo"],
        )
        assert all(np.isnan(values).all() for values in measure_values.values())
    # A single feature has no correlation either, but it can be removed.
    single = faithfulness(additive(2), [[3.0]], [[1.0]])
    assert single["aopc_compr"].tolist() == [6.0]
    assert np.isnan(single["taucorr_loo"]).all()


def test_correlations_of_two_features_are_plus_or_minus_1() -> None:
    """Two scores in the order of the effects correlate by 1, in the other order by -1."""
    measures = ["taucorr_loo", "spearmancorr_loo", "pearsoncorr_loo"]
    for scores, expected in (([1.0, 2.0], 1.0), ([2.0, 1.0], -1.0)):
        measure_values = faithfulness(additive(1, 3), [[1.0, 1.0]], [scores], measures=measures)
        assert {name: values.tolist() for name, values in measure_values.items()} == {
            name: [pytest.approx(expected)] for name in measures
        }


def test_correlations_of_ranks_and_values_differ() -> None:
    scores, effects = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 100.0]
    measure_values = faithfulness(
        additive(*effects),
        np.ones((1, 4)),
        [scores],
        measures=["spearmancorr_loo", "pearsoncorr_loo"],
    )
    assert measure_values["spearmancorr_loo"][0] == pytest.approx(1.0)
    pearson = scipy.stats.pearsonr(scores, effects).statistic
    assert pearson < 0.9
    assert measure_values["pearsoncorr_loo"][0] == pytest.approx(pearson)


@pytest.mark.parametrize("scale", [1e-15, 1e-8, 1.0, 1e8])
def test_correlations_are_independent_of_unit(scale: float) -> None:
    """The first two effects differ by rounding only, in any unit of the predictions."""
    effects = np.array([1.0, 1.0 + 1e-15, 2.0, 5.0]) * scale
    measure_values = faithfulness(additive(*effects), np.ones((1, 4)), [[2.0, 1.0, 3.0, 4.0]])
    expected = scipy.stats.kendalltau([2, 1, 3, 4], [1, 1, 2, 5]).statistic
    assert measure_values["taucorr_loo"][0] == pytest.approx(expected)


def test_correlations_ignore_rounding_if_prediction_is_zero() -> None:
    """The prediction is 0, so that only the predictions without a feature show the unit."""
    model = additive(1.0, 1.0 + 2**-52, -2.0)
    measure_values, details = faithfulness(
        model, np.ones((1, 3)), [[2.0, 1.0, 0.0]], return_details=True
    )
    assert details["base"].tolist() == [0.0]
    assert len(set(details["loo"][0].tolist())) == 3
    expected = scipy.stats.kendalltau([2, 1, 0], [1, 1, -2]).statistic
    assert measure_values["taucorr_loo"][0] == pytest.approx(expected)


def test_correlations_ignore_rounding_of_effects() -> None:
    """Predict numbers whose last digit depends on the size of the batch."""

    def restless(X: np.ndarray) -> np.ndarray:
        p = 0.3 + 0.1 * X[:, 0] + np.finfo(float).eps * (len(X) + np.arange(len(X))) % 7
        return np.column_stack([p, 1 - p])

    X, scores = np.ones((4, 6)), np.tile([6.0, 5, 4, 3, 2, 1], (4, 1))
    expected = scipy.stats.kendalltau([6, 5, 4, 3, 2, 1], [1, 0, 0, 0, 0, 0]).statistic
    for max_batch in (1, 3, 100):
        measure_values = faithfulness(restless, X, scores, target=0, max_batch=max_batch)
        np.testing.assert_allclose(measure_values["taucorr_loo"], expected)


# --- comparison with a slow loop -----------------------------------------------------------------


def one_by_one(
    predict: Any, x: np.ndarray, scores: np.ndarray, column: int, background: np.ndarray
) -> dict[str, float]:
    """Compute the default measures of one row by their definitions, one query at a time."""

    def answer(removed: set[int]) -> float:
        total = 0.0
        for row in background:
            changed = [row[j] if j in removed else x[j] for j in range(len(x))]
            total += float(predict(np.array([changed]))[0, column])
        return total / len(background)

    n = len(x)
    base = float(predict(x[np.newaxis])[0, column])
    rationales: list[set[int]] = []
    for percent in range(10, 101, 10):
        size = percent * n // 100
        order = sorted(range(n), key=lambda j: (scores[j], j), reverse=True)
        rationale = {j for j in order[:size] if scores[j] > 0}
        if rationale and (not rationales or rationale != rationales[-1]):
            rationales.append(rationale)
    everything = set(range(n))
    loo = [round(base - answer({j}), 12) for j in range(n)]
    constant = len(set(loo)) == 1 or len(set(scores)) == 1
    return {
        "aopc_compr": sum(base - answer(r) for r in rationales) / max(len(rationales), 1),
        "aopc_suff": sum(base - answer(everything - r) for r in rationales) / len(rationales)
        if rationales
        else 1.0,
        "taucorr_loo": math.nan if constant else scipy.stats.kendalltau(loo, scores)[0],
    }


def forest() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.integers(0, 4, size=(120, 6)).astype(float)
    y = (X[:, 0] * X[:, 1] > 3).astype(int) + (X[:, 2] > 2)
    return RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y), X


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1, 5, 64, 8192]))
def test_faithfulness_equals_slow_loop(seed: int, size: int, max_batch: int) -> None:
    model, X = forest()
    rng = np.random.default_rng(seed)
    rows = X[rng.integers(0, len(X), 4)]
    scores = rng.integers(-2, 3, size=rows.shape) / 2
    background = X[rng.integers(0, len(X), size)]
    target = int(rng.integers(0, 3))
    measure_values = faithfulness(
        model, rows, scores, removal=background, target=target, max_batch=max_batch
    )
    for number in range(4):
        expected = one_by_one(model.predict_proba, rows[number], scores[number], target, background)
        for name, value in expected.items():
            assert measure_values[name][number] == pytest.approx(value, abs=1e-9, nan_ok=True), name


# --- properties ----------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from(["all", "changed"]), st.booleans()
)
@settings(max_examples=25)
def test_faithfulness_ignores_order_batches_scale_and_names(
    seed: int, n: int, features: str, dedupe: bool
) -> None:
    """The order of rows, batch size, scale of scores and column names have no effect."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=n)

    def model(X: Any) -> np.ndarray:
        X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, dtype=float)
        margin = np.tanh(X[:, 0]) * X[:, -1] + (X * weights).sum(axis=1)
        return two_classes(lambda X: 1 / (1 + np.exp(-margin)))(X)

    X = rng.integers(0, 3, size=(5, n)).astype(float)
    scores = rng.permuted(np.tile(np.arange(n) - 1.0, (5, 1)), axis=1)
    options = {
        "removal": Removal(features=features),
        "rationales": Rationales(dedupe=dedupe),
        "measures": ALL,
    }
    expected = faithfulness(model, X, scores, **options)

    def check(measure_values: dict[str, np.ndarray], order: Any = slice(None)) -> None:
        for name in ALL:
            np.testing.assert_allclose(
                measure_values[name], expected[name][order], atol=1e-9, err_msg=name
            )

    for max_batch in (1, 4, 11):
        check(faithfulness(model, X, scores, max_batch=max_batch, **options))
    turned = rng.permutation(5)
    check(faithfulness(model, X[turned], scores[turned], **options), turned)
    check(
        faithfulness(model, X, 0.3 * scores, **options)
        | {"pearsoncorr_loo": expected["pearsoncorr_loo"]}
    )
    check(faithfulness(model, scipy.sparse.csr_array(X), scores, **options))
    check(faithfulness(model, pd.DataFrame(X), scores, **options))
    for name, values in expected.items():
        assert ((values >= -1 - 1e-9) & (values <= 1 + 1e-9) | np.isnan(values)).all(), name


def test_correlations_of_additive_model_are_1() -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(10, 8)), rng.normal(size=8)
    measure_values = faithfulness(
        additive(*weights),
        X,
        X * weights,
        measures=["taucorr_loo", "spearmancorr_loo", "pearsoncorr_loo"],
    )
    for values in measure_values.values():
        np.testing.assert_allclose(values, 1.0)


def test_faithfulness_counts_queries() -> None:
    queried: list[int] = []

    def model(X: np.ndarray) -> np.ndarray:
        queried.append(len(X))
        return X @ np.arange(1.0, 41.0)

    X = np.ones((30, 40))
    X[:, 20:] = 0  # Removal does not change these columns.
    scores = np.tile(np.arange(40.0), (30, 1))
    _, details = faithfulness(model, X, scores, max_batch=100, return_details=True)
    assert max(queried) <= 100
    assert sum(queried) == details["model_rows"] == details["queries"].sum()
    # 20 to leave one out. Of the rationales, the highest 4, 8, ... 36 and 39 features, those up to
    # 20 take nothing away that is there and leave nothing; the other five take something away and
    # leave something, the last of them all but one.
    assert details["queries"].tolist() == [1 + 20 + 1 + 5 + 4] * 30
    # All batches but the last are full.
    assert sum(size == 100 for size in queried) >= len(queried) - 4
    background = np.full((7, 40), 5.0)
    queried.clear()
    _, details = faithfulness(
        model, X, scores, removal=background, max_batch=20, return_details=True
    )
    assert max(queried) <= 20
    assert sum(queried) == details["model_rows"] == 30 + 7 * (details["queries"] - 1).sum()


def test_faithfulness_skips_unneeded_queries() -> None:
    """The rationale is the third feature: without it, and only it, are two queries."""
    options: dict[str, Any] = {"rationales": Rationales([1], by="count"), "return_details": True}
    X, scores = np.ones((1, 4)), [[1.0, 2.0, 4.0, 3.0]]
    for measures, queries in ((["aopc_compr"], 1 + 2), (["aopc_compr", "taucorr_loo"], 1 + 5)):
        _, details = faithfulness(additive(1, 2, 3, 4), X, scores, measures=measures, **options)
        assert details["queries"].tolist() == [queries]


# --- replacements --------------------------------------------------------------------------------


def test_removal_replaces_values_by_every_strategy() -> None:
    X = np.array([[1.0, 10.0]])
    reference = np.array([[0.0, 2.0], [1.0, 4.0], [5.0, 4.0], [2.0, 6.0]])
    model = additive(1, 1)

    def removed_values(value: Any, **options: Any) -> list[float]:
        removal = Removal(value, **options) if options else value
        _, details = faithfulness(model, X, [[1, 2]], removal=removal, return_details=True)
        return details["loo"][0].tolist()

    assert removed_values(None) == removed_values(0) == removed_values(0.0) == [1, 10]
    assert removed_values(3) == [-2, 7]
    assert removed_values([2, 3]) == removed_values(np.array([2.0, 3.0])) == [-1, 7]
    assert removed_values("mean", reference=reference) == [-1, 6]
    assert removed_values("median", reference=reference) == [-0.5, 6]
    assert removed_values("mode", reference=reference) == [
        1,
        6,
    ]  # Of equally frequent values the smallest is used.
    assert removed_values(reference) == removed_values("background", reference=reference) == [-1, 6]
    # Predictions are averaged, not background rows.
    _, details = faithfulness(
        lambda rows: rows[:, 0] ** 2, X, [[1, 2]], removal=reference, return_details=True
    )
    assert details["loo"][0].tolist() == [1 - (0 + 1 + 25 + 4) / 4, 0]


def test_removal_replaces_features_by_missing_values() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int)
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    rows, scores = X[:20], np.tile([1.0, 0.5, 0.2], (20, 1))
    measure_values, details = faithfulness(model, rows, scores, removal=np.nan, return_details=True)
    # Missing values need no query, as removal does not change them.
    present = (~np.isnan(rows)).sum(axis=1)
    assert (details["queries"][present == 0] == 1).all()
    emptied = rows.copy()
    emptied[:, 0] = np.nan
    columns = model.predict(rows)
    difference = model.predict_proba(rows) - model.predict_proba(emptied)
    loo = [values[0] for values in details["loo"]]
    np.testing.assert_allclose(loo, difference[np.arange(20), columns])
    assert np.isfinite(measure_values["aopc_compr"]).all()


def test_removal_keeps_dtypes_of_frames() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, 150),
            "town": pd.Categorical(rng.choice(["ulm", "jena", "kiel"], 150)),
            "pays": rng.random(150) < 0.5,
            "income": rng.normal(50, 10, 150),
        }
    )
    y = np.where((frame["town"] == "ulm") | (frame["age"] > 60), "yes", "no")
    received = []
    encode = make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), ["age", "income"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LogisticRegression()).fit(frame, y)

    def predict_proba(X: pd.DataFrame) -> np.ndarray:
        received.append(X.dtypes.to_dict())
        return model.predict_proba(X)

    rows = frame.iloc[:12]
    scores = np.tile([0.4, 0.3, 0.0, 0.1], (12, 1))
    background = frame.iloc[100:104]
    _, details = faithfulness(predict_proba, rows, scores, removal=background, return_details=True)
    assert all(dtypes == frame.dtypes.to_dict() for dtypes in received)
    assert all(len(part) == 4 for part in details["loo"])
    by_hand = []
    for number in range(12):
        column = int(details["target"][number])
        mixed = pd.concat([rows.iloc[[number]]] * 4, ignore_index=True)
        mixed["town"] = background["town"].to_numpy()
        base = model.predict_proba(rows.iloc[[number]])[0, column]
        by_hand.append(base - model.predict_proba(mixed)[:, column].mean())
    assert [part[1] for part in details["loo"]] == pytest.approx(by_hand)
    modes = faithfulness(model, rows, scores, removal=Removal("mode", reference=frame))
    named = {name: frame[name].mode()[0] for name in frame}
    exact = faithfulness(model, rows, scores, removal=pd.Series(named)[::-1])
    for name in modes:
        np.testing.assert_allclose(modes[name], exact[name])
    with pytest.raises(TypeError, match="does not fit column 'town'"):
        faithfulness(model, rows, scores)
    with pytest.raises(TypeError, match="column 'town' holds category"):
        faithfulness(model, rows, scores, removal=Removal("mean", reference=frame))


def test_removal_replaces_groups_together() -> None:
    names = ["red", "age", "green", "blue"]
    X = pd.DataFrame([[1.0, 30.0, 0.0, 0.0], [0.0, 50.0, 1.0, 0.0]], columns=names)
    model = additive(3, 0.1, 5, 7)
    scores = np.array([[2.0, 3.0, -1.5, 0.0], [1.0, 1.0, 2.0, 3.0]])
    reference = np.array([[0.0, 0.0, 0.0, 1.0]])
    measure_values, details = faithfulness(
        model,
        X,
        scores,
        removal=Removal(reference, groups=[["red", "green", "blue"]]),
        return_details=True,
    )
    assert [part.tolist() for part in details["scores"]] == [[0.5, 3.0], [6.0, 1.0]]
    # The group of colors has the position of its first column, and becomes blue as a whole.
    assert [part.tolist() for part in details["loo"]] == [[-4, 3], [-2, 5]]
    assert measure_values["aopc_compr"].tolist() == [(3 - 1) / 2, (-2 + 3) / 2]
    equal_measures = faithfulness(
        model, X.to_numpy(), scores, removal=Removal(reference, groups=[[0, 2, 3], [1]])
    )
    for name in measure_values:
        np.testing.assert_array_equal(measure_values[name], equal_measures[name])


def test_removal_orders_groups_by_first_column() -> None:
    """Of equal scores the later unit comes first: the last column, then the group."""
    _, details = faithfulness(
        additive(1, 10, 100, 1000),
        np.ones((1, 4)),
        [[2.0, 1.0, 1.0, 2.0]],
        removal=Removal(groups=[[1, 2]]),
        return_details=True,
    )
    assert details["loo"][0].tolist() == [1, 110, 1000]
    assert details["without"][0].tolist() == [111, 1, 0]


def test_removal_skips_unchanged_features() -> None:
    """Use a bag of words with 1000 columns, of which the row has four."""
    X = scipy.sparse.csr_array(([1.0, 2, 1, 1], ([0] * 4, [3, 500, 7, 999])), shape=(1, 1000))
    weights = np.zeros(1000)
    weights[[3, 500, 7, 999]] = [1, 2, 3, -1]
    scores = np.full((1, 1000), -1.0)
    scores[0, [3, 500, 7, 999]] = [1, 4, 3, -1]
    measure_values, details = faithfulness(
        lambda rows: rows @ weights,
        X,
        scores,
        removal=Removal(features="changed"),
        return_details=True,
    )
    assert details["lengths"][0].tolist() == [1, 2, 3]
    assert details["loo"][0].tolist() == [1, 3, 4, -1]
    assert measure_values["aopc_compr"][0] == pytest.approx((4 + 7 + 8) / 3)
    assert measure_values["taucorr_loo"][0] == pytest.approx(1.0)
    # The four features are less than a tenth of all columns.
    dense, more = faithfulness(
        lambda rows: rows @ weights, X.toarray(), scores, return_details=True
    )
    assert more["lengths"][0].tolist() == [3]
    assert len(more["loo"][0]) == 1000
    assert more["queries"][0] <= 1 + 2 + 4
    assert dense["aopc_compr"].tolist() == [8.0]


# --- targets -------------------------------------------------------------------------------------


def test_target_accepts_labels_columns_and_classes() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 3))
    names = np.array(["a", "b", "c"])
    model = LogisticRegression().fit(X, names[X.argmax(axis=1)])
    rows = X[:6]
    scores = rng.normal(size=(6, 3, 3))
    predicted = model.predict_proba(rows).argmax(axis=1)

    def measure_values(attributions: Any, **options: Any) -> list[float]:
        return faithfulness(model, rows, attributions, **options)["aopc_compr"].tolist()

    values = scores[np.arange(6), :, predicted]
    expected = measure_values(values)
    assert measure_values(scores) == measure_values(values, target=predicted) == expected
    assert measure_values(values, target=names[predicted]) == measure_values(
        values, target=list(predicted)
    )
    assert (
        measure_values(scores[:, :, 1], target="b")
        == measure_values(scores, target=1)
        == measure_values(scores, target="b")
    )
    assert measure_values([scores[:, :, k] for k in range(3)]) == expected
    assert measure_values(values, target=Target(explains="target")) == expected
    with pytest.raises(ValueError, match="explains must be the target"):
        measure_values(values, target=Target(explains="a"))
    # Integer labels other than the columns are ambiguous.
    numbered = LogisticRegression().fit(X, X.argmax(axis=1) + 1)
    with pytest.raises(ValueError, match="kind='column' or kind='label'"):
        faithfulness(numbered, rows, values, target=1)
    by_label = faithfulness(numbered, rows, values, target=Target(1, kind="label"))
    by_column = faithfulness(numbered, rows, values, target=Target(0, kind="column"))
    assert by_label["aopc_suff"].tolist() == by_column["aopc_suff"].tolist()
    unnamed = faithfulness(
        lambda rows: model.predict_proba(rows), rows, values, target=Target("b", classes=names)
    )
    assert (
        unnamed["aopc_suff"].tolist()
        == faithfulness(model, rows, values, target=1)["aopc_suff"].tolist()
    )


def test_target_of_other_class_negates_scores() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 4))
    model = LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0)
    slopes = X * model.coef_[0]
    signs = np.where(model.predict(X), 1, -1)
    assert set(signs) == {1, -1}
    measure_values = faithfulness(
        model, X, slopes, target=Target(explains=True, kind="label"), measures=ALL
    )
    exact = faithfulness(model, X, signs[:, np.newaxis] * slopes, measures=ALL)
    repeated = faithfulness(model, X, -slopes, target=Target(explains=0), measures=ALL)
    for name in ALL:
        np.testing.assert_array_equal(measure_values[name], exact[name])
        np.testing.assert_array_equal(repeated[name], exact[name])
    assert (measure_values["taucorr_loo"] == 1).all()
    permuted = attribution_infidelity(
        model, X, slopes, target=Target(explains=True, kind="label"), scale=False
    )
    plain = attribution_infidelity(model, X, signs[:, np.newaxis] * slopes, scale=False)
    np.testing.assert_array_equal(permuted, plain)
    tokens = [np.array(["a", "b"]), np.array(["c"], dtype=object)]
    stated = faithfulness(lambda rows: np.full((len(rows), 2), 0.5), tokens, [[1.0, 2.0], [3.0]])
    assert stated["aopc_compr"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"have \[1, 2\] values for each feature"):
        faithfulness(lambda rows: np.full((len(rows), 2), 0.5), tokens, [np.ones((2, 2)), [3.0]])


def test_target_links_turn_margins_into_probabilities() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    two = LogisticRegression().fit(X, X[:, 0] > 0)
    three = LogisticRegression().fit(X, X.argmax(axis=1))
    scores = np.abs(X)
    for model, link in ((two, "sigmoid"), (three, "softmax")):
        expected = faithfulness(model.predict_proba, X, scores)
        measure_values = faithfulness(model.decision_function, X, scores, target=Target(link=link))
        for name in expected:
            np.testing.assert_allclose(measure_values[name], expected[name], atol=1e-9)
        with pytest.raises(TypeError, match="margins, not probabilities"):
            faithfulness(model.decision_function, X, scores)
        margins = faithfulness(model.decision_function, X, scores, target=Target(link="identity"))
        assert margins["aopc_compr"].max() > 1
    with pytest.raises(ValueError, match="link='sigmoid'"):
        faithfulness(two.decision_function, X, scores, target=Target(link="softmax"))
    with pytest.raises(ValueError, match="link='softmax'"):
        faithfulness(three.decision_function, X, scores, target=Target(link="sigmoid"))


def test_faithfulness_accepts_regressors() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 3))
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])
    scores = X * model.coef_
    for queried in (model, model.predict):
        measure_values = faithfulness(
            queried, X, scores, removal=Removal("mean", reference=np.zeros((1, 3)))
        )
        assert (measure_values["taucorr_loo"] > 0.99).all()


# --- errors --------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "predict_proba": two_classes(sums),
    "X": [[1.0, 1.0, 1.0], [0.0, 1.0, 0.5]],
    "attributions": [[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]],
}


def labeled(X: Any) -> list[str]:
    return ["a"] * len(X)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"attributions": [[1, 2, 3]]}, ValueError, "1 for 2"),
        ({"attributions": [[1, 2], [3, 4]]}, ValueError, "row 0 has 2 for 3 features"),
        ({"attributions": [[1, 2, 3], [1, math.nan, 3]]}, ValueError, "nan in row 1 at 1"),
        ({"attributions": [[1, 2, 3], [1, 2, math.inf]]}, ValueError, "inf in row 1 at 2"),
        ({"attributions": [["a", "b", "c"]] * 2}, TypeError, "numbers"),
        ({"attributions": None}, TypeError, "NoneType"),
        ({"attributions": "abc"}, TypeError, "str"),
        ({"attributions": np.ones((2, 3, 4))}, ValueError, "predicts 2 columns"),
        ({"attributions": np.ones((2, 3, 2, 2))}, ValueError, r"\(2, 3, 2, 2\)"),
        ({"attributions": [np.ones((2, 3))] * 2}, ValueError, "np.stack"),
        (
            {"attributions": np.ones((2, 3, 2)), "target": Target(explains=1)},
            ValueError,
            "one value per class",
        ),
        ({"attributions": pd.DataFrame(np.ones((3, 3)))}, ValueError, "3 for 2"),
        ({"X": [1.0, 2.0, 3.0]}, ValueError, "list of one"),
        ({"X": "a text"}, TypeError, "single text"),
        ({"X": np.array([["a", "b"], ["c", "d"]])}, TypeError, "DataFrame"),
        ({"X": np.empty((0, 3))}, ValueError, "table of features"),
        ({"predict_proba": labeled}, TypeError, "labels"),
        ({"predict_proba": 3}, TypeError, "got int"),
        ({"predict_proba": lambda X: X}, ValueError, "add up to 1"),
        ({"predict_proba": lambda X: -X}, ValueError, "an entry of -1"),
        ({"predict_proba": lambda X: np.ones((1, 2)) / 2}, ValueError, "each of its 2 rows"),
        ({"predict_proba": lambda X: np.full(len(X), np.nan)}, ValueError, "finite"),
        (
            {"predict_proba": lambda X: np.ones((len(X), 1 + (len(X) > 2))) / 2},
            ValueError,
            "2 columns, but 1 before",
        ),
        ({"target": 2}, ValueError, "0 to 1"),
        ({"target": -1}, ValueError, "0 to 1"),
        ({"target": [0, 1, 0]}, ValueError, "each of the 2 rows"),
        ({"target": "yes"}, ValueError, "classes are unknown"),
        ({"target": Target("yes", classes=["no", "maybe"])}, ValueError, "'yes'"),
        ({"target": Target("yes", classes=["no"])}, ValueError, "name the 2 columns"),
        ({"removal": "zero"}, ValueError, "'zero'"),
        ({"removal": "mean"}, ValueError, "reference must be given"),
        ({"removal": [1, 2]}, ValueError, "each of the 3 features"),
        ({"removal": np.empty((0, 3))}, ValueError, "at least one"),
        ({"removal": True}, TypeError, "True"),
        ({"removal": Removal("mean", reference=np.full((2, 3), np.nan))}, ValueError, "column 0"),
        ({"measures": ["aopc"]}, ValueError, "aopc_compr"),
        ({"measures": []}, ValueError, "at least one"),
        ({"removal": Removal(groups=[[0, 1], [1, 2]])}, ValueError, "share columns, but 1"),
        ({"removal": Removal(groups=[[0, 3]])}, ValueError, "got 3 in group 0"),
        ({"removal": Removal(groups=[["a"]])}, ValueError, "got 'a'"),
        ({"removal": Removal(groups=[0, 1])}, TypeError, "list of lists"),
        ({"removal": Removal(align="columns")}, ValueError, "table"),
        ({"removal": Removal(leave_one_out="mask")}, ValueError, "texts"),
        ({"max_batch": 0}, ValueError, "max_batch"),
        ({"max_batch": 2.0}, TypeError, "max_batch"),
        ({"X": scipy.sparse.csr_array(np.ones((2, 3))), "removal": 1}, ValueError, "must be 0"),
    ],
)
def test_faithfulness_rejects_invalid_inputs(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        faithfulness(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"thresholds": [0.5, 1.5]}, "at most 1"),
        ({"thresholds": []}, "list of numbers"),
        ({"thresholds": "10%"}, "'10%'"),
        ({"by": "count"}, "thresholds must be given"),
        ({"by": "count", "thresholds": [1.5]}, "integers of at least 1"),
        ({"by": "score", "thresholds": [math.nan]}, "finite"),
        ({"by": "size"}, "'size'"),
    ],
)
def test_rationales_reject_wrong_thresholds(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rationales(**changes)


@pytest.mark.parametrize(
    ("make", "option"),
    [(Removal, "features"), (Removal, "align"), (Target, "kind"), (Target, "link")],
)
def test_settings_reject_unknown_choices(make: Any, option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} must be one of .* got 'some'"):
        make(**{option: "some"})


def test_faithfulness_accepts_probabilities_within_tolerance() -> None:
    def model(X: Any) -> np.ndarray:
        return np.tile([-1e-6, 1 + 1e-6], (len(X), 1))

    assert faithfulness(model, np.ones((1, 2)), [[1.0, 2.0]])["aopc_compr"].tolist() == [0.0]


def test_target_of_single_rows_must_be_columns() -> None:
    model = two_classes(sums)
    with pytest.raises(ValueError, match=r"columns from 0 to 1, got \[0, -1\]"):
        faithfulness(model, np.ones((2, 3)), np.ones((2, 3)), target=[0, -1])


@pytest.mark.parametrize("attributions", [None, "abc", {"a": [1.0, 2.0]}])
def test_faithfulness_rejects_attributions_of_other_types(attributions: Any) -> None:
    with pytest.raises(TypeError, match="must be an array, DataFrame, tensor or explanation"):
        faithfulness(additive(1, 1), np.ones((1, 2)), attributions)


def test_faithfulness_rejects_labels() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match="returns labels"):
        faithfulness(model.predict, X, X)
    # Functions that return integer labels are refused as well.
    with pytest.raises(TypeError, match=r"must not return labels.*np\.eye"):
        faithfulness(lambda X: model.predict(X).astype(int), X, X)
    with pytest.raises(TypeError, match="the class LogisticRegression"):
        faithfulness(LogisticRegression, X, X)
    counts = faithfulness(lambda X: (X[:, 0] > 0).astype(int), X, X, target=Target(link="identity"))
    decisions = faithfulness(lambda X: np.eye(2)[(X[:, 0] > 0).astype(int)], X, X, target=1)
    np.testing.assert_array_equal(counts["aopc_compr"], decisions["aopc_compr"])
    with pytest.raises(ValueError, match="predicts a single number"):
        faithfulness(additive(1, 1, 1), X, X, target=1)


def test_faithfulness_matches_frames_by_name() -> None:
    X = pd.DataFrame([[1.0, 2, 3], [4, 5, 6]], columns=["a", "b", "c"], index=[7, 3])
    scores = pd.DataFrame([[1.0, 2, 3], [6, 5, 4]], columns=["a", "b", "c"], index=[7, 3])
    model = additive(1, 1, 1)
    expected = faithfulness(model, X, scores.to_numpy())
    for equal_measures in (
        scores,
        scores[["c", "a", "b"]],
        scores.loc[[3, 7]],
        scores.reset_index(drop=True),
        scores.set_axis([0, 1, 2], axis=1),
    ):
        measure_values = faithfulness(model, X, equal_measures)
        for name in expected:
            np.testing.assert_array_equal(measure_values[name], expected[name])
    with pytest.raises(ValueError, match="'d' is not one of them"):
        faithfulness(model, X, scores.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="or the default index"):
        faithfulness(model, X, scores.set_axis([7, 4], axis=0))


def test_faithfulness_matches_frames_by_index() -> None:
    """Only the default index of a frame means the order of the rows."""
    X = pd.DataFrame([[1.0, 2], [3, 4], [5, 6]])
    scores = np.array([[1.0, 2], [4, 3], [6, 7]])
    backwards, ranges = slice(None, None, -1), (pd.RangeIndex(3), pd.RangeIndex(1, 4))
    for index, by_label in (
        (ranges[0], False),
        (pd.Index(list(ranges[0])).astype(object), True),
        (ranges[1], True),
    ):
        rows = X.set_axis(list(index)[backwards], axis=0)
        frame = pd.DataFrame(scores, index=index)
        _, details = faithfulness(additive(1, 10), rows, frame, return_details=True)
        expected = scores[backwards] if by_label else scores
        assert [row.tolist() for row in details["scores"]] == expected.tolist()


def test_faithfulness_rejects_label_only_models() -> None:
    class Labels:
        def predict(self, X: Any) -> Any:
            return np.zeros(len(X))

    with pytest.raises(TypeError, match="predict_proba must be"):
        faithfulness(Labels(), np.arange(8.0)[:, None], np.ones((8, 1)))


# --- insertion and deletion curves ----------------------------------------------------------------


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), n_features=st.integers(1, 6))
def test_removal_curves_agree_with_loop(seed: int, n_features: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=n_features)
    X, fill = rng.normal(size=(3, n_features)), rng.normal(size=n_features)
    scores = rng.permutation(3 * n_features).reshape(3, n_features).astype(float)

    def model(rows: np.ndarray) -> np.ndarray:
        return np.tanh(np.asarray(rows) @ weights)

    curves = removal_curves(model, X, scores, removal=fill)
    for i, row in enumerate(X):
        removed, inserted = row.copy(), fill.copy()
        deletion, insertion = [model(row[None])[0]], [model(fill[None])[0]]
        for j in np.argsort(-scores[i]):
            removed[j], inserted[j] = fill[j], row[j]
            deletion.append(model(removed[None])[0])
            insertion.append(model(inserted[None])[0])
        assert curves.deletion[i] == pytest.approx(np.array(deletion))
        assert curves.insertion[i] == pytest.approx(np.array(insertion))
        steps = range(n_features)
        area = sum((deletion[k] + deletion[k + 1]) / 2 for k in steps) / n_features
        assert curves.deletion_area[i] == pytest.approx(area)
        area = sum((insertion[k] + insertion[k + 1]) / 2 for k in steps) / n_features
        assert curves.insertion_area[i] == pytest.approx(area)
    mean = curves.mean(n_features + 1)
    assert mean["deletion"] == pytest.approx(np.mean(curves.deletion, axis=0))


def test_removal_curves_prefer_the_true_order() -> None:
    X, y = np.random.default_rng(0).normal(size=(80, 4)), None
    y = (2 * X[:, 0] + X[:, 1] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    effects = X * model.coef_[0]
    target = Target(explains=1)
    good = removal_curves(model, X, effects, target=target)
    bad = removal_curves(model, X, -effects, target=target)
    assert good.deletion_area.mean() < bad.deletion_area.mean() - 0.1
    assert good.insertion_area.mean() > bad.insertion_area.mean() + 0.1


def test_removal_curves_accept_texts_of_different_lengths() -> None:
    def count_good(texts: Any) -> np.ndarray:
        return np.array([text.split().count("good") for text in texts], dtype=float)

    texts, scores = ["good day", "good good night now"], [[1, 0], [3, 2, 1, 0]]
    curves = removal_curves(count_good, texts, scores, removal=Removal(tokenizer=str.split))
    assert [curve.tolist() for curve in curves.deletion] == [[1, 0, 0], [2, 1, 0, 0, 0]]
    assert [curve.tolist() for curve in curves.insertion] == [[0, 1, 1], [0, 1, 2, 2, 2]]
    assert curves.mean(3)["insertion"].tolist() == [0.0, 1.5, 1.5]


@pytest.mark.parametrize("scale", [1e-300, 1e280, 1e300, 1e308])
@pytest.mark.parametrize("weights", [[1, 2, 3], [1, -2, 3]])
def test_correlations_ignore_extreme_scales_of_scores(scale: float, weights: Any) -> None:
    def model(X: Any) -> Any:
        return X @ np.array(weights, dtype=float)

    X, scores = [[1.0, 1.0, 1.0]], np.array([[1.0, -1.3, 1.7]])
    measures = ["pearsoncorr_loo", "taucorr_loo"]
    expected = faithfulness(model, X, scores, measures=measures)
    result = faithfulness(model, X, scores * scale, measures=measures)
    for name in measures:
        assert result[name] == pytest.approx(expected[name], rel=1e-12)
