"""What is known about an extraction by PSyKE while its extractor is made."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skescore.extractors._extraction import Extraction
from skescore.extractors._importance import feature_importances
from skescore.extractors.psyke._predictors import LabelPredictor, NumberPredictor
from skescore.extractors.psyke._runtime import Containment

#: PSyKE compares numbers with a precision of 1e-6: not enough for a smaller range, and lost in
#: larger numbers.
_LEAST_RANGE, _LARGEST = 1e-4, 1e9
#: Means of equal answers differ by rounding.
_LEAST_THRESHOLD = 1e-6


class Run(NamedTuple):
    """An extractor of PSyKE that is ready to run.

    Parameters
    ----------
    extractor : psyke.Extractor
        The extractor.
    frame : DataFrame
        The rows in the form that it wants.
    warning : str, default=""
        What the user should know.
    """

    extractor: Any
    frame: pd.DataFrame
    warning: str = ""


class Task(NamedTuple):
    """What a builder needs.

    Parameters
    ----------
    psyke : module
        The package.
    extraction : Extraction
        Rows and answers.
    parameters : dict
        All parameters of the algorithm.
    seed : int
        PSyKE's own seed.
    containment : Containment
        The way out of PSyKE's world, for the black box.
    """

    psyke: Any
    extraction: Extraction
    parameters: dict[str, Any]
    seed: int
    containment: Containment

    @property
    def classification(self) -> bool:
        """Whether the black box is a classifier."""
        return self.extraction.task == "classification"

    @property
    def names(self) -> list[str]:
        """Plain names of the columns."""
        return [f"x{j}" for j in range(self.extraction.X.shape[1])]

    def predictor(self) -> Any:
        """The black box in PSyKE's terms."""
        kind = LabelPredictor if self.classification else NumberPredictor
        return kind(self.extraction, self.containment)

    def target(self) -> Any:
        """What the rules conclude, in PSyKE's terms."""
        if self.classification:
            return self.psyke.Target.CLASSIFICATION
        linear = self.parameters.get("output") == "linear"
        return self.psyke.Target.REGRESSION if linear else self.psyke.Target.CONSTANT

    def run(self, extractor: Any) -> Run:
        """Give the extractor the rows as they are."""
        return Run(extractor, self.with_target(pd.DataFrame(self.extraction.X, columns=self.names)))

    def with_target(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Add the last column, which PSyKE takes no more than the name of."""
        return frame.assign(y=0.0)

    def scale(self, share: float) -> float:
        """The threshold that None stands for: 0.1, or a share of the answers' deviation."""
        if self.classification:
            return 0.1
        return max(share * float(np.std(self.extraction.answers)), _LEAST_THRESHOLD)

    def threshold(self, share: float = 0.5, name: str = "threshold") -> float:
        """The threshold given, or the one that None stands for."""
        given = self.parameters[name]
        return float(given) if given is not None else self.scale(share)

    def importances(self) -> np.ndarray:
        """Importance of each feature, the largest is 1."""
        return feature_importances(self.extraction.X, self.extraction.answers, self.extraction.task)

    def ranks(self) -> list[tuple[str, float]]:
        """The same in PSyKE's terms."""
        return list(zip(self.names, self.importances().tolist(), strict=True))

    def check_numbers(self) -> None:
        """Raise for features that PSyKE's absolute precision is not enough for."""
        why = "PSyKE compares numbers with a precision of 0.000001"
        self.extraction.check_magnitude(_LARGEST, why)
        widths = np.ptp(self.extraction.X, axis=0)
        small = np.flatnonzero((widths > 0) & (widths < _LEAST_RANGE))
        if len(small):
            name = str(self.extraction.settings["feature_names"][small[0]])
            raise ValueError(
                f"Feature {name!r} has a range of {widths[small[0]]:.3g}, less than "
                f"{_LEAST_RANGE:g}; {why}. Scale the feature."
            )
