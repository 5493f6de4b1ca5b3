"""Rule sets of every kind, and rows at their bounds, for the tests of all exporters.

The fixture `arbitrary` of the conftest loads this module, since test modules are not importable.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

#: Names and texts that want quoting in one language or another.
TEXTS = [
    "red",
    "blue",
    "it's",
    'say "no"',
    "",
    "straße",
    "two\nlines",
    "back\\slash\\",
    "100 %s",
    "-- no",
    "`tick`",
    "[x]",
    "{y}",
    "$1",
    ";",
    "select",
    "X",
    "'''",
    '"""',
    "tab\t",
    " blank ",
    "é",
    "日本",
    "1.5",
    "NULL",
    "True",
    "nan",
    "\r",
    "\u2028",
    "it''s",
    "a, b",
    "\\'",
    "\\n",
    "#",
]
NAMES = [text for text in TEXTS if text] + [
    "petal length (cm)",
    "class",
    "from",
    "2nd",
    "row",
    "x0",
]
#: Borders that are exact, that are not, and that have many digits.
NUMBERS = [
    -3.0,
    -1.0,
    -0.5,
    0.0,
    0.1,
    0.3,
    0.5,
    1.0,
    2.45,
    3.0,
    1e-7,
    123.45678901234567,
    4e9,
    -1e22,
]
FEW = [-2.0, -1.0, -0.1, 0.1, 0.5, 1.0, 3.0]
CLASSES = {
    "str": ["red", "it's", "", "two\nlines", "back\\slash", "日本"],
    "int": [3, -1, 0, 12345678901],
    "float": [0.1, -2.5, 1e-7, 3.0],
    "bool": [True, False],
    "number": [1, 2.5, 0],
}
VOTINGS = {"classification": ["votes", "probabilities", "logistic"], "regression": ["mean", "sum"]}


def names(n: int) -> st.SearchStrategy[list[str]]:
    """Draw feature names of many kinds that differ also if case is ignored."""
    return st.lists(
        st.sampled_from(NAMES), min_size=n, max_size=n, unique_by=lambda name: name.casefold()
    )


def numbers() -> st.SearchStrategy[float]:
    return st.sampled_from(NUMBERS) | st.floats(-1000, 1000, allow_subnormal=False).map(
        lambda value: value if abs(value) > 1e-200 else 0.0
    )


def seldom() -> st.SearchStrategy[bool]:
    return st.sampled_from([False, False, True])


@st.composite
def intervals(draw, feature: int, *, bounded: bool = True) -> Interval:
    low, high = sorted([draw(numbers()), draw(numbers())])
    free = draw(
        st.sampled_from(["neither", "neither", "low", "high", *([] if bounded else ["both"])])
    )
    low = -math.inf if free in ("low", "both") else low
    high = math.inf if free in ("high", "both") else high
    closed = (True, True) if low == high else (draw(st.booleans()), draw(st.booleans()))
    return Interval(feature, low, high, *closed, missing=draw(seldom()))


@st.composite
def conditions(draw, kinds: list[str], depth: int = 0):
    """Draw a condition on features of the kinds "number", "code", "text" or "flag"."""
    numeric = [j for j, kind in enumerate(kinds) if kind in ("number", "code")]
    forms = ["plain", "plain", "plain", "plain", "missing", *(["at least"] if depth < 2 else [])]
    form = draw(st.sampled_from([*forms, "linear"] if numeric else forms))
    if form == "at least":
        inner = draw(st.lists(conditions(kinds, depth + 1), min_size=1, max_size=4))
        return AtLeast(draw(st.integers(1, len(inner))), inner)
    if form == "linear":
        used = draw(st.lists(st.sampled_from(numeric), min_size=1, max_size=3, unique=True))
        bounds = draw(intervals(0, bounded=depth == 0))
        return Linear(
            [(j, draw(st.sampled_from(FEW))) for j in used],
            bounds.lower,
            bounds.upper,
            bounds.lower_closed,
            bounds.upper_closed,
        )
    feature = draw(st.integers(0, len(kinds) - 1))
    if form == "missing":
        return Missing(feature, draw(st.booleans()))
    kind = kinds[feature]
    if kind == "number" or (kind == "code" and draw(st.booleans())):
        return draw(intervals(feature, bounded=depth == 0))
    values = {"code": st.sampled_from([0, 1, 2, 3, 2.5]), "flag": st.booleans()}
    values["text"] = st.sampled_from(TEXTS)
    listed = draw(st.lists(values[kind], min_size=1, max_size=3))
    return OneOf(feature, listed, draw(st.booleans()), draw(seldom()))


@st.composite
def affine(draw, kinds: list[str]) -> LinearOutput:
    numeric = [j for j, kind in enumerate(kinds) if kind in ("number", "code")]
    used = st.lists(st.sampled_from(numeric), max_size=3, unique=True) if numeric else st.just([])
    return LinearOutput(
        draw(numbers()), [(j, draw(st.sampled_from([*FEW, 0.7]))) for j in draw(used)]
    )


