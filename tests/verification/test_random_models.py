"""Verification of random small models compared with the enumeration of all cells."""

from __future__ import annotations

import pytest
from small_ensembles import make_problem
from verification_oracle import check_problem


@pytest.mark.parametrize("seed", range(12))
def test_verify_matches_enumeration(seed: int) -> None:
    check_problem(make_problem(seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12, 300, 24))
def test_verify_matches_enumeration_of_many(first: int) -> None:
    for seed in range(first, first + 24):
        check_problem(make_problem(seed))
