"""The black box of a faithfulness measure: what it is asked by, its columns and their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from skescore._text import listed
from skescore.metrics.attribution._maps import check_choice
from skescore.metrics.attribution._plausibility import descending

__all__ = ["Plan", "Respondent", "answers_by_row", "ask_originals", "find_targets", "plan_row"]

Floats = NDArray[np.float64]
LINKS = ("identity", "softmax", "sigmoid")
#: Probabilities of a single-precision model add up to one no better than this.
_SUM_TOLERANCE = 1e-3


class Respondent:
    """Answers of a black box as a matrix, one column for each class or one of numbers."""

    def __init__(self, predict_proba: Any, link: str | None, classes: Any) -> None:
        if link is not None:
            check_choice("link", link, LINKS)
        self.link = link
        self.function, owner = _function(predict_proba, link)
        labels = getattr(owner, "classes_", None) if classes is None else classes
        self.classes = None if labels is None else np.asarray(labels)
        self.columns = 0
        self.asked = 0

    @property
    def answers_probabilities(self) -> bool:
        return self.columns > 1 and self.link != "identity"

    def __call__(self, inputs: Any, n: int) -> Floats:
        """Ask for n rows."""
        answers = self.function(inputs)
        if hasattr(answers, "detach") and hasattr(answers, "cpu"):
            answers = answers.detach().cpu().numpy()
        try:
            array = np.asarray(answers).astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"predict_proba must return numbers, got {answers!r:.200}. Pass the function that "
                "returns probabilities, not labels."
            ) from None
        if array.shape == (n,):
            if self.link is None and np.asarray(answers).dtype.kind in "biu":
                raise TypeError(
                    f"predict_proba must not return labels, got {np.asarray(answers)[:3]!r}. Pass "
                    "a function with one column for each class, such as "
                    "lambda X: np.eye(2)[predict(X)], or say link='identity' if these are numbers."
                )
            array = array[:, np.newaxis]
        if array.ndim != 2 or len(array) != n or not array.shape[1]:
            raise ValueError(
                f"predict_proba must return one row for each of the {n} rows that it was asked, "
                f"got shape {array.shape}. It is called with many rows at once."
            )
        array = self._linked(array)
        if self.columns and array.shape[1] != self.columns:
            raise ValueError(
                f"predict_proba returned {array.shape[1]} columns after {self.columns} before. It "
                "must always return one for each class."
            )
        self.columns = array.shape[1]
        self.asked += n
        if not np.isfinite(array).all():
            raise ValueError(
                "predict_proba must return finite numbers, got "
                f"{float(array[~np.isfinite(array)][0])!r}. See whether the model can take rows "
                "with removed features, or choose another removal."
            )
        if self.answers_probabilities:
            self._check_probabilities(array)
        return array

    def _linked(self, array: Floats) -> Floats:
        if self.link == "softmax":
            if array.shape[1] < 2:
                raise ValueError(
                    "link='softmax' needs one column for each class, got a single one. Use "
                    "link='sigmoid' for the margin of a two-class model."
                )
            shifted = np.exp(array - array.max(axis=1, keepdims=True))
            return shifted / shifted.sum(axis=1, keepdims=True)
        if self.link == "sigmoid":
            if array.shape[1] != 1:
                raise ValueError(
                    f"link='sigmoid' is for the margin of a two-class model, got {array.shape[1]} "
                    "columns. Use link='softmax'."
                )
            # Both sides by themselves: 1 - p would lose the digits of a small one.
            with np.errstate(over="ignore"):
                return np.hstack([1 / (1 + np.exp(array)), 1 / (1 + np.exp(-array))])
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
    """The function to ask, and the estimator behind it if there is one."""
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


# --- which column ---------------------------------------------------------------------------------


def find_targets(
    target: Any, target_kind: str, base: Floats, classes: Any, name: str = "target"
) -> NDArray[np.intp]:
    """The column of each row's target."""
    check_choice("target_kind", target_kind, ("auto", "column", "label"))
    n_rows, n_columns = base.shape
    if target is None:
        return base.argmax(axis=1)
    if n_columns == 1:
        if np.array_equal(np.unique(np.asarray(target)), [0]):
            return np.zeros(n_rows, dtype=np.intp)
        raise ValueError(
            f"{name} must be left out, as the model answers a single number, got {target!r}."
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
    if target_kind == "auto":
        same = classes is not None and np.array_equal(classes, np.arange(n_columns))
        if whole and classes is not None and not same and classes.dtype.kind in "iuf":
            raise ValueError(
                f"{name}={target!r} may be a column or a label, as the classes are "
                f"{listed(classes.tolist())}. Say target_kind='column' or target_kind='label'."
            )
        target_kind = "column" if whole else "label"
    found = _columns(wanted, whole, target_kind, n_columns, classes, name)
    return np.broadcast_to(found, (n_rows,)).astype(np.intp)


def _columns(
    wanted: Any, whole: bool, kind: str, n_columns: int, classes: Any, name: str
) -> NDArray[np.intp]:
    if kind == "column":
        if not whole or wanted.min() < 0 or wanted.max() >= n_columns:
            raise ValueError(
                f"{name} must be columns from 0 to {n_columns - 1}, got {wanted.tolist()!r}. Say "
                "target_kind='label' for labels."
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


# --- asking a black box about rows without some of their features: once each, many at a t --------

Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]

#: How much of the masks of many rows is kept at a time.
_MASK_BYTES = 1 << 26


class Plan(NamedTuple):
    """What the measures need of one row."""

    scores: Floats
    lengths: Sequence[int]
    #: Distinct masks of what is removed.
    masks: Bools
    #: Of each rationale, the mask that takes it away and the one that leaves only it; -1: nothing
    #: is removed at all.
    without: Indices
    only: Indices
    #: The units that make a difference, and the masks that leave them out.
    units: Indices
    left_out: Indices


def ask_originals(model: Respondent, inputs: Any, max_batch: int) -> Floats:
    """The answers to the rows as they are."""
    rows = range(len(inputs))
    batches = [rows[start : start + max_batch] for start in range(0, len(rows), max_batch)]
    return np.vstack([model(inputs.originals(batch), len(batch)) for batch in batches])


def plan_row(inputs: Any, row: int, scores: Floats, lengths: Sequence[int], loo: bool) -> Plan:
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[descending(scores)] = np.arange(len(scores))
    inside = ranks[np.newaxis, :] < np.array(lengths, dtype=np.intp)[:, np.newaxis]
    wanted = [inputs.parts(row, inside), inputs.parts(row, ~inside)]
    units, masks = inputs.leave_one_out(row)
    if loo:
        wanted.append(masks)
    else:
        units = units[:0]
    # By their bytes, as sets of bits: equal ones, and those that remove nothing, are not asked.
    stacked = np.vstack(wanted)
    packed = np.packbits(stacked, axis=1)
    places: dict[bytes, int] = {}
    if stacked.shape[1]:
        places[bytes(packed.shape[1])] = -1
    where = np.full(len(stacked), -1, dtype=np.intp)
    kept: list[int] = []
    if stacked.shape[1]:
        for number, key in enumerate(map(bytes, packed)):
            if key not in places:
                places[key] = len(kept)
                kept.append(number)
            where[number] = places[key]
    n = len(lengths)
    return Plan(scores, lengths, stacked[kept], where[:n], where[n : 2 * n], units, where[2 * n :])


def answers_by_row(
    model: Respondent,
    inputs: Any,
    loo_inputs: Any,
    plan: Callable[[int], Plan],
    targets: Indices,
    max_batch: int,
) -> Iterator[tuple[int, Plan, Floats, tuple[Indices, Floats]]]:
    """Each row with its plan, the answers to its masks, and those to leaving units out."""
    apart = loo_inputs is not None and loo_inputs is not inputs
    for rows, plans in _chunks(plan, len(inputs), max_batch):
        blocks = [(row, step.masks) for row, step in zip(rows, plans, strict=True)]
        answers = ask_masks(model, inputs, blocks, targets, max_batch)
        if apart:
            single = [loo_inputs.leave_one_out(row) for row in rows]
            others = ask_masks(
                model, loo_inputs,
                [(row, masks) for row, (_, masks) in zip(rows, single, strict=True)],
                targets, max_batch,
            )  # fmt: skip
        for place, (row, step) in enumerate(zip(rows, plans, strict=True)):
            if apart:
                yield row, step, answers[place], (single[place][0], others[place])
            else:
                yield row, step, answers[place], (step.units, answers[place][step.left_out])


def _chunks(
    plan: Callable[[int], Plan], n_rows: int, max_batch: int
) -> Iterator[tuple[list[int], list[Plan]]]:
    """Rows together until their masks fill some batches, or some memory."""
    rows: list[int] = []
    plans: list[Plan] = []
    questions, size = 0, 0
    for row in range(n_rows):
        step = plan(row)
        rows.append(row)
        plans.append(step)
        questions += len(step.masks)
        size += step.masks.nbytes
        if questions >= 4 * max_batch or size >= _MASK_BYTES:
            yield rows, plans
            rows, plans, questions, size = [], [], 0, 0
    if rows:
        yield rows, plans


def ask_masks(
    model: Respondent,
    inputs: Any,
    blocks: Sequence[tuple[int, Bools]],
    targets: Indices,
    max_batch: int,
) -> list[Floats]:
    """The answers for the target of each row to all its masks, many rows in one call."""
    answers = [np.empty(len(masks)) for _, masks in blocks]
    capacity = max(1, max_batch // inputs.copies)
    batch: list[tuple[int, int, int]] = []
    free = capacity
    for place, (_, masks) in enumerate(blocks):
        start = 0
        while start < len(masks):
            stop = min(len(masks), start + free)
            batch.append((place, start, stop))
            free -= stop - start
            start = stop
            if not free:
                _fill(model, inputs, blocks, batch, answers, targets, max_batch)
                batch, free = [], capacity
    if batch:
        _fill(model, inputs, blocks, batch, answers, targets, max_batch)
    return answers


def _fill(
    model: Respondent,
    inputs: Any,
    blocks: Sequence[tuple[int, Bools]],
    batch: Sequence[tuple[int, int, int]],
    answers: list[Floats],
    targets: Indices,
    max_batch: int,
) -> None:
    parts = [(blocks[place][0], blocks[place][1][start:stop]) for place, start, stop in batch]
    questions = inputs.build(parts)
    n = sum(len(masks) for _, masks in parts) * inputs.copies
    slices = [slice(start, min(start + max_batch, n)) for start in range(0, n, max_batch)]
    cut = (lambda part: questions.iloc[part]) if hasattr(questions, "iloc") else None
    responses = np.vstack(
        [
            model(
                questions if len(slices) == 1 else cut(part) if cut else questions[part],
                part.stop - part.start,
            )
            for part in slices
        ]
    )
    start = 0
    for place, first, last in batch:
        stop = start + (last - first) * inputs.copies
        column = responses[start:stop, targets[blocks[place][0]]]
        # A background counts by the mean of its answers, not by the answer to its mean.
        answers[place][first:last] = column.reshape(last - first, inputs.copies).mean(axis=1)
        start = stop
