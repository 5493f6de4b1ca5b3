"""Path of CART: trees of all sizes, which are compared on the folds with one fit per fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skescore._deadline import time_limit
from skescore.black_boxes import black_box_task
from skescore.extractors import PATH_LEAVES, ExtractionTimeoutError, equal_siblings
from skescore.tuning._alternatives import READABLE_RULES
from skescore.tuning._objective import Fold

#: Smallest relative reduction of the errors by which a larger tree becomes a candidate.
_MIN_GAIN = 0.02
#: Number of rules up to which trees with slightly more errors than a smaller one are candidates.
_MAX_RULES_OF_SMALL_TREES = 6


def tree_path(
    prototype: Any,
    folds: Sequence[Fold],
    samplings: Sequence[Any],
    *,
    reference: str,
    max_rules: float | None = None,
    timeout: float | None = None,
) -> list[dict[str, Any]]:
    """Return the parameters of the trees with 1 to 32 leaves that no other tree dominates.

    Parameters
    ----------
    prototype : CARTExtractor
        Extractor whose other parameters, including the seed, are used.
    folds : sequence of Fold
        The folds.
    samplings : sequence
        Generators of query rows to try, including None.
    reference : {"data", "black_box"}
        Labels with which predictions are compared.
    max_rules : float, optional
        Largest number of rules. The tree with the fewest errors within this limit is included.
    timeout : float, optional
        Seconds after which no further generator is tried; the first one is not limited. With a
        timeout, the tree with the fewest errors within `max_rules` (by default eight) comes first,
        because the time may suffice for one tree only.

    Returns
    -------
    list of dict
        Parameters of CART, ordered by size. A smaller tree dominates a larger one unless the larger
        one has at least 2 % fewer errors on average over the folds. A tree with up to six rules is
        dominated only if it has more errors than a smaller one, by more than 2 % of the errors of
        the constant. The constant, which is the smallest tree, and the smallest tree with the
        fewest errors are included.
    """
    errors: dict[tuple[Any, int], float] = {}
    sizes: dict[tuple[Any, int], float] = {}
    start = time.monotonic()
    for sampling in samplings:
        seconds = None if timeout is None or not errors else start + timeout - time.monotonic()
        try:
            with time_limit(seconds):
                results = [_path_on_fold(prototype, fold, sampling, reference) for fold in folds]
        except ExtractionTimeoutError:
            break  # the trees so far are compared
        measured = [result for result in results if isinstance(result, np.ndarray)]
        if len(measured) < len(results):
            failure = next(result for result in results if isinstance(result, str))
            if sampling is not None:  # otherwise the candidates of the search report the error
                warnings.warn(
                    f"Trees with sampling={sampling!r} are not compared: {failure}",
                    UserWarning,
                    stacklevel=3,
                )
            continue
        n_sizes = min(result.shape[1] for result in measured)
        means = np.mean([result[:, :n_sizes] for result in measured], axis=0)
        for position in range(n_sizes):
            errors[sampling, position + 1], sizes[sampling, position + 1] = means[:, position]
    order = sorted(errors, key=lambda key: (round(sizes[key], 9), round(errors[key], 12)))
    candidates, smallest_errors = [], np.inf
    min_errors = min(errors.values(), default=0.0)
    for key in order:
        is_best = errors[key] <= min_errors + 1e-12 < smallest_errors
        limit = (1 - _MIN_GAIN) * smallest_errors - 1e-12
        if sizes[key] <= _MAX_RULES_OF_SMALL_TREES:
            # Bounds are rounded separately for each size, so the errors differ by a few rows.
            limit = smallest_errors + _MIN_GAIN * errors[order[0]]
        if is_best or errors[key] < limit:
            candidates.append(key)
            smallest_errors = min(smallest_errors, errors[key])
    if max_rules is not None and candidates:
        candidates = [k for k in candidates if sizes[k] <= max_rules + 0.5] or candidates[:1]
    if timeout is not None and candidates:
        limit = READABLE_RULES if max_rules is None else max_rules
        readable = [k for k in candidates if sizes[k] <= limit + 0.5] or candidates[:1]
        first = min(readable, key=lambda key: errors[key])
        candidates = [first, *(key for key in candidates if key != first)]
    return [_params(prototype, sampling, n_leaves) for sampling, n_leaves in candidates]


def _params(prototype: Any, sampling: Any, n_leaves: int) -> dict[str, Any]:
    params: dict[str, Any] = {"max_leaf_nodes": n_leaves, "sampling": sampling}
    if black_box_task(prototype.estimator) == "classification":
        params["merge_leaves"] = True
    return params


def _path_on_fold(prototype: Any, fold: Fold, sampling: Any, reference: str) -> np.ndarray | str:
    """Return the errors and the number of rules of each size on the held-out rows of a fold.

    The result has the shape (2, n_sizes). If the tree cannot be fitted, the result is the text of
    the error.
    """
    extractor = clone(prototype).set_params(
        max_leaf_nodes=PATH_LEAVES,
        sampling=sampling,
        simplify=False,
        merge_leaves=False,
        prune=None,
    )
    extractor.estimator = fold.black_box
    fold.fix_rows()
    options = {} if fold.train_weight is None else {"sample_weight": fold.train_weight}
    try:
        extractor.fit(fold.X_train, **options)
    except ExtractionTimeoutError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    tree = extractor.tree_.tree_
    leaves = np.flatnonzero(tree.children_left < 0)
    if len(leaves) != len(extractor.rules_):
        return f"the tree has {len(leaves)} leaves, but there are {len(extractor.rules_)} rules."
    X, weights = fold.X_test, fold.test_weight
    target = fold.y_test
    if reference == "black_box" or not fold.has_target:
        X, weights = fold.fidelity_rows
        target = extractor.oracle_.query(X)
    node = leaves[extractor.rules_.assign(extractor.rows_of_rules(X))]
    is_classification = hasattr(extractor, "classes_")
    if is_classification:
        labels = np.asarray(extractor.tree_.classes_)[tree.value[:, 0].argmax(axis=1)]
        outputs = extractor.classes_[labels.astype(int)]
    else:
        outputs = tree.value[:, 0, 0]
    return _errors_by_size(tree, node, outputs, np.asarray(target), weights, is_classification)


def _errors_by_size(
    tree: Any,
    node: np.ndarray,
    outputs: np.ndarray,
    target: np.ndarray,
    weights: Any,
    is_classification: bool,
) -> np.ndarray:
    """Return the errors and the number of rules of the trees with 1, 2, ... leaves."""
    n_leaves = (tree.node_count + 1) // 2
    parent = np.full(tree.node_count, -1)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children >= 0)
        parent[children[inner]] = inner
    result = np.empty((2, n_leaves))
    for size in range(n_leaves, 0, -1):
        n_nodes = 2 * size - 1
        while (is_beyond := node >= n_nodes).any():
            node = np.where(is_beyond, parent[node], node)
        predicted = outputs[node]
        if is_classification:
            losses = (predicted != target).astype(float)
            n_rules = size - int(np.count_nonzero(equal_siblings(tree, n_nodes)))
        else:
            losses, n_rules = (predicted - target.astype(float)) ** 2, size
        result[:, size - 1] = np.average(losses, weights=weights), n_rules
    return result
