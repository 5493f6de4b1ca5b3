"""
First rules
===========

The 2201 people on board the Titanic, a random forest that predicts who was saved, and the rules
that say what the forest has learnt.
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
# The extractor asks the forest what it predicts for these rows, and writes that down as rules.
extractor = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(people.X)
print(extractor.rules_)
print(f"agrees with the forest for {extractor.fidelity(people.X):.1%}")

# %%
# How right each rule is, against what really happened:
report = rule_report(extractor.rules_, people.X, people.y, assigned=True)
fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.barh([f"rule {i}" for i in report.index], report["precision"], color="tab:blue")
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="share of its people for whom the rule is right")
plt.show()
