"""Rule sets become other languages, for people, databases and programs: one file per language.

Users find these as methods of :class:`skescore.rules.RuleSet`.
"""

from skescore.rules._text import to_text
from skescore.rules.exporters._html import to_html
from skescore.rules.exporters._markdown import to_markdown
from skescore.rules.exporters._prolog import to_prolog
from skescore.rules.exporters._python import to_python
from skescore.rules.exporters._rounding import readable_bounds, readable_outputs, shorten_numbers
from skescore.rules.exporters._sentences import to_sentences
from skescore.rules.exporters._sql import to_sql
from skescore.rules.exporters._tables import to_conditions, to_frame
from skescore.rules.exporters._tree import to_tree_text

__all__ = [
    "readable_bounds",
    "readable_outputs",
    "shorten_numbers",
    "to_conditions",
    "to_frame",
    "to_html",
    "to_markdown",
    "to_prolog",
    "to_python",
    "to_sentences",
    "to_sql",
    "to_text",
    "to_tree_text",
]
