from __future__ import annotations

import json
from collections import Counter

import pytest

from skescore.bench import (
    SUITES,
    ConfigurationError,
    config_from,
    make_plan,
    read_config,
    split_rows,
    suite_config,
)
from skescore.datasets import load_dataset
from skescore.registry import DEFAULT_EXTRACTORS

BASE = {"data": ["iris"], "black_boxes": ["knn"], "extractors": ["cart"]}
TOML = """
name = "mine"
data = ["iris", {label = "houses", source = "houses.csv", target = "price", drop = "id"}]
black_boxes = [{label = "9-NN", name = "knn", scaled = false, params = {n_neighbors = 9}}]
seeds = [3, 1, 3]
folds = 2

[[extractors]]
label = "4 slices"
name = "gridex"
params = {n_slices = 4}

[[extractors]]
name = "search"
extractors = ["cart"]
trials = 5
"""


def test_config_file_sets_all_fields(tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(TOML)
    config = read_config(path)
    assert config.name == "mine"
    iris, houses = config.data
    assert (iris.label, iris.source, iris.options) == ("iris", "iris", {})
    assert houses.source == str(tmp_path / "houses.csv")
    assert houses.options == {"target": "price", "drop": "id"}
    (box,) = config.black_boxes
    assert (box.label, box.name, box.scaled) == ("9-NN", "knn", False)
    assert box.params == {"n_neighbors": 9}
    assert config.seeds == (3, 1)
    gridex, search = config.extractors
    assert (gridex.label, gridex.kind, gridex.params) == ("4 slices", "extractor", {"n_slices": 4})
    assert search.params == {"extractors": ["cart"], "trials": 5, "scoring": "ice", "cv": 3}
    assert json.loads(json.dumps(config.to_dict()))["folds"] == 2


def test_config_reads_the_default_search():
    search = {"name": "search", "extractors": "default", "trials": 1}
    base = {"data": ["iris"], "black_boxes": ["knn"]}
    (entry,) = config_from(base | {"extractors": [search]}).extractors
    assert entry.params["extractors"] is None
    with pytest.raises(ConfigurationError, match='or "default", got'):
        config_from(base | {"extractors": [search | {"extractors": "all"}]})


def test_config_paths_are_relative_to_its_folder(tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(
        "data = ['iris']\nblack_boxes = ['a.skops', {label = 'b', file = 'models/x.joblib'}]\n"
    )
    (tmp_path / "models").mkdir()
    (tmp_path / "a.skops").write_bytes(b"1")
    (tmp_path / "models" / "x.joblib").write_bytes(b"2")
    first, second = read_config(path).black_boxes
    assert (first.label, first.kind, first.name) == ("a", "file", str(tmp_path / "a.skops"))
    assert (second.label, second.name) == ("b", str(tmp_path / "models" / "x.joblib"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": [1]}, r"the configuration has no 'seed'. Did you mean 'seeds'\?"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds, .* got 0"),
        ({"data": []}, "data must be a list with at least one entry"),
        (
            {"extractors": [{"name": "search", "extractors": 2.5}]},
            "the extractors of a search must be a list of names, .* got 2.5",
        ),
        ({"data": "iris"}, "data must be a list with at least one entry, got 'iris'"),
        ({"data": ["iris", "iris"]}, "data: 'iris' occurs more than once; give each entry"),
        ({"data": [{"name": "iris"}]}, "an entry of data has no 'name'"),
        ({"black_boxes": ["knm"]}, r"there is no black box 'knm'. Did you mean 'knn'\?"),
        (
            {"black_boxes": [{"name": "knn", "params": {"neighbors": 9}}]},
            r"black_boxes, 'knn': .* has no parameter 'neighbors'. Did you mean 'n_neighbors'\?",
        ),
        ({"black_boxes": ["no_such.skops"]}, "there is no file 'no_such.skops' with a model"),
        (
            {"black_boxes": [{"file": "model.h5"}]},
            r"must end in one of \.skops, .*, got 'model.h5'",
        ),
        ({"black_boxes": [{"file": "a.pkl", "params": {}}]}, "with a file has no 'params'"),
        ({"black_boxes": ["model.h5"]}, r"a trained model ends in one of \.skops"),
        ({"black_boxes": [{"name": "knn", "scaled": 0}]}, "scaled must be true or false, got 0"),
        ({"extractors": ["gridx"]}, r"there is no extractor 'gridx'. Did you mean 'gridex'\?"),
        (
            {"extractors": [{"name": "cart", "params": {"leaf_nodes": 3}}]},
            r"'cart': .* has no parameter 'leaf_nodes'. Did you mean 'max_leaf_nodes'\?",
        ),
        ({"extractors": [{"name": "cart", "data": ["wine"]}]}, "data names 'wine', which is no"),
        ({"extractors": ["no_such.json"]}, "there is no file 'no_such.json' with rules"),
        ({"extractors": [{"name": "search", "trials": 1}]}, "trials must be an integer of at leas"),
        ({"extractors": [{"name": "search", "scoring": "icy"}]}, "'icy'"),
        ({"extractors": [{"name": "search", "budget": 3}]}, "has no 'budget'"),
        ({"seeds": [-1]}, "seeds must be integers from 0 to 4294967295, got -1"),
        ({"seeds": [True]}, "seeds must be integers .* got True"),
        ({"seeds": []}, "seeds must hold at least one integer"),
        ({"folds": 2.5}, "folds must be an integer of at least 0"),
        ({"folds": True}, "folds must be an integer of at least 0"),
        ({"test_size": 1}, "test_size must be between 0 and 1, got 1"),
    ],
)
def test_config_rejects_invalid_values(change, says):
    with pytest.raises(ConfigurationError, match=says):
        config_from(BASE | change)


def test_read_config_rejects_other_files(tmp_path):
    path = tmp_path / "bench.toml"
    with pytest.raises(ConfigurationError, match=r"There is no file .*bench\.toml"):
        read_config(path)
    path.write_text("data = [")
    with pytest.raises(ConfigurationError, match=r"bench\.toml is not TOML"):
        read_config(path)
    path.write_text("data = ['iris']\nblack_boxes = ['knm']")
    with pytest.raises(ConfigurationError, match=r"bench\.toml: black_boxes: there is no black"):
        read_config(path)
    path.write_bytes(b"data = ['\xff']")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_config(path)
    with pytest.raises(ConfigurationError, match="is a folder"):
        read_config(tmp_path)


#: Suites whose tables are fetched, and their numbers of tables for each task.
FETCHED = {
    "keel-balanced": {"classification": 43},
    "keel-imbalanced": {"classification": 100},
    "regression": {"regression": 28},
    "categorical": {"classification": 19},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.engine if n in FETCHED else ()) for n in SUITES]
)
def test_suites_have_valid_configurations(name):
    plan = make_plan(suite_config(name))
    assert plan.cells
    assert len(set(plan.cells)) == len(plan.cells)
    if name in FETCHED:
        assert Counter(table.task for table in plan.datasets.values()) == FETCHED[name]
    if name == "categorical":
        assert all(table.categories for table in plan.datasets.values())


