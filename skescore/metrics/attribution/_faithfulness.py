"""Faithfulness: what becomes of predictions without the features that an attribution names.

Ordered from the highest score down, every rationale is a beginning of that order. So a rationale is
known by its length alone, and two are equal if their lengths are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

from skescore._validation import check_choice, check_integer
from skescore.metrics.attribution._inputs import Inputs, open_inputs
from skescore.metrics.attribution._maps import descending, row_correlation
from skescore.metrics.attribution._model import BlackBox, Target
from skescore.metrics.attribution._removal import Removal

__all__ = ["CORRELATIONS", "FAITHFULNESS", "faithfulness"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: Names of the correlations with leaving one out.
CORRELATIONS = {
    "kendall": "taucorr_loo",
    "spearman": "spearmancorr_loo",
    "pearson": "pearsoncorr_loo",
}
#: All measures, and whether greater is better.
FAITHFULNESS = {
    "aopc_compr": True,
    "aopc_suff": False,
    "taucorr_loo": True,
    "spearmancorr_loo": True,
    "pearsoncorr_loo": True,
    "prediction_gap_important": True,
    "prediction_gap_unimportant": False,
}
BY = ("fraction", "count", "score")
_DEFAULT_STEPS = 10
#: How much of the masks of many rows is kept at a time.
_MASK_BYTES = 1 << 26


def faithfulness(
    predict_proba: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any = None,
    target: Any = None,
    measures: Sequence[str] | None = None,
    correlation: str = "kendall",
    thresholds: Any = None,
    by: str = "fraction",
    only_positive: bool = True,
    dedupe: bool = True,
    normalize: bool = False,
    max_batch: int = 8192,
    return_details: bool = False,
) -> Any:
    r"""Measure whether a model really relies on what attributions name as important.

    Use it to judge and compare explainers of one model without knowing the truth: the features
    with the highest scores are taken away, or everything but them, and the prediction should fall,
    or stay. Works for tables and texts, for probabilities and for numbers.

    Parameters
    ----------
    predict_proba : callable, classifier or regressor
        The black box: a function of many rows that returns one column for each class, or a single
        number for each row; or a fitted estimator, queried by its ``predict_proba`` or, a
        regressor, by its ``predict``.
    X : array-like, DataFrame, sparse matrix, or list of texts or of lists of tokens
        The rows that were explained.
    attributions : array-like, DataFrame, tensor or explanation
        For each row one number for each feature or token, higher for what speaks for the target:
        of shape (n_rows, n_features) or, per class, (n_rows, n_features, n_classes); a list of
        rows of any length for texts; a ``shap.Explanation``; LIME's explanation or a list of them;
        captum's tensors; an :class:`skescore.attribution.Attribution`.
    removal : Removal, float, array-like, DataFrame or str, default=None
        What replaces a removed feature: a number, one for each feature, rows of a background
        sample, or ``"delete"`` or ``"mask"`` for texts; by default 0 and ``"delete"``. A
        :class:`Removal` also has statistics of reference rows, groups of columns and tokenizers.
    target : Target, label or int, or one for each row, default=None
        The class whose probability is measured; by default the one predicted for the row. A
        :class:`Target` also says which class attributions speak of, and how logits are read.
    measures : sequence of str, default=None
        Which measures, of those in the Notes; by default the first three.
    correlation : {"kendall", "spearman", "pearson"}, default="kendall"
        The correlation with leaving one out among the default measures.
    thresholds : array-like, default=None
        Sizes of the rationales; by default 10 %, 20 %, … 100 % of the features.
    by : {"fraction", "count", "score"}, default="fraction"
        Whether thresholds are shares of the features, numbers of features, or scores that those
        of a rationale exceed.
    only_positive : bool, default=True
        Whether features that do not speak for the target are left out of rationales; always
        False with ``by="score"``.
    dedupe : bool, default=True
        Whether equal rationales at successive thresholds count once.
    normalize : bool, default=False
        Divide differences of numbers by the standard deviation of the model's predictions on X.
    max_batch : int, default=8192
        The greatest number of rows in one call of the model.
    return_details : bool, default=False
        Return what was found on the way as well.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        The measures. With `return_details` a pair of it and a dict: ``target`` and ``base`` (the
        prediction with all features), ``queries`` of each row, ``model_rows`` in total, and by row
        ``scores``, ``lengths``, ``without``, ``only`` and ``loo``.

    Raises
    ------
    ValueError
        If attributions, rows, targets or options do not fit together; if predictions are not finite
        or are no probabilities; if it is unclear which class attributions speak of.
    TypeError
        If the model only predicts labels, or something is of a wrong type.

    Notes
    -----
    With :math:`f` the prediction for the target, :math:`r` a rationale and :math:`x \setminus r`
    the row without it, the measures and the direction of the better are

    * ``aopc_compr`` (greater), comprehensiveness: mean of :math:`f(x) - f(x \setminus r)` over the
      rationales, 0 if there are none;
    * ``aopc_suff`` (less), sufficiency: mean of :math:`f(x) - f(r)`; with no rationale 1 for
      probabilities and NaN for numbers, of which none is the worst;
    * ``taucorr_loo`` (greater): Kendall's τ-b of the scores and :math:`f(x) - f(x \setminus i)`
      over all features; by name also ``spearmancorr_loo`` and ``pearsoncorr_loo``. NaN if one of
      the two is constant;
    * ``prediction_gap_important`` (greater) and ``prediction_gap_unimportant`` (less): means of
      :math:`|f(x) - f(x \setminus r)|` and of :math:`|f(x) - f(r)|`; NaN with no rationale.

    A rationale at 30 % of n features is the highest :math:`\lfloor 0.3 n \rfloor`, of which those
    not above 0 are then taken out. Of equal scores the later feature comes first. Probabilities
    differ by −1 to 1, so negative values occur. Differences from leaving one out that vanish in the
    rounding of floats, beyond twelve digits, count as equal.

    All rows share the calls of the model, which is queried once for what is removed repeatedly and
    never where removal changes nothing: at most 1 + 20 + n queries for a row with n features.
    Texts are joined from their tokens for the prediction with all features as well; explanations of
    shap and LIME bring their own pieces of each text, which are used instead. Tensors reach the
    model as arrays.

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
    >>> found = faithfulness(model, X[:3], weights, removal=removal, target=target)
    >>> {name: values.round(2).tolist() for name, values in found.items()}
    {'aopc_compr': [0.65, 0.49, 0.4], 'aopc_suff': [0.0, 0.0, 0.0], 'taucorr_loo': [1.0, 1.0, 1.0]}
    """
    chosen = _check_measures(measures, correlation)
    sizes_of = _check_thresholds(thresholds, by)
    remedy = "It is how many rows the model takes at once."
    check_integer("max_batch", max_batch, 1, remedy=remedy)
    target = Target.of(target)
    inputs = open_inputs(predict_proba, X, attributions, Removal.of(removal))
    model = BlackBox(inputs.model, target, max_batch)
    rows, n_rows = inputs.rows, len(inputs.rows)
    base = model.originals(rows)
    targets, spoken_of = target.columns(base, model.classes)
    scores_of = inputs.scores(targets, model.n_columns, spoken_of=spoken_of, chosen=target.chosen)
    values = base[np.arange(n_rows), targets]
    scale = _scale(values, normalize, model)
    needs_loo = any(name.endswith("_loo") for name in chosen)
    needs_rationales = any(not name.endswith("_loo") for name in chosen)
    own_loo = needs_loo and inputs.loo_rows is not rows

    def plan(row: int) -> Plan:
        scores = rows.unit_scores(row, scores_of[row])
        lengths: Sequence[int] = []
        if needs_rationales:
            lengths = _rationale_lengths(
                scores, sizes_of, by, only_positive=only_positive, dedupe=dedupe
            )
        return _plan(rows, row, scores, lengths, needs_loo and not own_loo)

    found: dict[str, Floats] = {name: np.full(n_rows, np.nan) for name in chosen}
    details: dict[str, list[Any]] = {
        name: [] for name in ("scores", "lengths", "without", "only", "loo")
    }
    queries = np.ones(n_rows, dtype=np.intp)
    empty = 1.0 if model.predicts_probabilities else np.nan
    for row, step, predictions, (units, left) in _by_row(model, inputs, own_loo, plan, targets):
        known = np.append(predictions, values[row])  # the index -1 is the row itself
        loo = np.zeros(len(step.scores))
        loo[units] = (values[row] - left) / scale
        queries[row] += len(predictions) + (len(left) if own_loo else 0)
        without, only = (values[row] - known[step.without]), (values[row] - known[step.only])
        peak = max(abs(values[row]), float(np.abs(left).max(initial=0.0))) / scale
        for name in chosen:
            found[name][row] = _measure(
                name, step.scores, without / scale, only / scale, loo, peak, empty
            )
        if return_details:
            lengths = np.array(step.lengths, dtype=np.intp)
            items = (step.scores, lengths, known[step.without], known[step.only], loo)
            for name, item in zip(details, items, strict=True):
                details[name].append(item)
    if not return_details:
        return found
    more = {"target": targets, "base": values, "queries": queries, "model_rows": model.n_queries}
    return found, {**more, **details}


def _check_measures(measures: Sequence[str] | None, correlation: str) -> list[str]:
    check_choice("correlation", correlation, tuple(CORRELATIONS))
    if measures is None:
        return ["aopc_compr", "aopc_suff", CORRELATIONS[correlation]]
    if correlation != "kendall":
        raise ValueError(
            f"correlation={correlation!r} is for the default measures. Name "
            f"{CORRELATIONS[correlation]!r} in measures instead."
        )
    if isinstance(measures, str):
        measures = [measures]
    for name in measures:
        check_choice("measures", name, tuple(FAITHFULNESS))
    if not measures:
        raise ValueError("measures must name at least one measure, got none.")
    return list(dict.fromkeys(measures))


def _check_thresholds(thresholds: Any, by: str) -> Floats | None:
    """Thresholds as numbers that make sense for what they count; None for the default ones."""
    check_choice("by", by, BY)
    if thresholds is None:
        if by == "fraction":
            return None
        raise ValueError(
            f"thresholds must be given with by={by!r}, got None. Pass for instance [1, 2, 5] for "
            "counts, [0.1, 0.5] for scores."
        )
    try:
        array = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if by == "fraction":
        fits, rule = (array > 0) & (array <= 1), "above 0 and at most 1"
    elif by == "count":
        fits, rule = (array >= 1) & (array == np.floor(array)), "whole numbers of at least 1"
    else:
        fits, rule = np.ones(array.shape, dtype=bool), "finite"
    if array.ndim != 1 or not len(array) or not fits.all() or not np.isfinite(array).all():
        raise ValueError(
            f"thresholds with by={by!r} must be a list of numbers, {rule}, got {thresholds!r}. "
            'Leave them out for 10 %, 20 %, … 100 % of the features with by="fraction".'
        )
    return array


def _scale(values: Floats, normalize: bool, model: BlackBox) -> float:
    if not normalize:
        return 1.0
    if model.predicts_probabilities:
        raise ValueError("normalize=True is for numbers, but the model predicts probabilities.")
    deviation = float(values.std())
    if np.ptp(values) == 0:  # whatever the last bit of their mean is
        raise ValueError(
            "normalize=True needs predictions that differ between the rows of X, but all are equal."
        )
    return deviation


class Plan(NamedTuple):
    """What the measures need of one row."""

    scores: Floats
    lengths: Sequence[int]
    #: Distinct masks of what is removed.
    masks: Bools
    #: Of each rationale, the mask that takes it away and the one that leaves only it; -1: nothing
    #: is removed at all.
    without: Indices
    only: Indices
    #: The units that make a difference, and the masks that leave them out.
    units: Indices
    left_out: Indices


def _rationale_lengths(
    scores: Floats,
    thresholds: Floats | None,
    by: str,
    *,
    only_positive: bool,
    dedupe: bool,
) -> Sequence[int]:
    """How long each rationale is, in the order of the thresholds."""
    n = len(scores)
    if by == "score":
        # Chosen by its value: a threshold of -1 is meant.
        lengths = (scores[np.newaxis, :] > thresholds[:, np.newaxis]).sum(axis=1).tolist()  # type: ignore[index]
    else:
        if thresholds is None:
            # In integers: no float noise decides how many features 30 % are.
            counts = [(step * n) // _DEFAULT_STEPS for step in range(1, _DEFAULT_STEPS + 1)]
        elif by == "fraction":
            counts = [int(count) for count in np.floor(thresholds * n + 1e-9)]
        else:
            counts = [min(int(count), n) for count in thresholds]
        most = int((scores > 0).sum()) if only_positive else n
        lengths = [min(count, most) for count in counts]
        lengths = [length for length in lengths if length]
    if not dedupe:
        return lengths
    return [length for i, length in enumerate(lengths) if not i or length != lengths[i - 1]]


def _plan(rows: Any, row: int, scores: Floats, lengths: Sequence[int], loo: bool) -> Plan:
    """What one row needs: which units each rationale is, and the masks to query, each once."""
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[descending(scores)] = np.arange(len(scores))
    inside = ranks[np.newaxis, :] < np.array(lengths, dtype=np.intp)[:, np.newaxis]
    wanted = [rows.parts(row, inside), rows.parts(row, ~inside)]
    units, masks = rows.leave_one_out(row)
    if loo:
        wanted.append(masks)
    else:
        units = units[:0]
    # By their bytes, as sets of bits: equal ones, and those that remove nothing, are not queried.
    stacked = np.vstack(wanted)
    packed = np.packbits(stacked, axis=1)
    known: dict[bytes, int] = {}
    if stacked.shape[1]:
        known[bytes(packed.shape[1])] = -1
    where = np.full(len(stacked), -1, dtype=np.intp)
    kept: list[int] = []
    if stacked.shape[1]:
        for number, key in enumerate(map(bytes, packed)):
            if key not in known:
                known[key] = len(kept)
                kept.append(number)
            where[number] = known[key]
    n = len(lengths)
    return Plan(scores, lengths, stacked[kept], where[:n], where[n : 2 * n], units, where[2 * n :])


def _by_row(
    model: BlackBox, inputs: Inputs, own_loo: bool, plan: Callable[[int], Plan], targets: Indices
) -> Iterator[tuple[int, Plan, Floats, tuple[Indices, Floats]]]:
    """Each row with its plan, the predictions of its masks, and those of leaving units out."""
    for rows, plans in _chunks(plan, len(inputs.rows), model.max_batch):
        blocks = [(row, step.masks) for row, step in zip(rows, plans, strict=True)]
        predictions = model.masked(inputs.rows, blocks, targets)
        if own_loo:
            single = [inputs.loo_rows.leave_one_out(row) for row in rows]
            masks = [(row, masks) for row, (_, masks) in zip(rows, single, strict=True)]
            left_out = [
                (units, left)
                for (units, _), left in zip(
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
    """Rows together until their masks fill some batches, or some memory."""
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
        # The last digits depend on how many rows a model was given at once; ties must not.
        loo = np.round(loo / peak, 12)
    if len(scores) < 2 or not np.ptp(scores) or not np.ptp(loo):
        return np.nan
    if name == "taucorr_loo":
        if len(scores) == 2:  # where SciPy's p-value, which nobody needs, divides by zero
            return float(np.sign(np.diff(scores) * np.diff(loo))[0])
        return float(kendalltau(scores, loo, method="asymptotic").statistic)
    pair = (scores, loo)
    if name == "spearmancorr_loo":
        pair = (rankdata(scores), rankdata(loo))
    return float(row_correlation(pair[0][np.newaxis], pair[1][np.newaxis])[0])
