"""ONNX models of scikit-learn and of rules as black boxes predict like the originals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore import CARTExtractor
from skescore.black_boxes import BlackBoxError, load_black_box
from skescore.rules import Fallback, Interval, Missing, OneOf, Rule, RuleSet

skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def saved(model, X, path, **options):
    converted = skl2onnx.to_onnx(model, X.to_numpy(dtype="float32")[:1], **options)
    path.write_bytes(converted.SerializeToString())
    return load_black_box(path)


def test_onnx_classifier_is_explained(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.astype("float32")
    model = RandomForestClassifier(5, random_state=0).fit(X.to_numpy(), y.map(str))
    black_box = saved(model, X, tmp_path / "model.onnx", options={"zipmap": False})
    np.testing.assert_array_equal(black_box.predict(X), model.predict(X.to_numpy()))
    extractor = CARTExtractor(black_box, max_leaf_nodes=3).fit(X)
    expected = CARTExtractor(model, max_leaf_nodes=3).fit(X.to_numpy())
    copy = pickle.loads(pickle.dumps(extractor))
    np.testing.assert_array_equal(copy.predict(X), expected.predict(X.to_numpy()))


def test_onnx_regressor_is_explained(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.astype("float32")
    model = RandomForestRegressor(3, random_state=0).fit(X.to_numpy(), y)
    black_box = saved(model, X, tmp_path / "model.onnx")
    np.testing.assert_allclose(black_box.predict(X), model.predict(X.to_numpy()), rtol=1e-5)


def test_onnx_rules_are_a_black_box(tmp_path):
    rules = RuleSet(
        [Rule([Missing(1)], "none"), Rule([Interval(0, upper=2.5), OneOf(1, ["red"])], "small")],
        ["size", "color"],
        task="classification",
        fallback=Fallback("large"),
    )
    (tmp_path / "rules.onnx").write_bytes(rules.to("onnx"))
    black_box = load_black_box(tmp_path / "rules.onnx")
    X = pd.DataFrame({"size": [1.0, np.nan, 2.0], "color": ["red", "red", None]})
    assert black_box.predict(X).tolist() == rules.predict(X).tolist() == ["small", "large", "none"]
    with pytest.raises(ValueError, match="has the input 'color'"):
        black_box.predict(X[["size"]])


def test_load_black_box_rejects_damaged_onnx_files(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BlackBoxError, match="cannot be loaded"):
        load_black_box(tmp_path / "model.onnx")
