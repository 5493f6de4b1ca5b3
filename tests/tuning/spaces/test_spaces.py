"""Search spaces: one per extractor, which accepts all points."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import warnings
from collections import Counter
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor
from skescore.registry import EXTRACTORS, ExtractorSpec, extractor_class
from skescore.tuning import SearchSpace, as_search_space, search_space
from skescore.tuning.spaces import starting_points

CASES = [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TARGETS = {
    "classification": np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])],
    "regression": 3 * X[:, 0] + X[:, 1] ** 2,
}
BLACK_BOXES = {"classification": KNeighborsClassifier(), "regression": KNeighborsRegressor()}


def points_of(space: dict[str, BaseDistribution]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw any point of a space, corners included."""

    def values(distribution: BaseDistribution) -> st.SearchStrategy[Any]:
        if isinstance(distribution, CategoricalDistribution):
            return st.sampled_from(distribution.choices)
        if isinstance(distribution, IntDistribution):
            return st.integers(distribution.low, distribution.high)
        assert isinstance(distribution, FloatDistribution)
        return st.floats(distribution.low, distribution.high)

    return st.fixed_dictionaries({name: values(d) for name, d in space.items()})


@pytest.mark.parametrize(("name", "task"), CASES)
def test_search_space_exists_for_every_extractor(name: str, task: str) -> None:
    space = search_space(name, X, TARGETS[task], task=task)
    assert space
    extractor = extractor_class(name)(BLACK_BOXES[task])
    assert set(space) <= set(extractor.get_params(deep=False)) - {"estimator"}
    assert all(isinstance(d, BaseDistribution) for d in space.values())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
@settings(max_examples=6)
@given(data=st.data())
def test_search_space_points_can_be_fitted(name: str, task: str, data: st.DataObject) -> None:
    n_rows = data.draw(st.sampled_from([6, 40]))  # spaces depend on the number of rows
    rows, target = X[:n_rows], TARGETS[task][:n_rows]
    space = search_space(name, rows, target, task=task)
    params = data.draw(points_of(space))
    assert space.holds(params)
    extractor = extractor_class(name)(BLACK_BOXES[task])
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few leaves, one class: bad, but valid
        fitted = clone(extractor).set_params(**params).fit(rows, target)
        assert fitted.n_rules_ >= 1
        assert len(fitted.predict(X)) == len(X)
        active = space.active(params)
        # Inactive parameters must change nothing. Refinement without query rows would.
        if params.keys() - active.keys() - {"refinement_passes"}:
            active |= {k: v for k, v in params.items() if k == "refinement_passes"}
            other = clone(extractor).set_params(**active).fit(rows, target)
            assert str(other.rules_) == str(fitted.rules_)


@pytest.mark.parametrize(("name", "task"), CASES)
@pytest.mark.parametrize("n_classes", [2, 3, 8, 60])
@pytest.mark.parametrize("n_rows", [4, 10, 200])
def test_starting_points_are_in_space(name: str, task: str, n_classes: int, n_rows: int) -> None:
    y = np.arange(n_rows) % n_classes
    y = y if task == "classification" else y.astype(float)
    rows = np.zeros((n_rows, 2))
    space = search_space(name, rows, y, task=task)
    points = starting_points(name, space, y, task)
    assert all(space.holds(point) for point in points)
    assert all(points.count(point) == 1 for point in points)
    if n_classes <= 8 and n_rows == 200:
        assert len(points) > 1  # a usual problem has some in addition to the defaults


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_leaf_nodes=2 is less")
@pytest.mark.parametrize(("name", "task"), [c for c in CASES if c[0] != "gridrex"])
def test_starting_points_include_the_defaults(name: str, task: str) -> None:
    # Many rows with noise, so that no two splits of a tree are equally good.
    random = np.random.default_rng(3)
    rows = random.normal(size=(300, 3))
    y = 3 * rows[:, 0] + rows[:, 1] ** 2 + random.normal(size=300)
    target = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    tree = {"classification": DecisionTreeClassifier, "regression": DecisionTreeRegressor}[task]
    black_box = tree(random_state=0).fit(rows, target if task == "classification" else y)
    y = black_box.predict(rows)  # thresholds are derived from the predictions of the black box
    space = search_space(name, rows, y, task=task)
    extractor = extractor_class(name)(FrozenEstimator(black_box))
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=0)
    if name == "optimal-tree":  # the search needs a number instead of "auto"
        extractor.set_params(cuts_per_feature=16)
    rows_to_answer = random.normal(size=(1000, 3))
    expected = clone(extractor).fit(rows).predict(rows_to_answer)

    def agrees(point: dict[str, Any]) -> bool:
        assert set(point) == set(space.active(point))
        results = clone(extractor).set_params(**point).fit(rows).predict(rows_to_answer)
        if task == "classification":
            return bool((results == expected).all())
        return bool(np.allclose(results, expected, rtol=1e-6, atol=0))

    results = [agrees(point) for point in starting_points(name, space, y, task)]
    assert any(results)
    assert not all(results)


