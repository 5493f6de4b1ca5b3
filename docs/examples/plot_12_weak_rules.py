"""
Find weak rules
===============

A report evaluates every rule on held-out rows: the number of covered rows for which it is right (p)
and wrong (n), its precision p / (p + n), other measures, and its statistical significance.
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
# The numbers of rules and features are not limited, so weak rules remain.
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
    rules = report[report["output"] == label]
    ax.scatter(rules["p"] + rules["n"], rules["precision"], marker=marker, label=label)
ax.set_xscale("symlog")
ax.set(xlabel="held-out rows covered by the rule", ylabel="precision on these rows")
ax.legend(title="prediction")
plt.show()
