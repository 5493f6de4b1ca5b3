"""Search spaces of all extractors and the starting points of a search."""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

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
from skescore._validation import TASKS, check_choice, one_dimension
from skescore.registry import (
    PSYKE_EXTRACTORS,
    extractor_class,
    extractor_names,
    extractor_spec,
    registered_name,
)

__all__ = ["SearchSpace", "as_search_space", "search_space", "starting_points"]


# --- spaces and their conditions ------------------------------------------------------------------


Space = dict[str, BaseDistribution]
_Conditions = Mapping[str, Mapping[str, Iterable[Any]]]
#: Values of the parameters in a branch; None means the whole range.
_Branch = dict[str, list[Any] | None]
_TABLE_HEADER = ("parameter", "values", "scale", "active if")


class SearchSpace(dict[str, BaseDistribution]):
    """Hyperparameters to search: Optuna distributions by name, some active only under conditions.

    It is a dict, so it can be used wherever a dict of distributions is accepted.
    :func:`search_space` returns one for every registered extractor. Change it as a dict, or by
    :meth:`with_`, :meth:`without`, :meth:`fixed` and :meth:`when`, which return a changed copy.

    Parameters
    ----------
    distributions : mapping of str to optuna distribution, default=()
        The ranges, in the order in which they are shown.
    conditions : mapping of str to mapping, optional
        By parameter, the values of other parameters for which it is active:
        ``{"threshold": {"depth": (2, 3)}}``. A parameter is active if all its conditions hold.
    title : str, default=""
        Title above the printed space.

    Raises
    ------
    TypeError
        If a value is not a distribution, or conditions are not mappings.
    ValueError
        If a condition names a parameter that is not in the space, or conditions are circular.

    Notes
    -----
    Values in conditions are compared by ``==``. A condition on a parameter that was removed from
    the space is ignored. A parameter that depends on an inactive one is inactive.

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
        for name, condition in (conditions or {}).items():
            if not isinstance(condition, Mapping):
                raise TypeError(
                    f"conditions[{name!r}] must be a mapping of parameters to values, such as "
                    f"{{'depth': (2, 3)}}, got {condition!r}."
                )
            for parent, values in condition.items():
                self._add_condition(name, parent, values)

    @property
    def conditions(self) -> dict[str, dict[str, tuple[Any, ...]]]:
        """Values of other parameters for which a parameter is active, by parameter."""
        conditions = {
            name: {parent: values for parent, values in condition.items() if parent in self}
            for name, condition in self._conditions.items()
            if name in self
        }
        return {name: values for name, values in conditions.items() if values}

    def is_active(self, name: str, params: Mapping[str, Any]) -> bool:
        """Return whether a parameter is active for the values of others.

        Parameters
        ----------
        name : str
            A parameter of the space.
        params : mapping of str to value
            Parameters that it may depend on.

        Returns
        -------
        bool
            False if one of its conditions does not hold.
        """
        return all(
            parent in params and _is_among(params[parent], values)
            for parent, values in self.conditions.get(name, {}).items()
        )

    def active(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the active parameters of the space; the others have no effect.

        Parameters
        ----------
        params : mapping of str to value
            Parameters, some of which may be inactive.

        Returns
        -------
        dict of str to value
            The active parameters.
        """
        active: dict[str, Any] = {}
        for name in self._sort_by_dependence():
            if name in params and self.is_active(name, active):
                active[name] = params[name]
        return {name: active[name] for name in params if name in active}

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Return whether parameters lie in the space; conditions are ignored.

        Parameters
        ----------
        params : mapping of str to value
            Parameters of the space.

        Returns
        -------
        bool
            False if a parameter is not in the space, or its value is not in the distribution.
        """
        return all(name in self and _contains(self[name], v) for name, v in params.items())

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """Draw the active hyperparameters from a trial.

        Parameters
        ----------
        trial : optuna.trial.BaseTrial
            The trial.

        Returns
        -------
        dict of str to value
            Suggested values in the order of the space.

        Raises
        ------
        TypeError
            If a value of the space is not a distribution.
        ValueError
            If conditions are circular.
        """
        params: dict[str, Any] = {}
        for name in self._sort_by_dependence():
            if self.is_active(name, params):
                params[name] = _suggest_value(trial, name, self[name])
        return {name: params[name] for name in self if name in params}

    def copy(self) -> SearchSpace:
        """Return an independent copy."""
        return SearchSpace(self, conditions=self.conditions, title=self.title)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        conditions = self.conditions | getattr(other, "conditions", {})
        return SearchSpace({**self, **other}, conditions=conditions, title=self.title)

    def with_(self, **distributions: BaseDistribution) -> SearchSpace:
        """Return a copy with changed or added parameters.

        Parameters
        ----------
        **distributions : optuna distribution
            Distributions by name. Conditions are unchanged.

        Returns
        -------
        SearchSpace
            The copy.
        """
        return self | distributions

    def without(self, *names: str) -> SearchSpace:
        """Return a copy without some parameters, which keep their values in the extractor.

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
        """Return a copy in which some parameters have a fixed value.

        Parameters
        ----------
        **values : int, float, bool, str or None
            Values by name, including those of new parameters. They remain part of every candidate.

        Returns
        -------
        SearchSpace
            The copy.
        """
        return self.with_(
            **{n: _fixed_distribution(n, self.get(n), value) for n, value in values.items()}
        )

    def when(self, name: str, /, **values: Any) -> SearchSpace:
        """Return a copy in which a parameter is active only under a further condition.

        Parameters
        ----------
        name : str
            The parameter.
        **values : sequence of values
            Values of each parameter for which `name` is active; they replace earlier values.

        Returns
        -------
        SearchSpace
            The copy.
        """
        result = self.copy()
        for parent, allowed_values in values.items():
            result._add_condition(name, parent, allowed_values)
        return result

    def param_grid(
        self, n_values: int = 3, *, prefix: str = ""
    ) -> dict[str, list[Any]] | list[dict[str, list[Any]]]:
        """Return the grid for ``GridSearchCV`` and ``HalvingGridSearchCV``.

        Parameters
        ----------
        n_values : int, default=3
            Values per numeric parameter, at least 1: both ends and evenly spaced values between
            them on the parameter's scale; 1 takes the middle. Integers are rounded, without
            repetitions. All choices of a categorical parameter are included.
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict or list of dict
            Values by parameter. With conditions, one dict per combination of them, so that no
            candidates differ only in inactive parameters.

        Raises
        ------
        ValueError
            If `n_values` is not an integer of at least 1.
        """
        if isinstance(n_values, bool) or not isinstance(n_values, Integral) or n_values < 1:
            raise ValueError(f"n_values must be an integer of at least 1, got {n_values!r}.")

        def values(distribution: BaseDistribution) -> list[Any]:
            return _grid_values(distribution, int(n_values))

        return self._convert_branches(prefix, values, values)

    def param_distributions(self, *, prefix: str = "") -> dict[str, Any] | list[dict[str, Any]]:
        """Return distributions for ``RandomizedSearchCV`` and ``HalvingRandomSearchCV``.

        Parameters
        ----------
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict or list of dict
            Distributions like those of SciPy, log-uniform on a logarithmic scale, or lists of
            choices. With conditions, one dict per combination of them; scikit-learn samples all
            dicts with equal probability.
        """
        return self._convert_branches(prefix, _all_values, _random_values)

    def distributions(self, *, prefix: str = "") -> dict[str, BaseDistribution]:
        """Return a dict of Optuna's distributions, as for ``OptunaSearchCV``.

        Parameters
        ----------
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict of str to optuna distribution
            Distributions by name, without conditions: inactive parameters are drawn as well.
        """
        return {prefix + name: distribution for name, distribution in self.items()}

    def _convert_branches(
        self,
        prefix: str,
        values_of: Callable[[BaseDistribution], list[Any]],
        convert: Callable[[BaseDistribution], Any],
    ) -> Any:
        """Return one dict for each part of the space in which the same parameters are active."""
        conditions = self.conditions
        branches: list[_Branch] = [{}]
        for name in self._sort_by_dependence():
            dependents = [child for child, parents in conditions.items() if name in parents]
            leaves = []
            for branch in branches:
                # All values of a parameter in a branch satisfy the same conditions.
                parent_values = {other: values[0] for other, values in branch.items() if values}
                if not self.is_active(name, parent_values):
                    leaves.append(branch)
                elif not dependents:
                    leaves.append(branch | {name: None})
                else:
                    values_by_branch: dict[tuple[bool, ...], list[Any]] = {}
                    for value in values_of(self[name]):
                        meets = tuple(_is_among(value, conditions[c][name]) for c in dependents)
                        values_by_branch.setdefault(meets, []).append(value)
                    leaves += [branch | {name: values} for values in values_by_branch.values()]
            branches = leaves
        result = [
            {
                prefix + name: convert(self[name]) if branch[name] is None else branch[name]
                for name in self
                if name in branch
            }
            for branch in branches
        ]
        return result if conditions else result[0]

    def __str__(self) -> str:
        rows = [_TABLE_HEADER, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_TABLE_HEADER))]
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
        head = row(_TABLE_HEADER, "th")
        return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, ...]]:
        conditions = self.conditions
        rows: list[tuple[str, ...]] = []
        for name, distribution in self.items():
            condition = " and ".join(
                f"{parent} is {' or '.join(map(repr, values))}"
                for parent, values in conditions.get(name, {}).items()
            )
            rows.append((name, *_values_and_scale(distribution), condition))
        return rows

    def _check_known(self, name: str) -> None:
        if name not in self:
            raise ValueError(f"There is no {name!r} in the space. {did_you_mean(name, self)}")

    def _add_condition(self, name: str, parent: str, values: Any) -> None:
        """Let a parameter be active only for some values of another one."""
        self._check_known(name)
        self._check_known(parent)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(
                f"The values of {parent!r} with which {name!r} is active must be a sequence, "
                f"such as ({values!r},), got {values!r}."
            )
        if not isinstance(self[parent], CategoricalDistribution | IntDistribution):
            raise ValueError(
                f"{name!r} can only depend on a categorical or integer parameter, but {parent!r} "
                f"is {self[parent]!r}."
            )
        self._conditions.setdefault(name, {})[parent] = tuple(values)
        self._sort_by_dependence()  # raises an error for circular conditions

    def _sort_by_dependence(self) -> list[str]:
        """Return the parameters, each after the parameters in its conditions."""
        parents = self.conditions
        order: list[str] = []

        def visit(name: str, descendants: tuple[str, ...]) -> None:
            if name in descendants:
                raise ValueError(
                    f"{name!r} is active only if {' and '.join(map(repr, parents[name]))} is, "
                    "and vice versa; remove one of the conditions."
                )
            if name not in order:
                for parent in parents.get(name, ()):
                    visit(parent, (*descendants, name))
                order.append(name)

        for name in self:
            visit(name, ())
        return order


