"""What optimal extractors have in common: the space of their rules, and the proof they leave."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from skescore import _validation as check
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.optimal import Cuts, Frontier, candidate_cuts
from skescore.rules import Condition, Interval, Missing, OneOf, Rule, RuleSet

_CRITERIA = {
    "classification": ("errors",),
    "regression": ("squared_error", "absolute_error"),
}


class BaseOptimalExtractor(BaseExtractor):
    """Extractor of the rules of a kind with the least loss, and of the proof."""

    takes_categories = True

    start: Any
    cuts_per_feature: int | None
    n_features_to_select: int | None
    criterion: str | None
    max_nodes: int | None
    time_limit: float | None

    @abstractmethod
    def _search(self, extraction: Extraction, **options: Any) -> Frontier:
        """Find the frontier; the options are those of all kinds."""

    def _check_parameters(self) -> None:
        self._check_settings(self._task())

    def _check_settings(self, task: str) -> None:
        check.check_integer("cuts_per_feature", self.cuts_per_feature, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_number("time_limit", self.time_limit, 0, optional=True)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[task]))
        if not isinstance(self._start(), RuleSet | None):
            raise TypeError(
                f"start must be rules or a fitted extractor, got {self.start!r}. Fit it, and pass "
                "it in FrozenEstimator where it would be cloned."
            )

    def _start(self) -> Any:
        """The rules to begin with, if there are any."""
        return getattr(self.start, "rules_", self.start)

    def _named_rules(self, extraction: Extraction) -> RuleSet:
        return self._extract(extraction)  # which takes missing values as they are

    def _extract(self, extraction: Extraction) -> RuleSet:
        frontier = self._search(
            extraction,
            loss=self.criterion or _CRITERIA[extraction.task][0],
            cuts=_cuts_to_compare(extraction, self.cuts_per_feature, self.n_features_to_select),
            classes=None if extraction.classes is None else range(len(extraction.classes)),
            feature_names=extraction.settings["feature_names"],
            time_limit=self.time_limit,
            start=[] if self.start is None else [_coded_rules(self._start(), extraction)],
        )
        self._keep(_named_frontier(frontier, extraction))
        rules = self.frontier_.rules[-1]
        assert rules is not None
        return rules

    def _keep(self, frontier: Frontier) -> None:
        """Keep the proof."""
        self.frontier_, self.lower_bounds_ = frontier, frontier.lower
        self.gap_, self.status_ = float(frontier.gap[-1]), frontier.status[-1]


def _cuts_to_compare(
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


def _coded_rules(rules: RuleSet, extraction: Extraction) -> RuleSet:
    """Rules that ask about codes of categories, as the extraction's table holds them."""
    names = list(extraction.settings["feature_names"])
    unknown = [name for name in rules.feature_names if name not in names]
    if unknown:
        raise ValueError(
            f"start must hold rules about features of X, but {unknown[0]!r} is none of them. "
            "Extract them from the same columns."
        )

    def coded(condition: Condition) -> Condition | None:
        """The condition; None where no list of the search can hold it."""
        if not isinstance(condition, Interval | Missing | OneOf):
            return None
        j = names.index(rules.feature_names[condition.feature])
        if not isinstance(condition, OneOf) or j not in extraction.categories:
            return replace(condition, feature=j)
        known = list(extraction.categories[j])
        codes = tuple(float(known.index(value)) for value in condition.values if value in known)
        return replace(condition, feature=j, values=codes) if codes else None

    made = []
    for rule in rules:
        conditions = [found for one in rule.conditions if (found := coded(one)) is not None]
        if len(conditions) == len(rule.conditions):
            made.append(Rule(tuple(conditions), rule.output))
    return RuleSet(made, names, task=rules.task, classes=rules.classes)


def _named_frontier(frontier: Frontier, extraction: Extraction) -> Frontier:
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
