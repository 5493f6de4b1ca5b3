"""The black box of a measure of attributions: its queries, and which of its columns count."""

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
#: Probabilities of a single-precision model add up to one no better than this.
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """Which prediction of a model attributions are measured by.

    Use it as `target` of :func:`faithfulness` and :func:`attribution_infidelity` where a class
    alone does not say enough.

    Parameters
    ----------
    label : label or int, or one for each row, default=None
        The class whose probability is measured; by default the one predicted for the row.
    kind : {"auto", "column", "label"}, default="auto"
        What `label` and `explains` name. By default integers are columns and others labels; with
        classes that are other integers it must be said.
    explains : label, int or "target", default=None
        Of attributions of one output: the class that they speak of. The scores of rows whose target
        is the other of two classes are negated. ``"target"`` says that each row speaks of its own
        target, which is what arrays are taken for; a ``shap.Explanation`` must say it.
    classes : array-like, default=None
        Labels of the columns, where the estimator does not tell them.
    link : {"softmax", "sigmoid", "identity"}, default=None
        How predictions that are no probabilities are read: logits, the margin of the second of two
        classes, or numbers as they are.

    Examples
    --------
    >>> from skescore.metrics.attribution import Target, faithfulness
    >>> def logits(X):
    ...     return X @ [[1.0, -1.0], [0.0, 2.0]]
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0]])
    >>> found = faithfulness(logits, X, [[-1.0, 2.0]], target=Target(1, link="softmax"))
    >>> found["aopc_compr"].round(2).tolist()
    [0.76]
    """

    label: Any = None
    kind: str = "auto"
    explains: Any = None
    classes: Any = None
    link: str | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("auto", "column", "label"))
        if self.link is not None:
            check_choice("link", self.link, LINKS)

    __repr__ = short_repr

    @classmethod
    def of(cls, target: Any) -> Target:
        """Return a target, or one by a label."""
        return target if isinstance(target, cls) else cls(target)

    @property
    def chosen(self) -> bool:
        """Whether it is known of which class attributions of one output speak."""
        return self.label is not None or self._is_own

    @property
    def _is_own(self) -> bool:
        return isinstance(self.explains, str) and self.explains == "target"

    def columns(self, predictions: Floats, classes: Any) -> tuple[Indices, Indices | None]:
        """The column of each row's target, and the one that its attributions speak of, if said."""
        targets = _find_columns("target", self.label, self.kind, predictions, classes)
        if self.explains is None or self._is_own:
            return targets, None
        return targets, _find_columns("explains", self.explains, self.kind, predictions, classes)


