"""Result of `skescore tune`: its record for run.json, and its text."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import package_versions
from skescore._names import BLACK_BOX_NAMES, metric_label
from skescore._quantities import (
    DISAGREEMENT,
    MeasuredQuantity,
    limited_quantities,
    measured_quantities,
)
from skescore._scores import SCORE_SPECS
from skescore._text import percentage, plural
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._trials import redact_passwords
from skescore.registry import extractor_label

if TYPE_CHECKING:
    import pandas as pd

    from skescore.cli._output import Printer
    from skescore.datasets import Dataset
    from skescore.monitoring import Revision
    from skescore.rules import RuleSet
    from skescore.tuning import Alternative, ExtractorSearchCV
    from skescore.verification import VerifiedChoice


_MAX_ROWS = 10
MAX_CLASSES = 6


def score_sign(options: argparse.Namespace) -> int:
    """Return 1 if the score is maximized, and -1 if its negative is."""
    return -1 if arguments.scorer_from(options).name.startswith("neg_") else 1


def score_label(options: argparse.Namespace) -> str:
    """Return the label of the score."""
    score = arguments.trade_off_score(options)
    return SCORE_SPECS[score].label if score in SCORE_SPECS else score


def scoring_name(options: argparse.Namespace) -> str | list[str]:
    """Return the name of the objective, or the objectives that are minimized, as in Python."""
    objectives = arguments.objectives_from(options)
    return arguments.scorer_from(options).name if objectives is None else list(objectives)


def tune_text(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, result: dict[str, Any]
) -> str:
    """Return the text on the data, the black box, the leaderboard and the best rules."""
    printer = output.Printer(options.format == "markdown")
    for sentence in result["suspicions"]:
        printer.line(f"Warning: {sentence}")
    for sentence in result["best"]["shortcomings"]:
        printer.line(f"Note: {sentence}.")
    printer.line(_describe_data(dataset))
    quality = ", ".join(
        f"{metric_label(name)} {output.number(value)}"
        for name, value in search.black_box_quality_.items()
    )
    method = f"held-out rows, {options.cv} folds{_split_text(dataset)}"
    if not result["black_box"]["trained_here"]:
        method = (
            f"mean of {options.cv} parts of these rows, on which the model may have been trained"
        )
    if options.class_weight is not None:
        method += "; all classes have the same total weight"
    printer.line(f"model {options.black_box}: {quality} ({method})")
    are_compared = bool((result.get("all_rows") or {}).get("finalists"))
    _print_leaderboard(printer, options, dataset, search, are_finalists_compared=are_compared)
    best, name = result["best"], score_label(options)
    _trade_off(printer, options, dataset, search)
    is_front = arguments.objectives_from(options) is not None
    knee = ", the knee of the trade-off" if is_front else ""
    rank_text = "best" if options.pick is None else "picked"
    printer.heading(
        f"{rank_text}: {extractor_label(best['extractor'])} with {name} "
        f"{output.number(score_sign(options) * best['score'], 4)}{knee}; its "
        f"{plural(best['n_rules'], 'rule')}, extracted from all rows"
    )
    printer.verbatim(str(search.rules_.standalone() if options.standalone else search.rules_))
    if options.class_weight is not None:
        printer.line("(Numbers of weighted rows are sums of weights.)")
    print_winner_figures(printer, result["alternatives"])
    _print_constraints(printer, search)
    measure = "accuracy" if dataset.task == "classification" else "R²"
    verb = "was" if result["black_box"]["trained_here"] else "may have been"
    where = f"on all {len(dataset.X)} rows, which the model {verb} trained on"
    each_once = "" if options.class_weight is None else " (each counts once)"
    printer.line(
        f"{where}{each_once}: fidelity ({measure} against the model) "
        f"{output.number(best['fidelity'])}, "
        f"completeness {output.number(best['completeness_volume'])} by volume, "
        f"{output.number(best['completeness_instances'])} by rows"
    )
    if (all_rows := result.get("all_rows")) is not None:
        _print_all_rows(printer, options, all_rows)
    if (test := result.get("test")) is not None:
        names = ("fidelity", "rules", "black_box", "completeness_instances")
        fidelity, rules, black_box, completeness = (output.number(test[name]) for name in names)
        printer.line(
            f"on the {plural(test['rows'], 'row')} of {test['source']}{each_once}: fidelity "
            f"({measure} against the model) {fidelity}; {measure} (data) of the rules {rules}, of "
            f"the model {black_box}; completeness by rows {completeness}"
        )
    for sentence in result.get("certificate", ()):
        printer.line(sentence)
    print_alternatives(printer, options, search, result["alternatives"])
    if "[0 rows]" in printer.text():
        printer.line(
            "(Rules with 0 rows describe predictions of the model for generated rows; no row of "
            "the table reaches them.)"
        )
    return printer.text()


def _split_text(dataset: Dataset) -> str:
    """Describe folds of whole groups or in the order of time, after the number of folds."""
    if dataset.groups is not None:
        return f" with whole groups ({dataset.groups.nunique()} different {dataset.groups.name})"
    return "" if dataset.times is None else f" in the order of {dataset.times.name}"


def _drop_rounding_noise(spread: float, score: float) -> float:
    """Return 0 for a spread that is only rounding noise."""
    return 0.0 if spread < 1e-9 * max(1.0, abs(score)) else spread


def _print_leaderboard(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: Any,
    *,
    are_finalists_compared: bool,
) -> None:
    board, name = search.leaderboard_, score_label(options)
    complete = board[board["state"] == "complete"]
    n_stopped, n_failed = _count_stopped(board), _count_failed(board)
    suffix = f", {n_stopped} stopped early" if n_stopped else ""
    suffix += f", {n_failed} without a score" if n_failed else ""
    measure = "f1_weighted" if dataset.task == "classification" else "r2"
    spec = getattr(arguments.scorer_from(options), "spec", None)
    if options.performance and spec is not None and spec.prediction == "performance":
        measure = options.performance
    performance = metric_label(measure)
    quantities = [quantity for quantity in measured_quantities().values() if quantity.is_printed]
    costs = [quantity for quantity in quantities if quantity.is_cost]
    if DISAGREEMENT.name in board:
        costs.append(DISAGREEMENT)
    properties = [quantity for quantity in quantities if not quantity.is_cost]
    columns = [
        "",
        "extractor",
        name,
        "±",
        performance,
        *(quantity.heading for quantity in properties),
        *options.measures,
        *(quantity.heading for quantity in costs),
        "parameters",
    ]
    different = _cells_by_outcome(options, complete, properties, costs)
    prefix = f"the best {_MAX_ROWS} of " if len(different) > _MAX_ROWS else ""
    printer.heading(
        f"leaderboard: {plural(len(board), 'candidate')}{suffix}, "
        f"{prefix}{plural(len(different), 'different outcome')} by {name}, "
        f"{search.search_seconds_:.1f} s"
    )
    outcomes = list(itertools.islice(different.items(), _MAX_ROWS))
    rows = [[str(position), *start, *end] for position, (start, (end, _)) in enumerate(outcomes, 1)]
    printer.table(columns, rows, left=("extractor", "parameters"))
    _print_leaderboard_notes(
        printer, options, dataset, search, are_finalists_compared=are_finalists_compared
    )
    positions = [str(k) for k, (_, (_, is_within)) in enumerate(outcomes, 1) if not is_within]
    if positions:
        subject = f"row {positions[0]}" if len(positions) == 1 else f"rows {', '.join(positions)}"
        printer.line(f"(Beyond {stated_limits(options)}: {subject}.)")


def _cells_by_outcome(
    options: argparse.Namespace,
    complete: pd.DataFrame,
    properties: list[MeasuredQuantity],
    costs: list[MeasuredQuantity],
) -> dict[tuple[str, ...], tuple[list[str], bool]]:
    """Return the printed cells of the best candidate of each outcome.

    The keys are the cells of the outcome. The values are the other cells (costs and parameters),
    and whether the candidate satisfies the limits.
    """
    different: dict[tuple[str, ...], tuple[list[str], bool]] = {}
    for row in complete.to_dict(orient="records"):
        outcome = (
            extractor_label(row["extractor"]),
            output.number(score_sign(options) * row["score"], 4),
            output.number(_drop_rounding_noise(row["score_std"], row["score"]), 4),
            output.number(row["performance"]),
            *(_format_quantity(quantity, row) for quantity in properties),
            *(output.number(row[measure]) for measure in columns_of(options)),
        )
        costs_of_row = [_format_quantity(quantity, row) for quantity in costs]
        cells = [*costs_of_row, _parameters(row["params"])]
        different.setdefault(outcome, (cells, bool(row.get("within_limits", True))))
    return different


def _format_quantity(quantity: MeasuredQuantity, row: Mapping[Any, Any]) -> str:
    """Write a measured quantity of a candidate."""
    value = row[quantity.name]
    if quantity.is_count or quantity.is_cost:
        return f"{value:.{quantity.digits}f}"
    return output.number(value, quantity.digits)


def _print_leaderboard_notes(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: Any,
    *,
    are_finalists_compared: bool,
) -> None:
    """Explain the columns and the order of the leaderboard, and which extractors were stopped."""
    board, name = search.leaderboard_, score_label(options)
    truth = _describe_reference(options, dataset)
    better = "greater" if score_sign(options) == 1 else "smaller"
    printer.line(
        f"({name}: {better} is better. Means over {_scored_rows(options, search)}, compared with "
        f"{truth}; ± is the standard deviation between folds. 'Space covered' and 'rows covered' "
        "are the shares of the volume of the feature space and of the rows that the rules cover.)"
    )

    cost = search.query_cost_
    if cost.n_rows:
        seconds = 1000 * cost.seconds_per_row
        per_1000 = f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
        printer.line(
            f"(The search queried the model for {cost.n_rows:,} rows, which took "
            f"{cost.seconds:.1f} s, {per_1000} per 1,000 rows.)"
        )
    if options.measures and board[columns_of(options)].isna().any(axis=None):
        printer.line("(- means that a measure is undefined on at least one fold.)")
    if "within_limits" in board and not board["within_limits"].any():
        printer.line(f"(No candidate satisfies {stated_limits(options)}.)")
    if board["score"].iloc[0] < board["score"].max():
        printer.line(
            f"(The first {_explain_winner(options, board, are_finalists_compared)}; the others are "
            f"sorted by {name}.)"
        )
    if search.stopped_:
        printer.line("no more trials for:")
        for extractor, reason in search.stopped_.items():
            is_first = extractor == board["extractor"].iloc[0]
            note = "; line 1 of the leaderboard is one of its trials" if is_first else ""
            printer.line(f"   {extractor_label(extractor)}: {reason}{note}")


def _compares_on_generated_rows(options: argparse.Namespace, search: Any) -> bool:
    """Return whether scores compare with the black box on rows that are generated."""
    return options.reference == "black-box" and search.data_.has_generated_rows


def _scored_rows(options: argparse.Namespace, search: Any) -> str:
    """Return the rows over which the leaderboard has means."""
    if _compares_on_generated_rows(options, search):
        return "folds, on rows generated from held-out rows"
    return "held-out folds"


def _describe_reference(options: argparse.Namespace, dataset: Dataset) -> str:
    """Return what predictions of the rules are compared with."""
    return "the model's predictions" if options.reference == "black-box" else str(dataset.y.name)


def _explain_winner(
    options: argparse.Namespace, board: pd.DataFrame, are_finalists_compared: bool
) -> str:
    """Explain why the first candidate is the best although another candidate has a better score."""
    n_tied = int(board["tied"].sum())
    if options.pick is not None:
        return f"was selected by --pick {options.pick}"
    if DISAGREEMENT.name in board and board[DISAGREEMENT.name].notna().sum() > 1:
        return "was selected by its verified disagreement"
    if board["extractor"].iloc[0] == REVISED:
        return f"is the revision of the rules in {options.from_run}"
    if arguments.objectives_from(options) is not None:
        return "is the knee of the trade-off"
    if are_finalists_compared:
        return "is the best of the finalists on all rows"
    has_repeats = board["score_repeated"].notna()
    if has_repeats.iloc[0]:
        n_finalists = int(has_repeats.sum())
        return (
            f"is the best of {n_finalists} finalists, which are compared on the folds, on repeated "
            "folds and, with less weight, on all rows, or has the fewest rules among those that "
            "are not clearly worse"
        )
    reason = "is the best"
    if "within_limits" in board and board["within_limits"].iloc[0]:
        is_within = board["within_limits"].astype(bool)
        limits = [name for name in limited_quantities() if getattr(options, name) is not None]
        reason += f" that satisfies {' and '.join(map(option_of, limits))}"
        if not (is_within & (board["score"] > board["score"].iloc[0])).any():
            return reason
    if board["tied"].iloc[0] and n_tied > 1:
        return (
            f"has the fewest rules of the {n_tied} candidates that are not clearly worse than the "
            "best, and the best score among candidates with this number of rules; the comparison "
            "combines scores on held-out rows and scores of the rules extracted from all rows"
        )
    return (
        f"{reason} when scores on held-out rows and scores of the rules extracted from all rows "
        "are combined"
    )


def stated_limits(options: argparse.Namespace) -> str:
    """Return the limits of the search as options with their values."""
    limits = [name for name in limited_quantities() if getattr(options, name) is not None]
    return ", ".join(f"{option_of(name)} {getattr(options, name):g}" for name in limits)


def option_of(parameter: str) -> str:
    """Return the command-line option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def columns_of(options: argparse.Namespace) -> list[str]:
    """Return the columns of the requested measures in the leaderboard; losses are negated."""
    from skescore.scorers import get_rule_scorer

    return [get_rule_scorer(name).name for name in options.measures]


