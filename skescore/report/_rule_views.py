"""Contents of the page about a rule set: logic, texts, exports, and quality on rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from skescore._rows import deviations_from_mean
from skescore.datasets import Dataset
from skescore.metrics import redundancy, rule_overlap, rule_report
from skescore.rules import AtLeast, Condition, Rule, RuleSet, truth_table
from skescore.rules._text import feature_name, format_label
from skescore.rules.exporters._sentences import last_sentence, premise_words

__all__ = [
    "left_out_by_scores",
    "predictions_on",
    "quality_on",
    "rule_view",
    "sample_rows",
    "worst_segments",
]


# --- how good rules are on rows -------------------------------------------------------------------


#: Number of segments shown; their smallest number and share of rows; their largest share of rows.
_MAX_SEGMENTS, _MIN_ROWS, _MIN_SHARE, _MAX_SHARE = 5, 10, 0.02, 0.6
#: Smallest excess of a segment's mean error over the mean of all rows, in standard errors.
_CLEARLY = 2.0
#: Largest number of rows and of columns of a table that are examined.
_ROWS, _COLUMNS = 5000, 200
#: Quantiles that summarize the numbers of a rule's rows.
SUMMARY = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Numeric columns with more values are cut into quarters.
_VALUES = 6


def quality_on(ruleset: RuleSet, data: Dataset) -> dict[str, Any]:
    """Compare the predictions of rules with labels.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    data : Dataset
        The rows and their labels.

    Returns
    -------
    dict
        Ready for JSON: numbers of rows (``total``) and of rows without a prediction (``silent``),
        :func:`worst_segments` (``segments``) and :func:`left_out_by_scores` (``left_out``), both on
        ``sampled`` rows (None for all). Classification adds ``right`` rows, rows of the majority
        class (``always``) and ``classes``; regression adds the mean absolute ``error``, ``r2`` and
        the error of the mean (``always``).
    """
    predicted, unpredicted = predictions_on(ruleset, data)
    quality: dict[str, Any] = {"total": len(data.X), "silent": int(unpredicted.sum())}
    if ruleset.task == "regression":
        y = data.y.to_numpy(float)
        errors = np.abs(y - np.asarray(predicted, dtype=float))
        is_predicted = ~unpredicted
        squares = (
            float((deviations_from_mean(y[is_predicted], None) ** 2).sum())
            if is_predicted.any()
            else 0.0
        )
        quality["error"] = float(errors[is_predicted].mean()) if is_predicted.any() else None
        quality["r2"] = 1 - float((errors[is_predicted] ** 2).sum()) / squares if squares else None
        quality["always"] = {"text": None, "error": float(np.abs(y - y.mean()).mean())}
        errors[unpredicted] = np.nan
    else:
        y = data.y.to_numpy()
        right = np.array(
            [not s and a == b for s, a, b in zip(unpredicted, y, predicted, strict=True)],
            dtype=bool,
        )
        counts = data.class_counts
        majority = max(counts, key=lambda label: counts[label])
        predicted_counts = Counter(b for s, b in zip(unpredicted, predicted, strict=True) if not s)
        quality |= {
            "right": int(right.sum()),
            "always": {"text": format_label(majority), "right": int(counts[majority])},
            "classes": [
                {
                    "name": format_label(label),
                    "rows": int(rows),
                    "right": int((right & (y == label)).sum()),
                    "said": predicted_counts[label],
                }
                for label, rows in counts.items()
            ],
        }
        errors = (~right).astype(float)
    quality["sampled"] = _ROWS if len(data.X) > _ROWS else None
    quality["segments"] = worst_segments(ruleset, data.X, errors)
    quality["left_out"] = left_out_by_scores(ruleset, data.X)
    return quality


def left_out_by_scores(ruleset: RuleSet, X: pd.DataFrame) -> list[dict[str, Any]]:
    """Measure length, overlap and redundancy of rules, which no score includes.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : DataFrame
        The rows; of long tables, a sample is used.

    Returns
    -------
    list of dict
        Name of the measure (``text``), its ``value``, and whether it is a ``share``.
    """
    if not len(ruleset):
        return []
    X = X if len(X) <= _ROWS else X.sample(_ROWS, random_state=0)
    met = rule_overlap(ruleset, X, pairs=False)
    terms = [rule.n_terms for rule in ruleset.rules]
    measures: list[tuple[str, float, bool]] = [
        ("bounds, categories and linear terms per rule, on average", float(np.mean(terms)), False),
        ("bounds, categories and linear terms of the longest rule", float(max(terms)), False),
        ("rows that no rule covers", met.uncovered, True),
        ("rows that several rules cover", met.overlap, True),
        ("rows that rules with different predictions cover", met.negative_overlap, True),
    ]
    if ruleset.voting is None:
        redundancies = redundancy(ruleset, X)
        measures.append(("removable rules", redundancies.share_of_rules, True))
        if sum(map(len, redundancies.literals)):
            measures.append(("removable comparisons", redundancies.share_of_literals, True))
    return [{"text": text, "value": value, "share": share} for text, value, share in measures]


def predictions_on(ruleset: RuleSet, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions, and a mask of the rows without a prediction."""
    fallback = ruleset.fallback
    if fallback is None:
        unpredicted = ~ruleset.covers(data.X)
        predicted = np.full(len(data.X), None, dtype=object)
        if not unpredicted.all():
            predicted[~unpredicted] = ruleset.predict(data.X[~unpredicted])
        if ruleset.task == "regression":
            predicted = np.where(unpredicted, np.nan, predicted).astype(float)
        return predicted, unpredicted
    predicted = ruleset.predict(data.X)
    if fallback.policy != "abstain":
        return predicted, np.zeros(len(data.X), dtype=bool)
    return predicted, ~ruleset.covers(data.X)


