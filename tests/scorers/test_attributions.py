"""Measures of attributions as scorers, in scikit-learn's own searches and validations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skescore.metrics.attribution import (
    FAITHFULNESS,
    PLAUSIBILITY,
    Removal,
    Target,
    faithfulness,
    plausibility,
)
from skescore.scorers import AttributionScorer, make_attribution_scorer

X, Y = load_breast_cancer(return_X_y=True)
X, Y = X[:120, :6], Y[:120]


def slopes(model: Any, rows: Any) -> np.ndarray:
    return model[-1].coef_[0] * model[:-1].transform(rows)


def nothing(model: Any, rows: Any) -> np.ndarray:
    return np.zeros((len(rows), 6))


@pytest.fixture(scope="module")
def model() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


@pytest.mark.parametrize("measure", FAITHFULNESS)
def test_attribution_scorer_returns_signed_mean(model: Any, measure: str) -> None:
    scorer = make_attribution_scorer(
        measure, slopes, target=Target(explains=1), removal=Removal("mean", reference=X)
    )
    values = faithfulness(
        model,
        X,
        slopes(model, X),
        measures=[measure],
        target=Target(explains=1),
        removal=Removal("mean", reference=X),
    )[measure]
    sign = 1 if FAITHFULNESS[measure] else -1
    assert scorer(model, X, Y) == scorer(model, X) == pytest.approx(sign * np.nanmean(values))
    assert scorer.name == ("" if sign == 1 else "neg_") + measure
    assert repr(scorer).startswith(f"{scorer.name}(slopes, target=Target(explains=1)")
    weights = np.arange(len(X)) / 1e5  # weights below 1 work like numbers of rows
    assert scorer(model, X, Y, sample_weight=weights) == pytest.approx(
        sign * np.average(values, weights=weights)
    )
    # The true slopes of a linear model score higher than their opposite.
    opposite = make_attribution_scorer(
        measure,
        lambda model, rows: -slopes(model, rows),
        target=Target(explains=1),
        removal=X.mean(axis=0),
    )
    assert scorer(model, X) > opposite(model, X)


@pytest.mark.parametrize("measure", PLAUSIBILITY)
def test_attribution_scorer_reads_rationales_from_y(measure: str) -> None:
    texts = ["good film", "bad film", "good cast", "awful bad story"]
    marks = [[1, 0], [1, 0], [0, 1], [1, 1, 0]]
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, [1, 0, 1, 0])

    def lengths(model: Any, rows: list[str]) -> list[list[float]]:
        return [[float(len(word)) for word in row.split()] for row in rows]

    scorer = make_attribution_scorer(measure, lengths, top_k=1)
    assert scorer.name == measure
    expected = plausibility(lengths(None, texts), marks, top_k=1, measures=[measure])[measure]
    assert scorer(pipeline, texts, marks) == pytest.approx(expected.mean())
    with pytest.raises(ValueError, match="y is None"):
        scorer(pipeline, texts)


def test_attribution_scorer_reports_undefined_rows(model: Any) -> None:
    def some(model: Any, rows: np.ndarray) -> np.ndarray:
        scores = slopes(model, rows)
        scores[::3] = 1.0
        return scores

    scorer = make_attribution_scorer("taucorr_loo", some, target=Target(explains="target"))
    report = scorer.report(model, X)
    assert report.n_undefined == np.isnan(report.values).sum() == 40
    assert np.isnan(report.values[::3]).all()
    assert report.score == pytest.approx(np.nanmean(report.values))
    empty = make_attribution_scorer("taucorr_loo", nothing)
    with pytest.warns(UndefinedMetricWarning, match="taucorr_loo is undefined for all rows"):
        assert math.isnan(empty(model, X))
    with pytest.raises(ValueError, match=r"one number per row, shape \(120,\)"):
        scorer(model, X, sample_weight=[1, 2])
    with pytest.raises(ValueError, match=r"finite and zero or more, got -1\.0"):
        scorer(model, X, sample_weight=[-1.0, *range(119)])


def test_attribution_scorer_works_in_searches_and_validation() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    scoring: dict[str, AttributionScorer] = {
        name: make_attribution_scorer(
            name, slopes, target=Target(explains=1), removal=X.mean(axis=0)
        )
        for name in ("aopc_compr", "aopc_suff")
    }
    validated = cross_validate(pipeline, X, Y, scoring=scoring, cv=3)
    assert np.isfinite(validated["test_aopc_compr"]).all()
    grid = {"logisticregression__C": [1e-4, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=scoring, refit="aopc_compr", cv=3).fit(X, Y)
    # A model with almost constant predictions has almost nothing to lose.
    assert search.best_params_ == {"logisticregression__C": 1.0}
    texts = ["good film", "bad film", "good cast", "bad story"] * 3
    words = cross_validate(
        make_pipeline(CountVectorizer(), MultinomialNB()),
        texts,
        [1, 0, 1, 0] * 3,
        cv=3,
        scoring=make_attribution_scorer(
            "aopc_compr", lambda model, rows: [[1.0, 0.0] for _ in rows]
        ),
    )
    assert (words["test_score"] > 0).all()


def test_attribution_scorer_receives_routed_weights() -> None:
    weights = np.linspace(0, 2, len(X))
    scorer = make_attribution_scorer(
        "aopc_compr", lambda model, rows: rows * model.coef_[0], target=Target(explains=1)
    )
    rows = StandardScaler().fit_transform(X)
    with sklearn.config_context(enable_metadata_routing=True):
        results = cross_validate(
            LogisticRegression().set_fit_request(sample_weight=False),
            rows,
            Y,
            scoring=scorer.set_score_request(sample_weight=True),
            cv=[(np.arange(60), np.arange(60, 120))],
            params={"sample_weight": weights},
        )
    fitted = LogisticRegression().fit(rows[:60], Y[:60])
    assert results["test_score"][0] == pytest.approx(
        scorer(fitted, rows[60:], sample_weight=weights[60:])
    )
    assert results["test_score"][0] != pytest.approx(scorer(fitted, rows[60:]))


def test_attribution_scorer_accepts_regressors() -> None:
    data, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(data, y)
    scorer = make_attribution_scorer(
        "pearsoncorr_loo", lambda model, rows: rows * model.coef_, target=Target(normalize=True)
    )
    assert scorer(model, data[:30], y[:30]) == pytest.approx(1.0)


def test_make_attribution_scorer_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="Did you mean 'aopc_compr'"):
        make_attribution_scorer("aopc_comp", slopes)
    with pytest.raises(TypeError, match="explainer must be a function"):
        make_attribution_scorer("aopc_compr", np.ones((3, 3)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Did you mean 'removal'"):
        make_attribution_scorer("aopc_compr", slopes, remove="mean")
    with pytest.raises(TypeError, match="no option 'removal'"):
        make_attribution_scorer("auprc", slopes, removal="mean")
    with pytest.raises(TypeError, match="is set by the scorer"):
        make_attribution_scorer("aopc_compr", slopes, return_details=True)
