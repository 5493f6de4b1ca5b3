"""The text that ``skescore tune`` shows."""

from __future__ import annotations

import argparse
from typing import Any

from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.datasets._loading import Dataset
from skescore.rules._text import format_number
from skescore.scorers._makers import get_rule_scorer
from skescore.tuning import ExtractorSearchCV

LABELS = {"ice": "ICE", "fire": "FiRe", "q": "Q", "pareto": "ICE"}
_SHOWN = 10
_SHOWN_CLASSES = 6


def sign(options: argparse.Namespace) -> int:
    """1 where the score is maximised, -1 where its negative is."""
    return -1 if arguments.scorer_from(options).name.startswith("neg_") else 1


def label(options: argparse.Namespace) -> str:
    """What the score is called."""
    return LABELS.get(options.scoring, options.scoring)


def scoring_name(options: argparse.Namespace) -> str | list[str]:
    """What is maximised, or minimised together, as in Python."""
    if options.scoring == "pareto":
        return list(arguments.TRADE_OFF)
    return arguments.scorer_from(options).name


def tune_text(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, result: dict[str, Any]
) -> str:
    """Write the data, the black box, the leaderboard and the best rules.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    dataset : Dataset
        The data.
    search : ExtractorSearchCV
        The finished search.
    result : dict
        What ``run.json`` holds.

    Returns
    -------
    str
        Text or Markdown.
    """
    printer = output.Printer(options.format == "markdown")
    printer.line(_describe(dataset))
    quality = ", ".join(
        f"{output.MEASURE_NAMES.get(name, name)} {output.number(value)}"
        for name, value in search.black_box_quality_.items()
    )
    how = f"held-out rows, {options.cv} folds"
    if not result["black_box"]["trained_here"]:
        how = "on these rows, which it may have been trained on"
    printer.line(f"black box {options.black_box}: {quality} ({how})")
    _leaderboard(printer, options, dataset, search)
    best, name = result["best"], label(options)
    _trade_off(printer, dataset, search)
    knee = ", the knee of the trade-off" if options.scoring == "pareto" else ""
    printer.heading(
        f"best: {best['extractor']} with {name} "
        f"{output.number(sign(options) * best['score'], 4)}{knee}; its "
        f"{output.plural(best['n_rules'], 'rule')}, extracted from all rows"
    )
    printer.verbatim(str(search.rules_))
    measure = "accuracy" if dataset.task == "classification" else "R²"
    printer.line(
        f"on these rows: fidelity ({measure} against the black box) "
        f"{output.number(best['fidelity'])}, completeness "
        f"{output.number(best['completeness_volume'])} by volume, "
        f"{output.number(best['completeness_instances'])} by rows"
    )
    return printer.text()


def _without_noise(spread: float, score: float) -> float:
    """A spread that is no more than rounding is none."""
    return 0.0 if spread < 1e-9 * max(1.0, abs(score)) else spread


def _leaderboard(
    printer: output.Printer, options: argparse.Namespace, dataset: Dataset, search: Any
) -> None:
    board, name = search.leaderboard_, label(options)
    done = board[board["state"] == "complete"]
    # Candidates that came out just like a better-placed one tell a reader nothing more.
    outcome = ["extractor", "score", "score_std", "n_rules", "loss", "completeness_volume"]
    different = done[~done.duplicated(subset=outcome)]
    failed = f", {len(board) - len(done)} without a score" if len(done) < len(board) else ""
    first = f"the best {_SHOWN} of " if len(different) > _SHOWN else ""
    printer.heading(
        f"leaderboard: {output.plural(len(board), 'trial')}{failed}, "
        f"{first}{output.plural(len(different), 'different outcome')}, "
        f"{search.search_seconds_:.1f} s"
    )
    performance = "weighted F1" if dataset.task == "classification" else "R²"
    columns = [
        "", "extractor", name, "±", performance, "rules", "c volume", "c rows",
        *options.measures, "seconds", "parameters",
    ]  # fmt: skip
    rows = [
        [
            str(position),
            row["extractor"],
            output.number(sign(options) * row["score"], 4),
            output.number(_without_noise(row["score_std"], row["score"]), 4),
            output.number(row["performance"]),
            f"{row['n_rules']:.1f}",
            output.number(row["completeness_volume"]),
            output.number(row["completeness_instances"]),
            *[output.number(row[measure]) for measure in columns_of(options)],
            f"{row['seconds']:.3f}",
            _parameters(row["params"]),
        ]
        for position, row in enumerate(different.head(_SHOWN).to_dict(orient="records"), 1)
    ]
    printer.table(columns, rows, left=("extractor", "parameters"))
    truth = "the black box's answers" if options.reference == "black-box" else dataset.y.name
    better = "greater" if sign(options) == 1 else "less"
    printer.line(
        f"({name}: {better} is better. Means over held-out folds, compared with {truth}; ± is the "
        "deviation between folds, c the completeness: share of the feature space's volume and of "
        "the rows that rules cover.)"
    )

    if options.measures and board[columns_of(options)].isna().any(axis=None):
        printer.line("(- where a rule holds for no row of some fold.)")
    tied = int(board["tied"].sum())
    if board["score"].iloc[0] < board["score"].max():
        printer.line(
            f"(The first has the fewest rules of the {tied} that are as good as the best as far as "
            "one can tell, or is the best of those: by held-out rows and by the rules of all rows.)"
        )
    if search.stopped_:
        printer.line("no more trials for:")
        for stopped, reason in search.stopped_.items():
            printer.line(f"   {stopped}: {reason}")


def columns_of(options: argparse.Namespace) -> list[str]:
    """Columns of the leaderboard that the measures asked for have there: losses are negated."""
    return [get_rule_scorer(name).name for name in options.measures]


def _parameters(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )


def _trade_off(printer: output.Printer, dataset: Dataset, search: ExtractorSearchCV) -> None:
    """The candidates that no other beats in everything, and for which weights each is best."""
    front = search.pareto_front_
    if len(front) < 2:
        return
    printer.heading(
        f"trade-off: {len(front)} candidates that no other beats in loss, rules and incompleteness"
    )
    loss = "errors" if dataset.task == "classification" else "mean absolute error"
    rows = [
        [
            f"{row['n_rules']:.1f}",
            output.number(row["loss"]),
            output.number(row["completeness_volume"]),
            "knee" if row["knee"] else "",
            row["extractor"],
            _parameters(row["params"]),
        ]
        for row in front.to_dict(orient="records")
    ]
    columns = ["rules", loss, "c volume", "", "extractor", "parameters"]
    printer.table(columns, rows, left=("extractor", "parameters"))


def _describe(dataset: Dataset) -> str:
    text = f"{dataset.name}: {len(dataset.X)} rows, {output.plural(dataset.X.shape[1], 'feature')}"
    if dataset.n_rows_dropped:
        text += f" ({output.plural(dataset.n_rows_dropped, 'row')} with missing values dropped)"
    if dataset.task == "classification":
        counts = sorted(dataset.class_counts.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{label} ({count})" for label, count in counts[:_SHOWN_CLASSES])
        more = f" and {len(counts) - _SHOWN_CLASSES} more" if len(counts) > _SHOWN_CLASSES else ""
        return f"{text}; classes of {dataset.y.name}: {shown}{more}"
    low, high = format_number(dataset.y.min()), format_number(dataset.y.max())
    return f"{text}; {dataset.y.name} from {low} to {high}"
