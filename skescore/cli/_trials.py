"""Where a search keeps its trials, so that it can be gone on with, and who else works at it."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
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
from skescore._processes import worker_command
from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

    from skescore.datasets import Dataset


@dataclass(frozen=True)
class Kept:
    """Where trials are kept."""

    storage: str | None
    study: str
    remedy: str = "--fresh"


#: Seconds that workers have to end once the budget is spent: they were at their last trials.
_PATIENCE = 60
#: Seconds that they have once the search was broken off.
_HASTE = 10


class Workers:
    """Further processes of this command, as long as the context lasts.

    Notes
    -----
    An interrupt from the terminal reaches this process alone, which hands it on: workers give
    their trials back. What they write is shown only where they fail. However this process ends,
    their input ends with it, and they stop.
    """

    def __init__(
        self, options: argparse.Namespace, trial_storage: Kept, notes: output.Notes | None = None
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
                "--workers needs a place that all of them can reach, and no file can be written "
                "in the cache. Name one: --storage trials.journal."
            )

    def __enter__(self) -> Workers:
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
                process.wait(_PATIENCE if kind is None else _HASTE)
                if process.returncode and kind is None:
                    self._tell(process.returncode, errors)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._kill()

    def _kill(self) -> None:
        for process, errors in self._processes:
            process.kill()  # does nothing to one that has ended
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
            errors.close()

    def _tell(self, code: int, errors: IO[bytes]) -> None:
        """Note that a worker failed, and why; its trial was taken over."""
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1].removeprefix("skescore: error: ") if lines else f"exit code {code}"
        if self._notes is not None:
            self._notes.add(f"a worker has failed: {reason}")


#: The journal of a run's trials, in its folder.
JOURNAL = "trials.journal"
#: Beside it as long as the search has not come to its end.
UNFINISHED = "trials.unfinished"
_UNFINISHED_TEXT = "This search is not finished. Repeat its command to resume it."
#: So many equal commands at the same time keep trials in the cache, each its own.
_MOST_AT_ONCE = 20
#: Days after which the cache forgets a search that nobody went on with.
_KEPT_DAYS = 30


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where trials are kept and who works at them."""
    group = parser.add_argument_group(
        "trials",
        "Trials are kept while they are made: repeating the command resumes an\n"
        "  interrupted run. Without --storage they are kept in the folder of\n"
        "  --output, or in the user's cache until the search is finished.",
    )
    group.add_argument(
        "--storage",
        metavar="URL",
        help="keep trials there: a file ending in .journal, sqlite:///FILE, "
        "postgresql://USER@HOST/DATABASE (a password is best left to ~/.pgpass), "
        "grpc://HOST:PORT; the same command on another machine joins the search",
    )
    group.add_argument(
        "--study",
        metavar="NAME",
        help="what the search is called in --storage (default DATA-SCORING, such as wine-ice)",
    )
    group.add_argument(
        "--workers",
        type=arguments.integer(0),
        default=1,
        metavar="N",
        help="processes that share the search, each with trials of its own (default 1; with more, "
        "results depend on who is faster; 0 joins a search in --storage and shows no result)",
    )
    group.add_argument(
        "--fresh",
        action="store_true",
        help="forget the trials of an earlier run that was interrupted",
    )


