"""Heartbeats of workers, and retries of trials whose worker is gone."""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import threading
import time
import uuid
import weakref
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any

import optuna
import psutil
from optuna.exceptions import (
    UpdateFinishedTrialError,
)
from optuna.trial import FrozenTrial, TrialState

# Optuna's own heartbeats work in relational databases, and only for ``Study.optimize``. These work
# in every storage, for workers that ask and tell:
#
# .. code-block:: python
#
#     while budget_is_left(study):
#         retry_stale(study)
#         announce_worker(study)
#         trial = study.ask(space)
#         with Heartbeat(trial) as heartbeat:
#             values = objective(trial)
#         if not heartbeat.lost:
#             study.tell(trial, values, skip_if_finished=True)


#: User attribute of a trial: number of the trial that it repeats.
RETRY_OF = "retry_of"
#: User attribute of a trial: its place among those of its study, where that is not its number, as
#: trials that count for nothing came before. One that is tried again has the place that it had.
POSITION = "position"
#: User attribute of a trial: who runs it, and how many signs of life there have been.
HEARTBEAT = "heartbeat"
#: User attribute of a trial that is failed because it is repeated: it counts for nothing.
RETRIED = "retried"
#: User attribute of a study: its workers give signs of life, so that silence means something.
_HEARTBEATS = "heartbeats"
#: How user attributes of a study begin that say who asks for its trials.
_WORKER = "worker:"
#: Clocks may be set while a process runs: starts that are so many seconds apart are one.
_SAME_START = 2.0

#: What this process saw last: by storage, study and trial the sign of life, and since when. The
#: time is this process's own, because the clocks of two machines may differ.
_LAST_BEATS: weakref.WeakKeyDictionary[Any, dict[str, dict[int, tuple[str, float]]]] = (
    weakref.WeakKeyDictionary()
)
_LAST_BEATS_LOCK = threading.Lock()
#: Studies that this process has marked by `_HEARTBEATS`, so that it need not look for every trial.
_MARKED: weakref.WeakSet[optuna.Study] = weakref.WeakSet()
#: Studies that have been told of a worker, and its process: a fork is another.
_ANNOUNCED: weakref.WeakKeyDictionary[optuna.Study, int] = weakref.WeakKeyDictionary()


def announce_worker(study: optuna.Study) -> None:
    """Record in a study that this process runs its trials.

    Call it before the first trial is asked for, and after :func:`retry_stale`. A worker that is
    killed between asking and its first :class:`Heartbeat` is then known by its end: where all
    announced workers have ended, :func:`retry_stale` gives up their trials at once. All workers of
    a study should announce themselves, or none.

    Parameters
    ----------
    study : optuna.Study
        The study. In memory, where a dead process leaves nothing behind, nothing is said.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> announce_worker(optuna.create_study())
    """
    if _is_lasting(study._storage) and _ANNOUNCED.get(study) != os.getpid():
        _mark(study)
        study.set_user_attr(f"{_WORKER}{platform.node()}:{os.getpid()}", _this_worker())
        _ANNOUNCED[study] = os.getpid()


