"""An independent checker of certificates.

It reads the JSON of a certificate, evaluates rules row by row in plain Python, and searches for
rules that would be better than the bounds: all rules if there are few, and otherwise by a search of
its own in NumPy, much simpler than the searches that it checks. It uses nothing else of this
package, as two independent programs are unlikely to be wrong in the same way.

Reading order: :func:`check_certificate` lists the steps of a check; :class:`_Check` holds them
(rows, given rules, incumbents, cuts, bounds); then follow the enumeration of all trees and lists,
the searches for trees, for trees by their F1, and for lists, and last the evaluation of conditions
and the volume of rules.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from itertools import combinations, pairwise
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: Largest relative difference between two sums of the same numbers.
_ROUNDING = 1e-10
#: Tolerance of bounds relative to the loss of one rule: solvers use floating-point numbers.
_TOLERANCE = 1e-7
#: Up to this number of sets of rows, all rules are enumerated.
_MAX_ENUMERATED = 100_000
#: Factor by which the search for lists exceeds the bound that it needs, as the bound also holds for
#: similar premises; and the largest number of premises with stored bounds.
_BOUND_FACTOR, _MAX_STORED = 1.05, 256
#: Up to this number of products, the losses of all pairs of tests are computed at once.
_MAX_PAIR_PRODUCTS = 2e9
#: Largest number of parts of the domain when the volume is computed.
_MAX_VOLUME_PARTS = 200_000
#: Tolerance of volumes, which certificates may contain as estimates.
_VOLUME_TOLERANCE = 0.01
_METRICS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}
_STATUSES = {
    "optimal",
    "target",
    "time_limit",
    "node_limit",
    "work_limit",
    "memory_limit",
    "interrupted",
}


class _RejectedError(Exception):
    """Raised where the certificate is wrong."""


class _LimitError(Exception):
    """Raised where a limit ends a search."""


@dataclass(frozen=True)
class CheckResult:
    """Result of the check of a certificate.

    Parameters
    ----------
    verdict : {"confirmed", "not checked", "rejected"}
        "not checked" if everything that was checked is correct, but a limit ended the check, or
        some part cannot be checked.
    findings : sequence of str
        The parts that were checked, or the error that was found.
    """

    verdict: str
    findings: tuple[str, ...] = field(default_factory=tuple)

    def __str__(self) -> str:
        return "\n".join([*self.findings, f"verdict: {self.verdict}"])


def check_certificate(
    certificate: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time_limit: float | None = 60.0,
    memory_limit: float = 2**30,
) -> CheckResult:
    """Check a certificate against the rows for which it holds.

    Parameters
    ----------
    certificate : str or path
        The JSON, or a file with it.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Reference of the rules: labels, numbers, or the predictions of the black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, if the certificate was made with weights.
    time_limit : float, optional, default=60.0
        Seconds after which no further bound is checked; None for no limit.
    memory_limit : float, default=2**30
        Bytes that a search may use. Bounds that need a larger search are not checked.

    Returns
    -------
    CheckResult
        The verdict and its reasons.

    Raises
    ------
    FileNotFoundError
        If `certificate` names no file. An invalid content is a verdict, not an error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.certificates import certify, check_certificate
    >>> from skescore.optimal import SearchSpace
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> space = SearchSpace(max_rules=3, cuts=4)
    >>> made = certify(rules, X, y, kinds=["tree"], space=space)
    >>> print(check_certificate(made.to_json(), X, y))
    The 150 rows have the checksum of the certificate.
    The given rules have the stated size and metrics.
    tree: the best rules found have the stated losses.
    tree: no rules are better than its bounds for 1, 2, 3 rules; all were enumerated.
    verdict: confirmed
    >>> check_certificate(made.to_json().replace('"n_rows": 150', '"n_rows": 149'), X, y).verdict
    'rejected'
    """
    text = certificate
    if isinstance(certificate, Path) or not str(certificate).lstrip().startswith("{"):
        text = Path(certificate).read_text(encoding="utf-8")
    findings: list[str] = []
    is_complete = True
    try:
        data = json.loads(text)
        if data["format"] != "skescore.Certificate" or data["version"] != 1:
            raise _RejectedError("it is not a certificate of version 1")
        check = _Check(data, X, y, sample_weight, time_limit, memory_limit)
        findings.append(check.check_rows())
        findings += check.check_given_rules()
        if not data["frontiers"]:
            raise _RejectedError("it contains no proof")
        for i, frontier in enumerate(data["frontiers"]):
            findings.append(check.check_incumbents(frontier))
            with threadpool_limits(1):  # Products of small tables gain nothing from threads.
                n_remaining = len(data["frontiers"]) - i
                sentences, all_checked = check.check_bounds(frontier, n_remaining)
            findings += sentences
            is_complete = is_complete and all_checked
        is_complete = is_complete and not check.unchecked
        findings += check.unchecked
        if data.get("held_out") is not None:  # It is not part of the proof.
            findings.append("The scores on held-out rows are not checked; that needs the search.")
    except _RejectedError as error:
        return CheckResult("rejected", (*findings, f"Wrong: {error}."))
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    ) as error:
        return CheckResult(
            "rejected", (*findings, f"Wrong: it cannot be read ({type(error).__name__}: {error}).")
        )
    return CheckResult("confirmed" if is_complete else "not checked", tuple(findings))


class _Check:
    """The steps of the check of one certificate.

    Parameters
    ----------
    data : dict
        The certificate.
    X, y, weights : array-like
        The rows, their reference and their weights.
    time_limit, memory_limit : float
        Limits of the searches.
    """

    def __init__(
        self,
        data: Any,
        X: Any,
        y: Any,
        weights: Any,
        time_limit: float | None,
        memory_limit: float,
    ) -> None:
        self.data, self.memory_limit = data, memory_limit
        self.end = math.inf if time_limit is None else time.monotonic() + time_limit
        self.names, columns = _read_columns(X)
        dtypes = getattr(X, "dtypes", ())
        #: Names of the columns that are declared categories.
        self.declared_categories = {
            name
            for name, dtype in zip(self.names, dtypes, strict=False)
            if str(dtype) == "category"
        }
        self.rows = [list(row) for row in zip(*columns, strict=True)]
        self.y = _json_values(y)
        if len(self.y) != len(self.rows):
            raise _RejectedError(f"there are {len(self.rows)} rows, but {len(self.y)} values of y")
        self.is_weighted = weights is not None
        self.w = [1.0] * len(self.y)
        if self.is_weighted:
            self.w = [float(weight) for weight in _json_values(weights)]
        self.task = data["rows"]["task"]
        if self.task not in ("classification", "regression"):
            raise _RejectedError(f"there is no task {self.task!r}")
        #: Sentences about the parts that cannot be checked.
        self.unchecked: list[str] = []

    # --- rows ---

    def check_rows(self) -> str:
        """Check the checksum of the rows and the sums of their targets."""
        stated = self.data["rows"]
        digest = hashlib.sha256()
        for row, value, weight in zip(self.rows, self.y, self.w, strict=True):
            line = [*row, value] + ([weight] if self.is_weighted else [])
            digest.update((json.dumps(line) + "\n").encode())
        if stated["weighted"] is not self.is_weighted:
            needed = "weights" if stated["weighted"] else "no weights"
            passed = "weights" if self.is_weighted else "no weights"
            raise _RejectedError(f"it was made with {needed}, but {passed} were passed")
        if stated["n_rows"] != len(self.rows) or stated["checksum"] != digest.hexdigest():
            raise _RejectedError("it was made for other rows")
        total = math.fsum(self.w)
        #: Per loss and metric, a number to which rounding errors are relative.
        self.scales = {"errors": total}
        if self.task == "classification":
            counts: dict[Any, float] = defaultdict(float)
            for value, weight in zip(self.y, self.w, strict=True):
                counts[value] += weight
            class_weights = sorted(counts.values())
            self._require_equal(
                "class weights", sorted(stated["class_weights"]), class_weights, total
            )
        else:
            mean = _mean(self.y, self.w)
            pairs = list(zip(self.w, self.y, strict=True))
            squares = math.fsum(w * (v - mean) ** 2 for w, v in pairs)
            absolute = math.fsum(w * abs(v) for w, v in pairs)
            squared = math.fsum(w * v * v for w, v in pairs)
            self.scales |= {
                "squared_error": squared,
                "absolute_error": absolute,
                "mean_absolute_error": absolute / total,
                "mean_squared_error": squared / total,
                "root_mean_squared_error": math.sqrt(squared / total),
            }
            self._require_equal("sum of squares", [stated["squares"]], [squares], squared)
        return f"The {len(self.rows)} rows have the checksum of the certificate."

    @staticmethod
    def _require_equal(
        name: str, stated: Sequence[float], computed: Sequence[float], scale: float = 1.0
    ) -> None:
        """Raise unless stated numbers are equal to computed ones, except for rounding."""
        tolerance = 1e-9 * min(1.0, scale)
        if len(stated) != len(computed) or any(
            isinstance(a, bool) or not math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=tolerance)
            for a, b in zip(stated, computed, strict=True)
        ):
            raise _RejectedError(f"{name} should be {list(computed)}, not {list(stated)}")

    # --- predictions of rules ---

    def _holding_rules(self, rules: Any) -> Iterator[tuple[list[Any], list[int]]]:
        """Yield the values of each row, and the indices of the rules that hold for it."""
        order = [self.names.index(name) for name in rules["feature_names"]]
        for row in self.rows:
            values = [row[j] for j in order]
            yield (
                values,
                [
                    i
                    for i, rule in enumerate(rules["rules"])
                    if all(_holds(condition, values) for condition in rule["if"])
                ],
            )

    def _predict(self, rules: Any, *, must_be_complete: bool) -> list[Any]:
        """Return the prediction for each row, None where no rule holds.

        The list is empty if several rules predict together.
        """
        if rules.get("voting"):
            return []
        predictions = []
        for values, holding in self._holding_rules(rules):
            if must_be_complete and not holding:
                raise _RejectedError("rules that should be complete do not cover all rows")
            if holding and not rules["ordered"] and len(holding) > 1:
                return []
            then = rules["rules"][holding[0]]["then"] if holding else None
            predictions.append(_conclusion(then, values) if holding else None)
        return predictions

    @staticmethod
    def _check_tree(leaf_of_row: Sequence[int], tests: Sequence[int]) -> None:
        """Raise unless nested tests divide the rows into these leaves."""
        leaves: dict[int, int] = {}
        for i, leaf in enumerate(leaf_of_row):
            leaves[leaf] = leaves.get(leaf, 0) | 1 << i
        groups = [list(leaves.values())]
        while groups:
            group = groups.pop()
            if len(group) < 2:
                continue
            for test in tests:
                inside = [leaf for leaf in group if leaf & test]
                if 0 < len(inside) < len(group) and not any(leaf & ~test for leaf in inside):
                    # A tree exists for any valid first test if it exists for one of them.
                    groups += [inside, [leaf for leaf in group if not leaf & test]]
                    break
            else:
                raise _RejectedError("no tree of the space has the leaves of its rules")

    def _loss(self, name: str, predictions: Sequence[Any]) -> float:
        """Return the loss of predictions."""
        triples = list(zip(self.w, self.y, predictions, strict=True))
        if name == "errors":
            return math.fsum(w for w, value, guess in triples if _differ(value, guess))
        power = 2 if name == "squared_error" else 1
        return math.fsum(w * abs(value - guess) ** power for w, value, guess in triples)

    def _metric(self, name: str, predictions: Sequence[Any], rows: Sequence[int]) -> float:
        """Return a metric of the predictions for some rows."""
        triples = [(self.w[i], self.y[i], predictions[i]) for i in rows]
        total = math.fsum(w for w, _, _ in triples)
        if name == "accuracy":
            return 1 - math.fsum(w for w, value, guess in triples if _differ(value, guess)) / total
        if name == "f1_weighted":
            actual: dict[Any, float] = defaultdict(float)
            predicted: dict[Any, float] = defaultdict(float)
            hits: dict[Any, float] = defaultdict(float)
            for weight, value, guess in triples:
                actual[_class_key(value)] += weight
                predicted[_class_key(guess)] += weight
                if not _differ(value, guess):
                    hits[_class_key(value)] += weight
            terms = (n * 2 * hits[k] / (n + predicted[k]) for k, n in actual.items() if n > 0)
            return math.fsum(terms) / total
        squared = math.fsum(w * (value - guess) ** 2 for w, value, guess in triples)
        if name == "r2":
            mean = _mean([value for _, value, _ in triples], [w for w, _, _ in triples])
            squares = math.fsum(w * (value - mean) ** 2 for w, value, _ in triples)
            return 1 - squared / squares if squares > 0 else float(squared == 0)
        if name == "mean_squared_error":
            return squared / total
        if name == "root_mean_squared_error":
            return math.sqrt(squared / total)
        return math.fsum(w * abs(value - guess) for w, value, guess in triples) / total

    # --- given rules and incumbents ---

    def check_given_rules(self) -> list[str]:
        """Check the size, the completeness and the metrics of the given rules."""
        stated = self.data["given"]
        rules = stated["rules"]
        if rules is None:
            self.unchecked.append("The given rules are not in the certificate: not checked.")
            return []
        self._require_equal("the number of rules", [stated["n_rules"]], [len(rules["rules"])])
        predictions = self._predict(rules, must_be_complete=False)
        if not predictions:
            self.unchecked.append("Several of the given rules predict together: not checked.")
            return []
        covered = [i for i, prediction in enumerate(predictions) if prediction is not None]
        completeness = math.fsum(self.w[i] for i in covered) / math.fsum(self.w)
        self._require_equal(
            "completeness by rows", [stated["completeness_instances"]], [completeness]
        )
        if not stated["metrics"]:
            raise _RejectedError("it states no metrics of the given rules")
        for key, value in stated["metrics"].items():
            name, policy = key.split(" ")
            title = f"{key} of the given rules"
            if policy == "ignore" or completeness == 1:
                metric = self._metric(name, predictions, covered)
                self._require_equal(title, [value], [metric], self.scales.get(name, 1.0))
            elif self.task == "classification":
                metric = self._metric(name, predictions, range(len(predictions)))
                self._require_equal(title, [value], [metric])
            else:
                self.unchecked.append(f"{title}, which do not cover all rows: not checked.")
        volume, stated_volume = _covered_volume(rules), stated["completeness_volume"]
        if volume is None or 1e-9 < abs(volume - stated_volume) < _VOLUME_TOLERANCE:
            self.unchecked.append("Completeness by volume of the given rules: not checked.")
        else:
            self._require_equal("completeness by volume", [stated_volume], [volume])
        return ["The given rules have the stated size and metrics."]

    def check_incumbents(self, frontier: Any) -> str:
        """Check the losses, metrics and leaves of the best rules found."""
        kind, loss = frontier["kind"], frontier["loss"]
        if kind not in ("tree", "list") or loss not in _METRICS:
            raise _RejectedError(f"there is no kind {kind!r} with the loss {loss!r}")
        if (loss == "errors") is not (self.task == "classification"):
            raise _RejectedError(f"{loss!r} is not a loss of {self.task}")
        total = math.fsum(self.w)
        self._require_equal("the total weight", [frontier["total_weight"]], [total], total)
        n_sizes = len(frontier["upper"])
        per_size = ("lower", "status", "measured", "rules")
        if not n_sizes or any(len(frontier[name]) != n_sizes for name in per_size):
            raise _RejectedError("its numbers of sizes differ")
        tests = sorted(set(self._tests(frontier["space"]["cuts"]))) if kind == "tree" else []
        for i in range(n_sizes):
            self._check_bound_pair(frontier, i)
            self._check_incumbent(frontier, i, tests)
        for f1_bound in frontier.get("f1_bounds", ()):
            if kind != "tree" or f1_bound["max_leaves"] not in range(1, n_sizes + 1):
                raise _RejectedError("it bounds the F1 of rules outside of its space")
            self._check_f1_incumbent(frontier, f1_bound, tests)
        return f"{kind}: the best rules found have the stated losses."

    @staticmethod
    def _check_bound_pair(frontier: Any, i: int) -> None:
        """Check that the bounds of one size are consistent."""
        low, high = frontier["lower"][i], frontier["upper"][i]
        status = frontier["status"][i]
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high):
            raise _RejectedError(f"the bounds {low} and {high} contradict each other")
        if i and (low > frontier["lower"][i - 1] or high > frontier["upper"][i - 1]):
            raise _RejectedError("a bound grows with the number of rules")
        if status not in _STATUSES or (status == "optimal" and low < high):
            raise _RejectedError(f"the bounds {low} and {high} are not {status!r}")

    def _check_incumbent(self, frontier: Any, i: int, tests: Sequence[int]) -> None:
        """Check the best rules found of one size."""
        rules, loss = frontier["rules"][i], frontier["loss"]
        if rules is None:
            raise _RejectedError(f"it lacks the rules of size {i + 1}")
        n_rules = len(rules["rules"])
        if not 1 <= n_rules <= i + 1:
            raise _RejectedError(f"there are {n_rules} rules where {i + 1} are allowed")
        if (frontier["kind"] == "list") is not bool(rules["ordered"]):
            raise _RejectedError(f"the best rules found are not a {frontier['kind']}")
        predictions = self._check_rules(frontier, rules, tests)
        computed = self._loss(loss, predictions)
        stated_loss = [frontier["upper"][i]]
        self._require_equal(
            f"the loss of {i + 1} rules", stated_loss, [computed], self.scales[loss]
        )
        weights = [0.0] * n_rules
        for (_, holding), weight in zip(self._holding_rules(rules), self.w, strict=True):
            weights[holding[0]] += weight
        for rule, weight in zip(rules["rules"], weights, strict=True):
            statistics = rule.get("statistics") or {}
            if "n_rows" in statistics:
                stated_rows = [statistics["n_rows"]]
                self._require_equal(
                    "the rows of a rule", stated_rows, [weight], self.scales["errors"]
                )
        measured = frontier["measured"][i]
        if set(measured) != {"n_rules", *_METRICS[loss]}:
            raise _RejectedError("it does not state the metrics of the best rules found")
        self._require_equal("the number of rules found", [measured["n_rules"]], [n_rules])
        for name in _METRICS[loss]:
            metric = self._metric(name, predictions, range(len(predictions)))
            self._require_equal(name, [measured[name]], [metric], self.scales.get(name, 1.0))

    def _check_f1_incumbent(self, frontier: Any, f1_bound: Any, tests: Sequence[int]) -> None:
        """Check the tree with the best weighted F1 found."""
        rules, max_leaves = f1_bound["rules"], f1_bound["max_leaves"]
        if rules is None:
            self._require_equal("the F1 without rules", [f1_bound["incumbent"]], [0])
            return
        if not 1 <= len(rules["rules"]) <= max_leaves or rules["ordered"]:
            raise _RejectedError(f"the best rules by F1 are not a tree of {max_leaves} leaves")
        predictions = self._check_rules(frontier, rules, tests)
        f1 = self._metric("f1_weighted", predictions, range(len(predictions)))
        self._require_equal("the F1 of the best tree found", [f1_bound["incumbent"]], [f1])

    def _check_rules(self, frontier: Any, rules: Any, tests: Sequence[int]) -> list[Any]:
        """Check that complete rules belong to the space, and return their predictions."""
        self._check_space(frontier["space"], rules)
        predictions = self._predict(rules, must_be_complete=True)
        if not predictions:
            raise _RejectedError("several leaves of a tree hold for the same row")
        if frontier["kind"] == "tree":
            self._check_tree([holding[0] for _, holding in self._holding_rules(rules)], tests)
        return predictions

    def _check_space(self, space: Any, rules: Any) -> None:
        """Check that the conditions of rules belong to the space."""
        max_conditions = space.get("max_conditions", math.inf)
        for rule in rules["rules"]:
            n_tests = sum(
                self._count_tests(condition, space["cuts"]["thresholds"], rules["feature_names"])
                for condition in rule["if"]
            )
            if n_tests > max_conditions:
                raise _RejectedError(f"a rule has {n_tests} conditions")

    def _count_tests(self, condition: Any, thresholds: Any, feature_names: Sequence[str]) -> int:
        """Return the number of tests of the space that a condition consists of."""
        if condition["type"] == "interval":
            j = self.names.index(feature_names[condition["feature"]])
            bounds = [condition[side] for side in ("lower", "upper") if side in condition]
            for bound in bounds:
                if bound not in thresholds[str(j)]:
                    raise _RejectedError(f"{bound} is not a cut of the space")
            return len(bounds)
        if condition["type"] == "one_of":
            # A negated condition on several values is one test per value.
            n_values = len(condition["values"])
            if not condition["negated"] and n_values > 1:
                raise _RejectedError("tests of the space compare categories with one value each")
            return n_values
        if condition["type"] == "missing":
            return 1
        raise _RejectedError(f"the space has no condition of type {condition['type']!r}")

    # --- cuts ---

    def _tests(self, cuts: Any) -> Iterator[int]:
        """Yield the rows where each test holds, as bits."""

        def to_bits(holds: Callable[[Any], bool], j: int) -> int:
            return sum(1 << i for i, row in enumerate(self.rows) if holds(row[j]))

        for j in range(len(self.names)):
            missing = to_bits(lambda value: value is None, j)
            missing_sides = (0, missing) if missing else (0,)
            for cut in cuts["thresholds"].get(str(j), ()):
                below = to_bits(partial(_at_most, cut), j)
                yield from (below | side for side in missing_sides)
            for category in cuts["categories"].get(str(j), ()):
                equal = to_bits(partial(_equal, category), j)
                yield from (equal | side for side in missing_sides)
            if missing:
                yield missing

    def _check_cuts(self, cuts: Any) -> None:
        """Check that these are the cuts that the sentence of the certificate describes."""
        if self.data["settings"].get("stated_cuts"):  # The sentence states their number.
            return
        max_cuts = self.data["settings"]["cuts_per_feature"]
        if max_cuts is not None and (
            isinstance(max_cuts, bool) or not max_cuts >= 1 or int(max_cuts) != max_cuts
        ):
            raise _RejectedError(f"there cannot be {max_cuts} cuts per feature")
        bounds_of_rules = self._bounds_of_given_rules()
        for j, name in enumerate(self.names):
            observed = [row[j] for row in self.rows if row[j] is not None]
            categories = cuts["categories"].get(str(j))
            if categories is not None:
                self._check_categories(name, observed, categories)
            elif any(isinstance(value, str) for value in observed):
                raise _RejectedError(f"no cut separates the values of {name}")
            else:
                thresholds = cuts["thresholds"].get(str(j), ())
                bounds = bounds_of_rules.get(name, [])
                self._check_thresholds(name, observed, thresholds, bounds, max_cuts)

    def _bounds_of_given_rules(self) -> dict[str, list[tuple[float, bool]]]:
        """Return the bounds in the given rules by feature, and whether equal values are below."""
        rules = self.data["given"]["rules"] or {"rules": [], "feature_names": []}
        bounds: dict[str, list[tuple[float, bool]]] = {}
        for condition in (c for rule in rules["rules"] for c in rule["if"]):
            if condition["type"] == "interval":
                name = rules["feature_names"][condition["feature"]]
                feature_bounds = bounds.setdefault(name, [])
                if "upper" in condition:
                    feature_bounds.append((condition["upper"], condition["upper_closed"]))
                if "lower" in condition:
                    feature_bounds.append((condition["lower"], not condition["lower_closed"]))
        return bounds

    def _check_categories(
        self, name: str, observed: Sequence[Any], categories: Sequence[Any]
    ) -> None:
        """Check that each value of a categorical feature has a test."""
        is_numeric = all(type(value) in (int, float) for value in observed)
        if observed and is_numeric and name not in self.declared_categories:
            raise _RejectedError(f"the numbers of {name} are not categories")
        for value in observed:
            if not any(_equal(category, value) for category in categories):
                raise _RejectedError(f"no test separates {value} of {name} from other values")

    def _check_thresholds(
        self,
        name: str,
        observed: Sequence[Any],
        thresholds: Sequence[float],
        bounds: Sequence[tuple[float, bool]],
        max_cuts: float | None,
    ) -> None:
        """Check that a numeric feature is cut as described, and where the given rules cut it."""
        has_rules = bool(self.data["given"]["rules"])
        if max_cuts is not None and has_rules and len(thresholds) > max_cuts + len(bounds):
            raise _RejectedError(f"there are {len(thresholds)} cuts of {name}")
        values = sorted({float(value) for value in observed})
        positions = {bisect_right(values, cut) for cut in thresholds}
        rule_positions = {
            bisect_right(values, bound) if is_below else bisect_left(values, bound)
            for bound, is_below in bounds
        }
        candidates = _cut_positions(sorted(map(float, observed)), values, max_cuts)
        for position in (*candidates, *sorted(rule_positions)):
            if 0 < position < len(values) and position not in positions:
                low, high = values[position - 1], values[position]
                raise _RejectedError(f"no cut separates {low} and {high} of {name}")

    # --- bounds ---

    def check_bounds(self, frontier: Any, n_remaining: int) -> tuple[list[str], bool]:
        """Search for rules better than the bounds, within an equal share of the remaining time.

        Parameters
        ----------
        frontier : dict
            The bounds of one kind of rules.
        n_remaining : int
            Number of frontiers that are not checked yet, including this one.

        Returns
        -------
        tuple of list of str and bool
            Sentences on the bounds, and whether all of them were checked.
        """
        self._check_cuts(frontier["space"]["cuts"])
        now = time.monotonic()
        end = now + (self.end - now) / n_remaining
        f1_bounds = frontier.get("f1_bounds")
        all_rows = (1 << len(self.rows)) - 1
        tests = {t for t in self._tests(frontier["space"]["cuts"]) if t not in (0, all_rows)}
        loss_end = now + (end - now) / 2 if f1_bounds else end
        sentences, all_checked = self._check_loss_bounds(frontier, tests, loss_end)
        for f1_bound in f1_bounds or ():
            size, upper_bound = f1_bound["max_leaves"], f1_bound["upper_bound"]
            if upper_bound >= 1:
                continue
            try:
                self._check_f1_bound(f1_bound, self._test_matrix(sorted(tests)), end)
            except _LimitError:
                all_checked = False
                sentences.append(f"tree: the bound of the F1 of {size} rules is not checked.")
            else:
                sentences.append(f"tree: no {size} rules have a weighted F1 above {upper_bound}.")
        return sentences, all_checked

    def _check_loss_bounds(
        self, frontier: Any, tests: set[int], end: float
    ) -> tuple[list[str], bool]:
        """Check the lower bounds of the loss of all sizes."""
        kind, lower = frontier["kind"], frontier["lower"]
        all_rows = (1 << len(self.rows)) - 1
        splits = sorted({min(test, all_rows ^ test) for test in tests})
        cost = self._make_cost(frontier["loss"])
        unavoidable = math.fsum(cost(rows) for rows in _equivalence_classes(all_rows, tests))
        tolerance = _TOLERANCE * max(1e-300, cost(all_rows))
        if kind == "tree":
            count, least_loss = _enumerate_trees(splits, cost)
        else:
            max_conditions = frontier["space"]["max_conditions"]
            count, least_loss = _enumerate_lists(splits, all_rows, max_conditions, cost)
        enumerated: list[int] = []
        searched: list[int] = []
        proven: dict[int, float] = {}
        search: _TreeChecker | _ListChecker | None = None
        for size, bound in enumerate(lower, start=1):
            proven[size] = unavoidable
            if bound <= unavoidable + tolerance and size > 1:
                continue
            if count(size) <= _MAX_ENUMERATED:
                enumerated.append(size)
                proven[size] = least_loss(all_rows, size)
            else:
                search = search or self._make_search(frontier, splits)
                if search is None:
                    continue
                # The remaining time is divided among this size and the later ones.
                now = time.monotonic()
                search.deadline = now + (end - now) / (len(lower) - size + 1)
                try:
                    proven[size] = search.least_loss(size, bound - tolerance)
                except _LimitError:
                    continue
                searched.append(size)
            if bound > proven[size] + tolerance:
                raise _RejectedError(
                    f"{kind}: {size} rules have a loss of {proven[size]}, below the bound {bound}"
                )
        # A proven bound for more rules holds for fewer rules, too.
        unproven = [
            size
            for size, bound in enumerate(lower, start=1)
            if bound > max(value for s, value in proven.items() if s >= size) + tolerance
        ]
        start = f"{kind}: no rules are better than its bounds for "
        sentences = []
        if enumerated:
            sentences.append(f"{start}{_join(enumerated)} rules; all were enumerated.")
        if searched:
            sentences.append(f"{start}{_join(searched)} rules, by a search of the checker's own.")
        if unproven:
            sentences.append(
                f"{kind}: the bounds for {_join(unproven)} rules are not checked; there are too "
                f"many rules for the {'time' if search else 'memory'} limit."
            )
        return sentences, not unproven

    def _check_f1_bound(self, f1_bound: Any, test_matrix: Any, end: float) -> None:
        """Check, node by node, that no tree has a larger weighted F1."""
        upper_bound, proof = f1_bound["upper_bound"], f1_bound["proof"]
        labels = {value: code for code, value in enumerate(_json_values(proof["classes"]))}
        y, w = np.array([labels[value] for value in self.y]), np.array(self.w)
        n = np.bincount(y, w, len(labels))
        total, target = float(n.sum()), proof["target"]
        is_whole = bool((w == np.floor(w)).all())
        if f1_bound["incumbent"] > upper_bound + _ROUNDING:
            raise _RejectedError(
                f"a tree has an F1 of {f1_bound['incumbent']}, above the bound {upper_bound}"
            )
        if target > upper_bound:
            raise _RejectedError(f"its proof is for an F1 of {target}, but it states {upper_bound}")
        if (n == 0).any():
            raise _LimitError

        def check_node(node: Any, low: Any, high: Any) -> None:
            for _ in range(3):  # All predicted weights sum to the total weight.
                low = np.maximum(low, total - (high.sum() - high))
                high = np.minimum(high, total - (low.sum() - low))
            if (low > high + 1e-9 * total).any():
                return
            if "branches" in node:
                below, above = node["between"]
                first, second = node["branches"]
                if not above <= below + float(is_whole and below == math.floor(below)):
                    raise _RejectedError(f"no branch has between {below} and {above} predictions")
                is_branched = np.arange(len(n)) == node["class"]
                check_node(first, low, np.where(is_branched, np.minimum(high, below), high))
                check_node(second, np.where(is_branched, np.maximum(low, above), low), high)
                return
            search = _F1TreeChecker(test_matrix, y, w, low, high, node)
            search.deadline = end
            limit = total + search.constant - upper_bound * total / 2 - _TOLERANCE * total
            if search.least_loss(f1_bound["max_leaves"], limit) < limit:
                # The relaxed bound is too weak, although no better tree is known.
                raise _LimitError

        # If the F1 is above the target, each class has at least this F1.
        f1 = np.maximum(1 - total * (1 - target) / n, 0.0)
        high = np.where(f1 > 0, n * (2 / np.where(f1 > 0, f1, 1) - 1), total)
        check_node(proof["root"], f1 * n / (2 - f1), np.minimum(high, total))

    def _test_matrix(self, sets: Sequence[int]) -> Any:
        """Return sets of rows as a matrix of booleans, (n_rows, n_sets)."""
        n_bytes = -(-len(self.rows) // 8)
        raw = b"".join(one.to_bytes(n_bytes, "little") for one in sets)
        bits = np.frombuffer(raw, dtype=np.uint8).reshape(len(sets), n_bytes)
        return np.unpackbits(bits, axis=1, bitorder="little", count=len(self.rows)).T == 1

    def _make_search(
        self, frontier: Any, tests: Sequence[int]
    ) -> _TreeChecker | _ListChecker | None:
        """Return a search for better rules; None if it needs more memory."""
        loss, n, m = frontier["loss"], len(self.rows), len(tests)
        is_tree = frontier["kind"] == "tree"
        max_conditions = 1 if is_tree else frontier["space"]["max_conditions"]
        if max_conditions not in (1, 2, 3):
            raise _RejectedError(f"a list cannot have {max_conditions} conditions per rule")
        if 24 * n * m + 100 * 2 * m**max_conditions > self.memory_limit:
            return None
        target = np.array(self.y) if loss != "errors" else np.zeros(n, dtype=np.intp)
        if loss == "errors":
            labels = {value: code for code, value in enumerate(sorted(set(self.y), key=repr))}
            target = np.array([labels[value] for value in self.y])
        matrix, weights = self._test_matrix(tests), np.array(self.w)
        if is_tree:
            return _TreeChecker(matrix, target, weights, loss)
        return _ListChecker(matrix, target, weights, loss, max_conditions, self.memory_limit)

    def _make_cost(self, loss: str) -> Callable[[int], float]:
        """Return the function of the least loss of one conclusion for some rows."""
        y, w = self.y, self.w
        if loss == "errors":
            return self._make_error_cost()

        def members(rows: int) -> list[int]:
            index = []
            while rows:
                lowest = rows & -rows
                index.append(lowest.bit_length() - 1)
                rows ^= lowest
            return index

        def deviation(rows: int) -> float:
            index = members(rows)
            total = math.fsum(w[i] for i in index)
            if total <= 0:
                return 0.0
            if loss == "squared_error":
                mean = _mean([y[i] for i in index], [w[i] for i in index])
                return math.fsum(w[i] * (y[i] - mean) ** 2 for i in index)
            index.sort(key=lambda i: y[i])
            weight_below, median = 0.0, y[index[0]]
            for i in index:
                weight_below += w[i]
                if weight_below >= total / 2:
                    median = y[i]
                    break
            return math.fsum(w[i] * abs(y[i] - median) for i in index)

        return deviation

    def _make_error_cost(self) -> Callable[[int], float]:
        """Return the function of the fewest errors of one label for some rows."""
        rows_by_weight: dict[float, dict[Any, int]] = {}
        for i, (value, weight) in enumerate(zip(self.y, self.w, strict=True)):
            rows_by_label = rows_by_weight.setdefault(weight, {})
            rows_by_label[value] = rows_by_label.get(value, 0) | 1 << i
        weighted_sets = [
            [(weight, by_label.get(label, 0)) for weight, by_label in rows_by_weight.items()]
            for label in sorted(set(self.y), key=repr)
        ]

        def errors(rows: int) -> float:
            sums = [
                math.fsum(weight * (rows & members).bit_count() for weight, members in sets)
                for sets in weighted_sets
            ]
            return math.fsum(sums) - max(sums)

        return errors


def _cut_positions(
    observed: Sequence[float], values: Sequence[float], max_cuts: float | None
) -> Iterator[int]:
    """Yield the positions of the cuts among the values: all, or those nearest to the quantiles."""
    if max_cuts is None or len(values) - 1 <= max_cuts:
        yield from range(1, len(values))
        return
    n_below = [bisect_left(observed, value) for value in values]
    for k in range(1, int(max_cuts) + 1):
        quantile = k * (len(observed) / (max_cuts + 1))
        yield min(range(1, len(values)), key=lambda position: abs(n_below[position] - quantile))


def _join(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


# --- enumeration of all rules ---


def _equivalence_classes(rows: int, tests: set[int]) -> list[int]:
    """Return the sets of rows that no test separates."""
    classes = [rows]
    for test in tests:
        classes = [part for c in classes for part in (c & test, c & ~test) if part]
    return classes


def _enumerate_trees(tests: Sequence[int], cost: Callable[[int], float]) -> tuple[Any, Any]:
    """Return the functions of the number of trees, and of their least loss by enumeration."""

    @cache
    def count(size: int) -> float:
        if size == 1:
            return 1
        return sum(len(tests) * (count(left) + count(size - left)) for left in range(1, size))

    cached_cost = cache(cost)

    @cache
    def least_loss(rows: int, size: int) -> float:
        best = cached_cost(rows)
        if size == 1 or best == 0:
            return best
        for test in tests:
            yes, no = rows & test, rows & ~test
            if yes and no:
                for left in range(1, size):
                    best = min(best, least_loss(yes, left) + least_loss(no, size - left))
        return best

    return count, least_loss


def _enumerate_lists(
    tests: Sequence[int], all_rows: int, max_conditions: int, cost: Callable[[int], float]
) -> tuple[Any, Any]:
    """Return the functions of the number of lists, and of their least loss by enumeration."""
    sides = [side for test in tests for side in (test, all_rows ^ test)]
    premises: set[int] = set()
    n_premises = sum(math.comb(len(sides), n) for n in range(1, max_conditions + 1))
    if n_premises <= _MAX_ENUMERATED:
        for n in range(1, max_conditions + 1):
            premises |= {reduce(and_, chosen) for chosen in combinations(sides, n)}
        n_premises = len(premises := premises - {0})

    def count(size: int) -> float:
        return float((2 * n_premises) ** (size - 1))

    cached_cost = cache(cost)

    @cache
    def least_loss(rows: int, size: int) -> float:
        best = cached_cost(rows)
        if size == 1 or best == 0:
            return best
        for covered in {rows & premise for premise in premises} - {0, rows}:
            covered_cost = cached_cost(covered)
            if covered_cost < best:
                best = min(best, covered_cost + least_loss(rows & ~covered, size - 1))
        return best

    return count, least_loss


# --- search for trees ---


class _TreeChecker:
    """Search for the least loss of trees, as far as a bound needs it.

    Rows that no test separates form one point. The loss of a subset of points is below that of a
    set by at most the largest cost of the other points. So the bound of one subset also bounds
    similar subsets, and few subsets are solved.

    Parameters
    ----------
    test_matrix : ndarray of bool, shape (n_rows, n_tests)
        Rows where each test holds.
    y : ndarray
        Class indices, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss that is summed over the rows.
    """

    def __init__(self, test_matrix: Any, y: Any, w: Any, loss: str) -> None:
        self.loss = loss
        #: Time of :func:`time.monotonic` at which the search ends.
        self.deadline = math.inf
        _, point = np.unique(np.packbits(test_matrix, axis=1), axis=0, return_inverse=True)
        point = point.ravel()
        n = int(point.max()) + 1
        row_of_point = np.unique(point, return_index=True)[1]
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.max_costs = stats.sum(axis=1)
        elif loss == "squared_error":
            y = y - _mean(y, w)
            stats = np.zeros((n, 3))
            np.add.at(stats, point, np.column_stack([w, w * y, w * y * y]))
            largest = w * np.maximum((y - y.min()) ** 2, (y.max() - y) ** 2)
            self.max_costs = np.bincount(point, largest, n)
        else:  # Medians need the rows themselves, sorted by their numbers.
            row_of_point = np.argsort(y, kind="stable")
            self.y, stats = y[row_of_point], w[row_of_point, None]
            self.max_costs = stats[:, 0] * np.maximum(self.y - y.min(), y.max() - self.y)
        self.stats = stats
        is_exact = loss == "errors" and bool((w == np.floor(w)).all()) and w.sum() < 2**24
        self.test_matrix = test_matrix[row_of_point].astype(np.float32 if is_exact else np.float64)
        self.min_costs = (
            np.zeros(len(stats)) if loss == "absolute_error" else self._loss_of_sums(stats)
        )
        self.cache: dict[tuple[bytes, int], tuple[float, bool]] = {}

    def least_loss(self, size: int, limit: float) -> float:
        """Return the least loss of all rows, or a bound of it that is at least the limit."""
        return self._solve(np.arange(len(self.stats)), size, limit)[0]

    def _loss_of_sums(self, sums: Any) -> Any:
        """Return the loss of one conclusion from the sums of the points' statistics."""
        if self.loss == "errors":
            return sums.sum(axis=-1) - sums.max(axis=-1)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * max(weight.max(), 1e-300), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] ** 2 / weight, 0.0)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound for rules that predict at most as many classes as their number."""
        if self.loss != "errors" or size >= sums.shape[-1]:
            return np.zeros(sums.shape[:-1])
        return np.sort(sums, axis=-1)[..., : sums.shape[-1] - size].sum(axis=-1)

    def _leaf_loss(self, points: Any) -> float:
        """Return the loss of one conclusion for some points."""
        if self.loss != "absolute_error":
            return float(self._loss_of_sums(self.stats[points].sum(axis=0)))
        y, w = self.y[points], self.stats[points, 0]
        weight = np.cumsum(w)
        return float((w * np.abs(y - y[np.searchsorted(weight, weight[-1] / 2)])).sum())

    def _split(self, points: Any) -> tuple[Any, Any, Any, Any]:
        """Return the tests that split points, their matrix, and the losses of both sides."""
        matrix = self.test_matrix[points]
        count = matrix.sum(axis=0)
        tests = np.flatnonzero((count > 0) & (count < len(points)))
        matrix = matrix[:, tests]
        if self.loss == "absolute_error":
            y, w = self.y[points, None], self.stats[points]
            losses = []
            for side in (matrix, 1 - matrix):
                weight = np.cumsum(side * w, axis=0)
                median_row = (weight < weight[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
                losses.append(np.abs((y - y[median_row, 0]) * side * w).sum(axis=0))
            return tests, matrix, losses[0], losses[1]
        stats = self.stats[points]
        sums = matrix.T @ stats.astype(matrix.dtype)
        other_sums = stats.sum(axis=0) - sums
        return tests, matrix, self._loss_of_sums(sums), self._loss_of_sums(other_sums)

    def _solve(self, points: Any, size: int, limit: float) -> tuple[float, bool]:
        """Return a lower bound of the loss of some points, and whether it is the least loss.

        It is the least loss wherever it is below the limit.
        """
        key = points.tobytes(), size
        bound, is_least = self.cache.get(key, (-math.inf, False))
        if is_least or bound >= limit:
            return bound, is_least
        if time.monotonic() > self.deadline:
            raise _LimitError
        leaf_loss, bound = self._leaf_loss(points), float(self.min_costs[points].sum())
        bound = max(bound, float(self._class_bound(self.stats[points].sum(axis=0), size)))
        if size == 1 or leaf_loss <= bound:
            result = leaf_loss, True
        elif bound >= limit:
            result = bound, False
        else:
            result = self._branch(points, size, limit, leaf_loss)
        self.cache[key] = result
        return result

    def _branch(self, points: Any, size: int, limit: float, leaf_loss: float) -> tuple[float, bool]:
        """Solve the children of the tests at the root until the bound is proven."""
        tests, matrix, yes, no = self._split(points)
        if not len(tests):
            return leaf_loss, True
        best = min(leaf_loss, float((yes + no).min()))
        if size == 2:
            return best, True
        lower, is_least = self._child_bounds(points, size, tests, matrix, (yes, no))
        while True:
            sums = np.array([lower[0][k] + lower[1][size - k] for k in range(1, size)])
            position = int(sums.argmin())
            n_left, test = position // len(tests) + 1, position % len(tests)
            total = float(sums.flat[position])
            needed = min(best, limit)
            if total >= needed:
                return (best, True) if best <= limit else (min(total, best), False)
            leaves = n_left, size - n_left
            open_sides = [s for s in (0, 1) if not is_least[s][leaves[s]][test]]
            if not open_sides:
                best = total
                continue
            side = max(open_sides, key=lambda s: leaves[s])
            n_leaves = leaves[side]
            is_child = matrix[:, test] == (1 - side)
            child_limit = needed - float(lower[1 - side][leaves[1 - side]][test])
            bound, solved = self._solve(points[is_child], n_leaves, child_limit)
            child_costs = np.where(is_child, self.max_costs[points], 0.0)
            for s, side_matrix in ((0, matrix), (1, 1 - matrix)):
                similar = bound - (child_costs.sum() - child_costs @ side_matrix)
                for k in range(2, n_leaves + 1):
                    raised = np.minimum(similar, lower[s][1])
                    np.maximum(lower[s][k], raised, out=lower[s][k], where=~is_least[s][k])
            lower[side][n_leaves][test] = max(bound, lower[side][n_leaves][test])
            is_least[side][n_leaves][test] = solved

    def _child_bounds(
        self, points: Any, size: int, tests: Any, matrix: Any, leaf_losses: tuple[Any, Any]
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return lower bounds by side, leaves and test, and where they are the least loss.

        The lists by leaves begin with 0 leaves, which is not used.
        """
        min_costs = self.min_costs[points] @ matrix
        stats = self.stats[points]
        sums = matrix.T @ stats.astype(matrix.dtype)
        lower = []
        for losses, costs, counts in (
            (leaf_losses[0], min_costs, sums),
            (leaf_losses[1], self.min_costs[points].sum() - min_costs, stats.sum(axis=0) - sums),
        ):
            bounds = [np.maximum(costs, self._class_bound(counts, k)) for k in range(2, size)]
            lower.append([losses, losses, *(np.minimum(bound, losses) for bound in bounds)])
        is_least = [[np.full(len(tests), k == 1) for k in range(size)] for _ in (0, 1)]
        n_products = len(points) * float(len(tests)) ** 2
        if self.loss != "absolute_error" and n_products < _MAX_PAIR_PRODUCTS:
            for side, losses in enumerate(self._two_leaf_losses(points, matrix)):
                lower[side][2], is_least[side][2] = losses, np.ones(len(tests), dtype=bool)
        return lower, is_least

    def _two_leaf_losses(self, points: Any, matrix: Any) -> list[Any]:
        """Return the least loss of each side of each test with two leaves, from all pairs."""
        stats = self.stats[points].astype(matrix.dtype)
        total = stats.sum(axis=0)
        shared = np.stack([matrix.T @ (matrix * stats[:, [k]]) for k in range(stats.shape[1])], -1)
        first = matrix.T @ stats
        inside = self._loss_of_sums(shared) + self._loss_of_sums(first[:, None] - shared)
        second_only = first[None] - shared
        outside = self._loss_of_sums(second_only)
        outside = outside + self._loss_of_sums(total - first[:, None] - second_only)
        return [inside.min(axis=1), outside.min(axis=1)]


