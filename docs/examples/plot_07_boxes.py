"""
Rules as boxes
==============

Rules on two features are boxes in a plane. No rule covers the white area, which contains no rows.
Reports therefore state the covered share of the volume and the covered share of the rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from skescore import GridExExtractor
from skescore.plots import rule_boxes

iris = load_iris(as_frame=True)
X, y = iris.data[["petal length (cm)", "petal width (cm)"]], iris.target_names[iris.target]
knn = KNeighborsClassifier(9).fit(X, y)
extractor = GridExExtractor(knn, n_slices=4, depth=1, random_state=0).fit(X)

fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
rule_boxes(extractor.rules_, X, y, ax=ax)
plt.show()

# %%
print(extractor.rules_)
print(f"covered: {extractor.completeness_:.0%} of the volume, {extractor.coverage_:.0%} of rows")
