"""Runs to be reported."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def runs() -> ModuleType:
    """The maker of run folders, see `runs.py`."""
    spec = importlib.util.spec_from_file_location("report_runs", Path(__file__).parent / "runs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
