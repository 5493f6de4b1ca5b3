"""Surfaces, curves and isolines of scores compared with the score functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore import plots
from skescore.metrics import fire_score, ice_performance, ice_readability, ice_score

pytest.importorskip("matplotlib")
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.figure import Figure

#: FiRe, Table 1: loss and rules by the paper's accuracies.
IRIS = {"CART": (0.05, 3), "ITER": (0.11, 3), "GridEx": (0.03, 8)}
#: ICE, Table 1, Wine: F1, size, completeness.
WINE = {
    "EX": (0.80, 3, 1.0),
    "CR": (0.95, 4, 1.0),
    "ITER": (0.92, 9, 0.75),
    "G": (0.73, 5, 1.0),
    "CART": (0.89, 3, 1.0),
}


def axes(projection: str | None = None) -> Any:
    return Figure().add_subplot(projection=projection)


def mesh_of(ax: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the corners of the pixels of the only color map, and their values."""
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    corners = mesh.get_coordinates()
    # The corners lie halfway between the drawn centers, and so do midpoints of adjacent corners.
    return corners[0, :, 0], corners[:, 0, 1], np.asarray(mesh.get_array())


def points_of(ax: Any) -> dict[str, np.ndarray]:
    return {
        c.get_label(): np.asarray(c.get_offsets())
        for c in ax.collections
        if isinstance(c, PathCollection)
    }


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- surfaces ---


@pytest.mark.parametrize("psi", [0.7, 1.0, 3.0, 50.0])
def test_fire_surface_equals_fire_score(psi: float) -> None:
    ax = plots.fire_surface(psi=psi, n_rules=(1, 12), loss=(0, 0.5), ax=axes())
    columns, lines, values = mesh_of(ax)
    assert ax.get_xlim() == (1, 12)
    assert ax.get_ylim() == (0, 0.5)
    low, high = columns[:-1], columns[1:]
    at = np.linspace(0, len(lines) - 2, 9).astype(int)
    losses = (lines[at] + lines[at + 1]) / 2
    # Pixels within one step have the score of their center, except for the slowly varying factor.
    is_one_step = (np.ceil(low / psi) == np.ceil(high / psi)) & (low >= 1)
    middle = (low + high)[is_one_step] / 2
    expected = fire_score(losses[:, None], middle[None, :], psi=psi)
    assert values.shape == (len(lines) - 1, len(columns) - 1)
    assert is_one_step.mean() > 0.8
    assert values[np.ix_(at, np.flatnonzero(is_one_step))] == pytest.approx(expected, rel=2e-3)


def test_fire_surface_draws_steps_sharply() -> None:
    # Around 3 rules with psi 3, pixels jump from one step to two within a thousandth of a rule.
    ax = plots.fire_surface(psi=3, n_rules=(1, 12), loss=(0, 1), ax=axes())
    columns, _, values = mesh_of(ax)
    top = values[-1] / values[-1][0]
    jump = int(np.argmax(np.diff(top) > 0.5))
    assert columns[jump + 1] == pytest.approx(3.0, abs=1e-3)
    assert top[jump + 1] / top[jump] == pytest.approx(2.0, rel=1e-6)


def test_fire_surface_draws_points() -> None:
    ax = plots.fire_surface(IRIS, psi=3, loss_label="1 - accuracy", ax=axes())
    result = points_of(ax)
    assert {name: index.tolist() for name, index in result.items()} == {
        name: [[rules, loss]] for name, (loss, rules) in IRIS.items()
    }
    assert texts_of(ax) == list(IRIS)
    assert ax.get_ylabel() == "1 - accuracy"
    assert "ψ = 3" in ax.get_title()


def test_fire_surface_draws_points_in_three_dimensions() -> None:
    ax = plots.fire_surface(IRIS, psi=3, ax=axes("3d"))
    points = [c for c in ax.collections if c.get_label() in IRIS]
    for point in points:
        x, y, z = (float(np.ravel(v)[0]) for v in point._offsets3d)
        assert z == pytest.approx(fire_score(y, x, psi=3))
    assert len(points) == 3
    assert ax.zaxis.get_data_interval()[1] >= fire_score(0.11, 8, psi=3)


