"""PSyKE's algorithms in PSyKEExtractor predict like PSyKE and behave like other extractors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier
from skescore.extractors import Discretizer
from skescore.extractors.psyke import ALGORITHMS, PSyKEExtractor, contained, load_psyke
from skescore.metrics import group_gap

#: Settings with which each is quick.
QUICK = {
    "ginger": {"n_gen": 3, "n_pop": 6, "max_slices": 1},
    "gridex": {"n_slices": 3, "importance_threshold": 0.6},
    "gridrex": {"n_slices": 3, "importance_threshold": 0.6},
    "hex": {"importance_threshold": 0.6},
    "iter": {"min_update": 0.2, "min_examples": 20},
}
CASES = [
    (name, data)
    for name, spec in sorted(ALGORITHMS.items())
    for data in ("iris", "wine", "friedman")
    if ("regression" if data == "friedman" else "classification") in spec.tasks
]
#: Take long on 13 features, some of them minutes.
SLOW = {(name, "wine") for name in ("cream", "exact", "gridex", "hex", "iter", "trepan")}


class Keeping(PSyKEExtractor):
    """An extractor that keeps the fitted object of PSyKE."""

    def _read(self, extractor, extraction):
        self.psyke_ = extractor
        return super()._read(extractor, extraction)


def problem(name):
    if name == "friedman":
        rows = np.random.default_rng(0).uniform(size=(120, 5))
        y = 10 * np.sin(np.pi * rows[:, 0] * rows[:, 1]) + 20 * (rows[:, 2] - 0.5) ** 2
        return rows, y + 10 * rows[:, 3], RandomForestRegressor(5, random_state=0)
    data = load_iris() if name == "iris" else load_wine()
    return data.data, data.target, RandomForestClassifier(5, random_state=0)


def as_psyke_sees(extractor, X):
    """Return rows as PSyKE uses them, with bins by PSyKE's own tests of values."""
    if type(extractor).__name__ not in ("REAL", "Trepan"):
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    columns = {}
    for feature in extractor.discretization:
        values = X[:, int(feature.name[1:])]
        for name, value in feature.admissible_values.items():
            columns[name] = [int(value.is_in(v)) for v in values]
    return pd.DataFrame(columns)


def probe_rows(X, rules):
    """Return training rows, rows around them, and rows on the bounds of the rules."""
    low, high = X.min(axis=0), X.max(axis=0)
    around = np.random.default_rng(1).uniform(
        low - 0.2 * (high - low), high + 0.2 * (high - low), size=(150, X.shape[1])
    )
    middle, boxes = (low + high) / 2, rules.boxes
    borders = [
        np.where(np.isfinite(bounds), bounds, middle) for bounds in (boxes.lower, boxes.upper)
    ]
    return np.vstack([X, around, *borders])


def check_equal(fitted, X):
    rows = probe_rows(X, fitted.rules_)
    with contained(0):
        predictions = list(fitted.psyke_.predict(as_psyke_sees(fitted.psyke_, rows)))
    silent = np.array([v is None or v != v for v in predictions])
    np.testing.assert_array_equal(fitted.covers(rows), ~silent)
    answers = fitted.predict(rows)[~silent]
    if fitted.rules_.task == "classification":
        labels = fitted.classes_
        expected = [labels[int(v[1:])] for v, s in zip(predictions, silent, strict=True) if not s]
        assert answers.tolist() == list(expected)
    else:
        expected = [
            float(np.ravel(v)[0]) for v, s in zip(predictions, silent, strict=True) if not s
        ]
        np.testing.assert_allclose(answers, expected, rtol=0, atol=6e-7)  # PSyKE has 6 decimals
    return silent


@pytest.mark.parametrize(("name", "data"), [c for c in CASES if c not in SLOW])
def test_extractor_predicts_like_psyke(name, data):
    X, y, black_box = problem(data)
    fitted = Keeping(
        black_box,
        name,
        random_state=0,
        uncovered="abstain",
        **QUICK.get(name, {}),
        **({"abstain_label": -1} if data != "friedman" else {}),
    ).fit(X, y)
    assert fitted.n_rules_ >= 2 or name == "hex"
    check_equal(fitted, X)


