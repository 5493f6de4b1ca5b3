"""Elicitation of weights by comparisons such as 4 rules at 95 % or 1 rule at 75 %."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore._validation import as_numbers, check_choice
from skescore.tuning._candidates import Candidate, as_candidates
from skescore.tuning.weights._weighing import (
    TIE,
    WEIGHTS,
    Cells,
    WeightedScores,
    best_of,
    check_score,
    ranges_of,
)

#: Number of points of the grid along each of the weights phi and rho.
_RESOLUTION = 200
#: Smallest number of remaining points, below which the grid is refined, and largest number of
#: refinements.
_MIN_POINTS, _MAX_REFINEMENTS = 300, 3
#: Largest number of points of each possible winner from which questions are chosen.
_POINTS_PER_WINNER = 100
_CHOICES = ("first", "second", "either")


@dataclass(frozen=True)
class Question:
    """Question about which of two candidates is preferred; ``str`` returns it in words.

    Parameters
    ----------
    first, second : Candidate
        The candidates.
    indices : (int, int)
        Their indices among all candidates.
    texts : (str, str)
        Their descriptions.
    """

    first: Candidate = field(repr=False)
    second: Candidate = field(repr=False)
    indices: tuple[int, int]
    texts: tuple[str, str]

    def __str__(self) -> str:
        return f"Would you rather have {self.texts[0]} (first) or {self.texts[1]} (second)?"


@dataclass(frozen=True)
class _ConsistentCells:
    """Cells of the weights that are consistent with the answers, and their winners."""

    cells: Cells
    winners: np.ndarray
    #: Pairs of members, and bounds of the lead of the first over the second.
    answers: tuple[tuple[int, int, float, float], ...] = ()


class WeightElicitation:
    """Find a person's preferred candidate, and weights for it, by a few comparisons.

    Use it when suitable values of phi, rho or psi are unknown, but a person can choose between two
    rule sets. Only candidates that win for some weights are compared.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate, DataFrame or fitted search
        Measured candidates; a table has the columns of :meth:`Candidates.from_table`.
    score : {"ice", "fire"}, default="ice"
        The score whose weights are searched.
    within : (float, float) or dict of str to (float, float), optional
        Smallest and largest weight, as in :func:`winning_regions`.
    completeness : {"volume", "instances"}, default="volume"
        Kind of completeness, for ICE.
    indifference : float, default=0.02
        Largest relative difference of the scores after the answer ``"either"``.

    Attributes
    ----------
    winner : Candidate
        Candidate that wins for most of the remaining weights.
    remaining : list of int
        Ascending indices of the candidates that win for some of the remaining weights.
    weights : dict of str to float
        Center of the remaining weights for which the winner wins.
    history : list of (Question, str)
        Questions and answers so far.

    Notes
    -----
    The remaining weights are those that agree with all answers: exact steps of psi, or points of a
    grid of 200 by 200 over the logarithms of phi and rho, as in :func:`winning_regions`. When few
    points remain, the grid is refined. The next question is the pair of possible winners whose
    answer leaves the fewest winners in the worse case; ties are broken by the pair that divides the
    remaining area most evenly. So the number of questions grows logarithmically with the number of
    winners.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import WeightElicitation
    >>> def measured(trial, loss, n_rules):
    ...     fold = dict(performance=1 - loss, loss=loss, loss_q=loss, n_rules=n_rules,
    ...                 size=n_rules, completeness_volume=1.0, completeness_instances=1.0)
    ...     return Candidate.from_measures("cart", {"max_leaf_nodes": n_rules}, trial, (fold,))
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
        self._log_indifference = math.log1p(
            float(as_numbers("indifference", indifference, low=0.0, remedy="Pass a share: 0.02."))
        )
        self._scores = WeightedScores(self.candidates, score, completeness)
        cells = self._scores.cells(self.within, _RESOLUTION)
        self._states = [_ConsistentCells(cells, best_of(cells.log_scores))]
        self.history: list[tuple[Question, str]] = []

    @property
    def winner(self) -> Candidate:
        """Candidate that wins for most of the remaining weights."""
        return self.candidates[int(self._scores.members[self._leader()])]

    @property
    def remaining(self) -> list[int]:
        """Indices of the candidates that win for some of the remaining weights."""
        return sorted(self._scores.members[np.unique(self._states[-1].winners)].tolist())

    @property
    def weights(self) -> dict[str, float]:
        """Center of the remaining weights for which the winner wins."""
        state = self._states[-1]
        is_leader = state.winners == self._leader()
        points = state.cells.points[is_leader]
        middle = np.average(points, axis=0, weights=state.cells.area[is_leader] + TIE)
        point = points[int(np.argmin(((points - middle) ** 2).sum(axis=1)))]
        return dict(zip(WEIGHTS[self.score], np.exp(point).tolist(), strict=True))

    def next_question(self) -> Question | None:
        """Return the most informative question.

        Returns
        -------
        Question or None
            None if there is a single winner, or if all pairs of possible winners were compared.
        """
        state = self._states[-1]
        members, winner_of_cell = np.unique(state.winners, return_inverse=True)
        sampled_cells, area = _sample_cells(winner_of_cell, state.cells.area)
        leads = state.cells.log_scores[np.ix_(sampled_cells, members)]
        wins = winner_of_cell[sampled_cells, None] == np.arange(len(members))
        first, second = np.triu_indices(len(members), 1)
        is_first = leads[:, first] >= leads[:, second]
        # Number of possible winners after each answer, and difference between the remaining areas.
        win_matrix = wins.T.astype(np.float32)
        sides = [win_matrix @ side.astype(np.float32) > 0 for side in (is_first, ~is_first)]
        counts = np.stack([side.sum(axis=0) for side in sides])
        unbalance = np.abs(2 * (area @ is_first.astype(float)) - area.sum()).round(12)
        earlier_pairs = {frozenset(question.indices) for question, _ in self.history}
        indices = self._scores.members[members]
        for index in np.lexsort((unbalance, counts.sum(axis=0), counts.max(axis=0))):
            pair = sorted((int(indices[first[index]]), int(indices[second[index]])))
            if frozenset(pair) not in earlier_pairs:
                return self._make_question(pair[0], pair[1])
        return None

    def answer(self, choice: str, pair: tuple[int, int] | None = None) -> None:
        """Record which of two candidates is preferred.

        Parameters
        ----------
        choice : {"first", "second", "either"}
            The answer; ``"either"`` for candidates of about equal quality.
        pair : (int, int), optional
            Indices of the first and the second candidate; by default the pair of
            :meth:`next_question`.

        Raises
        ------
        ValueError
            If the choice or the pair is invalid, if there is no question left, or if no weights
            agree with all answers. In these cases, the answer is not recorded.
        """
        check_choice("choice", choice, _CHOICES)
        if pair is None:
            question = self.next_question()
            if question is None:
                raise ValueError(
                    f"There is no question left for the answer {choice!r}: see `winner`. Pass "
                    "pair=... to compare two candidates, or call undo() to remove an answer."
                )
        else:
            question = self._make_question(*self._check_pair(pair))
        members = self._scores.members.tolist()
        first, second = (members.index(index) for index in question.indices)
        lower, upper = {
            "first": (0.0, math.inf),
            "second": (-math.inf, 0.0),
            "either": (-self._log_indifference, self._log_indifference),
        }[choice]
        state = self._state_after(first, second, lower, upper)
        if state is None:
            earlier = "and with the earlier answers" if self.history else "within the range"
            raise ValueError(
                f"No weights agree with the answer {choice!r} to {str(question)!r} {earlier}. Call "
                "undo() to remove the last answer, answer 'either', or allow more weights with "
                "within=... or indifference=..."
            )
        self._states.append(state)
        self.history.append((question, choice))

    def undo(self) -> None:
        """Remove the last answer.

        Raises
        ------
        ValueError
            If there is no answer.
        """
        if not self.history:
            raise ValueError("There is no answer to remove: history is empty.")
        self.history.pop()
        self._states.pop()

    def _leader(self) -> int:
        state = self._states[-1]
        members, winner_of_cell = np.unique(state.winners, return_inverse=True)
        return int(members[np.argmax(np.bincount(winner_of_cell, weights=state.cells.area))])

    def _state_after(
        self, first: int, second: int, lower: float, upper: float
    ) -> _ConsistentCells | None:
        """Return the cells in which the lead of `first` over `second` lies in an interval, if any.

        Both are numbers of members.
        """
        state = self._states[-1]
        answers = (*state.answers, (first, second, lower, upper))
        losers = {second} if lower >= 0.0 else {first} if upper <= 0.0 else set()
        members = np.array([m for m in np.unique(state.winners) if m not in losers], dtype=int)
        if not len(members):
            return None
        cells, disagreement = state.cells, _disagreement(state.cells, answers)
        for _ in range(_MAX_REFINEMENTS if self.score == "ice" else 0):
            if (disagreement <= TIE).sum() >= _MIN_POINTS:
                break
            cells = self._refine(cells, disagreement)
            disagreement = _disagreement(cells, answers)
        is_consistent = disagreement <= TIE
        if not is_consistent.any():
            return None
        consistent_cells = Cells(
            cells.points[is_consistent],
            cells.area[is_consistent],
            cells.log_scores[is_consistent],
            cells.edges,
        )
        return _ConsistentCells(
            consistent_cells, members[best_of(consistent_cells.log_scores[:, members])], answers
        )

    def _refine(self, cells: Cells, disagreement: np.ndarray) -> Cells:
        """Return a finer grid around the points that agree or nearly agree."""
        agreeing_points = cells.points[disagreement <= max(TIE, disagreement.min())]
        ranges = {}
        for axis, (name, (low, high)) in enumerate(self.within.items()):
            ratio = cells.edges[axis][1] / cells.edges[axis][0]
            lower, upper = np.exp([agreeing_points[:, axis].min(), agreeing_points[:, axis].max()])
            ranges[name] = max(low, lower / ratio**2), min(high, upper * ratio**2)
        return self._scores.cells(ranges, _RESOLUTION)

    def _check_pair(self, pair: Any) -> tuple[int, int]:
        n = len(self.candidates)
        integer_types = (int, np.integer)
        if not (
            isinstance(pair, tuple | list)
            and len(pair) == 2
            and all(
                isinstance(p, integer_types) and not isinstance(p, bool) and 0 <= p < n
                for p in pair
            )
            and pair[0] != pair[1]
        ):
            raise ValueError(f"pair must be two different indices from 0 to {n - 1}, got {pair!r}.")
        better = self._scores.dominators
        for index in pair:
            if index in better:
                raise ValueError(
                    f"pair must name candidates that can win, but {index!r} cannot: candidate "
                    f"{better[index]} is at least as good on every fold. Compare that one."
                )
        return int(pair[0]), int(pair[1])

    def _make_question(self, first: int, second: int) -> Question:
        """Describe two candidates with as many digits as are needed to distinguish them."""
        pair = self.candidates[first], self.candidates[second]
        for digits in range(2, 8):
            texts = self._text(pair[0], digits), self._text(pair[1], digits)
            if texts[0] != texts[1]:
                break
        else:
            # Equal on average, but not on every fold.
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
        return text if share == 100 else f"{text} covering {share:.{digits}g} % of the {of}"


def _disagreement(cells: Cells, answers: tuple[tuple[int, int, float, float], ...]) -> np.ndarray:
    """Return the difference of log-scores by which each cell contradicts the answers."""
    disagreement = np.zeros(len(cells.points))
    for first, second, lower, upper in answers:
        lead = cells.log_scores[:, first] - cells.log_scores[:, second]
        disagreement = np.maximum(disagreement, np.maximum(lower - lead, lead - upper))
    return disagreement


def _sample_cells(winner_of_cell: np.ndarray, area: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw cells of each winner; return them with the area that each of them represents."""
    samples, areas = [], []
    for winner in range(winner_of_cell.max() + 1):
        members = np.flatnonzero(winner_of_cell == winner)
        sample = members[
            np.linspace(0, len(members) - 1, min(len(members), _POINTS_PER_WINNER)).astype(int)
        ]
        samples.append(sample)
        areas.append(np.full(len(sample), area[members].sum() / len(sample)))
    return np.concatenate(samples), np.concatenate(areas)
