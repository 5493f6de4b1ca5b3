"""The checker confirms true certificates and rejects false ones."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import certificates
from skescore.certificates import Certificate, certify, check_certificate
from skescore.metrics import ice_score
from skescore.optimal import SearchSpace, SolverLimits
from skescore.rules import (
    Domain,
    Fallback,
    Interval,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    as_ruleset,
)
from skescore.scorers import make_ice_scorer

#: The checker, which also runs without the package.
CHECKER = Path(certificates.__file__).with_name("_check.py")
#: What a certificate says of a number that another number would be a lie.
Change = Callable[[Any, np.random.Generator], bool]


@pytest.fixture(scope="module", params=["classification", "regression"])
def certified(request: Any) -> tuple[str, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 9, 24).astype(float),
            "b": rng.integers(0, 4, 24).astype(float),
            "c": rng.choice(["u", "v"], 24),
        }
    )
    frame.loc[::7, "b"] = np.nan
    score = frame["a"] + 2 * (frame["c"] == "u") + rng.integers(0, 2, 24)
    if request.param == "classification":
        y = np.array(["low", "mid", "high"])[np.digitize(score, [3, 6])]
        model: Any = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0)
    else:
        y = score.to_numpy(dtype=float) + rng.normal(size=24).round(2)
        model = DecisionTreeRegressor(max_leaf_nodes=3, random_state=0)
    rules = as_ruleset(model.fit(frame[["a"]], y))
    certificate = certify(rules, frame, y, space=SearchSpace(3, cuts=3), kinds=KINDS)
    return certificate.to_json(), frame, y


KINDS = ["tree", "list"]


def any_frontier(data: Any, rng: np.random.Generator) -> tuple[Any, int]:
    part = data["frontiers"][rng.integers(len(data["frontiers"]))]
    return part, int(rng.integers(len(part["lower"])))


def other(value: float, rng: np.random.Generator) -> float:
    """Return another number."""
    step = float(rng.choice([0.001, 0.1, 1, 5]) * rng.choice([-1, 1]))
    return value + (step if abs(value) < 50 else step * 10)


def change_bound(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    name = str(rng.choice(["lower", "upper"]))
    part[name][size] = other(part[name][size], rng)
    return True


def change_both_bounds(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    value = other(part["lower"][size], rng)
    part["lower"][size] = part["upper"][size] = value
    return value >= 0


def raise_lower_of_unproven(data: Any, rng: np.random.Generator) -> bool:
    """Raise a proven bound, which is false with any status."""
    part, size = any_frontier(data, rng)
    part["status"] = ["time_limit"] * len(part["status"])
    part["lower"][size] += 0.5
    part["upper"][size] += 1.0
    return True


def change_measured(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    metrics = part["measured"][size]
    name = str(rng.choice(sorted(metrics)))
    metrics[name] = other(metrics[name], rng)
    return True


def change_given(data: Any, rng: np.random.Generator) -> bool:
    metrics = data["given"]["metrics"]
    name = str(rng.choice(sorted(metrics)))
    metrics[name] = other(metrics[name], rng)
    return True


def change_size_given(data: Any, rng: np.random.Generator) -> bool:
    name = str(rng.choice(["n_rules", "completeness_volume", "completeness_instances"]))
    data["given"][name] = data["given"][name] - float(rng.choice([0.1, 1]))
    return True


def change_rows(data: Any, rng: np.random.Generator) -> bool:
    name = str(rng.choice(["n_rows", "checksum", "weighted", "sums"]))
    about = data["rows"]
    if name == "checksum":
        at = int(rng.integers(64))
        digit = "0" if about["checksum"][at] != "0" else "1"
        about["checksum"] = about["checksum"][:at] + digit + about["checksum"][at + 1 :]
    elif name == "sums" and "squares" in about:
        about["squares"] = other(about["squares"], rng)
    elif name == "sums":
        at = int(rng.integers(len(about["class_weights"])))
        about["class_weights"][at] = other(about["class_weights"][at], rng)
    else:
        about[name] = not about[name] if name == "weighted" else about[name] + 1
    return True


def change_weight(data: Any, rng: np.random.Generator) -> bool:
    part, _ = any_frontier(data, rng)
    part["total_weight"] = other(part["total_weight"], rng)
    return True


def change_conclusion(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    rule = rng.choice(part["rules"][size]["rules"])
    if isinstance(rule["then"], str):
        other_labels = {"low", "mid", "high"} - {rule["then"]}
        rule["then"] = str(rng.choice(sorted(other_labels)))
    else:
        rule["then"] = other(rule["then"], rng)
    return True


def change_condition(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    conditions = [c for rule in part["rules"][size]["rules"] for c in rule["if"]]
    if not conditions:
        return False
    condition = rng.choice(conditions)
    if condition["type"] == "interval":
        name = str(rng.choice([n for n in ("lower", "upper") if n in condition]))
        condition[name] = other(condition[name], rng)
    else:
        condition["negated"] = not condition["negated"]
    return True


def drop_rule(data: Any, rng: np.random.Generator) -> bool:
    part, size = any_frontier(data, rng)
    rules = part["rules"][size]["rules"]
    del rules[int(rng.integers(len(rules)))]
    return True


def swap_rules(data: Any, rng: np.random.Generator) -> bool:
    """Exchange the rules of two sizes."""
    part, size = any_frontier(data, rng)
    with_other = (size + 1) % len(part["rules"])
    rules = part["rules"]
    rules[size], rules[with_other] = rules[with_other], rules[size]
    return bool(part["upper"][size] != part["upper"][with_other])


def claim_more_cuts(data: Any, rng: np.random.Generator) -> bool:
    data["settings"]["cuts_per_feature"] = [None, 0, 0.5, "8"][int(rng.integers(4))]
    return True


def claim_other_kind(data: Any, rng: np.random.Generator) -> bool:
    part, _ = any_frontier(data, rng)
    name, value = [("kind", "forest"), ("loss", "gini"), ("loss", "absolute_error")][
        int(rng.integers(3))
    ]
    part[name] = value
    return True


def leave_out(data: Any, rng: np.random.Generator) -> bool:
    part, _ = any_frontier(data, rng)
    where = [data, part, data["rows"], data["given"]][int(rng.integers(4))]
    del where[str(rng.choice(sorted(set(where) - {"seconds", "reference", "score"})))]
    return True


CHANGES: list[Change] = [
    change_bound,
    change_both_bounds,
    raise_lower_of_unproven,
    change_measured,
    change_given,
    change_size_given,
    change_rows,
    change_weight,
    change_conclusion,
    change_condition,
    drop_rule,
    swap_rules,
    claim_more_cuts,
    claim_other_kind,
    leave_out,
]


def check_falsified(certified: tuple[str, pd.DataFrame, np.ndarray], seeds: range) -> None:
    text, X, y = certified
    n_changed = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        data = json.loads(text)
        change = CHANGES[seed % len(CHANGES)]
        if not change(data, rng):
            continue
        n_changed += 1
        result = check_certificate(json.dumps(data), X, y)
        assert result.verdict == "rejected", (change.__name__, seed, str(result))
    assert n_changed > 0.8 * len(seeds)


def test_checker_rejects_100_false_certificates(certified: Any) -> None:
    check_falsified(certified, range(100))


@pytest.mark.slow
def test_checker_rejects_1000_false_certificates(certified: Any) -> None:
    check_falsified(certified, range(100, 1300))


FEWER: dict[str, Callable[[Any], object]] = {
    "no cut of a": lambda cuts: cuts["thresholds"]["0"].remove(1.5),
    "no cut of b": lambda cuts: cuts["thresholds"].pop("1"),
    "no cut of b as of the rules given": lambda cuts: cuts["thresholds"]["1"].remove(1.5),
    "numbers of b as categories": lambda cuts: cuts["categories"].update(
        {"1": cuts["thresholds"].pop("1")}
    ),
    "no category of c": lambda cuts: cuts["categories"].clear(),
    "one category of c less": lambda cuts: cuts["categories"]["2"].pop(),
}


@pytest.mark.parametrize("per_feature", [None, 1])
def test_checker_rejects_missing_cuts(per_feature: int | None) -> None:
    X = pd.DataFrame(
        {"a": [0.0, 1.0, 2.0, 3.0] * 3, "b": [1.0, 2.0, 3.0] * 4, "c": ["u"] * 5 + ["v"] * 7}
    )
    rules = RuleSet(
        [Rule([Interval(1, upper=1.5)], "p"), Rule([], "q")],
        list(X.columns),
        task="classification",
    )
    y = np.array(["p", "q"] * 6)
    certified = certify(rules, X, y, space=SearchSpace(1, max_conditions=1, cuts=per_feature))
    assert check_certificate(certified.to_json(), X, y).verdict == "confirmed"
    for change_name, change in FEWER.items():
        data = json.loads(certified.to_json())
        for part in data["frontiers"]:
            change(part["space"]["cuts"])
        assert check_certificate(json.dumps(data), X, y).verdict == "rejected", change_name


def test_checker_rejects_leaves_of_no_tree() -> None:
    """Five boxes in the shape of a windmill are not the leaves of any tree."""
    sails = {"p": "0-1:0-0", "q": "2-2:0-1", "r": "1-2:2-2", "s": "0-0:1-2", "t": "1-1:1-1"}
    boxes = {k: [list(map(int, e.split("-"))) for e in v.split(":")] for k, v in sails.items()}
    X = pd.DataFrame([(a, b) for a in range(3) for b in range(3)], columns=["a", "b"], dtype=float)

    def premise(box: Any) -> list[Interval]:
        ends = [
            (low - 0.5 if low else -np.inf, high + 0.5 if high < 2 else np.inf) for low, high in box
        ]
        return [
            Interval(j, *pair, False, True)
            for j, pair in enumerate(ends)
            if np.isfinite(pair).any()
        ]

    rules = RuleSet(
        [Rule(premise(box), k) for k, box in boxes.items()],
        ["a", "b"],
        task="classification",
        ordered=False,
    )
    y = rules.predict(X)
    text = certify(rules, X, y, space=SearchSpace(5), kinds=["tree"]).to_json()
    assert check_certificate(text, X, y).verdict == "confirmed"
    data = json.loads(text)
    part = data["frontiers"][0]
    assert part["upper"][4] > 0
    part["upper"][4] = part["lower"][4] = 0
    part["rules"][4] = data["given"]["rules"]
    part["measured"][4] = {"n_rules": 5, "accuracy": 1.0, "f1_weighted": 1.0}
    f1_bound = check_certificate(json.dumps(data), X, y)
    assert f1_bound.verdict == "rejected"
    assert "leaves must be those of a tree of the space" in str(f1_bound)


@pytest.mark.parametrize(("unit", "weight"), [(1e-10, 1.0), (1.0, 1e-12)])
def test_checker_tolerance_is_relative(unit: float, weight: float) -> None:
    X, y = np.arange(8.0)[:, None], unit * np.arange(8.0) ** 2
    weights = np.full(8, weight)
    rules = as_ruleset(DecisionTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, y))
    options: dict[str, Any] = {"kinds": ["tree"], "space": SearchSpace(2), "scoring": "fire"}
    text = certify(rules, X, y, sample_weight=weights, **options).to_json()
    assert check_certificate(text, X, y, weights).verdict == "confirmed"
    data = json.loads(text)
    data["frontiers"][0]["upper"][0] *= 1.01
    data["frontiers"][0]["status"][0] = "time_limit"
    assert check_certificate(json.dumps(data), X, y, weights).verdict == "rejected"


def test_checker_compares_large_integers_as_rules() -> None:
    X, y = np.array([[2**53], [2**53 + 1], [2**53 + 2]]), np.array(["p", "p", "q"])
    rules = RuleSet(
        [Rule([Interval(0, upper=2.0**53)], "p"), Rule([], "q")], ["x0"], task="classification"
    )
    text = certify(rules, X, y, space=SearchSpace(2, max_conditions=1)).to_json()
    assert check_certificate(text, X, y).verdict == "confirmed"


def test_checker_confirms_true_certificate(certified: Any, tmp_path: Path) -> None:
    text, X, y = certified
    assert check_certificate(text, X, y).verdict == "confirmed"
    file = tmp_path / "certificate.json"
    file.write_text(text, encoding="utf-8")
    result = check_certificate(file, X, y)
    assert str(result).endswith("verdict: confirmed")
    assert check_certificate(str(file), X, y) == result


def test_checker_rejects_other_rows(certified: Any) -> None:
    text, X, y = certified
    assert check_certificate(text, X.iloc[:-1], y[:-1]).verdict == "rejected"
    assert check_certificate(text, X.iloc[::-1], y[::-1]).verdict == "rejected"
    assert check_certificate(text, X.assign(a=X["a"] + 1), y).verdict == "rejected"
    assert check_certificate(text, X, y[:-1]).verdict == "rejected"
    assert check_certificate(text, X, y[::-1]).verdict == "rejected"


@pytest.fixture(scope="module")
def larger() -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows with too many trees and lists for an enumeration."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(60, 4)).round(1), columns=list("abcd"))
    return frame, np.where(frame["a"] * frame["b"] > 0.3, 0, 1) + (frame["c"] > 1)


def claims(X: Any, y: Any, **options: Any) -> Any:
    """Return a certificate as JSON values."""
    task = "classification" if y.dtype.kind == "i" else "regression"
    classes = np.unique(y).tolist() if task == "classification" else None
    rules = RuleSet([Rule([], y[0].item())], list(X.columns), task=task, classes=classes)
    space = SearchSpace(**{"max_rules": 4, "cuts": 3} | options.pop("space", {}))
    certified = certify(rules, X, y, **{"limits": SolverLimits()} | options, space=space)
    return json.loads(certified.to_json())


@pytest.mark.parametrize(
    ("loss", "weighted"),
    [
        ("errors", True),
        ("squared_error", False),
        ("absolute_error", True),
        pytest.param("errors", False, marks=pytest.mark.slow),
        pytest.param("squared_error", True, marks=pytest.mark.slow),
        pytest.param("absolute_error", False, marks=pytest.mark.slow),
    ],
)
def test_checker_searches_large_spaces(larger: Any, loss: str, weighted: bool) -> None:
    """Bounds raised to the incumbents are rejected where better rules exist."""
    X, y = larger
    y = y.to_numpy() if loss == "errors" else X["a"].to_numpy() ** 2 + X["b"].to_numpy()
    weights = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else None
    options = {
        "scoring": "fire" if loss == "absolute_error" else "ice",
        "sample_weight": weights,
        "space": {"max_conditions": 2 if weighted and loss != "absolute_error" else 1},
    }
    best = claims(X, y, **options)
    poor = claims(X, y, limits=SolverLimits(max_nodes=1), **options)
    n_false = 0
    for kind in (0, 1):
        proven, part = best["frontiers"][kind], poor["frontiers"][kind]
        assert proven["status"] == ["optimal"] * 4
        assert proven["loss"] == loss
        for size in (3, 4):
            false = json.loads(json.dumps(poor))
            raised = false["frontiers"][kind]
            raised["lower"][:size] = raised["upper"][:size]
            raised["status"][:size] = ["optimal"] * size
            better = any(
                part["upper"][i] > proven["upper"][i] + 1e-6 * proven["upper"][0]
                for i in range(size)
            )
            n_false += better
            result = check_certificate(json.dumps(false), X, y, weights)
            assert result.verdict == ("rejected" if better else "confirmed"), str(result)
        part["lower"] = proven["upper"]  # The proof is kept, with worse rules.
        part["status"] = ["node_limit"] * 4
    assert n_false
    result = check_certificate(json.dumps(poor), X, y, weights)
    assert result.verdict == "confirmed", str(result)
    assert any("by the checker's own search" in sentence for sentence in result.findings)
    result = check_certificate(json.dumps(best), X, y, weights, time_limit=0)
    assert result.verdict == "not checked"
    assert result.findings == ("The remaining parts are not checked: the time limit is reached.",)


def test_checker_searches_three_conditions(larger: Any) -> None:
    X, y = larger
    options = {"kinds": ["list"]}
    three, two = (
        claims(X, y.to_numpy(), space={"max_rules": 3, "max_conditions": n}, **options)
        for n in (3, 2)
    )
    result = check_certificate(json.dumps(three), X, y)
    assert result.verdict == "confirmed", str(result)
    assert "3 rules, by the checker's own search" in result.findings[-1]
    two["frontiers"][0]["space"]["max_conditions"] = 3
    assert check_certificate(json.dumps(two), X, y).verdict == "rejected"


def test_checker_respects_memory_limit(larger: Any) -> None:
    """Bounds whose search needs more memory are reported, not rejected."""
    X, y = larger
    space = {"max_rules": 3, "max_conditions": 3, "cuts": 4}
    data = claims(X, y.to_numpy(), kinds=["list"], space=space, limits=SolverLimits(max_nodes=1))
    text = json.dumps(data)
    result = check_certificate(text, X, y, memory_limit=40 * len(text))
    assert result.verdict == "not checked", str(result)
    assert "because the memory limit is reached" in result.findings[-1]
    result = check_certificate(text, X, y, memory_limit=1e4)
    assert result.findings == ("The remaining parts are not checked: the memory limit is reached.",)


def test_checker_computes_volume_of_overlapping_rules(larger: Any) -> None:
    """The domain is [0, 4] × {u, v} × (3/4 observed, 1/4 missing)."""
    X = pd.DataFrame(
        {"a": [0.0, 4.0, 1.0, 2.0], "c": ["u", "v", "u", "v"], "m": [0.0, 1.0, 2.0, np.nan]}
    )
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1.0)], 0),  # 1/4
            Rule(
                [Interval(0, upper=2.0), OneOf(1, ("u",))], 1
            ),  # 1/4 · 1/2 in addition to the first
            Rule([Interval(0, lower=3.0), Missing(2)], 0),  # 1/4 · 1/4
        ],
        ["a", "c", "m"],
        task="classification",
        classes=[0, 1],
        ordered=True,
        domain=Domain((0, 0, 0), (4, 2, 2), categories=((1, ("u", "v")),), missing=(0, 0, 0.25)),
        fallback=Fallback(0),
    )
    y = np.array([0, 0, 1, 1])
    certified = certify(rules, X, y, space=SearchSpace(2, cuts=1))
    assert certified.given_rules["completeness_volume"] == pytest.approx(1 / 4 + 1 / 8 + 1 / 16)
    assert check_certificate(certified.to_json(), X, y).verdict == "confirmed"
    data = json.loads(certified.to_json())
    data["given"]["completeness_volume"] += 0.1
    assert check_certificate(json.dumps(data), X, y).verdict == "rejected"


@pytest.mark.parametrize("text", ["{", "{}", '{"format": "skescore.Certificate", "version": 1}'])
def test_checker_rejects_invalid_json(text: str) -> None:
    assert check_certificate(text, [[1.0]], [0]).verdict == "rejected"


@pytest.fixture(scope="module", params=[6, 7])
def f1_certificate(request: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """Make a certificate with direct bounds of the weighted F1 of trees."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (90, 6)).astype(float)
    y = (2 * X[:, 0] + 3 * X[:, 1] + X[:, 2] + rng.integers(0, 3, 90)).astype(int) % request.param
    model = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    certified = certify(
        as_ruleset(model),
        X,
        y,
        space=SearchSpace(4),
        kinds=["tree"],
        tolerance=0.003,
        limits=SolverLimits(max_nodes=500),
    )
    return certified.to_json(), X, y


