"""Random small models and rules, and their exact disagreement by enumeration of all cells.

Numbers are multiples of 1, thresholds of the models lie halfway between them, and bounds of the
rules at quarters. The cells are enumerated here without code of the package.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet

LEVELS = 5
COLORS = ("blue", "green", "red")
CLASSIFIERS = {
    "tree": lambda n, seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda n, seed: RandomForestClassifier(n, max_depth=4, random_state=seed),
    "boosting": lambda n, seed: GradientBoostingClassifier(n_estimators=n, random_state=seed),
    "hist": lambda n, seed: HistGradientBoostingClassifier(
        max_iter=n, min_samples_leaf=3, categorical_features="from_dtype", random_state=seed
    ),
    "ada": lambda n, seed: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=n, random_state=seed
    ),
}
REGRESSORS = {
    "tree": lambda n, seed: DecisionTreeRegressor(max_depth=4, random_state=seed),
    "forest": lambda n, seed: RandomForestRegressor(n, max_depth=4, random_state=seed),
    "extra": lambda n, seed: ExtraTreesRegressor(n, max_depth=4, random_state=seed),
    "boosting": lambda n, seed: GradientBoostingRegressor(n_estimators=n, random_state=seed),
    "hist": lambda n, seed: HistGradientBoostingRegressor(
        max_iter=n, min_samples_leaf=3, categorical_features="from_dtype", random_state=seed
    ),
}


@dataclass
class SmallProblem:
    """Rules, model and rows, with the kinds of the columns."""

    rules: RuleSet
    model: Any
    X: pd.DataFrame
    tolerance: float | None
    radius: float
    kinds: list[str]
    missing: list[float]
    label: str


def make_problem(
    seed: int, makers_by_task: tuple[dict[str, Any], dict[str, Any]] = (CLASSIFIERS, REGRESSORS)
) -> SmallProblem:
    """Return a random problem with one of the models."""
    rng = np.random.default_rng(seed)
    is_classification = bool(rng.random() < 0.6)
    makers = makers_by_task[0 if is_classification else 1]
    kind = str(rng.choice(sorted(makers)))
    n_features = int(rng.integers(1, 5))
    has_color = kind in ("hist", "xgboost", "lightgbm") and n_features > 1
    takes_missing = kind not in ("extra", "boosting", "ada")
    kinds = [str(rng.choice(["number", "integer"])) for _ in range(n_features)]
    if has_color:
        kinds[-1] = "category"
    X = _random_rows(rng, kinds, int(rng.integers(30, 80)), takes_missing)
    n_classes = int(rng.integers(2, 4))
    codes = np.column_stack(
        [X[c].cat.codes if X[c].dtype == "category" else X[c].fillna(-1) for c in X]
    ).astype(float)
    score = codes @ rng.normal(size=n_features) + rng.normal(size=len(X))
    if is_classification:
        ranks = score.argsort().argsort()
        y: Any = np.array(["no", "yes", "maybe"])[ranks * n_classes // len(X)]
    else:
        y = score
    model = makers[kind](int(rng.integers(1, 9)), seed)
    rows = X if has_color else X.astype(float)
    model.fit(rows, y)
    missing = [float(v) for v in X.isna().mean()]
    rules = _random_rules(rng, X, kinds, y, is_classification, missing)
    return SmallProblem(
        rules,
        model,
        rows,
        None if is_classification else float(np.std(y) * rng.uniform(0.2, 1)),
        float(rng.choice([0.0, 0.3, 1.0])),
        kinds,
        missing,
        f"{seed}: {kind}, {kinds}",
    )


def _random_rows(
    rng: np.random.Generator, kinds: list[str], n_rows: int, takes_missing: bool
) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for j, kind in enumerate(kinds):
        if kind == "category":
            codes = rng.integers(0, len(COLORS), n_rows)
            codes[: len(COLORS)] = range(len(COLORS))
            values: Any = pd.Series(pd.Categorical.from_codes(codes, list(COLORS)))
        else:
            values = pd.Series(rng.integers(0, LEVELS + 1, n_rows).astype(float))
            values[:2] = [0.0, LEVELS]
            if kind == "number":
                values[2] = 1.75  # the only fraction, so that the column holds no integers
        if takes_missing and rng.random() < 0.4:
            is_missing = rng.random(n_rows) < 0.2
            is_missing[:3] = False  # the rows that determine range and kind
            values[is_missing] = np.nan
        columns[f"v{j}"] = values
    return pd.DataFrame(columns)


def _random_rules(
    rng: np.random.Generator,
    X: pd.DataFrame,
    kinds: list[str],
    y: Any,
    is_classification: bool,
    missing: list[float],
) -> RuleSet:
    outputs = sorted(set(y.tolist())) if is_classification else None
    rules = []
    for _ in range(int(rng.integers(1, 5))):
        conditions: list[Any] = []
        for j in np.flatnonzero(rng.random(len(kinds)) < 0.6).tolist():
            accepts = bool(missing[j] > 0 and rng.random() < 0.4)
            if kinds[j] == "category":
                values = rng.choice(COLORS, int(rng.integers(1, 3)), replace=False).tolist()
                conditions.append(OneOf(j, values, bool(rng.random() < 0.3), accepts))
                continue
            low, high = np.sort(rng.choice(np.arange(0, 2 * LEVELS + 1) / 2 + 0.25, 2, False))
            low, high = (low, high) if rng.random() < 0.5 else (-np.inf, high)
            closed = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
            conditions.append(Interval(j, low, high, *closed, missing=accepts))
        output = rng.choice(outputs).item() if outputs else float(rng.choice(y))
        rules.append(Rule(tuple(conditions), output))
    fallback = None
    if rng.random() < 0.5:
        fallback = Fallback(outputs[0] if outputs else float(y.mean()))
    codes = X.apply(lambda c: c.cat.codes.replace(-1, np.nan) if c.dtype == "category" else c)
    categories = {j: COLORS for j, kind in enumerate(kinds) if kind == "category"}
    return RuleSet(
        rules,
        list(X.columns),
        task="classification" if is_classification else "regression",
        classes=outputs,
        domain=Domain.around(codes.to_numpy(float), 0.0, categories),
        fallback=fallback,
    )


@dataclass
class Cells:
    """All cells with a representative row and their weights."""

    rows: pd.DataFrame
    volume: np.ndarray
    near: np.ndarray


def enumerate_cells(problem: SmallProblem) -> Cells:
    """Return every combination of cells of the columns, with volumes and masses near the rows."""
    columns = [_column_cells(problem, j) for j in range(len(problem.kinds))]
    grids = np.meshgrid(*(np.arange(len(cells)) for cells in columns), indexing="ij")
    combinations = [grid.ravel() for grid in grids]
    rows = pd.DataFrame(
        {
            name: np.array([cell[0] for cell in columns[j]], dtype=object)[combinations[j]]
            for j, name in enumerate(problem.X.columns)
        }
    ).astype(problem.X.dtypes.to_dict())
    volume, near = np.ones(len(rows)), np.zeros(len(rows))
    for cells, position in zip(columns, combinations, strict=True):
        volume *= np.array([cell[1] for cell in cells])[position]
    masses = [np.array([cell[2] for cell in cells]) for cells in columns]
    for r in range(len(problem.X)):
        products = np.ones(len(rows))
        for mass, position in zip(masses, combinations, strict=True):
            products *= mass[position, r]
        near += products
    return Cells(rows, volume, near)


def _column_cells(problem: SmallProblem, j: int) -> list[tuple[Any, float, np.ndarray]]:
    """Return the cells of a column: representative value, weight, and masses near each row."""
    column = problem.X.iloc[:, j]
    is_missing = column.isna().to_numpy()
    share = problem.missing[j]
    cells: list[tuple[Any, float, np.ndarray]] = []
    if share > 0:
        cells.append((np.nan, share, is_missing * 1.0))
    if problem.kinds[j] == "category":
        for color in COLORS:
            cells.append((color, (1 - share) / len(COLORS), (column == color).to_numpy() * 1.0))
        return cells
    values = column.to_numpy(float)
    reach = problem.radius * np.nanstd(values)
    low = np.maximum(values - reach, 0.0)
    high = np.minimum(values + reach, LEVELS)
    if problem.kinds[j] == "integer":
        low, high = np.ceil(low), np.floor(high)
        for number in range(LEVELS + 1):
            near = ((low <= number) & (number <= high)) / (high - low + 1)
            cells.append((float(number), (1 - share) / (LEVELS + 1), np.nan_to_num(near)))
        return cells
    # Thresholds of models are middles between multiples of 1, or of these and 1.75.
    middles = (1.75 + np.arange(LEVELS + 1)) / 2
    edges = np.unique(np.concatenate([np.arange(0, 4 * LEVELS + 1) / 4, middles]))
    if "extra" in problem.label:  # random thresholds
        thresholds = np.concatenate(
            [t.tree_.threshold[t.tree_.feature == j] for t in problem.model]
        )
        edges = np.unique(np.concatenate([edges, thresholds[(thresholds > 0)]]))
    for a, b in itertools.pairwise(edges):
        overlap = np.minimum(high, b) - np.maximum(low, a)
        with np.errstate(invalid="ignore", divide="ignore"):
            near = np.where(high > low, np.maximum(overlap, 0) / (high - low), 0.0)
        cells.append(((a + b) / 2, (1 - share) * (b - a) / LEVELS, np.nan_to_num(near)))
    # Without a radius, neighborhoods are points, which may lie on edges.
    for value in np.unique(values[~is_missing & ~(high > low)]):
        at_value = (values == value) & ~(high > low)
        cells.append((float(value), 0.0, at_value * 1.0))
    return cells
