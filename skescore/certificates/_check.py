"""Checker of certificates: one file that users trust instead of the solvers.

The checker reads the JSON of a certificate and the rows, recomputes every number in the
certificate, and states its own claims: :attr:`CheckResult.claims`. Of the certificate's numbers,
claims depend only on lower bounds and proofs; the checker verifies them by enumeration and by its
own search. This file imports only the standard library and NumPy, so that it can be copied and run
without the package: ``python _check.py CERTIFICATE.json ROWS.csv [TARGET [WEIGHT]]``.

Reading order, which is also the list of proof obligations:

1.  ``parse_certificate``: the text is finite JSON of a bounded size that matches ``SCHEMA``.
2.  ``_Rows``: the rows are those of the certificate; weights and targets become exact integers.
3.  ``_holds``: the meaning of conditions.
4.  ``_Rows.loss`` and ``_Rows.metric``: exact losses and metrics of predictions.
5.  ``_score``: the formulas of the scores.
6.  ``_Check.check_given_rules`` with ``_covered_volume``: size, completeness and metrics of the
    given rules, in the domain of these rows.
7.  ``_Check.check_cuts``: the space consists of the cuts that the claims describe.
8.  ``_Check.check_incumbents``: the best rules found belong to the space and have the stated loss.
9.  ``_Check.check_loss_bounds``: no rules of the space have a smaller loss, by enumeration
    (``_enumerate_rules``) or by ``Search``.
10. ``_Check.check_f1_bound`` with ``F1Search``: no tree has a larger weighted F1.
11. ``largest_f1``: the largest weighted F1 at a number of errors.
12. ``_Check.state_claims``: the sentences.

Losses are exact for classification with whole weights, and for rules that are enumerated. Other
searches use floating-point numbers and lower each bound by the largest rounding error of their
sums; claims use the lowered bounds.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import json
import math
import re
import sys
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Largest number of bytes of memory per character of JSON.
_BYTES_PER_CHARACTER = 32
#: Largest relative difference between a stated number and the exact number, as used in claims.
_ROUNDING = 1e-9
#: Largest accepted excess of a lower bound over the smallest loss, as a share of one rule's loss.
_WRONG = 1e-7
#: Error of the bounds of solvers, as a share of the total weight of the rows.
_SOLVER_ROUNDING = 1e-8
#: Largest relative difference between two scores that is regarded as a rounding error.
_SCORE_ROUNDING = 1e-6
#: Largest number of trees or lists that are enumerated.
_MAX_ENUMERATED = 100_000
#: Largest number of parts of the domain in the computation of a volume, and the tolerance of
#: volumes, because the domain of extractors exceeds the range of the rows by a relative 1e-9.
_MAX_VOLUME_PARTS, _VOLUME_TOLERANCE = 200_000, 1e-6
#: Tolerance of volumes that are estimates.
_ESTIMATE_TOLERANCE = 0.01
#: Share of the total weight below which a sum of weights counts as a rounding error.
_MIN_WEIGHT = 1e-12
#: Largest number of products for which the losses of all pairs of tests are computed at once.
_MAX_PAIR_PRODUCTS = 2e9
#: Precision of the largest weighted F1 at a number of errors, and largest number of intervals.
_F1_PRECISION, _MAX_INTERVALS = 1e-5, 1000
_BLACK_BOX = "the black box's predictions"
_UNCHECKED = "The remaining parts are not checked: the {} limit is reached."
#: Loss of each metric, and its name in sentences.
_METRICS = {
    "accuracy": ("errors", "accuracy"),
    "f1_weighted": ("errors", "weighted F1"),
    "r2": ("squared_error", "R²"),
    "mean_squared_error": ("squared_error", "mean squared error"),
    "root_mean_squared_error": ("squared_error", "root mean squared error"),
    "mean_absolute_error": ("absolute_error", "mean absolute error"),
}
LOSS_OF_METRIC = {metric: loss for metric, (loss, _) in _METRICS.items()}
METRIC_NAMES = {metric: name for metric, (_, name) in _METRICS.items()}
#: Metrics whose best value is 1.
PERFORMANCES = ("accuracy", "f1_weighted", "r2")
#: Label, names of weights, and policy for uncovered rows of each score.
_SCORES = {
    "ice": ("ICE", ("phi", "rho"), "ignore"),
    "fire": ("FiRe", ("psi",), "penalize"),
    "q": ("Q", (), "ignore"),
}


@dataclass(frozen=True)
class CheckResult:
    """Result of the check of a certificate.

    Parameters
    ----------
    verdict : {"confirmed", "not checked", "rejected"}
        "confirmed": all claims of the certificate are proven. "rejected": an error was found. "not
        checked": no error was found, but a limit ended the check, or a part cannot be checked.
    findings : sequence of str, default=()
        The parts that were checked, or the error that was found.
    claims : sequence of str, default=()
        Sentences that the check proves for the passed rows. It recomputes all their numbers and
        takes none from the certificate.
    """

    verdict: str
    findings: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*self.findings, *self.claims, f"verdict: {self.verdict}"])


def check_certificate(
    certificate: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time_limit: float | None = 60.0,
    memory_limit: float = 2**30,
) -> CheckResult:
    """Check the text or file of a certificate on an array, a table or a dict of columns.

    The limits are in seconds and bytes; parts beyond the limits are not checked.
    """
    text = certificate
    if isinstance(certificate, Path) or not str(certificate).lstrip().startswith("{"):
        text = Path(certificate).read_text(encoding="utf-8")
    budget = Budget(time_limit, memory_limit)
    findings: list[str] = []
    weights = _read_weights(sample_weight)
    try:
        data = parse_certificate(text, budget)
        rows = _Rows(data, X, y, weights, budget)
        return _run_steps(_Check(data, rows, budget), findings)
    except RejectedError as error:
        return CheckResult("rejected", (*findings, f"Wrong: {error}."))
    except LimitError as error:
        return CheckResult("not checked", (*findings, _UNCHECKED.format(error)))
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        kind = type(error).__name__
        return CheckResult("rejected", (*findings, f"Wrong: it cannot be evaluated ({kind})."))


def _run_steps(check: _Check, findings: list[str]) -> CheckResult:
    """Run the steps of a check, and append a sentence to the findings after each of them."""
    frontiers = check.data["frontiers"]
    findings.append(check.rows.check_stated())
    findings += check.check_given_rules()
    for frontier in frontiers:
        check.check_cuts(frontier["space"]["cuts"])
        findings.append(check.check_incumbents(frontier))
    claims = check.state_given_rules()
    for i, frontier in enumerate(frontiers):
        findings += check.check_bounds(frontier, len(frontiers) - i)
        claims += check.state_claims(frontier)
    findings += [*check.unchecked, *check.notes]
    verdict = "not checked" if check.unchecked else "confirmed"
    return CheckResult(verdict, tuple(findings), tuple(claims))


# --- errors and limits ---


class RejectedError(Exception):
    """Raised if the certificate is wrong."""


class LimitError(Exception):
    """Raised if a limit ends a step; the argument is the resource."""


def _require(is_valid: Any, rule: str, *values: Any) -> None:
    """Raise a RejectedError with a rule and the values that violate it, unless they are valid."""
    if not is_valid:
        shown = ", ".join(repr(value)[:60] for value in values)
        raise RejectedError(f"{rule}, got {shown}" if values else rule)


class Budget:
    """Limits of time and memory."""

    def __init__(self, time_limit: float | None, memory_limit: float) -> None:
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.n_bytes = memory_limit

    def check_time(self) -> None:
        """Raise a LimitError if the time limit is reached."""
        if time.monotonic() > self.deadline:
            raise LimitError("time")

    def check_memory(self, n_bytes: float) -> None:
        """Raise a LimitError if a step exceeds the memory limit."""
        if n_bytes > self.n_bytes:
            raise LimitError("memory")

    def share(self, fraction: float) -> Budget:
        """Return a budget with a share of the remaining time."""
        start = time.monotonic()
        return Budget((self.deadline - start) * fraction, self.n_bytes)


# --- 1. schema ---


def parse_certificate(text: str, budget: Budget) -> Any:
    """Parse JSON of limited size with finite numbers and unique names, and check its schema."""
    budget.check_memory(_BYTES_PER_CHARACTER * len(text))

    def number(digits: str) -> float:
        _require(math.isfinite(value := float(digits)), "numbers must be finite", digits)
        return value

    def integer(digits: str) -> int:
        _require(len(digits) <= 300, "integers must have at most 300 digits", digits)
        return int(digits)

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        _require(len(fields) == len(pairs), "fields must not occur twice", list(fields))
        return fields

    try:
        data = json.loads(
            text,
            parse_float=number,
            parse_int=integer,
            parse_constant=number,
            object_pairs_hook=record,
        )
    except (RecursionError, ValueError) as error:
        raise RejectedError(f"the text must be JSON ({str(error)[:100]})") from error
    _check_schema(data, budget)
    return data


def _check_schema(data: Any, budget: Budget) -> None:
    """Check that a certificate matches ``SCHEMA``."""
    pending = [("the certificate", data, SCHEMA)]
    while pending:
        location, value, schema = pending.pop()
        budget.check_time()
        while "$ref" in schema or "anyOf" in schema:
            if "$ref" in schema:
                schema = _resolve(schema)
            else:  # the alternatives differ in their types, fields or fixed values
                options = schema["anyOf"]
                schema = next((one for one in options if _matches(value, one)), options[-1])
        if not _matches(value, schema):
            rule = {key: schema[key] for key in schema.keys() - {"properties", "items", "$defs"}}
            _require(False, f"{location} must match {rule}", value)
        if isinstance(value, dict):
            fields, extra = schema.get("properties", {}), schema["additionalProperties"]
            pending += [(f"{location}.{k}", one, fields.get(k, extra)) for k, one in value.items()]
        elif isinstance(value, list):
            items = schema["items"]
            pending += [(f"{location}[{i}]", one, items) for i, one in enumerate(value)]


def _resolve(schema: Any) -> Any:
    """Return the definition to which a schema refers."""
    return SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _matches(value: Any, schema: Any) -> bool:
    """Return whether a value matches a schema, apart from the values that it contains."""
    schema = _resolve(schema)
    if "anyOf" in schema:
        return any(_matches(value, option) for option in schema["anyOf"])
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    if type(value) not in _TYPES[schema["type"]]:
        return False
    if isinstance(value, dict):
        if "propertyNames" in schema:
            pattern = re.compile(schema["propertyNames"]["pattern"])
            return all(pattern.fullmatch(name) for name in value)
        fields = schema["properties"]
        return set(schema["required"]) <= value.keys() <= fields.keys() and all(
            _matches(one, fields[name]) for name, one in value.items() if "enum" in fields[name]
        )
    if isinstance(value, list):
        return bool(schema["minItems"] <= len(value) <= schema.get("maxItems", math.inf))
    if isinstance(value, str):
        return len(value) <= schema["maxLength"]
    return bool(schema["minimum"] <= value <= schema["maximum"])


#: Types of values by their names in JSON Schema.
_TYPES = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
}

#: Format of certificates. `[type]` is a list, `..` a range of values or lengths, `?` an optional
#: field, and a field in slashes a pattern of names. Other fields are not allowed.
_FORMAT = r"""
count = integer 0..9007199254740992
weight = number 0..
share = number 0..1
flag = false | true
label = flag | text ..10000 | number
term = [number] 2..2
linear = {intercept: number, terms: [term]}

interval = {type: "interval", feature: count, lower?: number, lower_closed?: flag,
    upper?: number, upper_closed?: flag, missing?: flag}
one_of = {type: "one_of", feature: count, values: [label] 1.., negated?: flag, missing?: flag}
missing = {type: "missing", feature: count, negated?: flag}
at_least = {type: "at_least", m: count, conditions: [&condition] 1..}
comparison = {type: "linear", terms: [term] 1.., lower?: number, lower_closed?: flag,
    upper?: number, upper_closed?: flag}
condition = interval | one_of | missing | at_least | comparison
statistics = {n_rows: weight, class_counts?: [weight], mean?: number, standard_deviation?: weight,
    target_counts?: [weight], model_error?: weight, target_error?: weight, weighted?: flag}
rule = {if: [&condition], then: label | linear, weight?: number | linear, statistics?: statistics}
domain = {lower: [number], upper: [number], categories?: [[count | [label] 1..] 2..2],
    missing?: [share]}
fallback = {policy: "default" | "nearest" | "abstain", output: label,
    class_counts?: null | [weight], abstain_label?: null | label}
rules = {format: "skescore.RuleSet", version: 1 | 2, task: "classification" | "regression",
    feature_names: [text ..10000], classes: null | [label] 1.., ordered: flag, rules: [rule] 1..,
    disjoint?: flag, voting?: "votes" | "probabilities" | "logistic" | "mean" | "sum",
    reference?: "data" | "black_box", domain?: null | domain, fallback?: null | fallback}

