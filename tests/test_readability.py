"""Limits on how the package reads: names, docstrings, nesting, length and private imports.

Each test lists the places beyond the limit, so that a failure says what to rewrite.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import skescore

PACKAGE = Path(skescore.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
#: Names that do not say what a value is.
VAGUE_NAMES = set(
    re.findall(
        r"\w+",
        """
    alike another asked asks beside both came done each either enough every found given gone held
    here kept known lacking least look looked looks lying made meant most once others own
    place placed places ready rest said says seen shown some stand sure taken tells there thing
    things told wanted way ways what which whole
        """,
    )
)
#: First words of docstrings that describe a value instead of what the function does.
VAGUE_OPENINGS = set(
    re.findall(r"\w+", "All Both Few How Of Some So Those What Where Which Who Whether Whose")
)


class Module:
    """One file of the package with its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(PACKAGE.parent).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """Name of the first level below the root package."""
        return self.name.split("/")[1].removesuffix(".py")

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield all functions and methods."""
        return (node for node in self.nodes if isinstance(node, FUNCTIONS))

    def bindings(self) -> Iterator[tuple[int, str]]:
        """Yield the line and name of every variable, parameter, function and class."""
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.lineno, node.id
            elif isinstance(node, ast.arg):
                yield node.lineno, node.arg
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                yield node.lineno, node.name

    def private_imports(self) -> Iterator[tuple[int, str]]:
        """Yield the names imported from private modules of another package."""
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skescore."):
                _, package, *path = str(node.module).split(".")
                is_private = any(part.startswith("_") for part in path)
                if package != self.package and not package.startswith("_") and is_private:
                    yield from ((node.lineno, f"{node.module}.{a.name}") for a in node.names)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """Return all modules of the package."""
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def nesting_depth(node: ast.AST, depth: int = 0) -> int:
    """Return how deep blocks are nested below `node`; `elif` adds no level."""
    deepest = depth
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SCOPES):
            continue
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        adds_level = isinstance(child, BLOCKS) and not is_elif
        deepest = max(deepest, nesting_depth(child, depth + adds_level))
    return deepest


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function without signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters but `self` and `cls`."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def test_names_are_not_vague(modules: list[Module]) -> None:
    bindings = [
        (f"{module.name}:{line} {name}", name.strip("_").lower())
        for module in modules
        for line, name in module.bindings()
    ]
    vague = [place for place, name in bindings if name in VAGUE_NAMES]
    assert len(vague) < 0.003 * len(bindings), "\n".join(vague)


def test_docstrings_open_with_a_verb(modules: list[Module]) -> None:
    openings = {
        f"{module.name}:{function.lineno} {function.name}: {doc.splitlines()[0]}": doc.split()[0]
        for module in modules
        for function in module.functions()
        if (doc := ast.get_docstring(function))
    }
    vague = [index for index, word in openings.items() if word.rstrip(",") in VAGUE_OPENINGS]
    assert len(vague) < 0.005 * len(openings), "\n".join(vague)


def test_functions_are_short_and_flat(modules: list[Module]) -> None:
    every = [(module.name, function) for module in modules for function in module.functions()]
    long = [f"{name}:{f.lineno} {f.name}" for name, f in every if body_length(f) > 60]
    deep = [f"{name}:{f.lineno} {f.name}" for name, f in every if nesting_depth(f) >= 5]
    wide = [
        f"{name}:{f.lineno} {f.name}"
        for name, f in every
        if f.name != "__init__" and n_parameters(f) >= 10
    ]
    assert len(long) <= 12, "\n".join(long)
    assert not deep, "\n".join(deep)
    assert len(wide) <= 8, "\n".join(wide)


def test_packages_rarely_import_private_names(modules: list[Module]) -> None:
    private = [
        f"{module.name}:{line} {name}"
        for module in modules
        for line, name in module.private_imports()
    ]
    assert len(private) < 80, "\n".join(private)


def test_formatting_is_left_to_ruff(modules: list[Module]) -> None:
    skipped = [
        f"{module.name}:{number}"
        for module in modules
        for number, line in enumerate(module.text.splitlines(), 1)
        if re.search(r"#\s*fmt: (skip|off)", line)
    ]
    assert len(skipped) < 10, "\n".join(skipped)


def test_changelog_is_read_in_two_minutes() -> None:
    text = Path(__file__).parents[1].joinpath("CHANGELOG.md").read_text("utf-8")
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    assert all(len(re.sub(r"\(.*?\)", "", section).split()) <= 600 for section in sections)
