"""Rules as arrays."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import (
    BoxTable,
    Conclusions,
    Interval,
    LinearOutput,
    Rule,
    RuleStatistics,
)

INF, NAN = math.inf, math.nan
FACES = [-INF, -1.0, 0.0, 5e-324, 1.0, np.finfo(float).max.item(), INF]
VALUES = [-INF, -1.0, math.nextafter(-1, 0), 0.0, 5e-324, 1.0, math.nextafter(1, 2), FACES[-2]]


def box_table(lower, upper, lower_closed=False, upper_closed=True):
    lower, upper = np.atleast_2d(lower), np.atleast_2d(upper)
    return BoxTable(
        lower, upper, np.full(lower.shape, lower_closed), np.full(lower.shape, upper_closed)
    )


@given(
    bounds=st.tuples(st.sampled_from(FACES[:-1]), st.sampled_from(FACES[1:])).filter(
        lambda pair: pair[0] < pair[1]
    ),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_entry_cuts_are_exact(bounds, flags):
    boxes = box_table(*bounds, *flags)
    (start,), (stop,) = (cut[0].tolist() for cut in boxes.entry_cuts())
    condition = Interval(0, *bounds, *flags)
    expected = condition.holds(lambda j: np.array(VALUES)).tolist()
    assert [start <= v < stop for v in VALUES] == expected


def test_intervals_and_back():
    rules = [
        (Interval(1, 0, 1, True, False),),
        (),
        (Interval(0, upper=3), Interval(2, lower=5, lower_closed=True)),
    ]
    boxes = BoxTable.from_intervals(rules, 3)
    assert len(boxes) == 3
    assert [boxes.intervals(i) for i in range(3)] == rules
    assert boxes.bounded.tolist() == [[False, True, False], [False] * 3, [True, False, True]]
    assert [boxes.take(np.array([2, 0])).intervals(i) for i in range(2)] == [rules[2], rules[0]]
    assert boxes.take(slice(1, None)).intervals(1) == rules[2]
    assert len(BoxTable.from_intervals([], 3)) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "closed", "text"),
    [
        (
            [0.0, 2.0],
            [1.0, 1.0],
            True,
            "Box 0 holds no number along feature 1: lower=2.0, upper=1.0",
        ),
        ([1.0], [1.0], False, "lower_closed=False, upper_closed=True"),
        ([NAN], [1.0], True, "lower=nan"),
        ([0.0], [NAN], True, "upper=nan"),
    ],
)
def test_empty_boxes(lower, upper, closed, text):
    with pytest.raises(ValueError, match=text):
        box_table(lower, upper, closed)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"one shape .* got \(1, 2\), \(1, 3\)"):
        BoxTable(np.zeros((1, 2)), np.ones((1, 3)), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="one shape"):
        BoxTable(np.zeros(2), np.ones(2), np.ones(2), np.ones(2))


def test_arrays_do_not_change():
    lower = np.zeros((1, 1))
    boxes = BoxTable(lower, lower + 1, np.zeros((1, 1)), np.ones((1, 1)))
    outputs = np.array([0])
    conclusions = Conclusions(outputs, n_rows=np.array([3]), class_counts=np.array([[3, 0]]))
    lower[0, 0] = 9
    outputs[0] = 1
    for twin in (boxes, pickle.loads(pickle.dumps(boxes))):
        assert twin.lower.tolist() == [[0.0]]
        with pytest.raises(ValueError, match="read-only"):
            twin.lower[0, 0] = 0.5
        with pytest.raises(AttributeError):
            twin.lower = lower
    for twin in (conclusions, pickle.loads(pickle.dumps(conclusions))):
        assert twin.outputs.tolist() == [0]
        for array in (twin.outputs, twin.n_rows, twin.class_counts):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_conclusions_make_rules():
    boxes = box_table([[0.0], [1.0]], [[1.0], [INF]])
    labelled = Conclusions(
        np.array([1, 0]), n_rows=np.array([2, 3]), class_counts=np.array([[0, 2], [2, 1]])
    )
    assert [labelled.rule(i, boxes, ("a", "b")) for i in range(2)] == [
        Rule([Interval(0, 0, 1)], "b", RuleStatistics(2, (0, 2))),
        Rule([Interval(0, 1)], "a", RuleStatistics(3, (2, 1))),
    ]
    line = LinearOutput(1, [(0, 2)])
    numbers = Conclusions(
        np.array([0.5, NAN]), n_rows=np.array([2, 3]), mean=np.array([0.5, 2]),
        spread=np.array([0, 0.5]), linear={1: line},
    )  # fmt: skip
    assert [numbers.rule(i, boxes, None) for i in range(2)] == [
        Rule([Interval(0, 0, 1)], 0.5, RuleStatistics(2, mean=0.5, spread=0)),
        Rule([Interval(0, 1)], line, RuleStatistics(3, mean=2, spread=0.5)),
    ]
    assert Conclusions(np.array([1.0, 2.0])).rule(1, boxes, None) == Rule([Interval(0, 1)], 2.0)


def test_shares():
    conclusions = Conclusions(
        np.array([0, 1, 1]),
        n_rows=np.array([4, 0, 2]),
        class_counts=np.array([[3, 1, 0], [0, 0, 0], [0, 1, 1]]),
    )
    # A rule that has counted nothing is sure of its class.
    assert conclusions.shares(3).tolist() == [[0.75, 0.25, 0], [0, 1, 0], [0, 0.5, 0.5]]
    assert Conclusions(np.array([1])).shares(2).tolist() == [[0, 1]]
    assert Conclusions(np.array([], dtype=int)).shares(2).shape == (0, 2)


@pytest.mark.parametrize(
    ("conclusions", "n_classes", "text"),
    [
        (Conclusions(np.array([0])), 2, r"outputs must have the shape \(2,\), got \(1,\)"),
        (Conclusions(np.array([0, 2])), 2, "outputs must be indices of the 2 classes"),
        (Conclusions(np.array([0, -1])), 2, "outputs must be indices of the 2 classes"),
        (Conclusions(np.array([0.0, 1.0])), 2, "outputs must be indices of the 2 classes"),
        (
            Conclusions(np.array([0, 1]), n_rows=np.ones(2), class_counts=np.ones((2, 3))),
            2,
            r"class_counts must have the shape \(2, 2\), got \(2, 3\)",
        ),
        (Conclusions(np.array([0, 1]), class_counts=np.ones((2, 2))), 2, "needs n_rows as well"),
        (Conclusions(np.zeros(2, int), linear={1: LinearOutput(1)}), 2, "rule 1 an affine output"),
        (Conclusions(np.zeros(2), linear={2: LinearOutput(1)}), None, "rule 2 an affine output"),
        (Conclusions(np.ones(2), mean=np.ones(2)), None, "mean needs n_rows as well"),
        (Conclusions(np.array([0, NAN])), None, "Output 1 must be a finite number, got nan"),
    ],
)
def test_arrays_must_fit(conclusions, n_classes, text):
    with pytest.raises(ValueError, match=text):
        conclusions.check(2, n_classes)


def test_linear_rules_need_no_number():
    Conclusions(np.array([0, NAN]), linear={1: LinearOutput(1)}).check(2, None)
