"""Explanations in objects shaped like those of shap, LIME and captum, without these packages.

The real ones are used where they are installed: ``tests/attribution/test_containers_of_others.py``.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skescore.metrics.attribution import (
    Rationales,
    Removal,
    Target,
    faithfulness,
    plausibility,
    text_tokens,
)

TEXTS = ["good film, good cast", "bad film", "good story", "bad, bad cast"]


@pytest.fixture(scope="module")
def moods() -> Any:
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, [1, 0, 1, 0])


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], atol=1e-12, err_msg=name)


def table_model(X: Any) -> np.ndarray:
    margin = np.asarray(X, dtype=float) @ np.array([2.0, -1.0, 0.5])
    p = 1 / (1 + np.exp(-margin))
    return np.column_stack([1 - p, p])


X = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
SCORES = np.array(
    [[2.0, -1.0, 0.5], [0.0, 1.0, -0.5], [2.0, -1.0, 1.0]]
)  # Scores for the predicted class.


def shap_like(values: Any, data: Any = None, names: Any = None) -> Any:
    return SimpleNamespace(values=values, base_values=0.0, data=data, feature_names=names)


class Tensor:
    """Imitate a tensor that must be detached before it is an array."""

    def __init__(self, values: np.ndarray) -> None:
        self.array, self.steps = values, 0

    def detach(self) -> Tensor:
        self.steps += 1
        return self

    def cpu(self) -> Tensor:
        self.steps += 1
        return self

    def numpy(self) -> np.ndarray:
        assert self.steps == 2
        return self.array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("needs a gradient")


def test_faithfulness_accepts_containers_with_one_output() -> None:
    assert table_model(X).argmax(axis=1).tolist() == [1, 0, 1]
    expected = faithfulness(table_model, X, SCORES)
    ragged = np.empty(3, dtype=object)
    ragged[:] = list(SCORES)
    for container in (
        SCORES.tolist(),
        list(SCORES),
        tuple(map(tuple, SCORES)),
        pd.DataFrame(SCORES),
        ragged,
        SCORES.astype(np.float32),
        scipy.sparse.coo_array(SCORES),
        Tensor(SCORES),
        [Tensor(row) for row in SCORES],
        SimpleNamespace(values=SCORES),
        SimpleNamespace(values=SCORES, feature_names=("a", "b", "c"), queries=3),
        SimpleNamespace(values=Tensor(SCORES)),
    ):
        same(faithfulness(table_model, X, container), expected)
    first = {name: values[:1] for name, values in expected.items()}
    for single in (SCORES[0], SCORES[0].tolist(), [SCORES[0]], pd.DataFrame(SCORES[:1])):
        same(faithfulness(table_model, X[:1], single), first)


def test_faithfulness_accepts_containers_per_class() -> None:
    both = np.stack([np.where([[1], [0], [1]], -SCORES, SCORES), np.zeros((3, 3))], axis=-1)
    both[:, :, 1] = -both[:, :, 0]
    expected = faithfulness(table_model, X, SCORES)
    for container in (both, Tensor(both), shap_like(both, X)):
        same(faithfulness(table_model, X, container), expected)
    # For two classes and two rows, a list of two matrices is ambiguous.
    same(faithfulness(table_model, X, [both[..., 0], both[..., 1]]), expected)
    with pytest.raises(ValueError, match="one per row or one per class"):
        faithfulness(table_model, X[:2], [both[:2, :, 0], both[:2, :, 1]])
    firsts = {name: values[:2] for name, values in expected.items()}
    same(faithfulness(table_model, X[:2], list(both[:2])), firsts)
    one = shap_like(both[0], X[0])
    same(
        faithfulness(table_model, X[:1], one),
        {name: values[:1] for name, values in expected.items()},
    )


def test_shap_single_output_needs_explained_class() -> None:
    margins = shap_like(np.where([[1], [0], [1]], SCORES, -SCORES), X)
    same(
        faithfulness(table_model, X, margins, target=Target(explains=1)),
        faithfulness(table_model, X, SCORES),
    )
    same(
        faithfulness(table_model, X, margins, target=1),
        faithfulness(table_model, X, margins.values, target=1),
    )
    same(
        faithfulness(table_model, X, shap_like(SCORES, X), target=Target(explains="target")),
        faithfulness(table_model, X, SCORES),
    )
    with pytest.raises(ValueError, match="explains=1"):
        faithfulness(table_model, X, margins)
    number = faithfulness(lambda rows: table_model(rows)[:, 1], X, margins)
    same(
        {name: number[name] for name in ("aopc_compr", "taucorr_loo")},
        {
            name: faithfulness(table_model, X, margins, target=1)[name]
            for name in ("aopc_compr", "taucorr_loo")
        },
    )


def test_shap_feature_names_determine_order() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = faithfulness(table_model, frame, SCORES)
    permuted = SCORES[:, [2, 0, 1]]
    for container in (
        SimpleNamespace(values=permuted, feature_names=("c", "a", "b")),
        shap_like(permuted, X, ["c", "a", "b"]),
    ):
        same(
            faithfulness(table_model, frame, container, target=Target(explains="target")), expected
        )
    # Names of other columns are ignored.
    for names in (["Feature 0", "Feature 1", "Feature 2"], None):
        same(
            faithfulness(
                table_model, frame, shap_like(SCORES, X, names), target=Target(explains="target")
            ),
            expected,
        )


def test_shap_without_data_explains_many_rows() -> None:
    target = Target(explains="target")
    expected = faithfulness(table_model, X, SCORES, target=target)
    same(faithfulness(table_model, X, shap_like(SCORES), target=target), expected)


def test_shap_mixed_rows_are_not_read_as_tokens() -> None:
    """The second feature contains texts; features are exchanged by the names of the scores."""
    frame = pd.DataFrame({"n": [1.0, 2.0], "word": ["x", "yy"]})
    background = pd.DataFrame({"n": [0.0], "word": [""]})

    def model(rows: pd.DataFrame) -> np.ndarray:
        return rows["n"].to_numpy(dtype=float) + 5.0 * rows["word"].str.len().to_numpy()

    scores = np.array([[2.0, 1.0], [3.0, 4.0]])
    data = frame[["word", "n"]].to_numpy(dtype=object)
    explanation = shap_like(scores[:, ::-1], data, ["word", "n"])
    same(
        faithfulness(model, frame, explanation, removal=background),
        faithfulness(model, frame, scores, removal=background),
    )


def test_shap_accepts_token_lists_of_different_lengths(moods: Any) -> None:
    tokens, values = [["good ", "film"], ["bad"]], [[2.0, 1.0], [3.0]]
    ragged = np.array([np.array(row) for row in values], dtype=object)
    same(
        faithfulness(moods, ["good film", "bad"], shap_like(ragged, tokens), target=1),
        faithfulness(moods, ["good film", "bad"], values, target=1),
    )


def test_text_pieces_keep_blanks(moods: Any) -> None:
    pieces = np.array(["good ", "film, ", "good ", "cast"], dtype=object)
    values = np.array([3.0, 0.5, 2.0, -1.0])
    explanation = shap_like(np.array([values, None], dtype=object)[:1], (pieces,))
    seen_types: list[str] = []

    def watch(texts: list[str]) -> np.ndarray:
        seen_types.extend(texts)
        return moods.predict_proba(texts)

    measures = faithfulness(watch, TEXTS[:1], explanation, target=1)
    same(measures, faithfulness(moods, TEXTS[:1], [values], target=1))
    assert {"film, good cast", "film, cast", "good film, good "} <= set(seen_types)
    seen_types.clear()
    faithfulness(watch, TEXTS[:1], explanation, target=1, removal=Removal("mask", mask_token="?"))
    assert {"? film, good cast", "? film, ? cast", "good film, good ?"} <= set(seen_types)
    tokens = [["good", "film,", "good", "cast"]]
    same(faithfulness(moods, tokens, explanation, target=1), measures)
    with pytest.raises(ValueError, match="row 0 explains 'good film, good cast'"):
        faithfulness(moods, TEXTS[1:2], explanation, target=1)


def lime_like(text: str, words: list[str], weights: dict[int, list[tuple[int, float]]]) -> Any:
    """Imitate LIME's indexed string: words, separators, and positions of each word."""
    pieces: list[str] = []
    rest = text
    for word in words:
        at = rest.index(word)
        pieces += [rest[:at]] * (at > 0) + [word]
        rest = rest[at + len(word) :]
    distinct = list(dict.fromkeys(words))
    indexed = SimpleNamespace(
        as_list=pieces,
        positions=[[i for i, piece in enumerate(pieces) if piece == word] for word in distinct],
        num_words=lambda: len(distinct),
    )
    return SimpleNamespace(
        local_exp=weights,
        mode="classification",
        domain_mapper=SimpleNamespace(indexed_string=indexed),
    )


