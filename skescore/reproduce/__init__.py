"""The papers' tables, beside what the same settings give here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Where each public name lives; imported when first used, as only one paper's side may be wanted.
_HOMES = {
    "BrexRun": "_brex",
    "TableLine": "_brex",
    "as_frame": "_cells",
    "plot_divergence": "_brex",
    "reproduce_brex": "_brex",
    "reproduce_fire": "_fire",
    "reproduce_ice": "_ice",
    "table_lines": "_brex",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skescore.reproduce.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
