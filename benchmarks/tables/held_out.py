"""How well the rules of a search imitate the black box on rows nobody has seen, beside by hand.

    python benchmarks/tables/held_out.py [--only tips.csv ...] [--ways search cart ...] [--seeds 3]
        [--rows 1200] [--folder DIR] [--csv FILE]

Ten tables are read as `skescore tune` reads them; of more rows, some are drawn. Two thirds are for
learning, on the other third the fidelity is measured: agreement with the black box, or R². Each
seed splits the rows and grows the black box, a random forest, anew. Extractors have 16 rules at
most.

*search* is `skescore tune` asked for fidelity (`--reference black-box --max-rules 16 --scoring
accuracy`, or `neg_root_relative_squared_error`), on the table as it is; *default* is `skescore
tune` with nothing said but the table, which weighs fidelity against size. By hand, numbers get
their median and a column of their gaps, categories a column of zeros and ones per value; *cart* and
*trepan* are our extractors on these columns with their defaults, *cart searched* and *trepan
searched* with the number of leaves that cross-validated fidelity prefers. What the black box is
queried about is turned into the table again.

Prints the mean fidelity and number of rules for each way, and how far the search is ahead of the
best way by hand, the mean over the seeds and its standard error. Exits with 1 if it is behind by
more than two standard errors somewhere. `--csv` keeps what was measured and goes on with the rest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score, train_test_split
from sklearn.preprocessing import OneHotEncoder

sys.path.insert(0, str(Path(__file__).parent))

from shipped import SHIPPED

from skescore.black_boxes import CallableClassifier, CallableRegressor, make_black_box
from skescore.datasets import Dataset, load_dataset
from skescore.extractors import CARTExtractor, TrepanExtractor
from skescore.scorers import ice, make_performance_scorer
from skescore.tuning import ExtractorSearchCV

TABLES = (
    "titanic.csv",
    "titanic_people.csv",
    "penguins.csv",
    "tips.csv",
    "mpg.csv",
    "taxi.csv",
    "diamonds.csv",
    "flights.csv",
    "adult.csv",
    "german_credit.csv",
)
#: More rules than this are not read.
MOST_RULES = 16
#: Of `skescore tune`.
TRIALS, FOLDS = 60, 5
#: Leaves that are tried by hand; Trepan takes its time.
LEAVES = {CARTExtractor: range(2, MOST_RULES + 1), TrepanExtractor: (2, 4, 8, MOST_RULES)}


class Split:
    """Two thirds of a table to learn from, a third to measure on, and a black box."""

    def __init__(self, data: Dataset, seed: int) -> None:
        self.data, self.seed = data, seed
        self.classifies = data.task == "classification"
        self.train, self.test, self.y, _ = train_test_split(
            data.X,
            data.y,
            test_size=1 / 3,
            random_state=seed,
            stratify=data.y if self.classifies else None,
        )
        self.unfitted = make_black_box("random-forest", data.task, seed, data.categories)
        self.black_box: Any = clone(self.unfitted).fit(self.train, self.y)

    @property
    def folds(self) -> Any:
        """As `skescore tune` makes them."""
        kind = StratifiedKFold if self.classifies else KFold
        return kind(FOLDS, shuffle=True, random_state=self.seed)

    @cached_property
    def by_hand(self) -> ByHand:
        """The table in numbers without gaps."""
        return ByHand(self)

    def fidelity(self, y_pred: Any) -> float:
        """Return the agreement of predictions with the black box on the test rows."""
        measure = accuracy_score if self.classifies else r2_score
        return float(measure(self.black_box.predict(self.test), y_pred))

    def search(self, *, default: bool) -> tuple[float, int, str]:
        """Fidelity, number of rules and extractor that a search finds."""
        scoring, max_rules = ice, None
        if not default:
            measure = "accuracy" if self.classifies else "root_relative_squared_error"
            scoring = make_performance_scorer(measure, reference="black_box")
            max_rules = MOST_RULES
        search = ExtractorSearchCV(
            self.unfitted,
            scoring=scoring,
            max_rules=max_rules,
            n_trials=TRIALS,
            cv=self.folds,
            random_state=self.seed,
            n_jobs=1,
        ).fit(self.train, self.y)
        return self.fidelity(search.predict(self.test)), len(search.rules_), search.best_name_


class ByHand:
    """A table in numbers without gaps, and the black box on it."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.words = list(split.data.categories)
        self.numbers = [name for name in split.train.columns if name not in self.words]
        self.encoder = make_column_transformer(
            (SimpleImputer(strategy="median", add_indicator=True), self.numbers),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), self.words),
        ).set_output(transform="pandas")
        self.train = self.encoder.fit_transform(split.train)
        self.test = self.encoder.transform(split.test)

    def table(self, encoded: Any) -> pd.DataFrame:
        """The rows that encoded ones stand for."""
        encoded = np.asarray(encoded, dtype=float)
        steps = self.encoder.named_transformers_
        table = pd.DataFrame(encoded[:, : len(self.numbers)], columns=self.numbers)
        incomplete = steps["simpleimputer"].indicator_.features_
        end = len(self.numbers) + len(incomplete)
        for feature, is_missing in zip(
            incomplete, encoded[:, len(self.numbers) : end].T, strict=True
        ):
            table.loc[is_missing > 0.5, self.numbers[feature]] = np.nan
        if self.words:
            values = pd.DataFrame(steps["onehotencoder"].inverse_transform(encoded[:, end:]))
            table[self.words] = values.where(values.notna(), np.nan)
        return table[list(self.split.train.columns)]

    def extract(self, kind: Any, *, searched: bool) -> tuple[float, int, str]:
        """Fidelity, number of rules and name of an extractor."""
        split = self.split

        def predict(encoded: Any) -> np.ndarray:
            return np.asarray(split.black_box.predict(self.table(encoded)))

        black_box: Any = CallableRegressor(predict)
        if split.classifies:
            black_box = CallableClassifier(predict, classes=list(split.black_box.classes_))
        extractor = kind(black_box, random_state=split.seed)
        if searched:
            if kind is CARTExtractor:
                extractor.set_params(max_depth=None, n_features_to_select=None)
            y_pred = split.black_box.predict(split.train)
            tried = [clone(extractor).set_params(max_leaf_nodes=n) for n in LEAVES[kind]]
            means = [
                cross_val_score(
                    one,
                    self.train,
                    y_pred,
                    cv=split.folds,
                    scoring="accuracy" if split.classifies else "r2",
                ).mean()
                for one in tried
            ]
            extractor = tried[int(np.argmax(means))]
        extractor.fit(self.train)
        return split.fidelity(extractor.predict(self.test)), len(extractor.rules_), kind.__name__


