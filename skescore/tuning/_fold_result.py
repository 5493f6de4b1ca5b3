"""Measurements of a candidate on one fold, and their combination with those on all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.black_boxes import QueryCost
from skescore.scorers import measured_quantities

#: Names of the fields in stored results that are not measures.
_WARNINGS, _FAILURE = "warnings", "failure"


@dataclass(frozen=True)
class FoldResult:
    """Measurements of the rules of one candidate on one fold, or the error of the extraction.

    ``result["n_rules"]`` returns a measure by name.

    Parameters
    ----------
    measures : mapping of str to float
        ``score`` and measured quantities by name (:class:`skescore.scorers.MeasuredQuantity`).
    user_measures : mapping of str to float, optional
        Values of the scorers that the user passed as `measures`.
    warnings : tuple of str, default=()
        Texts of the warnings that the evaluation raised.
    failure : str, default=""
        Text of the error; empty if there was none.
    query_cost : QueryCost, optional
        Rows that the black box was asked about; not stored with the trial.

    Examples
    --------
    >>> result = FoldResult({"loss": 0.25, "n_rules": 3}, {"mean_rule_c2": 0.5})
    >>> result["loss"], result["mean_rule_c2"], result.get("size")
    (0.25, 0.5, nan)
    """

    measures: Mapping[str, float]
    user_measures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: str = ""
    query_cost: QueryCost = field(default=QueryCost(), compare=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> FoldResult:
        """Return the result of a record that :meth:`to_dict` wrote.

        Parameters
        ----------
        record : mapping of str to value
            Measures by name, and possibly ``warnings`` or ``failure``.

        Returns
        -------
        FoldResult
            The result.
        """
        declared = {"score", *measured_quantities()}
        values = {k: v for k, v in record.items() if k not in (_WARNINGS, _FAILURE)}
        return cls(
            {name: value for name, value in values.items() if name in declared},
            {name: value for name, value in values.items() if name not in declared},
            tuple(record.get(_WARNINGS, ())),
            record.get(_FAILURE, ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a flat dict, as trials store it.

        Returns
        -------
        dict of str to value
            Measures by name and ``warnings``, or ``failure`` alone.
        """
        if self.failure:
            return {_FAILURE: self.failure}
        return {**self.measures, **self.user_measures, _WARNINGS: list(self.warnings)}

    def __getitem__(self, name: str) -> float:
        return self.measures[name] if name in self.measures else self.user_measures[name]

    def __contains__(self, name: object) -> bool:
        return name in self.measures or name in self.user_measures

    def get(self, name: str, default: float = math.nan) -> float:
        """Return a measure by name.

        Parameters
        ----------
        name : str
            Name of the measure.
        default : float, default=NaN
            Value to return if it was not measured.

        Returns
        -------
        float
            The measure.
        """
        return self.measures.get(name, self.user_measures.get(name, default))

    def replace(self, **measures: float) -> FoldResult:
        """Return a copy with other values of some measures.

        Parameters
        ----------
        **measures : float
            Values by name.

        Returns
        -------
        FoldResult
            The copy.
        """
        return self.from_dict(self.to_dict() | measures)


def mean_of(results: Sequence[FoldResult], name: str) -> float:
    """Return the mean of a measure over the folds; NaN if it is undefined on one of them."""
    return math.fsum(result.get(name) for result in results) / len(results)


def read_folds(records: Iterable[Mapping[str, Any]] | None) -> tuple[FoldResult, ...]:
    """Read the results of the folds of a stored trial; none if it was not measured."""
    return tuple(FoldResult.from_dict(record) for record in records or ())


def read_all_rows(record: Mapping[str, Any] | None) -> FoldResult | None:
    """Read the result on all rows of a stored trial; None if it was not measured."""
    return None if record is None else FoldResult.from_dict(record)


#: Weight of all rows in the .632 estimator; the rest is that of held-out rows.
SHARE_OF_ALL_ROWS = 0.368


def mixed(held_out: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Combine measures on held-out rows with those of the rules of all rows, by fixed weights.

    Parameters
    ----------
    held_out : ndarray
        Measures on the held-out rows of each fold.
    on_all_rows : ndarray
        Measures on all rows, in a shape that broadcasts.

    Returns
    -------
    ndarray
        The weighted means.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows measure rules similar to the final ones, with much noise where rows
    are few; all rows measure the final rules, with little noise but optimistically.
    """
    return (1 - SHARE_OF_ALL_ROWS) * held_out + SHARE_OF_ALL_ROWS * on_all_rows


def mixed_score(
    held_out: Mapping[str, np.ndarray],
    on_all_rows: Mapping[str, np.ndarray],
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
) -> np.ndarray:
    """Return scores of combined parts, see :func:`mixed`.

    Parameters
    ----------
    held_out : dict of str to ndarray
        Parts of the score on the held-out rows of each fold, ``size`` included.
    on_all_rows : dict of str to ndarray
        Parts of the score on all rows, in shapes that broadcast.
    score : callable
        Formula of the score; greater is better.

    Returns
    -------
    ndarray
        Scores of the shape of `held_out`.

    Notes
    -----
    The estimator is one of errors. Scores are nonlinear in them (ICE by a sigmoid), so the mean of
    two scores differs from the score of the mean errors; therefore the parts are combined.

    Where a fold has more or fewer rules than the rows in all, the mean size is that of no rule set.
    There the lower one counts: the score of the combined parts or the combined score. So an
    extractor whose number of rules changes with the rows is judged with more caution than one that
    always returns as many. Of two such candidates, the one with fewer rules on a fold may have the
    lower score.
    """
    parts = {name: mixed(values, on_all_rows[name]) for name, values in held_out.items()}
    of_parts, weighed = score(parts), mixed(score(held_out), score(on_all_rows))
    as_many = held_out["size"] == on_all_rows["size"]
    return np.where(as_many, of_parts, np.minimum(of_parts, weighed))
