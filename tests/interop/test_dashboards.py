"""Rules in the real explainerdashboard and shapash, and the programs of their guide."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skescore import CARTExtractor, ExtractorSearchCV, load_dataset

pytestmark = pytest.mark.filterwarnings("ignore")


def program(word):
    """Return the program of the guide that contains a word."""
    page = Path(__file__).parents[2] / "docs" / "guide" / "notebooks.md"
    blocks = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    (block,) = [block for block in blocks if word in block]
    return block


def layout_of(server):
    """Return the layout that the page of a dashboard requests."""
    return server.test_client().get("/_dash-layout").get_json()


def values_in(layout, key):
    """Yield the values of a property anywhere in a layout."""
    if isinstance(layout, dict):
        if key in layout:
            yield layout[key]
        layout = list(layout.values())
    if isinstance(layout, list):
        for part in layout:
            yield from values_in(part, key)


@pytest.fixture(scope="module")
def iris():
    return dict(zip("Xy", load_iris(return_X_y=True, as_frame=True), strict=True))


def split(load):
    X, y = load(return_X_y=True, as_frame=True)
    return train_test_split(X, y, random_state=0, test_size=24)


def test_dashboard_programs_of_guide_show_rules(iris):
    pytest.importorskip("explainerdashboard")
    names = dict(iris)
    exec(program("explainerdashboard").replace("dashboard.run()", ""), names)
    rules = names["extractor"].rules_
    texts = list(values_in(layout_of(names["dashboard"].flask_server()), "children"))
    assert rules.to_markdown() in texts

    pytest.importorskip("shapash")
    exec(program("shapash").replace("explainer.run_app(port=8050)", "explainer.init_app()"), names)
    shown = list(values_in(layout_of(names["explainer"].smartapp.app.server), "data"))
    rows = next(data for data in shown if isinstance(data, list) and "deciding rule" in str(data))
    premises = [rule.premise for rule in rules.to_frame().itertuples()]
    for row in rows:
        (deciding,) = [value for key, value in row.items() if "deciding rule" in key]
        index = rules.assign(iris["X"].loc[[row["_index_"]]])[0]
        assert deciding == premises[index]


def test_explainerdashboard_explains_a_classifier():
    dashboards = pytest.importorskip("explainerdashboard")
    X_train, X_test, y_train, y_test = split(load_wine)
    forest = RandomForestClassifier(20, random_state=0).fit(X_train, y_train)
    extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(X_train, y_train)
    search = ExtractorSearchCV(forest, extractors=["cart"], n_trials=2, cv=2, random_state=0)
    for model in (extractor, search.fit(X_train, y_train)):
        explainer = dashboards.ClassifierExplainer(model, X_test, y_test, labels=["a", "b", "c"])
        for label in range(3):
            shap = explainer.get_shap_values_df(label).sum(axis=1)
            share = model.predict_proba(X_test)[:, label]
            np.testing.assert_allclose(explainer.shap_base_value(label) + shap, share, atol=1e-9)
        expected = accuracy_score(y_test == 1, model.predict_proba(X_test)[:, 1] >= 0.5)
        assert explainer.metrics(cutoff=0.5, pos_label=1)["accuracy"] == pytest.approx(expected)
    dashboard = dashboards.ExplainerDashboard(explainer, shap_interaction=False)
    page = dashboard.to_html()
    assert "color_intensity" in page


def test_explainerdashboard_explains_numbers():
    dashboards = pytest.importorskip("explainerdashboard")
    X_train, X_test, y_train, y_test = split(load_diabetes)
    forest = RandomForestRegressor(20, random_state=0).fit(X_train, y_train)
    extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(X_train, y_train)
    explainer = dashboards.RegressionExplainer(extractor, X_test, y_test)
    shap = explainer.get_shap_values_df().sum(axis=1)
    predictions = extractor.predict(X_test)
    np.testing.assert_allclose(explainer.shap_base_value() + shap, predictions, rtol=1e-9)
    expected = mean_absolute_error(y_test, predictions)
    assert explainer.metrics()["mean-absolute-error"] == pytest.approx(expected)
    assert "bmi" in dashboards.ExplainerDashboard(explainer, shap_interaction=False).to_html()


@pytest.fixture(scope="module")
def titanic():
    """Return rules for text columns, and held-out rows."""
    data = load_dataset("titanic")
    y = (np.asarray(data.y) == "yes").astype(int)
    X_train, X_test, y_train, y_test = train_test_split(data.X, y, test_size=24, random_state=0)
    encoder = make_column_transformer((OneHotEncoder(), list(X_train)))
    forest = make_pipeline(encoder, RandomForestClassifier(20, random_state=0))
    return CARTExtractor(forest, max_leaf_nodes=4).fit(X_train, y_train), X_test, y_test


def test_explainerdashboard_explains_text_columns(titanic):
    dashboards = pytest.importorskip("explainerdashboard")
    extractor, X_test, y_test = titanic
    explainer = dashboards.ClassifierExplainer(extractor, X_test, y_test)
    importances = explainer.get_importances_df().set_index("Feature")["MEAN_ABS_SHAP"]
    assert importances.idxmax() == "sex"
    assert importances["age"] == 0
    assert "sex" in dashboards.ExplainerDashboard(explainer, shap_interaction=False).to_html()


def test_shapash_explains_rules(titanic):
    shapash = pytest.importorskip("shapash")
    X_train, X_test, y_train, _ = split(load_wine)
    forest = RandomForestClassifier(20, random_state=0).fit(X_train, y_train)
    extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(X_train, y_train)
    explainer = shapash.SmartExplainer(model=extractor)
    explainer.compile(x=X_test)
    table = explainer.to_pandas(max_contrib=13)
    np.testing.assert_array_equal(table["pred"], extractor.predict(X_test))
    text = str(extractor.rules_)
    used = {name for name in X_test if name in text}
    contributing = {
        row[f"feature_{i}"]
        for _, row in table.iterrows()
        for i in range(1, 14)
        if abs(float(row[f"contribution_{i}"])) > 1e-9
    }
    assert len(used) >= 3
    assert contributing == used

    extractor, rows, _ = titanic
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for -: 'str' and 'str'"):
        shapash.SmartExplainer(model=extractor).compile(x=rows)
