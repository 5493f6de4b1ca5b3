"""The extractors by name: a table that searches, the command line and tests loop over."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from skescore._text import did_you_mean


class ExtractorSpec(NamedTuple):
    """A registered extractor.

    Parameters
    ----------
    location : str
        ``"module:Class"``; imported when it is used.
    tasks : tuple of str
        What it extracts rules for.
    summary : str
        One line for help texts.
    takes_categories : bool, default=False
        Whether columns may hold names of things.
    """

    location: str
    tasks: tuple[str, ...]
    summary: str
    takes_categories: bool = False


_BOTH = ("classification", "regression")

#: Adding an extractor is one line here and one search space in :mod:`skescore.tuning.spaces`.
EXTRACTORS: dict[str, ExtractorSpec] = {
    "cart": ExtractorSpec(
        "skescore.extractors:CARTExtractor", _BOTH, "decision tree on the black box's answers", True
    ),
    "cream": ExtractorSpec(
        "skescore.extractors:CREAMExtractor", _BOTH, "clusters within clusters, either side split"
    ),
    "exact": ExtractorSpec(
        "skescore.extractors:ExACTExtractor", _BOTH, "clusters within clusters, one inside another"
    ),
    "gridex": ExtractorSpec(
        "skescore.extractors:GridExExtractor", _BOTH, "recursive grid of disjoint boxes"
    ),
    "gridrex": ExtractorSpec(
        "skescore.extractors:GridRExExtractor",
        ("regression",),
        "recursive grid of boxes with linear outputs",
    ),
    "iter": ExtractorSpec(
        "skescore.extractors:ITERExtractor", _BOTH, "boxes that grow while answers stay alike"
    ),
    "real": ExtractorSpec(
        "skescore.extractors:REALExtractor",
        ("classification",),
        "conjunctions found by dropping what the black box does not look at",
        True,
    ),
    "trepan": ExtractorSpec(
        "skescore.extractors:TrepanExtractor",
        ("classification",),
        "tree of M-of-N tests, grown by further questions",
        True,
    ),
}


def suitable_extractors(task: str, *, categories: bool = False) -> tuple[str, ...]:
    """Name the extractors that can be used on some data.

    Parameters
    ----------
    task : {"classification", "regression"}
        What the rules are for.
    categories : bool, default=False
        Whether there are columns of names.

    Returns
    -------
    tuple of str
        Some of :data:`EXTRACTORS`.

    Examples
    --------
    >>> "cart" in suitable_extractors("regression", categories=True)
    True
    """
    return tuple(
        name
        for name, spec in EXTRACTORS.items()
        if task in spec.tasks and (spec.takes_categories or not categories)
    )


def registered_name(extractor: Any) -> str | None:
    """Tell under which name an extractor is registered.

    Parameters
    ----------
    extractor : extractor
        An instance.

    Returns
    -------
    str or None
        One of :data:`EXTRACTORS`; None for an extractor of your own.
    """
    known = {spec.location.partition(":")[2]: name for name, spec in EXTRACTORS.items()}
    name = known.get(type(extractor).__name__)
    return name if name is not None and type(extractor) is extractor_class(name) else None


def extractor_class(name: str) -> Any:
    """Find an extractor by its name.

    Parameters
    ----------
    name : str
        One of :data:`EXTRACTORS`.

    Returns
    -------
    type
        The extractor's class.

    Raises
    ------
    ValueError
        If there is no such extractor.

    Examples
    --------
    >>> extractor_class("cart").__name__
    'CARTExtractor'
    """
    spec = EXTRACTORS.get(name)
    if spec is None:
        raise ValueError(f"There is no extractor {name!r}. {did_you_mean(name, EXTRACTORS)}")
    module, _, attribute = spec.location.partition(":")
    return getattr(import_module(module), attribute)
