"""Where to look: the hyper-parameters of every extractor, their ranges, and what to try first."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution

from skescore._text import did_you_mean
from skescore._validation import TASKS, check_choice
from skescore.registry import (
    EXTRACTORS,
    PSYKE_EXTRACTORS,
    extractor_class,
    extractor_names,
    extractor_spec,
    registered_name,
)
from skescore.tuning.spaces._own import OWN_SEARCHES, Problem, Search
from skescore.tuning.spaces._psyke import PSYKE_SEARCHES
from skescore.tuning.spaces._space import SearchSpace, as_search_space


def search_space(extractor: Any, X: Any, y: Any, *, task: str | None = None) -> SearchSpace:
    """Give the hyper-parameters of an extractor to search, and their ranges for some data.

    Print it to see where a search would look; change it by its methods or as a dict.

    Parameters
    ----------
    extractor : str, class or extractor
        A registered name, or an extractor. One that is not built in has the space that it was
        registered with, or that its class gives by ``search_space(n_rows, y, task)``, a class
        method or static method: a plain dict of distributions or a :class:`SearchSpace`. What
        differs from its default on an instance is not searched.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; their number bounds sizes.
    y : array-like of shape (n_rows,)
        The target; its standard deviation scales thresholds.
    task : {"classification", "regression"}, optional
        By default regression for a float target, classification for any other.

    Returns
    -------
    SearchSpace
        A dict of optuna distributions by parameter, with conditions. It may be changed freely and
        handed to :class:`ExtractorObjective`; its methods give what other searches take.

    Raises
    ------
    ValueError
        If there is no search space of that name, or no such task.
    TypeError
        If an installed package's extractor gives something else than a space.
    ImportError
        If an installed package's extractor cannot be imported.

    Examples
    --------
    >>> space = search_space("cart", [[0.0]] * 100, ["a", "b"] * 50)
    >>> print(space)
    cart for classification: 100 rows, 1 feature
    parameter         values             scale
    max_leaf_nodes    2 to 32            log
    max_depth         2 to 8             linear
    min_samples_leaf  1 to 5             log
    criterion         'gini', 'entropy'  choice
    >>> space["max_leaf_nodes"]
    IntDistribution(high=32, log=True, low=2, step=1)
    >>> space.without("min_samples_leaf", "criterion").param_grid(n_values=3)
    {'max_leaf_nodes': [2, 8, 32], 'max_depth': [2, 5, 8]}
    """
    name, search = _search_of(extractor)
    if search is None:
        raise ValueError(
            f"There is no search space for {name!r}. {did_you_mean(name, extractor_names())}"
        )
    y = np.asarray(y)
    if task is None:
        task = "regression" if y.dtype.kind == "f" else "classification"
    check_choice("task", task, TASKS)
    shape = getattr(X, "shape", None) or np.shape(X)
    n_features = shape[1] if len(shape) > 1 else 1
    space = as_search_space(search.space(Problem(len(X), n_features, y, task)))
    if not isinstance(extractor, str | type):
        space = space.without(*_set_on(extractor) & set(space))
    features = f"{n_features} feature{'' if n_features == 1 else 's'}"
    space.title = space.title or f"{name} for {task}: {len(X)} rows, {features}"
    return space


def starting_points(
    extractor: Any, space: Mapping[str, BaseDistribution], y: Any, task: str
) -> list[dict[str, Any]]:
    """Give settings that are worth trying first, as far as they lie in a space.

    A search tries them before its sampler draws. Among them are the extractor's defaults, or what
    comes to the same in the space's parameters; only thresholds that an extractor takes from the
    black box's predictions are those of the target.

    Parameters
    ----------
    extractor : str, class or extractor
        As for :func:`search_space`; one that is not known has none.
    space : dict of str to optuna distribution
        The space. Points with a value outside of it are left out; what a point says of parameters
        that are not in the space, or not active, is left out of the point.
    y : array-like of shape (n_rows,)
        The target.
    task : {"classification", "regression"}
        What the rules are for.

    Returns
    -------
    list of dict
        Different points, the most promising first.

    Examples
    --------
    >>> y = ["a", "b"] * 50
    >>> space = search_space("cart", [[0.0]] * 100, y).without("min_samples_leaf", "criterion")
    >>> starting_points("cart", space, y, "classification")[0]
    {'max_leaf_nodes': 2, 'max_depth': 4}
    """
    search = _search_of(extractor)[1]
    space = as_search_space(space)
    found: list[dict[str, Any]] = []
    if search is None or not space:
        return found
    for point in search.points(Problem(len(y), 1, np.asarray(y), task)):
        known = {key: value for key, value in point.items() if key in space}
        if known and space.holds(known) and (active := space.active(known)) not in found:
            found.append(active)
    return found


def extractor_name(extractor: Any) -> str:
    """The registered name of an extractor, its class or its name; else what its class is called."""
    if isinstance(extractor, str):
        return extractor
    made = extractor(None) if isinstance(extractor, type) else extractor
    return registered_name(made) or type(made).__name__


def _set_on(extractor: Any) -> set[str]:
    """The parameters of an extractor that are not as they are by default."""
    known = inspect.signature(type(extractor)).parameters
    return {
        name
        for name, value in extractor.get_params(deep=False).items()
        if name not in known or repr(value) != repr(known[name].default)
    }


def _search_of(extractor: Any) -> tuple[str, Search | None]:
    """The name of an extractor, and where to look for it; None for a name that is not known."""
    name = extractor_name(extractor)
    if name in EXTRACTORS:
        return name, OWN_SEARCHES[name]
    if name in PSYKE_EXTRACTORS:
        return name, PSYKE_SEARCHES[name.removeprefix("psyke:")]
    if name in extractor_names():
        return name, _search_of_class(
            name, extractor_class(name), extractor_spec(name).search_space
        )
    if isinstance(extractor, str):
        return name, None
    kind = extractor if isinstance(extractor, type) else type(extractor)
    return name, _search_of_class(name, kind)


def _search_of_class(name: str, kind: Any, given: Any = None) -> Search:
    """Where to look for an extractor of others: as it was registered with, or as its class says."""

    def space(problem: Problem) -> Mapping[str, BaseDistribution]:
        if given is None and not hasattr(kind, "search_space"):
            raise ValueError(
                f"The extractor {name!r} has no search space: {kind.__name__} lacks "
                f"search_space(n_rows, y, task). Pass one of your own: spaces={{{name!r}: ...}} to "
                "ExtractorSearchCV, space=... to ExtractorObjective."
            )
        make = kind.search_space if given is None else given
        found = make(problem.n_rows, problem.y, problem.task) if callable(make) else make
        if not isinstance(found, dict) or not all(
            isinstance(key, str) and isinstance(value, BaseDistribution)
            for key, value in found.items()
        ):
            raise TypeError(
                f"The search space of {name!r} must be a dict of parameter names and Optuna "
                f"distributions, got {found!r}. Correct it, or report it to the authors of "
                f"{kind.__module__!r}."
            )
        return as_search_space(found).copy()  # theirs may be one that they keep

    def points(problem: Problem) -> list[dict[str, Any]]:
        has_some = hasattr(kind, "starting_points")
        return list(kind.starting_points(problem.n_outputs)) if has_some else []

    return Search(space, points)
