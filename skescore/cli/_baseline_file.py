"""The baseline of `skescore watch` that `skescore tune --output` writes beside the rules."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from skescore.cli._rule_files import data_of_run

if TYPE_CHECKING:
    from skescore.cli._output import Notes
    from skescore.datasets import Dataset
    from skescore.monitoring import RuleBaseline
    from skescore.rules import RuleSet
    from skescore.tuning import ExtractorSearchCV

__all__ = ["BASELINE", "STATE", "make_baseline", "read_baseline", "read_target"]

#: Name of the file in the folder of the rules.
BASELINE = "baseline.json"
#: Default state file of `skescore watch`, beside the rules.
STATE = "watch.json"


def make_baseline(
    options: argparse.Namespace, search: ExtractorSearchCV, test: Dataset | None, notes: Notes
) -> RuleBaseline | None:
    """Count held-out rows of the final rules: those of --test, or those of the folds.

    Returns
    -------
    RuleBaseline or None
        None without --output, or if the rules cannot be monitored, which a note explains.
    """
    from skescore.monitoring import RuleBaseline

    if options.output is None:
        return None
    try:
        if test is None:
            return RuleBaseline.from_search(search)
        return RuleBaseline.from_rows(
            search.rules_,
            test.X,
            None if options.explains_labels else test.y,
            model_predictions=search.oracle_.query(test.X),
        )
    except Exception as error:  # the rules themselves are not affected
        notes.add(f"there is no {BASELINE} for `skescore watch`: {error}")
        return None


def read_baseline(rules_path: Path, ruleset: RuleSet) -> RuleBaseline | None:
    """Return the baseline beside the rules; None without one.

    Raises
    ------
    ValueError
        If it is damaged or belongs to other rules.
    """
    from skescore.monitoring import RuleBaseline

    path = rules_path.parent / BASELINE
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        baseline = RuleBaseline.from_json(text)
        baseline.check_rules(ruleset)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return baseline


def read_target(rules_path: Path, ruleset: RuleSet) -> str | None:
    """Return the target of the run that made the rules; None without its run.json."""
    target = data_of_run(rules_path, ruleset).get("target")
    return None if target is None else str(target)
