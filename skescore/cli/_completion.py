"""``skescore completion``: a script that completes commands, options and values in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from skescore._optional import import_optional

SHELLS = ("bash", "zsh", "fish", "tcsh")

DESCRIPTION = """\
Print a script that completes commands, options and their values in a shell. The script describes
the installed version; create it again after an upgrade.
"""
EXAMPLES = """\
examples:
  skescore completion bash > ~/.local/share/bash-completion/completions/skescore
  skescore completion zsh > _skescore
  skescore completion fish > ~/.config/fish/completions/skescore.fish
"""
#: For each shell, templates of a function and of what completes names, files and folders in it.
_FUNCTIONS = {
    "bash": (
        "_skescore_%s() { %s; }",
        'compgen -W "%s" -- "$1"',
        'compgen -f -- "$1"',
        'compgen -d -- "$1"',
    ),
    "zsh": (
        "_skescore_%s() { _alternative %s }",
        "'names:name:(%s)'",
        "'files:file:_files'",
        "'folders:folder:_files -/'",
    ),
    "fish": (
        "function _skescore_%s; %s; end",
        "printf '%%s\\n' %s",
        "__fish_complete_path (commandline -ct)",
        "__fish_complete_directories (commandline -ct)",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "shell", choices=SHELLS, metavar="SHELL", help=f"name of the shell: {', '.join(SHELLS)}"
    )


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    shtab = import_optional("shtab", extra="completion", purpose="Completing commands in a shell")
    from skescore.cli import build_parser  # which lists this module

    functions = "\n".join(_functions(options.shell))
    # A menu has one line for each command, so descriptions are brief.
    script: str = shtab.complete(
        build_parser(brief=True), shell=options.shell, preamble={options.shell: functions}
    )
    return script if script.endswith("\n") else script + "\n"


def _functions(shell: str) -> Iterator[str]:
    """Yield the functions of the script that complete paths and the values of options."""
    from skescore._names import BLACK_BOX_NAMES, DATA_SET_TASKS
    from skescore.cli._arguments import scorings
    from skescore.registry import extractor_names

    if shell not in _FUNCTIONS:  # tcsh has none
        return
    template, word_template, *paths = _FUNCTIONS[shell]
    for kind, names, path_index in (
        ("file", (), 0),
        ("folder", (), 1),
        ("data", DATA_SET_TASKS, 0),
        ("black_box", BLACK_BOX_NAMES, 0),
        ("extractors", extractor_names(), None),
        ("scoring", scorings(), None),
    ):
        words = " ".join(name.replace(":", "\\:") if shell == "zsh" else name for name in names)
        parts = [word_template % words] if words else []
        parts += [] if path_index is None else [paths[path_index]]
        yield template % (kind, (" " if shell == "zsh" else "; ").join(parts))
