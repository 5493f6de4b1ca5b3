"""Real networks of PyTorch and Keras as black boxes."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor

X, y = load_iris(return_X_y=True)
LABELS = ["setosa", "versicolor", "virginica"]


def network(n_outputs: int) -> torch.nn.Module:
    """Return two layers with dropout between them, which must be inactive in predictions."""
    torch.manual_seed(0)
    layers = (torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, n_outputs))


def trained(n_outputs: int, target: np.ndarray, loss: torch.nn.Module) -> torch.nn.Module:
    module = network(n_outputs)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    rows, expected = torch.tensor(X, dtype=torch.float32), torch.tensor(target)
    for _ in range(150):
        optimizer.zero_grad()
        loss(module(rows), expected).backward()
        optimizer.step()
    return module


def expected(module: torch.nn.Module) -> np.ndarray:
    module.eval()
    with torch.no_grad():
        outputs: np.ndarray = module(torch.tensor(X, dtype=torch.float32)).numpy()
    module.train()
    return outputs


def test_torch_module_with_score_per_class_is_black_box() -> None:
    module = trained(3, y, torch.nn.CrossEntropyLoss())
    truth = np.array(LABELS)[expected(module).argmax(axis=1)]
    black_box = clone(CallableClassifier(module, classes=LABELS))
    assert black_box.function is module
    assert (black_box.predict(X) == truth).all()
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    extractor = CARTExtractor(black_box, max_leaf_nodes=8, random_state=0).fit(X)
    assert np.mean(extractor.predict(X) == truth) > 0.95
    frame = load_iris(as_frame=True).data
    assert (black_box.predict(frame) == truth).all()


def test_torch_module_with_one_score_is_black_box() -> None:
    target = (y == 2).astype(np.float32)[:, None]
    module = trained(1, target, torch.nn.BCEWithLogitsLoss())
    black_box = CallableClassifier(module, classes=["no", "yes"], threshold=0)
    assert (black_box.predict(X) == np.where(expected(module)[:, 0] > 0, "yes", "no")).all()


def test_torch_module_with_number_is_black_box() -> None:
    module = trained(1, X[:, 2:3].astype(np.float32), torch.nn.MSELoss()).double()
    black_box = CallableRegressor(module)
    module.eval()
    truth = module(torch.tensor(X)).detach().numpy()[:, 0]
    assert black_box.predict(X) == pytest.approx(truth, rel=1e-6)
    rules = CARTExtractor(black_box, max_leaf_nodes=8, random_state=0).fit(X).rules_
    assert np.corrcoef(rules.predict(X), truth)[0, 1] > 0.95


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # from Keras
@pytest.mark.skipif(
    importlib.util.find_spec("keras") is None
    and "keras" not in os.environ.get("SKESCORE_ENGINES", "").split(","),
    reason="Keras is not installed",
)
def test_keras_model_is_black_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)])
    scores = np.asarray(model.predict(X.astype("float32"), verbose=0))
    black_box = CallableClassifier(model, classes=LABELS)
    assert (black_box.predict(X) == np.array(LABELS)[scores.argmax(axis=1)]).all()
