"""Tests of the contract of extractors, for your own extractors.

A class that passes :func:`check_extractor` works with the scorers and searches of this package and
of scikit-learn. The checks complement scikit-learn's ``check_estimator``, which covers neither
black boxes nor rules::

    from skescore.testing import parametrize_with_extractor_checks

    @parametrize_with_extractor_checks([TheirExtractor(LogisticRegression())])
    def test_contract(extractor, check):
        check(extractor)

The easiest way to write such a class is to derive it from
:class:`skescore.extractors.BaseExtractor` and to implement only the algorithm: ``_extract`` creates
the rules from the rows (``extraction.X``) and the black box's predictions for them
(``extraction.predictions``: numbers, or indices of ``extraction.classes``);
``extraction.query(points)`` returns further predictions, and ``extraction.settings`` are the other
parameters of the rule set.

>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> from skescore.extractors import BaseExtractor
>>> from skescore.rules import Interval, Rule, RuleSet
>>> from skescore.testing import check_extractor
>>> class Halves(BaseExtractor):
...     '''Two rules, on both sides of a quantile of the first feature.'''
...
...     tasks = ("classification",)
...
...     def __init__(
...         self, estimator, share=0.5, uncovered="default", abstain_label=None, batch_size=None
...     ):
...         self.estimator = estimator
...         self.share = share
...         self.uncovered = uncovered
...         self.abstain_label = abstain_label
...         self.batch_size = batch_size
...
...     def _check_parameters(self):
...         if not 0 < self.share < 1:
...             raise ValueError(f"share must lie between 0 and 1, got {self.share!r}.")
...
...     def _extract(self, extraction):
...         labels = extraction.settings["classes"]
...         cut = float(np.quantile(extraction.X[:, 0], self.share))
...         below = extraction.X[:, 0] <= cut
...         rules = []
...         for side, rows in ((Interval(0, upper=cut), below), (Interval(0, lower=cut), ~below)):
...             codes = extraction.predictions[rows if rows.any() else slice(None)]
...             rules.append(Rule([side], labels[np.bincount(codes).argmax()]))
...         return RuleSet(rules, ordered=False, disjoint=True, **extraction.settings)
>>> outcomes = check_extractor(
...     Halves(LogisticRegression()),
...     exclude=["check_hash_seed", "check_pickle"],  # which require a class in a module
... )
>>> sorted({outcome.status for outcome in outcomes})
['passed', 'skipped']

Declare the class in the entry-point group ``skescore.extractors`` of its package to make it
available to every search and the command line; :mod:`skescore.registry` lists its optional
attributes. :func:`skescore.register_extractor` does the same at run time::

    [project.entry-points."skescore.extractors"]
    halves = "their_package:Halves"
"""

from skescore.testing._suite import (
    CheckOutcome,
    check_extractor,
    extractor_checks,
    parametrize_with_extractor_checks,
)

__all__ = [
    "CheckOutcome",
    "check_extractor",
    "extractor_checks",
    "parametrize_with_extractor_checks",
]