def worst_segments(ruleset: RuleSet, X: pd.DataFrame, errors: np.ndarray) -> list[dict[str, Any]]:
    """Find the parts of the rows in which rules fail more often than elsewhere.

    Parameters
    ----------
    ruleset : RuleSet
        The rules; the rows of each rule are one part.
    X : DataFrame
        The rows.
    errors : ndarray
        The error of each row: 0 or 1, or an absolute error; NaN where it is unknown.

    Returns
    -------
    list of dict
        The most significant first: description (``text``), number of rows (``rows``) and mean error
        (``error``). Only the first of several parts with nearly the same rows is listed.
    """
    known_rows = np.flatnonzero(~np.isnan(errors))
    if len(known_rows) > _ROWS:
        known_rows = known_rows[np.linspace(0, len(known_rows) - 1, _ROWS).astype(np.intp)]
    X, errors = X.iloc[known_rows], errors[known_rows]
    if len(X) < 2 * _MIN_ROWS or not errors.any():
        return []
    overall, std = errors.mean(), errors.std()
    segments = []
    for text, mask in _segments(ruleset, X):
        rows = int(mask.sum())
        if not max(_MIN_ROWS, _MIN_SHARE * len(X)) <= rows <= _MAX_SHARE * len(X):
            continue
        mean = float(errors[mask].mean())
        excess = (mean - overall) * np.sqrt(rows) / std if std else 0.0
        if excess >= _CLEARLY and np.count_nonzero(errors[mask]) > 1:
            segments.append((float(excess), text, mask, mean))
    segments.sort(key=lambda one: -one[0])
    distinct_segments: list[tuple[float, str, np.ndarray, float]] = []
    for one in segments:
        if all((one[2] & k[2]).sum() < 0.6 * (one[2] | k[2]).sum() for k in distinct_segments):
            distinct_segments.append(one)
    return [
        {"text": text, "rows": int(mask.sum()), "error": mean}
        for _, text, mask, mean in distinct_segments[:_MAX_SEGMENTS]
    ]


