"""Extractors that installed packages register by entry points, in searches and by name.

``tests/plugin`` is such a package; pip installs it into a folder of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib.externals.loky import get_reusable_executor
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors.psyke import check_parameters
from skescore.registry import (
    EXTRACTORS,
    PSYKE_EXTRACTORS,
    extractor_class,
    extractor_names,
    extractor_spec,
    make_extractor,
    registered_name,
    suitable_extractors,
)
from skescore.testing import check_extractor
from skescore.tuning import ExtractorObjective, ExtractorSearchCV, search_space
from skescore.tuning.spaces import starting_points

PLUGIN = Path(__file__).parents[1] / "plugin"
X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]
BLACK_BOX = DecisionTreeClassifier(max_depth=3, random_state=0)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder into which pip installed the package."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed here")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([*command, str(PLUGIN)], check=True, capture_output=True, text=True)
    return folder


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget packages that a test has imported."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0].startswith(("their_", "other_")):
            del sys.modules[name]


@pytest.fixture
def plugin(installed: Path, monkeypatch: pytest.MonkeyPatch, forget: None) -> Path:
    monkeypatch.syspath_prepend(installed)
    # Worker processes of other tests do not search there.
    get_reusable_executor().shutdown(wait=True)
    return installed


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: None) -> Callable[..., Path]:
    """Install a package of one module by hand, as an installer does."""

    def install(package: str, code: str, **entries: str) -> Path:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        info = tmp_path / f"{module}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
        lines = [f"{name.replace('__', '-')} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[skescore.extractors]", *lines]))
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    return install


# --- a valid package ---


def test_plugin_is_found_by_name(plugin: Path) -> None:
    assert extractor_names()[-1] == "their-name"
    spec = extractor_spec("their-name")
    assert spec.location == "their_package:TheirExtractor"
    assert spec.tasks == ("classification", "regression")
    assert spec.summary == "Bands along the feature that tells most."
    assert not spec.takes_categories
    kind = extractor_class("their-name")
    assert (kind.__name__, kind.__module__) == ("TheirExtractor", "their_package")
    extractor = make_extractor("their-name", BLACK_BOX, n_bands=3)
    assert (extractor.estimator, extractor.n_bands) == (BLACK_BOX, 3)
    assert registered_name(extractor) == "their-name"
    assert registered_name(make_extractor("cart", BLACK_BOX)) == "cart"


def test_default_extractors_exclude_plugins(plugin: Path) -> None:
    assert set(suitable_extractors("regression")) <= set(EXTRACTORS)
    names = suitable_extractors("regression", plugins=True)
    assert names == (*suitable_extractors("regression"), "their-name")
    assert "their-name" not in suitable_extractors("regression", categories=True, plugins=True)


def test_plugin_passes_estimator_checks(plugin: Path) -> None:
    for model in (LogisticRegression(), LinearRegression()):
        check_extractor(make_extractor("their-name", model), exclude=["check_hash_seed"])


def test_plugin_declares_space_and_starting_points(plugin: Path) -> None:
    space = search_space("their-name", X, LABELS)
    assert space == {"n_bands": IntDistribution(2, 6)}
    assert search_space("their-name", X, CODES.astype(float)) == {"n_bands": IntDistribution(2, 9)}
    assert search_space("their-name", X[:4], LABELS[:4]) == {"n_bands": IntDistribution(2, 4)}
    assert starting_points("their-name", space, LABELS, "classification") == [{"n_bands": 4}]
    narrow = {"n_bands": IntDistribution(2, 3)}
    assert starting_points("their-name", narrow, LABELS, "classification") == []


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_finds_plugin(plugin: Path, n_jobs: int) -> None:
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=("cart", "their-name"),
        n_trials=6,
        cv=3,
        pruner=None,
        random_state=0,
        n_jobs=n_jobs,
    ).fit(X, LABELS)
    assert set(search.leaderboard_["extractor"]) == {"cart", "their-name"}
    assert set(search.leaderboard_["state"]) == {"complete"}
    trials = search.studies_["their-name"].trials
    assert trials[0].params == {"n_bands": 4}  # their own starting point
    alone = ExtractorSearchCV(
        BLACK_BOX, extractors=("their-name",), n_trials=3, cv=3, random_state=0
    ).fit(X, LABELS)
    assert alone.best_name_ == "their-name"
    assert type(alone.best_extractor_).__name__ == "TheirExtractor"
    assert registered_name(alone.best_extractor_) == "their-name"
    assert alone.best_score_ > 0.9
    assert alone.rules_.feature_names == ("x0", "x1", "x2", "x3")


def test_running_processes_find_a_later_plugin(
    installed: Path, monkeypatch: pytest.MonkeyPatch, forget: None
) -> None:
    settings: dict[str, Any] = {"n_trials": 2, "cv": 2, "random_state": 0, "n_jobs": 2}
    ExtractorSearchCV(BLACK_BOX, extractors=("cart",), **settings).fit(X, LABELS)
    monkeypatch.syspath_prepend(installed)
    search = ExtractorSearchCV(BLACK_BOX, extractors=("their-name",), **settings).fit(X, LABELS)
    assert set(search.leaderboard_["state"]) == {"complete"}


def test_objective_finds_plugin(plugin: Path) -> None:
    objective = ExtractorObjective(BLACK_BOX, X, LABELS, extractor="their-name", cv=3)
    assert objective.name == "their-name"
    assert objective(optuna.trial.FixedTrial({"n_bands": 4})) > 0.9
    prototype = make_extractor("their-name", BLACK_BOX, uncovered="nearest")
    objective = ExtractorObjective(BLACK_BOX, X, LABELS, extractor=prototype, cv=3)
    assert (objective.name, objective.prototype.uncovered) == ("their-name", "nearest")


@pytest.mark.slow
def test_command_line_finds_plugin(installed: Path) -> None:
    command = [sys.executable, "-m", "skescore", "tune", "iris", "--extractors", "their-name"]
    command += ["--trials", "2", "--cv", "2", "--black-box", "decision-tree", "--format", "json"]
    run = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr
    assert '"their-name"' in run.stdout


# --- invalid packages ---


@pytest.mark.slow
def test_plugins_are_imported_on_use(plugin: Path, install: Callable[..., Path]) -> None:
    folder = install("their-broken", "raise RuntimeError('bang')", broken="their_broken:Extractor")
    program = """
