"""Plan of a benchmark: its cells, its data, and the held-out rows of each fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from skescore._splitters import make_group_splitter, make_time_splitter
from skescore._text import listed
from skescore.bench._configuration import BenchConfig, BlackBoxEntry, ExtractorEntry
from skescore.black_boxes import BlackBoxError, check_matches
from skescore.datasets import Dataset, load_dataset
from skescore.registry import DEFAULT_EXTRACTORS, extractor_spec, suitable_extractors
from skescore.rules import RuleSet
from skescore.suspicions import TableFacts, find_suspicions

__all__ = ["Cell", "Plan", "make_plan", "split_rows"]


class Cell(NamedTuple):
    """Data set, black box, extractor, seed and fold of one row of the results."""

    data: str
    black_box: str
    extractor: str
    seed: int
    fold: int


@dataclass(eq=False)
class Plan:
    """Loaded data sets and models of a benchmark, and its cells in the order of the final table.

    Attributes
    ----------
    config : BenchConfig
        The benchmark.
    datasets : dict of str to Dataset
        Data sets by label.
    cells : list of Cell
        Cells to measure.
    not_applicable : dict of (str, str) to str
        Reason why an extractor is skipped, by labels of data set and extractor.
    models : dict of str to estimator
        Black boxes that were trained elsewhere, by label.
    unmatched : dict of (str, str) to str
        Reason why a black box is skipped, by labels of data set and black box.
    notes : list of str
        Notes for the reader of the results.
    """

    config: BenchConfig
    datasets: dict[str, Dataset]
    cells: list[Cell]
    not_applicable: dict[tuple[str, str], str] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    unmatched: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def entry(self, label: str) -> ExtractorEntry:
        """Return the extractor with a label."""
        return next(entry for entry in self.config.extractors if entry.label == label)

    def black_box(self, label: str) -> BlackBoxEntry:
        """Return the black box with a label."""
        return next(entry for entry in self.config.black_boxes if entry.label == label)

    def record(self) -> dict[str, Any]:
        """Return everything that determines the rows, including checksums of the data."""
        sums = {label: data.checksum for label, data in self.datasets.items()}
        return self.config.to_dict() | {"checksums_sha256": sums}


def make_plan(
    config: BenchConfig, *, load_model: Callable[[str], BaseEstimator] | None = None
) -> Plan:
    """Load the data and models of a benchmark and list its cells.

    Parameters
    ----------
    config : BenchConfig
        The benchmark.
    load_model : callable, optional
        Function that loads the fitted model of a path, such as ``joblib.load``; required if a black
        box is a file.

    Returns
    -------
    Plan
        Plan for :func:`run_bench`.

    Raises
    ------
    ValueError
        If data cannot be loaded, or an extractor or black box fits none of the data sets.
    """
    datasets = {
        entry.label: entry.table
        if isinstance(entry.table, Dataset)
        else load_dataset(entry.source if entry.table is None else entry.table, **entry.options)
        for entry in config.data
    }
    plan = Plan(config, datasets, [])
    for label, dataset in datasets.items():
        _check_rows(plan, label, dataset)
        facts = TableFacts(
            dataset.X,
            dataset.y,
            dataset.task,
            groups=dataset.groups,
            is_shuffled=dataset.times is None,
            identifiers=dataset.identifiers,
        )
        plan.notes += [f"{label}: {suspicion}" for suspicion in find_suspicions(facts)]
        plan.notes += [f"{label}: {finding}" for finding in dataset.findings]
    for entry in config.extractors:
        _add_extractor(plan, entry)
    for box in config.black_boxes:
        if box.kind != "named":
            _add_model(plan, box, load_model)
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
            "There is nothing to measure: no extractor supports the data of the black boxes that "
            "are files. Name other extractors, data or black boxes."
        )
    return plan


def _add_model(plan: Plan, box: BlackBoxEntry, load: Callable[[str], BaseEstimator] | None) -> None:
    """Load a model and find the data sets that it supports."""
    if box.kind == "file" and load is None:
        raise ValueError(
            f"The black box {box.label!r} is a file: pass "
            "load_model to make_plan, a function that returns the fitted model of a path."
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
        raise ValueError(f"The black box {box.label!r} fits none of the data sets. {why}")
    for label, why in reasons.items():
        plan.notes.append(f"{box.label} is skipped on {label}: {why}")
    if box.kind == "object" and not isinstance(model, FrozenEstimator):
        return  # cloned and fitted on the rows of each fold
    plan.models[box.label] = model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)
    plan.notes.append(
        f"{box.label} was trained elsewhere and is not trained again: if some of these rows were "
        "used for its training, its performance and the performance of its rules are too high"
    )


def _check_rows(plan: Plan, label: str, dataset: Dataset) -> None:
    folds, n_rows = plan.config.folds, len(dataset.X)
    if n_rows < max(folds, 2):
        raise ValueError(
            f"{label} needs at least {max(folds, 2)} rows, got {n_rows}. Pass fewer folds."
        )
    counts = dataset.class_counts
    rare = [name for name, count in counts.items() if count < max(folds, 2)] if folds else []
    if rare:
        plan.notes.append(
            f"{label}: classes with fewer rows than folds ({listed(rare, 6)}); some folds do not "
            "contain them"
        )


def _add_extractor(plan: Plan, entry: ExtractorEntry) -> None:
    """Find the data sets that an extractor supports."""
    ruleset = _read_rules(entry) if entry.kind == "rules" else None
    reasons = {}
    requested = [label for label in plan.datasets if entry.data is None or label in entry.data]
    for label, dataset in plan.datasets.items():
        if label not in requested:
            plan.not_applicable[label, entry.label] = "not requested"
        elif why := _why_unsuitable(entry, dataset, ruleset):
            plan.not_applicable[label, entry.label] = reasons[label] = why
    is_default = tuple(e.name for e in plan.config.extractors) == DEFAULT_EXTRACTORS
    if len(reasons) == len(requested) and not is_default:
        example = next(iter(reasons))
        raise ValueError(
            f"The extractor {entry.label!r} fits none of the data sets: on {example}, "
            f"{reasons[example]}. Remove it from extractors, or add data that it supports."
        )
    for why in dict.fromkeys(reasons.values()):
        where = ", ".join(label for label, reason in reasons.items() if reason == why)
        plan.notes.append(f"{entry.label} is skipped on {where}: {why}")
    if ruleset is not None:
        plan.notes.append(
            f"{entry.label} is not extracted again: if it was extracted from these rows, its "
            "scores do not apply to new rows"
        )


def _read_rules(entry: ExtractorEntry) -> RuleSet:
    try:
        ruleset = RuleSet.from_json(Path(entry.name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{entry.name} cannot be read as rules: {error} To convert rules of other tools, use: "
            "skescore import"
        ) from error
    if not len(ruleset):
        raise ValueError(f"{entry.name} has no rules, so there is nothing to score.")
    return ruleset


def _why_unsuitable(entry: ExtractorEntry, dataset: Dataset, ruleset: RuleSet | None) -> str:
    """Return why an extractor cannot be used on a data set; empty if it can."""
    if ruleset is not None:
        if ruleset.task != dataset.task:
            return f"its rules are for {ruleset.task}"
        missing = set(ruleset.feature_names) - set(map(str, dataset.X.columns))
        if missing:
            return f"its rules need the features {listed(sorted(missing), 3)}"
        if dataset.class_counts and not set(ruleset.classes or ()) & set(dataset.class_counts):
            return "its rules predict none of the classes"
        return ""
    names = entry.params["extractors"] if entry.kind == "search" else [entry.name]
    for name in names or ():
        # A class has the same attributes as a registered extractor.
        spec = entry.extractor if entry.kind == "object" else extractor_spec(name)
        if dataset.task not in spec.tasks:
            return f"{_subject(name, entry)} is for {' and '.join(spec.tasks)} only"
        if dataset.categories and not getattr(spec, "takes_categories", False):
            suitable = suitable_extractors(dataset.task, categories=True)
            return (
                f"{_subject(name, entry)} does not support categories, unlike {', '.join(suitable)}"
            )
    return ""


def _subject(name: str, entry: ExtractorEntry) -> str:
    return "it" if name == entry.label else name


def _group_splitter(dataset: Dataset, seed: int, folds: int, test_size: float) -> Any:
    """Return a splitter that keeps the rows of a group together."""
    if folds == 1:
        return GroupShuffleSplit(1, test_size=test_size, random_state=seed)
    labels = dataset.y if dataset.class_counts else None
    return make_group_splitter(folds, dataset.groups, labels, random_state=seed)


def split_rows(
    dataset: Dataset, seed: int, folds: int, test_size: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training and held-out rows of each fold.

    Rows of a group stay together. In data with times, held-out rows follow the training rows.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    seed : int
        Seed of the split.
    folds : int
        Number of folds; 1 for a single split, 0 for all rows on both sides.
    test_size : float
        Held-out share of a single split.

    Yields
    ------
    tuple of two arrays of int
        Row numbers of both sides.
    """
    all_rows = np.arange(len(dataset.X))
    counts = dataset.class_counts
    if folds == 0:
        yield all_rows, all_rows
        return
    if dataset.times is not None:
        if folds == 1:
            n_train = round((1 - test_size) * len(all_rows))
            yield all_rows[:n_train], all_rows[n_train:]
            return
        yield from make_time_splitter(folds, len(all_rows)).split(all_rows)
        return
    splitter: Any
    if dataset.groups is not None:
        yield from _group_splitter(dataset, seed, folds, test_size).split(
            all_rows, dataset.y, dataset.groups
        )
        return
    if folds == 1:
        can_stratify = bool(counts) and min(counts.values()) >= 2
        kind: Any = StratifiedShuffleSplit if can_stratify else ShuffleSplit
        splitter = kind(1, test_size=test_size, random_state=seed)
    else:
        can_stratify = bool(counts) and max(counts.values()) >= max(folds, 2)
        kind = StratifiedKFold if can_stratify else KFold
        splitter = kind(folds, shuffle=True, random_state=seed)
    yield from splitter.split(all_rows, dataset.y)
