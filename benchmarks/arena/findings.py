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
    "search ICE (constants)",
    "search FiRe (constants)",
)
#: Methods that only support regression.
REGRESSION_METHODS = ("GridREx", "linear equation")
#: Prefix of our methods with alternative defaults, which are compared with the defaults only.
VARIANT_PREFIX = "CART, "
#: The search that is compared with the best peer of each cell.
SEARCH = "search ICE"
#: Searches, the trees tuned for the same score, and the score.
SEARCHES_AND_TREES = (
    ("search ICE", "tree tuned for ICE", "ice"),
    ("search FiRe", "tree tuned for FiRe", "fire"),
    ("search ICE (constants)", "tree tuned for ICE", "ice"),
    ("search FiRe (constants)", "tree tuned for FiRe", "fire"),
)
N_COMBINATIONS = 100 * 2 * 2
SCORE_LABELS = {"fidelity": "fidelity", "ice": "ICE", "fire": "FiRe", "q": "Q"}
#: Scores whose smallest values are best.
LOSSES = ("fire", "q")
ALL_CLASSIFICATION = "all classification tables"
#: Methods that do not read text columns, so they have no cells on tables with such columns.
NUMERIC_METHODS = ("TE2Rules", "PSyKE CART", "PSyKE CREAM", "PSyKE GridEx", "PSyKE ITER")
#: Smallest difference of ICE that is listed as a loss.
MIN_LOSS = 0.01


def is_sized_tree(method: str) -> bool:
    """Return whether a method is a tree of fixed size, which serves as a reference only."""
    return method.startswith("tree ") and method[5:].isdigit()


def bold(method: str) -> str:
    """Return the name of a method, in bold if it is one of ours."""
    return f"**{method}**" if method in OURS or method.startswith(VARIANT_PREFIX) else method


