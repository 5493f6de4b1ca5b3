"""Recompute every figure of the arena's pages from raw cells; list the figures that differ.

    python benchmarks/arena/referee.py [--pages README.md ...] [--folder FOLDER]
    python benchmarks/arena/referee.py --rerun 20

The pages are written by `findings.py`, `fidelity_report.py`, `equal_budgets.py`,
`fidelity_regression.py`, `tuned_trees.py` and `score_agreement.py`. This script shares no code with
them and does not import the package: it reads the CSV files with the standard library and computes
ranks, tests and correlations itself. Figures are compared within half a unit of the last digit.
Numbers that no check covers also count as differences. In the README of the project, it checks the
comparison with other tools, the statements on fidelity and tuned trees, and the factors of the
example score.

`--rerun` measures random cells of `results.csv` again (`run.py --verify`). The exit code is 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from referee_arena import check_arena
from referee_cells import Row, mean, read_cells
from referee_fidelity import (
    check_equal_budgets,
    check_fidelity,
    check_fidelity_regression,
    check_tuned_trees,
    compare_methods,
    fidelity_rows,
)
from referee_pages import Page
from referee_scores import check_scores

FOLDER = Path(__file__).resolve().parent

# --- the README -----------------------------------------------------------------------------------


def check_readme(page: Page, rows: list[Row]) -> None:
    """Check the comparison with other tools, and the factors of the example score."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    printed = {cells[0] for _, cells in page.rows(["learner", *names], "Compared with other tools")}
    expected = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        cells: list[Any] = []
        for data in names:
            part = [
                r for r in rows if (r["data"], r["learner"], r["state"]) == (data, learner, "done")
            ]
            means = [mean(r[c] for r in part) for c in ("ice", "n_rules", "fidelity")]
            cells.append((means[0], " (", means[1], ", ", means[2], ")") if part else "-")
        if learner in printed:
            expected.append((learner, *cells))
    page.table(["learner", *names], expected, "Compared with other tools")
    check_example_score(page)


def check_readme_on_fidelity(page: Page, rows: list[Row]) -> None:
    """Check the statements of the README on fidelity at equal size."""
    tree, figs = (compare_methods(rows, "search", rival) for rival in ("CART", "FIGS"))
    search_cpu, tree_cpu = (
        float(np.median([row["cpu_seconds"] for row in rows if row["method"] == method]))
        for method in ("search", "CART")
    )
    if tree is None or figs is None:
        page.fail("compares with methods that were not measured")
        return
    page.claim("fidelity with at most ", min(row["limit"] for row in rows), " rules (or")
    page.claim("on ", tree["ratio"], " times as many held-out rows as a scikit-learn tree")
    page.claim("and on ", figs["ratio"], " times as many as FIGS")
    page.claim("geometric means over ", tree["tables"], " tables with two models")
    page.claim(
        "A search takes about ", search_cpu, " s of CPU time, a tree less than ", 0.01, " s ("
    )
    if tree_cpu >= 0.01:
        page.fail(f"states less than 0.01 s of CPU time for a tree, which takes {tree_cpu:.3f} s")


def check_readme_on_tuned_trees(page: Page, rows: list[Row]) -> None:
    """Check the statements of the README on the default search and tuned trees."""
    latest = {(row["data"], row["suite"], row["score"]): row for row in rows}
    counts: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    n_tables = {}
    for regression in (False, True):
        for score in ("ice", "neg_fire", "neg_q"):
            changes = [
                row["search"] - row["tree"]
                for row in latest.values()
                if row["score"] == score and (row["suite"] == "regression") == regression
            ]
            n_tables[regression] = len(changes)
            n_ahead, n_behind = sum(c > 1e-9 for c in changes), sum(c < -1e-9 for c in changes)
            counts[regression].append((n_ahead, n_behind))
    for regression, kind in ((False, " tables with classes"), (True, " regression tables")):
        claim: list[Any] = [n_tables[regression], kind, ": "]
        for (n_ahead, n_behind), end in zip(
            counts[regression], (" by ICE, ", " by FiRe, ", " by Q."), strict=True
        ):
            claim += ["better on ", n_ahead, " and worse on ", n_behind, end]
        page.claim(*claim)


