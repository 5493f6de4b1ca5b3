"""Views of results (plots, reports, HTML) by name.

Results use this table, so that they do not import the packages that draw them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["find_view", "register_view"]

_VIEWS: dict[str, str | Callable[..., Any]] = {}


def register_view(name: str, view: str | Callable[..., Any]) -> None:
    """Register a function that shows a result.

    Parameters
    ----------
    name : str
        Name of the view, such as ``"search.plot"``. A later registration replaces an earlier one.
    view : callable or str
        Function, or ``"module:function"`` to import it on first use.
    """
    _VIEWS[name] = view


def find_view(name: str) -> Callable[..., Any]:
    """Return the function registered under a name."""
    view = _VIEWS[name]
    if isinstance(view, str):
        module, _, function = view.partition(":")
        view = _VIEWS[name] = getattr(import_module(module), function)
    return view
