"""Asking a black box about rows without some of their features: once each, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skescore.metrics.attribution._attribution_rationales import descending
from skescore.metrics.attribution._model import Respondent

__all__ = ["Plan", "answers_by_row", "ask_originals", "plan_row"]

Floats = NDArray[np.float64]
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
