"""Forged certificates with false claims: the checker confirms none of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pytest
from certificate_oracle import Case, Oracle, example_cases, make_case
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.certificates import Certificate, certify, check_certificate
from skescore.metrics import volume_completeness
from skescore.optimal import SearchSpace, SolverLimits
from skescore.rules import Interval, OneOf, Rule, RuleSet, as_ruleset

#: A forged certificate: its name, its rows and its text.
Forgery = tuple[str, Case, str]
HUGE = (1e308, 1e300, 1e17, 2**53, 10**290)
NOT_FINITE = (math.nan, math.inf, -math.inf)


def forge(case: Case, name: str, change: Callable[[Any], object]) -> Forgery:
    """Change the values of a certificate."""
    data = case.data
    change(data)
    return f"{case.name}: {name}", case, json.dumps(data)


def f1_bound_of(data: Any) -> Any:
    """Return the first bound of the F1 that is proven."""
    return next(b for b in data["frontiers"][0]["f1_bounds"] if b["upper_bound"] < 1)


def false_f1(data: Any, root: Any) -> None:
    """Claim that no tree has a larger F1 than the best tree found less 0.01."""
    bound = f1_bound_of(data)
    tree = data["frontiers"][0]["rules"][0]
    bound["rules"], bound["incumbent"] = tree, data["frontiers"][0]["measured"][0]["f1_weighted"]
    bound["upper_bound"] = bound["proof"]["target"] = bound["incumbent"] + 0.01
    bound["proof"]["root"] = root


def forge_vacuous_proofs() -> Iterator[Forgery]:
    case = example_cases()["f1"]
    leaf = {"linear": [], "multipliers": [0.0] * 6}
    two = [leaf, leaf]
    classes = ([0, 1, 2], [0], -1, 6, 99, 0.0, "0", None, True)
    between = ([13, 14], [4, 3], [3, 5], [-1, 25], [25, -1], [0, 24], [24, 0], [1e308, -1e308])
    roots: list[Any] = [{"class": k, "between": [13, 14], "branches": two} for k in classes]
    roots += [{"class": 0, "between": pair, "branches": two} for pair in between]
    roots += [{"class": 0, "between": [13, 14], "branches": [{}, {}]}, {}, [], None, leaf]
    roots += [{"class": 0, "between": [1, 2, 3], "branches": two}]
    roots += [{"class": 0, "between": [1, 2], "branches": two[:n]} for n in (0, 1)]
    roots += [{"class": 0, "between": [1, 2]}, {**leaf, "class": 0, "between": [0, 1]}]
    for i, root in enumerate(roots):
        yield forge(case, f"root {i}", lambda data, root=root: false_f1(data, root))

    def infeasible(data: Any) -> None:
        false_f1(data, leaf)
        f1_bound_of(data)["proof"]["target"] = 1.5

    yield forge(case, "a target that no tree reaches", infeasible)
    for names in ([], [0], [0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, "5"], [0, 1, 2, 3, 4, 5, 6]):

        def rename(data: Any, names: Any = names) -> None:
            false_f1(data, leaf)
            f1_bound_of(data)["proof"]["classes"] = names

        yield forge(case, f"classes {names}", rename)


def forge_multipliers() -> Iterator[Forgery]:
    case = example_cases()["f1"]
    values = [*HUGE, *NOT_FINITE, *(-v for v in HUGE), 1e6, -1e6, 1e7, "1", None]
    for value in values:
        for multipliers in ([value] * 6, [value] + [0.0] * 5, [value, -1.0] * 3):
            for linear in ([], list(range(6))):
                leaf = {"linear": linear, "multipliers": multipliers}
                yield forge(case, f"{value}", lambda data, leaf=leaf: false_f1(data, leaf))
    for linear in ([-1], [6], [0.5], "all", [[0]]):
        leaf = {"linear": linear, "multipliers": [0.0] * 6}
        yield forge(case, f"linear {linear}", lambda data, leaf=leaf: false_f1(data, leaf))


def forge_numbers() -> Iterator[Forgery]:
    """Write numbers that are not finite, or huge, into fields on which claims depend."""
    paths: list[tuple[Any, ...]] = [
        ("rows", "n_rows"),
        ("rows", "class_weights", 0),
        ("given", "n_rules"),
        ("given", "completeness_volume"),
        ("given", "completeness_instances"),
        ("frontiers", 0, "lower", 1),
        ("frontiers", 0, "upper", 1),
        ("frontiers", 0, "total_weight"),
        ("frontiers", 0, "measured", 1, "accuracy"),
        ("frontiers", 0, "measured", 1, "f1_weighted"),
        ("frontiers", 0, "space", "cuts", "n_features"),
        ("settings", "cuts_per_feature"),
    ]
    for path in paths:
        for value in (*NOT_FINITE, *HUGE[:3], -1, True):

            def put(data: Any, path: Any = path, value: Any = value) -> None:
                for key in path[:-1]:
                    data = data[key]
                data[path[-1]] = value

            yield forge(example_cases()["tree"], f"{path} = {value}", put)


def forge_bounds() -> Iterator[Forgery]:
    """Claim that larger rules are no better than smaller ones."""
    for case in example_cases().values():
        for k, frontier in enumerate(case.data["frontiers"]):
            for i in range(1, len(frontier["lower"])):
                if frontier["lower"][i] >= frontier["lower"][i - 1]:
                    continue

                def repeat(data: Any, k: int = k, i: int = i) -> None:
                    part = data["frontiers"][k]
                    for name in ("lower", "upper", "rules", "measured", "status"):
                        part[name][i:] = [part[name][i - 1]] * len(part[name][i:])

                def raise_bound(data: Any, k: int = k, i: int = i) -> None:
                    part = data["frontiers"][k]
                    part["lower"][: i + 1] = part["upper"][: i + 1] = part["upper"][:1] * (i + 1)

                yield forge(case, f"{i} rules are enough", repeat)
                yield forge(case, f"raised {i}", raise_bound)


def forge_leaves() -> Iterator[Forgery]:
    """Put rules outside of the space into the certificate."""
    case = example_cases()["regression"]
    for terms in ([[0, 2.0]], [[0, 1.0], [1, -1.0]], [], [[9, 1.0]], [[0, math.nan]], [[0.0, 1]]):

        def bend(data: Any, terms: Any = terms) -> None:
            part = data["frontiers"][0]
            part["rules"][0]["rules"][0]["then"] = {"intercept": 0.0, "terms": terms}
            part["lower"] = part["upper"] = [0.0] * len(part["lower"])

        yield forge(case, f"linear leaf {terms}", bend)
    for case in example_cases().values():
        for k, frontier in enumerate(case.data["frontiers"]):
            for i, rules in enumerate(frontier["rules"]):
                for r, rule in enumerate(rules["rules"]):
                    for c, condition in enumerate(rule["if"]):
                        for change in _other_tests(condition):

                            def swap(
                                data: Any, place: Any = (k, i, r, c), new: Any = change
                            ) -> None:
                                k, i, r, c = place
                                premise = data["frontiers"][k]["rules"][i]["rules"][r]["if"]
                                premise[c] = new

                            yield forge(case, f"test {change}", swap)


def _other_tests(condition: Any) -> Iterator[Any]:
    """Yield conditions that are not in the space."""
    j = condition.get("feature", 0)
    yield {"type": "linear", "terms": [[j, 1.0]], "upper": 1.0, "upper_closed": True}
    yield {"type": "at_least", "m": 1, "conditions": [condition]}
    if condition["type"] == "interval":
        side = "upper" if "upper" in condition else "lower"
        yield {**condition, side: condition[side] + 0.001}
        yield {**condition, f"{side}_closed": not condition[f"{side}_closed"]}
        yield {"type": "one_of", "feature": j, "values": [1.0], "negated": False}
        yield {"type": "interval", "feature": 7, "upper": 1.0, "upper_closed": True}


def forge_domains() -> Iterator[Forgery]:
    """Measure the completeness in another domain."""
    case = example_cases()["incomplete"]
    for size in (0.5, 1.0, 1.5, 10.0, 1e300):
        for low in (0.0, -1.0, -1e300):

            def resize(data: Any, low: float = low, size: float = size) -> None:
                rules = RuleSet.from_json(json.dumps(data["given"]["rules"]))
                domain = replace(rules.domain, lower=(low, low), upper=(size, size))
                rules = rules.replace(domain=domain)
                data["given"]["rules"]["domain"] |= {"lower": [low, low], "upper": [size, size]}
                data["given"]["completeness_volume"] = float(volume_completeness(rules))

            yield forge(case, f"[{low}, {size}]", resize)
    for volume in (1.0, 0.0, 0.99, 0.5):

        def state(data: Any, volume: float = volume) -> None:
            data["given"]["completeness_volume"] = volume
            data["given"]["rules"]["domain"] = None

        yield forge(case, f"no domain, {volume}", state)


def forge_cuts() -> Iterator[Forgery]:
    """Cut columns that do not exist, or remove cuts that the text describes."""
    for case in example_cases().values():
        for name, change in CUTS.items():

            def cut(data: Any, change: Any = change) -> None:
                for part in data["frontiers"]:
                    change(part["space"]["cuts"])

            yield forge(case, name, cut)


CUTS: dict[str, Callable[[Any], object]] = {
    "column 7": lambda cuts: cuts["thresholds"].update({"7": [0.5]}),
    "column -1": lambda cuts: cuts["thresholds"].update({"-1": [0.5]}),
    "column 00": lambda cuts: cuts["thresholds"].update({"00": [0.5]}),
    "categories of column 9": lambda cuts: cuts["categories"].update({"9": ["u"]}),
    "sets of column 9": lambda cuts: cuts.update(category_sets={"9": [["u"]]}),
    "missing column 5": lambda cuts: cuts["missing_features"].append(5),
    "more features": lambda cuts: cuts.update(n_features=9),
    "no cuts": lambda cuts: cuts.update(thresholds={}, categories={}, category_sets={}),
    "order": lambda cuts: cuts["thresholds"].update({"0": [1.0, 0.0]}),
    "repeated": lambda cuts: cuts["thresholds"].update({"0": [1.5, 1.5, 1.5]}),
    "unknown field": lambda cuts: cuts.update(extra=1),
}


def forge_settings() -> Iterator[Forgery]:
    """Change score, metric, weights, task and names."""
    for case in example_cases().values():
        for name, change in SETTINGS.items():
            yield forge(case, name, change)


SETTINGS: dict[str, Callable[[Any], object]] = {
    "phi -5": lambda data: data["settings"].update(weights={"phi": -5, "rho": 1}),
    "phi 0": lambda data: data["settings"].update(weights={"phi": 0, "rho": 1}),
    "no phi": lambda data: data["settings"].update(weights={"rho": 1}),
    "more weights": lambda data: data["settings"]["weights"].update(tau=2.0),
    "score": lambda data: data.update(score="ICE"),
    "no score": lambda data: data.update(score=None),
    "metric": lambda data: data["settings"].update(metric="f1_macro"),
    "metric of another task": lambda data: data["settings"].update(
        metric="r2" if data["rows"]["task"] == "classification" else "accuracy"
    ),
    "completeness": lambda data: data["settings"].update(completeness="area"),
    "no cuts": lambda data: data["settings"].update(cuts_per_feature=0),
    "task": lambda data: data["rows"].update(task="clustering"),
    "rows": lambda data: data["rows"].update(n_rows=data["rows"]["n_rows"] + 1),
    "checksum": lambda data: data["rows"].update(checksum="0" * 64),
    "weighted": lambda data: data["rows"].update(weighted=not data["rows"]["weighted"]),
    "version": lambda data: data.update(version=2),
    "no proof": lambda data: data.update(frontiers=[]),
    "one proof twice": lambda data: data["frontiers"].append(data["frontiers"][0]),
    "no metrics": lambda data: data["given"].update(metrics={}),
    "fewer rules": lambda data: data["given"].update(n_rules=1),
    "no rules": lambda data: data["given"]["rules"].update(rules=[]),
    "class counts": lambda data: data["frontiers"][0]["rules"][0]["rules"][0].update(
        statistics={"n_rows": 3}
    ),
    "kind": lambda data: data["frontiers"][0].update(kind="forest"),
    "conditions": lambda data: data["frontiers"][-1]["space"].update(max_conditions=1_000_000),
}

FAMILIES: dict[str, Callable[[], Iterator[Forgery]]] = {
    "vacuous proofs": forge_vacuous_proofs,
    "multipliers": forge_multipliers,
    "numbers": forge_numbers,
    "bounds": forge_bounds,
    "leaves": forge_leaves,
    "domains": forge_domains,
    "cuts": forge_cuts,
    "settings": forge_settings,
}


def check_forgeries(family: str, step: int) -> int:
    """Check every k-th forgery of a family; return their number."""
    n_forged = 0
    oracles = {name: Oracle(case) for name, case in example_cases().items()}
    for name, case, text in islice(FAMILIES[family](), 0, None, step):
        n_forged += 1
        result = check_certificate(text, case.X, case.y, case.weights, time_limit=10)
        assert result.verdict != "confirmed", (name, str(result))
        assert not oracles[case.name].false_claims(text, result), (name, str(result))
    return n_forged


@pytest.mark.parametrize("family", list(FAMILIES))
def test_checker_confirms_no_forgery(family: str) -> None:
    assert check_forgeries(family, 6) >= 3


@pytest.mark.slow
def test_checker_confirms_no_forgery_of_1000() -> None:
    assert sum(check_forgeries(family, 1) for family in FAMILIES) >= 1000


# --- single forgeries --


def verdict_of(case: Case, data: Any, **options: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return check_certificate(text, case.X, case.y, case.weights, **options).verdict


def test_checker_rejects_branch_on_several_classes() -> None:
    case = example_cases()["f1"]
    leaf = {"linear": [], "multipliers": [0.0] * 6}
    data = case.data
    false_f1(data, {"class": [0, 1, 2], "between": [13, 14], "branches": [leaf, leaf]})
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_overflowing_multipliers() -> None:
    case = example_cases()["f1"]
    data = case.data
    false_f1(data, {"linear": [], "multipliers": [1e308] * 6})
    assert verdict_of(case, data) == "rejected"


def test_checker_compares_squares_relatively() -> None:
    X = pd.DataFrame({"a": np.arange(12.0)})
    y = 1 + 1e-6 * np.random.default_rng(0).normal(size=12)
    model = DecisionTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, y)
    case = make_case("squares", as_ruleset(model), X, y, kinds=["tree"], space=SearchSpace(2))
    assert verdict_of(case, case.data) == "confirmed"
    data = case.data
    data["rows"]["squares"] /= 1000
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_linear_leaf() -> None:
    X = pd.DataFrame({"a": np.arange(8.0)})
    y = 2 * X["a"].to_numpy()
    rules = RuleSet([Rule([], 7.0)], ["a"], task="regression")
    case = make_case("linear", rules, X, y, kinds=["tree"], space=SearchSpace(1))
    data = case.data
    part = data["frontiers"][0]
    part["rules"][0]["rules"][0]["then"] = {"intercept": 0, "terms": [[0, 2.0]]}
    part["lower"] = part["upper"] = [0.0]
    part["measured"][0] |= {"r2": 1.0, "mean_squared_error": 0.0, "root_mean_squared_error": 0.0}
    assert verdict_of(case, data) == "rejected"


def test_checker_measures_volume_in_range_of_rows() -> None:
    """Rules that cover half of the range cover all of a smaller domain."""
    case = example_cases()["incomplete"]
    data = case.data
    data["given"]["completeness_volume"] = 1.0
    data["given"]["rules"]["domain"] |= {"lower": [0.0, 0.0], "upper": [1.0, 1.0]}
    result = check_certificate(json.dumps(data), case.X, case.y)
    assert result.verdict == "not checked"
    assert "differs from the domain of these rows" in str(result)
    assert not any("rules have ICE" in claim for claim in result.claims)


@pytest.mark.parametrize("unit", [1e-300, 1e-165])
def test_checker_confirms_f1_bounds_in_any_unit_of_weights(unit: float) -> None:
    rng = np.random.default_rng(5)
    case = example_cases()["f1"]
    weights = rng.choice([0.5, 1.3, 2.0], len(case.X))
    rules = RuleSet.from_json(json.dumps(case.data["given"]["rules"]))
    options: Any = {
        "space": SearchSpace(3),
        "kinds": ["tree"],
        "tolerance": 0.001,
        "limits": SolverLimits(max_nodes=500),
    }
    usual = make_case("usual", rules, case.X, case.y, weights, **options)
    scaled = make_case("scaled", rules, case.X, case.y, weights * unit, **options)
    results = [check_certificate(one.text, one.X, one.y, one.weights) for one in (usual, scaled)]
    assert [result.verdict for result in results] == ["confirmed"] * 2
    gaps = [Certificate.from_json(one.text).gap() for one in (usual, scaled)]
    assert gaps[1] == pytest.approx(gaps[0], abs=0.002)


@pytest.mark.parametrize("numbers", [[2**53 + 2 * k for k in range(3)], [-5e-324, 0.0, 5e-324]])
def test_checker_measures_volume_between_neighboring_floats(numbers: list[float]) -> None:
    X = pd.DataFrame({"a": numbers})
    premises = [Interval(0, upper=numbers[0])], [Interval(0, lower=numbers[1])]
    rules = RuleSet([Rule(one, "n") for one in premises], ["a"], task="classification")
    space = SearchSpace(max_rules=1)
    case = make_case("neighbors", rules, X, ["n", "n", "p"], kinds=["tree"], space=space)
    assert case.data["given"]["completeness_volume"] == 0.5
    assert check_certificate(case.text, case.X, case.y).verdict == "confirmed"


def test_checker_rejects_cuts_of_other_columns() -> None:
    case = example_cases()["stated"]
    data = case.data
    for part in data["frontiers"]:
        part["space"]["cuts"]["thresholds"]["7"] = [0.5, 1.5, 2.5]
    assert verdict_of(case, data) == "rejected"


@pytest.mark.parametrize("phi", [-5, 0, math.inf, "1"])
def test_checker_rejects_invalid_weight_of_score(phi: Any) -> None:
    case = example_cases()["tree"]
    data = case.data
    data["settings"]["weights"]["phi"] = phi
    assert verdict_of(case, data) == "rejected"


def test_checker_recomputes_score_for_other_weights() -> None:
    """The proof holds for all weights, so that another weight only changes the claims."""
    case = example_cases()["f1"]
    changed = Certificate.from_json(case.text).with_score("ice", phi=1e300)
    result = check_certificate(changed.to_json(), case.X, case.y)
    assert result.verdict == "confirmed"
    assert "3 rules have ICE 0.0000" in result.claims[0]


def test_checker_does_not_know_registered_score() -> None:
    case = example_cases()["tree"]
    data = case.data | {"score": "brief"}
    result = check_certificate(json.dumps(data), case.X, case.y)
    assert result.verdict == "not checked"
    assert result.claims == ()
    with pytest.raises(ValueError, match="unknown score"):
        Certificate.from_json(json.dumps(data))


def test_checker_names_only_checked_reference() -> None:
    case = example_cases()["list"]
    result = check_certificate(case.text, case.X, case.y)
    assert "against bought" in result.claims[0]
    result = check_certificate(case.text, case.X, case.y.to_numpy())
    assert "against the passed y" in result.claims[0]
    assert "is not checked: y has no name" in str(result)
    data = case.data
    data["rows"]["reference"] = "diagnosis"
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_class_counts() -> None:
    case = example_cases()["tree"]
    data = case.data
    rule = data["frontiers"][0]["rules"][0]["rules"][0]
    rule["statistics"]["class_counts"] = rule["statistics"]["class_counts"][::-1]
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_equality_test_of_numbers() -> None:
    """A list with one condition per rule cannot single out the middle of a range."""
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0] * 3})
    y = np.where(X["a"] == 1, "in", "out")
    rules = RuleSet([Rule([], "out")], ["a"], task="classification", classes=["in", "out"])
    space = SearchSpace(2, max_conditions=1, cuts=None)
    case = make_case("equality", rules, X, y, kinds=["list"], space=space)
    data = case.data
    part = data["frontiers"][0]
    equal = RuleSet(
        [Rule([OneOf(0, [1.0])], "in"), Rule([], "out")],
        ["a"],
        task="classification",
        classes=["in", "out"],
    )
    part["rules"][1] = json.loads(equal.to_json())
    part["upper"][1] = part["lower"][1] = 0.0
    part["measured"][1] = {"n_rules": 2, "accuracy": 1.0, "f1_weighted": 1.0}
    result = check_certificate(json.dumps(data), X, y)
    assert result.verdict == "rejected"
    assert "tests of categories must be in the space" in str(result)


def test_checker_includes_bounds_hidden_by_outlier() -> None:
    """A tolerance relative to the loss of one rule would exceed all other losses."""
    X = pd.DataFrame({"a": np.arange(9.0)})
    y = np.array([0.0, 0, 0, 0, 1, 1, 1, 1, 1e12])
    rules = RuleSet([Rule([Interval(0, upper=7.5)], 0.0), Rule([], 1e12)], ["a"], task="regression")
    options: dict[str, Any] = {"scoring": "fire", "kinds": ["tree"]}
    case = make_case("outlier", rules, X, y, space=SearchSpace(3, cuts=None), **options)
    assert verdict_of(case, case.data) == "confirmed"
    data = case.data
    part = data["frontiers"][0]
    for name in ("lower", "upper", "rules", "measured", "status"):
        part[name][2] = part[name][1]
    assert part["status"][1] == "rounding"  # so that a lower bound of 0 is stated
    result = check_certificate(json.dumps(data), X, y)
    assert "is better by more than" in result.claims[-1]


def test_checker_requires_stated_sets_of_categories() -> None:
    """Sets of values are part of the space, and of the number of its cuts."""
    case = example_cases()["stated"]
    assert "over 4 stated cuts" in str(Certificate.from_json(case.text))
    data = case.data
    for part in data["frontiers"]:
        part["space"]["cuts"]["category_sets"] = {}
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_more_cuts_than_it_states() -> None:
    """The best rules found must not use cuts that the sentence does not describe."""
    case = example_cases()["unordered"]
    data = case.data
    data["settings"]["cuts_per_feature"] = 1
    assert verdict_of(case, data) == "rejected"


def test_checker_rejects_sums_of_texts() -> None:
    case = example_cases()["missing"]
    data = case.data
    condition = {"type": "linear", "terms": [[1, 2.0]], "upper": 1.0, "upper_closed": True}
    data["given"]["rules"]["rules"][0]["if"] = [condition]
    assert verdict_of(case, data) == "rejected"


NESTED = "[" * 100_000
UNREADABLE = {
    "nested": lambda text: text.replace('"seconds": ', f'"seconds": {NESTED}'),
    "repeated field": lambda text: text.replace('"score": ', '"score": "q", "score": '),
    "not a number": lambda text: text.replace('"seconds": ', '"seconds": NaN, "x": '),
    "huge": lambda text: text.replace('"total_weight": ', '"total_weight": 1e999, "x": '),
    "many digits": lambda text: text.replace('"n_rows": ', f'"n_rows": {"9" * 5000}, "x": '),
    "cut off": lambda text: text[:-5],
}


@pytest.mark.parametrize("name", list(UNREADABLE))
def test_checker_rejects_unreadable_text(name: str) -> None:
    case = example_cases()["tree"]
    assert verdict_of(case, UNREADABLE[name](case.text)) == "rejected"


def many_conditions(data: Any) -> None:
    condition = data["frontiers"][-1]["rules"][-1]["rules"][0]["if"][0]
    inner = [{**condition, "upper": float(k), "upper_closed": True} for k in range(20_000)]
    data["given"]["rules"]["rules"][0]["if"] = inner


def many_sizes(data: Any) -> None:
    for part in data["frontiers"]:
        for name in ("lower", "upper", "rules", "measured", "status"):
            part[name] += part[name][-1:] * 2_000
        part["lower"] = part["upper"]


def many_cuts(data: Any) -> None:
    data["settings"]["stated_cuts"] = True
    for part in data["frontiers"]:
        part["space"]["cuts"]["thresholds"]["0"] = [k / 10_000 for k in range(60_000)]


@pytest.mark.parametrize("grow", [many_conditions, many_sizes, many_cuts])
@pytest.mark.parametrize("limits", [{"time_limit": 0.2}, {"memory_limit": 1e6}])
def test_checker_respects_limits(grow: Callable[[Any], None], limits: dict[str, float]) -> None:
    case = example_cases()["list"]
    data = case.data
    grow(data)
    started = time.process_time()
    assert verdict_of(case, data, **limits) in ("not checked", "rejected")
    assert time.process_time() - started < 5


def test_checker_rejects_invalid_sample_weights() -> None:
    case = example_cases()["tree"]
    for weights in ([-1.0] * 11, [math.nan] * 11, [0.0] * 11, [math.inf] * 11):
        with pytest.raises(ValueError, match="sample_weight"):
            check_certificate(case.text, case.X, case.y, weights)


# --- valid certificates ----


@st.composite
def honest_cases(draw: Any) -> Case:
    """Draw rows, weights, rules and a score, and certify the rules."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(4, 10))
    X = pd.DataFrame({"a": rng.integers(0, 4, n), "b": rng.integers(0, 3, n)}, dtype=float)
    if draw(st.booleans()):
        X.loc[rng.integers(0, n), "b"] = np.nan
    if draw(st.booleans()):
        X["c"] = rng.choice(["u", "v", "w"], n)
    is_classifier = draw(st.booleans())
    y: Any = rng.choice(["p", "q", "r"], n)
    model: Any = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0)
    if not is_classifier:
        y = rng.choice([0.0, 0.5, 1.0, -3.0, 1e5], n)
        model = DecisionTreeRegressor(max_leaf_nodes=3, random_state=0)
    weights = rng.choice([1.0, 0.3, 2.0], n) if draw(st.booleans()) else None
    return make_case(
        "drawn",
        as_ruleset(model.fit(X[["a"]], y)),
        X,
        y,
        weights,
        scoring=draw(st.sampled_from(["ice", "fire", "q"])),
        space=SearchSpace(
            draw(st.integers(1, 3)),
            max_conditions=draw(st.integers(1, 2)),
            cuts=draw(st.sampled_from([None, 1, 2])),
        ),
    )


