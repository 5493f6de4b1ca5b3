"""Completeness by volume of categorical features: one unit of length per known value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.metrics import volume_completeness
from skescore.rules import AtLeast, Domain, Interval, Linear, Missing, OneOf, Rule, RuleSet

COLORS, SHAPES = ("black", "blue", "green", "red"), ("round", "square", "star")
DOMAIN = Domain((0, 0, 0), (4, 10, 3), [(0, COLORS), (2, SHAPES)])
NAMES = ["color", "size", "shape"]


def ruleset(*premises, disjoint=False) -> RuleSet:
    return RuleSet(
        [Rule(premise, float(i)) for i, premise in enumerate(premises)],
        NAMES,
        task="regression",
        domain=DOMAIN,
        disjoint=disjoint,
    )


@pytest.mark.parametrize(
    ("premises", "share"),
    [
        ([[OneOf(0, ["red"])]], 1 / 4),
        ([[OneOf(0, ["red"], negated=True)]], 3 / 4),
        ([[OneOf(0, ["red", "black"])]], 2 / 4),
        ([[OneOf(0, ["purple"])]], 0.0),  # an unknown color
        ([[OneOf(0, ["purple"], negated=True)]], 1.0),
        ([[OneOf(0, ["red", "blue"]), OneOf(0, ["blue"], negated=True)]], 1 / 4),
        ([[OneOf(0, ["red", "black"]), Interval(1, upper=5)]], 2 / 4 * 1 / 2),
        ([[OneOf(0, ["red"]), OneOf(2, ["round", "star"])]], 1 / 4 * 2 / 3),
        # Two overlapping rules: 1/4 + 1/2 - 1/8.
        ([[OneOf(0, ["red"])], [Interval(1, upper=5)]], 5 / 8),
        ([[OneOf(0, ["red"])], [OneOf(0, ["red"], negated=True)]], 1.0),
    ],
)
def test_categories_have_hand_computed_volume(premises, share):
    result = volume_completeness(ruleset(*premises))
    assert result.exact
    assert result.value == pytest.approx(share, abs=1e-12)


def test_categories_of_disjoint_rules_add_up():
    parts = [[OneOf(0, ["red", "black"])], [OneOf(0, ["blue"]), Interval(1, lower=5)]]
    assert volume_completeness(ruleset(*parts, disjoint=True)).value == pytest.approx(5 / 8)


sets = st.tuples(st.integers(0, 2), st.sets(st.sampled_from(COLORS), min_size=1), st.booleans())


@given(premises=st.lists(st.tuples(sets, st.integers(0, 9), st.booleans()), min_size=1, max_size=4))
def test_categories_volume_agrees_with_counted_cells(premises):
    """Categories and sizes cut at whole numbers: every cell is covered or not."""
    rules = []
    for (feature, values, negated), cut, below in premises:
        feature = 0 if feature == 1 else feature
        names = values if feature == 0 else {SHAPES[COLORS.index(v) % 3] for v in values}
        size = Interval(1, upper=cut + 1) if below else Interval(1, lower=cut)
        rules.append([OneOf(feature, names, negated=negated), size])
    cells = pd.MultiIndex.from_product([COLORS, np.arange(10) + 0.5, SHAPES]).to_frame()
    cells.columns = NAMES
    rules = ruleset(*rules)
    assert volume_completeness(rules).value == pytest.approx(rules.covers(cells).mean(), abs=1e-9)


def test_categories_count_share_of_missing_values():
    domain = Domain((0, 0, 0), (4, 10, 3), DOMAIN.categories, (0.2, 0, 0))
    for premise, share in (
        ([Missing(0)], 0.2),
        ([Missing(0, True)], 0.8),
        ([OneOf(0, ["red"], False, True)], 0.4),
        ([OneOf(0, ["red"])], 0.2),
        ([Missing(0), Interval(1, upper=5)], 0.1),
    ):
        rules = ruleset(premise).replace(domain=domain)
        assert volume_completeness(rules).value == pytest.approx(share, abs=1e-12)
        sampled = volume_completeness(rules, random_state=np.random.RandomState(3))
        assert sampled.value == pytest.approx(share, abs=1e-12)


def test_volume_samples_points_in_several_batches():
    rules = RuleSet(
        [Rule([Linear([(0, 1.0), (1, 1.0)], upper=1.0)], 1.0)],
        [f"x{j}" for j in range(2000)],
        task="regression",
        domain=Domain([0.0] * 2000, [1.0] * 2000),
    )
    result = volume_completeness(rules, n_samples=1500)
    assert result.value == pytest.approx(0.5, abs=0.05)


def test_categories_in_non_intervals_are_sampled():
    both = AtLeast(2, [OneOf(0, ["red", "blue"]), Interval(1, upper=5), OneOf(2, ["round"])])
    result = volume_completeness(ruleset([both]))
    p, q, r = 1 / 2, 1 / 2, 1 / 3
    share = p * q + p * r + q * r - 2 * p * q * r
    assert not result.exact
    assert result.low <= share <= result.high
    assert result.value == pytest.approx(share, abs=0.01)
    oblique = volume_completeness(ruleset([OneOf(0, ["red"]), Linear([(1, 1.0)], upper=2.5)]))
    assert oblique.value == pytest.approx(1 / 16, abs=0.01)


def test_categories_in_too_many_pieces_are_sampled():
    values = tuple(f"v{i:03}" for i in range(100))
    every_other = values[::2]
    rules = RuleSet(
        [Rule([OneOf(0, every_other), OneOf(1, every_other)], 1.0)],
        ["a", "b"],
        task="regression",
        domain=Domain((0, 0), (100, 100), [(0, values), (1, values)]),
    )
    result = volume_completeness(rules)
    assert not result.exact
    assert result.value == pytest.approx(0.25, abs=0.01)
