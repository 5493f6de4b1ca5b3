"""Export of rule sets to Excel: a workbook that predicts typed rows, or a formula."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skescore._optional import import_optional
from skescore._validation import check_integer
from skescore.rules._conditions import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    Missing,
    OneOf,
    truth_table,
)
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules.exporters._common import (
    abstention,
    always_predicts,
    class_labels,
    rules_in_order,
)
from skescore.rules.exporters.standards._fields import (
    check_fallback,
    check_one_rule_per_row,
    check_xml_text,
    used_fields,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_MAX_NESTED_IFS = 64
_MAX_FORMULA_LENGTH = 8192
_MAX_TEXT_LENGTH = 255
_MAX_ARGUMENTS = 255
#: Format of cells whose content is text.
_TEXT_FORMAT = "@"
#: Number of significant digits with which Excel computes and compares.
_N_DIGITS = 15


def _number(value: float) -> str:
    """Write a number with the digits that Excel reads."""
    if not math.isfinite(value):
        raise ValueError(f"Excel has no number {value!r}. Give the rules finite numbers.")
    text = repr(float(value)).removesuffix(".0")
    exact = f"{value:.{_N_DIGITS}g}"
    return text if float(exact) == value else exact


def _literal(value: Any) -> str:
    """Write a label."""
    if isinstance(value, bool):
        return f"{str(value).upper()}()"
    if not isinstance(value, str):
        return _number(value)
    if len(value) > _MAX_TEXT_LENGTH:
        raise ValueError(
            f"Texts in Excel's formulas have at most {_MAX_TEXT_LENGTH} characters, got "
            f"{len(value)}: {value[:30]!r}. Shorten that category."
        )
    return '"' + check_xml_text(value, "Excel").replace('"', '""') + '"'


class _Formulas:
    """Conditions and outputs as formulas on the cells of a row, given by feature."""

    def __init__(self, ruleset: RuleSet) -> None:
        check_one_rule_per_row(ruleset, "Excel")
        check_fallback(ruleset, "Excel", needs_one=False)
        self.ruleset = ruleset
        self.fields = used_fields(ruleset, "Excel")
        self.classes = class_labels(ruleset)
        self.order = rules_in_order(ruleset)

    def premise(self, rule: Rule, cells: dict[int, str]) -> str:
        """Write a test whether a rule holds."""
        parts = [self.condition(condition, cells) for condition in rule.conditions]
        return _nest_calls("AND", parts) if parts else "TRUE()"

    def condition(self, condition: Condition, cells: dict[int, str]) -> str:
        """Write a condition, which is TRUE or FALSE; an empty cell is a missing value."""
        if isinstance(condition, AtLeast):
            parts = [self.condition(part, cells) for part in condition.conditions]
            if condition.m == 1:
                return _nest_calls("OR", parts)
            return f"({'+'.join(f'N({part})' for part in parts)})>={condition.m}"
        if isinstance(condition, Linear):
            count = self._count(condition.features, cells)
            comparison = _within(f"({self.linear(None, condition.terms, cells)})", condition)
            return f"IF({count}={len(condition.terms)},{comparison},FALSE())"
        accepts = truth_table(condition).missing
        observed = self._observed(condition.feature, cells)
        if isinstance(condition, Missing):
            return f"NOT({observed})" if accepts else observed
        if isinstance(condition, Interval):
            comparison = _within(self._number_of(condition.feature, cells), condition)
        else:
            comparison = self._one_of(condition, cells)
        if accepts:
            return f"OR(NOT({observed}),{comparison})"
        return f"AND({observed},{comparison})"

    def _observed(self, feature: int, cells: dict[int, str]) -> str:
        entry, cell = self.fields[feature], cells[feature]
        if not entry.is_number:
            return f"NOT(ISBLANK({cell}))"
        is_number = f"ISNUMBER({cell})"
        return f"OR({is_number},ISLOGICAL({cell}))" if entry.may_be_flag else is_number

    def _number_of(self, feature: int, cells: dict[int, str]) -> str:
        """Write the number in a cell; TRUE is not equal to 1 in Excel."""
        return f"N({cells[feature]})" if self.fields[feature].may_be_flag else cells[feature]

    def _count(self, features: Sequence[int], cells: dict[int, str]) -> str:
        """Write the number of features whose cells hold numbers or truth values."""
        counts = [f"COUNT({group})" for group in _argument_groups([cells[f] for f in features])]
        flags = [f"N(ISLOGICAL({cells[f]}))" for f in features if self.fields[f].may_be_flag]
        return "+".join([*counts, *flags])

    def _one_of(self, condition: OneOf, cells: dict[int, str]) -> str:
        entry, cell = self.fields[condition.feature], cells[condition.feature]
        if entry.is_text:  # in contrast to EXACT, the operator = ignores case
            parts = [f"EXACT({cell},{_literal(value)})" for value in condition.values]
        else:
            value_of = self._number_of(condition.feature, cells)
            parts = [f"{value_of}={_number(entry.float_of(v))}" for v in condition.values]
        text = _nest_calls("OR", parts)
        return f"NOT({text})" if condition.negated else text

    def linear(
        self, intercept: float | None, terms: Sequence[tuple[int, float]], cells: dict[int, str]
    ) -> str:
        """Write a sum of features."""
        text = "" if intercept is None else _number(intercept)
        for feature, coefficient in terms:
            sign = "" if coefficient < 0 or not text else "+"
            text += f"{sign}{_number(coefficient)}*{cells[feature]}"
        return text

    def output(self, output: Any, cells: dict[int, str]) -> str:
        """Write the output of a rule."""
        if isinstance(output, LinearOutput):
            if not output.terms:
                return _number(output.intercept)
            count = self._count([feature for feature, _ in output.terms], cells)
            total = self.linear(output.intercept, output.terms, cells)
            return f"IF({count}={len(output.terms)},{total},NA())"
        if self.ruleset.classes is None:
            return _number(float(output))
        return _literal(self.classes[self.ruleset.classes.index(output)])

    def fallback(self) -> str | None:
        """Write the prediction for uncovered rows; None if there are none."""
        fallback = self.ruleset.fallback
        if always_predicts(self.ruleset):
            return None
        if fallback is None:
            return "NA()"
        if fallback.policy != "abstain":
            return self.output(fallback.output, {})
        return "NA()" if self.ruleset.classes is None else _literal(abstention(self.ruleset))


def _argument_groups(parts: Sequence[str]) -> list[str]:
    """Join arguments in groups that a function accepts."""
    starts = range(0, len(parts), _MAX_ARGUMENTS)
    return [",".join(parts[start : start + _MAX_ARGUMENTS]) for start in starts]


def _nest_calls(function: str, parts: Sequence[str]) -> str:
    """Write a call of AND or OR, nested if there are more arguments than Excel allows."""
    if len(parts) == 1:
        return parts[0]
    return _nest_calls(function, [f"{function}({group})" for group in _argument_groups(parts)])


def _within(value: str, bounds: Interval | Linear) -> str:
    low, high = bounds.lower, bounds.upper
    if low == high:
        return f"{value}={_number(low)}"
    parts = []
    if math.isfinite(low):
        parts.append(f"{value}{'>=' if bounds.lower_closed else '>'}{_number(low)}")
    if math.isfinite(high):
        parts.append(f"{value}{'<=' if bounds.upper_closed else '<'}{_number(high)}")
    return _nest_calls("AND", parts) if parts else "TRUE()"


def _column_letters(position: int) -> str:
    """Return the letters of a column, counted from 0."""
    letters = ""
    position += 1
    while position:
        position, remainder = divmod(position - 1, 26)
        letters = chr(ord("A") + remainder) + letters
    return letters


def to_excel_formula(ruleset: RuleSet, row: int = 2) -> str:
    """Write a rule set as one Excel formula.

    Use it to predict in an existing sheet with the features in columns A, B, ..., in order.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, at most 64, without voting.
    row : int, default=2
        Row of the cells that the formula reads.

    Returns
    -------
    str
        The formula, beginning with an equals sign, with English function names and commas.
        LibreOffice and Google Sheets read it, too.

    Raises
    ------
    ValueError
        If there are too many or too long rules, if rules vote, if the fallback is the nearest rule,
        or if a feature is compared with numbers and texts.

    Notes
    -----
    Empty cells, and texts that rules compare with numbers, are missing values. ``TRUE`` and
    ``FALSE`` are 1 and 0 in features that conditions compare only with numbers from 0 to 1, and
    missing values in others. If there is no prediction, the value is ``#N/A``. Excel computes with
    15 significant digits: longer bounds are rounded, and values that differ from a bound only in
    further digits may be on its other side.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
    >>> from skescore.rules.exporters import to_excel_formula
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5), OneOf(1, ["red"])], "small")],
    ...     ["size", "color"], task="classification", fallback=Fallback("large"),
    ... )
    >>> print(to_excel_formula(rules))
    =IF(AND(AND(ISNUMBER(A2),A2<=2.5),AND(NOT(ISBLANK(B2)),EXACT(B2,"red"))),"small","large")
    """
    row = check_integer("row", row, low=1)
    formulas = _Formulas(ruleset)
    cells = {feature: f"{_column_letters(feature)}{row}" for feature in formulas.fields}
    text, n_ifs = formulas.fallback(), 0
    for index in reversed(formulas.order):
        rule = ruleset.rules[index]
        output = formulas.output(rule.output, cells)
        n_ifs += bool(rule.conditions)
        text = f"IF({formulas.premise(rule, cells)},{output},{text})" if rule.conditions else output
    if n_ifs > _MAX_NESTED_IFS or len(str(text)) >= _MAX_FORMULA_LENGTH:
        raise ValueError(
            f"Excel's formulas have at most {_MAX_NESTED_IFS} nested IFs and {_MAX_FORMULA_LENGTH} "
            f"characters, but these rules need {n_ifs} and {len(str(text)) + 1}. Write the "
            "workbook instead: rules.to('excel')."
        )
    return f"={text}"


class _Workbook:
    """Writer of the sheets: rows with predictions, checks of rules, and the rules."""

    def __init__(self, ruleset: RuleSet, n_rows: int) -> None:
        self.openpyxl = import_optional("openpyxl", extra="excel", purpose="Writing Excel files")
        self.formulas, self.ruleset, self.n_rows = _Formulas(ruleset), ruleset, n_rows
        self.order = self.formulas.order
        self.columns = {f: _column_letters(k) for k, f in enumerate(self.formulas.fields)}
        self.has_sums = any(isinstance(rule.output, LinearOutput) for rule in ruleset.rules)

    def build(self) -> bytes:
        """Return the content of the file."""
        book = self.openpyxl.Workbook()
        self._write_rows(book.active)
        self._write_checks(book.create_sheet("Checks"))
        self._write_rules(book.create_sheet("Rules"))
        stream = io.BytesIO()
        book.save(stream)
        return stream.getvalue()

    def _write_rows(self, sheet: Any) -> None:
        sheet.title = "Rows"
        fields = self.formulas.fields.values()
        self._header(sheet, [*(entry.name for entry in fields), "prediction", "rule"])
        n_fields, n_rules = len(self.columns), len(self.order)
        last = _column_letters(max(n_rules - 1, 0))
        prediction, rule = _column_letters(n_fields), _column_letters(n_fields + 1)
        used_cells = f"$A{{0}}:${_column_letters(n_fields - 1)}{{0}}"
        otherwise = self.formulas.fallback() or "NA()"
        text_columns = [self.columns[f] for f, e in self.formulas.fields.items() if e.is_text]
        for letters in text_columns:  # so that typed 007 or TRUE remains text
            sheet.column_dimensions[letters].number_format = _TEXT_FORMAT
        for row in range(2, self.n_rows + 2):
            checks = f"Checks!$A{row}:${last}{row}"
            position = f"MATCH(TRUE(),{checks},0)" if n_rules else "NA()"
            for letters in text_columns:
                sheet[f"{letters}{row}"].number_format = _TEXT_FORMAT
            is_empty = f"COUNTA({used_cells.format(row)})=0"
            if self.has_sums:
                first = _column_letters(n_rules)
                table = f"Checks!${first}{row}:${_column_letters(2 * n_rules - 1)}{row}"
            else:
                table = f"Rules!$D$2:$D${max(n_rules, 1) + 1}"
            output = f"INDEX({table},{position})"
            sheet[f"{prediction}{row}"] = (
                f'=IF({is_empty},"",IF(ISNA({position}),{otherwise},{output}))'
            )
            number = f"INDEX(Rules!$A$2:$A${max(n_rules, 1) + 1},{position})"
            sheet[f"{rule}{row}"] = f'=IF({is_empty},"",IF(ISNA({position}),"none",{number}))'

    def _write_checks(self, sheet: Any) -> None:
        titles = [f"rule {index + 1} holds" for index in self.order]
        if self.has_sums:
            titles += [f"rule {index + 1} predicts" for index in self.order]
        self._header(sheet, titles)
        for row in range(2, self.n_rows + 2):
            cells = {f: f"Rows!${letters}{row}" for f, letters in self.columns.items()}
            for position, index in enumerate(self.order):
                rule = self.ruleset.rules[index]
                premise = self.formulas.premise(rule, cells)
                self._check_length(premise, index)
                sheet[f"{_column_letters(position)}{row}"] = f"={premise}"
                if self.has_sums:
                    cell = f"{_column_letters(len(self.order) + position)}{row}"
                    sheet[cell] = f"={self.formulas.output(rule.output, cells)}"

    def _check_length(self, formula: str, index: int) -> None:
        if len(formula) >= _MAX_FORMULA_LENGTH:
            raise ValueError(
                f"Excel's formulas have at most {_MAX_FORMULA_LENGTH} characters, but rule "
                f"{index + 1} needs {len(formula) + 1}. Simplify that rule."
            )

    def _write_rules(self, sheet: Any) -> None:
        self._header(sheet, ["rule", "conditions", "rows", "prediction"])
        for position, index in enumerate(self.order):
            rule = self.ruleset.rules[index]
            row = position + 2
            names = self.ruleset.feature_names
            premise = rule.premise_text(names) or "always"
            sheet[f"A{row}"] = index + 1
            self._put_text(sheet[f"B{row}"], premise)
            if rule.statistics is not None:
                sheet[f"C{row}"] = float(rule.statistics.n_rows)
            if isinstance(rule.output, LinearOutput):
                self._put_text(sheet[f"D{row}"], rule.output.to_text(names))
            else:
                sheet[f"D{row}"] = f"={self.formulas.output(rule.output, {})}"
        sheet.column_dimensions["B"].width = 80

    def _put_text(self, cell: Any, text: str) -> None:
        """Store a text, which Excel must not interpret as a formula."""
        cell.value = check_xml_text(text, "Excel")
        cell.data_type = "s"

    def _header(self, sheet: Any, titles: Sequence[str]) -> None:
        for position, title in enumerate(titles):
            cell = sheet[f"{_column_letters(position)}1"]
            self._put_text(cell, title)
            cell.font = self.openpyxl.styles.Font(bold=True)
            sheet.column_dimensions[_column_letters(position)].width = max(10, len(title) + 2)
        sheet.freeze_panes = "A2"


def to_excel(ruleset: RuleSet, n_rows: int = 100) -> bytes:
    """Write a rule set as an Excel workbook that predicts typed rows.

    Use it to share rules with people who work in spreadsheets. They type or paste rows, and see the
    prediction, the rule that predicts, and the other rules that hold.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, without voting.
    n_rows : int, default=100
        Number of rows with formulas, which can be filled down for more rows.

    Returns
    -------
    bytes
        The file. The sheet ``Rows`` has one column per feature that the rules use, the prediction
        and the number of the rule; ``Checks`` states which rules hold; ``Rules`` lists the rules.
        Columns of texts have the format Text, so that ``007`` and ``TRUE`` remain texts.

    Raises
    ------
    ImportError
        If openpyxl is not installed.
    ValueError
        If a rule is too long, if rules vote, if the fallback is the nearest rule, or if a feature
        is compared with numbers and texts.

    See Also
    --------
    to_excel_formula : Its notes state how Excel compares numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> Path("rules.xlsx").write_bytes(rules.to("excel"))  # doctest: +SKIP
    """
    n_rows = check_integer("n_rows", n_rows, low=1)
    return _Workbook(ruleset, n_rows).build()