cuts = {n_features: count, thresholds: {/[0-9]{1,9}/: [number]},
    categories: {/[0-9]{1,9}/: [label]}, missing_features: [count],
    category_sets?: {/[0-9]{1,9}/: [[label] 1..]}}
list_space = {kind: "list", max_conditions: integer 1..3, default_counts: true, cuts: cuts,
    n_tests: count, n_rows: count, classes: null | [label] 1..}
space = {cuts: cuts} | list_space
f1_leaf = {} | {linear: [count], multipliers: [number -1e6..1e6]}
f1_branches = {class: count, between: [number] 2..2, branches: [&f1_node] 2..2}
f1_node = f1_branches | f1_leaf
f1_proof = {classes: [label] 1.., target: number 0..1e6, root: &f1_node}
f1_bound = {max_leaves: integer 1..10000, upper_bound: share, incumbent: share,
    rules: null | rules, proof: {} | f1_proof, seconds: weight}
status = "optimal" | "target" | "time_limit" | "node_limit" | "work_limit" | "memory_limit"
    | "rounding" | "interrupted"
measured = {n_rules: count, accuracy?: number ..1, f1_weighted?: number ..1, r2?: number ..1,
    mean_squared_error?: weight, root_mean_squared_error?: weight, mean_absolute_error?: weight}
frontier = {kind: "tree" | "list", loss: "errors" | "squared_error" | "absolute_error",
    lower: [weight] 1..10000, upper: [weight] 1..10000, status: [status], seconds: weight,
    total_weight: weight, space: space, measured: [measured], rules: [rules] 1..,
    f1_bounds?: [f1_bound]}

settings = {metric: "accuracy" | "f1_weighted" | "r2" | "mean_squared_error"
    | "root_mean_squared_error" | "mean_absolute_error", completeness: "volume" | "instances",
    weights: {/[^\W\d]\w*/: number 5e-324..}, cuts_per_feature: null | integer 1..2147483647,
    stated_cuts?: flag}
rows = {n_rows: count, task: "classification" | "regression", reference: text ..10000,
    weighted: flag, checksum: text ..64, class_weights?: [weight] 1.., squares?: weight}
metrics = {"accuracy ignore"?: number ..1, "accuracy penalize"?: number ..1,
    "f1_weighted ignore"?: number ..1, "f1_weighted penalize"?: number ..1,
    "r2 ignore"?: number ..1, "r2 penalize"?: number ..1,
    "mean_squared_error ignore"?: weight, "mean_squared_error penalize"?: weight,
    "root_mean_squared_error ignore"?: weight, "root_mean_squared_error penalize"?: weight,
    "mean_absolute_error ignore"?: weight, "mean_absolute_error penalize"?: weight}
given = {n_rules: integer 1..9007199254740992, completeness_volume: share,
    completeness_instances: share, metrics: metrics, rules: null | rules}
held_out = {kind: "tree" | "list", n_rules: count, best: [number], given: [number]}
certificate = {format: "skescore.Certificate", version: 1, score: text ..100, settings: settings,
    rows: rows, given: given, frontiers: [frontier] 1..2, held_out?: null | held_out}
"""


class _FormatReader:
    """Parser of ``_FORMAT``, which it translates to JSON Schema."""

    def __init__(self, text: str) -> None:
        pattern = r'"[^"]*"|/[^/]*/|-?[\de-]*\.\.[-\de]*|\w+|\S'
        self.tokens = re.findall(pattern, text)[::-1]
        self.schemas: dict[str, Any] = {}
        while self.tokens:
            name, _ = self.tokens.pop(), self.tokens.pop()
            self.schemas[name] = self._read_alternatives()

    def _read_alternatives(self) -> Any:
        options: list[Any] = []
        while not options or (self.tokens and self.tokens[-1] == "|" and self.tokens.pop()):
            option = self._read_type(self.tokens.pop())
            if options and options[-1].keys() == option.keys() == {"enum"}:
                options[-1] = {"enum": options[-1]["enum"] + option["enum"]}
            else:
                options.append(option)
        return options[0] if len(options) == 1 else {"anyOf": options}

    def _read_type(self, token: str) -> Any:
        if token == "&":
            return {"$ref": f"#/$defs/{self.tokens.pop()}"}
        if token == "{":
            return self._read_fields()
        if token == "[":
            items, _ = self._read_alternatives(), self.tokens.pop()
            least, most = self._read_range()
            limit = {} if most is None else {"maxItems": most}
            return {"type": "array", "items": items, "minItems": least or 0, **limit}
        if token == "text":
            return {"type": "string", "maxLength": self._read_range()[1]}
        if token in ("number", "integer"):
            low, high = self._read_range()
            low, high = -math.inf if low is None else low, math.inf if high is None else high
            return {"type": token, "minimum": low, "maximum": high}
        return self.schemas[token] if token in self.schemas else {"enum": [json.loads(token)]}

    def _read_range(self) -> tuple[Any, Any]:
        bounds = self.tokens.pop() if self.tokens and ".." in self.tokens[-1] else ".."
        low, high = (json.loads(bound) if bound else None for bound in bounds.split(".."))
        return low, high

    def _read_fields(self) -> Any:
        schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
        schema |= {"properties": {}, "required": []}
        while (name := self.tokens.pop()) != "}":
            if name == ",":
                continue
            is_optional = self.tokens.pop() == "?" and self.tokens.pop()
            field = self._read_alternatives()
            if name[0] == "/":
                names = {"pattern": f"^{name[1:-1]}$"}
                schema = {"type": "object", "propertyNames": names, "additionalProperties": field}
                continue
            name = name.strip('"')
            schema["properties"][name] = field
            schema["required"] += [] if is_optional else [name]
        return schema


_DEFINITIONS = _FormatReader(_FORMAT).schemas
#: Format of certificates: a JSON Schema of the keywords that :func:`_check_schema` interprets.
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "skescore.Certificate",
    **_DEFINITIONS["certificate"],
    "$defs": {name: _DEFINITIONS[name] for name in ("condition", "f1_node")},
}


# --- 2. rows ---


class _Rows:
    """Rows that were passed, with targets and weights as exact integers."""

    def __init__(
        self, data: Any, X: Any, y: Any, weights: list[float] | None, budget: Budget
    ) -> None:
        self.stated, self.budget = data["rows"], budget
        self.task = self.stated["task"]
        names, self.columns = _read_columns(X)
        #: Names of the columns; for an array, the names in the certificate.
        self.names = names or data["frontiers"][0]["rules"][0]["feature_names"]
        #: Names of the columns that are declared categories.
        dtypes = [str(dtype) for dtype in getattr(X, "dtypes", ())] if names else []
        name_dtypes = zip(self.names, dtypes, strict=False)
        self.declared = {name for name, dtype in name_dtypes if dtype == "category"}
        self.values = list(map(list, zip(*self.columns, strict=True)))
        self.y = _json_values(y)
        name = getattr(y, "name", None)
        #: Name of the passed target, if any.
        self.target_name = name if isinstance(name, str) and name else None
        self.is_weighted = weights is not None
        self.w = [1.0] * len(self.y) if weights is None else weights
        lengths = len(self.values), len(self.y), len(self.w)
        _require(self.y and len(set(lengths)) == 1, "rows, y and weights must be as many", lengths)
        n_features = len(self.names), len(self.columns)
        _require(len(set(n_features)) == 1, "rules must have the features of the rows", n_features)
        #: Rows with positive weight; other rows are not counted.
        self.index = [i for i, w in enumerate(self.w) if w > 0]
        self.weights, self.unit = _integers([self.w[i] for i in self.index])
        self.total = sum(self.weights)
        #: Sum of the weights.
        self.total_weight = Fraction(self.total, self.unit)
        self.targets = [self.y[i] for i in self.index]
        #: Error of a mean that is rounded to a float.
        self.rounding = 0.0
        #: Rows of each label and weight, as bits.
        self.label_sets: dict[Any, dict[int, int]] = {}
        if self.task == "classification":
            for i, (value, weight) in enumerate(zip(self.targets, self.weights, strict=True)):
                sets = self.label_sets.setdefault(_key(value), defaultdict(int))
                sets[weight] |= 1 << i
        else:
            are_numbers = all(type(value) in (int, float) for value in self.y)
            _require(are_numbers, "y must hold numbers for rules that predict numbers")
            self.numbers, self.number_unit = _integers(self.targets)
            self.rounding = 8 * 2.0**-52 * float(max(map(abs, self.targets)))
        #: Error of a sum of squares around a rounded mean.
        self.square_error = float(self.total_weight) * self.rounding**2

    def check_stated(self) -> str:
        """Check the checksum of the rows and the sums of their targets."""
        stated = self.stated
        digest = hashlib.sha256()
        for values, value, weight in zip(self.values, self.y, self.w, strict=True):
            line = [*values, value] + ([weight] if self.is_weighted else [])
            digest.update((json.dumps(line) + "\n").encode())
        self.budget.check_time()
        is_weighted = stated["weighted"]
        _require(is_weighted is self.is_weighted, "weights must be passed if stated", is_weighted)
        is_same = stated["n_rows"] == len(self.y) and stated["checksum"] == digest.hexdigest()
        _require(is_same, "the certificate must be for these rows", stated["checksum"])
        if self.task == "classification":
            self._check_class_weights()
        else:
            squares = self.squares(range(len(self.index)))
            _require_equal("the sum of squares", stated.get("squares"), squares, self.square_error)
            _require("class_weights" not in stated, "numbers must not have class weights")
        return f"The {len(self.y)} rows have the checksum of the certificate."

    def _check_class_weights(self) -> None:
        weights = self.stated.get("class_weights", [])
        exact = dict.fromkeys({str(value) for value in self.y}, Fraction(0))
        for value, weight in zip(self.targets, self.weights, strict=True):
            exact[str(value)] += Fraction(weight, self.unit)
        is_complete = "squares" not in self.stated and len(weights) == len(exact)
        _require(is_complete, "each class must have one weight", weights)
        # Labels are sorted by their text; numbers may be written in several ways.
        for stated, class_weight in zip(sorted(weights), sorted(exact.values()), strict=True):
            _require_equal("a class weight", stated, class_weight)

    def weight_of(self, rows: Sequence[int]) -> int:
        """Return the sum of the integer weights of some rows."""
        return sum(self.weights[i] for i in rows)

    def moments(self, rows: Sequence[int]) -> tuple[int, int, int]:
        """Return the weighted sums of 1, of the integer targets and of their squares."""
        terms = [(self.weights[i], self.numbers[i]) for i in rows]
        return self.weight_of(rows), sum(w * v for w, v in terms), sum(w * v * v for w, v in terms)

    def mean(self, rows: Sequence[int]) -> Fraction:
        """Return the weighted mean of the targets."""
        n, first, _ = self.moments(rows)
        return Fraction(first, n * self.number_unit)

    def squares(self, rows: Sequence[int]) -> Fraction:
        """Return the weighted sum of squares around the mean."""
        n, first, second = self.moments(rows)
        if not n:
            return Fraction(0)
        return Fraction(second * n - first**2, n * self.unit * self.number_unit**2)

    # --- 4. losses and metrics ---

    def class_weights(self, bits: int) -> list[int]:
        """Return the integer weight of each label in a set of rows."""
        return [
            sum(weight * (bits & members).bit_count() for weight, members in sets.items())
            for sets in self.label_sets.values()
        ]

    def least_cost(self, name: str, bits: int) -> Fraction:
        """Return the exact loss of the best constant for a set of rows."""
        if name == "errors":
            weights = self.class_weights(bits)
            return Fraction(sum(weights) - max(weights), self.unit)
        members = _members(bits)
        if name == "squared_error":
            return self.squares(members)
        members.sort(key=self.numbers.__getitem__)
        total, sums = self.weight_of(members), accumulate(self.weights[i] for i in members)
        median = next(i for i, s in zip(members, sums, strict=True) if 2 * s >= total)
        terms = (self.weights[i] * abs(self.numbers[i] - self.numbers[median]) for i in members)
        return Fraction(sum(terms), self.unit * self.number_unit)

    def loss(self, name: str, predictions: Sequence[Any], rows: Sequence[int]) -> Fraction:
        """Return the exact loss of predictions for some rows; the prediction None is an error."""
        if name == "errors":
            wrong = [i for i in rows if _key(predictions[i]) != _key(self.targets[i])]
            return Fraction(self.weight_of(wrong), self.unit)
        rows_by_prediction: dict[float, list[int]] = defaultdict(list)
        for i in rows:
            rows_by_prediction[predictions[i]].append(i)
        loss, power = Fraction(0), 2 if name == "squared_error" else 1
        for number, members in rows_by_prediction.items():
            _require(math.isfinite(number), "rules must predict finite numbers", number)
            exact = Fraction(number) * self.number_unit
            d = exact.denominator
            total = sum(
                self.weights[i] * abs(self.numbers[i] * d - exact.numerator) ** power
                for i in members
            )
            loss += Fraction(total, d**power)
        return loss / (self.unit * self.number_unit**power)

    def metric(self, name: str, predictions: Sequence[Any], rows: Sequence[int]) -> Fraction:
        """Return a metric of the predictions for some rows; it is exact except for square roots."""
        if name == "f1_weighted":
            return self._weighted_f1(predictions, rows)
        loss = self.loss(LOSS_OF_METRIC[name], predictions, rows)
        return self.metric_of_loss(name, loss, rows)

    def metric_of_loss(self, name: str, loss: Fraction, rows: Sequence[int]) -> Fraction:
        """Return a metric that is a function of the loss."""
        if name == "r2":
            squares = self.squares(rows)
            return 1 - loss / squares if squares else Fraction(int(not loss))
        mean_loss = loss / Fraction(self.weight_of(rows), self.unit)
        if name == "root_mean_squared_error":
            return Fraction(math.sqrt(mean_loss))
        return 1 - mean_loss if name == "accuracy" else mean_loss

    def _weighted_f1(self, predictions: Sequence[Any], rows: Sequence[int]) -> Fraction:
        true: dict[Any, int] = defaultdict(int)
        predicted: dict[Any, int] = defaultdict(int)
        hits: dict[Any, int] = defaultdict(int)
        for i in rows:
            key, guess_key = _key(self.targets[i]), _key(predictions[i])
            true[key] += self.weights[i]
            predicted[guess_key] += self.weights[i]
            hits[key] += self.weights[i] * (key == guess_key)
        terms = (Fraction(n * 2 * hits[key], n + predicted[key]) for key, n in true.items())
        return sum(terms, Fraction(0)) / sum(true.values())

    def metric_error(self, name: str, rows: Sequence[int]) -> float:
        """Return the absolute error of a metric that is computed in floating-point numbers."""
        if name in ("accuracy", "f1_weighted"):
            return _ROUNDING
        if name not in ("r2", "mean_squared_error"):
            return self.rounding
        variance = float(self.squares(rows) * self.unit / self.weight_of(rows))
        error = self.rounding * (self.rounding + 2 * math.sqrt(variance))
        if name == "mean_squared_error":
            return error
        return _ROUNDING + (2 * error / variance if variance else 0.0)


def _integers(values: Sequence[float]) -> tuple[list[int], int]:
    """Return numbers as exact integers in a common unit, and the unit."""
    fractions = [Fraction(value) for value in values]
    unit = math.lcm(*{value.denominator for value in fractions})
    return [value.numerator * (unit // value.denominator) for value in fractions], unit


def _require_equal(name: str, stated: Any, exact: Fraction | float, error: float = 0.0) -> None:
    """Raise an error unless a stated number is the exact one up to rounding errors."""
    exact = Fraction(exact)
    tolerance = max(Fraction(error), abs(exact) * Fraction(_ROUNDING))
    is_equal = stated is not None and abs(Fraction(stated) - exact) <= tolerance
    if not is_equal:
        _require(False, f"{name} must be {float(exact)!r}", stated)


def _read_weights(sample_weight: Any) -> list[float] | None:
    """Return weights as floats; None without weights."""
    if sample_weight is None:
        return None
    values = _json_values(sample_weight)
    weights = [math.nan if weight is None else float(weight) for weight in values]
    if not all(0 <= w < math.inf for w in weights) or not any(weights):
        raise ValueError(
            "sample_weight must hold finite numbers of 0 or more, at least one of them above 0, "
            f"got {weights[:5]!r}."
        )
    return weights


def _read_columns(X: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the names and the values of the columns; an array has no names."""
    if hasattr(X, "column_names"):  # an Arrow table
        return list(X.column_names), [_json_values(X.column(j)) for j in range(X.num_columns)]
    if isinstance(X, dict):
        return list(X), list(map(_json_values, X.values()))
    if hasattr(X, "columns"):  # in contrast to polars, pandas allows repeated names
        names = [str(name) for name in X.columns]
        columns = (X.iloc[:, j] if hasattr(X, "iloc") else X[name] for j, name in enumerate(names))
        return names, list(map(_json_values, columns))
    rows = X.tolist() if hasattr(X, "tolist") else X
    return [], [list(map(_json_value, column)) for column in zip(*rows, strict=True)]


