"""Scores of rule sets: one :class:`ScoreSpec` per score, from which everything else is derived.

NumPy functions, scorers, pruning, searches, benchmarks, survival scores, the command line and the
report page use :data:`SCORE_SPECS`. To add a built-in score, add one entry there. The module is
cheap to import, so that the command line can show the scores before NumPy is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skescore._names import PREDICTION_METRIC_NAMES
from skescore._text import did_you_mean

__all__ = [
    "COMPLETENESSES",
    "ICE_PERFORMANCE",
    "ICE_READABILITY",
    "SCORE_SPECS",
    "UNCOVERED",
    "Expression",
    "ScoreSpec",
    "Variable",
    "Weight",
    "all_weights",
    "evaluate_formula",
    "find_score",
]


#: Relative tolerance, in units in the last place, within which a quotient counts as an integer. It
#: exceeds the rounding errors of quotients, and is far below half a step up to 1e13 steps.
_STEP_TOLERANCE_ULPS = 32
#: Binary operators: precedence and notation.
_OPERATORS = {"+": (1, " + "), "-": (1, " − "), "*": (2, " · "), "/": (2, " / "), "**": (3, "^")}
#: Functions of one argument, with the notation; ``{}`` is the argument.
_FUNCTIONS = {
    "ceil": "⌈{}⌉",
    "exp": "e^({})",
    "log": "ln({})",
    "log2": "log₂({})",
    "falling_sigmoid": "1 / (1 + e^({}))",
    "slope_of_ceil": "d⌈{}⌉",
}
_ATOM = 4


class Expression:
    """Formula of a score; create one with operators on :class:`Variable`.

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
        """Round up to an integer, after removing rounding errors."""
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

    def derivative(self, variable: str) -> Expression:
        """Return the partial derivative with respect to a variable.

        The derivative of a ceiling is 0, and undefined (NaN) where it jumps.
        """
        raise NotImplementedError

    def to_json(self) -> Any:
        """Return nested lists of operators and functions, names of variables and numbers."""
        raise NotImplementedError

    def to_text(self, symbols: Mapping[str, str] | None = None) -> str:
        """Return the formula as text, with other symbols for some of the variables."""
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

    def derivative(self, variable: str) -> Expression:
        return _Constant(0.0)

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
        ``"p"`` for the loss or performance, ``"r"`` for the size, ``"c"`` for the
        completeness, or the name of a weight.
    """

    name: str

    @cached_property
    def variables(self) -> frozenset[str]:
        """Set with the name of this variable only."""
        return frozenset([self.name])

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the variable."""
        return values[self.name]

    def derivative(self, variable: str) -> Expression:
        """Return 1 for the variable itself, otherwise 0."""
        return _Constant(float(variable == self.name))

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

    def derivative(self, variable: str) -> Expression:
        left, right = self.left.derivative(variable), self.right.derivative(variable)
        match self.operator:
            case "+" | "-":
                return _Operation(self.operator, left, right)
            case "*":
                return left * self.right + self.left * right
            case "/":
                return left / self.right - self.left * right / (self.right * self.right)
        if variable not in self.right.variables:
            return self.right * self.left ** (self.right - 1.0) * left
        return self * (right * self.left.log() + self.right * left / self.left)

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
        if self.name == "slope_of_ceil":
            return np.where(_is_whole(np.asarray(argument)), np.nan, 0.0)
        if self.name == "falling_sigmoid":
            from scipy.special import expit

            return np.asarray(expit(-argument))
        return getattr(np, self.name)(argument)

    def derivative(self, variable: str) -> Expression:
        argument, slope = self.argument, self.argument.derivative(variable)
        if variable not in argument.variables:
            return _Constant(0.0)
        match self.name:
            case "ceil":
                return _Function("slope_of_ceil", argument) * slope
            case "exp":
                return self * slope
            case "log" | "log2":
                return slope / (argument * (1.0 if self.name == "log" else math.log(2.0)))
            case "falling_sigmoid":
                return (0.0 - slope) * (self * (0.0 - argument).falling_sigmoid())
        raise ValueError(f"The derivative of {self.name!r} is not available.")

    def to_json(self) -> list[Any]:
        return [self.name, self.argument.to_json()]

    def _text(self, symbols: Mapping[str, str]) -> tuple[str, int]:
        text = _FUNCTIONS[self.name].format(self.argument.to_text(symbols))
        return text, _OPERATORS["/"][0] if self.name == "falling_sigmoid" else _ATOM


