"""Export of rule sets to dbt models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skescore.rules.exporters._sql import WITHOUT_STAR

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


def _jinja_text(text: str) -> str:
    """Write a text as a Jinja literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\r", "\\r")
    return f"'{escaped}'"


def to_dbt(
    ruleset: RuleSet,
    model: str,
    *,
    dialect: str = "duckdb",
    kind: str = "predict",
    materialized: str = "view",
    booleans: Sequence[str] | None = None,
    exact: bool = False,
) -> str:
    """Write a rule set as the SQL of a dbt model.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    model : str
        Name of the model with the rows, as in ``ref``; ``"source.table"`` is a table of a source.
    dialect : str, default="duckdb"
        Database of the project, see :meth:`skescore.rules.RuleSet.to_sql`.
    kind : {"predict", "assign"}, default="predict"
        Whether to add the column ``prediction``, or ``rule`` (the number of the rule, from 1).
    materialized : str, default="view"
        Materialization of the model.
    booleans : sequence of str, optional
        Features with BOOLEAN columns, see :meth:`skescore.rules.RuleSet.to_sql`.
    exact : bool, default=False
        Whether columns may contain NaN or have 32 bits, see
        :meth:`skescore.rules.RuleSet.to_sql`.

    Returns
    -------
    str
        Content of a file in the folder ``models``.

    Raises
    ------
    ValueError
        As in :meth:`skescore.rules.RuleSet.to_sql`, or if a name is empty.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> from skescore.rules.exporters import to_dbt
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "small")], ["size"],
    ...     task="classification", fallback=Fallback("large"),
    ... )
    >>> print(to_dbt(rules, "parts").rstrip())
    {{ config(materialized='view') }}
    <BLANKLINE>
    select
      *,
    CASE
      WHEN "size" <= 2.5 THEN 'small'
      ELSE 'large'
    END as prediction
    from {{ ref('parts') }}
    """
    names = model.split(".")
    if len(names) > 2 or not all(names):
        raise ValueError(f"model must be the name of a model, or source.table, got {model!r}.")
    relation = "ref" if len(names) == 1 else "source"
    arguments = ", ".join(map(_jinja_text, names))
    expression = ruleset.to_sql(dialect=dialect, kind=kind, booleans=booleans, exact=exact)
    # Jinja must not interpret names and texts, and would change carriage returns. Lines are not
    # indented, because texts may contain line breaks.
    expression = re.sub(r"[{\r]+", lambda run: f"{{{{ {_jinja_text(run[0])} }}}}", expression)
    column = "rule" if kind == "assign" else "prediction"
    star, alias = ("stored_rows.*", " stored_rows") if dialect in WITHOUT_STAR else ("*", "")
    return (
        f"{{{{ config(materialized={_jinja_text(materialized)}) }}}}\n\nselect\n  {star},\n"
        f"{expression} as {column}\nfrom {{{{ {relation}({arguments}) }}}}{alias}\n"
    )