import json, sys
import skescore, skescore.extractors, skescore.tuning, skescore.testing
from skescore.registry import *
from sklearn.linear_model import LogisticRegression
names = extractor_names()
suitable_extractors("classification")
extractor_class("cart")
registered_name(make_extractor("cart", LogisticRegression()))
early = [m for m in sys.modules if m.startswith("their_")]
kind = extractor_class("their-name")
late = [m for m in sys.modules if m.startswith("their_")]
json.dump([names, early, late, kind.__name__], sys.stdout)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(plugin), str(folder)])},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    names, early, late, kind = json.loads(run.stdout)
    assert names[-2:] == ["broken", "their-name"]
    assert early == []
    assert (late, kind) == (["their_package"], "TheirExtractor")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise RuntimeError('bang')", r"\(RuntimeError: bang\)"),
        ("import no_such_module", r"\(ModuleNotFoundError: No module named 'no_such_module'\)"),
        ("def broken(", r"\(SyntaxError: "),
        ("x = 1", r"\(AttributeError: .*Extractor"),
    ],
)
def test_plugin_with_import_error_is_named(
    install: Callable[..., Path], code: str, message: str
) -> None:
    install("their-broken", code, broken="their_broken:Extractor")
    for use in (
        extractor_class,
        extractor_spec,
        lambda name: search_space(name, X, LABELS),
        lambda name: make_extractor(name, BLACK_BOX),
        lambda name: ExtractorSearchCV(BLACK_BOX, extractors=(name,)).fit(X, LABELS),
    ):
        with pytest.raises(
            ImportError,
            match=r"extractor 'broken' of the package 'their-broken' \('their_broken:Extractor'\), "
            rf"entry point 'broken' of 'skescore.extractors', cannot be imported {message}.*"
            "uninstall that package",
        ):
            use("broken")
    with pytest.raises(ImportError, match="their-broken"):
        suitable_extractors("regression", plugins=True)
    assert "broken" in extractor_names()
    assert extractor_class("gridex")
    assert registered_name(make_extractor("gridex", BLACK_BOX)) == "gridex"


