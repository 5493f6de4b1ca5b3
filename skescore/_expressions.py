"""Formulas of scores as expression trees: evaluated with NumPy, printed, and sent to the page.

An expression is built with the operators ``+ - * / **`` and a few methods from :class:`Variable`
objects. The module stays light: NumPy is imported when an expression is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Expression", "Variable"]

#: Quotients of decimal numbers are off by one or two units in the last place, computed ones by a
#: few more. The tolerance is relative and stays far below half a step up to 1e13 steps.
_STEP_TOLERANCE_ULPS = 32
#: Binary operators: precedence and notation.
_OPERATORS = {"+": (1, " + "), "-": (1, " − "), "*": (2, " · "), "/": (2, " / "), "**": (3, "^")}
#: Functions of one argument: notation, with ``{}`` for the argument.
_FUNCTIONS = {
    "ceil": "⌈{}⌉",
    "exp": "e^({})",
    "log": "ln({})",
    "log2": "log₂({})",
    "falling_sigmoid": "1 / (1 + e^({}))",
}
_ATOM = 4


class Expression:
    """Formula of a score; build one with operators from :class:`Variable`.

    Examples
    --------
    >>> from skescore.scorers import Variable
    >>> p, r = Variable("p"), Variable("r")
    >>> formula = p * (r / Variable("psi")).ceil() * r**0.05
    >>> formula.to_text({"psi": "ψ"})
    'p · ⌈r / ψ⌉ · r^0.05'
    >>> formula.to_json()
    ['*', ['*', 'p', ['ceil', ['/', 'r', 'psi']]], ['**', 'r', 0.05]]
    >>> float(formula.evaluate({"p": 0.5, "r": 1.0, "psi": 2.0}))
    0.5
    """

    def __add__(self, other: Any) -> Expression:
        return _Operation("+", self, _expression(other))

    def __radd__(self, other: Any) -> Expression:
        return _Operation("+", _expression(other), self)

    def __sub__(self, other: Any) -> Expression:
        return _Operation("-", self, _expression(other))

    def __rsub__(self, other: Any) -> Expression:
        return _Operation("-", _expression(other), self)

    def __mul__(self, other: Any) -> Expression:
        return _Operation("*", self, _expression(other))

    def __rmul__(self, other: Any) -> Expression:
        return _Operation("*", _expression(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return _Operation("/", self, _expression(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return _Operation("/", _expression(other), self)

    def __pow__(self, other: Any) -> Expression:
        return _Operation("**", self, _expression(other))

    def __rpow__(self, other: Any) -> Expression:
        return _Operation("**", _expression(other), self)

    def ceil(self) -> Expression:
        """Round up to a whole number; values within float noise of one count as that number."""
        return _Function("ceil", self)

    def exp(self) -> Expression:
        """Raise e to the power of the expression."""
        return _Function("exp", self)

    def log(self) -> Expression:
        """Take the natural logarithm."""
        return _Function("log", self)

    def log2(self) -> Expression:
        """Take the logarithm to base 2."""
        return _Function("log2", self)

    def falling_sigmoid(self) -> Expression:
        """Compute 1 / (1 + e^x) without overflow."""
        return _Function("falling_sigmoid", self)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that occur in the expression."""
        raise NotImplementedError

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Compute the expression with NumPy from a float or an array for each variable."""
        raise NotImplementedError

    def to_json(self) -> Any:
        """Return nested lists of operators and functions, names of variables and numbers."""
        raise NotImplementedError

    def to_text(self, symbols: Mapping[str, str] | None = None) -> str:
        """Write the formula for readers, with other symbols for some of the variables."""
        return self._text(symbols or {})[0]

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        """Return the text and the precedence of its outermost operator."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Constant(Expression):
    value: float

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset()

    def evaluate(self, values: Mapping[str, Any]) -> float:
        return self.value

    def to_json(self) -> float:
        return self.value

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        return f"{self.value:g}".replace("-", "−"), _ATOM


@dataclass(frozen=True)
class Variable(Expression):
    """Variable of a formula.

    Parameters
    ----------
    name : str
        ``"p"`` for the measure of the prediction, ``"r"`` for the size, ``"c"`` for the
        completeness, or the name of a weight.
    """

    name: str

    @cached_property
    def variables(self) -> frozenset[str]:
        """The name of the variable itself."""
        return frozenset([self.name])

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the variable."""
        return values[self.name]

    def to_json(self) -> str:
        """Return the name."""
        return self.name

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        return symbols.get(self.name, self.name), _ATOM


@dataclass(frozen=True)
class _Operation(Expression):
    operator: str
    left: Expression
    right: Expression

    @cached_property
    def variables(self) -> frozenset[str]:
        return self.left.variables | self.right.variables

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        left, right = self.left.evaluate(values), self.right.evaluate(values)
        match self.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case _:
                return left**right

    def to_json(self) -> list[Any]:
        return [self.operator, self.left.to_json(), self.right.to_json()]

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        precedence, notation = _OPERATORS[self.operator]
        (left, left_precedence), (right, right_precedence) = (
            part._text(symbols) for part in (self.left, self.right)
        )
        if left_precedence < precedence or (self.operator == "**" and left_precedence < _ATOM):
            left = f"({left})"
        associative = self.operator in "+*"
        if right_precedence < precedence or (right_precedence == precedence and not associative):
            right = f"({right})"
        return f"{left}{notation}{right}", precedence


@dataclass(frozen=True)
class _Function(Expression):
    name: str
    argument: Expression

    @cached_property
    def variables(self) -> frozenset[str]:
        return self.argument.variables

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        import numpy as np

        argument = self.argument.evaluate(values)
        if self.name == "ceil":
            return _ceil(argument, self.argument, values)
        if self.name == "falling_sigmoid":
            from scipy.special import expit

            return np.asarray(expit(-argument))
        return getattr(np, self.name)(argument)

    def to_json(self) -> list[Any]:
        return [self.name, self.argument.to_json()]

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        text = _FUNCTIONS[self.name].format(self.argument.to_text(symbols))
        return text, _OPERATORS["/"][0] if self.name == "falling_sigmoid" else _ATOM


def _expression(value: Any) -> Expression:
    """Turn a number into a constant; expressions are returned as they are."""
    return value if isinstance(value, Expression) else _Constant(float(value))


def _ceil(value: Any, expression: Expression, values: Mapping[str, Any]) -> Any:
    """Round up after removing float noise."""
    import numpy as np

    numbers = np.asarray(value)
    if not np.isfinite(numbers).all():
        smallest = [f"{name}={np.min(values[name]):g}" for name in sorted(expression.variables)]
        raise ValueError(
            f"{expression.to_text()} must be a finite number, but it overflows for "
            f"{', '.join(smallest)}. Pass weights nearer to 1."
        )
    nearest = np.rint(numbers)
    tolerance = _STEP_TOLERANCE_ULPS * np.finfo(np.float64).eps
    is_noise = np.abs(numbers - nearest) <= tolerance * np.abs(numbers)
    return np.where(is_noise, nearest, np.ceil(numbers))