def test_lime_words_include_all_occurrences(moods: Any) -> None:
    one = lime_like(
        TEXTS[0], ["good", "film", "good", "cast"], {1: [(0, 0.8), (2, -0.2), (1, 0.1)]}
    )
    measures, details = faithfulness(
        moods, TEXTS[:1], one, rationales=Rationales([1], by="count"), return_details=True
    )
    assert details["scores"][0].tolist() == [0.8, 0.1, -0.2]
    before, after = moods.predict_proba([TEXTS[0], "film cast"])[:, 1]
    assert measures["aopc_compr"][0] == pytest.approx(before - after)
    mirrored = faithfulness(moods, TEXTS[:1], one, target=0, rationales=Rationales([1], by="count"))
    # For the other class, the cast has the highest score, and the film none.
    before, after = moods.predict_proba([TEXTS[0], "good film good"])[:, 0]
    assert mirrored["aopc_compr"][0] == pytest.approx(before - after)
    # Rationales mark occurrences.
    marks = [[1, 0, 0, 0]]
    same(plausibility(one, marks, top_k=2), plausibility([[0.8, 0.1, 0.8, -0.2]], marks, top_k=2))
    with pytest.raises(ValueError, match="has 3 for the 4 tokens"):
        plausibility(one, [[1, 0, 0]])


