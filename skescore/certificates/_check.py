"""A checker of certificates that shares nothing with the programs that make them.

It reads the JSON, evaluates rules row by row, and finds the least losses by trying all rules of the
space, in plain Python. Nothing of this package is used here but the messages' plurals: what two
programs agree on is unlikely to be wrong in the same way.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

#: What two sums of the same numbers may differ by, relative to the numbers.
_ROUNDING = 1e-10
#: How far bounds may be off, relative to the loss of one rule: solvers work in floating point.
_TOLERANCE = 1e-7
#: Most combinations of values by which it is found whether rules cover everything.
_MOST_CELLS = 20_000
_METRICS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}


class _WrongError(Exception):
    """The certificate says what is not so."""


@dataclass(frozen=True)
class CheckResult:
    """What the check of a certificate found.

    Parameters
    ----------
    verdict : {"confirmed", "not checked", "rejected"}
        "not checked": all that was checked is right, but some bounds are proven by too long a
        search to be repeated here.
    findings : sequence of str
        What was checked, or what is wrong.
    """

    verdict: str
    findings: tuple[str, ...] = field(default_factory=tuple)

    def __str__(self) -> str:
        return "\n".join([*self.findings, f"verdict: {self.verdict}"])


def check_certificate(
    certificate: Any, X: Any, y: Any, sample_weight: Any = None, *, max_steps: int = 1_000_000
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
    max_steps : int, default=1000000
        So many sets of rows may be looked at per bound; one that needs more is not checked.

    Returns
    -------
    CheckResult
        The verdict, and what it is about.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.certificates import certify, check_certificate
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> made = certify(rules, X, y, kinds=["tree"], max_rules=3, cuts_per_feature=4)
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
        check = _Check(data, X, y, sample_weight, max_steps)
        findings.append(check.rows_are_the_same())
        findings += check.given_rules()
        if not data["frontiers"]:
            raise _WrongError("it proves nothing")
        for part in data["frontiers"]:
            findings.append(check.found_rules(part))
            sentences, all_tried = check.bounds(part)
            findings += sentences
            complete = complete and all_tried
        complete = complete and not check.unknown
        findings += check.unknown
    except _WrongError as error:
        return CheckResult("rejected", (*findings, f"Wrong: {error}."))
    except (
        AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError,
        ZeroDivisionError,
    ) as error:  # fmt: skip
        return CheckResult(
            "rejected", (*findings, f"Wrong: it cannot be read ({type(error).__name__}: {error}).")
        )
    return CheckResult("confirmed" if complete else "not checked", tuple(findings))


class _Check:
    """A certificate beside the rows."""

    def __init__(self, data: Any, X: Any, y: Any, weights: Any, max_steps: int) -> None:
        self.data, self.max_steps = data, max_steps
        names, columns = _columns(X)
        self.names = names
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
        if about["n_rows"] != len(self.rows) or about["checksum"] != digest.hexdigest():
            raise _WrongError("these are not the rows that it was made on")
        if about["weighted"] is not self.weighted:
            raise _WrongError("the rows' weights are not those that it was made with")
        total = math.fsum(self.w)
        if self.task == "classification":
            counts: Counter[Any] = Counter()
            for value, weight in zip(self.y, self.w, strict=True):
                counts[value] += weight  # type: ignore[assignment]
            self._same("class weights", sorted(about["class_weights"]), sorted(counts.values()))
        else:
            mean = math.fsum(w * v for w, v in zip(self.w, self.y, strict=True)) / total
            squares = math.fsum(w * (v - mean) ** 2 for w, v in zip(self.w, self.y, strict=True))
            self._same("sum of squares", [about["squares"]], [squares])
        return f"{len(self.rows)} rows have the checksum of the certificate."

    @staticmethod
    def _same(what: str, said: Sequence[float], found: Sequence[float]) -> None:
        if len(said) != len(found) or any(
            isinstance(one, bool) or not math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=1e-9)
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

    def _weights_of(self, rules: Any) -> list[float]:
        """The weight of the rows that each rule predicts."""
        order = [self.names.index(name) for name in rules["feature_names"]]
        sums = [0.0] * len(rules["rules"])
        for row, weight in zip(self.rows, self.w, strict=True):
            values = [row[j] for j in order]
            held = (
                i
                for i, rule in enumerate(rules["rules"])
                if all(_holds(c, values) for c in rule["if"])
            )
            sums[next(held)] += weight
        return sums

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
            mean = math.fsum(v * a for v, a in zip(w, y, strict=True)) / total
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
                self._same(f"{key} of the rules given", [value],
                           [self._metric(name, answers, covered)])  # fmt: skip
            elif self.task == "classification":
                everything = range(len(answers))
                self._same(key, [value], [self._metric(name, answers, everything)])
            else:
                self.unknown.append(f"{key} of rules that hold not for all rows: not checked.")
        order = [self.names.index(name) for name in rules["feature_names"]]
        lacking = {
            place for place, j in enumerate(order) if any(row[j] is None for row in self.rows)
        }
        if _cover_everything(rules, lacking):
            self._same("completeness by volume", [given["completeness_volume"]], [1.0])
        else:
            self.unknown.append("Completeness by volume of the rules given: not checked.")
        return ["The rules that were given have the size and the metrics that it says."]

    def found_rules(self, part: Any) -> str:
        kind, loss = part["kind"], part["loss"]
        if kind not in ("tree", "list") or loss not in _METRICS:
            raise _WrongError(f"it knows no {kind!r} with the loss {loss!r}")
        if (loss == "errors") is not (self.task == "classification"):
            raise _WrongError(f"the loss {loss!r} is not one of {self.task}")
        self._same("the total weight", [part["total_weight"]], [math.fsum(self.w)])
        n_sizes = len(part["upper"])
        if not n_sizes or any(
            len(part[name]) != n_sizes for name in ("lower", "status", "measured", "rules")
        ):
            raise _WrongError("its sizes do not agree")
        for i in range(n_sizes):
            low, high = part["lower"][i], part["upper"][i]
            if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high):
                raise _WrongError(f"the bounds {low} and {high} cannot both hold")
            if i and (low > part["lower"][i - 1] or high > part["upper"][i - 1]):
                raise _WrongError("a bound grows with the number of rules")
            known = {"optimal", "target", "time_limit", "node_limit", "memory_limit", "interrupted"}
            if part["status"][i] not in known or (part["status"][i] == "optimal" and low < high):
                raise _WrongError(f"the bounds {low} and {high} are not {part['status'][i]!r}")
            self._found(part, i)
        return f"{kind}: the rules found have the losses that it says."

    def _found(self, part: Any, i: int) -> None:
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
        found = self._loss(loss, answers)
        self._same(f"the loss of {i + 1} rules", [part["upper"][i]], [found])
        for rule, weight in zip(rules["rules"], self._weights_of(rules), strict=True):
            seen = rule.get("statistics") or {}
            if "n_rows" in seen:
                self._same("the rows of a rule", [seen["n_rows"]], [weight])
        said = part["measured"][i]
        if set(said) != {"n_rules", *_METRICS[loss]}:
            raise _WrongError("it does not say what the rules found are worth")
        self._same("the number of rules found", [said["n_rules"]], [len(rules["rules"])])
        everything = range(len(answers))
        for name in _METRICS[loss]:
            self._same(name, [said[name]], [self._metric(name, answers, everything)])

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
                elif condition["type"] in ("one_of", "missing"):
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
        """Whether there are as many cuts as the certificate's sentence says."""
        most = self.data["settings"]["cuts_per_feature"]
        own: Counter[str] = Counter()
        given = self.data["given"]["rules"] or {"rules": [], "feature_names": []}
        for rule in given["rules"]:
            for condition in rule["if"]:
                if condition["type"] == "interval":
                    name = given["feature_names"][condition["feature"]]
                    own[name] += ("lower" in condition) + ("upper" in condition)
        for j, name in enumerate(self.names):
            thresholds = cuts["thresholds"].get(str(j))
            if thresholds is None:
                continue
            if most is not None:
                if isinstance(most, bool) or not most >= 1 or int(most) != most:
                    raise _WrongError(f"there cannot be {most} cuts per feature")
                if self.data["given"]["rules"] and len(thresholds) > most + own[name]:
                    raise _WrongError(f"there are {len(thresholds)} cuts of {name}")
                continue
            values = sorted({row[j] for row in self.rows if row[j] is not None})
            for low, high in pairwise(values):
                if not any(low <= cut < high for cut in thresholds):
                    raise _WrongError(f"no cut parts {low} and {high} of {name}")

    def bounds(self, part: Any) -> tuple[list[str], bool]:
        cuts = part["space"]["cuts"]
        self._cuts_are_those_told(cuts)
        everything = (1 << len(self.rows)) - 1
        tests = {test for test in self._tests(cuts) if test not in (0, everything)}
        tests = sorted({min(test, everything ^ test) for test in tests})  # type: ignore[assignment]
        cost = self._cost(part["loss"])
        cells = [everything]
        for test in tests:
            cells = [cell for c in cells for cell in (c & test, c & ~test) if cell]
        floor = math.fsum(cost(cell) for cell in cells)
        if part["kind"] == "tree":
            steps, best = self._best_tree(list(tests), cost)
        else:
            most = part["space"]["max_conditions"]
            steps, best = self._best_list(list(tests), cost, most, everything)
        tried, least = [], {}
        for size in range(1, len(part["lower"]) + 1):
            if steps(size) <= self.max_steps:
                least[size] = best(everything, size)
                tried.append(size)
        not_tried = []
        scale = max(1e-9, cost(everything))
        for size, low in enumerate(part["lower"], start=1):
            known = max([value for s, value in least.items() if s >= size], default=floor)
            if size in least and low > least[size] + _TOLERANCE * scale:
                raise _WrongError(
                    f"{part['kind']}: {size} rules have a loss of {least[size]}, less than "
                    f"the bound {low}"
                )
            if size not in least and low > max(known, floor) + _TOLERANCE * scale:
                not_tried.append(size)
        sentences = []
        if tried:
            sentences.append(
                f"{part['kind']}: no rules are better than its bounds for "
                f"{', '.join(map(str, tried))} rules; all were tried."
            )
        if not_tried:
            sentences.append(
                f"{part['kind']}: the bounds for {', '.join(map(str, not_tried))} rules are not "
                "checked; there are too many rules to try."
            )
        return sentences, not not_tried

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
                mean = math.fsum(w[i] * y[i] for i in index) / total
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

    @staticmethod
    def _best_tree(tests: list[int], cost: Callable[[int], float]) -> tuple[Any, Any]:
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

    @staticmethod
    def _best_list(
        tests: list[int], cost: Callable[[int], float], most: int, everything: int
    ) -> tuple[Any, Any]:
        single = [side for test in tests for side in (test, everything ^ test)]
        premises = set(single)
        if most >= 2:
            premises |= {one & other for one, other in combinations(single, 2)} - {0}
        if most >= 3:
            raise _WrongError("lists with more than 2 conditions in a rule are not known")

        def steps(size: int) -> float:
            return float((2 * len(premises)) ** (size - 1))

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
    """A value as JSON has it: numbers are floats, what is missing is None."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if value != value or str(value) in ("<NA>", "NaT") else str(value)
    return None if math.isnan(number) else number


def _at_most(cut: float, value: Any) -> bool:
    return value is not None and bool(value <= cut)


def _equal(known: Any, value: Any) -> bool:
    return value is not None and not _differ(known, value)


def _key(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


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
    above = lower is None or value > lower or (condition["lower_closed"] and value == lower)
    below = upper is None or value < upper or (condition["upper_closed"] and value == upper)
    return above and below


def _conclusion(then: Any, row: Sequence[Any]) -> Any:
    if isinstance(then, dict):
        return then["intercept"] + math.fsum(c * row[j] for j, c in then["terms"])
    return then


def _cover_everything(rules: Any, lacking: set[int]) -> bool | None:
    """Whether some rule holds for any row at all; None if that takes too long to say."""
    bounds: dict[int, set[float]] = {}
    labels: dict[int, set[Any]] = {}
    for condition in (c for rule in rules["rules"] for c in rule["if"]):
        if condition["type"] == "interval":
            known = bounds.setdefault(condition["feature"], set())
            known |= {condition[name] for name in ("lower", "upper") if name in condition}
        elif condition["type"] == "one_of":
            labels.setdefault(condition["feature"], set()).update(condition["values"])
        elif condition["type"] == "missing":
            bounds.setdefault(condition["feature"], set())
        else:
            return None
    # One value of each kind that conditions tell apart.
    kinds: dict[int, list[Any]] = {}
    for j in sorted({*bounds, *labels}):
        cuts = sorted(bounds.get(j, ()))
        between = [low + (high - low) / 2 for low, high in pairwise(cuts)]
        outside = [cuts[0] - 1 - abs(cuts[0]), cuts[-1] + 1 + abs(cuts[-1])] if cuts else [0.0]
        kinds[j] = [*labels[j], object()] if j in labels else [*cuts, *between, *outside]
        kinds[j] += [None] if j in lacking else []
    if math.prod(map(len, kinds.values())) > _MOST_CELLS:
        return None
    row: list[Any] = [None] * len(rules["feature_names"])
    for values in product(*kinds.values()):
        for j, value in zip(kinds, values, strict=True):
            row[j] = value
        if not any(all(_holds(c, row) for c in rule["if"]) for rule in rules["rules"]):
            return False
    return True
