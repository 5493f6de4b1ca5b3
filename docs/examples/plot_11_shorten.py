"""
Shorten a list of rules
=======================

There are three ways to shorten rules: change no prediction, accept a few changed predictions (a
tolerance), or remove parts of the rules as long as a score improves.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from skescore import GridExExtractor, prune

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(20, random_state=0).fit(X, y)
extractor = GridExExtractor(forest, n_slices=3, importance_threshold=0.7, random_state=0).fit(X)
rules = extractor.rules_
versions = {
    "as extracted": rules,
    "simplify()": rules.simplify(),
    "simplify(X, tolerance=0.02)": rules.simplify(X, tolerance=0.02),
    'prune(..., "ice")': prune(rules, X, forest.predict(X), "ice"),
}
fidelity = [(version.predict(X) == forest.predict(X)).mean() for version in versions.values()]

fig, axes = plt.subplots(1, 2, figsize=(10, 3), sharey=True, layout="constrained")
axes[0].barh(list(versions), [len(version) for version in versions.values()])
axes[0].set(xlabel="rules")
axes[0].invert_yaxis()
axes[1].barh(list(versions), fidelity, color="tab:orange")
axes[1].set(xlabel="fidelity to the forest", xlim=(0.5, 1))
plt.show()

# %%
print(versions['prune(..., "ice")'])
