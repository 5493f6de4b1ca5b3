"""Running the checks: all at once, or one test each under pytest."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from skescore._optional import import_optional
from skescore._text import did_you_mean
from skescore.testing import _checks  # noqa: F401  # adds the checks, in order
from skescore.testing._samples import CHECKS, Check, task_of


class CheckOutcome(NamedTuple):
    """What became of one check.

    Parameters
    ----------
    check : str
        Its name.
    status : {"passed", "skipped"}
        Skipped where the extractor lacks what is checked.
    reason : str, default=""
        Why it was skipped.
    """

    check: str
    status: str
    reason: str = ""


def extractor_checks(*, exclude: Iterable[str] = ()) -> Iterator[Check]:
    """Yield the checks of the contract that every extractor keeps.

    Use it to run them one by one; :func:`check_extractor` runs all.

    Parameters
    ----------
    exclude : iterable of str, default=()
        Names of checks to leave out.

    Yields
    ------
    callable
        ``check(name, extractor)`` raises an AssertionError that starts with the name, or
        ``unittest.SkipTest`` where the extractor lacks what is checked.

    Raises
    ------
    ValueError
        If there is no check of an excluded name.

    Examples
    --------
    >>> from skescore.testing import extractor_checks
    >>> next(extractor_checks()).__name__
    'check_parameters'
    """
    known = [check.__name__ for check in CHECKS]
    left_out = {exclude} if isinstance(exclude, str) else set(exclude)
    for name in sorted(left_out, key=str):
        if name not in known:
            raise ValueError(f"exclude must name checks, got {name!r}. {did_you_mean(name, known)}")
    return (check for check in CHECKS if check.__name__ not in left_out)


def check_extractor(extractor: Any, *, exclude: Iterable[str] = ()) -> tuple[CheckOutcome, ...]:
    """Run all checks on an extractor; it keeps the contract if nothing is raised.

    Use it in a test of your own extractor, or :func:`parametrize_with_extractor_checks` for a test
    per check.

    Parameters
    ----------
    extractor : extractor
        An instance, not fitted, around any black box: classifier or regressor decides which of
        the two is checked. Checks work on copies around small black boxes of their own. Choose
        parameters by which it is quick on a hundred rows.
    exclude : iterable of str, default=()
        Names of checks to leave out.

    Returns
    -------
    tuple of CheckOutcome
        What was checked, and what was skipped for which reason.

    Raises
    ------
    AssertionError
        If checks fail: one error for all of them. Its cause is the first one.
    TypeError
        If the extractor is a class or no estimator, or its black box is no classifier or
        regressor.
    ValueError
        If there is no check of an excluded name.

    Notes
    -----
    An extractor needs no base class of ours. ``fit(X, y=None)``, ``predict``, ``covers``,
    ``rules_``, ``get_params`` and ``set_params`` with the black box as ``estimator``, and
    scikit-learn's tags must be there. ``predict_proba``, ``score``, ``fidelity``, ``n_rules_``,
    ``coverage_``, ``completeness_`` and the parameters ``uncovered``, ``batch_size``, ``n_jobs``
    and ``random_state`` are checked where they are there. ``check_hash_seed`` takes some seconds:
    it starts two processes.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.testing import check_extractor
    >>> extractor = CARTExtractor(KNeighborsClassifier(), max_leaf_nodes=4)
    >>> outcomes = check_extractor(extractor, exclude=["check_hash_seed"])
    >>> [(o.check, o.reason) for o in outcomes if o.status == "skipped"]
    [('check_n_jobs', 'has no parameter n_jobs')]
    """
    name = _name_of(extractor)
    outcomes, failures = [], []
    for check in extractor_checks(exclude=exclude):
        try:
            check(name, extractor)
        except unittest.SkipTest as reason:
            outcomes.append(CheckOutcome(check.__name__, "skipped", str(reason)))
        except AssertionError as error:
            failures.append((check.__name__, error))
        else:
            outcomes.append(CheckOutcome(check.__name__, "passed"))
    if failures:
        texts = "\n".join(f"- {check}: {error}" for check, error in failures)
        raise AssertionError(
            f"{name} fails {len(failures)} of {len(failures) + len(outcomes)} checks:\n{texts}"
        ) from failures[0][1]
    return tuple(outcomes)


def parametrize_with_extractor_checks(
    extractors: Sequence[Any], *, exclude: Iterable[str] = ()
) -> Any:
    """Make a pytest decorator that runs every check on every extractor as a test of its own.

    Parameters
    ----------
    extractors : sequence of extractors
        As :func:`check_extractor` takes them.
    exclude : iterable of str, default=()
        Names of checks to leave out.

    Returns
    -------
    pytest.MarkDecorator
        For a test with the arguments ``extractor`` and ``check`` that calls ``check(extractor)``.

    Raises
    ------
    ImportError
        If pytest is not installed.
    TypeError, ValueError
        As :func:`check_extractor`.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.testing import parametrize_with_extractor_checks
    >>> @parametrize_with_extractor_checks(
    ...     [CARTExtractor(LogisticRegression()), CARTExtractor(LinearRegression())]
    ... )
    ... def test_contract(extractor, check):
    ...     check(extractor)
    """
    pytest = import_optional("pytest", extra="test", purpose="A test per check")
    excluded = [exclude] if isinstance(exclude, str) else list(exclude)
    cases = []
    for extractor in extractors:
        name = _name_of(extractor)
        for check in extractor_checks(exclude=excluded):
            bound = functools.partial(check, name)
            cases.append(pytest.param(extractor, bound, id=f"{name}-{check.__name__}"))
    return pytest.mark.parametrize(("extractor", "check"), cases)


def _name_of(extractor: Any) -> str:
    """What messages call an extractor; complains of what cannot be checked at all."""
    if isinstance(extractor, type):
        raise TypeError(
            f"extractor must be an instance, got the class {extractor.__name__}. Pass "
            f"{extractor.__name__}(black_box)."
        )
    if not hasattr(extractor, "get_params"):
        raise TypeError(
            "extractor must have get_params, as scikit-learn's estimators do, with the black box "
            f"as 'estimator', got {extractor!r}. Derive its class from sklearn.base.BaseEstimator."
        )
    return f"{type(extractor).__name__}-{task_of(extractor)}"