def _json_values(column: Any) -> list[Any]:
    """Return the values of a column as JSON represents them."""
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(column, method):
            return list(map(_json_value, getattr(column, method)()))
    return list(map(_json_value, column))


def _json_value(value: Any) -> Any:
    """Return a value as JSON represents it: numbers as floats if possible, None if missing."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        # The comparison of pandas' NA with itself is not a boolean.
        return None if str(value) in ("<NA>", "NaT") or value != value else str(value)
    if isinstance(value, int) and number != value:
        return value
    return None if math.isnan(number) else number


# --- 3. conditions and rules ---


def _key(value: Any) -> Any:
    """Return a key that is equal for equal labels or values of a column: 1, 1.0 and True."""
    if isinstance(value, int):
        value = _json_value(int(value))
    return type(value), value


def _keys(values: Sequence[Any]) -> frozenset[Any]:
    """Return the keys of some values."""
    return frozenset(map(_key, values))


def _holds(condition: Any, row: Sequence[Any]) -> bool:
    """Return whether a condition holds for a row."""
    kind = condition["type"]
    if kind == "at_least":
        return sum(_holds(c, row) for c in condition["conditions"]) >= condition["m"]
    if kind == "linear":
        if any(row[j] is None for j, _ in condition["terms"]):
            return False
        return _is_within(condition, _linear_sum(0.0, condition["terms"], row))
    value = row[condition["feature"]]
    if kind == "missing":
        return (value is None) != condition.get("negated", False)
    if value is None:
        return bool(condition.get("missing", False))
    if kind == "interval":
        return _is_within(condition, value)
    if "keys" not in condition:  # a cache, which is not in the schema
        condition["keys"] = _keys(condition["values"])
    return (_key(value) in condition["keys"]) != condition.get("negated", False)


def _n_parts(condition: Any) -> int:
    """Return the number of conditions and terms that are evaluated for a row."""
    parts = condition.get("conditions", ())
    return 1 + len(condition.get("terms", ())) + sum(map(_n_parts, parts))


def _is_within(condition: Any, value: Any) -> bool:
    """Return whether a number is between the bounds of a condition."""
    lower, upper = condition.get("lower"), condition.get("upper")
    _require(not isinstance(value, str), "rules must compare numbers with bounds", value)
    if not isinstance(value, Fraction):  # a point of a volume
        value = float(value)  # rules compare floats, which round integers beyond 2**53
    above = lower is None or value > lower or (condition.get("lower_closed") and value == lower)
    below = upper is None or value < upper or (condition.get("upper_closed", 1) and value == upper)
    return bool(above and below and not math.isnan(value))


def _linear_sum(start: float, terms: Any, row: Sequence[Any]) -> float:
    """Return a linear function in floats, summed in the order of the features like in rules."""
    total = float(start)
    for j, coefficient in sorted(terms):
        if coefficient:
            total += coefficient * (math.nan if row[j] is None else float(row[j]))
    return total


def _check_references(rules: Any, task: str) -> None:
    """Check that rules refer to features and classes that exist, and that conditions are valid."""
    n_features, classes = len(rules["feature_names"]), rules["classes"]
    _require(len(set(rules["feature_names"])) == n_features, "names of features must be distinct")
    is_of_task = rules["task"] == task and (classes is None) is (task == "regression")
    _require(is_of_task, f"the task of rules must be {task}", rules["task"], classes)
    keys = _keys(classes or ())
    _require(len(keys) == len(classes or ()), "classes must be distinct", classes)

    def check_terms(terms: Any) -> None:
        for j, _ in terms:
            _require(type(j) is int and 0 <= j < n_features, "rules must use existing features", j)

    def check_condition(condition: Any, depth: int = 0) -> None:
        _require(depth <= 50, "conditions must be at most 50 deep")
        parts = condition.get("conditions", ())
        for one in parts:
            check_condition(one, depth + 1)
        if parts:
            _require(1 <= condition["m"] <= len(parts), "m must count conditions", condition["m"])
        check_terms(condition.get("terms", ()))
        check_terms([(condition["feature"], 0)] if "feature" in condition else ())
        low, high = condition.get("lower", -math.inf), condition.get("upper", math.inf)
        is_closed = condition.get("lower_closed") and condition.get("upper_closed")
        is_satisfiable = low < high or (low == high and is_closed)
        _require(is_satisfiable, "some number must satisfy each condition", condition)

    fallback = rules.get("fallback") or {}
    outputs = [part["then"] for part in rules["rules"]]
    for output in [*outputs, fallback["output"]] if fallback else outputs:
        if isinstance(output, dict) and task == "regression":
            check_terms(output["terms"])
        else:
            is_number = type(output) in (int, float)
            is_valid = _key(output) in keys if task == "classification" else is_number
            _require(is_valid, "rules must predict classes or numbers", output)
    _check_domain(rules.get("domain"), n_features)
    for rule in rules["rules"]:
        for condition in rule["if"]:
            check_condition(condition)
        if isinstance(rule.get("weight"), dict):
            check_terms(rule["weight"]["terms"])
    for part in [fallback, *(rule.get("statistics", {}) for rule in rules["rules"])]:
        counts = part.get("class_counts")
        _require(counts is None or len(counts) == len(keys), "class counts must fit", counts)


def _check_domain(domain: Any, n_features: int) -> None:
    """Check that the domain that is stored with rules is a box."""
    if domain is None:
        return
    lower, upper = domain["lower"], domain["upper"]
    is_box = len(lower) == len(upper) == len(domain.get("missing") or lower) == n_features
    is_box = is_box and all(low <= high for low, high in zip(lower, upper, strict=True))
    features = set()
    for j, values in domain.get("categories", ()):
        keys = _keys(values) if isinstance(values, list) else set()
        is_box = is_box and type(j) is int and 0 <= j < n_features and j not in features
        is_box = is_box and (lower[j], upper[j]) == (0, len(keys)) and len(keys) == len(values)
        features.add(j)
    _require(is_box, "the domain of rules must be a box")


# --- 5. scores ---


def _score(name: str, p: float, r: float, c: float, weights: Mapping[str, float]) -> float:
    """Return a score from performance or loss p, number of rules r and completeness c."""
    if name == "ice":
        readable = _falling_sigmoid(0.3 * (weights["rho"] * r) - 5)
        return _falling_sigmoid(5 * (weights["phi"] * (1 - p) - 1)) * readable * c
    if name == "fire":
        steps = r / weights["psi"]
        is_noise = abs(steps - round(steps)) <= 32 * 2.0**-52 * steps
        return p * float(round(steps) if is_noise else math.ceil(steps)) * r**0.05
    return p * r * (2 - c)


def _falling_sigmoid(x: float) -> float:
    """Return 1 / (1 + e^x)."""
    return 1 / (1 + math.exp(x)) if x < 700 else 0.0


def _prediction_term(score: str, metric: str, value: float) -> float:
    """Return the performance or loss in the formula of a score, from a metric."""
    return 1 - value if score != "ice" and metric in PERFORMANCES else value


# --- 6. volume ---


def _covered_volume(rules: Any, domain: Any, budget: Budget) -> Fraction | None:
    """Return the share of the domain in which some rule holds; None if it cannot be computed.

    The domain is divided feature by feature into parts that conditions distinguish. Missing values,
    and each category, are separate parts.
    """
    if not all(rule["if"] for rule in rules):
        return Fraction(1)
    conditions_of: dict[int, list[Any]] = {}
    for i, rule in enumerate(rules):
        for condition in rule["if"]:
            if condition["type"] not in ("interval", "one_of", "missing"):
                return None
            conditions_of.setdefault(condition["feature"], []).append((i, condition))
    features = sorted(conditions_of)
    all_rules = frozenset(range(len(rules)))
    parts = [_divide_feature(domain, j, [c for _, c in conditions_of[j]]) for j in features]
    last_feature = dict.fromkeys(all_rules, -1)
    last_feature |= {i: k for k, j in enumerate(features) for i, _ in conditions_of[j]}
    n_parts = 0

    @cache
    def covered_share(k: int, open_rules: frozenset[int]) -> Fraction:
        """Return the share in which an open rule holds, given the parts of the first k features."""
        nonlocal n_parts
        if any(last_feature[i] < k for i in open_rules):
            return Fraction(1)
        shares: dict[frozenset[int], Fraction] = defaultdict(Fraction)
        for value, share in parts[k]:
            n_parts += 1 + (len(open_rules) + len(conditions_of[features[k]])) // 100
            budget.check_time()
            if n_parts > _MAX_VOLUME_PARTS:
                raise LimitError("time")
            excluded = {
                i
                for i, c in conditions_of[features[k]]
                if i in open_rules and not _holds({**c, "feature": 0}, [value])
            }
            shares[open_rules - excluded] += share
        terms = (share * covered_share(k + 1, i) for i, share in shares.items() if i and share)
        return sum(terms, Fraction(0))

    try:
        return covered_share(0, all_rules)
    except (LimitError, RecursionError):
        return None


def _divide_feature(domain: Any, j: int, conditions: Sequence[Any]) -> list[tuple[Any, Fraction]]:
    """Return one value of each part of a feature that conditions distinguish, with its share."""
    missing_share = Fraction(domain["missing"][j])
    missing = [(None, missing_share)] if missing_share else []
    if j in domain["categories"]:
        categories = domain["categories"][j]
        share = (1 - missing_share) / len(categories)
        return [*((value, share) for value in categories), *missing]
    low, high = domain["lower"][j], domain["upper"][j]
    if low == high:
        return [(low, 1 - missing_share), *missing]
    bounds = {c[side] for c in conditions for side in ("lower", "upper") if side in c}
    cuts = [Fraction(v) for v in (low, *sorted(b for b in bounds if low < b < high), high)]
    scale = (1 - missing_share) / (cuts[-1] - cuts[0])
    # As a float, the midpoint of neighboring floats would be one of them.
    return [*(((a + b) / 2, (b - a) * scale) for a, b in pairwise(cuts)), *missing]


# --- the steps of a check ---


class _Check:
    """Steps of the check of a certificate that matches the schema."""

    def __init__(self, data: Any, rows: _Rows, budget: Budget) -> None:
        self.data, self.rows, self.budget = data, rows, budget
        #: Sentences on parts that cannot be checked.
        self.unchecked: list[str] = []
        #: Sentences on unchecked parts on which no claim depends.
        self.notes: list[str] = []
        self.everything = range(len(rows.index))
        self.all_rows = (1 << len(rows.index)) - 1
        self._condition_rows: dict[str, int] = {}
        self._test_rows: dict[str, list[int]] = {}
        self._largest_f1: dict[tuple[float, int], float] = {}
        #: Prediction term and completeness of the given rules; None if they cannot be computed.
        self.given_term: float | None = None
        self.given_completeness: float | None = None
        #: Verified lower bounds of the loss, and upper bounds of F1, per kind of rules and size.
        self.verified_losses: dict[str, list[Fraction]] = {}
        self.verified_f1: dict[int, float] = {}
        #: Metrics and sizes of the best rules found.
        self.incumbents: dict[str, list[tuple[Fraction, int]]] = {}
        self.incumbent_f1: dict[int, tuple[Fraction, int]] = {}
        self._check_settings()
        self._check_reference()

    def _check_settings(self) -> None:
        """Check score, metric and weights, and the references of all rules."""
        data, task = self.data, self.rows.task
        self.metric, self.weights = data["settings"]["metric"], data["settings"]["weights"]
        self.score, self.loss = data["score"], LOSS_OF_METRIC[self.metric]
        self._require_metric_of_task(self.metric)
        if self.score not in _SCORES:
            self.unchecked.append(
                f"The checker does not know the score {self.score!r}: not checked."
            )
        else:
            is_complete = set(self.weights) == set(_SCORES[self.score][1])
            _require(is_complete, f"{self.score} must have its weights", self.weights)
        is_performance = self.metric in PERFORMANCES
        _require(self.score != "ice" or is_performance, "the best metric for ICE must be 1")
        kinds = [frontier["kind"] for frontier in data["frontiers"]]
        _require(len(set(kinds)) == len(kinds), "kinds of rules must be distinct", kinds)
        rule_sets = []
        for frontier in data["frontiers"]:
            is_list = "max_conditions" in frontier["space"]
            _require(is_list is (frontier["kind"] == "list"), "space must fit the kind of rules")
            f1_bounds = frontier.get("f1_bounds", ())
            rule_sets += [*frontier["rules"], *(bound["rules"] for bound in f1_bounds)]
        for rules in filter(None, rule_sets):
            names = rules["feature_names"]
            _require(names == self.rows.names, "rules must have the features of the rows", names)
        for rules in filter(None, [*rule_sets, data["given"]["rules"]]):
            _check_references(rules, task)
        if data.get("held_out") is not None:
            self.notes.append("The scores on held-out rows are not checked; that needs the search.")

    def _require_metric_of_task(self, metric: str) -> None:
        is_classification = LOSS_OF_METRIC[metric] == "errors"
        is_of_task = is_classification is (self.rows.task == "classification")
        _require(is_of_task, f"metrics must be of {self.rows.task}", metric)

    def _check_reference(self) -> None:
        """Check the name of the reference if the passed target has a name."""
        stated, name = self.data["rows"]["reference"], self.rows.target_name
        self.reference = stated if stated == name else "the passed y"
        is_named = name is None or stated in (name, "y", _BLACK_BOX)
        _require(is_named, f"the reference must be the passed {name!r}", stated)
        if stated not in (name, "y"):
            self.notes.append(
                f"The name of the reference, {stated!r}, is not checked: y has no name."
            )

    # --- sets of rows ---

    def _rows_of(self, condition: Any, order: Sequence[int]) -> int:
        """Return the rows for which a condition holds, as bits."""
        key = json.dumps([condition, order])
        if key not in self._condition_rows:
            condition = json.loads(json.dumps(condition))  # a copy, in which keys are cached
            bits = bytearray(len(self.rows.index))
            step = max(1, 1000 // _n_parts(condition))
            for position, i in enumerate(self.rows.index):
                if position % step == 0:
                    self.budget.check_time()
                row = self.rows.values[i]
                bits[position] = _holds(condition, [row[j] for j in order])
            self._condition_rows[key] = _to_bits(np.frombuffer(bits, dtype=np.uint8))
            self.budget.check_memory(len(self._condition_rows) * len(bits) / 8)
        return self._condition_rows[key]

    def _order_of(self, rules: Any) -> list[int]:
        """Return the column of each feature of rules."""
        names = rules["feature_names"]
        _require(set(names) <= set(self.rows.names), "rules must use columns of the rows", names)
        return [self.rows.names.index(name) for name in names]

    def _premises(self, rules: Any) -> list[int]:
        """Return for each rule the rows for which it holds, as bits."""
        order, premises = self._order_of(rules), []
        for rule in rules["rules"]:
            rows = self.all_rows
            for condition in rule["if"]:
                rows &= self._rows_of(condition, order)
            premises.append(rows)
        return premises

    def _predict(self, rules: Any) -> tuple[list[int], list[Any]]:
        """Return the rows that each rule predicts, as bits, and the prediction of each row."""
        premises, columns = self._premises(rules), self._order_of(rules)
        order = list(range(len(premises)))
        if not (rules["ordered"] or rules.get("disjoint", False)):
            order.sort(key=lambda i: _priority(rules, i), reverse=True)
        predictions: list[Any] = [None] * len(self.rows.index)
        open_rows = self.all_rows
        parts = [0] * len(premises)
        for k in order:
            parts[k] = premises[k] & open_rows
            open_rows &= ~premises[k]
            then = rules["rules"][k]["then"]
            self.budget.check_time()
            for i in _members(parts[k]):
                predictions[i] = then
                if isinstance(then, dict):
                    row = self.rows.values[self.rows.index[i]]
                    values = [row[j] for j in columns]
                    predictions[i] = _linear_sum(then["intercept"], then["terms"], values)
        return parts, predictions

    # --- 6. the given rules ---

    def check_given_rules(self) -> list[str]:
        """Check the size, the completeness and the metrics of the given rules."""
        stated, rows = self.data["given"], self.rows
        rules = stated["rules"]
        if rules is None:
            self.unchecked.append("The given rules are not in the certificate: not checked.")
            return []
        n_rules = len(rules["rules"])
        _require(stated["n_rules"] == n_rules, f"n_rules must be {n_rules}", stated["n_rules"])
        if rules.get("voting"):
            self.unchecked.append("The given rules predict by a vote: not checked.")
            return []
        parts, predictions = self._predict(rules)
        covered = _members(sum(parts))
        share = Fraction(rows.weight_of(covered), rows.total)
        _require_equal("completeness by rows", stated["completeness_instances"], share)
        fallback = (rules.get("fallback") or {}).get("output")
        all_predictions = predictions
        if rows.task == "regression" and len(covered) < len(predictions):
            default = float(rows.mean(self.everything)) if fallback is None else fallback
            all_predictions = [default if p is None else p for p in predictions]
        required = f"{self.metric} {_SCORES.get(self.score, ('', '', 'ignore'))[2]}"
        _require(required in stated["metrics"], f"the given rules must have the {required}")
        for key, value in stated["metrics"].items():
            name, policy = key.split(" ")
            self._require_metric_of_task(name)
            counts_all = policy == "penalize"
            metric_rows = self.everything if counts_all else covered
            _require(metric_rows, f"{key} must be defined, but no row is covered")
            exact = rows.metric(name, all_predictions if counts_all else predictions, metric_rows)
            _require_equal(
                f"{key} of the given rules", value, exact, rows.metric_error(name, metric_rows)
            )
            if key == required:
                self.given_term = _prediction_term(self.score, name, float(exact))
        self._check_completeness(rules, stated["completeness_volume"], share)
        return ["The given rules have the stated size and metrics."]

    def _check_completeness(self, rules: Any, stated: float, share_of_rows: Fraction) -> None:
        """Check the completeness by volume in the domain of these rows."""
        if self.data["settings"]["completeness"] == "instances":
            self.given_completeness = float(share_of_rows)
        domain = self._domain_of_rows(rules)
        volume = _covered_volume(rules["rules"], domain, self.budget)
        if volume is not None and rules.get("disjoint", False):
            volumes = [_covered_volume([rule], domain, self.budget) for rule in rules["rules"]]
            is_disjoint = sum(one or 0 for one in volumes) <= volume + Fraction(1e-12)
            _require(is_disjoint, "disjoint rules must not overlap")
        sentence = "Completeness by volume of the given rules"
        if volume is None:
            sentence += " was not checked."
        elif abs(stated - volume) <= _VOLUME_TOLERANCE:
            if self.given_completeness is None:
                self.given_completeness = float(volume)
            return
        elif abs(stated - volume) < _ESTIMATE_TOLERANCE:
            sentence += " is an estimate and was not checked."
        else:
            is_of_domain = self._is_volume_of_stated_domain(rules, stated)
            _require(is_of_domain, f"completeness by volume must be {float(volume)!r}", stated)
            sentence += (
                " was not checked, because their domain differs from the domain of these rows. "
                f"In the domain of these rows, it is {float(volume):.3f}."
            )
        # Scores with completeness by rows do not depend on the volume.
        (self.unchecked if self.given_completeness is None else self.notes).append(sentence)

    def _domain_of_rows(self, rules: Any) -> Any:
        """Return the domain of the rows with positive weight, for the features of rules."""
        kinds: dict[int, set[str]] = defaultdict(set)
        for condition in (c for rule in rules["rules"] for c in rule["if"] if "feature" in c):
            kinds[condition["feature"]].add(condition["type"])
        domain: dict[str, Any] = {"lower": {}, "upper": {}, "categories": {}, "missing": {}}
        order = self._order_of(rules)
        for j, types in kinds.items():
            column = self._column(order[j])
            values = [value for value in column if value is not None]
            missing = [i for i, value in enumerate(column) if value is None]
            domain["missing"][j] = Fraction(self.rows.weight_of(missing), self.rows.total)
            is_text = any(isinstance(value, str) for value in values)
            if values and "interval" not in types and (is_text or "one_of" in types):
                domain["categories"][j] = list({_key(v): v for v in values}.values())
                continue
            numbers = [] if is_text else [float(v) for v in values if math.isfinite(float(v))]
            domain["lower"][j] = min(numbers, default=0.0)
            domain["upper"][j] = max(numbers, default=0.0)
        return domain

    def _column(self, j: int) -> list[Any]:
        """Return the values of a column in the rows with positive weight."""
        return [self.rows.columns[j][i] for i in self.rows.index]

    def _is_volume_of_stated_domain(self, rules: Any, stated: float) -> bool:
        """Return whether the volume is correct in the domain that is stored with the rules."""
        domain = rules.get("domain")
        if domain is None:
            return False
        missing = domain.get("missing") or [0.0] * len(domain["lower"])
        domain = domain | {"categories": dict(domain.get("categories", ())), "missing": missing}
        volume = _covered_volume(rules["rules"], domain, self.budget)
        return volume is not None and abs(stated - volume) <= _VOLUME_TOLERANCE

    # --- 7. cuts ---

    def _tests(self, cuts: Any) -> list[int]:
        """Return the distinct tests that split the rows, each as a bit mask of one side."""
        key = json.dumps(cuts)
        if key in self._test_rows:
            return self._test_rows[key]
        tests: set[int] = set()
        for j in range(len(self.rows.names)):
            column = self._column(j)
            missing = _to_bits(np.array([value is None for value in column]))
            thresholds = cuts["thresholds"].get(str(j), ())
            sides: list[int] = []
            if thresholds:
                numbers = np.array([math.nan if v is None else float(v) for v in column])
                sides += [_to_bits(numbers <= cut) for cut in thresholds]
            value_sets = [[value] for value in cuts["categories"].get(str(j), ())]
            for values in [*value_sets, *cuts.get("category_sets", {}).get(str(j), ())]:
                keys = _keys(values)
                sides.append(_to_bits(np.array([_key(v) in keys for v in column])))
            column_tests = {side | extra for side in sides for extra in (0, missing)}
            column_tests |= {missing} if j in cuts["missing_features"] else set()
            self.budget.check_time()
            self.budget.check_memory((len(tests) + len(column_tests)) * len(column) / 8)
            tests |= {min(test, self.all_rows ^ test) for test in column_tests}
        self._test_rows[key] = sorted(tests - {0})
        return self._test_rows[key]

    def check_cuts(self, cuts: Any) -> None:
        """Check that the cuts are those in the description of the space."""
        names = self.rows.names
        tables = cuts["thresholds"], cuts["categories"], cuts.get("category_sets", {})
        columns = {*map(str, cuts["missing_features"])}.union(*tables)
        is_valid = cuts["n_features"] == len(names)
        is_valid = is_valid and columns <= {str(j) for j in range(len(names))}
        _require(is_valid, "cuts must be of existing columns", cuts["n_features"], columns)
        for values in cuts["thresholds"].values():
            is_increasing = all(first < second for first, second in pairwise(values))
            _require(is_increasing, "cuts must increase", values)
        for values in cuts["categories"].values():
            _require(len(_keys(values)) == len(values), "categories must be distinct", values)
        is_stated = self.data["settings"].get("stated_cuts", False)
        for j, name in enumerate(names):
            thresholds, categories, sets = (table.get(str(j)) for table in tables)
            observed = [value for value in self.rows.columns[j] if value is not None]
            is_text = any(isinstance(value, str) for value in observed)
            # In a column without values, no test splits the rows.
            has_missing = 0 < len(observed) < len(self.rows.columns[j])
            tests_missing = j in cuts["missing_features"]
            is_cut = bool(thresholds) or categories is not None or sets is not None
            is_separated = tests_missing or not (is_cut and has_missing)
            _require(is_separated, f"a test must separate the missing values of {name}")
            are_numbers = not thresholds or not (is_text or categories is not None)
            _require(are_numbers, f"texts of {name} must not be compared with numbers")
            if is_stated:
                continue
            is_exact = has_missing is tests_missing
            _require(is_exact, f"{name} must have tests for missing values if some are missing")
            self._check_category_sets(name, categories or (), sets or ())
            if categories is not None:
                is_numeric = all(type(value) in (int, float) for value in observed)
                is_declared = name in self.rows.declared or not (observed and is_numeric)
                _require(is_declared, f"numbers of {name} must not be categories")
                others = _keys(observed) - _keys(categories)
                _require(not others, f"tests must separate all values of {name}", *others)
            else:
                _require(not is_text, f"cuts must separate the values of {name}")
                self._check_thresholds(name, observed, thresholds or ())

    def _check_category_sets(self, name: str, single: Any, sets: Any) -> None:
        """Check that a feature has the sets of categories of the given rules, and no others."""
        required = {
            _keys(c["values"] if c["type"] == "one_of" else [v for v in single if _is_within(c, v)])
            for c in self._given_conditions(name)
            if c["type"] == "one_of" or (c["type"] == "interval" and single)
        } - {frozenset()}
        listed = set(map(_keys, sets))
        separated = listed | {_keys([value]) for value in single}
        self._require_cuts(f"sets of categories of {name}", separated, listed, required)

    def _require_cuts(self, name: str, separated: Any, listed: Any, required: Any) -> None:
        """Require the cuts that the certificate describes, and no others if these are known."""
        _require(required <= separated, f"tests must separate the {name}", *(required - separated))
        is_known = self.data["given"]["rules"] is not None
        is_exact = listed <= required or not is_known
        _require(is_exact, f"{name} must be described", *(listed - required))

    def _check_thresholds(
        self, name: str, observed: Sequence[Any], thresholds: Sequence[float]
    ) -> None:
        """Check the thresholds of a numeric feature.

        A threshold is required at each position of :func:`_cut_positions`, and at each bound of the
        given rules. If there are given rules, no other threshold is allowed.
        """
        numbers = sorted(map(float, observed))
        values = sorted(set(numbers))
        max_cuts = self.data["settings"]["cuts_per_feature"]
        described = set(_cut_positions(numbers, values, max_cuts, self.budget))
        for condition in self._given_conditions(name):
            if condition["type"] == "interval":
                for side, is_below in (("upper", True), ("lower", False)):
                    if side in condition:
                        is_closed = condition.get(f"{side}_closed", is_below)
                        bisect = bisect_right if is_closed is is_below else bisect_left
                        described.add(bisect(values, condition[side]))
        positions = {bisect_right(values, cut) for cut in thresholds}
        ends = {0, len(values)}
        self._require_cuts(f"cuts of {name}", positions, positions - ends, described - ends)

    def _given_conditions(self, name: str) -> list[Any]:
        """Return the conditions of the given rules on a feature, including nested ones."""
        rules = self.data["given"]["rules"] or {"rules": [], "feature_names": []}
        conditions = [c for rule in rules["rules"] for c in rule["if"]]
        for condition in conditions:  # nested conditions are appended
            conditions += condition.get("conditions", ())
        features = rules["feature_names"]
        return [c for c in conditions if "feature" in c and features[c["feature"]] == name]

    # --- 8. the best rules found ---

    def check_incumbents(self, frontier: Any) -> str:
        """Check the losses, metrics and leaves of the best rules found for each size."""
        kind, lower, upper = frontier["kind"], frontier["lower"], frontier["upper"]
        _require(frontier["loss"] == self.loss, f"loss must be of {self.metric}", frontier["loss"])
        _require_equal("the total weight", frontier["total_weight"], self.rows.total_weight)
        names = ("lower", "upper", "status", "measured", "rules")
        lengths = {len(frontier[name]) for name in names}
        _require(len(lengths) == 1, "there must be as many bounds as rules", lengths)
        for bounds in (lower, upper):
            is_falling = all(first >= second for first, second in pairwise(bounds))
            _require(is_falling, "bounds must not grow with the number of rules", bounds)
        for low, high, status in zip(lower, upper, frontier["status"], strict=True):
            is_consistent = low == high if status == "optimal" else low <= high
            _require(is_consistent, "lower and upper bounds must be consistent", low, high, status)
        if kind == "list":
            self._check_list_space(frontier["space"])
        self.incumbents[kind] = [self._check_incumbent(frontier, i) for i in range(len(lower))]
        for bound in frontier.get("f1_bounds", ()):
            size = bound["max_leaves"]
            is_tree = kind == "tree" and size <= len(lower) and self.loss == "errors"
            _require(is_tree, "F1 must be bounded for trees of the space", size)
            _require(size not in self.incumbent_f1, "the F1 must be bounded once", size)
            self.incumbent_f1[size] = self._check_f1_incumbent(frontier, bound)
        return f"{kind}: the best rules found have the stated losses."

    def _check_list_space(self, space: Any) -> None:
        """Check the description of the space of lists."""
        classes = None if space["classes"] is None else _keys(space["classes"])
        labels = _keys(self.rows.y) if self.rows.task == "classification" else None
        is_same = space["n_rows"] == len(self.rows.y) and classes == labels
        _require(is_same, "the space must be of these rows", space["n_rows"], space["classes"])

    def _check_incumbent(self, frontier: Any, i: int) -> tuple[Fraction, int]:
        """Check the best rules found for a size; return the certified metric and their number."""
        rules, measured, rows = frontier["rules"][i], frontier["measured"][i], self.rows
        predictions = self._check_best_rules(frontier, rules, i + 1)
        exact = rows.loss(self.loss, predictions, self.everything)
        error = rows.square_error if self.loss == "squared_error" else 0.0
        _require_equal(f"the loss of {i + 1} rules", frontier["upper"][i], exact, error)
        # R² of a single row is undefined.
        names = [name for name, loss in LOSS_OF_METRIC.items() if loss == self.loss]
        names = [name for name in names if name != "r2" or len(predictions) > 1]
        is_complete = set(measured) == {"n_rules", *names}
        is_complete = is_complete and measured["n_rules"] == len(rules["rules"])
        _require(is_complete, "the best rules must have their size and metrics", measured)
        metrics = {name: rows.metric(name, predictions, self.everything) for name in names}
        for name, metric in metrics.items():
            error = rows.metric_error(name, self.everything)
            _require_equal(name, measured[name], metric, error)
        return metrics[self.metric], len(rules["rules"])

    def _check_f1_incumbent(self, frontier: Any, bound: Any) -> tuple[Fraction, int]:
        """Check the tree with the best weighted F1 found; return its F1 and number of leaves."""
        rules, f1 = bound["rules"], Fraction(0)
        if rules is not None:
            predictions = self._check_best_rules(frontier, rules, bound["max_leaves"])
            f1 = self.rows.metric("f1_weighted", predictions, self.everything)
        error = 0.0 if rules is None else _ROUNDING
        _require_equal("the F1 of the best tree found", bound["incumbent"], f1, error)
        return f1, 0 if rules is None else len(rules["rules"])

    def _check_best_rules(self, frontier: Any, rules: Any, max_rules: int) -> list[Any]:
        """Check that rules belong to the space and have their statistics; return predictions."""
        kind, space, cuts = frontier["kind"], frontier["space"], frontier["space"]["cuts"]
        n_rules = len(rules["rules"])
        _require(n_rules <= max_rules, f"there must be at most {max_rules} rules", n_rules)
        is_kind = rules["ordered"] is (kind == "list") and not rules.get("voting")
        _require(is_kind, f"the best rules found must be a {kind}")
        max_conditions = space.get("max_conditions", math.inf)
        for rule in rules["rules"]:
            is_constant = not isinstance(rule["then"], dict)
            _require(is_constant, "rules of the space must predict constants", rule["then"])
            n_tests = sum(self._count_tests(condition, cuts) for condition in rule["if"])
            is_short = n_tests <= max_conditions
            _require(is_short, f"rules must have at most {max_conditions} conditions", n_tests)
        parts, predictions = self._predict(rules)
        # The parts are disjoint.
        _require(sum(parts) == self.all_rows, "the best rules found must cover all rows")
        if kind == "tree":
            is_partition = parts == self._premises(rules)
            _require(is_partition, "leaves of a tree must be disjoint")
            self._check_tree([part for part in parts if part], cuts)
        for rule, part in zip(rules["rules"], parts, strict=True):
            self._check_statistics(rules, rule.get("statistics", {}), _members(part))
        return predictions

    def _check_tree(self, leaves: list[int], cuts: Any) -> None:
        """Check that some tree of the space has these leaves."""
        tests = self._tests(cuts)
        groups = [leaves]
        while groups:
            group = groups.pop()
            if len(group) < 2:
                continue
            for test in tests:
                inside = [leaf for leaf in group if leaf & test]
                if 0 < len(inside) < len(group) and not any(leaf & ~test for leaf in inside):
                    # If there is a tree for one valid first test, there is one for all of them.
                    groups += [inside, [leaf for leaf in group if not leaf & test]]
                    break
            else:
                _require(False, "leaves must be those of a tree of the space")

    def _count_tests(self, condition: Any, cuts: Any) -> int:
        """Return the number of tests of the space that a condition consists of."""
        kind, feature = condition["type"], str(condition.get("feature"))
        if kind == "interval":
            bounds = {condition[side] for side in ("lower", "upper") if side in condition}
            are_cuts = bounds <= set(cuts["thresholds"].get(feature, ()))
            _require(are_cuts, "bounds must be cuts of the space", bounds)
            is_test = condition.get("upper_closed", True) and not condition.get("lower_closed")
            _require(is_test, "tests of the space must be x ≤ c or x > c", condition)
            if bounds:
                return len(bounds)
            kind = "missing"  # an interval without bounds holds for all known values
        if kind == "one_of":
            # A negated condition on several values is one test per value, or a test of a set.
            keys = _keys(condition["values"])
            if keys in map(_keys, cuts.get("category_sets", {}).get(feature, ())):
                return 1
            are_cuts = keys <= _keys(cuts["categories"].get(feature, ()))
            are_cuts = are_cuts and (condition.get("negated", False) or len(keys) == 1)
            _require(are_cuts, "tests of categories must be in the space", condition["values"])
            return len(keys)
        is_test = kind == "missing" and condition["feature"] in cuts["missing_features"]
        _require(is_test, "conditions must be tests of the space", condition)
        return 1

    def _check_statistics(self, rules: Any, statistics: Any, members: Sequence[int]) -> None:
        """Check the statistics of a rule."""
        rows, weight = self.rows, self.rows.weight_of(members)
        exact: dict[str, tuple[Any, float]] = {"n_rows": (Fraction(weight, rows.unit), 1e-12)}
        counts = statistics.get("class_counts", ())
        for label, count in zip(rules["classes"] or (), counts, strict=False):
            of_class = [i for i in members if _key(rows.targets[i]) == _key(label)]
            class_weight = Fraction(rows.weight_of(of_class), rows.unit)
            _require_equal("a class count", count, class_weight, 1e-12)
        if rows.task == "classification":
            has_mean = "mean" in statistics or "standard_deviation" in statistics
            _require(not has_mean, "class labels must not have a mean")
        elif weight:
            error = _ROUNDING * float(max(map(abs, rows.targets)))
            exact["mean"] = rows.mean(members), error
            variance = rows.squares(members) * rows.unit / weight
            exact["standard_deviation"] = math.sqrt(variance), error
        for name, (number, error) in exact.items():
            if name in statistics:
                _require_equal(f"{name} of a rule", statistics[name], number, error)

    # --- 9. bounds of the loss ---

    def check_bounds(self, frontier: Any, n_remaining: int) -> list[str]:
        """Verify the bounds of one kind of rules, within an equal share of the remaining time.

        `n_remaining` is the number of kinds that have not been verified, including this one.
        """
        f1_bounds = [b for b in frontier.get("f1_bounds", ()) if b["upper_bound"] < 1]
        budget = self.budget.share(1 / n_remaining)
        tests = self._tests(frontier["space"]["cuts"])
        loss_budget = budget.share(0.5) if f1_bounds else budget
        sentences = self.check_loss_bounds(frontier, tests, loss_budget)
        for f1_bound in f1_bounds:
            size, upper_bound = f1_bound["max_leaves"], f1_bound["upper_bound"]
            is_bound = self.incumbent_f1[size][0] <= upper_bound + _ROUNDING
            _require(is_bound, "bounds must not be below the F1 of a tree", upper_bound)
            try:
                self.verified_f1[size] = self.check_f1_bound(f1_bound, tests, budget)
            except LimitError:
                self.unchecked.append(f"tree: the bound of the F1 of {size} rules is not checked.")
            else:
                sentences.append(f"tree: no {size} rules have a weighted F1 above {upper_bound}.")
        return sentences

    def check_loss_bounds(self, frontier: Any, tests: Sequence[int], budget: Budget) -> list[str]:
        """Verify the lower bounds of the loss of all sizes."""
        kind, lower = frontier["kind"], [Fraction(bound) for bound in frontier["lower"]]
        is_list, space = kind == "list", frontier["space"]

        @cache
        def cost(bits: int) -> Fraction:
            budget.check_time()
            return self.rows.least_cost(self.loss, bits)

        @cache
        def splits() -> Sequence[int]:
            if not is_list:
                return tests
            return _list_premises(tests, self.all_rows, space["max_conditions"], budget)

        @cache
        def search() -> Search:
            return self._make_search(splits(), len(lower), is_list)

        enumerated_loss = cache(lambda: _enumerate_rules(splits(), is_list, cost, budget))
        one_rule, unavoidable = cost(self.all_rows), self._unavoidable_loss(tests, cost)
        # Solvers use floats, whose error also depends on the largest weight.
        solver_error = self.rows.total_weight * Fraction(_SOLVER_ROUNDING)
        tolerance = max(one_rule * Fraction(_WRONG), solver_error)
        tolerance += Fraction(self.rows.square_error)
        enumerated_sizes, searched_sizes, unproven = [1], [], []
        limits: set[str] = set()
        verified = [min(lower[0], one_rule)]
        for size, bound in enumerate(lower[1:], start=2):
            proven_loss = unavoidable
            try:
                if bound > unavoidable and _is_enumerable(len(splits()), size, is_list):
                    proven_loss = enumerated_loss()(self.all_rows, size)
                    enumerated_sizes.append(size)
                elif bound > unavoidable:
                    search().budget = budget.share(1 / (len(lower) - size + 1))
                    proven_loss = max(proven_loss, search().exact_bound(size, bound))
                    searched_sizes.append(size)
            except LimitError as error:
                limits.add(str(error))
                unproven.append(size)
            verified.append(min(bound, proven_loss))
        for size, (bound, proven_loss) in enumerate(zip(lower, verified, strict=True), start=1):
            is_valid = size in unproven or bound <= proven_loss + tolerance
            _require(is_valid, f"{kind}: bounds must not exceed losses", size, float(bound))
        # A proven bound for more rules is also valid for fewer rules.
        self.verified_losses[kind] = verified = list(accumulate(verified[::-1], max))[::-1]
        unproven = [size for size in unproven if lower[size - 1] > verified[size - 1] + tolerance]
        start, sentences = f"{kind}: no rules are better than its bounds for", []
        for sizes, method in (
            (enumerated_sizes, "rules; all were enumerated"),
            (searched_sizes, "rules, by the checker's own search"),
        ):
            if sizes:
                sentences.append(f"{start} {', '.join(map(str, sizes))} {method}.")
        if unproven:
            self.unchecked.append(
                f"{kind}: the bounds for {', '.join(map(str, unproven))} rules are not checked, "
                f"because the {' and '.join(sorted(limits))} limit is reached."
            )
        return sentences

    def _unavoidable_loss(self, tests: Sequence[int], cost: Callable[[int], Fraction]) -> Fraction:
        """Return the loss of rows that no test separates."""
        classes = [self.all_rows]
        for test in tests:
            self.budget.check_time()
            self.budget.check_memory(2 * len(classes) * self.all_rows.bit_length() / 8)
            classes = [part for c in classes for part in (c & test, c & ~test) if part]
        return sum(map(cost, classes), Fraction(0))

    def _matrix(self, sets: Sequence[int]) -> Any:
        """Return sets of rows as a matrix of booleans, (n_rows, n_sets)."""
        n = len(self.rows.index)
        self.budget.check_memory(3 * n * len(sets))
        raw = b"".join(one.to_bytes(-(-n // 8), "little") for one in sets)
        bits = np.frombuffer(raw, dtype=np.uint8).reshape(len(sets), -(-n // 8))
        return np.unpackbits(bits, axis=1, bitorder="little", count=n).T == 1

    def _make_search(self, splits: Sequence[int], n_sizes: int, is_list: bool) -> Search:
        """Return a search for better rules."""
        rows, labels = self.rows, list(self.rows.label_sets)
        self.budget.check_memory(16.0 * len(splits) * (2 * n_sizes if is_list else n_sizes**2))
        weights, unit = np.array([rows.w[i] for i in rows.index]), None
        if self.loss == "errors" and rows.total < 2**53:  # all sums are exact
            weights, unit = np.array(rows.weights, float), rows.unit
        codes = (labels.index(_key(value)) if labels else value for value in rows.targets)
        target, matrix = np.array(list(codes)), self._matrix(splits)
        return Search(matrix, target, weights, self.loss, unit, self.budget, is_list)

    # --- 10. bounds of the weighted F1 ---

    def check_f1_bound(self, f1_bound: Any, tests: Sequence[int], budget: Budget) -> float:
        """Verify, node by node, that no tree has a larger weighted F1; return the bound."""
        upper_bound, proof = f1_bound["upper_bound"], f1_bound["proof"]
        labels = self.rows.label_sets
        keys = [_key(label) for label in proof.get("classes", ())]
        is_complete = len(set(keys)) == len(keys) and set(labels) <= set(keys)
        _require(is_complete, "the proof must name the classes of the rows", keys)
        if len(labels) < len(keys):
            raise LimitError("class")
        target = proof["target"]
        _require(target <= upper_bound, f"the proof must be for {upper_bound}", target)
        y = np.array([keys.index(_key(value)) for value in self.rows.targets])
        w = np.array([self.rows.w[i] for i in self.rows.index])
        n = np.bincount(y, w, len(keys))
        total = float(n.sum())
        is_whole = bool((w == np.floor(w)).all()) and total < 2**53
        # If the F1 is above the target, each class has at least this F1.
        f1 = np.maximum(1 - total * (1 - target) / n, 0.0)
        high = np.where(f1 > 0, n * (2 / np.where(f1 > 0, f1, 1) - 1), total)
        low, high = f1 * n / (2 - f1) * (1 - 1e-12), np.minimum(high * (1 + 1e-12), total)
        matrix, error, size = self._matrix(tests), 0.0, f1_bound["max_leaves"]
        nodes = [(proof["root"], low, high)]
        while nodes:
            node, low, high = nodes.pop()
            budget.check_time()
            for _ in range(3):  # all predicted weights sum to the total weight
                low = np.maximum(low, total - (high.sum() - high))
                high = np.minimum(high, total - (low.sum() - low))
            if (low > high + 1e-9 * total).any():
                continue
            if "branches" in node:
                nodes += _branch(node, low, high, is_whole)
                continue
            is_leaf = len(node.get("multipliers", ())) == len(n)
            is_leaf = is_leaf and max(node["linear"], default=0) < len(n)
            _require(is_leaf, "nodes of the proof must have one multiplier per class", node)
            search = F1Search(matrix, y, w, low, high, node, budget)
            limit = total + search.constant - upper_bound * total / 2
            if not search.least_loss(size, limit) >= limit - search.error(size):
                raise LimitError("proof")  # the relaxed bound is too weak
            error = max(error, search.error(size))
        return float(upper_bound) + 2 * error / total

    # --- 12. claims ---

    def state_given_rules(self) -> list[str]:
        """Return the claims on the score and the completeness of the given rules."""
        score = self._given_score()
        if score is None or self.given_completeness is None:
            return []
        n_rows, n_rules = len(self.rows.y), self.data["given"]["n_rules"]
        rows = "this row" if n_rows == 1 else f"these {n_rows} rows"
        weight_note = " with their weights" if self.rows.is_weighted else ""
        claims = [
            f"On {rows}{weight_note}, against {self.reference}, {_count(n_rules, 'rule')} "
            f"{'has' if n_rules == 1 else 'have'} {self._describe_score(f' {score:.4f}')}."
        ]
        if self.given_completeness < 1:
            claims.append(
                "The certificate compares complete rules; the completeness of the given rules is "
                f"{self.given_completeness:.3f}."
            )
        return claims

    def _describe_score(self, value: str) -> str:
        """Return the score with the metric, the weights and the completeness in words."""
        weights = (f"{name} {weight:g}" for name, weight in sorted(self.weights.items()))
        by_rows = self.data["settings"]["completeness"] == "instances"
        completeness = ["completeness by rows"] if by_rows else []
        settings = ", ".join([METRIC_NAMES[self.metric], *weights, *completeness])
        return f"{_SCORES[self.score][0]}{value} ({settings})"

    def _given_score(self) -> float | None:
        """Return the score of the given rules, if it could be checked."""
        term, completeness = self.given_term, self.given_completeness
        if term is None or completeness is None or self.score not in _SCORES:
            return None
        return _score(self.score, term, self.data["given"]["n_rules"], completeness, self.weights)

    def _complete_score(self, metric: float, n_rules: int) -> float:
        """Return the score of complete rules from their metric; greater is better."""
        term = _prediction_term(self.score, self.metric, metric)
        sign = 1 if self.score == "ice" else -1
        return sign * _score(self.score, term, n_rules, 1.0, self.weights)

    def _best_metric(self, loss: Fraction, n_rules: int, f1: float) -> float:
        """Return the best value of the metric for losses of at least `loss`."""
        if self.metric != "f1_weighted":
            return float(self.rows.metric_of_loss(self.metric, loss, self.everything))
        key = float(loss), n_rules
        if key not in self._largest_f1:
            weights = (weight / self.rows.unit for weight in self.rows.class_weights(self.all_rows))
            self._largest_f1[key] = largest_f1(sorted(weights)[::-1], *key, self.budget)
        return min(self._largest_f1[key], f1)

    def state_claims(self, frontier: Any) -> list[str]:
        """Return the claim on one kind of rules, which depends only on verified bounds."""
        kind = frontier["kind"]
        if self.score not in _SCORES:
            return []
        sign, label = 1 if self.score == "ice" else -1, _SCORES[self.score][0]
        stated_f1 = {b["max_leaves"]: b["upper_bound"] for b in frontier.get("f1_bounds", ())}
        scored_incumbents = list(self.incumbents[kind])
        if kind == "tree" and self.metric == "f1_weighted":
            scored_incumbents += [(f1, n) for f1, n in self.incumbent_f1.values() if n]
        best_found = max(self._complete_score(float(metric), n) for metric, n in scored_incumbents)

        def best_possible(losses: Sequence[Fraction], f1: Mapping[int, float]) -> float:
            scores = [
                self._complete_score(self._best_metric(loss, size, f1.get(size, 1.0)), size)
                for size, loss in enumerate(losses, start=1)
            ]
            return max(best_found, *scores)

        verified_f1 = self.verified_f1 if kind == "tree" else {}
        verified_score = best_possible(self.verified_losses[kind], verified_f1)
        stated_score = best_possible([Fraction(bound) for bound in frontier["lower"]], stated_f1)
        is_known = any(reason.startswith(f"{kind}:") for reason in self.unchecked)
        if verified_score > stated_score + _SCORE_ROUNDING * abs(stated_score) and not is_known:
            self.unchecked.append(f"{kind}: the stated bounds of {label} are not checked.")
        space = self._describe_space(frontier)
        perfect = 1.0 if self.metric in PERFORMANCES else 0.0
        if self._complete_score(perfect, len(frontier["lower"]) + 1) <= best_found:
            space += f" (or with more {'leaves' if kind == 'tree' else 'rules'})"
        rounding = _SCORE_ROUNDING * abs(verified_score)
        best_label = "the best" if verified_score - best_found <= rounding else "the best found"
        incumbent = f"{best_label} has {label} {sign * best_found:.4f}"
        given_score = self._given_score()
        if given_score is None:
            limit = f"than {sign * math.ceil(verified_score * 1e4 - 1e-9) / 1e4:.4f}; {incumbent}."
            return [f"No {space} has a better {self._describe_score('')} {limit}"]
        gap = verified_score - sign * given_score
        margin = (
            ""
            if gap <= rounding
            else f" by more than {math.ceil(gap * 1e4 - 1e-9) / 1e4:.4f} {label}"
        )
        return [f"No {space} is better{margin}; {incumbent}."]

    def _describe_space(self, frontier: Any) -> str:
        """Describe the search space of a frontier: kind and size of the rules, and their cuts."""
        max_rules, space = len(frontier["lower"]), frontier["space"]
        size = "1 leaf" if max_rules == 1 else f"{max_rules} leaves"
        if frontier["kind"] == "list":
            size = _count(max_rules, "rule")
            size += f" with at most {_count(space['max_conditions'], 'condition')} each"
        per_feature, sets = self.data["settings"]["cuts_per_feature"], "category_sets"
        cuts = "all cuts between neighboring values"
        if self.data["settings"].get("stated_cuts", False):
            parts = (space["cuts"].get(name, {}) for name in ("thresholds", "categories", sets))
            cuts = _count(sum(len(v) for part in parts for v in part.values()), "stated cut")
        elif per_feature is not None or space["cuts"].get(sets):
            cuts = cuts if per_feature is None else f"{per_feature} cuts per feature"
            # Without the given rules, the check cannot decide which of the other cuts are theirs.
            is_unknown = self.data["given"]["rules"] is None
            cuts += " and other cuts" if is_unknown else " and those of the given rules"
        return f"decision {frontier['kind']} of at most {size} over {cuts}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _to_bits(mask: Any) -> int:
    """Return a mask of rows as bits of an integer; the first row is the lowest bit."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def _members(bits: int) -> list[int]:
    """Return the indices of the rows in a set."""
    raw = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), dtype=np.uint8)
    members: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return members


