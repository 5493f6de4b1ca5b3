"""Extractions stop at a time limit."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, ExtractionTimeoutError, ITERExtractor, time_limit
from skescore.rules import as_ruleset
from skescore.selection import prune

X, Y = load_iris(return_X_y=True)
BLACK_BOX = KNeighborsClassifier(9).fit(X, Y)


def test_time_limit_stops_between_two_queries() -> None:
    queries = []

    def slow(rows: np.ndarray) -> np.ndarray:
        queries.append(len(rows))
        if len(queries) == 3:
            time.sleep(1.0)  # the limit ends during a query of the black box
        return BLACK_BOX.predict(rows)

    extractor = ITERExtractor(CallableClassifier(slow, classes=[0, 1, 2]), random_state=0)
    with time_limit(0.99), pytest.raises(ExtractionTimeoutError, match="Raise the time limit"):
        extractor.fit(X)
    assert len(queries) <= 3
    assert not hasattr(extractor, "rules_")


def test_time_limit_stops_pruning() -> None:
    rules = as_ruleset(CARTExtractor(BLACK_BOX, simplify=False, max_leaf_nodes=None).fit(X, Y))
    with time_limit(0), pytest.raises(ExtractionTimeoutError):
        prune(rules, X, BLACK_BOX.predict(X))


def test_time_limit_uses_the_earlier_of_two_limits() -> None:
    with time_limit(0), time_limit(60), pytest.raises(ExtractionTimeoutError):
        CARTExtractor(BLACK_BOX).fit(X, Y)
    with time_limit(60), time_limit(None):
        CARTExtractor(BLACK_BOX).fit(X, Y)
    assert len(CARTExtractor(BLACK_BOX).fit(X, Y).rules_) > 1


def test_time_limit_ignores_changes_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    with time_limit(0):
        monkeypatch.setattr(time, "time", lambda: 0.0)
        with pytest.raises(ExtractionTimeoutError):
            CARTExtractor(BLACK_BOX).fit(X, Y)
    monkeypatch.setattr(time, "time", lambda: 1e12)  # nor one that is set forward
    with time_limit(600):
        CARTExtractor(BLACK_BOX).fit(X, Y)
