"""The public interface of B-ReX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.attribution import (
    Attribution,
    BReX,
    Formula,
    all_assignments,
    nearest_contrasts,
    random_formula,
    responsibility,
)
from skescore.metrics.attribution import jensen_shannon_divergence

FORMULA = Formula.parse("(x1 & x2) | (x3 ^ ~x4) & x6", n_inputs=7)
REPEATED = Formula.parse("(x1 & x2) | (~x1 & x3) | (x2 ^ x4)", n_inputs=6)


def rows_of(n_inputs: int, n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2, (n, n_inputs))


def same(first: Attribution, second: Attribution) -> None:
    assert (first.values == second.values).all()
    assert (first.queries == second.queries).all()
    assert (first.resolved == second.resolved).all()
    assert (first.upper == second.upper).all()
    assert first.witnesses == second.witnesses


# --- values --------------------------------------------------------------------------------------


def test_brex_explains_examples_of_paper() -> None:
    both_false = Formula.parse("x1 & x2", n_inputs=12)
    three = Formula.parse("x1 & (x2 & x3)")
    for masking in ("auto", "kleene", "supervaluation", "sampled"):
        brex = BReX(both_false, masking=masking, random_state=0)
        assert brex.explain(np.zeros(12, dtype=int)).values.tolist() == [[0.5, 0.5] + [0.0] * 10]
        # Figure 1 of the paper: False and (False and False).
        explanation = BReX(three, masking=masking, random_state=0).explain([0, 0, 0])
        assert explanation.values == pytest.approx(np.full((1, 3), 1 / 3))
        assert explanation.witnesses == (((1, 2), (0, 2), (0, 1)),)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_brex_divergences_equal_earlier_measurements(family: str) -> None:
    # Mean divergences of a prototype with one pass, measured at arity 10.
    paper = {"monotone": 0.072, "non-monotone": 0.083}[family]
    results: dict[str, list[float]] = {"paper": [], "certified": [], "queries": [], "table": []}
    for seed in range(12):
        formula = random_formula(10, family=family, random_state=seed)
        X = rows_of(12, 25, seed)
        truth = responsibility(formula, X)
        for preset in ("paper", "certified"):
            answer = BReX(formula, preset=preset, masking="kleene", random_state=0).explain(X)
            results[preset].append(jensen_shannon_divergence(answer.values, truth).mean())
        results["queries"].append(answer.queries.mean())
    assert np.mean(results["paper"]) == pytest.approx(paper, abs=0.03)
    assert np.mean(results["certified"]) < 0.005
    assert np.mean(results["queries"]) < 30


@pytest.mark.parametrize("formula", [FORMULA, REPEATED], ids=["once", "repeated"])
def test_brex_with_shared_table_is_exact_on_any_formula(formula: Formula) -> None:
    X = all_assignments(formula.n_inputs)
    explanation = BReX(formula).explain(X)
    truth = responsibility(formula, X, return_witnesses=True)
    assert explanation.masking == "supervaluation"
    assert (explanation.values == truth.values).all()
    assert explanation.resolved.all()
    assert explanation.n_model_rows == len(X)
    assert (explanation.queries == len(X)).all()
    for row, witnesses in zip(explanation.values, explanation.witnesses, strict=True):
        assert [w is not None for w in witnesses] == (row > 0).tolist()


def test_brex_auto_masking_takes_cheapest_exact() -> None:
    wide = random_formula(5, n_inputs=18, random_state=0)
    repeated = random_formula(5, n_inputs=12, read_once=False, random_state=0)
    once = random_formula(5, n_inputs=12, random_state=0)
    options = {
        "one row, once": BReX(once).explain(rows_of(12, 1)),
        "all rows, once": BReX(once).explain(rows_of(12, 200)),
        "one row, repeated": BReX(repeated).explain(rows_of(12, 1)),
        "few rows, repeated": BReX(repeated).explain(rows_of(12, 22)),
        "wide": BReX(wide).explain(rows_of(18, 50)),
        "black box": BReX(once.predict).explain(rows_of(12, 2)),
        "budget": BReX(once, max_queries=15).explain(rows_of(12, 200)),
        "paper": BReX(once, preset="paper").explain(rows_of(12, 200)),
        "baseline": BReX(once, baseline=0).explain(rows_of(12, 200)),
        "contrast": BReX(once, contrast=np.ones(12, int), max_queries=9).explain(rows_of(12, 2)),
    }
    assert {name: result.masking for name, result in options.items()} == {
        "one row, once": "kleene",
        "all rows, once": "supervaluation",
        "one row, repeated": "sampled",
        "few rows, repeated": "supervaluation",
        "wide": "kleene",
        "black box": "sampled",
        "budget": "kleene",
        "paper": "kleene",
        "baseline": "baseline",
        "contrast": "sampled",
    }


@pytest.mark.parametrize("masking", ["kleene", "supervaluation", "sampled", "baseline"])
@pytest.mark.parametrize("preset", ["certified", "paper", "literal"])
def test_brex_maps_of_constant_models_are_zero(preset: str, masking: str) -> None:
    constant = Formula.parse("x1 & ~x1", n_inputs=5)
    if masking == "kleene":  # Kleene logic does not know that x1 & ~x1 is false
        constant = Formula.parse("x1", n_inputs=5)
        constant = type(
            "Constant",
            (),
            {
                "evaluate_kleene": lambda self, V: np.ones(len(V), dtype=np.int8),
                "predict": lambda self, X: np.ones(len(X), dtype=int),
            },
        )()
    brex = BReX(constant, preset=preset, masking=masking, baseline=0, random_state=0)
    explanation = brex.explain(rows_of(5, 4))
    assert (explanation.values == 0).all()
    if masking == "kleene":
        assert (explanation.queries == 2).all()  # unmasked row and fully masked row


def test_brex_parameters_override_presets() -> None:
    X = rows_of(7, 30)
    literal = BReX(FORMULA, preset="literal", masking="kleene", random_state=0).explain(X)
    by_hand = BReX(
        FORMULA,
        preset="paper",
        context="original",
        n_iterations=20,
        masking="kleene",
        random_state=0,
    ).explain(X)
    same(literal, by_hand)
    assert literal.witnesses is None
    assert not literal.resolved.any()
    patient = BReX(
        FORMULA, preset="literal", patience=3, n_iterations=20, masking="kleene", random_state=0
    ).explain(X)
    assert (patient.queries <= literal.queries).all()
    frugal = BReX(FORMULA, masking="kleene", random_state=0).explain(X)
    memo = BReX(FORMULA, masking="kleene", inference=False, random_state=0).explain(X)
    assert (frugal.queries <= memo.queries).all()
    assert frugal.queries.sum() < memo.queries.sum()


def test_brex_means_divide_by_passes_run_before_patience() -> None:
    X = rows_of(7, 40)
    truth = responsibility(FORMULA, X)
    for patience in (1, 3, None):
        explanation = BReX(
            FORMULA,
            preset="paper",
            n_blocks=2,
            n_iterations=40,
            patience=patience,
            masking="kleene",
            random_state=0,
        ).explain(X)
        assert (explanation.values.max(axis=1) > 0.4 * truth.max(axis=1)).all()


# --- invariance ----------------------------------------------------------------------------------

WAYS: list[dict[str, Any]] = [
    {"masking": "kleene"},
    {"masking": "sampled"},
    {"masking": "sampled", "max_queries": 12},
    {"masking": "baseline", "baseline": 1},
    {"masking": "background", "background": rows_of(7, 5, 9)},
    {"masking": "kleene", "preset": "literal"},
    {"masking": "sampled", "preset": "paper"},
    {"masking": "supervaluation", "preset": "paper"},
    {"masking": "kleene", "max_queries": 9},
]


@pytest.mark.parametrize(
    "options", WAYS, ids=lambda options: "-".join([options["masking"], *sorted(options)])
)
def test_brex_ignores_batches_neighbors_and_order(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.concatenate([rows_of(7, 9), rows_of(7, 3)])
    brex = BReX(FORMULA, random_state=3, **options)
    full_explanation = brex.explain(X)
    assert (full_explanation.values[9:] == full_explanation.values[:3]).all()  # equal rows
    for max_batch in (1, 7, 50):
        same(clone(brex).set_params(max_batch=max_batch).explain(X), full_explanation)
    order = np.random.default_rng(0).permutation(12)
    shuffled = brex.explain(X[order])
    assert (shuffled.values == full_explanation.values[order]).all()
    assert (shuffled.queries == full_explanation.queries[order]).all()
    single = brex.explain(X[5])
    assert (single.values[0] == full_explanation.values[5]).all()
    framed = brex.explain(pd.DataFrame(X, columns=list("abcdefg"), index=range(100, 112)))
    assert (framed.values == full_explanation.values).all()
    assert framed.feature_names == tuple("abcdefg")
    same(brex.explain(X.astype(float)), full_explanation)
    monkeypatch.setattr("skescore.attribution._brex._BLOCK", 4)
    same(brex.explain(X), full_explanation)


def test_brex_depends_on_seed_only() -> None:
    X = rows_of(7, 30)
    ways = [BReX(FORMULA, preset="paper", masking="kleene", random_state=s) for s in (0, 0, 1)]
    first, again, other = [brex.explain(X).values for brex in ways]
    assert (first == again).all()
    assert (first != other).any()


# --- other kinds of models -----------------------------------------------------------------------


def test_brex_explains_classifier_and_contrast_exactly() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    contrast = np.median(X, axis=0)
    truth = responsibility(model, X[::10], contrast=contrast)
    explanation = BReX(model, contrast=contrast, random_state=0).explain(X[::10])
    assert explanation.masking == "supervaluation"  # 16 flips are fewer than a search would take
    assert (explanation.values == truth).all()
    searched = BReX(model, contrast=contrast, masking="sampled").explain(X[::10])
    assert (searched.values == truth).all()


def test_brex_passes_frames_unchanged_to_model() -> None:
    frame = pd.DataFrame(
        {
            "color": pd.Categorical(["red", "blue", "red", "green"] * 10),
            "name": ["a", "b", "b", "a"] * 10,
            "size": np.arange(40.0),
            "on": [True, True, False, False] * 10,
        }
    )
    y = ((frame["color"] == "red") & (frame["size"] > 10)).to_numpy()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["color", "name"]), remainder="passthrough"),
        DecisionTreeClassifier(random_state=0),
    ).fit(frame, y)
    row = frame.iloc[[20]]
    for params in ({"baseline": "mode"}, {"masking": "background"}, {}, {"masking": "sampled"}):
        explanation = BReX(model, background=frame, random_state=0, **params).explain(row)
        assert explanation.feature_names == ("color", "name", "size", "on")
        assert explanation.values[0, 1] == explanation.values[0, 3] == 0
    # With this contrast, changing the color or the size alone changes the decision.
    contrast = pd.DataFrame({"color": ["blue"], "name": ["b"], "size": [3], "on": [False]})
    explanation = BReX(model, contrast=contrast).explain(row)
    assert explanation.values.tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_brex_accepts_signs_as_two_values() -> None:
    X = 2 * rows_of(7, 12) - 1

    def model(signs: Any) -> Any:
        assert set(np.unique(signs)) <= {-1, 1}
        return FORMULA.predict((signs + 1) // 2)

    explanation = BReX(model).explain(X)
    assert (explanation.values == responsibility(FORMULA, (X + 1) // 2)).all()


def test_brex_uses_unassigned_value_of_baseline() -> None:
    """The formula acts like a network with unassigned inputs coded as 0, and has three classes."""
    X = 2 * rows_of(7, 20) - 1
    explanation = BReX(FORMULA.evaluate_kleene, baseline=0, inference=True, random_state=0).explain(
        X
    )
    kleene = BReX(FORMULA, masking="kleene", random_state=0).explain((X + 1) // 2)
    truth = responsibility(FORMULA, (X + 1) // 2)
    assert jensen_shannon_divergence(explanation.values, truth).mean() < 0.01
    assert abs(explanation.queries.mean() - kleene.queries.mean()) < 3


def test_brex_treats_low_probabilities_as_undecided() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(max_iter=5000).fit(X[:, :3], y)
    contrast = X[:, :3].mean(axis=0)
    row = X[[0], :3]
    strict = BReX(model, contrast=contrast, threshold=0.9).explain(row)
    lax = BReX(model, contrast=contrast).explain(row)
    assert strict.values.sum() >= lax.values.sum()
    sure = lambda rows: model.predict_proba(rows).max(axis=1) > 0.9  # noqa: E731
    by_hand = BReX(lambda rows: sure(rows) * (1 + model.predict(rows)), contrast=contrast)
    assert (by_hand.explain(row).values == strict.values).all()


def test_brex_explains_forest_with_thirty_features() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X, y)
    explanation = BReX(model, background=X, max_queries=600, random_state=0).explain(
        X[[0, 20, 100]]
    )
    assert explanation.masking == "sampled"
    assert (explanation.queries <= 600).all()
    # Check the witnesses with new queries.
    contrast = nearest_contrasts(model, X[[0, 20, 100]], X)
    for row, other, values, witnesses in zip(
        X[[0, 20, 100]], contrast, explanation.values, explanation.witnesses or (), strict=True
    ):
        assert values.max() > 0
        for feature in np.flatnonzero(values):
            flipped = row.copy()
            members = [feature, *witnesses[feature]]
            assert values[feature] == 1 / len(members)
            flipped[members] = other[members]
            assert model.predict(flipped[None]) != model.predict(row[None])
            for member in members:  # the set is minimal
                less = flipped.copy()
                less[member] = row[member]
                assert model.predict(less[None]) == model.predict(row[None])


# --- the result ----------------------------------------------------------------------------------


def test_attribution_converts_to_array_frame_and_text() -> None:
    explanation = BReX(FORMULA, random_state=0).explain(rows_of(7, 3))
    assert np.asarray(explanation).tolist() == explanation.values.tolist()
    assert np.asarray(explanation, dtype=np.float32).dtype == np.float32
    assert explanation.to_frame(index=["p", "q", "r"]).loc["q", "x3"] == explanation.values[1, 2]
    assert len(explanation) == 3
    assert explanation.shape == (3, 7)
    assert "3 rows, 7 features" in repr(explanation)
    assert jensen_shannon_divergence(explanation, explanation.values).tolist() == [0, 0, 0]
    assert "BReX(" in repr(BReX(FORMULA))


def test_attribution_plots_bars_and_heatmaps() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    explanation = BReX(FORMULA, masking="kleene", random_state=0).explain(rows_of(7, 4))
    bars = explanation.plot(row=2)
    best = int(explanation.values[2].argmax())
    assert bars.get_yticklabels()[0].get_text() == f"x{best + 1}"
    assert [bar.get_width() for bar in bars.patches] == sorted(explanation.values[2], reverse=True)
    assert bars.get_title() == "Row 2"
    image = explanation.plot(max_features=3)
    assert image.images[0].get_array().shape == (4, 3)
    means = explanation.plot("bar", ax=bars)
    assert means is bars
    assert "mean" in means.get_xlabel()
    with pytest.raises(ValueError, match=r"kind must be one of 'bar', 'heatmap', got 'bars'"):
        explanation.plot("bars")
    with pytest.raises(ValueError, match=r"row must be an integer from -4 to 3 or None, got 4"):
        explanation.plot(row=4)
    pyplot.close("all")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"preset": "papr"}, r"preset must be one of .*got 'papr'"),
        ({"masking": "clean"}, r"masking must be one of .*got 'clean'"),
        ({"n_blocks": 1}, r"n_blocks must be an integer of 2 or more, got 1"),
        ({"n_blocks": 9}, r"n_blocks must be at most 8.*got 9"),
        ({"n_iterations": 0}, r"n_iterations must be an integer of 1 or more, got 0"),
        ({"patience": 1.5}, r"patience must be an integer of 1 or more, got 1.5"),
        ({"context": "none"}, r"context must be one of .*got 'none'"),
        ({"context": "original"}, r"context must be 'witness' with preset='certified'"),
        ({"max_queries": 0}, r"max_queries must be an integer of 1 or more or None, got 0"),
        ({"max_batch": 0}, r"max_batch must be an integer of 1 or more, got 0"),
        ({"threshold": 2}, r"threshold must be a number above 0 and at most 1 or None, got 2"),
        ({"masking": "baseline"}, r"baseline must be given for masking='baseline', got None"),
        ({"masking": "background"}, r"background must be given for masking='background'"),
        ({"baseline": "mean"}, r"background must be given for baseline='mean', got None"),
        ({"baseline": "mean value", "background": [[0] * 7]}, r"baseline must be one of .*'mean v"),
        ({"masking": "background", "background": [[0] * 6]}, r"background must be rows of 7"),
        ({"contrast": [0] * 6}, r"contrast must be one row of 7 features"),
        ({"random_state": -1}, r"random_state must be"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_brex_rejects_invalid_parameters(params: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        BReX(FORMULA, **params).explain(rows_of(7, 2))


def test_brex_rejects_invalid_models_and_rows() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"masking='kleene' needs a model with evaluate_kleene"):
        BReX(FORMULA.predict, masking="kleene").explain(rows_of(7, 2))
    with pytest.raises(TypeError, match=r"decide between classes, got the regressor"):
        BReX(LinearRegression().fit(X, X[:, 0]), contrast=X[0]).explain(X)
    with pytest.raises(ValueError, match=r"zeros and ones if contrast is None"):
        BReX(lambda rows: rows[:, 0] > 0).explain(X)
    with pytest.raises(ValueError, match=r"at most 16 features, got 20.*masking='sampled'"):
        BReX(lambda rows: rows[:, 0] > 0, masking="supervaluation").explain(rows_of(20, 2))
    with pytest.raises(ValueError, match=r"X must be rows of features, got shape \(0, 3\)"):
        BReX(FORMULA).explain(X[:0])
    with pytest.raises(TypeError, match=r"got a Series"):
        BReX(FORMULA).explain(pd.Series([0, 1]))
    with pytest.raises(ValueError, match=r"X must have distinct column names, got 'a' twice"):
        BReX(FORMULA).explain(pd.DataFrame([[0, 1]], columns=["a", "a"]))
