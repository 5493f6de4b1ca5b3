"""The extractors by name: a table that searches, benchmarks, the command line and tests loop over.

Four kinds of names are known. Built-in extractors, :data:`EXTRACTORS`, are what is tried by
default, but for those that are not ``by_default``. Those of :data:`PSYKE_EXTRACTORS` need an extra
of this package. :func:`register_extractor` adds a name in the running program. Installed packages
add names of their own by an entry point of the group ``skescore.extractors``::

    [project.entry-points."skescore.extractors"]
    their-name = "their_package:TheirExtractor"

The class says by attributes what it does: ``tasks``, such as ``("classification",)``, and
``takes_categories`` if columns may be categorical. A class or static method
``search_space(n_rows, y, task)`` gives Optuna distributions by parameter, and
``starting_points(n_outputs)``, which may be left out, settings to try first. The first line of its
docstring is its summary. :func:`skescore.testing.check_extractor` checks whether it will work.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
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

#: The entry-point group by which installed packages register extractors.
ENTRY_POINT_GROUP = "skescore.extractors"

_TASKS = ("classification", "regression")


class ExtractorSpec(NamedTuple):
    """A registered extractor.

    Parameters
    ----------
    location : str
        ``"module:Class"``; imported when it is used, unless the class has been registered.
    tasks : tuple of str
        What it extracts rules for.
    summary : str
        One line for help texts.
    takes_categories : bool, default=False
        Whether columns may be categorical.
    settings : mapping of str to value, default={}
        Parameters that the name stands for, beside the class.
    extra : str, optional
        The extra of this package that brings what it needs.
    search_space : mapping or callable, optional
        Optuna distributions by parameter, or a function of ``(n_rows, y, task)`` that gives them.
        None leaves it to the class.
    label : str, optional
        What texts call it, as its authors do; None leaves it at the name.
    by_default : bool, default=True
        Whether searches and benchmarks try it where no names are given.
    small_tables : tuple of str, default=()
        Tasks for which searches try it by default on tables of at most :data:`SMALL_TABLE` rows,
        though not on larger ones, nor in benchmarks, as it would take too long.
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


#: Adding an extractor is one line here, with its search space unless its class has one.
EXTRACTORS: dict[str, ExtractorSpec] = {
    "cart": ExtractorSpec(
        "skescore.extractors:CARTExtractor",
        _TASKS,
        "decision tree on the black box's predictions",
        True,
        label="CART",
    ),
    "cream": ExtractorSpec(
        "skescore.extractors:CREAMExtractor",
        _TASKS,
        "clusters within clusters, either side split",
        True,
        label="CREAM",
    ),
    "exact": ExtractorSpec(
        "skescore.extractors:ExACTExtractor",
        _TASKS,
        "clusters within clusters, one inside another",
        True,
        label="ExACT",
    ),
    "gridex": ExtractorSpec(
        "skescore.extractors:GridExExtractor",
        _TASKS,
        "recursive grid of disjoint boxes",
        True,
        label="GridEx",
    ),
    "gridrex": ExtractorSpec(
        "skescore.extractors:GridRExExtractor",
        ("regression",),
        "recursive grid of boxes with linear outputs",
        True,
        label="GridREx",
    ),
    "iter": ExtractorSpec(
        "skescore.extractors:ITERExtractor",
        _TASKS,
        "boxes that grow while predictions stay alike",
        True,
        label="ITER",
    ),
    "optimal-list": ExtractorSpec(
        "skescore.extractors:OptimalListExtractor",
        _TASKS,
        "ordered list with the fewest errors, and a proof",
        True,
        label="OptimalList",
        by_default=False,
        small_tables=("classification",),
    ),
    "optimal-tree": ExtractorSpec(
        "skescore.extractors:OptimalTreeExtractor",
        _TASKS,
        "decision tree with the fewest errors, and a proof",
        True,
        label="OptimalTree",
        by_default=False,
        small_tables=("classification",),
    ),
    "real": ExtractorSpec(
        "skescore.extractors:REALExtractor",
        ("classification",),
        "conjunctions found by dropping what the black box does not look at",
        True,
        label="REAL",
    ),
    "trepan": ExtractorSpec(
        "skescore.extractors:TrepanExtractor",
        ("classification",),
        "tree of M-of-N tests, grown by further queries",
        True,
        label="Trepan",
    ),
}

