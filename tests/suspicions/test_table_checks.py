"""Suspicious rows, features and targets of a table, planted one at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.datasets import load_dataset
from skescore.suspicions import SUSPICION_CHECKS, ResultFacts, TableFacts, find_suspicions

N_ROWS = 240


def make_table(seed: int = 0, n_rows: int = N_ROWS) -> pd.DataFrame:
    """Return a clean table of two classes that no feature determines."""
    random = np.random.default_rng(seed)
    age, weight = random.integers(18, 90, n_rows), random.normal(70, 12, n_rows).round(2)
    risk = age / 90 + weight / 140 + random.normal(0, 0.3, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "weight": weight,
            "sex": random.choice(["f", "m"], n_rows),
            "outcome": np.where(risk > 1.1, "ill", "well"),
        }
    )


def report(table: pd.DataFrame, **options) -> dict[str, str]:
    """Return the texts of all suspicions by the name of their check."""
    dataset = load_dataset(table, target="outcome", **options)
    facts = TableFacts(
        dataset.X,
        dataset.y,
        dataset.task,
        groups=dataset.groups,
        is_shuffled=dataset.times is None,
        identifiers=dataset.identifiers,
    )
    return {suspicion.name: str(suspicion) for suspicion in find_suspicions(facts)}


@pytest.mark.parametrize("seed", range(5))
def test_clean_tables_give_no_suspicion(seed):
    assert report(make_table(seed)) == {}


def test_checks_are_declared_once_with_a_remedy():
    names = [check.name for check in SUSPICION_CHECKS]
    assert len(set(names)) == len(names) == 13
    assert all(check.when and check.remedy for check in SUSPICION_CHECKS)


@pytest.mark.parametrize("kind", ["threshold", "category", "nearly"])
def test_leakage_reports_a_feature_that_determines_the_target(kind):
    table = make_table()
    is_ill = (table["outcome"] == "ill").to_numpy()
    random = np.random.default_rng(1)
    if kind == "category":
        table["later"] = np.where(is_ill, "died", "lives")
    else:
        table["later"] = np.where(is_ill, random.uniform(500, 2499, 240), 2500 + 9 * table["age"])
    if kind == "nearly":
        table.loc[0, "later"] = 1000.0 if table.loc[0, "outcome"] == "well" else 4000.0
    text = report(table)["leakage"]
    assert "'later' alone determines 'outcome' in 2" in text
    assert text.endswith("(on the command line: --drop later).")


def test_find_leaks_reports_features_of_rare_classes():
    random = np.random.default_rng(0)
    is_ill = np.arange(2500) < 200
    later = is_ill ^ (np.isin(np.arange(2500), [0, 1, 2, 3, 4, 5, 500, 600, 700, 800, 900, 1000]))
    X = pd.DataFrame({"age": random.normal(size=2500), "later": later.astype(int)})
    facts = TableFacts(X, pd.Series(is_ill, name="ill"), "classification")
    (suspicion,) = find_suspicions(facts)  # 99.52 % right, 8 % ill
    assert "'later' alone determines 'ill' in 2488 of 2500 rows" in suspicion.evidence
    X["later"] ^= np.isin(np.arange(2500), range(6, 16))  # more than a tenth of 200 errors
    assert find_suspicions(TableFacts(X, facts.y, "classification")) == []


@pytest.mark.parametrize("n_unknown", [0, 20])
def test_leakage_reports_a_date_that_only_one_class_has(n_unknown):
    table = make_table()
    dates = pd.Series(pd.date_range("2020-01-05", periods=N_ROWS).strftime("%d.%m.%Y"))
    table["died on"] = dates.where(table["outcome"] == "ill")
    table.loc[table.index[table["outcome"] == "well"][:n_unknown], "outcome"] = "unknown"
    (text,) = report(table).values()
    reason = " identifies 'outcome' ill: " if n_unknown else " determines 'outcome' in 240 of 240 "
    assert text.startswith(f"'died on' alone{reason}")
    assert text.endswith("(on the command line: --drop 'died on').")


def test_leakage_fits_no_tree_on_features_that_cannot_determine_the_target(monkeypatch):
    table = make_table()
    monkeypatch.setattr("sklearn.tree.DecisionTreeClassifier", None)
    assert "leakage" not in report(table)


def test_leakage_reports_a_number_that_determines_a_number():
    table = make_table().drop(columns="outcome").rename(columns={"weight": "outcome"})
    assert report(table) == {}
    table["pounds"] = 2.2046 * table["outcome"] + np.random.default_rng(0).normal(0, 0.1, 240)
    assert "'pounds' alone determines 'outcome' (R² 1.000)" in report(table)["leakage"]


def test_leakage_accepts_classes_that_most_features_separate():
    table = make_table()
    shift = np.where(table["outcome"] == "ill", 500, 0)
    table = table.assign(age=table["age"] + shift, weight=table["weight"] + shift)
    assert report(table) == {}


@pytest.mark.parametrize("n_times", [2, 4])
def test_duplicated_rows_reports_multiples_of_all_rows(n_times):
    table = pd.concat([make_table()] * n_times).sample(frac=1, random_state=0)
    text = report(table)["duplicated_rows"]
    assert f"the count of each distinct row is a multiple of {n_times}" in text


def test_duplicated_rows_reports_some_copies():
    table = make_table()
    text = report(pd.concat([table, table.head(48)]))["duplicated_rows"]
    assert text.startswith(
        "48 of 288 rows are exact copies of an earlier row, including the target"
    )


def test_duplicated_rows_accepts_frequent_values():
    random = np.random.default_rng(3)
    has_work = random.random((600, 1)) < 0.7
    table = pd.DataFrame(has_work * random.integers(1, 40_000, (600, 3)), columns=list("abc"))
    table["age"] = random.integers(20, 60, 600)
    table["outcome"] = random.choice(["ill", "well"], 600)
    assert table.duplicated().mean() > 0.05
    assert report(table) == {}


def test_duplicated_rows_accepts_rows_of_different_names():
    table = pd.concat([make_table()] * 2, ignore_index=True)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    random = np.random.default_rng(0)
    names = pd.DataFrame({"name": ["".join(random.choice(letters, 8)) for _ in range(2 * N_ROWS)]})
    facts = TableFacts(table.drop(columns="outcome"), table["outcome"], "classification")
    assert [one.name for one in find_suspicions(facts)] == ["duplicated_rows"]
    assert find_suspicions(replace(facts, identifiers=names)) == []


def test_repeated_subjects_suppress_integer_codes():
    random, n_people = np.random.default_rng(5), 150
    people = pd.DataFrame(
        {"age": random.integers(20, 50, n_people), "outcome": random.choice(["ill", "well"], 150)}
    )
    visits = people.loc[np.repeat(np.arange(n_people), 6)].reset_index(drop=True)
    visits["mass"] = random.normal(70, 9, len(visits))
    assert "integer_codes" in report(visits)
    patients = visits.assign(patient=np.repeat(np.arange(n_people), 6) + 500)
    assert list(report(patients)) == ["repeated_groups"]
    assert report(patients, groups="patient") == {}


def test_repeated_groups_accepts_first_names():
    random = np.random.default_rng(1)
    table = make_table(n_rows=400)
    first = random.integers(0, 60, 400)
    table["sex"] = np.where(first < 30, "f", "m")
    identifiers = pd.DataFrame({"first": [f"name {k}" for k in first]})
    facts = TableFacts(
        table.drop(columns="outcome"), table["outcome"], "classification", identifiers=identifiers
    )
    assert find_suspicions(facts) == []


def test_duplicated_rows_accepts_rows_of_few_values():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.integers(0, 3, (400, 3)).astype(str), columns=list("abc"))
    table["outcome"] = random.choice(["ill", "well"], 400)
    assert report(table) == {}


def test_repeated_groups_reports_rows_of_one_patient():
    table = make_table().assign(patient=np.arange(N_ROWS) + 500)
    again = table.assign(weight=table["weight"] + np.random.default_rng(1).normal(0, 1, N_ROWS))
    visits = pd.concat([table, again]).sample(frac=1, random_state=0)
    text = report(visits)["repeated_groups"]
    assert "240 of 240 values of 'patient' occur in several rows" in text
    assert "especially in 'age'" in text  # the first of equally similar columns
    assert text.endswith("(on the command line: --groups patient).")
    assert "patient" not in load_dataset(visits, target="outcome").X
    assert report(visits, groups="patient") == {}


@pytest.mark.parametrize("first_number", [0, 20_310])
def test_repeated_groups_reports_subjects_of_any_column_name(first_number):
    random, n_people = np.random.default_rng(2), 60
    people = make_table(n_rows=n_people).assign(height=random.normal(170, 9, n_people).round(1))
    people["nummer"] = first_number + random.permutation(n_people)
    visits = pd.concat([people] * 4, ignore_index=True)
    visits["weight"] += random.normal(0, 2, len(visits)).round(2)
    text = report(visits.sample(frac=1, random_state=0))["repeated_groups"]
    assert "'nummer' may number subjects: it has 60 different integers" in text
    assert text.endswith("(on the command line: --groups nummer).")
    assert report(visits, groups="nummer") == {}


@pytest.mark.parametrize("seed", range(5))
def test_repeated_groups_accepts_correlated_quantities(seed):
    random = np.random.default_rng(seed)
    table = make_table(seed, n_rows=600)
    for name, spread in (("height", 2), ("pulse", 3), ("pressure", 4)):
        table[name] = table["age"] + random.normal(0, spread, 600)
    assert report(table) == {}


def test_contradictory_rows_states_limit_of_all_rules():
    table = make_table()
    other = {"ill": "well", "well": "ill"}
    wrong = table.head(12).assign(outcome=table["outcome"].head(12).map(other))
    text = report(pd.concat([table, wrong]))["contradictory_rows"]
    assert text.startswith("24 of 252 rows have the same features as a row of another class")
    assert "right for more than 95.2 % of the rows" in text  # 240 of 252


def test_contradictory_rows_accepts_rows_of_few_values():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.integers(0, 4, (400, 3)), columns=list("abc"))
    table["outcome"] = random.choice(["ill", "well"], 400)
    assert report(table) == {}


def test_repeated_groups_accepts_identifiers_repeated_by_chance():
    table = make_table()
    table["subject"] = np.random.default_rng(7).integers(0, 120, N_ROWS)
    assert report(table) == {}


@pytest.mark.parametrize(("n_names", "is_reported"), [(90, True), (200, False)])
def test_repeated_groups_reports_names_of_many_rows(n_names, is_reported):
    table = make_table().sort_values("weight", ignore_index=True)
    table["age"] = table["age"].sort_values(ignore_index=True)
    table["title"] = [f"Car {i * n_names // N_ROWS}" for i in range(N_ROWS)]
    features = table[["age", "weight", "sex"]]
    identifiers = table[["title"]]
    facts = TableFacts(features, table["outcome"], "classification", identifiers=identifiers)
    names = [suspicion.name for suspicion in find_suspicions(facts)]
    assert names == (["repeated_groups"] if is_reported else [])


@pytest.mark.parametrize("form", ["{:d}", "B-{:04d}"])
def test_identifier_target_reports_identifiers_sorted_by_class(form):
    table = make_table().sort_values("outcome")
    table["record_id"] = [form.format(3 * i + 17) for i in range(N_ROWS)]
    shuffled = table.sample(frac=1, random_state=0)
    assert "'record_id' determines 'outcome'" in report(shuffled)["identifier_target"]
    assert report(table) == {}  # the order of the file, which shuffled folds ignore


def test_identifier_target_reports_identifiers_sorted_by_number():
    table = make_table().drop(columns="outcome").rename(columns={"weight": "outcome"})
    table = table.sort_values("outcome").assign(record_id=3 * np.arange(N_ROWS) + 17)
    text = report(table.sample(frac=1, random_state=0))["identifier_target"]
    assert "determines 'outcome' (R² 0.99" in text
    assert "numbered in the order" in text


@pytest.mark.parametrize("name", ["time", "year"])
def test_series_over_time_is_shuffled_time_but_no_leak(name):
    series = np.cumsum(np.random.default_rng(0).normal(0, 1, N_ROWS))
    table = make_table().assign(outcome=series, **{name: 1700 + np.arange(N_ROWS)})
    assert list(report(table)) == ["shuffled_time"]
    finding = next(text for text in load_dataset(table, target="outcome").findings if name in text)
    assert finding.endswith(f"to hold out later rows instead: --time {name}")


def test_shuffled_time_reports_rows_in_order_of_time():
    table = make_table().assign(date=pd.date_range("2020-01-01", periods=N_ROWS))
    text = report(table)["shuffled_time"]
    assert text.startswith("The rows are in the order of 'date' (240 different times)")
    assert text.endswith("(on the command line: --time date).")
    assert report(table, time="date") == {}
    assert report(table.sample(frac=1, random_state=0)) == {}


def test_integer_codes_become_categories_by_name():
    table = make_table().assign(state_code=np.random.default_rng(7).integers(1, 30, N_ROWS))
    dataset = load_dataset(table, target="outcome")
    assert dataset.categories == ("sex", "state_code")
    assert any("named like a code" in text for text in dataset.findings)
    assert load_dataset(table, target="outcome", numeric="state_code").categories == ("sex",)
    names = ["weight", "state_code"]
    facts = TableFacts.from_arrays(table[names], table["outcome"], "classification")
    assert [suspicion.name for suspicion in find_suspicions(facts)] == ["integer_codes"]


def test_integer_codes_are_recognized_by_arbitrary_order():
    random = np.random.default_rng(0)
    table = make_table(n_rows=1200)
    shares = np.array([0.1, 0.8, 0.3, 0.9, 0.2, 0.7, 0.15, 0.85, 0.4, 0.6])
    table["place"] = random.choice(10, len(table), p=random.dirichlet(np.full(10, 3.0)))
    is_ill = random.random(len(table)) < shares[table["place"]]
    table["outcome"] = np.where(is_ill, "ill", "well")
    text = report(table)["integer_codes"]
    assert "'place'" in text
    assert text.endswith("(on the command line: --category place).")
    ordered = np.sort(shares)[table["place"]]
    table["outcome"] = np.where(random.random(len(table)) < ordered, "ill", "well")
    assert report(table) == {}


def make_coded_table(shares: np.ndarray, codes: np.ndarray, seed: int, n_each: int = 15):
    """Return rows with a code and an outcome that occurs with the share of the code."""
    random = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(codes)), n_each)
    table = make_table(seed, len(rows)).assign(st=codes[rows])
    return table.assign(outcome=np.where(random.random(len(rows)) < shares[rows], "ill", "well"))


@pytest.mark.parametrize("step", [1, 10])
def test_integer_codes_reports_states_of_any_column_name(step):
    codes = step * np.setdiff1d(np.arange(1, 57), [3, 7, 14, 43, 52])  # as 51 states are numbered
    n_reported = 0
    for seed in range(20):
        shares = np.random.default_rng(seed).permutation(np.linspace(0.05, 0.95, len(codes)))
        text = report(make_coded_table(shares, codes, seed)).get("integer_codes", "")
        n_reported += "'st' holds 51 different integers" in text
    assert n_reported >= 19
    assert text.endswith("(on the command line: --category st).")


@pytest.mark.parametrize("n_values", [7, 12, 30])
@pytest.mark.parametrize("step", [1, 10])
@pytest.mark.parametrize("relation", ["line", "curve", "step", "window", "peak"])
def test_integer_codes_accepts_any_smooth_relation(relation, step, n_values):
    u = np.linspace(0, 1, n_values)
    shares = {
        "line": u,
        "curve": 4 * (u - 0.5) ** 2,
        "step": (u > 0.4).astype(float),
        "window": ((u > 0.3) & (u < 0.6)).astype(float),
        "peak": np.exp(-(((u - 0.6) / 0.15) ** 2)),
    }[relation]
    table = make_coded_table(0.15 + 0.7 * shares, step * np.arange(1, n_values + 1), 0, 40)
    assert "integer_codes" not in report(table)


@pytest.mark.parametrize("has_gaps", [False, True])
def test_integer_codes_reports_codes_as_target(has_gaps):
    table = make_table(n_rows=1020).drop(columns="outcome")
    codes = np.setdiff1d(np.arange(1, 57), [3, 7, 14, 43, 52]) if has_gaps else np.arange(1, 52)
    table["outcome"] = np.random.default_rng(0).permutation(np.repeat(codes, 20))
    text = report(table)["integer_codes"]
    assert "'outcome' has 51 different integers and is read as a quantity" in text
    assert text.endswith("(on the command line: --task classification).")
    table["outcome"] = (table["weight"] / 2).round().astype(int)
    assert "integer_codes" not in report(table)


@pytest.mark.parametrize("typo", ["Well", "well ", "wel-l"])
def test_class_names_reports_names_that_differ_in_characters(typo):
    table = make_table()
    table.loc[table.index[table["outcome"] == "well"][:2], "outcome"] = typo
    facts = TableFacts.from_arrays(table[["age"]], table["outcome"], "classification")
    remedies = {one.name: one.options for one in find_suspicions(facts)}
    assert remedies["class_names"] == ("--labels", f"{typo}=well")


def test_class_names_without_possible_option_has_no_command():
    labels = pd.Series(["a, b"] * 50 + ["c"] * 40 + ["A, b"] * 2, name="outcome")
    facts = TableFacts.from_arrays(np.zeros((92, 1)), labels, "classification")
    assert next(one.options for one in find_suspicions(facts) if one.name == "class_names") == ()


@pytest.mark.parametrize("typo", ["bening", "benignn", "benin", "beniqn"])
def test_class_names_reports_typos(typo):
    labels = pd.Series(["benign"] * 300 + ["malignant"] * 100 + [typo] * 2, name="outcome")
    facts = TableFacts.from_arrays(np.zeros((402, 1)), labels, "classification")
    assert find_suspicions(facts)[0].evidence.startswith(
        f"Classes of 'outcome' have nearly the same names: {typo!r} (2 rows) and 'benign' (300)"
    )


@pytest.mark.parametrize("names", [("stage1", "stage2"), ("good", "vgood"), ("acc", "unacc")])
def test_class_names_accepts_names_of_different_meaning(names):
    labels = pd.Series([names[0]] * 398 + [names[1]] * 4, name="outcome")
    facts = TableFacts.from_arrays(np.zeros((402, 1)), labels, "classification")
    assert "class_names" not in {suspicion.name for suspicion in find_suspicions(facts)}


def test_find_suspicions_reports_few_test_rows():
    table = make_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    facts = TableFacts(X, y, "classification", test=make_table(9, n_rows=5)[list(X)])
    (suspicion,) = find_suspicions(facts)
    assert suspicion.evidence == (
        "The test set has only 5 rows, so shares of them are uncertain by up to ± 44 percentage "
        "points"
    )
    assert str(suspicion).endswith("all rows of the table (on the command line: without --test).")
    words = ["skescore", "tune", "a.csv", "--test", "b.csv", "--target", "outcome"]
    for command in (words, [*words[:3], "--test=b.csv", *words[5:]]):
        text = suspicion.with_command(command)
        assert text.endswith(": skescore tune a.csv --target outcome")


def test_rows_in_training_reports_shared_rows():
    table = make_table()
    X, y = table.drop(columns="outcome"), table["outcome"]
    facts = TableFacts(X, y, "classification", test=X.tail(60))
    (suspicion,) = find_suspicions(facts)
    assert suspicion.evidence == "60 of 60 test rows are among the training rows"
    assert suspicion.options == ("--drop-duplicates",)
    other = make_table(3)[list(X)]
    assert find_suspicions(TableFacts(X, y, "classification", test=other)) == []


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.booleans())
def test_find_suspicions_accepts_any_table(seed, n_rows, is_regression):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "id": random.integers(0, 9, n_rows),
            "x": np.where(random.random(n_rows) < 0.3, np.nan, random.normal(size=n_rows)),
            "time": np.sort(random.integers(0, 99, n_rows)),
            "kind": random.choice(["a", "b", None], n_rows),
            "none": np.full(n_rows, np.nan),
        }
    )
    y = pd.Series(
        random.normal(size=n_rows) if is_regression else random.choice(["p", "q"], n_rows)
    )
    task = "regression" if is_regression else "classification"
    identifiers = pd.DataFrame({"name": random.choice(["n1", "n2", None], n_rows)})
    facts = TableFacts(X, y.rename("y"), task, identifiers=identifiers, test=X.head(3))
    for suspicion in find_suspicions(facts):
        assert suspicion.evidence
        assert suspicion.remedy


def make_result(**changes) -> ResultFacts:
    figures = {
        "task": "classification",
        "target_name": "y",
        "black_box_quality": {"accuracy": 0.9, "f1_weighted": 0.9},
        "constant_quality": {"accuracy": 0.688, "f1_weighted": 0.561},
        "fidelity": 0.95,
        "n_rules": 3,
    }
    return ResultFacts(**(figures | changes))


def test_find_suspicions_reports_black_box_worse_than_constant():
    assert find_suspicions(make_result()) == []
    quality = {"accuracy": 0.672, "f1_weighted": 0.6}
    (suspicion,) = find_suspicions(make_result(black_box_quality=quality))
    assert (
        "accuracy 0.672 on held-out rows, against 0.688 of the best constant" in suspicion.evidence
    )
    assert suspicion.options == ()
    facts = make_result(black_box_quality=quality, other_black_box="random-forest")
    assert find_suspicions(facts)[0].options == ("--black-box", "random-forest")
    facts = make_result(black_box_quality=quality, quality_rows="these rows")
    assert "accuracy 0.672 on these rows" in find_suspicions(facts)[0].evidence
    facts = make_result(
        task="regression", black_box_quality={"r2": -0.1}, constant_quality={"r2": 0.0}
    )
    assert find_suspicions(facts)[0].name == "no_better_than_constant"


def test_find_suspicions_reports_low_fidelity():
    (suspicion,) = find_suspicions(make_result(fidelity=0.76))
    assert suspicion.evidence == "The 3 rules agree with the model on only 76 % of held-out rows"
    assert suspicion.options == ("--scoring", "fidelity")
    command = ["skescore", "tune", "t.csv", "--reference", "data", "--output", "run"]
    assert suspicion.with_command(command).endswith(
        ": skescore tune t.csv --output run --scoring fidelity --overwrite"
    )
    # The stored trials, and the row of their trade-off, are those of another search.
    command += ["--storage", "t.journal", "--study=one", "--pick", "2"]
    assert suspicion.with_command(command).endswith(
        ": skescore tune t.csv --output run --scoring fidelity --overwrite"
    )
    (of_one_rule,) = find_suspicions(make_result(fidelity=0.5, n_rules=1))
    assert of_one_rule.evidence.startswith("The rule agrees with the model on only 50 %")
    assert (
        "on only 79.7 % of held-out rows"
        in find_suspicions(make_result(fidelity=0.797))[0].evidence
    )
    (of_numbers,) = find_suspicions(
        make_result(fidelity=0.3, task="regression", fidelity_rows="weighted held-out rows")
    )
    assert of_numbers.evidence == (
        "The R² of the 3 rules against the model is only 0.30 on weighted held-out rows"
    )
    assert not find_suspicions(make_result(fidelity=0.7, task="regression"))
    assert not find_suspicions(make_result(fidelity=float("nan")))
    (suspicion,) = find_suspicions(make_result(fidelity=0.76, is_fidelity_search=True))
    assert suspicion.options == ()
