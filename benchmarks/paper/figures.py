"""Redraw all figures of the FiRe and ICE papers from our own runs.

    python benchmarks/paper/figures.py            # all figures
    python benchmarks/paper/figures.py fire_5     # selected figures

FiRe: F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
ECAI 2023. ICE: the same authors: ICE: an evaluation metric to assess symbolic knowledge quality.
2024. The measurements are written to `figures/runs.csv`. It takes a few minutes, most of them for
the searches of the last figure.
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
#: Candidates per extractor and data set for the last figure of the ICE paper.
N_TRIALS = 12
#: Numbers of leaves of the trees in FiRe's figures of the mean absolute error.
TREE_SIZES = (1, 2, 3, 4, 6, 8)


class Run(NamedTuple):
    """Fitted extractor and its measurements, named like the columns of a benchmark."""

    model: Any
    row: dict[str, Any]


def measure(label: str, data: str, model: Any, X: Any, y: Any, black_box: str) -> Run:
    """Measure a fitted extractor on the given rows."""
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


def make_table(runs: Sequence[Run]) -> pd.DataFrame:
    return pd.DataFrame([run.row for run in runs])


# --- runs ----------------------------------------------------------------------------------------


@functools.cache
def iris_runs() -> tuple[Run, ...]:
    """Run the seven extractors of FiRe's Table 1 on 9 nearest neighbors and all rows of iris."""
    data = load_dataset("iris")
    runs = []
    for label, row in FIRE_ROWS.items():
        model = make_extractor(row.extractor, KNeighborsClassifier(9))
        model.set_params(random_state=SEED, **row.params).fit(data.X, data.y)
        runs.append(measure(label, "iris", model, data.X, data.y, "9-NN"))
    return tuple(runs)


@functools.cache
def diabetes_runs() -> tuple[Run, ...]:
    """Extract trees of increasing size from a random forest; measure them on held-out rows."""
    data = load_dataset("diabetes")
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.5, random_state=SEED
    )
    forest = RandomForestRegressor(100, random_state=SEED)
    runs = []
    for n_leaves in TREE_SIZES:
        # scikit-learn requires at least two leaves; the leaf size enforces a single one.
        size_limit = (
            {"max_leaf_nodes": n_leaves} if n_leaves > 1 else {"min_samples_leaf": len(X_train)}
        )
        model = make_extractor("cart", forest).set_params(
            random_state=SEED, max_depth=None, **size_limit
        )
        model.fit(X_train, y_train)
        label = f"CART, {len(model.rules_)} rule{'s' if len(model.rules_) > 1 else ''}"
        runs.append(measure(label, "diabetes", model, X_test, y_test, "random forest"))
    for slices in (2, 3):
        model = make_extractor("gridex", forest).set_params(
            random_state=SEED, n_slices=slices, importance_threshold=0.9, depth=1
        )
        model.fit(X_train, y_train)
        label = f"GridEx, {len(model.rules_)} rules"
        runs.append(measure(label, "diabetes", model, X_test, y_test, "random forest"))
    return tuple(runs)


@functools.cache
def ice_runs(data_name: str) -> tuple[Any, ...]:
    """Return held-out rows and labels, the decision tree, and the best extractor of each kind."""
    data = load_dataset(data_name)
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.5, stratify=data.y, random_state=SEED
    )
    tree = DecisionTreeClassifier(random_state=SEED)
    runs = []
    for name in ICE_EXTRACTORS:
        search = ExtractorSearchCV(
            tree,
            extractors=(name,),
            scoring=make_ice_scorer(phi=3.0),
            n_trials=N_TRIALS,
            random_state=SEED,
        ).fit(X_train, y_train)
        label = {
            "exact": "ExACT",
            "cream": "CREAM",
            "iter": "ITER",
            "gridex": "GridEx",
            "cart": "CART",
        }[name]
        best = search.best_extractor_
        runs.append(measure(label, ICE_DATA[data_name], best, X_test, y_test, "decision tree"))
    return X_test, y_test, tree.fit(X_train, y_train), tuple(runs)


# --- FiRe ----------------------------------------------------------------------------------------


