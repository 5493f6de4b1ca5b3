"""The objective of a search: a score to maximize, or several measures to minimize."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skescore._text import did_you_mean
from skescore.scorers import (
    COMPLETENESSES,
    SET_SCORERS,
    PerformanceScorer,
    RuleScorer,
    ScoreSpec,
    get_rule_scorer,
    minimized_quantities,
)
from skescore.scorers._evaluation import SIZES
from skescore.scorers._set_measures import SET_AXES
from skescore.tuning._estimator_632 import mixed, mixed_score
from skescore.tuning._fold_result import FoldResult, mean_of


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
        Names of measures to minimize together; none to maximize the score.
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
        losses = minimized_quantities(costs=False)
        for name in names:
            if name not in losses:
                raise ValueError(
                    f"scoring names {name!r}, which is no measure to minimize. "
                    f"{did_you_mean(str(name), losses)} A single score is given by its name "
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

    def with_all_rows(self, folds: Sequence[FoldResult], all_rows: FoldResult | None) -> np.ndarray:
        """Score what was measured on each fold, weighed with the rules of all rows on these rows.

        Parameters
        ----------
        folds : sequence of FoldResult
            Score and measures on the held-out rows of each fold.
        all_rows : FoldResult or None
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
        on_all_rows = all_rows.get("score")
        if np.isnan(on_all_rows):
            return np.full(len(folds), -np.inf)
        scores = np.array([fold["score"] for fold in folds], dtype=float)
        with np.errstate(invalid="ignore"):  # of infinite scores of the caller's own
            weighed_scores = mixed(scores, np.array(on_all_rows))
        weighed_scores[np.isnan(weighed_scores)] = -np.inf
        of_parts = score_of_parts(self.scorer)
        if of_parts is None:
            return weighed_scores
        names, score = of_parts
        held_out, final_parts = (
            {n: np.array([one.get(n) for one in results], float) for n in names}
            for results in (folds, [all_rows])
        )
        # Elsewhere a score is made of something else, such as a number that stands in for it.
        follows = _follows(score, held_out, scores)
        follows &= _follows(score, final_parts, np.array([on_all_rows]))
        if follows.any():
            held_out = {name: values[follows] for name, values in held_out.items()}
            weighed_scores[follows] = mixed_score(held_out, final_parts, score)
        return weighed_scores

    def values(self, folds: Sequence[FoldResult]) -> tuple[float, ...]:
        """The values of a trial, of which some may be NaN."""
        if not self.minimized:
            return (mean_of(folds, "score"),)
        losses = minimized_quantities(costs=False)
        values = []
        for name in self.minimized:
            measure, to_loss = losses[name]
            values.append(float(to_loss(mean_of(folds, measure))))
        return tuple(values)


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
    follows_mask = np.all([np.isfinite(values) for values in parts.values()], axis=0)
    if follows_mask.any():
        recomputed_scores = score({name: values[follows_mask] for name, values in parts.items()})
        follows_mask[follows_mask] = np.isclose(
            recomputed_scores, scores[follows_mask], rtol=1e-9, atol=0
        )
    return follows_mask


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
