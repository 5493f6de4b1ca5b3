"""Every figure of the two papers about rules again, from runs of our own.

    python benchmarks/paper/figures.py            # all of them
    python benchmarks/paper/figures.py fire_5     # some of them

FiRe: F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
ECAI 2023. ICE: the same authors: ICE: an evaluation metric to assess symbolic knowledge quality.
2024. What is measured on the way goes into `figures/runs.csv`. It takes a few minutes, nearly all
of them for the searches behind the last figure.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore import plots
from skescore.datasets import load_dataset
from skescore.metrics import fire_score, ice_performance, ice_readability
from skescore.plots import COLORS, MARKERS, legend_beside
from skescore.registry import make_extractor
from skescore.reproduce import FIRE_ROWS, ICE_DATA, ICE_EXTRACTORS
from skescore.scorers import make_ice_scorer, make_knowledge_scorer
from skescore.tuning import ExtractorSearchCV

FOLDER = Path(__file__).parent / "figures"
SEED = 0
#: Candidates per extractor and data set behind ICE's last figure.
TRIALS = 12
#: Regression extractors of growing size, for FiRe's figures about a mean absolute error.
TREES = (1, 2, 3, 4, 6, 8)


class Run(NamedTuple):
    """A fitted extractor and what was measured of it, by the columns of a benchmark."""

    model: Any
    row: dict[str, Any]


def measured(label: str, data: str, model: Any, X: Any, y: Any, black_box: str) -> Run:
    """Measure a fitted extractor on some rows."""
    scores = make_knowledge_scorer()(model, X, y)
    row = {
        "label": label,
        "data": data,
        "black_box": black_box,
        "extractor": label,
        "state": "complete",
        "n_rules": len(model.rules_),
        "size": len(model.rules_),
        **{
            name: scores[name]
            for name in (
                "performance",
                "loss",
                "loss_q",
                "completeness_volume",
                "completeness_instances",
            )
        },
    }
    return Run(model, row)


def table(runs: Sequence[Run]) -> pd.DataFrame:
    return pd.DataFrame([run.row for run in runs])


# --- runs ----------------------------------------------------------------------------------------


@functools.cache
def iris_runs() -> tuple[Run, ...]:
    """The seven extractors of FiRe's Table 1 on 9 nearest neighbors, on all rows of iris."""
    data = load_dataset("iris")
    runs = []
    for label, row in FIRE_ROWS.items():
        model = make_extractor(row.extractor, KNeighborsClassifier(9))
        model.set_params(random_state=SEED, **row.params).fit(data.X, data.y)
        runs.append(measured(label, "iris", model, data.X, data.y, "9-NN"))
    return tuple(runs)


@functools.cache
def diabetes_runs() -> tuple[Run, ...]:
    """Trees of growing size on a random forest, judged on the rows that it has not seen."""
    data = load_dataset("diabetes")
    left, right, y_left, y_right = train_test_split(
        data.X, data.y, test_size=0.5, random_state=SEED
    )
    forest = RandomForestRegressor(100, random_state=SEED)
    runs = []
    for leaves in TREES:
        # A tree of one leaf is asked for by its depth; scikit-learn's trees have two at least.
        size = {"max_leaf_nodes": leaves} if leaves > 1 else {"min_samples_leaf": len(left)}
        model = make_extractor("cart", forest).set_params(random_state=SEED, max_depth=None, **size)
        model.fit(left, y_left)
        label = f"CART, {len(model.rules_)} rule{'s' if len(model.rules_) > 1 else ''}"
        runs.append(measured(label, "diabetes", model, right, y_right, "random forest"))
    for slices in (2, 3):
        model = make_extractor("gridex", forest).set_params(
            random_state=SEED, n_slices=slices, importance_threshold=0.9, depth=1
        )
        model.fit(left, y_left)
        label = f"GridEx, {len(model.rules_)} rules"
        runs.append(measured(label, "diabetes", model, right, y_right, "random forest"))
    return tuple(runs)


