"""Every candidate of a search with what was measured of it, so that any weights can judge it."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
import optuna
import pandas as pd
from optuna.trial import FrozenTrial, TrialState
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skescore._text import did_you_mean, plural
from skescore._validation import check_choice, check_number
from skescore.registry import extractor_label
from skescore.rules import RuleSet
from skescore.scorers import (
    COMPLETENESSES,
    SET_SCORERS,
    PerformanceScorer,
    RuleScorer,
    ScoreSpec,
    get_rule_scorer,
)
from skescore.scorers._evaluation import SIZES
from skescore.scorers._set_measures import SET_AXES, loss_of
from skescore.scorers._specs import all_weights, find_score, measured_names


def _loss_of_set(axis: str, folds: list[dict[str, Any]]) -> float:
    return float(loss_of(axis, mean_of(folds, SET_AXES[axis].scorer_name)))


#: Measures that a search of the whole trade-off may minimize, from the results on the folds.
OBJECTIVES: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "loss": lambda folds: mean_of(folds, "loss"),
    "loss_q": lambda folds: mean_of(folds, "loss_q"),
    "n_rules": lambda folds: mean_of(folds, "n_rules"),
    "size": lambda folds: mean_of(folds, "size"),
    "incompleteness": lambda folds: 1.0 - mean_of(folds, "completeness_volume"),
    "incompleteness_instances": lambda folds: 1.0 - mean_of(folds, "completeness_instances"),
    **{axis: functools.partial(_loss_of_set, axis) for axis in SET_AXES},
}


@dataclass(frozen=True)
class SearchObjective:
    """What candidates are compared by.

    Parameters
    ----------
    scorer : callable
        Gives the score of a candidate on held-out rows; greater is better.
    name : str
        What to call that score.
    minimized : tuple of str, default=()
        Names of ``OBJECTIVES`` to minimize together; none to maximize the score.
    """

    scorer: Any
    name: str
    minimized: tuple[str, ...] = ()

    @classmethod
    def of(cls, scoring: Any, choose_by: Any = "ice") -> SearchObjective:
        """Read the parameter `scoring`.

        Parameters
        ----------
        scoring : str, callable or sequence of str
            A score, or the names of measures to minimize together.
        choose_by : str or callable, default="ice"
            The score that is kept beside several measures.

        Raises
        ------
        TypeError, ValueError
            If it is unknown, or is known to give several numbers.
        """
        if isinstance(scoring, str) or not isinstance(scoring, Sequence):
            scorer = check_scoring(scoring)
            return cls(scorer, name_of(scoring, scorer))
        names = tuple(scoring)
        for name in names:
            if name not in OBJECTIVES:
                raise ValueError(
                    f"scoring names {name!r}, which is no measure to minimize. "
                    f"{did_you_mean(str(name), OBJECTIVES)} A single score is given by its name "
                    "alone: scoring='ice'."
                )
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(
                "scoring must be one score, or at least two different measures such as "
                f"('loss', 'n_rules', 'incompleteness'), got {scoring!r}."
            )
        scorer = check_scoring(choose_by)
        return cls(scorer, name_of(choose_by, scorer), names)

    @property
    def measures(self) -> dict[str, RuleScorer]:
        """Scorers of rule sets that the values of a trial come from."""
        names = [SET_AXES[axis].scorer_name for axis in self.minimized if axis in SET_AXES]
        return {name: SET_SCORERS[name] for name in names}

    @property
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        """Directions of an Optuna study after it."""
        return ["minimize" for _ in self.minimized] or ["maximize"]

    @property
    def metric_names(self) -> list[str]:
        """What to call the values of a trial."""
        return list(self.minimized) or [self.name]

    @property
    def weighs_size(self) -> bool:
        """Whether it looks at how many rules there are; measures of predictions do not."""
        return bool(self.minimized) or not isinstance(self.scorer, PerformanceScorer)

    @property
    def shown(self) -> str:
        """The scorer as text, the same in every process."""
        if isinstance(self.scorer, RuleScorer):
            return repr(self.scorer)
        kind = self.scorer if hasattr(self.scorer, "__qualname__") else type(self.scorer)
        return f"{kind.__module__}.{kind.__qualname__}"

    @property
    def best_possible(self) -> float | None:
        """The greatest score that any rules can have on a fold; None if that is not known."""
        spec = spec_of(self.scorer)
        if spec is None:
            return None
        settings = self.scorer.settings
        # A size of the caller's own may be below one.
        best = float(spec.signed(spec.best(settings, any_size=settings["size"] not in SIZES)))
        return float(settings["undefined"]) if settings["undefined"] > best else best

    def with_all_rows(
        self, folds: Sequence[Mapping[str, Any]], all_rows: Mapping[str, Any] | None
    ) -> np.ndarray:
        """Score what was measured on each fold, weighed with the rules of all rows on these rows.

        Parameters
        ----------
        folds : sequence of dict
            Score and measures on the held-out rows of each fold.
        all_rows : dict or None
            The same on all rows, or why there are none; None if that was not tried.

        Returns
        -------
        ndarray of float, shape (n_folds,)
            Greater is better; NaN where nothing was measured on all rows, and minus infinity where
            there are no rules of all rows. What scores are made of is weighed where that is known,
            see :func:`mixed_score`, else the scores themselves.
        """
        if all_rows is None:
            return np.full(len(folds), np.nan)
        on_all_rows = float(all_rows.get("score", np.nan))
        if np.isnan(on_all_rows):
            return np.full(len(folds), -np.inf)
        scores = np.array([fold["score"] for fold in folds], dtype=float)
        with np.errstate(invalid="ignore"):  # of infinite scores of the caller's own
            found = mixed(scores, np.array(on_all_rows))
        found[np.isnan(found)] = -np.inf
        of_parts = score_of_parts(self.scorer)
        if of_parts is None:
            return found
        names, score = of_parts
        held_out, rest = (
            {n: np.array([one.get(n, np.nan) for one in some], float) for n in names}
            for some in (folds, [all_rows])
        )
        # Elsewhere a score is made of something else, such as a number that stands in for it.
        follows = _follows(score, held_out, scores)
        follows &= _follows(score, rest, np.array([on_all_rows]))
        if follows.any():
            held_out = {name: values[follows] for name, values in held_out.items()}
            found[follows] = mixed_score(held_out, rest, score)
        return found

    def values(self, folds: list[dict[str, Any]]) -> tuple[float, ...]:
        """The values of a trial, of which some may be NaN."""
        if not self.minimized:
            return (mean_of(folds, "score"),)
        return tuple(OBJECTIVES[name](folds) for name in self.minimized)


def spec_of(scorer: Any) -> ScoreSpec | None:
    """The row of a scorer's score; None of a scorer that has none."""
    return scorer.spec if isinstance(scorer, RuleScorer) else None


