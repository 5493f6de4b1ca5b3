"""Heartbeats of workers, and retries of trials whose worker has ended."""

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
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

# Optuna's own heartbeats need a relational database and ``Study.optimize``. These work in every
# storage, for workers that use ``Study.ask`` and ``Study.tell``:
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
#: User attribute of a trial: its position in a search without interruptions, if that is not its
#: number. A repeated trial has the position of the first attempt.
POSITION = "position"
#: User attribute of a trial: its worker and the number of heartbeats.
HEARTBEAT = "heartbeat"
#: User attribute of a failed trial that is repeated and therefore does not count.
RETRIED = "retried"
#: User attribute of a study whose workers record heartbeats.
_HEARTBEATS = "heartbeats"
#: Prefix of the user attributes of a study that name its workers.
_WORKER = "worker:"
#: Seconds by which recorded start times of one process may differ, because clocks are adjusted.
_START_TOLERANCE = 2.0

#: Last heartbeat that this process has read, and when it first read it, by storage, study and
#: trial. The time is measured by this process, because the clocks of two machines may differ.
_LAST_BEATS: weakref.WeakKeyDictionary[Any, dict[str, dict[int, tuple[str, float]]]] = (
    weakref.WeakKeyDictionary()
)
_LAST_BEATS_LOCK = threading.Lock()
#: Studies that this process has marked by `_HEARTBEATS`, which saves a query for every trial.
_MARKED_STUDIES: weakref.WeakSet[optuna.Study] = weakref.WeakSet()
#: Studies in which this process is announced, with its id, because a fork has another id.
_ANNOUNCED_PIDS: weakref.WeakKeyDictionary[optuna.Study, int] = weakref.WeakKeyDictionary()


def announce_worker(study: optuna.Study) -> None:
    """Record in a study that this process runs its trials.

    Call it after :func:`retry_stale` and before ``Study.ask``. It covers workers that are killed
    before their first :class:`Heartbeat`: if all announced workers have ended, :func:`retry_stale`
    fails their trials at once. Either all or none of the workers of a study should announce
    themselves.

    Parameters
    ----------
    study : optuna.Study
        The study. A study in memory is not changed, because it ends with its process.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> announce_worker(optuna.create_study())
    """
    if _is_persistent(study._storage) and _ANNOUNCED_PIDS.get(study) != os.getpid():
        _mark_study(study)
        study.set_user_attr(f"{_WORKER}{platform.node()}:{os.getpid()}", _describe_worker())
        _ANNOUNCED_PIDS[study] = os.getpid()


