"""Write the papers' tables, beside ours, as Markdown to benchmarks/paper/tables.md.

    python benchmarks/paper/tables.py [fire] [ice] [brex] [--n-jobs N] [--folder DIR]

It is `skescore reproduce` for each table. What was measured is kept in the folder (results/ beside
this file by default), so that a run that was broken off goes on, and a table that is not named is
taken from there if it has been made.
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
#: Heading and options of each table: the searches of ICE are those of its figures in size.
TABLES: dict[str, tuple[str, list[str]]] = {
    "fire": ("FiRe, Table 1", ["--psyke"]),
    "ice": ("ICE, Table 1", ["--trials", "12", "--psyke"]),
    "brex": ("B-ReX, Tables 1 to 5", ["--full"]),
}
PARALLEL = ("fire", "ice")


def run_command(name: str, folder: Path, n_jobs: int) -> str:
    heading, options = TABLES[name]
    words = ["reproduce", name, *options]
    command = " ".join(["skescore", *words])
    words += ["--format", "markdown", "--output", os.path.relpath(folder)]
    if name in PARALLEL:
        words += ["--n-jobs", str(n_jobs)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(words)
    if code:
        sys.exit(code)
    return f"# {heading}\n\n`{command}`:\n\n" + out.getvalue().replace("\n## ", "\n### ")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER / "results")
    options = parser.parse_args()
    unknown = set(options.tables) - set(TABLES)
    if unknown:
        parser.error(f"there is no table {min(unknown)!r}; there are {', '.join(TABLES)}")
    for name in options.tables or TABLES:
        text = run_command(name, options.folder, options.n_jobs)
        (options.folder / f"{name}.md").write_text(text, encoding="utf-8")
    parts = [options.folder / f"{name}.md" for name in TABLES]
    texts = [path.read_text(encoding="utf-8") for path in parts if path.exists()]
    about = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    page = "\n".join([*texts, f"Made on {platform.machine()} with {about}.\n"])
    (FOLDER / "tables.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    run()
