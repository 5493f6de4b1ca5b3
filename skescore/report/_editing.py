"""Data with which scripts in the page measure edited rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from skescore.datasets import Dataset
from skescore.editing import CONFIDENCE, SHARE_OF_CHANGE
from skescore.report._rule_views import plain
from skescore.rules import Interval, Linear, Missing, OneOf, RuleSet, truth_table

#: Largest number of rows and of cells that the page holds for edits.
MAX_ROWS, MAX_CELLS = 2_000, 40_000
#: Largest whole number that scripts represent exactly.
_MAX_INTEGER = 2**53


def editing_view(
    ruleset: RuleSet, data: Dataset | None, model: np.ndarray | None
) -> dict[str, Any] | None:
    """Return the data by which the page measures edited rules; None if they cannot be edited.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    data : Dataset or None
        The rows with their labels.
    model : ndarray of shape (n_rows,) or None
        Predictions of the black box.

    Returns
    -------
    dict or None
        Ready for JSON: columns of the used features, labels and predictions as codes of the classes
        (or numbers), and a description of the rows. Of long tables, evenly spaced rows.
    """
    if data is None or ruleset.voting is not None or not len(ruleset) or not _is_exact(ruleset):
        return None
    used = sorted(ruleset.used_features)
    names = [ruleset.feature_names[j] for j in used]
    frame = data.X[names]
    is_finite = ~frame.isin((math.inf, -math.inf)).to_numpy(bool).any(axis=1)
    rows = np.flatnonzero(is_finite)
    limit = max(1, min(MAX_ROWS, MAX_CELLS // max(1, len(used))))
    if len(rows) > limit:
        rows = rows[np.linspace(0, len(rows) - 1, limit).round().astype(np.intp)]
    if not len(rows):
        return None
    columns = {
        j: [None if pd.isna(v) else plain(v) for v in frame[name].iloc[rows].tolist()]
        for j, name in zip(used, names, strict=True)
    }
    references = ["data"] + ([] if model is None else ["model"])
    return {
        "columns": columns,
        "y": _codes(ruleset, data.y.iloc[rows].tolist()),
        "model": None if model is None else _codes(ruleset, np.asarray(model)[rows].tolist()),
        "total": len(data.X),
        "about": {
            "name": f"{len(rows)} of {len(data.X)} rows in a report",
            "n_rows": len(rows),
            "references": references,
        },
        "truth": _truth_tables(),
        "interval": {
            "confidence": CONFIDENCE,
            "share_of_change": SHARE_OF_CHANGE,
            "t_quantile": plain(float(stats.t.ppf((1 + CONFIDENCE) / 2, max(1, len(rows) - 1)))),
        },
    }


def _is_exact(ruleset: RuleSet) -> bool:
    """Return whether a script can represent all labels and values of the rules."""
    values = list(ruleset.classes or ())
    values += [
        v for rule in ruleset for c in rule.conditions if isinstance(c, OneOf) for v in c.values
    ]
    return all(not isinstance(v, int) or abs(v) <= _MAX_INTEGER for v in values)


def _codes(ruleset: RuleSet, values: list[Any]) -> list[Any]:
    """Return labels as codes of the classes, other labels as further codes; numbers as floats."""
    if ruleset.classes is None:
        return [plain(float(v)) for v in values]
    codes = {label: code for code, label in enumerate(ruleset.classes)}
    return [codes.setdefault(v, len(codes)) for v in values]


def _truth_tables() -> dict[str, Any]:
    """Return truth tables by kind of condition, at index 2 * negated + missing if in a list."""
    flags = [(negated, missing) for negated in (False, True) for missing in (False, True)]
    return {
        "interval": [list(truth_table(Interval(0, upper=0, missing=m))) for _, m in flags],
        "one_of": [list(truth_table(OneOf(0, ("a",), n, m))) for n, m in flags],
        "missing": [list(truth_table(Missing(0, n))) for n, _ in flags],
        "linear": list(truth_table(Linear(((0, 1.0),), upper=0))),
    }
