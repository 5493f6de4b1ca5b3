"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_files import load_file

# If Python writes no bytecode, as in containers, every test process compiles all libraries and
# tests again. Store the bytecode outside the sources instead.
if sys.dont_write_bytecode:
    bytecode_folder = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(bytecode_folder)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hypothesis import settings

# Examples have no deadline, because the machine may be slow. Every run draws new examples, so a
# small part of Hypothesis' default number suffices.
settings.register_profile("skescore", deadline=None, max_examples=8)
settings.load_profile("skescore")

# Interrupted searches of the tests must not be resumed by later runs.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="skescore-tests-")

# The tables are small, and threads of several processes would slow each other down.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

#: Tests that need other programs and libraries and run in `tox -e engines`.
ENGINES = (
    "browser",
    "interop",
    "metrics/test_survival.py",
    "psyke",
    "tuning/storage",
    "tuning/test_dashboard.py",
    "tuning/test_dask.py",
    "tuning/test_plugins.py",
)


#: Text in the files of tests that run in `tox -e engines` and in `tox -e slow`.
_MARKS = {"engine": "mark.engine", "slow and not engine": "mark.slow"}


def _engine(path: Path) -> str | None:
    """Return the engine that the tests in a folder or file need, or None."""
    relative_path = os.path.relpath(path, Path(__file__).parent)
    return next((name for name in ENGINES if f"{relative_path}/".startswith(f"{name}/")), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files without selected tests, so that no process imports their dependencies."""
    mark_expression = config.option.markexpr
    if mark_expression == "not slow and not engine":
        return _engine(collection_path) is not None or None
    if mark_expression not in _MARKS or collection_path.suffix != ".py":
        return None
    if _engine(collection_path):
        return mark_expression != "engine" or None
    return _MARKS[mark_expression] not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)  # before xdist appends the names of groups to the node ids
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need an engine by their folder.

    With `--dist loadgroup`, a single process runs all tests that need Java, because a process can
    start Java only once, and a single process runs all tests that need a browser.
    """
    engines = {path: _engine(path) for path in {item.path for item in items}}
    for item in items:
        if (engine := engines[item.path]) is not None:
            item.add_marker("engine")
            java = engine == "psyke" or "rulekit" in item.path.name
            if (java or engine == "browser") and config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group("java" if java else engine))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude imported modules and collected tests from garbage collection.

    Scanning the objects of twelve thousand tests again and again takes a tenth of the total time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Undo the exclusion, because libraries report objects that are left at the end."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def psyke_rounding() -> Callable[[], Any]:
    """Return a context manager in which grids round as PSyKE does."""
    return load_file("psyke_rounding.py").psyke_rounding  # type: ignore[no-any-return]
