"""Write the page of the arena, README.md, and an HTML page with the rules for each suite.

    python benchmarks/arena/findings.py [--pages FOLDER [--runs FOLDER]]

All figures are computed from `results.csv`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from run import BLACK_BOXES, CACHE, MEASURES, SUITES, read_complete_lines
from scipy.stats import wilcoxon

from skescore.bench import rank_extractors, read_rows, row_columns

FOLDER = Path(__file__).parent
OURS = (
    "CART",
    "CREAM",
    "ExACT",
    "GridEx",
    "GridREx",
    "ITER",
    "REAL",
    "Trepan",
    "OptimalTree",
    "OptimalList",
    "search ICE",
    "search FiRe",
)
#: Of ours, with other defaults than they have: compared with the defaults, not with everyone.
VARIANT = "CART, "
#: The search that is compared with the best peer of each table.
SEARCHED = "search ICE"
#: Searches, the trees that are tuned for the same score, and the score.
TWINS = (
    ("search ICE", "tree tuned for ICE", "ice"),
    ("search FiRe", "tree tuned for FiRe", "fire"),
)
GRID = 100 * 2 * 2
SCORE_LABELS = {"ice": "ICE", "fire": "FiRe", "fidelity": "fidelity"}
ALL_CLASSIFICATION = "all classification tables"
#: Methods that do not read text columns, so they have no cells on tables with such columns.
NUMBERS_ALONE = ("TE2Rules", "PSyKE CART", "PSyKE CREAM", "PSyKE GridEx", "PSyKE ITER")
#: Smallest difference of ICE that is listed as a loss.
WORTH = 0.01


def sized(method: str) -> bool:
    """Return whether a method is a tree of fixed size, which serves as a reference only."""
    return method.startswith("tree ") and method[5:].isdigit()


def bold(method: str) -> str:
    """Return the name of a method, in bold if it is one of ours."""
    return f"**{method}**" if method in OURS or method.startswith(VARIANT) else method


def as_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as rows of a benchmark."""
    rows = table.rename(columns={"method": "extractor"})
    rows["state"] = np.where(rows["error"].isna(), "complete", "failed")
    rows["task"] = np.where(rows["suite"] == "regression", "regression", "classification")
    return rows.reindex(columns=row_columns())


def format_value(value: float, digits: int = 3) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def lines_of(rows: list[list[str]], head: list[str], left: int = 1) -> list[str]:
    rule = [":--"] * left + ["--:"] * (len(head) - left)
    return ["", *(f"| {' | '.join(row)} |" for row in [head, rule, *rows]), ""]


def coverage(table: pd.DataFrame) -> list[str]:
    successful = table["error"].isna()
    cells = table.groupby(["suite", "data", "black_box", "seed"]).ngroups
    about = json.loads((FOLDER / "machine.json").read_text(encoding="utf-8"))
    machine = about["machine"]
    tables = table.groupby("suite")["data"].nunique()
    text = [
        "A cell is one method on one table with one black box and one split. The page is based on "
        f"{len(table)} cells of {table['method'].nunique()} methods, of which 15 are trees of one "
        f"size each, for comparisons at equal size; {int(successful.sum())} cells gave rules. "
        f"Tables: {', '.join(f'{suite} {n}' for suite, n in tables.items())}. The target is 100 "
        f"tables × 2 black boxes × 2 splits, that is {GRID} combinations, for each method; "
        f"{cells} combinations were measured with at least one method.",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores, shared with other programs, "
        f"{machine['platform']}; versions are in [machine.json](machine.json).",
    ]
    counted = (
        table[~table["method"].map(sized)]
        .assign(done=successful, tables=table["data"])
        .groupby(["suite", "black_box", "seed"])
        .agg(
            tables=("data", "nunique"),
            methods=("method", "nunique"),
            cells=("done", "size"),
            rules=("done", "sum"),
        )
        .reset_index()
    )
    rows = [[str(v) for v in row] for row in counted.itertuples(index=False)]
    head = ["suite", "black box", "split", "tables", "methods", "cells", "with rules"]
    return text + lines_of(rows, head, left=2)


