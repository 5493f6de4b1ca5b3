"""
Attributions against the truth
==============================

In a Boolean formula it is known how far each input is responsible for the result. BReX finds it by
queries alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from skescore.attribution import BReX, Formula, responsibility

formula = Formula.parse("x1 & (x2 | x3) & (x4 | x5 | ~x6)")
row = [[1, 1, 1, 1, 1, 0]]
truth = responsibility(formula, row)[0]
found = BReX(formula, random_state=0).explain(row)

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
places = np.arange(6)
ax.bar(places - 0.2, truth, width=0.4, label="exact")
ax.bar(places + 0.2, found.values[0], width=0.4, label=f"BReX, {found.queries[0]} queries")
ax.set_xticks(places, [f"x{i}" for i in range(1, 7)])
ax.set(ylabel="responsibility", title="x1 and (x2 or x3) and (x4 or x5 or not x6), at 1 1 1 1 1 0")
ax.legend()
plt.show()
