"""Completeness compared with counted cells, known volumes and another platform's figures."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_friedman1
from sklearn.model_selection import train_test_split

from skescore.metrics import Completeness, instance_completeness, volume_completeness
from skescore.rules import (
    AtLeast,
    BoxTable,
    Conclusions,
    Domain,
    Fallback,
    Interval,
    Linear,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)

PSYKE = json.loads((Path(__file__).parents[1] / "data" / "psyke_completeness.json").read_text())


def exactly(value: float) -> Completeness:
    return Completeness(value, True, value, value)


def rule_set(*premises: list[Any], domain: Domain | None, **settings: Any) -> RuleSet:
    n_features = 3 if domain is None else len(domain.lower)
    names = [f"x{j}" for j in range(n_features)]
    rules = [Rule(premise, 1.0) for premise in premises]
    return RuleSet(rules, names, task="regression", domain=domain, **settings)


def from_arrays(
    lower: np.ndarray,
    upper: np.ndarray,
    domain: Domain | None,
    *,
    closed: tuple[bool, bool] = (True, True),
    disjoint: bool = False,
) -> RuleSet:
    flags = [np.full(lower.shape, flag) for flag in closed]
    return RuleSet.from_boxes(
        BoxTable(lower, upper, *flags),
        Conclusions(np.zeros(len(lower))),
        [f"x{j}" for j in range(lower.shape[1])],
        task="regression",
        domain=domain,
        disjoint=disjoint,
    )


UNIT = Domain((0, 0, 0), (1, 1, 1))
LOWER_HALVES = [Interval(j, upper=0.5) for j in range(3)]


# --- volume: boxes -------------------------------------------------------------------------------


@st.composite
def integer_rule_sets(draw: st.DrawFn) -> tuple[RuleSet, Fraction]:
    """Draw boxes with integer or open sides, and their share of an integer domain, cell by cell."""
    n_features = draw(st.integers(1, 3))
    bounds = st.tuples(st.integers(-1, 5), st.integers(-1, 5)).map(sorted)
    domain = np.array(draw(st.lists(bounds, min_size=n_features, max_size=n_features)))
    side = st.tuples(st.integers(-2, 6), st.integers(-2, 6)).map(sorted)
    box = st.lists(side, min_size=n_features, max_size=n_features)
    boxes = np.array(draw(st.lists(box, max_size=6)), dtype=float).reshape(-1, n_features, 2)
    boxes[boxes == -2] = -math.inf
    boxes[boxes == 6] = math.inf
    rules = from_arrays(
        boxes[..., 0], boxes[..., 1], Domain(tuple(domain[:, 0]), tuple(domain[:, 1]))
    )
    # midpoints of the unit cells, or the constant itself
    axes = [[c + 0.5 for c in range(a, b)] if a < b else [float(a)] for a, b in domain]
    cells = np.array(list(itertools.product(*axes)))
    return rules, Fraction(int(rules.match(cells).any(axis=1).sum()), len(cells))


@given(case=integer_rule_sets())
def test_volume_counts_cells(case: tuple[RuleSet, Fraction]) -> None:
    rules, expected = case
    share = volume_completeness(rules)
    assert share.exact
    assert share.low == share.value == share.high == float(share)
    assert share.value == pytest.approx(float(expected), abs=1e-12)
    assert type(float(share)) is float


@st.composite
def rule_sets_with_gaps(draw: st.DrawFn) -> tuple[RuleSet, float]:
    """Draw rules with conditions on missing values, and their share of the domain, part by part."""
    kinds = draw(
        st.lists(st.sampled_from(["number", "constant", "category"]), min_size=1, max_size=3)
    )
    shares = [draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) for _ in kinds]
    lengths = [0 if kind == "constant" else draw(st.integers(1, 4)) for kind in kinds]
    flag = st.booleans()

    def condition(j: int) -> Any:
        if draw(st.integers(0, 3)) == 0:
            return Missing(j, draw(flag))
        if kinds[j] == "category":
            listed = st.lists(st.sampled_from("abcde"), min_size=1, max_size=3)
            return OneOf(j, draw(listed), draw(flag), draw(flag))
        low, high = sorted([draw(st.integers(-1, 5)), draw(st.integers(-1, 5))])
        ends = (-math.inf if low == -1 else low), (math.inf if high == 5 else high)
        return Interval(j, *ends, lower_closed=True, missing=draw(flag))

    premises: list[list[Any]] = []
    for _ in range(draw(st.integers(0, 4))):
        premises.append([])
        for j in draw(st.lists(st.integers(0, len(kinds) - 1), max_size=4)):
            try:
                retained = [*premises[-1], condition(j)]
                Rule(retained, 1.0)
            except ValueError:  # the conditions contradict each other
                continue
            premises[-1] = retained
    categories = [(j, list("abcd"[: lengths[j]])) for j, k in enumerate(kinds) if k == "category"]
    domain = Domain((0,) * len(kinds), lengths, categories, shares)
    rules = rule_set(*premises, domain=domain)
    atoms = []
    for kind, length, share in zip(kinds, lengths, shares, strict=True):
        values: list[Any] = [v + 0.5 for v in range(length)] or [0.0]
        if kind == "category":
            values = list("abcd"[:length])
        observed = [(v, (1 - share) / len(values)) for v in values]
        atoms.append([*observed, (None, share)])
    cells = list(itertools.product(*atoms))
    X = np.empty((len(cells), len(kinds)), dtype=object)
    for i, cell in enumerate(cells):
        X[i] = [value for value, _ in cell]
    weights = np.array([math.prod(weight for _, weight in cell) for cell in cells])
    return rules, float(weights[rules.covers(X)].sum())


@given(case=rule_sets_with_gaps())
def test_volume_counts_missing_values(case: tuple[RuleSet, float]) -> None:
    rules, expected = case
    share = volume_completeness(rules)
    assert share.exact
    assert share.value == pytest.approx(expected, abs=1e-12)


def test_volume_equals_hand_computed_shares_with_gaps() -> None:
    domain = Domain((0, 0), (10, 10), missing=(0.2, 0.5))
    low = Interval(0, upper=4)
    assert float(volume_completeness(rule_set([low], domain=domain))) == pytest.approx(0.32)
    or_missing = Interval(0, upper=4, missing=True)
    assert float(volume_completeness(rule_set([or_missing], domain=domain))) == pytest.approx(0.52)
    both = rule_set([or_missing, Missing(1, negated=True)], [Missing(0)], domain=domain)
    assert float(volume_completeness(both)) == pytest.approx(0.52 * 0.5 + 0.2 * 0.5)
    full = rule_set([Missing(0)], [Missing(0, negated=True)], domain=domain)
    assert volume_completeness(full) == exactly(1.0)


def test_volume_samples_linear_conditions_with_gaps() -> None:
    domain = Domain((0, 0), (1, 1), missing=(0.5, 0.2))
    sampled = volume_completeness(rule_set([TRIANGLE], [Missing(0)], domain=domain))
    assert not sampled.exact
    truth = 0.5 * 0.8 * 0.5 + 0.5
    assert sampled.low <= truth <= sampled.high
    assert sampled.value == pytest.approx(truth, abs=0.01)


def test_volume_samples_rules_in_very_many_parts() -> None:
    n = 12  # two parts along each feature
    domain = Domain((0,) * n, (1,) * n, missing=(0.5,) * n)
    sides = [Interval(j, 0.1, 0.9, missing=True) for j in range(n)]
    share = volume_completeness(rule_set(sides, domain=domain))
    assert not share.exact
    assert share.low <= (0.5 + 0.5 * 0.8) ** n <= share.high


def test_volume_clips_boxes_to_domain() -> None:
    domain = Domain((-2, 10), (2, 30))
    assert volume_completeness(rule_set([Interval(0, upper=-1)], domain=domain)) == exactly(0.25)
    beyond = [Interval(0, lower=-100, upper=0), Interval(1, lower=25)]
    assert volume_completeness(rule_set(beyond, domain=domain)) == exactly(0.125)
    outside = [Interval(0, lower=2.5)]
    assert volume_completeness(rule_set(outside, domain=domain)) == exactly(0.0)


def test_completeness_counts_empty_premise_but_not_fallback() -> None:
    some = [Interval(0, upper=0.25)]
    assert volume_completeness(rule_set(some, [], domain=UNIT)) == exactly(1.0)
    with_fallback = rule_set(some, domain=UNIT, fallback=Fallback(0.0))
    assert volume_completeness(with_fallback) == exactly(0.25)
    assert instance_completeness(with_fallback, [[0.1, 0, 0], [0.5, 0, 0]]) == 0.5


def test_completeness_of_empty_rule_set_is_0() -> None:
    assert volume_completeness(rule_set(domain=UNIT)) == exactly(0.0)
    assert volume_completeness(rule_set(domain=Domain((1,), (1,)))) == exactly(0.0)
    assert instance_completeness(rule_set(domain=UNIT), [[0.0, 0.0, 0.0]]) == 0.0


def test_volume_checks_conditions_on_constant_features() -> None:
    domain = Domain((0, 7), (1, 7))
    half = Interval(0, upper=0.5)
    shares = {
        1.0: [[Interval(1, upper=7)]],
        0.5: [[half, Interval(1, lower=6.5)], [Interval(1, lower=7.5)]],
        0.0: [[half, Interval(1, upper=6.5)], [Interval(1, lower=7)]],
    }
    for expected, premises in shares.items():
        assert volume_completeness(rule_set(*premises, domain=domain)) == exactly(expected)


def test_volume_counts_disjoint_rules_at_constant_once() -> None:
    domain = Domain((18, 0), (18, 4))
    small = Interval(1, upper=1)
    for closed in (False, True):
        younger = Interval(0, upper=18, upper_closed=not closed)
        older = Interval(0, lower=18, lower_closed=closed)
        for disjoint in (False, True):
            rules = rule_set([younger, small], [older], domain=domain, disjoint=disjoint)
            assert volume_completeness(rules) == exactly(1.0 if closed else 0.25)


def test_volume_of_constant_features_is_0_or_1() -> None:
    domain = Domain((7, 3), (7, 3))
    assert volume_completeness(rule_set([Interval(0, upper=8)], domain=domain)) == exactly(1.0)
    assert volume_completeness(rule_set([Interval(0, upper=6)], domain=domain)) == exactly(0.0)


def test_volume_rejects_overlap_of_declared_disjoint_boxes() -> None:
    premises = [[Interval(0, upper=0.75)], [Interval(0, lower=0.25)]]
    with pytest.raises(ValueError, match="boxes overlap"):
        volume_completeness(rule_set(*premises, domain=UNIT, disjoint=True))
    assert volume_completeness(rule_set(*premises, domain=UNIT)) == exactly(1.0)


def formula(n_rules: int, n_features: int, n_conditions: int) -> RuleSet:
    """Return rules with conditions "below 1/2" or "above 1/2": a Boolean formula."""
    rng = np.random.default_rng(0)
    lower, upper = np.zeros((n_rules, n_features)), np.ones((n_rules, n_features))
    for low, high in zip(lower, upper, strict=True):
        features = rng.permutation(n_features)[:n_conditions]
        upside = rng.random(n_conditions) < 0.5
        low[features[upside]], high[features[~upside]] = 0.5, 0.5
    return from_arrays(lower, upper, Domain((0,) * n_features, (1,) * n_features))


def test_volume_of_entangled_boxes_is_exact() -> None:
    rules = formula(n_rules=40, n_features=16, n_conditions=5)
    worlds = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    share = volume_completeness(rules)
    assert share.exact
    assert share.value == rules.covers(worlds / 2 + 0.25).mean()


# --- volume: other conditions --------------------------------------------------------------------

TRIANGLE = Linear([(0, 1.0), (1, 1.0)], upper=1.0)


@pytest.mark.parametrize(
    ("premises", "truth"),
    [
        ([[AtLeast(2, LOWER_HALVES)]], 0.5),
        ([[AtLeast(1, LOWER_HALVES)]], 0.875),
        ([[TRIANGLE]], 0.5),
        ([[TRIANGLE], [Interval(0, lower=0.5)]], 0.875),  # only its tip leaves the right half
        ([[TRIANGLE, Interval(2, upper=0.25)]], 0.125),
    ],
)
def test_volume_samples_non_intervals(premises: list[list[Any]], truth: float) -> None:
    rules = rule_set(*premises, domain=UNIT)
    n_inside = 0
    for seed in range(20):
        share = volume_completeness(rules, n_samples=2000, random_state=seed)
        assert not share.exact
        assert share.low <= share.value <= share.high
        assert share.high - share.low <= 2 * math.sqrt(math.log(2 / 0.01) / (2 * 2000))
        n_inside += share.low <= truth <= share.high
    assert n_inside >= 19
    wide = volume_completeness(rules, n_samples=2000, confidence=0.999)
    narrow = volume_completeness(rules, n_samples=2000, confidence=0.9)
    assert wide.high - wide.low > narrow.high - narrow.low


def test_volume_estimates_respect_exact_bounds() -> None:
    inner, outer = [Interval(0, upper=0.25)], [Interval(0, upper=0.2505), TRIANGLE]
    share = volume_completeness(rule_set(inner, outer, domain=UNIT), n_samples=100)
    assert not share.exact
    assert 0.25 <= share.low <= share.value <= share.high <= 0.2505


def test_volume_is_exact_if_non_intervals_do_not_matter() -> None:
    halves = [[Interval(0, upper=0.5)], [Interval(0, lower=0.5)]]
    assert volume_completeness(rule_set(*halves, [TRIANGLE], domain=UNIT)) == exactly(1.0)
    inside = [TRIANGLE, Interval(0, upper=0.25)]
    assert volume_completeness(rule_set(halves[0], inside, domain=UNIT)) == exactly(0.5)
    halves[0] = [Interval(0, upper=0.5 - 1e-12)]  # a gap as small as rounding errors
    assert volume_completeness(rule_set(*halves, [TRIANGLE], domain=UNIT)) == exactly(1.0)
    nowhere = [TRIANGLE, Interval(0, lower=2.0)]
    assert volume_completeness(rule_set(nowhere, domain=UNIT)) == exactly(0.0)


def test_volume_samples_non_intervals_on_constant_features() -> None:
    constant = 7.3  # interpolation between two such numbers does not return them exactly
    domain = Domain((0, constant, -3), (1, constant, 5))
    same = Interval(1, constant, constant, lower_closed=True, upper_closed=True)
    rules = rule_set([AtLeast(2, [same, Interval(0, upper=0.5)])], domain=domain)
    share = volume_completeness(rules, n_samples=20_000)
    assert share.low < 0.5 < share.high
    assert volume_completeness(
        rule_set([AtLeast(1, [same, Interval(0, upper=0.5)])], domain=domain)
    ).low == pytest.approx(1.0, abs=1e-3)


def test_volume_ignores_boxes_outside_constant_feature() -> None:
    domain = Domain((0, 0, 7), (1, 1, 7))
    beside = [Interval(2, upper=6.5)]
    share = volume_completeness(rule_set(beside, [TRIANGLE], domain=domain), n_samples=20_000)
    assert not share.exact
    assert share.low < 0.5 < share.high
    never = rule_set([*beside, TRIANGLE], domain=domain)
    assert volume_completeness(never) == exactly(0.0)


def test_volume_of_linear_conditions_uses_units_of_features() -> None:
    domain = Domain((100, -4), (300, 4))
    rules = rule_set([Linear([(0, 0.04), (1, 1.0)], upper=8.0)], domain=domain)
    share = volume_completeness(rules, n_samples=20_000)
    assert share.low < 0.5 < share.high


def test_volume_sampling_is_reproducible() -> None:
    rules = rule_set([TRIANGLE], domain=UNIT)
    first = volume_completeness(rules, n_samples=500)
    assert first == volume_completeness(rules, n_samples=500)
    assert first != volume_completeness(rules, n_samples=500, random_state=1)


def test_volume_rejects_categories_without_domain() -> None:
    premises = [[OneOf(1, [0, 2])], [AtLeast(1, [Interval(0, upper=0.5), OneOf(1, [0])])]]
    for premise in premises:
        with pytest.raises(
            ValueError, match=r"Rule 2 requires .*'x1'.*Use bounds.*instance_completeness"
        ):
            volume_completeness(rule_set(LOWER_HALVES, premise, domain=UNIT))
    # If the feature is constant, or boxes cover everything, the result needs no volume.
    constant = Domain((0, 2, 0), (1, 2, 1))
    share = volume_completeness(
        rule_set([OneOf(1, [0, 2]), TRIANGLE], domain=Domain((0, 2), (3, 2)))
    )
    assert share.value == 0.0
    ruleset = rule_set([OneOf(1, [0, 2]), Interval(0, upper=0.5)], domain=constant)
    assert volume_completeness(ruleset).value == pytest.approx(0.5, abs=0.01)
    assert volume_completeness(rule_set(premises[0], [], domain=UNIT)) == exactly(1.0)


def test_volume_needs_domain() -> None:
    with pytest.raises(ValueError, match=r"domain=\.\.\. when making the RuleSet, or use instance"):
        volume_completeness(rule_set([TRIANGLE], domain=None))


@pytest.mark.parametrize("premise", [[TRIANGLE], [Interval(0, upper=0.5)]])
def test_volume_rejects_invalid_sampling_settings(premise: list[Any]) -> None:
    rules = rule_set(premise, domain=UNIT)
    with pytest.raises(ValueError, match=r"`n_samples` must be a whole number.*got 0"):
        volume_completeness(rules, n_samples=0)
    with pytest.raises(ValueError, match=r"`confidence` must lie.*got 99"):
        volume_completeness(rules, confidence=99)


# --- rows ----------------------------------------------------------------------------------------


@given(
    counts=st.lists(st.tuples(st.floats(-1, 2), st.integers(0, 4)), min_size=1, max_size=12).filter(
        lambda rows: sum(count for _, count in rows) > 0
    )
)
def test_instance_completeness_weights_equal_repetitions(counts: list[tuple[float, int]]) -> None:
    rules = rule_set([Interval(0, upper=0.5)], [Interval(0, lower=1.0)], domain=Domain((0,), (2,)))
    rows = [[value] for value, _ in counts]
    repeated = [[value] for value, count in counts for _ in range(count)]
    is_covered = [value <= 0.5 or value > 1.0 for [value] in repeated]
    expected = sum(is_covered) / len(is_covered)
    assert instance_completeness(rules, repeated) == pytest.approx(expected, rel=1e-12)
    weights = [count for _, count in counts]
    share = instance_completeness(rules, rows, sample_weight=weights)
    assert share == pytest.approx(expected, rel=1e-12)
    assert type(share) is float
    assert 0.0 <= share <= 1.0


def test_instance_completeness_reads_frames_by_name() -> None:
    rules = rule_set([Interval(0, upper=0.5)], domain=UNIT)
    frame = pd.DataFrame({"x2": [0, 0, 0], "x1": [0, 0, 0], "x0": [0.0, 1.0, math.nan]})
    assert instance_completeness(rules, frame) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"shape \(2,\), got shape \(1,\)"),
        ([[1.0, 1.0]], r"got shape \(1, 2\)"),
        ([1.0, -0.5], r"zero or more, got -0\.5 for row 1"),
        ([math.nan, 1.0], "finite.*got nan for row 0"),
        ([math.inf, 1.0], "finite.*got inf for row 0"),
        ([0.0, 0.0], "positive number, got 2 zeros"),
    ],
)
def test_instance_completeness_rejects_invalid_weights(weights: Any, message: str) -> None:
    rules = rule_set([Interval(0, upper=0.5)], domain=UNIT)
    with pytest.raises(ValueError, match=message):
        instance_completeness(rules, np.zeros((2, 3)), sample_weight=weights)


def test_instance_completeness_needs_rows() -> None:
    rules = rule_set([Interval(0, upper=0.5)], domain=UNIT)
    with pytest.raises(ValueError, match=r"at least one row.*got 0 rows"):
        instance_completeness(rules, np.empty((0, 3)))


# --- figures of another platform -----------------------------------------------------------------


def training_and_test_rows(dataset: str, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    loaders = {"iris": load_iris, "wine": load_wine, "wbc": load_breast_cancer}
    labels = None
    if dataset in loaders:
        bunch = loaders[dataset]()
        rows, labels = bunch.data, bunch.target_names[bunch.target]
    elif dataset == "calif":
        rows = np.random.RandomState(0).uniform(size=(2000, 8))
    else:
        n_features = int(dataset.removeprefix("friedman"))
        rows, _ = make_friedman1(1000, n_features, noise=0.5, random_state=0)
    if seed is None:
        return rows, rows
    return tuple(train_test_split(rows, test_size=0.5, random_state=seed, stratify=labels))


@pytest.mark.parametrize("split", PSYKE["splits"], ids=lambda s: f"{s['dataset']}-{s['seed']}")
def test_completeness_equals_that_of_psyke_lists(split: dict[str, Any]) -> None:
    train, test = training_and_test_rows(split["dataset"], split["seed"])
    margin = 2e-6  # the domain of the platform extends far beyond the rows
    domain = Domain(tuple(train.min(axis=0) - margin), tuple(train.max(axis=0) + margin))
    for listed in split["lists"]:
        shape = (len(listed["boxes"]), train.shape[1])
        lower = np.broadcast_to(split["lower"], shape).copy()
        upper = np.broadcast_to(split["upper"], shape).copy()
        for row, box in enumerate(listed["boxes"]):
            for feature, (low, high) in box.items():
                lower[row, int(feature)], upper[row, int(feature)] = low, high
        rules = from_arrays(lower, upper, domain, closed=(True, False), disjoint=True)
        share = volume_completeness(rules)
        assert share.exact
        assert share.value == pytest.approx(listed["volume"], abs=2e-6)
        result = volume_completeness(from_arrays(lower, upper, domain, closed=(True, False)))
        assert result.exact
        assert result.value == pytest.approx(share.value, abs=2e-6)
        # Faces on the border of the domain, rounded to 6 decimals, are open there.
        lower[lower < train.min(axis=0)] = -math.inf
        upper[upper > train.max(axis=0)] = math.inf
        rules = from_arrays(lower, upper, domain, closed=(True, False))
        assert instance_completeness(rules, test) == pytest.approx(listed["instances"], abs=1e-6)


def test_completeness_of_rows_and_volume_differ_on_iris() -> None:
    iris = next(s for s in PSYKE["splits"] if (s["dataset"], s["seed"]) == ("iris", None))
    listed = next(entry for entry in iris["lists"] if len(entry["boxes"]) == 8)
    assert (listed["instances"], listed["volume"]) == (1.0, 0.390625)


def test_volume_handles_domains_longer_than_largest_float() -> None:
    largest = 1.7976931348623157e308
    rules = RuleSet(
        [Rule([Interval(0, upper=0.0)], "a"), Rule([Interval(0, largest / 2)], "a")],
        ["x"],
        task="classification",
        domain=Domain((-largest,), (largest,)),
    )
    assert volume_completeness(rules) == Completeness(0.75, exact=True, low=0.75, high=0.75)


def test_volume_samples_missing_values() -> None:
    """Where x is missing, as on half of the volume, the sum is unknown."""
    rule = Rule([Linear([(0, 1.0), (1, 1.0)], upper=1.0)], "a")
    domain = Domain((0, 0), (1, 1), missing=(0.5, 0.0))
    rules = RuleSet([rule], ["x", "y"], task="classification", domain=domain)
    assert volume_completeness(rules).value == pytest.approx(0.25, abs=0.02)


def test_volume_adds_missing_share_to_inner_intervals() -> None:
    rule = Rule([Interval(0, 0.25, 0.5, missing=True), Interval(1, upper=0.75)], "a")
    domain = Domain((0, 0), (1, 1), missing=(0.4, 0.0))
    rules = RuleSet([rule], ["x", "y"], task="classification", domain=domain)
    result = volume_completeness(rules)
    assert result.exact
    assert result.value == pytest.approx((0.6 * 0.25 + 0.4) * 0.75)


def crossing_boxes(*extra: list[Any]) -> RuleSet:
    """Make rules whose volume is too expensive to be computed exactly."""
    rng = np.random.default_rng(0)
    begins = rng.uniform(0, 0.3, (60, 10))
    boxes = [[Interval(j, begin, begin + 0.6) for j, begin in enumerate(row)] for row in begins]
    return rule_set(*boxes, *extra, domain=Domain((0,) * 11, (1,) * 11))


def test_volume_samples_if_its_bounds_are_estimates() -> None:
    estimate = volume_completeness(crossing_boxes(), n_samples=2000)
    mixed = volume_completeness(
        crossing_boxes([TRIANGLE, Interval(10, upper=0.02)]), n_samples=2000
    )
    assert not estimate.exact
    assert not mixed.exact
    assert estimate.low < mixed.value < estimate.high + 0.02


def test_volume_samples_missing_values_of_categories() -> None:
    rule = Rule([OneOf(0, ["b"]), Linear([(1, 1.0), (2, 1.0)], upper=1.0)], "a")
    domain = Domain((0, 0, 0), (2, 1, 1), [(0, ("a", "b"))], missing=(0.5, 0.0, 0.0))
    rules = RuleSet([rule], ["kind", "x", "y"], task="classification", domain=domain)
    result = volume_completeness(rules)
    assert result.low <= 0.5 * 0.5 * 0.5 <= result.high


def test_volume_splits_rules_into_1024_parts() -> None:
    inner = [Interval(j, 0.25, 0.5, missing=True) for j in range(10)]
    domain = Domain((0,) * 10, (1,) * 10, missing=(0.5,) * 10)
    result = volume_completeness(rule_set(inner, domain=domain))
    assert result.exact
    assert result.value == pytest.approx((0.5 * 0.25 + 0.5) ** 10)


def test_volume_rejects_texts_among_numbers_on_constant_features() -> None:
    rules = rule_set([OneOf(0, ["a", 1]), TRIANGLE], domain=Domain((1, 0, 0), (1, 1, 1)))
    with pytest.raises(ValueError, match="categories"):
        volume_completeness(rules)


def test_volume_splits_no_rules_that_reach_an_end() -> None:
    """Missing values are next to the smallest numbers, so that 11 features need a single box."""
    premise = [Interval(j, upper=0.5, missing=True) for j in range(11)]
    domain = Domain((0,) * 11, (1,) * 11, missing=(0.5,) * 11)
    result = volume_completeness(rule_set(premise, domain=domain))
    assert result.exact
    assert result.value == pytest.approx(0.75**11)
