"""Write the lines of the proof obligations into ``docs/guide/certificates.md``.

Run ``python docs/obligation_lines.py`` after changing the checker; a test compares the page.
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guide" / "certificates.md"
MODULES = ("_check",)
HEADER = "| obligation | implemented by | line |\n| :-- | :-- | :-- |\n"


def find_definitions() -> dict[str, tuple[str, int]]:
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


def page_with_lines(page: str) -> str:
    """Return the page with the current lines; raise a KeyError if a name does not exist."""
    definitions = find_definitions()
    before, after = page.split(HEADER)
    table, rest = after.split("\n\n", 1)
    rows = []
    for row in table.splitlines():
        obligation, names, _ = (cell.strip() for cell in row.strip("|").split("|"))
        places = [definitions[name] for name in re.findall(r"`([^`]+)`", names)]
        lines = [
            f"`{file}` {', '.join(str(line) for _, line in group)}"
            for file, group in groupby(places, key=lambda place: place[0])
        ]
        rows.append(f"| {obligation} | {names} | {', '.join(lines)} |")
    return before + HEADER + "\n".join(rows) + "\n\n" + rest


if __name__ == "__main__":
    PAGE.write_text(page_with_lines(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
