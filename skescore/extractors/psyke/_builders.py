"""Make and run PSyKE's extractors, mended where they would crash or answer nonsense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from sklearn.base import clone

from skescore.extractors._discretiser import Discretiser
from skescore.extractors._extraction import Extraction
from skescore.extractors.psyke._algorithms import is_sequence
from skescore.extractors.psyke._predictors import (
    BinPredictor,
    Bins,
    RowPredictor,
    bin_names,
)
from skescore.extractors.psyke._psyke_mends import (
    mend_cart,
    mend_clusterer,
    mend_cosmik,
    mend_hex,
    mend_iter,
    mend_trepan,
)
from skescore.extractors.psyke._psyke_task import Run, Task

#: PSyKE looks at every cell of the grid, with or without rows; HEx at every pair of them.
_MOST_CELLS = {"gridex": 10_000, "hex": 1000}
#: REAL keeps a row for every combination of bins that a rule still allows.
_MOST_COMBINATIONS = 1000
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


# --- trees ---------------------------------------------------------------------------------------


def _cart(task: Task) -> Run:
    task.extraction.check_magnitude(_LARGEST_SINGLE, "trees work in single precision")
    given = task.parameters
    extractor = task.psyke.Extractor.cart(
        task.predictor(),
        max_depth=given["max_depth"],
        max_leaves=given["max_leaves"],
        max_features=given["max_features"],
    )
    mend_cart(extractor)
    run, leaves = task.run(extractor), given["max_leaves"]
    if task.classification and leaves is not None:
        n_classes = len(np.unique(task.extraction.answers))
        if leaves < n_classes:
            return run._replace(
                warning=f"max_leaves={leaves} is less than the {n_classes} classes that the black "
                "box answers, so no rule can conclude some of them."
            )
    return run


def _discretised(task: Task, most: float = float("inf")) -> tuple[Bins, list[Any]]:
    """The rows in bins, and what the bins are in PSyKE's terms.

    There must be at most `most` combinations of bins. Of the usual discretiser's, the features
    that matter most keep their cuts.
    """
    from psyke.schema import Between, DiscreteFeature, GreaterThan, LessThan

    given = task.parameters["discretiser"]
    usual = Discretiser("tree", min_bin_share=0.05, joint=True)
    discretiser = usual if given is None else clone(given)
    cut_points = discretiser.fit(task.extraction.X, task.extraction.answers).cut_points_
    if given is None:
        combinations = 1
        for j in np.argsort(-task.importances(), kind="stable"):
            if combinations * (len(cut_points[j]) + 1) > most:
                cut_points[j] = np.empty(0)
            combinations *= len(cut_points[j]) + 1
    bins = Bins(task.extraction.X, cut_points)
    combinations = prod(len(feature.counts) for feature in bins.features)
    if combinations > most:
        raise ValueError(
            f"discretiser={given!r} leaves {combinations} combinations of bins, and PSyKE's REAL "
            f"looks at all of them; at most {most} are allowed. Cut fewer features "
            '(Discretiser("given", cut_points={...})) or less finely, or use REALExtractor.'
        )
    features = []
    for j, feature in enumerate(bins.features):
        cuts: list[float] = [] if feature.cuts is None else feature.cuts.tolist()
        values: list[Any] = []
        if cuts:
            # PSyKE's other kind of interval leaves the last cut itself without a bin.
            inner = [Between(low, high, standard=False) for low, high in pairwise(cuts)]
            values = [LessThan(cuts[0]), *inner, GreaterThan(cuts[-1])]
        names = bin_names(j, feature) if values else []  # a single bin has no column
        features.append(DiscreteFeature(f"x{j}", dict(zip(names, values, strict=True))))
    return bins, features


def _real(task: Task) -> Run:
    bins, features = _discretised(task, _MOST_COMBINATIONS)
    predictor = BinPredictor(task.extraction, task.containment, bins)
    extractor = task.psyke.Extractor.real(predictor, features)
    # The class keeps the last 512 results, with all that made them, for ever.
    extractor._get_or_set = extractor._create_ruleset
    return Run(extractor, task.with_target(bins.frame))


def _trepan(task: Task) -> Run:
    bins, features = _discretised(task)
    extractor = task.psyke.Extractor.trepan(
        RowPredictor(task.extraction, task.containment),
        features,
        min_examples=task.parameters["min_examples"],
        max_depth=task.parameters["max_depth"],
    )
    mend_trepan(extractor)
    return Run(extractor, task.with_target(bins.frame))


# --- grids ---------------------------------------------------------------------------------------


def _grid(task: Task, most: int = _MOST_CELLS["gridex"]) -> Any:
    from psyke.extraction.hypercubic import Grid
    from psyke.extraction.hypercubic.strategy import AdaptiveStrategy, FixedStrategy

    slices, least = task.parameters["n_slices"], task.parameters["importance_threshold"]
    strategy: Any
    if least is None:
        strategy = FixedStrategy(int(slices))
    else:
        pairs = zip(_listed(least), _listed(slices), strict=True)
        strategy = AdaptiveStrategy(task.ranks(), [(float(low), int(n)) for low, n in pairs])
    cells = prod(strategy.get(name) for name in task.names)
    if cells > most:
        raise ValueError(
            f"n_slices={slices!r} with importance_threshold={least!r} makes {cells} cells of every "
            f"box that is cut, and PSyKE looks at each of them; at most {most} are allowed. "
            "Cut fewer features (importance_threshold=0.5, say) or use GridExExtractor, which "
            "looks at cells with rows only."
        )
    return Grid(int(task.parameters["depth"]), strategy)


def _listed(value: Any) -> Sequence[Any]:
    return value if is_sequence(value) else [value]


def _gridex(task: Task) -> Run:
    task.check_numbers()
    return task.run(
        task.psyke.Extractor.gridex(
            task.predictor(),
            _grid(task),
            min_examples=task.parameters["min_examples"],
            threshold=task.threshold(),
            seed=task.seed,
        )
    )


def _gridrex(task: Task) -> Run:
    task.check_numbers()
    given = task.parameters["threshold"]
    return task.run(
        task.psyke.Extractor.gridrex(
            task.predictor(),
            _grid(task),
            min_examples=task.parameters["min_examples"],
            threshold=_residual(task.extraction) if given is None else float(given),
            seed=task.seed,
        )
    )


def _residual(extraction: Extraction) -> float:
    """Half the mean absolute residual of one plane through all answers, or 1 % of their spread."""
    X = np.column_stack([extraction.X, np.ones(len(extraction.X))])
    plane = np.linalg.lstsq(X, extraction.answers, rcond=None)[0]
    rest = float(np.mean(np.abs(X @ plane - extraction.answers)))
    return max(rest / 2, 0.01 * float(np.std(extraction.answers)))


def _hex(task: Task) -> Run:
    task.check_numbers()
    extractor = task.psyke.Extractor.hex(
        task.predictor(), _grid(task, _MOST_CELLS["hex"]),
        min_examples=task.parameters["min_examples"], threshold=task.threshold(),
        output=task.target(), seed=task.seed,
    )  # fmt: skip
    mend_hex(extractor)
    return task.run(extractor)


# --- boxes that grow -----------------------------------------------------------------------------


def _iter(task: Task) -> Run:
    task.check_numbers()
    given = task.parameters
    extractor = task.psyke.Extractor.iter(
        task.predictor(), min_update=given["min_update"], n_points=given["n_points"],
        max_iterations=given["max_iterations"], min_examples=given["min_examples"],
        threshold=task.threshold(), fill_gaps=bool(given["fill_gaps"]), output=task.target(),
        seed=task.seed,
    )  # fmt: skip
    mend_iter(extractor, task.names)
    return task.run(extractor)


def _divine(task: Task) -> Run:
    task.check_numbers()
    return task.run(
        task.psyke.Extractor.divine(task.predictor(), **_bottom_up(task), seed=task.seed)
    )


def _bottom_up(task: Task) -> dict[str, Any]:
    given = {name: task.parameters[name] for name in ("k", "patience", "close_to_center")}
    n_rows = len(task.extraction.X)
    if given["k"] > n_rows:
        raise ValueError(
            f"k must be at most the number of rows ({n_rows}), since each row's k nearest rows "
            f"are looked at, got {given['k']!r}."
        )
    return given


def _cosmik(task: Task) -> Run:
    from psyke.extraction.hypercubic import HyperCube

    task.check_numbers()
    extractor = task.psyke.Extractor.cosmik(
        task.predictor(), max_components=task.parameters["max_components"], **_bottom_up(task),
        output=task.target(), seed=task.seed,
    )  # fmt: skip
    run = task.run(extractor)
    mend_cosmik(extractor, HyperCube.create_surrounding_cube(run.frame))
    return run


# --- clusters ------------------------------------------------------------------------------------


def _clusters(name: str) -> Callable[[Task], Run]:
    def build(task: Task) -> Run:
        task.check_numbers()
        given = task.parameters
        ignore = float(given["ignore_threshold"])
        extractor = task.psyke.Extractor.creepy(
            task.predictor(), getattr(task.psyke.Clustering, name), depth=given["depth"],
            error_threshold=task.threshold(0.1, "error_threshold"), output=task.target(),
            gauss_components=given["gauss_components"], ranks=task.ranks() if ignore else (),
            ignore_threshold=ignore, seed=task.seed,
        )  # fmt: skip
        mend_clusterer(extractor.clustering)
        return task.run(extractor)

    return build


# --- genes ---------------------------------------------------------------------------------------


def _ginger(task: Task) -> Run:
    task.check_numbers()
    given = task.parameters
    columns = _chosen(task)
    widths = np.ptp(task.extraction.X, axis=0)
    extractor = task.psyke.Extractor.ginger(
        task.predictor(), [f"x{j}" for j in columns],
        [float(given["sigma"]) * float(widths[j]) for j in columns],
        given["max_slices"], min_rules=given["min_rules"], alpha=given["alpha"],
        indpb=given["indpb"], tournsize=given["tournsize"],
        metric=given["metric"] or ("ACC" if task.classification else "R2"),
        n_gen=given["n_gen"], n_pop=given["n_pop"], threshold=given["threshold"],
        output=task.target(), seed=task.seed,
    )  # fmt: skip
    run, choices = task.run(extractor), int(given["max_slices"]) ** len(columns)
    if choices == 1:
        return run
    return run._replace(
        warning=f"GInGER tries {choices} numbers of cuts and, in PSyKE 1.0.4, keeps the one that "
        "scores worst. Set max_slices=1 for a single one."
    )


def _chosen(task: Task) -> list[int]:
    """Indices of the features that GInGER cuts."""
    names = [str(name) for name in task.extraction.settings["feature_names"]]
    features = task.parameters["features"]
    if features is None:
        n_features = min(int(task.parameters["n_features"]), len(names))
        most = np.argsort(-task.importances(), kind="stable")[:n_features]
        return sorted(most.tolist())
    result = []
    for feature in features:
        known = isinstance(feature, str) and feature in names
        index = names.index(feature) if known else feature
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            index = -1
        if not 0 <= index < len(names):
            raise ValueError(
                f"features must hold indices from 0 to {len(names) - 1} or names of features "
                f"({', '.join(map(repr, names[:12]))}), got {feature!r}."
            )
        result.append(int(index))
    if len(set(result)) < len(result):
        raise ValueError(f"features must name each feature once, got {features!r}.")
    return result


BUILDERS: dict[str, Callable[[Task], Run]] = {
    "cart": _cart,
    "cosmik": _cosmik,
    "cream": _clusters("cream"),
    "divine": _divine,
    "exact": _clusters("exact"),
    "ginger": _ginger,
    "gridex": _gridex,
    "gridrex": _gridrex,
    "hex": _hex,
    "iter": _iter,
    "real": _real,
    "trepan": _trepan,
}
