"""
The winner for each pair of weights
===================================

ICE has two weights: φ for errors and ρ for rules. The map shows the best candidate for each pair of
weights, and the curves show the scores along one weight. No rules are extracted again.
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
# The change of a weight that makes another candidate win:
print(weight_stability(search).table[["weight", "direction", "factor", "n_rules"]])
