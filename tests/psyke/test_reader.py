"""Extractors fitted by the real PSyKE, read as rules, predict like PSyKE."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from skescore._validation import python_value
from skescore.extractors.psyke import load_psyke
from skescore.rules import Fallback, RowTable, RuleSet, as_ruleset
from skescore.rules.importers import read_psyke
from skescore.rules.importers._psyke import (
    Columns,
    Discretization,
    Units,
    box_columns,
    cart_columns,
    discretization_of,
    family_of,
    literal_columns,
)

NAMES = ["SL", "SW", "PL", "PW"]
IRIS = load_iris()
X_IRIS = pd.DataFrame(IRIS.data, columns=NAMES)
Y_IRIS = np.array(["setosa", "versicolor", "virginica"])[IRIS.target]
X_DIABETES = pd.DataFrame(load_diabetes().data[:150, [2, 3, 8]] * 20, columns=["bmi", "bp", "s5"])
Y_DIABETES = load_diabetes().target[:150] / 50
FLOWERS = KNeighborsClassifier(7).fit(X_IRIS, Y_IRIS)
PATIENTS = KNeighborsRegressor(9).fit(X_DIABETES, Y_DIABETES)
#: What rounding to 6 decimals moves, and the rounding errors of adding up.
LINEAR = 5.001e-7


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings and the output of PSyKE."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def engine() -> SimpleNamespace:
    with quiet():
        load_psyke("ginger")
        from psyke import Clustering, Extractor, Target, schema
        from psyke.extraction.hypercubic import Grid
        from psyke.extraction.hypercubic.strategy import AdaptiveStrategy, FixedStrategy
        from psyke.utils import dataframe
    return SimpleNamespace(
        Clustering=Clustering,
        Extractor=Extractor,
        Target=Target,
        schema=schema,
        Grid=Grid,
        Adaptive=AdaptiveStrategy,
        Fixed=FixedStrategy,
        dataframe=dataframe,
    )


def grid(engine: Any, names: list[str], cut: list[str], depth: int = 2, n: int = 2) -> Any:
    """Return a grid that cuts some features into n slices at every level."""
    ranks = [(name, float(name in cut)) for name in names]
    return engine.Grid(depth, engine.Adaptive(ranks, [(0.5, n)]))


def flower_grid(engine: Any, **options: Any) -> Any:
    return grid(engine, NAMES, ["PL", "PW"], **options)


def patient_grid(engine: Any, **options: Any) -> Any:
    return grid(engine, ["bmi", "bp", "s5"], ["bmi", "s5"], **options)


#: How to make each extractor; "flowers" have classes, "patients" numbers.
FLOWER_KINDS: dict[str, Callable[[Any], Any]] = {
    "gridex": lambda e: e.Extractor.gridex(FLOWERS, flower_grid(e), 10, 0.1),
    "gridex all": lambda e: e.Extractor.gridex(FLOWERS, e.Grid(1, e.Fixed(2)), 1, 0.1),
    "hex": lambda e: e.Extractor.hex(FLOWERS, flower_grid(e), 10, 0.1),
    "iter": lambda e: e.Extractor.iter(
        FLOWERS, min_update=0.25, n_points=3, max_iterations=8, min_examples=1, fill_gaps=False
    ),
    "divine": lambda e: e.Extractor.divine(FLOWERS),
    "ginger": lambda e: e.Extractor.ginger(
        FLOWERS, ["PL", "PW"], [0.1, 0.1], 1, n_gen=2, n_pop=5, metric="F1"
    ),
    "creepy exact": lambda e: e.Extractor.creepy(FLOWERS, e.Clustering.exact, 3, 0.05),
    "creepy cream": lambda e: e.Extractor.creepy(
        FLOWERS,
        e.Clustering.cream,
        2,
        0.05,
        ranks=[("SL", 0.0), ("SW", 0.1), ("PL", 1.0), ("PW", 0.9)],
        ignore_threshold=0.5,
    ),
    "exact": lambda e: e.Clustering.exact(output=e.Target.CLASSIFICATION),
    "cream": lambda e: e.Clustering.cream(output=e.Target.CLASSIFICATION),
    "cart": lambda e: e.Extractor.cart(FLOWERS, max_leaves=5),
    "cart in full": lambda e: e.Extractor.cart(FLOWERS, max_leaves=5, simplify=False),
    "cart fair": lambda e: fair(e.Extractor.cart(FLOWERS, max_leaves=4), ["PW"]),
    "gridex fair": lambda e: fair(
        e.Extractor.gridex(FLOWERS, e.Grid(1, e.Fixed(3)), 1, 0.1), ["SL", "PW"]
    ),
}
PATIENT_KINDS: dict[str, Callable[[Any], Any]] = {
    "gridex": lambda e: e.Extractor.gridex(PATIENTS, patient_grid(e, n=3), 10, 0.3),
    "gridrex": lambda e: e.Extractor.gridrex(PATIENTS, patient_grid(e), 10, 0.2),
    "hex": lambda e: e.Extractor.hex(PATIENTS, patient_grid(e), 10, 0.3),
    "iter": lambda e: e.Extractor.iter(
        PATIENTS, min_update=0.25, max_iterations=25, min_examples=1, threshold=0.8
    ),
    "ginger": lambda e: e.Extractor.ginger(
        PATIENTS, ["bmi", "s5"], [0.1, 0.1], 1, n_gen=2, n_pop=5
    ),
    "ginger constant": lambda e: e.Extractor.ginger(
        PATIENTS,
        ["bmi", "s5"],
        [0.1, 0.1],
        1,
        n_gen=2,
        n_pop=5,
        max_poly=2,
        output=e.Target.CONSTANT,
    ),
    "creepy exact": lambda e: e.Extractor.creepy(
        PATIENTS, e.Clustering.exact, 2, 0.1, output=e.Target.REGRESSION
    ),
    "creepy cream": lambda e: e.Extractor.creepy(PATIENTS, e.Clustering.cream, 2, 0.1),
    "exact": lambda e: e.Clustering.exact(),
    "cream": lambda e: e.Clustering.cream(output=e.Target.REGRESSION),
    "cart": lambda e: e.Extractor.cart(PATIENTS, max_leaves=6),
    "cart fair": lambda e: fair(e.Extractor.cart(PATIENTS, max_leaves=4), ["bp"]),
}


def fair(extractor: Any, features: list[str]) -> Any:
    extractor.make_fair(features)
    return extractor


def construct(make: Callable[[Any], Any], engine: Any) -> Any:
    with quiet():  # a second GInGER causes warnings
        return make(engine)


def extract(extractor: Any, X: pd.DataFrame, y: Any) -> Any:
    with quiet(), contextlib.ExitStack() as stack:
        if getattr(extractor, "is_fair", None):  # its trees fail on the string type of pandas
            stack.enter_context(pd.option_context("future.infer_string", False))
        if not hasattr(extractor, "extract"):
            extractor.fit(X.assign(target=y))
        elif type(extractor).__name__ != "Cart" or not isinstance(y[0], float):
            extractor.extract(X.assign(target=y))
        else:  # with recent NumPy, CART fails on numbers after its tree is fitted
            with contextlib.suppress(TypeError):
                extractor.extract(X.assign(target=y))
    return extractor


@pytest.fixture(scope="module")
def flower_rules(engine) -> Callable[[str], Any]:
    """Return extractors fitted on classes; reading does not change them."""
    return cache(lambda name: extract(construct(FLOWER_KINDS[name], engine), X_IRIS, Y_IRIS))


@pytest.fixture(scope="module")
def patient_rules(engine) -> Callable[[str], Any]:
    """Return extractors fitted on numbers."""
    y = PATIENTS.predict(X_DIABETES)
    return cache(lambda name: extract(construct(PATIENT_KINDS[name], engine), X_DIABETES, y))


def probes(X: pd.DataFrame, rules: RuleSet, n: int = 40) -> pd.DataFrame:
    """Return training rows, random rows, rows on and near every bound, and rows far away."""
    random = np.random.default_rng(0)
    low, high = X.min().to_numpy(), X.max().to_numpy()
    around = random.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low), (n, X.shape[1]))
    rows = [X.to_numpy(float)[::3], around, np.array([low, high, low - 1e6, high + 1e6])]
    conditions = [c for rule in rules for c in rule.conditions]
    inner = [i for c in conditions for i in getattr(c, "conditions", (c,)) if hasattr(i, "lower")]
    bounds = {(i.feature, b) for i in inner for b in (i.lower, i.upper) if math.isfinite(b)}
    for feature, bound in sorted(bounds)[:25]:
        for value in (bound, math.nextafter(bound, math.inf), math.nextafter(bound, -math.inf)):
            row = around[random.integers(n)].copy()
            row[feature] = value
            rows.append(row[None])
    return pd.DataFrame(np.vstack(rows), columns=list(rules.feature_names))


# --- PSyKE's own predictions of rows in the user's units -----------------------------------------


def columns_of(meanings: Discretization, table: RowTable, names: Sequence[str]) -> pd.DataFrame:
    """Return binary columns for rows of the features, by PSyKE's own tests."""
    columns = {}
    for feature in meanings.features:
        values = [python_value(v) for v in table.column(names.index(str(feature.name)))]
        for column, value in feature.admissible_values.items():
            holds = getattr(value, "is_in", value.__eq__)
            columns[str(column)] = [int(bool(holds(v))) for v in values]
    return pd.DataFrame(columns)[meanings.column_names]