def _expression(value: Any) -> Expression:
    """Convert a number to a constant; return expressions unchanged."""
    return value if isinstance(value, Expression) else _Constant(float(value))


def _ceil(value: Any, expression: Expression, values: Mapping[str, Any]) -> Any:
    """Round up after removing rounding errors."""
    import numpy as np

    numbers = np.asarray(value)
    if not np.isfinite(numbers).all():
        smallest = [f"{name}={np.min(values[name]):g}" for name in sorted(expression.variables)]
        raise ValueError(
            f"{expression.to_text()} must be a finite number, but it overflows for "
            f"{', '.join(smallest)}. Pass weights nearer to 1."
        )
    return np.where(_is_whole(numbers), np.rint(numbers), np.ceil(numbers))


def _is_whole(numbers: Any) -> Any:
    """Return a mask of the numbers that are integers up to rounding errors."""
    import numpy as np

    tolerance = _STEP_TOLERANCE_ULPS * np.finfo(np.float64).eps
    return np.abs(numbers - np.rint(numbers)) <= tolerance * np.abs(numbers)


#: Kinds of completeness: share of the domain's volume, or share of the rows.
COMPLETENESSES = ("volume", "instances")
#: Treatments of uncovered rows in a score.
UNCOVERED = ("ignore", "penalize")
_TASKS = ("classification", "regression")
#: Smallest size at which scores that are defined for any size above 0 are evaluated.
_ANY_SIZE = 1e-9
#: Domains of the arguments of formulas; the domain of the number of rules depends on the score.
_DOMAINS: dict[str, dict[str, Any]] = {
    "loss": {"low": 0.0},
    "performance": {"high": 1.0},
    "n_rules": {},
    "completeness": {"low": 0.0, "high": 1.0},
    "weight": {"low": 0.0, "strict": True},
}
#: Advice in error messages, by argument.
_REMEDIES = {
    "loss": "Pass an error such as 1 - accuracy or the mean absolute error, not a score.",
    "performance": "Pass a score whose best value is 1, such as accuracy, F1 or R2.",
    "n_rules": "A rule set without rules has no score: omit it or score it separately.",
    "completeness": "Pass a share, not a percentage: 0.39 for 39 %.",
    "weight": "Pass 1.0 for a neutral weight.",
}


@dataclass(frozen=True)
class Weight:
    """A weight of a score, any number above 0.

    Parameters
    ----------
    name : str
        Keyword of the weight, and its variable in the formula.
    text : str, default=""
        Meaning of the weight, for help texts.
    symbol : str, optional
        Notation in formulas; by default its name.
    default : float, default=1.0
        Neutral value.
    direction : {1, -1, 0}, default=0
        1 if larger values favor better predictions, -1 if they favor fewer rules, 0 if neither.
    within : tuple of (float, float), default=(0.1, 10.0)
        Default range in plots and analyses of the weights.
    """

    name: str
    text: str = ""
    symbol: str = ""
    default: float = 1.0
    direction: int = 0
    within: tuple[float, float] = (0.1, 10.0)


