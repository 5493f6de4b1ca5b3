"""Packages that only some installations have."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["ENGINE_COMMANDS", "import_optional"]

#: The commands that install the engines of others, by the module that is missing. psyke 1.0.4
#: asks for one single release of Python and for older packages than it runs with.
ENGINE_COMMANDS = {
    "psyke": (
        'pip install "skescore[psyke]"',
        "pip install --no-deps --ignore-requires-python psyke==1.0.4",
    ),
    "rulekit": ('pip install "skescore[rulekit]"',),
    "imodels": ('pip install "skescore[imodels]"',),
    "xgboost": ('pip install "skescore[boosting]"',),
    "lightgbm": ('pip install "skescore[boosting]"',),
    "catboost": ('pip install "skescore[boosting]"',),
}


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module, or say which command installs it.

    Use it inside the function that needs the package, never at the top of a module, so that
    `import skescore` stays light.

    Examples
    --------
    >>> from skescore._optional import import_optional
    >>> import_optional("math", extra="plots", purpose="Counting").sqrt(4.0)
    2.0
    >>> import_optional("no_such_package", extra="plots", purpose="Drawing a plot")
    Traceback (most recent call last):
        ...
    ImportError: Drawing a plot needs the package 'no_such_package', which is not installed.
    Run: pip install "skescore[plots]"
    """
    package = module.partition(".")[0]
    command = f'pip install "skescore[{extra}]"'
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == package:
            raise ImportError(
                f"{purpose} needs the package {package!r}, which is not installed. Run: {command}",
                name=package,
            ) from None
        raise _broken(module, purpose, command, error) from error
    except ImportError as error:
        raise _broken(module, purpose, command, error) from error


def _broken(module: str, purpose: str, command: str, error: ImportError) -> ImportError:
    """Tell a damaged or outdated installation from a missing one: the cure is an upgrade."""
    upgrade = command.replace("install", "install --upgrade", 1)
    return ImportError(
        f"{purpose} needs {module!r}, which is installed but cannot be imported ({error}). "
        f"Run: {upgrade}",
        name=module,
    )
