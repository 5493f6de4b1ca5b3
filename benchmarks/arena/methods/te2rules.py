"""TE2Rules, which reads the trees of binary forests and boosting models.

Its rules are for the second class. They cover all training rows for which the black box predicts
this class. The last rule, which has no condition, predicts the first class.
"""

import contextlib
import io
import re

import numpy as np
from sklearn.frozen import FrozenEstimator

from skescore.extractors import BaseExtractor
from skescore.rules import Interval, Rule, RuleSet

REQUIRES = ["te2rules>=1.0"]
_CLAUSE = re.compile(r"x(\d+) (<=|>) (\S+)")


class TE2RulesExtractor(BaseExtractor):
    """Extractor with the rules of TE2Rules with default settings."""

    tasks = ("classification",)

    def __init__(self, estimator, *, uncovered="default", random_state=None):
        self.estimator = estimator
        self.uncovered = uncovered
        self.random_state = random_state

    features = prune = abstain_label = batch_size = None

    def _check_parameters(self):
        pass

    def _extract(self, extraction):
        from te2rules.explainer import ModelExplainer

        model = self.estimator_
        while isinstance(model, FrozenEstimator):
            model = model.estimator
        classes = extraction.settings["classes"]
        if len(classes) != 2:
            raise ValueError("TE2Rules is for two classes")
        if not hasattr(model, "estimators_") or extraction.X.shape[1] != model.n_features_in_:
            raise ValueError("TE2Rules reads forests and gradient boosting of scikit-learn only")
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
            explainer = ModelExplainer(
                model=model, feature_names=[f"x{j}" for j in range(extraction.X.shape[1])]
            )
            rule_texts = explainer.explain(X=extraction.X, y=np.asarray(extraction.predictions))
        rules = [
            Rule([_interval(*clause) for clause in _CLAUSE.findall(text)], classes[1])
            for text in rule_texts
        ]
        return RuleSet([*rules, Rule([], classes[0])], **extraction.settings)


def _interval(feature, sign, bound):
    sides = {"upper": float(bound)} if sign == "<=" else {"lower": float(bound)}
    return Interval(int(feature), **sides)


METHODS = {"TE2Rules": TE2RulesExtractor}