class Heartbeat:
    """Record in a trial's storage that its worker is alive; use it as a context manager.

    Wrap it around the objective of every worker of a study that others may join, together with
    :func:`retry_stale`. In memory, where a dead process leaves nothing behind, it does nothing.

    Parameters
    ----------
    trial : optuna.trial.Trial
        A running trial. Its user attribute ``heartbeat`` says who runs it.
    interval : float, default=60
        Seconds between two signs of life; at most half of the grace period of
        :func:`retry_stale`.

    Attributes
    ----------
    lost : bool
        Whether another worker took this one for dead: the trial is finished as failed, and its
        result no longer counts.

    Raises
    ------
    ValueError
        If `interval` is not positive.

    Notes
    -----
    From the first use on, every worker of the study must give signs of life; the study's user
    attribute ``heartbeats`` says so.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> trial = study.ask()
    >>> with Heartbeat(trial) as heartbeat:
    ...     value = trial.suggest_float("x", 0, 1) ** 2
    >>> heartbeat.lost
    False
    >>> study.tell(trial, value).state.name
    'COMPLETE'
    """

    def __init__(self, trial: Any, *, interval: float = 60) -> None:
        self.trial = trial
        self.interval = _seconds("interval", interval)
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def lost(self) -> bool:
        """True if another worker has failed the trial; see the attributes of the class."""
        return self._lost.is_set()

    def __enter__(self) -> Heartbeat:
        if _is_lasting(getattr(self.trial, "storage", None)):
            _mark(self.trial.study)
            worker = _this_worker()
            self._beat(worker, 0)
            if not self.lost:
                # The process may end while the storage hangs: nothing waits for the thread.
                self._thread = threading.Thread(
                    target=self._go_on, args=(worker,), name="skescore-heartbeat", daemon=True
                )
                self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            # A sign of life that came after the result would be an error.
            self._thread.join()

    def _go_on(self, worker: dict[str, Any]) -> None:
        count = 0
        while not self.lost and not self._stop.wait(self.interval):
            count += 1
            try:
                self._beat(worker, count)
            except Exception:
                # A storage that is out of reach for a moment is told at the next beat; for
                # longer, the worker hears of it where it reports its result.
                continue
        self.trial.storage.remove_session()  # a database's connection of this thread

    def _beat(self, worker: dict[str, Any], count: int) -> None:
        try:
            self.trial.set_user_attr(HEARTBEAT, worker | {"count": count})
        except UpdateFinishedTrialError:
            self._lost.set()


def retry_stale(
    study: optuna.Study, *, grace: float = 120, running: Sequence[FrozenTrial] | None = None
) -> list[int]:
    """Fail the running trials whose workers are gone and enqueue their parameters again.

    Call it in every worker before it asks for a trial. A worker on the same machine whose process
    has ended is gone at once; any other is when it has given no sign of life for `grace` seconds,
    as watched by this process: the first call only begins to watch.

    Parameters
    ----------
    study : optuna.Study
        The study.
    grace : float, default=120
        Seconds of silence; at least twice the interval of :class:`Heartbeat`.
    running : sequence of FrozenTrial, optional
        Its running trials, if they have been read already. One that has finished since is left as
        it is.

    Returns
    -------
    list of int
        Numbers of the trials that this call failed. Each has the reason in its user attribute
        ``error``. The trial that repeats one names it in its user attribute ``retry_of``; a trial
        that is a repetition itself is not repeated again.

    Raises
    ------
    ValueError
        If `grace` is not positive.

    Notes
    -----
    Of several workers that find the same trial one fails it, and only that one enqueues it again:
    storages accept one end of a trial. A trial without any sign of life was killed between being
    asked for and starting. It is given up at once where all workers that were announced by
    :func:`announce_worker` are gone, and has the same grace otherwise; as it did no harm, it may be
    a repetition and is repeated. Where no worker gives signs of life, nothing is failed.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> retry_stale(optuna.create_study())
    []
    """
    grace = _seconds("grace", grace)
    # No public name; the study's own methods cannot say who came first.
    if not _is_lasting(study._storage):
        return []
    if running is None:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    about = study.user_attrs if running else {}
    is_marked = _HEARTBEATS in about
    announced = [worker for key, worker in about.items() if key.startswith(_WORKER)]
    all_gone = bool(announced) and all(map(_is_gone, announced))
    reasons = {}
    with _LAST_BEATS_LOCK:
        studies = _LAST_BEATS.setdefault(study._storage, {})
        before = studies.get(study.study_name, {})
        now = time.monotonic()
        last_beats = {}
        for trial in running:
            beat = trial.user_attrs.get(HEARTBEAT)
            if _is_gone(beat):
                reasons[trial.number] = f"The process of its {_name_of(beat)} ended in mid-trial."
            elif beat is None and all_gone:
                reasons[trial.number] = "Its process ended before the trial began."
            elif is_marked:
                sign = json.dumps(beat, sort_keys=True)
                last, since = before.get(trial.number, (None, now))
                last_beats[trial.number] = sign, since if sign == last else now
                if now - last_beats[trial.number][1] > grace:
                    reasons[trial.number] = (
                        f"Its {_name_of(beat)} gave no sign of life for more than {grace:g} s."
                    )
        studies[study.study_name] = last_beats
    return [
        trial.number
        for trial in running
        if trial.number in reasons and _fail(study, trial, reasons[trial.number])
    ]


