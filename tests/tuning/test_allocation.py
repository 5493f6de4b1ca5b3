"""Allocation of trials to extractors: rounds, bounds, and an exact budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.tuning.runner import Allocation, TrialUsage, order_for_worker


def spend(
    allocation: Allocation,
    values: Mapping[str, Sequence[float]],
    bound: float = math.inf,
    bound_without_score: float = math.inf,
) -> dict[str, int]:
    """Run a search in which the trials of each extractor give the values, over and over."""
    started = dict.fromkeys(values, 0)

    def judge(names: Sequence[str], first: int | None) -> dict[str, tuple[float, float]]:
        done = {
            n: [values[n][i % len(values[n])] for i in range(started[n])][:first] for n in names
        }
        best = {n: max(done[n], default=-math.inf) for n in names}
        return {n: (s, bound_without_score if s == -math.inf else bound) for n, s in best.items()}

    for _ in range(10_000):
        allowed = allocation.next_trials({n: TrialUsage(k) for n, k in started.items()}, judge)
        if not allowed:
            return started
        for name, number in allowed.items():
            assert number > 0
            started[name] += number
    raise AssertionError("it never ends")


def test_allocation_halves_extractors_in_rounds() -> None:
    values = {"a": [0.5], "b": [0.9], "c": [0.7], "d": [0.1]}
    allocation = Allocation(list(values), 40, None, "halving")
    # Rounds of 26 and 13 trials: 6 for each of four, 6 for each of two, and two remain.
    assert spend(allocation, values) == {"a": 6, "b": 14, "c": 14, "d": 6}
    assert allocation.stop_reasons == {
        "a": "after 6 trials its best was 0.5, rank 3 of 4; the first 2 continued (b had 0.9)",
        "d": "after 6 trials its best was 0.1, rank 4 of 4; the first 2 continued (b had 0.9)",
    }


def test_allocation_breaks_ties_by_order_of_extractors() -> None:
    values = {name: [0.5] for name in "zyxw"}
    started = spend(Allocation(list(values), 40, None, "halving"), values)
    assert started == {"z": 14, "y": 14, "x": 6, "w": 6}


def test_allocation_stops_extractor_that_cannot_win() -> None:
    values = {"a": [0.5], "b": [0.9], "c": [0.8]}
    allocation = Allocation(list(values), 30, None, "halving")
    started = spend(allocation, values, bound=0.85)
    assert started == {"a": 6, "b": 18, "c": 6}
    assert allocation.stop_reasons["c"] == (
        "after 6 trials it cannot beat b on the folds of the trials (0.9): even a candidate with "
        "its smallest loss, fewest rules and greatest completeness would score only 0.85"
    )


def test_stop_reasons_distinguish_nearly_equal_scores() -> None:
    values = {"a": [0.5], "b": [0.9], "c": [0.8]}
    allocation = Allocation(list(values), 30, None, "halving")
    spend(allocation, values, bound=0.89999)
    assert "b on the folds of the trials (0.9)" in allocation.stop_reasons["c"]
    assert allocation.stop_reasons["c"].endswith("would score only 0.89999")


def test_extractor_is_not_stopped_for_a_rounding_error() -> None:
    values = {"a": [0.5], "b": [0.9], "c": [0.8]}
    allocation = Allocation(list(values), 30, None, "halving")
    spend(allocation, values, bound=math.nextafter(0.9, 0))
    assert "c" not in allocation.stop_reasons


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (math.inf, "another candidate was better on the first folds"),
        (-math.inf, "each trial failed"),
        (math.nan, "no trial was finished"),
    ],
)
def test_allocation_stops_extractor_without_score(bound: float, reason: str) -> None:
    values = {"a": [0.5], "b": [-math.inf], "c": [0.4]}
    allocation = Allocation(list(values), 18, None, "halving")
    assert spend(allocation, values, bound_without_score=bound) == {"a": 7, "b": 4, "c": 7}
    assert allocation.stop_reasons == {"b": f"after 4 trials {reason}"}


def test_allocation_ignores_late_trials_of_earlier_rounds() -> None:
    values = {"a": [0.5], "b": [0.1, 0.1, 0.1, 0.1, 1.0], "c": [0.4]}
    started = spend(Allocation(list(values), 18, None, "halving"), values)
    assert started == {"a": 7, "b": 4, "c": 7}


@pytest.mark.parametrize(("n_trials", "policy"), [(11, "even"), (3, "even"), (4, "halving")])
def test_allocation_is_even_on_request_or_for_small_budgets(n_trials: int, policy: str) -> None:
    values = {"a": [0.1], "b": [0.9], "c": [0.5]}
    allocation = Allocation(list(values), n_trials, None, policy)
    assert spend(allocation, values) == {
        name: n_trials // 3 + (index < n_trials % 3) for index, name in enumerate(values)
    }
    assert allocation.stop_reasons == {}


@pytest.mark.parametrize(("n_names", "n_trials"), [(5, 4), (8, 9), (3, 3), (3, 4), (7, 9)])
def test_allocation_stops_no_extractor_of_small_budgets(n_names: int, n_trials: int) -> None:
    values = {f"e{index}": [0.1 * index] for index in range(n_names)}
    allocation = Allocation(list(values), n_trials, None, "halving")
    assert max(spend(allocation, values).values()) <= n_trials // n_names + 1
    assert allocation.stop_reasons == {}


@pytest.mark.parametrize(("n_names", "n_trials"), [(5, 10), (8, 16), (3, 6), (3, 7)])
def test_allocation_starts_with_single_trials_if_needed(n_names: int, n_trials: int) -> None:
    values = {f"e{index}": [0.1 * index] for index in range(n_names)}
    allocation = Allocation(list(values), n_trials, None, "halving")
    started = spend(allocation, values)
    last = {name: values[name] for name in list(values)[-min(2, n_names - 1) :]}
    assert set(allocation.stop_reasons) == set(values) - set(last)
    assert min(started.values()) == 1
    numbers = [started[name] for name in last]
    assert max(started.values()) == max(numbers) <= min(numbers) + 1


def test_allocation_skips_rounds_without_trials() -> None:
    values = {f"e{index}": [0.1 * index] for index in range(7)}
    allocation = Allocation(list(values), 13, None, "halving")
    # 7 for all; of the six that remain there is none for each of four, three for each of two.
    assert list(spend(allocation, values).values()) == [1, 1, 1, 1, 1, 4, 4]
    assert "the first 2 continued" in allocation.stop_reasons["e4"]


@given(
    st.lists(
        st.lists(st.floats(-1, 1) | st.just(-math.inf), min_size=1, max_size=4),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 200),
    st.sampled_from(["halving", "even"]),
    st.floats(-1, 1) | st.just(math.inf),
)
def test_allocation_spends_the_budget_exactly(
    values: list[list[float]], n_trials: int, policy: str, bound: float
) -> None:
    named = {f"e{index}": result for index, result in enumerate(values)}
    allocation = Allocation(list(named), n_trials, None, policy)
    started = spend(allocation, named, bound)
    assert sum(started.values()) == n_trials
    if n_trials >= len(named):
        assert min(started.values()) >= 1
    going = [name for name in named if name not in allocation.stop_reasons]
    assert going
    assert max(started.values()) == max(started[name] for name in going)


def test_allocation_reallocates_trials_of_excluded_extractors() -> None:
    def judge(names: Sequence[str], first: int | None) -> dict[str, tuple[float, float]]:
        return dict.fromkeys(names, (0.5, math.inf))

    allocation = Allocation(["a", "b"], 12, None, "halving")
    standings = {"a": TrialUsage(2), "b": TrialUsage(4)}
    assert allocation.next_trials(standings, judge) == {"a": 2}
    assert allocation.next_trials(standings, judge, excluded={"a"}) == {"b": 4}
    standings["b"] = TrialUsage(9)
    assert allocation.next_trials(standings, judge, excluded={"a"}) == {"b": 1}
    standings["b"] = TrialUsage(12)
    assert allocation.next_trials(standings, judge, excluded={"a", "b"}) == {}


def test_allocation_divides_time_into_rounds() -> None:
    best = {"a": 0.5, "b": 0.9, "c": 0.7, "d": 0.1}

    def judge(names: Sequence[str], first: int | None) -> dict[str, tuple[float, float]]:
        assert first is None
        return {name: (best[name], math.inf) for name in names}

    allocation = Allocation(list(best), None, 100.0, "halving")
    fresh = {name: TrialUsage(0) for name in best}
    assert allocation.next_trials(fresh, judge, 0.0) == dict.fromkeys("abcd", 1)
    # The next one has used less than the mean: c took most of the time.
    spent = {"a": 1.0, "b": 2.0, "c": 30.0, "d": 1.0}
    standings = {name: TrialUsage(1, seconds) for name, seconds in spent.items()}
    assert allocation.next_trials(standings, judge, 40.0) == {"a": 1, "b": 1, "d": 1}
    assert allocation.next_trials(standings, judge, 80.0) == {"b": 1}  # of b and c
    assert sorted(allocation.stop_reasons) == ["a", "d"]
    assert allocation.next_trials(standings, judge, 100.0) == {}


def test_allocation_combines_trials_and_timeout() -> None:
    allocation = Allocation(["a"], 5, 10.0, "halving")

    def judge(names: Sequence[str], first: int | None) -> dict[str, tuple[float, float]]:
        return dict.fromkeys(names, (0.0, math.inf))

    assert allocation.next_trials({"a": TrialUsage(2)}, judge, 9.0) == {"a": 3}
    assert allocation.next_trials({"a": TrialUsage(2)}, judge, 10.0) == {}
    assert allocation.next_trials({"a": TrialUsage(5)}, judge, 1.0) == {}


def test_order_for_worker_follows_priorities() -> None:
    allowed = {"short": 9, "long": 2, "middle": 5, "unknown": 1}
    seconds = {"short": 0.1, "long": 3.0, "middle": 1.0, "unknown": math.inf}

    def order(running: Collection[str] = (), last: Collection[str] = ()) -> list[str]:
        names = order_for_worker(allowed, seconds, running, last)
        assert Counter(names) == allowed
        own = [name for name in names if name not in running]
        assert names[: len(own)] == own  # all of that before the extractors of other workers
        return list(dict.fromkeys(names))

    assert order() == ["unknown", "long", "middle", "short"]
    assert order(running={"unknown", "long"}) == ["middle", "short", "unknown", "long"]
    assert order(last={"short"}) == ["short", "unknown", "long", "middle"]
    assert order(running={"short", "long"}, last={"short"}) == [
        "unknown",
        "middle",
        "short",
        "long",
    ]


@given(
    work=st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0.1, 1.0, 3.0])), max_size=7),
    turns=st.lists(st.booleans(), max_size=60),
)
def test_order_for_worker_separates_two_workers(
    work: list[tuple[int, float]], turns: list[bool]
) -> None:
    """A worker that is done takes the next trial while the other one is at work."""
    left = {str(i): number for i, (number, _) in enumerate(work)}
    seconds = {str(i): each for i, (_, each) in enumerate(work)}
    at: dict[bool, str] = {False: "", True: ""}
    workers: dict[str, set[bool]] = {}
    for who in turns:
        still = {name: number for name, number in left.items() if number}
        if not still:
            break
        at[who] = order_for_worker(still, seconds, {at[not who]}, {at[who]})[0]
        left[at[who]] -= 1
        workers.setdefault(at[who], set()).add(who)
    assert sum(len(some) == 2 for some in workers.values()) <= 1
