"""The table of extractors."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from optuna.distributions import IntDistribution
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import skescore
from skescore import extractors
from skescore.extractors import BaseExtractor, CARTExtractor, GridExExtractor
from skescore.extractors.psyke import ALGORITHMS
from skescore.registry import (
    DEFAULT_EXTRACTORS,
    EXTRACTORS,
    PSYKE_EXTRACTORS,
    SMALL_TABLE,
    extractor_class,
    extractor_names,
    extractor_spec,
    make_extractor,
    register_extractor,
    registered_name,
    suitable_extractors,
)

IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_specs_are_read_from_the_class(name: str) -> None:
    kind = extractor_class(name)
    assert issubclass(kind, BaseExtractor)
    assert EXTRACTORS[name].tasks == kind.tasks
    assert EXTRACTORS[name].summary


def test_public_extractors_are_registered_once() -> None:
    public = {
        value
        for name in extractors.__all__
        if inspect.isclass(value := getattr(extractors, name))
        and issubclass(value, BaseExtractor)
        and not inspect.isabstract(value)
    }
    # One class of many names, one that needs a learner, and one that needs earlier rules.
    public -= {
        extractor_class("psyke:cart"),
        extractors.SurrogateExtractor,
        extractors.RevisedRulesExtractor,
    }
    registered = [extractor_class(name) for name in EXTRACTORS]
    assert set(registered) == public
    assert len(registered) == len(public)


@pytest.mark.parametrize("name", EXTRACTORS)
@pytest.mark.parametrize("model", [LogisticRegression(), LinearRegression()])
def test_extractors_need_only_a_black_box(name: str, model: Any) -> None:
    extractor = extractor_class(name)(model)
    assert extractor.get_params()["estimator"] is model
    assert registered_name(extractor) == name


def test_registered_name_is_none_for_other_classes() -> None:
    class Other(CARTExtractor):
        pass

    impostor = type("CARTExtractor", (GridExExtractor,), {})
    assert registered_name(Other(LogisticRegression())) is None
    assert registered_name(impostor(LogisticRegression())) is None
    assert registered_name(LogisticRegression()) is None


def test_extractor_class_lists_names_for_an_unknown_one() -> None:
    with pytest.raises(ValueError, match=r"no extractor 'gridx'\. Did you mean 'gridex'"):
        extractor_class("gridx")
    with pytest.raises(ValueError, match="Known: " + ", ".join([*EXTRACTORS][:4])):
        extractor_class("something else")


def test_extractor_names_are_unique_and_start_built_in() -> None:
    names = extractor_names()
    assert len(set(names)) == len(names)
    assert names[: len(EXTRACTORS)] == tuple(EXTRACTORS)
    assert set(PSYKE_EXTRACTORS) < set(names)


# --- names that a program adds -------------------------------------------------------------------


class Stump(CARTExtractor):
    """One split."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skescore.registry._REGISTERED", {})


def test_register_extractor_adds_a_name(fresh: None) -> None:
    space = {"max_depth": IntDistribution(1, 2)}
    skescore.register_extractor("stump", Stump, space)
    assert "stump" in extractor_names()
    spec = extractor_spec("stump")
    assert (spec.tasks, spec.summary) == (("classification", "regression"), "One split.")
    assert spec.takes_categories
    assert extractor_class("stump") is Stump
    assert registered_name(make_extractor("stump", LogisticRegression())) == "stump"
    assert registered_name(CARTExtractor(LogisticRegression())) == "cart"
    assert "stump" not in suitable_extractors("regression")
    assert suitable_extractors("regression", plugins=True)[-1] == "stump"
    assert skescore.search_space("stump", *IRIS) == space


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_uses_a_registered_extractor(fresh: None, n_jobs: int) -> None:
    class Local(CARTExtractor):  # worker processes cannot import it
        pass

    register_extractor("local", Local, lambda n, y, task: {"max_depth": IntDistribution(1, 2)})
    search = skescore.ExtractorSearchCV(
        DecisionTreeClassifier(),
        extractors=("local", "cart"),
        n_trials=4,
        cv=2,
        random_state=0,
        n_jobs=n_jobs,
    ).fit(*IRIS)
    assert set(search.leaderboard_["extractor"]) == {"local", "cart"}
    assert set(search.leaderboard_["state"]) == {"complete"}
    row = search.leaderboard_.query("extractor == 'local'").iloc[0]
    assert type(search.make_candidate(row)) is Local


