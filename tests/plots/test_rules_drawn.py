"""Parallel coordinates and overlaps of rules: every bar and cell compared with the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore import plots
from skescore.rules import (
    AtLeast,
    Domain,
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

RULES = RuleSet(
    [
        Rule([Interval(0, 1.0, 2.0), Interval(2, upper=25.0)], "a"),
        Rule([Interval(0, upper=1.5), OneOf(3, ["x", "z"])], "b"),
        Rule([AtLeast(1, [Interval(0, upper=1), Interval(2, lower=30)])], "a"),
        Rule([], "c"),
    ],
    ["u", "v", "w", "kind"],
    task="classification",
    domain=Domain((0, 0, 20, 0), (4, 10, 40, 3), [(3, ["x", "y", "z"])]),
)


def axes() -> Any:
    return Figure().add_subplot()


def bars_of(ax: Any) -> dict[str, list[tuple[float, float, float]]]:
    """Return the column of each bar, and its ends as shares of the column width, by rule."""
    results: dict[str, list[tuple[float, float, float]]] = {}
    for bar in ax.patches:
        if bar.get_gid():
            assert bar.get_gid() == f"rule {round(bar.get_y() + bar.get_height() / 2) + 1}"
            column = round(bar.get_x() + bar.get_width() / 2)
            ends = [(x - column) / 0.8 + 0.5 for x in (bar.get_x(), bar.get_x() + bar.get_width())]
            results.setdefault(bar.get_gid(), []).append((column, *np.round(ends, 6).tolist()))
    return results


def test_parallel_rules_bars_show_conditions() -> None:
    ax = plots.parallel_rules(RULES, ax=axes())
    # No rule uses v; the axes are u, w and kind.
    assert [t.get_text() for t in ax.get_xticklabels()] == ["u", "w", "kind"]
    bars = bars_of(ax)
    assert bars["rule 1"] == [(0, 0.25, 0.5), (1, 0.0, 0.25)]
    third = pytest.approx(1 / 3, abs=1e-6)
    assert bars["rule 2"] == [
        (0, 0.0, 0.375),
        (2, 0.0, third),
        (2, pytest.approx(2 / 3, abs=1e-6), 1.0),
    ]
    assert set(bars) == {"rule 1", "rule 2"}
    low, high = sorted(ax.get_ylim())
    assert low < 0
    assert high > 3
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first rule is on top
    written = [t.get_text() for t in ax.texts]
    assert {"0", "4", "20", "40", "x", "y", "z"} <= set(written)
    numbers = [t.get_text().partition(":")[0] for t in ax.get_yticklabels()]
    assert numbers == ["1", "2", "3", "4"]


def test_parallel_rules_mark_conditions_on_other_features() -> None:
    ax = plots.parallel_rules(RULES, features=["w", "u"], ax=axes())
    marked = [t.get_text().endswith(" +") for t in ax.get_yticklabels()]
    assert marked[:2] == [False, True]  # the second rule has another condition, on kind
    assert "+ has further conditions" in ax.get_xlabel()
    assert [x for x, *_ in bars_of(ax)["rule 1"]] == [0, 1]


def test_parallel_rules_bars_do_not_overlap() -> None:
    rules = RuleSet(
        [Rule([Interval(0, i, i + 1), Interval(1, upper=i + 1)], str(i % 3)) for i in range(20)],
        ["u", "v"],
        task="classification",
        ordered=True,
        domain=Domain((0, 0), (25, 25)),
    )
    ax = plots.parallel_rules(rules)
    assert ax.get_title() == "20 rules; the first that holds gives the prediction"
    ax.figure.canvas.draw()
    boxes = [p.get_window_extent() for p in ax.patches if str(p.get_gid()).startswith("rule ")]
    assert len(boxes) == 40
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert min(box.height for box in boxes) >= 8  # in pixels
    labels = [t.get_window_extent() for t in ax.get_yticklabels()]
    assert not any(a.overlaps(b) for k, a in enumerate(labels) for b in labels[:k])


def test_parallel_rules_limit_rules_and_features() -> None:
    rules = RuleSet(
        [Rule([Interval(i, 0, 1), Interval((7 * i) % 900, 0, 2)], float(i)) for i in range(1, 400)],
        [f"x{i}" for i in range(1000)],
        task="regression",
    )
    ax = plots.parallel_rules(rules, max_rules=15, max_features=5, ax=axes())
    assert ax.get_title() == "the first 15 of 399 rules; the first that holds gives the prediction"
    assert len(ax.get_xticks()) == 5
    for name, value in (("max_rules", 0), ("max_features", 1.5)):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be an integer"):
            plots.parallel_rules(rules, ax=axes(), **{name: value})
    with pytest.raises(ValueError, match="features must be different"):
        plots.parallel_rules(rules, features=[1, "x1"], ax=axes())


def cells(ax: Any) -> np.ndarray:
    return np.asarray(ax.images[0].get_array())


@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_overlap_matrix_counts_common_rows_and_volumes(seed: int) -> None:
    random = np.random.default_rng(seed)
    ends = np.sort(random.uniform(size=(6, 3, 2)), axis=2)
    rules = RuleSet(
        [Rule([Interval(j, *map(float, ends[i, j])) for j in range(3)], i) for i in range(6)],
        ["u", "v", "w"],
        task="classification",
        domain=Domain((0, 0, 0), (1, 1, 1)),
    )
    X = random.uniform(size=(200, 3))
    counts = np.zeros((6, 6))
    for row in X:
        holds = [
            all(low < x <= high for x, (low, high) in zip(row, ends[i], strict=True))
            for i in range(6)
        ]
        counts += np.outer(holds, holds)
    assert (cells(plots.overlap_matrix(rules, X, share=False, ax=axes())) == counts).all()
    shares = cells(plots.overlap_matrix(rules, X, ax=axes()))
    assert shares == pytest.approx(counts / 200)
    volumes = cells(plots.overlap_matrix(rules, ax=axes()))
    expected = [
        [
            np.prod(
                [
                    max(0.0, min(a[1], b[1]) - max(a[0], b[0]))
                    for a, b in zip(ends[i], ends[k], strict=True)
                ]
            )
            for k in range(6)
        ]
        for i in range(6)
    ]
    assert volumes == pytest.approx(np.array(expected))


def test_group_heatmap_draws_shares_of_groups() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "low"), Rule([Interval(0, upper=3)], "high")],
        ["u"],
        task="classification",
    )
    X, groups = [[0.5], [2.0], [2.5], [9.0]], ["a", "a", "a", "b"]
    ax = plots.group_heatmap(rules, X, groups, ax=axes())
    assert cells(ax) == pytest.approx(np.array([[1 / 3, 0], [2 / 3, 0], [0, 1]]))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"]
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels == ["1: low", "2: high", "no rule"]
    ax = plots.group_heatmap(rules, X[:3], groups[:3], max_rules=1, ax=axes())
    assert cells(ax) == pytest.approx(np.array([[1 / 3]]))
    with pytest.raises(ValueError, match="at least one rule"):
        plots.group_heatmap(rules.replace(rules=[]), X, groups)


def test_overlap_matrix_handles_unbounded_and_constant_features() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], 1.0), Rule([], LinearOutput(0, [(0, 1)]))],
        ["u", "v"],
        task="regression",
        domain=Domain((0, 5), (4, 5)),
    )
    ax = plots.overlap_matrix(rules, ax=axes())
    assert cells(ax).tolist() == [[0.25, 0.25], [0.25, 1.0]]
    assert np.ma.getmaskarray(ax.images[0].get_array()).tolist() == [[True, False], [False, True]]
    assert ax.images[0].get_clim() == (0.0, 0.25)  # of pairs of different rules
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels == ["1: 1 (0.25)", "2: linear (1)"]
    assert [t.get_text() for t in ax.texts] == ["0.25", "0.25"]


def test_parallel_rules_mark_missing_conditions() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1, missing=True), Interval(1, 5, missing=True)], "a"),
            Rule([Interval(0, 2, missing=True)], "b"),
            Rule([Missing(0), OneOf(2, ["x"], missing=True)], "b"),
            Rule([Missing(2, negated=True)], "a"),
        ],
        ["u", "v", "kind"],
        task="classification",
        domain=Domain((0, 0, 0), (4, 10, 2), [(2, ["x", "y"])], (0.5, 0.0, 0.25)),
    )
    plots.rule_boxes(rules, features=["u", "v"], ax=axes())
    ax = plots.parallel_rules(rules, ax=axes())
    assert ax.get_xlabel() == "∘ or missing,   ∅ is missing,   ✓ is not missing"
    assert [t.get_text() for t in ax.texts if t.get_text() in "∘∅✓"] == list("∘∘∘∅∘✓")
    boxes = cells(plots.overlap_matrix(rules[:2], ax=axes()))
    # Half of u is missing, where both rules hold; they split the other half.
    assert boxes == pytest.approx(np.array([[0.625 * 0.5, 0.25], [0.25, 0.75]]))


def test_overlap_matrix_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="Without X the common volume of rules is drawn"):
        plots.overlap_matrix(RULES, ax=axes())
    with pytest.raises(ValueError, match="share=False counts rows, so it needs X"):
        plots.overlap_matrix(RULES, share=False, ax=axes())
    with pytest.raises(ValueError, match="X must hold at least one row"):
        plots.overlap_matrix(RULES, np.empty((0, 4)), ax=axes())
    with pytest.raises(TypeError, match="max_rules must be an integer"):
        plots.overlap_matrix(RULES, max_rules=True, ax=axes())


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (-1.6e-7, 16.00000016, ["0", "16"]),
        (-0.5, 2.75, ["-0.5", "2.75"]),
        (1e-9, 4e-9, ["0.000000001", "0.000000004"]),
        (1999.5, 2001.5, ["1999.5", "2001.5"]),
    ],
)
def test_parallel_rules_axes_show_significant_digits(low: float, high: float, written: Any) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=(low + high) / 2)], "a"), Rule([], "b")],
        ["u"],
        task="classification",
        domain=Domain((low,), (high,)),
    )
    ax = plots.parallel_rules(rules, ax=axes())
    texts = {text.get_text() for text in ax.texts}
    assert set(written) <= texts


def test_overlap_matrix_counts_rules_that_hold_at_the_constant_of_a_feature() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=5)], "a"),
            Rule([Interval(0, lower=5, missing=True)], "b"),
            Rule([Interval(1, upper=1)], "a"),
        ],
        ["u", "v"],
        task="classification",
        domain=Domain((5, 0), (5, 4), (), (0.25, 0.0)),
    )
    expected = [[0.75, 0.0, 0.1875], [0.0, 0.25, 0.0625], [0.1875, 0.0625, 0.25]]
    assert cells(plots.overlap_matrix(rules, ax=axes())).tolist() == expected


def test_drawn_rules_satisfy_all_conditions_on_a_category() -> None:
    rule = Rule([OneOf(3, ["x", "z"]), OneOf(3, ["y", "z"])], "a")
    bars = bars_of(plots.parallel_rules(RULES.replace(rules=[rule]), ax=axes()))
    third = pytest.approx(2 / 3, abs=1e-6)
    assert bars == {"rule 1": [(0, third, 1.0)]}
    rule = Rule([OneOf(3, ["x"]), OneOf(3, ["y"])], "a")
    assert not bars_of(plots.parallel_rules(RULES.replace(rules=[rule]), ax=axes()))
