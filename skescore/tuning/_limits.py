"""SearchLimits that the winner of a search must keep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skescore._validation import check_number
from skescore.tuning._search_objective import mean_of


@dataclass(frozen=True)
class SearchLimits:
    """What the winner of a search has to keep to.

    Parameters
    ----------
    max_rules : float, optional
        Most rules: of those of all rows where these are known, else on the mean of the folds.
    min_performance : float, optional
        Least performance on held-out rows, on the mean of the folds.

    Raises
    ------
    TypeError, ValueError
        If one is no number, or `max_rules` is below 1.

    Examples
    --------
    >>> folds = [{"n_rules": 4, "performance": 0.9}, {"n_rules": 5, "performance": 0.8}]
    >>> SearchLimits(max_rules=4).violations(folds)
    (0.5,)
    >>> SearchLimits(max_rules=4).allow(folds, {"n_rules": 4})
    True
    """

    max_rules: float | None = None
    min_performance: float | None = None

    def __post_init__(self) -> None:
        check_number("max_rules", self.max_rules, 1.0, finite=True, optional=True)
        check_number("min_performance", self.min_performance, finite=True, optional=True)

    def __bool__(self) -> bool:
        return self.max_rules is not None or self.min_performance is not None

    def __str__(self) -> str:
        parts = []
        if self.max_rules is not None:
            parts.append(f"at most {self.max_rules:g} rule{'' if self.max_rules == 1 else 's'}")
        if self.min_performance is not None:
            parts.append(f"a performance of at least {self.min_performance:g}")
        return " and ".join(parts)

    def violations(
        self, folds: Sequence[Mapping[str, Any]], all_rows: Mapping[str, Any] | None = None
    ) -> tuple[float, ...]:
        """Give how far a candidate is beyond each limit that is set; at most 0 where it is not.

        Parameters
        ----------
        folds : sequence of dict
            What was measured on the folds.
        all_rows : dict, optional
            The same of the rules of all rows, on these rows.

        Returns
        -------
        tuple of float
            One for each limit; infinite where it is not known.
        """
        found = []
        if self.max_rules is not None:
            n_rules = (all_rows or {}).get("n_rules", mean_of(folds, "n_rules"))
            found.append(float(n_rules) - self.max_rules)
        if self.min_performance is not None:
            found.append(self.min_performance - mean_of(folds, "performance"))
        return tuple(math.inf if math.isnan(value) else value for value in found)

    def allow(
        self, folds: Sequence[Mapping[str, Any]], all_rows: Mapping[str, Any] | None = None
    ) -> bool:
        """Return whether a candidate keeps to all limits, but for rounding.

        Parameters
        ----------
        folds, all_rows
            As of :meth:`violations`.

        Returns
        -------
        bool
        """
        return all(value <= 1e-9 for value in self.violations(folds, all_rows))