def _priority(rules: Any, i: int) -> tuple[float, float, int]:
    """Return the priority of a rule in an unordered set: purity, number of rows, position."""
    rule = rules["rules"][i]
    statistics = rule.get("statistics", {})
    counts, purity = statistics.get("class_counts"), 0.0
    if counts and sum(counts) > 0 and rules["classes"]:
        keys = [_key(label) for label in rules["classes"]]
        purity = counts[keys.index(_key(rule["then"]))] / sum(counts)
    return purity, statistics.get("n_rows", 0), -i


def _cut_positions(
    numbers: Sequence[float], values: Sequence[float], max_cuts: int | None, budget: Budget
) -> Iterator[int]:
    """Yield the positions of all cuts between the values, or of those nearest to the quantiles."""
    if max_cuts is None or len(values) - 1 <= max_cuts:
        yield from range(1, len(values))
        return
    n_below = [bisect_left(numbers, value) for value in values]
    for k in range(1, max_cuts + 1):
        quantile = k * (len(numbers) / (max_cuts + 1))
        budget.check_time()
        yield min(range(1, len(values)), key=lambda position: abs(n_below[position] - quantile))


def _branch(node: Any, low: Any, high: Any, is_whole: bool) -> list[tuple[Any, Any, Any]]:
    """Return both branches of a node on the predictions of one class."""
    k, (below, above) = node["class"], node["between"]
    is_next = is_whole and below == math.floor(below) and above == below + 1
    is_valid = k < len(low) and (above <= below or is_next)
    _require(is_valid, "branches of the proof must leave no gap between predictions", below, above)
    first_high, second_low = high.copy(), low.copy()
    first_high[k] = min(first_high[k], below)
    second_low[k] = max(second_low[k], above)
    first, second = node["branches"]
    return [(first, low, first_high), (second, second_low, high)]


# --- 9. enumeration of all rules ---


def _list_premises(
    tests: Sequence[int], all_rows: int, max_conditions: int, budget: Budget
) -> list[int]:
    """Return the distinct conjunctions of tests and their negations that split the rows."""
    sides = [side for test in tests for side in (test, all_rows ^ test)]
    premises: set[int] = set()
    level = {all_rows}
    for _ in range(max_conditions):
        longer: set[int] = set()
        for side in sides:
            budget.check_time()
            longer |= {premise & side for premise in level}
            n_bytes = 150 + 9 * all_rows.bit_length()  # of an integer and of a column of floats
            budget.check_memory((len(premises) + len(longer)) * n_bytes)
        level = longer - premises
        premises |= level
    return sorted(premises - {0, all_rows})


def _is_enumerable(n_splits: int, size: int, is_list: bool) -> bool:
    """Return whether an enumeration divides few sets of rows."""
    counts = [0.0, 1.0]
    while len(counts) <= size and counts[-1] <= _MAX_ENUMERATED:
        n = len(counts)
        # A premise or its negation is followed by a list with one rule fewer.
        n_lists, n_trees = 2 * counts[-1], sum(counts[k] + counts[n - k] for k in range(1, n))
        counts.append(n_splits * (n_lists if is_list else n_trees))
    return counts[-1] <= _MAX_ENUMERATED


