"""Predictions of saved rules and their explanations on the command line."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from skescore.cli import main
from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet

RULES = RuleSet(
    [
        Rule([Interval(0, upper=2.5)], "small"),
        Rule([OneOf(1, ["red"]), Interval(0, upper=5)], "warm"),
    ],
    ["length", "color"],
    task="classification",
    fallback=Fallback("other"),
    domain=Domain((0, 0), (9, 3), categories=[(1, ("blue", "green", "red"))]),
)
TABLE = "color,more,length\nred,x,1\nred,y,4.5\nblue,,4.5\ngreen,z,8\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "rules.json").write_text(RULES.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text(TABLE, encoding="utf-8")
    return str(tmp_path / "rules.json"), str(tmp_path / "rows.csv")


def test_predict_prints_predictions_and_rule_numbers(files, capsys, tmp_path) -> None:
    assert main(["predict", *files]) == 0
    result = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert result == [
        ["prediction", "rule"],
        ["small", "1"],
        ["warm", "2"],
        ["other", ""],
        ["other", ""],
    ]
    target = tmp_path / "out.csv"
    assert main(["predict", *files, "--output", str(target)]) == 0
    assert capsys.readouterr() == ("", f"wrote {target}\n")
    assert list(csv.reader(io.StringIO(target.read_text(encoding="utf-8")))) == result
    assert main(["predict", *files, "--output", str(target)]) == 1
    assert "--overwrite" in capsys.readouterr().err


def test_predict_rejects_unencodable_labels(tmp_path, monkeypatch, capsys):
    rules = RuleSet([Rule([], "größer")], ["x"], task="classification")
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("x\n1\n", encoding="utf-8")
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", written)
    assert main(["predict", str(tmp_path / "rules.json"), str(tmp_path / "rows.csv")]) == 1
    written.flush()
    assert written.buffer.getvalue() == b""  # not "gr\\xf6\\xdfer", which is another label
    assert "--output FILE, or set PYTHONIOENCODING" in capsys.readouterr().err


@pytest.mark.parametrize("value", [" red", "red ", "", "nan"])
def test_predict_rejects_values_that_no_cell_can_hold(value, files, tmp_path, capsys) -> None:
    rules = RULES.replace(rules=[Rule([OneOf(1, [value])], "warm"), *RULES.rules])
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    for command in (["predict"], ["score", "--target", "more"]):
        assert main([command[0], *files, *command[1:]]) == 1
        assert f"the rules contain the value {value!r} of 'color'" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["1", "0", "2"])
def test_predict_ignores_terminals_without_width(columns, files, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["predict", *files]) == 0
    assert capsys.readouterr().out.startswith("prediction,rule\n")


def test_predict_uses_reading_options(files, capsys, tmp_path) -> None:
    rules, _ = files
    # As tune reads them: by the options if the table is ambiguous.
    rows = "länge|color|length\nx|red|1,0\ny|red|4,500\nz|nix|4,500\nz|green|-9\n"
    path = tmp_path / "rows.txt"
    path.write_bytes(rows.encode("cp437"))
    reading = [
        "--sep",
        "|",
        "--decimal",
        ",",
        "--encoding",
        "cp437",
        "--na-values=-9,nix",
        "--numeric",
        "length",
        "--category",
        "color",
        "--drop",
        "länge",
    ]
    assert main(["predict", rules, str(path), *reading]) == 0
    assert capsys.readouterr().out.split() == [
        "prediction,rule",
        "small,1",
        "warm,2",
        "other,",
        "other,",
    ]
    assert main(["explain", rules, str(path), *reading, "--row", "4", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["row"] == {"length": None, "color": "green"}
    assert main(["rules", rules, "--shorten", str(path), *reading]) == 0
    assert "color = red" in capsys.readouterr().out
    # Without them, 4,500 is a number with a separator of thousands.
    path.write_text("color;length\nred;4,500\nred;1,000\n", encoding="utf-8")
    assert main(["predict", rules, str(path), "--decimal", "."]) == 0
    assert capsys.readouterr().out.split()[1:] == ["other,", "other,"]
    assert main(["predict", rules, str(path), "--decimal", ","]) == 0
    assert capsys.readouterr().out.split()[1:] == ["warm,2", "small,1"]


def test_predict_reports_words_read_as_missing(files, capsys, tmp_path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("color,length\nred,1\nred,n.n.\n", encoding="utf-8")
    for words in (["predict"], ["explain", "--row", "2"]):
        assert main([words[0], *files, *words[1:]]) == 0
        err = capsys.readouterr().err
        assert "'n.n.' in column 'length' is read as missing (1 row)" in err


def test_predict_reads_none_as_a_category_that_rules_name(files, capsys, tmp_path) -> None:
    rules = RULES.replace(rules=[Rule([OneOf(1, ["None"])], "small")], domain=None)
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("color,length\nNone,1\nred,2\n,3\n", encoding="utf-8")
    assert main(["predict", *files]) == 0
    assert capsys.readouterr().out.split() == ["prediction,rule", "small,1", "other,", "other,"]


def test_predict_rejects_wrong_options_of_tables(files, capsys) -> None:
    rules, rows = files
    assert main(["predict", rules, rows, "--drop", "color"]) == 1
    assert "--drop leaves out 'color', but the rules in" in capsys.readouterr().err
    assert main(["predict", rules, rows, "--numeric", "lenght"]) == 1
    assert "numeric must be among the columns" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["rules", rules, "--category", "color"])
    assert "--category: needs --shorten" in capsys.readouterr().err


def test_predict_leaves_rule_number_of_voting_rules_empty(tmp_path, capsys) -> None:
    together = RuleSet(
        [Rule([Interval(0, upper=3)], 1.0), Rule([Interval(0, lower=1)], 3.0)],
        ["length"],
        task="regression",
        ordered=False,
        voting="mean",
        fallback=Fallback(0.0),
    )
    (tmp_path / "rules.json").write_text(together.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("length\n2\n9\n", encoding="utf-8")
    assert main(["predict", str(tmp_path / "rules.json"), str(tmp_path / "rows.csv")]) == 0
    assert capsys.readouterr().out == "prediction,rule\n2.0,\n3.0,\n"


def test_explain_prints_rows_by_number(files, capsys) -> None:
    assert main(["explain", *files, "--row", "2"]) == 0
    explanation = RULES.explain({"length": 4.5, "color": "red"})
    assert capsys.readouterr().out == f"{explanation}\n"
    assert main(["explain", *files, "--row", "4", "--row", "1", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [one["row_number"] for one in data] == [4, 1]
    assert [one["prediction"] for one in data] == ["other", "small"]
    assert data[1]["rule"] == 0
    assert data[1]["conditions"][0] == {"text": "length ≤ 2.5", "holds": True, "parts": []}
    assert main(["explain", *files, "--row", "5"]) == 1
    assert "--row 5: " in (err := capsys.readouterr().err)
    assert "has 4 rows. Pass a number from 1 to 4." in err
    with pytest.raises(SystemExit):
        main(["explain", *files, "--row", "0"])


def test_explain_finds_sufficient_values(files, capsys, tmp_path) -> None:
    rules = RULES.replace(
        rules=[Rule([Interval(0, upper=2.5), OneOf(1, ["red"])], "small")], domain=None
    )
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("color,length\nred,1\nred,3\nblue,1\n", encoding="utf-8")
    assert main(["explain", *files, "--row", "1", "--row", "3", "--sufficient"]) == 0
    out = capsys.readouterr().out
    assert (
        "2 of 2 values suffice for small: length = 1 AND color = red (100.0 % of 2000 generated "
        "rows)\nnecessary, because all others together do not suffice: length, color\n" in out
    )
    assert out.endswith(
        f"(Generated rows have these values, and values of the 3 rows of {files[1]} in the other "
        "columns.)\n"
    )
    # A blue row is predicted by the fallback, whatever its length is.
    assert "1 of 2 values suffices for other: color = blue (100.0 % of 2000 generated" in out
    numbers = rules.replace(
        rules=[Rule([Interval(0, upper=2.5)], 1.5)],
        task="regression",
        classes=None,
        fallback=Fallback(0.5),
    )
    (tmp_path / "rules.json").write_text(numbers.to_json(), encoding="utf-8")
    assert main(["explain", *files, "--row", "1", "--sufficient"]) == 1
    assert "--sufficient: the rules must predict classes" in capsys.readouterr().err
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("color,length\nred,1\n", encoding="utf-8")
    assert main(["explain", *files, "--row", "1", "--sufficient"]) == 1
    assert "must have other rows" in capsys.readouterr().err


def test_explain_explains_each_row_of_a_batch() -> None:
    frame = pd.DataFrame(
        {"length": [1, 4.5, np.nan, 1, np.nan], "color": ["red", "red", "blue", "red", "blue"]}
    )
    explanation = RULES.explain(frame)
    assert [str(one) for one in explanation] == [
        str(RULES.explain(frame.iloc[[i]])) for i in range(len(frame))
    ]
    assert explanation[0] is explanation[3]
    assert explanation[2] is explanation[4]
    with pytest.raises(ValueError, match="at least one row to explain, got 0 rows"):
        RULES.explain(frame[:0])


def test_predict_suggests_columns_of_another_case(tmp_path, capsys):
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([], "b")], ["bwt"], task="classification"
    )
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("BWT,age\n1,2\n", encoding="utf-8")
    assert main(["predict", str(tmp_path / "rules.json"), str(tmp_path / "rows.csv")]) == 1
    assert "Did you mean 'BWT' for 'bwt'? Rename it." in capsys.readouterr().err
    with pytest.raises(ValueError, match="Did you mean 'BWT' for 'bwt'"):
        rules.predict(pd.DataFrame({"BWT": [1.0]}))


def test_strict_accepts_missing_values_that_the_domain_states(tmp_path, capsys) -> None:
    X = pd.DataFrame({"length": [1.0, np.nan, 3.0, np.nan] * 9})
    rule = Rule([Interval(0, lower=0, missing=True)], "any")
    rules = RuleSet([rule], list(X), task="classification")
    rules.replace(domain=rules.domain_around(X)).save(tmp_path / "rules.json")
    X.to_csv(tmp_path / "rows.csv", index=False)
    files = [str(tmp_path / name) for name in ("rules.json", "rows.csv")]
    assert main(["predict", *files, "--strict"]) == 0, capsys.readouterr().err


def test_keep_option_writes_codes_words_and_long_numbers_unchanged(files, capsys, tmp_path) -> None:
    rules, _ = files
    lines = TABLE.splitlines()
    kept = [
        ["007", "9007199254740993", "NA"],
        ["00501", "", "DE"],
        ["12e4", "1108167037421256833", ""],
        ["7", "5", "None"],
    ]
    added = [",".join([line, *cells]) for line, cells in zip(lines[1:], kept, strict=True)]
    path = tmp_path / "codes.csv"
    path.write_text("\n".join([f"{lines[0]},code,account,land", *added]), encoding="utf-8")
    assert main(["predict", rules, str(path), "--keep", "code,account,land"]) == 0
    output = capsys.readouterr().out.splitlines()
    assert [line.split(",")[:3] for line in output[1:]] == kept