@pytest.mark.parametrize("max_rules", [1, 5, 16, math.inf])
@pytest.mark.parametrize("name", ["cart", "trepan"])
def test_starting_points_respect_max_rules(name: str, max_rules: float) -> None:
    y = np.arange(200) % 3
    space = search_space(name, np.zeros((200, 2)), y)
    points = starting_points(name, space, y, "classification", max_rules=max_rules)
    assert all(space.holds(point) for point in points)
    first, *others = (point["max_leaf_nodes"] for point in points)
    least, most = space["max_leaf_nodes"].low, space["max_leaf_nodes"].high
    assert first == min(max(max_rules, least), most)
    assert max(others, default=2) <= max(first, 3)
    assert ("max_depth" in space) == (name == "cart")
    if name == "cart":
        assert points[0]["max_depth"] == space["max_depth"].high


def test_starting_points_are_in_custom_space() -> None:
    y = np.arange(30) % 3
    # The points have max_leaf_nodes 3, 2, 4 and 6 (twice), min_samples_leaf 1, gini, and as many
    # levels as this many leaves can have.
    points = starting_points("cart", {"max_leaf_nodes": IntDistribution(2, 7)}, y, "classification")
    assert points == [{"max_leaf_nodes": n} for n in (3, 2, 4, 6)]
    space: dict[str, BaseDistribution] = {
        "max_leaf_nodes": IntDistribution(2, 8, step=2),
        "max_depth": IntDistribution(2, 5),
        "criterion": CategoricalDistribution(["gini", "log_loss"]),
    }
    points = starting_points("cart", space, y, "classification")
    assert points == [
        {"max_leaf_nodes": leaves, "max_depth": depth, "criterion": "gini"}
        for leaves, depth in ((2, 2), (4, 3), (6, 5))
    ]
    space["criterion"] = CategoricalDistribution(["entropy", "log_loss"])
    assert starting_points("cart", space, y, "classification") == []
    space = {"max_leaf_nodes": CategoricalDistribution([3, 4])}
    points = starting_points("cart", space, y, "classification")
    assert points == [{"max_leaf_nodes": 3}, {"max_leaf_nodes": 4}]
    space = {
        "n_slices": IntDistribution(2, 4),
        "importance_threshold": FloatDistribution(0, 1, step=0.01),
        "depth": IntDistribution(1, 1),
    }
    points = starting_points("gridex", space, y, "classification")
    assert points == [{"n_slices": 3, "importance_threshold": 0.99, "depth": 1}]
    assert starting_points("gridex", {}, y, "classification") == []
    assert starting_points("gridex", {"prune": CategoricalDistribution([None])}, y, "x") == []
    assert starting_points("no extractor of ours", space, y, "classification") == []


def test_starting_points_drop_other_parameters() -> None:
    rows, y = np.tile(X, (1, 4)), TARGETS["regression"]
    points = starting_points("cream", search_space("cream", rows, y), y, "regression")
    assert {point["output"] for point in points} == {"constant", "linear"}
    for point in points:
        assert ("max_terms" in point) == (point["output"] == "linear")


# --- ranges follow the data ----------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-3, 1000.0])
def test_thresholds_scale_with_target(factor: float) -> None:
    y = TARGETS["regression"]
    one, other = (search_space("gridex", X, values)["threshold"] for values in (y, factor * y))
    assert isinstance(one, FloatDistribution)
    assert isinstance(other, FloatDistribution)
    assert other.low == pytest.approx(factor * one.low)
    assert other.high == pytest.approx(factor * one.high)
    assert one.low < np.std(y) <= one.high