@pytest.mark.slow
def test_checker_confirms_f1_bounds(f1_certificate: Any) -> None:
    text, X, y = f1_certificate
    certificate = Certificate.from_json(text)
    assert [bound.max_leaves for bound in certificate.f1_bounds if bound.upper_bound < 1]
    assert certificate.to_json() == text
    assert check_certificate(text, X, y).verdict == "confirmed"
    best_loss, possible = certificate.interval("tree")
    assert best_loss <= possible <= best_loss + 0.003 + 1e-9
    best = certificate.best_rules("tree")
    assert best is not None
    assert make_ice_scorer(reference="data")(best, X, y) == pytest.approx(best_loss)
    # The errors alone give a wider bound.
    wide = replace(certificate, f1_bounds=())
    assert wide.interval("tree").bound > possible
    # The bounds of the F1 hold for other weights, but not for other metrics.
    assert certificate.with_score("ice", phi=2).f1_bounds
    assert certificate.with_score("fire").interval("tree").incumbent > 0


def test_checker_rejects_false_f1_bounds(f1_certificate: Any) -> None:
    text, X, y = f1_certificate
    rng = np.random.default_rng(0)

    def rejected(change: Callable[[Any], None]) -> bool:
        data = json.loads(text)
        f1_bound = [one for one in data["frontiers"][0]["f1_bounds"] if one["upper_bound"] < 1]
        change(f1_bound[int(rng.integers(len(f1_bound)))])
        return check_certificate(json.dumps(data), X, y).verdict == "rejected"

    def prove_less(f1_bound: Any) -> None:
        """Lower the bound below the F1 of the best tree found."""
        f1_bound["upper_bound"] = f1_bound["proof"]["target"] = f1_bound["incumbent"] - 0.002

    def leave_out_a_part(f1_bound: Any) -> None:
        part = f1_bound["proof"]["root"]
        limits = {"class": 0, "between": [10, 40], "branches": [part, part]}
        f1_bound["proof"]["root"] = limits

    def ask_for_more(f1_bound: Any) -> None:
        f1_bound["proof"]["target"] = f1_bound["upper_bound"] + 0.01

    def find_more(f1_bound: Any) -> None:
        f1_bound["incumbent"] += 0.01

    def other_conclusion(f1_bound: Any) -> None:
        rules = f1_bound["rules"]["rules"]
        rules[0]["then"] = next(rule["then"] for rule in rules if rule["then"] != rules[0]["then"])

    for change in (prove_less, leave_out_a_part, ask_for_more, find_more, other_conclusion):
        for _ in range(3):
            assert rejected(change), change.__name__


