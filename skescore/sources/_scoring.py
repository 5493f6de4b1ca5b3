"""Scores of rules on data sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skescore._validation import check_flag
from skescore.metrics import RuleCounts, characteristics, rule_report
from skescore.metrics._rule_counts import complete
from skescore.rules import RuleSet, as_ruleset
from skescore.scorers import evaluate_rules, make_knowledge_scorer
from skescore.sources._data_source import DataSource
from skescore.sources._rule_counts import SourcePasses

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SourceScore", "count_source", "score_source"]


@dataclass(frozen=True)
class SourceScore:
    """Scores of a rule set on a data source.

    Attributes
    ----------
    rules : RuleSet
        Scored rules.
    counts : RuleCounts
        Counts, which all other scores and reports accept instead of the rows.
    scores : dict of str to float
        Scores of :func:`skescore.scorers.make_knowledge_scorer`.

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
        """Report every rule; see :func:`skescore.metrics.rule_report`."""
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
) -> RuleCounts:
    """Count the rows of a data source for the scores and reports of a rule set.

    A database runs one query and transfers no rows. Other sources are read in batches, so memory
    use does not grow with the number of rows. Failures raise an error; partial sums are never
    returned.

    Parameters
    ----------
    rules : RuleSet or estimator
        The rules, or a fitted extractor or decision tree.
    source : DataSource, str, path, frame, dataset or batches
        The rows, see :class:`DataSource`.
    target : str, optional
        Column of labels: the truth, or the predictions of a black box.
    sample_weight : str, optional
        Column of weights.
    black_box : estimator or callable, optional
        Model that predicts labels batch by batch, instead of the column `target`. It receives all
        features of the rules in their order. Not available for databases.
    rule_measures : bool, default=True
        Whether to also count the positive rows of each rule in regression. They lie within a
        standard deviation of the rule's labels, so counting them needs a second pass.

    Returns
    -------
    RuleCounts
        Counts to pass instead of X and y.

    Raises
    ------
    SourceError
        If rows cannot be read, or lack labels or weights.
    ValueError
        If a column does not exist, or not exactly one of `target` and `black_box` is passed.
    ImportError
        If a package is missing, with the command that installs it.

    Notes
    -----
    NULL and NaN are both missing values. DuckDB reads Parquet files if it is installed, otherwise
    pyarrow does.

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
    data = DataSource.of(source, target, sample_weight)
    if (data.target is None) == (black_box is None):
        raise ValueError(
            "Either target must name the column of labels, or black_box must predict them; got "
            f"target={data.target!r} and black_box={black_box!r}."
        )
    names = ruleset.feature_names
    used_names = [names[j] for j in sorted(ruleset.used_features)]
    with data.open(used_names if black_box is None else names, black_box) as rows:
        return complete(ruleset, SourcePasses(ruleset, rows), rule_measures=rule_measures)


def score_source(
    rules: Any,
    source: Any,
    target: str | None = None,
    *,
    sample_weight: str | None = None,
    black_box: Any = None,
    rule_measures: bool = True,
    **scoring: Any,
) -> SourceScore:
    """Score rules on any number of rows without loading them into memory.

    Parameters
    ----------
    rules : RuleSet or estimator
        The rules, or a fitted extractor or decision tree.
    source, target, sample_weight, black_box, rule_measures
        See :func:`count_source`.
    **scoring : object
        Weights and settings of the scores, see :func:`skescore.scorers.make_knowledge_scorer`.

    Returns
    -------
    SourceScore
        The same scores as for rows in memory.

    Raises
    ------
    SourceError
        If rows cannot be read, or lack labels or weights.
    ValueError
        If a column does not exist, or the rules lack the domain for completeness by volume.

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
    )
    return SourceScore(ruleset, counts, scorer.score(evaluate_rules(ruleset, counts)))
