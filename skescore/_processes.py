"""Child processes that end with their parent and do not import from the current folder."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from importlib import import_module
from multiprocessing import current_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil
    from joblib import Parallel
    from joblib.externals.loky import ProcessPoolExecutor

__all__ = [
    "SEARCH_MODULES",
    "Helper",
    "borrowed_helpers",
    "end_with_input",
    "end_with_parent",
    "own_environment",
    "parallel",
    "safe_children",
    "single_process",
    "start_helpers",
    "terminated_like_interrupted",
    "worker_command",
]

#: Modules that the helpers of a search import when they start.
SEARCH_MODULES = ("skescore.tuning",)
#: Environment variable that keeps Python from importing modules of the current folder.
_SAFE_PATH = "PYTHONSAFEPATH"
#: One entry per block in which this module, not the user, has set the variable.
_SET: list[bool] = []
#: Seconds after which an idle process ends.
_IDLE_SECONDS = 300
#: Environment variables for the number of threads of numerical libraries.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Seconds in which a worker returns its trials after its parent has ended.
_SHUTDOWN_SECONDS = 10.0
#: The parent process, once this process watches it.
_WATCHED: list[psutil.Process] = []
_PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from skescore._processes import end_with_input
end_with_input()
from skescore.cli import main
sys.exit(main())
"""


def worker_command(words: Sequence[str]) -> list[str]:
    """Return the command line of a worker process, which ends when its input is closed.

    The folder of this package is the last entry of the module search path, which does not contain
    the current folder. So a file ``optuna.py`` next to the data is never imported.
    """
    folder = str(Path(__file__).parents[1])
    return [sys.executable, "-P", "-c", _PROGRAM, folder, *words]


@contextlib.contextmanager
def safe_children() -> Iterator[None]:
    """Keep processes started in the block from importing modules of the current folder."""
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = "1"
    _SET.append(True)
    try:
        yield
    finally:
        _SET.pop()
        os.environ.pop(_SAFE_PATH, None)


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Treat SIGTERM in the block like Ctrl-C; a second signal ends the process at once.

    Job schedulers, containers and machines that shut down send this signal first.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def own_environment() -> dict[str, str]:
    """Return the original environment of the user, for the user's programs."""
    saved = dict(os.environ)
    if _SET:
        saved.pop(_SAFE_PATH, None)
    return saved


def end_with_input() -> None:
    """Interrupt this process when its input is closed, because its parent has ended."""
    threading.Thread(target=_await_end_of_input, daemon=True).start()


def _await_end_of_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    if os.name == "posix":  # a signal also interrupts a sleeping main thread
        os.kill(os.getpid(), signal.SIGINT)
    else:
        _thread.interrupt_main()
    time.sleep(_SHUTDOWN_SECONDS)
    os._exit(1)


def end_with_parent(parent: int) -> None:
    """End this process when its parent process `parent` has ended.

    The children of a killed run must not continue in the background.
    """
    # Python in a browser has no processes and no psutil.
    import psutil

    if not _WATCHED and os.getppid() == parent:
        _WATCHED.append(psutil.Process(parent))
        threading.Thread(target=_watch, daemon=True).start()


def parallel(n_jobs: int | None, **options: Any) -> Parallel:
    """Return joblib's Parallel with processes that end with this one, even if idle."""
    from joblib import Parallel  # imported late, because commands such as --help do not need it

    return Parallel(n_jobs, initializer=_begin, initargs=(os.getpid(),), **options)


def single_process(n_threads: int) -> ProcessPoolExecutor:
    """Return an executor with one process, which ends with this one and restarts when needed.

    Its numerical libraries use `n_threads` threads, unless the environment overrides this.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(
        1,
        timeout=_IDLE_SECONDS,
        initializer=_begin_with_memory,
        initargs=(os.getpid(),),
        env={name: str(n_threads) for name in _THREADS if name not in os.environ},
    )


#: Helpers that no search uses; each ends after some minutes without work.
_IDLE: list[Helper] = []
#: Searches in several threads borrow helpers one after another.
_IDLE_LOCK = threading.RLock()


class Helper:
    """Process that executes one call at a time for this one.

    Parameters
    ----------
    n_threads : int
        Number of threads of numerical libraries in the process.
    modules : sequence of str
        Modules that the process imports when it starts.

    Attributes
    ----------
    owner : int
        Number of the process that started it; a copy of that process cannot use it.
    ready : Future
        Finished as soon as the process can start a call without delay.
    is_broken : bool
        Whether the process has ended unexpectedly, for example for lack of memory.
    """

    def __init__(self, n_threads: int, modules: Sequence[str]) -> None:
        self.owner = os.getpid()
        self._n_threads, self._modules = n_threads, modules
        self._start()

    def _start(self) -> None:
        self._process = single_process(self._n_threads)
        self.is_broken = False
        self.ready: Future[Any] = self.submit(_import_modules, self._modules)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in the process after all earlier calls."""
        future: Future[Any] = self._process.submit(function, *arguments)
        return future

    def prepare(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function before the process is ready; start a broken process again."""
        try:
            self.ready = self.submit(function, *arguments)
        except BrokenExecutor:
            self._start()
            self.ready = self.submit(function, *arguments)

    def kill(self) -> None:
        """End the process at once."""
        self._process.shutdown(wait=True, kill_workers=True)


def start_helpers(n_jobs: int, modules: Sequence[str]) -> None:
    """Start processes in advance, so that a search can use them at once.

    Parameters
    ----------
    n_jobs : int
        Number of processes that share the cores, including this one.
    modules : sequence of str
        Modules that new helpers import.
    """
    from joblib import cpu_count  # imported late, because commands such as --help do not need it

    with _IDLE_LOCK:
        _IDLE[:] = [helper for helper in _IDLE if helper.owner == os.getpid()]
        while len(_IDLE) < n_jobs - 1:
            _IDLE.append(Helper(max(1, cpu_count() // n_jobs), modules))


@contextlib.contextmanager
def borrowed_helpers(n_jobs: int, modules: Sequence[str]) -> Iterator[list[Helper]]:
    """Lend helpers that no other search uses; an error ends them at once."""
    with _IDLE_LOCK:
        start_helpers(n_jobs, modules)
        borrowed = [_IDLE.pop() for _ in range(n_jobs - 1)]
    try:
        yield borrowed
    except BaseException:
        for helper in borrowed:
            helper.kill()
        raise
    with _IDLE_LOCK:
        _IDLE.extend(borrowed)


def _import_modules(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)


def _begin(parent: int) -> None:
    """End this process when its parent ends, even if the parent ended before this process began."""
    if os.getppid() != parent and current_process().name.startswith("Loky"):
        os._exit(1)
    atexit.register(gc.freeze)  # a last garbage collection takes up to a second
    end_with_parent(parent)


def _begin_with_memory(parent: int) -> None:
    """Start a process that may keep large tables and intermediate results in memory.

    By default, loky replaces a process that has grown by 300 MB, because it may have a memory leak.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    _begin(parent)


def _watch() -> None:
    import psutil

    while _WATCHED[0].is_running() and _WATCHED[0].status() != psutil.STATUS_ZOMBIE:
        time.sleep(1.0)
    os._exit(1)
