"""Wrong usage, said in one line. Imports nothing of weight: `skescore doctor` needs it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import NoReturn

from skescore._text import did_you_mean

__all__ = ["Parser", "unknown_arguments"]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line rather than under a page of usage."""

    def error(self, message: str) -> NoReturn:
        """Explain wrong usage and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")


def unknown_arguments(parser: argparse.ArgumentParser, rest: Sequence[str]) -> str:
    """What to say of arguments that no option takes."""
    options = [text for text in rest if text.startswith("-")]
    if not options:
        # Repeatable options are those that one is tempted to give several values at once.
        repeatable = [
            max(action.option_strings, key=len)
            for action in parser._actions
            if isinstance(action, argparse._AppendAction)
        ]
        hint = (
            f" (each {' and '.join(repeatable)} takes one column; repeat the option for more)"
            if repeatable
            else ""
        )
        return f"too many arguments: {' '.join(map(shlex.quote, rest))}{hint}"
    name = options[0].partition("=")[0]
    return f"there is no option {name}. {did_you_mean(name, parser._option_string_actions)}"
