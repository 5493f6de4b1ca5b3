"""Tests of the package as a whole: import cost, public names and import cycles."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import inspect
import json
import math
import pickle
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skescore

PACKAGE = Path(skescore.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
PUBLIC = [name for name in skescore.__all__ if name != "__version__"]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the modules."""
    return {module: HOUSE["parse_file"](path) for module, path in MODULES.items()}


# --- importing -----------------------------------------------------------------------------------


def test_import_loads_no_other_package() -> None:
    program = (
        "import json, sys; before = set(sys.modules); import skescore; dir(skescore); "
        "print(json.dumps(sorted({m.partition('.')[0] for m in set(sys.modules) - before})))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = set(json.loads(run.stdout))
    assert "skescore" in imported
    heavy = {"optuna", "sklearn", "pandas", "matplotlib", "jpype", "numpy", "scipy", "rich"}
    assert not imported & heavy
    assert imported - {"skescore"} <= sys.stdlib_module_names


def test_search_in_memory_imports_no_database() -> None:
    program = (
        "import sys; from skescore import ExtractorSearchCV; import skescore.tuning; "
        "print(sorted({'sqlalchemy', 'skrub', 'matplotlib', 'polars'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist_and_are_documented(name: str) -> None:
    value = getattr(skescore, name)
    assert value.__name__ == name
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert text
    summary, _, details = inspect.cleandoc(text).partition("\n")
    assert summary.endswith(".")
    for section in ("Parameters", "Examples"):
        assert f"\n{section}\n---" in details, f"{name} documents no {section}"
    assert name in dir(skescore)
    assert pickle.loads(pickle.dumps(value)) is value


def documented_parameters(value: Any) -> dict[str, str]:
    """Return the documented type and default of each parameter."""
    body = inspect.getdoc(value).split("Parameters\n----------\n")[1]
    body = re.split(r"\n\n\w[\w ]*\n-{3,}", body)[0]
    entries = re.findall(r"^(\w[\w, ]*) : (.+)$", body, flags=re.MULTILINE)
    return {name: text for names, text in entries for name in names.split(", ")}


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_parameters_match_the_signature(name: str) -> None:
    value = getattr(skescore, name)
    parameters = {
        key: parameter
        for key, parameter in inspect.signature(value).parameters.items()
        if not key.startswith("_")
        and parameter.kind not in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL}
    }
    documented = documented_parameters(value)
    assert set(documented) == set(parameters)
    for key, text in documented.items():
        actual = parameters[key].default
        _, separator, default = text.partition("default=")
        if default == "NaN":
            assert math.isnan(actual)
        elif separator:
            assert ast.literal_eval(default) == actual, key
        else:  # "optional" stands for None
            assert actual is (None if text.endswith("optional") else inspect.Parameter.empty), key


def test_version_matches_the_installation() -> None:
    assert skescore.__version__ == importlib.metadata.version("skescore")


def test_unknown_names_raise_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'skescore' has no attribute 'CARTExtractr'"):
        skescore.CARTExtractr  # noqa: B018
    with pytest.raises(ImportError, match="CARTExtractr"):
        from skescore import CARTExtractr  # noqa: F401


def test_search_runs_without_processes() -> None:
    """In a browser, Python has neither psutil nor threads."""
    program = """
import sys, threading
sys.modules["psutil"] = sys.modules["fcntl"] = None
def refuse(self): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from skescore import ExtractorSearchCV
X, y = load_iris(return_X_y=True, as_frame=True)
search = ExtractorSearchCV(GaussianNB(), extractors=["cart"], n_trials=2, cv=2, random_state=0)
print(search.fit(X, y).rules_)
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
    )
    assert "1. IF petal" in run.stdout, run.stderr


def test_star_import_provides_public_names() -> None:
    names: dict[str, Any] = {}
    exec("from skescore import *", names)
    assert set(skescore.__all__) <= set(names)
    assert names["ExtractorSearchCV"] is skescore.ExtractorSearchCV


# --- imports between modules ----------------------------------------------------------------------

#: A search finds extractors by the registry. It imports only the oracle that queries black boxes
#: and the check for categorical columns.
TUNING_OF_EXTRACTORS = {
    "tuning._folds": {"CachedBlackBox", "Oracle", "generate_rows"},
    "tuning._search": {"has_categories"},
    "tuning._selection": {"ExtractionTimeoutError", "PATH_LEAVES", "equal_siblings"},
}


#: Functions that find imports and cycles; ``python benchmarks/house.py`` reports on both.
HOUSE = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "house.py"))


def test_import_graph_finds_all_forms_of_imports(tmp_path: Path) -> None:
    for name in (
        "rules/rule.py",
        "scorers/__init__.py",
        "cli/output.py",
        "tuning/__init__.py",
        "metrics/__init__.py",
        "_text.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "tuning/module.py").write_text(
        "import numpy\nimport skescore.rules.rule\nfrom skescore import scorers\n"
        "from skescore.cli import output\nfrom ..metrics import knowledge\nfrom . import folds\n"
        "if TYPE_CHECKING:\n    from skescore.cli.output import Printer\n"
        "def late():\n    from .._text import did_you_mean\n"
    )
    imports = HOUSE["import_graph"](tmp_path)["tuning.module"]
    assert sorted((used.source, used.name, used.for_types) for used in imports) == [
        ("_text", "did_you_mean", False),
        ("cli.output", "Printer", True),
        ("cli.output", "output", False),
        ("metrics.__init__", "knowledge", False),
        ("rules.rule", "", False),
        ("scorers.__init__", "scorers", False),
        ("tuning.__init__", "folds", False),
    ]
    assert HOUSE["cycles_between"]({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [
        ["a", "b", "c"]
    ]


def test_files_have_no_import_cycles() -> None:
    assert HOUSE["file_cycles"](PACKAGE) == []


def test_private_members_are_used_in_their_class_only(
    trees: dict[str, ast.Module],
) -> None:
    classes = [
        node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    parents = {
        node.name: [ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases]
        for node in classes
    }
    members_by_class = {node.name: set(underscored_members(node)) for node in classes}

    @functools.cache
    def members(name: str) -> set[str]:
        inherited = [members(parent) for parent in parents.get(name, ()) if parent != name]
        return members_by_class.get(name, set()).union(*inherited)

    ours = set().union(*members_by_class.values()) - OF_NAMED_TUPLES

    def outside(tree: ast.AST) -> Iterator[ast.Attribute]:
        below: list[tuple[ast.AST, set[str]]] = [(tree, set())]
        while below:
            node, allowed = below.pop()
            if isinstance(node, ast.ClassDef):
                allowed = allowed | members(node.name)
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ours
                and node.attr not in allowed
                and ast.unparse(node.value) not in {"self", "cls", "super()"}
            ):
                yield node
            below += [(child, allowed) for child in ast.iter_child_nodes(node)]

    touched = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, tree in trees.items()
        for node in outside(tree)
        if (module, node.attr) not in MEMBERS_OF_OTHERS
    ]
    assert not touched


#: Members that the standard library documents despite their underscore.
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
#: Members of classes of other libraries with the same name as one of ours.
MEMBERS_OF_OTHERS = {
    ("rules.importers._psyke", name) for name in ("_output", "_predict", "_root", "_ruleset")
} | {("extractors.psyke._builders", "_best_split")}


def underscored_members(kind: ast.ClassDef) -> Iterator[str]:
    """Yield the names with one underscore that a class defines in its body or on its instances."""
    names = [node.name for node in kind.body if isinstance(node, ast.FunctionDef)]
    for node in kind.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    names += [
        node.attr
        for node in ast.walk(kind)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) in {"self", "cls"}
    ]
    return (name for name in names if name.startswith("_") and not name.startswith("__"))


def test_tuning_finds_extractors_by_the_registry() -> None:
    used: dict[str, set[str]] = {}
    for module, imports in HOUSE["import_graph"](PACKAGE).items():
        if module.startswith("tuning"):
            names = {i.name for i in imports if i.source.startswith("extractors")}
            used |= {module: names} if names else {}
    assert used == TUNING_OF_EXTRACTORS


# --- conventions ---------------------------------------------------------------------------------


def test_modules_neither_print_nor_configure_logging(trees: dict[str, ast.Module]) -> None:
    refused = {
        "print",
        "logging.basicConfig",
        "basicConfig",
        "pickle.load",
        "pickle.loads",
        "eval",
        "exec",
    }
    calls = [
        f"{module}:{node.lineno} {ast.unparse(node.func)}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in refused
    ]
    assert not calls


def test_packages_are_the_public_paths() -> None:
    public = {
        module
        for module in MODULES
        if not any(part.startswith("_") for part in module.removesuffix("__init__").split("."))
    }
    packages = {module for module in public if module.endswith("__init__")} - {"cli.__init__"}
    assert public - packages == PUBLIC_MODULES | {"cli.__init__"}
    for module in sorted(packages):
        dotted = ".".join(["skescore", *module.split(".")[:-1]])
        names = importlib.import_module(dotted).__all__
        assert len(set(names)) == len(names), dotted
        for name in names:
            assert hasattr(importlib.import_module(dotted), name), f"{dotted}.{name}"


#: Public modules that are not packages.
PUBLIC_MODULES = {
    "extractors.iter",
    "extractors.trepan",
    "registry",
    "tuning.spaces",
}


def test_package_declares_type_hints() -> None:
    assert (PACKAGE / "py.typed").exists()
