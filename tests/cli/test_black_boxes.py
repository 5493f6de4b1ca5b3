from __future__ import annotations

import io
import json
import os
import pickle
import sys
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from skescore.black_boxes import (
    BLACK_BOXES,
    BlackBoxError,
    check_matches,
    load_black_box,
    make_black_box,
)
from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.rules import RuleSet

BOOSTING = ("xgboost", "lightgbm", "catboost")  # of packages that may be absent: tests/interop
# "gradient-boosting" is the same model as "hist-gradient-boosting".
NAMES = tuple(name for name in BLACK_BOXES if name not in (*BOOSTING, "gradient-boosting"))


@pytest.fixture(scope="module")
def iris():
    return load_dataset("iris")


@pytest.fixture(scope="module")
def logistic(iris):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(iris.X, iris.y)


@pytest.fixture(scope="module")
def tree(iris):
    return DecisionTreeClassifier(max_depth=2, random_state=0).fit(iris.X, iris.y)


@pytest.fixture
def dump(tmp_path):
    skops = pytest.importorskip("skops.io")

    def dump(model, name="model.skops"):
        (tmp_path / name).write_bytes(skops.dumps(model))
        return tmp_path / name

    return dump


class Maker:
    """Object whose pickle makes a folder when it is read."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


class Wordless:
    """Object with predict that is no estimator."""

    def predict(self, X):
        return np.zeros(len(X))


class Foreign(LogisticRegression):
    """Type unknown to skops that makes a folder when its state is set."""

    marker = ""

    def __setstate__(self, state):
        os.mkdir(state["marker"])
        super().__setstate__(state)


# Named black boxes --------------------------------------------------------------------------------


def test_black_box_names_are_complete():
    retained = {"random-forest", "gradient-boosting", "mlp", "svm", "knn", "decision-tree"}
    assert {*retained, "hist-gradient-boosting", *BOOSTING} == set(BLACK_BOXES)
    assert BLACK_BOXES["gradient-boosting"] is BLACK_BOXES["hist-gradient-boosting"]
    assert all(spec.summary for spec in BLACK_BOXES.values())


@pytest.mark.parametrize("name", NAMES)
def test_make_black_box_makes_classifiers_that_learn_iris(name, iris):
    model = make_black_box(name, "classification", 0)
    assert is_classifier(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    sample = iris.X.iloc[::2], iris.y.iloc[::2]
    rest = iris.X.iloc[1::2], iris.y.iloc[1::2]
    assert model.fit(*sample).score(*rest) > 0.9
    assert set(model.predict(iris.X)) == {"setosa", "versicolor", "virginica"}
    check_matches(model, iris)


@pytest.mark.parametrize("name", NAMES)
def test_regressors_do_not_depend_on_units_of_target(name):
    dataset = load_dataset("friedman1")
    X, y = dataset.X.iloc[:300], dataset.y.iloc[:300]
    rest = dataset.X.iloc[300:600], dataset.y.iloc[300:600]
    model = make_black_box(name, "regression", 0)
    assert is_regressor(model)
    quality = clone(model).fit(X, y).score(*rest)
    assert quality > 0.45
    large = clone(model).fit(X, y * 1e4).score(rest[0], rest[1] * 1e4)
    assert large == pytest.approx(quality, abs=0.02)


@pytest.mark.parametrize("name", ["mlp", "svm", "knn"])
def test_distance_models_do_not_depend_on_units_of_features(name, iris):
    stretched = iris.X.copy()
    stretched["sepal width (cm)"] *= 1e5
    model = make_black_box(name, "classification", 0)
    plain, same = (
        clone(model).fit(X[::2], iris.y[::2]).predict(X[1::2]) for X in (iris.X, stretched)
    )
    assert (plain == iris.y[1::2]).mean() > 0.9
    assert (plain == same).mean() >= 0.97


@pytest.mark.parametrize("name", NAMES)
def test_seed_determines_predictions(name, iris):
    rows = iris.X.iloc[::5]
    first, again = (
        make_black_box(name, "classification", 7).fit(rows, iris.y.iloc[::5]).predict(iris.X)
        for _ in range(2)
    )
    assert (first == again).all()


@pytest.mark.parametrize(
    "name", ["random-forest", "hist-gradient-boosting", "mlp", "decision-tree"]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_seed_reaches_every_random_model(name, task):
    parameters = make_black_box(name, task, 7).get_params()
    assert [value for key, value in parameters.items() if key.endswith("random_state")] == [7]


@pytest.fixture(scope="module")
def ragged():
    """Return a table with missing values and categories, and rows with unseen values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=240), "sex": rng.choice(["m", "f", "d"], 240)})
    X["size"] = rng.integers(0, 9, 240)
    y = X["age"] + 3 * (X["sex"] == "m") - X["size"] / 5
    X.loc[rng.random(240) < 0.2, "age"] = np.nan
    X["sex"] = X["sex"].astype(object).where(rng.random(240) > 0.1, np.nan)
    rows = X.assign(size=X["size"].where(X["size"] > 1))
    rows.loc[::9, "sex"] = "never seen"
    return X, y, rows


