"""Extractors on invalid rows and black boxes give a correct result or an error with a reason."""

from __future__ import annotations

import warnings
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from attempts import at_most, pick
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableRegressor
from skescore.extractors import Oracle
from skescore.registry import EXTRACTORS, make_extractor

#: Quick settings of each extractor.
SETTINGS = {
    "cart": {"max_leaf_nodes": 4},
    "cream": {"depth": 1, "max_samples": 40},
    "exact": {"depth": 1, "max_samples": 40},
    "gridex": {"n_slices": 2, "depth": 1, "min_examples": 5},
    "gridrex": {"n_slices": 2, "depth": 1, "min_examples": 5},
    "iter": {"min_examples": 5, "max_iterations": 15, "min_update": 0.3},
    "optimal-list": {"max_rules": 2, "max_nodes": 10, "time_limit": 2},
    "optimal-tree": {"max_leaf_nodes": 2, "max_nodes": 5, "time_limit": 2},
    "real": {},
    "trepan": {"max_nodes": 3, "min_sample": 20},
}
HUGE = 1.7976931348623157e308


# --- rows -------------------------------------------------------------------------------------


def bad_rows(rng, task):
    """Return rows and targets with at most one fault."""
    n = int(pick(rng, [1, 2, 5, 30]))
    X = np.round(rng.normal(size=(n, 3)), 2)
    y = (X[:, 0] > 0).astype(int) if task == "classification" else X[:, 0] * 2 + X[:, 1]
    fault = pick(rng, list(FAULTS))
    return fault, *FAULTS[fault](rng, X, y)


def put(X, value, where=(0, 1)):
    X = X.astype(object) if isinstance(value, str | complex) or value is None else X.copy()
    X[where] = value
    return X


FAULTS = {
    "none": lambda rng, X, y: (X, y),
    "frame": lambda rng, X, y: (pd.DataFrame(X, columns=["a", "it's", "select"]), y),
    "constant": lambda rng, X, y: (X * 0 + pick(rng, [0.0, 1e-300, 7, HUGE]), y),
    "gap": lambda rng, X, y: (put(X, np.nan), y),
    "column of gaps": lambda rng, X, y: (put(X, np.nan, (slice(None), 1)), y),
    "all gaps": lambda rng, X, y: (X * np.nan, y),
    "infinite": lambda rng, X, y: (put(X, pick(rng, [np.inf, -np.inf])), y),
    "huge": lambda rng, X, y: (put(X * 1e307, pick(rng, [HUGE, -HUGE, 1e200])), y),
    "tiny": lambda rng, X, y: (X * pick(rng, [5e-324, 1e-310, 1e-160]), y),
    "close": lambda rng, X, y: (1.0 + np.arange(X.size).reshape(X.shape) * 2**-52, y),
    "text": lambda rng, X, y: (put(X, pick(rng, ["a", "", "nan", "1.5"])), y),
    "complex": lambda rng, X, y: (put(X, 1j), y),
    "no value": lambda rng, X, y: (put(X, None), y),
    "big integers": lambda rng, X, y: ((X * 2**60).astype(np.int64), y),
    "flags": lambda rng, X, y: (X > 0, y),
    "dates": lambda rng, X, y: (pd.DataFrame({"a": pd.to_datetime(X[:, 0] * 1e9)}), y),
    "dicts": lambda rng, X, y: (pd.DataFrame({"a": [{}] * len(X)}), y),
    "categories": lambda rng, X, y: (
        pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(np.where(X[:, 1] > 0, "b", "it's"))}),
        y,
    ),
    "names twice": lambda rng, X, y: (pd.DataFrame(X, columns=["a", "a", "b"]), y),
    "no rows": lambda rng, X, y: (X[:0], y[:0]),
    "no columns": lambda rng, X, y: (X[:, :0], y),
    "flat": lambda rng, X, y: (X[:, 0], y),
    "deep": lambda rng, X, y: (X[:, :, None], y),
    "sparse": lambda rng, X, y: (sparse.csr_array(X), y),
    "ragged": lambda rng, X, y: ([[1.0, 2.0], [3.0]] * len(X), y),
    "masked": lambda rng, X, y: (np.ma.masked_greater(X, 1.0), y),
    "short target": lambda rng, X, y: (X, y[:-1]),
    "target of gaps": lambda rng, X, y: (X, np.full(len(y), np.nan)),
    "infinite target": lambda rng, X, y: (X, np.where(np.arange(len(y)) == 0, np.inf, y)),
    "huge target": lambda rng, X, y: (X, y * 1e307),
    "one target": lambda rng, X, y: (X, y * 0),
    "two columns of targets": lambda rng, X, y: (X, np.column_stack([y, y])),
    "two kinds": lambda rng, X, y: (X, np.array(["a", 1] * len(y), dtype=object)[: len(y)]),
    "no target": lambda rng, X, y: (X, None),
}
WEIGHTS = {
    "none": lambda n: None,
    "ones": np.ones,
    "zeros": np.zeros,
    "negative": lambda n: -np.ones(n),
    "gaps": lambda n: np.full(n, np.nan),
    "infinite": lambda n: np.full(n, np.inf),
    "short": lambda n: np.ones(max(n - 1, 0)),
    "texts": lambda n: np.array(["1"] * n),
    "huge": lambda n: np.full(n, 1e308),
    "tiny": lambda n: np.full(n, 5e-324),
}

