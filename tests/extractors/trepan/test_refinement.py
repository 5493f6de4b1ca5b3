"""Alternating optimization of trees of Trepan compared with slow searches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.black_boxes import CallableClassifier
from skescore.extractors.trepan import TrepanExtractor, accuracy_gain


def make_table(seed, n_rows=150):
    """Return a table of numbers, whole numbers and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n_rows).round(2),
            "age": rng.integers(0, 9, n_rows),
            "rate": rng.uniform(size=n_rows).round(2),
            "color": rng.choice(["red", "green", "blue", "gray"], n_rows),
        }
    )


def label_rows(rows):
    """Label rows by a sum with waves, which no short tree imitates exactly."""
    waves = np.sin(37 * rows["rate"] + 11 * rows["size"])
    total = rows["size"] + rows["age"] / 4 + rows["color"].isin(["red", "blue"]) + 0.7 * waves
    return np.clip(np.floor(total), 0, 2).astype(int).to_numpy()


def count_agreement(extractor, X):
    """Return for how many rows the rules agree with the labels."""
    return np.count_nonzero(extractor.predict(X) == label_rows(X))


BLACK_BOX = CallableClassifier(label_rows)
OPTIONS = {"min_sample": 0, "random_state": 0, "significance": 1.0}


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), leaves=st.integers(3, 9), smallest=st.integers(1, 8))
def test_refined_trees_agree_at_least_as_often(seed, leaves, smallest):
    X = make_table(seed)
    options = OPTIONS | {"max_leaf_nodes": leaves, "min_samples_leaf": smallest}
    grown = TrepanExtractor(BLACK_BOX, **options).fit(X)
    refined = TrepanExtractor(BLACK_BOX, refinement_passes=5, **options).fit(X)
    assert count_agreement(refined, X) >= count_agreement(grown, X)
    assert refined.n_rules_ <= grown.n_rules_
    n_rows = [rule.statistics.n_rows for rule in refined.rules_]
    assert sum(n_rows) == len(X)
    assert min(n_rows) >= smallest
    n_agreeing = [
        rule.statistics.class_counts[list(refined.classes_).index(rule.output)]
        for rule in refined.rules_
    ]
    assert sum(n_agreeing) == count_agreement(refined, X)


@pytest.mark.parametrize("seed", range(10))
def test_refined_stump_is_the_most_accurate_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(60, 3)).astype(float)
    table = {tuple(row): int(rng.random() < row[0] / 16 + row[1] / 32) for row in X}
    box = CallableClassifier(lambda rows: np.array([table.get(tuple(r), 0) for r in rows]))
    options = OPTIONS | {"max_nodes": 1, "max_literals": 1, "purity": 1.0}
    refined = TrepanExtractor(box, refinement_passes=9, **options).fit(X)
    assert refined.n_rules_ == 2
    labels = np.array([table[tuple(row)] for row in X])
    fewest = min(
        min(wrong := np.count_nonzero((X[:, j] <= cut) != labels), len(X) - wrong)
        for j in range(3)
        for cut in range(-1, 12)
    )
    assert np.count_nonzero(refined.predict(X) != labels) == fewest


def test_refinement_improves_a_greedy_first_test():
    # The best first test of exclusive or is an accident of the sample; four leaves suffice.
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(400, 2))
    X[:, 0] += 0.3
    box = CallableClassifier(lambda rows: ((rows[:, 0] > 0) ^ (rows[:, 1] > 0)).astype(int))
    options = OPTIONS | {"max_leaf_nodes": 4, "max_literals": 1}
    labels = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    wrong = [
        np.count_nonzero(
            TrepanExtractor(box, refinement_passes=n, **options).fit(X).predict(X) != labels
        )
        for n in (0, 10)
    ]
    assert wrong[1] < wrong[0]


def test_refined_rules_do_not_depend_on_row_order():
    X = make_table(5)
    shuffled = X.sample(frac=1.0, random_state=1)
    options = OPTIONS | {"max_leaf_nodes": 6, "refinement_passes": 5}
    first, second = (TrepanExtractor(BLACK_BOX, **options).fit(rows) for rows in (X, shuffled))
    assert str(first.rules_) == str(second.rules_)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.tuples(st.integers(0, 5), st.integers(1, 5)),
)
def test_accuracy_gain_counts_additional_correct_rows(inside, outside):
    counts = np.array(inside).T
    total = counts.max(axis=1) + np.array(outside)
    expected = []
    for negative, positive in inside:
        right = total[0] - negative + positive
        best = max(right, total.sum() - right)
        expected.append((best - max(total)) / total.sum())
    assert accuracy_gain(counts, total, np.zeros(1)) == pytest.approx(expected)
