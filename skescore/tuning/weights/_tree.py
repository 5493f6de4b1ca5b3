"""Regions of the plane of log-weights, and what is asked of them, by halving boxes.

Every answer comes with a proof: a box is given to a candidate when bounds show that no other wins
anywhere in it, and is halved otherwise, until what is left is too small to matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skescore.tuning.weights._ice import TIE, Boxes, IcePlane

#: Boxes are not made narrower than this share of a factor e: boundaries are known that well.
FINEST = 1e-10
#: Extents are looked for this far only: along a smooth edge the boxes are many.
EXTENT = 1e-6
#: More boxes than this are a sign of candidates that are alike all over.
_TOO_MANY = 60_000


def divide(
    plane: IcePlane, boxes: Boxes, enough: Callable[[Boxes], bool], limit: int = _TOO_MANY
) -> Boxes:
    """Halve boxes with several possible winners until that is enough.

    Parameters
    ----------
    plane : IcePlane
        The scores.
    boxes : Boxes
        Where to start.
    enough : callable
        Told the boxes that still have several possible winners.
    limit : int
        So many of them are enough in any case.

    Returns
    -------
    Boxes
        The same area, in boxes of several sizes.
    """
    done: list[Boxes] = []
    while True:
        boxes = plane.narrowed(boxes)
        several = boxes.n_members > 1
        done.append(boxes.take(~several))
        boxes = boxes.take(several)
        if not len(boxes) or len(boxes) >= limit or enough(boxes):
            return Boxes.together([*done, boxes])
        boxes = boxes.halved()


def is_finest(boxes: Boxes) -> bool:
    """Whether the boxes must not be halved any more."""
    tiny = (boxes.width.max(axis=1) <= FINEST) | (boxes.spread.max(axis=1) <= TIE)
    return bool(tiny.all())


@dataclass(frozen=True)
class Region:
    """Where a member wins in a rectangle of log-weights.

    Parameters
    ----------
    member : int
        Who wins.
    share, error : float
        Share of the area, and how far it may be off.
    point : ndarray of shape (2,)
        A point of the region.
    low, high : ndarray of shape (2,)
        Least and greatest log-weights in it.
    """

    member: int
    share: float
    error: float
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray


def regions(
    plane: IcePlane, low: np.ndarray, high: np.ndarray, tolerance: float
) -> tuple[list[Region], list[int]]:
    """All regions of a rectangle, the widest first.

    Parameters
    ----------
    plane : IcePlane
        The scores.
    low, high : ndarray of shape (2,)
        Corners of the rectangle.
    tolerance : float
        So much of the area may be left undecided along the boundaries.

    Returns
    -------
    list of Region, list of int
        The regions, and members of which nothing could be proven. Members that are in neither win
        nowhere, or nowhere wider than :data:`FINEST`.
    """
    whole = float((high - low).prod())
    boxes = divide(
        plane,
        Boxes.one(low, high, len(plane.places)),
        lambda several: several.area.sum() <= tolerance * whole,
    )
    several = boxes.n_members > 1
    sure, open_ = boxes.take(~several), boxes.take(several)
    at_centre = plane.winners(open_.centre, open_)
    found, undecided = [], []
    for member in np.unique(boxes.member):
        own = sure.take(sure.first_member == member)
        mine = open_.take(open_.holds(member))
        point, is_proven = _point(plane, own, mine, member)
        if point is None:
            undecided += [] if is_proven else [int(member)]
            continue
        certain = own.area.sum()
        likely = certain + open_.area[at_centre == member].sum()
        possible = certain + mine.area.sum()
        error = max(likely - certain, possible - likely) / whole
        bounds = [_extreme(plane, own, mine, member, axis, up)
                  for up in (False, True) for axis in (0, 1)]  # fmt: skip
        found.append(
            Region(int(member), likely / whole, error, point,
                   np.minimum(bounds[:2], point), np.maximum(bounds[2:], point))
        )  # fmt: skip
    return sorted(found, key=lambda region: (-region.share, region.member)), undecided


def _point(plane: IcePlane, own: Boxes, mine: Boxes, member: int) -> tuple[np.ndarray | None, bool]:
    """A point where the member wins, if there is one, and whether that is proven."""
    if len(own):
        return own.centre[int(np.argmax(own.area))], True
    boxes = mine
    while len(boxes):
        wins = plane.winners(boxes.centre, boxes) == member
        if wins.any():
            return boxes.centre[int(np.argmax(wins))], True
        if len(boxes) > _TOO_MANY:
            return None, False
        if is_finest(boxes):
            break
        boxes = plane.narrowed(boxes.halved())
        boxes = boxes.take(boxes.holds(member))
    return None, True


def _extreme(plane: IcePlane, own: Boxes, mine: Boxes, member: int, axis: int, up: bool) -> float:
    """The greatest or least log-weight along an axis where the member wins."""
    sign = 1.0 if up else -1.0

    def reach(boxes: Boxes) -> np.ndarray:
        edge = boxes.low[:, axis] + (boxes.width[:, axis] if up else 0.0)
        return sign * edge

    best = float(reach(own).max()) if len(own) else -np.inf
    boxes = mine
    while True:
        boxes = boxes.take(reach(boxes) > best + EXTENT)
        if not len(boxes):
            return sign * best
        if is_finest(boxes) or len(boxes) > _TOO_MANY:
            return sign * float(reach(boxes).max())
        boxes = plane.narrowed(boxes.halved())
        boxes = boxes.take(boxes.holds(member))
        at_centre = sign * boxes.centre[:, axis]
        known = [
            reach(boxes)[boxes.n_members == 1],
            at_centre[plane.winners(boxes.centre, boxes) == member],
        ]
        best = max([best, *(float(values.max()) for values in known if len(values))])


def along_line(
    plane: IcePlane, start: np.ndarray, end: np.ndarray
) -> list[tuple[float, float, int]]:
    """Who wins on a line along an axis: pieces from start to end with their winners.

    Parameters
    ----------
    plane : IcePlane
        The scores.
    start, end : ndarray of shape (2,)
        Ends of the line, alike in all but one of the two log-weights.

    Returns
    -------
    list of (float, float, int)
        Least and greatest value of the log-weight that changes, and the winner in between.
    """
    axis = int(np.argmax(end - start))
    boxes = divide(plane, Boxes.one(start, end, len(plane.places)), is_finest)
    several = boxes.n_members > 1
    sure = boxes.take(~several)
    order = np.argsort(sure.low[:, axis])
    pieces: list[tuple[float, float, int]] = []
    for place in order:
        low = float(sure.low[place, axis])
        high = low + float(sure.width[place, axis])
        winner = int(sure.first_member[place])
        if pieces and pieces[-1][2] == winner:
            pieces[-1] = (pieces[-1][0], high, winner)
        elif pieces:
            cut = _crossing(plane, start, axis, pieces[-1][1], low, pieces[-1][2], winner)
            pieces[-1] = (pieces[-1][0], cut, pieces[-1][2])
            pieces.append((cut, high, winner))
        else:
            pieces.append((low, high, winner))
    if not pieces:  # alike all over
        middle = (start + end) / 2
        return [(float(start[axis]), float(end[axis]), int(plane.winners(middle[None])[0]))]
    pieces[0] = (float(start[axis]), *pieces[0][1:])
    pieces[-1] = (pieces[-1][0], float(end[axis]), pieces[-1][2])
    return pieces


def _crossing(
    plane: IcePlane, line: np.ndarray, axis: int, low: float, high: float, first: int, second: int
) -> float:
    """Where the score of one member falls below that of the next."""

    def lead(value: float) -> float:
        point = line.copy()
        point[axis] = value
        a, b = plane.log_scores(np.tile(point, (2, 1)), np.array([first, second]))
        return float(a - b)

    if low >= high or lead(low) * lead(high) >= 0:
        return (low + high) / 2
    return float(brentq(lead, low, high, xtol=1e-15, rtol=1e-15))


def nearest_change(
    plane: IcePlane, point: np.ndarray, winner: int, reach: float, precision: float
) -> tuple[float, np.ndarray, int] | None:
    """The nearest log-weights at which another member wins.

    Parameters
    ----------
    plane : IcePlane
        The scores.
    point : ndarray of shape (2,)
        Where to start from.
    winner : int
        Who wins there.
    reach : float
        How far to look along each axis.
    precision : float
        How far from the least distance the result may be.

    Returns
    -------
    (float, ndarray, int) or None
        The distance, the point and who wins there; None if nobody else wins within reach.
    """
    boxes = Boxes.one(point - reach, point + reach, len(plane.places))
    best: tuple[float, np.ndarray, int] | None = None
    while True:
        boxes = plane.narrowed(boxes)
        boxes = boxes.take((boxes.n_members > 1) | (boxes.first_member != winner))
        nearest = np.clip(point, boxes.low, boxes.low + boxes.width)
        others = plane.winners(nearest, boxes)
        for points, who in ((nearest, others), (boxes.centre, plane.winners(boxes.centre, boxes))):
            distance = np.where(who == winner, np.inf, np.hypot(*(points - point).T))
            if len(distance) and distance.min() < (best[0] if best else np.inf):
                at = int(np.argmin(distance))
                best = float(distance[at]), points[at], int(who[at])
        limit = best[0] if best else np.inf
        boxes = boxes.take(np.hypot(*(nearest - point).T) < limit - precision)
        if not len(boxes) or is_finest(boxes) or len(boxes) > _TOO_MANY:
            return best
        boxes = boxes.halved()