#: Up to so many rows, searches also try extractors that take long.
SMALL_TABLE = 1000
#: Those that searches and benchmarks try where no names are given, whatever the table.
DEFAULT_EXTRACTORS = tuple(name for name, spec in EXTRACTORS.items() if spec.by_default)


def _psyke(label: str, tasks: tuple[str, ...], summary: str) -> ExtractorSpec:
    return ExtractorSpec(
        "skescore.extractors.psyke:PSyKEExtractor",
        tasks,
        f"PSyKE's {summary}",
        settings=MappingProxyType({"algorithm": label.lower()}),
        extra="psyke",
        label=f"PSyKE {label}",
    )


#: PSyKE's algorithms. They are found by name only: by default nothing is tried that not every
#: installation has.
PSYKE_EXTRACTORS: dict[str, ExtractorSpec] = {
    f"psyke:{label.lower()}": _psyke(label, tasks, summary)
    for label, tasks, summary in (
        ("CART", _TASKS, "decision tree"),
        ("COSMiK", ("regression",), "boxes around the components of a mixture"),
        ("CREAM", _TASKS, "clusters within clusters, either side split"),
        ("DiViNE", ("classification",), "boxes grown from the middles of classes"),
        ("ExACT", _TASKS, "clusters within clusters, one inside another"),
        ("GInGER", _TASKS, "grid and formulas bred by a genetic algorithm"),
        ("GridEx", _TASKS, "recursive grid of disjoint boxes"),
        ("GridREx", ("regression",), "recursive grid of boxes with linear outputs"),
        ("HEx", _TASKS, "recursive grid that asks where boxes are needed"),
        ("ITER", _TASKS, "boxes that grow while predictions stay alike"),
        ("REAL", ("classification",), "conjunctions found by dropping literals"),
        ("Trepan", ("classification",), "tree of tests on discretized features"),
    )
}


#: What :func:`register_extractor` has added, with the class.
_REGISTERED: dict[str, tuple[ExtractorSpec, type]] = {}


def register_extractor(
    name: str,
    extractor_class: type,
    search_space: Mapping[str, Any] | Callable[..., Any] | None = None,
    *,
    replace: bool = False,
) -> None:
    """Add an extractor of your own to the names that searches, benchmarks and the like know.

    It lasts as long as the program; a package that others install had better use an entry point.

    Parameters
    ----------
    name : str
        A name that no other extractor has.
    extractor_class : type
        A class with ``fit`` whose first parameter is the black box, and with ``tasks``, such as
        ``("classification",)``. :func:`skescore.testing.check_extractor` checks its instances.
    search_space : mapping or callable, optional
        Optuna distributions by parameter, or a function of ``(n_rows, y, task)`` that gives them.
        By default the class's own ``search_space``, if it has one.
    replace : bool, default=False
        Whether a name that was registered in this program before may be given again, as by a cell
        of a notebook that is run twice.

    Raises
    ------
    ValueError
        If the name is taken.
    TypeError
        If the name is no text, the class does not say what it does, or the space is neither a
        mapping nor callable.

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
        raise TypeError(f"name must be a text that is not empty, got {name!r}.")
    if name in extractor_names() and not (replace and name in _REGISTERED):
        hint = "; replace=True exchanges it" if name in _REGISTERED else ""
        raise ValueError(f"The name {name!r} is taken by another extractor. Choose another{hint}.")
    if not (search_space is None or isinstance(search_space, Mapping) or callable(search_space)):
        raise TypeError(
            "search_space must be a dict of Optuna distributions, a function of (n_rows, y, task) "
            f"that gives one, or None, got {search_space!r}."
        )
    location = ":".join(
        str(getattr(extractor_class, part, "")) for part in ("__module__", "__qualname__")
    )
    spec = _spec_of(extractor_class, location, f"The extractor {name!r}")
    _REGISTERED[name] = spec._replace(search_space=search_space), extractor_class


def extractor_names() -> tuple[str, ...]:
    """List every known name: built-in, of an extra, registered, of installed packages.

    Use it for help texts and to check what a person typed. Nothing is imported, so that an
    extractor which cannot be imported is listed as well.

    Returns
    -------
    tuple of str
        The built-in ones first.

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
    """Name the extractors that are tried by default on some data.

    Parameters
    ----------
    task : {"classification", "regression"}
        What the rules are for.
    categories : bool, default=False
        Whether there are categorical columns.
    n_rows : int, optional
        How many rows there are. Where they are few, extractors that take long are named as well,
        the last of those of this package.
    plugins : bool, default=False
        Whether to name registered ones and those of installed packages as well, which imports
        them. Without them the names are the same on every machine.

    Returns
    -------
    tuple of str
        Some of :data:`EXTRACTORS`, then some of the others.

    Raises
    ------
    ImportError, TypeError, ValueError
        With ``plugins=True``, if an installed package's extractor cannot be used.

    Examples
    --------
    >>> "cart" in suitable_extractors("regression", categories=True)
    True
    """
    few = n_rows is not None and n_rows <= SMALL_TABLE
    specs = {name: spec for name, spec in EXTRACTORS.items() if spec.by_default}
    specs |= {name: spec for name, spec in EXTRACTORS.items() if few and task in spec.small_tables}
    if plugins:
        others = {name: extractor_spec(name) for name in (*_REGISTERED, *sorted(_entry_points()))}
        specs |= {name: spec for name, spec in others.items() if spec.by_default}
    return tuple(
        name
        for name, spec in specs.items()
        if task in spec.tasks and (spec.takes_categories or not categories)
    )