def test_lime_rejects_explanations_of_other_rows() -> None:
    def tabular(weights: dict[int, list[tuple[int, float]]], mode: str = "classification") -> Any:
        return SimpleNamespace(local_exp=weights, mode=mode)

    with pytest.raises(ValueError, match=r"numbered from 0, got .* for feature 3"):
        faithfulness(table_model, X[:1], tabular({1: [(3, 0.5)]}))
    with pytest.raises(ValueError, match="nan for feature 0"):
        faithfulness(table_model, X[:1], tabular({1: [(0, float("nan"))]}))
    with pytest.raises(ValueError, match="1 for 3"):
        faithfulness(table_model, X, tabular({1: [(0, 0.5)]}))
    with pytest.raises(ValueError, match="classes and of regressions"):
        faithfulness(table_model, X[:2], [tabular({1: []}), tabular({1: []}, "regression")])

    def three(rows: Any) -> np.ndarray:
        return np.hstack([table_model(rows) / 2, np.full((len(rows), 1), 0.5)])

    with pytest.raises(ValueError, match=r"labels=\(1,\)"):
        faithfulness(three, X[:1], tabular({0: [(0, 0.5)]}), target=1)
    with pytest.raises(ValueError, match="LIME explains the classes"):
        plausibility(tabular({0: [(0, 0.5)], 1: [(0, 0.2)]}), [[1, 0, 0]])
    measures = plausibility(tabular({0: [(0, 0.5)], 1: [(2, 0.2)]}), [[1, 0, 0]], target=1)
    same(measures, plausibility([[0, 0, 0.2]], [[1, 0, 0]]))


def test_plausibility_mirrors_lime_weights_of_one_class() -> None:
    """LIME explains any class; of two classes, each has the negated weights of the other."""

    def tabular(weights: dict[int, list[tuple[int, float]]]) -> Any:
        return SimpleNamespace(local_exp=weights, mode="classification")

    marks = [[1, 0, 0]]
    second, fourth = tabular({1: [(0, -0.5), (2, 0.2)]}), tabular({3: [(0, 0.5), (2, 0.2)]})
    same(plausibility(second, marks), plausibility([[-0.5, 0, 0.2]], marks))
    same(plausibility(second, marks, target=0), plausibility([[0.5, 0, -0.2]], marks))
    for target in (3, None):
        same(plausibility(fourth, marks, target=target), plausibility([[0.5, 0, 0.2]], marks))
    with pytest.raises(ValueError, match="from 0 to 3"):
        plausibility(fourth, marks, target=4)


