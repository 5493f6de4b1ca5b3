"""Measure how precisely the prices of constraints are known on the smallest balanced KEEL tables.

    python benchmarks/quality/prices.py [--tables 20] [--seconds 60] [--only NAME ...]

The black box is a random forest. Three constraints are priced in ICE(1, 1) for trees: the most
important feature is forbidden, the two most important features are monotone (in the direction of
their correlation with the highest class), and all thresholds have two digits. Prints a Markdown
table with the interval of each price and its width. The goal is a width of .005.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from certificates import read_table
from sklearn.ensemble import RandomForestClassifier

from skescore.bench import suite_config
from skescore.constraints import Constraints
from skescore.editing import price
from skescore.optimal import SolverLimits

#: Largest accepted width.
MAX_WIDTH = 0.005


def make_constraints(X: pd.DataFrame, forest: RandomForestClassifier) -> dict[str, Constraints]:
    """Return the three constraints by name."""
    order = np.argsort(-forest.feature_importances_)
    first, second = (str(X.columns[j]) for j in order[:2])
    highest = (forest.predict(X) == forest.classes_[-1]).astype(float)

    def sign(name: str) -> str:
        return "+" if np.cov(X[name], highest)[0, 1] >= 0 else "-"

    return {
        "forbid": Constraints(forbidden=[first]),
        "monotone": Constraints(
            monotone={first: sign(first), second: sign(second)},
            class_order=forest.classes_.tolist(),
        ),
        "two digits": Constraints(thresholds={"*": {"digits": 2}}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each price")
    parser.add_argument("--max-rules", type=int, default=4)
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources = [str(entry.source) for entry in suite_config("keel-balanced").data]
    tables = {source.rpartition("/")[2]: read_table(source) for source in sources}
    smallest = sorted(tables, key=lambda name: tables[name][0].size)[: options.tables]
    smallest = [name for name in smallest if not options.only or name in options.only]
    print("| table | rows | features | constraint | lower | upper | width | seconds |")
    print("| :-- | --: | --: | :-- | --: | --: | --: | --: |", flush=True)
    widths: dict[str, list[float]] = {}
    for name in smallest:
        values, y = tables[name]
        X = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
        forest = RandomForestClassifier(50, random_state=0).fit(X, y)
        for constraint_name, constraints in make_constraints(X, forest).items():
            start = time.perf_counter()
            result = price(
                constraints,
                X,
                forest.predict(X),
                max_rules=options.max_rules,
                tolerance=MAX_WIDTH / 2,
                limits=SolverLimits(time_limit=options.seconds),
            )
            seconds = time.perf_counter() - start
            widths.setdefault(constraint_name, []).append(result.width)
            print(
                f"| {name} | {len(X)} | {X.shape[1]} | {constraint_name} | {result.lower:.4f} | "
                f"{result.upper:.4f} | {result.width:.4f} | {seconds:.1f} |",
                flush=True,
            )
    for constraint_name, widths_of_constraint in widths.items():
        n_narrow = sum(width <= MAX_WIDTH for width in widths_of_constraint)
        print(
            f"\n{constraint_name}: {n_narrow} of {len(widths_of_constraint)} within {MAX_WIDTH}",
            flush=True,
        )


if __name__ == "__main__":
    main()
