"""A search space: hyper-parameters, their ranges, and which of them matter when."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping
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
from sklearn.base import clone
from sklearn.utils import check_random_state

from skescore._text import did_you_mean

Space = dict[str, BaseDistribution]
_Conditions = Mapping[str, Mapping[str, Iterable[Any]]]
#: By parameter the values that are left in a branch; None stands for the whole range.
_Branch = dict[str, list[Any] | None]
_HEAD = ("parameter", "values", "scale", "active if")


class SearchSpace(dict[str, BaseDistribution]):
    """Hyper-parameters to search: Optuna distributions by name, some active under conditions only.

    A dict, so that whatever takes a plain dict of distributions takes it; :func:`search_space`
    gives one for every registered extractor. Change it by :meth:`with_`, :meth:`without`,
    :meth:`fixed` and :meth:`when`, which give a changed copy, or as a dict.

    Parameters
    ----------
    distributions : mapping of str to optuna distribution, default=()
        The ranges, in the order in which they are shown.
    conditions : mapping of str to mapping, optional
        For a parameter, the values of other parameters with which alone it is active:
        ``{"threshold": {"depth": (2, 3)}}``. All must hold.
    title : str, default=""
        What the space is for; shown above it.

    Raises
    ------
    TypeError
        If something is no distribution, or conditions are no mappings.
    ValueError
        If a condition names what is not in the space, or parameters wait for each other.

    Notes
    -----
    Values in conditions are compared by ``==``. A parameter whose condition names one that has
    been taken out of the space is active whatever that one is. A parameter that depends on one
    that is not active is not active either.

    Examples
    --------
    >>> from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    >>> space = SearchSpace(
    ...     {"depth": IntDistribution(1, 3), "threshold": FloatDistribution(0.01, 0.5, log=True)},
    ...     conditions={"threshold": {"depth": (2, 3)}},
    ... )
    >>> print(space.with_(prune=CategoricalDistribution([None, "ice"])))
    parameter  values       scale   active if
    depth      1 to 3       linear
    threshold  0.01 to 0.5  log     depth is 2 or 3
    prune      None, 'ice'  choice
    >>> space.param_grid(n_values=2)
    [{'depth': [1]}, {'depth': [3], 'threshold': [0.01, 0.5]}]
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution] | Iterable[tuple[str, Any]] = (),
        *,
        conditions: _Conditions | None = None,
        title: str = "",
    ) -> None:
        super().__init__(distributions)
        self.title = title
        for name, distribution in self.items():
            _check_distribution(name, distribution)
        self._conditions: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name, wanted in (conditions or {}).items():
            if not isinstance(wanted, Mapping):
                raise TypeError(
                    f"conditions[{name!r}] must be a mapping of parameters to values, such as "
                    f"{{'depth': (2, 3)}}, got {wanted!r}."
                )
            for other, values in wanted.items():
                self._add_condition(name, other, values)

    @property
    def conditions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """By parameter, the values of others with which alone it is active."""
        found = {
            name: {other: values for other, values in wanted.items() if other in self}
            for name, wanted in self._conditions.items()
            if name in self
        }
        return {name: wanted for name, wanted in found.items() if wanted}

    def is_active(self, name: str, params: Mapping[str, Any]) -> bool:
        """Return whether a parameter is active, given others.

        Parameters
        ----------
        name : str
            A parameter of the space.
        params : mapping of str to value
            The parameters that it may depend on.

        Returns
        -------
        bool
            False if one of its conditions does not hold.
        """
        return all(
            other in params and _is_among(params[other], values)
            for other, values in self.conditions.get(name, {}).items()
        )

    def active(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Give the parameters of the space that are active; the others change nothing.

        Parameters
        ----------
        params : mapping of str to value
            Parameters, of which some may not matter with the values of others.

        Returns
        -------
        dict of str to value
            Those that do.
        """
        kept: dict[str, Any] = {}
        for name in self._parents_first():
            if name in params and self.is_active(name, kept):
                kept[name] = params[name]
        return {name: kept[name] for name in params if name in kept}

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Return whether parameters lie in the space, conditions apart.

        Parameters
        ----------
        params : mapping of str to value
            Some parameters of the space, or all.

        Returns
        -------
        bool
            False if one is not in the space or out of its range, or off its steps.
        """
        return all(name in self and _lies_in(self[name], v) for name, v in params.items())

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """Draw the active hyper-parameters from a trial.

        Parameters
        ----------
        trial : optuna.trial.BaseTrial
            The trial.

        Returns
        -------
        dict of str to value
            What the trial suggests, in the order of the space.

        Raises
        ------
        TypeError
            If something in the space is no distribution.
        ValueError
            If parameters wait for each other.
        """
        params: dict[str, Any] = {}
        for name in self._parents_first():
            if self.is_active(name, params):
                params[name] = _suggest(trial, name, self[name])
        return {name: params[name] for name in self if name in params}

    def copy(self) -> SearchSpace:
        """Give a copy that can be changed by itself."""
        return SearchSpace(self, conditions=self.conditions, title=self.title)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        conditions = self.conditions | getattr(other, "conditions", {})
        return SearchSpace({**self, **other}, conditions=conditions, title=self.title)

    def with_(self, **distributions: BaseDistribution) -> SearchSpace:
        """Give a copy with other ranges, or with more parameters.

        Parameters
        ----------
        **distributions : optuna distribution
            By name. Conditions stay.

        Returns
        -------
        SearchSpace
            The copy.
        """
        return self | distributions

    def without(self, *names: str) -> SearchSpace:
        """Give a copy without some parameters, which the extractor then keeps as they are.

        Parameters
        ----------
        *names : str
            The parameters.

        Returns
        -------
        SearchSpace
            The copy.
        """
        for name in names:
            self._check_known(name)
        result = self.copy()
        for name in set(names):
            del result[name]
        return result

    def fixed(self, **values: Any) -> SearchSpace:
        """Give a copy in which some parameters have one value.

        Parameters
        ----------
        **values : int, float, bool, str or None
            By name; new parameters may be among them. They are still part of every candidate.

        Returns
        -------
        SearchSpace
            The copy.
        """
        return self.with_(**{n: _only(n, self.get(n), value) for n, value in values.items()})

    def when(self, name: str, /, **values: Any) -> SearchSpace:
        """Give a copy in which a parameter is active under a further condition only.

        Parameters
        ----------
        name : str
            The parameter.
        **values : sequence of values
            By parameter, the values with which alone `name` is active, in place of earlier ones.

        Returns
        -------
        SearchSpace
            The copy.
        """
        result = self.copy()
        for other, wanted in values.items():
            result._add_condition(name, other, wanted)
        return result

    def param_grid(
        self, n_values: int = 3, *, prefix: str = ""
    ) -> dict[str, list[Any]] | list[dict[str, list[Any]]]:
        """Give the grid for ``GridSearchCV`` and ``HalvingGridSearchCV``.

        Parameters
        ----------
        n_values : int, default=3
            Values per numeric parameter, at least 1: both ends and others evenly between them, on
            the parameter's own scale; 1 takes the middle. Whole numbers are rounded, equal ones
            given once. Of choices all are taken.
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict or list of dict
            Values by parameter. Where there are conditions, one dict per combination of them, so
            that no two candidates differ in what does not matter.
        """
        if isinstance(n_values, bool) or not isinstance(n_values, Integral) or n_values < 1:
            raise ValueError(f"n_values must be an integer of at least 1, got {n_values!r}.")

        def values(distribution: BaseDistribution) -> list[Any]:
            return _grid_values(distribution, int(n_values))

        return self._by_branch(prefix, values, values)

    def param_distributions(self, *, prefix: str = "") -> dict[str, Any] | list[dict[str, Any]]:
        """Give distributions for ``RandomizedSearchCV`` and ``HalvingRandomSearchCV``.

        Parameters
        ----------
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict or list of dict
            By parameter a distribution as of SciPy, log-uniform where the scale is, or a list of
            choices. Where there are conditions, one dict per combination of them, of which
            scikit-learn takes each equally often.
        """
        return self._by_branch(prefix, _all_values, _random_values)

    def distributions(self, *, prefix: str = "") -> dict[str, BaseDistribution]:
        """Give a plain dict of Optuna's distributions, as for ``OptunaSearchCV``.

        Parameters
        ----------
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict of str to optuna distribution
            Conditions are lost: parameters are drawn even where they change nothing.
        """
        return {prefix + name: distribution for name, distribution in self.items()}

    def _by_branch(
        self,
        prefix: str,
        values_of: Callable[[BaseDistribution], list[Any]],
        shown: Callable[[BaseDistribution], Any],
    ) -> Any:
        """One dict per part of the space in which the same parameters are active."""
        conditions = self.conditions
        branches: list[_Branch] = [{}]
        for name in self._parents_first():
            waiting = [child for child, wanted in conditions.items() if name in wanted]
            grown = []
            for branch in branches:
                # All values of a parameter in a branch meet the same conditions.
                settled = {other: values[0] for other, values in branch.items() if values}
                if not self.is_active(name, settled):
                    grown.append(branch)
                elif not waiting:
                    grown.append(branch | {name: None})
                else:
                    alike: dict[tuple[bool, ...], list[Any]] = {}
                    for value in values_of(self[name]):
                        meets = tuple(_is_among(value, conditions[c][name]) for c in waiting)
                        alike.setdefault(meets, []).append(value)
                    grown += [branch | {name: values} for values in alike.values()]
            branches = grown
        found = [
            {
                prefix + name: shown(self[name]) if branch[name] is None else branch[name]
                for name in self
                if name in branch
            }
            for branch in branches
        ]
        return found if conditions else found[0]

    def __str__(self) -> str:
        rows = [_HEAD, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        if not self.conditions:
            widths, rows = widths[:-1], [row[:-1] for row in rows]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self.title, *lines] if self.title else lines)

    def __repr__(self) -> str:
        parts = []
        for name, values, scale, condition in self._rows():
            log = " (log)" if scale == "log" else ""
            parts.append(f"{name} {values}{log}" + (f" if {condition}" if condition else ""))
        title = f" of {self.title}" if self.title else ""
        return f"<{type(self).__name__}{title}: {'; '.join(parts) or 'empty'}>"

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        body = "".join(row(cells, "td") for cells in self._rows())
        return f"<table>{caption}<thead>{row(_HEAD, 'th')}</thead><tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, ...]]:
        conditions = self.conditions
        rows: list[tuple[str, ...]] = []
        for name, distribution in self.items():
            condition = " and ".join(
                f"{other} is {' or '.join(map(repr, values))}"
                for other, values in conditions.get(name, {}).items()
            )
            rows.append((name, *_values_and_scale(distribution), condition))
        return rows

    def _check_known(self, name: str) -> None:
        if name not in self:
            raise ValueError(f"There is no {name!r} in the space. {did_you_mean(name, self)}")

    def _add_condition(self, name: str, other: str, values: Any) -> None:
        self._check_known(name)
        self._check_known(other)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(
                f"The values of {other!r} with which {name!r} is active must be a sequence, "
                f"such as ({values!r},), got {values!r}."
            )
        if not isinstance(self[other], CategoricalDistribution | IntDistribution):
            raise ValueError(
                f"{name!r} can only wait for a choice or a whole number, but {other!r} is "
                f"{self[other]!r}."
            )
        self._conditions.setdefault(name, {})[other] = tuple(values)
        self._parents_first()  # raises if they wait for each other

    def _parents_first(self) -> list[str]:
        """The parameters, each after those that its conditions name."""
        waits_for = self.conditions
        order: list[str] = []

        def visit(name: str, waiting: tuple[str, ...]) -> None:
            if name in waiting:
                raise ValueError(
                    f"{name!r} is active only if {' and '.join(map(repr, waits_for[name]))} is, "
                    "and the other way round; take one of the conditions away."
                )
            if name not in order:
                for other in waits_for.get(name, ()):
                    visit(other, (*waiting, name))
                order.append(name)

        for name in self:
            visit(name, ())
        return order