def _enumerate_rules(
    splits: Sequence[int], is_list: bool, cost: Callable[[int], Fraction], budget: Budget
) -> Callable[[int, int], Fraction]:
    """Return a function that finds the smallest loss of a number of rules by enumeration.

    A tree is a test with a tree on each side, and a list is a premise with one rule for its rows
    and a list for the others.
    """

    @cache
    def least_loss(rows: int, size: int) -> Fraction:
        smallest = cost(rows)
        if size == 1 or smallest == 0:
            return smallest
        budget.check_time()
        for inside in {rows & split for split in splits} - {0, rows}:
            for n_inside in (1,) if is_list else range(1, size):
                loss = least_loss(inside, n_inside)
                if loss < smallest:
                    smallest = min(smallest, loss + least_loss(rows & ~inside, size - n_inside))
        return smallest

    return least_loss


# --- 9. search for better rules ---


class Search:
    """Search for the smallest loss of trees or lists, or for a sufficient lower bound.

    A list is a tree that tests premises, and whose side inside of each premise is a leaf. Rows that
    no test separates form one point. The loss of a set of points exceeds the loss of a subset by at
    most the `max_costs` of the other points: they have at most this loss in any leaf. The bound of
    a set therefore also bounds similar sets, and only few sets must be solved.

    The columns of `matrix` are the rows for which each test or premise holds; `y` are class indices
    or numbers. `unit` is the integer that represents a weight of 1, or None if sums are rounded.
    """

    def __init__(
        self, matrix: Any, y: Any, w: Any, loss: str, unit: Any, budget: Budget, is_list: bool
    ) -> None:
        self.loss, self.unit, self.budget, self.is_list = loss, unit, budget, is_list
        self.n_rows = len(w)
        # Single precision is exact for integers below this limit.
        dtype = np.float32 if unit is not None and w.sum() < 2**24 else np.float64
        _, row_of_point, point = np.unique(
            np.packbits(matrix, axis=1), axis=0, return_index=True, return_inverse=True
        )
        point, n = point.ravel(), len(row_of_point)
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            min_costs, max_costs = (stats.sum(axis=1) - f(axis=1) for f in (stats.max, stats.min))
        elif loss == "squared_error":
            y = y - np.average(y, weights=w)
            weight, total, squares = (np.bincount(point, v, n) for v in (w, w * y, w * y * y))
            stats, mean = np.column_stack([weight, total, squares]), total / weight
            min_costs = np.maximum(squares - total * mean, 0.0)
            max_costs = np.maximum((mean - mean.min()) ** 2, (mean.max() - mean) ** 2)
            max_costs = min_costs + weight * max_costs
        else:  # medians require single rows, sorted by target
            row_of_point = np.argsort(y, kind="stable")
            self.y, stats = y[row_of_point], w[row_of_point, None]
            min_costs = np.zeros(len(stats))
            max_costs = stats[:, 0] * np.maximum(self.y - y.min(), y.max() - self.y)
        budget.check_memory(float(dtype().itemsize) * len(stats) * matrix.shape[1])
        self.matrix = matrix[row_of_point].astype(dtype)
        self.stats = stats.astype(dtype)
        self.min_costs, self.max_costs = min_costs.astype(dtype), max_costs.astype(dtype)
        #: Smaller sums of weights count as rounding errors.
        self.min_weight = _MIN_WEIGHT * float(w.sum())
        #: Lower bound by set of points and number of rules, and whether it is the smallest loss.
        self.cache: dict[tuple[bytes, int], tuple[float, bool]] = {}
        self.n_cached_bytes = 0

    def error(self, size: int) -> float:
        """Return the largest rounding error of a loss: of sums of all rows, once per rule."""
        if self.unit is not None:
            return 0.0
        share = 8 * (self.n_rows + 100) * 2.0**-53
        if self.loss == "squared_error":
            share += 4 * _MIN_WEIGHT  # smaller weights have at most this share of the costs
        return size * share * float(self.max_costs.sum(dtype=float))

    def exact_bound(self, size: int, bound: Fraction) -> Fraction:
        """Return a lower bound of the loss, which is the smallest loss if it is below `bound`."""
        if self.unit is None:
            least_loss = Fraction(self.least_loss(size, float(bound)))
            return max(Fraction(0), least_loss - Fraction(self.error(size)))
        return Fraction(self.least_loss(size, math.ceil(bound * self.unit))) / self.unit

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        if size > 2:  # the matrices of the children have about half of the points each
            self.budget.check_memory(3.0 * self.matrix.nbytes)
        return self._solve(np.arange(len(self.stats)), size, limit)[0]

    def _loss_of_sums(self, sums: Any) -> Any:
        """Return the loss of the best constant from the sums of the points' statistics."""
        if self.loss == "errors":
            return sums.sum(axis=-1) - sums.max(axis=-1)
        weight = sums[..., 0]
        weight = np.where(weight > self.min_weight, weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / weight), 0.0)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound for rules that predict at most as many classes as their number."""
        if self.loss != "errors" or size >= sums.shape[-1]:
            return np.zeros(sums.shape[:-1], dtype=sums.dtype)
        return np.sort(sums, axis=-1)[..., : sums.shape[-1] - size].sum(axis=-1)

    def _leaf_loss(self, points: Any) -> float:
        """Return the loss of the best constant for some points."""
        if self.loss != "absolute_error":
            return float(self._loss_of_sums(self.stats[points].sum(axis=0)))
        return float(self._median_losses(points, np.ones((len(points), 1)))[0])

    def _median_losses(self, points: Any, matrix: Any) -> Any:
        """Return the absolute errors around the median of the points in each column."""
        weights, y = matrix * self.stats[points], self.y[points]
        sums = np.cumsum(weights, axis=0)
        median_row = (sums < sums[-1] / 2).sum(axis=0).clip(0, len(y) - 1)
        return (np.abs(y[:, None] - y[median_row]) * weights).sum(axis=0)

    def _split(self, points: Any) -> tuple[Any, Any, Any]:
        """Return the matrix of the tests that split points, and sums and losses of both sides."""
        matrix = self.matrix if len(points) == len(self.matrix) else self.matrix[points]
        if not self.is_list:
            count = matrix.sum(axis=0)
            matrix = matrix[:, (count > 0) & (count < len(points))]
        stats = self.stats[points]
        inside = matrix.T @ stats
        sums = inside, stats.sum(axis=0) - inside
        if self.loss == "absolute_error":
            return matrix, sums, [self._median_losses(points, m) for m in (matrix, 1 - matrix)]
        return matrix, sums, list(map(self._loss_of_sums, sums))

    def _solve(self, points: Any, size: int, limit: float) -> tuple[float, bool]:
        """Bound the smallest loss of at most `size` rules on `points` from below.

        Also return whether the bound is this loss, which is certain for bounds below `limit`.
        """
        key = points.tobytes(), size
        bound, is_least = self.cache.get(key, (-math.inf, False))
        if is_least or bound >= limit:
            return bound, is_least
        self.budget.check_time()
        leaf_loss, bound = self._leaf_loss(points), float(self.min_costs[points].sum())
        bound = max(bound, float(self._class_bound(self.stats[points].sum(axis=0), size)))
        if size == 1 or leaf_loss <= bound:
            result = leaf_loss, True
        elif bound >= limit:
            result = bound, False
        else:
            result = self._branch(points, size, limit, leaf_loss)
        self.n_cached_bytes += len(key[0]) + 200
        self.budget.check_memory(2 * self.n_cached_bytes)
        self.cache[key] = result
        return result

    def _branch(self, points: Any, size: int, limit: float, leaf_loss: float) -> tuple[float, bool]:
        """Solve the children of the tests at the root until the bound is proven."""
        matrix, sums, losses = self._split(points)
        n_tests = matrix.shape[1]
        if not n_tests:
            return leaf_loss, True
        best = min(leaf_loss, float((losses[0] + losses[1]).min()))
        if size == 2:
            return best, True
        lower, is_least = self._child_bounds(points, size, matrix, sums, losses)
        max_costs = self.max_costs[points]
        if self.is_list:  # lists with one rule fewer are also solved, to bound all remaining points
            fewer, is_solved = (best, True) if size == 3 else self._solve(points, size - 1, limit)
            best = min(best, fewer) if is_solved else best
            covered_costs = max_costs @ matrix
            self._raise_bounds(lower, is_least, 1, size - 1, fewer - covered_costs)
        left_sizes = [1] if self.is_list else list(range(1, size))
        while True:
            self.budget.check_time()
            totals = np.array([lower[0][k] + lower[1][size - k] for k in left_sizes])
            total, needed = float(totals.min()), min(best, limit)
            if total >= needed:
                return (best, True) if best <= limit else (min(total, best), False)
            position = int(totals.argmin())
            if self.is_list and size == 3 and len(points) < len(self.stats):
                # All premises must be solved or bounded; large premises bound more of the others.
                position = int(np.where(totals[0] < needed, covered_costs, -1).argmax())
            sizes = left_sizes[position // n_tests], size - left_sizes[position // n_tests]
            test = position % n_tests
            open_sides = [side for side in (0, 1) if not is_least[side][sizes[side]][test]]
            if not open_sides:
                best = float(totals.flat[position])
                continue
            side = max(open_sides, key=sizes.__getitem__)
            n_leaves = sizes[side]
            is_child = matrix[:, test] == 1 - side
            # Rounded sums of sufficient bounds must reach the limit.
            target = needed if self.unit is not None else needed + 1e-12 * abs(needed)
            child_limit = target - float(lower[1 - side][sizes[1 - side]][test])
            bound, is_solved = self._solve(points[is_child], n_leaves, child_limit)
            costs = np.where(is_child, max_costs, 0)
            costs_inside = costs @ matrix
            self._raise_bounds(lower, is_least, 0, n_leaves, bound - (costs.sum() - costs_inside))
            self._raise_bounds(lower, is_least, 1, n_leaves, bound - costs_inside)
            lower[side][n_leaves][test] = max(bound, lower[side][n_leaves][test])
            is_least[side][n_leaves][test] = is_solved

    @staticmethod
    def _raise_bounds(lower: Any, is_least: Any, side: int, n_leaves: int, bounds: Any) -> None:
        """Raise lower bounds of one side of all tests, for at most this number of leaves."""
        new_bounds = np.minimum(bounds, lower[side][1])
        for k, bound in lower[side].items():
            if 1 < k <= n_leaves:
                np.maximum(bound, new_bounds, out=bound, where=~is_least[side][k])

    def _child_bounds(
        self, points: Any, size: int, matrix: Any, sums: Any, losses: Any
    ) -> tuple[list[dict[int, Any]], list[dict[int, Any]]]:
        """Return lower bounds by side, leaves and test, and whether they are smallest losses."""
        n_tests = matrix.shape[1]
        inside = self.min_costs[points] @ matrix
        costs = inside, self.min_costs[points].sum() - inside
        lower = [{1: side_losses.copy()} for side_losses in losses]
        is_least = [{1: np.ones(n_tests, dtype=bool)} for _ in losses]
        for side in (1,) if self.is_list else (0, 1):
            for k in (size - 1,) if self.is_list else range(2, size):
                bound = np.maximum(costs[side], self._class_bound(sums[side], k))
                lower[side][k] = np.minimum(bound, losses[side])
                is_least[side][k] = np.zeros(n_tests, dtype=bool)
        is_cheap = float(len(points)) * n_tests**2 < _MAX_PAIR_PRODUCTS
        is_small = 48.0 * n_tests**2 * self.stats.shape[1] < self.budget.n_bytes
        if self.loss != "absolute_error" and is_cheap and is_small and not self.is_list:
            for side, side_losses in enumerate(self._two_leaf_losses(points, matrix)):
                lower[side][2], is_least[side][2] = side_losses, np.ones(n_tests, dtype=bool)
        return lower, is_least

    def _two_leaf_losses(self, points: Any, matrix: Any) -> list[Any]:
        """Return the smallest loss of each side of each test with two leaves, from all pairs."""
        stats = self.stats[points]
        total = stats.sum(axis=0)
        joint = np.stack([matrix.T @ (matrix * stats[:, [k]]) for k in range(stats.shape[1])], -1)
        test_sums = matrix.T @ stats
        inside = self._loss_of_sums(joint) + self._loss_of_sums(test_sums[:, None] - joint)
        other_sums = test_sums[None] - joint
        outside = self._loss_of_sums(other_sums)
        outside = outside + self._loss_of_sums(total - test_sums[:, None] - other_sums)
        return [inside.min(axis=1), outside.min(axis=1)]


# --- 10. search for trees with a larger weighted F1 ---


class F1Search(Search):
    """Search for trees that minimize the weight of rows minus the gains in the weighted F1.

    Let n be the weight of a class, and let the weight predicted as this class be between `low` and
    `high`. A leaf with weight s and weight c of the class gains n c / (n + max(s, low)). With the
    linear bound, it gains n c / (n + high) minus a cost of n min(n, high) / ((n + low) (n + high))
    per row; the cost of `high` rows is added as a constant. A positive Lagrange multiplier
    penalizes rows above `high`, a negative one penalizes rows below `low`.

    `node` is a leaf of the proof, with its multipliers and the classes with the linear bound.
    """

    def __init__(
        self, matrix: Any, y: Any, w: Any, low: Any, high: Any, node: Any, budget: Budget
    ) -> None:
        self.n = n = np.bincount(y, w, len(low))
        self.low, self.high = low, high
        self.is_linear = np.isin(np.arange(len(n)), node["linear"])
        multipliers = np.array(node["multipliers"], dtype=float)
        max_ratio = np.minimum(np.minimum(n, high) / (n + low), 0.5)
        slope = n * max_ratio / (n + high) * self.is_linear
        row_costs = slope + multipliers
        # Each row is predicted once, so only differences between costs matter.
        self.row_costs = row_costs - row_costs.min()
        penalty = np.maximum(multipliers, 0) @ high + np.minimum(multipliers, 0) @ low
        #: Part of the objective that does not depend on the tree.
        self.constant = float(slope @ high + penalty - row_costs.min() * n.sum())
        super().__init__(matrix, y, w, "errors", None, budget, False)
        self.min_costs = self._loss_of_sums(self.stats)
        self.max_costs = self.stats.sum(axis=1) * (1.25 + float(self.row_costs.max()))

    def _gain_of_hits(self, hits: Any, weight: Any) -> Any:
        """Return the gain of hits in leaves with a given weight, without the costs of rows."""
        predicted = np.maximum(weight, self.low)
        # Products of tiny weights would be 0.
        return hits * (self.n / (self.n + np.where(self.is_linear, self.high, predicted)))

    def _loss_of_sums(self, sums: Any) -> Any:
        weight = sums.sum(axis=-1)
        costs = self.row_costs * weight[..., None]
        gains = self._gain_of_hits(sums, weight[..., None]) - costs
        return weight - gains.max(axis=-1)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound: pure leaves for all but one predicted class."""
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


