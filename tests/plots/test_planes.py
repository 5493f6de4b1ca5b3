"""Plots of two features: every pixel and box compared with models and rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor, GridExExtractor, plots
from skescore.rules import (
    Domain,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

pytest.importorskip("matplotlib")
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

DATA = load_iris(as_frame=True)
IRIS, SPECIES = DATA.data, DATA.target_names[DATA.target]
PETALS = ("petal length (cm)", "petal width (cm)")


def axes() -> Any:
    return Figure().add_subplot()


def pixels(ax: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centers of the pixels along both axes, and the values."""
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    corners = mesh.get_coordinates()
    x, y = corners[0, :, 0], corners[:, 0, 1]
    return (x[:-1] + x[1:]) / 2, (y[:-1] + y[1:]) / 2, mesh.get_array()


@pytest.fixture(scope="module")
def grid() -> GridExExtractor:
    return GridExExtractor(
        KNeighborsClassifier(9), n_slices=4, importance_threshold=0.5, depth=2, max_rules=None
    ).fit(IRIS, SPECIES)


# --- boundaries ---


def test_boundary_plot_pixels_equal_predictions(grid: GridExExtractor) -> None:
    black_box, rules = plots.decision_boundaries(
        grid, IRIS, SPECIES, resolution=30, axes=Figure().subplots(1, 2)
    )
    assert (black_box.get_title(), rules.get_title()) == ("black box", "rules")
    assert (rules.get_xlabel(), rules.get_ylabel()) == PETALS  # the features cut by GridEx
    for ax, model in ((black_box, grid.estimator_), (rules, grid)):
        x, y, codes = pixels(ax)
        rows = pd.DataFrame({c: np.full(900, IRIS[c].median()) for c in IRIS.columns})
        rows[PETALS[0]], rows[PETALS[1]] = np.tile(x, 30), np.repeat(y, 30)
        labels = np.array(["setosa", "versicolor", "virginica"])[np.asarray(codes).ravel()]
        assert (labels == model.predict(rows)).all()


def test_boundary_plot_hatches_uncovered_regions(grid: GridExExtractor) -> None:
    def hatched(ax: Any) -> Any:
        return [c for c in ax.collections if "///" in (getattr(c, "hatches", None) or [])]

    black_box, rules = plots.decision_boundaries(
        grid, IRIS, resolution=40, axes=Figure().subplots(1, 2)
    )
    assert not hatched(black_box)
    (shading,) = hatched(rules)
    inside = np.array(
        [
            any(path.contains_point(p) for path in shading.get_paths())
            for p in [(4.0, 0.5), (2.0, 2.0), (1.5, 0.3), (6.0, 2.2)]
        ]
    )
    is_covered = grid.covers(
        pd.DataFrame(
            [
                [5.8, 3.0, 4.0, 0.5],
                [5.8, 3.0, 2.0, 2.0],
                [5.8, 3.0, 1.5, 0.3],
                [5.8, 3.0, 6.0, 2.2],
            ],
            columns=IRIS.columns,
        )
    )
    assert inside.tolist() == (~is_covered).tolist() == [True, True, False, False]
    texts = [t.get_text() for t in rules.get_legend().get_texts()]
    assert texts == ["setosa", "versicolor", "virginica", "no rule holds"]


def test_boundary_plot_leaves_uncovered_pixels_empty() -> None:
    rules = RuleSet([Rule([Interval(0, upper=3)], "a")], ["u", "v"], task="classification")
    X = np.array([[0.0, 0.0], [6.0, 1.0]])
    x, _, codes = pixels(plots.decision_boundary(rules, X, resolution=20, ax=axes()))
    assert (np.ma.getmaskarray(codes) == (x > 3)[None, :]).all()


def test_boundary_plot_uses_fixed_values() -> None:
    X = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 3.0], [2.0, 5.0, 8.0]])

    def model(rows: np.ndarray) -> np.ndarray:
        return np.where(rows[:, 2] > 4, "high", "low")

    def legend_labels(**options: Any) -> set[int]:
        ax = plots.decision_boundary(model, X, features=(1, 0), resolution=4, ax=axes(), **options)
        source = "given values: x2 = 7" if options else "medians: x2 = 3"
        assert ax.get_xlabel() == f"x1\nother features at {source}"
        assert ax.get_ylabel() == "x0"
        return {t.get_text() for t in ax.get_legend().get_texts()}

    assert legend_labels() == {"low"}  # the median is 3
    assert legend_labels(fixed_values={2: 7.0}) == {"high"}
    with pytest.raises(ValueError, match="fixed_values must not name"):
        legend_labels(fixed_values={1: 7.0})
    with pytest.raises(ValueError, match="index from 0 to 2, got 9"):
        legend_labels(fixed_values={9: 7.0})


