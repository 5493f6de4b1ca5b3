"""
FiRe and its weight
===================

FiRe combines the loss of rules with their number; smaller is better. In the first figure, each line
connects points with the same FiRe. With ψ = 1, doubling the rules pays
off only if it more than halves the loss. With ψ = 3, three rules cost hardly more than one.
"""

import matplotlib.pyplot as plt
import pandas as pd

from skescore.plots import fire_curves, fire_isolines

candidates = pd.DataFrame(
    {
        "extractor": ["two rules", "four rules", "nine rules"],
        "n_rules": [2, 4, 9],
        "loss": [0.22, 0.12, 0.08],
    }
)
fig, axes = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
fire_isolines(candidates, psi=1, ax=axes[0])
fire_isolines(candidates, psi=3, ax=axes[1])
plt.show()

# %%
# FiRe grows with the number of rules at a constant loss of 0.1:
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
fire_curves("n_rules", psi=(1, 3), fixed=0.1, ax=ax)
plt.show()
