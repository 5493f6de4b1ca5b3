"""Export of rules to texts, databases and programs, one module per language.

:data:`RULE_WRITERS` lists all languages. Call the methods of :class:`skescore.rules.RuleSet`,
``RuleSet.to(name)``, or the functions of this package.
"""

from skescore._rule_writers import RULE_WRITERS, RuleWriter
from skescore.rules._text import to_text
from skescore.rules.exporters._dbt import to_dbt
from skescore.rules.exporters._excel import to_excel, to_excel_formula
from skescore.rules.exporters._html import to_html, to_markdown
from skescore.rules.exporters._prolog import to_prolog
from skescore.rules.exporters._python import to_python
from skescore.rules.exporters._rounding import readable_bounds, readable_outputs, shorten_numbers
from skescore.rules.exporters._sentences import to_sentences
from skescore.rules.exporters._sql import to_sql
from skescore.rules.exporters._tables import to_conditions, to_frame
from skescore.rules.exporters._tree import to_tree_text
from skescore.rules.exporters.programs import to_java, to_javascript
from skescore.rules.exporters.standards import to_dmn, to_onnx, to_pmml

__all__ = [
    "RULE_WRITERS",
    "RuleWriter",
    "readable_bounds",
    "readable_outputs",
    "shorten_numbers",
    "to_conditions",
    "to_dbt",
    "to_dmn",
    "to_excel",
    "to_excel_formula",
    "to_frame",
    "to_html",
    "to_java",
    "to_javascript",
    "to_markdown",
    "to_onnx",
    "to_pmml",
    "to_prolog",
    "to_python",
    "to_sentences",
    "to_sql",
    "to_text",
    "to_tree_text",
]
