"""A checker of certificates that shares nothing with the programs that make them.

It reads the JSON, evaluates rules row by row in plain Python, and looks for rules that would be
better than the bounds: among all of them where there are few, and else by a search of its own in
NumPy, much simpler than those that it checks. Nothing else of this package is used here: what two
programs agree on is unlikely to be wrong in the same way.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from itertools import combinations, pairwise
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: What two sums of the same numbers may differ by, relative to the numbers.
_ROUNDING = 1e-10
#: How far bounds may be off, relative to the loss of one rule: solvers work in floating point.
_TOLERANCE = 1e-7
#: Up to so many sets of rows, all rules are tried one by one.
_MOST_TRIED = 100_000
#: How much more than is needed is looked for, for the sake of similar rows, of how many others.
_MORE, _MOST_SIMILAR = 1.05, 256
#: Up to so many products all pairs of tests are counted at once.
_PAIRS = 2e9
#: Most parts of the domain that are looked at to sum up its volume.
_MOST_PARTS = 200_000
#: What the volume of many entangled boxes may be off, as it is estimated there.
_ESTIMATED = 0.01
_METRICS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}


class _WrongError(Exception):
    """The certificate says what is not so."""


class _TooLongError(Exception):
    """The time is over."""


@dataclass(frozen=True)
class CheckResult:
    """What the check of a certificate found.

    Parameters
    ----------
    verdict : {"confirmed", "not checked", "rejected"}
        "not checked": all that was checked is right, but time was over before some bounds were, or
        something cannot be checked.
    findings : sequence of str
        What was checked, or what is wrong.
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
    """Check a certificate against the rows that it speaks of.

    Parameters
    ----------
    certificate : str or path
        The JSON, or a file with it.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        What the rules were compared with: for a certificate against a black box, its predictions.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, if it was made with some.
    time_limit : float, optional, default=60.0
        Seconds after which no further bound is checked; None for none.
    memory_limit : float, default=2**30
        Bytes that a search may take; bounds that need one which takes more are not checked.

    Returns
    -------
    CheckResult
        The verdict, and what it is about.

    Raises
    ------
    FileNotFoundError
        If `certificate` names no file. What is wrong inside of it is a verdict, not an error.

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
    150 rows have the checksum of the certificate.
    The rules that were given have the size and the metrics that it says.
    tree: the rules found have the losses that it says.
    tree: no rules are better than its bounds for 1, 2, 3 rules; all were tried.
    verdict: confirmed
    >>> check_certificate(made.to_json().replace('"n_rows": 150', '"n_rows": 149'), X, y).verdict
    'rejected'
    """
    text = certificate
    if isinstance(certificate, Path) or not str(certificate).lstrip().startswith("{"):
        text = Path(certificate).read_text(encoding="utf-8")
    findings: list[str] = []
    complete = True
    try:
        data = json.loads(text)
        if data["format"] != "skescore.Certificate" or data["version"] != 1:
            raise _WrongError("it is no certificate of version 1")
        check = _Check(data, X, y, sample_weight, time_limit, memory_limit)
        findings.append(check.rows_are_the_same())
        findings += check.given_rules()
        if not data["frontiers"]:
            raise _WrongError("it proves nothing")
        for place, part in enumerate(data["frontiers"]):
            findings.append(check.found_rules(part))
            with threadpool_limits(1):  # products of small tables gain nothing from threads
                sentences, all_proven = check.bounds(part, len(data["frontiers"]) - place)
            findings += sentences
            complete = complete and all_proven
        complete = complete and not check.unknown
        findings += check.unknown
        if data.get("held_out") is not None:  # no part of the proof
            findings.append("What it says of rows held out is not checked; that needs the search.")
    except _WrongError as error:
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
    return CheckResult("confirmed" if complete else "not checked", tuple(findings))


