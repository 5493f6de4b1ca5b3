"""Rule lists that a search offers as alternatives, in the form of ``run.json``."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

from skescore.tuning import READABLE_RULES, Alternative, ExtractorSearchCV

__all__ = ["alternatives_record"]


def alternatives_record(search: ExtractorSearchCV) -> dict[str, Any]:
    """Return the alternatives of a search with their figures, for ``run.json`` and the report.

    Parameters
    ----------
    search : ExtractorSearchCV
        A fitted search.

    Returns
    -------
    dict
        ``measure`` (``accuracy`` or ``r2``); the reference and rows of ``correctness`` and
        ``fidelity``, and whether the rows are weighted or generated; ``max_rules`` of the most
        faithful list; and ``lists``: roles, extractor, parameters, trial, number of rules, both
        figures, the rules, and number of rules and figures of the best larger candidate (``next``,
        None if none is better). Undefined figures are None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> search = ExtractorSearchCV(
    ...     DecisionTreeClassifier(max_depth=3, random_state=0), extractors=["cart"], n_trials=3,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> record = alternatives_record(search)
    >>> record["fidelity"]["rows"], record["lists"][0]["roles"][0]
    ('held-out rows, on which the model was not fitted, 5 folds', 'best')
    """
    data = search.data_
    n_folds = max((len(candidate.folds) for candidate in search.candidates_), default=0)
    unseen = f"held-out rows, on which the model was not fitted, {n_folds} folds"
    if data.has_generated_rows:
        unseen = f"rows generated from held-out rows, which the model has not seen, {n_folds} folds"
    is_weighted = data.row_weights is not None
    limit = search.max_rules
    if limit is None:
        limit = max(READABLE_RULES, len(getattr(search, "classes_", ())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The search has reported these warnings.
        alternatives = search.alternatives_
    return {
        "measure": "r2" if search.rules_.task == "regression" else "accuracy",
        "correctness": {
            "reference": "data",
            "rows": f"held-out rows, {n_folds} folds",
            "weighted": is_weighted,
        },
        "fidelity": {
            "reference": "black-box",
            "rows": unseen,
            "weighted": is_weighted and not data.has_generated_rows,
            "generated": data.has_generated_rows,
        },
        "max_rules": limit,
        "lists": [_list_record(search, alternative) for alternative in alternatives],
    }


def _list_record(search: ExtractorSearchCV, alternative: Alternative) -> dict[str, Any]:
    following = None
    if not math.isnan(alternative.next_rules):
        following = {
            "n_rules": alternative.next_rules,
            "correctness": _finite(alternative.next_correctness),
            "fidelity": _finite(alternative.next_fidelity),
        }
    return {
        "roles": list(alternative.roles),
        "extractor": alternative.extractor,
        "params": alternative.params,
        "trial": alternative.trial,
        "n_rules": len(alternative.rules),
        "correctness": _finite(alternative.correctness),
        "fidelity": _finite(alternative.fidelity),
        "is_constant": alternative.is_constant,
        "next": following,
        "rules": json.loads(alternative.rules.to_json(indent=None)),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
