"""Export of rule sets to Java classes without dependencies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skescore.rules.exporters._common import abstention, always_predicts
from skescore.rules.exporters.programs._braces import BraceProgram, conjunction

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_RESERVED = re.findall(
    r"\w+",
    """
abstract assert boolean break byte case catch char class const continue default do double else
enum extends final finally float for goto if implements import instanceof int interface long
native new package private protected public return short static strictfp super switch synchronized
this throw throws transient try void volatile while true false null var record yield sealed
permits row value values name sums total weight weights covered winner decide predict number label
read isOneOf count key
""",
)
_MAX_LONG = 2**63 - 1
#: Largest number of rules: a class file has at most 65,535 constants, and a rule needs about ten.
_MAX_RULES = 5000
#: Largest number of rules per method; longer methods are not compiled, and 64 KB is the maximum.
_RULES_PER_METHOD = 300
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"'}
_ESCAPES["\\"] = "\\\\"
_HELPERS = """\
    private static Object read(Map<String, ?> row, String name) {
        if (!row.containsKey(name)) {
            throw new IllegalArgumentException(
                "The row has no feature " + name + "; use null if it is missing.");
        }
        return row.get(name);
    }
"""
_NUMBER_HELPER = """\
    private static double number(Map<String, ?> row, String name) {
        Object value = read(row, name);
        if (value == null) {
            return Double.NaN;
        }
        if (value instanceof Boolean) {
            return (Boolean) value ? 1.0 : 0.0;
        }
        if (value instanceof Number) {
            return ((Number) value).doubleValue();
        }
        throw new IllegalArgumentException(
            name + " must be a number or null, got " + value.getClass().getName() + " " + value);
    }
"""
#: Converts equal numbers of different types to equal objects, so that `equals` compares them.
_LABEL_HELPER = """\
    private static Object label(Map<String, ?> row, String name) {
        Object value = read(row, name);
        if (value instanceof Boolean) {
            return (Boolean) value ? BigDecimal.ONE : BigDecimal.ZERO;
        }
        if (value instanceof Double || value instanceof Float || value instanceof BigDecimal) {
            double number = ((Number) value).doubleValue();
            if (Double.isNaN(number)) {
                return null;
            }
            return Double.isInfinite(number) ? (Object) number : plain(new BigDecimal(number));
        }
        return value instanceof Number ? plain(new BigDecimal(value.toString())) : value;
    }

    private static BigDecimal plain(BigDecimal number) {
        return number.signum() == 0 ? BigDecimal.ZERO : number.stripTrailingZeros();
    }
"""
_ONE_OF_HELPER = """\
    private static boolean isOneOf(Object value, Object... values) {
        return Arrays.asList(values).contains(value);
    }
"""
_COUNT_HELPER = """\
    private static int count(boolean... conditions) {
        int total = 0;
        for (boolean condition : conditions) {
            total += condition ? 1 : 0;
        }
        return total;
    }