@pytest.mark.parametrize("name", ["cosmik", "cream", "exact", "ginger", "hex"])
@pytest.mark.parametrize("output", ["constant", "linear"])
def test_extractor_supports_constant_and_linear_outputs(name, output):
    X, y, black_box = problem("friedman")
    options = QUICK.get(name, {}) | ({"threshold": 1.0, "depth": 1} if name == "hex" else {})
    fitted = Keeping(black_box, name, random_state=0, output=output, **options).fit(X, y)
    check_equal(fitted, X)
    slopes = [bool(fitted.rules_.conclusions.linear)]
    assert slopes == [output == "linear"]


DIRECT = {
    "gridex": lambda p, P, grid: P.Extractor.gridex(p, grid, min_examples=30, threshold=0.1),
    "hex": lambda p, P, grid: P.Extractor.hex(p, grid, min_examples=0, threshold=0.1),
    "cream": lambda p, P, _: P.Extractor.creepy(
        p, P.Clustering.cream, depth=3, error_threshold=0.1, gauss_components=3
    ),
    "exact": lambda p, P, _: P.Extractor.creepy(
        p, P.Clustering.exact, depth=3, error_threshold=0.1, gauss_components=3
    ),
    "divine": lambda p, P, _: P.Extractor.divine(p),
}


@pytest.mark.parametrize("name", sorted(DIRECT))
def test_extractor_with_seed_123_reproduces_psyke(name):
    """A direct call of PSyKE uses its own frame, random numbers and strategy."""
    X, y, black_box = problem("iris")
    model = black_box.fit(X, y)
    texts = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])

    from sklearn.base import BaseEstimator, ClassifierMixin

    class Texts(ClassifierMixin, BaseEstimator):
        def predict(self, rows):
            return texts[model.predict(np.asarray(rows))]

    psyke = load_psyke(name)
    with contained(None):
        from psyke.extraction.hypercubic import Grid
        from psyke.extraction.hypercubic.strategy import FixedStrategy

        theirs = DIRECT[name](Texts(), psyke, Grid(1, FixedStrategy(2)))
        theirs.extract(frame.assign(kind=Texts().predict(frame)))
        answers = list(theirs.predict(frame))
    options = {
        "gridex": {"depth": 1, "min_examples": 30, "threshold": 0.1},
        "hex": {"depth": 1, "threshold": 0.1},
        "cream": {"gauss_components": 3},
        "exact": {"gauss_components": 3},
        "divine": {},
    }[name]
    ours = PSyKEExtractor(
        FrozenEstimator(model),
        name,
        random_state=123,
        uncovered="abstain",
        abstain_label=9,
        **options,
    ).fit(X, y)
    assert ours.n_rules_ == theirs.n_rules
    expected = [9 if a is None else texts.tolist().index(a) for a in answers]
    assert ours.predict(X).tolist() == expected


# --- labels and names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ä b", "'quoted'", ""], dtype=object),
        np.array([10, 2, -7]),
        np.array([1.0, 3.0, -2.0]),
    ],
    ids=["text", "int", "float"],
)
@pytest.mark.parametrize("name", ["gridex", "real", "cream"])
def test_extractor_accepts_labels_of_any_type(labels, name):
    X, y, _ = problem("iris")
    options = QUICK.get(name, {})
    black_box = CallableClassifier(
        DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, labels[y]).predict,
        classes=labels,
    )
    fitted = PSyKEExtractor(black_box, name, random_state=0, **options).fit(X, labels[y])
    assert fitted.predict(X).dtype == fitted.classes_.dtype
    assert fitted.score(X, labels[y]) > 0.9
    assert {rule.output for rule in fitted.rules_} == set(labels.tolist())


def test_extractor_accepts_boolean_labels():
    X, y, _ = problem("iris")
    fitted = PSyKEExtractor(DecisionTreeClassifier(random_state=0), "cart").fit(X, y == 2)
    assert fitted.predict(X).dtype == bool
    assert fitted.score(X, y == 2) > 0.9


def test_extractor_keeps_order_of_more_than_ten_classes():
    rows = np.linspace(0, 12, 240, endpoint=False)[:, None]
    fitted = PSyKEExtractor(
        DecisionTreeClassifier(), "cart", max_leaves=12, max_depth=None, random_state=0
    ).fit(rows, rows[:, 0].astype(int))
    assert fitted.predict(rows).tolist() == rows[:, 0].astype(int).tolist()


