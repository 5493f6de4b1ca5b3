"""Immutable Boolean formulas, evaluated over many rows at once, also as classifiers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from skescore._validation import check_choice, check_instance, check_integer

__all__ = [
    "BINARY",
    "CODINGS",
    "LARGEST_TABLE",
    "Formula",
    "FormulaClassifier",
    "Gate",
    "as_bits",
    "gates_from_expr",
    "gates_to_expr",
    "gates_to_text",
    "halves",
    "parse_gates",
    "variable",
]


# --- formulas as text and as nested lists ---------------------------------------------------------

# A formula is a tuple of gates in postfix order: ``("var", input, -1)``, ``("not", gate, -1)`` or
# ``("and" | "or" | "xor", left gate, right gate)``; the last gate is the root. No function here is
# recursive, so only memory limits the depth of a formula.

Gate = tuple[str, int, int]

BINARY = ("and", "or", "xor")
_SIGNS = {"and": "&", "or": "|", "xor": "^"}
# Precedence as in Python: ~, then &, ^ and |. Words have the precedence of their symbols.
_PRECEDENCE = {"or": 1, "xor": 2, "and": 3, "not": 4}
_WORDS = {
    "&": "and",
    "∧": "and",
    "and": "and",
    "|": "or",
    "\u2228": "or",
    "or": "or",
    "^": "xor",
    "⊕": "xor",
    "xor": "xor",
    "~": "not",
    "¬": "not",
    "not": "not",
}
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|(?P<sign>\S))")
_VARIABLE = re.compile(r"[xX]([1-9][0-9]*)")


def _reject_text(text: str, position: int, problem: str) -> NoReturn:
    """Raise a ValueError that describes a problem at a position of a formula."""
    excerpt = text if len(text) <= 60 else text[max(0, position - 30) : position + 30]
    raise ValueError(
        f"text must be a formula such as '(x1 & x2) | ~x3', got {excerpt!r}: {problem} at position "
        f"{position + 1}. Variables are x1, x2, ...; operators are ~ & ^ | (or not, and, xor, or), "
        "in the order of their precedence."
    )


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Return the kind, the position and, for variables, the index of each token."""
    tokens = []
    end = len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None  # the text before `end` is not blank
        token = match[0].lstrip()
        start = match.end() - len(token)
        position = match.end()
        if token in "()":
            tokens.append((token, start, -1))
        elif token.lower() in _WORDS:
            tokens.append((_WORDS[token.lower()], start, -1))
        elif variable := _VARIABLE.fullmatch(token):
            tokens.append(("var", start, int(variable[1]) - 1))
        elif re.fullmatch(r"[xX]0+", token):
            _reject_text(text, start, f"{token!r}, although the first variable is x1,")
        else:
            _reject_text(text, start, f"unknown token {token!r}")
    return tokens


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Parse a formula in infix notation."""
    gates: list[Gate] = []
    operands: list[int] = []  # gates without an operator
    operators: list[tuple[str, int]] = []  # operators and brackets without their right operand

    def apply(operator: str) -> None:
        right = operands.pop()
        if operator == "not":
            gates.append(("not", right, -1))
        else:
            gates.append((operator, operands.pop(), right))
        operands.append(len(gates) - 1)

    expects_operand = True
    for kind, position, index in _tokens(text):
        if expects_operand != (kind in {"var", "not", "("}):
            match = _TOKEN.match(text, position)
            token = match[0] if match else ""
            expected = "a variable" if expects_operand else "an operator"
            _reject_text(text, position, f"{token!r} instead of {expected}")
        if kind == "var":
            gates.append(("var", index, -1))
            operands.append(len(gates) - 1)
            expects_operand = False
        elif kind in {"not", "("}:
            operators.append((kind, position))
        elif kind == ")":
            while operators and operators[-1][0] != "(":
                apply(operators.pop()[0])
            if not operators:
                _reject_text(text, position, "closing bracket without an opening bracket")
            operators.pop()
        else:
            while operators and _PRECEDENCE.get(operators[-1][0], 0) >= _PRECEDENCE[kind]:
                apply(operators.pop()[0])
            operators.append((kind, position))
            expects_operand = True
    if expects_operand:
        _reject_text(text, len(text), "the text ends where a variable is expected")
    while operators:
        operator, position = operators.pop()
        if operator == "(":
            _reject_text(text, position, "opening bracket without a closing bracket")
        apply(operator)
    return tuple(gates)


def gates_from_expr(expr: Any) -> tuple[Gate, ...]:
    """Convert nested prefix lists such as ``["and", ["var", 0], ["not", ["var", 1]]]`` to gates."""
    gates: list[Gate] = []
    operands: list[int] = []
    stack: list[tuple[Any, bool]] = [(expr, False)]
    while stack:
        part, has_operands = stack.pop()
        operator, n_operands = _checked_part(part)
        if operator == "var":
            operands.append(len(gates))
            gates.append(("var", int(part[1]), -1))
        elif not has_operands:
            stack.append((part, True))
            stack.extend((child, False) for child in reversed(part[1:]))
        else:
            right = operands.pop()
            pair = (right, -1) if n_operands == 1 else (operands.pop(), right)
            operands.append(len(gates))
            gates.append((operator, *pair))
    return tuple(gates)


def _checked_part(part: Any) -> tuple[str, int]:
    if isinstance(part, Sequence) and not isinstance(part, str) and part:
        operator, operands = part[0], part[1:]
        if operator == "var" and len(operands) == 1:
            index = operands[0]
            if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
                return "var", 0
        elif operator == "not" and len(operands) == 1:
            return "not", 1
        elif isinstance(operator, str) and operator in BINARY and len(operands) == 2:
            return operator, 2
    part_text = repr(part)
    raise ValueError(
        "expr must be ['var', index >= 0], ['not', expr] or ['and' | 'or' | 'xor', left, right], "
        f"got {part_text if len(part_text) <= 80 else part_text[:77] + '...'}. "
        "Nest operators of two operands: ['and', ['and', a, b], c]."
    )


def gates_to_expr(gates: Sequence[Gate]) -> list[Any]:
    """Convert gates to nested prefix lists."""
    exprs: list[list[Any]] = []
    for operator, left, right in gates:
        if operator == "var":
            exprs.append(["var", left])
        elif operator == "not":
            exprs.append(["not", exprs[left]])
        else:
            exprs.append([operator, exprs[left], exprs[right]])
    return exprs[-1]


def gates_to_text(gates: Sequence[Gate]) -> str:
    """Write a formula in infix notation, with parentheses between different operators."""
    pieces: list[str] = []
    stack: list[int | str] = [len(gates) - 1]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        operator, left, right = gates[item]
        if operator == "var":
            pieces.append(f"x{left + 1}")
        elif operator == "not":
            pieces.append("~")
            stack.extend(_bracketed(left, gates[left][0] in BINARY))
        else:
            # Operators group from the left: a left operand with the same one needs no brackets.
            parts = [
                *_bracketed(right, gates[right][0] in BINARY),
                f" {_SIGNS[operator]} ",
                *_bracketed(left, gates[left][0] in BINARY and gates[left][0] != operator),
            ]
            stack.extend(parts)
    return "".join(pieces)


def _bracketed(gate: int, needed: bool) -> list[int | str]:
    return [")", gate, "("] if needed else [gate]


# --- formulas -------------------------------------------------------------------------------------


#: Largest number of inputs of a truth table, which has 2**inputs entries.
LARGEST_TABLE = 24
#: Ways to write false and true in rows.
CODINGS = ("01", "+-1")

#: Functions of the gates; in Kleene logic, false, Unassigned and true are -1, 0 and 1.
_TWO_VALUED: Mapping[str, Callable[..., Any]] = {
    "not": np.logical_not,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_KLEENE: Mapping[str, Callable[..., Any]] = {
    "not": np.negative,
    "and": np.minimum,
    "or": np.maximum,
    "xor": lambda left, right: -(left * right),
}


def variable(index: int, n_inputs: int | None = None) -> Formula:
    """Return the formula that consists of one input.

    Use it to build formulas with ``& | ^ ~``.

    Parameters
    ----------
    index : int
        The input, from 0; it is printed as ``x1`` for 0.
    n_inputs : int, optional
        Number of inputs of a row; `index` + 1 if not given.

    Returns
    -------
    Formula
        The formula.

    Raises
    ------
    ValueError
        If the index is not from 0 to `n_inputs` - 1.

    Examples
    --------
    >>> from skescore.attribution import variable
    >>> a, b, c = (variable(i, 3) for i in range(3))
    >>> print(~(a & b) | c)
    ~(x1 & x2) | x3
    """
    index = check_integer("index", index, 0, remedy="The first input is 0.")
    return _make_formula((("var", index, -1),), n_inputs)


def _make_formula(gates: tuple[Gate, ...], n_inputs: int | None) -> Formula:
    """Return a formula; `n_inputs` defaults to the smallest possible number."""
    min_inputs = 1 + max(left for operator, left, _ in gates if operator == "var")
    return Formula(gates, min_inputs if n_inputs is None else n_inputs)


@dataclass(frozen=True, repr=False)
class Formula:
    """A Boolean formula over the inputs of a row.

    Use it as a model in which the correct explanation of every prediction is known. Create it with
    `Formula.parse`, `Formula.from_expr`, `variable` or `random_formula`, and combine formulas with
    ``& | ^ ~``. Formulas are immutable. Equality compares structures, not truth tables.

    Parameters
    ----------
    gates : tuple of (str, int, int)
        The tree in postfix order: ``("var", input, -1)``, ``("not", gate, -1)``, or ``("and" |
        "or" | "xor", left gate, right gate)``; gates count from 0, the last one is the root.
    n_inputs : int
        Number of inputs of a row. Inputs that do not occur in the formula have no effect.

    Raises
    ------
    ValueError
        If the gates are not one tree, or an input lies outside the row.

    Notes
    -----
    `predict` returns the labels 0 and 1, so a formula can be used as a black box. Unassigned inputs
    follow the strong Kleene logic, with -1 for false, 0 for Unassigned and +1 for true: ``not a``
    is -a, ``a and b`` is the minimum, ``a or b`` is the maximum, and ``a xor b`` is -ab.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import Formula
    >>> formula = Formula.parse("(x1 & x2) | ~x3", n_inputs=4)
    >>> formula.evaluate([[1, 1, 1, 0], [1, 0, 1, 0]]).tolist()
    [True, False]
    >>> formula.kleene([[1, 1, 1, 0], [1, 1, 1, 0]], [[0, 0, 1, 1], [1, 0, 0, 0]]).tolist()
    [1, 0]
    >>> formula.variables, formula.is_read_once, formula.is_monotone
    ((0, 1, 2), True, False)
    """

    gates: tuple[Gate, ...]
    n_inputs: int

    def __post_init__(self) -> None:
        remedy = "It is the number of columns of the rows."
        check_integer("n_inputs", self.n_inputs, 1, remedy=remedy)
        if not isinstance(self.gates, tuple):
            object.__setattr__(self, "gates", tuple(map(tuple, self.gates)))
        self._check_tree()

    def _check_tree(self) -> None:
        """Check that the gates are one tree over the inputs, in postfix order."""
        gates, n_inputs = self.gates, self.n_inputs
        is_complete = bool(gates)
        stack: list[int] = []
        for position, (operator, left, right) in enumerate(gates):
            if operator == "var":
                if not 0 <= left < n_inputs:
                    raise ValueError(
                        f"n_inputs must exceed every input's index, got {n_inputs!r} with "
                        f"x{left + 1}, index {left}. Pass n_inputs={left + 1} or more."
                    )
            else:
                operands = [left] if operator == "not" else [left, right]
                is_known = operator == "not" or operator in BINARY
                if not is_known or stack[len(stack) - len(operands) :] != operands:
                    is_complete = False
                    break
                del stack[len(stack) - len(operands) :]
            stack.append(position)
        if not is_complete or len(stack) != 1:
            gates_text = repr(gates)
            raise ValueError(
                "gates must be one tree in postfix order, got "
                f"{gates_text if len(gates_text) <= 80 else gates_text[:77] + '...'}. "
                "Build formulas with Formula.parse, Formula.from_expr or variable."
            )

    @classmethod
    def parse(cls, text: str, n_inputs: int | None = None) -> Formula:
        """Read a formula such as ``(x1 & x2) | ~x3``.

        Parameters
        ----------
        text : str
            Variables ``x1``, ``x2``, ... (``x1`` is index 0), brackets and operators. Precedence is
            as in Python, highest first: ``~`` or ``not``, ``&`` or ``and``, ``^`` or ``xor``, ``|``
            or ``or``. Equal operators are evaluated from left to right.
        n_inputs : int, optional
            Number of inputs of a row; by default the largest number of a variable.

        Returns
        -------
        Formula
            The formula.

        Raises
        ------
        ValueError
            If the text is not a formula; the message states the position.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {text!r}. Use Formula.from_expr for lists.")
        return _make_formula(parse_gates(text), n_inputs)

    @classmethod
    def from_expr(cls, expr: Any, n_inputs: int | None = None) -> Formula:
        """Create a formula from nested lists such as ``["and", ["var", 0], ["not", ["var", 1]]]``.

        Parameters
        ----------
        expr : nested list or tuple
            The formula; variables count from 0.
        n_inputs : int, optional
            Number of inputs of a row; by default one more than the largest index that occurs.

        Returns
        -------
        Formula
            The formula.

        Raises
        ------
        ValueError
            If a part of the list is not a formula.
        """
        return _make_formula(gates_from_expr(expr), n_inputs)

    def to_expr(self) -> list[Any]:
        """Return the formula as nested prefix lists; the inverse of `from_expr`.

        Returns
        -------
        list
            The formula.
        """
        return gates_to_expr(self.gates)

    def __str__(self) -> str:
        return gates_to_text(self.gates)

    def __repr__(self) -> str:
        return f"Formula.parse({str(self)!r}, n_inputs={self.n_inputs})"

    def _combine(self, operator: str, other: object) -> Formula:
        if not isinstance(other, Formula):
            return cast(Formula, NotImplemented)
        if other.n_inputs != self.n_inputs:
            raise ValueError(
                f"both formulas must have the same n_inputs, got {self.n_inputs!r} and "
                f"{other.n_inputs!r}. Create both with the same n_inputs: variable(0, n_inputs=12)."
            )
        offset = len(self.gates)
        shifted = tuple(
            (kind, left, right)
            if kind == "var"
            else (kind, left + offset, right if kind == "not" else right + offset)
            for kind, left, right in other.gates
        )
        root = (operator, offset - 1, offset + len(shifted) - 1)
        return Formula((*self.gates, *shifted, root), self.n_inputs)

    def __and__(self, other: object) -> Formula:
        return self._combine("and", other)

    def __or__(self, other: object) -> Formula:
        return self._combine("or", other)

    def __xor__(self, other: object) -> Formula:
        return self._combine("xor", other)

    def __invert__(self) -> Formula:
        return Formula((*self.gates, ("not", len(self.gates) - 1, -1)), self.n_inputs)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "A Formula has no truth value. Combine formulas with & | ^ ~, not with and, or, not."
        )

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices of the inputs that occur, sorted."""
        return tuple(sorted({left for operator, left, _ in self.gates if operator == "var"}))

    @property
    def arity(self) -> int:
        """Number of inputs that occur."""
        return len(self.variables)

    @property
    def n_leaves(self) -> int:
        """Number of occurrences of inputs."""
        return sum(operator == "var" for operator, _, _ in self.gates)

    @cached_property
    def is_read_once(self) -> bool:
        """Whether every input occurs at most once."""
        counts = Counter(left for operator, left, _ in self.gates if operator == "var")
        return max(counts.values()) == 1

    @cached_property
    def is_monotone(self) -> bool:
        """Whether changing an input from 0 to 1 never changes the value from 1 to 0.

        This is a property of the function, not of its notation: ``~(~x1 | ~x2)`` is monotone.
        Formulas with other operators than ``and`` and ``or`` require the truth table, and therefore
        at most 24 variables.
        """
        if {operator for operator, _, _ in self.gates} <= {"var", "and", "or"}:
            return True
        pairs = halves(self.truth_table(variables=self.variables))
        return not any((low & ~high).any() for low, high in pairs)

    @cached_property
    def relevant_variables(self) -> tuple[int, ...]:
        """Indices of the inputs that change the value of some row, sorted.

        In a read-once formula, all inputs that occur are relevant. Other formulas require the truth
        table, and therefore at most 24 variables.
        """
        if self.is_read_once:
            return self.variables
        pairs = halves(self.truth_table(variables=self.variables))
        return tuple(
            index
            for index, (low, high) in zip(self.variables, pairs, strict=True)
            if (low != high).any()
        )

    def _evaluated(
        self, columns: NDArray[Any], operations: Mapping[str, Callable[..., Any]]
    ) -> NDArray[Any]:
        """Return the values of the root for inputs of shape (n_inputs, n_rows)."""
        stack: list[NDArray[Any]] = []
        for operator, left, _ in self.gates:
            if operator == "var":
                stack.append(columns[left])
                continue
            last = stack.pop()
            operands = (last,) if operator == "not" else (stack.pop(), last)
            stack.append(np.asarray(operations[operator](*operands)))
        return np.array(stack[0])  # a copy, because the formula x1 would return a view of its input

    def evaluate(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Evaluate rows of zeros and ones.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs), or one row
            Values 0 and 1, or booleans.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
            The values; a scalar array for one row.

        Raises
        ------
        ValueError
            If the shape is wrong or another value occurs.
        """
        bits = as_bits(X, self.n_inputs)
        return self._evaluated(np.ascontiguousarray(bits.T), _TWO_VALUED)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict the labels 0 and 1 of rows, like a classifier.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            Values 0 and 1, or booleans.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            The labels.

        Raises
        ------
        ValueError
            If the shape is wrong or another value occurs.
        """
        return self.evaluate(X).astype(np.int64)

    def evaluate_kleene(self, V: ArrayLike) -> NDArray[np.int8]:
        """Evaluate rows with Unassigned inputs by the strong Kleene logic.

        Parameters
        ----------
        V : array-like of shape (n_rows, n_inputs), or one row
            -1 is false, 0 is Unassigned, +1 is true.

        Returns
        -------
        ndarray of int8, shape (n_rows,)
            The values in the same coding. In read-once formulas, 0 means that different values of
            the Unassigned inputs lead to different results. If an input occurs twice, the value can
            be 0 although all values lead to the same result.

        Raises
        ------
        ValueError
            If the shape is wrong or another value occurs.
        """
        values = _as_rows(V, self.n_inputs, "V")
        wrong = (values != -1) & (values != 0) & (values != 1)
        if wrong.any():
            _refuse_value("V", values, wrong, "-1 (false), 0 (Unassigned) or +1 (true)")
        return self._evaluated(np.ascontiguousarray(values.T, dtype=np.int8), _KLEENE)

    def kleene(self, X: ArrayLike, mask: ArrayLike) -> NDArray[np.int8]:
        """Evaluate rows of zeros and ones in which some inputs are Unassigned.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs), or one row
            Values 0 and 1, or booleans.
        mask : array-like of bool, broadcast against `X`
            True where the input is Unassigned.

        Returns
        -------
        ndarray of int8, shape (n_rows,)
            -1 for false, 0 for Unassigned, +1 for true.

        Raises
        ------
        ValueError
            If a shape is wrong or a value is neither 0 nor 1.
        """
        bits = as_bits(X, self.n_inputs)
        hidden = as_bits(mask, self.n_inputs, "mask")
        try:
            values = np.where(hidden, np.int8(0), np.where(bits, np.int8(1), np.int8(-1)))
        except ValueError:
            raise ValueError(
                f"mask must have the shape of X, {bits.shape!r}, or of one row, got "
                f"{hidden.shape!r}. Repeat the rows of X for several masks."
            ) from None
        return self._evaluated(np.ascontiguousarray(values.T), _KLEENE)

    def truth_table(self, *, variables: tuple[int, ...] | None = None) -> NDArray[np.bool_]:
        """Evaluate all assignments.

        Parameters
        ----------
        variables : tuple of int, optional
            The inputs to vary, at most 24; by default all inputs. The others are 0.

        Returns
        -------
        ndarray of bool, shape (2**len(variables),)
            Entry k is the value where input ``variables[i]`` is bit i of k.

        Raises
        ------
        ValueError
            If the table would be too large, or an input does not exist.
        """
        varied = tuple(range(self.n_inputs)) if variables is None else tuple(variables)
        if len(varied) > LARGEST_TABLE:
            raise ValueError(
                f"a truth table must have at most {LARGEST_TABLE} inputs, got {len(varied)!r}. "
                "Pass variables=formula.variables to omit inputs that do not occur."
            )
        if len(set(varied)) < len(varied) or not set(varied) <= set(range(self.n_inputs)):
            raise ValueError(
                f"variables must be distinct and from 0 to {self.n_inputs - 1}, got {variables!r}. "
                "Pass formula.variables."
            )
        columns = np.zeros((self.n_inputs, 1 << len(varied)), dtype=np.bool_)
        codes = np.arange(1 << len(varied), dtype=np.uint32)
        for bit, index in enumerate(varied):
            columns[index] = codes >> np.uint32(bit) & np.uint32(1)
        return self._evaluated(columns, _TWO_VALUED)

    def as_classifier(self, *, coding: str = "01") -> FormulaClassifier:
        """Wrap the formula as a fitted scikit-learn classifier.

        Parameters
        ----------
        coding : {"01", "+-1"}, default="01"
            Values that stand for false and true in the rows.

        Returns
        -------
        FormulaClassifier
            The classifier.

        Raises
        ------
        ValueError
            If the coding is unknown.
        """
        return FormulaClassifier(self, coding=coding).fit()


class FormulaClassifier(ClassifierMixin, BaseEstimator):
    """Scikit-learn classifier that predicts by a Boolean formula.

    Use it if a fitted classifier is required, as by extractors, explainers and searches. There is
    nothing to learn, so `fit` only checks the parameters.

    Parameters
    ----------
    formula : Formula
        The formula that predicts.
    coding : {"01", "+-1"}, default="01"
        Values that stand for false and true in the rows: 0 and 1, or -1 and +1.

    Attributes
    ----------
    classes_ : ndarray of int
        0 and 1.
    n_features_in_ : int
        Number of inputs of the formula.

    Examples
    --------
    >>> from skescore.attribution import Formula
    >>> model = Formula.parse("x1 & ~x2").as_classifier(coding="+-1")
    >>> model.predict([[1, -1], [1, 1]]).tolist()
    [1, 0]
    >>> model.predict_proba([[1, -1]]).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, formula: Formula, *, coding: str = "01") -> None:
        self.formula = formula
        self.coding = coding

    def fit(self, X: Any = None, y: Any = None) -> FormulaClassifier:
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X : array-like, optional
            Ignored.
        y : array-like, optional
            Ignored.

        Returns
        -------
        FormulaClassifier
            The classifier itself.
        """
        check_instance("formula", self.formula, Formula, remedy="Create it: Formula.parse(text).")
        check_choice("coding", self.coding, CODINGS)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = self.formula.n_inputs
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            The rows, in the classifier's coding.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            The labels.
        """
        self.fit()  # checks the parameters, which may have changed
        if self.coding == "01":
            return self.formula.predict(X)
        rows = np.asarray(X)
        if ((rows != -1) & (rows != 1)).any():
            raise ValueError(
                f"X must hold -1 or +1, got {np.unique(rows)[:5].tolist()!r}. Pass coding='01' for "
                "zeros and ones."
            )
        return self.formula.predict(rows > 0)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probabilities of the classes 0 and 1, which are always 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_inputs)
            The rows, in the classifier's coding.

        Returns
        -------
        ndarray of float, shape (n_rows, 2)
            The probabilities.
        """
        return np.eye(2)[self.predict(X)]


def halves(table: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return for each input the table entries with value 0, and the matching ones with value 1."""
    n_inputs = table.size.bit_length() - 1
    cubes = [table.reshape(-1, 2, 1 << bit) for bit in range(n_inputs)]
    return [(cube[:, 0], cube[:, 1]) for cube in cubes]