"""
_WINNER = """\
        int winner = 0;
        for (int k = 1; k < sums.length; k++) {
            if (sums[k] > sums[winner]) {
                winner = k;
            }
        }"""
#: Infinite weights may cancel to NaN; like NumPy's argmax, the first NaN is the largest value.
_WINNER_WITH_NAN = """\
        int winner = 0;
        for (int k = 1; k < sums.length; k++) {
            if (!Double.isNaN(sums[winner]) && !(sums[k] <= sums[winner])) {
                winner = k;
            }
        }"""


def quoted(text: str) -> str:
    """Write a text as a Java literal in plain ASCII."""
    parts = []
    for character in text:
        code = ord(character)
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif code < 0x20 or code == 0x7F:
            parts.append(f"\\{code:03o}")
        elif code < 0x7F:
            parts.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            parts += [f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)]
    return f'"{"".join(parts)}"'


def _comment_text(text: str) -> str:
    """Write a literal that neither ends a comment nor is an invalid Unicode escape."""
    return quoted(text).replace("*/", "*'/")


class _Java(BraceProgram):
    """Writer of a Java class."""

    language = "Java"
    equal, unequal, is_nan = "==", "!=", "Double.isNaN"

    def __init__(self, ruleset: RuleSet, class_name: str, package: str | None) -> None:
        super().__init__(ruleset, [*_RESERVED, class_name])
        self.name, self.package = class_name, package
        if len(self.rule_order) > _MAX_RULES:
            raise ValueError(
                f"A Java class holds at most {_MAX_RULES} rules, got {len(self.rule_order)}. Use "
                "fewer rules, or export them to ONNX or SQL."
            )
        self._uses_lists = self._counts = False

    def number(self, value: float) -> str:
        value = float(value)
        if math.isnan(value):
            return "Double.NaN"
        if math.isinf(value):
            return f"Double.{'POSITIVE' if value > 0 else 'NEGATIVE'}_INFINITY"
        return repr(value)

    def label(self, value: Any) -> str:
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, int):
            return self.number(value)
        if abs(value) > _MAX_LONG:
            raise ValueError(
                f"The class {value} exceeds 2**63 - 1 in absolute value. Make the classes texts."
            )
        return f"{value}L"

    def is_one_of(self, name: str, values: tuple[Any, ...], *, negated: bool) -> str:
        literals = [self._category(value) for value in values]
        sign = "!" if negated else ""
        if len(literals) == 1:
            return f"{sign}{literals[0]}.equals({name})"
        self._uses_lists = True
        return f"{sign}isOneOf({name}, {', '.join(literals)})"

    def _category(self, value: Any) -> str:
        """Write a value in the form that the Java method `label` returns."""
        if isinstance(value, str):
            return quoted(value)
        if not math.isfinite(value):
            return f"Double.valueOf({self.number(value)})"
        if value == 0:
            return "BigDecimal.ZERO"
        # Like the value in the row, the float is expanded to an exact decimal.
        exact = str(int(value)) if value == int(value) else None
        text = f'"{exact}"' if exact else repr(float(value))
        return f"new BigDecimal({text}).stripTrailingZeros()"

    def count(self, conditions: list[str]) -> str:
        self._counts = True
        return f"count({', '.join(conditions)})"

    # --- source -----------------------------------------------------------------------------------

    def source(self) -> str:
        """Return the source of the class."""
        rules = [line for index in self.rule_order for line in self._rule_method(index)]
        fields = [
            f"    private final {'double' if is_number else 'Object'} {name};"
            for name, _, is_number in self.variables()
        ]
        lines = [
            *([f"package {self.package};", ""] if self.package else []),
            *self._imports(),
            "/**",
            f" * {self.title()} predict{'' if self.ruleset.voting else 's'}. Features:",
            *(f" * {i}: {_comment_text(n)}" for i, n in enumerate(self.ruleset.feature_names)),
            " */",
            f"public final class {self.name} {{",
            *fields,
            *self._joint_fields(),
            *([""] if fields or self.ruleset.voting else []),
            *self._constructor(),
            "",
            "    /** Predicts one row; null and NaN are missing values. */",
            f"    public static {self.return_type} predict(Map<String, ?> row) {{",
            f"        return new {self.name}(row).decide();",
            "    }",
            "",
            *(self._joint_decision() if self.ruleset.voting else self._first_decision()),
            *rules,
        ]
        return "\n".join(lines) + "\n" + self._helpers() + "}\n"

    @property
    def return_type(self) -> str:
        """Java type of the predictions."""
        if self.ruleset.task == "regression":
            return "double"
        labels, fallback = list(self.classes), self.ruleset.fallback
        if fallback is not None and fallback.policy == "abstain":
            labels.append(abstention(self.ruleset))
        kinds = {type(label) for label in labels}
        names = {str: "String", int: "long", float: "double", bool: "boolean"}
        return names[kinds.pop()] if len(kinds) == 1 else "Object"

    def _imports(self) -> list[str]:
        has_labels = not all(is_number for *_, is_number in self.variables())
        modules = ["java.math.BigDecimal"] if has_labels else []
        modules += ["java.util.Arrays"] if self._uses_lists else []
        return [*(f"import {module};" for module in modules), "import java.util.Map;", ""]

    def _constructor(self) -> list[str]:
        lines = [f"    private {self.name}(Map<String, ?> row) {{"]
        for name, feature, is_number in self.variables():
            key = quoted(self.ruleset.feature_names[feature])
            lines.append(f"        {name} = {'number' if is_number else 'label'}(row, {key});")
        return [*lines, "    }"]

    def _rule_method(self, index: int) -> Iterator[str]:
        """Write the method that returns whether a rule holds."""
        yield ""
        yield f"    // {self.comment(index).replace('±', '+/-')}"
        yield f"    private boolean rule{index + 1}() {{"
        yield from conjunction(self.premise(self.ruleset.rules[index]), 8, "return ", ";")
        yield "    }"

    def _fallback_statement(self) -> str:
        prediction = self.fallback()
        if prediction is None:
            return 'throw new IllegalArgumentException("No rule holds for this row.");'
        return f"return {prediction};"

    def _first_decision(self) -> list[str]:
        lines = [f"    private {self.return_type} decide() {{"]
        for index in self.rule_order:
            rule = self.ruleset.rules[index]
            statement = f"return {self.output(rule.output)};"
            if rule.conditions:
                lines += [f"        if (rule{index + 1}()) {{", f"            {statement}"]
                lines.append("        }")
            else:
                lines.append(f"        {statement}")
        if not always_predicts(self.ruleset):
            lines.append(f"        {self._fallback_statement()}")
        return [*lines, "    }"]

    def _joint_fields(self) -> list[str]:
        """Write the declarations of the sums of voting rules."""
        if self.ruleset.voting is None:
            return []
        if self.ruleset.task == "classification":
            fields = [f"double[] sums = new double[{len(self.classes)}]"]
        else:
            fields = ["double total"]
        fields += ["double weights"] if self.ruleset.voting == "mean" else []
        fields += ["boolean covered"] if self.needs_cover else []
        fields += ["double weight"] if self.has_linear_weights else []
        return [f"    private {field};" for field in fields]

    def _joint_decision(self) -> list[str]:
        starts = range(0, len(self.rule_order), _RULES_PER_METHOD)
        lines = [f"    private {self.return_type} decide() {{"]
        lines += [f"        addRules{number + 1}();" for number in range(len(starts))]
        lines += [*self._joint_result(), "    }"]
        for number, start in enumerate(starts):
            lines += ["", f"    private void addRules{number + 1}() {{"]
            for index in self.rule_order[start : start + _RULES_PER_METHOD]:
                statements = self.contribution_statements(index)
                lines.append(f"        if (rule{index + 1}()) {{")
                lines += [f"            {statement}" for statement in statements]
                lines.append("        }")
            lines.append("    }")
        return lines

    def _joint_result(self) -> list[str]:
        fallback = f"            {self._fallback_statement()}"
        if self.ruleset.voting == "mean":
            return [
                "        if (!(weights > 0.0)) {",
                fallback,
                "        }",
                "        return total / weights;",
            ]
        lines = ["        if (!covered) {", fallback, "        }"] if self.needs_cover else []
        if self.ruleset.task == "regression":
            return [*lines, "        return total;"]
        type_name = "Object" if self.return_type == "Object" else self.return_type
        labels = ", ".join(map(self.label, self.classes))
        winner = _WINNER_WITH_NAN if self.has_linear_weights else _WINNER
        return [*lines, winner, f"        return new {type_name}[] {{{labels}}}[winner];"]

    def _helpers(self) -> str:
        flags = [is_number for *_, is_number in self.variables()]
        helpers = [_HELPERS] if flags else []
        helpers += [_NUMBER_HELPER] if any(flags) else []
        helpers += [_LABEL_HELPER] if not all(flags) else []
        helpers += [_ONE_OF_HELPER] if self._uses_lists else []
        helpers += [_COUNT_HELPER] if self._counts else []
        return "".join(f"\n{helper}" for helper in helpers)


def to_java(ruleset: RuleSet, class_name: str = "Rules", package: str | None = None) -> str:
    """Write a rule set as the source of a Java class without dependencies.

    Use it in services and stream processors on the Java virtual machine. The predictions of its
    static method ``predict`` for one row are identical to those of
    :meth:`skescore.rules.RuleSet.predict`.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, at most 5000.
    class_name : str, default="Rules"
        Name of the class and its file.
    package : str, optional
        Package of the class, such as ``"com.example.scoring"``.

    Returns
    -------
    str
        Source in plain ASCII for Java 8 or newer. ``predict`` takes a ``Map<String, ?>`` of
        numbers, booleans and strings, and returns a String, long, double or boolean, or an Object
        if classes have different types.

    Raises
    ------
    ValueError
        If a name is invalid, the fallback is the nearest rule, there are more than 5000 rules, or a
        class is an integer of more than 64 bits.

    Notes
    -----
    For a row without a prediction, the method throws an IllegalArgumentException.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> from skescore.rules.exporters import to_java
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa")],
    ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
    ... )
    >>> source = to_java(rules, "Iris")
    >>> print(source[source.index("    private String"):source.index("    private static")])
        private String decide() {
            if (rule1()) {
                return "setosa";
            }
            return "versicolor";
        }
    <BLANKLINE>
        // Rule 1
        private boolean rule1() {
            return petalLengthCm <= 2.5;
        }
    <BLANKLINE>
    <BLANKLINE>
    """
    _check_name("class_name", class_name)
    for part in package.split(".") if package is not None else ():
        _check_name("package", part)
    return _Java(ruleset, class_name, package).source()


def _check_name(parameter: str, name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in _RESERVED:
        raise ValueError(
            f"{parameter} must be a name that Java allows, got {name!r}. Use letters, digits and "
            "underscores, but no digit at the start."
        )
