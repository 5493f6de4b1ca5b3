"""Results of a verification."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from skescore._views import find_view
from skescore.rules import Rule, RuleSet
from skescore.verification._intervals import ShareInterval
from skescore.verification._picture import DisagreementMap
from skescore.verification._witness import Witness

JSON_FORMAT = "skescore.Verification"
_VERSION = 1


@dataclass(frozen=True)
class ProvenShares:
    """Shares of a region by proof status.

    Parameters
    ----------
    agreeing, disagreeing, unknown : float
        Shares that sum to 1.
    """

    agreeing: float
    disagreeing: float
    unknown: float

    def to_dict(self) -> dict[str, float]:
        """Return the shares as JSON values."""
        return {
            "agreeing": self.agreeing,
            "disagreeing": self.disagreeing,
            "unknown": self.unknown,
        }


@dataclass(frozen=True)
class TrustedPart:
    """Part of a rule in which agreement with the model is proven.

    Parameters
    ----------
    rule : Rule
        Rule with further conditions; the model agrees wherever this rule predicts in the domain.
    feature_names : tuple of str
        Names of the features of its conditions.
    n_rows : int
        Number of rows of the data in the part.
    row_share, volume_share : float
        Shares of the rule's rows and of the volume of its region.
    """

    rule: Rule
    feature_names: tuple[str, ...]
    n_rows: int
    row_share: float
    volume_share: float

    def to_text(self) -> str:
        """Return the part as the text of a rule."""
        return self.rule.to_text(self.feature_names)

    def to_dict(self, ruleset: RuleSet) -> dict[str, Any]:
        """Return the part as JSON values."""
        alone = RuleSet([self.rule], self.feature_names, task=ruleset.task, classes=ruleset.classes)
        return {
            "rules": json.loads(alone.to_json()),
            "n_rows": self.n_rows,
            "row_share": self.row_share,
            "volume_share": self.volume_share,
        }


@dataclass(frozen=True)
class OutputRange:
    """Range of the model's output in the region of a rule.

    Parameters
    ----------
    lower, upper : float or None
        Proven bounds: of the probability of the rule's class, or of the predicted number. None if
        nothing is proven.
    observed_lower, observed_upper : float or None
        Smallest and largest output that was observed.
    """

    lower: float | None
    upper: float | None
    observed_lower: float | None
    observed_upper: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Return the range as JSON values."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "observed_lower": self.observed_lower,
            "observed_upper": self.observed_upper,
        }


@dataclass(frozen=True)
class RuleVerification:
    """Agreement of a model with one rule.

    Parameters
    ----------
    index : int
        Index of the rule; -1 for uncovered rows, which the fallback predicts.
    output : label, number or LinearOutput
        Prediction of the rule.
    n_rows : int
        Number of rows of the data that the rule predicts.
    volume, near_rows : float
        Share of the domain in the rule's region, and mass of the region near the data, in rows.
    volume_disagreement, near_disagreement : ShareInterval
        Share of the region in which the model has another prediction.
    volume_proven, near_proven : ProvenShares or None
        Shares that are proven without sampling; None for a region without mass.
    witness : Witness or None
        Row of disagreement as close to the data as possible; None if none was found.
    worst : Witness or None
        Row of disagreement on which the model is most confident, or with the largest deviation.
    trusted : TrustedPart or None
        Largest part found in which agreement is proven.
    output_range : OutputRange
        Range of the model's output in the region.
    max_deviation : float or None
        Proven upper bound of the deviation; None in classification or without a proof.
    """

    index: int
    output: Any
    n_rows: int
    volume: float
    near_rows: float
    volume_disagreement: ShareInterval
    near_disagreement: ShareInterval
    volume_proven: ProvenShares | None
    near_proven: ProvenShares | None
    witness: Witness | None
    worst: Witness | None
    trusted: TrustedPart | None
    output_range: OutputRange
    max_deviation: float | None

    def to_dict(self, ruleset: RuleSet) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "index": self.index,
            "n_rows": self.n_rows,
            "volume": self.volume,
            "near_rows": self.near_rows,
            "volume_disagreement": self.volume_disagreement.to_dict(),
            "near_disagreement": self.near_disagreement.to_dict(),
            "volume_proven": self.volume_proven and self.volume_proven.to_dict(),
            "near_proven": self.near_proven and self.near_proven.to_dict(),
            "witness": self.witness and self.witness.to_dict(),
            "worst": self.worst and self.worst.to_dict(),
            "trusted": self.trusted and self.trusted.to_dict(ruleset),
            "output_range": self.output_range.to_dict(),
            "max_deviation": self.max_deviation,
        }


@dataclass(frozen=True, eq=False)
class Verification:
    """Agreement of a rule list with a model, with proofs, intervals and witnesses.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    rules : tuple of RuleVerification
        Results by rule; the last one is for the fallback if it predicts.
    volume_disagreement, near_disagreement : ShareInterval
        Shares of the domain and of the mass near the data in which rules and model disagree, among
        rows that the rules predict.
    model : str
        Kind of the model.
    engine : {"leaf boxes", "sampling"}
        Whether the model was read exactly, or only sampled.
    reason : str
        Reason why the model was only sampled, or an empty string.
    radius : float
        Radius of the neighborhood of a row, in standard deviations of each column.
    tolerance : float or None
        Largest deviation that counts as agreement; None in classification.
    confidence : float
        Confidence of every sampled interval.
    domain : list of dict
        Columns with their kind, range, categories and share of missing values.
    n_queries : int
        Number of rows for which the model was queried.
    seconds : float
        Duration.
    picture : DisagreementMap or None, default=None
        Two features around the `worst` row of the rule with the most disagreement near the data.
    """

    ruleset: RuleSet
    rules: tuple[RuleVerification, ...]
    volume_disagreement: ShareInterval
    near_disagreement: ShareInterval
    model: str
    engine: str
    reason: str
    radius: float
    tolerance: float | None
    confidence: float
    domain: list[dict[str, Any]]
    n_queries: int
    seconds: float
    picture: DisagreementMap | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rule.

        Returns
        -------
        DataFrame
            Bounds of the disagreement, proven shares, and the size of the trusted part.
        """
        records = []
        for rule in self.rules:
            trusted = rule.trusted
            records.append(
                {
                    "rule": rule.index + 1 if rule.index >= 0 else "otherwise",
                    "n_rows": rule.n_rows,
                    "volume": rule.volume,
                    "near_lower": rule.near_disagreement.lower,
                    "near_upper": rule.near_disagreement.upper,
                    "volume_lower": rule.volume_disagreement.lower,
                    "volume_upper": rule.volume_disagreement.upper,
                    "proven_near": rule.near_proven.agreeing if rule.near_proven else None,
                    "trusted_rows": trusted.row_share if trusted else 0.0,
                    "trusted_volume": trusted.volume_share if trusted else 0.0,
                    "has_witness": rule.witness is not None,
                }
            )
        return pd.DataFrame(records)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the result as JSON, for :func:`check_verification`."""
        data = {
            "format": JSON_FORMAT,
            "version": _VERSION,
            "model": self.model,
            "engine": self.engine,
            "reason": self.reason,
            "radius": self.radius,
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "domain": self.domain,
            "volume_disagreement": self.volume_disagreement.to_dict(),
            "near_disagreement": self.near_disagreement.to_dict(),
            "rules": [rule.to_dict(self.ruleset) for rule in self.rules],
            "ruleset": json.loads(self.ruleset.to_json()),
            "n_queries": self.n_queries,
            "seconds": self.seconds,
            "picture": self.picture and self.picture.to_dict(),
        }
        return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)

    def to_html(self) -> str:
        """Return the result as a self-contained HTML page."""
        return str(find_view("verification.html")(self))

    def _repr_html_(self) -> str:
        return str(find_view("verification.view")(self))

    def to_text(self) -> str:
        """Describe the result in sentences."""
        proof = (
            "The model was read exactly: proofs hold for every row of the domain."
            if self.engine == "leaf boxes"
            else f"The model was only sampled, so all shares are estimates. {self.reason}"
        )
        lines = [
            f"{len(self.ruleset)} rules compared with {self.model}. {proof}",
            f"Disagreement near the data: {self.near_disagreement}",
            f"Disagreement in the domain by volume: {self.volume_disagreement}",
        ]
        if self.tolerance is not None:
            lines.append(f"Deviations of more than {self.tolerance:.4g} are disagreements.")
        for rule in self.rules:
            lines += ["", *_rule_lines(self.ruleset, rule)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


def rule_title(ruleset: RuleSet, index: int) -> str:
    """Return the text of a rule, or of the fallback for -1."""
    if index >= 0:
        return ruleset.line(index)
    output = ruleset.fallback.output if ruleset.fallback else None
    return f"otherwise, where no rule holds: {output}"


def _share_text(interval: ShareInterval) -> str:
    return "no mass" if math.isnan(interval.lower) else f"disagreement in {interval}"


def _rule_lines(ruleset: RuleSet, rule: RuleVerification) -> list[str]:
    """Return lines of text that describe the result of one rule."""
    lines = [
        rule_title(ruleset, rule.index),
        f"   near the data: {_share_text(rule.near_disagreement)}",
        f"   by volume ({100 * rule.volume:.3g} % of the domain): "
        f"{_share_text(rule.volume_disagreement)}",
    ]
    if rule.max_deviation is not None:
        lines.append(f"   proven largest deviation: {rule.max_deviation:.4g}")
    if rule.trusted is not None:
        lines.append(
            f"   proven agreement: {rule.trusted.to_text()} "
            f"[{100 * rule.trusted.row_share:.3g} % of its rows, "
            f"{100 * rule.trusted.volume_share:.3g} % of its volume]"
        )
    if rule.witness is not None:
        lines.append(f"   {rule.witness.to_text()}")
    elif any(share.lower > 0 for share in (rule.near_disagreement, rule.volume_disagreement)):
        lines.append("   no example of a disagreement was found")
    else:
        lines.append("   no disagreement was found")
    if rule.worst is not None and rule.witness is not None and rule.worst != rule.witness:
        lines.append(f"   Worst: {rule.worst.to_text()}")
    return lines
