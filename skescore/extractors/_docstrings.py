"""What the docstrings of several extractors have in common, said once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

#: What a choice of features is, in all docstrings: the lines below a parameter.
SELECTION = """\
Most features that rules may use, at least 1: those that say most of the predictions by
    themselves (variance, or Gini impurity, between eight intervals with equally many rows, or
    between categories). Where some say significantly more than chance (F test at 5 %, Bonferroni's
    correction), only those. None: all."""

_PARTS = {
    "estimator": """
estimator : estimator
    The black box: a scikit-learn classifier or regressor. An unfitted one is cloned and fitted
    on (X, y); wrap a fitted one in ``FrozenEstimator``, any other model's function in
    :class:`CallableClassifier` or :class:`CallableRegressor`.
""",
    "grid": """
max_rules : int or None, default=16
    Most rules, at least 1: boxes are then cut one at a time, each along the one feature along which
    that takes away most of the scatter (Gini impurity, or squared residuals), the box that gains
    most first. None: every box is cut along all features at once, as in the paper.
n_features_to_select : int or None, default=5
    """
    + SELECTION
    + """
n_slices : int or sequence of int, default=2
    Slices per cut feature. A sequence goes with a sequence `importance_threshold` of the same
    length: the slices for features of at least that importance.
importance_threshold : float or sequence of float or None, default=None
    Cut only features whose importance (see `importances`) is at least this, from 0 to 1; a
    sequence must increase. None cuts all features (the "fixed" strategy, 0.5 say is the
    "adaptive" one).
depth : int, default=3
    Most levels of cutting, at least 1; with `max_rules` for each feature by itself.
""",
    "selection": SELECTION,
    "cells": """
min_examples : int, default=1
    Predictions wanted per cell: cells with fewer rows are filled up with uniform random points,
    for which the black box is queried. Up to 1 there are no such points and nothing is random.
level_strategies : sequence of mappings, optional
    One mapping per level with ``n_slices`` and ``importance_threshold``, in place of the
    parameters of those names and of `depth`.
importances : array-like of shape (n_features,), optional
    Importance of each feature, for `importance_threshold`. By default the F statistic of the
    feature against the black box's predictions (analysis of variance, or linear regression),
    divided by the largest.
""",
    "loss": """
criterion : str or None, default=None
    What is summed over the rows: "errors" for classes, "squared_error" or "absolute_error" for
    numbers. None is "errors" or "squared_error"; absolute errors take far longer.
""",
    "common": """
features : sequence of str or int, optional
    Features that rules may use, by name or index; by default all. The black box always sees all
    columns; queried about points, the others have the values of the training row that is nearest
    in these.
prune : str or None, default=None
    Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
    :func:`skescore.prune`; None keeps all rules.
uncovered : {"default", "nearest", "abstain"}, default="default"
    What ``predict`` gives where no rule holds: the black box's majority class or mean, the
    prediction of the nearest rule, or `abstain_label` (NaN in regression).
abstain_label : str, int or float, optional
    Prediction of ``uncovered="abstain"`` in classification.
batch_size : int, optional
    Most rows in one call of the black box; by default all at once.
""",
    "sizes": """
n_rules_ : int
    Number of rules.
coverage_ : float
    Share of the training rows that some rule covers.
completeness_ : float
    Share of the domain's volume that some rule covers.
""",
    "proof": """
frontier_ : Frontier
    Bounds of the loss, and rules, for each number of rules.
lower_bounds_ : ndarray of shape (n_sizes,)
    No such rules, at most 1, 2, ... of them, have a smaller loss on the training rows.
gap_ : float
    By how much the loss of the best rules of the largest size could be smaller; 0 where these are
    proven to be the best.
status_ : str
    "optimal", or what ended the search: "node_limit", "time_limit" or "memory_limit".
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
    Their names, if X had string column names.
""",
}


def documented(cls: T, parts: dict[str, str] = _PARTS) -> T:
    """Put the shared parts in place of their names in braces into the docstring of a class."""
    text = inspect.cleandoc(cls.__doc__ or "")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part.strip("\n"))
    cls.__doc__ = text
    return cls
