"""Compare FiRe, Q and ICE with each other and with other measures of rules.

    python benchmarks/arena/score_agreement.py [--seconds 300] [--only DATA ...]
    python benchmarks/arena/score_agreement.py --page-only

Measures about a dozen rule sets of each table, from a constant to trees of 24 leaves, by the scores
and by all measures of `skescore.scorers.SET_MEASURES`, on held-out rows. Results are stored in
`score_agreement.csv` after each table, so an interrupted run resumes. The page `score_agreement.md`
is written from these rows and, for comparisons of the scores only, from the rows of `results.csv`,
which `run.py` writes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, r2_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skescore.bench import suite_config
from skescore.black_boxes import make_black_box
from skescore.datasets import Dataset, load_dataset
from skescore.extractors import Oracle
from skescore.metrics import fire_score, ice_score, q_score
from skescore.registry import EXTRACTORS, make_extractor
from skescore.rules import Domain, Fallback, LinearOutput, Rule, RuleSet
from skescore.scorers import SET_MEASURES, evaluate_rules, knowledge, make_set_scorer

FOLDER = Path(__file__).parent
ROWS_FILE, PAGE_FILE, ARENA_FILE = (
    FOLDER / name for name in ("score_agreement.csv", "score_agreement.md", "results.csv")
)
#: Various tables that are fast to measure.
TABLES = {
    "keel-balanced": (
        "australian",
        "bands",
        "breast",
        "bupa",
        "german",
        "hayes-roth",
        "heart",
        "housevotes",
        "ionosphere",
        "iris",
        "mammographic",
        "monk-2",
        "pima",
        "saheart",
        "tae",
        "tic-tac-toe",
        "vehicle",
        "wdbc",
        "wine",
        "wisconsin",
    ),
    "regression": (
        "diabetes",
        "friedman1",
        "CASchools",
        "CPS1985",
        "ais",
        "Auto",
        "Boston",
        "cpus",
        "Salaries",
        "concrete",
        "tips",
    ),
}
LEAVES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
OTHER_EXTRACTORS = ("gridex", "cream", "iter", "trepan", "real", "gridrex")
KEYS = ["data", "task", "candidate"]
SCORE_PARTS = [
    "performance",
    "loss",
    "loss_q",
    "n_rules",
    "size_terms",
    "completeness_volume",
    "completeness_instances",
    "ice_error",
]


def list_single_rules(dataset: Dataset, X: Any, y: Any) -> Iterator[tuple[str, RuleSet]]:
    """Yield a constant and, in regression, one linear equation over all numeric columns."""
    names = [str(name) for name in X.columns]
    numbers = X.select_dtypes("number")
    settings: dict[str, Any] = {"task": dataset.task}
    if dataset.task == "classification":
        constant: Any = y.mode().iloc[0]
        settings["classes"] = sorted(set(y), key=str)
    else:
        constant = float(y.mean())
    if numbers.shape[1] == X.shape[1]:
        settings["domain"] = Domain.around(numbers.to_numpy(float))
    yield "constant", RuleSet([Rule([], constant)], names, fallback=Fallback(constant), **settings)
    if dataset.task == "regression" and not numbers.isna().any(axis=None):
        line = LinearRegression().fit(numbers, y)
        terms = [(names.index(str(n)), c) for n, c in zip(numbers, line.coef_, strict=True)]
        rule = Rule([], LinearOutput(float(line.intercept_), terms))
        yield "linear equation", RuleSet([rule], names, fallback=Fallback(constant), **settings)


def list_candidates(dataset: Dataset, box: Any, X: Any, y: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and the rule sets or extractors to compare on a table."""
    yield from list_single_rules(dataset, X, y)
    for leaves in LEAVES:
        yield f"tree {leaves}", make_extractor("cart", box, max_leaf_nodes=leaves, random_state=0)
    for name in OTHER_EXTRACTORS:
        if dataset.task in EXTRACTORS[name].tasks:
            extractor = make_extractor(name, box)
            if "random_state" in extractor.get_params(deep=False):
                extractor.set_params(random_state=0)
            yield name, extractor


