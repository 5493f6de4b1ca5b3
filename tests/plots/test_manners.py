"""Common properties of all plots: they draw on the given axes and change nothing else."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures import fold_measures

from skescore import plots
from skescore.certificates import certify
from skescore.optimal import SearchSpace, SolverLimits
from skescore.plots import COLORS, colors_of, contrast, pale
from skescore.rules import Domain, Interval, Rule, RuleSet
from skescore.tuning import Candidate, Candidates

matplotlib = pytest.importorskip("matplotlib")
pyplot = pytest.importorskip("matplotlib.pyplot")
Figure = pytest.importorskip("matplotlib.figure").Figure

POINTS = {"CART": (0.05, 3), "GridEx": (0.03, 8)}
WINE = {"CR": (0.95, 4, 1.0), "ITER": (0.92, 9, 0.75)}
RULES = RuleSet(
    [Rule([Interval(0, upper=1.0)], "a"), Rule([Interval(1, lower=1.0)], "b")],
    ["u", "v"],
    task="classification",
    domain=Domain((0, 0), (2, 3)),
)
FOUND = Candidates(
    Candidate.from_measures(
        "cart",
        {},
        r,
        (fold_measures(1 - 1 / (r + 1), r),),
    )
    for r in range(1, 6)
)
X = np.random.default_rng(0).uniform(size=(20, 2))
PROVEN = certify(
    RULES, X * 3, ["a", "b"] * 10, space=SearchSpace(3, cuts=3), limits=SolverLimits(max_nodes=1)
)
CALLS = {
    "decision_boundary": lambda **k: plots.decision_boundary(
        RULES.replace(fallback=None), X, ["a", "b"] * 10, resolution=8, title="rules", **k
    ),
    "fire_curves": lambda **k: plots.fire_curves(psi=[1, 3], **k),
    "fire_isolines": lambda **k: plots.fire_isolines(POINTS, psi=2, **k),
    "fire_surface": lambda **k: plots.fire_surface(POINTS, **k),
    "group_heatmap": lambda **k: plots.group_heatmap(RULES, X, np.arange(len(X)) % 3, **k),
    "ice_part_curves": plots.ice_part_curves,
    "ice_part_surface": plots.ice_part_surface,
    "ice_surface": lambda **k: plots.ice_surface(WINE, **k),
    "overlap_matrix": lambda **k: plots.overlap_matrix(RULES, X, **k),
    "parallel_rules": lambda **k: plots.parallel_rules(RULES, **k),
    "pareto_plot": lambda **k: plots.pareto_plot(FOUND, **k),
    "proven_corridor": lambda **k: plots.proven_corridor(PROVEN, **k),
    "rule_boxes": lambda **k: plots.rule_boxes(RULES, X, **k),
    "score_bars": lambda **k: plots.score_bars(WINE, **k),
    "score_sensitivity": lambda **k: plots.score_sensitivity(FOUND, **k),
    "winner_map": lambda **k: plots.winner_map(FOUND, **k),
}
#: What other pictures can share with these; it draws none.
STYLE = {"COLORS", "MARKERS", "colors_of", "contrast", "legend_beside", "pale"}


def test_plots_are_all_tested_here() -> None:
    displays = {name for name in plots.__all__ if name.endswith("Display")}
    assert {*CALLS, "decision_boundaries", "plot_search"} | STYLE | displays == set(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_plots_draw_on_passed_axes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a library must not show or make figures by itself")

    for function in ("show", "figure", "subplots"):
        monkeypatch.setattr(pyplot, function, refuse)
    before = dict(matplotlib.rcParams)
    left, right = Figure(layout="constrained", figsize=(12, 4)).subplots(1, 2)
    result = CALLS[name](ax=right)
    assert result is right
    assert not left.has_data()
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []
    assert right.get_title()
    assert right.get_xlabel() or name in {"parallel_rules", "score_bars"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_plots_can_be_saved_and_legends_cover_nothing(name: str) -> None:
    ax = CALLS[name]()
    assert pyplot.get_fignums() == [ax.figure.number]
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        file = BytesIO()
        ax.figure.savefig(file, format=kind, dpi=50)
        assert file.getvalue().startswith(start)
    ax.figure.canvas.draw()
    legend = ax.get_legend()
    if legend is not None:
        assert not legend.get_window_extent().overlaps(ax.patch.get_window_extent())
        inside = ax.figure.bbox
        box = legend.get_window_extent()
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1 + 1


@pytest.mark.parametrize("name", CALLS)
def test_plots_reject_ax_of_other_types(name: str) -> None:
    for wrong in (Figure(), np.array([1, 2]), "ax"):
        with pytest.raises(TypeError, match="ax must be the Axes of matplotlib"):
            CALLS[name](ax=wrong)


def test_decision_boundaries_create_one_figure() -> None:
    axes = plots.decision_boundaries({"one": RULES, "two": RULES}, X, resolution=5)
    assert len(axes) == 2
    assert pyplot.get_fignums() == [axes[0].figure.number]


def test_plots_error_states_command_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install.*"matplotlib'):
        plots.ice_part_curves()


@pytest.mark.slow
def test_import_of_plots_does_not_import_matplotlib() -> None:
    program = "import skescore.plots, sys; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


@pytest.mark.parametrize("name", sorted({*CALLS, "decision_boundaries"}))
def test_plots_document_their_parameters(name: str) -> None:
    function = getattr(plots, name)
    text = inspect.getdoc(function)
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"\n{section}\n---" in text
    body = re.split(r"\n\n\w[\w ]*\n-{3,}", text.split("Parameters\n----------\n")[1])[0]
    documented = {}
    for names, says in re.findall(r"^\**(\w[\w, ]*) : (.+)$", body, flags=re.MULTILINE):
        documented |= dict.fromkeys(names.split(", "), says)
    parameters = inspect.signature(function).parameters
    assert list(documented) == list(parameters)
    for key, says in documented.items():
        default = parameters[key].default
        _, separator, value = says.partition("default=")
        if not separator:
            assert default is (None if says.endswith("optional") else inspect.Parameter.empty), key
        elif "," in names_of(body, key):
            values = ast.literal_eval(f"({value},)")
            assert default in values
        else:
            assert ast.literal_eval(value) == default, key


def names_of(body: str, key: str) -> str:
    """Return the names that share the docstring line of a parameter."""
    (line,) = [
        line
        for line in re.findall(r"^(\w[\w, ]*) : ", body, flags=re.MULTILINE)
        if key in line.split(", ")
    ]
    return line


# --- colors ---

#: What people without green (deuteranopia) and without red cones (protanopia) see of linear RGB:
#: G. Machado, M. Oliveira, L. Fernandes: A physiologically-based model for simulation of color
#: vision deficiency. IEEE TVCG 15, 2009, severity 1.
BLIND = {
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


def linear(color: str) -> np.ndarray:
    rgb = np.asarray(matplotlib.colors.to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return CIELAB coordinates of linear sRGB."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", BLIND)
def test_colors_differ_for_color_blind_readers(kind: str) -> None:
    recorded = [lab(np.array(BLIND[kind]) @ linear(color)) for color in COLORS]
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(recorded) for b in recorded[:i]]
    assert min(gaps) > 10  # colors differ visibly side by side


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_contrast_makes_text_readable_on_any_color(rgb: tuple[float, float, float]) -> None:
    color = matplotlib.colors.to_hex(rgb)
    luminance = float(linear(color) @ [0.2126, 0.7152, 0.0722])
    text = 0.0 if contrast(color) == "black" else 1.0
    low, high = sorted((luminance, text))
    assert (high + 0.05) / (low + 0.05) >= 4.5  # WCAG 2.2, level AA


def test_colors_of_many_classes_differ() -> None:
    for n in (1, 8, 9, 40):
        assert len(set(colors_of(n))) == n
    # Ten classes have no order, so that neighbors differ as much as other pairs.
    ten = np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in colors_of(10)])
    assert np.linalg.norm(ten[1:] - ten[:-1], axis=1).min() > 60
    assert pale("#000000", 0.0) == "#ffffff"
    assert pale("#102030", 1.0) == "#102030"


def test_score_bars_shorten_names_in_middle() -> None:
    names = ("a" * 22, "mean of the radius, largest value (mm)", "")
    ax = plots.score_bars(dict.fromkeys(names, (0.95, 4, 1.0)), ax=Figure().subplots())
    labels = {label.get_text() for label in ax.get_xticklabels()}
    assert labels == {"a" * 22, "mean of th… value (mm)", '""'}
