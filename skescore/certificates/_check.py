"""Checker of certificates: a small program that users trust instead of the solvers.

The checker reads the JSON of a certificate and the rows, recomputes every number in the
certificate, and states its own claims: :attr:`CheckResult.claims`. Of the certificate's numbers,
claims depend only on lower bounds and proofs; the checker verifies them by enumeration and by its
own searches. This file imports only the standard library and NumPy, so that it can be copied and
run without the package: ``python _check.py CERTIFICATE.json ROWS.csv [TARGET [WEIGHT]]``.

Reading order, which is also the list of proof obligations:

1.  ``parse_certificate``: the text is finite JSON of a bounded size with a known schema.
2.  ``_Rows``: the rows are those of the certificate; weights and targets become exact integers.
3.  ``_holds``: the meaning of conditions.
4.  ``_Rows.loss`` and ``_Rows.metric``: exact losses and metrics of predictions.
5.  ``_score``: the formulas of the scores.
6.  ``_Check.check_given_rules`` with ``_covered_volume``: size, completeness and metrics of the
    given rules, in the domain of these rows.
7.  ``_Check.check_cuts``: the space consists of the cuts that the claims describe.
8.  ``_Check.check_incumbent``: the best rules found belong to the space and have the stated loss.
9.  ``_Check.check_loss_bounds``: no rules of the space have a smaller loss, by enumeration
    (``_enumerate_trees``, ``_enumerate_lists``) or by ``TreeSearch`` and ``ListSearch``.
10. ``_Check.check_f1_bound`` with ``F1TreeSearch``: no tree has a larger weighted F1.
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
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

#: Largest number of bytes of memory per character of JSON.
_BYTES_PER_CHARACTER = 32
METRICS_OF_LOSS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}
LOSS_OF_METRIC = {metric: loss for loss, metrics in METRICS_OF_LOSS.items() for metric in metrics}
#: Names of the metrics in sentences.
METRIC_NAMES = {
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
    "r2": "R²",
    "mean_squared_error": "mean squared error",
    "root_mean_squared_error": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
}
#: Metrics whose best value is 1.
PERFORMANCES = ("accuracy", "f1_weighted", "r2")


#: Largest relative difference between a stated number and the exact number, as used in claims.
_ROUNDING = 1e-9
#: Largest accepted excess of a lower bound over the smallest loss, as a share of one rule's loss.
_WRONG = 1e-7
#: Error of the bounds of solvers, as a share of the total weight of the rows.
_SOLVER_ROUNDING = 1e-8
#: Largest relative difference between two scores that is regarded as a rounding error.
_SCORE_ROUNDING = 1e-6
#: Largest number of trees, lists or premises that are enumerated.
_MAX_ENUMERATED = 100_000
#: Largest number of parts of the domain in the computation of a volume, and the tolerance of
#: volumes, because the domain of extractors exceeds the range of the rows by a relative 1e-9.
_MAX_VOLUME_PARTS, _VOLUME_TOLERANCE = 200_000, 1e-6
#: Tolerance of volumes that are estimates.
_ESTIMATE_TOLERANCE = 0.01
_BLACK_BOX = "the black box's predictions"
_UNCHECKED = "The remaining parts are not checked: the {} limit is reached."
#: Label, names of weights, and policy for uncovered rows of each score.
_SCORES = {
    "ice": ("ICE", ("phi", "rho"), "ignore"),
    "fire": ("FiRe", ("psi",), "penalize"),
    "q": ("Q", (), "ignore"),
}


#: Factor by which the search for lists exceeds the required bound, because the bound also applies
#: to similar premises; and largest number of premises with stored bounds.
_BOUND_FACTOR, _MAX_STORED = 1.05, 256
#: Largest number of products for which the losses of all pairs of tests are computed at once.
_MAX_PAIR_PRODUCTS = 2e9
#: Precision of the largest weighted F1 at a number of errors, and largest number of intervals.
_F1_PRECISION, _MAX_INTERVALS = 1e-5, 1000


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
    """Check a certificate on the rows for which it was created.

    Parameters
    ----------
    certificate : str or path
        JSON text of the certificate, or path of a file that contains this text.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Reference of the rules: labels, numbers, or the predictions of the black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, if the certificate was created with weights.
    time_limit : float, optional, default=60.0
        Time limit in seconds, after which the remaining parts are not checked; None for no limit.
    memory_limit : float, default=2**30
        Memory limit in bytes. Parts that need more memory are not checked.

    Returns
    -------
    CheckResult
        The verdict, its reasons, and the proven claims.

    Raises
    ------
    FileNotFoundError
        If `certificate` is the path of a file that does not exist. Invalid content raises no error;
        it leads to the verdict "rejected".
    ValueError
        If `sample_weight` holds a negative or infinite number or NaN, or only zeros.

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
    >>> text = certify(rules, X, y, kinds=["tree"], space=space).to_json()
    >>> result = check_certificate(text, X, y)
    >>> result.verdict
    'confirmed'
    >>> print(result.claims[0])
    On these 150 rows, against target, 3 rules have ICE 0.9757 (weighted F1, phi 1, rho 1).
    >>> check_certificate(text.replace('"n_rows": 150', '"n_rows": 149'), X, y).verdict
    'rejected'
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
    data = check.data
    findings.append(check.rows.check_stated())
    findings += check.check_given_rules()
    for frontier in data["frontiers"]:
        check.check_cuts(frontier["space"]["cuts"])
        findings.append(check.check_incumbents(frontier))
    claims = check.state_given_rules()
    for i, frontier in enumerate(data["frontiers"]):
        findings += check.check_bounds(frontier, len(data["frontiers"]) - i)
        claims += check.state_claims(frontier)
    findings += check.unchecked
    findings += check.notes
    return CheckResult(
        "not checked" if check.unchecked else "confirmed", tuple(findings), tuple(claims)
    )


# --- limits ---


class RejectedError(Exception):
    """Raised if the certificate is wrong."""


class LimitError(Exception):
    """Raised if a limit ends a step; the argument is the resource."""


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
        part = Budget(None, self.n_bytes)
        now = time.monotonic()
        part.deadline = now + (self.deadline - now) * fraction
        return part


# --- 1. schema ---


@dataclass(frozen=True)
class _Schema:
    """Declaration of a value of a certificate.

    Parameters
    ----------
    document : dict
        The declaration as JSON Schema.
    check : callable
        Function of a value, its location and the budget that raises a RejectedError for invalid
        values.
    """

    document: dict[str, Any]
    check: Callable[[Any, str, Budget], None]


def _refuse(location: str, rule: str, value: Any) -> NoReturn:
    raise RejectedError(f"{location} must be {rule}, not {repr(value)[:60]}")


def _number(low: float = -1.8e308, high: float = 1.8e308, *, whole: bool = False) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        kinds = (int,) if whole else (int, float)
        if type(value) not in kinds or not low <= value <= high:
            kind = "an integer" if whole else "a number"
            _refuse(location, f"{kind} from {low:g} to {high:g}", value)

    kind = "integer" if whole else "number"
    return _Schema({"type": kind, "minimum": low, "maximum": high}, check)


def _text(max_length: int = 10_000) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, str) or len(value) > max_length:
            _refuse(location, f"a text of at most {max_length} characters", value)

    return _Schema({"type": "string", "maxLength": max_length}, check)


def _choice(*choices: Any) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            _refuse(location, f"one of {choices}", value)

    return _Schema({"enum": list(choices)}, check)


def _either(*schemas: _Schema) -> _Schema:
    """Return a schema that accepts values of any of several schemas."""

    def check(value: Any, location: str, budget: Budget) -> None:
        for schema in schemas[:-1]:
            try:
                return schema.check(value, location, budget)
            except RejectedError:
                continue
        return schemas[-1].check(value, location, budget)

    return _Schema({"anyOf": [schema.document for schema in schemas]}, check)


def _list(item: _Schema, least: int = 0, most: float = math.inf) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            size = f"at least {least}" if most == math.inf else f"{least} to {most}"
            _refuse(location, f"a list of {size} items", value)
        budget.check_time()
        for i, one in enumerate(value):
            item.check(one, f"{location}[{i}]", budget)

    document = {"type": "array", "items": item.document, "minItems": least}
    return _Schema(document if most == math.inf else document | {"maxItems": most}, check)


def _record(required: Mapping[str, _Schema], **optional: _Schema) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, dict):
            _refuse(location, "an object", value)
        for name in required.keys() - value.keys():
            raise RejectedError(f"{location} lacks {name!r}")
        for name, one in value.items():
            schema = required.get(name) or optional.get(name)
            if schema is None:
                raise RejectedError(f"{location} has the unknown field {name[:60]!r}")
            schema.check(one, f"{location}.{name}", budget)

    properties = {name: schema.document for name, schema in {**required, **optional}.items()}
    document = {"type": "object", "properties": properties, "additionalProperties": False}
    return _Schema(document | {"required": list(required)}, check)


def _table(item: _Schema, pattern: str, rule: str) -> _Schema:
    """Return a schema of an object with any number of fields of the same kind."""

    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, dict):
            _refuse(location, "an object", value)
        for name, one in value.items():
            if not re.fullmatch(pattern, name):
                _refuse(f"a field of {location}", rule, name)
            item.check(one, f"{location}.{name[:60]}", budget)

    names = {"pattern": f"^{pattern}$"}
    document = {"type": "object", "propertyNames": names, "additionalProperties": item.document}
    return _Schema(document, check)


def _check_condition(value: Any, location: str, budget: Budget, depth: int = 0) -> None:
    """Check the schema of a condition, which may contain other conditions."""
    is_known = isinstance(value, dict) and str(value.get("type")) in _CONDITIONS
    if not is_known or depth > 50:
        _refuse(location, f"a condition of type {list(_CONDITIONS)}, at most 50 deep", value)
    _CONDITIONS[value["type"]].check(value, location, budget)
    if value["type"] == "at_least":
        m = _number(1, len(value["conditions"]), whole=True)
        m.check(value["m"], f"{location}.m", budget)
        for i, one in enumerate(value["conditions"]):
            _check_condition(one, f"{location}.conditions[{i}]", budget, depth + 1)
    low, high = value.get("lower", -math.inf), value.get("upper", math.inf)
    is_closed = bool(value.get("lower_closed") and value.get("upper_closed"))
    if low > high or (low == high and not is_closed):
        _refuse(location, "a condition that some number satisfies", value)


_CONDITION = _Schema({"$ref": "#/$defs/condition"}, _check_condition)
#: Schema of conditions inside of another one, which `_check_condition` checks with their depth.
_INNER_CONDITION = _Schema(_CONDITION.document, lambda *_: None)
_FLAG = _choice(False, True)
_COUNT = _number(0, 2**53, whole=True)
_WEIGHT = _number(0)
_LABEL = _either(_FLAG, _text(), _number())
_TERM = _list(_number(), 2, 2)
_BOUNDS = {
    "lower": _number(),
    "lower_closed": _FLAG,
    "upper": _number(),
    "upper_closed": _FLAG,
}
_LINEAR = _record({"intercept": _number(), "terms": _list(_TERM)})
_CONDITIONS: dict[str, _Schema] = {
    "interval": _record({"type": _choice("interval"), "feature": _COUNT}, **_BOUNDS, missing=_FLAG),
    "one_of": _record(
        {"type": _choice("one_of"), "feature": _COUNT, "values": _list(_LABEL, 1)},
        negated=_FLAG,
        missing=_FLAG,
    ),
    "missing": _record({"type": _choice("missing"), "feature": _COUNT}, negated=_FLAG),
    "at_least": _record(
        {"type": _choice("at_least"), "m": _COUNT, "conditions": _list(_INNER_CONDITION, 1)},
    ),
    "linear": _record({"type": _choice("linear"), "terms": _list(_TERM, 1)}, **_BOUNDS),
}
_STATISTICS = _record(
    {"n_rows": _WEIGHT},
    class_counts=_list(_WEIGHT),
    mean=_number(),
    standard_deviation=_WEIGHT,
    target_counts=_list(_WEIGHT),
    model_error=_WEIGHT,
    target_error=_WEIGHT,
    weighted=_FLAG,
)
_RULE = _record(
    {"if": _list(_CONDITION), "then": _either(_LABEL, _LINEAR)},
    weight=_either(_number(), _LINEAR),
    statistics=_STATISTICS,
)
_NONE = _choice(None)
_RULES = _record(
    {
        "format": _choice("skescore.RuleSet"),
        "version": _choice(1, 2),
        "task": _choice("classification", "regression"),
        "feature_names": _list(_text()),
        "classes": _either(_NONE, _list(_LABEL, 1)),
        "ordered": _FLAG,
        "rules": _list(_RULE, 1),
    },
    disjoint=_FLAG,
    voting=_choice("votes", "probabilities", "logistic", "mean", "sum"),
    reference=_choice("data", "black_box"),
    domain=_either(
        _NONE,
        _record(
            {"lower": _list(_number()), "upper": _list(_number())},
            categories=_list(_list(_either(_COUNT, _list(_LABEL, 1)), 2, 2)),
            missing=_list(_number(0, 1)),
        ),
    ),
    fallback=_either(
        _NONE,
        _record(
            {"policy": _choice("default", "nearest", "abstain"), "output": _LABEL},
            class_counts=_either(_NONE, _list(_WEIGHT)),
            abstain_label=_either(_NONE, _LABEL),
        ),
    ),
)
_FEATURES_TABLE = ("[0-9]{1,9}", "the index of a column")
_CUTS = _record(
    {
        "n_features": _COUNT,
        "thresholds": _table(_list(_number()), *_FEATURES_TABLE),
        "categories": _table(_list(_LABEL), *_FEATURES_TABLE),
        "missing_features": _list(_COUNT),
    },
    category_sets=_table(_list(_list(_LABEL, 1)), *_FEATURES_TABLE),
)
_SPACES = {
    "tree": _record({"cuts": _CUTS}),
    "list": _record(
        {
            "kind": _choice("list"),
            "max_conditions": _number(1, 3, whole=True),
            "default_counts": _choice(True),
            "cuts": _CUTS,
            "n_tests": _COUNT,
            "n_rows": _COUNT,
            "classes": _either(_NONE, _list(_LABEL, 1)),
        }
    ),
}


def _check_f1_node(value: Any, location: str, budget: Budget) -> None:
    """Check the schema of the nodes of a proof."""
    nodes = [value]
    while nodes:
        node = nodes.pop()
        budget.check_time()
        if isinstance(node, dict) and "branches" in node:
            _F1_BRANCHES.check(node, location, budget)
            nodes += node["branches"]
        else:
            _F1_LEAF.check(node, location, budget)


_F1_NODE = _Schema({"$ref": "#/$defs/f1_node"}, _check_f1_node)
_F1_BRANCHES = _record(
    {
        "class": _COUNT,
        "between": _list(_number(), 2, 2),
        "branches": _list(_Schema(_F1_NODE.document, lambda *_: None), 2, 2),
    }
)
#: Schema of leaves, which are empty for infeasible nodes; larger multipliers would be inaccurate.
_F1_LEAF = _either(
    _record({}),
    _record({"linear": _list(_COUNT), "multipliers": _list(_number(-1e6, 1e6))}),
)
_F1_PROOF = _record(
    {"classes": _list(_LABEL, 1), "target": _number(0, 1e6), "root": _F1_NODE},
)
_SHARE = _number(0, 1)
_METRIC_VALUES = {
    name: _number(high=1) if name in PERFORMANCES else _number(0) for name in LOSS_OF_METRIC
}
#: Metrics of the given rules by policy for uncovered rows.
_GIVEN_METRICS = {
    f"{name} {policy}": schema
    for name, schema in _METRIC_VALUES.items()
    for policy in ("ignore", "penalize")
}
_PER_RULES = 10_000
_FRONTIER = _record(
    {
        "kind": _choice("tree", "list"),
        "loss": _choice("errors", "squared_error", "absolute_error"),
        "lower": _list(_WEIGHT, 1, _PER_RULES),
        "upper": _list(_WEIGHT, 1, _PER_RULES),
        "status": _list(
            _choice(
                "optimal",
                "target",
                "time_limit",
                "node_limit",
                "work_limit",
                "memory_limit",
                "rounding",
                "interrupted",
            )
        ),
        "seconds": _WEIGHT,
        "total_weight": _WEIGHT,
        "space": _either(*_SPACES.values()),
        "measured": _list(
            _record(
                {"n_rules": _COUNT},
                **_METRIC_VALUES,
            )
        ),
        "rules": _list(_RULES, 1),
    },
    f1_bounds=_list(
        _record(
            {
                "max_leaves": _number(1, _PER_RULES, whole=True),
                "upper_bound": _number(0, 1),
                "incumbent": _SHARE,
                "rules": _either(_NONE, _RULES),
                "proof": _either(_record({}), _F1_PROOF),
                "seconds": _WEIGHT,
            }
        )
    ),
)


_CERTIFICATE = _record(
    {
        "format": _choice("skescore.Certificate"),
        "version": _choice(1),
        "score": _text(100),
        "settings": _record(
            {
                "metric": _choice(*LOSS_OF_METRIC),
                "completeness": _choice("volume", "instances"),
                "weights": _table(_number(5e-324), r"[^\W\d]\w*", "a name"),
                "cuts_per_feature": _either(_NONE, _number(1, 2**31 - 1, whole=True)),
            },
            stated_cuts=_FLAG,
        ),
        "rows": _record(
            {
                "n_rows": _COUNT,
                "task": _choice("classification", "regression"),
                "reference": _text(),
                "weighted": _FLAG,
                "checksum": _text(64),
            },
            class_weights=_list(_WEIGHT, 1),
            squares=_WEIGHT,
        ),
        "given": _record(
            {
                "n_rules": _number(1, 2**53, whole=True),
                "completeness_volume": _SHARE,
                "completeness_instances": _SHARE,
                "metrics": _record({}, **_GIVEN_METRICS),
                "rules": _either(_NONE, _RULES),
            }
        ),
        "frontiers": _list(_FRONTIER, 1, 2),
    },
    held_out=_either(
        _NONE,
        _record(
            {
                "kind": _choice("tree", "list"),
                "n_rules": _COUNT,
                "best": _list(_number()),
                "given": _list(_number()),
            }
        ),
    ),
)


def parse_certificate(text: str, budget: Budget) -> Any:
    """Parse JSON of limited size with finite numbers and unique names, and check its schema."""
    budget.check_memory(_BYTES_PER_CHARACTER * len(text))

    def number(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise RejectedError(f"{digits[:20]} is not a finite number")
        return value

    def integer(digits: str) -> int:
        if len(digits) > 300:
            raise RejectedError(f"{digits[:20]}... is too large")
        return int(digits)

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise RejectedError(f"a field occurs twice among {str(list(fields))[:100]}")
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
        raise RejectedError(f"it is not JSON ({str(error)[:100]})") from error
    _CERTIFICATE.check(data, "the certificate", budget)
    return data


# --- 2. rows ---


class _Rows:
    """Rows that were passed, with targets and weights as exact integers.

    Parameters
    ----------
    data : dict
        The certificate.
    X, y : array-like
        The rows and their reference.
    weights : list of float or None
        Weights of the rows.
    budget : Budget
        Limits of time and memory.
    """

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
        pairs = zip(self.names, dtypes, strict=False)
        self.declared = {name for name, dtype in pairs if dtype == "category"}
        self.values = list(map(list, zip(*self.columns, strict=True)))
        self.y = _json_values(y)
        name = getattr(y, "name", None)
        #: Name of the passed target, if any.
        self.target_name = name if isinstance(name, str) and name else None
        self.is_weighted = weights is not None
        self.w = [1.0] * len(self.y) if weights is None else weights
        if not self.y or not len(self.y) == len(self.values) == len(self.w):
            raise RejectedError(
                f"there are {len(self.values)} rows, but {len(self.y)} values of y and "
                f"{len(self.w)} weights"
            )
        if len(self.names) != len(self.columns):
            raise RejectedError(
                f"its rules have {len(self.names)} features, but there are {len(self.columns)} "
                "columns"
            )
        #: Rows with positive weight; other rows are not counted.
        self.index = [i for i, w in enumerate(self.w) if w > 0]
        self.weights, self.unit = _integers([self.w[i] for i in self.index])
        self.total = sum(self.weights)
        self.targets = [self.y[i] for i in self.index]
        self.largest = 0.0
        if self.task == "regression":
            if any(type(value) not in (int, float) for value in self.y):
                raise RejectedError("y must hold numbers for rules that predict numbers")
            self.numbers, self.number_unit = _integers(self.targets)
            self.largest = float(max(map(abs, self.targets)))

    def check_stated(self) -> str:
        """Check the checksum of the rows and the sums of their targets."""
        stated = self.stated
        digest = hashlib.sha256()
        for values, value, weight in zip(self.values, self.y, self.w, strict=True):
            line = [*values, value] + ([weight] if self.is_weighted else [])
            digest.update((json.dumps(line) + "\n").encode())
        self.budget.check_time()
        if stated["weighted"] is not self.is_weighted:
            needed = "weights" if stated["weighted"] else "no weights"
            passed = "weights" if self.is_weighted else "no weights"
            raise RejectedError(f"it was made with {needed}, but {passed} were passed")
        if stated["n_rows"] != len(self.y) or stated["checksum"] != digest.hexdigest():
            raise RejectedError("it was made for other rows")
        if self.task == "classification":
            self._check_class_weights()
        else:
            _require_equal(
                "the sum of squares", stated.get("squares"), self.squares(), self.square_error()
            )
            if "class_weights" in stated:
                raise RejectedError("numbers have no class weights")
        return f"The {len(self.y)} rows have the checksum of the certificate."

    def _check_class_weights(self) -> None:
        stated = self.stated.get("class_weights", [])
        if "squares" in self.stated or len(stated) != len({str(v) for v in self.y}):
            raise RejectedError("it does not state one weight per class")
        by_text = dict.fromkeys(sorted({str(v) for v in self.y}), Fraction(0))
        for value, weight in zip(self.targets, self.weights, strict=True):
            by_text[str(value)] += Fraction(weight, self.unit)
        # Labels are sorted by their text; numbers may be written in several ways.
        for number, exact in zip(sorted(stated), sorted(by_text.values()), strict=True):
            _require_equal("a class weight", number, exact)

    @property
    def total_weight(self) -> Fraction:
        """Sum of the weights."""
        return Fraction(self.total, self.unit)

    def square_error(self) -> float:
        """Error of a sum of squares around a mean that is rounded to a float."""
        return float(self.total_weight) * (8 * 2.0**-52 * self.largest) ** 2

    def squares(self, rows: Sequence[int] | None = None) -> Fraction:
        """Return the weighted sum of squares around the mean, of all or some rows."""
        rows = range(len(self.weights)) if rows is None else rows
        n = sum(self.weights[i] for i in rows)
        first = sum(self.weights[i] * self.numbers[i] for i in rows)
        second = sum(self.weights[i] * self.numbers[i] ** 2 for i in rows)
        if not n:
            return Fraction(0)
        return Fraction(second * n - first**2, n * self.unit * self.number_unit**2)

    # --- 4. losses and metrics ---

    def loss(self, name: str, predictions: Sequence[Any], rows: Sequence[int]) -> Fraction:
        """Return the exact loss of predictions for some rows; the prediction None is an error."""
        if name == "errors":
            wrong = (
                self.weights[i]
                for i in rows
                if predictions[i] is None or _differ(self.targets[i], predictions[i])
            )
            return Fraction(sum(wrong), self.unit)
        rows_by_prediction: dict[float, list[int]] = defaultdict(list)
        for i in rows:
            rows_by_prediction[predictions[i]].append(i)
        loss, power = Fraction(0), 2 if name == "squared_error" else 1
        for number, members in rows_by_prediction.items():
            if not math.isfinite(number):
                raise RejectedError(f"rules predict {number}")
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
        total = Fraction(sum(self.weights[i] for i in rows), self.unit)
        loss = self.loss(LOSS_OF_METRIC[name], predictions, rows)
        if name == "accuracy":
            return 1 - loss / total
        if name == "f1_weighted":
            return self._weighted_f1(predictions, rows)
        if name == "r2":
            squares = self.squares(rows)
            return 1 - loss / squares if squares else Fraction(int(not loss))
        if name == "root_mean_squared_error":
            return Fraction(math.sqrt(loss / total))
        return loss / total

    def _weighted_f1(self, predictions: Sequence[Any], rows: Sequence[int]) -> Fraction:
        actual: dict[Any, int] = defaultdict(int)
        predicted: dict[Any, int] = defaultdict(int)
        hits: dict[Any, int] = defaultdict(int)
        for i in rows:
            key, guess = _key(self.targets[i]), _key(predictions[i])
            actual[key] += self.weights[i]
            predicted[guess] += self.weights[i]
            hits[key] += self.weights[i] * (key == guess)
        terms = (Fraction(n * 2 * hits[key], n + predicted[key]) for key, n in actual.items())
        return sum(terms, Fraction(0)) / sum(actual.values())

    def metric_error(self, name: str, rows: Sequence[int]) -> float:
        """Return the absolute error of a metric that is computed in floating-point numbers."""
        if name in ("accuracy", "f1_weighted"):
            return _ROUNDING
        rounding = 8 * 2.0**-52 * self.largest
        if name not in ("r2", "mean_squared_error"):
            return rounding
        variance = float(self.squares(rows) * self.unit / sum(self.weights[i] for i in rows))
        error = rounding * (rounding + 2 * math.sqrt(variance))
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
    if type(stated) not in (int, float) or abs(Fraction(stated) - exact) > max(
        Fraction(error), abs(exact) * Fraction(_ROUNDING)
    ):
        raise RejectedError(f"{name} should be {_to_float(exact)!r}, not {stated!r}")


def _to_float(exact: Fraction) -> float:
    """Return the nearest float; infinity for numbers beyond the largest float."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf


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
    columns = getattr(X, "columns", None)
    if columns is not None:
        names = [str(name) for name in columns]
        has_positions = hasattr(X, "iloc")  # in contrast to polars, pandas allows repeated names
        return names, [
            _json_values(X.iloc[:, j] if has_positions else X[name]) for j, name in enumerate(names)
        ]
    rows = X.tolist() if hasattr(X, "tolist") else [list(row) for row in X]
    return [], [[_json_value(v) for v in column] for column in zip(*rows, strict=True)]


def _json_values(column: Any) -> list[Any]:
    """Return the values of a column as JSON represents them."""
    for method in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas, polars, Arrow
        if hasattr(column, method):
            return [_json_value(v) for v in getattr(column, method)()]
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


def _differ(first: Any, second: Any) -> bool:
    """Return whether two labels are different."""
    return bool(_key(first) != _key(second))


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
    return (_key(value) in _keys_of(condition)) != condition.get("negated", False)


def _keys_of(condition: Any) -> frozenset[Any]:
    """Return the keys of the values of a condition; they are cached in the condition."""
    if "keys" not in condition:  # this field is not in the schema
        condition["keys"] = frozenset(map(_key, condition["values"]))
    keys: frozenset[Any] = condition["keys"]
    return keys


def _n_parts(condition: Any) -> int:
    """Return the number of conditions and terms that are evaluated for a row."""
    parts = condition.get("conditions", ())
    return 1 + len(condition.get("terms", ())) + sum(map(_n_parts, parts))


def _is_within(condition: Any, value: Any) -> bool:
    """Return whether a number is between the bounds of a condition."""
    lower, upper = condition.get("lower"), condition.get("upper")
    if isinstance(value, str):
        raise RejectedError(f"a rule compares the text {value[:60]!r} with numbers")
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
    """Check that rules refer to features and classes that exist."""
    n_features, classes = len(rules["feature_names"]), rules["classes"]
    if len(set(rules["feature_names"])) < n_features:
        raise RejectedError("two features have the same name")
    if rules["task"] != task or (classes is None) is not (task == "regression"):
        raise RejectedError(f"the rules have the task {rules['task']!r}, the rows {task!r}")
    keys = {_key(label) for label in classes or ()}
    if len(keys) < len(classes or ()):
        raise RejectedError("a class occurs twice")

    def check_terms(terms: Any) -> None:
        for j, _ in terms:
            if type(j) is not int or not 0 <= j < n_features:
                raise RejectedError(f"there is no feature {j!r}")

    def check_condition(condition: Any) -> None:
        for one in condition.get("conditions", ()):
            check_condition(one)
        check_terms(condition.get("terms", ()))
        check_terms([(condition["feature"], 0)] if "feature" in condition else ())

    outputs = [rule["then"] for rule in rules["rules"]]
    fallback = rules.get("fallback") or {}
    for output in [*outputs, *([fallback["output"]] if fallback else [])]:
        is_number = type(output) in (int, float)
        is_linear = isinstance(output, dict) and task == "regression"
        if is_linear:
            check_terms(output["terms"])
        elif not (_key(output) in keys if task == "classification" else is_number):
            raise RejectedError(f"a rule cannot predict {repr(output)[:60]}")
    _check_domain(rules.get("domain"), n_features)
    for rule in rules["rules"]:
        for condition in rule["if"]:
            check_condition(condition)
        if isinstance(rule.get("weight"), dict):
            check_terms(rule["weight"]["terms"])
    for part in [fallback, *(rule.get("statistics", {}) for rule in rules["rules"])]:
        counts = part.get("class_counts")
        if counts is not None and len(counts) != len(keys):
            raise RejectedError("a rule does not have one count per class")


def _check_domain(domain: Any, n_features: int) -> None:
    """Check that the domain that is stored with rules is a box."""
    if domain is None:
        return
    lower, upper = domain["lower"], domain["upper"]
    is_box = len(lower) == len(upper) == n_features
    is_box = is_box and all(low <= high for low, high in zip(lower, upper, strict=True))
    features = set()
    for j, values in domain.get("categories", ()):
        keys = {_key(value) for value in values} if isinstance(values, list) else set()
        is_box = is_box and type(j) is int and 0 <= j < n_features and j not in features
        is_box = is_box and (lower[j], upper[j]) == (0, len(keys)) and len(keys) == len(values)
        features.add(j)
    if not is_box or len(domain.get("missing") or lower) != n_features:
        raise RejectedError("the domain of rules is not a box")


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
    if any(not rule["if"] for rule in rules["rules"]):
        return Fraction(1)
    conditions_of: dict[int, list[Any]] = {}
    for i, rule in enumerate(rules["rules"]):
        for condition in rule["if"]:
            if condition["type"] not in ("interval", "one_of", "missing"):
                return None
            conditions_of.setdefault(condition["feature"], []).append((i, condition))
    features = sorted(conditions_of)
    all_rules = frozenset(range(len(rules["rules"])))
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
        shares: dict[frozenset[int], Fraction] = {}
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
            holding = open_rules - excluded
            shares[holding] = shares.get(holding, Fraction(0)) + share
        covered = Fraction(0)
        for holding, share in shares.items():
            if holding and share:
                covered += share * covered_share(k + 1, holding)
        return covered

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
    """Steps of the check of a certificate.

    Parameters
    ----------
    data : dict
        Certificate that matches the schema.
    rows : _Rows
        The rows.
    budget : Budget
        Limits of time and memory.
    """

    def __init__(self, data: Any, rows: _Rows, budget: Budget) -> None:
        self.data, self.rows, self.budget = data, rows, budget
        #: Sentences on parts that cannot be checked.
        self.unchecked: list[str] = []
        #: Sentences on unchecked parts on which no claim depends.
        self.notes: list[str] = []
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
        #: Metrics and sizes of the best rules found, per kind of rules.
        self.incumbents: dict[str, list[tuple[Fraction, int]]] = {}
        self.incumbent_f1: dict[int, tuple[Fraction, int]] = {}
        self._check_settings()

    def _check_settings(self) -> None:
        """Check score, metric and weights, and the references of all rules."""
        data, task = self.data, self.rows.task
        settings, score = data["settings"], data["score"]
        self.metric, self.weights = settings["metric"], settings["weights"]
        self.loss = LOSS_OF_METRIC[self.metric]
        if (self.loss == "errors") is not (task == "classification"):
            raise RejectedError(f"{self.metric} is not a metric of {task}")
        if score not in _SCORES:
            self.unchecked.append(f"The checker does not know the score {score!r}: not checked.")
        elif set(self.weights) != set(_SCORES[score][1]):
            raise RejectedError(f"{score} has the weights {_SCORES[score][1]}")
        if score == "ice" and self.metric not in PERFORMANCES:
            raise RejectedError("ICE needs a metric whose best value is 1")
        kinds = [frontier["kind"] for frontier in data["frontiers"]]
        if len(set(kinds)) < len(kinds):
            raise RejectedError("a kind of rules occurs twice")
        for frontier in data["frontiers"]:
            if ("max_conditions" in frontier["space"]) is not (frontier["kind"] == "list"):
                raise RejectedError("its space does not match its kind of rules")
            rule_sets = [*frontier["rules"], *(b["rules"] for b in frontier.get("f1_bounds", ()))]
            for rules in rule_sets:
                if rules is not None and rules["feature_names"] != self.rows.names:
                    raise RejectedError("its rules have other features than the rows")
                if rules is not None:
                    _check_references(rules, task)
        if data["given"]["rules"] is not None:
            _check_references(data["given"]["rules"], task)
        if data.get("held_out") is not None:
            self.notes.append("The scores on held-out rows are not checked; that needs the search.")
        self._check_reference()

    def _check_reference(self) -> None:
        """Check the name of the reference if the passed target has a name."""
        stated, name = self.data["rows"]["reference"], self.rows.target_name
        self.reference = stated if stated == name else "the passed y"
        if name is not None and stated not in (name, "y", _BLACK_BOX):
            raise RejectedError(f"its reference is {stated[:60]!r}, but y is named {name!r}")
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

    def _premises(self, rules: Any) -> list[int]:
        """Return for each rule the rows for which it holds, as bits."""
        names = rules["feature_names"]
        if self.data["given"]["rules"] is rules and not set(names) <= set(self.rows.names):
            raise RejectedError("the given rules have features that the rows lack")
        order = [self.rows.names.index(name) for name in names]
        premises = []
        for rule in rules["rules"]:
            rows = self.all_rows
            for condition in rule["if"]:
                rows &= self._rows_of(condition, order)
            premises.append(rows)
        return premises

    def _predict(self, rules: Any) -> tuple[list[int], list[Any]]:
        """Return the rows that each rule predicts, as bits, and the prediction of each row."""
        premises = self._premises(rules)
        order = list(range(len(premises)))
        if not (rules["ordered"] or rules.get("disjoint", False)):
            order.sort(key=lambda i: _priority(rules, i), reverse=True)
        predictions: list[Any] = [None] * len(self.rows.index)
        open_rows = self.all_rows
        parts = [0] * len(premises)
        positions = [self.rows.names.index(name) for name in rules["feature_names"]]
        for k in order:
            parts[k] = premises[k] & open_rows
            open_rows &= ~premises[k]
            then = rules["rules"][k]["then"]
            self.budget.check_time()
            for i in _members(parts[k]):
                if isinstance(then, dict):
                    row = self.rows.values[self.rows.index[i]]
                    values = [row[j] for j in positions]
                    predictions[i] = _linear_sum(then["intercept"], then["terms"], values)
                else:
                    predictions[i] = then
        return parts, predictions

    # --- 6. the given rules ---

    def check_given_rules(self) -> list[str]:
        """Check the size, the completeness and the metrics of the given rules."""
        stated, rows = self.data["given"], self.rows
        rules = stated["rules"]
        if rules is None:
            self.unchecked.append("The given rules are not in the certificate: not checked.")
            return []
        if stated["n_rules"] != len(rules["rules"]):
            raise RejectedError(
                f"it states {stated['n_rules']} given rules, but contains {len(rules['rules'])}"
            )
        if rules.get("voting"):
            self.unchecked.append("The given rules predict by a vote: not checked.")
            return []
        parts, predictions = self._predict(rules)
        covered = _members(sum(parts))
        share = Fraction(sum(rows.weights[i] for i in covered), rows.total)
        _require_equal("completeness by rows", stated["completeness_instances"], share)
        fallback = (rules.get("fallback") or {}).get("output")
        needed = f"{self.metric} {_SCORES.get(self.data['score'], ('', '', 'ignore'))[2]}"
        if needed not in stated["metrics"]:
            raise RejectedError(f"it does not state the {needed} of the given rules")
        for key, value in stated["metrics"].items():
            name, policy = key.split(" ")
            if (LOSS_OF_METRIC[name] == "errors") is not (rows.task == "classification"):
                raise RejectedError(f"{name} is not a metric of {rows.task}")
            counted = covered
            completed = predictions
            if policy == "penalize":
                counted = list(range(len(predictions)))
                if rows.task == "regression" and len(covered) < len(predictions):
                    default = self._mean() if fallback is None else fallback
                    completed = [default if p is None else p for p in predictions]
            if not counted:
                raise RejectedError(f"{key} is undefined, because no row is covered")
            exact = rows.metric(name, completed, counted)
            _require_equal(
                f"{key} of the given rules", value, exact, rows.metric_error(name, counted)
            )
            if key == needed:
                term = _prediction_term(self.data["score"], name, float(exact))
                self.given_term = term
        self._check_completeness(rules, stated["completeness_volume"], share)
        return ["The given rules have the stated size and metrics."]

    def _mean(self) -> float:
        """Return the weighted mean of the targets."""
        rows = self.rows
        total = sum(w * v for w, v in zip(rows.weights, rows.numbers, strict=True))
        return float(Fraction(total, rows.total * rows.number_unit))

    def _check_completeness(self, rules: Any, stated: float, share_of_rows: Fraction) -> None:
        """Check the completeness by volume in the domain of these rows."""
        if self.data["settings"]["completeness"] == "instances":
            self.given_completeness = float(share_of_rows)
        domain = self._domain_of_rows(rules)
        volume = _covered_volume(rules, domain, self.budget)
        if volume is not None and rules.get("disjoint", False):
            volumes = [
                _covered_volume({"rules": [rule]}, domain, self.budget) for rule in rules["rules"]
            ]
            if sum(one or 0 for one in volumes) > volume + Fraction(1e-12):
                raise RejectedError("it states that the given rules are disjoint, but they overlap")
        if volume is None:
            volume_text = "Completeness by volume of the given rules was not checked."
        elif abs(stated - volume) <= _VOLUME_TOLERANCE:
            if self.given_completeness is None:
                self.given_completeness = float(volume)
            return
        elif abs(stated - volume) < _ESTIMATE_TOLERANCE:
            volume_text = (
                "Completeness by volume of the given rules is an estimate and was not checked."
            )
        elif self._is_volume_of_stated_domain(rules, stated):
            volume_text = (
                "Completeness by volume of the given rules was not checked, because their domain "
                "differs from the domain of these rows. In the domain of these rows, it is "
                f"{float(volume):.3f}."
            )
        else:
            raise RejectedError(
                f"completeness by volume should be {float(volume)!r}, not {stated!r}"
            )
        # Scores with completeness by rows do not depend on the volume.
        part = self.unchecked if self.given_completeness is None else self.notes
        part.append(volume_text)

    def _domain_of_rows(self, rules: Any) -> Any:
        """Return the domain of the rows with positive weight, for the features of rules."""
        conditions = [c for rule in rules["rules"] for c in rule["if"] if "feature" in c]
        compared = {c["feature"] for c in conditions if c["type"] == "interval"}
        listed = {c["feature"] for c in conditions if c["type"] == "one_of"}
        domain: dict[str, Any] = {"lower": {}, "upper": {}, "categories": {}, "missing": {}}
        for j in compared | listed | {c["feature"] for c in conditions}:
            column = self.rows.columns[self.rows.names.index(rules["feature_names"][j])]
            observed = [column[i] for i in self.rows.index if column[i] is not None]
            weight = sum(
                self.rows.weights[k] for k, i in enumerate(self.rows.index) if column[i] is None
            )
            domain["missing"][j] = Fraction(weight, self.rows.total)
            is_text = any(isinstance(value, str) for value in observed)
            if observed and j not in compared and (is_text or j in listed):
                domain["categories"][j] = list({_key(v): v for v in observed}.values())
                continue
            numbers = [] if is_text else [float(v) for v in observed if math.isfinite(float(v))]
            domain["lower"][j] = min(numbers, default=0.0)
            domain["upper"][j] = max(numbers, default=0.0)
        return domain

    def _is_volume_of_stated_domain(self, rules: Any, stated: float) -> bool:
        """Return whether the volume is correct in the domain that is stored with the rules."""
        domain = rules.get("domain")
        if domain is None:
            return False
        missing = domain.get("missing") or [0.0] * len(domain["lower"])
        categories = dict(domain.get("categories", ()))
        domain = {**domain, "categories": categories, "missing": missing}
        volume = _covered_volume(rules, domain, self.budget)
        return volume is not None and abs(stated - volume) <= _VOLUME_TOLERANCE

    # --- 7. cuts ---

    def _tests(self, cuts: Any) -> list[int]:
        """Return the distinct tests that split the rows, each as a bit mask of one side."""
        key = json.dumps(cuts)
        if key in self._test_rows:
            return self._test_rows[key]
        tests: set[int] = set()
        for j in range(len(self.rows.names)):
            column = [self.rows.columns[j][i] for i in self.rows.index]
            missing = _to_bits(np.array([value is None for value in column]))
            thresholds = cuts["thresholds"].get(str(j), ())
            value_sets = [[value] for value in cuts["categories"].get(str(j), ())]
            value_sets += cuts.get("category_sets", {}).get(str(j), ())
            cut_values = {missing} if missing and j in cuts["missing_features"] else set()
            sides: list[int] = []
            if thresholds:
                numbers = np.array([math.nan if v is None else float(v) for v in column])
                sides += [_to_bits(numbers <= cut) for cut in thresholds]
            for values in value_sets:
                keys = {_key(value) for value in values}
                sides.append(_to_bits(np.array([_key(v) in keys for v in column])))
            cut_values |= {side | extra for side in sides for extra in {0, missing}}
            self.budget.check_time()
            self.budget.check_memory((len(tests) + len(cut_values)) * len(column) / 8)
            tests |= {min(test, self.all_rows ^ test) for test in cut_values}
        self._test_rows[key] = sorted(tests - {0})
        return self._test_rows[key]

    def check_cuts(self, cuts: Any) -> None:
        """Check that the cuts are those in the description of the space."""
        names = self.rows.names
        indices = {str(j) for j in range(len(names))}
        sets = cuts.get("category_sets", {})
        if cuts["n_features"] != len(names) or not indices.issuperset(
            [*cuts["thresholds"], *cuts["categories"], *sets, *map(str, cuts["missing_features"])]
        ):
            raise RejectedError("it cuts columns that do not exist")
        for values in cuts["thresholds"].values():
            if any(first >= second for first, second in pairwise(values)):
                raise RejectedError("cuts are not in increasing order")
        for values in cuts["categories"].values():
            if len({_key(value) for value in values}) < len(values):
                raise RejectedError("a category occurs twice")
        is_stated = self.data["settings"].get("stated_cuts", False)
        for j, name in enumerate(names):
            observed = [value for value in self.rows.columns[j] if value is not None]
            thresholds = cuts["thresholds"].get(str(j), [])
            is_text = any(isinstance(value, str) for value in observed)
            is_cut = thresholds or str(j) in cuts["categories"] or str(j) in sets
            # In a column without values, no test splits the rows.
            has_missing = 0 < len(observed) < len(self.rows.columns[j])
            if is_cut and has_missing and j not in cuts["missing_features"]:
                raise RejectedError(f"no test separates the missing values of {name}")
            if thresholds and (is_text or str(j) in cuts["categories"]):
                raise RejectedError(f"the texts of {name} are compared with numbers")
            if not is_stated:
                is_partly_missing = 0 < len(observed) < len(self.rows.columns[j])
                if is_partly_missing is not (j in cuts["missing_features"]):
                    raise RejectedError(
                        f"its tests for missing values of {name} do not fit the rows"
                    )
                self._check_category_sets(cuts, j)
                self._check_described_cuts(cuts, j, observed, is_text=is_text)

    def _check_category_sets(self, cuts: Any, j: int) -> None:
        """Check that a feature has the sets of categories of the given rules, and no others."""
        name, single = self.rows.names[j], cuts["categories"].get(str(j), ())
        known, listed = (
            {frozenset(map(_key, values)) for values in value_sets}
            for value_sets in (
                [[value] for value in single],
                cuts.get("category_sets", {}).get(str(j), ()),
            )
        )
        value_sets = [
            c["values"] if c["type"] == "one_of" else [v for v in single if _is_within(c, v)]
            for c in self._given_conditions(name)
            if c["type"] == "one_of" or (c["type"] == "interval" and single)
        ]
        required = {frozenset(map(_key, values)) for values in value_sets if values}
        if required - known - listed:
            raise RejectedError(
                f"no test compares {name} with a set of categories that a given rule uses"
            )
        if listed - required and self.data["given"]["rules"] is not None:
            raise RejectedError(f"{name} has sets of categories that no given rule uses")

    def _check_described_cuts(
        self, cuts: Any, j: int, observed: Sequence[Any], *, is_text: bool
    ) -> None:
        """Check the cuts of a feature: N per feature, and those of the given rules."""
        name, categories = self.rows.names[j], cuts["categories"].get(str(j))
        if categories is None:
            if is_text:
                raise RejectedError(f"no cut separates the values of {name}")
            self._check_thresholds(name, observed, cuts["thresholds"].get(str(j), []))
            return
        is_numeric = all(type(value) in (int, float) for value in observed)
        if observed and is_numeric and name not in self.rows.declared:
            raise RejectedError(f"the numbers of {name} are not categories")
        keys = {_key(category) for category in categories}
        for value in observed:
            if _key(value) not in keys:
                raise RejectedError(f"no test separates {value} of {name} from other values")

    def _check_thresholds(
        self, name: str, observed: Sequence[Any], thresholds: Sequence[float]
    ) -> None:
        """Check the thresholds of a numeric feature.

        A threshold is required at each position of :func:`_cut_positions`, and at each bound of the
        given rules. If there are given rules, no other threshold is allowed.
        """
        max_cuts, bounds = self.data["settings"]["cuts_per_feature"], self._bounds_of_rules(name)
        numbers = sorted(map(float, observed))
        values = sorted(set(numbers))
        positions = {bisect_right(values, cut) for cut in thresholds} - {0, len(values)}
        described = set(_cut_positions(numbers, values, max_cuts, self.budget))
        described |= {
            bisect_right(values, bound) if is_below else bisect_left(values, bound)
            for bound, is_below in bounds
        }
        described -= {0, len(values)}
        for position in sorted(described - positions):
            low, high = values[position - 1], values[position]
            raise RejectedError(f"no cut separates {low} and {high} of {name}")
        if positions - described and self.data["given"]["rules"] is not None:
            raise RejectedError(f"{name} has cuts that the certificate does not describe")

    def _given_conditions(self, name: str) -> list[Any]:
        """Return the conditions of the given rules on a feature, including nested ones."""
        rules = self.data["given"]["rules"] or {"rules": [], "feature_names": []}
        conditions = [c for rule in rules["rules"] for c in rule["if"]]
        for condition in conditions:  # nested conditions are appended
            conditions += condition.get("conditions", ())
        features = rules["feature_names"]
        return [c for c in conditions if "feature" in c and features[c["feature"]] == name]

    def _bounds_of_rules(self, name: str) -> list[tuple[float, bool]]:
        """Return the bounds of a feature in the given rules, and whether equal values are below."""
        bounds: list[tuple[float, bool]] = []
        for condition in self._given_conditions(name):
            if condition["type"] == "interval":
                if "upper" in condition:
                    bounds.append((condition["upper"], condition.get("upper_closed", True)))
                if "lower" in condition:
                    bounds.append((condition["lower"], not condition.get("lower_closed", False)))
        return bounds

    # --- 8. the best rules found ---

    def check_incumbents(self, frontier: Any) -> str:
        """Check the losses, metrics and leaves of the best rules found for each size."""
        kind, n_sizes = frontier["kind"], len(frontier["upper"])
        if frontier["loss"] != self.loss:
            raise RejectedError(f"{self.metric} cannot be computed from {frontier['loss']}")
        _require_equal("the total weight", frontier["total_weight"], self.rows.total_weight)
        per_size = ("lower", "status", "measured", "rules")
        if any(len(frontier[name]) != n_sizes for name in per_size):
            raise RejectedError("its lists of bounds and rules have different lengths")
        if kind == "list":
            self._check_list_space(frontier["space"])
        self.incumbents[kind] = []
        for i in range(n_sizes):
            self._check_bound_pair(frontier, i)
            self.incumbents[kind].append(self.check_incumbent(frontier, i))
        for f1_bound in frontier.get("f1_bounds", ()):
            size = f1_bound["max_leaves"]
            if kind != "tree" or size > n_sizes or self.loss != "errors":
                raise RejectedError("it bounds the F1 of rules outside of its search space")
            if size in self.incumbent_f1:
                raise RejectedError(f"it bounds the F1 of {size} rules twice")
            self.incumbent_f1[size] = self._check_f1_incumbent(frontier, f1_bound)
        return f"{kind}: the best rules found have the stated losses."

    def _check_list_space(self, space: Any) -> None:
        """Check the description of the space of lists."""
        labels = {_key(value) for value in self.rows.y}
        classes = None if space["classes"] is None else {_key(v) for v in space["classes"]}
        if space["n_rows"] != len(self.rows.y) or (
            classes != (labels if self.rows.task == "classification" else None)
        ):
            raise RejectedError("its search space was described for other rows")

    @staticmethod
    def _check_bound_pair(frontier: Any, i: int) -> None:
        """Check that the bounds of one size are consistent."""
        low, high = frontier["lower"][i], frontier["upper"][i]
        if low > high:
            raise RejectedError(f"the lower bound {low} exceeds the upper bound {high}")
        if i and (low > frontier["lower"][i - 1] or high > frontier["upper"][i - 1]):
            raise RejectedError("a bound grows with the number of rules")
        if frontier["status"][i] == "optimal" and low < high:
            raise RejectedError(
                f"the status is 'optimal', but the bounds {low} and {high} are different"
            )

    def check_incumbent(self, frontier: Any, i: int) -> tuple[Fraction, int]:
        """Check the best rules found for a size; return the certified metric and their number."""
        rules, loss, rows = frontier["rules"][i], frontier["loss"], self.rows
        n_rules = len(rules["rules"])
        if n_rules > i + 1:
            raise RejectedError(f"there are {n_rules} rules, but only {i + 1} are allowed")
        parts, predictions = self._check_membership(frontier, rules)
        everything = range(len(predictions))
        exact = rows.loss(loss, predictions, everything)
        error = rows.square_error() if loss == "squared_error" else 0.0
        _require_equal(f"the loss of {i + 1} rules", frontier["upper"][i], exact, error)
        for rule, part in zip(rules["rules"], parts, strict=True):
            self._check_statistics(rules, rule, _members(part))
        measured = frontier["measured"][i]
        # R² of a single row is undefined.
        names = [name for name in METRICS_OF_LOSS[loss] if name != "r2" or len(everything) > 1]
        if set(measured) != {"n_rules", *names} or measured["n_rules"] != n_rules:
            raise RejectedError("it does not state the metrics of the best rules found")
        metrics = {name: rows.metric(name, predictions, everything) for name in names}
        for name, metric in metrics.items():
            _require_equal(name, measured[name], metric, rows.metric_error(name, everything))
        return metrics[self.metric], n_rules

    def _check_statistics(self, rules: Any, rule: Any, members: Sequence[int]) -> None:
        """Check the statistics of a rule."""
        statistics, rows = rule.get("statistics", {}), self.rows
        weight = sum(rows.weights[i] for i in members)
        if "n_rows" in statistics:
            exact = Fraction(weight, rows.unit)
            _require_equal("the rows of a rule", statistics["n_rows"], exact, 1e-12)
        for label, count in zip(
            rules["classes"] or (), statistics.get("class_counts", ()), strict=False
        ):
            key = _key(label)
            counted = sum(rows.weights[i] for i in members if _key(rows.targets[i]) == key)
            _require_equal("a class count", count, Fraction(counted, rows.unit), 1e-12)
        if rows.task == "classification":
            if "mean" in statistics or "standard_deviation" in statistics:
                raise RejectedError("labels have no mean")
        elif weight:
            error = _ROUNDING * rows.largest
            if "mean" in statistics:
                first = sum(rows.weights[i] * rows.numbers[i] for i in members)
                mean = Fraction(first, weight * rows.number_unit)
                _require_equal("the mean of a rule", statistics["mean"], mean, error)
            if "standard_deviation" in statistics:
                variance = rows.squares(members) * rows.unit / weight
                _require_equal(
                    "the standard deviation of a rule",
                    statistics["standard_deviation"],
                    math.sqrt(variance),
                    error,
                )

    def _check_f1_incumbent(self, frontier: Any, f1_bound: Any) -> tuple[Fraction, int]:
        """Check the tree with the best weighted F1 found; return its F1 and number of leaves."""
        rules, max_leaves = f1_bound["rules"], f1_bound["max_leaves"]
        if rules is None:
            _require_equal("the F1 without rules", f1_bound["incumbent"], 0)
            return Fraction(0), 0
        if len(rules["rules"]) > max_leaves:
            raise RejectedError(f"the best rules by F1 have more than {max_leaves} leaves")
        parts, predictions = self._check_membership(frontier, rules)
        f1 = self.rows.metric("f1_weighted", predictions, range(len(predictions)))
        _require_equal("the F1 of the best tree found", f1_bound["incumbent"], f1, _ROUNDING)
        for rule, part in zip(rules["rules"], parts, strict=True):
            self._check_statistics(rules, rule, _members(part))
        return f1, len(rules["rules"])

    def _check_membership(self, frontier: Any, rules: Any) -> tuple[list[int], list[Any]]:
        """Check that rules belong to the space; return the rows of each rule and predictions."""
        kind = frontier["kind"]
        if (kind == "list") is not rules["ordered"] or rules.get("voting"):
            raise RejectedError(f"the best rules found are not a {kind}")
        max_conditions = frontier["space"].get("max_conditions", math.inf)
        for rule in rules["rules"]:
            if isinstance(rule["then"], dict):
                raise RejectedError("linear functions are not in the space")
            n_tests = sum(self._count_tests(c, frontier["space"]["cuts"]) for c in rule["if"])
            if n_tests > max_conditions:
                raise RejectedError(
                    f"a rule has {n_tests} conditions, but at most {max_conditions} are allowed"
                )
        parts, predictions = self._predict(rules)
        if sum(parts) != self.all_rows:  # the parts are disjoint
            raise RejectedError("rules that should be complete do not cover all rows")
        if kind == "tree":
            if parts != self._premises(rules):
                raise RejectedError("several leaves of a tree hold for the same row")
            self._check_tree([part for part in parts if part], frontier["space"]["cuts"])
        return parts, predictions

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
                raise RejectedError("no tree of the space has the leaves of its rules")

    def _count_tests(self, condition: Any, cuts: Any) -> int:
        """Return the number of tests of the space that a condition consists of."""
        kind, feature = condition["type"], str(condition.get("feature"))
        if kind == "interval":
            bounds = [condition[side] for side in ("lower", "upper") if side in condition]
            if any(bound not in cuts["thresholds"].get(feature, ()) for bound in bounds):
                raise RejectedError(f"{bounds} are not cuts of the space")
            if condition.get("lower_closed", False) or not condition.get("upper_closed", True):
                raise RejectedError("tests of the space are x ≤ c and x > c")
            if bounds:
                return len(bounds)
            kind = "missing"  # an interval without bounds holds for all known values
        if kind == "one_of":
            # A negated condition on several values is one test per value, or a test of a set.
            keys = {_key(value) for value in condition["values"]}
            sets = cuts.get("category_sets", {}).get(feature, ())
            if any({_key(value) for value in values} == keys for values in sets):
                return 1
            if not keys <= {_key(value) for value in cuts["categories"].get(feature, ())}:
                raise RejectedError("a rule tests categories that the space does not test")
            if not condition.get("negated", False) and len(keys) > 1:
                raise RejectedError("tests of the space compare categories with one value each")
            return len(keys)
        if kind == "missing" and condition["feature"] in cuts["missing_features"]:
            return 1
        raise RejectedError(f"the space has no such condition of type {kind!r}")

    # --- 9. bounds of the loss ---

    def check_bounds(self, frontier: Any, n_remaining: int) -> list[str]:
        """Verify the bounds of one kind of rules, within an equal share of the remaining time.

        Parameters
        ----------
        frontier : dict
            The bounds of one kind of rules.
        n_remaining : int
            Number of kinds that have not been verified, including this one.

        Returns
        -------
        list of str
            Sentences on the bounds.
        """
        f1_bounds = [b for b in frontier.get("f1_bounds", ()) if b["upper_bound"] < 1]
        budget = self.budget.share(1 / n_remaining)
        tests = self._tests(frontier["space"]["cuts"])
        sentences = self.check_loss_bounds(
            frontier, tests, budget.share(0.5) if f1_bounds else budget
        )
        for f1_bound in f1_bounds:
            size, upper_bound = f1_bound["max_leaves"], f1_bound["upper_bound"]
            if self.incumbent_f1[size][0] > upper_bound + _ROUNDING:
                raise RejectedError(f"a tree has a larger F1 than the bound {upper_bound}")
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
        cost = self._make_cost(budget)
        one_rule, unavoidable = cost(self.all_rows), self._unavoidable_loss(tests, cost)
        count, least_loss = (
            _enumerate_trees(tests, cost, budget)
            if kind == "tree"
            else _enumerate_lists(
                tests, self.all_rows, frontier["space"]["max_conditions"], cost, budget
            )
        )
        # Solvers use floats, whose error also depends on the largest weight.
        wrong = max(
            one_rule * Fraction(_WRONG), self.rows.total_weight * Fraction(_SOLVER_ROUNDING)
        )
        if self.loss == "squared_error":
            wrong += Fraction(self.rows.square_error())
        enumerated: list[int] = []
        searched: list[int] = []
        limits: set[str] = set()
        verified: list[Fraction] = []
        search: TreeSearch | ListSearch | None = None
        for size, bound in enumerate(lower, start=1):
            proven = unavoidable
            if bound > unavoidable or size == 1:
                try:
                    if count(size) <= _MAX_ENUMERATED:
                        proven = max(proven, least_loss(self.all_rows, size))
                        enumerated.append(size)
                    else:
                        search = search or self._make_search(frontier, tests, len(lower))
                        search.budget = budget.share(1 / (len(lower) - size + 1))
                        proven = max(proven, search.exact_bound(size, bound))
                        searched.append(size)
                except LimitError as error:
                    limits.add(str(error))
                else:
                    if bound > proven + wrong:
                        raise RejectedError(
                            f"{kind}: {size} rules have a loss of {float(proven)}, below the "
                            f"bound {float(bound)}"
                        )
            verified.append(min(bound, proven))
        # A proven bound for more rules is also valid for fewer rules.
        for i in range(len(verified) - 1, 0, -1):
            verified[i - 1] = max(verified[i - 1], verified[i])
        self.verified_losses[kind] = verified
        unproven = [
            size
            for size, (bound, proven) in enumerate(zip(lower, verified, strict=True), start=1)
            if bound > proven + wrong
        ]
        start = f"{kind}: no rules are better than its bounds for "
        sentences = []
        if enumerated:
            sentences.append(f"{start}{_join(enumerated)} rules; all were enumerated.")
        if searched:
            sentences.append(f"{start}{_join(searched)} rules, by the checker's own search.")
        if unproven:
            self.unchecked.append(
                f"{kind}: the bounds for {_join(unproven)} rules are not checked, because the "
                f"{' and '.join(sorted(limits))} limit is reached."
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

    def _make_cost(self, budget: Budget) -> Callable[[int], Fraction]:
        """Return a function that computes the exact loss of the best constant for a set of rows."""
        rows = self.rows

        def errors(bits: int) -> Fraction:
            budget.check_time()
            sums = [
                sum(weight * (bits & members).bit_count() for weight, members in sets.items())
                for sets in sets_by_label
            ]
            return Fraction(sum(sums) - max(sums, default=0), rows.unit)

        def squares(bits: int) -> Fraction:
            budget.check_time()
            return rows.squares(_members(bits))

        def deviations(bits: int) -> Fraction:
            budget.check_time()
            index = sorted(_members(bits), key=rows.numbers.__getitem__)
            total = sum(rows.weights[i] for i in index)
            below, median = 0, 0
            for i in index:
                below += rows.weights[i]
                median = rows.numbers[i]
                if 2 * below >= total:
                    break
            loss = sum(rows.weights[i] * abs(rows.numbers[i] - median) for i in index)
            return Fraction(loss, rows.unit * rows.number_unit)

        if self.loss == "squared_error":
            return squares
        if self.loss == "absolute_error":
            return deviations
        members: dict[Any, dict[int, int]] = {}
        for i, (value, weight) in enumerate(zip(rows.targets, rows.weights, strict=True)):
            of_label = members.setdefault(_key(value), {})
            of_label[weight] = of_label.get(weight, 0) | 1 << i
        sets_by_label = list(members.values())
        return errors

    def _matrix(self, tests: Sequence[int]) -> Any:
        """Return tests as a matrix of booleans, (n_rows, n_tests)."""
        n = len(self.rows.index)
        self.budget.check_memory(8 * n * len(tests))
        raw = b"".join(test.to_bytes(-(-n // 8), "little") for test in tests)
        bits = np.frombuffer(raw, dtype=np.uint8).reshape(len(tests), -(-n // 8))
        return np.unpackbits(bits, axis=1, bitorder="little", count=n).T == 1

    def _labels(self) -> tuple[dict[Any, int], Any]:
        """Return the code of each label, and the codes of the targets."""
        keys = [_key(value) for value in self.rows.targets]
        numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        return numbers, np.array([numbers[key] for key in keys])

    def _make_search(
        self, frontier: Any, tests: Sequence[int], n_sizes: int
    ) -> TreeSearch | ListSearch:
        """Return a search for better rules."""
        rows, n, m = self.rows, len(self.rows.index), len(tests)
        self.budget.check_memory(24 * n * m + 16 * m * n_sizes**2)
        target = self._labels()[1] if self.loss == "errors" else np.array(rows.targets, float)
        if self.loss == "errors" and rows.total < 2**53:  # all sums are exact
            weights, unit = np.array(rows.weights, float), rows.unit
        else:
            weights, unit = np.array([rows.w[i] for i in rows.index]), None
        matrix = self._matrix(tests)
        if frontier["kind"] == "tree":
            return TreeSearch(matrix, target, weights, self.loss, unit, self.budget)
        max_conditions = frontier["space"]["max_conditions"]
        return ListSearch(
            matrix, target, weights, self.loss, unit, self.budget, max_conditions=max_conditions
        )

    # --- 10. bounds of the weighted F1 ---

    def check_f1_bound(self, f1_bound: Any, tests: Sequence[int], budget: Budget) -> float:
        """Verify, node by node, that no tree has a larger weighted F1; return the bound."""
        upper_bound, proof = f1_bound["upper_bound"], f1_bound["proof"]
        labels, _ = self._labels()
        keys = [_key(label) for label in proof.get("classes", ())]
        if len(set(keys)) < len(keys) or not set(labels) <= set(keys):
            raise RejectedError("its proof does not name the classes of the rows")
        if len(labels) < len(keys):
            raise LimitError("class")
        if proof["target"] > upper_bound:
            raise RejectedError(
                f"its proof is for an F1 of {proof['target']}, but the stated bound is "
                f"{upper_bound}"
            )
        y = np.array([keys.index(_key(value)) for value in self.rows.targets])
        w = np.array([self.rows.w[i] for i in self.rows.index])
        n = np.bincount(y, w, len(keys))
        total = float(n.sum())
        is_whole = bool((w == np.floor(w)).all()) and total < 2**53
        # If the F1 is above the target, each class has at least this F1.
        f1 = np.maximum(1 - total * (1 - proof["target"]) / n, 0.0)
        high = np.where(f1 > 0, n * (2 / np.where(f1 > 0, f1, 1) - 1), total)
        low, high = f1 * n / (2 - f1) * (1 - 1e-12), np.minimum(high * (1 + 1e-12), total)
        matrix, error = self._matrix(tests), 0.0
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
                nodes += _branch(node, low, high, is_whole=is_whole)
                continue
            if len(node.get("multipliers", ())) != len(n) or max(node["linear"], default=0) >= len(
                n
            ):
                raise RejectedError("a node of its proof does not have one multiplier per class")
            search = F1TreeSearch(matrix, y, w, low, high, node, budget)
            size = f1_bound["max_leaves"]
            limit = total + search.constant - upper_bound * total / 2
            if not search.least_loss(size, limit) >= limit - search.error(size):
                raise LimitError("proof")  # the relaxed bound is too weak
            error = max(error, search.error(size))
        return float(upper_bound) + 2 * error / total

    # --- 12. claims ---

    def state_given_rules(self) -> list[str]:
        """Return the claims on the score and the completeness of the given rules."""
        if self.given_term is None or self.given_completeness is None:
            return []
        if (score := self.data["score"]) not in _SCORES:
            return []
        n_rows = len(self.rows.y)
        rows = "this row" if n_rows == 1 else f"these {n_rows} rows"
        weighted = " with their weights" if self.rows.is_weighted else ""
        claims = [
            f"On {rows}{weighted}, against {self.reference}, "
            f"{self._count_given_rules()} {_SCORES[score][0]} {self._given_score():.4f} "
            f"({self._describe_score()})."
        ]
        if self.given_completeness < 1:
            claims.append(
                "The certificate compares complete rules; the completeness of the given rules is "
                f"{self.given_completeness:.3f}."
            )
        return claims

    def _count_given_rules(self) -> str:
        n_rules = self.data["given"]["n_rules"]
        return "1 rule has" if n_rules == 1 else f"{n_rules} rules have"

    def _describe_score(self) -> str:
        """Return the metric, the weights and the completeness of the score in words."""
        weights = (f"{name} {weight:g}" for name, weight in sorted(self.weights.items()))
        by_rows = self.data["settings"]["completeness"] == "instances"
        completeness = ["completeness by rows"] if by_rows else []
        return ", ".join([METRIC_NAMES[self.metric], *weights, *completeness])

    def _given_score(self) -> float:
        term, completeness = self.given_term, self.given_completeness
        assert term is not None
        assert completeness is not None
        n_rules = self.data["given"]["n_rules"]
        return _score(self.data["score"], term, n_rules, completeness, self.weights)

    def _complete_score(self, metric: float, n_rules: int) -> float:
        """Return the score of complete rules from their metric."""
        term = _prediction_term(self.data["score"], self.metric, metric)
        return _score(self.data["score"], term, n_rules, 1.0, self.weights)

    def _best_metric(self, loss: Fraction, n_rules: int, f1: float | None) -> float:
        """Return the best value of the metric for losses of at least `loss`."""
        total = self.rows.total_weight
        if self.metric == "accuracy":
            return float(1 - loss / total)
        if self.metric == "f1_weighted":
            key = float(loss), n_rules
            if key not in self._largest_f1:
                self._largest_f1[key] = largest_f1(self._class_weights, *key, self.budget)
            return self._largest_f1[key] if f1 is None else min(self._largest_f1[key], f1)
        if self.metric == "r2":
            squares = self.rows.squares()
            return float(1 - loss / squares) if squares else 1.0
        value = loss / total
        return math.sqrt(value) if self.metric == "root_mean_squared_error" else float(value)

    @property
    def _class_weights(self) -> tuple[float, ...]:
        weights: dict[Any, int] = defaultdict(int)
        for value, weight in zip(self.rows.targets, self.rows.weights, strict=True):
            weights[_key(value)] += weight
        return tuple(sorted((w / self.rows.unit for w in weights.values()), reverse=True))

    def state_claims(self, frontier: Any) -> list[str]:
        """Return the claim on one kind of rules, which depends only on verified bounds."""
        kind, score = frontier["kind"], self.data["score"]
        if score not in _SCORES:
            return []
        sign, label = 1 if score == "ice" else -1, _SCORES[score][0]
        stated_f1 = {b["max_leaves"]: b["upper_bound"] for b in frontier.get("f1_bounds", ())}
        scored_incumbents = [(float(metric), n_rules) for metric, n_rules in self.incumbents[kind]]
        if kind == "tree" and self.metric == "f1_weighted":
            scored_incumbents += [(float(f1), n) for f1, n in self.incumbent_f1.values() if n]
        best_found = max(sign * self._complete_score(*one) for one in scored_incumbents)

        def best_possible(losses: Sequence[Fraction], f1: Mapping[int, float]) -> float:
            scores = [
                sign * self._complete_score(self._best_metric(loss, size, f1.get(size)), size)
                for size, loss in enumerate(losses, start=1)
            ]
            return max(best_found, *scores)

        verified_f1 = self.verified_f1 if kind == "tree" else {}
        verified = best_possible(self.verified_losses[kind], verified_f1)
        stated = best_possible([Fraction(bound) for bound in frontier["lower"]], stated_f1)
        if verified > stated + _SCORE_ROUNDING * abs(stated):
            sentence = f"{kind}: the stated bounds of {label} are not checked."
            if not any(reason.startswith(f"{kind}:") for reason in self.unchecked):
                self.unchecked.append(sentence)
        space = self._describe_space(frontier)
        perfect = 1.0 if self.metric in PERFORMANCES else 0.0
        n_more = len(frontier["lower"]) + 1
        if sign * self._complete_score(perfect, n_more) <= best_found:
            space += f" (or with more {'leaves' if kind == 'tree' else 'rules'})"
        rounding = _SCORE_ROUNDING * abs(verified)
        best = "the best" if verified - best_found <= rounding else "the best found"
        incumbent = f"{best} has {label} {sign * best_found:.4f}"
        if self.given_term is None or self.given_completeness is None:
            limit = sign * math.ceil(verified * 1e4 - 1e-9) / 1e4
            described = f"{label} ({self._describe_score()})"
            return [f"No {space} has a better {described} than {limit:.4f}; {incumbent}."]
        gap = verified - sign * self._given_score()
        if gap <= rounding:
            return [f"No {space} is better; {incumbent}."]
        improvement = f"{math.ceil(gap * 1e4 - 1e-9) / 1e4:.4f} {label}"
        return [f"No {space} is better by more than {improvement}; {incumbent}."]

    def _describe_space(self, frontier: Any) -> str:
        """Describe the search space of a frontier: kind and size of the rules, and their cuts."""
        max_rules, space = len(frontier["lower"]), frontier["space"]
        size = "1 leaf" if max_rules == 1 else f"{max_rules} leaves"
        if frontier["kind"] == "list":
            size = _count(max_rules, "rule")
            size += f" with at most {_count(space['max_conditions'], 'condition')} each"
        per_feature = self.data["settings"]["cuts_per_feature"]
        if self.data["settings"].get("stated_cuts", False):
            parts = (
                space["cuts"].get(name, {})
                for name in ("thresholds", "categories", "category_sets")
            )
            cuts = _count(sum(len(v) for part in parts for v in part.values()), "stated cut")
        elif per_feature is None and not space["cuts"].get("category_sets"):
            cuts = "all cuts between neighboring values"
        else:
            # Without the given rules, the check cannot decide which of the other cuts are theirs.
            is_unknown = self.data["given"]["rules"] is None
            cuts = f"{per_feature} cuts per feature"
            cuts = "all cuts between neighboring values" if per_feature is None else cuts
            cuts += " and other cuts" if is_unknown else " and those of the given rules"
        return f"decision {frontier['kind']} of at most {size} over {cuts}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _join(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


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


def _branch(node: Any, low: Any, high: Any, *, is_whole: bool) -> list[tuple[Any, Any, Any]]:
    """Return both branches of a node on the predictions of one class."""
    k, (below, above) = node["class"], node["between"]
    is_next = is_whole and below == math.floor(below) and above == below + 1
    if k >= len(low) or not (above <= below or is_next):
        raise RejectedError(
            f"a branch of its proof has the invalid limits {below} and {above} of predictions"
        )
    first_high, second_low = high.copy(), low.copy()
    first_high[k] = min(first_high[k], below)
    second_low[k] = max(second_low[k], above)
    first, second = node["branches"]
    return [(first, low, first_high), (second, second_low, high)]


# --- 9. enumeration of all rules ---


def _enumerate_trees(
    tests: Sequence[int], cost: Callable[[int], Fraction], budget: Budget
) -> tuple[Callable[[int], float], Callable[[int, int], Fraction]]:
    """Return functions that count trees, and that find their smallest loss by enumeration."""
    counts = [0.0, 1.0]

    def count(size: int) -> float:
        while len(counts) <= size and counts[-1] <= _MAX_ENUMERATED:
            n = len(counts)
            counts.append(sum(len(tests) * (counts[k] + counts[n - k]) for k in range(1, n)))
        return counts[min(size, len(counts) - 1)]

    cached_cost = cache(cost)

    @cache
    def least_loss(rows: int, size: int) -> Fraction:
        best = cached_cost(rows)
        if size == 1 or best == 0:
            return best
        budget.check_time()
        for test in tests:
            yes, no = rows & test, rows & ~test
            if yes and no:
                for left in range(1, size):
                    best = min(best, least_loss(yes, left) + least_loss(no, size - left))
        return best

    return count, least_loss


def _enumerate_lists(
    tests: Sequence[int],
    all_rows: int,
    max_conditions: int,
    cost: Callable[[int], Fraction],
    budget: Budget,
) -> tuple[Callable[[int], float], Callable[[int, int], Fraction]]:
    """Return functions that count lists, and that find their smallest loss by enumeration."""
    sides = [side for test in tests for side in (test, all_rows ^ test)]
    premises: set[int] = set()
    n_premises = sum(math.comb(len(sides), n) for n in range(1, max_conditions + 1))
    if n_premises <= _MAX_ENUMERATED:
        level = {all_rows}
        for _ in range(max_conditions):
            budget.check_time()
            n_sets = len(premises) + len(level) * (1 + len(sides))
            budget.check_memory(n_sets * all_rows.bit_length() / 8)
            level = {premise & side for premise in level for side in sides}
            premises |= level
        n_premises = len(premises := premises - {0, all_rows})

    def count(size: int) -> float:
        if size == 1 or not n_premises:
            return 1.0
        return float(2 * n_premises) ** (size - 1) if size < 20 else math.inf

    cached_cost = cache(cost)

    @cache
    def least_loss(rows: int, size: int) -> Fraction:
        best = cached_cost(rows)
        if size == 1 or best == 0:
            return best
        budget.check_time()
        for covered in {rows & premise for premise in premises} - {0, rows}:
            covered_cost = cached_cost(covered)
            if covered_cost < best:
                best = min(best, covered_cost + least_loss(rows & ~covered, size - 1))
        return best

    return count, least_loss


# --- 9. and 10. searches ---


class _Search:
    """Base of the searches for trees and for lists.

    Parameters
    ----------
    weights : ndarray of float
        Weights of the rows.
    unit : int or None
        Integer that represents a weight of 1 if weights are integers; None if sums are rounded.
    budget : Budget
        Limits of time and memory.
    """

    max_costs: Any

    def __init__(self, weights: Any, unit: int | None, budget: Budget) -> None:
        self.unit, self.budget, self.n_rows = unit, budget, len(weights)
        #: Type of sums; single precision is exact for integers below this limit.
        is_small = unit is not None and weights.sum() < 2**24
        self.dtype = np.float32 if is_small else np.float64

    def error(self, size: int) -> float:
        """Return the largest rounding error of a loss: of sums of all rows, once per rule."""
        if self.unit is not None:
            return 0.0
        scale = float(np.asarray(self.max_costs, dtype=float).sum())
        return 8 * size * (self.n_rows + 100) * 2.0**-53 * scale

    def exact_bound(self, size: int, bound: Fraction) -> Fraction:
        """Return a lower bound of the loss, which is the smallest loss if it is below `bound`."""
        if self.unit is None:
            least = self.least_loss(size, float(bound))
            return max(Fraction(0), Fraction(least) - Fraction(self.error(size)))
        return Fraction(self.least_loss(size, math.ceil(bound * self.unit))) / self.unit

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        raise NotImplementedError


class TreeSearch(_Search):
    """Search for the smallest loss of trees, or for a sufficient lower bound.

    Rows that no test separates form one point. The loss of a set of points exceeds the loss of a
    subset by at most the largest cost of the other points. The bound of a subset therefore also
    bounds similar subsets, and only few subsets must be solved.

    Parameters
    ----------
    test_matrix : ndarray of bool, shape (n_rows, n_tests)
        Rows for which each test holds.
    y : ndarray
        Class indices, or numbers.
    w : ndarray of float
        Weights.
    loss : {"errors", "squared_error", "absolute_error"}
        Loss that is summed over the rows.
    unit, budget
        See :class:`_Search`.
    """

    def __init__(
        self, test_matrix: Any, y: Any, w: Any, loss: str, unit: int | None, budget: Budget
    ) -> None:
        super().__init__(w, unit, budget)
        self.loss = loss
        _, point = np.unique(np.packbits(test_matrix, axis=1), axis=0, return_inverse=True)
        point = point.ravel()
        n = int(point.max()) + 1
        row_of_point = np.unique(point, return_index=True)[1]
        if loss == "errors":
            stats = np.zeros((n, int(y.max()) + 1))
            np.add.at(stats, (point, y), w)
            self.max_costs = stats.sum(axis=1)
        elif loss == "squared_error":
            y = y - np.average(y, weights=w)
            stats = np.zeros((n, 3))
            np.add.at(stats, point, np.column_stack([w, w * y, w * y * y]))
            largest = w * np.maximum((y - y.min()) ** 2, (y.max() - y) ** 2)
            self.max_costs = np.bincount(point, largest, n)
        else:  # medians require single rows, sorted by target
            row_of_point = np.argsort(y, kind="stable")
            self.y, stats = y[row_of_point], w[row_of_point, None]
            self.max_costs = stats[:, 0] * np.maximum(self.y - y.min(), y.max() - self.y)
        self.stats = stats
        self.test_matrix = test_matrix[row_of_point].astype(self.dtype)
        self.min_costs = (
            np.zeros(len(stats)) if loss == "absolute_error" else self._loss_of_sums(stats)
        )
        #: Lower bound by set of points and number of rules, and whether it is the smallest loss.
        self.cache: dict[tuple[bytes, int], tuple[float, bool]] = {}
        self.n_cached_bytes = 0

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        return self._solve(np.arange(len(self.stats)), size, limit)[0]

    def _loss_of_sums(self, sums: Any) -> Any:
        """Return the loss of the best constant from the sums of the points' statistics."""
        if self.loss == "errors":
            return sums.sum(axis=-1) - sums.max(axis=-1)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * max(weight.max(), 1e-300), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / weight), 0.0)

    def _class_bound(self, sums: Any, size: int) -> Any:
        """Return a lower bound for rules that predict at most as many classes as their number."""
        if self.loss != "errors" or size >= sums.shape[-1]:
            return np.zeros(sums.shape[:-1])
        return np.sort(sums, axis=-1)[..., : sums.shape[-1] - size].sum(axis=-1)

    def _leaf_loss(self, points: Any) -> float:
        """Return the loss of the best constant for some points."""
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
        """Return lower bounds by side, leaves and test, and whether they are the smallest losses.

        The lists by leaves begin with an unused entry for 0 leaves.
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
        n_pairs = float(len(tests)) ** 2
        is_cheap = len(points) * n_pairs < _MAX_PAIR_PRODUCTS
        is_small = 48 * n_pairs * stats.shape[1] < self.budget.n_bytes
        if self.loss != "absolute_error" and is_cheap and is_small:
            for side, losses in enumerate(self._two_leaf_losses(points, matrix)):
                lower[side][2], is_least[side][2] = losses, np.ones(len(tests), dtype=bool)
        return lower, is_least

    def _two_leaf_losses(self, points: Any, matrix: Any) -> list[Any]:
        """Return the smallest loss of each side of each test with two leaves, from all pairs."""
        stats = self.stats[points].astype(matrix.dtype)
        total = stats.sum(axis=0)
        shared = np.stack([matrix.T @ (matrix * stats[:, [k]]) for k in range(stats.shape[1])], -1)
        first = matrix.T @ stats
        inside = self._loss_of_sums(shared) + self._loss_of_sums(first[:, None] - shared)
        second_only = first[None] - shared
        outside = self._loss_of_sums(second_only)
        outside = outside + self._loss_of_sums(total - first[:, None] - second_only)
        return [inside.min(axis=1), outside.min(axis=1)]


class F1TreeSearch(TreeSearch):
    """Search for trees that minimize the weight of rows minus the gains in the weighted F1.

    Let n be the weight of a class, and let the weight predicted as this class be between `low` and
    `high`. A leaf with weight s and weight c of the class gains n c / (n + max(s, low)). With the
    linear bound, it gains n c / (n + high) minus a cost of n min(n, high) / ((n + low) (n + high))
    per row; the cost of `high` rows is added as a constant. A positive Lagrange multiplier
    penalizes rows above `high`, a negative one penalizes rows below `low`.

    Parameters
    ----------
    test_matrix, y, w : ndarray
        Tests, class indices and weights of the rows.
    low, high : ndarray of shape (n_classes,)
        Limits of the weight predicted as each class.
    node : dict
        Leaf of the proof, with its multipliers and the classes with the linear bound.
    budget : Budget
        Limits of time and memory.
    """

    def __init__(
        self, test_matrix: Any, y: Any, w: Any, low: Any, high: Any, node: Any, budget: Budget
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
        super().__init__(test_matrix, y, w, "errors", None, budget)
        self.max_costs = self.max_costs * (1.25 + float(self.row_costs.max()))

    def _gain_of_hits(self, hits: Any, weight: Any) -> Any:
        """Return the gain of hits in leaves with a given weight, without the costs of rows."""
        predicted = np.maximum(weight, self.low)
        # Products of tiny weights would be 0.
        return hits * (self.n / (self.n + np.where(self.is_linear, self.high, predicted)))

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


class ListSearch(_Search):
    """Search for the smallest loss of lists in excess of the loss that no list can avoid.

    A list is a premise, followed by a list with one rule fewer for the remaining rows. Premises are
    the distinct sets of points of all conjunctions. Additional rows increase the loss by at most
    their `max_costs`. The bound for some remaining rows therefore also bounds similar sets of rows.

    Parameters
    ----------
    test_matrix, y, w, loss, unit, budget
        See :class:`TreeSearch`.
    max_conditions : int
        Largest number of tests in a premise.
    """

    def __init__(
        self,
        test_matrix: Any,
        y: Any,
        w: Any,
        loss: str,
        unit: int | None,
        budget: Budget,
        *,
        max_conditions: int,
    ) -> None:
        super().__init__(w, unit, budget)
        self.loss = loss
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
            y = y - np.average(y, weights=w)
            weight, total = np.bincount(point, w, n), np.bincount(point, w * y, n)
            mean = total / weight
            stats = np.column_stack([weight, total, total * mean])
            self.unavoidable_loss = float((w * y * y).sum() - stats[:, 2].sum())
            max_costs = weight * np.maximum((mean - mean.min()) ** 2, (mean.max() - mean) ** 2)
        else:  # there is one statistic for each number that a rule may predict
            budget.check_memory(16.0 * len(y) * len(np.unique(y)))
            row_of_point, self.unavoidable_loss = np.arange(len(y)), 0.0
            stats = w[:, None] * np.abs(y[:, None] - np.unique(y))
            max_costs = stats.max(axis=1)
        self.stats, self.max_costs = stats.astype(self.dtype), max_costs.astype(self.dtype)
        self.premises = self._list_premises(test_matrix[row_of_point], max_conditions)
        #: Results for all rows, by the number of rules.
        self.cache: dict[int, tuple[float, bool, Any, Any]] = {}

    def error(self, size: int) -> float:
        """Return the largest rounding error of a loss, including its unavoidable part."""
        added = 0.0 if self.unit is not None else self.unavoidable_loss * (self.n_rows + 100)
        return super().error(size) + 8 * added * 2.0**-53

    def _list_premises(self, matrix: Any, max_conditions: int) -> Any:
        """Return the distinct conjunctions of tests and their negations, (n_premises, n_points)."""
        sides = np.concatenate([matrix, ~matrix], axis=1).T
        level, n = sides, matrix.shape[0]
        levels = [_distinct(np.packbits(sides, axis=1))]
        for _ in range(1, max_conditions):
            parts: Any = levels[-1]
            for side in sides:
                self.budget.check_time()
                intersections = _distinct(np.packbits(level & side, axis=1))
                parts = _distinct(np.concatenate([parts, intersections]))
                self.budget.check_memory(parts.nbytes * (8 * self.stats.itemsize + 2))
            level = np.unpackbits(parts, axis=1, count=n).astype(bool)
            levels.append(parts)
        packed = _distinct(np.concatenate(levels))
        self.budget.check_memory(8 * packed.nbytes * (self.stats.itemsize + 1))
        premises = np.unpackbits(packed, axis=1, count=n)
        is_proper = premises.any(axis=1) & ~premises.all(axis=1)
        return premises[is_proper].astype(self.dtype)

    def least_loss(self, size: int, limit: float) -> float:
        """Return the smallest loss of all rows, or a bound of it that is at least the limit."""
        return self.unavoidable_loss + self._solve_all(size, limit - self.unavoidable_loss)[0]

    def _solve_all(self, size: int, limit: float) -> tuple[float, bool, Any, Any]:
        """Solve all rows, unless the cache has a sufficient bound."""
        if size not in self.cache or not (self.cache[size][1] or self.cache[size][0] >= limit):
            self.cache[size] = self._solve(np.ones(len(self.stats), dtype=bool), size, limit)
        return self.cache[size]

    def _premise_losses(self, is_open: Any) -> tuple[Any, Any, Any]:
        """Return the losses of covered and remaining points, and the costs of the covered ones."""
        stats, max_costs = self.stats * is_open[:, None], self.max_costs * is_open
        sums, costs = self.premises @ stats, self.premises @ max_costs
        covered = self._loss_of_sums(sums, costs)
        remaining = self._loss_of_sums(stats.sum(axis=0) - sums, max_costs.sum() - costs)
        return covered, remaining, costs

    def _loss_of_sums(self, sums: Any, max_costs: Any) -> Any:
        """Return the loss of the best constant from the sums of the points' statistics."""
        if self.loss == "errors":
            return max_costs - sums.max(axis=-1)
        if self.loss == "absolute_error":
            return np.maximum(sums.min(axis=-1), 0.0)
        weight = sums[..., 0]
        weight = np.where(weight > 1e-12 * self.stats[:, 0].sum(), weight, np.inf)
        return np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / weight), 0.0)

    def _solve(
        self,
        is_open: Any,
        size: int,
        limit: float,
        bound_of_fewer: float | None = None,
        similarity_bounds: Any = None,
    ) -> tuple[float, bool, Any, Any]:
        """Return the smallest loss of some points, or a lower bound that reaches the limit.

        Parameters
        ----------
        is_open : ndarray of bool
            Mask of the points.
        size : int
            Largest number of rules.
        limit : float
            Lower bound at which the search stops.
        bound_of_fewer : float, optional
            Lower bound of the loss with one rule fewer.
        similarity_bounds : ndarray of shape (n_premises,), optional
            For each premise, a lower bound of the loss of the points that it does not cover.

        Returns
        -------
        tuple of float, bool, ndarray and ndarray or None
            The bound; whether it is the smallest loss; by premise, the sum of `max_costs` of
            covered points, and a bound for the others (None if nothing was searched).
        """
        self.budget.check_time()
        covered, remaining, costs = self._premise_losses(is_open)
        stats, max_cost = self.stats[is_open].sum(axis=0), self.max_costs[is_open].sum()
        best = float(self._loss_of_sums(stats, max_cost))
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
        is_root = bool(is_open.all())
        max_stored = min(_MAX_STORED, int(self.budget.n_bytes / (8 * size * costs.nbytes)))
        solved_premises: list[int] = []
        solved_costs: list[Any] = []
        solved_bounds: list[Any] = []
        while True:
            target = min(best, limit)
            sums = covered + lower
            if size == 3 and not is_root:
                # All premises must be solved or bounded; large premises bound more of the others.
                premise = int(np.where(sums < target, costs, -1.0).argmax())
            else:
                premise = int(sums.argmin())
            if sums[premise] >= target:
                is_least = best <= limit
                bound = best if is_least else min(float(sums.min()), best)
                return bound, is_least, costs, lower
            child_bounds = None
            if solved_bounds and size > 3:
                distances = [float(one[premise]) for one in solved_costs]
                nearest = int(np.argmin(distances))
                child_bounds = solved_bounds[nearest] - distances[nearest]
                # The remaining points of two premises do not depend on their order.
                swapped = [one[premise] for one in solved_bounds]
                child_bounds[solved_premises] = np.maximum(child_bounds[solved_premises], swapped)
            bound, is_least, child_costs, child_lower = self._solve(
                is_open & (self.premises[premise] == 0),
                size - 1,
                _BOUND_FACTOR * target - float(covered[premise]),
                0.0 if bounds_of_fewer is None else float(bounds_of_fewer[premise]),
                child_bounds,
            )
            if is_least:
                best = min(best, float(covered[premise]) + bound)
            np.maximum(lower, bound - child_costs, out=lower)
            lower[premise] = max(float(lower[premise]), bound)
            if child_lower is not None and len(solved_bounds) < max_stored:
                solved_premises.append(premise)
                solved_costs.append(child_costs)
                solved_bounds.append(child_lower)


