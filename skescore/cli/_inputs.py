"""Inputs of commands: rows, their labels, and black boxes."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import re
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from skescore._io import expand_home
from skescore._names import BUILT_IN, DATA_SET_TASKS, no_data_text
from skescore._text import did_you_mean, listed, percentage, plural, rename_hint
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import COMMAND, reading_from
from skescore.cli._output import Notes
from skescore.cli._rule_files import preparation_of, used_features

if TYPE_CHECKING:
    import pandas as pd

    from skescore.datasets import Dataset, DatasetError, Preparation
    from skescore.metrics import RuleCounts
    from skescore.rules import RuleSet
    from skescore.sources import DataSource


#: Options for which only the last occurrence counts.
_SINGLE = ("--target", "--task", "--missing", "--encoding", "--sep", "--decimal")


@contextlib.contextmanager
def with_remedies(options: argparse.Namespace) -> Iterator[None]:
    """Add the corrected command to errors of a table."""
    from skescore.datasets import DatasetError

    try:
        yield
    except DatasetError as error:
        if error.options or error.misspelled:
            error.args = (f"{error} Try: {_correct_command(options.command_line, error)}",)
        raise


def class_weights_from(options: argparse.Namespace, dataset: Dataset) -> Any:
    """Return the weights of rows by class; None if all rows have the same weight."""
    if options.class_weight is None:
        return None
    if dataset.task != "classification":
        raise ValueError("--class-weight needs classes, but the target is a number; leave it out.")
    from sklearn.utils.class_weight import compute_sample_weight

    return compute_sample_weight(options.class_weight, dataset.y)


def data_from(
    options: argparse.Namespace,
    *,
    data: Any = None,
    task: str | None = None,
    features: Sequence[str] | None = None,
    preparation: Preparation | None = None,
    max_categories: int = 20,
) -> Dataset:
    """Load the data that the options name; errors include the corrected command."""
    from skescore.datasets import load_dataset

    is_training_data = not isinstance(data, str)
    structure = {
        name: getattr(options, name, None) if is_training_data else None
        for name in ("groups", "time", "since")
    }
    rows: dict[str, Any] = {
        "labels": dict(getattr(options, "labels", ())),
        "drop_duplicates": is_training_data and getattr(options, "drop_duplicates", False),
    }
    with with_remedies(options):
        return load_dataset(
            options.data if data is None else data,
            target=options.target,
            task=options.task if task is None else task,
            features=features,
            preparation=preparation,
            max_categories=max_categories,
            missing=options.missing,
            sample=options.sample if data is None else None,
            **structure,
            **rows,
            **reading_from(options),
        )


def read_labeled_rows(
    options: argparse.Namespace, ruleset: RuleSet, data: str | None = None
) -> Dataset:
    """Load the features and the target of rules, and report findings about the table."""
    names = list(ruleset.feature_names)
    dataset = data_from(
        options,
        data=data,
        task=ruleset.task,
        features=names,
        preparation=preparation_of(options.rules, ruleset),
    )
    Notes().add_findings(dataset.name, dataset.findings)
    return replace(dataset, X=dataset.X[names])


def load_matching_model(options: argparse.Namespace, dataset: Dataset) -> Any:
    """Load the model of --black-box, and check that it suits the rows; return None without it."""
    if options.black_box is None:
        return None
    from skescore.black_boxes import check_matches, load_black_box

    model = load_black_box(options.black_box, trust=options.trust)
    check_matches(model, dataset)
    return model


def unlabeled_data_from(
    options: argparse.Namespace,
    *,
    data: str,
    features: Sequence[str] | None = None,
    preparation: Preparation | None = None,
) -> Dataset:
    """Load all rows that the options name, with or without a label; every target is set to 0."""
    import numpy as np
    import pandas as pd

    from skescore.datasets import Dataset
    from skescore.datasets import read_table as read_prepared

    if data in DATA_SET_TASKS:
        return data_from(options, data=data, task="auto", features=features)
    reading = reading_from(options)
    if features is None and options.target is not None:
        reading["drop"] = [*reading["drop"], options.target]
    if not (path := expand_home(data)).exists():
        raise FileNotFoundError(no_data_text(data))
    with with_remedies(options):
        table = read_prepared(
            path,
            features=features,
            preparation=preparation,
            max_categories=sys.maxsize,
            sample=options.sample if data == options.data else None,
            **reading,
        )
    X, n_rows = table.frame, len(table.frame)
    absent = [name for name in features or () if name not in X]
    if absent:
        raise ValueError(
            f"{data} lacks {plural(len(absent), 'feature')} of the rules, {listed(absent)}. Pass "
            "a table with the columns from which the rules were extracted."
        )
    if options.missing == "keep":  # as `load_dataset` reads them
        X = X.replace([np.inf, -np.inf], np.nan)
    elif X.isna().any(axis=None):
        if options.missing == "error":
            raise ValueError(
                f"{data} has missing values, which --missing error does not allow. Fill them, or "
                "leave out their rows with --missing drop."
            )
        X = X.dropna().reset_index(drop=True)
    return Dataset(
        X,
        pd.Series(0, index=X.index),
        "classification",
        path.stem,
        data,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        n_rows - len(X),
        table.findings,
        table.preparation,
    )


def _correct_command(command: Sequence[str], error: DatasetError) -> str:
    """Return the command line with corrected names and the options that the error suggests."""
    replaced_options = [option for option in error.options if option in _SINGLE]
    words, skip = [], False
    for word in command:
        if not skip and word.partition("=")[0] not in replaced_options:
            option, equals, value = (
                word.rpartition("=") if word.startswith("--") else ("", "", word)
            )
            corrected_value = error.misspelled.get(value) or ",".join(
                error.misspelled.get(name, name) for name in value.split(",")
            )
            words.append(f"{option}{equals}{corrected_value}")
        skip = not skip and word in replaced_options
    return shlex.join([*words, *error.options])


def describe_data(options: argparse.Namespace, dataset: Dataset) -> dict[str, Any]:
    """Describe the data for a result, so that they can be read again."""
    from skescore.datasets import Conversion
    from skescore.suspicions import profile_columns

    reading = dataset.preparation
    return {
        "name": dataset.name,
        "source": dataset.source,
        "checksum_sha256": dataset.checksum,
        "task": dataset.task,
        "target": dataset.y.name,
        "rows": len(dataset.X),
        "rows_dropped": dataset.n_rows_dropped,
        "features": list(dataset.X.columns),
        "categories": list(dataset.categories),
        "table": None if reading is None else reading.to_dict(),
        "conversions": [
            finding.to_dict() for finding in dataset.findings if isinstance(finding, Conversion)
        ],
        "distribution": {
            name: profile.to_dict() for name, profile in profile_columns(dataset.X).items()
        },
        "reading": {
            name: getattr(options, name)
            for name in ("missing", "na_values", "sep", "decimal", "encoding", "sample")
        }
        | {
            name: value
            for name in ("groups", "time", "since", "header", "skip_rows")
            if (value := getattr(options, name, None)) is not None
        }
        | ({"labels": dict(options.labels)} if getattr(options, "labels", None) else {})
        | ({"drop_duplicates": True} if getattr(options, "drop_duplicates", False) else {}),
    }


def check_features(dataset: Dataset, names: Sequence[str] | None = None) -> None:
    """Raise an error if all features are constant, or if `names` are not among them."""
    for name in names or ():
        if name not in dataset.X.columns:
            columns = list(map(str, dataset.X.columns))
            raise ValueError(
                f"--features must name features of {dataset.name}, got {name!r}. "
                f"{did_you_mean(name, columns)}"
            )
    constant = dataset.constant_columns
    if len(constant) == dataset.X.shape[1]:
        raise ValueError(
            f"{dataset.name}: every feature is constant ({', '.join(map(repr, constant))}), so no "
            "rule can distinguish two rows. Add a column whose values differ."
        )


def read_table(
    data: str,
    options: argparse.Namespace,
    classes: Collection[str] = (),
    *,
    texts: Collection[str] = (),
    keeps_zeros: bool = False,
    preparation: Preparation | None = None,
) -> pd.DataFrame:
    """Read the columns of a built-in data set or a file without any conversion.

    Words for missing values that are among `classes`, or in columns of text among `texts`, are
    kept. With `keeps_zeros`, columns with numbers such as 01 and 12e4, or of 16 digits, are texts.
    With a `preparation`, numbers may have a decimal comma.
    """
    from skescore.datasets import ReadingOptions, load_dataset
    from skescore.datasets._reading import read_cells

    if data in DATA_SET_TASKS:
        return load_dataset(data).X
    layout = ReadingOptions(header=options.header, skip_rows=options.skip_rows).layout
    source = expand_home(data)
    try:
        table = read_cells(
            source,
            data,
            separator=options.sep,
            encoding=options.encoding,
            layout=layout,
            decimal=getattr(options, "decimal", None),
            preparation=preparation,
        )
    except FileNotFoundError:
        raise FileNotFoundError(no_data_text(data)) from None
    frame = table.frame.apply(table.with_words, words=classes) if classes else table.frame
    for name in texts:
        if name in frame.columns and frame[name].dtype.kind not in "biufM":
            frame = frame.assign(**{name: table.with_words(frame[name])})
    frame.attrs = table.frame.attrs
    if not keeps_zeros or table.texts is None:
        return frame
    file_texts = table.as_written(map(str, frame.columns))
    padded = [name for name, column in file_texts.items() if column.str.match(_CODE).any()]
    return frame.assign(**file_texts[padded])


def read_rows(
    options: argparse.Namespace, ruleset: RuleSet, data: str, *, needs_all: bool = False
) -> pd.DataFrame:
    """Read the features of the rules from a table, by the reading options of the command.

    Features that no rule uses may be absent from the table, unless `needs_all`.
    """
    from skescore.datasets import load_dataset
    from skescore.datasets import read_table as read_prepared

    names, path, reading = list(ruleset.feature_names), options.rules, reading_from(options)
    required = names if needs_all else used_features(ruleset)
    ignored = [name for name in required if name in reading["drop"]]
    if ignored:
        raise ValueError(
            f"--drop leaves out {listed(ignored)}, but the rules in {path} use it. Remove the "
            "option; columns that the rules do not use are ignored anyway."
        )
    if data in DATA_SET_TASKS:
        table = load_dataset(data, **reading).X
    else:
        try:
            with with_remedies(options):
                preparation = preparation_of(path, ruleset)
                result = read_prepared(data, preparation=preparation, **reading)
                table, findings = result.frame, result.findings
        except FileNotFoundError:
            raise FileNotFoundError(no_data_text(data)) from None
        Notes().add_findings(data, findings)
    absent = [name for name in required if name not in table.columns]
    if absent:
        columns = list(read_table(data, options))
        hint = rename_hint(absent, [c for c in map(str, columns) if c not in names])
        raise ValueError(
            f"{data} lacks the feature{'s' if len(absent) > 1 else ''} {listed(absent)} of the "
            f"rules; its columns are {listed(columns)}."
            + (hint or " Pass a table with the columns from which the rules were extracted.")
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


#: Pattern of codes that would be read as other numbers; long ones are rounded if some are missing.
_CODE = r"0\d|\d+[eE]\d+$|\d{16}"
#: Smallest number of labels for which it is an error that none of them is a class.
_MIN_LABELS = 5


def raw_table(
    options: argparse.Namespace, ruleset: RuleSet, data: str, *, keeps_zeros: bool = False
) -> pd.DataFrame:
    """Return all columns of `data` as they are stored, also the target of a built-in data set.

    Words such as NA are missing values unless the rules have a class of this name. With
    `keeps_zeros`, or if classes are integers, columns with numbers such as 01 are texts.
    """
    if data not in DATA_SET_TASKS:
        preparation = preparation_of(options.rules, ruleset)
        has_integers = any(re.fullmatch(r"-?\d+", str(label)) for label in ruleset.classes or ())
        return read_table(
            data,
            options,
            preparation.labels,
            keeps_zeros=keeps_zeros or has_integers,
            preparation=preparation,
        )
    from skescore.datasets import load_dataset

    dataset = load_dataset(data)
    return dataset.X.assign(**{str(BUILT_IN[data].target): dataset.y})


def find_column(table: pd.DataFrame, name: str, data_name: str) -> pd.Series:
    """Return a column of a table; raise a ValueError that lists its columns without it."""
    if name not in table.columns:
        raise ValueError(
            f"{data_name} has no column {name!r}; its columns are {listed(list(table))}."
        )
    return table[name]


def read_labels(
    ruleset: RuleSet,
    column: pd.Series,
    preparation: Preparation,
    na_values: Sequence[str] = (),
) -> Any:
    """Convert a column to the type of the rules' classes; missing labels become None.

    Texts in `na_values` mean a missing label, in addition to the texts of the preparation. In
    regression, labels are numbers, and missing labels are NaN.
    """
    import pandas as pd

    preparation = replace(
        preparation,
        na_values=(*preparation.na_values, *na_values),
        decimal=column.attrs.get("decimal") or preparation.decimal,
    )
    if ruleset.classes is None:
        return preparation.read_target(column).to_numpy(dtype=float, na_value=float("nan"))
    read = preparation.with_classes(ruleset.classes).read_classes(column)
    labels: Any = read.astype(object).where(read.notna(), None).to_numpy(dtype=object)
    unknown = set(labels[pd.notna(labels)]) - set(ruleset.classes)
    n_known = int(pd.Series(labels, dtype=object).isin(list(ruleset.classes)).sum())
    if unknown and not n_known and pd.notna(labels).sum() >= _MIN_LABELS:
        raise ValueError(
            f"No label in column {column.name!r} is a class of the rules: the column contains "
            f"{listed(sorted(map(str, unknown)))}, and the classes are "
            f"{listed(list(map(str, ruleset.classes)))}. Name another column, or convert the "
            "labels."
        )
    if unknown:
        n_rows = plural(int(pd.notna(labels).sum()) - n_known, "row")
        unknown_labels = listed(sorted(unknown, key=str))
        Notes().add(
            f"{n_rows} with classes in column {column.name!r} that the rules do not have: "
            f"{unknown_labels}"
        )
    return labels


#: Default number of rows of a sample.
_SAMPLE = 20_000


def is_source(data: str) -> bool:
    """Return whether the data are a data source; a folder must contain Parquet files."""
    if data in DATA_SET_TASKS or not arguments.lies_elsewhere(data):
        return False
    folder = expand_home(data)
    return not folder.is_dir() or any(folder.rglob("*.parquet"))


def draw_sample(options: argparse.Namespace, notes: output.Notes) -> StoredSample:
    """Draw a sample of a data source, and read it as a table."""
    from skescore.sources import DataSource, sample_source
    from skescore.tuning import N_FINALISTS

    if options.target is None:
        options.parser.error("a data source needs --target COLUMN")
    for name in ("labels", "drop_duplicates"):
        if getattr(options, name):
            options.parser.error(
                f"argument --{name.replace('_', '-')}: needs a single table; the rows of a data "
                "source are used as stored. Leave the option out, or change the rows in a view"
            )
    if options.reference != "data" and "://" in options.data:
        options.parser.error(
            "--reference black-box: the model cannot predict rows in a database; store the "
            "predictions in a column and name it as --target, or export the table to Parquet"
        )
    settings: dict[str, Any] = {
        "n_rows": options.sample or _SAMPLE,
        "random_state": options.seed,
        "least_per_class": 0,
    }
    source_name = arguments.without_passwords(options.data)
    task = "classification" if options.task == "auto" else options.task
    try:
        sample = sample_source(options.data, options.target, task=task, **settings)
    except ValueError as error:
        if options.task != "auto" or "different" not in str(error):
            raise
        sample = sample_source(options.data, options.target, task="regression", **settings)
    dataset = data_from(options, data=sample.frame)
    n_drawn = sum(drawn for drawn, _ in sample.strata.values())
    if n_drawn < sample.n_rows:
        groups = ", ".join(
            f"{percentage(share, digits=2)} of {'the rows' if name is None else repr(name)}"
            for name, share in sample.missed().items()
        )
        notes.add(
            f"the search uses a sample of {n_drawn} of the {sample.n_rows} rows of {source_name}; "
            f"the best {N_FINALISTS} candidates are compared on all rows; with 95 % confidence, "
            "the sample contains rows of any group that was defined beforehand and has more than "
            f"{groups}"
        )
    dataset = replace(dataset, name=source_name, source=source_name)
    source = DataSource(options.data, options.target, n_jobs=options.n_jobs)
    return StoredSample(source, sample.frame, dataset)


class StoredDifferentlyError(Exception):
    """The stored rows of a data source differ from the rows that were read for the search."""


@dataclass(frozen=True)
class StoredSample:
    """Rows of a data source, the stored sample, and the sample as it was read for the search."""

    source: DataSource
    frame: pd.DataFrame
    dataset: Dataset

    def count_rows(self, rules: RuleSet, black_box: Any = None) -> RuleCounts:
        """Count all rows; raise an error if counts differ between the stored and the read sample.

        A data source does not parse dates, words for missing values, or numbers in texts.
        """
        if not self._counts_agree(rules, black_box):
            raise StoredDifferentlyError
        return self.source.count_rows(rules, black_box)

    def _counts_agree(self, rules: RuleSet, black_box: Any) -> bool:
        """Return whether rules have the same counts on stored rows as on rows that were read."""
        import numpy as np

        dataset, target = self.dataset, self.dataset.y.name
        labeled_rows = self.frame[self.frame[target].notna()]
        try:
            with warnings.catch_warnings():
                # The counts reveal comparisons of texts with numbers.
                warnings.simplefilter("ignore")
                counts = []
                for X, y in ((dataset.X, dataset.y), (labeled_rows, labeled_rows[target])):
                    rows = X[list(rules.feature_names)]
                    if black_box is not None:
                        y = black_box.predict(rows)
                    labels = np.asarray(y, dtype=float if rules.task == "regression" else object)
                    counts.append(
                        Counter(zip(rules.assign(rows).tolist(), labels.tolist(), strict=True))
                    )
        except (KeyError, TypeError, ValueError):
            return False
        return counts[0] == counts[1]


def read_test_rows(
    options: argparse.Namespace, dataset: Dataset, model: Any, notes: output.Notes
) -> Dataset | None:
    """Read the rows of ``--test`` in the same way as DATA, before the long search."""
    if options.test is None:
        return None
    from skescore.black_boxes import is_unsupervised

    if is_unsupervised(model):
        return read_model_labels(options, model, options.test, dataset.preparation)
    test = data_from(
        options,
        data=options.test,
        task=dataset.task,
        features=list(dataset.X.columns),
        preparation=dataset.preparation and dataset.preparation.with_classes(dataset.class_counts),
    )
    if options.drop_duplicates:
        test = test.without_rows_of(dataset)
    notes.add_findings(options.test, test.findings)
    class_counts = dataset.class_counts
    unknown = {
        label: count for label, count in test.class_counts.items() if label not in class_counts
    }
    unknown_list = ", ".join(sorted(map(repr, unknown)))
    if unknown and len(unknown) == len(test.class_counts):
        raise ValueError(
            f"--test {options.test}: none of the labels of {options.target} ({unknown_list}) is a "
            f"class of {dataset.name} ({', '.join(map(repr, class_counts))}). Write the labels in "
            "the same way; a single text among numbers turns all labels into texts."
        )
    if unknown:
        notes.add(
            f"{plural(sum(unknown.values()), 'row')} of {options.test} with classes that do not "
            f"occur in {dataset.name}: {unknown_list}"
        )
    return test


def read_data(options: argparse.Namespace, model: Any) -> Dataset:
    """Load the data; for a model file, the columns of the model with all their categories."""
    from skescore.black_boxes import is_unsupervised
    from skescore.datasets import DatasetError

    if options.outputs:
        _check_outputs(options, model)
    if model is None:
        return data_from(options)
    if is_unsupervised(model):
        options.explains_labels = True
        return read_model_labels(options, model, options.data)
    names = getattr(model, "feature_names_in_", getattr(model, "feature_names_", None))  # CatBoost
    read = partial(data_from, options, max_categories=sys.maxsize)
    if names is not None:
        with contextlib.suppress(DatasetError):  # the error of the table names all differences
            return read(features=list(map(str, names)))
        with contextlib.suppress(DatasetError, OSError):
            columns = {
                str(name).replace(" ", "_"): name for name in read_table(options.data, options)
            }
            return read(features=[columns.get(name, name) for name in names])  # LightGBM
    return read()


def _check_outputs(options: argparse.Namespace, model: Any) -> None:
    """Check --outputs, and drop the columns of outputs that are not explained."""
    from skescore.black_boxes import is_unsupervised

    if model is None or is_unsupervised(model):
        options.parser.error("argument --outputs: needs --black-box FILE with several outputs")
    if options.target not in options.outputs:
        raise ValueError(
            f"--target must be one of --outputs {','.join(options.outputs)}, got "
            f"{options.target!r}: it names the output to explain."
        )
    columns = set(read_table(options.data, options).columns)
    other_outputs = [name for name in options.outputs if name != options.target and name in columns]
    options.drop = [*options.drop, *other_outputs]


def null_classes(model: Any) -> list[tuple[str, str]]:
    """Return new labels for classes named like missing values, as (old, new) pairs for --labels."""
    from skescore.datasets import Preparation

    return list(Preparation(()).with_classes(getattr(model, "classes_", ())).labels.items())


def check_labels(options: argparse.Namespace, model: Any) -> None:
    """Report an error if --labels renames classes that a fitted model predicts."""
    if not options.labels:
        return
    from skescore.black_boxes import is_unsupervised

    if is_unsupervised(model):
        options.parser.error("argument --labels: not allowed, because the model assigns the labels")
    model_classes = set(map(str, getattr(model, "classes_", ())))
    for old, new in options.labels:
        if old in model_classes and old != new:
            options.parser.error(
                f"argument --labels: {options.black_box} still predicts {old!r}; rename the class "
                "in the table and fit the model again, or leave out --labels"
            )


def read_model_labels(
    options: argparse.Namespace, model: Any, data: str, preparation: Preparation | None = None
) -> Dataset:
    """Load rows with the labels of a clusterer or outlier detector as their target."""
    import pandas as pd

    from skescore.extractors import Oracle

    names = getattr(model, "feature_names_in_", None)
    dataset = unlabeled_data_from(
        options,
        data=data,
        features=None if names is None else list(map(str, names)),
        preparation=preparation,
    )
    y = pd.Series(Oracle(model).query(dataset.X), index=dataset.X.index, name="label")
    if y.nunique() < 2:
        raise ValueError(
            f"The model {options.black_box} assigns the label {y.tolist()[0]!r} to all {len(y)} "
            f"rows of {data}, so there is nothing to explain. Pass other rows."
        )
    return replace(dataset, y=y, task="classification")


def select_explained_output(model: Any, dataset: Dataset, outputs: Sequence[str] | None) -> Any:
    """Return the model from a file, or its output that predicts the target."""
    from skescore.black_boxes import (
        CallableClassifier,
        check_matches,
        is_unsupervised,
        select_output,
    )
    from skescore.extractors import Oracle

    if is_unsupervised(model):
        return CallableClassifier(Oracle(model).query, classes=list(dataset.class_counts))
    if not outputs:
        check_matches(model, dataset)
        return model
    output_index = list(outputs).index(str(dataset.y.name))
    check_matches(model, dataset, output=output_index)
    return select_output(model, output_index)


def prepare_black_box(
    options: argparse.Namespace, dataset: Dataset, model: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the black box and the description of its file for the result."""
    from skescore.black_boxes import (
        CallableClassifier,
        CallableRegressor,
        CommandFunction,
        is_unsupervised,
        make_black_box,
        model_checksum,
    )

    name = options.black_box
    if name.startswith(COMMAND):
        function = CommandFunction(name.removeprefix(COMMAND))
        if dataset.task == "classification":
            return CallableClassifier(function, classes=list(dataset.class_counts)), {}
        return CallableRegressor(function), {}
    if model is None:
        return make_black_box(name, dataset.task, options.seed, dataset.categories), {}
    description: dict[str, Any] = {"checksum_sha256": model_checksum(name)}
    if options.outputs:
        description["outputs"] = options.outputs
    if is_unsupervised(model):
        description["labels"] = True
    return select_explained_output(model, dataset, options.outputs), description
