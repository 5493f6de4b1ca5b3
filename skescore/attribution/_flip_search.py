"""Search for small flip sets of models that need complete rows, by shrinking random sets.

A flip set is a set of features; the decision changes if they take the values of the contrast. Sets
are represented by the bits of an integer. A search is a generator: it yields sets to test, and
receives whether they change the decision. The queries of all rows therefore share calls of the
model. The steps of a search are generators too, and yield the sets whose results they need.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._contrasts import ContrastPairs

__all__ = ["FoundFlips", "search_flip_sets"]

#: Largest number of random sets that are tested before all pairs, if none changes the decision.
_COLD_TRIES = 20
#: Largest numbers of attempts for a feature in no flip set, of attempts for a feature in large flip
#: sets only, and of consecutive attempts without a new flip set.
_TRIES, _LARGE_TRIES, _MAX_FAILURES = 14, 2, 200
#: Largest size of flip sets whose subsets are all tested.
_VERIFIED = 4
#: Sets larger than the first number lose several features at a time. For sets larger than the
#: second, all chunks are queried at once, because one call per chunk would take too long.
_COARSE, _WIDE = 8, 64
#: Number of features per concurrent search, and largest number of concurrent searches. Queries of
#: the same step cannot use each other's results, so short rows have only one search.
_FEATURES_PER_SEARCH, _MAX_SEARCHES = 8, 32
#: Largest share of the queries for pairs.
_PAIR_SHARE = 0.5

#: Generators: a search, which receives results; its steps; and steps that return a set.
Search = Generator[list[int], list[bool], None]
Steps = Generator[list[int], None, None]
SetSteps = Generator[list[int], None, int]


class FoundFlips(NamedTuple):
    """Flip sets found for one row."""

    #: Flip sets as sorted features. No proper subset is known to be a flip set.
    sets: list[tuple[int, ...]]
    #: Whether all proper subsets of each flip set were tested, so that it is minimal.
    exact: list[bool]
    #: All sets with at most this number of features were tested, or contain a flip set.
    complete: int
    queries: int
    #: Whether the budget ended the search.
    exhausted: bool


def _bits(members: int) -> list[int]:
    positions = []
    while members:
        lowest = members & -members
        positions.append(lowest)
        members ^= lowest
    return positions


class FlipSearch:
    """Search for flip sets of one row among the features that differ from its contrast."""

    def __init__(self, n_features: int, limit: int, seed: int) -> None:
        self.n_features, self.limit = n_features, limit
        self.random = random.Random(seed)
        self.known: dict[int, bool] = {0: False}
        self.queries = 0
        self.sets: list[int] = []
        self.by_member: dict[int, list[int]] = {1 << i: [] for i in range(n_features)}
        self.size: dict[int, int] = {}
        self.complete = 0
        self.exhausted = False
        #: Features that do not change the decision alone.
        self.open: list[int] = []

    def _test_sets(self, sets: list[int]) -> Generator[list[int], None, list[bool]]:
        """Return whether sets are flip sets; yield those that are not known yet."""
        new = [members for members in dict.fromkeys(sets) if members not in self.known]
        if new:
            yield new
        return [self.known[members] for members in sets]

    def _flips(self, members: int) -> Generator[list[int], None, bool]:
        if members in self.known:
            return self.known[members]
        return (yield from self._test_sets([members]))[0]

    def run(self) -> Search:
        """Yield the queries of the plan within the budget and record the results."""
        plan = self._plan()
        for requests in plan:
            if self.queries + len(requests) > self.limit:
                self.exhausted = True
                plan.close()
                return
            self.queries += len(requests)
            self.known.update(zip(requests, (yield requests), strict=True))

    def _plan(self) -> Steps:
        """Yield the queries of the whole search, without a budget."""
        singles = [1 << i for i in range(self.n_features)]
        for member, alone in zip(singles, (yield from self._test_sets(singles)), strict=True):
            if alone:
                self._note(member)
            else:
                self.open.append(member)
        self.complete = 1
        if len(self.open) < 2:
            self.complete = self.n_features
            return
        yield from self._test_and_reduce(sum(self.open), 0)
        yield from self._find_any(_COLD_TRIES)
        yield from self._pairs()
        if self.complete == len(self.open):
            return
        if not self.size:
            yield from self._find_any(self.limit)
        yield from self._find_rest()

    def _test_and_reduce(self, members: int, target: int) -> Generator[list[int], None, bool]:
        """Test a set; if it flips the decision, reduce it to a minimal flip set."""
        if not (yield from self._flips(members)):
            return False
        yield from self._record((yield from self._shrink(members, target)))
        return True

    def _find_any(self, tries: int) -> Steps:
        """Test up to `tries` random sets until a flip set with several features is known.

        The sets contain half, a quarter or three quarters of the features that do not change the
        decision alone. Flip sets are reduced to minimal ones and recorded.
        """
        for number in range(tries):
            if any(size > 1 for size in self.size.values()):
                return
            share = (0.5, 0.25, 0.75)[number % 3]
            members = sum(member for member in self.open if self.random.random() < share)
            if members:
                yield from self._test_and_reduce(members, 0)
            if len(self.known) >= 1 << len(self.open) - 1:  # most sets have been tested
                return

    def _pairs(self) -> Steps:
        n_pairs = math.comb(len(self.open), 2)
        if n_pairs > _PAIR_SHARE * self.limit or n_pairs > self.limit - self.queries:
            return
        pairs = [a | b for a, b in combinations(self.open, 2)]
        for pair, flips in zip(pairs, (yield from self._test_sets(pairs)), strict=True):
            if flips:
                self._note(pair)
        self.complete = 2
        # Sets of more features contain a pair of these; none is minimal if all pairs flip.
        if len(self.open) == 2 or all(self.known[pair] for pair in pairs):
            self.complete = len(self.open)

    def _find_rest(self) -> Steps:
        """Search for flip sets of features that are in none, or only in large ones.

        Several searches run concurrently, and share the calls of the model.
        """
        tries = dict.fromkeys(self.open, 0)
        n_searches = max(1, min(_MAX_SEARCHES, len(self.open) // _FEATURES_PER_SEARCH))
        searches = [self._search_targets(tries) for _ in range(n_searches)]
        requests = [
            (search, sets) for search in searches if (sets := next(search, None)) is not None
        ]
        while requests:
            yield list(dict.fromkeys(members for _, sets in requests for members in sets))
            # The results of one search are known to the next.
            requests = [
                (search, sets) for search, _ in requests if (sets := next(search, None)) is not None
            ]

    def _search_targets(self, tries: dict[int, int]) -> Steps:
        """Search for flip sets with a target feature, preferring features with few attempts."""
        n_failures = 0
        while n_failures < _MAX_FAILURES:
            requests = [
                member
                for member in self.open
                if tries[member] < (_LARGE_TRIES if member in self.size else _TRIES)
                and not 1 <= self.size.get(member, 0) <= self.complete + 1
            ]
            if not requests:
                return
            fewest = min(tries[member] for member in requests)
            target = self.random.choice([m for m in requests if tries[m] == fewest])
            tries[target] += 1
            members = self._independent(target)
            before = len(self.sets)
            if not (yield from self._test_and_reduce(members, target)) and members != target:
                yield from self._test_and_reduce(members ^ target, 0)
            n_failures = 0 if len(self.sets) > before else n_failures + 1

    def _independent(self, target: int) -> int:
        """Draw a random set that contains the target but no known flip set."""
        size = self.size.get(target)
        max_size = len(self.open)
        if size is not None:
            max_size = self.random.randint(2, max(2, size - 1))
        elif self.random.random() < 0.5:
            max_size = self.random.randint(2, max_size)
        members, count = target, 1
        for member in self.random.sample(self.open, len(self.open)):
            if count >= max_size:
                break
            union = members | member
            if union != members and not any(s & union == s for s in self.by_member[member]):
                members, count = union, count + 1
        return members

    def _shrink(self, members: int, last: int) -> SetSteps:
        """Reduce a flip set to a minimal one; try to remove the feature `last` after the others."""
        while members.bit_count() > _WIDE:
            before = members
            members = yield from self._shrink_widely(members, last)
            if members == before:
                return members
        while True:
            before = members
            if members.bit_count() > _COARSE:
                members = yield from self._shrink_coarsely(members, last)
            order = _bits(members & ~last)
            self.random.shuffle(order)
            for member in [*order, *_bits(members & last)]:
                if members != member and (yield from self._flips(members ^ member)):
                    members ^= member
            if members == before:
                return members

    def _shrink_coarsely(self, members: int, last: int) -> SetSteps:
        length = members.bit_count() // 2
        while length > 1:
            order = _bits(members & ~last)
            self.random.shuffle(order)
            for start in range(0, len(order), length):
                chunk = sum(order[start : start + length])
                if chunk != members and (yield from self._flips(members ^ chunk)):
                    members ^= chunk
            length //= 2
        return members

    def _shrink_widely(self, members: int, last: int) -> SetSteps:
        """Remove chunks of decreasing size from a flip set."""
        length = members.bit_count() // 2
        while length:
            order = _bits(members & ~last)
            self.random.shuffle(order)
            if length == 1:
                order += _bits(members & last)
            starts = range(0, len(order), length)
            chunks = [sum(order[start : start + length]) for start in starts]
            smaller_sets = [members ^ chunk for chunk in chunks]
            yield from self._test_sets([s for s in smaller_sets if s])
            removable = [
                chunk for chunk in chunks if members != chunk and self.known[members ^ chunk]
            ]
            prefixes, count = [], len(removable)
            while count:
                prefixes.append(members ^ sum(removable[:count]))
                count //= 2
            prefixes = [remaining for remaining in prefixes if remaining]
            for remaining, is_flip in zip(
                prefixes, (yield from self._test_sets(prefixes)), strict=True
            ):
                if is_flip:
                    members = remaining
                    break
            length //= 2
        return members

    def _record(self, members: int) -> Steps:
        """Record a flip set, or the smaller flip sets that tests of its subsets reveal."""
        size = members.bit_count()
        if members in self.sets:
            return
        if size <= _VERIFIED:
            singles = _bits(members)
            for subset_size in range(2, size - 1):
                subsets = [sum(part) for part in combinations(singles, subset_size)]
                hits = [
                    c
                    for c, hit in zip(subsets, (yield from self._test_sets(subsets)), strict=True)
                    if hit
                ]
                if hits:
                    for hit in hits:
                        self._note(hit)
                    return
        self._note(members)

    def _note(self, members: int) -> None:
        if members in self.sets:
            return
        self.sets.append(members)
        size = members.bit_count()
        for member in _bits(members):
            self.by_member[member].append(members)
            self.size[member] = min(self.size.get(member, size), size)

    def result(self, columns: NDArray[np.int64]) -> FoundFlips:
        """Return the flip sets of the row; feature i of the search is its column `columns[i]`."""
        flipping = [members for members, flips in self.known.items() if flips]
        flip_sets, exact = [], []
        for members in self.sets:
            if any(part != members and part & members == part for part in flipping):
                continue
            features = _bits(members)
            size = len(features)
            is_verified = size <= _VERIFIED and all(
                sum(part) in self.known
                for subset_size in range(1, size)
                for part in combinations(features, subset_size)
            )
            flip_sets.append(tuple(int(columns[member.bit_length() - 1]) for member in features))
            exact.append(size <= self.complete + 1 or is_verified)
        return FoundFlips(flip_sets, exact, self.complete, self.queries, self.exhausted)


def search_flip_sets(
    pairs: ContrastPairs, keys: NDArray[np.uint64], max_queries: int
) -> list[FoundFlips]:
    """Search for small flip sets of all rows, with one model call per step of all searches.

    `keys` are the seeds of the rows; `max_queries` is the limit for each row.
    """
    columns = [np.flatnonzero(row) for row in pairs.differs]
    searches = [
        FlipSearch(len(row_columns), max_queries, int(key))
        for row_columns, key in zip(columns, keys, strict=True)
    ]
    running = {row: search.run() for row, search in enumerate(searches)}
    requests = {row: sets for row, run in running.items() if (sets := next(run, None)) is not None}
    while requests:
        counts = [len(sets) for sets in requests.values()]
        flips = np.zeros((sum(counts), pairs.n_features), dtype=np.bool_)
        starts = np.cumsum([0, *counts])
        for start, (row, sets) in zip(starts, requests.items(), strict=False):
            flips[start : start + len(sets), columns[row]] = _unpacked(sets, len(columns[row]))
        changed = pairs.changes(np.repeat(list(requests), counts), flips).tolist()
        queried, requests = requests, {}
        for start, (row, sets) in zip(starts, queried.items(), strict=False):
            with suppress(StopIteration):
                requests[row] = running[row].send(changed[start : start + len(sets)])
    return [
        search.result(row_columns) for search, row_columns in zip(searches, columns, strict=True)
    ]


def _unpacked(sets: list[int], width: int) -> NDArray[np.bool_]:
    n_bytes = -(-width // 8)
    octets = b"".join(members.to_bytes(n_bytes, "little") for members in sets)
    table = np.frombuffer(octets, dtype=np.uint8).reshape(len(sets), n_bytes)
    return np.unpackbits(table, axis=1, bitorder="little", count=width).view(np.bool_)
