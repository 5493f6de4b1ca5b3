"""Export of rules to data frames with one row per rule, or per condition for spreadsheets."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._rule import LinearOutput

if TYPE_CHECKING:
    import pandas as pd

    from skescore.rules._ruleset import RuleSet

#: Value of the fallback in the column ``rule``.
OTHERWISE = "otherwise"
#: Operators of conditions on missing values; the last one is appended to other operators.
MISSING, NOT_MISSING, OR_MISSING = "is missing", "is known", " or missing"
#: Name of the column of outputs, which also states the task.
OUTPUT_COLUMNS = {"classification": "class", "regression": "number"}
#: Pattern of texts that spreadsheets evaluate or convert: "=1+1", "-x", "10-20", "3/4", "5 %".
_CONVERTED = re.compile(r"[=+\-@].*|[\d .,:/%-]+")


def cell(value: Any) -> Any:
    """Return the content of a cell; texts that readers would convert are quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    # Readers of CSV files and spreadsheets would convert other texts.
    is_plain = value == value.strip() and value.isprintable() and value[:1] not in {"", '"', "["}
    is_plain = is_plain and not _CONVERTED.fullmatch(value)
    if is_plain and value.lower() not in {"true", "false", "nan", "na", "n/a", "null", "none"}:
        try:
            float(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False)


def _comparisons(
    condition: Condition, rule_name: str, names: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """Yield a condition as operators and values."""
    if isinstance(condition, Missing):
        yield (NOT_MISSING if condition.negated else MISSING), None
    elif isinstance(condition, Interval | OneOf) and condition.missing:
        for sign, value in _comparisons(replace(condition, missing=False), rule_name, names):
            yield sign + OR_MISSING, value
    elif isinstance(condition, Interval):
        if condition.lower == condition.upper:
            yield "=", condition.lower
            return
        if condition.lower > -math.inf:
            yield (">=" if condition.lower_closed else ">"), condition.lower
        if condition.upper < math.inf:
            yield ("<=" if condition.upper_closed else "<"), condition.upper
    elif isinstance(condition, OneOf):
        # Always a list, because "= 3" is a comparison of numbers.
        values = json.dumps(list(condition.values), ensure_ascii=False)
        yield ("not in" if condition.negated else "in"), values
    else:
        raise ValueError(
            f"{rule_name} has the condition {condition.to_text(names)}, which does not fit into "
            "one cell. Use to_json(), which supports all rules."
        )


#: Columns of statistics in regression.
_MEASURES = ["mean", "standard_deviation", "model_error", "target_error"]


def to_frame(ruleset: RuleSet) -> pd.DataFrame:
    """Write one row per rule; see :meth:`RuleSet.to_frame`."""
    import pandas as pd

    records = []
    for rule in ruleset.rules:
        output = rule.output
        record: dict[str, Any] = {
            "premise": rule.premise_text(ruleset.feature_names) or "(always)",
            "output": output.to_text(ruleset.feature_names, ruleset.domain)
            if isinstance(output, LinearOutput)
            else output,
            "conditions": rule.n_conditions,
            "rows": None if rule.statistics is None else rule.statistics.n_rows,
        }
        if ruleset.voting:
            weight = rule.weight
            row_by_row = isinstance(weight, LinearOutput)
            record["weight"] = rule.weight_text(ruleset.feature_names) if row_by_row else weight
        if ruleset.classes is not None:
            output_index = ruleset.output_index(rule)
            record["purity"] = rule.purity(output_index)
            record["correctness"] = rule.correctness(output_index)
        else:
            record |= {name: getattr(rule.statistics, name, None) for name in _MEASURES}
        records.append(record)
    columns = ["premise", "output", "conditions", "rows"]
    columns += ["weight"] if ruleset.voting else []
    columns += ["purity", "correctness"] if ruleset.classes is not None else _MEASURES
    index = pd.RangeIndex(1, len(records) + 1, name="rule")
    return pd.DataFrame.from_records(records, columns=columns).set_axis(index)


def to_conditions(ruleset: RuleSet) -> pd.DataFrame:
    """Write one row per condition; see :meth:`RuleSet.to_conditions`."""
    import pandas as pd

    output = OUTPUT_COLUMNS[ruleset.task]
    records: list[dict[str, Any]] = []
    for number, rule in enumerate(ruleset.rules, 1):
        rule_name = f"Rule {number}"
        if isinstance(rule.output, LinearOutput) or isinstance(rule.weight, LinearOutput):
            raise ValueError(
                f"{rule_name} predicts a sum of features, which does not fit into one cell. Use "
                "to_json(), which supports all rules."
            )
        shared = {output: cell(rule.output)}
        if ruleset.voting is not None:
            shared["weight"] = rule.weight
        if rule.statistics is not None:
            shared["rows"] = rule.statistics.n_rows
        parts: list[dict[str, Any]] = []
        for condition in rule.conditions:
            for sign, value in _comparisons(condition, rule_name, ruleset.feature_names):
                feature = cell(ruleset.feature_names[condition.features[0]])
                parts.append({"feature": feature, "operator": sign, "value": value})
        records += [{"rule": number, **part, **shared} for part in parts or [{}]]
    fallback = ruleset.fallback
    if fallback is not None:
        if fallback.policy != "default":
            raise ValueError(
                f"The fallback has policy={fallback.policy!r}, which does not fit into one cell. "
                "Use to_json(), or replace(fallback=Fallback(output))."
            )
        records.append({"rule": OTHERWISE, output: cell(fallback.output)})
    columns = ["rule", "feature", "operator", "value", output]
    columns += [c for c in ("weight", "rows") if any(c in record for record in records)]
    return pd.DataFrame({c: pd.Series([r.get(c) for r in records], dtype=object) for c in columns})
