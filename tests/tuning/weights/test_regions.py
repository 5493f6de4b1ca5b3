"""Winners by weights, compared with scores at very many weights."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measures import fold_measures

from skescore.metrics import ice_performance, ice_readability, ice_score
from skescore.tuning import Candidate, Candidates, winning_regions


def measured(*folds: tuple[float, float, float], place: int = 0, name: str = "cart") -> Candidate:
    """Return a candidate with performance, size and completeness on each fold."""
    return Candidate.from_measures(
        name,
        {},
        place,
        tuple(fold_measures(p, r, completeness_volume=c) for p, r, c in folds),
    )


def random_candidates(n: int, n_folds: int, seed: int) -> Candidates:
    random = np.random.default_rng(seed)
    results = []
    for index in range(n):
        r = int(random.integers(1, 30))
        best = 1 - 0.6 * math.exp(-r / 6) * random.uniform(0.5, 1.3)
        results.append(
            measured(
                *(
                    (
                        min(1.0, best + random.normal(0, 0.03)),
                        max(1, r + int(random.integers(-1, 2))),
                        float(np.clip(random.normal(0.9, 0.1) + r / 100, 0, 1)),
                    )
                    for _ in range(n_folds)
                ),
                place=index,
            )
        )
    return Candidates(results)


def best_of(candidates: Candidates, score: str, **weights: float) -> set[int]:
    """Return indices of the best candidates, up to noise, from the scores themselves."""
    sign = 1 if score == "ice" else -1
    scores = sign * candidates.scores(score, **weights).mean(axis=1)
    return set(np.flatnonzero(scores >= scores.max() - 1e-10 * abs(scores.max())).tolist())


def ice_of(candidates: Candidates, phi: Any, rho: Any) -> np.ndarray:
    """Return scores of all candidates (rows) with many weights."""
    parts = (candidates.measure(n) for n in ("performance", "size", "completeness_volume"))
    return ice_score(*(part[..., None] for part in parts), phi=phi, rho=rho).mean(axis=1)


# --- FiRe ---


def test_fire_regions_match_manual_results() -> None:
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
    results = [
        measured(*((p, r, 1.0) for p, r in draw(folds)), place=i)
        for i in range(draw(st.integers(1, 6)))
    ]
    # Breakpoints themselves, where the winner changes, and anything else.
    breakpoints = st.builds(Fraction, st.integers(1, 12), st.integers(1, 40))
    psi = draw(breakpoints | st.fractions(Fraction(1, 4), 20, max_denominator=500))
    return Candidates(results), min(max(psi, Fraction(1, 4)), Fraction(20))


@settings(max_examples=60)
@given(fire_cases())
def test_fire_table_matches_exact_arithmetic(
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
    assert regions.winner_index(psi=value) == expected
    # Neighboring rows differ, and together they are the range.
    assert (np.diff(table["candidate"]) != 0).all()
    assert table["low"].tolist() == [0.25, *table["high"][:-1]]
    assert table["high"].iloc[-1] == 20
    assert sorted([*set(table["candidate"]), *regions.nowhere["candidate"]]) == list(
        range(len(candidates))
    )


def test_fire_breakpoints_ignore_float_noise() -> None:
    # 21 / 0.7 is 30.000000000000004 in floats. 0.1 * 30 * 21**0.05 < 0.095 * 32 * 22**0.05 < 31 ...
    results = [measured((0.9, 21, 1)), measured((0.905, 22, 1))]
    regions = winning_regions(results, "fire", within=(0.69, 0.72))
    assert 0.7 in regions.table["low"].tolist()
    row = regions.table[regions.table["low"] == 0.7].iloc[0]
    assert regions.winner_index(psi=0.7) == row["candidate"] != regions.winner_index(psi=0.6999)


def test_fire_region_may_be_a_single_point() -> None:
    # ceil(3 / psi) falls to 1 at psi = 3, where the range ends.
    table = winning_regions(
        [measured((0.85, 1, 1)), measured((0.9, 3, 1))], "fire", within=(1.5, 3)
    ).table
    assert table[["low", "high", "candidate"]].to_numpy().tolist() == [[1.5, 3, 0], [3, 3, 1]]
    assert table["closed_high"].tolist() == [False, True]
    assert table["share"].tolist() == [1.0, 0.0]


# --- ICE ---


@pytest.mark.parametrize(("n", "n_folds", "seed"), [(8, 1, 0), (40, 3, 1), (25, 5, 2)])
def test_ice_grid_matches_scores(n: int, n_folds: int, seed: int) -> None:
    candidates = random_candidates(n, n_folds, seed)
    regions = winning_regions(candidates, resolution=100)
    table = regions.table.set_index("candidate")
    axis = np.exp(np.log(0.1) + np.log(100) * (np.arange(100) + 0.5) / 100)
    phi, rho = np.meshgrid(axis, axis, indexing="ij")
    scores = ice_of(candidates, phi.ravel(), rho.ravel()).reshape(n, 100, 100)
    assert np.take_along_axis(scores, regions.grid[None], 0)[0] == pytest.approx(scores.max(0))
    for row, column in np.random.default_rng(seed).integers(0, 100, size=(40, 2)):
        index = regions.winner_index(phi=phi[row, column], rho=rho[row, column])
        assert index == regions.grid[row, column]
    for name in ("phi", "rho"):
        assert regions.edges[name] == pytest.approx(np.geomspace(0.1, 10, 101))
    assert table["share"].sum() == pytest.approx(1.0)
    for index, row in table.iterrows():
        own = regions.grid == index
        assert row["share"] == own.mean()
        for name, weight in (("phi", phi), ("rho", rho)):
            ratio = 100 ** (1 / 200)
            assert row[f"{name}_low"] * ratio == pytest.approx(weight[own].min())
            assert row[f"{name}_high"] / ratio == pytest.approx(weight[own].max())
        assert index in best_of(candidates, "ice", phi=row["phi"], rho=row["rho"])
    everyone = [*table.index, *regions.nowhere["candidate"]]
    assert sorted(everyone) == list(range(n))


@pytest.mark.parametrize(("n", "n_folds", "seed"), [(20, 3, 1), (60, 5, 4)])
def test_ice_shares_are_accurate_to_a_thousandth(n: int, n_folds: int, seed: int) -> None:
    candidates = random_candidates(n, n_folds, seed)
    coarse, fine = (
        winning_regions(candidates, resolution=resolution).table.set_index("candidate")["share"]
        for resolution in (200, 450)
    )
    assert coarse.reindex(fine.index, fill_value=0.0).to_numpy() == pytest.approx(
        fine.to_numpy(), abs=1.5e-3
    )


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(["phi", "rho"]), st.data())
def test_intervals_match_a_dense_scan(seed: int, n_folds: int, name: str, data: Any) -> None:
    candidates = random_candidates(12, n_folds, seed)
    regions = winning_regions(candidates)
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
    # At an edge both neighbors are equally good, to the accuracy of the arithmetic.
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


def test_intervals_end_at_known_boundary() -> None:
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


def test_intervals_can_alternate() -> None:
    # A mean over folds is no single sigmoid: the even candidate is better while the sigmoid is
    # concave, the mixed one when it has become convex, and a lack of completeness moves both down.
    even, mixed = measured((0.6, 3, 0.995), (0.6, 3, 0.995)), measured((0.9, 3, 1), (0.3, 3, 1))
    table = winning_regions([even, mixed]).intervals(rho=1)
    assert table["candidate"].tolist() == [1, 0, 1]


@pytest.mark.parametrize(("gain", "wins"), [(1e-6, True), (-1e-6, False)])
def test_intervals_are_finer_than_the_grid(gain: float, wins: bool) -> None:
    # Equal in performance, so that the boundaries are lines of one rho. The first and the last are
    # equal at rho = 1, where the middle one is better or worse by a millionth.
    first = ice_readability(10, rho=1) / ice_readability(2, rho=1)
    middle = (1 + gain) * ice_readability(10, rho=1) / ice_readability(6, rho=1)
    results = [measured((0.9, 2, first)), measured((0.9, 6, middle)), measured((0.9, 10, 1))]
    regions = winning_regions(results)
    assert regions.nowhere["candidate"].tolist() == [1]
    assert regions.nowhere["reason"][0].endswith("at every point of the grid")
    assert regions.nowhere["beaten_by"].isna().all()
    assert regions.intervals(phi=3)["candidate"].tolist() == ([2, 1, 0] if wins else [2, 0])


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_ties_prefer_fewer_rules(score: str) -> None:
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
def test_candidates_tie_up_to_float_noise(score: str) -> None:
    p = 0.7234567890123
    one = measured((p, 3, 0.9), (np.nextafter(p, 0), 3, 0.9))
    other = measured((np.nextafter(p, 0), 3, 0.9), (np.nextafter(p, 1), 3, 0.9))
    regions = winning_regions([one, other], score)
    assert regions.table["candidate"].tolist() == [0]
    if score == "ice":
        assert regions.table["share"].tolist() == [1.0]
        assert regions.nowhere["beaten_by"].tolist() == [0]


def test_perfect_candidates_tie_at_zero_loss() -> None:
    results = [measured((1.0, 5, 1)), measured((1.0, 3, 1)), measured((0.99, 1, 1))]
    assert winning_regions(results, "fire").table["candidate"].tolist() == [1]


def test_winning_regions_accept_zero_scores() -> None:
    nothing = [measured((0.9, 5, 0.0)), measured((-math.inf, 3, 1.0)), measured((0.5, 4, 0.0))]
    regions = winning_regions(nothing)
    assert regions.table["candidate"].tolist() == [1]  # the fewest rules of three zeros
    regions = winning_regions([*nothing, measured((-1e6, 9, 0.5))])
    assert regions.table["candidate"].tolist() == [3]
    mixed = [measured((-math.inf, 3, 1.0), (0.9, 3, 1.0)), measured((0.5, 3, 0.9), (0.5, 3, 0.9))]
    regions = winning_regions(mixed)
    for phi in (0.1, 1, 3, 10):
        assert regions.winner_index(phi=phi, rho=1) in best_of(
            Candidates(mixed), "ice", phi=phi, rho=1
        )


def test_winning_regions_use_completeness_by_rows() -> None:
    results = [measured((0.9, 4, 0.2)), measured((0.8, 4, 0.9))]
    assert winning_regions(results).winner_index(phi=1, rho=1) == 1
    assert winning_regions(results, completeness="instances").winner_index(phi=1, rho=1) == 0


def test_winning_regions_limit_weights() -> None:
    candidates = random_candidates(10, 2, 7)
    regions = winning_regions(candidates, within={"phi": (1, 3)})
    assert regions.within == {"phi": (1.0, 3.0), "rho": (0.1, 10.0)}
    assert regions.table["phi_low"].min() == pytest.approx(1)
    assert regions.table["phi_high"].max() == pytest.approx(3)
    assert regions.table["rho_high"].max() == pytest.approx(10)
    assert repr(regions).endswith("of 10 candidates win, phi 1 to 3, rho 0.1 to 10>")


class Search:
    candidates_ = Candidates([measured((0.9, 3, 1))])


def test_winning_regions_accept_a_search() -> None:
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
        ({"resolution": 1}, ValueError, "resolution must be a whole number of at least 2 .* got 1"),
        ({"candidates": [measured((math.nan, 3, 1))]}, ValueError, "performance must be"),
        ({"candidates": [measured((0.9, 0, 1))]}, ValueError, "n_rules must be > 0"),
    ],
)
def test_winning_regions_rejects_invalid_parameters(
    change: dict[str, Any], error: type[Exception], text: str
) -> None:
    arguments = {"candidates": [measured((0.9, 3, 1))]} | change
    with pytest.raises(error, match=text):
        winning_regions(**arguments)


def test_winner_rejects_invalid_weights() -> None:
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
