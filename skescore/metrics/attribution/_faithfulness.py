"""Faithfulness: what becomes of the answers without the features that an attribution names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, rankdata

from skescore.metrics.attribution._inputs import after_vectoriser, open_inputs, scores_for_targets
from skescore.metrics.attribution._maps import check_choice, row_correlation
from skescore.metrics.attribution._model import (
    Plan,
    Respondent,
    answers_by_row,
    ask_originals,
    find_targets,
    plan_row,
)
from skescore.metrics.attribution._plausibility import (
    check_thresholds,
    rationale_lengths,
)
from skescore.metrics.attribution._removal import Texts, is_text

__all__ = ["CORRELATIONS", "FAITHFULNESS", "faithfulness"]

Floats = NDArray[np.float64]

#: Names of the correlations with leaving one out, by what is asked for.
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


def faithfulness(
    predict_proba: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any = None,
    reference: Any = None,
    target: Any = None,
    target_kind: str = "auto",
    explains: Any = None,
    classes: Any = None,
    link: str | None = None,
    measures: Sequence[str] | None = None,
    correlation: str = "kendall",
    thresholds: Any = None,
    by: str = "fraction",
    only_positive: bool = True,
    dedupe: bool = True,
    groups: Any = None,
    features: str = "all",
    align: str = "tokens",
    tokenizer: Callable[[str], Sequence[str]] | None = None,
    join: str | None = " ",
    mask_token: str = "[MASK]",
    loo_removal: str | None = None,
    normalize: bool = False,
    max_batch: int = 8192,
    return_details: bool = False,
) -> Any:
    r"""Measure whether a model really relies on what attributions name as important.

    Use it to judge and compare explainers of one model without knowing the truth: the features
    with the highest scores are taken away, or everything but them, and the answer should fall, or
    stay. Works for tables and texts, for probabilities and for numbers.

    Parameters
    ----------
    predict_proba : callable, classifier or regressor
        The black box: a function of many rows that returns one column for each class, or a single
        number for each row; or a fitted estimator, asked by its ``predict_proba`` or, a regressor,
        by its ``predict``.
    X : array-like, DataFrame, sparse matrix, or list of texts or of lists of tokens
        The rows that were explained.
    attributions : array-like, DataFrame, tensor or explanation
        For each row one number for each feature or token, higher for what speaks for the target:
        of shape (n_rows, n_features) or, per class, (n_rows, n_features, n_classes); a list of
        rows of any length for texts; a ``shap.Explanation``; LIME's explanation or a list of them;
        captum's tensors; an :class:`skescore.attribution.Attribution`.
    removal : float, array-like, DataFrame or str, default=None
        What replaces a removed feature of a table: a number, one for each feature, ``"mean"``,
        ``"median"`` or ``"mode"`` of `reference`, or rows of a background sample (also
        ``"background"`` with `reference`), over which the answers are averaged. For texts
        ``"delete"`` or ``"mask"``. By default 0 and ``"delete"``. Sparse rows know 0 only.
    reference : array-like or DataFrame, default=None
        The rows that the named replacements are taken from.
    target : label or int, or one for each row, default=None
        The class whose probability is measured; by default the one predicted for the row.
    target_kind : {"auto", "column", "label"}, default="auto"
        What `target` and `explains` name. By default integers are columns and others labels; with
        classes that are other integers it must be said.
    explains : label, int or "target", default=None
        Of attributions of one output: the class that they speak of. The scores of rows whose target
        is the other of two classes are negated. ``"target"`` says that each row speaks of its own
        target, which is what arrays are taken for; a ``shap.Explanation`` must say it.
    classes : array-like, default=None
        Labels of the columns, where the estimator does not tell them.
    link : {"softmax", "sigmoid", "identity"}, default=None
        How answers that are no probabilities are read: logits, the margin of the second of two
        classes, or numbers as they are.
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
    groups : list of lists, default=None
        Columns that are removed together, by index or name, such as those of one category; their
        scores are added up.
    features : {"all", "changed"}, default="all"
        The features that are looked at in a table: all, or those of a row that removal changes,
        as befits bags of words.
    align : {"tokens", "columns"}, default="tokens"
        What attributions of texts belong to: tokens, or columns of what the last step of a
        pipeline sees, set to 0.
    tokenizer : callable, default=None
        Splits a text into tokens; see :func:`text_tokens`.
    join : str or None, default=" "
        What tokens are joined by for the model; None passes lists of tokens.
    mask_token : str, default="[MASK]"
        What replaces a masked token.
    loo_removal : {"delete", "mask"}, default=None
        How a single token is left out, if other than `removal` says.
    normalize : bool, default=False
        Divide differences of numbers by the standard deviation of the model's answers on X.
    max_batch : int, default=8192
        The greatest number of rows in one call of the model.
    return_details : bool, default=False
        Return what was found on the way as well.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        The measures. With `return_details` a pair of it and a dict: ``target`` and ``base`` (the
        answer for all features), ``queries`` of each row, ``model_rows`` in total, and by row
        ``scores``, ``lengths``, ``without``, ``only`` and ``loo``.

    Raises
    ------
    ValueError
        If attributions, rows, targets or options do not fit together; if answers are not finite or
        are no probabilities; if it is unclear which class attributions speak of.
    TypeError
        If the model only answers labels, or something is of a wrong type.

    Notes
    -----
    With :math:`f` the answer for the target, :math:`r` a rationale and :math:`x \setminus r` the
    row without it, the measures and the direction of the better are

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

    All rows share the calls of the model, which is asked once for what is removed repeatedly and
    never where removal changes nothing: at most 1 + 20 + n questions for a row with n features.
    Texts are joined from their tokens for the answer with all features as well; explanations of
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
    >>> from skescore.metrics.attribution import faithfulness
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> weights = model[-1].coef_[0] * model[0].transform(X[:3])
    >>> found = faithfulness(model, X[:3], weights, explains=1, removal="mean", reference=X)
    >>> {name: values.round(2).tolist() for name, values in found.items()}
    {'aopc_compr': [0.65, 0.49, 0.4], 'aopc_suff': [0.0, 0.0, 0.0], 'taucorr_loo': [1.0, 1.0, 1.0]}
    """
    chosen_measures = _check_measures(measures, correlation)
    sizes_of = check_thresholds(thresholds, by)
    check_choice("features", features, ("all", "changed"))
    check_choice("align", align, ("tokens", "columns"))
    if isinstance(max_batch, bool) or not isinstance(max_batch, (int, np.integer)) or max_batch < 1:
        raise ValueError(
            f"max_batch must be an integer of at least 1, got {max_batch!r}. It is how many rows "
            "the model takes at once."
        )
    if align == "columns":
        if not is_text(X):
            raise ValueError("align='columns' is for texts, but X is a table. Leave it out.")
        predict_proba, X, classes = after_vectoriser(predict_proba, X, classes)
        features = "changed"
    model = Respondent(predict_proba, link, classes)
    inputs, loo_inputs, explained = open_inputs(
        predict_proba, X, attributions,
        removal=removal, reference=reference, groups=groups, features=features,
        tokenizer=tokenizer, join=join, mask_token=mask_token, loo_removal=loo_removal,
    )  # fmt: skip

    n_rows = len(inputs)
    base = ask_originals(model, inputs, max_batch)
    targets = find_targets(target, target_kind, base, model.classes)
    spoken_of = None
    own_target = isinstance(explains, str) and explains == "target"
    if explains is not None and not own_target:
        spoken_of = find_targets(explains, target_kind, base, model.classes, "explains")
    rows = scores_for_targets(
        explained, inputs.sizes(), targets, model.columns,
        spoken_of=spoken_of, chosen=target is not None or own_target,
        X=None if isinstance(inputs, Texts) else X,
    )  # fmt: skip
    values = base[np.arange(n_rows), targets]
    scale = _scale(values, normalize, model)

    needs_rationales = any(not name.endswith("_loo") for name in chosen_measures)
    needs_loo = any(name.endswith("_loo") for name in chosen_measures)

    def plan(row: int) -> Plan:
        scores = inputs.unit_scores(row, rows[row])
        lengths = (
            rationale_lengths(scores, sizes_of, by, only_positive=only_positive, dedupe=dedupe)
            if needs_rationales
            else []
        )
        return plan_row(inputs, row, scores, lengths, needs_loo and loo_inputs is inputs)

    found: dict[str, Floats] = {name: np.full(n_rows, np.nan) for name in chosen_measures}
    details: dict[str, list[Any]] = {
        name: [] for name in ("scores", "lengths", "without", "only", "loo")
    }
    queries = np.ones(n_rows, dtype=np.intp)
    empty = 1.0 if model.answers_probabilities else np.nan
    for row, step, answers, left_out in answers_by_row(
        model, inputs, loo_inputs if needs_loo else None, plan, targets, max_batch
    ):
        known = np.append(answers, values[row])  # the place -1 is the row itself
        loo = np.zeros(len(step.scores))
        units, left = left_out
        loo[units] = (values[row] - left) / scale
        queries[row] += len(answers) + (len(left) if loo_inputs is not inputs else 0)
        without, only = (values[row] - known[step.without]), (values[row] - known[step.only])
        peak = max(abs(values[row]), float(np.abs(left).max(initial=0.0))) / scale
        for name in chosen_measures:
            found[name][row] = _measure(
                name, step.scores, without / scale, only / scale, loo, peak, empty
            )
        if return_details:
            for name, item in zip(
                details,
                (step.scores, np.array(step.lengths, dtype=np.intp), known[step.without],
                 known[step.only], loo),
                strict=True,
            ):  # fmt: skip
                details[name].append(item)
    if not return_details:
        return found
    more = {"target": targets, "base": values, "queries": queries, "model_rows": model.asked}
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


def _scale(values: Floats, normalize: bool, model: Respondent) -> float:
    if not normalize:
        return 1.0
    if model.answers_probabilities:
        raise ValueError("normalize=True is for numbers, but the model answers probabilities.")
    spread = float(values.std())
    if spread == 0:
        raise ValueError(
            "normalize=True needs answers that differ between the rows of X, but all are equal."
        )
    return spread


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
        # The last digits depend on how many rows a model was asked at once; ties must not.
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
