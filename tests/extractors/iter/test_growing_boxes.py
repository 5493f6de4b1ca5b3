"""Growing boxes: seeds, points, and a state that equals loops after every step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.black_boxes import CallableRegressor
from skescore.extractors import ITERExtractor
from skescore.extractors.iter import (
    GrowingBoxes,
    LabelVectors,
    NumberVectors,
    PointSource,
    seed_boxes,
)
from skescore.rules._volumes import join_touching


def start(
    X, answers, task, *, min_update=0.2, min_examples=0, threshold=0.3, n_points=1, **options
):
    """Return a growth with its seeds on the domain of the rows, and the list of queried points."""
    queries = []
    lower, upper = X.min(axis=0), X.max(axis=0)
    margin = 1e-9 * (upper - lower)

    def ask(points):
        queries.append(points.copy())
        numbers = points.sum(axis=1)
        return (
            (numbers > X.sum(axis=1).mean()).astype(np.intp)
            if task == "classification"
            else numbers
        )

    coded = LabelVectors(answers, 3) if task == "classification" else NumberVectors(answers)
    growth = GrowingBoxes(
        X,
        coded,
        lower - margin,
        upper + margin,
        min_update * (upper - lower + 2 * margin),
        query=ask,
        points=PointSource(0, min_examples, X.shape[1]),
        min_examples=min_examples,
        limit=coded.limit(threshold),
        follow=options.get("follow", True),
    )
    for bounds in seed_boxes(growth, answers, task, n_points):
        growth.add_box(*bounds)
    return growth, queries


def inside(row, lower, upper):
    return all(a <= x < b for x, a, b in zip(row, lower, upper, strict=True))


def overlap(lower, upper, other_lower, other_upper):
    return all(
        a < d and c < b for a, b, c, d in zip(lower, upper, other_lower, other_upper, strict=True)
    )


def strip_of(growth, b, face):
    """Return bounds of a strip, or None: one step, shortened by each box in its way."""
    j, step = face // 2, growth.steps[face // 2]
    lower, upper = growth.lower[b].copy(), growth.upper[b].copy()
    near = upper[j] if face % 2 else lower[j]
    if step == 0 or np.isinf(near):
        return None
    far = near + step if face % 2 else near - step
    lower[j], upper[j] = (near, far) if face % 2 else (far, near)
    if far >= growth.domain_upper[j] - 1e-6 * step:
        upper[j] = np.inf
    if far <= growth.domain_lower[j] + 1e-6 * step:
        lower[j] = -np.inf
    for other in range(growth.n_boxes):
        if overlap(lower, upper, growth.lower[other], growth.upper[other]):
            if face % 2:
                upper[j] = growth.lower[other, j]
            else:
                lower[j] = growth.upper[other, j]
            if not lower[j] < upper[j]:
                return None
    return lower, upper


def vectors(growth, answers):
    if isinstance(growth.predictions, LabelVectors):
        return np.eye(3)[answers]
    numbers = growth.predictions.encode(answers)
    return np.column_stack([numbers, numbers**2])


def check_state(growth, answers):
    """Compare the state with the results of loops over all rows and boxes."""
    X, vector = growth.X, vectors(growth, answers)
    boxes = [(growth.lower[b], growth.upper[b]) for b in range(growth.n_boxes)]
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(*one, *other)
    for row, owner in zip(X, growth.owner, strict=True):
        assert [b for b, box in enumerate(boxes) if inside(row, *box)] == (
            [owner] if owner >= 0 else []
        )
    for b, face in itertools.product(range(growth.n_boxes), range(growth.n_faces)):
        strip = strip_of(growth, b, face)
        assert growth.open[b, face] == (strip is not None)
        if strip is None:
            assert growth.gap[b, face] == np.inf
            continue
        far = strip[face % 2][face // 2]
        if np.isinf(far):
            assert growth.far[b, face] == far
        else:  # it may have been moved to an equivalent face there
            assert growth.far[b, face] == pytest.approx(far, abs=1e-5 * growth.steps[face // 2])
            strip[face % 2][face // 2] = growth.far[b, face]
        rows = [i for i, row in enumerate(X) if inside(row, *strip)]
        assert growth.n[b, face] == len(rows)
        np.testing.assert_allclose(growth.sums[b, face], vector[rows].sum(axis=0), atol=1e-9)


def gap_of(growth, b, means):
    reference = growth.mean[b]
    if isinstance(growth.predictions, LabelVectors):
        return sum(abs(p - q) for p, q in zip(means, reference, strict=True)) / 2
    return abs(means[0] - reference[0])


def next_by_loops(growth, answers):
    """Return the next step in the documented order when nothing is queried."""
    vector = vectors(growth, answers)
    limit = growth.limit * 1e-9
    strips = []
    for b, face in itertools.product(range(growth.n_boxes), range(growth.n_faces)):
        strip = strip_of(growth, b, face)
        if strip is None:
            continue
        if not np.isinf(growth.far[b, face]):
            strip[face % 2][face // 2] = growth.far[b, face]
        rows = [i for i, row in enumerate(growth.X) if inside(row, *strip)]
        if rows:
            means = vector[rows].mean(axis=0)
            gap = round(gap_of(growth, b, means), 9)
            if isinstance(growth.predictions, LabelVectors):
                impurity = 1 - means.max()
            else:
                impurity = np.sqrt(max(means[1] - means[0] ** 2, 0))
        else:
            j = face // 2
            gap = limit
            impurity = (
                min(growth.upper[b, j], growth.domain_upper[j])
                - max(growth.lower[b, j], growth.domain_lower[j])
            ) / growth.steps[j]
        strips.append((gap, -len(rows), round(impurity, 6), b, face))
    if not strips:
        return None
    return min(strips)


@st.composite
def problems(draw):
    """Draw few rows on a grid, so that faces, rows and ties coincide, and any predictions."""
    n_rows, n_features = draw(st.integers(2, 25)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.integers(0, draw(st.sampled_from([2, 6, 11, 1000])), (n_rows, n_features)) * 1.0
    X = X * draw(st.sampled_from([1.0, 0.1, 1e-9, 1e6])) + draw(st.sampled_from([0.0, -3.0]))
    task = draw(st.sampled_from(["classification", "regression"]))
    if task == "classification":
        answers = random.integers(0, 3, n_rows)
    else:
        answers = random.integers(0, 5, n_rows) / 4
    return X, answers, task


def run(growth, answers, steps, each):
    for _ in range(steps):
        each()
        if not growth.step():
            uncovered = np.flatnonzero(growth.owner < 0)
            if not len(uncovered):
                return
            growth.add_box(*growth.around_uncovered(int(uncovered[0])))
            assert growth.owner[uncovered[0]] == growth.n_boxes - 1
    each()


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0, 3]), st.integers(1, 3))
def test_growth_state_equals_loops_after_every_step(problem, min_update, min_examples, n_points):
    X, answers, task = problem
    growth, _ = start(
        X, answers, task, min_update=min_update, min_examples=min_examples, n_points=n_points
    )
    run(growth, answers, 25, lambda: check_state(growth, answers))


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([0.0, 0.2, 0.6]))
def test_growth_takes_the_step_that_loops_choose(problem, threshold):
    X, answers, task = problem
    growth, _ = start(X, answers, task, threshold=threshold)

    for _ in range(15):
        expected = next_by_loops(growth, answers)
        n_boxes, lower, upper = growth.n_boxes, growth.lower.copy(), growth.upper.copy()
        far = growth.far.copy()
        if not growth.step():
            assert expected is None
            break
        gap, _, _, b, face = expected
        if gap <= growth.limit * 1e-9:
            assert growth.n_boxes == n_boxes
            bounds = growth.upper if face % 2 else growth.lower
            assert bounds[b, face // 2] == far[b, face]
            changed = (growth.lower != lower).sum() + (growth.upper != upper).sum()
            assert changed == 1
        else:
            assert growth.n_boxes == n_boxes + 1
            new_lower, new_upper = growth.lower[n_boxes], growth.upper[n_boxes]
            assert (new_lower if face % 2 else new_upper)[face // 2] == (
                upper if face % 2 else lower
            )[b, face // 2]
            assert (new_upper if face % 2 else new_lower)[face // 2] == far[b, face]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(problems())
def test_growth_recomputes_evicted_codes(problem):
    X, answers, task = problem
    caching, _ = start(X, answers, task, min_examples=2)
    forgetful, _ = start(X, answers, task, min_examples=2)
    forgetful._max_cached_boxes = 1
    for growth in (caching, forgetful):
        run(growth, answers, 30, lambda: None)
    assert caching.n_boxes == forgetful.n_boxes
    np.testing.assert_array_equal(caching.owner, forgetful.owner)
    np.testing.assert_array_equal(
        caching.lower[: caching.n_boxes], forgetful.lower[: caching.n_boxes]
    )
    assert len(forgetful._codes) == 1


@settings(max_examples=40, deadline=None)
@given(problems())
def test_points_lie_in_the_queried_strip(problem):
    X, answers, task = problem
    growth, queries = start(X, answers, task, min_examples=6)
    lower, upper = growth.domain_lower, growth.domain_upper
    extent = np.where(upper > lower, upper - lower, 1.0)

    def check():
        for b, face in zip(*np.nonzero(growth.open[: growth.n_boxes]), strict=True):
            last, j = growth.snapshot[b, face], face // 2
            if last < 0:
                assert growth.share[b, face] == 0
                continue
            before = (growth._snapshots[last, 1] - growth._snapshots[last, 0]) / extent
            now = np.clip(growth.upper[b], lower, upper) - np.clip(growth.lower[b], lower, upper)
            other_items = [i for i in growth.active if i != j]
            share = np.prod(before[other_items] / (now / extent)[other_items])
            assert growth.share[b, face] == pytest.approx(share, rel=1e-6)

    run(growth, answers, 20, check)
    for points in queries:
        assert (points >= lower).all()
        assert (points <= upper).all()
        assert (growth.X[:, growth.steps == 0] == points[:1, growth.steps == 0]).all()


def joined_by_loops(boxes):
    """Join the first pair of boxes with one output whose union is a box until none is left."""
    boxes = [(list(low), list(high), output) for low, high, output in boxes]
    while True:
        for one, other in itertools.permutations(boxes, 2):
            differ = [
                j
                for j in range(len(one[0]))
                if (one[0][j], one[1][j]) != (other[0][j], other[1][j])
            ]
            if one[2] == other[2] and len(differ) == 1 and one[1][differ[0]] == other[0][differ[0]]:
                one[1][differ[0]] = other[1][differ[0]]
                boxes.remove(other)
                break
        else:
            return boxes


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_joining_preserves_outputs_and_is_maximal(rows, columns, seed):
    random = np.random.default_rng(seed)
    cells = [(i, j) for i in range(rows) for j in range(columns) if random.uniform() < 0.8]
    lower = np.array(cells, dtype=float).reshape(-1, 2)
    upper, outputs = lower + 1, random.integers(0, 2, len(cells))
    centers = lower + 0.5
    first, union = join_touching(lower, upper, outputs)
    for center, part, output in zip(centers, union, outputs, strict=True):
        holding = [u for u, f in enumerate(first) if inside(center, lower[f], upper[f])]
        assert holding == [part]
        assert outputs[first[part]] == output
    left = [(lower[f], upper[f], outputs[f]) for f in first]
    assert len(joined_by_loops(left)) == len(left)
    area = (upper[first] - lower[first]).prod(axis=1).sum()
    assert area == len(cells)


def laid(X, boxes, step=0.1):
    """Return a growth on the unit square with given boxes."""
    answers = X.sum(axis=1)
    coded = NumberVectors(answers)
    growth = GrowingBoxes(
        X,
        coded,
        np.zeros(2),
        np.ones(2),
        np.full(2, step),
        query=lambda points: points[:, 0],
        points=PointSource(0, 0, 2),
        min_examples=0,
        limit=np.inf,
        follow=True,
    )
    for lower, upper in boxes:
        growth.add_box(np.array(lower), np.array(upper))
    return growth, answers


def test_strip_is_shortened_where_it_meets_a_box():
    X = np.array([[0.1, 0.1], [0.4, 0.4], [0.27, 0.35], [0.22, 0.35], [0.22, 0.1], [0.27, 0.1]])
    growth, answers = laid(X, [((0.0, 0.0), (0.2, 0.2)), ((0.25, 0.3), (0.45, 0.5))])
    assert (growth.far[0, 1], growth.n[0, 1]) == (pytest.approx(0.3), 2)
    growth.grow(0, 3)
    growth.grow(0, 3)
    assert growth.upper[0].tolist() == pytest.approx([0.2, 0.4])
    assert (growth.far[0, 1], growth.n[0, 1]) == (0.25, 2)
    check_state(growth, answers)


def test_nearly_equal_faces_merge():
    X = np.array([[0.15, 0.15], [0.45, 0.85]])
    almost = 0.3 + 1e-12
    growth, _ = laid(X, [((almost, 0.8), (0.5, 0.9)), ((0.1, 0.1), (0.2, 0.2))])
    assert growth.far[1, 1] == almost != 0.2 + 0.1
    growth.grow(1, 1)
    assert growth.upper[1, 0] == almost


def test_new_box_avoids_existing_box():
    X = np.array([[0.1, 0.1], [0.45, 0.6]])
    growth, _ = laid(X, [((-np.inf, -np.inf), (0.4, 0.4))], step=0.3)
    lower, upper = growth.around_uncovered(1)
    assert lower.tolist() == pytest.approx([0.15, 0.4])
    assert upper.tolist() == pytest.approx([0.75, 0.9])


# --- seeds ---


def grow(X, answers, n_points, min_update=0.1):
    """Return seeds that are never grown."""
    lower, upper = X.min(axis=0) - 1e-9, X.max(axis=0) + 1e-9
    classification = answers.dtype.kind == "i"
    coded = LabelVectors(answers, 5) if classification else NumberVectors(answers)
    growth = GrowingBoxes(
        X,
        coded,
        lower,
        upper,
        min_update * (upper - lower),
        query=lambda points: points[:, 0],
        points=PointSource(0, 1, X.shape[1]),
        min_examples=1,
        limit=1.0,
        follow=True,
    )
    task = "classification" if classification else "regression"
    return seed_boxes(growth, answers, task, n_points)


def centers(boxes):
    return [((lower + upper) / 2).tolist() for lower, upper in boxes]


def test_seed_is_nearest_to_middle_of_predictions():
    X = np.arange(11.0)[:, None]
    # Halfway from 100 to 120 is 110; half of the range is 10, to which the first row is nearest.
    answers = np.array([100.0, 120, 117, 111, 109, 109, 103, 117, 104, 111, 120])
    (middle,) = centers(grow(X, answers, 1))
    assert middle == pytest.approx([3.0])


def test_seeds_spread_over_predictions():
    X = np.arange(11.0)[:, None]
    answers = np.array([0.0, 9, 4, 6, 1, 10, 2, 5, 10, 0, 7])
    # Targets 0, 5 and 10; rows 0, 7 and 5 (the first of the largest) are nearest.
    assert centers(grow(X, answers, 3, 0.09)) == [
        [-np.inf],
        pytest.approx([7.0]),
        pytest.approx([5.0]),
    ]


def test_seeds_that_would_meet_are_omitted():
    X = np.arange(11.0)[:, None]
    answers = X[:, 0].copy()
    lengths = [len(grow(X, answers, n, 0.09)) for n in (1, 2, 3, 5, 6, 7, 11, 1000)]
    assert lengths[:5] == [1, 2, 3, 5, 6]
    assert lengths[5:] == [6, 6, 6]


def test_seeds_are_the_first_rows_of_each_class():
    X = np.arange(11.0)[:, None]
    answers = np.array([4, 4, 1, 4, 1, 4, 2, 4, 4, 4, 1])
    assert centers(grow(X, answers, 1, 0.09)) == [pytest.approx([2.0])]
    assert centers(grow(X, answers, 2, 0.09)) == [pytest.approx([2.0]), pytest.approx([6.0])]
    assert len(grow(X, answers, 9, 0.09)) == 3


# --- gaps ---


@pytest.mark.parametrize("step", [0.1, 0.3])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_boxes_in_gaps_have_own_outputs(task, step):
    # Four boxes around a hole that none of them can grow into.
    X = np.array([[0.2, 0.2], [0.8, 0.3], [0.7, 0.8], [0.1, 0.9], [0.5, 0.45], [0.45, 0.5]])
    if task == "classification":
        answers = LabelVectors(np.array([0, 1, 0, 1, 2, 2]), 3)
    else:
        answers = NumberVectors(np.array([0.0, 1.0, 0.0, 1.0, 7.0, 9.0]))
    growth = GrowingBoxes(
        X,
        answers,
        np.zeros(2),
        np.ones(2),
        np.full(2, step),
        query=lambda points: points[:, 0],
        points=PointSource(0, 0, 2),
        min_examples=0,
        limit=answers.limit(0.1),
        follow=True,
    )
    inf = np.inf
    for lower, upper in [
        ((-inf, -inf), (0.6, 0.4)),
        ((0.6, -inf), (inf, 0.6)),
        ((0.4, 0.6), (inf, inf)),
        ((-inf, 0.4), (0.4, inf)),
    ]:
        growth.add_box(np.array(lower), np.array(upper))
    assert not growth.open.any()
    assert growth.grow_all(600, fill_gaps=False) == 0
    assert growth.n_boxes == 4
    assert growth.grow_all(600, fill_gaps=True) == (1 if step == 0.3 else 2)
    assert growth.n_boxes == 5
    assert (growth.lower[4].tolist(), growth.upper[4].tolist()) == ([0.4, 0.4], [0.6, 0.6])
    assert growth.owner.tolist() == [0, 1, 2, 3, 4, 4]
    outputs = growth.predictions.outputs(growth.mean[:5])
    expected = [0, 1, 0, 1, 2] if task == "classification" else [0, 1, 0, 1, 8]
    assert outputs == pytest.approx(expected)


# --- points ---


def test_points_are_uniform_in_their_strips():
    source = PointSource(0, 500, 2)
    lower = np.array([[0.0, -1.0], [2.0, 5.0]])
    upper = np.array([[1.0, 1.0], [2.5, 9.0]])
    keys = np.array([3, 4], dtype=np.uint64)
    points = source.draw(keys, lower, upper, 500)
    assert points.shape == (2, 500, 2)
    shares = (points - lower[:, None]) / (upper - lower)[:, None]
    for share in shares:
        counts = np.histogram2d(*share.T, bins=5, range=[[0, 1], [0, 1]])[0]
        # Pearson's statistic has 24 degrees of freedom: 99.9 % of samples stay below 51.2.
        assert ((counts - 20) ** 2 / 20).sum() < 51.2
    assert not np.isin(shares[0], shares[1]).any()
    np.testing.assert_array_equal(source.draw(keys[1:], lower[1:], upper[1:], 500)[0], points[1])
    np.testing.assert_array_equal(source.draw(keys, lower, upper, 40), points[:, :40])
    assert (PointSource(1, 500, 2).draw(keys, lower, upper, 9) != points[:, :9]).all()


def test_points_of_earlier_strips_do_not_bias_outputs():
    """Repeatedly refilled, the mean of a linear function stays that of the center of the strip."""
    random = np.random.default_rng(2)
    X = np.vstack([random.uniform(size=(20, 3)), np.full(3, 0.5), np.zeros(3), np.ones(3)])
    slopes = np.array([1.0, 2.0, -3.0])
    growth = GrowingBoxes(
        X,
        NumberVectors(X @ slopes),
        np.zeros(3),
        np.ones(3),
        np.full(3, 0.1),
        query=lambda points: points @ slopes,
        points=PointSource(0, 400, 3),
        min_examples=400,
        limit=np.inf,
        follow=True,
    )
    growth.add_box(np.full(3, 0.4), np.full(3, 0.6))
    looked_again = 0
    for _ in range(20):
        growth.step()
        for face in np.flatnonzero(growth.open[0] & (growth.share[0] > 0)):
            snapshot = growth._snapshots[growth.snapshot[0, face]]
            lower, upper = snapshot[0].copy(), snapshot[1].copy()
            j = face // 2
            near = growth.upper[0, j] if face % 2 else growth.lower[0, j]
            ends = np.clip(sorted([near, growth.far[0, face]]), 0, 1)
            lower[j], upper[j] = ends
            middle = (lower + upper) / 2 @ slopes
            output = growth.predictions.outputs(growth.point_mean[0, face][None])[0]
            assert output == pytest.approx(middle, abs=0.05)
            looked_again += growth.draws[0, face] > 1
    assert looked_again > 20


def test_small_point_memory_still_covers_all_rows(monkeypatch):
    square = np.random.default_rng(0).uniform(size=(300, 2))
    monkeypatch.setattr("skescore.extractors.iter._MAX_QUERY_NUMBERS", 20 * 2)
    extractor = ITERExtractor(
        CallableRegressor(lambda rows: rows.sum(axis=1)),
        min_examples=20,
        threshold=0.3,
        max_iterations=300,
        random_state=0,
    ).fit(square)
    assert extractor.oracle_.n_calls <= 1 + extractor.n_iterations_
    assert extractor.oracle_.n_rows <= 300 + 20 * extractor.oracle_.n_calls
    assert extractor.coverage_ == 1.0
    assert extractor.n_rules_ > 2
