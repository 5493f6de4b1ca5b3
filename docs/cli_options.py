"""Write the options of every command into ``docs/cli.md``, between the markers of the command.

Run ``python docs/cli_options.py`` after changing an option; a test compares the page.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from skescore.cli import build_parser

PAGE = Path(__file__).with_name("cli.md")


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command by its full name."""
    by_command: dict[str, argparse.ArgumentParser] = {}

    def add(parser: argparse.ArgumentParser) -> None:
        by_command[parser.prog] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    add(inner)

    add(build_parser())
    return by_command


def options_of(parser: argparse.ArgumentParser) -> str:
    """Return the arguments of a command as a Markdown list, in the order of its help."""
    lines = []
    for group in parser._action_groups:
        for action in group._group_actions:
            if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
                continue
            help_text = parser._get_formatter()._expand_help(action)
            lines.append(f"- {_usage(action)}: {' '.join(help_text.split())}")
    return "\n".join(lines)


def _usage(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    if action.nargs == 0:
        return names
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    value = action.metavar or choices or action.dest.upper()
    value = f"[{value}]" if action.nargs == "?" else value
    return f"{names} `{value}`"


def filled(page: str) -> str:
    """Return the page with the current options of every command."""
    by_command = parsers()

    def fill(match: re.Match[str]) -> str:
        options = options_of(by_command[match[1]])
        return "\n\n".join(
            filter(None, [f"<!-- options of {match[1]} -->", options, "<!-- end -->"])
        )

    return re.sub(r"<!-- options of (.+?) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
