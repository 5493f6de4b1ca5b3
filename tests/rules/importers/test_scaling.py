"""Rules of the last step of a Pipeline in the units of the Pipeline's input."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor, volume_completeness
from skescore.rules import (
    AtLeast,
    Domain,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
)
from skescore.rules.importers import AffineMap, affine_map, in_user_units
from skescore.verification import verify

NAMES = ["length", "width", "constant", "area", "größe"]


def training_rows(seed=0, n=200):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 5)) * [1, 100, 0, 1e-3, 5] + [0, -300, 4, 0, 1e4]
    y = np.digitize(X[:, 0] + X[:, 1] / 100 + X[:, 3] * 1e3, [-4, -2.5])
    return X, y


def trying_rows(X, n=3000):
    generator = np.random.default_rng(1)
    low, high = X.min(axis=0), X.max(axis=0)
    return generator.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (n, X.shape[1]))


def spread(X, y):
    return np.var(X, axis=0)


STEPS = {
    "standard": [StandardScaler()],
    "standard without mean": [StandardScaler(with_mean=False)],
    "standard without deviation": [StandardScaler(with_std=False)],
    "standard without both": [StandardScaler(with_mean=False, with_std=False)],
    "min and max": [MinMaxScaler((-3, 5))],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust without center": [RobustScaler(with_centering=False)],
    "robust without scale": [RobustScaler(with_scaling=False, unit_variance=False)],
    "robust, unit variance": [RobustScaler(unit_variance=True, quantile_range=(10, 80))],
    "best": [SelectKBest(spread, k=3)],
    "percentile": [StandardScaler(), SelectPercentile(spread, percentile=60)],
    "variance": [VarianceThreshold()],
    "imputer": [SimpleImputer()],
    "nothing": [FunctionTransformer()],
    "left out": ["passthrough", StandardScaler(), "passthrough"],
    "all left out": ["passthrough", None],
    "several": [SimpleImputer(), StandardScaler(), VarianceThreshold(), MinMaxScaler()],
    "nested": [
        make_pipeline(StandardScaler(), make_pipeline(SelectKBest(spread, k=4))),
        MaxAbsScaler(),
    ],
    "nested, left out": [make_pipeline("passthrough"), make_pipeline(StandardScaler())],
    "reordered": [
        ColumnTransformer(
            [("a", StandardScaler(), [3, 0]), ("b", "drop", [2]), ("c", "passthrough", [1])]
        )
    ],
    "remainder passed": [
        ColumnTransformer([("a", MinMaxScaler(), slice(1, 3))], remainder="passthrough")
    ],
    "remainder scaled": [ColumnTransformer([("a", "passthrough", [4])], remainder=RobustScaler())],
    "by flags": [ColumnTransformer([("a", StandardScaler(), [True, True, False, True, False])])],
    "empty selection": [
        ColumnTransformer([("a", StandardScaler(), []), ("b", StandardScaler(), [0, 1, 3])])
    ],
    "one column twice": [
        ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [1, 0, 3])])
    ],
    "columns after columns": [
        ColumnTransformer([("a", StandardScaler(), [3, 1, 0])]),
        ColumnTransformer([("a", MinMaxScaler(), [2, 0]), ("b", "passthrough", [1])]),
    ],
    "Pipeline of columns": [
        ColumnTransformer(
            [
                ("a", make_pipeline(SimpleImputer(), StandardScaler()), [1, 0]),
                ("b", "passthrough", [3]),
            ]
        )
    ],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_pipeline_rules_predict_like_pipeline(steps):
    X, y = training_rows()
    tree = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0)
    pipeline = Pipeline([(str(i), step) for i, step in enumerate([*steps, tree])]).fit(X, y)
    rows = trying_rows(X)
    expected, shares = pipeline.predict(rows).tolist(), pipeline.predict_proba(rows)
    for simplify in (False, True):
        ruleset = as_ruleset(pipeline, simplify=simplify)
        assert len(ruleset) == pipeline[-1].get_n_leaves()
        assert ruleset.feature_names == ("x0", "x1", "x2", "x3", "x4")
        # Bounds are exact up to rounding, and random rows do not come that near.
        assert ruleset.predict(rows).tolist() == expected
        assert np.allclose(ruleset.predict_proba(rows), shares)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_pipeline_rules_have_feature_names_of_input(container):
    X, y = training_rows()
    steps = [
        ("scale", StandardScaler()),
        ("select", SelectKBest(spread, k=2)),
        ("tree", DecisionTreeRegressor()),
    ]
    has_names = isinstance(container(X), pd.DataFrame)
    rows = pd.DataFrame(X, columns=NAMES) if has_names else X
    pipeline = Pipeline(steps).fit(rows, y)
    ruleset = as_ruleset(pipeline)
    assert ruleset.feature_names == (tuple(NAMES) if has_names else ("x0", "x1", "x2", "x3", "x4"))
    assert ruleset.predict(rows).tolist() == pipeline.predict(rows).tolist()
    selected = np.flatnonzero(pipeline[1].get_support()).tolist()
    used = {f for rule in ruleset for c in rule.conditions for f in c.features}
    assert used <= set(selected)


def test_pipeline_rules_follow_frames_through_all_steps():
    X, y = training_rows()
    frame = pd.DataFrame(X, columns=NAMES)
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["area", "width"]), ("b", "passthrough", ["length"])]
    )
    pipeline = make_pipeline(columns, SelectKBest(spread, k=3), DecisionTreeClassifier(max_depth=4))
    pipeline.set_output(transform="pandas").fit(frame, y)
    ruleset = as_ruleset(pipeline)
    assert ruleset.feature_names == tuple(NAMES)
    rows = pd.DataFrame(trying_rows(X), columns=NAMES)
    assert ruleset.predict(rows[NAMES[::-1]]).tolist() == pipeline.predict(rows).tolist()


def test_pipeline_rules_follow_columns_imputer_drops():
    X, y = training_rows()
    X[:, 2] = math.nan
    for keep in (False, True):
        imputer = SimpleImputer(keep_empty_features=keep)
        pipeline = make_pipeline(imputer, DecisionTreeClassifier(max_depth=3))
        warned = pytest.warns(UserWarning, match="without any observed values")
        with nullcontext() if keep else warned:
            pipeline.fit(X, y)
            rows = trying_rows(np.nan_to_num(X))
            rows[:, 2] = math.nan
            expected = pipeline.predict(rows)
        ruleset = as_ruleset(pipeline)
        assert ruleset.n_features == 5
        assert ruleset.predict(np.nan_to_num(rows)).tolist() == expected.tolist()


def test_pipeline_rules_keep_outputs_and_statistics():
    X, y = training_rows()
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_leaf_nodes=9)).fit(X, y)
    ruleset = as_ruleset(pipeline)
    rows = trying_rows(X)
    assert ruleset.predict(rows).tolist() == pipeline.predict(rows).tolist()
    inner = as_ruleset(pipeline[-1])
    assert [r.output for r in ruleset] == [r.output for r in inner]
    assert [r.statistics for r in ruleset] == [r.statistics for r in inner]
    assert (ruleset.ordered, ruleset.disjoint) == (inner.ordered, inner.disjoint)


def test_pipeline_rules_have_short_bounds_in_user_units():
    X = np.array([[100.0], [200.0], [300.0], [400.0]])
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=1)).fit(
        X, [0, 0, 1, 1]
    )
    assert str(as_ruleset(pipeline)).splitlines() == [
        "1. IF x0 ≤ 250 THEN 0   [2 rows, target ± 0]",
        "2. IF x0 > 250 THEN 1   [2 rows, target ± 0]",
    ]


# --- transformers without inverse ------------------------------------------------------------


class Doubler(TransformerMixin, BaseEstimator):
    """A transformer that is affine but not known to be so."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2 * X


