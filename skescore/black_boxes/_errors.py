"""Errors of black boxes that cannot be made, loaded or used."""

from __future__ import annotations


class BlackBoxError(ValueError):
    """A black box cannot be made, loaded or used; the text says why and what to do."""


class SavedModelError(ValueError):
    """A file of a model cannot be used; the text says why and what to do."""


class UnknownEndingError(SavedModelError):
    """A file is of another kind than those that hold models."""
