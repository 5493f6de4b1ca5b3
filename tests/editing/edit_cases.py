"""Rule sets of every kind, and random edits of them, for the tests of the editor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import (
    Fallback,
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    as_ruleset,
    with_statistics,
)

COLORS = ("blue", "green", "red")
KINDS = ("list", "tree", "unordered", "voting", "regression list", "regression tree")


def table(random: np.random.Generator, n_rows: int = 60) -> pd.DataFrame:
    """Return numbers with ties and missing values, and a column of colors."""
    X = pd.DataFrame(
        {
            "age": random.integers(0, 9, n_rows).astype(float),
            "income": np.round(random.normal(size=n_rows), 1),
            "color": random.choice(COLORS, n_rows),
        }
    )
    X.loc[random.random(n_rows) < 0.1, "age"] = np.nan
    return X


def labels(random: np.random.Generator, X: pd.DataFrame, *, numeric: bool) -> np.ndarray:
    signal = X["age"].fillna(4) + 2 * X["income"] + 2 * (X["color"] == "red")
    signal = signal + random.normal(size=len(X))
    if numeric:
        return np.round(signal.to_numpy(), 2)
    return np.where(signal > 6, "high", np.where(signal > 3, "middle", "low"))


def _condition(random: np.random.Generator, feature: int) -> Any:
    if feature == 2:
        values = random.choice(COLORS, int(random.integers(1, 3)), replace=False).tolist()
        return OneOf(2, values, bool(random.integers(2)))
    if feature == 0 and random.random() < 0.2:
        return Missing(0, negated=bool(random.integers(2)))
    low, high = sorted(np.round(random.uniform(-1, 8, 2), 1).tolist())
    side = int(random.integers(3))
    return Interval(
        feature,
        -math.inf if side == 0 else low,
        math.inf if side == 1 else high + 0.1,
        missing=feature == 0 and bool(random.integers(2)),
    )


def rule_set(random: np.random.Generator, kind: str) -> tuple[RuleSet, pd.DataFrame, np.ndarray]:
    """Return rules of one kind with the statistics of rows, and these rows with their labels."""
    numeric = kind.startswith("regression")
    X = table(random)
    y = labels(random, X, numeric=numeric)
    if kind.endswith("tree"):
        filled = X[["age", "income"]].fillna(-1)
        model: Any = (DecisionTreeRegressor if numeric else DecisionTreeClassifier)(
            max_leaf_nodes=6, random_state=0
        )
        rules = as_ruleset(model.fit(filled, y))
        return with_statistics(rules, filled, y), filled, y
    outputs = [float(v) for v in np.unique(y)] if numeric else ["low", "middle", "high"]
    rules_list = []
    for _ in range(int(random.integers(2, 6))):
        features = random.choice(3, int(random.integers(1, 4)), replace=False)
        output: Any = random.choice(np.array(outputs, dtype=object))
        if numeric and random.random() < 0.3:
            output = LinearOutput(1.0, [(1, 0.5)])
        rules_list.append(Rule([_condition(random, int(f)) for f in features], output))
    ordered = kind in ("list", "regression list")
    rules = RuleSet(
        rules_list,
        list(X),
        task="regression" if numeric else "classification",
        classes=None if numeric else ["high", "low", "middle"],
        ordered=ordered,
        voting="votes" if kind == "voting" else None,
        fallback=Fallback(outputs[0]) if random.random() < 0.8 else None,
    )
    rules = rules.replace(domain=rules.domain_around(X))
    return with_statistics(rules, X, y), X, y


def random_edit(random: np.random.Generator, rules: RuleSet) -> dict[str, Any]:
    """Return an edit that often, but not always, can be made."""
    number = int(random.integers(1, len(rules) + 1))
    other = int(random.integers(1, len(rules) + 1))
    names = rules.feature_names
    feature = str(random.choice(names[:2]))
    bound = float(np.round(random.uniform(-1, 8), 1))
    side = str(random.choice(["lower", "upper"]))
    output = rules[other - 1].output
    choices: list[dict[str, Any]] = [
        {"action": "drop", "number": number},
        {"action": "move", "number": number, "to": other},
        {"action": "merge", "first": number, "second": other},
        {"action": "split", "number": number, "feature": feature, "bound": bound},
        {"action": "set_bound", "number": number, "feature": feature, side: bound},
        {"action": "set_bound", "number": number, "feature": feature, side: None},
        {"action": "forbid", "feature": str(random.choice(names))},
    ]
    if not isinstance(output, LinearOutput):
        choices.append({"action": "set_output", "number": number, "output": output})
        choices.append({"action": "set_fallback", "output": output})
    if "color" in names:
        values = random.choice(COLORS, 2, replace=False).tolist()
        choices.append(
            {"action": "set_categories", "number": number, "feature": "color", "values": values}
        )
    return choices[int(random.integers(len(choices)))]
