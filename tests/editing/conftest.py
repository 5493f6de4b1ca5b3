"""Fixtures of the tests of the editor."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def cases() -> ModuleType:
    """Rule sets of every kind, and random edits; test modules are not importable."""
    spec = importlib.util.spec_from_file_location(
        "edit_cases", Path(__file__).with_name("edit_cases.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
