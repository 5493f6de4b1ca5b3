"""What a search is after: one score to maximise, or several measures to minimise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skescore._text import did_you_mean
from skescore.metrics._knowledge import ice_score
from skescore.scorers._evaluation import COMPLETENESSES, SIZES
from skescore.scorers._makers import RuleScorer, get_rule_scorer
from skescore.scorers._rules import ice_of, negated_fire_of, negated_q_of
from skescore.tuning._evaluation import mean_of, several_scores
from skescore.tuning._winner import SCORES, mixed, mixed_score, parts_of, score_of_parts

#: Measures that a search of the whole trade-off may minimise, from the results on the folds.
OBJECTIVES: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "loss": lambda folds: mean_of(folds, "loss"),
    "loss_q": lambda folds: mean_of(folds, "loss_q"),
    "n_rules": lambda folds: mean_of(folds, "n_rules"),
    "size": lambda folds: mean_of(folds, "size"),
    "incompleteness": lambda folds: 1.0 - mean_of(folds, "completeness_volume"),
    "incompleteness_instances": lambda folds: 1.0 - mean_of(folds, "completeness_instances"),
}


@dataclass(frozen=True)
class Goal:
    """What candidates are compared by.

    Parameters
    ----------
    scorer : callable
        Gives the score of a candidate on held-out rows; greater is better.
    name : str
        What to call that score.
    objectives : tuple of str, default=()
        Names of :data:`OBJECTIVES` to minimise together; none to maximise the score.
    """

    scorer: Any
    name: str
    objectives: tuple[str, ...] = ()

    @classmethod
    def of(cls, scoring: Any, choose_by: Any = "ice") -> Goal:
        """Read the parameter `scoring`.

        Parameters
        ----------
        scoring : str, callable or sequence of str
            A score, or the names of measures to minimise together.
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
                    f"scoring names {name!r}, which is no measure to minimise. "
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
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        """Directions of an Optuna study after it."""
        return ["minimize" for _ in self.objectives] or ["maximize"]

    @property
    def metric_names(self) -> list[str]:
        """What to call the values of a trial."""
        return list(self.objectives) or [self.name]

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
        if not isinstance(self.scorer, RuleScorer):
            return None
        settings = self.scorer.settings
        if self.scorer.measure in (negated_fire_of, negated_q_of):
            best = 0.0
        elif self.scorer.measure is ice_of:
            weights = {name: settings[name] for name in ("phi", "rho")}
            # A size of the caller's own may be below one.
            smallest = 1.0 if settings["size"] in SIZES else 1e-9
            best = float(ice_score(1.0, smallest, 1.0, **weights))
        else:
            return None
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
            see :func:`skescore.tuning._winner.mixed_score`, else the scores themselves.
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
        if self._parts is None:
            return found
        held_out, rest = (
            {n: np.array([one.get(n, np.nan) for one in some], float) for n in self._parts}
            for some in (folds, [all_rows])
        )
        # Elsewhere a score is made of something else, such as a number that stands in for it.
        follows = self._follows(held_out, scores) & self._follows(rest, np.array([on_all_rows]))
        if follows.any():
            held_out = {name: values[follows] for name, values in held_out.items()}
            found[follows] = mixed_score(held_out, rest, self._of_parts)
        return found

    @property
    def _measure(self) -> str | None:
        known = {ice_of: "ice", negated_fire_of: "fire", negated_q_of: "q"}
        return known.get(self.scorer.measure) if isinstance(self.scorer, RuleScorer) else None

    @property
    def _completeness(self) -> Any:
        return self.scorer.settings.get("completeness", "volume")  # FiRe has none

    @property
    def _parts(self) -> tuple[str, ...] | None:
        """What the score is made of, if that is known."""
        if self._measure is None or self._completeness not in COMPLETENESSES:
            return None
        return parts_of(self._measure, self._completeness)

    def _of_parts(self, parts: Mapping[str, np.ndarray]) -> np.ndarray:
        assert self._measure is not None
        sign = 1 if SCORES[self._measure] else -1
        return sign * score_of_parts(parts, self._measure, self.scorer.settings, self._completeness)

    def _follows(self, parts: Mapping[str, np.ndarray], scores: np.ndarray) -> np.ndarray:
        """Where the parts give these scores."""
        known = np.all([np.isfinite(values) for values in parts.values()], axis=0)
        if known.any():
            again = self._of_parts({name: values[known] for name, values in parts.items()})
            known[known] = np.isclose(again, scores[known], rtol=1e-9, atol=0)
        return known

    def values(self, folds: list[dict[str, Any]]) -> tuple[float, ...]:
        """The values of a trial, of which some may be NaN."""
        if not self.objectives:
            return (mean_of(folds, "score"),)
        return tuple(OBJECTIVES[name](folds) for name in self.objectives)


def check_scoring(scoring: Any) -> Any:
    """Turn a name into a scorer of one number.

    Parameters
    ----------
    scoring : str or callable
        See :func:`skescore.scorers.get_rule_scorer`.

    Returns
    -------
    callable
        The scorer.

    Raises
    ------
    TypeError, ValueError
        If it is unknown, or is known to give several numbers.
    """
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores(scorer)
    return scorer


def name_of(scoring: Any, scorer: Any) -> str:
    """What to call a score that was given as a name or a scorer."""
    if isinstance(scoring, str):
        return scoring
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or "score")