@pytest.mark.parametrize("name", NAMES)
def test_make_black_box_handles_missing_values_and_categories(name, ragged):
    X, y, rows = ragged
    model = clone(make_black_box(name, "regression", 0, ["sex"])).fit(X, y)
    assert model.score(X, y) > 0.6
    assert np.isfinite(model.predict(rows)).all()
    labels = np.where(y > 0, "yes", "no").astype(object)
    model = clone(make_black_box(name, "classification", 0, ["sex"])).fit(X, labels)
    assert model.score(X, labels) > 0.8
    assert set(model.predict(rows)) == {"yes", "no"}


def test_hist_gradient_boosting_receives_categories(ragged):
    X, y, _ = ragged
    model = make_black_box("hist-gradient-boosting", "regression", 0, ["sex"]).fit(X, y)
    assert model[-1].is_categorical_.tolist() == [False, True, False]
    assert model[0].transform(X)["sex"].isna().equals(X["sex"].isna())


def test_imputer_adds_indicator_columns(ragged):
    X, y, _ = ragged
    rows = X[["age", "size"]]
    model = make_black_box("knn", "regression", scaled=False).fit(rows, y)
    filled = model[0].transform(rows)
    assert filled.shape == (240, 3)
    assert (filled[:, 2] == rows["age"].isna()).all()


def test_make_black_box_accepts_polars_frames(ragged):
    polars = pytest.importorskip("polars")
    X, y, _ = ragged
    columns = {n: [None if pd.isna(v) else v for v in X[n]] for n in X}
    frame = polars.DataFrame(columns)
    model = make_black_box("hist-gradient-boosting", "regression", 0, ["sex"])
    expected = clone(model).fit(X, y).predict(X)
    assert clone(model).fit(frame, y).predict(frame) == pytest.approx(expected)


def test_make_black_box_finds_categories_by_name(ragged):
    X, y, _ = ragged
    model = make_black_box("gradient-boosting", "regression", 0, ["sex"])
    with pytest.raises(BlackBoxError, match=r"\('sex'\) .*pass a data frame, got"):
        model.fit(X.to_numpy(), y)