def _parameters(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )


#: Names of objectives in the heading of the trade-offs, if they differ.
_OBJECTIVE_WORDS = {"n_rules": "rules", "incompleteness": "completeness"}


def _trade_off(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: ExtractorSearchCV,
) -> None:
    """Write the best trade-offs: candidates that no other candidate dominates."""
    front = search.pareto_front_
    if len(front) < 2:
        return
    is_shown = front["knee"].to_numpy(bool, copy=True)
    is_shown[: _MAX_ROWS - 2] = is_shown[-1] = True
    if len(front) <= _MAX_ROWS:
        is_shown[:] = True
    shown, positions = front[is_shown], is_shown.nonzero()[0].tolist()
    count = f"{len(shown)} of " if len(shown) < len(front) else ""
    objectives = arguments.objectives_from(options) or arguments.TRADE_OFF
    *first, last = (_OBJECTIVE_WORDS.get(name, name) for name in objectives)
    printer.heading(
        f"best trade-offs between {', '.join(first)} and {last}: {count}{len(front)} candidates"
    )
    truth = _describe_reference(options, dataset)
    weight_note = "" if search.data_.row_weights is None else "; rows are weighted"
    loss = "errors" if dataset.task == "classification" else "mean absolute error"
    row_text = "held-out rows"
    if _compares_on_generated_rows(options, search):
        row_text, weight_note = "rows generated from held-out rows", ""
    overwrite = "" if options.output is None or options.overwrite else " and --overwrite"
    others = [name for name in objectives if name not in arguments.TRADE_OFF]
    rows = [
        [
            f"{row['n_rules']:.1f}",
            output.number(row["loss"]),
            output.number(row["completeness_volume"]),
            *(output.number(row[name]) for name in others),
            "knee" if row["knee"] else "",
            str(position + 1),
            extractor_label(row["extractor"]),
            _parameters(row["params"]),
        ]
        for position, row in zip(positions, shown.to_dict(orient="records"), strict=True)
    ]
    space = measured_quantities()["completeness_volume"].heading
    columns = ["rules", loss, space, *others, "", "pick", "extractor", "parameters"]
    printer.table(columns, rows, left=("extractor", "parameters"))
    printer.line(
        f"({loss.capitalize()}: on {row_text}, compared with {truth}{weight_note}. To show the "
        f"rules of a row, repeat the command with --pick N (1 to {len(front)}){overwrite}; it uses "
        "the stored trials.)"
    )


