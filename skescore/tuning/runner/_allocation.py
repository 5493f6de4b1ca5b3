"""Allocation of the budget of a search to extractors, based on a comparison of their trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from skescore._text import plural
from skescore.registry import extractor_label
from skescore.scorers import measured_quantities
from skescore.tuning._candidates import hypervolume
from skescore.tuning._folds import FoldResult, read_all_rows, read_folds
from skescore.tuning._objective import STOPPED, params_key, score_of_parts


def value_of(trial: FrozenTrial) -> float:
    """Return the score of a complete trial."""
    return float(trial.values[0])


def score_and_bound(
    trials: Sequence[FrozenTrial], scorer: Any, *, is_race: bool = False
) -> tuple[float, float]:
    """Return the best score of an extractor and an upper bound on the score it can reach.

    In a race, an extractor whose trials were all pruned has no score: minus infinity. If all trials
    failed, the bound is minus infinity as well; without trials, it is NaN.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    pruned = [trial for trial in trials if STOPPED in trial.user_attrs]
    best_score = max(map(value_of, complete), default=-math.inf)
    if not pruned:
        bound = _upper_bound(complete, scorer) if complete else bound_without_score(trials)
        return best_score, bound
    # Trials that were stopped between folds are not measured on all of them: there is no bound.
    if not complete and not is_race:
        best_score = max(float(trial.user_attrs["score"]) for trial in pruned)
    return best_score, math.inf


def bound_without_score(trials: Sequence[FrozenTrial]) -> float:
    """Return the upper bound of an extractor without complete trials, as in `score_and_bound`."""
    if any(STOPPED in trial.user_attrs for trial in trials):
        return math.inf
    return -math.inf if trials else math.nan


def _upper_bound(trials: list[FrozenTrial], scorer: Any) -> float:
    """Return the mean score of the best value of each part on each fold; infinite if unknown."""
    parts_and_score = score_of_parts(scorer)
    if not trials or parts_and_score is None:
        return math.inf
    names, score = parts_and_score
    signs = _part_signs()
    folds = list(zip(*(read_folds(trial.user_attrs["folds"]) for trial in trials), strict=True))
    best_parts = {
        name: np.array(
            [(max if signs[name] > 0 else min)([result[name] for result in fold]) for fold in folds]
        )
        for name in names
    }
    return float(np.mean(score(best_parts)))


def hypervolume_contributions(trials: Mapping[str, list[FrozenTrial]]) -> dict[str, float]:
    """Return the hypervolume that each extractor adds to the front of all complete trials."""
    values = {
        name: np.array([t.values for t in complete])
        for name, complete in trials.items()
        if complete
    }
    result = dict.fromkeys(trials, -math.inf)
    if not values:
        return result
    all_values = np.concatenate(list(values.values()))
    reference = all_values.max(axis=0) + 0.1 * np.ptp(all_values, axis=0) + 1e-9
    unit = reference - all_values.min(axis=0)

    def volume(fronts: list[np.ndarray]) -> float:
        if not fronts:
            return 0.0
        return hypervolume(np.concatenate(fronts) / unit, reference / unit)

    total = volume(list(values.values()))
    for name, own_values in values.items():
        other_values = [array for other_name, array in values.items() if other_name != name]
        # Extractors that add nothing are ranked by their own fronts.
        result[name] = total - volume(other_values) + 1e-3 * volume([own_values])
    return result


def measured_parts(
    results: Sequence[FoldResult], measures: Mapping[str, float] | None = None
) -> np.ndarray:
    """Return the parts of the score on each fold, one row per fold; greater is better.

    `measures` are further columns: their names, and 1 if greater is better, else -1.
    """
    signs = _part_signs() | {**(measures or {})}
    return np.array([[sign * r.get(name) for name, sign in signs.items()] for r in results])


#: Measures that decide a race. Measures of covered rows alone are left out, because rules that
#: cover few rows are often good in them.
_RACE_MEASURES = ("score", "loss", "size", "completeness_volume")


def raced_parts(parts: np.ndarray) -> np.ndarray:
    """Return the columns of :func:`measured_parts` that decide a race, the loss second.

    Further measures, in the last columns, decide as well.
    """
    names = list(_part_signs())
    further = range(len(names), parts.shape[1])
    return parts[:, [*(names.index(name) for name in _RACE_MEASURES), *further]]