def _as_rows(X: ArrayLike, n_inputs: int, name: str) -> NDArray[Any]:
    """Check the shape of one or several rows."""
    rows = np.asarray(X)
    if rows.ndim not in (1, 2) or rows.shape[-1] != n_inputs:
        raise ValueError(
            f"{name} must have shape (n_rows, {n_inputs}), got {rows.shape!r}. The formula has "
            f"n_inputs={n_inputs}: pass a column for each input, including those that do not occur."
        )
    return rows


def as_bits(X: ArrayLike, n_inputs: int, name: str = "X") -> NDArray[np.bool_]:
    """Convert rows of zeros and ones to Booleans."""
    rows = _as_rows(X, n_inputs, name)
    if rows.dtype != np.bool_:
        wrong = (rows != 0) & (rows != 1)
        if wrong.any():
            _refuse_value(name, rows, wrong, "0 or 1")
    return rows.astype(np.bool_)


def _refuse_value(
    name: str, values: NDArray[Any], wrong: NDArray[np.bool_], expected: str
) -> NoReturn:
    """Raise an error for the first invalid value."""
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    value = values[index]
    plain_value = value.item() if isinstance(value, np.generic) else value
    axes = ("row", "column")[-len(index) :]
    position = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
    remedy = "(X + 1) / 2 turns -1 and +1 into 0 and 1." if plain_value == -1 else ""
    raise ValueError(
        f"{name} must hold {expected}, got {plain_value!r} in {position}. {remedy}".rstrip()
    )
