"""Two-sided intervals of the share of a region in which a model disagrees with a rule.

Boxes with a proof count exactly. The remaining boxes are sampled: a pilot sample determines the
number of points, and an independent sample of this size gives a Clopper-Pearson interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from skescore._binomial import clopper_pearson
from skescore.rules import RuleSet
from skescore.verification._branch import AGREES, DISAGREES, UNKNOWN, Node, Partition
from skescore.verification._clock import Deadline
from skescore.verification._grid import CellGrid
from skescore.verification._measures import Neighborhoods, draw_in_domain

#: Number of points of the pilot sample.
_N_PILOT = 2000
_BATCH = 20_000


@dataclass(frozen=True)
class ShareInterval:
    """Interval of a share.

    Parameters
    ----------
    lower, upper : float
        Bounds of the share; NaN if the region has no mass.
    proven_lower, proven_upper : float
        Bounds that are proven without sampling.
    confidence : float, default=1.0
        1 if the bounds are proven, otherwise the confidence level of the interval.
    n_samples : int, default=0
        Number of sampled points; 0 for proven bounds.

    Examples
    --------
    >>> print(ShareInterval(0.25, 0.25, 0.25, 0.25))
    exactly 25 %
    >>> print(ShareInterval(0.101, 0.108, 0.0, 0.9, 1 - 1e-6, 5000))
    10.1 % to 10.8 % (5,000 samples, confidence 1 − 1e-06)
    """

    lower: float
    upper: float
    proven_lower: float
    proven_upper: float
    confidence: float = 1.0
    n_samples: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether the bounds are proven."""
        return self.n_samples == 0

    @property
    def width(self) -> float:
        """Difference of the bounds."""
        return self.upper - self.lower

    def __str__(self) -> str:
        if math.isnan(self.lower):
            return "no mass"
        low, high = f"{100 * self.lower:.4g}", f"{100 * self.upper:.4g}"
        if self.is_exact:
            return f"exactly {low} %" if low == high else f"{low} % to {high} % (proven)"
        risk = f"{1 - self.confidence:.3g}"
        return f"{low} % to {high} % ({self.n_samples:,} samples, confidence 1 − {risk})"

    def bar(self, proven_agreement: float = 0.0) -> dict[str, float]:
        """Return the parts of a bar: proven agreement, agreement by samples, unknown, disagreement.

        Parameters
        ----------
        proven_agreement : float, default=0.0
            Share in which agreement is proven.

        Returns
        -------
        dict of str to float
            Shares that sum to 1, by ``"agree"``, ``"sampled"``, ``"unknown"`` and ``"disagree"``;
            empty for a region without mass.

        Examples
        --------
        >>> ShareInterval(0.25, 0.5, 0.0, 1.0, 1 - 1e-6, 100).bar(0.25)
        {'agree': 0.25, 'sampled': 0.25, 'unknown': 0.25, 'disagree': 0.25}
        """
        if math.isnan(self.lower):
            return {}
        return {
            "agree": min(proven_agreement, 1 - self.lower),
            "sampled": max(1 - self.upper - proven_agreement, 0.0),
            "unknown": min(self.upper, 1 - min(proven_agreement, 1 - self.lower)) - self.lower,
            "disagree": self.lower,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ShareInterval:
        """Restore an interval from the result of :meth:`to_dict`."""
        names = ("lower", "upper", "proven_lower", "proven_upper")
        lower, upper, proven_lower, proven_upper = (
            math.nan if data[name] is None else float(data[name]) for name in names
        )
        return cls(
            lower,
            upper,
            proven_lower,
            proven_upper,
            float(data["confidence"]),
            int(data["n_samples"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as a dict of JSON values; NaN becomes None."""
        values = {
            "lower": self.lower,
            "upper": self.upper,
            "proven_lower": self.proven_lower,
            "proven_upper": self.proven_upper,
        }
        return {
            **{name: None if math.isnan(value) else value for name, value in values.items()},
            "method": "proven" if self.is_exact else "sampled",
            "confidence": self.confidence,
            "n_samples": self.n_samples,
        }


NO_MASS = ShareInterval(math.nan, math.nan, math.nan, math.nan)


def pooled_interval(
    intervals: Sequence[ShareInterval], masses: Sequence[float], confidence: float
) -> ShareInterval:
    """Return the interval of the share in the union of several regions.

    Parameters
    ----------
    intervals : sequence of ShareInterval
        Intervals of disjoint regions, whose error probabilities sum to at most ``1 - confidence``.
    masses : sequence of float
        Masses of the regions.
    confidence : float
        Confidence of the result.

    Returns
    -------
    ShareInterval
        Weighted mean of the bounds.
    """
    pairs = [(i, m) for i, m in zip(intervals, masses, strict=True) if m > 0]
    total = math.fsum(mass for _, mass in pairs)
    if not total:
        return NO_MASS

    def mean(name: str) -> float:
        return math.fsum(mass * getattr(interval, name) for interval, mass in pairs) / total

    n_samples = sum(interval.n_samples for interval, _ in pairs)
    return ShareInterval(
        mean("lower"),
        mean("upper"),
        mean("proven_lower"),
        mean("proven_upper"),
        confidence if n_samples else 1.0,
        n_samples,
    )


@dataclass(frozen=True, eq=False)
class PointSampler:
    """Sampler of points of unknown boxes by one of the two measures.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    nodes : sequence of Node
        Disjoint boxes.
    neighborhoods : Neighborhoods or None
        Rows, for the measure near the data; None for the volume.
    """

    grid: CellGrid
    nodes: Sequence[Node]
    neighborhoods: Neighborhoods | None

    def draw(self, n_points: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent points."""
        if self.neighborhoods is None:
            volumes = np.array([node.volume for node in self.nodes])
            counts = rng.multinomial(n_points, volumes / volumes.sum())
            parts = [
                draw_in_domain(self.grid, node.box, 0, int(count), rng)
                for node, count in zip(self.nodes, counts, strict=True)
                if count
            ]
            return np.concatenate(parts)
        masses = np.concatenate([node.row_masses for node in self.nodes])
        rows = np.concatenate([node.rows for node in self.nodes])
        sizes = [len(node.rows) for node in self.nodes]
        ends = np.cumsum(sizes)
        pairs = np.sort(rng.choice(len(masses), n_points, p=masses / masses.sum()))
        borders = np.searchsorted(pairs, np.concatenate([[0], ends]))
        parts = [
            self.neighborhoods.draw(node.box, 0, rows[pairs[begin:end]], rng)
            for node, begin, end in zip(self.nodes, borders[:-1], borders[1:], strict=True)
            if begin < end
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class SamplingPlan:
    """Required width of an interval, and limits of the sampling that estimates it.

    Parameters
    ----------
    width : float
        Width of the interval at which sampling stops.
    confidence : float
        Confidence of the interval.
    max_samples : int
        Largest number of points.
    deadline : Deadline
        Time after which no further batch is drawn.
    """

    width: float
    confidence: float
    max_samples: int
    deadline: Deadline

    def n_samples(self, hits: int, n_pilot: int, unknown_share: float) -> int:
        """Return the number of points for the required width, given a pilot sample."""
        width = self.width / unknown_share
        if width >= 1:
            return _N_PILOT
        low, high = clopper_pearson(hits, n_pilot, 0.9)
        share = min(max(0.5, low), high)
        deviate = float(-ndtri((1 - self.confidence) / 2))
        # The normal approximation, plus the width for rare events.
        n_points = share * (1 - share) * (2 * deviate / width) ** 2 + 2 * deviate**2 / width
        return int(min(max(1.05 * n_points, _N_PILOT), self.max_samples))


def share_interval(
    partition: Partition,
    sampler: PointSampler,
    disagrees: Callable[[np.ndarray], np.ndarray],
    plan: SamplingPlan,
    rng: np.random.Generator,
) -> ShareInterval:
    """Return the interval of the share of a region in which the model disagrees.

    Parameters
    ----------
    partition : Partition
        Boxes of the region by status.
    sampler : PointSampler
        Sampler of points of the unknown boxes.
    disagrees : callable
        Function that queries the model whether it disagrees with the rule at each point.
    plan : SamplingPlan
        Required width and limits.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ShareInterval
        Exact if all boxes are decided.
    """
    measure = partition.volume if sampler.neighborhoods is None else partition.near
    agreeing, disagreeing, unknown = (measure(s) for s in (AGREES, DISAGREES, UNKNOWN))
    total = agreeing + disagreeing + unknown
    if total <= 0:
        return NO_MASS
    proven = disagreeing / total, min((disagreeing + unknown) / total, 1.0)
    if proven[1] - proven[0] <= 1e-12:
        return ShareInterval(*proven, *proven)
    if proven[1] - proven[0] <= plan.width:
        return ShareInterval(*proven, *proven)
    pilot = sampler.draw(_N_PILOT, rng)
    pilot_hits = int(disagrees(pilot).sum())
    n_wanted = plan.n_samples(pilot_hits, _N_PILOT, unknown / total)
    hits, n_samples = 0, 0
    while n_samples < n_wanted and (n_samples == 0 or not plan.deadline.is_over()):
        size = min(_BATCH, n_wanted - n_samples)
        hits += int(disagrees(sampler.draw(size, rng)).sum())
        n_samples += size
    low, high = clopper_pearson(hits, n_samples, plan.confidence)
    bounds = (disagreeing + low * unknown) / total, (disagreeing + high * unknown) / total
    return ShareInterval(*bounds, *proven, plan.confidence, n_samples)


def covers_fallback(rules: RuleSet) -> bool:
    """Return whether the fallback predicts uncovered rows."""
    return rules.fallback is not None and rules.fallback.policy == "default"