def measure_candidates(dataset: Dataset, seconds: float = 20.0) -> Iterator[dict[str, Any]]:
    """Yield the measures of the candidates of a table on the held-out half of its rows."""
    stratify = dataset.y if dataset.task == "classification" else None
    X, X_test, y, y_test = train_test_split(
        dataset.X, dataset.y, test_size=0.5, random_state=0, stratify=stratify
    )
    model = make_black_box("random-forest", dataset.task, 0, dataset.categories)
    box = FrozenEstimator(model.fit(X, y))
    query = Oracle(box, like=X_test).query
    rule_texts: set[str] = set()
    for name, candidate in list_candidates(dataset, box, X, y):
        row: dict[str, Any] = {"data": dataset.name, "task": dataset.task, "candidate": name}
        start = time.process_time()
        try:
            if not isinstance(candidate, RuleSet):
                candidate.fit(X)
            evaluation = evaluate_rules(candidate, X_test, y_test, black_box=query)
            text = evaluation.ruleset.to_text()
            if (
                not len(evaluation.ruleset) or text in rule_texts
            ):  # the tree may not need more leaves
                continue
            rule_texts.add(text)
            parts = knowledge.score(evaluation)
            row |= {part: parts[part] for part in SCORE_PARTS if part in parts}
            row |= {
                "size_terms": evaluation.size("terms"),
                "ice_error": ice_error(evaluation, parts),
            }
            for measure in SET_MEASURES.values():
                row[measure.name] = np.nan
                is_unsupported = measure.needs == "extractor" and isinstance(candidate, RuleSet)
                is_slow = measure.needs == "extractor" and time.process_time() - start > seconds
                if not is_unsupported and not is_slow:
                    options = {"n_splits": 2} if measure.needs == "extractor" else {}
                    score = make_set_scorer(measure, **options).score(evaluation)
                    row[measure.name] = score if measure.greater_is_better else 0.0 - score
        except (ValueError, TypeError) as error:
            print(f"{dataset.name}, {name}: {error}", file=sys.stderr)
            continue
        yield row


def ice_error(evaluation: Any, parts: dict[str, float], n_samples: int = 30) -> float:
    """Return the standard error of ICE from bootstrap samples of the performance."""
    rng = np.random.default_rng(0)
    y, predictions = evaluation.y_true[evaluation.covered], evaluation.y_pred[evaluation.covered]
    scores = []
    for _ in range(n_samples if len(y) else 0):
        rows = rng.integers(0, len(y), len(y))
        if evaluation.ruleset.task == "classification":
            performance = f1_score(
                y[rows].astype(str), predictions[rows].astype(str), average="weighted"
            )
        else:
            performance = r2_score(y[rows].astype(float), predictions[rows].astype(float))
        scores.append(
            ice_score(
                max(min(performance, 1.0), 0.0), parts["n_rules"], parts["completeness_volume"]
            )
        )
    return float(np.std(scores)) if scores else np.nan


def measure_tables(seconds: float, only: list[str] | None) -> None:
    """Measure the missing tables one after the other."""
    start = time.process_time()
    results = pd.read_csv(ROWS_FILE) if ROWS_FILE.exists() else pd.DataFrame(columns=KEYS)
    for suite, names in TABLES.items():
        entries = {entry.label: entry for entry in suite_config(suite).data}
        for name in names:
            if name in set(results["data"]) or (only and name not in only):
                continue
            if time.process_time() - start > seconds:
                print("time limit reached; run the same command again to resume", file=sys.stderr)
                return
            dataset = load_dataset(entries[name].source, **entries[name].options)
            table_start = time.process_time()
            with warnings.catch_warnings(), threadpool_limits(limits=1):
                warnings.simplefilter("ignore")
                rows = [row | {"data": name} for row in measure_candidates(dataset)]
            table = pd.DataFrame(rows)[[*KEYS, *SCORE_PARTS, *SET_MEASURES]]
            results = table if not len(results) else pd.concat([results, table], ignore_index=True)
            results.to_csv(ROWS_FILE, index=False, float_format="%.6g")
            table_seconds = time.process_time() - table_start
            print(f"{name}: {len(rows)} rule sets, {table_seconds:.0f} s", file=sys.stderr)


# The page -----------------------------------------------------------------------------------------


