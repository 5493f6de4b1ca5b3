"""Measure how well short rule lists imitate the black box on held-out rows.

    python benchmarks/tables/held_out.py [--only tips.csv ...] [--ways search cart ...]
        [--seeds 0 1 2] [--rows 1200] [--folder DIR] [--csv FILE]

Ten tables are read like by `skescore tune`; larger tables are sampled. The rules are extracted on
two thirds of the rows. Their fidelity, which is the agreement with the black box or R², is measured
on the other third. For each seed, the rows are split and the black box, a random forest, is fitted
again. Extractors have at most 16 rules.

*search* is `skescore tune` with fidelity as the score (`--reference black-box --max-rules 16
--scoring accuracy`, or `neg_root_relative_squared_error`) on the original table. *default* is
`skescore tune` without options, which trades off fidelity and size. For the other methods, numbers
are imputed by the median with an indicator column, and categories are one-hot encoded. *cart* and
*trepan* are our extractors on these columns with default settings. *cart searched* and *trepan
searched* have the number of leaves with the best cross-validated fidelity. Queries are decoded to
rows of the original table for the black box.

Prints the mean fidelity and number of rules of each method, and the lead of the search over the
best other method, as mean and standard error over the seeds. The exit code is 1 if the search is
behind by more than two standard errors on any table. `--csv` stores the results, and a run resumes
from them.
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
#: Largest number of rules.
MAX_RULES = 16
#: Settings of `skescore tune`.
N_TRIALS, N_FOLDS = 60, 5
#: Numbers of leaves for *cart searched* and *trepan searched*; Trepan is slow.
LEAVES = {CARTExtractor: range(2, MAX_RULES + 1), TrepanExtractor: (2, 4, 8, MAX_RULES)}


class Split:
    """Two thirds of a table for training, one third for testing, and a black box."""

    def __init__(self, data: Dataset, seed: int) -> None:
        self.data, self.seed = data, seed
        self.is_classification = data.task == "classification"
        self.train, self.test, self.y, _ = train_test_split(
            data.X,
            data.y,
            test_size=1 / 3,
            random_state=seed,
            stratify=data.y if self.is_classification else None,
        )
        self.unfitted = make_black_box("random-forest", data.task, seed, data.categories)
        self.black_box: Any = clone(self.unfitted).fit(self.train, self.y)

    @property
    def folds(self) -> Any:
        """Folds of `skescore tune`."""
        kind = StratifiedKFold if self.is_classification else KFold
        return kind(N_FOLDS, shuffle=True, random_state=self.seed)

    @cached_property
    def encoded(self) -> EncodedTable:
        """Table with encoded categories and imputed numbers."""
        return EncodedTable(self)

    def fidelity(self, y_pred: Any) -> float:
        """Return the agreement of predictions with the black box on the test rows."""
        measure = accuracy_score if self.is_classification else r2_score
        return float(measure(self.black_box.predict(self.test), y_pred))

    def search(self, *, is_default: bool) -> tuple[float, int, str]:
        """Return fidelity, number of rules and extractor of the winner of a search."""
        scoring, max_rules = ice, None
        if not is_default:
            measure = "accuracy" if self.is_classification else "root_relative_squared_error"
            scoring = make_performance_scorer(measure, reference="black_box")
            max_rules = MAX_RULES
        search = ExtractorSearchCV(
            self.unfitted,
            scoring=scoring,
            max_rules=max_rules,
            n_trials=N_TRIALS,
            cv=self.folds,
            random_state=self.seed,
            n_jobs=1,
        ).fit(self.train, self.y)
        return self.fidelity(search.predict(self.test)), len(search.rules_), search.best_name_


class EncodedTable:
    """Numeric table without missing values, and extraction on it."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.category_names = list(split.data.categories)
        self.number_names = [
            name for name in split.train.columns if name not in self.category_names
        ]
        self.encoder = make_column_transformer(
            (SimpleImputer(strategy="median", add_indicator=True), self.number_names),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), self.category_names),
        ).set_output(transform="pandas")
        self.train = self.encoder.fit_transform(split.train)
        self.test = self.encoder.transform(split.test)

    def decode(self, encoded: Any) -> pd.DataFrame:
        """Decode rows to the original columns."""
        encoded = np.asarray(encoded, dtype=float)
        steps = self.encoder.named_transformers_
        table = pd.DataFrame(encoded[:, : len(self.number_names)], columns=self.number_names)
        incomplete = steps["simpleimputer"].indicator_.features_
        end = len(self.number_names) + len(incomplete)
        for feature, is_missing in zip(
            incomplete, encoded[:, len(self.number_names) : end].T, strict=True
        ):
            table.loc[is_missing > 0.5, self.number_names[feature]] = np.nan
        if self.category_names:
            values = pd.DataFrame(steps["onehotencoder"].inverse_transform(encoded[:, end:]))
            table[self.category_names] = values.where(values.notna(), np.nan)
        return table[list(self.split.train.columns)]

    def extract(self, extractor_class: Any, *, is_searched: bool) -> tuple[float, int, str]:
        """Return fidelity, number of rules and name of an extractor."""
        split = self.split

        def predict(encoded: Any) -> np.ndarray:
            return np.asarray(split.black_box.predict(self.decode(encoded)))

        black_box: Any = CallableRegressor(predict)
        if split.is_classification:
            black_box = CallableClassifier(predict, classes=list(split.black_box.classes_))
        extractor = extractor_class(black_box, random_state=split.seed)
        if is_searched:
            if extractor_class is CARTExtractor:
                extractor.set_params(max_depth=None, n_features_to_select=None)
            y_pred = split.black_box.predict(split.train)
            candidates = [
                clone(extractor).set_params(max_leaf_nodes=n) for n in LEAVES[extractor_class]
            ]
            means = [
                cross_val_score(
                    candidate,
                    self.train,
                    y_pred,
                    cv=split.folds,
                    scoring="accuracy" if split.is_classification else "r2",
                ).mean()
                for candidate in candidates
            ]
            extractor = candidates[int(np.argmax(means))]
        extractor.fit(self.train)
        return (
            split.fidelity(extractor.predict(self.test)),
            len(extractor.rules_),
            extractor_class.__name__,
        )


