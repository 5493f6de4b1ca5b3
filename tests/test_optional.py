from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest

import skescore
from skescore._optional import import_optional

PACKAGE = Path(skescore.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def test_present_module_is_returned():
    assert import_optional("math", extra="plots", purpose="Counting") is math


def test_submodule_itself_is_returned_not_its_package():
    module = import_optional("importlib.metadata", extra="plots", purpose="Reading versions")
    assert module.__name__ == "importlib.metadata"


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part.of_it"])
def test_missing_package_names_purpose_and_command(module):
    with pytest.raises(ImportError) as caught:
        import_optional(module, extra="report", purpose="Writing a report")
    assert str(caught.value) == (
        "Writing a report needs the package 'no_such_package', which is not installed. "
        'Run: pip install "skescore[report]"'
    )
    assert caught.value.name == "no_such_package"


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("import a_dependency_that_is_gone", "No module named 'a_dependency_that_is_gone'"),
        ("from math import no_such_function", "cannot import name 'no_such_function'"),
        ("raise ImportError('shared library not found')", "shared library not found"),
    ],
)
def test_broken_package_is_not_called_missing(tmp_path, monkeypatch, source, detail):
    (tmp_path / "broken_module.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="installed but cannot be imported") as caught:
        import_optional("broken_module", extra="report", purpose="Writing a report")
    assert detail in str(caught.value)
    assert str(caught.value).endswith('Run: pip install --upgrade "skescore[report]"')
    assert isinstance(caught.value.__cause__, ImportError)


def test_missing_part_of_a_present_package_is_not_called_a_missing_package():
    with pytest.raises(ImportError, match=r"No module named 'json\.no_such_part'"):
        import_optional("json.no_such_part", extra="report", purpose="Writing a report")


def test_other_errors_of_a_module_pass_through(tmp_path, monkeypatch):
    (tmp_path / "module_with_a_fault.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        import_optional("module_with_a_fault", extra="report", purpose="Writing a report")


def test_every_extra_that_the_code_recommends_exists():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    recommended = {
        (path.name, extra)
        for path in PACKAGE.rglob("*.py")
        for extra in re.findall(
            r"\bextra=\"(\w+)\"|skescore\[(\w+)\]", path.read_text(encoding="utf-8")
        )
    }
    names = {(file, first or second) for file, (first, second) in recommended}
    assert names, "the doctest of import_optional alone names an extra"
    assert {(file, extra) for file, extra in names if extra not in extras} == set()
