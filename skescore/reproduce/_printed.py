"""Printed figures of the FiRe, ICE and B-ReX papers, and scores that follow from them.

The tables print rounded inputs and scores. A printed score follows if some inputs that round to the
printed inputs give it; a row follows if the same inputs give all its scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from skescore.metrics import fire_score, ice_score, q_score

#: Values of psi in FiRe's Table 1, in the order of its columns.
PSI = (1, 2, 3)
#: Tolerance for floating-point errors, far below half a unit of the last printed digit.
_SLACK = 1e-12
#: Number of values tried within the rounding intervals of performance and of completeness.
_STEPS_PERFORMANCE, _STEPS_COMPLETENESS = 4_001, 101


class PrintedFiRe(NamedTuple):
    """Row of FiRe's Table 1, as printed."""

    accuracy: str
    n_rules: int
    fire: tuple[str, str, str]


class PrintedICE(NamedTuple):
    """Column of ICE's Table 1, as printed."""

    f1: str
    n_rules: int
    completeness: str
    scores: tuple[str, ...]


#: FiRe, Table 1: rules of a 9-NN on iris. The paper does not name the clustering.
FIRE_TABLE: Mapping[str, PrintedFiRe] = {
    "CART": PrintedFiRe("0.95", 3, ("0.17", "0.11", "0.06")),
    "ITER": PrintedFiRe("0.89", 3, ("0.36", "0.24", "0.12")),
    "clustering, 4 features": PrintedFiRe("0.93", 3, ("0.22", "0.14", "0.07")),
    "clustering, 2 features": PrintedFiRe("0.91", 3, ("0.27", "0.18", "0.09")),
    "GridEx, 8 slices": PrintedFiRe("0.94", 3, ("0.18", "0.12", "0.06")),
    "GridEx, 2 slices twice": PrintedFiRe("0.81", 4, ("0.80", "0.40", "0.40")),
    "GridEx, 4 x 4 slices": PrintedFiRe("0.97", 8, ("0.26", "0.13", "0.11")),
}
#: Accuracy of the black box, the first row of that table.
FIRE_BLACK_BOX = "0.97"

#: ICE, Table 1, by data set and extractor.
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

#: Columns of the tables: numbers of variables, or names of the small formulas.
ARITIES = tuple(range(3, 11))
SMALL = ("and", "or", "xor", "xor-and-xor")

#: Figures by row and column.
Figures = Mapping[str, Mapping[str, float]]


def _by_arity(rows: dict[str, str]) -> Figures:
    return {
        name: dict(zip(map(str, ARITIES), map(float, figures.split()), strict=True))
        for name, figures in rows.items()
    }


#: B-ReX's Tables 1 to 5 (arXiv:2509.09982): figures by row and column.
BREX_TABLES: Mapping[int, Figures] = MappingProxyType(
    {
        1: _by_arity(
            {
                "B-ReX": ".754 .782 .582 .398 .344 .368 .426 .384",
                "ShapleyValues": ".404 .266 .296 .152 .262 .162 .32 .15",
                "KernelShap": ".03 .002 .038 .002 .034 .004 .038 .004",
                "Saliency": ".23 .238 .374 .268 .334 .262 .4 .242",
                "DeepLift": ".25 .256 .264 .182 .256 .268 .31 .122",
                "InputXGrad": ".002 0 0 0 0 0 0 0",
            }
        ),
        2: _by_arity(
            {
                "B-ReX": ".774 .692 .63 .648 .662 .676 .642 .664",
                "ShapleyValues": ".704 .512 .506 .474 .464 .576 .518 .486",
                "KernelShap": ".05 .032 .042 .036 .044 .05 .042 .042",
                "Saliency": ".458 .432 .416 .46 .342 .538 .334 .382",
                "DeepLift": ".65 .524 .538 .52 .458 .65 .47 .472",
                "InputXGrad": ".446 .008 .382 .048 .486 .088 .334 .032",
            }
        ),
        3: _by_arity(
            {
                "B-ReX": ".021 .018 .037 .039 .064 .066 .063 .072",
                "ShapleyValues": ".139 .171 .192 .205 .259 .256 .256 .269",
                "KernelShap": ".16 .205 .23 .24 .282 .284 .295 .303",
                "Saliency": ".128 .106 .123 .128 .123 .126 .112 .122",
                "DeepLift": ".073 .062 .085 .097 .09 .099 .108 .109",
                "InputXGrad": ".319 .301 .298 .4 .374 .279 .382 .342",
                "IntegratedGrad": ".071 .059 .081 .092 .089 .104 .106 .105",
            }
        ),
        4: _by_arity(
            {
                "B-ReX": ".009 .023 .025 .04 .029 .059 .053 .046",
                "ShapleyValues": ".094 .119 .124 .153 .139 .19 .179 .175",
                "KernelShap": ".127 .149 .16 .187 .178 .213 .211 .206",
                "Saliency": ".131 .146 .156 .144 .149 .159 .146 .146",
                "DeepLift": ".046 .055 .056 .061 .07 .068 .067 .072",
                "InputXGrad": ".499 .392 .362 .393 .407 .339 .399 .487",
                "IntegratedGrad": ".047 .056 .058 .066 .072 .074 .073 .075",
            }
        ),
        5: {
            name: dict(zip(SMALL, figures, strict=True))
            for name, figures in {
                "B-ReX": (0.992, 0.986, 1.0, 0.638),
                "ShapleyValues": (0.88, 0.878, 0.692, 0.536),
                "KernelShap": (0.068, 0.054, 0.024, 0.006),
                "Saliency": (0.842, 0.742, 0.684, 0.774),
                "DeepLift": (0.958, 0.806, 0.826, 0.734),
                "InputXGrad": (0.136, 0.642, 0.198, 0.314),
            }.items()
        },
    }
)

