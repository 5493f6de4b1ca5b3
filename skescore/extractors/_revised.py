"""Revision of earlier rules: some are extracted again, all others are kept."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skescore._validation import check_instance
from skescore.constraints import ConstrainedRules
from skescore.extractors._base import Extraction, documented
from skescore.extractors._cart import CARTExtractor
from skescore.extractors._features import feature_indices
from skescore.extractors._input import without_vacuous_conditions
from skescore.rules import Fallback, Rule, RuleSet, with_statistics
from skescore.rules.exporters import readable_bounds


@documented
class RevisedRulesExtractor(CARTExtractor):
    """Earlier rules, some of which are replaced by a decision tree on the rows that they predict.

    All other rules keep their conditions, outputs and rows. A replaced rule becomes one rule per
    leaf of its tree. The new rules have the conditions of the earlier rule and further ones, so
    together they predict the same rows.

    Parameters
    ----------
    {estimator}
    rules : RuleSet, optional
        The earlier rules, which `fit` requires. The first matching rule predicts a row.
    changed : sequence of int, default=()
        Indices of the rules to replace. The index ``len(rules)`` stands for the rows without a
        rule, which then get rules at the end.
    max_leaf_nodes : int, default=3
        Largest number of rules that replace one rule, at least 1; 1 changes only the output.
    features : sequence of str or int, optional
        Features that further conditions may use, by name or index.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        Prediction for rows without a rule.
    abstain_label : str, int or float, optional
        Prediction of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Largest number of rows in one call of the black box.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice between equally good splits.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, with statistics of the new rows. They are ordered if the earlier rules overlap.
    origins_ : tuple of int
        Index of the earlier rule that each rule repeats or replaces.
    {sizes}
    {fitted}

    Notes
    -----
    Rules whose class is not one of the black box's classes are also replaced. Rules that predict
    no row are kept. With :meth:`set_constraints`, the further conditions satisfy the
    constraints, and rules that violate them are repaired afterwards; the repair changes other rules
    only if necessary.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import RevisedRulesExtractor
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> X = np.arange(40.0)[:, None]
    >>> model = DecisionTreeClassifier().fit(X, np.where((X[:, 0] < 10) | (X[:, 0] > 29), "a", "b"))
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=9.5)], "a"), Rule([], "b")], ["x0"],
    ...     task="classification", ordered=True,
    ... )
    >>> extractor = RevisedRulesExtractor(model, rules, changed=[1], max_leaf_nodes=2)
    >>> print(extractor.fit(X).rules_)
    1. IF x0 ≤ 9.5 THEN a   [10 rows, 100 % agree with the model]
    2. ELSE IF x0 ≤ 29 THEN b   [20 rows, 100 % agree with the model]
    3. ELSE a   [10 rows, 100 % agree with the model]
    >>> extractor.origins_
    (0, 1, 1)
    """

    def __init__(
        self,
        estimator: Any,
        rules: Any = None,
        changed: Sequence[int] = (),
        *,
        max_leaf_nodes: int = 3,
        features: Any = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            max_leaf_nodes=max_leaf_nodes,
            features=features,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )
        self.rules = rules
        self.changed = changed

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_instance("rules", self.rules, RuleSet)
        rules: RuleSet = self.rules
        rules.check_one_rule_per_row("A revision")
        unknown = [k for k in self.changed if not 0 <= k <= len(rules)]
        if unknown:
            raise ValueError(
                f"changed must hold indices of {len(rules)} rules, or {len(rules)} for the rows "
                f"without a rule, got {unknown[0]!r}."
            )

    def _extract_rules(self, extraction: Extraction) -> RuleSet:
        """Replace the changed rules by rules extracted from their rows, and keep the others."""
        earlier = self._check_rules(extraction)
        rows = self._encoder.decode(extraction.X) if self._encoder else extraction.X
        group = np.asarray(earlier.assign(rows))
        group[group < 0] = len(earlier)
        changed = self._rules_to_replace(earlier, extraction)
        is_ordered = not earlier.disjoint or len(earlier) in changed
        rules: list[Rule] = []
        origins: list[int] = []
        for k in [*(earlier.assignment_order if is_ordered else range(len(earlier))), len(earlier)]:
            leaves = None
            if k in changed and (group == k).any():
                leaves = self._extract_group(int(k), extraction, group == k)
                leaves = leaves if is_ordered else leaves.standalone()
            new_rules = _replacements(earlier, int(k), leaves)
            rules += new_rules
            origins += [int(k)] * len(new_rules)
        self.origins_ = tuple(origins)
        settings = extraction.settings | {"fallback": self._fallback_of(earlier, extraction)}
        revised = RuleSet(
            rules, ordered=is_ordered, disjoint=not is_ordered, reference="black_box", **settings
        )
        labels = extraction.predictions
        if extraction.classes is not None:
            labels = extraction.classes[labels]
        return with_statistics(revised, rows, labels)

    def _check_rules(self, extraction: Extraction) -> RuleSet:
        """Return the earlier rules; raise a ValueError if they do not suit the rows."""
        rules: RuleSet = self.rules
        names = list(map(str, extraction.settings["feature_names"]))
        if rules.task != extraction.task or list(rules.feature_names) != names:
            raise ValueError(
                f"rules must be for {extraction.task} on the features {names}, got rules for "
                f"{rules.task} on {list(rules.feature_names)}. Pass the same columns."
            )
        return rules

    def _rules_to_replace(self, earlier: RuleSet, extraction: Extraction) -> set[int]:
        """Return the indices of `changed`, and of rules whose class no longer exists."""
        classes = extraction.settings["classes"]
        changed = set(map(int, self.changed))
        if classes is not None:
            changed |= {k for k, rule in enumerate(earlier.rules) if rule.output not in classes}
        return changed

    def _extract_group(self, k: int, extraction: Extraction, is_member: np.ndarray) -> RuleSet:
        """Extract rules on the rows that an earlier rule predicts."""
        part = replace(
            extraction,
            X=extraction.X[is_member],
            predictions=extraction.predictions[is_member],
            # Results must not be shared with the rows of other groups.
            query_rows=("revised", k, str(self.rules), extraction.query_rows),
        )
        constraints = self._constraints
        with warnings.catch_warnings():
            # Other rules may predict the classes that these rules do not.
            warnings.filterwarnings("ignore", "max_leaf_nodes=.* is less than the")
            names = part.settings["feature_names"]
            chosen = None if self.features is None else feature_indices(self.features, names)
            if constraints is None:
                leaves = self._learn_on_features(part, chosen)
            else:
                leaves = self._learn_constrained(part, chosen, constraints)
        leaves = without_vacuous_conditions(leaves)
        if constraints is not None and constraints.thresholds:
            return leaves
        return readable_bounds(leaves, part.X)

    def _refit_fallback(self, X: Any, extraction: Extraction, n_rows: int) -> None:
        """Fit the fallback again if `changed` includes it."""
        if len(self.rules) in self.changed:
            super()._refit_fallback(X, extraction, n_rows)

    def _enforce_constraints(self, X: Any, extraction: Extraction, labels: np.ndarray) -> None:
        """Repair the rules where they violate constraints, and update their origins."""
        extracted = self.rules_
        super()._enforce_constraints(X, extraction, labels)
        if self.rules_.rules != extracted.rules:
            rows = X if self._encoder else extraction.X[: len(labels)]
            n_earlier = len(self.rules)
            self.origins_ = _origins_of(self.rules_, extracted, self.origins_, n_earlier, rows)

    def _other_constrained_rules(
        self, extraction: Extraction, rows: Any, labels: np.ndarray, native: Collection[str]
    ) -> list[ConstrainedRules]:
        """Return no rules, because the rules are not the leaves of a single tree."""
        return []

    def _fallback_of(self, earlier: RuleSet, extraction: Extraction) -> Fallback:
        """Return the fallback with the earlier prediction, if its class still exists."""
        fallback: Fallback = extraction.settings["fallback"]
        classes = extraction.settings["classes"]
        if earlier.fallback is None or len(earlier) in self.changed:
            return fallback
        if classes is not None and earlier.fallback.output not in classes:
            return fallback
        return replace(fallback, output=earlier.fallback.output)


def _replacements(earlier: RuleSet, k: int, leaves: RuleSet | None) -> list[Rule]:
    """Return the rules for the rows of an earlier rule; the rule itself if there are none."""
    conditions = earlier.rules[k].conditions if k < len(earlier) else ()
    if leaves is None:
        return [Rule(conditions, earlier.rules[k].output)] if k < len(earlier) else []
    return [Rule((*conditions, *leaf.conditions), leaf.output) for leaf in leaves.rules]


def _origins_of(
    repaired: RuleSet, extracted: RuleSet, origins: Sequence[int], n_earlier: int, rows: Any
) -> tuple[int, ...]:
    """Return the index of the earlier rule that each repaired rule comes from.

    A rule that was repaired gets the origin of most of its rows; without rows, `n_earlier`.
    """
    old_index, new_index = np.asarray(extracted.assign(rows)), np.asarray(repaired.assign(rows))
    origin_of_rows = np.where(old_index < 0, n_earlier, np.append(origins, n_earlier)[old_index])
    texts = [(rule.conditions, rule.output) for rule in extracted.rules]
    result = []
    for index, rule in enumerate(repaired.rules):
        if (rule.conditions, rule.output) in texts:
            result.append(origins[texts.index((rule.conditions, rule.output))])
            continue
        counts = np.bincount(origin_of_rows[new_index == index])
        result.append(int(counts.argmax()) if len(counts) else n_earlier)
    return tuple(result)
