"""Messages about objects that are no PSyKE extractors, also without PSyKE."""

from __future__ import annotations

import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore.rules.importers import read_psyke


@pytest.mark.parametrize("thing", [None, "GridEx", DecisionTreeClassifier()])
def test_read_psyke_rejects_other_objects(thing):
    with pytest.raises(TypeError, match="must be a fitted extractor of PSyKE, got"):
        read_psyke(thing)
