"""Forged certificates: false claims that were made to be confirmed. None of them is."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from certificate_oracle import Case, Oracle, example_cases, make_case
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.certificates import Certificate, certify, check_certificate
from skescore.metrics import volume_completeness
from skescore.optimal import SearchSpace
from skescore.rules import Interval, Rule, RuleSet, as_ruleset

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
        for many in ([value] * 6, [value] + [0.0] * 5, [value, -1.0] * 3):
            for linear in ([], list(range(6))):
                leaf = {"linear": linear, "multipliers": many}
                yield forge(case, f"{value}", lambda data, leaf=leaf: false_f1(data, leaf))
    for linear in ([-1], [6], [0.5], "all", [[0]]):
        leaf = {"linear": linear, "multipliers": [0.0] * 6}
        yield forge(case, f"linear {linear}", lambda data, leaf=leaf: false_f1(data, leaf))


def forge_numbers() -> Iterator[Forgery]:
    """Write numbers that are not finite, or huge, into fields on which claims depend."""
    places: list[tuple[Any, ...]] = [
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
    for place in places:
        for value in (*NOT_FINITE, *HUGE[:3], -1, True):

            def put(data: Any, place: Any = place, value: Any = value) -> None:
                for key in place[:-1]:
                    data = data[key]
                data[place[-1]] = value

            yield forge(example_cases()["tree"], f"{place} = {value}", put)


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


@pytest.mark.parametrize("family", list(FAMILIES))
def test_checker_confirms_no_forgery(family: str) -> None:
    n_forged = 0
    oracles = {name: Oracle(case) for name, case in example_cases().items()}
    for name, case, text in FAMILIES[family]():
        n_forged += 1
        result = check_certificate(text, case.X, case.y, case.weights, time_limit=10)
        assert result.verdict != "confirmed", (name, str(result))
        assert not oracles[case.name].false_claims(text, result), (name, str(result))
    assert n_forged >= 19
