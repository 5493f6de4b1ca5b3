"""Rule texts are compared with pandas' own evaluation of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skescore.rules.importers import read_rule_texts

NAMES = ["age", "age group", "x1", "x10", "sex"]
TEXTS = [
    "age > 30.5 & age <= 60",
    "x10 < -1e-3 and x1 >= 0 and age != 40",
    "sex == 'it''s' & x1 == 2".replace("''", "\\'"),
    "(x1 <= 1) && (x10 > 0.5)",
]


def test_rule_texts_hold_as_in_pandas():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(-2, 3, 500).astype(float) for name in NAMES})
    X["age"] = rng.choice([30.5, 40, 60, 61], 500)
    X["sex"] = rng.choice(["it's", "f"], 500)
    rules = read_rule_texts(TEXTS, NAMES, label="yes", otherwise="no")
    holds = rules.match(X)
    queries = [text.replace("&&", "&").replace(" & ", " and ") for text in TEXTS]
    for k, query in enumerate(queries):
        np.testing.assert_array_equal(holds[:, k], X.eval(query))
    np.testing.assert_array_equal(rules.predict(X) == "yes", holds.any(axis=1))


def test_rule_texts_prefer_the_longest_name():
    rules = read_rule_texts(["age group <= 2"], NAMES)
    assert rules[0].conditions[0].feature == 1


def test_rule_texts_may_contain_parts_of_rules_in_names_and_values():
    names = ["(log) income", "R&D", "sand and gravel", "job"]
    text = "(log) income>1&R&D <= 2 and sand and gravel == 3 & (job != 'sales and (other) & co')"
    X = pd.DataFrame([[2, 2, 3, "chef"], [2, 2, 3, "sales and (other) & co"]], columns=names)
    assert read_rule_texts([text], names).predict(X).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age > 3 & ", "compares '', which is not a feature"),
        ("age > 3 or sex == 'f'", "compares with 3 or sex == 'f', which is neither"),
        ("agee <= 3", "which is not a feature.*Did you mean 'age'"),
        ("age <= old", "neither a number nor a text"),
        ("age", "which is not a feature"),
        ("age > 3 & age < 1", "could never hold"),
    ],
)
def test_rule_texts_reject_other_texts(text, message):
    with pytest.raises(ValueError, match=message):
        read_rule_texts([text], NAMES)