def psyke_predictions(
    extractor: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Mapping[Any, Any] | None = None,
    discretization: Iterable[Any] | None = None,
) -> pd.DataFrame:
    """Return PSyKE's own predictions in the user's units, None without a prediction.

    The keyword parameters are those of ``read_psyke``.
    """
    family = family_of(extractor)
    meanings = discretization_of(extractor, family, discretization)
    if family == "HyperCubePredictor":
        column_names = box_columns(extractor)
    elif family == "Cart":
        column_names = cart_columns(extractor)
    else:
        column_names = literal_columns(extractor, family)
    columns = Columns.of(meanings.names or column_names, feature_names)
    table = RowTable(X, columns.names)
    if meanings.features:
        frame = columns_of(meanings, table, columns.names)
    else:
        frame = pd.DataFrame({name: table.column(columns.index_of[name]) for name in column_names})
    if family == "Cart":
        frame = frame[column_names]
    units = Units.of(extractor.normalization)
    for name in frame.columns:
        if name in units.columns:
            mean, scale = units.columns[name]
            frame[name] = (frame[name] - mean) / scale
    results = [python_value(answer) for answer in _predict(extractor, frame)]
    covered = [answer is not None for answer in results]
    if classes is not None:
        results = [None if answer is None else classes.get(answer, answer) for answer in results]
    result = pd.DataFrame({"answer": pd.Series(results, dtype=object), "covered": covered})
    result["covered"] = result["covered"].astype(bool)
    return result


