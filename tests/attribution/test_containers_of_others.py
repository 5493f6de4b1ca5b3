"""Explanations as objects of shap, LIME and captum."""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skescore.metrics.attribution import (
    Rationales,
    Removal,
    Target,
    faithfulness,
    jensen_shannon_divergence,
    plausibility,
    text_tokens,
)

NEEDED = os.environ.get("SKESCORE_ENGINES", "").split(",")


def engine(name: str) -> Any:
    """Import a package; skip the test if it is missing, unless the environment requires it."""
    package = name.partition(".")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if package in NEEDED:
            return importlib.import_module(name)
        pytest.importorskip(package)
        return importlib.import_module(name)


pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of other packages

TEXTS = [
    "a wonderful film and a good cast",
    "good story, wonderful music",
    "the cast is good; the story is not bad at all",
    "bad film, bad story, awful cast",
    "an awful and boring story",
    "boring music and a bad cast",
]
MOODS = [1, 1, 1, 0, 0, 0]


@pytest.fixture(scope="module")
def iris() -> pd.DataFrame:
    return load_iris(as_frame=True).data


@pytest.fixture(scope="module")
def flowers(iris: pd.DataFrame) -> Any:
    return LogisticRegression(max_iter=1000).fit(iris.to_numpy(), load_iris().target)


@pytest.fixture(scope="module")
def moods() -> Pipeline:
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, MOODS)


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], atol=1e-12, err_msg=name)


# --- shap ----------------------------------------------------------------------------------------


def test_shap_explanation_of_all_classes_selects_predicted(
    iris: pd.DataFrame, flowers: Any
) -> None:
    shap = engine("shap")
    X = iris.to_numpy()[::30]
    explanation = shap.Explainer(flowers.predict_proba, iris.to_numpy()[:20], seed=0)(X)
    assert explanation.values.shape == (5, 4, 3)
    settings = {"removal": Removal("mean", reference=iris.to_numpy())}
    predicted = flowers.predict(X)
    explained = np.stack([explanation.values[i, :, k] for i, k in enumerate(predicted)])
    expected = faithfulness(flowers, X, explained, **settings)
    same(faithfulness(flowers, X, explanation, **settings), expected)
    # One class of the explanation, and a single row of it.
    second = faithfulness(flowers, X, explanation.values[:, :, 1], target=1, **settings)
    same(faithfulness(flowers, X, explanation[:, :, 1], target=1, **settings), second)
    same(
        faithfulness(flowers, X[:1], explanation[0], **settings),
        {name: values[:1] for name, values in expected.items()},
    )
    with pytest.raises(ValueError, match="single output"):
        faithfulness(flowers, X, explanation[:, :, 1], **settings)


def test_shap_explanation_of_margins_needs_target(iris: pd.DataFrame) -> None:
    shap = engine("shap")
    rows = iris.iloc[50:]
    model = GradientBoostingClassifier(n_estimators=5, random_state=0)
    model.fit(rows, load_iris().target_names[load_iris().target[50:]])
    X = rows.iloc[::20]
    explanation = shap.TreeExplainer(model)(X)
    assert explanation.values.shape == (5, 4)
    settings = {"removal": Removal("median", reference=rows)}
    result = faithfulness(model, X, explanation, target=Target(explains="virginica"), **settings)
    signs = np.where(model.predict(X) == "virginica", 1, -1)
    assert set(signs) == {1, -1}
    same(result, faithfulness(model, X, signs[:, np.newaxis] * explanation.values, **settings))
    # Columns are matched by name, not by position.
    reversed_columns = X[X.columns[::-1]]
    second_fitted = LogisticRegression(max_iter=1000).fit(reversed_columns, model.predict(X))
    expected = faithfulness(second_fitted, reversed_columns, explanation.values[:, ::-1], target=1)
    same(faithfulness(second_fitted, reversed_columns, explanation, target=1), expected)


