"""
Distance to the best possible rules
===================================

For every number of rules, a certificate proves a bound (dashed) that no decision tree or decision
list over the same cuts can beat on these rows. The markers are the best rules found, and the star
is CART's list of four rules. Left: ICE (greater is better). Right: wrong predictions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore.certificates import certify
from skescore.extractors import CARTExtractor
from skescore.optimal import SearchSpace, SolverLimits
from skescore.plots import CorridorDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
black_box = RandomForestClassifier(20, random_state=0)
extractor = CARTExtractor(black_box, max_leaf_nodes=4, random_state=0).fit(X, y)
certificate = certify(extractor, X, space=SearchSpace(5, cuts=4), limits=SolverLimits(max_nodes=60))

fig, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
CorridorDisplay.from_certificate(certificate, ax=axes[0], legend=False)
CorridorDisplay.from_certificate(certificate, y="loss", ax=axes[1])
plt.show()

# %%
# The same proof bounds other scores, and scores with other weights.
print(certificate)
print(f"{certificate.with_score('ice', phi=3).gap():.4f} ICE with φ = 3")
