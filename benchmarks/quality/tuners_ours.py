"""Methods that use our extractors: our search, untuned trees, a joint Optuna search and a grid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from tuners_data import (
    SCORES,
    WEIGHTS,
    Ledger,
    Problem,
    clock,
    make_counted,
    make_problem,
    make_scorer,
    measure,
)

from skescore.registry import make_extractor, suitable_extractors
from skescore.tuning import ExtractorSearchCV, search_space

Row = dict[str, Any]
N_FOLDS = 5
#: Number of candidates of a small search.
N_SMALL = 20


def suitable(task: str) -> tuple[str, ...]:
    """Return the built-in extractors for the task."""
    return suitable_extractors(task)


def make_splitter(problem: Problem, seed: int) -> Any:
    """Return the splitter whose folds all searches share."""
    kind = StratifiedKFold if problem.task == "classification" else KFold
    return kind(N_FOLDS, shuffle=True, random_state=seed)


def describe_params(name: str, params: dict[str, Any]) -> str:
    """Return a short description of a candidate."""

    def short(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return " ".join([name, *(f"{k}={short(v)}" for k, v in params.items())])


def run(method: str, data: str, seed: int, scores: Sequence[str], trials: int) -> Iterator[Row]:
    """Run a method; yield one row per score."""
    problem = make_problem(data, seed)
    functions: dict[str, Callable[..., Iterator[tuple[str, Any, Row]]]] = {
        "cart": _cart,
        "cart of 3 leaves": _small_cart,
        "ours re-scored": _search_and_rescore,
        "ours of 20 trials": _small_search_and_rescore,
        "joint re-scored": _joint,
        "joint of 20 trials": _small_joint,
        "grid": _grid,
        "grid of 20": _small_grid,
        "ours without optimal rules": _without_optimal,
    }
    for score, rules, row in functions[method](problem, seed, scores, trials):
        value = measure(rules, data, problem.X_test, problem.y_test, score)
        n_rules = len(rules.rules_)
        yield {"score": score, "state": "done", **value, "n_rules": n_rules, **row}


# --- untuned -------------------------------------------------------------------------------------


def _untuned_tree(parameters: Row, problem: Problem, scores: Sequence[str]) -> Iterator[Any]:
    black_box = make_counted(problem)
    start = clock()
    tree = make_extractor("cart", FrozenEstimator(black_box), **parameters).fit(problem.X_train)
    row = {"seconds": clock() - start, "calls": black_box.ledger.calls}
    for score in scores:
        yield score, tree, row | {"detail": describe_params("cart", parameters)}


def _cart(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    return _untuned_tree({"random_state": seed}, problem, scores)


def _small_cart(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    """Use the default settings of PSyKE's CART."""
    return _untuned_tree(
        {"max_leaf_nodes": 3, "max_depth": 3, "random_state": seed}, problem, scores
    )


# --- ours ----------------------------------------------------------------------------------------


def _run_search(
    problem: Problem, seed: int, trials: int, extractors: Sequence[str] | None
) -> tuple[Any, Ledger]:
    black_box = clone(make_counted(problem))
    search = ExtractorSearchCV(
        black_box,
        extractors=extractors,
        scoring=make_scorer(SCORES[0]),
        n_trials=trials,
        cv=make_splitter(problem, seed),
        random_state=seed,
    )
    return search.fit(problem.X_train, problem.y_train), black_box.ledger


