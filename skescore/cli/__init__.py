"""The command line: ``skescore tune`` and ``skescore score``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import skescore
from skescore.cli import score, tune
from skescore.cli.arguments import Parser, unknown_arguments
from skescore.cli.output import ENCODING_ERRORS

_DESCRIPTION = """\
Turn a black box into rules that a person can read, and choose the best trade-off between few
errors, few rules and completeness.

Results go to standard output, progress and errors to standard error.
Exit codes: 0 success, 1 failure (unusable data, files or models), 2 wrong usage.
"""

_EXAMPLES = """\
examples:
  skescore tune wine --black-box random-forest --trials 60 --output run
  skescore score run/rules.json wine
  skescore tune --help

With SKESCORE_TRACEBACK=1 in the environment, errors show where in the code they arose.
"""
_TRACEBACK = "SKESCORE_TRACEBACK"


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line.

    Returns
    -------
    argparse.ArgumentParser
        With one subparser per command; each sets ``run`` to the function to call, which gives the
        text for standard output.
    """
    parser = Parser(
        prog="skescore",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"skescore {skescore.__version__}",
        help="show the version and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    tune.add_parser(commands)
    score.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code, 0 or 1.

    Raises
    ------
    SystemExit
        After ``--help`` and ``--version`` (code 0) and wrong usage (code 2), as argparse does.
    """
    if sys.stdout is None or sys.stderr is None:  # closed by whoever started the process
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ENCODING_ERRORS)
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        options.parser.error(unknown_arguments(options.parser, rest))
    options.command_line = ["skescore", *arguments]
    try:
        _write(options.run(options))
    except KeyboardInterrupt:
        sys.stderr.write("skescore: interrupted\n")
        return 1
    except Exception as error:
        _report(error)
        return 1
    return 0


def _write(text: str) -> None:
    """Write results; a reader that has seen enough, such as head, is no failure."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
    except OSError as error:
        _abandon(sys.stdout)
        raise OSError(f"standard output cannot be written: {error.strerror or error}.") from error


def _abandon(stream: Any) -> None:
    """Keep the interpreter from failing once more when it flushes the stream at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _report(error: Exception) -> None:
    text = str(error)
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        # Not one of ours: a model's own error, or a mistake in this package.
        text = f"{type(error).__name__}: {text} ({_TRACEBACK}=1 shows where)"
    with contextlib.suppress(OSError):
        if os.environ.get(_TRACEBACK):
            traceback.print_exception(error)
        sys.stderr.write(f"skescore: error: {text}\n")