@st.composite
def rule_sets(
    draw,
    *,
    max_rules: int = 5,
    together: bool = True,
    policies: tuple[str, ...] = ("default", "abstain", "nearest"),
    tasks: tuple[str, ...] = ("classification", "regression"),
    labels: tuple[str, ...] = tuple(CLASSES),
) -> RuleSet:
    """Draw a rule set with any conditions, outputs, order, weights and fallback."""
    kinds = draw(
        st.lists(
            st.sampled_from(["number", "number", "number", "code", "text", "flag"]),
            min_size=1,
            max_size=4,
        )
    )
    task = draw(st.sampled_from(tasks))
    voting = draw(st.sampled_from([None, None, *VOTINGS[task]])) if together else None
    classes = None
    if task == "classification":
        pool = CLASSES[draw(st.sampled_from(labels))]
        classes = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique=True))
    rules = [draw(_rules(kinds, classes, voting)) for _ in range(draw(st.integers(0, max_rules)))]
    return RuleSet(
        rules,
        draw(names(len(kinds))),
        task=task,
        classes=classes,
        ordered=voting is None and draw(st.booleans()),
        voting=voting,
        domain=draw(st.none() | st.just(Domain([-3.0] * len(kinds), [*([5.0] * len(kinds))]))),
        fallback=draw(_fallbacks(classes, policies, voting)),
    )


@st.composite
def _rules(draw, kinds, classes, voting) -> Rule:
    premise = draw(st.lists(conditions(kinds), min_size=0, max_size=3))
    if not premise and draw(st.booleans()):
        premise = [draw(conditions(kinds))]
    statistics = None
    if classes is not None:
        output = draw(st.sampled_from(classes))
        if draw(st.booleans()):
            counts = [draw(st.integers(0, 9)) for _ in classes]
            statistics = RuleStatistics(sum(counts), counts)
    else:
        output = draw(numbers() | st.integers(-5, 5) | affine(kinds))
        if draw(st.booleans()):
            statistics = RuleStatistics(draw(st.integers(0, 9)), mean=1.5, standard_deviation=0.5)
    weight = 1.0
    if voting is not None:
        weights = st.sampled_from([1.0, 0.1, 0.2, -0.3, 2.0, 0.0])
        weight = draw(weights | affine(kinds) if classes is not None else weights)
    try:
        return Rule(premise, output, statistics, weight)
    except ValueError:  # two intervals on one feature that contradict each other
        return Rule(premise[:1], output, statistics, weight)


@st.composite
def _fallbacks(draw, classes, policies, voting) -> Fallback | None:
    usable = [p for p in policies if not (p == "nearest" and voting)]
    if classes is not None and all(isinstance(c, bool) for c in classes):
        usable = [p for p in usable if p != "abstain"]  # no other label exists
    policy = draw(st.sampled_from([None, *usable]))
    if policy is None:
        return None
    if classes is None:
        return Fallback(draw(numbers()), policy)
    label = {str: "no prediction", int: -7, float: -7.5}.get(type(classes[0]))
    return Fallback(draw(st.sampled_from(classes)), policy, None, label)


# --- rows -----------------------------------------------------------------------------------------


def _elementary(items):
    for condition in items:
        if isinstance(condition, AtLeast):
            yield from _elementary(condition.conditions)
        else:
            yield condition


def border_rows(
    ruleset: RuleSet, n_rows: int = 200, seed: int = 0, *, infinite: bool = True
) -> pd.DataFrame:
    """Return rows on, just below and just above every bound, with missing values, and random rows.

    Columns compared with texts or flags have dtype object with None for missing, others float.
    """
    rng = np.random.default_rng(seed)
    bounds = {j: set(NUMBERS) for j in range(ruleset.n_features)}
    values: dict[int, set] = {}
    for condition in _elementary(c for rule in ruleset.rules for c in rule.conditions):
        if isinstance(condition, Interval):
            bounds[condition.feature] |= {condition.lower, condition.upper}
        elif isinstance(condition, OneOf):
            values.setdefault(condition.feature, set()).update(condition.values)
        elif isinstance(
            condition, Linear
        ):  # a row whose sum equals the bound if all other values are 0
            for bound in (condition.lower, condition.upper):
                for feature, coefficient in condition.terms:
                    bounds[feature].add(bound / coefficient)
    columns = {}
    for j, name in enumerate(ruleset.feature_names):
        listed = values.get(j, set())
        if any(isinstance(v, str | bool) for v in listed):
            text = any(isinstance(v, str) for v in listed)
            other_values = ["unseen", *TEXTS[:4]] if text else [True, False]
            pool = np.array([*sorted(listed, key=repr), *other_values, None], dtype=object)
            columns[name] = pd.Series(rng.choice(pool, n_rows), dtype=object)
            continue
        exact = np.array(sorted(bounds[j] | {float(v) for v in listed}))
        exact = exact[np.isfinite(exact)]
        near = [exact, np.nextafter(exact, -np.inf), np.nextafter(exact, np.inf)]
        special = [np.nan, np.nan, *([np.inf, -np.inf] if infinite else [])]
        pool = np.concatenate([*near, special, np.round(rng.normal(0, 3, 10), 3)])
        columns[name] = rng.choice(pool, n_rows)
    return pd.DataFrame(columns, columns=list(ruleset.feature_names))


