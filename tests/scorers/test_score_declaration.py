"""A declaration adds a score to scorers, searches, pruning, benchmarks, pages and survival."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from skescore.bench import config_from, rank_extractors, read_rows, run_bench, summarize
from skescore.cli import main
from skescore.extractors import CARTExtractor
from skescore.metrics import survival_scores, volume_completeness
from skescore.report import write_report
from skescore.rules import SurvivalRules
from skescore.scorers import (
    SCORE_SPECS,
    SCORERS,
    ScoreSpec,
    Variable,
    Weight,
    get_rule_scorer,
    make_knowledge_scorer,
    make_rule_scorer,
    make_score_scorer,
    make_survival_scorer,
    register_score,
)
from skescore.selection import prune, selection_effect
from skescore.tuning import ExtractorSearchCV

TERSE = ScoreSpec(
    "terse",
    (Variable("p") + Variable("tau") * Variable("r").log2()) / Variable("c"),
    greater_is_better=False,
    prediction="loss",
    label="Terse",
    metrics={"classification": "balanced_accuracy", "regression": "mean_squared_error"},
    weights=(Weight("tau", "price of doubling the rules", "τ", default=0.1, direction=-1),),
)

X, Y = load_iris(return_X_y=True)
BLACK_BOX = KNeighborsClassifier(9)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(SCORE_SPECS), dict(SCORERS)
    register_score(TERSE)
    yield
    for table, content in zip((SCORE_SPECS, SCORERS), before, strict=True):
        table.clear()
        table.update(content)


def by_hand(model: Any, X: Any, y: Any, tau: float = 0.1) -> float:
    covered = model.covers(X)
    loss = 1 - balanced_accuracy_score(y[covered], model.predict(X)[covered])
    return -(loss + tau * np.log2(len(model.rules_))) / float(volume_completeness(model.rules_))


# --- scorers -------------------------------------------------------------------------------------


def test_registered_score_has_scorers_and_weights() -> None:
    model = CARTExtractor(BLACK_BOX, max_leaf_nodes=4, random_state=0).fit(X, Y)
    scorer = get_rule_scorer("terse")
    assert scorer is get_rule_scorer("neg_terse") is SCORERS["neg_terse"]
    assert scorer(model, X, Y) == pytest.approx(by_hand(model, X, Y))
    assert make_score_scorer("terse", tau=2.0)(model, X, Y) == pytest.approx(
        by_hand(model, X, Y, 2.0)
    )
    expected = make_knowledge_scorer(tau=2.0)(model, X, Y)
    assert expected["neg_terse"] == pytest.approx(by_hand(model, X, Y, 2.0))
    assert expected["loss_terse"] == pytest.approx(-by_hand(model, X, Y, 0.0))
    assert get_rule_scorer("knowledge")(model, X, Y).keys() == expected.keys()


def test_registered_score_selects_parameters_in_grid_search() -> None:
    search = GridSearchCV(
        CARTExtractor(BLACK_BOX, random_state=0), {"max_leaf_nodes": [3, 6]}, scoring="accuracy"
    ).set_params(scoring=get_rule_scorer("terse"))
    search.fit(X, Y)
    assert search.best_params_ == {"max_leaf_nodes": 3}
    assert search.score(X, Y) == pytest.approx(by_hand(search.best_estimator_, X, Y))


# --- searches ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_registered_score_guides_extractor_search(n_jobs: int | None) -> None:
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=("cart", "gridex"),
        scoring="terse",
        n_trials=8,
        cv=3,
        pruner="bound",
        random_state=0,
        n_jobs=n_jobs,
    ).fit(X, Y)
    board = search.leaderboard_
    assert {"loss_terse", "loss", "loss_q", "performance"} <= set(board)
    best = board[board["state"] == "complete"].iloc[0]
    scores = search.candidates_.scores("terse", tau=0.1).mean(axis=1)
    assert scores.min() <= -best["score"] <= scores.max()
    assert search.score(X, Y) == pytest.approx(by_hand(search.best_extractor_, X, Y))
    # A large tau favors few rules; a small tau favors few errors.
    heavy, light = search.best_for(tau=100.0), search.best_for("terse", tau=1e-9)
    assert heavy["n_rules"] <= light["n_rules"]
    assert light["loss_terse"] <= heavy["loss_terse"]
    assert search.best_for(psi=1)["extractor"] in ("cart", "gridex")


def test_extractor_search_accepts_unregistered_score() -> None:
    spec = ScoreSpec(
        "own",
        lambda performance, size: performance - 0.01 * size,
        greater_is_better=True,
        prediction="performance",
        uses_completeness=False,
        metrics={"classification": "f1_macro", "regression": "r2"},
    )
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=("cart",),
        scoring={"mine": make_score_scorer(spec)},
        n_trials=3,
        measures={"lift": make_rule_scorer("lift"), "half": lambda model, X, y: 0.5},
        cv=3,
        pruner=None,
        random_state=0,
    ).fit(X, Y)
    assert (search.leaderboard_["half"] == 0.5).all()
    # A rule that covers no held-out row has no lift.
    assert search.leaderboard_["lift"].notna().any()
    folds = search.candidates_[0].folds
    assert [f["score"] for f in folds] == pytest.approx(
        [f["performance_own"] - 0.01 * f["size"] for f in folds]
    )


# --- pruning -------------------------------------------------------------------------------------


def test_pruning_by_score_equals_scoring_every_step() -> None:
    black_box = KNeighborsClassifier(1).fit(X, Y)
    rules = CARTExtractor(black_box, max_leaf_nodes=9, max_depth=6, random_state=0).fit(X, Y).rules_
    y = black_box.predict(X)
    scorer = make_score_scorer("terse", tau=0.01)
    fewer = prune(rules, X, y, scorer)
    assert len(fewer) < len(rules)
    assert scorer(fewer, X, y) > scorer(rules, X, y)
    slow = prune(rules, X, y, lambda ruleset, X, y: scorer(ruleset, X, y))
    assert str(fewer) == str(slow)
    effect = selection_effect(rules, fewer, X, y, tau=0.01)
    assert effect.loc["terse", "after"] == pytest.approx(-scorer(fewer, X, y))


# --- benchmarks, the command line and the page ---------------------------------------------------


def embedded(page: Path) -> dict[str, Any]:
    """Return the content that the scripts of the page read."""
    text = page.read_text(encoding="utf-8").split('id="content">')[1].split("</script>")[0]
    content: dict[str, Any] = json.loads(text)
    return content


def assert_computed_by_page(page: Path) -> None:
    """Check that the page offers the score with its weights and formula."""
    assert '<input type="radio" name="score" value="terse"> Terse' in page.read_text("utf-8")
    content = embedded(page)
    spec = content["scores"]["terse"]
    assert (spec["label"], spec["greater"], spec["weights"]) == ("Terse", False, ["tau"])
    assert (spec["formula"], spec["text"]) == (
        ["/", ["+", "p", ["*", "tau", ["log2", "r"]]], "c"],
        "(p + τ · log₂(r)) / c",
    )
    assert all(c["folds"][spec["kept_as"]] for c in content["groups"][0]["candidates"])


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_registered_score_is_column_of_benches_and_pages(
    tmp_path: Path, n_jobs: int | None
) -> None:
    config = config_from(
        {
            "data": ["iris"],
            "black_boxes": ["knn"],
            "folds": 2,
            "extractors": [
                "cart",
                {
                    "name": "search",
                    "extractors": ["cart"],
                    "trials": 2,
                    "cv": 2,
                    "scoring": "terse",
                },
            ],
        }
    )
    measures = {"lift": make_rule_scorer("lift")}
    rows = run_bench(config, tmp_path, measures=measures, n_jobs=n_jobs).rows
    assert (rows["state"] == "complete").all(), rows["error"].tolist()
    expected = [
        (row.loss_terse + 0.1 * np.log2(row.size)) / row.completeness_volume
        for row in rows.itertuples()
    ]
    assert rows["terse"].tolist() == pytest.approx(expected)
    assert (rows["lift"] > 1).all()
    assert read_rows(tmp_path / "rows.csv").equals(rows)
    assert summarize(rows)["terse_mean"].notna().all()
    assert summarize(rows)["lift_mean"].notna().all()
    assert rank_extractors(rows, "terse")[0].score == "terse"
    assert rank_extractors(rows, "lift")[0].score == "lift"
    assert_computed_by_page(write_report(tmp_path))


@pytest.mark.slow
def test_command_line_accepts_registered_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, tune = tmp_path / "bench", tmp_path / "tune"
    options = ["--black-boxes", "knn", "--extractors", "cart", "--folds", "2", "--quiet"]
    messages = ["bench", "--data", "iris", *options, "--rank-by", "terse", "--output", str(bench)]
    assert main(messages) == 0
    out = capsys.readouterr().out
    assert "FiRe and Q and Terse: smaller is better" in " ".join(out.split())
    assert "terse" in read_rows(bench / "rows.csv")
    messages = [
        "tune",
        "iris",
        "--black-box",
        "knn",
        "--extractors",
        "cart",
        "--trials",
        "4",
        "--cv",
        "3",
        "--scoring",
        "terse",
        "--tau",
        "0.5",
        "--quiet",
        "--output",
        str(tune),
    ]
    assert main(messages) == 0
    assert "Terse" in capsys.readouterr().out
    run = json.loads((tune / "run.json").read_text(encoding="utf-8"))
    assert (run["search"]["scoring"], run["search"]["weights"]["tau"]) == ("neg_terse", 0.5)
    page = write_report(tune)
    assert embedded(page)["start"]["score"] == "terse"
    assert_computed_by_page(page)
    assert main(["score", str(tune / "rules.json"), "iris", "--tau", "2"]) == 0
    assert "smaller is better (tau 2)" in capsys.readouterr().out


@pytest.mark.slow
def test_score_table_entry_appears_everywhere() -> None:
    """An entry added before any other import appears wherever scores are named."""
    program = """
