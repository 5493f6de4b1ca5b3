"""Checks for suspicious results of a search."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skescore._names import metric_label
from skescore._text import percentage
from skescore.suspicions._facts import ResultFacts
from skescore.suspicions._record import Evidence

#: Minimum agreement of rules with the black box: share of rows, and R².
_MIN_AGREEMENT, _MIN_FIDELITY_R2 = 0.8, 0.6
#: Minimum gain in balanced accuracy of a useful black box over a constant; the balanced accuracy of
#: rare classes varies by chance.
_MIN_BALANCED_GAIN = 0.05


def find_useless_black_box(facts: ResultFacts) -> Iterator[Evidence]:
    """Yield the quality of a black box that is no better than a constant."""
    options = () if facts.other_black_box is None else ("--black-box", facts.other_black_box)
    for name in ("accuracy", "r2"):
        quality = facts.black_box_quality.get(name, math.nan)
        constant = facts.constant_quality.get(name, math.nan)
        if not quality <= constant + 1e-9 or _finds_rare_classes(facts):
            continue
        yield Evidence(
            f"The model predicts {facts.target_name!r} no better than a constant: "
            f"{metric_label(name)} {quality:.3f} on {facts.quality_rows}, against {constant:.3f} "
            "of the best constant",
            options=options,
        )


def _finds_rare_classes(facts: ResultFacts) -> bool:
    """Return whether the balanced accuracy of a black box is better than that of a constant.

    A black box with class weights finds rows of rare classes at the cost of its accuracy.
    """
    quality = facts.black_box_quality.get("balanced_accuracy", math.nan)
    constant = facts.constant_quality.get("balanced_accuracy", math.nan)
    return quality >= constant + _MIN_BALANCED_GAIN


def find_low_fidelity(facts: ResultFacts) -> Iterator[Evidence]:
    """Yield the fidelity of rules that do not describe the black box."""
    is_classification = facts.task == "classification"
    limit = _MIN_AGREEMENT if is_classification else _MIN_FIDELITY_R2
    if not facts.fidelity < limit:
        return
    rules = "rule agrees" if facts.n_rules == 1 else f"{facts.n_rules} rules agree"
    if is_classification:
        is_close = percentage(facts.fidelity) == percentage(limit)
        share = percentage(facts.fidelity, digits=int(is_close))
        text = f"The {rules} with the model on only {share} of {facts.fidelity_rows}"
    else:
        owner = "rule" if facts.n_rules == 1 else f"{facts.n_rules} rules"
        text = (
            f"The R² of the {owner} against the model is only {facts.fidelity:.2f} on "
            f"{facts.fidelity_rows}"
        )
    options = () if facts.is_fidelity_search else ("--scoring", "fidelity")
    yield Evidence(text, options=options, omitted="--max-rules" if facts.has_max_rules else "")
