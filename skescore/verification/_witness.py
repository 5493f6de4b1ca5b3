"""Witnesses: rows on which a model and a rule disagree, as close to real rows as possible.

Every witness is confirmed by calling the model and the rules with the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._text import value_text
from skescore._validation import python_value
from skescore.verification._branch import Target
from skescore.verification._measures import column_scales
from skescore.verification._queries import PointQueries

#: Number of points whose nearest rows are computed, and of points that are moved towards a row.
_N_CANDIDATES, _N_MOVED = 400, 8
#: Number of bisection steps between a point and the real row, per column.
_N_HALVINGS = 12


@dataclass(frozen=True)
class Witness:
    """Row on which the model and a rule disagree.

    Parameters
    ----------
    row : dict of str to value
        Values by column; None for missing values.
    prediction : label or number
        Prediction of the model.
    rule_output : label or number
        Prediction of the rules.
    distance : float
        Distance to the nearest row of the data: differences of numbers in standard deviations, and
        1 for each changed category or missing value.
    nearest_row : int
        Index of that row.
    changes : dict of str to value
        Values of the nearest row that differ in the witness.
    probability : float or None, default=None
        Probability that the model assigns to its prediction.
    """

    row: dict[str, Any]
    prediction: Any
    rule_output: Any
    distance: float
    nearest_row: int
    changes: dict[str, Any]
    probability: float | None = None

    def to_text(self) -> str:
        """Describe the row in a sentence."""
        values = ", ".join(f"{name} = {value_text(value)}" for name, value in self.row.items())
        probability_text = (
            "" if self.probability is None else f" (probability {self.probability:.3g})"
        )
        location = f"row {self.nearest_row} of the data"
        if self.changes:
            changes_text = ", ".join(
                f"{name} {value_text(self.row[name])} instead of {value_text(value)}"
                for name, value in self.changes.items()
            )
            location = f"like row {self.nearest_row} of the data, with {changes_text}"
        return (
            f"For {values} the model predicts {value_text(self.prediction)}{probability_text} and "
            f"the rules {value_text(self.rule_output)} ({location})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as JSON values."""
        return {
            "row": self.row,
            "prediction": self.prediction,
            "rule_output": self.rule_output,
            "distance": self.distance,
            "nearest_row": self.nearest_row,
            "changes": self.changes,
            "probability": self.probability,
        }


