"""Tables whose entries can also be looked up by the names of another library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")

#: RuleKit's names of measures of single rules that differ from ours in more than case.
RULEKIT_RULE_MEASURES: Mapping[str, str] = MappingProxyType({"cnsignificnce": "cn2_significance"})
#: RuleKit's names of measures of predictions that differ from ours in more than case.
RULEKIT_PERFORMANCE_METRICS: Mapping[str, str] = MappingProxyType(
    {
        "absoluteerror": "mean_absolute_error",
        "classificationerror": "zero_one_loss",
        "fmeasure": "f1",
        "kappa": "cohen_kappa",
        "sensitivity": "recall",
        "squarederror": "mean_squared_error",
    }
)


class AliasedTable(Mapping[str, T]):
    """A table by name that also finds entries by aliases, ignoring case and underscores.

    Its length and iteration cover only the names.

    Parameters
    ----------
    entries : mapping of str to object
        The entries by name; entries added later are found too.
    aliases : mapping of str to str
        Names by alias, in lower case and without underscores.

    Examples
    --------
    >>> table = AliasedTable({"f_measure": 1}, {"fscore": "f_measure"})
    >>> table["FMeasure"], table["f_measure"], "F_score" in table, list(table)
    (1, 1, True, ['f_measure'])
    """

    def __init__(self, entries: Mapping[str, T], aliases: Mapping[str, str]) -> None:
        self._entries = entries
        self._aliases = aliases

    def __getitem__(self, name: str) -> T:
        return self._entries[canonical_name(name, self._entries, self._aliases)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._entries)!r})"


def canonical_name(name: str, names: Mapping[str, T], aliases: Mapping[str, str]) -> str:
    """Return the name that an alias stands for, or the alias itself if it is unknown."""
    if not isinstance(name, str) or name in names:
        return name
    key = _without_case(name)
    if key in aliases:
        return aliases[key]
    return next((own_name for own_name in names if _without_case(own_name) == key), name)


def _without_case(name: str) -> str:
    """Return a name in lower case, without underscores and without RuleKit's leading #."""
    return name.lower().replace("_", "").removeprefix("#")
