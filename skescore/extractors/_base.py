"""Base class of all extractors: the scikit-learn interface around an extraction algorithm."""

from __future__ import annotations

import time
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skescore._random import draw_seed
from skescore._rows import content_order, repeated_rows, take_rows
from skescore._text import T, fill_docstring
from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_is_table,
    check_label,
    plain_target,
    python_value,
    row_weights,
)
from skescore.black_boxes import (
    black_box_task,
    encode_labels,
    finite_predictions,
    fit_black_box,
    fit_weighted,
    is_fitted,
    is_prefit,
    is_unsupervised,
    observed_classes,
)
from skescore.constraints import (
    ConstrainedRules,
    Constraints,
    RejectedRulesError,
    bounds_on_steps,
    check_feasible,
    enforce,
    limited_parameters,
    most_faithful,
    native_labels,
    remaining_rows,
    step_columns,
    usable_features,
)
from skescore.extractors._features import (
    extend_to_all_features,
    feature_importances,
    feature_indices,
    important_features,
    restrict_to_features,
)
from skescore.extractors._input import (
    CategoryEncoder,
    category_order,
    check_columns,
    check_labels,
    frame_column,
    is_plain,
    name_categories,
    without_vacuous_conditions,
)
from skescore.extractors._missing import FilledTable
from skescore.extractors._oracle import Oracle, digest, fixed_rows_of
from skescore.extractors._out_of_fold import OUT_OF_FOLD, out_of_fold_predictions
from skescore.extractors._sampling import (
    N_QUERIES,
    SAMPLINGS,
    QueriedRows,
    QuerySampler,
    Sampling,
    check_sampling,
)
from skescore.metrics import volume_completeness
from skescore.rules import (
    Domain,
    Fallback,
    RowTable,
    RuleSet,
    convert_rows,
    with_row_weights,
    with_statistics,
    with_target,
)
from skescore.rules._domain import UNCOVERED_POLICIES, default_abstain_label, label_array
from skescore.rules.exporters import readable_bounds, readable_outputs
from skescore.rules.simplification import shorten_counts, without_covered_values

#: Smaller weights would lose digits, or become 0, when they are divided.
_MIN_WEIGHT = 1e-290
#: Number of rows on which a permutation of a feature is tried before all rows.
_FIRST_PERMUTED_ROWS = 64


class _CheckedRows(NamedTuple):
    """Checked rows: the encoder of their categories, the rows as floats, and their column names."""

    encoder: CategoryEncoder
    rows: np.ndarray
    names: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Extraction:
    """Input of an extraction algorithm.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The training rows as floats; categorical columns hold codes. Unless the algorithm supports
        NaN, missing values are filled in, and additional columns at the end mark missing numbers.
    predictions : ndarray of shape (n_rows,)
        Predictions of the black box: class indices or floats.
    task : {"classification", "regression"}
        The task.
    classes : ndarray of shape (n_classes,) or None
        Class labels; None in regression.
    oracle : Oracle
        Queries the black box.
    settings : dict
        Keyword parameters of the resulting RuleSet.
    categories : mapping of int to tuple, default={}
        The values of each categorical feature, in the order of their codes 0, 1, ...
    decode : callable, optional
        Converts points with codes to rows for the black box.
    no_quantities : tuple of int, default=()
        Numeric columns that linear functions may not use: they had or mark missing values.
    query_rows : hashable, default=None
        Identifies how the query rows at the end of `X`, or out-of-fold predictions, were generated.
        None if there are neither.
    weights : ndarray of shape (n_rows,), default=None
        Exact weights of the rows in `X`, which repeats rows according to their rounded weights.
        None if each row has the weight 1.
    """

    X: np.ndarray
    predictions: np.ndarray
    task: str
    classes: np.ndarray | None
    oracle: Oracle
    settings: dict[str, Any]
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    decode: Callable[[np.ndarray], Any] | None = None
    no_quantities: tuple[int, ...] = ()
    query_rows: Hashable = None
    weights: np.ndarray | None = None

    @cached_property
    def content_digest(self) -> bytes:
        """Digest of `X`, which must not be modified."""
        return digest(self.X)

    @property
    def unmeasured(self) -> list[int]:
        """Columns that linear functions may not use: categories and columns with missing values."""
        return [*self.categories, *self.no_quantities]

    def check_magnitude(self, largest: float, why: str) -> None:
        """Raise a ValueError if a feature holds numbers whose magnitude exceeds `largest`.

        Parameters
        ----------
        largest : float
            Largest magnitude that the algorithm supports.
        why : str
            Consequence of larger numbers, for the message.
        """
        domain = self.settings["domain"]
        extent = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        beyond = np.flatnonzero(extent > largest)
        if len(beyond):
            name = str(self.settings["feature_names"][beyond[0]])
            raise ValueError(
                f"Feature {name!r} holds numbers up to {extent[beyond[0]]:.3g} in magnitude, more "
                f"than {largest:.3g}; {why}. Scale the feature."
            )

    def check_predictions(self, largest: float) -> None:
        """Raise a ValueError if the black box predicts numbers whose squares would overflow.

        Parameters
        ----------
        largest : float
            Largest magnitude that the algorithm supports.
        """
        largest_prediction = (
            0.0 if self.task == "classification" else np.abs(self.predictions).max()
        )
        if largest_prediction > largest:
            raise ValueError(
                f"The black box predicts numbers up to {largest_prediction:.3g}, more than "
                f"{largest:g}; their standard deviation would overflow. Scale the target."
            )

    def important_features(self, n: int | None) -> np.ndarray:
        """Return the most important features.

        Parameters
        ----------
        n : int or None
            Largest number of features; None for all.

        Returns
        -------
        ndarray of int
            Indices of the features, in order.
        """
        return important_features(self.X, self.predictions, self.task, n, self.categories)

    def ranked(self) -> Extraction:
        """Replace the codes of categories by their ranks when sorted by mean prediction.

        Returns
        -------
        Extraction
            The extraction with its `categories` in that order.
        """
        if not self.categories:
            return self
        X, orders = self.X.copy(), {}
        n_classes = None if self.classes is None else len(self.classes)
        for feature, values in self.categories.items():
            codes = X[:, feature].astype(np.intp)
            order = category_order(codes, self.predictions, len(values), n_classes)
            rank = np.empty(len(values))
            rank[order] = np.arange(len(values))
            X[:, feature], orders[feature] = rank[codes], order
        ordered = {j: tuple(self.categories[j][i] for i in order) for j, order in orders.items()}
        decode = self.decode
        assert decode is not None

        def decode_ranks(points: np.ndarray) -> Any:
            points = points.copy()
            for feature, order in orders.items():
                ranks = np.clip(points[:, feature], 0, len(order) - 1).astype(np.intp)
                points[:, feature] = order[ranks]
            return decode(points)

        return replace(self, X=X, categories=ordered, decode=decode_ranks)

    def in_content_order(self) -> tuple[Extraction, np.ndarray]:
        """Sort the rows by their content, so that random draws do not depend on their order.

        Returns
        -------
        extraction : Extraction
            The extraction with its rows sorted.
        order : ndarray of int, shape (n_rows,)
            Indices of the rows in the new order.
        """
        order = content_order(*self.X.T, self.predictions)
        return self.with_rows(self.X[order], order), order

    def with_rows(self, X: np.ndarray, index: np.ndarray) -> Extraction:
        """Replace the rows by `X`, with the predictions and weights at `index`."""
        weights = None if self.weights is None else self.weights[index]
        return replace(self, X=X, predictions=self.predictions[index], weights=weights)

    def query(self, points: np.ndarray, *, cache: bool = True) -> np.ndarray:
        """Query the black box at points.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            The points, with codes in categorical columns.
        cache : bool, default=True
            Whether to cache the predictions.

        Returns
        -------
        ndarray of shape (n_points,)
            Class indices or floats.
        """
        decoded_points = points if self.decode is None else self.decode(points)
        predictions = self.oracle.query(decoded_points, cache=cache)
        if self.classes is None:
            return finite_predictions(predictions)
        return encode_labels(predictions, self.classes)


