"""From rules that were made one by one to a list in which each has something to say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skescore.extractors.real._codes import Evidence
from skescore.extractors.real._literals import Premise, inside


def subsumed(index: int, premises: Sequence[Premise], outputs: np.ndarray) -> bool:
    """Whether another rule of the same class holds wherever a rule does.

    Parameters
    ----------
    index : int
        The rule.
    premises : sequence of premises
        All rules.
    outputs : ndarray of int, shape (n_rules,)
        Their classes.

    Returns
    -------
    bool
        Of rules with the same premise only the first is not subsumed.
    """
    mine = premises[index]
    for other, premise in enumerate(premises):
        if other == index or outputs[other] != outputs[index]:
            continue
        within = all(not (a & ~b).any() for a, b in zip(mine, premise, strict=True))
        same = within and all((a == b).all() for a, b in zip(mine, premise, strict=True))
        if within and (not same or other < index):
            return True
    return False


def best_list(
    rows: Evidence,
    premises: Sequence[Premise],
    outputs: np.ndarray,
    n_classes: int,
    tolerance: float,
) -> list[tuple[int, np.ndarray]]:
    """Put rules in an order in which the first that holds answers.

    Next comes the rule with the largest surplus of right over wrong answers among the rows without
    a rule so far; of equal ones the first.

    Parameters
    ----------
    rows : Evidence
        The distinct rows.
    premises : sequence of premises
        The rules.
    outputs : ndarray of int, shape (n_rules,)
        Their classes.
    n_classes : int
        Number of classes.
    tolerance : float
        Share of the rows that may stay without a rule.

    Returns
    -------
    list of (int, ndarray)
        The rules of the list, and how often each class was answered where each of them answers.
    """
    enough = tolerance * rows.weights.sum()
    candidates = list(range(len(premises)))
    result = []
    while candidates and rows.weights.sum() > enough:
        answered = [_class_weights(rows, premises[i], n_classes) for i in candidates]
        surplus = [
            2 * counts[outputs[i]] - counts.sum()
            for i, counts in zip(candidates, answered, strict=True)
        ]
        best = int(np.argmax(surplus))
        if surplus[best] <= 0:
            break
        chosen = candidates.pop(best)
        result.append((chosen, answered[best]))
        rest = np.ones(len(rows), dtype=bool)
        rest[inside(rows, premises[chosen])] = False
        rows = rows.part(rest)
    return result


def _class_weights(rows: Evidence, premise: Premise, n_classes: int) -> np.ndarray:
    index = inside(rows, premise)
    return np.bincount(rows.answers[index], weights=rows.weights[index], minlength=n_classes)