BREX_TITLES: Mapping[int, str] = MappingProxyType(
    {
        1: "Table 1: top-k accuracy on non-monotone chains ((x1 ^ x2) & x3) ^ ..., by arity",
        2: "Table 2: top-k accuracy on monotone chains ((x1 & x2) | x3) & ..., by arity",
        3: "Table 3: JSD in bits on random non-monotone formulas, by arity",
        4: "Table 4: JSD in bits on random monotone formulas, by arity",
        5: "Table 5: top-k accuracy on four small formulas",
    }
)


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


def rounding_interval(text: str) -> tuple[float, float]:
    """Return the smallest and the largest number that round to a printed number."""
    printed = Decimal(text)
    half = Decimal(1).scaleb(int(printed.as_tuple().exponent)) / 2
    return float(printed - half), float(printed + half)


def losses_that_fit(row: PrintedFiRe, psis: tuple[int, ...] = PSI) -> tuple[float, float] | None:
    """Return the interval of error rates that give a row of FiRe's table, or None."""
    low, high = (1 - bound for bound in reversed(rounding_interval(row.accuracy)))
    for psi in psis:
        # FiRe is proportional to the error rate.
        unit = float(fire_score(1.0, row.n_rules, psi=psi))
        lower, upper = rounding_interval(row.fire[PSI.index(psi)])
        low, high = max(low, lower / unit), min(high, upper / unit)
    return (low, high) if low <= high + _SLACK else None


def error_counts(low: float, high: float, n_rows: int) -> int | None:
    """Return the smallest number of errors whose rate lies between two bounds, or None."""
    count = int(np.ceil(low * n_rows - 1e-9))
    return count if count <= high * n_rows + 1e-9 else None


def ice_reachable(row: PrintedICE, measure: str) -> tuple[float, float]:
    """Return the smallest and the largest score for inputs that round to the printed inputs."""
    function = ICE_MEASURES[measure]
    corners = product(rounding_interval(row.f1), _completeness_interval(row.completeness))
    values = [float(function(f1, row.n_rules, c)) for f1, c in corners]
    return min(values), max(values)


def ice_follows(row: PrintedICE) -> tuple[dict[str, bool], bool]:
    """Return whether each score of a column follows from its inputs, and whether all do at once.

    The inputs are the printed F1, number of rules and completeness, before they were rounded.
    """
    follows_by_score = {}
    f1 = np.linspace(*rounding_interval(row.f1), _STEPS_PERFORMANCE)[:, np.newaxis]
    c = np.linspace(*_completeness_interval(row.completeness), _STEPS_COMPLETENESS)[np.newaxis]
    together = np.ones((len(f1), c.shape[1]), dtype=bool)
    for (name, function), text in zip(ICE_MEASURES.items(), row.scores, strict=True):
        low, high = rounding_interval(text)
        smallest, greatest = ice_reachable(row, name)
        follows_by_score[name] = smallest <= high + _SLACK and greatest >= low - _SLACK
        values = function(f1, row.n_rules, c)
        together &= (values >= low - _SLACK) & (values <= high + _SLACK)
    return follows_by_score, bool(together.any())


def _completeness_interval(text: str) -> tuple[float, float]:
    if text == "1":
        return 1.0, 1.0
    low, high = rounding_interval(text)
    return low, min(high, 1.0)
