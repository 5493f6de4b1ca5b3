"""What a search is made of before its first trial: spaces, seeds, studies and the loop."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skescore.registry import make_extractor
from skescore.tuning._allocation import Allocation
from skescore.tuning._evaluation import Fold
from skescore.tuning._goals import Goal
from skescore.tuning._objective import ExtractorObjective, check_measures, check_space
from skescore.tuning._runner import Runner
from skescore.tuning._search_checks import digest_of
from skescore.tuning._studies import Studies
from skescore.tuning._workers import FoldEvaluator
from skescore.tuning.spaces._ranges import Space
from skescore.tuning.spaces._spaces import search_space, starting_points
from skescore.tuning.storage._storages import open_storage


def spaces_of(search: Any, X: Any, y: Any, task: str) -> dict[str, Space]:
    """The caller's space of each extractor, or the one that suits the data.

    Parameters
    ----------
    search : ExtractorSearchCV
        Its parameters have been checked.
    X, y : array-like
        The data.
    task : {"classification", "regression"}
        What the black box does.

    Returns
    -------
    dict of str to space
        By extractor.
    """
    spaces = {}
    for name in search.extractors_:
        space = (search.spaces or {}).get(name)
        spaces[name] = search_space(name, X, y, task=task) if space is None else space
        check_space(spaces[name], make_extractor(name, search.estimator))
    return spaces


def draw_seeds(search: Any) -> tuple[int, int]:
    """Seeds of the extractors and of the samplers.

    Parameters
    ----------
    search : ExtractorSearchCV
        Its ``random_state`` decides.

    Returns
    -------
    of_extractors, of_samplers : int
        The same for all workers that share a storage.
    """
    # Workers that share a storage must make the same rules, also where nobody named a seed.
    shared_seed = search.storage is not None and search.random_state is None
    random = check_random_state(
        zlib.crc32(search.study_name.encode()) if shared_seed else search.random_state
    )
    return int(random.randint(2**31 - 1)), int(random.randint(2**31 - 1))


def make_studies(
    search: Any,
    X: Any,
    y: Any,
    task: str,
    goal: Goal,
    folds: list[Fold],
    spaces: Mapping[str, Space],
    seeds: tuple[int, int],
) -> Studies:
    """A study for each extractor, where the search keeps them.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    X, y : array-like
        The data.
    task : {"classification", "regression"}
        What the black box does.
    goal : Goal
        What candidates are compared by.
    folds : list of Fold
        What they are measured on.
    spaces : dict of str to space
        By extractor.
    seeds : (int, int)
        Of :func:`draw_seeds`.

    Returns
    -------
    Studies
        Opened, with the first hyper-parameters queued.
    """
    seed_of_extractors, seed_of_samplers = seeds
    storage = None if search.storage is None else open_storage(search.storage)
    settings: dict[str, Any] = {}
    if storage is not None:
        settings = {
            "scoring": f"{', '.join(goal.metric_names)} by {goal.shown}",
            "rows": digest_of(folds),
            "black_box": {k: round(v, 6) for k, v in search.black_box_quality_.items()},
            "measures": list(check_measures(search.measures)),
            "seed": seed_of_extractors,
        }
    objectives = {}
    for name, space in spaces.items():
        objectives[name] = ExtractorObjective(
            search.estimator, X, y, extractor=make_extractor(name, search.estimator), space=space,
            measures=search.measures, random_state=seed_of_extractors, _folds=folds, _goal=goal,
        )  # fmt: skip
        objectives[name].name = name
    each = (search.n_trials or 20 * len(objectives)) // len(objectives)
    pruner = None if search.pruner == "bound" else search.pruner
    return Studies(
        objectives, goal, seed=seed_of_samplers, n_startup=max(5, each // 4),
        sampler=search.sampler,
        first={
            name: starting_points(name, space, np.asarray(y), task)
            for name, space in spaces.items()
        },
        pruner=pruner, storage=storage, study_name=search.study_name, settings=settings,
        given=search.studies, about={"task": task, "X": X, "cv": search.cv},
    )  # fmt: skip


def make_runner(search: Any, studies: Studies, folds: list[Fold], all_rows: Fold) -> Runner:
    """The loop that spends the budget of a search.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    studies : Studies
        Where trials are kept.
    folds : list of Fold
        What candidates are measured on.
    all_rows : Fold
        What the rules of those that may win are made of.

    Returns
    -------
    Runner
        Not yet run.
    """
    goal = studies.goal
    return Runner(
        studies,
        Allocation(
            list(studies.objectives),
            search.n_trials,
            search.timeout,
            search.allocation,
            merit="share of the front's hypervolume" if goal.objectives else "best",
        ),
        FoldEvaluator(folds, goal.scorer, check_measures(search.measures), all_rows),
        n_jobs=search.n_jobs,
        pruner=search.pruner,
        callbacks=list(search.callbacks or ()),
    )
