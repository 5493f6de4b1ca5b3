"""Rules are saved to a file and loaded again."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skescore import RuleSet
from skescore.rules import AtLeast, Domain, Interval, Missing, Rule

RULES = RuleSet([Rule([Interval(0, upper=0.1)], "ä")], ["größe"], task="classification")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bound=st.floats(allow_nan=False, allow_infinity=False), label=st.text())
def test_load_returns_saved_rules(tmp_path: Path, bound: float, label: str) -> None:
    label = label.encode("utf-8", "ignore").decode()
    rules = RuleSet([Rule([Interval(0, upper=bound)], label)], ["x"], task="classification")
    rules.save(tmp_path / "rules.json")
    assert RuleSet.load(tmp_path / "rules.json") == rules
    assert RuleSet.load(tmp_path) == rules  # the folder that an MLflow run would use
    assert [path.name for path in tmp_path.iterdir()] == ["rules.json"]


def test_load_skips_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    path.write_text(RULES.to_json(), encoding="utf-8-sig")
    assert RuleSet.load(str(path)) == RULES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"a": 1}), "holds a saved model, not rules. Load it with"),
        (b"PK\x03\x04model", "holds a saved model, not rules"),
        (b"\xff\xfe1", "was not written by RuleSet.save: .*as_ruleset"),
        (b'{"meta": {}, "rules": []}', "was not written by RuleSet.save: .*skescore import"),
        (b"IF x THEN y", "was not written by RuleSet.save: "),
        (b"", "was not written by RuleSet.save: "),
    ],
)
def test_load_rejects_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        RuleSet.load(path)


def test_load_reports_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none.json; pass a file"):
        RuleSet.load(tmp_path / "none.json")
    with pytest.raises(ValueError, match=r"is a folder without rules\.json"):
        RuleSet.load(tmp_path)


def test_json_version_depends_on_missing_values():
    plain, missing = (Rule([Interval(0, 1, missing=gaps)], 1.0) for gaps in (False, True))
    for rules, version in (([plain], 1), ([plain, missing], 2), ([missing, plain], 2)):
        text = RuleSet(rules, ["a"], task="regression").to_json()
        assert json.loads(text)["version"] == version
    domain = Domain((0, 0), (1, 1), (), (0, 0.5))  # one of the two features has missing values
    text = RuleSet([plain], ["a", "b"], task="regression", domain=domain).to_json()
    assert json.loads(text)["version"] == 2


def json_of(output="1", conditions="[]"):
    return (
        '{"format": "skescore.RuleSet", "version": 1, "task": "regression", "classes": null, '
        '"feature_names": ["a"], "ordered": true, "rules": '
        f'[{{"if": {conditions}, "then": {output}}}]}}'
    )


def test_json_rejects_huge_numbers_and_deep_nesting():
    assert RuleSet.from_json(json_of("1")).rules[0].output == 1
    for output in ("1" + "0" * 400, "-1" + "0" * 400):
        with pytest.raises(ValueError, match="no larger than the largest float"):
            RuleSet.from_json(json_of(output))
    inner = '{"type": "missing", "feature": 0}'
    more = f'[{{"type": "at_least", "m": 1, "conditions": [{inner}], "more": 1}}]'
    with pytest.raises(ValueError, match="more"):
        RuleSet.from_json(json_of(conditions=more))
    for _ in range(40):
        inner = f'{{"type": "at_least", "m": 1, "conditions": [{inner}]}}'
    assert len(RuleSet.from_json(json_of(conditions=f"[{inner}]"))) == 1
    for _ in range(40):
        inner = f'{{"type": "at_least", "m": 1, "conditions": [{inner}]}}'
    with pytest.raises(ValueError, match="nested more than 50 deep"):
        RuleSet.from_json(json_of(conditions=f"[{inner}]"))


@pytest.mark.parametrize("depth", [1, 2, 48, 49, 50, 51, 80])
def test_json_rejects_nesting_it_cannot_read_back(depth):
    condition = Interval(0, upper=1.0)
    for i in range(depth - 1):
        condition = AtLeast(1, [condition, Interval(0, lower=5.0 + i)])
    rules = RuleSet([Rule([condition], "a")], ["x"], task="classification")
    if depth < 50:
        assert RuleSet.from_json(rules.to_json()) == rules
    else:
        with pytest.raises(ValueError, match="must not be nested more than 50 deep"):
            rules.to_json()


def test_json_without_optional_fields_has_their_defaults():
    text = json_of(conditions='[{"type": "missing", "feature": 0}]')
    rules = RuleSet.from_json(text)
    assert rules.rules[0].conditions == (Missing(0),)
    assert not rules.disjoint


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ('{"type": "missing"}', "lacks the field 'feature'"),
        ('{"type": "missing", "feature": 0, "negate": true}', "has the unknown field 'negate'"),
    ],
)
def test_json_rejects_misspelled_missing_conditions(condition, message):
    with pytest.raises(ValueError, match=message):
        RuleSet.from_json(json_of(conditions=f"[{condition}]"))
