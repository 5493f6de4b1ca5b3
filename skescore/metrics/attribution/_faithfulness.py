"""Faithfulness: the effect of the features with the highest attributions on the predictions.

A rationale is a set of features with the highest scores, so its length determines it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import kendalltau, rankdata

from skescore._text import short_repr
from skescore._validation import check_choice, check_integer
from skescore.metrics.attribution._inputs import Inputs, open_inputs
from skescore.metrics.attribution._maps import descending, row_correlation
from skescore.metrics.attribution._model import BlackBox, Target
from skescore.metrics.attribution._removal import Removal

__all__ = ["FAITHFULNESS", "Rationales", "RemovalCurves", "faithfulness", "removal_curves"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: Names of all measures; True if larger values are better.
FAITHFULNESS = {
    "aopc_compr": True,
    "aopc_suff": False,
    "taucorr_loo": True,
    "spearmancorr_loo": True,
    "pearsoncorr_loo": True,
    "prediction_gap_important": True,
    "prediction_gap_unimportant": False,
}
_DEFAULT_MEASURES = ("aopc_compr", "aopc_suff", "taucorr_loo")
#: Names of the details of each row.
_DETAILS = ("scores", "lengths", "without", "only", "loo")
_DEFAULT_STEPS = 10
#: Size of the masks, in bytes, above which a chunk of rows is closed.
_MASK_BYTES = 1 << 26


@dataclass(frozen=True, eq=False, repr=False)
class Rationales:
    """Sizes of the rationales, which are sets of features with the highest scores.

    Use it as `rationales` of :func:`faithfulness`.

    Parameters
    ----------
    thresholds : array-like, default=None
        Sizes of the rationales; by default 10 %, 20 %, … 100 % of the features.
    by : {"fraction", "count", "score"}, default="fraction"
        Unit of the thresholds: shares of the features, numbers of features, or scores that the
        features of the rationale exceed.
    only_positive : bool, default=True
        Whether rationales contain only features with positive scores; ignored with ``by="score"``.
    dedupe : bool, default=True
        Whether equal rationales at successive thresholds count once.

    Examples
    --------
    >>> from skescore.metrics.attribution import Rationales, faithfulness
    >>> X = [[1.0, 2.0, 3.0]]
    >>> rationales = Rationales([1, 2], by="count")
    >>> measures = faithfulness(lambda X: X.sum(axis=1), X, X, rationales=rationales)
    >>> measures["aopc_compr"].tolist()
    [4.0]
    """

    thresholds: Any = None
    by: str = "fraction"
    only_positive: bool = True
    dedupe: bool = True

    def __post_init__(self) -> None:
        check_choice("by", self.by, ("fraction", "count", "score"))
        object.__setattr__(self, "thresholds", _read_thresholds(self.thresholds, self.by))

    __repr__ = short_repr

    def lengths(self, scores: Floats) -> Sequence[int]:
        """Return the length of each rationale of a row, in the order of the thresholds.

        Parameters
        ----------
        scores : ndarray of shape (n_units,)
            Scores of the row.

        Returns
        -------
        sequence of int
            Number of features of each rationale. Empty rationales are omitted unless
            ``by="score"``.
        """
        n = len(scores)
        if self.by == "score":
            # The caller chose the thresholds, so a threshold of -1 includes negative scores.
            lengths = (scores[np.newaxis, :] > self.thresholds[:, np.newaxis]).sum(axis=1).tolist()
        else:
            if self.thresholds is None:
                # Integer division avoids rounding errors of shares such as 30 %.
                counts = [(step * n) // _DEFAULT_STEPS for step in range(1, _DEFAULT_STEPS + 1)]
            elif self.by == "fraction":
                counts = [int(count) for count in np.floor(self.thresholds * n + 1e-9)]
            else:
                counts = [min(int(count), n) for count in self.thresholds]
            max_length = int((scores > 0).sum()) if self.only_positive else n
            lengths = [min(count, max_length) for count in counts]
            lengths = [length for length in lengths if length]
        if not self.dedupe:
            return lengths
        return [length for i, length in enumerate(lengths) if not i or length != lengths[i - 1]]


def _read_thresholds(thresholds: Any, by: str) -> Floats | None:
    """Return valid thresholds as an array; None for the default thresholds."""
    if thresholds is None:
        if by == "fraction":
            return None
        raise ValueError(
            f"thresholds must be given with by={by!r}, got None. Pass, for example, [1, 2, 5] for "
            "counts, [0.1, 0.5] for scores."
        )
    try:
        array = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if by == "fraction":
        is_valid, rule = (array > 0) & (array <= 1), "numbers above 0 and at most 1"
    elif by == "count":
        is_valid, rule = (array >= 1) & (array == np.floor(array)), "integers of at least 1"
    else:
        is_valid, rule = np.ones(array.shape, dtype=bool), "finite numbers"
    if array.ndim != 1 or not len(array) or not is_valid.all() or not np.isfinite(array).all():
        raise ValueError(
            f"thresholds with by={by!r} must be a list of {rule}, got {thresholds!r}. "
            'With by="fraction", omit them for 10 %, 20 %, … 100 % of the features.'
        )
    return array


def faithfulness(
    predict_proba: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any = None,
    target: Any = None,
    measures: Sequence[str] | None = None,
    rationales: Rationales | None = None,
    max_batch: int = 8192,
    return_details: bool = False,
) -> Any:
    r"""Measure whether a model relies on the features with the highest attributions.

    Use it to compare explainers of one model if the truth is unknown. If the features with the
    highest scores are removed, the prediction should fall; if all others are removed, it should not
    change. The function accepts tables and texts, and models that predict probabilities or numbers.

    Parameters
    ----------
    predict_proba : callable, classifier or regressor
        The black box: a fitted estimator, whose ``predict_proba`` (for regressors, ``predict``) is
        called; or a function of many rows that returns one column per class, or one number per row.
    X : array-like, DataFrame, sparse matrix, or list of texts or of lists of tokens
        The explained rows.
    attributions : array-like, DataFrame, tensor or explanation
        One number for each feature or token of each row, larger for features that support the
        target: of shape (n_rows, n_features) or, per class, (n_rows, n_features, n_classes); a list
        of rows of any length for texts; a ``shap.Explanation``; one or more explanations of LIME;
        tensors of captum; an :class:`skescore.attribution.Attribution`.
    removal : Removal, float, array-like, DataFrame or str, default=None
        Replacement of a removed feature: a number, one per feature, rows of a background sample, or
        ``"delete"`` or ``"mask"`` for texts; by default 0 and ``"delete"``. A :class:`Removal` also
        supports statistics of reference rows, groups of columns and tokenizers.
    target : Target, label or int, or one for each row, default=None
        The class whose probability is measured; by default the predicted class of the row. A
        :class:`Target` also sets the explained class of the attributions, the link and the scale.
    measures : sequence of str, default=None
        Names of measures, see the Notes; by default the first three.
    rationales : Rationales, default=None
        Sizes of the rationales; by default 10 %, 20 %, … 100 % of the features.
    max_batch : int, default=8192
        Largest number of rows per call of the model.
    return_details : bool, default=False
        Also return the predictions behind the measures.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        The measures. With `return_details`, a pair of this dict and another: ``target`` and
        ``base`` (the prediction with all features), ``queries`` of each row, ``model_rows`` in
        total, and by row ``scores``, ``lengths`` of rationales, predictions ``without`` and with
        ``only`` them, and ``loo`` effects.

    Raises
    ------
    ValueError
        If attributions, rows, targets or options do not match; if predictions are not finite or are
        no probabilities; if the explained class of the attributions is ambiguous.
    TypeError
        If the model only predicts labels, or an argument has the wrong type.

    Notes
    -----
    With :math:`f` the prediction for the target, :math:`r` a rationale and :math:`x \setminus r`
    the row without it, the measures are (in parentheses, whether larger or smaller is better)

    * ``aopc_compr`` (larger), comprehensiveness: mean of :math:`f(x) - f(x \setminus r)` over the
      rationales, 0 if there are none;
    * ``aopc_suff`` (smaller), sufficiency: mean of :math:`f(x) - f(r)`; without a rationale 1
      for probabilities, and NaN for numbers, which have no worst value;
    * ``taucorr_loo`` (larger): Kendall's τ-b of the scores and :math:`f(x) - f(x \setminus i)`
      over all features i; also ``spearmancorr_loo`` and ``pearsoncorr_loo``. NaN if the scores or
      the effects are constant;
    * ``prediction_gap_important`` (larger) and ``prediction_gap_unimportant`` (smaller): means of
      :math:`|f(x) - f(x \setminus r)|` and of :math:`|f(x) - f(r)|`; NaN without a rationale.

    The rationale at 30 % of n features has the :math:`\lfloor 0.3 n \rfloor` highest scores, but
    only those that are positive. Of equal scores, the later feature ranks first. Differences of
    probabilities lie between −1 and 1. Leave-one-out effects that agree to twelve digits count as
    equal, because further digits are rounding errors.

    Each call of the model contains many rows. Each distinct removal is queried once, unless it does
    not change the row: at most 1 + 20 + n queries for a row with n features. Texts are joined from
    their tokens even for the prediction with all features; explanations of shap and LIME contain
    their own tokens. Tensors are passed to the model as arrays.

    References
    ----------
    J. DeYoung et al.: ERASER: A benchmark to evaluate rationalized NLP models. ACL 2020.
    G. Attanasio et al.: ferret: a framework for benchmarking explainers on transformers. EACL
    2023. S. Jain, B. Wallace: Attention is not explanation. NAACL 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skescore.metrics.attribution import Removal, Target, faithfulness
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> weights = model[-1].coef_[0] * model[0].transform(X[:3])
    >>> removal, target = Removal("mean", reference=X), Target(explains=1)
    >>> measures = faithfulness(model, X[:3], weights, removal=removal, target=target)
    >>> {name: values.round(2).tolist() for name, values in measures.items()}
    {'aopc_compr': [0.65, 0.49, 0.4], 'aopc_suff': [0.0, 0.0, 0.0], 'taucorr_loo': [1.0, 1.0, 1.0]}
    """
    measure_names = _check_measures(measures)
    rationales = rationales or Rationales()
    remedy = "It is the number of rows in one call of the model."
    check_integer("max_batch", max_batch, 1, remedy=remedy)
    target = Target.of(target)
    inputs = open_inputs(predict_proba, X, attributions, Removal.of(removal))
    model = BlackBox(inputs.model, target, max_batch)
    rows, n_rows = inputs.rows, len(inputs.rows)
    base = model.originals(rows)
    targets, explained_columns = target.columns(base, model.classes)
    scores_of = inputs.scores(
        targets,
        model.n_columns,
        explained_columns=explained_columns,
        is_target_chosen=target.is_chosen,
    )
    values = base[np.arange(n_rows), targets]
    scale = _scale(values, target.normalize, model)
    needs_loo = any(name.endswith("_loo") for name in measure_names)
    needs_rationales = any(not name.endswith("_loo") for name in measure_names)
    has_separate_loo = needs_loo and inputs.loo_rows is not rows

    def plan(row: int) -> Plan:
        scores = rows.unit_scores(row, scores_of[row])
        lengths = rationales.lengths(scores) if needs_rationales else []
        return _plan(rows, row, scores, lengths, needs_loo and not has_separate_loo)

    measure_values: dict[str, Floats] = {name: np.full(n_rows, np.nan) for name in measure_names}
    details: list[tuple[Any, ...]] = []
    queries = np.ones(n_rows, dtype=np.intp)
    value_of_empty = 1.0 if model.predicts_probabilities else np.nan
    for row, step, predictions, (units, loo_predictions) in _by_row(
        model, inputs, has_separate_loo, plan, targets
    ):
        row_predictions = np.append(predictions, values[row])  # Index -1 is the row itself.
        loo = np.zeros(len(step.scores))
        loo[units] = (values[row] - loo_predictions) / scale
        queries[row] += len(predictions) + (len(loo_predictions) if has_separate_loo else 0)
        without, only = row_predictions[step.without], row_predictions[step.only]
        effects = (values[row] - without) / scale, (values[row] - only) / scale
        peak = max(abs(values[row]), float(np.abs(loo_predictions).max(initial=0.0))) / scale
        for name in measure_names:
            measure_values[name][row] = _measure(
                name, step.scores, *effects, loo, peak, value_of_empty
            )
        if return_details:
            details.append((step.scores, np.array(step.lengths, dtype=np.intp), without, only, loo))
    if not return_details:
        return measure_values
    summary = {"target": targets, "base": values, "queries": queries, "model_rows": model.n_queries}
    columns = zip(*details, strict=True) if details else [()] * len(_DETAILS)
    return measure_values, summary | dict(zip(_DETAILS, map(list, columns), strict=True))


@dataclass(frozen=True, eq=False)
class RemovalCurves:
    """Predictions as features are removed or inserted in the order of their attributions.

    Parameters
    ----------
    deletion, insertion : list of ndarray of shape (n_units + 1,)
        For each row, the prediction after the 0, 1, … n features with the highest scores were
        removed from the row, or inserted into the row without features.
    deletion_area, insertion_area : ndarray of shape (n_rows,)
        Areas under the curves, with the share of the features as the axis. Smaller is better for
        deletion, larger for insertion.
    """

    deletion: list[Floats]
    insertion: list[Floats]
    deletion_area: Floats
    insertion_area: Floats

    def mean(self, n_points: int = 101) -> dict[str, Floats]:
        """Return the mean curves, interpolated at shares of the features.

        Parameters
        ----------
        n_points : int, default=101
            Number of shares from 0 to 1.

        Returns
        -------
        dict of str to ndarray of shape (n_points,)
            ``share``, ``deletion`` and ``insertion``, for instance to draw them.
        """
        check_integer("n_points", n_points, 2)
        shares = np.linspace(0.0, 1.0, n_points)
        means = {
            name: np.mean(
                [np.interp(shares, np.linspace(0.0, 1.0, len(curve)), curve) for curve in curves],
                axis=0,
            )
            for name, curves in (("deletion", self.deletion), ("insertion", self.insertion))
        }
        return {"share": shares} | means


def removal_curves(
    predict_proba: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any = None,
    target: Any = None,
    max_batch: int = 8192,
) -> RemovalCurves:
    """Compute insertion and deletion curves of attributions.

    Use it to compare explainers of one model without a choice of rationale sizes: if the features
    with the highest scores are removed first, the prediction should fall early; if they are
    inserted first, it should rise early.

    Parameters
    ----------
    predict_proba, X, attributions, removal, target, max_batch
        See :func:`faithfulness`.

    Returns
    -------
    RemovalCurves
        The curves of each row, and the areas under them.

    Raises
    ------
    ValueError, TypeError
        See :func:`faithfulness`.

    Notes
    -----
    Of equal scores, the later feature ranks first, as in :func:`faithfulness`. Areas are computed
    by the trapezoidal rule. A row with n features needs at most 1 + 2 n queries.

    References
    ----------
    V. Petsiuk, A. Das, K. Saenko: RISE: Randomized input sampling for explanation of black-box
    models. BMVC 2018.

    Examples
    --------
    >>> from skescore.metrics.attribution import removal_curves
    >>> X = [[1.0, 2.0, 3.0]]
    >>> curves = removal_curves(lambda X: X.sum(axis=1), X, X)
    >>> curves.deletion[0].tolist(), curves.insertion[0].tolist()
    ([6.0, 3.0, 1.0, 0.0], [0.0, 3.0, 5.0, 6.0])
    >>> curves.deletion_area.round(2).tolist(), curves.insertion_area.round(2).tolist()
    ([2.33], [3.67])
    """
    removal = Removal.of(removal)
    rows = open_inputs(predict_proba, X, attributions, removal).rows
    n_units = max(max(rows.sizes(), default=1), 1)
    _, details = faithfulness(
        predict_proba,
        X,
        attributions,
        removal=removal,
        target=target,
        measures=("prediction_gap_important",),
        rationales=Rationales(np.arange(1, n_units + 1), by="count", only_positive=False),
        max_batch=max_batch,
        return_details=True,
    )
    deletion, insertion = [], []
    columns = details["base"], details["without"], details["only"]
    for base, without, only in zip(*columns, strict=True):
        deletion.append(np.append(base, without))
        insertion.append(np.append(deletion[-1][-1], only))
    areas = [
        np.array([trapezoid(curve, dx=1 / max(len(curve) - 1, 1)) for curve in curves])
        for curves in (deletion, insertion)
    ]
    return RemovalCurves(deletion, insertion, *areas)


def _check_measures(measures: Sequence[str] | None) -> list[str]:
    """Return the names of the measures, each once."""
    if measures is None:
        return list(_DEFAULT_MEASURES)
    if isinstance(measures, str):
        measures = [measures]
    for name in measures:
        check_choice("measures", name, tuple(FAITHFULNESS))
    if not measures:
        raise ValueError("measures must name at least one measure, got none.")
    return list(dict.fromkeys(measures))


def _scale(values: Floats, normalize: bool, model: BlackBox) -> float:
    if not normalize:
        return 1.0
    if model.predicts_probabilities:
        raise ValueError("normalize=True is for numbers, but the model predicts probabilities.")
    deviation = float(values.std())
    if np.ptp(values) == 0:  # The standard deviation may be a rounding error.
        raise ValueError(
            "normalize=True needs predictions that differ between the rows of X, but all are equal."
        )
    return deviation


class Plan(NamedTuple):
    """Scores, rationales and queries of one row.

    Parameters
    ----------
    scores : ndarray of shape (n_units,)
        Scores of the units.
    lengths : sequence of int
        Length of each rationale.
    masks : ndarray of bool, shape (n_queries, n_parts)
        Distinct masks of the removed parts.
    without, only : ndarray of int, shape (n_rationales,)
        For each rationale, the query without it and with it alone; -1 for the unchanged row.
    units, left_out : ndarray of int
        Units whose removal changes the row, and the query without each of them.
    """

    scores: Floats
    lengths: Sequence[int]
    masks: Bools
    without: Indices
    only: Indices
    units: Indices
    left_out: Indices


def _plan(rows: Any, row: int, scores: Floats, lengths: Sequence[int], loo: bool) -> Plan:
    """Return the queries of one row, each mask once."""
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[descending(scores)] = np.arange(len(scores))
    rationale_masks = ranks[np.newaxis, :] < np.array(lengths, dtype=np.intp)[:, np.newaxis]
    mask_blocks = [rows.parts(row, rationale_masks), rows.parts(row, ~rationale_masks)]
    units, masks = rows.leave_one_out(row)
    if loo:
        mask_blocks.append(masks)
    else:
        units = units[:0]
    # Masks are compared as bytes. Duplicates and masks that remove nothing are not queried.
    stacked = np.vstack(mask_blocks)
    packed = np.packbits(stacked, axis=1)
    query_of_mask: dict[bytes, int] = {}
    if stacked.shape[1]:
        query_of_mask[bytes(packed.shape[1])] = -1
    query_numbers = np.full(len(stacked), -1, dtype=np.intp)
    distinct_rows: list[int] = []
    if stacked.shape[1]:
        for number, key in enumerate(map(bytes, packed)):
            if key not in query_of_mask:
                query_of_mask[key] = len(distinct_rows)
                distinct_rows.append(number)
            query_numbers[number] = query_of_mask[key]
    n = len(lengths)
    return Plan(
        scores,
        lengths,
        stacked[distinct_rows],
        query_numbers[:n],
        query_numbers[n : 2 * n],
        units,
        query_numbers[2 * n :],
    )


def _by_row(
    model: BlackBox,
    inputs: Inputs,
    has_separate_loo: bool,
    plan: Callable[[int], Plan],
    targets: Indices,
) -> Iterator[tuple[int, Plan, Floats, tuple[Indices, Floats]]]:
    """Yield each row with its plan and the predictions for its masks and without single units."""
    for rows, plans in _chunks(plan, len(inputs.rows), model.max_batch):
        blocks = [(row, step.masks) for row, step in zip(rows, plans, strict=True)]
        predictions = model.masked(inputs.rows, blocks, targets)
        if has_separate_loo:
            single = [inputs.loo_rows.leave_one_out(row) for row in rows]
            masks = [(row, masks) for row, (_, masks) in zip(rows, single, strict=True)]
            left_out = [
                (units, predictions_without)
                for (units, _), predictions_without in zip(
                    single, model.masked(inputs.loo_rows, masks, targets), strict=True
                )
            ]
        else:
            left_out = [
                (step.units, values[step.left_out])
                for step, values in zip(plans, predictions, strict=True)
            ]
        yield from zip(rows, plans, predictions, left_out, strict=True)


def _chunks(
    plan: Callable[[int], Plan], n_rows: int, max_batch: int
) -> Iterator[tuple[list[int], list[Plan]]]:
    """Yield groups of rows whose masks fill several batches or the memory limit."""
    rows: list[int] = []
    plans: list[Plan] = []
    queries, size = 0, 0
    for row in range(n_rows):
        step = plan(row)
        rows.append(row)
        plans.append(step)
        queries += len(step.masks)
        size += step.masks.nbytes
        if queries >= 4 * max_batch or size >= _MASK_BYTES:
            yield rows, plans
            rows, plans, queries, size = [], [], 0, 0
    if rows:
        yield rows, plans


def _measure(
    name: str, scores: Floats, without: Floats, only: Floats, loo: Floats, peak: float, empty: float
) -> float:
    if name.endswith("_loo"):
        return _correlation(name, scores, loo, peak)
    if name == "aopc_compr":
        return float(without.mean()) if len(without) else 0.0
    if name == "aopc_suff":
        return float(only.mean()) if len(only) else empty
    gaps = np.abs(without if name == "prediction_gap_important" else only)
    return float(gaps.mean()) if len(gaps) else np.nan


def _correlation(name: str, scores: Floats, loo: Floats, peak: float) -> float:
    if peak:
        # The last digits of predictions depend on the batch, but ties must not.
        loo = np.round(loo / peak, 12)
    if len(scores) < 2 or scores.min() == scores.max() or loo.min() == loo.max():
        return np.nan
    if name == "taucorr_loo":
        if len(scores) == 2:  # SciPy's p-value would divide by zero.
            return float(np.sign(np.diff(scores) * np.diff(loo))[0])
        return float(kendalltau(scores, loo, method="asymptotic").statistic)
    pair = (scores, loo)
    if name == "spearmancorr_loo":
        pair = (rankdata(scores), rankdata(loo))
    return float(row_correlation(pair[0][np.newaxis], pair[1][np.newaxis])[0])
