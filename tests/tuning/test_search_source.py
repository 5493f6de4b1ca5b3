"""Searches on a sample of a data source, whose finalists are compared on all rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from skescore.black_boxes import make_black_box
from skescore.cli import main
from skescore.metrics import RuleCounts
from skescore.rules import RuleSet
from skescore.scorers import make_ice_scorer
from skescore.sources import DataSource
from skescore.tuning import N_FINALISTS, ExtractorSearchCV


def iris_rows() -> pd.DataFrame:
    X, y = load_iris(return_X_y=True, as_frame=True)
    kinds = np.array(["setosa", "versicolor", "virginica"])[y]
    return pd.concat([X.assign(kind=kinds)] * 4, ignore_index=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow")
    rows_folder = tmp_path / "rows"
    rows_folder.mkdir()
    for part in range(3):
        iris_rows()[part::3].to_parquet(rows_folder / f"part{part}.parquet", index=False)
    return rows_folder


def make_search(**options) -> ExtractorSearchCV:
    settings = {
        "extractors": ("cart", "gridex"),
        "n_trials": 6,
        "cv": StratifiedKFold(2, shuffle=True, random_state=0),
        "sample_rows": 150,
        "random_state": 0,
    }
    black_box = make_black_box("decision-tree", "classification", 0, ())
    return ExtractorSearchCV(black_box, **(settings | options))


def test_search_selects_the_best_finalist_on_all_rows(folder) -> None:
    search = make_search().fit(DataSource(folder, "kind"))
    assert len(search.data_) == 150
    rows = iris_rows()
    score = make_ice_scorer()(search.rules_, rows.drop(columns="kind"), rows["kind"])
    assert 1 < len(search.finalists_) <= N_FINALISTS
    assert search.finalists_["score"].max() == pytest.approx(score)
    best = search.finalists_.loc[search.finalists_["score"].idxmax()]
    first = search.leaderboard_.iloc[0]
    assert (first["extractor"], first["trial"]) == (best["extractor"], best["trial"])
    assert not search.picked_


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["data", "black_box"])
def test_search_on_a_source_equals_the_command_line(folder, capsys, reference) -> None:
    search = make_search(scoring=make_ice_scorer(reference=reference))
    search.fit(DataSource(folder, "kind"))
    search.avoid_idle_features()
    text = (
        f"tune {folder} --target kind --sample 150 --black-box decision-tree --trials 6 --cv 2 "
        f"--extractors cart,gridex --reference {reference.replace('_', '-')} --format json --quiet"
    )
    assert main(text.split()) == 0
    result = json.loads(capsys.readouterr().out)
    assert RuleSet.from_json(json.dumps(result["rules"])) == search.rules_
    assert result["all_rows"]["finalists"] == search.finalists_.to_dict(orient="records")


@pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning")
@pytest.mark.parametrize(
    "options", [{"scoring": ("loss", "n_rules")}, {"class_weight": "balanced"}]
)
def test_search_keeps_winner_if_counts_cannot_judge(options) -> None:
    search = make_search(n_trials=2, **options).fit(DataSource([iris_rows()], "kind"))
    assert search.finalists_ is None
    assert len(search.rules_)


def test_search_without_refit_compares_no_finalists() -> None:
    search = make_search(n_trials=2, refit=False).fit(DataSource([iris_rows()], "kind"))
    assert not hasattr(search, "finalists_")


def test_search_uses_the_weights_of_a_source() -> None:
    rows = iris_rows().assign(weight=2.0)
    search = make_search(n_trials=2).fit(DataSource([rows], "kind", "weight"))
    assert "weight" not in search.feature_names_in_
    assert set(search.data_.row_weights) == {2.0}


@pytest.mark.slow
def test_failed_comparison_keeps_the_winner_on_the_sample() -> None:
    class BrokenSource(DataSource):
        def count_rows(self, rules: RuleSet, black_box=None) -> RuleCounts:
            raise ConnectionError("lost")

    rows = iris_rows()
    search = make_search().fit(rows.drop(columns="kind"), rows["kind"])
    winner = search.rules_
    with pytest.raises(ConnectionError, match="lost"):
        search.compare_on_source(BrokenSource([rows], "kind"))
    assert search.rules_ == winner


@pytest.mark.parametrize("argument", ["y", "groups", "sample_weight"])
def test_fit_rejects_labels_with_source(argument) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be None"):
        make_search().fit(DataSource([iris_rows()], "kind"), **{argument: np.ones(600)})


def test_fit_needs_a_source_with_target_and_enough_rows() -> None:
    with pytest.raises(ValueError, match="target"):
        make_search().fit(DataSource([iris_rows()]))
    with pytest.raises(ValueError, match=r"sample_rows.*got 3"):
        make_search(sample_rows=3).fit(DataSource([iris_rows()], "kind"))