def registered_name(extractor: Any) -> str | None:
    """Find the name that an extractor is known by.

    Parameters
    ----------
    extractor : extractor
        An instance.

    Returns
    -------
    str or None
        One of :func:`extractor_names`; None for an extractor of your own.
    """
    kind = type(extractor)
    for name, (_, registered) in _REGISTERED.items():
        if registered is kind:
            return name
    for name, spec in (EXTRACTORS | PSYKE_EXTRACTORS).items():
        module, _, attribute = spec.location.partition(":")
        if attribute != kind.__name__ or getattr(import_module(module), attribute) is not kind:
            continue
        if all(getattr(extractor, key, None) == value for key, value in spec.settings.items()):
            return name
    for name, entries in _entry_points().items():
        # The module of an instance's class has been imported; no other has to be looked into.
        module, _, attribute = entries[0].value.partition(":")
        found: Any = sys.modules.get(module.strip())
        for part in attribute.partition("[")[0].strip().split("."):
            found = getattr(found, part, None)
        if found is kind and len(entries) == 1 and name not in EXTRACTORS | PSYKE_EXTRACTORS:
            return name
    return None


def extractor_label(name: str) -> str:
    """Tell what texts call an extractor, as its authors do.

    Parameters
    ----------
    name : str
        One of :func:`extractor_names`, or a name of your own.

    Returns
    -------
    str
        The name itself where nothing else is known. Nothing is imported.

    Examples
    --------
    >>> extractor_label("gridrex"), extractor_label("psyke:iter"), extractor_label("mine")
    ('GridREx', 'PSyKE ITER', 'mine')
    """
    spec = EXTRACTORS.get(name) or PSYKE_EXTRACTORS.get(name)
    return (spec.label if spec else None) or name


