"""``skescore edit``: edits, effects, logs, replay and exit codes."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from skescore.cli import main
from skescore.editing import replay
from skescore.rules import Domain, Interval, OneOf, Rule, RuleSet


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write rules, a model and tables to a folder."""
    folder = tmp_path_factory.mktemp("edit")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age of person": rng.integers(18, 80, 160), "income": rng.random(160)})
    X["color"] = rng.choice(["red", "green"], 160)
    X["buys"] = np.where(X["age of person"] + 20 * X["income"] > 60, "yes", "no")
    X[:120].to_csv(folder / "table.csv", index=False)
    X[120:].to_csv(folder / "new.csv", index=False)
    rules = RuleSet(
        [
            Rule([Interval(0, upper=40)], "no"),
            Rule([Interval(1, upper=0.5), OneOf(2, ["red"])], "no"),
            Rule([], "yes"),
        ],
        ["age of person", "income", "color"],
        task="classification",
    )
    rules.save(folder / "rules.json")
    model = RandomForestClassifier(5, max_depth=4, random_state=0)
    joblib.dump(model.fit(X[["age of person", "income"]], X["buys"]), folder / "model.joblib")
    return folder


def edit(folder, *more: str) -> int:
    rows = (str(folder / "rules.json"), str(folder / "table.csv"))
    return main(["edit", *rows, "--target", "buys", *more])


def written(folder, *more: str) -> RuleSet:
    path = folder / "edited.json"
    assert edit(folder, *more, "--output", str(path), "--overwrite") == 0
    return RuleSet.load(path)


def texts(rules: RuleSet) -> list[str]:
    return [rule.to_text(rules.feature_names).partition("  ")[0] for rule in rules]


def test_edit_prints_the_effect(files, capsys) -> None:
    held_out = str(files / "new.csv")
    assert edit(files, "--set", "1.age of person<=50", "--held-out", held_out) == 0
    text = capsys.readouterr().out
    assert "1. set age of person ≤ 50 in rule 1" in text
    assert "share right (data) of 40 held-out rows: " in text
    assert "95 % interval" in text
    assert "1. IF age of person ≤ 50 THEN no" in text


def test_edit_uses_rule_numbers_of_file(files) -> None:
    rules = written(
        files,
        "--drop",
        "1",
        "--set",
        "2.income<0.3",
        "--add",
        "1: income>=0.9 => yes",
        "--set",
        "3=no",
    )
    assert texts(rules) == [
        "IF income ≥ 0.9 THEN yes",
        "IF income < 0.3 AND color = red THEN no",
        "ALWAYS no",
    ]
    assert all(rule.statistics is not None for rule in rules)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--set", "2.color=green|red"], "IF income ≤ 0.5 AND color in {green, red} THEN no"),
        (["--set", "2.color!=green"], "IF income ≤ 0.5 AND color ≠ green THEN no"),
        (["--set", "2.income<=none"], "IF color = red THEN no"),
        (["--move", "2:1"], "IF age of person ≤ 40 THEN no"),
        (["--split", "1.income<=0.5"], "IF age of person ≤ 40 AND income > 0.5 THEN no"),
        (["--merge", "1,2"], "ALWAYS yes"),
    ],
)
def test_edit_makes_every_edit(files, arguments: list[str], line: str) -> None:
    assert texts(written(files, *arguments))[1] == line


def test_edit_reads_values_of_numeric_features_as_numbers(files, recwarn) -> None:
    table = pd.read_csv(files / "table.csv")
    age = int(table["age of person"].iloc[0])
    rules = written(files, "--add", f"1: age of person={age} => yes")
    assert texts(rules)[0].startswith(f"IF age of person = {age} THEN yes")
    assert ((rules.assign(table) == 0) == (table["age of person"] == age)).all()
    rules = written(files, "--set", f"2.age of person={age}|20")
    assert rules.rules[1].conditions[-1] == OneOf(0, [age, 20])
    assert not recwarn.list


def test_edit_log_replays(files, capsys) -> None:
    log, output = files / "log.json", files / "edited.json"
    more = ("--by", "Ann", "--because", "the law", "--overwrite", "--output", str(output))
    assert edit(files, "--set", "1.age of person<18", "--drop", "2", "--log", str(log), *more) == 0
    assert replay(log.read_text(encoding="utf-8")) == RuleSet.load(output)
    seal = capsys.readouterr().out.split()[-1]
    assert main(["edit", "--replay", str(log)]) == 0
    text = capsys.readouterr().out
    assert "drop rule 2 by Ann" in text
    assert "the law" in text
    assert text.split()[-1] == seal
    data = json.loads(log.read_text(encoding="utf-8"))
    data["steps"][0]["author"] = "Bob"
    log.write_text(json.dumps(data), encoding="utf-8")
    assert main(["edit", "--replay", str(log)]) == 1
    assert "Step 1 was changed" in capsys.readouterr().err