class _Check:
    """A certificate beside the rows."""

    def __init__(
        self, data: Any, X: Any, y: Any, weights: Any, limit: float | None, memory: float
    ) -> None:
        self.data, self.memory = data, memory
        self.end = math.inf if limit is None else time.monotonic() + limit
        names, columns = _columns(X)
        self.names = names
        kinds = getattr(X, "dtypes", ())
        self.categories = {
            n for n, kind in zip(names, kinds, strict=False) if str(kind) == "category"
        }
        self.rows = [list(row) for row in zip(*columns, strict=True)]
        self.y = _values(y)
        if len(self.y) != len(self.rows):
            raise _WrongError(f"there are {len(self.rows)} rows, but {len(self.y)} values of y")
        self.weighted = weights is not None
        self.w = [1.0] * len(self.y) if weights is None else [float(v) for v in _values(weights)]
        self.task = data["rows"]["task"]
        if self.task not in ("classification", "regression"):
            raise _WrongError(f"there is no task {self.task!r}")
        self.unknown: list[str] = []

    # --- rows ---

    def rows_are_the_same(self) -> str:
        about = self.data["rows"]
        digest = hashlib.sha256()
        for row, value, weight in zip(self.rows, self.y, self.w, strict=True):
            line = [*row, value] + ([weight] if self.weighted else [])
            digest.update((json.dumps(line) + "\n").encode())
        if about["weighted"] is not self.weighted:
            were = "" if about["weighted"] else "not "
            given = "weights" if self.weighted else "no weights"
            raise _WrongError(f"its rows were {were}weighed, but {given} are given")
        if about["n_rows"] != len(self.rows) or about["checksum"] != digest.hexdigest():
            raise _WrongError("these are not the rows that it was made on")
        total = math.fsum(self.w)
        self.scales = {"errors": total}
        if self.task == "classification":
            counts: Counter[Any] = Counter()
            for value, weight in zip(self.y, self.w, strict=True):
                counts[value] += weight  # type: ignore[assignment]
            said = sorted(about["class_weights"])
            self._same("class weights", said, sorted(counts.values()), total)
        else:
            mean = _mean(self.y, self.w)
            squares = math.fsum(w * (v - mean) ** 2 for w, v in zip(self.w, self.y, strict=True))
            absolute = math.fsum(w * abs(v) for w, v in zip(self.w, self.y, strict=True))
            squared = math.fsum(w * v * v for w, v in zip(self.w, self.y, strict=True))
            self.scales |= {
                "squared_error": squared,
                "absolute_error": absolute,
                "mean_absolute_error": absolute / total,
                "mean_squared_error": squared / total,
                "root_mean_squared_error": math.sqrt(squared / total),
            }
            self._same("sum of squares", [about["squares"]], [squares], squared)
        return f"{len(self.rows)} rows have the checksum of the certificate."

    @staticmethod
    def _same(what: str, said: Sequence[float], found: Sequence[float], scale: float = 1.0) -> None:
        off = 1e-9 * min(1.0, scale)  # what sums up to little is no less exact
        if len(said) != len(found) or any(
            isinstance(one, bool) or not math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=off)
            for one, other in zip(said, found, strict=True)
        ):
            raise _WrongError(f"{what} should be {list(found)}, not {list(said)}")

    # --- rules ---

    def _answers(self, rules: Any, *, complete: bool) -> list[Any]:
        """What rules conclude for each row; None where none holds."""
        order = [self.names.index(name) for name in rules["feature_names"]]
        if rules.get("voting"):
            return []
        answers = []
        for row in self.rows:
            values = [row[j] for j in order]
            held = [r for r in rules["rules"] if all(_holds(c, values) for c in r["if"])]
            if complete and not held:
                raise _WrongError("rules that should be complete hold not for all rows")
            if held and not rules["ordered"] and len(held) > 1:
                return []
            answers.append(_conclusion(held[0]["then"], values) if held else None)
        return answers

    def _firsts(self, rules: Any) -> list[int]:
        """Which rule predicts each row, of rules that are complete."""
        order = [self.names.index(name) for name in rules["feature_names"]]
        firsts = []
        for row in self.rows:
            values = [row[j] for j in order]
            held = (
                i
                for i, rule in enumerate(rules["rules"])
                if all(_holds(c, values) for c in rule["if"])
            )
            firsts.append(next(held))
        return firsts

    @staticmethod
    def _check_tree(leaf_of_row: Sequence[int], tests: Sequence[int]) -> None:
        """Raise unless tests, one after the other, part the rows as these leaves do."""
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
                    # Whatever parts some leaves first, trees of the rest are none the fewer.
                    groups += [inside, [leaf for leaf in group if not leaf & test]]
                    break
            else:
                raise _WrongError("no tree of the space has the leaves that it says")

    def _loss(self, name: str, answers: Sequence[Any]) -> float:
        pairs = list(zip(self.w, self.y, answers, strict=True))
        if name == "errors":
            return math.fsum(w for w, value, answer in pairs if _differ(value, answer))
        power = 2 if name == "squared_error" else 1
        return math.fsum(w * abs(value - answer) ** power for w, value, answer in pairs)

    def _metric(self, name: str, answers: Sequence[Any], rows: Sequence[int]) -> float:
        w, y = [self.w[i] for i in rows], [self.y[i] for i in rows]
        said = [answers[i] for i in rows]
        total = math.fsum(w)
        if name == "accuracy":
            wrong = (v for v, a, b in zip(w, y, said, strict=True) if _differ(a, b))
            return 1 - math.fsum(wrong) / total
        if name == "f1_weighted":
            actual: Counter[Any] = Counter()
            predicted: Counter[Any] = Counter()
            hits: Counter[Any] = Counter()
            for weight, value, answer in zip(w, y, said, strict=True):
                actual[_key(value)] += weight  # type: ignore[assignment]
                predicted[_key(answer)] += weight  # type: ignore[assignment]
                if not _differ(value, answer):
                    hits[_key(value)] += weight  # type: ignore[assignment]
            parts = (n * 2 * hits[k] / (n + predicted[k]) for k, n in actual.items() if n > 0)
            return math.fsum(parts) / total
        squared = math.fsum(v * (a - b) ** 2 for v, a, b in zip(w, y, said, strict=True))
        if name == "r2":
            mean = _mean(y, w)
            around = math.fsum(v * (a - mean) ** 2 for v, a in zip(w, y, strict=True))
            return 1 - squared / around if around > 0 else float(squared == 0)
        if name == "mean_squared_error":
            return squared / total
        if name == "root_mean_squared_error":
            return math.sqrt(squared / total)
        return math.fsum(v * abs(a - b) for v, a, b in zip(w, y, said, strict=True)) / total

    def given_rules(self) -> list[str]:
        given = self.data["given"]
        if given["rules"] is None:
            self.unknown.append("The rules that were given are not in it: not checked.")
            return []
        rules = given["rules"]
        self._same("the number of rules given", [given["n_rules"]], [len(rules["rules"])])
        answers = self._answers(rules, complete=False)
        if not answers:
            self.unknown.append("Several of the rules given predict together: not checked.")
            return []
        covered = [i for i, answer in enumerate(answers) if answer is not None]
        total = math.fsum(self.w)
        share = math.fsum(self.w[i] for i in covered) / total
        self._same("completeness by rows", [given["completeness_instances"]], [share])
        if not given["metrics"]:
            raise _WrongError("it says nothing of the rules given")
        for key, value in given["metrics"].items():
            name, policy = key.split(" ")
            if policy == "ignore" or share == 1:
                found = self._metric(name, answers, covered)
                scale = self.scales.get(name, 1.0)
                self._same(f"{key} of the rules given", [value], [found], scale)
            elif self.task == "classification":
                everything = range(len(answers))
                self._same(key, [value], [self._metric(name, answers, everything)])
            else:
                self.unknown.append(f"{key} of rules that hold not for all rows: not checked.")
        volume, told = _covered_volume(rules), given["completeness_volume"]
        if volume is None or 1e-9 < abs(volume - told) < _ESTIMATED:
            self.unknown.append("Completeness by volume of the rules given: not checked.")
        else:
            self._same("completeness by volume", [told], [volume])
        return ["The rules that were given have the size and the metrics that it says."]

    def found_rules(self, part: Any) -> str:
        kind, loss = part["kind"], part["loss"]
        if kind not in ("tree", "list") or loss not in _METRICS:
            raise _WrongError(f"it knows no {kind!r} with the loss {loss!r}")
        if (loss == "errors") is not (self.task == "classification"):
            raise _WrongError(f"the loss {loss!r} is not one of {self.task}")
        total = math.fsum(self.w)
        self._same("the total weight", [part["total_weight"]], [total], total)
        n_sizes = len(part["upper"])
        if not n_sizes or any(
            len(part[name]) != n_sizes for name in ("lower", "status", "measured", "rules")
        ):
            raise _WrongError("its sizes do not agree")
        tests = sorted(set(self._tests(part["space"]["cuts"]))) if kind == "tree" else []
        for i in range(n_sizes):
            low, high = part["lower"][i], part["upper"][i]
            if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high):
                raise _WrongError(f"the bounds {low} and {high} cannot both hold")
            if i and (low > part["lower"][i - 1] or high > part["upper"][i - 1]):
                raise _WrongError("a bound grows with the number of rules")
            known = {"optimal", "target", "time_limit", "node_limit", "memory_limit", "interrupted"}
            if part["status"][i] not in known or (part["status"][i] == "optimal" and low < high):
                raise _WrongError(f"the bounds {low} and {high} are not {part['status'][i]!r}")
            self._found(part, i, tests)
        for told in part.get("f1_bounds", ()):
            if kind != "tree" or told["max_leaves"] not in range(1, n_sizes + 1):
                raise _WrongError("it bounds the F1 of rules that it does not speak of")
            self._found_by_f1(part, told, tests)
        return f"{kind}: the rules found have the losses that it says."

    def _found(self, part: Any, i: int, tests: Sequence[int]) -> None:
        rules, loss = part["rules"][i], part["loss"]
        if rules is None:
            raise _WrongError(f"rules of size {i + 1} are not in it")
        if not 1 <= len(rules["rules"]) <= i + 1:
            raise _WrongError(f"there are {len(rules['rules'])} rules where {i + 1} are allowed")
        if (part["kind"] == "list") is not bool(rules["ordered"]):
            raise _WrongError(f"the rules found are no {part['kind']}")
        self._in_space(part, rules)
        answers = self._answers(rules, complete=True)
        if not answers:
            raise _WrongError("several leaves of a tree hold for the same row")
        firsts = self._firsts(rules)
        if part["kind"] == "tree":
            self._check_tree(firsts, tests)
        found = self._loss(loss, answers)
        self._same(f"the loss of {i + 1} rules", [part["upper"][i]], [found], self.scales[loss])
        weights = [0.0] * len(rules["rules"])
        for first, weight in zip(firsts, self.w, strict=True):
            weights[first] += weight
        for rule, weight in zip(rules["rules"], weights, strict=True):
            seen = rule.get("statistics") or {}
            if "n_rows" in seen:
                self._same("the rows of a rule", [seen["n_rows"]], [weight], self.scales["errors"])
        said = part["measured"][i]
        if set(said) != {"n_rules", *_METRICS[loss]}:
            raise _WrongError("it does not say what the rules found are worth")
        self._same("the number of rules found", [said["n_rules"]], [len(rules["rules"])])
        everything = range(len(answers))
        for name in _METRICS[loss]:
            found = self._metric(name, answers, everything)
            self._same(name, [said[name]], [found], self.scales.get(name, 1.0))

    def _found_by_f1(self, part: Any, told: Any, tests: Sequence[int]) -> None:
        """The tree that has the best weighted F1 found."""
        rules, size = told["rules"], told["max_leaves"]
        if rules is None:
            self._same("the F1 of no rules", [told["incumbent"]], [0])
            return
        if not 1 <= len(rules["rules"]) <= size or rules["ordered"]:
            raise _WrongError(f"the rules found for F1 are no tree of at most {size} leaves")
        self._in_space(part, rules)
        answers = self._answers(rules, complete=True)
        if not answers:
            raise _WrongError("several leaves of a tree hold for the same row")
        self._check_tree(self._firsts(rules), tests)
        value = self._metric("f1_weighted", answers, range(len(answers)))
        self._same("the F1 found", [told["incumbent"]], [value])

    def _in_space(self, part: Any, rules: Any) -> None:
        thresholds = part["space"]["cuts"]["thresholds"]
        most = part["space"].get("max_conditions", math.inf)
        for rule in rules["rules"]:
            n_tests = 0
            for condition in rule["if"]:
                if condition["type"] == "interval":
                    j = self.names.index(rules["feature_names"][condition["feature"]])
                    for bound in ("lower", "upper"):
                        if bound in condition:
                            n_tests += 1
                            if condition[bound] not in thresholds[str(j)]:
                                raise _WrongError(f"{condition[bound]} is no cut of the space")
                elif condition["type"] == "one_of":
                    # Several values are as many comparisons, of which each says: not this one.
                    n_tests += len(condition["values"])
                    if not condition["negated"] and len(condition["values"]) > 1:
                        raise _WrongError("the space compares categories with one value each")
                elif condition["type"] == "missing":
                    n_tests += 1
                else:
                    raise _WrongError(f"the space has no condition of type {condition['type']!r}")
            if n_tests > most:
                raise _WrongError(f"a rule has {n_tests} conditions")

    # --- bounds ---

    def _tests(self, cuts: Any) -> Iterator[int]:
        """The rows where each test holds, as bits."""

        def bits(holds: Callable[[Any], bool], j: int) -> int:
            return sum(1 << i for i, row in enumerate(self.rows) if holds(row[j]))

        for j in range(len(self.names)):
            lacking = bits(lambda value: value is None, j)
            gaps = (0, lacking) if lacking else (0,)
            for cut in cuts["thresholds"].get(str(j), ()):
                below = bits(partial(_at_most, cut), j)
                yield from (below | gap for gap in gaps)
            for known in cuts["categories"].get(str(j), ()):
                equal = bits(partial(_equal, known), j)
                yield from (equal | gap for gap in gaps)
            if lacking:
                yield lacking

    def _cuts_are_those_told(self, cuts: Any) -> None:
        """Whether these are the cuts of which the certificate's sentence speaks, and no others."""
        if self.data["settings"].get("stated_cuts"):  # the sentence says how many they are
            return
        most = self.data["settings"]["cuts_per_feature"]
        if most is not None and (isinstance(most, bool) or not most >= 1 or int(most) != most):
            raise _WrongError(f"there cannot be {most} cuts per feature")
        given = self.data["given"]["rules"] or {"rules": [], "feature_names": []}
        own: dict[str, list[tuple[float, bool]]] = {}
        for condition in (c for rule in given["rules"] for c in rule["if"]):
            if condition["type"] == "interval":
                bounds = own.setdefault(given["feature_names"][condition["feature"]], [])
                if "upper" in condition:
                    bounds.append((condition["upper"], condition["upper_closed"]))
                if "lower" in condition:
                    bounds.append((condition["lower"], not condition["lower_closed"]))
        for j, name in enumerate(self.names):
            known = [row[j] for row in self.rows if row[j] is not None]
            values = cuts["categories"].get(str(j))
            if values is not None:
                numbers = all(type(value) in (int, float) for value in known)
                if known and numbers and name not in self.categories:
                    raise _WrongError(f"the numbers of {name} are no categories")
                for value in known:
                    if not any(_equal(one, value) for one in values):
                        raise _WrongError(f"no cut parts {value} of {name} from other values")
                continue
            if any(isinstance(value, str) for value in known):
                raise _WrongError(f"no cut parts the values of {name}")
            thresholds = cuts["thresholds"].get(str(j), ())
            bounds = own.get(name, [])
            if most is not None and given["rules"] and len(thresholds) > most + len(bounds):
                raise _WrongError(f"there are {len(thresholds)} cuts of {name}")
            steps = sorted({float(value) for value in known})
            parted = {bisect_right(steps, cut) for cut in thresholds}
            wanted = {
                bisect_right(steps, b) if left else bisect_left(steps, b) for b, left in bounds
            }
            for place in (*_places(sorted(map(float, known)), steps, most), *sorted(wanted)):
                if 0 < place < len(steps) and place not in parted:
                    raise _WrongError(
                        f"no cut parts {steps[place - 1]} and {steps[place]} of {name}"
                    )

    def bounds(self, part: Any, n_parts: int) -> tuple[list[str], bool]:
        """Look for rules better than the bounds, in an equal share of the time that is left."""
        now = time.monotonic()
        end = now + (self.end - now) / n_parts
        last = end
        if part.get("f1_bounds"):  # which has the other half
            end = now + (end - now) / 2
        cuts, kind, loss = part["space"]["cuts"], part["kind"], part["loss"]
        self._cuts_are_those_told(cuts)
        everything = (1 << len(self.rows)) - 1
        tests = {test for test in self._tests(cuts) if test not in (0, everything)}
        splits = sorted({min(test, everything ^ test) for test in tests})
        cost = self._cost(loss)
        cells = [everything]
        for test in tests:
            cells = [cell for c in cells for cell in (c & test, c & ~test) if cell]
        floor = math.fsum(cost(cell) for cell in cells)
        tolerance = _TOLERANCE * max(1e-300, cost(everything))
        if kind == "tree":
            steps, best = _best_tree(splits, cost)
        else:
            steps, best = _best_list(splits, everything, part["space"]["max_conditions"], cost)
        tried: list[int] = []
        searched: list[int] = []
        proven: dict[int, float] = {}  # what no rules of a size are better than
        search: _Least | _LeastList | None = None
        for size, low in enumerate(part["lower"], start=1):
            proven[size] = floor
            if low <= floor + tolerance and size > 1:
                continue
            if steps(size) <= _MOST_TRIED:
                tried.append(size)
                proven[size] = best(everything, size)
            else:
                if search is None:
                    search = self._search(part, splits)
                if search is None:
                    continue
                # What is left of the time is for this size and for those after it.
                now, n_left = time.monotonic(), len(part["lower"]) - size + 1
                search.deadline = now + (end - now) / n_left
                try:
                    proven[size] = search.least(size, low - tolerance)
                except _TooLongError:
                    continue
                searched.append(size)
            if low > proven[size] + tolerance:
                raise _WrongError(
                    f"{kind}: {size} rules have a loss of {proven[size]}, less than the bound {low}"
                )
        open_ = [
            size
            for size, low in enumerate(part["lower"], start=1)
            if low > max(value for s, value in proven.items() if s >= size) + tolerance
        ]
        told = f"{kind}: no rules are better than its bounds for "
        sentences = [f"{told}{_listed(tried)} rules; all were tried."] if tried else []
        if searched:
            sentences.append(f"{told}{_listed(searched)} rules, by a search of the checker's own.")
        if open_:
            sentences.append(
                f"{kind}: the bounds for {_listed(open_)} rules are not checked; there are too "
                f"many rules for the {'time' if search else 'memory'} limit."
            )
        for told in part.get("f1_bounds", ()):
            size, most = told["max_leaves"], told["upper_bound"]
            if most >= 1:
                continue
            try:
                self._f1_bound(told, self._held(sorted(tests)), last)
            except _TooLongError:
                open_.append(size)
                sentences.append(f"{kind}: the bound of the F1 of {size} rules is not checked.")
            else:
                sentences.append(f"{kind}: no {size} rules have a weighted F1 of more than {most}.")
        return sentences, not open_

    def _f1_bound(self, told: Any, held: Any, end: float) -> None:
        """Check, part by part, that no trees have a greater weighted F1."""
        size, most, proof = told["max_leaves"], told["upper_bound"], told["proof"]
        labels = {value: code for code, value in enumerate(_values(proof["classes"]))}
        y, w = np.array([labels[value] for value in self.y]), np.array(self.w)
        n = np.bincount(y, w, len(labels))
        total, enough = float(n.sum()), proof["target"]
        whole = bool((w == np.floor(w)).all())
        if told["incumbent"] > most + _ROUNDING:
            raise _WrongError(f"a tree has an F1 of {told['found']}, more than the bound {most}")
        if enough > most:
            raise _WrongError(f"it asks for an F1 of {enough}, but says {most}")
        if (n == 0).any():
            raise _TooLongError

        def check(part: Any, low: Any, high: Any) -> None:
            for _ in range(3):  # all predictions are as many as rows
                low = np.maximum(low, total - (high.sum() - high))
                high = np.minimum(high, total - (low.sum() - low))
            if (low > high + 1e-9 * total).any():
                return
            if "branches" in part:
                below, above = part["between"]
                first, second = part["branches"]
                if not above <= below + float(whole and below == math.floor(below)):
                    raise _WrongError(f"no part has between {below} and {above} predictions")
                k = np.arange(len(n)) == part["class"]
                check(first, low, np.where(k, np.minimum(high, below), high))
                check(second, np.where(k, np.maximum(low, above), low), high)
                return
            search = _LeastEarned(held, y, w, low, high, part)
            search.deadline = end
            limit = total + search.free - most * total / 2 - _TOLERANCE * total
            least = search.least(size, limit)
            if least < limit:  # no tree is known that is better, but nothing is proven
                raise _TooLongError

        # Where F1 is more than enough in all, each class has at least this.
        f1 = np.maximum(1 - total * (1 - enough) / n, 0.0)
        high = np.where(f1 > 0, n * (2 / np.where(f1 > 0, f1, 1) - 1), total)
        check(proof["root"], f1 * n / (2 - f1), np.minimum(high, total))

    def _held(self, sets: Sequence[int]) -> Any:
        """Sets of rows as a table."""
        n_bytes = -(-len(self.rows) // 8)
        raw = b"".join(one.to_bytes(n_bytes, "little") for one in sets)
        bits = np.frombuffer(raw, dtype=np.uint8).reshape(len(sets), n_bytes)
        return np.unpackbits(bits, axis=1, bitorder="little", count=len(self.rows)).T == 1

    def _search(self, part: Any, tests: Sequence[int]) -> _Least | _LeastList | None:
        """The checker's own search, with the sets of rows as a table; None if it is too large."""
        loss, n, m = part["loss"], len(self.rows), len(tests)
        most = 1 if part["kind"] == "tree" else part["space"]["max_conditions"]
        if most not in (1, 2, 3):
            raise _WrongError(f"lists with {most} conditions in a rule are not known")
        if 24 * n * m + 100 * 2 * m**most > self.memory:
            return None
        held = self._held(tests)
        target = np.array(self.y) if loss != "errors" else np.zeros(n, dtype=np.intp)
        if loss == "errors":
            labels = {value: code for code, value in enumerate(sorted(set(self.y), key=repr))}
            target = np.array([labels[value] for value in self.y])
        if part["kind"] == "tree":
            return _LeastTree(held, target, np.array(self.w), loss)
        return _LeastList(held, target, np.array(self.w), loss, most, self.memory)

    def _cost(self, loss: str) -> Callable[[int], float]:
        """The least loss of one conclusion for some rows."""
        y, w = self.y, self.w

        def members(rows: int) -> list[int]:
            found = []
            while rows:
                low = rows & -rows
                found.append(low.bit_length() - 1)
                rows ^= low
            return found

        if loss == "errors":
            groups: dict[float, dict[Any, int]] = {}
            for i, (value, weight) in enumerate(zip(y, w, strict=True)):
                of_weight = groups.setdefault(weight, {})
                of_weight[value] = of_weight.get(value, 0) | 1 << i
            labels = sorted(set(y), key=repr)
            sets = [
                [(weight, of.get(label, 0)) for weight, of in groups.items()] for label in labels
            ]

            def errors(rows: int) -> float:
                sums = [
                    math.fsum(weight * (rows & some).bit_count() for weight, some in parts)
                    for parts in sets
                ]
                return math.fsum(sums) - max(sums)

            return errors

        def off(rows: int) -> float:
            index = members(rows)
            total = math.fsum(w[i] for i in index)
            if total <= 0:
                return 0.0
            if loss == "squared_error":
                mean = _mean([y[i] for i in index], [w[i] for i in index])
                return math.fsum(w[i] * (y[i] - mean) ** 2 for i in index)
            index.sort(key=lambda i: y[i])
            below, middle = 0.0, y[index[0]]
            for i in index:
                below += w[i]
                if below >= total / 2:
                    middle = y[i]
                    break
            return math.fsum(w[i] * abs(y[i] - middle) for i in index)

        return off


def _places(known: Sequence[float], steps: Sequence[float], most: float | None) -> Iterator[int]:
    """Behind how many steps numbers are cut: behind all, or those nearest to the quantiles."""
    if most is None or len(steps) - 1 <= most:
        yield from range(1, len(steps))
        return
    below = [bisect_left(known, step) for step in steps]
    for k in range(1, int(most) + 1):
        quantile = k * (len(known) / (most + 1))
        yield min(range(1, len(steps)), key=lambda place: abs(below[place] - quantile))


# --- all rules there are -------------------------------------------------------------------------


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def _best_tree(tests: Sequence[int], cost: Callable[[int], float]) -> tuple[Any, Any]:
    """How many sets of rows trees of a size have, and the least loss by trying all trees."""

    @cache
    def steps(size: int) -> float:
        if size == 1:
            return 1
        return sum(len(tests) * (steps(left) + steps(size - left)) for left in range(1, size))

    costs = cache(cost)

    @cache
    def best(rows: int, size: int) -> float:
        least = costs(rows)
        if size == 1 or least == 0:
            return least
        for test in tests:
            yes, no = rows & test, rows & ~test
            if yes and no:
                for left in range(1, size):
                    least = min(least, best(yes, left) + best(no, size - left))
        return least

    return steps, best


def _best_list(
    tests: Sequence[int], everything: int, most: int, cost: Callable[[int], float]
) -> tuple[Any, Any]:
    """The same of lists."""
    sides = [side for test in tests for side in (test, everything ^ test)]
    premises: set[int] = set()
    n_premises = sum(math.comb(len(sides), n) for n in range(1, most + 1))
    if n_premises <= _MOST_TRIED:
        for n in range(1, most + 1):
            premises |= {reduce(and_, chosen) for chosen in combinations(sides, n)}
        n_premises = len(premises := premises - {0})

    def steps(size: int) -> float:
        return float((2 * n_premises) ** (size - 1))

    costs = cache(cost)

    @cache
    def best(rows: int, size: int) -> float:
        least = costs(rows)
        if size == 1 or least == 0:
            return least
        for first in {rows & premise for premise in premises} - {0, rows}:
            head = costs(first)
            if head < least:
                least = min(least, head + best(rows & ~first, size - 1))
        return least

    return steps, best


# --- a search of its own -------------------------------------------------------------------------


class _Least:
    """The least loss of trees or lists by a search of its own, as far as a bound needs it.

    Rows that no test parts are one point. A part of the rows cannot be much better than the whole:
    with the same rules the rest costs no more than `reach`. So one part that is known well bounds
    all parts that share most of its rows, and few have to be looked at.

    Parameters
    ----------
    held : ndarray of bool, shape (n_rows, n_tests)
        Where each test holds: the splits of trees, the premises of lists.
    y : ndarray
        Codes of classes, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        What is summed.
    """

    def __init__(self, held: Any, y: Any, w: Any, loss: str) -> None:
        self.loss = loss
        #: When to give up, by the clock of :func:`time.monotonic`.
        self.deadline = math.inf
        _, point = np.unique(np.packbits(held, axis=1), axis=0, return_inverse=True)
        point = point.ravel()
        n = int(point.max()) + 1
        first = np.unique(point, return_index=True)[1]
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.reach = stats.sum(axis=1)
        elif loss == "squared_error":
            y = y - _mean(y, w)
            each = np.column_stack([w, w * y, w * y * y])
            stats = np.zeros((n, 3))
            np.add.at(stats, point, each)
            far = w * np.maximum((y - y.min()) ** 2, (y.max() - y) ** 2)
            self.reach = np.bincount(point, far, n)
        else:  # medians need the rows themselves, by increasing number
            first = np.argsort(y, kind="stable")
            self.y, stats = y[first], w[first, None]
            self.reach = stats[:, 0] * np.maximum(self.y - y.min(), y.max() - self.y)
        self.stats = stats
        exact = loss == "errors" and bool((w == np.floor(w)).all()) and w.sum() < 2**24
        self.held = held[first].astype(np.float32 if exact else np.float64)
        self.equal = np.zeros(len(stats)) if loss == "absolute_error" else self._cost(stats)
        self.known: dict[tuple[bytes, int], tuple[float, bool]] = {}

    def _cost(self, sums: Any) -> Any:
        """The loss of one conclusion, by the sums of the points' statistics."""
        if self.loss == "errors":
            return sums.sum(axis=-1) - sums.max(axis=-1)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * max(weight.max(), 1e-300), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] ** 2 / weight, 0.0)

    def _floor(self, sums: Any, size: int) -> Any:
        """What rules that name no more classes than they are many cannot be better than."""
        if self.loss != "errors" or size >= sums.shape[-1]:
            return np.zeros(sums.shape[:-1])
        return np.sort(sums, axis=-1)[..., : sums.shape[-1] - size].sum(axis=-1)

    def _sides(self, rows: Any) -> Any:
        """The tests that part rows, and the loss of both sides with one conclusion each."""
        held = self.held[rows]
        count = held.sum(axis=0)
        used = np.flatnonzero((count > 0) & (count < len(rows)))
        held = held[:, used]
        if self.loss == "absolute_error":
            y, w = self.y[rows, None], self.stats[rows]
            both = []
            for side in (held, 1 - held):
                weight = np.cumsum(side * w, axis=0)
                at = (weight < weight[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
                both.append(np.abs((y - y[at, 0]) * side * w).sum(axis=0))
            return used, held, *both
        stats = self.stats[rows]
        sums = held.T @ stats.astype(held.dtype)
        return used, held, self._cost(sums), self._cost(stats.sum(axis=0) - sums)

    def _one(self, rows: Any) -> float:
        """The loss of one conclusion for all the rows."""
        if self.loss != "absolute_error":
            return float(self._cost(self.stats[rows].sum(axis=0)))
        y, w = self.y[rows], self.stats[rows, 0]
        weight = np.cumsum(w)
        return float((w * np.abs(y - y[np.searchsorted(weight, weight[-1] / 2)])).sum())

    def least(self, size: int, limit: float) -> float:
        """The least loss of all rows, or a bound of it that is not less than the limit."""
        return self._part(np.arange(len(self.stats)), size, limit)[0]

    def _part(self, rows: Any, size: int, limit: float) -> tuple[float, bool]:
        """The same of some rows, and whether it is reached.

        It is reached wherever it is less than the limit.
        """
        key = rows.tobytes(), size
        low, reached = self.known.get(key, (-math.inf, False))
        if reached or low >= limit:
            return low, reached
        if time.monotonic() > self.deadline:
            raise _TooLongError
        one, floor = self._one(rows), float(self.equal[rows].sum())
        floor = max(floor, float(self._floor(self.stats[rows].sum(axis=0), size)))
        if size == 1 or one <= floor:
            found = one, True
        elif floor >= limit:
            found = floor, False
        else:
            found = self._search(rows, size, limit, one)
        self.known[key] = found
        return found

    def _search(self, rows: Any, size: int, limit: float, one: float) -> tuple[float, bool]:
        raise NotImplementedError

    def _lower(self, rows: Any, held: Any, part: Any, bound: float) -> Any:
        """Bounds of the rows where each test holds, by that of some of these rows."""
        reach = np.where(part, self.reach[rows], 0.0)
        return bound - (reach.sum() - reach @ held)


class _LeastTree(_Least):
    """Trees: a test at the root, both sides with fewer leaves."""

    def _search(self, rows: Any, size: int, limit: float, one: float) -> tuple[float, bool]:
        used, held, yes, no = self._sides(rows)
        if not len(used):
            return one, True
        value = min(one, float((yes + no).min()))
        if size == 2:
            return value, True
        equal = self.equal[rows] @ held
        stats = self.stats[rows]
        sums = held.T @ stats.astype(held.dtype)
        # By side and leaves, from 0 on: bounds of each test, and where they are reached.
        lower = []
        for side, floor, counts in (
            (yes, equal, sums),
            (no, self.equal[rows].sum() - equal, stats.sum(axis=0) - sums),
        ):
            floors = [np.maximum(floor, self._floor(counts, leaves)) for leaves in range(2, size)]
            lower.append([side, side, *(np.minimum(f, side) for f in floors)])
        exact = [[np.full(len(used), leaves == 1) for leaves in range(size)] for _ in (0, 1)]
        if self.loss != "absolute_error" and len(rows) * float(len(used)) ** 2 < _PAIRS:
            for side, two in enumerate(self._two(rows, held)):
                lower[side][2], exact[side][2] = two, np.ones(len(used), dtype=bool)
        while True:
            sums = np.array([lower[0][k] + lower[1][size - k] for k in range(1, size)])
            at = int(sums.argmin())
            left, test = at // len(used) + 1, at % len(used)
            total = float(sums.flat[at])
            most = min(value, limit)
            if total >= most:
                # Nothing that is less than both is left.
                return (value, True) if value <= limit else (min(total, value), False)
            leaves = left, size - left
            open_ = [s for s in (0, 1) if not exact[s][leaves[s]][test]]
            if not open_:
                value = total
                continue
            side = max(open_, key=lambda s: leaves[s])
            part = held[:, test] == (1 - side)
            spare = most - float(lower[1 - side][leaves[1 - side]][test])
            bound, reached = self._part(rows[part], leaves[side], spare)
            for s, rows_held in ((0, held), (1, 1 - held)):
                for k in range(2, leaves[side] + 1):
                    better = np.minimum(self._lower(rows, rows_held, part, bound), lower[s][1])
                    np.maximum(lower[s][k], better, out=lower[s][k], where=~exact[s][k])
            lower[side][leaves[side]][test] = max(bound, lower[side][leaves[side]][test])
            exact[side][leaves[side]][test] = reached

    def _two(self, rows: Any, held: Any) -> list[Any]:
        """The least loss of each side with two leaves: all pairs of tests at once."""
        stats = self.stats[rows].astype(held.dtype)
        total = stats.sum(axis=0)
        both = np.stack([held.T @ (held * stats[:, [k]]) for k in range(stats.shape[1])], axis=-1)
        one = held.T @ stats
        left = self._cost(both) + self._cost(one[:, None] - both)
        neither = one[None] - both
        right = self._cost(neither) + self._cost(total - one[:, None] - neither)
        return [left.min(axis=1), right.min(axis=1)]


class _LeastEarned(_LeastTree):
    """Trees: the weight of the rows less what leaves earn of the weighted F1.

    With n rows of a class of which between `low` and `high` are predicted, a leaf of s rows, c of
    them of the class, earns n c / (n + max(s, low)), or where `linear` n c / (n + high) less
    n min(n, high) / ((n + low) (n + high)) for each row, for which all rows up to `high` are free.
    A price is what rows beyond `high` cost, or, if negative, what rows short of `low` do.
    """

    def __init__(self, held: Any, y: Any, w: Any, low: Any, high: Any, part: Any) -> None:
        self.n = n = np.bincount(y, w, len(low))
        self.low, self.high = low, high
        self.linear = np.isin(np.arange(len(n)), part["linear"])
        prices = np.array(part["multipliers"], dtype=float)
        most = np.minimum(np.minimum(n, high) / (n + low), 0.5)  # of hits / (n + predictions)
        slope = n * most / (n + high) * self.linear
        row = slope + prices
        self.row = row - row.min()  # each row is predicted once
        beyond = np.maximum(prices, 0) @ high + np.minimum(prices, 0) @ low
        self.free = float(slope @ high + beyond - row.min() * n.sum())
        super().__init__(held, y, w, "errors")
        self.reach = self.reach * (1.25 + float(self.row.max()))

    def _hits(self, sums: Any, weight: Any) -> Any:
        least = np.maximum(weight, self.low)
        return self.n * sums / (self.n + np.where(self.linear, self.high, least))

    def _cost(self, sums: Any) -> Any:
        sums = np.asarray(sums, dtype=float)
        weight = sums.sum(axis=-1)
        earned = self._hits(sums, weight[..., None]) - self.row * weight[..., None]
        return weight - earned.max(axis=-1)

    def _floor(self, sums: Any, size: int) -> Any:
        """Each class named has its own leaf at best, and one of these all other rows as well."""
        sums = np.asarray(sums, dtype=float)
        alone = np.maximum(self._hits(sums, sums) - self.row * sums, 0)
        alone = np.sort(alone, axis=-1)[..., ::-1]
        largest = np.sort(sums, axis=-1)[..., ::-1][..., :size].sum(axis=-1)
        short = np.where(self.linear, 0, np.maximum(self.low - sums, 0)).sum(axis=-1)
        total = sums.sum(axis=-1)
        others = np.maximum(total - short - largest, 0)[..., None]
        last = self._hits(sums, np.maximum(sums, self.low) + others) - self.row * (sums + others)
        last = np.maximum(last.max(axis=-1), 0)
        earned = np.minimum(
            alone[..., :size].sum(axis=-1), alone[..., : size - 1].sum(axis=-1) + last
        )
        return np.maximum(total - earned, 0)


class _LeastList:
    """The least loss of lists, above what rows that no test parts cost in any case.

    A list is a premise, then a list of one rule less for the rows that it leaves. What the rows of
    all premises, conjunctions of sides of tests, sum up to is a product of tables. Rows that are
    added to others cost no more than their `cap`; so what is known of some rows bounds what is to
    be expected of others.

    Parameters
    ----------
    held : ndarray of bool, shape (n_rows, n_tests)
        Where each test holds.
    y : ndarray
        Codes of classes, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        What is summed.
    most : int
        Most sides of tests in a premise.
    memory : float
        Bytes that may be taken.
    """

    def __init__(
        self, held: Any, y: Any, w: Any, loss: str, most: int, memory: float = math.inf
    ) -> None:
        self.loss, self.most, self.memory = loss, most, memory
        #: When to give up, by the clock of :func:`time.monotonic`.
        self.deadline = math.inf
        exact = loss == "errors" and bool((w == np.floor(w)).all()) and w.sum() < 2**24
        first, point = np.unique(
            np.packbits(held, axis=1), axis=0, return_index=True, return_inverse=True
        )[1:]
        n, point = len(first), point.ravel()
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.base = float((stats.sum(axis=1) - stats.max(axis=1)).sum())
            stats -= stats.min(axis=1, keepdims=True)
            cap = stats.max(axis=1)
        elif loss == "squared_error":
            y = y - _mean(y, w)
            weight, total = np.bincount(point, w, n), np.bincount(point, w * y, n)
            mean = total / np.where(weight > 0, weight, 1)
            stats = np.column_stack([weight, total, total * mean])
            self.base = float((w * y * y).sum() - stats[:, 2].sum())
            cap = weight * np.maximum((mean - mean.min()) ** 2, (mean.max() - mean) ** 2)
        else:  # each number that a rule could conclude has its costs
            first, self.base = np.arange(len(y)), 0.0
            stats = w[:, None] * np.abs(y[:, None] - np.unique(y))
            cap = stats.max(axis=1)
        dtype = np.float32 if exact else np.float64
        self.held, self.stats, self.cap = (
            values.astype(dtype) for values in (held[first], stats, cap)
        )
        self.pure = loss == "errors" and bool(((stats > 0).sum(axis=1) <= 1).all())
        self.useful: Any = None
        self.useful = self._useful()
        #: Of all rows, by the number of rules.
        self.known: dict[int, tuple[float, bool, Any, Any]] = {}

    def least(self, size: int, limit: float) -> float:
        """The least loss of all rows, or a bound of it that is not less than the limit."""
        return self.base + self._whole(size, limit - self.base)[0]

    def _whole(self, size: int, limit: float) -> tuple[float, bool, Any, Any]:
        if size not in self.known or not (self.known[size][1] or self.known[size][0] >= limit):
            self.known[size] = self._part(np.arange(len(self.cap)), size, limit)
        return self.known[size]

    # --- premises ---

    def _sums(self, rows: Any, values: Any) -> Any:
        """What the values of the rows that each premise holds for sum up to."""
        held = self.held[rows]
        parts = [self._pairs(held, values)]
        if self.most == 3:
            for t in range(held.shape[1]):
                yes = values * held[:, t]
                parts += [self._pairs(held[:, t + 1 :], side) for side in (yes, values - yes)]
        sums = np.concatenate([part.ravel() for part in parts])
        return sums if self.useful is None else sums[self.useful]

    def _pairs(self, held: Any, values: Any) -> Any:
        """Sums of both of two tests, of the first without the second, and of neither."""
        one, total = values @ held, values.sum()
        if self.most == 1:
            return np.stack([one, total - one])
        both = held.T @ (held * values[:, None])
        without = one[:, None] - both
        return np.stack([both, without, total - one - without])

    def _useful(self) -> Any:
        """The premises that hold for some rows, and for fewer than their parts."""
        n, m = self.held.shape
        counts = self._sums(np.arange(n), np.ones(n, dtype=self.held.dtype))
        if self.most == 1:
            return np.flatnonzero((counts > 0) & (counts < n))

        def fewer(counts: Any) -> Any:
            yes, no = counts[0].diagonal(), counts[2].diagonal()
            parts = np.minimum(
                np.stack([yes, yes, no])[:, :, None], np.stack([yes, no, no])[:, None, :]
            )
            result = (counts > 0) & (counts < parts)
            result[[0, 2]] &= np.tri(counts.shape[1], k=-1, dtype=bool).T
            return result

        pairs = counts[: 3 * m * m].reshape(3, m, m)
        used, single = fewer(pairs), np.arange(m)
        for block in (0, 2):
            sizes = pairs[block].diagonal()
            used[block, single, single] = (sizes > 0) & (sizes < n)
        masks, at = [used.ravel()], 3 * m * m
        for t in range(m if self.most == 3 else 0):
            shape = 3, m - t - 1, m - t - 1
            for _ in (0, 1):
                three = counts[at : at + math.prod(shape)].reshape(shape)
                masks.append((fewer(three) & (three < pairs[:, t + 1 :, t + 1 :])).ravel())
                at += three.size
        return np.flatnonzero(np.concatenate(masks))

    def _left(self, premise: int, rows: Any) -> Any:
        """The rows that a premise does not hold for."""
        at, m = int(self.useful[premise]), self.held.shape[1]
        held, first = self.held[rows] > 0, 0
        kept = np.ones(len(rows), dtype=bool)
        if self.most == 1:
            return rows[~held[:, at] if at < m else held[:, at - m]]
        if at >= 3 * m * m:
            at -= 3 * m * m
            while at >= 6 * (m - first - 1) ** 2:
                at -= 6 * (m - first - 1) ** 2
                first += 1
            side, at = divmod(at, 3 * (m - first - 1) ** 2)
            kept = held[:, first] if side == 0 else ~held[:, first]
            first += 1
        block, at = divmod(at, (m - first) ** 2)
        one, two = (held[:, first + t] for t in divmod(at, m - first))
        kept = kept & (one if block < 2 else ~one) & (two if block == 0 else ~two)
        return rows[~kept]

    # --- the search ---

    def _pieces(self, rows: Any) -> tuple[Any, Any, Any]:
        """The loss inside and outside of each premise, with one conclusion, and its cap."""
        sums, totals = [], []
        for k in range(self.stats.shape[1]):
            some = rows[self.stats[rows, k] != 0]
            sums.append(self._sums(some, self.stats[some, k]))
            totals.append(self.stats[some, k].sum())
        cap = sum(sums) if self.pure else self._sums(rows, self.cap[rows])
        sides = sums, [total - part for total, part in zip(totals, sums, strict=True)]
        caps = cap, self.cap[rows].sum() - cap
        inside, outside = (self._cost(*pair) for pair in zip(sides, caps, strict=True))
        return inside, outside, cap

    def _cost(self, sums: Any, cap: Any) -> Any:
        if self.loss == "errors":
            most = sums[0]
            for one in sums[1:]:
                most = np.maximum(most, one)
            return cap - most
        if self.loss == "absolute_error":
            return np.maximum(np.min(sums, axis=0), 0.0)
        weight = np.where(sums[0] > 1e-12 * self.stats[:, 0].sum(), sums[0], np.inf)
        return np.maximum(sums[2] - sums[1] ** 2 / weight, 0.0)

    def _part(
        self, rows: Any, size: int, limit: float, fewer: float | None = None, hint: Any = None
    ) -> tuple[float, bool, Any, Any]:
        """The least loss of some rows, or a bound that is not less than the limit.

        Also whether it is the least loss, the cap of each premise and, but for two rules, bounds of
        what each of them leaves. `fewer` and `hint` are such bounds, of one rule less for all the
        rows and of what each premise leaves.
        """
        if time.monotonic() > self.deadline:
            raise _TooLongError
        inside, outside, cap = self._pieces(rows)
        totals = [self.stats[rows].sum(axis=0)[k] for k in range(self.stats.shape[1])]
        value = float(self._cost(totals, self.cap[rows].sum()))
        value = min(value, float((inside + outside).min(initial=math.inf)))
        if size == 2 or value <= 0 or not len(cap):
            return value, True, cap, None
        before = None
        if size == 3:
            fewer = value
        elif fewer is None:
            fewer, reached, _, before = self._whole(size - 1, limit)
            value = min(value, fewer) if reached else value
        lower = np.maximum(fewer - cap, 0.0 if hint is None else np.maximum(hint, 0.0))
        everything = len(rows) == len(self.cap)
        n_kept = min(_MOST_SIMILAR, int(self.memory / (8 * size * cap.nbytes)))
        solved: list[int] = []
        caps: list[Any] = []
        rests: list[Any] = []
        while True:
            most = min(value, limit)
            sums = inside + lower
            if size == 3 and not everything:
                # All have to be looked at or bounded; those of many rows bound more of the others.
                at = int(np.where(sums < most, cap, -1.0).argmax())
            else:
                at = int(sums.argmin())
            if sums[at] >= most:
                reached = value <= limit
                return value if reached else min(float(sums.min()), value), reached, cap, lower
            hint = None
            if rests and size > 3:
                apart = [float(one[at]) for one in caps]
                near = int(np.argmin(apart))
                hint = rests[near] - apart[near]
                # Two premises leave the same, whichever is the first.
                hint[solved] = np.maximum(hint[solved], [rest[at] for rest in rests])
            bound, reached, shared, rest = self._part(
                self._left(at, rows),
                size - 1,
                _MORE * most - float(inside[at]),
                0.0 if before is None else float(before[at]),
                hint,
            )
            if reached:
                value = min(value, float(inside[at]) + bound)
            np.maximum(lower, bound - shared, out=lower)
            lower[at] = max(float(lower[at]), bound)
            if rest is not None and len(rests) < n_kept:
                solved.append(at)
                caps.append(shared)
                rests.append(rest)


# --- values, conditions, boxes -------------------------------------------------------------------


def _columns(X: Any) -> tuple[list[str], list[list[Any]]]:
    names = getattr(X, "columns", None)
    if names is not None:
        known = [str(name) for name in names]
        return known, [_values(X[name]) for name in names]
    rows = X.tolist() if hasattr(X, "tolist") else [list(row) for row in X]
    columns = [[_value(v) for v in column] for column in zip(*rows, strict=True)]
    return [f"x{j}" for j in range(len(columns))], columns


def _values(column: Any) -> list[Any]:
    return [_value(v) for v in (column.tolist() if hasattr(column, "tolist") else column)]


def _value(value: Any) -> Any:
    """A value as JSON has it: numbers are floats that can be, what is missing is None."""
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


def _equal(known: Any, value: Any) -> bool:
    return value is not None and not _differ(known, value)


def _key(value: Any) -> Any:
    return _value(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _mean(values: Any, weights: Any) -> float:
    """The mean; of equal numbers that number, from which the sum of many may differ by a bit."""
    known = [(float(v), float(w)) for v, w in zip(values, weights, strict=True) if w]
    if len({v for v, _ in known}) == 1:
        return known[0][0]
    return math.fsum(w * v for v, w in known) / math.fsum(w for _, w in known)


def _differ(one: Any, other: Any) -> bool:
    return type(_key(one)) is not type(_key(other)) or bool(_key(one) != _key(other))


def _holds(condition: Any, row: Sequence[Any]) -> bool:
    kind = condition["type"]
    if kind == "at_least":
        return sum(_holds(c, row) for c in condition["conditions"]) >= condition["m"]
    if kind == "linear":
        parts = [row[j] for j, _ in condition["terms"]]
        if any(value is None for value in parts):
            return False
        return _within(condition, math.fsum(c * row[j] for j, c in condition["terms"]))
    value = row[condition["feature"]]
    if kind == "missing":
        return (value is None) != condition["negated"]
    if value is None:
        return bool(condition.get("missing", False))
    if kind == "interval":
        return _within(condition, value)
    if kind == "one_of":
        return any(not _differ(value, v) for v in condition["values"]) != condition["negated"]
    raise _WrongError(f"there is no condition of type {kind!r}")


def _within(condition: Any, value: float) -> bool:
    lower, upper = condition.get("lower"), condition.get("upper")
    value = float(value)  # as rules compare, which round whole numbers beyond 2**53
    above = lower is None or value > lower or (condition["lower_closed"] and value == lower)
    below = upper is None or value < upper or (condition["upper_closed"] and value == upper)
    return above and below


def _conclusion(then: Any, row: Sequence[Any]) -> Any:
    if isinstance(then, dict):
        return then["intercept"] + math.fsum(c * row[j] for j, c in then["terms"])
    return then


def _covered_volume(rules: Any) -> float | None:
    """The share of the domain where some rule holds; None if that cannot be summed up here.

    Feature by feature the domain is cut into parts that conditions tell apart; missing values are
    a part of their own, and each value of a category is.
    """
    domain = rules.get("domain")
    of_feature: dict[int, list[Any]] = {}
    for i, rule in enumerate(rules["rules"]):
        for condition in rule["if"]:
            if condition["type"] not in ("interval", "one_of", "missing"):
                return None
            of_feature.setdefault(condition["feature"], []).append((i, condition))
    features = sorted(of_feature)
    everything = frozenset(range(len(rules["rules"])))
    if not features or not everything:
        return float(bool(everything))
    parts, known = [], []
    for j in features:
        of_one, is_known = _parts_of(domain or {}, j, [c for _, c in of_feature[j]])
        parts.append(of_one)
        known.append(is_known)
    last = dict.fromkeys(everything, -1)  # where a rule has its last condition
    last |= {i: k for k, j in enumerate(features) for i, _ in of_feature[j]}
    n_parts = 0

    @cache
    def share(k: int, alive: frozenset[int]) -> float:
        nonlocal n_parts
        if any(last[i] < k for i in alive):
            return 1.0
        weights: dict[frozenset[int], float] = {}
        for value, weight in parts[k]:
            n_parts += 1
            if n_parts > _MOST_PARTS:
                raise _TooLongError
            lost = {i for i, c in of_feature[features[k]] if i in alive and not _includes(c, value)}
            rest = alive - lost
            weights[rest] = weights.get(rest, 0.0) + weight
        return math.fsum(weight * share(k + 1, rest) for rest, weight in weights.items() if rest)

    try:
        found = share(0, everything)
    except _TooLongError:
        return None
    # Whatever the parts measure, all of them are everything.
    return found if all(known) else 1.0 if found > 1 - 1e-12 else None


def _includes(condition: Any, value: Any) -> bool:
    """Whether a condition holds for a part of the domain; a constant counts with both faces."""
    if condition["type"] == "interval" and isinstance(value, tuple):
        condition, value = {**condition, "lower_closed": True, "upper_closed": True}, value[0]
    return _holds({**condition, "feature": 0}, [value])


def _parts_of(
    domain: Any, j: int, conditions: Sequence[Any]
) -> tuple[list[tuple[Any, float]], bool]:
    """One value of each part of a feature that conditions tell apart, with its share.

    Also whether the shares are known; else they are arbitrary.
    """
    gap = float(domain["missing"][j]) if domain.get("missing") else 0.0
    gaps = [(None, gap)] if gap else []
    values = next((v for f, v in domain.get("categories") or () if f == j), None)
    if values is not None:
        return [*((value, (1 - gap) / len(values)) for value in values), *gaps], True
    named = {value for c in conditions if c["type"] == "one_of" for value in c["values"]}
    if named:
        others = [*named, object()]
        return [*((value, (1 - gap) / len(others)) for value in others), *gaps], False
    bounds = {c[side] for c in conditions for side in ("lower", "upper") if side in c}
    if "lower" in domain:
        low, high = domain["lower"][j], domain["upper"][j]
    else:
        low, high = min(bounds, default=0.0) - 1, max(bounds, default=0.0) + 1
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return [((low,), 1 - gap), *gaps], low == high
    cuts = [low, *sorted(b for b in bounds if low < b < high), high]
    length = (high - low) / (1 - gap)
    inner = [(a + (b - a) / 2, (b - a) / length) for a, b in pairwise(cuts)]
    return [*inner, *gaps], "lower" in domain
