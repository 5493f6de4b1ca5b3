"""Profiles of the columns of a table, and the comparison of later rows with them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from skescore._text import percentage, plural

__all__ = ["ColumnProfile", "count_outside", "find_drift", "profile_columns"]

#: Levels of the quantiles in a profile of numbers.
_LEVELS = np.linspace(0, 1, 11)
#: Maximum number of categories in a profile.
_MAX_CATEGORIES = 100
#: Maximum probability that any column of unchanged data is reported.
_SIGNIFICANCE = 1e-3
#: Minimum distance of reported distributions, between 0 and 1.
_MIN_DISTANCE = 0.3
#: Multiple of the range beyond which a number is far outside.
_FAR = 10.0
#: Minimum share of rows beyond a limit that suggests other units.
_UNITS_SHARE = 0.9
#: Minimum number of training rows for which it is no coincidence that all numbers are integers.
_MIN_WHOLE = 20
#: Assumed number of training rows if it is unknown.
_MANY_ROWS = 1000
#: Names of features derived from dates, and of those whose values recur.
_OF_DATE = re.compile(r"(?i:(?:^|[\W_])year$)|: (?:month|hour|days since \d{4}-\d\d-\d\d)$")
_RECURRING = re.compile(r": (?:month|hour)$")
#: Factors between usual units.
_FACTORS = (1000.0, 100.0, 10.0, 2.54, 2.2046, 1.609, 3.281, 3.785, 12.0, 60.0, 1e6)


@dataclass(frozen=True)
class ColumnProfile:
    """Distribution of a column of training rows.

    Parameters
    ----------
    n_rows : int
        Number of rows with a value.
    missing : float, default=0.0
        Share of rows without a value.
    quantiles : tuple of float, optional
        Smallest value, deciles and largest value of numbers.
    shares : dict of str to float, optional
        Shares of the 100 most frequent categories among the rows with a value.
    is_whole : bool, default=False
        Whether all numbers are integers.
    """

    n_rows: int
    missing: float = 0.0
    quantiles: tuple[float, ...] | None = None
    shares: Mapping[str, float] | None = None
    is_whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, without unset ones."""
        values = {name: value for name, value in asdict(self).items() if value or value == 0.0}
        if not self.is_whole:
            values.pop("is_whole")
        if self.quantiles is not None:
            values["quantiles"] = list(self.quantiles)
        return values

    @classmethod
    def from_limits(cls, low: float, high: float, missing: float = 0.0) -> ColumnProfile:
        """Create a profile from the smallest and largest number and the share of missing values."""
        return cls(_MANY_ROWS, missing, (low, high))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnProfile:
        """Restore a profile from the result of `to_dict`."""
        values = dict(data)
        if values.get("quantiles") is not None:
            values["quantiles"] = tuple(map(float, values["quantiles"]))
        return cls(**values)


def profile_columns(X: pd.DataFrame) -> dict[str, ColumnProfile]:
    """Return the distribution of each column of training rows.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_features)
        Columns of numbers, or of strings for categories.

    Returns
    -------
    dict of str to ColumnProfile
        Profiles by column.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.suspicions import profile_columns
    >>> profile = profile_columns(pd.DataFrame({"age": range(11), "sex": ["f"] * 10 + ["m"]}))
    >>> profile["age"].quantiles[:3], profile["sex"].shares
    ((0.0, 1.0, 2.0), {'f': 0.9091, 'm': 0.0909})
    """
    profiles = {}
    for name, column in X.items():
        present = column.dropna()
        missing = round(1 - len(present) / max(len(column), 1), 4)
        quantiles = shares = None
        is_whole = False
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = present.to_numpy(float)
            if len(values):
                quantiles = tuple(map(float, np.quantile(values, _LEVELS)))
                is_whole = bool((values == np.floor(values)).all())
        else:
            counts = present.astype(str).value_counts(normalize=True).head(_MAX_CATEGORIES)
            shares = {str(value): round(float(share), 4) for value, share in counts.items()}
        profiles[str(name)] = ColumnProfile(len(present), missing, quantiles, shares, is_whole)
    return profiles


def count_outside(profiles: Mapping[str, ColumnProfile], rows: pd.DataFrame) -> dict[str, int]:
    """Count the rows with values outside the range or the categories of the training rows.

    Parameters
    ----------
    profiles : mapping of str to ColumnProfile
        Profiles of the training rows.
    rows : DataFrame
        Later rows; columns without a profile are ignored.

    Returns
    -------
    dict of str to int
        Number of rows by column, without columns for which it is 0 and without columns of 100 or
        more categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.suspicions import count_outside, profile_columns
    >>> profiles = profile_columns(pd.DataFrame({"age": [20, 80], "sex": ["f", "m"]}))
    >>> count_outside(profiles, pd.DataFrame({"age": [19, 50, 81], "sex": ["f", "m", "m"]}))
    {'age': 2}
    """
    counts = {}
    for name, profile in profiles.items():
        if name not in rows.columns:
            continue
        column = rows[name].dropna()
        if profile.quantiles is not None:
            values = pd.to_numeric(column, errors="coerce").to_numpy(float)
            outside = (values < profile.quantiles[0]) | (values > profile.quantiles[-1])
        elif profile.shares and len(profile.shares) < _MAX_CATEGORIES:
            outside = ~column.astype(str).isin(list(profile.shares)).to_numpy()
        else:
            continue
        if outside.any():
            counts[name] = int(outside.sum())
    return counts


