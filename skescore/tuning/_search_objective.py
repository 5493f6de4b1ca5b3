"""The objective of a search: a score to maximize, or several measures to minimize."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skescore._text import did_you_mean
from skescore.scorers import (
    COMPLETENESSES,
    SIZES,
    FidelityScorer,
    MinimizedQuantity,
    PerformanceScorer,
    RuleScorer,
    ScoreSpec,
    axis_measure,
    get_rule_scorer,
    minimized_quantities,
    minimized_quantity,
)
from skescore.tuning._fold_result import FoldResult, mean_of, mixed, mixed_score


@dataclass(frozen=True)
class SearchObjective:
    """The score or the measures that a search optimizes.

    Parameters
    ----------
    scorer : callable
        Scorer of a candidate on held-out rows; greater is better.
    name : str
        Name of that score.
    minimized : tuple of str, default=()
        Names of measures to minimize together; empty to maximize the score.
    """

    scorer: Any
    name: str
    minimized: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, scoring: Any, choose_by: Any = "ice", *, reference: str | None = None
    ) -> SearchObjective:
        """Make the objective from the parameter `scoring` of a search.

        Parameters
        ----------
        scoring : str, callable or sequence of str
            A score, or the names of measures to minimize together.
        choose_by : str or callable, default="ice"
            The score that is stored in addition to several measures.
        reference : {"data", "black_box"}, optional
            What scores that are given by name compare with.

        Raises
        ------
        TypeError, ValueError
            If the score is unknown or returns several numbers.
        """
        if isinstance(scoring, str) or not isinstance(scoring, Sequence):
            scorer = check_scoring(scoring, reference)
            return cls(scorer, name_of(scoring, scorer))
        names = tuple(scoring)
        for name in names:
            if minimized_quantity(str(name), costs=False) is None:
                hint = did_you_mean(str(name), minimized_quantities(costs=False))
                raise ValueError(
                    f"scoring names {name!r}, which is not a measure that can be minimized. "
                    f"{hint} A single score is given by its name alone: scoring='ice'."
                )
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(
                "scoring must be one score, or at least two different measures such as "
                f"('loss', 'n_rules', 'incompleteness'), got {scoring!r}."
            )
        scorer = check_scoring(choose_by, reference)
        return cls(scorer, name_of(choose_by, scorer), names)

    @property
    def measures(self) -> dict[str, RuleScorer]:
        """Scorers of rule sets that the values of a trial need."""
        measures = filter(None, map(axis_measure, self.minimized))
        return {m.scorer_name: get_rule_scorer(m.scorer_name) for m in measures}

    @property
    def losses(self) -> list[MinimizedQuantity]:
        """Measures that are minimized together, and the conversions of their values."""
        losses = (minimized_quantity(name, costs=False) for name in self.minimized)
        return [loss for loss in losses if loss is not None]

    @property
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        """Directions of an Optuna study with this objective."""
        return ["minimize" for _ in self.minimized] or ["maximize"]

    @property
    def metric_names(self) -> list[str]:
        """Names of the values of a trial."""
        return list(self.minimized) or [self.name]

    @property
    def depends_on_size(self) -> bool:
        """True unless the score is one of predictions alone, which ignores the number of rules."""
        return bool(self.minimized) or not isinstance(self.scorer, PerformanceScorer)

    @property
    def scorer_text(self) -> str:
        """Text that identifies the scorer in every process."""
        if isinstance(self.scorer, RuleScorer):
            return repr(self.scorer)
        kind = self.scorer if hasattr(self.scorer, "__qualname__") else type(self.scorer)
        return f"{kind.__module__}.{kind.__qualname__}"

    @property
    def best_possible(self) -> float | None:
        """Largest score that any rules can have on a fold; None if it is unknown."""
        spec = spec_of(self.scorer)
        if spec is None:
            return None
        settings = self.scorer.settings
        # A size that the user defines may be below one.
        best = float(spec.signed(spec.best(settings, any_size=settings["size"] not in SIZES)))
        return float(settings["undefined"]) if settings["undefined"] > best else best

    def with_all_rows(self, folds: Sequence[FoldResult], all_rows: FoldResult | None) -> np.ndarray:
        """Return the .632 score of a candidate for each fold.

        It combines the score on held-out rows with that of the rules of all rows on these rows.

        Parameters
        ----------
        folds : sequence of FoldResult
            Score and measures on the held-out rows of each fold.
        all_rows : FoldResult or None
            Result on all rows, possibly a failure; None if the rules were not extracted.

        Returns
        -------
        ndarray of float, shape (n_folds,)
            Greater is better; NaN without a result on all rows, and minus infinity where the
            extraction from all rows failed. The parts of a score are combined where they are known,
            see :func:`mixed_score`, otherwise the scores themselves.
        """
        if all_rows is None:
            return np.full(len(folds), np.nan)
        on_all_rows = all_rows.get("score")
        if np.isnan(on_all_rows):
            return np.full(len(folds), -np.inf)
        scores = np.array([fold["score"] for fold in folds], dtype=float)
        with np.errstate(invalid="ignore"):  # the user's scores may be infinite
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
        # Elsewhere the score is not computed from its parts, such as where `undefined` replaces it.
        follows = _follows(score, held_out, scores)
        follows &= _follows(score, final_parts, np.array([on_all_rows]))
        if follows.any():
            held_out = {name: values[follows] for name, values in held_out.items()}
            weighed_scores[follows] = mixed_score(held_out, final_parts, score)
        return weighed_scores

    def values(self, folds: Sequence[FoldResult]) -> tuple[float, ...]:
        """Return the values of a trial; undefined ones are NaN."""
        if not self.minimized:
            return (mean_of(folds, "score"),)
        return tuple(float(loss_of(mean_of(folds, measure))) for measure, loss_of in self.losses)


def spec_of(scorer: Any) -> ScoreSpec | None:
    """Return the specification of a scorer's score; None if it has none."""
    return scorer.spec if isinstance(scorer, RuleScorer) else None


