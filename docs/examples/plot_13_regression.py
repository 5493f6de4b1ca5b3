"""
Linear rules for regression
===========================

GridEx predicts a constant in each box, and GridREx a linear function. With about as many boxes,
GridREx therefore agrees much better with the forest. R² compares the predictions of the rules with
the predictions of the forest.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

from skescore import GridExExtractor, GridRExExtractor

X, y = make_friedman1(400, n_features=5, noise=0.5, random_state=0)
forest = RandomForestRegressor(20, random_state=0).fit(X, y)
constants = GridExExtractor(forest, n_slices=2, random_state=0).fit(X)
equations = GridRExExtractor(forest, n_slices=2, random_state=0).fit(X)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, extractor in zip(axes, (constants, equations), strict=True):
    ax.scatter(forest.predict(X), extractor.predict(X), s=8)
    ax.axline((10, 10), slope=1, color="0.5", linewidth=1)
    ax.set(
        title=f"{type(extractor).__name__}: {extractor.n_rules_} rules, "
        f"R² {extractor.fidelity(X):.2f}",
        xlabel="prediction of the forest",
    )
axes[0].set_ylabel("prediction of the rules")
plt.show()

# %%
print(equations.rules_)
