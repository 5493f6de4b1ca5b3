"""The package as a whole: what importing it costs, its public names, and who may import whom."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import math
import pickle
import re
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


# --- importing -----------------------------------------------------------------------------------


def test_importing_the_package_imports_no_other() -> None:
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


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(skescore, name)
    assert value.__name__ == name
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert text
    first, _, rest = inspect.cleandoc(text).partition("\n")
    assert first.endswith(".")
    for section in ("Parameters", "Examples"):
        assert f"\n{section}\n---" in rest, f"{name} documents no {section}"
    assert name in dir(skescore)
    assert pickle.loads(pickle.dumps(value)) is value


def documented_parameters(value: Any) -> dict[str, str]:
    """What the docstring says of each parameter behind the colon."""
    body = inspect.getdoc(value).split("Parameters\n----------\n")[1]
    body = re.split(r"\n\n\w[\w ]*\n-{3,}", body)[0]
    entries = re.findall(r"^(\w[\w, ]*) : (.+)$", body, flags=re.MULTILINE)
    return {name: text for names, text in entries for name in names.split(", ")}


@pytest.mark.parametrize("name", PUBLIC)
def test_documented_parameters_and_defaults_are_those_of_the_signature(name: str) -> None:
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
        _, says, default = text.partition("default=")
        if default == "NaN":
            assert math.isnan(actual)
        elif says:
            assert ast.literal_eval(default) == actual, key
        else:  # "optional" stands for None
            assert actual is (None if text.endswith("optional") else inspect.Parameter.empty), key


def test_the_version_is_that_of_the_installation() -> None:
    assert skescore.__version__ == importlib.metadata.version("skescore")


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'skescore' has no attribute 'CARTExtractr'"):
        skescore.CARTExtractr  # noqa: B018
    with pytest.raises(ImportError, match="CARTExtractr"):
        from skescore import CARTExtractr  # noqa: F401


def test_a_star_import_brings_the_public_names() -> None:
    names: dict[str, Any] = {}
    exec("from skescore import *", names)
    assert set(skescore.__all__) <= set(names)
    assert names["ExtractorSearchCV"] is skescore.ExtractorSearchCV


@pytest.mark.parametrize(
    "room",
    [
        "attribution", "bench", "extractors", "metrics", "plots", "report", "reproduce", "rules",
        "scorers", "testing", "tuning",
    ],
)  # fmt: skip
def test_the_rooms_say_what_is_public(room: str) -> None:
    module = importlib.import_module(f"skescore.{room}")
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)


# --- who may import whom -------------------------------------------------------------------------

HELPERS = {"_io", "_optional", "_random", "_text", "_validation"}
#: What each room may use beside itself and the helpers. Nothing below knows what is above.
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    **{helper: set() for helper in HELPERS},
    "datasets": set(),
    "rules": set(),
    "metrics": {"rules"},
    "scorers": {"metrics", "rules"},
    "selection": {"metrics", "rules", "scorers"},
    "extractors": {"metrics", "rules", "scorers", "selection"},
    "registry": set(),
    "testing": {"extractors", "metrics", "rules", "scorers"},
    "tuning": {"extractors", "metrics", "registry", "rules", "scorers"},
    "attribution": {"metrics", "rules"},
    "black_boxes": {"datasets"},
    "plots": {"attribution", "extractors", "metrics", "registry", "rules", "scorers", "tuning"},
    "report": {
        "datasets", "extractors", "metrics", "plots", "registry", "rules", "scorers", "tuning",
    },
    "bench": {
        "black_boxes", "datasets", "extractors", "metrics", "plots", "registry", "report", "rules",
        "scorers", "tuning",
    },
    "reproduce": {
        "attribution", "bench", "black_boxes", "datasets", "extractors", "metrics", "plots",
        "registry", "rules", "scorers", "tuning",
    },
    "cli": {
        "__init__", "attribution", "bench", "black_boxes", "datasets", "extractors", "metrics",
        "plots", "registry", "report", "reproduce", "rules", "scorers", "tuning",
    },
    "__main__": {"cli"},
}  # fmt: skip
#: A search names extractors by the registry. These exceptions are the black box's side of them:
#: it is asked through their oracle, and they know whether it is fitted.
TUNING_OF_EXTRACTORS = {
    "tuning._evaluation": {"Oracle", "RememberingBlackBox"},
    "tuning._objective": {"black_box_task", "is_prefit"},
    "tuning._search": {"black_box_task", "has_categories", "is_fitted", "is_prefit"},
}


def imports_of(module: str) -> Iterator[tuple[str, str]]:
    """The modules of ours that a module imports, wherever it does, and the names from them."""
    parent = module.split(".")[:-1]
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "skescore":
                    yield alias.name.removeprefix("skescore").lstrip(".") or "__init__", ""
        elif isinstance(node, ast.ImportFrom):
            source = (node.module or "").split(".") if node.module else []
            if node.level:
                source = parent[: len(parent) - node.level + 1] + source
            elif source[:1] == ["skescore"]:
                source = source[1:]
            else:
                continue
            for alias in node.names:
                yield ".".join(source or [alias.name]), alias.name


def test_imports_are_found_in_all_their_forms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "import numpy\nimport skescore.rules.rule\nfrom skescore import scorers\n"
        "from skescore.cli import output\nfrom ..metrics import knowledge\nfrom . import folds\n"
        "def late():\n    from .._text import did_you_mean\n"
    )
    monkeypatch.setitem(MODULES, "tuning.module", path)
    assert [source for source, _ in imports_of("tuning.module")] == [
        "rules.rule", "scorers", "cli", "metrics", "tuning", "_text",
    ]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_each_room_imports_only_what_is_below(module: str) -> None:
    room = module.partition(".")[0]
    assert room in MAY_IMPORT, f"say in MAY_IMPORT what {room} may import"
    allowed = MAY_IMPORT[room] | HELPERS | {room}
    used = {source.partition(".")[0] for source, _ in imports_of(module)}
    assert used <= allowed, f"{module} imports {sorted(used - allowed)}"


def test_no_room_is_above_itself() -> None:
    def below(room: str, seen: tuple[str, ...] = ()) -> None:
        assert room not in seen, f"a circle: {' > '.join([*seen, room])}"
        for other in MAY_IMPORT[room]:
            below(other, (*seen, room))

    for room in MAY_IMPORT:
        below(room)


def test_searches_know_extractors_by_the_registry_alone() -> None:
    used = {
        module: names
        for module in MODULES
        if module.startswith("tuning")
        and (names := {n for source, n in imports_of(module) if source.startswith("extractors")})
    }
    assert used == TUNING_OF_EXTRACTORS


# --- manners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_no_module_prints_or_configures_logging(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"print", "logging.basicConfig", "basicConfig"}, node.lineno
            assert called not in {"pickle.load", "pickle.loads", "eval", "exec"}, node.lineno


def test_type_hints_are_announced() -> None:
    assert (PACKAGE / "py.typed").exists()
