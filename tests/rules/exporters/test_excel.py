"""Workbooks and formulas for Excel as files and texts; `test_standards` evaluates them."""

import io
import re

import pytest

from skescore.rules import Fallback, Interval, Linear, Missing, OneOf, Rule, RuleSet
from skescore.rules.exporters import to_excel, to_excel_formula


def rules_of(*conditions, names=("code", "size", "age")):
    return RuleSet([Rule(conditions, "yes")], names, task="classification", fallback=Fallback("no"))


def workbook_of(rules, n_rows=3):
    openpyxl = pytest.importorskip("openpyxl")
    return openpyxl.load_workbook(io.BytesIO(to_excel(rules, n_rows)))


def test_excel_formats_cells_of_text_features_as_text():
    rules = rules_of(OneOf(0, ["007", "TRUE"]), Interval(1, upper=3))
    sheet = workbook_of(rules)["Rows"]
    for row in (2, 3, 4):
        formats = [sheet[f"{letter}{row}"].number_format for letter in "ABCD"]
        assert formats == ["@", "General", "General", "General"]
        assert sheet[f"A{row}"].value is None
    assert sheet.column_dimensions["A"].number_format == "@"  # including rows that are added later
    assert sheet.column_dimensions["B"].number_format == "General"


def test_excel_rules_sheet_puts_or_in_parentheses():
    rules = rules_of(Interval(1, lower=5, missing=True), OneOf(0, ["a"]))
    sheet = workbook_of(rules)["Rules"]
    assert sheet["B2"].value == rules[0].premise_text(rules.feature_names)
    assert sheet["B2"].value == "(size > 5 or missing) AND code = a"
    alone = workbook_of(rules_of(Interval(1, lower=5, missing=True)))["Rules"]
    assert alone["B2"].value == "size > 5 or missing"


@pytest.mark.parametrize("condition", [Interval(0, lower=0.5), OneOf(0, [1]), OneOf(0, [True])])
def test_excel_formula_reads_truth_values_as_numbers(condition):
    premise = to_excel_formula(rules_of(condition)).removesuffix(',"yes","no")')
    observed, comparison = premise.removeprefix("=IF(AND(").removesuffix(")").split(",N(A2)")
    assert observed == "OR(ISNUMBER(A2),ISLOGICAL(A2))"  # a text is a missing value
    assert comparison in (">0.5", "=1")


def test_excel_formula_counts_truth_values_in_sums():
    total = Linear([(0, 2.0), (1, 1.0)], upper=3)
    formula = to_excel_formula(rules_of(total, Interval(0, lower=0.5)))
    assert "COUNT(A2,B2)+N(ISLOGICAL(A2))=2" in formula


def test_excel_formula_tests_untyped_features_for_content():
    formula = to_excel_formula(rules_of(Missing(0)))
    assert formula == '=IF(NOT(NOT(ISBLANK(A2))),"yes","no")'


def test_excel_formula_limits_functions_to_255_arguments():
    values = [f"v{i}" for i in range(300)]
    formula = to_excel_formula(rules_of(OneOf(0, values)))
    shape = re.sub(r"EXACT\([^()]*\)", "1", formula)
    ones = [",".join("1" * n) for n in (255, 45)]
    assert f"OR(OR({ones[0]}),OR({ones[1]}))" in shape
    assert "OR(OR" not in to_excel_formula(rules_of(OneOf(0, values[:255])))
    names = [f"x{i}" for i in range(300)]
    total = Linear([(i, 1.0) for i in range(300)], upper=3)
    formula = to_excel_formula(rules_of(total, names=names))
    assert [group.count(",") + 1 for group in re.findall(r"COUNT\(([^)]*)\)", formula)] == [255, 45]


@pytest.mark.parametrize("write", [to_excel_formula, to_excel])
@pytest.mark.parametrize("text", ["a\x07", "a\x1fb", "\ud800"])
def test_excel_rejects_control_characters(write, text):
    pytest.importorskip("openpyxl")
    with pytest.raises(
        ValueError, match=r"control character.*Excel does not allow\. Rename"
    ) as caught:
        write(rules_of(OneOf(0, ["fine", text])))
    assert repr(text) in str(caught.value)
