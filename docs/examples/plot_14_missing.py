"""
Missing values
==============

About a fifth of the incomes are missing, more often if the loan was refused. No imputation is
needed: the rules state whether they cover rows without a value.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from skescore import CARTExtractor

random = np.random.default_rng(0)
n = 600
income = random.gamma(4, 900, n)
loan = random.gamma(3, 4000, n)
refused = loan > 5 * income
is_missing = random.uniform(size=n) < np.where(refused, 0.45, 0.1)
table = pd.DataFrame({"income": np.where(is_missing, np.nan, income), "loan": loan})
labels = np.where(refused, "refused", "granted")

model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(table, labels)
extractor = CARTExtractor(model, max_leaf_nodes=5, random_state=0).fit(table)
print(extractor.rules_)

# %%
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
predicted = extractor.predict(table)
plotted_income = table["income"].fillna(-600)
for label, marker in (("granted", "o"), ("refused", "x")):
    rows = predicted == label
    ax.scatter(plotted_income[rows], table["loan"][rows], marker=marker, s=14, label=label)
ax.axvline(-300, color="0.7", linewidth=1)
ax.text(-600, ax.get_ylim()[1], "missing", ha="center", va="bottom")
ax.set(xlabel="income", ylabel="loan")
ax.legend(title="prediction")
plt.show()
