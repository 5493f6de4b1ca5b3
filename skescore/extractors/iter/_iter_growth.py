"""Where boxes begin, which strip comes next, and what the black box is asked to find out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skescore._random import combine
from skescore.extractors.iter._answers import Answers, PointSource
from skescore.extractors.iter._growth import Strips

#: A strip may be acted on while its points stand for at least this share of its volume.
_FRESH = 0.7
#: A strip whose points stand for more is left alone when others are looked at.
_NEARLY_ALL = 0.95
#: Numbers in the points of one question to the black box, at most.
_MOST_NUMBERS = 1 << 22


class Growth(Strips):
    """Grows boxes by the strips that are most like them.

    Parameters
    ----------
    X, answers, lower, upper, steps
        As for :class:`Strips`.
    ask : callable
        Answers the black box's answers on points.
    points : PointSource
        Draws the points.
    min_examples : int
        Answers wanted per strip: what rows it lacks is made up by points.
    limit : float
        Largest gap up to which a strip is like its box.
    follow : bool
        Whether strips are compared with all that the box has become, or with what it was at first.

    Attributes
    ----------
    first_mean : ndarray of shape (n_boxes, width)
        Mean vector of the answers in each box when it was made.

    Notes
    -----
    What is known of a strip by points is a mean vector and the share of the strip's volume it
    stands for. While a box grows elsewhere, its strip widens and that share falls. To bring it up
    to date, points are drawn uniformly in the whole strip, but those in the part known before are
    not asked about: the old mean stands for them. So points are shared by all the strips that a
    face has until it moves, the new part gets the share of its volume, and the mean is that of
    points spread uniformly. Many steps need no question at all, because no strip has widened by
    much since the last.
    """

    _fields = (
        *Strips._fields,
        ("first_mean", "width", float, 0),
        ("known", "faces width", float, 0),
        ("share", "faces", float, 0),
        ("seen", "faces", np.int64, -1),
        ("draws", "faces", np.int64, 0),
        ("gap", "faces", float, np.inf),
        ("diversity", "faces", float, 0),
    )

    first_mean: np.ndarray
    known: np.ndarray
    share: np.ndarray
    seen: np.ndarray
    draws: np.ndarray
    gap: np.ndarray
    diversity: np.ndarray

    def __init__(
        self,
        X: np.ndarray,
        answers: Answers,
        lower: np.ndarray,
        upper: np.ndarray,
        steps: np.ndarray,
        *,
        ask: Callable[[np.ndarray], np.ndarray],
        points: PointSource,
        min_examples: int,
        limit: float,
        follow: bool,
    ) -> None:
        super().__init__(X, answers, lower, upper, steps)
        self._ask, self._points = ask, points
        self._min_examples, self._limit, self._follow = min_examples, limit, follow
        #: Bounds that boxes had when their strips were looked at.
        self._snapshots = np.empty((64, 2, self.n_features))
        self._n_snapshots = 0

    # --- choice ------------------------------------------------------------------------------

    def step(self) -> bool:
        """Move a face or make a box of a strip, after one question at most.

        Returns
        -------
        bool
            False if there was nothing left to do.
        """
        choice, stale = self._best(), self._stale()
        if stale.any():
            # Before a new box is made, nothing that may be nearer must be overlooked.
            nothing_near = choice is None or self.gap[choice] > self._limit
            if nothing_near or stale[choice]:
                self._look(stale.size if nothing_near else max(4, self.n_features // 2))
                stale = self._stale()
                choice = self._best(~stale)
        if choice is None:
            return bool(stale.any())
        if self.gap[choice] > self._limit:
            self.split_off(*choice)
        else:
            self.grow(*choice)
        return True

    def _best(self, allowed: np.ndarray | None = None) -> tuple[int, int] | None:
        """Box and face of the strip to act on; None if there is none."""
        some = slice(0, self.n_boxes)
        gap, n = self.gap[some], self.n[some]
        if allowed is not None:
            gap = np.where(allowed, gap, np.inf)
        least = gap.min()
        if least > self._limit and (with_rows := (n > 0) & (gap < np.inf)).any():
            gap = np.where(with_rows, gap, np.inf)
            least = gap.min()
        if least == np.inf:
            return None
        ties = np.flatnonzero(gap == least)
        if len(ties) > 1:
            diversity = self.diversity[some].ravel()[ties]
            ties = ties[np.lexsort((diversity, -n.ravel()[ties]))]
        box, face = divmod(int(ties[0]), self.n_faces)
        return box, face

    def _wanting(self, share: float) -> np.ndarray:
        """Strips that lack rows and whose points stand for less than a share of their volume."""
        some = slice(0, self.n_boxes)
        lacks = self.n[some] < self._min_examples
        return self.open[some] & lacks & (self.share[some] < share)

    def _stale(self) -> np.ndarray:
        return self._wanting(_FRESH)

    # --- what is known -----------------------------------------------------------------------

    def _n_points(self, b: int) -> np.ndarray:
        """Number of answers per strip for which points stand."""
        return np.maximum(self._min_examples - self.n[b], 0)

    def _means(self, b: int) -> np.ndarray:
        points = self._n_points(b)
        total = np.maximum(self.n[b] + points, 1)
        return (self.sums[b] + points[:, None] * self.known[b]) / total[:, None]

    def _start(self, b: int, mean: np.ndarray) -> None:
        self.first_mean[b] = mean
        super()._start(b, mean)

    def _forget(self, b: int, face: int) -> None:
        self.share[b, face], self.seen[b, face] = 0, -1

    def _widen(self, b: int, face: int, kept: float, mean: np.ndarray) -> None:
        if self._min_examples == 0:
            # Few rows in much volume must not count for all of it.
            rows = np.count_nonzero(self.owner == b)  # those of the strip are in already
            super()._widen(b, face, 1 - self.n[b, face] / rows, mean)
        else:
            super()._widen(b, face, kept, mean)
        beside = self.share[b, face ^ 1]  # does not widen
        self.share[b] *= kept
        self.share[b, face ^ 1] = beside

    def _judge(self, b: int) -> None:
        """Compare all strips of a box with it."""
        means = self._means(b)
        gap = self.answers.gaps(means, (self.mean if self._follow else self.first_mean)[b])
        diversity = self.answers.diversities(means)
        if self._min_examples == 0:
            # Nothing speaks against growing where nothing is known, but it can wait; boxes then
            # grow evenly.
            unknown = np.flatnonzero((self.n[b] == 0) & self.open[b])
            gap[unknown] = self._limit
            features = unknown >> 1
            extent = np.minimum(self.upper[b], self.domain_upper)[features]
            extent -= np.maximum(self.lower[b], self.domain_lower)[features]
            diversity[unknown] = np.round(extent / self.steps[features], 6)
        waiting = (self.share[b] == 0) & (self.n[b] < self._min_examples)
        gap[waiting | ~self.open[b]] = np.inf
        self.gap[b], self.diversity[b] = gap, diversity

    # --- points ------------------------------------------------------------------------------

    def _look(self, most: int) -> None:
        """Ask the black box, once, about the strips of which nothing is known and some others.

        Parameters
        ----------
        most : int
            The number of others, those first that are next to be acted on.
        """
        some = slice(0, self.n_boxes)
        flat = np.flatnonzero(self._wanting(_NEARLY_ALL))
        unknown = self.share[some].ravel()[flat] == 0
        gap = np.where(unknown, -1.0, self.gap[some].ravel()[flat])
        n, diversity = self.n[some].ravel()[flat], self.diversity[some].ravel()[flat]
        order = np.lexsort((diversity, -n, gap))
        room = max(1, _MOST_NUMBERS // (self._min_examples * self.n_features))
        flat = flat[order][: min(most + int(unknown.sum()), room)]
        boxes, faces = np.divmod(flat, self.n_faces)
        self._sample(boxes, faces)
        for b in np.unique(boxes).tolist():
            self._judge(b)

    def _sample(self, boxes: np.ndarray, faces: np.ndarray) -> None:
        at, features, share = np.arange(len(boxes)), faces >> 1, self.share[boxes, faces]
        lower = np.maximum(self.lower[boxes], self.domain_lower)
        upper = np.minimum(self.upper[boxes], self.domain_upper)
        last, self.seen[boxes, faces] = (
            self.seen[boxes, faces],
            self._keep_bounds(boxes, lower, upper),
        )
        near = np.where(faces & 1, upper[at, features], lower[at, features])
        far = np.clip(
            self.far[boxes, faces], self.domain_lower[features], self.domain_upper[features]
        )
        lower[at, features], upper[at, features] = np.minimum(near, far), np.maximum(near, far)

        keys = combine(combine(boxes, faces), self.draws[boxes, faces])
        self.draws[boxes, faces] += 1
        wanted = (self._min_examples - self.n[boxes, faces]).astype(np.intp)
        points = self._points.draw(keys, lower, upper, int(wanted.max()))
        asked = np.arange(points.shape[1]) < wanted[:, None]
        again = np.flatnonzero(share > 0)
        if len(again):
            before = self._snapshots[last[again]]
            before[np.arange(len(again)), 0, features[again]] = -np.inf
            before[np.arange(len(again)), 1, features[again]] = np.inf
            there = points[again]
            new = (there < before[:, None, 0]) | (there >= before[:, None, 1])
            asked[again] &= new.any(axis=2)
        owner = asked.nonzero()[0]
        if len(owner):
            encoded = self.answers.encode(self._ask(points[asked]))
            sums = self.answers.sums(encoded, owner, len(boxes))
            count = np.bincount(owner, minlength=len(boxes))
            got = count > 0
            place = boxes[got], faces[got]
            old = share[got, None]
            self.known[place] = old * self.known[place] + (1 - old) * (sums[got] / count[got, None])
        self.share[boxes, faces] = 1

    def _keep_bounds(self, boxes: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Keep the bounds that boxes have now; gives the numbers under which to find them."""
        _, first, index = np.unique(boxes, return_index=True, return_inverse=True)
        start, stop = self._n_snapshots, self._n_snapshots + len(first)
        if stop > len(self._snapshots):
            larger = np.empty((2 * stop, 2, self.n_features))
            larger[:start] = self._snapshots[:start]
            self._snapshots = larger
        self._snapshots[start:stop, 0] = lower[first]
        self._snapshots[start:stop, 1] = upper[first]
        self._n_snapshots = stop
        return start + index


