"""Extractors with one fault each; `fault` names the check that is meant for it.

They live in a module of their own so that another process can import them.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import numpy as np
from duck_extractor import OneCut
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.rules import Domain, Fallback, RuleSet


class Sound(CARTExtractor):
    """A tree with the parameters that the faults need."""

    fault = ""
    kind = "classification"

    def __init__(
        self,
        estimator,
        *,
        max_leaf_nodes=6,
        uncovered="default",
        abstain_label=None,
        batch_size=None,
        random_state=None,
    ):
        super().__init__(
            estimator,
            max_leaf_nodes=max_leaf_nodes,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )

    def extracted_with(self, extraction, **parameters):
        """Return the rules of other parameters without changing the own ones."""
        retained = {name: getattr(self, name) for name in parameters}
        for name, value in parameters.items():
            setattr(self, name, value)
        rules = super()._extract(extraction)
        for name, value in retained.items():
            setattr(self, name, value)
        return rules


class SoundGrid(GridExExtractor):
    """A grid that leaves cells empty, so that some rows have no rule."""

    fault = ""
    kind = "regression"

    def __init__(
        self,
        estimator,
        *,
        uncovered="default",
        abstain_label=None,
        batch_size=None,
        random_state=None,
    ):
        super().__init__(
            estimator,
            n_slices=4,
            depth=1,
            threshold=0.01,
            max_rules=None,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )


# --- the interface ---


class ConvertsParameters(Sound):
    fault = "check_parameters"

    def __init__(self, estimator, *, max_leaf_nodes=6, uncovered="default", random_state=None):
        super().__init__(
            estimator,
            max_leaf_nodes=int(max_leaf_nodes),
            uncovered=uncovered,
            random_state=random_state,
        )


class UsesUpAParameter(Sound):
    fault = "check_fit_changes_no_parameter"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.batch_size = 1000
        return self


class WritesIntoTheFrame(Sound):
    fault = "check_fit_changes_no_data"

    def fit(self, X, y=None):
        super().fit(X, y)
        if hasattr(X, "columns"):
            X["answer"] = self.oracle_.query(X)
        return self


class HasRulesBeforeFit(Sound):
    fault = "check_unfitted"

    @property
    def n_rules_(self):
        return len(getattr(self, "rules_", ()))


class ClonesStayFitted(Sound):
    fault = "check_clone"

    def __sklearn_clone__(self):
        copied = copy.copy(self)
        copied.estimator = clone(self.estimator)
        return copied


class HidesItsKind(Sound):
    fault = "check_kind"
    kind = "regression"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        return tags


class TurnsClassesRound(Sound):
    fault = "check_rules"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.classes_ = self.classes_[::-1]
        return self


class ShrinksTheDomain(Sound):
    fault = "check_domain"

    def fit(self, X, y=None):
        super().fit(X, y)
        lower, upper = np.array(self.rules_.domain.lower), np.array(self.rules_.domain.upper)
        margin = 0.01 * (upper - lower)
        self.rules_ = self.rules_.replace(domain=Domain(lower + margin, upper - margin))
        return self


class CountsTheFallback(Sound):
    fault = "check_sizes"

    @property
    def n_rules_(self):
        check_is_fitted(self, "rules_")
        return len(self.rules_) + 1


class RemembersTheFirstFit(Sound):
    fault = "check_second_fit"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.rules_ = self.__dict__.setdefault("_first", self.rules_)
        return self


class HalvesProbabilities(Sound):
    fault = "check_probabilities"

    def predict_proba(self, X):
        return super().predict_proba(X) / 2


class ListsRules(OneCut):
    """Extractor whose `rules_` is a list of texts, which other checks do not examine."""

    fault = "check_rules"
    kind = "classification"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.rules_ = [rule.to_text() for rule in self.rules_]
        return self


# --- predictions ---


class ContradictsARule(Sound):
    fault = "check_predictions_follow_rules"

    def predict(self, X):
        answers = super().predict(X)
        rows = np.asarray(X, dtype=float)
        first = self.rules_.assign(rows) == 0
        if len(self.rules_) > 1:
            answers[first] = self.classes_[self.classes_ != self.rules_[0].output][0]
        return answers


class HasNoAnswerWithoutARule(SoundGrid):
    fault = "check_uncovered_rows"

    def predict(self, X):
        answers = super().predict(X)
        if self.uncovered == "default":
            answers[~self.covers(X)] = np.nan
        return answers


class IgnoresThePolicy(SoundGrid):
    fault = "check_uncovered_policies"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.rules_ = self.rules_.replace(fallback=Fallback(self.rules_.fallback.output))
        return self


class AsksInPredict(Sound):
    fault = "check_queries_no_black_box"

    def predict(self, X):
        answers = super().predict(X)
        self.oracle_.query(X, cache=False)
        return answers


class IgnoresWeights(Sound):
    fault = "check_score"

    def score(self, X, y, sample_weight=None):
        return super().score(X, y)


class PraisesItself(Sound):
    fault = "check_fidelity"

    def fidelity(self, X):
        check_is_fitted(self, "rules_")
        return 1.0


class AnswersNumbersForTruthValues(Sound):
    fault = "check_labels"

    def predict(self, X):
        answers = super().predict(X)
        return answers.astype(int) if answers.dtype == bool else answers


class ForgetfulRules(RuleSet):
    """Rules that omit the last rule in JSON."""

    def to_json(self, *args: Any, **options: Any) -> str:
        return RuleSet.to_json(RuleSet.replace(self, rules=self.rules[:-1]), *args, **options)


class WritesHalfDown(Sound):
    fault = "check_json"

    def fit(self, X, y=None):
        super().fit(X, y)
        rules = self.rules_
        self.rules_ = ForgetfulRules.__new__(ForgetfulRules)
        for name, value in vars(rules).items():
            object.__setattr__(self.rules_, name, value)
        return self


# --- black boxes ---


class FitsTheCallersModel(Sound):
    fault = "check_unfitted_black_box"

    def _fit_black_box(self, X, y, *rest):
        return self.estimator if y is None else self.estimator.fit(X, y)


class RefitsAFrozenModel(Sound):
    fault = "check_frozen_black_box"

    def _fit_black_box(self, X, y, *rest):
        if isinstance(self.estimator, FrozenEstimator) and y is not None:
            return clone(self.estimator.estimator).fit(X, y)
        return super()._fit_black_box(X, y, *rest)


class NeedsATarget(Sound):
    fault = "check_fitted_black_box_without_target"

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("y is needed.")
        return super().fit(X, y)


class LooksForTraceOfFit(Sound):
    fault = "check_callable_black_box"

    def fit(self, X, y=None):
        super().fit(X, y)
        model = getattr(self.estimator_, "estimator", self.estimator_)
        if not any(name.endswith("_") for name in vars(model)):
            raise NotFittedError("The black box shows no trace of fit.")
        return self


class StripsTheFrame(Sound):
    fault = "check_container"

    def _fit_black_box(self, X, y, *rest):
        return super()._fit_black_box(np.asarray(X), y, *rest)


# --- determinism ---

_COUNT = itertools.count()


class NeverTwiceTheSame(Sound):
    fault = "check_reproducible"

    def _extract(self, extraction):
        return self.extracted_with(extraction, max_leaf_nodes=2 + next(_COUNT) % 3)


class SeedsTheWorld(Sound):
    fault = "check_global_random_state"

    def fit(self, X, y=None):
        np.random.seed(0)
        return super().fit(X, y)


class DependsOnBatches(Sound):
    fault = "check_batch_size"

    def _extract(self, extraction):
        return self.extracted_with(extraction, max_leaf_nodes=2 if self.batch_size == 13 else 6)


class DependsOnWorkers(Sound):
    fault = "check_n_jobs"

    def __init__(self, estimator, *, uncovered="default", random_state=None, n_jobs=None):
        super().__init__(estimator, uncovered=uncovered, random_state=random_state)
        self.n_jobs = n_jobs

    def _extract(self, extraction):
        return self.extracted_with(extraction, max_leaf_nodes=2 if self.n_jobs == 2 else 6)


class DependsOnTheHashSeed(Sound):
    fault = "check_hash_seed"

    def _extract(self, extraction):
        # These two come out in another order with the hash seed 1 than with 2.
        first = next(iter({"x1", "y1"}))
        return self.extracted_with(extraction, max_leaf_nodes=2 if first == "x1" else 3)


# --- rows ---


class ForgetsNames(Sound):
    fault = "check_feature_names"

    def fit(self, X, y=None):
        super().fit(X, y)
        names = [f"x{j}" for j in range(self.n_features_in_)]
        self.rules_ = self.rules_.replace(feature_names=names)
        return self


class MixesColumnsUp(Sound):
    fault = "check_column_order"

    def _rows(self, X):
        if hasattr(X, "columns"):
            X = X.set_axis(self.feature_names_in_, axis=1)
        return super()._rows(X)


class FillsHoles(Sound):
    fault = "check_missing_values"

    def _rows(self, X):
        check_is_fitted(self, "rules_")
        return super()._rows(X if hasattr(X, "columns") else np.nan_to_num(X))


class CutsColumnsOff(Sound):
    fault = "check_number_of_columns"

    def _rows(self, X):
        check_is_fitted(self, "rules_")
        if not hasattr(X, "columns") and np.ndim(X) == 2:
            X = np.asarray(X)[:, : self.n_features_in_]
        return super()._rows(X)


class CutsRowsOff(Sound):
    fault = "check_unusable_targets"

    def fit(self, X, y=None):
        return super().fit(X if y is None else X[: len(y)], y)


class DividesByTheRange(Sound):
    fault = "check_constant_features"

    def fit(self, X, y=None):
        if (np.ptp(np.asarray(X), axis=0) == 0).any():
            raise ZeroDivisionError("range")
        return super().fit(X, y)


class SaysNothing(Sound):
    fault = "check_one_prediction"

    def fit(self, X, y=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y)


class StumblesOverRepeatedRows(Sound):
    fault = "check_duplicate_rows"

    def fit(self, X, y=None):
        if len(np.unique(np.asarray(X), axis=0)) < len(X):
            raise KeyError("row")
        return super().fit(X, y)


class StumblesOverFewRows(Sound):
    fault = "check_tiny_data"

    def fit(self, X, y=None):
        if len(X) < 10:
            raise IndexError("row")
        return super().fit(X, y)


# --- scikit-learn ---


class HoldsAFunction(Sound):
    fault = "check_pickle"

    def fit(self, X, y=None):
        super().fit(X, y)
        self.function_ = lambda: 0
        return self


class DeafToTheBlackBox(Sound):
    fault = "check_grid_search"

    def set_params(self, **parameters):
        return super().set_params(
            **{k: v for k, v in parameters.items() if not k.startswith("estimator__")}
        )


class DislikesScaledRows(Sound):
    fault = "check_pipeline"

    def fit(self, X, y=None):
        if np.allclose(np.std(np.asarray(X), axis=0), 1):
            raise ArithmeticError("scaled")
        return super().fit(X, y)


def broken() -> dict[str, type]:
    """Return all of them by name."""
    kinds = [*Sound.__subclasses__(), *SoundGrid.__subclasses__(), ListsRules]
    return {kind.__name__: kind for kind in kinds}
