"""What the papers print of FiRe and ICE, and which of it follows from their own formulas.

Tables print what goes into a score and the score itself rounded. A printed score follows if some
input that rounds to the printed one gives it; a row follows if one and the same input gives all of
its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import product
from typing import NamedTuple

import numpy as np

from skescore.metrics import fire_score, ice_score, q_score

#: The values of psi of FiRe's Table 1, in the order of its columns.
PSI = (1, 2, 3)
#: Float noise only: far below half a unit of the last printed digit.
_SLACK = 1e-12
#: So many values between two printed ones are tried for performance and for completeness.
_STEPS_PERFORMANCE, _STEPS_COMPLETENESS = 4_001, 101


class PrintedFiRe(NamedTuple):
    """A row of FiRe's Table 1, as printed."""

    accuracy: str
    n_rules: int
    fire: tuple[str, str, str]


class PrintedICE(NamedTuple):
    """A column of ICE's Table 1, as printed."""

    f1: str
    n_rules: int
    completeness: str
    scores: tuple[str, ...]


#: FiRe, Table 1: rules of a 9-NN on iris. The paper leaves out the name of the clustering.
FIRE_TABLE: Mapping[str, PrintedFiRe] = {
    "CART": PrintedFiRe("0.95", 3, ("0.17", "0.11", "0.06")),
    "ITER": PrintedFiRe("0.89", 3, ("0.36", "0.24", "0.12")),
    "clustering, 4 features": PrintedFiRe("0.93", 3, ("0.22", "0.14", "0.07")),
    "clustering, 2 features": PrintedFiRe("0.91", 3, ("0.27", "0.18", "0.09")),
    "GridEx, 8 slices": PrintedFiRe("0.94", 3, ("0.18", "0.12", "0.06")),
    "GridEx, 2 slices twice": PrintedFiRe("0.81", 4, ("0.80", "0.40", "0.40")),
    "GridEx, 4 x 4 slices": PrintedFiRe("0.97", 8, ("0.26", "0.13", "0.11")),
}
#: The first row of that table: the black box.
FIRE_BLACK_BOX = "0.97"

#: ICE, Table 1: (data set, extractor); the trees are complete by construction, as the paper says.
ICE_TABLE: Mapping[tuple[str, str], PrintedICE] = {
    ("wine", "exact"): PrintedICE(
        "0.80", 3, "1", ("0.608", "0.643", "0.214", "0.966", "0.862", "0.892")
    ),
    ("wine", "cream"): PrintedICE(
        "0.95", 4, "1", ("0.203", "0.217", "0.109", "0.970", "0.964", "0.795")
    ),
    ("wine", "iter"): PrintedICE(
        "0.92", 9, "0.75", ("0.926", "0.829", "0.276", "0.678", "0.669", "0.032")
    ),
    ("wine", "gridex"): PrintedICE(
        "0.73", 5, "1.00", ("1.340", "1.452", "0.581", "0.946", "0.706", "0.607")
    ),
    ("wine", "cart"): PrintedICE(
        "0.89", 3, "1", ("0.338", "0.357", "0.119", "0.972", "0.949", "0.898")
    ),
    ("breast_cancer", "exact"): PrintedICE(
        "0.82", 3, "1", ("0.536", "0.566", "0.189", "0.968", "0.896", "0.894")
    ),
    ("breast_cancer", "cream"): PrintedICE(
        "0.94", 2, "1", ("0.118", "0.122", "0.061", "0.979", "0.972", "0.952")
    ),
    ("breast_cancer", "iter"): PrintedICE(
        "0.89", 5, "0.76", ("0.672", "0.590", "0.236", "0.733", "0.717", "0.470")
    ),
    ("breast_cancer", "gridex"): PrintedICE(
        "0.92", 3, "1.00", ("0.246", "0.260", "0.087", "0.974", "0.962", "0.900")
    ),
    ("breast_cancer", "cart"): PrintedICE(
        "0.94", 3, "1", ("0.178", "0.188", "0.063", "0.975", "0.968", "0.901")
    ),
}


def _fire_of(psi: float) -> Callable[..., np.ndarray]:
    return lambda f1, r, c: np.asarray(fire_score(1 - f1 + 0 * c, r, psi=psi))


def _ice_of(phi: float, rho: float) -> Callable[..., np.ndarray]:
    return lambda f1, r, c: np.asarray(ice_score(f1, r, c, phi=phi, rho=rho))


#: The scores of ICE's Table 1 as functions of F1, number of rules and completeness.
ICE_MEASURES: Mapping[str, Callable[..., np.ndarray]] = {
    "q": lambda f1, r, c: np.asarray(q_score(1 - f1, r, c)),
    "fire_1": _fire_of(1),
    "fire_3": _fire_of(3),
    "ice_1_1": _ice_of(1, 1),
    "ice_3_1": _ice_of(3, 1),
    "ice_1_3": _ice_of(1, 3),
}


def spread(text: str) -> tuple[float, float]:
    """Give the smallest and the largest number that is printed so."""
    printed = Decimal(text)
    half = Decimal(1).scaleb(int(printed.as_tuple().exponent)) / 2
    return float(printed - half), float(printed + half)


def losses_that_fit(row: PrintedFiRe, psis: tuple[int, ...] = PSI) -> tuple[float, float] | None:
    """Give the error rates from which a row of FiRe's table follows."""
    low, high = (1 - bound for bound in reversed(spread(row.accuracy)))
    for psi in psis:
        # FiRe is proportional to the error rate.
        unit = float(fire_score(1.0, row.n_rules, psi=psi))
        least, most = spread(row.fire[PSI.index(psi)])
        low, high = max(low, least / unit), min(high, most / unit)
    return (low, high) if low <= high + _SLACK else None


def error_counts(low: float, high: float, n_rows: int) -> int | None:
    """Give the number of errors among some rows whose rate lies between two bounds."""
    count = int(np.ceil(low * n_rows - 1e-9))
    return count if count <= high * n_rows + 1e-9 else None


def ice_reachable(row: PrintedICE, measure: str) -> tuple[float, float]:
    """Give the least and the greatest score that inputs printed so can have."""
    function = ICE_MEASURES[measure]
    corners = product(spread(row.f1), _completeness_spread(row.completeness))
    values = [float(function(f1, row.n_rules, c)) for f1, c in corners]
    return min(values), max(values)


def ice_follows(row: PrintedICE) -> tuple[dict[str, bool], bool]:
    """Tell which scores of a column of ICE's table follow from its printed inputs."""
    single = {}
    f1 = np.linspace(*spread(row.f1), _STEPS_PERFORMANCE)[:, np.newaxis]
    c = np.linspace(*_completeness_spread(row.completeness), _STEPS_COMPLETENESS)[np.newaxis]
    together = np.ones((len(f1), c.shape[1]), dtype=bool)
    for (name, function), text in zip(ICE_MEASURES.items(), row.scores, strict=True):
        low, high = spread(text)
        least, greatest = ice_reachable(row, name)
        single[name] = least <= high + _SLACK and greatest >= low - _SLACK
        values = function(f1, row.n_rules, c)
        together &= (values >= low - _SLACK) & (values <= high + _SLACK)
    return single, bool(together.any())


def _completeness_spread(text: str) -> tuple[float, float]:
    if text == "1":
        return 1.0, 1.0
    low, high = spread(text)
    return low, min(high, 1.0)
