"""What is installed, and whether it is what the metadata of the packages ask for.

Reads metadata only and imports nothing but the standard library, so that it works, and works
quickly, whatever state the installation is in.
"""

from __future__ import annotations

import re
from importlib import metadata
from itertools import zip_longest
from typing import Any, NamedTuple

__all__ = [
    "Requirement",
    "installed_version",
    "meets",
    "package_state",
    "parse_requirement",
    "requirements_of",
]

_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_VERSION = re.compile(r"v?(?:\d+!)?(\d+(?:\.\d+)*)(.*)")
_CLAUSE = re.compile(r"(~=|===?|!=|<=|>=|<|>)\s*(\S+)")


class Requirement(NamedTuple):
    """What a package asks for: a line of its metadata, taken apart.

    Parameters
    ----------
    name : str
        Name of the package that is needed.
    versions : str
        Which versions of it will do, such as ``">=2.0"``; empty for any.
    extra : str
        The extra that needs it; empty where it is always needed.
    conditional : bool
        Whether it is needed on some systems or versions of Python only.
    """

    name: str
    versions: str
    extra: str
    conditional: bool


def parse_requirement(line: str) -> Requirement | None:
    """Take a line of metadata apart.

    Parameters
    ----------
    line : str
        As :func:`importlib.metadata.requires` gives it.

    Returns
    -------
    Requirement or None
        None for a line that is not understood.

    Examples
    --------
    >>> parse_requirement("dask[distributed]>=2024.5; extra == 'distributed'")
    Requirement(name='dask', versions='>=2024.5', extra='distributed', conditional=False)
    """
    found = _REQUIREMENT.fullmatch(line.strip())
    if found is None:
        return None
    name, versions, marker = found[1], found[2].replace(" ", ""), found[3] or ""
    extra = _EXTRA.search(marker)
    rest = _EXTRA.sub("", marker).strip(" ()")
    return Requirement(name, versions, extra[1] if extra else "", bool(rest))


def requirements_of(package: str) -> list[Requirement]:
    """What an installed package asks for; nothing where that cannot be read.

    Parameters
    ----------
    package : str
        Name of the package.

    Returns
    -------
    list of Requirement
        In the order of the metadata.
    """
    try:
        lines = metadata.requires(package) or []
    except Exception:  # damaged metadata can fail in any way; it is no reason to stop
        return []
    return [r for r in map(parse_requirement, lines) if r is not None]


def installed_version(package: str) -> str | None:
    """Version of a package by its metadata.

    Parameters
    ----------
    package : str
        Name of the package.

    Returns
    -------
    str or None
        None where it is not installed; empty where its metadata do not tell.
    """
    try:
        # None or an error, depending on the version of Python, where the metadata have no version.
        found: Any = metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
    except Exception:  # damaged metadata can fail in any way
        return ""
    return str(found or "")


def meets(version: str, versions: str) -> bool:
    """Whether a version is one of those asked for.

    Parameters
    ----------
    version : str
        Such as ``"2.4.6"``.
    versions : str
        Such as ``">=2.0,<3"``; what is not understood counts as met.

    Returns
    -------
    bool
        Pre-releases count as just before their release, local and post-release parts do not count.

    Examples
    --------
    >>> meets("1.10", ">=1.9"), meets("2.0rc1", ">=2.0"), meets("1.5.2", "==1.5.0")
    (True, False, False)
    """
    return all(
        _meets_one(version, *clause) for clause in _CLAUSE.findall(versions.replace(",", " "))
    )


def _meets_one(version: str, sign: str, bound: str) -> bool:
    wildcard = bound.endswith(".*")
    left, right = _key(version), _key(bound.removesuffix(".*"))
    if left is None or right is None:
        return True
    order = _compare(left, right)
    same_start = left[0][: len(right[0])] == right[0]
    if sign == "~=":
        return order >= 0 and left[0][: len(right[0]) - 1] == right[0][:-1]
    if sign in ("==", "==="):
        return same_start if wildcard else order == 0
    if sign == "!=":
        return not same_start if wildcard else order != 0
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]


def _key(version: str) -> tuple[tuple[int, ...], bool] | None:
    """The numbers of a version, and whether it is a release (rather than a pre-release)."""
    found = _VERSION.fullmatch(version.strip())
    if found is None:
        return None
    early = re.match(r"[-_.]?(a|b|c|rc|alpha|beta|pre|preview|dev)(?![a-z])", found[2].lower())
    return tuple(map(int, found[1].split("."))), early is None


def _compare(left: tuple[tuple[int, ...], bool], right: tuple[tuple[int, ...], bool]) -> int:
    """-1, 0 or 1: earlier, equal, later."""
    for a, b in zip_longest(left[0], right[0], fillvalue=0):
        if a != b:
            return -1 if a < b else 1
    return int(left[1]) - int(right[1])


def package_state(requirement: Requirement) -> dict[str, Any]:
    """Compare a requirement with what is installed.

    Parameters
    ----------
    requirement : Requirement
        What is needed.

    Returns
    -------
    dict
        ``name``, ``needed`` (versions), ``installed`` (version or None) and ``state``: "ok",
        "missing", or "wrong version".
    """
    version = installed_version(requirement.name)
    if version is None:
        state = "missing"
    else:
        state = "ok" if meets(version, requirement.versions) else "wrong version"
    return {
        "name": requirement.name,
        "needed": requirement.versions,
        "installed": version,
        "state": state,
    }
