"""What answers leave of the weights: the part of their range that agrees with all of them.

A part knows three things: who may still win somewhere in it, some of its weights with what they
stand for, and what a further answer leaves of it. Parts do not change, so that an answer can be
taken back by going back to the part before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from skescore.tuning.weights._fire import TIE, Steps, first_best
from skescore.tuning.weights._ice import Boxes, IcePlane
from skescore.tuning.weights._tree import divide, is_finest

#: A region of (phi, rho) is known by so many points at least, unless it is tiny.
_POINTS = 300
_ROUNDS = 80
_UNDECIDED_SHARE = 0.1
_MOST_BOXES = 20_000


@dataclass(frozen=True)
class Sample:
    """Weights of a part.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_weights)
        Log-weights.
    area : ndarray of shape (n_points,)
        What each stands for.
    winners : ndarray of int, shape (n_points,)
        Members that win there.
    """

    points: np.ndarray
    area: np.ndarray
    winners: np.ndarray


class Remaining(Protocol):
    """What answers leave of the weights."""

    @property
    def sample(self) -> Sample:
        """Some weights of the part; every member that wins in it wins at one of them."""

    def leads(self, members: np.ndarray, points: np.ndarray) -> np.ndarray:
        """How much better each member is at some of the points, as a logarithm up to a constant."""

    def after(self, first: int, second: int, least: float, most: float) -> Remaining | None:
        """What is left where the lead of one member over another is in an interval, if any."""


@dataclass(frozen=True)
class RemainingPsi:
    """Steps of psi, each of them exact.

    Parameters
    ----------
    steps : Steps
        All steps.
    left : ndarray of int
        Which of them are left.
    """

    steps: Steps
    left: np.ndarray

    @cached_property
    def sample(self) -> Sample:
        """The middles of all steps that are left."""
        edges = np.log(self.steps.edges)
        low, high = edges[:-1][self.left], edges[1:][self.left]
        winners = first_best(self.steps.scores[self.left])
        return Sample(((low + high) / 2)[:, None], high - low, winners)

    def leads(self, members: np.ndarray, points: np.ndarray) -> np.ndarray:
        """How much better each member is at some of the points, as a logarithm up to a constant."""
        return self._goodness()[points][:, members]

    def after(self, first: int, second: int, least: float, most: float) -> RemainingPsi | None:
        """What is left where the lead of one member over another is in an interval, if any."""
        goodness = self._goodness()
        lead = goodness[:, first] - goodness[:, second]
        left = self.left[(lead >= least - TIE) & (lead <= most + TIE)]
        return RemainingPsi(self.steps, left) if len(left) else None

    def _goodness(self) -> np.ndarray:
        # A perfect score has no logarithm, but is better than all others by far.
        scores = self.steps.scores[self.left]
        with np.errstate(divide="ignore"):
            return -np.maximum(np.log(scores), -1e6)


@dataclass(frozen=True)
class RemainingPlane:
    """Boxes of (phi, rho) that cannot be excluded, and the answers that they must agree with.

    Parameters
    ----------
    plane : IcePlane
        The scores.
    boxes : Boxes
        They cover all that is left.
    answers : tuple of (int, int, float, float)
        Two members, and between what the lead of the first over the second is.
    out : frozenset of int
        Members that are worse than others at all weights that are left.
    """

    plane: IcePlane
    boxes: Boxes
    answers: tuple[tuple[int, int, float, float], ...] = ()
    out: frozenset[int] = frozenset()

    @classmethod
    def whole(cls, plane: IcePlane, low: np.ndarray, high: np.ndarray) -> RemainingPlane:
        """A whole rectangle of log-weights."""
        area = float((high - low).prod())
        boxes = divide(
            plane, Boxes.one(low, high, len(plane.places)),
            lambda several: several.area.sum() <= _UNDECIDED_SHARE * area,
        )  # fmt: skip
        return cls(plane, boxes)._refined()

    @cached_property
    def sample(self) -> Sample:
        """The centres of the boxes that agree with all answers."""
        points = self.boxes.centre
        fits = self._fits(points)
        boxes = self.boxes.take(fits)
        return Sample(points[fits], boxes.area, self.plane.winners(points[fits], boxes))

    def leads(self, members: np.ndarray, points: np.ndarray) -> np.ndarray:
        """How much better each member is at some of the points, as a logarithm up to a constant."""
        return self.plane.log_scores_at(self.sample.points[points], members)

    def after(self, first: int, second: int, least: float, most: float) -> RemainingPlane | None:
        """What is left where the lead of one member over another is in an interval, if any."""
        out = set(self.out)
        if least >= 0.0:
            out.add(second)
        if most <= 0.0:
            out.add(first)
        answers = (*self.answers, (first, second, least, most))
        part = RemainingPlane(self.plane, self.boxes, answers, frozenset(out))
        part = RemainingPlane(self.plane, part._possible(self.boxes), answers, part.out)
        part = part._refined()
        return part if len(part.sample.points) else None

    def _fits(self, points: np.ndarray) -> np.ndarray:
        fits = np.ones(len(points), bool)
        for first, second, least, most in self.answers:
            scores = self.plane.log_scores_at(points, np.array([first, second]))
            lead = scores[:, 0] - scores[:, 1]
            fits &= (lead >= least) & (lead <= most)
        return fits

    def _possible(self, boxes: Boxes) -> Boxes:
        """Leave out boxes that disagree with an answer all over, and members that are out."""
        for first, second, least, most in self.answers:
            if len(boxes):
                low, high = self.plane.lead(boxes, first, second)
                boxes = boxes.take(~((high < least) | (low > most)))
        pairs = ~np.isin(boxes.member, list(self.out))
        keep = np.bincount(boxes.owner[pairs], minlength=len(boxes)) > 0
        boxes = Boxes(boxes.low, boxes.width, boxes.owner[pairs], boxes.member[pairs], boxes.spread)
        return boxes.take(keep)

    def _refined(self) -> RemainingPlane:
        """Halve boxes until all who may win do so at a point, and the points are many enough."""
        part = self
        for _ in range(_ROUNDS):
            boxes = part.boxes
            if not len(boxes) or len(boxes) > _MOST_BOXES:
                break
            sample = part.sample
            unseen = np.setdiff1d(boxes.member, sample.winners)
            wanted = np.bincount(
                boxes.owner[np.isin(boxes.member, unseen)], minlength=len(boxes)
            ) > 0  # fmt: skip
            if not len(unseen):
                if len(sample.points) >= _POINTS:
                    break
                wanted = np.ones(len(boxes), bool)
                # Nothing adds to what is not known of a box with one winner, but its sides.
                boxes = Boxes(boxes.low, boxes.width, boxes.owner, boxes.member, boxes.width)
            chosen = boxes.take(wanted)
            if is_finest(chosen):
                if not len(unseen):
                    break
                # They might win on a boundary, but nowhere that has a width.
                part = RemainingPlane(part.plane, boxes, part.answers, part.out | set(unseen))
                part = RemainingPlane(part.plane, part._possible(boxes), part.answers, part.out)
                continue
            halved = part._possible(part.plane.narrowed(part._possible(chosen.halved())))
            part = RemainingPlane(
                part.plane, Boxes.together([boxes.take(~wanted), halved]), part.answers, part.out
            )
        return part
