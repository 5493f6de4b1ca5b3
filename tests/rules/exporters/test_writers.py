"""The table of writers: every record works for RuleSet.to and on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import Interval, Rule, RuleSet
from skescore.rules.exporters import RULE_WRITERS

RULES = RuleSet(
    [Rule([Interval(0, upper=2.5)], "small"), Rule([], "large")], ["size"], task="classification"
)


OPTIONS = {"dbt": {"table": "parts"}}


@pytest.mark.parametrize("name", RULE_WRITERS)
def test_ruleset_to_writes_every_language(name: str) -> None:
    assert f'"{name}"' in str(RuleSet.to.__doc__)
    if name == "onnx":
        pytest.importorskip("onnx")
    content = RULES.to(name, **OPTIONS.get(name, {}))
    if RULE_WRITERS[name].is_binary:
        assert isinstance(content, bytes)
    else:
        assert "small" in content


def test_ruleset_to_passes_options() -> None:
    assert RULES.to("python", function_name="classify") == RULES.to_python(function_name="classify")
    assert RULES.to("html", standalone=False) == RULES.to_html()


def test_ruleset_to_rejects_unknown_languages() -> None:
    with pytest.raises(ValueError, match="language must be"):
        RULES.to("cobol")


def test_rule_writer_rejects_other_tasks() -> None:
    writer = replace(RULE_WRITERS["text"], tasks=("regression",))
    with pytest.raises(ValueError, match="regression"):
        writer.write(RULES)


def test_json_of_all_rules_satisfies_its_schema(arbitrary: ModuleType) -> None:
    path = Path(__file__).parents[3] / "docs" / "_static" / "schemas" / "rules.json"
    schema = jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))
    for ruleset in arbitrary.hostile_sets(12):
        schema.validate(json.loads(ruleset.to_json()))

    @given(st.data())
    def check(data: st.DataObject) -> None:
        schema.validate(json.loads(data.draw(arbitrary.rule_sets()).to_json()))

    check()
