"""Candidates of a search, limits on them, and their Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, overload

import numpy as np
import optuna
import pandas as pd
from optuna.trial import FrozenTrial, TrialState
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skescore._text import did_you_mean
from skescore._validation import as_numbers, check_choice, check_number
from skescore._views import find_view
from skescore.scorers import (
    COMPLETENESSES,
    ScoreSpec,
    all_weights,
    find_score,
    limited_quantities,
    measured_quantities,
    minimized_quantities,
    minimized_quantity,
)
from skescore.tuning._folds import FoldResult, mean_of, read_all_rows, read_folds, score_632

#: Tolerance for rounding errors.
_TOLERANCE = 1e-9


@dataclass(frozen=True, init=False)
class SearchLimits:
    """Limits that the winner of a search must satisfy.

    Parameters
    ----------
    **values : float, optional
        ``max_rules``, the largest number of rules extracted from all rows or, if these were not
        extracted, the largest mean over the folds; ``min_performance``, the smallest mean
        performance on held-out rows; and the limits of other measured quantities, such as
        ``min_fidelity``.

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
            One number per limit: at most 0 if the candidate satisfies it, infinite if the measure
            is undefined.
        """
        quantities, distances = limited_quantities(), []
        for parameter, value in self.values.items():
            quantity = quantities[parameter]
            mean = mean_of(folds, quantity.name)
            if all_rows is not None and quantity.limit and quantity.limit.of_final_rules:
                mean = float(all_rows.get(quantity.name, mean))
            distance = quantity.sign * (value - mean)
            distances.append(math.inf if math.isnan(distance) else distance)
        return tuple(distances)

    def allow(self, folds: Sequence[FoldResult], all_rows: FoldResult | None = None) -> bool:
        """Return whether a candidate satisfies all limits, apart from rounding errors.

        Parameters
        ----------
        folds, all_rows
            See :meth:`violations`.

        Returns
        -------
        bool
        """
        return all(value <= _TOLERANCE for value in self.violations(folds, all_rows))


#: Columns of a plain table of candidates with their domains.
_TABLE_COLUMNS: dict[str, dict[str, Any]] = {
    "performance": {"high": 1.0},
    "loss": {"low": 0.0},
    "n_rules": {"low": 0.0, "strict": True},
    "completeness": {"low": 0.0, "high": 1.0},
}
_TABLE_REMEDY = "Correct the table, or leave out the row."


@dataclass(frozen=True)
class Candidate:
    """An extractor with hyperparameters and its results on each fold.

    Parameters
    ----------
    extractor : str
        Registered name of the extractor.
    params : dict of str to value
        Hyperparameters.
    trial : int
        Number of the trial in the study of the extractor.
    folds : tuple of FoldResult
        Results on the held-out rows of each fold.
    all_rows : FoldResult, optional
        Result of the rules that were extracted from all rows, on these rows, or the error. By
        default, rules were not extracted from all rows.

    Examples
    --------
    >>> folds = [{"loss": 0.25, "n_rules": 3}, {"loss": 0.75, "n_rules": 2}]
    >>> Candidate.from_measures("cart", {"max_leaf_nodes": 3}, 0, folds).mean("loss")
    0.5
    """

    extractor: str
    params: dict[str, Any]
    trial: int
    folds: tuple[FoldResult, ...] = field(repr=False)
    all_rows: FoldResult | None = field(default=None, repr=False)

    @classmethod
    def from_measures(
        cls,
        extractor: str,
        params: dict[str, Any],
        trial: int,
        folds: Iterable[Mapping[str, Any]],
        all_rows: Mapping[str, Any] | None = None,
    ) -> Candidate:
        """Make a candidate from measures in plain dicts.

        Parameters
        ----------
        extractor, params, trial
            See :class:`Candidate`.
        folds : iterable of dict
            Measures by name, one dict per fold: ``performance``, ``loss``, ``loss_q``,
            ``n_rules``, ``size``, ``completeness_volume``, ``completeness_instances`` and others.
        all_rows : dict, optional
            Measures of the rules of all rows, or ``failure`` with the text of the error.

        Returns
        -------
        Candidate
            The candidate.
        """
        return cls(extractor, params, trial, read_folds(folds), read_all_rows(all_rows))

    def mean(self, name: str) -> float:
        """Return the mean of a measure over the folds.

        Parameters
        ----------
        name : str
            The measure.

        Returns
        -------
        float
            The mean.
        """
        return float(np.mean([float(fold[name]) for fold in self.folds]))


class Candidates(Sequence[Candidate]):
    """Candidates with results on the same folds.

    Parameters
    ----------
    candidates : iterable of Candidate
        The candidates; the first of equally good candidates wins.

    Raises
    ------
    ValueError
        If their numbers of folds differ.

    Examples
    --------
    >>> fold = dict(performance=0.9, loss=0.1, loss_q=0.1, n_rules=3, size=3,
    ...             completeness_volume=1.0, completeness_instances=1.0)
    >>> larger = fold | {"size": 6, "loss": 0.01}
    >>> candidates = Candidates([Candidate.from_measures("cart", {}, 0, [fold]),
    ...                          Candidate.from_measures("cart", {}, 1, [larger])])
    >>> candidates.scores("fire", psi=3).ravel().round(3).tolist()
    [0.106, 0.022]
    """

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._candidates = tuple(candidates)
        fold_counts = {len(candidate.folds) for candidate in self._candidates}
        if len(fold_counts) > 1:
            raise ValueError(
                "candidates must be measured on the same folds, but their numbers of folds are "
                f"{sorted(fold_counts)}. Compare candidates of one search."
            )

    @classmethod
    def from_studies(
        cls, studies: Mapping[str, optuna.Study] | Sequence[optuna.Study] | optuna.Study
    ) -> Candidates:
        """Collect the finished trials of studies that :class:`ExtractorObjective` ran.

        Parameters
        ----------
        studies : dict of str to optuna.Study, sequence of optuna.Study, or optuna.Study
            Studies by extractor. Trials are ignored if they failed, were pruned, repeat an earlier
            trial or have an undefined measure.

        Returns
        -------
        Candidates
            In the order of the studies, then of the trials.
        """
        if isinstance(studies, optuna.Study):
            studies = [studies]
        if not isinstance(studies, Mapping):
            studies = {study.study_name: study for study in studies}
        return cls.from_trials(
            {name: study.get_trials(deepcopy=False) for name, study in studies.items()}
        )

    @classmethod
    def from_trials(cls, trials: Mapping[str, Sequence[FrozenTrial]]) -> Candidates:
        """Collect the finished trials of extractors, see :meth:`from_studies`.

        Parameters
        ----------
        trials : dict of str to sequence of FrozenTrial
            Trials by extractor.

        Returns
        -------
        Candidates
            Candidates in the same order.
        """
        candidates = []
        for extractor_trials in trials.values():
            for trial in extractor_trials:
                attributes = trial.user_attrs
                folds = read_folds(attributes.get("folds"))
                if trial.state != TrialState.COMPLETE or "same_as" in attributes:
                    continue
                if folds and all(map(_is_measured, folds)):
                    params = dict(trial.params)
                    name, all_rows = (
                        attributes["extractor"],
                        read_all_rows(attributes.get("all_rows")),
                    )
                    candidates.append(Candidate(name, params, trial.number, folds, all_rows))
        return cls(candidates)

    @classmethod
    def from_table(cls, table: pd.DataFrame) -> Candidates:
        """Make candidates from a plain table, such as the figures of a paper.

        Parameters
        ----------
        table : DataFrame
            One row per candidate, with the name of the candidate as index. Columns: ``performance``
            (best value 1) or ``loss`` or both, ``n_rules``, and optionally ``completeness`` (a
            share; 1 by default). A missing loss is one minus the performance, and vice versa.

        Returns
        -------
        Candidates
            One candidate per row, measured on a single fold.

        Raises
        ------
        ValueError
            If a column is missing or unknown, or a value is missing or outside its domain.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"performance": [0.9, 0.97], "n_rules": [3, 8]}, ["CART", "ITER"])
        >>> Candidates.from_table(table).scores("ice", rho=1).ravel().round(3).tolist()
        [0.973, 0.924]
        """
        unknown = sorted(set(map(str, table.columns)) - {*_TABLE_COLUMNS})
        if unknown:
            raise ValueError(
                f"candidates has an unknown column {unknown[0]!r}. "
                f"{did_you_mean(unknown[0], _TABLE_COLUMNS)}"
            )
        if "n_rules" not in table or not {"performance", "loss"} & set(table.columns):
            raise ValueError(
                "candidates must have the column 'n_rules' and at least one of 'performance' and "
                f"'loss', got {list(table.columns)}."
            )
        columns = {
            name: as_numbers(
                f"candidates[{name!r}]", table[name], **_TABLE_COLUMNS[name], remedy=_TABLE_REMEDY
            )
            for name in table.columns
        }
        performance = columns.get("performance", 1.0 - columns.get("loss", np.zeros(1)))
        loss = columns.get("loss", 1.0 - performance)
        completeness = columns.get("completeness", np.ones(len(table)))
        candidates = []
        for row, name in enumerate(table.index):
            size = float(columns["n_rules"][row])
            fold = {"performance": float(performance[row]), "n_rules": size, "size": size}
            fold |= dict.fromkeys(("loss", "loss_q"), float(loss[row]))
            fold |= {f"completeness_{kind}": float(completeness[row]) for kind in COMPLETENESSES}
            candidates.append(Candidate.from_measures(str(name), {}, row, [fold]))
        return cls(candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> Candidates: ...
    def __getitem__(self, index: int | slice) -> Candidate | Candidates:
        if isinstance(index, slice):
            return Candidates(self._candidates[index])
        return self._candidates[index]

    def __len__(self) -> int:
        return len(self._candidates)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)}>"

    def _repr_html_(self) -> str:
        return str(find_view("candidates.html")(self))

    def within(self, limits: SearchLimits) -> Candidates:
        """Return the candidates that satisfy the limits.

        Parameters
        ----------
        limits : SearchLimits
            The limits.

        Returns
        -------
        Candidates
            Candidates in the same order.
        """
        return Candidates(c for c in self if limits.allow(c.folds, c.all_rows))

    def measure(self, name: str) -> np.ndarray:
        """Return a measure of every candidate on every fold.

        Parameters
        ----------
        name : str
            Name of the measure, such as ``"loss"``.

        Returns
        -------
        ndarray of float, shape (n_candidates, n_folds)
            Values of the measure.
        """
        rows = [[float(fold[name]) for fold in candidate.folds] for candidate in self]
        return np.array(rows, dtype=float).reshape(len(self), -1)

    def means(self, name: str) -> np.ndarray:
        """Return the mean of a measure over the folds for every candidate.

        Parameters
        ----------
        name : str
            Name of the measure, or ``"incompleteness"``: one minus the completeness by volume.

        Returns
        -------
        ndarray of float, shape (n_candidates,)
            The means.
        """
        if name == "incompleteness":
            return 1.0 - self.means("completeness_volume")
        return self.measure(name).mean(axis=1) if len(self) else np.empty(0)

    def scores(
        self,
        score: str = "ice",
        *,
        completeness: str = "volume",
        **weights: float,
    ) -> np.ndarray:
        """Return the scores of all candidates on each fold for other weights, without extraction.

        Parameters
        ----------
        score : str, default="ice"
            A score of :data:`skescore.scorers.SCORE_SPECS`: ``"ice"`` (greater is better),
            ``"fire"`` or ``"q"`` (smaller is better).
        completeness : {"volume", "instances"}, default="volume"
            How completeness is measured, for ICE and Q.
        **weights : float
            ``psi`` of FiRe, ``phi`` and ``rho`` of ICE; 1 by default. Weights of other scores are
            ignored.

        Returns
        -------
        ndarray of float, shape (n_candidates, n_folds)
            The scores.

        Raises
        ------
        ValueError
            If a name is unknown or a weight out of its range.
        """
        spec = _check_score(score, completeness)
        if not len(self):
            return np.empty((0, 0))
        parts = {name: self.measure(name) for name in spec.parts(completeness)}
        return spec.of_parts(parts, all_weights(weights), completeness)

    def scores_with_all_rows(
        self,
        score: str = "ice",
        *,
        completeness: str = "volume",
        **weights: float,
    ) -> np.ndarray:
        """Return the .632 scores of all candidates on each fold, see :func:`score_632`.

        The winner of a search is selected by these scores.

        Parameters
        ----------
        score, completeness, **weights
            See :meth:`scores`.

        Returns
        -------
        ndarray of float, shape (n_candidates, n_folds)
            The scores; NaN without a result on all rows, and the worst (infinite) where the
            extraction from all rows failed or a measure is undefined.

        Raises
        ------
        ValueError
            If a name is unknown or a weight out of its range, or a size is below 1 and the score
            is FiRe.
        """
        spec = _check_score(score, completeness)
        if not len(self):
            return np.empty((0, 0))
        names = spec.parts(completeness)
        scores = np.full((len(self), len(self[0].folds)), spec.signed(-np.inf))
        scores[[c.all_rows is None for c in self]] = np.nan
        indices = [n for n, c in enumerate(self) if c.all_rows and _is_measured(c.all_rows, names)]
        if indices:
            full_weights = all_weights(weights)
            scores[indices] = spec.signed(
                score_632(
                    {name: self.measure(name)[indices] for name in names},
                    {
                        name: np.array(
                            [[cast(FoldResult, self[n].all_rows)[name]] for n in indices],
                            dtype=float,
                        )
                        for name in names
                    },
                    lambda parts: spec.signed(spec.of_parts(parts, full_weights, completeness)),
                )
            )
        return scores

    def table(self) -> pd.DataFrame:
        """Return the candidates with the means of their measures over the folds.

        Returns
        -------
        pandas.DataFrame
            One row per candidate, in the same order.
        """
        rows = [
            {"extractor": candidate.extractor}
            | {name: candidate.mean(name) for name in measured_quantities(costs=False)}
            | {"params": candidate.params, "trial": candidate.trial}
            for candidate in self
        ]
        return pd.DataFrame(
            rows, columns=["extractor", *measured_quantities(costs=False), "params", "trial"]
        )


def _check_score(score: str, completeness: str) -> ScoreSpec:
    check_choice("completeness", completeness, COMPLETENESSES)
    return find_score(score)


def _is_measured(result: FoldResult, names: Iterable[str] = ()) -> bool:
    """Return whether all measures are defined and there are rules."""
    names = names or measured_quantities(costs=False)
    return all(np.isfinite(result.get(name)) for name in names) and result["size"] > 0


def as_candidates(candidates: Any) -> Candidates:
    """Return the candidates of a search, a list or a table; raise an error if there are none."""
    if isinstance(candidates, BaseEstimator):
        check_is_fitted(candidates)
    if isinstance(candidates, pd.DataFrame):
        candidates = Candidates.from_table(candidates)
    result = getattr(candidates, "candidates_", candidates)
    if not isinstance(result, Candidates):
        if not isinstance(result, Sequence) or not all(isinstance(c, Candidate) for c in result):
            raise TypeError(
                "candidates must be Candidates, a sequence of Candidate, a table or a fitted "
                f"search with candidates_, got {candidates!r}."
            )
        result = Candidates(result)
    if not len(result) or not result[0].folds:
        raise ValueError(
            "candidates must hold at least one candidate that was measured on a fold, got "
            f"{candidates!r}. Fit the search with more trials, or see why those failed."
        )
    return result


_DEFAULT_OBJECTIVES = ("loss", "n_rules", "incompleteness")
#: Differences below this share of an objective's largest value are rounding errors.
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
    In lexicographic order, a point can only be dominated by an earlier one. With two objectives,
    one running minimum suffices after sorting. With more objectives, each point of the front is
    compared with all remaining points.

    Examples
    --------
    >>> pareto_mask([[0.3, 2], [0.1, 4], [0.2, 5], [0.1, 4]]).tolist()
    [True, True, False, False]
    """
    values = _check_losses(losses)
    mask = np.zeros(len(values), dtype=bool)
    points, first_rows = np.unique(values, axis=0, return_index=True)
    if values.shape[1] == 1:
        mask[first_rows[:1]] = True
    elif values.shape[1] == 2:
        running_minimum = np.minimum.accumulate(points[:, 1])
        mask[first_rows[:1]] = True
        mask[first_rows[1:][points[1:, 1] < running_minimum[:-1]]] = True
    else:
        while len(points):
            mask[first_rows[0]] = True
            is_undominated = (points < points[0]).any(axis=1)
            points, first_rows = points[is_undominated], first_rows[is_undominated]
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
    objective.

    Examples
    --------
    >>> hypervolume([[0.5, 2], [0.25, 4]], reference=[1, 8])
    4.0
    """
    values = _check_losses(losses)
    corner = _check_numbers("reference", reference)
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
        return _dominated_area(values, corner)
    levels = np.unique(values[:, 2])
    heights = np.diff(np.append(levels, corner[2]))
    return float(
        sum(
            height * _dominated_area(values[values[:, 2] <= level, :2], corner[:2])
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
    Euclidean distance to 0. Ties are broken by the first objective, then the second, and so on. If
    the front has two points that differ in two objectives, the knee is therefore the point with the
    smaller first objective.
    The range depends on the ends of the front, so the knee is a suggestion, not a property of the
    candidate.

    Examples
    --------
    >>> knee([[0.6, 1], [0.3, 2], [0.05, 3], [0.04, 8], [0.03, 20]])
    2
    """
    values = _check_losses(losses)
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
    objectives: Sequence[str] = _DEFAULT_OBJECTIVES,
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
        ``"black_box_calls"``, ``"black_box_rows"`` and, if they were measured, ``"instability"``
        and the losses of :data:`skescore.scorers.SET_MEASURES`.
    completeness : {"volume", "instances"}, default="volume"
        Completeness as a share of the domain's volume or of the rows.

    Returns
    -------
    pandas.DataFrame
        One row per candidate on the front, fewest rules first: extractor, the objectives,
        ``n_rules``, ``performance``, ``completeness_volume``, ``completeness_instances``,
        ``params``, ``trial`` and whether it is the :func:`knee`. Of candidates that are equal in
        all objectives, only the first is included.

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
    measure_columns = (
        *names,
        "n_rules",
        "performance",
        "completeness_volume",
        "completeness_instances",
    )
    measure_columns = tuple(dict.fromkeys(measure_columns))
    columns = ["extractor", *measure_columns, "params", "trial", "knee"]
    if not isinstance(candidates, Candidates):
        candidates = as_candidates(candidates)
    if not len(candidates):
        return pd.DataFrame(columns=columns).astype({"knee": bool})
    means = {name: _mean_losses(candidates, name, completeness) for name in measure_columns}
    unknown = [name for name in names if not np.isfinite(means[name]).all()]
    if unknown:
        raise ValueError(
            f"objectives {unknown!r} were not measured for every candidate, so they cannot "
            "be compared. Leave them out."
        )
    losses = _round_losses(np.column_stack([means[name] for name in names]))
    rows = np.flatnonzero(pareto_mask(losses))
    front = [candidates[int(row)] for row in rows]
    front_columns: dict[str, Any] = {name: means[name][rows] for name in measure_columns}
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
            f"such as {_DEFAULT_OBJECTIVES!r}, got {objectives!r}. Smaller is better "
            "in all of them: use 'loss' instead of performance, and 'incompleteness' instead of "
            "completeness."
        )
    return names


