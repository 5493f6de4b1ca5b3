"""Storage of the trials of a search, and the processes that share it."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from skescore._io import cache_folder, package_versions, try_lock
from skescore._names import BLACK_BOX_NAMES
from skescore._processes import worker_command
from skescore._quantities import limited_quantities
from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

    from skescore.datasets import Dataset


@dataclass(frozen=True)
class TrialStorage:
    """The storage and the study of the trials of a search."""

    storage: str | None
    study: str
    remedy: str = "--fresh"


#: Seconds that workers have to finish their last trials once the budget is spent.
_FINISH_SECONDS = 60
#: Seconds that workers have after the search was interrupted.
_ABORT_SECONDS = 10


class WorkerProcesses:
    """Worker processes of this command, which run until the context ends.

    An interrupt from the terminal reaches this process only, which forwards it, so that workers
    return their trials. Their output is shown only if they fail. When this process ends, their
    input is closed, and they stop.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        trial_storage: TrialStorage,
        notes: output.Notes | None = None,
    ) -> None:
        self._number = max(options.workers - 1, 0)
        self._notes = notes
        words = [*options.command_line[1:], "--workers", "0", "--quiet"]
        if options.storage is None:
            words += ["--storage", str(trial_storage.storage), "--study", trial_storage.study]
        self._command = worker_command(words)
        self._processes: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        if self._number and trial_storage.storage is None:
            raise ValueError(
                "--workers needs a storage that all workers can reach, but no file can be written "
                "in the cache. Name a storage: --storage trials.journal."
            )

    def __enter__(self) -> WorkerProcesses:
        group_options: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        try:
            for _ in range(self._number):
                errors = tempfile.TemporaryFile()
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    **group_options,
                )
                self._processes.append((process, errors))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is not None:
                for process, _ in self._processes:
                    if os.name == "posix":
                        process.send_signal(signal.SIGINT)
                    else:
                        process.terminate()
            for process, errors in self._processes:
                process.wait(_FINISH_SECONDS if kind is None else _ABORT_SECONDS)
                if process.returncode and kind is None:
                    self._note_failure(process.returncode, errors)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._kill()

    def _kill(self) -> None:
        for process, errors in self._processes:
            process.kill()  # has no effect on an ended process
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
            errors.close()

    def _note_failure(self, code: int, errors: IO[bytes]) -> None:
        """Report why a worker failed; another process takes over its trial."""
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1].removeprefix("skescore: error: ") if lines else f"exit code {code}"
        if self._notes is not None:
            self._notes.add(f"a worker failed: {reason}")


