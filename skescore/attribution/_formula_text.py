"""Boolean formulae as text and as nested lists, both ways.

Everywhere a formula is a tuple of gates in postfix order: ``("var", input, -1)``, ``("not", gate,
-1)`` or ``("and" | "or" | "xor", left gate, right gate)``; the last gate is the root. Nothing here
recurses, so that the depth of a formula is limited by memory alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["BINARY", "Gate", "gates_from_expr", "gates_to_expr", "gates_to_text", "parse_gates"]

Gate = tuple[str, int, int]

BINARY = ("and", "or", "xor")
_SIGNS = {"and": "&", "or": "|", "xor": "^"}
# As in Python: ~ binds tightest, then &, ^ and |. Words bind as their signs do.
_BINDING = {"or": 1, "xor": 2, "and": 3, "not": 4}
_WORDS = {
    "&": "and", "∧": "and", "and": "and",
    "|": "or", "\u2228": "or", "or": "or",
    "^": "xor", "⊕": "xor", "xor": "xor",
    "~": "not", "¬": "not", "not": "not",
}  # fmt: skip
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|(?P<sign>\S))")
_VARIABLE = re.compile(r"[xX]([1-9][0-9]*)")


def _wrong(text: str, position: int, what: str) -> NoReturn:
    shown = text if len(text) <= 60 else f"{text[max(0, position - 30) : position + 30]}"
    raise ValueError(
        f"text must be a formula such as '(x1 & x2) | ~x3', got {shown!r}: {what} at position "
        f"{position + 1}. Variables are x1, x2, ...; operators are ~ & ^ | (or not, and, xor, or), "
        "the tightest first."
    )


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Kind, position and (of variables) the index of each token."""
    tokens = []
    end = len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None  # there is something that is not blank before `end`
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
            _wrong(text, start, f"{token!r}, though the first variable is x1,")
        else:
            _wrong(text, start, f"{token!r} is not understood")
    return tokens


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Read a formula with operators between their operands."""
    gates: list[Gate] = []
    operands: list[int] = []  # gates that wait for their operator
    waiting: list[tuple[str, int]] = []  # operators and brackets that wait for their operand

    def apply(operator: str) -> None:
        right = operands.pop()
        if operator == "not":
            gates.append(("not", right, -1))
        else:
            gates.append((operator, operands.pop(), right))
        operands.append(len(gates) - 1)

    operand_next = True
    for kind, position, index in _tokens(text):
        if operand_next != (kind in {"var", "not", "("}):
            match = _TOKEN.match(text, position)
            found = match[0] if match else ""
            wanted = "a variable" if operand_next else "an operator"
            _wrong(text, position, f"{wanted} is wanted but {found!r} stands")
        if kind == "var":
            gates.append(("var", index, -1))
            operands.append(len(gates) - 1)
            operand_next = False
        elif kind in {"not", "("}:
            waiting.append((kind, position))
        elif kind == ")":
            while waiting and waiting[-1][0] != "(":
                apply(waiting.pop()[0])
            if not waiting:
                _wrong(text, position, "a bracket closes that was not opened")
            waiting.pop()
        else:
            while waiting and _BINDING.get(waiting[-1][0], 0) >= _BINDING[kind]:
                apply(waiting.pop()[0])
            waiting.append((kind, position))
            operand_next = True
    if operand_next:
        _wrong(text, len(text), "a variable is wanted but the text ends")
    while waiting:
        operator, position = waiting.pop()
        if operator == "(":
            _wrong(text, position, "a bracket is not closed, opened")
        apply(operator)
    return tuple(gates)


def gates_from_expr(expr: Any) -> tuple[Gate, ...]:
    """Read nested prefix lists such as ``["and", ["var", 0], ["not", ["var", 1]]]``."""
    gates: list[Gate] = []
    operands: list[int] = []
    agenda: list[tuple[Any, bool]] = [(expr, False)]
    while agenda:
        part, children_done = agenda.pop()
        operator, count = _checked_part(part)
        if operator == "var":
            operands.append(len(gates))
            gates.append(("var", int(part[1]), -1))
        elif not children_done:
            agenda.append((part, True))
            agenda.extend((child, False) for child in reversed(part[1:]))
        else:
            right = operands.pop()
            pair = (right, -1) if count == 1 else (operands.pop(), right)
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
    shown = repr(part)
    raise ValueError(
        "expr must be ['var', index >= 0], ['not', expr] or ['and' | 'or' | 'xor', left, right], "
        f"got {shown if len(shown) <= 80 else shown[:77] + '...'}. Nest operators of two operands: "
        "['and', ['and', a, b], c]."
    )


def gates_to_expr(gates: Sequence[Gate]) -> list[Any]:
    """Write nested prefix lists."""
    written: list[list[Any]] = []
    for operator, left, right in gates:
        if operator == "var":
            written.append(["var", left])
        elif operator == "not":
            written.append(["not", written[left]])
        else:
            written.append([operator, written[left], written[right]])
    return written[-1]


def gates_to_text(gates: Sequence[Gate]) -> str:
    """Write operators between their operands, with brackets wherever two kinds of them meet."""
    pieces: list[str] = []
    agenda: list[int | str] = [len(gates) - 1]
    while agenda:
        item = agenda.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        operator, left, right = gates[item]
        if operator == "var":
            pieces.append(f"x{left + 1}")
        elif operator == "not":
            pieces.append("~")
            agenda.extend(_bracketed(left, gates[left][0] in BINARY))
        else:
            # A chain of one operator reads from the left, so only its left end needs no bracket.
            parts = [
                *_bracketed(right, gates[right][0] in BINARY),
                f" {_SIGNS[operator]} ",
                *_bracketed(left, gates[left][0] in BINARY and gates[left][0] != operator),
            ]
            agenda.extend(parts)
    return "".join(pieces)


def _bracketed(gate: int, needed: bool) -> list[int | str]:
    return [")", gate, "("] if needed else [gate]