def extractor_spec(name: str) -> ExtractorSpec:
    """Look up what is known of an extractor.

    Parameters
    ----------
    name : str
        One of :func:`extractor_names`. An installed package's extractor is imported for its
        ``tasks`` and ``takes_categories``.

    Returns
    -------
    ExtractorSpec
        Where it is, and what it does.

    Raises
    ------
    ValueError
        If there is no such extractor, or an installed package claims a name that another has.
    ImportError
        If an installed package's extractor cannot be imported.
    TypeError
        If it is no class with ``fit``, or does not say what it does.

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
    own = EXTRACTORS.get(name) or PSYKE_EXTRACTORS.get(name)
    if own is not None and entries:
        raise ValueError(
            f"The name {name!r} is skescore's own, but {_described(entries)} registers an extractor"
            " under it. Uninstall that package, or let its authors choose another name."
        )
    if own is not None:
        return own
    if not entries:
        raise ValueError(f"There is no extractor {name!r}. {did_you_mean(name, extractor_names())}")
    if len(entries) > 1:
        raise ValueError(
            f"Several packages register an extractor named {name!r}: {_described(entries)}. "
            "Uninstall all but one, or use the class itself."
        )
    return _plugin_spec(entries[0])


def extractor_class(name: str) -> Any:
    """Find an extractor by its name.

    Parameters
    ----------
    name : str
        One of :func:`extractor_names`.

    Returns
    -------
    type
        The extractor's class. Where a name stands for settings too, as ``"psyke:gridex"`` does,
        :func:`make_extractor` applies them.

    Raises
    ------
    ValueError, ImportError, TypeError
        As :func:`extractor_spec`.

    Examples
    --------
    >>> extractor_class("cart").__name__
    'CARTExtractor'
    """
    if name in _REGISTERED:
        return _REGISTERED[name][1]
    spec = extractor_spec(name)
    module, _, attribute = spec.location.partition(":")
    found: Any = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def make_extractor(name: str, estimator: Any, **parameters: Any) -> Any:
    """Make the extractor of a name around a black box.

    Parameters
    ----------
    name : str
        One of :func:`extractor_names`.
    estimator : estimator
        The black box.
    **parameters
        Parameters of the extractor.

    Returns
    -------
    extractor
        Not fitted.

    Raises
    ------
    ValueError, ImportError, TypeError
        As :func:`extractor_spec`; a TypeError also for a parameter that the extractor does not
        have or that the name decides.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> make_extractor("cart", KNeighborsClassifier(), max_leaf_nodes=4)
    CARTExtractor(estimator=KNeighborsClassifier(), max_leaf_nodes=4)
    """
    settings = extractor_spec(name).settings
    if fixed := sorted(set(settings) & set(parameters)):
        raise TypeError(
            f"The name {name!r} says {fixed[0]}={settings[fixed[0]]!r} already, got "
            f"{fixed[0]}={parameters[fixed[0]]!r}. Ask for another name, or use the class."
        )
    return extractor_class(name)(estimator, **settings, **parameters)


def _entry_points() -> dict[str, list[EntryPoint]]:
    """The entry points by name; only metadata are read, and once for all that is installed."""
    return _entry_points_in(tuple((folder, _changed(folder)) for folder in sys.path))


def _changed(folder: str) -> int | None:
    """Return when something was last installed there; None where there is no such folder."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return None


@lru_cache(maxsize=1)
def _entry_points_in(state: tuple[tuple[str, int | None], ...]) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(entry.name, []).append(entry)
    return found


def _described(entries: list[EntryPoint]) -> str:
    return " and ".join(
        f"the package {getattr(entry.dist, 'name', 'without a name')!r} ({entry.value!r})"
        for entry in entries
    )


def _plugin_spec(entry: EntryPoint) -> ExtractorSpec:
    who = (
        f"The extractor {entry.name!r} of {_described([entry])}, entry point {entry.name!r} of "
        f"{ENTRY_POINT_GROUP!r},"
    )
    try:
        kind = entry.load()
    except Exception as error:  # whatever their modules do when they are imported
        raise ImportError(
            f"{who} cannot be imported ({type(error).__name__}: {error}). Reinstall, upgrade or "
            "uninstall that package."
        ) from error
    return _spec_of(kind, f"{entry.module}:{entry.attr}", who)


def _spec_of(kind: Any, location: str, who: str) -> ExtractorSpec:
    """Read from a class what it does; `who` begins the message if it does not say so."""
    if not (inspect.isclass(kind) and callable(getattr(kind, "fit", None))):
        raise TypeError(f"{who} must be a class with fit, got {kind!r}.")
    tasks = getattr(kind, "tasks", None)
    if (
        not isinstance(tasks, tuple | list)
        or not tasks
        or any(task not in _TASKS for task in tasks)
    ):
        raise TypeError(
            f"{who} must say what it does by a class attribute such as tasks = {_TASKS!r}, with at "
            f"least one of {listed(_TASKS)}, got {tasks!r}."
        )
    # A docstring that is inherited describes the parent.
    text = inspect.cleandoc(vars(kind).get("__doc__") or kind.__name__)
    takes = bool(getattr(kind, "takes_categories", False))
    return ExtractorSpec(location, tuple(tasks), text.partition("\n")[0], takes)
