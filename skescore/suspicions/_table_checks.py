"""Checks for suspicious rows, features and targets of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._column_names import (
    is_calendar_name,
    is_code_name,
    is_identifier_name,
    is_time_name,
)
from skescore._text import percentage, plural
from skescore.suspicions._facts import TableFacts
from skescore.suspicions._record import Evidence
from skescore.suspicions._single_features import (
    OrderMeasures,
    are_spaced_like_codes,
    count_errors,
    count_subject_columns,
    count_tree_errors,
    measure_order,
    measure_resemblance,
    measure_tree_r2,
    row_distances,
)

#: Minimum number of rows for checks that compare features with the target.
_MIN_ROWS = 50
#: Maximum number of errors of a feature that determines the target, as a share of all rows and of
#: the errors of a constant prediction.
_LEAK_ERRORS, _LEAK_RELATIVE_ERRORS = 0.01, 0.1
#: Maximum number of errors of an identifier, as a share of the errors of a constant prediction.
_IDENTIFIER_RELATIVE_ERRORS = 0.05
#: Maximum share of features that are reported as leaks; if there are more, the classes are easy.
_LEAK_FEATURE_SHARE = 0.2
#: Minimum share of the rows of a class in which a feature that only this class has must be known.
_KNOWN_SHARE = 0.9
#: Minimum number of rows that a constant must predict wrongly.
_MIN_CONSTANT_ERRORS = 5
#: Minimum R² of a feature that determines a numeric target.
_LEAK_R2 = 0.985
#: Minimum share of repeated rows, and their minimum ratio to the number expected by chance.
_DUPLICATE_SHARE, _DUPLICATE_RATIO = 0.05, 5.0
#: Minimum share of the copies that belong to rows with at most three occurrences, and maximum
#: factor by which the number of copies grows if one column is ignored.
_RARE_PATTERNS, _NEAR_RATIO = 0.7, 1.3
#: Minimum number and share of rows that contradict another one.
_MIN_CONTRADICTIONS, _CONTRADICTION_SHARE = 3, 0.01
#: Minimum number of different rows in a table in which every row is repeated on purpose.
_MIN_PATTERNS = 20
#: Minimum share of rows whose identifier, or whose other text outside the features, occurs in an
#: earlier row; and minimum number of different identifiers.
_REPEATED_SHARE, _REPEATED_NAMES_SHARE, _MIN_IDENTIFIERS = 0.1, 0.4, 8
#: Minimum resemblance of rows with the same identifier, from 0 (none) to 1 (equal).
_RESEMBLANCE = 0.5
#: Minimum number of different times in a table whose rows are in chronological order.
_MIN_TIMES = 20
#: Minimum number of rows for meaningful figures.
_FEW_ROWS = 30
#: Minimum number of different integers that may be codes, and of rows for each of them.
_MIN_CODES, _MIN_ROWS_PER_CODE = 6, 5
#: Minimum share of the integers up to the largest code that occur in a target of codes, and minimum
#: rank correlation between a quantity and a feature.
_TARGET_DENSITY, _TREND = 0.8, 0.4
#: Maximum share of the rows of a class whose name may be a spelling mistake.
_TYPO_SHARE = 0.02
_MIN_TYPO_LENGTH = 5
#: Maximum number of classes that are compared with codes.
_MAX_CLASSES = 30
_MAX_LISTED = 3


def find_leaks(facts: TableFacts) -> Iterator[Evidence]:
    """Yield each feature that alone determines the target."""
    if facts.y is None or len(facts.X) < _MIN_ROWS:
        return
    rows = facts.sampled_rows
    y = facts.y.to_numpy()[rows]
    excluded_names = {evidence.subject for evidence in find_identifier_targets(facts)}
    excluded_names |= _time_features(facts)
    if facts.task == "regression":
        for name, values in facts.numeric_features.items():
            r2 = measure_tree_r2(values[rows], y.astype(float))
            if r2 >= _LEAK_R2 and name not in excluded_names:
                yield _leak(name, f"{name!r} alone determines {facts.target_name!r} (R² {r2:.3f})")
        return
    codes = pd.factorize(y)[0]
    class_counts = pd.Series(y).value_counts()
    n_constant = len(y) - int(class_counts.iloc[0])
    limit = min(_LEAK_ERRORS * len(y), _LEAK_RELATIVE_ERRORS * n_constant)
    if n_constant < _MIN_CONSTANT_ERRORS:
        return
    errors = {
        str(name): count_errors(column.iloc[rows], codes, limit)
        for name, column in facts.X.items()
        if str(name) not in excluded_names
    }
    leaks = {name: count for name, count in errors.items() if count <= limit}
    sources = _source_columns(errors)
    n_columns = len(set(sources.values()))
    if len({sources[name] for name in leaks}) > max(1, _LEAK_FEATURE_SHARE * n_columns):
        return  # many features separate the classes, so the problem is easy
    texts = {
        sources[name]: f"determines {facts.target_name!r} in {len(y) - n_errors} of {len(y)} rows "
        f"(always predicting {class_counts.index[0]!s}: {int(class_counts.iloc[0])})"
        for name, n_errors in leaks.items()
    }
    for name in errors.keys() - leaks.keys():
        if label_text := _describe_only_class(facts.X[name].iloc[rows], y, class_counts):
            texts[sources[name]] = f"identifies {facts.target_name!r} {label_text}"
    for source in sources.values():
        if text := texts.pop(source, ""):
            yield _leak(source, f"{source!r} alone {text}")


def _source_columns(names: Collection[str]) -> dict[str, str]:
    """Return the column of each feature; the parts of a date are features of one column."""
    dates = {name.partition(": days since ")[0] for name in names if ": days since " in name}
    sources = {name: name.partition(": ")[0] for name in names}
    return {name: source if source in dates else name for name, source in sources.items()}


def _describe_only_class(column: pd.Series, y: np.ndarray, class_counts: pd.Series) -> str:
    """Describe the only class whose rows have a value of the feature; empty if there is none."""
    labels = y[column.notna().to_numpy()]
    if not _MIN_CONSTANT_ERRORS <= len(labels) < len(y) or (labels != labels[0]).any():
        return ""
    n_rows = int(class_counts[labels[0]])
    if len(labels) < _KNOWN_SHARE * n_rows:
        return ""
    return (
        f"{labels[0]!s}: it has a value in {len(labels)} of {n_rows} rows of this class, and in no "
        "other row"
    )


def _leak(name: str, text: str) -> Evidence:
    return Evidence(text, name, ("--drop", name))


def find_identifier_targets(facts: TableFacts) -> Iterator[Evidence]:
    """Yield identifiers whose order or prefix determines the target."""
    if facts.y is None or len(facts.X) < _MIN_ROWS:
        return
    target = facts.y.to_numpy()
    for name, column, is_feature in _identifier_columns(facts):
        ranks = _identifier_ranks(column)
        n_values = int(ranks.nunique())
        if n_values < len(ranks) / 5 or (not is_feature and _is_sorted(facts, ranks)):
            continue
        options = ("--drop", name) if is_feature else ()
        values = ranks.to_numpy(float)
        if facts.task == "regression":
            r2 = measure_tree_r2(values, target.astype(float))
            if r2 >= _LEAK_R2:
                text = (
                    f"The identifier {name!r} determines {facts.target_name!r} (R² {r2:.3f}), "
                    "because rows are numbered in the order of the target"
                )
                yield Evidence(text, name, options)
            continue
        codes = pd.factorize(target)[0]
        n_constant = len(codes) - int(np.bincount(codes).max())
        n_errors = count_tree_errors(values, codes)
        if (
            n_constant >= _MIN_CONSTANT_ERRORS
            and n_errors <= _IDENTIFIER_RELATIVE_ERRORS * n_constant
        ):
            yield Evidence(
                f"The identifier {name!r} determines {facts.target_name!r} in "
                f"{len(codes) - n_errors} of {len(codes)} rows, because they are numbered class by "
                "class",
                name,
                options,
            )


def _is_sorted(facts: TableFacts, ranks: pd.Series) -> bool:
    """Return whether the rows of the table are sorted by an identifier or by class.

    In this case, an identifier that is not a feature contains no more information than the order of
    the rows.
    """
    if ranks.is_monotonic_increasing or ranks.is_monotonic_decreasing:
        return True
    if facts.task == "regression" or facts.y is None:
        return False
    codes = pd.factorize(facts.y)[0]
    return bool((np.diff(codes) != 0).sum() <= codes.max() + 1)


def _identifier_columns(facts: TableFacts) -> Iterator[tuple[str, pd.Series, bool]]:
    """Yield the columns that identify rows: name, values, and whether the column is a feature."""
    if facts.identifiers is not None:
        for name, column in facts.identifiers.items():
            yield str(name), column, False
    for name, column in facts.X.items():
        if is_identifier_name(str(name)):
            yield str(name), column, True


def _identifier_ranks(column: pd.Series) -> pd.Series:
    """Return the ranks of identifiers in natural order: by prefix, then by number."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(float).rank(method="dense")
    texts = column.astype(str)
    prefixes = texts.str.extract(r"^(\D*)", expand=False).fillna("")
    numbers = pd.to_numeric(texts.str.extract(r"(\d+)", expand=False), errors="coerce").fillna(-1)
    keys = pd.DataFrame({"prefix": prefixes, "number": numbers, "text": texts})
    order = keys.drop_duplicates().sort_values(["prefix", "number", "text"])
    position = {text: rank for rank, text in enumerate(order["text"])}
    return texts.map(position).astype(float)


