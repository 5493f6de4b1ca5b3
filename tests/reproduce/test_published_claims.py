"""Numbers in the texts about the papers' tables follow from the tables."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "benchmarks" / "paper"
TABLES = (PAPER / "tables.md").read_text(encoding="utf-8")


def join_words(path):
    return " ".join(path.read_text(encoding="utf-8").split())


README = join_words(PAPER / "README.md")
GUIDE = join_words(ROOT / "docs" / "guide" / "benchmarks.md")
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def rows_below(heading, n_columns):
    """Return the cells of the rows of the table below a heading."""
    section = TABLES[TABLES.index(heading) :].split("\n\n")
    table = next(part for part in section if part.startswith("|"))
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]
    assert all(len(row) == n_columns for row in rows)
    return [[cell.strip() for cell in row] for row in rows]


def test_counts_of_reproduced_brex_values():
    counts: dict[bool, list[int]] = {True: [0, 0], False: [0, 0]}
    by_kind = {"divergences": [0, 0], "accuracies": [0, 0]}
    for table, row, reproduced, *_ in rows_below("### Verdict on each printed value\n", 5):
        n, n_all = map(int, reproduced.split(" of "))
        is_own = row == "B-ReX"
        counts[is_own][0] += n
        counts[is_own][1] += n_all
        if is_own:
            kind = "divergences" if table in ("3", "4") else "accuracies"
            by_kind[kind][0] += n
            by_kind[kind][1] += n_all
    (own, n_own), (other, n_other) = counts[True], counts[False]
    assert f"the {n_own + n_other} printed figures: {own + other} are reproduced" in README
    assert f"Of B-ReX's own {n_own} figures, {own} are reproduced (" in README
    for kind, (n, n_all) in by_kind.items():
        assert f"{n} of {n_all} {kind}" in README
    assert f"Of {n_own + n_other} printed values, {own + other} are reproduced" in GUIDE
    assert f"among them {own} of the {n_own} values of B-ReX itself" in GUIDE


def test_counts_of_reproduced_ice_columns():
    rows = rows_below("| data | extractor | verdict | difference |", 4)
    verdicts = {(data, name): verdict for data, name, verdict, _ in rows}
    n_reproduced = sum(verdict.startswith("reproduced") for verdict in verdicts.values())
    assert f"{WORDS[n_reproduced]} of {WORDS[len(rows)]} columns are reproduced" in GUIDE
    assert f"{WORDS[n_reproduced].capitalize()} columns are reproduced in sample" in README
    for data, name in (("Wine", "ITER"), ("WBC", "ITER"), ("WBC", "ExACT"), ("WBC", "GridEx")):
        assert verdicts.pop((data, name)) == "not reproduced"
    assert all(verdict.startswith("reproduced") for verdict in verdicts.values())
    (gridex,) = (
        difference for data, name, _, difference in rows if (data, name) == ("WBC", "GridEx")
    )
    assert "4 of the six scores" in gridex


def test_counts_of_reproduced_fire_rows():
    rows = rows_below("### Verdict on each printed value, on the half of seed 0", 9)
    verdicts = [row[7] for row in rows]
    n_changed = sum(verdict.startswith("reproduced with a") for verdict in verdicts)
    assert verdicts.count("reproduced") == len(rows) - n_changed == 2
    assert f"the other {WORDS[n_changed]} rows are reproduced with a stated change" in GUIDE
    assert f"The other {WORDS[n_changed]} rows are reproduced with a change" in README
    n_psyke = sum(row[1] == "PSyKE" for row in rows)
    assert f"{WORDS[n_psyke].capitalize()} of these {WORDS[len(rows)]} rows need" in GUIDE