def _describe_data(dataset: Dataset) -> str:
    from skescore.rules._text import format_number

    text = f"{dataset.name}: {len(dataset.X)} rows, {plural(dataset.X.shape[1], 'feature')}"
    if dataset.n_rows_dropped:
        text += f" ({plural(dataset.n_rows_dropped, 'row')} with missing values dropped)"
    if dataset.task == "classification":
        counts = sorted(dataset.class_counts.items(), key=lambda item: -item[1])
        class_list = ", ".join(f"{label} ({count})" for label, count in counts[:MAX_CLASSES])
        suffix = f" and {len(counts) - MAX_CLASSES} more" if len(counts) > MAX_CLASSES else ""
        return f"{text}; target class {dataset.y.name}: {class_list}{suffix}"
    low, high = format_number(dataset.y.min()), format_number(dataset.y.max())
    return f"{text}; {dataset.y.name} from {low} to {high}"


#: Largest number of terms of an equation that is easy to read.
_MAX_TERMS = 8
#: Trials that failed, and trials whose score is undefined.
_WITHOUT_SCORE = ("fail", "pruned")
#: Start of the error of a trial that was stopped because it could no longer win.
_STOPPED = "Stopped by the pruner"


def _is_stopped(board: pd.DataFrame) -> pd.Series:
    """Return which trials of the leaderboard were stopped because they could no longer win."""
    is_stopped: pd.Series = board["error"].astype(str).str.startswith(_STOPPED)
    return is_stopped