def test_boundary_plot_prefers_slices_with_every_class() -> None:
    X = np.array([[i % 2, i, value] for i, value in enumerate([0.0] * 6 + [10.0] * 5)])

    def model(rows: np.ndarray) -> np.ndarray:
        left = np.where(rows[:, 1] < 7, "b", "c")
        return np.where(rows[:, 2] < 5, "a", left)

    ax = plots.decision_boundary(model, X, features=(0, 1), resolution=30, ax=axes())
    assert {"b", "c"} <= {t.get_text() for t in ax.get_legend().get_texts()}
    assert ax.get_xlabel() == "x0\nother features at medians of b: x2 = 10"
    assert len(np.unique(pixels(ax)[2])) == 2
    # No slice shows all three classes; the legend lists the others.
    ax = plots.decision_boundary(
        model, X, model(X), features=(0, 1), resolution=30, fixed_values={2: 0.0}, ax=axes()
    )
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "a",
        "b",
        "c",
        "not in this slice: b, c",
    ]


def test_boundary_plot_predicts_in_batches() -> None:
    sizes = []

    def model(rows: np.ndarray) -> np.ndarray:
        sizes.append(len(rows))
        return np.where(rows[:, 7] > rows[:, 3], "high", "low")

    X = np.random.default_rng(0).normal(size=(60, 1000))
    ax = plots.decision_boundary(model, X, features=(3, 7), resolution=60, ax=axes())
    assert len(sizes) > 1  # a thousand features of all pixels do not fit into one batch
    x, y, codes = pixels(ax)
    high = np.asarray(codes) == np.asarray(codes)[-1, 0]
    assert (high == (y[:, None] > x[None, :])).all()


def test_boundary_plot_supports_1000_features() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 1000))
    tree = DecisionTreeClassifier(random_state=0).fit(X, X[:, 700] > 0)
    ax = plots.decision_boundary(tree, X, features=("x700", 3), resolution=12, ax=axes())
    x, _, codes = pixels(ax)
    cut = tree.tree_.threshold[0]
    assert (np.asarray(codes) == (x > cut)[None, :]).all()
    assert ax.get_xlabel().startswith("x700\nother features at medians: x0 = ")
    assert ax.get_xlabel().endswith(" and 995 more")


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": random.uniform(1, 9, 120),
            "color": random.choice(["red", "green", "blue"], 120),
            "wet": random.random(120) < 0.5,
        }
    )
    return X, np.where((X["size"] > 5) & (X["color"] != "green"), "yes", "no")


def test_boundary_plot_separates_categories(mixed: Any) -> None:
    X, y = mixed
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["color"]), remainder="passthrough"),
        DecisionTreeClassifier(random_state=0),
    ).fit(X, y)
    ax = plots.decision_boundary(model, X, y, features=("size", "color"), resolution=20, ax=axes())
    assert [t.get_text() for t in ax.get_yticklabels()] == ["blue", "green", "red"]
    assert ax.get_ylim() == (-0.5, 2.5)
    x, positions, codes = pixels(ax)
    for row, index in zip(np.asarray(codes), positions, strict=True):
        color = ["blue", "green", "red"][round(float(index))]
        frame = pd.DataFrame({"size": x, "color": color, "wet": X["wet"].mode()[0]})
        assert (np.array(["no", "yes"])[row] == model.predict(frame)).all()
    points = np.concatenate(
        [np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]
    )
    result = pd.Series(np.rint(points[:, 1])).value_counts()
    assert (
        result.to_dict()
        == pd.Series(X["color"]).map({"blue": 0, "green": 1, "red": 2}).value_counts().to_dict()
    )


def test_boundary_plot_of_numbers_shares_one_scale() -> None:
    X = np.random.default_rng(0).uniform(size=(50, 2))
    line = LinearRegression().fit(X, 3 * X[:, 0])
    flat = RuleSet([Rule([], 1.5)], ["x0", "x1"], task="regression")
    drawn_axes = plots.decision_boundaries(
        {"line": line, "flat": flat}, X, 3 * X[:, 0], resolution=10, axes=Figure().subplots(1, 2)
    )
    limits = {c.get_clim() for ax in drawn_axes for c in ax.collections if isinstance(c, QuadMesh)}
    assert len(limits) == 1
    x, _, values = pixels(drawn_axes[0])
    assert np.asarray(values) == pytest.approx(np.tile(3 * x, (10, 1)))
    assert set(np.asarray(pixels(drawn_axes[1])[2]).ravel()) == {1.5}
    with pytest.raises(ValueError, match="all classifiers or all regressors"):
        plots.decision_boundaries([line, DecisionTreeClassifier().fit(X, X[:, 0] > 0.5)], X)