METHODS: dict[str, Callable[[Split], tuple[float, int, str]]] = {
    "search": lambda split: split.search(default=False),
    "default": lambda split: split.search(default=True),
    "cart": lambda split: split.by_hand.extract(CARTExtractor, searched=False),
    "cart searched": lambda split: split.by_hand.extract(CARTExtractor, searched=True),
    "trepan": lambda split: split.by_hand.extract(TrepanExtractor, searched=False),
    "trepan searched": lambda split: split.by_hand.extract(TrepanExtractor, searched=True),
}
BY_HAND = ("cart", "cart searched", "trepan", "trepan searched")


def comparison(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """One line per table, and on how many the search is behind."""
    lines, n_behind = [], 0
    for table in dict.fromkeys(rows["table"]):
        of_table = rows[rows["table"] == table]
        by_seed = of_table.pivot(index="seed", columns="way", values="fidelity")
        n_rules = of_table.groupby("way")["rules"].mean()
        line = {"table": table, "seeds": str(len(by_seed))}
        for method in METHODS:
            is_measured = method in by_seed and by_seed[method].notna().any()
            line[method] = (
                f"{by_seed[method].mean():.3f} ({n_rules[method]:.0f})" if is_measured else "-"
            )
        hands = [method for method in BY_HAND if method in by_seed]
        line["ahead"] = "-"
        if hands and "search" in by_seed:
            best = by_seed[hands].mean().idxmax()
            ahead = (by_seed["search"] - by_seed[best]).dropna()
            line["ahead"] = f"{ahead.mean():+.3f}"
            if len(ahead) > 1:
                error = ahead.std(ddof=1) / np.sqrt(len(ahead))
                line["ahead"] += f" ± {error:.3f}"
                n_behind += bool(ahead.mean() < -2 * error)
        lines.append(line)
    return pd.DataFrame(lines), n_behind


def main() -> int:
    """Measure and print; gives 1 if the search is behind somewhere."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, metavar="NAME")
    parser.add_argument("--ways", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=1200, help="most rows of a table")
    parser.add_argument("--folder", type=Path, help="keep the files there")
    parser.add_argument("--csv", type=Path, help="what was measured, to go on with")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = pd.DataFrame(columns=["table", "seed", "way", "fidelity", "rules", "what", "cpu"])
    if options.csv and options.csv.exists():
        rows = pd.read_csv(options.csv)
    measured = set(zip(rows["table"], rows["seed"], rows["way"], strict=True))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for name in options.only:
                methods = [
                    method for method in options.ways if (name, seed, method) not in measured
                ]
                if not methods:
                    continue
                request = SHIPPED[name](folder / name, folder)
                data = load_dataset(request.path, target=request.target)
                if len(data.X) > options.rows:
                    data = load_dataset(request.path, target=request.target, sample=options.rows)
                split = Split(data, seed)
                for method in methods:
                    if method.startswith("trepan") and not split.classifies:
                        continue
                    begin = time.process_time()
                    result = METHODS[method](split)
                    took = round(time.process_time() - begin, 1)
                    rows.loc[len(rows)] = [name, seed, method, *result, took]
                    print(*rows.iloc[-1], file=sys.stderr, flush=True)
                    if options.csv:
                        rows.to_csv(options.csv, index=False)
    lines, n_behind = comparison(rows[rows["table"].isin(options.only)])
    print(f"| {' | '.join(lines)} |\n| :-- |{' --: |' * (lines.shape[1] - 1)}")
    for line in lines.to_numpy():
        print(f"| {' | '.join(line)} |")
    print(f"\nOn {n_behind} of {len(lines)} tables the search is behind by more than chance.")
    return int(n_behind > 0)


if __name__ == "__main__":
    sys.exit(main())