# --- 11. the weighted F1 at a number of errors ---


def largest_f1(
    class_weights: Sequence[float], errors: float, n_predicted: int, budget: Budget
) -> float:
    """Return an upper bound of the weighted F1, given the errors and number of predicted classes.

    Let a class of weight n have false negatives a and false positives b. Its F1 is 2 (n - a) / (2 n
    - a + b), concave in a and convex in b. False negatives and false positives both sum to the
    errors e. False positives of a class are not of this class, so b is at most e - a. In the best
    case, one class has b = e - a, and another one has the remaining false positives.

    If not all classes are predicted, let a larger class replace a smaller one, with the same true
    positives and false positives: its share of the F1 is larger, and b exceeds e - a by at most the
    difference of the weights (`slack`).
    """
    # The bound does not depend on the unit, but products of huge or tiny weights are not floats.
    shift = -math.frexp(max(class_weights))[1]
    class_weights = [w for w in (math.ldexp(weight, shift) for weight in class_weights) if w]
    errors = math.ldexp(errors, shift)
    n_classes = len(class_weights)
    m = min(n_predicted, n_classes)
    total = math.fsum(class_weights)
    sets = {tuple(class_weights[:m]): 0.0}
    if math.comb(n_classes, m) <= 12:
        sets = dict.fromkeys(combinations(class_weights, m), 0.0)
    elif m < n_classes:
        weight_pairs = zip(class_weights[:m], class_weights[-m:], strict=True)
        sets[tuple(class_weights[:m])] = max(large - small for large, small in weight_pairs)
    bounds = []
    for n, slack in sets.items():
        budget.check_time()
        bounds.append(_largest_f1_of_classes(n, total, errors, slack, budget))
    return min(1.0, max(bounds) * (1 + 1e-12))