@pytest.mark.parametrize("low", ["a", 2**53], ids=["texts", "beyond all floats"])
def test_checker_distinguishes_codes_and_labels(low: Any) -> None:
    high = "b" if low == "a" else low + 1
    frame = pd.DataFrame({"code": ["01", "1", "1.0", "1"] * 3})
    y = np.where(frame["code"] == "1", low, high)
    simple_rules = RuleSet([Rule([], low)], ["code"], task="classification", classes=[low, high])
    certificate = certify(simple_rules, frame, y, space=SearchSpace(2), kinds=["tree"])
    assert certificate.frontiers[0].upper.tolist() == [6.0, 0.0]
    assert check_certificate(certificate.to_json(), frame, y).verdict == "confirmed"
    y[0] = low
    assert check_certificate(certificate.to_json(), frame, y).verdict == "rejected"


@pytest.mark.parametrize("kind", ["tree", "list"])
def test_certify_accepts_constant_target(kind):
    """The computed mean of 14 values 2.13 differs in its last bit; the loss must still be 0."""
    X, y = np.random.default_rng(0).normal(size=(14, 2)), np.full(14, 2.13)
    rules = as_ruleset(DecisionTreeRegressor(max_leaf_nodes=3, random_state=0).fit(X, X[:, 0]))
    certified = certify(
        rules,
        X,
        y,
        space=SearchSpace(cuts=2, max_rules=3),
        kinds=[kind],
        limits=SolverLimits(time_limit=None),
    )
    interval = certified.interval(kind)
    assert interval.incumbent == interval.bound == pytest.approx(ice_score(1.0, 1, 1.0))
    assert check_certificate(certified.to_json(), X, y).verdict == "confirmed"