def as_search_space(space: Mapping[str, BaseDistribution]) -> SearchSpace:
    """Make a search space of a plain dict of distributions.

    Parameters
    ----------
    space : mapping of str to optuna distribution
        A :class:`SearchSpace` is given back as it is.

    Returns
    -------
    SearchSpace
        The space.

    Raises
    ------
    TypeError
        If it is no mapping, or something in it is no distribution.

    Examples
    --------
    >>> as_search_space({"max_leaf_nodes": IntDistribution(2, 8)})
    <SearchSpace: max_leaf_nodes 2 to 8>
    """
    if isinstance(space, SearchSpace):
        return space
    if not isinstance(space, Mapping):
        raise TypeError(
            "space must be a dict of parameter names and Optuna distributions, such as "
            f"search_space('cart', X, y) gives, got {space!r}."
        )
    return SearchSpace(space)


def check_space(space: Space, extractor: Any) -> None:
    """Raise unless a space holds distributions of parameters that the extractor has."""
    known = set(extractor.get_params(deep=False)) - {"estimator"}
    unknown = {name for name in set(space) - known if not _takes(extractor, name)}
    if unknown:
        raise ValueError(
            f"space names {sorted(unknown)}, which {type(extractor).__name__} does not have; "
            f"its parameters are {sorted(known)}. The black box is fixed in a search of its rules."
        )
    for name, distribution in space.items():
        _check_distribution(name, distribution)