def test_thresholds_of_classes_are_shares() -> None:
    for y in (TARGETS["classification"], np.arange(40) % 3 * 1000):
        threshold = search_space("gridex", X, y)["threshold"]
        assert isinstance(threshold, FloatDistribution)
        assert 0 < threshold.low < threshold.high <= 0.5


def test_sizes_depend_on_data() -> None:
    few, many = (search_space("cart", np.zeros((n, 1)), np.arange(n) % 2) for n in (10, 1000))
    assert (few["max_leaf_nodes"].high, many["max_leaf_nodes"].high) == (5, 32)
    assert (few["min_samples_leaf"].high, many["min_samples_leaf"].high) == (1, 50)
    letters = search_space("cart", np.zeros((520, 1)), np.arange(520) % 52)
    assert letters["max_leaf_nodes"].high > 52  # each class can have a leaf


def test_slow_criterion_is_skipped() -> None:
    criteria = [
        search_space("cart", np.zeros((n, 1)), np.arange(n, dtype=float))["criterion"].choices
        for n in (5000, 5001)
    ]
    assert criteria == [("squared_error", "absolute_error"), ("squared_error",)]


def test_single_feature_has_no_selection() -> None:
    y = TARGETS["classification"]
    assert set(search_space("gridex", X, y)) - set(search_space("gridex", X[:, :1], y)) == {
        "importance_threshold"
    }
    assert set(search_space("trepan", X, y)) - set(search_space("trepan", X[:, :1], y)) == {
        "max_literals",
        "significance",
    }
    assert search_space("cart", X.tolist(), y) == search_space("cart", pd.DataFrame(X), y)


def test_task_defaults_to_that_of_the_target() -> None:
    whole_numbers = np.arange(40) % 7
    assert "gini" in search_space("cart", X, whole_numbers)["criterion"].choices
    space = search_space("cart", X, whole_numbers, task="regression")
    assert "squared_error" in space["criterion"].choices
    assert "squared_error" in search_space("cart", X, TARGETS["regression"])["criterion"].choices
    for labels in (pd.Series(TARGETS["classification"]), whole_numbers.astype(bool), ["a"] * 40):
        assert "gini" in search_space("cart", X, labels)["criterion"].choices


def test_search_space_accepts_constant_target() -> None:
    threshold = search_space("gridex", X, np.full(40, 2.5))["threshold"]
    assert isinstance(threshold, FloatDistribution)
    assert 0 < threshold.low < threshold.high


def test_search_space_returns_a_new_object() -> None:
    y = TARGETS["classification"]
    search_space("cart", X, y).clear()
    assert search_space("cart", X, y)


def test_search_space_rejects_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"no search space for 'grid-ex'\. Did you mean 'gridex'"):
        search_space("grid-ex", X, TARGETS["regression"])
    with pytest.raises(ValueError, match="'classification', 'regression', got 'ranking'"):
        search_space("cart", X, TARGETS["regression"], task="ranking")


# --- SearchSpace ---------------------------------------------------------------------------------

NESTED = SearchSpace(
    {
        "threshold": FloatDistribution(0.01, 1.0, log=True),
        "output": CategoricalDistribution(("constant", "linear")),
        "tolerance": FloatDistribution(0.0, 0.5),
        "depth": IntDistribution(1, 4),
        "order": CategoricalDistribution((None, True, 1)),
    },
    conditions={
        "threshold": {"depth": (2, 3, 4)},
        "tolerance": {"output": ("linear",), "depth": (1, 2)},
        "order": {"output": ["linear"]},
    },
    title="nested",
)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """Draw small spaces whose parameters depend on earlier or later ones."""
    kinds = st.sampled_from(
        [
            CategoricalDistribution(("a", None)),
            CategoricalDistribution((True, 1, 0.5)),
            IntDistribution(1, 3),
            IntDistribution(1, 6, log=True),
            IntDistribution(0, 6, step=3),
            FloatDistribution(0.25, 4.0, log=True),
            FloatDistribution(-1.0, 1.0),
            FloatDistribution(0.0, 1.0, step=0.5),
        ]
    )
    names = draw(st.permutations(["p", "q", "r", "s"]))
    space = SearchSpace({name: draw(kinds) for name in sorted(names)})
    for index, name in enumerate(names):
        for other in names[:index]:
            if not isinstance(space[other], FloatDistribution) and draw(st.booleans()):
                values = SearchSpace({other: space[other]}).param_grid(9)[other]
                chosen = draw(st.lists(st.sampled_from(values), max_size=3))
                space = space.when(name, **{other: chosen})
    return space


