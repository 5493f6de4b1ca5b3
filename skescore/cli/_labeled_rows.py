"""Tables with labels of the type that rules predict."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from skescore._names import BUILT_IN, DATA_SET_TASKS
from skescore._text import listed
from skescore.cli._rule_files import as_text, preparation_of, read_table

if TYPE_CHECKING:
    import pandas as pd

    from skescore.datasets import Preparation
    from skescore.rules import RuleSet

__all__ = ["find_column", "raw_table", "read_labels"]

#: So many labels of which none is a class are a mistake.
_MIN_LABELS = 5


def raw_table(options: argparse.Namespace, ruleset: RuleSet, data: str) -> pd.DataFrame:
    """Return all columns of `data` as they are stored, also the target of a built-in data set.

    Words such as NA are missing values unless the rules have a class of this name.
    """
    if data not in DATA_SET_TASKS:
        labels = preparation_of(options.rules, ruleset).labels
        is_padded = any(re.fullmatch(r"0\d+", str(label)) for label in ruleset.classes or ())
        return read_table(data, options, labels, keeps_zeros=is_padded)
    from skescore.datasets import load_dataset

    dataset = load_dataset(data)
    return dataset.X.assign(**{str(BUILT_IN[data].target): dataset.y})


def find_column(table: pd.DataFrame, name: str, data_name: str) -> pd.Series:
    """Return a column of a table; raise a ValueError that lists its columns without it."""
    if name not in table.columns:
        raise ValueError(
            f"{data_name} has no column {name!r}; its columns are {listed(list(table))}."
        )
    return table[name]


def read_labels(ruleset: RuleSet, column: pd.Series, preparation: Preparation) -> Any:
    """Convert a column to the type of the rules' classes; missing labels become None.

    In a regression, labels are numbers, and missing ones are NaN.
    """
    import pandas as pd

    if ruleset.classes is None:
        return preparation.read_target(column).to_numpy(dtype=float, na_value=float("nan"))
    labels: Any = column.astype(object).where(column.notna(), None).to_numpy(dtype=object)
    if all(isinstance(label, str) for label in ruleset.classes):
        texts = as_text(column)
        names = preparation.labels
        labels = texts.map(lambda text: names.get(text, text)).to_numpy(dtype=object)
    unknown = set(labels[pd.notna(labels)]) - set(ruleset.classes)
    n_known = int(pd.Series(labels, dtype=object).isin(list(ruleset.classes)).sum())
    if unknown and not n_known and pd.notna(labels).sum() >= _MIN_LABELS:
        raise ValueError(
            f"No label in column {column.name!r} is a class of the rules: it holds "
            f"{listed(sorted(map(str, unknown)))}, and the classes are "
            f"{listed(list(map(str, ruleset.classes)))}. Name another column, or convert the "
            "labels."
        )
    return labels