def score_of_parts(
    scorer: Any,
) -> tuple[tuple[str, ...], Callable[[Mapping[str, np.ndarray]], np.ndarray]] | None:
    """Return the names of the parts of a score and its formula; None if they are unknown."""
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
    """Return where the parts reproduce these scores."""
    follows_mask = np.all([np.isfinite(values) for values in parts.values()], axis=0)
    if follows_mask.any():
        recomputed_scores = score({name: values[follows_mask] for name, values in parts.items()})
        follows_mask[follows_mask] = np.isclose(
            recomputed_scores, scores[follows_mask], rtol=1e-9, atol=0
        )
    return follows_mask


def check_scoring(scoring: Any, reference: str | None = None) -> Any:
    """Return the scorer of one number that `scoring` names.

    A scorer that is given by name compares with the `reference`.
    """
    if isinstance(scoring, Mapping) and len(scoring) != 1:
        raise ValueError(
            f"scoring must hold one score, {{'name': scorer}}, got {list(scoring)}. Pass the "
            "others as measures."
        )
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores(scorer)
    is_named = isinstance(scoring, str) and not isinstance(scorer, FidelityScorer)
    if is_named and reference is not None and scorer.reference != reference:
        scorer = copy.copy(scorer)
        scorer.reference = reference
    return scorer


def name_of(scoring: Any, scorer: Any) -> str:
    """Return the name of a score that the user passed as a name or a scorer."""
    if isinstance(scoring, str | Mapping):
        return scoring if isinstance(scoring, str) else str(next(iter(scoring)))
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or "score")


def several_scores(scorer: Any) -> TypeError:
    """Return the error for a scorer that returns a dict although candidates must be ranked."""
    return TypeError(
        f"scoring must return one number per candidate, but {scorer!r} returns a dict: choose one "
        "of its scores, for example scoring='ice'."
    )