def test_check_confirms_small_spread_of_large_targets():
    """The mean, which replaces missing predictions, is rounded in the 12th digit."""
    X = pd.DataFrame({"b": [2.0, 0.0, 2.0, 0.0, 1.0, 0.0]})
    y = -1e4 + np.array([30.0, 10.0, 10.0, 30.0, 5.0, 14.8]) / 1e5
    rules = RuleSet([Rule([Interval(0, lower=0.5)], -1e4)], ["b"], task="regression")
    w = [2.0, 2.0, 1.0, 3.0, 3.0, 3.0]
    certified = certify(rules, X, y, space=SearchSpace(2), kinds=["list"], sample_weight=w)
    assert check_certificate(certified.to_json(), X, y, w).verdict == "confirmed"


def test_check_confirms_disjoint_rules_meeting_at_constant():
    frame = pd.DataFrame({"age": [18] * 5, "size": [0.0, 0.5, 1.0, 3.0, 4.0]})
    y = ["no", "no", "yes", "no", "no"]
    premises = [[Interval(0, upper=18), Interval(1, upper=1)], [Interval(0, lower=18)]]
    rules = RuleSet(
        [Rule(premise, label) for premise, label in zip(premises, ["no", "yes"], strict=True)],
        list(frame.columns),
        task="classification",
        ordered=False,
        disjoint=True,
    )
    certified = certify(rules, frame, y, space=SearchSpace(2), kinds=["tree"])
    assert certified.given_rules["completeness_volume"] == pytest.approx(0.25)
    assert check_certificate(certified.to_json(), frame, y).verdict == "confirmed"


