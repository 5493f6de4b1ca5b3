"""Effect of removing or changing rules on the scores of the rule set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skescore._validation import check_instance
from skescore.rules import RuleSet
from skescore.scorers import SCORE_SPECS, evaluate_rules, make_knowledge_scorer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = ["selection_effect"]


def selection_effect(
    before: RuleSet,
    after: RuleSet,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Compare the scores of a rule set before and after a selection.

    Use it after :func:`select_rules`, :func:`significant_rules` or :func:`prune`: fewer rules are
    easier to read, but cover fewer rows. For an unbiased comparison, use rows that were not used
    for the selection.

    Parameters
    ----------
    before, after : RuleSet
        Rules before and after the selection.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Labels of the rows: the truth, or the predictions of a black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.
    **settings : Any
        Settings of the scores, see :func:`skescore.scorers.make_knowledge_scorer`.

    Returns
    -------
    pandas.DataFrame
        Columns ``before``, ``after`` and ``change`` (after minus before), and the rows

        ``ice``
            ICE score, greater is better.
        ``fire``, ``q``
            FiRe and Q score, smaller is better.
        ``performance``, ``loss``, ``loss_q``
            Measures of the prediction in ICE, FiRe and Q.
        ``n_rules``, ``n_conditions``
            Size.
        ``completeness_volume``, ``completeness_instances``
            Shares of the domain's volume and of the rows that rules cover. Both rule sets are
            measured in the domain of `before`, or in the bounding box of the rows if it has none.

        If no rule remains, scores are NaN, with an ``UndefinedMetricWarning``.

    Raises
    ------
    TypeError
        If an argument is not a RuleSet, or there is no such setting.
    ValueError
        If the rule sets differ in task or features, or rows, labels or weights do not fit.

    See Also
    --------
    skescore.metrics.ice_score, skescore.metrics.fire_score, skescore.metrics.q_score : Formulas.

    Examples
    --------
    >>> from skescore.selection import select_rules
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False, fallback=Fallback("low"),
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> better = select_rules(rules, X, y, "precision", 0.8)
    >>> effect = selection_effect(rules, better, X, y)
    >>> print(effect.loc[["n_rules", "completeness_instances"]])
                            before  after  change
    n_rules                    2.0    1.0    -1.0
    completeness_instances     1.0    0.5    -0.5
    """
    import pandas as pd

    for name, ruleset in (("before", before), ("after", after)):
        remedy = "Pass a fitted extractor's rules_, or use as_ruleset(...) first."
        check_instance(name, ruleset, RuleSet, remedy=remedy)
    for attribute in ("task", "feature_names"):
        one, other = getattr(before, attribute), getattr(after, attribute)
        if one != other:
            raise ValueError(
                f"before and after must have the same {attribute}, got {one!r} and {other!r}. "
                "Compare a rule set with a selection of its rules."
            )
    if "reference" in settings:
        raise TypeError(
            "selection_effect compares with y and accepts no reference, got "
            f"{settings['reference']!r}. Pass the black box's predictions as y."
        )
    scorer = make_knowledge_scorer(**settings)
    # Shares of different boxes are not comparable, and imported rules have no box.
    domain = before.domain or before.domain_around(X, sample_weight)
    columns = {}
    for name, ruleset in (("before", before), ("after", after)):
        measured = ruleset.replace(domain=domain)
        scores = scorer.score(evaluate_rules(measured, X, y, sample_weight=sample_weight))
        columns[name] = {
            **{spec.name: spec.signed(scores[spec.scorer_name]) for spec in SCORE_SPECS.values()},
            **{spec.kept_as: scores[spec.kept_as] for spec in SCORE_SPECS.values()},
            "n_rules": scores["n_rules"],
            "n_conditions": float(ruleset.n_conditions),
            "completeness_volume": scores["completeness_volume"],
            "completeness_instances": scores["completeness_instances"],
        }
    frame = pd.DataFrame(columns)
    frame["change"] = frame["after"] - frame["before"]
    return frame
