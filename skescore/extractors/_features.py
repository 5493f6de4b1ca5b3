"""Rules on some features only, of a black box that sees all; and features that it does not use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skescore._text import did_you_mean
from skescore._validation import check_integer
from skescore.rules import AtLeast, Domain, Linear, LinearOutput, RuleSet


def chosen_features(given: Any, names: Sequence[str]) -> np.ndarray | None:
    """Columns by name or index, in order; None for all.

    Raises
    ------
    TypeError, ValueError
        If it is no sequence of names and indices, holds none, or one that is not there.
    """
    if given is None:
        return None
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(
            f"features must be None or a sequence of names or indices, got {given!r}. A single one "
            "is given as features=['age']."
        )
    names = [str(name) for name in names]
    found = set()
    for one in given:
        if isinstance(one, str):
            if one not in names:
                raise ValueError(f"features names {one!r}, not in X. {did_you_mean(one, names)}")
            found.add(names.index(one))
        else:
            check_integer("features", one, 0, len(names) - 1, remedy="Pass names or indices.")
            found.add(int(one))
    if not found:
        raise ValueError("features must name at least one feature, got none. None takes all.")
    return np.array(sorted(found), dtype=np.intp)


def narrowed(extraction: Any, chosen: np.ndarray) -> Any:
    """The Extraction as if there were only some features.

    Where the black box is queried about a point, the other features have the values of the training
    row that is nearest in the chosen ones, so that they go with them.
    """
    from scipy.spatial import cKDTree

    X, settings = extraction.X, extraction.settings
    domain: Domain = settings["domain"]
    place = {int(j): k for k, j in enumerate(chosen)}
    extent = np.asarray(domain.upper) - np.asarray(domain.lower)
    scale = np.where(extent > 0, extent, 1.0)[chosen]
    rows = np.nan_to_num(X[:, chosen])
    tree = cKDTree(rows / scale)

    def filled(points: np.ndarray) -> Any:
        whole = X[tree.query(np.nan_to_num(points) / scale)[1]].copy()
        whole[:, chosen] = points
        return whole if extraction.decode is None else extraction.decode(whole)

    missing = np.asarray(domain.missing)[chosen].tolist()
    names = [settings["feature_names"][j] for j in chosen.tolist()]
    smaller = Domain(
        np.asarray(domain.lower)[chosen].tolist(),
        np.asarray(domain.upper)[chosen].tolist(),
        tuple((place[j], values) for j, values in domain.categories if j in place),
        missing,
    )
    return replace(
        extraction,
        X=np.ascontiguousarray(X[:, chosen]),
        settings=settings | {"feature_names": names, "domain": smaller},
        categories={place[j]: v for j, v in extraction.categories.items() if j in place},
        decode=filled,
    )


def widened(ruleset: RuleSet, chosen: np.ndarray, settings: dict[str, Any]) -> RuleSet:
    """Rules on some features as rules on all."""
    of = chosen.tolist()

    def condition(one: Any) -> Any:
        if isinstance(one, AtLeast):
            return replace(one, conditions=tuple(map(condition, one.conditions)))
        if isinstance(one, Linear):
            return replace(one, terms=tuple((of[j], c) for j, c in one.terms))
        return replace(one, feature=of[one.feature])

    def output(one: Any) -> Any:
        if not isinstance(one, LinearOutput):
            return one
        return replace(one, terms=tuple((of[j], c) for j, c in one.terms))

    rules = [
        replace(rule, conditions=tuple(map(condition, rule.conditions)), output=output(rule.output))
        for rule in ruleset.rules
    ]
    return ruleset.replace(
        rules=rules, feature_names=settings["feature_names"], domain=settings["domain"]
    )


def without_influence(
    ruleset: RuleSet, query: Any, X: Any, n_repeats: int, random_state: int
) -> list[str]:
    """Features of rules, any permutation of whose values leaves all predictions as they are."""
    before = query(X)
    found = []
    for feature in sorted(ruleset.used_features):
        name = ruleset.feature_names[feature]
        random = np.random.default_rng([random_state, feature])
        changed = False
        for _ in range(n_repeats):
            order = random.permutation(len(before))
            shuffled = X.copy()
            if hasattr(shuffled, "iloc"):
                shuffled[shuffled.columns[feature]] = X.iloc[order, feature].to_numpy()
            else:
                shuffled[:, feature] = X[order, feature]
            changed = changed or not np.array_equal(query(shuffled), before)
            if changed:
                break
        if not changed:
            found.append(name)
    return found
