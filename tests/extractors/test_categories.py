"""Categorical columns: rules of extractors that support them, and errors of the others."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import BaseExtractor, CategoryEncoder, category_order
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import Interval, OneOf, Rule, RuleSet

TAKING = [extractor_class(n) for n, spec in EXTRACTORS.items() if "classification" in spec.tasks]


def frame(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "color": rng.choice(["red", "blue", "green", "black"], n_rows),
            "size": rng.normal(50, 10, n_rows),
            "shape": pd.Categorical(rng.choice(["round", "square"], n_rows)),
        }
    )


def concept(X: Any) -> np.ndarray:
    """Return the true labels from named columns."""
    warm = np.isin(np.asarray(X["color"]), ["red", "blue"])
    square = np.asarray(X["shape"]) == "square"
    return np.where(square & warm, "yes", np.where(square, "maybe", "no"))


def encoded(model: Any) -> Any:
    one_hot = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((one_hot, ["color", "shape"]), remainder="passthrough")
    return make_pipeline(columns, model)


@pytest.fixture(params=TAKING, ids=lambda cls: cls.__name__)
def fitted(request) -> BaseExtractor:
    X = frame()
    extractor = request.param(CallableClassifier(concept))
    if "random_state" in extractor.get_params():
        extractor.set_params(random_state=0)
    return extractor.fit(X, concept(X))


def test_categories_appear_by_name_in_rules(fitted):
    X = frame(500, seed=1)
    assert fitted.score(X, concept(X)) == 1.0
    text = str(fitted.rules_)
    assert "size" not in text
    assert "color" in text
    assert "shape" in text
    assert {c.feature for rule in fitted.rules_ for c in rule.conditions} == {0, 2}
    assert fitted.rules_.domain.categories == (
        (0, ("black", "blue", "green", "red")),
        (2, ("round", "square")),
    )


def test_predictions_do_not_depend_on_container(fitted):
    X = frame(50, seed=2)
    expected = fitted.predict(X).tolist()
    assert fitted.predict(X.to_numpy()).tolist() == expected
    assert fitted.predict(X.astype({"shape": str}).to_numpy().tolist()).tolist() == expected
    assert fitted.predict(polars.DataFrame(X.astype({"shape": str}))).tolist() == expected
    assert fitted.rules_.predict(X[["shape", "size", "color"]]).tolist() == expected


def test_rules_with_categories_survive_json_and_pickle(fitted):
    X = frame(50, seed=2)
    assert RuleSet.from_json(fitted.rules_.to_json()) == fitted.rules_
    copied = pickle.loads(pickle.dumps(fitted.set_params(estimator=None)))
    assert copied.predict(X).tolist() == fitted.predict(X).tolist()


def test_unseen_categories_get_predictions(fitted):
    X = frame(20, seed=3)
    X["color"] = "purple"
    assert set(fitted.predict(X)) <= {"yes", "no", "maybe"}
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


def test_text_in_column_of_numbers_is_rejected(fitted):
    X = frame(20).astype({"size": object})
    X.loc[3, "size"] = "large"
    with pytest.raises(ValueError, match=r"column 'size' holds 'large' in row 3"):
        clone(fitted).fit(X, concept(X))


def test_black_box_receives_polars_frames(fitted):
    X = polars.DataFrame(frame().astype({"shape": str}))

    def asks_polars(rows: Any) -> np.ndarray:
        assert isinstance(rows, polars.DataFrame)
        return concept(rows)

    second_extractor = clone(fitted).set_params(estimator=CallableClassifier(asks_polars))
    assert second_extractor.fit(X, concept(X)).rules_ == fitted.rules_


@pytest.mark.parametrize("name", EXTRACTORS)
def test_categories_are_named_and_have_no_slope(name):
    X = frame()
    regression = "classification" not in extractor_class(name).tasks
    tasks = ("regression",) if regression else extractor_class(name).tasks
    for task in tasks:
        if task == "classification":
            black_box: Any = CallableClassifier(concept)
        else:
            black_box = CallableRegressor(
                lambda rows: np.isin(rows["color"], ["red", "blue"]) * 3.0 + rows["size"] / 50
            )
        extractor = extractor_class(name)(black_box)
        linear = {"output": "linear"} if name in ("cream", "exact") and regression else {}
        drawn = {"random_state": 0, "min_examples": 30} | linear
        parameters = extractor.get_params(deep=False)
        extractor.set_params(
            **{key: value for key, value in drawn.items() if key in parameters}
        ).fit(X)
        assert extractor.fidelity(frame(500, seed=1)) > (0.7 if task == "regression" else 0.95)
        conditions = [c for rule in extractor.rules_ for c in rule.conditions]
        assert all(isinstance(c, OneOf) == (c.feature in (0, 2)) for c in conditions)
        assert any(isinstance(c, OneOf) for c in conditions)
        for rule in extractor.rules_:
            assert {feature for feature, _ in getattr(rule.output, "terms", ())} <= {1}


@pytest.mark.parametrize("dtype", ["bool", "boolean"])
@pytest.mark.parametrize("name", EXTRACTORS)
def test_booleans_are_categories(name, dtype):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"member": random.uniform(size=200) < 0.5, "age": random.normal(size=200)})
    X["member"] = X["member"].astype(dtype)
    tasks = extractor_class(name).tasks
    kind: Any = CallableClassifier if "classification" in tasks else CallableRegressor
    extractor = extractor_class(name)(kind(lambda rows: rows["member"].astype(int)))
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=0)
    extractor.fit(X)
    assert extractor.fidelity(X) == 1.0
    conditions = {c for rule in extractor.rules_ for c in rule.conditions}
    assert conditions
    assert all(isinstance(c, OneOf) and set(c.values) <= {True, False} for c in conditions)


def test_search_accepts_categories():
    X = frame()
    black_box = encoded(RandomForestClassifier(10, random_state=0))
    search = ExtractorSearchCV(
        black_box, extractors=("cart",), n_trials=4, cv=3, random_state=0
    ).fit(X, concept(X))
    assert search.score(X, concept(X)) > 0.95


def test_unused_column_is_not_checked_beside_categories(fitted):
    X = frame(50, seed=2)
    expected = fitted.predict(X).tolist()
    assert 1 not in fitted.rules_.used_features
    for values in (np.nan, np.inf, "large"):
        assert fitted.predict(X.assign(size=values)).tolist() == expected


def test_unused_column_of_numbers_is_not_checked():
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 3)), columns=["a", "b", "c"])
    tree = CARTExtractor(CallableClassifier(lambda rows: rows["b"] > 0.5)).fit(X)
    expected = tree.predict(X).tolist()
    assert tree.rules_.used_features == {1}
    for values in (np.nan, np.inf, "large", None):
        assert tree.predict(X.assign(a=values)).tolist() == expected
    with pytest.raises(ValueError, match="column 'b' holds 'large' in row 0"):
        tree.predict(X.assign(b="large"))
    with pytest.raises(ValueError, match="column 'b' holds inf in row 0"):
        tree.predict(X.assign(b=np.inf))


# --- CART ---


def test_cart_writes_sets_of_values():
    X = frame()
    extractor = CARTExtractor(CallableClassifier(concept), simplify=False, random_state=0)
    extractor.fit(X, concept(X))
    names = ["color", "size", "shape"]
    assert {(r.premise_text(names), r.output) for r in extractor.rules_} == {
        ("shape = round", "no"),
        ("color in {black, green} AND shape = square", "maybe"),
        ("color in {blue, red} AND shape = square", "yes"),
    }
    assert extractor.category_order_["shape"] in (["square", "round"], ["round", "square"])
    assert extractor.completeness_ == 1.0


def test_cart_treats_declared_numbers_as_categories():
    X = pd.DataFrame({"code": pd.Categorical([3, 1, 2, 3, 1, 2] * 5)})
    y = np.where(X["code"].astype(int) == 2, "two", "other")
    extractor = CARTExtractor(
        CallableClassifier(lambda rows: np.where(rows["code"] == 2, "two", "other")),
        simplify=False,
        random_state=0,
    ).fit(X, y)
    assert {c for rule in extractor.rules_ for c in rule.conditions} == {
        OneOf(0, [2]),
        OneOf(0, [2], negated=True),
    }
    assert extractor.score(X, y) == 1.0


@given(
    shares=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any), min_size=2, max_size=6
    )
)
def test_category_order_contains_best_split_of_all_sets(shares):
    """Breiman et al. 1984, theorem 4.5: for two classes no other set of values is purer."""
    codes = np.repeat(np.arange(len(shares)), [a + b for a, b in shares])
    answers = np.concatenate([[0] * a + [1] * b for a, b in shares]).astype(int)

    def gini(left: np.ndarray) -> float:
        total = 0.0
        for side in (left, ~left):
            if side.any():
                p = answers[side].mean()
                total += side.sum() * 2 * p * (1 - p)
        return total

    order = category_order(codes, answers, len(shares), 2)
    assert sorted(order.tolist()) == list(range(len(shares)))
    by_order = min(gini(np.isin(codes, order[:k])) for k in range(1, len(shares)))
    by_hand = min(
        gini(np.isin(codes, chosen))
        for k in range(1, len(shares))
        for chosen in itertools.combinations(range(len(shares)), k)
    )
    assert by_order == pytest.approx(by_hand, abs=1e-9)


def test_category_order_sorts_by_mean_or_class_shares():
    codes = np.array([0, 0, 1, 1, 2, 2])
    assert category_order(codes, np.array([5.0, 5, 1, 1, 3, 3]), 3, None).tolist() == [1, 2, 0]
    order = category_order(codes, np.array([0, 0, 0, 1, 2, 2]), 3, 3).tolist()
    assert order in ([0, 1, 2], [2, 1, 0])  # the mixed one lies between


# --- the encoder ---


def test_encoder_decodes_to_types_of_training_frame():
    X = frame(30)
    encoder = CategoryEncoder(X)
    coded = encoder.codes(X)
    back = encoder.decode(coded.to_numpy())
    pd.testing.assert_frame_equal(back, X)
    assert back["shape"].dtype == X["shape"].dtype
    assert not CategoryEncoder(X[["size"]])
    assert not CategoryEncoder(X.to_numpy())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.Categorical(["a", 1, "b"]), r"column 'c' must all be text, or all .* include 1\."),
        (pd.Categorical([pd.Timestamp(0), pd.Timestamp(1)]), "include .*Timestamp"),
    ],
)
def test_encoder_rejects_invalid_columns(values, message):
    with pytest.raises(ValueError, match=message):
        CategoryEncoder(pd.DataFrame({"c": values}))


def test_encoder_takes_only_pure_text_columns():
    columns = {
        "names": ["a", "b", "1"],
        "slip": pd.Series([1.5, "a", 2.5], dtype=object),
        "numbers": ["1.5", "2", "3e5"],
        "declared": pd.Categorical(["1", "2", "1"]),
        "objects": pd.Series([1, 2, 3], dtype=object),
    }
    assert CategoryEncoder(pd.DataFrame(columns)).categories == {
        0: ("1", "a", "b"),
        3: ("1", "2"),
    }


class _AllValues(BaseExtractor):
    """Extractor whose first rule has conditions that hold for all categories."""

    takes_categories = True

    def __init__(self, estimator: Any, uncovered: str = "default", abstain_label: Any = None):
        self.estimator, self.uncovered, self.abstain_label = estimator, uncovered, abstain_label
        self.batch_size = None

    def _check_parameters(self) -> None:
        """Accept all parameters."""

    def _extract(self, extraction: Any) -> RuleSet:
        conditions = [OneOf(2, ["round", "square"]), OneOf(0, ["pink"], negated=True)]
        first = Rule([*conditions, Interval(1, upper=50)], extraction.settings["classes"][0])
        last = Rule((), extraction.settings["classes"][1])
        return RuleSet([first, last], **extraction.settings)


def test_conditions_on_all_categories_are_dropped() -> None:
    X = frame()
    black_box = CallableClassifier(lambda rows: (rows["size"] > 50).astype(int), classes=[0, 1])
    rules = _AllValues(black_box).fit(X).rules_
    assert rules.rules[0].premise_text(rules.feature_names) == "size ≤ 50"
    assert (rules.predict(X) == black_box.predict(X)).all()
