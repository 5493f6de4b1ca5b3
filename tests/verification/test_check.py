"""The independent checker confirms correct results and rejects forged ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from small_ensembles import make_problem

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor
from skescore.rules import Interval, OneOf, Rule, RuleSet
from skescore.verification import VerificationLimits, check_verification, verify

TASK = "classification"
LIMITS = VerificationLimits(time_limit=20.0, max_splits=300, max_samples=20_000)


def small_result(seed: int):
    problem = make_problem(seed)
    result = verify(
        problem.rules,
        problem.model,
        problem.X,
        tolerance=problem.tolerance,
        radius=problem.radius,
        limits=LIMITS,
    )
    return problem, result


@pytest.mark.parametrize("seed", [0, 3, 6, 9])
def test_check_confirms_random_problems(seed: int) -> None:
    problem, result = small_result(seed)
    check = check_verification(result.to_json(), problem.model, problem.X, n_rows=20_000)
    assert check.verdict in ("confirmed", "not refuted"), check


@pytest.mark.slow
def test_check_confirms_many_random_problems() -> None:
    for seed in range(40, 100):
        problem, result = small_result(seed)
        check = check_verification(result.to_json(), problem.model, problem.X, n_rows=20_000)
        assert check.verdict in ("confirmed", "not refuted"), (seed, check)


@pytest.fixture(scope="module")
def iris_like():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.integers(0, 9, 200)})
    y = np.where(X.a + 0.3 * X.b > 1.2, "yes", "no")
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y)
    rules = CARTExtractor(model, max_leaf_nodes=3).fit(X, y).rules_
    return X, model, json.loads(verify(rules, model, X, limits=LIMITS).to_json())


def test_check_confirms_rules_of_an_extractor(iris_like) -> None:
    X, model, data = iris_like
    assert check_verification(json.dumps(data), model, X).verdict == "confirmed"
    few = check_verification(json.dumps(data), model, X, max_cells=1, n_rows=50_000)
    assert few.verdict == "not refuted", few
    assert "can only refute" in few.method


@pytest.mark.parametrize("max_cells", [200_000, 1])
def test_check_rejects_forged_statements(iris_like, max_cells: int) -> None:
    X, model, data = iris_like

    def verdict(change) -> str:
        forged = json.loads(json.dumps(data))
        change(forged)
        text = json.dumps(forged)
        return check_verification(text, model, X, max_cells=max_cells, n_rows=50_000).verdict

    def lower_share(forged) -> None:
        share = forged["rules"][0]["near_disagreement"]
        share |= {"lower": 0.9, "upper": 1.0, "proven_lower": 0.9, "proven_upper": 1.0}

    def widen_trusted(forged) -> None:
        wrong = next(r for r in forged["rules"] if r["witness"])
        wrong["trusted"]["rules"]["rules"][0]["if"] = []

    def move_witness(forged) -> None:
        wrong = next(r for r in forged["rules"] if r["witness"])
        wrong["witness"]["prediction"] = "maybe"

    for change in (lower_share, widen_trusted, move_witness):
        assert verdict(change) == "rejected", change


def test_check_rejects_other_json() -> None:
    with pytest.raises(ValueError, match="not the JSON of a verification"):
        check_verification('{"format": "other"}', None, [[0.0]])


def test_verify_samples_other_models() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    model = KNeighborsClassifier(3).fit(X, X.sum(axis=1) > 0)
    rules = CARTExtractor(model, max_leaf_nodes=3).fit(X).rules_
    result = verify(rules, model, X, limits=LIMITS)
    assert result.engine == "sampling"
    assert "KNeighbors" in result.reason
    assert not result.near_disagreement.is_exact
    assert all(rule.trusted is None for rule in result.rules)
    check = check_verification(result.to_json(), model, X, n_rows=50_000)
    assert check.verdict == "not refuted", check


def test_verify_is_reproducible() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"a": rng.normal(size=150), "c": pd.Categorical(rng.choice(["u", "v", "w"], 150))}
    )
    y = (X.a > 0) ^ (X.c == "v")
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")
    model.fit(X, y)
    rules = CARTExtractor(model, max_leaf_nodes=3).fit(X).rules_
    limits = VerificationLimits(time_limit=1e6, max_splits=5, max_samples=4000, near_width=1e-3)
    results = []
    for _ in range(2):
        data = json.loads(verify(rules, model, X, limits=limits).to_json())
        results.append({key: value for key, value in data.items() if key != "seconds"})
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", [object, "category", "boolean"])
@pytest.mark.parametrize("value", [0, False])
def test_check_equates_booleans_and_numbers(dtype, value) -> None:
    y = np.array(["no", "no", "yes", "yes", "no", "yes", "yes", "no", "yes", "yes", "no", "yes"])
    X = pd.DataFrame({"x": np.arange(12.0), "z": pd.Series([True, False, None] * 4, dtype=dtype)})
    model = CallableClassifier(
        lambda rows: y[np.asarray(rows["x"], dtype=float).astype(int).clip(0, 11)],
        classes=["no", "yes"],
    )
    rules = RuleSet(
        [Rule([OneOf(1, [value])], "no"), Rule([], "yes")], ["x", "z"], task="classification"
    )
    result = verify(rules, model, X, limits=LIMITS)
    assert result.rules[0].witness is not None
    check = check_verification(result.to_json(), model, X, n_rows=2000)
    assert check.verdict == "not refuted", check


def test_check_confirms_arrow_columns() -> None:
    X = pd.DataFrame({"x": [1, 2, 3, 4] * 6, "c": ["u", "v", None, "u"] * 6})
    pytest.importorskip("pyarrow")
    X = X.convert_dtypes(dtype_backend="pyarrow")
    model = CallableClassifier(
        lambda rows: np.where(np.asarray(rows["x"], dtype=float) > 3, "yes", "no"),
        classes=["no", "yes"],
    )
    rules = RuleSet(
        [Rule([Interval(0, upper=2.5)], "no"), Rule([OneOf(1, ["u"])], "yes"), Rule([], "no")],
        ["x", "c"],
        task="classification",
    )
    result = verify(rules, model, X, limits=LIMITS)
    check = check_verification(result.to_json(), model, X, n_rows=2000)
    assert check.verdict == "not refuted", check


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "Int8", "boolean", "int64[pyarrow]"])
def test_check_confirms_nullable_columns(dtype: str) -> None:
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    numbers = np.arange(40)
    values = [None if i % 5 == 0 else i % (2 if dtype == "boolean" else 7) for i in range(40)]
    X = pd.DataFrame({"x": numbers * 1.0, "z": pd.Series(values, dtype="Int64").astype(dtype)})
    y = np.where((numbers % 7 > 3) | (numbers > 30), "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1, random_state=0)
    rules = RuleSet([Rule([Interval(0, upper=20)], "no"), Rule([], "yes")], ["x", "z"], task=TASK)
    result = verify(rules, model.fit(X, y), X, limits=LIMITS)
    check = check_verification(result.to_json(), model, X)
    assert check.verdict == "confirmed", check


@pytest.mark.parametrize("first", [pd.Timestamp("2020-01-01"), pd.NaT])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_check_confirms_witness_with_date(first, unit: str) -> None:
    X = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0] * 6, "day": pd.date_range("2020-01-01", periods=24)}
    )
    X["day"] = X["day"].astype(f"datetime64[{unit}]")
    X.loc[0, "day"] = first
    model = CallableClassifier(
        lambda rows: np.where(np.asarray(rows["x"], dtype=float) > 3, "yes", "no"),
        classes=["no", "yes"],
    )
    rules = RuleSet([Rule([Interval(0, upper=2)], "no"), Rule([], "yes")], ["x", "day"], task=TASK)
    result = verify(rules, model, X, limits=LIMITS)
    assert any(rule.witness is not None for rule in result.rules)
    check = check_verification(result.to_json(), model, X, n_rows=2000)
    assert check.verdict == "not refuted", check
