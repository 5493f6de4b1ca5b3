"""
The trade-off between errors and rules
======================================

A search evaluates extractors and hyperparameters on held-out rows. The plot shows the errors and
the number of rules of every candidate, and the best trade-offs (the Pareto front).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore import ExtractorSearchCV
from skescore.plots import pareto_plot

X, y = load_wine(return_X_y=True, as_frame=True)
search = ExtractorSearchCV(
    RandomForestClassifier(20, random_state=0),
    extractors=("cart", "gridex"),
    n_trials=14,
    cv=3,
    random_state=0,
).fit(X, y)

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
pareto_plot(search, ax=ax)
plt.show()

# %%
print(search.rules_)
print(search.pareto_front_[["extractor", "loss", "n_rules", "incompleteness", "knee"]])
