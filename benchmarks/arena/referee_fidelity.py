"""Checks of the pages on fidelity and on tuned trees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from referee_cells import NAN, Row, group_by, mean, read_cells, signed_rank
from referee_pages import Page, Rounded
from scipy.stats import wilcoxon

TARGETS = {"Trepan (before)": 0.85, "CART": 0.65, "FIGS": 1.0, "pycontree": 1.0, "pystreed": 1.0}


def fidelity_rows(path: Path) -> list[Row]:
    """Return the last row of each cell; rows of the search must be of the last commit."""
    rows = read_cells(path, ("data", "black_box", "method", "commit", "suite", "error"))
    last = [row["commit"] for row in rows if row["method"] == "search"][-1:]
    rows = [row for row in rows if row["method"] != "search" or row["commit"] in last]
    latest = {(row["data"], row["black_box"], row["seed"], row["method"]): row for row in rows}
    names = sorted({row["data"] for row in rows})
    for row in latest.values():
        row["half"] = ("even", "odd")[names.index(row["data"]) % 2]
    return list(latest.values())


def means_by_table(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return the mean disagreement (smoothed), correctness, fidelity and rules by table."""
    means = {}
    for (data,), part in group_by(rows, "data").items():
        smooth = 0.5 / mean(row["n_test"] for row in part)
        means[data] = {
            c: mean(row[c] for row in part) for c in ("correctness", "fidelity", "n_rules")
        }
        means[data]["disagreement"] = mean(1 - row["fidelity"] for row in part) + smooth
    return means


def compare_methods(rows: Iterable[Row], first: str, second: str) -> dict[str, Any] | None:
    """Compare two methods on the cells that both completed."""
    by_method: dict[str, dict[Any, Row]] = {first: {}, second: {}}
    for row in rows:
        if row["method"] in by_method and not math.isnan(row["fidelity"]):
            by_method[row["method"]][row["data"], row["black_box"], row["seed"]] = row
    common = by_method[first].keys() & by_method[second].keys()
    if not common:
        return None
    ordered = [key for key in by_method[first] if key in common]
    a, b = (means_by_table([by_method[name][key] for key in ordered]) for name in (first, second))
    changes = [math.log(a[t]["disagreement"]) - math.log(b[t]["disagreement"]) for t in sorted(a)]
    gains = [a[t]["correctness"] - b[t]["correctness"] for t in sorted(a)]
    differs = [c for c in changes if abs(c) > 1e-12]
    wins = sum(c < 0 for c in differs)
    return {
        "tables": len(changes),
        "ratio": math.exp(mean(changes)),
        "p": signed_rank(differs, is_rounded=True),
        "record": (wins, " / ", len(changes) - len(differs), " / ", len(differs) - wins),
        "is_ahead": 2 * wins > len(differs),
        "correctness": mean(gains),
        "correctness_p": signed_rank([g for g in gains if abs(g) > 1e-12], is_rounded=True),
    }


