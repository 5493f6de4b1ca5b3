"""Files of rules and of runs, and output files of commands."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import json_of, try_lock, write_atomically
from skescore._names import DATA_SET_TASKS, FETCHED
from skescore._optional import import_optional
from skescore._text import csv_of, listed, plural
from skescore.cli import _output as output
from skescore.cli._arguments import (
    OF_DATA,
    OF_FILE,
    add_reading_options,
    add_rules_argument,
)
from skescore.cli._output import Notes
from skescore.cli._trials import LOCK, is_unfinished

if TYPE_CHECKING:
    import pandas as pd

    from skescore.certificates import Certificate
    from skescore.cli._output import Notes
    from skescore.datasets import Dataset, Preparation
    from skescore.monitoring import CalibratedRules, RuleBaseline
    from skescore.rules import RuleSet
    from skescore.suspicions import ColumnProfile
    from skescore.tuning import ExtractorSearchCV
    from skescore.verification import VerifiedChoice


def add_rules_and_rows(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a file of rules and for the rows to which the rules are applied."""
    add_rules_argument(parser, "the rules, or the folder of a run")
    parser.add_argument(
        "data",
        action=OF_DATA,
        metavar="DATA",
        help="a built-in data set or a table; columns that are not features of the rules are "
        "ignored",
    )
    add_reading_options(parser.add_argument_group("reading a table"))


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the file that a command writes."""
    parser.add_argument(
        "--output",
        action=OF_FILE,
        type=Path,
        metavar="FILE",
        help="write to this file instead of standard output",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file if it already exists"
    )


def read_rules(path: Path) -> RuleSet:
    """Read a rule set from a JSON file; a calibration of the rules is ignored."""
    from skescore.rules import RuleSet

    text = _read_text(path)
    try:
        calibrated = _parse_calibrated(text)
        return RuleSet.from_json(text) if calibrated is None else calibrated.ruleset
    except ValueError as error:
        hint = ""
        if path.suffix.lower() != ".json":
            hint = (
                " To convert tables, rule texts and models of other tools, run: skescore import "
                f"{shlex.quote(str(path))} --output rules.json"
            )
        raise ValueError(f"{path}: {error}{hint}") from error


def read_calibrated(path: Path) -> CalibratedRules | None:
    """Read rules written by `skescore calibrate --output`; return None for other rules."""
    try:
        return _parse_calibrated(_read_text(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _parse_calibrated(text: str) -> CalibratedRules | None:
    """Return calibrated rules; None if the JSON does not begin with the name of their format."""
    if '"skescore calibrated rules"' not in text[:100]:
        return None
    from skescore.monitoring import CalibratedRules

    return CalibratedRules.from_json(text)


def _read_text(path: Path) -> str:
    """Read a file of rules; raise an error that names a remedy."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}; pass the rules.json of a run.") from None
    except IsADirectoryError:
        raise ValueError(
            f"{path} is a folder without rules.json; pass the folder of a run, or a file of rules."
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text, so it contains no rules: {error}. To convert models and "
            f"rules of other tools, run: skescore import {shlex.quote(str(path))}"
        ) from error


def data_of_run(path: Path, ruleset: RuleSet) -> dict[str, Any]:
    """Return the description of the data in the run.json next to the rules.

    The description is empty if there is no such file, or if it belongs to a run with other
    features.
    """
    try:
        data = json_of((path.parent / "run.json").read_text(encoding="utf-8"))["data"]
        is_of_rules = data["features"] == list(ruleset.feature_names)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return data if is_of_rules else {}


#: Phrases of notes about columns whose cells are converted when a table is read.
_PREPARED = re.compile(
    r"read as|read with|read without|is converted|are cut|holds dates|holds times|are repeated"
)


def warn_of_conversions(notes: Notes, path: Path, ruleset: RuleSet, *labels: str | None) -> None:
    """Warn if the rules were learned from converted cells, which a source does not convert."""
    if conversions := prepared_columns(path, ruleset, *labels):
        notes.warn(
            "the rules were learned from converted cells, but the rows of a source are counted as "
            f"stored: {'; '.join(conversions)}. Unless the source holds converted values, convert "
            "them in a view or in the files."
        )


