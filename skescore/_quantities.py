"""Quantities that are measured for every candidate.

Leaderboards, files, plots, the report page and the limits of a search derive from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from skescore._scores import SCORE_SPECS

__all__ = [
    "DISAGREEMENT",
    "MAX_DISAGREEMENT",
    "MeasuredQuantity",
    "QuantityLimit",
    "limited_quantities",
    "measured_quantities",
]


@dataclass(frozen=True)
class QuantityLimit:
    """Limit that the winner of a search has to satisfy.

    Parameters
    ----------
    parameter : str
        Parameter of searches, also the command-line option.
    text : str
        Description of the limit, with ``{value:g}`` and ``{s}`` for the plural of the unit.
    help : str
        Help text of the option.
    smallest : float, optional
        Smallest useful limit.
    of_final_rules : bool, default=False
        Whether the limit applies to the rules extracted from all rows, if there are any. Otherwise
        it applies to the mean over the folds.
    """

    parameter: str
    text: str
    help: str
    smallest: float | None = None
    of_final_rules: bool = False


@dataclass(frozen=True)
class MeasuredQuantity:
    """Number that is measured for every candidate on every fold.

    Parameters
    ----------
    name : str
        Name in results, leaderboards and files.
    label : str
        Label of an axis.
    heading : str
        Heading of a column.
    greater_is_better : bool, default=False
        Whether larger values are better.
    is_cost : bool, default=False
        Whether it measures the extraction instead of the rules.
    is_score_part : bool, default=True
        Whether a score may depend on it. Results of a search may lack other quantities.
    is_count : bool, default=False
        Whether single measurements are integers.
    is_printed : bool, default=False
        Whether the leaderboard printed by ``skescore tune`` has a column for it.
    digits : int, default=3
        Decimal places in tables.
    complement : str, default=""
        Name of one minus the quantity, which a search can minimize.
    complement_label : str, default=""
        Label of an axis with the complement.
    limit : QuantityLimit, optional
        Limit that a search can set: an upper limit if smaller is better, otherwise a lower limit.
    """

    name: str
    label: str
    heading: str
    greater_is_better: bool = False
    is_cost: bool = False
    is_score_part: bool = True
    is_count: bool = False
    is_printed: bool = False
    digits: int = 3
    complement: str = ""
    complement_label: str = ""
    limit: QuantityLimit | None = None

    @property
    def sign(self) -> float:
        """1 if greater is better, -1 if smaller is better."""
        return 1.0 if self.greater_is_better else -1.0


#: Labels of the built-in scores' measures of the predictions.
_PREDICTION_LABELS = {
    "performance": "predictive performance p",
    "loss": "predictive loss p",
    "loss_q": "predictive loss of Q",
}
_MIN_PERFORMANCE = QuantityLimit(
    "min_performance",
    "a performance of at least {value:g}",
    "smallest performance on held-out rows that the winner may have",
)
_OTHER_QUANTITIES = (
    MeasuredQuantity(
        "n_rules",
        "number of rules",
        "rules",
        is_count=True,
        is_printed=True,
        digits=1,
        limit=QuantityLimit(
            "max_rules",
            "at most {value:g} rule{s}",
            "largest number of rules that the winner may have",
            1.0,
            of_final_rules=True,
        ),
    ),
    MeasuredQuantity("size", "size r", "size", is_count=True, digits=1),
    MeasuredQuantity(
        "completeness_volume",
        "completeness c (share of volume)",
        "space covered",
        greater_is_better=True,
        is_printed=True,
        complement="incompleteness",
        complement_label="incompleteness, 1 − c (share of {completeness})",
    ),
    MeasuredQuantity(
        "completeness_instances",
        "coverage (share of rows)",
        "rows covered",
        greater_is_better=True,
        is_printed=True,
        complement="incompleteness_instances",
        complement_label="incompleteness (share of rows)",
    ),
    MeasuredQuantity(
        "correctness",
        "correctness (accuracy or R² against the data, held-out rows)",
        "right (data)",
        greater_is_better=True,
        is_score_part=False,
    ),
    MeasuredQuantity(
        "fidelity",
        "fidelity (accuracy or R² against the model, unseen rows)",
        "agree (model)",
        greater_is_better=True,
        is_score_part=False,
        limit=QuantityLimit(
            "min_fidelity",
            "a fidelity of at least {value:g}",
            "smallest fidelity on unseen rows that the winner may have",
        ),
    ),
    MeasuredQuantity("seconds", "time (s)", "seconds", is_cost=True, is_printed=True),
    MeasuredQuantity(
        "black_box_calls", "calls of the black box", "calls", is_cost=True, is_count=True
    ),
    MeasuredQuantity("black_box_rows", "rows queried", "queries", is_cost=True, is_count=True),
)
MAX_DISAGREEMENT = QuantityLimit(
    "max_disagreement",
    "a verified disagreement of at most {value:g}",
    "verify up to five candidates, the best first, and select the first one whose disagreement "
    "with the model near the data has an upper bound of at most this share",
    0.0,
)
#: Quantity measured by a verification after the search, for some candidates on all rows.
DISAGREEMENT = MeasuredQuantity(
    "disagreement",
    "disagreement (share of the neighborhood of the data, upper bound)",
    "disagree (verified)",
    is_score_part=False,
    is_printed=True,
    limit=MAX_DISAGREEMENT,
)


def measured_quantities(*, costs: bool = True) -> dict[str, MeasuredQuantity]:
    """Return all measured quantities by name, in the order of their columns.

    Parameters
    ----------
    costs : bool, default=True
        Whether to include quantities on which no score depends, such as the costs of extraction.

    Returns
    -------
    dict of str to MeasuredQuantity
        Quantities by name, first the measures of the predictions of the registered scores.
    """
    quantities = {
        spec.kept_as: MeasuredQuantity(
            spec.kept_as,
            _PREDICTION_LABELS.get(spec.kept_as, f"predictive {spec.prediction} of {spec.label}"),
            spec.kept_as.replace("_", " "),
            greater_is_better=spec.prediction == "performance",
            limit=_MIN_PERFORMANCE if spec.kept_as == "performance" else None,
        )
        for spec in SCORE_SPECS.values()
    }
    other_quantities = (
        q for q in _OTHER_QUANTITIES if costs or (q.is_score_part and not q.is_cost)
    )
    return quantities | {quantity.name: quantity for quantity in other_quantities}


def limited_quantities() -> dict[str, MeasuredQuantity]:
    """Return the quantities that a search can limit, by the parameter of the limit.

    Returns
    -------
    dict of str to MeasuredQuantity
        Quantities by parameter, upper limits first.
    """
    quantities = measured_quantities().values()
    return {
        quantity.limit.parameter: quantity
        for quantity in sorted(quantities, key=lambda quantity: quantity.greater_is_better)
        if quantity.limit is not None
    }