GOOD = """
    from skescore.extractors import CARTExtractor

    class Extractor(CARTExtractor):
        pass
"""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Extractor = 3", "must be a class with fit, got 3"),
        ("class Extractor: pass", "must be a class with fit, got <class"),
        ("class Extractor:\n    def fit(self): pass", "must declare its tasks .* got None"),
        (GOOD + "        tasks = ('ranking',)", r"must declare its tasks .* got \('ranking',\)"),
        (GOOD + "        tasks = ()", r"must declare its tasks .* got \(\)"),
        (GOOD + "        tasks = 'regression'", "must declare its tasks .* got 'regression'"),
    ],
)
def test_plugin_that_is_no_extractor_is_named(
    install: Callable[..., Path], code: str, message: str
) -> None:
    install("their-broken", code, broken="their_broken:Extractor")
    with pytest.raises(TypeError, match=rf"the package 'their-broken'.* {message}"):
        extractor_class("broken")


def test_plugin_cannot_take_a_built_in_name(install: Callable[..., Path]) -> None:
    install("their-thief", GOOD, gridex="their_thief:Extractor", thief="their_thief:Extractor")
    for name in ("gridex",):
        with pytest.raises(
            ValueError,
            match=r"'gridex' belongs to skescore, but the package 'their-thief' "
            r"\('their_thief:Extractor'\) registers",
        ):
            extractor_class(name)
    assert extractor_class("cart")
    assert extractor_names().count("gridex") == 1
    assert registered_name(make_extractor("thief", BLACK_BOX)) == "thief"


def test_plugins_with_one_name_are_both_named(install: Callable[..., Path]) -> None:
    install("their-first", GOOD, twice="their_first:Extractor")
    install("other-second", GOOD, twice="other_second:Extractor", once="other_second:Extractor")
    with pytest.raises(ValueError, match=r"Several packages register .* 'twice'") as caught:
        extractor_class("twice")
    assert "the package 'their-first' ('their_first:Extractor')" in str(caught.value)
    assert "the package 'other-second' ('other_second:Extractor')" in str(caught.value)
    assert extractor_class("once").__module__ == "other_second"


def test_entry_point_may_name_extra_and_nested_class(install: Callable[..., Path]) -> None:
    code = GOOD + "\n    class Home:\n        Inner = Extractor\n"
    install("their-nested", code, nested="their_nested:Home.Inner [fast]")
    extractor = make_extractor("nested", BLACK_BOX)
    assert type(extractor).__name__ == "Extractor"
    assert registered_name(extractor) == "nested"


def test_plugin_without_space_needs_one_from_caller(
    install: Callable[..., Path],
) -> None:
    install("their-plain", GOOD, plain="their_plain:Extractor")
    message = r"'plain' has no search space: Extractor lacks search_space\(n_rows, y, task\)"
    with pytest.raises(ValueError, match=message):
        search_space("plain", X, LABELS)
    with pytest.raises(ValueError, match=message):
        ExtractorSearchCV(BLACK_BOX, extractors=("plain",)).fit(X, LABELS)
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=("plain",),
        n_trials=3,
        cv=2,
        random_state=0,
        spaces={"plain": {"max_leaf_nodes": IntDistribution(2, 4)}},
    ).fit(X, LABELS)
    assert search.best_name_ == "plain"


def test_search_accepts_plugin_without_base_class(install: Callable[..., Path]) -> None:
    code = (PLUGIN.parent / "testing" / "duck_extractor.py").read_text(encoding="utf-8")
    install("their-duck", code, duck="their_duck:OneCut")
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=("duck", "cart"),
        spaces={"duck": {}},
        n_trials=4,
        cv=3,
        pruner=None,
        random_state=0,
    ).fit(X, LABELS)
    ducks = search.leaderboard_[search.leaderboard_["extractor"] == "duck"]
    assert set(ducks["state"]) == {"complete"}
    assert set(ducks["n_rules"]) == {2}
    assert ducks["black_box_rows"].isna().all()  # it does not count its queries
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ExtractorSearchCV(BLACK_BOX, extractors=("duck",)).fit(X, LABELS[:-1])


