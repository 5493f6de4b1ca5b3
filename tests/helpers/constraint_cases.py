"""Generated cases of constraints: tables, black boxes, extractors, and what must come out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from constraint_oracle import TooManyRowsError, broken
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.constraints import (
    ConstrainedRules,
    Constraints,
    InfeasibleConstraintsError,
    PinnedRule,
    RejectedRulesError,
    constrain,
    enforce,
)
from skescore.registry import make_extractor
from skescore.rules import Interval, Missing, OneOf, Rule, RuleSet

COLORS = ("red", "green", "blue")
LABELS = {2: ["no", "yes"], 3: ["high", "low", "mid"]}
#: Small settings of the extractors, so that cells can be enumerated.
EXTRACTORS: dict[str, dict[str, Any]] = {
    "cart": {"max_leaf_nodes": 6, "random_state": 0},
    "cream": {"depth": 3, "random_state": 0},
    "exact": {"depth": 3, "random_state": 0},
    "gridex": {"max_rules": 6, "random_state": 0},
    "gridrex": {"max_rules": 4, "random_state": 0},
    "iter": {"max_rules": 5, "random_state": 0},
    "optimal-list": {"max_rules": 3, "max_work": 2e5},
    "optimal-tree": {"max_leaf_nodes": 4, "max_work": 2e5},
    "real": {"max_rules": 4},
    "trepan": {"max_leaf_nodes": 4, "random_state": 0},
}
REGRESSION_EXTRACTORS = ("cart", "gridex", "gridrex", "iter", "cream", "optimal-tree")


@dataclass
class Case:
    """A table with a black box, an extractor and constraints."""

    X: pd.DataFrame
    y: np.ndarray
    black_box: Any
    extractor: Any
    name: str
    constraints: Constraints


def make_table(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, int]:
    """Return a table with numbers, categories and missing values, its target and its classes."""
    n_rows = int(rng.integers(30, 160))
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows).astype(float),
            "income": rng.gamma(2.0, 20.0, n_rows).round(int(rng.integers(0, 4))),
            "size": rng.normal(0.0, 1.0, n_rows),
            "color": rng.choice(COLORS, n_rows),
        }
    )
    score = 0.03 * (X["age"] - 45) + 0.04 * (X["income"] - 40) * rng.choice([1, -1])
    score += X["size"] * rng.normal() + (X["color"] == "red") * rng.normal()
    score = (score + rng.normal(0, 0.5, n_rows)).to_numpy()
    n_classes = int(rng.choice([2, 2, 3, 0]))
    if rng.random() < 0.3:
        X.loc[rng.random(n_rows) < 0.1, "size"] = np.nan
    X = X[[*rng.permutation(X.columns)][: int(rng.integers(2, 5))]]
    if not any(c != "color" for c in X.columns):
        X = X.assign(age=np.arange(n_rows, dtype=float))
    if not n_classes:
        return X, score.round(2), 0
    bins = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    names = {2: ["no", "yes"], 3: ["low", "mid", "high"]}[n_classes]
    y = np.array(names)[np.digitize(score, bins)]
    return X, y, n_classes


def make_black_box(X: pd.DataFrame, y: np.ndarray, n_classes: int, rng: Any) -> Any:
    """Return a fitted model that reads numbers, categories and missing values."""
    encoder = ColumnTransformer(
        [("codes", OrdinalEncoder(), make_column_selector(dtype_exclude="number"))],
        remainder="passthrough",
    )
    trees = (DecisionTreeClassifier, DecisionTreeRegressor)
    boosted = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    if rng.random() < 0.8:
        model = trees[n_classes == 0](max_leaf_nodes=12, random_state=0)
    else:
        model = boosted[n_classes == 0](max_iter=5, max_leaf_nodes=6, random_state=0)
    return FrozenEstimator(make_pipeline(encoder, model).fit(X, y))


def random_condition(X: pd.DataFrame, rng: Any, feature: int) -> Any:
    values = X.iloc[:, feature]
    if X.columns[feature] == "color":
        chosen = rng.choice(COLORS, int(rng.integers(1, 3)), replace=False)
        return OneOf(feature, chosen.tolist(), negated=bool(rng.random() < 0.2))
    if values.isna().any() and rng.random() < 0.1:
        return Missing(feature, negated=bool(rng.random() < 0.5))
    low, high = sorted(values.dropna().quantile(rng.random(2)).round(1).tolist())
    if low == high:
        return Interval(feature, upper=high)
    kind = rng.integers(0, 3)
    return [Interval(feature, low), Interval(feature, upper=high), Interval(feature, low, high)][
        kind
    ]


def random_pinned(X: pd.DataFrame, outputs: list[Any], rng: Any) -> list[PinnedRule]:
    pinned = []
    for _ in range(int(rng.integers(1, 3))):
        n = int(rng.integers(1, 3))
        features = rng.choice(X.shape[1], min(n, X.shape[1]), replace=False)
        conditions = [random_condition(X, rng, int(f)) for f in features]
        position = int(rng.integers(0, 2)) if rng.random() < 0.3 else None
        output = outputs[int(rng.integers(len(outputs)))]
        pinned.append(PinnedRule(Rule(conditions, output), list(X.columns), position))
    return pinned


def random_constraints(X: pd.DataFrame, y: np.ndarray, n_classes: int, rng: Any) -> Constraints:
    """Return two to five random constraints, often satisfiable, sometimes contradictory."""
    names = list(X.columns)
    numbers = [c for c in names if c != "color"]
    outputs = sorted(set(y.tolist())) if n_classes else y[:3].tolist()
    order = {0: None, 2: None, 3: ["low", "mid", "high"]}[n_classes]

    def some(values: list[Any], n: int = 1) -> list[Any]:
        return rng.choice(values, min(n, len(values)), replace=False).tolist()

    def thresholds() -> Any:
        kind = int(rng.integers(0, 3))
        if kind == 0:
            return {"decimals": int(rng.integers(0, 3))}
        if kind == 1:
            return {"digits": int(rng.integers(1, 4))}
        return sorted(set(rng.choice([18, 30, 45.5, 65, 0, -1, 1, 20, 100], 3).tolist()))

    options = {
        "forbidden": lambda: some(names),
        "required": lambda: some(names, int(rng.integers(1, 3))),
        "cost": lambda: None,
        "monotone": lambda: {f: str(rng.choice(["+", "-"])) for f in some(numbers, 2)},
        "pinned": lambda: random_pinned(X, outputs, rng),
        "thresholds": lambda: {f: thresholds() for f in [*some(numbers), *some(["*"])]},
        "together": lambda: {"color": [some(list(COLORS), 2)]},
        "apart": lambda: {"color": [some(list(COLORS), 2)]},
        "max_conditions": lambda: int(rng.integers(1, 4)),
        "max_features": lambda: int(rng.integers(1, 4)),
        "max_rules": lambda: int(rng.integers(1, 6)),
        "max_rules_per_class": lambda: int(rng.integers(1, 4)),
        "min_support": lambda: float(rng.choice([0.05, 0.1, 5, 10, 60, 0.4])),
        "min_precision": lambda: float(rng.choice([0.5, 0.6, 0.7, 0.8, 0.95])),
        "max_gap": lambda: {"color": float(rng.choice([0.05, 0.1, 0.3]))},
    }
    if "color" not in names:
        options = {k: v for k, v in options.items() if k not in ("together", "apart", "max_gap")}
    if not n_classes:
        options = {
            k: v for k, v in options.items() if k not in ("max_rules_per_class", "min_precision")
        }
    chosen = {n: options[n]() for n in some(list(options), int(rng.integers(2, 6)))}
    if "cost" in chosen:
        del chosen["cost"]
        chosen["feature_costs"] = {f: float(rng.integers(1, 4)) for f in names}
        chosen["max_cost"] = float(rng.integers(1, 6))
    return Constraints(**chosen, class_order=order)


def make_constraints(seed: int) -> Constraints:
    """Return the constraints of a case without a black box."""
    rng = np.random.default_rng(seed)
    X, y, n_classes = make_table(rng)
    return random_constraints(X, y, n_classes, rng)


def make_case(seed: int) -> Case:
    """Return the case with a number."""
    rng = np.random.default_rng(seed)
    X, y, n_classes = make_table(rng)
    black_box = make_black_box(X, y, n_classes, rng)
    is_linear = n_classes == 0
    names = [n for n in EXTRACTORS if n != "gridrex"]
    names = list(REGRESSION_EXTRACTORS) if is_linear else names
    name = names[seed % len(names)]
    extractor = make_extractor(name, black_box, **EXTRACTORS[name])
    return Case(X, y, black_box, extractor, name, random_constraints(X, y, n_classes, rng))


def check_case(seed: int) -> str:
    """Constrain an extractor, and compare the result with the obvious checker.

    Returns
    -------
    str
        ``"satisfied"``, ``"conflict"``, or ``"undecided"`` if there are neither rules nor a proof,
        or a part of a conflict has neither.
    """
    case = make_case(seed)
    constraints = case.constraints
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = constrain(case.extractor, constraints, case.X)
        except InfeasibleConstraintsError as error:
            return "conflict" if check_conflict(case, error) else "undecided"
    if result.ruleset is None:
        return "undecided"
    check_rules(case, result.ruleset, constraints)
    return "satisfied"


def check_rules(case: Case, ruleset: RuleSet, constraints: Constraints) -> None:
    """Raise an AssertionError if rules break a constraint according to the obvious checker."""
    labels = case.black_box.predict(case.X)
    assert len(ruleset)
    try:
        names = broken(ruleset, constraints, case.X, labels)
    except TooManyRowsError:
        names = broken(ruleset, constraints.replace(monotone={}, pinned=[]), case.X, labels)
    assert not names, f"{case.name}: {names}\n{constraints}\n{ruleset}"


def check_conflict(case: Case, error: InfeasibleConstraintsError) -> bool:
    """Return whether a conflict is minimal; raise an AssertionError if it is none.

    The rules of a tree cannot be repaired for the conflict, but for each part of it.
    """
    labels = error.conflict.labels
    conflict = case.constraints.only(labels)
    tree = clone(make_extractor("cart", case.black_box, max_leaf_nodes=6, random_state=0))
    rules = tree.fit(case.X).rules_
    predictions = case.black_box.predict(case.X)
    assert enforce(rules, conflict, case.X, predictions).is_rejected, f"satisfiable: {error}"
    for label in labels:
        fewer = conflict.without(label)
        result = enforce(rules, fewer, case.X, predictions)
        if result.ruleset is None:
            return False
        check_rules(case, result.ruleset, fewer)
    return True


__all__ = [
    "Case",
    "ConstrainedRules",
    "RejectedRulesError",
    "check_case",
    "make_case",
    "make_constraints",
]
