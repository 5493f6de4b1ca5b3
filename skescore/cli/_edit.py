"""``skescore edit``: edit saved rules, measure the effects, and keep a log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._arguments import (
    OF_DATA,
    OF_FILE,
    add_constraint_options,
    constraints_from,
)
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    read_rules,
    use_target_of_run,
    write_output,
)

if TYPE_CHECKING:
    from skescore.editing import Price, Reoptimization, RuleEditor

DESCRIPTION = """\
Change saved rules by hand: forbid features, change bounds, drop, merge, split or add rules. The
command reports the effect of all changes: the differences in correctness (agreement with the data),
fidelity (agreement with the model), ICE and FiRe, with confidence intervals, and the rows whose
predictions change. Edits are applied in the order of the options. NUMBER is the number of a rule in
RULES.json.

--log writes every step with its author, reason and time. --replay reads such a log instead, and
checks that it was not changed and that its edits lead to the stated rules.
Exit codes: 0 success, 1 failure, a changed log or violated constraints, 2 wrong usage.
"""
EXAMPLES = """\
examples:
  skescore edit run/rules.json data.csv --target y --set "2.age<=18" --drop 3
  skescore edit run/rules.json data.csv --target y --add "1:age<18=>no" --log log.json
  skescore edit run/rules.json data.csv --target y --forbid age --monotone "income:+" --reoptimize
  skescore edit run/rules.json data.csv --target y --forbid age --price
  skescore edit --replay log.json --output edited.json
"""
#: Placeholder and help text of each option for an edit.
_EDITS = {
    "set": (
        "TEXT",
        "change a rule, such as rule 2: bounds (2.age<=18, 2.age>none), values (2.color=red|blue, "
        "2.color!=red) or class (2=yes); otherwise=no: class of rows that no rule covers",
    ),
    "drop": ("NUMBER", "remove a rule"),
    "add": (
        "TEXT",
        ('add a rule: "age<=18 & color=red => no", or at position 1: "1: age<=18 => no"'),
    ),
    "move": ("NUMBER:POSITION", "move a rule to a position"),
    "merge": (
        "NUMBER,NUMBER",
        "merge two rules of one class into the smallest rule that contains both",
    ),
    "split": ("TEXT", "split a rule into two: 2.age<=30 or 2.color=red"),
}


class _EditOption(argparse.Action):
    """Collect edits of all kinds in the order of the options."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        edits = [*(getattr(namespace, "edits", None) or [])]
        namespace.edits = [*edits, (str(option_string).removeprefix("--"), values)]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(
        parser, "the rules, or the folder of a run; omitted with --replay", nargs="?"
    )
    # Columns that are not features of the rules are ignored; --drop removes rules.
    arguments.add_data_options(
        parser,
        is_optional=True,
        drops_columns=False,
        target_use=arguments.TARGET_OF_RUN,
    )
    parser.set_defaults(drop=[])
    parser.add_argument(
        "--replay",
        action=OF_FILE,
        type=Path,
        metavar="LOG.json",
        help="check this log, and write the rules that result from it",
    )
    group = parser.add_argument_group("edits (repeatable)")
    for name, (metavar, text) in _EDITS.items():
        group.add_argument(
            f"--{name}", action=_EditOption, dest="edits", metavar=metavar, help=text
        )
    add_constraint_options(parser)
    _add_result_options(parser)
    add_output_options(parser)
    arguments.add_format_option(parser)


