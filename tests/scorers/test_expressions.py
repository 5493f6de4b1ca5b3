"""Expression trees of formulas: values, texts and JSON."""

from __future__ import annotations

import numpy as np
import pytest

from skescore.scorers import SCORE_SPECS, Variable

P, R, C = Variable("p"), Variable("r"), Variable("c")


@pytest.mark.parametrize(
    ("expression", "text", "value"),
    [
        (P - (R - C), "p − (r − c)", 0.5 - (3.0 - 0.25)),
        ((P - R) - C, "p − r − c", 0.5 - 3.0 - 0.25),
        (P / (R * C), "p / (r · c)", 0.5 / (3.0 * 0.25)),
        ((P + R) * C, "(p + r) · c", 3.5 * 0.25),
        ((-1.0 * P) ** 2, "(−1 · p)^2", 0.25),
        (2 ** (R + 1), "2^(r + 1)", 16.0),
        (1 / R + 2 * C, "1 / r + 2 · c", 1 / 3.0 + 0.5),
        ((R / 2).ceil(), "⌈r / 2⌉", 2.0),
        (1 - P.exp(), "1 − e^(p)", 1 - np.exp(0.5)),
        (P.log() + C.log2(), "ln(p) + log₂(c)", np.log(0.5) - 2.0),
        (C * (R - 3).falling_sigmoid(), "c · 1 / (1 + e^(r − 3))", 0.125),
    ],
)
def test_expression_has_text_and_value(expression, text, value) -> None:
    assert expression.to_text() == text
    assert float(expression.evaluate({"p": 0.5, "r": 3.0, "c": 0.25})) == pytest.approx(value)


def test_expression_ceil_removes_float_noise() -> None:
    steps = (R / Variable("psi")).ceil()
    assert float(steps.evaluate({"r": 21.0, "psi": 0.7})) == 30.0  # 21 / 0.7 > 30 in floats
    assert float(steps.evaluate({"r": 21.001, "psi": 0.7})) == 31.0


def test_expression_json_evaluates_like_python() -> None:
    functions = {
        "ceil": lambda x: np.ceil(x - 1e-9),
        "falling_sigmoid": lambda x: 1 / (1 + np.exp(x)),
    }
    operators = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "**": np.power,
    }

    def value(tree):
        if isinstance(tree, str):
            return values[tree]
        if isinstance(tree, float):
            return tree
        return (functions | operators)[tree[0]](*map(value, tree[1:]))

    values = {"p": 0.7, "r": 5.0, "c": 0.9, "phi": 1.5, "rho": 0.8, "psi": 2.0}
    for spec in SCORE_SPECS.values():
        expected = spec.value(values["p"], values["r"], values["c"], values)
        assert value(spec.expression.to_json()) == pytest.approx(expected, rel=1e-14)
