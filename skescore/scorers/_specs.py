"""Scores of rule sets as data: one row per score, which everything else reads.

Scorers, pruning, searches, benches, the command line and the report's page know a score by its row
in :data:`SCORE_SPECS` alone. A further score is one :class:`ScoreSpec`, handed to
:func:`register_score`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._names import SCORES, Weight
from skescore._text import did_you_mean
from skescore.metrics import METRICS, fire_score, ice_score, q_score
from skescore.metrics._prediction import UNCOVERED

__all__ = ["COMPLETENESSES", "SCORE_SPECS", "ScoreSpec", "Weight", "find_score"]

#: How completeness is measured: as a share of the domain's volume, or of the rows.
COMPLETENESSES = ("volume", "instances")
_TASKS = ("classification", "regression")
#: Stands for the smallest size of all where a score is defined for any size above 0.
_ANY_SIZE = 1e-9


@dataclass(frozen=True)
class ScoreSpec:
    """A score of rule sets: a formula over prediction, size and completeness.

    Parameters
    ----------
    name : str
        What it is called, such as ``"fire"``.
    formula : callable
        ``formula(prediction, size, completeness, **weights)``, or ``formula(prediction, size,
        **weights)`` for a score without completeness. It takes floats and arrays, and must not get
        better by a worse prediction, a greater size or less completeness.
    greater_is_better : bool
        False for a score whose scorer is negated.
    prediction : {"loss", "performance"}
        What it takes of the prediction: 0 is the best loss, 1 the best performance.
    metrics : dict of str to str
        The default metric by task, out of :data:`skescore.metrics.METRICS`.
    uses_completeness : bool, default=True
        Whether the formula takes a completeness.
    weights : tuple of Weight, default=()
        Its weights, in the order in which they are shown.
    uncovered : {"ignore", "penalize"}, default="ignore"
        What becomes of rows without a rule, unless a scorer says otherwise.
    label : str, optional
        What it is called in texts; by default its name.
    kept_as : str, optional
        Under which name searches and benches keep what it takes of the prediction; by default
        ``"loss_NAME"`` or ``"performance_NAME"``.
    text : str, default=""
        The formula for readers, with p, r and c.
    least_size : float, default=0.0
        The size from which on it is defined; 0 for any size above 0.

    Raises
    ------
    ValueError
        If a name is unknown, or the formula gives no number for perfect rules.

    Examples
    --------
    >>> from skescore.scorers import ScoreSpec
    >>> brief = ScoreSpec(
    ...     "brief", lambda loss, size: loss + 0.01 * size, greater_is_better=False,
    ...     prediction="loss", uses_completeness=False,
    ...     metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
    ... )
    >>> brief.scorer_name, brief.kept_as
    ('neg_brief', 'loss_brief')
    """

    name: str
    formula: Callable[..., Any]
    greater_is_better: bool
    prediction: str
    metrics: Mapping[str, str]
    uses_completeness: bool = True
    weights: tuple[Weight, ...] = ()
    uncovered: str = "ignore"
    label: str = ""
    kept_as: str = ""
    text: str = ""
    least_size: float = 0.0

    def __post_init__(self) -> None:
        for name, choices in (("prediction", ("loss", "performance")), ("uncovered", UNCOVERED)):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
        for task in _TASKS:
            known = [
                name
                for name, metric in METRICS.items()
                if task in metric.tasks and (metric.greater_is_better or self.prediction == "loss")
            ]
            if self.metrics.get(task) not in known:
                raise ValueError(
                    f"metrics[{task!r}] of a score that takes a {self.prediction} must be one of "
                    f"{', '.join(known)}, got {self.metrics.get(task)!r}."
                )
        object.__setattr__(self, "label", self.label or self.name)
        object.__setattr__(self, "kept_as", self.kept_as or f"{self.prediction}_{self.name}")
        best = self.best({weight.name: weight.default for weight in self.weights})
        if not np.isfinite(best):
            raise ValueError(f"formula must give a number for perfect rules, got {best!r}.")

    @property
    def scorer_name(self) -> str:
        """The name of its scorer, of which greater is better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The names of its weights."""
        return tuple(weight.name for weight in self.weights)

    def metric(self, task: str, chosen: Any = "auto") -> Any:
        """The name of the metric for a task, or the callable that was chosen."""
        metric = self.metrics[task] if isinstance(chosen, str) and chosen == "auto" else chosen
        return metric.removeprefix("neg_") if isinstance(metric, str) else metric

    def value(
        self, prediction: Any, size: Any, completeness: Any, weights: Mapping[str, Any]
    ) -> Any:
        """The score of what was measured; weights of other scores are not looked at."""
        share = (completeness,) if self.uses_completeness else ()
        chosen = {name: weights[name] for name in self.weight_names}
        return self.formula(prediction, size, *share, **chosen)

    @property
    def sign(self) -> float:
        """1 if greater is better, -1 if less is."""
        return 1.0 if self.greater_is_better else -1.0

    def signed(self, value: Any) -> Any:
        """The same, greater being better."""
        return value if self.greater_is_better else -value

    def best(self, weights: Mapping[str, Any], *, any_size: bool = False) -> float:
        """The score of perfect rules: of one rule, or of the smallest size of the caller's own."""
        size = max(self.least_size, _ANY_SIZE) if any_size else 1.0
        return float(self.value(0.0 if self.prediction == "loss" else 1.0, size, 1.0, weights))

    def parts(self, completeness: str = "volume") -> tuple[str, ...]:
        """The names under which what the score is made of is kept."""
        share = (f"completeness_{completeness}",) if self.uses_completeness else ()
        return self.kept_as, "size", *share

    def of_parts(
        self, parts: Mapping[str, Any], weights: Mapping[str, Any], completeness: str = "volume"
    ) -> np.ndarray:
        """The score of parts that were kept, see :meth:`parts`."""
        share = parts[f"completeness_{completeness}"] if self.uses_completeness else None
        return np.asarray(self.value(parts[self.kept_as], parts["size"], share, weights))

    def check_weights(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """All weights of the score, its defaults where none is given.

        Parameters
        ----------
        weights : dict of str to float
            Those that were chosen.

        Returns
        -------
        dict of str to float
            All of them.

        Raises
        ------
        TypeError
            If the score has no such weight.
        ValueError
            If one is out of its range.
        """
        unknown = sorted(set(weights) - set(self.weight_names))
        if unknown:
            hint = did_you_mean(unknown[0], self.weight_names) if self.weights else "It has none."
            raise TypeError(f"{self.label} has no weight {unknown[0]!r}. {hint}")
        found = {weight.name: weights.get(weight.name, weight.default) for weight in self.weights}
        self.best(found)
        return found


#: The scores by name.
SCORE_SPECS: dict[str, ScoreSpec] = {
    "ice": ScoreSpec(
        "ice",
        ice_score,
        **SCORES["ice"]._asdict(),
        prediction="performance",
        metrics={"classification": "f1_weighted", "regression": "r2"},
        kept_as="performance",
        text="c · 1 / (1 + e^(5 (φ (1 − p) − 1))) · 1 / (1 + e^(0.3 ρ r − 5))",
    ),
    "fire": ScoreSpec(
        "fire",
        fire_score,
        **SCORES["fire"]._asdict(),
        prediction="loss",
        metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
        uncovered="penalize",
        kept_as="loss",
        text="p · ⌈r / ψ⌉ · r^0.05",
        least_size=1.0,
    ),
    "q": ScoreSpec(
        "q",
        q_score,
        **SCORES["q"]._asdict(),
        prediction="loss",
        metrics={"classification": "f1_weighted", "regression": "mean_absolute_error"},
        text="p · r · (2 − c)",
    ),
}


def find_score(score: Any) -> ScoreSpec:
    """The row of a score."""
    if isinstance(score, ScoreSpec):
        return score
    spec = SCORE_SPECS.get(score) if isinstance(score, str) else None
    if spec is None:
        raise ValueError(f"score must be one of {list(SCORE_SPECS)}, got {score!r}.")
    return spec


def all_weights(given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The weights of all scores by name, their defaults where none is given."""
    known = {w.name: w.default for spec in SCORE_SPECS.values() for w in spec.weights}
    unknown = sorted(set(given or {}) - set(known))
    if unknown:
        raise TypeError(f"No score has a weight {unknown[0]!r}. {did_you_mean(unknown[0], known)}")
    return known | dict(given or {})


def measured_names() -> tuple[str, ...]:
    """What is kept of every candidate, so that any score can be computed with any weights."""
    parts = [spec.kept_as for spec in SCORE_SPECS.values()]
    return (*parts, "n_rules", "size", "completeness_volume", "completeness_instances")
