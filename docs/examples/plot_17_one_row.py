"""
Explain one prediction
======================

For a single row, `explain` shows the rule that predicts it and the nearest change that leads to
another prediction.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from skescore import CARTExtractor
from skescore.plots import rule_boxes

iris = load_iris(as_frame=True)
X, y = iris.data[["petal length (cm)", "petal width (cm)"]], iris.target_names[iris.target]
forest = RandomForestClassifier(30, random_state=0).fit(X, y)
extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(X)
row = X.iloc[[77]]
print(extractor.rules_.explain(row))

# %%
fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
rule_boxes(extractor.rules_, X, y, ax=ax)
ax.scatter(*row.to_numpy().T, marker="*", s=220, color="black", zorder=5)
plt.show()