class BlackBox:
    """Predictions of a model as a matrix, one column for each class or one of numbers."""

    def __init__(self, predict_proba: Any, target: Target, max_batch: int) -> None:
        self.link, self.max_batch = target.link, max_batch
        self.function, owner = _function(predict_proba, target.link)
        labels = getattr(owner, "classes_", None) if target.classes is None else target.classes
        self.classes = None if labels is None else np.asarray(labels)
        self.n_columns = 0
        self.n_queries = 0

    @property
    def predicts_probabilities(self) -> bool:
        return self.n_columns > 1 and self.link != "identity"

    def __call__(self, inputs: Any, n: int) -> Floats:
        """Query n rows."""
        predictions = off_graph(self.function(inputs))
        try:
            array = np.asarray(predictions).astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"predict_proba must return numbers, got {predictions!r:.200}. Pass the function "
                "that returns probabilities, not labels."
            ) from None
        if array.shape == (n,):
            if self.link is None and np.asarray(predictions).dtype.kind in "biu":
                raise TypeError(
                    f"predict_proba must not return labels, got {np.asarray(predictions)[:3]!r}. "
                    "Pass a function with one column for each class, such as lambda X: "
                    "np.eye(2)[predict(X)], or say link='identity' if these are numbers."
                )
            array = array[:, np.newaxis]
        if array.ndim != 2 or len(array) != n or not array.shape[1]:
            raise ValueError(
                f"predict_proba must return one row for each of the {n} rows that it was given, "
                f"got shape {array.shape}. It is called with many rows at once."
            )
        array = self._linked(array)
        if self.n_columns and array.shape[1] != self.n_columns:
            raise ValueError(
                f"predict_proba returned {array.shape[1]} columns after {self.n_columns} before. "
                "It must always return one for each class."
            )
        self.n_columns = array.shape[1]
        self.n_queries += n
        if not np.isfinite(array).all():
            raise ValueError(
                "predict_proba must return finite numbers, got "
                f"{float(array[~np.isfinite(array)][0])!r}. See whether the model can take rows "
                "with removed features, or choose another removal."
            )
        if self.predicts_probabilities:
            self._check_probabilities(array)
        return array

    def originals(self, rows: Any) -> Floats:
        """Predictions of the rows as they are."""
        starts = range(0, len(rows), self.max_batch)
        batches = [range(i, min(i + self.max_batch, len(rows))) for i in starts]
        return np.vstack([self(rows.originals(batch), len(batch)) for batch in batches])

    def masked(
        self, rows: Any, blocks: Sequence[tuple[int, Bools]], targets: Indices
    ) -> list[Floats]:
        """Predictions for the target of each row under all its masks, many rows in one call."""
        found = [np.empty(len(masks)) for _, masks in blocks]
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
                    self._fill(rows, blocks, batch, targets, found)
                    batch, free = [], capacity
        if batch:
            self._fill(rows, blocks, batch, targets, found)
        return found

    def _fill(
        self,
        rows: Any,
        blocks: Sequence[tuple[int, Bools]],
        batch: Sequence[tuple[int, int, int]],
        targets: Indices,
        found: list[Floats],
    ) -> None:
        parts = [(blocks[index][0], blocks[index][1][start:stop]) for index, start, stop in batch]
        built = rows.build(parts)
        n, size = sum(len(masks) for _, masks in parts) * rows.copies, self.max_batch
        if n <= size:
            predictions = self(built, n)
        else:  # a background is larger than a batch
            built = built.iloc if hasattr(built, "iloc") else built
            slices = [slice(start, min(start + size, n)) for start in range(0, n, size)]
            predictions = np.vstack([self(built[part], part.stop - part.start) for part in slices])
        start = 0
        for index, first, last in batch:
            stop = start + (last - first) * rows.copies
            column = predictions[start:stop, targets[blocks[index][0]]]
            # A background counts by the mean of its predictions, not by that of its mean.
            found[index][first:last] = column.reshape(last - first, rows.copies).mean(axis=1)
            start = stop

    def _linked(self, array: Floats) -> Floats:
        if self.link == "softmax":
            if array.shape[1] < 2:
                raise ValueError(
                    "link='softmax' needs one column for each class, got a single one. Use "
                    "link='sigmoid' for the margin of a two-class model."
                )
            return np.asarray(softmax(array, axis=1))
        if self.link == "sigmoid":
            if array.shape[1] != 1:
                raise ValueError(
                    f"link='sigmoid' is for the margin of a two-class model, got {array.shape[1]} "
                    "columns. Use link='softmax'."
                )
            # Both sides by themselves: 1 - p would lose the digits of a small one.
            return np.hstack([expit(-array), expit(array)])
        return array

    def _check_probabilities(self, array: Floats) -> None:
        outside = (array < -1e-6) | (array > 1 + 1e-6)
        sums = array.sum(axis=1)
        if outside.any() or (np.abs(sums - 1) > _SUM_TOLERANCE).any():
            found = (
                f"an entry of {float(array[outside][0]):g}"
                if outside.any()
                else f"a row that adds up to {float(sums[np.abs(sums - 1).argmax()]):g}"
            )
            raise ValueError(
                "predict_proba must return probabilities that add up to 1, got "
                f"{found}. Say link='softmax' for logits, or link='identity' to measure the "
                "numbers as they are."
            )