def _has_object_columns(X: Any) -> bool:
    """Return whether a frame has columns of Python objects, such as numbers and None."""
    return hasattr(X, "columns") and any(map(pd.api.types.is_object_dtype, X.dtypes))


def _cover_all_rows(rules: RuleSet, extraction: Extraction) -> bool:
    """Return whether the counts of disjoint rules show that they cover every row."""
    counts = rules.conclusions.n_rows
    return rules.disjoint and counts is not None and counts.sum() == len(extraction.X)


def _without_redundant_rules(rules: RuleSet, X: Any, labels: np.ndarray, _: str) -> RuleSet:
    """Remove and merge redundant rules; count rows again if several rules share those of one."""
    shorter = rules.simplify()
    if _have_statistics(rules) and not _have_statistics(shorter):
        return with_statistics(shorter, X, labels)
    return shorter


def _have_statistics(rules: RuleSet) -> bool:
    return all(rule.statistics is not None for rule in rules)


def _is_classifier(extractor: Any) -> bool:
    return is_classifier(extractor)


class BaseExtractor(MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of all extractors: a scikit-learn meta-estimator around a black box.

    A subclass implements ``_extract`` and ``_check_parameters``, and has at least these parameters.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor.
    features : sequence of str or int, optional
        Features that rules may use, by name or index; the black box always gets all columns.
    sampling : str, callable or None
        Generator of the rows that the black box is queried for in addition to the training rows.
    n_queries : int
        Number of rows that `sampling` generates.
    prune : str or None
        Score to prune the rules by; "redundant" only removes redundant rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        Prediction for rows without a rule.
    abstain_label : str, int or float, optional
        Prediction of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Largest number of rows in one call of the black box.
    """

    #: Tasks that the extractor supports.
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")
    #: Margin of the domain box around the training rows, as a share of each feature's range.
    _domain_margin: ClassVar[float] = 1e-9
    #: Whether the extractor supports categorical columns.
    takes_categories: ClassVar[bool] = False
    #: Whether the algorithm gets categories as ranks by mean prediction; intervals of ranks are
    #: then converted to sets of values.
    _orders_categories: ClassVar[bool] = False
    #: Whether bounds are rounded to short numbers between neighboring training rows, and equal last
    #: rules of a list are merged.
    readable_bounds: ClassVar[bool] = True

    #: Whether the algorithm itself satisfies monotonicity constraints.
    _keeps_monotone: ClassVar[bool] = False
    _constraints: Constraints | None = None

    estimator: Any
    features: Any = None
    sampling: Sampling = None
    n_queries: int = N_QUERIES
    prune: str | None = None
    uncovered: str
    abstain_label: Any
    batch_size: int | None

    @abstractmethod
    def _extract(self, extraction: Extraction) -> RuleSet:
        """Learn the rules."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise a ValueError or TypeError for an invalid parameter."""

    #: Under metadata routing the black box requests weights; the extraction uses the same weights.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Learn rules from the black box's predictions for the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows: finite numbers, or NaN for missing values. DataFrame columns with text,
            declared categories or booleans are categorical. The black box gets the rows unchanged.
        y : array-like of shape (n_rows,), optional
            Target on which a clone of the black box is fitted, unless it is a ``FrozenEstimator``.
            Without y the black box must already be fitted; the extraction needs no labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows. The black box and the extraction treat a row of weight 2 as two
            rows; see :func:`repeated_rows` for weights that are not integers. A black box that
            accepts no weights is fitted on the repeated rows.
        **fit_params
            Passed on to the black box's ``fit`` by metadata routing.

        Returns
        -------
        self
            The fitted extractor.

        Raises
        ------
        ValueError, TypeError
            If the rows, the black box or a parameter are invalid; the message states the remedy.
        """
        start_time = time.perf_counter()
        check_is_table(X)
        X = convert_rows(X)
        pruner = self._check_common_parameters()
        task = self._task()
        self._check_parameters()
        black_box_data = X, y
        weights = None
        if sample_weight is not None:
            X, y, weights = self._repeat_rows(X, y, sample_weight, task)
        rows, y = self.check_input(X, y, task)
        if sample_weight is None:
            black_box_data = X, y
        self.estimator_ = self._fit_black_box(*black_box_data, fit_params, sample_weight)
        names = getattr(self, "feature_names_in_", None)
        self.oracle_ = Oracle(
            self.estimator_, like=X, feature_names=names, batch_size=self.batch_size
        )
        training = QueriedRows(rows, self.oracle_.query(X))
        labels = training.predictions
        if self.sampling == OUT_OF_FOLD:
            unseen_labels = self._predict_out_of_fold(*black_box_data, task, sample_weight)
            training = replace(training, predictions=unseen_labels, origin=OUT_OF_FOLD)
        queried = self._query_rows(X, training)
        extraction = self._make_extraction(training, queried, y, task, names, weights)
        self._check_constraints(X, extraction, labels)
        extraction_start = time.perf_counter()
        self.rules_ = self._extract_rules(extraction)
        pruning_start = time.perf_counter()
        if pruner is not None:
            self.rules_ = self._prune_rules(pruner, X, extraction)
        self._refit_fallback(X, extraction, n_rows=len(labels))
        self._enforce_constraints(X, extraction, labels)
        self._describe_rules(X, extraction, labels)
        if y is not None and not is_unsupervised(self.estimator):
            self._describe_target(X, y, labels, extraction, weights)
        if weights is not None:
            self._weigh_statistics(X, labels, extraction, weights)
        end_time = time.perf_counter()
        # `characteristics` uses the same names.
        self.times_ = {
            "time_total_s": end_time - start_time,
            "time_growing_s": pruning_start - extraction_start,
            "time_pruning_s": end_time - pruning_start,
        }
        return self

    def set_constraints(self, constraints: Constraints | None) -> Any:
        """Set the constraints that the rules of later fits must satisfy.

        Clones have the same constraints. After :meth:`fit`, ``constrained_rules_`` states how each
        constraint was satisfied.

        Parameters
        ----------
        constraints : Constraints or None
            The constraints; None for no constraints.

        Returns
        -------
        self
            The extractor. Its fit raises an InfeasibleConstraintsError if the constraints
            contradict each other, and a RejectedRulesError if no rules satisfy them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> from skescore.constraints import Constraints
        >>> from skescore.extractors import CARTExtractor
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
        >>> constraints = Constraints(forbidden=["petal width (cm)"])
        >>> print(extractor.set_constraints(constraints).fit(X, y).constrained_rules_)
        forbidden: petal width (cm): honored by the extraction
        """
        check_instance("constraints", constraints, Constraints, optional=True)
        self._constraints = constraints if constraints else None
        return self

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if self._constraints is not None:
            copy._constraints = self._constraints
        return copy

    def _check_constraints(self, X: Any, extraction: Extraction, labels: np.ndarray) -> None:
        """Raise an error if the constraints contradict each other on the training rows."""
        if self._constraints is None:
            return
        settings = {k: v for k, v in extraction.settings.items() if k != "fallback"}
        rows = X if self._encoder else extraction.X[: len(labels)]
        check_feasible(self._constraints, RuleSet([], **settings), rows, labels)

    def _enforce_constraints(self, X: Any, extraction: Extraction, labels: np.ndarray) -> None:
        """Repair the rules where they violate constraints."""
        self.__dict__.pop("constrained_rules_", None)
        constraints = self._constraints
        if constraints is None:
            return
        rows = X if self._encoder else extraction.X[: len(labels)]
        n_classes = 0 if extraction.classes is None else len(extraction.classes)
        if self.readable_bounds and extraction.classes is None:
            self.rules_ = readable_outputs(self.rules_, extraction.predictions)
        names = self.get_params(deep=False)
        native = native_labels(constraints, n_classes, names, keeps_monotone=self._keeps_monotone)
        result = most_faithful(
            [
                enforce(self.rules_, constraints, rows, labels, native),
                *self._other_constrained_rules(extraction, rows, labels, native),
            ],
            rows,
            labels,
        )
        if result.ruleset is None:
            raise RejectedRulesError(result)
        self.rules_, self.constrained_rules_ = result.ruleset, result

    def _other_constrained_rules(
        self, extraction: Extraction, rows: Any, labels: np.ndarray, native: Collection[str]
    ) -> list[ConstrainedRules]:
        """Return further rules that satisfy the constraints; none by default."""
        return []

    def _query_rows(self, X: Any, training: QueriedRows) -> QueriedRows | None:
        """Generate rows with `sampling` and query the black box; return None without `sampling`."""
        if self.sampling is None or self.sampling == OUT_OF_FOLD:
            return None
        seed = draw_seed(getattr(self, "random_state", 0))
        sampler = QuerySampler(self.sampling, self.n_queries, seed, self._encoder, X)
        return sampler.query(training, self.oracle_)

    def _predict_out_of_fold(self, X: Any, y: Any, task: str, sample_weight: Any) -> np.ndarray:
        """Predict the training rows by clones of the black box that were not fitted on them."""
        if y is None or self.estimator_ is self.estimator or is_prefit(self.estimator):
            raise ValueError(
                f"sampling={OUT_OF_FOLD!r} fits clones of the black box, which is fitted already. "
                f"Pass an unfitted estimator and y, or one of {', '.join(map(repr, SAMPLINGS))}."
            )
        n_rows = _num_samples(X)
        weights = None
        if sample_weight is not None:
            weights = row_weights(sample_weight, n_rows, finite_sum=False)
        seed = draw_seed(getattr(self, "random_state", 0))
        predictions = out_of_fold_predictions(
            self.estimator, X, y, task, sample_weight=weights, seed=seed
        )
        return predictions if weights is None else predictions[repeated_rows(weights, n_rows)]

    def _prune_rules(
        self, pruner: Callable[..., RuleSet], X: Any, extraction: Extraction
    ) -> RuleSet:
        """Prune the rules on the training rows and the query rows."""
        rows = X if self._encoder else extraction.X
        if extraction.query_rows is not None and self._encoder:
            rows = self._encoder.decode(extraction.X)
        predictions, classes = extraction.predictions, extraction.classes
        reference = predictions if classes is None else classes[predictions]
        return pruner(self.rules_, rows, reference, self.prune)

    def _refit_fallback(self, X: Any, extraction: Extraction, n_rows: int) -> None:
        """Set the fallback to the black box's majority class or mean on uncovered training rows.

        A fallback that the algorithm chose is kept, and so is any fallback if no row is uncovered.
        """
        is_own = self.rules_.fallback != extraction.settings["fallback"]
        if is_own or self.uncovered != "default" or _cover_all_rows(self.rules_, extraction):
            return
        columns = self._shared_columns(X) if self._encoder else extraction.X[:n_rows]
        uncovered = ~self.rules_.covers(X if columns is None else columns)
        if uncovered.any():
            predictions = extraction.predictions[:n_rows][uncovered]
            fallback = self._fallback(predictions, extraction.classes)
            self.rules_ = self.rules_.replace(fallback=fallback)

    def _describe_rules(self, X: Any, extraction: Extraction, labels: np.ndarray) -> None:
        """Round outputs, count the training rows of each rule, and set `coverage_`.

        `labels` are the black box's predictions for the training rows.
        """
        n_rows = len(labels)
        rows = X if self._encoder else extraction.X[:n_rows]
        columns = self._shared_columns(X) if self._encoder else None
        rows = rows if columns is None else columns
        if self.readable_bounds and extraction.classes is None and self._constraints is None:
            self.rules_ = readable_outputs(self.rules_, extraction.predictions)
        if extraction.query_rows is not None:
            if extraction.classes is None:
                labels = finite_predictions(labels)
            self.rules_ = with_statistics(self.rules_, rows, labels)
        rows_per_rule = self.rules_.conclusions.n_rows
        if self.rules_.disjoint and rows_per_rule is not None:
            # Every row was counted by the only rule that holds for it.
            self.coverage_ = float(rows_per_rule.sum()) / n_rows
        else:
            self.coverage_ = float(np.mean(self.rules_.covers(rows)))

    def _describe_target(
        self,
        X: Any,
        y: Any,
        labels: np.ndarray,
        extraction: Extraction,
        weights: np.ndarray | None,
    ) -> None:
        """Add the target of the training rows to the statistics of the rules.

        `labels` are the black box's predictions for these rows, and `weights` their weights.
        """
        rows = X if self._encoder else extraction.X[: len(y)]
        predictions = finite_predictions(labels) if extraction.classes is None else None
        self.rules_ = with_target(self.rules_, rows, y, predictions, weights)

    def _weigh_statistics(
        self, X: Any, labels: np.ndarray, extraction: Extraction, weights: np.ndarray
    ) -> None:
        """Compute the statistics of the rules and `coverage_` with the exact weights of the rows.

        `labels` are the black box's predictions for these rows. Rules are learned with rounded
        weights, but their statistics must not depend on the rounding.
        """
        rows = X if self._encoder else extraction.X[: len(labels)]
        if extraction.classes is None:
            labels = finite_predictions(labels)
        self.rules_ = with_row_weights(self.rules_, rows, labels, weights)
        self.coverage_ = float(np.average(self.rules_.covers(rows), weights=weights))

    def _check_common_parameters(self) -> Callable[..., RuleSet] | None:
        """Check the parameters that all extractors have; return the pruning function."""
        check_choice("uncovered", self.uncovered, UNCOVERED_POLICIES)
        if self.abstain_label is not None:
            check_label("abstain_label", self.abstain_label)
        check_integer("batch_size", self.batch_size, 1, optional=True)
        check_sampling(self.sampling, self.n_queries)
        return self._pruner()

    @staticmethod
    def _repeat_rows(X: Any, y: Any, sample_weight: Any, task: str) -> tuple[Any, Any, np.ndarray]:
        """Repeat rows and labels according to their weights; also return the weight of each copy.

        The weights of the copies of a row add up to its weight. If the sum of all weights is
        infinite, or the weights are too small to be divided, they are first divided by the largest.
        """
        n_rows = _num_samples(X)
        index = repeated_rows(sample_weight, n_rows)
        weights = row_weights(sample_weight, n_rows, finite_sum=False)
        with np.errstate(over="ignore"):
            is_extreme = not np.isfinite(weights.sum()) or weights.max() < _MIN_WEIGHT
        if is_extreme:
            weights = weights / weights.max()
        weights = (weights / np.maximum(np.bincount(index, minlength=n_rows), 1))[index]
        X = take_rows(X, index)
        if y is None:
            return X, None, weights
        y = take_rows(y, index)
        if task == "classification" and len(labels := pd.unique(np.ravel(y))) == 1:
            raise ValueError(
                f"sample_weight leaves rows of only one class, {python_value(labels[0])!r}; "
                "rules that distinguish classes need at least 2."
            )
        return X, y, weights

    def _make_extraction(
        self,
        training: QueriedRows,
        queried: QueriedRows | None,
        y: Any,
        task: str,
        names: Any,
        weights: np.ndarray | None,
    ) -> Extraction:
        """Return the input of the algorithm; set or delete `classes_`."""
        rows, predictions = training.rows, training.predictions
        if queried is not None:
            rows = np.concatenate([rows, queried.rows])
            predictions = np.concatenate([predictions, queried.predictions])
        if weights is not None and (weights == 1).all():
            weights = None
        if weights is not None:
            n_queried = len(rows) - len(weights)
            weights = np.append(weights, np.full(n_queried, weights.mean()))
        classes = None
        if task == "classification":
            classes = self.classes_ = self._determine_classes(y, predictions)
            predictions = encode_labels(predictions, classes)
        else:
            self.__dict__.pop("classes_", None)  # an earlier fit may have been a classification
            predictions = finite_predictions(predictions)
        encoder = self._encoder
        n_training = len(training.rows)
        settings = {
            "feature_names": [f"x{j}" for j in range(rows.shape[1])] if names is None else names,
            "task": task,
            "classes": None if classes is None else classes.tolist(),
            "domain": Domain.around(training.rows, self._domain_margin, encoder.categories),
            "fallback": self._fallback(predictions[:n_training], classes),
        }
        return Extraction(
            rows,
            predictions,
            task,
            classes,
            self.oracle_,
            settings,
            encoder.categories,
            decode=encoder.decode if encoder else None,
            query_rows=training.origin if queried is None else queried.origin,
            weights=weights,
        )

    def _extract_rules(self, extraction: Extraction) -> RuleSet:
        """Learn the rules on the chosen features and make their bounds readable."""
        names = extraction.settings["feature_names"]
        chosen = None if self.features is None else feature_indices(self.features, names)
        constraints = self._constraints
        if constraints is None:
            rules = self._learn_on_features(extraction, chosen)
        else:
            rules = self._learn_constrained(extraction, chosen, constraints)
        rules = without_vacuous_conditions(rules.replace(reference="black_box"))
        rules = without_covered_values(shorten_counts(rules))
        if self.readable_bounds:
            if constraints is None or not constraints.thresholds:
                rules = readable_bounds(rules, extraction.X)
            rules = rules.without_repeated_end()
        return rules

    def _learn_on_features(self, extraction: Extraction, chosen: np.ndarray | None) -> RuleSet:
        """Learn the rules on some features; None for all."""
        if chosen is None:
            return self._learn_named_rules(extraction)
        narrow_rules = self._learn_named_rules(restrict_to_features(extraction, chosen))
        return extend_to_all_features(narrow_rules, chosen, extraction.settings)

    def _learn_constrained(
        self, extraction: Extraction, chosen: np.ndarray | None, constraints: Constraints
    ) -> RuleSet:
        """Learn rules from the features, thresholds and rows that the constraints allow."""
        settings = extraction.settings
        names = [str(name) for name in settings["feature_names"]]
        X, predictions = extraction.X, extraction.predictions
        importances = np.zeros(len(names))
        if constraints.max_cost is not None or constraints.max_features is not None:
            importances = feature_importances(np.nan_to_num(X), predictions, extraction.task)
        usable = usable_features(constraints, names, importances)
        if chosen is not None:
            usable = [j for j in usable if j in chosen]
        open_rows = np.ones(len(X), dtype=bool)
        if constraints.pinned:
            decoded = X if extraction.decode is None else extraction.decode(X)
            open_rows = remaining_rows(decoded, constraints, names)
        if not usable or open_rows.sum() < 2:
            # The algorithm learns one rule without conditions from constant features.
            X, usable, open_rows = np.repeat(X[:1], len(X), axis=0), usable or [0], open_rows | True
        steps = step_columns(X, constraints, names, extraction.categories)
        stepped = extraction.with_rows(steps[open_rows], open_rows)
        is_narrow = len(usable) < len(names)
        features = np.array(usable, dtype=np.intp) if is_narrow else None
        parameters = self.get_params(deep=False)
        limits = limited_parameters(constraints, parameters, len(X))
        try:
            self.set_params(**limits)
            rules = self._learn_on_features(stepped, features)
        finally:
            self.set_params(**{name: parameters[name] for name in limits})
        return bounds_on_steps(rules, constraints, X) if constraints.thresholds else rules

    def _store_features(self, columns: Mapping[str, Sequence[Any] | None]) -> None:
        """Store the names of the features, and the values of categorical features."""
        n_rows = max((len(values) for values in columns.values() if values), default=1)
        frame = pd.DataFrame(
            {
                name: [0.0] * n_rows
                if values is None
                else pd.Categorical([*values, *[None] * (n_rows - len(values))], list(values))
                for name, values in columns.items()
            }
        )
        self._encoder = CategoryEncoder(frame)
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)
        self.coverage_ = 1.0

    def _store_rules(self, source: Any, rules: RuleSet) -> None:
        """Store rules that were learned from sums instead of rows, and their features."""
        if source.classes is not None:
            self.classes_ = np.array(source.classes)
        self.rules_ = rules
        self._store_features({column.name: column.values for column in source.columns})

    def _learn_named_rules(self, extraction: Extraction) -> RuleSet:
        """Learn the rules; express them with category values and conditions on missing values."""
        if any(extraction.settings["domain"].missing):
            filled = FilledTable(extraction, self._domain_margin)
            return filled.restore_rules(self._learn_named_rules(filled.extraction))
        if not (self._orders_categories and extraction.categories):
            return self._extract(extraction)
        extraction = extraction.ranked()
        return name_categories(self._extract(extraction), extraction.categories)

    def _pruner(self) -> Callable[..., RuleSet] | None:
        """Return the pruning function; None if `prune` is None."""
        if self.prune is None:
            return None
        if self.prune == "redundant":
            return _without_redundant_rules
        # Imported here, because extraction without pruning needs no scores.
        from skescore.scorers import get_rule_scorer
        from skescore.selection import prune

        try:
            get_rule_scorer(self.prune)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"prune must be None, 'redundant' or the name of a score, got {self.prune!r}. "
                f"{error}"
            ) from error
        return prune

    def _task(self) -> str:
        task = black_box_task(self.estimator)
        if task not in self.tasks:
            raise ValueError(
                f"{type(self).__name__} extracts rules for {' and '.join(self.tasks)} only, but "
                f"the black box {type(self.estimator).__name__} is for {task}."
            )
        return task

    def check_input(self, X: Any, y: Any, task: str) -> tuple[np.ndarray, Any]:
        """Check rows and target before the black box is fitted; store the names of the features.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or None
            The target; None requires a fitted black box.
        task : {"classification", "regression"}
            Task that the target must suit.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The rows as floats, with codes in categorical columns.
        y : ndarray of shape (n_rows,) or None
            The target.

        Raises
        ------
        ValueError
            If the rows or the target are invalid; the message states the remedy.
        """
        if y is None:
            checked = fixed_rows_of(self.estimator).once(
                X, ("input", self.takes_categories), lambda: self._check_rows(X)
            )
            self._encoder = checked.encoder
            self.n_features_in_ = checked.rows.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if checked.names is not None:
                self.feature_names_in_ = checked.names
            return checked.rows, None
        X, options = self._encode(X)
        y = plain_target(y)
        if task == "classification":
            check_labels(np.asarray(y).ravel())
        rows, y = validate_data(self, X, y, y_numeric=task == "regression", **options)
        if task == "classification":
            check_classification_targets(y)
            # A frozen black box is not fitted on y, so y may have one class.
            if len(np.unique(y)) < 2 and not isinstance(self.estimator, FrozenEstimator):
                raise ValueError(
                    f"y holds only one class, {np.unique(y).tolist()[0]!r}; rules that "
                    "distinguish classes need at least 2."
                )
        return rows, y

    def _check_rows(self, X: Any) -> _CheckedRows:
        """Check the rows for a fitted black box."""
        X, options = self._encode(X)
        if not (is_fitted(self.estimator) or is_unsupervised(self.estimator)):
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the "
                "target y is None: the black box "
                f"{type(self.estimator).__name__} is not fitted yet. Pass fit(X, y), or a "
                "fitted black box."
            )
        if is_plain(X, min_rows=2):
            return _CheckedRows(self._encoder, X, None)  # as `validate_data` would return it
        rows = validate_data(self, X, **options)
        return _CheckedRows(self._encoder, rows, getattr(self, "feature_names_in_", None))

    def _encode(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Encode the categories; return the rows and the options of scikit-learn's checks."""
        self._encoder = CategoryEncoder(X if self.takes_categories else None)
        check_columns(X, type(self).__name__, self._encoder.categories)
        if self._encoder or _has_object_columns(X):
            X = self._encoder.codes(X)
        return X, {"dtype": float, "ensure_min_samples": 2, "ensure_all_finite": "allow-nan"}

    def _fit_black_box(
        self, X: Any, y: Any, fit_params: dict[str, Any], sample_weight: Any = None
    ) -> Any:
        if y is None:
            if fit_params:
                raise ValueError(
                    f"fit got {sorted(fit_params)} for a black box that is already fitted. Leave "
                    "them out."
                )
            if is_unsupervised(self.estimator) and not is_fitted(self.estimator):
                return fit_black_box(self.estimator, X)
            return self.estimator
        if fit_params and not sklearn.get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"fit got {sorted(fit_params)}, which is only passed on to the black box by "
                "metadata routing: sklearn.set_config(enable_metadata_routing=True) and "
                "estimator.set_fit_request(...)."
            )
        if sample_weight is not None and sklearn.get_config()["enable_metadata_routing"]:
            fit_params = fit_params | {"sample_weight": sample_weight}
        routed = process_routing(self, "fit", **fit_params) if fit_params else None
        options = routed.estimator.fit if routed is not None else {}
        # The black box gets the caller's X: a model that was fitted on a frame needs a frame.
        return fit_weighted(self.estimator, X, y, sample_weight, **options)

    def _determine_classes(self, y: Any, predictions: np.ndarray) -> np.ndarray:
        """Return the class labels; check `abstain_label`, and warn if the black box is constant."""
        declared = getattr(self.estimator_, "classes_", None)
        labels = None if is_unsupervised(self.estimator) else y
        classes = (
            observed_classes(predictions, labels) if declared is None else np.asarray(declared)
        )
        if self.uncovered == "abstain":
            if self.abstain_label is None:
                default_abstain_label(classes.tolist())
            elif self.abstain_label in classes.tolist():
                raise ValueError(
                    f"abstain_label must not be one of the classes, got {self.abstain_label!r}. "
                    "Pass another label."
                )
        if len(predictions) and (predictions == predictions[0]).all():
            warnings.warn(
                f"The black box predicts {python_value(predictions[0])!r} for all "
                f"{len(predictions)} rows, so there is only one rule.",
                UserWarning,
                stacklevel=4,
            )
        return classes

    def _fallback(self, predictions: np.ndarray, classes: np.ndarray | None) -> Fallback:
        if classes is None:
            with np.errstate(over="ignore"):
                mean = float(np.mean(predictions))
            if not np.isfinite(mean):  # the sum of huge numbers overflows, but not their mean
                mean = float((predictions / len(predictions)).sum())
            return Fallback(mean, self.uncovered)
        counts = np.bincount(predictions, minlength=len(classes)).tolist()
        majority = classes[int(np.argmax(counts))]
        return Fallback(majority, self.uncovered, tuple(counts), self.abstain_label)

    def _table(self, X: Any) -> Any:
        """Return the same as :meth:`_rows`; columns are cached if a frame never changes."""
        columns = self._shared_columns(X)
        return self._rows(X) if columns is None else columns

    def _shared_columns(self, X: Any) -> RowTable | np.ndarray | None:
        """Return the cached columns of a frame that never changes; None for other rows."""
        fixed_rows = fixed_rows_of(self.estimator)
        if not (hasattr(self, "rules_") and hasattr(X, "columns") and X in fixed_rows):
            return None
        key = "columns", tuple(self.rules_.feature_names), bool(self._encoder)
        return fixed_rows.once(X, key, lambda: self._read_columns(X))

    def _read_columns(self, X: Any) -> RowTable | np.ndarray | None:
        """Check and read all columns of a frame; None if some values are invalid.

        Rules that do not use a column with invalid values can still predict the rows.
        """
        validate_data(self, X, reset=False, skip_check_array=True)
        try:
            check_columns(X, type(self).__name__, self._encoder.categories)
        except ValueError:
            return None
        if self._encoder:
            return RowTable(X, self.rules_.feature_names)
        columns = [frame_column(X, j) for j in range(self.n_features_in_)]
        return np.column_stack([c.to_numpy(dtype=float, na_value=np.nan) for c in columns])

    def _rows(self, X: Any) -> Any:
        """Check rows, and convert them to the input of the rules."""
        if not hasattr(self, "rules_"):
            check_is_fitted(self, "rules_")
        X = convert_rows(X)
        names = getattr(self, "feature_names_in_", None)
        if names is None and not self._encoder and is_plain(X, self.n_features_in_):
            return X  # for a few rows, the checks would take longer than the prediction
        if self._encoder and not hasattr(X, "columns"):
            X = self._encoder.frame(X)
        if not (hasattr(X, "columns") and hasattr(X, "shape")):
            return validate_data(self, X, reset=False, dtype=float, ensure_all_finite="allow-nan")
        try:
            validate_data(self, X, reset=False, skip_check_array=True)
        except (TypeError, ValueError):
            check_columns(X, type(self).__name__, only=())  # explains duplicate names better
            raise
        # In a frame only the columns that occur in rules are checked.
        used = self.rules_.used_features
        check_columns(X, type(self).__name__, self._encoder.categories, used)
        if self._encoder:
            return X
        rows = np.zeros((len(X), self.n_features_in_))
        for j in used:
            rows[:, j] = frame_column(X, j).to_numpy(dtype=float, na_value=np.nan)
        return rows

    def rows_of_rules(self, X: Any) -> Any:
        """Check rows like :meth:`predict`, and convert them to the input of the rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray or DataFrame
            Input of ``rules_.match`` and ``rules_.assign``.
        """
        return self._rows(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict rows with the rules, without the black box.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers; `uncovered` determines the prediction for rows without a rule.
        """
        rows = self._table(X)
        y_pred = self.rules_.predict(rows)
        if self.rules_.task == "classification" and self.uncovered != "abstain":
            return y_pred.astype(self.classes_.dtype, copy=False)
        return y_pred

    @available_if(_is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities by the rule that covers each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, with the classes in the order of ``classes_``.
        """
        rows = self._rows(X)  # raises an error if there are no rules yet
        return self.rules_.predict_proba(rows)

    def covers(self, X: Any) -> np.ndarray:
        """Return for each row whether some rule covers it.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
            False for rows without a rule.
        """
        rows = self._table(X)  # raises an error if there are no rules yet
        return self.rules_.covers(rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy (classification) or R² (regression) of the rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The target. With predictions of the black box as `y`, the score is the fidelity.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            At most 1. Scores with size and completeness are in :mod:`skescore.scorers`.

        Notes
        -----
        With ``uncovered="abstain"``, rows without a rule count as wrong in classification and as
        predicted by the mean training prediction of the black box in regression.
        """
        y, y_pred = plain_target(y), self.predict(X)
        fallback = self.rules_.fallback
        if not is_classifier(self):
            if fallback is not None:
                y_pred = np.where(np.isnan(y_pred), fallback.output, y_pred)
            return float(r2_score(y, y_pred, sample_weight=sample_weight))
        if self.uncovered == "abstain" and y_pred.dtype.kind == "O":
            # The abstain label may have a type that cannot be compared with the classes.
            y = column_or_1d(y)
            check_consistent_length(y, y_pred)
            y, y_pred = y.astype(object) == y_pred, np.ones(len(y_pred), dtype=bool)
        labels = np.asarray(y).ravel()
        if labels.dtype == object and not any(isinstance(label, str) for label in labels):
            y = label_array(labels.tolist())  # scikit-learn rejects numbers in object arrays
        return float(accuracy_score(y, y_pred, sample_weight=sample_weight))

    def fidelity(self, X: Any) -> float:
        """Return the accuracy or R² of the rules with respect to the black box's predictions.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; the black box is queried for them.

        Returns
        -------
        float
            At most 1; it is 1 if all predictions agree.
        """
        self._rows(X)  # reports invalid rows before the black box does
        return self.score(X, self.oracle_.query(X))

    def features_without_influence(
        self, X: Any, *, n_repeats: int = 3, random_state: int = 0
    ) -> list[str]:
        """List features in the rules whose permutation does not change the black box's output.

        A feature that is correlated with another may occur in the rules although the black box does
        not use it. Class probabilities are compared if the black box predicts them, otherwise
        labels or numbers. If no output of n rows changes, then with 95 % confidence at most 3 / n
        of all outputs depend on the feature.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows. The black box predicts them and copies in which one feature is permuted.
        n_repeats : int, default=3
            Number of permutations per feature.
        random_state : int, default=0
            Seed of the permutations.

        Returns
        -------
        list of str
            Names of features whose permutation changes no output.
        """
        self._rows(X)  # raises an error if there are no rules yet
        X = X if hasattr(X, "iloc") else np.asarray(X)
        n_rows = len(X)

        @cache
        def outputs(n_first: int) -> np.ndarray:
            return self.oracle_.query_outputs(X[:n_first])

        def is_unchanged(feature: int, order: np.ndarray, n_first: int) -> bool:
            """Return whether a permutation changes no output of the first rows."""
            rows = X[:n_first].copy()
            if hasattr(rows, "iloc"):
                rows[rows.columns[feature]] = X.iloc[order[:n_first], feature].to_numpy()
            else:
                rows[:, feature] = X[order[:n_first], feature]
            return np.array_equal(self.oracle_.query_outputs(rows), outputs(n_first))

        idle = []
        for feature in sorted(self.rules_.used_features):
            random = np.random.default_rng([random_state, feature])
            orders = [random.permutation(n_rows) for _ in range(n_repeats)]
            # Most features change an output of a few rows; the others are compared on all rows.
            if all(
                is_unchanged(feature, order, n_first)
                for n_first in (min(_FIRST_PERMUTED_ROWS, n_rows), n_rows)
                for order in orders
            ):
                idle.append(self.rules_.feature_names[feature])
        return idle

    @property
    def n_rules_(self) -> int:
        """Number of rules."""
        check_is_fitted(self, "rules_")
        return len(self.rules_)

    @property
    def completeness_(self) -> float:
        """Share of the domain box's volume that some rule covers.

        See :func:`skescore.metrics.volume_completeness` for its confidence interval.
        """
        check_is_fitted(self, "rules_")
        return float(volume_completeness(self.rules_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def _html_repr(self) -> str:
        """Return HTML for notebooks: the rules, and below them the parameters."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "rules_"):
            return diagram
        from skescore.rules.exporters._html import rules_view

        black_box = self.estimator.estimator if is_prefit(self.estimator) else self.estimator
        return rules_view(self.rules_, model=type(black_box).__name__, settings=diagram)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # rules support NaN, although a black box may not
        try:
            inner = get_tags(self.estimator)
        except (AttributeError, TypeError):  # fit raises an error that explains the problem
            return tags
        tags.estimator_type = inner.estimator_type
        if inner.classifier_tags is not None:  # rules have one output
            tags.classifier_tags = replace(inner.classifier_tags, multi_label=False)
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags.required = not (
            is_fitted(self.estimator) or is_unsupervised(self.estimator)
        )
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that ``fit`` passes on to the black box.

        Returns
        -------
        MetadataRouter
            The routing, for scikit-learn.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)  # sample_weight of score
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )


# --- shared parts of docstrings --------------------------


#: Description of `n_features_to_select` in all docstrings.
SELECTION = """\
Largest number of features in rules, at least 1. Features are ranked one by one, by the share of
    the predictions' variance or Gini impurity between categories, or between eight intervals with
    equally many rows. If some features are significant (F test at 5 % with Bonferroni correction),
    only those are used. None: all."""

#: Description of `sampling` and `n_queries` in all docstrings.
SAMPLING = """\
sampling : str, callable or None, default=None
    Generator of the rows that the black box is queried for in addition to the training rows:
    "permute", "permute-near", "permute-mixed", "interpolate", "boundary" or "uniform", see
    :class:`RowGenerator`. None: no further rows, as in the published algorithms. A callable ``f(X,
    n_rows, random_state)`` gets the training rows and returns rows with the same columns. The
    statistics of the rules count training rows only. "out-of-fold" generates no rows: clones of an
    unfitted black box, fitted on the other folds, label the training rows.
n_queries : int, default=8000
    Number of rows that `sampling` generates.
"""

#: Parts of the docstrings of several extractors.
PARTS = {
    "estimator": """
estimator : estimator
    The black box: a scikit-learn classifier or regressor. An unfitted one is cloned and fitted
    on (X, y); wrap a fitted one in ``FrozenEstimator``, or another model's function in
    :class:`CallableClassifier` or :class:`CallableRegressor`.
""",
    "grid": """
max_rules : int or None, default=16
    Largest number of rules, at least 1. Boxes are cut one at a time, always the box with the
    largest gain, along the feature that reduces the impurity most (Gini impurity or squared
    residuals). None: every box is cut along all features at once, as in the paper.
n_features_to_select : int or None, default=5
    """
    + SELECTION
    + """
n_slices : int or sequence of int, default=2
    Number of slices per cut feature. A sequence requires a sequence `importance_threshold` of the
    same length: the number of slices for features of at least that importance.
importance_threshold : float or sequence of float or None, default=None
    Smallest importance (see `importances`) of features that are cut, from 0 to 1; a sequence must
    increase. None cuts all features (the "fixed" strategy; a number is the "adaptive" one).
depth : int, default=3
    Largest number of levels, at least 1; with `max_rules` this counts per feature.
""",
    "selection": SELECTION,
    "cells": """
min_examples : int, default=1
    Smallest number of predictions per cell. In cells with fewer rows, the black box is queried at
    uniform random points. With 0 or 1 no points are drawn and nothing is random.
level_strategies : sequence of mappings, optional
    One mapping per level with ``n_slices`` and ``importance_threshold``. They replace the
    parameters of the same names and `depth`.
importances : array-like of shape (n_features,), optional
    Importance of each feature, for `importance_threshold`. By default, F statistics for the black
    box's predictions (analysis of variance in classification, linear regression otherwise), divided
    by the largest one.
""",
    "loss": """
criterion : str or None, default=None
    Loss that is summed over the rows: "errors" in classification, "squared_error" or
    "absolute_error" (much slower) in regression. None is "errors" or "squared_error".
""",
    "common": """
features : sequence of str or int, optional
    Features that rules may use, by name or index; by default all. The black box always gets all
    columns: queried points take the values of the other features from the training row that is
    nearest in the chosen features.
"""
    + SAMPLING
    + """prune : str or None, default=None
    Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
    :func:`skescore.prune`. "redundant" removes and merges rules without changing a prediction in
    the domain, see :meth:`skescore.rules.RuleSet.simplify`. None keeps all rules.
uncovered : {"default", "nearest", "abstain"}, default="default"
    Prediction for rows without a rule: the black box's majority class or mean among the training
    rows without a rule (among all training rows if rules cover them all), the prediction of the
    nearest rule, or `abstain_label` (NaN in regression).
abstain_label : str, int or float, optional
    Prediction of ``uncovered="abstain"`` in classification.
batch_size : int, optional
    Largest number of rows in one call of the black box; by default all rows.
""",
    "sizes": """
n_rules_ : int
    Number of rules.
coverage_ : float
    Weighted share of the training rows that some rule covers.
completeness_ : float
    Share of the domain's volume that some rule covers.
""",
    "fitted": """
estimator_ : estimator
    The fitted black box.
oracle_ : Oracle
    Queries the black box and counts the queries.
classes_ : ndarray of shape (n_classes,)
    Class labels. Classification only.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, if X had string column names.
""",
}


def documented(cls: T, parts: dict[str, str] = PARTS) -> T:
    """Replace names in braces in the docstring of a class by the shared parts."""
    return fill_docstring(cls, parts)