def as_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as rows of a benchmark."""
    rows = table.rename(columns={"method": "extractor"})
    rows["state"] = np.where(rows["error"].isna(), "complete", "failed")
    rows["task"] = np.where(rows["suite"] == "regression", "regression", "classification")
    return rows.reindex(columns=row_columns())


def format_value(value: float, digits: int = 3) -> str:
    """Format a number; NaN is an empty text."""
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def format_table(rows: list[list[str]], head: list[str], n_text: int = 1) -> list[str]:
    """Return the lines of a Markdown table whose first columns are left-aligned."""
    alignments = [":--"] * n_text + ["--:"] * (len(head) - n_text)
    return ["", *(f"| {' | '.join(row)} |" for row in [head, alignments, *rows]), ""]


def coverage_section(table: pd.DataFrame) -> list[str]:
    """Describe the measured cells and the machine."""
    successful = table["error"].isna()
    cells = table.groupby(["suite", "data", "black_box", "seed"]).ngroups
    description = json.loads((FOLDER / "machine.json").read_text(encoding="utf-8"))
    machine = description["machine"]
    tables = table.groupby("suite")["data"].nunique()
    text = [
        "A cell is one method on one table with one black box and one split. The page is based on "
        f"{len(table)} cells of {table['method'].nunique()} methods, including 15 trees of a fixed "
        f"size, for comparisons at equal size; {int(successful.sum())} cells produced rules. "
        f"Tables: {', '.join(f'{suite} {n}' for suite, n in tables.items())}. The target is 100 "
        f"tables × 2 black boxes × 2 splits, that is, {N_COMBINATIONS} combinations, for each "
        f"method; {cells} combinations were measured with at least one method.",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores (loaded), "
        f"{machine['platform']}; versions are in [machine.json](machine.json).",
    ]
    counts = (
        table[~table["method"].map(is_sized_tree)]
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
    rows = [[str(v) for v in row] for row in counts.itertuples(index=False)]
    head = ["suite", "black box", "split", "tables", "methods", "cells", "with rules"]
    return text + format_table(rows, head, n_text=2)


def ranks_section(table: pd.DataFrame) -> list[str]:
    """Rank methods on the first black box and split, and on all complete black boxes and splits."""
    text = []
    for suite, suite_rows in table[~table["method"].map(is_sized_tree)].groupby("suite"):
        settings = suite_rows[["black_box", "seed"]].apply(tuple, axis=1)
        first_setting = (BLACK_BOXES[0], 0)
        text += rank_methods(
            f"{suite}, {first_setting[0]}, split {first_setting[1]}",
            suite_rows[settings == first_setting],
        )
        tables = suite_rows["data"].nunique()
        is_complete = suite_rows.groupby(settings)["data"].nunique() == tables
        complete_rows = suite_rows[settings.isin(set(is_complete[is_complete].index))]
        if complete_rows["black_box"].nunique() * complete_rows["seed"].nunique() > 1:
            boxes, seeds = (
                sorted(set(complete_rows["black_box"])),
                sorted(set(complete_rows["seed"])),
            )
            title = f"{suite}, {' and '.join(boxes)}, splits {', '.join(map(str, seeds))}"
            text += rank_methods(f"{title}, mean of {int(is_complete.sum())}", complete_rows)
    return text


def rank_methods(title: str, part: pd.DataFrame) -> list[str]:
    """Rank the methods that have all cells, and test their differences."""
    cells = part[["data", "black_box", "seed"]].drop_duplicates()
    is_complete = part.groupby("method").size() == len(cells)
    complete_rows = part[part["method"].map(is_complete)]
    names = sorted(set(part["data"]))
    odd_rows = as_rows(complete_rows[complete_rows["data"].isin(names[1::2])])
    rows = as_rows(complete_rows)
    rankings = {s: rank_extractors(rows, s)[0] for s in SCORE_LABELS}
    means = (
        complete_rows[complete_rows["error"].isna()]
        .groupby("method")[["ice", "fidelity", "n_rules", "completeness_volume", "seconds"]]
        .mean()
    )
    n_failed = complete_rows[complete_rows["error"].notna()].groupby("method").size()
    ranks = {s: r.table.set_index("extractor")["rank"] for s, r in rankings.items()}
    ranks |= {
        f"{s}, odd": rank_extractors(odd_rows, s)[0].table.set_index("extractor")["rank"]
        for s in rankings
    }
    lines = [
        [
            bold(name),
            *(
                f"{format_value(ranks[s][name], 2)} ({format_value(ranks[f'{s}, odd'][name], 2)})"
                for s in rankings
            ),
            *(
                format_value(means.loc[name, c], d) if name in means.index else ""
                for c, d in zip(means.columns, (3, 3, 1, 2, 2), strict=True)
            ),
            str(n_failed.get(name, 0)),
        ]
        for name in ranks["ice"].index
    ]
    head = [
        "method",
        *(f"rank {label}" for label in SCORE_LABELS.values()),
        "ICE",
        "fidelity",
        "rules",
        "space covered",
        "seconds",
        "failed",
    ]
    text = [f"### {title}: {len(names)} tables", "", *format_table(lines, head)]
    for score, ranking in rankings.items():
        comparison = ranking.comparison
        best_method = comparison.average_ranks.index[0]
        against = comparison.against_best.set_index("extractor")["p_value_holm"]
        not_distinguished = [name for name, p in against.items() if not p < 0.05]
        sentence = (
            f"the following do not differ significantly from it: {', '.join(not_distinguished)}"
            if not_distinguished
            else "all others are significantly worse"
        )
        text += [
            f"- {score}: {best_method} has the best mean rank; critical difference "
            f"{comparison.critical_difference:.2f} (Nemenyi), Friedman p = "
            f"{comparison.p_value:.2g}. At a level of 5 % (Holm), {sentence}."
        ]
    missing_methods = sorted(set(part["method"]) - set(complete_rows["method"]))
    if missing_methods:
        text += [f"- Not ranked, because cells are missing: {', '.join(missing_methods)}."]
    return [*text, ""]


def equal_size_section(table: pd.DataFrame) -> list[str]:
    """Compare methods with trees of scikit-learn that have as many leaves as they have rules."""
    text = []
    for task, part in table.groupby(
        np.where(table["suite"] == "regression", "regression", "classification")
    ):
        gains = gains_over_trees(part)
        compared = gains.dropna(subset="fidelity").groupby("method").filter(lambda g: len(g) >= 5)
        lines = pd.DataFrame({"gain": compared.groupby("method")["fidelity"].mean()})
        n_tables, n_all = (t.groupby("method").size() for t in (compared, gains))
        columns = [lines.index.map(bold), n_tables, n_all[lines.index] - n_tables]
        columns.append(lines["gain"].map("{:+.3f}".format))
        head = ["method", "tables", "no tree of that size", "mean gain of fidelity"]
        for score, label in SCORE_LABELS.items():
            comparisons = compared.groupby("method")[score].agg(compare_gains)
            p_values = adjust_by_holm(comparisons.map(lambda c: c.p))
            columns += [
                comparisons.map(lambda c: f"{c.n_better}, {c.n_worse}"),
                comparisons.map(lambda c: f"{c.effect:+.2f}"),
                p_values.map(lambda p: "" if pd.isna(p) else f"{p:.2g}"),
            ]
            head += [f"{label} better, worse", "r", "p"]
        order = lines["gain"].argsort(kind="stable")[::-1]
        rows = [[str(list(column)[i]) for column in columns] for i in order]
        text += [f"### {task}", *format_table(rows, head)]
    return text


def gains_over_trees(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gains of methods over trees with as many leaves, for each table."""
    keys = ["suite", "data", "black_box", "seed", "n_rules"]
    trees = table[table["method"].map(is_sized_tree) & table["error"].isna()]
    trees = trees.assign(rank=trees["method"].str[5:].astype(int)).sort_values("rank")
    smallest_trees = trees.drop_duplicates(keys, keep="first").set_index(keys)
    rows = table[~table["method"].map(is_sized_tree) & table["error"].isna()]
    joined = rows.join(smallest_trees[list(SCORE_LABELS)].add_suffix(" of tree"), on=keys)
    gains = {
        name: (-1 if name in LOSSES else 1) * (joined[name] - joined[f"{name} of tree"])
        for name in SCORE_LABELS
    }
    # Splits and black boxes of one table are not independent.
    return (
        joined[["suite", "data", "method"]]
        .assign(**gains)
        .groupby(["suite", "data", "method"])[list(gains)]
        .mean()
        .reset_index()
    )


class Comparison(NamedTuple):
    """Paired comparison of two methods over tables."""

    n_better: int
    n_worse: int
    #: Rank-biserial correlation: 1 if all tables that differ are better, -1 if all are worse.
    effect: float
    #: Wilcoxon's p-value; NaN for fewer than six tables that differ.
    p: float


def compare_gains(gain: pd.Series) -> Comparison:
    """Return the comparison of two methods by the gains of the first one on each table."""
    gain = gain.dropna()
    differs = gain[gain.abs() > 1e-9 * max(1.0, gain.abs().max())]
    ranks = differs.abs().round(12).rank()
    effect = (ranks * np.sign(differs)).sum() / ranks.sum() if len(ranks) else 0.0
    p = wilcoxon(differs).pvalue if len(differs) > 5 else np.nan
    return Comparison(int((differs > 0).sum()), int((differs < 0).sum()), float(effect), float(p))


def adjust_by_holm(p_values: pd.Series) -> pd.Series:
    """Return p-values that are corrected for the number of tests by Holm's procedure."""
    ordered = p_values.dropna().sort_values(kind="stable")
    factors = np.arange(len(ordered), 0, -1)
    return (ordered * factors).cummax().clip(upper=1.0).reindex(p_values.index)


def count_gains(gain: pd.Series) -> list[str]:
    """Return the numbers of tables with a gain and with a loss, and Wilcoxon's p-value."""
    comparison = compare_gains(gain)
    p = "" if np.isnan(comparison.p) else f"{comparison.p:.2g}"
    return [f"{comparison.n_better}, {comparison.n_worse}", p]


def describe_missing_cells(rows: pd.DataFrame, cells: Mapping[str, int]) -> list[str]:
    """Describe missing combinations and their reasons."""
    imbalanced_rows = rows[rows["suite"] == "keel-imbalanced"]
    tables_per_method = imbalanced_rows.groupby("method")["data"].nunique()
    n_tables = tables_per_method.max()
    sentences = []
    for name, n in cells.items():
        reason = "only regression" if name in REGRESSION_METHODS else f"{n} combinations"
        n_missing = n_tables - tables_per_method.get(name, 0)
        if name in NUMERIC_METHODS and n_missing:
            reason += f", none on {n_missing} tables with text columns, which it cannot read"
        sentences.append(f"{name} ({reason})")
    return (
        [
            f"- *A reason for every missing cell.* Methods with fewer than {N_COMBINATIONS}: "
            f"{'; '.join(sentences)}."
        ]
        if sentences
        else []
    )


class BestRank(NamedTuple):
    """Mean rank of our best method by one score in one suite, compared with all other methods."""

    suite: str
    score: str
    method: str
    mean_rank: float
    position: int
    #: Methods of other authors that do not differ significantly from the best method.
    rivals: tuple[str, ...]
    best: str
    is_behind: bool

    @property
    def verdict(self) -> str:
        """Comparison with the other methods in words."""
        if self.position == 1 and not self.rivals:
            return "first, significantly ahead of all methods by other authors"
        if self.position == 1:
            return f"first, but not significantly ahead of {', '.join(self.rivals)}"
        adverb = "significantly" if self.is_behind else "not significantly"
        return f"rank {self.position}, {adverb} behind {self.best}"