def check_fidelity(page: Page, rows: list[Row]) -> None:
    """Check all figures of the page on fidelity."""
    check_fidelity_intro(page, rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    if "search" in methods:
        check_fidelity_targets(page, rows)
    check_fidelity_methods(page, rows, methods)
    boxes, suites = (
        ("random-forest", "hist-gradient-boosting"),
        ("keel-balanced", "keel-imbalanced"),
    )
    filters: list[tuple[str, str]] = [("half", "even"), ("half", "odd")]
    filters += [("black_box", box) for box in boxes] + [("suite", suite) for suite in suites]
    head = ["method", "tables", "ratio", "even", "odd", *boxes, *suites, "p"]
    head += ["ahead / equal / behind", "correctness", "p of correctness"]
    for opponent in ("CART", "Trepan (before)"):
        expected = []
        for method in methods:
            overall = compare_methods(rows, method, opponent)
            if method == opponent or overall is None:
                continue
            parts = [
                compare_methods([r for r in rows if r[c] == v], method, opponent)
                for c, v in filters
            ]
            ratios = [part["ratio"] if part else NAN for part in parts]
            expected.append(
                (
                    method,
                    overall["tables"],
                    overall["ratio"],
                    *ratios,
                    overall["p"],
                    overall["record"],
                    overall["correctness"],
                    overall["correctness_p"],
                )
            )
        page.table(head, expected, f"Disagreement relative to {opponent}")
    errors = Counter((row["method"], row["error"]) for row in rows if row["error"])
    if errors:
        page.table(
            ["method", "reason", "cells"],
            [(*key, n) for key, n in errors.items()],
            "Cells without rules",
            2,
        )


def check_fidelity_intro(page: Page, rows: list[Row]) -> None:
    """Check the description of the cells."""
    n_tables = {
        suite: len(group_by(part, "data")) for (suite,), part in group_by(rows, "suite").items()
    }
    n_rows = max(row["n_train"] + row["n_test"] for row in rows)
    page.claim(
        sum(n_tables.values()),
        " KEEL tables (",
        n_tables["keel-balanced"],
        " of the suite keel-balanced, the first ",
        n_tables["keel-imbalanced"],
        " by name of keel-imbalanced; at most ",
        n_rows,
        " rows)",
    )
    limit = min(row["limit"] for row in rows)
    page.claim("may have at most ", limit, " rules and a tree at most ", limit, " leaves, or one")
    if any(row["n_rules"] > row["limit"] for row in rows if row["method"] != "CART on queries"):
        page.fail("a list or tree is larger than its limit")
    page.name(
        "and on 10,000 further rows between random pairs",
        "extractor at commit 312ba46",
        "counted from 0",
        "(0.5 divided by",
    )
    page.name(
        "most 8 leaves for limits below 16",
        "most 10 cut points",
        "stop after about 20 s",
        "a 0/1 column",
        "below 1,",
    )
    page.name("*target* and p below 1e-06; ", "a ratio below 1 and more")


def check_fidelity_targets(page: Page, rows: list[Row]) -> None:
    """Check the targets of the search and its largest losses."""
    [commit] = {row["commit"] for row in rows if row["method"] == "search"}
    page.name(f"The search was measured at commit {commit}.")
    expected = []
    for peer, limit in TARGETS.items():
        for half in ("all", "even", "odd"):
            part = compare_methods([r for r in rows if half in ("all", r["half"])], "search", peer)
            if part is None:
                continue
            is_reached = (
                (part["ratio"] <= limit and part["p"] < 1e-6)
                if limit < 1
                else (part["ratio"] < limit and part["is_ahead"])
            )
            verdict = ("reached" if is_reached else "missed") if half == "all" else ""
            expected.append(
                (
                    peer,
                    half,
                    part["tables"],
                    part["ratio"],
                    limit,
                    part["p"],
                    part["record"],
                    part["correctness"],
                    part["correctness_p"],
                    verdict,
                )
            )
    head = [
        "the search relative to",
        "half",
        "tables",
        "ratio",
        "target",
        "p",
        "ahead / equal / behind",
    ]
    page.table([*head, "correctness", "p of correctness", ""], expected, "Targets of the search", 2)
    for opponent in ("Trepan (before)", "CART"):
        means = [
            means_by_table(r for r in rows if r["method"] == name and not math.isnan(r["fidelity"]))
            for name in ("search", opponent)
        ]
        gaps = [
            (1 - means[0][t]["fidelity"], 1 - means[1][t]["fidelity"], t)
            for t in means[0]
            if t in means[1]
        ]
        largest = sorted((g for g in gaps if g[0] > g[1]), key=lambda g: g[1] - g[0])[:10]
        page.table(
            ["table", "search", opponent, "difference"],
            [(t, a, b, a - b) for a, b, t in largest],
            f"Largest losses to {opponent}",
        )


def check_fidelity_methods(page: Page, rows: list[Row], methods: Sequence[str]) -> None:
    """Check the table of methods."""
    expected = []
    for method in methods:
        group = [row for row in rows if row["method"] == method]
        completed = [row for row in group if not math.isnan(row["fidelity"])]
        means = means_by_table(completed).values()
        seconds, cpu = ([row[c] for row in completed] for c in ("seconds", "cpu_seconds"))
        expected.append(
            (
                method,
                len(completed),
                len(group) - len(completed),
                mean(m["fidelity"] for m in means),
                math.exp(mean(math.log(m["disagreement"]) for m in means)),
                mean(m["correctness"] for m in means),
                mean(m["n_rules"] for m in means),
                float(np.median(seconds)),
                max(seconds),
                float(np.median(cpu)),
            )
        )
    head = [
        "method",
        "cells",
        "failed",
        "fidelity, mean",
        "disagreement, geometric mean",
        "correctness, mean",
    ]
    page.table([*head, "rules", "seconds, median", "maximum", "CPU, median"], expected, "Methods")
    starved = [
        r
        for r in rows
        if r["method"] in ("pystreed", "pycontree") and r["seconds"] > 18 and r["cpu_seconds"] < 15
    ]
    if starved:
        page.claim(
            len(starved),
            " runs of pystreed and pycontree took more than ",
            18,
            " s but used less than ",
            15,
            " s of CPU time",
        )


# --- the page on equal budgets --------------------------------------------------------------------


def check_equal_budgets(page: Page, rows: list[Row]) -> None:
    """Check the comparison of methods with the same number of seconds."""
    rows = list({(row["budget"], row["data"], row["method"]): row for row in rows}.values())
    page.name("Commit of the package: " + ", ".join(sorted({r["commit"] for r in rows})) + ".")
    head = ["method", "tables", "failed", "fidelity", "correctness", "rules", "seconds, median"]
    head += ["CPU, median", "ratio of the search", "p", "ahead / equal / behind"]
    for (budget,), part in group_by(rows, "budget").items():
        expected = []
        for (method,), group in group_by(part, "method").items():
            completed = [row for row in group if not math.isnan(row["fidelity"])]
            if any(row["n_rules"] > row["limit"] for row in completed):
                page.fail(f"{method}: a list or tree is larger than its limit")
            columns = [[row[c] for row in completed] for c in ("fidelity", "correctness")]
            times = [[row[c] for row in completed] for c in ("seconds", "cpu_seconds")]
            comparison = None if method == "search" else compare_methods(part, "search", method)
            expected.append(
                (
                    method,
                    len(completed),
                    len(group) - len(completed),
                    *map(mean, columns),
                    mean(row["n_rules"] for row in completed),
                    *(float(np.median(values)) for values in times),
                    *(
                        (comparison["ratio"], comparison["p"], comparison["record"])
                        if comparison
                        else (NAN, NAN, "")
                    ),
                )
            )
        heading = f"{budget:g} second{'' if budget == 1 else 's'}"
        page.table(head, expected, heading)


# --- the page on regression -----------------------------------------------------------------------

_REGRESSION_METHODS = ("search, constants", "search", "CART", "CART on queries", "FIGS")


def check_fidelity_regression(page: Page, rows: list[Row]) -> None:
    """Check the comparison of short rule lists for regression models."""
    keys = ("data", "black_box", "seed", "method")
    rows = list({tuple(row[key] for key in keys): row for row in rows}.values())
    searched = group_by((row for row in rows if row["method"].startswith("search")), "method")
    commits = {name: dict.fromkeys(r["commit"] for r in part) for (name,), part in searched.items()}
    page.name(
        *(f"*{name}* at {', '.join(part)}" for name, part in commits.items()),
        "at most 8 rules",
        "8 leaves",
        "the black box on 10,000 rows",
        "max_rules=8",
        "counted from 0",
    )
    rows = [row for row in rows if not row["error"]]
    by_method = group_by(rows, "method")
    expected = []
    means = {}
    for method in _REGRESSION_METHODS:
        cells = by_method[(method,)]
        tables = group_by(cells, "data")
        means[method] = {
            name: mean(cell["fidelity"] for cell in part) for (name,), part in tables.items()
        }
        correctness = [mean(cell["correctness"] for cell in part) for part in tables.values()]
        expected.append(
            (
                method,
                len(cells),
                float(np.median(list(means[method].values()))),
                float(np.median(correctness)),
                mean(cell["n_rules"] for cell in cells),
                float(np.median([cell["cpu_seconds"] for cell in cells])),
            )
        )
    head = ["method", "cells", "fidelity", "correctness", "rules", "CPU seconds"]
    page.table(head, expected)
    comparisons = []
    searches, others = _REGRESSION_METHODS[:2], _REGRESSION_METHODS[2:]
    for search, other in [(search, other) for search in searches for other in others]:
        changes = [
            (name, means[search][name] - value) for name, value in sorted(means[other].items())
        ]
        even = [change for position, (_, change) in enumerate(changes) if position % 2 == 0]
        numbers = [change for _, change in changes]
        comparisons.append(
            (
                search,
                other,
                len(numbers),
                sum(c > 0 for c in numbers),
                sum(c < 0 for c in numbers),
                Rounded(float(wilcoxon(numbers).pvalue)),
                sum(c > 0 for c in even),
                sum(c < 0 for c in even),
            )
        )
    head = ["search", "method", "tables", "higher", "lower", "p"]
    head += ["higher, even half", "lower, even half"]
    page.table(head, comparisons, n_keys=2)


# --- the page on tuned trees ----------------------------------------------------------------------


def check_tuned_trees(page: Page, rows: list[Row]) -> None:
    """Check the comparison of the default search with tuned trees."""
    expected = []
    rows = list({(row["suite"], row["data"], row["score"]): row for row in rows}.values())
    page.name("Commit of the search: " + ", ".join(sorted({r["commit"] for r in rows})) + ".")
    for (score,), score_rows in group_by(rows, "score").items():
        suites = sorted({row["suite"] for row in score_rows})
        for suite in [*suites, "all"]:
            part = [row for row in score_rows if suite in ("all", row["suite"])]
            changes = [
                r["search"] - r["tree"] for r in part if not math.isnan(r["search"] - r["tree"])
            ]
            differs = [c for c in changes if abs(c) > 1e-9]
            p = float(wilcoxon(changes).pvalue) if differs else 1.0
            n_ahead = sum(c > 0 for c in differs)
            sizes = [mean(row[c] for row in part) for c in ("search_rules", "tree_rules")]
            ratio = float(np.median([row["search_cpu"] / row["tree_cpu"] for row in part]))
            expected.append(
                (
                    suite,
                    score,
                    len(changes),
                    n_ahead,
                    len(changes) - len(differs),
                    len(differs) - n_ahead,
                    Rounded(p),
                    *sizes,
                    ratio,
                )
            )
    head = [
        "suite",
        "score",
        "tables",
        "ahead",
        "equal",
        "behind",
        "p",
        "rules, search",
        "rules, tree",
        "time",
    ]
    page.table(head, expected, None, 2)
