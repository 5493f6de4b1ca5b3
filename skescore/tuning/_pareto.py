"""Pareto fronts, their hypervolume and their knee."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import check_choice
from skescore.scorers import COMPLETENESSES, minimized_quantities, minimized_quantity
from skescore.tuning._candidates import Candidates, as_candidates

_DEFAULT = ("loss", "n_rules", "incompleteness")
#: Differences below this share of an objective's largest value are rounding of floats.
_NOISE = 1e-12


def pareto_mask(losses: Any) -> np.ndarray:
    """Return which points are on the Pareto front: no other point dominates them.

    A point dominates another one if it is at most as large in all columns and smaller in one.
    :func:`pareto_front` finds the front of the candidates of a search.

    Parameters
    ----------
    losses : array-like of shape (n_points, n_objectives)
        Every column is minimized; negate columns to maximize. Infinite values are allowed.

    Returns
    -------
    ndarray of bool, shape (n_points,)
        True on the front. Of equal points the first is kept.

    Raises
    ------
    ValueError
        If there are no columns, or some value is NaN.

    Notes
    -----
    In lexicographic order a point can only be dominated by an earlier one. Two objectives need
    one running minimum, so sorting dominates the cost. More objectives need one comparison with all
    remaining points per point of the front.

    Examples
    --------
    >>> pareto_mask([[0.3, 2], [0.1, 4], [0.2, 5], [0.1, 4]]).tolist()
    [True, True, False, False]
    """
    values = _losses(losses)
    mask = np.zeros(len(values), dtype=bool)
    points, first = np.unique(values, axis=0, return_index=True)
    if values.shape[1] == 1:
        mask[first[:1]] = True
    elif values.shape[1] == 2:
        running_minimum = np.minimum.accumulate(points[:, 1])
        mask[first[:1]] = True
        mask[first[1:][points[1:, 1] < running_minimum[:-1]]] = True
    else:
        while len(points):
            mask[first[0]] = True
            is_undominated = (points < points[0]).any(axis=1)
            points, first = points[is_undominated], first[is_undominated]
    return mask


def hypervolume(losses: Any, reference: Any) -> float:
    """Return the volume that a front dominates: one number for a whole front.

    Use it to compare fronts of the same data with the same reference; greater is better.

    Parameters
    ----------
    losses : array-like of shape (n_points, n_objectives)
        One, two or three columns, all minimized. Dominated points change nothing.
    reference : array-like of shape (n_objectives,)
        Worst values that count. Points that are not below it in every column are ignored.

    Returns
    -------
    float
        Exact area or volume between the front and the reference; 0 if no point is below it.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is NaN or minus infinity, or the reference is not finite.

    Notes
    -----
    The hypervolume is the volume of the union of all boxes from a point to the reference. With two
    objectives it is the area under a staircase; with three it is summed over slices along the last
    one.

    Examples
    --------
    >>> hypervolume([[0.5, 2], [0.25, 4]], reference=[1, 8])
    4.0
    """
    values = _losses(losses)
    corner = _numbers("reference", reference)
    if corner.shape != (values.shape[1],) or not np.isfinite(corner).all():
        raise ValueError(
            f"reference must be {values.shape[1]} finite numbers, one per objective, "
            f"got {reference!r}."
        )
    if np.isneginf(values).any():
        raise ValueError("losses must be above minus infinity, or their hypervolume is infinite.")
    if values.shape[1] > 3:
        raise ValueError(
            f"losses must have up to 3 objectives, got {values.shape[1]}; leave some out."
        )
    values = values[(values < corner).all(axis=1)]
    values = values[pareto_mask(values)]
    if values.shape[1] == 1:
        return float((corner - values).sum())
    if values.shape[1] == 2:
        return _staircase(values, corner)
    levels = np.unique(values[:, 2])
    heights = np.diff(np.append(levels, corner[2]))
    return float(
        sum(
            height * _staircase(values[values[:, 2] <= level, :2], corner[:2])
            for level, height in zip(levels, heights, strict=True)
        )
    )


def knee(losses: Any) -> int:
    """Return the knee of a front: a compromise between the objectives without weights.

    Parameters
    ----------
    losses : array-like of shape (n_points, n_objectives)
        Every column is minimized. Dominated points are not considered.

    Returns
    -------
    int
        Row of the knee in `losses`.

    Raises
    ------
    ValueError
        If there is no point, or some value is not finite.

    Notes
    -----
    Each objective is scaled to its range on the front, from 0 for the best to 1 for the worst;
    objectives that are constant on the front are ignored. The knee is the point with the smallest
    Euclidean distance to 0. Ties are broken by the first objective, then the second, and so on. Of
    two points that differ in two objectives, the knee is the one with the smaller first objective.
    The range depends on the ends of the front, so the knee is a suggestion, not a property of the
    candidate.

    Examples
    --------
    >>> knee([[0.6, 1], [0.3, 2], [0.05, 3], [0.04, 8], [0.03, 20]])
    2
    """
    values = _losses(losses)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"losses must have at least one point and finite values to have a knee, got {losses!r}."
        )
    rows = np.flatnonzero(pareto_mask(values))
    front = values[rows]
    with np.errstate(over="ignore"):  # values near the largest float are refused below
        low, width = front.min(axis=0), np.ptp(front, axis=0)
    if not np.isfinite(width).all():
        raise ValueError("losses must span a range that a float can hold to have a knee.")
    varies = width > _NOISE * np.abs(front).max(axis=0)
    scaled = (front[:, varies] - low[varies]) / width[varies]
    # Rounded, so that rounding errors do not break ties.
    distance = np.round((scaled**2).sum(axis=1), 12)
    return int(rows[np.lexsort((*front.T[::-1], distance))[0]])


def pareto_front(
    candidates: Any,
    objectives: Sequence[str] = _DEFAULT,
    *,
    completeness: str = "volume",
) -> pd.DataFrame:
    """Return the best trade-offs of a search: the Pareto front of its candidates.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate or fitted search
        Candidates with their results; means over the folds are compared.
    objectives : sequence of str, default=("loss", "n_rules", "incompleteness")
        Objectives to minimize: ``"loss"`` (FiRe's), ``"loss_q"``, ``"n_rules"``, ``"size"`` (as the
        score counts rules), ``"incompleteness"`` (one minus `completeness`),
        ``"incompleteness_instances"`` (one minus the share of rows), ``"seconds"``,
        ``"black_box_calls"``, ``"black_box_rows"``, and of losses of
        :data:`skescore.scorers.SET_MEASURES` and ``"instability"``, if they were measured.
    completeness : {"volume", "instances"}, default="volume"
        Completeness as a share of the domain's volume or of the rows.

    Returns
    -------
    pandas.DataFrame
        One row per candidate on the front, fewest rules first: extractor, the objectives,
        ``n_rules``, ``performance``, ``completeness_volume``, ``completeness_instances``,
        ``params``, ``trial`` and whether it is the :func:`knee`. Of candidates that are equal
        in all objectives the first is included.

    Raises
    ------
    ValueError
        If an objective or kind of completeness is unknown, or an objective was not measured.

    Notes
    -----
    Values that differ by less than 1e-12 of the largest one count as equal.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> fold = dict(performance=0.9, loss=0.1, n_rules=3,
    ...             completeness_volume=1.0, completeness_instances=1.0)
    >>> make = Candidate.from_measures
    >>> candidates = Candidates([
    ...     make("cart", {"max_leaf_nodes": 3}, 0, [fold]),
    ...     make("cart", {"max_leaf_nodes": 4}, 1, [fold | {"n_rules": 4}]),
    ...     make("gridex", {}, 0, [fold | {"n_rules": 2, "loss": 0.3}]),
    ... ])
    >>> pareto_front(candidates)[["extractor", "loss", "n_rules", "knee"]]
      extractor  loss  n_rules   knee
    0    gridex   0.3      2.0  False
    1      cart   0.1      3.0   True
    """
    names = check_objectives(objectives)
    check_choice("completeness", completeness, COMPLETENESSES)
    columns_of_measures = (
        *names,
        "n_rules",
        "performance",
        "completeness_volume",
        "completeness_instances",
    )
    columns_of_measures = tuple(dict.fromkeys(columns_of_measures))
    columns = ["extractor", *columns_of_measures, "params", "trial", "knee"]
    if not isinstance(candidates, Candidates):
        candidates = as_candidates(candidates)
    if not len(candidates):
        return pd.DataFrame(columns=columns).astype({"knee": bool})
    measured = {name: _mean_losses(candidates, name, completeness) for name in columns_of_measures}
    unknown = [name for name in names if not np.isfinite(measured[name]).all()]
    if unknown:
        raise ValueError(
            f"objectives {unknown!r} were not measured for every candidate, so they cannot "
            "be compared. Leave them out."
        )
    losses = _without_noise(np.column_stack([measured[name] for name in names]))
    rows = np.flatnonzero(pareto_mask(losses))
    front = [candidates[int(row)] for row in rows]
    front_columns: dict[str, Any] = {name: measured[name][rows] for name in columns_of_measures}
    front_columns |= {
        "extractor": [candidate.extractor for candidate in front],
        "params": [dict(candidate.params) for candidate in front],
        "trial": [candidate.trial for candidate in front],
        "knee": np.arange(len(rows)) == knee(losses[rows]),
    }
    table = pd.DataFrame(front_columns)
    order = list(dict.fromkeys(("n_rules", *names)))
    return table.sort_values(order, kind="stable").reset_index(drop=True)[columns]


def check_objectives(objectives: Any) -> tuple[str, ...]:
    """Return the objectives as a tuple; raise an error unless they are different known names."""
    is_list = isinstance(objectives, Sequence) and not isinstance(objectives, str)
    names = tuple(objectives) if is_list else ()
    are_known = all(isinstance(name, str) and minimized_quantity(name) for name in names)
    if not names or not are_known or len(set(names)) < len(names):
        raise ValueError(
            f"objectives must be a sequence of different names of {list(minimized_quantities())}, "
            f"such as {_DEFAULT!r}, got {objectives!r}. Less is better in all of them: take 'loss' "
            "for performance, 'incompleteness' for completeness."
        )
    return names


def _mean_losses(candidates: Candidates, name: str, completeness: str) -> np.ndarray:
    """Return the mean of an objective over the folds, or of another measure."""
    loss = minimized_quantity(name)
    if loss is None:
        return candidates.means(name)
    measure = f"completeness_{completeness}" if name == "incompleteness" else loss.measure
    return np.asarray(loss.loss_of(candidates.means(measure)))


def _without_noise(losses: np.ndarray) -> np.ndarray:
    """Round the losses to twelve digits of the largest one in each column."""
    largest = np.abs(losses).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0) * _NOISE
    return np.round(losses / unit) * unit


def _staircase(points: np.ndarray, corner: np.ndarray) -> float:
    """Return the area between points and a corner above all of them."""
    front = points[pareto_mask(points)]
    front = front[np.argsort(front[:, 0])]
    depths = -np.diff(np.append(corner[1], front[:, 1]))
    return float(((corner[0] - front[:, 0]) * depths).sum())


def _losses(losses: Any) -> np.ndarray:
    values = _numbers("losses", losses)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            "losses must be a table with a row per point and at least one column per objective, "
            f"got shape {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError(
            "losses must not hold NaN, which compares with nothing: leave such points out "
            f"({int(np.isnan(values).any(axis=1).sum())} of {len(values)} rows)."
        )
    return values + 0.0  # the two zeros are one value


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {values!r}.") from error
