"""Generated hostile cases: a few hundred by default, or as many as requested.

``SKESCORE_HOSTILE=10000 pytest tests/hostile`` tries ten thousand cases per area; a case is made of
the area's name and its number alone, so that one that fails is run again by its number.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from loaded_files import load_file

#: Number of cases per area instead of the default, and number of the first one.
MANY = int(os.environ.get("SKESCORE_HOSTILE", "0"))
FIRST = int(os.environ.get("SKESCORE_HOSTILE_FROM", "0"))


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Run a check on many generated cases; a failure tells how to run that case alone."""

    def run(check: Callable[[np.random.Generator], object], few: int, share: float = 1.0) -> None:
        area = zlib.crc32(request.node.nodeid.rpartition("/")[2].encode())
        count = max(1, round(MANY * share)) if MANY else few
        for case in range(FIRST, FIRST + count):
            try:
                check(np.random.default_rng([area, case]))
            except BaseException as error:
                error.add_note(
                    f"Case {case} of {count}: SKESCORE_HOSTILE=1 SKESCORE_HOSTILE_FROM={case} "
                    f"pytest '{request.node.nodeid}'"
                )
                raise

    return run


@pytest.fixture(scope="session")
def tables() -> ModuleType:
    """Return the module of rules and tables of every kind with its loop over rows."""
    return load_file("hostile/test_tables.py")