@pytest.mark.parametrize(
    "step",
    [
        PCA(2),
        QuantileTransformer(n_quantiles=10),
        FunctionTransformer(np.tanh),
        MinMaxScaler(clip=True),
        SimpleImputer(add_indicator=True),
        SimpleImputer(missing_values=0),
        Doubler(),
        make_pipeline(StandardScaler(), PCA(2)),
        ColumnTransformer([("a", PCA(1), [0, 1])], remainder="passthrough"),
        make_pipeline(StandardScaler(), OrdinalEncoder()),
    ],
    ids=lambda s: type(s).__name__,
)
def test_pipeline_rules_reject_irreversible_steps(step):
    X, y = training_rows()
    pipeline = make_pipeline(step, DecisionTreeClassifier(max_depth=2)).fit(X, y)
    with pytest.raises(TypeError, match=r"cannot be inverted.*to the units of its input.*rules_"):
        as_ruleset(pipeline)


# --- encoders ---------------------------------------------------------------------------------

ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "one-hot, known labels": OneHotEncoder(sparse_output=False),
    "one-hot, first dropped": OneHotEncoder(drop="first"),
    "one-hot, infrequent": OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"),
    "codes": OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=9
    ),
    "means": TargetEncoder(cv=2),
    "imputed": make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    ),
    "scaled": make_pipeline(OneHotEncoder(handle_unknown="ignore"), MaxAbsScaler()),
}