def check_example_score(page: Page) -> None:
    """Check that the factors of the example score follow from F1 and the number of rules."""
    heading = "Meaning of the score"
    start, end = page.section(heading)
    match = re.compile(r"weighted F1 ([\d.]+) .*?\| (\d+) rules \|", re.S).search(
        page.text, start, end
    )
    if match is None:
        page.fail(f"names no weighted F1 and number of rules under {heading!r}")
        return
    f1, n_rules = float(match[1]), int(match[2])
    factors = 1 / (1 + math.exp(5 * (1 - f1 - 1))), 1 / (1 + math.exp(0.3 * n_rules - 5)), 1.0
    page.claim("weighted F1 ", f1, " | ", factors[0], " |", heading=heading)
    page.claim(f"{n_rules} rules | ", factors[1], " |", heading=heading)
    page.claim(
        factors[0], " · ", factors[1], " · ", factors[2], " = ", math.prod(factors), heading=heading
    )


# --- the command ----------------------------------------------------------------------------------


_ARENA_TEXTS = ("suite", "data", "black_box", "method", "error")


def tuned_tree_rows(folder: Path) -> list[Row]:
    """Read the cells of the default search and of tuned trees."""
    return read_cells(folder / "tuned_trees.csv", ("suite", "data", "score", "extractor", "commit"))


def referee(name: str, folder: Path = FOLDER) -> Page:
    """Check a page of the arena, or the README of the project; return it with its differences."""
    page = Page(folder.parents[1] / "README.md" if name == "project" else folder / name)
    if name == "project":
        peers = folder.parent / "quality" / "peers.csv"
        check_readme(page, read_cells(peers, ("data", "learner", "state", "detail")))
        check_readme_on_fidelity(page, fidelity_rows(folder / "fidelity.csv"))
        check_readme_on_tuned_trees(page, tuned_tree_rows(folder))
        return page
    if name == "README.md":
        check_arena(page, read_cells(folder / "results.csv", _ARENA_TEXTS))
    elif name == "fidelity.md":
        check_fidelity(page, fidelity_rows(folder / "fidelity.csv"))
    elif name == "equal_budgets.md":
        texts = ("data", "black_box", "method", "commit", "suite", "error")
        check_equal_budgets(page, read_cells(folder / "equal_budgets.csv", texts))
    elif name == "fidelity_regression.md":
        texts = ("data", "black_box", "method", "commit", "error")
        check_fidelity_regression(page, read_cells(folder / "fidelity_regression.csv", texts))
    elif name == "tuned_trees.md":
        check_tuned_trees(page, tuned_tree_rows(folder))
    else:
        selected_rows = read_cells(folder / "score_agreement.csv", ("data", "task", "candidate"))
        check_scores(page, selected_rows, read_cells(folder / "results.csv", _ARENA_TEXTS))
    page.check_coverage()
    return page


PAGES = (
    "README.md",
    "fidelity.md",
    "equal_budgets.md",
    "fidelity_regression.md",
    "tuned_trees.md",
    "score_agreement.md",
    "project",
)


def main() -> int:
    """Check the pages, or measure random cells again."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--pages",
        nargs="+",
        choices=PAGES,
        default=list(PAGES),
        help="project: the README of the project",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the pages and cells")
    parser.add_argument("--rerun", type=int, metavar="CELLS", help="measure random cells again")
    parser.add_argument("--draw", type=int, default=0, help="seed of the cells of --rerun")
    options = parser.parse_args()
    if options.rerun:
        command = [sys.executable, str(FOLDER / "run.py")]
        command += ["--verify", str(options.rerun), "--draw", str(options.draw)]
        return subprocess.run(command, check=False).returncode
    n_differences = 0
    for name in options.pages:
        page = referee(name, options.folder.resolve())
        print(
            *page.differences,
            f"{page.path}: {page.n_figures} figures, {len(page.differences)} differences",
            sep="\n",
        )
        n_differences += len(page.differences)
    return int(n_differences > 0)


if __name__ == "__main__":
    sys.exit(main())
