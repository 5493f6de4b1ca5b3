"""Display objects, and the plots of a search."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from skescore import ExtractorSearchCV, plots
from skescore.certificates import certify
from skescore.optimal import SearchSpace, SolverLimits
from skescore.rules._text import percent_text

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["<b>", "b&b", "c"])[y]


@pytest.fixture(scope="module")
def search(data: tuple[Any, Any]) -> ExtractorSearchCV:
    return ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=["cart", "gridex"], n_trials=8, cv=2, random_state=0
    ).fit(*data)


def titles(ax: Any) -> tuple[str, str, str]:
    return ax.get_title(), ax.get_xlabel(), ax.get_ylabel()


@pytest.mark.slow
def test_displays_can_draw_again_on_other_axes(
    search: ExtractorSearchCV, data: tuple[Any, Any]
) -> None:
    X, y = data
    for display, ax in (
        (plots.ParetoDisplay.from_search(search, x="size"), plots.pareto_plot(search, x="size")),
        (plots.ScoreBarsDisplay.from_search(search, "fire"), plots.score_bars(search, "fire")),
        (plots.RulesDisplay.from_rules(search), plots.parallel_rules(search)),
        (plots.RulesDisplay.from_rules(search, X, y, kind="boxes"), plots.rule_boxes(search, X, y)),
        (plots.RulesDisplay.from_rules(search, X, kind="overlap"), plots.overlap_matrix(search, X)),
    ):
        assert titles(display.ax_) == titles(ax)
        assert display.figure_ is display.ax_.figure
        first = display.ax_
        other_ax = pyplot.subplots()[1]
        kind = {"kind": "boxes"} if isinstance(display, plots.RulesDisplay) else {}
        assert display.plot(ax=other_ax, **kind) is display
        assert display.ax_ is other_ax is not first
        pyplot.close("all")


@pytest.mark.parametrize("y", ["score", "loss"])
def test_proven_corridor_shows_certificate(
    search: ExtractorSearchCV, data: tuple[Any, Any], y: str
) -> None:
    rules = search.rules_.replace(rules=search.rules_.rules[:2])
    certificate = certify(
        rules, *data, space=SearchSpace(3, cuts=2), limits=SolverLimits(max_nodes=1)
    )
    display = plots.CorridorDisplay.from_certificate(certificate, y=y)
    curves = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    for kind, frontier in zip(certificate.kinds, certificate.frontiers, strict=True):
        result, possible = np.array(certificate.corridor(kind)).T
        if y == "loss":
            result, possible = frontier.upper, frontier.lower
        assert curves[f"{kind}s: best found"].tolist() == result.tolist()
        if (result != possible).any():
            assert curves[f"{kind}s: proven bound"][::2].tolist() == possible.tolist()
    given_value = certificate.given_score() if y == "score" else certificate.given_loss()
    assert curves["given rules"] == [given_value]
    low, high = display.ax_.get_ylim()
    assert low < given_value < high
    assert display.plot(pyplot.subplots()[1]) is display
    with pytest.raises(TypeError, match="certificate must be"):
        plots.proven_corridor(rules)


def test_boundary_display_has_axes_for_every_model(
    search: ExtractorSearchCV, data: tuple[Any, Any]
) -> None:
    display = plots.DecisionBoundaryDisplay.from_models(search, *data, resolution=6)
    assert [ax.get_title() for ax in display.axes_] == ["black box", "rules"]
    assert display.ax_ is display.axes_[-1]
    assert display.figure_ is display.ax_.figure
    other_axes = pyplot.subplots(1, 2)[1]
    assert display.plot(axes=other_axes, resolution=6).axes_.tolist() == other_axes.tolist()


@pytest.mark.parametrize(
    ("kind", "options", "function"),
    [
        ("trade_off", {}, "pareto_plot"),
        ("scores", {"score": "q"}, "score_bars"),
        ("winners", {}, "winner_map"),
        ("sensitivity", {"weight": "rho"}, "score_sensitivity"),
        ("rules", {}, "parallel_rules"),
    ],
)
def test_search_plot_draws_every_kind(
    search: ExtractorSearchCV, kind: str, options: dict[str, Any], function: str
) -> None:
    ax = search.plot(kind, **options)
    assert titles(ax) == titles(getattr(plots, function)(search, **options))
    other_ax = pyplot.subplots()[1]
    assert search.plot(kind, ax=other_ax, **options) is other_ax


def test_search_plot_rejects_unknown_kinds(search: ExtractorSearchCV) -> None:
    with pytest.raises(ValueError, match=r"kind must be one of .*got 'pie'"):
        search.plot("pie")
    with pytest.raises(ValueError, match=r"kind must be one of .*got 'pie'"):
        plots.RulesDisplay.from_rules(search, kind="pie")
    with pytest.raises(Exception, match="not fitted"):
        ExtractorSearchCV(KNeighborsClassifier()).plot()


# --- notebooks -----------------------------------------------------------------------------------


def test_search_view_shows_rules_and_quality(search: ExtractorSearchCV) -> None:
    page = search._repr_html_()
    view, _, settings = page.partition("<details><summary>Settings</summary>")
    assert search._repr_mimebundle_()["text/html"].partition("<details>")[0] in page
    assert "sk-top-container" in settings
    assert "&lt;b&gt;" in view
    assert ">b&amp;b<" in view
    assert "<b><b>" not in view
    best = search.leaderboard_.iloc[0]
    for share in (best["correctness"], best["fidelity"]):
        assert f"<b>{percent_text(share)}</b>" in view
    assert "instead of <b>KNeighborsClassifier</b>" in view
    assert "held-out rows, on which the model was not fitted" in view
    assert view.count("CART") + view.count("GridEx") >= len(search.pareto_front_)
    assert f">{best['score']:.4f}<" in view
    for rule in search.rules_:
        assert rule.statistics_text(search.rules_.output_index(rule), weighted=False) in view


def test_search_view_shows_its_warnings(data: tuple[Any, Any]) -> None:
    X, y = data
    leaky = X.assign(copy=np.unique(y, return_inverse=True)[1])
    search = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=["cart"], n_trials=1, cv=2, random_state=0
    ).fit(leaky, y)
    assert search.suspicions_
    view = search._repr_html_()
    assert all(escape(str(suspicion)) in view for suspicion in search.suspicions_)
    assert view.index("Read this first") < view.index("agree with the model")


def test_search_view_of_unfitted_search_is_scikit_learns() -> None:
    page = ExtractorSearchCV(KNeighborsClassifier())._repr_html_()
    assert "sk-top-container" in page
    assert "trials" not in page.partition("sk-top-container")[0][-20:]


def test_candidates_view_shows_means(search: ExtractorSearchCV) -> None:
    page = search.candidates_._repr_html_()
    assert f"{len(search.candidates_)} candidates, means over the folds" in page
    assert page.count("<tr>") == len(search.candidates_) + 1
    first_row = search.candidates_.table().iloc[0]
    assert f">{first_row['loss']:.3f}<" in page