def test_missing_package_error_states_command(monkeypatch):
    def without(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("skescore._optional.importlib.import_module", without)
    with pytest.raises(
        BlackBoxError, match=r"'xgboost'.*Run: pip install .*\"xgboost>=2|\.\[boosting\]"
    ):
        make_black_box("xgboost", "classification")


def test_make_black_box_rejects_unknown_names():
    with pytest.raises(ValueError, match=r"got 'random_forest'. Did you mean 'random-forest'?"):
        make_black_box("random_forest", "classification", 0)
    with pytest.raises(BlackBoxError, match=r"task must be .* got 'ranking'"):
        make_black_box("svm", "ranking", 0)


def test_make_black_box_sets_parameters_and_scaling(iris):
    plain = make_black_box("knn", "classification", scaled=False, params={"n_neighbors": 9})
    assert [type(step) for step in plain] == [SimpleImputer, KNeighborsClassifier]
    assert plain[-1].get_params() == KNeighborsClassifier(9).get_params()
    scaled = make_black_box("knn", "classification", params={"n_neighbors": 9})
    own_fitted = make_pipeline(StandardScaler(), KNeighborsClassifier(9)).fit(iris.X, iris.y)
    assert (scaled.fit(iris.X, iris.y).predict(iris.X) == own_fitted.predict(iris.X)).all()
    with pytest.raises(BlackBoxError, match=r"no parameter 'k'\. Known: .*n_neighbors"):
        make_black_box("knn", "classification", params={"k": 9})


# skops files --------------------------------------------------------------------------------------


def test_load_black_box_reads_trusted_skops_types(dump, logistic, iris):
    loaded = load_black_box(dump(logistic))
    assert isinstance(loaded, FrozenEstimator)
    assert (loaded.predict(iris.X) == logistic.predict(iris.X)).all()
    check_matches(loaded, iris)
    assert (clone(loaded).fit(iris.X.iloc[:60], iris.y.iloc[:60]).predict(iris.X[-1:])) == [
        "virginica"
    ]


def test_load_black_box_needs_trust_for_other_skops_types(dump, iris):
    path = dump(KNeighborsClassifier(3).fit(iris.X, iris.y))
    with pytest.raises(BlackBoxError) as caught:
        load_black_box(path)
    text = str(caught.value)
    assert "of scikit-learn itself: " in text
    assert "sklearn.neighbors._kd_tree.KDTree" in text
    assert "of other packages" not in text
    assert "trust=True (on the command line: --trust)" in text
    assert load_black_box(path, trust=True).predict(iris.X[:1]).tolist() == ["setosa"]


def test_foreign_code_runs_only_if_trusted(dump, iris, tmp_path):
    model = Foreign(max_iter=1000).fit(iris.X, iris.y)
    model.marker = str(tmp_path / "marker")
    path = dump(model)
    with pytest.raises(BlackBoxError, match=r"of other packages: .*Foreign\)") as caught:
        load_black_box(path)
    assert "of scikit-learn itself" not in str(caught.value)
    assert not (tmp_path / "marker").exists()
    # The file would have run code: only the rejection above prevented it.
    assert load_black_box(path, trust=True).predict(iris.X[:1]).tolist() == ["setosa"]
    assert (tmp_path / "marker").exists()


def test_load_black_box_reads_checked_bytes(dump, logistic, iris, monkeypatch):
    skops = pytest.importorskip("skops.io")
    path = dump(logistic)
    other = skops.dumps(LinearRegression().fit(iris.X, np.arange(150)))
    check = skops.get_untrusted_types

    def check_then_exchange(**options):
        answer = check(**options)
        path.write_bytes(other)
        return answer

    monkeypatch.setattr(skops, "get_untrusted_types", check_then_exchange)
    assert load_black_box(path).predict(iris.X[:1]).tolist() == ["setosa"]


@pytest.mark.parametrize("content", [b"garbage", b"PK\x03\x04garbage", pickle.dumps([1])])
def test_load_black_box_rejects_garbage_in_skops_file(tmp_path, content):
    pytest.importorskip("skops")
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(BlackBoxError, match=r"model\.skops is not a skops file"):
        load_black_box(path)


def test_load_black_box_rejects_zip_without_model(tmp_path):
    pytest.importorskip("skops")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("readme.txt", "no model")
    (tmp_path / "model.skops").write_bytes(content.getvalue())
    with pytest.raises(BlackBoxError, match=r"not a skops file, or it is damaged"):
        load_black_box(tmp_path / "model.skops", trust=True)


def test_load_black_box_rejects_skops_bomb_before_unpacking(tmp_path):
    pytest.importorskip("skops")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("schema.json", bytes((1 << 26) + 1))
    (tmp_path / "model.skops").write_bytes(content.getvalue())
    with pytest.raises(BlackBoxError, match=r"model\.skops has \d+ bytes that unpack to 67108"):
        load_black_box(tmp_path / "model.skops")


def test_missing_skops_error_states_command(dump, logistic, monkeypatch):
    path = dump(logistic)

    def without_skops(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name="skops")

    monkeypatch.setattr("skescore._optional.importlib.import_module", without_skops)
    with pytest.raises(BlackBoxError, match=r'pip install "skops>=0.15"'):
        load_black_box(path)


# Pickle and joblib files --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib", ".PKL"])
@pytest.mark.parametrize("save", ["pickle", "joblib"])
def test_pickle_runs_code_only_if_trusted(tmp_path, ending, save):
    marker, path = tmp_path / "marker", tmp_path / f"model{ending}"
    with path.open("wb") as file:
        {"pickle": pickle, "joblib": joblib}[save].dump(Maker(marker), file)
    with pytest.raises(BlackBoxError) as caught:
        load_black_box(path)
    assert not marker.exists()
    assert "was not opened" in str(caught.value)
    assert "can run any code" in str(caught.value)
    assert "skops.io.dump" in str(caught.value)
    assert "--trust" in str(caught.value)
    # The file is a real program: only the rejection above prevented it from running.
    with pytest.raises(BlackBoxError, match="without predict"):
        load_black_box(path, trust=True)
    assert marker.exists()


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib"])
@pytest.mark.parametrize("compress", [0, 3])
def test_load_black_box_reads_trusted_pickles(tmp_path, tree, iris, ending, compress):
    path = tmp_path / f"model{ending}"
    joblib.dump(tree, path, compress=compress)
    loaded = load_black_box(str(path), trust=True)
    assert isinstance(loaded, FrozenEstimator)
    assert (loaded.predict(iris.X) == tree.predict(iris.X)).all()
    path.write_bytes(pickle.dumps(tree))
    assert (load_black_box(path, trust=True).predict(iris.X) == tree.predict(iris.X)).all()


@pytest.mark.parametrize("content", [b"garbage", b"\x80\x05", b"csome.module\nthing\n."])
def test_load_black_box_rejects_garbage_in_pickle(tmp_path, content):
    path = tmp_path / "model.pkl"
    path.write_bytes(content)
    with pytest.raises(BlackBoxError, match=r"model\.pkl cannot be loaded"):
        load_black_box(path, trust=True)


# Contents of files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ({"a": 1}, "type dict without predict"),
        (LogisticRegression, "type type without predict"),
        (StandardScaler(), "type StandardScaler without predict"),
        (LogisticRegression(), "LogisticRegression that is not fitted: fit it first"),
        (make_pipeline(StandardScaler(), LinearRegression()), "Pipeline that is not fitted"),
        (FrozenEstimator(LogisticRegression()), "LogisticRegression that is not fitted"),
        (Wordless(), "Wordless, which is not a scikit-learn estimator"),
    ],
)
def test_load_black_box_rejects_objects_that_are_no_fitted_model(
    tmp_path, model, part, monkeypatch
):
    monkeypatch.setattr(joblib, "load", lambda _: model)
    path = tmp_path / "model.joblib"
    path.write_bytes(b"stands for the model")
    with pytest.raises(BlackBoxError, match=part):
        load_black_box(path, trust=True)


