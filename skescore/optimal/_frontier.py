"""The frontier: for every number of rules the least loss, between two proven bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._validation import check_choice, check_instance, check_number
from skescore.rules import RuleSet

KINDS = ("tree", "list")
LOSSES = ("errors", "squared_error", "absolute_error")
#: What is more is a mistake: each size takes a search of its own.
MOST_RULES = 10_000
STATUSES = ("optimal", "target", "time_limit", "node_limit", "memory_limit", "interrupted")


def check_targets(targets: Any, max_rules: int) -> np.ndarray:
    """Read the lower bounds that are enough, for each size; infinite ones if there are none."""
    if targets is None:
        return np.full(max_rules, np.inf)
    found = np.array(targets, dtype=float)
    if found.shape != (max_rules,) or np.isnan(found).any():
        raise ValueError(
            f"targets must hold one number for each of the {max_rules} sizes, got {targets!r}."
        )
    return found


@dataclass(frozen=True, eq=False)
class Frontier:
    """The least loss of rules of one kind on some rows, for every number of rules.

    No rules of that kind, taken from the stated space, have a smaller loss on these rows than
    `lower`; `rules` have the loss `upper`. A number of rules is a limit: a list of two rules is
    one of at most three as well, so that neither bound grows.

    Parameters
    ----------
    kind : {"tree", "list"}
        Decision trees, whose leaves are the rules, or decision lists, whose last rule always holds
        and counts.
    loss : {"errors", "squared_error", "absolute_error"}
        What is summed over the rows, each times its weight.
    sizes : sequence of int
        The most rules: 1, 2, 3, ...
    lower : array-like of shape (n_sizes,)
        Proven lower bounds of the least loss.
    upper : array-like of shape (n_sizes,)
        The loss of the rules found; the least loss is at most that.
    rules : sequence of RuleSet or None
        Rules that have the loss `upper`, per size; None where only the number is known.
    total_weight : float
        Sum of the rows' weights.
    space : mapping
        What rules were compared, in plain JSON values.
    status : sequence of {"optimal", "target", "time_limit", "node_limit", "memory_limit", \
"interrupted"}
        Per size: whether the bounds are equal, and else what ended the search; "target" if as much
        is proven as was asked for.
    seconds : float, default=0.0
        How long the search took.

    Raises
    ------
    ValueError
        If the bounds contradict each other, grow with the number of rules or do not fit the status.

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
        put = object.__setattr__
        put(self, "total_weight", check_number("total_weight", self.total_weight, 0, finite=True))
        put(self, "seconds", check_number("seconds", self.seconds, 0))
        for name in ("sizes", "rules", "status"):
            put(self, name, tuple(getattr(self, name)))
        if not self.sizes or self.sizes != tuple(range(1, len(self.sizes) + 1)):
            raise ValueError(f"sizes must be 1, 2, 3, ..., got {list(self.sizes)!r}.")
        for name in ("lower", "upper"):
            put(self, name, np.array(getattr(self, name), dtype=float))
            getattr(self, name).setflags(write=False)
        for name in ("lower", "upper", "rules", "status"):
            if len(getattr(self, name)) != len(self.sizes):
                raise ValueError(
                    f"{name} must hold one entry for each of the {len(self.sizes)} sizes, got "
                    f"{len(getattr(self, name))}."
                )
        for status in self.status:
            check_choice("status", status, STATUSES)
        for found in self.rules:
            check_instance("rules", found, RuleSet, optional=True)
        self._check_bounds()

    def _check_bounds(self) -> None:
        for name in ("lower", "upper"):
            bounds = getattr(self, name)
            if not (np.isfinite(bounds).all() and (bounds >= 0).all()):
                raise ValueError(f"{name} must be finite and 0 or more, got {bounds.tolist()!r}.")
            if (np.diff(bounds) > 0).any():
                raise ValueError(
                    f"{name} must not grow with the number of rules, got {bounds.tolist()!r}."
                )
        for size, low, high, status, found in zip(
            self.sizes,
            self.lower.tolist(),
            self.upper.tolist(),
            self.status,
            self.rules,
            strict=True,
        ):
            if low > high:
                raise ValueError(
                    f"lower must be at most upper, got {low!r} and {high!r} for {size} rules."
                )
            if status == "optimal" and low < high:
                raise ValueError(
                    f"status must not be 'optimal' for {size} rules, between {low!r} and {high!r}."
                )
            if found is not None and len(found) > size:
                raise ValueError(f"rules must hold at most {size} rules there, got {len(found)}.")

    @property
    def gap(self) -> np.ndarray:
        """How much smaller than `upper` the least loss could be, per size."""
        return np.asarray(self.upper - self.lower)

    def with_bounds(self, other: Frontier) -> Frontier:
        """Join what two searches among the same rules have found and proven.

        Parameters
        ----------
        other : Frontier
            Another frontier of the same kind, loss, space, rows and sizes.

        Returns
        -------
        Frontier
            Per size the larger lower bound, the smaller upper one with its rules, and how this
            frontier's search ended unless both are equal.
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
        lower = np.minimum(lower, upper)  # where numbers were rounded
        pairs = zip(self.upper, other.upper, self.rules, other.rules, strict=True)
        rules = tuple(mine if a <= b else theirs for a, b, mine, theirs in pairs)
        status = tuple(np.where(lower == upper, "optimal", self.status).tolist())
        seconds = self.seconds + other.seconds
        return replace(self, lower=lower, upper=upper, rules=rules, status=status, seconds=seconds)