def _count_stopped(board: pd.DataFrame) -> int:
    return int(_is_stopped(board).sum())


def is_failed(board: pd.DataFrame) -> pd.Series:
    """Return which trials of the leaderboard have no score although they were not stopped."""
    return board["state"].isin(_WITHOUT_SCORE) & ~_is_stopped(board)


def _count_failed(board: pd.DataFrame) -> int:
    return int(is_failed(board).sum())


def revision_text(options: argparse.Namespace, revision: Revision) -> str:
    """Write which rules of the earlier run were kept, which were not, and why."""
    printer = output.Printer(options.format == "markdown")
    printer.heading(f"revision of {options.from_run}")
    for line in str(revision).split("\n"):
        printer.line(f"- {line}.")
    return printer.text()


def find_shortcomings(
    dataset: Dataset, search: ExtractorSearchCV, idle: Sequence[str]
) -> list[str]:
    """Return sentences on shortcomings of the black box and of the best rules.

    `idle` are features of the rules whose permutation changes no output of the black box.
    """
    from skescore.tuning import MAX_PERMUTED_ROWS

    shortcomings = _weak_predictions(dataset, search)
    if idle:
        n_rows = min(len(dataset.X), MAX_PERMUTED_ROWS)
        bound = percentage(min(1.0, 3 / n_rows), digits=2)
        shortcomings.append(
            f"these rules use {', '.join(idle)}, but the model does not seem to: permuting the "
            f"values changes none of its outputs on {n_rows} rows (with 95 % confidence, at most "
            f"{bound} of its outputs depend on them). The model probably uses correlated features: "
            f"name those with --features, or leave out {', '.join(idle)} with --drop"
        )
    n_terms = max((rule.n_terms - rule.n_literals for rule in search.rules_), default=0)
    if n_terms > _MAX_TERMS:
        shortcomings.append(
            f"the equations of these rules have up to {n_terms} terms: to shorten them, limit the "
            f"columns with --max-features {_MAX_TERMS}, or use constants with --extractors cart"
        )
    return shortcomings


def _weak_predictions(dataset: Dataset, search: ExtractorSearchCV) -> list[str]:
    """Return notes on rules that do not beat a constant or that never predict some class."""
    import numpy as np
    import pandas as pd
    from sklearn.metrics import f1_score, r2_score
    from sklearn.utils.class_weight import compute_sample_weight

    from skescore.suspicions import similar_class_names

    y, target = dataset.y, dataset.y.name
    y_pred = pd.Series(search.predict(dataset.X), index=y.index)
    quality = search.black_box_quality_
    if dataset.task == "regression":
        shortcomings = []
        if quality["r2"] > 0 and r2_score(y, y_pred.fillna(y.mean())) <= 1e-9:
            shortcomings.append(
                f"these rules predict {target} no better than its mean: allow more rules, or "
                "try --scoring neg_root_relative_squared_error"
            )
        return shortcomings
    counts = sorted(dataset.class_counts.items(), key=lambda item: -item[1])
    # The score of a constant prediction depends on the class weights of the search.
    weights = compute_sample_weight(search.class_weight, y)
    shares = {name: round(np.average(y == name, weights=weights), 9) for name, _ in counts}
    label, share = max(shares.items(), key=lambda item: item[1])
    constant_f1 = share * 2 * share / (1 + share)
    is_better = quality["accuracy"] > share + 1e-9
    if any(suspicion.name == "no_better_than_constant" for suspicion in search.suspicions_):
        return []  # the black box does not beat a constant either
    shortcomings = []
    is_correct = y_pred.to_numpy() == y.to_numpy()
    if is_better and float(np.average(is_correct, weights=weights)) <= share + 1e-9:
        f1 = f1_score(y.astype(str), y_pred.astype(str), average="weighted", sample_weight=weights)
        if f1 <= constant_f1 + 1e-9:
            shortcomings.append(
                f"these rules predict {target} no better than always {label!r}: allow more rules, "
                "or try --performance balanced_accuracy"
            )
    misspelled = similar_class_names(y)  # another note reports these classes
    missing_classes = [
        f"{name!r} ({plural(count, 'row')})"
        for name, count in counts
        if not (y_pred == name).any() and str(name) not in misspelled
    ]
    if missing_classes:
        shortcomings.append(
            f"these rules never predict {', '.join(missing_classes[:MAX_CLASSES])}: allow more "
            "rules, or try --performance balanced_accuracy"
        )
    return shortcomings


