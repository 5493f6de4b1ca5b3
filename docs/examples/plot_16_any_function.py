"""
Explain a function
==================

The model can be any function that maps rows to labels. No target and no training are needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from skescore import CallableClassifier, GridExExtractor
from skescore.plots import decision_boundary


def tariff(rows):
    """Return the price class of a parcel from its weight (kg) and length (cm)."""
    weight, length = rows[:, 0], rows[:, 1]
    return np.where(weight * length > 250, "C", np.where(weight + length / 20 > 6, "B", "A"))


rows = np.random.default_rng(0).uniform([0, 10], [10, 120], size=(800, 2))
extractor = GridExExtractor(CallableClassifier(tariff), n_slices=5, depth=1, random_state=0)
extractor.fit(rows)
print(extractor.rules_)

# %%
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
decision_boundary(extractor.estimator_, rows, resolution=80, title="the function", ax=axes[0])
decision_boundary(extractor, rows, resolution=80, title="its rules", ax=axes[1])
plt.show()
