"""Labels and rows with which the tests of Prolog engines compare predictions."""

from __future__ import annotations

import numpy as np

from skescore.rules import RuleSet

#: Labels that need quotes, or that have a meaning in Prolog.
LABELS = [
    "it's",
    "b\n\\c",
    "größer 日本 \N{SNOWMAN}",
    *("Upper", "_x", "", "[]", "{}", "is", "-", ",", "a b", "%", "mod", "dynamic"),
    "\N{GRINNING FACE}",
    "\x00\x7f\x1b",
    *("1", "1.0", "'", "!", ":-", "|", "Output", "true", "\u2028"),
]


def bordering_rows(ruleset: RuleSet, rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Return random rows, many of them on or right next to bounds, with missing values."""
    X = rng.normal(size=(n_rows, ruleset.n_features)) * 2
    if ruleset.domain is not None:
        low, high = np.array(ruleset.domain.lower), np.array(ruleset.domain.upper)
        X = low + (high - low) * rng.uniform(-0.1, 1.1, X.shape)
    for j in range(ruleset.n_features):
        cuts = np.concatenate([ruleset.boxes.lower[:, j], ruleset.boxes.upper[:, j]])
        cuts = cuts[np.isfinite(cuts)]
        if len(cuts):
            beside = [np.nextafter(cuts, -np.inf), cuts, np.nextafter(cuts, np.inf)]
            is_near_bound = rng.random(n_rows) < 0.5
            X[is_near_bound, j] = rng.choice(np.concatenate(beside), is_near_bound.sum())
    X[rng.random(X.shape) < 0.03] = np.nan
    return X
