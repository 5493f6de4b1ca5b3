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
from skescore.sources._cuts import cut_at_quantiles
from skescore.sources._data_source import DataSource, feature_names
from skescore.sources._histograms import Histograms
from skescore.sources._reducers import RowSource
from skescore.sources._sampling import SourceSample, sample_source
from skescore.sources._scale import Scale
from skescore.sources._survey import Survey, SurveyReducer

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
        The cuts of numeric columns.
    n_rows : int
        Number of rows that were summed.
    n_passes : int
        Number of passes over the rows to extract the rules, one per level; 0 with a sample.
    sample : SourceSample or None
        The rows from which an extractor learned that needs more than sums.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.sources import extract_source
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5, 3.5], "size": ["s", "s", "l", "l"]})
    >>> cuts = {"length": [1, 2, 3]}
    >>> extraction = extract_source(CARTExtractor(None), rows, target="size", cuts=cuts)
    >>> print(extraction.rules)
    1. IF length ≤ 2 THEN s   [2 rows, 100 % right (data)]
    2. ELSE l   [2 rows, 100 % right (data)]
    >>> extraction.cuts, extraction.n_rows, extraction.n_passes
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
) -> SourceExtraction:
    """Extract rules from any number of rows that stay where they are.

    A database runs one query per level and hands over no row. Other sources are read batch by
    batch, once per level, in memory that does not grow with the rows. A failure on the way is an
    error; rules are never extracted from some of the rows only.

    Parameters
    ----------
    extractor : BaseExtractor
        The extractor with its settings; it is not changed. CARTExtractor, GridExExtractor,
        GridRExExtractor and OptimalTreeExtractor learn from sums over all rows, and their
        `estimator` may be None if `target` is given. Others learn from a sample, see
        :func:`sample_source`; their `estimator` is fitted to it unless it is fitted already.
    source : DataSource, str, path, frame, dataset or batches
        The rows, see :class:`DataSource`. An iterator of batches cannot be read again.
    target : str, optional
        The column of labels that the rules imitate: the predictions of a black box, or the truth.
        None: the extractor's `estimator`, which must be fitted, predicts batch by batch, anew for
        each level. A sample needs the column.
    cuts : int or mapping of str to sequence of float, optional
        The number of cuts of each column, next to quantiles, or the cuts by column. The default
        is the extractor's `cuts_per_feature` (16 if that is "auto"), or 64.
    task : {"classification", "regression"}, optional
        The kind of labels; by default that of the extractor's `estimator`, regression if the
        extractor does nothing else, and classification if labels are text.
    sample_weight : str, optional
        The column of weights, which count as repeated rows.
    sample_size : int, default=20000
        Approximate number of rows to draw for an extractor that needs more than sums.
    random_state : int, default=0
        Seed of the sample.

    Returns
    -------
    SourceExtraction
        The rules, the cuts and the number of rows.

    Raises
    ------
    SourceError
        If rows cannot be reached, change meanwhile, or lack labels or weights.
    ValueError
        If a column or a setting cannot be used.
    TypeError
        If `extractor` is not an extractor.

    See Also
    --------
    score_source : Score rules on all rows, exactly; also rules from a sample.

    Notes
    -----
    All columns but those of labels and weights are features, unless the extractor has `features`.
    The rules are the same to the last bit for all sources, since all sums are of whole numbers:
    labels and weights of a regression are rounded to 36 bits of the largest during the search for
    splits; means of leaves are exact. Of equally good splits, the lowest one of the first column is
    chosen. Apart from ties, which are broken at random in memory, the extractor would learn the
    same rules in memory from the numbers of the bins.

    CART and GridEx sum per node, column and bin. OptimalTree sums once per cell, that is, over the
    rows that share the bins of all columns, of which there may be 262144; it compares all trees
    over the cuts. The slices of a grid have equally many bins.

    GridREx also sums products of columns, whose number grows with the square of the number of
    columns (name few in its `features`), and reads the rows again for the residuals of the boxes.
    Its equations use the numbers themselves, of columns without missing values; they agree with
    those learned in memory to about eight digits and are the same for all sources.

    Cuts next to quantiles are round numbers: the ends of 1000 bins of equal width, which are
    divided up to three times if they hold too many rows.

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
    ...     extraction = extract_source(extractor, folder, target="species")
    >>> print(extraction.rules)
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % right (data)]
    2. ELSE IF petal width (cm) ≤ 1.7 THEN versicolor   [54 rows, 91 % right (data)]
    3. ELSE virginica   [46 rows, 98 % right (data)]
    """
    if not isinstance(extractor, BaseExtractor):
        raise TypeError(f"extractor must be an extractor, got {type(extractor).__name__}.")
    check_choice("task", task, (None, "classification", "regression"))
    data = DataSource.of(source, target, sample_weight)
    if getattr(extractor, "fit_sums", None) is None:
        return _extract_from_sample(extractor, data, task, sample_size, random_state)
    if data.target is None and extractor.estimator is None:
        raise ValueError(
            "Either target must name the column of labels, or the extractor must have an estimator "
            "that predicts them; got neither."
        )
    data.check_repeatable()
    task = _task_of(extractor, task)
    black_box = extractor.estimator if data.target is None else None
    with data.open(feature_names(extractor.features), black_box) as rows:
        survey = rows.reduce(SurveyReducer(task or "classification"))
        if task is None:
            _refuse_numbers_as_classes(survey, rows.name)
            task = "classification"
        label = "The target" if data.target is not None else "What the black box predicts"
        survey.check(rows.features, label, task, rows.name)
        classes = tuple(sorted(survey.label.values)) if task == "classification" else None
        label_range = survey.label.low, survey.label.high
        max_weight = None if data.sample_weight is None else survey.weight.high
        scale = Scale.choose(survey.n_rows, classes, label_range, max_weight)
        n_cuts = getattr(extractor, "cuts_per_feature", None) or 64
        if n_cuts == "auto":  # all cuts would give one cell per row
            n_cuts = 16
        if isinstance(cuts, int):
            n_cuts, cuts = check_integer("cuts", cuts, 1), None
        columns = _cut_columns(rows, survey.describe(rows.features), scale, n_cuts, cuts or {})
        histograms = Histograms(rows, columns, scale, label_range)
        fitted = clone(extractor).fit_sums(histograms)
    reference = "black_box" if data.target is None else "data"
    fitted.rules_ = fitted.rules_.replace(reference=reference)
    cuts_by_name = {column.name: column.cuts for column in columns if column.values is None}
    return SourceExtraction(fitted, fitted.rules_, cuts_by_name, survey.n_rows, histograms.n_passes)


