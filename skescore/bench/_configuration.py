"""Configuration of a benchmark: data sets, black boxes, extractors, methods, seeds and folds."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import pandas as pd
from sklearn.base import BaseEstimator

from skescore._io import check_regular, expand_home
from skescore._names import MODEL_KINDS, PACKAGED, SEARCH
from skescore._text import did_you_mean
from skescore.black_boxes import BLACK_BOXES, make_black_box, type_name
from skescore.datasets import BUILT_IN, Dataset
from skescore.registry import DEFAULT_EXTRACTORS, extractor_names, extractor_spec, make_extractor
from skescore.scorers import get_rule_scorer

__all__ = [
    "BenchConfig",
    "BlackBoxEntry",
    "ConfigurationError",
    "DataEntry",
    "ExtractorEntry",
    "check_config",
    "check_seeds",
    "config_from",
    "read_config",
    "read_methods",
    "text_of_object",
]


_LARGEST_SEED = 2**32 - 1


class ConfigurationError(ValueError):
    """Error in the configuration of a benchmark."""


def check_seeds(values: Any) -> tuple[int, ...]:
    """Return seeds as a tuple without repetitions; raise an error if a seed is invalid."""
    seeds = values if isinstance(values, list | tuple) else [values]
    for seed in seeds:
        if not _is_integer(seed) or not 0 <= seed <= _LARGEST_SEED:
            raise ConfigurationError(
                f"seeds must be integers from 0 to {_LARGEST_SEED}, got {seed!r}."
            )
    if not seeds:
        raise ConfigurationError(f"seeds must hold at least one integer, got {values!r}.")
    return tuple(dict.fromkeys(seeds))


def check_config(config: BenchConfig) -> None:
    """Raise a ConfigurationError if the benchmark cannot be run."""
    if not isinstance(config.name, str):
        raise ConfigurationError(f"name must be a string, got {config.name!r}.")
    if not _is_integer(config.folds) or config.folds < 0:
        raise ConfigurationError(
            "folds must be an integer of at least 0 (1: one split, 0: rules are scored on their "
            f"training rows), got {config.folds!r}."
        )
    size = config.test_size
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 1:
        raise ConfigurationError(f"test_size must be between 0 and 1, got {size!r}.")
    limit = config.time_limit
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0
    ):
        raise ConfigurationError(
            f"time_limit must be a positive number of seconds, or be omitted, got {limit!r}."
        )
    for key in ("data", "black_boxes", "extractors"):
        labels = [entry.label for entry in getattr(config, key)]
        for label in labels:
            if labels.count(label) > 1:
                raise ConfigurationError(
                    f"{key}: {label!r} occurs more than once; give each entry its own label."
                )
    for box in config.black_boxes:
        if box.kind == "object":
            continue
        if box.kind == "file":
            if not Path(box.name).is_file():
                raise ConfigurationError(
                    f"black_boxes, {box.label!r}: there is no file {box.name!r} with a model."
                )
            continue
        try:
            for task in ("classification", "regression"):
                make_black_box(box.name, task, 0, scaled=box.scaled, params=box.params)
        except ValueError as error:
            raise ConfigurationError(f"black_boxes, {box.label!r}: {error}") from error
    for entry in config.extractors:
        _check_extractor(entry, [data.label for data in config.data])


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_extractor(entry: ExtractorEntry, labels: Sequence[str]) -> None:
    where = f"extractors, {entry.label!r}"
    for label in entry.data or ():
        if label not in labels:
            raise ConfigurationError(
                f"{where}: data names {label!r}, which is not a data set of this benchmark. "
                f"{did_you_mean(label, labels)}"
            )
    if entry.kind == "rules":
        if not Path(entry.name).is_file():
            raise ConfigurationError(f"{where}: there is no file {entry.name!r} with rules.")
    elif entry.kind == "search":
        _check_search(entry.params, where)
    elif entry.kind == "extractor":
        _check_params(entry, where)


def _check_params(entry: ExtractorEntry, where: str) -> None:
    """Check the parameter names of an extractor; `fit` checks their values."""
    box = make_black_box("decision-tree", extractor_spec(entry.name).tasks[0])
    if "estimator" in entry.params:
        raise ConfigurationError(
            f"{where}: estimator is not allowed in params; list black boxes in black_boxes."
        )
    try:
        make_extractor(entry.name, box, **entry.params)
    except (TypeError, ValueError) as error:
        valid = set(make_extractor(entry.name, box).get_params(deep=False)) - {"estimator"}
        invalid = [key for key in entry.params if key not in valid]
        if not invalid:
            raise ConfigurationError(f"{where}: {error}") from error
        raise ConfigurationError(
            f"{where}: {entry.name} has no parameter {invalid[0]!r}. "
            f"{did_you_mean(invalid[0], valid)}"
        ) from error


def _check_search(settings: Mapping[str, Any], where: str) -> None:
    names = settings["extractors"]
    if names is not None and not names:
        raise ConfigurationError(f"{where}: extractors must name at least one extractor.")
    for name in names or ():
        if name not in extractor_names():
            raise ConfigurationError(
                f"{where}: there is no extractor {name!r}. {did_you_mean(name, extractor_names())}"
            )
    for key, minimum in (("trials", len(names or [SEARCH])), ("cv", 2)):
        value = settings[key]
        if not _is_integer(value) or value < minimum:
            raise ConfigurationError(
                f"{where}: {key} must be an integer of at least {minimum}, got {value!r}."
            )
    try:
        get_rule_scorer(settings["scoring"])
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{where}: {error}") from error


#: Settings of a search and their defaults.
_SEARCH_SETTINGS: Mapping[str, Any] = {
    "extractors": ("cart", "gridex"),
    "trials": 30,
    "scoring": "ice",
    "cv": 3,
}
#: Options of `load_dataset` that an entry of ``data`` may have.
_DATA_OPTIONS = (
    "target",
    "task",
    "drop",
    "missing",
    "features",
    "categories",
    "numeric",
    "na_values",
    "sep",
    "decimal",
    "encoding",
    "sample",
    "groups",
    "time",
    "header",
    "skip_rows",
    "labels",
    "drop_duplicates",
)


@dataclass(frozen=True)
class DataEntry:
    """Data set of a benchmark.

    `source` is its name, its path or ``"data frame"``. `options` are passed to ``load_dataset``.
    `table` is a data frame or a loaded data set, or None if `source` is a name or a path.
    """

    label: str
    source: str
    options: dict[str, Any] = field(default_factory=dict)
    table: pd.DataFrame | Dataset | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class BlackBoxEntry:
    """Black box of a benchmark.

    `kind` is ``"named"``, ``"file"`` for a trained model with the path `name`, or ``"object"`` for
    an `estimator`, which is cloned and fitted unless it is frozen. If `scaled` is True, data
    are standardized for black boxes that are sensitive to scale.
    """

    label: str
    name: str
    params: dict[str, Any] = field(default_factory=dict)
    scaled: bool = True
    kind: str = "named"
    estimator: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class ExtractorEntry:
    """Source of rules in a benchmark: an extractor, a search or a file of rules.

    `kind` is ``"extractor"``, ``"object"`` (a class or an instance, in `extractor`), ``"search"``
    or ``"rules"``; `name` is the registered name, the name of the class or the path of the file.
    `data` contains the labels of the data sets to use; None means all suitable data sets.
    """

    label: str
    kind: str
    name: str
    params: dict[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] | None = None
    extractor: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class BenchConfig:
    """Configuration of a benchmark; returned by :func:`config_from` and :func:`read_config`.

    Parameters
    ----------
    data : tuple of DataEntry
        Data sets.
    black_boxes : tuple of BlackBoxEntry
        Models to explain.
    extractors : tuple of ExtractorEntry
        Sources of rules.
    seeds : tuple of int, default=(0,)
        Seeds of folds, black boxes and extractors.
    folds : int, default=5
        At least 2: cross-validation. 1: one split, see `test_size`. 0: scores on the training rows.
    test_size : float, default=0.5
        Held-out share of the rows if `folds` is 1.
    name : str, default="bench"
        Title.
    time_limit : float, optional
        Time limit of a row in seconds, without the training of its black box. If it is exceeded,
        the process is killed and the row fails.
    """

    data: tuple[DataEntry, ...]
    black_boxes: tuple[BlackBoxEntry, ...]
    extractors: tuple[ExtractorEntry, ...]
    seeds: tuple[int, ...] = (0,)
    folds: int = 5
    test_size: float = 0.5
    name: str = "bench"
    time_limit: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything that determines the rows as JSON values, with checksums of files."""
        return {
            "name": self.name,
            "data": [{"label": e.label, "source": e.source, **e.options} for e in self.data],
            "black_boxes": [_describe_black_box(entry) for entry in self.black_boxes],
            "extractors": [_describe_extractor(entry) for entry in self.extractors],
            "seeds": list(self.seeds),
            "folds": self.folds,
            "test_size": self.test_size if self.folds == 1 else None,
            **({} if self.time_limit is None else {"time_limit": self.time_limit}),
        }

    def with_changes(self, **changes: Any) -> BenchConfig:
        """Return a copy with changed fields."""
        config = replace(self, **changes)
        check_config(config)
        return config


