"""The JSON of each command satisfies its published schema, and the schema describes each field."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
import referencing
import skops.io
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore import CARTExtractor
from skescore.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "docs" / "_static" / "schemas").glob("*.json"))
    if path.stem != "certificate"  # a file format, see tests/certificates/test_mutants.py
}
#: `completion` prints a script. All other commands have a schema.
WITHOUT_SCHEMA = {"completion"}
REGISTRY = referencing.Registry().with_resources(
    (f"{name}.json", referencing.Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def undescribed(value, schema, path=""):
    """Yield the fields of an output that its schema does not describe."""
    if isinstance(value, list):
        for item in value:
            yield from undescribed(item, schema.get("items", {}), f"{path}[]")
    if isinstance(value, dict) and "properties" in schema:
        for name, inner in value.items():
            if name not in schema["properties"]:
                yield f"{path}.{name}"
            else:
                yield from undescribed(inner, schema["properties"][name], f"{path}.{name}")


def validator(command):
    return jsonschema.Draft202012Validator(SCHEMAS[command], registry=REGISTRY)


def assert_valid(command, text, *, kept=()):
    value = json.loads(text)
    validator(command).validate(value)
    unknown = set(undescribed(value, SCHEMAS[command]))
    assert unknown <= set(kept), f"describe these fields in docs/_static/schemas/{command}.json"


@pytest.fixture(scope="module")
def make_folder(tmp_path_factory):
    """Return a function that writes a table, a model and rules for a kind of target."""

    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        X, codes = load_wine(return_X_y=True, as_frame=True)
        targets = {
            "texts": codes.map({0: "class_0", 1: "class_1", 2: "class_2"}),
            "integers": codes,
            "flags": codes == 1,
            "numbers": X["color_intensity"],
        }
        X, y = X[["alcohol", "flavanoids", "proline"]], targets[kind]
        X.assign(kind=y).to_csv(folder / "data.csv", index=False)
        forest = RandomForestRegressor if kind == "numbers" else RandomForestClassifier
        model = forest(3, max_depth=3, random_state=0).fit(X, y)
        skops.io.dump(model, folder / "model.skops")
        CARTExtractor(model, max_leaf_nodes=4).fit(X, y).rules_.save(folder / "rules.json")
        return folder

    return make


@pytest.fixture(scope="module")
def folder(make_folder):
    return make_folder("texts")


@pytest.fixture
def run_in(monkeypatch, capsys):
    """Return a function that makes the function that runs commands in a folder."""

    def enter(folder):
        monkeypatch.chdir(folder)
        return run

    def run(*words, codes=(0,)):
        assert main([*words, "--format", "json"]) in codes, capsys.readouterr().err
        return capsys.readouterr().out

    return enter


@pytest.fixture
def run(folder, run_in):
    return run_in(folder)


def test_schemas_exist_for_every_command():
    assert set(SCHEMAS) == set(COMMANDS) - WITHOUT_SCHEMA
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        fields = schema.get("items", schema)["properties"]
        assert all(field.get("description", "").endswith(".") for field in fields.values())


def test_outputs_satisfy_their_schemas(run):
    target = ("--target", "kind")
    assert_valid("score", run("score", "rules.json", "data.csv", *target))
    explained = run("explain", "rules.json", "data.csv", "--row", "3", "--sufficient")
    assert_valid("explain", explained)
    predicted = run("predict", "rules.json", "data.csv", "--keep", "alcohol")
    assert_valid("predict", predicted, kept=[".predictions[].alcohol"])
    calibration = run("calibrate", "rules.json", "data.csv", *target, "--output", "cal.json")
    assert_valid("calibrate", calibration)
    predictions = run("predict", "cal.json", "data.csv")
    assert_valid("predict", predictions)
    assert isinstance(json.loads(predictions)["predictions"][0]["prediction_set"], list)
    assert_valid("import", run("import", "rules.json"))
    assert_valid("doctor", run("doctor"))
    words = ("model.skops", "--data", "data.csv", *target, "--trust")
    assert_valid("import", run("import", *words))


@pytest.mark.parametrize("kind", ["integers", "flags", "numbers"])
def test_outputs_of_other_targets_satisfy_schemas(kind, make_folder, run_in):
    run = run_in(make_folder(kind))
    table = ("rules.json", "data.csv", "--target", "kind")
    model = ("model.skops", "--data", "data.csv", "--target", "kind", "--trust")
    more = ("--more", "--black-box", "model.skops", "--trust", "--group", "alcohol")
    for words in (
        ("score", *table),
        ("score", *table, *more),
        ("explain", "rules.json", "data.csv", "--row", "3"),
        ("predict", "rules.json", "data.csv"),
        ("calibrate", *table, "--output", "calibrated.json"),
        ("import", "rules.json"),
        ("import", *model),
        ("verify", "rules.json", "model.skops", *table[1:], "--trust", "--seconds", "1"),
        ("edit", *table, "--drop", "1", "--output", "edited.json"),
        ("certify", *table, "--seconds", "1"),
    ):
        if words[0] != "certify" or kind != "numbers":  # certificates are for classification
            assert_valid(words[0], run(*words))


def test_converted_rules_satisfy_their_schema(folder, capsys):
    assert main(["rules", str(folder / "rules.json"), "--to", "json"]) == 0
    text = capsys.readouterr().out
    assert_valid("rules", text)
    assert validator("rules").is_valid(json.loads(text) | {"voting": "votes"})
    for change in ({"voting": "all"}, {"version": 3}, {"rules": None}, {"unknown": 1}):
        assert not validator("rules").is_valid(json.loads(text) | change)


def test_predictions_in_json_equal_the_csv(folder, run, capsys):
    records = json.loads(run("predict", "rules.json", "data.csv"))["predictions"]
    assert main(["predict", "rules.json", "data.csv", "--output", "p.csv"]) == 0
    table = pd.read_csv(folder / "p.csv")
    assert [record["prediction"] for record in records] == table["prediction"].tolist()
    assert [record["rule"] for record in records] == table["rule"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["texts", "integers", "flags", "numbers"])
def test_outputs_of_searches_satisfy_their_schemas(kind, make_folder, run_in):
    run = run_in(make_folder(kind))
    target = ("--target", "kind")
    tune = run(
        "tune", "data.csv", *target, "--black-box", "random-forest", "--trials", "2",
        "--extractors", "cart", "--output", "run",
    )  # fmt: skip
    assert_valid("tune", tune)
    assert_valid("report", run("report", "run", "--time-limit", "0"))
    watch = run("watch", "run/rules.json", "data.csv", *target, codes=(0, 3))
    assert_valid("watch", watch)
    if kind != "numbers":
        words = ("certify", "rules.json", "data.csv", *target, "--seconds", "2")
        assert_valid("certify", run(*words))
    words = ("verify", "rules.json", "model.skops", "data.csv", *target)
    assert_valid("verify", run(*words, "--trust", "--seconds", "2"))
    edit = ("edit", "rules.json", "data.csv", *target, "--drop", "1", "--output", "edited.json")
    assert_valid("edit", run(*edit))
    words = ("bench", "--data", "data.csv", *target, "--extractors", "cart", "--folds", "2")
    assert_valid("bench", run(*words, "--output", "bench", "--quiet"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("fire", "--splits", "1", "--quick"),
        ("ice", "--splits", "1", "--trials", "2", "--data", "wine", "--extractors", "cart"),
        (
            "brex",
            "--tables",
            "3",
            "--arity",
            "3",
            "--formulas",
            "1",
            "--network-formulas",
            "0",
            "--assignments",
            "4",
            "--output",
            "brex",
        ),
    ],
)
def test_reproduced_tables_satisfy_their_schema(run, words):
    assert_valid("reproduce", run("reproduce", *words, "--quiet"))


@pytest.mark.slow
def test_commands_for_assistants_run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    commands = [shlex.split(line)[1:] for line in block.splitlines()]
    assert len(commands) == 10
    for words in commands:
        words = [word if word != "run" else "agent" for word in words]
        words = [word.replace("run/", "agent/") for word in words]
        code = main([*words, "--overwrite"] if words[0] == "tune" else words)
        captured = capsys.readouterr()
        assert code in ((0, 3) if words[0] == "watch" else (0,)), captured.err
        if "json" in words and captured.out:
            assert_valid(words[0], captured.out)
    predictions = (folder / "predictions.json").read_text(encoding="utf-8")
    validator("predict").validate(json.loads(predictions))
