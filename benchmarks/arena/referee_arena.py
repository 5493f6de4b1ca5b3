"""Checks of the page of the arena, README.md."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from referee_cells import (
    LOSSES,
    Row,
    correct_by_holm,
    critical_difference,
    group_by,
    holm_p_values,
    kendall,
    mean,
    mean_ranks,
    rank_biserial,
    signed_rank,
    values_of,
)
from referee_pages import Page, Rounded
from scipy.stats import chi2

OURS = ("CART", "CREAM", "ExACT", "GridEx", "GridREx", "ITER", "REAL", "Trepan", "OptimalTree")
OURS += ("OptimalList", "search ICE", "search FiRe", "search ICE (constants)")
OURS += ("search FiRe (constants)",)
REGRESSION_METHODS = ("GridREx", "linear equation")
BLACK_BOX, N_COMBINATIONS = "random-forest", 400
SCORES = {"fidelity": "fidelity", "ice": "ICE", "fire": "FiRe", "q": "Q"}
OTHER_MEASURES = ("neg_terms_per_rule", "neg_negative_overlap", "neg_redundant_literals")
OTHER_MEASURES += ("neg_calibration_error", "neg_fidelity_gap", "fidelity_interpolated")


def is_sized(row: Row) -> bool:
    """Return whether the method of a row is a tree of a fixed size."""
    return re.fullmatch(r"tree \d+", row["method"]) is not None


def is_variant(row: Row) -> bool:
    """Return whether the method of a row is our CART with other defaults."""
    return bool(row["method"].startswith("CART, "))


def bold(method: str) -> str:
    """Return the name of a method as the page prints it."""
    return f"**{method}**" if method in OURS or method.startswith("CART, ") else method


def cell_of(row: Row) -> tuple[str, str, str, float]:
    """Return suite, table, black box and seed of a row."""
    return row["suite"], row["data"], row["black_box"], row["seed"]


def complete_methods(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the methods that were run on all cells."""
    cells = {cell_of(row) for row in rows}
    counts = Counter(row["method"] for row in rows)
    return [row for row in rows if counts[row["method"]] == len(cells)]


def check_arena(page: Page, rows: list[Row]) -> None:
    """Check all figures of the arena's page."""
    ranked = [row for row in rows if not is_variant(row)]
    check_arena_coverage(page, rows)
    check_arena_targets(page, rows, [row for row in ranked if not is_sized(row)])
    check_arena_ranks(page, [row for row in ranked if not is_sized(row)])
    gains = gains_over_trees(rows)
    for task in ("classification", "regression"):
        check_equal_sizes(
            page, task, [g for g in gains if (g["suite"] == "regression") == (task == "regression")]
        )
    check_stability(page, [row for row in ranked if not is_sized(row) and not row["error"]])
    check_losses(page, [row for row in ranked if not is_sized(row) and not row["error"]])
    check_variants(page, [row for row in rows if not row["error"]])
    check_failures(page, rows)
    check_measures(page, [row for row in ranked if not is_sized(row) and not row["error"]])
    page.name("Trees have 2 to 16 leaves", "a level of 5 %", "(1 is the same order)")
    page.name("at most 2,000 rows", "(random forest, split 0), is", "between 1 and 32 leaves")
    page.name("(1: better on all tables that differ, -1: worse on all of them)")
    page.claim(
        "that explain a black box with rules, on ", len(group_by(rows, "suite", "data")), " tables"
    )


def check_arena_coverage(page: Page, rows: list[Row]) -> None:
    """Check the numbers of cells."""
    successful = [row for row in rows if not row["error"]]
    methods = {row["method"] for row in rows}
    sized = {row["method"] for row in rows if is_sized(row)}
    counts = ("based on ", len(rows), " cells of ", len(methods), " methods, including ")
    page.claim(*counts, len(sized), " trees of a fixed size")
    page.claim("at equal size; ", len(successful), " cells produced rules.")
    suites = sorted({row["suite"] for row in rows})
    tables = [
        (f"{suite} ", len(group_by([r for r in rows if r["suite"] == suite], "data")))
        for suite in suites
    ]
    page.claim(
        "Tables: ", *itertools.chain(*((", ", *t) if i else t for i, t in enumerate(tables)))
    )
    combinations = {cell_of(row) for row in rows}
    page.claim(
        "The target is ",
        100,
        " tables × ",
        2,
        " black boxes × ",
        2,
        " splits, that is, ",
        N_COMBINATIONS,
        " combinations, for each method; ",
        len(combinations),
        " combinations were measured",
    )
    page.claim("Machine: ", "AMD EPYC", ", ", 2, " cores")
    machine = json.loads(Path(__file__).with_name("machine.json").read_text(encoding="utf-8"))
    page.name(machine["machine"]["platform"])
    head = ["suite", "black box", "split", "tables", "methods", "cells", "with rules"]
    groups = group_by([row for row in rows if not is_sized(row)], "suite", "black_box", "seed")
    page.table(
        head,
        [
            (
                suite,
                box,
                str(int(seed)),
                len(group_by(part, "data")),
                len(group_by(part, "method")),
                len(part),
                sum(not row["error"] for row in part),
            )
            for (suite, box, seed), part in groups.items()
        ],
        "Cells",
        3,
    )


