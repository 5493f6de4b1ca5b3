"""Export of rule sets to JavaScript functions without dependencies."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from skescore.rules.exporters._common import always_predicts
from skescore.rules.exporters.programs._braces import BraceProgram, conjunction

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Largest integer up to which JavaScript's numbers represent all integers exactly.
_MAX_SAFE_INTEGER = 2**53 - 1
_RESERVED = re.findall(
    r"\w+",
    """
arguments await break case catch class const continue debugger default delete do else enum eval
export extends false finally for function if implements import in instanceof interface let new
null package private protected public return static super switch this throw true try typeof var
void while with yield undefined NaN Infinity Number BigInt Array Error TypeError module row value
label number sums total weight weights covered labels winner k name index
""",
)
_NUMBER_HELPER = """\
  const number = (name, index) => {
    const value = read(name, index);
    if (value === null || value === undefined) return NaN;
    if (!["number", "bigint", "boolean"].includes(typeof value)) {
      throw new TypeError(`${name} must be a number, null or NaN, got ${typeof value} ${value}.`);
    }
    return Number(value);
  };"""
_LABEL_HELPER = """\
  const label = (name, index) => {
    let value = read(name, index);
    if (value === undefined || Number.isNaN(value)) return null;
    if (typeof value === "boolean" || typeof value === "bigint") {
      value = Number.isSafeInteger(Number(value)) ? Number(value) : value;
    }
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value;
  };"""
_READ_HELPER = """\
  const read = (name, index) => {
    if (Array.isArray(row)) return row[index];
    if (!(name in row)) throw new Error(`The row has no feature ${name}; use null if missing.`);
    return row[name];
  };"""
_WINNER = """\
  let winner = 0;
  for (let k = 1; k < sums.length; k++) {
    if (sums[k] > sums[winner]) winner = k;
  }"""
#: Infinite weights may cancel to NaN; like NumPy's argmax, the first NaN is the largest value.
_WINNER_WITH_NAN = """\
  let winner = Math.max(sums.findIndex(Number.isNaN), 0);
  for (let k = 1; k < sums.length; k++) {
    if (sums[k] > sums[winner]) winner = k;
  }"""


def quoted(text: str) -> str:
    """Write a text as a JavaScript literal that is safe in all encodings and in HTML."""
    literal = json.dumps(text, ensure_ascii=False)
    unsafe = r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]|<(?=[/!])"
    return re.sub(unsafe, lambda match: f"\\u{ord(match[0]):04x}", literal)


class _JavaScript(BraceProgram):
    """Writer of a JavaScript function."""

    language = "JavaScript"
    equal, unequal, is_nan = "===", "!==", "Number.isNaN"

    def __init__(self, ruleset: RuleSet, name: str) -> None:
        super().__init__(ruleset, [*_RESERVED, name, "read"])
        self.name = name

    def number(self, value: float) -> str:
        value = float(value)
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value).removesuffix(".0")

    def label(self, value: Any) -> str:
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            if abs(value) > _MAX_SAFE_INTEGER:
                raise ValueError(
                    f"The class {value} is beyond {_MAX_SAFE_INTEGER}, the largest whole number "
                    "that JavaScript's numbers hold exactly. Make the classes texts."
                )
            return str(value)
        return self.number(value)

    def is_one_of(self, name: str, values: tuple[Any, ...], *, negated: bool) -> str:
        literals = [self._category(value) for value in values]
        if len(literals) == 1:
            return f"{name} {self.unequal if negated else self.equal} {literals[0]}"
        return f"{'!' if negated else ''}[{', '.join(literals)}].includes({name})"

    def _category(self, value: Any) -> str:
        """Write a value in the form that the JavaScript function `label` returns."""
        if isinstance(value, str):
            return quoted(value)
        if not math.isfinite(value):
            return self.number(value)
        if value == int(value):
            suffix = "" if abs(value) <= _MAX_SAFE_INTEGER else "n"
            return f"{int(value)}{suffix}"
        return self.number(value)

    def count(self, conditions: list[str]) -> str:
        return " + ".join(f"({text})" for text in conditions)

    def source(self) -> str:
        """Return the source of the function."""
        lines = [
            f"// {self.title()} predict{'' if self.ruleset.voting else 's'}.",
            "// The row is an object of features, or an array of all features in this order;",
            "// null, undefined and NaN are missing values.",
            *(f"//   {i}: {quoted(name)}" for i, name in enumerate(self.ruleset.feature_names)),
            f"function {self.name}(row) {{",
            *self._reading(),
            *(self._joint_prediction() if self.ruleset.voting else self._first_prediction()),
            "}",
            "",
            f'if (typeof module !== "undefined") module.exports = {{ {self.name} }};',
        ]
        return "\n".join(lines) + "\n"

    def _reading(self) -> list[str]:
        n_features = self.ruleset.n_features
        lines = [
            f"  if (Array.isArray(row) && row.length !== {n_features}) {{",
            f"    throw new Error(`The row must hold {n_features} value"
            f"{'' if n_features == 1 else 's'}, got ${{row.length}}.`);",
            "  }",
        ]
        variables = self.variables()
        if variables:
            lines.append(_READ_HELPER)
        if any(is_number for *_, is_number in variables):
            lines.append(_NUMBER_HELPER)
        if not all(is_number for *_, is_number in variables):
            lines.append(_LABEL_HELPER)
        for name, feature, is_number in variables:
            key = quoted(self.ruleset.feature_names[feature])
            lines.append(
                f"  const {name} = {'number' if is_number else 'label'}({key}, {feature});"
            )
        return lines

    def _where(self, index: int, statements: list[str]) -> list[str]:
        """Write statements that are executed if a rule holds."""
        rule = self.ruleset.rules[index]
        lines = [f"  // {self.comment(index)}"]
        if not rule.conditions:
            return [*lines, *(f"  {statement}" for statement in statements)]
        lines += conjunction(self.premise(rule), 2, "if (", ") {")
        return [*lines, *(f"    {statement}" for statement in statements), "  }"]

    def _first_prediction(self) -> list[str]:
        lines: list[str] = []
        for index in self.rule_order:
            output = self.output(self.ruleset.rules[index].output)
            lines += self._where(index, [f"return {output};"])
        if always_predicts(self.ruleset):
            return lines
        return [*lines, "  // No rule holds.", f"  {self._fallback_statement()}"]

    def _fallback_statement(self) -> str:
        prediction = self.fallback()
        if prediction is None:
            return 'throw new Error("No rule holds for this row.");'
        return f"return {prediction};"

    def _joint_prediction(self) -> list[str]:
        is_vote, is_mean = self.ruleset.task == "classification", self.ruleset.voting == "mean"
        zeros = ", ".join("0" for _ in self.classes)
        lines = [f"  const sums = [{zeros}];" if is_vote else "  let total = 0;"]
        lines += ["  let weights = 0;"] if is_mean else []
        lines += ["  let covered = false;"] if self.needs_cover else []
        lines += ["  let weight;"] if self.has_linear_weights else []
        for index in self.rule_order:
            lines += self._where(index, self.contribution_statements(index))
        if is_mean:
            lines.append("  if (weights > 0) return total / weights;")
            return [*lines, f"  {self._fallback_statement()}"]
        if self.needs_cover:
            lines.append(f"  if (!covered) {self._fallback_statement()}")
        if not is_vote:
            return [*lines, "  return total;"]
        labels = ", ".join(map(self.label, self.classes))
        winner = _WINNER_WITH_NAN if self.has_linear_weights else _WINNER
        return [*lines, winner, f"  return [{labels}][winner];"]


def to_javascript(ruleset: RuleSet, function_name: str = "predict") -> str:
    """Write a rule set as the source of a JavaScript function without dependencies.

    Use it in web pages, in Node.js, or as a user-defined function of a data warehouse. The
    predictions for one row are identical to those of :meth:`skescore.rules.RuleSet.predict`.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    function_name : str, default="predict"
        Name of the function.

    Returns
    -------
    str
        Source for ECMAScript 2020 or newer. The function takes an object of features, or an array
        in their order; integers beyond 2**53 must be BigInt. Node.js loads the file with
        ``require``.

    Raises
    ------
    ValueError
        If `function_name` is invalid, the fallback is the nearest rule, or a class exceeds 2**53.

    Notes
    -----
    For a row without a prediction, the function throws an Error.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> from skescore.rules.exporters import to_javascript
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa")],
    ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
    ... )
    >>> source = to_javascript(rules)
    >>> print(source[source.index("  const petal"):])
      const petalLengthCm = number("petal length (cm)", 0);
      // Rule 1
      if (petalLengthCm <= 2.5) {
        return "setosa";
      }
      // No rule holds.
      return "versicolor";
    }
    <BLANKLINE>
    if (typeof module !== "undefined") module.exports = { predict };
    <BLANKLINE>
    """
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", function_name, re.ASCII) or function_name in _RESERVED:
        raise ValueError(
            f"function_name must be a name that JavaScript allows, got {function_name!r}. Use "
            "letters, digits and underscores, but no digit at the start."
        )
    return _JavaScript(ruleset, function_name).source()
