"""
ICE and its weights
===================

ICE is the product of a factor for errors, a factor for the number of rules, and the completeness.
The first two are sigmoids, which larger weights make stricter.
"""

import matplotlib.pyplot as plt

from skescore.plots import ice_part_curves, ice_surface

fig, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
ice_part_curves("performance", weights=(0.5, 1, 3), ax=axes[0])
ice_part_curves("readability", weights=(0.5, 1, 3), ax=axes[1])
plt.show()

# %%
# The product of both factors for complete rules:
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ice_surface(phi=3, rho=1, ax=ax)
plt.show()
