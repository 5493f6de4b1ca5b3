"""Large tables, and the digits of scikit-learn, whose ten classes need many rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from nasty import TableRequest
from sklearn.datasets import load_digits

__all__ = ["LARGE"]


def _write_mixed_table(path: Path, n_rows: int, n_columns: int) -> TableRequest:
    """Write numeric columns, and five columns of letters; a good model is right on 8 of 10 rows."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, n_columns)).round(3)
    score = numbers[:, 0] + numbers[:, 1] * numbers[:, 2] + (numbers[:, 3] > 0.5)
    table = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(n_columns)])
    table["y"] = np.where(score + rng.normal(0, 0.5, n_rows) > 0.5, "yes", "no")
    for name in table.columns[n_columns - 5 : n_columns]:
        table[name] = rng.choice(list("abcde"), n_rows)
    table.to_csv(path, index=False)
    return TableRequest(path, "y")


def _write_tall(path: Path) -> TableRequest:
    return _write_mixed_table(path, 100_000, 60)


def _write_broad(path: Path) -> TableRequest:
    return _write_mixed_table(path, 20_000, 300)


def _write_digits(path: Path) -> TableRequest:
    data = load_digits()
    table = pd.DataFrame(data.data.astype(int), columns=[f"p{j}" for j in range(64)])
    table.assign(digit=data.target).to_csv(path, index=False)
    return TableRequest(path, "digit")


#: Functions that write the tables, by file name.
LARGE = {"tall.csv": _write_tall, "broad.csv": _write_broad, "digits.csv": _write_digits}
