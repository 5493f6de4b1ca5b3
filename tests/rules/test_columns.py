"""Rows in whatever container they come."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from skescore.rules import AtLeast, Fallback, Interval, Linear, OneOf, Rule, RuleSet, Table

NAMES = ["length", "width", "colour"]
ROWS = [[1.0, 5.0, 0], [2.0, 4.0, 1], [3.0, 3.0, 2], [4.0, 2.0, 0]]
RULES = RuleSet(
    [
        Rule([Interval(0, upper=2), OneOf(2, [0])], 0),
        Rule([AtLeast(1, [Interval(1, upper=2), OneOf(2, [2])])], 1),
        Rule([Linear([(0, 1), (1, 1)], 5)], 2),
    ],
    NAMES,
    task="regression",
    fallback=Fallback(-1),
)
MATCHES = [[True, False, True], [False, False, True], [False, True, True], [False, True, True]]


def with_gaps():
    wide = np.full((8, 6), -99.0)
    wide[::2, ::2] = ROWS
    return wide[::2, ::2]


CONTAINERS = {
    "lists": ROWS,
    "tuples": tuple(map(tuple, ROWS)),
    "floats": np.array(ROWS),
    "Fortran order": np.asfortranarray(ROWS),
    "not contiguous": with_gaps(),
    "reversed": np.array(ROWS)[::-1][::-1],
    "read only": np.broadcast_to(np.array(ROWS), (4, 3)),
    "float32": np.array(ROWS, dtype=np.float32),
    "float16": np.array(ROWS, dtype=np.float16),
    "integers": np.array(ROWS, dtype=int),
    "unsigned": np.array(ROWS, dtype=np.uint8),
    "objects": np.array(ROWS, dtype=object),
    "text of numbers in objects": np.array([[str(a), b, c] for a, b, c in ROWS], dtype=object),
    "pandas": pd.DataFrame(ROWS, columns=NAMES),
    "pandas permuted, with more": pd.DataFrame(ROWS, columns=NAMES, index=[7, 7, 1, 0]).assign(
        more="x"
    )[["colour", "more", "width", "length"]],
    "pandas numbered": pd.DataFrame(ROWS),
    "pandas own types": pd.DataFrame(ROWS, columns=NAMES).convert_dtypes(),
    "pandas objects": pd.DataFrame(ROWS, columns=NAMES, dtype=object),
    "polars": pl.DataFrame(ROWS, schema=NAMES, orient="row"),
    "polars permuted, with more": pl.DataFrame(ROWS, schema=NAMES, orient="row").select(
        pl.lit("x").alias("more"), "colour", "length", "width"
    ),
}  # fmt: skip


@pytest.mark.parametrize("X", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_every_container_gives_the_same_answers(X):
    assert RULES.match(X).tolist() == MATCHES
    assert RULES.assign(X).tolist() == [0, 2, 1, 1]
    assert RULES.covers(X).tolist() == [True] * 4
    assert RULES.predict(X).tolist() == [0, 2, 1, 1]


def test_short_floats_are_compared_as_the_numbers_they_are():
    rules = RuleSet([Rule([Interval(0, upper=0.1)], 1)], ["a"], task="regression")
    short = np.array([[0.1], [math.nextafter(0.1, 0)]], dtype=np.float32)
    assert float(short[0, 0]) > 0.1
    assert rules.covers(short).tolist() == [False, False]
    assert rules.covers(short.astype(float)).tolist() == [False, False]
    assert rules.covers([[0.1]]).tolist() == [True]


def test_flags_are_numbers():
    rules = RuleSet([Rule([Interval(0, 0.5), OneOf(1, [False])], 1)], ["a", "b"], task="regression")
    X = np.array([[True, False], [True, True], [False, False]])
    assert rules.covers(X).tolist() == [True, False, False]
    assert rules.covers(pd.DataFrame(X, columns=["a", "b"])).tolist() == [True, False, False]
    assert rules.covers(pl.DataFrame(X, schema=["a", "b"])).tolist() == [True, False, False]


COLOURED = RuleSet(
    [
        Rule([OneOf(0, ["red"]), Interval(1, upper=2)], "a"),
        Rule([OneOf(0, ["red", "blue"], negated=True)], "b"),
        Rule([Interval(1, 2)], "c"),
    ],
    ["colour", "size"],
    task="classification",
)
MIXED = [["red", 1.5], ["red", 2.5], ["green", 1.0], [None, 3.0], ["blue", math.nan]]
FRAME = pd.DataFrame(MIXED, columns=["colour", "size"])


@pytest.mark.parametrize(
    "X",
    [
        MIXED,
        np.array(MIXED, dtype=object),
        FRAME,
        FRAME.astype({"colour": "category", "size": "Float64"}),
        FRAME.astype({"colour": object}),
        FRAME.astype({"colour": "string"}),
        FRAME.convert_dtypes(),
        pl.DataFrame(MIXED, schema=["colour", "size"], orient="row", strict=False),
        pl.DataFrame(
            MIXED, schema={"colour": pl.Categorical, "size": pl.Float64}, orient="row", strict=False
        ),
        pl.DataFrame(
            [[a, None if b != b else b] for a, b in MIXED], schema=["colour", "size"], orient="row"
        ),
    ],
    ids=[
        "lists", "objects", "pandas", "pandas categories", "pandas objects", "pandas strings",
        "pandas own types", "polars", "polars categories", "polars nulls",
    ],
)  # fmt: skip
def test_text_and_numbers_with_missing_values(X):
    assert COLOURED.match(X).tolist() == [
        [True, False, False],
        [False, False, True],
        [False, True, False],
        [False, False, True],
        [False, False, False],
    ]


def test_numbers_among_texts_stay_numbers_in_lists():
    rules = RuleSet([Rule([OneOf(1, [1]), OneOf(0, ["1"])], 0)], ["a", "b"], task="regression")
    assert rules.covers([["1", 1], ["1", 2], ["2", 1]]).tolist() == [True, False, False]


def test_whole_numbers_with_missing_values():
    rules = RuleSet([Rule([Interval(0, 1)], 0)], ["a"], task="regression")
    assert rules.covers(pd.DataFrame({"a": [1, 2, None]}, dtype="Int64")).tolist() == [0, 1, 0]
    assert rules.covers(pl.DataFrame({"a": [1, 2, None]})).tolist() == [0, 1, 0]


def test_rows_that_are_no_rows():
    for X, text in [
        ([1.0, 2.0, 3.0], r"two-dimensional .*got shape \(3,\).*X.reshape\(1, -1\)"),
        (np.zeros((2, 2, 3)), r"two-dimensional .*got shape \(2, 2, 3\)"),
        (pd.Series([1.0, 2.0, 3.0]), "two-dimensional"),
        (5, r"two-dimensional .*got shape \(\)"),
        (np.zeros((2, 2)), "X has 2 features, but .* 3: 'length', 'width', 'colour'"),
        (np.zeros((0, 4)), "X has 4 features"),
        (pd.DataFrame(np.zeros((2, 4))), "X has 4 features"),
        (pd.DataFrame({"length": [1], "colour": [1]}), "lacks the feature 'width' .* 'colour'"),
        (pd.DataFrame({"Length": [1]}), "lacks the features 'length', 'width', 'colour'"),
        (pl.DataFrame({"length": [1], "width": [1]}), "lacks the feature 'colour'"),
        (
            pd.DataFrame([[1, 2, 3, 4]], columns=["length", "width", "width", "colour"]),
            "more than one column 'width'",
        ),
    ]:
        for method in (RULES.match, RULES.assign, RULES.covers, RULES.predict):
            with pytest.raises(ValueError, match=text):
                method(X)
    with pytest.raises(TypeError, match=r"X is sparse.*X.toarray\(\)"):
        RULES.predict(csr_array(np.eye(3)))


def test_columns_that_no_rule_needs_may_be_there_twice():
    X = pd.DataFrame([[9, *ROWS[0], 9]], columns=["more", *NAMES, "more"])
    assert RULES.assign(X).tolist() == [0]


def test_long_lists_of_names_are_cut_short():
    rules = RuleSet([], [f"f{j}" for j in range(40)], task="regression")
    with pytest.raises(ValueError, match="'f11' and 28 more"):
        rules.covers(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "X",
    [
        [["tall", 1.0, 0]],
        np.array([["tall", "1.0", "0"]]),
        pd.DataFrame([["tall", 1.0, 0]], columns=NAMES),
        pl.DataFrame([["tall", 1.0, 0]], schema=NAMES, orient="row"),
    ],
)
def test_text_where_rules_compare_numbers(X):
    with pytest.raises(ValueError, match="compare feature 'length' with numbers, but X holds"):
        RULES.predict(X)


def test_text_where_inner_conditions_compare_numbers():
    rules = RuleSet([Rule([AtLeast(1, [Interval(0, 1)])], 1)], ["a"], task="regression")
    with pytest.raises(ValueError, match=r"feature 0 with numbers, .*'tall'.*Convert that column"):
        rules.covers([["tall"]])


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]", complex, "V3", "S3"])
def test_what_is_neither_number_nor_label(kind):
    X = np.zeros((2, 1), dtype=kind)
    for condition in (Interval(0, 1), OneOf(0, [1])):
        rules = RuleSet([Rule([condition], 1)], ["a"], task="regression")
        with pytest.raises(ValueError, match=r"Rules know numbers and labels, but X holds .* 'a'"):
            rules.covers(X)


def test_a_table_gives_columns_and_rows():
    table = Table(pd.DataFrame(ROWS, columns=NAMES)[NAMES[::-1]], NAMES)
    assert len(table) == 4
    assert table.values(1, slice(1, 3)).tolist() == [4.0, 3.0]
    assert table.numbers(2, slice(0, 4)).dtype == float
    found = table.matrix(np.array([3, 0]), [0, 2])
    assert found[:, [0, 2]].tolist() == [[4.0, 0.0], [1.0, 0.0]]
    assert np.isnan(found[:, 1]).all()
    assert RULES.assign(table).tolist() == RULES.assign(ROWS).tolist()