def test_removal_keeps_type_of_rows() -> None:
    seen_types = set()

    def watch(rows: Any) -> np.ndarray:
        seen_types.update(map(str, rows.dtypes if hasattr(rows, "dtypes") else [rows.dtype]))
        return table_model(rows)

    scores = np.ones((3, 3))
    for rows, removal, expected in (
        (X.astype(np.float32), 0, {"float32"}),
        (X.astype(np.float32), [0.1, 0.2, 0.3], {"float32"}),
        (X.astype(np.int64), 0.0, {"int64"}),
        (X.astype(np.int64), 0.5, {"int64", "float64"}),
        (X.astype(np.int64), np.nan, {"int64", "float64"}),
        (X > 0, 0, {"bool"}),
    ):
        for table in (rows, pd.DataFrame(rows)):
            seen_types.clear()
            if removal is np.nan:
                with pytest.raises(ValueError, match="finite"):
                    faithfulness(watch, table, scores, removal=removal)
            else:
                faithfulness(watch, table, scores, removal=removal)
            assert seen_types == expected


def test_removal_replaces_columns_of_other_types() -> None:
    frame = pd.DataFrame(
        {
            "n": pd.array([1, 2, 5], dtype="Int64"),
            "when": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]),
            "word": ["x", "yy", "zzz"],
        }
    )

    def model(rows: pd.DataFrame) -> np.ndarray:
        assert rows.dtypes.equals(frame.dtypes)
        return (
            rows["n"].to_numpy(dtype=float)
            + rows["when"].dt.year.to_numpy()
            + rows["word"].str.len().to_numpy()
        )

    background = frame.iloc[[0, 2]]
    for max_batch in (1, 2, 100):
        _, details = faithfulness(
            model,
            frame,
            np.ones((3, 3)),
            removal=background,
            max_batch=max_batch,
            return_details=True,
        )
        assert [row.tolist() for row in details["loo"]] == [[-2, -1, -1], [-1, 0, 0], [2, 1, 1]]
    with pytest.raises(TypeError, match="'when'"):
        faithfulness(model, frame, np.ones((3, 3)))
    with pytest.raises(TypeError, match="numbers for column"):
        faithfulness(table_model, pd.DataFrame(X), SCORES, removal=["a", "b", "c"])


def test_fitted_search_uses_best_pipeline(moods: Any) -> None:
    search = GridSearchCV(moods, {"logisticregression__C": [1.0]}, cv=2).fit(TEXTS, [1, 0, 1, 0])
    assert text_tokens(search, TEXTS[1:2]) == [["bad", "film"]]
    same(
        faithfulness(search, TEXTS[1:2], [[1.0, 0.5]]),
        faithfulness(search.best_estimator_, TEXTS[1:2], [[1.0, 0.5]]),
    )
    width = len(moods[0].vocabulary_)
    same(
        faithfulness(search, TEXTS, np.ones((4, width)), removal=Removal(align="columns")),
        faithfulness(
            search.best_estimator_, TEXTS, np.ones((4, width)), removal=Removal(align="columns")
        ),
    )


def test_removal_groups_are_equal_for_sparse_and_dense_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (6, 5)).astype(float)
    scores = rng.normal(size=(6, 5))
    weights = rng.normal(size=5)
    for features in ("all", "changed"):
        for groups in (None, [[0, 3], [4, 1]]):
            options = {"removal": Removal(features=features, groups=groups)}
            same(
                faithfulness(
                    lambda r: r @ weights, scipy.sparse.csr_matrix(rows), scores, **options
                ),
                faithfulness(lambda r: r @ weights, rows, scores, **options),
            )


def test_faithfulness_aligns_rows_and_columns_by_name() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"], index=[7, 8, 9])
    scores = pd.DataFrame(SCORES, columns=table.columns, index=table.index)
    target = Target(explains=1)  # The sign of the scores of a row depends on its target.
    expected = faithfulness(table_model, table, scores, target=target)
    same(faithfulness(table_model, table, scores.loc[[9, 7, 8]], target=target), expected)
    other_order = pl.from_pandas(scores[["c", "a", "b"]])
    same(faithfulness(table_model, table, other_order, target=target), expected)
    same(faithfulness(table_model, pl.from_pandas(table), other_order, target=target), expected)
    fill = pd.DataFrame([[0.5, 0.25, 1.0]], columns=table.columns)
    expected = faithfulness(table_model, table, scores, removal=fill)
    fill = pl.from_pandas(fill[["b", "c", "a"]])
    same(faithfulness(table_model, table, scores, removal=fill), expected)
