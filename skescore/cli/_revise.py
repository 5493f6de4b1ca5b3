"""Options of `skescore tune` that revise the rules of an earlier run on new rows."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import at_home, json_of
from skescore.cli import _arguments as arguments
from skescore.cli._arguments import OF_FOLDER
from skescore.cli._baseline_file import BASELINE, read_baseline
from skescore.cli._rule_files import preparation_of, read_rules

if TYPE_CHECKING:
    from skescore.datasets import Dataset, Preparation
    from skescore.monitoring import Revision, RuleBaseline, RuleChange
    from skescore.rules import RuleSet
    from skescore.tuning import ExtractorSearchCV

__all__ = [
    "REVISED",
    "EarlierRun",
    "add_revision_options",
    "check_revision_options",
    "revision_record",
    "use_earlier_options",
]

#: Options of an earlier run that are not repeated.
_NOT_REPEATED = (
    *("output", "overwrite", "report", "quiet", "format", "storage", "study", "workers"),
    *("fresh", "pick", "test", "certify", "tolerance", "from_run", "since", "keep_cost"),
    *("verify", "max_disagreement"),
)
#: Name of the revised rules in the leaderboard.
REVISED = "revised"
#: Default share of the score that kept rules may cost.
KEEP_COST = 0.02


def add_revision_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a revision."""
    group = parser.add_argument_group("revision of an earlier run")
    group.add_argument(
        "--from",
        dest="from_run",
        action=OF_FOLDER,
        type=Path,
        metavar="RUN",
        help="revise the rules in the folder of this run: rules that no longer hold on these rows "
        "are extracted again, the others are kept word for word; options and DATA default to those "
        "of that run",
    )
    group.add_argument(
        "--since",
        metavar="DATE",
        help="read only rows whose --time is this date or number, or a later one",
    )
    group.add_argument(
        "--keep-cost",
        type=_share,
        metavar="SHARE",
        help="largest loss of held-out score that keeping rules may cause, as a share of the score "
        f"of entirely new rules (default {KEEP_COST:g}); if the loss is larger, all rules are new",
    )


def _share(text: str) -> float:
    """Read a number of at least 0 (argparse type)."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return value


def use_earlier_options(options: argparse.Namespace) -> None:
    """Set options that the user did not name to those of the earlier run."""
    if options.from_run is None:
        return
    data = options.data
    earlier = _earlier_options(options.parser, options.from_run)
    merged = options.parser.parse_args(options.command_line[2:], namespace=earlier)
    vars(options).update({k: v for k, v in vars(merged).items() if k != "command_line"})
    options.data = earlier.earlier_data if data is None else data
    del options.earlier_data


def _earlier_options(parser: argparse.ArgumentParser, folder: Path) -> argparse.Namespace:
    """Return the options of the command that made a run."""
    path = at_home(folder) / "run.json"
    try:
        words = json_of(path.read_text(encoding="utf-8"))["run"]["command_line"]
        if words[1] != "tune":
            raise KeyError("command_line")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"--from {folder} is not the folder of a run of `skescore tune --output`: {path} "
            f"cannot be used ({error})."
        ) from error
    earlier = parser.parse_args(list(map(str, words[2:])))
    if earlier.from_run is not None:
        before = _earlier_options(parser, earlier.from_run)
        data = before.earlier_data if earlier.data is None else earlier.data
        earlier = parser.parse_args(list(map(str, words[2:])), namespace=before)
        earlier.data = data
    earlier.earlier_data = earlier.data
    for name in _NOT_REPEATED:
        setattr(earlier, name, parser.get_default(name))
    return earlier


def check_revision_options(options: argparse.Namespace) -> None:
    """Report options that do not go together."""
    error = options.parser.error
    if options.data is None:
        error("the following arguments are required: DATA")
    if options.since is not None and options.time is None:
        error("argument --since: needs the column of the time; add --time COLUMN")
    if options.since is not None and arguments.lies_elsewhere(options.data):
        error("argument --since: reads a table in a file; select the rows of a source by a query")
    if options.from_run is None:
        if options.keep_cost is not None:
            error("argument --keep-cost: goes with --from RUN")
        return
    if options.pick is not None:
        error("argument --pick: goes without --from, which compares the best candidate only")
    if options.workers != 1:
        error("argument --workers: goes without --from; use --n-jobs")
    if options.output is not None and at_home(options.output) == at_home(options.from_run):
        error("argument --output: must be another folder than that of --from")


@dataclass(frozen=True)
class EarlierRun:
    """Rules of an earlier run with their baseline, and how its table was read.

    Parameters
    ----------
    path : Path
        The file of the rules.
    ruleset : RuleSet
        The rules.
    baseline : RuleBaseline
        Their held-out counts.
    preparation : Preparation
        How the columns of its table were read.
    """

    path: Path
    ruleset: RuleSet
    baseline: RuleBaseline
    preparation: Preparation

    @classmethod
    def load(cls, folder: Path) -> EarlierRun:
        """Read a run.

        Raises
        ------
        ValueError
            If it has no baseline.
        """
        path = at_home(folder) / "rules.json"
        ruleset = read_rules(path)
        baseline = read_baseline(path, ruleset)
        if baseline is None:
            raise ValueError(
                f"--from {folder} has no {BASELINE}, so that changes of its rules cannot be "
                "recognized. Repeat that run with this version of skescore."
            )
        return cls(path, ruleset, baseline, preparation_of(path, ruleset))

    def read(self, options: argparse.Namespace) -> Dataset:
        """Read the new rows as the earlier table was read."""
        return arguments.data_from(
            options,
            task=self.ruleset.task,
            features=list(self.ruleset.feature_names),
            preparation=self.preparation,
        )

    def revise(self, options: argparse.Namespace, search: ExtractorSearchCV) -> Revision:
        """Revise the rules, and make them the winner of the search unless they cost too much."""
        from skescore.monitoring import find_changes, revise_rules

        changes = find_changes(self.ruleset, self.baseline, search)
        names = {(change.rule, change.kind) for change in changes}
        changes += [c for c in self._alarms() if (c.rule, c.kind) not in names]
        cost = KEEP_COST if options.keep_cost is None else options.keep_cost
        revision = revise_rules(search, self.ruleset, changes=changes, max_cost=cost)
        if revision.is_accepted:
            search.adopt(revision.extractor, name=REVISED)
        return revision

    def _alarms(self) -> list[RuleChange]:
        """Return the alarms of `skescore watch` that stand."""
        from skescore.cli._baseline_file import STATE
        from skescore.monitoring import WatchState

        try:
            state = WatchState.load(self.path.with_name(STATE), self.ruleset)
        except (FileNotFoundError, ValueError):
            return []  # not watched, or watched in another file
        return state.monitor.changes()


def revision_record(revision: Revision, folder: Path) -> dict[str, Any]:
    """Return a revision for the result of the search."""
    return {"from": str(folder), **revision.to_dict()}