def _part_signs() -> dict[str, float]:
    """Return the parts of scores: 1 if greater is better, -1 if smaller is better."""
    signs = {q.name: q.sign for q in measured_quantities(costs=False).values()}
    del signs["n_rules"]  # no score depends on it: `size` is the number that scores count
    return {"score": 1.0, **signs}


@dataclass(frozen=True)
class FinishedTrial:
    """Measurements of a trial on all folds, which a trial with equal hyperparameters shares."""

    number: int
    results: list[FoldResult]
    all_rows: FoldResult | None


class ResultCache:
    """Results of the finished trials of a search that were measured on all folds.

    `measures` are further measures by which trials are compared: 1 if greater is better, else -1.
    """

    def __init__(self, n_folds: int, measures: Mapping[str, float] | None = None) -> None:
        self.n_folds = n_folds
        self.measures = measures or {}
        self._by_params: dict[tuple[str, str], FinishedTrial] = {}
        self._parts: dict[tuple[str, int], np.ndarray] = {}
        self._n_read: dict[str, int] = {}

    def get(self, name: str, params: dict[str, Any]) -> FinishedTrial | None:
        """Return the first finished trial of an extractor with these hyperparameters."""
        return self._by_params.get((name, params_key(params)))

    def add(self, name: str, params: dict[str, Any], trial: FinishedTrial) -> None:
        """Add a trial unless there is one with equal hyperparameters."""
        self._by_params.setdefault((name, params_key(params)), trial)

    def parts_of(self, results: Sequence[FoldResult]) -> np.ndarray:
        """Return the measures by which trials are compared; see :func:`measured_parts`."""
        return measured_parts(results, self.measures)

    def rivals(self) -> list[np.ndarray]:
        """Return the measures of all trials whose rules, extracted from all rows, have a score."""
        return list(self._parts.values())

    def update(self, trials: Mapping[str, Sequence[FrozenTrial]]) -> None:
        """Add the finished trials among those that were read from the storage."""
        for name, read_trials in trials.items():
            n_read = self._n_read.get(name, 0)
            while n_read < len(read_trials) and read_trials[n_read].state.is_finished():
                self._add_trial(name, read_trials[n_read])
                n_read += 1
            self._n_read[name] = n_read
            for trial in read_trials[n_read:]:
                if trial.state.is_finished():
                    self._add_trial(name, trial)

    def _add_trial(self, name: str, trial: FrozenTrial) -> None:
        """Add a stored trial if it was evaluated on all folds and is no repetition."""
        folds = read_folds(trial.user_attrs.get("folds"))
        if len(folds) != self.n_folds or "same_as" in trial.user_attrs:
            return
        all_rows = read_all_rows(trial.user_attrs.get("all_rows"))
        self.add(name, trial.params, FinishedTrial(trial.number, list(folds), all_rows))
        # A trial whose rules could not be extracted from all rows cannot win.
        score = math.nan if all_rows is None else all_rows.get("score")
        if math.isfinite(score) and (name, trial.number) not in self._parts:
            self._parts[name, trial.number] = self.parts_of(folds)


#: Extractors are compared after at least this many trials each.
_MIN_TRIALS_TO_RANK = 1
#: Number of extractors in the last round, unless there are only two in the first. The candidates of
#: a single extractor would make up the whole trade-off.
_LAST_ROUND_SIZE = 2
#: Scores whose relative difference is not larger than this are equal up to rounding.
_SCORE_TOLERANCE = 1e-12
#: The upper bound of an extractor is used after at least this many trials.
_MIN_TRIALS_TO_BOUND = 2
#: Budget of the first round, which stops the most extractors, in multiples of a later round's.
_FIRST_ROUND_WEIGHT = 2


@dataclass(frozen=True)
class TrialUsage:
    """Budget that an extractor has used.

    Attributes
    ----------
    n_started : int
        Number of started trials, without interrupted and repeated trials.
    seconds : float
        Total duration of these trials in seconds.
    """

    n_started: int
    seconds: float = 0.0


#: Ranks extractors by their first trials (all for None). Returns the priority of each extractor
#: (greater is better) and an upper bound on the score it can reach (infinite if unknown).
RankingFunction = Callable[[Sequence[str], int | None], Mapping[str, tuple[float, float]]]