@functools.cache
def ice_runs(data_name: str) -> tuple[Any, ...]:
    """The held-out rows, the tree, and the best found extractor of each kind around it."""
    data = load_dataset(data_name)
    left, right, y_left, y_right = train_test_split(
        data.X, data.y, test_size=0.5, stratify=data.y, random_state=SEED
    )
    tree = DecisionTreeClassifier(random_state=SEED)
    runs = []
    for name in ICE_EXTRACTORS:
        search = ExtractorSearchCV(
            tree,
            extractors=(name,),
            scoring=make_ice_scorer(phi=3.0),
            n_trials=TRIALS,
            random_state=SEED,
        ).fit(left, y_left)
        label = {
            "exact": "ExACT",
            "cream": "CREAM",
            "iter": "ITER",
            "gridex": "GridEx",
            "cart": "CART",
        }[name]
        best = search.best_extractor_
        runs.append(measured(label, ICE_DATA[data_name], best, right, y_right, "decision tree"))
    return right, y_right, tree.fit(left, y_left), tuple(runs)


# --- FiRe ----------------------------------------------------------------------------------------


def fire_1() -> Figure:
    """Surfaces for four psi, with the extractors of iris as points."""
    figure = Figure(figsize=(11.5, 8.6), layout="constrained")
    for k, psi in enumerate((1, 3, 5, 10)):
        ax = figure.add_subplot(2, 2, k + 1, projection="3d")
        plots.fire_surface(
            table(iris_runs()),
            psi=psi,
            n_rules=(1, 20),
            loss=(0, 0.2),
            colorbar=False,
            loss_label="1 − accuracy",
            ax=ax,
        )
        if k != 1:
            ax.get_legend().remove()
    return figure


def fire_2() -> Figure:
    """Projections, through losses and numbers of rules that were measured on iris."""
    runs = table(iris_runs())
    losses = sorted({round(float(p), 3) for p in runs["loss"]})
    sizes = sorted({int(r) for r in runs["size"]})
    figure = Figure(figsize=(11.5, 7.0), layout="constrained")
    axes = figure.subplots(2, 2)
    plots.fire_curves("n_rules", psi=5, fixed=losses, ax=axes[0, 0])
    plots.fire_curves("n_rules", psi=[1, 3, 5, 10], fixed=losses[0], ax=axes[0, 1])
    plots.fire_curves("loss", psi=5, fixed=[*sizes, 12, 20], over=(0, 0.2), ax=axes[1, 0])
    plots.fire_curves("loss", psi=[1, 3, 5, 10], fixed=sizes[-1], over=(0, 0.2), ax=axes[1, 1])
    for ax in axes[1]:
        ax.set_xlabel("predictive loss p (1 − accuracy)")
    for index, row in runs.iterrows():
        # Where the extractors lie on the lines of psi 5 that are theirs.
        if round(float(row["loss"]), 3) in losses:
            score = fire_score(round(float(row["loss"]), 3), row["size"], psi=5)
            axes[0, 0].plot(row["size"], score, "k", marker=MARKERS[index], ls="", ms=6)
        score = fire_score(row["loss"], row["size"], psi=5)
        axes[1, 0].plot(
            row["loss"], score, "k", marker=MARKERS[index], ls="", ms=6, label=row["label"]
        )
    legend_beside(axes[1, 0])
    return figure


def fire_3() -> Figure:
    """The isoline of one rule for diabetes, and who is better or worse."""
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    plots.fire_isolines(
        table(diabetes_runs()),
        reference="CART, 2 rules",
        ax=figure.subplots(),
        loss_label="mean absolute error (disease progression)",
    )
    return figure


def fire_4() -> Figure:
    """Two psi that disagree about the same extractors."""
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    plots.fire_isolines(
        table(diabetes_runs()),
        psi=[2, 6],
        reference="CART, 4 rules",
        ax=figure.subplots(),
        loss_label="mean absolute error (disease progression)",
    )
    return figure