class WitnessSearch:
    """Search that moves points of disagreement towards real rows, and describes them.

    Parameters
    ----------
    queries : PointQueries
        Rules and model.
    grid : CellGrid
        Cells that determine the kinds of the columns and the units of distances.
    """

    def __init__(self, queries: PointQueries, grid: Any) -> None:
        self.queries = queries
        self.rows = queries.codes.matrix
        self.scales = column_scales(grid)
        self.is_category = grid.is_category
        self.is_whole = queries.codes.is_whole

    def distances(self, points: np.ndarray) -> np.ndarray:
        """Return the distance of each point to each row, shape (n_points, n_rows)."""
        result = np.zeros((len(points), len(self.rows)))
        for j in range(self.rows.shape[1]):
            result += self._differences(j, points[:, j][:, None], self.rows[:, j][None, :])
        return result

    def _differences(self, j: int, values: np.ndarray, others: np.ndarray) -> np.ndarray:
        both_missing = np.isnan(values) & np.isnan(others)
        if self.is_category[j]:
            return np.where(both_missing, 0.0, (values != others) * 1.0)
        difference = np.abs(values - others) / self.scales[j]
        return np.where(both_missing, 0.0, np.where(np.isnan(difference), 1.0, difference))

    def disagrees(self, points: np.ndarray, target: Target, rule: int) -> np.ndarray:
        """Query rules and model; return which points are wrong predictions of the rule."""
        if not len(points):
            return np.zeros(0, dtype=bool)
        assigned, _ = self.queries.apply_rules(points)
        result = assigned == rule
        if result.any():
            candidates = points[result]
            result[result] = ~target.agrees(self.queries.predict(candidates), candidates)
        return np.asarray(result)

    def nearest(self, points: np.ndarray, target: Target, rule: int) -> np.ndarray | None:
        """Return a point of disagreement as close to a row as the search can find.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            Points of disagreement, including the rows themselves where they disagree.
        target : Target
            Output and tolerance of the rule.
        rule : int
            Index of the rule; -1 for uncovered rows.

        Returns
        -------
        ndarray or None
            The point; None if no point disagrees when it is queried again.
        """
        points = points[:_N_CANDIDATES]
        points = points[self.disagrees(points, target, rule)]
        if not len(points):
            return None
        distances = self.distances(points)
        order = np.argsort(distances.min(axis=1), kind="stable")
        best, best_distance = points[order[0]], float(distances[order[0]].min())
        for i in order[:_N_MOVED].tolist():
            if best_distance == 0:
                break
            origin = self.rows[int(distances[i].argmin())]
            moved_point = self._towards(points[i], origin, target, rule)
            distance = float(self.distances(moved_point[None])[0].min())
            if distance < best_distance:
                best, best_distance = moved_point, distance
        return np.asarray(best)

    def _towards(
        self, point: np.ndarray, origin: np.ndarray, target: Target, rule: int
    ) -> np.ndarray:
        """Reset columns to the values of a row as long as the disagreement remains."""
        point = point.copy()
        differing = self._differing(point, origin)
        while len(differing):
            trials = np.repeat(point[None], len(differing), axis=0)
            trials[np.arange(len(differing)), differing] = origin[differing]
            works = self.disagrees(trials, target, rule)
            if not works.any():
                break
            gains = [
                self._differences(j, point[j : j + 1], origin[j : j + 1])[0] for j in differing
            ]
            point = trials[int(np.where(works, gains, -1.0).argmax())]
            differing = self._differing(point, origin)
        for _ in range(_N_HALVINGS):
            for j in differing[~self.is_category[differing]].tolist():
                trial = point.copy()
                middle = (point[j] + origin[j]) / 2
                trial[j] = np.round(middle) if self.is_whole[j] else middle
                is_changed = trial[j] not in (point[j], origin[j])
                if is_changed and self.disagrees(trial[None], target, rule)[0]:
                    point = trial
        return point

    def _differing(self, point: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Return the columns in which a point differs from a row."""
        same = (point == origin) | (np.isnan(point) & np.isnan(origin))
        return np.flatnonzero(~same)

    def most_confident(self, points: np.ndarray, target: Target) -> np.ndarray | None:
        """Return the point with the most confident contradiction; None without probabilities.

        In regression, it is the point with the largest deviation.
        """
        if not len(points):
            return None
        if target.tolerance is not None:
            deviations = target.deviations(self.queries.predict(points), points)
            return np.asarray(points[int(deviations.argmax())])
        probabilities = self.queries.probabilities(points)
        if probabilities is None:
            return None
        labels = self.queries.classes
        if target.output in labels:
            probabilities[:, labels.index(target.output)] = 0.0
        return np.asarray(points[int(probabilities.max(axis=1).argmax())])

    def describe(self, point: np.ndarray) -> Witness:
        """Query model and rules for a point, and describe it."""
        prediction = python_value(self.queries.predict(point[None])[0])
        _, outputs = self.queries.apply_rules(point[None])
        distances = self.distances(point[None])[0]
        nearest = int(distances.argmin())
        values = self.queries.codes.values_of(point)
        origin = self.queries.codes.values_of(self.rows[nearest])
        changes = {name: origin[name] for name in values if values[name] != origin[name]}
        probability = None
        probabilities = self.queries.probabilities(point[None])
        if probabilities is not None and prediction in self.queries.classes:
            position = self.queries.classes.index(prediction)
            probability = float(probabilities[0, position])
        return Witness(
            {name: python_value(value) for name, value in values.items()},
            prediction,
            python_value(outputs[0]),
            float(distances[nearest]),
            nearest,
            {name: python_value(value) for name, value in changes.items()},
            probability,
        )