class Heartbeat:
    """Record in a trial's storage that its worker is alive; use it as a context manager.

    Wrap it around the objective of every worker of a study that others may join, together with
    :func:`retry_stale`. It does nothing for a study in memory, which ends with its process.

    Parameters
    ----------
    trial : optuna.trial.Trial
        A running trial. Its user attribute ``heartbeat`` names its worker.
    interval : float, default=60
        Seconds between two heartbeats; at most half of the grace period of :func:`retry_stale`.

    Attributes
    ----------
    lost : bool
        Whether another worker has failed the trial because heartbeats were missing. Its result no
        longer counts.

    Raises
    ------
    ValueError
        If `interval` is not positive.

    Notes
    -----
    After the first use, every worker of the study must record heartbeats. The study then has the
    user attribute ``heartbeats``.

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
        self.interval = _check_seconds("interval", interval)
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def lost(self) -> bool:
        """True if another worker has failed the trial; see the attributes of the class."""
        return self._lost.is_set()

    def __enter__(self) -> Heartbeat:
        if _is_persistent(getattr(self.trial, "storage", None)):
            _mark_study(self.trial.study)
            worker = _describe_worker()
            self._beat(worker, 0)
            if not self.lost:
                # A daemon thread does not keep the process alive while the storage hangs.
                self._thread = threading.Thread(
                    target=self._run, args=(worker,), name="skescore-heartbeat", daemon=True
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
            # A heartbeat after the result would be an error.
            self._thread.join()

    def _run(self, worker: dict[str, Any]) -> None:
        """Store a heartbeat per interval until the trial ends or is lost."""
        count = 0
        while not self.lost and not self._stop.wait(self.interval):
            count += 1
            try:
                self._beat(worker, count)
            except Exception:
                # The next heartbeat tries again. If the storage stays unavailable, the worker
                # notices it when it stores its result.
                continue
        self.trial.storage.remove_session()  # the database connection of this thread

    def _beat(self, worker: dict[str, Any], count: int) -> None:
        try:
            self.trial.set_user_attr(HEARTBEAT, worker | {"count": count})
        except UpdateFinishedTrialError:
            self._lost.set()


def retry_stale(
    study: optuna.Study, *, grace: float = 120, running: Sequence[FrozenTrial] | None = None
) -> list[int]:
    """Fail the running trials whose workers have ended, and enqueue their parameters again.

    Call it in every worker before ``Study.ask``. A worker on the same machine counts as ended when
    its process has ended; any other worker, when this process has seen no new heartbeat for `grace`
    seconds. Therefore, the first call only starts to watch workers on other machines.

    Parameters
    ----------
    study : optuna.Study
        The study.
    grace : float, default=120
        Seconds without a heartbeat; at least twice the interval of :class:`Heartbeat`.
    running : sequence of FrozenTrial, optional
        Running trials of the study, if they have been read already. Trials that have finished since
        then are not changed.

    Returns
    -------
    list of int
        Numbers of the trials that this call failed. Each has the reason in its user attribute
        ``error``. A repetition names the failed trial in its user attribute ``retry_of``; it is not
        repeated again itself.

    Raises
    ------
    ValueError
        If `grace` is not positive.

    Notes
    -----
    If several workers find the same trial, only one of them fails and enqueues it, because storages
    accept only one end of a trial. The worker of a trial without any heartbeat was killed before
    the trial started. Such a trial is failed at once if all workers announced by
    :func:`announce_worker` have ended, otherwise after the same grace period. It is repeated even
    if it is a repetition, because it cannot be the reason for the end of its worker. If no worker
    records heartbeats, no trial is failed.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> retry_stale(optuna.create_study())
    []
    """
    grace = _check_seconds("grace", grace)
    # Optuna has no public access to the storage of a study. Study.tell does not return whether this
    # process was the first to end a trial.
    if not _is_persistent(study._storage):
        return []
    if running is None:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    study_attrs = study.user_attrs if running else {}
    is_marked = _HEARTBEATS in study_attrs
    announced_workers = [worker for key, worker in study_attrs.items() if key.startswith(_WORKER)]
    are_workers_gone = bool(announced_workers) and all(map(_is_gone, announced_workers))
    reasons = {}
    with _LAST_BEATS_LOCK:
        studies = _LAST_BEATS.setdefault(study._storage, {})
        previous_beats = studies.get(study.study_name, {})
        now = time.monotonic()
        last_beats = {}
        for trial in running:
            beat = trial.user_attrs.get(HEARTBEAT)
            if _is_gone(beat):
                reasons[trial.number] = (
                    f"The process of its {_worker_name(beat)} ended during the trial."
                )
            elif beat is None and are_workers_gone:
                reasons[trial.number] = "Its process ended before the trial began."
            elif is_marked:
                beat_text = json.dumps(beat, sort_keys=True)
                last_text, since = previous_beats.get(trial.number, (None, now))
                last_beats[trial.number] = beat_text, since if beat_text == last_text else now
                if now - last_beats[trial.number][1] > grace:
                    reasons[trial.number] = (
                        f"Its {_worker_name(beat)} sent no heartbeat for more than {grace:g} s."
                    )
        studies[study.study_name] = last_beats
    return [
        trial.number
        for trial in running
        if trial.number in reasons and _fail_and_enqueue(study, trial, reasons[trial.number])
    ]


def _fail_and_enqueue(study: optuna.Study, trial: FrozenTrial, reason: str) -> bool:
    """Fail a trial and enqueue it again, unless it has been finished in the meantime."""
    retried_number = trial.user_attrs.get(RETRY_OF)
    # A trial that had not started cannot be the reason for the end of its process.
    is_retried = retried_number is None or HEARTBEAT not in trial.user_attrs
    outlook = (
        "Its hyperparameters are tried again."
        if is_retried
        else f"It was the second attempt, after trial {retried_number}, so it is not repeated."
    )
    storage = study._storage
    try:
        storage.set_trial_user_attr(trial._trial_id, "error", f"{reason} {outlook}")
        if is_retried:
            # Stored first, because this process may end before the trial is enqueued.
            storage.set_trial_user_attr(trial._trial_id, RETRIED, True)
        if not storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL):
            return False
    except UpdateFinishedTrialError:
        return False
    if is_retried:
        # Before its first heartbeat, a trial may have only some of its parameters, which would not
        # fit the parameters that a sampler draws for the repetition.
        params = trial.system_attrs.get("fixed_params", {})
        attrs = {key: value for key, value in trial.user_attrs.items() if key == POSITION}
        if HEARTBEAT in trial.user_attrs:
            params, attrs = params | trial.params, {POSITION: trial.number} | attrs
        study.enqueue_trial(params, user_attrs={RETRY_OF: trial.number} | attrs)
    return True


def _mark_study(study: optuna.Study) -> None:
    if study not in _MARKED_STUDIES:
        if _HEARTBEATS not in study.user_attrs:
            study.set_user_attr(_HEARTBEATS, True)
        _MARKED_STUDIES.add(study)


def _is_persistent(storage: Any) -> bool:
    """Return whether a storage keeps trials after the end of the process."""
    return isinstance(storage, optuna.storages.BaseStorage) and not isinstance(
        storage, optuna.storages.InMemoryStorage
    )


def _check_seconds(name: str, value: Any) -> float:
    valid = isinstance(value, Real) and not isinstance(value, bool)
    if not valid or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive number of seconds, got {value!r}.")
    return float(value)


def _describe_worker() -> dict[str, Any]:
    """Return the identity of this process and of the attempt to run a trial."""
    import psutil

    return {
        "host": platform.node(),
        "machine": _machine_id(),
        "process": os.getpid(),
        "started": psutil.Process().create_time(),
        # Distinguishes two attempts of one process.
        "attempt": uuid.uuid4().hex[:8],
    }


def _worker_name(beat: Any) -> str:
    if not isinstance(beat, dict):
        return "worker"
    return f"worker (process {beat.get('process')} on {beat.get('host')})"


@functools.cache
def _machine_id() -> str:
    """Return the identity of the system and container within which process ids are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def _is_gone(beat: Any) -> bool:
    """Return whether the process of a heartbeat has ended; False if it ran on another machine."""
    if not isinstance(beat, dict):
        return False
    pid, start_time = beat.get("process"), beat.get("started")
    if beat.get("machine") != _machine_id() or not isinstance(pid, int):
        return False
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return True
        # A process that started later may have the same id.
        is_other_process = (
            isinstance(start_time, Real) and process.create_time() - start_time > _START_TOLERANCE
        )
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # a process of another user
        return False
    return is_other_process