def test_boundary_plot_of_pipelines_uses_user_units() -> None:
    pipeline = make_pipeline(
        StandardScaler(), CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    ).fit(IRIS.to_numpy(), SPECIES)
    ax = plots.decision_boundary(
        pipeline, IRIS.to_numpy(), features=(2, 3), resolution=20, ax=axes()
    )
    x, y, codes = pixels(ax)
    rows = np.tile(np.median(IRIS.to_numpy(), axis=0), (400, 1))
    rows[:, 2], rows[:, 3] = np.tile(x, 20), np.repeat(y, 20)
    labels = np.array(["setosa", "versicolor", "virginica"])[np.asarray(codes).ravel()]
    assert (labels == pipeline.predict(rows)).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"features": ("petal length", 3)}, "Did you mean 'petal length \\(cm\\)'"),
        ({"features": (2, 2)}, "features must be two different ones"),
        ({"features": (2,)}, "features must be two names or indices"),
        ({"features": (2, 4)}, "index from 0 to 3, got 4"),
        ({"features": "petal"}, "features must be two names or indices"),
        ({"resolution": 1}, "resolution must be an integer of 2 or more"),
        ({"y": [1, 2]}, "y must hold one value per row, 150"),
        ({"X": IRIS.iloc[:0]}, "X must hold at least one row"),
        ({"X": IRIS[["petal length (cm)"]]}, "needs two features"),
    ],
)
def test_boundary_plot_rejects_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match=text):
        plots.decision_boundary(tree, **({"X": IRIS, "ax": axes()} | arguments))


def test_boundary_plot_rejects_invalid_models() -> None:
    with pytest.raises(TypeError, match="models must have a method predict"):
        plots.decision_boundaries({"a": 3}, IRIS)
    with pytest.raises(ValueError, match="axes must hold one Axes per model, 1, got 2"):
        plots.decision_boundaries(
            {"a": lambda rows: np.zeros(len(rows))}, IRIS, axes=Figure().subplots(1, 2)
        )


# --- boxes ---


def boxes_of(ax: Any) -> dict[str, list[Rectangle]]:
    results: dict[str, list[Rectangle]] = {}
    for patch in ax.patches:
        if patch.get_gid():
            results.setdefault(patch.get_gid(), []).append(patch)
    return results


RULES = RuleSet(
    [
        Rule([Interval(0, 1.0, 2.0), Interval(1, upper=4.0)], "a"),
        Rule([Interval(0, lower=3.0), Interval(2, lower=0.5)], "b"),
        Rule([], "c"),
    ],
    ["u", "v", "w"],
    task="classification",
    domain=Domain((0, 0, 0), (5, 10, 1)),
)


def test_box_plot_shows_regions_of_rules() -> None:
    ax = plots.rule_boxes(RULES, features=("u", "v"), ax=axes())
    boxes = {name: patches[0].get_bbox() for name, patches in boxes_of(ax).items()}
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert (left, right, low, high) == pytest.approx((-0.2, 5.2, -0.4, 10.4))
    assert (boxes["rule 1"].x0, boxes["rule 1"].x1, boxes["rule 1"].y1) == (1, 2, 4)
    assert boxes["rule 1"].y0 < low  # an unbounded side is outside of the axes
    assert boxes["rule 2"].x0 == 3
    assert boxes["rule 2"].x1 > right
    assert boxes["rule 3"].x0 < left
    lines = [p.get_linestyle() for p in ax.patches if p.get_linewidth()]
    assert sorted(lines) == ["-", "-", "--"]  # the second rule has a condition on w as well
    order = {name: patches[0].get_zorder() for name, patches in boxes_of(ax).items()}
    assert order["rule 1"] > order["rule 2"] > order["rule 3"]
    positions = {t.get_text(): t.get_position() for t in ax.texts}
    assert boxes["rule 1"].contains(*positions["1"])
    assert not boxes["rule 1"].contains(*positions["3"])
    assert not boxes["rule 2"].contains(*positions["3"])
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["a", "b", "c", "needs more features"]


