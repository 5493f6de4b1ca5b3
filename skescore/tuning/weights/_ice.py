"""The ICE score of candidates over the plane of log-weights, with bounds on boxes of it.

The score of a candidate is the mean over its folds of ``P(p, phi) R(r, rho) c``. With
``u = log(phi)`` and ``v = log(rho)`` its logarithm is smooth and falls in both, and its slopes can
be bounded on a box. So of two candidates it can often be proven that one is better on a whole box;
where it cannot, the box is halved. Nothing is sampled, so that no region is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from skescore.tuning._candidates import Candidates

#: Logarithms of scores that differ by less are equal: this much is float noise.
TIE = 1e-12
#: How far numbers that are computed in different ways may be apart.
_NOISE = 1e-13
_BLOCK = 4096


@dataclass(frozen=True)
class Boxes:
    """Boxes in the plane of log-weights, and who may win somewhere in each.

    Parameters
    ----------
    low : ndarray of shape (n_boxes, 2)
        Lower corners; a box that is flat along an axis is a piece of a line.
    width : ndarray of shape (n_boxes, 2)
        Sides.
    owner : ndarray of int, shape (n_pairs,)
        Boxes of the pairs, ascending.
    member : ndarray of int, shape (n_pairs,)
        Members of the pairs, ascending within a box; every box has one at least.
    spread : ndarray of shape (n_boxes, 2)
        How much either side adds to what is not known of the scores in each box.
    """

    low: np.ndarray
    width: np.ndarray
    owner: np.ndarray
    member: np.ndarray
    spread: np.ndarray

    @classmethod
    def one(cls, low: np.ndarray, high: np.ndarray, n_members: int) -> Boxes:
        """Everything in one box."""
        width = (high - low)[None]
        return cls(low[None], width, np.zeros(n_members, int), np.arange(n_members), width)

    @classmethod
    def together(cls, parts: list[Boxes]) -> Boxes:
        """The boxes of several lots, one after the other."""
        starts = np.cumsum([0, *(len(part) for part in parts)])
        return cls(
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.width for part in parts]),
            np.concatenate([part.owner + s for part, s in zip(parts, starts, strict=False)]),
            np.concatenate([part.member for part in parts]),
            np.concatenate([part.spread for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.low)

    @property
    def n_members(self) -> np.ndarray:
        """How many may win in each box."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def first_member(self) -> np.ndarray:
        """The first of those who may win in each box; the winner where there is no other."""
        return self.member[np.searchsorted(self.owner, np.arange(len(self)))]

    @property
    def area(self) -> np.ndarray:
        """Areas; of pieces of lines their lengths."""
        return np.where(self.width > 0, self.width, 1.0).prod(axis=1)

    @property
    def centre(self) -> np.ndarray:
        """Centres."""
        return self.low + self.width / 2

    def holds(self, member: int) -> np.ndarray:
        """Whether the member may win somewhere in each box."""
        return np.bincount(self.owner[self.member == member], minlength=len(self)) > 0

    def take(self, which: np.ndarray) -> Boxes:
        """Keep some boxes, by a mask."""
        renumbered = np.cumsum(which) - 1
        pairs = which[self.owner]
        return Boxes(
            self.low[which], self.width[which], renumbered[self.owner[pairs]], self.member[pairs],
            self.spread[which],
        )  # fmt: skip

    def halved(self) -> Boxes:
        """Halve every box along the side that adds most to what is not known."""
        # Long boxes along straight edges are far fewer than squares would be.
        each, longer = np.arange(len(self)), np.argmax(self.spread, axis=1)
        width, upper, spread = self.width.copy(), self.low.copy(), self.spread.copy()
        width[each, longer] /= 2
        spread[each, longer] /= 2
        upper[each, longer] += width[each, longer]
        return Boxes.together(
            [Boxes(low, width, self.owner, self.member, spread) for low in (self.low, upper)]
        )

    def blocks(self) -> Iterator[Boxes]:
        """Lots of boxes that fit into a processor's cache."""
        starts = np.searchsorted(self.owner, np.arange(len(self) + 1))
        first = 0
        while first < len(self):
            last = int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1
            last = max(last, first + 1)
            pairs = slice(starts[first], starts[last])
            yield Boxes(
                self.low[first:last], self.width[first:last],
                self.owner[pairs] - first, self.member[pairs], self.spread[first:last],
            )  # fmt: skip
            first = last


