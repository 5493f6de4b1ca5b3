"""Measure the structure of the package: size, import cycles, and files entered by common calls.

    python benchmarks/house.py [--json FILE] [--limits]

Prints one Markdown row per measure with its limit. With `--limits`, the exit code is 1 if a measure
exceeds its limit. Two scenarios, a search on the command line and one in Python, run twice. The
second run, after all imports, counts the files in which a function is called.
`tests/test_package.py` uses the import graph of this module.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import skescore
from skescore import ExtractorSearchCV

ROOT = Path(__file__).resolve().parents[1]


class Import(NamedTuple):
    """One name that a module imports from another module of the package."""

    source: str
    name: str
    line: int
    #: Whether the import is under ``if TYPE_CHECKING``.
    for_types: bool


def list_modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by dotted name; a folder is its ``__init__``."""
    return {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in sorted(package.rglob("*.py"))
    }


def parse_file(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def list_nodes(path: Path) -> list[ast.AST]:
    """Return the nodes of the syntax tree of a file."""
    return list(ast.walk(parse_file(path)))


def find_imports(module: str, path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    """Yield the imports of a module from the package, at the top or inside functions.

    If the source is a package, its ``__init__`` is yielded, unless the name is one of its modules.
    """
    nodes = list_nodes(path)
    for_types = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    package = module.split(".")[:-1]

    def resolve(source: list[str], name: str) -> str:
        full_name = ".".join([*source, name]) if name else ".".join(source)
        package_file = f"{full_name}.__init__" if full_name else "__init__"
        for candidate in (full_name, package_file, ".".join(source)):
            if candidate in modules:
                return candidate
        return ".".join([*source, "__init__"])

    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root, *parts = alias.name.split(".")
                if root == "skescore":
                    yield Import(resolve(parts, ""), "", node.lineno, node in for_types)
        elif isinstance(node, ast.ImportFrom):
            source = node.module.split(".") if node.module else []
            if node.level:
                source = package[: len(package) - node.level + 1] + source
            elif source[:1] == ["skescore"]:
                source = source[1:]
            else:
                continue
            for alias in node.names:
                target = resolve(source, alias.name)
                yield Import(target, alias.name, node.lineno, node in for_types)


@functools.cache
def import_graph(package: Path) -> dict[str, list[Import]]:
    """Return all imports within a package by importing module."""
    modules = list_modules(package)
    return {name: list(find_imports(name, path, modules)) for name, path in modules.items()}


def cycles_between(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return strongly connected components with more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                components.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return components


#: Files of classes whose methods call functions that import the class for type hints.
_TYPE_HINT_EXCEPTIONS = ("rules._ruleset", "constraints._constraints")


def file_cycles(package: Path) -> list[list[str]]:
    """Return the import cycles between files; a package's ``__init__`` does not count as a file.

    Imports of ``RuleSet`` and ``Constraints`` for type hints only are ignored, because their
    methods call functions in other files whose signatures use the class.
    """
    graph = import_graph(package)
    return cycles_between(
        {
            module: {
                imported.source
                for imported in imports
                if imported.source != module
                and not imported.source.endswith("__init__")
                and not (imported.for_types and imported.source in _TYPE_HINT_EXCEPTIONS)
            }
            for module, imports in graph.items()
            if not module.endswith("__init__")
        }
    )


def modules_with_one_importer(package: Path) -> list[str]:
    """Return the private modules with exactly one importer other than their own package.

    Strings in a package's ``__init__`` count as importers, because lazy imports use their names.
    """
    modules = list_modules(package)
    graph = import_graph(package)
    importers: dict[str, set[str]] = {}
    for module, imports in graph.items():
        for imported in imports:
            importers.setdefault(imported.source, set()).add(module)
        if module.endswith("__init__"):
            folder = module.removesuffix("__init__")
            for node in list_nodes(modules[module]):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    importers.setdefault(folder + node.value.rpartition(".")[2], set()).add(module)
    return sorted(
        module
        for module in graph
        if module.rpartition(".")[2].startswith("_")
        and not module.endswith("__init__")
        and module.rpartition(".")[2] != "__main__"
        and len(importers.get(module, set()) - {module}) == 1
        and importers[module] != {f"{module.rpartition('.')[0]}.__init__"}
    )


def private_imports(folder: Path) -> list[str]:
    """Return the test files that import a private module of the package."""
    files = []
    for path in sorted(folder.rglob("*.py")):
        for node in list_nodes(path):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if any(
                name.startswith("skescore.")
                and any(part.startswith("_") for part in name.split(".")[1:])
                and not name.rpartition(".")[2].startswith("__")
                for name in names
            ):
                files.append(path.relative_to(folder).as_posix())
                break
    return files


# --- scenarios -----------------------------------------------------------------------------------


def record_calls(package: Path, scenario: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the functions of a package that a scenario calls, by file."""
    prefix = str(package)
    functions: dict[str, set[str]] = {}
    recorded_codes: set[CodeType] = set()

    def record(frame: Any, event: str, _: Any) -> None:
        # Returning None disables the tracing of lines.
        code = frame.f_code
        if code in recorded_codes:
            return
        recorded_codes.add(code)
        if code.co_filename.startswith(prefix) and code.co_name != "<module>":
            functions.setdefault(code.co_filename, set()).add(code.co_qualname)

    scenario()  # imports are not counted
    sys.settrace(record)
    threading.settrace(record)
    try:
        scenario()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return {
        str(Path(path).relative_to(package)): names for path, names in sorted(functions.items())
    }


def tune_on_the_command_line() -> None:
    """Run ``skescore tune iris --extractors cart`` with three trials."""
    from skescore.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["tune", "iris", "--extractors", "cart", "--trials", "3"])


def search_in_python() -> None:
    """Call ``ExtractorSearchCV.fit`` and ``best_for`` with three trials of one extractor."""
    X, y = load_iris(return_X_y=True)
    black_box = RandomForestClassifier(n_estimators=20, random_state=0)
    search = ExtractorSearchCV(black_box, n_trials=3, random_state=0, extractors=["cart"])
    search.fit(X, y).best_for(phi=2.0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="also write the measures and files to this file")
    parser.add_argument(
        "--limits", action="store_true", help="exit with 1 if a measure exceeds its limit"
    )
    options = parser.parse_args(arguments)

    gc.disable()  # the syntax trees consist of many objects that are never freed
    package = Path(skescore.__file__).parent
    start = time.perf_counter()
    sources = [
        path
        for path in sorted(package.rglob("*"))
        if path.suffix in {".py", ".js", ".css", ".jinja"} and "__pycache__" not in path.parts
    ]
    with ProcessPoolExecutor(1) as process:
        command_line_job = process.submit(record_calls, package, tune_on_the_command_line)
        python_calls = record_calls(package, search_in_python)
        cycles, single_importer_modules = file_cycles(package), modules_with_one_importer(package)
        test_files = private_imports(ROOT / "tests")
        command_line_calls = command_line_job.result()
    rows: list[tuple[str, int, int | None]] = [
        ("Python files", sum(path.suffix == ".py" for path in sources), 400),
        ("lines", sum(len(path.read_text("utf-8").splitlines()) for path in sources), 157_250),
        ("import cycles between files", len(cycles), 0),
        ("private modules with one importer", len(single_importer_modules), 33),
        ("test files that import private modules", len(test_files), 27),
        ("files entered by `skescore tune`", len(command_line_calls), 77),
        ("functions called by `skescore tune`", sum(map(len, command_line_calls.values())), None),
        ("files entered from `fit` to `best_for`", len(python_calls), 52),
        ("functions called from `fit` to `best_for`", sum(map(len, python_calls.values())), None),
    ]
    print("| measure | here | limit |\n| :-- | --: | --: |")
    for name, value, limit in rows:
        print(f"| {name} | {value:,} | {'' if limit is None else f'{limit:,}'} |")
    print(f"\nMeasured in {time.perf_counter() - start:.0f} s.", file=sys.stderr)
    if options.json:
        details = {
            "measures": {name: value for name, value, _ in rows},
            "circles": cycles,
            "lonely": single_importer_modules,
            "tests": test_files,
            "tune": {path: sorted(names) for path, names in command_line_calls.items()},
            "search": {path: sorted(names) for path, names in python_calls.items()},
        }
        options.json.write_text(json.dumps(details, indent=1) + "\n", encoding="utf-8")
    exceeded = [name for name, value, limit in rows if limit is not None and value > limit]
    if options.limits and exceeded:
        print(f"Limits exceeded: {', '.join(exceeded)}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