class Allocation:
    """Divide a budget of trials or time between extractors by successive halving.

    Every round halves the number of extractors, down to two, so that the best extractors get most
    of the trials. An extractor is also stopped after a round if it cannot beat the best score: if
    the score of its smallest loss, fewest rules and greatest completeness together is lower.

    Parameters
    ----------
    names : sequence of str
        The extractors.
    n_trials : int or None
        Total number of trials; None if only the time is limited.
    timeout : float or None
        Total time in seconds; None if only the number of trials is limited.
    policy : {"halving", "even"}
        ``"even"`` gives every extractor the same number of trials.
    priority_label : str, default="best"
        Name of the priority in the reasons for stopping an extractor.
    costly : collection of str, default=()
        Extractors that take long: they are stopped after the first round unless they lead.
    negated : bool, default=False
        Whether the reasons state the negative of each score, as for FiRe (smaller is better).
    """

    def __init__(
        self,
        names: Sequence[str],
        n_trials: int | None,
        timeout: float | None,
        policy: str,
        *,
        priority_label: str = "best",
        costly: Collection[str] = (),
        negated: bool = False,
    ) -> None:
        self.names = list(names)
        self.n_trials = n_trials
        self.timeout = timeout
        self.priority_label = priority_label
        self.costly = frozenset(costly)
        self._sign = -1.0 if negated else 1.0
        self.rounds = _plan_rounds(len(self.names), n_trials, policy)
        #: Reason for each stopped extractor, as of the last call of :meth:`next_trials`.
        self.stop_reasons: dict[str, str] = {}

    def next_trials(
        self,
        usage: Mapping[str, TrialUsage],
        rank: RankingFunction,
        elapsed: float = 0.0,
        excluded: Collection[str] = (),
    ) -> dict[str, int]:
        """Return the number of further trials that each extractor may start now.

        `excluded` are the extractors whose studies a callback has stopped.
        """
        self.stop_reasons = {}
        if self.timeout is not None and elapsed >= self.timeout:
            return {}
        candidates = [name for name in self.names if name not in excluded]
        if not candidates:
            return {}
        if self.n_trials is None:
            return self._next_trials_by_time(candidates, usage, rank, elapsed)
        n_remaining = self.n_trials - sum(entry.n_started for entry in usage.values())
        result = {}
        for name, n_wanted in self._next_trials_by_number(candidates, usage, rank).items():
            if (n_granted := min(n_wanted, n_remaining)) > 0:
                result[name] = n_granted
                n_remaining -= n_granted
        return result

    def _next_trials_by_number(
        self, active: list[str], usage: Mapping[str, TrialUsage], rank: RankingFunction
    ) -> dict[str, int]:
        """Return the missing trials of the first round that is incomplete."""
        quota = 0
        for index, (n_survivors, n_trials_each) in enumerate(self.rounds):
            if index:
                active = self._halve(active, n_survivors, rank, quota)
            quota += n_trials_each
            n_missing = {
                name: quota - usage[name].n_started
                for name in active
                if usage[name].n_started < quota
            }
            if n_missing:
                return n_missing
        # Rounding and stopped extractors have left trials: the remaining extractors take turns.
        fewest = min(usage[name].n_started for name in active)
        return {name: 1 for name in active if usage[name].n_started == fewest}

    def _next_trials_by_time(
        self,
        active: list[str],
        usage: Mapping[str, TrialUsage],
        rank: RankingFunction,
        elapsed: float,
    ) -> dict[str, int]:
        """Return one trial for every extractor that has used at most the mean time.

        A round ends when its share of the time is over.
        """
        assert self.timeout is not None
        weights = [_FIRST_ROUND_WEIGHT, *[1] * (len(self.rounds) - 1)]
        round_end = 0.0
        for index, (n_survivors, _) in enumerate(self.rounds):
            if index:
                active = self._halve(active, n_survivors, rank, None)
            round_end += self.timeout * weights[index] / sum(weights)
            if elapsed < round_end:
                break
        unstarted_names = [name for name in active if not usage[name].n_started]
        if unstarted_names:
            return dict.fromkeys(unstarted_names, 1)
        mean = sum(usage[name].seconds for name in active) / len(active)
        return {name: 1 for name in active if usage[name].seconds <= mean}

    def _halve(
        self, active: list[str], n_survivors: int, rank: RankingFunction, n_first: int | None
    ) -> list[str]:
        """Return the extractors that survive a round and record why the others are stopped.

        The extractors are ranked by their first `n_first` trials, or by all if None.
        """
        performance = rank(active, n_first)
        # The sort is stable: of equal extractors, the one that was named first survives.
        ranking = sorted(active, key=lambda name: -performance[name][0])
        leader = ranking[0]
        best = performance[leader][0]
        less_than_best = best - _SCORE_TOLERANCE * abs(best)
        survivors = {leader}
        period = "so far" if n_first is None else f"after {plural(n_first, 'trial')}"
        for position, name in enumerate(ranking[1:], start=2):
            priority, upper_bound = performance[name]
            if priority == -math.inf:
                reason = "another candidate was better on the first folds"
                if not upper_bound > 0:  # minus infinity, or NaN without trials
                    reason = "each trial failed" if upper_bound < 0 else "no trial was finished"
                self.stop_reasons[name] = f"{period} {reason}"
            elif upper_bound < less_than_best and (
                n_first is None or n_first >= _MIN_TRIALS_TO_BOUND
            ):
                bound_text, best_text = _format_distinctly(
                    self._sign * upper_bound, self._sign * best
                )
                self.stop_reasons[name] = (
                    f"{period} it cannot beat {extractor_label(leader)} on the folds of the trials "
                    f"({best_text}): even a candidate with its smallest loss, fewest rules and "
                    f"greatest completeness would score only {bound_text}"
                )
            elif name in self.costly and priority < less_than_best:
                own_text, best_text = _format_distinctly(self._sign * priority, self._sign * best)
                self.stop_reasons[name] = (
                    f"{period} its {self.priority_label} was {own_text}, and "
                    f"{extractor_label(leader)}, which takes less time, had {best_text}"
                )
            elif position > n_survivors:
                self.stop_reasons[name] = (
                    f"{period} its {self.priority_label} was {self._sign * priority:.4g}, rank "
                    f"{position} of {len(active)}; the first {n_survivors} continued "
                    f"({extractor_label(leader)} had {self._sign * best:.4g})"
                )
            else:
                survivors.add(name)
        return [name for name in active if name in survivors]


