"""Rules scored on rows that stay where they are."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._validation import check_flag, check_integer
from skescore.metrics import RuleCounts, characteristics, rule_report
from skescore.metrics._rule_counts import complete
from skescore.rules import RuleSet, as_ruleset
from skescore.scorers import evaluate_rules, make_knowledge_scorer
from skescore.sources._batches import BatchLooks, Reading, each_batch
from skescore.sources._query import QueryLooks
from skescore.sources._tables import (
    SqlTable,
    is_spark,
    is_url,
    open_parquet,
    open_spark,
    open_url,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SourceScore", "count_source", "score_source"]


@dataclass(frozen=True)
class SourceScore:
    """The scores of a rule set on rows that stayed where they are.

    Attributes
    ----------
    rules : RuleSet
        The rules.
    counts : RuleCounts
        What was counted; every other score and report takes it in place of the rows.
    scores : dict of str to float
        What :func:`skescore.scorers.make_knowledge_scorer` gives.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> from skescore.sources import score_source
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=2)], "high")],
    ...     ["length"], task="classification", domain=Domain([0.0], [4.0]),
    ... )
    >>> days = [
    ...     pd.DataFrame({"length": [0.5, 1.5], "size": ["low", "low"]}),
    ...     pd.DataFrame({"length": [2.5, 3.5], "size": ["high", "low"]}),
    ... ]
    >>> score = score_source(rules, days, target="size")
    >>> score.counts, score.scores["loss"]
    (RuleCounts(2 rules, 4 rows), 0.25)
    >>> score.rule_report()["p"].tolist()
    [2.0, 1.0]
    """

    rules: RuleSet
    counts: RuleCounts
    scores: Mapping[str, float]

    def rule_report(self, **options: Any) -> pd.DataFrame:
        """Judge every rule by itself; see :func:`skescore.metrics.rule_report`."""
        return rule_report(self.rules, self.counts, **options)

    def characteristics(self, **options: Any) -> dict[str, float]:
        """Describe the rule set; see :func:`skescore.metrics.characteristics`."""
        return characteristics(self.rules, self.counts, **options)


def count_source(
    rules: Any,
    source: Any,
    target: str | None = None,
    *,
    sample_weight: str | None = None,
    black_box: Any = None,
    rule_measures: bool = True,
    batch_size: int = 1 << 17,
    memory: str | None = None,
    n_jobs: int | None = None,
) -> RuleCounts:
    """Count rows where they lie, for the scores and reports of a rule set.

    A database sums by one query and hands over no row; other sources are read batch by batch, in
    memory that does not grow with the rows. What fails on the way is an error, never a sum of
    some of the rows.

    Parameters
    ----------
    rules : RuleSet or estimator
        The rules, or a fitted extractor or decision tree.
    source : str, path, frame, dataset or batches
        ``duckdb:///file.db?table=t``, ``postgresql://user@host/database?table=t`` or any URL of
        SQLAlchemy with a table; a DataFrame of Spark; a Parquet file, folder or glob; an Arrow
        dataset or table; a polars LazyFrame; a dask DataFrame, counted by its workers; a list of
        batches (Arrow, pandas, polars), an iterator of them or a function that gives one.
    target : str, optional
        The column of labels: the truth, or the predictions of a black box.
    sample_weight : str, optional
        The column of weights of the rows.
    black_box : estimator or callable, optional
        Predicts labels batch by batch, in place of the column `target`. It is given the features
        of the rules, all of them and in their order, and is not for databases.
    rule_measures : bool, default=True
        Regression: whether rules are judged one by one too. Their positive rows lie within a
        standard deviation of their labels, so that it takes a second look at the rows.
    batch_size : int, default=131072
        Rows of a batch, of sources that are read batch by batch.
    memory : str, optional
        How much memory DuckDB may take for Parquet files, such as ``"1GB"``.
    n_jobs : int, optional
        Processes that look at batches, of sources that are read batch by batch; None is one, -1
        all processors, see :func:`joblib.parallel_config`. The numbers are the same. DuckDB and
        dask use all processors they are given.

    Returns
    -------
    RuleCounts
        Pass it in place of X and y.

    Raises
    ------
    SourceError
        If rows cannot be reached, or lack labels or weights.
    ValueError
        If a column is not there, or the target is not said.
    ImportError
        If a package is missing, with the command that installs it.

    Notes
    -----
    Missing values are NULL and NaN alike. Parquet files are summed by DuckDB if it is installed,
    else read by pyarrow.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.metrics import confusion
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.sources import count_source
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["length"], task="classification")
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5], "size": ["low", "high", "high"]})
    >>> counts = count_source(rules, lambda: iter([rows, rows]), target="size")
    >>> confusion(rules, counts).covered.tolist()
    [4.0]
    """
    ruleset = as_ruleset(rules)
    check_flag("rule_measures", rule_measures)
    check_integer("batch_size", batch_size, 1)
    check_integer("n_jobs", n_jobs, -1, optional=True)
    if (target is None) == (black_box is None):
        raise ValueError(
            "Either target must name the column of labels, or black_box must predict them; got "
            f"target={target!r} and black_box={black_box!r}."
        )
    if target is not None and (opened := table_of(source, memory)) is not None:
        with opened as table:
            queries = QueryLooks(ruleset, table, target, sample_weight)
            return complete(ruleset, queries, rule_measures=rule_measures)
    if is_url(source) or is_spark(source):
        raise ValueError(
            "black_box predicts batches of rows, but a database hands over none. Store its "
            "predictions in a column and pass target=..., or export the table to Parquet."
        )
    name = str(source) if isinstance(source, str | Path) else f"the {type(source).__name__}"
    reading = Reading(ruleset, target, sample_weight, black_box, name)
    batches = BatchLooks(reading, each_batch(source, reading, batch_size, n_jobs))
    return complete(ruleset, batches, rule_measures=rule_measures)


def table_of(source: Any, memory: str | None) -> AbstractContextManager[SqlTable] | None:
    """The table of a source that is asked by queries; None of others."""
    if is_url(source):
        return open_url(source)
    if is_spark(source):
        return open_spark(source)
    if isinstance(source, str | Path) and importlib.util.find_spec("duckdb"):
        return open_parquet(source, memory)
    return None


def score_source(
    rules: Any,
    source: Any,
    target: str | None = None,
    *,
    sample_weight: str | None = None,
    black_box: Any = None,
    rule_measures: bool = True,
    batch_size: int = 1 << 17,
    memory: str | None = None,
    n_jobs: int | None = None,
    **scoring: Any,
) -> SourceScore:
    """Score rules on rows that stay where they are, however many there are.

    Parameters
    ----------
    rules : RuleSet or estimator
        The rules, or a fitted extractor or decision tree.
    source, target, sample_weight, black_box, rule_measures, batch_size, memory, n_jobs
        See :func:`count_source`.
    **scoring : object
        Weights and settings of the scores, see :func:`skescore.scorers.make_knowledge_scorer`.

    Returns
    -------
    SourceScore
        The scores that the rows have in memory.

    Raises
    ------
    SourceError
        If rows cannot be reached, or lack labels or weights.
    ValueError
        If a column is not there, or the rules have no domain, which completeness by volume needs.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> from skescore.sources import score_source
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low")], ["length"], task="classification",
    ...     domain=Domain([0.0], [4.0]),
    ... )
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5], "size": ["low", "low", "low"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.to_parquet(f"{folder}/part.parquet")
    ...     score = score_source(rules, folder, target="size")
    >>> round(score.scores["completeness_instances"], 3), score.scores["completeness_volume"]
    (0.667, 0.5)
    """
    ruleset = as_ruleset(rules)
    scorer = make_knowledge_scorer(**scoring)
    counts = count_source(
        ruleset,
        source,
        target,
        sample_weight=sample_weight,
        black_box=black_box,
        rule_measures=rule_measures,
        batch_size=batch_size,
        memory=memory,
        n_jobs=n_jobs,
    )
    return SourceScore(ruleset, counts, scorer.score(evaluate_rules(ruleset, counts)))
