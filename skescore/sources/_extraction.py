"""Rules extracted from rows that stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sklearn.base import clone

from skescore._text import did_you_mean, listed
from skescore._validation import check_choice, check_integer, check_number
from skescore.black_boxes import black_box_task, is_fitted
from skescore.extractors import BaseExtractor, Column
from skescore.rules import RuleSet
from skescore.sources._histograms import Histograms, Rows, Scale, quantile_cuts
from skescore.sources._reading import SourceReading
from skescore.sources._sampling import SourceSample, sample_source

__all__ = ["SourceExtraction", "extract_source"]


@dataclass(frozen=True)
class SourceExtraction:
    """Rules from rows that stayed where they are.

    Attributes
    ----------
    extractor : BaseExtractor
        The fitted extractor.
    rules : RuleSet
        Its rules.
    cuts : dict of str to tuple of float
        Where numeric columns were cut.
    n_rows : int
        Rows that were summed.
    n_passes : int
        How often the rows were gone through to grow the rules, once a level; 0 with a sample.
    sample : SourceSample or None
        The rows that an extractor which needs more than sums has learned from.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.sources import extract_source
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5, 3.5], "size": ["s", "s", "l", "l"]})
    >>> found = extract_source(CARTExtractor(None), rows, target="size", cuts={"length": [1, 2, 3]})
    >>> print(found.rules)
    1. IF length ≤ 2 THEN s   [2 rows, 100 % right (data)]
    2. ELSE l   [2 rows, 100 % right (data)]
    >>> found.cuts, found.n_rows, found.n_passes
    ({'length': (1.0, 2.0, 3.0)}, 4, 1)
    """

    extractor: Any
    rules: RuleSet
    cuts: Mapping[str, tuple[float, ...]]
    n_rows: int
    n_passes: int
    sample: SourceSample | None = None


def extract_source(
    extractor: Any,
    source: Any,
    target: str | None = None,
    *,
    cuts: int | Mapping[str, Sequence[float]] | None = None,
    task: str | None = None,
    sample_weight: str | None = None,
    sample_size: int = 20_000,
    random_state: int = 0,
    batch_size: int = 1 << 17,
    memory: str | None = None,
    n_jobs: int | None = None,
) -> SourceExtraction:
    """Extract rules from rows that stay where they are, however many there are.

    A database sums by one query a level and hands over no row; other sources are read batch by
    batch, once a level, in memory that does not grow with the rows. What fails on the way is an
    error, never rules from some of the rows.

    Parameters
    ----------
    extractor : BaseExtractor
        The extractor with its settings; it is not changed. CARTExtractor, GridExExtractor,
        GridRExExtractor and OptimalTreeExtractor learn from sums over all rows, and their
        `estimator` may be None if `target` is given. Others learn from a sample, see
        :func:`sample_source`; their `estimator` is fitted to it unless it is fitted already.
    source : str, path, frame, dataset or batches
        As for :func:`count_source`; an iterator of batches cannot be gone through again.
    target : str, optional
        The column of labels that the rules imitate: the predictions of a black box, or the truth.
        None: the extractor's `estimator`, which must be fitted, predicts batch by batch, anew for
        each level. A sample needs the column.
    cuts : int or mapping of str to sequence of float, optional
        Where numbers may be cut: so many places per column, next to quantiles, or those given by
        column. Other columns have 64, or as many as the extractor's `cuts_per_feature` says.
    task : {"classification", "regression"}, optional
        What labels are; by default what the extractor's `estimator` predicts, regression if the
        extractor does nothing else, and classes if labels are text.
    sample_weight : str, optional
        The column of weights, which count as repeated rows.
    sample_size : int, default=20000
        About how many rows to draw for an extractor that needs more than sums.
    random_state : int, default=0
        Decides which.
    batch_size : int, default=131072
        Rows of a batch, of sources that are read batch by batch.
    memory : str, optional
        How much memory DuckDB may take for Parquet files, such as ``"1GB"``.
    n_jobs : int, optional
        Processes that look at batches, of sources that are read batch by batch; None is one, -1
        all processors, see :func:`joblib.parallel_config`. The rules are the same. DuckDB and
        dask use all processors they are given.

    Returns
    -------
    SourceExtraction
        The rules, and how they came about.

    Raises
    ------
    SourceError
        If rows cannot be reached, change meanwhile, or lack labels or weights.
    ValueError
        If a column or a setting cannot be used.
    TypeError
        If it is no extractor.

    See Also
    --------
    score_source : What the rules are worth on all rows, exactly; also those from a sample.

    Notes
    -----
    All columns but those of labels and weights are features, unless the extractor has `features`.
    The rules are the same to the last bit for all sources, since all sums are of whole numbers:
    labels and weights of a regression are rounded to 36 bits of the largest while splits are
    sought, means of leaves are exact. Of equally good splits the one of the first column is taken,
    and the lowest. So the rules are those that the extractor would learn in memory from the numbers
    of the bins, but for ties, which are broken at random there.

    CART and GridEx sum per node, column and bin, node by node. OptimalTree sums once per cell, the
    rows that lie in the same bins of all columns, of which there may be 262144; it compares all
    trees over the cuts. With a grid, slices have equally many bins.

    GridREx sums products of columns as well, whose number grows with the square of the columns
    (name few in its `features`), and goes through the rows once more for the residuals of each few
    boxes. Its equations are about the numbers themselves, of columns without gaps; they are those
    of the rows to about eight digits, the same for all sources.

    Cuts next to quantiles are round numbers: ends of 1000 bins of equal width, which are divided
    up to three times where they are too crowded.

    References
    ----------
    Z. Huang et al.: JoinBoost: grow trees over normalized data using only SQL. PVLDB 16, 2023.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.sources import extract_source
    >>> data = load_iris(as_frame=True)
    >>> rows = data.data.assign(species=data.target_names[data.target])
    >>> extractor = CARTExtractor(None, max_leaf_nodes=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.to_parquet(f"{folder}/part.parquet")
    ...     found = extract_source(extractor, folder, target="species")
    >>> print(found.rules)
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % right (data)]
    2. ELSE IF petal width (cm) ≤ 1.7 THEN versicolor   [54 rows, 91 % right (data)]
    3. ELSE virginica   [46 rows, 98 % right (data)]
    """
    check_integer("batch_size", batch_size, 1)
    check_integer("n_jobs", n_jobs, -1, optional=True)
    check_choice("task", task, (None, "classification", "regression"))
    if not isinstance(extractor, BaseExtractor):
        raise TypeError(f"extractor must be an extractor, got {type(extractor).__name__}.")
    if getattr(extractor, "fit_sums", None) is None:
        return _from_sample(
            extractor,
            source,
            target,
            task=task,
            sample_weight=sample_weight,
            n_rows=sample_size,
            random_state=random_state,
            batch_size=batch_size,
            memory=memory,
        )
    if target is None and extractor.estimator is None:
        raise ValueError(
            "Either target must name the column of labels, or the extractor must have an estimator "
            "that predicts them; got neither."
        )
    if task is None and extractor.estimator is not None:
        task = black_box_task(extractor.estimator)
    if task is None and len(extractor.tasks) == 1:
        (task,) = extractor.tasks
    if task is not None and task not in extractor.tasks:
        raise ValueError(
            f"{type(extractor).__name__} extracts rules for {' and '.join(extractor.tasks)} only, "
            f"but task is {task!r}."
        )
    black_box = extractor.estimator if target is None else None
    reading = SourceReading(source, target, sample_weight, black_box, batch_size, memory, n_jobs)
    with reading.opened(extractor.features) as (rows, names):
        survey = rows(task or "classification").survey()
        label = "The target" if target is not None else "What the black box predicts"
        name = rows(task or "classification").name
        if task is None:
            task = "classification"
            if not {type(value) for value in survey.label.values}.isdisjoint((int, float)):
                raise ValueError(
                    f"task must be given for the target of {name}, which holds numbers: pass "
                    "task='regression', or task='classification' where they stand for classes."
                )
        survey.check(names, label, task, name)
        classes = None
        if task == "classification":
            classes = tuple(sorted(survey.label.values))
        scale = Scale.of(survey, classes, weighted=sample_weight is not None)
        n_cuts = getattr(extractor, "cuts_per_feature", None) or 64
        if isinstance(cuts, int):
            n_cuts, cuts = check_integer("cuts", cuts, 1), None
        columns = _cut(rows(task), survey.describe(names), scale, n_cuts, cuts or {})
        histograms = Histograms(rows(task), columns, scale, (survey.label.low, survey.label.high))
        fitted = clone(extractor).fit_sums(histograms)
    reference = "black_box" if target is None else "data"
    fitted.rules_ = fitted.rules_.replace(reference=reference)
    found = {column.name: column.cuts for column in columns if column.values is None}
    return SourceExtraction(fitted, fitted.rules_, found, survey.n_rows, histograms.n_passes)


def _from_sample(
    extractor: Any, source: Any, target: str | None, *, task: str | None, **options: Any
) -> SourceExtraction:
    """Rules of an extractor that needs more than sums."""
    name = type(extractor).__name__
    if target is None or extractor.estimator is None:
        lacking = "target" if target is None else "an estimator"
        raise ValueError(
            f"{name} needs more than sums, and learns from a sample of the rows with a black box: "
            f"pass {lacking} as well."
        )
    task = task or black_box_task(extractor.estimator)
    sample = sample_source(source, target, task=task, **options)
    X = sample.frame.drop(columns=[target, *filter(None, [options["sample_weight"]])])
    fitted = clone(extractor).set_params(estimator=extractor.estimator)
    given = () if is_fitted(extractor.estimator) else (sample.frame[target],)
    fitted.fit(X, *given, sample_weight=sample.weights)
    return SourceExtraction(fitted, fitted.rules_, {}, sample.n_rows, 0, sample)


def _cut(
    rows: Rows,
    columns: Sequence[Column],
    scale: Scale,
    n_cuts: int,
    given: Mapping[str, Sequence[float]],
) -> list[Column]:
    """The columns with their cuts."""
    names = [column.name for column in columns if column.values is None]
    for name in given:
        if name not in names:
            raise ValueError(
                f"cuts names the column {name!r}, which is no numeric feature of {rows.name}; "
                f"these are {listed(names)}. {did_you_mean(name, names)}"
            )
    result = []
    for column in columns:
        if column.name in given:
            found = [
                check_number(f"a cut of {column.name!r}", float(cut), finite=True)
                for cut in given[column.name]
            ]
            if any(a >= b for a, b in pairwise(found)):
                raise ValueError(
                    f"cuts must increase, but those of {column.name!r} are {found!r}. Sort them, "
                    "and leave out repeated ones."
                )
            column = replace(column, cuts=tuple(found))
        result.append(column)
    waiting = [j for j, column in enumerate(columns) if column.name not in given]
    some = quantile_cuts(rows, [columns[j] for j in waiting], scale, n_cuts)
    for j, column in zip(waiting, some, strict=True):
        result[j] = column
    return result
