"""What optimal extractors compare, and what they find, in terms of the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skescore.extractors._base import Extraction
from skescore.optimal import Cuts, Frontier, candidate_cuts
from skescore.rules import Condition, OneOf, Rule, RuleSet


def cuts_to_compare(
    extraction: Extraction, per_feature: int | None, n_features: int | None
) -> Cuts:
    """The cuts of the features that rules may use."""
    X, categories = extraction.X, extraction.categories
    cuts = candidate_cuts(X, per_feature, categories=list(categories))
    filled = X.copy()
    for j in cuts.lacking:
        gaps = np.isnan(X[:, j])
        filled[gaps, j] = len(categories[j]) if j in categories else np.median(X[~gaps, j])
    known = {
        j: (*values, None) if j in cuts.lacking else values for j, values in categories.items()
    }
    whole = replace(extraction, X=np.nan_to_num(filled), categories=known)
    chosen = set(whole.important_features(n_features).tolist())
    return Cuts(
        cuts.n_features,
        {j: found for j, found in cuts.thresholds.items() if j in chosen},
        {j: found for j, found in cuts.categories.items() if j in chosen},
        tuple(j for j in cuts.lacking if j in chosen),
    )


def named_frontier(frontier: Frontier, extraction: Extraction) -> Frontier:
    """A frontier whose rules name labels and categories, which were codes."""

    def condition(coded: Condition) -> Condition:
        if not isinstance(coded, OneOf):
            return coded
        values = extraction.categories[coded.feature]
        return replace(coded, values=tuple(values[int(code)] for code in coded.values))

    def named(rules: RuleSet | None) -> RuleSet | None:
        if rules is None:
            return None
        classes = extraction.settings["classes"]
        return RuleSet(
            [
                Rule(
                    tuple(map(condition, rule.conditions)),
                    rule.output if classes is None else classes[rule.output],
                    rule.statistics,
                )
                for rule in rules
            ],
            **extraction.settings,
            ordered=rules.ordered,
            disjoint=rules.disjoint,
        )

    cuts = frontier.space["cuts"]
    categories = {
        j: [extraction.categories[int(j)][int(code)] for code in codes]
        for j, codes in cuts["categories"].items()
    }
    space = dict(frontier.space) | {
        "cuts": cuts | {"categories": categories},
        "classes": extraction.settings["classes"],
    }
    return replace(frontier, rules=tuple(map(named, frontier.rules)), space=space)