def _function(model: Any, link: str | None) -> tuple[Any, Any]:
    """The function to query, and the estimator behind it if there is one."""
    if isinstance(model, type):
        raise TypeError(f"predict_proba must be a fitted model, got the class {model.__name__}.")
    owner = getattr(model, "__self__", None)
    name = getattr(model, "__name__", "")
    if owner is not None and callable(model):
        if name == "predict" and _is(is_classifier, owner):
            raise TypeError(
                f"predict of {type(owner).__name__} returns labels, whose changes cannot be "
                "measured. Pass its predict_proba."
            )
        if name == "decision_function" and link is None:
            raise TypeError(
                f"decision_function of {type(owner).__name__} returns margins, not probabilities. "
                "Say link='sigmoid' for two classes, link='softmax' for more, or link='identity' "
                "to measure the margins themselves."
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
        f"fitted regressor, got {type(model).__name__}. Pass its decision_function with "
        "link='sigmoid' or 'softmax' for margins, or a function with one column for each class for "
        "labels: lambda X: np.eye(2)[model.predict(X)]."
    )


def _task(model: Any) -> Any:
    return getattr(model, "task", None)


def _is(check: Any, estimator: Any) -> bool:
    """scikit-learn's check, for objects that need not be its estimators."""
    try:
        return bool(check(estimator))
    except (AttributeError, TypeError):
        return False


def _find_columns(name: str, target: Any, kind: str, predictions: Floats, classes: Any) -> Indices:
    """The column that each row's `target` names; by default the predicted one."""
    n_rows, n_columns = predictions.shape
    if target is None:
        return predictions.argmax(axis=1)
    if n_columns == 1:
        if np.array_equal(np.unique(np.asarray(target)), [0]):
            return np.zeros(n_rows, dtype=np.intp)
        raise ValueError(
            f"{name} must be left out, as the model predicts a single number, got {target!r}."
        )
    wanted = np.asarray(target)
    if wanted.ndim > 1 or (wanted.ndim == 1 and len(wanted) != n_rows):
        raise ValueError(
            f"{name} must be one class, or one for each of the {n_rows} rows, got shape "
            f"{wanted.shape}."
        )
    if classes is not None and len(classes) != n_columns:
        raise ValueError(
            f"classes must name the {n_columns} columns of predict_proba, got {len(classes)}."
        )
    whole = wanted.dtype.kind in "iu"
    if kind == "auto":
        same = classes is not None and np.array_equal(classes, np.arange(n_columns))
        if whole and classes is not None and not same and classes.dtype.kind in "iuf":
            raise ValueError(
                f"{name}={target!r} may be a column or a label, as the classes are "
                f"{listed(classes.tolist())}. Say kind='column' or kind='label' in a Target."
            )
        kind = "column" if whole else "label"
    found = _columns(wanted, whole, kind, n_columns, classes, name)
    return np.broadcast_to(found, (n_rows,)).astype(np.intp)


def _columns(
    wanted: Any, whole: bool, kind: str, n_columns: int, classes: Any, name: str
) -> Indices:
    if kind == "column":
        if not whole or wanted.min() < 0 or wanted.max() >= n_columns:
            raise ValueError(
                f"{name} must be columns from 0 to {n_columns - 1}, got {wanted.tolist()!r}. Say "
                "kind='label' in a Target for labels."
            )
        return wanted
    if classes is None:
        raise ValueError(
            f"{name} is given as a label, but the classes are not known. Pass the fitted "
            "estimator, or classes in the order of the columns."
        )
    known = {label: column for column, label in enumerate(classes.tolist())}
    unknown = [label for label in np.ravel(wanted).tolist() if label not in known]
    if unknown:
        raise ValueError(
            f"{name} must be among the classes {listed(list(known))}, got {unknown[0]!r}."
        )
    columns = [known[label] for label in np.ravel(wanted).tolist()]
    return np.array(columns, dtype=np.intp).reshape(wanted.shape)