def _predict(extractor: Any, frame: pd.DataFrame) -> Any:
    """Call predict of PSyKE, which fails if it denormalizes without any prediction."""
    if not len(frame):
        return []
    try:
        with warnings.catch_warnings():
            # PSyKE uses copies of its linear models without feature names.
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)
            return extractor.predict(frame)
    except IndexError:
        raw = list(extractor._predict(frame))
        if any(answer is not None for answer in raw):
            raise
        return raw


def check(rules: RuleSet, extractor: Any, rows: pd.DataFrame, gap: float, **options: Any) -> None:
    """Compare with PSyKE's own predict."""
    theirs = psyke_predictions(extractor, rows, **options)
    covered = theirs["covered"].to_numpy()
    np.testing.assert_array_equal(rules.covers(rows), covered)
    assert covered.any()
    ours = rules.predict(rows[covered])
    if rules.task == "classification":
        assert ours.tolist() == theirs["answer"][covered].tolist()
    else:
        assert np.abs(ours - theirs["answer"][covered].to_numpy(float)).max() <= gap


@pytest.mark.parametrize("name", FLOWER_KINDS)
def test_read_psyke_predicts_labels_like_psyke(flower_rules, name):
    extractor = flower_rules(name)
    rules = read_psyke(extractor)
    assert (rules.task, len(rules)) == ("classification", extractor.n_rules)
    assert rules.feature_names == tuple(NAMES)
    check(rules, extractor, probes(X_IRIS, rules), 0)
    assert as_ruleset(extractor) == rules == RuleSet.from_json(rules.to_json())


@pytest.mark.parametrize("name", PATIENT_KINDS)
def test_read_psyke_predicts_numbers_like_psyke(patient_rules, name):
    extractor = patient_rules(name)
    rules = read_psyke(extractor)
    assert (rules.task, len(rules)) == ("regression", extractor.n_rules)
    linear = not all(isinstance(rule.output, float) for rule in rules)
    check(rules, extractor, probes(X_DIABETES, rules), LINEAR if linear else 0)


@pytest.mark.parametrize("output", ["CONSTANT", "REGRESSION"])
def test_read_psyke_reads_rules_of_crashed_cosmik(engine, output):
    extractor = engine.Extractor.cosmik(
        PATIENTS, max_components=2, patience=3, output=engine.Target[output]
    )
    with quiet(), pytest.raises(TypeError, match="not subscriptable"):
        extractor.extract(X_DIABETES.assign(target=Y_DIABETES))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rules = read_psyke(extractor)
    rows = probes(X_DIABETES, rules)
    if output == "REGRESSION":  # predict fails in boxes without a fitted plane
        empty = [c for c in extractor._hypercubes if not hasattr(c.output, "coef_")]
        assert len(caught) == bool(empty)
        assert len(rules) == extractor.n_rules - len(empty)
        rows = rows[[not any(row in c for c in empty) for row in rows.to_dict("records")]]
    check(rules, extractor, rows, 0 if output == "CONSTANT" else LINEAR)


@pytest.mark.parametrize("name", ["hex", "creepy exact", "creepy cream"])
def test_read_psyke_puts_default_rule_last(flower_rules, name):
    rules = read_psyke(flower_rules(name))
    assert rules.ordered
    assert rules[-1].conditions == ()
    assert all(rule.conditions for rule in rules[:-1])


