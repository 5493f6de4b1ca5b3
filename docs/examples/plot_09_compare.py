"""
Compare extractors on held-out rows
===================================

The scores of rules can be used in scikit-learn's cross-validation.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_validate

from skescore import (
    CARTExtractor,
    CREAMExtractor,
    ExACTExtractor,
    GridExExtractor,
    ITERExtractor,
    make_ice_scorer,
)

X, y = load_iris(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(10, random_state=0)
classes = (CARTExtractor, CREAMExtractor, ExACTExtractor, GridExExtractor, ITERExtractor)
rows = []
for extractor in classes:
    scores = cross_validate(
        extractor(forest, random_state=0),
        X,
        y,
        cv=3,
        scoring={"ice": make_ice_scorer(), "accuracy": "accuracy"},
        return_estimator=True,
    )
    rules = sum(fitted.n_rules_ for fitted in scores["estimator"]) / 3
    rows.append(
        (extractor.__name__, scores["test_ice"].mean(), scores["test_accuracy"].mean(), rules)
    )
table = pd.DataFrame(rows, columns=["extractor", "ICE", "accuracy", "rules"]).set_index("extractor")
print(table.round(3))

# %%
fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
table[["ICE", "accuracy"]].plot.barh(ax=ax)
ax.set(xlim=(0, 1), ylabel="")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