def test_register_extractor_rejects_a_taken_name(fresh: None) -> None:
    for taken in ("cart", "psyke:cart"):
        with pytest.raises(ValueError, match=f"The name '{taken}' is taken .* Choose another"):
            register_extractor(taken, Stump, replace=True)
    register_extractor("stump", Stump)
    with pytest.raises(ValueError, match=r"'stump' is taken .* replace=True"):
        register_extractor("stump", GridExExtractor)
    register_extractor("stump", GridExExtractor, replace=True)
    assert extractor_class("stump") is GridExExtractor


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", Stump), "name must be a non-empty string, got ''"),
        ((Stump, "stump"), "name must be a non-empty string"),
        (("stump", Stump(LogisticRegression())), "'stump' must be a class with fit, got Stump"),
        (("stump", LogisticRegression), "'stump' must declare its tasks .* got None"),
        (("stump", Stump, [3]), r"search_space must be a dict .* got \[3\]"),
    ],
)
def test_register_extractor_checks_arguments(fresh: None, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        register_extractor(*arguments)


# --- names that fix settings ---------------------------------------------------------------------


def test_psyke_algorithms_are_registered_with_their_tasks() -> None:
    tasks = {name: spec.tasks for name, spec in PSYKE_EXTRACTORS.items()}
    assert tasks == {f"psyke:{name}": algorithm.tasks for name, algorithm in ALGORITHMS.items()}
    for spec in PSYKE_EXTRACTORS.values():
        assert spec.summary.startswith("PSyKE's ")
        assert spec.extra == "psyke"
        assert not spec.takes_categories


def test_default_extractors_need_no_extras() -> None:
    for task in ("classification", "regression"):
        assert set(suitable_extractors(task)) <= set(EXTRACTORS)
    assert all(spec.extra is None and not spec.settings for spec in EXTRACTORS.values())


@pytest.mark.parametrize("name", PSYKE_EXTRACTORS)
def test_make_extractor_sets_what_the_name_fixes(name: str) -> None:
    extractor = make_extractor(name, LogisticRegression(), uncovered="nearest")
    assert type(extractor) is extractor_class(name)
    assert extractor.algorithm == name.removeprefix("psyke:")
    assert extractor.uncovered == "nearest"
    assert registered_name(extractor) == name
    assert registered_name(clone(extractor)) == name
    assert registered_name(extractor.set_params(algorithm="no such thing")) is None


def test_make_extractor_rejects_fixed_parameters() -> None:
    with pytest.raises(TypeError, match=r"'psyke:gridex' fixes algorithm='gridex', got alg"):
        make_extractor("psyke:gridex", LogisticRegression(), algorithm="hex")


@pytest.mark.parametrize("name", EXTRACTORS)
def test_make_extractor_makes_built_in_extractors(name: str) -> None:
    extractor = make_extractor(name, LogisticRegression(), uncovered="abstain")
    assert type(extractor) is extractor_class(name)
    assert (extractor.uncovered, registered_name(extractor)) == ("abstain", name)


@pytest.mark.parametrize("name", ["psyke:grid", "psyke", "", None, 3])
def test_lookups_reject_unknown_names(name: Any) -> None:
    for look_up in (extractor_class, extractor_spec):
        with pytest.raises(ValueError, match=f"no extractor {name!r}"):
            look_up(name)
    with pytest.raises(ValueError, match=r"Did you mean 'psyke:gridex'\?"):
        extractor_spec("psyke:gridexx")


def test_slow_extractors_are_defaults_on_small_tables_only():
    always = suitable_extractors("classification")
    assert suitable_extractors("classification", n_rows=SMALL_TABLE + 1) == always
    further = ("optimal-list", "optimal-tree")
    for categories in (False, True):
        names = suitable_extractors("classification", categories=categories, n_rows=SMALL_TABLE)
        assert names == (*always, *further)
    assert not {*further} & {*suitable_extractors("regression", n_rows=10), *DEFAULT_EXTRACTORS}
