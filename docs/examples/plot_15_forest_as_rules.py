"""
Read the rules of a forest
==========================

A random forest is equivalent to a set of rules that vote: each leaf is a rule. The example
compares small forests with short rule lists that CART extracts from them. The score ICE combines
accuracy, number of rules and completeness; greater is better.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from skescore import CARTExtractor, as_ruleset, make_knowledge_scorer

X, y = load_iris(return_X_y=True, as_frame=True)
scorer = make_knowledge_scorer()
sizes, results = (1, 2, 4, 8), {"forest": [], "extracted": []}
for n_trees in sizes:
    forest = RandomForestClassifier(n_trees, max_depth=3, random_state=0).fit(X, y)
    rules = as_ruleset(forest)
    assert (rules.predict(X) == forest.predict(X)).all()
    extractor = CARTExtractor(forest, max_leaf_nodes=3, random_state=0).fit(X)
    results["forest"].append((len(rules), scorer(forest, X, y)["ice"]))
    results["extracted"].append((extractor.n_rules_, scorer(extractor, X, y)["ice"]))

fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for name, marker in (("forest", "o"), ("extracted", "s")):
    n_rules, ice = zip(*results[name], strict=True)
    axes[0].plot(sizes, n_rules, marker=marker, label=name)
    axes[1].plot(sizes, ice, marker=marker, label=name)
axes[0].set(xlabel="trees", ylabel="rules")
axes[1].set(xlabel="trees", ylabel="ICE", ylim=(-0.03, 1.03))
axes[0].legend()
plt.show()
