"""The text that ``skescore bench`` shows."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd

from skescore.bench._running import BenchResult
from skescore.bench._tables import RANKED, Ranking, failures, rank_extractors, summarise
from skescore.cli import _output as output

#: How scores are called in tables.
NAMES = {
    "ice": "ICE", "fire": "FiRe", "q": "Q", "performance": "performance", "loss": "loss",
    "n_rules": "rules", "completeness_volume": "c volume", "completeness_instances": "c rows",
    "fidelity": "fidelity", "seconds": "seconds", "black_box_rows": "questions",
}  # fmt: skip
#: The columns of the tables of means, and their digits.
_COLUMNS = (
    ("ice", 3), ("fire", 3), ("q", 3), ("n_rules", 1), ("completeness_volume", 3),
    ("completeness_instances", 3), ("fidelity", 3), ("seconds", 3),
)  # fmt: skip
#: So many of them, the scores and the number of rules, come first where not all fit.
_SCORES = 4
_ALSO = ("ice", "fire", "q")
_SHOWN_ERRORS = 10


def bench_text(
    options: argparse.Namespace, result: BenchResult, rankings: Sequence[Ranking]
) -> str:
    """Write the tables of means, the ranks and what failed.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    result : BenchResult
        The finished benchmark.
    rankings : sequence of Ranking
        By the score that was asked for.

    Returns
    -------
    str
        Text or Markdown.
    """
    printer = output.Printer(options.format == "markdown")
    printer.line(_about(result))
    summary = summarise(result.rows)
    for (data, box), part in summary.groupby(["data", "black_box"], sort=False):
        _means(printer, options, result, str(data), str(box), part)
    printer.line(
        f"(Means over {_runs(result)}, and ± their deviation. ICE, c (completeness: share of the "
        "feature space's volume and of the held-out rows that rules cover) and fidelity (agreement "
        "with the black box): greater is better. FiRe and Q: less is better; their losses are in "
        "the units of the target where it is a number. All weights are 1.)"
    )
    if result.plan.config.folds == 0:
        printer.line(
            "(Rules were scored on the rows that they come from: on new rows they are worse.)"
        )
    for ranking in rankings:
        _ranks(printer, options, result, ranking)
    _failures(printer, result)
    return printer.text()


def ranking_record(ranking: Ranking) -> dict[str, Any]:
    """Give a ranking as JSON holds it.

    Parameters
    ----------
    ranking : Ranking
        The ranking.

    Returns
    -------
    dict
        Ranks, tests and the verdict.
    """
    comparison = ranking.comparison
    return {
        "task": ranking.task,
        "score": ranking.score,
        "score_name": NAMES[ranking.score],
        "extractors": ranking.table.to_dict(orient="records"),
        "left_out": list(ranking.left_out),
        "ranks": comparison.ranks.to_dict(orient="index"),
        "friedman": {"statistic": comparison.statistic, "p_value": comparison.p_value},
        "nemenyi": {
            "critical_difference": comparison.critical_difference,
            "pairs": comparison.pairs.to_dict(orient="records"),
        },
        "holm_against_best": comparison.against_best.to_dict(orient="records"),
        "groups": comparison.groups,
        "alpha": comparison.alpha,
        "verdict": comparison.verdict,
        "caveat": comparison.caveat,
    }


def _about(result: BenchResult) -> str:
    config, run = result.plan.config, result.run
    parts = [
        output.plural(len(config.data), "data set"),
        "1 black box" if len(config.black_boxes) == 1 else f"{len(config.black_boxes)} black boxes",
        output.plural(len(config.extractors), "extractor"),
    ]
    failed = f", {run['rows_failed']} failed" if run["rows_failed"] else ""
    return f"{config.name}: {' × '.join(parts)}, {_runs(result)}: {len(result.rows)} rows{failed}"


def _runs(result: BenchResult) -> str:
    config = result.plan.config
    seeds = output.plural(len(config.seeds), "seed")
    if config.folds == 0:
        return f"{seeds}, in sample"
    if config.folds == 1:
        return f"{seeds} × 1 split ({config.test_size:.0%} of the rows held out)"
    return f"{seeds} × {config.folds} folds"


def _means(
    printer: output.Printer,
    options: argparse.Namespace,
    result: BenchResult,
    data: str,
    box: str,
    part: pd.DataFrame,
) -> None:
    dataset = result.plan.datasets[data]
    measure = "weighted F1" if dataset.task == "classification" else "R²"
    rows, columns = len(dataset.X), output.plural(dataset.X.shape[1], "feature")
    quality = part.loc[part["black_box_quality_mean"].notna(), "black_box_quality_mean"]
    held = "held-out " if result.plan.config.folds else ""
    # From a file: what is held out here may be what it was trained on.
    seen = ", which it may have seen" if box in result.plan.models else ""
    shown = (
        f"{measure} {output.number(quality.iloc[0])} on {held}rows{seen}" if len(quality) else "-"
    )
    printer.heading(f"{data} ({rows} rows, {columns}); {box}: {shown}")
    sign = -1 if RANKED[options.rank_by] else 1
    order = part.assign(
        _without=(part["failed"] + part["undefined"]) / part["runs"],
        _score=sign * part[f"{options.rank_by}_mean"],
    ).sort_values(["_without", "_score"], kind="stable", na_position="last")
    failed = bool(part["failed"].any())
    undefined = bool(part["undefined"].any())
    more = ["failed"] * failed + ["undefined"] * undefined
    head = ["extractor", *[NAMES[name] for name, _ in _COLUMNS], *more]
    table = [
        [
            row["extractor"],
            *[
                _spread(row[f"{name}_mean"], row[f"{name}_std"], digits)
                for name, digits in _COLUMNS
            ],
            *[f"{row[name]} of {row['runs']}" for name in more],
        ]
        for row in order.to_dict(orient="records")
    ]
    if _fits(printer, [head, *table]):
        printer.table(head, table, left=("extractor",))
        return
    first = 1 + _SCORES
    for part_of in (slice(1, first), slice(first, None)):
        printer.table(
            [head[0], *head[part_of]],
            [[row[0], *row[part_of]] for row in table],
            left=("extractor",),
        )


def _fits(printer: output.Printer, grid: Sequence[Sequence[str]]) -> bool:
    """Whether a table is not too wide for the terminal, if there is one."""
    width = printer.width
    if width is None or printer.markdown:
        return True
    widths = [max(map(len, cells)) for cells in zip(*grid, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1) <= width


def _spread(mean: float, std: float, digits: int) -> str:
    """A mean and its deviation, which has as many decimals."""
    if math.isnan(mean):
        return "-"
    if digits == 1:
        return f"{mean:.1f} ± {std:.1f}"
    text = output.number(mean, digits)
    if "e" in text:
        return f"{text} ± {std:.{digits}g}"
    return f"{text} ± {std:.{len(text.partition('.')[2])}f}"


def _ranks(
    printer: output.Printer, options: argparse.Namespace, result: BenchResult, ranking: Ranking
) -> None:
    n_data = len(ranking.comparison.ranks)
    name = NAMES[options.rank_by]
    data = output.plural(n_data, "data set")
    printer.heading(f"{ranking.task}: ranks by {name} over {data}")
    also = [score for score in _ALSO if score != options.rank_by]
    others = {
        score: next(
            other for other in rank_extractors(result.rows, score) if other.task == ranking.task
        ).comparison.average_ranks
        for score in also
    }
    holm = ranking.comparison.against_best.set_index("extractor")["p_value_holm"]
    tested = ranking.comparison.significant  # without a difference there is none to look for
    head = ["extractor", "average rank", "wins", *[f"by {NAMES[score]}" for score in also]]
    head += ["against the best, p"] if tested else []
    rows = [
        [
            row["extractor"],
            f"{row['rank']:.2f}",
            str(row["wins"]),
            *[f"{others[score][row['extractor']]:.2f}" for score in also],
            *([output.number(holm.get(row["extractor"]), 2)] if tested else []),
        ]
        for row in ranking.table.to_dict(orient="records")
    ]
    printer.table(head, rows, left=("extractor",))
    printer.line(ranking.comparison.verdict)
    if ranking.comparison.caveat:
        printer.line(ranking.comparison.caveat)
    if ranking.left_out:
        names = ", ".join(ranking.left_out)
        printer.line(f"(Without {names}, not measured on all of these data sets.)")
    adjusted = " p: two-sided, adjusted by Holm." if tested else ""
    printer.line(
        "(Rank 1 is best; means over black boxes, seeds and folds are ranked. Wins: data sets "
        f"where it is best, or equal to the best.{adjusted})"
    )


def _failures(printer: output.Printer, result: BenchResult) -> None:
    table = failures(result.rows)
    if not len(table):
        return
    printer.heading(f"{result.run['rows_failed']} of {len(result.rows)} rows failed")
    shown = table.head(_SHOWN_ERRORS)
    rows = [
        [
            row["data"], row["black_box"], row["extractor"], str(row["count"]),
            textwrap.shorten(row["error"], 160, placeholder=" ..."),
        ]
        for row in shown.to_dict(orient="records")
    ]  # fmt: skip
    printer.table(
        ["data", "black box", "extractor", "rows", "error"],
        rows,
        left=("data", "black box", "extractor", "error"),
    )
    if len(table) > len(shown):
        printer.line(f"({len(table) - len(shown)} further errors; --format json lists all.)")