def find_drift(profiles: Mapping[str, ColumnProfile], rows: pd.DataFrame) -> list[str]:
    """Compare rows with the profiles of the training rows.

    Parameters
    ----------
    profiles : mapping of str to ColumnProfile
        Profiles of the training rows.
    rows : DataFrame
        Later rows; columns without a profile are ignored.

    Returns
    -------
    list of str
        Messages about columns whose range, distribution, fractions, categories or missing values
        differ from the training rows by more than expected by chance.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.suspicions import find_drift, profile_columns
    >>> grams = pd.DataFrame({"weight": range(1000, 5000, 20)})
    >>> find_drift(profile_columns(grams), grams / 1000)
    ["all 200 rows are below the training minimum of 'weight' (1000): other units? (their median is about 0.001 times that of the training rows)"]
    """  # noqa: E501 - printed output
    shared = [name for name in profiles if name in rows.columns]
    level = _SIGNIFICANCE / max(len(shared), 1)
    texts: list[str] = []
    for name in shared:
        profile, column = profiles[name], rows[name]
        if profile.n_rows:
            texts += _column_drift(name, profile, column, level)
    return texts


def _column_drift(
    name: str, profile: ColumnProfile, column: pd.Series, level: float
) -> Iterable[str]:
    """Yield the most specific difference of a column's values, and of its missing values."""
    is_missing = column.isna()
    if profile.quantiles is not None:
        values = pd.to_numeric(column, errors="coerce").dropna().to_numpy(float)
        text = _range_drift(name, profile, values, level) if len(values) else None
        if len(profile.quantiles) == len(_LEVELS):
            text = text or _distribution_drift(name, profile.quantiles, values, level)
        text = text or _fraction_drift(name, profile, values)
    else:
        text = _category_drift(name, profile, column[~is_missing].astype(str), level)
    if text is not None:
        yield text
    share = float(is_missing.mean()) if len(column) else 0.0
    n_missing = int(is_missing.sum())
    expected = max(profile.missing, 1 / (profile.n_rows + 1))
    is_rare = stats.binom.sf(n_missing - 1, len(column), min(expected, 1.0)) < level
    if share - profile.missing >= _MIN_DISTANCE and is_rare:
        yield (
            f"{name!r} is missing in {_of_rows(n_missing, len(column))}, but in "
            f"{percentage(profile.missing)} of the training rows"
        )


