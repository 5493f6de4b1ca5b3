"""A search space: hyper-parameters, their ranges, and which of them matter when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from skescore._text import did_you_mean
from skescore.tuning.spaces import _distributions as single
from skescore.tuning.spaces import _space_grids, _space_text

_Conditions = Mapping[str, Mapping[str, Iterable[Any]]]


class SearchSpace(dict[str, BaseDistribution]):
    """Hyper-parameters to search: Optuna distributions by name, some asked only under conditions.

    A dict, so that whatever takes a plain dict of distributions takes it; :func:`search_space`
    gives one for every registered extractor. Change it by :meth:`with_`, :meth:`without`,
    :meth:`fixed` and :meth:`when`, which give a changed copy, or as a dict.

    Parameters
    ----------
    distributions : mapping of str to optuna distribution, default=()
        The ranges, in the order in which they are shown.
    conditions : mapping of str to mapping, optional
        For a parameter, the values of other parameters with which alone it is asked for:
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
    been taken out of the space is asked for whatever that one is. A parameter that depends on one
    that is not asked for is not asked for either.

    Examples
    --------
    >>> from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    >>> space = SearchSpace(
    ...     {"depth": IntDistribution(1, 3), "threshold": FloatDistribution(0.01, 0.5, log=True)},
    ...     conditions={"threshold": {"depth": (2, 3)}},
    ... )
    >>> print(space.with_(prune=CategoricalDistribution([None, "ice"])))
    parameter  values       scale   asked if
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
            single.check_distribution(name, distribution)
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
        """By parameter, the values of others with which alone it is asked for."""
        found = {
            name: {other: values for other, values in wanted.items() if other in self}
            for name, wanted in self._conditions.items()
            if name in self
        }
        return {name: wanted for name, wanted in found.items() if wanted}

    def is_asked(self, name: str, params: Mapping[str, Any]) -> bool:
        """Tell whether a parameter is asked for, given others.

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
            other in params and single.is_among(params[other], values)
            for other, values in self.conditions.get(name, {}).items()
        )

    def active(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Give the parameters of the space that are asked for; the others change nothing.

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
            if name in params and self.is_asked(name, kept):
                kept[name] = params[name]
        return {name: kept[name] for name in params if name in kept}

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Tell whether parameters lie in the space, conditions apart.

        Parameters
        ----------
        params : mapping of str to value
            Some parameters of the space, or all.

        Returns
        -------
        bool
            False if one is not in the space or out of its range, or off its steps.
        """
        return all(name in self and single.lies_in(self[name], v) for name, v in params.items())

    # --- asking ----------------------------------------------------------------------------------

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """Ask a trial for the hyper-parameters, leaving out those whose conditions do not hold.

        Parameters
        ----------
        trial : optuna.trial.BaseTrial
            The trial.

        Returns
        -------
        dict of str to value
            What the trial answers, in the order of the space.

        Raises
        ------
        TypeError
            If something in the space is no distribution.
        ValueError
            If parameters wait for each other.
        """
        params: dict[str, Any] = {}
        for name in self._parents_first():
            if self.is_asked(name, params):
                params[name] = single.suggest_value(trial, name, self[name])
        return {name: params[name] for name in self if name in params}

    # --- changing --------------------------------------------------------------------------------

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
        return self.with_(**{n: single.only(n, self.get(n), value) for n, value in values.items()})

    def when(self, name: str, /, **values: Any) -> SearchSpace:
        """Give a copy in which a parameter is asked for under a further condition.

        Parameters
        ----------
        name : str
            The parameter.
        **values : sequence of values
            By parameter, the values with which alone `name` is asked for, in place of earlier ones.

        Returns
        -------
        SearchSpace
            The copy.
        """
        result = self.copy()
        for other, wanted in values.items():
            result._add_condition(name, other, wanted)
        return result

    # --- for other searches ----------------------------------------------------------------------

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
        return _space_grids.param_grid(self, n_values, prefix)

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
        return _space_grids.param_distributions(self, prefix)

    def distributions(self, *, prefix: str = "") -> dict[str, BaseDistribution]:
        """Give a plain dict of Optuna's distributions, as for ``OptunaSearchCV``.

        Parameters
        ----------
        prefix : str, default=""
            Put before each name, such as ``"extractor__"`` for a step of a pipeline.

        Returns
        -------
        dict of str to optuna distribution
            Conditions are lost: parameters are asked for even where they change nothing.
        """
        return {prefix + name: distribution for name, distribution in self.items()}

    # --- reading ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        return _space_text.as_table(self)

    def __repr__(self) -> str:
        return _space_text.as_line(self)

    def _repr_html_(self) -> str:
        return _space_text.as_html(self)

    def _check_known(self, name: str) -> None:
        if name not in self:
            raise ValueError(f"There is no {name!r} in the space. {did_you_mean(name, self)}")

    def _add_condition(self, name: str, other: str, values: Any) -> None:
        self._check_known(name)
        self._check_known(other)
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(
                f"The values of {other!r} with which {name!r} is asked for must be a sequence, "
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
                    f"{name!r} is asked for only if {' and '.join(map(repr, waits_for[name]))} is, "
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
    >>> as_search_space({"max_leaves": IntDistribution(2, 8)})
    <SearchSpace: max_leaves 2 to 8>
    """
    if isinstance(space, SearchSpace):
        return space
    if not isinstance(space, Mapping):
        raise TypeError(
            "space must be a dict of parameter names and Optuna distributions, such as "
            f"search_space('cart', X, y) gives, got {space!r}."
        )
    return SearchSpace(space)