def _mean_losses(candidates: Candidates, name: str, completeness: str) -> np.ndarray:
    """Return an objective or another measure, averaged over the folds, for each candidate."""
    loss = minimized_quantity(name)
    if loss is None:
        return candidates.means(name)
    measure = f"completeness_{completeness}" if name == "incompleteness" else loss.measure
    return np.asarray(loss.loss_of(candidates.means(measure)))


def _round_losses(losses: np.ndarray) -> np.ndarray:
    """Round each column to multiples of a tiny share of its largest value."""
    largest = np.abs(losses).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0) * _NOISE
    return np.round(losses / unit) * unit


def _dominated_area(points: np.ndarray, corner: np.ndarray) -> float:
    """Return the area that points dominate, up to a corner that they all dominate."""
    front = points[pareto_mask(points)]
    front = front[np.argsort(front[:, 0])]
    depths = -np.diff(np.append(corner[1], front[:, 1]))
    return float(((corner[0] - front[:, 0]) * depths).sum())


def _check_losses(losses: Any) -> np.ndarray:
    values = _check_numbers("losses", losses)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            "losses must be a table with a row per point and at least one column per objective, "
            f"got shape {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError(
            "losses must not hold NaN, which cannot be compared: leave such points out "
            f"({int(np.isnan(values).any(axis=1).sum())} of {len(values)} rows)."
        )
    return values + 0.0  # -0.0 becomes 0.0


def _check_numbers(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {values!r}.") from error
