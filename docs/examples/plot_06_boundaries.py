"""
Decision boundaries of a model and its rules
============================================

The plots show the decision boundaries of a model and of the rules of three extractors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from skescore import CARTExtractor, GridExExtractor, ITERExtractor
from skescore.plots import decision_boundaries

X, y = make_moons(300, noise=0.2, random_state=0)
svm = SVC(gamma=2, random_state=0).fit(X, y)
extractors = {
    "CART": CARTExtractor(svm, max_leaf_nodes=6, random_state=0),
    "GridEx": GridExExtractor(svm, n_slices=3, depth=2, random_state=0),
    "ITER": ITERExtractor(svm, random_state=0),
}
models = {"SVM": svm}
models |= {name: extractor.fit(X) for name, extractor in extractors.items()}
decision_boundaries(models, X, y, resolution=80)
plt.show()

# %%
for name, extractor in extractors.items():
    print(f"{name}: {extractor.n_rules_} rules, fidelity {extractor.fidelity(X):.2f}")