@pytest.mark.parametrize(("phi", "rho", "c"), [(1.0, 1.0, 1.0), (3.0, 0.5, 0.4)])
def test_ice_surface_equals_ice_score(phi: float, rho: float, c: float) -> None:
    ax = plots.ice_surface(phi=phi, rho=rho, completeness=c, ax=axes())
    columns, lines, values = mesh_of(ax)
    p, r = np.linspace(0, 1, len(columns) - 1), np.linspace(1, 30, len(lines) - 1)
    assert values == pytest.approx(ice_score(p[None, :], r[:, None], c, phi=phi, rho=rho))
    (mesh,) = [m for m in ax.collections if isinstance(m, QuadMesh)]
    assert mesh.get_clim() == (0.0, 1.0)  # all plots share one color scale
    assert "φ = " + format(phi, ".3g") in ax.get_title()


def test_ice_surface_colors_points_by_score() -> None:
    ax = plots.ice_surface(WINE, phi=3, ax=axes())
    values = {
        c.get_label(): float(np.asarray(c.get_array())[0])
        for c in ax.collections
        if isinstance(c, PathCollection)
    }
    # Table 1 of the ICE paper, row with phi = 3 and rho = 1.
    assert values == pytest.approx(
        {"EX": 0.862, "CR": 0.964, "ITER": 0.669, "G": 0.706, "CART": 0.949}, abs=0.007
    )
    assert points_of(ax)["ITER"].tolist() == [[0.92, 9.0]]


def test_ice_surface_draws_layers_of_completeness() -> None:
    ax = plots.ice_surface(WINE, completeness=[0.2, 0.6], ax=axes("3d"))
    surfaces = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert len(surfaces) == 2
    assert ax.get_zlim() == (0.0, 1.0)
    with pytest.raises(ValueError, match="completeness must be one number on 2D axes"):
        plots.ice_surface(completeness=[0.2, 0.6], ax=axes())


def test_ice_surface_rejects_unknown_completeness_kind() -> None:
    with pytest.raises(ValueError, match="completeness_kind must be 'volume' or 'instances'"):
        plots.ice_surface(WINE, completeness_kind="rows", ax=axes())


@pytest.mark.parametrize("part", ["performance", "readability"])
def test_ice_part_surface_marks_half_value(part: str) -> None:
    ax = plots.ice_part_surface(part, weight=(0.5, 5.0), ax=axes())
    lines = [c for c in ax.collections if not isinstance(c, QuadMesh)]
    x, weight = np.concatenate([path.vertices for path in lines[0].get_paths()]).T
    # The ICE paper, below equation 15, and section 3.3.
    expected = 1 - 1 / weight if part == "performance" else 5 / (0.3 * weight)
    assert len(x) > 50
    assert x == pytest.approx(expected, rel=0.01, abs=0.005)


# --- curves ---


def test_fire_curves_equal_fire_score() -> None:
    ax = plots.fire_curves("n_rules", psi=[1, 5], fixed=[0.1, 2.0], ax=axes())
    assert texts_of(ax) == [
        "ψ = 1, p = 0.1",
        "ψ = 1, p = 2",
        "ψ = 5, p = 0.1",
        "ψ = 5, p = 2",
    ]
    for line, (psi, loss) in zip(ax.lines, [(1, 0.1), (1, 2.0), (5, 0.1), (5, 2.0)], strict=True):
        r, score = line.get_data()
        assert r[0] == 1
        assert r[-1] == 20
        assert score == pytest.approx(fire_score(loss, r, psi=psi))
    ax = plots.fire_curves("loss", psi=3, fixed=7, over=(0, 4), ax=axes())
    p, score = ax.lines[0].get_data()
    assert score == pytest.approx(3 * p * 7**0.05)


@pytest.mark.parametrize("part", ["performance", "readability"])
@pytest.mark.parametrize("derivative", [1, 2])
def test_ice_part_curves_derivatives_equal_differences(part: str, derivative: int) -> None:
    weights = (0.5, 3.0)
    lower = plots.ice_part_curves(part, weights=weights, derivative=derivative - 1, ax=axes())
    ax = plots.ice_part_curves(part, weights=weights, derivative=derivative, ax=axes())
    for before, after in zip(lower.lines[:2], ax.lines[:2], strict=True):
        x, y = before.get_data()
        slope = after.get_ydata()
        assert slope[1:-1] == pytest.approx(np.gradient(y, x)[1:-1], abs=2e-3 * np.ptp(slope))


