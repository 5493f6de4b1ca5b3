"""
How far from the best possible?
===============================

A certificate proves, for every number of rules, between which bounds the best score lies that any
decision tree or decision list over the stated cuts can have on these rows. The star is CART's list
of four rules: three could be better, and no rules are better than the dashed lines.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore.certificates import certify
from skescore.extractors import CARTExtractor
from skescore.plots import CorridorDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
black_box = RandomForestClassifier(20, random_state=0)
extractor = CARTExtractor(black_box, max_leaf_nodes=4, random_state=0).fit(X, y)
certificate = certify(extractor, X, max_rules=5, max_nodes=60, cuts_per_feature=4)

fig, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
CorridorDisplay.from_certificate(certificate, ax=axes[0], legend=False)
CorridorDisplay.from_certificate(certificate, y="loss", ax=axes[1])
plt.show()

# %%
# The same proof serves any weights, and other scores.
print(certificate)
print(f"{certificate.with_score('ice', phi=3).gap():.4f} ICE with φ = 3")
