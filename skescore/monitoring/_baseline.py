"""Counts of each rule on held-out rows, with which later rows are compared."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skescore._binomial import clopper_pearson_intervals
from skescore._io import json_of
from skescore._validation import check_number
from skescore.metrics import (
    DecisionCounts,
    RowDecisions,
    compare_labels,
    decide_rows,
    has_default,
    predict_all_rows,
)
from skescore.monitoring._held_out_rows import HeldOutRows
from skescore.rules import RowTable, RuleSet, as_ruleset

if TYPE_CHECKING:
    import pandas as pd

    from skescore.tuning import ExtractorSearchCV

__all__ = ["RuleBaseline", "rate_interval", "rules_fingerprint"]

FORMAT, VERSION = "skescore rule baseline", 1
#: In regression, a difference counts as an error if it exceeds this quantile of the differences on
#: held-out rows.
_ERROR_QUANTILE = 0.9
#: Minimum number of held-out rows for a separate tolerance of a rule.
_MIN_TOLERANCE_ROWS = 20
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_MAX_VALUES = 20


def rules_fingerprint(ruleset: RuleSet) -> str:
    """Return a hash of the premises and outputs of rules, independent of their statistics.

    Examples
    --------
    >>> from skescore.rules import Rule, RuleSet
    >>> len(rules_fingerprint(RuleSet([Rule([], "a")], ["x"], task="classification")))
    16
    """
    data = json.loads(ruleset.to_json(indent=None))
    for rule in data["rules"]:
        rule.pop("statistics", None)
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()[:16]


def rate_interval(
    events: Any, trials: Any, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact confidence intervals of rates, after Clopper and Pearson (1934).

    Parameters
    ----------
    events, trials : array-like
        Numbers of events and rows; without rows, the interval is from 0 to 1.
    level : float, default=0.95
        Confidence level.

    Returns
    -------
    tuple of ndarray
        Lower and upper bounds.

    Examples
    --------
    >>> low, high = rate_interval([0, 5], [10, 10])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    return clopper_pearson_intervals(events, trials, level)


@dataclass(frozen=True)
class RuleBaseline:
    """Error, agreement, share of rows and features of each rule on held-out rows.

    Attributes
    ----------
    fingerprint : str
        Hash of the rules, see :func:`rules_fingerprint`.
    counts : DecisionCounts
        Counts of the held-out rows.
    error_tolerances, model_tolerances : tuple of float, optional
        In regression, the largest difference from labels and from the model that does not count as
        an error: one for each rule, and one for uncovered rows.
    features : tuple of dict
        Distribution of each used feature on the rows of each rule, and on uncovered rows: quantiles
        of numbers or counts of categories, with their uncertainty.
    origin : str
        "held-out rows", or "cross-validation" for a baseline of :meth:`from_search`.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([], "high")], ["x"],
    ...     task="classification", ordered=True,
    ... )
    >>> baseline = RuleBaseline.from_rows(rules, [[1], [2], [3], [4]], ["low"] * 3 + ["high"])
    >>> baseline.to_frame()["error"].tolist()
    [0.0, 0.5, nan]
    """

    fingerprint: str
    counts: DecisionCounts
    error_tolerances: tuple[float, ...] | None = None
    model_tolerances: tuple[float, ...] | None = None
    features: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    origin: str = "held-out rows"

    @classmethod
    def from_rows(
        cls, rules: Any, X: Any, y: Any = None, *, model_predictions: Any = None
    ) -> RuleBaseline:
        """Count held-out rows, which neither the rules nor the model were fitted to.

        Parameters
        ----------
        rules : RuleSet or estimator
            Rules, one of which predicts each row.
        X : array-like or DataFrame of shape (n_rows, n_features)
            Held-out rows.
        y : array-like of shape (n_rows,), optional
            Labels of the rows. Without them, errors cannot be monitored.
        model_predictions : array-like of shape (n_rows,), optional
            Predictions of the model. Without them, disagreement cannot be monitored.

        Returns
        -------
        RuleBaseline

        Raises
        ------
        ValueError
            If there are no rows.

        Notes
        -----
        In regression, the rows with an even index determine the tolerance of each rule, which is
        the 90 % quantile of the absolute differences. Only the other rows are counted as right or
        wrong.
        """
        ruleset = as_ruleset(rules)
        table = RowTable.of(X, ruleset.feature_names)
        if len(table) == 0:
            raise ValueError("X must hold at least one held-out row, got 0 rows.")
        tolerances: list[tuple[float, ...] | None] = [None, None]
        if ruleset.classes is None:
            tolerances = [
                None if labels is None else _estimate_tolerances(ruleset, table, labels)
                for labels in (y, model_predictions)
            ]
        decisions = decide_rows(
            ruleset,
            table,
            y,
            model_predictions=model_predictions,
            error_tolerances=tolerances[0],
            model_tolerances=tolerances[1],
        )
        if ruleset.classes is None:  # the even rows have determined the tolerances
            decisions.label_outcome[::2] = -1
            decisions.model_outcome[::2] = -1
        return cls(
            rules_fingerprint(ruleset),
            decisions.counts(),
            tolerances[0],
            tolerances[1],
            _describe_features(ruleset, table, decisions),
        )

    @classmethod
    def from_search(cls, search: ExtractorSearchCV) -> RuleBaseline:
        """Count the held-out rows of the folds of a search by its final rules.

        The final rules are extracted from all rows, so no row is held out for them. A row counts
        for the final rule that decides it. Its prediction comes from the rules of its fold, which
        were extracted without it, and is compared with its label and with the model of its fold.
        Folds have fewer training rows, so the rates of error and disagreement are slightly too
        large on average. Alarms are therefore raised later, but not more often. :meth:`from_rows`
        avoids this.

        Parameters
        ----------
        search : ExtractorSearchCV
            A finished search.

        Returns
        -------
        RuleBaseline
            Baseline with the `origin` "cross-validation". Each row counts once, without its weight.
            A model that the user fitted may have been trained on these rows.

        Raises
        ------
        ValueError
            If the rules vote.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore import ExtractorSearchCV
        >>> from skescore.monitoring import RuleBaseline
        >>> X, y = load_iris(return_X_y=True)
        >>> black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
        >>> search = ExtractorSearchCV(
        ...     black_box, extractors=["cart"], n_trials=3, cv=2, random_state=0
        ... ).fit(X, y)
        >>> RuleBaseline.from_search(search).counts.n_errors.tolist()
        [0, 1, 6, 0]
        """
        ruleset = as_ruleset(search.rules_)
        ruleset.check_one_rule_per_row("Monitoring")
        rows = HeldOutRows.from_folds(search.extract_on_folds(), ruleset.feature_names)
        table = rows.table
        decisions = decide_rows(ruleset, table)
        tolerances: list[tuple[float, ...] | None] = [None, None]
        outcomes = []
        for index, labels in enumerate((rows.labels, rows.model_predictions)):
            outcome = np.full(len(table), -1, dtype=np.int8)
            if labels is not None:
                widths = None
                if ruleset.classes is None:
                    predicted = np.where(rows.is_predicted, rows.predictions, np.nan)
                    tolerances_of_rules = _tolerances_of(
                        decisions.rule, predicted, labels, len(ruleset)
                    )
                    tolerances[index] = tolerances_of_rules
                    widths = np.asarray(tolerances_of_rules)[decisions.rule]
                outcome = compare_labels(ruleset, "y", rows.predictions, labels, widths)
                outcome[~rows.is_predicted] = -1
                if not has_default(ruleset):
                    outcome[decisions.rule == len(ruleset)] = -1
            outcomes.append(outcome)
            if ruleset.classes is None:  # the even rows have determined the tolerances
                outcome[::2] = -1
        decisions = replace(
            decisions,
            label_outcome=outcomes[0],
            model_outcome=outcomes[1],
            is_outside=rows.is_outside,
        )
        return cls(
            rules_fingerprint(ruleset),
            decisions.counts(),
            tolerances[0],
            tolerances[1],
            _describe_features(ruleset, table, decisions),
            "cross-validation",
        )

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        return len(self.counts.n_rows) - 1

    def check_rules(self, ruleset: RuleSet) -> None:
        """Raise a ValueError if the baseline belongs to other rules."""
        if rules_fingerprint(ruleset) != self.fingerprint:
            raise ValueError(
                f"The baseline belongs to other rules: it has the fingerprint {self.fingerprint}, "
                f"these rules have {rules_fingerprint(ruleset)}. Create a new baseline: skescore "
                "watch init RULES DATA."
            )

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return the rates of each rule and, in the last row, of uncovered rows.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each interval.

        Returns
        -------
        DataFrame
            Rates with exact confidence intervals: the share of all rows that the rule decides, and
            the shares of errors, disagreements, and outside and incomplete rows among these.
        """
        import pandas as pd

        check_number("level", level, 0, 1)
        c = self.counts
        total = np.full_like(c.n_rows, c.n_rows.sum())
        columns: dict[str, Any] = {"n_rows": c.n_rows}
        for name, events, trials in (
            ("share", c.n_rows, total),
            ("error", c.n_errors, c.n_labeled),
            ("disagreement", c.n_disagreements, c.n_queried),
            ("outside", c.n_outside, c.n_rows),
            ("missing", c.n_missing, c.n_rows),
        ):
            with np.errstate(invalid="ignore"):
                columns[name] = events / trials
            columns[f"{name}_lower"], columns[f"{name}_upper"] = rate_interval(
                events, trials, level
            )
        index = pd.Index([*map(str, range(1, self.n_rules + 1)), "no rule"], name="rule")
        return pd.DataFrame(columns, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return the baseline as JSON data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "rules": self.fingerprint,
            "counts": self.counts.to_dict(),
            "error_tolerances": _finite_or_none(self.error_tolerances),
            "model_tolerances": _finite_or_none(self.model_tolerances),
            "features": list(self.features),
            "origin": self.origin,
        }

    def to_json(self) -> str:
        """Return the baseline as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RuleBaseline:
        """Restore a baseline from the result of :meth:`to_dict`."""
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(
                f"This is not a baseline of rules: 'format' and 'version' must be {FORMAT!r} and "
                f"{VERSION}, got {data.get('format')!r} and {data.get('version')!r}. Create a "
                "baseline: skescore watch init RULES DATA."
            )
        return cls(
            str(data["rules"]),
            DecisionCounts.from_dict(data["counts"]),
            _tolerances_from(data["error_tolerances"]),
            _tolerances_from(data["model_tolerances"]),
            tuple(data["features"]),
            str(data.get("origin", "held-out rows")),
        )

    @classmethod
    def from_json(cls, text: str) -> RuleBaseline:
        """Restore a baseline from the result of :meth:`to_json`.

        Raises
        ------
        ValueError
            If the text is not a baseline.
        """
        data = json_of(text, finite=True)
        if not isinstance(data, dict):
            raise ValueError(f"A baseline of rules must be a JSON object, got {data!r}.")
        try:
            return cls.from_dict(data)
        except (KeyError, TypeError) as error:
            raise ValueError(f"The baseline of rules is damaged: {error!r}.") from error


def _finite_or_none(values: tuple[float, ...] | None) -> list[float | None] | None:
    """Replace infinite tolerances by None."""
    return None if values is None else [v if math.isfinite(v) else None for v in values]


def _tolerances_from(values: Any) -> tuple[float, ...] | None:
    return None if values is None else tuple(math.inf if v is None else float(v) for v in values)


def _estimate_tolerances(ruleset: RuleSet, table: RowTable, labels: Any) -> tuple[float, ...]:
    """Return a quantile of the absolute differences on the even rows, by rule."""
    rule = np.asarray(ruleset.assign(table), dtype=np.intp)
    is_predicted = has_default(ruleset) | (rule >= 0)
    rule[rule < 0] = len(ruleset)
    predicted = np.where(is_predicted, predict_all_rows(ruleset, table), np.nan)
    return _tolerances_of(rule, predicted, labels, len(ruleset))


def _tolerances_of(
    rule: NDArray[np.intp], predicted: Any, labels: Any, n_rules: int
) -> tuple[float, ...]:
    """Return a quantile of the absolute differences on the even rows, by rule.

    Rows whose prediction is NaN do not count.
    """
    differences = np.abs(np.asarray(labels, dtype=float) - np.asarray(predicted, dtype=float))
    is_used = np.isfinite(differences)
    is_used[1::2] = False
    overall = _upper_quantile(differences[is_used])
    result = []
    for index in range(n_rules + 1):
        rows = is_used & (rule == index)
        has_enough = rows.sum() >= _MIN_TOLERANCE_ROWS
        result.append(_upper_quantile(differences[rows]) if has_enough else overall)
    return tuple(result)


def _upper_quantile(differences: NDArray[np.float64]) -> float:
    if not len(differences):
        return math.inf
    return float(np.quantile(differences, _ERROR_QUANTILE, method="higher"))


def _describe_features(
    ruleset: RuleSet, table: RowTable, decisions: RowDecisions
) -> tuple[dict[str, Any], ...]:
    """Return the distribution of each used feature on the rows of each rule."""
    result = []
    for index in range(len(ruleset) + 1):
        rows = np.flatnonzero(decisions.rule == index)
        result.append(
            {
                ruleset.feature_names[feature]: _describe_values(table.column(feature)[rows])
                for feature in sorted(ruleset.used_features)
            }
        )
    return tuple(result)


def _describe_values(values: NDArray[Any]) -> dict[str, Any]:
    """Return quantiles of numbers, or counts of the most frequent categories.

    The distribution function differs from the true one by at most `margin` with 95 % confidence,
    by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.
    """
    import pandas as pd

    observed = values[~np.asarray(pd.isna(values))]
    margin = min(1.0, math.sqrt(math.log(2 / 0.05) / (2 * len(observed)))) if len(observed) else 1.0
    summary: dict[str, Any] = {
        "n_rows": len(values),
        "n_missing": len(values) - len(observed),
        "margin": round(margin, 6),
    }
    try:
        numbers = observed.astype(float)
    except (TypeError, ValueError):
        counts = pd.Series(observed.astype(str)).value_counts().head(_MAX_VALUES)
        return {**summary, "values": {str(k): int(v) for k, v in counts.items()}}
    numbers = numbers[np.isfinite(numbers)]
    quantiles = np.quantile(numbers, _QUANTILES).tolist() if len(numbers) else []
    return {**summary, "quantiles": dict(zip(map(str, _QUANTILES), quantiles, strict=False))}