from skescore._scores import SCORE_SPECS, ScoreSpec, Variable, Weight
SCORE_SPECS["brief"] = ScoreSpec(
    "brief", Variable("p") + Variable("beta") * Variable("r"), greater_is_better=False,
    prediction="loss", label="Brief", weights=(Weight("beta", "price of a rule"),),
    metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
)
import contextlib, io
from skescore.cli import main
for words in (["tune", "--help"], ["certify", "--help"]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(words)
    assert "brief" in out.getvalue()
    assert words[0] == "certify" or "--beta" in out.getvalue()
from skescore.bench import row_columns
from skescore.report._candidates_file import kept_names
from skescore.scorers import SCORERS, make_survival_scorer
assert "neg_brief" in SCORERS
assert repr(make_survival_scorer("brief", beta=2.0)) == "make_survival_scorer('brief', beta=2.0)"
assert {"brief", "loss_brief"} <= set(row_columns())
assert "loss_brief" in kept_names()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_survival_scores_include_registered_score() -> None:
    pytest.importorskip("sksurv")
    from sksurv.util import Surv

    random = np.random.default_rng(0)
    rows = random.uniform(size=(120, 2))
    outcomes = Surv.from_arrays(random.random(120) < 0.8, random.exponential(1 + 3 * rows[:, 0]))
    tree = CARTExtractor(BLACK_BOX, max_leaf_nodes=3, random_state=0).fit(rows, rows[:, 0] > 0.5)
    rules = SurvivalRules.fit(tree.rules_, rows, outcomes)
    scores = survival_scores(rules, rows, outcomes, tau=0.5)
    expected = (scores["brier"] + 0.5 * np.log2(scores["n_rules"])) / scores["completeness"]
    assert scores["terse"] == pytest.approx(expected)
    assert make_survival_scorer("terse", tau=0.5)(rules, rows, outcomes) == -scores["terse"]


# --- invalid declarations ------------------------------------------------------------------------


def test_score_spec_best_equals_score_of_perfect_rules() -> None:
    specs = [SCORE_SPECS[name] for name in ("fire", "q", "ice", "terse")]
    best = [spec.best({weight.name: weight.default for weight in spec.weights}) for spec in specs]
    assert best == [0.0, 0.0, pytest.approx(1 / (1 + np.exp(-5)) / (1 + np.exp(0.3 - 5))), 0.0]
    # Custom sizes may be below 1, but not below the smallest size of the score.
    large = replace(TERSE, least_size=4.0)
    assert large.best({"tau": 0.1}, any_size=True) == pytest.approx(0.2)
    assert [spec.label for spec in (TERSE, replace(TERSE, label=""))] == ["Terse", "terse"]
    assert [spec.sign for spec in specs] == [-1.0, -1.0, 1.0, -1.0]


def test_register_score_twice_changes_nothing() -> None:
    scorer = SCORERS["neg_terse"]
    register_score(TERSE)
    assert SCORERS["neg_terse"] is scorer


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "fire"}, "The name 'fire' is taken"),
        ({"name": "accuracy"}, "The name 'accuracy' is taken"),
        ({"name": "other", "kept_as": "loss"}, "The name 'loss' is taken"),
        ({"name": "other", "prediction": "gain"}, "prediction must be one of loss, performance"),
        ({"name": "other", "uncovered": "skip"}, "uncovered must be one of ignore, penalize"),
        ({"name": "other", "metrics": {"classification": "r2"}}, r"metrics\['classification'\]"),
        (
            {"name": "other", "formula": lambda p, r, c, tau: np.nan},
            "finite number for perfect rules",
        ),
        ({"name": "other", "formula": Variable("p") / (Variable("c") - 1.0)}, "perfect rules"),
        ({"name": "other", "formula": Variable("p") * Variable("sigma")}, "got 'sigma'"),
    ],
)
def test_score_spec_rejects_invalid_declarations(changes: dict[str, Any], message: str) -> None:
    declaration = {
        "name": TERSE.name,
        "formula": TERSE.formula,
        "greater_is_better": False,
        "prediction": "loss",
        "metrics": TERSE.metrics,
        "weights": TERSE.weights,
    }
    with pytest.raises(ValueError, match=message):
        register_score(ScoreSpec(**declaration | changes))
    with pytest.raises(TypeError, match=r"Terse has no weight 'psi'. Known: tau"):
        make_score_scorer("terse", psi=1.0)
