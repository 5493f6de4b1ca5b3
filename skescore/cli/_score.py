"""``skescore score``: saved rules on some data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._rule_files import read_rules, text_features
from skescore.cli._score_text import print_rules
from skescore.datasets._loading import BUILT_IN, Dataset, DatasetError
from skescore.metrics._prediction import METRICS
from skescore.metrics._rule_quality import MEASURES
from skescore.metrics._rule_report import rule_report
from skescore.metrics._rule_reports import characteristics
from skescore.rules import RuleSet
from skescore.scorers._evaluation import RuleEvaluation, evaluate_rules

_EXAMPLES = """\
examples:
  skescore tune wine --output run && skescore score run/rules.json wine
  skescore score run/rules.json new_houses.csv --target price --format json
  skescore score run/rules.json wine --measures c2,lift,correlation
"""
#: What is told of each rule beside the measures that are asked for.
_COLUMNS = (
    "text", "output", "p", "n", "P", "N", "p_value", "fdr_p_value", "fwer_p_value", "significant",
    "overlap", "unique_rows",
)  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "score",
        help="score saved rules on data",
        description="Score rules that `skescore tune --output`, `skescore import` or "
        "RuleSet.to_json wrote.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("rules", metavar="RULES.json", type=Path, help="the rules")
    arguments.add_data_options(parser)
    arguments.add_score_options(parser)
    parser.add_argument(
        "--measures",
        type=_measures,
        metavar="NAMES",
        help="judge every rule by itself too: 'all', or measures separated by commas, of "
        f"{', '.join(MEASURES)}",
    )
    parser.add_argument(
        "--answered-rows",
        action="store_true",
        help="with --measures: count for each rule the rows that it answers rather than all that "
        "it holds for; in an ordered list, later rules mean 'else'",
    )
    arguments.add_format_option(parser)
    parser.set_defaults(run=run, parser=parser)


def _measures(text: str) -> tuple[str, ...]:
    """Read the names of measures of rules; "all" stands for all of them."""
    names = arguments.names_of((*MEASURES, "all"), "measure of rules")(text)
    return tuple(MEASURES) if "all" in names else names


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    ruleset = read_rules(options.rules)
    if len(ruleset) == 0:
        raise ValueError(
            f"{options.rules} holds 0 rules, so there is nothing to score. Extract rules again, "
            "for example with: skescore tune DATA --output DIR"
        )
    if options.answered_rows and not options.measures:
        options.parser.error("--answered-rows counts for --measures; give their names, or all")
    if options.answered_rows and ruleset.voting is not None:
        raise ValueError(
            f"--answered-rows needs rules of which one answers each row, but those in "
            f"{options.rules} answer together (voting {ruleset.voting!r}). Leave the option out."
        )
    notes = output.Notes()
    dataset = _load(options, ruleset)
    with notes.instead_of_warnings():
        evaluation = evaluate_rules(ruleset, dataset.X, dataset.y)
        scores = arguments.knowledge_scorer_from(options).score(evaluation)
        prediction = _predictions(evaluation)
        judged = _judged(options, ruleset, dataset) if options.measures else {}
    unknown = set(dataset.class_counts) - set(ruleset.classes or ())
    if unknown:
        listed = ", ".join(sorted(map(repr, unknown)))
        count = sum(dataset.class_counts[label] for label in unknown)
        notes.add(f"{output.plural(count, 'row')} of classes that the rules do not know: {listed}")
    result = {
        "rules": str(options.rules),
        "data": arguments.describe_data(dataset),
        "weights": {"psi": options.psi, "phi": options.phi, "rho": options.rho},
        "completeness": options.completeness,
        "scores": {
            "ice": scores["ice"],
            "fire": -scores["neg_fire"],
            "q": -scores["neg_q"],
        },
        "n_rules": len(ruleset),
        "n_conditions": ruleset.n_conditions,
        "completeness_volume": scores["completeness_volume"],
        "completeness_instances": scores["completeness_instances"],
        "rows_covered": int(evaluation.covered.sum()),
        "prediction": prediction,
        **judged,
        "notes": notes.texts,
    }
    return output.json_for_stdout(result) if options.format == "json" else _text(options, result)


def _load(options: argparse.Namespace, ruleset: RuleSet) -> Dataset:
    """The columns that the rules were made with, for the task that they are for."""
    task = ruleset.task if options.task == "auto" else options.task
    built_in = BUILT_IN.get(options.data)
    for name, other in (("--task", task), (options.data, built_in.task if built_in else task)):
        if other != ruleset.task:
            raise ValueError(
                f"The rules in {options.rules} are for {ruleset.task}, but {name} is for {other}. "
                f"Score them on data for {ruleset.task}."
            )
    try:
        names, known = ruleset.feature_names, text_features(ruleset)
        return arguments.data_from(options, task=task, features=names, categories=known)
    except DatasetError as error:
        if "features" not in str(error):
            raise
        raise ValueError(
            f"{error} The features are those of the rules in {options.rules}; score them on data "
            "with the same columns."
        ) from error


def _predictions(evaluation: RuleEvaluation) -> dict[str, dict[str, float]]:
    """Every predictive measure, on covered rows and with the others penalised."""
    task = evaluation.ruleset.task
    result = {}
    for name, metric in METRICS.items():
        if task in metric.tasks:
            measure = evaluation.performance if metric.greater_is_better else evaluation.loss
            result[name] = {
                "covered_rows": measure(name, "ignore"),
                "all_rows": measure(name, "penalise"),
            }
    return result


def _judged(options: argparse.Namespace, ruleset: RuleSet, dataset: Dataset) -> dict[str, Any]:
    """Every rule by itself, and their averages."""
    measures, answering = options.measures, options.answered_rows
    report = rule_report(ruleset, dataset.X, dataset.y, measures=measures, answering=answering)
    known = dict.fromkeys([*_COLUMNS, *measures])
    return {
        "measures": list(measures),
        "answered_rows": answering,
        "rules_by_themselves": [
            {"number": number, **{name: row[name] for name in known}}
            for number, row in zip(report.index, report.to_dict(orient="records"), strict=True)
        ],
        "characteristics": characteristics(ruleset, dataset.X, dataset.y),
    }


def _text(options: argparse.Namespace, result: dict[str, Any]) -> str:
    printer = output.Printer(options.format == "markdown")
    data, number = result["data"], output.number
    dropped = data["rows_dropped"]
    more = f" ({output.plural(dropped, 'row')} with missing values dropped)" if dropped else ""
    printer.line(
        f"{result['rules']}: {output.plural(result['n_rules'], 'rule')} with "
        f"{output.plural(result['n_conditions'], 'condition')}, on {data['rows']} rows of "
        f"{data['name']}{more}"
    )
    printer.heading("scores")
    scores, weights = result["scores"], result["weights"]
    ice = f"greater is better, below 1 (phi {weights['phi']:g}, rho {weights['rho']:g})"
    covered = f"share of the rows that rules cover ({result['rows_covered']} of {data['rows']})"
    rows = [
        ["ICE", number(scores["ice"], 4), ice],
        ["FiRe", number(scores["fire"], 4), f"less is better (psi {weights['psi']:g})"],
        ["Q", number(scores["q"], 4), "less is better"],
        [
            "completeness by volume",
            number(result["completeness_volume"]),
            "share of the feature space that rules cover",
        ],
        ["completeness by rows", number(result["completeness_instances"]), covered],
    ]
    printer.table(["score", "value", "meaning"], rows, left=("score", "meaning"))
    kind = "rows" if result["completeness"] == "instances" else "volume"
    printer.line(f"(ICE and Q take completeness by {kind}.)")
    printer.heading("predictions")
    table = [
        [
            output.MEASURE_NAMES.get(name, name.replace("_", " ")),
            number(v["covered_rows"]),
            number(v["all_rows"]),
        ]
        for name, v in result["prediction"].items()
    ]
    printer.table(["measure", "covered rows", "all rows"], table, left=("measure",))
    truth = "wrong" if data["task"] == "classification" else "answered by the mean"
    printer.line(f"(On all rows, those that no rule covers count as {truth}.)")
    if "measures" in result:
        print_rules(printer, result)
    return printer.text()
