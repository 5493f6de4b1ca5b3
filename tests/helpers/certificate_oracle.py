"""Certificates of few rows, and an exhaustive oracle of what they claim.

The oracle shares nothing with the checker: it applies rules, scorers and cuts of the package, lists
all trees and lists of the space as partitions of the rows, and tries all labels of their parts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.certificates import Certificate, CheckResult, certify
from skescore.optimal import Cuts, SearchSpace, SolverLimits, candidate_cuts
from skescore.rules import Interval, Missing, OneOf, Rule, RuleSet, as_ruleset
from skescore.scorers import SCORE_SPECS, make_score_scorer

#: Metrics that follow from each loss.
METRICS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A certificate and its rows."""

    name: str
    text: str
    X: pd.DataFrame
    y: Any
    weights: Any = None

    @property
    def data(self) -> Any:
        """Return the certificate as new JSON values."""
        return json.loads(self.text)


def make_case(
    name: str, rules: RuleSet, X: pd.DataFrame, y: Any, weights: Any = None, **options: Any
) -> Case:
    """Certify rules."""
    options = {"limits": SolverLimits(max_nodes=2000)} | options
    certificate = certify(rules, X, y, sample_weight=weights, **options)
    return Case(name, certificate.to_json(indent=None), X, y, weights)


def _numbers(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.integers(0, 4, n), "b": rng.integers(0, 3, n)}, dtype=float)


def _fit(model: Any, X: pd.DataFrame, y: Any) -> RuleSet:
    return as_ruleset(model.set_params(random_state=0).fit(X, y))


#: Names of the example certificates.
EXAMPLES = (
    "tree",
    "list",
    "f1",
    "regression",
    "absolute",
    "weights",
    "missing",
    "stated",
    "incomplete",
    "unordered",
)


@cache
def example_cases() -> dict[str, Case]:
    """Return ten certificates: trees, lists, F1, regression, weights, gaps, stated cuts."""
    X = _numbers(11, 0)
    rng = np.random.default_rng(1)
    two = np.where(X["a"] + rng.integers(0, 4, 11) > 3, "yes", "no")
    numbers = (X["a"] * 1.5 - X["b"] + rng.normal(size=11)).round(2).to_numpy()
    tree = _fit(DecisionTreeClassifier(max_leaf_nodes=3), X, two)
    regressor = _fit(DecisionTreeRegressor(max_leaf_nodes=3), X, numbers)
    cases = [
        make_case("tree", tree, X, two, kinds=["tree"], space=SearchSpace(3, cuts=2)),
        make_case(
            "list",
            tree,
            X,
            pd.Series(two, name="bought"),
            kinds=["list"],
            space=SearchSpace(3, max_conditions=2, cuts=1),
        ),
        _f1_case(),
        make_case(
            "regression", regressor, X, numbers, kinds=["tree"], space=SearchSpace(3, cuts=2)
        ),
        make_case(
            "absolute",
            regressor,
            X,
            numbers,
            scoring="fire",
            space=SearchSpace(3, max_conditions=1, cuts=1),
        ),
        make_case(
            "weights",
            tree,
            X,
            two,
            np.where(two == "yes", 0.7, rng.choice([0.0, 0.3, 1.9], 11)),
            scoring=make_score_scorer("ice", phi=2.0),
            space=SearchSpace(3, max_conditions=1, cuts=2),
        ),
        _missing_case(),
        _stated_case(),
        _incomplete_case(X, two),
        _unordered_case(X, two),
    ]
    return {case.name: case for case in cases}


