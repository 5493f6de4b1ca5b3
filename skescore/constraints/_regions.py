"""Search for regions of the domain in which a rule decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from skescore.constraints._cells import Box, CellSpace, UndecidableError

#: Clause: pairs of a variable and a set of cells; at least one pair must hold.
Clause: TypeAlias = list[tuple[int, int]]

#: Maximum number of regions that one search examines.
_MAX_REGIONS = 200_000


def outside(box: Box, space: CellSpace, variables: Sequence[int] | None = None) -> Clause:
    """Return the clause of all rows outside of a box.

    Parameters
    ----------
    box : Box
        The box.
    space : CellSpace
        Its space.
    variables : sequence of int, optional
        The variable of each feature; by default its index.

    Returns
    -------
    Clause
        One alternative per feature that the box limits.
    """
    names = range(len(box)) if variables is None else variables
    return [
        (name, full & ~bits)
        for name, bits, full in zip(names, box, space.full, strict=True)
        if bits != full
    ]


class RegionSearch:
    """Search for disjoint regions in which all clauses hold.

    Parameters
    ----------
    ordered_pairs : sequence of (int, int), default=()
        Pairs of variables; a region must contain a cell of the first that lies before (or, unless
        the order is strict, at) a cell of the second.
    is_strict : bool, default=True
        Whether the order is strict.
    """

    def __init__(
        self, ordered_pairs: Sequence[tuple[int, int]] = (), *, is_strict: bool = True
    ) -> None:
        self.ordered_pairs = ordered_pairs
        self.is_strict = is_strict
        self.n_regions = 0

    def regions(self, region: Sequence[int], clauses: list[Clause]) -> Iterator[list[int]]:
        """Yield disjoint regions that together contain the rows that satisfy all clauses.

        Parameters
        ----------
        region : sequence of int
            The cells of each variable to search.
        clauses : list of Clause
            Clauses that must hold.

        Raises
        ------
        UndecidableError
            If there are too many regions.
        """
        self.n_regions += 1
        if self.n_regions > _MAX_REGIONS:
            raise UndecidableError(
                f"The rules overlap in more than {_MAX_REGIONS} regions; use fewer rules or "
                "conditions."
            )
        propagated = self._propagate(list(region), clauses)
        if propagated is None:
            return
        region, remaining = propagated
        if not remaining:
            yield list(region)
            return
        shortest = min(remaining, key=len)
        others = [clause for clause in remaining if clause is not shortest]
        remaining_region = list(region)
        for variable, allowed in shortest:
            branch = list(remaining_region)
            branch[variable] &= allowed
            yield from self.regions(branch, others)
            remaining_region[variable] &= ~allowed
            if not remaining_region[variable]:
                return

    def first(self, region: Sequence[int], clauses: list[Clause]) -> list[int] | None:
        """Return one region, or None if no row satisfies all clauses."""
        return next(self.regions(region, clauses), None)

    def _propagate(
        self, region: list[int], clauses: list[Clause]
    ) -> tuple[list[int], list[Clause]] | None:
        """Apply clauses with one alternative; return None if the region becomes empty."""
        if not all(region) or not self._is_ordered(region):
            return None
        is_narrowed = True
        while is_narrowed:
            is_narrowed = False
            remaining: list[Clause] = []
            for clause in clauses:
                alternatives = _alternatives(region, clause)
                if alternatives is None:
                    continue
                if not alternatives:
                    return None
                if len(alternatives) == 1:
                    variable, allowed = alternatives[0]
                    region[variable] &= allowed
                    is_narrowed = True
                else:
                    remaining.append(alternatives)
            clauses = remaining
            if not self._is_ordered(region):
                return None
        return region, clauses

    def _is_ordered(self, region: Sequence[int]) -> bool:
        for first, second in self.ordered_pairs:
            low, high = region[first], region[second]
            if (low & -low).bit_length() + self.is_strict > high.bit_length():
                return False
        return True


def _alternatives(region: Sequence[int], clause: Clause) -> Clause | None:
    """Return the alternatives that are possible in a region; None if the clause always holds."""
    possible = []
    for variable, allowed in clause:
        cells = region[variable]
        inside = cells & allowed
        if inside == cells:
            return None
        if inside:
            possible.append((variable, allowed))
    return possible
