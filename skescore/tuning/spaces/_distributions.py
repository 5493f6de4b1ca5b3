"""Single distributions of Optuna: asked, checked, fixed, and as values for other searches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy import stats
from sklearn.utils import check_random_state


class WholeLogUniform:
    """Whole numbers whose logarithms are uniform, for random searches.

    Parameters
    ----------
    low, high : int
        Smallest and largest number, at least 1.

    Notes
    -----
    As Optuna does, a number k stands for the interval from k - 1/2 to k + 1/2.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw numbers.

        Parameters
        ----------
        size : int or tuple of int, optional
            How many; None for one.
        random_state : int, RandomState instance or None, default=None
            Where randomness comes from.

        Returns
        -------
        int or ndarray of int
            The numbers.
        """
        random = check_random_state(random_state)
        logs = random.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5), size=size)
        drawn = np.clip(np.rint(np.exp(logs)), self.low, self.high).astype(int)
        return int(drawn) if size is None else drawn

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.low}, {self.high})"


def suggest_value(trial: optuna.trial.BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for one value.

    Parameters
    ----------
    trial : optuna.trial.BaseTrial
        The trial.
    name : str
        The parameter.
    distribution : optuna distribution
        Its range.

    Returns
    -------
    None, bool, int, float or str
        The value.
    """
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    if isinstance(d, FloatDistribution):
        return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    check_distribution(name, distribution)
    raise TypeError(f"space[{name!r}] is of a kind that cannot be asked for: {distribution!r}.")


def check_distribution(name: str, distribution: Any) -> None:
    """Raise a TypeError unless what a space holds under a name is a distribution."""
    if not isinstance(distribution, BaseDistribution):
        raise TypeError(
            f"space[{name!r}] must be an Optuna distribution, got {distribution!r}. Import "
            "them from optuna.distributions."
        )


def is_among(value: Any, values: Iterable[Any]) -> bool:
    """Whether a value is one of several; True is 1 for Python, but not for a reader."""
    return any(v == value and isinstance(v, bool) == isinstance(value, bool) for v in values)


def lies_in(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a distribution can give a value: of its kind, in its range and on its steps."""
    if isinstance(distribution, CategoricalDistribution):
        return is_among(value, distribution.choices)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return False
    whole = isinstance(distribution, IntDistribution)
    if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
        return False
    number = float(value)
    if not distribution.low <= number <= distribution.high:
        return False
    if distribution.step is None:
        return True
    steps = (number - distribution.low) / distribution.step
    return math.isclose(steps, round(steps), abs_tol=1e-8)


def only(name: str, before: BaseDistribution | None, value: Any) -> BaseDistribution:
    """Make a distribution of one value, of the kind that the parameter has so far."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):
        raise ValueError(f"{name} must be fixed to a finite number, got {value!r}.")
    if is_number and not isinstance(before, CategoricalDistribution):
        if isinstance(value, Integral) and not isinstance(before, FloatDistribution):
            return IntDistribution(int(value), int(value))
        return FloatDistribution(float(value), float(value))
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"{name} must be fixed to a number, text, True, False or None, got {value!r}; set "
            "anything else on an extractor and pass that to ExtractorObjective."
        )
    return CategoricalDistribution((value,))


# --- for other searches --------------------------------------------------------------------------


def grid_values(distribution: BaseDistribution, n_values: int) -> list[Any]:
    """Some values of a distribution, evenly on its scale; of choices all.

    Parameters
    ----------
    distribution : optuna distribution
        The range.
    n_values : int
        How many of a number.

    Returns
    -------
    list
        Different values, in increasing order.
    """
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    d = _numeric(distribution)
    space_out = np.geomspace if d.log else np.linspace
    values = space_out(d.low, d.high, n_values) if n_values > 1 else [_middle(d)]
    step = 1 if isinstance(d, IntDistribution) and d.log else d.step
    if step is not None:
        values = d.low + np.rint((np.asarray(values) - d.low) / step) * step
        values = np.minimum(values, d.high)
    kind = int if isinstance(d, IntDistribution) else float
    return list(dict.fromkeys(kind(value) for value in values))


def random_values(distribution: BaseDistribution) -> Any:
    """What a random search draws from: a distribution as of SciPy, or a list.

    Parameters
    ----------
    distribution : optuna distribution
        The range.

    Returns
    -------
    list, or an object with ``rvs``
        The same range on the same scale.
    """
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    d = _numeric(distribution)
    if d.low == d.high:
        return [d.low]
    if isinstance(d, IntDistribution):
        if d.log:
            return WholeLogUniform(d.low, d.high)
        return stats.randint(d.low, d.high + 1) if d.step == 1 else all_values(d)
    if d.step is not None:
        n_steps = round((d.high - d.low) / d.step)
        return [min(d.low + k * d.step, d.high) for k in range(n_steps + 1)]
    return stats.loguniform(d.low, d.high) if d.log else stats.uniform(d.low, d.high - d.low)


def _middle(d: IntDistribution | FloatDistribution) -> float:
    return math.sqrt(d.low) * math.sqrt(d.high) if d.log else (d.low + d.high) / 2


def _numeric(distribution: BaseDistribution) -> IntDistribution | FloatDistribution:
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise TypeError(f"A space must hold Optuna distributions, got {distribution!r}.")
    return distribution


def all_values(distribution: BaseDistribution) -> list[Any]:
    """List all values of a choice or a whole number, which alone others wait for."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if not isinstance(distribution, IntDistribution):
        raise ValueError(f"Others can only wait for a choice or whole number: {distribution!r}.")
    return list(range(distribution.low, distribution.high + 1, distribution.step))
