"""
Attributions and exact responsibilities
=======================================

For a Boolean formula, the responsibility of each input for the result is known exactly. BReX
estimates the responsibilities from queries of the formula alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from skescore.attribution import BReX, Formula, responsibility

formula = Formula.parse("x1 & (x2 | x3) & (x4 | x5 | ~x6)")
row = [[1, 1, 1, 1, 1, 0]]
exact = responsibility(formula, row)[0]
attribution = BReX(formula, random_state=0).explain(row)

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
positions = np.arange(6)
label = f"BReX, {attribution.queries[0]} queries"
ax.bar(positions - 0.2, exact, width=0.4, label="exact")
ax.bar(positions + 0.2, attribution.values[0], width=0.4, label=label)
ax.set_xticks(positions, [f"x{i}" for i in range(1, 7)])
ax.set(ylabel="responsibility", title="x1 and (x2 or x3) and (x4 or x5 or not x6), at 1 1 1 1 1 0")
ax.legend()
plt.show()
