"""The ways a rule set can be read: by people, programs and databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from skescore.rules import _json as json_format
from skescore.rules import exporters
from skescore.rules._text import NumberFormat

if TYPE_CHECKING:
    from skescore.rules._explanation import Explanation
    from skescore.rules._ruleset import RuleSet

#: Longer rule sets are cut short where an interpreter or notebook shows them unasked.
_SHOWN_RULES = 60


class Readable:
    """What :class:`~skescore.rules.RuleSet` can be written as; it is the only subclass."""

    @property
    def _whole(self) -> RuleSet:
        return cast("RuleSet", self)

    @cached_property
    def number(self) -> NumberFormat:
        """Writes bounds with a precision that follows the domain, different ones differently."""
        return exporters.number_for(self._whole)

    # --- people ------------------------------------------------------------------------------

    def to_text(self) -> str:
        """Write the rules, one per line, numbered from 1."""
        return exporters.to_text(self._whole)

    def line(self, position: int) -> str:
        """Write one rule, as it stands in :meth:`to_text`.

        Parameters
        ----------
        position : int
            Index of the rule, from 0.

        Returns
        -------
        str
            One line without its number, such as ``ELSE IF age > 30 THEN yes   [12 rows]``.
        """
        return exporters.line(self._whole, range(len(self._whole))[position])

    def to_sentences(self) -> str:
        """Write the rules as English sentences, one per line, numbered from 1."""
        from skescore.rules.exporters._sentences import to_sentences

        return to_sentences(self._whole)

    def to_tree_text(self) -> str:
        """Write the rules as an indented tree, as scikit-learn's ``export_text`` does.

        Returns
        -------
        str
            Rules that begin alike share their branches.

        Raises
        ------
        ValueError
            If all rules that hold answer together, which no tree can say.
        """
        from skescore.rules.exporters._tree import to_tree_text

        return to_tree_text(self._whole)

    def to_markdown(self) -> str:
        """Write the rules as a Markdown table."""
        from skescore.rules.exporters._markdown import to_markdown

        return to_markdown(self._whole)

    def to_html(self, *, standalone: bool = False, title: str | None = None) -> str:
        """Write the rules as an HTML table.

        Parameters
        ----------
        standalone : bool, default=False
            True writes a whole page, with its style and without scripts.
        title : str, optional
            Title of the page.
        """
        return exporters.to_html(self._whole, standalone=standalone, title=title)

    # --- tables ------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """Give the rules as a pandas DataFrame, one row per rule.

        Returns
        -------
        pandas.DataFrame
            Indexed by rule number from 1, with the columns ``premise``, ``output``,
            ``conditions``, ``rows`` and ``purity`` (classification) or ``mean`` and ``spread``.
        """
        return exporters.to_frame(self._whole)

    def to_conditions(self) -> Any:
        """Give the rules as a pandas DataFrame, one row per condition.

        Returns
        -------
        pandas.DataFrame
            With the columns ``rule``, ``feature``, ``operator``, ``value``, ``class`` (``number``
            in a regression) and, where rules have them, ``weight`` and ``rows``;
            :func:`skescore.as_ruleset` reads it back.

        Raises
        ------
        ValueError
            If a condition or output needs more than one cell (M-of-N, sums of features); JSON
            holds everything.
        """
        from skescore.rules.exporters._table import to_conditions

        return to_conditions(self._whole)

    # --- programs ----------------------------------------------------------------------------

    def to_json(self, *, indent: int | None = 2) -> str:
        """Write everything as JSON, without loss; see :meth:`RuleSet.from_json`.

        Parameters
        ----------
        indent : int or None, default=2
            Spaces per level; None writes one line.
        """
        return json_format.to_json(self._whole, indent=indent)

    def to_python(self, *, function_name: str = "predict", X: Any = None) -> str:
        """Write a Python function that answers rows and needs nothing but Python.

        Parameters
        ----------
        function_name : str, default="predict"
            Name of the function.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.

        Returns
        -------
        str
            The source code.
        """
        from skescore.rules.exporters._python import to_python

        return to_python(self._whole, function_name=function_name, X=X)

    def to_sql(
        self,
        *,
        dialect: str | None = None,
        table: str | Sequence[str] | None = None,
        X: Any = None,
        kind: str = "predict",
        output_name: str | None = None,
        columns: Mapping[str, str] | None = None,
        booleans: Sequence[str] = (),
        nan: bool = True,
    ) -> str:
        """Write the answer as an SQL expression, or as a query on a table.

        Parameters
        ----------
        dialect : str, optional
            A dialect that sqlglot knows, such as ``"postgres"``; standard SQL by default.
        table : str or sequence of str, optional
            Name or path of a table; gives a whole SELECT rather than an expression.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.
        kind : {"predict", "assign"}, default="predict"
            The answer, or the number of the answering rule.
        output_name : str, optional
            Name of the added column, by default ``"prediction"`` or ``"rule"``. Needs `table`.
        columns : mapping of str to str, optional
            Names of the table's columns for features that are called otherwise there.
        booleans : sequence of str, default=()
            Features whose columns are BOOLEAN where rules compare them with numbers.
        nan : bool, default=True
            Whether columns may hold NaN besides NULL. False writes plain comparisons.

        Returns
        -------
        str
            The SQL; :func:`skescore.rules.exporters._sql.to_sql` says more of it.
        """
        from skescore.rules.exporters._sql import to_sql

        return to_sql(
            self._whole,
            dialect=dialect,
            table=table,
            X=X,
            kind=kind,
            output_name=output_name,
            columns=columns,
            booleans=booleans,
            nan=nan,
        )

    def to_prolog(
        self,
        *,
        predicate: str = "prediction",
        missing: Sequence[str] = ("null", "nan"),
        X: Any = None,
    ) -> str:
        """Write a Prolog theory.

        Parameters
        ----------
        predicate : str, default="prediction"
            Name of the predicate, which takes the features in order and the answer.
        missing : sequence of str, default=("null", "nan")
            Atoms that stand for missing values.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows on which numbers may be shortened, see :meth:`shorten`; exact numbers by default.

        Returns
        -------
        str
            The clauses, for any standard Prolog.
        """
        from skescore.rules.exporters._prolog import to_prolog

        return to_prolog(self._whole, predicate=predicate, missing=missing, X=X)

    def shorten(self, X: Any) -> RuleSet:
        """Write bounds with fewer digits, as long as no rule changes on any of the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, usually those of the training.

        Returns
        -------
        RuleSet
            The same rules with the shortest bounds for which every condition holds on the same
            rows of X as before.
        """
        from skescore.rules.exporters._rounding import shorten_numbers

        return shorten_numbers(self._whole, X)

    # --- answers -----------------------------------------------------------------------------

    def explain(self, x: Any) -> Explanation:
        """Tell why a row is answered as it is, and what would change the answer.

        Parameters
        ----------
        x : sequence, mapping, or frame of one row
            The row.

        Returns
        -------
        Explanation
            The rules that hold, who answers, and the nearest change of the row that the rules
            answer otherwise; ``print`` it. See :func:`skescore.rules._explanation.explain`.
        """
        from skescore.rules._explanation import explain

        return explain(self._whole, x)

    def with_weights(self, measure: Any, X: Any, y: Any, **options: Any) -> RuleSet:
        """Let all rules that hold vote, each with the weight that a measure gives it.

        Parameters
        ----------
        measure : str or Measure
            A measure of single rules, such as ``"c2"``; see :data:`skescore.metrics.MEASURES`.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows to measure on.
        y : array-like of shape (n_rows,)
            Their labels.
        **options
            See :func:`skescore.selection.with_weights`.

        Returns
        -------
        RuleSet
            The rules, unordered and with weights.
        """
        # The one look upwards: a measure is asked for by name where the rules are at hand.
        from skescore.selection._weighting import with_weights

        return with_weights(self._whole, measure, X, y, **options)

    # --- shown unasked -----------------------------------------------------------------------

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Some of the rules; ``str`` and :meth:`to_text` give all."""
        me = self._whole
        kind = "ordered" if me.ordered else "unordered"
        return (
            f"<RuleSet: {len(me)} {kind} rule{'' if len(me) == 1 else 's'} "
            f"for {me.task} on {me.n_features} feature{'' if me.n_features == 1 else 's'}>\n"
            f"{exporters.to_text(me, limit=_SHOWN_RULES)}"
        )

    def _repr_html_(self) -> str:
        return exporters.to_html(self._whole, limit=_SHOWN_RULES)