def test_ice_part_curves_equal_parts_of_ice() -> None:
    for part, function in (("performance", ice_performance), ("readability", ice_readability)):
        ax = plots.ice_part_curves(part, weights=2.0, ax=axes())
        x, y = ax.lines[0].get_data()
        name = "phi" if part == "performance" else "rho"
        assert y == pytest.approx(function(x, **{name: 2.0}))


# --- isolines ---


def test_fire_isolines_equal_isoline_of_40_of_paper() -> None:
    # Figure 3 of the FiRe paper: 1, 2, 4, 6 and 8 rules with these errors are equivalent.
    points = {"one rule": (40.0, 1), "better": (5.0, 4), "worse": (12.0, 6)}
    ax = plots.fire_isolines(points, reference="one rule", n_rules=(1, 8), ax=axes())
    (line,) = [line for line in ax.lines if "1-FiRe" in line.get_label()]
    r, p = line.get_data()
    for rules, printed in ((1, 40.0), (2, 19.3), (4, 9.3), (6, 6.1), (8, 4.5)):
        assert round(float(p[np.searchsorted(r, rules)]), 1) == pytest.approx(printed, abs=0.051)
    assert fire_score(p, r) == pytest.approx(np.full(len(r), 40.0))
    better, worse = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert (better.get_label(), worse.get_label()) == ("better", "worse")
    assert better.get_paths()[0].contains_point((4, 5.0))
    assert not better.get_paths()[0].contains_point((6, 12.0))
    assert worse.get_paths()[0].contains_point((6, 12.0))
    assert ax.get_title() == "Isolines of 1-FiRe through one rule"


def test_fire_isolines_of_two_psi_disagree_as_in_paper() -> None:
    # Figure 4 of the FiRe paper, with the crosses of the text.
    crosses = {
        "blue": (1.0, 4),
        "orange": (0.5, 8),
        "fuchsia": (0.5, 2),
        "purple": (2.0, 3),
        "green": (1.5, 1),
        "red": (0.8, 5),
    }
    ax = plots.fire_isolines(crosses, psi=[2, 6], reference="blue", n_rules=(1, 10), ax=axes())
    lines = [line for line in ax.lines if "-FiRe" in line.get_label()]
    for line, psi in zip(lines, (2, 6), strict=True):
        r, p = line.get_data()
        assert fire_score(p, r, psi=psi) == pytest.approx(fire_score(1.0, 4, psi=psi))
    two, six = [c.get_paths()[0] for c in ax.collections if isinstance(c, PolyCollection)]
    # The points lie slightly beyond one rule, which is the border of the region.
    assert two.contains_point((1.001, 1.5))
    assert not six.contains_point((1.001, 1.5))
    assert six.contains_point((5, 0.8))
    assert not two.contains_point((5, 0.8))
    for region in (two, six):
        assert region.contains_point((2, 0.5))
        assert not region.contains_point((3, 2.0))
    hatches = {c.get_hatch() for c in ax.collections if isinstance(c, PolyCollection)}
    assert len(hatches) == 2


@settings(max_examples=10)
@given(
    loss=st.floats(0.01, 100),
    rules=st.integers(1, 40),
    psi=st.floats(0.2, 50),
)
def test_fire_isolines_separate_better_points(loss: float, rules: int, psi: float) -> None:
    ax = plots.fire_isolines(psi=psi, reference=(loss, rules), ax=axes())
    r, p = ax.lines[0].get_data()
    score = fire_score(loss, rules, psi=psi)
    assert fire_score(p, r, psi=psi) == pytest.approx(np.full(len(r), score))
    assert fire_score(0.99 * p, r, psi=psi).max() < score


def test_fire_isolines_share_colors_with_points() -> None:
    ax = plots.fire_isolines(IRIS, psi=2, ax=axes())
    points = [c for c in ax.collections if isinstance(c, PathCollection)]
    from matplotlib.colors import to_hex

    for line, point, (loss, rules) in zip(ax.lines, points, IRIS.values(), strict=True):
        assert to_hex(line.get_color()) == to_hex(point.get_facecolor()[0])
        r, p = line.get_data()
        assert fire_score(p, r, psi=2) == pytest.approx(fire_score(loss, rules, psi=2))
    assert texts_of(ax) == list(IRIS)  # lines have no text of their own


