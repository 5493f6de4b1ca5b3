"""Search spaces as the grids and distributions that scikit-learn's searches take."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution

from skescore.tuning.spaces._distributions import (
    all_values,
    grid_values,
    is_among,
    random_values,
)

if TYPE_CHECKING:
    from skescore.tuning.spaces._space import SearchSpace

#: By parameter the values that are left in a branch; None stands for the whole range.
_Branch = dict[str, list[Any] | None]


def param_grid(
    space: SearchSpace, n_values: int, prefix: str
) -> dict[str, list[Any]] | list[dict[str, list[Any]]]:
    """See :meth:`SearchSpace.param_grid`."""
    if isinstance(n_values, bool) or not isinstance(n_values, Integral) or n_values < 1:
        raise ValueError(f"n_values must be an integer of at least 1, got {n_values!r}.")

    def values(distribution: BaseDistribution) -> list[Any]:
        return grid_values(distribution, int(n_values))

    grids = [
        {
            prefix + name: values(space[name]) if some is None else some
            for name, some in branch.items()
        }
        for branch in _branches(space, values)
    ]
    return grids if space.conditions else grids[0]


def param_distributions(space: SearchSpace, prefix: str) -> dict[str, Any] | list[dict[str, Any]]:
    """See :meth:`SearchSpace.param_distributions`."""
    found = [
        {
            prefix + name: random_values(space[name]) if some is None else some
            for name, some in branch.items()
        }
        for branch in _branches(space, all_values)
    ]
    return found if space.conditions else found[0]


def _branches(
    space: SearchSpace, values_of: Callable[[BaseDistribution], list[Any]]
) -> list[_Branch]:
    """Cut a space with conditions into parts in each of which the same parameters are asked for."""
    conditions = space.conditions
    branches: list[_Branch] = [{}]
    for name in space._parents_first():
        waiting = [child for child, wanted in conditions.items() if name in wanted]
        grown = []
        for branch in branches:
            # In a branch all values of a parameter meet the same conditions, so one speaks for all.
            settled = {other: values[0] for other, values in branch.items() if values}
            if not space.is_asked(name, settled):
                grown.append(branch)
            elif not waiting:
                grown.append(branch | {name: None})
            else:
                alike: dict[tuple[bool, ...], list[Any]] = {}
                for value in values_of(space[name]):
                    meets = tuple(is_among(value, conditions[child][name]) for child in waiting)
                    alike.setdefault(meets, []).append(value)
                grown += [branch | {name: values} for values in alike.values()]
        branches = grown
    return [{name: branch[name] for name in space if name in branch} for branch in branches]
