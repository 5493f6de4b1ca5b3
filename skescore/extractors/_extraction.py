"""What the base class hands to an algorithm: the rows, the answers, and how to ask for more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.extractors import _validation as check
from skescore.extractors._oracle import Oracle


@dataclass(frozen=True, eq=False)
class Extraction:
    """All that an algorithm needs to know to extract rules.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The training rows, finite floats; categorical columns hold codes.
    answers : ndarray of shape (n_rows,)
        What the black box answered on them: class indices or floats.
    task : {"classification", "regression"}
        The kind of answers.
    classes : list or None
        Class labels.
    oracle : Oracle
        Asks the black box about further points.
    settings : dict
        The keyword parameters of the RuleSet to make.
    categories : mapping of int to tuple, default={}
        The values of each categorical feature, in the order of their codes 0, 1, ...
    decode : callable, optional
        Turns points with codes into what the black box knows.
    """

    X: np.ndarray
    answers: np.ndarray
    task: str
    classes: np.ndarray | None
    oracle: Oracle
    settings: dict[str, Any]
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    decode: Callable[[np.ndarray], Any] | None = None

    def check_magnitude(self, largest: float, why: str) -> None:
        """Raise a ValueError that names the first feature with numbers beyond `largest`.

        Parameters
        ----------
        largest : float
            What the algorithm can work with.
        why : str
            What would go wrong, to end the message.
        """
        domain = self.settings["domain"]
        extent = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
        beyond = np.flatnonzero(extent > largest)
        if len(beyond):
            name = str(self.settings["feature_names"][beyond[0]])
            raise ValueError(
                f"Feature {name!r} holds numbers up to {extent[beyond[0]]:.3g}, more than "
                f"{largest:.3g}; {why}. Scale the feature."
            )

    def ask(self, points: np.ndarray, *, remember: bool = True) -> np.ndarray:
        """Ask the black box about points: class indices or floats.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            The points; codes in categorical columns.
        remember : bool, default=True
            False for the points of many small questions, see :meth:`Oracle.ask`.

        Returns
        -------
        ndarray of shape (n_points,)
            One answer per point.
        """
        shown = points if self.decode is None else self.decode(points)
        answers = self.oracle.ask(shown, remember=remember)
        if self.classes is None:
            return check.finite_answers(answers)
        return check.encode_labels(answers, self.classes)