@settings(max_examples=15)
@given(case=honest_cases())
def test_checker_confirms_honest_certificates(case: Case) -> None:
    result = check_certificate(case.text, case.X, case.y, case.weights)
    assert result.verdict == "confirmed", str(result)
    assert not Oracle(case).false_claims(case.text, result)


@pytest.mark.slow
@settings(max_examples=400)
@given(case=honest_cases())
def test_checker_confirms_many_honest_certificates(case: Case) -> None:
    result = check_certificate(case.text, case.X, case.y, case.weights)
    assert result.verdict == "confirmed", str(result)
    assert not Oracle(case).false_claims(case.text, result)


def known_case() -> Case:
    """Return a certificate of lists of one condition over cuts with missing values."""
    X = pd.DataFrame({"a": np.arange(8.0), "b": [np.nan, 1, 1, 1, 1, np.nan, 1, 1]})
    y = pd.Series(list("nppppnnn"), name="t")
    rules = RuleSet([Rule([], "n")], ["a", "b"], task="classification", classes=["n", "p"])
    space = SearchSpace(max_rules=2, max_conditions=1, cuts=None)
    return make_case("known", rules, X, y, kinds=["list"], space=space)


def test_checker_counts_interval_without_bounds() -> None:
    case = known_case()
    assert check_certificate(case.text, case.X, case.y).verdict == "confirmed"
    data = case.data
    frontier = data["frontiers"][0]
    rules = frontier["rules"][1]["rules"]
    rules[0]["if"].append({"type": "interval", "feature": 1})  # b is known
    for rule in rules:
        rule.pop("statistics")
    frontier["lower"], frontier["upper"] = [1.0, 0.0], [4.0, 0.0]
    frontier["status"] = ["target", "target"]
    frontier["measured"][1] = {"accuracy": 1.0, "f1_weighted": 1.0, "n_rules": 2}
    result = check_certificate(json.dumps(data), case.X, case.y)
    assert result.findings[-1] == "Wrong: rules must have at most 1 conditions, got 2."


