"""Wrong usage, said in one line. Imports nothing of weight: `skescore doctor` needs it."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from skescore._text import did_you_mean

__all__ = ["HelpFormatter", "Parser", "unknown_arguments", "without_passwords"]

#: All from the user's colon to the last @ is hidden, even where the URL has other faults.
_USER = re.compile(r"([\w+.-]+:/+[^\s:/@]*):.*@")
_SECRET = re.compile(r"([?&;][^\s=&;]*(?:passw|pwd|secret|token)[^\s=&;]*=)[^\s&;]*", re.IGNORECASE)


#: Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100
#: How wide the texts are written in the code.
_WRITTEN = 100
#: What stays in one line: a name in code marks, or a word.
_WORD = re.compile(r"\S*`[^`]*`\S*|\S+")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fills paragraphs anew; keeps line breaks that are meant, such as those of examples."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if options.get("width") is None:
            options["width"] = min(_WIDEST, shutil.get_terminal_size().columns - 2)
        super().__init__(*args, **options)

    def add_argument(self, action: argparse.Action) -> None:
        """Make room for the names of commands, which stand further in than those of options."""
        super().add_argument(action)
        if action.help is not argparse.SUPPRESS:
            for listed in self._iter_indented_subactions(action):
                length = len(listed.metavar or listed.dest) + self._current_indent
                self._action_max_length = max(self._action_max_length, length)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in _paragraphs(text):
            example = line.startswith(" ")  # to be copied as it is
            lines += [line] if example or not line else _wrap(line, width - len(indent))
        return "\n".join(indent + line for line in lines)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrap(" ".join(text.split()), width)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)  # "trade-off" is one word


def _paragraphs(text: str) -> list[str]:
    """Join the lines that end only because the code is no wider."""
    lines: list[str] = []
    before = ""
    for line in text.splitlines():
        word = _WORD.match(line)
        if word and before and len(before) + 1 + len(word[0]) > _WRITTEN:
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        before = line
    return lines


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line rather than under a page of usage."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if options.get("formatter_class") is argparse.RawDescriptionHelpFormatter:
            options["formatter_class"] = HelpFormatter
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        """Explain wrong usage and exit with code 2."""
        message = without_passwords(message)
        self.exit(2, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the nearest choice, also of commands, where argparse lists all of them."""
        if action.choices is not None and value not in action.choices:
            known = did_you_mean(value, map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}. {known}")


def without_passwords(text: str) -> str:
    """Hide the passwords of the URLs in a text for people.

    Parameters
    ----------
    text : str
        Such as the words that no option takes: a misspelt --storage leaves its URL among them.

    Returns
    -------
    str
        The text with ``***`` for passwords.

    Examples
    --------
    >>> without_passwords("too many arguments: postgresql://anna:secret@host/studies")
    'too many arguments: postgresql://anna:***@host/studies'
    """
    return _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", text))


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