@pytest.mark.parametrize("name", ["cart", "gridex", "real"])
def test_extractor_accepts_columns_of_any_name(name):
    X, y, black_box = problem("iris")
    names = ["x3", "x0", "a\nline; DROP", "x1"]  # the names that PSyKE gets
    fitted = PSyKEExtractor(black_box, name, random_state=0, **QUICK.get(name, {}))
    fitted.fit(pd.DataFrame(X, columns=names), y)
    plain = clone(fitted).fit(X, y)
    assert fitted.rules_.feature_names == tuple(names)
    assert fitted.rules_.replace(feature_names=plain.rules_.feature_names) == plain.rules_


# --- scikit-learn --------------------------------------------------------------------------------


def test_extractor_accepts_pipelines_and_searches_as_black_box():
    """PSyKE itself treats pipelines as regressors, and then averages texts."""
    X, y, _ = problem("iris")
    tree = DecisionTreeClassifier(random_state=0)
    for black_box in (
        make_pipeline(StandardScaler(), tree),
        GridSearchCV(tree, {"max_depth": [2, 3]}, cv=2),
    ):
        fitted = PSyKEExtractor(black_box, "gridex", importance_threshold=0.6, n_slices=4)
        assert fitted.fit(X, y).score(X, y) > 0.85


def test_extractor_works_in_pipeline():
    X, y, black_box = problem("iris")
    pipeline = make_pipeline(StandardScaler(), PSyKEExtractor(black_box, "cart")).fit(X, y)
    assert pipeline.score(X, y) > 0.9


@pytest.mark.slow
def test_extractor_works_in_search_with_two_processes():
    X, y, _ = problem("iris")
    search = GridSearchCV(
        PSyKEExtractor(DecisionTreeClassifier(random_state=0), "gridex", random_state=0, depth=1),
        {"n_slices": [2, 5], "importance_threshold": [0.99]},
        cv=2,
        n_jobs=2,
    ).fit(X, y)
    sequential = GridSearchCV(search.estimator, search.param_grid, cv=2).fit(X, y)
    assert search.best_params_ == {"importance_threshold": 0.99, "n_slices": 5}
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], sequential.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.rules_ == sequential.best_estimator_.rules_


