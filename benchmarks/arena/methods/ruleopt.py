"""RUG of ruleopt with the free solver HiGHS: weighted voting of rules from trees."""

import numpy as np

from skescore.rules import Fallback, Interval, Rule, RuleSet, RuleStatistics

REQUIRES = ["ruleopt>=1.2"]


def _learn_rug(X, y, random_state):
    from ruleopt import RUGClassifier
    from ruleopt.solver import HiGHSSolver

    model = RUGClassifier(solver=HiGHSSolver(), random_state=random_state)
    model.fit(X.to_numpy(dtype=np.float32), y)
    rules = []
    for class_rules in model.decision_rules_.values():
        conditions = [
            Interval(int(feature), float(bounds["lb"]), float(bounds["ub"]))
            for feature, bounds in class_rules.to_dict().items()
        ]
        counts = tuple(map(float, class_rules.sdist))
        statistics = RuleStatistics(sum(counts), counts)
        rules.append(
            Rule(conditions, int(class_rules.label), statistics, float(class_rules.weight))
        )
    counts = tuple(np.bincount(y).tolist())
    return RuleSet(
        rules,
        list(X.columns),
        task="classification",
        classes=list(range(len(counts))),
        ordered=False,
        voting="votes",
        fallback=Fallback(int(model.majority_class_), class_counts=counts),
    )


METHODS = {"ruleopt RUG": {"classification": _learn_rug}}