#: File of the trials of a run, in its folder.
JOURNAL = "trials.journal"
#: Lock file, which a search holds in its folder.
LOCK = "trials.lock"
#: Marker file, which exists until the search is finished.
UNFINISHED = "trials.unfinished"
_UNFINISHED_TEXT = "This search is not finished. Repeat its command to resume it."
#: Largest number of simultaneous runs of the same command with trials in the cache.
_MAX_PARALLEL_RUNS = 20
#: Days after which an interrupted search is deleted from the cache.
_CACHE_DAYS = 30


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the storage of trials and of the workers."""
    group = parser.add_argument_group(
        "trials",
        "Every trial is stored when it ends: repeating the command resumes an\n"
        "  interrupted run, and --pick selects from a finished run. Without --storage,\n"
        "  they are stored in the folder of --output and in the user's cache.",
    )
    group.add_argument(
        "--storage",
        metavar="URL",
        help="storage of the trials: a file whose name ends in .journal, sqlite:///FILE, "
        "postgresql://USER@HOST/DATABASE (preferably store the password in ~/.pgpass), "
        "grpc://HOST:PORT; the same command on another machine joins the search",
    )
    group.add_argument(
        "--study",
        metavar="NAME",
        help="name of the search in --storage (default DATA-SCORING, such as wine-ice)",
    )
    group.add_argument(
        "--workers",
        type=arguments.integer(0),
        default=1,
        metavar="N",
        help="processes that share the search (default 1; with more processes, results depend on "
        "their speed; 0: join a search in --storage, and show no result)",
    )
    group.add_argument(
        "--fresh",
        action="store_true",
        help="discard the trials of an earlier run instead of resuming it or using it for --pick",
    )


@contextlib.contextmanager
def open_trials(
    options: argparse.Namespace, dataset: Dataset, black_box: dict[str, Any], notes: output.Notes
) -> Iterator[TrialStorage]:
    """Open the storage of the trials; delete a temporary storage when the search is finished."""
    study = study_name(options, dataset)
    digest = _digest(options, dataset, black_box)
    if options.output is None:
        if options.storage is not None:
            yield TrialStorage(options.storage, study, "another --study")
            return
        with _cached_trials(options, digest, study) as trial_storage:
            yield trial_storage
        return
    with _mark_folder(options, digest):
        if options.storage is not None:
            yield TrialStorage(options.storage, study, "another --study")
            return
        path = options.output / JOURNAL
        trial_storage = TrialStorage(_url(path), study)
        if not options.fresh:
            _reuse_finished(options, _finished_path(options, digest), path)
        try:
            yield trial_storage
        except BaseException:
            if not count_finished(trial_storage, options.extractors, with_score=True):
                path.unlink(missing_ok=True)  # nothing to resume
            raise
        _save_finished(options, _finished_path(options, digest), path)


#: Settings of a search, in addition to the digest, on which its set of trials depends.
_BUDGET = ("trials", "timeout", "max_queries", "allocation", *limited_quantities())


def _finished_path(options: argparse.Namespace, digest: str) -> Path | None:
    """Return the file of the cache with the trials of the same search once it has finished."""
    budget = repr([getattr(options, name) for name in _BUDGET])
    suffix = hashlib.sha256(budget.encode()).hexdigest()[:8]
    try:
        return cache_folder() / f"{digest}-{suffix}.finished"
    except (OSError, RuntimeError):  # there is no home folder
        return None


def _reuse_finished(options: argparse.Namespace, cached_path: Path | None, path: Path) -> None:
    """Copy the trials of the finished search that ``--pick`` selects from."""
    if options.pick is None or cached_path is None or path.exists():
        return
    with contextlib.suppress(OSError):
        shutil.copyfile(cached_path, path)


def _save_finished(options: argparse.Namespace, cached_path: Path | None, path: Path) -> None:
    """Copy the trials of a finished search to the cache for a later ``--pick``."""
    if cached_path is None or options.exit_code:
        return
    with contextlib.suppress(OSError):
        cached_path.parent.mkdir(parents=True, exist_ok=True)
        temporary = cached_path.with_suffix(f".{os.getpid()}.part")
        shutil.copyfile(path, temporary)
        temporary.replace(cached_path)


def is_unfinished(folder: Path) -> bool:
    """Return whether the folder holds an interrupted search, whose files may be replaced."""
    return (folder / UNFINISHED).exists()


def redact_passwords(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with the passwords in all URLs replaced by ***."""
    from skescore.tuning.storage import storage_name

    shown_words = []
    for previous, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if previous == "--storage":
            word = storage_name(word)
        elif option == "--storage" and equals:
            word = f"{option}={storage_name(value)}"
        else:
            word = arguments.without_passwords(word)
        shown_words.append(word)
    return shown_words


def study_name(options: argparse.Namespace, dataset: Dataset) -> str:
    """Return the common name of the studies of all extractors."""
    return options.study or f"{dataset.name}-{options.scoring}"


def count_finished(
    trial_storage: TrialStorage, extractors: Sequence[str], *, with_score: bool = False
) -> int:
    """Count the finished trials, except those that will be repeated."""
    from skescore.tuning import open_storage
    from skescore.tuning.storage import call_with_retries

    if trial_storage.storage is None:
        return 0
    storage = open_storage(trial_storage.storage)
    return call_with_retries(
        lambda: _count_stored(storage, trial_storage, extractors, with_score), storage
    )


def _count_stored(
    storage: BaseStorage, trial_storage: TrialStorage, extractors: Sequence[str], with_score: bool
) -> int:
    import optuna

    study_names = set(optuna.get_all_study_names(storage))
    return sum(
        _count_trials(
            optuna.load_study(study_name=name, storage=storage).get_trials(deepcopy=False),
            with_score,
        )
        for name in (f"{trial_storage.study}/{extractor}" for extractor in extractors)
        if name in study_names
    )


def _count_trials(trials: Sequence[FrozenTrial], with_score: bool) -> int:
    from optuna.trial import TrialState

    from skescore.tuning.runner import is_counted

    return sum(
        (trial.state == TrialState.COMPLETE if with_score else trial.state.is_finished())
        and is_counted(trial)
        for trial in trials
    )


def note_earlier(
    trial_storage: TrialStorage, extractors: Sequence[str], notes: output.Notes
) -> int:
    """Report and return the number of trials that an earlier run or another worker finished."""
    count = count_finished(trial_storage, extractors)
    if count:
        notes.add(
            f"resuming after {plural(count, 'stored trial')}; to start again: "
            f"{trial_storage.remedy}"
        )
    return count


