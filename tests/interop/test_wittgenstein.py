"""Rules of wittgenstein predict like its models, also at bounds of its bins."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from skescore import as_ruleset

wittgenstein = pytest.importorskip("wittgenstein")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("seed", range(4))
def test_wittgenstein_rules_predict_like_model(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=300),
            "b": rng.integers(0, 3, 300),
            "c": rng.choice(["x", "1 - 2", "<w"], 300),
            "d": rng.gamma(2, size=300).round(1),
        }
    )
    y = np.where((X["a"] > 0.3) & (X["c"] == "x") | (X["b"] == 2) | (X["d"] > 3), "yes", "no")
    model = [wittgenstein.RIPPER, wittgenstein.IREP][seed % 2](random_state=seed)
    model.fit(X, y=y, pos_class="yes")
    rules = as_ruleset(model)
    np.testing.assert_array_equal(rules.predict(X), model.predict(X))
    bins = [text for texts in model.bin_transformer_.bins_.values() for text in texts]
    edges = np.array(re.findall(r"-?\d+\.\d+", " ".join(bins).replace(" - ", " ")), dtype=float)
    near = np.concatenate([edges, np.nextafter(edges, 99), np.nextafter(edges, -99)])
    rows = X.sample(500, replace=True, random_state=seed).reset_index(drop=True)
    rows["a"], rows["d"] = rng.choice(near, 500), rng.choice(near, 500)
    np.testing.assert_array_equal(rules.predict(rows), model.predict(rows))


def test_wittgenstein_reader_rejects_unfitted_models():
    with pytest.raises(ValueError, match="has no rules yet"):
        as_ruleset(wittgenstein.RIPPER())
