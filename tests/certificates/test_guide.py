"""The guide to certificates states where the checker meets each proof obligation."""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("_check_schema", "_check", "_check_searches")


def _find_definitions() -> dict[str, tuple[str, int]]:
    """Return file and line of each function, class, method and constant of the checker."""
    places = {}
    for module in MODULES:
        path = ROOT / "skescore" / "certificates" / f"{module}.py"
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                places[node.name] = (path.name, node.lineno)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                places |= {ast.unparse(target): (path.name, node.lineno) for target in targets}
            if isinstance(node, ast.ClassDef):
                methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
                for method in methods:
                    places[f"{node.name}.{method.name}"] = (path.name, method.lineno)
    return places


def _read_obligations() -> list[tuple[str, str, str]]:
    guide = (ROOT / "docs" / "guide" / "certificates.md").read_text(encoding="utf-8")
    table = guide.split("| obligation | implemented by | line |\n| :-- | :-- | :-- |\n")[1]
    rows = [line.strip("|").split("|") for line in table.split("\n\n")[0].splitlines()]
    return [(row[0].strip(), row[1].strip(), row[2].strip()) for row in rows]


@pytest.mark.parametrize(("obligation", "names", "lines"), _read_obligations())
def test_the_guide_states_the_lines_of_each_proof_obligation(
    obligation: str, names: str, lines: str
) -> None:
    definitions = _find_definitions()
    places = [definitions[name] for name in re.findall(r"`([^`]+)`", names)]
    by_file = groupby(places, key=lambda place: place[0])
    expected = [f"`{file}` {', '.join(str(line) for _, line in group)}" for file, group in by_file]
    assert lines == ", ".join(expected), obligation
