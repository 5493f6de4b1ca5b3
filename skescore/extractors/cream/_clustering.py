"""Explainable clustering: boxes inside boxes, grown from the densest parts of the rows.

A node is a set of rows in a box. It is split by an inner box around some of its rows: the inside is
one child, the rest, still in the whole box, the other. The leaves are read as an ordered list of
rules, those of the inside first, so that each means "in this box and in none before".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from skescore._random import combine, draw_seed
from skescore.extractors import _validation as check
from skescore.extractors._importance import feature_importances, given_importances
from skescore.extractors._linear_models import ridge_slopes
from skescore.extractors._sharing import Sharing, digest, once
from skescore.extractors.cream._candidates import CRITERIA, FaceMover, dense_parts
from skescore.rules import Conclusions, LinearOutput
from skescore.rules._arrays import BoxTable
from skescore.rules._columns import Table
from skescore.rules._matching import Matcher

# --- what the parameters and targets of CREAM and ExACT may be -----------------------------------

#: Larger numbers have squares, and sums of them, that overflow.
LARGEST = 1e100
#: Fewer rows make no clusters.
_LEAST_SAMPLES = 10


@dataclass(frozen=True)
class Growth:
    """How to grow boxes.

    Parameters
    ----------
    both : bool
        True: choose the box that makes both children homogeneous and split both (CREAM). False:
        choose the largest useful box and split its inside only (ExACT).
    depth : int
        Most boxes inside each other, without the outermost.
    error_threshold : float or None
        A node at most so diverse is not split; None for the target's own.
    gauss_components : int
        Most components of mixtures.
    criterion : {"bic", "bic/m"}
        Chooses their number.
    scale : bool
        Whether to standardise features and target for mixtures and distances.
    max_samples : int or None
        Most rows of a node among which clusters are looked for.
    weighted : bool
        Whether the children's diversities count by their rows.
    seed : int
        Seed of the whole run.
    """

    both: bool
    depth: int
    error_threshold: float | None
    gauss_components: int
    criterion: str
    scale: bool
    max_samples: int | None
    weighted: bool
    seed: int


def check_parameters(estimator: Any) -> None:
    """Raise a ValueError or TypeError for a parameter of a clusterer or extractor.

    Parameters
    ----------
    estimator : estimator
        With the parameters of :class:`Growth` but the seed, ``output`` and ``ignore_threshold``.
    """
    check.check_integer("depth", estimator.depth, 1)
    check.check_number("error_threshold", estimator.error_threshold, 0.0, optional=True)
    check.check_integer("gauss_components", estimator.gauss_components, 2)
    check.check_choice("criterion", estimator.criterion, CRITERIA)
    check.check_flag("scale", estimator.scale)
    check.check_integer("max_samples", estimator.max_samples, _LEAST_SAMPLES, optional=True)
    check.check_flag("weighted", getattr(estimator, "weighted", False))
    check.check_number("ignore_threshold", estimator.ignore_threshold, 0.0, 1.0)
    check.check_choice("output", estimator.output, ("constant", "linear"))


def check_target_magnitude(who: str, values: np.ndarray) -> None:
    """Raise a ValueError for numbers whose squares would overflow.

    Parameters
    ----------
    who : str
        Beginning of the message, such as "y holds".
    values : ndarray of shape (n_rows,)
        The numbers.
    """
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise ValueError(
            f"{who} numbers up to {largest:.3g}, more than {LARGEST:g}; their squares would "
            "overflow. Scale the target."
        )


# --- what clusters are to be homogeneous in: labels, numbers, or the features themselves ---------

#: Rows worked on at a time.
_CHUNK = 1 << 16


class Target(Protocol):
    """The values that rules are to conclude."""

    #: Diversity at which a set of rows is homogeneous unless the user says otherwise.
    default_threshold: float

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """Numbers that describe the target of some rows to a mixture, one row each."""

    def diversity(self, rows: np.ndarray) -> float:
        """How different the targets of some rows are."""

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """Numbers whose sums over rows say how different their targets are; None: there are none.

        One row per number, one column per row of the data; the first numbers are all 1.
        """

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """How different the targets are, times their number, given sums of moments (last axis)."""

    def importance_answers(self, index: np.ndarray) -> tuple[np.ndarray, str]:
        """What features may be important for, given each row's rule, and its kind of task."""

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """What each rule concludes on the rows of the given index."""


