"""What all extractors share: the scikit-learn side, the oracle, the answers."""

from __future__ import annotations

import time
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skescore._validation import check_choice, check_integer, check_label, python_value
from skescore.extractors import _validation as check
from skescore.extractors._black_boxes import black_box_task, is_fitted
from skescore.extractors._categories import CategoryEncoder
from skescore.extractors._oracle import Oracle
from skescore.metrics._completeness import volume_completeness
from skescore.rules import Domain, Fallback, RuleSet
from skescore.rules._domain import UNCOVERED_POLICIES, default_abstain_label

# --- what the base class hands to an algorithm: the rows, the answers, and how to ask for --------


@dataclass(frozen=True, eq=False)
class Extraction:
    """All that an algorithm needs to know to extract rules.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The training rows, finite floats; categorical columns hold codes.
    answers : ndarray of shape (n_rows,)
        What the black box answered on them: class indices or floats.
    task : {"classification", "regression"}
        The kind of answers.
    classes : list or None
        Class labels.
    oracle : Oracle
        Asks the black box about further points.
    settings : dict
        The keyword parameters of the RuleSet to make.
    categories : mapping of int to tuple, default={}
        The values of each categorical feature, in the order of their codes 0, 1, ...
    decode : callable, optional
        Turns points with codes into what the black box knows.
    """

    X: np.ndarray
    answers: np.ndarray
    task: str
    classes: np.ndarray | None
    oracle: Oracle
    settings: dict[str, Any]
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    decode: Callable[[np.ndarray], Any] | None = None

    def check_magnitude(self, largest: float, why: str) -> None:
        """Raise a ValueError that names the first feature with numbers beyond `largest`.

        Parameters
        ----------
        largest : float
            What the algorithm can work with.
        why : str
            What would go wrong, to end the message.
        """
        domain = self.settings["domain"]
        extent = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        beyond = np.flatnonzero(extent > largest)
        if len(beyond):
            name = str(self.settings["feature_names"][beyond[0]])
            raise ValueError(
                f"Feature {name!r} holds numbers up to {extent[beyond[0]]:.3g}, more than "
                f"{largest:.3g}; {why}. Scale the feature."
            )

    def ask(self, points: np.ndarray, *, remember: bool = True) -> np.ndarray:
        """Ask the black box about points: class indices or floats.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            The points; codes in categorical columns.
        remember : bool, default=True
            False for the points of many small questions, see :meth:`Oracle.ask`.

        Returns
        -------
        ndarray of shape (n_points,)
            One answer per point.
        """
        shown = points if self.decode is None else self.decode(points)
        answers = self.oracle.ask(shown, remember=remember)
        if self.classes is None:
            return check.finite_answers(answers)
        return check.encode_labels(answers, self.classes)


# --- What all extractors share: the scikit-learn side, the oracle, the answers -------------------


def _is_classifier(extractor: Any) -> bool:
    return is_classifier(extractor)


