"""What models answer on the pixels of a plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skescore.plots._features import Side, feature_index
from skescore.rules import Fallback, RuleSet
from skescore.rules._columns import Table

#: Numbers that are in memory at a time; a picture of a thousand features has many millions.
_AT_A_TIME = 2_000_000


@dataclass(frozen=True)
class Answers:
    """What a model answers on each pixel.

    Parameters
    ----------
    values : ndarray
        The answers.
    covered : ndarray of bool
        Whether a rule answers; True for a model without rules.
    known : ndarray of bool
        Whether there is an answer at all.
    """

    values: np.ndarray
    covered: np.ndarray
    known: np.ndarray

    def labels(self) -> list[Any]:
        """The different answers."""
        return list(dict.fromkeys(self.values[self.known].tolist()))


def rows_of_plane(
    X: Any,
    table: Table,
    names: Sequence[str],
    sides: tuple[Side, Side],
    others: Mapping[Any, Any] | None,
    resolution: int,
) -> Callable[[], Iterator[Any]]:
    """Make the rows of all pixels, a lot at a time, in the container that X came in.

    Parameters
    ----------
    X : array-like or DataFrame
        The caller's rows.
    table : Table
        The same.
    names : sequence of str
        Names of all features.
    sides : (Side, Side)
        The features that change, of the x axis and the y axis.
    others : mapping or None
        Values of other features.
    resolution : int
        Pixels along an axis of numbers.

    Returns
    -------
    callable
        Gives the lots anew each time, the pixels of the lowest line first.
    """
    fixed = _fixed_values(table, names, sides, others)
    at = [side.at(side.centres(resolution)) for side in sides]
    x, y = np.tile(at[0], len(at[1])), np.repeat(at[1], len(at[0]))
    lot = max(1000, _AT_A_TIME // max(1, len(names)))
    chosen = {sides[0].feature: x, sides[1].feature: y}

    def lots() -> Iterator[Any]:
        for start in range(0, len(x), lot):
            rows = slice(start, min(start + lot, len(x)))
            n = rows.stop - start
            columns = [
                chosen[j][rows] if j in chosen else _repeated(fixed[j], n)
                for j in range(len(names))
            ]
            yield _container(X, columns, names)

    return lots


def answers_of(
    model: Any, lots: Callable[[], Iterator[Any]], *, rules_known: RuleSet | None
) -> Answers:
    """Ask a model about all pixels.

    Parameters
    ----------
    model : estimator, RuleSet or callable
        The model.
    lots : callable
        Gives the rows.
    rules_known : RuleSet or None
        Its rules, if it is made of rules.

    Returns
    -------
    Answers
        For every pixel.
    """
    asked = model
    silent = False
    if isinstance(model, RuleSet) and model.fallback is None and len(model):
        # predict needs some answer where no rule holds; it is not shown.
        stand_in = 0.0 if model.task == "regression" else (model.classes or (None,))[0]
        asked, silent = model.replace(fallback=Fallback(stand_in)), True
    predict = asked.predict if hasattr(asked, "predict") else asked
    values, covered = [], []
    for rows in lots():
        answers = np.asarray(predict(rows))
        if answers.shape != (len(rows),):
            raise ValueError(
                f"{type(model).__name__} must answer one value per row, shape ({len(rows)},), got "
                f"{answers.shape}."
            )
        values.append(answers)
        n = len(rows)
        covered.append(np.ones(n, bool) if rules_known is None else rules_known.covers(rows))
    joined = np.concatenate(values)
    held = np.concatenate(covered)
    known = held.copy() if silent else np.ones(len(held), bool)
    if joined.dtype.kind == "f":
        known &= ~np.isnan(joined)  # a rule set that abstains
    return Answers(joined, held, known)


def _fixed_values(
    table: Table, names: Sequence[str], sides: tuple[Side, Side], others: Mapping[Any, Any] | None
) -> list[Any]:
    values: list[Any] = []
    for j in range(len(names)):
        column = table.column(j)
        if column.dtype.kind in "OUSTb":
            found = pd.Series(column).dropna().mode()
            values.append(found.iloc[0] if len(found) else None)
        else:
            numbers = column[np.isfinite(column)]
            values.append(float(np.median(numbers)) if len(numbers) else 0.0)
    for feature, value in (others or {}).items():
        j = feature_index(feature, names)
        if j in (sides[0].feature, sides[1].feature):
            raise ValueError(
                f"others must not name a feature of the picture, got {feature!r}, which is drawn."
            )
        values[j] = value
    return values


def _repeated(value: Any, n: int) -> np.ndarray:
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        return np.full(n, float(value))
    column = np.empty(n, dtype=object)
    column[:] = [value] * n
    return column


def _container(X: Any, columns: list[np.ndarray], names: Sequence[str]) -> Any:
    if not hasattr(X, "columns"):
        if all(column.dtype.kind == "f" for column in columns):
            return np.column_stack(columns)
        return np.column_stack([column.astype(object) for column in columns])
    kinds: Any = getattr(X, "dtypes", None)
    made = {}
    labels = list(X.columns)
    for j, column in enumerate(columns):
        kind = kinds.iloc[j] if hasattr(kinds, "iloc") else None
        series = pd.Series(column)
        # Text and categories keep their type, or encoders would not know them; numbers are floats.
        if column.dtype == object and kind is not None:
            series = series.astype(kind)
        made[labels[j]] = series
    return pd.DataFrame(made)
