"""``skescore reproduce``: the papers' tables, beside what the same settings give here."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

_EXAMPLES = """\
examples:
  skescore reproduce fire
  skescore reproduce ice --quick
  skescore reproduce ice --output tables --n-jobs 2 --format markdown
"""

#: The module of each table's command. They add their own parser, as commands do.
TABLES = {
    "fire": "skescore.cli._reproduce_rules",
    "ice": "skescore.cli._reproduce_rules",
    "brex": "skescore.cli._reproduce_brex",
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help="make the papers' tables again, beside the printed",
        description="Measure again what the papers of FiRe, ICE and B-ReX print, beside the "
        "printed figures, and say where and why they differ.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(parser=parser)
    tables = parser.add_subparsers(title="tables", metavar="TABLE", required=True)
    for module in dict.fromkeys(TABLES.values()):
        import_module(module).add_parser(tables)
