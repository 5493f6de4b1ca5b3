"""Extractors by name, for searches, benchmarks, the command line and tests.

There are four kinds of names. Built-in extractors are in :data:`EXTRACTORS`; searches try those
that are ``by_default``. The extractors in :data:`PSYKE_EXTRACTORS` require an extra of this
package. :func:`register_extractor` adds a name at run time. Installed packages add names through an
entry point of the group ``skescore.extractors``::

    [project.entry-points."skescore.extractors"]
    their-name = "their_package:TheirExtractor"

Everything else is declared on the class. The attribute ``tasks`` lists the tasks, such as
``("classification",)``, and ``takes_categories`` states whether columns may be categorical. A class
or static method ``search_space(n_rows, y, task)`` returns Optuna distributions by parameter. An
optional ``starting_points(n_outputs)`` returns the settings to try first. The first line of the
docstring is the summary. :func:`skescore.testing.check_extractor` checks that the class works.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, NamedTuple

from skescore._text import did_you_mean, listed

__all__ = [
    "DEFAULT_EXTRACTORS",
    "ENTRY_POINT_GROUP",
    "EXTRACTORS",
    "PSYKE_EXTRACTORS",
    "SMALL_TABLE",
    "ExtractorSpec",
    "extractor_class",
    "extractor_label",
    "extractor_names",
    "extractor_spec",
    "make_extractor",
    "register_extractor",
    "registered_name",
    "suitable_extractors",
]

#: Entry-point group in which installed packages declare extractors.
ENTRY_POINT_GROUP = "skescore.extractors"

_TASKS = ("classification", "regression")


class ExtractorSpec(NamedTuple):
    """Specification of a registered extractor.

    Parameters
    ----------
    location : str
        ``"module:Class"``; imported on first use, unless the class has been registered.
    tasks : tuple of str
        Tasks for which it extracts rules.
    summary : str
        One-line description.
    takes_categories : bool, default=False
        Whether columns may be categorical.
    settings : mapping of str to value, default={}
        Parameters that the name fixes.
    extra : str, optional
        Extra of this package that installs its dependencies.
    search_space : mapping or callable, optional
        Optuna distributions by parameter, or a function of ``(n_rows, y, task)`` that returns them.
        By default the ``search_space`` of the class.
    label : str, optional
        Name in texts and plots; by default the registered name.
    by_default : bool, default=True
        Whether searches and benchmarks use it if no names are given.
    small_tables : tuple of str, default=()
        Tasks for which searches use it by default on tables of at most :data:`SMALL_TABLE` rows. It
        would take too long on larger tables and in benchmarks.
    is_costly : bool, default=False
        Whether an extraction takes several times as long as most others. A search gives it more
        than a first round of trials only if it leads.
    """

    location: str
    tasks: tuple[str, ...]
    summary: str
    takes_categories: bool = False
    settings: Mapping[str, Any] = MappingProxyType({})
    extra: str | None = None
    search_space: Mapping[str, Any] | Callable[..., Any] | None = None
    label: str | None = None
    by_default: bool = True
    small_tables: tuple[str, ...] = ()
    is_costly: bool = False


#: Modules and classes of the built-in extractors.
_LOCATIONS = {
    "cart": "skescore.extractors:CARTExtractor",
    "cream": "skescore.extractors:CREAMExtractor",
    "exact": "skescore.extractors:ExACTExtractor",
    "gridex": "skescore.extractors:GridExExtractor",
    "gridrex": "skescore.extractors:GridRExExtractor",
    "iter": "skescore.extractors:ITERExtractor",
    "optimal-list": "skescore.extractors:OptimalListExtractor",
    "optimal-tree": "skescore.extractors:OptimalTreeExtractor",
    "real": "skescore.extractors:REALExtractor",
    "trepan": "skescore.extractors:TrepanExtractor",
}
#: Slow built-in extractors, with the tasks for which searches use them on small tables.
_SLOW = {"optimal-list": ("classification",), "optimal-tree": ("classification",)}
#: Built-in extractors that take several times as long as most others.
_COSTLY = ("iter", "optimal-list", "optimal-tree", "real")
#: Maximum number of rows for which searches also use slow extractors.
SMALL_TABLE = 1000
#: Extractors that searches and benchmarks use by default, for any table.
DEFAULT_EXTRACTORS = tuple(name for name in _LOCATIONS if name not in _SLOW)


class _BuiltInSpecs(UserDict[str, ExtractorSpec]):
    """Specifications by name, read from the class of an extractor on first use."""

    def __getitem__(self, name: str) -> ExtractorSpec:
        if name in _LOCATIONS and name not in self.data:
            location = _LOCATIONS[name]
            spec = _read_spec(_import_class(location), location, f"The extractor {name!r}")
            self.data[name] = spec._replace(
                label=_built_in_label(name),
                by_default=name not in _SLOW,
                small_tables=_SLOW.get(name, ()),
                is_costly=name in _COSTLY,
            )
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_LOCATIONS, *self.data)))

    def __len__(self) -> int:
        return len(_LOCATIONS.keys() | self.data.keys())

    def __contains__(self, name: object) -> bool:
        return name in _LOCATIONS or name in self.data


def _import_class(location: str) -> Any:
    """Import the object at a location such as ``"module:Class"``."""
    module, _, attribute = location.partition(":")
    value: Any = import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


def _built_in_label(name: str) -> str:
    """Return the name of a built-in extractor's class without "Extractor"; import nothing."""
    return _LOCATIONS[name].partition(":")[2].removesuffix("Extractor")