def test_shap_explanation_of_numbers_is_accepted(iris: pd.DataFrame) -> None:
    shap = engine("shap")
    X, y = iris.iloc[:, :3], iris.iloc[:, 3]
    model = LinearRegression().fit(X, y)
    explanation = shap.LinearExplainer(model, X)(X.iloc[::30])
    result = faithfulness(
        model,
        X.iloc[::30],
        explanation,
        removal=Removal("mean", reference=X),
        rationales=Rationales(only_positive=False),
    )
    # The attribution of a linear model is the effect of removing the feature.
    assert result["taucorr_loo"].tolist() == [1.0] * 5


def test_shap_explanation_of_texts_brings_its_tokens(moods: Pipeline) -> None:
    shap = engine("shap")
    texts = [TEXTS[0], TEXTS[3], TEXTS[4]]
    explainer = shap.Explainer(
        lambda rows: moods.predict_proba([str(row) for row in rows]),
        shap.maskers.Text(r"\W+"),
    )
    explanation = explainer(texts)
    assert [len(row) for row in explanation.values] == [7, 6, 5]
    result, details = faithfulness(moods, texts, explanation, return_details=True)
    tokens = [[piece.strip() for piece in row] for row in explanation.data]
    predicted = moods.predict(texts)
    scores = [row[:, k] for row, k in zip(explanation.values, predicted, strict=True)]
    same(result, faithfulness(moods, tokens, scores))
    assert details["base"] == pytest.approx(moods.predict_proba(texts).max(axis=1))
    # The model is additive in the words, so that Shapley values rank them correctly.
    assert (result["aopc_compr"] > 0.1).all()
    marks = [[token in ("good", "bad", "awful") for token in row] for row in tokens]
    plausible = plausibility(explanation, marks, target=predicted, top_k=2)
    same(plausible, plausibility(scores, marks, top_k=2))
    with pytest.raises(ValueError, match="row 0 explains 'a wonderful"):
        faithfulness(moods, texts[::-1], explanation)
    single = faithfulness(moods, texts[:1], explanation[0])
    same(single, {name: values[:1] for name, values in result.items()})


# --- LIME ----------------------------------------------------------------------------------------


def test_lime_explanations_of_tables_are_accepted(iris: pd.DataFrame, flowers: Any) -> None:
    lime = engine("lime.lime_tabular")
    data = iris.to_numpy()
    explainer = lime.LimeTabularExplainer(data, random_state=0)
    X = data[[0, 60, 140]]
    explanations = [
        explainer.explain_instance(row, flowers.predict_proba, num_features=3, labels=(0, 1, 2))
        for row in X
    ]
    predicted = flowers.predict(X)
    scores = np.zeros((3, 4))
    for number, (one, label) in enumerate(zip(explanations, predicted, strict=True)):
        for feature, weight in one.local_exp[label]:
            scores[number, feature] = weight
    settings = {"removal": Removal("mean", reference=data)}
    same(
        faithfulness(flowers, X, explanations, **settings),
        faithfulness(flowers, X, scores, **settings),
    )
    single = faithfulness(flowers, X[:1], explanations[0], **settings)
    same(single, faithfulness(flowers, X[:1], scores[:1], **settings))
    only_one = [explainer.explain_instance(row, flowers.predict_proba) for row in X]
    with pytest.raises(ValueError, match=r"labels=\(0,\)"):
        faithfulness(flowers, X, only_one, **settings)


def test_lime_explanation_implies_other_class(iris: pd.DataFrame) -> None:
    lime = engine("lime.lime_tabular")
    data = iris.to_numpy()[:100]
    model = LogisticRegression().fit(data, load_iris().target[:100])
    explainer = lime.LimeTabularExplainer(data, random_state=0, discretize_continuous=False)
    X = data[[0, 99]]
    explanations = [explainer.explain_instance(row, model.predict_proba) for row in X]
    assert [list(one.local_exp) for one in explanations] == [[1], [1]]
    assert model.predict(X).tolist() == [0, 1]
    scores = np.zeros((2, 4))
    for number, (one, sign) in enumerate(zip(explanations, (-1, 1), strict=True)):
        for feature, weight in one.local_exp[1]:
            scores[number, feature] = sign * weight
    settings = {"removal": Removal("mean", reference=data)}
    same(
        faithfulness(model, X, explanations, **settings),
        faithfulness(model, X, scores, **settings),
    )


