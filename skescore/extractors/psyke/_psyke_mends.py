"""Mends for faults of PSyKE 1.0.4, one object at a time: its classes stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def mend_cart(extractor: Any) -> None:
    """Let regression trees be written as a theory.

    The value of a leaf is an array of shape (1, 1), which NumPy 2.4 no longer makes a number of.
    """
    reader = extractor._cart_predictor
    name = "_CartPredictor__get_prediction"
    original = getattr(reader, name)

    def prediction(node: int) -> Any:
        value = original(node)
        return float(np.ravel(value)[0]) if isinstance(value, np.ndarray) else value

    setattr(reader, name, prediction)


def mend_trepan(extractor: Any) -> None:
    """Let nodes with fewer rows than `min_examples` be leaves; PSyKE stops there instead."""
    original = extractor._best_split

    def best_split(node: Any, names: Any) -> Any:
        if node.samples.shape[0] < extractor.min_examples:
            return None
        return original(node, names)

    extractor._best_split = best_split


def mend_iter(extractor: Any, names: Sequence[str]) -> None:
    """Let ITER's boxes have labels, and its choices not hang on the process's hash seed.

    Faces to move are met in the order of a set of texts, and the first of equally good ones is
    moved; here they come in the order of the features, lower face first. Boxes that begin in a
    gap have no label in PSyKE, so that nothing around ever joins them; here they get the label
    that is commonest among their rows before they grow.
    """
    place = {name: j for j, name in enumerate(names)}
    strips, iterate = extractor._create_temp_cubes, extractor._iterate

    def ordered_strips(*arguments: Any) -> Any:
        return sorted(strips(*arguments), key=lambda s: (place[s.feature], s.direction != "-"))

    def labelled(frame: Any, boxes: Any, *arguments: Any) -> Any:
        label_boxes(boxes, frame, extractor.predictor)
        return iterate(frame, boxes, *arguments)

    extractor._create_temp_cubes = ordered_strips
    extractor._iterate = labelled
    extractor._create_theory = _before(
        extractor._create_theory,
        lambda frame: label_boxes(extractor._hypercubes, frame, extractor.predictor),
    )


def label_boxes(boxes: Any, frame: Any, predictor: Any) -> None:
    """Give boxes without a label the commonest one among their rows."""
    for box in boxes:
        if isinstance(box.output, str) and not box.output:
            box.update(frame, predictor)


def mend_clusterer(clusterer: Any) -> None:
    """Let nodes that cannot be split be leaves with an output.

    PSyKE gives a root that is not split no output at all (or 0), and a mixture that cannot be
    fitted ends it.
    """
    mixture = clusterer._get_gauss_predictions
    iterate = clusterer._iterate

    def predictions(to_split: list[Any]) -> Any:
        to_split.sort(reverse=True)
        _, depth, _, node = to_split[-1]
        try:
            return mixture(to_split)
        except (UnboundLocalError, ValueError):  # how it tells that there are too few rows
            if to_split and to_split[-1][-1] is node:
                to_split.pop()
            return node, depth, np.full(len(node.dataframe), -1), (0.0, 1, None)

    def with_output(root: Any) -> Any:
        root.cube.update(root.dataframe, clusterer._predictor)
        return iterate(root)

    clusterer._get_gauss_predictions = predictions
    clusterer._iterate = with_output


def mend_cosmik(extractor: Any, domain: Any) -> None:
    """Let COSMiK end at all, and leave out boxes that hold no row.

    It looks for the faces of the box around all rows before it makes that box. Boxes that have
    their rows on their upper faces, which do not belong to them, get no output (or 0).

    Parameters
    ----------
    extractor : COSMiK
        The extractor.
    domain : HyperCube
        The box around all rows.
    """
    extractor._surrounding = domain
    sort = extractor._sort_cubes

    def sort_those_with_rows() -> None:
        boxes = extractor._hypercubes
        extractor._hypercubes = [box for box in boxes if box.barycenter.dimensions]
        sort()

    extractor._sort_cubes = sort_those_with_rows


def mend_hex(extractor: Any) -> None:
    """Let the rule for all other rows have the output of the rows that it answers.

    PSyKE gives it that of the rows outside of cells that it then drops.
    """

    def update(frame: Any) -> None:
        *cells, last = extractor._hypercubes
        if last is not extractor._surrounding:
            return
        rows = frame.iloc[:, :-1]
        held = np.zeros(len(rows), dtype=bool)
        for cell in cells:
            held |= cell.filter_indices(rows)
        last.update(frame[~held] if not held.all() else frame, extractor.predictor)

    extractor._create_theory = _before(extractor._create_theory, update)


def _before(method: Callable[..., Any], action: Callable[..., Any]) -> Callable[..., Any]:
    """Do something with the arguments of a method first."""

    def both(*arguments: Any) -> Any:
        action(*arguments)
        return method(*arguments)

    return both