def score_of_parts(
    scorer: Any,
) -> tuple[tuple[str, ...], Callable[[Mapping[str, np.ndarray]], np.ndarray]] | None:
    """What a score is made of and how, greater being better; None if that is not known."""
    spec = spec_of(scorer)
    if spec is None:
        return None
    completeness = scorer.settings.get("completeness", "volume")
    if completeness not in COMPLETENESSES:
        return None

    def score(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(spec.signed(spec.of_parts(parts, scorer.settings, completeness)))

    return spec.parts(completeness), score


def _follows(
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
    parts: Mapping[str, np.ndarray],
    scores: np.ndarray,
) -> np.ndarray:
    """Where the parts give these scores."""
    known = np.all([np.isfinite(values) for values in parts.values()], axis=0)
    if known.any():
        again = score({name: values[known] for name, values in parts.items()})
        known[known] = np.isclose(again, scores[known], rtol=1e-9, atol=0)
    return known


def check_scoring(scoring: Any) -> Any:
    """Turn a name into a scorer of one number."""
    if isinstance(scoring, Mapping) and len(scoring) != 1:
        raise ValueError(
            f"scoring must hold one score, {{'name': scorer}}, got {list(scoring)}. Pass the "
            "others as measures."
        )
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores(scorer)
    return scorer


def name_of(scoring: Any, scorer: Any) -> str:
    """What to call a score that was given as a name or a scorer."""
    if isinstance(scoring, str | Mapping):
        return scoring if isinstance(scoring, str) else str(next(iter(scoring)))
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or "score")


def several_scores(scorer: Any) -> TypeError:
    """The error for a scorer that gives a dict where candidates must be put in one order."""
    return TypeError(
        f"scoring must give one number per candidate, but {scorer!r} gives a dict: choose one of "
        "its scores, for example scoring='ice'."
    )


