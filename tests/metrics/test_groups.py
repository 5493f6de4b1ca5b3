"""Treatment of groups of rows by rules, compared with counts of plain loops."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.constraints import Constraints, violations
from skescore.metrics import count_rows, group_gap, group_rates, group_shares
from skescore.rules import Fallback, Interval, LinearOutput, Rule, RuleSet
from skescore.scorers import get_rule_scorer, make_set_scorer

RNG = np.random.default_rng(3)
X = pd.DataFrame({"income": RNG.random(60), "age": RNG.random(60)})
GROUPS = RNG.choice(["a", "b", None], 60)
WEIGHTS = RNG.integers(0, 4, 60).astype(float)
RULES = RuleSet(
    [
        Rule([Interval(0, upper=0.3)], "no"),
        Rule([Interval(1, lower=0.6)], "yes"),
        Rule([Interval(0, upper=0.6)], "no"),
    ],
    ["income", "age"],
    task="classification",
    classes=["no", "perhaps", "yes"],
    fallback=Fallback("yes"),
)


def first_rule(row):
    if row.income <= 0.3:
        return 1
    if row.age > 0.6:
        return 2
    return 3 if row.income <= 0.6 else "no rule"


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_group_shares_agree_with_loop(weights):
    table = group_shares(RULES, X, GROUPS, weights)
    assert list(table.columns) == ["a", "b"]
    assert list(table.index) == [1, 2, 3, "no rule"]
    for group in table:
        counts = dict.fromkeys(table.index, 0.0)
        for i, row in enumerate(X.itertuples()):
            if GROUPS[i] == group:
                counts[first_rule(row)] += 1.0 if weights is None else weights[i]
        for rule, count in counts.items():
            assert table.loc[rule, group] == pytest.approx(count / sum(counts.values()))


def test_group_rates_and_gap_agree_with_loop():
    rates = group_rates(RULES, X, GROUPS, WEIGHTS)
    predictions = RULES.predict(X)
    gaps = []
    for label in RULES.classes:
        shares = []
        for group in ("a", "b"):
            rows = [i for i in range(60) if GROUPS[i] == group]
            total = sum(WEIGHTS[i] for i in rows)
            shares.append(sum(WEIGHTS[i] for i in rows if predictions[i] == label) / total)
            assert rates.loc[label, group] == pytest.approx(shares[-1])
        gaps.append(abs(shares[0] - shares[1]))
    assert group_gap(RULES, X, GROUPS, WEIGHTS) == pytest.approx(max(gaps))
    assert max(gaps) > 0.01


def test_group_shares_of_voting_rules_count_covered_rows():
    voting = RULES.replace(ordered=False, voting="votes")
    table = group_shares(voting, X, np.full(60, "all"))
    assert table.loc[3, "all"] == pytest.approx(np.mean(X["income"] <= 0.6))
    assert table["all"].sum() > 1


def test_group_rates_of_regression_are_means():
    rules = RuleSet([Rule([], LinearOutput(1.0, [(0, 2.0)]))], ["x"], task="regression")
    rates = group_rates(rules, [[0], [1], [2], [3]], [0, 0, 1, 1])
    assert rates.loc["mean prediction"].tolist() == [2.0, 6.0]
    assert group_gap(rules, [[0], [1], [2], [3]], [0, 0, 1, 1]) == 4.0
    assert group_gap(rules, [[0], [1]], ["one", "one"]) == 0.0


def test_groups_may_be_named_by_feature():
    rows = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], "no"), Rule([], "yes")], ["x", "sex"], task="classification"
    )
    assert group_rates(rules, rows, "sex").loc["yes"].to_dict() == {0.0: 0.5, 1.0: 1.0}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("incom", "Did you mean 'income'"),
        (["a"], "one value per row, got 1 for 60 rows"),
        ([None] * 60, "holds no group"),
        ("age", "more than 50 groups"),
    ],
)
def test_group_gap_rejects_invalid_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        group_gap(RULES, X, groups)


# --- the gap as a measure of searches -------------------------------------------------------------


TABLE = pd.DataFrame({"x": RNG.random(200), "z": RNG.random(200), "sex": RNG.integers(0, 2, 200)})
LABELS = np.where(TABLE["x"] + 0.8 * TABLE["sex"] > 0.9, "yes", "no")


def test_group_gap_scorer_negates_gap():
    extractor = CARTExtractor(DecisionTreeClassifier(random_state=0)).fit(TABLE, LABELS)
    gap = group_gap(extractor, TABLE, "sex")
    shares = [np.mean(extractor.predict(TABLE)[TABLE["sex"] == sex] == "yes") for sex in (0, 1)]
    assert gap == pytest.approx(abs(shares[0] - shares[1]))
    assert gap > 0.5
    scorer = get_rule_scorer("group_gap:sex")
    assert scorer.name == "neg_group_gap:sex"
    assert scorer(extractor, TABLE, LABELS) == -gap
    assert pickle.loads(pickle.dumps(scorer))(extractor, TABLE, LABELS) == -gap
    assert make_set_scorer("group_gap:sex")(extractor, TABLE, LABELS) == -gap
    scaler = StandardScaler().set_output(transform="pandas")
    scaled = make_pipeline(scaler, extractor).fit(TABLE, LABELS)
    assert scorer(scaled, TABLE, LABELS) == pytest.approx(-gap)


def test_group_gap_needs_rows():
    rules = RuleSet([Rule([], "yes")], ["x"], task="classification", classes=["no", "yes"])
    with pytest.raises(TypeError, match="only counts of rows"):
        get_rule_scorer("group_gap:x")(rules, count_rows(rules, [[0.0]], ["yes"]), None)


@pytest.mark.filterwarnings("ignore:The best candidate")
def test_search_minimizes_group_gap():
    search = ExtractorSearchCV(
        DecisionTreeClassifier(max_depth=4, random_state=0),
        extractors=["cart"],
        scoring=("loss", "n_rules", "group_gap:sex"),
        measures=("neg_group_gap:z_half",),
        n_trials=4,
        cv=3,
        random_state=0,
    )
    table = TABLE.assign(z_half=TABLE["z"] > 0.5)
    search.fit(table, LABELS)
    front = search.pareto_front_
    assert front["group_gap:sex"].min() == 0.0  # the constant
    assert front["group_gap:sex"].max() > 0.5
    best = front.loc[front["loss"].idxmin()]
    assert best["group_gap:sex"] > 0.5
    assert (search.leaderboard_["neg_group_gap:z_half"].dropna() <= 0).all()
    # No member of the front is dominated in all three measures.
    losses = front[["loss", "n_rules", "group_gap:sex"]].to_numpy()
    for row in losses:
        dominated = (losses <= row).all(axis=1) & (losses < row).any(axis=1)
        assert not dominated.any()
    assert not math.isnan(losses.sum())


def test_search_rejects_unknown_losses():
    search = ExtractorSearchCV(DecisionTreeClassifier(), scoring=("loss", "gap:sex"))
    with pytest.raises(ValueError, match="not a measure that can be minimized"):
        search.fit(TABLE, LABELS)


BIG = 2**53
EXACT = pd.DataFrame(
    {"income": [0.1, 0.5, 0.9, 0.2], "age": 0.5, "g": [BIG, BIG + 1, BIG, BIG + 1]}
)
MAKERS = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "pandas_arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("has_missing", [False, True])
def test_groups_are_exact_in_all_tables(kind, has_missing):
    frame = EXACT
    if has_missing:
        unknown_row = pd.DataFrame({"income": [0.9], "age": [0.9], "g": [pd.NA]})
        frame = pd.concat([EXACT.astype({"g": "Int64"}), unknown_row.astype({"g": "Int64"})])
    table = MAKERS[kind](frame.reset_index(drop=True))
    for function in (group_rates, group_shares):
        expected = function(RULES, EXACT, EXACT["g"].tolist())
        assert expected.columns.tolist() == [BIG, BIG + 1]
        pd.testing.assert_frame_equal(function(RULES, table, "g"), expected)


CONTAINERS = {
    "list": list,
    "array": np.array,
    "arrow": pa.array,
    "polars": pl.Series,
    "pandas": lambda groups: pd.Series(groups, index=range(7, 11)),
}


@pytest.mark.parametrize("pack", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("groups", [[BIG, BIG + 1] * 2, list("uuvv"), [True, False, True, True]])
def test_groups_are_exact_in_all_containers(pack, groups):
    expected = {
        group: np.mean(
            [p == "no" for p, g in zip(RULES.predict(EXACT), groups, strict=True) if g == group]
        )
        for group in sorted(set(groups))
    }
    assert group_rates(RULES, EXACT, pack(groups)).loc["no"].to_dict() == expected


def test_groups_accept_sparse_rows():
    rows = EXACT[["income", "age"]]
    expected = group_rates(RULES, rows, list("uuvv"))
    for matrix in (sparse.csr_matrix(rows), sparse.csr_array(rows), sparse.coo_array(rows)):
        pd.testing.assert_frame_equal(group_rates(RULES, matrix, list("uuvv")), expected)
        assert group_rates(RULES, matrix, "age").columns.tolist() == [0.5]


def test_groups_may_be_tuples():
    groups = [("f", 1), ("f", 2), ("f", 1), ("m", 1)]
    names = [str(group) for group in groups]
    for function in (group_rates, group_shares):
        table, expected = (function(RULES, EXACT, labels) for labels in (groups, names))
        assert table.columns.tolist() == sorted(set(groups))
        assert table.to_numpy().tolist() == expected.to_numpy().tolist()
    assert group_gap(RULES, EXACT, groups) == group_gap(RULES, EXACT, names)
    assert len(group_rates(RULES, EXACT, [1, "f", ("f", 1), None]).columns) == 3


def arrow_table(frame):
    """Column names of an Arrow table may occur twice."""
    columns = [pa.array(frame.iloc[:, i]) for i in range(frame.shape[1])]
    return pa.Table.from_arrays(columns, names=list(frame.columns))


@pytest.mark.parametrize("make", [lambda frame: frame, arrow_table])
def test_groups_reject_ambiguous_names(make):
    frame = EXACT.set_axis(["income", "g", "g"], axis=1)
    with pytest.raises(ValueError, match="more than one column 'g'"):
        group_rates(RULES.replace(feature_names=["income", "a"]), make(frame), "g")


@pytest.mark.parametrize("function", [group_rates, group_shares])
def test_groups_without_weight_are_left_out(function):
    table = function(RULES, EXACT, list("uuvv"), [1.0, 2.0, 0.0, 0.0])
    expected = function(RULES, EXACT[:2], list("uu"), [1.0, 2.0])
    pd.testing.assert_frame_equal(table, expected)
    with pytest.raises(ValueError, match="sample_weight must hold a positive number"):
        function(RULES, EXACT, list("uuvv"), np.zeros(4))
    with pytest.raises(ValueError, match="sample_weight must hold a positive number"):
        function(RULES, EXACT, ["u", "u", None, None], [0, 0, 1, 1])


def test_groups_must_be_one_column():
    with pytest.raises(ValueError, match=r"groups must have one value per row, got shape \(4, 2\)"):
        group_rates(RULES, EXACT, np.ones((4, 2)))


def test_group_gap_leaves_out_abstaining_rows():
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 10.0), Rule([Interval(0, 2, 4)], 90.0)],
        ["income"],
        task="regression",
        fallback=Fallback(50.0, "abstain"),
    )
    rows = pd.DataFrame({"income": [1.0, 1.0, 3.0, 3.0, 9.0], "sex": ["f", "f", "m", "m", "m"]})
    assert group_rates(rules, rows, "sex").iloc[0].to_dict() == {"f": 10.0, "m": 90.0}
    assert group_gap(rules, rows, "sex") == 80.0
    assert violations(rules, Constraints(max_gap={"sex": 80}), rows) == []
    assert len(violations(rules, Constraints(max_gap={"sex": 79}), rows)) == 1
    with pytest.warns(UndefinedMetricWarning, match="the group 'm'"):
        assert math.isnan(group_gap(rules, rows, "sex", [1, 1, 0, 0, 1]))


@pytest.mark.parametrize(
    "outputs", [("no", "yes"), (-1, 1), (False, True), ("no", "no rule"), (10.0, 90.0)]
)
def test_group_gap_counts_uncovered_rows_without_a_fallback(outputs):
    rows = pd.DataFrame({"income": [1.0, 9.0, 1.0, 3.0], "sex": ["f", "f", "m", "m"]})
    task = "regression" if outputs == (10.0, 90.0) else "classification"
    premises = [Interval(0, upper=2)], [Interval(0, 2, 4)]
    rules = RuleSet(map(Rule, premises, outputs), ["income"], task=task)
    gap = 0.5 if task == "classification" else 40.0
    assert group_gap(rules, rows, "sex") == gap
    assert violations(rules, Constraints(max_gap={"sex": gap}), rows) == []
    assert len(violations(rules, Constraints(max_gap={"sex": 0.9 * gap}), rows)) == 1
