"""
Detect rules that became less accurate
======================================

The error rate of rule 2 doubles after 2,000 rows. Soon afterwards, the bound on its false alarm
probability falls below 5 %, which raises an alarm. The bounds of the other rules stay above 5 %.
The probability that the monitor ever raises a false alarm is at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from skescore.monitoring import RuleBaseline, RuleMonitor
from skescore.rules import Interval, Rule, RuleSet

rules = RuleSet(
    [Rule([Interval(0, upper=30)], "no"), Rule([Interval(0, upper=60)], "yes"), Rule([], "no")],
    ["age"],
    task="classification",
    ordered=True,
)


def draw(n_rows, seed, errors):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 90, (n_rows, 1))
    is_wrong = rng.random(n_rows) < np.array(errors)[rules.assign(X)]
    return X, np.where(is_wrong ^ (rules.predict(X) == "yes"), "yes", "no")


monitor = RuleMonitor(rules, RuleBaseline.from_rows(rules, *draw(4000, 0, [0.1, 0.1, 0.1])))
rows, bounds = [], []
for step in range(40):
    errors = [0.1, 0.1, 0.1] if step < 20 else [0.1, 0.2, 0.1]
    monitor.update(*draw(100, step + 1, errors))
    rows.append(monitor.n_rows)
    bounds.append(monitor.to_frame()["false_alarm_probability_error"])

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for name in ("rule 1", "rule 2", "rule 3"):
    ax.plot(rows, [bound[name] for bound in bounds], label=name)
ax.axhline(0.05, color="gray", linestyle="--", label="alarm")
ax.axvline(2000, color="gray", linewidth=0.7)
ax.set(xlabel="rows", ylabel="false alarm probability", yscale="log", ylim=(1e-6, 2))
ax.legend()
plt.show()

# %%
# Each alarm names the rule, the time and the size of the change.
for change in monitor.changes():
    print(change)