#: Built-in extractors. Iteration over the names imports nothing.
EXTRACTORS: MutableMapping[str, ExtractorSpec] = _BuiltInSpecs()


def _psyke(label: str, tasks: tuple[str, ...], summary: str) -> ExtractorSpec:
    return ExtractorSpec(
        "skescore.extractors.psyke:PSyKEExtractor",
        tasks,
        f"PSyKE's {summary}",
        settings=MappingProxyType({"algorithm": label.lower()}),
        extra="psyke",
        label=f"PSyKE {label}",
    )


#: PSyKE's algorithms. Searches use them only by name, because they require an extra.
PSYKE_EXTRACTORS: dict[str, ExtractorSpec] = {
    f"psyke:{label.lower()}": _psyke(label, tasks, summary)
    for label, tasks, summary in (
        ("CART", _TASKS, "decision tree"),
        ("COSMiK", ("regression",), "boxes around the components of a mixture"),
        ("CREAM", _TASKS, "clusters within clusters, inside and outside each box"),
        ("DiViNE", ("classification",), "boxes grown from the centers of classes"),
        ("ExACT", _TASKS, "clusters within clusters, one inside another"),
        ("GInGER", _TASKS, "grid and formulas found by a genetic algorithm"),
        ("GridEx", _TASKS, "recursive grid of disjoint boxes"),
        ("GridREx", ("regression",), "recursive grid of boxes with linear outputs"),
        ("HEx", _TASKS, "recursive grid that also queries cells without rows"),
        ("ITER", _TASKS, "boxes that grow while predictions stay similar"),
        ("REAL", ("classification",), "conjunctions found by dropping literals"),
        ("Trepan", ("classification",), "tree of tests on discretized features"),
    )
}


#: Specifications and classes added by :func:`register_extractor`.
_REGISTERED: dict[str, tuple[ExtractorSpec, type]] = {}


