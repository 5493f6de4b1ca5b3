"""Effects of edits: changes of correctness, agreement with a model, scores and single rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skescore.editing._paired import (
    CONFIDENCE,
    PairedDifference,
    difference_of_means,
    difference_of_shares,
)
from skescore.editing._reachability import contradictions, unreachable_rules
from skescore.rules import RowTable, RuleSet
from skescore.scorers import SCORERS, RuleEvaluation, evaluate_rules

#: Scores whose changes are reported.
EFFECT_SCORES = ("ice", "neg_fire")
#: Number of bootstrap resamples; fewer if rows times resamples exceed the second number.
_N_RESAMPLES, _MAX_WEIGHTS = 200, 4_000_000


@dataclass(frozen=True, eq=False)
class EffectRows:
    """Rows on which effects are measured.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : ndarray of shape (n_rows,) or None
        Labels or numbers of the rows in the data.
    model : ndarray of shape (n_rows,) or None
        Predictions of the black box.
    name : str
        Kind of rows: ``"held-out rows"`` or ``"rows used for editing"``.
    """

    X: Any
    y: np.ndarray | None
    model: np.ndarray | None
    name: str

    def __len__(self) -> int:
        return len(self.y if self.y is not None else self.model if self.model is not None else ())


@dataclass(frozen=True)
class FigureChange:
    """Change of one measure by an edit.

    Parameters
    ----------
    name : str
        ``"correctness"``, ``"fidelity"``, ``"ice"`` or ``"neg_fire"``.
    label : str
        Displayed name, with the reference.
    before, after : float
        Values before and after the edit.
    difference : PairedDifference
        Difference with its confidence interval.
    greater_is_better : bool
        Whether an increase is an improvement.
    """

    name: str
    label: str
    before: float
    after: float
    difference: PairedDifference
    greater_is_better: bool

    def to_text(self) -> str:
        """Describe the change in a sentence."""
        d = self.difference
        if d.low == d.high == 0:
            return f"{self.label}: {self.before:.4g}, unchanged"
        return (
            f"{self.label}: {self.before:.4g} → {self.after:.4g} ({d.estimate:+.3g}, 95 % interval "
            f"{d.low:+.3g} to {d.high:+.3g})"
        )


def predict_rows(rules: RuleSet, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predict rows, even if the rules do not predict all of them.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    tuple of ndarray
        Predictions (None, or NaN in regression, if there is none), and whether each row has one.
    """
    table = RowTable.of(X, rules.feature_names)
    has_prediction = np.ones(len(table), dtype=bool)
    if rules.fallback is None or rules.fallback.policy == "abstain":
        has_prediction = rules.covers(table)
    if rules.fallback is None:  # its predictions are not used
        rules = rules.with_arbitrary_fallback()
    predictions = rules.predict(table)
    if rules.task == "regression":
        numbers = np.where(has_prediction, predictions, np.nan).astype(float)
        return numbers, has_prediction & ~np.isnan(numbers)
    labels = np.empty(len(table), dtype=object)
    labels[:] = predictions.tolist()
    labels[~has_prediction] = None
    return labels, has_prediction


