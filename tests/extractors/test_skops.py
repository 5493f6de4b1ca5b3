"""Fitted extractors survive a skops file, whose types users can list and allow."""

from __future__ import annotations

from typing import Any

import pytest
import skops.io
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore import CARTExtractor, GridRExExtractor, TrepanExtractor


@pytest.mark.parametrize("kind", [CARTExtractor, TrepanExtractor, GridRExExtractor])
def test_skops_loads_fitted_extractors(kind: Any) -> None:
    regression = kind is GridRExExtractor
    load, forest = load_iris, RandomForestClassifier
    if regression:
        load, forest = load_diabetes, RandomForestRegressor
    X, y = load(return_X_y=True, as_frame=True)
    extractor = kind(forest(3, max_depth=3, random_state=0)).fit(X, y)
    content = skops.io.dumps(extractor)
    types = skops.io.get_untrusted_types(data=content)
    assert {name.partition(".")[0] for name in types} <= {"skescore", "sklearn", "numpy", "pandas"}
    loaded = skops.io.loads(content, trusted=types)
    assert loaded.rules_ == extractor.rules_
    assert loaded.predict(X).tolist() == extractor.predict(X).tolist()
    assert loaded.score(X, y) == extractor.score(X, y)
    assert loaded._repr_html_().count("<tr>") == extractor._repr_html_().count("<tr>")
