"""Contents of the page about a verification: bars, trusted parts and witnesses of each rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skescore._io import json_of
from skescore.rules import RuleSet
from skescore.verification import ShareInterval, Verification, Witness

__all__ = ["VERIFICATION", "verification_of_run", "verification_view"]

#: Name of the file in the folder of a run.
VERIFICATION = "verification.json"
#: Labels of the shares, with their keys in the JSON.
_MEASURES = (
    ("near the data", "near_disagreement", "near_proven"),
    ("by volume", "volume_disagreement", "volume_proven"),
)


def verification_view(verification: Verification | Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of the page about a verification, given as an object or its JSON."""
    data: Mapping[str, Any]
    if isinstance(verification, Verification):
        data = json.loads(verification.to_json())
    else:
        data = verification
    ruleset = RuleSet.from_json(json.dumps(data["ruleset"]))
    near, volume = (ShareInterval.from_dict(data[name]) for _, name, _ in _MEASURES)
    return {
        "model": str(data["model"]),
        "is_read": data["engine"] == "leaf boxes",
        "reason": str(data["reason"]),
        "radius": float(data["radius"]),
        "near": str(near),
        "volume": str(volume),
        "rules": [_rule_view(ruleset, record) for record in data["rules"]],
    }


def _rule_view(ruleset: RuleSet, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bars, the trusted part and the witnesses of a rule."""
    index, bars, trusted = int(record["index"]), [], record["trusted"]
    for label, name, proven_name in _MEASURES:
        interval = ShareInterval.from_dict(record[name])
        proven = record[proven_name]
        shares = interval.bar(0.0 if proven is None else float(proven["agreeing"]))
        bars.append(
            {
                "label": label,
                "text": "no mass" if not shares else f"{interval} disagree",
                "parts": [(part, round(100 * share, 3)) for part, share in shares.items()],
            }
        )
    witnesses = []
    for name in ("witness", "worst"):
        if record[name] is not None and record[name] not in witnesses:
            witnesses.append(record[name])
    return {
        "name": f"Rule {index + 1}" if index >= 0 else "Otherwise",
        "title": _premise(ruleset, index),
        "bars": bars,
        "trusted": "" if trusted is None else _trusted_rule(trusted),
        "trusted_share": ""
        if trusted is None
        else f"{100 * trusted['row_share']:.3g} % of its rows, "
        f"{100 * trusted['volume_share']:.3g} % of its volume",
        "witnesses": [Witness(**witness).to_text() for witness in witnesses],
    }


def _premise(ruleset: RuleSet, index: int) -> str:
    """Return the text of a rule without its statistics, or of the fallback."""
    if index < 0:
        output = ruleset.fallback.output if ruleset.fallback else None
        return f"where no rule holds: {output}"
    return ruleset.line(index).partition("   [")[0]


def _trusted_rule(record: Mapping[str, Any]) -> str:
    """Write the part of a rule in which agreement is proven."""
    rules = RuleSet.from_json(json.dumps(record["rules"]))
    return rules.rules[0].to_text(rules.feature_names)


def verification_of_run(folder: Path, rules: RuleSet) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the verification in the folder of a run, and notes on why it cannot be shown."""
    path = folder / VERIFICATION
    try:
        data = json_of(path.read_text(encoding="utf-8"))
        verified_rules = RuleSet.from_json(json.dumps(data["ruleset"]))
        view = verification_view(data)
    except FileNotFoundError:
        return None, []
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        return None, [f"{path.name} cannot be read: {error}"]
    if verified_rules != rules:
        return None, [f"{path.name} belongs to other rules, so it is not shown."]
    return view, []