class BaseExtractor(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of all extractors: a scikit-learn meta-estimator around a black box.

    A subclass implements :meth:`_extract` and :meth:`_check_parameters`, and has at least the
    parameters below.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor.
    prune : str or None
        Score to prune the rules by.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        What ``predict`` answers where no rule holds.
    abstain_label : str, int or float, optional
        Answer of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Most rows in one call of the black box.
    """

    #: Tasks that the extractor can do.
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")
    #: Share of a feature's range by which the domain box is wider than the training rows.
    _domain_margin: ClassVar[float] = 1e-9
    #: Whether columns may hold categories.
    takes_categories: ClassVar[bool] = False

    estimator: Any
    prune: str | None = None
    uncovered: str
    abstain_label: Any
    batch_size: int | None

    @abstractmethod
    def _extract(self, extraction: Extraction) -> RuleSet:
        """Learn the rules."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError or TypeError for a parameter that cannot be used."""

    # --- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn rules from what the black box answers on the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; finite numbers. CART, REAL and Trepan also take categorical and text columns
            of a DataFrame.
        y : array-like of shape (n_rows,), optional
            What the black box is fitted on: a clone of it is, unless it comes in a
            ``FrozenEstimator``. Without y the black box must be fitted already and is used as it
            is; extraction itself needs no labels.
        **fit_params
            Handed on to the black box's ``fit`` by metadata routing.

        Returns
        -------
        self
            The fitted extractor.

        Raises
        ------
        ValueError, TypeError
            If the rows, the black box or a parameter cannot be used; the message says what to do.
        """
        began = time.perf_counter()
        check_choice("uncovered", self.uncovered, UNCOVERED_POLICIES)
        if self.abstain_label is not None:
            check_label("abstain_label", self.abstain_label)
        check_integer("batch_size", self.batch_size, 1, optional=True)
        pruner = self._pruner()
        task = self._task()
        self._check_parameters()
        rows, y = self.check_input(X, y, task)
        self.estimator_ = self._fitted_black_box(X, y, fit_params)
        names = getattr(self, "feature_names_in_", None)
        self.oracle_ = Oracle(
            self.estimator_, like=X, feature_names=names, batch_size=self.batch_size
        )
        answers = self.oracle_.ask(X)
        classes = None
        if task == "classification":
            classes = self.classes_ = self._known_classes(y, answers)
            answers = check.encode_labels(answers, classes)
        else:
            self.__dict__.pop("classes_", None)  # an earlier fit may have been a classification
            answers = check.finite_answers(answers)
        settings = {
            "feature_names": [f"x{j}" for j in range(rows.shape[1])] if names is None else names,
            "task": task,
            "classes": None if classes is None else classes.tolist(),
            "domain": Domain.around(rows, self._domain_margin, self._encoder.categories),
            "fallback": self._fallback(answers, classes),
        }
        encoder = self._encoder
        extraction = Extraction(
            rows, answers, task, classes, self.oracle_, settings, encoder.categories,
            encoder.decode if encoder else None,
        )  # fmt: skip
        growing = time.perf_counter()
        self.rules_ = self._extract(extraction)
        shown = X if encoder else rows
        pruning = time.perf_counter()
        if pruner is not None:
            self.rules_ = pruner(
                self.rules_, shown, answers if classes is None else classes[answers], self.prune
            )
        ended = time.perf_counter()
        # By the names of `characteristics`, which tells them.
        self.times_ = {
            "time_total_s": ended - began, "time_growing_s": pruning - growing,
            "time_pruning_s": ended - pruning,
        }  # fmt: skip
        seen = self.rules_.conclusions.n_rows
        if self.rules_.disjoint and seen is not None:
            # Every row was counted by the one rule that holds for it.
            self.coverage_ = float(seen.sum()) / len(rows)
        else:
            self.coverage_ = float(np.mean(self.rules_.covers(shown)))
        return self

    def _pruner(self) -> Callable[..., RuleSet] | None:
        """What prunes by the score of that name; raises for a name that there is not."""
        if self.prune is None:
            return None
        # Only where asked for: most of the house stands on scores, extraction does not.
        from skescore.scorers import get_rule_scorer
        from skescore.selection._prune import prune

        try:
            get_rule_scorer(self.prune)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"prune must be None or the name of a score, got {self.prune!r}. {error}"
            ) from error
        return prune

    def _task(self) -> str:
        task = black_box_task(self.estimator)
        if task not in self.tasks:
            raise ValueError(
                f"{type(self).__name__} extracts rules for {' and '.join(self.tasks)} only, but "
                f"the black box {type(self.estimator).__name__} does {task}."
            )
        return task

    def check_input(self, X: Any, y: Any, task: str) -> tuple[np.ndarray, Any]:
        """Check rows and target before anything is fitted; learns the features' names.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or None
            The target; None needs a fitted black box.
        task : {"classification", "regression"}
            What the target must suit.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The rows as floats; codes in categorical columns.
        y : ndarray of shape (n_rows,) or None
            The target.

        Raises
        ------
        ValueError
            If they cannot be used; the message says what to do.
        """
        self._encoder = CategoryEncoder(X if self.takes_categories else None)
        check.check_columns(X, type(self).__name__, self._encoder.categories)
        if self._encoder:
            X = self._encoder.codes(X)
        options: dict[str, Any] = {"dtype": float, "ensure_min_samples": 2}
        if y is None:
            if not is_fitted(self.estimator):
                raise ValueError(
                    f"This {type(self).__name__} estimator requires y to be passed, but the "
                    "target y is None: the black box "
                    f"{type(self.estimator).__name__} is not fitted yet. Pass fit(X, y), or a "
                    "fitted black box."
                )
            if check.is_plain(X, least=2):
                # What `validate_data` would leave behind.
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
                return X, None
            return validate_data(self, X, **options), None
        rows, y = validate_data(self, X, y, y_numeric=task == "regression", **options)
        if task == "classification":
            check.check_labels(y)
            check_classification_targets(y)
            # A frozen black box learns nothing from y, so that it may be of one class.
            if len(np.unique(y)) < 2 and not isinstance(self.estimator, FrozenEstimator):
                raise ValueError(
                    f"y holds only one class, {np.unique(y).tolist()[0]!r}; rules that tell "
                    "classes apart need at least 2."
                )
        return rows, y

    def _fitted_black_box(self, X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
        if y is None:
            if fit_params:
                raise ValueError(
                    f"fit got {sorted(fit_params)} for a black box that is fitted already."
                )
            return self.estimator
        if fit_params and not sklearn.get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"fit got {sorted(fit_params)}, which is only handed on to the black box by "
                "metadata routing: sklearn.set_config(enable_metadata_routing=True) and "
                "estimator.set_fit_request(...)."
            )
        routed = process_routing(self, "fit", **fit_params) if fit_params else None
        options = routed.estimator.fit if routed is not None else {}
        # The black box sees the caller's own X: a model fitted on a frame wants one again.
        return clone(self.estimator).fit(X, y, **options)

    def _known_classes(self, y: Any, answers: np.ndarray) -> np.ndarray:
        declared = getattr(self.estimator_, "classes_", None)
        if declared is not None:
            classes = np.asarray(declared)
        else:
            classes = check.observed_classes(answers, y)
        if self.uncovered == "abstain":
            if self.abstain_label is None:
                default_abstain_label(classes.tolist())
            elif self.abstain_label in classes.tolist():
                raise ValueError(
                    f"abstain_label must be none of the classes, got {self.abstain_label!r}."
                )
        if len(answers) and (answers == answers[0]).all():
            warnings.warn(
                f"The black box answers {python_value(answers[0])!r} for all {len(answers)} rows, "
                "so one rule says it all.",
                UserWarning,
                stacklevel=3,
            )
        return classes

    def _fallback(self, answers: np.ndarray, classes: np.ndarray | None) -> Fallback:
        if classes is None:
            return Fallback(float(np.mean(answers)), self.uncovered)
        counts = np.bincount(answers, minlength=len(classes)).tolist()
        majority = classes[int(np.argmax(counts))]
        return Fallback(majority, self.uncovered, tuple(counts), self.abstain_label)

    # --- answering ---------------------------------------------------------------------------

    def _rows(self, X: Any) -> Any:
        if not hasattr(self, "rules_"):
            check_is_fitted(self, "rules_")
        names = getattr(self, "feature_names_in_", None)
        if names is None and not self._encoder and check.is_plain(X, self.n_features_in_):
            return X  # the checks take far longer than a few rules on a few rows
        if self._encoder:
            if not hasattr(X, "columns"):
                X = self._encoder.frame(X)
            validate_data(self, X, reset=False, skip_check_array=True)
            check.check_columns(X, type(self).__name__, self._encoder.categories)
            return X
        try:
            return validate_data(self, X, reset=False, dtype=float)
        except (TypeError, ValueError):
            check.check_columns(X, type(self).__name__)  # names the column and the row, if it can
            raise

    def predict(self, X: Any) -> np.ndarray:
        """Answer rows by the rules alone; the black box is not asked.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers; rows without a rule are answered as `uncovered` says.
        """
        rows = self._rows(X)
        answers = self.rules_.predict(rows)
        if self.rules_.task == "classification" and self.uncovered != "abstain":
            return answers.astype(self.classes_.dtype, copy=False)
        return answers

    @available_if(_is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class shares of the rule that answers each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        rows = self._rows(X)
        return self.rules_.predict_proba(rows)

    def covers(self, X: Any) -> np.ndarray:
        """Tell which rows some rule holds for.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
            False where ``predict`` falls back on `uncovered`.
        """
        rows = self._rows(X)
        return self.rules_.covers(rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy (classification) or R² (regression) of the rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The truth, or the black box's answers for the fidelity.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            At most 1. For scores that weigh size and completeness see :mod:`skescore.scorers`.

        Notes
        -----
        Where ``uncovered="abstain"`` gives no answer, a class counts as missed, and a number as
        answered by the mean of the black box's answers in training.
        """
        answers = self.predict(X)
        fallback = self.rules_.fallback
        if not is_classifier(self):
            if fallback is not None:
                answers = np.where(np.isnan(answers), fallback.output, answers)
            return float(r2_score(y, answers, sample_weight=sample_weight))
        if self.uncovered == "abstain" and answers.dtype.kind == "O":
            # The label may be of a kind that cannot be compared with the classes otherwise.
            y = column_or_1d(y)
            check_consistent_length(y, answers)
            y, answers = y.astype(object) == answers, np.ones(len(answers), dtype=bool)
        return float(accuracy_score(y, answers, sample_weight=sample_weight))

    def fidelity(self, X: Any) -> float:
        """Accuracy or R² of the rules against the black box's own answers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; the black box is asked about them.

        Returns
        -------
        float
            At most 1: the rules answer as the black box does.
        """
        self._rows(X)  # complains about bad rows before the black box does
        return self.score(X, self.oracle_.ask(X))

    @property
    def n_rules_(self) -> int:
        """Number of rules."""
        check_is_fitted(self, "rules_")
        return len(self.rules_)

    @property
    def completeness_(self) -> float:
        """Share of the domain box's volume that some rule covers.

        See :func:`skescore.metrics.volume_completeness` for its error bar.
        """
        check_is_fitted(self, "rules_")
        return float(volume_completeness(self.rules_))

    # --- scikit-learn ------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except (AttributeError, TypeError):  # reported by fit, which can explain it
            return tags
        tags.estimator_type = inner.estimator_type
        if inner.classifier_tags is not None:  # one output, whatever the black box could do
            tags.classifier_tags = replace(inner.classifier_tags, multi_label=False)
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags.required = not is_fitted(self.estimator)
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Say what ``fit`` hands on to the black box.

        Returns
        -------
        MetadataRouter
            What scikit-learn's metadata routing asks for.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)  # sample_weight of score
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )
