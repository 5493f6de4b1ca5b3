"""Measures of a rule set as a whole that FiRe, Q and ICE do not contain.

Scorers, searches, benchmarks and the command line use this table.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from skescore._quantities import measured_quantities
from skescore._random import child_generator
from skescore._text import did_you_mean
from skescore._validation import TASKS, check_choice, check_integer
from skescore.metrics import (
    Redundancy,
    RuleCalibration,
    RuleCounts,
    RuleOverlap,
    Stability,
    feature_agreement,
    fidelity,
    group_fidelity,
    group_gap,
    group_values,
    redundancy,
    rule_calibration,
    rule_overlap,
    stability,
)
from skescore.metrics._fidelity import known_predictions
from skescore.rules import RuleSet, as_ruleset
from skescore.rules.importers import options_from_rows
from skescore.scorers._evaluation import RuleEvaluation

__all__ = [
    "SET_AXES",
    "SET_MEASURES",
    "SetMeasure",
    "axis_measure",
    "find_set_measure",
    "minimized_quantities",
    "minimized_quantity",
    "named_set_measure",
]


#: Inputs of a measure; each level includes the previous ones.
NEEDS = ("rules", "rows", "labels", "black_box", "extractor")
#: Random stream for halving the rows.
_HALVES = 13


@dataclass(frozen=True)
class SetMeasure:
    """A measure of a rule set as a whole.

    Parameters
    ----------
    name : str
        Name of the measure.
    function : callable
        ``function(evaluation, **options)`` of a :class:`RuleEvaluation`, which returns a number, or
        NaN if the measure is undefined.
    text : str
        Description for readers.
    greater_is_better : bool, default=True
        False for a loss.
    needs : {"rules", "rows", "labels", "black_box", "extractor"}, default="rows"
        Inputs besides the rules; each includes the previous ones.
    tasks : tuple of str, default=("classification", "regression")
        Tasks for which it is defined.
    range : str, default="[0, 1]"
        Interval of values.
    source : str, default=""
        Author or origin of the measure.

    Raises
    ------
    ValueError
        If `needs` is none of the options.

    Examples
    --------
    >>> from skescore.scorers import SET_MEASURES
    >>> measure = SET_MEASURES["negative_overlap"]
    >>> measure.scorer_name, measure.needs, measure.range
    ('neg_negative_overlap', 'rows', '[0, 1]')
    """

    name: str
    function: Callable[..., float]
    text: str
    greater_is_better: bool = True
    needs: str = "rows"
    tasks: tuple[str, ...] = TASKS
    range: str = "[0, 1]"
    source: str = ""

    def __post_init__(self) -> None:
        check_choice("needs", self.needs, NEEDS)

    @property
    def scorer_name(self) -> str:
        """Name of the scorer, for which greater is better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the function."""
        return tuple(inspect.signature(self.function).parameters)[1:]


def find_set_measure(measure: str | SetMeasure, options: Mapping[str, Any]) -> SetMeasure:
    """Find a measure and check the names of its options."""
    set_measure = measure
    if not isinstance(set_measure, SetMeasure):
        named_measure = named_set_measure(set_measure) if isinstance(set_measure, str) else None
        if named_measure is None:
            raise ValueError(
                f"There is no measure of rule sets {measure!r}. "
                f"{did_you_mean(str(measure), SET_MEASURES)}"
            )
        set_measure = named_measure
    for option in options:
        if option not in set_measure.options:
            raise TypeError(
                f"The measure {set_measure.name!r} has no option {option!r}. "
                f"{did_you_mean(option, set_measure.options)}"
            )
    return set_measure


def named_set_measure(name: str) -> SetMeasure | None:
    """Return a measure by its name; None if there is none.

    Parameters
    ----------
    name : str
        A name of :data:`SET_MEASURES`, or ``"group_gap:COLUMN"``.

    Returns
    -------
    SetMeasure or None
        The measure.

    Examples
    --------
    >>> named_set_measure("group_gap:sex").scorer_name
    'neg_group_gap:sex'
    """
    if not name.startswith(_GROUP_GAP):
        return SET_MEASURES.get(name)
    column = name.removeprefix(_GROUP_GAP)
    return SetMeasure(
        name,
        functools.partial(_group_gap, column),
        f"largest difference between the groups of {column} in the predictions",
        greater_is_better=False,
        range="[0, inf)",
        source="C. Dwork et al. 2012",
    )


def _group_gap(column: str, e: RuleEvaluation) -> float:
    if isinstance(e.X, RuleCounts):
        raise TypeError(
            f"group_gap:{column} compares groups of rows, but there are only counts of rows. Pass "
            "the rows."
        )
    groups = group_values(e.rows, e.ruleset.feature_names, column)
    return group_gap(e.ruleset, e.X, groups, e.sample_weight)


def _features_per_rule(e: RuleEvaluation) -> float:
    counts = [len({f for c in rule.conditions for f in c.features}) for rule in e.ruleset.rules]
    return float(np.mean(counts)) if counts else math.nan


def _terms(e: RuleEvaluation) -> list[int]:
    return [rule.n_terms for rule in e.ruleset.rules]


def _terms_per_rule(e: RuleEvaluation) -> float:
    return float(np.mean(_terms(e))) if len(e.ruleset) else math.nan


def _longest_rule(e: RuleEvaluation) -> float:
    return float(max(_terms(e), default=math.nan))


def _overlap_of(e: RuleEvaluation) -> RuleOverlap:
    return e.compute_once(
        RuleOverlap, lambda: rule_overlap(e.ruleset, e.X, e.sample_weight, pairs=False)
    )


def _overlap(e: RuleEvaluation) -> float:
    return e.X.overlap if isinstance(e.X, RuleCounts) else _overlap_of(e).overlap


def _negative_overlap(e: RuleEvaluation) -> float:
    if isinstance(e.X, RuleCounts) and e.X.classes is not None:
        return float(e.X.classes.torn[0]) / sum(e.X.weights)
    return _overlap_of(e).negative_overlap


def _uncovered(e: RuleEvaluation) -> float:
    return 1.0 - e.instances


def _redundancy_of(e: RuleEvaluation) -> Redundancy:
    return e.compute_once(Redundancy, lambda: redundancy(e.ruleset, e.X, e.sample_weight))


def _redundant_rules(e: RuleEvaluation) -> float:
    return _redundancy_of(e).share_of_rules


def _redundant_literals(e: RuleEvaluation) -> float:
    return _redundancy_of(e).share_of_literals


def _calibration_of(e: RuleEvaluation, confidence: float) -> RuleCalibration:
    e.check_units()
    return e.compute_once(
        (RuleCalibration, confidence),
        lambda: rule_calibration(
            e.ruleset,
            e.X,
            e.y_true,
            e.sample_weight,
            confidence=confidence,
            reference=e.reference,
        ),
    )


def _calibration_error(e: RuleEvaluation) -> float:
    return _calibration_of(e, 0.95).error


def _calibrated_rules(e: RuleEvaluation, confidence: float = 0.95) -> float:
    return _calibration_of(e, confidence).share_within


def _black_box(e: RuleEvaluation) -> Callable[[Any], Any]:
    if e.black_box is None:
        raise TypeError(
            "This measure queries the black box, but black_box is None. Pass a fitted extractor, "
            "or evaluate_rules(rules, X, y, black_box=model.predict)."
        )
    return e.black_box


def _fidelity_on(where: str) -> Callable[..., float]:
    def measure(
        e: RuleEvaluation, n_rows: int = 1000, scale: float = 0.1, random_state: Any = 0
    ) -> float:
        return fidelity(
            e.ruleset,
            _black_box(e),
            e.rows,
            where=where,
            n_rows=n_rows,
            scale=scale,
            sample_weight=e.sample_weight,
            random_state=random_state,
        )

    return measure


def _fidelity_rows(e: RuleEvaluation) -> float:
    return fidelity(e.ruleset, _black_box(e), e.rows, sample_weight=e.sample_weight)


def _fidelity_gap(e: RuleEvaluation) -> float:
    """Compute the fidelity gap by class, or by quartile of the black box's predictions."""
    box = np.asarray(_black_box(e)(e.rows))
    predictions, is_predicted = known_predictions(e.ruleset, e.X)
    groups = None
    if e.ruleset.task == "classification":
        predictions = predictions.astype(object)
        predictions[~is_predicted] = None
    else:
        box = box.astype(np.float64)
        predictions = np.where(is_predicted, predictions, np.average(box, weights=e.sample_weight))
        groups = pd.qcut(box, 4, labels=False, duplicates="drop") if np.ptp(box) else box
    return group_fidelity(
        box, predictions, groups, task=e.ruleset.task, sample_weight=e.sample_weight
    ).gap


def _feature_agreement(
    e: RuleEvaluation, n_repeats: int = 3, max_rows: int = 1000, random_state: Any = 0
) -> float:
    return feature_agreement(
        e.ruleset,
        _black_box(e),
        e.rows,
        n_repeats=n_repeats,
        max_rows=max_rows,
        sample_weight=e.sample_weight,
        random_state=random_state,
    ).agreement


def _stability_of(
    e: RuleEvaluation, n_splits: int, n_bins: int, random_state: Any
) -> list[Stability]:
    """Extract rules from both halves of the rows, for every random split."""
    check_integer("n_splits", n_splits, 1)
    check_integer("n_bins", n_bins, 1)

    def compute() -> list[Stability]:
        rng = child_generator(random_state, _HALVES)
        stabilities = []
        for _ in range(n_splits):
            order = rng.permutation(len(e.y_true))
            half = len(order) // 2
            try:
                halves = [_extract_again(e, np.sort(rows)) for rows in (order[:half], order[half:])]
            except ValueError as error:  # few rows may give no rules
                warnings.warn(
                    f"Half of the {len(order)} rows gives no rules: {error}",
                    UndefinedMetricWarning,
                    stacklevel=2,
                )
                return []
            stabilities.append(stability(halves, e.X, n_bins=n_bins, sample_weight=e.sample_weight))
        return stabilities

    # A generator yields other halves in each call, so only results of an integer seed are cached.
    is_fixed = isinstance(random_state, int | np.integer)
    return (
        e.compute_once((Stability, n_splits, n_bins, random_state), compute)
        if is_fixed
        else compute()
    )


def _extract_again(e: RuleEvaluation, row_indices: np.ndarray) -> RuleSet:
    model = e.model
    if model is None or isinstance(model, RuleSet) or not hasattr(model, "fit"):
        raise TypeError(
            "To measure stability, rules are extracted again from parts of the rows, but a rule "
            "set cannot be fitted. Pass the extractor, or compare several rule sets with "
            "skescore.metrics.stability."
        )
    weights = {} if e.sample_weight is None else {"sample_weight": e.sample_weight[row_indices]}
    X = _safe_indexing(e.rows, row_indices)
    if hasattr(model, "oracle_"):
        box = model.estimator_
        frozen = box if isinstance(box, FrozenEstimator) else FrozenEstimator(box)
        # Replace the black box first, so that it is not cloned.
        fitted = clone(copy.copy(model).set_params(estimator=frozen)).fit(X, **weights)
    else:
        fitted = clone(model).fit(X, e.y_true[row_indices], **weights)
    return as_ruleset(fitted, **options_from_rows(fitted, X))


def _stability(
    e: RuleEvaluation, n_splits: int = 3, n_bins: int = 10, random_state: Any = 0
) -> float:
    stabilities = _stability_of(e, n_splits, n_bins, random_state)
    return float(np.mean([one.rules for one in stabilities])) if stabilities else math.nan


def _prediction_stability(
    e: RuleEvaluation, n_splits: int = 3, n_bins: int = 10, random_state: Any = 0
) -> float:
    stabilities = _stability_of(e, n_splits, n_bins, random_state)
    return float(np.mean([one.predictions for one in stabilities])) if stabilities else math.nan


_SIALA = "M. Siala et al. 2025, arXiv:2507.07576"
_LAKKARAJU = "H. Lakkaraju et al. 2016, doi:10.1145/2939672.2939874"
_VILONE = "G. Vilone, L. Longo 2021, doi:10.3389/frai.2021.717899"
_MARGOT = "V. Margot, G. Luta 2021, arXiv:2004.01570"
_GUIDOTTI = "R. Guidotti et al. 2018, doi:10.1145/3236009"
_AGREES = "agreement with the black box on"
_SIZE: dict[str, Any] = {"greater_is_better": False, "needs": "rules", "range": "[0, inf)"}
_LOSS: dict[str, Any] = {"greater_is_better": False}
_BOX: dict[str, Any] = {"needs": "black_box"}

#: Measures of rule sets as a whole (overlap, stability, fidelity, ...), from an evaluation.
SET_MEASURES: Mapping[str, SetMeasure] = MappingProxyType(
    {
        m.name: m
        for m in (
            SetMeasure(
                "conditions_per_rule",
                _features_per_rule,
                "number of features in the conditions of a rule",
                **_SIZE,
                source=_VILONE,
            ),
            SetMeasure(
                "terms_per_rule",
                _terms_per_rule,
                "number of bounds, category names and linear terms of a rule",
                **_SIZE,
                source=_MARGOT,
            ),
            SetMeasure(
                "longest_rule", _longest_rule, "number of terms of the longest rule", **_SIZE
            ),
            SetMeasure(
                "uncovered",
                _uncovered,
                "share of the rows that no rule covers",
                **_LOSS,
                source=_LAKKARAJU,
            ),
            SetMeasure(
                "overlap",
                _overlap,
                "share of the rows that several rules cover",
                **_LOSS,
                source=_LAKKARAJU,
            ),
            SetMeasure(
                "negative_overlap",
                _negative_overlap,
                "share of the rows that rules with different conclusions cover",
                **_LOSS,
                source=_SIALA,
            ),
            SetMeasure(
                "redundant_rules",
                _redundant_rules,
                "share of the rules that can be removed without changing a row's prediction",
                **_LOSS,
                source=_SIALA,
            ),
            SetMeasure(
                "redundant_literals",
                _redundant_literals,
                "share of the comparisons that can be removed without changing a row's prediction",
                **_LOSS,
                source=_SIALA,
            ),
            SetMeasure(
                "calibration_error",
                _calibration_error,
                "mean difference between the printed shares or means of rules and these rows",
                **_LOSS,
                needs="labels",
                range="[0, 1]; [0, inf) of numbers",
                source="M. P. Naeini et al. 2015",
            ),
            SetMeasure(
                "calibrated_rules",
                _calibrated_rules,
                "share of the rules whose printed value lies in the interval on these rows",
                needs="labels",
                source="C. J. Clopper, E. S. Pearson 1934",
            ),
            SetMeasure(
                "stability",
                _stability,
                "similarity of rules that are extracted from two halves of the rows",
                needs="extractor",
                source=_MARGOT,
            ),
            SetMeasure(
                "prediction_stability",
                _prediction_stability,
                "agreement of rules that are extracted from two halves of the rows",
                needs="extractor",
                range="[0, 1]; [-1, 1] of numbers",
                source=_MARGOT,
            ),
            SetMeasure(
                "fidelity_rows", _fidelity_rows, f"{_AGREES} the rows", **_BOX, source=_GUIDOTTI
            ),
            SetMeasure(
                "fidelity_gap",
                _fidelity_gap,
                "fidelity on all rows minus that on the worst class, or worst quarter of numbers",
                greater_is_better=False,
                **_BOX,
                source="A. Balagopalan et al. 2022, arXiv:2205.03295",
            ),
            SetMeasure(
                "fidelity_jittered",
                _fidelity_on("jittered"),
                f"{_AGREES} slightly perturbed rows",
                **_BOX,
                source=_GUIDOTTI,
            ),
            SetMeasure(
                "fidelity_interpolated",
                _fidelity_on("interpolated"),
                f"{_AGREES} points between pairs of rows",
                **_BOX,
                source=_GUIDOTTI,
            ),
            SetMeasure(
                "fidelity_uniform",
                _fidelity_on("uniform"),
                f"{_AGREES} points drawn uniformly from the domain",
                **_BOX,
                source="M. Craven, J. Shavlik 1995",
            ),
            SetMeasure(
                "fidelity_boundary",
                _fidelity_on("boundary"),
                f"{_AGREES} points near its decision boundary",
                tasks=("classification",),
                **_BOX,
                source=_GUIDOTTI,
            ),
            SetMeasure(
                "feature_agreement",
                _feature_agreement,
                "permutation importance that rules and black box have in common",
                **_BOX,
                source="L. Breiman 2001",
            ),
        )
    }
)

