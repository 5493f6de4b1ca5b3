"""What a search is after: one score to maximise, or several measures to minimise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skescore._rule_scorer import ice_of, negated_fire_of, negated_q_of
from skescore._text import did_you_mean
from skescore.evaluation import SIZES
from skescore.metrics.knowledge import ice_score
from skescore.scorers import RuleScorer, get_rule_scorer
from skescore.tuning.folds import mean_of, several_scores

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
