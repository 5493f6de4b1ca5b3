"""Factors by which weights may change before another candidate wins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from measures import fold_measures

from skescore.tuning import Candidate, Candidates, weight_stability


def random_candidates(n: int, n_folds: int, seed: int) -> Candidates:
    random = np.random.default_rng(seed)
    results = []
    for index in range(n):
        r = int(random.integers(1, 30))
        folds = []
        for _ in range(n_folds):
            size = max(1, r + int(random.integers(-1, 2)))
            loss = float(min(1.0, 0.6 / r * random.uniform(0.7, 1.4)))
            share = float(random.uniform(0.8, 1.0))
            losses = {"loss": loss, "loss_q": loss}
            folds.append(fold_measures(1 - loss, size, completeness_volume=share, **losses))
        results.append(Candidate.from_measures("cart", {}, index, tuple(folds)))
    return Candidates(results)


def winner_of(candidates: Candidates, score: str, **weights: float) -> int:
    means = candidates.scores(score, **weights).mean(axis=1)
    return int(np.argmax(means if score == "ice" else -means))


CASES = [
    (n_folds, seed, *weights)
    for n_folds, seed in ((1, 0), (3, 1), (5, 2))
    for weights in ((1.0, 1.0), (3.0, 0.4))
]


@pytest.mark.parametrize(("n_folds", "seed", "phi", "rho"), CASES)
def test_ice_winner_changes_at_the_factors(n_folds: int, seed: int, phi: float, rho: float) -> None:
    candidates = random_candidates(12, n_folds, seed)
    stability_result = weight_stability(candidates, phi=phi, rho=rho, reach=30)
    weights = {"phi": phi, "rho": rho}
    assert stability_result.index == winner_of(candidates, "ice", **weights)
    assert stability_result.winner is candidates[stability_result.index]
    assert stability_result.table[["weight", "direction"]].to_numpy().tolist() == [
        ["phi", "down"],
        ["phi", "up"],
        ["rho", "down"],
        ["rho", "up"],
    ]
    for row in stability_result.table.to_dict("records"):
        sign = 1 if row["direction"] == "up" else -1
        limit = min(math.log(row["factor"]), math.log(30))
        for share in np.linspace(0, 1 - 1e-8, 60):
            moved = weights[row["weight"]] * math.exp(sign * limit * share)
            assert (
                winner_of(candidates, "ice", **weights | {row["weight"]: moved})
                == stability_result.index
            )
        if math.isinf(row["factor"]):
            assert row["extractor"] is None or row["extractor"] != row["extractor"]
            continue
        assert row["value"] == pytest.approx(weights[row["weight"]] * row["factor"] ** sign)
        moved = weights[row["weight"]] * math.exp(sign * limit * (1 + 1e-8) + sign * 1e-9)
        assert winner_of(candidates, "ice", **weights | {row["weight"]: moved}) == row["candidate"]


@pytest.mark.parametrize(("n_folds", "seed", "phi", "rho"), CASES)
def test_nearest_change_is_minimal(n_folds: int, seed: int, phi: float, rho: float) -> None:
    candidates = random_candidates(12, n_folds, seed)
    stability_result = weight_stability(candidates, phi=phi, rho=rho, reach=30)
    center, distance = np.log([phi, rho]), stability_result.nearest["distance"]
    there = np.log(
        [stability_result.nearest["weights"]["phi"], stability_result.nearest["weights"]["rho"]]
    )
    assert np.hypot(*(there - center)) == pytest.approx(distance)
    # It is never farther than a change of one weight, and often nearer.
    assert distance <= math.log(stability_result.table["factor"].min()) + 1e-7
    beyond = np.exp(center + (there - center) * (1 + 1e-6))
    assert (
        winner_of(candidates, "ice", phi=beyond[0], rho=beyond[1])
        == stability_result.nearest["candidate"]
    )
    for angle in np.linspace(0, 2 * math.pi, 180):
        for part in (0.5, 1 - 1e-6):
            inside = np.exp(center + distance * part * np.array([math.cos(angle), math.sin(angle)]))
            assert (
                winner_of(candidates, "ice", phi=inside[0], rho=inside[1]) == stability_result.index
            )


def test_psi_matches_manual_results() -> None:
    # 0.25 ceil(1 / psi) against 0.1 ceil(3 / psi) 3**0.05: the first wins for 1 <= psi < 1.5.
    def candidate(place: int, loss: float, size: int) -> Candidate:
        fold = {"loss": loss, "size": size, "n_rules": size, "completeness_volume": 1.0}
        return Candidate.from_measures("cart", {}, place, (fold,))

    stability_result = weight_stability(
        [candidate(0, 0.25, 1), candidate(1, 0.1, 3)], "fire", psi=1.2
    )
    assert stability_result.index == 0
    assert stability_result.table["value"].tolist() == [1.0, 1.5]
    assert stability_result.table["factor"].tolist() == pytest.approx([1.2, 1.25])
    assert stability_result.table["candidate"].tolist() == [1, 1]
    assert stability_result.nearest == {
        "distance": pytest.approx(math.log(1.2)),
        "weights": {"psi": 1.0},
        "candidate": 1,
    }
    at_the_edge = weight_stability([candidate(0, 0.25, 1), candidate(1, 0.1, 3)], "fire")
    assert at_the_edge.index == 0
    assert at_the_edge.table["factor"].tolist() == [1.0, 1.5]


@pytest.mark.parametrize("psi", [0.7, 1.0, 2.0, 3.3])
def test_psi_matches_a_dense_scan(psi: float) -> None:
    candidates = random_candidates(15, 3, 6)
    stability_result = weight_stability(candidates, "fire", psi=psi, reach=20)
    assert stability_result.index == winner_of(candidates, "fire", psi=psi)
    for row in stability_result.table.to_dict("records"):
        if math.isinf(row["factor"]):
            row["value"] = psi * 20 if row["direction"] == "up" else psi / 20
        else:
            step = 1 + 1e-9 if row["direction"] == "up" else 1 - 1e-9
            index = winner_of(candidates, "fire", psi=row["value"] * step)
            assert index == row["candidate"]
        for moved in np.geomspace(psi, row["value"], 300)[:-1]:
            assert winner_of(candidates, "fire", psi=moved) == stability_result.index


@pytest.mark.parametrize("score", ["ice", "fire"])
def test_single_candidate_is_stable(score: str) -> None:
    candidates = random_candidates(1, 2, 0)
    stability_result = weight_stability(candidates, score)
    assert np.isinf(stability_result.table["factor"]).all()
    assert stability_result.table["candidate"].isna().all()
    assert stability_result.nearest == {"distance": math.inf, "weights": None, "candidate": None}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"phi": 0}, ValueError, "phi must be > 0"),
        ({"rho": "1"}, TypeError, "rho must be a number"),
        ({"reach": 1}, ValueError, "reach must be a factor > 1, got 1"),
        ({"score": "q"}, ValueError, "Q has no weights"),
        ({"candidates": []}, ValueError, "at least one"),
    ],
)
def test_weight_stability_rejects_invalid_parameters(
    change: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        weight_stability(**{"candidates": random_candidates(2, 1, 0)} | change)
