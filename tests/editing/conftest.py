"""Fixtures of the tests of the editor."""

from __future__ import annotations

from types import ModuleType

import pytest
from loaded_files import load_file


@pytest.fixture(scope="session")
def cases() -> ModuleType:
    """Return the module of rule sets and random edits; test modules are not importable."""
    return load_file("editing/edit_cases.py")
