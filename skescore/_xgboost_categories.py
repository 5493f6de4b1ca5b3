"""Labels of categories in the JSON of XGBoost models."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["stored_categories"]


def stored_categories(learner: Mapping[str, Any]) -> dict[int, list[Any] | str]:
    """Return the labels of each categorical feature, or the reason why they are not stored.

    Parameters
    ----------
    learner : mapping
        The learner in the JSON of a booster.

    Returns
    -------
    dict of int to list or str
        Labels or reason by the feature's index.
    """
    booster = learner["gradient_booster"]
    tree_model = booster.get("gbtree", booster).get("model", {})
    kinds = learner["feature_types"] or ()
    encoded = tree_model.get("cats", {}).get("enc") or [{"values": ()}] * len(kinds)
    result: dict[int, list[Any] | str] = {}
    for feature, (column, kind) in enumerate(zip(encoded, kinds, strict=False)):
        if kind != "c":
            continue
        values: Sequence[Any] = column["values"]
        if "offsets" in column:
            text, ends = bytes(value % 256 for value in values), column["offsets"]
            if text.isascii():
                result[feature] = [text[a:b].decode() for a, b in itertools.pairwise(ends)]
            else:  # XGBoost 3.2 stores bytes, but its offsets count characters
                result[feature] = "stores wrong offsets for labels with non-ASCII characters"
        else:
            stored = len(values) > 0
            result[feature] = list(values) if stored else "stored only the codes of categories"
    return result