@dataclass(frozen=True)
class ScoreSpec:
    """A score of rule sets: a formula over prediction, size and completeness.

    Parameters
    ----------
    name : str
        Name of the score, such as ``"fire"``.
    formula : Expression or callable
        Expression over :class:`Variable` ``"p"`` (the loss or performance), ``"r"`` (the size),
        ``"c"`` (the completeness) and the names of the weights; or ``formula(prediction, size,
        completeness, **weights)``, without ``completeness`` for a score that does not use it. A
        callable accepts floats and arrays. The score must not improve with a worse prediction, a
        larger size or less completeness. Report pages compute an expression for any weights, but
        show only the recorded values of a callable.
    greater_is_better : bool
        Whether larger values are better. Scorers negate the other scores.
    prediction : {"loss", "performance"}
        Measure of the prediction: 0 is the best loss, 1 the best performance.
    metrics : dict of str to str
        Default metric by task, a name of :data:`skescore.metrics.PREDICTION_METRICS`.
    uses_completeness : bool, optional
        Whether the formula uses completeness. By default inferred from an expression, and True for
        a callable.
    weights : tuple of Weight, default=()
        Weights of the score in display order.
    uncovered : {"ignore", "penalize"}, default="ignore"
        Default treatment of uncovered rows.
    label : str, optional
        Name in texts; by default `name`.
    kept_as : str, optional
        Column in which searches and benchmarks store the measure of the prediction; by default
        ``"loss_NAME"`` or ``"performance_NAME"``.
    text : str, optional
        Formula for readers, with p, r and c; by default derived from an expression.
    least_size : float, default=0.0
        Smallest size for which the score is defined; 0 for any size above 0.

    Raises
    ------
    ValueError
        If a name is unknown, or the score of perfect rules is not a number.

    Examples
    --------
    >>> from skescore.scorers import ScoreSpec, Variable
    >>> brief = ScoreSpec(
    ...     "brief", Variable("p") + 0.01 * Variable("r"), greater_is_better=False,
    ...     prediction="loss",
    ...     metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
    ... )
    >>> brief.scorer_name, brief.kept_as, brief.text
    ('neg_brief', 'loss_brief', 'p + 0.01 · r')
    """

    name: str
    formula: Expression | Callable[..., Any]
    greater_is_better: bool
    prediction: str
    metrics: Mapping[str, str]
    uses_completeness: bool | None = None
    weights: tuple[Weight, ...] = ()
    uncovered: str = "ignore"
    label: str = ""
    kept_as: str = ""
    text: str = ""
    least_size: float = 0.0

    def __post_init__(self) -> None:
        for name, choices in (("prediction", ("loss", "performance")), ("uncovered", UNCOVERED)):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
        for task in _TASKS:
            usable = [
                name
                for name, metric in PREDICTION_METRIC_NAMES.items()
                if metric.task == task and (metric.greater_is_better or self.prediction == "loss")
            ]
            if self.metrics.get(task) not in usable:
                raise ValueError(
                    f"metrics[{task!r}] must be one of {', '.join(usable)} for "
                    f"prediction={self.prediction!r}, got {self.metrics.get(task)!r}."
                )
        derived: dict[str, Any] = {
            "label": self.label or self.name,
            "kept_as": self.kept_as or f"{self.prediction}_{self.name}",
        }
        if isinstance(self.formula, Expression):
            unknown = sorted(self.formula.variables - {"p", "r", "c", *self.weight_names})
            if unknown:
                raise ValueError(
                    f"formula must consist of p, r, c and the weights, got {unknown[0]!r}. Declare "
                    "it as a weight, or correct the name."
                )
            derived["uses_completeness"] = "c" in self.formula.variables
            symbols = {weight.name: weight.symbol or weight.name for weight in self.weights}
            derived["text"] = self.text or self.formula.to_text(symbols)
        elif self.uses_completeness is None:
            derived["uses_completeness"] = True
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.formula, Expression):
            self.check_weights({})

    @property
    def scorer_name(self) -> str:
        """Name of the scorer, for which greater is better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Names of the weights."""
        return tuple(weight.name for weight in self.weights)

    @property
    def expression(self) -> Expression | None:
        """The formula as an expression; None for a callable."""
        return self.formula if isinstance(self.formula, Expression) else None

    def metric(self, task: str, chosen: Any = "auto") -> Any:
        """Return the name of the metric for a task, or the callable that was chosen."""
        metric = self.metrics[task] if isinstance(chosen, str) and chosen == "auto" else chosen
        return metric.removeprefix("neg_") if isinstance(metric, str) else metric

    def value(
        self, prediction: Any, size: Any, completeness: Any, weights: Mapping[str, Any]
    ) -> Any:
        """Compute the score.

        Parameters
        ----------
        prediction, size, completeness : float or array-like
            Measured quantities, which broadcast against each other. `completeness` is ignored by a
            score that does not use it.
        weights : dict of str to float or array-like
            Weights by name; weights of other scores are ignored.

        Returns
        -------
        float or ndarray of float
            A Python float if all arguments are scalars, otherwise an array.

        Raises
        ------
        ValueError, TypeError
            If an argument is not a number in its domain, or the shapes do not broadcast.
        """
        chosen = {name: weights[name] for name in self.weight_names}
        if not isinstance(self.formula, Expression):
            share = (completeness,) if self.uses_completeness else ()
            return self.formula(prediction, size, *share, **chosen)
        arguments = self._arguments(prediction, size, completeness, chosen)
        return evaluate_formula(self.formula, arguments, self.least_size)

    def slopes(
        self, prediction: Any, size: Any, completeness: Any, weights: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Compute the partial derivatives of the score.

        Parameters
        ----------
        prediction, size, completeness, weights
            See :meth:`value`.

        Returns
        -------
        dict of str to float or ndarray
            Derivatives by argument: the prediction's name, ``"n_rules"``, ``"completeness"`` and
            the weights, as far as the score uses them.

        Raises
        ------
        TypeError
            If the formula is a function, whose derivatives are unknown.
        ValueError, TypeError
            If an argument is not a number in its domain, or the shapes do not broadcast.
        """
        if not isinstance(self.formula, Expression):
            raise TypeError(
                f"The formula of {self.name!r} is a function, which has no known slopes. Use an "
                "expression of skescore.scorers.Variable."
            )
        chosen = {name: weights[name] for name in self.weight_names}
        arguments = self._arguments(prediction, size, completeness, chosen)
        # The arguments are checked even if a derivative does not depend on them.
        zero = 0.0 * self.formula
        return {
            name: evaluate_formula(
                self.formula.derivative(variable) + zero, arguments, self.least_size
            )
            for variable, (name, _) in arguments.items()
            if variable in self.formula.variables
        }

    def _arguments(
        self, prediction: Any, size: Any, completeness: Any, weights: Mapping[str, Any]
    ) -> dict[str, tuple[str, Any]]:
        """Return name and value of each variable of the formula."""
        return {
            "p": (self.prediction, prediction),
            "r": ("n_rules", size),
            "c": ("completeness", completeness),
            **{name: (name, weight) for name, weight in weights.items()},
        }

    @property
    def sign(self) -> float:
        """1 if greater is better, -1 if smaller is better."""
        return 1.0 if self.greater_is_better else -1.0

    def signed(self, value: Any) -> Any:
        """Negate the value if smaller is better, so that greater is better."""
        return value if self.greater_is_better else -value

    def best(self, weights: Mapping[str, Any], *, any_size: bool = False) -> float:
        """Compute the score of perfect rules with one rule, or with the smallest possible size."""
        size = max(self.least_size, _ANY_SIZE) if any_size else 1.0
        return float(self.value(0.0 if self.prediction == "loss" else 1.0, size, 1.0, weights))

    def parts(self, completeness: str = "volume") -> tuple[str, ...]:
        """Return the names of the stored columns from which the score is computed."""
        share = (f"completeness_{completeness}",) if self.uses_completeness else ()
        return self.kept_as, "size", *share

    def of_parts(
        self, parts: Mapping[str, Any], weights: Mapping[str, Any], completeness: str = "volume"
    ) -> Any:
        """Compute the score from stored columns, see :meth:`parts`."""
        import numpy as np

        share = parts[f"completeness_{completeness}"] if self.uses_completeness else None
        return np.asarray(self.value(parts[self.kept_as], parts["size"], share, weights))

    def check_weights(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """Check the given weights, and add the defaults of other weights.

        Parameters
        ----------
        weights : dict of str to float
            Weights by name.

        Returns
        -------
        dict of str to float
            All weights of the score.

        Raises
        ------
        TypeError
            If the score has no such weight.
        ValueError
            If a weight is out of range, or the score of perfect rules is not a finite number.
        """
        unknown = sorted(set(weights) - set(self.weight_names))
        if unknown:
            hint = did_you_mean(unknown[0], self.weight_names) if self.weights else "It has none."
            raise TypeError(f"{self.label} has no weight {unknown[0]!r}. {hint}")
        complete = {w.name: weights.get(w.name, w.default) for w in self.weights}
        best = self.best(complete)
        if not math.isfinite(best):
            raise ValueError(f"formula must give a finite number for perfect rules, got {best!r}.")
        return complete


def evaluate_formula(
    formula: Expression, arguments: Mapping[str, tuple[str, Any]], least_size: float = 0.0
) -> Any:
    """Evaluate an expression after checking that every argument lies in its domain.

    Parameters
    ----------
    formula : Expression
        The expression.
    arguments : dict of str to tuple of (str, value)
        Name in messages and value of each variable; variables that do not occur are ignored.
    least_size : float, default=0.0
        Smallest allowed size; 0 for any size above 0.

    Returns
    -------
    float or ndarray of float
        A Python float if all arguments are scalars, otherwise an array.
    """
    import numpy as np

    from skescore._validation import as_numbers, check_shapes, plain

    used = formula.variables
    values = {}
    for variable, (name, value) in arguments.items():
        if variable in used:
            kind = name if name in _DOMAINS else "weight"
            domain = _DOMAINS[kind]
            if kind == "n_rules":
                domain = {"low": least_size, "strict": least_size == 0.0}
            values[variable] = as_numbers(name, value, **domain, remedy=_REMEDIES[kind])
    check_shapes(**{arguments[variable][0]: value for variable, value in values.items()})
    # If an exponent overflows, the sigmoid is 0; an undefined score is NaN.
    with np.errstate(all="ignore"):
        return plain(np.asarray(formula.evaluate(values)))


_p, _r, _c = Variable("p"), Variable("r"), Variable("c")
#: Factors of ICE. 5 multiplies the difference: 5 φ may be infinite, and times 1 - p = 0 it is NaN.
ICE_PERFORMANCE = (5.0 * (Variable("phi") * (1.0 - _p) - 1.0)).falling_sigmoid()
ICE_READABILITY = (0.3 * (Variable("rho") * _r) - 5.0).falling_sigmoid()

#: Built-in and registered scores by name.
SCORE_SPECS: dict[str, ScoreSpec] = {
    spec.name: spec
    for spec in (
        ScoreSpec(
            "ice",
            ICE_PERFORMANCE * ICE_READABILITY * _c,
            greater_is_better=True,
            prediction="performance",
            metrics={"classification": "f1_weighted", "regression": "r2"},
            weights=(
                Weight("phi", "importance of performance", "φ", direction=1),
                Weight("rho", "importance of few rules", "ρ", direction=-1),
            ),
            label="ICE",
            kept_as="performance",
        ),
        ScoreSpec(
            "fire",
            _p * (_r / Variable("psi")).ceil() * _r**0.05,
            greater_is_better=False,
            prediction="loss",
            metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
            weights=(
                Weight(
                    "psi",
                    "divisor of the number of rules; the quotient is rounded up",
                    "ψ",
                    direction=1,
                    within=(0.1, 100.0),
                ),
            ),
            uncovered="penalize",
            label="FiRe",
            kept_as="loss",
            least_size=1.0,
        ),
        ScoreSpec(
            "q",
            _p * _r * (2.0 - _c),
            greater_is_better=False,
            prediction="loss",
            metrics={"classification": "f1_weighted", "regression": "mean_absolute_error"},
            label="Q",
        ),
    )
}


def find_score(score: str | ScoreSpec) -> ScoreSpec:
    """Find a score by its name; return a :class:`ScoreSpec` unchanged.

    Parameters
    ----------
    score : str or ScoreSpec
        A name in :data:`SCORE_SPECS`, or a user-defined score.

    Returns
    -------
    ScoreSpec
        The score.

    Raises
    ------
    ValueError
        If there is no score of that name.

    Examples
    --------
    >>> from skescore.scorers import find_score
    >>> find_score("fire").weight_names
    ('psi',)
    """
    if isinstance(score, ScoreSpec):
        return score
    spec = SCORE_SPECS.get(score) if isinstance(score, str) else None
    if spec is None:
        raise ValueError(f"score must be one of {list(SCORE_SPECS)}, got {score!r}.")
    return spec


def all_weights(chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the weights of all scores: the chosen weights, and defaults for the others.

    Parameters
    ----------
    chosen : dict of str to float, optional
        Given weights by name.

    Returns
    -------
    dict of str to float
        All weights by name.

    Raises
    ------
    TypeError
        If no score has such a weight.

    Examples
    --------
    >>> from skescore.scorers import all_weights
    >>> all_weights({"psi": 3.0})
    {'phi': 1.0, 'rho': 1.0, 'psi': 3.0}
    """
    defaults = {w.name: w.default for spec in SCORE_SPECS.values() for w in spec.weights}
    unknown = sorted(set(chosen or {}) - set(defaults))
    if unknown:
        hint = did_you_mean(unknown[0], defaults)
        raise TypeError(f"No score has a weight {unknown[0]!r}. {hint}")
    return defaults | dict(chosen or {})
