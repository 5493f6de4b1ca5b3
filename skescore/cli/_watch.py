"""``skescore watch``: detect when saved rules become less accurate on new rows."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import expand_home
from skescore._optional import import_optional
from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_FILE, OF_ROWS
from skescore.cli._inputs import as_text, find_column, raw_table, read_labels, read_rows
from skescore.cli._rule_files import (
    STATE,
    preparation_of,
    read_baseline,
    read_rules,
    read_target,
    warn_of_conversions,
    write_output,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from skescore.datasets import Preparation
    from skescore.metrics import DecisionCounts
    from skescore.monitoring import RuleChange, RuleMonitor, WatchState
    from skescore.rules import RuleSet

DESCRIPTION = """\
Detect when saved rules become less accurate, or predict other shares of the rows. `skescore watch`
adds new rows batch by batch, and reports which rule changed, since when and by how much. It
compares the new rows with held-out rows, which were counted by `skescore tune --output`
(baseline.json) or by `skescore watch init`. The probability of ever raising a false alarm is at
most --alpha, however often the command runs.

Every batch counts once, even if the command is repeated or killed. Exit codes: 0 no change, 1
failure, 2 wrong usage, 3 a rule changed (until `watch init --overwrite` resets the alarm).
"""
EXAMPLES = """\
examples:
  skescore watch run/rules.json monday.csv --page watch.html
  skescore watch init run/rules.json held_out.csv --target price --state state.json
  skescore watch run/rules.json monday.csv --state state.json --key id
  skescore watch run/rules.json labels.csv --state state.json --key id --target price --labels
  skescore watch run/rules.json 'sales/*.parquet' --state state.json --target price --batch 2026-05