def test_box_plot_colors_show_outputs() -> None:
    ax = plots.rule_boxes(RULES, ax=axes())
    legend = {
        t.get_text(): to_hex(h.get_facecolor())
        for t, h in zip(
            ax.get_legend().get_texts()[:3], ax.get_legend().legend_handles[:3], strict=True
        )
    }
    for i, rule in enumerate(RULES):
        (patch,) = boxes_of(ax)[f"rule {i + 1}"]
        assert to_hex(patch.get_facecolor()) == legend[rule.output]


def test_box_plot_draws_pieces_for_categories() -> None:
    X = pd.DataFrame({"size": [1.0, 9.0, 5.0, 2.0], "color": ["a", "b", "c", "d"]})
    rules = RuleSet(
        [
            Rule([OneOf(1, ["a", "c", "d"]), Interval(0, upper=5)], 1.0),
            Rule([OneOf(1, ["a", "d"], negated=True)], 2.0),
        ],
        ["size", "color"],
        task="regression",
    )
    ax = plots.rule_boxes(rules, X, features=("size", "color"), ax=axes())
    result = boxes_of(ax)
    assert [(p.get_y(), p.get_height()) for p in result["rule 1"]] == [(-0.5, 1), (1.5, 2)]
    assert [(p.get_y(), p.get_height()) for p in result["rule 2"]] == [(0.5, 2)]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", "c", "d"]


def test_box_plot_of_one_feature_draws_strips() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([Interval(0, lower=2)], "b")],
        ["u"],
        task="classification",
        domain=Domain((0,), (4,)),
    )
    ax = plots.rule_boxes(rules, [[1.0], [3.0]], ["a", "b"], ax=axes())
    first, second = (patches[0] for patches in boxes_of(ax).values())
    assert {first.get_bbox().x0, second.get_bbox().x1} == {2.0}
    assert list(ax.get_yticks()) == []


def test_box_plot_draws_linear_outputs_and_conditions() -> None:
    rules = RuleSet(
        [
            Rule([Linear([(0, 1.0), (1, 1.0)], upper=1.0)], LinearOutput(1.0, [(0, 2.0)])),
            Rule(
                [Interval(0, 0.0, 0.5)], LinearOutput(0.0, [(1, 1.0)]), RuleStatistics(5, mean=7.0)
            ),
        ],
        ["u", "v"],
        task="regression",
        domain=Domain((0, 0), (1, 1)),
    )
    ax = plots.rule_boxes(rules, ax=axes())
    assert [p.get_linestyle() for p in ax.patches if p.get_linewidth()].count("--") == 1
    bar = next(a for a in ax.figure.axes if a is not ax)
    assert bar.get_ylim() == pytest.approx((2.0, 7.0))  # 1 + 2 * 0.5, and the observed mean


def test_box_plot_draws_many_rules_and_rejects_none() -> None:
    ruleset = RuleSet(
        [Rule([Interval(0, i, i + 1)], "ab"[i % 2]) for i in range(300)],
        ["u", "v"],
        task="classification",
    )
    ax = plots.rule_boxes(ruleset, features=(0, 1), ax=axes())
    assert len(boxes_of(ax)) == 300
    assert len(ax.texts) == 0  # too narrow for rule numbers
    with pytest.raises(ValueError, match="rules must hold at least one rule"):
        plots.rule_boxes(RuleSet([], ["u"], task="classification", classes=["a"]), ax=axes())
    with pytest.raises(TypeError, match="no rules that skescore can read"):
        plots.rule_boxes(3, ax=axes())


def test_box_plot_gives_unbounded_rules_margin() -> None:
    """A tree provides thresholds, but neither rows nor a domain."""
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    ax = plots.rule_boxes(tree, features=(3, 2), ax=axes())
    cuts = tree.tree_.threshold[tree.tree_.feature == 3]
    for end, cut in zip(ax.get_xlim(), (cuts.min(), cuts.max()), strict=True):
        assert abs(end - cut) > 0.1 * np.ptp(ax.get_xlim())
    numbers = {text.get_text() for text in ax.texts}
    assert numbers == {"1", "2", "3", "4"}
    ax_of_rows = plots.rule_boxes(tree, X, features=(3, 2), ax=axes())
    assert ax_of_rows.get_xlim() == pytest.approx((0.1 - 0.04 * 2.4, 2.5 + 0.04 * 2.4))