def as_search_space(space: Mapping[str, BaseDistribution]) -> SearchSpace:
    """Convert a dict of distributions to a search space.

    Parameters
    ----------
    space : mapping of str to optuna distribution
        Distributions; a :class:`SearchSpace` is returned unchanged.

    Returns
    -------
    SearchSpace
        The space.

    Raises
    ------
    TypeError
        If it is not a mapping of distributions.

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
            f"the result of search_space('cart', X, y), got {space!r}."
        )
    return SearchSpace(space)


def check_space(space: Space, extractor: Any) -> None:
    """Raise an error unless a space holds distributions of parameters of the extractor."""
    param_names = set(extractor.get_params(deep=False)) - {"estimator"}
    unknown = {name for name in set(space) - param_names if not _accepts_param(extractor, name)}
    if unknown:
        raise ValueError(
            f"space names {sorted(unknown)}, which {type(extractor).__name__} does not have; "
            f"its parameters are {sorted(param_names)}. The black box is not searched."
        )
    for name, distribution in space.items():
        _check_distribution(name, distribution)


def _accepts_param(extractor: Any, name: str) -> bool:
    """Return whether an unlisted parameter can be set; PSyKE's are listed after they are set."""
    if "__" in name or name == "estimator":
        return False
    try:
        clone(extractor).set_params(**{name: None})
    except ValueError:
        return False
    return True


class _LogUniformIntegers:
    """Integers with uniform logarithms, for random searches.

    As in Optuna, an integer k represents the interval from k - 1/2 to k + 1/2.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw numbers like a distribution of SciPy."""
        random = check_random_state(random_state)
        logs = random.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5), size=size)
        drawn = np.clip(np.rint(np.exp(logs)), self.low, self.high).astype(int)
        return int(drawn) if size is None else drawn

    def __repr__(self) -> str:
        return f"LogUniformIntegers({self.low}, {self.high})"


def _suggest_value(trial: optuna.trial.BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    """Suggest one value with a trial."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    if isinstance(d, FloatDistribution):
        return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    _check_distribution(name, distribution)
    raise TypeError(f"space[{name!r}] has an unsupported type of distribution: {distribution!r}.")


def _check_distribution(name: str, distribution: Any) -> None:
    """Raise a TypeError if a value of a space is not a distribution."""
    if not isinstance(distribution, BaseDistribution):
        raise TypeError(
            f"space[{name!r}] must be an Optuna distribution, got {distribution!r}. Import "
            "them from optuna.distributions."
        )


def _is_among(value: Any, values: Iterable[Any]) -> bool:
    """Return whether a value is among others, where True and 1 differ."""
    return any(v == value and isinstance(v, bool) == isinstance(value, bool) for v in values)


def _contains(distribution: BaseDistribution, value: Any) -> bool:
    """Return whether a value has the type, range and steps of a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return _is_among(value, distribution.choices)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return False
    is_integer = isinstance(distribution, IntDistribution)
    if isinstance(value, bool) or not isinstance(value, Integral if is_integer else Real):
        return False
    number = float(value)
    if not distribution.low <= number <= distribution.high:
        return False
    if distribution.step is None:
        return True
    steps = (number - distribution.low) / distribution.step
    return math.isclose(steps, round(steps), abs_tol=1e-8)


def _fixed_distribution(name: str, base: BaseDistribution | None, value: Any) -> BaseDistribution:
    """Return a distribution of the same kind with a single value."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):
        raise ValueError(f"{name} must be fixed to a finite number, got {value!r}.")
    if is_number and not isinstance(base, CategoricalDistribution):
        if isinstance(value, Integral) and not isinstance(base, FloatDistribution):
            return IntDistribution(int(value), int(value))
        return FloatDistribution(float(value), float(value))
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"{name} must be fixed to a number, text, True, False or None, got {value!r}; set "
            "anything else on an extractor and pass that to ExtractorObjective."
        )
    return CategoricalDistribution((value,))


def _grid_values(distribution: BaseDistribution, n_values: int) -> list[Any]:
    """Return sorted values spread evenly over a distribution's scale, or all choices."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    d = _check_numeric(distribution)
    space_out = np.geomspace if d.log else np.linspace
    values = space_out(d.low, d.high, n_values) if n_values > 1 else [_scale_center(d)]
    step = 1 if isinstance(d, IntDistribution) and d.log else d.step
    if step is not None:
        values = d.low + np.rint((np.asarray(values) - d.low) / step) * step
        values = np.minimum(values, d.high)
    kind = int if isinstance(d, IntDistribution) else float
    return list(dict.fromkeys(kind(value) for value in values))


def _random_values(distribution: BaseDistribution) -> Any:
    """Return what a random search draws from: a SciPy distribution or a list."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    d = _check_numeric(distribution)
    if d.low == d.high:
        return [d.low]
    if isinstance(d, IntDistribution):
        if d.log:
            return _LogUniformIntegers(d.low, d.high)
        return stats.randint(d.low, d.high + 1) if d.step == 1 else _all_values(d)
    if d.step is not None:
        n_steps = round((d.high - d.low) / d.step)
        return [min(d.low + k * d.step, d.high) for k in range(n_steps + 1)]
    return stats.loguniform(d.low, d.high) if d.log else stats.uniform(d.low, d.high - d.low)


def _scale_center(d: IntDistribution | FloatDistribution) -> float:
    return math.sqrt(d.low) * math.sqrt(d.high) if d.log else (d.low + d.high) / 2


def _check_numeric(distribution: BaseDistribution) -> IntDistribution | FloatDistribution:
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise TypeError(f"A space must hold Optuna distributions, got {distribution!r}.")
    return distribution


def _all_values(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a categorical or integer parameter, which conditions need."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if not isinstance(distribution, IntDistribution):
        raise ValueError(
            f"Conditions need a categorical or integer parameter, got {distribution!r}."
        )
    return list(range(distribution.low, distribution.high + 1, distribution.step))


def _values_and_scale(distribution: BaseDistribution) -> tuple[str, str]:
    """Return texts of the range and of the scale of a distribution."""
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


# --- the spaces of the extractors -----------------------------------------------------------------


_Points = list[dict[str, Any]]


def search_space(
    extractor: Any, X: Any, y: Any, *, task: str | None = None, max_rules: float | None = None
) -> SearchSpace:
    """Return the hyperparameters of an extractor and their ranges for some data.

    Print the result to see the ranges; change it by its methods or as a dict.

    Parameters
    ----------
    extractor : str, class or extractor
        A registered name, a class or an instance, whose changed parameters are not searched. The
        space of an extractor that is not built in comes from its registration, or from a class or
        static method ``search_space(n_rows, y, task)`` that returns a dict of distributions or a
        :class:`SearchSpace`.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; their number limits the size of rules.
    y : array-like of shape (n_rows,)
        The target; its standard deviation scales thresholds.
    task : {"classification", "regression"}, optional
        By default regression for a float target, otherwise classification.
    max_rules : float, optional
        Limit on the number of rules, which bounds the sizes of trees.

    Returns
    -------
    SearchSpace
        Optuna distributions by parameter, with conditions, for :class:`ExtractorObjective`; its
        methods convert it for other searches. It can be changed.

    Raises
    ------
    ValueError
        If there is no such extractor or task.
    TypeError
        If the search space of an installed package's extractor is invalid.
    ImportError
        If an installed package's extractor cannot be imported.

    Examples
    --------
    >>> space = search_space("cart", [[0.0]] * 100, ["a", "b"] * 50)
    >>> print(space)
    cart for classification: 100 rows, 1 feature
    parameter         values                                            scale
    max_leaf_nodes    2 to 32                                           log
    max_depth         2 to 8                                            linear
    min_samples_leaf  1 to 5                                            log
    criterion         'gini', 'entropy'                                 choice
    merge_leaves      True                                              choice
    sampling          None, 'permute', 'permute-near', 'permute-mixed'  choice
    >>> space["max_leaf_nodes"]
    IntDistribution(high=32, log=True, low=2, step=1)
    >>> space.without("min_samples_leaf", "criterion", "sampling").param_grid(n_values=3)
    {'max_leaf_nodes': [2, 8, 32], 'max_depth': [2, 5, 8], 'merge_leaves': [True]}
    """
    name, search = _find_search(extractor)
    if search is None:
        raise ValueError(
            f"There is no search space for {name!r}. {did_you_mean(name, extractor_names())}"
        )
    y = one_dimension("y", y)
    if task is None:
        task = "regression" if y.dtype.kind == "f" else "classification"
    check_choice("task", task, TASKS)
    shape = getattr(X, "shape", None) or np.shape(X)
    n_features = shape[1] if len(shape) > 1 else 1
    space = as_search_space(search.space(_SearchProblem(len(X), n_features, y, task, max_rules)))
    if not isinstance(extractor, str | type):
        space = space.without(*_changed_params(extractor) & set(space))
    features = f"{n_features} feature{'' if n_features == 1 else 's'}"
    space.title = space.title or f"{name} for {task}: {len(X)} rows, {features}"
    return space


def starting_points(
    extractor: Any,
    space: Mapping[str, BaseDistribution],
    y: Any,
    task: str,
    *,
    max_rules: float | None = None,
) -> list[dict[str, Any]]:
    """Return good initial hyperparameters that lie in a space.

    A search tries them before its sampler draws. They include the extractor's defaults, or equal
    settings in the parameters of the space; thresholds that an extractor derives from the black
    box's predictions are derived from the target instead.

    Parameters
    ----------
    extractor : str, class or extractor
        As for :func:`search_space`; an unknown extractor has no starting points.
    space : dict of str to optuna distribution
        The space. Points with a value outside of it are skipped; values of inactive parameters and
        of parameters outside of the space are removed.
    y : array-like of shape (n_rows,)
        The target.
    task : {"classification", "regression"}
        The task.
    max_rules : float, optional
        Limit on the number of rules for scores that do not depend on this number, such as accuracy;
        trees with this number of leaves then come first. None for scores that depend on the size.

    Returns
    -------
    list of dict
        Distinct points, the most promising first.

    Examples
    --------
    >>> y = ["a", "b"] * 50
    >>> space = search_space("cart", [[0.0]] * 100, y).without("min_samples_leaf", "criterion")
    >>> starting_points("cart", space, y, "classification")[0]
    {'sampling': None, 'max_leaf_nodes': 2, 'max_depth': 2, 'merge_leaves': True}
    >>> starting_points("cart", space, y, "classification", max_rules=16)[0]
    {'sampling': 'permute', 'max_leaf_nodes': 16, 'max_depth': 8, 'merge_leaves': True}
    """
    search = _find_search(extractor)[1]
    space = as_search_space(space)
    points: list[dict[str, Any]] = []
    if search is None or not space:
        return points
    common: dict[str, Any] = {"sampling": None, "n_queries": _FEW_QUERIES}
    if space.get("prune") == _WITHOUT_REDUNDANT_RULES["prune"]:
        common["prune"] = "redundant"
    for point in search.points(_SearchProblem(len(y), 1, np.asarray(y), task, max_rules)):
        point = common | point  # a point may override these values
        params = {key: value for key, value in point.items() if key in space}
        if params and space.holds(params) and (active := space.active(params)) not in points:
            points.append(active)
    return points


def extractor_name(extractor: Any) -> str:
    """Return the registered name of an extractor or class, or else the name of the class."""
    if isinstance(extractor, str):
        return extractor
    instance = extractor(None) if isinstance(extractor, type) else extractor
    return registered_name(instance) or type(instance).__name__


def _changed_params(extractor: Any) -> set[str]:
    """Return the parameters of an extractor that differ from the defaults."""
    signature = inspect.signature(type(extractor)).parameters
    return {
        name
        for name, value in extractor.get_params(deep=False).items()
        if name not in signature or repr(value) != repr(signature[name].default)
    }


def _find_search(extractor: Any) -> tuple[str, _Search | None]:
    """Return the name of an extractor and its search, or None for an unknown name."""
    name = extractor_name(extractor)
    if name in _BUILTIN_SEARCHES:
        return name, _BUILTIN_SEARCHES[name]
    if name in PSYKE_EXTRACTORS:
        return name, _PSYKE_SEARCHES[name.removeprefix("psyke:")]
    if name in extractor_names():
        return name, _find_class_search(
            name, extractor_class(name), extractor_spec(name).search_space
        )
    if isinstance(extractor, str):
        return name, None
    kind = extractor if isinstance(extractor, type) else type(extractor)
    return name, _find_class_search(name, kind)


def _find_class_search(name: str, kind: Any, registered_space: Any = None) -> _Search:
    """Return the search of an external extractor from its registration or its class."""

    def space(problem: _SearchProblem) -> Mapping[str, BaseDistribution]:
        if registered_space is None and not hasattr(kind, "search_space"):
            raise ValueError(
                f"The extractor {name!r} has no search space: {kind.__name__} lacks "
                f"search_space(n_rows, y, task). Pass one of your own: spaces={{{name!r}: ...}} to "
                "ExtractorSearchCV, or space=... to ExtractorObjective."
            )
        make = kind.search_space if registered_space is None else registered_space
        own_space = make(problem.n_rows, problem.y, problem.task) if callable(make) else make
        if not isinstance(own_space, dict) or not all(
            isinstance(key, str) and isinstance(value, BaseDistribution)
            for key, value in own_space.items()
        ):
            raise TypeError(
                f"The search space of {name!r} must be a dict of parameter names and Optuna "
                f"distributions, got {own_space!r}. Correct it, or report it to the authors of "
                f"{kind.__module__!r}."
            )
        return as_search_space(own_space).copy()  # the caller may keep a reference

    def points(problem: _SearchProblem) -> list[dict[str, Any]]:
        if not hasattr(kind, "starting_points"):
            return []
        return list(kind.starting_points(problem.n_outputs))

    return _Search(space, points)


#: Largest number of rules to search; larger rule sets are rarely the best trade-off of a score.
_MAX_LEAVES = 32


class _SearchProblem(NamedTuple):
    """Size of the data, target and task, which determine the ranges.

    `max_rules` is the user's limit on the number of rules. For starting points, it is None if
    scores depend on this number, otherwise infinite if there is no limit.
    """

    n_rows: int
    n_features: int
    y: np.ndarray
    task: str
    max_rules: float | None = None

    @property
    def is_classification(self) -> bool:
        """True for classification."""
        return self.task == "classification"

    @property
    def n_outputs(self) -> int:
        """Number of classes, or 2 for regression."""
        return len(np.unique(self.y)) if self.is_classification else 2

    @property
    def std(self) -> float:
        """Standard deviation of the target, because thresholds in regression have its unit."""
        return float(np.std(np.asarray(self.y, dtype=float))) or 1.0


class _Search(NamedTuple):
    """Search space of an extractor and its starting points, the most promising first."""

    space: Callable[[_SearchProblem], Mapping[str, BaseDistribution]]
    points: Callable[[_SearchProblem], list[dict[str, Any]]]


def _leaf_range(problem: _SearchProblem, max_leaves: int = _MAX_LEAVES) -> IntDistribution:
    """Return the range of the number of leaves, up to at least one more than there are classes."""
    if problem.max_rules is not None and problem.max_rules < max_leaves:
        # Leaves of one class are merged, so a larger tree may satisfy the limit.
        larger = 1.5 if problem.is_classification else 1.0
        max_leaves = min(max_leaves, math.ceil(larger * problem.max_rules))
    max_leaves = max(min(max_leaves, problem.n_rows // 2), problem.n_outputs + 1, 3)
    return IntDistribution(2, max_leaves, log=True)


def _impurity_range(problem: _SearchProblem) -> FloatDistribution:
    """Return the range of the impurity of a box: share of other classes, or standard deviation."""
    max_impurity = 0.5 if problem.is_classification else problem.std
    return FloatDistribution(0.02 * max_impurity, max_impurity, log=True)


#: Generators of query rows that a search tries.
_GENERATORS = ("permute", "permute-near", "permute-mixed")


#: Number of query rows of extractors that take long with many rows.
_FEW_QUERIES = 2000
#: Largest number of instances at a node of Trepan.
_MAX_INSTANCES_PER_NODE = 5000
#: Approximate number of instances of a whole tree of Trepan if the number of rules is limited.
_INSTANCES_PER_TREE = 40_000


def _query_rows(n_queries: int | None = None) -> Space:
    """Return the search space of query rows, which help on some tables only."""
    space: Space = {"sampling": CategoricalDistribution((None, *_GENERATORS))}
    if n_queries is not None:
        space["n_queries"] = CategoricalDistribution((n_queries,))
    return space


def _with_query_rows(points: _Points, *, reverse: bool = False) -> _Points:
    """Return each point twice: without query rows, then with them; reversed if `reverse`."""
    samplings = ("permute", None) if reverse else (None, "permute")
    return [point | {"sampling": sampling} for point in points for sampling in samplings]


#: Largest number of features of which extractors of boxes may use all.
_MAX_FEATURES_OF_BOXES = 40


def _feature_selection(problem: _SearchProblem, default: int) -> Space:
    """Return the choices of the number of features; none if a table has at most `default`.

    The alternative to the default is all features or, if there are many, four times the default:
    boxes with bounds on hundreds of features take minutes.
    """
    if problem.n_features <= default:
        return {}
    alternative = None if problem.n_features <= _MAX_FEATURES_OF_BOXES else 4 * default
    return {"n_features_to_select": CategoricalDistribution((default, alternative))}


def _clip_to_range(value: float, distribution: IntDistribution) -> int:
    """Return the value, or the nearest value in the range."""
    return int(min(max(value, distribution.low), distribution.high))


def _cart_space(problem: _SearchProblem) -> SearchSpace:
    criteria: tuple[str, ...] = ("gini", "entropy")
    if not problem.is_classification:  # not the absolute error, which takes quadratic time
        criteria = ("squared_error", "absolute_error")[: 2 if problem.n_rows <= 5000 else 1]
    merge_space: Space = {"merge_leaves": CategoricalDistribution((True,))}
    return SearchSpace(
        {
            "max_leaf_nodes": _leaf_range(problem),
            "max_depth": IntDistribution(2, 8),
            "min_samples_leaf": IntDistribution(1, max(1, problem.n_rows // 20), log=True),
            "criterion": CategoricalDistribution(criteria),
        }
        | (merge_space if problem.is_classification else {})
        | _query_rows()
    )


def _cart_points(problem: _SearchProblem) -> _Points:
    def tree(leaves: float) -> dict[str, Any]:
        """Return the parameters of a tree with this number of leaves and at most 8 levels."""
        return {
            "max_leaf_nodes": int(leaves),
            "max_depth": int(max(2, min(leaves - 1, 8))),
            "min_samples_leaf": 1,
            "criterion": "gini" if problem.is_classification else "squared_error",
            "merge_leaves": True,
        }

    n = problem.n_outputs
    # Two leaves, even for more classes, for scores that weigh size more than a rare class.
    small, smallest, larger, largest = map(tree, (n, 2, n + 1, n + 3))
    default = tree(_clip_to_range(max(6, min(n, 8)), _leaf_range(problem)))
    if problem.max_rules is None:
        return _with_query_rows([small, smallest, larger, default, largest])
    leaves = _clip_to_range(problem.max_rules, _leaf_range(problem))
    large = tree(leaves) | {"max_depth": 8}
    points = [
        p for p in (large, default, largest, larger, small) if int(p["max_leaf_nodes"]) <= leaves
    ]
    return _with_query_rows(points, reverse=True)


#: Searches remove rules that change no prediction, because every rule costs its readers time.
_WITHOUT_REDUNDANT_RULES: Space = {"prune": CategoricalDistribution(("redundant",))}
#: Work limit of optimal extractors in a search, which fits each candidate on every fold.
_MAX_WORK = 0.1


def _work_limit() -> Space:
    return {"max_work": CategoricalDistribution((_MAX_WORK,))}


def _optimal_list_space(problem: _SearchProblem) -> Space:
    space: Space = {
        "max_rules": IntDistribution(2, max(6, problem.n_outputs + 1)),
        "max_conditions": IntDistribution(1, 2),
        "cuts_per_feature": IntDistribution(4, 16, log=True),
    }
    return space | _feature_selection(problem, 20) | _query_rows(_FEW_QUERIES) | _work_limit()


def _optimal_list_points(problem: _SearchProblem) -> _Points:
    default = {"max_rules": 4, "max_conditions": 2, "cuts_per_feature": 8}
    n = problem.n_outputs
    sizes = (n, 4, n + 1) if problem.max_rules is None else (problem.max_rules, 6, 4)
    max_rules = n + 1 if problem.max_rules is None else problem.max_rules
    allowed_sizes = [int(size) for size in sizes if size <= max(max_rules, 4) and size < math.inf]
    points = [default | {"max_rules": size} for size in allowed_sizes]
    return _with_query_rows(points, reverse=problem.max_rules is not None)


def _optimal_tree_space(problem: _SearchProblem) -> Space:
    space: Space = {
        "max_leaf_nodes": IntDistribution(2, max(8, problem.n_outputs + 1)),
        "cuts_per_feature": IntDistribution(4, 32, log=True),
    }
    return space | _feature_selection(problem, 20) | _query_rows(_FEW_QUERIES) | _work_limit()


def _optimal_tree_points(problem: _SearchProblem) -> _Points:
    return [
        {
            "max_leaf_nodes": max(2, point["max_rules"]),
            "cuts_per_feature": 16,
            "sampling": point["sampling"],
        }
        for point in _optimal_list_points(problem)
    ]


def _gridex_space(problem: _SearchProblem) -> SearchSpace:
    space = SearchSpace(
        {
            "n_slices": IntDistribution(2, 10, log=True),
            "importance_threshold": FloatDistribution(0.0, 1.0),
            "depth": IntDistribution(1, 3),
            "threshold": _impurity_range(problem),
            "min_examples": CategoricalDistribution((1, 25)),
        }
    )
    if problem.n_features == 1:  # importance has no effect on a single feature
        space = space.without("importance_threshold")
    space |= {"max_rules": CategoricalDistribution((None, 16))} | _feature_selection(problem, 5)
    return space | _query_rows(_FEW_QUERIES) | _WITHOUT_REDUNDANT_RULES


def _gridex_points(problem: _SearchProblem) -> _Points:
    default = {
        "n_slices": 2,
        "importance_threshold": 0.0,
        "depth": 3,
        "threshold": 0.1 if problem.is_classification else 0.5 * problem.std,
        "min_examples": 1,
        "max_rules": 16,
        "n_features_to_select": 5,
    }
    return [*_one_feature_points(default, problem.n_outputs, 2 * problem.n_outputs), default]


def _gridrex_space(problem: _SearchProblem) -> SearchSpace:
    unit = problem.std
    return _gridex_space(problem) | {
        "threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True),
        "coefficient_tolerance": CategoricalDistribution((0.0, 0.02, 0.05)),
        "max_terms": CategoricalDistribution((3, None)),
    }


def _gridrex_points(problem: _SearchProblem) -> _Points:
    # The default threshold is half the residual of a linear model, which is near this value if the
    # model explains half of the variance.
    default = _gridex_points(problem)[-1] | {
        "threshold": 0.25 * problem.std,
        "coefficient_tolerance": 0.0,
        "max_terms": 3,
    }
    return [*_one_feature_points(default, 2, 3), default]


def _one_feature_points(default: dict[str, Any], *slices: int) -> _Points:
    """Return parameters that cut only the most important feature, once."""
    params = {"importance_threshold": 0.99, "depth": 1, "max_rules": None}
    params["n_features_to_select"] = None
    return [default | params | {"n_slices": m} for m in slices]


def _iter_space(problem: _SearchProblem) -> SearchSpace:
    # The gap between class probabilities, or between means in the target's units.
    low, high = (0.1, 0.8) if problem.is_classification else (0.25 * problem.std, problem.std)
    return SearchSpace(
        {
            # Smaller steps would query the black box hundreds of times.
            "min_update": FloatDistribution(0.1, 0.5, log=True),
            "n_points": IntDistribution(1, 3),
            "threshold": FloatDistribution(low, high, log=True),
            "min_examples": CategoricalDistribution((25, 100, 250)),
        }
        | _feature_selection(problem, 5)
        | _query_rows(_FEW_QUERIES)
        | _WITHOUT_REDUNDANT_RULES
    )


def _iter_points(problem: _SearchProblem) -> _Points:
    default = {
        "min_update": 0.1,
        "n_points": 3,
        "threshold": 0.15 if problem.is_classification else 0.5 * problem.std,
        "min_examples": 100,
        "n_features_to_select": 5,
    }
    return [default | {"min_update": 0.2, "min_examples": 100}, default]


def _cluster_space(problem: _SearchProblem) -> SearchSpace:
    space = SearchSpace(
        {
            "depth": IntDistribution(1, 4),
            "error_threshold": _impurity_range(problem),
            "gauss_components": IntDistribution(2, 5),
        }
        | _feature_selection(problem, 5)
        | _query_rows(_FEW_QUERIES)
        | _WITHOUT_REDUNDANT_RULES
    )
    if not problem.is_classification:
        space = space.with_(output=CategoricalDistribution(("constant", "linear")))
        if problem.n_features > 3:
            terms = CategoricalDistribution((3, None))
            space = space.with_(max_terms=terms).when("max_terms", output=("linear",))
    return space


def _cluster_points(problem: _SearchProblem) -> _Points:
    default = {
        "depth": 3,
        "error_threshold": 0.15 if problem.is_classification else 0.1 * problem.std,
        "gauss_components": 2,
        "n_features_to_select": 5,
        "max_terms": 3,
    }
    if problem.is_classification:
        return [default | {"depth": 2}, default, default | {"depth": 1}]
    # Few rules approximate a number badly unless their conclusions are linear models.
    linear = [default | {"output": "linear", "depth": depth} for depth in (1, 2)]
    return [*linear, default | {"output": "constant"}]


def _real_space(problem: _SearchProblem) -> SearchSpace:
    return SearchSpace(
        {
            "max_rules": _leaf_range(problem, 50),
            "min_precision": FloatDistribution(0.8, 1.0),
            "tolerance": FloatDistribution(0.005, 0.2, log=True),
            # Its rules are few and narrow, so that widening them takes little time and improves
            # completeness.
            "prune": CategoricalDistribution((None, "ice")),
        }
        | _query_rows(_FEW_QUERIES)
    )


def _real_points(problem: _SearchProblem) -> _Points:
    default: dict[str, Any] = {
        "max_rules": _clip_to_range(16, _leaf_range(problem, 50)),
        "min_precision": 0.85,
        "tolerance": 0.01,
        "prune": None,
    }
    pruned: dict[str, Any] = default | {"prune": "ice"}
    short = pruned | {"max_rules": problem.n_outputs + 3}
    return [short, short | {"min_precision": 0.85, "tolerance": 0.05}, pruned, default]


def _instances_per_node(problem: _SearchProblem) -> tuple[int, ...]:
    """Return the choices of instances per node, which are smaller if trees may have many nodes."""
    choices = 200, 1000
    if problem.max_rules is None:
        return choices
    largest = int(min(_MAX_INSTANCES_PER_NODE, _INSTANCES_PER_TREE / problem.max_rules))
    return (*choices, largest) if largest > max(choices) else choices


def _trepan_space(problem: _SearchProblem) -> SearchSpace:
    space = SearchSpace(
        {
            "max_leaf_nodes": _leaf_range(problem, _MAX_LEAVES // 2),
            "max_literals": IntDistribution(1, 4),
            "min_sample": CategoricalDistribution(_instances_per_node(problem)),
            "significance": CategoricalDistribution((0.05, 0.001)),
            "purity": CategoricalDistribution((0.99, 1.0)),
        }
        | _query_rows()
        | {"refinement_passes": CategoricalDistribution((0, 5))}
        | _WITHOUT_REDUNDANT_RULES,
        # Without query rows, refinement would fit the training labels.
        conditions={"refinement_passes": {"sampling": _GENERATORS}},
    )
    # A test uses each feature at most once.
    return space if problem.n_features > 1 else space.without("max_literals", "significance")


def _trepan_points(problem: _SearchProblem) -> _Points:
    leaves = _leaf_range(problem, _MAX_LEAVES // 2)
    default: dict[str, Any] = {
        "max_leaf_nodes": _clip_to_range(16, leaves),  # at most 15 tests
        "max_literals": 4,
        "min_sample": 1000,
        "significance": 0.05,
        "purity": 0.99,
        "refinement_passes": 0,
    }
    # One leaf per class, with several literals per test; a sample of 200 rows is enough for these.
    small = default | {"max_leaf_nodes": problem.n_outputs, "min_sample": 200}
    small_points = [small | {"max_literals": m} for m in (4, 2, 1)]
    if problem.max_rules is None:
        return _with_query_rows([*small_points, default])
    large = default | {"max_leaf_nodes": _clip_to_range(problem.max_rules, leaves)}
    # With query rows, there are enough instances to be strict about each further literal.
    strict = large | {"significance": 0.001}
    faithful = {
        "sampling": "permute-mixed",
        "min_sample": _instances_per_node(problem)[-1],
        "purity": 1.0,
        "refinement_passes": 5,
    }
    faithful_points: _Points = [strict | faithful, strict | {"sampling": "permute-near"}]
    return [*faithful_points, large, *_with_query_rows(small_points[:1], reverse=True)]


#: Scores that depend on the size prefer few rules, about one per class; for grids, this means a few
#: cuts of a single important feature. The order follows held-out scores on ten data sets
#: (`benchmarks/README.md`, "Choosing"). The defaults are among the points unless the number of
#: rules is limited.
_BUILTIN_SEARCHES: dict[str, _Search] = {
    "cart": _Search(_cart_space, _cart_points),
    "cream": _Search(_cluster_space, _cluster_points),
    "exact": _Search(_cluster_space, _cluster_points),
    "gridex": _Search(_gridex_space, _gridex_points),
    "gridrex": _Search(_gridrex_space, _gridrex_points),
    "iter": _Search(_iter_space, _iter_points),
    "optimal-list": _Search(_optimal_list_space, _optimal_list_points),
    "optimal-tree": _Search(_optimal_tree_space, _optimal_tree_points),
    "real": _Search(_real_space, _real_points),
    "trepan": _Search(_trepan_space, _trepan_points),
}


# PSyKE's extractors differ from ours of the same name: thresholds do not depend on the units of
# the target, and some settings take much longer.


def _psyke_cart_space(problem: _SearchProblem) -> Space:
    return {"max_leaves": _leaf_range(problem), "max_depth": IntDistribution(2, 8)}


def _psyke_gridex_space(problem: _SearchProblem) -> Space:
    # Each cut feature multiplies the number of cells, and each cell queries the black box.
    return {
        "n_slices": IntDistribution(2, 6, log=True),
        "importance_threshold": FloatDistribution(0.3, 1.0),
        "depth": IntDistribution(1, 2),
        "threshold": _impurity_range(problem),
        "min_examples": CategoricalDistribution((1, 25)),
    }


def _psyke_gridrex_space(problem: _SearchProblem) -> Space:
    unit = problem.std
    return _psyke_gridex_space(problem) | {
        "threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True)
    }


def _psyke_hex_space(problem: _SearchProblem) -> Space:
    # Cells without rows are kept, so there are more rules.
    space = _psyke_gridex_space(problem) | {
        "n_slices": IntDistribution(2, 3),
        "importance_threshold": FloatDistribution(0.6, 1.0),
    }
    del space["min_examples"]
    return _psyke_with_output(space, problem)


def _psyke_iter_space(problem: _SearchProblem) -> Space:
    space: Space = {
        "min_update": FloatDistribution(0.2, 0.5, log=True),
        "n_points": IntDistribution(1, 3),
        # Every step queries all strips again, which takes minutes for larger values.
        "min_examples": CategoricalDistribution((25,)),
        "max_iterations": CategoricalDistribution((100,)),
    }
    if not problem.is_classification:  # differences of labels are 0 or 1, so it has no effect
        space["threshold"] = FloatDistribution(0.25 * problem.std, problem.std, log=True)
    return space


def _psyke_with_output(space: Space, problem: _SearchProblem) -> Space:
    """Add the output of the rules, which can be linear in regression."""
    outputs = CategoricalDistribution(("constant", "linear"))
    return space if problem.is_classification else space | {"output": outputs}


def _psyke_cluster_space(problem: _SearchProblem) -> Space:
    space: Space = {
        "depth": IntDistribution(1, 4),
        "error_threshold": _impurity_range(problem),
        "gauss_components": IntDistribution(2, 5),
    }
    return _psyke_with_output(space, problem)


def _psyke_divine_space(problem: _SearchProblem) -> Space:
    return {
        "k": IntDistribution(2, min(15, max(3, problem.n_rows // 10))),
        "patience": IntDistribution(5, 30),
    }


def _psyke_cosmik_space(problem: _SearchProblem) -> Space:
    space = {"max_components": IntDistribution(2, 6)} | _psyke_divine_space(problem)
    return _psyke_with_output(space, problem)


def _psyke_ginger_space(problem: _SearchProblem) -> Space:
    return {
        "n_features": IntDistribution(1, 2),
        # With several numbers of cuts, PSyKE would keep the worst one.
        "max_slices": CategoricalDistribution((1,)),
        # Each individual of each generation is an extraction.
        "n_gen": IntDistribution(5, 20),
        "n_pop": IntDistribution(10, 30),
    }


def _psyke_trepan_space(problem: _SearchProblem) -> Space:
    return {
        "max_depth": IntDistribution(1, 4),
        "min_examples": IntDistribution(0, max(1, problem.n_rows // 10)),
    }


def _psyke_cart_points(problem: _SearchProblem) -> _Points:
    n = problem.n_outputs
    default = {"max_leaves": 3, "max_depth": 3}
    return [default] + [{"max_leaves": n + n_more, "max_depth": 4} for n_more in (0, 1, 3)]


def _psyke_cluster_points(problem: _SearchProblem, *further_params: dict[str, Any]) -> _Points:
    """Return the default parameters and variants of them."""
    default: dict[str, Any] = {
        "depth": 3,
        "error_threshold": 0.1 * (1 if problem.is_classification else problem.std),
        "gauss_components": 2,
    }
    if not problem.is_classification:
        default["output"] = "constant"
    return [default] + [default | params for params in further_params]


def _psyke_cream_points(problem: _SearchProblem) -> _Points:
    return _psyke_cluster_points(problem, {"depth": 2}, {"depth": 2, "gauss_components": 5})


def _psyke_exact_points(problem: _SearchProblem) -> _Points:
    return _psyke_cluster_points(problem, {"depth": min(max(problem.n_outputs - 1, 1), 4)})


def _psyke_grids(*slices: int) -> _Points:
    """Return points that cut only the most important feature; cutting all may never end."""
    return [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in slices]


#: Search space and starting points of each algorithm.
_PSYKE_SEARCHES: dict[str, _Search] = {
    "cart": _Search(_psyke_cart_space, _psyke_cart_points),
    "cream": _Search(_psyke_cluster_space, _psyke_cream_points),
    "cosmik": _Search(
        _psyke_cosmik_space, lambda problem: [{"max_components": 4, "k": 5, "patience": 15}]
    ),
    "divine": _Search(_psyke_divine_space, lambda problem: [{"k": 5, "patience": 15}]),
    "exact": _Search(_psyke_cluster_space, _psyke_exact_points),
    "ginger": _Search(_psyke_ginger_space, lambda problem: [{"n_features": 1}]),
    "gridex": _Search(_psyke_gridex_space, lambda problem: _psyke_grids(problem.n_outputs, 5)),
    "gridrex": _Search(_psyke_gridrex_space, lambda problem: _psyke_grids(2, 4)),
    "hex": _Search(_psyke_hex_space, lambda problem: _psyke_grids(2)),
    "iter": _Search(_psyke_iter_space, lambda problem: [{"min_update": 0.3, "n_points": 1}]),
    # Its only parameter is a discretizer, so one trial is enough.
    "real": _Search(lambda problem: {}, lambda problem: []),
    "trepan": _Search(
        _psyke_trepan_space, lambda problem: [{"max_depth": d, "min_examples": 0} for d in (3, 2)]
    ),
}
