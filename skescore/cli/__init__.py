"""The command line: ``skescore tune``, ``score``, ``rules`` and so on, see `COMMANDS`.

The module of a command is imported when the command is called, so that ``skescore doctor`` can
report problems of packages that other commands need.
"""

from __future__ import annotations

import argparse
import atexit
import codecs
import contextlib
import gc
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points, version
from types import MappingProxyType
from typing import Any

from skescore._processes import safe_children, terminated_like_interrupted
from skescore._text import did_you_mean, printable
from skescore.cli._arguments import Parser, without_passwords

#: The module of each command, and its line in the list of commands. A module has a
#: ``DESCRIPTION``, ``EXAMPLES``, ``add_options(parser)`` and ``run(options)``, which returns the
#: text for standard output and may set ``options.exit_code``.
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "tune": ("_tune", "find the best rules for a model"),
        "score": ("_score", "score saved rules on data"),
        "certify": ("_certify", "prove how far saved rules are from the best possible rules"),
        "verify": ("_verify", "prove where saved rules agree with a model"),
        "edit": ("_edit", "edit saved rules, measure the effects and keep a log"),
        "rules": ("_rules", "convert saved rules to text, SQL, Python, Prolog, ..."),
        "predict": ("_predict", "predict the rows of a table with saved rules"),
        "calibrate": ("_calibrate", "add prediction sets or intervals with guaranteed coverage"),
        "explain": ("_explain", "explain the predictions of saved rules for single rows"),
        "serve": ("_serve", "predict rows on a local web page or over HTTP"),
        "watch": ("_watch", "detect when saved rules become less accurate"),
        "import": ("_import", "import rules from other tools and models"),
        "report": ("_report", "write a run, or a comparison of two runs, as an HTML page"),
        "bench": ("_bench", "compare extractors over data sets, models and seeds"),
        "reproduce": (
            "_reproduce",
            "recompute the papers' tables and compare the results",
        ),
        "doctor": ("_doctor", "list installed packages and how to install missing ones"),
        "completion": ("_completion", "print a script that completes commands in a shell"),
    }
)

_DESCRIPTION = """\
Turn a trained model (the black box) into rules that a person can read, and find the best trade-off
between few errors, few rules and completeness.

Results go to standard output, progress and errors to standard error.

Exit codes: 0 success, 1 failure (unusable data, files or models; limits of the search that no
candidate satisfies), 2 wrong usage.
"""

_EXAMPLES = """\
examples:
  skescore tune wine --black-box random-forest --trials 60 --output run
  skescore score run/rules.json wine
  skescore rules run/rules.json --to sql
  skescore bench --suite smoke
  skescore help tune

Set SKESCORE_TRACEBACK=1 in the environment to see tracebacks of errors.
"""
_TRACEBACK = "SKESCORE_TRACEBACK"

# A rule with "?" instead of the sign of a condition would be ambiguous.
_ENCODING_ERRORS = "skescore.plain"
_PLAIN = {"≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "²": "2", "·": "*", "∞": "inf"}


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that the encoding of the terminal lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    signs = [_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text]
    return "".join(signs), error.end


codecs.register_error(_ENCODING_ERRORS, _plain)


#: Commands that accept scores, including scores of other installed packages.
_SCORING = {"tune", "bench", "score", "report", "certify"}


def build_parser(
    arguments: Sequence[str] | None = None, *, brief: bool = False
) -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = Parser(prog="skescore", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument(
        "-V",
        "--version",
        action="version",
        version=f"skescore {_version()}",
        help="show the version and exit",
    )
    parser.set_defaults(exit_code=0, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module_name, summary) in COMMANDS.items():
        if arguments is None or name in arguments:
            module = import_module(f"skescore.cli.{module_name}")
            description = summary if brief else module.DESCRIPTION
            command = commands.add_parser(
                name, help=summary, description=description, epilog=module.EXAMPLES
            )
            command.set_defaults(run=getattr(module, "run", None), parser=command)
            module.add_options(command)
        else:
            commands.add_parser(name, help=summary)
    return parser


def _version() -> str:
    try:
        return version("skescore")
    except Exception:  # damaged metadata can fail in any way
        return "(not installed as a package)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit code: 1 after an error, otherwise the exit code of the command.

    Raises
    ------
    SystemExit
        After ``--help`` and ``--version`` (code 0) and wrong usage (code 2), as argparse does.
    """
    is_closed = sys.stdout is None
    if sys.stdout is None or sys.stderr is None:  # closed by the parent process
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ENCODING_ERRORS)
    atexit.register(gc.freeze)  # a last garbage collection takes up to a second
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:  # users of other tools try this first
        arguments = [*arguments[1:], "--help"]
    if arguments[:2] == ["watch", "init"]:
        arguments[1] = "--init"
    try:
        if set(arguments) & _SCORING and entry_points(group="skescore.scores"):
            from skescore.scorers import register_installed_scores

            register_installed_scores()
        parser = build_parser(arguments)
        name = arguments[0] if arguments else "-"
        if not name.startswith("-") and name not in COMMANDS:
            parser.error(f"there is no command {name!r}. {did_you_mean(name, COMMANDS)}")
        options, extra_arguments = parser.parse_known_args(arguments)
        if extra_arguments:
            options.parser.refuse(extra_arguments)
        options.command_line = ["skescore", *arguments]
        options.parser.check_inputs(options)
        with safe_children(), terminated_like_interrupted():
            text = options.run(options)
        if is_closed and text:
            raise OSError("standard output is closed, so the result cannot be written.")
        if not _write(text):
            return 1
    except SystemExit as stop:
        if is_closed and not stop.code:  # after --help or --version
            _show_error(OSError("standard output is closed, so nothing can be written."))
            raise SystemExit(1) from stop
        raise
    except KeyboardInterrupt:
        sys.stderr.write("skescore: interrupted\n")
        return 1
    except Exception as error:
        _show_error(error)
        return 1
    return options.exit_code


def _write(text: str) -> bool:
    """Write results; return False if the reader closed the pipe before it had read all of them.

    This needs no message: a reader such as head closes the pipe once it has enough lines.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
        return False
    except OSError as error:
        _abandon(sys.stdout)
        raise OSError(f"standard output cannot be written: {error.strerror or error}.") from error
    return True


def _abandon(stream: Any) -> None:
    """Prevent a second failure when the interpreter flushes the stream at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_error(error: Exception) -> None:
    text = str(error)
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        # An error of a model, or a defect of this package.
        text = f"{type(error).__name__}: {text} ({_TRACEBACK}=1 shows where)"
    elif isinstance(error, ImportError) and "Run: " not in text:  # not raised by import_optional
        text = f"{text.rstrip('.')}. To find the cause: skescore doctor"
    with contextlib.suppress(OSError):
        if os.environ.get(_TRACEBACK):
            traceback.print_exception(error)
        sys.stderr.write(f"skescore: error: {printable(without_passwords(text))}\n")