class IcePlane:
    """Logarithms of the ICE scores of candidates as functions of the log-weights.

    Parameters
    ----------
    candidates : Candidates
        At least one.
    completeness : {"volume", "instances"}
        How completeness is measured.
    places : ndarray of int
        Those of the candidates that take part, as places, in the order in which ties are broken.
        They are the members, numbered from 0.
    """

    def __init__(self, candidates: Candidates, completeness: str, places: np.ndarray) -> None:
        self.places = places
        self.loss, self.size, share = folds_of(candidates, completeness)[:, places]
        with np.errstate(divide="ignore"):
            self.log_share = np.log(share) - np.log(share.shape[1])

    def _terms(
        self, members: np.ndarray, u: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        loss = 5.0 * np.exp(u)[:, None] * self.loss[members]
        size = 0.3 * np.exp(v)[:, None] * self.size[members]
        return log_expit(5.0 - loss), log_expit(5.0 - size)

    def log_scores(self, points: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Logarithms of the scores of members, each at its point."""
        with np.errstate(over="ignore"):
            performance, readability = self._terms(members, points[:, 0], points[:, 1])
        return logsumexp(performance + readability + self.log_share[members], axis=1)

    def winners(self, points: np.ndarray, boxes: Boxes | None = None) -> np.ndarray:
        """The best member at each point; of equally good ones the first.

        Where the points are in boxes, one in each, only those who may win there are compared.
        """
        if boxes is None:
            each = Boxes.one(np.zeros(2), np.zeros(2), len(self.places))
            boxes = Boxes.together([each] * len(points))
        if not len(boxes):
            return np.empty(0, int)
        scores = self.log_scores(points[boxes.owner], boxes.member)
        starts = np.searchsorted(boxes.owner, np.arange(len(boxes)))
        best = np.flatnonzero(scores >= np.maximum.reduceat(scores, starts)[boxes.owner] - TIE)
        return boxes.member[best[np.searchsorted(boxes.owner[best], np.arange(len(boxes)))]]

    def log_scores_at(self, points: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Logarithms of the scores of all those members at all points, (n_points, n_members)."""
        scores = self.log_scores(
            np.repeat(points, len(members), axis=0), np.tile(members, len(points))
        )
        return scores.reshape(len(points), len(members))

    def bounds(self, boxes: Boxes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For every pair the log-score at the centre, and the least and greatest slopes.

        Slopes are of shape (n_pairs, 2). Those of a single fold fall along either axis, so that
        they are bounded by their values at the ends. That of the mean over the folds is an average
        of them, weighted by the shares of the folds in the score.
        """
        low, high = boxes.low[boxes.owner], (boxes.low + boxes.width)[boxes.owner]
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            centre = self.log_scores((low + high) / 2, boxes.member)
            parts_low = self._terms(boxes.member, low[:, 0], low[:, 1])
            parts_high = self._terms(boxes.member, high[:, 0], high[:, 1])
            share = self.log_share[boxes.member]
            # A fold's share is greatest in the lower corner, where all scores are greatest.
            most = np.exp(parts_low[0] + parts_low[1] + share - centre[:, None])
            least = np.exp(parts_high[0] + parts_high[1] + share - centre[:, None])
            slopes = [
                _averages(*pair, most, least)
                for pair in zip(
                    self._slopes(boxes.member, high), self._slopes(boxes.member, low), strict=True
                )
            ]
        return centre, np.stack([s[0] for s in slopes], 1), np.stack([s[1] for s in slopes], 1)

    def _slopes(self, members: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        loss = 5.0 * np.exp(points[:, :1]) * self.loss[members]
        size = 0.3 * np.exp(points[:, 1:]) * self.size[members]
        # A fold without a score has no slope, and must not bound that of the others.
        dead = np.isneginf(self.log_share[members])
        return (
            np.where(dead, np.nan, -loss * expit(loss - 5.0)),
            np.where(dead, np.nan, -size * expit(size - 5.0)),
        )

    def narrowed(self, boxes: Boxes) -> Boxes:
        """Take out of every box the members that are proven to win nowhere in it."""
        parts = [self._narrowed(block) for block in boxes.blocks()]
        return Boxes.together(parts) if parts else boxes

    def _narrowed(self, boxes: Boxes) -> Boxes:
        centre, least, most = self.bounds(boxes)
        starts = np.searchsorted(boxes.owner, np.arange(len(boxes)))
        leading = centre == np.maximum.reduceat(centre, starts)[boxes.owner]
        pairs = np.flatnonzero(leading)
        leaders = pairs[np.searchsorted(boxes.owner[pairs], np.arange(len(boxes)))]
        other = leaders[boxes.owner]
        steepest = slopes_times(least - most[other], most - least[other], boxes.width[boxes.owner])
        with np.errstate(invalid="ignore"):  # where all score 0, which is undecided
            keep = ~(centre - centre[other] + steepest.sum(axis=1) < -_NOISE)
        keep[leaders] = True
        spread = np.maximum.reduceat(np.where(keep[:, None], steepest, 0.0), starts)
        # Where nothing is known of either side the longer one is halved.
        spread = np.where(np.isfinite(spread).all(axis=1, keepdims=True), spread, boxes.width)
        return Boxes(boxes.low, boxes.width, boxes.owner[keep], boxes.member[keep], spread)

    def lead(self, boxes: Boxes, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        """Bound how far the log-score of one member is above that of another in every box."""
        each = np.arange(len(boxes))
        a, b = (
            self.bounds(Boxes(boxes.low, boxes.width, each, np.full(len(boxes), who), boxes.spread))
            for who in (first, second)
        )
        steepest = slopes_times(a[1] - b[2], a[2] - b[1], boxes.width).sum(axis=1)
        return a[0] - b[0] - steepest, a[0] - b[0] + steepest


def slopes_times(least: np.ndarray, most: np.ndarray, width: np.ndarray) -> np.ndarray:
    """How far a function may get from its value at the centre along either side of a box."""
    with np.errstate(invalid="ignore"):
        furthest = np.maximum(most, -least) * width / 2
    return np.where(width > 0, np.where(np.isnan(furthest), np.inf, furthest), 0.0)


def _averages(
    least_slope: np.ndarray, most_slope: np.ndarray, most: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bound an average of slopes, all <= 0, by those of the folds and by the folds' shares."""
    low, high = np.fmin.reduce(least_slope, axis=1), np.fmax.reduce(most_slope, axis=1)
    sum_low = np.nansum(most * least_slope, axis=1) / least.sum(axis=1)
    sum_high = np.nansum(least * most_slope, axis=1) / most.sum(axis=1)
    # Shares that overflow leave NaN or infinity, and with it the bound by the folds alone.
    return np.fmax(low, sum_low), np.fmin(high, sum_high)


def folds_of(candidates: Candidates, completeness: str, *, is_sorted: bool = True) -> np.ndarray:
    """Loss 1 - p, size and completeness of all candidates on all folds, (3, n, n_folds).

    Folds that score 0 whatever the weights are alike. Sorted, the folds of each candidate come in
    an order of its own: their mean does not know their order.
    """
    loss = 1.0 - candidates.measure("performance")
    size = candidates.measure("size")
    share = candidates.measure(f"completeness_{completeness}")
    dead = np.isinf(loss) | (share == 0)
    folds = np.where(dead, 0.0, np.stack([loss, size, share]))
    if not is_sorted:
        return folds
    return np.take_along_axis(folds, np.lexsort(folds, axis=-1)[None], axis=-1)
