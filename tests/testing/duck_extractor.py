"""Extractor without the base class of skescore: two rules on either side of one cut."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet


class OneCut(MetaEstimatorMixin, BaseEstimator):
    """Cut at the feature whose halves have the most different predictions."""

    tasks = ("classification", "regression")

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y=None):
        for name in [n for n in vars(self) if n.endswith("_")]:
            delattr(self, name)
        if y is None:
            rows = validate_data(self, X, dtype=float)
            self.black_box_ = self._fitted()
        else:
            rows, _ = validate_data(self, X, y, dtype=float)
            self.black_box_ = clone(self.estimator).fit(X, y)
        answers = np.asarray(self.black_box_.predict(X))
        classes = None
        if is_classifier(self):
            classes = getattr(self.black_box_, "classes_", np.unique(answers))
            self.classes_ = np.asarray(classes)
            if (answers == answers[0]).all():
                warnings.warn("There is one prediction only.", UserWarning, stacklevel=2)
        names = getattr(self, "feature_names_in_", None)
        feature, cut = self._best_cut(rows, answers)
        rules = [
            Rule([condition], self._output(answers[side]))
            for condition, side in (
                (Interval(feature, upper=cut), rows[:, feature] <= cut),
                (Interval(feature, lower=cut, lower_closed=False), rows[:, feature] > cut),
            )
        ]
        self.rules_ = RuleSet(
            rules,
            feature_names=[f"x{j}" for j in range(rows.shape[1])] if names is None else names,
            task="regression" if classes is None else "classification",
            classes=None if classes is None else self.classes_.tolist(),
            domain=Domain.around(rows),
            fallback=Fallback(self._output(answers)),
        )
        return self

    def _fitted(self):
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise ValueError("Without y the black box must be fitted.") from error
        return self.estimator

    def _best_cut(self, rows, answers):
        codes = np.unique(answers, return_inverse=True)[1] if is_classifier(self) else answers
        best = None
        for j in range(rows.shape[1]):
            values = np.unique(rows[:, j])[:-1]
            for cut in values[:: max(1, len(values) // 8)]:
                left = rows[:, j] <= cut
                gap = abs(codes[left].mean() - codes[~left].mean())
                if best is None or gap > best[0]:
                    best = gap, j, float(cut)
        return best[1:]

    def _output(self, answers):
        if not is_classifier(self):
            return float(np.mean(answers))
        labels, counts = np.unique(answers, return_counts=True)
        return labels.tolist()[np.argmax(counts)]

    def _rows(self, X):
        check_is_fitted(self, "rules_")
        return validate_data(self, X, reset=False, dtype=float)

    def predict(self, X):
        rows = self._rows(X)
        answers = self.rules_.predict(rows)
        return answers.astype(self.classes_.dtype) if is_classifier(self) else answers

    def covers(self, X):
        rows = self._rows(X)
        return self.rules_.covers(rows)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags
