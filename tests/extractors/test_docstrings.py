"""Documented parameters and defaults equal those of the signature."""

from __future__ import annotations

import ast
import inspect
import math
import re
from importlib import import_module
from typing import Any

import pytest

import skescore

HOMES = ["skescore", "skescore.extractors", "skescore.rules", "skescore.metrics"]
PUBLIC = {
    f"{home}.{name}": getattr(import_module(home), name)
    for home in HOMES
    for name in import_module(home).__all__
    if home != "skescore" or not name.startswith("__")
}
DOCUMENTED = {
    name: thing
    for name, thing in PUBLIC.items()
    if callable(thing)
    and not inspect.isabstract(thing)
    and (inspect.getdoc(thing) or "").find("\nParameters\n") >= 0
}


def documented_parameters(thing: Any) -> dict[str, str]:
    """Return names and types of the section "Parameters" of a docstring."""
    text = inspect.getdoc(thing)
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w[^\n]*\n-+\n|\Z)", text, re.M | re.S)[1]
    results = {}
    for names, kind in re.findall(r"^(\S[^:\n]*?)(?: : (.*))?$", section, re.M):
        for name in names.split(", "):
            results[name.lstrip("*")] = kind
    return results


def signature_of(thing: Any) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(thing).parameters
    return {name: p for name, p in parameters.items() if not name.startswith("_")}


def defaults_of(kind: str, n_names: int) -> list[Any] | None:
    """Return the defaults that a type states, one per parameter of the line, or None."""
    written = re.search(r"default=(.+)$", kind)
    if written is None:
        return None
    text = re.sub(r"-?\b(inf|NaN)\b", r"'\g<0>'", written[1])
    value = ast.literal_eval(text)
    several = isinstance(value, tuple) and len(value) == n_names > 1
    values = list(value) if several else [value] * n_names
    return [float(v) if v in ("inf", "-inf", "NaN") else v for v in values]


def test_documented_names_include_main_classes():
    assert {"skescore.GridExExtractor", "skescore.CARTExtractor", "skescore.ice_score"} <= set(
        DOCUMENTED
    )
    assert len(DOCUMENTED) > 20


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_parameters_match_signature(name):
    assert list(documented_parameters(DOCUMENTED[name])) == list(signature_of(DOCUMENTED[name]))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_defaults_match_signature(name):
    signature = signature_of(DOCUMENTED[name])
    lines: dict[str, list[str]] = {}
    for parameter, kind in documented_parameters(DOCUMENTED[name]).items():
        lines.setdefault(kind, []).append(parameter)
    for kind, parameters in lines.items():
        written = defaults_of(kind, len(parameters)) if "default=" in kind else None
        for position, parameter in enumerate(parameters):
            default = signature[parameter].default
            variadic = signature[parameter].kind in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            )
            if variadic:
                continue
            if written is not None:
                assert same(written[position], default), parameter
            elif re.search(r"\boptional\b", kind):
                # A dataclass makes a new object for an omitted argument.
                assert default is None or "factory" in repr(default), parameter
            else:
                assert default is inspect.Parameter.empty, f"{parameter}: write default={default!r}"


def same(written: Any, default: Any) -> bool:
    if isinstance(default, float) and math.isnan(default):
        return isinstance(written, float) and math.isnan(written)
    return type(written) is type(default) and written == default


def test_public_names_have_a_docstring():
    for name in skescore.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(skescore, name)), name


def test_docstring_checker_finds_faults():
    def function(a, b=2, *, c=None):
        """Do nothing.

        Parameters
        ----------
        a : int
            One.
        b : int, default=3
            Two.
        c : int, optional
            Three.

        Returns
        -------
        None
        """

    assert documented_parameters(function) == {
        "a": "int",
        "b": "int, default=3",
        "c": "int, optional",
    }
    assert defaults_of("int, default=3", 1) == [3]
    assert not same(3, signature_of(function)["b"].default)
    assert defaults_of("float, default=-inf, inf", 2) == [-math.inf, math.inf]
    assert defaults_of('{"a", "b"}, default="a"', 1) == ["a"]