def _print_all_rows(
    printer: output.Printer, options: argparse.Namespace, result: dict[str, Any]
) -> None:
    """Write the evaluation on all rows."""
    name = "accuracy" if "accuracy" in result else "r2"
    scores = ", ".join(
        f"{SCORE_SPECS[score].label} {output.number(value, 4)}"
        for score, value in result["scores"].items()
    )
    printer.line(
        f"on all {plural(result['rows'], 'row')}: {metric_label(name)} "
        f"{output.number(result[name])}, completeness by rows "
        f"{output.number(result['completeness_instances'])}, {scores}"
    )
    if (finalists := result["finalists"]) is not None and len(finalists) > 1:
        finalist_list = ", ".join(
            f"{extractor_label(f['extractor'])} with {plural(f['n_rules'], 'rule')} "
            f"{output.number(f['score'], 4)}"
            for f in finalists
        )
        printer.line(f"finalists on all rows: {finalist_list}")


def make_result(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV
) -> dict[str, Any]:
    """Return the complete result except the leaderboard and the rules."""
    extractor, board = search.best_extractor_, search.leaderboard_
    return {
        "data": inputs.describe_data(options, dataset),
        "black_box": {
            "name": options.black_box,
            "trained_here": options.black_box in BLACK_BOX_NAMES,
            "quality": search.black_box_quality_,
        },
        "search": {
            # As in Python, scores are maximized, so that FiRe and Q are negated.
            "scoring": scoring_name(options),
            "weights": arguments.weights_from(options),
            "completeness": options.completeness,
            "reference": options.reference,
            "extractors": list(options.extractors),
            "allocation": options.allocation,
            "stopped": search.stopped_,
            "trials": len(board),
            "trials_failed": _count_failed(board),
            "trials_stopped": _count_stopped(board),
            "cv": options.cv,
            "repeats": options.repeats,
            "groups": options.groups,
            "time": options.time,
            "class_weight": options.class_weight,
            "seed": options.seed,
            "timeout": options.timeout,
            "max_queries": options.max_queries,
            "performance": options.performance,
            "measures": list(options.measures),
            "features": options.features,
            **_constraints_record(search),
            "n_trials": options.trials,
            "pick": options.pick,
            "certify": options.certify,
            "verify": options.verify,
            "tolerance": options.tolerance,
            **{name: getattr(options, name) for name in limited_quantities()},
            "seconds": round(search.search_seconds_, 3),
            "query_cost": dataclasses.asdict(search.query_cost_),
        },
        "best": {
            "extractor": search.best_name_,
            "params": search.best_params_,
            "score": search.best_score_,
            "n_rules": len(search.rules_),
            "fidelity": extractor.fidelity(dataset.X),
            "completeness_volume": extractor.completeness_,
            "completeness_instances": float(extractor.rules_.covers(dataset.X).mean()),
        },
        "run": {
            "command_line": redact_passwords(options.command_line),
            "options": _option_values(options),
            "versions": package_versions(),
            "platform": platform.platform(),
        },
    }