def answers(ruleset: RuleSet, X: pd.DataFrame) -> list:
    """Return predictions as Python values; None where there is none (no rule or NaN)."""
    covering = ruleset
    if ruleset.fallback is None and ruleset.classes is not None:
        fresh = "nothing" if all(isinstance(c, str) for c in ruleset.classes) else -987654321
        labels = ruleset.classes or (fresh,)
        if not ruleset.classes:
            covering = ruleset.replace(classes=labels)
        covering = covering.replace(fallback=Fallback(labels[0], "abstain", None, fresh))
    elif ruleset.fallback is None:
        fresh, covering = math.nan, ruleset.replace(fallback=Fallback(0.0, "abstain"))
    else:
        fresh = math.nan
    with np.errstate(all="ignore"):  # infinite values may cancel
        values = covering.predict(X).tolist()
    return [None if v == fresh or v != v else v for v in values]


# --- rules on missing values, and rows that are easily misread ------------------------------------

HOSTILE_NAMES = ["age", "fare (€)", "sex", "code"]
SEXES = ["f", "m", "it's", "nan", ""]


def hostile_sets(n_sets: int = 12, seed: int = 0) -> list[RuleSet]:
    """Return rule sets of every voting method, with explicit treatment of missing values."""
    rng = np.random.default_rng(seed)
    kinds = [(task, v) for task, votings in VOTINGS.items() for v in (None, None, *votings)]
    result = []
    for i in range(n_sets):
        task, voting = kinds[i % len(kinds)]
        classes = ["no", "yes", "it's"] if task == "classification" else None
        outputs: list = classes or [1.5, -2.0, 0.1]
        rules = []
        while len(rules) < 8:
            chosen_features = rng.permutation(4)[: rng.integers(1, 4)].tolist()
            premise = [_hostile_condition(rng, j) for j in chosen_features]
            if rng.random() < 0.2:
                premise = [*premise[1:], AtLeast(1, [premise[0], Missing(int(rng.integers(4)))])]
            if rng.random() < 0.2:
                premise.append(Linear([(0, 0.5), (1, -2.0)], upper=float(rng.integers(-9, 9))))
            try:
                output, counts = outputs[rng.integers(3)], rng.integers(0, 9, 3).tolist()
                weight = 1.0 if voting is None else float(rng.choice([0.5, 0.1, 2.0]))
                statistics = None if classes is None else RuleStatistics(sum(counts), counts)
                rules.append(Rule(premise, output, statistics, weight))
            except ValueError:  # the conditions contradict each other
                continue
        domain = Domain((0,) * 4, (80, 500, len(SEXES), 9), [(2, SEXES)], (0.2, 0.1, 0.3, 0.2))
        result.append(
            RuleSet(
                rules,
                HOSTILE_NAMES,
                task=task,
                classes=classes,
                ordered=voting is None and i % 2 == 0,
                voting=voting,
                domain=domain if i % 3 else None,
                fallback=Fallback(outputs[0]) if i % 4 else None,
            )
        )
    return result


def _hostile_condition(rng: np.random.Generator, feature: int):
    flags = [bool(flag) for flag in rng.integers(0, 2, 3)]
    if rng.random() < 0.2:
        return Missing(feature, flags[0])
    if feature == 2:
        return OneOf(2, rng.choice(SEXES, rng.integers(1, 4)).tolist(), flags[0], flags[1])
    if feature == 3 and flags[0]:
        return OneOf(3, rng.choice([0, 1, 2, 2.5], 2).tolist(), flags[1], flags[2])
    low, high = np.sort(rng.choice([0.0, 0.1, 18.0, 30.5, 65.0, 123.45678901234567], 2, False))
    low = -math.inf if rng.random() < 0.4 else float(low)
    high = math.inf if rng.random() < 0.4 else float(high)
    return Interval(feature, low, high, *flags)


def hostile_rows(n_rows: int = 10_000, seed: int = 1) -> pd.DataFrame:
    """Return rows at and near all bounds, with infinite, missing and unseen values."""
    rng = np.random.default_rng(seed)
    bounds = np.array([0.0, 0.1, 18.0, 30.5, 65.0, 123.45678901234567, 1, 2, 2.5])
    near = [bounds, np.nextafter(bounds, -np.inf), np.nextafter(bounds, np.inf)]
    pool = np.concatenate([*near, [np.inf, -np.inf, 1e300, -1e300, -0.0, 5e-324], [np.nan] * 9])
    columns = {name: rng.choice(pool, n_rows) for name in HOSTILE_NAMES}
    unseen = np.array([*SEXES, None, None, "NULL", "None", "F", " f", "日本"], dtype=object)
    columns["sex"] = pd.Series(rng.choice(unseen, n_rows), dtype=object)
    return pd.DataFrame(columns)