def test_check_confirms_value_set_of_constant_number():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "z": [7.0] * 4})
    y = ["b", "b", "a", "b"]
    premises = [([OneOf(1, [7])], "a"), ([Interval(1, upper=5)], "b")]
    rules = RuleSet(
        [Rule(*premise) for premise in premises], list(frame.columns), task="classification"
    )
    certified = certify(rules, frame, y, space=SearchSpace(2), kinds=["tree"])
    assert check_certificate(certified.to_json(), frame, y).verdict == "confirmed"


@pytest.mark.parametrize("dtype", [object, "category", "boolean"])
@pytest.mark.parametrize("value", [0, 1.0, False, True])
def test_check_equates_booleans_and_numbers(dtype, value):
    column = pd.Series([True, False, None] * 4, dtype=dtype)
    frame = pd.DataFrame({"x": np.arange(12.0), "z": column})
    y = ["no", "yes"] * 6
    rules = RuleSet(
        [Rule([OneOf(1, [value])], "no"), Rule([], "yes")],
        list(frame.columns),
        task="classification",
    )
    certified = certify(rules, frame, y, space=SearchSpace(2), kinds=["tree"])
    assert certified.given_rules["rules"] is not None
    assert check_certificate(certified.to_json(), frame, y).verdict == "confirmed"


