"""Parts of REAL compared with plain loops: codes, variants, growth of a rule, the list."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier

from skescore._random import combine, uniform_points
from skescore.extractors.real import REALExtractor, _codes, _packed, _real
from skescore.extractors.real._codes import (
    CodedFeature,
    Evidence,
    code_categories,
    code_numbers,
    distinct_rows,
    make_variants,
    row_keys,
)
from skescore.extractors.real._growth import PremiseGrower
from skescore.extractors.real._packed import QUERIED, ROWS, CodeLayout
from skescore.extractors.real._real import find_subsumed, order_rules
from skescore.rules import Interval, OneOf

# --- codes, compared with plain loops ---


def feature_of(n_codes: int, *, ordered: bool = True, counts=None) -> CodedFeature:
    counts = np.ones(n_codes, dtype=int) if counts is None else np.array(counts)
    if ordered:
        return CodedFeature(np.arange(n_codes - 1) + 0.5, None, np.arange(float(n_codes)), counts)
    return CodedFeature(None, tuple("abcdefgh"[:n_codes]), np.arange(float(n_codes)), counts)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.lists(st.integers(-12, 12), max_size=6, unique=True),
)
def test_bins_are_represented_by_their_middle_row(values, cuts):
    column, cuts = np.array(values, dtype=float), np.sort(np.array(cuts, dtype=float)) / 2
    codes, feature = code_numbers(column, cuts)
    assert set(feature.cuts) <= set(cuts)
    edges = [-np.inf, *feature.cuts, np.inf]
    for code, (low, high) in enumerate(itertools.pairwise(edges)):
        members = sorted(v for v in values if low < v <= high)
        assert members  # no bin without rows
        assert feature.counts[code] == len(members)
        assert feature.examples[code] == members[(len(members) - 1) // 2]
        assert codes[(column > low) & (column <= high)].tolist() == [code] * len(members)
    # Every cut that separates rows still does.
    assert len(
        {tuple(column > c) for c in cuts} | {(True,) * len(values), (False,) * len(values)}
    ) == (len(feature.cuts) + 2)


def test_condition_of_codes_is_interval_or_set():
    _, size = code_numbers(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5]))
    assert size.condition(4, np.array([1, 1, 0, 0], bool)) == Interval(4, upper=1.5)
    assert size.condition(4, np.array([0, 1, 1, 0], bool)) == Interval(4, 0.5, 2.5)
    assert size.condition(4, np.array([0, 0, 0, 1], bool)) == Interval(4, lower=2.5)
    _, color = code_categories(np.array([0.0, 2.0]), ["blue", "green", "red"])
    assert color.condition(1, np.array([1, 0, 1], bool)) == OneOf(1, ["red", "blue"])


@pytest.mark.parametrize("largest_key", [2**62, 50])
def test_distinct_rows_equal_counter(monkeypatch, largest_key):
    monkeypatch.setattr(_codes, "_MAX_KEY", largest_key)  # 50: keys must be renumbered
    random = np.random.default_rng(0)
    codes = random.integers(0, 3, (4, 200)).astype(np.uint8)
    answers = random.integers(0, 3, 200)
    features = [feature_of(3)] * 4
    rows, first, purity = distinct_rows(codes, features, answers, 3)
    expected = Counter(zip(*codes.tolist(), answers.tolist(), strict=True))
    patterns = Counter(zip(*codes.tolist(), strict=True))
    result = list(zip(*rows.codes.tolist(), rows.labels.tolist(), strict=True))
    assert result == sorted(expected)
    assert rows.weights.tolist() == [expected[row] for row in result]
    assert purity.tolist() == [expected[row] / patterns[row[:-1]] for row in result]
    for row, index in zip(result, first, strict=True):
        assert (*codes[:, index], answers[index]) == row
        assert not any((*codes[:, i], answers[i]) == row for i in range(index))
    keys = row_keys(codes, features)
    order = np.lexsort(codes[::-1])
    assert (np.diff(keys[order]) >= 0).all()


def test_variants_start_with_all_single_changes():
    features = [feature_of(3), feature_of(1), feature_of(4, ordered=False)]
    row = np.array([1, 0, 3], dtype=np.uint8)
    changed, differs = make_variants(row, features, 45)
    singles = [[0, 0, 3], [2, 0, 3], [1, 0, 0], [1, 0, 1], [1, 0, 2]]
    assert changed.shape == (45, 3)
    assert changed[:5].tolist() == singles
    np.testing.assert_array_equal(differs, changed != row)
    assert (changed >= 0).all()
    assert (changed < [3, 1, 4]).all()
    assert set(map(tuple, changed.tolist())) == {
        (a, 0, b) for a in range(3) for b in range(4)
    }  # with this many changes, all combinations occur
    few, _ = make_variants(row, features, 3)
    assert len(set(map(tuple, few.tolist()))) == 3
    assert all(row in singles for row in few.tolist())
    assert len(make_variants(row, features, 0)[0]) == 0
    assert len(make_variants(np.array([0]), [feature_of(1)], 20)[0]) == 0  # nothing to change
    again, _ = make_variants(row, features, 45)
    np.testing.assert_array_equal(changed, again)


def test_variants_draw_codes_in_proportion_to_rows():
    features = [feature_of(2), feature_of(3, counts=[70, 0, 30])]
    changed, _ = make_variants(np.array([0, 0]), features, 8003)
    drawn = np.bincount(changed[3:, 1], minlength=3)
    assert drawn[1] == 0
    # On average 62.5 % of the variants draw the feature anew, and 30 % of those another code.
    assert drawn[2] / 8000 == pytest.approx(0.625 * 0.3, abs=0.02)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 60), st.data())
def test_variants_equal_plain_loops(sizes, n_most, data):
    features = [feature_of(n, counts=np.arange(1, n + 1)) for n in sizes]
    row = np.array([data.draw(st.integers(0, n - 1)) for n in sizes], dtype=np.uint8)
    key = np.uint64(0)
    for code in row.tolist():
        key = combine(key, code)[()]
    singles = [(j, code) for j, n in enumerate(sizes) for code in range(n) if code != row[j]]
    if len(singles) > n_most:
        chosen = np.argsort(combine(key, np.arange(len(singles))), kind="stable")[:n_most]
        singles = [singles[i] for i in sorted(chosen)]
    expected = [[code if k == j else row[k] for k in range(len(sizes))] for j, code in singles]
    n_many = n_most - len(singles) if max(sizes) > 1 else 0
    unit = np.zeros((1, 2 * len(sizes)))
    drawn, _ = uniform_points(0, np.array([key]), np.array([n_many]), unit, unit + 1)
    for number, uniform in enumerate(drawn):
        point = row.tolist()
        for j, feature in enumerate(features):
            if uniform[j] < (number % 4 + 1) / 4:
                shares = np.cumsum(feature.counts) / feature.counts.sum()
                point[j] = int((shares[:-1] <= uniform[len(sizes) + j]).sum())
        expected.append(point)
    assert make_variants(row, features, n_most)[0].tolist() == expected


# --- growth of a rule, compared with plain loops ---


def holds_for(premise, row) -> bool:
    return all(allowed[code] for allowed, code in zip(premise, row, strict=True))


def share_of(premise, points, output):
    """Return the share of the output among the points that a premise covers by plain loops."""
    right = total = 0.0
    for *row, answer, weight in points:
        if holds_for(premise, row):
            total += weight
            right += weight * (answer == output)
    return right / total if total else 1.0


@st.composite
def evidences(draw):
    """Draw features, rows and queried points as arrays and as lists."""
    features = [
        feature_of(draw(st.integers(1, 4)), ordered=draw(st.booleans()))
        for _ in range(draw(st.integers(1, 3)))
    ]
    seed = draw(st.integers(0, 2**20))
    random = np.random.default_rng(seed)
    evidence = []
    for n_points in (draw(st.integers(1, 40)), draw(st.integers(0, 20))):
        codes = np.array([random.integers(0, len(f.counts), n_points) for f in features])
        border = draw(st.integers(0, 4))
        answers = (codes.sum(axis=0) + (random.random(n_points) < 0.15) > border).astype(int)
        weights = random.integers(1, 4, n_points).astype(float)
        evidence.append(Evidence(codes.astype(np.uint8), answers, weights))
    return features, *evidence


def listed(evidence):
    return list(
        zip(
            *evidence.codes.tolist(),
            evidence.labels.tolist(),
            evidence.weights.tolist(),
            strict=True,
        )
    )


def packed(features, rows, queried, n_classes=2):
    layout = CodeLayout(features)
    return layout, layout.pack(rows, n_classes, ROWS), layout.pack(queried, n_classes, QUERIED)


@settings(max_examples=30, deadline=None)
@given(evidences(), st.integers(1, 10**6), st.sampled_from([1, 2, 128]))
def test_packed_points_count_weights(made, factor, max_packed):
    features, rows, queried = made
    weights = np.arange(len(rows), dtype=float) % 3 * factor
    rows = Evidence(rows.codes, rows.labels, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_packed, "_MAX_PACKED_CODES", max_packed)
        layout, packed_rows, packed_queried = packed(features, rows, queried)
        points = packed_rows.concatenate(packed_queried)
        premise = [np.arange(len(f.counts)) != len(f.counts) - 1 for f in features]
        premise = [allowed if allowed.any() else ~allowed for allowed in premise]
        counts = _packed.ClassCounts(layout, points, 1)
        pairs = counts.count_points(points.matching(layout, premise)[None])[:, 0]
    for pair, evidence in zip(pairs.tolist(), (rows, queried), strict=True):
        covered = [(a, w) for *row, a, w in listed(evidence) if holds_for(premise, row)]
        assert pair == [sum(w for a, w in covered if a == output) for output in (0, 1)]


class PlainGrower:
    """Growth of a premise in which each candidate is evaluated on all points."""

    def __init__(self, features, kinds, codes, output, least):
        self.features, self.kinds, self.codes = features, kinds, codes
        self.output, self.least = output, least

    def counts(self, premise):
        result = []
        for evidence in self.kinds:
            covered = np.ones(len(evidence), dtype=bool)
            for allowed, codes in zip(premise, evidence.codes, strict=True):
                covered &= allowed[codes]
            agrees = evidence.labels == self.output
            result.append([evidence.weights[covered & side].sum() for side in (~agrees, agrees)])
        return np.array(result)

    def is_precise(self, premise):
        return all(
            agreeing >= self.least * (against + agreeing) * (1 - 1e-12)
            for against, agreeing in self.counts(premise)
        )

    def gain(self, premise, wider):
        scale = np.maximum(1.0, self.counts(wider).sum(axis=1))[:, None]
        shares = []
        for one in (wider, premise):
            against, agreeing = (self.counts(one) / scale).sum(axis=0)
            shares.append(max(agreeing, 1e-12) / max(against + agreeing, 1e-12))
        return self.counts(premise)[0, 1] * (np.log2(shares[1]) - np.log2(shares[0]))

    def literals(self, j, premise):
        """Return narrower sets of codes of a feature."""
        codes, own = np.flatnonzero(premise[j]), int(self.codes[j])
        if self.features[j].ordered:
            sets = [codes[codes <= c] for c in codes if own <= c < codes[-1]]
            sets += [codes[codes >= c] for c in codes if codes[0] < c <= own]
        else:
            scale = np.maximum(1.0, self.counts(premise).sum(axis=1))[:, None]
            purity = {}
            for c in codes:
                only = changed(premise, j, [c])
                against, agreeing = (self.counts(only) / scale).sum(axis=0)
                total = against + agreeing
                purity[c] = 2.0 if c == own else agreeing / total if total > 0 else -1.0
            ranked = sorted(codes, key=lambda c: (-purity[c], c))
            sets = [ranked[:size] for size in range(1, len(ranked))]
        return [changed(premise, j, some) for some in sets]

    def grow(self):
        premise, order = [np.ones(len(f.counts), dtype=bool) for f in self.features], []
        while not self.is_precise(premise):
            best = None
            for j in range(len(self.features)):
                narrower = self.literals(j, premise)
                gains = [self.gain(one, premise) for one in narrower]
                at = next((i for i, g in enumerate(gains) if g >= max(gains) - 1e-9), None)
                if at is not None and (best is None or gains[at] > best[0] + 1e-9):
                    best = gains[at], j, narrower[at]
            if best is None:
                return None
            _, j, premise = best
            order = [*(k for k in order if k != j), j]
        for j in order[::-1]:
            wider = changed(premise, j, range(len(premise[j])))
            premise = wider if self.is_precise(wider) else premise
        while (wider := self.widened(premise)) is not None:
            premise = wider
        return premise

    def widened(self, premise):
        best_surplus, best = -np.inf, None
        before = self.counts(premise)
        for j, allowed in enumerate(premise):
            codes, others = np.flatnonzero(allowed), np.flatnonzero(~allowed)
            sets = [[c] for c in others]
            if self.features[j].ordered:
                sets = [[c] for c in others if c in (codes[0] - 1, codes[-1] + 1)]
            else:
                added = [self.counts(changed(premise, j, [*codes, c])) - before for c in others]
                free = [c for c, a in zip(others, added, strict=True) if not a[:, 0].any()]
                sets = [free] if free else sets
            for some in sets:
                wider = changed(premise, j, [*codes, *some])
                against, agreeing = (self.counts(wider) - before)[0]
                if agreeing - against > best_surplus and self.is_precise(wider):
                    best_surplus, best = agreeing - against, wider
        return best


def changed(premise, j, codes):
    """Return a premise with other allowed codes of a feature."""
    result = [allowed.copy() for allowed in premise]
    result[j][:] = np.isin(np.arange(len(result[j])), list(codes))
    return result


@settings(max_examples=80, deadline=None)
@given(evidences(), st.sampled_from([0.6, 0.9, 1.0]), st.sampled_from([1, 2, 128]))
def test_grower_equals_plain_loops(made, least, max_packed):
    features, rows, queried = made
    row, output = rows.codes[:, 0], int(rows.labels[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_packed, "_MAX_PACKED_CODES", max_packed)
        layout, packed_rows, packed_queried = packed(features, rows, queried)
        premise = PremiseGrower(layout, packed_rows, least).grow(row, output, packed_queried)
    expected = PlainGrower(features, (rows, queried), row, output, least).grow()
    assert (premise is None) == (expected is None)
    if premise is not None:
        assert [a.tolist() for a in premise] == [a.tolist() for a in expected]


@settings(max_examples=40, deadline=None)
@given(evidences(), st.sampled_from([0.6, 0.9, 1.0]))
def test_grown_rules_are_precise_and_cannot_be_widened(made, least):
    features, rows, queried = made
    layout, packed_rows, packed_queried = packed(features, rows, queried)
    grower = PremiseGrower(layout, packed_rows, least)
    row, output = rows.codes[:, 0], int(rows.labels[0])
    premise = grower.grow(row, output, packed_queried)
    both = [listed(rows), listed(queried)]

    def precise(candidate):
        return all(share_of(candidate, points, output) >= least - 1e-12 for points in both)

    full = [np.arange(len(f.counts)) == code for f, code in zip(features, row, strict=True)]
    assert premise is not None or not precise(full)
    is_allowed = share_of(full, both[1], output) >= least - 1e-12
    assert grower.allows(row, output, packed_queried) == is_allowed
    if premise is None:
        return
    assert holds_for(premise, row)
    assert precise(premise)
    for j, feature in enumerate(features):
        if premise[j].all():
            continue
        codes = np.flatnonzero(premise[j])
        if feature.ordered:
            assert codes.tolist() == list(range(codes[0], codes[-1] + 1))
            further = [c for c in (codes[0] - 1, codes[-1] + 1) if 0 <= c < len(premise[j])]
        else:
            further = np.flatnonzero(~premise[j])
        for code in further:
            wider = [allowed.copy() for allowed in premise]
            wider[j][code] = True
            assert not precise(wider)


@pytest.mark.parametrize("min_precision", [0.8, 0.95, 1.0])
def test_grown_rules_are_precise_on_rows(monkeypatch, min_precision):
    grown_rules = []
    grow = PremiseGrower.grow

    def watched(self, codes, output, queried):
        premise = grow(self, codes, output, queried)
        covered = queried.matching(self.layout, premise)
        pair = _packed.ClassCounts(self.layout, queried, output).count_points(covered[None])[
            QUERIED, 0
        ]
        grown_rules.append((premise, output, pair))
        return premise

    monkeypatch.setattr(PremiseGrower, "grow", watched)
    X, y = load_wine(return_X_y=True)
    extractor = REALExtractor(KNeighborsClassifier(9), min_precision=min_precision).fit(X, y)
    assert len(grown_rules) == extractor.n_rules_made_ > 3
    y_pred = extractor.estimator_.predict(X)
    codes = extractor.discretizer_.transform(X)
    for premise, output, (against, agreeing) in grown_rules:
        points = [(*row, label, 1) for row, label in zip(codes, y_pred, strict=True)]
        assert share_of(premise, points, output) >= min_precision - 1e-12
        assert agreeing >= (min_precision - 1e-12) * (against + agreeing)


def test_grower_handles_many_categories():
    random = np.random.default_rng(1)
    codes = random.integers(0, 500, (1, 4000)).astype(np.uint16)
    features = [
        CodedFeature(None, tuple(map(str, range(500))), np.arange(500.0), np.bincount(codes[0]))
    ]
    rows = Evidence(codes, (codes[0] % 3 == 0).astype(int), np.ones(4000))
    queried = Evidence(codes[:, :0], rows.labels[:0], np.empty(0))
    layout, packed_rows, packed_queried = packed(features, rows, queried)
    assert layout.wide == [0]
    premise = PremiseGrower(layout, packed_rows, 1.0).grow(np.array([3]), 1, packed_queried)
    # Every third category, and unseen ones, which no evidence contradicts.
    unseen = np.bincount(codes[0], minlength=500) == 0
    np.testing.assert_array_equal(premise[0], (np.arange(500) % 3 == 0) | unseen)


# --- the list ---


def test_subsumption_equals_set_inclusion():
    random = np.random.default_rng(0)
    premises = [[random.random(2) < 0.7, random.random(3) < 0.6] for _ in range(60)]
    premises = [p for p in premises if p[0].any() and p[1].any()]
    outputs = random.integers(0, 2, len(premises))
    points = [
        {(a, b) for a in range(2) for b in range(3) if holds_for(p, (a, b))} for p in premises
    ]
    is_subsumed = find_subsumed(premises, outputs)
    for i, mine in enumerate(points):
        expected = any(
            outputs[i] == outputs[j] and (mine < other or (mine == other and j < i))
            for j, other in enumerate(points)
        )
        assert is_subsumed[i] == expected


def test_subsumption_parameter_keeps_subsumed_rules(monkeypatch):
    calls = []
    monkeypatch.setattr(_real, "find_subsumed", lambda *a: calls.append(a) or find_subsumed(*a))
    X, y = load_iris(return_X_y=True)
    REALExtractor(KNeighborsClassifier(9)).fit(X, y)
    assert calls
    calls.clear()
    REALExtractor(KNeighborsClassifier(9), subsumption=False).fit(X, y)
    assert not calls


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_best_list_equals_plain_loops(tolerance):
    random = np.random.default_rng(4)
    codes = random.integers(0, 3, (3, 80)).astype(np.uint8)
    rows = Evidence(codes, random.integers(0, 3, 80), random.integers(1, 5, 80).astype(float))
    premises = [[random.random(3) < 0.6 for _ in range(3)] for _ in range(40)]
    outputs = random.integers(0, 3, 40)
    waiting, left, expected = listed(rows), list(range(40)), []
    total = sum(weight for *_, weight in waiting)
    while sum(weight for *_, weight in waiting) > tolerance * total:
        best = None
        for i in left:
            counts = [0.0] * 3
            for *row, answer, weight in waiting:
                if holds_for(premises[i], row):
                    counts[answer] += weight
            surplus = 2 * counts[outputs[i]] - sum(counts)
            if best is None or surplus > best[0]:
                best = surplus, i, counts
        if best[0] <= 0:
            break
        expected.append(best[1:])
        left.remove(best[1])
        waiting = [p for p in waiting if not holds_for(premises[best[1]], p[:3])]
    layout = CodeLayout([feature_of(3)] * 3)
    result = order_rules(layout, layout.pack(rows, 3, ROWS), premises, outputs, tolerance)
    assert [(i, counts.tolist()) for i, counts in result] == expected
    assert len(expected) > 2
