"""Changed certificates are rejected, or the confirmed claim is true on all rows.

Every field of ten certificates is changed in every way that its type allows. An exhaustive
search decides whether a claim is true.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from certificate_oracle import EXAMPLES, Case, Oracle, example_cases

from skescore.certificates import Certificate, certificate_schema, check_certificate

SCHEMA = Path(__file__).parents[2] / "docs" / "_static" / "schemas" / "certificate.json"

#: Names and texts that the format knows, which replace each other.
NAMES = (
    "",
    "ice",
    "fire",
    "q",
    "tree",
    "list",
    "errors",
    "squared_error",
    "absolute_error",
    "accuracy",
    "f1_weighted",
    "r2",
    "mean_absolute_error",
    "volume",
    "instances",
    "optimal",
    "time_limit",
    "classification",
    "regression",
    "interval",
    "one_of",
    "missing",
    "yes",
    "no",
    "the black box's predictions",
)
#: Factors and constants, extreme ones included.
FACTORS = (-1.0, 0.5, 2.0, 1 + 1e-12, 1 + 1e-7, 1 + 1e-3, 1e-300, 1e300)
CONSTANTS = (
    0,
    1,
    -1,
    0.5,
    7,
    2**53,
    2**63,
    10**30,
    1e308,
    -1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "1",
    None,
    True,
    [],
    {},
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value of a certificate."""
    yield path
    items = enumerate(value) if isinstance(value, list) else getattr(value, "items", list)()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def changes(value: Any) -> Iterator[Any]:
    """Yield other values for a value."""
    if isinstance(value, bool):
        yield from (not value, int(value), int(not value), None, "true", [value])
    elif isinstance(value, int | float):
        yield from (value * factor for factor in FACTORS)
        yield from (value + 1, value - 1, math.nextafter(value, math.inf), float(value))
        yield from CONSTANTS
    elif isinstance(value, str):
        yield from (value + "x", value.upper(), value[:-1], value * 2, None, 1, True, [value])
        yield from NAMES
    elif value is None:
        yield from (0, 1.5, "", "x", [], {}, False)
    elif isinstance(value, list):
        yield from ([], None, {}, value[::-1], [*value, *value], value * 50, [value])
        for i, one in enumerate(value):
            yield from ([*value[:i], *value[i + 1 :]], [*value[:i], one, *value[i:]])
            yield [value[(i + 1) % len(value)] if k == i else v for k, v in enumerate(value)]
    else:
        yield from ({}, None, [], value | {"unknown": 1}, [value])
        for name, one in value.items():
            yield {k: v for k, v in value.items() if k != name}
            yield {k + "_" * (k == name): v for k, v in value.items()}
            yield from (value | {other: one} for other in value if other != name)


def mutants() -> Iterator[tuple[Case, tuple[Any, ...], Any]]:
    """Yield each path of all certificates with each other value; neighbors are similar."""
    for case in example_cases().values():
        data = case.data
        for path in paths(data):
            if path:
                value = reduce(lambda part, key: part[key], path, data)
                yield from ((case, path, other) for other in changes(value))


def mutated_text(case: Case, path: tuple[Any, ...], value: Any) -> str:
    """Return the text of a certificate with another value."""
    data = case.data
    reduce(lambda part, key: part[key], path[:-1], data)[path[-1]] = value
    return json.dumps(data)


def check_mutants(n: int, offset: int) -> dict[str, int]:
    """Check at least n mutants, evenly from all of them; return the number of each verdict."""
    oracles = {name: Oracle(case) for name, case in example_cases().items()}
    verdicts = {"confirmed": 0, "rejected": 0, "not checked": 0}
    step = sum(1 for _ in mutants()) // n
    for case, path, value in islice(mutants(), offset, None, step):
        text = mutated_text(case, path, value)
        result = check_certificate(text, case.X, case.y, case.weights, time_limit=20)
        false_claims = oracles[case.name].false_claims(text, result)
        assert not false_claims, (case.name, path, value, false_claims, str(result))
        verdicts[result.verdict] += 1
    return verdicts


def test_json_schema_agrees_with_checker() -> None:
    # For JSON Schema, 1.0 is an integer; for the checker, it is not.
    standard = jsonschema.Draft202012Validator
    types = standard.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    validator = jsonschema.validators.extend(standard, type_checker=types)
    schema = validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert schema.schema == certificate_schema(), "write certificate_schema() to the file again"
    of_format = re.compile(r"the certificate[^']* must match |numbers must be finite")
    # The schema cannot state that numbers are finite, and 1.0 equals its constant 1.
    further = re.compile(r"finite|version': [12]\.0")
    counts = {"valid": 0, "invalid": 0, "further": 0}
    step = sum(1 for _ in mutants()) // 120
    for case, path, value in islice(mutants(), 5, None, step):
        text = mutated_text(case, path, value)
        is_valid = schema.is_valid(json.loads(text))
        # One row is enough, as the format is checked first.
        finding = check_certificate(text, case.X[:1], case.y[:1]).findings[0]
        if of_format.match(finding.removeprefix("Wrong: ")):
            counts["further" if is_valid else "invalid"] += 1
            assert not is_valid or further.search(finding), (path, value, finding)
        else:
            counts["valid"] += 1
            assert is_valid, (path, value, finding)
    assert min(counts.values()) > 0
    assert counts["invalid"] > 60


def test_checker_confirms_no_false_mutant() -> None:
    verdicts = check_mutants(60, 7)
    assert sum(verdicts.values()) >= 60
    assert verdicts["rejected"] > 30


@pytest.mark.slow
def test_checker_confirms_no_false_mutant_of_10_000() -> None:
    verdicts = check_mutants(10_000, 3)
    assert sum(verdicts.values()) >= 10_000
    assert verdicts["rejected"] > 7_000


@pytest.mark.parametrize("name", EXAMPLES)
def test_checker_confirms_honest_certificate(name: str) -> None:
    case = example_cases()[name]
    result = check_certificate(case.text, case.X, case.y, case.weights)
    assert result.verdict == "confirmed", str(result)
    assert not Oracle(case).false_claims(case.text, result)
    stated = Certificate.from_json(case.text).to_text().split("\n")
    assert len(result.claims) == len(stated) - 1