def register_extractor(
    name: str,
    extractor_class: type,
    search_space: Mapping[str, Any] | Callable[..., Any] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Register your own extractor under a name that searches and benchmarks accept.

    The registration lasts until the program ends. Packages should use an entry point instead.

    Parameters
    ----------
    name : str
        Name that no other extractor has.
    extractor_class : type
        Class with ``fit`` whose first parameter is the black box, and with ``tasks``, such as
        ``("classification",)``. :func:`skescore.testing.check_extractor` checks its instances.
    search_space : mapping or callable, optional
        Optuna distributions by parameter, or a function of ``(n_rows, y, task)`` that returns them.
        By default the ``search_space`` of the class, if it has one.
    replace : bool, default=False
        Whether to replace an extractor that was registered under the same name before, for example
        if a notebook cell is run twice.

    Raises
    ------
    ValueError
        If the name is taken.
    TypeError
        If the name is not a string, the class does not declare its tasks, or the space is neither
        a mapping nor callable.

    Examples
    --------
    >>> from optuna.distributions import IntDistribution
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> class Stump(CARTExtractor):
    ...     "One split."
    >>> register_extractor("stump", Stump, {"max_depth": IntDistribution(1, 1)})
    >>> make_extractor("stump", DecisionTreeClassifier(), max_depth=1)
    Stump(estimator=DecisionTreeClassifier(), max_depth=1)
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a non-empty string, got {name!r}.")
    if name in extractor_names() and not (replace and name in _REGISTERED):
        hint = ", or pass replace=True" if name in _REGISTERED else ""
        raise ValueError(
            f"The name {name!r} is taken by another extractor. Choose another name{hint}."
        )
    if not (search_space is None or isinstance(search_space, Mapping) or callable(search_space)):
        raise TypeError(
            "search_space must be a dict of Optuna distributions, a function of (n_rows, y, task) "
            f"that returns one, or None, got {search_space!r}."
        )
    location = ":".join(
        str(getattr(extractor_class, part, "")) for part in ("__module__", "__qualname__")
    )
    spec = _read_spec(extractor_class, location, f"The extractor {name!r}")
    _REGISTERED[name] = spec._replace(search_space=search_space), extractor_class


def extractor_names() -> tuple[str, ...]:
    """List the names of all extractors: built-in, PSyKE, registered, and of installed packages.

    Nothing is imported, so the list includes extractors whose import would fail.

    Returns
    -------
    tuple of str
        Names, the built-in extractors first.

    Examples
    --------
    >>> names = extractor_names()
    >>> names[:2], "psyke:gridex" in names
    (('cart', 'cream'), True)
    """
    installed = sorted(_entry_points())
    return tuple(dict.fromkeys((*EXTRACTORS, *PSYKE_EXTRACTORS, *_REGISTERED, *installed)))


def suitable_extractors(
    task: str,
    *,
    categories: bool = False,
    n_rows: int | None = None,
    plugins: bool = False,
) -> tuple[str, ...]:
    """List the extractors that searches use by default.

    Parameters
    ----------
    task : {"classification", "regression"}
        The task.
    categories : bool, default=False
        Whether there are categorical columns.
    n_rows : int, optional
        Number of rows. Slow extractors are included for tables of at most :data:`SMALL_TABLE`
        rows, after the other built-in extractors.
    plugins : bool, default=False
        Whether to include registered extractors and extractors of installed packages, which are
        then imported. Without them, the names are the same on every machine.

    Returns
    -------
    tuple of str
        Names, built-in extractors first.

    Raises
    ------
    ImportError, TypeError, ValueError
        With ``plugins=True``, if an installed package's extractor cannot be used.

    Examples
    --------
    >>> "cart" in suitable_extractors("regression", categories=True)
    True
    """
    is_small = n_rows is not None and n_rows <= SMALL_TABLE
    specs = {name: spec for name, spec in EXTRACTORS.items() if spec.by_default}
    specs |= {
        name: spec for name, spec in EXTRACTORS.items() if is_small and task in spec.small_tables
    }
    if plugins:
        plugin_specs = {
            name: extractor_spec(name) for name in (*_REGISTERED, *sorted(_entry_points()))
        }
        specs |= {name: spec for name, spec in plugin_specs.items() if spec.by_default}
    return tuple(
        name
        for name, spec in specs.items()
        if task in spec.tasks and (spec.takes_categories or not categories)
    )


def registered_name(extractor: Any) -> str | None:
    """Find the registered name of an extractor.

    Parameters
    ----------
    extractor : extractor
        The extractor.

    Returns
    -------
    str or None
        One of :func:`extractor_names`; None if the class is not registered.
    """
    kind = type(extractor)
    for name, (_, registered) in _REGISTERED.items():
        if registered is kind:
            return name
    for name, spec in {**EXTRACTORS, **PSYKE_EXTRACTORS}.items():
        if spec.location.rpartition(":")[2] != kind.__name__:
            continue
        if _import_class(spec.location) is kind and all(
            getattr(extractor, key, None) == value for key, value in spec.settings.items()
        ):
            return name
    for name, entries in _entry_points().items():
        # The module of the extractor's class has been imported, so other modules are skipped.
        module, _, attribute = entries[0].value.partition(":")
        entry_class: Any = sys.modules.get(module.strip())
        for part in attribute.partition("[")[0].strip().split("."):
            entry_class = getattr(entry_class, part, None)
        is_shadowed = name in EXTRACTORS or name in PSYKE_EXTRACTORS
        if entry_class is kind and len(entries) == 1 and not is_shadowed:
            return name
    return None


#: Suffix of rules that were extracted again with rows of disagreement.
_WITNESSES = " + witnesses"


def extractor_label(name: str) -> str:
    """Return the name of an extractor in texts and plots, as its authors write it.

    Parameters
    ----------
    name : str
        A name in :func:`extractor_names`, or any other name.

    Returns
    -------
    str
        Label; `name` itself if there is none. Nothing is imported.

    Examples
    --------
    >>> extractor_label("gridrex"), extractor_label("psyke:iter"), extractor_label("mine")
    ('GridREx', 'PSyKE ITER', 'mine')
    """
    if name in _LOCATIONS:
        return _built_in_label(name)
    if name.endswith(_WITNESSES):
        return extractor_label(name.removesuffix(_WITNESSES)) + _WITNESSES
    spec = PSYKE_EXTRACTORS.get(name)
    return (spec.label if spec else None) or name


def extractor_spec(name: str) -> ExtractorSpec:
    """Return the specification of an extractor.

    Parameters
    ----------
    name : str
        A name in :func:`extractor_names`. Its class is imported.

    Returns
    -------
    ExtractorSpec
        The specification.

    Raises
    ------
    ValueError
        If there is no such extractor, or an installed package uses a name that is taken.
    ImportError
        If an installed package's extractor cannot be imported.
    TypeError
        If the entry is not a class with ``fit``, or does not declare its tasks.

    Examples
    --------
    >>> extractor_spec("gridrex").tasks
    ('regression',)
    >>> dict(extractor_spec("psyke:gridrex").settings)
    {'algorithm': 'gridrex'}
    """
    if name in _REGISTERED:
        return _REGISTERED[name][0]
    entries = _entry_points().get(name, []) if isinstance(name, str) else []
    built_in = EXTRACTORS.get(name) or PSYKE_EXTRACTORS.get(name)
    if built_in is not None and entries:
        raise ValueError(
            f"The name {name!r} belongs to skescore, but {_packages_of(entries)} registers an "
            "extractor under it. Uninstall that package, or ask its authors to choose another name."
        )
    if built_in is not None:
        return built_in
    if not entries:
        raise ValueError(f"There is no extractor {name!r}. {did_you_mean(name, extractor_names())}")
    if len(entries) > 1:
        raise ValueError(
            f"Several packages register an extractor named {name!r}: {_packages_of(entries)}. "
            "Uninstall all but one, or use the class itself."
        )
    return _plugin_spec(entries[0])


def extractor_class(name: str) -> Any:
    """Return the class of an extractor.

    Parameters
    ----------
    name : str
        A name in :func:`extractor_names`.

    Returns
    -------
    type
        Class of the extractor. Some names also fix parameters, such as ``"psyke:gridex"``, which
        :func:`make_extractor` sets.

    Raises
    ------
    ValueError, ImportError, TypeError
        See :func:`extractor_spec`.

    Examples
    --------
    >>> extractor_class("cart").__name__
    'CARTExtractor'
    """
    if name in _REGISTERED:
        return _REGISTERED[name][1]
    return _import_class(extractor_spec(name).location)


def make_extractor(name: str, estimator: Any, **parameters: Any) -> Any:
    """Create an extractor for a black box.

    Parameters
    ----------
    name : str
        A name in :func:`extractor_names`.
    estimator : estimator
        The black box.
    **parameters
        Parameters of the extractor.

    Returns
    -------
    extractor
        The unfitted extractor.

    Raises
    ------
    ValueError, ImportError, TypeError
        See :func:`extractor_spec`; a TypeError also for a parameter that the extractor does not
        have or that the name fixes.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> make_extractor("cart", KNeighborsClassifier(), max_leaf_nodes=4)
    CARTExtractor(estimator=KNeighborsClassifier(), max_leaf_nodes=4)
    """
    settings = extractor_spec(name).settings
    if fixed := sorted(set(settings) & set(parameters)):
        raise TypeError(
            f"The name {name!r} fixes {fixed[0]}={settings[fixed[0]]!r}, got "
            f"{fixed[0]}={parameters[fixed[0]]!r}. Use another name, or the class itself."
        )
    return extractor_class(name)(estimator, **settings, **parameters)


def _entry_points() -> dict[str, list[EntryPoint]]:
    """Return the entry points by name; only metadata is read, once per set of packages."""
    return _entry_points_in(tuple((folder, _changed(folder)) for folder in sys.path))


def _changed(folder: str) -> int | None:
    """Return the time of the last installation in a folder; None if there is no such folder."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=1)
def _entry_points_in(state: tuple[tuple[str, int | None], ...]) -> dict[str, list[EntryPoint]]:
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        by_name.setdefault(entry.name, []).append(entry)
    return by_name


def _packages_of(entries: list[EntryPoint]) -> str:
    return " and ".join(
        f"the package {getattr(entry.dist, 'name', 'without a name')!r} ({entry.value!r})"
        for entry in entries
    )


def _plugin_spec(entry: EntryPoint) -> ExtractorSpec:
    who = (
        f"The extractor {entry.name!r} of {_packages_of([entry])}, entry point {entry.name!r} of "
        f"{ENTRY_POINT_GROUP!r},"
    )
    try:
        kind = entry.load()
    except Exception as error:  # importing a module of another package may raise anything
        raise ImportError(
            f"{who} cannot be imported ({type(error).__name__}: {error}). Reinstall, upgrade or "
            "uninstall that package."
        ) from error
    return _read_spec(kind, f"{entry.module}:{entry.attr}", who)


def _read_spec(kind: Any, location: str, who: str) -> ExtractorSpec:
    """Read the specification of a class; error messages begin with `who`."""
    if not (inspect.isclass(kind) and callable(getattr(kind, "fit", None))):
        raise TypeError(f"{who} must be a class with fit, got {kind!r}.")
    tasks = getattr(kind, "tasks", None)
    if (
        not isinstance(tasks, tuple | list)
        or not tasks
        or any(task not in _TASKS for task in tasks)
    ):
        raise TypeError(
            f"{who} must declare its tasks in a class attribute such as tasks = {_TASKS!r}, with "
            f"at least one of {listed(_TASKS)}, got {tasks!r}."
        )
    # An inherited docstring describes the parent class.
    text = inspect.cleandoc(vars(kind).get("__doc__") or kind.__name__)
    takes_categories = bool(getattr(kind, "takes_categories", False))
    return ExtractorSpec(location, tuple(tasks), text.partition("\n")[0], takes_categories)
