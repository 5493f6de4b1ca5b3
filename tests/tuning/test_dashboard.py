"""Studies of the objective in the real optuna-dashboard."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import numpy as np
import optuna
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from skescore.scorers import make_ice_scorer
from skescore.tuning import ExtractorObjective, describe_study, open_storage

X, Y = (part[::3] for part in load_iris(return_X_y=True))


@pytest.fixture(autouse=True)
def _quiet_studies() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


# --- descriptions --------------------------------------------------------------------------------


def test_describe_study_names_a_single_score() -> None:
    study = optuna.create_study(direction="maximize")
    describe_study(
        study, scoring="ice", extractor="cart", task="classification", data="iris", X=X, cv=5
    )
    assert study.metric_names == ["ice"]
    assert study.user_attrs == {
        "scoring": "ice",
        "extractor": "cart",
        "task": "classification",
        "data": "iris (50 rows, 4 features)",
        "cv": "5 folds",
    }


def test_describe_study_accepts_scorers_splitters_and_lists() -> None:
    study = optuna.create_study()
    describe_study(study, scoring=make_ice_scorer(phi=3), X=[[1, 2]] * 7, cv=KFold(4, shuffle=True))
    assert study.metric_names == ["ice"]
    assert study.user_attrs["scoring"].startswith("ice(phi=3")
    assert study.user_attrs["data"] == "7 rows, 2 features"
    assert study.user_attrs["cv"] == "KFold(n_splits=4, random_state=None, shuffle=True)"
    describe_study(study, scoring=len, cv=[([0], [1])] * 3, data="x" * 1000)
    assert study.metric_names == ["len"]
    assert study.user_attrs["cv"] == "3 given splits"
    assert len(study.user_attrs["data"]) == 200


def test_describe_study_writes_attributes_once(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    study = optuna.create_study(storage=open_storage(path))
    describe_study(study, scoring="ice", data="iris", cv=5)
    size = path.stat().st_size
    describe_study(study, scoring="ice", data="iris", cv=5)
    assert path.stat().st_size == size
    describe_study(study, scoring="ice", cv=3)
    assert study.user_attrs == {"scoring": "ice", "data": "iris", "cv": "3 folds"}


@pytest.mark.parametrize("scoring", ["ice", ("loss", "n_rules", "size")])
def test_describe_study_needs_a_name_per_objective(scoring: Any) -> None:
    study = optuna.create_study(directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="must name each of the study's 2 objectives, got"):
        describe_study(study, scoring=scoring)
    assert study.metric_names is None
    assert study.user_attrs == {}


# --- the dashboard -------------------------------------------------------------------------------


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Keep requests out of the output of the tests."""