def waits(space: SearchSpace, name: str, params: dict[str, Any]) -> bool:
    """Return whether a parameter is active according to the definition."""
    for other, values in space.conditions.get(name, {}).items():
        typed = [(type(value), value) for value in values]
        if waits(space, other, params) or (type(params[other]), params[other]) not in typed:
            return True
    return False


def asked_by_definition(space: SearchSpace, params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if not waits(space, name, params)}


def identity(params: dict[str, Any]) -> frozenset[tuple[str, str, Any]]:
    """Return parameters as a key that distinguishes True from 1."""
    return frozenset((name, type(value).__name__, value) for name, value in params.items())


@settings(max_examples=50)
@given(spaces(), st.integers(1, 4))
def test_param_grid_has_distinct_candidates(space: SearchSpace, n_values: int) -> None:
    plain = {
        name: SearchSpace({name: distribution}).param_grid(n_values)[name]
        for name, distribution in space.items()
    }
    everything = (
        dict(zip(plain, values, strict=True)) for values in itertools.product(*plain.values())
    )
    expected = {identity(asked_by_definition(space, params)) for params in everything}
    grid = space.param_grid(n_values)
    assert isinstance(grid, list) == bool(space.conditions)
    result = Counter(identity(params) for params in ParameterGrid(grid))
    assert set(result) == expected
    assert set(result.values()) <= {1}


