"""How databases differ: names, texts, numbers, and what NaN is to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from skescore._optional import import_optional
from skescore._text import did_you_mean

#: Databases that have no floating-point NaN.
_WITHOUT_NAN = ("sqlite", "mysql", "tsql")
#: Databases that tell upper from lower case in names that stand in quotation marks.
_CASE_SENSITIVE = ("postgres", "snowflake", "oracle")
#: Databases without TRUE and FALSE; SQLite takes them for columns if there are such.
_WITHOUT_FLAGS = ("tsql", "oracle", "sqlite")
#: Dialects that are written without sqlglot.
_OWN = ("duckdb", "postgres", "sqlite")
#: Whole numbers up to here are the same in 32 bits as in 64.
_EXACT = 2**24
_LARGEST_WHOLE = 2**63 - 1
#: SQLite reads smaller numbers only nearly.
_LEAST_IN_SQLITE = 1e-290


@dataclass(frozen=True)
class Dialect:
    """What a database wants to read.

    Parameters
    ----------
    name : str, optional
        The dialect; None for standard SQL.
    may_hold_nan : bool, default=True
        Whether columns may hold NaN besides NULL.
    """

    name: str | None = None
    may_hold_nan: bool = True

    @property
    def nan(self) -> bool:
        """Whether NaN has to be kept out of comparisons."""
        return self.may_hold_nan and self.name not in _WITHOUT_NAN

    def folded(self, name: str) -> str:
        """The name as the database tells it from others."""
        return name if self.name in _CASE_SENSITIVE else name.casefold()

    def identifier(self, name: str, parameter: str) -> str:
        """Write the name of a column or table."""
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be a name, got {name!r}.")
        _check_text(name, f"The {parameter} name")
        if not name:
            remedy = "columns={feature: column}" if parameter == "feature" else f"a {parameter}"
            raise ValueError(
                f"The {parameter} name is empty, which databases do not allow, got {name!r}. Pass "
                f"{remedy} with another name."
            )
        # SQLite takes an unknown name in double quotation marks for a text, and answers nonsense.
        mark = "`" if self.name == "sqlite" else '"'
        return f"{mark}{name.replace(mark, 2 * mark)}{mark}"

    def label(self, value: Any) -> str:
        """Write a class label or the value of a category."""
        if isinstance(value, str):
            _check_text(value, "The label")
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bool):
            if self.name in _WITHOUT_FLAGS:
                return str(int(value))
            return str(value).upper()
        if isinstance(value, float):
            return self.number(value)
        if abs(value) > _LARGEST_WHOLE:
            raise ValueError(
                f"The label {value!r} does not fit the 64 bits of a BIGINT. Make it a text."
            )
        return str(value)

    def bound(self, value: float) -> str:
        """Write a number to compare with; shortly where that compares alike."""
        if value.is_integer() and abs(value) <= _EXACT:
            return str(int(value))
        return self._floating(value)

    def number(self, value: float) -> str:
        """Write a number to calculate with, which makes the result floating-point."""
        text = self._floating(value)
        return f"FLOAT8 '{text}'" if self.name == "postgres" else text

    def _floating(self, value: float) -> str:
        text = repr(float(value))
        if self.name == "sqlite" and value:
            if abs(value) < _LEAST_IN_SQLITE:
                raise ValueError(
                    f"SQLite does not read the number {value!r} exactly: numbers must be 0 or at "
                    f"least {_LEAST_IN_SQLITE} in size. Rescale that feature."
                )
            # Its reader rounds twice. Further digits move the number away from where that matters.
            error = abs(Fraction(text) - Fraction(value)) / Fraction(math.ulp(value))
            if error > Fraction(1, 2) - Fraction(1, 256):
                text = f"{value:.17e}"
        return text if "e" in text else f"{text.removesuffix('.0')}e0"


def _check_text(text: str, what: str) -> None:
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError(
            f"{what} {text!r} holds a sign that databases do not store (NUL or half a surrogate "
            "pair). Rename it."
        )


def find_dialect(name: str | None, *, may_hold_nan: bool = True) -> Dialect:
    """Check the name of a dialect.

    Raises
    ------
    ValueError
        If sqlglot does not know it.
    ImportError
        If it needs sqlglot, which is not installed.
    """
    if name is None or name in _OWN:
        return Dialect(name, may_hold_nan)
    if not isinstance(name, str):
        raise TypeError(f"dialect must be a name or None, got {name!r}.")
    sqlglot = import_optional("sqlglot", extra="sql", purpose=f"Writing SQL for {name!r}")
    known = {dialect.value for dialect in sqlglot.Dialects if dialect.value}
    if name not in known:
        raise ValueError(
            f"dialect must be one that sqlglot knows, got {name!r}. {did_you_mean(name, known)}"
        )
    return Dialect(name, may_hold_nan)


def translated(text: str, dialect: Dialect) -> str:
    """Turn standard SQL into a dialect that is not written directly."""
    if dialect.name is None or dialect.name in _OWN:
        return text
    sqlglot = import_optional("sqlglot", extra="sql", purpose=f"Writing SQL for {dialect.name!r}")
    tree = sqlglot.parse_one(text, read="duckdb")
    if dialect.name == "tsql":
        # Other texts lose what the code page of the database lacks.
        national = sqlglot.exp.National
        tree = tree.transform(lambda node: national(this=node.this) if node.is_string else node)
    return str(tree.sql(dialect=dialect.name, pretty=True))
