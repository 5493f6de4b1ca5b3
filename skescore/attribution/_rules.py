"""Which features the rules' answer for a row hangs on: responsibility under a rule set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from skescore._validation import check_flag, check_number, check_whole
from skescore.attribution._result import Attribution
from skescore.attribution._rule_cells import as_bits, feature_cells, premises
from skescore.attribution._rule_flips import Flips, FlipSet, PremiseFlips
from skescore.attribution._rule_trials import RowTrials, affine_votes, by_nearest_box
from skescore.metrics.attribution import faithfulness
from skescore.rules import LinearOutput, RuleSet
from skescore.rules._columns import Table

__all__ = ["RuleAttribution", "local_faithfulness", "rule_attribution"]


@dataclass(frozen=True, eq=False, repr=False)
class RuleAttribution(Attribution):
    """What :func:`rule_attribution` found: an :class:`Attribution` with what shows it.

    Parameters
    ----------
    flip_sets : tuple of tuples of tuples of int
        For every row the minimal flip sets that were found, the smallest first.
    exact : bool
        Whether the search tells all changes of answers apart. False for rules that weigh several
        features in one condition, weights that depend on the row, and answers by the nearest box:
        there changes that single values do not show may be missed.

    Notes
    -----
    `witnesses` gives for every row and feature the other features of its smallest flip set, or
    None; `queries` counts the changes looked at; `resolved` tells which values are known to be the
    true ones, and `upper` how great they may be; `exhausted` marks rows where the search gave up.
    """

    flip_sets: tuple[tuple[FlipSet, ...], ...] = ()
    exact: bool = True


def rule_attribution(
    ruleset: RuleSet,
    X: Any,
    *,
    by: str = "answer",
    tolerance: float = 0.0,
    beyond_domain: bool = False,
    max_steps: int = 20_000,
) -> RuleAttribution:
    """Tell which features the rules' answer for each row hangs on, and how much.

    Use it to explain one answer of a rule set in the terms in which other explainers are judged, or
    to compare rules with the black box locally (:func:`local_faithfulness`).

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows to explain.
    by : {"answer", "rule"}, default="answer"
        What must change: the answer (a class label or number; of a regression's affine output, the
        function), or the rule that gives it.
    tolerance : float, default=0.0
        Regression: numbers count as another answer where they differ by more. Needs rules that
        answer constants if above 0.
    beyond_domain : bool, default=False
        Whether features may move out of the rules' domain, where it is known. There is often no
        rule there, which would make every feature decide.
    max_steps : int, default=20000
        Changes looked at per row before the search gives up and says so in `resolved`.

    Returns
    -------
    RuleAttribution
        An :class:`Attribution` with `values` of shape (n_rows, n_features), `witnesses`,
        `resolved` and `upper`, and all minimal `flip_sets` of each row.

    Raises
    ------
    ValueError
        If a parameter is out of range, or rows do not fit the rules.

    Notes
    -----
    The thresholds and lists of the rules cut every feature into cells: each threshold, each stretch
    between thresholds, each listed or known category, and all other categories together. A set of
    features is a *flip set* of a row if moving exactly those features, each to some other cell,
    changes the answer; it is minimal if no part of it is one. The degree of responsibility of a
    feature is one over the size of its smallest minimal flip set, and 0 if it is in none. With two
    cells per feature this is the responsibility of Boolean variables (Chockler and Halpern 2004).

    No rule is an answer too: the fallback's label or number, or, if it abstains or there is no
    fallback, one of its own. Missing values satisfy no condition; features move out of them,
    but never into them. Where one rule answers, whatever the order, premises are intervals, lists
    and counts (M-of-N), and values are exact: the search follows the premises of the rules that
    answer otherwise rather than trying rows. Otherwise (votes, linear conditions, nearest boxes) it
    tries changes of one feature, of two, and so on, which takes up to some tenths of a second per
    row and leaves values of forests with many thresholds open; linear conditions are tried at their
    bounds and at the ends of the domain or else of the rows.

    A change within a cell never counts, so a feature that only an affine output uses has value 0.

    Examples
    --------
    >>> from skescore.attribution import rule_attribution
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"),
    ...      Rule([Interval(0, upper=5), Interval(1, upper=1.7)], "versicolor")],
    ...     ["length", "width", "colour"],
    ...     task="classification",
    ...     fallback=Fallback("virginica"),
    ... )
    >>> found = rule_attribution(rules, [[1.4, 0.2, 0], [4.0, 1.3, 0], [6.0, 2.3, 0]])
    >>> found.values.tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> rule_attribution(rules, [[6.0, 2.3, 0]], by="rule").flip_sets
    (((0,),),)
    """
    if by not in {"answer", "rule"}:
        raise ValueError(f"by must be 'answer' or 'rule', got {by!r}.")
    tolerance = check_number("tolerance", tolerance, finite=True)
    if tolerance < 0:
        raise ValueError(f"tolerance must be 0 or more, got {tolerance!r}.")
    max_steps = check_whole("max_steps", max_steps)
    if max_steps < 1:
        raise ValueError(f"max_steps must be 1 or more, got {max_steps!r}.")
    check_flag("beyond_domain", beyond_domain)
    if by == "rule":
        ruleset.check_one_answers("rule_attribution(by='rule')")
    table = Table(X, ruleset.feature_names)
    differ = _Differences(ruleset, by, tolerance)
    cells = feature_cells(ruleset, beyond_domain=beyond_domain)
    written = premises(ruleset, cells)
    if written is not None and (by == "rule" or not by_nearest_box(ruleset)):
        used = [cell.feature for cell in cells]
        located = np.array([cell.locate(table) for cell in cells], dtype=np.intp)
        allowed = [as_bits(cell.reachable) for cell in cells]
        search = PremiseFlips(written, allowed, differ.of, max_steps)
        different, which = np.unique(located.T, axis=0, return_inverse=True)
        if not cells:  # nothing can be told apart
            different, which = np.zeros((1, 0), dtype=np.intp), np.zeros(len(table), dtype=np.intp)
        each = [search.of(row) for row in different.tolist()]
        flips, exact = [each[k] for k in which.reshape(-1)], True
    else:
        trials = RowTrials(
            ruleset, table, cells, differ.of,
            by=by, tolerance=tolerance, beyond_domain=beyond_domain,
        )  # fmt: skip
        used, flips = trials.used, [trials.flips(row, max_steps) for row in range(len(table))]
        nearest = by == "answer" and by_nearest_box(ruleset)
        exact = not (nearest or trials.linear or affine_votes(ruleset))
    return _attribution(ruleset, used, flips, exact)


class _Differences:
    """Which rules answer otherwise than a given one."""

    def __init__(self, ruleset: RuleSet, by: str, tolerance: float) -> None:
        self.tolerance = tolerance
        fallback = ruleset.fallback
        says = fallback.output if fallback is not None and fallback.policy == "default" else None
        outputs: list[Any] = [
            rule.output.intercept
            if isinstance(rule.output, LinearOutput) and not rule.output.terms
            else rule.output
            for rule in ruleset.rules
        ]
        affine = [k for k, output in enumerate(outputs) if isinstance(output, LinearOutput)]
        if affine and tolerance > 0 and by == "answer" and ruleset.voting is None:
            raise ValueError(
                f"tolerance={tolerance!r} compares numbers, but rule {affine[0]} answers an affine "
                "function. Leave tolerance at 0: then another function is another answer."
            )
        outputs.append(says)
        if by == "rule":
            self.keys, self.numbers = np.arange(len(outputs)), None
            return
        codes: dict[Any, int] = {}
        self.keys = np.array([codes.setdefault(output, len(codes)) for output in outputs])
        self.numbers = None
        if ruleset.task == "regression" and tolerance > 0:
            # No answer and affine functions are as far as can be from every number.
            plain = [isinstance(output, int | float) for output in outputs]
            self.numbers = np.array(
                [o if p else math.nan for o, p in zip(outputs, plain, strict=True)], dtype=float
            )

    def of(self, index: int) -> np.ndarray:
        """The rules that answer otherwise, and, last, whether no rule does; -1 is no rule."""
        differs = self.keys != self.keys[index]
        if self.numbers is not None:
            differs &= ~(np.abs(self.numbers - self.numbers[index]) <= self.tolerance)
        return differs


def _attribution(
    ruleset: RuleSet, used: Sequence[int], flips: Sequence[Flips], exact: bool
) -> RuleAttribution:
    """Values and witnesses from the flip sets, whose features are numbered as in `used`."""
    shape = len(flips), ruleset.n_features
    values, upper = np.zeros(shape), np.zeros(shape)
    resolved = np.ones(shape, dtype=bool)
    witnesses, flip_sets = [], []
    for row, found in enumerate(flips):
        witness: list[FlipSet | None] = [None] * ruleset.n_features
        sets = tuple(tuple(used[at] for at in flip_set) for flip_set in found.sets)
        for flip_set in sets:  # the smallest first, so that the first one of a feature counts
            for j in flip_set:
                if witness[j] is None:
                    witness[j] = tuple(other for other in flip_set if other != j)
                    values[row, j] = upper[row, j] = 1 / len(flip_set)
        open_features = [j for j in used if witness[j] is None]
        if found.complete_below is not None and open_features:
            resolved[row, open_features] = False
            upper[row, open_features] = 1 / max(1, found.complete_below)
        if not exact:
            # What is missed may be smaller than what was found; single changes are certain.
            unsure = [j for j in used if values[row, j] < 1]
            resolved[row, unsure] = False
            upper[row, unsure] = 1.0
        witnesses.append(tuple(witness))
        flip_sets.append(sets)
    return RuleAttribution(
        values=values,
        feature_names=ruleset.feature_names,
        queries=np.array([found.steps for found in flips], dtype=np.int64),
        n_model_rows=0,
        witnesses=tuple(witnesses),
        resolved=resolved,
        upper=upper,
        exhausted=np.array([found.complete_below is not None for found in flips], dtype=bool),
        masking="rules",
        flip_sets=tuple(flip_sets),
        exact=exact,
    )


def local_faithfulness(
    ruleset: RuleSet,
    black_box: Any,
    X: Any,
    *,
    removal: Any = "median",
    reference: Any = None,
    uncovered: str = "ignore",
    **options: Any,
) -> dict[str, np.ndarray]:
    """Tell whether the black box relies, row by row, on the features that the rules go by.

    Use it beside fidelity: rules may answer as the black box does, and yet for other reasons.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    black_box : classifier, regressor or callable
        What they were extracted from, as :func:`skescore.metrics.attribution.faithfulness` takes
        it.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows as both read them.
    removal : float, array-like, DataFrame or str, default="median"
        What replaces a removed feature: a number, one for each feature, ``"mean"``, ``"median"`` or
        ``"mode"`` of `reference`, or rows of a background sample.
    reference : array-like or DataFrame, optional
        The rows that named replacements are taken from; `X` itself if not given.
    uncovered : {"ignore", "explain"}, default="ignore"
        What becomes of rows that no rule covers: NaN, or what it takes to get a rule's answer there
        is taken for the rules' reasons.
    **options
        Further options of the measures, such as ``measures`` and ``max_batch``.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        By default comprehensiveness (the black box's answer falls without those features; greater
        is better), sufficiency (it stays with them alone; less is better) and the rank correlation
        with leaving out each feature. NaN where a measure says nothing.

    Raises
    ------
    ValueError
        If `uncovered` is none of these.

    Notes
    -----
    Measured is the class that the black box itself predicts, with the responsibilities of
    :func:`rule_attribution` as the explanation. A row on whose features nothing hangs under the
    rules (one rule for everything) has comprehensiveness 0 and sufficiency 1, the worst.

    Examples
    --------
    Rules that go by the feature that matters, and rules that go by another:

    >>> import numpy as np
    >>> from skescore.attribution import local_faithfulness
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> def black_box(X):
    ...     yes = X[:, 0] > 0.5
    ...     return np.column_stack([~yes, yes]).astype(float)
    >>> X = np.array([[0.9, 0.9], [0.8, 0.7], [0.1, 0.2]])
    >>> def split(feature):
    ...     premises = [Interval(feature, upper=0.5)], [Interval(feature, lower=0.5)]
    ...     rules = [Rule(premise, label) for label, premise in enumerate(premises)]
    ...     return RuleSet(rules, ["a", "b"], task="classification")
    >>> for rules in (split(0), split(1)):
    ...     found = local_faithfulness(rules, black_box, X, removal=X.min(axis=0))
    ...     print(found["aopc_compr"].tolist(), found["aopc_suff"].tolist())
    [1.0, 1.0, 0.0] [0.0, 0.0, 0.0]
    [0.0, 0.0, 0.0] [1.0, 1.0, 0.0]

    As a scorer of extractors in scikit-learn's searches:

    >>> def faithful(extractor, X, y=None):
    ...     found = local_faithfulness(extractor.rules_, extractor.estimator_, X)
    ...     return float(np.nanmean(found["aopc_compr"]))
    """
    if uncovered not in {"ignore", "explain"}:
        raise ValueError(f"uncovered must be 'ignore' or 'explain', got {uncovered!r}.")
    if reference is None and isinstance(removal, str):
        reference = X
    found = faithfulness(
        black_box, X, rule_attribution(ruleset, X), removal=removal, reference=reference, **options
    )
    if uncovered == "ignore":
        measures = found[0] if isinstance(found, tuple) else found
        for values in measures.values():
            values[~ruleset.covers(X)] = np.nan
    return cast("dict[str, np.ndarray]", found)