def _describe_black_box(entry: BlackBoxEntry) -> dict[str, Any]:
    if entry.kind == "file":
        return {"label": entry.label, "file": entry.name, "checksum_sha256": _checksum(entry.name)}
    record = {
        "label": entry.label,
        "name": entry.name,
        "params": entry.params,
        "scaled": entry.scaled,
    }
    return record | ({"hash": joblib.hash(entry.estimator)} if entry.kind == "object" else {})


def _checksum(path: str) -> str:
    check_regular(Path(path), path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _describe_extractor(entry: ExtractorEntry) -> dict[str, Any]:
    params = json.loads(json.dumps(entry.params, default=text_of_object))
    record: dict[str, Any] = {
        "label": entry.label,
        "kind": entry.kind,
        "name": entry.name,
        "params": params,
        "data": None if entry.data is None else list(entry.data),
    }
    if entry.kind == "rules":
        record["checksum_sha256"] = _checksum(entry.name)
    return record


def text_of_object(value: Any) -> str:
    """Return the text of a parameter without memory addresses, which differ between runs."""
    return getattr(value, "__qualname__", None) or re.sub(r" at 0x[0-9a-f]+", "", str(value))


def read_config(path: Path) -> BenchConfig:
    """Read the configuration of a benchmark from a TOML file.

    Use it for benchmarks that are run repeatedly. Paths in the file are relative to its folder.

    Parameters
    ----------
    path : Path
        Path of the file, see Notes.

    Returns
    -------
    BenchConfig
        The configuration.

    Raises
    ------
    ConfigurationError
        If the file is not TOML, or a value is invalid. It is a ValueError.
    OSError
        If the file cannot be read.

    Notes
    -----
    Keys: ``name``, ``data``, ``black_boxes``, ``extractors``, ``seeds``, ``folds``, ``test_size``,
    ``time_limit``. Entries of the first three lists are names or tables (in Python also objects,
    see :func:`config_from`)::

        data = ["iris", {source = "houses.csv", target = "price", drop = ["id"]}]
        black_boxes = [
            {label = "9-NN", name = "knn", scaled = false, params = {n_neighbors = 9}},
            {label = "theirs", file = "model.skops"},   # a trained model
        ]
        seeds = [0, 1]
        folds = 5

        [[extractors]]
        label = "4 slices"
        name = "gridex"
        params = {n_slices = 4}

        [[extractors]]
        label = "by hand"
        rules = "rules.json"   # written by skescore import or skescore tune
        data = ["iris"]        # by default all data sets that the rules support

        [[extractors]]
        name = "search"
        extractors = ["cart", "gridex"]
        trials = 30            # scoring = "ice", cv = 3
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"There is no file {path}; name a TOML file.") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a folder; name a TOML file.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error}.") from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}.") from error
    try:
        return config_from({"name": path.stem} | raw, base=path.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def config_from(raw: Mapping[str, Any], *, base: Path | None = None) -> BenchConfig:
    """Create a configuration from lists and dicts, as in a TOML file.

    Parameters
    ----------
    raw : mapping
        Keys as in :func:`read_config`. Without ``extractors``, the default extractors are used.
        Entries may also be objects: a data frame as ``{"source": frame, "target": "price"}``; a
        :class:`~skescore.datasets.Dataset`; an estimator as black box, which is cloned and fitted
        unless it is a ``FrozenEstimator``; an extractor or its class. To add a label or parameters,
        write ``{"label": "mine", "estimator": model}`` or
        ``{"extractor": MyExtractor, "params": {...}}``.
    base : Path, optional
        Folder to which paths are relative; by default the current folder.

    Returns
    -------
    BenchConfig
        The configuration.

    Raises
    ------
    ConfigurationError
        If a key is unknown or a value is invalid. It is a ValueError.

    Examples
    --------
    >>> from skescore.bench import config_from
    >>> config = config_from({"data": ["iris"], "black_boxes": ["knn"], "extractors": ["cart"]})
    >>> config.extractors[0].label, config.seeds, config.folds
    ('cart', (0,), 5)
    """
    valid_keys = {
        "name",
        "data",
        "black_boxes",
        "extractors",
        "seeds",
        "folds",
        "test_size",
        "time_limit",
    }
    _refuse_unknown(raw, valid_keys, "the configuration")
    for key in ("data", "black_boxes"):
        if key not in raw:
            raise ConfigurationError(f"{key} is missing: list at least one.")
    config = BenchConfig(
        data=_read_entries(raw["data"], "data", lambda item: _read_data(item, base)),
        black_boxes=_read_entries(
            raw["black_boxes"], "black_boxes", lambda item: _read_black_box(item, base)
        ),
        extractors=_read_entries(
            raw.get("extractors", list(DEFAULT_EXTRACTORS)),
            "extractors",
            lambda item: _read_extractor(item, base),
        ),
        seeds=check_seeds(raw.get("seeds", [0])),
        folds=raw.get("folds", 5),
        test_size=raw.get("test_size", 0.5),
        name=raw.get("name", "bench"),
        time_limit=raw.get("time_limit"),
    )
    check_config(config)
    return config


def _read_entries(items: Any, key: str, make: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not isinstance(items, list | tuple) or not items:
        raise ConfigurationError(f"{key} must be a list with at least one entry, got {items!r}.")
    return tuple(make(item) for item in items)


def _read_data(item: Any, base: Path | None) -> DataEntry:
    """Convert an entry of ``data``: a name, a path, a data frame, a data set or a table."""
    if isinstance(item, pd.DataFrame | Dataset):
        item = {"source": item}
    table = _as_table(item, "source", "data")
    _refuse_unknown(table, {"label", "source", *_DATA_OPTIONS}, "an entry of data")
    options = {key: table[key] for key in _DATA_OPTIONS if key in table}
    data = table.get("source")
    if isinstance(data, Dataset):
        return DataEntry(str(table.get("label", data.name)), data.source, {}, data)
    if isinstance(data, pd.DataFrame):
        return DataEntry(str(table.get("label", "data")), "data frame", options, data)
    source = _read_text(table, "source", "data")
    label = table.get("label", source)
    if source.startswith(PACKAGED):
        label = table.get("label", source.rpartition("/")[2])
    elif source not in BUILT_IN and not source.startswith("openml:"):
        label = table.get("label", Path(source).name.partition(".")[0])
        source = _resolve_path(source, base)
    return DataEntry(str(label), source, options)


def _read_black_box(item: Any, base: Path | None) -> BlackBoxEntry:
    """Convert an entry of ``black_boxes``: a name, a file, an estimator or a table."""
    if isinstance(item, str) and item.lower().endswith(MODEL_KINDS):
        item = {"file": item}
    if isinstance(item, BaseEstimator):
        item = {"estimator": item}
    table = _as_table(item, "name", "black_boxes")
    if "estimator" in table:
        _refuse_unknown(table, {"label", "estimator"}, "an entry of black_boxes with an estimator")
        model = table["estimator"]
        label = str(table.get("label", type_name(model)))
        return BlackBoxEntry(label, type_name(model), kind="object", estimator=model)
    if "file" in table:
        _refuse_unknown(table, {"label", "file"}, "an entry of black_boxes with a file")
        path = _read_text(table, "file", "black_boxes")
        if not path.lower().endswith(MODEL_KINDS):
            raise ConfigurationError(
                f"black_boxes: a file name must end in one of {', '.join(MODEL_KINDS)}, got "
                f"{path!r}."
            )
        label = table.get("label", Path(path).stem)
        return BlackBoxEntry(str(label), _resolve_path(path, base), kind="file")
    _refuse_unknown(table, {"label", "name", "params", "scaled"}, "an entry of black_boxes")
    name = _read_text(table, "name", "black_boxes")
    if name not in BLACK_BOXES:
        raise ConfigurationError(
            f"black_boxes: there is no black box {name!r}. {did_you_mean(name, BLACK_BOXES)} The "
            f"name of a file with a trained model ends in one of {', '.join(MODEL_KINDS)}."
        )
    scaled = table.get("scaled", True)
    if not isinstance(scaled, bool):
        raise ConfigurationError(f"black_boxes: scaled must be true or false, got {scaled!r}.")
    params = _read_params(table, "black_boxes")
    return BlackBoxEntry(str(table.get("label", name)), name, params, scaled)


def _read_extractor(item: Any, base: Path | None) -> ExtractorEntry:
    """Convert an entry of ``extractors``: a name, a file of rules, an extractor or a table."""
    if isinstance(item, str) and item.lower().endswith(".json"):
        item = {"rules": item}
    if isinstance(item, type) or hasattr(item, "get_params"):
        item = {"extractor": item}
    table = _as_table(item, "name", "extractors")
    data = table.get("data")
    if data is not None:
        data = (data,) if isinstance(data, str) else tuple(data)
    if "rules" in table:
        _refuse_unknown(table, {"label", "rules", "data"}, "an entry of extractors with rules")
        path = _read_text(table, "rules", "extractors")
        label = table.get("label", Path(path).name)
        return ExtractorEntry(str(label), "rules", _resolve_path(path, base), {}, data)
    if "extractor" in table:
        valid_keys = {"label", "extractor", "params", "data"}
        _refuse_unknown(table, valid_keys, "an entry of extractors with an object")
        extractor, params = table["extractor"], _read_params(table, "extractors")
        if not isinstance(extractor, type):
            params = extractor.get_params(deep=False) | params
            params.pop("estimator", None)
        name = (extractor if isinstance(extractor, type) else type(extractor)).__name__
        label = str(table.get("label", name))
        return ExtractorEntry(label, "object", name, params, data, extractor)
    name = _read_text(table, "name", "extractors")
    label = str(table.get("label", name))
    if name == SEARCH:
        valid_keys = {"label", "name", "data", *_SEARCH_SETTINGS}
        _refuse_unknown(table, valid_keys, "an entry of extractors named 'search'")
        settings = {key: table.get(key, value) for key, value in _SEARCH_SETTINGS.items()}
        names = settings["extractors"]
        if names != "default" and (not isinstance(names, Sequence) or isinstance(names, str)):
            raise ConfigurationError(
                "extractors: the extractors of a search must be a list of names, such as "
                f'["cart", "gridex"], or "default", got {names!r}.'
            )
        settings["extractors"] = None if names == "default" else list(names)
        return ExtractorEntry(label, "search", SEARCH, settings, data)
    _refuse_unknown(table, {"label", "name", "params", "data"}, "an entry of extractors")
    if name not in extractor_names():
        raise ConfigurationError(
            f"extractors: there is no extractor {name!r}. "
            f"{did_you_mean(name, (*extractor_names(), SEARCH))} The name of a file of rules ends "
            "in .json."
        )
    return ExtractorEntry(label, "extractor", name, _read_params(table, "extractors"), data)


def _as_table(item: Any, key: str, where: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {key: item}
    if not isinstance(item, Mapping):
        raise ConfigurationError(f"{where}: an entry must be a name or a table, got {item!r}.")
    return dict(item)


def _read_text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where}: every entry needs a string {key!r}, got {table!r}.")
    return value


def _read_params(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    params = table.get("params", {})
    if not isinstance(params, Mapping):
        raise ConfigurationError(f"{where}: params must be a table, got {params!r}.")
    return dict(params)


def _resolve_path(text: str, base: Path | None) -> str:
    path = expand_home(text)
    return str(path if base is None or path.is_absolute() else base / path)


def _refuse_unknown(table: Mapping[str, Any], valid_keys: set[str], where: str) -> None:
    for key in table:
        if key not in valid_keys:
            raise ConfigurationError(f"{where} has no {key!r}. {did_you_mean(key, valid_keys)}")


# --- methods defined in a Python file of the user ------------------------------------------------


def read_methods(path: Path) -> list[dict[str, Any]]:
    """Run a Python file with methods to compare and return entries of ``extractors``.

    Use it to add methods to a benchmark that are not extractors of this package: rule learners of
    other libraries, or your own functions.

    Parameters
    ----------
    path : Path
        The file. It is executed, so pass only files that you trust. It defines a dict ``METHODS``
        with labels as keys and the following values:

        - rule learners or functions, see `learner` of
          :class:`~skescore.extractors.SurrogateExtractor`,
        - extractors or their classes,
        - entries of :func:`config_from` with ``"name"``, such as
          ``{"name": "search", "trials": 20}``.

    Returns
    -------
    list of dict
        Entries for the list ``extractors`` of :func:`config_from`.

    Raises
    ------
    ConfigurationError
        If the file cannot be run or defines no methods. It is a ValueError.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.bench import config_from, read_methods
    >>> program = '''
    ... from sklearn.tree import DecisionTreeClassifier
    ... METHODS = {"stump": {"classification": DecisionTreeClassifier(max_depth=1)}}
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.py"
    ...     _ = path.write_text(program)
    ...     entries = read_methods(path)
    >>> config = config_from({"data": ["iris"], "black_boxes": ["knn"], "extractors": entries})
    >>> config.extractors[0].label
    'stump'
    """
    path = path.resolve()
    # The module name is part of the record of a benchmark, so it must not depend on the folder.
    name = re.sub(r"\W", "_", f"skescore_methods_{path.stem}")
    if getattr(sys.modules.get(name), "__file__", str(path)) != str(path):
        name += f"_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigurationError(f"{path} is not a Python file. Name a file that ends in .py.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigurationError(
            f"{path} cannot be run: {type(error).__name__}: {error}"
        ) from error
    # Worker processes cannot import the module.
    cloudpickle.register_pickle_by_value(module)
    methods = getattr(module, "METHODS", None)
    if not isinstance(methods, Mapping) or not methods:
        raise ConfigurationError(
            f"{path} must define METHODS, a dict of methods by label, got {methods!r}."
        )
    return [_method_entry(path, str(label), method) for label, method in methods.items()]


def _method_entry(path: Path, label: str, method: Any) -> dict[str, Any]:
    if isinstance(method, Mapping) and "name" in method:
        return {"label": label, **method}
    if isinstance(method, type) or "estimator" in getattr(method, "_get_param_names", list)():
        if hasattr(method, "tasks"):
            return {"label": label, "extractor": method}
        raise ConfigurationError(
            f"{path}, {label!r}: a class must be an extractor; pass a learner as an instance."
        )
    from skescore.extractors import SurrogateExtractor

    extractor = SurrogateExtractor(None, dict(method) if isinstance(method, Mapping) else method)
    if isinstance(method, Mapping):
        extractor.__dict__["tasks"] = tuple(method)  # of this instance only
    return {"label": label, "extractor": extractor}