#: Losses of rule sets that a search may minimize, with their measures.
SET_AXES: Mapping[str, SetMeasure] = MappingProxyType(
    {
        **{m.name: m for m in SET_MEASURES.values() if not m.greater_is_better},
        "instability": SET_MEASURES["stability"],
        "prediction_instability": SET_MEASURES["prediction_stability"],
    }
)


#: Prefix of the names of gaps between groups, followed by the name of a column.
_GROUP_GAP = "group_gap:"


def axis_measure(axis: str) -> SetMeasure | None:
    """Return the measure of a loss that a search may minimize; None if there is none."""
    return named_set_measure(axis) if axis.startswith(_GROUP_GAP) else SET_AXES.get(axis)


class MinimizedQuantity(NamedTuple):
    """A loss that a search may minimize: a measure, and the conversion of its value."""

    measure: str
    loss_of: Callable[[Any], Any]


def _set_loss(measure: SetMeasure) -> MinimizedQuantity:
    is_loss = not measure.greater_is_better
    return MinimizedQuantity(measure.scorer_name, _negative if is_loss else _complement)


def minimized_quantities(*, costs: bool = True) -> dict[str, MinimizedQuantity]:
    """Return the quantities that a search can minimize, besides gaps between groups.

    Parameters
    ----------
    costs : bool, default=True
        Whether to include the costs of extraction.

    Returns
    -------
    dict of str to MinimizedQuantity
        Quantities by name, such as ``incompleteness``, one minus ``completeness_volume``.
    """
    losses = {}
    for quantity in measured_quantities(costs=costs).values():
        if quantity.complement:
            losses[quantity.complement] = MinimizedQuantity(quantity.name, _complement)
        elif not quantity.greater_is_better:
            losses[quantity.name] = MinimizedQuantity(quantity.name, _unchanged)
    return losses | {axis: _set_loss(measure) for axis, measure in SET_AXES.items()}


def minimized_quantity(name: str, *, costs: bool = True) -> MinimizedQuantity | None:
    """Return a quantity that a search can minimize by its name; None if there is none.

    Parameters
    ----------
    name : str
        A name of :func:`minimized_quantities`, or ``"group_gap:COLUMN"``.
    costs : bool, default=True
        Whether to include the costs of extraction.

    Returns
    -------
    MinimizedQuantity or None
        The measure and the conversion of its value.

    Examples
    --------
    >>> quantity = minimized_quantity("incompleteness")
    >>> quantity.measure, quantity.loss_of(0.75)
    ('completeness_volume', 0.25)
    """
    measure = axis_measure(name)
    if measure is not None:
        return _set_loss(measure)
    return minimized_quantities(costs=costs).get(name)


def _complement(value: Any) -> Any:
    return 1.0 - value


def _negative(value: Any) -> Any:
    return 0.0 - value


def _unchanged(value: Any) -> Any:
    return value
