"""Creation of certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from skescore.certificates import _check
from skescore.certificates._certificate import Certificate
from skescore.certificates._check import CheckResult
from skescore.certificates._problem import CertificateProblem, read_scoring
from skescore.certificates._solvers import prove_all_kinds
from skescore.optimal import KINDS, SearchSpace, SolverLimits


def certify(
    search_or_rules: Any,
    X: Any = None,
    y: Any = None,
    *,
    scoring: Any = None,
    kinds: Sequence[str] = KINDS,
    space: SearchSpace | None = None,
    tolerance: float | None = None,
    limits: SolverLimits | None = None,
    sample_weight: Any = None,
) -> Certificate:
    """Prove how far the score of rules is from the best possible score for given rows.

    Parameters
    ----------
    search_or_rules : estimator or RuleSet
        Fitted search or extractor, or rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows in the units of the rules. By default the rows, target and weights of the search are
        used, and `y` and `sample_weight` are ignored.
    y : array-like of shape (n_rows,) or fitted estimator, optional
        Reference of the rules: labels or numbers (the name of a Series is the name of the
        reference), or a black box whose predictions the rules should reproduce. By default the
        black box of the search or extractor.
    scoring : str or scorer, optional
        Name of a score, or a scorer of :func:`skescore.scorers.make_score_scorer`. By default the
        score of the search if it can be bounded, otherwise ICE.
    kinds : sequence of {"tree", "list"}, default=("tree", "list")
        Kinds of rules to compare with.
    space : SearchSpace, optional
        Search space of these rules, to which the cuts of the given rules are added. By default 8
        cuts per feature, at most 2 conditions in a rule of a list, and all sizes that may have a
        better score; if these exceed 12 rules, at most 6 rules.
    tolerance : float, optional
        Accepted difference of scores: the search ends when no rules can be better than the best
        rules found by more than the tolerance. This takes much less time, but the bounds for other
        scores and weights are then wider. By default the search ends only at the limits.
    limits : SolverLimits, optional
        Limits of time, nodes and memory, and number of processes. The time limit is for all kinds
        together, the limit of nodes for each search. By default 60 seconds.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row.

    Returns
    -------
    Certificate
        The proven bounds of the loss and of the score.

    Raises
    ------
    ValueError, TypeError
        If a parameter is invalid, or the score cannot be bounded.

    Notes
    -----
    Let L(r) be the proven lower bound of the loss of r rules, U(r) the loss of the best rules
    found, and S(e, r) a score that never improves with a larger loss e or more rules r. Then the
    best score is at most the best S(L(r), r), and at least the best S(U(r), r). Bounds of the
    weighted F1 follow from the errors by :func:`bound_weighted_f1`. If they are too wide for trees
    of some size and `tolerance` is set, :func:`skescore.optimal.bound_f1_of_trees` bounds the F1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.certificates import certify
    >>> from skescore.optimal import SearchSpace
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> space = SearchSpace(cuts=None)
    >>> certificate = certify(rules, X, y, scoring="fire", kinds=["tree"], space=space)
    >>> bounds = certificate.interval("tree")
    >>> round(certificate.given_score(), 4), round(bounds.incumbent, 4)
    (0.1268, 0.0723)
    >>> bounds.incumbent == bounds.bound
    True
    """
    if X is None:
        data = getattr(search_or_rules, "data_", None)
        if data is None:
            raise ValueError(
                "X must be passed unless search_or_rules is a fitted search, got X=None. Pass the "
                "rows and their target y."
            )
        X, y, sample_weight = data.X, data.y, data.row_weights
    if scoring is None:
        scoring = _scoring_of(search_or_rules)
    problem = CertificateProblem.read(
        search_or_rules,
        X,
        y,
        scoring=scoring,
        kinds=kinds,
        space=space or SearchSpace(),
        tolerance=tolerance,
        limits=limits or SolverLimits(time_limit=60.0),
        sample_weight=sample_weight,
    )
    return Certificate.from_proofs(problem, prove_all_kinds(problem))


def _scoring_of(search: Any) -> Any:
    """Return the score of a search if it can be bounded, otherwise ICE."""
    scoring = getattr(search, "scoring", "ice")
    try:
        read_scoring(scoring)
    except (TypeError, ValueError):
        return "ice"
    return scoring


def check_certificate(
    certificate: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time_limit: float | None = 60.0,
    memory_limit: float = 2**30,
) -> CheckResult:
    """Check a certificate on the rows for which it was created.

    Parameters
    ----------
    certificate : str or path
        JSON text of the certificate, or path of a file that contains this text.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Reference of the rules: labels, numbers, or the predictions of the black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, if the certificate was created with weights.
    time_limit : float, optional, default=60.0
        Time limit in seconds, after which the remaining parts are not checked; None for no limit.
    memory_limit : float, default=2**30
        Memory limit in bytes. Parts that need more memory are not checked.

    Returns
    -------
    CheckResult
        The verdict, its reasons, and the proven claims.

    Raises
    ------
    FileNotFoundError
        If `certificate` is the path of a file that does not exist. Invalid content raises no error;
        it leads to the verdict "rejected".
    ValueError
        If `sample_weight` holds a negative or infinite number or NaN, or only zeros.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.certificates import certify, check_certificate
    >>> from skescore.optimal import SearchSpace
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> space = SearchSpace(max_rules=3, cuts=4)
    >>> text = certify(rules, X, y, kinds=["tree"], space=space).to_json()
    >>> result = check_certificate(text, X, y)
    >>> result.verdict
    'confirmed'
    >>> print(result.claims[0])
    On these 150 rows, against target, 3 rules have ICE 0.9757 (weighted F1, phi 1, rho 1).
    >>> check_certificate(text.replace('"n_rows": 150', '"n_rows": 149'), X, y).verdict
    'rejected'
    """
    with threadpool_limits(1):  # products of small tables are not faster with threads
        return _check.check_certificate(
            certificate,
            X,
            y,
            sample_weight,
            time_limit=time_limit,
            memory_limit=memory_limit,
        )
