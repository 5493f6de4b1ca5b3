"""A rule set as the page needs it: its logic, its texts, what each rule is worth, its exports."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore.datasets import Dataset
from skescore.metrics._rule_reports import rule_report
from skescore.report._quality import quality_on
from skescore.rules import RuleSet
from skescore.rules._conditions import AtLeast, Condition
from skescore.rules._text import format_label
from skescore.rules.exporters._sentences import last_sentence, premise_words

__all__ = ["rule_view", "sample_rows"]

#: Longer texts of all exports together are left to the command line.
_EXPORTS_AT_MOST = 400_000
#: Rows in the page: so many per rule of the winner, and so many altogether.
ROWS_PER_RULE, ROWS_AT_MOST = 10, 300


def rule_view(ruleset: RuleSet, data: Dataset | None) -> dict[str, Any]:
    """Gather all that the page says of a rule set.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    data : Dataset or None
        The data on which each rule is measured; None for none.

    Returns
    -------
    dict
        Ready for JSON: the rule set, its texts, the features it uses, and its exports.
    """
    names = ruleset.feature_names
    classes = ruleset.classes
    abstains = ruleset.fallback is not None and ruleset.fallback.policy == "abstain"
    abstention = None
    if abstains and classes is not None and ruleset.fallback is not None:
        abstention = ruleset.fallback.abstention(classes)
    rules = [
        {
            "line": ruleset.line(i),
            "premise": rule.premise_text(names) or "(always)",
            "output": rule.output_text(names, numeric=ruleset.task == "regression"),
            "seen": rule.statistics_text(
                None if classes is None else classes.index(rule.output), names, weighted=False
            ),
            "weight": rule.weight_text(names) if ruleset.voting else None,
            "conditions": [_condition_text(c, ruleset) for c in rule.conditions],
            "words": premise_words(rule, ruleset),
            "used": sorted({j for c in rule.conditions for j in c.features}),
        }
        for i, rule in enumerate(ruleset.rules)
    ]
    view: dict[str, Any] = {
        "set": json.loads(ruleset.to_json(indent=None)),
        "text": ruleset.to_text(),
        "otherwise": last_sentence(ruleset),
        "class_texts": None if classes is None else [format_label(label) for label in classes],
        "abstention": abstention,
        "rules": rules,
        "used": sorted(ruleset.used_features),
        "exports": _exports(ruleset),
    }
    if data is not None:
        view |= _measured(ruleset, data)
    return view


def _condition_text(condition: Condition, ruleset: RuleSet) -> dict[str, Any]:
    inner = condition.conditions if isinstance(condition, AtLeast) else ()
    return {
        "text": condition.to_text(ruleset.feature_names),
        "parts": [_condition_text(part, ruleset) for part in inner],
    }


def _exports(ruleset: RuleSet) -> list[dict[str, Any]]:
    made = []
    for name, write in (
        ("SQL", ruleset.to_sql), ("Python", ruleset.to_python), ("Prolog", ruleset.to_prolog),
    ):  # fmt: skip
        try:
            made.append({"name": name, "text": write(), "error": None})
        except (TypeError, ValueError, ImportError) as error:
            made.append({"name": name, "text": None, "error": str(error)})
    if sum(len(export["text"] or "") for export in made) > _EXPORTS_AT_MOST:
        return [
            {
                "name": export["name"],
                "text": None,
                "error": "Too long for this page. Write it to a file: skescore rules rules.json "
                f"--to {str(export['name']).lower()}",
            }
            for export in made
        ]
    return made


def _measured(ruleset: RuleSet, data: Dataset) -> dict[str, Any]:
    """What each rule is worth on the rows, and how many rows it holds for and is assigned."""
    held = ruleset.match(data.X)
    result: dict[str, Any] = {
        "total": len(data.X), "holds": held.sum(axis=0).tolist(), "assigned": None, "report": None,
    }  # fmt: skip
    if ruleset.voting is None:
        assigned = ruleset.assign(data.X)
        result["assigned"] = np.bincount(
            assigned[assigned >= 0], minlength=len(ruleset)
        ).tolist()  # fmt: skip
    result["uncovered"] = int((~held.any(axis=1)).sum())
    try:
        result["quality"] = quality_on(ruleset, data)
    except ValueError as error:
        result["quality_error"] = str(error)
    try:
        # In an ordered list most rules hold for rows assigned to earlier ones.
        report = rule_report(ruleset, data.X, data.y, assigned=ruleset.ordered)
    except (TypeError, ValueError) as error:
        result["report_error"] = str(error)
        return result
    columns = ("p", "n", "precision", "coverage", "c2", "fdr_p_value", "significant")
    result["by_assigned"] = ruleset.ordered
    result["report"] = {name: [plain(v) for v in report[name].tolist()] for name in columns}
    alone = held & (held.sum(axis=1) == 1)[:, None]
    shared = (held & ~alone).sum(axis=0)
    result["report"]["unique_rows"] = alone.sum(axis=0).tolist()
    result["report"]["overlap"] = [
        s / h if h else None
        for s, h in zip(shared.tolist(), held.sum(axis=0).tolist(), strict=True)
    ]
    return result


def plain(value: Any) -> Any:
    """A value as JSON knows it; null for what is not finite or missing."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) or value is None else str(value)


def sample_rows(
    data: Dataset, ruleset: RuleSet, others: Sequence[RuleSet] = ()
) -> Mapping[str, Any]:
    """Choose the rows that stand in the page: some for every rule, and some for none."""
    held = ruleset.match(data.X)
    chosen: list[int] = []
    groups = [np.flatnonzero(column) for column in held.T] + [np.flatnonzero(~held.any(axis=1))]
    for group in groups:
        # Evenly spread, as tables are often sorted.
        places = np.unique(np.linspace(0, len(group) - 1, min(ROWS_PER_RULE, len(group))).round())
        chosen += group[places.astype(np.intp)].tolist() if len(group) else []
    rows = sorted(dict.fromkeys(chosen[:ROWS_AT_MOST]))
    used = sorted(set().union(*(rules.used_features for rules in (ruleset, *others))))
    names = [ruleset.feature_names[j] for j in used]
    values = [
        [None if pd.isna(v) else plain(v) for v in data.X[name].iloc[rows].tolist()]
        for name in names
    ]
    return {
        "features": used,
        "numbers": [row + 1 for row in rows],
        "columns": values,
        "target": str(data.y.name),
        "targets": [plain(v) for v in data.y.iloc[rows].tolist()],
        "total": len(data.X),
    }