def check_arena_targets(page: Page, all_rows: list[Row], rows: list[Row]) -> None:
    """Check the comparison with the targets."""
    heading = "Targets"
    n_cells = {name[0]: len(part) for name, part in group_by(rows, "method").items()}
    begin, end = page.section(heading)
    match = re.compile(
        r"reached by ([^.]*)\. Largest number among our methods: ([^,]*), (\d+); "
        r"among other methods: ([^,]*), (\d+)"
    ).search(page.text, begin, end)
    complete = {name for name, n in n_cells.items() if n >= N_COMBINATIONS}
    largest_counts = [
        max(n for name, n in n_cells.items() if (name in OURS) == ours) for ours in (True, False)
    ]
    if match is None or {*match[1].split(", ")} != complete:
        page.fail(f"should list as complete: {', '.join(sorted(complete))}")
    elif [n_cells[match[2]], n_cells[match[4]], int(match[3]), int(match[5])] != largest_counts * 2:
        page.fail(f"the most cells are {largest_counts}, not {match[0]!r}")
    page.claim(
        "At least ",
        100,
        " tables × ",
        2,
        " black boxes × ",
        2,
        " splits for each method that can be installed*, that is, ",
        N_COMBINATIONS,
        " combinations",
    )
    if match is not None:
        page.is_checked[match.start() : match.end()] = True
    imbalanced = [row for row in rows if row["suite"] == "keel-imbalanced"]
    n_tables = {
        name[0]: len(group_by(part, "data"))
        for name, part in group_by(imbalanced, "method").items()
    }
    page.claim("Methods with fewer than ", N_COMBINATIONS, ": ", heading=heading)
    for name, n in n_cells.items():
        if n >= N_COMBINATIONS or name in REGRESSION_METHODS:
            continue
        n_missing = max(n_tables.values()) - n_tables.get(name, 0)
        is_numeric = name == "TE2Rules" or name.startswith("PSyKE ")
        missing_text = [", none on ", n_missing, " tables"] if n_missing and is_numeric else []
        page.claim(f"{name} (", n, " combinations", *missing_text, heading=heading)
    page.name("Any 50 cells that are measured again", "(Friedman, Holm; random forest, split 0)")
    check_first_ranks(
        page, [row for row in rows if row["black_box"] == BLACK_BOX and row["seed"] == 0]
    )
    gains = gains_over_trees(all_rows)
    for name in ("search ICE", "CART", "OptimalList", "OptimalTree", "Trepan", "CREAM", "ExACT"):
        part = [g for g in gains if g["method"] == name and not math.isnan(g["fidelity"])]
        claim: list[Any] = [f"  - {name}, ", len(part), " tables: "]
        for i, (score, label) in enumerate(SCORES.items()):
            better, worse, p = count_gains(part, score)
            claim += [
                f"{'; ' if i else ''}{label} ",
                better,
                ", ",
                worse,
                " (p = ",
                Rounded(p),
                ")",
            ]
        page.claim(*claim, heading=heading)
    ours = [row for row in all_rows if row["method"] in OURS]
    page.claim(
        "Of ",
        len(ours),
        " cells, ",
        sum(bool(row["error"]) for row in ours),
        " failed, ",
        sum(row["seconds"] > 120 for row in ours),
        " took longer, and ",
        sum(row["odd"] > 0 for row in ours),
        " use such a column",
        heading=heading,
    )


