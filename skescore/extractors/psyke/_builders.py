"""Construction of PSyKE's extractors, with fixes for their crashes and wrong results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from skescore.extractors._base import Extraction
from skescore.extractors._discretizer import Discretizer
from skescore.extractors._features import feature_importances
from skescore.extractors.psyke._algorithms import is_sequence
from skescore.extractors.psyke._runtime import Containment
from skescore.extractors.real._codes import CodedFeature, code_rows

# --- the black box in PSyKE's interface ---


class Predictor(BaseEstimator):
    """Black box with a cache per row, because PSyKE queries the same rows many times."""

    def __init__(self, extraction: Extraction, containment: Containment) -> None:
        self.extraction = extraction
        self.containment = containment
        rows = np.ascontiguousarray(extraction.X, dtype=float)
        self._cache = dict(zip(_keys(rows), extraction.predictions.tolist(), strict=True))

    def y_pred(self, points: np.ndarray) -> np.ndarray:
        """Return class indices or numbers, one per point."""
        points = np.ascontiguousarray(points, dtype=float)
        keys = _keys(points)
        uncached = {key: i for i, key in enumerate(keys) if key not in self._cache}
        if uncached:
            with self.containment.outside():
                predictions = self.extraction.query(points[list(uncached.values())], cache=False)
            self._cache.update(zip(uncached, predictions.tolist(), strict=True))
        return np.array([self._cache[key] for key in keys], dtype=self.extraction.predictions.dtype)


def _keys(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]


class LabelPredictor(ClassifierMixin, Predictor):
    """Classifier with text labels; PSyKE recognizes classifiers by their base class."""

    @property
    def labels(self) -> np.ndarray:
        """Text of each class, in sorted order."""
        assert self.extraction.classes is not None
        return class_texts(len(self.extraction.classes))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the texts of the predicted classes."""
        return self.labels[self.y_pred(frame.to_numpy())]


class NumberPredictor(RegressorMixin, Predictor):
    """Regressor; PSyKE treats all other models as regressors."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.y_pred(frame.to_numpy())


class BinPredictor(LabelPredictor):
    """Classifier of one-hot rows with a column per bin of every feature.

    A row represents the point with the middle training value of each bin.
    """

    def __init__(self, extraction: Extraction, containment: Containment, bins: OneHotBins) -> None:
        super().__init__(extraction, containment)
        self.bins = bins

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.labels[self.y_pred(self.bins.points(frame))]


class RowPredictor(LabelPredictor):
    """Classifier of the training rows in any representation."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert len(frame) == len(self.extraction.predictions)
        return self.labels[self.extraction.predictions]


