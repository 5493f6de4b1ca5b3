"""Loading of Python files that belong to no package, such as other test modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).parents[1]


def load_file(path: str | Path) -> ModuleType:
    """Load a file of the tests under a name of its own; a relative path begins in their folder."""
    path = TESTS / path
    name = "loaded_" + "_".join(path.with_suffix("").parts[-2:])
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
