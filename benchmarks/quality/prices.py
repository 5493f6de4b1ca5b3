"""How close prices of constraints come on the smallest balanced KEEL tables.

    python benchmarks/quality/prices.py [--tables 20] [--seconds 60] [--only NAME ...]

A random forest is the black box. Three wishes are priced in ICE(1, 1) for trees: its most important
feature is forbidden, its two most important features are monotone (in the direction of their
correlation with the highest class), and all thresholds have two digits. Prints a Markdown table
with the interval of each price and its width; the goal is .005.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from certificates import read
from sklearn.ensemble import RandomForestClassifier

from skescore.bench import suite_config
from skescore.constraints import Constraints
from skescore.editing import price
from skescore.optimal import SolverLimits

#: A width that is narrow enough.
NARROW = 0.005


def wishes(X: pd.DataFrame, forest: RandomForestClassifier) -> dict[str, Constraints]:
    """Return the constraints by name."""
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
    parser.add_argument("--seconds", type=float, default=60.0, help="of each price")
    parser.add_argument("--max-rules", type=int, default=4)
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources = [str(entry.source) for entry in suite_config("keel-balanced").data]
    tables = {source.rpartition("/")[2]: read(source) for source in sources}
    smallest = sorted(tables, key=lambda name: tables[name][0].size)[: options.tables]
    smallest = [name for name in smallest if not options.only or name in options.only]
    print("| table | rows | features | wish | lower | upper | width | seconds |")
    print("| :-- | --: | --: | :-- | --: | --: | --: | --: |", flush=True)
    widths: dict[str, list[float]] = {}
    for name in smallest:
        values, y = tables[name]
        X = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
        forest = RandomForestClassifier(50, random_state=0).fit(X, y)
        for wish, constraints in wishes(X, forest).items():
            begin = time.perf_counter()
            result = price(
                constraints,
                X,
                forest.predict(X),
                max_rules=options.max_rules,
                tolerance=NARROW / 2,
                limits=SolverLimits(time_limit=options.seconds),
            )
            seconds = time.perf_counter() - begin
            widths.setdefault(wish, []).append(result.width)
            print(
                f"| {name} | {len(X)} | {X.shape[1]} | {wish} | {result.lower:.4f} | "
                f"{result.upper:.4f} | {result.width:.4f} | {seconds:.1f} |",
                flush=True,
            )
    for wish, values_of_wish in widths.items():
        n_narrow = sum(width <= NARROW for width in values_of_wish)
        print(f"\n{wish}: {n_narrow} of {len(values_of_wish)} within {NARROW}", flush=True)


if __name__ == "__main__":
    main()
