"""``candidates.json`` keeps the measurements of a search and restores them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from skescore.report import candidates_json, read_candidates
from skescore.scorers import SCORE_SPECS
from skescore.tuning import Candidate, Candidates


def test_restored_candidates_have_equal_scores(runs) -> None:
    candidates = runs.random_candidates(12)
    text = candidates_json(
        candidates,
        winner=("extractor2", 2),
        standard_errors=0.5,
        extractor_seed=99,
        picked=True,
    )
    restored = read_candidates(text)
    assert (restored.winner, restored.standard_errors, restored.extractor_seed) == (2, 0.5, 99)
    assert restored.picked
    assert not read_candidates(text.replace(', "picked": true', "")).picked
    assert [(c.extractor, c.params, c.trial) for c in restored.candidates] == [
        (c.extractor, c.params, c.trial) for c in candidates
    ]
    for score in SCORE_SPECS:
        for psi, phi, rho in ((1, 1, 1), (3, 0.5, 2)):
            weights = {"psi": psi, "phi": phi, "rho": rho}
            np.testing.assert_array_equal(
                restored.candidates.scores(score, **weights), candidates.scores(score, **weights)
            )
            mixed = candidates.scores_with_all_rows(score, **weights)
            assert np.isfinite(mixed).all(axis=1).sum() == 7
            np.testing.assert_array_equal(
                restored.candidates.scores_with_all_rows(score, **weights), mixed
            )
    for name in ("seconds", "black_box_rows"):
        np.testing.assert_array_equal(restored.candidates.means(name), candidates.means(name))


def test_candidates_json_writes_unusual_parameters_readably(runs) -> None:
    fold = dict(
        runs.random_candidates(1)[0].folds[0].to_dict(), black_box_rows=np.nan, size=np.float64(3)
    )
    odd = Candidate.from_measures(
        "cart", {"n": np.int64(3), "f": np.float64(0.5), "what": min}, 0, (fold,)
    )
    text = candidates_json(Candidates([odd]), winner=None, standard_errors=1.0)
    restored = read_candidates(text)
    assert restored.candidates[0].params == {"n": 3, "f": 0.5, "what": repr(min)}
    assert np.isnan(restored.candidates[0].folds[0]["black_box_rows"])
    assert restored.winner is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d | {"format": "other"}, "must have the format 'skescore.candidates'"),
        (lambda d: d | {"version": 2}, "in version 2"),
        (lambda d: d["candidates"][1]["folds"].pop("loss") and d, "Candidate 2 must have"),
        (lambda d: d["candidates"][0]["folds"].update(size=[None] * 5) or d, "Candidate 1 must"),
        (lambda d: d["candidates"][0]["folds"].update(loss=[]) or d, "loss must be finite"),
        (lambda d: d["candidates"][0].pop("params") and d, "Candidate 1 must have"),
        (lambda d: [1], "got 'list'"),
    ],
    ids=["format", "version", "measure", "number", "empty", "params", "list"],
)
def test_read_candidates_rejects_damaged_files(change, message, runs) -> None:
    text = candidates_json(runs.random_candidates(3), winner=None, standard_errors=1.0)
    with pytest.raises(ValueError, match=message):
        read_candidates(json.dumps(change(json.loads(text))))
    with pytest.raises(ValueError, match="must be JSON"):
        read_candidates(text[:-5])