def find_duplicates(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the number of copies of earlier rows, unless chance explains them."""
    table = facts.X if facts.y is None else facts.X.assign(**{"the target": facts.y.to_numpy()})
    for name, column in _subject_columns(facts):
        table = table.assign(**{f"subject {name}": column.to_numpy()})
    if facts.groups is not None or len(table) < _FEW_ROWS:
        return
    n_repeated = int(table.duplicated().sum())
    if n_repeated < _DUPLICATE_SHARE * len(table):
        return
    counts = table.value_counts(dropna=False).to_numpy()
    multiple = int(np.gcd.reduce(counts)) if len(counts) >= _MIN_PATTERNS else 1
    if multiple == 1 and not _are_copies(table, n_repeated, counts):
        return
    multiplicity = (
        f"; the count of each distinct row is a multiple of {multiple}" if multiple > 1 else ""
    )
    yield Evidence(
        f"{n_repeated} of {len(table)} rows are exact copies of an earlier row, including the "
        f"target{multiplicity}",
        options=("--drop-duplicates",),
    )


def _subject_columns(facts: TableFacts) -> Iterator[tuple[str, pd.Series]]:
    """Yield columns of names outside the features; rows with different names are not copies."""
    if facts.identifiers is None:
        return
    for name, column in facts.identifiers.items():
        texts = column.dropna().astype(str)
        is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if len(texts) and not is_numeric and texts.str.contains(r"\d").mean() < 0.5:
            yield str(name), column.astype(str)


def _are_copies(table: pd.DataFrame, n_repeated: int, counts: np.ndarray) -> bool:
    """Return whether repeated rows are copies rather than equal by chance.

    Rows are equal by chance if many also repeat after the values of columns are permuted, if many
    more are equal without one column of few values, or if most repeat a few frequent rows.
    """
    generator = np.random.default_rng(0)
    varying = [name for name, column in table.items() if column.nunique() > 1]
    min_values = max(20, len(table) / 20)
    many_valued = {name for name in varying if table[name].nunique() > min_values}
    permuted = {
        name: _permute_unusual(table[name], generator)
        for name in varying
        if name in many_valued or not many_valued
    }
    n_by_chance = int(table.assign(**{str(n): v for n, v in permuted.items()}).duplicated().sum())
    if n_by_chance * _DUPLICATE_RATIO > n_repeated:
        return False
    n_without_column = {
        name: int(table.drop(columns=[name]).duplicated().sum())
        for name in varying
        if name not in many_valued
    }
    if many_valued:
        return max(n_without_column.values(), default=0) <= _NEAR_RATIO * n_repeated
    rare_share = float((counts[(counts > 1) & (counts <= 3)] - 1).sum()) / n_repeated
    if rare_share < _RARE_PATTERNS:
        return False
    return float(np.median(list(n_without_column.values()))) <= _NEAR_RATIO * n_repeated


def _permute_unusual(column: pd.Series, generator: np.random.Generator) -> np.ndarray:
    """Permute a column; if it has many values, rows with the most frequent one do not change."""
    values = column.to_numpy(dtype=object)
    positions = np.flatnonzero((column != column.mode().iloc[0]).to_numpy(bool, na_value=True))
    if column.nunique() <= _MIN_PATTERNS or not len(positions):
        positions = np.arange(len(column))
    result = values.copy()
    result[positions] = values[generator.permutation(positions)]
    return result


def find_contradictory_rows(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the number of rows with the features of a row of another class, unless by chance."""
    if facts.y is None or facts.task == "regression" or len(facts.X) < _FEW_ROWS:
        return
    table = facts.X
    for name, column in _subject_columns(facts):
        table = table.assign(**{f"subject {name}": column.to_numpy()})
    is_repeated = table.duplicated(keep=False).to_numpy()
    if not is_repeated.any():
        return
    patterns = table[is_repeated].groupby(list(table.columns), dropna=False, sort=False).ngroup()
    classes = pd.factorize(facts.y.to_numpy()[is_repeated])[0]
    counts = pd.crosstab(patterns.to_numpy(), classes).to_numpy()
    n_wrong = int((counts.sum(axis=1) - counts.max(axis=1)).sum())
    n_repeated = int(table.duplicated().sum())
    if n_wrong < max(_MIN_CONTRADICTIONS, _CONTRADICTION_SHARE * len(table)):
        return
    if not _are_copies(table, n_repeated, counts.sum(axis=1)):
        return
    n_rows = int(counts[(counts > 0).sum(axis=1) > 1].sum())
    share = percentage(1 - n_wrong / len(table), digits=1)
    yield Evidence(
        f"{n_rows} of {len(table)} rows have the same features as a row of another class, so no "
        f"rules on these features can be right for more than {share} of the rows"
    )


def find_repeated_test_rows(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the number of test rows that are among the training rows."""
    if facts.test is None or len(facts.test) < 5:
        return
    names = [name for name in facts.X.columns if name in facts.test.columns]
    train, test = facts.X[names].drop_duplicates(), facts.test[names]
    all_rows = pd.concat([train, test], ignore_index=True)
    is_repeated = all_rows.duplicated(keep="first").to_numpy()[len(train) :]
    is_copy_in_test = test.duplicated().to_numpy()
    n_repeated = int((is_repeated & ~is_copy_in_test).sum())
    share_within = 1 - len(train) / len(facts.X)
    if n_repeated < _DUPLICATE_SHARE * len(test) or share_within > n_repeated / len(test) / 2:
        return
    yield Evidence(
        f"{n_repeated} of {len(test)} test rows are among the training rows",
        options=("--drop-duplicates",),
    )


def find_repeated_groups(facts: TableFacts) -> Iterator[Evidence]:
    """Yield columns whose values identify groups of rows that resemble each other."""
    if facts.groups is not None:
        return
    evidence = list(_named_groups(facts))
    yield from evidence
    if not evidence and (unnamed := _unnamed_group(facts)):
        yield unnamed


def _named_groups(facts: TableFacts) -> Iterator[Evidence]:
    """Yield identifier columns whose values occur in several rows that resemble each other.

    Rows of one subject, such as a patient, must not be split between training and held-out rows.
    """
    for name, column, _ in _identifier_columns(facts):
        share = _REPEATED_SHARE if is_identifier_name(name) else _REPEATED_NAMES_SHARE
        is_known = column.notna().to_numpy()
        labels = pd.factorize(column[is_known])[0]
        counts = np.bincount(labels)
        n_values = len(counts)
        # The most frequent value may be a placeholder, such as an empty text, so it does not count.
        n_repeated = len(labels) - n_values + 1 - int(counts.max(initial=1))
        if n_values < _MIN_IDENTIFIERS or n_repeated < max(5, share * len(column)):
            continue
        other_columns = facts.X.drop(columns=[name], errors="ignore")
        if facts.y is not None:
            other_columns = other_columns.assign(**{"the target": facts.y.to_numpy()})
        resemblance = measure_resemblance(labels, other_columns[is_known])
        similar_columns = [alike for alike, value in resemblance.items() if value >= _RESEMBLANCE]
        # Different people with the same name agree in a few columns, such as sex. Rows of one
        # subject agree in most columns.
        is_subject = is_identifier_name(name) or 2 * len(similar_columns) >= other_columns.shape[1]
        if similar_columns and is_subject:
            alike = max(similar_columns, key=resemblance.__getitem__)
            repeats = int((counts > 1).sum())
            yield Evidence(
                f"{repeats} of {n_values} values of {name!r} occur in several rows, and these rows "
                f"resemble each other, especially in {alike!r}",
                name,
                ("--groups", name),
            )


def _unnamed_group(facts: TableFacts) -> Evidence | None:
    """Return the integer feature, if any, that most clearly numbers subjects, by its values."""
    columns = facts.X
    if facts.y is not None:
        columns = columns.assign(**{"the target": facts.y.to_numpy()})
    is_copy = columns.duplicated().to_numpy()
    columns = columns[~is_copy]
    distances: dict[Any, Any] = {}
    best_measures, evidence = (0, 0), None
    for name, values in facts.numeric_features.items():
        integers = values[~is_copy]
        present = integers[np.isfinite(integers)]
        if is_time_name(name) or is_calendar_name(name) or (present != np.floor(present)).any():
            continue
        if not are_spaced_like_codes(np.unique(present)):
            continue
        if not distances:
            distances = {column: row_distances(values) for column, values in columns.items()}
        others = columns.drop(columns=[name])
        n_alike, n_values = measures = count_subject_columns(integers, others, distances)
        if measures > best_measures:
            best_measures = measures
            text = (
                f"{name!r} may number subjects: it has {n_values} different integers, and "
                f"rows with the same integer are alike in {n_alike} of {others.shape[1]} other "
                "columns, unlike rows with neighboring integers"
            )
            evidence = Evidence(text, name, ("--groups", name))
    return evidence


def find_shuffled_time(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the time column by which the rows are sorted."""
    if not facts.is_shuffled or facts.groups is not None:
        return
    for name, values in facts.numeric_features.items():
        if not is_time_name(name) or np.isnan(values).any():
            continue
        n_times = len(np.unique(values))
        steps = np.diff(values)
        if n_times >= _MIN_TIMES and ((steps >= 0).all() or (steps <= 0).all()):
            column = re.sub(r": days since \d{4}-\d\d-\d\d$", "", name)
            text = f"The rows are in the order of {column!r} ({n_times} different times)"
            yield Evidence(text, column, ("--time", column))
            return


def _time_features(facts: TableFacts) -> set[str | None]:
    """Return the features derived from the time column by which the rows are sorted.

    If folds ignore the order, a target that changes slowly seems to depend on these features.
    """
    times = [str(evidence.subject) for evidence in find_shuffled_time(facts)]
    return {
        name
        for name in map(str, facts.X.columns)
        for time in times
        if name == time or name.startswith(f"{time}: ")
    }


def find_integer_codes(facts: TableFacts) -> Iterator[Evidence]:
    """Yield integer features, or the target, that are named like codes or have no useful order."""
    if facts.task == "regression" and facts.y is not None:
        codes = list(_code_target(facts))
        yield from codes
        if codes:
            return  # the order of a feature cannot be compared with a target of codes
    groups = list(find_repeated_groups(facts))
    rows = _independent_rows(facts, groups)
    independent_share = len(rows) / max(len(facts.sampled_rows), 1)
    candidates = _possible_codes(facts, independent_share)
    possible = []
    subjects = {evidence.subject for evidence in groups}
    for name, n_values in candidates.items():
        if name in subjects:
            continue
        if is_code_name(name):
            text = f"{name!r} has {n_values} different integers and is named like a code"
            yield Evidence(text, name, ("--category", name))
        elif facts.y is not None and not (is_time_name(name) or is_calendar_name(name)):
            values = facts.numeric_features[name]
            if are_spaced_like_codes(np.unique(values[~np.isnan(values)])):
                possible.append(name)
    for name in possible:
        measures = _measure_order(facts, name, rows)
        if measures.is_arbitrary(len(possible)) and _is_arbitrary_by_category(facts, name, rows):
            yield Evidence(
                f"{name!r} holds {candidates[name]} different integers, and {facts.target_name!r} "
                "depends on each of them rather than on their order (ranges or a curve explain "
                f"{percentage(max(measures.smooth_share, 0.0))} of the variance that the integers "
                "explain)",
                name,
                ("--category", name),
            )


def _possible_codes(facts: TableFacts, independent_share: float) -> dict[str, int]:
    """Return the number of values of integer features with several independent rows per value."""
    candidates = {}
    for name, values in facts.numeric_features.items():
        present = values[~np.isnan(values)]
        if not len(present) or (present != np.floor(present)).any():
            continue
        n_values = len(np.unique(present))
        n_independent = independent_share * len(present)
        if n_values >= _MIN_CODES and n_values * _MIN_ROWS_PER_CODE <= n_independent:
            candidates[name] = n_values
    return candidates


def _is_arbitrary_by_category(facts: TableFacts, name: str, rows: np.ndarray) -> bool:
    """Return whether codes still look arbitrary in a sample with one row per category.

    Any other categorical column may identify subjects, whose rows resemble each other.
    """
    n_values = len(np.unique(facts.numeric_features[name][rows]))
    for _, column in facts.X.select_dtypes(exclude="number").iloc[rows].items():
        single = rows[(~column.duplicated() | column.isna()).to_numpy()]
        is_testable = len(single) >= max(_MIN_ROWS, n_values * _MIN_ROWS_PER_CODE)
        if is_testable and not _measure_order(facts, name, single).is_arbitrary():
            return False
    return True


def _independent_rows(facts: TableFacts, repeated_groups: Sequence[Evidence]) -> np.ndarray:
    """Return one of the sampled rows for each group or repeated identifier.

    With several rows of a subject, the target would seem to depend on whatever identifies it.
    """
    rows = facts.sampled_rows
    subjects = [] if facts.groups is None else [pd.Series(np.ravel(np.asarray(facts.groups)))]
    columns = {str(name): column for name, column in facts.X.items()}
    columns |= {name: column for name, column, _ in _identifier_columns(facts)}
    subjects += [columns[str(evidence.subject)] for evidence in repeated_groups]
    for column in subjects:
        labels = column.iloc[rows]
        rows = rows[(~labels.duplicated() | labels.isna()).to_numpy()]
    return rows


def _measure_order(facts: TableFacts, name: str, rows: np.ndarray) -> OrderMeasures:
    """Measure whether the target depends on an integer feature, and on its order."""
    assert facts.y is not None
    values = facts.numeric_features[name]
    target = facts.y.to_numpy()[rows]
    if facts.task == "regression":
        return measure_order(values[rows], [target.astype(float)])
    labels = pd.Series(target).value_counts().index[:_MAX_CLASSES]
    return measure_order(values[rows], [(target == label).astype(float) for label in labels])


def _code_target(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the target of a regression if its integers are probably codes."""
    assert facts.y is not None
    values = facts.y.to_numpy(float)
    is_whole = np.isfinite(values).all() and (values == np.floor(values)).all()
    unique, counts = np.unique(values, return_counts=True)
    if not is_whole or len(values) < 2 * len(unique):
        return
    name = facts.target_name
    text = f"The target {name!r} has {len(unique)} different integers and is read as a quantity"
    is_sequence = unique[0] in (0, 1) and len(unique) >= _TARGET_DENSITY * (np.ptp(unique) + 1)
    is_nominal = is_sequence and (_is_even(counts) or _has_groups(facts, values))
    if is_code_name(name) or (is_nominal and not _has_trend(facts, values)):
        yield Evidence(text, name, ("--task", "classification"))


def _is_even(counts: np.ndarray) -> bool:
    """Return whether values have similar numbers of rows, without a smooth trend."""
    sizes = counts.astype(float)
    is_rough = len(sizes) > 2 and _rank_correlation(sizes[1:], sizes[:-1]) < 0.3
    return is_rough and bool(sizes.max() <= 4 * np.median(sizes))


def _has_groups(facts: TableFacts, values: np.ndarray) -> bool:
    """Return whether a feature depends on the target's values, and no feature on their order."""
    rows = facts.sampled_rows
    measures = [
        measure_order(values[rows], [feature[rows]])
        for feature in facts.numeric_features.values()
        if not np.isnan(feature).any()
    ]
    return any(m.is_arbitrary() for m in measures) and not any(m.is_ordered for m in measures)


def _has_trend(facts: TableFacts, values: np.ndarray) -> bool:
    """Return whether a feature rises or falls with the target."""
    return any(
        abs(_rank_correlation(column, values)) >= _TREND
        for column in facts.numeric_features.values()
    )


def _rank_correlation(values: np.ndarray, target: np.ndarray) -> float:
    is_known = ~np.isnan(values)
    ranks, target_ranks = (pd.Series(column[is_known]).rank() for column in (values, target))
    if ranks.nunique() < 2 or target_ranks.nunique() < 2:
        return 0.0
    return float(ranks.corr(target_ranks))


def find_class_names(facts: TableFacts) -> Iterator[Evidence]:
    """Yield pairs of class names with almost the same spelling."""
    if facts.y is None or facts.task != "classification":
        return
    counts = facts.y.astype(str).value_counts()
    similar = similar_class_names(facts.y)
    pairs = [
        f"{rare!r} ({plural(int(counts[rare]), 'row')}) and {frequent!r} ({int(counts[frequent])})"
        for rare, frequent in similar.items()
    ]
    # The option --labels is a list of pairs, in which leading and trailing blanks are ignored.
    is_writable = all(
        not set(',="') & set(rare + frequent)
        and (rare, frequent) == (rare.lstrip(), frequent.rstrip())
        for rare, frequent in similar.items()
    )
    label_pairs = ",".join(f"{rare}={frequent}" for rare, frequent in similar.items())
    if pairs:
        suffix = f" and {len(pairs) - _MAX_LISTED} more" if len(pairs) > _MAX_LISTED else ""
        texts = ", ".join(pairs[:_MAX_LISTED])
        yield Evidence(
            f"Classes of {facts.target_name!r} have nearly the same names: {texts}{suffix}",
            options=("--labels", label_pairs) if is_writable and label_pairs[0] != "-" else (),
        )


def similar_class_names(y: pd.Series) -> dict[str, str]:
    """Return rare classes that are probably misspelled, each with the frequent class it resembles.

    Parameters
    ----------
    y : Series of shape (n_rows,)
        Class of each row.

    Returns
    -------
    dict of str to str
        Frequent class by rare class. Empty for numeric classes and for more than 200 classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.suspicions import similar_class_names
    >>> similar_class_names(pd.Series(["benign"] * 9 + ["malignant"] * 5 + ["Benign"]))
    {'Benign': 'benign'}
    """
    counts = y.astype(str).value_counts()
    if len(counts) > 200 or pd.api.types.is_numeric_dtype(y.dtype):
        return {}
    names: dict[str, str] = {}
    for position, rare in enumerate(counts.index):
        for frequent in counts.index[:position]:
            is_same = _normalize_name(rare) == _normalize_name(frequent)
            is_typo = counts[rare] <= _TYPO_SHARE * len(y) and _is_typo(rare, frequent)
            if is_same or (is_typo and 5 * counts[rare] <= counts[frequent]):
                names.setdefault(rare, frequent)
    return names


def _normalize_name(name: str) -> str:
    """Return a name in lower case without blanks and punctuation."""
    letters = re.sub(r"[\s_.,;:'\"-]+", "", name.casefold())
    return letters or name


def _is_typo(name: str, other: str) -> bool:
    """Return whether two long names differ by one insertion, deletion, substitution or swap."""
    name, other = sorted((name.casefold(), other.casefold()), key=len)
    if len(name) < _MIN_TYPO_LENGTH or len(other) - len(name) > 1:
        return False
    start = 0
    while start < len(name) and name[start] == other[start]:
        start += 1
    name_end, other_end = name[start:], other[start:]
    changed_letters = name_end[:1] + other_end[:1]
    if re.search(r"\d", changed_letters):
        return False
    is_moved = (
        len(name) == len(other)
        and name_end[:2] == other_end[:2][::-1]
        and name_end[2:] == other_end[2:]
    )
    is_longer = len(other) > len(name) and name_end == other_end[1:]
    return is_moved or is_longer or (len(name) == len(other) and name_end[1:] == other_end[1:])


def find_few_rows(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the number of rows if it is too small for meaningful figures."""
    if len(facts.X) < _FEW_ROWS:
        text = f"The table has only {_uncertainty(len(facts.X))}"
        yield Evidence(text, options=("--repeats", "10"))


def find_few_test_rows(facts: TableFacts) -> Iterator[Evidence]:
    """Yield the number of test rows if it is too small for meaningful figures."""
    if facts.test is not None and len(facts.test) < _FEW_ROWS:
        yield Evidence(f"The test set has only {_uncertainty(len(facts.test))}", omitted="--test")


def _uncertainty(n_rows: int) -> str:
    """Describe a number of rows and the half-width of a 95 % interval of a share of them."""
    margin = min(98 / np.sqrt(max(n_rows, 1)), 100)
    return (
        f"{plural(n_rows, 'row')}, so shares of them are uncertain by up to ± {margin:.0f} "
        "percentage points"
    )
