"""Printed rules, read by an independent parser, predict the same as `predict`."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import Interval, LinearOutput, OneOf

CASES = [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]
#: Settings that are quick and give several rules.
SETTINGS = {
    "cart": {"max_leaf_nodes": 7},
    "cream": {"depth": 2},
    "exact": {"depth": 2},
    "gridex": {"n_slices": 3, "depth": 1},
    "gridrex": {"n_slices": 2, "depth": 1},
    "iter": {"min_update": 0.2, "max_iterations": 80},
    "optimal-list": {"cuts_per_feature": 4, "max_nodes": 100},
    "optimal-tree": {"cuts_per_feature": 8},
    "trepan": {"max_nodes": 5, "min_sample": 300},
}


# --- parser, which uses the text only -------------------------------------------------------------


class Printed:
    """Rules as they are printed, read without code of the package."""

    def __init__(self, text, *, numeric):
        self.numeric, self.otherwise = numeric, None
        self.rules = []
        for line in text.splitlines():
            if line.startswith("otherwise, where no rule holds: "):
                self.otherwise = line.partition(": ")[2]
                continue
            rule_text = re.sub(r"^ *\d+\. (ELSE )?", "", line).partition("   [")[0]
            premise, output = "", rule_text.removeprefix("ALWAYS ")
            if rule_text.startswith("IF "):
                premise, output = rule_text.removeprefix("IF ").split(" THEN ")
            self.rules.append((premise.split(" AND ") if premise else [], output))

    def predict(self, X):
        """Return the output of the first rule that holds, NaN or None without one."""
        columns = {name: X[name].to_numpy() for name in X.columns}
        answers = np.full(len(X), np.nan if self.numeric else None, dtype=object)
        index = np.full(len(X), -1)
        for i, (premise, _) in enumerate(self.rules):
            holds = index < 0
            for condition in premise:
                if len(premise) > 1 and condition.endswith(" or missing)"):
                    condition = condition[1:-1]
                holds &= self._holds(condition, columns, len(X))
            index[holds] = i
        for i, output in enumerate([*(o for _, o in self.rules), self.otherwise]):
            rows = index == (i if i < len(self.rules) else -1)
            if output is not None and rows.any():
                some = {name: values[rows] for name, values in columns.items()}
                answers[rows] = self._value(output, some) if self.numeric else output
        return answers, index

    def _holds(self, text, columns, n_rows):
        if text.startswith("at least "):
            m, inner = re.fullmatch(r"at least (\d+) of \((.*)\)", text).groups()
            n_holding = sum(self._holds(c, columns, n_rows).astype(int) for c in inner.split("; "))
            return n_holding >= int(m)
        if text.endswith((" is missing", " is known")):
            name, _, state = text.rpartition(" is ")
            return pd.isna(columns[name]) == (state == "missing")
        if text.endswith(" or missing"):
            inner = text.removesuffix(" or missing")
            name = next(name for name in columns if re.search(rf"(^| ){name} ", inner))
            return self._holds(inner, columns, n_rows) | pd.isna(columns[name])
        if result := re.fullmatch(r"(\S+) (in|not in) \{(.*)\}", text):
            return self._listed(columns[result[1]], result[3].split(", "), result[2] == "in")
        if result := re.fullmatch(r"(\S+) ([<≤]) (\S+) ([<≤]) (\S+)", text):
            low, first, name, second, high = result.groups()
            x = columns[name]
            above = float(low) < x if first == "<" else float(low) <= x
            return above & (x < float(high) if second == "<" else x <= float(high))
        name, sign, value = re.fullmatch(r"(\S+) ([<>≤≥=≠]) (\S+)", text).groups()
        x = columns[name]
        if sign in "=≠":
            return self._listed(x, [value], sign == "=")
        bound = float(value)
        return {"<": x < bound, ">": x > bound, "≤": x <= bound, "≥": x >= bound}[sign]

    @staticmethod
    def _listed(x, values, wanted):
        if x.dtype.kind == "f":
            inside = np.isin(x, [float(value) for value in values])
        else:
            inside = np.isin(np.array([str(v) for v in x]), values)
        return (inside == wanted) & ~pd.isna(x)

    @staticmethod
    def _value(text, columns):
        total = 0.0
        for sign, term in re.findall(r"(?:^|(?<= ))([+-] ?|)([^ +-]\S*)", text):
            size, _, name = term.rpartition("·")
            factor = -1.0 if sign.startswith("-") else 1.0
            if name in columns:
                total = total + factor * (float(size) if size else 1.0) * columns[name]
            else:
                total = total + factor * float(term)
        return total


# --- the rows -------------------------------------------------------------------------------------


def training_rows(n_rows=300):
    """Return integers, decimals, binary numbers, text, booleans and missing values."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "class_of_3": rng.integers(1, 4, n_rows),
            "age": rng.integers(1, 80, n_rows),
            "fare": rng.gamma(2, 20, n_rows).round(2),
            "share": rng.normal(0, 1e-3, n_rows),
            "sex": rng.choice(["female", "male", "other"], n_rows),
            "smoker": rng.integers(0, 2, n_rows),
            "rich": rng.random(n_rows) < 0.5,
        }
    )
    frame["gaps"] = rng.normal(1000, 3, n_rows)
    frame.loc[rng.random(n_rows) < 0.15, "gaps"] = np.nan
    return frame


def number(X):
    X = pd.DataFrame(X)
    value = X["age"] / 40 + X["fare"] / 50 + 1.5 * (X["sex"] == "female") - X["class_of_3"] / 3
    value = value + (X["smoker"] == 1) * (X["fare"] > 40) + (X["gaps"].fillna(1003) - 1000) / 4
    return (value + 200 * X["share"] + X["rich"].astype(float)).to_numpy(dtype=float)


def label(X):
    return np.array(["no", "perhaps", "yes"])[np.digitize(number(X), [1.7, 3.2])]


def random_rows(X, rules, n_rows, *, gaps=True):
    """Return rows around the training rows, on all bounds and next to them."""
    rng = np.random.default_rng(9)
    bounds = {j: [0.0] for j in range(X.shape[1])}
    conditions = [c for rule in rules for c in rule.conditions]
    while conditions:
        condition = conditions.pop()
        conditions += getattr(condition, "conditions", ())
        if isinstance(condition, Interval):
            ends = [b for b in (condition.lower, condition.upper) if np.isfinite(b)]
            bounds[condition.feature] += ends
    columns = {}
    for j, name in enumerate(X.columns):
        complete = X[name].dropna()
        values = complete.sample(n_rows, replace=True, random_state=j).to_numpy()
        if X[name].dtype.kind not in "iuf":
            if X[name].dtype.kind == "b":
                columns[name] = values
                continue
            values = values.astype(object)
            values[rng.random(n_rows) < 0.02] = "never seen"
        else:
            span = float(np.ptp(complete))
            values = values.astype(float)
            anywhere = rng.uniform(complete.min() - span / 5, complete.max() + span / 5, n_rows)
            on = rng.choice(np.array(bounds[j]), n_rows)
            beside = np.nextafter(on, rng.choice([-np.inf, np.inf], n_rows))
            kind = rng.integers(0, 4, n_rows)
            values = np.choose(kind, [values, anywhere, on, beside])
        if gaps:
            values = (
                np.where(rng.random(n_rows) < 0.03, np.nan, values)
                if (values.dtype.kind == "f")
                else np.where(rng.random(n_rows) < 0.03, None, values)
            )
        columns[name] = values
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def extracted():
    """Return the rules of an extractor for a task, extracted once."""
    X, known = training_rows(), {}

    def of(name, task):
        if (name, task) not in known:
            black_box = (
                CallableClassifier(label, classes=["no", "perhaps", "yes"])
                if task == "classification"
                else CallableRegressor(number)
            )
            extractor = extractor_class(name)(black_box, **SETTINGS.get(name, {}))
            if "random_state" in extractor.get_params():
                extractor.set_params(random_state=0)
            known[name, task] = extractor.fit(X)
        return X, known[name, task]

    return of


def differing(ruleset, rows):
    """Count the rows that the printed text predicts differently."""
    assert ruleset.ordered or ruleset.disjoint
    numeric = ruleset.task == "regression"
    printed, index = Printed(ruleset.to_text(), numeric=numeric).predict(rows)
    predicted = ruleset.predict(rows)
    if not numeric:
        return int((printed != predicted.astype(object)).sum())
    assert (index == ruleset.assign(rows)).all()
    outputs = np.asarray(printed, dtype=float)
    allowed = 1e-12 * np.nanmax(np.abs(predicted))  # sums in another order
    with np.errstate(invalid="ignore"):
        return int((~(np.abs(outputs - predicted) <= allowed) & ~np.isnan(predicted)).sum())


@pytest.mark.parametrize(("name", "task"), CASES)
def test_printed_rules_predict_like_predict(extracted, name, task):
    X, extractor = extracted(name, task)
    assert len(extractor.rules_) > 1
    rows = random_rows(X, extractor.rules_, 2000)
    assert differing(extractor.rules_, rows) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_printed_rules_predict_like_predict_on_100_000_rows(extracted, name, task):
    X, extractor = extracted(name, task)
    rows = random_rows(X, extractor.rules_, 100_000)
    assert differing(extractor.rules_, rows) == 0
    if extractor.rules_.ordered:
        standalone = extractor.rules_.standalone()
        rows = random_rows(X, extractor.rules_, 100_000, gaps=False)
        assert differing(standalone, rows) == 0
        assert (standalone.predict(rows) == extractor.rules_.predict(rows)).all()


@pytest.mark.parametrize(("name", "task"), CASES)
def test_bounds_are_short_and_keep_sides_of_training_rows(extracted, name, task, monkeypatch):
    X, extractor = extracted(name, task)
    for rule in extractor.rules_:
        for condition in rule.intervals:
            column = X.columns[condition.feature]
            assert column != "smoker"
            for bound in (condition.lower, condition.upper):
                if column in ("age", "class_of_3") and np.isfinite(bound):
                    assert bound == int(bound)
                if np.isfinite(bound):
                    assert len(repr(bound).strip("-0").replace(".", "")) <= 7
    monkeypatch.setattr(type(extractor), "readable_bounds", False)
    other = clone(extractor).fit(X)
    if task == "classification":
        assert (other.predict(X) == extractor.predict(X)).all()
        return
    assert (other.rules_.assign(X) == extractor.rules_.assign(X)).all()
    # Constants keep four digits, functions 1/1000 of their range.
    exact, rounded = other.predict(X), extractor.predict(X)
    assert 0 < np.abs(exact - rounded).max() <= 1e-3 * max(np.ptp(exact), np.abs(exact).max())
    for rule in extractor.rules_:
        if not isinstance(rule.output, LinearOutput):
            assert len(repr(rule.output).replace(".", "").strip("-0")) <= 7


# --- single promises ------------------------------------------------------------------------------


def tree_of(X, y, **options):
    return CARTExtractor(DecisionTreeClassifier(random_state=0), random_state=0, **options).fit(
        X, y
    )


def test_printed_wine_rules_predict_like_predict():
    # "proline ≤ 725" was printed for 724.5, so a row with 725 was predicted differently.
    X, y = load_wine(return_X_y=True, as_frame=True)
    rules = tree_of(X, y, max_depth=3).rules_
    bounds = [c for rule in rules for c in rule.intervals if c.feature == list(X).index("proline")]
    assert bounds
    assert all(c.upper == int(c.upper) for c in bounds)
    assert differing(rules.with_class_names(["a", "b", "c"]), random_rows(X, rules, 500)) == 0


def test_integer_columns_get_integer_bounds():
    X = pd.DataFrame({"age": [20, 25, 30, 31, 40, 50]})
    rules = tree_of(X, ["a", "a", "a", "b", "b", "b"]).rules_
    assert str(rules).startswith("1. IF age ≤ 30 THEN a")


def test_binary_columns_get_conditions_on_values():
    X = pd.DataFrame({"smoker": [0, 1, 0, 1, 0, 1], "age": [1.5, 2, 3, 4, 5, 6]})
    rules = tree_of(X, ["a", "b", "a", "b", "a", "b"], simplify=False).rules_
    assert [rule.conditions for rule in rules] == [(OneOf(0, [0]),), (OneOf(0, [1]),)]
    text = "IF smoker = 0 THEN a   [3 rows, 100 % agree with the model, 100 % right (data)]"
    assert str(rules[0]) == text
    assert rules.domain.values_of(0) == (0, 1)
    assert rules.predict([[1, 9.0]]).tolist() == ["b"]


def test_last_rules_have_different_outputs():
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]})
    y = np.array(["a", "a", "b", "b", "b", "b", "b", "c"])
    black_box = DecisionTreeClassifier(random_state=0)
    # Two leaves on the right predict b.
    extractor = CARTExtractor(black_box, max_depth=2, min_samples_leaf=2, random_state=0)
    rules = extractor.fit(X, y).rules_
    assert not (len(rules) > 1 and rules[-1].output == rules[-2].output)
    assert sum(rule.statistics.n_rows for rule in rules) == len(X)
    assert (rules.predict(X) == extractor.classes_[extractor.tree_.predict(X.to_numpy())]).all()


def test_binary_columns_of_decimals_keep_intervals():
    X = pd.DataFrame({"x": [0.1, 0.7, 0.1, 0.7, 0.1, 0.7]})
    rules = tree_of(X, ["a", "b", "a", "b", "a", "b"]).rules_
    assert isinstance(rules[0].conditions[0], Interval)
    assert rules[0].conditions[0].upper == 0.4
