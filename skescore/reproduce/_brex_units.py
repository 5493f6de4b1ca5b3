"""The formulae of the benchmark on Boolean attributions, and what each is measured on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skescore.attribution import Formula, chain_formula, paper_formula, random_formula
from skescore.attribution._responsibility import responsibility

#: Inputs of a row in the paper; formulae use some of them.
N_INPUTS = 12
ARITIES = tuple(range(3, 11))
FAMILIES = ("non-monotone", "monotone")
SMALL = ("and", "or", "xor", "xor-and-xor")
#: The paper's table of each kind of formula.
TABLES = {
    ("chain", "non-monotone"): 1,
    ("chain", "monotone"): 2,
    ("random", "non-monotone"): 3,
    ("random", "monotone"): 4,
    ("small", "small"): 5,
}


@dataclass(frozen=True)
class Unit:
    """A formula of the benchmark, with the rows that attributions are measured on.

    Parameters
    ----------
    kind : {"random", "chain", "small"}
        Drawn at random, a chain of two operators, or one of the four small ones.
    family : str
        ``"monotone"``, ``"non-monotone"``, or ``"small"`` for the small ones.
    column : str
        The column of the paper's table: the number of variables, or the name of a small formula.
    number : int
        Which of the random formulae of this cell; 0 for the others.
    seed, assignments : int
        What the formulae are drawn by, and the number of rows.
    """

    kind: str
    family: str
    column: str
    number: int
    seed: int
    assignments: int

    @property
    def table(self) -> int:
        """Number of the paper's table."""
        return TABLES[self.kind, self.family]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells units apart."""
        return self.kind, self.family, self.column, self.number

    def entropy(self, purpose: str) -> list[int]:
        """Seed of one purpose, whatever else is run."""
        return [self.seed, zlib.crc32(repr((*self.key, purpose)).encode())]

    @cached_property
    def formula(self) -> Formula:
        """The formula."""
        if self.kind == "small":
            return paper_formula(self.column, n_inputs=N_INPUTS)
        if self.kind == "chain":
            return chain_formula(int(self.column), family=self.family, n_inputs=N_INPUTS)
        return random_formula(
            int(self.column), n_inputs=N_INPUTS, family=self.family,
            random_state=np.random.SeedSequence(self.entropy("formula")),
        )  # fmt: skip

    @cached_property
    def inputs(self) -> NDArray[np.bool_]:
        """Different assignments of all inputs, drawn at random; all of them in order if so many."""
        everything = 1 << N_INPUTS
        if self.assignments >= everything:
            drawn = np.arange(everything)
        else:
            generator = np.random.default_rng(self.entropy("assignments"))
            drawn = generator.permutation(everything)[: self.assignments]
        return (drawn[:, None] >> np.arange(N_INPUTS) & 1).astype(bool)

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """Exact responsibilities."""
        return np.asarray(responsibility(self.formula, self.inputs), dtype=float)


def units(
    arities: Sequence[int], formulae: int, assignments: int, seed: int, tables: Sequence[int]
) -> Iterator[Unit]:
    """All units of a run; every one is the same whatever the others are."""
    for (kind, family), table in TABLES.items():
        if table not in tables:
            continue
        columns = SMALL if kind == "small" else map(str, arities)
        for column in columns:
            for number in range(formulae if kind == "random" else 1):
                yield Unit(kind, family, column, number, seed, assignments)
