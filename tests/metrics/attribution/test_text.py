"""Faithfulness on texts with pipelines of scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

from skescore.metrics.attribution import (
    Rationales,
    Removal,
    Target,
    faithfulness,
    plausibility,
    text_tokens,
)

TEXTS = [
    "A wonderful film: good story, good cast!",
    "The music is not bad at all; the film is a wonder.",
    "Good music and a story that keeps its promise",
    "I laughed, and I cried. Good, good film",
    "The café scene alone is worth the ticket",
    "Bad film, bad story, and an awful cast",
    "The story is not good. Boring music, boring film.",
    "An awful bore: I left the film at the café scene",
    "Not good, not wonderful; it is a bad film",
    "the ticket was a waste",
]
MOODS = np.array(["liked"] * 5 + ["hated"] * 5)


def pipelines() -> dict[str, Pipeline]:
    return {
        "counts": make_pipeline(CountVectorizer(), MultinomialNB()),
        "pairs": make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10)),
        "stopped": make_pipeline(
            CountVectorizer(stop_words=["the", "is"], strip_accents="unicode"),
            TfidfTransformer(),
            LogisticRegression(),
        ),
        "letters": make_pipeline(
            TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True, norm="l1"),
            LogisticRegression(C=100),
        ),
    }


def fitted(name: str) -> Pipeline:
    return pipelines()[name].fit(TEXTS, MOODS)


def scores_for(tokens: list[list[str]], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, size=len(row)) / 4 for row in tokens]


def token_by_token(
    model: Any, tokens: list[str], scores: np.ndarray, mask: str | None
) -> dict[str, float]:
    """Compute the default measures of one text, one query at a time."""
    column = model.predict_proba([" ".join(tokens)])[0].argmax()

    def answer(removed: set[int]) -> float:
        left = [
            mask if position in removed else token
            for position, token in enumerate(tokens)
            if mask is not None or position not in removed
        ]
        return float(model.predict_proba([" ".join(map(str, left))])[0, column])

    n, base = len(tokens), answer(set())
    order = sorted(range(n), key=lambda position: (scores[position], position), reverse=True)
    rationales: list[set[int]] = []
    for tenth in range(1, 11):
        rationale = {position for position in order[: tenth * n // 10] if scores[position] > 0}
        if rationale and rationale not in rationales[-1:]:
            rationales.append(rationale)
    loo = [round(base - answer({position}), 12) for position in range(n)]
    k = len(rationales)
    return {
        "aopc_compr": sum(base - answer(r) for r in rationales) / k if k else 0.0,
        "aopc_suff": sum(base - answer(set(range(n)) - r) for r in rationales) / k if k else 1.0,
        "taucorr_loo": scipy.stats.kendalltau(scores, loo)[0] if len(set(loo)) > 1 else math.nan,
    }


@pytest.mark.parametrize("removal", ["delete", "mask"])
@pytest.mark.parametrize("name", pipelines())
def test_faithfulness_of_texts_equals_slow_loop(name: str, removal: str) -> None:
    model = fitted(name)
    tokens = text_tokens(model, TEXTS)
    scores = scores_for(tokens)
    mask = "[MASK]" if removal == "mask" else None
    measure_values = faithfulness(model, TEXTS, scores, removal=removal)
    expected = [token_by_token(model, *pair, mask) for pair in zip(tokens, scores, strict=True)]
    for measure, values in measure_values.items():
        expected_tokens = [row[measure] for row in expected]
        np.testing.assert_allclose(values, expected_tokens, atol=1e-9, err_msg=measure)
    # Token lists, small batches, functions and columns of frames give the same result.
    for same in (
        faithfulness(model, tokens, scores, removal=removal, max_batch=3),
        faithfulness(model.predict_proba, np.array(TEXTS), scores, removal=removal),
        faithfulness(model, pd.Series(TEXTS, index=range(9, -1, -1)), scores, removal=removal),
        faithfulness(
            lambda texts: model.predict_proba(texts),
            TEXTS,
            scores,
            removal=Removal(removal, tokenizer=model[0].build_tokenizer()),
        ),
    ):
        for measure, values in measure_values.items():
            np.testing.assert_allclose(same[measure], values, atol=1e-9)


def test_text_tokens_equal_vectorizer() -> None:
    text = ["The café is NOT a bore, not at all"]
    assert text_tokens(fitted("counts"), text) == [
        ["the", "café", "is", "not", "bore", "not", "at", "all"]
    ]
    # Accents are removed; stop words are tokens.
    assert text_tokens(fitted("stopped").predict_proba, text)[0][:3] == ["the", "cafe", "is"]
    assert text_tokens(fitted("letters"), text)[0][4] == "a"
    assert text_tokens(None, text, tokenizer=str.split)[0][-1] == "all"
    assert text_tokens(None, [["as", "it", "is"]]) == [["as", "it", "is"]]
    model = fitted("counts")
    base = model.predict_proba(text)
    joined = model.predict_proba([" ".join(text_tokens(model, text)[0])])
    np.testing.assert_array_equal(base, joined)


def test_removal_mask_separates_words() -> None:
    """Deleting "not" creates the new pair of words "is good"."""
    model = make_pipeline(
        CountVectorizer(ngram_range=(2, 2), vocabulary=["is not", "not good", "is good"]),
        LogisticRegression(),
    ).fit(["is good", "is not", "not good"], [1, 0, 0])
    text = [["is", "not", "good"]]
    scores = [[0.0, 1.0, 0.0]]
    options: dict[str, Any] = {"target": 1, "rationales": Rationales([1], by="count")}
    base, good, none = model.predict_proba(["is not good", "is good", "nothing here"])[:, 1]
    deleted = faithfulness(model, text, scores, **options)
    masked = faithfulness(model, text, scores, removal="mask", **options)
    assert deleted["aopc_compr"][0] == pytest.approx(base - good)
    assert masked["aopc_compr"][0] == pytest.approx(base - none)
    assert good > none > base
    mixed, details = faithfulness(
        model,
        text,
        scores,
        removal=Removal("mask", leave_one_out="delete"),
        return_details=True,
        **options,
    )
    assert mixed["aopc_compr"] == masked["aopc_compr"]
    assert details["loo"][0][1] == pytest.approx(base - good)


def test_faithfulness_counts_occurrences_as_separate_tokens() -> None:
    model = fitted("counts")
    _, details = faithfulness(
        model, [["good", "film", "good"]], [[3.0, 0.0, 1.0]], return_details=True
    )
    column = details["target"][0]
    full, once, never = model.predict_proba(["good film good", "film good", "film"])[:, column]
    assert details["lengths"][0].tolist() == [1, 2]
    assert details["without"][0] == pytest.approx([once, never])
    assert details["loo"][0][[0, 2]] == pytest.approx([full - once] * 2)


def test_faithfulness_accepts_texts_without_tokens() -> None:
    model = fitted("pairs")
    measure_values, details = faithfulness(
        model, ["", "good film", "!"], [[], [1.0, 1.0], []], return_details=True
    )
    assert details["base"][[0, 2]] == pytest.approx(model.predict_proba([""]).max())
    assert measure_values["aopc_compr"][[0, 2]].tolist() == [0, 0]
    assert measure_values["aopc_suff"][[0, 2]].tolist() == [1, 1]
    assert np.isnan(measure_values["taucorr_loo"][[0, 2]]).all()
    # All words can be removed.
    assert details["without"][1][-1] == pytest.approx(
        model.predict_proba([""])[0, details["target"][1]]
    )


def test_faithfulness_of_texts_accepts_column_attributions() -> None:
    model = fitted("pairs")
    matrix = model[0].transform(TEXTS)
    slopes = matrix.multiply(model[-1].coef_[0]).tocsr()
    measure_values = faithfulness(
        model, TEXTS, slopes, removal=Removal(align="columns"), target=Target(explains="liked")
    )
    for same in (
        faithfulness(
            model,
            TEXTS,
            slopes.toarray(),
            removal=Removal(align="columns"),
            target=Target(explains="liked"),
        ),
        faithfulness(
            model.predict_proba,
            TEXTS,
            slopes.toarray(),
            removal=Removal(align="columns"),
            target=Target(explains="liked"),
        ),
        faithfulness(
            model[-1],
            matrix,
            slopes,
            removal=Removal(features="changed"),
            target=Target(explains="liked"),
        ),
        faithfulness(
            model[-1],
            matrix.toarray(),
            slopes.toarray(),
            removal=Removal(features="changed"),
            target=Target(explains="liked"),
        ),
    ):
        for measure, values in measure_values.items():
            np.testing.assert_allclose(same[measure], values, atol=1e-9)
    np.testing.assert_allclose(measure_values["taucorr_loo"], 1.0)
    # Only columns that occur in a text are its features.
    first = matrix[[0]].indices
    by_hand = matrix[[0]].toarray()
    best = first[np.argmax(slopes.toarray()[0, first])]
    by_hand[0, best] = 0
    _, details = faithfulness(
        model,
        TEXTS,
        slopes,
        removal=Removal(align="columns"),
        target="liked",
        rationales=Rationales([1], by="count"),
        return_details=True,
    )
    assert len(details["scores"][0]) == len(first)
    assert details["without"][0][0] == pytest.approx(model[-1].predict_proba(by_hand)[0, 1])


def test_faithfulness_of_texts_uses_columns_of_last_step() -> None:
    """All steps but the last turn the texts into the columns of the attributions."""
    model = fitted("stopped")
    matrix = model[:-1].transform(TEXTS)
    slopes = matrix.multiply(model[-1].coef_[0]).tocsr()
    target = Target(explains="liked")
    measure_values = faithfulness(
        model, TEXTS, slopes, removal=Removal(align="columns"), target=target
    )
    expected = faithfulness(
        model[-1], matrix, slopes, removal=Removal(features="changed"), target=target
    )
    for measure, values in expected.items():
        np.testing.assert_allclose(measure_values[measure], values, atol=1e-9)


def test_faithfulness_accepts_texts_in_polars_series() -> None:
    model, texts = fitted("counts"), ["good film", "bad story"]
    scores = [[1.0, 2.0], [2.0, 1.0]]
    expected = faithfulness(model, texts, scores)
    measure_values = faithfulness(model, pl.Series(texts), scores)
    for measure, values in expected.items():
        np.testing.assert_array_equal(measure_values[measure], values)


def test_faithfulness_rejects_empty_list_of_texts() -> None:
    with pytest.raises(ValueError, match="X must be a table of features, a list of texts"):
        faithfulness(fitted("counts"), [], [])


def test_faithfulness_accepts_models_of_token_lists() -> None:
    model = make_pipeline(CountVectorizer(analyzer=list), MultinomialNB())
    tokens = [["good", "film"], ["bad", "film", "bad"], ["good"], ["bad"]]
    model.fit(tokens, [1, 0, 1, 0])
    measure_values, details = faithfulness(
        model, tokens[:2], [[1.0, 0.0], [1, 0, 1]], removal=Removal(join=None), return_details=True
    )
    assert (measure_values["aopc_compr"] > 0).all()
    assert details["base"] == pytest.approx(model.predict_proba(tokens[:2]).max(axis=1))
    with pytest.raises(ValueError, match="tokenizer must be given"):
        faithfulness(model, ["good film"], [[1.0, 0.0]])


def test_faithfulness_accepts_ragged_attributions_per_class() -> None:
    model = fitted("counts")
    tokens = text_tokens(model, TEXTS)
    rng = np.random.default_rng(1)
    scores = [rng.normal(size=(len(row), 2)) for row in tokens]
    columns = model.predict_proba(TEXTS).argmax(axis=1)
    explained = [row[:, k] for row, k in zip(scores, columns, strict=True)]
    expected = faithfulness(model, TEXTS, explained)
    ragged = np.empty(len(scores), dtype=object)
    ragged[:] = scores
    for container in (scores, ragged):
        measure_values = faithfulness(model, TEXTS, container)
        for measure, values in expected.items():
            np.testing.assert_array_equal(measure_values[measure], values)
    marks = [rng.integers(0, 2, len(row)) for row in tokens]
    for measure, values in plausibility(scores, marks, target=columns).items():
        np.testing.assert_array_equal(values, plausibility(explained, marks)[measure])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"X": "good film"}, TypeError, r"\[text\]"),
        ({"attributions": [[1.0]]}, ValueError, "row 0 has 1 for 2 tokens.*text_tokens"),
        ({"removal": 0}, ValueError, "'delete', 'mask'"),
        ({"removal": Removal(leave_one_out="keep")}, ValueError, "leave_one_out"),
        ({"removal": Removal(groups=[[0, 1]])}, ValueError, "tables"),
        ({"removal": Removal(align="columns")}, ValueError, "row 0 has 2 for"),
        ({"predict_proba": len}, ValueError, "tokenizer must be given"),
        (
            {"predict_proba": len, "removal": Removal(align="columns")},
            TypeError,
            "needs a pipeline",
        ),
    ],
)
def test_faithfulness_of_texts_rejects_invalid_inputs(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    good: dict[str, Any] = {
        "predict_proba": fitted("counts"),
        "X": ["good film"],
        "attributions": [[1.0, 0.0]],
    }
    with pytest.raises(error, match=message):
        faithfulness(**{**good, **changes})


def test_text_tokens_reject_other_types() -> None:
    with pytest.raises(TypeError, match="single text"):
        text_tokens(None, "good film")
    with pytest.raises(TypeError, match="3 in row 1"):
        text_tokens(None, [["good"], 3])
    with pytest.raises(TypeError, match=r"\['good', 1\] in row 0"):
        text_tokens(None, [["good", 1]])


def test_faithfulness_rejects_mixed_rows() -> None:
    rows = [["u", 1.0], ["v", 2.0], ["u", 3.0]]
    with pytest.raises(TypeError, match=r"X must hold numbers, .* Pass a DataFrame for columns"):
        faithfulness(lambda texts: np.full((len(texts), 2), 0.5), rows, np.ones((3, 2)))