def _fail(study: optuna.Study, trial: FrozenTrial, reason: str) -> bool:
    """Fail a trial and enqueue it again, unless it has been finished in the meantime."""
    retried_number = trial.user_attrs.get(RETRY_OF)
    # What did not begin cannot have been what ended its process.
    is_retried = retried_number is None or HEARTBEAT not in trial.user_attrs
    outlook = (
        "Its hyper-parameters are tried once more."
        if is_retried
        else f"It was the second attempt, after trial {retried_number}, so that there is no other."
    )
    storage = study._storage
    try:
        storage.set_trial_user_attr(trial._trial_id, "error", f"{reason} {outlook}")
        if is_retried:
            # Before it fails: this process may end as well before it is enqueued.
            storage.set_trial_user_attr(trial._trial_id, RETRIED, True)
        if not storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL):
            return False
    except UpdateFinishedTrialError:
        return False
    if is_retried:
        # Killed before it suggested what it was enqueued with, it has that in no parameter yet; in
        # the midst of that, the other parameters would not fit what a sampler adds to them.
        params = trial.system_attrs.get("fixed_params", {})
        attrs = {key: value for key, value in trial.user_attrs.items() if key == POSITION}
        if HEARTBEAT in trial.user_attrs:
            params, attrs = params | trial.params, {POSITION: trial.number} | attrs
        study.enqueue_trial(params, user_attrs={RETRY_OF: trial.number} | attrs)
    return True


def _mark(study: optuna.Study) -> None:
    if study not in _MARKED:
        if _HEARTBEATS not in study.user_attrs:
            study.set_user_attr(_HEARTBEATS, True)
        _MARKED.add(study)


def _is_lasting(storage: Any) -> bool:
    """Return whether a storage keeps trials after the end of the process."""
    return isinstance(storage, optuna.storages.BaseStorage) and not isinstance(
        storage, optuna.storages.InMemoryStorage
    )


def _seconds(name: str, value: Any) -> float:
    valid = isinstance(value, Real) and not isinstance(value, bool)
    if not valid or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive number of seconds, got {value!r}.")
    return float(value)


def _this_worker() -> dict[str, Any]:
    """Return the identity of this process and of the attempt to run a trial."""
    return {
        "host": platform.node(),
        "machine": _machine(),
        "process": os.getpid(),
        "started": psutil.Process().create_time(),
        # Two attempts of one process are told apart.
        "attempt": uuid.uuid4().hex[:8],
    }


def _name_of(beat: Any) -> str:
    if not isinstance(beat, dict):
        return "worker"
    return f"worker (process {beat.get('process')} on {beat.get('host')})"


@functools.cache
def _machine() -> str:
    """Return the identity of the system and container within which process ids are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def _is_gone(beat: Any) -> bool:
    """Return whether the process of a heartbeat has ended; False for other machines."""
    if not isinstance(beat, dict):
        return False
    pid, started = beat.get("process"), beat.get("started")
    if beat.get("machine") != _machine() or not isinstance(pid, int):
        return False
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return True
        # A later process may have the same number.
        later = isinstance(started, Real) and process.create_time() - started > _SAME_START
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # another user's
        return False
    return later
