"""A table of rules with what each of them is worth on labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skescore.metrics._rule_counts import confusion
from skescore.metrics._rule_quality import MEASURES, Measure

if TYPE_CHECKING:
    import pandas as pd

    from skescore.rules._ruleset import RuleSet

__all__ = ["rule_report"]

#: Corrections that bound the share of false discoveries, and the chance of any.
_FDR, _FWER = ("fdr_bh", "rulekit_fdr"), ("holm", "rulekit_fwer")


def rule_report(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike,
    *,
    measures: str | Sequence[str | Measure] = ("precision", "coverage", "c2"),
    correction: str | None = "fdr_bh",
    alpha: float = 0.05,
    sample_weight: ArrayLike | None = None,
    answering: bool = False,
    untested: float = np.nan,
) -> pd.DataFrame:
    """Judge every rule by itself: its counts, measures, significance and overlap with others.

    Use it to see which rule is weak, which may be luck and which says what others say already. The
    table is a plain DataFrame: ``report.sort_values("c2")``, ``report[report["significant"]]``.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Their labels: the truth, or the answers of a black box.
    measures : sequence of str or Measure, or "all", default=("precision", "coverage", "c2")
        Names in :data:`skescore.metrics.MEASURES`, or measures of your own; a column each.
    correction : {"fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer"} or None, default="fdr_bh"
        Which corrected p-value tells what is significant; None takes the raw one. One of RuleKit's
        variants also takes the place of the standard one in its column.
    alpha : float, default=0.05
        Level of significance, between 0 and 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; the tests take them for numbers of rows.
    answering : bool, default=False
        True counts for each rule only the rows that it answers, see :func:`confusion`.
    untested : float, default=NaN
        Regression: the p-value of a rule that holds for too few rows to be tested; see
        :meth:`RuleCounts.p_values`. RuleKit has 0.0.

    Returns
    -------
    pandas.DataFrame
        A row per rule, numbered from 1, with the columns

        ``text``, ``output``
            The rule, and what it concludes.
        ``p``, ``n``, ``P``, ``N``
            Positive and negative rows that it holds for, and altogether; see :func:`confusion`.
        ``coverage``, ``precision``
            p / P and p / (p + n).
        one column per further measure
            NaN where it is not defined.
        ``p_value``, ``fdr_p_value``, ``fwer_p_value``
            Raw, corrected for false discoveries (Benjamini and Hochberg, or RuleKit's variant) and
            for any false one (Holm, or RuleKit's variant).
        ``significant``
            Whether the rule succeeds beyond chance, see :meth:`RuleCounts.significant`.
        ``overlap``
            Share of its rows that other rules hold for as well.
        ``unique_rows``
            Rows that no other rule holds for.

    Raises
    ------
    ValueError
        If a measure or correction is unknown, or the rows, labels or weights do not fit.

    See Also
    --------
    characteristics : The same figures of the rule set as a whole.

    Notes
    -----
    pandas cuts long rules short when it shows a table. ``print(report.to_string())`` writes them in
    full; in a notebook ``pandas.set_option("display.max_colwidth", None)`` does.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> report = rule_report(rules, X, y, measures=["rss"])
    >>> print(report[["text", "p", "n", "rss", "overlap"]].round(2))
                             text    p    n   rss  overlap
    rule
    1      IF length ≤ 2 THEN low  2.0  0.0  0.67     0.50
    2     IF length > 1 THEN high  1.0  2.0  0.33     0.33
    """
    counts = confusion(ruleset, X, y, sample_weight, answering=answering)
    frame = ruleset.to_frame()[["output"]]
    frame.insert(0, "text", _texts(ruleset))
    for name in ("p", "n", "P", "N"):
        frame[name] = getattr(counts, name)
    for measure in ("coverage", "precision", *_listed(measures)):
        frame[measure.name if isinstance(measure, Measure) else measure] = counts.quality(measure)
    frame["p_value"] = counts.p_values(untested=untested)
    frame["fdr_p_value"] = counts.p_values(
        correction if correction in _FDR else _FDR[0], untested=untested
    )
    frame["fwer_p_value"] = counts.p_values(
        correction if correction in _FWER else _FWER[0], untested=untested
    )
    frame["significant"] = counts.significant(alpha, correction, untested=untested)
    frame["overlap"] = counts.overlap
    frame["unique_rows"] = counts.unique
    return frame


def _listed(measures: str | Sequence[str | Measure]) -> tuple[str | Measure, ...]:
    if isinstance(measures, str):
        return tuple(MEASURES) if measures == "all" else (measures,)
    return tuple(measures)


def _texts(ruleset: RuleSet) -> list[str]:
    """Every rule as it reads by itself, without what was seen when it was made."""
    names, numeric = ruleset.feature_names, ruleset.task == "regression"
    texts = []
    for rule in ruleset.rules:
        premise = rule.premise_text(names, ruleset.number)
        output = rule.output_text(names, numeric=numeric)
        texts.append(f"IF {premise} THEN {output}" if premise else f"ALWAYS {output}")
    return texts