def test_load_black_box_wraps_frozen_model_once(tmp_path, tree):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(FrozenEstimator(tree)))
    assert isinstance(load_black_box(path, trust=True).estimator, DecisionTreeClassifier)


def encoding_model(encoder):
    """Return a tree behind an encoder of the column "shop", or histogram boosting without one."""
    if encoder is None:
        return HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
    columns = make_column_transformer((make_pipeline(encoder), ["shop"]), remainder="passthrough")
    return make_pipeline(columns, DecisionTreeClassifier(max_depth=4))


@pytest.mark.parametrize("labels", [[3, 1, 20], [1.5, 2.0, 3.0], [True, False]])
@pytest.mark.parametrize(
    "encoder", [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(), None]
)
def test_load_black_box_matches_texts_to_categories(tmp_path, encoder, labels):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(labels), 200)
    X = pd.DataFrame({"n": rng.normal(size=200), "shop": np.array(labels)[codes]})
    if encoder is None:
        X["shop"] = X["shop"].astype("category")
    model = encoding_model(encoder).fit(X, (codes == 0) ^ (X["n"] > 0))
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = load_black_box(tmp_path / "model.joblib", trust=True)
    X.assign(y=model.predict(X)).to_csv(tmp_path / "rows.csv", index=False)
    for options in ({}, {"categories": "shop"}):
        data = load_dataset(tmp_path / "rows.csv", target="y", **options)
        check_matches(loaded, data)
        assert (loaded.predict(data.X) == model.predict(X)).all()


