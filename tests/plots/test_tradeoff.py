"""Fronts, winners, sensitivity and bars compared with the underlying numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from measures import fold_measures

from skescore import plots
from skescore.metrics import fire_score, ice_score, q_score
from skescore.registry import extractor_label
from skescore.tuning import Candidate, Candidates, winning_regions

pytest.importorskip("matplotlib")
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

#: ICE, Table 1, Wine: F1, size, completeness.
WINE = {
    "EX": (0.80, 3, 1.0),
    "CR": (0.95, 4, 1.0),
    "ITER": (0.92, 9, 0.75),
    "G": (0.73, 5, 1.0),
    "CART": (0.89, 3, 1.0),
}


def axes() -> Any:
    return Figure().add_subplot()


def fold(p: float, r: float, c: float = 1.0) -> dict[str, float]:
    return fold_measures(p, r, completeness_volume=c)


def random_candidates(n: int, n_folds: int = 2, seed: int = 0) -> Candidates:
    random = np.random.default_rng(seed)
    results = []
    for position in range(n):
        r = int(random.integers(1, 25))
        best = 1 - 0.5 * np.exp(-r / 6) * random.uniform(0.5, 1.4)
        folds = tuple(
            fold(min(1.0, best + random.normal(0, 0.02)), r, random.uniform(0.6, 1))
            for _ in range(n_folds)
        )
        results.append(
            Candidate.from_measures(
                ("cart", "gridex", "iter")[position % 3], {"k": position}, position, folds
            )
        )
    return Candidates(results)


def rows_of(candidates: Candidates, **more: Any) -> pd.DataFrame:
    """Return the candidates as rows of a benchmark."""
    return pd.DataFrame(
        [
            {
                "data": "wine",
                "black_box": "forest",
                "extractor": c.extractor,
                "params": json.dumps(c.params),
                "seed": 0,
                "fold": k,
                "state": "complete",
                **f.measures,
                **more,
            }
            for c in candidates
            for k, f in enumerate(c.folds)
        ]
    )


def offsets(ax: Any, labels: set[str]) -> np.ndarray:
    results = [np.asarray(c.get_offsets()) for c in ax.collections if c.get_label() in labels]
    return np.concatenate(results)


# --- front ---


@pytest.mark.parametrize("n", [1, 2, 40, 500])
def test_pareto_plot_marks_front(n: int) -> None:
    candidates = random_candidates(n)
    ax = plots.pareto_plot(candidates, ax=axes())
    r, p = candidates.means("n_rules"), candidates.means("loss")
    points = offsets(ax, {"CART", "GridEx", "ITER"})
    assert sorted(map(tuple, points.tolist())) == sorted(zip(r.tolist(), p.tolist(), strict=True))
    front = {
        (r[i], p[i])
        for i in range(n)
        if not any(r[j] <= r[i] and p[j] <= p[i] and (r[j] < r[i] or p[j] < p[i]) for j in range(n))
    }
    (line,) = [line for line in ax.lines if line.get_label().startswith("Pareto front")]
    x, y = line.get_data()
    assert np.column_stack([x, y]) == pytest.approx(np.array(sorted(front)))
    assert line.get_drawstyle() == "steps-post"
    knee = offsets(ax, {c.get_label() for c in ax.collections if "knee" in c.get_label()})
    assert len(knee) == 1
    assert np.abs(np.array(sorted(front)) - knee[0]).sum(axis=1).min() < 1e-9
    assert ax.get_title().startswith(f"{n} candidate{'' if n == 1 else 's'}, {len(front)} on")


def test_pareto_plot_marks_knee() -> None:
    # In the example of skescore.tuning.knee, the knee has three rules.
    losses = [(0.6, 1), (0.3, 2), (0.05, 3), (0.04, 8), (0.03, 20)]
    candidates = Candidates(
        Candidate.from_measures("cart", {}, i, (fold(1 - p, r),)) for i, (p, r) in enumerate(losses)
    )
    ax = plots.pareto_plot(candidates, ax=axes())
    (label,) = [c.get_label() for c in ax.collections if "knee" in c.get_label()]
    assert label == "knee: n_rules = 3, loss = 0.05"


def test_pareto_plot_is_equal_for_tables_and_candidates() -> None:
    candidates = random_candidates(12)
    broken = pd.DataFrame(
        [
            {
                "data": "wine",
                "black_box": "forest",
                "extractor": "iter",
                "params": "{}",
                "seed": 0,
                "fold": 0,
                "state": "failed",
            }
        ]
    )
    table = pd.concat([rows_of(candidates), broken], ignore_index=True)
    one, other = plots.pareto_plot(candidates, ax=axes()), plots.pareto_plot(table, ax=axes())
    names = {"CART", "GridEx", "ITER"}
    assert offsets(other, names) == pytest.approx(offsets(one, names))
    line = [ax.lines[0].get_xydata() for ax in (one, other)]
    assert line[0] == pytest.approx(line[1])


def test_pareto_plot_colors_show_score() -> None:
    candidates = random_candidates(30)
    ax = plots.pareto_plot(candidates, color="ice", phi=3, rho=0.5, ax=axes())
    table = candidates.table()
    for name in ("cart", "gridex", "iter"):
        table_rows = table[table["extractor"] == name]
        (points,) = [c for c in ax.collections if c.get_label() == extractor_label(name)]
        expected = ice_score(
            table_rows["performance"],
            table_rows["size"],
            table_rows["completeness_volume"],
            phi=3,
            rho=0.5,
        )
        assert np.asarray(points.get_array()) == pytest.approx(np.asarray(expected))


def test_pareto_plot_accepts_measures_on_axes() -> None:
    candidates = random_candidates(10)
    ax = plots.pareto_plot(
        candidates, "size", "incompleteness", completeness="instances", ax=axes()
    )
    points = offsets(ax, {"CART", "GridEx", "ITER"})
    assert set(points[:, 1]) == {0.0}
    assert ax.get_ylabel() == "incompleteness, 1 − c (share of rows)"
    wide = Candidates(
        Candidate.from_measures("cart", {}, i, (fold(0.5 + i / 10, 4.0**i),)) for i in range(4)
    )
    assert plots.pareto_plot(wide, ax=axes()).get_xscale() == "log"
    assert plots.pareto_plot(wide, log=False, ax=axes()).get_xscale() == "linear"


@pytest.mark.parametrize("draw", [plots.pareto_plot, plots.winner_map, plots.score_sensitivity])
def test_plots_of_results_reject_several_data_sets(draw: Any) -> None:
    table = pd.concat(
        [rows_of(random_candidates(3)), rows_of(random_candidates(3)).assign(data="iris")]
    )
    with pytest.raises(ValueError, match=r"one data, .* got \['iris', 'wine'\]"):
        draw(table, ax=axes())


@pytest.mark.parametrize("results", [None, 3, "wine", [1, 2], {"a": (1, 2)}])
def test_pareto_plot_rejects_other_results(results: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"fitted ExtractorSearchCV|dict"):
        plots.pareto_plot(results, ax=axes())


def test_pareto_plot_rejects_incomplete_tables() -> None:
    with pytest.raises(ValueError, match="must have the column 'extractor'"):
        plots.pareto_plot(pd.DataFrame({"loss": [1.0]}), ax=axes())
    with pytest.raises(ValueError, match="None of the 1 rows of results is finished and has rules"):
        plots.pareto_plot(rows_of(random_candidates(1, 1)).assign(state="failed"), ax=axes())
    with pytest.raises(ValueError, match="lacks the columns"):
        plots.pareto_plot(rows_of(random_candidates(3)).drop(columns="loss"), ax=axes())
    with pytest.raises(ValueError, match="objectives must be"):
        plots.pareto_plot(random_candidates(3), "rules", ax=axes())
    with pytest.raises(ValueError, match="color must be one of"):
        plots.pareto_plot(random_candidates(3), color="size", ax=axes())


def test_pareto_plot_is_equal_for_search_and_leaderboard() -> None:
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    from skescore import ExtractorSearchCV

    X, y = load_iris(return_X_y=True)
    search = ExtractorSearchCV(
        DecisionTreeClassifier(random_state=0),
        extractors=("cart",),
        n_trials=4,
        cv=2,
        random_state=0,
    ).fit(X, y)
    one = plots.pareto_plot(search, ax=axes())
    other = plots.pareto_plot(search.leaderboard_, ax=axes())
    assert np.sort(offsets(one, {"CART"}), axis=0) == pytest.approx(
        np.sort(offsets(other, {"CART"}), axis=0)
    )
    best = plots.score_bars(search, ax=axes()).patches[0].get_height()
    assert best == pytest.approx(search.candidates_.scores("ice").mean(axis=1).max())


# --- weights ---


def test_winner_map_colors_show_winners() -> None:
    candidates = random_candidates(20)
    regions = winning_regions(candidates)
    ax = plots.winner_map(candidates, ax=axes())
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    corners, values = mesh.get_coordinates(), np.asarray(mesh.get_array())
    for row, column in [(3, 5), (100, 100), (190, 20), (40, 180)]:
        phi = np.sqrt(corners[row, column, 0] * corners[row, column + 1, 0])
        rho = np.sqrt(corners[row, column, 1] * corners[row + 1, column, 1])
        position = regions.winner_index(phi=phi, rho=rho)
        assert names[int(values[row, column])].startswith(f"{position}: ")
    ax.figure.canvas.draw()
    for axis, sign in ((ax.xaxis, "φ: "), (ax.yaxis, "ρ: ")):  # like in other plots
        assert axis.get_label().get_text().startswith(sign)
        assert {"0.2", "1", "5"} <= {tick.get_text() for tick in axis.get_ticklabels()}
    strip = plots.winner_map(candidates, "fire", within=(0.5, 20), ax=axes())
    assert strip.get_xlabel() == "ψ: divisor of the number of rules; the quotient is rounded up"
    table = winning_regions(candidates, "fire", within=(0.5, 20)).table
    spans = [p for p in strip.patches if isinstance(p, Rectangle)]
    assert [p.get_x() for p in spans] == pytest.approx(table["low"].tolist())
    assert strip.get_xlim() == (0.5, 20)


def test_winner_map_accepts_regions() -> None:
    regions = winning_regions(random_candidates(5), "fire")
    ax = plots.winner_map(regions, ax=axes())
    assert len(ax.patches) == len(regions.table)


@pytest.mark.parametrize("weight", ["phi", "rho", "psi"])
def test_score_sensitivity_draws_means_over_folds(weight: str) -> None:
    candidates = random_candidates(15)
    ax = plots.score_sensitivity(candidates, weight, phi=2.0, rho=3.0, top=4, ax=axes())
    labeled_lines = [line for line in ax.lines if line.get_label()[0].isdigit()]
    assert len(labeled_lines) == 4
    score = "fire" if weight == "psi" else "ice"
    leaders = set()
    for line in labeled_lines:
        position = int(line.get_label().partition(":")[0])
        x, y = line.get_data()
        for k in (0, 100, 240):
            weights = {"phi": 2.0, "rho": 3.0, "psi": 1.0, weight: float(x[k])}
            assert y[k] == pytest.approx(candidates.scores(score, **weights).mean(axis=1)[position])
        leaders |= {position}
    best = [
        regions_place(candidates, score, {"phi": 2.0, "rho": 3.0, weight: float(v)})
        for v in (0.1, 1.0, 10.0)
    ]
    assert set(best) <= leaders
    mark = next(line for line in ax.lines if line.get_label() == "weight now")
    assert mark.get_xdata()[0] == {"phi": 2.0, "rho": 3.0, "psi": 1.0}[weight]
    assert len(ax.lines) == 15 + 1


def regions_place(candidates: Candidates, score: str, weights: dict[str, float]) -> int:
    scores = candidates.scores(score, **weights).mean(axis=1)
    return int(scores.argmax() if score == "ice" else scores.argmin())


def test_score_sensitivity_of_one_candidate_has_one_line() -> None:
    ax = plots.score_sensitivity(random_candidates(1), ax=axes())
    assert len(ax.lines) == 2
    with pytest.raises(ValueError, match="weight must be one of"):
        plots.score_sensitivity(random_candidates(2), "size", ax=axes())
    with pytest.raises(ValueError, match="top must be a whole number"):
        plots.score_sensitivity(random_candidates(2), top=0, ax=axes())


# --- bars ---


def bars_of(ax: Any) -> list[Rectangle]:
    return [
        bar
        for container in ax.containers
        if hasattr(container, "patches")
        for bar in container.patches
    ]


@pytest.mark.parametrize(
    ("score", "weights", "best", "worst"),
    [  # bold and italic figures for Wine in Table 1 of the ICE paper
        ("q", {}, "CR", "G"),
        ("fire", {"psi": 1}, "CR", "G"),
        ("fire", {"psi": 3}, "CR", "G"),
        ("ice", {}, "CART", "ITER"),
        ("ice", {"phi": 3}, "CR", "ITER"),
        ("ice", {"rho": 3}, "CART", "ITER"),
    ],
)
def test_score_bars_mark_best_and_worst_of_paper(
    score: str, weights: dict[str, float], best: str, worst: str
) -> None:
    ax = plots.score_bars(WINE, score, ax=axes(), **weights)
    bars = dict(zip(WINE, bars_of(ax), strict=True))
    for name, (p, r, c) in WINE.items():
        expected = {
            "q": q_score(1 - p, r, c),
            "fire": 0.0,
            "ice": ice_score(p, r, c, **{k: v for k, v in weights.items() if k != "psi"}),
        }[score]
        if score == "fire":
            expected = fire_score(1 - p, r, **weights)
        assert bars[name].get_height() == pytest.approx(expected)
    assert {name: bar.get_hatch() for name, bar in bars.items() if bar.get_hatch()} == {
        best: "*",
        worst: "x",
    }
    assert [t.get_text() for t in ax.get_xticklabels()] == list(WINE)
    assert ("greater" if score == "ice" else "smaller") in ax.get_ylabel()


def test_score_bars_of_benchmark_are_means_of_scores() -> None:
    a = [fold(0.9, 2), fold(0.5, 6)]
    b = [fold(0.8, 3), fold(0.7, 3)]
    candidates = Candidates(
        [
            Candidate.from_measures("cart", {}, 0, tuple(a)),
            Candidate.from_measures("iter", {}, 1, tuple(b)),
        ]
    )
    table = pd.concat([rows_of(candidates), rows_of(candidates).assign(data="iris", loss=0.5)])
    ax = plots.score_bars(table, "fire", psi=2, ax=axes())
    first, second, third, fourth = bars_of(ax)
    scores = [fire_score(f["loss"], f["size"], psi=2) for f in a]
    assert first.get_height() == pytest.approx(np.mean(scores))  # not the score of the mean inputs
    assert second.get_height() == pytest.approx(
        np.mean([fire_score(f["loss"], f["size"], psi=2) for f in b])
    )
    assert [t.get_text() for t in ax.get_xticklabels()] == ["wine", "iris"]
    assert first.get_x() < second.get_x() < 0.5 < third.get_x() < fourth.get_x()
    assert to_hex(first.get_facecolor()) == to_hex(third.get_facecolor())
    whisker = (
        next(c for c in ax.containers if hasattr(c, "patches"))
        .errorbar.lines[2][0]
        .get_segments()[0]
    )
    assert np.ptp(whisker[:, 1]) / 2 == pytest.approx(np.std(scores, ddof=1))
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == ["CART", "ITER", "best", "worst", "± deviation"]


def test_score_bars_of_candidates_show_best_per_extractor() -> None:
    candidates = random_candidates(30)
    ax = plots.score_bars(candidates, "loss", ax=axes())
    table = candidates.table()
    expected = [table[table["extractor"] == n]["loss"].min() for n in ("cart", "gridex", "iter")]
    found_bars = dict(zip([t.get_text() for t in ax.get_xticklabels()], bars_of(ax), strict=True))
    assert [found_bars[n].get_height() for n in ("CART", "GridEx", "ITER")] == pytest.approx(
        expected
    )


def test_score_bars_do_not_highlight_equal_bars() -> None:
    ax = plots.score_bars({"a": (0.9, 3, 1), "b": (0.9, 3, 1)}, ax=axes())
    assert [bar.get_hatch() for bar in bars_of(ax)] == [None, None]
    with pytest.raises(ValueError, match="score must be one of"):
        plots.score_bars(WINE, "f1", ax=axes())
    with pytest.raises(ValueError, match="no column 'engine'"):
        plots.score_bars(rows_of(random_candidates(2)), by="engine", ax=axes())


def test_fire_isolines_enlarge_overlapping_points() -> None:
    points = {"a": (0.1, 3), "b": (0.1, 3), "c": (0.2, 4), "d": (0.1, 3)}
    ax = plots.fire_isolines(points, ax=axes())
    sizes = {
        c.get_label(): float(c.get_sizes()[0])
        for c in ax.collections
        if isinstance(c, PathCollection)
    }
    assert sizes["a"] > sizes["b"] > sizes["d"] == sizes["c"]


def test_score_bars_of_candidates_show_deviations() -> None:
    candidates = Candidates(
        [
            Candidate.from_measures("cart", {}, 0, (fold(0.96, 2), fold(0.94, 2))),
            Candidate.from_measures("iter", {}, 1, (fold(0.93, 3), fold(0.90, 3))),
        ]
    )
    ax = plots.score_bars(candidates, phi=2, ax=axes())
    scores = candidates.scores("ice", phi=2.0)
    ends = [
        container.errorbar.lines[2][0].get_segments()[0][:, 1]
        for container in ax.containers
        if hasattr(container, "patches")
    ]
    for (low, high), scores_of_folds in zip(ends, scores, strict=True):
        assert (high + low) / 2 == pytest.approx(scores_of_folds.mean())
        assert (high - low) / 2 == pytest.approx(scores_of_folds.std(ddof=1))
    bottom, top = ax.get_ylim()
    assert 0.5 < bottom < min(low for low, _ in ends) < max(high for _, high in ends) < top
    assert ax.get_ylabel().endswith(f", axis from {bottom:.3g}")
    full_axis = plots.score_bars(candidates, phi=2, zoom=False, ax=axes())
    assert full_axis.get_ylim()[0] == 0
    assert "axis from" not in full_axis.get_ylabel()
