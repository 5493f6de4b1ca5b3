"""Revision of rules: replace the rules whose error rate has risen, and keep the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from skescore._text import plural
from skescore._validation import check_number
from skescore.constraints import RejectedRulesError, UndecidableError, Violation, violations
from skescore.extractors import RevisedRulesExtractor
from skescore.monitoring._baseline import RuleBaseline
from skescore.monitoring._monitor import RuleChange, RuleMonitor
from skescore.rules import RuleSet, as_ruleset

if TYPE_CHECKING:
    import pandas as pd

    from skescore.tuning import ExtractorSearchCV

__all__ = ["MAX_COST", "Revision", "find_changes", "revise_rules"]

#: Default for the largest share of the score that unchanged rules may cost.
MAX_COST = 0.02
#: Numbers of rules that may replace one rule.
_SIZES = (1, 2, 3, 4, 6, 8)
#: Kinds of changes after which a rule is extracted again; others concern rows, not the rule.
_EXTRACTED_AGAIN = ("error", "disagreement")
#: Name of the batch with the rows of a search.
_NEW_ROWS = "new rows"


@dataclass(frozen=True, eq=False)
class Revision:
    """Earlier rules that were revised on new rows, compared with the rules of a search on them.

    Attributes
    ----------
    earlier : RuleSet
        Rules before the revision.
    changes : tuple of RuleChange
        Changes of the earlier rules on the new rows.
    changed : tuple of int
        Indices of the rules to replace; the number of rules stands for uncovered rows.
    extractor : RevisedRulesExtractor
        Extractor of the revised rules, fitted on all new rows.
    score, search_score : float
        Score of the revised rules, and of the search's best candidate, on held-out new rows.
    max_cost : float
        Largest share of the score that keeping rules may cost.
    is_limited : bool
        Whether better revised rules were rejected because they exceed the search's `max_rules`.
    violations : tuple of Violation
        Violations of the search's constraints by the earlier rules on the new rows.
    rejection : str
        Reason why no revised rules satisfy the constraints, or an empty string. Without revised
        rules there is no extractor, and the score is -inf.
    """

    earlier: RuleSet
    changes: tuple[RuleChange, ...]
    changed: tuple[int, ...]
    extractor: RevisedRulesExtractor | None
    score: float
    search_score: float
    max_cost: float
    is_limited: bool = False
    violations: tuple[Violation, ...] = ()
    rejection: str = ""

    @property
    def rules(self) -> RuleSet:
        """Revised rules.

        Raises
        ------
        ValueError
            If no revised rules satisfy the constraints.
        """
        if self.extractor is None:
            raise ValueError(f"There are no revised rules. {self.rejection}")
        rules: RuleSet = self.extractor.rules_
        return rules

    @property
    def cost(self) -> float:
        """Share of the score that the revised rules lose compared with the rules of the search."""
        if self.score >= self.search_score:
            return 0.0
        return (self.search_score - self.score) / max(abs(self.search_score), 1e-12)

    @property
    def is_accepted(self) -> bool:
        """Whether the revised rules cost no more than `max_cost`."""
        return self.cost <= self.max_cost

    def to_frame(self) -> pd.DataFrame:
        """Return one row per earlier rule: whether it is kept, the reason, and its new rules."""
        import pandas as pd

        lines = []
        is_used = self.extractor is not None and self.is_accepted
        origins = np.array([] if self.extractor is None else self.extractor.origins_)
        for k in range(len(self.earlier) + 1):
            name = f"rule {k + 1}" if k < len(self.earlier) else "no rule"
            new_numbers = (np.flatnonzero(origins == k) + 1).tolist()
            reasons = [_describe(change) for change in self.changes if change.rule == name]
            reasons += [
                f"violates {v.constraint}: {v.evidence}"
                for v in self.violations
                if v.rule_index == k
            ]
            if name == "no rule" and not new_numbers:
                continue
            lines.append(
                {
                    "rule": name,
                    "text": self.earlier.line(k) if k < len(self.earlier) else "no rule",
                    "status": self._status(k, new_numbers),
                    "new_rules": new_numbers if is_used else [],
                    "reason": "; ".join(reasons),
                }
            )
        return pd.DataFrame(lines).set_index("rule")

    def _status(self, k: int, new_numbers: Sequence[int]) -> str:
        """Describe the outcome for an earlier rule."""
        if self.extractor is None:
            return "not revised"
        if not self.is_accepted:
            return "replaced"
        if self._is_repeated(k, new_numbers):
            return "extracted again, unchanged" if k in self.changed else "kept"
        if not new_numbers and self._is_repaired:
            return "dropped to satisfy the constraints"
        is_new = k in self.changed or not self._is_repaired
        return "extracted again" if is_new else "adapted to the constraints"

    @property
    def _is_repaired(self) -> bool:
        """Whether any revised rule violated a constraint before it was repaired."""
        constrained = getattr(self.extractor, "constrained_rules_", None)
        return constrained is not None and constrained.n_repaired > 0

    def _is_repeated(self, k: int, new_numbers: Sequence[int]) -> bool:
        """Return whether an earlier rule is among the revised ones, unchanged."""
        if len(new_numbers) != 1 or k == len(self.earlier):
            return False
        one, other = self.earlier.rules[k], self.rules.rules[new_numbers[0] - 1]
        return one.conditions == other.conditions and one.output == other.output

    def to_dict(self) -> dict[str, Any]:
        """Return the revision as JSON data."""
        return {
            "is_accepted": self.is_accepted,
            "score": _finite(self.score),
            "search_score": self.search_score,
            "cost": _finite(self.cost),
            "max_cost": self.max_cost,
            "rules": self.to_frame().reset_index().to_dict(orient="records"),
            "changes": [change.to_dict() for change in self.changes],
            "violations": [str(violation) for violation in self.violations],
            "rejection": self.rejection,
        }

    def __str__(self) -> str:
        """Describe the revision, one line per earlier rule."""
        frame = self.to_frame()
        lines = []
        for name, line in frame.iterrows():
            numbers = line["new_rules"]
            text = f"{name} is {line['status']}"
            if numbers:
                text += f", as rule{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
            lines.append(f"{text} ({line['reason']})" if line["reason"] else text)
        lines += [
            f"the earlier rules violate {violation.constraint}: {violation.evidence}"
            for violation in self.violations
            if violation.rule_index is None or violation.rule_index < 0
        ]
        return "\n".join([*lines, self._verdict()])

    def _verdict(self) -> str:
        """State whether the revised rules are used, with the reason."""
        origins = np.array([] if self.extractor is None else self.extractor.origins_)
        n_kept = sum(
            k not in self.changed
            and self._is_repeated(k, (np.flatnonzero(origins == k) + 1).tolist())
            for k in range(len(self.earlier))
        )
        if self.rejection:
            return f"no revised rules satisfy the constraints: all rules are new. {self.rejection}"
        if math.isinf(self.score):
            return "all revised rules exceed the largest number of rules: all rules are new"
        share = f"{self.cost:.1%} of the score on held-out rows"
        verdict = f"keeping {plural(n_kept, 'rule')} would cost {share}, "
        if self.is_accepted:
            verdict = f"keeping {plural(n_kept, 'rule')} costs {share}, "
            verdict += f"at most the allowed {self.max_cost:.1%}: the revised rules are used"
        else:
            verdict += f"more than the allowed {self.max_cost:.1%}: all rules are new"
        if self.is_limited:
            verdict += "; better revised rules exceed the largest number of rules"
        return verdict


def _finite(value: float) -> float | None:
    """Replace an infinite number by None."""
    return value if math.isfinite(value) else None


def _describe(change: RuleChange) -> str:
    """Describe a change without the name of its rule."""
    low, high = change.rate_interval
    start = f"batch {change.since['batch']}"
    if change.since["batch"] == _NEW_ROWS:
        start = f"row {change.since['row']} of the new rows"
    return (
        f"{change.kind} {change.baseline_rate:.3g} -> {change.rate:.3g} [{low:.3g}, {high:.3g}] "
        f"since {start}, false alarm probability at most {change.false_alarm_probability:.2g}"
    )


def find_changes(
    rules: Any, baseline: RuleBaseline, search: ExtractorSearchCV, *, alpha: float = 0.05
) -> list[RuleChange]:
    """Return the changes of the rates of rules on the rows of a search.

    Parameters
    ----------
    rules : RuleSet
        Earlier rules, which were not extracted from these rows.
    baseline : RuleBaseline
        Held-out counts of the rules.
    search : ExtractorSearchCV
        A finished search on new rows. Without labels, the predictions of the black box are used.
    alpha : float, default=0.05
        Largest probability that unchanged rules are reported.

    Returns
    -------
    list of RuleChange

    Raises
    ------
    ValueError
        If the search has labels but the baseline has none, or if the search has no labels and the
        baseline no predictions of a model.
    """
    data = search.data_
    kind = "disagreement" if data.y is None else "error"
    available = RuleMonitor(rules, baseline).kinds
    kinds = [kind, *(name for name in available if name not in _EXTRACTED_AGAIN)]
    monitor = RuleMonitor(rules, baseline, alpha=alpha, kinds=kinds)
    labels: dict[str, Any] = {
        "y" if kind == "error" else "model_predictions": np.asarray(data.target)
    }
    monitor.update(data.X, **labels, batch=_NEW_ROWS)
    return monitor.changes()


def revise_rules(
    search: ExtractorSearchCV,
    rules: Any,
    baseline: RuleBaseline | None = None,
    *,
    changes: Sequence[RuleChange] | None = None,
    max_cost: float = MAX_COST,
) -> Revision:
    """Replace the rules whose error rate has risen, and keep the others unchanged.

    Parameters
    ----------
    search : ExtractorSearchCV
        A finished search on new rows. The alternative is its best candidate, whose rules are all
        new.
    rules : RuleSet
        Earlier rules, one of which predicts each row.
    baseline : RuleBaseline, optional
        Held-out counts of the rules; required without `changes`.
    changes : sequence of RuleChange, optional
        Changes reported by :func:`find_changes` or :meth:`RuleMonitor.changes`; by default those on
        the rows of the search. Rules whose error or disagreement has changed, and has not returned
        to normal, are extracted again.
    max_cost : float, default=0.02
        Largest share of the score of the search that keeping rules may cost on held-out rows.

    Returns
    -------
    Revision
        Revised rules of the size with the best score that satisfy the constraints of the search.
        Kept rules that violate them are repaired; if that is impossible, all rules are new. If
        :attr:`Revision.is_accepted`, ``search.adopt(revision.extractor)`` makes them the result of
        the search.

    Raises
    ------
    ValueError
        If there are neither changes nor a baseline, or the rules do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore import ExtractorSearchCV
    >>> from skescore.monitoring import RuleBaseline, revise_rules
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=0.3)], "a"), Rule([Interval(0, upper=0.6)], "b"),
    ...      Rule([], "a")],
    ...     ["x0"], task="classification", ordered=True,
    ... )
    >>> X = np.random.default_rng(0).uniform(size=(600, 1)).round(3)
    >>> baseline = RuleBaseline.from_rows(rules, X, rules.predict(X))
    >>> y = np.where(X[:, 0] > 0.8, "b", rules.predict(X))  # the last rule has changed
    >>> search = ExtractorSearchCV(
    ...     DecisionTreeClassifier(random_state=0), extractors=["cart"], n_trials=3, cv=3,
    ...     random_state=0,
    ... ).fit(X, y)
    >>> revision = revise_rules(search, rules, baseline)
    >>> revision.to_frame()[["status", "new_rules"]].to_dict(orient="index")["rule 3"]
    {'status': 'extracted again', 'new_rules': [3, 4]}
    >>> revision.is_accepted, len(revision.rules)
    (True, 4)
    """
    ruleset = as_ruleset(rules)
    max_cost = check_number("max_cost", max_cost, 0.0)
    if changes is None:
        if baseline is None:
            raise ValueError(
                "revise_rules needs the changes of the rules, or a baseline to find them. Pass "
                "baseline=RuleBaseline.from_rows(rules, X, y) of held-out rows."
            )
        changes = find_changes(ruleset, baseline, search)
    changed = _rules_to_replace(ruleset, changes)
    violated = _violations(ruleset, search)
    search_score = float(search.held_out_scores([search.leaderboard_.iloc[0]]).mean())
    extractors = _candidates(search, ruleset, changed)
    scores, rejections = _scores(search, extractors)
    max_rules = math.inf if search.max_rules is None else search.max_rules
    best, score, n_too_large = None, -math.inf, 0
    for index in np.argsort(-np.round(scores, 12), kind="stable").tolist():
        if math.isinf(scores[index]):
            break
        try:
            extractor = _fit_on_all_rows(extractors[index], search)
        except RejectedRulesError as error:
            rejections.append(str(error))
            continue
        best = best or extractor
        if len(extractor.rules_) <= max_rules:
            best, score = extractor, float(scores[index])
            break
        n_too_large += 1
    return Revision(
        ruleset,
        tuple(changes),
        changed,
        best,
        score,
        search_score,
        float(max_cost),
        is_limited=n_too_large > 0,
        violations=violated,
        rejection="" if best is not None else rejections[0],
    )


def _candidates(
    search: ExtractorSearchCV, ruleset: RuleSet, changed: tuple[int, ...]
) -> list[RevisedRulesExtractor]:
    """Return extractors of revised rules of all sizes, under the constraints of the search."""
    extractors = [
        RevisedRulesExtractor(
            search.estimator,
            ruleset,
            changed,
            max_leaf_nodes=size,
            features=search.features,
            random_state=search.extractor_seed_,
        )
        for size in (_SIZES if changed else _SIZES[:1])
    ]
    if search.constraints is not None:
        for extractor in extractors:
            extractor.set_constraints(search.candidate_constraints)
    return extractors


def _scores(
    search: ExtractorSearchCV, extractors: Sequence[RevisedRulesExtractor]
) -> tuple[list[float], list[str]]:
    """Return scores on held-out rows, -inf for rejected rules, and the reasons of rejection."""
    scores, rejections = [], []
    for extractor in extractors:
        try:
            scores.append(float(search.held_out_scores([extractor]).mean()))
        except RejectedRulesError as error:
            scores.append(-math.inf)
            rejections.append(str(error))
    return scores, rejections


def _violations(ruleset: RuleSet, search: ExtractorSearchCV) -> tuple[Violation, ...]:
    """Return the violations of a search's constraints by rules on its rows."""
    if search.constraints is None:
        return ()
    rows = search.data_.X
    labels = search.best_extractor_.oracle_.query(rows)
    try:
        return tuple(violations(ruleset, search.constraints, rows, labels))
    except UndecidableError as error:
        label = f"constraints that cannot be decided for these rules ({error})"
        return (Violation(label, None, str(error), "Use fewer or simpler rules."),)


def _rules_to_replace(ruleset: RuleSet, changes: Sequence[RuleChange]) -> tuple[int, ...]:
    """Return the indices of the rules whose error or disagreement has changed."""
    numbers = {f"rule {k + 1}": k for k in range(len(ruleset))} | {"no rule": len(ruleset)}
    changed = {
        numbers[change.rule]
        for change in changes
        if change.kind in _EXTRACTED_AGAIN and change.rule in numbers and not change.has_returned
    }
    return tuple(sorted(changed))


def _fit_on_all_rows(
    extractor: RevisedRulesExtractor, search: ExtractorSearchCV
) -> RevisedRulesExtractor:
    """Fit an extractor on all rows of a search, with its black box."""
    data = search.data_
    if search.constraints is not None:
        extractor.set_constraints(search.constraints)
    if not data.is_fitted:
        model = search.best_extractor_.estimator_
        extractor.set_params(estimator=FrozenEstimator(model))
    options = {} if data.row_weights is None else {"sample_weight": data.row_weights}
    extractor.fit(data.X, None if data.y is None else data.target, **options)
    return extractor
