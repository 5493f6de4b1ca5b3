"""Settings for all tests."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Where Python is told to keep no bytecode, as in containers, each of the many processes here would
# compile all libraries anew, and pytest all tests and its plugin Hypothesis, imported after this.
# What they compile is kept apart from sources.
if sys.dont_write_bytecode:
    kept = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(kept)
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hypothesis import settings

# A slow machine is no fault of the code, so that no example has a deadline. Every run brings
# other examples, so that a third of the usual number suffices in each.
settings.register_profile("skescore", deadline=None, max_examples=35)
settings.load_profile("skescore")

# What the command line keeps of searches that break off is not to be found by other runs.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="skescore-tests-")

# The tables here are small: threads of several processes would wait for one another.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

#: Beside other programs and libraries, for `tox -e engines`.
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


#: What is written in the files of tests that run in `tox -e engines` and in `tox -e slow`.
_MARKS = {"engine": "mark.engine", "slow and not engine": "mark.slow"}


def _engine(path: Path) -> str | None:
    """The engine that a folder or file needs, by its place."""
    place = os.path.relpath(path, Path(__file__).parent)
    return next((name for name in ENGINES if f"{place}/".startswith(f"{name}/")), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether no test of a file is asked for: then no process has to import what it needs."""
    wanted = config.option.markexpr
    if wanted == "not slow and not engine":
        return _engine(collection_path) is not None or None
    if wanted not in _MARKS or collection_path.suffix != ".py":
        return None
    if _engine(collection_path):
        return wanted != "engine" or None
    return _MARKS[wanted] not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)  # before those are named after their groups that run together
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs an engine by the folder that it is in.

    With `--dist loadgroup`, one process runs all that need Java, which it can start only once, and
    which serves both where RuleKit comes first; and one all that need a browser.
    """
    engines = {path: _engine(path) for path in {item.path for item in items}}
    for item in items:
        if (engine := engines[item.path]) is not None:
            item.add_marker("engine")
            java = engine == "psyke" or "rulekit" in item.path.name
            if (java or engine == "browser") and config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group("java" if java else engine))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the collector of garbage pass over all that was imported and collected.

    Twelve thousand tests are many objects that stay; looking through them again and again takes
    a tenth of the whole time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give back what was set aside, as libraries tell of what is left at the end."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def psyke_rounding() -> Callable[[], Any]:
    """A context in which grids round as PSyKE does."""
    path = Path(__file__).parent / "psyke_rounding.py"
    spec = importlib.util.spec_from_file_location("psyke_rounding", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.psyke_rounding  # type: ignore[no-any-return]
