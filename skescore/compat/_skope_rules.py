"""Reimplementation of skope-rules 1.0.1 for current versions of scikit-learn.

Bagged classification and regression trees are fitted to the target. Each path to a leaf is a
candidate rule. Rules are selected by precision and recall on the out-of-bag rows of their tree.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skescore.compat._rule_text import Rule, replace_feature_name
from skescore.rules import Interval, RuleSet, as_ruleset
from skescore.rules import Rule as RuleOfSet

#: A rule with its precision, its recall and the number of trees that have it.
ScoredRule: TypeAlias = tuple[str, tuple[float, float, int]]
#: Names of the columns in texts of rules, by their position.
_COLUMN_NAME = "__C__{}"


class SkopeRules(BaseEstimator):
    """Classifier that describes one target class by rules with a minimum precision and recall.

    The interface and results are those of the package skope-rules 1.0.1, which does not run on
    scikit-learn 0.23 or newer.

    Parameters
    ----------
    feature_names : list of str, optional
        Names of the features in rules. By default the columns of a data frame, or ``__C__0``,
        ``__C__1``, ...
    precision_min : float, default=0.5
        Smallest precision of a selected rule on the out-of-bag rows of its tree.
    recall_min : float, default=0.01
        Smallest recall of a selected rule on the out-of-bag rows of its tree.
    n_estimators : int, default=10
        Number of classification trees, and of regression trees, for each depth.
    max_samples : int or float, default=0.8
        Number or share of rows that are drawn for each tree.
    max_samples_features : int or float, default=1.0
        Number or share of features that are drawn for each tree.
    bootstrap, bootstrap_features : bool, default=False
        Whether rows, and features, are drawn with replacement.
    max_depth : int, None or iterable of these, default=3
        Largest depth of the trees; an iterable grows `n_estimators` trees for each depth.
    max_depth_duplication : int, optional
        Depth of the partition into groups of similar rules. Only the rule with the best F1 of each
        group is kept. By default, all rules are kept.
    max_features : int, float, {"auto", "sqrt", "log2"} or None, default=1.0
        Number of features that each split considers. ``"auto"``: the square root of the number of
        features in classification trees, all features in regression trees.
    min_samples_split : int or float, default=2
        Smallest number or share of rows in a node that is split.
    n_jobs : int, default=1
        Number of processes that fit trees.
    random_state : int, RandomState or None, default=None
        Seed of the trees and of their samples.
    verbose : int, default=0
        Verbosity of fitting the trees.

    Attributes
    ----------
    rules_ : list of (str, (float, float, int))
        Selected rules by descending F1, with precision, recall and the number of trees that contain
        them. Precision and recall are means over these trees.
    rules_without_feature_names_ : list
        The same rules with the feature names ``__C__0``, ``__C__1``, ...
    estimators_, estimators_samples_, estimators_features_ : list
        Trees, and the rows and features that they were fitted on.
    max_samples_ : int
        Number of rows that are drawn for each tree.
    n_features_ : int
        Number of features.
    classes_ : ndarray
        Labels of the target.

    See Also
    --------
    skescore.as_ruleset : Converts a fitted model to a :class:`skescore.RuleSet`, which can be
        scored and exported.

    Notes
    -----
    Differences from skope-rules 1.0.1:

    - Precision and recall are measured on the out-of-bag rows of a tree, as the documentation of
      skope-rules states. With scikit-learn 0.19 or newer, skope-rules 1.0.1 measures them on other
      rows, most of which are training rows of the tree, because it negates row indices as if they
      were a boolean mask.
    - Rules with equal scores are in the order of the trees; in skope-rules, the hash seed matters.
    - Features have the names of the columns of a data frame.

    Apart from the first point, the rules and scores are equal. As in skope-rules, `sample_weight`
    changes only the target of the regression trees, so weights are not equivalent to repeated rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = SkopeRules(n_estimators=5, random_state=0).fit(X, y == 2)
    >>> text, (precision, recall, n_trees) = model.rules_[0]
    >>> bool(precision > 0.9), model.predict(X[-2:]).tolist()
    (True, [1, 1])
    >>> model.get_rules().columns.tolist()
    ['rule', 'precision', 'recall', 'n_trees']
    """

    def __init__(
        self,
        feature_names: Sequence[str] | None = None,
        precision_min: float = 0.5,
        recall_min: float = 0.01,
        n_estimators: int = 10,
        max_samples: float = 0.8,
        max_samples_features: float = 1.0,
        bootstrap: bool = False,
        bootstrap_features: bool = False,
        max_depth: Any = 3,
        max_depth_duplication: int | None = None,
        max_features: Any = 1.0,
        min_samples_split: float = 2,
        n_jobs: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.feature_names = feature_names
        self.precision_min = precision_min
        self.recall_min = recall_min
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_samples_features = max_samples_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.max_depth = max_depth
        self.max_depth_duplication = max_depth_duplication
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SkopeRules:
        """Grow trees and select rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The target: 1 for the class that the rules describe, 0 for others. If there are other
            labels, those above 0 stand for the class that the rules describe.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows in the target of the regression trees.

        Returns
        -------
        SkopeRules
            The fitted model.

        Raises
        ------
        ValueError
            If y contains a single class or labels that are not numbers, or a parameter is invalid.

        Warns
        -----
        UserWarning
            If y contains other labels than 0 and 1.
        """
        given_names = getattr(X, "columns", None)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.n_features_ = X.shape[1]
        self.classes_ = np.unique(y)
        is_target = self._encode_target(y)
        self.max_samples_ = self._count_samples(len(X))
        depth = self.max_depth_duplication
        if depth is not None and (not isinstance(depth, int | np.integer) or depth < 0):
            raise ValueError(
                "max_depth_duplication must be None or an integer of 0 or more, got "
                f"{depth!r}. It is the depth of the partition of similar rules."
            )
        names = [_COLUMN_NAME.format(j) for j in range(self.n_features_)]
        self.feature_names_ = names
        self.feature_dict_ = dict(zip(names, self._shown_names(given_names), strict=True))
        self._grow(X, is_target, sample_weight)
        self.rules_without_feature_names_ = self._select(X, is_target)
        self.rules_ = [
            (replace_feature_name(text, self.feature_dict_), scores)
            for text, scores in self.rules_without_feature_names_
        ]
        self._ruleset = as_ruleset(self)
        return self

    def _encode_target(self, y: np.ndarray) -> np.ndarray:
        if len(self.classes_) < 2:
            raise ValueError(
                f"y contains one class, {self.classes_[0].item()!r}, but rules separate two. Pass "
                "rows of the target class and of others."
            )
        if not set(self.classes_.tolist()) <= {0, 1}:
            if y.dtype.kind not in "biuf":
                raise ValueError(
                    f"y must hold 0 and 1, got the labels {self.classes_.tolist()}. Convert them: "
                    "y == label."
                )
            warnings.warn(
                f"y holds the labels {self.classes_.tolist()}. Labels above 0 are the target class "
                "that rules describe, all others are the normal class.",
                UserWarning,
                stacklevel=3,
            )
        return np.asarray(y > 0).astype(int)

    def _count_samples(self, n_rows: int) -> int:
        """Return the number of rows to draw for each tree."""
        size = self.max_samples
        if isinstance(size, int | np.integer) and not isinstance(size, bool):
            if size > n_rows:
                warnings.warn(
                    f"max_samples={size} is greater than the number of rows ({n_rows}); "
                    "the number of rows is used instead.",
                    UserWarning,
                    stacklevel=3,
                )
            if size >= 1:
                return int(min(size, n_rows))
        elif isinstance(size, float | np.floating) and 0 < size <= 1:
            return int(size * n_rows)
        raise ValueError(
            f"max_samples must be a whole number of at least 1 or a share in (0, 1], got {size!r}."
        )

    def _shown_names(self, columns: Any) -> list[str]:
        if self.feature_names is not None:
            names = [str(name) for name in self.feature_names]
        elif columns is not None:
            names = [str(name) for name in columns]
        else:
            names = list(self.feature_names_)
        if len(names) != self.n_features_:
            raise ValueError(
                f"feature_names must name {self.n_features_} features, got {len(names)}."
            )
        return names

    def _grow(self, X: np.ndarray, is_target: np.ndarray, sample_weight: Any) -> None:
        """Fit the classification trees of all depths, then the regression trees."""
        several = isinstance(self.max_depth, Iterable)
        depths = list(self.max_depth) if several else [self.max_depth]
        regression_target = self._regression_target(X, is_target, sample_weight)
        self.estimators_: list[Any] = []
        self.estimators_samples_: list[np.ndarray] = []
        self.estimators_features_: list[np.ndarray] = []
        tasks: list[tuple[Any, Any, str | None, np.ndarray]] = [
            (BaggingClassifier, DecisionTreeClassifier, "sqrt", is_target)
        ]
        tasks += [(BaggingRegressor, DecisionTreeRegressor, None, regression_target)]
        for bagging, tree, automatic, target in tasks:
            max_features = automatic if self.max_features == "auto" else self.max_features
            for depth in depths:
                ensemble = bagging(
                    tree(
                        max_depth=depth,
                        max_features=max_features,
                        min_samples_split=self.min_samples_split,
                    ),
                    n_estimators=self.n_estimators,
                    max_samples=self.max_samples_,
                    max_features=self.max_samples_features,
                    bootstrap=self.bootstrap,
                    bootstrap_features=self.bootstrap_features,
                    n_jobs=self.n_jobs,
                    random_state=self.random_state,
                    verbose=self.verbose,
                ).fit(X, target)
                self.estimators_ += ensemble.estimators_
                self.estimators_samples_ += ensemble.estimators_samples_
                self.estimators_features_ += ensemble.estimators_features_

    @staticmethod
    def _regression_target(X: np.ndarray, is_target: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Return a target that weights increase for target rows and decrease for other rows."""
        if sample_weight is None:
            return is_target
        weights = _check_sample_weight(sample_weight, X)
        roots = np.sqrt(weights - weights.min())
        share = is_target.mean()
        signed = np.where(is_target == 1, 0.5 / share * roots, -roots)
        return np.asarray(1.0 / (1.0 + np.exp(-signed)))

    def _select(self, X: np.ndarray, is_target: np.ndarray) -> list[ScoredRule]:
        """Return the rules with sufficient precision and recall, sorted by descending F1.

        The rules of a tree are measured on its out-of-bag rows.
        """
        selected: dict[str, tuple[float, float, int]] = {}
        trees = zip(
            self.estimators_, self.estimators_samples_, self.estimators_features_, strict=True
        )
        for estimator, samples, features in trees:
            unseen = self._unseen_rows(np.asarray(samples), len(X))
            names = np.asarray(self.feature_names_)[features]
            texts = dict.fromkeys(self._tree_to_rules(estimator, names))
            scores = self._measure(list(texts), X[unseen], is_target[unseen])
            for text, (precision, recall) in zip(texts, scores, strict=True):
                if precision >= self.precision_min and recall >= self.recall_min:
                    rule = str(Rule(text))
                    selected[rule] = _update_means(selected.get(rule), precision, recall)
        rules: list[ScoredRule] = sorted(
            selected.items(), key=lambda item: item[1][:2], reverse=True
        )
        if self.max_depth_duplication is not None:
            rules = self.deduplicate(rules)
        return sorted(rules, key=self.f1_score, reverse=True)

    @staticmethod
    def _unseen_rows(samples: np.ndarray, n_rows: int) -> np.ndarray:
        """Return the out-of-bag rows of a tree, or all rows if there are none."""
        unseen = np.setdiff1d(np.arange(n_rows), samples)
        if len(unseen):
            return unseen
        warnings.warn(
            "A tree was fitted on all rows, so its rules are measured on their training rows and "
            "seem better than they are. Pass max_samples < 1.",
            UserWarning,
            stacklevel=4,
        )
        return np.arange(n_rows)

    def _measure(
        self, texts: Sequence[str], X: np.ndarray, is_target: np.ndarray
    ) -> list[tuple[float, float]]:
        """Return precision and recall of each rule; both are 0 if it covers at most one row."""
        holds = _rules_on(X.shape[1], texts).match(X)
        n_covered, n_hits = holds.sum(axis=0), holds[is_target == 1].sum(axis=0)
        n_target = int(is_target.sum())
        return [
            (float(hits / covered), float(hits / n_target)) if covered > 1 and hits else (0.0, 0.0)
            for covered, hits in zip(n_covered, n_hits, strict=True)
        ]

    def _tree_to_rules(self, tree: Any, feature_names: Sequence[str]) -> list[str]:
        """Return the path to each leaf of a fitted tree as text."""
        structure = tree.tree_

        def paths(node: int, terms: list[str]) -> Iterator[str]:
            left, right = structure.children_left[node], structure.children_right[node]
            if left == right:
                yield " and ".join(terms) or f"{feature_names[0]} == {feature_names[0]}"
                return
            name = feature_names[structure.feature[node]]
            threshold = float(structure.threshold[node])
            yield from paths(left, [*terms, f"{name} <= {threshold}"])
            yield from paths(right, [*terms, f"{name} > {threshold}"])

        return list(paths(0, []))

    # --- similar rules ----------------------------------------------------------------------------

    def deduplicate(self, rules: Sequence[ScoredRule]) -> list[ScoredRule]:
        """Select the rule with the best F1 of each group of similar rules.

        Parameters
        ----------
        rules : list of (str, (float, float, int))
            Rules in the form of ``rules_``.

        Returns
        -------
        list of (str, (float, float, int))
        """
        return [max(part, key=self.f1_score) for part in self._find_similar_rulesets(rules)]

    def f1_score(self, x: ScoredRule) -> float:
        """Return the harmonic mean of a rule's precision and recall; 0 if both are 0.

        Parameters
        ----------
        x : (str, (float, float, int))
            A rule in the form of ``rules_``.

        Returns
        -------
        float
        """
        precision, recall = x[1][:2]
        total = precision + recall
        return 2 * precision * recall / total if total > 0 else 0

    def _find_similar_rulesets(self, rules: Sequence[ScoredRule]) -> list[list[ScoredRule]]:
        """Partition rules by whether they bound their most frequent feature above or below."""
        parts: list[list[ScoredRule]] = []

        def split(part: list[ScoredRule], depth: int, used: frozenset[str]) -> None:
            counts = Counter(
                name
                for text, _ in part
                for term in text.split(" and ")
                if (name := term.split(" ")[0]) not in used
            )
            if depth == 0 or not counts:
                parts.extend([part] if part else [])
                return
            name = counts.most_common(1)[0][0]
            branches: tuple[list[ScoredRule], ...] = ([], [], [])
            for rule in part:
                is_below, is_above = f"{name} <=" in rule[0], f"{name} >" in rule[0]
                branches[0 if is_below else 1 if is_above else 2].append(rule)
            for branch in branches:
                split(branch, depth - 1, used | {name})

        split(list(rules), self.max_depth_duplication or 0, frozenset())
        return parts

    # --- predicting -------------------------------------------------------------------------------

    def _matches(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "rules_")
        return self._ruleset.match(validate_data(self, X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """Predict whether any selected rule covers a row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            1 for the target class, else 0.
        """
        return np.asarray(self.decision_function(X) > 0).astype(int)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the sum of the precisions of the rules that cover a row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of float of shape (n_rows,)
        """
        precisions = [scores[0] for _, scores in self._fitted_rules()]
        return np.asarray(self._matches(X) @ np.asarray(precisions, dtype=float))

    def rules_vote(self, X: Any) -> np.ndarray:
        """Return the number of rules that cover a row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of float of shape (n_rows,)
        """
        return self._matches(X).sum(axis=1).astype(float)

    def score_top_rules(self, X: Any) -> np.ndarray:
        """Return the number of selected rules minus the index of the first that covers a row, or 0.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of float of shape (n_rows,)
        """
        holds = self._matches(X)
        ranks = np.arange(holds.shape[1], 0, -1.0)
        return np.asarray((holds * ranks).max(axis=1, initial=0.0))

    def predict_top_rules(self, X: Any, n_rules: int) -> np.ndarray:
        """Predict whether any of the first `n_rules` rules covers a row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        n_rules : int
            Number of rules.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            1 for the target class, else 0.
        """
        threshold = len(self._fitted_rules()) - n_rules
        return np.asarray(self.score_top_rules(X) > threshold).astype(int)

    def decision_path(self, X: Any) -> np.ndarray:
        """Return a mask of the rules that cover each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_rules)
        """
        return self._matches(X)

    def get_rules(self) -> pd.DataFrame:
        """Return the selected rules as a data frame.

        Returns
        -------
        DataFrame
            With the columns ``rule``, ``precision``, ``recall`` and ``n_trees``.
        """
        rows = [(text, *scores) for text, scores in self._fitted_rules(shown=True)]
        return pd.DataFrame(rows, columns=["rule", "precision", "recall", "n_trees"])

    def _fitted_rules(self, *, shown: bool = False) -> list[ScoredRule]:
        check_is_fitted(self, "rules_")
        return self.rules_ if shown else self.rules_without_feature_names_


def _update_means(
    scores: tuple[float, float, int] | None, precision: float, recall: float
) -> tuple[float, float, int]:
    """Update the means of precision and recall, and the number of trees, by one more tree."""
    if scores is None:
        return precision, recall, 1
    mean_precision, mean_recall, n_trees = scores
    n_trees += 1
    return (
        mean_precision + (precision - mean_precision) / n_trees,
        mean_recall + (recall - mean_recall) / n_trees,
        n_trees,
    )


def _rules_on(n_features: int, texts: Sequence[str]) -> RuleSet:
    """Convert rules with internal column names to a rule set, which matches all rows at once."""
    rules = []
    for text in texts:
        conditions = []
        for (name, operator), value in Rule(text).terms.items():
            feature = int(name.removeprefix(_COLUMN_NAME.format("")))
            if operator == "<=":
                conditions.append(Interval(feature, upper=float(value)))
            elif operator == ">":
                conditions.append(Interval(feature, lower=float(value)))
        rules.append(RuleOfSet(tuple(conditions), 1))
    names = [_COLUMN_NAME.format(j) for j in range(n_features)]
    return RuleSet(rules, names, task="classification", classes=[0, 1], ordered=False)
