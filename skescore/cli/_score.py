"""``skescore score``: evaluate saved rules on data."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from skescore._aliases import RULEKIT_RULE_MEASURES, canonical_name
from skescore._names import DATA_SET_TASKS, MEASURE_NAMES, metric_label
from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._output import Printer, number
from skescore.cli._rule_files import (
    differences_from_training,
    preparation_of,
    read_rules,
    use_target_of_run,
    used_features,
    warn_of_conversions,
)

if TYPE_CHECKING:
    import pandas as pd

    from skescore.datasets import Dataset
    from skescore.rules import RuleSet
    from skescore.scorers import RuleEvaluation, ScoreSpec

#: Width of a table of measures in characters; further measures are in a second table.
_WIDTH = 96
#: Largest number of rules that are compared in pairs.
_MAX_PAIRED_RULES = 2000
#: Largest number of conditions of voting rules that are left out one by one.
_MAX_VOTING_CONDITIONS = 500
#: Figures that are numbers of rows.
_COUNTS = ("p", "n", "P", "N", "unique_rows", "voting_conflicts", "negative_voting_conflicts")

#: Figures of the rule set with their meanings; figures that do not apply to a task are omitted.
_FIGURES = {
    "conditions_per_rule": "features in a rule",
    "literals_per_rule": "comparisons in a rule",
    "avg_rule_coverage": "share of all rows that a rule covers",
    "avg_rule_precision": "share of the covered rows that are correct",
    "avg_rule_quality": "c2: precision beyond chance, and share of the positive rows covered",
    "fraction_significant": "share of rules that are significantly better than chance",
    "fraction_fdr_significant": "the same, with control of the false discovery rate (FDR)",
    "fraction_fwer_significant": "the same, with control of the family-wise error rate (FWER)",
    "rules_per_example": "number of rules that cover a row",
    "voting_conflicts": "rows covered by rules of different classes",
    "negative_voting_conflicts": "conflicting rows that are predicted wrongly",
}
_NAMES = {
    "avg_rule_coverage": "coverage",
    "avg_rule_precision": "precision",
    "avg_rule_quality": "quality",
    "fraction_significant": "significant",
    "fraction_fdr_significant": "significant (FDR)",
    "fraction_fwer_significant": "significant (FWER)",
    "rules_per_example": "rules per row",
    "voting_conflicts": "conflicts",
    "negative_voting_conflicts": "wrong conflicts",
}


def print_rules(printer: Printer, result: Mapping[str, Any]) -> None:
    """Write the text, counts and measures of each rule, and then the averages.

    Rules are often longer than a line, so they are listed first, and the tables use their numbers.
    """
    from skescore.metrics import RULE_MEASURES

    rules, measures = result["rules_by_themselves"], result["measures"]
    printer.heading(f"single rules: {plural(len(rules), 'rule')}")
    texts = [f"{rule['number']}. {rule['text']}".replace("\n", "\\n") for rule in rules]
    printer.verbatim("\n".join(texts))
    printer.heading("rows of each rule")
    _table(
        printer,
        rules,
        {
            "right": "p",
            "wrong": "n",
            "all right": "P",
            "all wrong": "N",
            "overlap": "overlap",
            "alone": "unique_rows",
            "p-value": "p_value",
            "FDR": "fdr_p_value",
            "FWER": "fwer_p_value",
            "significant": "significant",
        },
    )
    right = (
        "that have its class"
        if result["data"]["task"] == "classification"
        else "whose number is within a standard deviation of the prediction"
    )
    row_text = "all rows that it covers, including those that another rule predicts"
    if result["assigned_rows"]:
        row_text = "the rows assigned to it"
    printer.line(
        f"(Each rule is evaluated separately, on {row_text}. Right: number of these rows {right}. "
        "Overlap: share of its rows that other rules cover as well. Alone: number of its rows that "
        "no other rule covers. FDR and FWER: the p-value corrected for the false discovery rate "
        "and for the family-wise error rate. Significant: FDR is at most 0.05.)"
    )
    for position, names in enumerate(_group_measures(rules, measures)):
        printer.heading("measures" if position == 0 else "measures, continued")
        _table(printer, rules, {name: name for name in names})
    losses = [name for name in measures if not RULE_MEASURES[name].greater_is_better]
    but = f", except for {', '.join(losses)}" if losses else ""
    printer.line(f"(Greater is better{but}; -: the measure is undefined.)")
    printer.heading("the rule set: means over rules, and their overlap")
    if result["assigned_rows"]:
        printer.line("(All rows that a rule covers are counted.)")
    figures = result["characteristics"]
    rows = [
        [_NAMES.get(name, name.replace("_", " ")), _cell(name, figures[name]), meaning]
        for name, meaning in _FIGURES.items()
        if name in figures
    ]
    printer.table(["figure", "value", "meaning"], rows, left=("figure", "meaning"))


def _cell(name: str, value: Any) -> str:
    """Write a number for a table; integers have no decimals."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _COUNTS and math.isfinite(value):
        return _count_text(value)
    return number(value)


