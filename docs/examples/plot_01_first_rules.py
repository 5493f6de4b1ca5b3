"""
First rules
===========

A random forest predicts which of the 2201 people on board the Titanic survived. A short list of
rules describes the forest.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skescore import CARTExtractor, load_dataset, rule_report

people = load_dataset("titanic")
forest = make_pipeline(
    OneHotEncoder(sparse_output=False), RandomForestClassifier(50, random_state=0)
).fit(people.X, people.y)
print(f"the forest is right for {forest.score(people.X, people.y):.1%} of the people")

# %%
# The extractor queries the forest for its predictions on these rows and extracts rules from them.
extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(people.X)
print(extractor.rules_)
print(f"agrees with the forest for {extractor.fidelity(people.X):.1%}")

# %%
# The correctness of each rule, compared with the data:
report = rule_report(extractor.rules_, people.X, people.y, assigned=True)
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.barh([f"rule {i}" for i in report.index], report["precision"], color="tab:blue")
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="share of its people for whom the rule is right")
plt.show()
