"""ITER: boxes that grow step by step towards what is most like them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skescore import _validation as check
from skescore._random import draw_seed
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._docstrings import documented
from skescore.extractors._features import important_features
from skescore.extractors._joining import join_touching
from skescore.extractors.iter._boxes import GrowingBoxes, seed_boxes
from skescore.extractors.iter._predictions import Labels, Numbers, PointSource, Predictions
from skescore.rules import BoxTable, Conclusions, RuleSet

#: Steps of larger features, and squares of larger predictions, would overflow.
_LARGEST_FEATURE, _LARGEST_PREDICTION = 1e300, 1e150


@documented
class ITERExtractor(BaseExtractor):
    """Disjoint boxes that grow from a seed, always towards what is most like them.

    A small box is laid around a row. Of all strips beside its faces, one step wide, the one whose
    predictions are nearest to the box's becomes part of it; once even that one is farther than
    `threshold`, it becomes a box of its own and grows as well. Rows that are still without a box
    in the end get boxes too. Few rules of simple shape, also where a grid would need many; the
    choice where the black box can be queried freely and changes along few features.

    Parameters
    ----------
    {estimator}
    min_update : float, default=0.1
        A step, as a share of each feature's range; more than 0, at most 1. Smaller steps find
        borders more exactly and take more iterations.
    n_points : int, default=3
        Boxes to begin with, at least 1: around the first row of each of the first classes, or
        around rows whose predictions are spread evenly over all. Fewer if the boxes would meet.
    n_features_to_select : int or None, default=5
        {selection}
    max_rules : int or None, default=16
        Most boxes, at least 1. What they do not come to cover stays uncovered. None: no limit
        but `max_iterations`.
    max_iterations : int, default=600
        Most steps, at least 1. What is not covered then stays so.
    min_examples : int, default=100
        Predictions wanted per strip: what it lacks in rows is made up by uniform random points,
        for which the black box is queried. With 0 there are no points and nothing is random.
    threshold : float or None, default=None
        Largest gap between a strip and the box that it becomes part of: in regression between
        their mean predictions (in the target's units), in classification between their class
        probabilities, from 0 (the same) to 1 (no class in common). None stands for 0.15 in
        classification, for half the standard deviation of the rows' predictions in regression.
    fill_gaps : bool, default=True
        Begin again at the first row that no box holds, until there is none or `max_iterations` is
        reached.
    ignore_dimensions : sequence of int or str, default=()
        Columns, by index or name, along which boxes always have the full range.
    refresh_output : bool, default=True
        True: a box stands for all that it has become, and its rule concludes what the black box
        predicts for the rows inside. False: it stands for what it was when it was made, as in
        PSyKE.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the points. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, disjoint half-open boxes; each holds for at least one training row.
    n_iterations_ : int
        Steps taken. The black box was queried for the rows, and at most once per step.
    {sizes}
    {fitted}

    Notes
    -----
    The gap between class probabilities p and q is ``sum(abs(p - q)) / 2``. Comparing the majority
    classes alone would make nearly all gaps 0, so that boxes would grow over everything that is not
    mainly of another class.

    Of strips with equal gaps the one with most rows comes first, then the one whose predictions
    differ least, then the one of the older box and the earlier feature, lower face first. A strip
    without rows becomes a box of its own only if no other has any; boxes that hold no row in the
    end are no rules.

    A strip's mean is that of its rows, and of points in place of the rows it lacks. Points queried
    once serve as long as their face stays where it is: while the box grows elsewhere, only the part
    that is new is queried, once it makes up 30 % of the strip. Points depend on `random_state`,
    box, face and number of draws, not on what was queried before or in what batches.

    In classification boxes of one class that share a whole face are joined in the end, which
    changes no prediction. Features that are constant on the rows never appear in rules.

    References
    ----------
    J. Huysmans, B. Baesens, J. Vanthienen: ITER: An algorithm for predictive regression rule
    extraction. DaWaK 2006. doi:10.1007/11823728_26

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import ITERExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = ITERExtractor(
    ...     KNeighborsClassifier(9), n_points=1, min_examples=250, threshold=0.3, random_state=0
    ... )
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) < 2.58 THEN setosa   [50 rows, 100 % pure]
    2. IF 2.58 ≤ petal length (cm) < 4.94 THEN versicolor   [54 rows, 89 % pure]
    3. IF petal length (cm) ≥ 4.94 THEN virginica   [46 rows, 98 % pure]
    otherwise, where no rule holds: virginica
    >>> extractor.n_iterations_, extractor.oracle_.n_calls
    (36, 21)
    """

    takes_categories: ClassVar[bool] = True
    _orders_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        min_update: float = 0.1,
        n_points: int = 3,
        n_features_to_select: int | None = 5,
        max_rules: int | None = 16,
        max_iterations: int = 600,
        min_examples: int = 100,
        threshold: float | None = None,
        fill_gaps: bool = True,
        ignore_dimensions: Sequence[int | str] = (),
        refresh_output: bool = True,
        features: Any = None,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.min_update = min_update
        self.n_points = n_points
        self.n_features_to_select = n_features_to_select
        self.max_rules = max_rules
        self.max_iterations = max_iterations
        self.min_examples = min_examples
        self.threshold = threshold
        self.fill_gaps = fill_gaps
        self.ignore_dimensions = ignore_dimensions
        self.refresh_output = refresh_output
        self.features = features
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        remedy = "It is the share of a feature's range by which boxes grow."
        check.check_number("min_update", self.min_update, high=1, above=0, remedy=remedy)
        check.check_integer("n_points", self.n_points, 1)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_rules", self.max_rules, 1, optional=True)
        check.check_integer("max_iterations", self.max_iterations, 1)
        check.check_integer("min_examples", self.min_examples, 0)
        check.check_number("threshold", self.threshold, 0.0, optional=True)
        check.check_flag("fill_gaps", self.fill_gaps)
        check.check_flag("refresh_output", self.refresh_output)

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(_LARGEST_FEATURE, "steps along them would overflow")
        extraction.check_predictions(_LARGEST_PREDICTION)
        X, domain, y_pred = extraction.X, extraction.settings["domain"], extraction.predictions
        lower, upper = np.array(domain.lower), np.array(domain.upper)
        predictions: Predictions
        if extraction.classes is not None:
            predictions, threshold = Labels(y_pred, len(extraction.classes)), 0.15
        else:
            predictions, threshold = Numbers(y_pred), float(np.std(y_pred)) / 2
        if self.threshold is not None:
            threshold = float(self.threshold)
        # Floats cannot tell the ends of shorter steps apart.
        least = 4 * np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        steps = np.where(lower < upper, np.maximum(self.min_update * (upper - lower), least), 0.0)
        for feature in extraction.categories:  # faces lie between values
            steps[feature] = max(1.0, np.ceil(steps[feature]))
        ignored = _columns(self.ignore_dimensions, extraction.settings["feature_names"])
        steps[ignored] = 0.0
        free = np.flatnonzero(steps > 0)
        chosen = free[
            important_features(X[:, free], y_pred, extraction.task, self.n_features_to_select)
        ]
        steps[np.setdiff1d(free, chosen)] = 0.0
        growing = GrowingBoxes(
            X,
            predictions,
            lower,
            upper,
            steps,
            query=partial(extraction.query, cache=False),
            points=PointSource(draw_seed(self.random_state), self.min_examples, X.shape[1]),
            min_examples=self.min_examples,
            limit=predictions.limit(threshold),
            follow=bool(self.refresh_output),
            most=self.max_rules,
            categories=extraction.categories,
        )
        n_points = self.n_points if self.max_rules is None else min(self.n_points, self.max_rules)
        for bounds in seed_boxes(growing, y_pred, extraction.task, n_points):
            growing.add_box(*bounds)
        self.n_iterations_ = growing.grow_all(self.max_iterations, bool(self.fill_gaps))
        return RuleSet.from_boxes(
            *self._conclude(extraction, growing),
            ordered=False,
            disjoint=True,
            **extraction.settings,
        )

    def _conclude(
        self, extraction: Extraction, growing: GrowingBoxes
    ) -> tuple[BoxTable, Conclusions]:
        """Make rules of the boxes that hold rows."""
        owner, y_pred = growing.owner, extraction.predictions
        if owner.min() < 0:
            y_pred, owner = y_pred[owner >= 0], owner[owner >= 0]
        kept = np.flatnonzero(np.bincount(owner))
        lower, upper = growing.lower[kept], growing.upper[kept]
        rule = np.zeros(growing.n_boxes, dtype=np.intp)
        rule[kept] = np.arange(len(kept))
        at_first = growing.predictions.outputs(growing.first_mean[kept])
        if extraction.classes is not None:
            counts = _class_counts(y_pred, rule[owner], len(kept), len(extraction.classes))
            outputs = counts.argmax(axis=1) if self.refresh_output else at_first
            first, joined = join_touching(lower, upper, outputs)
            rule[kept] = joined
            counts = _class_counts(y_pred, rule[owner], len(first), len(extraction.classes))
            lower, upper, outputs = lower[first], upper[first], outputs[first]
            conclusions = Conclusions(outputs, n_rows=counts.sum(axis=1), class_counts=counts)
        else:
            box = rule[owner]
            n_rows = np.bincount(box)
            mean = np.bincount(box, y_pred) / n_rows
            squares = (y_pred - mean[box]) ** 2
            deviation = np.sqrt(np.bincount(box, squares) / n_rows)
            outputs = mean if self.refresh_output else at_first
            conclusions = Conclusions(
                outputs, n_rows=n_rows, mean=mean, standard_deviation=deviation
            )
        closed = np.isfinite(lower)
        return BoxTable(lower, upper, closed, np.zeros_like(closed)), conclusions


def _class_counts(codes: np.ndarray, rule: np.ndarray, n_rules: int, n_classes: int) -> np.ndarray:
    counts = np.bincount(rule * n_classes + codes, minlength=n_rules * n_classes)
    return counts.reshape(n_rules, n_classes)


def _columns(given: Any, names: Any) -> list[int]:
    """Indices of columns given by index or name."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise TypeError(
            "ignore_dimensions must be a sequence of column indices or names, such as [0] or "
            f"['age'], got {given!r}."
        )
    known, columns = [str(name) for name in names], []
    for column in given:
        if isinstance(column, str):
            if column not in known:
                raise ValueError(
                    f"ignore_dimensions must hold names of columns, but {column!r} is none of "
                    f"{known}."
                )
            columns.append(known.index(column))
            continue
        if not isinstance(column, int | np.integer) or isinstance(column, bool):
            raise TypeError(f"ignore_dimensions must hold column indices or names, got {column!r}.")
        if not 0 <= column < len(known):
            raise ValueError(
                f"ignore_dimensions must hold column indices from 0 to {len(known) - 1}, got "
                f"{column!r}."
            )
        columns.append(int(column))
    return columns
