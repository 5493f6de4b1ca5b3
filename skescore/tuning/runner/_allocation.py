"""Allocation of a budget of trials to extractors by successive halving."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from skescore._text import plural
from skescore.registry import extractor_label

#: With fewer trials per extractor than this, nobody is stopped: there is too little to go by.
_LEAST_TO_JUDGE = 2
#: So many extractors go on to the end: with one alone, the trade-off would be its own.
_LAST_ROUND = 2
#: With fewer trials, the best of everything that an extractor has shown says too little.
_LEAST_TO_BOUND = 3
#: The first round decides on the most extractors, and gets as much as this many of the others.
_FIRST_ROUND = 2


@dataclass(frozen=True)
class Standing:
    """What an extractor has done so far: trials that count, and the time that they took.

    Trials count if they were begun, and neither interrupted nor begun anew.
    """

    started: int
    seconds: float = 0.0


#: Judges names by their first trials: how good each is (greater is better), and how good it could
#: be at most (infinite if that is not known).
Judge = Callable[[Sequence[str], int | None], Mapping[str, tuple[float, float]]]


class Allocation:
    """Divides a budget between extractors.

    Successive halving: every round halves the number of extractors, down to two, so that most of
    the trials go to those that do best. Beside that, an extractor is stopped after a round if the
    best of all that it has shown, its smallest loss with its fewest rules and its greatest
    completeness, would not beat the best score so far.
    """

    def __init__(
        self,
        names: Sequence[str],
        n_trials: int | None,
        timeout: float | None,
        policy: str,
        *,
        priority: str = "best",
    ) -> None:
        self.names = list(names)
        self.n_trials = n_trials
        self.timeout = timeout
        self.priority = priority
        self.rounds = _rounds(len(self.names), n_trials, policy)
        self._halted: Collection[str] = ()
        #: Why extractors were stopped, as far as :meth:`allowed` knows.
        self.stopped: dict[str, str] = {}

    def allowed(
        self,
        standings: Mapping[str, Standing],
        judge: Judge,
        elapsed: float = 0.0,
        halted: Collection[str] = (),
    ) -> dict[str, int]:
        """Give how many further trials each extractor may start now."""
        self.stopped = {}
        self._halted = halted
        if self.timeout is not None and elapsed >= self.timeout:
            return {}
        if self.n_trials is None:
            return self._by_time(standings, judge, elapsed)
        left = self.n_trials - sum(standing.started for standing in standings.values())
        if left <= 0:
            self._go_through(standings, judge)
            return {}
        wanted = self._go_through(standings, judge)
        result = {}
        for name, number in wanted.items():
            if given := min(number, left):
                result[name] = given
                left -= given
        return result

    def _go_through(self, standings: Mapping[str, Standing], judge: Judge) -> dict[str, int]:
        """Go through the rounds up to the first that is not done."""
        live = [name for name in self.names if name not in self._halted]
        if not live:
            return {}
        quota = 0
        for number, (keep, each) in enumerate(self.rounds):
            if number:
                live = self._halved(live, keep, judge, quota)
            quota += each
            wanted = {
                name: quota - standings[name].started
                for name in live
                if standings[name].started < quota
            }
            if wanted:
                return wanted
        # What rounding left over, and what stopped extractors did not use.
        least = min(standings[name].started for name in live)
        return {name: 1 for name in live if standings[name].started == least}

    def _by_time(
        self, standings: Mapping[str, Standing], judge: Judge, elapsed: float
    ) -> dict[str, int]:
        """Rounds end when their share of the time is over; in one, the least served comes next."""
        assert self.timeout is not None
        weights = [_FIRST_ROUND, *[1] * (len(self.rounds) - 1)]
        live, end = [name for name in self.names if name not in self._halted], 0.0
        if not live:
            return {}
        for number, (keep, _) in enumerate(self.rounds):
            if number:
                live = self._halved(live, keep, judge, None)
            end += self.timeout * weights[number] / sum(weights)
            if elapsed < end:
                break
        fresh = [name for name in live if not standings[name].started]
        if fresh:
            return dict.fromkeys(fresh, 1)
        mean = sum(standings[name].seconds for name in live) / len(live)
        return {name: 1 for name in live if standings[name].seconds <= mean}

    def _halved(self, live: list[str], keep: int, judge: Judge, first: int | None) -> list[str]:
        """The extractors that go on, in their order; the others are told why they do not."""
        known = judge(live, first)
        ranked = sorted(live, key=lambda name: -known[name][0])  # stable: earlier named wins ties
        leader = ranked[0]
        best = known[leader][0]
        kept = {leader}
        after = "so far" if first is None else f"after {plural(first, 'trial')}"
        for rank, name in enumerate(ranked[1:], start=2):
            priority, bound = known[name]
            if priority == -math.inf:
                self.stopped[name] = f"no trial gave a score {after}"
            elif bound < best and (first is None or first >= _LEAST_TO_BOUND):
                self.stopped[name] = (
                    f"{after} its best loss with its fewest rules would give {bound:.4g}, and "
                    f"{extractor_label(leader)} had {best:.4g}"
                )
            elif rank > keep:
                self.stopped[name] = (
                    f"{after} its {self.priority} was {priority:.4g}, place {rank} of {len(live)}; "
                    f"the first {keep} went on ({extractor_label(leader)} had {best:.4g})"
                )
            else:
                kept.add(name)
        return [name for name in live if name in kept]


def _rounds(n_names: int, n_trials: int | None, policy: str) -> list[tuple[int, int]]:
    """Number of extractors in each round, and the trials of each of them."""
    if policy == "even" or n_names == 1 or (n_trials or math.inf) < _LEAST_TO_JUDGE * n_names:
        return [(n_names, 0 if n_trials is None else n_trials // n_names)]
    sizes = [n_names]
    while sizes[-1] > min(_LAST_ROUND, n_names - 1):
        sizes.append(math.ceil(sizes[-1] / 2))
    if n_trials is None:
        return [(size, 0) for size in sizes]
    unit = n_trials / (len(sizes) - 1 + _FIRST_ROUND)
    first = max(int(unit * _FIRST_ROUND / n_names), _LEAST_TO_JUDGE)
    unit = (n_trials - first * n_names) / (len(sizes) - 1)
    later = [(n, int(unit / n)) for n in sizes[1:] if unit >= n]
    if not later:  # nobody would go on
        return [(n_names, n_trials // n_names)]
    return [(n_names, first), *later]


def in_turns(allowed: Mapping[str, int]) -> list[str]:
    """Name every extractor as often as it may start a trial, one after another."""
    turns = range(max(allowed.values(), default=0))
    return [name for turn in turns for name, number in allowed.items() if number > turn]


def in_turns_beside_others(
    allowed: Mapping[str, int],
    seconds: Mapping[str, float],
    running: Collection[str],
    last: Collection[str],
) -> list[str]:
    """Name the extractors as :func:`in_turns`, in an order for one of several workers.

    What nobody else works at (`running`) comes first, of this what the worker has been at
    (`last`), and then where most work is left by the `seconds` of a trial, infinite if not
    known. So most extractors have one worker, in whose memory lies what their trials share and
    whose sampler knows of all before; and the long ones are begun early.
    """

    def rank(name: str) -> tuple[bool, float]:
        return name not in last, -allowed[name] * seconds[name]

    order = sorted(allowed, key=rank)
    free = {name: allowed[name] for name in order if name not in running}
    others = {name: allowed[name] for name in order if name in running}
    return [*in_turns(free), *in_turns(others)]