def prepared_columns(path: Path, ruleset: RuleSet, *labels: str | None) -> list[str]:
    """Return notes about used columns whose cells are converted when a table is read.

    The run.json in the folder of the rules records the conversions. `labels` are further columns.
    """
    preparation = stored_preparation(path, ruleset)
    if preparation is None:
        return []
    used_names = {ruleset.feature_names[j] for j in ruleset.used_features}
    names = [one.name for one in preparation.columns if used_names.intersection(one.features)]
    names += [name for name in labels if name is not None]
    run = json_of((path.parent / "run.json").read_text(encoding="utf-8"))
    if (conversions := run["data"].get("conversions")) is not None:
        notes = [str(one["note"]) for one in conversions if one["column"] in names]
    else:  # a run of an earlier version, whose notes are only texts
        notes = [
            note
            for note in map(str, run.get("notes") or ())
            if _PREPARED.search(note) and any(f"column {name!r}" in note for name in names)
        ]
    return notes + _note_missing_texts(preparation, names)


def _note_missing_texts(preparation: Preparation, used_names: Sequence[str]) -> list[str]:
    """Return notes about the texts and codes of --na-values in the columns that rules use."""
    names = [column.name for column in preparation.columns]
    notes = []
    general_texts = []
    for text in preparation.na_values:
        column = next((name for name in names if text.startswith(f"{name}=")), None)
        if column is None:
            general_texts.append(text)
        elif column in used_names:
            value = text.removeprefix(f"{column}=")
            notes.append(f"{value!r} in column {column!r} is read as missing (--na-values)")
    if general_texts and used_names:
        are = "is" if len(general_texts) == 1 else "are"
        columns = f"{'column' if len(used_names) == 1 else 'columns'} {listed(used_names)}"
        notes.append(
            f"{listed(general_texts)} {are} read as missing in the {columns} (--na-values)"
        )
    return notes


def stored_preparation(path: Path, ruleset: RuleSet) -> Preparation | None:
    """Return the preparation stored in the run.json next to the rules; None if there is none."""
    from skescore.datasets import Preparation

    with contextlib.suppress(ValueError, KeyError, TypeError):  # another program wrote the file
        if (table := data_of_run(path, ruleset).get("table")) is not None:
            return Preparation.from_dict(table)
    return None


def preparation_of(path: Path, ruleset: RuleSet) -> Preparation:
    """Return the preparation that reads tables in the same way as the table of the training rows.

    The run.json next to the rules stores it. Without one, the names and categories of the features
    determine it.
    """
    from skescore.datasets import Preparation
    from skescore.rules._domain import text_features

    preparation = stored_preparation(path, ruleset)
    if preparation is None:
        check_texts(path, ruleset)
        preparation = Preparation.for_features(ruleset.feature_names, text_features(ruleset))
    return preparation.with_classes(ruleset.classes or ()).with_words(_values_in_rules(ruleset))


def profiles_of(path: Path, ruleset: RuleSet) -> dict[str, ColumnProfile]:
    """Return the distribution of the training rows from the run.json next to the rules.

    Without that file, the profiles contain only the ranges of the numbers in the domain.
    """
    from skescore.suspicions import ColumnProfile

    # Another program may have written a field with the same name.
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        if record := data_of_run(path, ruleset).get("distribution"):
            return {name: ColumnProfile.from_dict(profile) for name, profile in record.items()}
    return profiles_of_domain(ruleset)


