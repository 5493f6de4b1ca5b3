from __future__ import annotations

import json
import math

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor, ExtractorSearchCV, fire_score, ice_score, q_score
from skescore.bench import (
    BenchCallback,
    FolderInUseError,
    config_from,
    make_plan,
    read_rows,
    run_bench,
    split_rows,
)
from skescore.black_boxes import make_black_box
from skescore.datasets import load_dataset


def callback(**methods):
    """Return a callback with some methods replaced by functions."""
    result = BenchCallback()
    result.__dict__.update(methods)
    return result


BASE = {
    "data": ["iris"],
    "black_boxes": [{"name": "knn", "scaled": False}],
    "extractors": [
        {"name": "cart", "params": {"max_leaf_nodes": 4}},
        # Only fitting shows that this is invalid.
        {"label": "broken", "name": "gridex", "params": {"n_slices": 0}},
    ],
    "seeds": [0, 5],
    "folds": 3,
}
CONFIG = config_from(BASE)


def timeless(rows):
    return rows.drop(columns="seconds")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return folder and rows of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, run_bench(CONFIG, folder).rows


def test_run_bench_gives_one_row_per_cell(whole):
    _, rows = whole
    cells = rows[["extractor", "seed", "fold"]].to_numpy().tolist()
    assert cells == [[e, s, f] for e in ("cart", "broken") for s in (0, 5) for f in range(3)]
    assert rows.loc[:5, "state"].eq("complete").all()
    failed = rows.loc[6:]
    assert failed["state"].eq("failed").all()
    assert failed["error"].str.startswith("ValueError: n_slices").all()
    assert failed["ice"].isna().all()
    assert failed["black_box_quality"].notna().all()


def test_row_matches_scikit_learn_and_formulas(whole):
    _, rows = whole
    iris = load_dataset("iris")
    X, y = iris.X, iris.y
    for _, row in rows[(rows["extractor"] == "cart") & (rows["seed"] == 5)].iterrows():
        folds = list(StratifiedKFold(3, shuffle=True, random_state=5).split(X, y))
        train, test = folds[row["fold"]]
        box = KNeighborsClassifier().fit(X.iloc[train], y.iloc[train])
        cart = CARTExtractor(FrozenEstimator(box), max_leaf_nodes=4, random_state=5).fit(
            X.iloc[train]
        )
        predictions, truth = cart.predict(X.iloc[test]), y.iloc[test]
        f1, accuracy = (
            f1_score(truth, predictions, average="weighted"),
            accuracy_score(truth, predictions),
        )
        n_rules = len(cart.rules_)
        assert row["n_rules"] == row["size"] == n_rules
        assert row["performance"] == pytest.approx(f1)
        assert row["loss"] == pytest.approx(1 - accuracy)
        assert row["loss_q"] == pytest.approx(1 - f1)
        assert row["completeness_volume"] == pytest.approx(cart.completeness_)
        assert row["completeness_instances"] == 1.0
        assert row["ice"] == pytest.approx(ice_score(f1, n_rules, cart.completeness_))
        assert row["fire"] == pytest.approx(fire_score(1 - accuracy, n_rules))
        assert row["q"] == pytest.approx(q_score(1 - f1, n_rules, cart.completeness_))
        answers = box.predict(X.iloc[test])
        assert row["fidelity"] == pytest.approx(accuracy_score(answers, predictions))
        assert row["black_box_quality"] == pytest.approx(
            f1_score(truth, answers, average="weighted")
        )
        assert (row["black_box_calls"], row["black_box_rows"]) == (1, 100)
        assert json.loads(row["params"]) == {"max_leaf_nodes": 4}


def test_regression_rows_match_scikit_learn(tmp_path):
    config = config_from(
        BASE | {"data": ["diabetes"], "extractors": ["cart", "gridrex"], "seeds": [2], "folds": 2}
    )
    rows = run_bench(config, tmp_path).rows
    data = load_dataset("diabetes")
    train, test = next(KFold(2, shuffle=True, random_state=2).split(data.X))
    box = KNeighborsRegressor().fit(data.X.iloc[train], data.y.iloc[train])
    cart = CARTExtractor(FrozenEstimator(box), random_state=2).fit(data.X.iloc[train])
    predictions = cart.predict(data.X.iloc[test])
    row = rows.iloc[0]
    assert row["performance"] == pytest.approx(r2_score(data.y.iloc[test], predictions))
    assert row["loss"] == pytest.approx(np.abs(data.y.iloc[test] - predictions).mean())
    assert row["fidelity"] == pytest.approx(r2_score(box.predict(data.X.iloc[test]), predictions))
    assert rows["state"].eq("complete").all()


