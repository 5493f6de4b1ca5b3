"""Checks of a benchmark's configuration before anything runs: an hour must not end in an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._text import did_you_mean
from skescore.black_boxes import make_black_box
from skescore.registry import extractor_names, extractor_spec, make_extractor
from skescore.scorers._makers import get_rule_scorer

if TYPE_CHECKING:
    from skescore.bench._configuration import BenchConfig, ExtractorEntry

__all__ = ["ConfigurationError", "check_config", "check_seeds"]

_LARGEST_SEED = 2**32 - 1


class ConfigurationError(ValueError):
    """The configuration of a benchmark cannot be used; the text says where and why."""


def check_seeds(values: Any) -> tuple[int, ...]:
    """Give seeds as a tuple, each once; raise unless they are such.

    Parameters
    ----------
    values : int or sequence of int
        The seeds.

    Returns
    -------
    tuple of int
        In their order.

    Raises
    ------
    ConfigurationError
        If one is no seed.
    """
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
    """Raise unless a configuration can be run.

    Parameters
    ----------
    config : BenchConfig
        What to check.

    Raises
    ------
    ConfigurationError
        It says where and why.
    """
    if not isinstance(config.name, str):
        raise ConfigurationError(f"name must be a text, got {config.name!r}.")
    if not _is_integer(config.folds) or config.folds < 0:
        raise ConfigurationError(
            "folds must be an integer of at least 0 (1: one split, 0: rules are scored on the rows "
            f"that they come from), got {config.folds!r}."
        )
    size = config.test_size
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 1:
        raise ConfigurationError(f"test_size must be between 0 and 1, got {size!r}.")
    for key in ("data", "black_boxes", "extractors"):
        labels = [entry.label for entry in getattr(config, key)]
        for label in labels:
            if labels.count(label) > 1:
                raise ConfigurationError(
                    f"{key}: {label!r} occurs more than once; give each entry a label of its own."
                )
    for box in config.black_boxes:
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
                f"{where}: data names {label!r}, which is no data set here. "
                f"{did_you_mean(label, labels)}"
            )
    if entry.kind == "rules":
        if not Path(entry.name).is_file():
            raise ConfigurationError(f"{where}: there is no file {entry.name!r} with rules.")
    elif entry.kind == "search":
        _check_search(entry.params, where)
    else:
        _check_params(entry, where)


def _check_params(entry: ExtractorEntry, where: str) -> None:
    """Make the extractor once: values are only checked when it is fitted, names are now."""
    box = make_black_box("decision-tree", extractor_spec(entry.name).tasks[0])
    if "estimator" in entry.params:
        raise ConfigurationError(f"{where}: the black box is named in black_boxes, not in params.")
    try:
        make_extractor(entry.name, box, **entry.params)
    except (TypeError, ValueError) as error:
        known = set(make_extractor(entry.name, box).get_params(deep=False)) - {"estimator"}
        wrong = [key for key in entry.params if key not in known]
        if not wrong:
            raise ConfigurationError(f"{where}: {error}") from error
        raise ConfigurationError(
            f"{where}: {entry.name} has no parameter {wrong[0]!r}. {did_you_mean(wrong[0], known)}"
        ) from error


def _check_search(settings: Mapping[str, Any], where: str) -> None:
    names = settings["extractors"]
    if not names:
        raise ConfigurationError(f"{where}: extractors must name at least one.")
    for name in names:
        if name not in extractor_names():
            raise ConfigurationError(
                f"{where}: there is no extractor {name!r}. {did_you_mean(name, extractor_names())}"
            )
    for key, least in (("trials", len(names)), ("cv", 2)):
        value = settings[key]
        if not _is_integer(value) or value < least:
            raise ConfigurationError(
                f"{where}: {key} must be an integer of at least {least}, got {value!r}."
            )
    try:
        get_rule_scorer(settings["scoring"])
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{where}: {error}") from error
