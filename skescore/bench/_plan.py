"""What is to be measured, cell by cell, and the rows that each fold holds out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from skescore._text import listed
from skescore.bench._configuration import BenchConfig, BlackBoxEntry, ExtractorEntry
from skescore.black_boxes import BlackBoxError, check_matches
from skescore.datasets import Dataset, load_dataset
from skescore.registry import extractor_spec, suitable_extractors
from skescore.rules import RuleSet

__all__ = ["Cell", "Plan", "make_plan", "split_rows"]


class Cell(NamedTuple):
    """One row of the results: what is measured where."""

    data: str
    black_box: str
    extractor: str
    seed: int
    fold: int


@dataclass(eq=False)
class Plan:
    """The loaded data sets, and all cells in the order of the final table."""

    config: BenchConfig
    datasets: dict[str, Dataset]
    cells: list[Cell]
    not_applicable: dict[tuple[str, str], str] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    unmatched: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def entry(self, label: str) -> ExtractorEntry:
        """The extractor of a label."""
        return next(entry for entry in self.config.extractors if entry.label == label)

    def black_box(self, label: str) -> BlackBoxEntry:
        """The black box of a label."""
        return next(entry for entry in self.config.black_boxes if entry.label == label)

    def record(self) -> dict[str, Any]:
        """Everything that decides on the rows, the content of the data included."""
        sums = {label: data.checksum for label, data in self.datasets.items()}
        return self.config.to_dict() | {"checksums_sha256": sums}


def make_plan(
    config: BenchConfig, *, load_model: Callable[[str], BaseEstimator] | None = None
) -> Plan:
    """Load the data and list the cells."""
    datasets = {
        entry.label: entry.table
        if isinstance(entry.table, Dataset)
        else load_dataset(entry.source if entry.table is None else entry.table, **entry.options)
        for entry in config.data
    }
    plan = Plan(config, datasets, [])
    for label, dataset in datasets.items():
        _check_rows(plan, label, dataset)
        plan.notes += [f"{label}: {finding}" for finding in dataset.findings]
    for entry in config.extractors:
        _apply(plan, entry)
    for box in config.black_boxes:
        if box.kind != "named":
            _bring(plan, box, load_model)
    folds = range(max(config.folds, 1))
    plan.cells = [
        Cell(data, box.label, entry.label, seed, fold)
        for data in datasets
        for box in config.black_boxes
        for entry in config.extractors
        if (data, entry.label) not in plan.not_applicable
        and (data, box.label) not in plan.unmatched
        for seed in config.seeds
        for fold in folds
    ]
    if not plan.cells:
        raise ValueError(
            "There is nothing to measure: no extractor suits the data that the black boxes from "
            "files were made for. Name other extractors, data or black boxes."
        )
    return plan


def _bring(plan: Plan, box: BlackBoxEntry, load: Callable[[str], BaseEstimator] | None) -> None:
    """Load a model, and find the data sets that it was made for."""
    if box.kind == "file" and load is None:
        raise ValueError(
            f"The black box {box.label!r} is a file, and nothing says how to read it: pass "
            "load_model, a function that gives the fitted model of a path."
        )
    model = box.estimator if load is None or box.kind == "object" else load(box.name)
    reasons = {}
    for label, dataset in plan.datasets.items():
        try:
            check_matches(model, dataset)
        except BlackBoxError as error:
            plan.unmatched[label, box.label] = reasons[label] = str(error)
    if len(reasons) == len(plan.datasets):
        why = next(iter(reasons.values()))
        raise ValueError(f"The black box {box.label!r} suits none of the data sets. {why}")
    for label, why in reasons.items():
        plan.notes.append(f"{box.label} is left out on {label}: {why}")
    if box.kind == "object" and not isinstance(model, FrozenEstimator):
        return  # cloned and fitted on the rows of each fold
    plan.models[box.label] = model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)
    plan.notes.append(
        f"{box.label} was trained elsewhere and is used as it is: on rows of its training, its "
        "performance and that of its rules flatter"
    )


def _check_rows(plan: Plan, label: str, dataset: Dataset) -> None:
    folds, n_rows = plan.config.folds, len(dataset.X)
    if n_rows < max(folds, 2):
        raise ValueError(
            f"{label} has {n_rows} rows, but folds is {folds}. Pass fewer folds, or more rows."
        )
    counts = dataset.class_counts
    rare = [name for name, count in counts.items() if count < max(folds, 2)] if folds else []
    if rare:
        plan.notes.append(
            f"{label}: classes with fewer rows than folds ({listed(rare, 6)}); some folds are "
            "without them"
        )


def _apply(plan: Plan, entry: ExtractorEntry) -> None:
    """Find the data sets that an extractor suits."""
    ruleset = _read(entry) if entry.kind == "rules" else None
    reasons = {}
    meant = [label for label in plan.datasets if entry.data is None or label in entry.data]
    for label, dataset in plan.datasets.items():
        if label not in meant:
            plan.not_applicable[label, entry.label] = "not wanted"
        elif why := _unsuitable(entry, dataset, ruleset):
            plan.not_applicable[label, entry.label] = reasons[label] = why
    if len(reasons) == len(meant):
        some = next(iter(reasons))
        raise ValueError(
            f"The extractor {entry.label!r} suits none of the data sets: on {some} it is left out, "
            f"because {reasons[some]}. Take it out of extractors, or add data that it suits."
        )
    for why in dict.fromkeys(reasons.values()):
        where = ", ".join(label for label, reason in reasons.items() if reason == why)
        plan.notes.append(f"{entry.label} is left out on {where}: {why}")
    if ruleset is not None:
        plan.notes.append(
            f"{entry.label} is scored as it is: if it was made from these rows, its figures say "
            "nothing of new ones"
        )


def _read(entry: ExtractorEntry) -> RuleSet:
    try:
        ruleset = RuleSet.from_json(Path(entry.name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{entry.name} cannot be read as rules: {error} Rules of other tools become such a "
            "file by: skescore import"
        ) from error
    if not len(ruleset):
        raise ValueError(f"{entry.name} holds 0 rules, so there is nothing to score.")
    return ruleset


def _unsuitable(entry: ExtractorEntry, dataset: Dataset, ruleset: RuleSet | None) -> str:
    """Why an extractor cannot be used on some data; empty if it can."""
    if ruleset is not None:
        if ruleset.task != dataset.task:
            return f"its rules are for {ruleset.task}"
        missing = set(ruleset.feature_names) - set(map(str, dataset.X.columns))
        if missing:
            return f"its rules need the features {listed(sorted(missing), 3)}"
        if dataset.class_counts and not set(ruleset.classes or ()) & set(dataset.class_counts):
            return "none of the classes is one of its rules'"
        return ""
    names = entry.params["extractors"] if entry.kind == "search" else [entry.name]
    for name in names:
        # A class says the same of itself as the registry does of a name.
        spec = entry.extractor if entry.kind == "object" else extractor_spec(name)
        if dataset.task not in spec.tasks:
            return f"{_named(name, entry)} is for {' and '.join(spec.tasks)} only"
        if dataset.categories and not getattr(spec, "takes_categories", False):
            able = suitable_extractors(dataset.task, categories=True)
            return f"{_named(name, entry)} does not read columns of names, as {', '.join(able)} do"
    return ""


def _named(name: str, entry: ExtractorEntry) -> str:
    return "it" if name == entry.label else name


def split_rows(
    dataset: Dataset, seed: int, folds: int, test_size: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the rows to extract from and those held out, for each fold; the seed decides alone."""
    every = np.arange(len(dataset.X))
    counts = dataset.class_counts
    if folds == 0:
        yield every, every
        return
    enough = bool(counts) and max(counts.values()) >= max(folds, 2)
    splitter: Any
    if folds == 1:
        each = bool(counts) and min(counts.values()) >= 2
        kind: Any = StratifiedShuffleSplit if each else ShuffleSplit
        splitter = kind(1, test_size=test_size, random_state=seed)
    else:
        splitter = (StratifiedKFold if enough else KFold)(folds, shuffle=True, random_state=seed)
    yield from splitter.split(every, dataset.y)