@dataclass(frozen=True, eq=False)
class Effect:
    """Effect of one or several edits.

    Parameters
    ----------
    before, after : RuleSet
        The rules before and after.
    rows : EffectRows
        Rows on which the effect is measured.
    description : str, default=""
        Description of the edit.
    violations : sequence of str, default=()
        Constraints that the edited rules violate.

    Examples
    --------
    >>> from skescore.editing import RuleEditor
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> editor = RuleEditor(rules, [[16], [17], [18], [40]], ["no", "no", "no", "yes"])
    >>> effect = editor.set_bound(1, "age", upper=18)
    >>> effect.changed_rows[["before", "after", "data"]]
      before after data
    2    yes    no   no
    """

    before: RuleSet
    after: RuleSet
    rows: EffectRows
    description: str = ""
    violations: Sequence[str] = ()

    @cached_property
    def _predictions(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        return predict_rows(self.before, self.rows.X), predict_rows(self.after, self.rows.X)

    @property
    def is_changed(self) -> np.ndarray:
        """Rows whose prediction changes (ndarray of bool)."""
        (before, had), (after, has) = self._predictions
        if self.after.task == "regression":
            return np.asarray((had != has) | (had & has & (before != after)))
        return np.array([a != b for a, b in zip(before, after, strict=True)], dtype=bool)

    @cached_property
    def changed_rows(self) -> pd.DataFrame:
        """Rows whose prediction changes, with both predictions and both references."""
        index = np.flatnonzero(self.is_changed)
        (before, _), (after, _) = self._predictions
        table = RowTable.of(self.rows.X, self.after.feature_names)
        used = sorted(self.before.used_features | self.after.used_features)
        data: dict[str, Any] = {self.after.feature_names[j]: table.column(j)[index] for j in used}
        data |= {"before": before[index], "after": after[index]}
        if self.rows.model is not None:
            data["model"] = self.rows.model[index]
        if self.rows.y is not None:
            data["data"] = self.rows.y[index]
        return pd.DataFrame(data, index=index)

    @cached_property
    def n_without_prediction(self) -> int:
        """Number of rows that the edited rules do not predict."""
        return int((~self._predictions[1][1]).sum())

    @cached_property
    def figures(self) -> tuple[FigureChange, ...]:
        """Changes of correctness and agreement, with intervals of the paired differences."""
        changes = [
            self._compare(name, label, reference)
            for name, label, reference in (
                ("correctness", "data", self.rows.y),
                ("fidelity", "model", self.rows.model),
            )
            if reference is not None
        ]
        return tuple(changes)

    def _compare(self, name: str, reference_name: str, reference: np.ndarray) -> FigureChange:
        (before, had), (after, has) = self._predictions
        n_rows = len(reference)
        scope = f"of {n_rows} {self.rows.name}"
        if self.after.task == "regression":
            middle = float(np.mean(reference))  # replaces missing predictions
            errors = [
                np.abs(reference - np.where(is_predicted, values, middle))
                for values, is_predicted in ((before, had), (after, has))
            ]
            label = f"mean absolute error against the {reference_name} {scope}"
            difference = difference_of_means(errors[0], errors[1], CONFIDENCE)
            means = [float(e.mean()) for e in errors]
            return FigureChange(name, label, means[0], means[1], difference, False)
        right = [
            np.array([a == b for a, b in zip(values, reference.tolist(), strict=True)], dtype=bool)
            & is_predicted
            for values, is_predicted in ((before, had), (after, has))
        ]
        verb = "right (data)" if reference_name == "data" else "agreeing with the model"
        difference = difference_of_shares(right[0], right[1], CONFIDENCE)
        shares = [float(r.mean()) for r in right]
        return FigureChange(name, f"share {verb} {scope}", shares[0], shares[1], difference, True)

    @cached_property
    def scores(self) -> tuple[FigureChange, ...]:
        """Changes of ICE and FiRe, with percentile intervals of a paired bootstrap of the rows."""
        reference = self.rows.y if self.rows.y is not None else self.rows.model
        if reference is None:
            return ()
        which = "data" if self.rows.y is not None else "model"
        evaluations = [self._evaluate(rules, reference) for rules in (self.before, self.after)]
        return tuple(self._compare_scores(name, which, evaluations) for name in EFFECT_SCORES)

    def _evaluate(self, rules: RuleSet, reference: np.ndarray) -> RuleEvaluation:
        domain = rules.domain or self.before.domain or self.before.domain_around(self.rows.X)
        return evaluate_rules(rules.replace(domain=domain), self.rows.X, reference)

    def _compare_scores(
        self, name: str, reference: str, evaluations: Sequence[RuleEvaluation]
    ) -> FigureChange:
        scorer = SCORERS[name]
        spec = scorer.spec
        assert spec is not None
        values = [float(spec.signed(_score(scorer, e))) for e in evaluations]
        n_rows = len(self.rows)
        is_same = self.before == self.after
        resampled = [] if is_same else self._resampled_changes(scorer, evaluations)
        numbers = np.array([d for d in resampled if not math.isnan(d)])
        low, high = (0.0, 0.0) if is_same else (math.nan, math.nan)
        if len(numbers):
            low, high = np.quantile(numbers, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        difference = PairedDifference(
            values[1] - values[0],
            float(low),
            float(high),
            math.nan,
            n_rows,
            f"paired bootstrap of the rows, {len(resampled)} resamples, percentiles",
        )
        label = f"{spec.label} against the {reference} of {n_rows} {self.rows.name}"
        return FigureChange(name, label, values[0], values[1], difference, spec.greater_is_better)

    @staticmethod
    def _resampled_changes(scorer: Any, evaluations: Sequence[RuleEvaluation]) -> list[float]:
        """Return the change of a score on resampled rows, which are represented by weights."""
        first_rows, counts = _equal_rows(evaluations)
        groups = [_select(evaluation, first_rows) for evaluation in evaluations]
        n_rows, random = int(counts.sum()), np.random.default_rng(0)
        n_resamples = int(np.clip(_MAX_WEIGHTS // len(counts), _N_RESAMPLES // 4, _N_RESAMPLES))
        spec = scorer.spec
        changes = []
        for _ in range(n_resamples):
            weights = random.multinomial(n_rows, counts / n_rows).astype(float)
            before, after = (_score(scorer, _weighted(e, weights)) for e in groups)
            changes.append(float(spec.signed(after) - spec.signed(before)))
        return changes

    @cached_property
    def unreachable_rules(self) -> tuple[int, ...]:
        """Numbers of the edited rules that no point of the domain reaches."""
        return unreachable_rules(self.after)

    @cached_property
    def contradictions(self) -> tuple[tuple[int, int], ...]:
        """Pairs of the edited rules that cover the same rows but have different outputs.

        An ordered list has no contradictions, because the first matching rule decides.
        """
        return contradictions(self.after, self.rows.X)

    def to_text(self, limit: int = 5) -> str:
        """Describe the effect in sentences.

        Parameters
        ----------
        limit : int, default=5
            Largest number of rows to list.
        """
        lines = [self.description] if self.description else []
        lines += [figure.to_text() for figure in (*self.figures, *self.scores)]
        n_changed = int(self.is_changed.sum())
        lines.append(f"changed predictions: {n_changed} of {len(self.rows)} {self.rows.name}")
        if n_changed:
            frame = self.changed_rows.head(limit)
            lines += [f"  {line}" for line in frame.to_string().splitlines()]
            if n_changed > limit:
                lines.append(f"  and {n_changed - limit} more")
        lines += self.warnings
        return "\n".join(lines)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the edited rules."""
        lines = []
        if self.n_without_prediction:
            lines.append(
                f"Warning: {self.n_without_prediction} rows have no rule and there is no "
                "fallback; set_fallback gives them a prediction."
            )
        if self.before.disjoint and not self.after.disjoint:
            lines.append(
                "Warning: the rules overlap now, so they became an ordered list: the first "
                "matching rule predicts."
            )
        lines += [f"Warning: rule {n} is unreachable." for n in self.unreachable_rules]
        lines += [
            f"Warning: rules {a} and {b} cover the same rows and contradict each other."
            for a, b in self.contradictions
        ]
        lines += [f"Violated: {text}" for text in self.violations]
        return lines

    def __str__(self) -> str:
        return self.to_text()

    def to_json(self) -> dict[str, Any]:
        """Return the effect as JSON values."""
        return {
            "edit": self.description,
            "rows": self.rows.name,
            "n_rows": len(self.rows),
            "figures": [_figure_json(f) for f in (*self.figures, *self.scores)],
            "rows_decided_differently": np.flatnonzero(self.is_changed).tolist(),
            "rows_without_prediction": self.n_without_prediction,
            "unreachable_rules": list(self.unreachable_rules),
            "contradictions": [list(pair) for pair in self.contradictions],
            "violations": list(self.violations),
        }


def _figure_json(figure: FigureChange) -> Mapping[str, Any]:
    d = figure.difference
    values = {
        "before": figure.before,
        "after": figure.after,
        "difference": d.estimate,
        "low": d.low,
        "high": d.high,
        "p_value": d.p_value,
    }
    plain = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return {"name": figure.name, "label": figure.label, **plain, "method": d.method}


def _score(scorer: Any, evaluation: RuleEvaluation) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # An undefined score is shown as NaN.
        return float(scorer.score(evaluation))


def _equal_rows(evaluations: Sequence[RuleEvaluation]) -> tuple[np.ndarray, np.ndarray]:
    """Return one row of each group of rows with the same evaluations, and the group's size."""
    columns = [evaluations[0].y_true]
    for evaluation in evaluations:
        columns += [evaluation.y_pred, evaluation.covered]
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = pd.factorize(pd.Series(column, dtype=object))[0] + 1
        codes = np.unique(codes * (values.max() + 1) + values, return_inverse=True)[1]
    _, first_rows, counts = np.unique(codes, return_index=True, return_counts=True)
    return first_rows, counts


def _select(evaluation: RuleEvaluation, rows: np.ndarray) -> RuleEvaluation:
    """Return the evaluation of some rows, with the same volume."""
    selected = replace(
        evaluation,
        y_true=evaluation.y_true[rows],
        y_pred=evaluation.y_pred[rows],
        covered=evaluation.covered[rows],
    )
    selected.__dict__["volume"] = evaluation.volume
    return selected


def _weighted(evaluation: RuleEvaluation, weights: np.ndarray) -> RuleEvaluation:
    """Return the evaluation of resampled rows, with the same volume."""
    resampled = replace(evaluation, sample_weight=weights)
    resampled.__dict__["volume"] = evaluation.volume
    return resampled
