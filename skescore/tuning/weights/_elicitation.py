"""Weights from a few answers to questions such as: 4 rules at 95 % or 1 rule at 75 %."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.metrics._arguments import as_numbers
from skescore.tuning._candidates import Candidate, as_candidates
from skescore.tuning.weights._common import WEIGHTS, check_score, ranges_of, undominated
from skescore.tuning.weights._fire import fire_steps
from skescore.tuning.weights._ice import IcePlane
from skescore.tuning.weights._remaining import Remaining, RemainingPlane, RemainingPsi

__all__ = ["Question", "WeightElicitation"]

#: Questions are chosen by so many points of the region of each possible winner.
_POINTS_EACH = 100
_CHOICES = ("first", "second", "either")


@dataclass(frozen=True)
class Question:
    """Two candidates to choose from; ``str`` asks it in words.

    Parameters
    ----------
    first, second : Candidate
        What to choose from.
    places : (int, int)
        Their places among the candidates.
    texts : (str, str)
        What is said of them.
    """

    first: Candidate = field(repr=False)
    second: Candidate = field(repr=False)
    places: tuple[int, int]
    texts: tuple[str, str]

    def __str__(self) -> str:
        return f"Would you rather have {self.texts[0]} (first) or {self.texts[1]} (second)?"


def _largest(of_point: np.ndarray, area: np.ndarray) -> np.ndarray:
    """A few points of each winner, those that stand for most."""
    order = np.lexsort((-area, of_point))
    counts = np.bincount(of_point)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[rank < _POINTS_EACH])


class WeightElicitation:
    """Find the candidate that suits a person, and weights that say so, from a few comparisons.

    Use it when nobody can say what phi, rho or psi should be, but everybody can choose between two
    rule sets. Only candidates that win for some weights are ever asked about.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate or fitted search
        What was measured.
    score : {"ice", "fire"}, default="ice"
        The score whose weights are looked for.
    within : (float, float) or dict of str to (float, float), optional
        Least and greatest weight, as in :func:`winning_regions`.
    completeness : {"volume", "instances"}, default="volume"
        How completeness is measured, for ICE.
    indifference : float, default=0.02
        The answer ``"either"`` says that the scores differ by no more than this share.

    Attributes
    ----------
    winner : Candidate
        Who wins for the weights that are left; of several the one that wins for most of them.
    remaining : list of int
        Places of all who win for some of the weights that are left, ascending.
    weights : dict of str to float
        Weights in the middle of those that are left and for which the winner wins.
    history : list of (Question, str)
        Questions and answers so far.

    Notes
    -----
    All weights that agree with the answers are kept: intervals of psi, which are exact, or boxes of
    (phi, rho) outside of which the closed form is proven to disagree, which are halved until it is
    known who may still win; a candidate that could only win on a part narrower than 1e-10 of the
    log-weights is left out. The next question is the pair of possible winners after whose answer
    the fewest of them are left in the worse case, and of such pairs the one that halves the area of
    the log-weights best. So the number of questions grows like the logarithm of the number of
    winners.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import WeightElicitation
    >>> def measured(place, loss, n_rules):
    ...     fold = dict(performance=1 - loss, loss=loss, loss_q=loss, n_rules=n_rules,
    ...                 size=n_rules, completeness_volume=1.0, completeness_instances=1.0)
    ...     return Candidate("cart", {"max_leaf_nodes": n_rules}, place, (fold,))
    >>> dialogue = WeightElicitation([measured(0, 0.25, 1), measured(1, 0.05, 4)], "ice")
    >>> print(dialogue.next_question())
    Would you rather have 1 rule at 75 % (first) or 4 rules at 95 % (second)?
    >>> dialogue.answer("second")
    >>> dialogue.next_question() is None, dialogue.winner.params
    (True, {'max_leaf_nodes': 4})
    """

    def __init__(
        self,
        candidates: Any,
        score: str = "ice",
        *,
        within: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
        completeness: str = "volume",
        indifference: float = 0.02,
    ) -> None:
        self.candidates = as_candidates(candidates)
        check_score(score, completeness)
        self.score = score
        self.within = ranges_of(score, within)
        self._completeness = completeness
        self._tolerated = math.log1p(
            float(as_numbers("indifference", indifference, low=0.0, remedy="Pass a share: 0.02."))
        )
        self._places, self._better = undominated(self.candidates, score, completeness)
        whole: Remaining
        if score == "fire":
            steps = fire_steps(self.candidates, self._places, *self.within["psi"])
            whole = RemainingPsi(steps, np.arange(len(steps.scores)))
        else:
            plane = IcePlane(self.candidates, completeness, self._places)
            low, high = np.log(np.array(list(self.within.values())).T)
            whole = RemainingPlane.whole(plane, low, high)
        self._parts = [whole]
        self.history: list[tuple[Question, str]] = []

    @property
    def winner(self) -> Candidate:
        """Who wins for most of the weights that are left."""
        return self.candidates[int(self._places[self._leader()])]

    @property
    def remaining(self) -> list[int]:
        """Places of all who win for some of the weights that are left."""
        return sorted(int(self._places[m]) for m in np.unique(self._parts[-1].sample.winners))

    @property
    def weights(self) -> dict[str, float]:
        """Weights in the middle of those that are left and for which the winner wins."""
        sample = self._parts[-1].sample
        own = sample.winners == self._leader()
        points, area = sample.points[own], sample.area[own]
        if self.score == "fire":  # the median, which is in the part whatever its shape
            order = np.argsort(points[:, 0], kind="stable")
            halfway = np.cumsum(area[order]) >= area.sum() / 2
            point = points[order][int(np.argmax(halfway))]
        else:
            middle = area @ points / area.sum()
            point = points[int(np.argmin(np.hypot(*(points - middle).T)))]
        return dict(zip(WEIGHTS[self.score], np.exp(point).tolist(), strict=True))

    def next_question(self) -> Question | None:
        """Give the pair whose comparison tells most.

        Returns
        -------
        Question or None
            None when one winner is left, or when all pairs of those that are left have been asked.
        """
        sample = self._parts[-1].sample
        members, of_point = np.unique(sample.winners, return_inverse=True)
        chosen = _largest(of_point, sample.area)
        leads = self._parts[-1].leads(members, chosen)
        wins = of_point[chosen, None] == np.arange(len(members))
        first, second = np.triu_indices(len(members), 1)
        is_first = leads[:, first] >= leads[:, second]
        # How many may still win after either answer, and how much of the area is left.
        counted = wins.T.astype(np.float32)
        sides = [counted @ side.astype(np.float32) > 0 for side in (is_first, ~is_first)]
        counts = np.stack([side.sum(axis=0) for side in sides])
        area = sample.area[chosen]
        unbalance = np.abs(2 * (area @ is_first.astype(float)) - area.sum()).round(12)
        asked = {frozenset(question.places) for question, _ in self.history}
        places = self._places[members]
        for at in np.lexsort((unbalance, counts.sum(axis=0), counts.max(axis=0))):
            pair = sorted((int(places[first[at]]), int(places[second[at]])))
            if frozenset(pair) not in asked:
                return self._question(pair[0], pair[1])
        return None

    def answer(self, choice: str, pair: tuple[int, int] | None = None) -> None:
        """Tell which of two candidates is preferred.

        Parameters
        ----------
        choice : {"first", "second", "either"}
            The answer; ``"either"`` if they are about equally good.
        pair : (int, int), optional
            Places of the first and the second candidate; those of :meth:`next_question` by default.

        Raises
        ------
        ValueError
            If there is no such choice or pair or nothing left to ask, or if no weights agree with
            this answer and all earlier ones. Then nothing has changed.
        """
        if choice not in _CHOICES:
            raise ValueError(f"choice must be one of {list(_CHOICES)}, got {choice!r}.")
        if pair is None:
            question = self.next_question()
            if question is None:
                raise ValueError(
                    f"There is no question left to answer {choice!r} to: see `winner`. Pass "
                    "pair=... to compare two candidates all the same, or call undo() to take an "
                    "answer back."
                )
        else:
            question = self._question(*self._checked(pair))
        first, second = (self._undominated(place) for place in question.places)
        interval = {
            "first": (0.0, math.inf), "second": (-math.inf, 0.0),
            "either": (-self._tolerated, self._tolerated),
        }[choice]  # fmt: skip
        part = None
        if first != second:
            part = self._parts[-1].after(first, second, *interval)
        if part is None:
            earlier = "and the earlier answers" if self.history else "within the range"
            raise ValueError(
                f"No weights agree with {choice!r} to {str(question)!r} {earlier}. Call undo() to "
                "take the last answer back, answer 'either', or allow more with within=... or "
                "indifference=..."
            )
        self._parts.append(part)
        self.history.append((question, choice))

    def undo(self) -> None:
        """Take the last answer back.

        Raises
        ------
        ValueError
            If there is none.
        """
        if not self.history:
            raise ValueError("There is no answer to take back: history is empty.")
        self.history.pop()
        self._parts.pop()

    def _leader(self) -> int:
        sample = self._parts[-1].sample
        area = np.bincount(sample.winners, weights=sample.area)
        area[np.setdiff1d(np.arange(len(area)), sample.winners)] = -1.0
        return int(np.argmax(area))

    def _checked(self, pair: Any) -> tuple[int, int]:
        n = len(self.candidates)
        whole = (int, np.integer)
        if not (
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and all(isinstance(p, whole) and not isinstance(p, bool) and 0 <= p < n for p in pair)
            and pair[0] != pair[1]
        ):
            raise ValueError(f"pair must be two different places from 0 to {n - 1}, got {pair!r}.")
        for place in pair:
            if place in self._better:
                raise ValueError(
                    f"pair must name candidates that can win, but {place!r} cannot: candidate "
                    f"{self._better[place]} is at least as good on every fold. Compare that one."
                )
        return int(pair[0]), int(pair[1])

    def _undominated(self, place: int) -> int:
        return int(np.flatnonzero(self._places == place)[0])

    def _question(self, first: int, second: int) -> Question:
        pair = self.candidates[first], self.candidates[second]
        for digits in range(2, 8):
            texts = self._text(pair[0], digits), self._text(pair[1], digits)
            if texts[0] != texts[1]:
                break
        else:
            # Alike on average, but not on every fold.
            texts = (f"{texts[0]} (candidate {first})", f"{texts[1]} (candidate {second})")
        return Question(*pair, (first, second), texts)

    def _text(self, candidate: Candidate, digits: int) -> str:
        rules = f"{candidate.mean('n_rules'):.{digits}g}"
        text = f"{rules} {'rule' if rules == '1' else 'rules'}"
        if self.score == "fire":
            return f"{text} with a loss of {candidate.mean('loss'):.{digits}g}"
        text += f" at {100 * candidate.mean('performance'):.{digits}g} %"
        share = 100 * candidate.mean(f"completeness_{self._completeness}")
        of = "space" if self._completeness == "volume" else "rows"
        return text if share == 100 else f"{text} that answer {share:.{digits}g} % of the {of}"