class _F1TreeChecker(_TreeChecker):
    """Search for trees with the least weight of rows less the gains in the weighted F1.

    Let n be the weight of a class, and the weight predicted as this class lie between `low` and
    `high`. A leaf of weight s with weight c of the class gains n c / (n + max(s, low)). With the
    linear bound it gains n c / (n + high) less n min(n, high) / ((n + low) (n + high)) per row, to
    which this cost of all rows up to `high` is added as a constant. A Lagrange multiplier is the
    cost of rows above `high`, or, if it is negative, of rows that lack to `low`.

    Parameters
    ----------
    test_matrix, y, w : ndarray
        Tests, class indices and weights of the rows.
    low, high : ndarray of shape (n_classes,)
        Limits of the weight predicted as each class.
    node : dict
        Leaf of the proof, with its multipliers and the classes with the linear bound.
    """

    def __init__(self, test_matrix: Any, y: Any, w: Any, low: Any, high: Any, node: Any) -> None:
        self.n = n = np.bincount(y, w, len(low))
        self.low, self.high = low, high
        self.is_linear = np.isin(np.arange(len(n)), node["linear"])
        multipliers = np.array(node["multipliers"], dtype=float)
        max_ratio = np.minimum(np.minimum(n, high) / (n + low), 0.5)
        slope = n * max_ratio / (n + high) * self.is_linear
        row_costs = slope + multipliers
        # Each row is predicted once, so that only differences between the costs matter.
        self.row_costs = row_costs - row_costs.min()
        penalty = np.maximum(multipliers, 0) @ high + np.minimum(multipliers, 0) @ low
        #: Part of the objective that does not depend on the tree.
        self.constant = float(slope @ high + penalty - row_costs.min() * n.sum())
        super().__init__(test_matrix, y, w, "errors")
        self.max_costs = self.max_costs * (1.25 + float(self.row_costs.max()))

    def _gain_of_hits(self, hits: Any, weight: Any) -> Any:
        """Return the gain of hits in leaves of some weight, without the costs of rows."""
        predicted = np.maximum(weight, self.low)
        return self.n * hits / (self.n + np.where(self.is_linear, self.high, predicted))

    def _loss_of_sums(self, sums: Any) -> Any:
        sums = np.asarray(sums, dtype=float)
        weight = sums.sum(axis=-1)
        costs = self.row_costs * weight[..., None]
        gains = self._gain_of_hits(sums, weight[..., None]) - costs
        return weight - gains.max(axis=-1)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound: pure leaves for all but one predicted class."""
        sums = np.asarray(sums, dtype=float)
        pure = np.maximum(self._gain_of_hits(sums, sums) - self.row_costs * sums, 0)
        pure = np.sort(pure, axis=-1)[..., ::-1]
        largest = np.sort(sums, axis=-1)[..., ::-1][..., :size].sum(axis=-1)
        shortfall = np.where(self.is_linear, 0, np.maximum(self.low - sums, 0)).sum(axis=-1)
        total = sums.sum(axis=-1)
        other_weight = np.maximum(total - shortfall - largest, 0)[..., None]
        impure = self._gain_of_hits(sums, np.maximum(sums, self.low) + other_weight)
        impure = np.maximum((impure - self.row_costs * (sums + other_weight)).max(axis=-1), 0)
        gain = np.minimum(
            pure[..., :size].sum(axis=-1), pure[..., : size - 1].sum(axis=-1) + impure
        )
        return np.maximum(total - gain, 0)


# --- search for lists ---


class _ListChecker:
    """Search for the least loss of lists, above the loss that no list can avoid.

    A list is a premise, followed by a list of one rule less for the remaining rows. A product of
    matrices gives the sums over the rows of all premises, which are conjunctions of sides of tests.
    Additional rows increase the loss by at most their `max_costs`. So the bound for some remaining
    rows also bounds similar ones.

    Parameters
    ----------
    test_matrix : ndarray of bool, shape (n_rows, n_tests)
        Rows where each test holds.
    y : ndarray
        Class indices, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss that is summed over the rows.
    max_conditions : int
        Largest number of sides of tests in a premise.
    memory_limit : float
        Bytes that the search may use.
    """

    def __init__(
        self,
        test_matrix: Any,
        y: Any,
        w: Any,
        loss: str,
        max_conditions: int,
        memory_limit: float = math.inf,
    ) -> None:
        self.loss, self.max_conditions = loss, max_conditions
        self.memory_limit = memory_limit
        #: Time of :func:`time.monotonic` at which the search ends.
        self.deadline = math.inf
        is_exact = loss == "errors" and bool((w == np.floor(w)).all()) and w.sum() < 2**24
        row_of_point, point = np.unique(
            np.packbits(test_matrix, axis=1), axis=0, return_index=True, return_inverse=True
        )[1:]
        n, point = len(row_of_point), point.ravel()
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.unavoidable_loss = float((stats.sum(axis=1) - stats.max(axis=1)).sum())
            stats -= stats.min(axis=1, keepdims=True)
            max_costs = stats.max(axis=1)
        elif loss == "squared_error":
            y = y - _mean(y, w)
            weight, total = np.bincount(point, w, n), np.bincount(point, w * y, n)
            mean = total / np.where(weight > 0, weight, 1)
            stats = np.column_stack([weight, total, total * mean])
            self.unavoidable_loss = float((w * y * y).sum() - stats[:, 2].sum())
            max_costs = weight * np.maximum((mean - mean.min()) ** 2, (mean.max() - mean) ** 2)
        else:  # There is one statistic for each number that a rule could conclude.
            row_of_point, self.unavoidable_loss = np.arange(len(y)), 0.0
            stats = w[:, None] * np.abs(y[:, None] - np.unique(y))
            max_costs = stats.max(axis=1)
        dtype = np.float32 if is_exact else np.float64
        self.test_matrix, self.stats, self.max_costs = (
            values.astype(dtype) for values in (test_matrix[row_of_point], stats, max_costs)
        )
        self.is_pure = loss == "errors" and bool(((stats > 0).sum(axis=1) <= 1).all())
        self.premises: Any = None
        self.premises = self._find_premises()
        #: Results for all rows, by the number of rules.
        self.cache: dict[int, tuple[float, bool, Any, Any]] = {}

    def least_loss(self, size: int, limit: float) -> float:
        """Return the least loss of all rows, or a bound of it that is at least the limit."""
        return self.unavoidable_loss + self._solve_all(size, limit - self.unavoidable_loss)[0]

    def _solve_all(self, size: int, limit: float) -> tuple[float, bool, Any, Any]:
        """Solve all rows, unless the cache has a sufficient bound."""
        if size not in self.cache or not (self.cache[size][1] or self.cache[size][0] >= limit):
            self.cache[size] = self._solve(np.arange(len(self.max_costs)), size, limit)
        return self.cache[size]

    def _sums(self, points: Any, values: Any) -> Any:
        """Sum the values of points over the points where each premise holds."""
        matrix = self.test_matrix[points]
        parts = [self._pair_sums(matrix, values)]
        if self.max_conditions == 3:
            for t in range(matrix.shape[1]):
                yes = values * matrix[:, t]
                later_tests = matrix[:, t + 1 :]
                parts += [self._pair_sums(later_tests, side) for side in (yes, values - yes)]
        sums = np.concatenate([part.ravel() for part in parts])
        return sums if self.premises is None else sums[self.premises]

    def _pair_sums(self, matrix: Any, values: Any) -> Any:
        """Return the sums for both of two tests, the first without the second, and neither."""
        first, total = values @ matrix, values.sum()
        if self.max_conditions == 1:
            return np.stack([first, total - first])
        shared = matrix.T @ (matrix * values[:, None])
        first_only = first[:, None] - shared
        return np.stack([shared, first_only, total - first - first_only])

    def _find_premises(self) -> Any:
        """Return the numbers of premises that hold for some points, but fewer than their parts."""
        n, m = self.test_matrix.shape
        counts = self._sums(np.arange(n), np.ones(n, dtype=self.test_matrix.dtype))
        if self.max_conditions == 1:
            return np.flatnonzero((counts > 0) & (counts < n))

        def holds_for_fewer(counts: Any) -> Any:
            yes, no = counts[0].diagonal(), counts[2].diagonal()
            parts = np.minimum(
                np.stack([yes, yes, no])[:, :, None], np.stack([yes, no, no])[:, None, :]
            )
            is_useful = (counts > 0) & (counts < parts)
            is_useful[[0, 2]] &= np.tri(counts.shape[1], k=-1, dtype=bool).T
            return is_useful

        pairs = counts[: 3 * m * m].reshape(3, m, m)
        is_useful, single = holds_for_fewer(pairs), np.arange(m)
        for block in (0, 2):
            sizes = pairs[block].diagonal()
            is_useful[block, single, single] = (sizes > 0) & (sizes < n)
        masks, begin = [is_useful.ravel()], 3 * m * m
        for t in range(m if self.max_conditions == 3 else 0):
            shape = 3, m - t - 1, m - t - 1
            for _ in (0, 1):
                triples = counts[begin : begin + math.prod(shape)].reshape(shape)
                is_useful = holds_for_fewer(triples) & (triples < pairs[:, t + 1 :, t + 1 :])
                masks.append(is_useful.ravel())
                begin += triples.size
        return np.flatnonzero(np.concatenate(masks))

    def _remaining(self, premise: int, points: Any) -> Any:
        """Return the points for which a premise does not hold."""
        number, m = int(self.premises[premise]), self.test_matrix.shape[1]
        holds, first_test = self.test_matrix[points] > 0, 0
        third = np.ones(len(points), dtype=bool)
        if self.max_conditions == 1:
            return points[~holds[:, number] if number < m else holds[:, number - m]]
        if number >= 3 * m * m:
            number -= 3 * m * m
            while number >= 6 * (m - first_test - 1) ** 2:
                number -= 6 * (m - first_test - 1) ** 2
                first_test += 1
            side, number = divmod(number, 3 * (m - first_test - 1) ** 2)
            third = holds[:, first_test] if side == 0 else ~holds[:, first_test]
            first_test += 1
        block, number = divmod(number, (m - first_test) ** 2)
        first, second = (holds[:, first_test + t] for t in divmod(number, m - first_test))
        is_covered = third & (first if block < 2 else ~first) & (second if block == 0 else ~second)
        return points[~is_covered]

    def _premise_losses(self, points: Any) -> tuple[Any, Any, Any]:
        """Return the losses of covered and remaining points, and the costs of the covered ones."""
        sums, totals = [], []
        for k in range(self.stats.shape[1]):
            counted = points[self.stats[points, k] != 0]
            sums.append(self._sums(counted, self.stats[counted, k]))
            totals.append(self.stats[counted, k].sum())
        costs = sum(sums) if self.is_pure else self._sums(points, self.max_costs[points])
        other_sums = [total - part for total, part in zip(totals, sums, strict=True)]
        covered = self._loss_of_sums(sums, costs)
        remaining = self._loss_of_sums(other_sums, self.max_costs[points].sum() - costs)
        return covered, remaining, costs

    def _loss_of_sums(self, sums: Any, max_costs: Any) -> Any:
        """Return the loss of one conclusion from the sums of the points' statistics."""
        if self.loss == "errors":
            return max_costs - reduce(np.maximum, sums)
        if self.loss == "absolute_error":
            return np.maximum(np.min(sums, axis=0), 0.0)
        weight = np.where(sums[0] > 1e-12 * self.stats[:, 0].sum(), sums[0], np.inf)
        return np.maximum(sums[2] - sums[1] ** 2 / weight, 0.0)

    def _solve(
        self,
        points: Any,
        size: int,
        limit: float,
        bound_of_fewer: float | None = None,
        similarity_bounds: Any = None,
    ) -> tuple[float, bool, Any, Any]:
        """Return a lower bound of the loss of some points that is least or at least the limit.

        Parameters
        ----------
        points : ndarray of int
            The points.
        size : int
            Largest number of rules.
        limit : float
            A bound that suffices.
        bound_of_fewer : float, optional
            Lower bound with one rule less.
        similarity_bounds : ndarray of shape (n_premises,), optional
            Lower bounds of the loss of the points that each premise leaves.

        Returns
        -------
        tuple of float, bool, ndarray and ndarray or None
            The bound, whether it is the least loss, the largest cost of the points that each
            premise covers and, except for two rules, bounds of the points that it leaves.
        """
        if time.monotonic() > self.deadline:
            raise _LimitError
        covered, remaining, costs = self._premise_losses(points)
        totals = list(self.stats[points].sum(axis=0))
        best = float(self._loss_of_sums(totals, self.max_costs[points].sum()))
        best = min(best, float((covered + remaining).min(initial=math.inf)))
        if size == 2 or best <= 0 or not len(costs):
            return best, True, costs, None
        bounds_of_fewer = None
        if size == 3:
            bound_of_fewer = best
        elif bound_of_fewer is None:
            bound_of_fewer, is_least, _, bounds_of_fewer = self._solve_all(size - 1, limit)
            best = min(best, bound_of_fewer) if is_least else best
        similar = 0.0 if similarity_bounds is None else np.maximum(similarity_bounds, 0.0)
        lower = np.maximum(bound_of_fewer - costs, similar)
        is_root = len(points) == len(self.max_costs)
        max_stored = min(_MAX_STORED, int(self.memory_limit / (8 * size * costs.nbytes)))
        solved: list[int] = []
        solved_costs: list[Any] = []
        solved_bounds: list[Any] = []
        while True:
            needed = min(best, limit)
            sums = covered + lower
            if size == 3 and not is_root:
                # All premises must be solved or bounded; large ones bound more of the others.
                premise = int(np.where(sums < needed, costs, -1.0).argmax())
            else:
                premise = int(sums.argmin())
            if sums[premise] >= needed:
                is_least = best <= limit
                bound = best if is_least else min(float(sums.min()), best)
                return bound, is_least, costs, lower
            child_bounds = None
            if solved_bounds and size > 3:
                distances = [float(one[premise]) for one in solved_costs]
                nearest = int(np.argmin(distances))
                child_bounds = solved_bounds[nearest] - distances[nearest]
                # Two premises leave the same points in either order.
                swapped = [one[premise] for one in solved_bounds]
                child_bounds[solved] = np.maximum(child_bounds[solved], swapped)
            bound, is_least, child_costs, child_lower = self._solve(
                self._remaining(premise, points),
                size - 1,
                _BOUND_FACTOR * needed - float(covered[premise]),
                0.0 if bounds_of_fewer is None else float(bounds_of_fewer[premise]),
                child_bounds,
            )
            if is_least:
                best = min(best, float(covered[premise]) + bound)
            np.maximum(lower, bound - child_costs, out=lower)
            lower[premise] = max(float(lower[premise]), bound)
            if child_lower is not None and len(solved_bounds) < max_stored:
                solved.append(premise)
                solved_costs.append(child_costs)
                solved_bounds.append(child_lower)