def test_check_matches_rejects_lost_leading_zeros(tmp_path):
    X = pd.DataFrame({"n": range(40), "shop": ["01", "02"] * 20})
    model = encoding_model(OneHotEncoder()).fit(X, X["shop"])
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = load_black_box(tmp_path / "model.joblib", trust=True)
    X.assign(y=X["shop"]).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(BlackBoxError, match=r"category '01' of 'shop'.*--category shop"):
        check_matches(loaded, load_dataset(tmp_path / "rows.csv", target="y"))
    data = load_dataset(tmp_path / "rows.csv", target="y", categories="shop")
    check_matches(loaded, data)
    assert (loaded.predict(data.X) == data.y).all()


def test_load_black_box_reports_unreadable_files(tmp_path):
    (tmp_path / "forest.skops").write_bytes(b"")
    with pytest.raises(BlackBoxError, match=r"forest\.skops is empty"):
        load_black_box(tmp_path / "forest.skops")
    with pytest.raises(BlackBoxError, match=r"does not exist. Did you mean 'forest\.skops'"):
        load_black_box(tmp_path / "forrest.skops")
    with pytest.raises(BlackBoxError, match="There is no folder"):
        load_black_box(tmp_path / "nowhere" / "forest.skops")
    with pytest.raises(BlackBoxError, match="is a folder"):
        load_black_box(tmp_path)


@pytest.mark.parametrize("ending", [".pt", ".h5", ""])
@pytest.mark.parametrize("trust", [False, True])
def test_load_black_box_rejects_other_file_types(tmp_path, ending, trust):
    path = tmp_path / f"model{ending}"
    path.write_bytes(b"model")
    with pytest.raises(BlackBoxError) as caught:
        load_black_box(path, trust=trust)
    assert f"ending {ending!r}" in str(caught.value)
    for kind in (".skops", ".onnx", ".pkl", ".pickle", ".joblib", "CallableClassifier"):
        assert kind in str(caught.value)


# Match with the data ------------------------------------------------------------------------------


def write(tmp_path, frame: pd.DataFrame):
    frame.to_csv(tmp_path / "data.csv", index=False)
    return load_dataset(tmp_path / "data.csv", target="species")


def test_check_matches_names_missing_and_extra_columns(tmp_path, iris, tree):
    frame = iris.X.assign(species=iris.y)
    data = write(tmp_path, frame.rename(columns={"sepal width (cm)": "width"}).assign(age=1.0))
    with pytest.raises(BlackBoxError) as caught:
        check_matches(FrozenEstimator(tree), data)
    text = str(caught.value)
    assert "Missing in the data: 'sepal width (cm)';" in text
    assert "Unknown to the black box: 'width', 'age';" in text
    assert "--drop" in text


def test_check_matches_requires_order_of_columns(tmp_path, iris, tree):
    check_matches(FrozenEstimator(tree), write(tmp_path, iris.X.assign(species=iris.y)))
    data = write(tmp_path, iris.X[iris.X.columns[[0, 2, 1, 3]]].assign(species=iris.y))
    with pytest.raises(
        BlackBoxError, match=r"number 2 was 'sepal width \(cm\)' and is 'petal length \(cm\)'"
    ):
        check_matches(FrozenEstimator(tree), data)