@pytest.mark.parametrize(("classes", "labels"), [((0, 1), (False, True)), ((False, True), (0, 1))])
def test_check_equates_booleans_and_numbers_as_labels(classes, labels):
    frame = pd.DataFrame({"x": np.arange(12.0)})
    y = np.where(frame["x"] > 7, labels[1], labels[0])
    rules = RuleSet(
        [Rule([Interval(0, upper=6)], classes[0]), Rule([], classes[1])],
        list(frame.columns),
        task="classification",
    )
    certificate = certify(rules, frame, y, space=SearchSpace(2))
    assert check_certificate(certificate.to_json(), frame, y).verdict == "confirmed"


STANDALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(("skescore", "sklearn", "scipy", "pandas", "threadpoolctl"))
sys.argv = ["_check.py", *sys.argv[1:]]
runpy.run_path("_check.py", run_name="__main__")
"""


@pytest.mark.parametrize("is_true", [True, False])
def test_checker_runs_without_the_package(is_true, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 9, 30), "c": rng.choice(["u", "v"], 30)})
    frame["is_new"] = pd.array(rng.choice([True, False], 30), dtype="boolean")
    frame.loc[::7, "is_new"] = pd.NA
    y = pd.Series(np.where(frame["a"] > 4, "yes", "no"), name="bought")
    weights = pd.Series(rng.integers(1, 4, 30), name="count")
    rules = RuleSet(
        [Rule([OneOf(1, ["u"])], "no"), Rule([], "yes")],
        list(frame.columns),
        task="classification",
    )
    certificate = certify(rules, frame, y, space=SearchSpace(2, cuts=4), sample_weight=weights)
    text = certificate.to_json() if is_true else certificate.to_json().replace(": 30,", ": 31,")
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    pd.concat([frame, weights, y], axis=1).to_csv(tmp_path / "rows.csv", index=False)
    shutil.copy(CHECKER, tmp_path / "_check.py")
    arguments = ["certificate.json", "rows.csv", "bought", "count"]
    run = subprocess.run(
        [sys.executable, "-I", "-c", STANDALONE, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not run.stderr
    assert run.returncode == (0 if is_true else 1)
    assert run.stdout.rstrip() == str(check_certificate(text, frame, y, weights))
    assert "against bought" in run.stdout or not is_true


def test_checker_imports_only_standard_library_and_numpy():
    tree = ast.parse(CHECKER.read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add("." * node.level + str(node.module))
    names = {module.split(".")[0] for module in modules}
    assert names - sys.stdlib_module_names == {"numpy"}