@pytest.mark.parametrize("name", ["cart", "gridrex", "real", "iter"])
def test_extractor_can_be_copied_and_pickled_without_psyke(name, tmp_path):
    X, y, black_box = problem("friedman" if name == "gridrex" else "iris")
    fitted = PSyKEExtractor(black_box, name, random_state=0, **QUICK.get(name, {})).fit(X, y)
    assert copy.deepcopy(fitted).rules_ == fitted.rules_
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    if name in ("gridrex", "real"):
        return  # one process suffices for each kind of rules
    (tmp_path / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "answers.npy", fitted.predict(X))
    code = f"""
        import pickle, sys
        for module in ("psyke", "tuprolog", "jpype"):
            sys.modules[module] = None
        import numpy as np
        folder = {str(tmp_path)!r}
        with open(folder + "/fitted.pickle", "rb") as file:
            fitted = pickle.load(file)
        same = fitted.predict(np.load(folder + "/X.npy")) == np.load(folder + "/answers.npy")
        sys.exit(0 if same.all() else 1)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


@pytest.mark.parametrize("name", ["cream", "gridex", "iter"])
def test_extractor_is_reproducible_with_seed(name):
    X, y, black_box = problem("iris")
    options = QUICK.get(name, {}) | ({} if name == "cream" else {"min_examples": 40})
    extractor = PSyKEExtractor(black_box, name, random_state=5, **options)
    first = extractor.fit(X, y).rules_
    np.random.seed(99)
    assert clone(extractor).set_params(batch_size=7).fit(X, y).rules_ == first


def test_extractor_passes_seed_to_psyke():
    """GridEx adds random points to its cells."""
    X, y, _ = problem("friedman")
    black_box = DecisionTreeRegressor(max_depth=6, random_state=0)
    outputs = {
        seed: PSyKEExtractor(
            black_box,
            "gridex",
            random_state=seed,
            min_examples=90,
            depth=1,
            importance_threshold=0.9,
        )
        .fit(X, y)
        .rules_.conclusions.outputs.tolist()
        for seed in (1, 2)
    }
    assert outputs[1] != outputs[2]


def test_named_creates_extractor_of_algorithm():
    tree = DecisionTreeRegressor()
    extractor = PSyKEExtractor.from_name("psyke:gridrex", tree, depth=1)
    assert (extractor.algorithm, extractor.params, extractor.estimator) == (
        "gridrex",
        {"depth": 1},
        tree,
    )
    with pytest.raises(ValueError, match=r"got 'gridx'\. Did you mean 'gridex'\?"):
        PSyKEExtractor.from_name("psyke:gridx", tree)


# --- the black box -------------------------------------------------------------------------------


class Talkative(DecisionTreeClassifier):
    """A black box that prints, warns and draws random numbers at every prediction."""

    def predict(self, X, check_input=True):
        print("asked")
        warnings.warn("I was asked", UserWarning, stacklevel=2)
        random_numbers.append(np.random.uniform())
        return super().predict(X)


random_numbers: list[float] = []


def test_extractor_keeps_output_and_random_state_of_black_box(capsys):
    X, y, _ = problem("iris")
    extractor = PSyKEExtractor(
        Talkative(random_state=0),
        "gridex",
        random_state=0,
        min_examples=40,
        depth=1,
        importance_threshold=0.8,
    )
    random_numbers.clear()
    np.random.seed(3)
    with pytest.warns(UserWarning, match="I was asked") as heard:
        extractor.fit(X, y)
    calls = extractor.oracle_.n_calls
    assert calls > 1
    assert capsys.readouterr().out == "asked\n" * calls
    assert len(heard) == calls
    # The black box uses the global generator, which PSyKE must not reset.
    np.random.seed(3)
    assert random_numbers == [np.random.uniform() for _ in range(calls)]


class Failing(DecisionTreeClassifier):
    """A black box that predicts only the training rows."""

    def predict(self, X, check_input=True):
        if len(X) != 150:
            raise TypeError("no such rows")
        return super().predict(X)


def test_extractor_raises_errors_of_black_box():
    X, y, _ = problem("iris")
    with pytest.raises(TypeError, match=r"^no such rows$"):
        PSyKEExtractor(Failing(), "gridex", min_examples=60).fit(X, y)


def test_extractor_queries_black_box_once_per_row():
    X, y, black_box = problem("iris")
    fitted = PSyKEExtractor(black_box, "gridex", random_state=0, depth=1).fit(X, y)
    assert (fitted.oracle_.n_calls, fitted.oracle_.n_rows) == (1, 150)


def test_extractor_uses_given_discretizer():
    X, y, black_box = problem("iris")
    cuts = Discretizer("given", cut_points={2: [2.45, 4.75], 3: [0.8, 1.75]})
    fitted = PSyKEExtractor(black_box, "trepan", discretizer=cuts).fit(X, y)
    bounds = {b for rule in fitted.rules_ for c in rule.intervals for b in (c.lower, c.upper)}
    assert bounds <= {2.45, 4.75, 0.8, 1.75, np.inf, -np.inf}
    assert fitted.score(X, y) > 0.9


def test_extractor_does_not_split_protected_features():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(150), "z": rng.random(150), "sex": rng.integers(0, 2, 150)})
    y = np.where(X["x"] + 0.8 * X["sex"] > 0.9, "yes", "no")
    extractor = PSyKEExtractor(DecisionTreeClassifier(random_state=0), "cart", max_leaves=4)
    plain = extractor.fit(X, y).rules_
    fair = clone(extractor).set_params(protected=["sex"]).fit(X, y).rules_
    assert plain.feature_names[2] == "sex"
    assert 2 in plain.used_features
    assert 2 not in fair.used_features
    assert len(fair) == 4
    assert group_gap(fair, X, "sex") < 0.2 < 0.6 < group_gap(plain, X, "sex")
    numbers = PSyKEExtractor(DecisionTreeRegressor(random_state=0), "cart", protected=[2])
    assert 2 not in numbers.fit(X, X["x"] + X["sex"]).rules_.used_features


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protected": ["q"]}, "indices from 0 to 3 or names"),
        ({"protected": [0, 1, 2, 3]}, "must leave a feature"),
        ({"protected": [0], "max_depth": None}, "protected needs max_depth"),
    ],
)
def test_extractor_rejects_invalid_protected_features(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        PSyKEExtractor(DecisionTreeClassifier(), "cart", **settings).fit(X, y)