def check_first_ranks(page: Page, rows: list[Row]) -> None:
    """Check the sentences on the best of our methods for each suite and score."""
    parts = [(key[0], part) for key, part in group_by(rows, "suite").items()]
    classified = [
        row | {"data": f"{row['suite']}/{row['data']}"}
        for row in rows
        if row["suite"] != "regression"
    ]
    kinds: dict[str, dict[str, list[str]]] = {}
    for suite, part in [*parts, ("all classification tables", classified)]:
        complete = complete_methods(part)
        for score in SCORES:
            ranks = mean_ranks(complete, score)
            p_values = holm_p_values(ranks, len(group_by(complete, "data")))
            names = list(ranks)
            ours = next(name for name in names if name in OURS)
            position = names.index(ours) + 1
            rivals = [n for n in names if n not in OURS and not p_values.get(n, 1.0) < 0.05]
            if position == 1:
                kind = "first, but not significantly ahead" if rivals else "significantly ahead"
                verdict = (
                    f"first, but not significantly ahead of {', '.join(rivals)}"
                    if rivals
                    else "first, significantly ahead of all methods by other authors"
                )
            else:
                kind = "not first"
                adverb = "significantly" if p_values[ours] < 0.05 else "not significantly"
                verdict = f"rank {position}, {adverb} behind {names[0]}"
            kinds.setdefault(kind, {}).setdefault(suite, []).append(SCORES[score])
            page.claim(
                f"  - {suite}, {SCORES[score]}: {verdict} (our best method is {ours}, ",
                ranks[ours],
                ")",
            )
    for kind in ("significantly ahead", "first, but not significantly ahead", "not first"):
        suites = [f"{suite} ({', '.join(labels)})" for suite, labels in kinds.get(kind, {}).items()]
        rivals_text = " of all methods by other authors" if kind == "significantly ahead" else ""
        page.claim(f"- **{kind}**{rivals_text}: {'; '.join(suites) or 'nowhere'}\n")


def check_arena_ranks(page: Page, rows: list[Row]) -> None:
    """Check the tables of mean ranks."""
    for (suite,), part in group_by(rows, "suite").items():
        check_ranking(
            page,
            f"{suite}, {BLACK_BOX}, split 0",
            [r for r in part if r["black_box"] == BLACK_BOX and r["seed"] == 0],
        )
        n_tables = len(group_by(part, "data"))
        settings = {
            k
            for k, cells in group_by(part, "black_box", "seed").items()
            if len(group_by(cells, "data")) == n_tables
        }
        boxes, seeds = (
            sorted({box for box, _ in settings}),
            sorted({int(seed) for _, seed in settings}),
        )
        if len(boxes) * len(seeds) > 1:
            title = f"{suite}, {' and '.join(boxes)}, splits {', '.join(map(str, seeds))}"
            title += f", mean of {len(settings)}"
            check_ranking(page, title, [r for r in part if (r["black_box"], r["seed"]) in settings])


def check_ranking(page: Page, title: str, part: list[Row]) -> None:
    """Check one table of mean ranks and the tests below it."""
    rows = complete_methods(part)
    names = sorted({row["data"] for row in part})
    heading = f"{title}: {len(names)} tables"
    ranks = {score: mean_ranks(rows, score) for score in SCORES}
    odd_rows = [row for row in rows if names.index(row["data"]) % 2]
    odd = {score: mean_ranks(odd_rows, score) for score in SCORES}
    expected = []
    for (method,), cells in group_by(rows, "method").items():
        successful = [row for row in cells if not row["error"]]
        means = [
            mean(values_of(successful, c))
            for c in ("ice", "fidelity", "n_rules", "completeness_volume", "seconds")
        ]
        rank_pairs = [(ranks[s][method], " (", odd[s][method], ")") for s in SCORES]
        expected.append((bold(method), *rank_pairs, *means, len(cells) - len(successful)))
    head = [
        "method",
        *(f"rank {label}" for label in SCORES.values()),
        "ICE",
        "fidelity",
        "rules",
        "space covered",
    ]
    page.table([*head, "seconds", "failed"], expected, heading)
    for score, by_method in ranks.items():
        best, *other_methods = by_method
        p_values = holm_p_values(by_method, len(names))
        similar = [name for name in other_methods if not p_values[name] < 0.05]
        verdict = (
            f"the following do not differ significantly from it: {', '.join(similar)}."
            if similar
            else "all others are significantly worse."
        )
        difference = critical_difference(len(by_method), len(names))
        page.claim(
            f"- {score}: {best} has the best mean rank; critical difference ",
            difference,
            " (Nemenyi), Friedman p = ",
            Rounded(friedman_p(rows, score), 2),
            f". At a level of 5 % (Holm), {verdict}",
            heading=heading,
        )


