"""Fixtures that run the command line in this process."""

from __future__ import annotations

import pytest

from skescore.cli import main


@pytest.fixture(autouse=True)
def width_is_unknown(monkeypatch):
    """Print lines as a file gets them, whatever the width of the terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run(request, capsys):
    """Return a function that runs a command: exit code, standard output and standard error.

    A module may name its command as `COMMAND`.
    """
    command = getattr(request.module, "COMMAND", None)

    def run(*words):
        words = [str(word) for word in words]
        try:
            code = main(words if command is None else [command, *words])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