def _option_values(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of all options of the command, including defaults."""
    from skescore.tuning.storage import storage_name

    values = {}
    for name in options.parser.option_names:
        value = getattr(options, name)
        if name == "storage" and value is not None:
            value = storage_name(value)
        elif isinstance(value, str):
            value = arguments.without_passwords(value)
        elif isinstance(value, Path):
            value = str(value)
        values[name] = value
    return values


def _constraints_record(search: ExtractorSearchCV) -> dict[str, Any]:
    """Return the constraints, and how the winner satisfies them; nothing without constraints."""
    if search.constraints is None:
        return {}
    outcomes = getattr(search.best_extractor_, "constrained_rules_", None)
    return {
        "constraints": json.loads(search.constraints.to_json()),
        "constraint_outcomes": {} if outcomes is None else dict(outcomes.outcomes),
    }


def _print_constraints(printer: output.Printer, search: ExtractorSearchCV) -> None:
    """Print how the winner satisfies the constraints, and how many candidates could not."""
    result = getattr(search.best_extractor_, "constrained_rules_", None)
    if result is None:
        return
    printer.line("constraints:")
    for line in str(result).splitlines():
        printer.line(f"  {line}")
    n_rejected = int(search.leaderboard_["error"].str.startswith("No rules were obtained").sum())
    if n_rejected:
        printer.line(f"  {plural(n_rejected, 'candidate')} could not be repaired")


def json_text(search: ExtractorSearchCV, result: dict[str, Any]) -> str:
    board = search.leaderboard_.to_dict(orient="records")
    rules = json.loads(search.rules_.to_json(indent=None))
    return output.json_for_stdout(result | {"leaderboard": board, "rules": rules})


#: Name of the revised rules in the leaderboard.
REVISED = "revised"


def choice_record(choice: VerifiedChoice) -> dict[str, Any]:
    """Return the verification for the result of the search."""
    result = choice.verification
    upper = choice.disagreement
    return {
        DISAGREEMENT.name: None if math.isnan(upper) else upper,
        "near": result.near_disagreement.to_dict(),
        "volume": result.volume_disagreement.to_dict(),
        "engine": result.engine,
        "candidates_verified": choice.n_verified,
        "candidates_failed": [
            {"extractor": extractor, "trial": trial, "reason": reason}
            for (extractor, trial), reason in choice.failures.items()
        ],
        "is_within_limit": choice.is_within_limit,
    }


def choice_text(choice: VerifiedChoice) -> str:
    """Describe the verification in a sentence."""
    result = choice.verification
    method = "proofs and samples" if result.engine == "leaf boxes" else "samples only"
    return (
        f"verified ({method}): disagreement of rules and model near the data: "
        f"{result.near_disagreement}; by volume, in the whole domain: {result.volume_disagreement}"
    )


#: Largest number of rules of an alternative that are printed.
_MAX_RULES = 12


def figures_text(
    correctness: float | None,
    fidelity: float | None,
    measure: str,
    *,
    rows: Mapping[str, str],
    digits: int = 0,
) -> str:
    """Return correctness and fidelity as a phrase that names their rows and references.

    `rows` names the rows of each figure.
    """
    parts = []
    if measure == "accuracy":
        if correctness is not None:
            share = percentage(correctness, digits=digits)
            parts.append(f"right for {share} of {rows['correctness']} (data)")
        if fidelity is not None:
            share = percentage(fidelity, digits=digits)
            parts.append(f"agrees with the model on {share} of {rows['fidelity']}")
    else:
        if correctness is not None:
            parts.append(f"R² {correctness:.3f} on {rows['correctness']} (data)")
        if fidelity is not None:
            parts.append(f"R² {fidelity:.3f} against the model on {rows['fidelity']}")
    return ", ".join(parts)


def print_winner_figures(printer: Printer, record: Mapping[str, Any]) -> None:
    """Write correctness and fidelity of the winner, and the gain from more rules."""
    winner = next((figures for figures in record["lists"] if "best" in figures["roles"]), None)
    if winner is None:
        return
    text = _figures_of(winner, record)
    if text:
        printer.line(f"this list: {text}")
    other_roles = [_describe_role(role, record) for role in winner["roles"] if role != "best"]
    if other_roles:
        printer.line(f"it is also {', and '.join(other_roles)}")
    if gain := _gain_text(winner, record["measure"]):
        printer.line(gain)
    if record["fidelity"]["generated"]:
        printer.line(
            "(The model may have been trained on the rows of the table, so agreement is measured "
            "on rows generated from held-out rows.)"
        )


def print_alternatives(
    printer: Printer,
    options: argparse.Namespace,
    search: ExtractorSearchCV,
    record: Mapping[str, Any],
) -> None:
    """Write the rule lists other than the winner, each with its figures."""
    alternatives = [
        (alternative, figures)
        for alternative, figures in zip(search.alternatives_, record["lists"], strict=True)
        if "best" not in alternative.roles
    ]
    if not alternatives:
        _print_best_larger_list(printer, search, record)
        return
    noun = "another rule list" if len(alternatives) == 1 else "other rule lists"
    printer.heading(f"{noun} to choose from, by correctness or by fidelity:")
    for alternative, figures in alternatives:
        _print_list(printer, options, alternative, figures, record)
    if all(alternative.is_constant for alternative, _ in alternatives):
        _print_best_larger_list(printer, search, record)


def _print_list(
    printer: Printer,
    options: argparse.Namespace,
    alternative: Alternative,
    figures: Mapping[str, Any],
    record: Mapping[str, Any],
) -> None:
    roles = ", and ".join(_describe_role(role, record) for role in figures["roles"])
    count = plural(figures["n_rules"], "rule")
    printer.line(f"- {roles}: {extractor_label(figures['extractor'])} with {count}")
    rules = alternative.rules.standalone() if options.standalone else alternative.rules
    printer.verbatim(rules_text(rules, _MAX_RULES, ", see run.json (--output)"))
    printer.line(f"this list: {_figures_of(figures, record)}")
    if gain := _gain_text(figures, record["measure"]):
        printer.line(gain)


def rules_text(rules: RuleSet, max_rules: int, hint: str = "") -> str:
    """Return the first rules, the number of the other rules with a hint, and the fallback."""
    lines, n_more = str(rules).splitlines(), len(rules) - max_rules
    if n_more > 0:
        note = f"... and {plural(n_more, 'more rule')}{hint}"
        lines = [*lines[:max_rules], note, *lines[len(rules) :]]
    return "\n".join(lines)


def _print_best_larger_list(
    printer: Printer, search: ExtractorSearchCV, record: Mapping[str, Any]
) -> None:
    """Write the figures of the best candidate that is not a constant if all lists are constants."""
    lists = record["lists"]
    if not lists or not all(rule_list["is_constant"] for rule_list in lists):
        return
    board = search.leaderboard_
    larger_candidates = board[(board["state"] == "complete") & (board["n_rules"] > 1.5)]
    if not len(larger_candidates):
        printer.line("(The rules predict the same for all rows, and no candidate has more rules.)")
        return
    row = larger_candidates.iloc[0]
    figures = {
        name: None if row[name] != row[name] else float(row[name])
        for name in ("correctness", "fidelity")
    }
    text = figures_text(
        figures["correctness"],
        figures["fidelity"],
        record["measure"],
        rows=_rows_of_figures(record),
    )
    printer.line(
        "(The rules predict the same for all rows. The best candidate with more rules is "
        f"{extractor_label(row['extractor'])} with {row['n_rules']:.3g} rules: {text}.)"
    )


def _describe_role(role: str, record: Mapping[str, Any]) -> str:
    """Return the property by which a list was chosen, in words."""
    if role == "shortest":
        return "the shortest list whose correctness is within one standard error of the best"
    count = plural(int(record["max_rules"]), "rule")
    return f"the candidate most faithful to the model with at most {count}"


def _figures_of(figures: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return the figures of a list, with a decimal place if figures of lists differ only there."""
    digits = 0
    for name in ("correctness", "fidelity"):
        values = {rule_list[name] for rule_list in record["lists"] if rule_list[name] is not None}
        if len({percentage(value) for value in values}) < len(values):
            digits = 1
    return figures_text(
        figures["correctness"],
        figures["fidelity"],
        record["measure"],
        rows=_rows_of_figures(record),
        digits=digits,
    )


def _rows_of_figures(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of correctness and fidelity in words."""
    is_generated = record["fidelity"]["generated"]
    rows = {
        name: f"{'weighted ' if record[name]['weighted'] else ''}held-out rows"
        for name in ("correctness", "fidelity")
    }
    return rows | ({"fidelity": "generated rows"} if is_generated else {})


def _gain_text(figures: Mapping[str, Any], measure: str) -> str:
    """Return the gain of the next larger list that is better; empty if none is better."""
    larger_list = figures["next"]
    if larger_list is None:
        return ""
    n_more = round(larger_list["n_rules"] - figures["n_rules"])
    parts = []
    for noun, name in (("right for", "correctness"), ("agrees with the model on", "fidelity")):
        value, following_value = figures[name], larger_list[name]
        if value is None or following_value is None:
            continue
        if measure == "accuracy":
            parts.append(f"{noun} {_pair_of_percentages(following_value, value)}")
        else:
            label = "R² (data)" if name == "correctness" else "R² (model)"
            parts.append(f"{label} {following_value:.3f} instead of {value:.3f}")
    if not parts:
        return ""
    return f"with {plural(n_more, 'more rule')}: {', '.join(parts)}"


def _pair_of_percentages(value: float, other_value: float) -> str:
    """Return two shares with as many digits as are needed to distinguish them."""
    for digits in (0, 1, 2):
        texts: Sequence[str] = [percentage(v, digits=digits) for v in (value, other_value)]
        if texts[0] != texts[1]:
            return f"{texts[0]} instead of {texts[1]}"
    return f"{texts[0]} as before"