def test_edit_forbids_and_refits(files, capsys) -> None:
    log = files / "refit.json"
    model = ("--black-box", str(files / "model.joblib"), "--trust")
    names = ["age of person", "income"]
    rules = RuleSet(
        [
            Rule([Interval(0, upper=40)], "no"),
            Rule([Interval(1, upper=0.5)], "no"),
            Rule([], "yes"),
        ],
        names,
        task="classification",
    )
    rules.save(files / "two.json")
    arguments = ["edit", str(files / "two.json"), str(files / "table.csv"), "--target", "buys"]
    more = ["--forbid", "income", "--reoptimize", "--suggest", "--log", str(log), *model]
    assert main([*arguments, *more]) == 0
    text = capsys.readouterr().out
    assert "agreeing with the model" in text
    assert "Refit" in text
    assert not replay(log.read_text(encoding="utf-8")).used_features & {1}


def test_edit_reports_violations_by_exit_code(files, capsys) -> None:
    order = ("--class-order", "no,yes")
    assert edit(files, "--monotone", "income:+", *order) == 0
    assert edit(files, "--monotone", "income:-", *order) == 1
    out, err = capsys.readouterr()
    assert "Violated: monotone: income -" in out
    assert "violate 1 constraint" in err


def test_edit_prices_constraints(files, capsys) -> None:
    more = ("--forbid", "income", "--price", "--seconds", "5", "--format", "json")
    assert edit(files, *more) == 0
    result = json.loads(capsys.readouterr().out)
    (price,) = result["prices"]
    assert price["constraints"] == ["forbidden: income"]
    assert 0 <= price["lower"] <= price["upper"]
    assert result["effect"]["n_rows"] == 120


def test_edit_prices_monotonicity_in_the_order_of_the_rules(tmp_path, capsys) -> None:
    X = pd.DataFrame({"a": np.repeat(np.arange(6), 4)})
    X.assign(buys=np.where(X["a"] <= 1, "yes", "no")).to_csv(tmp_path / "table.csv", index=False)
    rules = RuleSet([Rule([Interval(0, upper=1)], "yes")], ["a"], task="classification")
    rules.replace(classes=["yes", "no"]).save(tmp_path / "rules.json")
    assert edit(tmp_path, "--monotone", "a:+", "--price", "--format", "json") == 0
    (price,) = json.loads(capsys.readouterr().out)["prices"]
    assert price["upper"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "1.agee<=3"], "There is no feature 'agee'"),
        (["--set", "9.income<=3"], "There is no rule 9"),
        (["--drop", "1", "--drop", "1"], "dropped or merged"),
        (["--set", "1=maybe"], "There is no class 'maybe'"),
        (["--set", "1"], "write NUMBER.FEATURE"),
        (["--forbid", "wealth"], "wealth"),
        (["--add", "income<3"], "CONDITION"),
        (
            ["--set", "2.income>0.9"],
            "Rule 2 cannot have these bounds: no income is > 0.9 and ≤ 0.5. Remove the upper bound "
            'first, with upper=None (on the command line: --set "2.income<=none").',
        ),
    ],
)
def test_edit_explains_invalid_edits(files, arguments: list[str], message: str, capsys) -> None:
    assert edit(files, *arguments) == 1
    assert message in capsys.readouterr().err


def test_edit_exchanges_a_bound_after_removing_it(files) -> None:
    assert edit(files, "--set", "2.income<=none", "--set", "2.income>0.9") == 0


def test_edit_needs_rules_or_a_log(files) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["edit"])
    assert stop.value.code == 2


def test_edit_reads_the_category_none(tmp_path) -> None:
    table = pd.DataFrame({"color": ["none", "red", "blue", "none"], "buys": ["no", "yes"] * 2})
    table.to_csv(tmp_path / "table.csv", index=False)
    domain = Domain((0,), (3,), [(0, ["blue", "none", "red"])])
    rules = [Rule([OneOf(0, ["red"])], "yes"), Rule([], "no")]
    RuleSet(rules, ["color"], task="classification", domain=domain).save(tmp_path / "rules.json")
    assert texts(written(tmp_path, "--set", "1.color=none")) == [
        "IF color = none THEN yes",
        "ALWAYS no",
    ]


