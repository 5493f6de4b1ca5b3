"""Rule sets as SQL, so that whole warehouses are answered where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skescore._validation import check_flag
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules.exporters._common import (
    abstention,
    always_answers,
    answering_rules,
    class_labels,
    class_votes,
)
from skescore.rules.exporters._rounding import shorten_numbers
from skescore.rules.exporters._sql_dialects import Dialect, find_dialect, translated
from skescore.rules.exporters._sql_terms import Terms, added, either

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

KINDS = ("predict", "assign")


def to_sql(
    ruleset: RuleSet,
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
    """Write a rule set as a ``CASE`` expression, or as a query that answers a table.

    Use it to answer, or to count what each rule answers, where the data is: in DuckDB, PostgreSQL,
    SQLite, Spark or a warehouse.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    dialect : str, optional
        ``"duckdb"``, ``"postgres"`` and ``"sqlite"`` are written directly; every other one that
        sqlglot knows (``"spark"``, ``"bigquery"``, ``"snowflake"``, ``"tsql"``, ``"mysql"``, ...)
        needs ``pip install "skescore[sql]"``. By default standard SQL.
    table : str or sequence of str, optional
        Table to query, or its path such as ``("schema", "table")``. By default only the expression
        is written, which fits in any query.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows whose answers must stay the same: bounds are then written in as few digits as that
        takes, see :func:`skescore.rules.exporters._rounding.shorten_numbers`.
    kind : {"predict", "assign"}, default="predict"
        ``"predict"`` gives the answer, ``"assign"`` the number of the answering rule (from 1; NULL
        where no rule holds), for sets of which one rule answers.
    output_name : str, optional
        Name of the added column, by default ``"prediction"`` or ``"rule"``. Needs `table`.
    columns : mapping of str to str, optional
        Names of the table's columns for features that are called otherwise there.
    booleans : sequence of str, default=()
        Features whose columns are BOOLEAN where rules compare them with numbers, as those that were
        learned from truth values do (``smoker > 0.5``): few databases compare the two. They are
        converted, False to 0 and True to 1.
    nan : bool, default=True
        Whether columns may hold NaN besides NULL. False writes plain comparisons, which are easier
        to read and let databases use their indices, but which NaN satisfies where it sorts above
        all numbers.

    Returns
    -------
    str
        The expression or query, without a semicolon.

    Raises
    ------
    ValueError
        If the dialect is unknown; if a name, label or number cannot be written in it; if a name
        stands for two columns; if outputs are of different types; if the fallback asks the nearest
        box; or, for ``kind="assign"``, if all rules answer together.
    ImportError
        If the dialect needs sqlglot, which is not installed.

    Notes
    -----
    NULL and the floating-point NaN satisfy no condition. Many databases sort NaN above all numbers;
    there ``x > 2.5`` is written ``0e0 - x < -2.5e0``, which NaN does not satisfy (unless
    ``nan=False`` says that there is none). Where no rule holds, the answer is the fallback's; NULL
    without a fallback, and where a regression abstains or a value that it needs is missing.

    Numbers have an exponent (``2.5e0``), which makes them floating-point rather than decimal in
    standard SQL, so that they are the bounds to the last digit. Columns of type FLOAT (32 bits),
    DECIMAL or BIGINT are compared as the rules compare them, after conversion to DOUBLE; where the
    database compares them exactly, a value with more than 15 digits may fall on the other side of
    a bound that it nearly equals. Columns must be numeric where rules compare numbers (or be named
    in `booleans`), and text equal only to the same text (choose a binary collation in MySQL
    and SQL Server). The order of additions is that of :meth:`RuleSet.predict`, so that sums are
    equal to the last digit; sums of more than 900 rules are added in blocks, since databases limit
    the depth of expressions, and may differ in it. PostgreSQL, MySQL and SQL Server stop with an
    error where a sum or product is too large or too small for a float. Infinite values in weights
    that depend on the row may cancel to a vote that only DuckDB and PostgreSQL count as NumPy does.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"), Rule([Interval(0, 4.5, 7)], "virginica")],
    ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
    ... )
    >>> print(to_sql(rules))
    CASE
      WHEN "petal length (cm)" <= 2.5e0 THEN 'setosa'
      WHEN "petal length (cm)" > 4.5e0 AND "petal length (cm)" <= 7 THEN 'virginica'
      ELSE 'versicolor'
    END

    How many rows of a table each rule answers is one query; the share of those without a number
    (NULL) is what the rules leave uncovered:

    >>> inner = to_sql(rules, kind="assign", table="iris", columns={"petal length (cm)": "length"})
    >>> print(f"SELECT rule, COUNT(*) FROM ({inner}) AS answered GROUP BY rule")
    SELECT rule, COUNT(*) FROM (SELECT *, CASE
      WHEN "length" <= 2.5e0 THEN 1
      WHEN "length" > 4.5e0 AND "length" <= 7 THEN 2
    END AS "rule" FROM "iris") AS answered GROUP BY rule
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be 'predict' or 'assign', got {kind!r}.")
    if output_name is not None and table is None:
        raise ValueError(
            f"output_name={output_name!r} names the column of a query, but without table=... only "
            "an expression is written: pass the table, or name the expression in your query."
        )
    if kind == "assign":
        ruleset.check_one_answers("to_sql(kind='assign')")
    if X is not None:
        ruleset = shorten_numbers(ruleset, X)
    style = find_dialect(dialect, may_hold_nan=check_flag("nan", nan))
    writer = _Writer(ruleset, style, Terms(ruleset, style, columns or {}, booleans))
    text = writer.rule_number() if kind == "assign" else writer.answer()
    if table is not None:
        parts = [table] if isinstance(table, str) else list(table)
        path = ".".join(style.identifier(part, "table") for part in parts)
        name = output_name or ("rule" if kind == "assign" else "prediction")
        text = f"SELECT *, {text} AS {style.identifier(name, 'output_name')} FROM {path}"
    return translated(text, style)