def test_lime_explanation_of_number_is_accepted(iris: pd.DataFrame) -> None:
    lime = engine("lime.lime_tabular")
    data = iris.to_numpy()
    model = LinearRegression().fit(data[:, :3], data[:, 3])
    explainer = lime.LimeTabularExplainer(
        data[:, :3], mode="regression", random_state=0, discretize_continuous=False
    )
    one = explainer.explain_instance(data[0, :3], model.predict)
    scores = np.zeros((1, 3))
    for feature, weight in one.local_exp[1]:
        scores[0, feature] = weight
    assert np.sign(scores[0]).tolist() == np.sign(model.coef_).tolist()
    settings = {
        "removal": Removal("mean", reference=data[:, :3]),
        "rationales": Rationales(only_positive=False),
    }
    same(
        faithfulness(model, data[:1, :3], one, **settings),
        faithfulness(model, data[:1, :3], scores, **settings),
    )


@pytest.mark.parametrize("bow", [True, False])
def test_lime_explanations_of_texts_are_accepted(moods: Pipeline, bow: bool) -> None:
    lime = engine("lime.lime_text")
    text = TEXTS[3]
    one = lime.LimeTextExplainer(bow=bow, random_state=0).explain_instance(
        text, moods.predict_proba, labels=(0,), num_samples=500
    )
    result, details = faithfulness(
        moods, [text], one, rationales=Rationales([1], by="count"), return_details=True
    )
    scores = details["scores"][0]
    # With a bag of words both "bad" form one unit, which is removed with all its occurrences.
    assert len(scores) == (5 if bow else 6)
    remaining = "film, story, awful cast" if bow else "film, bad story, awful cast"
    after = moods.predict_proba([text])[0, 0] - moods.predict_proba([remaining])[0, 0]
    if bow:
        assert result["aopc_compr"][0] == pytest.approx(after)
    assert details["loo"][0][0] == pytest.approx(after)


# --- captum --------------------------------------------------------------------------------------


def test_captum_attributions_with_gradients_are_accepted() -> None:
    torch = engine("torch")
    attr = engine("captum.attr")
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    X = torch.randn(20, 6)
    target = network(X).argmax(dim=1)
    values = attr.IntegratedGradients(network).attribute(X.requires_grad_(), target=target)
    saliency = attr.Saliency(network).attribute(X, target=target, abs=False)

    def logits(rows: np.ndarray) -> Any:
        return network(torch.as_tensor(rows, dtype=torch.float32))

    result = faithfulness(logits, X, values, target=Target(link="softmax"))
    arrays = values.detach().numpy().astype(float)
    same(result, faithfulness(logits, X.detach().numpy(), arrays, target=Target(link="softmax")))
    # Integrated gradients start from the baseline 0, so that they suit it better than saliency.
    other = faithfulness(logits, X, saliency, target=Target(link="softmax"))
    assert result["taucorr_loo"].mean() > 0.6 > other["taucorr_loo"].mean()
    np.testing.assert_allclose(jensen_shannon_divergence(values, arrays), np.zeros(20), atol=1e-12)
    with pytest.raises(ValueError, match="probabilities"):
        faithfulness(logits, X, values)


# --- columns of a vectorizer ---------------------------------------------------------------------


def test_shap_explanation_of_text_columns_is_accepted() -> None:
    shap = engine("shap")
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())
    model.fit(TEXTS, MOODS)
    matrix = model[0].transform(TEXTS)
    explanation = shap.LinearExplainer(model[-1], np.zeros((1, matrix.shape[1])))(matrix.toarray())
    result = faithfulness(
        model, TEXTS, explanation, removal=Removal(align="columns"), target=Target(explains=1)
    )
    same(
        result,
        faithfulness(
            model[-1],
            matrix,
            explanation,
            target=Target(explains=1),
            removal=Removal(features="changed"),
        ),
    )
    assert (result["taucorr_loo"] > 0.99).all()
    assert text_tokens(model, TEXTS[:1]) == [["wonderful", "film", "and", "good", "cast"]]