def test_edit_adds_a_rule_on_a_feature_with_an_ampersand(tmp_path) -> None:
    pd.DataFrame({"R&D": [1, 2], "a & b": [3, 4], "buys": ["no", "yes"]}).to_csv(
        tmp_path / "table.csv", index=False
    )
    rules = RuleSet(
        [Rule([], "no")], ["R&D", "a & b"], task="classification", classes=["no", "yes"]
    )
    rules.save(tmp_path / "rules.json")
    added = "1: R&D<=1 & a & b>3 & R&D>0 => yes"
    line = "IF 0 < R&D ≤ 1 AND a & b > 3 THEN yes"
    assert texts(written(tmp_path, "--add", added))[0] == line


def test_edit_reads_categories_of_constraints_as_in_the_table(tmp_path, capsys) -> None:
    table = pd.DataFrame({"plz": ["01", "02", "03"] * 2, "size": [1.5, 2.0, 2.5] * 2})
    table["buys"] = ["no", "yes", "no"] * 2
    table.to_csv(tmp_path / "table.csv", index=False)
    rules = [Rule([OneOf(0, ["02"])], "yes"), Rule([OneOf(1, [1.5])], "no"), Rule([], "no")]
    RuleSet(rules, ["plz", "size"], task="classification").save(tmp_path / "rules.json")
    options = ["--category", "plz", "--together", "plz:01,02", "--apart", "size:1.50,2"]
    assert edit(tmp_path, *options, "--set", "2.size=1.5|2") == 1
    text = capsys.readouterr().out
    assert "together: plz (01, 02) is violated" in text
    assert "apart: size (1.5, 2.0) is violated" in text


def test_edit_reads_quoted_names_and_unknown_categories(tmp_path, capsys) -> None:
    table = pd.DataFrame({"net, gross": [1, 2, 3, 4], "kind": ["a,b", "c", "d", "c"]})
    table.assign(buys=["no", "yes"] * 2).to_csv(tmp_path / "table.csv", index=False)
    rules = [Rule([OneOf(1, ["c"]), Interval(0, upper=2)], "yes"), Rule([], "no")]
    RuleSet(rules, list(table), task="classification").save(tmp_path / "rules.json")
    assert edit(tmp_path, "--forbid", '"net, gross"', "--together", 'kind:"a,b",c') == 1
    text = capsys.readouterr().out
    assert "together: kind (a,b, c) is violated" in text
    assert "1. IF kind = c THEN yes" in text
    assert edit(tmp_path, "--together", "kind:a,b,c") == 1
    assert "--together: kind has no value 'a'" in capsys.readouterr().err


def test_edit_refuses_unknown_categories_and_bounds(tmp_path, capsys) -> None:
    table = pd.DataFrame({"kind": ["a", "b", "a|b", "b"], "size": [1, 2, 3, 4]})
    table.assign(buys=["no", "yes"] * 2).to_csv(tmp_path / "table.csv", index=False)
    rules = [Rule([OneOf(0, ["a"])], "yes"), Rule([], "no")]
    RuleSet(rules, list(table), task="classification").save(tmp_path / "rules.json")
    for added in ("1: kind!=A => no", "kind=a|c => no"):
        assert edit(tmp_path, "--add", added) == 1
        assert "kind has no value" in capsys.readouterr().err
    assert edit(tmp_path, "--split", "1.kind=c") == 1
    assert "kind has no value 'c'" in capsys.readouterr().err
    assert edit(tmp_path, "--set", "2.size<=inf") == 1
    assert "'inf' is not a finite number" in capsys.readouterr().err
    quoted = written(tmp_path, "--set", '1.kind="a|b"|b')
    assert texts(quoted)[0] == "IF kind in {a|b, b} THEN yes"
    table["kind"] = ["a", "b", "R&D", "b"]
    table.assign(buys=["no", "yes"] * 2).to_csv(tmp_path / "table.csv", index=False)
    quoted = written(tmp_path, "--add", '1: size>1 & kind="R&D" => yes')
    assert texts(quoted)[0] == "IF size > 1 AND kind = R&D THEN yes"


def test_edit_keeps_edited_rules_after_a_repair(files, tmp_path, capsys) -> None:
    premises = [Interval(0, upper=10)], [Interval(1, upper=0.2)], []
    rules = list(map(Rule, premises, ["yes", "no", "yes"]))
    RuleSet.load(files / "rules.json").replace(rules=rules).save(tmp_path / "rules.json")
    (tmp_path / "table.csv").write_bytes((files / "table.csv").read_bytes())
    options = ["--min-support", "5", "--repair", "--reoptimize"]
    edited = written(tmp_path, "--set", "2.income<=0.4", *options)
    assert "Refit around rule 1" in capsys.readouterr().out
    assert texts(edited)[0] == "IF income ≤ 0.4 THEN no"
    written(tmp_path, "--set", "3=no", *options)
    assert "Refit: " in capsys.readouterr().out