def ranks(table: pd.DataFrame) -> list[str]:
    """Rank methods on the cells that all have, and on those of further black boxes and splits."""
    text = []
    for suite, part in table[~table["method"].map(sized)].groupby("suite"):
        settings = part[["black_box", "seed"]].apply(tuple, axis=1)
        first = (BLACK_BOXES[0], 0)
        text += ranked(f"{suite}, {first[0]}, split {first[1]}", part[settings == first])
        tables = part["data"].nunique()
        is_complete = part.groupby(settings)["data"].nunique() == tables
        complete_rows = part[settings.isin(set(is_complete[is_complete].index))]
        if complete_rows["black_box"].nunique() * complete_rows["seed"].nunique() > 1:
            boxes, seeds = (
                sorted(set(complete_rows["black_box"])),
                sorted(set(complete_rows["seed"])),
            )
            title = f"{suite}, {' and '.join(boxes)}, splits {', '.join(map(str, seeds))}"
            text += ranked(f"{title}, mean of {int(is_complete.sum())}", complete_rows)
    return text


def ranked(title: str, part: pd.DataFrame) -> list[str]:
    """Rank the methods that have all cells, and test whether they differ."""
    cells = part[["data", "black_box", "seed"]].drop_duplicates()
    everywhere = part.groupby("method").size() == len(cells)
    rows_everywhere = part[part["method"].map(everywhere)]
    names = sorted(set(part["data"]))
    odd = as_rows(rows_everywhere[rows_everywhere["data"].isin(names[1::2])])
    rows = as_rows(rows_everywhere)
    rankings = {s: rank_extractors(rows, s)[0] for s in ("ice", "fire", "fidelity")}
    means = (
        rows_everywhere[rows_everywhere["error"].isna()]
        .groupby("method")[["ice", "fidelity", "n_rules", "completeness_volume", "seconds"]]
        .mean()
    )
    failed = rows_everywhere[rows_everywhere["error"].notna()].groupby("method").size()
    by = {s: r.table.set_index("extractor")["rank"] for s, r in rankings.items()}
    by |= {
        f"{s}, odd": rank_extractors(odd, s)[0].table.set_index("extractor")["rank"]
        for s in rankings
    }
    lines = [
        [
            bold(name),
            *(
                f"{format_value(by[s][name], 2)} ({format_value(by[f'{s}, odd'][name], 2)})"
                for s in rankings
            ),
            *(
                format_value(means.loc[name, c], d) if name in means.index else ""
                for c, d in zip(means.columns, (3, 3, 1, 2, 2), strict=True)
            ),
            str(failed.get(name, 0)),
        ]
        for name in by["ice"].index
    ]
    head = [
        "method",
        "rank ICE",
        "rank FiRe",
        "rank fidelity",
        "ICE",
        "fidelity",
        "rules",
        "space covered",
        "seconds",
        "failed",
    ]
    text = [f"### {title}: {len(names)} tables", "", *lines_of(lines, head)]
    for score, ranking in rankings.items():
        comparison = ranking.comparison
        best = comparison.average_ranks.index[0]
        against = comparison.against_best.set_index("extractor")["p_value_holm"]
        not_distinguished = [name for name, p in against.items() if not p < 0.05]
        sentence = (
            f"the following do not differ significantly from it: {', '.join(not_distinguished)}"
            if not_distinguished
            else "all others are significantly worse"
        )
        text += [
            f"- {score}: {best} has the best mean rank; critical difference "
            f"{comparison.critical_difference:.2f} (Nemenyi), Friedman p = "
            f"{comparison.p_value:.2g}. At a level of 5 % (Holm), {sentence}."
        ]
    absent = sorted(set(part["method"]) - set(rows_everywhere["method"]))
    if absent:
        text += [f"- Without a rank, because cells are missing: {', '.join(absent)}."]
    return [*text, ""]


def equal_sizes(table: pd.DataFrame) -> list[str]:
    """Compare methods with scikit-learn's tree with as many leaves as they have rules."""
    text = []
    for task, part in table.groupby(
        np.where(table["suite"] == "regression", "regression", "classification")
    ):
        gains = gains_over_trees(part)
        lines = []
        for method, group in gains.groupby("method"):
            with_fidelity = group.dropna(subset="fidelity")
            if len(with_fidelity) < 5:
                continue
            gain = with_fidelity["fidelity"]
            lines.append(
                (
                    float(gain.mean()),
                    [
                        bold(str(method)),
                        str(len(with_fidelity)),
                        str(len(group) - len(with_fidelity)),
                        f"{gain.mean():+.3f}",
                        *counted(gain),
                        *counted(with_fidelity["ice"]),
                        *counted(with_fidelity["fire"]),
                    ],
                )
            )
        ordered = [line for _, line in sorted(lines, key=lambda item: -item[0])]
        head = ["method", "tables", "no tree of that size", "mean gain of fidelity"]
        for score in ("fidelity", "ICE", "FiRe"):
            head += [f"{score} better, worse", "p"]
        text += [f"### {task}", *lines_of(ordered, head)]
    return text


