"""Changed verifications: each is rejected, lists the change as not checked, or is true.

Every value of the JSON of several verifications is changed, and every record is dropped and
duplicated. Random rows of the domain decide whether a changed bound of the model's output is true.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import Fallback, Interval, Missing, OneOf, Rule, RuleSet
from skescore.verification import VerificationCheck, VerificationLimits, check_verification, verify

#: Values of other types, and values beyond all limits.
STRANGE = (None, "x", True, -1, 0, 1, 0.5, 1e308, 10**30, [], {}, [[]], "1")
N_FRESH = 2000


@dataclass
class Case:
    """A verification with the rows and the model."""

    model: Any
    X: Any
    data: dict[str, Any]

    def check(self, data: Any) -> Any:
        """Check changed values; None if the text is no verification."""
        text = json.dumps(data)
        try:
            return check_verification(text, self.model, self.X, max_cells=5000, n_rows=N_FRESH)
        except ValueError as error:
            if "not the JSON of a verification" not in str(error):
                raise
            return None


def make_case(rules: RuleSet, model: Any, X: Any, **options: Any) -> Case:
    """Verify rules."""
    limits = VerificationLimits(
        time_limit=1e6, max_splits=options.pop("max_splits", 300), max_samples=4000
    )
    result = verify(rules, model, X, limits=limits, **options)
    return Case(model, X, json.loads(result.to_json()))


def step_regression() -> Case:
    X = np.linspace(0, 10, 41)[:, None]
    model = DecisionTreeRegressor().fit(X, np.where(X[:, 0] > 4, 100.0, 0.0))
    rules = RuleSet([Rule([Interval(0, upper=5)], 0.0), Rule([], 100.0)], ["x"], task="regression")
    return make_case(rules, model, X, tolerance=1.0)


def tree_with_missing() -> Case:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.integers(0, 5, 60).astype(float)})
    X.loc[::7, "a"] = np.nan
    y = np.where(X.a.fillna(2) + 0.3 * X.b > 1, "yes", "no")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    rules = RuleSet(
        [
            Rule([Interval(0, upper=0.4)], "no"),
            Rule([Missing(0), Interval(1, upper=2)], "no"),
            Rule([Interval(0, lower=50)], "no"),  # no row, and no volume
        ],
        ["a", "b"],
        task="classification",
        classes=["no", "yes"],
        fallback=Fallback("yes"),
    )
    return make_case(rules, model, X)


def forest(**options: Any) -> Case:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = (X.sum(axis=1) > 0) * 1
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    rules = RuleSet(
        [Rule([Interval(0, upper=-0.5)], 0), Rule([Interval(0, lower=0.4), Interval(1, 0.2)], 1)],
        ["u", "v"],
        task="classification",
        classes=[0, 1],
    )  # other rows have no prediction
    return make_case(rules, model, X, **options)


def boosting_with_categories() -> Case:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"a": rng.normal(size=70), "c": pd.Categorical(rng.choice(["u", "v", "w"], 70))}
    )
    y = (X.a > 0) ^ (X.c == "v")
    model = HistGradientBoostingClassifier(
        max_iter=4, min_samples_leaf=5, categorical_features="from_dtype"
    ).fit(X, y)
    rules = RuleSet(
        [Rule([OneOf(1, ["v"]), Interval(0, lower=0.1)], False), Rule([Interval(0, 0.2)], True)],
        ["a", "c"],
        task="classification",
        classes=[False, True],
        fallback=Fallback(False),
    )
    return make_case(rules, model, X, radius=0.5)


def boosting_of_numbers() -> Case:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(60), "n": rng.integers(0, 7, 60)})
    model = GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0)
    model.fit(X, X.a + 0.1 * X.n)
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 0.55), Rule([Interval(1, lower=3)], 1.05), Rule([], 0.8)],
        ["a", "n"],
        task="regression",
    )
    return make_case(rules, model, X)


CASES = {
    "step": step_regression,
    "missing": tree_with_missing,
    "forest": forest,
    "samples": lambda: forest(max_splits=2),
    "categories": boosting_with_categories,
    "numbers": boosting_of_numbers,
}
case_of = cache(lambda name: CASES[name]())


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value of JSON."""
    if path:
        yield path
    items = enumerate(value) if isinstance(value, list) else getattr(value, "items", list)()
    for key, inner in items:
        if path == ("picture", "states") and key % 11:
            continue  # some of the 1024 points
        yield from paths(inner, (*path, key))