METHODS: dict[str, Callable[[Split], tuple[float, int, str]]] = {
    "search": lambda split: split.search(is_default=False),
    "default": lambda split: split.search(is_default=True),
    "cart": lambda split: split.encoded.extract(CARTExtractor, is_searched=False),
    "cart searched": lambda split: split.encoded.extract(CARTExtractor, is_searched=True),
    "trepan": lambda split: split.encoded.extract(TrepanExtractor, is_searched=False),
    "trepan searched": lambda split: split.encoded.extract(TrepanExtractor, is_searched=True),
}
ENCODED_METHODS = ("cart", "cart searched", "trepan", "trepan searched")


def compare_methods(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return one line per table, and the number of tables on which the search is behind."""
    lines, n_behind = [], 0
    for table in dict.fromkeys(rows["table"]):
        table_rows = rows[rows["table"] == table]
        by_seed = table_rows.pivot(index="seed", columns="way", values="fidelity")
        n_rules = table_rows.groupby("way")["rules"].mean()
        line = {"table": table, "seeds": str(len(by_seed))}
        for method in METHODS:
            is_measured = method in by_seed and by_seed[method].notna().any()
            line[method] = (
                f"{by_seed[method].mean():.3f} ({n_rules[method]:.0f})" if is_measured else "-"
            )
        encoded_methods = [method for method in ENCODED_METHODS if method in by_seed]
        line["ahead"] = "-"
        if encoded_methods and "search" in by_seed:
            best_method = by_seed[encoded_methods].mean().idxmax()
            leads = (by_seed["search"] - by_seed[best_method]).dropna()
            line["ahead"] = f"{leads.mean():+.3f}"
            if len(leads) > 1:
                error = leads.std(ddof=1) / np.sqrt(len(leads))
                line["ahead"] += f" ± {error:.3f}"
                n_behind += bool(leads.mean() < -2 * error)
        lines.append(line)
    return pd.DataFrame(lines), n_behind


def main() -> int:
    """Measure and print; return 1 if the search is behind on any table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, metavar="NAME")
    parser.add_argument("--ways", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=1200, help="largest number of rows of a table")
    parser.add_argument("--folder", type=Path, help="folder in which the files are kept")
    parser.add_argument("--csv", type=Path, help="file of results from which the run resumes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = pd.DataFrame(columns=["table", "seed", "way", "fidelity", "rules", "what", "cpu"])
    if options.csv and options.csv.exists():
        rows = pd.read_csv(options.csv)
    finished = set(zip(rows["table"], rows["seed"], rows["way"], strict=True))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for name in options.only:
                methods = [
                    method for method in options.ways if (name, seed, method) not in finished
                ]
                if not methods:
                    continue
                request = SHIPPED[name](folder / name, folder)
                data = load_dataset(request.path, target=request.target)
                if len(data.X) > options.rows:
                    data = load_dataset(request.path, target=request.target, sample=options.rows)
                split = Split(data, seed)
                for method in methods:
                    if method.startswith("trepan") and not split.is_classification:
                        continue
                    start = time.process_time()
                    result = METHODS[method](split)
                    seconds = round(time.process_time() - start, 1)
                    rows.loc[len(rows)] = [name, seed, method, *result, seconds]
                    print(*rows.iloc[-1], file=sys.stderr, flush=True)
                    if options.csv:
                        rows.to_csv(options.csv, index=False)
    lines, n_behind = compare_methods(rows[rows["table"].isin(options.only)])
    print(f"| {' | '.join(lines)} |\n| :-- |{' --: |' * (lines.shape[1] - 1)}")
    for line in lines.to_numpy():
        print(f"| {' | '.join(line)} |")
    print(f"\nThe search is significantly behind on {n_behind} of {len(lines)} tables.")
    return int(n_behind > 0)


if __name__ == "__main__":
    sys.exit(main())