class OneHotBins:
    """One-hot rows with a column per bin of every feature with several bins."""

    def __init__(self, X: np.ndarray, cuts: Any) -> None:
        codes, self.features = code_rows(X, dict(enumerate(cuts)), {})
        self._middle = X[0].copy()  # value of features with a single bin
        self._columns: dict[int, list[str]] = {}
        columns = {}
        for j, feature in enumerate(self.features):
            self._middle[j] = feature.examples[0]
            if len(feature.counts) > 1:
                self._columns[j] = bin_names(j, feature)
                for k, name in enumerate(self._columns[j]):
                    columns[name] = (codes[j] == k).astype(int)
        self.frame = pd.DataFrame(columns, index=range(len(X)))

    def points(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the points that one-hot rows represent."""
        points = np.repeat(self._middle[None, :], len(frame), axis=0)
        for j, names in self._columns.items():
            chosen = frame[names].to_numpy(dtype=float).argmax(axis=1)
            points[:, j] = self.features[j].examples[chosen]
        return points


def bin_names(index: int, feature: CodedFeature) -> list[str]:
    """Return the column names of a feature's bins."""
    return [f"x{index}_{k}" for k in range(len(feature.counts))]


def class_texts(n_classes: int) -> np.ndarray:
    """Return labels c0, c1, ... for the classes, with leading zeros so that they sort correctly."""
    width = len(str(max(0, n_classes - 1)))
    return np.array([f"c{k:0{width}d}" for k in range(n_classes)], dtype=object)


# --- the extractors -------------------------------------------------------------------------------


def fix_cart(extractor: Any) -> None:
    """Fix the conversion of regression trees to a theory.

    The value of a leaf is an array of shape (1, 1), which NumPy 2.4 cannot convert to a number.
    """
    reader = extractor._cart_predictor
    name = "_CartPredictor__get_prediction"
    original = getattr(reader, name)

    def prediction(node: int) -> Any:
        value = original(node)
        return float(np.ravel(value)[0]) if isinstance(value, np.ndarray) else value

    setattr(reader, name, prediction)


def fix_trepan(extractor: Any) -> None:
    """Make nodes with fewer rows than `min_examples` leaves; PSyKE raises an error there."""
    original = extractor._best_split

    def best_split(node: Any, names: Any) -> Any:
        if node.samples.shape[0] < extractor.min_examples:
            return None
        return original(node, names)

    extractor._best_split = best_split


def fix_iter(extractor: Any, names: Sequence[str]) -> None:
    """Label the boxes of ITER, and make its choices independent of the hash seed.

    PSyKE iterates over a set of strings and moves the first of equally good faces. Here, faces are
    ordered by feature, the lower face first. In PSyKE, boxes that start in a gap have no label, so
    no strip ever joins them. The fix gives them the majority label of their rows before they grow.
    """
    index = {name: j for j, name in enumerate(names)}
    strips, iterate = extractor._create_temp_cubes, extractor._iterate

    def ordered_strips(*arguments: Any) -> Any:
        return sorted(strips(*arguments), key=lambda s: (index[s.feature], s.direction != "-"))

    def label_and_iterate(frame: Any, boxes: Any, *arguments: Any) -> Any:
        label_boxes(boxes, frame, extractor.predictor)
        return iterate(frame, boxes, *arguments)

    extractor._create_temp_cubes = ordered_strips
    extractor._iterate = label_and_iterate
    extractor._create_theory = _call_before(
        extractor._create_theory,
        lambda frame: label_boxes(extractor._hypercubes, frame, extractor.predictor),
    )


def label_boxes(boxes: Any, frame: Any, predictor: Any) -> None:
    """Set missing labels of boxes to the majority label of their rows."""
    for box in boxes:
        if isinstance(box.output, str) and not box.output:
            box.update(frame, predictor)


def fix_clusterer(clusterer: Any) -> None:
    """Turn nodes that cannot be split into leaves with an output.

    In PSyKE, an unsplit root has no output (or 0), and failed fits of mixtures raise errors.
    """
    mixture = clusterer._get_gauss_predictions
    iterate = clusterer._iterate

    def predictions(to_split: list[Any]) -> Any:
        to_split.sort(reverse=True)
        _, depth, _, node = to_split[-1]
        try:
            return mixture(to_split)
        except (UnboundLocalError, ValueError):  # PSyKE's errors for too few rows
            if to_split and to_split[-1][-1] is node:
                to_split.pop()
            return node, depth, np.full(len(node.dataframe), -1), (0.0, 1, None)

    def iterate_with_output(root: Any) -> Any:
        root.cube.update(root.dataframe, clusterer._predictor)
        return iterate(root)

    clusterer._get_gauss_predictions = predictions
    clusterer._iterate = iterate_with_output


def fix_cosmik(extractor: Any, domain: Any) -> None:
    """Fix a crash of COSMiK, and drop boxes without rows.

    COSMiK accesses the box around all rows (`domain`) before creating it. Boxes whose rows are all
    on their open upper faces get no output (or 0).
    """
    extractor._surrounding = domain
    sort = extractor._sort_cubes

    def sort_nonempty_boxes() -> None:
        boxes = extractor._hypercubes
        extractor._hypercubes = [box for box in boxes if box.barycenter.dimensions]
        sort()

    extractor._sort_cubes = sort_nonempty_boxes


def fix_hex(extractor: Any) -> None:
    """Set the output of HEx's default rule to the output of its rows.

    PSyKE uses the rows outside of all cells, including cells that it drops later.
    """

    def update(frame: Any) -> None:
        *cells, last = extractor._hypercubes
        if last is not extractor._surrounding:
            return
        rows = frame.iloc[:, :-1]
        in_cells = np.zeros(len(rows), dtype=bool)
        for cell in cells:
            in_cells |= cell.filter_indices(rows)
        last.update(frame[~in_cells] if not in_cells.all() else frame, extractor.predictor)

    extractor._create_theory = _call_before(extractor._create_theory, update)


def _call_before(method: Callable[..., Any], action: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls `action` with its arguments first."""

    def with_action(*arguments: Any) -> Any:
        action(*arguments)
        return method(*arguments)

    return with_action


#: Smallest range and largest magnitude of features for PSyKE's absolute precision of 1e-6.
_MIN_RANGE, _MAX_MAGNITUDE = 1e-4, 1e9
#: Smallest threshold; rounding errors in means of equal predictions must not exceed it.
_MIN_THRESHOLD = 1e-6


class Run(NamedTuple):
    """An extractor of PSyKE, its input rows, and a warning for the user."""

    extractor: Any
    frame: pd.DataFrame
    warning: str = ""


class Task(NamedTuple):
    """Input of a function that builds an extractor of PSyKE.

    The black box runs outside of the containment of PSyKE.
    """

    psyke: Any
    extraction: Extraction
    parameters: dict[str, Any]
    seed: int
    containment: Containment

    @property
    def classification(self) -> bool:
        """True if the black box is a classifier."""
        return self.extraction.task == "classification"

    @property
    def names(self) -> list[str]:
        """Names x0, x1, ... of the columns in PSyKE."""
        return [f"x{j}" for j in range(self.extraction.X.shape[1])]

    def predictor(self) -> Any:
        """Return the black box in PSyKE's interface."""
        kind = LabelPredictor if self.classification else NumberPredictor
        return kind(self.extraction, self.containment)

    def target(self) -> Any:
        """Return PSyKE's constant for the kind of output."""
        if self.classification:
            return self.psyke.Target.CLASSIFICATION
        if self.parameters.get("output") != "linear":
            return self.psyke.Target.CONSTANT
        self.check_quantities()
        return self.psyke.Target.REGRESSION

    def run(self, extractor: Any) -> Run:
        """Combine the extractor with the unchanged rows."""
        return Run(extractor, self.with_target(pd.DataFrame(self.extraction.X, columns=self.names)))

    def with_target(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the target column, of which PSyKE uses only the name."""
        return frame.assign(y=0.0)

    def threshold(self, share: float = 0.5, name: str = "threshold") -> float:
        """Return the threshold; by default 0.1 or a share of the standard deviation."""
        value = self.parameters[name]
        if value is not None:
            return float(value)
        if self.classification:
            return 0.1
        return max(share * float(np.std(self.extraction.predictions)), _MIN_THRESHOLD)

    def importances(self) -> np.ndarray:
        """Return the importances of the features, the largest of which is 1."""
        extraction = self.extraction
        return feature_importances(extraction.X, extraction.predictions, extraction.task)

    def ranks(self) -> list[tuple[str, float]]:
        """Return the importances in PSyKE's format."""
        return list(zip(self.names, self.importances().tolist(), strict=True))

    def check_quantities(self) -> None:
        """Raise a ValueError if features of linear models have missing values."""
        if self.extraction.no_quantities:
            name = str(self.extraction.settings["feature_names"][self.extraction.no_quantities[0]])
            raise ValueError(
                f"Feature {name!r} has missing values, and PSyKE's linear models use all features. "
                "Fill them in, pass output='constant' if the algorithm has this parameter, or use "
                "GridRExExtractor, which excludes such features from its linear models."
            )

    def check_numbers(self) -> None:
        """Raise a ValueError for features that exceed PSyKE's absolute precision."""
        why = "PSyKE compares numbers with a precision of 0.000001"
        self.extraction.check_magnitude(_MAX_MAGNITUDE, why)
        widths = np.ptp(self.extraction.X, axis=0)
        small = np.flatnonzero((widths > 0) & (widths < _MIN_RANGE))
        if len(small):
            name = str(self.extraction.settings["feature_names"][small[0]])
            raise ValueError(
                f"Feature {name!r} has a range of {widths[small[0]]:.3g}, less than "
                f"{_MIN_RANGE:g}; {why}. Scale the feature."
            )


#: Largest number of cells. PSyKE visits every cell of the grid; HEx visits every pair of cells.
_MAX_CELLS = {"gridex": 10_000, "hex": 1000}
#: Largest number of combinations of bins; REAL stores a row for each.
_MAX_COMBINATIONS = 1000
_MAX_SINGLE_PRECISION = float(np.finfo(np.float32).max)


def _cart(task: Task) -> Run:
    task.extraction.check_magnitude(_MAX_SINGLE_PRECISION, "trees work in single precision")
    parameters = task.parameters
    extractor = task.psyke.Extractor.cart(
        task.predictor(),
        max_depth=parameters["max_depth"],
        max_leaves=parameters["max_leaves"],
        max_features=parameters["max_features"],
    )
    fix_cart(extractor)
    if parameters["protected"] is not None:
        _make_fair(task, extractor)
    run, leaves = task.run(extractor), parameters["max_leaves"]
    if task.classification and leaves is not None:
        n_classes = len(np.unique(task.extraction.predictions))
        if leaves < n_classes:
            return run._replace(
                warning=f"max_leaves={leaves} is less than the {n_classes} classes that the black "
                "box predicts, so some of them are never predicted."
            )
    return run


def _make_fair(task: Task, extractor: Any) -> None:
    """Make the extractor grow PSyKE's fair tree, which never splits on protected features."""
    for parameter in ("max_depth", "max_leaves"):
        if task.parameters[parameter] is None:
            text = f"protected needs {parameter}, got None: PSyKE's fair tree requires a number."
            raise ValueError(text)
    names = [str(name) for name in task.extraction.settings["feature_names"]]
    indices = _feature_indices("protected", task.parameters["protected"], names)
    if len(indices) == len(names):
        raise ValueError(f"protected must leave a feature to split, got all {len(names)} features.")
    extractor.make_fair([task.names[j] for j in indices])
    extractor.predictor.feature_names_in_ = np.array(task.names)  # the fair tree drops them
    name = "_extract"
    original = getattr(extractor, name)

    def extract(frame: pd.DataFrame) -> Any:
        return original(frame.astype({frame.columns[-1]: object}))  # PSyKE rejects string types

    setattr(extractor, name, extract)


def _discretize(task: Task, max_combinations: float = float("inf")) -> tuple[OneHotBins, list[Any]]:
    """Return the discretized rows, and their bins as PSyKE's features.

    At most `max_combinations` combinations of bins are allowed. The default discretizer cuts only
    the most important features, so that this limit holds; other discretizers raise a ValueError.
    """
    from psyke.schema import Between, DiscreteFeature, GreaterThan, LessThan

    template = task.parameters["discretizer"]
    default = Discretizer("tree", min_bin_share=0.05, joint=True)
    discretizer = default if template is None else clone(template)
    cut_points = discretizer.fit(task.extraction.X, task.extraction.predictions).cut_points_
    if template is None:
        combinations = 1
        for j in np.argsort(-task.importances(), kind="stable"):
            if combinations * (len(cut_points[j]) + 1) > max_combinations:
                cut_points[j] = np.empty(0)
            combinations *= len(cut_points[j]) + 1
    bins = OneHotBins(task.extraction.X, cut_points)
    combinations = prod(len(feature.counts) for feature in bins.features)
    if combinations > max_combinations:
        raise ValueError(
            f"discretizer={template!r} creates {combinations} combinations of bins, and PSyKE's "
            f"REAL visits all of them; at most {max_combinations} are allowed. Cut fewer features "
            '(Discretizer("given", cut_points={...})), use fewer bins, or use REALExtractor.'
        )
    features = []
    for j, feature in enumerate(bins.features):
        cuts: list[float] = [] if feature.cuts is None else feature.cuts.tolist()
        values: list[Any] = []
        if cuts:
            # In PSyKE's own intervals, no bin contains the last cut.
            inner = [Between(low, high, standard=False) for low, high in pairwise(cuts)]
            values = [LessThan(cuts[0]), *inner, GreaterThan(cuts[-1])]
        names = bin_names(j, feature) if values else []  # features with one bin have no columns
        features.append(DiscreteFeature(f"x{j}", dict(zip(names, values, strict=True))))
    return bins, features


def _real(task: Task) -> Run:
    bins, features = _discretize(task, _MAX_COMBINATIONS)
    predictor = BinPredictor(task.extraction, task.containment, bins)
    extractor = task.psyke.Extractor.real(predictor, features)
    # Otherwise the class would cache 512 results and their inputs forever.
    extractor._get_or_set = extractor._create_ruleset
    return Run(extractor, task.with_target(bins.frame))


def _trepan(task: Task) -> Run:
    bins, features = _discretize(task)
    extractor = task.psyke.Extractor.trepan(
        RowPredictor(task.extraction, task.containment),
        features,
        min_examples=task.parameters["min_examples"],
        max_depth=task.parameters["max_depth"],
    )
    fix_trepan(extractor)
    return Run(extractor, task.with_target(bins.frame))


def _grid(task: Task, max_cells: int = _MAX_CELLS["gridex"]) -> Any:
    from psyke.extraction.hypercubic import Grid
    from psyke.extraction.hypercubic.strategy import AdaptiveStrategy, FixedStrategy

    slices, thresholds = task.parameters["n_slices"], task.parameters["importance_threshold"]
    strategy: Any
    if thresholds is None:
        strategy = FixedStrategy(int(slices))
    else:
        pairs = zip(_as_sequence(thresholds), _as_sequence(slices), strict=True)
        strategy = AdaptiveStrategy(task.ranks(), [(float(low), int(n)) for low, n in pairs])
    cells = prod(strategy.get(name) for name in task.names)
    if cells > max_cells:
        raise ValueError(
            f"n_slices={slices!r} with importance_threshold={thresholds!r} cuts a box into {cells} "
            f"cells, and PSyKE visits each of them; at most {max_cells} are allowed. Cut fewer "
            "features (for example, importance_threshold=0.5) or use GridExExtractor, which visits "
            "only cells with rows."
        )
    return Grid(int(task.parameters["depth"]), strategy)


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if is_sequence(value) else [value]


def _gridex(task: Task) -> Run:
    task.check_numbers()
    extractor = task.psyke.Extractor.gridex(
        task.predictor(),
        _grid(task),
        min_examples=task.parameters["min_examples"],
        threshold=task.threshold(),
        seed=task.seed,
    )
    return task.run(extractor)


def _gridrex(task: Task) -> Run:
    task.check_numbers()
    task.check_quantities()
    threshold = task.parameters["threshold"]
    extractor = task.psyke.Extractor.gridrex(
        task.predictor(),
        _grid(task),
        min_examples=task.parameters["min_examples"],
        threshold=_residual(task.extraction) if threshold is None else float(threshold),
        seed=task.seed,
    )
    return task.run(extractor)


def _residual(extraction: Extraction) -> float:
    """Return half the mean absolute residual of one linear model, at least 1 % of the deviation."""
    X, y_pred = np.column_stack([extraction.X, np.ones(len(extraction.X))]), extraction.predictions
    coefficients = np.linalg.lstsq(X, y_pred, rcond=None)[0]
    residual = float(np.mean(np.abs(X @ coefficients - y_pred)))
    return max(residual / 2, 0.01 * float(np.std(y_pred)))


def _hex(task: Task) -> Run:
    task.check_numbers()
    extractor = task.psyke.Extractor.hex(
        task.predictor(),
        _grid(task, _MAX_CELLS["hex"]),
        min_examples=task.parameters["min_examples"],
        threshold=task.threshold(),
        output=task.target(),
        seed=task.seed,
    )
    fix_hex(extractor)
    return task.run(extractor)


def _iter(task: Task) -> Run:
    task.check_numbers()
    parameters = task.parameters
    extractor = task.psyke.Extractor.iter(
        task.predictor(),
        min_update=parameters["min_update"],
        n_points=parameters["n_points"],
        max_iterations=parameters["max_iterations"],
        min_examples=parameters["min_examples"],
        threshold=task.threshold(),
        fill_gaps=bool(parameters["fill_gaps"]),
        output=task.target(),
        seed=task.seed,
    )
    fix_iter(extractor, task.names)
    return task.run(extractor)


def _divine(task: Task) -> Run:
    task.check_numbers()
    extractor = task.psyke.Extractor.divine(task.predictor(), **_bottom_up(task), seed=task.seed)
    return task.run(extractor)


def _bottom_up(task: Task) -> dict[str, Any]:
    parameters = {name: task.parameters[name] for name in ("k", "patience", "close_to_center")}
    n_rows = len(task.extraction.X)
    if parameters["k"] > n_rows:
        raise ValueError(
            f"k must be at most the number of rows ({n_rows}), because the k nearest rows of "
            f"each row are used, got {parameters['k']!r}."
        )
    return parameters


def _cosmik(task: Task) -> Run:
    from psyke.extraction.hypercubic import HyperCube

    task.check_numbers()
    extractor = task.psyke.Extractor.cosmik(
        task.predictor(),
        max_components=task.parameters["max_components"],
        **_bottom_up(task),
        output=task.target(),
        seed=task.seed,
    )
    run = task.run(extractor)
    fix_cosmik(extractor, HyperCube.create_surrounding_cube(run.frame))
    return run


def _clusters(name: str) -> Callable[[Task], Run]:
    def build(task: Task) -> Run:
        task.check_numbers()
        parameters = task.parameters
        ignore = float(parameters["ignore_threshold"])
        extractor = task.psyke.Extractor.creepy(
            task.predictor(),
            getattr(task.psyke.Clustering, name),
            depth=parameters["depth"],
            error_threshold=task.threshold(0.1, "error_threshold"),
            output=task.target(),
            gauss_components=parameters["gauss_components"],
            ranks=task.ranks() if ignore else (),
            ignore_threshold=ignore,
            seed=task.seed,
        )
        fix_clusterer(extractor.clustering)
        return task.run(extractor)

    return build


def _ginger(task: Task) -> Run:
    task.check_numbers()
    parameters = task.parameters
    columns = _features_to_cut(task)
    widths = np.ptp(task.extraction.X, axis=0)
    extractor = task.psyke.Extractor.ginger(
        task.predictor(),
        [f"x{j}" for j in columns],
        [float(parameters["sigma"]) * float(widths[j]) for j in columns],
        parameters["max_slices"],
        min_rules=parameters["min_rules"],
        alpha=parameters["alpha"],
        indpb=parameters["indpb"],
        tournsize=parameters["tournsize"],
        metric=parameters["metric"] or ("ACC" if task.classification else "R2"),
        n_gen=parameters["n_gen"],
        n_pop=parameters["n_pop"],
        threshold=parameters["threshold"],
        output=task.target(),
        seed=task.seed,
    )
    run, choices = task.run(extractor), int(parameters["max_slices"]) ** len(columns)
    if choices == 1:
        return run
    return run._replace(
        warning=f"GInGER tries {choices} numbers of cuts and, in PSyKE 1.0.4, keeps the one that "
        "scores worst. Set max_slices=1 for a single one."
    )


def _features_to_cut(task: Task) -> list[int]:
    """Return the indices of the features that GInGER cuts, by default the most important ones."""
    names = [str(name) for name in task.extraction.settings["feature_names"]]
    features = task.parameters["features"]
    if features is None:
        n_features = min(int(task.parameters["n_features"]), len(names))
        top_features = np.argsort(-task.importances(), kind="stable")[:n_features]
        return sorted(top_features.tolist())
    return _feature_indices("features", features, names)


def _feature_indices(parameter: str, features: Sequence[Any], names: list[str]) -> list[int]:
    """Return the indices of features that a parameter lists by index or name."""
    result = []
    for feature in features:
        is_name = isinstance(feature, str) and feature in names
        index = names.index(feature) if is_name else feature
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            index = -1
        if not 0 <= index < len(names):
            raise ValueError(
                f"{parameter} must hold indices from 0 to {len(names) - 1} or names of features "
                f"({', '.join(map(repr, names[:12]))}), got {feature!r}."
            )
        result.append(int(index))
    if len(set(result)) < len(result):
        raise ValueError(f"{parameter} must name each feature once, got {features!r}.")
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