def _segments(ruleset: RuleSet, X: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    if ruleset.voting is None and len(ruleset) > 1:
        assigned = ruleset.assign(X)
        for i in range(len(ruleset)):
            yield f"rule {i + 1} predicts", assigned == i
    if ruleset.fallback is not None:
        yield "no rule holds", ~ruleset.covers(X)
    names = list(ruleset.feature_names)
    used = sorted(ruleset.used_features)
    for j in [*used, *(j for j in range(len(names)) if j not in ruleset.used_features)][:_COLUMNS]:
        if names[j] in X.columns:
            yield from _parts(feature_name(names, j), X[names[j]])


def _parts(name: str, column: pd.Series) -> Iterator[tuple[str, np.ndarray]]:
    missing = column.isna().to_numpy()
    if missing.any():
        yield f"{name} is missing", missing
    present_values = column[~missing]
    if present_values.nunique() > _VALUES and pd.api.types.is_numeric_dtype(present_values):
        values = column.to_numpy(float, na_value=np.nan)
        distinct_values = np.unique(values[~missing])
        cuts = []
        for quarter in np.quantile(values[~missing], (0.25, 0.5, 0.75), method="lower"):
            above = distinct_values[distinct_values > quarter]
            if len(above):
                cuts.append(_short_between(float(quarter), float(above[0])))
        bounds = [-np.inf, *sorted(set(cuts)), np.inf]
        for low, high in pairwise(bounds):
            # In words, as in the cards of the page.
            parts = [f"above {low:.15g}"] if low > -np.inf else []
            parts += [f"at most {high:.15g}"] if high < np.inf else []
            yield f"{name} is {' and '.join(parts)}", (values > low) & (values <= high)
        return
    for value in present_values.value_counts().index[:12]:
        yield f"{name} is {format_label(value)}", (column == value).to_numpy(bool, na_value=False)


def _short_between(low: float, high: float) -> float:
    """Return a number with few digits that is at least `low` and below `high`."""
    for digits in range(1, 16):
        value = float(f"{low / 2 + high / 2:.{digits}g}")
        if low <= value < high:
            return value
    return low


# --- the view -------------------------------------------------------------------------------------


#: Largest total number of characters of exports; longer ones are left to the command line.
_EXPORTS_AT_MOST = 400_000
#: Largest number of rows in the page, per rule of the winner and altogether.
ROWS_PER_RULE, ROWS_AT_MOST = 10, 300


def rule_view(ruleset: RuleSet, data: Dataset | None) -> dict[str, Any]:
    """Return the contents of the page about a rule set.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    data : Dataset or None
        The data on which each rule is measured; None for no measures.

    Returns
    -------
    dict
        Ready for JSON: the rule set, its texts, used features, exports, and measures.
    """
    names = ruleset.feature_names
    classes = ruleset.classes
    fallback, abstention = ruleset.fallback, None
    if classes is not None and fallback is not None and fallback.policy == "abstain":
        abstention = fallback.abstention(classes)
    rules = [
        {
            "line": ruleset.line(i),
            "premise": rule.premise_text(names) or "(always)",
            "output": rule.output_text(names, numeric=ruleset.task == "regression"),
            "seen": rule.statistics_text(
                None if classes is None else classes.index(rule.output), names, weighted=False
            ),
            "weight": rule.weight_text(names) if ruleset.voting else None,
            **_agreement_of(rule, ruleset),
            "conditions": [_condition_text(c, ruleset) for c in rule.conditions],
            "words": premise_words(rule, ruleset),
            "used": sorted({j for c in rule.conditions for j in c.features}),
        }
        for i, rule in enumerate(ruleset.rules)
    ]
    view: dict[str, Any] = {
        "set": json.loads(ruleset.to_json(indent=None)),
        "truth": [[_truth(condition) for condition in rule.conditions] for rule in ruleset.rules],
        "text": ruleset.to_text(),
        "otherwise": last_sentence(ruleset),
        "class_texts": None if classes is None else [format_label(label) for label in classes],
        # Codes, since scripts cannot distinguish all whole numbers beyond 2**53.
        "codes": None if classes is None else [classes.index(rule.output) for rule in ruleset],
        "fallback_code": classes.index(fallback.output) if classes and fallback else -1,
        "abstention": abstention,
        "rules": rules,
        "used": sorted(ruleset.used_features),
        "exports": _exports(ruleset),
    }
    if data is not None:
        view |= _measured(ruleset, data)
    return view


def _agreement_of(rule: Rule, ruleset: RuleSet) -> dict[str, Any]:
    """Return the agreement of a rule with the model on its training rows, None if unknown."""
    statistics = rule.statistics
    agreement = None
    if statistics is not None and ruleset.reference == "black_box":
        agreement = rule.purity(ruleset.output_index(rule))
    return {
        "agreement": agreement,
        "points": None if statistics is None else statistics.n_points,
        "model_error": None if statistics is None else statistics.model_error,
        "weighted": statistics is not None and statistics.weighted,
    }


def _summary(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return quantiles of numbers, the median prediction and the mean absolute error."""
    names = ("low", "q1", "median", "q3", "high")
    quantiles = map(float, np.quantile(y, SUMMARY))
    return dict(zip(names, quantiles, strict=True)) | {
        "predicted": plain(float(np.median(predicted))),
        "error": plain(float(np.abs(y - predicted).mean())),
    }


def _target_by_rule(ruleset: RuleSet, data: Dataset, members: np.ndarray) -> list[dict[str, Any]]:
    """Describe the target in the rows of each rule, and last in the rows without a rule.

    `members` has a row per row of the data and a column per rule. The counts of classes are in the
    order of the rule set's classes; the last one counts other labels.
    """
    groups = [*members.T, ~members.any(axis=1)]
    if ruleset.classes is None:
        y = data.y.to_numpy(float)
        predicted = np.asarray(predictions_on(ruleset, data)[0], dtype=float)
        return [
            {"rows": int(group.sum())}
            | (_summary(y[group], predicted[group]) if group.any() else {})
            for group in groups
        ]
    codes = pd.Index(ruleset.classes, dtype=object).get_indexer(pd.Index(data.y, dtype=object))
    n_classes = len(ruleset.classes)
    codes = np.where(codes < 0, n_classes, codes)
    return [
        {
            "rows": int(group.sum()),
            "counts": np.bincount(codes[group], minlength=n_classes + 1).tolist(),
        }
        for group in groups
    ]


def _truth(condition: Condition) -> list[Any]:
    """Return the truth table of a condition, or a list of tables of the parts of `AtLeast`."""
    if isinstance(condition, AtLeast):
        return [_truth(part) for part in condition.conditions]
    return list(truth_table(condition))


def _condition_text(condition: Condition, ruleset: RuleSet) -> dict[str, Any]:
    inner = condition.conditions if isinstance(condition, AtLeast) else ()
    return {
        "text": condition.to_text(ruleset.feature_names),
        "parts": [_condition_text(part, ruleset) for part in inner],
    }


def _exports(ruleset: RuleSet) -> list[dict[str, Any]]:
    exports = []
    for name, write in (
        ("SQL", ruleset.to_sql),
        ("Python", ruleset.to_python),
        ("Prolog", ruleset.to_prolog),
    ):
        try:
            exports.append({"name": name, "text": write(), "error": None})
        except (TypeError, ValueError, ImportError) as error:
            exports.append({"name": name, "text": None, "error": str(error)})
    if sum(len(export["text"] or "") for export in exports) > _EXPORTS_AT_MOST:
        return [
            {
                "name": export["name"],
                "text": None,
                "error": "Too long for this page. Write it to a file: skescore rules rules.json "
                f"--to {str(export['name']).lower()}",
            }
            for export in exports
        ]
    return exports


def _measured(ruleset: RuleSet, data: Dataset) -> dict[str, Any]:
    """Measure each rule on the rows, and count the rows that it covers and predicts."""
    matches = ruleset.match(data.X)
    result: dict[str, Any] = {
        "total": len(data.X),
        "holds": matches.sum(axis=0).tolist(),
        "assigned": None,
        "report": None,
    }
    if ruleset.voting is None:
        assigned = ruleset.assign(data.X)
        result["assigned"] = np.bincount(assigned[assigned >= 0], minlength=len(ruleset)).tolist()
        members = assigned[:, None] == np.arange(len(ruleset))
    else:
        members = matches
    result["by_rule"] = _target_by_rule(ruleset, data, members)
    result["uncovered"] = int((~matches.any(axis=1)).sum())
    try:
        result["quality"] = quality_on(ruleset, data)
    except ValueError as error:
        result["quality_error"] = str(error)
    try:
        # In an ordered list, most rules also hold for rows that earlier rules predict.
        report = rule_report(ruleset, data.X, data.y, assigned=ruleset.ordered)
    except (TypeError, ValueError) as error:
        result["report_error"] = str(error)
        return result
    columns = ("p", "n", "precision", "coverage", "c2", "fdr_p_value", "significant")
    result["by_assigned"] = ruleset.ordered
    result["report"] = {name: [plain(v) for v in report[name].tolist()] for name in columns}
    alone = matches & (matches.sum(axis=1) == 1)[:, None]
    shared = (matches & ~alone).sum(axis=0)
    result["report"]["unique_rows"] = alone.sum(axis=0).tolist()
    result["report"]["overlap"] = [
        s / h if h else None
        for s, h in zip(shared.tolist(), matches.sum(axis=0).tolist(), strict=True)
    ]
    return result


def plain(value: Any) -> Any:
    """Return a value of a JSON type: None for non-finite numbers, texts for other objects."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) or value is None else str(value)


def sample_rows(
    data: Dataset, ruleset: RuleSet, other_rulesets: Sequence[RuleSet] = ()
) -> Mapping[str, Any]:
    """Choose the rows in the page: some that each rule covers, and some that no rule covers."""
    used = sorted(set().union(*(rules.used_features for rules in (ruleset, *other_rulesets))))
    names = [ruleset.feature_names[j] for j in used]
    matches = ruleset.match(data.X)
    # JSON has no infinite numbers, and null would mean a missing value.
    is_finite = ~data.X[names].isin((math.inf, -math.inf)).to_numpy(bool).any(axis=1)
    indices: list[int] = []
    groups = [np.flatnonzero(members & is_finite) for members in (*matches.T, ~matches.any(axis=1))]
    for group in groups:
        # The rows are evenly spread, because tables are often sorted.
        positions = np.unique(
            np.linspace(0, len(group) - 1, min(ROWS_PER_RULE, len(group))).round()
        )
        indices += group[positions.astype(np.intp)].tolist() if len(group) else []
    rows = sorted(dict.fromkeys(indices[:ROWS_AT_MOST]))
    values = [
        [None if pd.isna(v) else plain(v) for v in data.X[name].iloc[rows].tolist()]
        for name in names
    ]
    return {
        "features": used,
        "numbers": [row + 1 for row in rows],
        "columns": values,
        "target": str(data.y.name),
        "targets": _targets(ruleset, data.y.iloc[rows].tolist()),
        "total": len(data.X),
    }


def _targets(ruleset: RuleSet, values: list[Any]) -> list[Any]:
    """Return labels as texts that the page compares with predictions, or numbers."""
    if ruleset.classes is None:
        return [plain(v) for v in values]
    texts = {label: format_label(label) for label in ruleset.classes}
    return [texts[v] if v in texts else format_label(v) for v in values]
