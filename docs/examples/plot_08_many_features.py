"""
Rules over many features
========================

The first plot has one row per rule and one column per feature. Each bar is a condition: it covers
the values that the rule allows. The second plot shows, for each pair of rules, the share of the
data that both rules cover.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore import CREAMExtractor
from skescore.plots import overlap_matrix, parallel_rules

X, y = load_wine(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(30, random_state=0).fit(X, y)
extractor = CREAMExtractor(forest, depth=2, random_state=0).fit(X)
print(extractor.rules_)

fig, ax = plt.subplots(figsize=(10, 4), layout="constrained")
parallel_rules(extractor, X, max_features=6, ax=ax)
plt.show()

# %%
fig, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
overlap_matrix(extractor, X, ax=ax)
plt.show()