def differences_from_training(
    path: Path, ruleset: RuleSet, rows: pd.DataFrame
) -> tuple[list[str], list[str], list[str]]:
    """Compare rows with the training rows of the rules.

    Returns three lists: clear differences in used features; other used features with values outside
    the range of the training rows, with the number of rows; both for columns that no rule uses.
    """
    profiles = profiles_of(path, ruleset)
    used_names = used_features(ruleset)
    used_profiles = {name: profile for name, profile in profiles.items() if name in used_names}
    # Columns that no rule uses may be absent from the file, and are empty here.
    other_profiles = {
        name: profile
        for name, profile in profiles.items()
        if name not in used_names and name in rows and rows[name].notna().any()
    }
    differences, outside = _compare_with_profiles(used_profiles, rows)
    other_differences, other_outside = _compare_with_profiles(other_profiles, rows)
    if other_outside:
        other_differences.append(f"values outside the range: {', '.join(other_outside)}")
    return differences, outside, other_differences


def _compare_with_profiles(
    profiles: Mapping[str, ColumnProfile], rows: pd.DataFrame
) -> tuple[list[str], list[str]]:
    """Return clear differences from the training rows, and other features with values outside."""
    from skescore.suspicions import count_outside, find_drift

    differences = find_drift(profiles, rows)
    drifted_names = [name for name in profiles if any(repr(name) in text for text in differences)]
    outside = [
        f"{name!r} ({plural(count, 'row')})"
        for name, count in count_outside(profiles, rows).items()
        if name not in drifted_names
    ]
    return differences, outside


def profiles_of_domain(ruleset: RuleSet) -> dict[str, ColumnProfile]:
    """Return profiles with the ranges of the numeric features in a rule set's domain."""
    from skescore.suspicions import ColumnProfile

    domain = ruleset.domain
    if domain is None:
        return {}
    categories = dict(domain.categories)
    profiles = {}
    for feature, name in enumerate(ruleset.feature_names):
        low, high = float(domain.lower[feature]), float(domain.upper[feature])
        if feature not in categories and math.isfinite(low) and math.isfinite(high):
            missing_share = domain.missing[feature] if domain.missing else 0.0
            profiles[name] = ColumnProfile.from_limits(low, high, missing_share)
    return profiles


def _values_in_rules(ruleset: RuleSet) -> dict[str, list[object]]:
    """Return the values of each feature that the rules list."""
    from skescore.rules import OneOf
    from skescore.rules._domain import condition_parts

    values: dict[str, list[object]] = {}
    for condition in condition_parts(c for rule in ruleset.rules for c in rule.conditions):
        if isinstance(condition, OneOf):
            name = ruleset.feature_names[condition.feature]
            values.setdefault(name, []).extend(condition.values)
    return values


def check_texts(path: Path, ruleset: RuleSet) -> None:
    """Raise a ValueError if the rules contain a text that reading a file never produces."""
    from skescore.datasets._reading import is_read_as

    for name, values in _values_in_rules(ruleset).items():
        for value in values:
            if isinstance(value, str) and not is_read_as(value):
                raise ValueError(
                    f"{path}: the rules contain the value {value!r} of {name!r}, which cannot "
                    "occur in a table that is read from a file: reading removes blanks around "
                    "texts, and words such as 'NA' become missing values. Change the value in the "
                    "rules, or predict in Python."
                )


def used_features(ruleset: RuleSet) -> list[str]:
    """Return the features that the rules use; tables to predict may lack other features."""
    return [ruleset.feature_names[feature] for feature in sorted(ruleset.used_features)]


def check_output(path: Path | None, *, overwrite: bool) -> None:
    """Raise an error if the output file cannot be written; called before the command's work."""
    if path is None:
        return
    try:
        is_folder, has_folder, is_there = path.is_dir(), path.parent.is_dir(), path.exists()
    except OSError as error:  # a name that no file can have
        raise ValueError(
            f"--output {path} cannot be written: {error.strerror or error}. Name another file."
        ) from error
    if is_folder:
        raise ValueError(f"--output {path} is a folder; name a file in it.")
    if not has_folder:
        raise ValueError(f"--output {path}: there is no folder {path.parent}; create it first.")
    if is_there and not overwrite:
        raise ValueError(
            f"--output {path} already exists. Name another file, or pass --overwrite to replace "
            "this file."
        )