def _case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """What goes with the first premise that holds."""
    if not branches:
        return otherwise or "NULL"
    lines = [f"  WHEN {premise} THEN {answer}" for premise, answer in branches]
    lines += [] if otherwise is None else [f"  ELSE {otherwise}"]
    return "\n".join(["CASE", *lines, "END"])


class _Writer:
    """A rule set's answers as expressions."""

    def __init__(self, ruleset: RuleSet, style: Dialect, terms: Terms) -> None:
        self.ruleset, self.style, self.terms = ruleset, style, terms
        self.rules = answering_rules(ruleset)
        self.sure = always_answers(ruleset)
        self.classes = class_labels(ruleset)

    def rule_number(self) -> str:
        """The number of the answering rule."""
        return self._one_by_one([str(i + 1) for i in self.rules], None)

    def answer(self) -> str:
        """The prediction."""
        self._check_labels()
        if self.ruleset.voting is not None:
            return self._vote() if self.ruleset.classes is not None else self._number()
        answers = [self._output(self.ruleset.rules[i]) for i in self.rules]
        return self._one_by_one(answers, self._fallback())

    def _one_by_one(self, answers: Sequence[str], otherwise: str | None) -> str:
        branches: list[tuple[str, str]] = []
        for index, answer in zip(self.rules, answers, strict=True):
            premise = self.terms.premise(self.ruleset.rules[index])
            if premise is None:
                return _case(branches, answer)
            branches.append((premise, answer))
        return _case(branches, otherwise)

    def _check_labels(self) -> None:
        """Refuse labels that no single type of column can hold."""
        if self.ruleset.classes is None:
            return
        labels = list(self.classes)
        fallback = self.ruleset.fallback
        if fallback is not None and fallback.policy == "abstain":
            labels.append(abstention(self.ruleset))
        kinds = {"text" if isinstance(v, str) else type(v) is bool for v in labels}
        if len(kinds) > 1:
            raise ValueError(
                f"The answers {labels!r} are of different types, which a column cannot hold. Give "
                "the classes labels of one type, or write kind='assign' and look up the answers "
                "by the rules' numbers."
            )

    def _output(self, rule: Rule) -> str:
        if isinstance(rule.output, LinearOutput):
            return self.terms.affine(rule.output.intercept, rule.output.terms)
        if self.ruleset.classes is None:
            return self.style.number(float(rule.output))
        return self._class(self.ruleset.classes.index(rule.output))

    def _class(self, index: int) -> str:
        return self.style.label(self.classes[index])

    def _fallback(self) -> str | None:
        """What is said where no rule holds; None for NULL."""
        fallback, classes = self.ruleset.fallback, self.ruleset.classes
        if fallback is None or (self.sure and self.ruleset.voting != "mean"):
            return None
        if fallback.policy == "nearest" and len(self.ruleset):
            raise ValueError(
                "SQL cannot say which rule's box is nearest, but the fallback has "
                "policy='nearest'. Choose another one: ruleset.replace(fallback=Fallback("
                f"{fallback.output!r})) answers {fallback.output!r} where no rule holds."
            )
        if fallback.policy == "abstain":
            return None if classes is None else self.style.label(abstention(self.ruleset))
        if classes is None:
            return self.style.number(float(fallback.output))
        return self._class(classes.index(fallback.output))

    # --- all rules that hold answer together -------------------------------------------------

    def _where_any(self, answer: str) -> str:
        """An answer where any rule holds, and the fallback's elsewhere."""
        if self.sure:
            return answer
        if not self.rules:
            return self._fallback() or "NULL"
        premises = [self.terms.premise(self.ruleset.rules[i]) or "" for i in self.rules]
        return _case([(either(premises), answer)], self._fallback())

    def _summand(self, rule: Rule, value: str) -> str:
        premise = self.terms.premise(rule)
        if premise is None:
            return value
        return f"CASE WHEN {premise} THEN {value} ELSE {self.style.number(0.0)} END"

    def _vote(self) -> str:
        summands: list[list[str]] = [[] for _ in self.classes]
        for i in self.rules:
            rule = self.ruleset.rules[i]
            for k, share in class_votes(self.ruleset, i):
                summands[k].append(self._vote_of(rule, share))
        # Of the classes that get no votes only the first can win.
        silent = [k for k, parts in enumerate(summands) if not parts][1:]
        running = [k for k in range(len(summands)) if k not in silent]
        sums = {k: added(summands[k], self.style) for k in running}
        branches: list[tuple[str, str]] = []
        for place, k in enumerate(running[:-1]):
            rivals = [f"{sums[k]} >= {sums[j]}" for j in running[place + 1 :]]
            branches.append((" AND ".join(rivals), self._class(k)))
        return self._where_any(_case(branches, self._class(running[-1])) if running else "NULL")

    def _vote_of(self, rule: Rule, share: float) -> str:
        if not isinstance(rule.weight, LinearOutput):
            return self._summand(rule, self.style.number(rule.weight * share))
        weight = self.terms.affine(rule.weight.intercept, rule.weight.terms)
        times = f" * {self.style.number(share)}" if self.ruleset.voting == "shares" else ""
        # A weight that a missing value leaves unknown says nothing.
        known = self.terms.is_number(f"({weight})")
        none = self.style.number(0.0)
        value = f"CASE WHEN {known} THEN ({weight}) ELSE {none} END{times}"
        return self._summand(rule, value)

    def _number(self) -> str:
        totals, weights = [], []
        for i in self.rules:
            rule = self.ruleset.rules[i]
            assert not isinstance(rule.weight, LinearOutput)  # the rule set has seen to it
            if isinstance(rule.output, LinearOutput):
                value = f"({self._output(rule)})"
                if rule.weight != 1:
                    value = f"{self.style.number(rule.weight)} * {value}"
            else:
                value = self.style.number(rule.weight * float(rule.output))
            totals.append(self._summand(rule, value))
            weights.append(self._summand(rule, self.style.number(rule.weight)))
        total = added(totals, self.style)
        if self.ruleset.voting == "sum":
            return self._where_any(total)
        weight = added(weights, self.style)
        return _case([(f"{weight} > 0", f"{total} / {weight}")], self._fallback())