class LabelTarget:
    """Class labels; the diversity is the share of rows outside the commonest class.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Index of each row's class, the same for the whole run.
    n_classes : int
        Number of classes.
    """

    default_threshold = 0.1

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        self._codes, self._n_classes = codes, n_classes
        counts = np.bincount(codes, minlength=n_classes)
        share = counts / len(codes)
        self._mean = share @ np.arange(n_classes)
        self._deviation = np.sqrt(share @ (np.arange(n_classes) - self._mean) ** 2)

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """The classes' indices."""
        codes = self._codes[rows, None].astype(float)
        return (codes - self._mean) / (self._deviation or 1.0) if scale else codes

    def diversity(self, rows: np.ndarray) -> float:
        """Share of the rows outside the commonest class."""
        counts = np.bincount(self._codes[rows])
        # Not 1 - share: 1 - 9/10 is a little less than 0.1.
        return float((len(rows) - counts.max()) / len(rows))

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """Rows, and rows of each class."""
        of_class = self._codes[rows] == np.arange(self._n_classes)[:, None]
        return np.vstack([np.ones(len(rows)), of_class])

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Gini impurity: the share of other classes falls by jumps, with nothing in between."""
        n_rows = np.maximum(sums[..., 0], 1)
        return np.asarray(n_rows - (sums[..., 1:] ** 2).sum(axis=-1) / n_rows)

    def importance_answers(self, index: np.ndarray) -> tuple[np.ndarray, str]:
        """The classes."""
        return self._codes, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """Commonest class, of equally common ones the first, and all class counts."""
        flat = np.bincount(
            index * self._n_classes + self._codes, minlength=n_rules * self._n_classes
        )
        counts = flat.reshape(n_rules, self._n_classes)
        return Conclusions(counts.argmax(axis=1), n_rows=counts.sum(axis=1), class_counts=counts)


class NumberTarget:
    """Numbers, concluded as their mean or as a plane through them.

    The diversity is their standard deviation, or the mean absolute distance from the plane.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    values : ndarray of shape (n_rows,)
        The numbers.
    linear : bool
        Whether rules conclude planes.
    """

    def __init__(self, X: np.ndarray, values: np.ndarray, linear: bool) -> None:
        self._X, self._values, self._linear = X, values, linear
        self._mean, self._deviation = float(values.mean()), float(values.std())
        self.default_threshold = 0.1 * self._deviation

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """The numbers."""
        values = self._values[rows, None]
        return (values - self._mean) / (self._deviation or 1.0) if scale else values

    def diversity(self, rows: np.ndarray) -> float:
        """Deviation from the mean, or from the plane.

        A plane lies the closer to its own rows the fewer they are, and the farther from others;
        the distance is therefore multiplied by rows over rows minus coefficients.
        """
        if not self._linear:
            return float(self._values[rows].std())
        intercept, slopes = _fit_plane(self._X, self._values, rows)
        total = sum(
            float(np.abs(self._values[some] - intercept - self._X[some] @ slopes).sum())
            for some in _chunks(rows)
        )
        return total / max(1, len(rows) - self._X.shape[1] - 1)

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """Powers of the numbers, in their deviation from the mean."""
        standard = (self._values[rows] - self._mean) / (self._deviation or 1.0)
        return np.vstack([np.ones(len(rows)), standard, standard**2])

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Deviation."""
        return np.sqrt(np.maximum(0.0, sums[..., 0] * sums[..., 2] - sums[..., 1] ** 2))

    def importance_answers(self, index: np.ndarray) -> tuple[np.ndarray, str]:
        """The numbers."""
        return self._values, "regression"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """Mean or plane, and mean and deviation."""
        n_rows = np.bincount(index, minlength=n_rules)
        mean = np.bincount(index, weights=self._values, minlength=n_rules) / n_rows
        squares = (self._values - mean[index]) ** 2
        spread = np.sqrt(np.bincount(index, weights=squares, minlength=n_rules) / n_rows)
        linear: dict[int, LinearOutput] = {}
        if self._linear:
            groups = np.split(np.argsort(index, kind="stable"), np.cumsum(n_rows)[:-1])
            for rule, rows in enumerate(groups):
                intercept, slopes = _fit_plane(self._X, self._values, rows)
                linear[rule] = LinearOutput(intercept, tuple(enumerate(slopes.tolist())))
        outputs = np.full(n_rules, np.nan) if self._linear else mean
        return Conclusions(outputs, n_rows=n_rows, mean=mean, spread=spread, linear=linear)


