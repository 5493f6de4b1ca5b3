"""
Where rules can be trusted
==========================

A verification compares rules with a forest over the whole domain. For each rule, the bars divide
its region near the data into proven agreement, a lower bound on disagreement, and the undecided
rest. The circle in the map marks the worst disagreement: the row for which the forest is most
certain of a class that the rule does not predict. The map shows agreement (green) and disagreement
(red) when two features of this row change.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore.extractors import CARTExtractor
from skescore.verification import VerificationLimits, verify

X, y = load_wine(return_X_y=True, as_frame=True)
X = X[["alcohol", "flavanoids", "color_intensity"]]
forest = RandomForestClassifier(20, random_state=0).fit(X, y)
rules = CARTExtractor(forest, max_leaf_nodes=4, random_state=0).fit(X).rules_
result = verify(rules, forest, X, limits=VerificationLimits(time_limit=20, max_splits=300))

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
proven = np.array([rule.near_proven.agreeing for rule in result.rules])
wrong = np.array([rule.near_disagreement.lower for rule in result.rules])
names = [f"rule {rule.index + 1}" for rule in result.rules]
left.barh(names, proven, color="seagreen", label="proven to agree")
left.barh(names, 1 - proven - wrong, left=proven, color="wheat", label="undecided")
left.barh(names, wrong, left=1 - wrong, color="indianred", label="disagrees (lower bound)")
left.invert_yaxis()
left.set_xlabel("share near the data")
left.legend(loc="lower left")
picture = result.picture
states = np.ma.masked_equal(picture.states, 2)
right.pcolormesh(picture.x_values, picture.y_values, states, cmap="RdYlGn_r", alpha=0.7)
right.plot(*picture.point, "ko", fillstyle="none")
right.set_xlabel(picture.features[0])
right.set_ylabel(picture.features[1])
right.set_title(f"around the worst disagreement of rule {picture.rule + 1}")
plt.show()

# %%
# For each rule, the text states the share with proven agreement and a row with disagreement.
print(result)