def rows_with_labels(seed, missing):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "color": rng.choice(["blue", "green", "red", "white"], 300, p=[0.4, 0.3, 0.2, 0.1]),
            "size": rng.normal(size=300),
            "grade": rng.choice([1, 5, 9], 300),
        }
    )
    if missing:
        X["color"] = X["color"].astype(object).mask(rng.random(300) < 0.1)
        X["size"] = X["size"].mask(rng.random(300) < 0.1)
    y = (X["color"].isin(["blue", "white"]) ^ (X["size"] > 0) ^ (X["grade"] == 5)).astype(int)
    return X, y + (X["color"] == "red")


def other_rows(model, seed, missing):
    """Return new rows, with unknown labels and missing values if the model accepts them."""
    X, _ = rows_with_labels(seed, missing)
    for label in ("unknown", np.nan):
        changed = X.copy()
        changed["color"] = changed["color"].astype(object)
        changed.loc[changed.index % 7 == (label is np.nan), "color"] = label
        try:
            model.predict(changed)
        except ValueError:
            continue
        X = changed
    return X


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=6, random_state=0),
        pytest.param(
            RandomForestClassifier(4, max_depth=5, random_state=0), marks=pytest.mark.slow
        ),
    ],
    ids=["tree", "forest"],
)
def test_rules_on_encoded_labels_predict_like_the_pipeline(model, encoder, missing):
    X, y = rows_with_labels(0, missing)
    preprocessing = ColumnTransformer(
        [("labels", ENCODERS[encoder], ["color", "grade"])],
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
        sparse_threshold=0,
    )
    pipeline = make_pipeline(preprocessing, clone(model)).fit(X, y)
    rules = as_ruleset(pipeline)
    rows = other_rows(pipeline, 1, missing)
    assert rules.feature_names == ("color", "size", "grade")
    assert np.allclose(rules.predict_proba(rows), pipeline.predict_proba(rows), rtol=0, atol=1e-12)


def test_verify_reads_encoders_exactly():
    X, y = rows_with_labels(0, False)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    pipeline = make_pipeline(encoder, model).fit(X[["color", "grade"]], y)
    result = verify(as_ruleset(pipeline), pipeline, X[["color", "grade"]])
    assert result.engine == "leaf boxes", str(result)
    assert result.volume_disagreement.upper == 0