def _range_drift(name: str, profile: ColumnProfile, values: np.ndarray, level: float) -> str | None:
    """Describe numbers beyond the training range if more or farther than expected by chance."""
    assert profile.quantiles is not None
    low, high = profile.quantiles[0], profile.quantiles[-1]
    margin = _FAR * (high - low) or math.inf
    below, above = values < low, values > high
    n_below, n_above, n_rows = int(below.sum()), int(above.sum()), len(values)
    is_far = (values < low - margin) | (values > high + margin)
    n_far = sum(_tail_share(profile, value) * n_rows < level for value in values[is_far])
    n_outside = n_below + n_above
    # The probability that a new value lies outside the range of training rows has a beta
    # distribution.
    is_rare = stats.betabinom.sf(n_outside - 1, n_rows, 2, max(profile.n_rows - 1, 1)) < level
    is_frequent = n_outside >= 0.05 * n_rows and is_rare
    if not n_outside or not (n_far or is_frequent):
        return None
    parts = [
        f"{side} the training {limit_name} of {name!r} ({limit:.6g})"
        for count, side, limit_name, limit in (
            (n_below, "below", "minimum", low),
            (n_above, "above", "maximum", high),
        )
        if count
    ]
    text = f"{_of_rows(n_outside, n_rows)} {'is' if n_outside == 1 else 'are'} "
    text += " or ".join(parts)
    is_shifted = max(n_below, n_above) >= _UNITS_SHARE * n_rows
    if _OF_DATE.search(name):
        if is_shifted and not _RECURRING.search(name):
            text += f": {'later' if n_above > n_below else 'earlier'} dates"
    elif is_shifted:
        middle = profile.quantiles[len(profile.quantiles) // 2]
        factor = "" if len(profile.quantiles) == 2 else _factor_text(np.median(values), middle)
        text += f": other units?{factor}"
    return text


def _tail_share(profile: ColumnProfile, value: float) -> float:
    """Estimate the share of rows at least as far out as a value beyond the training range.

    Beyond the outer decile, the share is modeled as a power of the distance from the median that
    interpolates the decile and the limit, where one training row is expected.
    """
    quantiles = profile.quantiles
    assert quantiles is not None
    middle = len(quantiles) // 2
    outer, limit = (quantiles[-2:]) if value > quantiles[-1] else (quantiles[1], quantiles[0])
    decile, extreme, distance = (abs(x - quantiles[middle]) for x in (outer, limit, value))
    if len(quantiles) < len(_LEVELS) or decile == extreme:
        return 0.0
    if not decile:
        return 1.0  # too few values differ from the median for an estimate
    share = _LEVELS[1]
    power = math.log(max(share * profile.n_rows, 1.0)) / math.log(extreme / decile)
    return float(share * (distance / decile) ** -power)


def _factor_text(median: float, training_median: float) -> str:
    """Describe the ratio of medians if it is usual between units, otherwise both medians."""
    if not training_median or not median or median * training_median < 0:
        return ""
    ratio = median / training_median
    factors = (*_FACTORS, *(1 / factor for factor in _FACTORS))
    nearest = min(factors, key=lambda factor: abs(math.log(ratio / factor)))
    if abs(math.log(ratio / nearest)) < 0.15:
        return f" (their median is about {nearest:.3g} times that of the training rows)"
    return f" (their median is {median:.4g}, that of the training rows {training_median:.4g})"


def _distribution_drift(
    name: str, quantiles: tuple[float, ...], values: np.ndarray, level: float
) -> str | None:
    """Describe numbers whose distribution differs from that of the training rows."""
    if not len(values) or quantiles[0] == quantiles[-1]:
        return None
    knots = np.unique(quantiles)
    training_shares = np.interp(knots, *_upper_levels(quantiles))
    shares_up_to = np.searchsorted(np.sort(values), knots, side="right") / len(values)
    shares_below = np.searchsorted(np.sort(values), knots, side="left") / len(values)
    # Repeated values make steps, within which any share is possible.
    lowest = np.array([_LEVELS[np.asarray(quantiles) == knot].min() for knot in knots])
    distance = float(np.maximum(lowest - shares_up_to, shares_below - training_shares).max())
    critical = math.sqrt(-math.log(level / 2) / (2 * len(values)))
    if distance < max(_MIN_DISTANCE, critical):
        return None
    return (
        f"the distribution of {name!r} differs from the training rows: its median is "
        f"{float(np.median(values)):.4g}, in the training rows {quantiles[5]:.4g}"
    )


def _fraction_drift(name: str, profile: ColumnProfile, values: np.ndarray) -> str | None:
    """Describe fractions in a column whose training values are integers."""
    n_fractions = int((values != np.floor(values)).sum())
    is_frequent = 0 < n_fractions >= 0.05 * len(values)
    if not profile.is_whole or profile.n_rows < _MIN_WHOLE or not is_frequent:
        return None
    return (
        f"{_of_rows(n_fractions, len(values))} have fractions in {name!r}, which holds whole "
        "numbers in the training rows: other units?"
    )


def _upper_levels(quantiles: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct quantiles with the largest level of each."""
    knots, index = np.unique(np.asarray(quantiles)[::-1], return_index=True)
    return knots, _LEVELS[::-1][index]


def _category_drift(
    name: str, profile: ColumnProfile, texts: pd.Series, level: float
) -> str | None:
    """Describe categories that are new, or whose shares differ from the training rows."""
    shares = dict(profile.shares or {})
    if not len(texts) or not shares:
        return None
    is_new = ~texts.isin(list(shares))
    n_new = int(is_new.sum())
    # The share of unseen categories is about that of categories seen once.
    n_single = sum(share * profile.n_rows < 1.5 for share in shares.values())
    unlisted_share = max(0.0, 1 - sum(shares.values()))
    chance = min(1.0, (n_single + 2) / (profile.n_rows + 1) + unlisted_share)
    is_frequent = n_new > 0 and n_new >= 0.05 * len(texts)
    if is_frequent and stats.binom.sf(n_new - 1, len(texts), chance) < level:
        examples = ", ".join(map(repr, texts[is_new].value_counts().index[:3]))
        verb = "has" if n_new == 1 else "have"
        return (
            f"{_of_rows(n_new, len(texts))} {verb} categories of {name!r} that do not occur in "
            f"the training rows: {examples}"
        )
    current_shares = texts.value_counts(normalize=True)
    distance = 0.5 * sum(
        abs(float(current_shares.get(value, 0.0)) - shares.get(str(value), 0.0))
        for value in {*shares, *current_shares.index}
    )
    critical = math.sqrt(len(shares) / len(texts)) + math.sqrt(-math.log(level) / len(texts))
    if distance < max(_MIN_DISTANCE, critical):
        return None
    most_frequent = str(current_shares.index[0])
    return (
        f"the distribution of {name!r} differs from the training rows: {most_frequent!r} in "
        f"{percentage(float(current_shares.iloc[0]))} of the rows, in "
        f"{percentage(shares.get(most_frequent, 0.0))} of the training rows"
    )


def _of_rows(count: int, n_rows: int) -> str:
    return f"all {plural(n_rows, 'row')}" if count == n_rows else f"{count} of {n_rows} rows"