# --- values and conditions ---


def _read_columns(X: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the names and the values of the columns."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [str(name) for name in columns], [_json_values(X[name]) for name in columns]
    rows = X.tolist() if hasattr(X, "tolist") else [list(row) for row in X]
    values = [[_json_value(v) for v in column] for column in zip(*rows, strict=True)]
    return [f"x{j}" for j in range(len(values))], values


def _json_values(column: Any) -> list[Any]:
    """Return the values of a column as JSON represents them."""
    return [_json_value(v) for v in (column.tolist() if hasattr(column, "tolist") else column)]


def _json_value(value: Any) -> Any:
    """Return a value as JSON represents it: numbers as floats if possible, missing ones as None."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if value != value or str(value) in ("<NA>", "NaT") else str(value)
    if isinstance(value, int) and number != value:
        return value
    return None if math.isnan(number) else number


def _at_most(cut: float, value: Any) -> bool:
    return value is not None and float(value) <= cut


def _equal(category: Any, value: Any) -> bool:
    return value is not None and not _differ(category, value)


def _class_key(value: Any) -> Any:
    """Return a key that is equal for equal labels, such as 1 and 1.0."""
    return _json_value(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _differ(first: Any, second: Any) -> bool:
    """Return whether two labels are different; booleans differ from numbers."""
    first, second = _class_key(first), _class_key(second)
    return type(first) is not type(second) or bool(first != second)


def _mean(values: Any, weights: Any) -> float:
    """Return the weighted mean; of equal numbers exactly this number, without rounding errors."""
    pairs = [(float(v), float(w)) for v, w in zip(values, weights, strict=True) if w]
    if len({v for v, _ in pairs}) == 1:
        return pairs[0][0]
    return math.fsum(w * v for v, w in pairs) / math.fsum(w for _, w in pairs)


def _holds(condition: Any, row: Sequence[Any]) -> bool:
    """Return whether a condition holds for a row."""
    kind = condition["type"]
    if kind == "at_least":
        return sum(_holds(c, row) for c in condition["conditions"]) >= condition["m"]
    if kind == "linear":
        if any(row[j] is None for j, _ in condition["terms"]):
            return False
        return _is_within(condition, math.fsum(c * row[j] for j, c in condition["terms"]))
    value = row[condition["feature"]]
    if kind == "missing":
        return (value is None) != condition["negated"]
    if value is None:
        return bool(condition.get("missing", False))
    if kind == "interval":
        return _is_within(condition, value)
    if kind == "one_of":
        return any(not _differ(value, v) for v in condition["values"]) != condition["negated"]
    raise _RejectedError(f"there is no condition of type {kind!r}")


def _is_within(condition: Any, value: float) -> bool:
    """Return whether a number is between the bounds of a condition."""
    lower, upper = condition.get("lower"), condition.get("upper")
    value = float(value)  # Rules compare floats, which round integers beyond 2**53.
    above = lower is None or value > lower or (condition["lower_closed"] and value == lower)
    below = upper is None or value < upper or (condition["upper_closed"] and value == upper)
    return above and below


def _conclusion(then: Any, row: Sequence[Any]) -> Any:
    """Return the conclusion of a rule for a row."""
    if isinstance(then, dict):
        return then["intercept"] + math.fsum(c * row[j] for j, c in then["terms"])
    return then


# --- volume ---


def _covered_volume(rules: Any) -> float | None:
    """Return the share of the domain where some rule holds; None if it cannot be computed.

    The domain is divided feature by feature into parts that conditions distinguish. Missing values
    are a part of their own, and so is each category.
    """
    domain = rules.get("domain")
    conditions_of: dict[int, list[Any]] = {}
    for i, rule in enumerate(rules["rules"]):
        for condition in rule["if"]:
            if condition["type"] not in ("interval", "one_of", "missing"):
                return None
            conditions_of.setdefault(condition["feature"], []).append((i, condition))
    features = sorted(conditions_of)
    all_rules = frozenset(range(len(rules["rules"])))
    if not features or not all_rules:
        return float(bool(all_rules))
    parts, has_shares = [], []
    for j in features:
        feature_parts, is_known = _divide_feature(domain or {}, j, [c for _, c in conditions_of[j]])
        parts.append(feature_parts)
        has_shares.append(is_known)
    last_feature = dict.fromkeys(all_rules, -1)
    last_feature |= {i: k for k, j in enumerate(features) for i, _ in conditions_of[j]}
    n_parts = 0

    @cache
    def covered_share(k: int, open_rules: frozenset[int]) -> float:
        """Return the share where some open rule holds, given the parts of the first k features."""
        nonlocal n_parts
        if any(last_feature[i] < k for i in open_rules):
            return 1.0
        shares: dict[frozenset[int], float] = {}
        for value, share in parts[k]:
            n_parts += 1
            if n_parts > _MAX_VOLUME_PARTS:
                raise _LimitError
            excluded = {
                i
                for i, c in conditions_of[features[k]]
                if i in open_rules and not _holds_in_part(c, value)
            }
            holding = open_rules - excluded
            shares[holding] = shares.get(holding, 0.0) + share
        return math.fsum(
            share * covered_share(k + 1, holding) for holding, share in shares.items() if holding
        )

    try:
        volume = covered_share(0, all_rules)
    except _LimitError:
        return None
    # Without known shares, only a cover of all parts has a known volume.
    return volume if all(has_shares) else 1.0 if volume > 1 - 1e-12 else None


def _holds_in_part(condition: Any, value: Any) -> bool:
    """Return whether a condition holds in a part of the domain; a constant has closed bounds."""
    if condition["type"] == "interval" and isinstance(value, tuple):
        condition, value = {**condition, "lower_closed": True, "upper_closed": True}, value[0]
    return _holds({**condition, "feature": 0}, [value])


def _divide_feature(
    domain: Any, j: int, conditions: Sequence[Any]
) -> tuple[list[tuple[Any, float]], bool]:
    """Divide the values of a feature into the parts that conditions distinguish.

    Returns
    -------
    tuple of list of pairs and bool
        One value of each part with its share, and whether the shares are known.
    """
    missing_share = float(domain["missing"][j]) if domain.get("missing") else 0.0
    missing = [(None, missing_share)] if missing_share else []
    categories = next((v for f, v in domain.get("categories") or () if f == j), None)
    if categories is not None:
        share = (1 - missing_share) / len(categories)
        return [*((value, share) for value in categories), *missing], True
    named = {value for c in conditions if c["type"] == "one_of" for value in c["values"]}
    if named:
        values = [*named, object()]  # The object stands for all other categories.
        return [*((value, (1 - missing_share) / len(values)) for value in values), *missing], False
    bounds = {c[side] for c in conditions for side in ("lower", "upper") if side in c}
    if "lower" in domain:
        low, high = domain["lower"][j], domain["upper"][j]
    else:
        low, high = min(bounds, default=0.0) - 1, max(bounds, default=0.0) + 1
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return [((low,), 1 - missing_share), *missing], low == high
    cuts = [low, *sorted(b for b in bounds if low < b < high), high]
    length = (high - low) / (1 - missing_share)
    inner = [(a + (b - a) / 2, (b - a) / length) for a, b in pairwise(cuts)]
    return [*inner, *missing], "lower" in domain