def test_conditions_on_codes_of_one_label_become_one_condition():
    X = np.array([["a"], ["b"], ["c"], ["d"]] * 5, dtype=object)
    y = np.isin(X[:, 0], ["b", "d"]).astype(int)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(X)
    pipeline = make_pipeline(encoder, DecisionTreeClassifier(random_state=0)).fit(X, y)
    premises = [rule.conditions for rule in as_ruleset(pipeline)]
    assert (OneOf(0, ["b", "d"], negated=True, missing=True),) in premises
    codes = RuleSet(
        [
            Rule([AtLeast(2, [Interval(0, 0.5), Interval(1, 0.5), Interval(2, upper=2)])], 1),
            Rule([Interval(0, 0.5), Interval(1, 0.5)], 2),
            Rule([Interval(3, upper=0.5), Missing(0, negated=True)], 3),
            Rule([], 4),
        ],
        ["a", "b", "c", "d"],
        task="regression",
    )
    labels = in_user_units(codes, encoder)
    assert [rule.conditions for rule in labels] == [
        (AtLeast(1, [OneOf(0, ["a"]), OneOf(0, ["b"])]),),
        (OneOf(0, ["d"], negated=True, missing=True),),
        (),
    ]
    with pytest.raises(TypeError, match=r"sums with codes of the column 'x0'.*rules_"):
        in_user_units(codes.replace(rules=[Rule([], LinearOutput(0.0, [(1, 1.0)]))]), encoder)


def test_labels_that_distinguish_none_from_nan_are_rejected():
    X = np.array([["a"], [None], [np.nan], ["a"]], dtype=object)
    pipeline = make_pipeline(OneHotEncoder(), DecisionTreeClassifier()).fit(X, [0, 1, 0, 0])
    with pytest.raises(TypeError, match="distinguishes None from NaN cannot be inverted"):
        as_ruleset(pipeline)


def test_domain_of_rules_on_codes_has_the_labels():
    X, y = rows_with_labels(0, False)
    encoder = ColumnTransformer(
        [("labels", OneHotEncoder(sparse_output=False), ["color"])], remainder="passthrough"
    )
    black_box = DecisionTreeClassifier(max_depth=4, random_state=0)
    pipeline = make_pipeline(encoder, CARTExtractor(black_box, max_leaf_nodes=6)).fit(X, y)
    rules = as_ruleset(pipeline)
    assert rules.domain.categories == ((0, ("blue", "green", "red", "white")),)
    assert rules.predict(X).tolist() == pipeline.predict(X).tolist()
    assert volume_completeness(rules).value == pytest.approx(1)


# --- any affine map --------------------------------------------------------------------------


def mapped(X, mapping):
    return X[:, mapping.source] * mapping.scale + mapping.offset


# Powers of two avoid rounding.
MAPPING = AffineMap(
    np.array([2, 0, 2]), np.array([-2.0, 0.5, 4.0]), np.array([1.0, -3.0, 0.0]), ("a", "b", "c")
)
INNER = RuleSet(
    [
        Rule([Interval(0, -1, 3), Interval(1, upper=-2.5, upper_closed=False)], 1.0),
        Rule([Interval(0, upper=1)], LinearOutput(1, [(0, 2), (1, 1), (2, 0.5)])),
        Rule([AtLeast(1, [Interval(0, 5), OneOf(1, [-3, -2.75], True)])], 3.0, RuleStatistics(4)),
        Rule([Linear([(0, 1), (1, -1), (2, 0.25)], 2, 4, True, False)], 4.0),
        Rule([Interval(2, 0, 4), OneOf(1, ["never"], True)], 5.0),
    ],
    ["u", "v", "w"],
    task="regression",
    domain=Domain((-3, -3, -4), (3, -2, 8)),
)


@pytest.mark.filterwarnings("ignore:Rules compare x. with strings")
def test_in_user_units_converts_all_conditions():
    outer = in_user_units(INNER, MAPPING)
    values = np.arange(-2.0, 4.25, 0.25)
    rows = np.stack(np.meshgrid(values, [0.0], values), axis=-1).reshape(-1, 3)
    assert outer.feature_names == ("a", "b", "c")
    assert outer.match(rows).tolist() == INNER.match(mapped(rows, MAPPING)).tolist()
    inside = INNER.covers(mapped(rows, MAPPING))
    assert inside.any()
    assert (
        outer.predict(rows[inside]).tolist()
        == INNER.predict(mapped(rows[inside], MAPPING)).tolist()
    )
    assert [r.statistics for r in outer] == [r.statistics for r in INNER]
    # A feature without conditions has no extent.
    assert outer.domain == Domain((0, 0, -1), (2, 0, 2))