@pytest.fixture(params=["journal", "sqlite"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return a function that queries a dashboard started after the studies were run."""
    if not importlib.util.find_spec("optuna_dashboard"):
        assert "dashboard" not in os.environ.get("SKESCORE_ENGINES", "").split(",")
        pytest.skip("optuna-dashboard is not installed")
    url = {"journal": f"{tmp_path}/a.journal", "sqlite": f"sqlite:///{tmp_path}/a.db"}[
        request.param
    ]
    storage: Any = open_storage(url)
    run_studies(storage)
    import optuna_dashboard

    opened_storage: Any = open_storage(url)
    app = optuna_dashboard.wsgi(opened_storage)
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        # No proxy of the environment may be used for the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def get(path: str) -> str:
            with opener.open(f"http://127.0.0.1:{server.server_port}{path}", timeout=30) as answer:
                return str(answer.read().decode())

        yield get
        server.shutdown()
        thread.join()
    for one in (storage, opened_storage):
        if hasattr(one, "engine"):
            one.engine.dispose()


def run_studies(storage: Any) -> None:
    black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
    objective = ExtractorObjective(black_box, X, Y, extractor="cart", cv=3, random_state=0)
    sampler = optuna.samplers.RandomSampler(seed=0)
    about = {"task": "classification", "data": "iris", "X": X, "cv": 3, "extractor": "cart"}
    single = optuna.create_study(
        study_name="iris/cart", storage=storage, direction="maximize", sampler=sampler
    )
    describe_study(single, scoring="ice", **about)
    single.optimize(objective, n_trials=3)
    several = optuna.create_study(
        study_name="iris/cart/trade-off",
        storage=storage,
        directions=["minimize"] * 3,
        sampler=sampler,
    )
    measures = ("loss", "n_rules", "incompleteness")
    describe_study(several, scoring=measures, **about)
    for trial in single.trials:
        folds = trial.user_attrs["folds"]
        values = [
            float(np.mean([fold["loss"] for fold in folds])),
            float(np.mean([fold["n_rules"] for fold in folds])),
            1 - float(np.mean([fold["completeness_volume"] for fold in folds])),
        ]
        several.add_trial(
            optuna.create_trial(
                values=values,
                params=trial.params,
                distributions=trial.distributions,
                user_attrs=trial.user_attrs,
            )
        )


def test_dashboard_shows_names_values_and_directions(ask: Any) -> None:
    listed = json.loads(ask("/api/studies"))["study_summaries"]
    assert [study["study_name"] for study in listed] == ["iris/cart", "iris/cart/trade-off"]
    assert [study["directions"] for study in listed] == [["maximize"], ["minimize"] * 3]
    number, several = (study["study_id"] for study in listed)

    single = json.loads(ask(f"/api/studies/{number}"))
    assert single["name"] == "iris/cart"
    attributes = {entry["key"]: entry["value"] for entry in single["user_attrs"]}
    assert attributes == {
        "scoring": "ice",
        "task": "classification",
        "extractor": "cart",
        "data": "iris (50 rows, 4 features)",
        "cv": "3 folds",
    }
    assert single["objective_names"] == ["ice"]
    assert len(single["trials"]) == 3
    for trial in single["trials"]:
        assert trial["state"] == "Complete"
        retained = {entry["key"]: entry["value"] for entry in trial["user_attrs"]}
        assert retained["extractor"] == "cart"
        # The dashboard truncates a long text.
        losses = [float(text) for text in re.findall(r'"loss": ([\d.e-]+)', retained["folds"])]
        assert 2 <= len(losses) <= 3
        if len(losses) == 3:
            assert float(retained["loss"]) == pytest.approx(np.mean(losses))
        assert float(trial["values"][0]) == pytest.approx(float(retained["score"]))
        assert {entry["name"] for entry in trial["params"]} >= {"max_leaf_nodes", "max_depth"}
    # Attributes by which a table or plot may be colored.
    sortable = {entry["key"]: entry["sortable"] for entry in single["union_user_attrs"]}
    assert sortable["n_rules"]
    assert sortable["loss"]

    trade_off = json.loads(ask(f"/api/studies/{several}"))
    assert trade_off["objective_names"] == ["loss", "rules", "incompleteness"]
    assert trade_off["directions"] == ["minimize"] * 3
    values = [[float(value) for value in trial["values"]] for trial in trade_off["trials"]]
    best = {trial["number"] for trial in trade_off["best_trials"]}
    assert best == {
        n
        for n, one in enumerate(values)
        if not any(
            all(a <= b for a, b in zip(other, one, strict=True)) and other != one
            for other in values
        )
    }


def test_dashboard_table_names_values(ask: Any) -> None:
    listed = json.loads(ask("/api/studies"))["study_summaries"]
    rows = list(csv.DictReader(io.StringIO(ask(f"/csv/{listed[1]['study_id']}"))))
    assert len(rows) == 3
    assert {"Number", "State", "loss", "rules", "incompleteness"} <= set(rows[0])
    assert {row["UserAttribute extractor"] for row in rows} == {"cart"}


def test_dashboard_serves_its_page(ask: Any) -> None:
    assert "<html" in ask("/dashboard/")