@contextlib.contextmanager
def kept_trials(
    options: argparse.Namespace, dataset: Dataset, black_box: dict[str, Any], notes: output.Notes
) -> Iterator[Kept]:
    """Say where trials are kept; of what is kept only until the end, nothing is left after it."""
    study = study_name(options, dataset)
    digest = _digest(options, dataset, black_box)
    if options.output is None:
        if options.storage is not None:
            yield Kept(options.storage, study, "another --study")
            return
        with _cached(options, digest, study) as trial_storage:
            yield trial_storage
        return
    with _marked(options, digest):
        if options.storage is not None:
            yield Kept(options.storage, study, "another --study")
            return
        path = options.output / JOURNAL
        trial_storage = Kept(_url(path), study)
        try:
            yield trial_storage
        except BaseException:
            if not count_finished(trial_storage, options.extractors, scored=True):
                path.unlink(missing_ok=True)  # nothing to go on with
            raise


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds a search that was broken off, so that its files may be replaced."""
    return (folder / UNFINISHED).exists()


def shown_command_line(words: Sequence[str]) -> list[str]:
    """Give the command line without the password of a storage, for files and people."""
    from skescore.tuning.storage import storage_name

    shown_words = []
    for previous, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if previous == "--storage":
            word = storage_name(word)
        elif option == "--storage" and equals:
            word = f"{option}={storage_name(value)}"
        shown_words.append(word)
    return shown_words


def study_name(options: argparse.Namespace, dataset: Dataset) -> str:
    """What the studies are called."""
    return options.study or f"{dataset.name}-{options.scoring}"


def count_finished(trial_storage: Kept, extractors: Sequence[str], *, scored: bool = False) -> int:
    """Count the trials that have ended, but for those that are to be made again."""
    from skescore.tuning import open_storage
    from skescore.tuning.storage import call_with_retries

    if trial_storage.storage is None:
        return 0
    storage = open_storage(trial_storage.storage)
    return call_with_retries(lambda: _count_in(storage, trial_storage, extractors, scored), storage)


def _count_in(
    storage: BaseStorage, trial_storage: Kept, extractors: Sequence[str], scored: bool
) -> int:
    import optuna

    study_names = set(optuna.get_all_study_names(storage))
    return sum(
        _count(
            optuna.load_study(study_name=name, storage=storage).get_trials(deepcopy=False), scored
        )
        for name in (f"{trial_storage.study}/{extractor}" for extractor in extractors)
        if name in study_names
    )


def _count(trials: Sequence[FrozenTrial], scored: bool) -> int:
    from optuna.trial import TrialState

    from skescore.tuning.runner import counts

    return sum(
        (trial.state == TrialState.COMPLETE if scored else trial.state.is_finished())
        and counts(trial)
        for trial in trials
    )


def note_earlier(trial_storage: Kept, extractors: Sequence[str], notes: output.Notes) -> int:
    """Note how many trials an earlier run, or another worker, has finished; gives their number."""
    count = count_finished(trial_storage, extractors)
    if count:
        notes.add(
            f"going on after {plural(count, 'trial')} that were kept; to begin anew: "
            f"{trial_storage.remedy}"
        )
    return count


@contextlib.contextmanager
def _marked(options: argparse.Namespace, digest: str) -> Iterator[None]:
    """Mark the folder of ``--output`` as long as the search in it has not come to its end."""
    marker, path = options.output / UNFINISHED, options.output / JOURNAL
    is_marked = marker.exists()
    is_same_search = is_marked and marker.read_text(encoding="utf-8").split()[:1] == [digest]
    if options.fresh or (options.overwrite and not is_same_search):
        path.unlink(missing_ok=True)
    elif is_marked and not is_same_search:
        raise ValueError(
            f"--output {options.output} holds another search that was interrupted. Repeat its "
            "command to resume it, forget it with --fresh, or name another folder."
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


def _digest(options: argparse.Namespace, dataset: Dataset, black_box: dict[str, Any]) -> str:
    """Text that tells searches apart that must not go on with each other's trials."""
    from skescore.scorers import all_weights

    settings = {
        name: repr(getattr(options, name))
        for name in (
            "black_box",
            "scoring",
            "reference",
            "cv",
            "seed",
            *all_weights(),
            "performance",
            "completeness",
            "class_weight",
            "extractors",
            "features",
            "outputs",
            "measures",
            "missing",
            "drop",
            "category",
            "numeric",
            "na_values",
            "sep",
            "decimal",
            "encoding",
            "sample",
            "task",
        )
    }
    about = [dataset.checksum, dataset.y.name, settings, black_box, package_versions()]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _cached(options: argparse.Namespace, digest: str, study: str) -> Iterator[Kept]:
    """A file for this search alone in the user's cache; in memory if there can be none."""
    with contextlib.ExitStack() as stack:
        # Another run of the same command has trials of its own, and will delete them at its end.
        path = None
        with contextlib.suppress(OSError, RuntimeError):  # the latter: there is no home
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            _forget_old(folder)
            path = _lock_one(folder, digest, stack)
        if path is None:
            yield Kept(None, study)
            return
        trial_storage = Kept(_url(path), study)
        if options.fresh or not _is_sound(trial_storage, options.extractors):
            path.unlink(missing_ok=True)
        try:
            yield trial_storage
        except BaseException:
            if not count_finished(trial_storage, options.extractors, scored=True):
                path.unlink(missing_ok=True)
            raise
        if not options.exit_code:
            path.unlink(missing_ok=True)


def _lock_one(folder: Path, digest: str, stack: contextlib.ExitStack) -> Path | None:
    """The first journal of a search that no other process uses; locked as long as the stack."""
    for number in range(1, _MOST_AT_ONCE + 1):
        path = folder / (f"{digest}.journal" if number == 1 else f"{digest}-{number}.journal")
        if stack.enter_context(try_lock(path.with_suffix(".lock"))):
            return path
    return None


def _is_sound(trial_storage: Kept, extractors: Sequence[str]) -> bool:
    """Whether a journal can be read: nobody would look for a damaged one in the cache."""
    try:
        count_finished(trial_storage, extractors)
    except ValueError:
        return False
    return True


def _forget_old(folder: Path) -> None:
    """Delete what nobody went on with."""
    for path in folder.glob("*.journal"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _KEPT_DAYS * 86400:
                path.unlink()
                path.with_suffix(".lock").unlink()