"""
#: Exit code while there is an alarm.
_CHANGED = 3
_STDIN = "-"
_ALPHA = 0.05


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(parser)
    parser.add_argument(
        "data",
        action=OF_ROWS,
        metavar="ROWS",
        help="a table; - for CSV from standard input; or rows that are counted in their source: a "
        "folder or glob of Parquet files, duckdb:///FILE?table=T, "
        "postgresql://USER@HOST/DATABASE?table=T, any URL of SQLAlchemy",
    )
    parser.add_argument(
        "--init",
        action="store_true",
        help="create the state from held-out rows, to which neither the model nor the rules were "
        "fitted; `skescore watch init` is the same",
    )
    parser.add_argument(
        "--state",
        action=OF_FILE,
        type=Path,
        metavar="FILE",
        help=f"file of the state, which every update replaces (default {STATE} in the folder of "
        "the rules; the first update starts from baseline.json there)",
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column of labels, empty for labels that are not known yet (default for tables: the "
        "target in run.json in the folder of the rules, if the table has this column)",
    )
    parser.add_argument(
        "--batch",
        metavar="NAME",
        help="name of the batch; a batch with the same name is not counted again (default: name "
        "and checksum of the file; required for rows in a source)",
    )
    parser.add_argument(
        "--time", metavar="TIME", help="arrival time of the rows, for reports (default: now)"
    )
    group = parser.add_argument_group("late labels")
    group.add_argument(
        "--key",
        metavar="COLUMN",
        help="column that identifies rows; FILE.pending stores rows until their label arrives",
    )
    group.add_argument(
        "--labels",
        action="store_true",
        help="ROWS contains late labels of earlier rows, in the columns of --key and --target",
    )
    _add_model_options(parser)
    _add_output_options(parser)
    group = parser.add_argument_group("settings of `watch init` and of the first update")
    group.add_argument(
        "--alpha",
        type=arguments.number_above(0),
        metavar="P",
        help="largest probability of ever raising a false alarm (default 0.05)",
    )
    group.add_argument(
        "--tolerance",
        action="append",
        type=_tolerance,
        default=[],
        metavar="KIND=CHANGE",
        help="largest change of a rate that is not reported, as in error=0.02; for error and "
        "disagreement (default 0), share, outside and missing (default 0.02); repeatable",
    )
    group.add_argument("--overwrite", action="store_true", help="replace an existing state")
    arguments.add_reading_options(parser.add_argument_group("reading a table"))


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the model")
    arguments.add_model_options(group, ", whose agreement with the rules is monitored")
    group.add_argument(
        "--model-column",
        metavar="COLUMN",
        help="column with the predictions of the model, instead of --black-box",
    )


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    arguments.add_format_option(group)
    group.add_argument(
        "--page", action=OF_FILE, type=Path, metavar="FILE", help="write an HTML page"
    )
    group.add_argument(
        "--prometheus",
        action=OF_FILE,
        type=Path,
        metavar="FILE",
        help="write metrics to this file in the text format of Prometheus",
    )
    group.add_argument(
        "--mlflow", metavar="RUN", help="log metrics to this run of MLflow, by its id"
    )
    group.add_argument(
        "--on-alarm",
        metavar="COMMAND",
        help="run this command after new alarms, with the alarms as JSON on its standard input; "
        "it is repeated at the next updates until it succeeds. It runs without a shell; for "
        "redirections or pipes, use sh -c '...'",
    )


def _tolerance(text: str) -> tuple[str, float]:
    """Read the tolerance of a kind of monitor (argparse type)."""
    kind, _, number = text.partition("=")
    try:
        return kind.strip(), float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be like error=0.02, got {text!r}") from None


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    from skescore.monitoring import locked

    _check(options)
    ruleset = read_rules(options.rules)
    notes = output.Notes()
    options.state = expand_home(options.state or options.rules.parent / STATE)
    new_changes: list[RuleChange] = []
    with _table_file(options), locked(options.state):
        if options.init:
            state = _initialize(options, ruleset, notes)
        else:
            state, new_changes = _update(options, ruleset, notes)
        _announce(options, state, notes)
    _export(options, state)
    changes = state.monitor.changes()
    options.exit_code = _CHANGED if changes else 0
    return _report(options, state, new_changes, notes)


def _check(options: argparse.Namespace) -> None:
    """Report options that exclude or require each other."""
    error = options.parser.error
    if options.labels and (options.key is None or options.target is None):
        error("--labels needs --key and --target")
    if options.init and (options.labels or options.key):
        error("`watch init` needs rows together with their labels; leave out --key and --labels")
    if options.overwrite and not options.init:
        error("--overwrite is only allowed with `watch init`")
    if options.black_box and options.model_column:
        error("--black-box and --model-column exclude each other")
    if options.mlflow:
        import_optional("mlflow", extra="mlflow", purpose="Logging to MLflow")
    if arguments.lies_elsewhere(options.data) and options.data != _STDIN:
        if options.black_box:
            error("rows in a source cannot be predicted; use --model-column")
        if options.key:
            error("--key needs a table in a file, because rows in a source are not read one by one")
        if options.batch is None and not options.init:
            error("rows in a source need --batch NAME, so that they count once")


@contextmanager
def _table_file(options: argparse.Namespace) -> Iterator[None]:
    """Store standard input in a temporary file while it is read."""
    options.data_name = "standard input" if options.data == _STDIN else options.data
    if options.data != _STDIN:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(sys.stdin.buffer.read())
        options.data = str(path)
        yield


def _now(options: argparse.Namespace) -> str:
    if options.time is not None:
        return str(options.time)
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _batch_name(options: argparse.Namespace) -> str:
    """Return the name of the batch, by default the name of the file and a hash of its content."""
    if options.batch is not None:
        return str(options.batch)
    path = expand_home(options.data)
    if not path.is_file():
        return str(options.data)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    return f"{Path(options.data_name).name}:{digest}"


class _WatchedRows:
    """Rows of a table: features, and if available labels and predictions of the model."""

    def __init__(self, options: argparse.Namespace, ruleset: RuleSet, notes: output.Notes) -> None:
        import pandas as pd

        has_model = options.black_box is not None  # may use features that no rule uses
        self.X: pd.DataFrame = read_rows(options, ruleset, options.data, needs_all=has_model)
        self._options, self._ruleset = options, ruleset
        self._tables: dict[bool, pd.DataFrame] = {}
        target = options.target
        if target is None and (name := read_target(options.rules, ruleset)) is not None:
            target = name if name in raw_table(options, ruleset, options.data).columns else None
        preparation = preparation_of(options.rules, ruleset)
        self.y = self.labels(target, preparation)
        if self.y is not None:
            _note_missing_labels(target, self.y, notes, waits=options.key is not None)
        self.model: Any = self.labels(options.model_column, replace(preparation, labels={}))
        if options.black_box:
            from skescore.black_boxes import check_matches, load_black_box
            from skescore.datasets import Dataset
            from skescore.extractors import Oracle

            model = load_black_box(options.black_box, trust=options.trust)
            classes = pd.Series(list(ruleset.classes or ()), name=target)
            task: Any = ruleset.task
            check_matches(model, Dataset(self.X, classes, task, options.data_name, "", ""))
            self.model = Oracle(model, like=self.X).query(self.X)

    def column(self, name: str, *, keeps_zeros: bool = False) -> pd.Series:
        """Return a column with the values in the file."""
        if keeps_zeros not in self._tables:
            data = self._options.data
            table = raw_table(self._options, self._ruleset, data, keeps_zeros=keeps_zeros)
            if len(table) != len(self.X):
                raise ValueError(
                    f"{self._options.data_name} has {plural(len(table), 'row')}, but "
                    f"{len(self.X)} of them have values. Remove the empty rows."
                )
            self._tables[keeps_zeros] = table
        return find_column(self._tables[keeps_zeros], name, self._options.data_name)

    def labels(self, name: str | None, preparation: Preparation) -> Any:
        """Return the labels in a column; None if `name` is None."""
        if name is None:
            return None
        column, na_values = self.column(name), self._options.na_values
        return read_labels(self._ruleset, column, preparation, na_values)


def _note_missing_labels(
    column: str | None, labels: Any, notes: output.Notes, *, waits: bool = False
) -> None:
    """Report how many rows have no label, because errors are counted without them."""
    import pandas as pd

    n_missing = int(pd.isna(labels).sum())
    if n_missing:
        effect = "wait for one" if waits else "do not count for errors"
        notes.add(
            f"{n_missing} of {plural(len(labels), 'row')} have no label in column {column!r} and "
            f"{effect}"
        )


def _initialize(options: argparse.Namespace, ruleset: RuleSet, notes: output.Notes) -> WatchState:
    """Make a state from held-out rows."""
    from skescore.monitoring import RuleBaseline, RuleMonitor, WatchState, rules_fingerprint

    if options.state.exists() and not options.overwrite:
        raise ValueError(
            f"--state {options.state} already exists. Pass --overwrite to discard its counts."
        )
    if arguments.lies_elsewhere(options.data):
        if ruleset.classes is None and options.target:
            raise ValueError(
                "In regression, tolerances are quantiles, which must be estimated from a table in "
                f"a file. Export a sample of {options.data_name} to Parquet."
            )
        counts = _count_source(options, ruleset, notes, None)
        baseline = RuleBaseline(rules_fingerprint(ruleset), counts)
    else:
        rows = _WatchedRows(options, ruleset, notes)
        baseline = RuleBaseline.from_rows(ruleset, rows.X, rows.y, model_predictions=rows.model)
    monitor = RuleMonitor(
        ruleset, baseline, alpha=options.alpha or _ALPHA, tolerances=dict(options.tolerance)
    )
    if "error" not in monitor.kinds:
        notes.add("errors are not monitored, because there are no labels; use --target")
    state = WatchState(options.state, monitor)
    options.state.with_name(options.state.name + ".pending").unlink(missing_ok=True)
    state.write()
    return state


def _load_state(options: argparse.Namespace, ruleset: RuleSet) -> WatchState:
    """Read the state; the first update makes it from the baseline in the folder of the rules."""
    from skescore.monitoring import RuleMonitor, WatchState

    if not options.state.exists():
        baseline = read_baseline(options.rules, ruleset)
        if baseline is not None:
            tolerances = dict(options.tolerance)
            alpha = options.alpha or _ALPHA
            monitor = RuleMonitor(ruleset, baseline, alpha=alpha, tolerances=tolerances)
            return WatchState(options.state, monitor)
    elif options.alpha or options.tolerance:
        options.parser.error(
            f"--alpha and --tolerance are settings of the first update, but {options.state} "
            "already exists; leave the options out, or start again with `watch init --overwrite`"
        )
    return WatchState.load(options.state, ruleset)


def _count_source(
    options: argparse.Namespace,
    ruleset: RuleSet,
    notes: output.Notes,
    monitor: RuleMonitor | None,
) -> DecisionCounts:
    """Count the rows of a source with one query."""
    from skescore.sources import count_source_decisions

    reading_options = {k: v for k, v in arguments.reading_from(options).items() if v}
    if reading_options:
        options.parser.error(
            f"--{next(iter(reading_options)).replace('_', '-')} only applies to files that are "
            "read; the rows of a source are counted as stored. Leave the option out"
        )
    warn_of_conversions(notes, options.rules, ruleset, options.target)
    tolerances = {}
    if monitor is not None:
        tolerances = {
            "error_tolerances": monitor.baseline.error_tolerances,
            "model_tolerances": monitor.baseline.model_tolerances,
        }
    return count_source_decisions(
        ruleset, options.data, options.target, model_column=options.model_column, **tolerances
    )


def _update(
    options: argparse.Namespace, ruleset: RuleSet, notes: output.Notes
) -> tuple[WatchState, list[RuleChange]]:
    """Add a new batch to the state, and return the state and the detected changes."""
    state = _load_state(options, ruleset)
    batch, time = _batch_name(options), _now(options)
    if batch in state.batches:
        notes.add(f"batch {batch} was counted before; nothing changes")
        return state, []
    monitor = state.monitor
    if options.labels:
        new = _add_labels(options, ruleset, state, notes, batch, time)
    elif arguments.lies_elsewhere(options.data):
        counts = _count_source(options, ruleset, notes, monitor)
        new = monitor.update_counts(counts, batch=batch, time=time)
    else:
        rows = _WatchedRows(options, ruleset, notes)
        if options.key is not None:
            _wait_for_labels(options, state, rows)
        new = monitor.update(rows.X, rows.y, model_predictions=rows.model, batch=batch, time=time)
    state.save(batch)
    return state, new


def _wait_for_labels(options: argparse.Namespace, state: WatchState, rows: _WatchedRows) -> None:
    """Store rows without a label, with their predictions."""
    import numpy as np
    import pandas as pd

    from skescore.metrics import predict_all_rows

    ruleset = state.monitor.ruleset
    keys = as_text(rows.column(options.key, keeps_zeros=True))  # 007 and 7 are different keys
    if keys.isna().any():
        raise ValueError(
            f"--key {options.key}: {plural(int(keys.isna().sum()), 'row')} of "
            f"{options.data_name} have no key. Fill them in, or drop the rows."
        )
    unlabeled_rows = np.arange(len(rows.X))
    if rows.y is not None:
        unlabeled_rows = np.flatnonzero(pd.isna(rows.y))
    rule = np.asarray(ruleset.assign(rows.X))
    rule[rule < 0] = len(ruleset)
    predictions: np.ndarray[Any, Any] = predict_all_rows(ruleset, rows.X)
    state.pending.add(
        keys.iloc[unlabeled_rows].tolist(),
        rule[unlabeled_rows].tolist(),
        predictions[unlabeled_rows].tolist(),
        state.monitor.block_numbers(len(rows.X))[unlabeled_rows],
    )


def _add_labels(
    options: argparse.Namespace,
    ruleset: RuleSet,
    state: WatchState,
    notes: output.Notes,
    batch: str,
    time: str,
) -> list[RuleChange]:
    """Match late labels with the rows that wait for them."""
    import numpy as np
    import pandas as pd

    table = raw_table(options, ruleset, options.data)
    column = find_column(table, options.target, options.data_name)
    preparation = preparation_of(options.rules, ruleset)
    labels = read_labels(ruleset, column, preparation, options.na_values)
    table = raw_table(options, ruleset, options.data, keeps_zeros=True)
    keys = as_text(find_column(table, options.key, options.data_name))
    _note_missing_labels(options.target, labels, notes)
    is_known = np.asarray(~pd.isna(labels)) & keys.notna().to_numpy()
    known_keys, known_labels = keys[is_known].tolist(), labels[is_known].tolist()
    n_pairs = len(set(zip(known_keys, known_labels, strict=True)))
    if n_replaced := n_pairs - len(set(known_keys)):
        notes.add(
            f"{plural(n_replaced, 'label')} of repeated keys replaced by a later, different label"
        )
    matches = state.pending.match(known_keys, known_labels)
    if matches.n_unmatched:
        notes.add(
            f"{plural(matches.n_unmatched, 'label')} of {len(known_keys)} match no row that "
            "waits for a label; they are ignored"
        )
    if not matches.rules:
        return []
    counts = state.monitor.count_labels(
        matches.rules, matches.predicted, matches.blocks, np.array(matches.labels, dtype=object)
    )
    return state.monitor.update_labels(counts, batch=batch, time=time)


def _announce(options: argparse.Namespace, state: WatchState, notes: output.Notes) -> None:
    """Run the command of the user for alarms that it has not handled yet."""
    changes = state.monitor.changes()
    if options.on_alarm is None or len(changes) <= state.n_announced:
        return
    text = output.to_json([change.to_dict() for change in changes])
    result = subprocess.run(
        shlex.split(options.on_alarm), input=text, text=True, check=False, stdout=sys.stderr
    )
    if result.returncode == 0:
        state.n_announced = len(changes)
        state.write()
    else:
        notes.add(
            f"--on-alarm ended with exit code {result.returncode}; it runs again at the next update"
        )


def _export(options: argparse.Namespace, state: WatchState) -> None:
    """Write the page and the metrics."""
    from skescore.monitoring import log_to_mlflow, monitor_page, prometheus_text

    if options.page is not None:
        write_output(options.page, monitor_page(state.monitor, f"Rules of {options.rules}"))
    if options.prometheus is not None:
        write_output(options.prometheus, prometheus_text(state.monitor))
    if options.mlflow is not None:
        log_to_mlflow(state.monitor, options.mlflow)


def _report(
    options: argparse.Namespace, state: WatchState, new: list[RuleChange], notes: output.Notes
) -> str:
    """Write the status of all rules and their changes."""
    monitor = state.monitor
    frame = monitor.to_frame()
    changes = monitor.changes()
    if options.format == "json":
        result = {
            "rules": str(options.rules),
            "state": str(options.state),
            "batch": state.batches[-1] if state.batches else None,
            "rows": monitor.n_rows,
            "labels": monitor.n_labels,
            "alpha": monitor.alpha,
            "changed": sorted({change.rule for change in changes}),
            "new_changes": [change.to_dict() for change in new],
            "changes": [change.to_dict() for change in changes],
            "status": json.loads(frame.reset_index().to_json(orient="records")),
            "notes": notes.texts,
        }
        return output.json_for_stdout(result)
    printer = output.Printer(options.format == "markdown")
    if options.init:
        printer.line(f"Baseline of {plural(len(monitor.ruleset), 'rule')} in {options.state}:")
        _print_baseline(printer, monitor)
        return printer.text()
    printer.line(
        f"{plural(monitor.n_rows, 'row')} and {plural(monitor.n_labels, 'label')} so far; "
        f"{plural(len(changes), 'change') if changes else 'no change'}."
    )
    _print_status(printer, frame, monitor.kinds)
    for change in changes:
        printer.line(f"- {change}. Recommended: {change.action}.")
    is_wrong = any(change.kind in ("error", "disagreement") for change in changes)
    if is_wrong and (options.rules.parent / "run.json").exists():
        printer.line(
            "To revise these rules on the rows since a certain date: skescore tune DATA --from "
            f"{shlex.quote(str(options.rules.parent))} --time COLUMN --since DATE"
        )
    return printer.text()


def _print_baseline(printer: output.Printer, monitor: RuleMonitor) -> None:
    frame = monitor.baseline.to_frame()
    kinds = [kind for kind in monitor.kinds if kind in frame]
    rows = [
        [
            str(name),
            str(int(baseline["n_rows"])),
            *(
                f"{output.number(baseline[kind])} [{output.number(baseline[f'{kind}_lower'])}, "
                f"{output.number(baseline[f'{kind}_upper'])}]"
                for kind in kinds
            ),
        ]
        for name, baseline in frame.iterrows()
    ]
    printer.table(["rule", "rows", *kinds], rows)
    printer.line("(share: of all held-out rows; others: of the rule's rows; exact 95 % intervals)")


def _print_status(printer: output.Printer, frame: pd.DataFrame, kinds: tuple[str, ...]) -> None:
    shown_kinds = [kind for kind in kinds if kind in frame]
    rows = []
    for name, line in frame.iterrows():
        cells = []
        for kind in shown_kinds:
            old, new = line[f"baseline_{kind}"], line[kind]
            cells.append("-" if new != new else f"{output.number(old)} -> {output.number(new)}")
        rows.append([str(name), *cells, str(line["status"])])
    printer.table(["rule", *shown_kinds, "status"], rows, left=("rule", "status"))
