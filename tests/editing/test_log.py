"""Logs replay exactly and detect every change."""

from __future__ import annotations

import copy
import json
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.editing import EditLog, EditLogError, RuleEditor, canonical_json, replay
from skescore.rules import Domain, Interval, Rule, RuleSet


def edited_log(cases: ModuleType, seed: int, kind: str) -> tuple[RuleEditor, int]:
    random = np.random.default_rng(seed)
    rules, X, y = cases.rule_set(random, kind)
    editor = RuleEditor(rules, X, y, author="Ann")
    n_steps = 0
    for _ in range(8):
        edit = cases.random_edit(random, editor.rules_)
        if n_steps and random.random() < 0.3:
            edit = {"action": str(random.choice(["undo", "redo"]))}
        try:
            editor.apply(edit, because="a test")
        except ValueError:
            continue
        n_steps += 1
    return editor, n_steps


def test_log_replays_to_the_last_bit(cases: ModuleType) -> None:
    total = 0
    for kind in cases.KINDS:
        for seed in range(4):
            editor, n_steps = edited_log(cases, seed, kind)
            total += n_steps
            text = editor.log_.to_json()
            rules = replay(text)
            assert rules == editor.rules_
            assert rules.to_json() == editor.rules_.to_json()
            again = EditLog.from_json(text)
            assert (again.to_json(), again.seal) == (text, editor.log_.seal)
    assert total > 100


def test_undo_restores_the_initial_rules(cases: ModuleType) -> None:
    rules, X, y = cases.rule_set(np.random.default_rng(1), "list")
    editor = RuleEditor(rules, X, y)
    editor.drop(1)
    editor.set_output(1, "high")
    last = editor.rules_
    editor.undo()
    editor.undo()
    assert editor.rules_ == rules
    with pytest.raises(ValueError, match="no edit to undo"):
        editor.undo()
    editor.redo()
    editor.redo()
    assert editor.rules_ == last
    editor.undo()
    editor.drop(1)
    with pytest.raises(ValueError, match="no edit to redo"):
        editor.redo()
    assert [r.edit["action"] for r in editor.log_.records][2:4] == ["undo", "undo"]


def changed(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return "changed"


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict):
        return [p for name, value in data.items() for p in leaves(value, (*path, name))]
    if isinstance(data, list):
        return [p for i, value in enumerate(data) for p in leaves(value, (*path, i))]
    return [path]


def test_log_notices_every_change(cases: ModuleType) -> None:
    editor, _ = edited_log(cases, 5, "list")
    data = json.loads(editor.log_.to_json())
    assert len(data["steps"]) >= 3
    paths = leaves(data)
    assert len(paths) > 60
    for path in paths:
        copied = copy.deepcopy(data)
        inner = copied
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = changed(inner[path[-1]])
        with pytest.raises(EditLogError):
            replay(json.dumps(copied))


@pytest.mark.parametrize("change", ["remove", "swap", "repeat"])
def test_log_notices_changed_steps(cases: ModuleType, change: str) -> None:
    editor, _ = edited_log(cases, 5, "list")
    data = json.loads(editor.log_.to_json())
    steps = data["steps"]
    if change == "remove":
        del steps[0]
    elif change == "swap":
        steps[0], steps[1] = steps[1], steps[0]
    else:
        steps.insert(0, steps[0])
    with pytest.raises(EditLogError, match="Step"):
        replay(json.dumps(data))


def test_log_notices_removed_end(cases: ModuleType) -> None:
    editor, n_steps = edited_log(cases, 5, "list")
    data = json.loads(editor.log_.to_json())
    for n_removed in range(1, n_steps + 1):
        shorter = {**data, "steps": data["steps"][:-n_removed]}
        with pytest.raises(EditLogError, match=f"has {n_steps - n_removed}, .* is {n_steps}"):
            replay(json.dumps(shorter))
        with pytest.raises(EditLogError, match="'seal' is"):
            replay(json.dumps({**shorter, "n_steps": n_steps - n_removed}))


@pytest.mark.parametrize("field", ["n_steps", "seal"])
def test_log_needs_number_of_steps_and_seal(cases: ModuleType, field: str) -> None:
    editor, _ = edited_log(cases, 5, "list")
    data = json.loads(editor.log_.to_json())
    del data[field]
    with pytest.raises(EditLogError, match="damaged"):
        replay(json.dumps(data))


def test_rewritten_log_has_another_seal(cases: ModuleType) -> None:
    """Only the seal that was stored elsewhere shows that the end was rewritten."""
    editor, n_steps = edited_log(cases, 5, "list")
    data = json.loads(editor.log_.to_json())
    del data["steps"][-1]
    data |= {"n_steps": n_steps - 1, "seal": data["steps"][-1]["sha256"]}
    assert EditLog.from_json(json.dumps(data)).seal != editor.log_.seal


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("no", "must be JSON"),
        ("{}", "not a log of edits"),
        ('{"format": "skescore edit log"}', "version"),
    ],
)
def test_log_rejects_other_files(text: str, match: str) -> None:
    with pytest.raises(EditLogError, match=match):
        replay(text)


@given(
    st.recursive(
        st.booleans() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
@settings(max_examples=30)
def test_canonical_json_keeps_values(value: Any) -> None:
    # Texts do not distinguish whole floats from integers.
    assert json.loads(canonical_json(value), parse_int=float) == value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.5e-7, "1.5e-7"),
        (0.000001, "0.000001"),
        (-0.0, "0"),
        (123456.789, "123456.789"),
        (5e-324, "5e-324"),
        (math.pi, "3.141592653589793"),
    ],
)
def test_canonical_json_writes_numbers_like_a_browser(number: float, text: str) -> None:
    assert canonical_json(number) == text


def test_log_states_whether_moved_bounds_are_closed() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=20, upper_closed=False)], "a"), Rule([], "b")],
        ["age"],
        task="classification",
        ordered=True,
        domain=Domain((0,), (50,)),
    )
    editor = RuleEditor(rules, [[1.0], [20.0], [40.0]], ["a", "b", "b"])
    editor.set_bound(1, "age", upper=41.0)
    assert any("age < 20" in str(suggestion) for suggestion in editor.suggestions())
    editor.set_bound(1, "age", lower=0.5)
    assert "set age < 41 in rule 1" in str(editor.log_)
    assert "set age > 0.5 in rule 1" in str(editor.log_)