def _search_and_rescore(
    problem: Problem,
    seed: int,
    scores: Sequence[str],
    trials: int,
    extractors: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Search once by ICE with equal weights; each score selects its winner among the candidates."""
    start = clock()
    search, ledger = _run_search(problem, seed, trials, extractors)
    search_seconds = clock() - start - ledger.fit_seconds
    for score in scores:
        start = clock()
        winner = search.best_for(**WEIGHTS[score])
        rules = search.make_candidate(winner).fit(problem.X_train, problem.y_train)
        yield (
            score,
            rules,
            {
                "cv": float(winner["score"]),
                "seconds": search_seconds + clock() - start,
                "calls": ledger.calls,
                "trials": len(search.leaderboard_),
                "detail": describe_params(winner["extractor"], winner["params"]),
            },
        )


def _without_optimal(
    problem: Problem, seed: int, scores: Sequence[str], trials: int
) -> Iterator[Any]:
    """Search without the extractors that are tried on small tables only."""
    return _search_and_rescore(problem, seed, scores, trials, suitable(problem.task))


def _small_search_and_rescore(
    problem: Problem, seed: int, scores: Sequence[str], trials: int
) -> Iterator[Any]:
    """Search with about as many candidates as PSyKE's tuners."""
    return _search_and_rescore(problem, seed, scores, N_SMALL)


# --- other searches with our extractors ----------------------------------------------------------


def _joint(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    """Run one Optuna study with the extractor as a hyperparameter; each score selects a winner."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = suitable(problem.task)
    spaces = {
        n: search_space(n, problem.X_train, problem.y_train, task=problem.task) for n in names
    }
    black_box = clone(make_counted(problem))
    scorers = {score: make_scorer(score) for score in SCORES}
    folds = make_splitter(problem, seed)

    def make_candidate(trial: Any) -> Any:
        name = trial.suggest_categorical("extractor", names)
        params = {
            key: _suggest(trial, f"{name}.{key}", distribution)
            for key, distribution in spaces[name].items()
        }
        return _seeded(make_extractor(name, clone(black_box), **params), seed)

    def objective(trial: Any) -> float:
        values = cross_validate(
            make_candidate(trial), problem.X_train, problem.y_train, scoring=scorers, cv=folds
        )
        means = {score: float(values[f"test_{score}"].mean()) for score in SCORES}
        trial.set_user_attr("means", means)
        return means[SCORES[0]]

    start = clock()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=trials, catch=(Exception,))
    search_seconds = clock() - start - black_box.ledger.fit_seconds
    complete = [t for t in study.trials if t.state.name == "COMPLETE"]
    for score in scores:
        start = clock()
        best = max(
            complete,
            key=lambda t, score=score: np.nan_to_num(t.user_attrs["means"][score], nan=-np.inf),
        )
        rules = make_candidate(optuna.trial.FixedTrial(best.params)).fit(
            problem.X_train, problem.y_train
        )
        yield (
            score,
            rules,
            {
                "cv": best.user_attrs["means"][score],
                "seconds": search_seconds + clock() - start,
                "calls": black_box.ledger.calls,
                "trials": len(study.trials),
                "detail": _describe_joint(best.params),
            },
        )


def _small_joint(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    return _joint(problem, seed, scores, N_SMALL)


def _describe_joint(params: dict[str, Any]) -> str:
    extractor_params = {k.split(".")[1]: v for k, v in params.items() if k != "extractor"}
    return describe_params(params["extractor"], extractor_params)


def _suggest(trial: Any, name: str, distribution: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    is_integer = isinstance(distribution, IntDistribution)
    suggest = trial.suggest_int if is_integer else trial.suggest_float
    return suggest(
        name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
    )


def _seeded(extractor: Any, seed: int) -> Any:
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=seed)
    return extractor


def _axes(name: str, problem: Problem) -> dict[str, list[Any]]:
    """Return the axes of a grid; thresholds in regression are multiples of the target's spread."""
    n = len(np.unique(problem.y_train)) if problem.task == "classification" else 2
    unit = 1.0 if problem.task == "classification" else float(np.std(problem.y_train))
    thresholds = [0.05 * unit, 0.1 * unit, 0.2 * unit]
    clusters = {"depth": [1, 2, 3], "gauss_components": [2, 5], "error_threshold": thresholds[1:]}
    grids = {
        "n_slices": [2, 3, 5],
        "importance_threshold": [0.5, 0.99],
        "depth": [1, 2],
        "threshold": thresholds[1:],
    }
    return {
        "cart": {"max_leaf_nodes": [n, n + 1, n + 2, n + 4, 8, 12, 16, 24], "max_depth": [3, 6]},
        "gridex": grids,
        "gridrex": grids,
        "iter": {"min_update": [0.15, 0.3], "n_points": [1, 2], "min_examples": [25, 100]},
        "cream": clusters,
        "exact": clusters,
        "trepan": {"max_leaf_nodes": [n, n + 1, n + 3, 8, 12], "max_literals": [1, 3]},
        "real": {"max_rules": [n, n + 1, n + 3, 8, 12], "min_precision": [0.85, 0.95]},
    }[name]


def _grid(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    """Run one grid search with as many candidates as the other methods, evenly thinned."""
    black_box = clone(make_counted(problem))
    names = suitable(problem.task)
    share, remainder = divmod(trials, len(names))
    grid = []
    for position, name in enumerate(names):
        axes = _axes(name, problem)
        points = list(dict.fromkeys(product(*axes.values())))
        n_candidates = share + (position < remainder)
        for index in np.unique(np.linspace(0, len(points) - 1, n_candidates).round().astype(int)):
            values = dict(zip(axes, points[index], strict=True))
            extractor = _seeded(make_extractor(name, clone(black_box), **values), seed)
            grid.append({"rules": [extractor]})
    start = clock()
    search = GridSearchCV(
        Pipeline([("rules", grid[0]["rules"][0])]),
        grid,
        refit=False,
        error_score=np.nan,
        scoring={score: make_scorer(score) for score in SCORES},
        cv=make_splitter(problem, seed),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(problem.X_train, problem.y_train)
    search_seconds = clock() - start - black_box.ledger.fit_seconds
    for score in scores:
        start = clock()
        means = search.cv_results_[f"mean_test_{score}"]
        best = int(np.nanargmax(means))
        rules = clone(grid[best]["rules"][0]).fit(problem.X_train, problem.y_train)
        hidden_names = ("estimator", "random_state")
        shown_params = {k: v for k, v in _changed_params(rules).items() if k not in hidden_names}
        name = type(rules).__name__.removesuffix("Extractor").lower()
        yield (
            score,
            rules,
            {
                "cv": float(means[best]),
                "seconds": search_seconds + clock() - start,
                "calls": black_box.ledger.calls,
                "trials": len(grid),
                "detail": describe_params(name, shown_params),
            },
        )


def _small_grid(problem: Problem, seed: int, scores: Sequence[str], trials: int) -> Iterator[Any]:
    return _grid(problem, seed, scores, N_SMALL)


def _changed_params(extractor: Any) -> dict[str, Any]:
    defaults = type(extractor)(extractor.estimator).get_params(deep=False)
    return {k: v for k, v in extractor.get_params(deep=False).items() if v != defaults[k]}
