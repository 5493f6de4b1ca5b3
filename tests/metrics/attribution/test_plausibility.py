"""Plausibility: known values, curves of scikit-learn as a reference, and averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

from skescore.metrics.attribution import PLAUSIBILITY, plausibility

CASES = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        arrays(int, n, elements=st.integers(-3, 4)), arrays(int, n, elements=st.integers(0, 1))
    )
)


def test_plausibility_equals_values_computed_by_hand() -> None:
    """The top three positive tokens are 0, 2, 3; tokens 2 and 4 are marked."""
    measure_values = plausibility(
        [[0.9, -0.1, 0.6, 0.5, 0.1]], [[0, 0, 1, 0, 1]], top_k=3, measures=PLAUSIBILITY
    )
    assert measure_values["token_iou"].tolist() == [1 / 4]
    assert measure_values["token_f1"][0] == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    # The curve has precision 1, 0, 1/2, 1/3, 2/4, 2/5 at recall 0, 0, 1/2, 1/2, 1, 1.
    assert measure_values["auprc"][0] == pytest.approx(
        0.5 * (0 + 1 / 2) / 2 + 0.5 * (1 / 3 + 1 / 2) / 2
    )
    assert measure_values["average_precision"][0] == pytest.approx(0.5 * 1 / 2 + 0.5 * 1 / 2)


@given(CASES, st.booleans(), st.integers(1, 6))
def test_plausibility_equals_scikit_learn(
    case: tuple[Any, Any], only_positive: bool, top_k: int
) -> None:
    scores, human = case[0] / 2, case[1]
    measure_values = plausibility(
        [scores], [human], top_k=top_k, only_positive=only_positive, measures=PLAUSIBILITY
    )
    order = sorted(range(len(scores)), key=lambda j: (scores[j], j), reverse=True)[:top_k]
    rationale = {j for j in order if scores[j] > 0 or not only_positive}
    marked = set(np.flatnonzero(human).tolist())
    both, union = len(rationale & marked), len(rationale | marked)
    assert measure_values["token_iou"][0] == (both / union if union else 0)
    assert measure_values["token_f1"][0] == pytest.approx(
        2 * both / (len(rationale) + len(marked)) if both else 0
    )
    if not marked:
        assert np.isnan(measure_values["auprc"]).all()
        assert np.isnan(measure_values["average_precision"]).all()
        return
    ranked = np.maximum(scores, 0) if only_positive else scores
    precision, recall, _ = sk.precision_recall_curve(human, ranked)
    assert measure_values["auprc"][0] == pytest.approx(sk.auc(recall, precision))
    assert measure_values["average_precision"][0] == pytest.approx(
        sk.average_precision_score(human, ranked)
    )


def test_plausibility_handles_empty_rationales() -> None:
    measure_values = plausibility([[-1.0, -2.0], [1.0, 2.0], []], [[1, 0], [0, 0], []])
    assert measure_values["token_iou"].tolist() == [0, 0, 0]
    assert measure_values["token_f1"].tolist() == [0, 0, 0]
    assert measure_values["auprc"][0] == pytest.approx(0.75)  # One point: (1, 1/2).
    assert np.isnan(measure_values["auprc"][1:]).all()
    as_ferret = plausibility([[1.0, 2.0]], [[0, 0]], empty="ferret")
    assert as_ferret["auprc"].tolist() == [0.5]


def test_plausibility_averages_ragged_rows() -> None:
    scores = [[3.0, 2.0, 1.0], [1.0], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0]]
    marks = [[1, 1, 0], [1], [1, 0, 0, 0], [0, 0]]
    measure_values = plausibility(scores, marks, top_k=1)
    assert measure_values["token_f1"].tolist() == pytest.approx([2 / 3, 1, 0, 0])
    macro = plausibility(scores, marks, top_k=1, average="macro")
    assert macro["token_f1"] == pytest.approx((2 / 3 + 1) / 4)
    assert macro["auprc"] == pytest.approx(np.nanmean(measure_values["auprc"]))
    # In total, 2 tokens are shared by 4 chosen and 4 marked ones.
    micro = plausibility(scores, marks, top_k=1, average="micro")
    assert micro == {"token_iou": pytest.approx(2 / 6), "token_f1": pytest.approx(4 / 8)}
    none = plausibility([[1.0]], [[0]], average="macro", measures=["auprc"])
    assert math.isnan(none["auprc"])


def test_plausibility_accepts_mean_top_k() -> None:
    scores = np.tile([4.0, 3.0, 2.0, 1.0], (2, 1))
    marks = [[1, 1, 0, 0], [1, 1, 1, 0]]  # The average is 2.5.
    expected = plausibility(scores, marks, top_k=3)
    measure_values = plausibility(pd.DataFrame(scores), pd.DataFrame(marks), top_k="mean")
    for name in expected:
        np.testing.assert_array_equal(measure_values[name], expected[name])
    empty = plausibility(scores, np.zeros((2, 4)), top_k="mean")
    assert empty["token_iou"].tolist() == [0, 0]


def test_plausibility_selects_values_of_target_class() -> None:
    scores = np.arange(24.0).reshape(2, 4, 3) % 7
    marks = [[1, 0, 0, 1], [0, 1, 1, 0]]
    for target in (1, [2, 0]):
        columns = np.broadcast_to(target, (2,))
        values = np.stack([scores[i, :, k] for i, k in enumerate(columns)])
        expected = plausibility(values, marks, top_k=2)
        measure_values = plausibility(scores, marks, top_k=2, target=target)
        for name in expected:
            np.testing.assert_array_equal(measure_values[name], expected[name])


def test_plausibility_defaults_to_three_measures_of_five_tokens() -> None:
    """The rationale is the sixth token by its score, which the top five leave out."""
    scores, marks = [[7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]], [[0, 0, 0, 0, 1, 1, 0]]
    measure_values = plausibility(scores, marks)
    assert list(measure_values) == ["token_iou", "token_f1", "auprc"]
    assert measure_values["token_iou"].tolist() == [1 / 6]


def test_plausibility_leaves_out_scores_of_zero() -> None:
    scores, marks = [[0.0, 1.0, 0.0]], [[1, 1, 1]]
    measure_values = plausibility(scores, marks, top_k=3, measures=["token_iou"])
    assert measure_values["token_iou"].tolist() == [1 / 3]
    with_all = plausibility(scores, marks, top_k=3, only_positive=False, measures=["token_iou"])
    assert with_all["token_iou"].tolist() == [1.0]


def test_plausibility_targets_of_rows_must_be_columns() -> None:
    with pytest.raises(ValueError, match=r"column from 0 to 1, or one for each row, got \[0, -1\]"):
        plausibility(np.ones((2, 3, 2)), np.ones((2, 3), dtype=int), target=[0, -1])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"rationales": [[1, 0]]}, ValueError, "row 0 has 3 for 2"),
        ({"rationales": [[1, 0, 0]] * 2}, ValueError, "1 for 2"),
        ({"rationales": [[1, 0, 2]]}, ValueError, "got 2 in row 0"),
        ({"rationales": [[1, 0, math.nan]]}, ValueError, "got nan in row 0"),
        ({"rationales": ["abc"]}, ValueError, "row of 0 and 1"),
        ({"rationales": None}, TypeError, "NoneType"),
        ({"attributions": [[1, math.nan, 0]]}, ValueError, "finite"),
        ({"attributions": np.ones((1, 3, 2))}, ValueError, "target must not be None"),
        ({"attributions": np.ones((1, 3, 2)), "target": 2}, ValueError, "0 to 1"),
        ({"attributions": np.ones((1, 3, 2)), "target": "a"}, ValueError, "'a'"),
        ({"target": 1}, ValueError, "Omit it"),
        ({"top_k": 0}, ValueError, "top_k"),
        ({"top_k": "median"}, TypeError, "'median'"),
        ({"measures": ["iou"]}, ValueError, "'token_iou'"),
        ({"measures": []}, ValueError, "at least one"),
        ({"measures": ["auprc"], "average": "micro"}, ValueError, "based on counts"),
        ({"average": "mean"}, ValueError, "'macro', 'micro'"),
        ({"empty": "zero"}, ValueError, "'ferret'"),
    ],
)
def test_plausibility_rejects_invalid_inputs(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    good: dict[str, Any] = {"attributions": [[1.0, 2.0, 3.0]], "rationales": [[1, 0, 0]]}
    with pytest.raises(error, match=message):
        plausibility(**{**good, **changes})


@pytest.mark.parametrize("rationales", [None, "10", {"a": [1]}, max])
def test_plausibility_requires_rows_of_rationales(rationales: Any) -> None:
    with pytest.raises(TypeError, match="rationales must be rows of 0 and 1"):
        plausibility([[0.1, 0.2]], rationales)
