"""
Edit rules and measure the costs
================================

An expert wants round thresholds and forbids a feature. Each edit is compared with the previous
rules on held-out rows. The bars are confidence intervals of the paired difference.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from skescore.constraints import Constraints
from skescore.editing import RuleEditor, price
from skescore.extractors import CARTExtractor

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, 20:28], y.map({0: "malignant", 1: "benign"})
X, X_new, y, y_new = train_test_split(X, y, random_state=0)
forest = RandomForestClassifier(50, random_state=0).fit(X, y)
rules = CARTExtractor(forest, max_leaf_nodes=4).fit(X, y).rules_
print(rules)

# %%
# The feature of the first condition is forbidden, and the other rules are refitted.
feature = X.columns[rules[0].conditions[0].feature]
constraints = Constraints(forbidden=[feature], thresholds={"*": {"digits": 2}})
editor = RuleEditor(
    rules, X, y, forest, held_out=(X_new, y_new), constraints=constraints, author="A. Expert"
)
effects = {"forbid the feature": editor.forbid(feature, because="not available in time")}
effects["refit the rest"] = editor.reoptimize(because="best rules without it").effect
effects["both together"] = editor.effect_of_all()
print(editor.rules_)

fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
for row, effect in enumerate(effects.values()):
    for offset, figure in zip((-0.12, 0.12), effect.figures, strict=True):
        d = figure.difference
        label = f"{figure.name} ({'data' if figure.name == 'correctness' else 'model'})"
        ax.errorbar(
            d.estimate,
            row + offset,
            xerr=[[d.estimate - d.low], [d.high - d.estimate]],
            fmt="o",
            color="C0" if figure.name == "correctness" else "C1",
            label=label if row == 0 else None,
        )
ax.axvline(0, color="gray", linewidth=0.7)
ax.set_yticks(range(len(effects)), effects)
ax.invert_yaxis()
ax.set_xlabel(f"change of the share of {len(X_new)} held-out rows")
ax.legend(loc="lower right")
plt.show()

# %%
# The price compares the best trees of at most four leaves with and without the constraints.
print(price(constraints, X, forest.predict(X), max_rules=4, tolerance=0.0025))

# %%
# The log replays to the same rules.
print(editor.log_)