@contextlib.contextmanager
def _mark_folder(options: argparse.Namespace, digest: str) -> Iterator[None]:
    """Mark the folder of ``--output`` until its search is finished."""
    marker, path = options.output / UNFINISHED, options.output / JOURNAL
    is_marked = marker.exists()
    is_same_search = is_marked and marker.read_text(encoding="utf-8").split()[:1] == [digest]
    if options.fresh or (options.overwrite and not is_same_search):
        path.unlink(missing_ok=True)
    elif is_marked and not is_same_search:
        raise ValueError(
            f"--output {options.output} contains another search that was interrupted. Repeat its "
            "command to resume it, discard it with --fresh, or name another folder."
        )
    try:
        marker.write_text(f"{digest}\n{_UNFINISHED_TEXT}\n", encoding="utf-8")
        yield
    except BaseException:
        if not (is_marked or path.exists()):
            marker.unlink(missing_ok=True)
        raise
    if not options.exit_code:
        marker.unlink(missing_ok=True)


def _url(path: Path) -> str:
    return f"journal:///{path.absolute()}"


#: Options on which the trials of a search depend, besides the weights of scores.
_SEARCH_OPTIONS = (
    "black_box",
    "scoring",
    "reference",
    "cv",
    "seed",
    "performance",
    "completeness",
    "class_weight",
    "extractors",
    "features",
    "outputs",
    "measures",
    "max_rules",
)
_ROW_OPTIONS = (
    "missing",
    "drop",
    "category",
    "numeric",
    "na_values",
    "sep",
    "decimal",
    "encoding",
    "header",
    "skip_rows",
    "sample",
    "task",
    "labels",
    "drop_duplicates",
    "groups",
    "time",
    "since",
)


def _digest(options: argparse.Namespace, dataset: Dataset, black_box: dict[str, Any]) -> str:
    """Return a digest of all settings on which the trials of a search depend."""
    from skescore.scorers import all_weights

    names = (*_SEARCH_OPTIONS, *all_weights(), *arguments.CONSTRAINT_NAMES, *_ROW_OPTIONS)
    settings = {name: repr(getattr(options, name)) for name in names}
    about = [dataset.checksum, dataset.y.name, settings, black_box, package_versions()]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _cached_trials(options: argparse.Namespace, digest: str, study: str) -> Iterator[TrialStorage]:
    """Store the trials in a file of the user's cache, or in memory if that is not possible."""
    with contextlib.ExitStack() as stack:
        # Simultaneous runs of the same command use separate files, deleted when they finish.
        path = None
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            _delete_old(folder)
            path = _lock_free_journal(folder, digest, stack)
        if path is None:
            yield TrialStorage(None, study)
            return
        trial_storage = TrialStorage(_url(path), study)
        if options.fresh:
            path.unlink(missing_ok=True)
        else:
            _reuse_finished(options, _finished_path(options, digest), path)
        if not _is_readable(trial_storage, options.extractors):
            path.unlink(missing_ok=True)
        try:
            yield trial_storage
        except BaseException:
            if not count_finished(trial_storage, options.extractors, with_score=True):
                path.unlink(missing_ok=True)
            raise
        if not options.exit_code:
            _save_finished(options, _finished_path(options, digest), path)
            path.unlink(missing_ok=True)


def _lock_free_journal(folder: Path, digest: str, stack: contextlib.ExitStack) -> Path | None:
    """Lock and return the first journal of a search that no other process uses."""
    for number in range(1, _MAX_PARALLEL_RUNS + 1):
        path = folder / (f"{digest}.journal" if number == 1 else f"{digest}-{number}.journal")
        if stack.enter_context(try_lock(path.with_suffix(".lock"))):
            return path
    return None


def _is_readable(trial_storage: TrialStorage, extractors: Sequence[str]) -> bool:
    """Return whether a journal can be read."""
    try:
        count_finished(trial_storage, extractors)
    except ValueError:
        return False
    return True


def _delete_old(folder: Path) -> None:
    """Delete journals of old searches from the cache."""
    for path in (*folder.glob("*.journal"), *folder.glob("*.finished")):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _CACHE_DAYS * 86400:
                path.unlink()
                path.with_suffix(".lock").unlink(missing_ok=True)


#: Smallest number of values of a table for which forests are fitted on all cores.
LARGE_TABLE = 4_000
#: Smallest number of trials for which several processes save more time than they take to start.
MANY_TRIALS = 20
#: Largest default number of processes of a search, because each needs memory.
MAX_PROCESSES = 4


def is_alone(options: argparse.Namespace) -> bool:
    """Return whether the search has no other workers, and its model is trained here."""
    return options.workers == 1 and options.black_box in BLACK_BOX_NAMES


def n_processes(options: argparse.Namespace) -> int:
    """Return the number of processes that evaluate candidates."""
    from joblib import cpu_count

    if options.n_jobs is not None or options.trials < MANY_TRIALS or not is_alone(options):
        return options.n_jobs or 1
    return min(cpu_count(), MAX_PROCESSES)
