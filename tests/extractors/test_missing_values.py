"""Every extractor on tables with missing values, in numbers and among categories."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import BaseExtractor, CARTExtractor
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import AtLeast, Interval, Missing, OneOf, Rule, RuleSet

EVERY = [extractor_class(name) for name in EXTRACTORS]
BOTH = [(cls, task) for cls in EVERY for task in cls.tasks]
IDS = [f"{cls.__name__}-{task}" for cls, task in BOTH]


def table(n_rows: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n_rows).round(),
            "fare": rng.gamma(2, 20, n_rows).round(2),
            "sex": rng.choice(["female", "male"], n_rows),
            "deck": rng.choice(list("ABCDE"), n_rows),
        }
    )
    X.loc[rng.random(n_rows) < 0.2, "age"] = np.nan
    X.loc[rng.random(n_rows) < 0.3, "deck"] = np.nan
    return X


def benefit(X: pd.DataFrame) -> np.ndarray:
    """Return more for the young and for unknown ages, less for unknown decks."""
    young = (X["age"].isna() | (X["age"] < 30)) * 2.0
    return np.asarray(young - X["deck"].isna() * 3.0 + (X["sex"] == "female") + X["fare"] / 200)


def made(cls: Any, estimator: Any, **options: Any) -> Any:
    seeded = "random_state" in inspect.signature(cls).parameters
    return cls(estimator, **({"random_state": 0} if seeded else {}), **options)


@functools.cache
def fitted(cls: Any, task: str) -> tuple[Any, Any]:
    """Return an extractor around a black box that supports missing values and categories."""
    X = table().astype({"sex": "category", "deck": "category"})
    y = benefit(table())
    black_box: Any = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    if task == "classification":
        y = np.where(y > 0.5, "yes", "no")
        black_box = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an extractor stopped at its limits
        return made(cls, black_box.set_params(random_state=0)).fit(X, y), X


@pytest.mark.parametrize(("cls", "task"), BOTH, ids=IDS)
def test_rules_follow_black_box_despite_missing_values(cls: Any, task: str) -> None:
    extractor, X = fitted(cls, task)
    y_black_box = extractor.oracle_.query(X)
    guess = 0.0 if task == "regression" else pd.Series(y_black_box).value_counts(True).max()
    assert extractor.fidelity(X) > guess + (0.3 if task == "regression" else 0.1)
    assert 0 < extractor.completeness_ <= 1
    rules = extractor.rules_
    assert rules.domain.missing == pytest.approx(X.isna().mean().to_numpy())
    assert RuleSet.from_json(rules.to_json()) == rules
    # The extracted rows and the rules for the table agree.
    if all(r.statistics is not None for r in rules) and cls.__name__ != "TrepanExtractor":
        counted = np.bincount(rules.assign(X)[rules.covers(X)], minlength=len(rules))
        assert counted.tolist() == [r.statistics.n_rows for r in rules]


@pytest.mark.parametrize(("cls", "task"), BOTH, ids=IDS)
def test_fit_is_reproducible_with_missing_values(cls: Any, task: str) -> None:
    first, X = fitted(cls, task)
    assert fitted.__wrapped__(cls, task)[0].rules_ == first.rules_
    pd.testing.assert_series_equal(
        pd.Series(first.predict(X)), pd.Series(first.predict(X.iloc[:, ::-1][list(X.columns)]))
    )


@pytest.mark.parametrize("cls", [c for c in EVERY if "classification" in c.tasks])
def test_missing_value_concept_is_found(cls: Any) -> None:
    X = table()[["fare", "age"]]
    concept = CallableClassifier(lambda rows: np.isnan(np.asarray(rows)[:, 1]).astype(int))
    extractor = made(cls, concept).fit(X.to_numpy(), X["age"].isna().astype(int))
    assert extractor.fidelity(X.to_numpy()) == 1.0
    assert "x1 is missing" in str(extractor.rules_) or "x1 is known" in str(extractor.rules_)
    assert extractor.completeness_ == pytest.approx(1.0)


@pytest.mark.parametrize("value", [np.nan, None, pd.NA])
def test_kinds_of_missing_values_give_the_same_rules(value: Any) -> None:
    X = table()[["fare", "age"]]
    y = np.where(X["age"].isna() | (X["age"] < 30), "yes", "no")
    expected = CARTExtractor(HistGradientBoostingClassifier(random_state=0), random_state=0)
    expected.fit(X, y)
    objects = X.astype({"age": object})
    objects.loc[X["age"].isna(), "age"] = value
    black_box = CallableClassifier(
        lambda rows: expected.estimator_.predict(
            pd.DataFrame({n: pd.to_numeric(rows[n]).astype(float) for n in rows.columns})
        )
    )
    fitted = CARTExtractor(black_box, random_state=0).fit(objects, y)
    assert fitted.rules_ == expected.rules_
    np.testing.assert_array_equal(fitted.predict(objects), expected.predict(X))


def test_missing_values_of_polars_give_the_same_rules() -> None:
    X = table()[["fare", "age"]]
    y = np.where(X["age"].isna() | (X["age"] < 30), "yes", "no")
    black_box = HistGradientBoostingClassifier(random_state=0).fit(X.to_numpy(), y)
    expected = CARTExtractor(black_box, random_state=0).fit(X.to_numpy())
    frame = polars.from_pandas(X)  # with nulls instead of NaN
    assert frame["age"].null_count() == X["age"].isna().sum()
    adapter = CallableClassifier(lambda rows: black_box.predict(rows.to_numpy()))
    fitted = CARTExtractor(adapter, random_state=0).fit(frame, y)
    assert fitted.rules_.replace(feature_names=["x0", "x1"]) == expected.rules_
    np.testing.assert_array_equal(fitted.predict(frame), expected.predict(X.to_numpy()))


def test_unexpected_missing_values_satisfy_no_condition() -> None:
    X = table()[["fare", "age"]].dropna()
    y = (X["age"] < 40).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    extractor = CARTExtractor(tree, simplify=False, random_state=0).fit(X, y)
    rows = X.head(3).assign(age=np.nan)
    assert not extractor.covers(rows).any()
    assert (extractor.predict(rows) == np.bincount(y).argmax()).all()


def test_error_of_black_box_on_missing_values_is_raised() -> None:
    X = table()[["fare", "age"]]
    with pytest.raises(ValueError, match=r"contains NaN"):
        CARTExtractor(LogisticRegression()).fit(X, X["fare"] > 30)


def test_unused_columns_are_not_checked() -> None:
    X = table()[["fare", "age"]]
    y = (X["fare"] < 30).astype(int)
    black_box = HistGradientBoostingClassifier(random_state=0)
    extractor = CARTExtractor(black_box, max_depth=1, random_state=0).fit(X, y)
    rows = X.assign(age="unknown")
    np.testing.assert_array_equal(extractor.predict(rows), extractor.predict(X))


class Given(BaseExtractor):
    """Extractor that returns the rules of a test."""

    takes_categories = True

    def __init__(self, estimator: Any, make: Any, uncovered: str = "default") -> None:
        self.estimator, self.make, self.uncovered = estimator, make, uncovered
        self.abstain_label = self.batch_size = None

    def _check_parameters(self) -> None:
        pass

    def _extract(self, extraction: Any) -> RuleSet:
        self.seen_ = extraction
        self.given_ = RuleSet(self.make(extraction), **extraction.settings)
        return self.given_


@given(data=st.data())
def test_rules_match_the_rows_that_they_were_built_on(data: Any) -> None:
    X = table(60, 3)

    def condition(extraction: Any) -> Any:
        j = data.draw(st.integers(0, extraction.X.shape[1] - 1))
        values = extraction.categories.get(j)
        if values is not None:
            some = data.draw(st.sets(st.sampled_from(values), min_size=1))
            return OneOf(j, some, negated=data.draw(st.booleans()))
        ends = st.sampled_from(sorted({*extraction.X[:, j].tolist(), 0.5}))
        low, high = sorted((data.draw(ends), data.draw(ends)))
        low, high = data.draw(st.sampled_from([(low, high + 0.25), (-np.inf, high), (low, np.inf)]))
        return Interval(j, low, high)

    def rules(extraction: Any) -> list[Rule]:
        created = []
        for label in data.draw(st.lists(st.sampled_from(["no", "yes"]), min_size=1, max_size=4)):
            parts = [condition(extraction) for _ in range(data.draw(st.integers(1, 4)))]
            if data.draw(st.booleans()):
                parts = [AtLeast(data.draw(st.integers(1, len(parts))), tuple(parts))]
            try:
                created.append(Rule(tuple(parts), label))
            except ValueError:  # no number satisfies them all
                continue
        return created

    black_box = CallableClassifier(
        lambda rows: np.where(np.asarray(rows["fare"]) > 30, "yes", "no")
    )
    extractor = Given(black_box, rules).fit(X, np.where(X["fare"] > 30, "yes", "no"))
    inner = extractor.seen_.X
    assert not np.isnan(inner).any()
    shown = inner
    if extractor.seen_.categories:
        shown = pd.DataFrame(inner, columns=extractor.given_.feature_names).astype(object)
        for j, values in extractor.seen_.categories.items():
            shown.isetitem(j, np.array(values, dtype=object)[inner[:, j].astype(int)])
    covered = extractor.given_.covers(shown)
    np.testing.assert_array_equal(extractor.covers(X), covered)
    np.testing.assert_array_equal(
        extractor.predict(X)[covered], extractor.given_.predict(shown)[covered]
    )
    # And points are decoded to the rows that they stand for.
    pd.testing.assert_frame_equal(extractor.seen_.decode(inner), X, check_dtype=False)


def test_sets_with_missing_values_are_readable() -> None:
    def rules(extraction: Any) -> list[Rule]:
        a, b, *_, gap = extraction.categories[3]
        column = extraction.X.shape[1] - 1  # whether the age is missing
        return [
            Rule((OneOf(3, (gap,)), Interval(column, 0.5)), "yes"),
            Rule((OneOf(3, (a, gap)), Interval(0, upper=35.0)), "yes"),
            Rule((OneOf(3, (b,), negated=True), Interval(column, upper=0.5)), "no"),
        ]

    X = table()
    X.loc[X["age"].isna(), "fare"] = 0.0  # like the young: they are at the lower end
    X.loc[X["age"] < 40, "fare"] = 0.0
    box = CallableClassifier(lambda rows: np.where(np.asarray(rows["fare"]) > 0, "yes", "no"))
    extractor = Given(box, rules).fit(X, np.where(X["fare"] > 0, "yes", "no"))
    assert [r.premise_text(X.columns) for r in extractor.rules_] == [
        "age is missing AND deck is missing",
        "(age ≤ 35 or missing) AND (deck = A or missing)",
        "age is known AND (deck ≠ B or missing)",
    ]
    assert Missing(3) in extractor.rules_[0].conditions