def mean_of(results: Sequence[Mapping[str, Any]], name: str) -> float:
    """Average of a measure over the folds; NaN if it is undefined on one of them."""
    return math.fsum(result.get(name, math.nan) for result in results) / len(results)


@dataclass(frozen=True)
class Limits:
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
    >>> Limits(max_rules=4).violations(folds)
    (0.5,)
    >>> Limits(max_rules=4).allow(folds, {"n_rules": 4})
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


#: Share of all rows in what candidates are judged by, the rest being that of held-out rows; see
#: :func:`mixed`.
SHARE_OF_ALL_ROWS = 0.368


def mixed(held_out: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Weigh what was measured on held-out rows with the same of the rules of all rows, on these.

    Parameters
    ----------
    held_out : ndarray
        On the held-out rows of each fold.
    on_all_rows : ndarray
        On all rows, of a shape that fits.

    Returns
    -------
    ndarray
        The weighted means.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows judge rules like those that one will get, with much noise where rows
    are few; all rows judge the rules themselves, with little noise, but too favorably.
    """
    return (1 - SHARE_OF_ALL_ROWS) * held_out + SHARE_OF_ALL_ROWS * on_all_rows


def mixed_score(
    held_out: Mapping[str, np.ndarray],
    on_all_rows: Mapping[str, np.ndarray],
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
) -> np.ndarray:
    """Score held-out rows and all rows together, see :func:`mixed`.

    Parameters
    ----------
    held_out : dict of str to ndarray
        What the score is made of, ``size`` among it, on the held-out rows of each fold.
    on_all_rows : dict of str to ndarray
        The same on all rows, of shapes that fit.
    score : callable
        Gives the score of parts; greater is better.

    Returns
    -------
    ndarray
        Scores of the shape of `held_out`.

    Notes
    -----
    The estimator is one of errors. Scores bend them (ICE by a sigmoid), so that the mean of two
    scores is another number than the score of the mean errors; hence the parts are weighed.

    But where a fold has more or fewer rules than there are of all rows, they are other rules:
    nobody will ever get the number between, nor one of the two with the mean errors of both. There
    the lower one counts, the score of the weighed parts or the weighed score. So an extractor whose
    number of rules changes with the rows is judged with more caution than one that always gives as
    many; of two such candidates, the one with fewer rules on a fold may come out lower.
    """
    parts = {name: mixed(values, on_all_rows[name]) for name, values in held_out.items()}
    of_parts, weighed = score(parts), mixed(score(held_out), score(on_all_rows))
    as_many = held_out["size"] == on_all_rows["size"]
    return np.where(as_many, of_parts, np.minimum(of_parts, weighed))


def judged(scores: np.ndarray, with_all_rows: np.ndarray) -> np.ndarray:
    """Give what candidates are judged by: held-out rows and all rows, if all rows are known.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        On the held-out rows of each fold; greater is better.
    with_all_rows : ndarray of shape (n_candidates, n_folds)
        The same, weighed with all rows by :func:`mixed_score`; NaN where nothing was measured on
        all rows, minus infinity where there are no rules of all rows.

    Returns
    -------
    ndarray of shape (n_candidates, n_folds)
        These scores. Candidates that were not measured on all rows have minus infinity if each of
        them is equalled on every fold by one that was; else all have their `scores`. Those without
        rules of all rows never win.
    """
    failed = np.asarray(np.isneginf(with_all_rows).any(axis=1))
    unknown = np.asarray(np.isnan(with_all_rows).any(axis=1))
    known = ~failed & ~unknown
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    # What is infinite on a fold does not win anyway.
    for place in np.flatnonzero(unknown & np.isfinite(scores).all(axis=1)):
        if not (scores[known] >= scores[place] - noise).all(axis=1).any():
            return np.where(failed[:, np.newaxis], -np.inf, scores)
    if not known.any():  # nothing has rules of all rows
        return scores
    return np.where(known[:, np.newaxis], with_all_rows, -np.inf)


def choose_winner(
    scores: np.ndarray, size: np.ndarray, queries: np.ndarray, standard_errors: float
) -> int:
    """Choose a candidate: the smallest of those that are as good as the best, as far as one knows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        How much there is to read.
    queries : ndarray of shape (n_candidates,)
        Rows on which the black box was queried; undefined ones count as infinitely many.
    standard_errors : float
        Candidates whose mean is less than so many standard errors (of the differences on the
        folds) below the best count as good as it.

    Returns
    -------
    int
        Of equally small candidates the one with the best mean, then the one that queried least,
        then the first.

    Notes
    -----
    After the one-standard-error rule of Breiman et al. (Classification and Regression Trees, 1984),
    with the paired differences of the same folds. The best of many candidates owes part of its
    score to luck; the smallest of those that are no worse by more than chance owes less.
    """
    near = within(scores, standard_errors)
    keys = np.nan_to_num(queries, nan=np.inf), -_rounded(scores.mean(axis=1)), size.round(9)
    return int(near[np.lexsort([key[near] for key in keys])[0]])


def within(scores: np.ndarray, standard_errors: float) -> np.ndarray:
    """Give the places of the candidates that are as good as the best, see :func:`choose_winner`."""
    places = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(places):  # scores of one's own may be infinite
        return np.array([np.nan_to_num(scores.sum(axis=1), nan=-np.inf).argmax()])
    scores = scores[places]
    means = scores.mean(axis=1)
    best = int(_rounded(means).argmax())
    behind = scores[best] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    noise = 1e-12 * max(1.0, abs(means[best]))
    return places[means[best] - means <= standard_errors * error + noise]


def _rounded(means: np.ndarray) -> np.ndarray:
    """Means without their last bits, which hang on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale


@dataclass(frozen=True)
class Candidate:
    """An extractor with some hyper-parameters, and what was measured on each fold.

    Parameters
    ----------
    extractor : str
        Its registered name.
    params : dict of str to value
        Hyper-parameters.
    trial : int
        Number of the trial in the study of the extractor.
    folds : tuple of dict
        Per fold: ``performance``, ``loss``, ``loss_q``, ``n_rules``, ``size``,
        ``completeness_volume``, ``completeness_instances`` and whatever else was kept.
    all_rows : dict or None
        The same of the rules that were extracted from all rows, on these rows, or why there are
        none (``failure``); None if that was not tried.

    Examples
    --------
    >>> fold = {"loss": 0.25, "n_rules": 3}
    >>> folds = (fold, {"loss": 0.75, "n_rules": 2})
    >>> Candidate("cart", {"max_leaf_nodes": 3}, 0, folds).mean("loss")
    0.5
    """

    extractor: str
    params: dict[str, Any]
    trial: int
    folds: tuple[dict[str, Any], ...] = field(repr=False)
    all_rows: dict[str, Any] | None = field(default=None, repr=False)

    def mean(self, name: str) -> float:
        """Average of a measure over the folds.

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


#: So many candidates are shown in a notebook.
_SHOWN = 20


class Candidates(Sequence[Candidate]):
    """Candidates that were measured on the same folds.

    Parameters
    ----------
    candidates : iterable of Candidate
        In the order in which ties are broken: of equally good ones the earlier wins.

    Raises
    ------
    ValueError
        If they were not measured on the same number of folds.

    Examples
    --------
    >>> fold = dict(performance=0.9, loss=0.1, loss_q=0.1, n_rules=3, size=3,
    ...             completeness_volume=1.0, completeness_instances=1.0)
    >>> found = Candidates([Candidate("cart", {}, 0, (fold,)),
    ...                     Candidate("cart", {}, 1, (fold | {"size": 6, "loss": 0.01},))])
    >>> found.scores("fire", psi=3).ravel().round(3).tolist()
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
            Studies by extractor. Trials that failed, were pruned, repeat an earlier one or hold a
            measure that is undefined are left out.

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
            In their order.
        """
        found = []
        for some in trials.values():
            for trial in some:
                kept = trial.user_attrs
                folds = kept.get("folds", ())
                if trial.state != TrialState.COMPLETE or "same_as" in kept:
                    continue
                if folds and all(map(_is_measured, folds)):
                    params = dict(trial.params)
                    name, all_rows = kept["extractor"], kept.get("all_rows")
                    found.append(Candidate(name, params, trial.number, tuple(folds), all_rows))
        return cls(found)

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
        first = f"the first {_SHOWN} of " if len(self) > _SHOWN else ""
        heading = f"{first}{plural(len(self), 'candidate')}, means over the folds"
        return records_html(self.table().head(_SHOWN), heading)

    def within(self, limits: Limits) -> Candidates:
        """Give the candidates that keep to limits.

        Parameters
        ----------
        limits : Limits
            What they have to keep to.

        Returns
        -------
        Candidates
            In their order.
        """
        return Candidates(c for c in self if limits.allow(c.folds, c.all_rows))

    def measure(self, name: str) -> np.ndarray:
        """Give a measure of every candidate on every fold.

        Parameters
        ----------
        name : str
            Such as ``"loss"``.

        Returns
        -------
        ndarray of float, shape (n_candidates, n_folds)
            The numbers.
        """
        rows = [[float(fold[name]) for fold in candidate.folds] for candidate in self]
        return np.array(rows, dtype=float).reshape(len(self), -1)

    def means(self, name: str) -> np.ndarray:
        """Give the mean of a measure over the folds, for every candidate.

        Parameters
        ----------
        name : str
            Such as ``"loss"``, or ``"incompleteness"``: one minus completeness by volume.

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
        """Score every candidate on every fold with some weights, without another extraction.

        Parameters
        ----------
        score : str, default="ice"
            A score of :data:`skescore.scorers.SCORE_SPECS`: ``"ice"``, of which greater is better,
            ``"fire"`` or ``"q"``, of which smaller is.
        completeness : {"volume", "instances"}, default="volume"
            How completeness is measured, for ICE and Q.
        **weights : float
            ``psi`` of FiRe, ``phi`` and ``rho`` of ICE; 1 where none is given. Those of other
            scores are not looked at.

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
        """Score what was measured on each fold, weighed with the rules of all rows on these rows.

        Candidates are judged by it, see :func:`skescore.tuning.mixed_score`.

        Parameters
        ----------
        score, completeness, **weights
            As of :meth:`scores`.

        Returns
        -------
        ndarray of float, shape (n_candidates, n_folds)
            The scores; NaN where nothing was measured on all rows, and the worst (infinite) where
            there are no rules of all rows or a measure of them is undefined.

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
        found = np.full((len(self), len(self[0].folds)), spec.signed(-np.inf))
        found[[c.all_rows is None for c in self]] = np.nan
        known = [n for n, c in enumerate(self) if c.all_rows and _is_measured(c.all_rows, names)]
        if known:
            given = all_weights(weights)
            found[known] = spec.signed(
                mixed_score(
                    {name: self.measure(name)[known] for name in names},
                    {
                        name: np.array(
                            [[(self[n].all_rows or {})[name]] for n in known], dtype=float
                        )
                        for name in names
                    },
                    lambda parts: spec.signed(spec.of_parts(parts, given, completeness)),
                )
            )
        return found

    def table(self) -> pd.DataFrame:
        """Show the candidates with the means over the folds.

        Returns
        -------
        pandas.DataFrame
            One row per candidate, in their order.
        """
        rows = [
            {"extractor": candidate.extractor}
            | {name: candidate.mean(name) for name in measured_names()}
            | {"params": candidate.params, "trial": candidate.trial}
            for candidate in self
        ]
        return pd.DataFrame(rows, columns=["extractor", *measured_names(), "params", "trial"])


def _checked_score(score: str, completeness: str) -> ScoreSpec:
    check_choice("completeness", completeness, COMPLETENESSES)
    return find_score(score)


def _is_measured(fold: Mapping[str, Any], names: Iterable[str] = ()) -> bool:
    # No rule, no size, no score: such a fold cannot be judged by any weights.
    names = names or measured_names()
    return all(np.isfinite(fold.get(name, np.nan)) for name in names) and fold["size"] > 0


def as_candidates(candidates: Any) -> Candidates:
    """Candidates of a search or a list; at least one, with a fold at least."""
    if isinstance(candidates, BaseEstimator):
        check_is_fitted(candidates)
    found = getattr(candidates, "candidates_", candidates)
    if not isinstance(found, Candidates):
        if not isinstance(found, Sequence) or not all(isinstance(c, Candidate) for c in found):
            raise TypeError(
                "candidates must be Candidates, a sequence of Candidate or a fitted search with "
                f"candidates_, got {candidates!r}."
            )
        found = Candidates(found)
    if not len(found) or not found[0].folds:
        raise ValueError(
            "candidates must hold at least one candidate that was measured on a fold, got "
            f"{candidates!r}. Fit the search with more trials, or see why those failed."
        )
    return found


# --- candidates and searches as HTML for notebooks ------------------------------------------------

# Colors are those of the notebook, so that dark ones stay dark; all texts are escaped.

_SHOWN_OF_SEARCH = 10
_CELL = "text-align:left;padding:.2em .8em .2em 0;border-bottom:1px solid rgba(128,128,128,.35)"
_NUMBER = _CELL.replace("left", "right", 1)
_TABLE = "border-collapse:collapse;margin:.3em 0 .8em 0;background:transparent;color:inherit"
_CAPTION = "text-align:left;color:inherit"
_OUTCOME = ["extractor", "score", "n_rules", "loss", "completeness_volume"]
_COLUMNS = {
    "score": ("score", 4),
    "performance": ("performance", 3),
    "loss": ("loss", 3),
    "n_rules": ("rules", 1),
    "completeness_volume": ("c volume", 3),
    "completeness_instances": ("c rows", 3),
}


def search_html(rules: RuleSet, board: pd.DataFrame, front: pd.DataFrame, settings: str) -> str:
    """Show a fitted search: its winner's rules, the best candidates, the front, its settings."""
    best = board.iloc[0]
    parts = [
        f"<div><strong>{html.escape(extractor_label(str(best['extractor'])))}</strong>: "
        f"{plural(len(rules), 'rule')} from all rows; score {best['score']:.4g} "
        f"± {best['score_std']:.2g} on held-out rows</div>",
        _styled(rules.to_html(limit=_SHOWN_OF_SEARCH)),
    ]
    done = board[board["state"] == "complete"]
    different = done[~done.duplicated(subset=_OUTCOME)]
    first = f"the best {_SHOWN_OF_SEARCH} of " if len(different) > _SHOWN_OF_SEARCH else ""
    heading = (
        f"{plural(len(board), 'trial')}, {first}{plural(len(different), 'different outcome')}, "
        "the winner first (c: completeness)"
    )
    parts.append(records_html(different.head(_SHOWN_OF_SEARCH), heading))
    if len(front) > 1:
        parts.append(
            records_html(front, "trade-off: no other has less loss, fewer rules and more cover")
        )
    parts.append(f"<details><summary>settings</summary>{settings}</details>")
    return f'<div style="color:inherit">{"".join(parts)}</div>'


def _styled(table: str) -> str:
    """Rules in the style of the other tables; their own texts are escaped, and hold no tags."""
    for tag, style in (("table", _TABLE), ("caption", _CAPTION), ("td", _CELL)):
        table = table.replace(f"<{tag}>", f'<{tag} style="{style}">')
    return table.replace("<th scope", f'<th style="{_CELL}" scope')


def records_html(table: pd.DataFrame, heading: str) -> str:
    """Show candidates, one per row, with what can be read of them at a glance."""
    columns = {name: told for name, told in _COLUMNS.items() if name in table}
    rows = [
        [
            extractor_label(str(record["extractor"])),
            *(_number(record[name], digits) for name, (_, digits) in columns.items()),
            ", ".join(f"{key}={_value(value)}" for key, value in record["params"].items()),
            "knee" if record.get("knee") else "",
        ]
        for record in table.to_dict(orient="records")
    ]
    head = ["extractor", *(title for title, _ in columns.values()), "parameters", ""]
    if "knee" not in table:
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table_html(head, rows, heading, left=("extractor", "parameters", ""))


def table_html(
    head: Sequence[str], rows: Iterable[Sequence[str]], heading: str, *, left: Sequence[str]
) -> str:
    """Write a table; columns that are not named in `left` are aligned to the right."""
    style = [_CELL if name in left else _NUMBER for name in head]

    def row(cells: Sequence[str], tag: str) -> str:
        written = zip(cells, style, strict=True)
        return "".join(f'<{tag} style="{s}">{html.escape(text)}</{tag}>' for text, s in written)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">'
        f"{html.escape(heading)}</caption><thead><tr>{row(head, 'th')}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _number(value: Any, digits: int) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 10 or digits == 1 else f"{value:.{digits + 1}g}"


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
