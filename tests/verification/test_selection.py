"""Candidates of a search within a limit of the verified disagreement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from optuna.distributions import IntDistribution
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.black_boxes import make_black_box
from skescore.cli import main
from skescore.verification import (
    UnverifiedCandidateWarning,
    VerificationLimits,
    WitnessSampling,
    choose_verified,
    verify,
)

LIMITS = VerificationLimits(time_limit=60.0, max_samples=2000, max_splits=200)


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=300), "z": rng.uniform(size=300)})
    return X, np.where((X["x"] > 0.5) ^ ((X["z"] > 0.7) & (X["x"] < 0.2)), "yes", "no")


@pytest.fixture
def search() -> ExtractorSearchCV:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    return ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=2, random_state=0).fit(
        *rows()
    )


@pytest.mark.slow
def test_choose_verified_selects_first_candidate_within_limit(search) -> None:
    """The oracle verifies CART trees of the leaderboard one by one."""
    board = search.leaderboard_[search.leaderboard_["state"] == "complete"]
    model, X = search.best_extractor_.estimator_, search.data_.X
    uppers = {}
    for _, row in board.iterrows():
        rules = (
            CARTExtractor(model, random_state=search.extractor_seed_, **row["params"]).fit(X).rules_
        )
        uppers[row["trial"]] = verify(rules, model, X, limits=LIMITS).near_disagreement.upper
    trials = board["trial"].tolist()
    limit = min(uppers.values()) + 1e-9
    assert uppers[trials[0]] > limit
    expected = next(trial for trial in trials if uppers[trial] <= limit)
    choice = choose_verified(search, max_disagreement=limit, n_candidates=10, limits=LIMITS)
    assert choice.is_within_limit
    first = search.leaderboard_.iloc[0]
    assert first["trial"] == expected
    assert first["disagreement"] == pytest.approx(uppers[expected])
    assert choice.verification.ruleset == search.rules_
    assert search.leaderboard_["disagreement"].notna().sum() == choice.n_verified
    assert not search.picked_


@pytest.mark.slow
def test_choose_verified_falls_back_to_least_disagreement(search) -> None:
    winner = search.leaderboard_.iloc[0]
    choice = choose_verified(search, max_disagreement=0.0, n_candidates=1, limits=LIMITS)
    assert not choice.is_within_limit
    assert choice.n_verified == 1
    assert search.leaderboard_.iloc[0]["trial"] == winner["trial"]
    assert choice_without_limit(search) == 1


class UnreliableExtractor(CARTExtractor):
    """Trees that cannot be extracted again once `fails` is set."""

    fails = False

    @staticmethod
    def search_space(n_rows: int, y: Any, task: str) -> dict[str, Any]:
        return {"max_leaf_nodes": IntDistribution(2, 6)}

    def fit(self, X: Any, y: Any = None, **options: Any) -> UnreliableExtractor:
        if self.fails:
            raise MemoryError("too many rows")
        return super().fit(X, y, **options)


def test_choose_verified_reports_failing_candidates(monkeypatch) -> None:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    search = ExtractorSearchCV(
        tree, extractors=[UnreliableExtractor], n_trials=3, cv=2, random_state=0
    ).fit(*rows())
    winner = search.leaderboard_.iloc[0]
    monkeypatch.setattr(UnreliableExtractor, "fails", True)
    with pytest.warns(UnverifiedCandidateWarning, match="MemoryError: too many rows"):
        choice = choose_verified(search, max_disagreement=0.0, limits=LIMITS)
    assert (choice.n_verified, choice.is_within_limit) == (1, False)
    board = search.leaderboard_
    assert board.iloc[0]["trial"] == winner["trial"]
    failed = board[board["error"].str.contains("too many rows")]
    others = board[(board["state"] == "complete") & board["same_as"].isna()].iloc[1:]
    assert len(others) > 0
    assert failed.index.tolist() == others.index.tolist()
    assert failed["disagreement"].isna().all()
    keys = zip(failed["extractor"], failed["trial"], strict=True)
    assert choice.failures == dict(zip(keys, failed["error"], strict=True))


@pytest.mark.slow
def test_choose_verified_skips_an_unverifiable_winner(search) -> None:
    """Rules that vote cannot be verified, so the second candidate wins."""
    winner = search.leaderboard_.iloc[0]
    votes = search.rules_.replace(ordered=False, voting="votes", fallback=None)
    search.best_extractor_.rules_ = votes
    with pytest.warns(UnverifiedCandidateWarning, match="vot"):
        choice = choose_verified(search, max_disagreement=1.0, limits=LIMITS)
    assert choice.verification.ruleset == search.rules_ != votes
    assert list(choice.failures) == [(winner["extractor"], winner["trial"])]
    assert choice.is_within_limit
    search.best_extractor_.rules_ = votes
    with pytest.raises(ValueError, match="vot"):
        choose_verified(search, limits=LIMITS)


def fresh_disagreement(search: ExtractorSearchCV) -> float:
    """Return the disagreement on new rows within 0.1 standard deviations of the data."""
    X, rng = search.data_.X, np.random.default_rng(7)
    origin = X.iloc[rng.integers(0, len(X), 40_000)].reset_index(drop=True)
    moved = origin + rng.uniform(-1, 1, origin.shape) * 0.1 * X.std(ddof=0).to_numpy()
    moved = moved.clip(X.min(), X.max(), axis=1)
    return float(np.mean(search.rules_.predict(moved) != search.oracle_.query(moved)))


@pytest.mark.slow
def test_witness_query_rows_lower_the_disagreement() -> None:
    """Thresholds between few rows move to those of the model, which was fitted on many rows."""
    rng = np.random.default_rng(0)
    many_rows = pd.DataFrame({"x": rng.uniform(size=5000), "z": rng.uniform(size=5000)})
    forest = RandomForestClassifier(15, max_depth=4, random_state=0)
    forest.fit(many_rows, (many_rows["x"] > 0.53) & (many_rows["z"] > 0.3))
    search = ExtractorSearchCV(
        FrozenEstimator(forest), extractors=["cart"], n_trials=2, cv=2, random_state=0
    ).fit(many_rows[:40])
    first = choose_verified(search, max_disagreement=0.0, n_candidates=1, limits=LIMITS)
    before, trial = fresh_disagreement(search), search.leaderboard_.iloc[0]["trial"]
    assert before > 0.005
    choice = choose_verified(
        search, max_disagreement=0.0, n_candidates=1, use_witnesses=True, limits=LIMITS
    )
    assert choice.disagreement < first.disagreement
    assert fresh_disagreement(search) < 0.5 * before
    assert choice.verification.ruleset == search.rules_
    winner, second = search.leaderboard_.iloc[0], search.leaderboard_.iloc[1]
    assert (winner["extractor"], second["trial"]) == ("cart + witnesses", trial)
    assert winner["disagreement"] == choice.disagreement
    assert np.isfinite(winner["score"])


@pytest.mark.slow
def test_witness_sampling_returns_valid_rows() -> None:
    """Rows of disagreement are more frequent than near the data, and rows keep their types."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 200),
            "income": rng.normal(3000, 900, 200),
            "city": rng.choice(["Paris", "Rome"], 200),
        }
    )
    y = (X["age"] > 40) & (X["city"] == "Rome") | (X["income"] > 3500)
    forest = make_black_box("random-forest", "classification", 0, ["city"], params={}).fit(X, y)
    rules = CARTExtractor(FrozenEstimator(forest), max_leaf_nodes=4, random_state=0).fit(X).rules_
    result = verify(rules, forest, X, limits=LIMITS)
    shares = {}
    for share in (0.0, 0.3):
        drawn = WitnessSampling(result, forest, share)(X, 5000, 1)
        assert drawn.shape == (5000, 3)
        assert (drawn["age"] == drawn["age"].round()).all()
        assert drawn["income"].between(X["income"].min(), X["income"].max()).all()
        assert set(drawn["city"]) == {"Paris", "Rome"}
        shares[share] = np.mean(forest.predict(drawn) != rules.predict(drawn))
    near = result.near_disagreement
    assert near.lower - 0.02 <= shares[0.0] <= near.upper + 0.02
    assert shares[0.3] > 3 * shares[0.0]


def choice_without_limit(search: ExtractorSearchCV) -> int:
    return choose_verified(search, limits=LIMITS).n_verified


@pytest.mark.slow
def test_tune_limits_the_verified_disagreement(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    X.round(3).assign(y=y).to_csv("rows.csv", index=False)
    words = ["tune", "rows.csv", "--target", "y", "--black-box", "decision-tree", "--quiet"]
    words += ["--extractors", "cart", "--trials", "1", "--cv", "2", "--output", "run"]
    assert main([*words, "--max-disagreement", "0.03", "--verify", "2"]) == 0
    printed = capsys.readouterr().out
    assert "verified (proofs and samples)" in printed
    assert "disagree (verified)" in printed
    about = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    assert about["verification"]["disagreement"] <= 0.03
    assert "disagreement" in Path("run/leaderboard.csv").read_text(encoding="utf-8")
    verified = json.loads(Path("run/verification.json").read_text(encoding="utf-8"))
    assert verified["ruleset"] == json.loads(Path("run/rules.json").read_text(encoding="utf-8"))
    with pytest.raises(SystemExit):
        main([*words, "--overwrite", "--max-disagreement", "0.1", "--pick", "1"])
    assert "not allowed with --pick" in capsys.readouterr().err
