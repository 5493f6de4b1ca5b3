"""Plausibility: agreement of attributions with human rationales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._validation import check_choice, check_integer
from skescore.metrics.attribution._inputs import open_attributions, scores_for_targets
from skescore.metrics.attribution._maps import align_features, descending

__all__ = ["PLAUSIBILITY", "plausibility"]

Floats = NDArray[np.float64]
PLAUSIBILITY = ("token_iou", "token_f1", "auprc", "average_precision")
_COUNTED = ("token_iou", "token_f1")


def plausibility(
    attributions: Any,
    rationales: Any,
    *,
    top_k: int | str = 5,
    only_positive: bool = True,
    measures: Sequence[str] | None = None,
    target: Any = None,
    empty: str = "nan",
    average: str | None = None,
) -> Any:
    r"""Measure how well attributions agree with human rationales.

    Use it if people marked the tokens or features that should matter. A plausible explanation may
    still be unfaithful to the model, which :func:`faithfulness` measures.

    Parameters
    ----------
    attributions : array-like, DataFrame, tensor or explanation
        One number for each token or feature of each row, as in :func:`faithfulness`. Explanations
        of texts by shap and LIME have their own tokens, which the rationales must mark; LIME's
        weight of a word applies to all its occurrences.
    rationales : array-like of shape (n_rows, n_features) or list of rows
        1 for each token or feature that people marked, else 0. Columns of two DataFrames are
        aligned by name.
    top_k : int or "mean", default=5
        Number of tokens with the highest scores in the discrete explanation. ``"mean"`` is the
        average length of the rationales, rounded, at least 1.
    only_positive : bool, default=True
        Whether the discrete explanation excludes scores of 0 or less, which count as 0 in curves.
    measures : sequence of str, default=None
        Names of measures, see the Notes; by default the first three, or the first two with
        ``average="micro"``.
    target : int or array-like of shape (n_rows,), default=None
        Column of the class, for attributions with one value per class.
    empty : {"nan", "ferret"}, default="nan"
        Value of ``auprc`` if nothing is marked: NaN, or 0.5 as in ferret.
    average : {"macro", "micro"}, default=None
        Return single numbers: ``"macro"`` is the mean over the rows, ignoring NaN, and ``"micro"``
        the measures of the summed counts of all rows. By default, one value per row.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        The measures, from 0 to 1; greater is better. Floats with `average`.

    Raises
    ------
    ValueError
        If the rows do not match, rationales are not 0 or 1, or an option is unknown.
    TypeError
        If attributions or rationales are not numbers.

    Notes
    -----
    With :math:`e` the discrete explanation and :math:`h` the rationale

    * ``token_iou`` is :math:`|e \cap h| / |e \cup h|`, and ``token_f1`` the harmonic mean of
      :math:`|e \cap h| / |e|` and :math:`|e \cap h| / |h|`; both are 0 if either set is empty;
    * ``auprc`` is the area under the precision-recall curve by the trapezoidal rule, as in ERASER
      and ferret, which is optimistic; ``average_precision`` sums steps instead.

    Of equal scores, the later token ranks first. ERASER uses the average length of all rationales
    of a data set as `top_k`.

    References
    ----------
    J. DeYoung et al.: ERASER: A benchmark to evaluate rationalized NLP models. ACL 2020.

    Examples
    --------
    >>> from skescore.metrics.attribution import plausibility
    >>> measures = plausibility([[0.9, 0.1, 0.5, -0.3]], [[1, 0, 0, 1]], top_k=2)
    >>> {name: values.round(3).tolist() for name, values in measures.items()}
    {'token_iou': [0.333], 'token_f1': [0.5], 'auprc': [0.708]}
    >>> plausibility([[0.9, 0.1, 0.5, -0.3]], [[1, 0, 0, 1]], top_k=2, average="micro")
    {'token_iou': 0.3333333333333333, 'token_f1': 0.5}
    """
    check_choice("empty", empty, ("nan", "ferret"))
    if average is not None:
        check_choice("average", average, ("macro", "micro"))
    names = _check_measures(measures, average)
    marks = _marks(align_features("rationales", rationales, "attributions", attributions))
    explained = open_attributions(attributions, len(marks))
    pieces = explained.pieces
    sizes = [len(row.units) for row in pieces] if pieces else [len(row) for row in marks]
    targets, n_columns = _targets(explained, target, len(marks))
    rows = scores_for_targets(
        explained, sizes, targets, n_columns, explained_columns=None, is_target_chosen=True, X=None
    )
    # LIME has one weight for all occurrences of a word, but marks are per occurrence.
    rows = [explained.by_occurrence(number, row) for number, row in enumerate(rows)]
    for number, (row, human) in enumerate(zip(rows, marks, strict=True)):
        if len(row) != len(human):
            raise ValueError(
                f"rationales must have one mark per token, but row {number} has {len(human)} for "
                f"the {len(row)} tokens of its explanation. Mark the tokens of the explainer."
            )
    k = _check_top_k(top_k, marks)

    counts = np.zeros((len(marks), 3))  # sizes of intersection, explanation and rationale
    areas = {name: np.full(len(marks), np.nan) for name in ("auprc", "average_precision")}
    for number, (scores, human) in enumerate(zip(rows, marks, strict=True)):
        top = descending(scores)[:k]
        if only_positive:
            top = top[scores[top] > 0]
        counts[number] = human[top].sum(), len(top), human.sum()
        if set(names) & set(areas):
            ranked = np.maximum(scores, 0.0) if only_positive else scores
            row_areas = _areas(ranked, human, 0.5 if empty == "ferret" else np.nan)
            areas["auprc"][number], areas["average_precision"][number] = row_areas
    if average == "micro":
        totals = _overlap(counts.sum(axis=0, keepdims=True))
        return {name: float(totals[name][0]) for name in names}
    values = {**_overlap(counts), **areas}
    if average == "macro":
        return {name: _mean(values[name]) for name in names}
    return {name: values[name] for name in names}


def _overlap(counts: Floats) -> dict[str, Floats]:
    shared, explained, human = counts.T
    iou, f1 = np.zeros(len(counts)), np.zeros(len(counts))
    np.divide(shared, explained + human - shared, out=iou, where=shared > 0)
    np.divide(2 * shared, explained + human, out=f1, where=shared > 0)
    return {"token_iou": iou, "token_f1": f1}


def _areas(scores: Floats, human: NDArray[np.bool_], value_of_empty: float) -> tuple[float, float]:
    """Return the areas under the precision-recall curve by the trapezoidal rule and by steps."""
    total = int(human.sum())
    if not total:
        return value_of_empty, np.nan
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(human[order])[ends]
    precision = np.concatenate([[1.0], hits / (ends + 1)])
    recall = np.concatenate([[0.0], hits / total])
    steps = np.diff(recall)
    trapezoids = float((steps * (precision[1:] + precision[:-1]) / 2).sum())
    return trapezoids, float((steps * precision[1:]).sum())


def _mean(values: Floats) -> float:
    observed_values = values[~np.isnan(values)]
    return float(observed_values.mean()) if len(observed_values) else np.nan


def _check_measures(measures: Sequence[str] | None, average: str | None) -> list[str]:
    if measures is None:
        return list(_COUNTED if average == "micro" else PLAUSIBILITY[:3])
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        check_choice("measures", name, PLAUSIBILITY)
        if average == "micro" and name not in _COUNTED:
            raise ValueError(
                f"measures with average='micro' must be based on counts, got {name!r}. Use only "
                "token_iou and token_f1, or average='macro'."
            )
    if not names:
        raise ValueError("measures must name at least one measure, got none.")
    return list(dict.fromkeys(names))


def _marks(rationales: Any) -> list[NDArray[np.bool_]]:
    is_polars = hasattr(rationales, "get_column")  # which iterates over columns
    values = rationales.to_numpy() if is_polars else getattr(rationales, "values", rationales)
    if (
        isinstance(values, (str, dict))
        or values is None
        or callable(values)
        or not np.ndim(np.empty(0) if isinstance(values, (list, tuple)) else values)
    ):
        raise TypeError(
            f"rationales must be rows of 0 and 1, got {type(rationales).__name__}. Pass one row "
            "for each row of attributions."
        )
    marks = []
    for number, row in enumerate(values):
        array = np.asarray(row)
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "biuf"):
            raise ValueError(
                f"rationales must hold a row of 0 and 1 for each row, got {row!r:.80} in row "
                f"{number}. Mark each token with 0 or 1."
            )
        if not np.isin(array, (0, 1)).all():
            raise ValueError(
                f"rationales must be 0 or 1, got {array[~np.isin(array, (0, 1))][0].item()!r} in "
                f"row {number}. Threshold other marks first."
            )
        marks.append(array.astype(bool))
    return marks


def _check_top_k(top_k: Any, marks: list[NDArray[np.bool_]]) -> int:
    if isinstance(top_k, str) and top_k == "mean":
        lengths = [int(row.sum()) for row in marks]
        return max(1, int(np.floor(np.mean(lengths) + 0.5))) if lengths else 1
    remedy = "Alternatively, pass 'mean' for the average length of the rationales."
    return check_integer("top_k", top_k, 1, remedy=remedy)


def _targets(explained: Any, target: Any, n_rows: int) -> tuple[NDArray[np.intp], int]:
    """Return the target column of each row, and the number of classes."""
    if explained.weights is not None:
        labels = {label for weights in explained.weights for label in weights}
        common = set.intersection(*(set(weights) for weights in explained.weights), labels)
        if target is None and not explained.explains_numbers:
            if len(common) != 1 or len(labels) != 1:
                raise ValueError(
                    f"target must be given, as LIME explains the classes {sorted(labels)}."
                )
            target = common.pop()
        n_columns = max(2, max(labels, default=0) + 1)
    elif explained.per_class:
        if target is None:
            raise ValueError(
                "target must not be None, because the attributions have one value per class. Pass "
                "the column of the class that the rationales support."
            )
        n_columns = max(row.shape[1] for row in explained.rows if row.ndim == 2)
    else:
        if target is not None:
            raise ValueError(
                f"target must be None, because the attributions do not have one value per class; "
                f"got {target!r}. Omit it."
            )
        return np.zeros(n_rows, dtype=np.intp), 1
    columns = np.asarray(0 if target is None else target)
    fits = columns.dtype.kind in "iu" and columns.shape in ((), (n_rows,))
    if not fits or columns.min() < 0 or columns.max() >= n_columns:
        raise ValueError(
            f"target must be a column from 0 to {n_columns - 1}, or one for each row, got "
            f"{target!r}."
        )
    return np.broadcast_to(columns, (n_rows,)).astype(np.intp), n_columns