def gains_over_trees(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gains of methods over a tree with as many leaves, for each table."""
    keys = ["suite", "data", "black_box", "seed", "n_rules"]
    trees = table[table["method"].map(sized) & table["error"].isna()]
    trees = trees.assign(rank=trees["method"].str[5:].astype(int)).sort_values("rank")
    yardstick = trees.drop_duplicates(keys, keep="first").set_index(keys)
    rows = table[~table["method"].map(sized) & table["error"].isna()]
    joined = rows.join(yardstick[["ice", "fire", "fidelity"]].add_suffix(" of tree"), on=keys)
    gains = {
        name: sign * (joined[name] - joined[f"{name} of tree"])
        for name, sign in (("ice", 1), ("fire", -1), ("fidelity", 1))
    }
    # Splits and black boxes of one table are not independent.
    return (
        joined[["suite", "data", "method"]]
        .assign(**gains)
        .groupby(["suite", "data", "method"])[list(gains)]
        .mean()
        .reset_index()
    )


def counted(gain: pd.Series) -> list[str]:
    """Return the numbers of tables with a gain and with a loss, and Wilcoxon's p-value."""
    gain = gain.dropna()
    differs = gain[gain.abs() > 1e-9 * max(1.0, gain.abs().max())]
    p = f"{wilcoxon(differs).pvalue:.2g}" if len(differs) > 5 else ""
    return [f"{int((differs > 0).sum())}, {int((differs < 0).sum())}", p]


def short_of(rows: pd.DataFrame, cells: Mapping[str, int]) -> list[str]:
    """Describe the missing combinations and the reasons."""
    grid = rows[rows["suite"] == "keel-imbalanced"]
    tables = grid.groupby("method")["data"].nunique()
    everywhere = tables.max()
    sentences = []
    for name, n in cells.items():
        why = "only regression" if name == "GridREx" else f"{n} combinations"
        n_missing = everywhere - tables.get(name, 0)
        if name in NUMBERS_ALONE and n_missing:
            why += f", none on {n_missing} tables with text columns, which it cannot read"
        sentences.append(f"{name} ({why})")
    return (
        [f"- *A reason for every missing cell.* Methods with fewer: {'; '.join(sentences)}."]
        if sentences
        else []
    )


class Standing(NamedTuple):
    """Mean rank of our best method by one score in one suite, compared with all other methods."""

    suite: str
    score: str
    method: str
    mean_rank: float
    position: int
    #: Methods of others that do not differ significantly from the best method.
    rivals: tuple[str, ...]
    best: str
    is_behind: bool

    @property
    def verdict(self) -> str:
        """The comparison in words."""
        if self.position == 1 and not self.rivals:
            return "first, significantly ahead of all methods of others"
        if self.position == 1:
            return f"first, but not significantly ahead of {', '.join(self.rivals)}"
        adverb = "significantly" if self.is_behind else "not significantly"
        return f"rank {self.position}, {adverb} behind {self.best}"


def first_ranks(table: pd.DataFrame) -> list[Standing]:
    """Return our best method by each score in each suite, for random forests and split 0."""
    rows = table[~table["method"].map(sized) & ~table["method"].str.startswith(VARIANT)]
    rows = rows[(rows["black_box"] == BLACK_BOXES[0]) & (rows["seed"] == 0)]
    classified = rows[rows["suite"] != "regression"]
    together = classified.assign(data=classified["suite"] + "/" + classified["data"])
    standings = []
    for suite, part in [*rows.groupby("suite"), (ALL_CLASSIFICATION, together)]:
        everywhere = part.groupby("method").size() == part["data"].nunique()
        rows_everywhere = as_rows(part[part["method"].map(everywhere)])
        for score in ("ice", "fire", "fidelity"):
            comparison = rank_extractors(rows_everywhere, score)[0].comparison
            ranks = comparison.average_ranks
            ours = next(name for name in ranks.index if name in OURS)
            position = list(ranks.index).index(ours) + 1
            p = comparison.against_best.set_index("extractor")["p_value_holm"].to_dict()
            rivals = tuple(n for n in ranks.index if n not in OURS and not p.get(n, 1.0) < 0.05)
            is_behind = position > 1 and p[ours] < 0.05
            standings.append(
                Standing(
                    str(suite),
                    score,
                    ours,
                    ranks[ours],
                    position,
                    rivals,
                    ranks.index[0],
                    is_behind,
                )
            )
    return standings


def summarize(table: pd.DataFrame, standings: list[Standing]) -> list[str]:
    """State where our methods win, tie and lose."""

    def listed(chosen: Callable[[Standing], bool]) -> str:
        by_suite: dict[str, list[str]] = {}
        for one in filter(chosen, standings):
            by_suite.setdefault(one.suite, []).append(SCORE_LABELS[one.score])
        texts = (f"{suite} ({', '.join(scores)})" for suite, scores in by_suite.items())
        return "; ".join(texts) or "nowhere"

    n_tables = table.groupby("suite")["data"].nunique().sum()
    joined = compare_with_best_peer(table)
    won, lost = int((joined["lost"] < -1e-9).sum()), int((joined["lost"] > 1e-9).sum())
    return [
        f"This page compares methods that explain a black box with rules, on {n_tables} tables. "
        "Our best method, by the mean rank over tables (random forest, split 0), is",
        "",
        f"- **significantly ahead** of all methods of others: "
        f"{listed(lambda one: one.position == 1 and not one.rivals)}",
        f"- **first, but tied**: {listed(lambda one: one.position == 1 and bool(one.rivals))}",
        f"- **not first**: {listed(lambda one: one.position > 1)}",
        "",
        f"Compared with the best peer of each table, `{SEARCHED}` is ahead on {won}, equal on "
        f"{len(joined) - won - lost} and behind on {lost} of {len(joined)} cells. "
        "[Fidelity at equal size](fidelity.md) and [trees tuned for ICE, FiRe and "
        "Q](tuned_trees.md) have pages of their own.",
        "",
    ]


def targets(table: pd.DataFrame, standings: list[Standing]) -> list[str]:
    """Compare the targets of the benchmark with the measured figures."""
    rows = table[~table["method"].map(sized) & ~table["method"].str.startswith(VARIANT)]
    cells = rows.groupby("method")[["suite", "data", "black_box", "seed"]].apply(
        lambda group: len(group.drop_duplicates())
    )
    n_cells = cells.sort_values(ascending=False)
    complete_methods = ", ".join(name for name, n in n_cells.items() if n >= GRID)
    mine, other_methods = (
        [n for n in n_cells.index if n in OURS],
        [n for n in n_cells.index if n not in OURS],
    )
    first = [
        f"  - {one.suite}, {SCORE_LABELS[one.score]}: {one.verdict} (our best method is "
        f"{one.method}, {one.mean_rank:.2f})."
        for one in standings
    ]
    gains = gains_over_trees(table)
    even = []
    for name in (SEARCHED, "CART", "OptimalList", "OptimalTree", "Trepan", "CREAM", "ExACT"):
        group = gains[(gains["method"] == name) & gains["fidelity"].notna()]
        if len(group) < 6:
            continue
        parts = [
            f"{label} {wins} (p = {p or 'none'})"
            for label, (wins, p) in (
                (label, counted(group[score])) for score, label in SCORE_LABELS.items()
            )
        ]
        even.append(f"  - {name}, {len(group)} tables: {'; '.join(parts)}.")
    ours = table[table["method"].isin(OURS)]
    failed, slow = int(ours["error"].notna().sum()), int((ours["seconds"] > 120).sum())
    return [
        f"- *At least 100 tables × 2 black boxes × 2 splits for each method that can be "
        f"installed*, that is {GRID} combinations: "
        + (f"reached by {complete_methods}" if complete_methods else "reached by no method")
        + f". Most of ours: {mine[0]}, {n_cells[mine[0]]}; of others: {other_methods[0]}, "
        f"{n_cells[other_methods[0]]}.",
        *short_of(rows, {name: int(n) for name, n in n_cells.items() if n < GRID}),
        "- *Any 50 cells that are measured again have the same figures.* `run.py --verify 50` "
        "measures them.",
        "- *The first mean rank, significantly, among all peers with their default settings and "
        "trees tuned for the same score* (Friedman, Holm; random forest, split 0):",
        *first,
        "- *Better than scikit-learn's tree with as many leaves.* Numbers of tables where the "
        "score is better and worse:",
        *even,
        "- *Defaults of the search are tuned on at most half of the tables.* They were tuned on "
        "tables at even positions in the order of names; ranks on the others are in parentheses.",
        "- *No cell of ours fails, exceeds two minutes, or uses a constant column or an "
        f"identifier.* Of {len(ours)} cells, {failed} failed, {slow} took longer, and "
        f"{int((ours['odd'] > 0).sum())} use such a column.",
        "",
    ]


def variants(table: pd.DataFrame) -> list[str]:
    """Evaluate other defaults of CART on even and odd tables."""
    lines = []
    for suite, part in table[table["error"].isna()].groupby("suite"):
        wide = part.pivot_table(
            ["ice", "fidelity", "n_rules"], ["data", "black_box", "seed"], "method"
        )
        tables = sorted(set(wide.index.get_level_values("data")))
        half = pd.Series(wide.index.get_level_values("data").map(tables.index) % 2, wide.index)
        for method in [name for name in wide["ice"] if name.startswith(VARIANT)]:
            for name, chosen in (("even", half == 0), ("odd", half == 1)):
                columns = wide[chosen]
                n_tables = int(columns["ice"][method].notna().sum())
                cells = [str(suite), method.removeprefix(VARIANT), f"{name} ({n_tables})"]
                for score in ("ice", "fidelity", "n_rules"):
                    gain = (columns[score][method] - columns[score]["CART"]).dropna()
                    cells.append(f"{gain.mean():+.3f}")
                gain = (columns["fidelity"][method] - columns["fidelity"]["CART"]).dropna()
                differs = gain[gain.abs() > 1e-12]
                p = wilcoxon(differs).pvalue if len(differs) > 5 else np.nan
                lines.append([*cells, f"{p:.2g}" if p == p else ""])
    if not lines:
        return []
    text = (
        "CART's default is a tree of six leaves, or as many as there are classes up to eight, "
        "which was chosen on the even tables. Differences of other defaults from it:"
    )
    head = ["suite", "CART with", "tables", "ICE", "fidelity", "rules", "p of fidelity (Wilcoxon)"]
    return [text, *lines_of(lines, head, left=3)]


def compare_with_best_peer(table: pd.DataFrame) -> pd.DataFrame:
    """Return the search and the best method of others by ICE, for each cell that both have."""
    keys = ["suite", "data", "black_box", "seed"]
    successful = table[table["error"].isna() & ~table["method"].map(sized)]
    ours = successful[successful["method"] == SEARCHED].set_index(keys)
    other_methods = successful[~successful["method"].isin(OURS)].sort_values("ice", ascending=False)
    best = other_methods.drop_duplicates(keys).set_index(keys)
    joined = ours[["ice", "n_rules", "fidelity", "performance"]].join(
        best[["method", "ice", "n_rules", "performance"]].add_suffix("_other"), how="inner"
    )
    return joined.assign(lost=joined["ice_other"] - joined["ice"])


def losses(table: pd.DataFrame) -> list[str]:
    """List the tables on which a method of others has a better ICE than the search."""
    keys = ["suite", "data", "black_box", "seed"]
    successful = table[table["error"].isna() & ~table["method"].map(sized)]
    joined = compare_with_best_peer(table)
    if not len(joined):
        return ["The search was not run.", ""]
    won, lost = joined["lost"] < -1e-9, joined["lost"] > 1e-9
    text = [
        f"The best peer of a cell is the method of others with the best ICE there, an opponent "
        f"that nobody could choose in advance. `{SEARCHED}` has a better ICE on {int(won.sum())} "
        f"of {len(joined)} cells, an equal one on {int((~won & ~lost).sum())}, and a worse one on "
        f"{int(lost.sum())}; it is worse by more than {WORTH} on "
        f"{int((joined['lost'] > WORTH).sum())}. The mean difference is "
        f"{-joined['lost'].mean():+.4f}.",
    ]
    for mine, theirs, score in TWINS:
        values = successful.set_index(keys)[["method", score]]
        gap = values[score][values["method"] == mine] - values[score][values["method"] == theirs]
        gap = gap.dropna().groupby(["suite", "data"]).mean()  # cells of one table are alike
        if len(gap):
            counts, p = counted(gap if score == "ice" else -gap)
            ahead, behind = counts.split(", ")
            text += [
                "",
                f"`{mine}` compared with `{theirs}`, means over black boxes and splits of a table: "
                f"the median difference of {SCORE_LABELS[score]} is {gap.median():+.3g}; the "
                f"search is ahead on {ahead} of {len(gap)} tables and behind on {behind} "
                f"(Wilcoxon, p = {p}).",
            ]
    worst = joined[joined["lost"] > WORTH].sort_values("lost", ascending=False).head(12)
    more = (joined["n_rules"] > joined["n_rules_other"])[worst.index]
    if len(worst):
        why = (
            f"In {int(more.sum())} of the {len(worst)} largest losses, the search has more rules "
            f"than the peer; in the other {int((~more).sum())}, it has worse predictions."
        )
        lines = [
            [
                f"{k[1]} ({k[0]}, {k[2]})",
                format_value(r.ice),
                format_value(r.n_rules, 0),
                format_value(r.performance),
                str(r.method_other),
                format_value(r.ice_other),
                format_value(r.n_rules_other, 0),
                format_value(r.performance_other),
            ]
            for k, r in zip(worst.index, worst.itertuples(), strict=True)
        ]
        head = ["table", "ICE", "rules", "p", "best peer", "its ICE", "rules", "p"]
        text += ["", why, *lines_of(lines, head)]
    return [*text, ""]


def troubles(table: pd.DataFrame) -> list[str]:
    failed = table[table["error"].notna()]
    kinds = failed.groupby(["method", "error"]).size().reset_index(name="cells")
    kinds = kinds.sort_values("cells", ascending=False).head(25)
    text = ["### Cells without rules", ""]
    text += lines_of(
        [[str(r.method), str(r.cells), str(r.error).replace("|", "/")] for r in kinds.itertuples()],
        ["method", "cells", "reason"],
    )
    ours = table[table["method"].isin(OURS)]
    mine = ours[ours["error"].notna()]
    odd = table[table["odd"] > 0].groupby("method").size()
    slow = ours[ours["seconds"] > 120]
    longest = ours.sort_values("seconds", ascending=False).head(3)
    text += [
        "### Our own cells",
        "",
        f"- {len(mine)} of {len(ours)} failed"
        + (
            f": {', '.join(sorted(set(mine['method'] + ' on ' + mine['data'])))[:600]}."
            if len(mine)
            else "."
        ),
        f"- {len(slow)} took more than two minutes, on cores shared with other programs; the "
        "longest: "
        + ", ".join(f"{r.method} on {r.data} {r.seconds:.0f} s" for r in longest.itertuples())
        + ".",
        f"- {int(odd.reindex(list(OURS)).fillna(0).sum())} use a column that is constant in the "
        "training rows or numbers the rows. Cells of all methods: "
        + (", ".join(f"{name} {n}" for name, n in odd.items()) or "none")
        + ".",
        "",
    ]
    return text


def hidden(table: pd.DataFrame) -> list[str]:
    """Tabulate measures that the scores do not include, and their correlation with the scores."""
    successful = table[table["error"].isna() & ~table["method"].map(sized)]
    names = [name for name in MEASURES if successful[name].notna().any()]
    if not names:
        return []
    order = successful.groupby("method")["ice"].mean().sort_values(ascending=False).index
    means = successful.groupby("method")[names].mean().abs().reindex(order)
    lines = [
        [bold(str(m)), *(format_value(v) for v in row)]
        for m, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    heads = [name.removeprefix("neg_").replace("_", " ") for name in names]
    text = [
        "Means over all cells of a method, in the order of ICE: literals per rule, share of rows "
        "on which rules contradict each other, share of literals that no training row needs, error "
        "of the printed purity, gap between the mean fidelity and that of the worst class, and "
        "fidelity on interpolated rows ([definitions](../../docs/guide/beyond_scores.md)).",
        *lines_of(lines, ["method", *heads]),
    ]
    within = successful.groupby(["suite", "data", "black_box", "seed"])
    correlations = {}
    for name in ("fire", "fidelity", *names):
        sign = -1 if name == "fire" else 1
        rows = [
            (sign * part[name]).corr(part["ice"], method="kendall")
            for _, part in within
            if part[["ice", name]].dropna().nunique().min() > 2
        ]
        rows = [value for value in rows if value == value]
        if rows:
            correlations[name] = float(np.mean(rows))
    text += [
        "Agreement with ICE within a table, as the mean of Kendall's τ over tables (1 is the same "
        "order): "
        + ", ".join(f"{n.removeprefix('neg_')} {v:+.2f}" for n, v in correlations.items())
        + ".",
        "",
    ]
    return text


def write_readme(table: pd.DataFrame) -> None:
    """Write the page."""
    standings = first_ranks(table)
    compared = table[~table["method"].str.startswith(VARIANT)]
    parts = [
        "# The arena: a comparison of rule extractors",
        "",
        *summarize(compared, standings),
        "## Setup",
        "",
        "This page is written by `python benchmarks/arena/findings.py` from "
        "[results.csv](results.csv); do not edit either file by hand. `python "
        "benchmarks/arena/run.py` measures missing cells. Each file in [methods](methods) defines "
        "methods; add a file to compare your own.",
        "",
        "A black box is fitted on one half of a table, and every method learns from its "
        "predictions there. All figures are from the other half: ICE, FiRe and performance compare "
        "the rules with the labels, fidelity compares them with the black box. The search also "
        "uses the labels of the training rows and chooses its hyperparameters by cross-validation "
        "on them. Trees *tuned for ICE* or *for FiRe* choose their number of leaves by "
        "cross-validation on the predictions of the black box. All other methods have their "
        "default settings. A method that fails on a table has the last rank there; means are over "
        "the tables on which a method gave rules. Tables have at most 2,000 rows, except for those "
        "of keel-imbalanced, which are complete. Our methods are in bold. Ranks in parentheses are "
        "those on tables at odd positions in the order of names, on which no default was chosen.",
        "",
        "## Equal numbers of rules",
        "",
        "Each method is compared with scikit-learn's tree that has as many leaves as the method "
        "has rules on the same table. The table shows the mean gain of fidelity, and the numbers "
        "of tables on which a score is better and worse, with Wilcoxon's p. Trees have 2 to 16 "
        "leaves; shorter and longer rule lists have no counterpart.",
        "",
        *equal_sizes(table),
        "## Mean ranks on held-out rows",
        "",
        *ranks(compared),
        "## Losses",
        "",
        *losses(compared),
        *variants(table),
        "## Measures beyond the scores",
        "",
        *hidden(compared),
        "## Targets",
        "",
        *targets(table, standings),
        "## Cells",
        "",
        *coverage(table),
        *troubles(table),
    ]
    text = "\n".join(parts)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    (FOLDER / "README.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def write_pages(folder: Path, runs: Path) -> None:
    """Write a page with the rules for each suite and black box."""
    from skescore.cli._bench import page_rankings
    from skescore.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    for suite in SUITES:
        for box in BLACK_BOXES:
            row_files = sorted((runs / "runs" / suite / box).glob("*/*/rows.csv"))
            if not row_files:
                continue
            rows = pd.concat([read_rows(path) for path in row_files], ignore_index=True)
            rows = rows[~rows["extractor"].map(sized)]
            with tempfile.TemporaryDirectory() as work_folder:
                rows.to_csv(Path(work_folder) / "rows.csv", index=False)
                rule_lines = [
                    line
                    for p in row_files
                    for line in read_complete_lines(p.with_name("rules.jsonl"))
                ]
                rule_lines = [
                    line for line in rule_lines if not sized(json.loads(line)["extractor"])
                ]
                (Path(work_folder) / "rules.jsonl").write_text("\n".join(["{}", *rule_lines, ""]))
                path = folder / f"{suite}-{box}.html"
                write_report(
                    work_folder,
                    path=path,
                    title=f"{suite}, {box}",
                    rankings=page_rankings(rows, "ice"),
                )
            print(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=Path, default=CACHE, help="--folder of run.py")
    options = parser.parse_args()
    write_readme(pd.read_csv(FOLDER / "results.csv", dtype={"error": str}))
    if options.pages is not None:
        write_pages(options.pages, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
