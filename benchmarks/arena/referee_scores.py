"""Checks of the page on scores, score_agreement.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from referee_cells import (
    NAN,
    Row,
    fire_of,
    group_by,
    ice_of,
    is_tied,
    kendall,
    mean,
    q_of,
    values_of,
)
from referee_pages import Page

#: Measures of rule sets, and whether greater is better.
SET_MEASURES = dict.fromkeys(
    (
        "conditions_per_rule",
        "terms_per_rule",
        "longest_rule",
        "uncovered",
        "overlap",
        "negative_overlap",
        "redundant_rules",
        "redundant_literals",
        "calibration_error",
    ),
    False,
)
SET_MEASURES |= {
    "calibrated_rules": True,
    "stability": True,
    "prediction_stability": True,
    "fidelity_rows": True,
    "fidelity_gap": False,
}
SET_MEASURES |= dict.fromkeys(
    (
        "fidelity_jittered",
        "fidelity_interpolated",
        "fidelity_uniform",
        "fidelity_boundary",
        "feature_agreement",
    ),
    True,
)
Scorer = Callable[[Row], float]
Groups = Sequence[list[Row]]


def ice_scorer(phi: float = 1, rho: float = 1, size: str = "n_rules") -> Scorer:
    """Return ICE as a function of a row."""
    return lambda row: ice_of(
        min(max(row["performance"], 0), 1), row[size], row["completeness_volume"], phi, rho
    )


def fire_scorer(psi: float = 1, size: str = "n_rules") -> Scorer:
    """Return minus FiRe as a function of a row."""
    return lambda row: -fire_of(row["loss"], max(row[size], 1), psi)


def q_scorer(row: Row) -> float:
    """Return minus Q of a row."""
    return -q_of(row["loss_q"], row["n_rules"], row["completeness_volume"])


SCORERS: dict[str, Scorer] = {
    "ICE": ice_scorer(),
    "FiRe": fire_scorer(),
    "Q": q_scorer,
    "fidelity": lambda row: float(row["fidelity_rows"]),
}


def best_of(group: list[Row], score: Scorer) -> Row:
    """Return the first row with the best score."""
    scores = [NAN if math.isnan(value := score(row)) else value for row in group]
    best = max(value for value in scores if not math.isnan(value))
    return next(row for row, value in zip(group, scores, strict=True) if is_tied(value, best))


def mean_kendall(groups: Groups, first: Scorer, second: Scorer) -> float:
    """Return the mean tau of two scores over groups with at least four rows."""
    taus = []
    for group in groups:
        pairs = [(a, b) for row in group if not math.isnan((a := first(row)) + (b := second(row)))]
        if len(pairs) >= 4:
            taus.append(
                kendall(*zip(*((round_value(a), round_value(b)) for a, b in pairs), strict=True))
            )
    return mean(taus)


def round_value(value: float) -> float:
    """Return a value without the last digits, which rounding errors decide."""
    return float(f"{value:.11g}")


def measure(name: str) -> Scorer:
    """Return a measure as a function of a row; greater is better."""
    return lambda row: row[name] if SET_MEASURES[name] else -row[name]


def share_parts(flags: Sequence[bool]) -> tuple[Any, ...]:
    """Return a share as the page prints it."""
    return (100 * sum(flags) / len(flags), "% (", sum(flags), " of ", len(flags), ")")


def groups_of_task(groups: Groups, task: str) -> Groups:
    """Return the groups of a task."""
    return [group for group in groups if group[0]["task"] == task]


def share_of_wins(groups: Groups, score: Scorer, candidate: str) -> tuple[Any, ...]:
    """Return the share of groups in which a candidate has the best score."""
    return share_parts([best_of(group, score)["candidate"] == candidate for group in groups])


def find_flat_groups(groups: Groups, score: Scorer, gap: float) -> list[bool]:
    """Return by group whether rule sets within 0.02 of the best differ by `gap` in performance."""
    flags = []
    for group in groups:
        best = score(best_of(group, score))
        near = [row["performance"] for row in group if score(row) >= best - 0.02 - 1e-12]
        flags.append(max(near) - min(near) >= gap)
    return flags


def check_scores(page: Page, selected_rows: list[Row], arena: list[Row]) -> None:
    """Check all figures of the page on scores."""
    groups = [g for g in group_by(selected_rows, "data").values() if len(g) >= 6]
    for row in arena:
        row["fidelity_rows"], row["candidate"] = row["fidelity"], row["method"]
        n_rules = row["n_rules"] or NAN
        row["loss"] = row["fire"] / n_rules**1.05
        row["loss_q"] = row["q"] / (n_rules * (2 - row["completeness_volume"]))
    usable = [
        r
        for r in arena
        if not r["error"] and not math.isnan(r["ice"] + r["fire"] + r["q"] + r["n_rules"])
    ]
    cells = [
        g for g in group_by(usable, "suite", "data", "black_box", "seed").values() if len(g) >= 6
    ]
    n_classes = len({row["data"] for row in selected_rows if row["task"] == "classification"})
    page.claim(
        "*Selected rule sets* are ",
        len(selected_rows),
        " rule sets for ",
        len(groups),
        " tables (",
        n_classes,
        " of them for classification)",
    )
    page.claim(
        "The *arena* has ",
        sum(map(len, cells)),
        " cells of `results.csv`, in ",
        len(cells),
        " groups of",
    )
    page.name(
        "trees of 2 to 24 leaves",
        "FiRe(1)",
        "ICE(1, 1)",
        ": 1 is the same order of the rule sets, 0 is no relation, and −1 is the opposite order",
    )
    check_agreement(page, groups, cells)
    check_summary(page, groups)
    check_blind_spots(page, groups, cells)
    for kind, part in (("Selected rule sets", groups), ("Arena", cells)):
        check_weights(page, kind, part)
    check_remedies(page, groups)
    expected = []
    for group in groups:
        best = [best_of(group, score) for score in SCORERS.values()]
        expected.append(
            (
                group[0]["data"],
                *((f"{row['candidate']} (", row["performance"], ")") for row in best),
            )
        )
    page.table(
        ["table", "best by ICE(1, 1) (performance)", "FiRe(1)", "Q", "fidelity"],
        expected,
        "Single tables",
    )


def check_agreement(page: Page, groups: Groups, cells: Groups) -> None:
    """Check the correlations of scores with each other and with measures."""
    expected: list[tuple[Any, ...]] = []
    for first, second in itertools.combinations(SCORERS, 2):
        for kind, part in (("selected", groups), ("arena", cells)):
            expected.append(
                (f"{first} and {second}", kind, mean_kendall(part, SCORERS[first], SCORERS[second]))
            )
    page.table(["scores", "rule sets", "τ"], expected, "Agreement of the scores", 2)
    expected = [
        (f"`{name}`", *(mean_kendall(groups, score, measure(name)) for score in SCORERS.values()))
        for name in SET_MEASURES
    ]
    page.table(["measure", *SCORERS], expected, "Agreement with other measures")


def check_summary(page: Page, groups: Groups) -> None:
    """Check the summary."""
    ice, fire, _, fidelity = SCORERS.values()

    def tau(first: Scorer, second: Scorer) -> float:
        return mean_kendall(groups, first, second)

    heading = "Summary"
    classes, numbers = (
        groups_of_task(groups, "classification"),
        groups_of_task(groups, "regression"),
    )
    page.claim(
        "almost equally (τ ",
        tau(fire, q_scorer),
        "); ICE orders them differently (τ with FiRe ",
        tau(ice, fire),
        ")",
    )
    page.claim(
        "the τ with fidelity is ",
        tau(fire, fidelity),
        " for FiRe and ",
        tau(ice, fidelity),
        " for ICE. With fidelity at the boundary, it is ",
        tau(ice, measure("fidelity_boundary")),
        " for ICE. The τ of FiRe with the agreement of features is ",
        tau(fire, measure("feature_agreement")),
        ", because",
        heading=heading,
    )
    page.claim(
        "A constant is best by FiRe(1) on ",
        *share_of_wins(classes, fire, "constant"),
        " of the tables for classification",
        heading=heading,
    )
    page.claim(
        "is best by FiRe(1) on ",
        *share_of_wins(numbers, fire, "linear equation"),
        " of the tables for regression",
        heading=heading,
    )
    terms = float(np.median([best_of(group, fire)["size_terms"] for group in numbers]))
    page.claim("The best rule sets by FiRe(1) have a median of ", terms, " terms.")
    page.claim(
        "- On ",
        *share_parts(find_flat_groups(groups, ice, 0.05)),
        " of the tables, ICE(1, 1) hardly distinguishes rule sets whose performance differs by ",
        0.05,
        " or more",
    )
    factors = [1 / (1 + math.exp(5 * (loss - 1))) for loss in (0.0, 0.2)]
    page.claim(
        "its factor for errors falls from ",
        factors[0],
        " to ",
        factors[1],
        " as the performance falls from ",
        1,
        " to ",
        0.8,
    )
    page.claim(
        "(τ ",
        tau(ice, measure("negative_overlap")),
        " with few contradictions)",
        heading=heading,
    )
    page.claim("more stable (τ ", tau(fire, measure("stability")), ")", heading=heading)


def check_blind_spots(page: Page, groups: Groups, cells: Groups) -> None:
    """Check the counts of known weaknesses."""
    heading = "Blind spots"
    ice, fire = SCORERS["ICE"], SCORERS["FiRe"]
    scores = (fire, q_scorer, ice)
    classes, numbers = (
        groups_of_task(groups, "classification"),
        groups_of_task(groups, "regression"),
    )
    page.table(
        ["share of tables on which", "FiRe(1)", "Q", "ICE(1, 1)"],
        [
            (
                "a constant is best (classification)",
                *(share_of_wins(classes, s, "constant") for s in scores),
            ),
            (
                "one linear equation is best (regression)",
                *(share_of_wins(numbers, s, "linear equation") for s in scores),
            ),
        ],
        heading,
    )
    page.claim(
        "within ",
        0.02,
        " of the best differ by ",
        0.05,
        " or more in weighted F1 or R² on ",
        *share_parts(find_flat_groups(groups, ice, 0.05)),
        " of the tables, and by ",
        0.10,
        " or more on ",
        *share_parts(find_flat_groups(groups, ice, 0.10)),
        ".",
        heading=heading,
    )
    best = [best_of(group, ice) for group in groups]
    is_noisy = [
        sum(ice(row) >= ice(b) - b["ice_error"] for row in g) >= 3
        for g, b in zip(groups, best, strict=True)
    ]
    page.claim(
        "bootstrap of the held-out rows, on ",
        *share_parts(is_noisy),
        " of the tables",
        heading=heading,
    )
    groups_with_single_rules = [g for g in cells if any(row["n_rules"] == 1 for row in g)]
    page.claim(
        "In the arena, these differences occur in ",
        *share_parts(find_flat_groups(cells, ice, 0.05)),
        " and ",
        *share_parts(find_flat_groups(cells, ice, 0.10)),
        " of the groups. In groups with a method that returns a single rule, one rule is best by "
        "FiRe(1) in ",
        *share_parts([best_of(g, fire)["n_rules"] == 1 for g in groups_with_single_rules]),
        ".",
    )

    def median(name: str) -> float:
        return float(np.median(values_of(best, name)))

    page.claim(
        "by ICE(1, 1): negative overlap ",
        median("negative_overlap"),
        ", stability ",
        median("stability"),
        ", calibration error ",
        median("calibration_error"),
        ", fidelity on the rows ",
        median("fidelity_rows"),
        ", uniform in the domain ",
        median("fidelity_uniform"),
        ", at the boundary ",
        median("fidelity_boundary"),
        ", agreement of features ",
        median("feature_agreement"),
        ".",
    )
    gaps = values_of(best, "fidelity_gap")
    page.claim(
        "is below the mean fidelity by a median of ",
        median("fidelity_gap"),
        ", and by ",
        0.25,
        " or more on ",
        *share_parts([gap >= 0.25 for gap in gaps]),
        " of the tables",
    )


def check_weights(page: Page, kind: str, groups: Groups) -> None:
    """Check how other weights change the order and the winner."""
    settings = [(f"ICE phi = {w:g}", ice_scorer(), ice_scorer(phi=w)) for w in (0.5, 2, 5)]
    settings += [(f"ICE rho = {w:g}", ice_scorer(), ice_scorer(rho=w)) for w in (0.1, 0.3, 2)]
    settings += [(f"FiRe psi = {w:g}", fire_scorer(), fire_scorer(w)) for w in (2, 3, 5, 10)]
    expected = []
    for name, default, variant in settings:
        pairs = [(best_of(group, default), best_of(group, variant)) for group in groups]
        median = float(np.median([new["n_rules"] for _, new in pairs]))
        expected.append(
            (
                name,
                mean_kendall(groups, default, variant),
                share_parts([a is not b for a, b in pairs]),
                median,
            )
        )
    head = ["weights", "mean τ with weights of 1", "another rule set is best", "rules of the best"]
    start = page.text.find(f"{kind}:\n", page.section("Weights")[0])
    part = Page.__new__(Page)
    part.__dict__.update(
        page.__dict__, text=page.text[start:], is_checked=page.is_checked[start:], n_figures=0
    )
    part.table(head, expected)
    page.n_figures += part.n_figures


def check_remedies(page: Page, groups: Groups) -> None:
    """Check the remedies."""

    def scorers(group: list[Row]) -> dict[str, Scorer]:
        constant = [row["loss"] for row in group if row["candidate"] == "constant"]

        def skill(row: Row) -> float:
            is_classes = row["task"] == "classification"
            gain = 1 - row["loss"] / constant[0] if is_classes else row["performance"]
            return float(row["completeness_volume"] * max(gain, 0) * 2 ** (-row["size_terms"] / 20))

        return {
            "ICE(1, 1)": ice_scorer(),
            "ICE(5, 0.1)": ice_scorer(5, 0.1),
            'ICE(5, 0.1), `size="terms"`': ice_scorer(5, 0.1, "size_terms"),
            "FiRe(1)": fire_scorer(),
            "FiRe(5)": fire_scorer(5),
            'FiRe(5), `size="terms"`': fire_scorer(5, "size_terms"),
            "c · skill · 2^(−terms/20)": skill,
        }

    expected = []
    for name in scorers(groups[0]):
        pairs = [(group, scorers(group)[name]) for group in groups]
        best = [best_of(group, score) for group, score in pairs]
        is_flat = [find_flat_groups([group], score, 0.05)[0] for group, score in pairs]
        medians = [
            float(np.median([row[c] for row in best]))
            for c in ("performance", "n_rules", "size_terms")
        ]
        lines = [
            row["candidate"] == "linear equation" for row in best if row["task"] == "regression"
        ]
        expected.append(
            (
                name,
                share_parts([row["candidate"] == "constant" for row in best]),
                share_parts(lines),
                NAN if "FiRe" in name else share_parts(is_flat),
                *medians,
            )
        )
    head = [
        "score",
        "constant is best",
        "linear equation is best",
        "flat near the maximum (0.05)",
        "performance of the best",
        "rules",
        "terms",
    ]
    page.table(head, expected, "Remedies")