def test_read_psyke_keeps_closed_and_open_bounds(flower_rules):
    rules = read_psyke(flower_rules("gridex all"))
    middle = float(np.mean([round(X_IRIS["PL"].min() - 2e-6, 6), X_IRIS["PL"].max() + 2e-6]))
    sides = [c for rule in rules for c in rule.intervals if c.feature == 2]
    assert {c.lower == -math.inf for c in sides} == {False, True}
    for side in sides:
        if side.lower == -math.inf:
            assert (side.upper, side.upper_closed) == (pytest.approx(middle), False)
        else:
            assert (side.lower, side.lower_closed) == (pytest.approx(middle), True)
            assert side.upper == math.inf
    assert rules.disjoint
    domain = rules.domain
    assert domain.lower[2] == pytest.approx(X_IRIS["PL"].min() - 2e-6, abs=1e-9)
    closed = read_psyke(flower_rules("exact"))
    assert closed.ordered
    assert all(c.lower_closed and c.upper_closed for r in closed for c in r.intervals)


def test_read_psyke_counts_statistics_from_rows(patient_rules, flower_rules):
    extractor = flower_rules("gridex")
    answers = FLOWERS.predict(X_IRIS)
    rules = read_psyke(extractor, X=X_IRIS, y_black_box=answers)
    assert all(rule.statistics is None for rule in read_psyke(extractor))
    index = rules.assign(X_IRIS)
    for i, rule in enumerate(rules):
        values = answers[index == i].tolist()
        assert rule.statistics.class_counts == tuple(values.count(label) for label in rules.classes)
    only_rows = read_psyke(extractor, X=X_IRIS)
    assert [r.statistics.n_rows for r in only_rows] == [r.statistics.n_rows for r in rules]
    numbers = patient_rules("gridex")
    y = PATIENTS.predict(X_DIABETES)
    rules = read_psyke(numbers, X=X_DIABETES, y_black_box=y)
    first = y[rules.assign(X_DIABETES) == 0]
    assert rules[0].statistics.mean == pytest.approx(first.mean())
    assert rules[0].statistics.standard_deviation == pytest.approx(first.std())
    with pytest.raises(ValueError, match="y_black_box needs the rows"):
        read_psyke(numbers, y_black_box=y)
    with pytest.raises(ValueError, match=r"one entry per row of X \(150\), got 3"):
        read_psyke(numbers, X=X_DIABETES, y_black_box=y[:3])
    with pytest.raises(ValueError, match=r"must contain only the classes .* got 'rose'"):
        read_psyke(
            extractor, classes={v: v for v in set(Y_IRIS)}, X=X_IRIS[:1], y_black_box=["rose"]
        )


@pytest.mark.parametrize("simplify", [True, False])
def test_read_psyke_keeps_statistics_of_cart_leaves(engine, simplify):
    cart = extract(engine.Extractor.cart(FLOWERS, max_leaves=3, simplify=simplify), X_IRIS, Y_IRIS)
    classes = {"virginica": 2, "setosa": 0, "versicolor": 1}
    rules = read_psyke(cart, classes=classes)
    assert rules.classes == (2, 0, 1)
    answers, index = FLOWERS.predict(X_IRIS), rules.assign(X_IRIS)
    for i, rule in enumerate(rules):
        values = answers[index == i].tolist()
        assert rule.statistics.class_counts == tuple(values.count(label) for label in classes)
        assert rule.statistics.n_rows == len(values)
    assert rules == read_psyke(
        cart, classes=classes, X=X_IRIS, y_black_box=[classes[v] for v in answers], domain=None
    ).replace(domain=None)


# --- binary columns ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bins(engine) -> SimpleNamespace:
    features = engine.dataframe.get_discrete_features_supervised(X_IRIS.assign(target=Y_IRIS))
    frame = engine.dataframe.get_discrete_dataset(X_IRIS, features)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(frame, Y_IRIS)
    created = {
        "real": engine.Extractor.real(tree, features),
        "trepan": engine.Extractor.trepan(tree, features, max_depth=4),
        "cart": engine.Extractor.cart(tree, 4, 6, discretization=features),
        "cart fair": fair(engine.Extractor.cart(tree, 4, 6, discretization=features), ["PW_0"]),
    }
    for extractor in created.values():
        extract(extractor, frame, Y_IRIS)
    return SimpleNamespace(features=features, frame=frame, made=created)


@pytest.mark.parametrize("name", ["real", "trepan", "cart", "cart fair"])
def test_read_psyke_turns_bins_into_features(bins, name):
    extractor = bins.made[name]
    rules = read_psyke(extractor, feature_names=NAMES, X=X_IRIS)
    assert rules.feature_names == tuple(NAMES)
    assert rules.domain.upper[2] == pytest.approx(6.9)
    check(rules, extractor, probes(X_IRIS, rules), 0, feature_names=NAMES)


@pytest.mark.parametrize("name", ["real", "trepan", "cart", "cart fair"])
def test_read_psyke_keeps_columns_without_discretization(bins, name):
    extractor = bins.made[name]
    rules = read_psyke(extractor, discretization=())
    assert sorted(rules.feature_names) == sorted(bins.frame.columns)
    random = np.random.default_rng(0).integers(0, 2, (300, 12))
    rows = np.vstack([bins.frame[list(rules.feature_names)], random])
    rows = pd.DataFrame(rows, columns=list(rules.feature_names))
    check(rules, extractor, rows, 0, discretization=())
    assert len(rules) == extractor.n_rules


