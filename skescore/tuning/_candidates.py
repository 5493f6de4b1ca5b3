"""Candidates of a search with their measures, so that they can be scored with any weights."""

from __future__ import annotations

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
from skescore._validation import as_numbers, check_choice
from skescore._views import find_view
from skescore.scorers import COMPLETENESSES, ScoreSpec, all_weights, find_score, measured_quantities
from skescore.tuning._fold_result import FoldResult, mixed_score, read_all_rows, read_folds
from skescore.tuning._limits import SearchLimits

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
        Its registered name.
    params : dict of str to value
        Hyperparameters.
    trial : int
        Number of the trial in the study of the extractor.
    folds : tuple of FoldResult
        Results on the held-out rows of each fold.
    all_rows : FoldResult or None
        Result of the rules that were extracted from all rows, on these rows, or the error; None if
        that was not tried.

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
        Candidates; of equally good ones the earlier wins.

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
        numbers = {len(candidate.folds) for candidate in self._candidates}
        if len(numbers) > 1:
            raise ValueError(
                "candidates must be measured on the same folds, but their numbers of folds are "
                f"{sorted(numbers)}. Compare candidates of one search."
            )

    @classmethod
    def from_studies(
        cls, studies: Mapping[str, optuna.Study] | Sequence[optuna.Study] | optuna.Study
    ) -> Candidates:
        """Collect the finished trials of studies that :class:`ExtractorObjective` ran.

        Parameters
        ----------
        studies : dict of str to optuna.Study, sequence of them, or one
            Studies by extractor. Trials are ignored if they failed, were pruned, repeat an earlier
            one or have an undefined measure.

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
            By extractor.

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
        share = columns.get("completeness", np.ones(len(table)))
        candidates = []
        for row, name in enumerate(table.index):
            size = float(columns["n_rules"][row])
            fold = {"performance": float(performance[row]), "n_rules": size, "size": size}
            fold |= dict.fromkeys(("loss", "loss_q"), float(loss[row]))
            fold |= {f"completeness_{kind}": float(share[row]) for kind in COMPLETENESSES}
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
        """Return the candidates that keep the limits.

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
            A score of :data:`skescore.scorers.SCORE_SPECS`: ``"ice"``, of which greater is better,
            ``"fire"`` or ``"q"``, of which smaller is.
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
        spec = _checked_score(score, completeness)
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
        """Return the .632 scores of all candidates on each fold, see :func:`mixed_score`.

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
        spec = _checked_score(score, completeness)
        if not len(self):
            return np.empty((0, 0))
        names = spec.parts(completeness)
        scores = np.full((len(self), len(self[0].folds)), spec.signed(-np.inf))
        scores[[c.all_rows is None for c in self]] = np.nan
        measured_indices = [
            n for n, c in enumerate(self) if c.all_rows and _is_measured(c.all_rows, names)
        ]
        if measured_indices:
            full_weights = all_weights(weights)
            scores[measured_indices] = spec.signed(
                mixed_score(
                    {name: self.measure(name)[measured_indices] for name in names},
                    {
                        name: np.array(
                            [[cast(FoldResult, self[n].all_rows)[name]] for n in measured_indices],
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


def _checked_score(score: str, completeness: str) -> ScoreSpec:
    check_choice("completeness", completeness, COMPLETENESSES)
    return find_score(score)


def _is_measured(result: FoldResult, names: Iterable[str] = ()) -> bool:
    """Return whether all measures are defined and there are rules, so that scores are defined."""
    names = names or measured_quantities(costs=False)
    return all(np.isfinite(result.get(name)) for name in names) and result["size"] > 0


def as_candidates(candidates: Any) -> Candidates:
    """Return the candidates of a search or a list; raise an error if there are none."""
    if isinstance(candidates, BaseEstimator):
        check_is_fitted(candidates)
    if isinstance(candidates, pd.DataFrame):
        candidates = Candidates.from_table(candidates)
    checked_candidates = getattr(candidates, "candidates_", candidates)
    if not isinstance(checked_candidates, Candidates):
        if not isinstance(checked_candidates, Sequence) or not all(
            isinstance(c, Candidate) for c in checked_candidates
        ):
            raise TypeError(
                "candidates must be Candidates, a sequence of Candidate, a table or a fitted "
                f"search with candidates_, got {candidates!r}."
            )
        checked_candidates = Candidates(checked_candidates)
    if not len(checked_candidates) or not checked_candidates[0].folds:
        raise ValueError(
            "candidates must hold at least one candidate that was measured on a fold, got "
            f"{candidates!r}. Fit the search with more trials, or see why those failed."
        )
    return checked_candidates