def test_checker_rejects_cuts_without_missing_values() -> None:
    case = known_case()
    data = case.data
    data["settings"]["stated_cuts"] = True
    data["frontiers"][0]["space"]["cuts"]["missing_features"] = []
    data["frontiers"][0]["space"]["cuts"]["thresholds"]["1"] = [1.0]
    result = check_certificate(json.dumps(data), case.X, case.y)
    assert result.findings[-1] == "Wrong: a test must separate the missing values of b."


def test_checker_rejects_frontier_without_rules() -> None:
    case = known_case()
    data = case.data
    data["frontiers"][0]["rules"] = []
    assert check_certificate(json.dumps(data), case.X.to_numpy(), case.y).verdict == "rejected"


def test_checker_states_weights_of_the_score() -> None:
    case = example_cases()["tree"]
    data = case.data
    data["settings"]["weights"]["phi"] = 1e-9
    claims = check_certificate(json.dumps(data), case.X, case.y, case.weights).claims
    assert "(weighted F1, phi 1e-09, rho 1)" in claims[0]


@pytest.mark.parametrize("container", ["Int64", "boolean", "polars", "arrow"])
def test_checker_reads_tables_of_all_kinds(container: str) -> None:
    values = [None, True, False, True, False, True]
    X: Any = pd.DataFrame({"a": pd.array(values, dtype="boolean")})
    if container == "Int64":
        X = X.astype("Int64")
    elif container == "polars":
        X = pytest.importorskip("polars").from_pandas(X)
    elif container == "arrow":
        X = pytest.importorskip("pyarrow").table({"a": values})
    y = np.array(list("ppqqqp"))
    rules = RuleSet([Rule([], "p")], ["a"], task="classification", classes=["p", "q"])
    certificate = certify(rules, X, y, space=SearchSpace(2, 1, 2))
    assert check_certificate(certificate.to_json(), X, y).verdict == "confirmed"