@settings(max_examples=60)
@given(data=st.data())
def test_literals_agree_with_values_of_psyke(engine, data):
    schema, number = engine.schema, st.integers(0, 6).map(float)
    standard = st.booleans()
    one = st.builds(schema.LessThan, number, standard) | st.builds(
        schema.GreaterThan, number, standard
    )
    two = st.tuples(number, number, standard).filter(lambda t: t[0] <= t[1])
    value = st.one_of(
        one,
        two.map(lambda t: schema.Between(*t)),
        two.map(lambda t: schema.Outside(*t)),
        st.builds(schema.Constant, number),
    )
    values = data.draw(st.lists(value, min_size=1, max_size=4))
    if data.draw(st.booleans()):
        values = [schema.Constant(float(k)) for k in range(len(values))]
    feature = schema.DiscreteFeature("f", {f"f_{k}": v for k, v in enumerate(values)})
    literals = [
        (f"f_{k}", data.draw(st.booleans())) for k in range(len(values)) if data.draw(st.booleans())
    ]
    rows = np.arange(-1, 8, 0.5)
    expected = [
        all(feature.admissible_values[c].is_in(x) == held for c, held in literals) for x in rows
    ]
    result = Discretization([feature]).conditions(literals, {"f": 0})
    if result is None:
        assert not any(expected)
    else:
        holds = [all(c.holds(lambda _, x=x: np.array([x]))[0] for c in result) for x in rows]
        assert holds == expected


def test_read_psyke_rejects_invalid_discretization(flower_rules, bins):
    real, gridex = bins.made["real"], flower_rules("gridex")
    with pytest.raises(ValueError, match=r"is missing. Pass discretization=\(\)"):
        read_psyke(real, discretization=list(bins.features)[:1])
    with pytest.raises(TypeError, match="DiscreteFeature objects, got 'SL'"):
        read_psyke(real, discretization=["SL"])
    with pytest.raises(ValueError, match="it is for REAL, Trepan and CART"):
        read_psyke(gridex, discretization=bins.features)


# --- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gridex", "gridrex", "hex", "creepy", "cart"])
def test_read_psyke_undoes_normalization(engine, name):
    frame = X_DIABETES.assign(target=PATIENTS.predict(X_DIABETES))
    scaled, norm = engine.dataframe.get_scaled_dataset(frame)
    black_box = KNeighborsRegressor(9).fit(scaled.iloc[:, :-1], scaled["target"])
    make = engine.Extractor
    extractor = {
        "gridex": lambda: make.gridex(black_box, patient_grid(engine), 1, 0.1, normalization=norm),
        "gridrex": lambda: make.gridrex(
            black_box, patient_grid(engine), 1, 0.1, normalization=norm
        ),
        "hex": lambda: make.hex(black_box, patient_grid(engine), 1, 0.1, normalization=norm),
        "creepy": lambda: make.creepy(
            black_box, engine.Clustering.cream, 2, 0.1, normalization=norm
        ),
        "cart": lambda: make.cart(black_box, max_leaves=6, normalization=norm),
    }[name]()
    extract(extractor, scaled.iloc[:, :-1], scaled["target"].to_numpy())
    rules = read_psyke(extractor)
    gap = LINEAR * norm["target"][1] if name == "gridrex" else 0
    check(rules, extractor, X_DIABETES, gap)
    if rules.domain:
        assert rules.domain.lower == pytest.approx(X_DIABETES.min().tolist(), abs=1e-5)
    if name == "cart":
        mean = np.average(
            [r.statistics.mean for r in rules], weights=[r.statistics.n_rows for r in rules]
        )
        predicted = black_box.predict(scaled.iloc[:, :-1]) * norm["target"][1] + norm["target"][0]
        assert mean == pytest.approx(predicted.mean())


def test_read_psyke_does_not_rescale_text_labels(engine):
    scaled, norm = engine.dataframe.get_scaled_dataset(X_IRIS)
    black_box = KNeighborsClassifier(7).fit(scaled, Y_IRIS)
    extractor = engine.Extractor.gridex(black_box, flower_grid(engine), 1, 0.1, normalization=norm)
    rules = read_psyke(extract(extractor, scaled, Y_IRIS))
    check(rules, extractor, X_IRIS, 0)
    bounds = [i.upper for rule in rules for i in rule.intervals if i.feature == 2]
    assert pytest.approx(1.0 + 5.9 / 2, abs=1e-3) in bounds


