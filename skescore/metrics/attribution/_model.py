"""Queries of the black box whose attributions are measured, and the columns of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import is_classifier, is_regressor

from skescore._text import listed, short_repr
from skescore._validation import check_choice
from skescore.metrics.attribution._maps import off_graph

__all__ = ["BlackBox", "Target"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]
LINKS = ("identity", "softmax", "sigmoid")
#: Tolerance of the sum of probabilities, which suits models in single precision.
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """Prediction that the metrics of attributions measure.

    Use it as `target` of :func:`faithfulness` or :func:`attribution_infidelity` to set options.

    Parameters
    ----------
    label : label or int, or one for each row, default=None
        The class whose probability is measured; by default the predicted class of the row.
    kind : {"auto", "column", "label"}, default="auto"
        Meaning of `label` and `explains`. By default, integers are columns and other values are
        labels. It must be set if the classes are integers other than the column indices.
    explains : label, int or "target", default=None
        The class that attributions with one output explain. With two classes, the scores of rows
        with the other class as target are negated. With ``"target"`` each row explains its own
        target; this is the default for arrays, but must be set for a ``shap.Explanation``.
    classes : array-like, default=None
        Labels of the columns, if the estimator has no ``classes_``.
    link : {"softmax", "sigmoid", "identity"}, default=None
        Link of predictions that are no probabilities: ``"softmax"`` for logits, ``"sigmoid"`` for
        the margin of the second of two classes, ``"identity"`` for numbers.
    normalize : bool, default=False
        Divide differences of predicted numbers by the standard deviation of the predictions of X.
        Only :func:`faithfulness` supports it.

    Examples
    --------
    >>> from skescore.metrics.attribution import Target, faithfulness
    >>> def logits(X):
    ...     return X @ [[1.0, -1.0], [0.0, 2.0]]
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0]])
    >>> measures = faithfulness(logits, X, [[-1.0, 2.0]], target=Target(1, link="softmax"))
    >>> measures["aopc_compr"].round(2).tolist()
    [0.76]
    """

    label: Any = None
    kind: str = "auto"
    explains: Any = None
    classes: Any = None
    link: str | None = None
    normalize: bool = False

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("auto", "column", "label"))
        if self.link is not None:
            check_choice("link", self.link, LINKS)

    __repr__ = short_repr

    @classmethod
    def of(cls, target: Any) -> Target:
        """Return a target, or create one from a label."""
        return target if isinstance(target, cls) else cls(target)

    @property
    def is_chosen(self) -> bool:
        """True if the explained class of attributions with one output is known."""
        return self.label is not None or self._is_own

    @property
    def _is_own(self) -> bool:
        return isinstance(self.explains, str) and self.explains == "target"

    def columns(self, predictions: Floats, classes: Any) -> tuple[Indices, Indices | None]:
        """Return the column of each row's target, and the explained columns if they are set."""
        targets = _find_columns("target", self.label, self.kind, predictions, classes)
        if self.explains is None or self._is_own:
            return targets, None
        return targets, _find_columns("explains", self.explains, self.kind, predictions, classes)