def _add_result_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("effects and proofs")
    arguments.add_model_options(
        group, ": the rules are compared with its predictions, and --reoptimize learns from them"
    )
    group.add_argument(
        "--held-out",
        action=OF_DATA,
        metavar="TABLE",
        help="rows on which effects are measured (default: DATA)",
    )
    group.add_argument(
        "--reoptimize",
        action="store_true",
        help="refit all rules except the edited rules and the rules of --keep",
    )
    group.add_argument(
        "--repair",
        action="store_true",
        help="repair the edited rules so that they satisfy the constraints",
    )
    group.add_argument(
        "--keep",
        type=arguments.names_from,
        default=[],
        metavar="NUMBER,...",
        help="rules that --reoptimize does not change",
    )
    group.add_argument(
        "--price",
        action="store_true",
        help="prove how much each constraint lowers the best possible score",
    )
    arguments.add_seconds_option(group, 60.0, "time limit of --price for each constraint")
    group.add_argument(
        "--suggest",
        action="store_true",
        help=("list the smallest changes that restore 90 %% of the agreement lost by the edits"),
    )
    group = parser.add_argument_group("log")
    group.add_argument(
        "--log", action=OF_FILE, type=Path, metavar="LOG.json", help="write the log to this file"
    )
    group.add_argument("--by", metavar="NAME", help="author of the edits")
    group.add_argument("--because", metavar="TEXT", help="reason for the edits")


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    for path in (options.output, options.log):
        check_output(path, overwrite=options.overwrite)
    if options.replay is not None:
        return _replay(options)
    if options.rules is None or options.data is None:
        options.parser.error("RULES.json and DATA are required, or --replay LOG.json")
    editor = _editor(options)
    result = _Result(options, editor, _make_edits(options, editor))
    if options.log is not None:
        write_output(options.log, editor.log_.to_json() + "\n")
    if options.output is not None:
        write_output(options.output, editor.rules_.to_json() + "\n")
    if result.effect.violations:
        options.exit_code = 1
        n_violations = plural(len(result.effect.violations), "constraint")
        sys.stderr.write(f"skescore: the rules violate {n_violations}\n")
    return result.json() if options.format == "json" else result.text()


def _editor(options: argparse.Namespace) -> RuleEditor:
    """Read rules, rows and the model."""
    from skescore.editing import RuleEditor

    ruleset = read_rules(options.rules)
    use_target_of_run(options, ruleset)
    dataset = inputs.read_labeled_rows(options, ruleset)
    held_out = None
    if options.held_out is not None:
        rows = inputs.read_labeled_rows(options, ruleset, options.held_out)
        held_out = rows.X, rows.y.to_numpy()
    black_box = inputs.load_matching_model(options, dataset)
    if ruleset.domain is None:
        ruleset = ruleset.replace(domain=ruleset.domain_around(dataset.X))
    assert ruleset.domain is not None
    domain = {ruleset.feature_names[j]: values for j, values in ruleset.domain.categories}
    constraints = constraints_from(options, dataset.X, ruleset.classes, domain)
    if constraints is not None:
        constraints.check_names(ruleset.feature_names, ruleset.classes)
    return RuleEditor(
        ruleset,
        dataset.X,
        dataset.y.to_numpy(),
        black_box,
        held_out=held_out,
        constraints=constraints,
        author=options.by,
    )


def _make_edits(options: argparse.Namespace, editor: RuleEditor) -> Reoptimization | None:
    """Apply all edits in their order, and refit the other rules on request."""
    from skescore.editing import WrittenEdits

    parser = WrittenEdits(editor.rules_)
    for number in options.keep:
        parser.pin(int(number) if number.isdecimal() else 0)
    for option, text in options.edits or ():
        edit = parser.read(option, text, editor.rules_)
        try:
            editor.apply(edit, because=options.because)
        except ValueError as error:
            note = " (Rule numbers in this message refer to the rules after the earlier edits.)"
            raise ValueError(
                f"--{option} {text}: {error}{note if editor.log_.records else ''}"
            ) from error
        parser.record(edit)
    for feature in () if editor.constraints is None else editor.constraints.forbidden:
        index = editor.rules_.feature_names.index(feature)
        if index not in editor.rules_.used_features:
            continue
        try:
            editor.forbid(feature, because=options.because)
        except ValueError:  # combined with other features
            if not options.reoptimize:
                raise
    edited_rules = parser.touched
    if options.repair:  # may change and drop rules
        unchanged = {(r.conditions, r.output) for r in (editor.rules_[i - 1] for i in edited_rules)}
        editor.repair(because=options.because)
        pairs = enumerate(editor.rules_, 1)
        edited_rules = [i for i, r in pairs if (r.conditions, r.output) in unchanged]
    refitted = None
    if options.reoptimize:
        refitted = editor.reoptimize(edited_rules, because=options.because)
    rules = editor.rules_
    if editor.log_.records and rules.voting is None and (rules.ordered or rules.disjoint):
        editor.recount(because="statistics of the edited rules")
    return refitted