def score_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute the scores of all rows from their parts; greater is better."""
    p, r, c = rows["performance"].clip(0, 1), rows["n_rules"], rows["completeness_volume"]
    values = {
        "ICE": ice_score(p, r, c),
        "FiRe": -fire_score(rows["loss"], r),
        "Q": -q_score(rows["loss_q"], r, c),
        "fidelity": rows["fidelity_rows"],
        "performance": rows["performance"],
    }
    return pd.DataFrame(values, index=rows.index)


def read_arena_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the completed cells of the arena with the parts of their scores."""
    rows = rows[rows["error"].isna() & rows[["ice", "fire", "q", "n_rules"]].notna().all(axis=1)]
    r, c = rows["n_rules"], rows["completeness_volume"]
    parts = {"loss": rows["fire"] / (r * r**0.05), "loss_q": rows["q"] / (r * (2 - c))}
    parts_table = rows.assign(**parts).rename(columns={"fidelity": "fidelity_rows"})
    return parts_table.reset_index(drop=True)


def tau(first: pd.Series, second: pd.Series) -> float:
    """Return Kendall's tau of two scores, or NaN if it is not defined."""
    is_defined = first.notna() & second.notna()
    if is_defined.sum() < 4 or first[is_defined].nunique() < 2 or second[is_defined].nunique() < 2:
        return np.nan
    return float(kendalltau(first[is_defined], second[is_defined]).statistic)


def mean_tau(groups: list[pd.DataFrame], first: str, second: str) -> float:
    """Return the mean tau of two columns over groups of rows."""
    values = [tau(group[first], group[second]) for group in groups]
    defined = [value for value in values if value == value]
    return float(np.mean(defined)) if defined else np.nan