class BlackBox:
    """Queries of a model; predictions have one column per class, or a single column of numbers."""

    def __init__(self, predict_proba: Any, target: Target, max_batch: int) -> None:
        self.link, self.max_batch = target.link, max_batch
        self.function, owner = _function(predict_proba, target.link)
        labels = getattr(owner, "classes_", None) if target.classes is None else target.classes
        self.classes = None if labels is None else np.asarray(labels)
        self.n_columns = 0
        self.n_queries = 0

    @property
    def predicts_probabilities(self) -> bool:
        """True if predictions are probabilities of classes."""
        return self.n_columns > 1 and self.link != "identity"

    def __call__(self, inputs: Any, n: int) -> Floats:
        """Return the predictions of n rows."""
        predictions = off_graph(self.function(inputs))
        try:
            array = np.asarray(predictions).astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"predict_proba must return numbers, got {predictions!r:.200}. Pass a function "
                "that returns probabilities, not labels."
            ) from None
        if array.shape == (n,):
            if self.link is None and np.asarray(predictions).dtype.kind in "biu":
                raise TypeError(
                    f"predict_proba must not return labels, got {np.asarray(predictions)[:3]!r}. "
                    "Pass a function with one column per class, such as lambda X: "
                    "np.eye(2)[predict(X)], or link='identity' if these are regression values."
                )
            array = array[:, np.newaxis]
        if array.ndim != 2 or len(array) != n or not array.shape[1]:
            raise ValueError(
                f"predict_proba must return one row for each of its {n} rows, got shape "
                f"{array.shape}. It is called with many rows at once."
            )
        array = self._linked(array)
        if self.n_columns and array.shape[1] != self.n_columns:
            raise ValueError(
                f"predict_proba returned {array.shape[1]} columns, but {self.n_columns} before. "
                "It must always return one per class."
            )
        self.n_columns = array.shape[1]
        self.n_queries += n
        if not np.isfinite(array).all():
            raise ValueError(
                "predict_proba must return finite numbers, got "
                f"{float(array[~np.isfinite(array)][0])!r}. Check whether the model supports rows "
                "with removed features, or choose another removal."
            )
        if self.predicts_probabilities:
            self._check_probabilities(array)
        return array

    def originals(self, rows: Any) -> Floats:
        """Return the predictions of the unchanged rows."""
        starts = range(0, len(rows), self.max_batch)
        batches = [range(i, min(i + self.max_batch, len(rows))) for i in starts]
        return np.vstack([self(rows.originals(batch), len(batch)) for batch in batches])

    def masked(
        self, rows: Any, blocks: Sequence[tuple[int, Bools]], targets: Indices
    ) -> list[Floats]:
        """Return the predictions for the target of each row with each mask, in batches."""
        block_predictions = [np.empty(len(masks)) for _, masks in blocks]
        capacity = max(1, self.max_batch // rows.copies)
        batch: list[tuple[int, int, int]] = []
        free = capacity
        for index, (_, masks) in enumerate(blocks):
            start = 0
            while start < len(masks):
                stop = min(len(masks), start + free)
                batch.append((index, start, stop))
                free -= stop - start
                start = stop
                if not free:
                    self._fill(rows, blocks, batch, targets, block_predictions)
                    batch, free = [], capacity
        if batch:
            self._fill(rows, blocks, batch, targets, block_predictions)
        return block_predictions

    def _fill(
        self,
        rows: Any,
        blocks: Sequence[tuple[int, Bools]],
        batch: Sequence[tuple[int, int, int]],
        targets: Indices,
        block_predictions: list[Floats],
    ) -> None:
        parts = [(blocks[index][0], blocks[index][1][start:stop]) for index, start, stop in batch]
        built = rows.build(parts)
        n, size = sum(len(masks) for _, masks in parts) * rows.copies, self.max_batch
        if n <= size:
            predictions = self(built, n)
        else:  # The background is larger than a batch.
            built = built.iloc if hasattr(built, "iloc") else built
            slices = [slice(start, min(start + size, n)) for start in range(0, n, size)]
            predictions = np.vstack([self(built[part], part.stop - part.start) for part in slices])
        start = 0
        for index, first, last in batch:
            stop = start + (last - first) * rows.copies
            column = predictions[start:stop, targets[blocks[index][0]]]
            # Predictions are averaged over the background rows.
            block_predictions[index][first:last] = column.reshape(last - first, rows.copies).mean(
                axis=1
            )
            start = stop

    def _linked(self, array: Floats) -> Floats:
        if self.link == "softmax":
            if array.shape[1] < 2:
                raise ValueError(
                    "link='softmax' needs one column per class, got a single one. Use "
                    "link='sigmoid' for the margin of a two-class model."
                )
            return np.asarray(softmax(array, axis=1))
        if self.link == "sigmoid":
            if array.shape[1] != 1:
                raise ValueError(
                    f"link='sigmoid' is for the margin of a two-class model, got {array.shape[1]} "
                    "columns. Use link='softmax'."
                )
            # 1 - p would lose the digits of a small probability.
            return np.hstack([expit(-array), expit(array)])
        return array

    def _check_probabilities(self, array: Floats) -> None:
        outside = (array < -1e-6) | (array > 1 + 1e-6)
        sums = array.sum(axis=1)
        if outside.any() or (np.abs(sums - 1) > _SUM_TOLERANCE).any():
            problem = (
                f"an entry of {float(array[outside][0]):g}"
                if outside.any()
                else f"a row with the sum {float(sums[np.abs(sums - 1).argmax()]):g}"
            )
            raise ValueError(
                f"predict_proba must return probabilities that add up to 1, got {problem}. Pass "
                "link='softmax' for logits, or link='identity' to measure the raw numbers."
            )


def _function(model: Any, link: str | None) -> tuple[Any, Any]:
    """Return the function to query, and its estimator if any."""
    if isinstance(model, type):
        raise TypeError(f"predict_proba must be a fitted model, got the class {model.__name__}.")
    owner = getattr(model, "__self__", None)
    name = getattr(model, "__name__", "")
    if owner is not None and callable(model):
        if name == "predict" and _is(is_classifier, owner):
            raise TypeError(
                f"predict of {type(owner).__name__} returns labels, which have no differences. "
                "Pass its predict_proba."
            )
        if name == "decision_function" and link is None:
            raise TypeError(
                f"decision_function of {type(owner).__name__} returns margins, not probabilities. "
                "Pass link='sigmoid' for two classes, link='softmax' for more, or link='identity' "
                "to measure the margins."
            )
        return model, owner
    if hasattr(model, "predict_proba"):
        return model.predict_proba, model
    if hasattr(model, "predict") and (_is(is_regressor, model) or _task(model) == "regression"):
        return model.predict, model
    if hasattr(model, "decision_function") and link is not None:
        return model.decision_function, model
    if callable(model):
        return model, model
    raise TypeError(
        "predict_proba must be a function of rows, a fitted classifier with predict_proba or a "
        f"fitted regressor, got {type(model).__name__}. For margins, pass its decision_function "
        "with link='sigmoid' or 'softmax'; for labels, a function with one column per class: "
        "lambda X: np.eye(2)[model.predict(X)]."
    )


def _task(model: Any) -> Any:
    return getattr(model, "task", None)


def _is(check: Any, estimator: Any) -> bool:
    """Apply a check of scikit-learn to any object."""
    try:
        return bool(check(estimator))
    except (AttributeError, TypeError):
        return False


def _find_columns(name: str, target: Any, kind: str, predictions: Floats, classes: Any) -> Indices:
    """Return the column of each row's target; by default the column of the predicted class."""
    n_rows, n_columns = predictions.shape
    if target is None:
        return predictions.argmax(axis=1)
    if n_columns == 1:
        if np.array_equal(np.unique(np.asarray(target)), [0]):
            return np.zeros(n_rows, dtype=np.intp)
        raise ValueError(
            f"{name} must be omitted, because the model predicts a single number, got {target!r}."
        )
    class_values = np.asarray(target)
    if class_values.ndim > 1 or (class_values.ndim == 1 and len(class_values) != n_rows):
        raise ValueError(
            f"{name} must be one class, or one for each of the {n_rows} rows, got shape "
            f"{class_values.shape}."
        )
    if classes is not None and len(classes) != n_columns:
        raise ValueError(
            f"classes must name the {n_columns} columns of predict_proba, got {len(classes)}."
        )
    is_integer = class_values.dtype.kind in "iu"
    if kind == "auto":
        same = classes is not None and np.array_equal(classes, np.arange(n_columns))
        if is_integer and classes is not None and not same and classes.dtype.kind in "iuf":
            raise ValueError(
                f"{name}={target!r} is ambiguous: it can be a column or a label, because the "
                f"classes are {listed(classes.tolist())}. Pass a Target with kind='column' or "
                "kind='label'."
            )
        kind = "column" if is_integer else "label"
    columns = _columns(class_values, is_integer, kind, n_columns, classes, name)
    return np.broadcast_to(columns, (n_rows,)).astype(np.intp)


def _columns(
    class_values: Any, is_integer: bool, kind: str, n_columns: int, classes: Any, name: str
) -> Indices:
    if kind == "column":
        if not is_integer or class_values.min() < 0 or class_values.max() >= n_columns:
            raise ValueError(
                f"{name} must be columns from 0 to {n_columns - 1}, got "
                f"{class_values.tolist()!r}. Pass a Target with kind='label' for labels."
            )
        return class_values
    if classes is None:
        raise ValueError(
            f"{name} is given as a label, but the classes are unknown. Pass the fitted "
            "estimator, or classes in the order of the columns."
        )
    column_of_label = {label: column for column, label in enumerate(classes.tolist())}
    unknown = [label for label in np.ravel(class_values).tolist() if label not in column_of_label]
    if unknown:
        raise ValueError(
            f"{name} must be among the classes {listed(list(column_of_label))}, got {unknown[0]!r}."
        )
    columns = [column_of_label[label] for label in np.ravel(class_values).tolist()]
    return np.array(columns, dtype=np.intp).reshape(class_values.shape)