# --- black boxes ------------------------------------------------------------------------------


class BadBox(BaseEstimator):
    """Fitted model with invalid predictions."""

    def __init__(self, how="good", task="regression"):
        self.how = how
        self.task = task

    def fit(self, X, y):
        self.classes_ = np.unique(y) if self.task == "classification" else None
        self.n_features_in_ = np.shape(X)[1]
        self.is_fitted_ = True
        return self

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        good = X[:, 0] > 0 if self.task == "classification" else X[:, 0] * 2.0
        good = good.astype(int) if self.task == "classification" else good
        self.asked_ = getattr(self, "asked_", 0) + 1
        return ANSWERS[self.how](self, X, good)


class BadClassifier(ClassifierMixin, BadBox):
    pass


class BadRegressor(RegressorMixin, BadBox):
    pass


def _raise(*_):
    raise RuntimeError("the black box is out of order")


def _overwrite(box, X, good):
    X[:] = 7.0
    return good


ANSWERS = {
    "good": lambda box, X, good: good,
    "raises": _raise,
    "NaN": lambda box, X, good: good * np.nan,
    "one NaN": lambda box, X, good: np.where(np.arange(len(good)) == 0, np.nan, good),
    "infinite": lambda box, X, good: good + np.inf,
    "two columns": lambda box, X, good: np.column_stack([good, good]),
    "one column": lambda box, X, good: good[:, None],
    "too few": lambda box, X, good: good[:-1],
    "a number": lambda box, X, good: 1.0,
    "nothing": lambda box, X, good: None,
    "a list": lambda box, X, good: good.tolist(),
    "texts": lambda box, X, good: good.astype(str),
    "objects": lambda box, X, good: np.array([{}] * len(good), dtype=object),
    "None among them": lambda box, X, good: np.where(good > 0, None, good),
    "other labels": lambda box, X, good: good + 100,
    "turns": lambda box, X, good: good if box.asked_ % 2 else good[::-1].copy(),
    "random": lambda box, X, good: np.random.default_rng().permutation(good),
    "overwrites": _overwrite,
    "float32": lambda box, X, good: good.astype(np.float32),
    "huge": lambda box, X, good: good * 1e307,
    "complex": lambda box, X, good: good + 1j,
}


def copied(value):
    return value.copy() if hasattr(value, "copy") else value


def equal(one, other):
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    return np.array_equal(
        np.asarray(one), np.asarray(other), equal_nan=np.asarray(one).dtype.kind == "f"
    )


CASES = [(name, task) for name in SETTINGS for task in EXTRACTORS[name].tasks]


def refused(action):
    """Return the result of a call, or the message of an error that states the reason."""
    try:
        with at_most(30), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            # By scikit-learn, which casts before it checks.
            warnings.filterwarnings("ignore", r"(overflow|invalid value) encountered in cast")
            return action()
    except (ValueError, TypeError, RuntimeError) as caught:
        error = caught
    message = str(error)
    unclear = ("could not broadcast", "operands", "index ")
    assert len(message) > 15, repr(error)
    assert not message.startswith(unclear), repr(error)
    assert not isinstance(error, RuntimeError) or "out of order" in message, repr(error)
    return message


def check_rows(rng):
    name, task = pick(rng, CASES)
    fault, X, y = bad_rows(rng, task)
    weight = pick(rng, list(WEIGHTS)) if fault == "none" else "none"
    tree = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    box = tree(random_state=0)
    if (
        fault in ("huge", "huge target") or weight == "huge"
    ):  # which trees of scikit-learn do not accept
        box = (BadClassifier if task == "classification" else BadRegressor)("good", task)
    extractor = make_extractor(name, box, **SETTINGS[name])
    before = copied(X)
    description = f"{name} for {task}: {fault}, weights: {weight}"
    try:
        weights = WEIGHTS[weight](len(y)) if weight != "none" else None
        options = {} if weights is None else {"sample_weight": weights}
        fitted = refused(lambda: extractor.fit(X, y, **options))
        if not sparse.issparse(X) and fault != "ragged":
            assert equal(before, X), "X was changed"
        if isinstance(fitted, str):
            fine = fault in ("none", "frame", "flags") and weight in ("none", "ones")
            assert not fine or len(set(y)) < 2 or len(y) < 5, fitted
            return
        assert fault not in (
            "infinite",
            "complex",
            "dates",
            "dicts",
            "no rows",
            "no columns",
            "flat",
            "deep",
            "sparse",
            "ragged",
            "short target",
            "target of gaps",
            "infinite target",
            "names twice",
        ), "accepted"
        assert weight not in ("zeros", "negative", "gaps", "infinite", "short"), "accepted"
        answers = np.asarray(extractor.predict(X))
        assert answers.shape == (len(y),)
        if task == "classification":
            assert set(answers.tolist()) <= set(np.asarray(y).tolist())
        else:
            assert np.isfinite(answers.astype(float)).all(), answers
    except BaseException as error:
        error.add_note(description)
        raise