# --- labels and names ----------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 1, 2], [0.5, 1.5, 2.5], ["b", 1, 2.5]])
@pytest.mark.parametrize("name", ["gridex", "cart", "creepy exact"])
def test_read_psyke_maps_labels_of_any_type(flower_rules, name, labels):
    extractor = flower_rules(name)
    classes = dict(zip(sorted(set(Y_IRIS)), labels, strict=True))
    rules = read_psyke(
        extractor,
        classes=classes,
        X=X_IRIS,
        y_black_box=[classes[v] for v in FLOWERS.predict(X_IRIS)],
    )
    assert rules.classes == tuple(labels)
    rows = probes(X_IRIS, rules)
    check(rules, extractor, rows, 0, classes=classes)
    ours, plain = rules.predict(X_IRIS), read_psyke(extractor).predict(X_IRIS)
    assert [type(v) for v in ours.tolist()] == [type(classes[v]) for v in plain.tolist()]


def test_read_psyke_rejects_invalid_classes(patient_rules, flower_rules):
    extractor = flower_rules("gridex")
    with pytest.raises(ValueError, match="'virginica' is missing"):
        read_psyke(extractor, classes={"setosa": 0, "versicolor": 1})
    with pytest.raises(ValueError, match="each label to a different label"):
        read_psyke(extractor, classes={"setosa": 0, "versicolor": 1, "virginica": 1})
    with pytest.raises(TypeError, match="or map PSyKE's labels to your labels"):
        read_psyke(extractor, classes=["setosa"])
    numbers = patient_rules("gridex")
    with pytest.raises(ValueError, match="classes must be None for these rules"):
        read_psyke(numbers, classes={"a": 1})