@pytest.mark.slow
def test_n_jobs_does_not_change_rows(whole, tmp_path):
    rows = run_bench(CONFIG, tmp_path, n_jobs=2).rows
    pd.testing.assert_frame_equal(timeless(rows), timeless(whole[1]), check_exact=True)


@pytest.mark.parametrize("n_existing", [0, 5, 12])
def test_run_bench_skips_existing_rows(whole, tmp_path, n_existing):
    folder, rows = whole
    (tmp_path / "run.json").write_bytes((folder / "run.json").read_bytes())
    lines = (folder / "rows.csv").read_bytes().splitlines(keepends=True)
    torn = lines[n_existing + 1][:-9] if n_existing < 12 else b""
    # Other processes finished the rows in another order.
    order = [lines[0], *reversed(lines[1 : n_existing + 1]), torn]
    (tmp_path / "rows.csv").write_bytes(b"".join(order))
    started, measured = [], []
    second_rows = run_bench(
        CONFIG,
        tmp_path,
        callback=callback(on_start=lambda *n: started.append(n), on_row=measured.append),
    )
    assert started == [(n_existing, 12 - n_existing)]
    assert len(measured) == 12 - n_existing
    pd.testing.assert_frame_equal(timeless(second_rows.rows), timeless(rows), check_exact=True)
    assert (tmp_path / "rows.csv").read_bytes().count(b"\n") == 13
    assert second_rows.rows["seconds"].head(n_existing).tolist() == pytest.approx(
        rows["seconds"].head(n_existing).tolist(), nan_ok=True
    )
    assert len(second_rows.run["earlier_runs"]) == 1
    pd.testing.assert_frame_equal(read_rows(tmp_path / "rows.csv"), second_rows.rows)


def test_run_json_describes_the_run(whole):
    run = json.loads((whole[0] / "run.json").read_text())
    assert run["state"] == "complete"
    assert (run["rows"], run["rows_failed"], run["cells"]) == (12, 6, 12)
    assert run["configuration"]["seeds"] == [0, 5]
    assert run["data"][0]["checksum_sha256"] == load_dataset("iris").checksum
    assert {"python", "skescore", "numpy", "scikit-learn"} <= set(run["run"]["versions"])
    assert run["run"]["cores"] >= 1
    assert run["run"]["platform"]
    assert run["earlier_runs"] == []
    assert not (whole[0] / ".lock").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": [0]}, r"seeds is \[0, 5\] in the folder and \[0\] now"),
        ({"folds": 4}, "folds is 3 in the folder and 4 now"),
        (
            {"extractors": ["cart"]},
            r'extractors is \["cart", "broken"\] in the folder and \["cart"\] now',
        ),
        (
            {"extractors": ["cart", BASE["extractors"][1]]},
            r'extractors is .*"max_leaf_nodes": 4.* in the folder and .*"params": \{\}.* now',
        ),
    ],
)
def test_run_bench_rejects_other_configuration(whole, change, says):
    before = (whole[0] / "rows.csv").read_bytes()
    with pytest.raises(FolderInUseError, match=says):
        run_bench(config_from(BASE | change), whole[0])
    assert (whole[0] / "rows.csv").read_bytes() == before


def test_run_bench_rejects_changed_data(tmp_path):
    table = load_dataset("iris")
    path, folder = tmp_path / "mine.csv", tmp_path / "out"
    frame = table.X.assign(kind=table.y)
    frame.to_csv(path, index=False)
    small = BASE | {
        "data": [{"source": str(path), "target": "kind"}],
        "extractors": ["cart"],
        "seeds": [0],
    }
    config = config_from(small)
    assert run_bench(config, folder).rows["data"].eq("mine").all()
    frame.iloc[::2].to_csv(path, index=False)
    with pytest.raises(FolderInUseError, match="the content of 'mine' has changed"):
        run_bench(config, folder)
    rows = run_bench(config, folder, overwrite=True).rows
    assert rows["black_box_rows"].tolist() == [50, 50, 50]