def _task_of(extractor: Any, task: str | None) -> str | None:
    """Return the task: given, of the black box, or the only one of the extractor."""
    if task is None and extractor.estimator is not None:
        task = black_box_task(extractor.estimator)
    if task is None and len(extractor.tasks) == 1:
        (task,) = extractor.tasks
    if task is not None and task not in extractor.tasks:
        raise ValueError(
            f"{type(extractor).__name__} extracts rules for {' and '.join(extractor.tasks)} only, "
            f"but task is {task!r}."
        )
    return task


def _refuse_numbers_as_classes(survey: Survey, name: str) -> None:
    if not {type(value) for value in survey.label.values}.isdisjoint((int, float)):
        raise ValueError(
            f"task must be given for the target of {name}, which holds numbers: pass "
            "task='regression', or task='classification' where they stand for classes."
        )


def _extract_from_sample(
    extractor: Any, data: DataSource, task: str | None, n_rows: int, random_state: int
) -> SourceExtraction:
    """Fit an extractor that needs rows to a sample."""
    if data.target is None or extractor.estimator is None:
        missing = "target" if data.target is None else "an estimator"
        raise ValueError(
            f"{type(extractor).__name__} needs more than sums, and learns from a sample of the "
            f"rows with a black box: pass {missing} as well."
        )
    task = task or black_box_task(extractor.estimator)
    sample = sample_source(data, task=task, n_rows=n_rows, random_state=random_state)
    X = sample.frame.drop(columns=[data.target, *filter(None, [data.sample_weight])])
    fitted = clone(extractor).set_params(estimator=extractor.estimator)
    labels = () if is_fitted(extractor.estimator) else (sample.frame[data.target],)
    fitted.fit(X, *labels, sample_weight=sample.weights)
    return SourceExtraction(fitted, fitted.rules_, {}, sample.n_rows, 0, sample)


def _cut_columns(
    rows: RowSource,
    columns: Sequence[Column],
    scale: Scale,
    n_cuts: int,
    user_cuts: Mapping[str, Sequence[float]],
) -> list[Column]:
    """Cut numeric columns where the user says, and the others at quantiles."""
    numeric = [column.name for column in columns if column.values is None]
    for name in user_cuts:
        if name not in numeric:
            raise ValueError(
                f"cuts names the column {name!r}, which is no numeric feature of {rows.name}; "
                f"these are {listed(numeric)}. {did_you_mean(name, numeric)}"
            )
    result = [
        replace(column, cuts=_checked_cuts(column.name, user_cuts[column.name]))
        if column.name in user_cuts
        else column
        for column in columns
    ]
    uncut = [j for j, column in enumerate(columns) if column.name not in user_cuts]
    cut_columns = cut_at_quantiles(rows, [columns[j] for j in uncut], scale, n_cuts)
    for j, column in zip(uncut, cut_columns, strict=True):
        result[j] = column
    return result


def _checked_cuts(name: str, cuts: Sequence[float]) -> tuple[float, ...]:
    checked = [check_number(f"a cut of {name!r}", float(cut), finite=True) for cut in cuts]
    if any(a >= b for a, b in pairwise(checked)):
        raise ValueError(
            f"cuts must increase, but those of {name!r} are {checked!r}. Sort them, and leave out "
            "repeated ones."
        )
    return tuple(checked)