def best_ranks(table: pd.DataFrame) -> list[BestRank]:
    """Return our best method by each score in each suite, for random forests and split 0."""
    rows = table[
        ~table["method"].map(is_sized_tree) & ~table["method"].str.startswith(VARIANT_PREFIX)
    ]
    rows = rows[(rows["black_box"] == BLACK_BOXES[0]) & (rows["seed"] == 0)]
    classification_rows = rows[rows["suite"] != "regression"]
    all_classification = classification_rows.assign(
        data=classification_rows["suite"] + "/" + classification_rows["data"]
    )
    best = []
    for suite, part in [*rows.groupby("suite"), (ALL_CLASSIFICATION, all_classification)]:
        is_complete = part.groupby("method").size() == part["data"].nunique()
        complete_rows = as_rows(part[part["method"].map(is_complete)])
        for score in SCORE_LABELS:
            comparison = rank_extractors(complete_rows, score)[0].comparison
            ranks = comparison.average_ranks
            ours = next(name for name in ranks.index if name in OURS)
            position = list(ranks.index).index(ours) + 1
            p = comparison.against_best.set_index("extractor")["p_value_holm"].to_dict()
            rivals = tuple(n for n in ranks.index if n not in OURS and not p.get(n, 1.0) < 0.05)
            is_behind = position > 1 and p[ours] < 0.05
            best.append(
                BestRank(
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
    return best


def summary_section(table: pd.DataFrame, best: list[BestRank]) -> list[str]:
    """State where our methods win, tie and lose."""

    def list_suites(condition: Callable[[BestRank], bool]) -> str:
        by_suite: dict[str, list[str]] = {}
        for rank in filter(condition, best):
            by_suite.setdefault(rank.suite, []).append(SCORE_LABELS[rank.score])
        texts = (f"{suite} ({', '.join(scores)})" for suite, scores in by_suite.items())
        return "; ".join(texts) or "nowhere"

    n_tables = table.groupby("suite")["data"].nunique().sum()
    joined = compare_with_best_peer(table)
    n_won, n_lost = int((joined["lost"] < -1e-9).sum()), int((joined["lost"] > 1e-9).sum())
    return [
        f"This page compares methods that explain a black box with rules, on {n_tables} tables. "
        "Our best method, by the mean rank over tables (random forest, split 0), is",
        "",
        f"- **significantly ahead** of all methods by other authors: "
        f"{list_suites(lambda rank: rank.position == 1 and not rank.rivals)}",
        f"- **first, but not significantly ahead**: "
        f"{list_suites(lambda rank: rank.position == 1 and bool(rank.rivals))}",
        f"- **not first**: {list_suites(lambda rank: rank.position > 1)}",
        "",
        f"By ICE, `{SEARCH}` is ahead of the best method by other authors on {n_won}, equal on "
        f"{len(joined) - n_won - n_lost} and behind on {n_lost} of {len(joined)} cells. "
        "[Fidelity at equal size](fidelity.md), [fidelity with equal budgets](equal_budgets.md) "
        "and [trees tuned for ICE, FiRe and Q](tuned_trees.md) have separate pages.",
        "",
    ]


def targets_section(table: pd.DataFrame, best: list[BestRank]) -> list[str]:
    """Compare the targets of the benchmark with the measured figures."""
    rows = table[
        ~table["method"].map(is_sized_tree) & ~table["method"].str.startswith(VARIANT_PREFIX)
    ]
    cells = rows.groupby("method")[["suite", "data", "black_box", "seed"]].apply(
        lambda group: len(group.drop_duplicates())
    )
    n_cells = cells.sort_values(ascending=False)
    complete_methods = ", ".join(name for name, n in n_cells.items() if n >= N_COMBINATIONS)
    our_methods, other_methods = (
        [n for n in n_cells.index if n in OURS],
        [n for n in n_cells.index if n not in OURS],
    )
    rank_lines = [
        f"  - {rank.suite}, {SCORE_LABELS[rank.score]}: {rank.verdict} (our best "
        f"method is {rank.method}, {rank.mean_rank:.2f})."
        for rank in best
    ]
    gains = gains_over_trees(table)
    equal_size_lines = []
    for name in (SEARCH, "CART", "OptimalList", "OptimalTree", "Trepan", "CREAM", "ExACT"):
        group = gains[(gains["method"] == name) & gains["fidelity"].notna()]
        if len(group) < 6:
            continue
        parts = [
            f"{label} {wins} (p = {p or 'none'})"
            for label, (wins, p) in (
                (label, count_gains(group[score])) for score, label in SCORE_LABELS.items()
            )
        ]
        equal_size_lines.append(f"  - {name}, {len(group)} tables: {'; '.join(parts)}.")
    ours = table[table["method"].isin(OURS)]
    n_failed, n_slow = int(ours["error"].notna().sum()), int((ours["seconds"] > 120).sum())
    return [
        f"- *At least 100 tables × 2 black boxes × 2 splits for each method that can be "
        f"installed*, that is, {N_COMBINATIONS} combinations: "
        + (f"reached by {complete_methods}" if complete_methods else "reached by no method")
        + f". Largest number among our methods: {our_methods[0]}, {n_cells[our_methods[0]]}; among "
        f"other methods: {other_methods[0]}, {n_cells[other_methods[0]]}.",
        *describe_missing_cells(
            rows, {name: int(n) for name, n in n_cells.items() if n < N_COMBINATIONS}
        ),
        "- *Any 50 cells that are measured again have the same figures.* `run.py --verify 50` "
        "measures them.",
        "- *The best mean rank, significantly better than all peers with their default settings "
        "and trees tuned for the same score* (Friedman, Holm; random forest, split 0):",
        *rank_lines,
        "- *Better than scikit-learn's tree with as many leaves.* Numbers of tables where the "
        "score is better and worse:",
        *equal_size_lines,
        "- *Defaults of the search are tuned on at most half of the tables.* They were tuned on "
        "tables at even positions in the order of names; ranks on the other tables are in "
        "parentheses.",
        "- *No cell of ours fails, exceeds two minutes, or uses a constant column or an "
        f"identifier.* Of {len(ours)} cells, {n_failed} failed, {n_slow} took longer, and "
        f"{int((ours['odd'] > 0).sum())} use such a column.",
        "",
    ]


def variants_section(table: pd.DataFrame) -> list[str]:
    """Evaluate other defaults of CART on even and odd tables."""
    lines = []
    for suite, part in table[table["error"].isna()].groupby("suite"):
        wide = part.pivot_table(
            ["ice", "fidelity", "n_rules"], ["data", "black_box", "seed"], "method"
        )
        tables = sorted(set(wide.index.get_level_values("data")))
        half = pd.Series(wide.index.get_level_values("data").map(tables.index) % 2, wide.index)
        for method in [name for name in wide["ice"] if name.startswith(VARIANT_PREFIX)]:
            for name, in_half in (("even", half == 0), ("odd", half == 1)):
                columns = wide[in_half]
                n_tables = int(columns["ice"][method].notna().sum())
                cells = [str(suite), method.removeprefix(VARIANT_PREFIX), f"{name} ({n_tables})"]
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
        "CART's default is a tree of six leaves, or of one leaf per class (at most eight) if there "
        "are more classes; it was chosen on the tables at even positions in the order of names. "
        "Differences of other defaults from it:"
    )
    head = ["suite", "CART with", "tables", "ICE", "fidelity", "rules", "p of fidelity (Wilcoxon)"]
    return [text, *format_table(lines, head, n_text=3)]


def compare_with_best_peer(table: pd.DataFrame) -> pd.DataFrame:
    """Return the search and the best method by other authors by ICE, for each cell of both."""
    keys = ["suite", "data", "black_box", "seed"]
    successful = table[table["error"].isna() & ~table["method"].map(is_sized_tree)]
    ours = successful[successful["method"] == SEARCH].set_index(keys)
    other_methods = successful[~successful["method"].isin(OURS)].sort_values("ice", ascending=False)
    best = other_methods.drop_duplicates(keys).set_index(keys)
    joined = ours[["ice", "n_rules", "fidelity", "performance"]].join(
        best[["method", "ice", "n_rules", "performance"]].add_suffix("_other"), how="inner"
    )
    return joined.assign(lost=joined["ice_other"] - joined["ice"])


def losses_section(table: pd.DataFrame) -> list[str]:
    """Compare the ICE of the search with other methods, and list the largest losses."""
    keys = ["suite", "data", "black_box", "seed"]
    successful = table[table["error"].isna() & ~table["method"].map(is_sized_tree)]
    joined = compare_with_best_peer(table)
    if not len(joined):
        return ["The search was not run.", ""]
    is_won, is_lost = joined["lost"] < -1e-9, joined["lost"] > 1e-9
    text = [
        f"The best peer of a cell is the method by other authors with the best ICE there, which "
        f"cannot be chosen in advance. `{SEARCH}` has a better ICE on {int(is_won.sum())} "
        f"of {len(joined)} cells, an equal one on {int((~is_won & ~is_lost).sum())}, and a worse "
        f"one on {int(is_lost.sum())}; it is worse by more than {MIN_LOSS} on "
        f"{int((joined['lost'] > MIN_LOSS).sum())}. The mean difference is "
        f"{-joined['lost'].mean():+.4f}.",
    ]
    for search, tree, score in SEARCHES_AND_TREES:
        values = successful.set_index(keys)[["method", score]]
        gap = values[score][values["method"] == search] - values[score][values["method"] == tree]
        gap = gap.dropna().groupby(["suite", "data"]).mean()  # cells of one table are dependent
        if len(gap):
            counts, p = count_gains(gap if score == "ice" else -gap)
            ahead, behind = counts.split(", ")
            text += [
                "",
                f"`{search}` compared with `{tree}`, means over black boxes and splits of a table: "
                f"the median difference of {SCORE_LABELS[score]} is {gap.median():+.3g}; the "
                f"search is ahead on {ahead} of {len(gap)} tables and behind on {behind} "
                f"(Wilcoxon, p = {p}).",
            ]
    largest_losses = joined[joined["lost"] > MIN_LOSS].sort_values("lost", ascending=False).head(12)
    has_more_rules = (joined["n_rules"] > joined["n_rules_other"])[largest_losses.index]
    if len(largest_losses):
        reason = (
            f"In {int(has_more_rules.sum())} of the {len(largest_losses)} largest losses, the "
            f"search has more rules than the peer; in the remaining "
            f"{int((~has_more_rules).sum())}, it has worse predictions."
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
            for k, r in zip(largest_losses.index, largest_losses.itertuples(), strict=True)
        ]
        head = ["table", "ICE", "rules", "performance", "best peer"]
        head += ["its ICE", "its rules", "its performance"]
        text += ["", reason, *format_table(lines, head)]
    return [*text, ""]


def stability_section(table: pd.DataFrame) -> list[str]:
    """Tabulate differences between splits, the lengths of the rules, and times."""
    successful = table[table["error"].isna() & ~table["method"].map(is_sized_tree)]
    keys = ["method", "suite", "data", "black_box"]
    wide = successful.pivot_table(["fidelity", "n_rules"], keys, "seed").dropna()
    changes = {
        name: (wide[name][1] - wide[name][0]).abs().groupby("method").mean()
        for name in ("fidelity", "n_rules")
    }
    methods = successful.groupby("method")
    columns = {
        "fidelity, difference of splits": (changes["fidelity"], 3),
        "rules, difference of splits": (changes["n_rules"], 1),
        "rules": (methods["n_rules"].mean(), 1),
        "conditions": (methods["conditions"].mean(), 1),
        "literals per rule": (methods["neg_terms_per_rule"].mean().abs(), 2),
        "seconds, median": (methods["seconds"].median(), 2),
    }
    order = changes["fidelity"].reindex(list(methods.groups)).sort_values(kind="stable").index
    lines = [
        [bold(str(m)), *(format_value(v.get(m, np.nan), digits) for v, digits in columns.values())]
        for m in order
    ]
    return format_table(lines, ["method", *columns])


def failures_section(table: pd.DataFrame) -> list[str]:
    """List reasons of cells without rules, and problems of our own cells."""
    failed_cells = table[table["error"].notna()]
    reasons = failed_cells.groupby(["method", "error"]).size().reset_index(name="cells")
    reasons = reasons.sort_values("cells", ascending=False).head(25)
    text = ["### Cells without rules", ""]
    text += format_table(
        [
            [str(r.method), str(r.cells), str(r.error).replace("|", "/")]
            for r in reasons.itertuples()
        ],
        ["method", "cells", "reason"],
    )
    ours = table[table["method"].isin(OURS)]
    failures = ours[ours["error"].notna()]
    n_unsuitable = table[table["odd"] > 0].groupby("method").size()
    slow_cells = ours[ours["seconds"] > 120]
    slowest_cells = ours.sort_values("seconds", ascending=False).head(3)
    text += [
        "### Our own cells",
        "",
        f"- {len(failures)} of {len(ours)} failed"
        + (
            f": {', '.join(sorted(set(failures['method'] + ' on ' + failures['data'])))[:600]}."
            if len(failures)
            else "."
        ),
        f"- {len(slow_cells)} took more than two minutes on a loaded machine; the longest: "
        + ", ".join(f"{r.method} on {r.data} {r.seconds:.0f} s" for r in slowest_cells.itertuples())
        + ".",
        f"- {int(n_unsuitable.reindex(list(OURS)).fillna(0).sum())} use a column that is constant "
        "in the training rows or contains row numbers. Such cells by method: "
        + (", ".join(f"{name} {n}" for name, n in n_unsuitable.items()) or "none")
        + ".",
        "",
    ]
    return text


def measures_section(table: pd.DataFrame) -> list[str]:
    """Tabulate measures that the scores do not include, and their correlation with the scores."""
    successful = table[table["error"].isna() & ~table["method"].map(is_sized_tree)]
    names = [name for name in MEASURES if successful[name].notna().any()]
    if not names:
        return []
    order = successful.groupby("method")["ice"].mean().sort_values(ascending=False).index
    means = successful.groupby("method")[names].mean().abs().reindex(order)
    lines = [
        [bold(str(m)), *(format_value(v) for v in row)]
        for m, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    titles = [name.removeprefix("neg_").replace("_", " ") for name in names]
    text = [
        "Means over all cells of a method, in the order of ICE: terms per rule, share of rows "
        "on which rules contradict each other, share of literals that no training row needs, error "
        "of the printed purity, gap between the mean fidelity and the fidelity for the worst "
        "class, and fidelity on interpolated rows "
        "([definitions](../../docs/guide/beyond_scores.md)).",
        *format_table(lines, ["method", *titles]),
    ]
    groups = successful.groupby(["suite", "data", "black_box", "seed"])
    correlations = {}
    for name in ("fire", "fidelity", *names):
        sign = -1 if name == "fire" else 1
        rows = [
            (sign * part[name]).corr(part["ice"], method="kendall")
            for _, part in groups
            if part[["ice", name]].dropna().nunique().min() > 2
        ]
        rows = [value for value in rows if value == value]
        if rows:
            correlations[name] = float(np.mean(rows))
    text += [
        "Agreement with the order of the methods by ICE, as the mean of Kendall's τ over tables, "
        "black boxes and splits (1 is the same order): "
        + ", ".join(f"{n.removeprefix('neg_')} {v:+.2f}" for n, v in correlations.items())
        + ".",
        "",
    ]
    return text


def write_readme(table: pd.DataFrame) -> None:
    """Write the page README.md."""
    best = best_ranks(table)
    compared = table[~table["method"].str.startswith(VARIANT_PREFIX)]
    parts = [
        "# The arena: a comparison of rule extractors",
        "",
        *summary_section(compared, best),
        "## Setup",
        "",
        "This page is written by `python benchmarks/arena/findings.py` from "
        "[results.csv](results.csv); do not edit either file by hand. `python "
        "benchmarks/arena/run.py` measures missing cells. Each file in [methods](methods) defines "
        "methods; add a file to compare your own.",
        "",
        "A black box is fitted on one half of a table, and every method learns from its "
        "predictions there. All figures are from the other half. ICE, FiRe, Q and performance "
        "compare the rules with the labels; fidelity compares them with the black box. "
        "*search ICE* and *search FiRe* are the default search for these scores. The search also "
        "uses the labels of the training rows and chooses its hyperparameters by cross-validation "
        "on them. Trees *tuned for ICE* or *for FiRe* choose between 1 and 32 leaves by "
        "cross-validation on the predictions of the black box. All other methods have their "
        "default settings, with "
        "exceptions that their files state. The default class of RIPPER, TE2Rules, iguanas and "
        "scoredrulesets counts as a rule. *constant* is the most frequent class or the mean, and "
        "*linear equation* is one equation over all columns. An equation counts as one rule, so "
        "*search ICE (constants)* and *search FiRe (constants)*, small searches with CART and "
        "GridEx "
        "only, show what searches reach in regression without equations. A method that fails on a "
        "table has the last rank there; means are over the tables on which a method produced "
        "rules. Tables have at most 2,000 rows, except in keel-imbalanced, whose tables are "
        "complete. Our methods are in bold. Ranks in parentheses include only tables at odd "
        "positions in the order of names, which were not used to choose any default.",
        "",
        "## Equal numbers of rules",
        "",
        "Each method is compared with scikit-learn's tree that has as many leaves as the method "
        "has rules on the same table. The table shows the mean gain of fidelity and, for each "
        "score, the numbers of tables on which the method is better and worse, the rank-biserial "
        "correlation *r* (1: better on all tables that differ, -1: worse on all of them), and "
        "Wilcoxon's *p*, corrected by Holm's procedure for the number of methods. Trees have 2 to "
        "16 leaves; "
        "shorter and longer rule lists have no counterpart.",
        "",
        *equal_size_section(table),
        "## Mean ranks on held-out rows",
        "",
        *ranks_section(compared),
        "## Stability, readability and time",
        "",
        "Means over all cells of a method; for stability, the mean absolute difference between the "
        "two splits of the same table and black box, where both were measured.",
        *stability_section(compared),
        "## Losses",
        "",
        *losses_section(compared),
        *variants_section(table),
        "## Measures beyond the scores",
        "",
        *measures_section(compared),
        "## Targets",
        "",
        *targets_section(table, best),
        "## Cells",
        "",
        *coverage_section(table),
        *failures_section(table),
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
            rows = rows[~rows["extractor"].map(is_sized_tree)]
            with tempfile.TemporaryDirectory() as work_folder:
                rows.to_csv(Path(work_folder) / "rows.csv", index=False)
                rule_lines = [
                    line
                    for p in row_files
                    for line in read_complete_lines(p.with_name("rules.jsonl"))
                ]
                rule_lines = [
                    line for line in rule_lines if not is_sized_tree(json.loads(line)["extractor"])
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
    parser.add_argument(
        "--runs", type=Path, default=CACHE, help="folder of the runs, as --folder of run.py"
    )
    options = parser.parse_args()
    write_readme(pd.read_csv(FOLDER / "results.csv", dtype={"error": str}))
    if options.pages is not None:
        write_pages(options.pages, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
