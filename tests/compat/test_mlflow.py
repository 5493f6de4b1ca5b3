"""Rules are saved, loaded and served by MLflow itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skescore.compat import load_mlflow_rules, save_mlflow_model
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet

RULES = RuleSet(
    [Rule([Interval(0, upper=2.5), OneOf(1, ["red"])], "small")],
    ["size", "color"],
    task="classification",
    fallback=Fallback("large"),
)
X = pd.DataFrame(
    {"size": [1.0, 3.0, np.nan], "color": ["red", "blue", None], "other": [1, 2, 3]},
    index=[5, 6, 7],
)


@pytest.mark.engine
@pytest.mark.filterwarnings("default")
def test_mlflow_serves_saved_rules(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    save_mlflow_model(RULES, tmp_path / "model", X)
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    prediction = model.predict(X)
    assert prediction.tolist() == ["small", "large", "large"]
    assert prediction.index.tolist() == [5, 6, 7]
    assert model.metadata.signature.inputs.input_names() == ["size", "color"]
    assert load_mlflow_rules(tmp_path / "model") == RULES
    assert not list((tmp_path / "model").rglob("*.pkl"))


def test_mlflow_needs_a_data_frame(tmp_path):
    with pytest.raises(TypeError, match="X must be a DataFrame"):
        save_mlflow_model(RULES, tmp_path, X.to_numpy())
    with pytest.raises(FileNotFoundError, match="holds no rules"):
        load_mlflow_rules(tmp_path)
