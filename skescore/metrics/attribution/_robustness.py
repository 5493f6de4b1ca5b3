"""Infidelity and sensitivity: attributions under random removals and for similar rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import as_pandas, check_integer, check_number, own_rows
from skescore.metrics.attribution._inputs import open_inputs
from skescore.metrics.attribution._maps import MAPS_REMEDY, dense_maps
from skescore.metrics.attribution._model import BlackBox, Target
from skescore.metrics.attribution._removal import Removal, rows_like

__all__ = ["attribution_infidelity", "attribution_sensitivity"]

Floats = NDArray[np.float64]


def attribution_infidelity(
    predict_proba: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any = None,
    target: Any = None,
    n_samples: int = 64,
    scale: bool = True,
    max_batch: int = 8192,
    random_state: int = 0,
) -> Floats:
    r"""Measure how well attributions predict the effect of random removals.

    Use it together with :func:`faithfulness`: the infidelity depends on the sizes of all scores,
    :func:`faithfulness` mainly on which features have the highest scores.

    Parameters
    ----------
    predict_proba : classifier, regressor or callable
        The black box; see :func:`faithfulness`.
    X : array-like, DataFrame, sparse matrix or texts
        The rows.
    attributions : array-like, DataFrame or explanation
        Attributions of the rows; see :func:`faithfulness`.
    removal : Removal, float, array-like, DataFrame or str, default=None
        Replacement of removed features; see :func:`faithfulness`.
    target : Target, label or int, or one for each row, default=None
        The class whose probability is measured; see :func:`faithfulness`.
    n_samples : int, default=64
        Number of random sets of features removed from each row.
    scale : bool, default=True
        Whether each map is scaled by the nonnegative factor that minimizes its error; False for
        maps in the unit of the prediction, such as Shapley values.
    max_batch : int, default=8192
        Largest number of rows per call of the model.
    random_state : int, default=0
        Seed of the random sets.

    Returns
    -------
    ndarray of shape (n_rows,)
        Mean squared errors; 0 is best. NaN for a row without removable features.

    Raises
    ------
    ValueError, TypeError
        See :func:`faithfulness`; also if `n_samples` or `random_state` is invalid.

    Notes
    -----
    :math:`\frac1n \sum_S \bigl(\beta \sum_{i \in S} \phi_i - (f(x) - f(x_{\setminus S}))\bigr)^2`
    over random sets S of uniformly distributed sizes, with the factor :math:`\beta` of `scale`.
    This is the infidelity of Yeh et al. for removals, if an attribution is the effect of removing
    a feature and not a slope.

    References
    ----------
    C.-K. Yeh et al.: On the (in)fidelity and sensitivity of explanations. NeurIPS, 2019.

    Examples
    --------
    >>> from skescore.metrics.attribution import attribution_infidelity
    >>> def model(X):
    ...     return 3.0 * X[:, 0] - X[:, 1]
    >>> X, correct, incorrect = [[1.0, 1.0, 5.0]], [[3, -1, 0]], [[0, 0, 1]]
    >>> attribution_infidelity(model, X, correct, scale=False).tolist()
    [0.0]
    >>> bool(attribution_infidelity(model, X, incorrect)[0] > 1)
    True
    """
    check_integer("n_samples", n_samples, 1)
    check_integer("max_batch", max_batch, 1)
    check_integer("random_state", random_state, 0)
    target = Target.of(target)
    if target.normalize:
        raise ValueError("normalize=True of a Target is for faithfulness. Use scale=True instead.")
    inputs = open_inputs(predict_proba, X, attributions, Removal.of(removal))
    rows, model = inputs.rows, BlackBox(inputs.model, target, max_batch)
    base = model.originals(rows)
    targets, explained_columns = target.columns(base, model.classes)
    scores_of = inputs.scores(
        targets,
        model.n_columns,
        explained_columns=explained_columns,
        is_target_chosen=target.is_chosen,
    )
    values = base[np.arange(len(rows)), targets]
    infidelities = np.full(len(rows), np.nan)
    # Chunks limit the memory of the masks.
    length = max(1, 4 * max_batch // n_samples)
    for start in range(0, len(rows), length):
        chunk = range(start, min(start + length, len(rows)))
        scores = [rows.unit_scores(row, scores_of[row]) for row in chunk]
        removed = [
            _random_sets(len(row_scores), n_samples, [random_state, row])
            for row, row_scores in zip(chunk, scores, strict=True)
        ]
        blocks = [(row, rows.parts(row, sets)) for row, sets in zip(chunk, removed, strict=True)]
        predictions = model.masked(rows, blocks, targets)
        for row, row_scores, sets, predictions_without in zip(
            chunk, scores, removed, predictions, strict=True
        ):
            if not sets.shape[1]:
                continue
            if scale:  # The optimal factor undoes this division, which avoids overflow.
                row_scores = np.ldexp(row_scores, -np.frexp(np.abs(row_scores).max())[1])
            expected, effect = sets @ row_scores, values[row] - predictions_without
            if scale:
                size = float(expected @ expected)
                expected *= max(0.0, float(expected @ effect)) / size if size > 0 else 0.0
            infidelities[row] = np.mean((expected - effect) ** 2)
    return infidelities


def _random_sets(n: int, n_sets: int, seed: list[int]) -> NDArray[np.bool_]:
    """Draw sets of random sizes from 1 to n, as rows of booleans."""
    generator = np.random.default_rng(seed)
    if not n:
        return np.zeros((n_sets, 0), dtype=np.bool_)
    sizes = generator.integers(1, n, size=n_sets, endpoint=True)
    ranks = generator.random((n_sets, n)).argsort(axis=1).argsort(axis=1)
    return ranks < sizes[:, np.newaxis]


def attribution_sensitivity(
    explainer: Callable[[Any], Any],
    X: Any,
    *,
    radius: float = 0.02,
    reference: Any = None,
    n_samples: int = 10,
    random_state: int = 0,
) -> Floats:
    r"""Measure the largest relative change of an attribution under small changes of its row.

    Use it to check whether explanations are stable. Unstable explanations cannot be trusted, even
    if they are faithful.

    Parameters
    ----------
    explainer : callable
        Function from rows to attributions, such as ``BReX(model, random_state=0).explain``.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows. Columns without numbers and missing values are not changed.
    radius : float, default=0.02
        Largest change of each number, in standard deviations of its column.
    reference : array-like or DataFrame, optional
        Rows for the standard deviations; by default `X`.
    n_samples : int, default=10
        Number of changed rows per row.
    random_state : int, default=0
        Seed of the changes.

    Returns
    -------
    ndarray of shape (n_rows,)
        Largest relative change; 0 is best. NaN for a map of zeros.

    Raises
    ------
    ValueError
        If there are no numeric columns, or a parameter is out of range.

    Notes
    -----
    :math:`\max_{x'} \lVert \phi(x') - \phi(x) \rVert_2 / \lVert \phi(x) \rVert_2` over random
    rows x' of the neighborhood, a lower bound on the maximum over the neighborhood. The
    result also depends on the model: near a decision boundary, every faithful explanation changes.

    References
    ----------
    C.-K. Yeh et al.: On the (in)fidelity and sensitivity of explanations. NeurIPS, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.metrics.attribution import attribution_sensitivity
    >>> attribution_sensitivity(lambda X: np.ones(X.shape), [[1.0, 2.0], [3.0, 4.0]]).tolist()
    [0.0, 0.0]
    """
    check_integer("n_samples", n_samples, 1)
    check_integer("random_state", random_state, 0)
    check_number("radius", radius, above=0, finite=True, remedy="0.02 is the default.")
    X = as_pandas(X)
    is_frame = isinstance(X, pd.DataFrame)
    frame = X if is_frame else pd.DataFrame(np.asarray(X))
    reference = X if reference is None else reference
    reference_frame = pd.DataFrame(
        rows_like(reference, frame if is_frame else frame.to_numpy(), "reference")
    )
    numeric = [
        j
        for j, kind in enumerate(frame.dtypes)
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
    ]
    if not numeric:
        raise ValueError("X must have a numeric column, got none.")
    numbers = frame.iloc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
    std = np.nanstd(reference_frame.iloc[:, numeric].to_numpy(dtype=float, na_value=np.nan), axis=0)
    before = _maps(explainer, X if is_frame else frame.to_numpy())
    # A power of two keeps the squares of large and small numbers in range.
    exponents = np.frexp(np.abs(before).max(axis=1, keepdims=True))[1]
    before = np.ldexp(before, -exponents)
    size = np.linalg.norm(before, axis=1)
    largest_change = np.zeros(len(before))
    for number in range(n_samples):
        generator = np.random.default_rng([random_state, number])
        perturbed = numbers + radius * std * generator.uniform(-1, 1, numbers.shape)
        if is_frame:
            columns = dict(zip(numeric, perturbed.T, strict=True))
            rows: Any = pd.concat(
                [
                    pd.Series(columns[j], index=frame.index) if j in columns else frame.iloc[:, j]
                    for j in range(frame.shape[1])
                ],
                axis=1,
            ).set_axis(frame.columns, axis=1)
        else:
            rows = perturbed
        change = np.linalg.norm(np.ldexp(_maps(explainer, rows), -exponents) - before, axis=1)
        largest_change = np.maximum(largest_change, change)
    return np.divide(largest_change, size, out=np.full(len(size), np.nan), where=size > 0)


def _maps(explainer: Callable[[Any], Any], rows: Any) -> Floats:
    maps = dense_maps("explainer(X)", explainer(own_rows(rows)), remedy=MAPS_REMEDY)
    if maps.ndim != 2 or len(maps) != len(rows):
        raise ValueError(
            f"explainer must return one attribution map for each of the {len(rows)} rows, got "
            f"shape {maps.shape!r}. Pass a function that explains several rows."
        )
    return maps
