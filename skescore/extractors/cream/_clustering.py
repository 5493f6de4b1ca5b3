"""Explainable clustering: boxes inside boxes, grown from the densest parts of the rows.

A node is a set of rows in a box. It is split by an inner box around some of its rows: the inside is
one child, the rest, still in the whole box, the other. The leaves are read as an ordered list of
rules, those of the inside first, so that each means "in this box and in none before".
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from skescore._random import combine, draw_seed
from skescore.extractors._importance import feature_importances, given_importances
from skescore.extractors._sharing import Sharing, digest, once
from skescore.extractors.cream._candidates import FaceMover, dense_parts
from skescore.extractors.cream._cluster_parameters import Growth
from skescore.extractors.cream._cluster_targets import Target, column_moments
from skescore.rules._arrays import BoxTable, Conclusions
from skescore.rules._columns import Table
from skescore.rules._matching import Matcher

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
