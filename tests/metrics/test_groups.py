"""How rules treat groups of rows, compared with counts by loops."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor, ExtractorSearchCV
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
def test_group_shares_by_loops(weights):
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


def test_group_rates_and_gap_by_loops():
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


def test_voting_rules_cover_instead_of_deciding():
    voting = RULES.replace(ordered=False, voting="votes")
    table = group_shares(voting, X, np.full(60, "all"))
    assert table.loc[3, "all"] == pytest.approx(np.mean(X["income"] <= 0.6))
    assert table["all"].sum() > 1


def test_group_rates_of_numbers():
    rules = RuleSet([Rule([], LinearOutput(1.0, [(0, 2.0)]))], ["x"], task="regression")
    rates = group_rates(rules, [[0], [1], [2], [3]], [0, 0, 1, 1])
    assert rates.loc["mean prediction"].tolist() == [2.0, 6.0]
    assert group_gap(rules, [[0], [1], [2], [3]], [0, 0, 1, 1]) == 4.0
    assert group_gap(rules, [[0], [1]], ["one", "one"]) == 0.0


def test_groups_of_an_array_by_feature_name():
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
def test_invalid_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        group_gap(RULES, X, groups)


# --- the gap as a measure of searches -------------------------------------------------------------


TABLE = pd.DataFrame({"x": RNG.random(200), "z": RNG.random(200), "sex": RNG.integers(0, 2, 200)})
LABELS = np.where(TABLE["x"] + 0.8 * TABLE["sex"] > 0.9, "yes", "no")


def test_group_gap_as_scorer():
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
    with pytest.raises(TypeError, match="counts of rows only"):
        get_rule_scorer("group_gap:x")(rules, count_rows(rules, [[0.0]], ["yes"]), None)


@pytest.mark.filterwarnings("ignore:The best candidate")
def test_search_minimizes_the_gap_between_groups():
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
    # No member of the front is worse than another in all three measures.
    losses = front[["loss", "n_rules", "group_gap:sex"]].to_numpy()
    for row in losses:
        dominated = (losses <= row).all(axis=1) & (losses < row).any(axis=1)
        assert not dominated.any()
    assert not math.isnan(losses.sum())


def test_search_refuses_unknown_losses():
    search = ExtractorSearchCV(DecisionTreeClassifier(), scoring=("loss", "gap:sex"))
    with pytest.raises(ValueError, match="not a measure that can be minimized"):
        search.fit(TABLE, LABELS)