def write_or_return(path: Path | None, content: str | bytes) -> str:
    """Write a file and report it, or return the text for standard output if there is no path."""
    if path is None:
        assert isinstance(content, str)  # binary formats need a file
        return content
    write_output(path, content)
    sys.stderr.write(f"wrote {path}\n")
    return ""


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all; text is encoded as UTF-8."""
    try:
        write_atomically(path, content.encode("utf-8") if isinstance(content, str) else content)
    except UnicodeEncodeError as error:  # an unpaired surrogate, which JSON can contain
        raise ValueError(
            f"{error.object[error.start]!r} cannot be written to --output {path}. Rename the "
            "feature or value that contains it."
        ) from error
    except OSError as error:
        raise ValueError(
            f"--output {path} cannot be written: {error.strerror or error}. Name another file."
        ) from error


#: Files that --output writes.
FILES = ("rules.json", "leaderboard.csv", "candidates.json", "run.json")
#: File that --certify adds; BASELINE is added if the rules can be monitored.
CERTIFICATE = "certificate.json"
#: Default file of --report.
REPORT = "report.html"


def add_report_option(group: Any) -> None:
    """Add ``--report``."""
    group.add_argument(
        "--report",
        nargs="?",
        const=REPORT,
        action=OF_FILE,
        metavar="FILE",
        help="write an HTML page with the rules, their correct and wrong predictions, the "
        f"trade-off, and a form to try rows (default {REPORT} in the folder of --output, "
        "which is required)",
    )


def report_path(options: argparse.Namespace) -> Path | None:
    """Return the path of the page; None without --report."""
    if options.report is None:
        return None
    if options.output is None:
        options.parser.error(
            "argument --report: needs the files in the folder of --output; add --output DIR"
        )
    path = Path(options.report)
    return options.output / path if options.report == REPORT else path


def check_folder(options: argparse.Namespace) -> None:
    """Check the output folder before the search, so that no long search ends in an error."""
    page = report_path(options)
    if page is not None:
        import_optional("jinja2", extra="report", purpose="--report")
    folder: Path | None = options.output
    if folder is None:
        return
    refuse_file(folder)
    if page is not None and page.parent != folder and not page.parent.is_dir():
        raise ValueError(f"--report {page}: there is no folder {page.parent}; create it first.")
    if page is not None and page.is_dir():
        raise ValueError(f"--report {page} is a folder; name a file in it.")
    paths = [str(folder / name) for name in (*FILES, BASELINE) if (folder / name).exists()]
    if options.certify is not None and (folder / CERTIFICATE).exists():
        paths.append(str(folder / CERTIFICATE))
    if page is not None and page.exists():
        paths.append(str(page))
    if paths and not (options.overwrite or is_unfinished(folder)):
        names = [str(Path(name).name) if Path(name).parent == folder else name for name in paths]
        raise ValueError(
            f"--output {folder} already contains {', '.join(names)}. Name another folder, or pass "
            "--overwrite to replace them."
        )


def refuse_file(folder: Path) -> None:
    """Raise an error if --output names a file instead of a folder."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} is a file; name a folder.")