def _takes(extractor: Any, name: str) -> bool:
    """Whether a parameter that is not listed can be set: PSyKE's are listed once they are set."""
    if "__" in name or name == "estimator":
        return False
    try:
        clone(extractor).set_params(**{name: None})
    except ValueError:
        return False
    return True


class _WholeLogUniform:
    """Whole numbers whose logarithms are uniform, for random searches.

    As Optuna does, a number k stands for the interval from k - 1/2 to k + 1/2.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw numbers, as distributions of SciPy do."""
        random = check_random_state(random_state)
        logs = random.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5), size=size)
        drawn = np.clip(np.rint(np.exp(logs)), self.low, self.high).astype(int)
        return int(drawn) if size is None else drawn

    def __repr__(self) -> str:
        return f"WholeLogUniform({self.low}, {self.high})"


def _suggest(trial: optuna.trial.BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    """One value from a trial."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    if isinstance(d, FloatDistribution):
        return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    _check_distribution(name, distribution)
    raise TypeError(f"space[{name!r}] is of a kind that cannot be drawn from: {distribution!r}.")


def _check_distribution(name: str, distribution: Any) -> None:
    """Raise a TypeError unless what a space holds under a name is a distribution."""
    if not isinstance(distribution, BaseDistribution):
        raise TypeError(
            f"space[{name!r}] must be an Optuna distribution, got {distribution!r}. Import "
            "them from optuna.distributions."
        )


def _is_among(value: Any, values: Iterable[Any]) -> bool:
    """Whether a value is one of several; True is 1 for Python, but not for a reader."""
    return any(v == value and isinstance(v, bool) == isinstance(value, bool) for v in values)


def _lies_in(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a distribution can give a value: of its kind, in its range and on its steps."""
    if isinstance(distribution, CategoricalDistribution):
        return _is_among(value, distribution.choices)
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


def _only(name: str, before: BaseDistribution | None, value: Any) -> BaseDistribution:
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


def _grid_values(distribution: BaseDistribution, n_values: int) -> list[Any]:
    """Some values of a distribution, in order and evenly on its scale; of choices all."""
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


def _random_values(distribution: BaseDistribution) -> Any:
    """What a random search draws from: a distribution as of SciPy, or a list."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    d = _numeric(distribution)
    if d.low == d.high:
        return [d.low]
    if isinstance(d, IntDistribution):
        if d.log:
            return _WholeLogUniform(d.low, d.high)
        return stats.randint(d.low, d.high + 1) if d.step == 1 else _all_values(d)
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


def _all_values(distribution: BaseDistribution) -> list[Any]:
    """List all values of a choice or a whole number, which alone others wait for."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if not isinstance(distribution, IntDistribution):
        raise ValueError(f"Others can only wait for a choice or whole number: {distribution!r}.")
    return list(range(distribution.low, distribution.high + 1, distribution.step))


def _values_and_scale(distribution: BaseDistribution) -> tuple[str, str]:
    """A range in words, and how it is drawn from."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return ", ".join(map(repr, d.choices)), "choice"
    if not isinstance(d, IntDistribution | FloatDistribution):
        return repr(d), "choice"

    def number(value: float) -> str:
        return str(value) if isinstance(value, int) else f"{value:.4g}"

    if d.low == d.high:
        return number(d.low), "fixed"
    whole_step = isinstance(d, IntDistribution) and d.step == 1
    step = "" if whole_step or d.step is None else f" by {number(d.step)}"
    return f"{number(d.low)} to {number(d.high)}{step}", "log" if d.log else "linear"