def test_run_bench_rejects_other_folders(tmp_path):
    (tmp_path / "rows.csv").write_text("x\n")
    with pytest.raises(FolderInUseError, match=r"holds rows\.csv, but no run\.json"):
        run_bench(CONFIG, tmp_path)
    (tmp_path / "run.json").write_text('{"search": {}}')
    with pytest.raises(FolderInUseError, match="is not the record of a bench"):
        run_bench(CONFIG, tmp_path)


def test_run_bench_locks_its_folder(tmp_path):
    def meanwhile(*_):
        with pytest.raises(FolderInUseError, match="Another process is measuring"):
            run_bench(CONFIG, tmp_path)

    run_bench(CONFIG, tmp_path, callback=callback(on_start=meanwhile))


def test_retry_failed_measures_failed_rows(whole, tmp_path):
    for name in ("rows.csv", "run.json"):
        (tmp_path / name).write_bytes((whole[0] / name).read_bytes())
    measured = []
    second_rows = run_bench(
        CONFIG, tmp_path, retry_failed=True, callback=callback(on_row=measured.append)
    )
    assert [row["extractor"] for row in measured] == ["broken"] * 6
    pd.testing.assert_frame_equal(timeless(second_rows.rows), timeless(whole[1]), check_exact=True)


def test_run_bench_notes_other_versions(whole, tmp_path):
    (tmp_path / "rows.csv").write_bytes((whole[0] / "rows.csv").read_bytes())
    run = json.loads((whole[0] / "run.json").read_text())
    run["run"]["versions"]["numpy"] = "1.0"
    (tmp_path / "run.json").write_text(json.dumps(run))
    notes = []
    run_bench(CONFIG, tmp_path, callback=callback(on_note=notes.append))
    assert any("measured with other versions" in note for note in notes)


@pytest.mark.slow
def test_run_bench_accepts_rule_files_and_searches(whole, tmp_path):
    iris = load_dataset("iris")
    cart = CARTExtractor(KNeighborsClassifier(), max_leaf_nodes=3, random_state=0).fit(
        iris.X, iris.y
    )
    path = tmp_path / "rules.json"
    path.write_text(cart.rules_.to_json())
    config = config_from(
        BASE
        | {
            "data": ["wine", "iris"],
            "extractors": [
                str(path),
                {"name": "search", "extractors": ["cart"], "trials": 3, "cv": 2},
            ],
            "seeds": [0],
            "folds": 2,
        }
    )
    plan = make_plan(config)
    assert plan.notes[0].startswith("rules.json is skipped on wine: its rules need the features")
    assert plan.notes[1].startswith(
        "rules.json is not extracted again: if it was extracted from these rows"
    )
    rows = run_bench(config, tmp_path / "out").rows
    theirs = rows[rows["extractor"] == "rules.json"]
    assert theirs["data"].tolist() == ["iris", "iris"]
    assert theirs["state"].eq("complete").all()
    assert theirs["n_rules"].tolist() == [3, 3]
    assert theirs["black_box_rows"].tolist() == [0, 0]
    _, test = next(StratifiedKFold(2, shuffle=True, random_state=0).split(iris.X, iris.y))
    truth = iris.y.iloc[test]
    assert theirs["performance"].iloc[0] == pytest.approx(
        f1_score(truth, cart.rules_.predict(iris.X.iloc[test]), average="weighted")
    )
    result = rows[(rows["extractor"] == "search") & (rows["data"] == "iris")]
    assert result["state"].eq("complete").all()
    assert {json.loads(text)["extractor"] for text in result["params"]} == {"cart"}
    # Trees of 1 to 32 leaves, without and with 8,000 query rows, and three trials learn from
    # two folds and from all rows.
    assert 3 * 75 < result["black_box_rows"].iloc[0] <= (64 + 3) * 3 * (75 + 8000)