def changes(value: Any) -> Iterator[Any]:
    """Yield other values for a value of JSON."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, -value, value * 2, value / 2, value + 1e-4, value - 1e-4)
    elif isinstance(value, str):
        yield from (value + "x", "", {"sampled": "proven", "proven": "sampled"}.get(value, "no"))
    elif isinstance(value, list) and value:
        yield from (value[1:], value[:-1], [*value, value[0]], [value[0], *value], value[::-1])
    elif isinstance(value, dict):
        yield {**value, "unknown": 1}
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
    yield from STRANGE


def is_rounding(value: Any, other: Any) -> bool:
    """Return whether two numbers differ by no more than the rounding error of the check."""
    if not all(type(one) in (int, float) for one in (value, other)):
        return False
    return bool(abs(value - other) <= 1e-6)


def mutants(case: Case) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield paths and their other values."""
    for path in paths(case.data):
        value = reduce(lambda part, key: part[key], path, case.data)
        for other in changes(value):
            if json.dumps(other) == json.dumps(value) or is_rounding(value, other):
                continue
            yield path, other


def changed_data(case: Case, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of the data with another value at a path."""
    data = copy.deepcopy(case.data)
    reduce(lambda part, key: part[key], path[:-1], data)[path[-1]] = value
    return data


def is_listed(path: tuple[Any, ...], unchecked: Any) -> bool:
    """Return whether a path, or an object around it, is listed as not checked."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]
    return any(re.match(re.escape(name) + r"($|[.\[])", text) for name in unchecked)


def draw_rows(case: Case, n: int = 20_000) -> Any:
    """Return random rows of the domain, with the rows of the verification."""
    table, rng = {}, np.random.default_rng(5)
    for j, column in enumerate(case.data["domain"]):
        if column["kind"] == "category":
            drawn: Any = rng.choice(column["values"], n)
        else:
            drawn = rng.uniform(column["lower"], column["upper"], n)
            if column["kind"] == "integer":
                drawn = rng.integers(column["lower"], column["upper"] + 1, n)
            drawn = np.where(rng.random(n) < column["missing"], np.nan, drawn)
        table[j] = drawn
    rows = pd.DataFrame(table)
    if isinstance(case.X, pd.DataFrame):
        rows = rows.set_axis(case.X.columns, axis=1)
        return pd.concat([case.X, rows.astype(case.X.dtypes.to_dict())], ignore_index=True)
    return np.concatenate([case.X, rows.to_numpy()])


def is_true(case: Case, path: tuple[Any, ...], data: Any) -> bool:
    """Return whether a changed bound of outputs, or trusted part, holds for random rows."""
    if path[0] != "rules" or len(path) < 4:
        return False
    record, rows = data["rules"][path[1]], draw_rows(case)
    rules = RuleSet.from_json(json.dumps(data["ruleset"]))
    is_own = rules.assign(rows) == record["index"]
    n_stated = int(is_own[: len(case.X)].sum())
    own, n_fresh = rows[is_own], int(is_own.sum()) - n_stated
    output = rules.rules[path[1]].output if record["index"] >= 0 else rules.fallback.output
    predictions = case.model.predict(own)
    if path[2] == "trusted":
        part = RuleSet.from_json(json.dumps(record["trusted"]["rules"]))
        inside = part.covers(own)
        if rules.task == "regression":
            wrong = np.abs(predictions - output) > data["tolerance"]
        else:
            wrong = predictions != output
        share = inside[n_stated:].mean() if n_fresh else 0.0
        is_near = abs(share - record["trusted"]["volume_share"]) < 0.03
        n_rows = int(inside[:n_stated].sum())
        return not wrong[inside].any() and is_near and n_rows == record["trusted"]["n_rows"]
    if path[2] != "output_range" or path[3] not in ("lower", "upper"):
        return False
    outputs = predictions
    if rules.task == "classification":
        outputs = case.model.predict_proba(own)[:, case.model.classes_.tolist().index(output)]
    bound = record["output_range"][path[3]]
    return bound <= outputs.min() + 1e-6 if path[3] == "lower" else bound >= outputs.max() - 1e-6


def check_mutants(name: str, step: int) -> Counter[str]:
    """Check every so many mutants of a case; return the number of each outcome."""
    case = case_of(name)
    outcomes: Counter[str] = Counter()
    for i, (path, value) in enumerate(mutants(case)):
        if i % (step * (20 if path[0] == "ruleset" else 1)):  # the rules are listed as not checked
            continue
        data = changed_data(case, path, value)
        result = case.check(data)
        if result is None or result.verdict == "rejected":
            outcomes["rejected"] += 1
        elif is_listed(path, result.unchecked):
            outcomes["listed"] += 1
        else:
            assert is_true(case, path, data), (name, path, value, str(result))
            outcomes["true"] += 1
    return outcomes


@pytest.mark.parametrize("name", CASES)
def test_check_confirms_unchanged_verification(name: str) -> None:
    case = case_of(name)
    result = case.check(case.data)
    assert result.verdict == "confirmed", str(result)
    assert {"ruleset", "radius", "confidence", "n_queries", "seconds"} <= set(result.unchecked)


@pytest.mark.parametrize("name", CASES)
def test_check_rejects_or_lists_mutants(name: str) -> None:
    outcomes = check_mutants(name, 199)
    assert outcomes["rejected"] > 4 * (outcomes["listed"] + outcomes["true"])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_check_rejects_or_lists_all_mutants(name: str) -> None:
    outcomes = check_mutants(name, 1)
    assert outcomes["rejected"] > 4 * (outcomes["listed"] + outcomes["true"])


@pytest.mark.parametrize("name", CASES)
def test_check_needs_one_record_per_rule(name: str) -> None:
    case = case_of(name)
    records = case.data["rules"]
    for i, record in enumerate(records):
        for others in (
            records[:i] + records[i + 1 :],
            [*records[:i], record, *records[i:]],
            [*records[:i], *records[i + 1 :], record][: len(records) * (i < len(records) - 1)],
        ):
            assert case.check({**case.data, "rules": others}).verdict == "rejected"


def test_check_rejects_joint_forgery() -> None:
    """All statements about the first rule claim agreement, and contradict none of the others."""
    case = case_of("step")
    data = copy.deepcopy(case.data)
    rule = data["rules"][0]
    rule["max_deviation"] = 0.0
    rule["output_range"].update(lower=0.0, upper=0.0)
    rule["witness"] = rule["worst"] = None
    for measure in ("volume", "near"):
        rule[f"{measure}_proven"].update(agreeing=1.0, disagreeing=0.0)
        share = dict.fromkeys(("lower", "upper", "proven_lower", "proven_upper"), 0.0)
        rule[f"{measure}_disagreement"].update(share)
        data[f"{measure}_disagreement"].update(share)
    result = case.check(data)
    assert result.verdict == "rejected"
    findings = "\n".join(result.findings)
    for statement in ("volume_disagreement", "near_proven", "output_range", "max_deviation"):
        assert f"Rule 1: {statement}" in findings


def test_check_rejects_null_without_error() -> None:
    case = case_of("step")
    data = copy.deepcopy(case.data)
    data["volume_disagreement"]["upper"] = None
    assert case.check(data).verdict == "rejected"


def test_check_examines_cells_between_bounds_of_trusted_part() -> None:
    """A trusted part may begin inside a cell in which rules and model disagree."""
    case = case_of("step")
    data = copy.deepcopy(case.data)
    part = data["rules"][0]["trusted"]["rules"]["rules"][0]["if"][0]
    part.update(upper=4.5)
    result = case.check(data)
    assert "Rule 1: the trusted part has disagreements." in result.findings


def test_check_confirms_abstaining_rules() -> None:
    X = np.linspace(0, 10, 41)[:, None]
    model = DecisionTreeClassifier().fit(X, np.where(X[:, 0] > 4, "yes", "no"))
    rules = RuleSet(
        [Rule([Interval(0, upper=5)], "no")],
        ["x"],
        task="classification",
        classes=["no", "yes"],
        fallback=Fallback("yes", "abstain"),
    )
    case = make_case(rules, model, X)
    assert case.check(case.data).verdict == "confirmed"


def test_check_reads_frames_of_polars() -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X = polars.DataFrame(
        {"a": rng.normal(size=60), "n": rng.integers(0, 4, 60), "c": rng.choice(["u", "v"], 60)}
    )
    y = (X["a"].to_numpy() > 0) ^ (X["c"].to_numpy() == "v")
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(3, max_depth=2, random_state=0))
    model.fit(X, y)
    rules = RuleSet(
        [Rule([Interval(0, upper=0)], False), Rule([OneOf(2, ["u"])], True), Rule([], False)],
        ["a", "n", "c"],
        task="classification",
    )
    case = make_case(rules, model, X)
    result = case.check(case.data)
    assert result.verdict != "rejected", str(result)
    case.data["rules"][0]["n_rows"] += 1
    assert case.check(case.data).verdict == "rejected"


def test_verify_states_no_probability_of_unknown_class() -> None:
    X = np.linspace(0, 10, 41)[:, None]
    model = GradientBoostingClassifier(n_estimators=3).fit(X, np.digitize(X[:, 0], [3, 6]))
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 0), Rule([], 7)],
        ["x"],
        task="classification",
        classes=[0, 7],
    )
    case = make_case(rules, model, X)
    first, second = (record["output_range"] for record in case.data["rules"])
    assert 0 < first["lower"] <= first["upper"] <= 1
    assert (second["lower"], second["upper"]) == (None, None)
    assert case.check(case.data).verdict == "confirmed"
    second.update(lower=1e-6, upper=0.5)
    assert case.check(case.data).verdict == "rejected"


def test_check_text_joins_fields_of_rules() -> None:
    unchecked = {
        "seconds": "work",
        "rules[0].trusted": "none",
        "rules[2].trusted": "none",
        "rules[1].output_range.lower": "none",
    }
    assert str(VerificationCheck("confirmed", (), "all cells", unchecked)).split("\n") == [
        "confirmed: all cells",
        "not checked: seconds (work)",
        "not checked: rules[0, 2].trusted, rules[1].output_range.lower (none)",
    ]
