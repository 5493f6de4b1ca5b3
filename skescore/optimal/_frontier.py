"""Frontiers: proven bounds on the smallest loss for each number of rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._validation import check_choice, check_instance, check_number
from skescore.optimal._problem import LOSSES
from skescore.rules import RuleSet

KINDS = ("tree", "list")
#: Largest rounding error of an optimum, relative to its loss.
RESOLUTION = 1e-3
STATUSES = (
    "optimal",
    "target",
    "time_limit",
    "node_limit",
    "work_limit",
    "memory_limit",
    "rounding",
    "interrupted",
)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Proven bounds on the smallest loss of one kind of rules, for each number of rules.

    No rules of this kind in the search space have a smaller loss on the rows than `lower`; the
    incumbents `rules` have the loss `upper`. Sizes are upper limits: a list of two rules is also a
    list of at most three rules. The bounds therefore do not grow with the number of rules.

    Parameters
    ----------
    kind : {"tree", "list"}
        Decision trees, whose leaves are the rules, or decision lists, whose last rule always holds
        and counts as a rule.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss, summed over the rows with their weights.
    sizes : sequence of int
        Largest numbers of rules: 1, 2, 3, ...
    lower : array-like of shape (n_sizes,)
        Proven lower bounds on the smallest loss.
    upper : array-like of shape (n_sizes,)
        Losses of the incumbents, which are upper bounds on the smallest loss.
    rules : sequence of RuleSet or None
        Incumbents with the loss `upper`, per size; None if only their loss is known.
    total_weight : float
        Sum of the rows' weights.
    space : mapping
        Search space, as JSON values.
    status : sequence of {"optimal", "target", "time_limit", "node_limit", "work_limit", \
"memory_limit", "rounding", "interrupted"}
        Per size: "optimal" if both bounds are equal, "target" if the requested lower bound is
        proven, "rounding" if rounding errors exceed the differences between the best rules, and
        otherwise the limit that ended the search.
    seconds : float, default=0.0
        Wall time of the search in seconds.

    Raises
    ------
    ValueError
        If the bounds contradict each other or the status, or grow with the number of rules.

    Examples
    --------
    >>> from skescore.optimal import Frontier
    >>> frontier = Frontier("list", "errors", [1, 2], [7, 1], [7, 3], [None, None], 12.0,
    ...                     {"max_conditions": 1}, ["optimal", "time_limit"])
    >>> frontier.gap.tolist()
    [0.0, 2.0]
    """

    kind: str
    loss: str
    sizes: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    rules: tuple[RuleSet | None, ...]
    total_weight: float
    space: Mapping[str, Any]
    status: tuple[str, ...]
    seconds: float = 0.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("loss", self.loss, LOSSES)
        check_instance("space", self.space, Mapping)
        checked: dict[str, Any] = {
            "total_weight": check_number("total_weight", self.total_weight, 0, finite=True),
            "seconds": check_number("seconds", self.seconds, 0),
        }
        checked |= {name: tuple(getattr(self, name)) for name in ("sizes", "rules", "status")}
        checked |= {name: np.array(getattr(self, name), float) for name in ("lower", "upper")}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not self.sizes or self.sizes != tuple(range(1, len(self.sizes) + 1)):
            raise ValueError(f"sizes must be 1, 2, 3, ..., got {list(self.sizes)!r}.")
        for name in ("lower", "upper"):
            getattr(self, name).setflags(write=False)
        for name in ("lower", "upper", "rules", "status"):
            if len(getattr(self, name)) != len(self.sizes):
                raise ValueError(
                    f"{name} must hold one entry for each of the {len(self.sizes)} sizes, got "
                    f"{len(getattr(self, name))}."
                )
        for status in self.status:
            check_choice("status", status, STATUSES)
        for incumbent in self.rules:
            check_instance("rules", incumbent, RuleSet, optional=True)
        self._check_bounds()

    def _check_bounds(self) -> None:
        """Raise a ValueError if bounds contradict each other, the status or the rules."""
        for name in ("lower", "upper"):
            bounds = getattr(self, name)
            if not (np.isfinite(bounds).all() and (bounds >= 0).all()):
                raise ValueError(f"{name} must be finite and 0 or more, got {bounds.tolist()!r}.")
            if (np.diff(bounds) > 0).any():
                raise ValueError(
                    f"{name} must not grow with the number of rules, got {bounds.tolist()!r}."
                )
        bounds_by_size = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        for size, (low, high), status, incumbent in zip(
            self.sizes, bounds_by_size, self.status, self.rules, strict=True
        ):
            if low > high:
                raise ValueError(
                    f"lower must be at most upper, got {low!r} and {high!r} for {size} rules."
                )
            if status == "optimal" and low < high:
                raise ValueError(
                    f"status must not be 'optimal' for {size} rules, because lower={low!r} and "
                    f"upper={high!r} are different."
                )
            if incumbent is not None and len(incumbent) > size:
                raise ValueError(
                    f"rules must hold at most {size} rules at size {size}, got {len(incumbent)}."
                )

    @property
    def gap(self) -> np.ndarray:
        """Difference between the upper and the lower bound, per size."""
        return np.asarray(self.upper - self.lower)

    def with_bounds(self, other: Frontier) -> Frontier:
        """Combine the bounds of two searches over the same space.

        Parameters
        ----------
        other : Frontier
            Frontier of the same kind, loss, space, rows and sizes.

        Returns
        -------
        Frontier
            Per size, the larger lower bound, the smaller upper bound with its rules, and the status
            of this frontier, or "optimal" if both bounds are equal.

        Raises
        ------
        ValueError
            If the kinds, losses, sizes or spaces differ.
        """
        if (self.kind, self.loss, self.sizes, self.space) != (
            other.kind,
            other.loss,
            other.sizes,
            other.space,
        ):
            raise ValueError("other must be a frontier of the same kind, loss, sizes and space.")
        lower = np.maximum(self.lower, other.lower)
        upper = np.minimum(self.upper, other.upper)
        lower = np.minimum(lower, upper)  # because of rounding, lower may exceed upper
        pairs = zip(self.upper, other.upper, self.rules, other.rules, strict=True)
        rules = tuple(mine if a <= b else theirs for a, b, mine, theirs in pairs)
        status = tuple(np.where(lower == upper, "optimal", self.status).tolist())
        seconds = self.seconds + other.seconds
        return replace(self, lower=lower, upper=upper, rules=rules, status=status, seconds=seconds)
