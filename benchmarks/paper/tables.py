"""Write the papers' tables and our results as Markdown to benchmarks/paper/tables.md.

    python benchmarks/paper/tables.py [fire] [ice] [brex] [--n-jobs N] [--folder DIR]

Runs `skescore reproduce` for each table. Results are stored in the folder (by default `results/`
next to this script), so an interrupted run resumes. Tables that are not named are read from this
folder if they exist.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import sys
from pathlib import Path

from skescore.bench import package_versions
from skescore.cli import main

FOLDER = Path(__file__).parent
#: Heading and options of each table. ICE uses as many trials as in its figures.
TABLES: dict[str, tuple[str, list[str]]] = {
    "fire": ("FiRe, Table 1", ["--psyke"]),
    "ice": ("ICE, Table 1", ["--trials", "12", "--psyke"]),
    "brex": ("B-ReX, Tables 1 to 5", ["--full"]),
}
PARALLEL = ("fire", "ice")


def run_command(name: str, folder: Path, n_jobs: int) -> str:
    """Run `skescore reproduce` for a table, and return its output with a heading."""
    heading, options = TABLES[name]
    arguments = ["reproduce", name, *options]
    command = " ".join(["skescore", *arguments])
    arguments += ["--format", "markdown", "--output", os.path.relpath(folder)]
    if name in PARALLEL:
        arguments += ["--n-jobs", str(n_jobs)]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exit_code = main(arguments)
    if exit_code:
        sys.exit(exit_code)
    return f"# {heading}\n\n`{command}`:\n\n" + output.getvalue().replace("\n## ", "\n### ")


def run() -> None:
    """Update the named tables and the page of all tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(TABLES)} (default: all)"
    )
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER / "results")
    options = parser.parse_args()
    unknown_names = set(options.tables) - set(TABLES)
    if unknown_names:
        parser.error(f"unknown table {min(unknown_names)!r}; use any of {', '.join(TABLES)}")
    for name in options.tables or TABLES:
        text = run_command(name, options.folder, options.n_jobs)
        (options.folder / f"{name}.md").write_text(text, encoding="utf-8")
    paths = [options.folder / f"{name}.md" for name in TABLES]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    page = "\n".join([*texts, f"Made on {platform.machine()} with {versions}.\n"])
    (FOLDER / "tables.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    run()