def test_in_user_units_swaps_bounds_for_negative_scales():
    outer = in_user_units(INNER, MAPPING)
    # -1 < 1 - 2c <= 3 means -1 <= c < 1.
    assert outer[0].conditions == (
        Interval(0, upper=1, upper_closed=False),
        Interval(2, -1, 1, lower_closed=True, upper_closed=False),
    )
    assert outer[1].conditions == (Interval(2, 0, lower_closed=True),)
    negative = AffineMap(np.array([0]), np.array([-1.0]), np.array([0.0]), ("a",))
    one = RuleSet([Rule([], 1)], ["u"], task="regression", domain=Domain((1,), (3,)))
    assert in_user_units(one, negative).domain == Domain((-3,), (-1,))


def test_in_user_units_keeps_categories_and_volume():
    rules = RuleSet(
        [Rule([OneOf(1, ["red"]), Interval(0, upper=0.0)], 1)],
        ["size", "color"],
        task="regression",
        domain=Domain((-1, 0), (1, 3), [(1, ["blue", "green", "red"])]),
    )
    mapping = AffineMap(np.array([1, 0]), np.array([0.5, 1.0]), np.array([-2.0, 0.0]), ("c", "s"))
    inner = in_user_units(rules, mapping)
    assert inner.domain == Domain((0, 2), (3, 6), [(0, ["blue", "green", "red"])])
    assert volume_completeness(inner) == volume_completeness(rules)
    assert volume_completeness(inner).value == pytest.approx(1 / 6)


def test_pipeline_rules_keep_categories_of_domain():
    table = pd.DataFrame({"weight": [1.0, 2.0, 3.0, 4.0] * 6, "kind": ["a", "b", "c"] * 8})
    y = (table["kind"] == "a").astype(int)
    swap = ColumnTransformer([("k", "passthrough", ["kind"]), ("w", "passthrough", ["weight"])])
    swap.set_output(transform="pandas")
    black_box = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0))
    pipeline = make_pipeline(swap, CARTExtractor(black_box)).fit(table, y)
    rules = as_ruleset(pipeline)
    assert rules.domain.categories == ((1, ("a", "b", "c")),)
    assert volume_completeness(rules).value == 1
    one = rules.replace(rules=[rule for rule in rules if rule.output == 1][:1], ordered=False)
    assert volume_completeness(one).value == pytest.approx(1 / 3)


def test_in_user_units_keeps_narrow_intervals_nonempty():
    large = AffineMap(np.array([0]), np.array([1.0]), np.array([-1e9]), ("a",))
    narrow = RuleSet([Rule([Interval(0, 0.25, 0.25 + 1e-9)], 1)], ["u"], task="regression")
    assert in_user_units(narrow, large)[0].conditions == (
        Interval(0, 1e9 + 0.25, 1e9 + 0.25, lower_closed=True),
    )


def test_in_user_units_keeps_empty_intervals_empty():
    scaler = MinMaxScaler((-3, 2)).fit([[1e9], [1e9 + 7]])
    inputs = np.array([[1e9 + 1], [math.nextafter(1e9 + 1, math.inf)], [np.nan]])
    between = float(scaler.transform(inputs[:2]).mean())  # no input is scaled to this number
    condition = Interval(0, between, between, True, True, missing=True)
    scaled = RuleSet([Rule([condition], "a"), Rule([], "b")], ["x"], task="classification")
    ruleset = in_user_units(scaled, affine_map(scaler), scaler.transform)
    assert scaled.predict(scaler.transform(inputs)).tolist() == ["b", "b", "a"]
    assert ruleset.predict(inputs).tolist() == ["b", "b", "a"]


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
def test_pipeline_rules_predict_imputed_values_like_pipeline(strategy):
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.normal(size=30)
        rows = np.where(np.arange(30) % 4 == 0, np.nan, x)[:, None]
        before = make_pipeline(SimpleImputer(strategy=strategy), StandardScaler()).fit(rows)
        imputed = float(before.transform([[np.nan]])[0, 0])
        scaled = RuleSet(
            [Rule([Interval(0, upper=imputed)], 1.0), Rule([], 2.0)], ["x"], task="regression"
        )
        ruleset = in_user_units(scaled, affine_map(before), before.transform)
        assert ruleset.predict([[np.nan]]).tolist() == [1.0]


