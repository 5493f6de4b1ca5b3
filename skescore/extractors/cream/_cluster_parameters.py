"""What the parameters and targets of CREAM and ExACT may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore.extractors import _validation as check
from skescore.extractors.cream._candidates import CRITERIA

#: Larger numbers have squares, and sums of them, that overflow.
LARGEST = 1e100
#: Fewer rows make no clusters.
_LEAST_SAMPLES = 10


@dataclass(frozen=True)
class Growth:
    """How to grow boxes.

    Parameters
    ----------
    both : bool
        True: choose the box that makes both children homogeneous and split both (CREAM). False:
        choose the largest useful box and split its inside only (ExACT).
    depth : int
        Most boxes inside each other, without the outermost.
    error_threshold : float or None
        A node at most so diverse is not split; None for the target's own.
    gauss_components : int
        Most components of mixtures.
    criterion : {"bic", "bic/m"}
        Chooses their number.
    scale : bool
        Whether to standardise features and target for mixtures and distances.
    max_samples : int or None
        Most rows of a node among which clusters are looked for.
    weighted : bool
        Whether the children's diversities count by their rows.
    seed : int
        Seed of the whole run.
    """

    both: bool
    depth: int
    error_threshold: float | None
    gauss_components: int
    criterion: str
    scale: bool
    max_samples: int | None
    weighted: bool
    seed: int


def check_parameters(estimator: Any) -> None:
    """Raise a ValueError or TypeError for a parameter of a clusterer or extractor.

    Parameters
    ----------
    estimator : estimator
        With the parameters of :class:`Growth` but the seed, ``output`` and ``ignore_threshold``.
    """
    check.check_integer("depth", estimator.depth, 1)
    check.check_number("error_threshold", estimator.error_threshold, 0.0, optional=True)
    check.check_integer("gauss_components", estimator.gauss_components, 2)
    check.check_choice("criterion", estimator.criterion, CRITERIA)
    check.check_flag("scale", estimator.scale)
    check.check_integer("max_samples", estimator.max_samples, _LEAST_SAMPLES, optional=True)
    check.check_flag("weighted", getattr(estimator, "weighted", False))
    check.check_number("ignore_threshold", estimator.ignore_threshold, 0.0, 1.0)
    check.check_choice("output", estimator.output, ("constant", "linear"))


def check_target_magnitude(who: str, values: np.ndarray) -> None:
    """Raise a ValueError for numbers whose squares would overflow.

    Parameters
    ----------
    who : str
        Beginning of the message, such as "y holds".
    values : ndarray of shape (n_rows,)
        The numbers.
    """
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise ValueError(
            f"{who} numbers up to {largest:.3g}, more than {LARGEST:g}; their squares would "
            "overflow. Scale the target."
        )