@settings(max_examples=30)
@given(spaces(), st.integers(0, 99))
def test_param_distributions_draw_from_space(space: SearchSpace, seed: int) -> None:
    result = space.param_distributions()
    assert isinstance(result, list) == bool(space.conditions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a space of choices is soon exhausted
        drawn = list(ParameterSampler(result, 20, random_state=seed))
    for params in drawn:
        assert space.holds(params)
        assert space.active(params) == params
        assert set(params) == {name for name in space if space.is_active(name, params)}


@settings(max_examples=30)
@given(spaces(), st.integers(0, 99))
def test_suggest_draws_active_parameters(space: SearchSpace, seed: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    for _ in range(5):
        trial = study.ask()
        params = space.suggest(trial)
        assert params == trial.params
        assert list(params) == [name for name in space if name in params]
        assert space.holds(params)
        assert {name: space[name] for name in params} == trial.distributions
        full = {name: params.get(name, "not asked") for name in space}
        assert asked_by_definition(space, full) == params
        second_suggestion = space.suggest(optuna.trial.FixedTrial(params))
        assert second_suggestion == params


def test_param_grid_is_a_dict_without_conditions() -> None:
    space = SearchSpace(
        {
            "leaves": IntDistribution(2, 32, log=True),
            "depth": IntDistribution(1, 3),
            "even": IntDistribution(2, 8, step=2),
            "share": FloatDistribution(0.01, 1.0, log=True),
            "level": FloatDistribution(0.0, 1.0, step=0.25),
            "kind": CategoricalDistribution(("a", None, True)),
        }
    )
    assert space.param_grid() == {
        "leaves": [2, 8, 32],
        "depth": [1, 2, 3],
        "even": [2, 6, 8],
        "share": [0.01, pytest.approx(0.1), 1.0],
        "level": [0.0, 0.5, 1.0],
        "kind": ["a", None, True],
    }
    grid = space.param_grid(1, prefix="rules__")
    assert isinstance(grid, dict)
    assert list(grid) == [f"rules__{name}" for name in space]
    assert grid["rules__leaves"] == [8]
    assert grid["rules__share"] == [pytest.approx(0.1)]
    assert space.param_grid(100)["depth"] == [1, 2, 3]
    assert space.param_grid(100)["leaves"] == list(range(2, 33))
    types = {name: {type(v) for v in values} for name, values in space.param_grid().items()}
    assert types["leaves"] == types["even"] == {int}
    assert types["share"] == types["level"] == {float}
    assert SearchSpace().param_grid() == {}
    for n_values in (0, 2.0, True, None):
        with pytest.raises(ValueError, match="n_values must be an integer of at least 1, got"):
            space.param_grid(n_values)


def test_param_grid_is_a_list_with_conditions() -> None:
    assert NESTED.without("order").fixed(threshold=0.1).param_grid(2) == [
        {"output": ["constant"], "depth": [1]},
        {"output": ["linear"], "tolerance": [0.0, 0.5], "depth": [1]},
        {"threshold": [0.1], "output": ["constant"], "depth": [4]},
        {"threshold": [0.1], "output": ["linear"], "depth": [4]},
    ]


def test_param_distributions_follow_the_scale() -> None:
    space = SearchSpace(
        {
            "leaves": IntDistribution(2, 32, log=True),
            "share": FloatDistribution(0.01, 1.0, log=True),
            "level": FloatDistribution(-1.0, 3.0),
            "depth": IntDistribution(1, 3),
            "one": IntDistribution(5, 5, log=True),
        }
    )
    result = space.param_distributions(prefix="p__")
    assert isinstance(result, dict)
    n = 20_000
    drawn = {
        name: np.asarray(result[f"p__{name}"].rvs(size=n, random_state=0))
        for name in ("leaves", "share", "level", "depth")
    }
    counts = Counter(drawn["leaves"].tolist())
    assert set(counts) == set(range(2, 33))
    for k in (2, 3, 8, 31, 32):  # a number represents the values that are rounded to it
        share = math.log((k + 0.5) / (k - 0.5)) / math.log(32.5 / 1.5)
        assert counts[k] / n == pytest.approx(share, abs=4 * math.sqrt(share / n))
    assert np.log10(drawn["share"]).mean() == pytest.approx(-1, abs=0.02)
    assert (drawn["share"].min() >= 0.01) & (drawn["share"].max() <= 1)
    assert (drawn["level"].min(), drawn["level"].max()) == pytest.approx((-1, 3), abs=0.01)
    assert Counter(drawn["depth"].tolist())[3] / n == pytest.approx(1 / 3, abs=0.02)
    assert result["p__one"] == [5]
    assert repr(result["p__leaves"]) == "LogUniformIntegers(2, 32)"
    second_data = pickle.loads(pickle.dumps(result["p__leaves"]))
    assert second_data.rvs(random_state=1) == result["p__leaves"].rvs(random_state=1)


def test_log_integers_match_optuna() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    space = SearchSpace({"leaves": IntDistribution(2, 8, log=True)})
    theirs = Counter(space.suggest(study.ask())["leaves"] for _ in range(4000))
    ours = Counter(space.param_distributions()["leaves"].rvs(4000, random_state=0).tolist())
    for k in range(2, 9):
        assert theirs[k] == pytest.approx(ours[k], abs=150)


def test_space_prints_a_table() -> None:
    assert str(NESTED) == (
        "nested\n"
        "parameter  values                scale   active if\n"
        "threshold  0.01 to 1             log     depth is 2 or 3 or 4\n"
        "output     'constant', 'linear'  choice\n"
        "tolerance  0 to 0.5              linear  output is 'linear' and depth is 1 or 2\n"
        "depth      1 to 4                linear\n"
        "order      None, True, 1         choice  output is 'linear'"
    )
    space = NESTED.without("order", "tolerance", "output").with_(
        step=IntDistribution(2, 8, step=3), share=FloatDistribution(0, 1, step=0.25)
    )
    assert repr(space.fixed(level=0.123456)) == (
        "<SearchSpace of nested: threshold 0.01 to 1 (log) if depth is 2 or 3 or 4; "
        "depth 1 to 4; step 2 to 8 by 3; share 0 to 1 by 0.25; level 0.1235>"
    )
    assert repr(SearchSpace()) == "<SearchSpace: empty>"
    table = SearchSpace({"a": CategoricalDistribution(("<b>",))}, title="x & y")._repr_html_()
    assert "<caption>x &amp; y</caption>" in table
    assert "<tr><td>a</td><td>&#x27;&lt;b&gt;&#x27;</td><td>choice</td><td></td></tr>" in table


def test_space_has_a_title() -> None:
    space = search_space("gridex", X, TARGETS["regression"])
    assert str(space).startswith("gridex for regression: 40 rows, 3 features\nparameter")


def test_space_changes_return_copies() -> None:
    before = str(NESTED)
    other = NESTED.with_(depth=IntDistribution(1, 2), new=IntDistribution(0, 1))
    assert other["depth"] == IntDistribution(1, 2)
    assert list(other) == [*NESTED, "new"]
    assert other.conditions == NESTED.conditions
    assert other.title == "nested"
    assert list(NESTED.without("depth", "order")) == ["threshold", "output", "tolerance"]
    other = NESTED.copy()
    other["depth"] = IntDistribution(1, 1)
    other.clear()
    assert NESTED.fixed(depth=2)["depth"] == IntDistribution(2, 2)
    assert str(NESTED) == before
    with pytest.raises(ValueError, match=r"There is no 'dept' in the space\. Did you mean 'depth'"):
        NESTED.without("dept")


def test_space_is_a_dict() -> None:
    plain = dict(NESTED)
    assert isinstance(NESTED, dict)
    assert plain == NESTED
    assert plain == {**NESTED}
    assert NESTED.distributions() == plain
    assert type(NESTED.distributions()) is dict
    assert list(NESTED.distributions(prefix="x__")) == [f"x__{name}" for name in NESTED]
    both = NESTED | {"depth": IntDistribution(2, 3)}
    assert isinstance(both, SearchSpace)
    assert both.conditions == NESTED.conditions
    joined = SearchSpace({"max_leaf_nodes": IntDistribution(2, 3)}) | NESTED
    assert joined.conditions == NESTED.conditions
    with pytest.raises(TypeError):
        NESTED | 3
    for copied in (pickle.loads(pickle.dumps(NESTED)), copy.deepcopy(NESTED), NESTED.copy()):
        assert str(copied) == str(NESTED)
        assert copied.conditions == NESTED.conditions
        assert copied is not NESTED


def test_fixed_keeps_the_kind_of_distribution() -> None:
    fixed = NESTED.fixed(
        threshold=1, output="linear", depth=np.int64(3), tolerance=0.25, order=None
    )
    assert fixed["threshold"] == FloatDistribution(1.0, 1.0)
    assert fixed["depth"] == IntDistribution(3, 3)
    assert fixed["order"] == CategoricalDistribution((None,))
    study = optuna.create_study()
    params = fixed.suggest(study.ask())
    assert params == {"threshold": 1.0, "output": "linear", "depth": 3, "order": None}
    assert type(params["depth"]) is int
    new = SearchSpace().fixed(a=3, b=0.5, c=True, d="x")
    assert new.param_grid() == {"a": [3], "b": [0.5], "c": [True], "d": ["x"]}
    assert new.param_distributions() == {"a": [3], "b": [0.5], "c": [True], "d": ["x"]}
    with pytest.raises(ValueError, match="threshold must be fixed to a finite number, got nan"):
        NESTED.fixed(threshold=math.nan)
    with pytest.raises(TypeError, match=r"depth must be fixed to a number, .* got \[1, 2\]"):
        NESTED.fixed(depth=[1, 2])


def test_conditions_on_removed_parameters_are_ignored() -> None:
    space = NESTED.without("depth")
    assert space.conditions == {
        "tolerance": {"output": ("linear",)},
        "order": {"output": ("linear",)},
    }
    assert space.active({"threshold": 0.1, "output": "constant", "tolerance": 0.1}) == {
        "threshold": 0.1,
        "output": "constant",
    }
    space = NESTED.copy()
    del space["depth"], space["output"]
    assert space.conditions == {}
    assert isinstance(space.param_grid(), dict)


def test_conditions_distinguish_true_and_one() -> None:
    space = SearchSpace(
        {"flag": CategoricalDistribution((True, 1)), "a": IntDistribution(1, 2)},
        conditions={"a": {"flag": (True,)}},
    )
    assert space.is_active("a", {"flag": True})
    assert not space.is_active("a", {"flag": 1})
    assert not space.is_active("a", {})
    numbers = SearchSpace({"n": IntDistribution(0, 4, step=2), "x": FloatDistribution(0, 1)})
    assert numbers.holds({"n": 2, "x": 1})
    assert numbers.holds({})
    for params in ({"n": 1}, {"n": 6}, {"n": True}, {"n": 2.0}, {"x": -0.1}, {"x": "1"}, {"y": 1}):
        assert not numbers.holds(params), params
    assert not numbers.holds({"x": math.nan})


def test_circular_conditions_are_rejected() -> None:
    two = {"a": IntDistribution(1, 2), "b": IntDistribution(1, 2)}
    with pytest.raises(ValueError, match="vice versa"):
        SearchSpace(two, conditions={"a": {"b": (1,)}, "b": {"a": (1,)}})
    with pytest.raises(ValueError, match="vice versa"):
        SearchSpace(two).when("a", a=(1,))


def test_conditions_on_unknown_parameters_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"There is no 'deep' in the space\. Did you mean 'depth'"):
        NESTED.when("threshold", deep=(1,))
    with pytest.raises(ValueError, match="There is no 'other' in the space"):
        NESTED.when("other", depth=(1,))
    with pytest.raises(
        ValueError, match="only depend on a categorical or integer parameter, but 'thresh"
    ):
        NESTED.when("order", threshold=(0.5,))
    with pytest.raises(
        ValueError, match="only depend on a categorical or integer parameter, but 'depth"
    ):
        NESTED.with_(depth=FloatDistribution(1, 4))
    with pytest.raises(TypeError, match=r"must be a sequence, such as \('linear',\), got 'linear'"):
        NESTED.when("depth", output="linear")
    with pytest.raises(TypeError, match=r"conditions\['depth'\] must be a mapping"):
        SearchSpace(NESTED, conditions={"depth": ("output", "linear")})  # type: ignore[dict-item]
    space = NESTED.copy()
    space["depth"] = FloatDistribution(1, 4)
    with pytest.raises(ValueError, match="need a categorical or integer parameter"):
        space.param_distributions()


def test_as_search_space_accepts_dicts() -> None:
    plain = {"max_leaf_nodes": IntDistribution(2, 5)}
    space = as_search_space(plain)
    assert isinstance(space, SearchSpace)
    assert space == plain
    assert as_search_space(space) is space
    with pytest.raises(TypeError, match=r"space must be a dict .* got \['max_leaf_nodes'\]"):
        as_search_space(["max_leaf_nodes"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'max_leaf_nodes'\] must be an Optuna dist.* \(2, 5\)"):
        as_search_space({"max_leaf_nodes": (2, 5)})  # type: ignore[dict-item]
    space["max_leaf_nodes"] = (2, 5)  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"space\['max_leaf_nodes'\] must be an Optuna dist"):
        space.suggest(optuna.trial.FixedTrial({}))
    with pytest.raises(TypeError, match="must hold Optuna distributions"):
        space.param_grid()


@pytest.mark.parametrize(("name", "task"), CASES)
def test_param_grids_contain_valid_candidates(name: str, task: str) -> None:
    space = search_space(name, X, TARGETS[task], task=task)
    extractor = extractor_class(name)(BLACK_BOXES[task])
    candidates = list(ParameterGrid(space.param_grid(2)))
    assert len(candidates) >= 2 ** min(len(space), 2)
    for params in candidates:
        assert space.holds(params)
        extractor.set_params(**params)._check_parameters()


class OneCut(CARTExtractor):
    @staticmethod
    def search_space(n_rows, y, task):
        return {"max_leaf_nodes": IntDistribution(2, 3)}


def test_registered_extractor_may_define_its_space(monkeypatch):
    spec = ExtractorSpec(f"{__name__}:OneCut", ("classification",), "one cut")
    monkeypatch.setitem(EXTRACTORS, "one-cut", spec)
    space = search_space("one-cut", X, TARGETS["classification"])
    assert dict(space) == {"max_leaf_nodes": IntDistribution(2, 3)}