def _format_distinctly(score: float, other_score: float) -> tuple[str, str]:
    """Format two scores with four digits, or with as many as are needed to distinguish them."""
    for n_digits in range(4, 17):
        texts = f"{score:.{n_digits}g}", f"{other_score:.{n_digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _plan_rounds(n_names: int, n_trials: int | None, policy: str) -> list[tuple[int, int]]:
    """Return the number of extractors of each round and the trials of each of them."""
    is_even = policy == "even" or n_names == 1
    if is_even or (n_trials or math.inf) < _MIN_TRIALS_TO_RANK * n_names:
        return [(n_names, 0 if n_trials is None else n_trials // n_names)]
    sizes = [n_names]
    while sizes[-1] > min(_LAST_ROUND_SIZE, n_names - 1):
        sizes.append(math.ceil(sizes[-1] / 2))
    if n_trials is None:
        return [(size, 0) for size in sizes]
    round_budget = n_trials / (len(sizes) - 1 + _FIRST_ROUND_WEIGHT)
    n_first = max(int(round_budget * _FIRST_ROUND_WEIGHT / n_names), _MIN_TRIALS_TO_RANK)
    round_budget = (n_trials - n_first * n_names) / (len(sizes) - 1)
    later_rounds = [(size, int(round_budget / size)) for size in sizes[1:] if round_budget >= size]
    if not later_rounds:
        return [(n_names, n_trials // n_names)]
    return [(n_names, n_first), *later_rounds]


def alternate(n_trials: Mapping[str, int]) -> list[str]:
    """Return each extractor as often as it has trials, one after another in turns."""
    n_turns = max(n_trials.values(), default=0)
    return [name for turn in range(n_turns) for name, number in n_trials.items() if number > turn]


def order_for_worker(
    n_trials: Mapping[str, int],
    seconds: Mapping[str, float],
    running: Collection[str],
    previous: Collection[str],
) -> list[str]:
    """Return the extractors in alternation, ordered for one of several workers.

    Extractors that no other worker runs (not in `running`) come first; among these, the extractors
    that this worker ran before (`previous`), then those with the most remaining work. Thus, most
    extractors are run by a single worker, which has their shared computations in memory and whose
    sampler knows all earlier trials, and long trials start early.

    `seconds` is the mean duration of a trial, infinite if unknown.
    """

    def sort_key(name: str) -> tuple[bool, float]:
        return name not in previous, -n_trials[name] * seconds[name]

    order = sorted(n_trials, key=sort_key)
    idle = {name: n_trials[name] for name in order if name not in running}
    busy = {name: n_trials[name] for name in order if name in running}
    return [*alternate(idle), *alternate(busy)]
