"""Compare faithfulness and plausibility with results of ferret.

The cases are outputs of the evaluators of ferret 0.5.0 (0.4.2 agrees), called with models small
enough to be written down: words with weights and pairs of words, and the tabulated answers of a
tiny random transformer. Cases with ties follow the stable rule, as ferret's depend on the machine.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skescore.metrics.attribution import (
    Rationales,
    Removal,
    faithfulness,
    jensen_shannon_divergence,
    plausibility,
)

DATA = Path(__file__).parents[2] / "data"
CASES = json.loads((DATA / "attribution_ferret.json").read_text())
PAIRS = json.loads((DATA / "attribution_jsd.json").read_text())
WORDS = [case for case in CASES if isinstance(case["model"], dict)]
TABLES = [case for case in CASES if "queries" in case]
OPTIONS = [(case, option) for case in WORDS for option in case["expected"]]
FAITHFUL = ("aopc_compr", "aopc_suff", "taucorr_loo")
PLAUSIBLE = {"auprc": "auprc_plau", "token_f1": "token_f1_plau", "token_iou": "token_iou_plau"}


def word_model(case: dict[str, Any]) -> Any:
    """Predict by the softmax of a bias, weights of words and weights of pairs of words."""
    model = case["model"]
    bias, weights = np.array(model["bias"]), np.array(model["weights"])
    mask_weight = np.array(model["mask_weight"])

    def predict_proba(documents: list[list[str]]) -> np.ndarray:
        logits = []
        for tokens in documents:
            present = [int(token.split(":")[0]) for token in tokens if token != "[MASK]"]
            total = bias + weights[present].sum(axis=0)
            total = total + (len(tokens) - len(present)) * mask_weight
            for first, second, pair in model["pairs"]:
                if first in present and second in present:
                    total = total + np.array(pair)
            logits.append(total)
        powers = np.exp(np.array(logits))
        return powers / powers.sum(axis=1, keepdims=True)

    return predict_proba


def tokens_of(case: dict[str, Any]) -> list[str]:
    # Positions distinguish equal words.
    return [f"{position}:{token}" for position, token in enumerate(case["tokens"])]


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "top_k_3": {},
    # ferret deletes single tokens even if it masks rationales.
    "mask": {"removal": Removal("mask", join=None, leave_one_out="delete")},
    "by_count_1_2_3": {"rationales": Rationales([1, 2, 3], by="count")},
}


@pytest.mark.parametrize(
    ("case", "option"), OPTIONS, ids=[f"{case['id']}-{option}" for case, option in OPTIONS]
)
def test_faithfulness_of_word_models_equals_ferret(case: dict[str, Any], option: str) -> None:
    measure_values = faithfulness(
        word_model(case),
        [tokens_of(case)],
        [case["scores"]],
        target=case["target"],
        **{"removal": Removal(join=None), **SETTINGS[option]},
    )
    assert list(measure_values) == list(FAITHFUL)
    for name in FAITHFUL:
        expected = case["expected"][option][name]
        published_value = math.nan if expected is None else expected
        assert measure_values[name].tolist() == pytest.approx(
            [published_value], abs=1e-9, nan_ok=True
        ), name


@pytest.mark.parametrize("case", TABLES, ids=[case["id"] for case in TABLES])
def test_faithfulness_of_transformer_equals_ferret(case: dict[str, Any]) -> None:
    answers = {tuple(query["kept"]): query["p"] for query in case["queries"]}

    def predict_proba(documents: list[str]) -> np.ndarray:
        selected = [
            tuple(int(token.split(":")[0]) for token in document.split()) for document in documents
        ]
        p = np.array([answers[key] for key in selected])
        return np.column_stack([p, 1 - p])

    tokens = tokens_of(case)
    measure_values, details = faithfulness(
        predict_proba, [tokens], [case["scores"]], target=0, return_details=True
    )
    for name in FAITHFUL:
        assert measure_values[name].tolist() == pytest.approx([case["expected"][name]], abs=1e-6)
    # The table contains exactly the predictions for the default measures.
    assert details["queries"].tolist() == [len(answers)]


@pytest.mark.parametrize(
    ("case", "option"),
    [(case, option) for case, option in OPTIONS if option in ("default", "top_k_3")]
    + [(case, "") for case in TABLES],
    ids=lambda value: value["id"] if isinstance(value, dict) else value,
)
def test_plausibility_equals_ferret(case: dict[str, Any], option: str) -> None:
    expected = case["expected"][option] if option else case["expected"]
    measure_values = plausibility(
        [case["scores"]],
        [case["rationale"]],
        top_k=3 if option == "top_k_3" else 5,
        empty="ferret",
    )
    for ours, theirs in PLAUSIBLE.items():
        assert measure_values[ours].tolist() == pytest.approx([expected[theirs]], abs=1e-9), ours


@pytest.mark.parametrize("max_batch", [1, 7, 8192])
def test_faithfulness_is_equal_in_batches_of_documents(max_batch: int) -> None:
    """Documents of different lengths share calls of the model."""
    cases = [case for case in WORDS if len(case["model"]["bias"]) == 2 and len(case["tokens"]) > 3]
    models = {case["id"]: word_model(case) for case in cases}

    def predict_proba(documents: list[list[str]]) -> np.ndarray:
        owners = [document[0].split("/")[0] for document in documents]
        return np.vstack(
            [
                models[owner]([[token.split("/")[1] for token in document]])
                for owner, document in zip(owners, documents, strict=True)
            ]
        )

    measure_values = faithfulness(
        predict_proba,
        [[f"{case['id']}/{token}" for token in tokens_of(case)] for case in cases],
        [case["scores"] for case in cases],
        target=[case["target"] for case in cases],
        removal=Removal(join=None),
        rationales=Rationales([1, 2, 3], by="count"),
        max_batch=max_batch,
    )
    expected = [case["expected"].get("by_count_1_2_3") for case in cases]
    published = [position for position, values in enumerate(expected) if values]
    assert len(published) > 5
    for name in FAITHFUL:
        published_value = [
            math.nan if expected[i][name] is None else expected[i][name] for i in published
        ]
        assert measure_values[name][published].tolist() == pytest.approx(
            published_value, abs=1e-9, nan_ok=True
        )


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_divergence_equals_published_values(number: int) -> None:
    pair = PAIRS[number]
    p, q = pair["p"], pair["q"]
    assert jensen_shannon_divergence(p, q) == pytest.approx(pair["bits"], abs=1e-12)
    assert jensen_shannon_divergence(p, q, base=math.e) == pytest.approx(pair["nats"], abs=1e-12)
    rows = jensen_shannon_divergence([p, q], [q, p])
    assert rows.tolist() == pytest.approx([pair["bits"]] * 2, abs=1e-12)