def _count_text(value: float) -> str:
    """Write a number of rows; sums of weights may have decimals."""
    return f"{value:g}" if value % 1 and value < 1e5 else f"{value:.0f}"


def _table(
    printer: Printer, rules: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> None:
    rows = [
        [str(rule["number"]), *(_cell(name, rule[name]) for name in columns.values())]
        for rule in rules
    ]
    printer.table(["rule", *columns], rows)


def _group_measures(
    rules: Sequence[Mapping[str, Any]], measures: Sequence[str]
) -> Iterator[list[str]]:
    """Divide measures into groups that fit the width, with at least one measure per group."""
    group: list[str] = []
    start = room = _WIDTH - max(4, len(str(len(rules))))
    for name in measures:
        width = 2 + max(len(name), *(len(_cell(name, rule[name])) for rule in rules))
        if group and width > room:
            yield group
            group, room = [], start
        group.append(name)
        room -= width
    yield group


DESCRIPTION = (
    "Score the rules of `skescore tune --output`, `skescore import` or RuleSet.to_json on data."
)
EXAMPLES = """\
examples:
  skescore tune wine --output run && skescore score run/rules.json wine
  skescore score run/rules.json new_houses.csv --target price --format json
  skescore score run/rules.json wine --measures c2,lift,correlation
  skescore score run/rules.json new_houses.csv --target price --black-box model.skops
  skescore score run/rules.json 'sales/*.parquet' --target price
  skescore score run/rules.json 'postgresql://anna@host/shop?table=sales' --target price
"""
#: Help on rows that are counted in their source.
_ELSEWHERE = (
    "; or rows that are not loaded into memory: a folder or glob of Parquet files, "
    "duckdb:///FILE?table=T, postgresql://USER@HOST/DATABASE?table=T, any URL of SQLAlchemy"
)
#: Options of reading a file into memory.
_READING = (
    *("drop", "category", "numeric", "na_values", "sep", "decimal", "encoding", "header"),
    *("skip_rows", "sample"),
)
#: Columns of each rule in addition to the requested measures.
_COLUMNS = (
    "text",
    "output",
    "p",
    "n",
    "P",
    "N",
    "p_value",
    "fdr_p_value",
    "fwer_p_value",
    "significant",
    "overlap",
    "unique_rows",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(parser)
    group = arguments.add_data_options(
        parser, elsewhere=_ELSEWHERE, target_use=arguments.TARGET_OF_RUN
    )
    group.add_argument(
        "--in-place",
        action="store_true",
        help="score a single Parquet file without reading all of its rows into memory",
    )
    group.add_argument(
        "--weight",
        metavar="COLUMN",
        help="column with the weights of the rows, for rows in a database or in Parquet files",
    )
    group.add_argument(
        "--memory", metavar="SIZE", help="memory limit of DuckDB for Parquet files, such as 1GB"
    )
    arguments.add_score_options(parser)
    parser.add_argument(
        "--measures",
        type=_measures,
        metavar="NAMES",
        help="also evaluate each rule separately: 'all', or any of the following measures, "
        f"separated by commas: {', '.join(MEASURE_NAMES)}",
    )
    parser.add_argument(
        "--assigned-rows",
        action="store_true",
        help="with --measures: evaluate each rule on the rows assigned to it instead of all rows "
        "it covers; in an ordered list, each row is assigned to the first rule that covers it",
    )
    group = parser.add_argument_group("measures beyond the scores")
    group.add_argument(
        "--more",
        action="store_true",
        help="add measures that ICE, FiRe and Q do not include: overlap of rules, removable "
        "rules, and whether the shares printed with the rules are correct on these rows",
    )
    arguments.add_model_options(
        group,
        "; adds the measures of --more and the agreement of the rules with the model by class, by "
        "feature, far from the data and near the decision boundary of the model; for Parquet "
        "files that are read in place, adds only the agreement on these rows",
    )
    group.add_argument(
        "--group",
        metavar="COLUMN",
        help="with --black-box: report the agreement for each group (value) of this column",
    )
    arguments.add_format_option(parser)


def _measures(text: str) -> tuple[str, ...]:
    """Read the names of measures of rules; "all" means all of them (argparse type)."""
    choices = dict.fromkeys((*MEASURE_NAMES, "all"))

    def canonical(name: str) -> str:
        return canonical_name(name, choices, RULEKIT_RULE_MEASURES)

    names = arguments.names_of(choices, "measure of rules", canonical)(text)
    return MEASURE_NAMES if "all" in names else names


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    if options.assigned_rows and not options.measures:
        options.parser.error("--assigned-rows needs --measures with names of measures, or all")
    if options.group and options.black_box is None:
        options.parser.error("--group needs --black-box with the file of a model")
    if options.group and options.missing == "drop":
        options.parser.error("--group needs all rows; use --missing keep, or drop rows beforehand")
    from skescore.scorers import SCORE_SPECS, evaluate_rules

    ruleset = read_rules(options.rules)
    if len(ruleset) == 0:
        raise ValueError(
            f"{options.rules} contains no rules, so there is nothing to score. Extract rules "
            "again, for example with: skescore tune DATA --output DIR"
        )
    if options.assigned_rows and ruleset.voting is not None:
        raise ValueError(
            "--assigned-rows requires that one rule predicts each row, but the rules in "
            f"{options.rules} predict together (voting {ruleset.voting!r}). Leave the option out."
        )
    use_target_of_run(options, ruleset)
    notes = output.Notes()
    in_place = options.in_place or arguments.lies_elsewhere(options.data)
    if in_place and (options.more or options.group):
        options.parser.error(
            "--more and --group need all rows in memory, but these rows are counted in their "
            "source; load a sample of the rows instead"
        )
    if options.black_box and "://" in options.data:
        options.parser.error(
            "--black-box: the model cannot predict rows in a database; store the predictions in a "
            "column and name it as --target, or export the table to Parquet"
        )
    model = _load_model(options)
    X, y, data, unknown = (_count_source if in_place else _read_rows)(
        options, ruleset, notes, model
    )
    groups = None
    if options.group:  # read separately, because it need not be a feature
        groups = _read_groups(options, ruleset)
    with notes.instead_of_warnings():
        queries = None if in_place else _queries(model, X)
        evaluation = evaluate_rules(ruleset, X, y, black_box=queries)
        scores = arguments.knowledge_scorer_from(options).score(evaluation)
        prediction = _predictions(evaluation)
        rule_evaluations = _evaluate_each_rule(options, ruleset, X, y) if options.measures else {}
        further_measures = {}
        if in_place and model is not None:
            further_measures["fidelity"] = _fidelity_in_place(options, ruleset, model)
        elif options.more or model is not None:
            further_measures = _measure_more(evaluation, groups)
    if unknown:
        total = sum(unknown.values())  # weights may be fractions
        rows = plural(int(total), "row") if total == int(total) else f"{total:g} rows"
        listed = ", ".join(sorted(map(repr, unknown)))
        notes.add(f"{rows} with classes that the rules do not have: {listed}")
    result = {
        "rules": str(options.rules),
        "data": data,
        "weights": arguments.weights_from(options),
        "completeness": options.completeness,
        "scores": {
            name: spec.signed(scores[spec.scorer_name]) for name, spec in SCORE_SPECS.items()
        },
        "n_rules": len(ruleset),
        "n_conditions": ruleset.n_conditions,
        "completeness_volume": scores["completeness_volume"],
        "completeness_instances": scores["completeness_instances"],
        "rows_covered": evaluation.n_rows[0],
        "prediction": prediction,
        **rule_evaluations,
        **further_measures,
        "notes": notes.texts,
    }
    return output.json_for_stdout(result) if options.format == "json" else _text(options, result)


#: Rows or counts, labels, description of the data, and counts of classes unknown to the rules.
_Data = tuple[Any, Any, dict[str, Any], dict[Any, float]]


def _load_model(options: argparse.Namespace) -> Any:
    """Load the black box from its file; return None without one."""
    if options.black_box is None:
        return None
    from skescore.black_boxes import load_black_box

    return load_black_box(options.black_box, trust=options.trust)


def _columns(model: Any, ruleset: RuleSet) -> list[str]:
    """Return the columns of a model, and further columns that rules use."""
    model_columns = map(str, getattr(model, "feature_names_in_", ruleset.feature_names))
    return list(dict.fromkeys([*model_columns, *used_features(ruleset)]))


def _queries(model: Any, X: Any) -> Any:
    if model is None:
        return None
    from skescore.extractors import Oracle

    return Oracle(model, like=X).query


def _read_rows(
    options: argparse.Namespace, ruleset: RuleSet, notes: output.Notes, model: Any = None
) -> _Data:
    """Read the rows into memory."""
    for name in ("weight", "memory"):
        if getattr(options, name) is not None:
            options.parser.error(
                f"--{name} is for rows of a data source, such as a folder of Parquet files; with a "
                "single file, add --in-place"
            )
    dataset = _load(options, ruleset, model)
    notes.add_findings(dataset.name, dataset.findings)
    rows = dataset.X.reindex(columns=ruleset.feature_names)
    notes.add_drift(*differences_from_training(options.rules, ruleset, rows))
    unknown = set(dataset.class_counts) - set(ruleset.classes or ())
    counts: dict[Any, float] = {label: dataset.class_counts[label] for label in unknown}
    data = inputs.describe_data(options, dataset)
    del data["distribution"]  # for training rows only; here unused columns are empty
    return dataset.X, dataset.y, data, counts


def _count_source(
    options: argparse.Namespace, ruleset: RuleSet, notes: output.Notes, model: Any = None
) -> _Data:
    """Count the rows of a data source."""
    from skescore.sources import DataSource, count_source

    if options.target is None:
        options.parser.error("rows of a data source need --target COLUMN")
    reading_options = [name for name in _READING if getattr(options, name)]
    if reading_options or options.missing != "keep":
        name = (reading_options or ["missing"])[0].replace("_", "-")
        options.parser.error(
            f"--{name} only applies to files that are read; the rows of a data source are counted "
            "as stored. Leave the option out, or prepare the rows in a view"
        )
    if options.task not in ("auto", ruleset.task):
        _refuse_task(options, ruleset, "--task", options.task)
    source_name = arguments.without_passwords(options.data)
    warn_of_conversions(notes, options.rules, ruleset, options.target)
    counts = count_source(
        ruleset,
        DataSource(options.data, options.target, options.weight, memory=options.memory),
        rule_measures=bool(options.measures),
    )
    data = {
        "name": source_name,
        "source": source_name,
        "task": ruleset.task,
        "target": options.target,
        "weight": options.weight,
        "rows": sum(counts.n_rows),
        "rows_dropped": 0,
        "features": used_features(ruleset),
    }
    unknown: dict[Any, float] = {}
    if counts.classes is not None:
        totals = counts.classes.predicted.sum(axis=1).tolist()
        labels = dict(zip(counts.classes.labels, totals, strict=True))
        unknown = {k: v for k, v in labels.items() if v and k not in set(ruleset.classes or ())}
    return counts, None, data, unknown


def _fidelity_in_place(
    options: argparse.Namespace, ruleset: RuleSet, model: Any
) -> dict[str, dict[str, float]]:
    """Measure how well rules imitate the model, which predicts batch by batch."""
    from skescore.scorers import evaluate_rules
    from skescore.sources import DataSource, count_source

    counts = count_source(
        ruleset,
        DataSource(options.data, sample_weight=options.weight, n_jobs=-1),
        black_box=model,
        rule_measures=False,
    )
    return _predictions(evaluate_rules(ruleset, counts))


def _refuse_task(options: argparse.Namespace, ruleset: RuleSet, name: str, other: str) -> NoReturn:
    raise ValueError(
        f"The rules in {options.rules} are for {ruleset.task}, but {name} is for {other}. "
        f"Score them on data for {ruleset.task}."
    )


def _load(options: argparse.Namespace, ruleset: RuleSet, model: Any = None) -> Dataset:
    """Load the columns and the target for which the rules were made.

    With a model, also load the columns of the model.
    """
    from skescore.datasets import DatasetError

    names = used_features(ruleset) or list(ruleset.feature_names)
    if model is not None:
        names = _columns(model, ruleset)

    task = ruleset.task if options.task == "auto" else options.task
    for name, other in (("--task", task), (options.data, DATA_SET_TASKS.get(options.data, task))):
        if other != ruleset.task:
            _refuse_task(options, ruleset, name, other)
    try:
        dataset = inputs.data_from(
            options,
            task=task,
            features=names,
            preparation=preparation_of(options.rules, ruleset),
        )
        if model is None:
            return replace(dataset, X=dataset.X.reindex(columns=ruleset.feature_names))
        from skescore.black_boxes import check_matches

        check_matches(model, dataset)
        return dataset
    except DatasetError as error:
        if "features" not in str(error):
            raise
        raise ValueError(
            f"{error} The rules in {options.rules} have these features; score them on data with "
            "the same columns."
        ) from error


def _read_groups(options: argparse.Namespace, ruleset: RuleSet) -> pd.DataFrame:
    """Return the column of --group as texts, for the rows with a label."""
    from skescore.datasets import ColumnReading

    column = ColumnReading(options.group, "category")
    preparation = replace(preparation_of(options.rules, ruleset), columns=(column,))
    return inputs.data_from(
        options, task=ruleset.task, features=[options.group], preparation=preparation
    ).X


def _predictions(evaluation: RuleEvaluation) -> dict[str, dict[str, float]]:
    """Return every measure of predictions, on covered rows and on all rows with a penalty."""
    from skescore.metrics import PREDICTION_METRICS, RuleCounts

    is_summed = isinstance(evaluation.X, RuleCounts) and evaluation.ruleset.classes is None
    task = evaluation.ruleset.task
    result = {}
    for name, metric in PREDICTION_METRICS.items():
        if task in metric.tasks and not (is_summed and metric.of_sums is None):
            measure = evaluation.performance if metric.greater_is_better else evaluation.loss
            result[name] = {
                "covered_rows": measure(name, "ignore"),
                "all_rows": measure(name, "penalize"),
            }
    return result


def _evaluate_each_rule(
    options: argparse.Namespace, ruleset: RuleSet, X: Any, y: Any
) -> dict[str, Any]:
    """Evaluate each rule separately, and average the measures."""
    from skescore.metrics import characteristics, rule_report

    measures, uses_assigned_rows = options.measures, options.assigned_rows
    report = rule_report(ruleset, X, y, measures=measures, assigned=uses_assigned_rows)
    columns = dict.fromkeys([*_COLUMNS, *measures])
    return {
        "measures": list(measures),
        "assigned_rows": uses_assigned_rows,
        "rules_by_themselves": [
            {"number": number, **{name: row[name] for name in columns}}
            for number, row in zip(report.index, report.to_dict(orient="records"), strict=True)
        ],
        "characteristics": characteristics(ruleset, X, y),
    }


def _measure_more(e: RuleEvaluation, groups: Any) -> dict[str, Any]:
    """Compute measures beyond the scores, with details."""
    from sklearn.exceptions import UndefinedMetricWarning

    from skescore.metrics import rule_overlap
    from skescore.scorers import SET_MEASURES, make_set_scorer

    available = ("rules", "rows", "labels", *(["black_box"] if e.black_box else []))
    values = {}
    # Voting rules would be evaluated again without each of their conditions.
    is_slow = e.ruleset.voting is not None and e.ruleset.n_literals > _MAX_VOTING_CONDITIONS
    for name, measure in SET_MEASURES.items():
        if is_slow and name.startswith("redundant"):
            values[name] = math.nan
        elif measure.needs in available and e.ruleset.task in measure.tasks:
            with warnings.catch_warnings():  # the table shows undefined values
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                value = make_set_scorer(measure).score(e)
            values[name] = value if measure.greater_is_better else 0.0 - value
    details = {
        "more": values,
        "ordered": e.ruleset.ordered,
        "contradictions": [
            {"rules": [first, other], "share": share}
            for first, other, share in rule_overlap(e.ruleset, e.X).worst_pairs()
        ]
        if len(e.ruleset) <= _MAX_PAIRED_RULES
        else [],
        "calibration": _calibration(e, e.y_true, "data"),
        "printed_reference": _printed_reference(e.ruleset),
    }
    if e.black_box is not None and e.ruleset.reference == "black_box":
        model_predictions = e.black_box(e.rows)
        details["calibration_of_agreement"] = _calibration(e, model_predictions, "black_box")
    return details if e.black_box is None else details | _measure_agreement(e, groups)


def _calibration(e: RuleEvaluation, y: Any, reference: str) -> list[Any]:
    """Compare the printed shares of rules with their shares on these rows; return records."""
    from skescore.metrics import rule_calibration

    calibration = rule_calibration(e.ruleset, e.X, y, e.sample_weight, reference=reference)
    return list(calibration.to_frame().reset_index().to_dict(orient="records"))


def _printed_reference(ruleset: RuleSet) -> str | None:
    """Return what the printed shares compare rules with: "data", "black_box", or None (unknown)."""
    has_correctness = any(
        rule.correctness(ruleset.output_index(rule)) is not None for rule in ruleset.rules
    )
    return "data" if has_correctness else ruleset.reference


def _measure_agreement(e: RuleEvaluation, groups: Any) -> dict[str, Any]:
    """Measure the agreement with the black box by class, by group and by feature."""
    from skescore.metrics import feature_agreement, group_fidelity

    assert e.black_box is not None
    task, model_predictions = e.ruleset.task, e.black_box(e.rows)
    features = feature_agreement(e.ruleset, e.black_box, e.rows).to_frame()
    agreement: dict[str, Any] = {
        "features": features.reset_index().to_dict(orient="records"),
    }
    by: dict[str, Any] = {"fidelity_by_class": None} if task == "classification" else {}
    if groups is not None:
        by["fidelity_by_group"] = groups.iloc[:, 0].to_numpy()
    for name, groups_of_rows in by.items():
        frame = group_fidelity(model_predictions, e.y_pred, groups_of_rows, task=task).to_frame()
        agreement[name] = frame.reset_index().to_dict(orient="records")
    return agreement


def _print_calibrations(printer: Printer, result: Mapping[str, Any]) -> None:
    """Write tables that compare the printed shares or means of rules with these rows."""
    is_classification = result["data"]["task"] == "classification"
    reference = result["printed_reference"]
    heading, column = "mean predictions of rules compared with the target", "mean prediction"
    if is_classification:
        heading, column = "printed shares of rules compared with the target", "printed"
    _print_calibration(printer, result["calibration"], heading, column)
    if is_classification and result["calibration"]:
        if reference == "data":
            printer.line(
                "(Printed: the share 'right (data)'. Observed: the share of these rows that is "
                "right.)"
            )
        elif reference == "black_box":
            printer.line(
                "(Printed: agreement with the model. Observed: the share of these rows that is "
                "right. The two also differ where the model is wrong.)"
            )
        if all(math.isnan(rule["printed"]) for rule in result["calibration"]):
            printer.line("(No rule has a printed share that counts unweighted rows.)")
    if is_classification and "calibration_of_agreement" in result:
        heading = "printed agreement of rules with the model compared with these rows"
        _print_calibration(printer, result["calibration_of_agreement"], heading, column)


def _print_calibration(
    printer: Printer, calibration: Sequence[Mapping[str, Any]], heading: str, column: str
) -> None:
    rules = [rule for rule in calibration if not math.isnan(rule["printed"])]
    if not rules:
        return
    printer.heading(heading)
    rows = [
        [
            str(rule["rule"]),
            number(rule["printed"]),
            number(rule["observed"]),
            f"{number(rule['low'])} to {number(rule['high'])}",
            _count_text(rule["rows"]),
            "yes" if rule["within"] else "no",
        ]
        for rule in rules
    ]
    printer.table(["rule", column, "observed", "95 % interval", "rows", "within"], rows)


def print_more(printer: Printer, result: Mapping[str, Any]) -> None:
    """Write the measures beyond the scores."""
    from skescore.scorers import SET_MEASURES

    printer.heading("measures beyond the scores")
    rows = [
        [
            name.replace("_", " "),
            number(value),
            "greater" if SET_MEASURES[name].greater_is_better else "smaller",
            SET_MEASURES[name].text,
        ]
        for name, value in result["more"].items()
    ]
    printer.table(
        ["measure", "value", "better", "meaning"], rows, left=("measure", "better", "meaning")
    )
    if result["contradictions"]:
        printer.heading("rules that contradict each other")
        listed = [[*map(str, r["rules"]), number(r["share"])] for r in result["contradictions"]]
        printer.table(["rule", "and rule", "share of the rows"], listed)
        if result["ordered"]:
            printer.line(
                "(In an ordered list, the first rule that covers a row predicts it, so the "
                "contradiction has no effect.)"
            )
    _print_calibrations(printer, result)
    for name, noun in (("fidelity_by_class", "class"), ("fidelity_by_group", "group")):
        if name in result:
            printer.heading(f"agreement with the model by {noun}")
            listed = [
                [str(row["group"]), _count_text(row["rows"]), number(row["fidelity"])]
                for row in result[name]
            ]
            printer.table([noun, "rows", "fidelity"], listed, left=(noun,))
    if "features" in result:
        printer.heading("permutation importance of features, as shares")
        listed = [
            [row["feature"], number(row["black_box"]), number(row["rules"])]
            for row in result["features"]
            if row["black_box"] or row["rules"]
        ]
        printer.table(["feature", "model", "rules"], listed, left=("feature",))


def _describe_score(spec: ScoreSpec, weights: dict[str, float]) -> str:
    better = "greater" if spec.greater_is_better else "smaller"
    weight_list = ", ".join(f"{name} {weights[name]:g}" for name in spec.weight_names)
    return f"{better} is better" + (f" ({weight_list})" if weight_list else "")


def _print_predictions(printer: Printer, values: Mapping[str, Mapping[str, float]]) -> None:
    table = [
        [
            metric_label(name),
            number(v["covered_rows"]),
            number(v["all_rows"]),
        ]
        for name, v in values.items()
    ]
    printer.table(["measure", "covered rows", "all rows"], table, left=("measure",))


def _text(options: argparse.Namespace, result: dict[str, Any]) -> str:
    from skescore.scorers import SCORE_SPECS

    printer = output.Printer(options.format == "markdown")
    data, number = result["data"], output.number
    n_dropped = data["rows_dropped"]
    suffix = f" ({plural(n_dropped, 'row')} with missing values dropped)" if n_dropped else ""
    printer.line(
        f"{result['rules']}: {plural(result['n_rules'], 'rule')} with "
        f"{plural(result['n_conditions'], 'condition')}, on {plural(data['rows'], 'row')} of "
        f"{data['name']}{suffix}"
    )
    printer.heading("scores")
    scores, weights = result["scores"], result["weights"]
    coverage = f"share of the rows that rules cover ({result['rows_covered']} of {data['rows']})"
    rows = [
        *(
            [spec.label, number(scores[name], 4), _describe_score(spec, weights)]
            for name, spec in SCORE_SPECS.items()
        ),
        [
            "completeness by volume",
            number(result["completeness_volume"]),
            "share of the feature space that rules cover",
        ],
        ["completeness by rows", number(result["completeness_instances"]), coverage],
    ]
    printer.table(["score", "value", "meaning"], rows, left=("score", "meaning"))
    kind = "rows" if result["completeness"] == "instances" else "volume"
    complete = [spec.label for spec in SCORE_SPECS.values() if spec.uses_completeness]
    printer.line(f"({' and '.join(complete)} use completeness by {kind}.)")
    printer.heading("predictions")
    _print_predictions(printer, result["prediction"])
    truth = "wrong" if data["task"] == "classification" else "predicted by the mean"
    printer.line(f"(In the column 'all rows', rows that no rule covers count as {truth}.)")
    if "fidelity" in result:
        printer.heading("predictions of the model")
        _print_predictions(printer, result["fidelity"])
    if "measures" in result:
        print_rules(printer, result)
    if "more" in result:
        print_more(printer, result)
    return printer.text()
