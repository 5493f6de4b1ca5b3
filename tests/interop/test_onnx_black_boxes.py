"""ONNX models of scikit-learn and of rules as black boxes predict like the originals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore import CARTExtractor
from skescore.black_boxes import BlackBoxError, load_black_box, select_output
from skescore.rules import Fallback, Interval, Missing, OneOf, Rule, RuleSet

onnx = pytest.importorskip("onnx")
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


def identity(tmp_path, type_name, width=1, name="a"):
    """Return a black box that predicts its input."""
    helper, kind = onnx.helper, getattr(onnx.TensorProto, type_name)
    fields = [helper.make_tensor_value_info(n, kind, [None, width]) for n in (name, "prediction")]
    node = helper.make_node("Identity", [name], ["prediction"])
    graph = helper.make_graph([node], "identity", fields[:1], fields[1:])
    versions = [helper.make_opsetid("", 17)]
    content = helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString()
    (tmp_path / "identity.onnx").write_bytes(content)
    return load_black_box(tmp_path / "identity.onnx")


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("INT64", [1.0, math.nan]),
        ("INT64", [1.0, 2.5]),
        ("INT32", [1, 2**31]),
        ("BOOL", [True, None]),
    ],
)
def test_onnx_rejects_numbers_that_an_input_cannot_hold(tmp_path, type_name, values):
    with pytest.raises(ValueError, match=f"has the type {type_name.lower()}, which cannot"):
        identity(tmp_path, type_name).predict(pd.DataFrame({"a": values}))


def test_onnx_inputs_hold_exact_integers_and_their_texts(tmp_path):
    X = pd.DataFrame({"a": [2**53 + 1, 1]})
    assert identity(tmp_path, "INT64").predict(X).tolist() == [2**53 + 1, 1]
    X = pd.DataFrame({"a": [1, None]})
    assert identity(tmp_path, "STRING").predict(X).tolist() == ["1", ""]


def test_onnx_input_for_all_features_may_be_named_like_one(tmp_path):
    X = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    model = identity(tmp_path, "FLOAT", width=2, name="x")
    assert select_output(model, "v", names=["u", "v"]).predict(X).tolist() == [3, 4]
    with pytest.raises(ValueError, match="one output at a time"):
        model.predict(X)


def test_load_black_box_rejects_damaged_onnx_files(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BlackBoxError, match="cannot be loaded"):
        load_black_box(tmp_path / "model.onnx")
