"""A model behind a command: rows go in as CSV, predictions come out line by line."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._processes import own_environment


class CommandFunction:
    """A function that pipes rows to a command and reads its predictions.

    Wrap it in :class:`CallableClassifier` or :class:`CallableRegressor` to explain a model of
    another language or machine.

    Parameters
    ----------
    command : str or sequence of str
        The command and its arguments. It is run as it is, without a shell. It reads CSV with a
        header from its standard input, a missing value being an empty cell, and writes one
        prediction per row to its standard output, line by line; a first line more is a header.
    timeout : float, optional
        Seconds after which a call is given up.

    Raises
    ------
    ValueError
        When called, if the command fails, takes too long, or does not predict every row.

    Examples
    --------
    >>> import sys
    >>> program = "import sys; [print(float(row) > 1) for row in [*sys.stdin][1:]]"
    >>> CommandFunction([sys.executable, "-c", program])([[0.5], [2.0]]).tolist()
    ['False', 'True']
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float | None = None) -> None:
        self.command = command
        self.timeout = timeout

    def __call__(self, X: Any) -> np.ndarray:
        """Predict rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers where all predictions are numbers, else text.
        """
        if isinstance(X, pd.DataFrame):
            rows = X
        elif hasattr(X, "columns"):  # of polars
            rows = pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
        else:
            array = np.asarray(X)
            rows = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        given = self.command
        parts = shlex.split(given) if isinstance(given, str) else [str(part) for part in given]
        try:
            done = subprocess.run(
                parts,
                input=rows.to_csv(index=False),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=self.timeout,
                check=False,
                env=own_environment(),
            )
        except (OSError, IndexError) as error:
            raise ValueError(
                f"The command {given!r} cannot be run ({error}). Pass a program that is there and "
                "its arguments."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ValueError(
                f"The command {given!r} gave no predictions for {len(rows)} rows within "
                f"{self.timeout} seconds. Raise timeout, or lower the extractor's batch_size."
            ) from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise ValueError(
                f"The command {given!r} failed with status {done.returncode}"
                f"{': ' + said[-1] if said else ''}. Run it by hand on a CSV file to see why."
            )
        lines = [row[0].strip() for row in csv.reader(io.StringIO(done.stdout)) if row]
        if len(lines) == len(rows) + 1:
            lines = lines[1:]
        if len(lines) != len(rows):
            raise ValueError(
                f"The command {given!r} gave {len(lines)} lines for {len(rows)} rows. It must "
                "write one prediction per row, each on a line of its own, and nothing else."
            )
        return _values(lines)

    def __repr__(self) -> str:
        return f"CommandFunction({self.command!r})"


def _values(lines: Sequence[str]) -> np.ndarray:
    """Read predictions: whole numbers, numbers, or text."""
    for kind in (int, float):
        try:
            return np.array([kind(line) for line in lines])
        except ValueError:
            continue
    return np.array(lines, dtype=object)