@pytest.mark.parametrize("name", FETCHED)
def test_suites_label_each_table(name):
    config = suite_config(name)
    assert len({entry.label for entry in config.data}) == sum(FETCHED[name].values())
    assert (len(config.black_boxes), config.seeds, config.folds) == (2, (0, 1), 1)


def test_paper_suites_match_the_papers():
    fire = suite_config("paper-fire")
    assert [entry.source for entry in fire.data] == ["iris"]
    assert fire.black_boxes[0].params == {"n_neighbors": 9}
    assert len(fire.extractors) == 7  # rows of FiRe's Table 1, without the black box
    ice = suite_config("paper-ice")
    assert [entry.source for entry in ice.data] == ["wine", "breast_cancer"]
    assert {entry.label for entry in ice.extractors} == {"exact", "cream", "iter", "gridex", "cart"}
    with pytest.raises(ConfigurationError, match=r"Did you mean 'smoke'\?"):
        suite_config("smok")


def test_plan_skips_unsuitable_extractors():
    plan = make_plan(
        config_from(
            BASE | {"data": ["iris", "diabetes"], "extractors": ["cart", "gridrex", "trepan"]}
        )
    )
    pairs = {(cell.data, cell.extractor) for cell in plan.cells}
    assert pairs == {
        ("iris", "cart"),
        ("iris", "trepan"),
        ("diabetes", "cart"),
        ("diabetes", "gridrex"),
    }
    assert plan.notes == [
        "gridrex is skipped on iris: it is for regression only",
        "trepan is skipped on diabetes: it is for classification only",
    ]
    with pytest.raises(ValueError, match="'gridrex' fits none of the data sets: on iris"):
        make_plan(config_from(BASE | {"extractors": ["gridrex"]}))


def test_plan_skips_default_extractors_of_another_task():
    defaults = {key: value for key, value in BASE.items() if key != "extractors"}
    plan = make_plan(config_from(defaults | {"data": ["iris"]}))
    names = {cell.extractor for cell in plan.cells}
    assert names == set(DEFAULT_EXTRACTORS) - {"gridrex"}
    assert "gridrex is skipped on iris: it is for regression only" in plan.notes


def test_plan_rejects_more_folds_than_rows():
    with pytest.raises(ValueError, match="iris needs at least 151 rows, got 150"):
        make_plan(config_from(BASE | {"folds": 151}))


def test_split_rows_depends_on_the_seed_only():
    iris = load_dataset("iris")
    first, second = (list(split_rows(iris, 7, 3, 0.5)) for _ in range(2))
    other = list(split_rows(iris, 8, 3, 0.5))
    assert all((a[1] == b[1]).all() for a, b in zip(first, second, strict=True))
    assert not all((a[1] == b[1]).all() for a, b in zip(first, other, strict=True))
    held_out = sorted(row for _, test in first for row in test)
    assert held_out == list(range(150))
    for train, test in first:
        assert not set(train) & set(test)
        assert set(iris.y.iloc[test].value_counts()) <= {16, 17}  # stratified
    ((train, test),) = split_rows(iris, 0, 1, 0.2)
    assert (len(train), len(test)) == (120, 30)
    ((train, test),) = split_rows(iris, 0, 0, 0.5)
    assert (train == test).all()