def friedman_p(rows: list[Row], score: str, n_permutations: int = 9999) -> float:
    """Return the p-value of Friedman's test by permutations, as the page states it."""
    tables = [mean_ranks(part, score) for part in group_by(rows, "data").values()]
    ranks = np.array([[table[name] for name in sorted(table)] for table in tables])
    observed = (ranks.sum(axis=0) ** 2).sum()
    n_tables, k = ranks.shape
    excess = observed - k * (n_tables * (k + 1) / 2) ** 2
    statistic = (k - 1) * excess / ((ranks - (k + 1) / 2) ** 2).sum()
    if chi2.sf(statistic, k - 1) < 1e-9:  # no permutation has a statistic as large
        return 1 / (n_permutations + 1)
    rng = np.random.default_rng(1)
    n_as_large = 0
    for _ in range(n_permutations // 1111):
        permuted = rng.permuted(np.broadcast_to(ranks, (1111, *ranks.shape)), axis=2)
        n_as_large += int(((permuted.sum(axis=1) ** 2).sum(axis=1) >= observed - 1e-9).sum())
    return (n_as_large + 1) / (n_permutations + 1)


def gains_over_trees(rows: list[Row]) -> list[Row]:
    """Return the gains of methods over the smallest tree of equal size, per table."""
    trees: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if is_sized(row) and not row["error"]:
            key = (*cell_of(row), row["n_rules"])
            size = int(row["method"].split()[1])
            if key not in trees or size < int(trees[key]["method"].split()[1]):
                trees[key] = row
    gains = []
    measured = [row for row in rows if not is_sized(row) and not row["error"]]
    for (suite, data, method), part in group_by(measured, "suite", "data", "method").items():
        pairs = [(row, trees.get((*cell_of(row), row["n_rules"]))) for row in part]
        by_score = {}
        for score in SCORES:
            sign = -1 if score in LOSSES else 1
            by_score[score] = mean(sign * (row[score] - tree[score]) for row, tree in pairs if tree)
        gains.append({"suite": suite, "data": data, "method": method, **by_score})
    return gains


def count_gains(gains: Iterable[Row], score: str) -> tuple[int, int, float]:
    """Return the numbers of gains and losses, and Wilcoxon's p-value."""
    values = values_of(gains, score)
    smallest = 1e-9 * max([1.0, *map(abs, values)])
    changes = [value for value in values if abs(value) > smallest]
    return sum(v > 0 for v in changes), sum(v < 0 for v in changes), signed_rank(changes)


def check_equal_sizes(page: Page, task: str, gains: list[Row]) -> None:
    """Check the comparison with trees of equal size."""
    expected: dict[str, list[Any]] = {}
    parts = {name[0]: part for name, part in group_by(gains, "method").items()}
    compared = {
        method: [gain for gain in part if not math.isnan(gain["fidelity"])]
        for method, part in parts.items()
    }
    compared = {method: part for method, part in compared.items() if len(part) >= 5}
    for method, part in compared.items():
        n_without = len(parts[method]) - len(part)
        gain = mean(values_of(part, "fidelity"))
        expected[method] = [bold(method), len(part), n_without, gain]
    for score in SCORES:
        counts = {method: count_gains(part, score) for method, part in compared.items()}
        p_values = correct_by_holm({method: p for method, (_, _, p) in counts.items()})
        for method, (better, worse, _) in counts.items():
            effect = rank_biserial(values_of(compared[method], score))
            expected[method] += [(better, ", ", worse), effect, Rounded(p_values[method])]
    head = ["method", "tables", "no tree of that size", "mean gain of fidelity"]
    for label in SCORES.values():
        head += [f"{label} better, worse", "r", "p"]
    page.table(head, expected.values(), task)


def check_stability(page: Page, rows: list[Row]) -> None:
    """Check the table of stability, readability and time."""
    expected = []
    for (method,), part in group_by(rows, "method").items():
        splits = group_by(part, "suite", "data", "black_box").values()
        pairs = [pair for pair in splits if len(pair) == 2]
        expected.append(
            (
                bold(method),
                *(mean(abs(a[c] - b[c]) for a, b in pairs) for c in ("fidelity", "n_rules")),
                *(mean(values_of(part, c)) for c in ("n_rules", "conditions")),
                -mean(values_of(part, "neg_terms_per_rule")),
                float(np.median(values_of(part, "seconds"))),
            )
        )
    head = ["method", "fidelity, difference of splits", "rules, difference of splits", "rules"]
    head += ["conditions", "literals per rule", "seconds, median"]
    page.table(head, expected, "Stability, readability and time")


def check_losses(page: Page, rows: list[Row]) -> None:
    """Check the comparison with the best peer of each cell."""
    heading = "Losses"
    ours = {cell_of(row): row for row in rows if row["method"] == "search ICE"}
    peers = group_by(
        [
            {**row, "cell": cell_of(row)}
            for row in rows
            if row["method"] not in OURS and not math.isnan(row["ice"])
        ],
        "cell",
    )
    gaps = {
        cell: max(p["ice"] for p in peers[(cell,)]) - row["ice"]
        for cell, row in ours.items()
        if (cell,) in peers
    }
    n_won, n_lost = sum(g < -1e-9 for g in gaps.values()), sum(g > 1e-9 for g in gaps.values())
    page.claim(
        "has a better ICE on ",
        n_won,
        " of ",
        len(gaps),
        " cells, an equal one on ",
        len(gaps) - n_won - n_lost,
        ", and a worse one on ",
        n_lost,
        "; it is worse by more than ",
        0.01,
        " on ",
        sum(g > 0.01 for g in gaps.values()),
        ". The mean difference is ",
        -mean(gaps.values()),
        ".",
    )
    page.claim(
        "is ahead of the best method by other authors on ",
        n_won,
        ", equal on ",
        len(gaps) - n_won - n_lost,
        " and behind on ",
        n_lost,
        " of ",
        len(gaps),
        " cells",
    )
    names = {row["method"] for row in rows}
    for mine, theirs, score in (
        ("search ICE", "tree tuned for ICE", "ice"),
        ("search FiRe", "tree tuned for FiRe", "fire"),
        ("search ICE (constants)", "tree tuned for ICE", "ice"),
        ("search FiRe (constants)", "tree tuned for FiRe", "fire"),
    ):
        if mine not in names:
            continue
        pair = [
            {cell_of(row): row[score] for row in rows if row["method"] == name}
            for name in (mine, theirs)
        ]
        cells = [
            {"suite": c[0], "data": c[1], "gap": pair[0][c] - pair[1][c]}
            for c in pair[0]
            if c in pair[1]
        ]
        means = [
            {"gap": mean(values_of(part, "gap"))}
            for part in group_by(cells, "suite", "data").values()
        ]
        means = [m for m in means if not math.isnan(m["gap"])]
        better, worse, p = count_gains(
            [{"gap": m["gap"] * (1 if score == "ice" else -1)} for m in means], "gap"
        )
        page.claim(
            f"`{mine}` compared with `{theirs}`, means over black boxes and splits of a table: "
            f"the median difference of {SCORES[score]} is ",
            Rounded(float(np.median(values_of(means, "gap"))), 3),
            "; the search is ahead on ",
            better,
            " of ",
            len(means),
            " tables and behind on ",
            worse,
            " (Wilcoxon, p = ",
            Rounded(p),
            ")",
            heading=heading,
        )
    largest_losses = sorted((g, c) for c, g in gaps.items() if g > 0.01)[::-1][:12]
    printed = (
        {cells[0]: cells[4] for _, cells in page.rows(LOSS_HEAD, heading)} if largest_losses else {}
    )
    expected, n_larger = [], 0
    for _, cell in largest_losses:
        key = f"{cell[1]} ({cell[0]}, {cell[2]})"
        best = max(p["ice"] for p in peers[(cell,)])
        tied = [p for p in peers[(cell,)] if p["ice"] == best]
        peer = next((p for p in tied if p["method"] == printed.get(key)), tied[0])
        mine = ours[cell]
        n_larger += mine["n_rules"] > peer["n_rules"]
        expected.append(
            (
                key,
                mine["ice"],
                mine["n_rules"],
                mine["performance"],
                peer["method"],
                peer["ice"],
                peer["n_rules"],
                peer["performance"],
            )
        )
    if largest_losses:
        page.claim(
            "In ",
            n_larger,
            " of the ",
            len(largest_losses),
            " largest losses, the search has more rules than the peer; in the remaining ",
            len(largest_losses) - n_larger,
            ",",
        )
        page.table(LOSS_HEAD, expected, heading)


LOSS_HEAD = ["table", "ICE", "rules", "performance", "best peer"]
LOSS_HEAD += ["its ICE", "its rules", "its performance"]


def check_variants(page: Page, rows: list[Row]) -> None:
    """Check the comparison of CART's defaults."""
    expected = []
    for (suite,), part in group_by(rows, "suite").items():
        names = sorted({row["data"] for row in part})
        cells = {(cell_of(row), row["method"]): row for row in part}
        for method in sorted({row["method"] for row in part if is_variant(row)}):
            for i, half in enumerate(("even", "odd")):
                mine = [
                    row
                    for row in part
                    if row["method"] == method and names.index(row["data"]) % 2 == i
                ]
                pairs = [
                    (row, cells[cell_of(row), "CART"])
                    for row in mine
                    if (cell_of(row), "CART") in cells
                ]
                gains = {s: [a[s] - b[s] for a, b in pairs] for s in ("ice", "fidelity", "n_rules")}
                p = signed_rank([g for g in gains["fidelity"] if abs(g) > 1e-12])
                expected.append(
                    (
                        suite,
                        method.removeprefix("CART, "),
                        f"{half} ({len(mine)})",
                        *map(mean, gains.values()),
                        Rounded(p),
                    )
                )
    head = ["suite", "CART with", "tables", "ICE", "fidelity", "rules", "p of fidelity (Wilcoxon)"]
    if expected:
        page.table(head, expected, "Losses", 3)


def check_failures(page: Page, rows: list[Row]) -> None:
    """Check the counts of cells without rules, and of our own cells."""
    kinds = Counter(
        (row["method"], row["error"].strip().replace("|", "/")) for row in rows if row["error"]
    )
    printed = page.rows(["method", "cells", "reason"], "Cells without rules")
    page.table(
        ["method", "cells", "reason"],
        [
            (m, str(n), error)
            for (m, error), n in kinds.items()
            if any(cells == [m, str(n), error] for _, cells in printed)
        ],
        "Cells without rules",
        3,
    )
    if (
        sorted((int(c[1]) for _, c in printed), reverse=True)
        != sorted(kinds.values(), reverse=True)[:25]
    ):
        page.fail("does not list the 25 most frequent reasons of cells without rules")
    ours = [row for row in rows if row["method"] in OURS]
    longest = sorted(
        ours, key=lambda row: -row["seconds"] if row["seconds"] == row["seconds"] else 0
    )[:3]
    claim: list[Any] = []
    for i, row in enumerate(longest):
        claim += [f"{', ' if i else ''}{row['method']} on {row['data']} ", row["seconds"], " s"]
    page.claim("- ", sum(bool(row["error"]) for row in ours), " of ", len(ours), " failed")
    page.claim(
        "- ",
        sum(row["seconds"] > 120 for row in ours),
        " took more than two minutes on a loaded machine; the longest: ",
        *claim,
    )
    odd = Counter(row["method"] for row in rows if row["odd"] > 0)
    claim = list(
        itertools.chain(
            *((f"{', ' if i else ''}{name} ", n) for i, (name, n) in enumerate(sorted(odd.items())))
        )
    )
    page.claim(
        "- ",
        sum(n for name, n in odd.items() if name in OURS),
        " use a column that is constant in the training rows or contains row numbers. Such cells "
        "by method: ",
        *claim,
    )


def check_measures(page: Page, rows: list[Row]) -> None:
    """Check the measures that the scores do not include, and their correlation with ICE."""
    heading = "Measures beyond the scores"
    names = [name for name in OTHER_MEASURES if values_of(rows, name)]
    expected = [
        (bold(method), *(abs(mean(values_of(part, name))) for name in names))
        for (method,), part in group_by(rows, "method").items()
    ]
    page.table(
        ["method", *(n.removeprefix("neg_").replace("_", " ") for n in names)], expected, heading
    )
    claim: list[Any] = []
    for name in ("fire", "fidelity", *names):
        taus = []
        for part in group_by(rows, "suite", "data", "black_box", "seed").values():
            pairs = [
                (row["ice"], row[name]) for row in part if not math.isnan(row["ice"] + row[name])
            ]
            if min((len(set(column)) for column in zip(*pairs, strict=True)), default=0) > 2:
                taus.append(kendall(*zip(*pairs, strict=True)) * (-1 if name == "fire" else 1))
        claim += [f"{', ' if claim else ''}{name.removeprefix('neg_')} ", mean(taus)]
    page.claim("is the same order): ", *claim, heading=heading)