def test_read_psyke_accepts_numbers_as_labels(engine, bins):
    """PSyKE accepts numeric labels in GridEx and REAL, but not in CART."""
    black_box = KNeighborsClassifier(7).fit(X_IRIS, IRIS.target)
    extractor = engine.Extractor.gridex(black_box, flower_grid(engine), 1, 0.1)
    rules = read_psyke(extract(extractor, X_IRIS, IRIS.target))
    assert rules.classes == (0, 1, 2)
    check(rules, extractor, probes(X_IRIS, rules), 0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(bins.frame, IRIS.target)
    real = extract(engine.Extractor.real(tree, bins.features), bins.frame, IRIS.target)
    rules = read_psyke(real, feature_names=NAMES)
    assert rules.classes == (0, 1, 2)
    check(rules, real, probes(X_IRIS, rules), 0, feature_names=NAMES)
    cart = engine.Extractor.cart(black_box)
    with quiet(), contextlib.suppress(TypeError):
        cart.extract(X_IRIS.assign(target=IRIS.target))
    with pytest.warns(UserWarning, match="treats labels that are not text as numbers"):
        rules = read_psyke(cart)
    assert rules.task == "regression"
    check(rules, cart, probes(X_IRIS, rules), 0)


@pytest.mark.parametrize("name", ["gridex", "cart"])
def test_read_psyke_renames_or_reorders_features(flower_rules, name):
    extractor = flower_rules(name)
    plain = read_psyke(extractor)
    new = ["a b", "ü", "", "select"]
    renamed = read_psyke(extractor, feature_names=new)
    assert renamed == plain.replace(feature_names=new)
    order = ["PW", "further", "SL", "PL", "SW"]
    reordered = read_psyke(extractor, feature_names=order)
    rows = probes(X_IRIS, plain).assign(further=0.0)
    fallback = Fallback("setosa")
    assert reordered.feature_names == tuple(order)
    np.testing.assert_array_equal(
        reordered.replace(fallback=fallback).predict(rows[order].to_numpy()),
        plain.replace(fallback=fallback).predict(rows),
    )
    if name == "gridex":
        assert reordered.domain.ranges[1] == 0
    with pytest.raises(ValueError, match="one name for each of PSyKE's 4 features"):
        read_psyke(extractor, feature_names=["a", "b"])
    with pytest.raises(TypeError, match="sequence of names"):
        read_psyke(extractor, feature_names="abcd")


# --- faults of PSyKE -----------------------------------------------------------------------------


def test_read_psyke_keeps_bounds_that_predict_ignores(engine):
    levels = [
        [("SL", 0), ("SW", 0), ("PL", 1), ("PW", 0)],
        [("SL", 0), ("SW", 0), ("PL", 0), ("PW", 1)],
    ]
    strategies = [engine.Adaptive(ranks, [(0.5, 4)]) for ranks in levels]
    extractor = engine.Extractor.gridex(FLOWERS, engine.Grid(2, strategies), 1, 0.1)
    extract(extractor, X_IRIS, Y_IRIS)
    with pytest.warns(UserWarning, match="ignores the bounds .* on 'PL', 'PW'"):
        rules = read_psyke(extractor)
    rows = probes(X_IRIS, rules)
    slow = [
        next((i for i, cube in enumerate(extractor._hypercubes) if row in cube), -1)
        for row in rows.to_dict("records")
    ]
    assert rules.assign(rows).tolist() == slow
    theirs = np.mean(psyke_predictions(extractor, X_IRIS)["answer"] == Y_IRIS)
    assert theirs < 0.5 < 0.9 < np.mean(rules.predict(X_IRIS) == Y_IRIS)


def test_read_psyke_drops_empty_boxes(engine):
    extractor = extract(construct(FLOWER_KINDS["gridex"], engine), X_IRIS, Y_IRIS)
    rules = read_psyke(extractor)
    cube = extractor._hypercubes[0].copy()
    cube.update_dimension("SL", (5.0, 5.0))
    cube.copy_infinite_dimensions({})
    extractor._hypercubes.insert(0, cube)
    extractor._dimensions_to_ignore.clear()
    with pytest.warns(
        UserWarning, match="1 of the .* boxes of PSyKE's GridEx cannot contain any row"
    ):
        assert read_psyke(extractor) == rules
    check(rules, extractor, probes(X_IRIS, rules), 0)


@pytest.fixture(scope="module")
def gaps(engine) -> SimpleNamespace:
    """Return ITER with boxes in gaps, whose positions depend on the hash seed of the process."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = pd.DataFrame(random.uniform(size=(60, 2)), columns=["a", "b"])
        y = np.array(["p", "q", "r"])[random.integers(0, 3, 60)]
        black_box = KNeighborsClassifier(1).fit(X, y)
        extractor = engine.Extractor.iter(
            black_box, min_update=0.15, n_points=3, max_iterations=400, min_examples=1
        )
        extract(extractor, X, y)
        unset = [cube.output for cube in extractor._hypercubes].count("")
        if unset:
            return SimpleNamespace(extractor=extractor, X=X, y=y, unset=unset)
    raise AssertionError("ITER always gave its boxes a label")


def test_read_psyke_drops_boxes_without_label(gaps):
    with pytest.warns(UserWarning, match=f"to {gaps.unset} of its .* dropped; pass X"):
        rules = read_psyke(gaps.extractor)
    assert len(rules) == gaps.extractor.n_rules - gaps.unset
    assert rules.classes == ("p", "q", "r")
    rows = pd.concat([probes(gaps.X, rules), gaps.X], ignore_index=True)
    theirs = psyke_predictions(gaps.extractor, rows)["answer"]
    labeled = theirs.notna() & (theirs != "")
    assert (theirs == "").any()
    np.testing.assert_array_equal(rules.covers(rows), labeled)
    assert rules.predict(rows[labeled]).tolist() == theirs[labeled].tolist()


def test_read_psyke_labels_boxes_from_their_rows(gaps):
    with pytest.warns(UserWarning, match="now predicts? the majority or mean of y_black_box"):
        rules = read_psyke(gaps.extractor, X=gaps.X, y_black_box=gaps.y)
    theirs = psyke_predictions(gaps.extractor, gaps.X)["answer"]
    assert (theirs == "").sum() >= 1
    assert rules.covers(gaps.X).tolist() == theirs.notna().tolist()
    for i in set(rules.assign(gaps.X[theirs == ""]).tolist()):
        values = gaps.y[rules.assign(gaps.X) == i].tolist()
        assert values.count(rules[i].output) == max(map(values.count, values))


@pytest.mark.parametrize("output", ["CLASSIFICATION", "CONSTANT", "REGRESSION"])
def test_read_psyke_handles_clusters_without_output(engine, output):
    """All rows are equal, and PSyKE returns None, 0 or nothing."""
    X = pd.DataFrame(np.ones((20, 2)), columns=["a", "b"])
    y = np.array(["p", "q"] * 10) if output == "CLASSIFICATION" else np.arange(20.0)
    clusterer = engine.Clustering.exact(output=engine.Target[output])
    extract(clusterer, X, y)
    with pytest.warns(UserWarning, match="never gave an output to 1 of its 1 rules"):
        assert len(read_psyke(clusterer)) == 0
    with pytest.warns(UserWarning, match="1 now predicts"):
        rules = read_psyke(clusterer, X=X, y_black_box=y)
    assert rules.predict(X).tolist() == ["p" if output == "CLASSIFICATION" else 9.5] * 20


def test_read_psyke_warns_about_normalization_without_target(engine):
    scaled, norm = engine.dataframe.get_scaled_dataset(X_DIABETES)
    black_box = KNeighborsRegressor(9).fit(scaled, Y_DIABETES)
    extractor = engine.Extractor.gridex(black_box, patient_grid(engine), 1, 0.1, normalization=norm)
    extract(extractor, scaled, Y_DIABETES)
    with pytest.warns(UserWarning, match=r"belongs to the feature 's5'.*\('target', \(0, 1\)\)"):
        rules = read_psyke(extractor)
    mean, scale = norm["s5"]
    theirs = psyke_predictions(extractor, X_DIABETES)["answer"].to_numpy(float)
    np.testing.assert_allclose(rules.predict(X_DIABETES) * scale + mean, theirs, rtol=1e-12)
    extractor.normalization = {**norm, "target": (0, 1)}
    rules = read_psyke(extractor)
    check(rules, extractor, X_DIABETES, 0)


def test_read_psyke_warns_about_rescaled_labels(engine):
    scaled, norm = engine.dataframe.get_scaled_dataset(X_IRIS)
    black_box = KNeighborsClassifier(7).fit(scaled, IRIS.target)
    extractor = engine.Extractor.gridex(black_box, flower_grid(engine), 1, 0.1, normalization=norm)
    extract(extractor, scaled, IRIS.target)
    with pytest.warns(UserWarning, match="rescales labels that are not text"):
        rules = read_psyke(extractor)
    assert not set(psyke_predictions(extractor, X_IRIS)["answer"]) <= {0, 1, 2}
    assert np.mean(rules.predict(X_IRIS) == black_box.predict(scaled)) > 0.9


def test_read_psyke_rules_reject_missing_values(flower_rules):
    extractor = flower_rules("gridex all")
    row = X_IRIS.iloc[[0]].assign(PL=np.nan)
    assert psyke_predictions(extractor, row)["covered"].tolist() == [True]
    assert read_psyke(extractor).covers(row).tolist() == [False]


def test_read_psyke_matches_columns_by_name(patient_rules):
    extractor = patient_rules("gridrex")
    reordered = X_DIABETES[["s5", "bp", "bmi"]]
    rules = read_psyke(extractor)
    np.testing.assert_array_equal(rules.predict(reordered), rules.predict(X_DIABETES))
    with quiet():
        straight, wrong = extractor.predict(X_DIABETES), extractor.predict(reordered)
    assert np.abs(np.array(straight) - np.array(wrong)).max() > 0.1


def test_read_psyke_agrees_with_cart_predict_on_bound(engine):
    X = pd.DataFrame({"a": np.arange(12.0)})
    y = np.repeat(["p", "q", "p"], 4)
    black_box = KNeighborsClassifier(1).fit(X, y)
    cart = extract(engine.Extractor.cart(black_box, simplify=False), X, y)
    rules, row = read_psyke(cart), pd.DataFrame({"a": [7.5]})
    assert cart.predict(row).tolist() == rules.predict(row).tolist() == ["q"]
    printed = [
        label
        for conditions, label in cart._cart_predictor
        if all(side.is_in(7.5) for side in conditions["a"])
    ]
    assert printed == []  # 3.5 <= a < 7.5 excludes 7.5, and so does a > 7.5


def test_read_psyke_warns_despite_filter_of_psyke(engine):
    black_box = KNeighborsClassifier(7).fit(X_IRIS, IRIS.target)
    cart = engine.Extractor.cart(black_box)
    with quiet(), contextlib.suppress(TypeError):
        cart.extract(X_IRIS.assign(target=IRIS.target))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # as importing PSyKE does
        read_psyke(cart)
    assert [w.category for w in caught] == [UserWarning]
    assert caught[0].filename == __file__


# --- errors --------------------------------------------------------------------------------------


def test_read_psyke_rejects_unfitted_extractors(engine, bins):
    for kind in ("gridex", "hex", "iter", "divine", "creepy exact", "cart", "cart fair"):
        with pytest.raises(NotFittedError, match=r"has no rules yet: call its extract\("):
            read_psyke(FLOWER_KINDS[kind](engine))
    with pytest.raises(NotFittedError, match=r"ExACT of PSyKE has no rules yet: call its fit\("):
        read_psyke(FLOWER_KINDS["exact"](engine))
    for make in (engine.Extractor.real, engine.Extractor.trepan):
        with pytest.raises(NotFittedError, match="extract"):
            read_psyke(make(FLOWERS, bins.features))


def test_read_psyke_rejects_objects_without_rules(engine):
    from psyke.tuning.crash import CRASH

    search = CRASH(FLOWERS, X_IRIS.assign(target=Y_IRIS), output=engine.Target.CLASSIFICATION)
    with pytest.raises(TypeError, match=r"PSyKE's CRASH has no rules\. It searches"):
        read_psyke(search)
    with pytest.raises(TypeError, match="PSyKE's Grid has no rules"):
        read_psyke(flower_grid(engine))


def test_read_psyke_rejects_products_of_features(engine):
    """GInGER keeps the degree with the largest error: far away, that is the higher one."""
    y = PATIENTS.predict(X_DIABETES)
    distant = X_DIABETES * 9
    with quiet():
        extractor = engine.Extractor.ginger(
            PATIENTS,
            ["bmi", "s5"],
            [0.1, 0.1],
            1,
            n_gen=1,
            n_pop=4,
            max_poly=2,
            valid=(distant, distant.sum(axis=1)),
        )
    extract(extractor, X_DIABETES, y)
    assert extractor.trained_poly.degree == 2
    with pytest.raises(ValueError, match="must be affine in the features"):
        read_psyke(extractor)