def test_plugin_with_invalid_space_is_rejected(install: Callable[..., Path]) -> None:
    code = GOOD + (
        "        @staticmethod\n        def search_space(n_rows, y, task):\n"
        "            return {'max_leaf_nodes': (2, 8)}\n"
    )
    install("their-space", code, space="their_space:Extractor")
    with pytest.raises(TypeError, match=r"search space of 'space' must be a dict .* \(2, 8\)"):
        search_space("space", X, LABELS)


def test_plugin_that_does_not_do_the_task_is_rejected(install: Callable[..., Path]) -> None:
    install("their-task", GOOD + "        tasks = ('regression',)", task="their_task:Extractor")
    with pytest.raises(ValueError, match=r"'task' does regression only, but .* classification"):
        ExtractorSearchCV(BLACK_BOX, extractors=("task",)).fit(X, LABELS)


# --- names that fix settings ---

SPACES = [(name, task) for name, spec in PSYKE_EXTRACTORS.items() for task in spec.tasks]
TARGETS: dict[str, Any] = {"classification": LABELS, "regression": X[:, 3] + X[:, 0]}


def points_of(space: dict[str, BaseDistribution]) -> st.SearchStrategy[dict[str, Any]]:
    def values(distribution: BaseDistribution) -> st.SearchStrategy[Any]:
        if isinstance(distribution, CategoricalDistribution):
            return st.sampled_from(distribution.choices)
        if isinstance(distribution, IntDistribution):
            return st.integers(distribution.low, distribution.high)
        assert isinstance(distribution, FloatDistribution)
        return st.floats(distribution.low, distribution.high)

    return st.fixed_dictionaries({name: values(d) for name, d in space.items()})


@pytest.mark.parametrize(("name", "task"), SPACES)
@settings(max_examples=25)
@given(data=st.data())
def test_psyke_spaces_contain_valid_points(name: str, task: str, data: st.DataObject) -> None:
    n_rows = data.draw(st.sampled_from([6, 150]))
    space = search_space(name, X[:n_rows], TARGETS[task][:n_rows], task=task)
    check_parameters(name.removeprefix("psyke:"), data.draw(points_of(space)), task)


@pytest.mark.parametrize(("name", "task"), SPACES)
def test_psyke_spaces_contain_their_starting_points(name: str, task: str) -> None:
    y = TARGETS[task]
    space = search_space(name, X, y, task=task)
    points = starting_points(name, space, y, task)
    assert bool(points) == bool(space)


@pytest.mark.parametrize(("name", "task"), SPACES)
def test_objective_uses_named_algorithm(name: str, task: str) -> None:
    black_box = LogisticRegression() if task == "classification" else LinearRegression()
    y = TARGETS[task]
    objective = ExtractorObjective(black_box, X, y, extractor=name, cv=2)
    assert objective.name == name
    assert objective.prototype.algorithm == name.removeprefix("psyke:")


@pytest.mark.skipif(importlib.util.find_spec("psyke") is None, reason="PSyKE is not installed")
@pytest.mark.parametrize(
    "name", ["psyke:cart", pytest.param("psyke:gridex", marks=pytest.mark.slow)]
)
def test_search_finds_psyke(name: str) -> None:
    search = ExtractorSearchCV(BLACK_BOX, extractors=(name,), n_trials=1, cv=2, random_state=0)
    search.fit(X, LABELS)
    assert set(search.leaderboard_["extractor"]) == {name}
    assert set(search.leaderboard_["state"]) == {"complete"}, search.leaderboard_["error"].tolist()
    assert search.best_extractor_.algorithm == name.removeprefix("psyke:")
    assert registered_name(search.best_extractor_) == name
