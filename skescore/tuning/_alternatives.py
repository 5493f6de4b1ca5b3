"""Up to three rule lists for people: best by the score, shortest, and most faithful."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._text import plural
from skescore.rules import LinearOutput, RuleSet
from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._fold_result import mean_of
from skescore.tuning._winner import within

#: Rules that people read without effort; the most faithful list has no more unless a limit is set.
READABLE_RULES = 8
#: Largest distance of the shortest list from the best correctness, in standard errors.
_STANDARD_ERRORS = 1.0
#: Smallest gain that is worth a sentence.
_LEAST_GAIN = 0.001
#: Roles of the alternatives, in their order.
ROLES = ("best", "shortest", "most faithful")


@dataclass(frozen=True)
class Alternative:
    """A rule list of a search with the figures that people need to choose it.

    Parameters
    ----------
    roles : tuple of str
        What it is the first in: ``"best"`` by the score of the search, ``"shortest"`` of those as
        right as the most correct candidate, or ``"most faithful"`` within the limit of rules.
    extractor : str
        Registered name.
    params : dict
        Hyperparameters.
    trial : int
        Number of the trial.
    n_rules : float
        Number of rules extracted from all rows, otherwise the mean over the folds.
    correctness : float
        Agreement with the data on held-out rows: accuracy or R²; NaN without data.
    fidelity : float
        Agreement with the black box on rows that it was not fitted on: accuracy or R².
    next_rules, next_correctness, next_fidelity : float
        The same figures of the best candidate with more rules; NaN if none is better.
    rules : RuleSet
        The rules, extracted from all rows.
    """

    roles: tuple[str, ...]
    extractor: str
    params: dict[str, Any]
    trial: int
    n_rules: float
    correctness: float
    fidelity: float
    next_rules: float
    next_correctness: float
    next_fidelity: float
    rules: RuleSet

    @property
    def is_constant(self) -> bool:
        """True if the only rule has no condition and the same conclusion for all rows."""
        return is_constant(self.rules)

    def describe_gain(self) -> str:
        """Return a sentence on what more rules would buy; empty if nothing is gained.

        Returns
        -------
        str
            The sentence, without a full stop.
        """
        if math.isnan(self.next_rules):
            return ""
        parts = []
        for name, now, then in (
            ("correctness", self.correctness, self.next_correctness),
            ("fidelity", self.fidelity, self.next_fidelity),
        ):
            if not math.isnan(then - now):
                parts.append(f"{name} {then - now:+.3f}")
        n_more = self.next_rules - self.n_rules
        count = plural(round(n_more), "more rule") if abs(n_more % 1) < 0.05 else f"{n_more:.1f}"
        return f"{count} would change {' and '.join(parts)}"


@dataclass(frozen=True)
class _Choice:
    """A candidate with its roles."""

    candidate: Candidate
    roles: tuple[str, ...]
    next_candidate: Candidate | None


def is_constant(rules: RuleSet) -> bool:
    """Return whether rules predict the same for all rows."""
    if len(rules) != 1:
        return False
    rule = rules.rules[0]
    return not rule.conditions and not isinstance(rule.output, LinearOutput)


def n_final_rules(candidate: Candidate) -> float:
    """Return the number of rules extracted from all rows, otherwise the mean over the folds."""
    on_folds = mean_of(candidate.folds, "n_rules")
    if candidate.all_rows is None:
        return on_folds
    return float(candidate.all_rows.get("n_rules", on_folds))


def choose_alternatives(
    candidates: Candidates, winner: tuple[str, int], *, max_rules: float
) -> list[_Choice]:
    """Choose the candidates of the three roles; one candidate may have several.

    Parameters
    ----------
    candidates : Candidates
        Candidates of a search that keep its limits.
    winner : tuple of (str, int)
        Extractor and trial of the winner.
    max_rules : float
        Largest number of rules of the most faithful list.

    Returns
    -------
    list of _Choice
        In the order of their first roles. The shortest list is no constant if another candidate is
        as right.
    """
    if not len(candidates):
        return []
    sizes = np.array([n_final_rules(candidate) for candidate in candidates])
    by_role: dict[str, int] = {}
    for index, candidate in enumerate(candidates):
        if (candidate.extractor, candidate.trial) == winner:
            by_role["best"] = index
    fidelity = _by_fold(candidates, "fidelity")
    correctness = _by_fold(candidates, "correctness")
    rightness = fidelity if np.isnan(correctness).all() else correctness
    if np.isfinite(rightness).all(axis=1).any():
        near = within(np.where(np.isfinite(rightness), rightness, -np.inf), _STANDARD_ERRORS)
        order = np.lexsort([-rightness[near].mean(axis=1), sizes[near].round(9)])
        by_role["shortest"] = int(near[order[0]])
    is_readable = np.flatnonzero((sizes <= max_rules + 1e-9) & np.isfinite(fidelity).all(axis=1))
    if len(is_readable):
        means = fidelity[is_readable].mean(axis=1).round(9)
        order = np.lexsort([sizes[is_readable], -means])
        by_role["most faithful"] = int(is_readable[order[0]])
    roles_of: dict[int, list[str]] = {}
    for role in ROLES:
        if role in by_role:
            roles_of.setdefault(by_role[role], []).append(role)
    means = np.nan_to_num(rightness.mean(axis=1), nan=-np.inf)
    return [
        _Choice(candidates[index], tuple(roles), _next_larger(candidates, sizes, means, index))
        for index, roles in roles_of.items()
    ]


def _next_larger(
    candidates: Candidates, sizes: np.ndarray, means: np.ndarray, index: int
) -> Candidate | None:
    """Return the best candidate of the next larger size at which some candidate is better."""
    is_better = (sizes > sizes[index] + 0.5) & (means >= means[index] + _LEAST_GAIN)
    if not is_better.any():
        return None
    size = sizes[is_better].min()
    rows = np.flatnonzero(is_better & (sizes == size))
    return candidates[int(rows[means[rows].argmax()])]


def _by_fold(candidates: Candidates, name: str) -> np.ndarray:
    return np.array([[fold.get(name) for fold in candidate.folds] for candidate in candidates])


def make_alternatives(
    choices: Sequence[_Choice], extract_rules: Callable[[Candidate], RuleSet]
) -> tuple[Alternative, ...]:
    """Extract the rules of the chosen candidates from all rows, and collect their figures.

    Parameters
    ----------
    choices : sequence of _Choice
        The candidates.
    extract_rules : callable
        Returns the rules of a candidate.

    Returns
    -------
    tuple of Alternative
        One per rule list. Candidates whose rules read alike share the first one's figures.
    """
    alternatives: list[Alternative] = []
    for choice in choices:
        candidate, following = choice.candidate, choice.next_candidate
        rules = extract_rules(candidate)
        text = str(rules)
        equal = next((i for i, one in enumerate(alternatives) if str(one.rules) == text), None)
        if equal is not None:
            roles = alternatives[equal].roles + choice.roles
            alternatives[equal] = replace(alternatives[equal], roles=roles)
            continue
        alternatives.append(
            Alternative(
                choice.roles,
                candidate.extractor,
                dict(candidate.params),
                candidate.trial,
                float(len(rules)),
                mean_of(candidate.folds, "correctness"),
                mean_of(candidate.folds, "fidelity"),
                *_figures(following),
                rules,
            )
        )
    return tuple(alternatives)


def _figures(candidate: Candidate | None) -> tuple[float, float, float]:
    """Return number of rules, correctness and fidelity; NaN without a candidate."""
    if candidate is None:
        return math.nan, math.nan, math.nan
    agreement = (mean_of(candidate.folds, name) for name in ("correctness", "fidelity"))
    return (n_final_rules(candidate), *agreement)  # type: ignore[return-value]
