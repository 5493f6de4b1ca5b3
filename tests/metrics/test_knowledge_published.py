"""The published figures of FiRe, Q_s and ICE.

FiRe: F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
ICE: F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.

The tables print inputs and scores rounded. A printed score is right if it can be reached from
inputs that round to the printed ones; all scores are monotone in every input, so that the bounds
of the inputs suffice. A row is right if one and the same inputs reach all its scores.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skescore.metrics import fire_score, ice_score, q_score


def spread(text: str) -> tuple[float, float]:
    """Return the smallest and the largest number that is printed as `text`."""
    printed = Decimal(text)
    half = Decimal(1).scaleb(printed.as_tuple().exponent) / 2
    return float(printed - half), float(printed + half)


def admits(text: str, values) -> np.ndarray:
    """Return whether each value could be printed as `text`, with a tolerance for rounding."""
    low, high = spread(text)
    return (np.asarray(values) >= low - 1e-12) & (np.asarray(values) <= high + 1e-12)


def overlaps(text: str, values) -> bool:
    """Return whether some number between the extreme values is printed as `text`."""
    low, high = spread(text)
    return min(values) <= high + 1e-12 and max(values) >= low - 1e-12


# --- FiRe, Table 1 ---------------------------------------------------------------------------

# extractor, accuracy, rules, scores for psi = 1, 2, 3
FIRE_TABLE = [
    ("CART", "0.95", 3, ("0.17", "0.11", "0.06")),
    ("ITER", "0.89", 3, ("0.36", "0.24", "0.12")),
    ("clustering, 4 features", "0.93", 3, ("0.22", "0.14", "0.07")),
    ("clustering, 2 features", "0.91", 3, ("0.27", "0.18", "0.09")),
    ("GridEx, 8 slices", "0.94", 3, ("0.18", "0.12", "0.06")),
    ("GridEx, 2 slices twice", "0.81", 4, ("0.80", "0.40", "0.40")),
    ("GridEx, 4 x 4 slices", "0.97", 8, ("0.26", "0.13", "0.11")),
]
PSI = (1, 2, 3)


@pytest.mark.parametrize(
    ("accuracy", "n_rules", "psi", "printed"),
    [
        pytest.param(accuracy, n_rules, psi, printed, id=f"{name}, psi={psi}")
        for name, accuracy, n_rules, scores in FIRE_TABLE
        for psi, printed in zip(PSI, scores, strict=True)
    ],
)
def test_fire_table_contains_reachable_scores(accuracy, n_rules, psi, printed):
    reachable = [fire_score(1 - bound, n_rules, psi=psi) for bound in spread(accuracy)]
    assert overlaps(printed, reachable)


def shared_loss(accuracy: str, n_rules: int, scores: tuple[str, ...], psis=PSI) -> np.ndarray:
    """Return losses that round to the printed accuracy and reach all printed scores."""
    low, high = spread(accuracy)
    losses = 1 - np.linspace(low, high, 10_001)
    fits = [
        admits(printed, fire_score(losses, n_rules, psi=psi))
        for psi, printed in zip(psis, scores, strict=True)
    ]
    return losses[np.all(fits, axis=0)]


@pytest.mark.parametrize(
    ("accuracy", "n_rules", "scores"),
    [pytest.param(*row[1:], id=row[0]) for row in FIRE_TABLE[:-1]],
)
def test_fire_table_one_loss_explains_the_row(accuracy, n_rules, scores):
    assert shared_loss(accuracy, n_rules, scores).size > 0


def test_fire_table_last_row_contradicts_formula_at_psi_3():
    """The only row whose three scores no loss can reach together.

    8 rules are ceil(8/3) = 3 steps at psi = 3 and 8 steps at psi = 1, so the formula wants scores
    in the ratio 8 : 3. Printed are 0.26 and 0.11, a ratio of at most 0.265 / 0.105 = 2.53. The
    printed loss gives 0.0999, and the losses that the other two columns allow (0.0287 to 0.0299)
    give 0.0957 to 0.0994, printed 0.10. The 0.11 of the table needs a loss of at least 0.0315. It
    is no other rounding up either: four steps would print 0.13, no rounding (8/3) at most 0.09.
    """
    _, accuracy, n_rules, scores = FIRE_TABLE[-1]
    assert fire_score(0.03, n_rules, psi=3) == pytest.approx(0.0999, abs=5e-5)
    assert shared_loss(accuracy, n_rules, scores).size == 0

    losses = shared_loss(accuracy, n_rules, scores[:2], PSI[:2])
    assert losses.min() == pytest.approx(0.0287, abs=5e-5)
    assert losses.max() == pytest.approx(0.0299, abs=5e-5)
    assert admits("0.10", fire_score(losses, n_rules, psi=3)).all()
    assert not admits(scores[2], fire_score(losses, n_rules, psi=3)).any()


def test_fire_table_supports_reading_of_authors():
    """In the text under Table 1, 8 rules of GridEx beat one, both or none of the clusterings."""
    exact = {name: (1 - float(accuracy), rules) for name, accuracy, rules, _ in FIRE_TABLE}
    grid = exact["GridEx, 4 x 4 slices"]
    clusterings = [exact["clustering, 4 features"], exact["clustering, 2 features"]]
    for psi, beaten in [(1, 1), (2, 2), (3, 0)]:
        score = fire_score(*grid, psi=psi)
        assert sum(score < fire_score(*other, psi=psi) for other in clusterings) == beaten
    for psi in PSI:
        cart = fire_score(*exact["CART"], psi=psi)
        assert all(cart <= fire_score(*other, psi=psi) for other in exact.values())


# --- FiRe, figures in the text ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "n_rules", "psi", "printed"),
    [
        (40.0, 1, 1, "40.0"),
        (5.0, 4, 1, "21.4"),
        (12.0, 6, 1, "78.7"),
        (1.0, 4, 2, "2.14"),
        (1.0, 4, 6, "1.07"),
        (1.5, 1, 2, "1.5"),
        (1.5, 1, 6, "1.5"),
    ],
)
def test_fire_score_equals_worked_figures(loss, n_rules, psi, printed):
    assert admits(printed, fire_score(loss, n_rules, psi=psi))


@pytest.mark.parametrize(("n_rules", "printed"), [(2, "19.3"), (4, "9.3"), (6, "6.1"), (8, "4.5")])
def test_fire_score_equals_isoline_of_40(n_rules, printed):
    assert admits(printed, 40.0 / fire_score(1.0, n_rules))
    assert overlaps("40.0", [fire_score(loss, n_rules) for loss in spread(printed)])


def test_fire_score_agrees_with_comparisons_for_psi_2_and_6():
    """For the green cross the text states psi = 1, but its own inequality implies psi = 6."""
    blue = {psi: fire_score(1.0, 4, psi=psi) for psi in (2, 6)}
    # The orange point is said to lie on both isolines; 0.5 is the loss rounded to one decimal.
    for psi in blue:
        low, high = (fire_score(loss, 8, psi=psi) for loss in spread("0.5"))
        assert low <= blue[psi] <= high
    # Fuchsia is better and purple is worse for both psi; the order of green and red changes.
    assert all(fire_score(0.5, 2, psi=psi) < blue[psi] for psi in blue)
    assert all(fire_score(2.0, 3, psi=psi) > blue[psi] for psi in blue)
    assert fire_score(1.5, 1, psi=2) < blue[2]
    assert fire_score(1.5, 1, psi=6) > blue[6]
    assert fire_score(0.8, 5, psi=2) > blue[2]
    assert fire_score(0.8, 5, psi=6) < blue[6]


# --- ICE, Table 1 ----------------------------------------------------------------------------

# The trees (ExACT, CREAM, CART) are complete by construction, as the paper says: "1" is exact.
ICE_INPUTS = {
    # data set, extractor: F1, rules, completeness
    ("Wine", "ExACT"): ("0.80", 3, "1"),
    ("Wine", "CREAM"): ("0.95", 4, "1"),
    ("Wine", "ITER"): ("0.92", 9, "0.75"),
    ("Wine", "GridEx"): ("0.73", 5, "1.00"),
    ("Wine", "CART"): ("0.89", 3, "1"),
    ("WBC", "ExACT"): ("0.82", 3, "1"),
    ("WBC", "CREAM"): ("0.94", 2, "1"),
    ("WBC", "ITER"): ("0.89", 5, "0.76"),
    ("WBC", "GridEx"): ("0.92", 3, "1.00"),
    ("WBC", "CART"): ("0.94", 3, "1"),
}
ICE_MEASURES = {
    "Q_s": lambda f1, r, c: q_score(1 - f1, r, c),
    "FiRe, psi=1": lambda f1, r, c: fire_score(1 - f1 + 0 * c, r),
    "FiRe, psi=3": lambda f1, r, c: fire_score(1 - f1 + 0 * c, r, psi=3),
    "ICE, phi=1, rho=1": lambda f1, r, c: ice_score(f1, r, c),
    "ICE, phi=3, rho=1": lambda f1, r, c: ice_score(f1, r, c, phi=3),
    "ICE, phi=1, rho=3": lambda f1, r, c: ice_score(f1, r, c, rho=3),
}
ICE_TABLE = {
    "Q_s": "0.608 0.203 0.926 1.340 0.338 0.536 0.118 0.672 0.246 0.178",
    "FiRe, psi=1": "0.643 0.217 0.829 1.452 0.357 0.566 0.122 0.590 0.260 0.188",
    "FiRe, psi=3": "0.214 0.109 0.276 0.581 0.119 0.189 0.061 0.236 0.087 0.063",
    "ICE, phi=1, rho=1": "0.966 0.970 0.678 0.946 0.972 0.968 0.979 0.733 0.974 0.975",
    "ICE, phi=3, rho=1": "0.862 0.964 0.669 0.706 0.949 0.896 0.972 0.717 0.962 0.968",
    "ICE, phi=1, rho=3": "0.892 0.795 0.032 0.607 0.898 0.894 0.952 0.470 0.900 0.901",
}
ICE_SCORES = {
    (measure, *key): score
    for measure, row in ICE_TABLE.items()
    for key, score in zip(ICE_INPUTS, row.split(), strict=True)
}


def completeness_spread(text: str) -> tuple[float, float]:
    if text == "1":
        return 1.0, 1.0
    low, high = spread(text)
    return low, min(high, 1.0)


def test_ice_table_has_60_scores():
    assert len(ICE_SCORES) == 60


@pytest.mark.parametrize(("measure", "data", "extractor"), list(ICE_SCORES))
def test_ice_table_contains_reachable_scores(measure, data, extractor):
    f1, n_rules, completeness = ICE_INPUTS[data, extractor]
    corners = product(spread(f1), completeness_spread(completeness))
    reachable = [ICE_MEASURES[measure](p, n_rules, c) for p, c in corners]
    assert overlaps(ICE_SCORES[measure, data, extractor], reachable)


@pytest.mark.parametrize(("data", "extractor"), list(ICE_INPUTS))
def test_ice_table_one_input_explains_all_six_scores(data, extractor):
    f1, n_rules, completeness = ICE_INPUTS[data, extractor]
    p = np.linspace(*spread(f1), 4_001)[:, np.newaxis]
    c = np.linspace(*completeness_spread(completeness), 101)[np.newaxis, :]
    fits = [
        admits(ICE_SCORES[name, data, extractor], measure(p, n_rules, c))
        for name, measure in ICE_MEASURES.items()
    ]
    assert np.all(fits, axis=0).any()


# --- ICE, section 3.5: four rules of accuracy 0.95 against one of accuracy 0.75 ----------------


def test_q_score_prefers_four_rules():
    assert q_score(0.05, 4, 1.0) < q_score(0.25, 1, 1.0)


@given(st.floats(1e-6, 1e6))
@example(1.0)
@example(4.0)
@example(0.99)
def test_fire_score_prefers_four_rules_for_every_psi(psi):
    assert fire_score(0.05, 4, psi=psi) < fire_score(0.25, 1, psi=psi)


def test_ice_score_can_prefer_either():
    assert ice_score(0.95, 4, 1.0, phi=0.5, rho=2.0) < ice_score(0.75, 1, 1.0, phi=0.5, rho=2.0)
    assert ice_score(0.95, 4, 1.0, phi=2.0, rho=0.5) > ice_score(0.75, 1, 1.0, phi=2.0, rho=0.5)
