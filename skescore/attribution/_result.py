"""Attributions returned by explainers: values, witnesses and numbers of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore._validation import check_choice, check_integer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Attribution"]

_KINDS = ("bar", "heatmap")
#: Default number of features on a plot.
_MAX_COLUMNS = 30
#: Maximum number of rows and of columns with numbers written in the cells.
_WRITTEN = 20
_BAR, _OPEN_BAR = "#4477aa", "#bbccdd"


@dataclass(frozen=True, eq=False)
class Attribution:
    """Attributions of a model's predictions with their witnesses.

    ``np.asarray(attribution)`` returns `values`. Created by `BReX.explain`.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows, n_features)
        Degrees of responsibility, from 0 to 1.
    feature_names : tuple of str
        Names of the columns.
    queries : ndarray of int, shape (n_rows,)
        Number of distinct queries about each row: masks, or flips with ``masking="sampled"``,
        including the unchanged row. For a table that serves all rows, the size of the table.
    n_model_rows : int
        Total number of rows that the model predicted.
    witnesses : tuple of tuples, or None
        For each row and feature, the other features that were masked when it changed the decision,
        or None if it never did. None for presets that average over passes.
    resolved : ndarray of bool, shape (n_rows, n_features)
        Whether the predictions prove the value, for this kind of masking: Kleene logic may return
        Unassigned for a formula with repeated variables although all completions agree.
    upper : ndarray of float, shape (n_rows, n_features)
        Upper bounds on the responsibilities that the predictions prove.
    exhausted : ndarray of bool, shape (n_rows,)
        Whether `max_queries` ended the search.
    masking : str
        How features were masked.

    Examples
    --------
    >>> from skescore.attribution import BReX, Formula
    >>> result = BReX(Formula.parse("x1 & (x2 | x3)"), random_state=0).explain([[1, 1, 1]])
    >>> result.to_frame()
        x1   x2   x3
    0  1.0  0.5  0.5
    >>> result.witnesses[0]
    ((), (2,), (1,))
    """

    values: NDArray[np.float64]
    feature_names: tuple[str, ...]
    queries: NDArray[np.int64]
    n_model_rows: int
    witnesses: tuple[Any, ...] | None
    resolved: NDArray[np.bool_]
    upper: NDArray[np.float64]
    exhausted: NDArray[np.bool_]
    masking: str

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return self.values.shape[0], self.values.shape[1]

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and dtype not in (None, self.values.dtype):
            raise ValueError(f"copy=False cannot convert float64 to {dtype!r}. Omit copy.")
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __repr__(self) -> str:
        n_rows, n_features = self.shape
        return (
            f"<Attribution of {n_rows} rows, {n_features} features, {self.masking}: "
            f"{self.queries.mean() if n_rows else 0:.4g} queries per row, "
            f"{self.resolved.mean() if self.resolved.size else 1:.0%} of values proven>"
        )

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return the values as a table.

        Parameters
        ----------
        index : sequence, optional
            Labels of the rows; by default numbers from 0.

        Returns
        -------
        pandas.DataFrame
            One row per explained row, one column per feature.
        """
        import pandas as pd

        return pd.DataFrame(self.values, columns=list(self.feature_names), index=index)

    def plot(
        self,
        kind: str | None = None,
        *,
        row: int | None = None,
        max_features: int = _MAX_COLUMNS,
        ax: Any = None,
    ) -> Any:
        """Plot the values.

        Parameters
        ----------
        kind : {"bar", "heatmap"}, optional
            Bars of one row or of the mean over rows, or a heat map of all rows and features. By
            default bars for a single row and a heat map for several rows.
        row : int, optional
            Row to show as bars; by default the mean over rows.
        max_features : int, default=30
            Maximum number of features to show, those with the largest mean.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            Axes of the plot. Pale bars are values that are not proven exact.

        Raises
        ------
        ValueError
            If there are no rows, or the kind or the row does not exist.
        ImportError
            If matplotlib is missing.
        """
        if kind is None:
            kind = "bar" if len(self) == 1 or row is not None else "heatmap"
        check_choice("kind", kind, _KINDS)
        if not len(self):
            raise ValueError("There is no row to plot. Explain at least one row.")
        check_integer(
            "row", row, -len(self), len(self) - 1, optional=True, remedy="Rows are counted from 0."
        )
        pyplot = import_optional(
            "matplotlib.pyplot", extra="plots", purpose="Drawing an attribution"
        )
        values = self.values if row is None else self.values[[row]]
        order = np.argsort(-values.mean(axis=0), kind="stable")[:max_features]
        if kind == "bar":
            return self._bars(pyplot, values, order, row, ax)
        order = np.sort(order)
        return self._cells(pyplot, values[:, order], order, row, ax)

    def _bars(self, pyplot: Any, values: Any, order: Any, row: int | None, ax: Any) -> Any:
        if ax is None:
            size = (6.4, 1.2 + 0.28 * len(order))
            ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        rows = self.resolved if row is None else self.resolved[[row]]
        proven = np.all(rows[:, order], axis=0).tolist()
        means = values[:, order].mean(axis=0)
        ax.barh(
            np.arange(len(order)),
            means,
            color=[_BAR if is_proven else _OPEN_BAR for is_proven in proven],
            edgecolor=_BAR,
        )
        ax.set_yticks(np.arange(len(order)), [self.feature_names[index] for index in order])
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        one = len(values) == 1
        ax.set_xlabel("degree of responsibility" if one else "mean degree of responsibility")
        if one:
            ax.set_title(f"Row {0 if row is None else row % len(self)}")
        else:
            ax.set_title(f"Mean over {len(values)} rows")
        return ax

    def _cells(self, pyplot: Any, values: Any, order: Any, row: int | None, ax: Any) -> Any:
        n_rows, n_columns = values.shape
        if ax is None:
            size = (2.2 + 0.42 * n_columns, 1.4 + min(0.3 * n_rows, 8.0))
            ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        image = ax.imshow(
            values, aspect="auto", cmap="viridis", vmin=0, vmax=1, interpolation="nearest"
        )
        names = [self.feature_names[index] for index in order]
        ax.set_xticks(np.arange(n_columns), names, rotation=90 if max(map(len, names)) > 4 else 0)
        if n_rows <= _WRITTEN:
            ax.set_yticks(np.arange(n_rows), [str(row)] if row is not None else range(n_rows))
        if n_rows <= _WRITTEN and n_columns <= _WRITTEN:
            for (i, j), value in np.ndenumerate(values):
                ax.text(
                    j,
                    i,
                    f"{value:.2g}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="black" if value > 0.6 else "white",
                )
        ax.set_ylabel("row")
        ax.figure.colorbar(image, ax=ax, label="degree of responsibility")
        return ax
