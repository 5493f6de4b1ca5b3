"""``skescore completion``: a script by which a shell completes commands, options and values."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from skescore._optional import import_optional

SHELLS = ("bash", "zsh", "fish", "tcsh")

_DESCRIPTION = """\
Print a script that completes commands, options and their values in a shell. It is made of the
commands as they are installed; make it again after an upgrade.
"""
_EXAMPLES = """\
examples:
  skescore completion bash > ~/.local/share/bash-completion/completions/skescore
  skescore completion zsh > _skescore
  skescore completion fish > ~/.config/fish/completions/skescore.fish
"""
#: What stands for the names of values that are files or folders.
_FILES, _FOLDERS = ("FILE", "RULES", "MODEL"), ("DIR", "RUN_DIR")
#: Functions of the script that complete built-in data sets and files.
_DATA = {
    "bash": "_skescore_data", "zsh": "_skescore_data", "fish": "(_skescore_data)", "tcsh": "f",
}  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help=f"which shell: {', '.join(SHELLS)}"
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    shtab = import_optional("shtab", extra="completion", purpose="Completing commands in a shell")
    from skescore.cli import build_parser  # which lists this module

    parser = build_parser()
    for action in _actions(parser):
        _tell_values(action, shtab)
    script: str = shtab.complete(parser, shell=options.shell, preamble=_preamble())
    return script if script.endswith("\n") else script + "\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All actions of a parser, its commands' and theirs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for listed in action._choices_actions:  # a menu has room for a line, not for a page
                action.choices[listed.dest].description = listed.help
            for inner in dict.fromkeys(action.choices.values()):
                yield from _actions(inner)


def _tell_values(action: argparse.Action, shtab: Any) -> None:
    """Say what completes a value: the parser itself takes more than what can be listed."""
    if action.choices is not None:
        return
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    names = _names(action)
    if metavar == "DATA":  # files as well, which no list of choices leaves room for
        action.complete = _DATA  # type: ignore[attr-defined]
    elif names:
        action.choices = names
    elif metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif any(part.partition(".")[0] in _FILES for part in metavar.split("|")):
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def _preamble() -> dict[str, str]:
    from skescore.datasets._loading import BUILT_IN

    names = " ".join(BUILT_IN)
    return {
        "bash": f'_skescore_data() {{ compgen -W "{names}" -- "$1"; compgen -f -- "$1"; }}',
        "zsh": f"""_skescore_data() {{
  _alternative 'names:data set:({names})' 'files:file:_files'
}}""",
        "fish": f"""function _skescore_data
  printf '%s\\tbuilt in\\n' {names}
  __fish_complete_path (commandline -ct)
end""",
    }


def _names(action: argparse.Action) -> list[str]:
    """The names that an option takes, where it takes files or numbers as well."""
    from skescore.black_boxes import BLACK_BOXES
    from skescore.cli._arguments import SCORINGS
    from skescore.registry import extractor_names
    from skescore.scorers._makers import PERFORMANCE_SCORERS

    known = {
        "--black-box": BLACK_BOXES,
        "--black-boxes": BLACK_BOXES,
        "--extractors": extractor_names(),
        "--scoring": (*SCORINGS, *PERFORMANCE_SCORERS),
    }
    return [str(name) for option in action.option_strings for name in known.get(option, ())]
