"""Groups of rows, such as women and men: shares of rows by rule, and gaps between predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import did_you_mean, fill_docstring
from skescore._validation import label_order, python_value, row_weights
from skescore.rules import Fallback, RowTable, RuleSet, as_ruleset

__all__ = ["group_gap", "group_masks", "group_rates", "group_shares", "group_values"]

#: Maximum number of groups.
_MAX_GROUPS = 50
#: Index label of uncovered rows in :func:`group_shares`.
NO_RULE = "no rule"
#: Sections that the docstrings of the functions share.
_SECTIONS = {
    "parameters": """
rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
    The rules.
X : array-like or DataFrame of shape (n_rows, n_features)
    The rows.
groups : str or array-like of shape (n_rows,)
    Name of a column of X, or the group of each row, such as a protected attribute that the rules do
    not use. Rows with a missing value belong to no group.
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows. Groups whose rows all have weight 0 are omitted.
""",
    "errors": """
ValueError
    If `groups` is not the name of exactly one column of X, or there are no groups or more than 50.
""",
}
_documented = partial(fill_docstring, parts=_SECTIONS)


@_documented
def group_shares(
    rules: Any, X: Any, groups: Any, sample_weight: ArrayLike | None = None
) -> pd.DataFrame:
    """Return the share of each group's rows that each rule decides or, if rules vote, covers.

    Use it to see which rules treat groups differently; :func:`skescore.plots.group_heatmap` plots
    it.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    pandas.DataFrame
        One column per group, one row per rule (from 1), and "no rule" for uncovered rows. Columns
        sum to 1 unless rules vote.

    Raises
    ------
    {errors}

    See Also
    --------
    group_gap : Largest difference between the predictions of groups.

    Examples
    --------
    >>> from skescore.metrics import group_shares
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "no"), Rule([], "yes")], ["income"],
    ...                 task="classification")
    >>> group_shares(rules, [[1], [3], [4], [5]], ["f", "f", "f", "m"]).round(2).to_dict("index")
    {1: {'f': 0.33, 'm': 0.0}, 2: {'f': 0.67, 'm': 1.0}, 'no rule': {'f': 0.0, 'm': 0.0}}
    """
    ruleset, masks, weights = _checked(rules, X, groups, sample_weight)
    table = RowTable(X, ruleset.feature_names)
    if ruleset.voting is None:
        holds = ruleset.assign(table)[:, None] == np.arange(len(ruleset))
    else:
        holds = ruleset.match(table)
    columns = np.column_stack([holds, ~holds.any(axis=1)])
    index = pd.Index([*range(1, len(ruleset) + 1), NO_RULE], name="rule")
    shares = [np.average(columns[mask], axis=0, weights=weights[mask]) for mask in masks.values()]
    return _by_group(shares, masks, index)


@_documented
def group_rates(
    rules: Any, X: Any, groups: Any, sample_weight: ArrayLike | None = None
) -> pd.DataFrame:
    """Return the share of each predicted class by group, or the mean prediction in regression.

    Use it to see in which direction predictions of groups differ.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    pandas.DataFrame
        One column per group. One row per class with its share of the rows; in regression, one row
        with the mean of the available predictions. It is NaN, with an ``UndefinedMetricWarning``,
        for a group without predictions.

    Raises
    ------
    {errors}

    Examples
    --------
    >>> from skescore.metrics import group_rates
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "no"), Rule([], "yes")], ["income"],
    ...                 task="classification")
    >>> group_rates(rules, [[1], [3], [1], [5]], ["f", "f", "f", "m"]).round(2).to_dict("index")
    {'no': {'f': 0.67, 'm': 0.0}, 'yes': {'f': 0.33, 'm': 1.0}}
    """
    ruleset, masks, weights = _checked(rules, X, groups, sample_weight)
    if ruleset.fallback is None:  # uncovered rows have no prediction
        output = 0.0 if ruleset.classes is None else ruleset.classes[0]
        no_class = " ".join(map(str, ("no", *(ruleset.classes or ()))))
        stand_in = Fallback(output, "abstain", abstain_label=no_class)
        ruleset = ruleset.replace(fallback=stand_in)
    predictions = np.asarray(ruleset.predict(RowTable(X, ruleset.feature_names)))
    if ruleset.classes is None:
        numbers = predictions.astype(float)
        has_number = ~np.isnan(numbers)
        values = {"mean prediction": np.where(has_number, numbers, 0.0)}
        weights = weights * has_number
    else:
        values = {label: (predictions == label).astype(float) for label in ruleset.classes}
    rates = []
    for group, mask in masks.items():
        if not weights[mask].any():
            warnings.warn(
                f"The mean prediction of the group {group!r} is undefined: the rules predict none "
                "of its rows. Give the rules a fallback that predicts all rows.",
                UndefinedMetricWarning,
                stacklevel=2,
            )
            rates.append([np.nan] * len(values))
            continue
        rates.append([float(np.average(v[mask], weights=weights[mask])) for v in values.values()])
    return _by_group(rates, masks, pd.Index(values, name="prediction"))


@_documented
def group_gap(rules: Any, X: Any, groups: Any, sample_weight: ArrayLike | None = None) -> float:
    """Return the largest difference between groups in the predictions of rules.

    Use it as a measure of fairness (demographic parity). A search minimizes it together with other
    objectives as ``"group_gap:COLUMN"``, and :class:`skescore.constraints.Constraints` limits it.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    float
        Largest difference between two groups in the share of a class, from 0 to 1; in regression,
        in the mean prediction. 0 for a single group. Rows without a prediction count for no class.
        In regression they are ignored; the gap is NaN, with an ``UndefinedMetricWarning``, if a
        group has no predictions.

    Raises
    ------
    {errors}

    References
    ----------
    C. Dwork et al.: Fairness through awareness. ITCS 2012.

    Examples
    --------
    >>> from skescore.metrics import group_gap
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "no"), Rule([], "yes")], ["income"],
    ...                 task="classification")
    >>> round(group_gap(rules, [[1], [3], [1], [5]], ["f", "f", "f", "m"]), 2)
    0.67
    """
    rates = group_rates(rules, X, groups, sample_weight)
    return float((rates.max(axis=1, skipna=False) - rates.min(axis=1, skipna=False)).max())


def group_values(X: Any, feature_names: Any, groups: Any) -> pd.Series:
    """Return the group of each row.

    Raises
    ------
    ValueError
        If there is no such column, or there is not one value per row.
    """
    if not isinstance(groups, str):
        values = _one_value_per_row(groups)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if len(values) != n_rows:
            raise ValueError(
                f"groups must have one value per row, got {len(values)} for {n_rows} rows."
            )
        return pd.Series(values)
    is_arrow = hasattr(X, "schema") and not hasattr(X, "get_column")
    columns = X.schema.names if is_arrow else getattr(X, "columns", None)
    names = [str(column) for column in (feature_names if columns is None else columns)]
    if groups not in names:
        raise ValueError(
            f"groups must be a column of X or one value per row. There is no column {groups!r}. "
            f"{did_you_mean(groups, names)}"
        )
    if columns is None:
        column = RowTable.of(X, feature_names).column(names.index(groups))
    else:
        column = RowTable(X, [groups]).column(0)  # rejects a name that occurs twice
    return pd.Series(column.astype(object))


def _one_value_per_row(groups: Any) -> np.ndarray:
    """Return the groups of rows as objects, without rounding; a tuple is one group."""
    if hasattr(groups, "to_pylist"):
        labels = groups.to_pylist()
    elif hasattr(groups, "to_list"):
        labels = groups.to_list()
    else:
        if isinstance(groups, np.ndarray) and groups.ndim != 1:
            raise ValueError(
                f"groups must have one value per row, got shape {groups.shape}. Pass one column."
            )
        is_date = isinstance(groups, np.ndarray) and groups.dtype.kind in "mM"
        labels = pd.Series(groups).tolist() if is_date else list(groups)
    return np.fromiter(labels, dtype=object, count=len(labels))


def group_masks(X: Any, feature_names: Any, groups: Any) -> dict[Any, np.ndarray]:
    """Return masks of the rows of each group, ignoring rows with a missing value.

    Raises
    ------
    ValueError
        If there is no such column, no group, or more than 50.
    """
    codes, labels = pd.factorize(group_values(X, feature_names, groups).to_numpy())
    name = groups if isinstance(groups, str) else "groups"
    if not len(labels):
        raise ValueError(f"{name!r} holds no group: all values are missing, or there are no rows.")
    if len(labels) > _MAX_GROUPS:
        raise ValueError(
            f"{name!r} has {len(labels)} different values, more than {_MAX_GROUPS} groups. Divide "
            "it into a few groups."
        )
    code_of = {python_value(label): code for code, label in enumerate(labels)}
    try:
        ordered = sorted(code_of, key=label_order)
    except TypeError:  # values of different types
        ordered = sorted(code_of, key=lambda label: (type(label).__name__, repr(label)))
    return {label: codes == code_of[label] for label in ordered}


def _checked(
    rules: Any, X: Any, groups: Any, sample_weight: ArrayLike | None
) -> tuple[RuleSet, dict[Any, np.ndarray], np.ndarray]:
    """Return the rules, the rows of each group, and the weights of the rows."""
    ruleset: RuleSet = as_ruleset(rules)
    masks = group_masks(X, ruleset.feature_names, groups)
    n_rows = len(next(iter(masks.values())))
    if sample_weight is None:
        return ruleset, masks, np.ones(n_rows)
    weights = row_weights(sample_weight, n_rows)
    masks = {label: mask for label, mask in masks.items() if weights[mask].any()}
    if not masks:
        raise ValueError(
            "sample_weight must hold a positive number for a row with a group, got none. Pass None "
            "to weight all rows equally."
        )
    return ruleset, masks, weights


def _by_group(values: list[Any], groups: Iterable[Any], index: pd.Index) -> pd.DataFrame:
    """Return a table with one column per group; a tuple names one column."""
    labels = list(groups)
    columns = pd.Index(labels, tupleize_cols=False)
    if columns.tolist() != labels:  # pandas would round some integers
        columns = pd.Index(labels, tupleize_cols=False, dtype=object)
    return pd.DataFrame(np.column_stack(values), index=index, columns=columns)