def _distinct(packed: Any) -> Any:
    """Return the distinct rows of a matrix of bytes."""
    rows = np.ascontiguousarray(packed)
    as_one = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    return rows[np.unique(as_one, return_index=True)[1]]


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
        pairs = zip(class_weights[:m], class_weights[-m:], strict=True)
        sets[tuple(class_weights[:m])] = max(large - small for large, small in pairs)
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
    unpredicted = max(0.0, total - math.fsum(n))
    errors = max(errors, unpredicted)
    missed = errors - unpredicted

    def f1(k: int, a: float, b: float) -> float:
        return n[k] / total * 2 * max(n[k] - a, 0.0) / (2 * n[k] - min(a, n[k]) + b)

    if len(n) == 1:
        return f1(0, missed, errors)

    def bound(k: int, j: int, low: float, high: float) -> float:
        budget.check_time()
        other_bounds = [
            (n[i], max(low - slack, 0.0) if i == j else 0.0) for i in range(len(n)) if i != k
        ]
        first = f1(k, low, max(errors - high, 0.0))
        return first + _f1_of_others(other_bounds, missed - high, total)

    pairs = {(n[k], n[j]): (k, j) for k in range(len(n)) for j in range(len(n)) if k != j}
    heap = [
        (-bound(k, j, 0.0, end), k, j, 0.0, end)
        for k, j in pairs.values()
        for end in [min(n[k], missed)]
    ]
    heapq.heapify(heap)
    attained = 0.0
    for _ in range(_MAX_INTERVALS):
        top, k, j, low, high = heap[0]
        middle = (low + high) / 2
        attained = max(attained, bound(k, j, middle, middle))
        if -top <= attained + _F1_PRECISION or not low < middle < high:
            break
        heapq.heapreplace(heap, (-bound(k, j, low, middle), k, j, low, middle))
        heapq.heappush(heap, (-bound(k, j, middle, high), k, j, middle, high))
    return -heap[0][0]


def _f1_of_others(classes: Sequence[tuple[float, float]], missed: float, total: float) -> float:
    """Return an upper bound of the sum of F1, given false positives and the sum of false negatives.

    Every Lagrange multiplier of the sum gives a bound; bisection finds a good multiplier.
    """
    best = math.fsum(n / total * 2 * n / (2 * n + b) for n, b in classes)
    low, high = 1e-12 / total, 1e3 / total
    for _ in range(45 if missed > 0 else 0):
        multiplier = math.sqrt(low * high)
        sum_of_misses, dual = 0.0, -multiplier * missed
        for n, b in classes:
            a = 2 * n + b - math.sqrt(2 * n * (n + b) / (total * multiplier))
            a = min(max(a, 0.0), n)
            sum_of_misses += a
            dual += n / total * 2 * (n - a) / (2 * n - a + b) + multiplier * a
        best = min(best, dual)
        low, high = (low, multiplier) if sum_of_misses > missed else (multiplier, high)
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
    print(result)
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