def format_table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    alignments = ["---", *["--:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (head, alignments, *rows)] + [""]


def format_number(value: float, digits: int = 2) -> str:
    return "–" if value != value else f"{value:.{digits}f}"


def format_share(flags: Any) -> str:
    flags = np.asarray(list(flags), dtype=bool)
    return f"{flags.mean():.0%} ({flags.sum()} of {len(flags)})" if len(flags) else "–"


def split_groups(rows: pd.DataFrame, keys: list[str], min_rows: int = 6) -> list[pd.DataFrame]:
    """Return the groups of rows with equal keys that have enough rows."""
    return [group for _, group in rows.groupby(keys, sort=False) if len(group) >= min_rows]


def weights_section(groups: list[pd.DataFrame]) -> list[str]:
    """Show how other weights change the ranking and the winner."""
    defaults = {"ICE": {"phi": 1.0, "rho": 1.0}, "FiRe": {"psi": 1.0}}
    variants = [("ICE", "phi", w) for w in (0.5, 2.0, 5.0)]
    variants += [("ICE", "rho", w) for w in (0.1, 0.3, 2.0)]
    variants += [("FiRe", "psi", w) for w in (2.0, 3.0, 5.0, 10.0)]
    cells = []
    for score, weight, value in variants:
        taus, winners, sizes = [], [], []
        for group in groups:
            settings = defaults[score] | {weight: value}
            default_scores, scores = (
                score_group(score, group, w) for w in (defaults[score], settings)
            )
            taus.append(tau(default_scores, scores))
            winners.append(default_scores.idxmax() != scores.idxmax())
            sizes.append(group["n_rules"][scores.idxmax()])
        cells.append(
            [
                f"{score} {weight} = {value:g}",
                format_number(float(np.nanmean(taus))),
                format_share(winners),
                format_number(float(np.median(sizes)), 0),
            ]
        )
    head = ["weights", "mean τ with weights of 1", "another rule set is best", "rules of the best"]
    return format_table(head, cells)


def score_group(score: str, group: pd.DataFrame, weights: dict[str, float]) -> pd.Series:
    if score == "FiRe":
        return pd.Series(-fire_score(group["loss"], group["n_rules"], **weights), group.index)
    p = group["performance"].clip(0, 1)
    values = ice_score(p, group["n_rules"], group["completeness_volume"], **weights)
    return pd.Series(values, group.index)


def find_flat_groups(groups: list[pd.DataFrame]) -> dict[str, list[bool]]:
    """Return by gap in performance (5 or 10 %) which groups have it within 0.02 of the best ICE."""
    indistinct: dict[str, list[bool]] = {"5": [], "10": []}
    for group in groups:
        best = group["ICE"].idxmax()
        near = group[group["ICE"] >= group["ICE"][best] - 0.02]
        gain = near["performance"].max() - near["performance"].min()
        indistinct["5"].append(bool(gain >= 0.05))
        indistinct["10"].append(bool(gain >= 0.10))
    return indistinct


def write_page() -> None:
    """Write the page from the stored rows."""
    own_rows = pd.read_csv(ROWS_FILE)
    own_rows = own_rows.join(score_rows(own_rows).drop(columns="performance"))
    signs = {m.name: 1 if m.greater_is_better else -1 for m in SET_MEASURES.values()}
    for name, sign in signs.items():
        own_rows[name] *= sign
    groups = split_groups(own_rows, ["data"])
    lines = [
        "# Agreement of the scores with each other and with other measures",
        "",
        "This page is written by `python benchmarks/arena/score_agreement.py`; do not edit it by "
        "hand. [The guide](../../docs/guide/beyond_scores.md) defines the measures.",
        "",
        f"*Selected rule sets* are {len(own_rows)} rule sets for {own_rows['data'].nunique()} "
        f"tables ({own_rows.loc[own_rows['task'] == 'classification', 'data'].nunique()} of them "
        "for classification) that explain a random forest: a constant, trees of 2 to 24 leaves, "
        "GridEx, CREAM, ITER, Trepan, REAL and GridREx with their default settings, and for "
        "regression one linear equation. Half of the rows are held out. The measures are "
        "`skescore.scorers.SET_MEASURES`, with signs such that greater is better.",
        "",
    ]
    arena = None
    if ARENA_FILE.exists():
        arena_cells = read_arena_cells(pd.read_csv(ARENA_FILE))
        arena_cells = arena_cells.join(score_rows(arena_cells).drop(columns="performance"))
        arena = split_groups(arena_cells, ["suite", "data", "black_box", "seed"])
        lines += [
            f"The *arena* has {sum(map(len, arena))} cells of `results.csv`, in {len(arena)} "
            "groups of equal table, black box and split with at least six methods.",
            "",
        ]
    lines += summary_section(groups)
    lines += [
        "## Agreement of the scores",
        "",
        "Mean of Kendall's τ over tables: 1 is the same order of the rule sets, 0 is no relation, "
        "and −1 is the opposite order.",
        "",
    ]
    names = ["ICE", "FiRe", "Q", "fidelity"]
    table_rows = []
    for kind, group_list in (("selected", groups), ("arena", arena or [])):
        if group_list:
            for i, first in enumerate(names):
                for second in names[i + 1 :]:
                    table_rows.append(
                        [
                            f"{first} and {second}",
                            kind,
                            format_number(mean_tau(group_list, first, second)),
                        ]
                    )
    lines += format_table(["scores", "rule sets", "τ"], sorted(table_rows, key=lambda row: row[0]))
    lines += [
        "## Agreement with other measures",
        "",
        "Mean of τ for the selected rule sets. It is negative if the rule sets that a score "
        "prefers are worse by the measure.",
        "",
    ]
    table_rows = [
        [f"`{name}`", *(format_number(mean_tau(groups, score, name)) for score in names)]
        for name in SET_MEASURES
    ]
    lines += format_table(["measure", *names], table_rows)
    lines += ["## Blind spots", ""]
    lines += blind_spots_section(own_rows, groups, arena)
    lines += ["## Weights", ""]
    for kind, group_list in (("Selected rule sets", groups), ("Arena", arena or [])):
        if group_list:
            lines += [f"{kind}:", "", *weights_section(group_list)]
    skill_note = (
        "*c* is the completeness. *skill* is R² or, in classification, the share of the errors of "
        "a constant that the rules avoid."
    )
    lines += ["## Remedies", "", skill_note, "", *remedies_section(groups), ""]
    lines += ["## Single tables", "", *tables_section(groups)]
    PAGE_FILE.write_text("\n".join(lines), encoding="utf-8")


def summary_section(groups: list[pd.DataFrame]) -> list[str]:
    """Return the main results."""
    classification = [g for g in groups if g["task"].iloc[0] == "classification"]
    regression = [g for g in groups if g["task"].iloc[0] == "regression"]
    t = {
        (a, b): format_number(mean_tau(groups, a, b))
        for a, b in (
            ("FiRe", "Q"),
            ("ICE", "FiRe"),
            ("ICE", "fidelity"),
            ("FiRe", "fidelity"),
            ("FiRe", "feature_agreement"),
            ("ICE", "negative_overlap"),
            ("FiRe", "stability"),
            ("ICE", "fidelity_boundary"),
        )
    }
    constant = format_share(
        find_winner(g, "FiRe")["candidate"] == "constant" for g in classification
    )
    line = format_share(
        find_winner(g, "FiRe")["candidate"] == "linear equation" for g in regression
    )
    terms = np.median([find_winner(g, "FiRe")["size_terms"] for g in regression])
    is_flat = find_flat_groups(groups)
    return [
        "## Summary",
        "",
        f"- FiRe and Q order rule sets almost equally (τ {t['FiRe', 'Q']}); ICE orders them "
        f"differently (τ with FiRe {t['ICE', 'FiRe']}).",
        "- The scores do not prefer the rules that describe the black box best: the τ with "
        f"fidelity is {t['FiRe', 'fidelity']} for FiRe and {t['ICE', 'fidelity']} for ICE. With "
        f"fidelity at the boundary, it is {t['ICE', 'fidelity_boundary']} for ICE. The τ of FiRe "
        f"with the agreement of features is {t['FiRe', 'feature_agreement']}, because fewer rules "
        "use fewer features.",
        f"- A constant is best by FiRe(1) on {constant} of the tables for classification: a second "
        "rule improves FiRe only if it more than halves the errors.",
        f"- One linear equation, which counts as one rule, is best by FiRe(1) on {line} of the "
        f"tables for regression. The best rule sets by FiRe(1) have a median of {terms:.0f} terms.",
        f"- On {format_share(is_flat['5'])} of the tables, ICE(1, 1) hardly distinguishes rule "
        "sets whose performance differs by 0.05 or more: its factor for errors falls from 0.993 to "
        "0.982 as the performance falls from 1 to 0.8.",
        "- ICE prefers short lists with ELSE, whose rules contradict each other if they are read "
        f"one by one (τ {t['ICE', 'negative_overlap']} with few contradictions). FiRe prefers few "
        f"rules, which are more stable (τ {t['FiRe', 'stability']}).",
        "- Existing weights and the size in terms avoid most of these effects (see Remedies), so "
        "no new score is proposed.",
        "",
    ]


def find_winner(group: pd.DataFrame, score: str) -> pd.Series:
    """Return the row with the best score."""
    return group.loc[group[score].idxmax()]


def blind_spots_section(
    own_rows: pd.DataFrame, groups: list[pd.DataFrame], arena: list[pd.DataFrame] | None
) -> list[str]:
    """Count known weaknesses that the scores do not show."""
    regression = [g for g in groups if g["task"].iloc[0] == "regression"]
    classification = [g for g in groups if g["task"].iloc[0] == "classification"]
    constant = {
        s: format_share(find_winner(g, s)["candidate"] == "constant" for g in classification)
        for s in ("FiRe", "Q", "ICE")
    }
    line = {
        s: format_share(find_winner(g, s)["candidate"] == "linear equation" for g in regression)
        for s in ("FiRe", "Q", "ICE")
    }
    lines = format_table(
        ["share of tables on which", "FiRe(1)", "Q", "ICE(1, 1)"],
        [
            ["a constant is best (classification)", *constant.values()],
            ["one linear equation is best (regression)", *line.values()],
        ],
    )
    is_flat = find_flat_groups(groups)
    is_noisy = [
        (g["ICE"] >= g["ICE"].max() - g["ice_error"][g["ICE"].idxmax()]).sum() >= 3 for g in groups
    ]
    lines += [
        "- ICE(1, 1) is flat near its maximum: rule sets within 0.02 of the best differ by 0.05 or "
        f"more in weighted F1 or R² on {format_share(is_flat['5'])} of the tables, and by 0.10 or "
        f"more on {format_share(is_flat['10'])}.",
        "- Three or more rule sets are within one standard error of the best ICE(1, 1), by a "
        f"bootstrap of the held-out rows, on {format_share(is_noisy)} of the tables.",
    ]
    if arena:
        is_flat = find_flat_groups(arena)
        is_single_rule = [
            find_winner(g, "FiRe")["n_rules"] == 1 for g in arena if (g["n_rules"] == 1).any()
        ]
        lines += [
            f"- In the arena, these differences occur in {format_share(is_flat['5'])} and "
            f"{format_share(is_flat['10'])} of the groups"
            + (
                ". In groups with a method that returns a single rule, one rule is best by FiRe(1) "
                f"in {format_share(is_single_rule)}."
                if is_single_rule
                else "."
            ),
        ]
    winners = [find_winner(g, "ICE") for g in groups]
    best = pd.DataFrame(winners)
    lines += [
        "- Medians of the best rule sets by ICE(1, 1): negative overlap "
        f"{format_number(-best['negative_overlap'].median())}, stability "
        f"{format_number(best['stability'].median())}, calibration error "
        f"{format_number(-best['calibration_error'].median())}, fidelity on the rows "
        f"{format_number(best['fidelity_rows'].median())}, uniform in the domain "
        f"{format_number(best['fidelity_uniform'].median())}, at the boundary "
        f"{format_number(best['fidelity_boundary'].median())}, agreement of features "
        f"{format_number(best['feature_agreement'].median())}.",
        "- For these rule sets, the fidelity for the worst class, or quarter of the target values, "
        "is below the mean fidelity by a median of "
        f"{format_number(-best['fidelity_gap'].median())}, and by 0.25 or more on "
        f"{format_share(-best['fidelity_gap'].dropna() >= 0.25)} of the tables.",
        "",
    ]
    return lines


def skill(group: pd.DataFrame) -> pd.Series:
    """Return completeness times skill (gain over a constant, or R²), halved for every 20 terms."""
    p = group["performance"]
    if group["task"].iloc[0] == "classification":
        p = 1 - group["loss"] / group.loc[group["candidate"] == "constant", "loss"].iloc[0]
    return group["completeness_volume"] * p.clip(lower=0) * 2 ** (-group["size_terms"] / 20)


def remedies_section(groups: list[pd.DataFrame]) -> list[str]:
    """Evaluate existing settings and one new formula as remedies."""

    def share_of_wins(score: Any, candidate: str) -> str:
        return format_share(g.loc[score(g).idxmax(), "candidate"] == candidate for g in group_list)

    variants = {
        "ICE(1, 1)": lambda g: score_group("ICE", g, {"phi": 1.0, "rho": 1.0}),
        "ICE(5, 0.1)": lambda g: score_group("ICE", g, {"phi": 5.0, "rho": 0.1}),
        'ICE(5, 0.1), `size="terms"`': lambda g: score_group(
            "ICE", g.assign(n_rules=g["size_terms"]), {"phi": 5.0, "rho": 0.1}
        ),
        "FiRe(1)": lambda g: score_group("FiRe", g, {"psi": 1.0}),
        "FiRe(5)": lambda g: score_group("FiRe", g, {"psi": 5.0}),
        'FiRe(5), `size="terms"`': lambda g: score_group(
            "FiRe", g.assign(n_rules=g["size_terms"].clip(lower=1)), {"psi": 5.0}
        ),
        "c · skill · 2^(−terms/20)": skill,
    }
    table_rows = []
    for name, score in variants.items():
        group_list = groups
        cells = [name, share_of_wins(score, "constant")]
        flat_groups = (
            None if "FiRe" in name else find_flat_groups([g.assign(ICE=score(g)) for g in groups])
        )
        group_list = [g for g in groups if g["task"].iloc[0] == "regression"]
        cells += [
            share_of_wins(score, "linear equation"),
            format_share(flat_groups["5"]) if flat_groups else "–",
        ]
        winners = [g.loc[score(g).idxmax()] for g in groups]
        cells += [
            format_number(float(np.median([row["performance"] for row in winners]))),
            format_number(float(np.median([row["n_rules"] for row in winners])), 0),
            format_number(float(np.median([row["size_terms"] for row in winners])), 0),
        ]
        table_rows.append(cells)
    head = [
        "score",
        "constant is best",
        "linear equation is best",
        "flat near the maximum (0.05)",
        "performance of the best",
        "rules",
        "terms",
    ]
    return format_table(head, table_rows)


def tables_section(groups: list[pd.DataFrame]) -> list[str]:
    table_rows = []
    for group in groups:
        cells = [group["data"].iloc[0]]
        for score in ("ICE", "FiRe", "Q", "fidelity"):
            best = find_winner(group, score)
            cells.append(f"{best['candidate']} ({format_number(best['performance'])})")
        table_rows.append(cells)
    return format_table(
        ["table", "best by ICE(1, 1) (performance)", "FiRe(1)", "Q", "fidelity"], table_rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", nargs="+", metavar="DATA")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    if not options.page_only:
        measure_tables(options.seconds, options.only)
    write_page()


if __name__ == "__main__":
    main()