def seed_boxes(
    growth: Growth, answers: np.ndarray, task: str, n_points: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bounds of the boxes to begin with, disjoint.

    Parameters
    ----------
    growth : Growth
        Knows the rows and steps; has no boxes yet.
    answers : ndarray of shape (n_rows,)
        The black box's answers on the rows.
    task : {"classification", "regression"}
        The kind of answers.
    n_points : int
        Most boxes.

    Returns
    -------
    list of (ndarray, ndarray)
        Lower and upper bounds around the first rows of the first classes, or around the rows whose
        answers are nearest to values spread evenly from the least to the largest answer (halfway,
        for one box). Where boxes would meet there are fewer.
    """
    if task == "classification":
        present = np.flatnonzero(np.bincount(answers))
        most, order = min(n_points, len(present)), None
    else:
        most = min(n_points, len(answers))
        # Equal answers keep the order of X.
        order = np.argsort(answers, kind="stable") if most > 1 else None
    for n in range(most, 1, -1):
        boxes: list[tuple[np.ndarray, np.ndarray]] = []
        for i in range(n):
            if order is None:
                row = int(np.argmax(answers == present[i]))
            else:
                row = _nearest(answers, order, i / (n - 1))
            lower, upper = growth.around(row)
            if any(((lower < high) & (low < upper)).all() for low, high in boxes):
                break
            boxes.append((lower, upper))
        else:
            return boxes
    if task == "classification":
        return [growth.around(int(np.argmax(answers == present[0])))]
    halfway = answers.min() / 2 + answers.max() / 2
    return [growth.around(int(np.argmin(np.abs(answers - halfway))))]


def _nearest(answers: np.ndarray, order: np.ndarray, share: float) -> int:
    """The first row whose answer is nearest to a share of the way from the least to the largest."""
    low, high = answers[order[0]], answers[order[-1]]
    target = low + share * (high - low)
    above = int(np.searchsorted(answers, target, sorter=order))
    candidates = []
    if above < len(order):
        candidates.append(int(order[above]))
    if above > 0:  # the first of the rows with the next lower answer
        below = np.searchsorted(answers, answers[order[above - 1]], sorter=order)
        candidates.append(int(order[below]))
    return min(candidates, key=lambda row: (abs(answers[row] - target), row))