def fire_5() -> Figure:
    """Decision boundaries on iris, and isolines through the extractors for psi 1, 2 and 3."""
    data = load_dataset("iris")
    runs = iris_runs()
    figure = Figure(figsize=(13.0, 10.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[2.0, 1.05])
    axes = top.subplots(2, 4, sharex=True, sharey=True).ravel()
    models = {"9-NN": runs[0].model.estimator_}
    models |= {f"{run.row['label']}: {run.row['n_rules']} rules": run.model for run in runs}
    features = [name for name in data.X.columns if "petal" in name]
    plots.decision_boundaries(models, data.X, data.y, features=features, axes=axes)
    legend = axes[-1].get_legend()
    for ax in axes:
        ax.label_outer()
    top.legend(
        handles=legend.legend_handles,
        labels=[t.get_text() for t in legend.get_texts()],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    legend.remove()
    lower = bottom.subplots(1, 3, sharey=True)
    for psi, ax in zip((1, 2, 3), lower, strict=True):
        plots.fire_isolines(table(runs), psi=psi, ax=ax, loss_label="1 − accuracy", legend=psi == 3)
        ax.label_outer()
    return figure


# --- ICE -----------------------------------------------------------------------------------------


def ice_1() -> Figure:
    """ICE over performance, size and completeness for nine weights, with Wine's extractors."""
    runs = table(ice_runs("wine")[3])
    figure = Figure(figsize=(12.0, 11.0), layout="constrained")
    image = None
    weights = (1 / 3, 1.0, 3.0)
    for k, (phi, rho) in enumerate((phi, rho) for phi in weights for rho in weights):
        ax = figure.add_subplot(3, 3, k + 1, projection="3d")
        plots.ice_surface(
            runs,
            phi=phi,
            rho=rho,
            performance=(0, 1),
            n_rules=(1, 30),
            colorbar=False,
            ax=ax,
            performance_label="F1",
        )
        if k != 2:
            ax.get_legend().remove()
        image = image or _scale()
    figure.colorbar(
        image, ax=figure.axes, location="top", shrink=0.5, label="ICE (greater is better)"
    )
    return figure


def ice_2() -> Figure:
    """Draw both sigmoids over their domain; points are Wine's extractors with neutral weights."""
    runs = table(ice_runs("wine")[3])
    figure = Figure(figsize=(11.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.ice_part_surface("performance", ax=left)
    plots.ice_part_surface("readability", ax=right)
    for index, row in runs.iterrows():
        style = {
            "color": COLORS[index],
            "marker": MARKERS[index],
            "mec": "white",
            "ms": 8,
            "ls": "",
            "label": row["label"],
        }
        left.plot(row["performance"], 1.0, **style)
        right.plot(row["size"], 1.0, **style)
    right.legend(loc="upper right", fontsize="small")
    return figure


def ice_3() -> Figure:
    """Draw both sigmoids and their first and second derivatives; points are Wine's extractors."""
    runs = table(ice_runs("wine")[3])
    figure = Figure(figsize=(11.5, 10.0), layout="constrained")
    axes = figure.subplots(3, 2)
    for derivative in range(3):
        for column, part in enumerate(("performance", "readability")):
            plots.ice_part_curves(
                part, derivative=derivative, legend=derivative == 0, ax=axes[derivative, column]
            )
    parts = (("performance", ice_performance), ("size", ice_readability))
    for ax, (name, function) in zip(axes[0], parts, strict=True):
        for index, row in runs.iterrows():
            ax.plot(
                row[name],
                function(row[name]),
                "k",
                marker=MARKERS[index],
                ls="",
                ms=6,
                label=row["label"],
                zorder=5,
            )
        legend_beside(ax)
    return figure


def ice_4() -> Figure:
    """Answers of the trees and the best found extractors on held-out rows, and their scores."""
    figure = Figure(figsize=(15.0, 15.5), layout="constrained")
    for part, name in zip(figure.subfigures(2, 1, hspace=0.03), ICE_DATA, strict=True):
        right, y_right, tree, runs = ice_runs(name)
        part.suptitle(f"{ICE_DATA[name]}: answers on held-out rows, and scores", fontsize="large")
        top, bottom = part.subfigures(2, 1, height_ratios=[1.0, 1.75])
        models = {"truth": None, "decision tree": tree, **{r.row["label"]: r.model for r in runs}}
        _answers(top, models, right, y_right, runs)
        # The loss of this paper is 1 - F1, also for FiRe.
        results = table(runs).assign(loss=lambda rows: rows["loss_q"])
        bars = bottom.subplots(2, 3)
        for ax, (score, weights) in zip(bars.ravel(), _SCORES, strict=True):
            plots.score_bars(results, score, ax=ax, zoom=False, legend=ax is bars[0, -1], **weights)
    return figure


_SCORES: tuple[tuple[str, dict[str, float]], ...] = (
    ("q", {}),
    ("fire", {"psi": 1.0}),
    ("fire", {"psi": 3.0}),
    ("ice", {}),
    ("ice", {"phi": 3.0}),
    ("ice", {"rho": 3.0}),
)


def _answers(figure: Any, models: dict[str, Any], X: Any, y: Any, runs: Sequence[Run]) -> None:
    """Rows in the plane of the two features that rules use most, colored by what is answered."""
    counts: dict[str, int] = {}
    for run in runs:
        for rule in run.model.rules_:
            for condition in rule.conditions:
                for j in condition.features:
                    column = run.model.rules_.feature_names[j]
                    counts[column] = counts.get(column, 0) + 1
    first, second = sorted(counts, key=lambda column: (-counts[column], column))[:2]
    axes = figure.subplots(1, len(models), sharex=True, sharey=True)
    truth = np.asarray(y)
    labels = sorted(set(truth.tolist()))
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        answers = truth if model is None else np.asarray(model.predict(X))
        for index, label in enumerate(labels):
            has_label = answers == label
            ax.scatter(
                X[first][has_label],
                X[second][has_label],
                s=10,
                c=COLORS[index],
                marker=MARKERS[index],
                label=str(label),
            )
        wrong = answers != truth
        ax.scatter(
            X[first][wrong],
            X[second][wrong],
            s=55,
            facecolors="none",
            edgecolors="black",
            linewidths=0.8,
            label="wrong",
        )
        ax.set_title(name if model is None else f"{name}: {wrong.sum()} wrong", fontsize="medium")
        ax.set_xlabel(first, fontsize="small")
    axes[0].set_ylabel(second, fontsize="small")
    legend_beside(axes[-1])


def _scale() -> Any:
    return matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, 1), "cividis")


# --- all -----------------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[], Figure]] = {
    function.__name__: function
    for function in (fire_1, fire_2, fire_3, fire_4, fire_5, ice_1, ice_2, ice_3, ice_4)
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the files")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(FIGURES))
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or FIGURES:
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extractors, about candidates of little use
            figure = FIGURES[name]()
        path = options.output / f"{name}.png"
        _save(figure, path)
        seconds = time.perf_counter() - begin
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {seconds:.1f} s", flush=True)
    figures = [
        run for runs in (iris_runs, diabetes_runs) if runs.cache_info().currsize for run in runs()
    ]
    if ice_runs.cache_info().currsize == len(ICE_DATA):
        figures += [run for name in ICE_DATA for run in ice_runs(name)[3]]
    if not options.names:
        table(figures).round(6).to_csv(options.output / "runs.csv", index=False)


def _save(figure: Figure, path: Path) -> None:
    """Save with few colors, as surfaces make large files otherwise."""
    from io import BytesIO

    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=80)
    buffer.seek(0)
    image = Image.open(buffer).convert("RGB")
    few = image.quantize(240).getpalette()[: 3 * 240]
    # The colors of points are rare, but must stay as they are.
    exact = [int(c[i : i + 2], 16) for c in (*COLORS, "#000000", "#ffffff") for i in (1, 3, 5)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([*few, *exact])
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
