"""
Extract changed rules again
===========================

Rules were extracted from the rows of one year. In the next year, one rule is wrong for ages
above 70. The revision finds this rule, replaces it, and keeps the other rules unchanged.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skescore import ExtractorSearchCV
from skescore.monitoring import RuleBaseline, revise_rules
from skescore.rules import Interval, Rule, RuleSet

rules = RuleSet(
    [Rule([Interval(0, upper=30)], "no"), Rule([Interval(1, upper=50)], "yes"), Rule([], "no")],
    ["age", "income"],
    task="classification",
    ordered=True,
)


def draw(n_rows, seed, limit):
    """Draw rows with 5 % wrong labels; the second rule is right up to an age of `limit`."""
    rng = np.random.default_rng(seed)
    age, income = rng.integers(18, 90, n_rows), rng.normal(50, 15, n_rows).round(1)
    X = pd.DataFrame({"age": age, "income": income})
    is_yes = (rules.predict(X) == "yes") & (age <= limit)
    return X, np.where(is_yes ^ (rng.random(n_rows) < 0.05), "yes", "no")


baseline = RuleBaseline.from_rows(rules, *draw(2000, 0, 90))
X, y = draw(2000, 1, 70)
model = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
search = ExtractorSearchCV(model, extractors=["cart"], n_trials=5, random_state=0).fit(X, y)
revision = revise_rules(search, rules, baseline)
print(revision)
print(revision.rules)

# %%
# Error rates before and after the revision, on new rows grouped by the earlier rule for each row:
X, y = draw(4000, 2, 70)
group = rules.assign(X)
before, after = (
    [np.mean(r.predict(X)[group == k] != y[group == k]) for k in range(3)]
    for r in (rules, revision.rules)
)
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
positions = np.arange(3)
ax.bar(positions - 0.2, before, 0.4, label="earlier rules")
ax.bar(positions + 0.2, after, 0.4, label="revised rules")
ax.set(xticks=positions, xticklabels=["rule 1", "rule 2", "rule 3"], ylabel="error")
ax.legend()
plt.show()
