"""The parser of the command line: wrong usage is said in one line, values can be completed.

Imports nothing of weight, so that the list of commands comes at once, and `skescore doctor` works
where a package is broken.
"""

from __future__ import annotations

import argparse
import functools
import re
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from skescore._text import did_you_mean

__all__ = [
    "OF_BLACK_BOX", "OF_DATA", "OF_EXTRACTORS", "OF_FILE", "OF_FOLDER", "OF_SCORING", "Parser",
    "without_passwords",
]  # fmt: skip

#: All from the user's colon to the last @ is hidden, even where the URL has other faults.
_USER = re.compile(r"([\w+.-]+:/+[^\s:/@]*):.*@")
_SECRET = re.compile(r"([?&;][^\s=&;]*(?:passw|pwd|secret|token)[^\s=&;]*=)[^\s&;]*", re.IGNORECASE)
#: Longer lines are hard to read, however wide the terminal is.
_WIDEST = 100


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line rather than under a page of usage.

    Parameters
    ----------
    description : str, optional
        Its paragraphs are filled to the width of the terminal; the epilog stays as it is.
    **options : object
        Of :class:`argparse.ArgumentParser`.
    """

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        width = min(_WIDEST, shutil.get_terminal_size().columns - 2)
        paragraphs = (description or "").split("\n\n")
        form: Any = functools.partial(argparse.RawDescriptionHelpFormatter, width=width)
        super().__init__(
            description="\n\n".join(
                textwrap.fill(text, width, break_on_hyphens=False) for text in paragraphs
            ),
            formatter_class=form,
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Explain wrong usage and exit with code 2."""
        message = without_passwords(message)
        self.exit(2, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """Explain arguments that no option takes, and exit with code 2."""
        for text in rest:
            if text.startswith("-"):
                name = text.partition("=")[0]
                known = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", self.format_help(), re.MULTILINE)
                self.error(f"there is no option {name}. {did_you_mean(name, known)}")
        self.error(
            f"too many arguments: {' '.join(map(shlex.quote, rest))} (an option takes one value; "
            "those that can be repeated are repeated with each)"
        )


def without_passwords(text: str) -> str:
    """Hide the passwords of the URLs in a text for people.

    Use it for all that repeats the words of a user: a misspelt --storage leaves its URL among them.
    """
    return _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", text))


class _Value(argparse.Action):
    """Stores a value; tells shtab which function of the completion script completes it."""

    def __init__(self, *args: Any, kind: str, **options: Any) -> None:
        super().__init__(*args, **options)
        name = f"_skescore_{kind}"
        self.complete = {
            "bash": name, "zsh": name, "fish": f"({name})", "tcsh": "d" if kind == "folder" else "f"
        }  # fmt: skip

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        setattr(namespace, self.dest, values)


#: What completes the value of an option: its parameter `action`.
OF_FILE: Any = functools.partial(_Value, kind="file")
OF_FOLDER: Any = functools.partial(_Value, kind="folder")
OF_DATA: Any = functools.partial(_Value, kind="data")
OF_BLACK_BOX: Any = functools.partial(_Value, kind="black_box")
OF_EXTRACTORS: Any = functools.partial(_Value, kind="extractors")
OF_SCORING: Any = functools.partial(_Value, kind="scoring")
