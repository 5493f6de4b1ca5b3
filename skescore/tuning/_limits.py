"""Limits that the winner of a search must keep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skescore._text import did_you_mean
from skescore._validation import check_number
from skescore.scorers import limited_quantities
from skescore.tuning._fold_result import FoldResult, mean_of

#: Tolerance for rounding.
_TOLERANCE = 1e-9


@dataclass(frozen=True, init=False)
class SearchLimits:
    """Limits that the winner of a search must keep.

    Parameters
    ----------
    **values : float, optional
        ``max_rules``, the largest number of rules: of those extracted from all rows where there are
        some, otherwise the mean over the folds. ``min_performance``, the smallest mean performance
        on held-out rows. Further limits are those that measured quantities declare.

    Raises
    ------
    TypeError, ValueError
        If a limit is unknown, not a number, or too small, such as `max_rules` below 1.

    Examples
    --------
    >>> from skescore.tuning import FoldResult
    >>> folds = [FoldResult({"n_rules": 4, "performance": 0.9}),
    ...          FoldResult({"n_rules": 5, "performance": 0.8})]
    >>> SearchLimits(max_rules=4).violations(folds)
    (0.5,)
    >>> SearchLimits(max_rules=4).allow(folds, FoldResult({"n_rules": 4}))
    True
    """

    values: Mapping[str, float]

    def __init__(self, **values: float | None) -> None:
        quantities = limited_quantities()
        for parameter, value in values.items():
            if parameter not in quantities:
                raise TypeError(
                    f"There is no limit {parameter!r}. {did_you_mean(parameter, quantities)}"
                )
            limit = quantities[parameter].limit
            smallest = None if limit is None else limit.smallest
            check_number(
                parameter,
                value,
                -math.inf if smallest is None else smallest,
                finite=True,
                optional=True,
            )
        set_values = {name: values[name] for name in quantities if values.get(name) is not None}
        object.__setattr__(self, "values", set_values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        quantities = limited_quantities()
        texts = []
        for parameter, value in self.values.items():
            if (limit := quantities[parameter].limit) is not None:
                texts.append(limit.text.format(value=value, s="" if value == 1 else "s"))
        return " and ".join(texts)

    def violations(
        self, folds: Sequence[FoldResult], all_rows: FoldResult | None = None
    ) -> tuple[float, ...]:
        """Return how far a candidate is beyond each limit that is set.

        Parameters
        ----------
        folds : sequence of FoldResult
            Results on the folds.
        all_rows : FoldResult, optional
            Result of the rules extracted from all rows, on these rows.

        Returns
        -------
        tuple of float
            One number per limit: at most 0 where the candidate keeps it, infinite where the
            measure is undefined.
        """
        quantities, distances = limited_quantities(), []
        for parameter, value in self.values.items():
            quantity = quantities[parameter]
            measured = mean_of(folds, quantity.name)
            if all_rows is not None and quantity.limit and quantity.limit.of_final_rules:
                measured = float(all_rows.get(quantity.name, measured))
            distance = quantity.sign * (value - measured)
            distances.append(math.inf if math.isnan(distance) else distance)
        return tuple(distances)

    def allow(self, folds: Sequence[FoldResult], all_rows: FoldResult | None = None) -> bool:
        """Return whether a candidate keeps all limits, apart from rounding.

        Parameters
        ----------
        folds, all_rows
            See :meth:`violations`.

        Returns
        -------
        bool
        """
        return all(value <= _TOLERANCE for value in self.violations(folds, all_rows))
