"""
Which rule is weak?
===================

Every rule by itself: how many held-out rows it holds for, how often it is right there, and whether
that is more than luck.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from skescore import GridExExtractor, rule_report

data = load_breast_cancer(as_frame=True)
X, X_new, y, y_new = train_test_split(
    data.data, data.target_names[data.target], random_state=0, stratify=data.target
)
forest = RandomForestClassifier(20, random_state=0).fit(X, y)
# No limits on rules and features, since the weak ones are to be seen.
extractor = GridExExtractor(
    forest,
    n_slices=3,
    importance_threshold=0.7,
    depth=1,
    max_rules=None,
    n_features_to_select=None,
    random_state=0,
).fit(X)
report = rule_report(extractor.rules_, X_new, y_new, measures=["c2", "lift"])
print(report[["output", "p", "n", "precision", "c2", "lift", "significant"]].round(2))

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for label, marker in zip(data.target_names, "os", strict=True):
    some = report[report["output"] == label]
    ax.scatter(some["p"] + some["n"], some["precision"], marker=marker, label=label)
ax.set_xscale("symlog")
ax.set(xlabel="new rows that the rule holds for", ylabel="share of them that are right")
ax.legend(title="the rule says")
plt.show()