def test_check_matches_requires_number_of_features(iris):
    three = DecisionTreeClassifier().fit(iris.X.to_numpy()[:, :3], iris.y)
    with pytest.raises(BlackBoxError, match="trained on 3 features, but iris has 4"):
        check_matches(FrozenEstimator(three), iris)
    four = DecisionTreeClassifier().fit(iris.X.to_numpy(), iris.y)
    check_matches(FrozenEstimator(four), iris)


def test_check_matches_rejects_another_task(iris, tree):
    friedman = load_dataset("friedman2")
    with pytest.raises(BlackBoxError, match="for classification, but friedman2 is for regression"):
        check_matches(FrozenEstimator(tree), friedman)
    line = LinearRegression().fit(iris.X, np.arange(150))
    with pytest.raises(BlackBoxError, match="for regression, but iris is for classification"):
        check_matches(FrozenEstimator(line), iris)
    groups = KMeans(2, n_init=1).fit(iris.X)
    with pytest.raises(BlackBoxError, match="KMeans is neither a classifier nor a regressor"):
        check_matches(FrozenEstimator(groups), iris)


def test_check_matches_requires_a_shared_class(iris):
    codes = pd.factorize(iris.y)[0]
    coded = DecisionTreeClassifier().fit(iris.X, codes)
    with pytest.raises(BlackBoxError, match=r"classes 0, 1, 2, but the target 'species'.*--labels"):
        check_matches(FrozenEstimator(coded), iris)
    fitted = DecisionTreeClassifier().fit(iris.X[:100], iris.y[:100])
    check_matches(FrozenEstimator(fitted), iris)


# Clusterers, outlier detectors, several outputs --------------------------------------------------

FEW = ("--extractors", "cart", "--trials", "2", "--cv", "2", "--quiet", "--format", "json")


@pytest.fixture
def save(tmp_path):
    def save(model):
        joblib.dump(model, path := tmp_path / "model.joblib")
        return ("--black-box", str(path), "--trust")

    return save


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (KMeans(3, n_init=1, random_state=0), {0, 1, 2}),
        (
            make_pipeline(StandardScaler(), IsolationForest(n_estimators=20, random_state=0)),
            {-1, 1},
        ),
    ],
)
def test_tune_explains_labels_of_clusterers(model, labels, iris, save, tmp_path, capsys):
    box = save(model.fit(iris.X))
    table, run = tmp_path / "flowers.csv", tmp_path / "run"
    iris.X.assign(more=range(150)).to_csv(table, index=False)
    words = ["tune", str(table), *box, *FEW, "--output", str(run), "--test", str(table)]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["data"]["target"] == "label"
    assert result["data"]["features"] == list(iris.X.columns)
    assert result["black_box"]["quality"]["accuracy"] == 1.0
    rules = RuleSet.from_json((run / "rules.json").read_text())
    assert set(rules.classes) == labels
    same = (rules.predict(iris.X) == model.predict(iris.X)).mean()
    assert same > 0.65
    assert result["test"]["fidelity"] == result["best"]["fidelity"] == same
    # The page labels the rows again, if it may read the model.
    assert main(["report", str(run), "--trust"]) == 0
    assert "not" not in capsys.readouterr().err
    assert main(["report", str(run), "--overwrite"]) == 0
    assert "could not label the rows again: " in capsys.readouterr().err