def test_extractors_handle_invalid_rows(attack):
    attack(check_rows, 50)


def check_boxes(rng):
    name, task = pick(rng, CASES)
    how = pick(rng, list(ANSWERS))
    X = np.round(rng.normal(size=(30, 3)), 2)
    y = (X[:, 0] > 0).astype(int) if task == "classification" else X[:, 0] * 2.0
    kind = BadClassifier if task == "classification" else BadRegressor
    box = kind(how, task).fit(X, y)
    extractor = make_extractor(name, FrozenEstimator(box), **SETTINGS[name])
    before = X.copy()
    try:
        fitted = refused(lambda: extractor.fit(X, y))
        assert np.array_equal(before, X), "X was changed"
        if isinstance(fitted, str):
            assert how not in ("good", "a list", "overwrites", "float32"), fitted
            return
        assert how not in (
            "raises",
            "NaN",
            "one NaN",
            "infinite",
            "two columns",
            "too few",
            "a number",
            "nothing",
            "complex",
            "objects",
        ), "accepted"
        answers = np.asarray(extractor.predict(X))
        assert answers.shape == (30,)
        if task == "regression":
            assert np.isfinite(answers.astype(float)).all(), answers
    except BaseException as error:
        error.add_note(f"{name} for {task}: {how}")
        raise


def test_extractors_handle_invalid_black_boxes(attack):
    attack(check_boxes, 40)


#: The same rows and texts in other containers.
CONTAINERS = {
    "by columns": np.asfortranarray,
    "other bytes": lambda X: X.astype(">f8"),
    "long floats": lambda X: X.astype(np.longdouble),
    "single precision": lambda X: X.astype(np.float32),
    "a view": lambda X: np.repeat(X, 2, axis=0)[::2],
    "objects": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "masked": np.ma.array,
    "frame": pd.DataFrame,
    "rows called alike": lambda X: pd.DataFrame(X, index=[0] * len(X), columns=list("cab")),
    "columns of two levels": lambda X: pd.DataFrame(X, columns=[list("aab"), list("bab")]),
    "nullable": lambda X: pd.DataFrame(X, columns=list("cab")).astype("Float64"),
    "polars": lambda X: pl.DataFrame(X, schema=list("cab")),
    "Arrow": lambda X: pa.Table.from_pandas(pd.DataFrame(X, columns=list("cab"))),
}


def check_containers(rng):
    """Check that containers of rows change neither rules nor predictions."""
    name = pick(rng, ["cart", "gridex", "real", "trepan"])
    how = pick(rng, list(CONTAINERS))
    X = rng.integers(-8, 9, (30, 3)) / 4  # exact in single precision
    y = np.where(X[:, 0] + X[:, 1] > pick(rng, [-0.5, 0.0, 0.5]), "yes", "no")
    tree = DecisionTreeClassifier(random_state=0)
    one, other = (make_extractor(name, tree, **SETTINGS[name]) for _ in range(2))
    for each in (one, other):
        if "random_state" in each.get_params():
            each.set_params(random_state=0)
    rows = CONTAINERS[how](X)
    one.fit(X, y)
    other.fit(rows, y)
    description = f"{name}, {how}"
    assert other.predict(rows).tolist() == one.predict(X).tolist(), description
    assert [(r.conditions, r.output) for r in other.rules_] == [
        (r.conditions, r.output) for r in one.rules_
    ], description


def test_containers_do_not_change_rules(attack):
    attack(check_containers, 15)


CODES = ["1", "01", "1.0", " 1", "nan", "NaN", "", None, "inf", 1, 1.5, "1e0", "True"]


def check_codes(rng):
    """Check that texts with equal numbers are distinguished, also in repeated queries."""
    few = [pick(rng, CODES) for _ in range(3)]
    n = int(rng.integers(1, 4))
    frame = rng.random() < 0.5

    def answer(X):
        rows = X.to_numpy(dtype=object) if frame else X
        return [float(zlib.crc32(repr(row).encode())) for row in rows.tolist()]

    oracle = Oracle(CallableRegressor(answer))
    for _ in range(4):
        rows = np.empty((n, 2), dtype=object)
        rows[:] = [[few[int(j)] for j in rng.integers(3, size=2)] for _ in range(n)]
        query = pd.DataFrame(rows, columns=["a", "b"], dtype=object) if frame else rows
        assert oracle.query(query).tolist() == answer(query), rows


def test_oracle_distinguishes_codes(attack):
    attack(check_codes, 60)