def _largest_f1_of_classes(
    n: tuple[float, ...], total: float, errors: float, slack: float, budget: Budget
) -> float:
    """Return an upper bound of the weighted F1 of predictions of these classes.

    Best-first search over pairs of classes and intervals of false negatives of the first class.
    """
    other_weight = max(0.0, total - math.fsum(n))
    errors = max(errors, other_weight)
    misses = errors - other_weight

    def f1(k: int, a: float, b: float) -> float:
        return n[k] / total * 2 * max(n[k] - a, 0.0) / (2 * n[k] - min(a, n[k]) + b)

    if len(n) == 1:
        return f1(0, misses, errors)

    def bound(k: int, j: int, low: float, high: float) -> float:
        budget.check_time()
        other_bounds = [
            (n[i], max(low - slack, 0.0) if i == j else 0.0) for i in range(len(n)) if i != k
        ]
        f1_of_first = f1(k, low, max(errors - high, 0.0))
        return f1_of_first + _f1_of_others(other_bounds, misses - high, total)

    pairs = {(n[k], n[j]): (k, j) for k in range(len(n)) for j in range(len(n)) if k != j}
    heap = [
        (-bound(k, j, 0.0, end), k, j, 0.0, end)
        for k, j in pairs.values()
        for end in [min(n[k], misses)]
    ]
    heapq.heapify(heap)
    lower_bound = 0.0
    for _ in range(_MAX_INTERVALS):
        top, k, j, low, high = heap[0]
        middle = (low + high) / 2
        lower_bound = max(lower_bound, bound(k, j, middle, middle))
        if -top <= lower_bound + _F1_PRECISION or not low < middle < high:
            break
        heapq.heapreplace(heap, (-bound(k, j, low, middle), k, j, low, middle))
        heapq.heappush(heap, (-bound(k, j, middle, high), k, j, middle, high))
    return -heap[0][0]


def _f1_of_others(classes: Sequence[tuple[float, float]], misses: float, total: float) -> float:
    """Return an upper bound of the sum of F1, given false positives and the sum of false negatives.

    Every Lagrange multiplier of the sum gives a bound; bisection finds a good multiplier.
    """
    best = math.fsum(n / total * 2 * n / (2 * n + b) for n, b in classes)
    low, high = 1e-12 / total, 1e3 / total
    for _ in range(45 if misses > 0 else 0):
        multiplier = math.sqrt(low * high)
        sum_of_misses, dual = 0.0, -multiplier * misses
        for n, b in classes:
            a = 2 * n + b - math.sqrt(2 * n * (n + b) / (total * multiplier))
            a = min(max(a, 0.0), n)
            sum_of_misses += a
            dual += n / total * 2 * (n - a) / (2 * n - a + b) + multiplier * a
        best = min(best, dual)
        low, high = (low, multiplier) if sum_of_misses > misses else (multiplier, high)
    return best


# --- command line ---


def main(certificate: str, table: str, target: str = "", weight: str = "") -> int:
    """Check a certificate on the rows of a CSV file; return 0 if it is confirmed.

    `target` and `weight` are names of columns; by default, the last column is the target, and rows
    have no weights. Columns in which all texts are numbers or empty hold numbers; columns of True
    and False hold booleans. Empty texts are missing values.
    """
    with open(table, encoding="utf-8-sig", newline="") as file:
        header, *lines = csv.reader(file)
    columns = dict(zip(header, map(_read_texts, zip(*lines, strict=True)), strict=True))
    name = target or header[-1]
    values = columns.pop(name)
    y = SimpleNamespace(name=name, tolist=lambda: values)
    result = check_certificate(Path(certificate), columns, y, columns.pop(weight, None))
    sys.stdout.write(f"{result}\n")
    return int(result.verdict != "confirmed")


def _read_texts(texts: Sequence[str]) -> list[Any]:
    """Return the values of a column of a CSV file."""
    if set(texts) <= {"True", "False", ""}:
        return [text == "True" if text else None for text in texts]
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return [text or None for text in texts]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
