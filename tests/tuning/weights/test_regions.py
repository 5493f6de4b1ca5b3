"""Who wins for which weights, against plain evaluation of the scores at very many weights."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.metrics import ice_performance, ice_readability, ice_score
from skescore.tuning import Candidate, Candidates, winning_regions
from skescore.tuning.weights._common import undominated
from skescore.tuning.weights._ice import Boxes, IcePlane
from skescore.tuning.weights._tree import divide


def measured(*folds: tuple[float, float, float], place: int = 0, name: str = "cart") -> Candidate:
    """A candidate with performance, size and completeness on each fold."""
    return Candidate(name, {}, place, tuple(
        {"performance": p, "loss": 1 - p, "loss_q": 1 - p, "n_rules": r, "size": r,
         "completeness_volume": c, "completeness_instances": 1.0} for p, r, c in folds
    ))  # fmt: skip


def random_candidates(n: int, n_folds: int, seed: int) -> Candidates:
    random = np.random.default_rng(seed)
    found = []
    for place in range(n):
        r = int(random.integers(1, 30))
        best = 1 - 0.6 * math.exp(-r / 6) * random.uniform(0.5, 1.3)
        found.append(measured(*(
            (min(1.0, best + random.normal(0, 0.03)), max(1, r + int(random.integers(-1, 2))),
             float(np.clip(random.normal(0.9, 0.1) + r / 100, 0, 1)))
            for _ in range(n_folds)
        ), place=place))  # fmt: skip
    return Candidates(found)


def best_of(candidates: Candidates, score: str, **weights: float) -> set[int]:
    """Places of the best and of those that differ from it by noise, from the scores themselves."""
    sign = 1 if score == "ice" else -1
    scores = sign * candidates.scores(score, **weights).mean(axis=1)
    return set(np.flatnonzero(scores >= scores.max() - 1e-10 * abs(scores.max())).tolist())


def ice_of(candidates: Candidates, phi: Any, rho: Any) -> np.ndarray:
    """Scores of all candidates (rows) with many weights."""
    parts = (candidates.measure(n) for n in ("performance", "size", "completeness_volume"))
    return ice_score(*(part[..., None] for part in parts), phi=phi, rho=rho).mean(axis=1)


# --- FiRe ---


def test_the_region_of_fire_by_hand() -> None:
    # 0.25 * ceil(1 / psi) against 0.1 * ceil(3 / psi) * 3**0.05: 2 steps or less make the second
    # better, as does psi < 1 with ceil(3 / psi) / ceil(1 / psi) < 2.366.
    table = winning_regions(
        [measured((0.75, 1, 1)), measured((0.9, 3, 1))], "fire", within=(0.7, 10)
    ).table
    rows = table[["low", "high", "closed_low", "closed_high", "candidate"]].to_numpy().tolist()
    # From 0.7: ceil(1/psi) is 2, ceil(3/psi) 5 (2.5 > 2.366) to 0.75, then 4 (2.0).
    assert rows == [
        [0.7, 0.75, True, False, 0],
        [0.75, 1.0, True, False, 1],
        [1.0, 1.5, True, False, 0],
        [1.5, 10.0, True, True, 1],
    ]
    assert table["share"].sum() == pytest.approx(1.0)
    assert table["share"][3] == pytest.approx(math.log(10 / 1.5) / math.log(10 / 0.7))
    assert table["n_rules"].tolist() == [1.0, 3.0, 1.0, 3.0]
    assert table["loss"].tolist() == pytest.approx([0.25, 0.1, 0.25, 0.1])


def fire_by_hand(candidate: Candidate, psi: Fraction) -> float:
    total = 0.0
    for fold in candidate.folds:
        steps = math.ceil(Fraction(fold["size"]) / psi)
        total += fold["loss"] * steps * fold["size"] ** 0.05
    return total / len(candidate.folds)


fire_fold = st.tuples(st.integers(0, 32).map(lambda k: k / 32), st.integers(1, 12))


@st.composite
def fire_cases(draw: Any) -> tuple[Candidates, Fraction]:
    n_folds = draw(st.integers(1, 3))
    folds = st.lists(fire_fold, min_size=n_folds, max_size=n_folds)
    found = [
        measured(*((p, r, 1.0) for p, r in draw(folds)), place=i)
        for i in range(draw(st.integers(1, 6)))
    ]
    # Breakpoints themselves, where the winner changes, and anything else.
    breakpoints = st.builds(Fraction, st.integers(1, 12), st.integers(1, 40))
    psi = draw(breakpoints | st.fractions(Fraction(1, 4), 20, max_denominator=500))
    return Candidates(found), min(max(psi, Fraction(1, 4)), Fraction(20))


@settings(max_examples=150)
@given(fire_cases())
def test_the_table_of_fire_has_the_winner_of_exact_arithmetic(
    case: tuple[Candidates, Fraction],
) -> None:
    candidates, psi = case
    scores = [fire_by_hand(candidate, psi) for candidate in candidates]
    tied = [i for i, score in enumerate(scores) if score <= min(scores) * (1 + 1e-11)]
    expected = min(tied, key=lambda i: (candidates[i].mean("n_rules"), i))
    regions = winning_regions(candidates, "fire", within=(0.25, 20))
    table = regions.table
    value = float(psi)
    above = (table["low"] <= value) & ((value < table["high"]) | table["closed_high"])
    assert table["candidate"][above].tolist()[-1] == expected
    assert regions.place(psi=value) == expected
    # Neighbouring rows differ, and together they are the range.
    assert (np.diff(table["candidate"]) != 0).all()
    assert table["low"].tolist() == [0.25, *table["high"][:-1]]
    assert table["high"].iloc[-1] == 20
    assert sorted([*set(table["candidate"]), *regions.nowhere["candidate"]]) == list(
        range(len(candidates))
    )


def test_a_breakpoint_of_float_noise_belongs_to_the_step_that_begins_there() -> None:
    # 21 / 0.7 is 30.000000000000004 in floats. 0.1 * 30 * 21**0.05 < 0.095 * 32 * 22**0.05 < 31 ...
    found = [measured((0.9, 21, 1)), measured((0.905, 22, 1))]
    regions = winning_regions(found, "fire", within=(0.69, 0.72))
    assert 0.7 in regions.table["low"].tolist()
    row = regions.table[regions.table["low"] == 0.7].iloc[0]
    assert regions.place(psi=0.7) == row["candidate"] != regions.place(psi=0.6999)


def test_the_greatest_psi_may_be_an_interval_of_its_own() -> None:
    # ceil(3 / psi) falls to 1 at psi = 3, where the range ends.
    table = winning_regions(
        [measured((0.85, 1, 1)), measured((0.9, 3, 1))], "fire", within=(1.5, 3)
    ).table
    assert table[["low", "high", "candidate"]].to_numpy().tolist() == [[1.5, 3, 0], [3, 3, 1]]
    assert table["closed_high"].tolist() == [False, True]
    assert table["share"].tolist() == [1.0, 0.0]


# --- ICE ---


@pytest.mark.parametrize(("n", "n_folds", "seed"), [(8, 1, 0), (40, 3, 1), (25, 5, 2)])
def test_the_regions_of_ice_are_those_of_the_scores(n: int, n_folds: int, seed: int) -> None:
    candidates = random_candidates(n, n_folds, seed)
    regions = winning_regions(candidates)
    table = regions.table.set_index("candidate")
    axis = np.exp(np.log(0.1) + np.log(100) * (np.arange(100) + 0.5) / 100)
    phi, rho = (side.ravel() for side in np.meshgrid(axis, axis))
    scores = ice_of(candidates, phi, rho)
    best = np.argmax(scores, axis=0)
    ends = {end: table[end].reindex(best).to_numpy() for end in table.columns[-4:]}
    # Nobody wins who is said to win nowhere, nor outside of what is said to be the extent.
    assert (ends["phi_low"] * (1 - 1e-5) <= phi).all()
    assert (phi <= ends["phi_high"] * (1 + 1e-5)).all()
    assert (ends["rho_low"] * (1 - 1e-5) <= rho).all()
    assert (rho <= ends["rho_high"] * (1 + 1e-5)).all()
    for at in range(0, len(phi), 37):
        place = regions.place(phi=phi[at], rho=rho[at])
        assert scores[place, at] >= scores[best[at], at] * (1 - 1e-11)
    wins = np.bincount(best, minlength=n) / len(best)
    assert table["share"].sum() == pytest.approx(1.0)
    # A raster is off by some of the pixels along the edges.
    assert np.abs(wins[table.index] - table["share"]).max() < 0.01
    assert table["share_error"].max() < 0.01
    for place, row in table.iterrows():
        assert place in best_of(candidates, "ice", phi=row["phi"], rho=row["rho"])
    everyone = [*table.index, *regions.nowhere["candidate"]]
    assert sorted(everyone) == list(range(n))


@pytest.mark.parametrize(("n", "n_folds", "seed"), [(20, 1, 3), (20, 4, 4)])
def test_what_is_proven_of_a_box_holds_in_it(n: int, n_folds: int, seed: int) -> None:
    candidates = random_candidates(n, n_folds, seed)
    places, _ = undominated(candidates, "ice", "volume")
    plane = IcePlane(candidates, "volume", places)
    low, high = np.log([[0.1, 0.1], [10, 10]])
    boxes = divide(
        plane, Boxes.one(low, high, len(places)), lambda several: several.area.sum() < 0.5
    )
    assert boxes.area.sum() == pytest.approx((high - low).prod())
    random = np.random.default_rng(seed)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    for box in random.permutation(len(boxes))[:250]:
        members = places[boxes.member[boxes.owner == box]]
        for within in [*corners, *random.uniform(size=(3, 2))]:
            phi, rho = np.exp(boxes.low[box] + within * boxes.width[box])
            assert best_of(candidates, "ice", phi=phi, rho=rho) & set(members.tolist())


def test_slopes_are_bounded() -> None:
    candidates = random_candidates(12, 4, 5)
    plane = IcePlane(candidates, "volume", np.arange(12))
    random = np.random.default_rng(0)
    low = random.uniform(-2.3, 2.0, size=(40, 2))
    width = random.uniform(0.001, 1.0, size=(40, 2))
    owner = np.repeat(np.arange(40), 12)
    member = np.tile(np.arange(12), 40)
    boxes = Boxes(low, width, owner, member, width)
    _, least, most = plane.bounds(boxes)
    for _ in range(20):
        point = low[owner] + random.uniform(size=(480, 2)) * width[owner]
        for axis in (0, 1):
            step = np.zeros(2)
            step[axis] = 1e-5
            slope = (
                plane.log_scores(point + step, member) - plane.log_scores(point - step, member)
            ) / 2e-5
            assert (slope >= least[:, axis] - 1e-6).all()
            assert (slope <= most[:, axis] + 1e-6).all()


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(["phi", "rho"]), st.data())
def test_intervals_are_where_a_dense_scan_changes_its_winner(
    seed: int, n_folds: int, name: str, data: Any
) -> None:
    candidates = random_candidates(12, n_folds, seed)
    regions = winning_regions(candidates, tolerance=0.5)
    value = data.draw(st.floats(0.1, 10))
    other = {"phi": "rho", "rho": "phi"}[name]
    table = regions.intervals(**{name: value})
    assert table["low"][0] == 0.1
    assert table["high"].iloc[-1] == 10
    assert (np.diff(table["candidate"]) != 0).all()
    assert table["share"].sum() == pytest.approx(1.0)
    points = np.exp(np.linspace(np.log(0.101), np.log(9.99), 2000))
    scores = ice_of(candidates, **{name: value, other: points})
    row = np.searchsorted(table["high"], points)
    chosen = scores[table["candidate"].to_numpy()[row], np.arange(2000)]
    near_edge = np.abs(np.log(points / table["high"].to_numpy()[:, None])).min(axis=0) < 1e-9
    assert (near_edge | (chosen >= scores.max(axis=0) * (1 - 1e-12))).all()
    # At an edge both neighbours are equally good, to the accuracy of the arithmetic.
    for (_, left), (_, right) in zip(
        table.iloc[:-1].iterrows(), table.iloc[1:].iterrows(), strict=True
    ):
        edge = left["high"]
        scores = candidates.scores("ice", **{name: value, other: edge}).mean(axis=1)
        first, second = scores[[left["candidate"], right["candidate"]]]
        assert first == pytest.approx(second, rel=1e-9)
        for side, winner in ((1 - 1e-8, left), (1 + 1e-8, right)):
            if winner["low"] < edge * side < winner["high"]:
                assert winner["candidate"] in best_of(
                    candidates, "ice", **{name: value, other: edge * side}
                )


def test_a_boundary_that_is_known_in_advance() -> None:
    # The second's completeness makes both equal at phi = 2, rho = 0.5.
    equal = (ice_performance(0.7, phi=2.0) * ice_readability(3, rho=0.5)) / (
        ice_performance(0.95, phi=2.0) * ice_readability(14, rho=0.5)
    )
    regions = winning_regions([measured((0.7, 3, 1)), measured((0.95, 14, equal))])
    by_rho, by_phi = regions.intervals(phi=2), regions.intervals(rho=0.5)
    assert by_rho["candidate"].tolist() == [1, 0]
    assert by_rho["high"][0] == pytest.approx(0.5, rel=1e-9)
    assert by_phi["candidate"].tolist() == [0, 1]
    assert by_phi["high"][0] == pytest.approx(2.0, rel=1e-9)


def test_two_candidates_can_change_places_twice() -> None:
    # A mean over folds is no single sigmoid: the even candidate is better while the sigmoid is
    # concave, the mixed one when it has become convex, and a lack of completeness moves both down.
    even, mixed = measured((0.6, 3, 0.995), (0.6, 3, 0.995)), measured((0.9, 3, 1), (0.3, 3, 1))
    table = winning_regions([even, mixed]).intervals(rho=1)
    assert table["candidate"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(("gain", "wins"), [(1e-6, True), (-1e-6, False)])
def test_a_region_of_a_millionth_is_found(gain: float, wins: bool) -> None:
    # Alike in performance, so that the boundaries are lines of one rho. The first and the last are
    # equal at rho = 1, where the middle one is better or worse by a millionth.
    first = ice_readability(10, rho=1) / ice_readability(2, rho=1)
    middle = (1 + gain) * ice_readability(10, rho=1) / ice_readability(6, rho=1)
    found = [measured((0.9, 2, first)), measured((0.9, 6, middle)), measured((0.9, 10, 1))]
    regions = winning_regions(found)
    assert (1 in regions.table["candidate"].tolist()) is wins
    if wins:
        row = regions.table.set_index("candidate").loc[1]
        assert 0 <= row["share"] <= row["share"] + row["share_error"] < 0.01
        assert row["rho_high"] / row["rho_low"] - 1 < 1e-4
        assert regions.intervals(phi=3)["candidate"].tolist() == [2, 1, 0]
    else:
        assert regions.nowhere["candidate"].tolist() == [1]
        assert regions.nowhere["reason"][0].startswith("bounds prove")
        assert regions.nowhere["beaten_by"].isna().all()


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_ties_go_to_fewer_rules_then_to_the_earlier(score: str) -> None:
    good = measured((0.9, 3, 1), (0.8, 4, 0.9))
    turned = measured((0.8, 4, 0.9), (0.9, 3, 1))
    worse = measured((0.8, 5, 0.9), (0.9, 4, 1))
    regions = winning_regions([worse, turned, good], score)
    assert set(regions.table["candidate"]) == {1}
    if score == "ice":
        assert regions.nowhere["candidate"].tolist() == [0, 2]
        assert regions.nowhere["beaten_by"].tolist() == [1, 1]
        assert regions.table["share"].tolist() == [1.0]
    else:
        assert regions.winner(psi=1.0) is regions.candidates[1]


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_candidates_that_differ_by_their_last_bits_are_alike(score: str) -> None:
    p = 0.7234567890123
    one = measured((p, 3, 0.9), (np.nextafter(p, 0), 3, 0.9))
    other = measured((np.nextafter(p, 0), 3, 0.9), (np.nextafter(p, 1), 3, 0.9))
    regions = winning_regions([one, other], score)
    assert regions.table["candidate"].tolist() == [0]
    if score == "ice":
        assert regions.table["share"].tolist() == [1.0]
        assert regions.nowhere["beaten_by"].tolist() == [0]


def test_a_perfect_candidate_with_more_rules_ties_at_a_loss_of_nothing() -> None:
    found = [measured((1.0, 5, 1)), measured((1.0, 3, 1)), measured((0.99, 1, 1))]
    assert winning_regions(found, "fire").table["candidate"].tolist() == [1]


def test_scores_of_nothing_at_all() -> None:
    nothing = [measured((0.9, 5, 0.0)), measured((-math.inf, 3, 1.0)), measured((0.5, 4, 0.0))]
    regions = winning_regions(nothing)
    assert regions.table["candidate"].tolist() == [1]  # the fewest rules of three zeros
    regions = winning_regions([*nothing, measured((-1e6, 9, 0.5))])
    assert regions.table["candidate"].tolist() == [3]
    mixed = [measured((-math.inf, 3, 1.0), (0.9, 3, 1.0)), measured((0.5, 3, 0.9), (0.5, 3, 0.9))]
    regions = winning_regions(mixed)
    for phi in (0.1, 1, 3, 10):
        assert regions.place(phi=phi, rho=1) in best_of(Candidates(mixed), "ice", phi=phi, rho=1)


def test_completeness_by_rows() -> None:
    found = [measured((0.9, 4, 0.2)), measured((0.8, 4, 0.9))]
    assert winning_regions(found).place(phi=1, rho=1) == 1
    assert winning_regions(found, completeness="instances").place(phi=1, rho=1) == 0


def test_ranges_of_each_weight() -> None:
    found = random_candidates(10, 2, 7)
    regions = winning_regions(found, within={"phi": (1, 3)})
    assert regions.within == {"phi": (1.0, 3.0), "rho": (0.1, 10.0)}
    assert regions.table["phi_low"].min() == pytest.approx(1)
    assert regions.table["phi_high"].max() == pytest.approx(3)
    assert regions.table["rho_high"].max() == pytest.approx(10)
    assert repr(regions).endswith("of 10 candidates win, phi 1 to 3, rho 0.1 to 10>")


class Search:
    candidates_ = Candidates([measured((0.9, 3, 1))])


def test_a_search_has_candidates() -> None:
    assert winning_regions(Search()).winner(phi=1, rho=1) is Search.candidates_[0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"candidates": []}, ValueError, "at least one candidate"),
        ({"candidates": [measured()]}, ValueError, "measured on a fold"),
        ({"candidates": 3}, TypeError, "candidates must be Candidates.* got 3"),
        ({"score": "q"}, ValueError, "got 'q'. Q has no weights"),
        ({"score": "ic"}, ValueError, "score must be one of .* got 'ic'"),
        ({"completeness": "all"}, ValueError, "completeness must be one of .* got 'all'"),
        ({"within": (2, 1)}, ValueError, r"low < high, got \(2, 1\)"),
        ({"within": (0, 1)}, ValueError, "within must be > 0"),
        ({"within": 3}, ValueError, r"pair \(low, high\), got 3"),
        ({"within": {"psi": (1, 2)}}, ValueError, "phi, rho"),
        ({"tolerance": 0}, ValueError, "tolerance must be > 0"),
        ({"candidates": [measured((math.nan, 3, 1))]}, ValueError, "performance must be"),
        ({"candidates": [measured((0.9, 0, 1))]}, ValueError, "n_rules must be > 0"),
    ],
)
def test_what_is_refused(change: dict[str, Any], error: type[Exception], text: str) -> None:
    arguments = {"candidates": [measured((0.9, 3, 1))]} | change
    with pytest.raises(error, match=text):
        winning_regions(**arguments)


def test_weights_that_are_refused() -> None:
    ice, fire = (winning_regions([measured((0.9, 3, 1))], score) for score in ("ice", "fire"))
    with pytest.raises(TypeError, match=r"phi and rho, got \{'psi': 1\}"):
        ice.winner(psi=1)
    with pytest.raises(TypeError, match=r"phi and rho, got \{'phi': 1\}"):
        ice.winner(phi=1)
    with pytest.raises(ValueError, match="rho must be > 0"):
        ice.winner(phi=1, rho=0)
    with pytest.raises(TypeError, match="psi must be one number"):
        fire.winner(psi=[1, 2])
    with pytest.raises(TypeError, match="either phi or rho"):
        ice.intervals(phi=1, rho=2)
    with pytest.raises(TypeError, match="rows of `table`"):
        fire.intervals(psi=1)


# --- plots ---


def test_the_plane_is_drawn_as_it_is() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    candidates = random_candidates(15, 2, 8)
    regions = winning_regions(candidates)
    ax = regions.plot()
    image = np.asarray(ax.collections[0].get_array()).reshape(500, 500)
    winners = regions.table["candidate"].tolist()
    axis = np.exp(np.linspace(np.log(0.1), np.log(10), 500))
    for row, column in np.random.default_rng(0).integers(0, 500, size=(60, 2)):
        place = winners[int(image[row, column])]
        assert place in best_of(candidates, "ice", phi=axis[column], rho=axis[row])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == len(winners)
    assert texts[0].startswith(f"{winners[0]}: cart, ")
    assert ax.get_xlabel().startswith("phi")
    matplotlib.pyplot.close(ax.figure)


def test_the_strip_is_drawn_on_the_axes_given() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    regions = winning_regions(
        [measured((0.75, 1, 1)), measured((0.9, 3, 1), name="gridex")], "fire", within=(0.7, 10)
    )
    figure, ax = pyplot.subplots()
    assert regions.plot(ax) is ax
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    table = regions.table[["low", "high"]].to_numpy()
    np.testing.assert_allclose(spans, table)
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert colours[0] == colours[2] != colours[1] == colours[3]
    assert [t.get_text() for t in ax.get_legend().get_texts()][1].startswith("1: gridex, 3 rules")
    pyplot.close(figure)
