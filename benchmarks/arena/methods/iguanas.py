"""The ruleset classifier of iguanas with default settings: rules of boosted trees for one class.

The trees have the settings of the example in the description of iguanas. The last rule, which has
no condition, predicts the other class.
"""

import re

import numpy as np

from skescore.rules import Interval, Rule, RuleSet

REQUIRES = ["iguanas>=1.5"]
_CLAUSE = re.compile(r'X\["x(\d+)"\] (<=|>=|<|>) ([-+.\deE]+)')


def _read_clause(feature, sign, bound):
    if "<" in sign:
        return Interval(int(feature), upper=float(bound), upper_closed="=" in sign)
    return Interval(int(feature), float(bound), lower_closed="=" in sign)


def _learn(X, y, random_state):
    import polars as pl
    from iguanas.ruleset_classifier import RulesetClassifier
    from xgboost import XGBClassifier

    if len(np.unique(y)) != 2:
        raise ValueError("iguanas' RulesetClassifier is for two classes")
    rare_class = int(np.argmin(np.bincount(y)))
    trees = XGBClassifier(max_depth=2, n_estimators=5, random_state=random_state, n_jobs=1)
    table = pl.DataFrame({f"x{j}": X.iloc[:, j].to_numpy(float) for j in range(X.shape[1])})
    model = RulesetClassifier(estimator=trees)
    model.fit(table, pl.Series("y", (y == rare_class).astype(int)))
    texts = [text for text in model._best_ruleset_.split(" | ") if text]
    rules = [
        Rule([_read_clause(*clause) for clause in _CLAUSE.findall(text)], rare_class)
        for text in texts
    ]
    rules.append(Rule([], 1 - rare_class))
    return RuleSet(rules, list(X.columns), task="classification", classes=[0, 1])


METHODS = {"iguanas": {"classification": _learn}}
