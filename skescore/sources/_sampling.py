"""Some of the rows that lie elsewhere, for what needs rows, and what they can have missed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import check_choice, check_integer, check_number, python_value
from skescore.sources._histograms import MOST_VALUES
from skescore.sources._reading import SourceReading
from skescore.sources._tables import SourceError

__all__ = ["SourceSample", "sample_source"]


@dataclass(frozen=True)
class SourceSample:
    """Some rows of a source, drawn class by class without replacement.

    Attributes
    ----------
    frame : DataFrame
        The rows: features, target, and the column of weights if there is one.
    n_rows : int
        All rows of the source.
    strata : dict
        Of each class, how many rows were drawn and how many there are; of numbers, all are one
        stratum, called None.
    weights : ndarray of float or None
        How many rows of the source each stands for, times its own weight; None where all stand for
        equally many.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.sources import sample_source
    >>> rows = pd.DataFrame({"length": range(1000), "size": ["small"] * 900 + ["large"] * 100})
    >>> sample = sample_source(rows, "size", n_rows=400)
    >>> sample.strata, sample.n_rows
    ({'large': (100, 100), 'small': (360, 900)}, 1000)
    >>> {label: round(share, 4) for label, share in sample.missed().items()}
    {'large': 0.0, 'small': 0.0083}
    """

    frame: pd.DataFrame
    n_rows: int
    strata: Mapping[Any, tuple[int, int]]
    weights: NDArray[np.float64] | None

    def missed(self, confidence: float = 0.95) -> dict[Any, float]:
        r"""Bound what the sample can have missed.

        Parameters
        ----------
        confidence : float, default=0.95
            How sure the bound is.

        Returns
        -------
        dict of float
            Of each class the share :math:`m` of its rows such that of any group that makes up more
            than :math:`m`, at least one row was drawn with this confidence.

        Notes
        -----
        The bound of Clopper and Pearson for no success in :math:`n` draws,
        :math:`m = 1 - (1 - \text{confidence})^{1 / n}`, which drawing without replacement can but
        improve; 0 where all rows were drawn. It holds for a group that was named before the rows
        were looked at, such as the rows where a rule would have been needed.
        """
        check_number("confidence", confidence, 0.0, 1.0)
        return {
            label: 0.0 if drawn == there else float(1 - (1 - confidence) ** (1 / max(drawn, 1)))
            for label, (drawn, there) in self.strata.items()
        }


def sample_source(
    source: Any,
    target: str,
    *,
    n_rows: int = 20_000,
    task: str = "classification",
    features: Any = None,
    sample_weight: str | None = None,
    least_per_class: int = 100,
    random_state: int = 0,
    batch_size: int = 1 << 17,
    memory: str | None = None,
) -> SourceSample:
    """Draw rows of a source that lies elsewhere, class by class.

    Classes have their share of the rows, but rare ones `least_per_class`, if there are so many and
    `n_rows` allows it.

    Parameters
    ----------
    source : str, path, frame, dataset or batches
        As for :func:`count_source`; an iterator of batches cannot be gone through again.
    target : str
        The column of labels.
    n_rows : int, default=20000
        About how many rows to draw.
    task : {"classification", "regression"}, default="classification"
        Whether labels are classes; numbers are drawn alike.
    features : sequence of str, optional
        The columns to read beside the target; by default all.
    sample_weight : str, optional
        The column of weights; rows of weight 0 are none.
    least_per_class : int, default=100
        Rows that a rare class has, if there are so many; 0 leaves every class its share.
    random_state : int, default=0
        Decides which rows are drawn. Where a database other than DuckDB and PostgreSQL draws them,
        it does so in its own way.
    batch_size : int, default=131072
        Rows of a batch, of sources that are read batch by batch; other batches give other rows.
    memory : str, optional
        How much memory DuckDB may take for Parquet files.

    Returns
    -------
    SourceSample
        The rows, and how many there are.

    Raises
    ------
    SourceError
        If rows cannot be reached or lack labels.
    ValueError
        If a column or a parameter cannot be used.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.sources import sample_source
    >>> day = pd.DataFrame({"length": range(500), "price": range(500)})
    >>> sample = sample_source([day, day], "price", n_rows=100, task="regression")
    >>> len(sample.frame), list(sample.frame.columns), sample.strata
    (100, ['length', 'price'], {None: (100, 1000)})
    """
    check_integer("n_rows", n_rows, 1)
    check_integer("least_per_class", least_per_class, 0)
    check_integer("random_state", random_state, 0)
    check_choice("task", task, ("classification", "regression"))
    reading = SourceReading(source, target, sample_weight, None, batch_size, memory)
    with reading.opened(features) as (rows, _):
        found = rows(task)
        counts = dict(sorted(found.counts().items(), key=lambda pair: str(pair[0])))
        total = sum(counts.values())
        if not total:
            raise SourceError(f"{found.name} must hold at least one row, got none.")
        if len(counts) > MOST_VALUES:
            raise ValueError(
                f"The target of {found.name} must hold at most {MOST_VALUES} classes, but it holds "
                "more. Pass task='regression' if they are numbers to be predicted."
            )
        least = min(least_per_class, n_rows // (2 * len(counts)))
        wanted = {
            label: min(there, max(round(n_rows * there / total), least, 1))
            for label, there in counts.items()
        }
        # A few more, of which some are left out: as many rows are drawn as are wanted.
        chances = {
            label: min(1.0, (some + 5 * math.sqrt(some) + 10) / counts[label])
            for label, some in wanted.items()
        }
        drawn = found.draw(chances, random_state)
    stratum = np.zeros(len(drawn), dtype=np.intp)
    if task == "classification":
        labels = drawn[target].astype(object).map(python_value)
        stratum = pd.Index(list(counts), dtype=object).get_indexer(labels)
    order = np.random.default_rng(random_state).permutation(len(drawn))
    kept = [order[stratum[order] == place][:some] for place, some in enumerate(wanted.values())]
    if any(
        chances[label] == 1 and len(rows) < wanted[label]
        for label, rows in zip(wanted, kept, strict=True)
    ):
        raise SourceError(
            f"{found.name} changed while it was read. Read a table at rest, or a snapshot."
        )
    chosen = np.sort(np.concatenate(kept))
    frame, stratum = drawn.iloc[chosen].reset_index(drop=True), stratum[chosen]
    strata = {
        label: (len(rows), there) for rows, (label, there) in zip(kept, counts.items(), strict=True)
    }
    stands_for = np.array([there / max(some, 1) for some, there in strata.values()])
    weights = None
    uneven = len(strata) > 1 and least_per_class > 0
    if sample_weight is not None or (uneven and stands_for.max() > 1.05 * stands_for.min()):
        weights = stands_for[stratum]
        if sample_weight is not None:
            weights = weights * frame[sample_weight].to_numpy(dtype=float)
    return SourceSample(frame, total, strata, weights)