def test_run_bench_runs_the_default_search(tmp_path):
    search = {"name": "search", "extractors": "default", "trials": 20, "cv": 5}
    config = config_from(
        BASE | {"black_boxes": ["decision-tree"], "extractors": [search], "folds": 1, "seeds": [0]}
    )
    (row,) = run_bench(config, tmp_path).rows.to_dict(orient="records")
    data = load_dataset("iris")
    ((train, _),) = split_rows(data, 0, 1, config.test_size)
    black_box = make_black_box("decision-tree", data.task, 0, [])
    expected = ExtractorSearchCV(black_box, scoring="ice", random_state=0)
    expected.fit(data.X.iloc[train], data.y.iloc[train])
    params = json.loads(row["params"])
    assert params.pop("extractor") == expected.best_name_
    assert params == json.loads(json.dumps(expected.best_params_, default=str))
    assert row["n_rules"] == expected.n_rules_


def test_untrainable_black_box_fails_its_rows(tmp_path):
    config = config_from(
        BASE | {"black_boxes": [{"name": "knn", "params": {"n_neighbors": 0}}], "seeds": [0]}
    )
    rows = run_bench(config, tmp_path).rows
    assert rows["state"].eq("failed").all()
    assert rows["error"].str.startswith("the black box cannot be trained: Invalid").all()
    assert rows["black_box_quality"].isna().all()


def test_folds_zero_and_one_split_rows(tmp_path):
    for folds, n_queries in ((0, 150), (1, 75)):
        config = config_from(BASE | {"folds": folds, "seeds": [0], "extractors": ["cart"]})
        rows = run_bench(config, tmp_path / str(folds)).rows
        assert rows["fold"].tolist() == [0]
        assert rows["black_box_rows"].tolist() == [n_queries]


@pytest.mark.slow
def test_seed_sets_random_states(tmp_path):
    config = config_from(
        BASE
        | {
            "data": ["wine"],
            "black_boxes": ["mlp"],
            "folds": 1,
            "seeds": [3],
            "extractors": [
                "trepan",
                {"label": "own", "name": "trepan", "params": {"random_state": 3, "max_nodes": 15}},
            ],
        }
    )
    first, second = run_bench(config, tmp_path).rows.to_dict(orient="records")
    for name in ("ice", "n_rules", "fidelity", "black_box_rows"):
        assert first[name] == second[name]
        assert not math.isnan(first[name])


@pytest.fixture
def model_file(tmp_path):
    """Return the file of a stump that was trained on iris elsewhere."""
    iris = load_dataset("iris")
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(iris.X, iris.y)
    path = tmp_path / "theirs.joblib"
    joblib.dump(model, path)
    return path, model


@pytest.mark.slow
def test_model_from_file_is_not_refitted(model_file, tmp_path):
    path, model = model_file
    config = config_from(
        BASE
        | {
            "data": ["iris", "wine"],
            "black_boxes": [str(path), "knn"],
            "seeds": [0],
            "extractors": [
                "cart",
                {"name": "search", "extractors": ["cart"], "trials": 1, "cv": 2},
            ],
        }
    )
    plan = make_plan(config, load_model=joblib.load)
    assert plan.notes[0].startswith("theirs is skipped on wine: The black box and wine have diff")
    assert plan.notes[1].startswith("theirs was trained elsewhere and is not trained again")
    result = run_bench(make_plan(config, load_model=joblib.load), tmp_path / "out", n_jobs=2)
    rows = result.rows
    assert rows["state"].eq("complete").all()
    theirs = rows[rows["black_box"] == "theirs"]
    assert set(theirs["data"]) == {"iris"}
    assert set(rows.loc[rows["black_box"] == "knn", "data"]) == {"iris", "wine"}
    iris = load_dataset("iris")
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(iris.X, iris.y))
    for _, row in theirs[theirs["extractor"] == "cart"].iterrows():
        _, test = folds[row["fold"]]
        predictions = model.predict(iris.X.iloc[test])
        assert row["black_box_quality"] == f1_score(
            iris.y.iloc[test], predictions, average="weighted"
        )
        assert row["fidelity"] == 1.0  # CART equals the stump
    left_out = [pair for pair in result.run["not_applicable"] if "black_box" in pair]
    assert [(pair["data"], pair["black_box"]) for pair in left_out] == [("wine", "theirs")]


def test_changed_model_file_is_rejected(model_file, tmp_path):
    path, model = model_file
    config = config_from(BASE | {"black_boxes": [{"label": "m", "file": str(path)}], "folds": 0})
    run_bench(make_plan(config, load_model=joblib.load), tmp_path / "out")
    iris = load_dataset("iris")
    joblib.dump(model.set_params(max_depth=3).fit(iris.X, iris.y), path)
    with pytest.raises(FolderInUseError, match="black_boxes is"):
        run_bench(make_plan(config, load_model=joblib.load), tmp_path / "out")


