"""
Choose the number of rules by a grid search
===========================================

The scores are available as scikit-learn scorers, so ``GridSearchCV`` can use them. With a
larger weight phi of the performance in ICE, the best tree may have more leaves.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

from skescore import CARTExtractor, make_ice_scorer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
leaves = [2, 3, 4, 6, 8, 12]
search = GridSearchCV(
    CARTExtractor(RandomForestClassifier(10, random_state=0), random_state=0),
    {"max_leaf_nodes": leaves},
    scoring={"phi 1": make_ice_scorer(phi=1), "phi 3": make_ice_scorer(phi=3)},
    refit="phi 3",
    cv=3,
).fit(X, y)

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, marker in (("phi 1", "o"), ("phi 3", "s")):
    ax.plot(leaves, search.cv_results_[f"mean_test_{name}"], marker=marker, label=name)
ax.set(xlabel="largest number of leaves", ylabel="ICE on held-out rows")
ax.legend()
plt.show()

# %%
# The grid search selects the number of leaves with the best ICE for phi = 3.
print(search.best_params_)
print(search.best_estimator_.rules_)