class _Result:
    """Result of the command: effects, refit, prices and suggestions."""

    def __init__(
        self, options: argparse.Namespace, editor: RuleEditor, refitted: Reoptimization | None
    ) -> None:
        self.options, self.editor, self.refitted = options, editor, refitted
        self.effect = editor.effect_of_all()
        self.prices: Sequence[Price] = _price_constraints(options, editor) if options.price else ()
        self.suggestions = editor.suggestions() if options.suggest else []

    def text(self) -> str:
        """Return the result as text or Markdown."""
        from skescore.editing import WHOLE_EDITS

        printer = output.Printer(self.options.format == "markdown")
        records = [r for r in self.editor.log_.records if r.edit["action"] not in WHOLE_EDITS]
        if records:
            printer.heading("edits")
            printer.verbatim("\n".join(record.to_text() for record in records))
        printer.heading("effect" if self.editor.log_.records else "the rules, unchanged")
        printer.verbatim("\n".join(self.effect.to_text().splitlines()[1:]))
        if self.refitted is not None:
            printer.heading("refit")
            printer.line(self.refitted.to_text().splitlines()[0])
        if self.prices:
            printer.heading("prices of the constraints")
            for price in self.prices:
                printer.line(str(price))
        if self.options.suggest:
            printer.heading("changes that restore 90 % of the loss")
            for suggestion in self.suggestions:
                printer.line(str(suggestion))
            if not self.suggestions:
                printer.line("no agreement was lost, or no single change restores 90 % of the loss")
        printer.heading("rules")
        printer.verbatim(self.editor.rules_.to_text())
        printer.line(f"seal of the log: {self.editor.log_.seal}")
        return printer.text()

    def json(self) -> str:
        """Return the result as JSON."""
        refit = self.refitted
        return output.json_for_stdout(
            {
                "effect": self.effect.to_json(),
                "refit": refit and {"is_better": refit.is_better, "distance": refit.distance},
                "prices": [
                    {
                        "constraints": list(price.constraints.parts()),
                        "lower": price.lower,
                        "upper": price.upper,
                        "score": price.score_label,
                    }
                    for price in self.prices
                ],
                "suggestions": [
                    {"edit": s.edit, "restored": s.restored, "rows_changed": s.n_rows_changed}
                    for s in self.suggestions
                ],
                "rules": self.editor.rules_.to_text(),
                "seal": self.editor.log_.seal,
            }
        )


def _price_constraints(options: argparse.Namespace, editor: RuleEditor) -> list[Price]:
    """Bound the loss of score from each constraint, for small rules on the training rows."""
    from skescore.editing import price
    from skescore.optimal import SolverLimits

    rows = editor.training_rows
    y: Any = rows.y if rows.model is None else rows.model
    if editor.rules_.classes is not None:
        y = y.astype(object)  # floats would be the target of a regression
    limits = SolverLimits(time_limit=options.seconds)
    parts = {} if editor.constraints is None else editor.constraints.parts()
    for label, part in parts.items():
        if part.monotone:  # prices know no rules, whose order of classes is the default
            parts[label] = part.replace(class_order=part.ranked_classes(editor.rules_))
    return [
        price(part, rows.X, y, max_rules=4, tolerance=0.0025, limits=limits)
        for part in parts.values()
    ]


def _replay(options: argparse.Namespace) -> str:
    """Check a log and write the rules that it leads to."""
    from skescore.editing import EditLog

    if options.rules is not None or options.edits:
        options.parser.error("--replay reads the rules from the log; omit RULES.json and edits")
    log = EditLog.from_json(options.replay.read_text(encoding="utf-8"))
    if options.output is not None:
        write_output(options.output, log.rules.to_json() + "\n")
    if options.format == "json":
        return output.json_for_stdout(
            {"steps": len(log.records), "seal": log.seal, "rules": log.rules.to_text()}
        )
    printer = output.Printer(options.format == "markdown")
    printer.line(
        f"{options.replay}: {plural(len(log.records), 'step')}, unchanged; replaying them leads to "
        "the stated rules."
    )
    printer.verbatim(log.to_text())
    printer.heading("rules")
    printer.verbatim(log.rules.to_text())
    printer.line(f"seal of the log: {log.seal}")
    return printer.text()
