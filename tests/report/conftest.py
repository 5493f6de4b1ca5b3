"""Runs to be reported."""

from __future__ import annotations

from types import ModuleType

import pytest
from loaded_files import load_file


@pytest.fixture(scope="session")
def runs() -> ModuleType:
    """Return the module that writes run folders, see `runs.py`."""
    return load_file("report/runs.py")
