"""Generated constraints on extractors of generated tables: satisfied, or a minimal conflict."""

from __future__ import annotations

import os

import pytest
from constraint_cases import EXTRACTORS, check_case, make_case

#: Cases of the slow test. SKESCORE_HOSTILE=10000 examines as many.
N_SLOW = int(os.environ.get("SKESCORE_HOSTILE", "300"))
#: Largest share of cases without rules and without a proof that there are none.
UNDECIDED = 0.01


def test_constrain_satisfies_generated_constraints() -> None:
    outcomes = [check_case(seed) for seed in range(15)]
    assert {make_case(seed).name for seed in range(40)} == EXTRACTORS.keys()
    assert {"satisfied", "conflict"} == set(outcomes)


@pytest.mark.slow
def test_constrain_satisfies_many_generated_constraints() -> None:
    outcomes = [check_case(seed) for seed in range(24, N_SLOW)]
    assert outcomes.count("undecided") <= UNDECIDED * len(outcomes)
    assert outcomes.count("conflict") > 0.1 * len(outcomes)
