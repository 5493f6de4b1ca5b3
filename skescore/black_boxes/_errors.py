"""Errors for black boxes that cannot be created, loaded or used."""

from __future__ import annotations


class BlackBoxError(ValueError):
    """Raised if a black box cannot be created, loaded or used; the message states the remedy."""


class SavedModelError(ValueError):
    """Raised if the file of a model cannot be used; the message states the remedy."""


class UnknownEndingError(SavedModelError):
    """Raised if the ending of a file is not that of a model file."""