def fire_1() -> Figure:
    """Draw surfaces for four values of psi; points are the extractors of iris."""
    figure = Figure(figsize=(11.5, 8.6), layout="constrained")
    for k, psi in enumerate((1, 3, 5, 10)):
        ax = figure.add_subplot(2, 2, k + 1, projection="3d")
        plots.fire_surface(
            make_table(iris_runs()),
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
    """Draw projections at the losses and numbers of rules measured on iris."""
    runs = make_table(iris_runs())
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
        # Mark each extractor on its curve for psi 5.
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
    """Draw the isoline through CART with 2 rules for diabetes, with better and worse extractors."""
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    plots.fire_isolines(
        make_table(diabetes_runs()),
        reference="CART, 2 rules",
        ax=figure.subplots(),
        loss_label="mean absolute error (disease progression)",
    )
    return figure


def fire_4() -> Figure:
    """Draw isolines for two values of psi that rank the same extractors differently."""
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    plots.fire_isolines(
        make_table(diabetes_runs()),
        psi=[2, 6],
        reference="CART, 4 rules",
        ax=figure.subplots(),
        loss_label="mean absolute error (disease progression)",
    )
    return figure


def fire_5() -> Figure:
    """Draw decision boundaries on iris, and isolines through the extractors for psi 1, 2 and 3."""
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
        plots.fire_isolines(
            make_table(runs), psi=psi, ax=ax, loss_label="1 − accuracy", legend=psi == 3
        )
        ax.label_outer()
    return figure


# --- ICE -----------------------------------------------------------------------------------------


def ice_1() -> Figure:
    """Draw ICE surfaces for nine pairs of weights; points are the extractors of Wine."""
    runs = make_table(ice_runs("wine")[3])
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
        image = image or _make_color_scale()
    figure.colorbar(
        image, ax=figure.axes, location="top", shrink=0.5, label="ICE (greater is better)"
    )
    return figure


def ice_2() -> Figure:
    """Draw both sigmoids over their domain; points are Wine's extractors with neutral weights."""
    runs = make_table(ice_runs("wine")[3])
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
    runs = make_table(ice_runs("wine")[3])
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
    """Draw predictions of the trees and the best extractors on held-out rows, and their scores."""
    figure = Figure(figsize=(15.0, 15.5), layout="constrained")
    for data_figure, name in zip(figure.subfigures(2, 1, hspace=0.03), ICE_DATA, strict=True):
        X_test, y_test, tree, runs = ice_runs(name)
        data_figure.suptitle(
            f"{ICE_DATA[name]}: answers on held-out rows, and scores", fontsize="large"
        )
        top, bottom = data_figure.subfigures(2, 1, height_ratios=[1.0, 1.75])
        models = {"truth": None, "decision tree": tree, **{r.row["label"]: r.model for r in runs}}
        _plot_predictions(top, models, X_test, y_test, runs)
        # The loss of this paper is 1 - F1, also for FiRe.
        results = make_table(runs).assign(loss=lambda rows: rows["loss_q"])
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


def _plot_predictions(
    figure: Any, models: dict[str, Any], X: Any, y: Any, runs: Sequence[Run]
) -> None:
    """Plot rows by the two features that the rules use most, colored by the prediction."""
    counts: dict[str, int] = {}
    for run in runs:
        for rule in run.model.rules_:
            for condition in rule.conditions:
                for j in condition.features:
                    column = run.model.rules_.feature_names[j]
                    counts[column] = counts.get(column, 0) + 1
    x_feature, y_feature = sorted(counts, key=lambda column: (-counts[column], column))[:2]
    axes = figure.subplots(1, len(models), sharex=True, sharey=True)
    truth = np.asarray(y)
    labels = sorted(set(truth.tolist()))
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        predictions = truth if model is None else np.asarray(model.predict(X))
        for index, label in enumerate(labels):
            has_label = predictions == label
            ax.scatter(
                X[x_feature][has_label],
                X[y_feature][has_label],
                s=10,
                c=COLORS[index],
                marker=MARKERS[index],
                label=str(label),
            )
        is_wrong = predictions != truth
        ax.scatter(
            X[x_feature][is_wrong],
            X[y_feature][is_wrong],
            s=55,
            facecolors="none",
            edgecolors="black",
            linewidths=0.8,
            label="wrong",
        )
        ax.set_title(
            name if model is None else f"{name}: {is_wrong.sum()} wrong", fontsize="medium"
        )
        ax.set_xlabel(x_feature, fontsize="small")
    axes[0].set_ylabel(y_feature, fontsize="small")
    legend_beside(axes[-1])


def _make_color_scale() -> Any:
    return matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, 1), "cividis")


# --- all -----------------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[], Figure]] = {
    function.__name__: function
    for function in (fire_1, fire_2, fire_3, fire_4, fire_5, ice_1, ice_2, ice_3, ice_4)
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(FIGURES)} (default: all)"
    )
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder for the files")
    options = parser.parse_args(arguments)
    unknown_names = sorted(set(options.names) - set(FIGURES))
    if unknown_names:
        parser.error(f"unknown figure {unknown_names[0]!r}; use any of {', '.join(FIGURES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or FIGURES:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # extractors warn about unsuitable candidates
            figure = FIGURES[name]()
        path = options.output / f"{name}.png"
        _save_figure(figure, path)
        seconds = time.perf_counter() - start
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {seconds:.1f} s", flush=True)
    all_runs = [
        run for runs in (iris_runs, diabetes_runs) if runs.cache_info().currsize for run in runs()
    ]
    if ice_runs.cache_info().currsize == len(ICE_DATA):
        all_runs += [run for name in ICE_DATA for run in ice_runs(name)[3]]
    if not options.names:
        make_table(all_runs).round(6).to_csv(options.output / "runs.csv", index=False)


def _save_figure(figure: Figure, path: Path) -> None:
    """Save a figure as PNG with few colors, which makes surfaces much smaller."""
    from io import BytesIO

    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=80)
    buffer.seek(0)
    image = Image.open(buffer).convert("RGB")
    frequent_colors = image.quantize(240).getpalette()[: 3 * 240]
    # The colors of points are rare, but must be exact.
    exact_colors = [
        int(c[i : i + 2], 16) for c in (*COLORS, "#000000", "#ffffff") for i in (1, 3, 5)
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette([*frequent_colors, *exact_colors])
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
