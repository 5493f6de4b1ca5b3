"""Imports of optional packages."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

from packaging.requirements import Requirement

__all__ = ["ENGINE_EXTRAS", "import_optional", "install_commands"]

#: Extras that install the engines of other packages, by the missing module.
ENGINE_EXTRAS = {
    "psyke": "psyke",
    "tuprolog": "psyke",
    "rulekit": "rulekit",
    "imodels": "imodels",
    "xgboost": "boosting",
    "lightgbm": "boosting",
    "catboost": "boosting",
}
# psyke 1.0.4 requires one release of Python and old packages, but runs with newer ones as well.
_FURTHER = {"psyke": ("pip install --no-deps --ignore-requires-python psyke==1.0.4",)}


def install_commands(extra: str, options: str = "") -> tuple[str, ...]:
    """Return the commands that install an extra, in the order in which to run them.

    The commands name packages instead of the extra, so they work in any folder, however skescore
    was installed. Extras that the installed skescore does not list are read from the source folder.

    Examples
    --------
    >>> from skescore._optional import install_commands
    >>> install_commands("parquet")
    ('pip install "pyarrow>=16"',)
    >>> install_commands("psyke")[1]
    'pip install --no-deps --ignore-requires-python psyke==1.0.4'
    """
    try:
        stated = [Requirement(line) for line in metadata.requires("skescore") or ()]
    except (metadata.PackageNotFoundError, ValueError):
        stated = []
    packages = [
        f'"{r.name}{r.specifier}"' if r.specifier else r.name
        for r in stated
        if r.marker and r.marker.evaluate({"extra": extra}) and not r.marker.evaluate({"extra": ""})
    ]
    first = f"pip install {options}".strip() + " " + (" ".join(packages) or f'".[{extra}]"')
    return (first, *_FURTHER.get(extra, ()))


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module, or raise an error with the command that installs it.

    Call it in the function that needs the package, never at the top of a module, so that
    `import skescore` remains fast.

    Examples
    --------
    >>> from skescore._optional import import_optional
    >>> import_optional("math", extra="plots", purpose="Counting").sqrt(4.0)
    2.0
    >>> import_optional("no_such_package", extra="plots", purpose="Drawing a plot")
    Traceback (most recent call last):
        ...
    ImportError: Drawing a plot needs the package 'no_such_package', which is not installed.
    Run: pip install "matplotlib>=3.9"
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == package:
            raise ImportError(
                f"{purpose} needs the package {package!r}, which is not installed. "
                f"Run: {' && '.join(install_commands(extra))}",
                name=package,
            ) from None
        raise _broken(module, purpose, extra, error) from error
    except ImportError as error:
        raise _broken(module, purpose, extra, error) from error


def _broken(module: str, purpose: str, extra: str, error: ImportError) -> ImportError:
    """Return the error for a damaged or outdated package, which needs an upgrade."""
    return ImportError(
        f"{purpose} needs {module!r}, which is installed but cannot be imported ({error}). "
        f"Run: {' && '.join(install_commands(extra, '--upgrade'))}",
        name=module,
    )