def _f1_case() -> Case:
    """Trees with direct bounds of the weighted F1, which need many classes."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.integers(0, 2, (24, 3)).astype(float), columns=["a", "b", "c"])
    y = (2 * X["a"] + 3 * X["b"] + X["c"] + rng.integers(0, 2, 24)).astype(int).to_numpy() % 6
    rules = _fit(DecisionTreeClassifier(max_leaf_nodes=3), X, y)
    limits = SolverLimits(max_nodes=500)
    space = SearchSpace(4)
    return make_case("f1", rules, X, y, space=space, kinds=["tree"], tolerance=0.001, limits=limits)


def _missing_case() -> Case:
    X = pd.DataFrame(
        {
            "a": [1.0, np.nan, 2.0, 3.0, np.nan, 1.0, 2.0, 3.0, 3.0, 1.0],
            "c": ["u", "v", "w", "u", None, "v", "w", "u", "v", "w"],
        }
    )
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1])
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1.5)], 0),
            Rule([OneOf(1, ["u"]), Missing(0, negated=True)], 1),
            Rule([Missing(0)], 1),
        ],
        list(X.columns),
        task="classification",
        classes=[0, 1],
    )
    rules = rules.replace(domain=rules.domain_around(X))
    space = SearchSpace(2, max_conditions=1, cuts=2)
    return make_case("missing", rules, X, y, space=space)


def _stated_case() -> Case:
    X = pd.DataFrame({"a": [0.0, 1, 2, 3, 4, 5, 6, 7, 8], "c": list("uvwxuvwxu")})
    y = np.array(["p", "q", "q", "p", "p", "q", "r", "p", "p"])
    cuts = Cuts(2, {0: (1.5, 5.5)}, {1: ("u",)}, category_sets={1: (("v", "w"),)})
    rules = RuleSet(
        [Rule([OneOf(1, ["u"])], "p"), Rule([], "q")],
        list(X.columns),
        task="classification",
        classes=["p", "q", "r"],
    )
    space = SearchSpace(3, max_conditions=1, cuts=cuts)
    return make_case("stated", rules, X, y, scoring="q", space=space)


def _incomplete_case(X: pd.DataFrame, y: Any) -> Case:
    rules = RuleSet(
        [Rule([Interval(0, upper=1.0)], "no"), Rule([Interval(0, 2.0), Interval(1, 0.5)], "yes")],
        list(X.columns),
        task="classification",
        classes=["no", "yes"],
    )
    rules = rules.replace(domain=rules.domain_around(X))
    space = SearchSpace(2, max_conditions=2, cuts=1)
    return make_case("incomplete", rules, X, y, space=space)


def _unordered_case(X: pd.DataFrame, y: Any) -> Case:
    """All cuts; the given rules overlap, and their statistics decide which of them predicts."""
    from skescore.rules import RuleStatistics

    rules = RuleSet(
        [
            Rule([Interval(0, upper=2.0)], "no", RuleStatistics(6, (4, 2))),
            Rule([Interval(0, 0.5)], "yes", RuleStatistics(7, (2, 5))),
        ],
        list(X.columns),
        task="classification",
        classes=["no", "yes"],
        ordered=False,
    )
    rules = rules.replace(domain=rules.domain_around(X))
    space = SearchSpace(3, max_conditions=1, cuts=None)
    scorer = make_score_scorer("fire", metric="accuracy")
    return make_case("unordered", rules, X, y, scoring=scorer, space=space)


# --- the oracle ---


class Oracle:
    """The truth about a certificate of few rows.

    Parameters
    ----------
    case : Case
        The rows, of which those with weight 0 do not count.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        weights = np.ones(len(case.X)) if case.weights is None else np.asarray(case.weights)
        self.counted = np.flatnonzero(weights > 0)
        self.w = weights[self.counted].tolist()
        self.y = np.asarray(case.y)[self.counted].tolist()
        self.X = case.X.iloc[self.counted].reset_index(drop=True)
        self.reference = getattr(case.y, "name", None)
        self.all = (1 << len(self.y)) - 1
        self.best = cache(self._best)

    # --- rules ---

    def given_score(self, certificate: Certificate) -> float:
        """Return the signed score of the given rules in the domain of the rows."""
        rules = certificate.given_rules["rules"]
        assert rules is not None
        settings = certificate.settings
        rules = rules.replace(domain=rules.domain_around(self.X, self.w))
        scorer = make_score_scorer(
            certificate.score,
            metric=settings["metric"],
            completeness=settings["completeness"],
            reference="data",
            **settings["weights"],
        )
        return float(scorer(rules, self.X, np.asarray(self.y), sample_weight=self.w))

    def loss_of(self, rules: RuleSet, loss: str) -> float:
        """Return the loss of complete rules."""
        predicted = rules.predict(self.X).tolist()
        if loss == "errors":
            return math.fsum(w for w, a, b in zip(self.w, self.y, predicted, strict=True) if a != b)
        power = 2 if loss == "squared_error" else 1
        return math.fsum(
            w * abs(a - b) ** power for w, a, b in zip(self.w, self.y, predicted, strict=True)
        )

    # --- the space ---

    def tests_of(self, cuts: Any) -> frozenset[int]:
        """Return the tests of cuts in a certificate as sets of rows."""
        tests = set()
        for j, name in enumerate(self.X.columns):
            column = self.X[name]
            missing = column.isna().to_numpy()
            sides = [column <= cut for cut in cuts["thresholds"].get(str(j), ())]
            sets = [[v] for v in cuts["categories"].get(str(j), ())]
            sets += cuts.get("category_sets", {}).get(str(j), [])
            sides += [column.isin(values) for values in sets]
            for side in sides:
                tests |= {_bits(side.to_numpy() & ~missing), _bits(side.to_numpy() | missing)}
            if missing.any():
                tests.add(_bits(missing))
        return frozenset(min(t, self.all ^ t) for t in tests if t not in (0, self.all))

    def described_tests(self, certificate: Certificate, cuts: Any) -> frozenset[int]:
        """Return the tests of the cuts that the text of a certificate describes."""
        if certificate.settings.get("stated_cuts"):
            return self.tests_of(cuts)
        described = candidate_cuts(self.case.X, certificate.settings["cuts_per_feature"])
        rules = certificate.given_rules["rules"]
        rule_sets = [] if rules is None else [rules]
        return self.tests_of(described.with_rules(rule_sets, self.case.X).to_json())

    def partitions(
        self, kind: str, tests: frozenset[int], size: int, max_conditions: int
    ) -> set[frozenset[int]]:
        """Return all partitions of the rows by trees or lists of at most this size."""
        if kind == "tree":
            return _trees(self.all, size, tests)
        sides = [side for test in tests for side in (test, self.all ^ test)]
        premises = {
            _and(chosen, self.all)
            for n in range(1, max_conditions + 1)
            for chosen in combinations(sides, n)
        }
        return _lists(self.all, size, frozenset(premises - {0}))

    def _best(
        self, kind: str, tests: frozenset[int], size: int, max_conditions: int, metric: str
    ) -> float:
        """Return the best value of a metric, or the least loss, of rules of at most this size."""
        partitions = self.partitions(kind, tests, size, max_conditions)
        if metric == "f1_weighted":
            return max(map(self._best_f1, partitions))
        loss = next(name for name, metrics in METRICS.items() if metric in (name, *metrics))
        least = min(math.fsum(self._cost(part, loss) for part in parts) for parts in partitions)
        total = math.fsum(self.w)
        if metric == "accuracy":
            return 1 - least / total
        if metric == "r2":
            squares = self._cost(self.all, "squared_error")
            return 1 - least / squares if squares else 1.0
        if metric == "root_mean_squared_error":
            return math.sqrt(least / total)
        return least if metric == loss else least / total

    def _cost(self, part: int, loss: str) -> float:
        rows = [i for i in range(len(self.y)) if part >> i & 1]
        w, y = [self.w[i] for i in rows], [self.y[i] for i in rows]
        if loss == "errors":
            weights = [math.fsum(a for a, b in zip(w, y, strict=True) if b == k) for k in set(y)]
            return math.fsum(w) - max(weights)
        if loss == "squared_error":
            mean = float(np.average(y, weights=w))
            return math.fsum(a * (b - mean) ** 2 for a, b in zip(w, y, strict=True))
        return min(math.fsum(a * abs(b - c) for a, b in zip(w, y, strict=True)) for c in y)

    def _best_f1(self, parts: frozenset[int]) -> float:
        """Return the largest weighted F1 over all labels of the parts."""
        labels = sorted(set(self.y), key=repr)
        counts = [
            [
                math.fsum(w for i, w in enumerate(self.w) if p >> i & 1 and self.y[i] == k)
                for p in parts
            ]
            for k in labels
        ]
        totals = [math.fsum(row) for row in counts]
        sums = [math.fsum(column) for column in zip(*counts, strict=True)]
        best = 0.0
        for chosen in product(range(len(labels)), repeat=len(parts)):
            value = 0.0
            for k in set(chosen):
                of_class = [i for i, label in enumerate(chosen) if label == k]
                hits, predicted = (
                    sum(counts[k][i] for i in of_class),
                    sum(sums[i] for i in of_class),
                )
                value += totals[k] * 2 * hits / (totals[k] + predicted)
            best = max(best, value)
        return min(best / math.fsum(totals), 1.0)  # sums of weights may differ in the last digit

    def best_score(
        self, certificate: Certificate, kind: str, tests: frozenset[int], size: int, conditions: int
    ) -> float:
        """Return the best signed score of rules of at most this size."""
        spec, metric = SCORE_SPECS[certificate.score], certificate.settings["metric"]
        scores = []
        for n_rules in range(1, size + 1):
            value = self.best(kind, tests, n_rules, conditions, metric)
            is_performance = metric in ("accuracy", "f1_weighted", "r2")
            if spec.prediction == "loss" and is_performance:
                value = 1 - value
            score = spec.value(value, n_rules, 1.0, certificate.settings["weights"])
            scores.append(float(spec.signed(score)))
        return max(scores)

    # --- claims ---

    def false_claims(self, text: str, result: CheckResult) -> list[str]:
        """Return false claims of the checker and, if it is confirmed, of the certificate."""
        if result.verdict == "rejected":
            return []
        try:
            certificate = Certificate.from_json(text)
            stated = certificate.to_text() if result.verdict == "confirmed" else ""
        except ValueError as error:
            return [f"unreadable, {result.verdict}: {error}"] * (result.verdict == "confirmed")
        wrong = [*self._false_sentences(certificate, result)]
        if result.verdict == "confirmed":
            wrong += self._false_statements(certificate, stated, str(result))
        return wrong

    def _false_sentences(self, certificate: Certificate, result: CheckResult) -> Iterator[str]:
        """Yield the claims of the checker that are false."""
        for claim in result.claims:
            if claim.startswith("On these"):
                n_rows = re.findall(r"On these (\d+) rows?", claim)[0]
                n_rules = re.findall(r"(\d+) rules? ha", claim)[0]
                score, described = re.findall(r" (\S+) \((.*)\)\.$", claim)[0]
                weights = dict(re.findall(r"(\w+) (\d\S*?)(?:,|$)", described))
                sign = SCORE_SPECS[certificate.score].signed(1.0)
                is_right = (
                    int(n_rows) == len(self.case.X)
                    and int(n_rules) == len(certificate.given_rules["rules"] or ())
                    and math.isclose(
                        sign * float(score),
                        self.given_score(certificate),
                        rel_tol=1e-12,
                        abs_tol=6e-5,
                    )
                    and (" with their weights" in claim) == (self.case.weights is not None)
                    and weights
                    == {
                        name: f"{weight:g}"
                        for name, weight in certificate.settings["weights"].items()
                    }
                )
                if not is_right:
                    yield claim
            elif " decision " in claim:
                kind = "tree" if "decision tree" in claim else "list"
                if not self._is_bound_right(certificate, kind, claim):
                    yield claim

    def _is_bound_right(self, certificate: Certificate, kind: str, claim: str) -> bool:
        """Return whether the sentence of the checker on one kind of rules is right."""
        frontier = next(f for f in certificate.frontiers if f.kind == kind)
        spec = SCORE_SPECS[certificate.score]
        cuts, conditions = frontier.space["cuts"], frontier.space.get("max_conditions", 1)
        described = self.described_tests(certificate, cuts)
        size = int(re.findall(r"at most (\d+)", claim)[0])
        best = self.best_score(certificate, kind, described, size, conditions)
        stored = described | self.tests_of(cuts)
        tests = stored if certificate.given_rules["rules"] is None else described
        reachable = self.best_score(certificate, kind, tests, size, conditions)
        found = spec.signed(float(re.findall(r"has \w+ (-?[\d.]+\d)", claim)[-1]))
        if found > reachable + 6e-5:
            return False
        tolerance = 1e-6 * max(1.0, abs(best))
        if " has a better " in claim:
            limit = spec.signed(float(re.findall(r"than (-?[\d.]+\d)", claim)[0]))
            return bool(best <= limit + tolerance)
        gap = best - self.given_score(certificate)
        stated = re.findall(r"better by more than ([\d.]+\d)", claim)
        return bool(gap <= (float(stated[0]) if stated else 0.0) + tolerance)

    def _false_statements(
        self, certificate: Certificate, stated: str, report: str
    ) -> Iterator[str]:
        """Yield what a confirmed certificate states wrongly."""
        rows, given = certificate.rows, certificate.given_rules
        is_named = rows["reference"] in (self.reference, "y") or "is not checked: y" in report
        checks: dict[str, bool] = {
            "rows": rows["n_rows"] == len(self.case.X),
            "weighted": rows["weighted"] == (self.case.weights is not None),
            "reference": is_named,
            "rules": given["n_rules"] == len(given["rules"] or ()),
            "score": math.isclose(
                self.given_score(certificate),
                SCORE_SPECS[certificate.score].signed(certificate.given_score()),
                rel_tol=1e-5,
                abs_tol=1e-7,
            ),
            "text": stated.startswith("On these"),
        }
        for frontier, measured in zip(certificate.frontiers, certificate.measured, strict=True):
            kind = frontier.kind
            cuts, conditions = frontier.space["cuts"], frontier.space.get("max_conditions", 1)
            described, stored = self.described_tests(certificate, cuts), self.tests_of(cuts)
            checks[f"{kind}: cuts"] = described == stored
            best = self.best_score(certificate, kind, described, len(frontier.sizes), conditions)
            reachable = best
            incumbent, bound = map(
                SCORE_SPECS[certificate.score].signed, certificate.interval(kind)
            )
            checks[f"{kind}: bound"] = best <= bound + 1e-7 * max(1.0, abs(bound))
            checks[f"{kind}: found"] = incumbent <= reachable + 1e-7 * max(1.0, abs(reachable))
            total = math.fsum(self.w)
            checks[f"{kind}: weight"] = math.isclose(frontier.total_weight, total)
            for i, size in enumerate(frontier.sizes):
                least = self.best(kind, described, size, conditions, frontier.loss)
                scale = 1e-7 * self._cost(self.all, frontier.loss)
                checks[f"{kind}: lower {size}"] = frontier.lower[i] <= least + scale
                rules = frontier.rules[i]
                assert rules is not None
                checks[f"{kind}: upper {size}"] = math.isclose(
                    frontier.upper[i], self.loss_of(rules, frontier.loss), abs_tol=scale
                )
                checks[f"{kind}: measured {size}"] = measured[i]["n_rules"] == len(rules) and (
                    self._is_measured(rules, measured[i])
                )
        for f1_bound in certificate.f1_bounds:
            tests = self.described_tests(certificate, certificate.frontiers[0].space["cuts"])
            best = self.best("tree", tests, f1_bound.max_leaves, 1, "f1_weighted")
            checks[f"f1 {f1_bound.max_leaves}"] = best <= f1_bound.upper_bound + 1e-7
        for name, is_right in checks.items():
            if not is_right:
                yield f"{name} in {stated!r}"

    def _is_measured(self, rules: RuleSet, measured: Any) -> bool:
        """Return whether the metrics of an incumbent are right."""
        predicted = rules.predict(self.X).tolist()
        if "accuracy" not in measured:
            return True  # They follow from the loss.
        labels = list(dict.fromkeys([*self.y, *predicted]))  # 1 and 1.0 are the same label.
        y, guess = ([labels.index(v) for v in values] for values in (self.y, predicted))
        f1 = f1_score(y, guess, average="weighted", sample_weight=self.w, zero_division=0.0)
        return math.isclose(f1, measured["f1_weighted"], abs_tol=1e-8)


def _bits(mask: Any) -> int:
    return sum(1 << i for i, holds in enumerate(mask) if holds)


def _and(sets: Sequence[int], start: int) -> int:
    for one in sets:
        start &= one
    return start


@cache
def _trees(rows: int, size: int, tests: frozenset[int]) -> set[frozenset[int]]:
    partitions = {frozenset([rows])}
    for test in tests:
        yes, no = rows & test, rows & ~test
        if yes and no:
            for left in range(1, size):
                partitions |= {
                    a | b for a in _trees(yes, left, tests) for b in _trees(no, size - left, tests)
                }
    return partitions


@cache
def _lists(rows: int, size: int, premises: frozenset[int]) -> set[frozenset[int]]:
    partitions = {frozenset([rows])}
    if size > 1:
        for covered in {rows & premise for premise in premises} - {0, rows}:
            rest = _lists(rows & ~covered, size - 1, premises)
            partitions |= {parts | {covered} for parts in rest}
    return partitions