def test_fire_isolines_of_many_points_show_best() -> None:
    candidates = {f"candidate {i}": (0.5 / i, i) for i in range(1, 31)}
    ax = plots.fire_isolines(candidates, ax=axes())
    scores = [fire_score(loss, rules) for loss, rules in candidates.values()]
    (line,) = ax.lines
    r, p = line.get_data()
    assert fire_score(p, r) == pytest.approx(np.full(len(r), min(scores)))
    assert line.get_label().startswith("the best: 1-FiRe")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"psi": 0}, "psi must be a positive number or several"),
        ({"psi": [1, 2]}, "Lines for several psi need a common point"),
        ({"results": IRIS, "reference": "Trepan"}, "reference must be the label of one"),
        ({"reference": (1.0,)}, r"reference must be \(loss, number of rules\)"),
        ({"reference": (1.0, 3), "level": 2.0}, "a reference or a level, not both"),
        ({"level": -1}, "level must be a positive finite score"),
        ({"n_rules": (0, 5)}, "n_rules must be two increasing finite numbers .* from 1 on"),
        ({"loss": (1, 0)}, "loss must be two increasing finite numbers"),
        ({"results": {"a": (1.0, 2, 3)}}, "A dict must give 2 finite numbers"),
        ({"results": {}}, "must hold at least one"),
    ],
)
def test_fire_isolines_reject_invalid_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plots.fire_isolines(**arguments, ax=axes())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda ax: plots.fire_surface(psi=-1, ax=ax), "psi"),
        (lambda ax: plots.fire_surface(IRIS, loss=(-1, 1), ax=ax), "loss must be two increasing"),
        (lambda ax: plots.fire_curves("rules", ax=ax), "along must be one of 'n_rules', 'loss'"),
        (lambda ax: plots.fire_curves(fixed=0.0, along="loss", ax=ax), "n_rules"),
        (lambda ax: plots.ice_part_curves("size", ax=ax), "part must be one of 'performance'"),
        (
            lambda ax: plots.ice_part_curves(derivative=3, ax=ax),
            "derivative must be one of 0, 1, 2",
        ),
        (lambda ax: plots.ice_part_surface("p", ax=ax), "part must be one of 'performance'"),
        (lambda ax: plots.ice_surface(completeness=1.5, ax=ax), "completeness must be from 0 to 1"),
        (lambda ax: plots.ice_surface(phi=0, ax=ax), "phi"),
        (lambda ax: plots.ice_surface(performance=(0, 2), ax=ax), "performance"),
    ],
    ids=["psi", "loss", "along", "rules", "part", "derivative", "part2", "share", "phi", "range"],
)
def test_score_plots_reject_invalid_arguments(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(axes())


@pytest.mark.parametrize("score", ["ice", "q"])
def test_score_bars_of_many_show_best(score: str) -> None:
    candidates = {f"tree of seed {k}": (0.5 + k / 1000, 1 + k % 7, 1.0) for k in range(300)}
    everything = plots.score_bars(dict(list(candidates.items())[:40]), score, ax=axes())
    assert len(everything.get_xticks()) == 40
    assert "best" not in everything.get_title()
    assert "worst" in texts_of(everything)
    ax = plots.score_bars(candidates, score, ax=axes())
    heights = [bar.get_height() for bar in ax.patches]
    quality = {
        name: ice_score(p, r, c) if score == "ice" else -(1 - p) * r * (2 - c)
        for name, (p, r, c) in candidates.items()
    }
    best = sorted(quality.values(), reverse=True)[:40]
    assert heights == pytest.approx(best if score == "ice" else np.negative(best))
    first = next(text.get_text() for text in ax.get_xticklabels())
    assert first == max(quality, key=quality.get)
    assert ax.get_title().endswith(": the best 40 of 300")
    assert texts_of(ax) == ["best"]  # the worst one is not drawn
    assert {bar.get_hatch() for bar in ax.patches[1:]} <= {None, "*"}