@pytest.mark.parametrize("remainder", ["passthrough", "drop"])
def test_pipeline_rules_follow_transformer_weights(remainder):
    weighted = ColumnTransformer(
        [("scaled", StandardScaler(), [0]), ("kept", "passthrough", [1])],
        transformer_weights={"scaled": 3.0, "kept": 0.5},
        remainder=remainder,
    )
    rows = np.random.default_rng(0).normal(size=(20, 3)) + 2
    outputs = weighted.fit_transform(rows)
    mapping = affine_map(weighted)
    np.testing.assert_allclose(rows[:, mapping.source] * mapping.scale + mapping.offset, outputs)


def test_affine_map_composes_and_selects_columns():
    X, _ = training_rows()
    identity = AffineMap.identity(tuple(NAMES))
    assert np.array_equal(mapped(X, identity), X)
    combined = identity.then(2.0, 3.0).then(np.arange(1.0, 6), -1.0).take([3, 0])
    assert np.allclose(mapped(X, combined), ((X * 2 + 3) * np.arange(1.0, 6) - 1)[:, [3, 0]])
    scaler = RobustScaler().fit(X)
    assert np.allclose(mapped(X, affine_map(scaler)), scaler.transform(X))
    assert affine_map(scaler).input_names == ("x0", "x1", "x2", "x3", "x4")


def test_in_user_units_rejects_invalid_maps():
    with pytest.raises(ValueError, match="one output column per feature of the rules, 3, got 2"):
        in_user_units(INNER, MAPPING.take([0, 1]))
    for scale in (0.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale must be finite and not 0"):
            in_user_units(INNER, replace(MAPPING, scale=np.array([1.0, scale, 1.0])))


@pytest.mark.parametrize(("scale", "shift"), [(1 / 3.7, 41.3), (-1 / 0.013, 0.2), (1e6, -1e3)])
def test_in_user_units_is_exact_with_transformer(scale, shift):
    rng = np.random.default_rng(0)
    x = rng.normal(shift, 1, size=300)

    def transform(rows):
        return (rows - shift) * scale  # rounds differently from rows * scale - shift * scale

    mapping = AffineMap(np.array([0]), np.array([scale]), np.array([-shift * scale]), ("a",))
    bounds = np.sort(transform(x[:200]).reshape(-1, 2), axis=1)  # bounds at rows, as in bins
    flags = rng.integers(2, size=bounds.shape).astype(bool).tolist()
    rules = [
        Rule([Interval(0, low, high, *closed)], 1.0)
        for (low, high), closed in zip(bounds.tolist(), flags, strict=True)
    ]
    rules += [Rule([AtLeast(1, [Interval(0, upper=bounds[0, 0]), Interval(0, 1e9)])], 1.0)]
    inner = RuleSet(rules, ["z"], task="regression", ordered=False)
    rows = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])[:, None]
    expected = inner.match(transform(rows))
    assert (in_user_units(inner, mapping, transform).match(rows) == expected).all()
    assert (in_user_units(inner, mapping).match(rows) != expected).any()


def test_conversion_up_to_rounding_is_reported() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0], "t": ["p", "q", "p"]})
    steps = [("a", StandardScaler(), ["a"]), ("t", SimpleImputer(strategy="most_frequent"), ["t"])]
    transformer = ColumnTransformer(steps).fit(X)
    rules = [Rule([Interval(0, upper=0.5), OneOf(1, ("p",))], "x"), Rule([], "y")]
    with pytest.warns(UserWarning, match="converted up to rounding"):
        converted = in_user_units(RuleSet(rules, ["a", "t"], task="classification"), transformer)
    assert converted.predict(X).tolist() == ["x", "y", "y"]
