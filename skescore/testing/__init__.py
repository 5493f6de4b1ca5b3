"""The contract that every extractor keeps, for the tests of extractors of your own.

A class that passes :func:`check_extractor` works with this package's scorers and searches, and
with scikit-learn's. It complements scikit-learn's own ``check_estimator``, which knows nothing of
black boxes and rules::

    from skescore.testing import parametrize_with_extractor_checks

    @parametrize_with_extractor_checks([TheirExtractor(LogisticRegression())])
    def test_contract(extractor, check):
        check(extractor)
"""

from skescore.testing.suite import (
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