@pytest.mark.parametrize("kind", ["interval", "one_of"])
def test_checker_respects_time_limit_for_many_conditions(kind: str) -> None:
    case = example_cases()["tree"]
    data = case.data
    conditions = data["given"]["rules"]["rules"][0]["if"]
    if kind == "interval":
        bounds = (0.1 + 1e-9 * k for k in range(30_000))
        conditions += [{"type": "interval", "feature": 0, "lower": bound} for bound in bounds]
    else:
        conditions.append({"type": "one_of", "feature": 0, "values": list(range(150_000))})
    begin = time.monotonic()
    check_certificate(json.dumps(data), case.X, case.y, case.weights, time_limit=1.0)
    assert time.monotonic() - begin < 30  # 1 s plus the schema check


def test_certificate_of_rules_without_rows_is_saved() -> None:
    X, y = pd.DataFrame({"a": np.arange(6.0)}), pd.Series(list("aabbab"), name="t")
    rules = RuleSet([Rule([Interval(0, lower=100)], "a")], ["a"], task="classification")
    certificate = certify(rules, X, y, scoring="fire", kinds=["tree"], space=SearchSpace(2, 1, 2))
    assert check_certificate(certificate.to_json(), X, y).verdict in ("confirmed", "not checked")
    assert "1 rule has FiRe" in str(certificate)
