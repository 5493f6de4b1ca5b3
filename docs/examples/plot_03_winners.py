"""
Who wins for which weights
==========================

ICE has two weights: φ for errors, ρ for rules. The map shows which candidate is the best for each
pair, and the curves how its score moves along one of them. Nothing is extracted again.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from skescore import ExtractorSearchCV
from skescore.plots import score_sensitivity, winner_map
from skescore.tuning import weight_stability

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
search = ExtractorSearchCV(
    RandomForestClassifier(10, random_state=0),
    extractors=("cart",),
    n_trials=12,
    cv=3,
    random_state=0,
).fit(X, y)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
winner_map(search, "ice", ax=ax)
plt.show()

# %%
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
score_sensitivity(search, "phi", top=4, ax=ax)
plt.show()

# %%
# How far a weight may move until another candidate wins:
print(weight_stability(search).table[["weight", "direction", "factor", "n_rules"]])
