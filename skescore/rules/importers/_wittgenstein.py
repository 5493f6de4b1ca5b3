"""Conversion of wittgenstein's RIPPER and IREP to rules."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._domain import Fallback
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
#: Bin of a feature, as a range.
_RANGE = re.compile(rf"(?:(?P<low>{_NUMBER}) - (?P<high>{_NUMBER}))|<(?P<top>.+)|>(?P<bottom>.+)")


def read_wittgenstein(model: Any) -> RuleSet:
    """Convert a fitted RIPPER or IREP model of wittgenstein to a rule set.

    Parameters
    ----------
    model : RIPPER or IREP
        The fitted model.

    Returns
    -------
    RuleSet
        Rules for ``True``, which is the class `pos_class` of the model; the fallback is ``False``.
        Predictions are those of ``model.predict``; ``with_class_names`` renames the classes.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    if not hasattr(model, "ruleset_"):  # check_is_fitted does not support these classes
        raise NotFittedError(
            f"This {type(model).__name__} has no rules yet. Call its method fit first."
        )
    names = [str(name) for name in model.trainset_features_]
    transformer = model.bin_transformer_
    binned = set(map(str, getattr(transformer, "bins_", None) or {}))
    rules = []
    for rule in model.ruleset_.rules:
        conditions = [
            _condition(names.index(str(c.feature)), c.val, str(c.feature) in binned)
            for c in rule.conds
        ]
        with contextlib.suppress(ValueError):  # a rule with two ranges of a feature never holds
            rules.append(Rule(tuple(conditions), True))
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=[False, True],
        ordered=False,
        fallback=Fallback(False),
    )


def _condition(feature: int, value: Any, is_binned: bool) -> Condition:
    """Read a value, or a range that contains its upper but not its lower end."""
    value = value.item() if isinstance(value, np.generic) else value
    match = _RANGE.fullmatch(value) if is_binned and isinstance(value, str) else None
    if match is None:
        return OneOf(feature, (value,))
    if match["top"] is not None:
        return Interval(feature, upper=float(match["top"]))
    if match["bottom"] is not None:
        return Interval(feature, lower=float(match["bottom"]))
    return Interval(feature, float(match["low"]), float(match["high"]))
