"""Rules as an indented tree, read back by a slow parser."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text

from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
)
from skescore.rules.importers import tree_to_ruleset


def exact(feature, value):
    return repr(value)


# --- parser of trees, one row at a time ------------------------------------------------------


def holds(condition, row):
    """Return whether a printed comparison of names x0, x1, ... with numbers holds for a row."""
    presence = re.fullmatch(r"x(\d+) is (known|missing)", condition)
    if presence:
        return math.isnan(row[int(presence[1])]) == (presence[2] == "missing")
    compared = condition.removesuffix(" or missing")
    if compared != condition and math.isnan(row[int(re.search(r"x(\d+)", condition)[1])]):
        return True
    condition = compared
    parts = re.split(r" (<=|>=|<|>|=) ", condition)
    values = [row[int(p[1:])] if p.startswith("x") else float(p) for p in parts[::2]]
    if any(math.isnan(v) for v in values):
        return False
    compare = {
        "<=": lambda a, b: a <= b,
        ">=": lambda a, b: a >= b,
        "<": lambda a, b: a < b,
        ">": lambda a, b: a > b,
        "=": lambda a, b: a == b,
    }
    return all(
        compare[sign](a, b) for sign, a, b in zip(parts[1::2], values, values[1:], strict=False)
    )


def read_conclusion(text, row):
    """Return the first conclusion whose conditions all hold, or None."""
    path = []
    for line in text.splitlines():
        result = re.fullmatch(r"((?:\|   )*)\|--- (.*)", line)
        if not result:
            continue
        depth, content = len(result[1]) // 4, result[2]
        conclusion = re.fullmatch(r"(?:class|value): (.*?)(?:   \(.*\))?", content)
        if conclusion is None:
            path[depth:] = [holds(content, row)]
        elif all(path[:depth]):
            return conclusion[1]
    return None


def rows_for(ruleset, rng, n_rows=200):
    """Return random rows, rows on and right next to the bounds, and missing values."""
    X = rng.normal(size=(n_rows, ruleset.n_features)) * 3
    boxes = ruleset.boxes
    for j in range(ruleset.n_features):
        cuts = np.concatenate([boxes.lower[:, j], boxes.upper[:, j]])
        cuts = cuts[np.isfinite(cuts)]
        if len(cuts):
            near = np.concatenate([np.nextafter(cuts, -9e9), cuts, np.nextafter(cuts, 9e9)])
            is_near_cut = rng.random(n_rows) < 0.7
            X[is_near_cut, j] = rng.choice(near, is_near_cut.sum())
    X[rng.random(X.shape) < 0.02] = np.nan
    return X


def assert_reads_like(ruleset, X):
    text = ruleset.replace(fallback=None).to_tree_text(number=exact)
    is_uncovered = ~ruleset.covers(X)
    answers = ruleset.replace(fallback=Fallback(ruleset.rules[0].output)).predict(X)
    for row, answer, is_missing in zip(X, answers.tolist(), is_uncovered, strict=True):
        assert read_conclusion(text, row) == (None if is_missing else str(answer)), (text, row)


# --- trees -----------------------------------------------------------------------------------


def test_tree_text_matches_export_text_of_scikit_learn():
    X, y = load_wine(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    ours = as_ruleset(tree).to_tree_text()
    theirs = export_text(tree, feature_names=list(X.columns))

    def shape(text):
        """Compare indentation, feature and sign of every line, and the class of a leaf."""
        return re.findall(r"^((?:\|   )*\|--- )(class: \d|[\w/]+ +[<>]=?)", text, re.MULTILINE)

    assert len(shape(ours)) == len(ours.splitlines())
    assert shape(ours) == shape(theirs.replace(">  ", "> "))


@pytest.mark.parametrize("leaves", [1, 2, 5, 30])
@pytest.mark.parametrize("simplify", [False, True])
def test_tree_text_reads_like_scikit_learn_trees(leaves, simplify):
    X, y = load_wine(return_X_y=True)
    tree = DecisionTreeClassifier(
        max_depth=None,
        max_leaf_nodes=leaves if leaves > 1 else None,
        min_samples_leaf=1 if leaves > 1 else len(X),
        random_state=0,
    )
    ruleset = tree_to_ruleset(tree.fit(X, y), simplify=simplify)
    text = ruleset.to_tree_text(number=exact)
    if not simplify:  # a tree states every condition once, and its opposite
        assert text.count("class:") == len(ruleset)
        assert len(text.splitlines()) == len(ruleset) + 2 * (len(ruleset) - 1)
        assert "from the top" not in text
    assert [read_conclusion(text, row) for row in X] == [
        str(a) for a in ruleset.predict(X).tolist()
    ]


def test_tree_text_describes_regression_trees():
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(X, y)
    ruleset = tree_to_ruleset(tree)
    text = ruleset.to_tree_text(number=exact)
    read_values = np.array([float(read_conclusion(text, row)) for row in X])
    assert np.allclose(read_values, tree.predict(X), rtol=1e-3)  # conclusions have four digits
    assert "± " in text


def random_tree(rng, n_features, depth, gaps=0.0):
    """Return most leaves of a random tree, in random order.

    A share of splits sends missing values to one side.
    """
    leaves = []

    def grow(conditions, depth_left):
        if depth_left == 0 or rng.random() < 0.15:
            leaves.append(conditions)
            return
        feature, cut = int(rng.integers(n_features)), round(float(rng.normal()), 1)
        closed = bool(rng.random() < 0.5)
        to_left, to_right = [(True, False), (False, True)][rng.integers(2)]
        has_gaps = rng.random() < gaps
        for side in (
            Interval(feature, upper=cut, upper_closed=closed, missing=has_gaps and to_left),
            Interval(feature, lower=cut, lower_closed=not closed, missing=has_gaps and to_right),
        ):
            try:
                Rule([*conditions, side], 0)
            except ValueError:
                continue  # the leaf would be empty
            grow([*conditions, side], depth_left - 1)

    grow([], depth)
    listed = [leaf for leaf in leaves if rng.random() < 0.9] or leaves[:1]
    rng.shuffle(listed)
    return listed


@pytest.mark.parametrize("seed", range(25))
def test_tree_text_rebuilds_shuffled_leaves(seed):
    rng = np.random.default_rng(seed)
    leaves = random_tree(rng, 3, 4)
    rules = [Rule(leaf, f"l{i}") for i, leaf in enumerate(leaves)]
    ruleset = RuleSet(
        rules, ["x0", "x1", "x2"], task="classification", ordered=False, disjoint=True
    )
    text = ruleset.to_tree_text()
    assert "from the top" not in text  # single comparisons separate all leaves of a tree
    assert_reads_like(ruleset, rows_for(ruleset, rng))


@pytest.mark.parametrize("seed", range(25))
def test_tree_text_handles_missing_values(seed):
    rng = np.random.default_rng(seed)
    leaves = random_tree(rng, 3, 4, gaps=0.8)
    rules = [Rule(leaf, f"l{i}") for i, leaf in enumerate(leaves)]
    # A leaf of missing values alone is no box, so that such sets are written as lists.
    boxes = [rule for rule in rules if not rule.non_intervals]
    for listed in (rules, boxes):
        ruleset = RuleSet(
            listed, ["x0", "x1", "x2"], task="classification", ordered=False, disjoint=True
        )
        assert ("from the top" in ruleset.to_tree_text()) <= (listed is rules)
        X = rows_for(ruleset, rng)
        X[rng.random(X.shape) < 0.3] = np.nan
        assert_reads_like(ruleset, X)


def test_tree_text_states_branch_of_missing_values():
    rules = [
        Rule([Interval(0, upper=5, missing=True), Interval(1, upper=2)], "a"),
        Rule([Interval(0, upper=5), Interval(1, lower=2)], "b"),
        Rule([Interval(0, lower=5)], "c"),
    ]
    ruleset = RuleSet(rules, ["age", "size"], task="classification", ordered=False, disjoint=True)
    assert ruleset.to_tree_text().splitlines() == [
        "|--- age <= 5 or missing",
        "|   |--- size <= 2",
        "|   |   |--- class: a",
        "|   |--- size > 2",
        "|   |   |--- age is known",
        "|   |   |   |--- class: b",
        "|--- age > 5",
        "|   |--- class: c",
    ]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("ordered", [True, False])
def test_tree_text_reads_like_random_lists(seed, ordered):
    rng = np.random.default_rng(seed)
    rules = []
    for i in range(12):
        conditions = []
        for j in np.flatnonzero(rng.random(3) < 0.5).tolist():
            low, high = sorted(np.round(rng.normal(size=2), 0).tolist())
            flags = rng.random(4) < 0.5
            if low == high:
                conditions.append(Interval(j, low, high, True, True))
            else:
                low, high = (low if flags[2] else -math.inf), (high if flags[3] else math.inf)
                conditions.append(Interval(j, low, high, bool(flags[0]), bool(flags[1])))
        statistics = RuleStatistics(int(rng.integers(1, 9)), None)
        rules.append(Rule(conditions, f"l{i}", statistics))
    ruleset = RuleSet(rules, ["x0", "x1", "x2"], task="classification", ordered=ordered)
    assert ruleset.to_tree_text().startswith("(from the top")
    assert_reads_like(ruleset, rows_for(ruleset, rng))
    # If rules are declared disjoint, the first match predicts.
    assert_reads_like(ruleset.replace(ordered=False, disjoint=True), rows_for(ruleset, rng))


def test_tree_text_handles_boxes_that_no_cut_separates():
    """Four boxes around a fifth, like a pinwheel: every straight cut goes through one."""
    sides = [(0, 2, 0, 1), (2, 3, 0, 2), (1, 3, 2, 3), (0, 1, 1, 3), (1, 2, 1, 2), (5, 6, 5, 6)]
    rules = [
        Rule([Interval(0, a, b), Interval(1, c, d)], i + 0.5)
        for i, (a, b, c, d) in enumerate(sides)
    ]
    ruleset = RuleSet(
        rules,
        ["x0", "x1"],
        task="regression",
        ordered=False,
        disjoint=True,
        domain=Domain((0, 0), (6, 6)),
        fallback=Fallback(0),
    )
    text = ruleset.to_tree_text()
    assert text.splitlines()[0].startswith("(from the top")
    # The separate box is still split from the others.
    assert text.splitlines()[1] == "|--- x0 <= 3"
    grid = np.array(list(itertools.product(np.arange(-0.5, 7, 0.5), repeat=2)))
    assert_reads_like(ruleset, grid)


def test_tree_text_handles_deep_trees_and_many_leaves():
    cuts = np.arange(1500.0)
    rules = [Rule([Interval(0, c, c + 1)], i) for i, c in enumerate(cuts)]
    ruleset = RuleSet(rules, ["x0"], task="regression", ordered=False, disjoint=True)
    text = ruleset.to_tree_text(number=exact)
    assert text.count("value: ") == 1500
    assert max(line.count("|   ") for line in text.splitlines()) < 15
    # Each level adds a feature, so that the tree must be deep.
    rules, path = [], []
    for j in range(60):
        rules.append(Rule([*path, Interval(j, upper=0)], j))
        path.append(Interval(j, lower=0))
    names = [f"x{j}" for j in range(60)]
    deep = RuleSet(rules, names, task="regression", ordered=False, disjoint=True)
    assert max(line.count("|   ") for line in deep.to_tree_text().splitlines()) == 60


# --- layout ----------------------------------------------------------------------------------


def test_tree_text_describes_ordered_list():
    rules = [
        Rule([Interval(0, upper=2), Interval(1, upper=1)], "a", RuleStatistics(3, (3, 0))),
        Rule([Interval(0, upper=2), OneOf(2, ["red"], negated=True)], "b"),
        Rule([Interval(0, upper=2)], "a"),
        Rule([AtLeast(2, [Interval(0, 5), OneOf(2, ["red", "blue"]), Interval(1, 1)])], "b"),
        Rule([Linear([(0, 1), (1, -2)], 0, 3, True)], "a"),
    ]
    ruleset = RuleSet(
        rules, ["a b", "≤", "c"], task="classification", fallback=Fallback("b", "abstain")
    )
    assert ruleset.to_tree_text().splitlines() == [
        "(from the top, the first branch whose conditions all hold predicts)",
        "|--- a b <= 2",
        '|   |--- "≤" <= 1',
        "|   |   |--- class: a   (3 rows, 100 % of this class)",
        "|   |--- c != red",
        "|   |   |--- class: b",
        "|   |--- class: a",
        '|--- at least 2 of (a b > 5; c in {blue, red}; "≤" > 1)',
        "|   |--- class: b",
        '|--- 0 <= a b - 2·"≤" <= 3',
        "|   |--- class: a",
        "otherwise, where no rule holds: no prediction",
    ]


def test_tree_text_describes_small_rule_sets():
    rule = Rule([], LinearOutput(1, [(0, 2)]))
    one = RuleSet([rule], ["x"], task="regression", fallback=Fallback(3))
    assert one.to_tree_text() == "|--- value: 1 + 2·x"
    assert one.replace(ordered=False, disjoint=True).to_tree_text() == "|--- value: 1 + 2·x"
    assert one[:0].to_tree_text() == "(no rules)\notherwise, where no rule holds: 3"


def test_tree_text_rejects_voting_rules():
    ruleset = RuleSet([Rule([], 1.0)], ["x"], task="regression", ordered=False, voting="sum")
    with pytest.raises(ValueError, match="A tree requires that one rule predicts"):
        ruleset.to_tree_text()


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Interval(0, 1, 2, True, False), "1 <= x0 < 2"),
        (Interval(0, 1, lower_closed=True), "x0 >= 1"),
        (Interval(0, 3, 3, True, True), "x0 = 3"),
        (Linear([(0, 0.5), (1, -2)], upper=3), "0.5·x0 - 2·x1 <= 3"),
        (OneOf(0, ["a", "b"], negated=True), "x0 not in {a, b}"),
        (OneOf(0, ["a"]), "x0 = a"),
    ],
)
def test_tree_text_describes_conditions(condition, text):
    ruleset = RuleSet([Rule([condition], 1.0)], ["x0", "x1"], task="regression")
    assert f"|--- {text}\n" in ruleset.to_tree_text()