def test_unsuitable_model_is_rejected(model_file, tmp_path):
    path, _ = model_file
    config = config_from(BASE | {"data": ["wine"], "black_boxes": [str(path)]})
    with pytest.raises(ValueError, match="'theirs' fits none of the data sets"):
        run_bench(make_plan(config, load_model=joblib.load), tmp_path / "out")
    with pytest.raises(ValueError, match="pass load_model to make_plan"):
        run_bench(config, tmp_path / "out")
    both = config_from(
        BASE | {"data": ["iris", "diabetes"], "black_boxes": [str(path)], "extractors": ["gridrex"]}
    )
    with pytest.raises(ValueError, match="There is nothing to measure: no extractor supports"):
        make_plan(both, load_model=joblib.load)


@pytest.mark.slow
def test_config_accepts_objects(tmp_path):
    iris = load_dataset("iris")
    frame = iris.X.assign(species=iris.y)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(iris.X, iris.y)
    config = config_from(
        {
            "data": [iris, {"label": "frame", "source": frame, "target": "species"}],
            "black_boxes": [
                {"label": "9-NN", "estimator": KNeighborsClassifier(9)},
                {"label": "stump", "estimator": FrozenEstimator(stump)},
            ],
            "extractors": [
                {"name": "cart", "params": {"max_leaf_nodes": 4}},
                {"label": "class", "extractor": CARTExtractor, "params": {"max_leaf_nodes": 4}},
                {"label": "instance", "extractor": CARTExtractor(None, max_leaf_nodes=4)},
            ],
            "folds": 2,
        }
    )
    rows = run_bench(config, tmp_path, n_jobs=2).rows
    assert len(rows) == 2 * 2 * 3 * 2
    assert rows["state"].eq("complete").all()
    same = rows.drop(columns=["data", "extractor", "params", "seconds"])
    parts = [
        part.reset_index(drop=True) for _, part in same.groupby([rows["data"], rows["extractor"]])
    ]
    for part in parts[1:]:
        pd.testing.assert_frame_equal(part, parts[0])
    assert rows.loc[rows["black_box"] == "stump", "fidelity"].eq(1.0).all()
    started = []
    run_bench(config, tmp_path, callback=callback(on_start=lambda *n: started.append(n)))
    assert started == [(24, 0)]
    other = config.with_changes(
        black_boxes=config_from(
            {"data": ["iris"], "black_boxes": [{"label": "9-NN", "estimator": stump}]}
        ).black_boxes
    )
    with pytest.raises(FolderInUseError, match="black_boxes is"):
        run_bench(other, tmp_path)


def test_model_of_other_task_is_skipped(tmp_path):
    config = config_from(
        BASE | {"data": ["diabetes"], "black_boxes": [KNeighborsClassifier(9)], "seeds": [0]}
    )
    with pytest.raises(ValueError, match="'KNeighborsClassifier' fits none of the data sets"):
        run_bench(config, tmp_path)


def test_measures_can_query_the_black_box(tmp_path):
    iris = load_dataset("iris")
    tree = CARTExtractor(DecisionTreeClassifier(random_state=0), max_leaf_nodes=3, random_state=0)
    tree.fit(iris.X, iris.y).rules_.save(tmp_path / "saved.json")
    config = config_from(
        BASE
        | {
            "extractors": [
                {"name": "cart", "params": {"max_leaf_nodes": 3}},
                {"label": "saved", "rules": str(tmp_path / "saved.json")},
            ],
            "seeds": [0],
            "folds": 2,
        }
    )
    measures = ["fidelity_uniform", "neg_overlap", "feature_agreement"]
    rows = run_bench(config, tmp_path / "run", measures=measures).rows
    assert rows["error"].eq("").all()
    assert rows[measures].notna().all(axis=None)
    assert rows["fidelity_uniform"].between(0.3, 1).all()
    # Each fold has another black box, so that the same rules agree with it differently.
    saved = rows[rows["extractor"] == "saved"]
    assert saved["feature_agreement"].nunique() == 2
