"""Weights from answers: the weights of simulated users are found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from measures import fold_measures

from skescore.tuning import Candidate, Candidates, WeightElicitation, winning_regions


def random_candidates(n: int, n_folds: int, seed: int) -> Candidates:
    random = np.random.default_rng(seed)
    results = []
    for index in range(n):
        r = int(random.integers(1, 35))
        power = random.uniform(0.8, 1.1)
        folds = []
        for _ in range(n_folds):
            size = max(1, r + int(random.integers(-1, 2)))
            loss = float(min(1.0, 0.55 * r**-power * random.uniform(0.9, 1.1)))
            share = float(random.uniform(0.9, 1.0))
            losses = {"loss": loss, "loss_q": loss}
            folds.append(fold_measures(1 - loss, size, completeness_volume=share, **losses))
        results.append(Candidate.from_measures("cart", {}, index, tuple(folds)))
    return Candidates(results)


class Dialogues:
    """All possible dialogues with each state computed once."""

    def __init__(self, dialogue: WeightElicitation) -> None:
        self.dialogue = dialogue
        self.known: dict[tuple[str, ...], tuple[Any, int, dict[str, float]]] = {}

    def state(self, answers: tuple[str, ...]) -> tuple[Any, int, dict[str, float]]:
        if answers not in self.known:
            dialogue = self.dialogue
            messages = [choice for _, choice in dialogue.history]
            while messages != list(answers[: len(messages)]):
                dialogue.undo()
                messages.pop()
            for choice in answers[len(messages) :]:
                dialogue.answer(choice)
            winner = dialogue.candidates.index(dialogue.winner)
            self.known[answers] = dialogue.next_question(), winner, dialogue.weights
        return self.known[answers]

    def ask(self, goodness: np.ndarray) -> tuple[int, int, dict[str, float]]:
        """Return the candidate that is found for a user, and the number of answers."""
        answers: tuple[str, ...] = ()
        while True:
            question, winner, weights = self.state(answers)
            if question is None:
                return winner, len(answers), weights
            first, second = question.indices
            answers += ("first" if goodness[first] >= goodness[second] else "second",)


def goodness_of(candidates: Candidates, score: str, weights: dict[str, float]) -> np.ndarray:
    means = candidates.scores(score, **weights).mean(axis=1)
    return means if score == "ice" else -means


@pytest.mark.parametrize(
    ("score", "n", "n_folds", "seed"),
    [
        ("ice", 6, 1, 0),
        ("ice", 25, 1, 1),
        ("ice", 25, 4, 2),
        ("fire", 40, 1, 3),
        ("fire", 40, 3, 4),
    ],
)
def test_elicitation_finds_winner_in_few_answers(
    score: str, n: int, n_folds: int, seed: int
) -> None:
    candidates = random_candidates(n, n_folds, seed)
    dialogues = Dialogues(WeightElicitation(candidates, score))
    n_winners = len(dialogues.dialogue.remaining)
    assert n_winners >= 3
    random = np.random.default_rng(seed)
    for _ in range(400):
        users = {
            name: math.exp(random.uniform(*np.log(ends)))
            for name, ends in dialogues.dialogue.within.items()
        }
        goodness = goodness_of(candidates, score, users)
        best = int(np.argmax(goodness))
        winner, n_answers, weights = dialogues.ask(goodness)
        # Weights next to a boundary may differ from those of the winner by noise.
        assert goodness[winner] >= goodness[best] - 1e-9 * abs(goodness[best])
        assert n_answers <= math.ceil(math.log2(n_winners)) + 2
        result = goodness_of(candidates, score, weights)
        assert result[winner] >= result.max() - 1e-9 * abs(result.max())


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_questions_are_about_possible_winners(score: str) -> None:
    candidates = random_candidates(25, 2, 5)
    table = winning_regions(candidates, score).table
    dialogue = WeightElicitation(candidates, score)
    assert dialogue.remaining == sorted(set(table["candidate"]))
    shares = table.groupby("candidate")["share"].sum()
    assert dialogue.winner is candidates[int(shares.idxmax())]


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_remaining_weights_agree_with_answers(score: str) -> None:
    candidates = random_candidates(25, 2, 6)
    dialogue = WeightElicitation(candidates, score)
    before = dialogue.remaining
    for choice in ("second", "first", "second"):
        if dialogue.next_question() is None:
            break
        dialogue.answer(choice)
        assert set(dialogue.remaining) < set(before)
        before = dialogue.remaining
        goodness = goodness_of(candidates, score, dialogue.weights)
        for question, answer in dialogue.history:
            first, second = question.indices
            if answer == "second":
                first, second = second, first
            assert goodness[first] >= goodness[second]
            assert second not in dialogue.remaining


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_undo_removes_answers(score: str) -> None:
    dialogue = WeightElicitation(random_candidates(20, 2, 7), score)
    states = []
    while dialogue.next_question() is not None:
        states.append((dialogue.remaining, str(dialogue.next_question()), dialogue.weights))
        dialogue.answer("first")
    for state in reversed(states):
        dialogue.undo()
        assert (dialogue.remaining, str(dialogue.next_question()), dialogue.weights) == state
    with pytest.raises(ValueError, match="no answer to remove"):
        dialogue.undo()


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_contradictory_answer_is_rejected(score: str) -> None:
    candidates = random_candidates(20, 1, 8)
    dialogue = WeightElicitation(candidates, score)
    goodness = goodness_of(candidates, score, dialogue.weights)
    best, good, bad = sorted(dialogue.remaining, key=lambda place: -goodness[place])[:3]
    dialogue.answer("first", pair=(best, good))
    dialogue.answer("second", pair=(bad, good))
    state = dialogue.remaining, dialogue.weights, len(dialogue.history)
    # The opposite of the answers, and of their consequences.
    for pair in ((good, best), (bad, best)):
        with pytest.raises(ValueError, match=r"No weights agree with .*'first' .* undo\(\)"):
            dialogue.answer("first", pair=pair)
        assert (dialogue.remaining, dialogue.weights, len(dialogue.history)) == state
    dialogue.answer("second", pair=(bad, best))  # nothing new, but consistent
    assert dialogue.remaining == state[0]


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_indifference_keeps_weights_of_nearly_equal_scores(score: str) -> None:
    candidates = random_candidates(20, 1, 9)
    dialogue = WeightElicitation(candidates, score, indifference=0.05)
    indices = dialogue.next_question().indices
    dialogue.answer("either")
    first, second = goodness_of(candidates, score, dialogue.weights)[list(indices)]
    assert abs(math.log(first / second)) <= math.log(1.05) + 1e-9
    # The same question is not asked again, and the dialogue ends.
    queries = [indices]
    while (question := dialogue.next_question()) is not None:
        assert question.indices not in queries
        queries.append(question.indices)
        dialogue.answer("either" if len(queries) == 2 else "first")
    with pytest.raises(ValueError, match="no question left for the answer 'first'"):
        dialogue.answer("first")


def candidate(place: int, p: float, r: float, c: float = 1.0) -> Candidate:
    fold = fold_measures(p, r, completeness_volume=c, completeness_instances=0.5)
    return Candidate.from_measures("cart", {}, place, (fold,))


def test_question_describes_both_candidates() -> None:
    four, one = candidate(0, 0.95, 4), candidate(1, 0.75, 1, 0.9)
    question = WeightElicitation([four, one]).next_question()
    assert str(question) == (
        "Would you rather have 4 rules at 95 % (first) or 1 rule at 75 % covering 90 % of the "
        "space (second)?"
    )
    assert (question.first, question.second, question.indices) == (four, one, (0, 1))
    by_rows = WeightElicitation([four, one], completeness="instances").next_question()
    assert str(by_rows).endswith("1 rule at 75 % covering 50 % of the rows (second)?")
    fire = WeightElicitation([candidate(0, 0.75, 1), candidate(1, 0.9, 3)], "fire")
    assert str(fire.next_question()) == (
        "Would you rather have 1 rule with a loss of 0.25 (first) or 3 rules with a loss of 0.1 "
        "(second)?"
    )
    near = WeightElicitation([candidate(0, 0.95, 4), candidate(1, 0.9501, 4.01)]).next_question()
    assert near.texts[0] != near.texts[1]


def test_single_candidate_has_no_question() -> None:
    dialogue = WeightElicitation([candidate(0, 0.9, 3)])
    assert dialogue.next_question() is None
    assert dialogue.winner.trial == 0
    assert dialogue.history == []
    assert dialogue.weights == pytest.approx({"phi": 1.0, "rho": 1.0}, rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("maybe",), "choice must be one of .* got 'maybe'"),
        (("first", (0, 0)), r"two different indices from 0 to 2, got \(0, 0\)"),
        (("first", (0, 3)), r"from 0 to 2, got \(0, 3\)"),
        (("first", (0, True)), "two different indices"),
        (("first", (0, 2)), "but 2 cannot: candidate 0 is at least as good"),
    ],
)
def test_answer_rejects_invalid_values(arguments: tuple[Any, ...], text: str) -> None:
    dialogue = WeightElicitation(
        [candidate(0, 0.95, 4), candidate(1, 0.7, 1), candidate(2, 0.9, 5)]
    )
    with pytest.raises(ValueError, match=text):
        dialogue.answer(*arguments)


def test_elicitation_rejects_invalid_parameters() -> None:
    with pytest.raises(ValueError, match="indifference must be >= 0"):
        WeightElicitation([candidate(0, 0.9, 3)], indifference=-1)
    with pytest.raises(ValueError, match="Q has no weights"):
        WeightElicitation([candidate(0, 0.9, 3)], "q")
    with pytest.raises(ValueError, match="within must name weights of 'fire'"):
        WeightElicitation([candidate(0, 0.9, 3)], "fire", within={"phi": (1, 2)})