@pytest.mark.slow
def test_tune_needs_no_target_for_labels_of_clusterers(iris, save, tmp_path, capsys):
    box = save(KMeans(2, n_init=1, random_state=0).fit(iris.X.to_numpy()))
    table = tmp_path / "flowers.csv"
    iris.X.assign(species=iris.y).to_csv(table, index=False)
    assert main(["tune", "iris", *box, *FEW]) == 0
    built_in = json.loads(capsys.readouterr().out)
    # The target of the table is no feature; a row with a missing value goes to its branch.
    assert main(["tune", str(table), "--target", "species", *box, *FEW]) == 0
    assert json.loads(capsys.readouterr().out)["rules"]["rules"] == built_in["rules"]["rules"]
    iris.X.where(iris.X > 0.15).to_csv(table, index=False)
    assert main(["tune", str(table), "--missing", "error", *box, *FEW]) == 1
    assert "--missing drop" in capsys.readouterr().err
    assert main(["tune", str(table), "--missing", "drop", *box, *FEW]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["rows_dropped"] > 0
    iris.X[:10].to_csv(table, index=False)
    assert main(["tune", str(table), *box, *FEW]) == 1
    message = capsys.readouterr().err
    assert "the label 0 " in message
    assert "nothing to explain" in message
    assert main(["tune", str(tmp_path / "flower.csv"), *box, *FEW]) == 1
    assert "is neither a built-in data set nor an existing file" in capsys.readouterr().err


def test_tune_explains_one_of_several_outputs(iris, save, tmp_path, capsys):
    Y = np.column_stack([iris.y, np.where(iris.X["petal width (cm)"] > 1, "wide", "narrow")])
    table, run = tmp_path / "flowers.csv", tmp_path / "run"
    iris.X.assign(kind=Y[:, 0], size=Y[:, 1]).to_csv(table, index=False)
    box = save(RandomForestClassifier(5, random_state=0).fit(iris.X.to_numpy(), Y))
    words = ["tune", str(table), *box, *FEW, "--target", "size", "--outputs"]
    assert main([*words, "kind,size", "--output", str(run), "--report"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["black_box"]["outputs"] == ["kind", "size"]
    assert result["data"]["features"] == list(iris.X.columns)
    rules = RuleSet.from_json((run / "rules.json").read_text())
    assert (rules.predict(iris.X) == Y[:, 1]).mean() > 0.95
    # The page in the folder has the same output.
    assert main(["report", str(run), "--trust", "--overwrite"]) == 0
    assert "was not loaded" not in capsys.readouterr().err
    assert main([*words, "kind,width"]) == 1
    assert "--target must be one of --outputs kind,width, got 'size'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tune", "iris", "--outputs", "a,b", *FEW])
    assert "--outputs: needs --black-box FILE" in capsys.readouterr().err


# Commands -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tune_explains_a_command(tmp_path, capsys):
    program, table, run = tmp_path / "answer.py", tmp_path / "shop.csv", tmp_path / "run"
    program.write_text(
        "import csv, sys\n"
        "for row in csv.DictReader(sys.stdin):\n"
        "    print(int(float(row['age in years']) > 40))\n"
    )
    rows = ["age in years,size,ok"] + [f"{a},{a * 7 % 5},{int(a > 38)}" for a in range(20, 60)]
    table.write_text("\n".join(rows))
    box = f"command: {sys.executable} {program}"
    words = ["tune", str(table), "--target", "ok", "--black-box", box, "--reference", "black-box"]
    words += ["--extractors", "cart", "--trials", "2", "--cv", "2", "--format", "json", "--quiet"]
    assert main([*words, "--output", str(run)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["black_box"]["name"] == box
    assert not result["black_box"]["trained_here"]
    rules = RuleSet.from_json((run / "rules.json").read_text())
    ages = np.arange(20, 60)
    frame = pd.DataFrame({"age in years": ages, "size": ages * 7 % 5})
    assert (rules.predict(frame) == (ages > 40)).all()
    assert main(["report", str(run), "--data", str(table)]) == 0
    assert "it is a command, and commands are not run again" in capsys.readouterr().err


def test_tune_reports_a_failing_command(tmp_path, capsys):
    words = ["tune", "iris", "--black-box", "command:no-such-program", "--extractors", "cart"]
    assert main([*words, "--trials", "1", "--cv", "2"]) != 0
    assert "'no-such-program' cannot be run" in capsys.readouterr().err