class NoTarget:
    """No target: clusters of rows that lie close together, numbered.

    The diversity is the share of all rows' variance (summed over standardised features) that is
    left.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    """

    default_threshold = 0.1

    def __init__(self, X: np.ndarray) -> None:
        self._X, self._deviation = X, column_moments(X, np.arange(len(X)))[1]

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """None."""
        return np.empty((len(rows), 0))

    def diversity(self, rows: np.ndarray) -> float:
        """Mean variance of the features over that of all rows."""
        varying = self._deviation > 0
        if not varying.any():
            return 0.0
        deviation = column_moments(self._X, rows)[1]
        return float(np.mean((deviation[varying] / self._deviation[varying]) ** 2))

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """None: boxes are to be those of clusters."""
        return None

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Never asked."""
        raise NotImplementedError

    def importance_answers(self, index: np.ndarray) -> tuple[np.ndarray, str]:
        """The clusters."""
        return index, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """The rule's own number."""
        n_rows = np.bincount(index, minlength=n_rules)
        return Conclusions(np.arange(n_rules), n_rows=n_rows, class_counts=np.diag(n_rows))


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), _CHUNK):
        yield rows[begin : begin + _CHUNK]


def column_moments(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population standard deviation of every column over some rows.

    Parameters
    ----------
    X : ndarray of shape (n_all_rows, n_columns)
        All rows; no more than some thousands are copied at a time.
    rows : ndarray of int
        The rows meant, at least one.

    Returns
    -------
    mean, deviation : ndarray of shape (n_columns,)
        The deviation of a column of equal numbers is 0 exactly.
    """
    first = X[rows[0]]
    shift = sum((X[some] - first).sum(axis=0) for some in _chunks(rows)) / len(rows)
    mean = first + shift
    squares = sum(((X[some] - mean) ** 2).sum(axis=0) for some in _chunks(rows))
    return mean, np.sqrt(squares / len(rows))


def _fit_plane(X: np.ndarray, values: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Fit a plane to some rows by least squares.

    Parameters
    ----------
    X : ndarray of shape (n_all_rows, n_features)
        All rows.
    values : ndarray of shape (n_all_rows,)
        The numbers to fit.
    rows : ndarray of int
        The rows meant, at least one.

    Returns
    -------
    intercept : float
        Value of the plane where all features are 0.
    slopes : ndarray of shape (n_features,)
        In the features' units; 0 for features that are constant on the rows. Of equally good
        planes the one with the smallest slopes per standard deviation. With few rows slopes are
        shrunk, see :func:`skescore.extractors._linear_models.ridge_slopes`.
    """
    n_features = X.shape[1]
    mean, deviation = column_moments(X, rows)
    unit = np.where(deviation > 0, deviation, np.inf)
    centre = float(values[rows].mean())
    level = float(np.abs(values[rows] - centre).max()) or 1.0
    gram = np.zeros((n_features + 1, n_features + 1))
    for some in _chunks(rows):
        standard = np.column_stack([(X[some] - mean) / unit, (values[some] - centre) / level])
        gram += standard.T @ standard
    slopes = ridge_slopes(np.array([len(rows)]), gram[None])[0] * level / unit
    return centre - float(slopes @ mean), slopes


# --- Explainable clustering: boxes inside boxes, grown from the densest parts of the rows --------

#: The largest box must lower the diversity by this share of what the best one lowers it by.
_USEFUL = 0.5
#: Diversities that differ by a smaller share are the same but for rounding.
_SAME = 1e-9
_INSIDE, _OUTSIDE, _CLUSTERED = 1, 2, 4
#: Faces hang on few rows: they are moved by so many times the rows that clusters are sought among.
_FACE_ROWS = 4
#: A side of a box that is shorter than this share of the domain's counts as this long.
_LEAST_SIDE = 1e-6


@dataclass(frozen=True, eq=False)
class _Node:
    rows: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: int
    key: np.ndarray
    final: bool = False


class _Judged(NamedTuple):
    """What a box leaves of the diversity, its volume, and how many of the rows it holds."""

    diversity: float
    log_volume: float
    n_inside: int


class BoxGrower:
    """Grows the boxes of CREAM and ExACT.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    target : Target
        What rules conclude.
    growth : Growth
        How to grow them.
    sharing : Sharing, optional
        Memory of what other extractions from these rows have worked out.
    """

    def __init__(
        self, X: np.ndarray, target: Target, growth: Growth, sharing: Sharing | None = None
    ) -> None:
        self._X, self._target, self._growth, self._sharing = X, target, growth, sharing
        self._mean, self._deviation = column_moments(X, np.arange(len(X)))
        self._varying = np.flatnonzero(self._deviation > 0)
        self._low, self._high = X.min(axis=0), X.max(axis=0)
        given = growth.error_threshold
        self._threshold = target.default_threshold if given is None else given

    def grow(self) -> tuple[np.ndarray, np.ndarray]:
        """Grow the boxes.

        Returns
        -------
        lower, upper : ndarray of shape (n_boxes, n_features)
            Closed boxes in the order in which they answer; the last one has no bounds.
        """
        n_rows, n_features = self._X.shape
        open_box = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        root = _Node(np.arange(n_rows), *open_box, 0, combine(self._growth.seed, 0))
        stack, leaves = [root], []
        # Many small pieces of work: threads would only stand in each other's way.
        with _thread_pools().limit(limits=1):
            while stack:
                node = stack.pop()
                children = None if self._is_final(node) else self._split(node)
                if children is None:
                    leaves.append(node)
                else:
                    stack += [children[1], children[0]]
        return np.array([n.lower for n in leaves]), np.array([n.upper for n in leaves])

    def _is_final(self, node: _Node) -> bool:
        return (
            node.final
            or node.level >= self._growth.depth
            or len(node.rows) < 2
            or not len(self._varying)
            or self._target.diversity(node.rows) <= self._threshold
        )

    def _split(self, node: _Node) -> tuple[_Node, _Node] | None:
        """The inside and the outside of the best inner box."""
        rows = self._sampled(node)
        boxes = []
        for lower, upper in self._candidates(node, rows):
            inside = self._inside(rows, lower, upper)
            if 0 < inside.sum() < len(rows):
                boxes.append((self._judge(rows, inside, lower, upper), lower, upper))
        if not boxes:
            return None
        diversity = self._target.diversity(rows)
        chosen = self._choose([judged for judged, _, _ in boxes], diversity)
        best, lower, upper = boxes[chosen]
        if best.diversity > diversity * (1 + _SAME) and (
            self._growth.weighted or not self._growth.both
        ):
            return None  # planes through fewer rows would be farther from others
        inside = self._inside(node.rows, lower, upper)
        level = node.level + 1
        return (
            _Node(node.rows[inside], lower, upper, level, combine(node.key, _INSIDE)),
            _Node(
                node.rows[~inside],
                node.lower,
                node.upper,
                level,
                combine(node.key, _OUTSIDE),
                final=not self._growth.both,
            ),
        )

    def _sampled(self, node: _Node) -> np.ndarray:
        most = self._growth.max_samples
        return node.rows if most is None else self._drawn(node.rows, _FACE_ROWS * most, node.key)

    def _drawn(self, rows: np.ndarray, most: int, key: np.ndarray) -> np.ndarray:
        if len(rows) <= most:
            return rows
        generator = np.random.default_rng(int(key))
        return rows[np.sort(generator.choice(len(rows), most, replace=False))]

    def _candidates(self, node: _Node, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        most = self._growth.max_samples or len(rows)
        some = self._drawn(rows, most, combine(node.key, _CLUSTERED))
        features = self._X[some]
        table = features[:, self._varying]
        unit = 1.0
        if self._growth.scale:
            table = (table - self._mean[self._varying]) / self._deviation[self._varying]
        else:
            unit = float(np.median(self._deviation[self._varying]))
        described = self._target.columns(some, self._growth.scale)
        if self._growth.scale:
            # The target counts as much as all features together.
            described = described * np.sqrt(len(self._varying))
        seed = int(combine(node.key, _INSIDE + _OUTSIDE) >> np.uint64(33))
        # What decides the table; its columns are the same for means and for planes.
        sharing = self._part((digest(some), seed, self._growth.scale))
        parts = dense_parts(
            np.column_stack([table, described]),
            len(self._varying),
            self._growth.gauss_components,
            self._growth.criterion,
            seed,
            unit,
            *([] if sharing is None else [sharing]),
        )
        return self._moved(
            [_box_around(features, part, node.lower, node.upper) for part in parts], node, rows
        )

    def _moved(
        self, boxes: list[tuple[np.ndarray, np.ndarray]], node: _Node, rows: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Boxes whose faces are where they set the target apart, if there is one."""
        moments = self._target.moments(rows)
        if moments is None:
            return boxes
        # What lies outside a box of ExACT is concluded at once, its inside may be split again.
        inner_weight = 1.0 if self._growth.both else 1.0 / (self._growth.depth - node.level)

        @cache
        def mover() -> FaceMover:
            return FaceMover(self._X[rows], moments, self._target.scatter, inner_weight)

        def moved(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return mover().move(lower, upper, node.lower, node.upper)

        sharing = self._part((digest(rows), inner_weight))
        return [
            once(sharing, digest(*box, node.lower, node.upper), partial(moved, *box))
            for box in boxes
        ]

    def _part(self, about: Hashable) -> Sharing | None:
        return None if self._sharing is None else self._sharing.narrowed(about)

    def _inside(self, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Which of some rows a closed box holds."""
        left = np.arange(len(rows))
        for j in np.flatnonzero((lower > -np.inf) | (upper < np.inf)):
            values = self._X[rows[left], j]
            left = left[(values >= lower[j]) & (values <= upper[j])]
        result = np.zeros(len(rows), dtype=bool)
        result[left] = True
        return result

    def _judge(
        self, rows: np.ndarray, inside: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> _Judged:
        n_inside = int(inside.sum())
        weighted = self._growth.weighted or not self._growth.both
        share = n_inside / len(rows) if weighted else 0.5
        inner = self._target.diversity(rows[inside])
        outer = self._target.diversity(rows[~inside])
        diversity = share * inner + (1 - share) * outer
        return _Judged(diversity, self._log_volume(lower, upper), n_inside)

    def _choose(self, judged: list[_Judged], diversity: float) -> int:
        """Number of the best box; of equally good ones the first."""
        numbers = range(len(judged))
        quantum = _SAME * max(diversity, max(j.diversity for j in judged)) or 1.0
        if self._growth.both:
            return min(
                numbers,
                key=lambda i: (round(judged[i].diversity / quantum), judged[i].log_volume),
            )
        # A box that is large because it sets nothing apart is of no use.
        gain = max(0.0, diversity - min(j.diversity for j in judged))
        most = diversity - _USEFUL * gain + quantum
        return min(
            numbers,
            key=lambda i: (judged[i].diversity > most, -judged[i].log_volume, -judged[i].n_inside),
        )

    def _log_volume(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Logarithm of the share of the domain's volume that a box fills."""
        at = self._varying
        low, high = self._low[at], self._high[at]
        side = np.clip(upper[at], low, high) - np.clip(lower[at], low, high)
        return float(np.log(np.maximum(side / (high - low), _LEAST_SIDE)).sum())


@cache
def _thread_pools() -> ThreadpoolController:
    """Libraries with threads; looking for them takes longer than growing boxes in few rows."""
    return ThreadpoolController()


def _box_around(
    features: np.ndarray, part: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The box around some rows, its faces half way to the next row outside.

    Where no row lies beyond, the face is that of the outer box (`lower`, `upper`).
    """
    low, high = features[part].min(axis=0), features[part].max(axis=0)
    below = np.where(features < low, features, -np.inf).max(axis=0)
    above = np.where(features > high, features, np.inf).min(axis=0)
    # Between neighbouring floats there is nothing, and half way is one of them.
    down, up = low / 2 + below / 2, high / 2 + above / 2
    down, up = np.where(down > below, down, low), np.where(up < above, up, high)
    return np.where(below > -np.inf, down, lower), np.where(above < np.inf, up, upper)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Boxes with what they conclude.

    Parameters
    ----------
    boxes : BoxTable
        In the order in which they answer; the last one has no bounds.
    conclusions : Conclusions
        One per box.
    labels : ndarray of int, shape (n_rows,)
        Index of the box that answers each row; every box answers some.
    importances : ndarray of shape (n_features,)
        Importance of each feature; 0 where nobody asked.
    """

    boxes: BoxTable
    conclusions: Conclusions
    labels: np.ndarray
    importances: np.ndarray


def cluster(
    estimator: Any,
    X: np.ndarray,
    target: Target,
    feature_names: Any,
    sharing: Sharing | None = None,
) -> Clustering:
    """Grow boxes with the parameters of a clusterer or extractor and make rules of them.

    Parameters
    ----------
    estimator : estimator
        Holds the parameters; see :func:`check_parameters`.
    X : ndarray of shape (n_rows, n_features)
        The rows.
    target : Target
        What rules conclude.
    feature_names : sequence of str
        Name of each column.
    sharing : Sharing, optional
        Memory of what other extractions from these rows have worked out.

    Returns
    -------
    Clustering
        Boxes that answer no row are left out; the last one that is left answers whatever the
        others do not.
    """
    n_features = X.shape[1]
    given = None
    if estimator.importances is not None:
        given = given_importances(estimator.importances, n_features)
    growth = Growth(
        estimator._both,
        estimator.depth,
        estimator.error_threshold,
        estimator.gauss_components,
        estimator.criterion,
        estimator.scale,
        estimator.max_samples,
        getattr(estimator, "weighted", False),
        draw_seed(estimator.random_state),
    )
    lower, upper = BoxGrower(X, target, growth, sharing).grow()
    importances = np.zeros(n_features) if given is None else given
    if estimator.ignore_threshold > 0:
        if given is None:
            labels = _assign(X, lower, upper, feature_names)
            importances = feature_importances(X, *target.importance_answers(labels))
        ignored = importances < estimator.ignore_threshold
        lower, upper = np.where(ignored, -np.inf, lower), np.where(ignored, np.inf, upper)
    used, labels = np.unique(_assign(X, lower, upper, feature_names), return_inverse=True)
    lower, upper = lower[used], upper[used]
    # Nothing is left for the boxes after the last one that answers, so that it answers the rest.
    lower[-1], upper[-1] = -np.inf, np.inf
    return Clustering(
        _closed(lower, upper), target.conclude(labels, len(used)), labels, importances
    )


def _closed(lower: np.ndarray, upper: np.ndarray) -> BoxTable:
    return BoxTable(lower, upper, lower > -np.inf, upper < np.inf)


def _assign(X: np.ndarray, lower: np.ndarray, upper: np.ndarray, names: Any) -> np.ndarray:
    """The first box that holds each row."""
    return Matcher(_closed(lower, upper), [()] * len(lower)).first(Table(X, names))