def make_folder(folder: Path) -> None:
    """Make the folder of --output; raise an error if files cannot be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(None, "Permission denied")
    except OSError as error:
        raise ValueError(
            f"--output {folder} cannot be written to: {error.strerror or error}. Name another "
            "folder."
        ) from error


@contextlib.contextmanager
def output_folder(options: argparse.Namespace) -> Iterator[None]:
    """Make the output folder before the search, and remove it if the search fails.

    A lock ensures that no two searches write into one folder at a time.
    """
    folder: Path | None = options.output
    if folder is None:
        yield
        return
    existed = folder.exists()
    try:  # an interrupt may come right after the folder was made
        make_folder(folder)
        with try_lock(folder / LOCK) as is_locked:
            if not is_locked:
                raise ValueError(
                    f"--output {folder} is in use by another search. Wait until it ends, or name "
                    "another folder."
                )
            check_folder(options)  # another search may have ended since the first check
            yield
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def write_files(
    options: argparse.Namespace,
    search: ExtractorSearchCV,
    result: dict[str, Any],
    certificate: Certificate | None = None,
    baseline: RuleBaseline | None = None,
) -> None:
    """Write the rules, leaderboard, candidates, settings of the run, proof and baseline."""
    import pandas as pd

    board = search.leaderboard_
    # As objects, because an integer that some extractors lack would become a float.
    params = pd.DataFrame(list(board["params"]), dtype=object).add_prefix("param_")
    table = pd.concat([board.drop(columns="params"), params], axis=1)
    contents = (
        search.rules_.to_json() + "\n",
        csv_of(table),
        _format_candidates(search),
        output.to_json(result),
    )
    paths = [options.output / name for name in FILES]
    for path, text in zip(paths, contents, strict=True):
        write_atomically(path, text)
    if certificate is not None:
        paths.append(options.output / CERTIFICATE)
        write_atomically(paths[-1], certificate.to_json() + "\n")
    if baseline is not None:
        paths.append(options.output / BASELINE)
        write_atomically(paths[-1], baseline.to_json())
    else:  # a baseline of an earlier run belongs to other rules
        (options.output / BASELINE).unlink(missing_ok=True)
    if not options.quiet:
        sys.stderr.write(f"wrote {', '.join(map(str, paths))}\n")


def _format_candidates(search: ExtractorSearchCV) -> str:
    import pandas as pd

    from skescore.report import candidates_json

    winner = search.leaderboard_.iloc[0]
    # A trial that repeats an earlier one is stored under the number of the earlier one.
    trial = winner["trial"] if pd.isna(winner["same_as"]) else winner["same_as"]
    return candidates_json(
        search.candidates_,
        winner=(str(winner["extractor"]), int(trial)),
        standard_errors=search.standard_errors_,
        extractor_seed=search.extractor_seed_,
        picked=search.picked_,
    )


def write_page(options: argparse.Namespace, dataset: Dataset, model: Any) -> None:
    """Write the page of --report."""
    from skescore.report import write_report

    page = report_path(options)
    if page is None:
        return
    write_report(options.output, path=page, data=dataset, black_box=model)
    if not options.quiet:
        sys.stderr.write(f"wrote {page}\n")


#: File that a verification adds to the folder of a run.
VERIFICATION = "verification.json"


def write_verification(options: argparse.Namespace, choice: VerifiedChoice | None) -> None:
    """Write the verification to the folder of the run, or remove an earlier verification."""
    path = options.output / VERIFICATION
    if choice is None:
        path.unlink(missing_ok=True)
        return
    write_atomically(path, choice.verification.to_json() + "\n")
    if not options.quiet:
        sys.stderr.write(f"wrote {path}\n")


#: File of the baseline of `skescore watch` in the folder of the rules.
BASELINE = "baseline.json"
#: Default state file of `skescore watch` in the folder of the rules.
STATE = "watch.json"


def make_baseline(
    options: argparse.Namespace, search: ExtractorSearchCV, test: Dataset | None, notes: Notes
) -> RuleBaseline | None:
    """Count the rows of --test, or the held-out rows of the folds, for `skescore watch`.

    Returns None without --output, or if the rules cannot be monitored, which a note explains.
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
    """Return the baseline in the folder of the rules; None without one."""
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


def use_target_of_run(options: argparse.Namespace, ruleset: RuleSet) -> None:
    """Set --target to the target of the run if it is missing and the data need one."""
    has_own_target = options.data in DATA_SET_TASKS or options.data.startswith(FETCHED)
    if options.target is None and not has_own_target:
        options.target = read_target(options.rules, ruleset)


def read_target(rules_path: Path, ruleset: RuleSet) -> str | None:
    """Return the target of the run that made the rules; None without its run.json."""
    target = data_of_run(rules_path, ruleset).get("target")
    return None if target is None else str(target)
