"""Files of rules, the rows to which rules are applied, and output files of commands."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import at_home, json_of, write_atomically
from skescore._names import DATA_SET_TASKS, no_data_text
from skescore._text import listed, plural, rename_hint
from skescore.cli._arguments import (
    OF_DATA,
    OF_FILE,
    OF_RULES,
    add_reading_options,
    reading_from,
    with_remedies,
)
from skescore.cli._output import Notes

if TYPE_CHECKING:
    import pandas as pd

    from skescore.datasets import Preparation
    from skescore.monitoring import CalibratedRules
    from skescore.rules import RuleSet
    from skescore.suspicions import ColumnProfile

__all__ = [
    "add_output_options",
    "add_rules_and_rows",
    "as_text",
    "check_output",
    "differences_from_training",
    "preparation_of",
    "prepared_columns",
    "read_calibrated",
    "read_rows",
    "read_rules",
    "read_table",
    "stored_preparation",
    "used_features",
    "write_output",
]


def add_rules_and_rows(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a file of rules and for the rows to which the rules are applied."""
    parser.add_argument("rules", action=OF_RULES, metavar="RULES.json", type=Path, help="the rules")
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
        calibrated = _calibrated(text)
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
        return _calibrated(_read_text(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _calibrated(text: str) -> CalibratedRules | None:
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
        raise FileNotFoundError(f"There is no file {path}; name the rules.json of a run.") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder; name the file: {path / 'rules.json'}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text, so it holds no rules: {error}. To convert models and rules "
            f"of other tools, run: skescore import {shlex.quote(str(path))}"
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


def prepared_columns(path: Path, ruleset: RuleSet) -> list[str]:
    """Return the notes of a run about used columns whose cells are converted when they are read.

    Parameters
    ----------
    path : Path
        File of the rules, in the same folder as the run.json of their run.
    ruleset : RuleSet
        The rules.
    """
    preparation = stored_preparation(path, ruleset)
    if preparation is None:
        return []
    used_names = {ruleset.feature_names[j] for j in ruleset.used_features}
    used = [one.name for one in preparation.columns if used_names.intersection(one.features)]
    notes = json_of((path.parent / "run.json").read_text(encoding="utf-8")).get("notes") or ()
    return [
        *(
            note
            for note in map(str, notes)
            if _PREPARED.search(note) and any(f"column {name!r}" in note for name in used)
        ),
        *_stated_missing_texts(preparation, used),
    ]


def _stated_missing_texts(preparation: Preparation, used: Sequence[str]) -> list[str]:
    """Return notes about the texts and codes of --na-values in the columns that rules use."""
    names = [column.name for column in preparation.columns]
    notes = []
    general_texts = []
    for text in preparation.na_values:
        column = next((name for name in names if text.startswith(f"{name}=")), None)
        if column is None:
            general_texts.append(text)
        elif column in used:
            value = text.removeprefix(f"{column}=")
            notes.append(f"{value!r} in column {column!r} is read as missing (--na-values)")
    if general_texts and used:
        are = "is" if len(general_texts) == 1 else "are"
        columns = f"{'column' if len(used) == 1 else 'columns'} {listed(used)}"
        notes.append(
            f"{listed(general_texts)} {are} read as missing in the {columns} (--na-values)"
        )
    return notes


def stored_preparation(path: Path, ruleset: RuleSet) -> Preparation | None:
    """Return the preparation stored in the run.json next to the rules; None if there is none."""
    from skescore.datasets import Preparation

    with contextlib.suppress(ValueError, KeyError, TypeError):  # the file is of another program
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
    return preparation.with_classes(ruleset.classes or ())


def profiles_of(path: Path, ruleset: RuleSet) -> dict[str, ColumnProfile]:
    """Return the distribution of the training rows from the run.json next to the rules.

    Without that file, the profiles contain only the ranges of the numbers in the domain.
    """
    from skescore.suspicions import ColumnProfile

    # Another program may have written a field with the same name.
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        if stored := data_of_run(path, ruleset).get("distribution"):
            return {name: ColumnProfile.from_dict(profile) for name, profile in stored.items()}
    return profiles_of_domain(ruleset)


def differences_from_training(
    path: Path, ruleset: RuleSet, rows: pd.DataFrame
) -> tuple[list[str], list[str], list[str]]:
    """Compare rows with the training rows of the rules.

    Returns what is clearly different, the other features with values outside of the range of the
    training rows, with their numbers of rows, and both for the columns that no rule uses.
    """
    profiles = profiles_of(path, ruleset)
    used = used_features(ruleset)
    used_profiles = {name: profile for name, profile in profiles.items() if name in used}
    # Columns that no rule uses may be absent from the file, and are empty here.
    other_profiles = {
        name: profile
        for name, profile in profiles.items()
        if name not in used and name in rows and rows[name].notna().any()
    }
    differences, outside = _compare_with_profiles(used_profiles, rows)
    other_differences, other_outside = _compare_with_profiles(other_profiles, rows)
    if other_outside:
        other_differences.append(f"values outside of the range: {', '.join(other_outside)}")
    return differences, outside, other_differences


def _compare_with_profiles(
    profiles: Mapping[str, ColumnProfile], rows: pd.DataFrame
) -> tuple[list[str], list[str]]:
    """Return clear differences from the training rows, and other features with values outside."""
    from skescore.suspicions import count_outside, find_drift

    differences = find_drift(profiles, rows)
    reported = [name for name in profiles if any(repr(name) in text for text in differences)]
    outside = [
        f"{name!r} ({plural(count, 'row')})"
        for name, count in count_outside(profiles, rows).items()
        if name not in reported
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
            profiles[name] = ColumnProfile.from_limits(low, high)
    return profiles


def check_texts(path: Path, ruleset: RuleSet) -> None:
    """Raise a ValueError if the rules name a text that no cell can have after it was read."""
    from skescore.datasets._reading import is_read_as
    from skescore.rules import OneOf
    from skescore.rules._domain import condition_parts

    conditions = (c for rule in ruleset.rules for c in condition_parts(rule.conditions))
    for condition in (c for c in conditions if isinstance(c, OneOf)):
        for value in condition.values:
            if isinstance(value, str) and not is_read_as(value):
                name = ruleset.feature_names[condition.feature]
                raise ValueError(
                    f"{path}: the rules name the value {value!r} of {name!r}, which no row of a "
                    "table can have: reading a table removes blanks around texts, and reads words "
                    "such as 'NA' as missing values. Change the value in the rules, or predict in "
                    "Python."
                )


def used_features(ruleset: RuleSet) -> list[str]:
    """Return the features that the rules name; tables to predict may lack the others."""
    return [ruleset.feature_names[feature] for feature in sorted(ruleset.used_features)]


def read_table(
    data: str,
    options: argparse.Namespace,
    classes: Collection[str] = (),
    *,
    keeps_zeros: bool = False,
) -> pd.DataFrame:
    """Read the columns of a built-in data set or a file without any conversion.

    Words for missing values that are among `classes` are kept. With `keeps_zeros`, columns with
    numbers such as 01 are texts.
    """
    from skescore.datasets import ReadingOptions, load_dataset
    from skescore.datasets._files import read_file

    if data in DATA_SET_TASKS:
        return load_dataset(data).X
    layout = ReadingOptions(header=options.header, skip_rows=options.skip_rows).layout
    source = at_home(data)
    try:
        table = read_file(
            source, data, separator=options.sep, encoding=options.encoding, layout=layout
        )
    except FileNotFoundError:
        raise FileNotFoundError(no_data_text(data)) from None
    frame = table.frame.apply(table.with_words, words=classes) if classes else table.frame
    if not keeps_zeros or table.texts is None:
        return frame
    written = table.as_written(map(str, frame.columns))
    padded = [name for name, column in written.items() if column.str.match(r"0\d").any()]
    return frame.assign(**written[padded])


def read_rows(options: argparse.Namespace, ruleset: RuleSet, data: str) -> pd.DataFrame:
    """Read the features of the rules from a table, by the reading options of the command."""
    from skescore.datasets import load_dataset
    from skescore.datasets import read_table as read_prepared

    names, path, reading = list(ruleset.feature_names), options.rules, reading_from(options)
    used = used_features(ruleset)
    dropped = [name for name in used if name in reading["drop"]]
    if dropped:
        raise ValueError(
            f"--drop leaves out {listed(dropped)}, which the rules in {path} name. Remove the "
            "option; columns that the rules do not use are ignored anyway."
        )
    if data in DATA_SET_TASKS:
        table = load_dataset(data, **reading).X
    else:
        try:
            with with_remedies(options):
                preparation = preparation_of(path, ruleset)
                prepared = read_prepared(data, preparation=preparation, **reading)
                table, findings = prepared.frame, prepared.findings
        except FileNotFoundError:
            raise FileNotFoundError(no_data_text(data)) from None
        Notes().add_findings(data, findings)
    missing = [name for name in used if name not in table.columns]
    if missing:
        columns = list(read_table(data, options))
        hint = rename_hint(missing, map(str, columns))
        raise ValueError(
            f"{data} lacks the feature{'s' if len(missing) > 1 else ''} {listed(missing)} of the "
            f"rules; its columns are {listed(columns)}."
            f"{hint or ' Name a table with the columns that the rules were extracted from.'}"
        )
    return table.reindex(columns=names)


def as_text(column: pd.Series) -> pd.Series:
    """Return values as text, whole numbers without a decimal point; keep missing values."""
    import pandas as pd

    values = [
        None
        if pd.isna(value)
        else str(int(value))
        if isinstance(value, float) and value.is_integer()
        else str(value)
        for value in column.tolist()
    ]
    return pd.Series(values, index=column.index, dtype=object)


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
            f"--output {path} is already there. Name another file, or pass --overwrite to replace "
            "this one."
        )


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
