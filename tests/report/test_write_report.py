"""The report is one file without other files, and no text in it becomes code."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shlex
import shutil
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from optuna.distributions import IntDistribution
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.bench import config_from, make_plan
from skescore.certificates import certify
from skescore.cli import main
from skescore.datasets import Dataset, load_dataset
from skescore.metrics import redundancy, rule_report
from skescore.optimal import SearchSpace, SolverLimits
from skescore.report import candidates_json, rule_view, write_report
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
from skescore.scorers import SCORE_SPECS
from skescore.tuning import ExtractorSearchCV, pareto_front
from skescore.verification import VerificationLimits, verify


def content_of(path) -> dict:
    """Return the data that the script of the page reads."""
    search = re.search(
        r'<script type="application/json" id="content">(.*?)</script>',
        path.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    return json.loads(search[1])


@pytest.fixture(scope="module")
def search():
    """Return a real, small search."""
    iris = load_dataset("iris")
    return ExtractorSearchCV(
        KNeighborsClassifier(9),
        extractors=("cart",),
        n_trials=8,
        cv=3,
        random_state=3,
        spaces={"cart": {"max_leaf_nodes": IntDistribution(2, 9)}},
    ).fit(iris.X, iris.y)


@pytest.fixture
def folder(search, tmp_path, runs):
    """Return the folder of the search."""
    runs.write_run(tmp_path, rules=search.rules_)
    first = search.leaderboard_.iloc[0]
    text = candidates_json(
        search.candidates_,
        winner=(first["extractor"], int(first["trial"])),
        standard_errors=1.0,
        extractor_seed=search.extractor_seed_,
    )
    (tmp_path / "candidates.json").write_text(text)
    return tmp_path


def test_report_page_needs_no_other_files(runs, tmp_path) -> None:
    path = write_report(runs.write_run(tmp_path))
    assert path == tmp_path / "report.html"
    text = path.read_text(encoding="utf-8")
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href|action)="([^"]*)"', markup) == ["data:,", "#main"]
    assert "@import" not in markup
    assert "url(" not in markup
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    # Only the scripts of this page may run.
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


@pytest.mark.slow
def test_report_of_500_candidates_is_below_2_megabytes(runs, tmp_path) -> None:
    path = write_report(runs.write_run(tmp_path, runs.random_candidates(500)))
    assert len(content_of(path)["groups"][0]["candidates"]) == 500
    assert path.stat().st_size < 2_000_000


def test_report_escapes_names_everywhere(runs, tmp_path) -> None:
    nasty = "</script><script>alert(1)</script><!-- \" ' & \u2028"
    path = write_report(
        runs.write_run(tmp_path, about={"name": nasty, "target": nasty, "source": nasty})
    )
    text = path.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "\u2028" not in re.search(r'id="content">(.*?)</script>', text, re.DOTALL)[1]
    assert content_of(path)["groups"][0]["name"] == nasty


def test_report_rebuilds_rules_of_the_front_like_the_search(search, folder) -> None:
    iris = load_dataset("iris")
    path = write_report(folder, data=iris, black_box=KNeighborsClassifier(9))
    content = content_of(path)
    assert content["notes"] == []
    by_search = pareto_front(search.candidates_, ("loss", "size", "incompleteness"))
    assert len(by_search) > 1
    names = list(zip(by_search["extractor"], by_search["trial"], strict=True))
    positions = {(c.extractor, c.trial): i for i, c in enumerate(search.candidates_)}
    winner = content["groups"][0]["winner"]
    assert set(content["views"]) == {str(positions[name]) for name in names} | {str(winner)}
    for index, view in content["views"].items():
        candidate = search.candidates_[int(index)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two rules for three classes
            expected = search.make_candidate(candidate).fit(iris.X, iris.y).rules_
        assert RuleSet.from_json(json.dumps(view["set"])) == expected
        assert [export["text"] for export in view["exports"]] == [
            expected.to_sql(),
            expected.to_python(),
            expected.to_prolog(),
        ]
    assert RuleSet.from_json(json.dumps(content["views"][str(winner)]["set"])) == search.rules_


def test_report_detects_another_black_box(folder) -> None:
    fitted = FrozenEstimator(
        DecisionTreeClassifier(max_depth=1).fit(*(lambda d: (d.X, d.y))(load_dataset("iris")))
    )
    content = content_of(write_report(folder, data=load_dataset("iris"), black_box=fitted))
    assert len(content["views"]) == 1
    assert "differ from the rules of the run" in " ".join(content["notes"])


def test_report_states_time_limit(folder) -> None:
    iris = load_dataset("iris")
    content = content_of(
        write_report(folder, data=iris, black_box=KNeighborsClassifier(9), time_limit=0)
    )
    assert len(content["views"]) == 1
    assert "longer than the limit of 0 s" in " ".join(content["notes"])
    with pytest.raises(ValueError, match="time_limit must be 0 seconds or more, got -1"):
        write_report(folder, time_limit=-1)


def test_report_counts_measures_of_rules_on_rows(runs, tmp_path) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    content = content_of(write_report(runs.write_run(tmp_path)))
    assert "its model" in content["notes"][0]
    view = content["views"]["0"]
    report = rule_report(rules, iris.X, iris.y, assigned=True)
    for name in ("p", "n", "precision", "coverage", "c2", "fdr_p_value"):
        np.testing.assert_allclose(view["report"][name], report[name].to_numpy(), rtol=1e-12)
    both = rule_report(rules, iris.X, iris.y)
    np.testing.assert_allclose(view["report"]["overlap"], both["overlap"].to_numpy(), rtol=1e-12)
    assert view["report"]["unique_rows"] == both["unique_rows"].tolist()
    assert view["uncovered"] == int((~rules.covers(iris.X)).sum())
    rows = content["rows"]
    assert rows["total"] == 150
    assert rows["features"] == [2, 3]
    for at, name in enumerate(iris.X.columns[2:]):
        assert rows["columns"][at] == iris.X[name].iloc[[n - 1 for n in rows["numbers"]]].tolist()


def test_report_does_not_use_changed_data(runs, tmp_path) -> None:
    run = runs.write_run(tmp_path, about={"checksum_sha256": "0" * 64})
    content = content_of(write_report(run))
    assert content["rows"] is None
    assert "report" not in content["views"]["0"]
    assert "has changed since the run" in content["notes"][0]
    content = content_of(write_report(run, data=load_dataset("iris")))
    assert content["rows"]["total"] == 150
    assert "not from the data of the search" in content["notes"][0]


def test_report_states_missing_data_file(runs, tmp_path) -> None:
    about = {"name": "mine", "source": str(tmp_path / "gone.csv")}
    content = content_of(write_report(runs.write_run(tmp_path / "run", about=about)))
    assert "cannot be read again" in content["notes"][0]
    assert "pass --data" in content["notes"][0]


def test_report_rejects_folders_without_a_run(runs, tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_report(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is not the folder of a run"):
        write_report(tmp_path)
    run = runs.write_run(tmp_path / "run")
    with pytest.raises(ValueError, match="cannot be written"):
        write_report(run, path=tmp_path / "no" / "page.html")
    (run / "rules.json").write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        write_report(run)
    (run / "rules.json").write_text(runs.iris_rules().to_json())
    (run / "run.json").write_text("[")
    with pytest.raises(ValueError, match="is damaged"):
        write_report(run)
    (run / "run.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*run\.json"):
        write_report(run)
    (run / "run.json").write_text("{}")
    (run / "candidates.json").unlink()
    with pytest.raises(ValueError, match="a run of an earlier version"):
        write_report(run)


def test_report_names_missing_package_with_its_extra(runs, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install .*jinja2"):
        write_report(runs.write_run(tmp_path))


@pytest.mark.slow
def test_search_report_works_with_and_without_rows(search, folder, tmp_path) -> None:
    iris = load_dataset("iris")
    page = search.report(tmp_path / "search.html", title="Irises & more")
    content = content_of(page)
    assert "<h1>Irises &amp; more</h1>" in page.read_text(encoding="utf-8")
    assert content["notes"] == []
    # As from the folder of the command line.
    same = content_of(write_report(folder, data=iris, black_box=KNeighborsClassifier(9)))
    assert content["views"] == same["views"]
    assert content["groups"][0]["candidates"] == same["groups"][0]["candidates"]
    assert content["groups"][0]["winner"] == same["groups"][0]["winner"]
    assert content["rows"] == same["rows"]
    assert content["groups"][0]["quality"] == search.black_box_quality_
    black_box = FrozenEstimator(KNeighborsClassifier(9).fit(iris.X, iris.y))
    without_target = ExtractorSearchCV(
        black_box, extractors=["cart"], n_trials=3, cv=2, random_state=0
    ).fit(iris.X)
    alone = content_of(write_report(without_target, path=tmp_path / "alone.html"))
    (group,) = alone["groups"]
    assert set(alone["views"]) == {str(one["place"]) for one in group["alternatives"]}
    view = alone["views"][str(group["winner"])]
    assert RuleSet.from_json(json.dumps(view["set"])) == without_target.rules_
    assert "a target" in alone["notes"][0]
    with pytest.raises(ValueError, match="given together"):
        write_report(search.rules_, iris.X)


@pytest.mark.slow
def test_report_shows_the_score_of_the_search(tmp_path) -> None:
    iris = load_dataset("iris")
    search = ExtractorSearchCV(
        KNeighborsClassifier(9),
        extractors=("cart",),
        n_trials=5,
        cv=2,
        random_state=0,
        scoring="balanced_accuracy",
    ).fit(iris.X, iris.y)
    content = content_of(write_report(search, path=tmp_path / "page.html"))
    assert content["start"]["score"] == "balanced_accuracy"
    assert content["scores"]["balanced_accuracy"]["label"] == "balanced accuracy"
    assert content["scores"]["balanced_accuracy"]["greater"]
    scores = [one["folds"]["balanced_accuracy"] for one in content["groups"][0]["candidates"]]
    retained = [[fold["score"] for fold in one.folds] for one in search.candidates_]
    np.testing.assert_array_equal(scores, retained)


def test_report_of_rules_counts_rows(runs, tmp_path) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    content = content_of(write_report(rules, iris.X, iris.y, path=tmp_path / "rules.html"))
    assert content["kind"] == "rules"
    quality = content["views"]["-1"]["quality"]
    predicted = rules.predict(iris.X)
    assert quality["right"] == (predicted == iris.y).sum()
    assert quality["always"] == {"text": "setosa", "right": 50}
    for one in quality["classes"]:
        assert one["rows"] == (iris.y == one["name"]).sum()
        assert one["said"] == (predicted == one["name"]).sum()
        assert one["right"] == ((predicted == iris.y) & (iris.y == one["name"])).sum()
    alone = content_of(write_report(rules, path=tmp_path / "alone.html"))
    assert "cannot show the quality of the rules" in alone["notes"][0]
    with pytest.raises(ValueError, match="belong to rules"):
        write_report(runs.write_run(tmp_path / "run"), iris.X, iris.y)


@pytest.mark.slow
def test_report_shows_a_certificate_with_its_corridor(runs, tmp_path) -> None:
    iris = load_dataset("iris")
    rules = runs.iris_rules()
    certificate = certify(
        rules, iris.X, iris.y, space=SearchSpace(3, cuts=2), limits=SolverLimits(time_limit=None)
    )
    page = write_report(
        rules,
        iris.X,
        iris.y,
        path=tmp_path / "rules.html",
        certificate=certificate.with_score("fire"),
    )
    for sentence in certificate.with_score("fire").to_text().split("\n"):
        assert f"<p>{html.escape(sentence)}</p>" in page.read_text(encoding="utf-8")
    certificate_data = content_of(page)["certificate"]
    assert certificate_data["score"] == "fire"
    for name, proven in certificate_data["scores"].items():
        one = certificate.with_score(name)
        value = SCORE_SPECS[name].value
        for kind, result in zip(one.kinds, proven["kinds"], strict=True):
            scores = [
                [value(p, size, 1.0, one.settings["weights"]) for p in bounds]
                for size, bounds in enumerate(result, start=1)
            ]
            assert scores == [list(bounds) for bounds in one.corridor(kind)]
        share = certificate_data["given"]["completeness_volume"]
        own = value(
            proven["given"], certificate_data["given"]["n_rules"], share, one.settings["weights"]
        )
        assert own == one.given_score()
    assert set(certificate_data["scores"]) == {"ice", "fire", "q"}

    folder = runs.write_run(tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    (folder / "certificate.json").write_text(certificate.to_json())
    assert content_of(write_report(folder))["certificate"] is None  # an older one, not of this run
    (folder / "run.json").write_text(json.dumps(run | {"certificate": ["Other rules."]}))
    content = content_of(write_report(folder))
    assert content["certificate"] is None
    assert (
        "certificate.json is not the certificate of this run, so it is not shown."
        in content["notes"]
    )
    certificate_data = {"certificate": certificate.to_text().split("\n")}
    (folder / "run.json").write_text(json.dumps(run | certificate_data))
    assert content_of(write_report(folder))["certificate"]["score"] == "ice"
    (folder / "certificate.json").write_text("{}")
    assert "cannot be read" in content_of(write_report(folder))["notes"][0]
    with pytest.raises(ValueError, match="the folder of a run has its own"):
        write_report(folder, certificate=certificate)


def test_report_of_two_runs_states_agreement(runs, tmp_path) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    one, two = runs.write_run(tmp_path / "a"), runs.write_run(tmp_path / "b", rules=rules[:1])
    path = write_report([one, two])
    assert path == one / "comparison.html"
    page, content = path.read_text(encoding="utf-8"), content_of(path)
    assert content["names"] == ["a", "b"]
    same = (rules.predict(iris.X) == rules[:1].predict(iris.X)).sum()
    assert f"Both make the same prediction for {same} of 150 rows." in page
    assert [len(run["views"]["0"]["rules"]) for run in content["runs"]] == [3, 1]
    pd.DataFrame(bench_rows()).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="a bench does not contain"):
        write_report([one, tmp_path])
    with pytest.raises(ValueError, match="one run or two, got 3"):
        write_report([one, two, one])


def test_rule_view_finds_the_worst_segments() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": random.uniform(0, 4, 400),
            "b": random.choice(["x", "y"], 400),
            "c": random.normal(size=400),
        }
    )
    # Wrong half the time in the last quarter of a, and nowhere else.
    last = X["a"] > X["a"].quantile(0.75)
    wrong = last & (np.arange(400) % 2 == 0)
    y = pd.Series(np.where(X["b"] == "x", "in", "out"), name="kind")
    y = y.where(~wrong, np.where(y == "in", "out", "in"))
    rules = RuleSet(
        [Rule([OneOf(1, ["x"])], "in"), Rule([OneOf(1, ["y"])], "out")],
        list(X),
        task="classification",
        fallback=Fallback("in"),
        ordered=False,
    )
    data = Dataset(X, y, "classification", "made", "made", "")
    quality = rule_view(rules, data)["quality"]
    worst = quality["segments"][0]
    assert re.fullmatch(r"a is above [\d.]+", worst["text"])
    bound = float(worst["text"].split()[-1])
    inside = X["a"] > bound
    assert worst["rows"] == inside.sum() == 100
    assert worst["error"] == pytest.approx(wrong[inside].mean())
    assert quality["right"] == 400 - wrong.sum()
    assert len(quality["segments"]) == 1
    # Without errors there is no worst part.
    right = Dataset(
        X, y.where(~wrong, np.where(y == "in", "out", "in")), "classification", "", "", ""
    )
    assert rule_view(rules, right)["quality"]["segments"] == []


def test_rules_without_fallback_count_covered_rows() -> None:
    X = pd.DataFrame({"a": np.arange(40.0)})
    y = pd.Series(np.where(X["a"] < 20, 1.0, 5.0), name="y")
    rules = RuleSet([Rule([Interval(0, upper=19)], 2.0)], ["a"], task="regression")
    quality = rule_view(rules, Dataset(X, y, "regression", "", "", ""))["quality"]
    assert quality["silent"] == 20
    assert quality["error"] == 1.0
    assert quality["always"]["error"] == pytest.approx(2.0)
    labels = y.map({1.0: "few", 5.0: "many"})
    words = RuleSet(
        [Rule([Interval(0, upper=19)], "few")],
        ["a"],
        task="classification",
        classes=["few", "many"],
        fallback=Fallback("few", "abstain"),
    )
    quality = rule_view(words, Dataset(X, labels, "classification", "", "", ""))["quality"]
    assert (quality["silent"], quality["right"]) == (20, 20)
    assert [one["said"] for one in quality["classes"]] == [20, 0]


def test_report_shows_measures_beyond_scores() -> None:
    X = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5]})
    y = pd.Series(["low", "high", "high", "low"], name="y")
    low, high = Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, 1, 3)], "high")
    rules = RuleSet([low, high], ["a"], task="classification", fallback=Fallback("low"))
    data = Dataset(X, y, "classification", "", "", "")
    messages = {one["text"]: one["value"] for one in rule_view(rules, data)["quality"]["left_out"]}
    result = redundancy(rules, X)
    assert list(messages.values()) == [
        1.5,
        2,
        0.25,
        0.25,
        0.25,
        result.share_of_rules,
        result.share_of_literals,
    ]
    votes = rules.replace(ordered=False, voting="votes")
    assert len(rule_view(votes, data)["quality"]["left_out"]) == 5
    always = rules.replace(rules=[Rule([], "low")], classes=["high", "low"])
    assert len(rule_view(always, data)["quality"]["left_out"]) == 6


def bench_rows() -> pd.DataFrame:
    """Return two data sets, one black box, one extractor with two settings and one failure."""
    return pd.DataFrame(
        [
            {
                "data": data,
                "task": "regression",
                "black_box": "knn",
                "extractor": "cart",
                "params": params,
                "seed": seed,
                "fold": 0,
                "state": "complete",
                "error": None,
                "performance": 0.5 + seed / 10,
                "loss": 2.0 + seed,
                "loss_q": 2.0,
                "n_rules": 3,
                "size": 3,
                "completeness_volume": 1.0,
                "completeness_instances": 1.0,
                "black_box_quality": 0.8,
                "seconds": 0.5,
                "fidelity": 0.7,
            }
            for data in ("a", "b")
            for params in ('{"max_leaf_nodes": 3}', '{"max_leaf_nodes": 5}')
            for seed in (0, 1)
        ]
    )


def test_report_of_a_bench_has_groups_of_candidates(tmp_path) -> None:
    rows = bench_rows()
    rows.loc[3, ["state", "error", "loss"]] = ["failed", "no rules", np.nan]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    groups = content_of(write_report(tmp_path))["groups"]
    assert [group["name"] for group in groups] == ["a · knn", "b · knn"]
    first, second = groups[0]["candidates"]
    assert (first["params"], first["folds"]["loss"]) == ({"max_leaf_nodes": 3}, [2.0, 3.0])
    assert (second["folds"]["loss"], second["missing"]) == ([2.0], 1)
    assert groups[0]["failures"] == [{"extractor": "CART", "count": 1, "error": "no rules"}]
    assert groups[1]["failures"] == []
    assert groups[0]["quality"]["performance"] == pytest.approx(0.8)
    assert groups[0]["task"] == "regression"


def test_report_of_a_bench_omits_combinations_that_were_not_requested(tmp_path) -> None:
    extractors = [{"name": name, "data": ["iris", "diabetes"]} for name in ("cart", "gridrex")]
    config = {"data": ["iris", "wine", "diabetes"], "black_boxes": ["knn"]}
    plan = make_plan(config_from(config | {"extractors": extractors}))
    left_out = [
        {"data": data, "extractor": extractor, "why": why}
        for (data, extractor), why in plan.not_applicable.items()
    ]
    assert len(left_out) == 3
    bench_rows().to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "run.json").write_text(json.dumps({"not_applicable": left_out}))
    notes = [note for note in content_of(write_report(tmp_path))["notes"] if "left out" in note]
    assert notes == ["gridrex is left out on iris: it is for regression only."]


def test_report_rejects_an_empty_or_foreign_bench(tmp_path) -> None:
    bench_rows().iloc[:0].to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="without any rows"):
        write_report(tmp_path)
    bench_rows().drop(columns="loss").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="lack the columns loss"):
        write_report(tmp_path)


def test_report_of_a_bench_shows_given_ranks(tmp_path) -> None:
    bench_rows().to_csv(tmp_path / "rows.csv", index=False)
    assert "Ranks over the data sets" not in write_report(tmp_path).read_text(encoding="utf-8")
    ranking = {
        "task": "regression",
        "score_name": "FiRe",
        "verdict": "<b> is best.",
        "caveat": "",
        "extractors": [
            {"extractor": "<b>", "rank": 1.25, "wins": 2},
            {"extractor": "cart", "rank": 1.75, "wins": 1},
        ],
        "ranks": {"a": {"<b>": 1.0, "cart": 2.0}, "values": {"<b>": 1.5, "cart": 1.5}},
        "left_out": ["iter"],
    }
    page = write_report(tmp_path, rankings=[ranking]).read_text(encoding="utf-8")
    section = page[page.index('id="ranks"') : page.index('id="trade-off"')]
    section = html.unescape(re.sub(r"</?(td|th|tr|table|thead|tbody)[^>]*>", " ", section))
    assert "regression: by FiRe over 2 data" in section
    assert "<b>" not in page.replace("&lt;b&gt;", "")[page.index('id="ranks"') :][:3000]
    rows = [" ".join(line.split()) for line in section.splitlines()]
    text = " ".join(rows)
    assert "<b> 1.25 2 1 1.5" in text
    assert "CART 1.75 1 2 1.5" in text
    assert "<b> is best. Without ITER, not measured on all" in text


def test_report_of_a_bench_shows_rules_and_rank_plots(tmp_path) -> None:
    rows = bench_rows().iloc[[0, 1]].assign(ice=[0.25, 0.75], extractor=["cart", "<mine>"])
    rows.loc[len(rows)] = {**rows.iloc[0], "seed": 5, "state": "failed", "error": "too slow"}
    rows.to_csv(tmp_path / "rows.csv", index=False)
    cell = {"data": "a", "black_box": "knn", "extractor": "<mine>", "seed": 1, "fold": 0}
    text = json.dumps(cell | {"features": [], "conditions": 0, "text": "1. ALWAYS <3"})
    (tmp_path / "rules.jsonl").write_text(f'{{"file": "rules of a bench"}}\n{text}\n{{"torn')
    ranking = {
        "task": "regression",
        "score_name": "ICE",
        "verdict": "",
        "caveat": "",
        "left_out": [],
        "extractors": [],
        "ranks": {},
        "diagram": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    }
    page = write_report(tmp_path, rankings=[ranking]).read_text(encoding="utf-8")
    assert f"base64,{base64.b64encode(ranking['diagram'].encode()).decode()}" in page
    section = page[page.index('id="kept-rules"') : page.index('class="hero"')]
    assert "a, knn: 3 rows" in section
    best, second, failed = re.findall(r"<details>\s*<summary>([^<]*)</summary>", section)
    assert " ".join(html.unescape(best).split()) == "<mine>: 3 rules, ICE 0.750, fidelity 0.700"
    assert second.startswith("CART: 3 rules, ICE 0.250")
    assert failed.strip() == "CART: failed"
    assert "1. ALWAYS &lt;3</pre>" in section
    assert "too slow</pre>" in section
    assert "saved the measurements, but not the rules" not in page
    assert "kept_rules" not in page


@pytest.mark.parametrize("label", ["NA", "-none", "it\u2028 is", "\x85"])
def test_report_of_a_bench_shows_any_label_with_its_rules(label, tmp_path) -> None:
    rows = bench_rows().iloc[[0, 4]].assign(extractor=label, ice=0.5)
    rows.assign(extractor=f"'{label}" if label[0] == "-" else label).to_csv(
        tmp_path / "rows.csv", index=False
    )
    cells = ["data", "black_box", "extractor", "seed", "fold"]
    lines = [{"file": "rules of a bench"}] + [
        {**{name: row[name] for name in cells}, "text": "1. ALWAYS 5"}
        for row in rows.to_dict(orient="records")
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (tmp_path / "rules.jsonl").write_text(text, encoding="utf-8")
    page = write_report(tmp_path).read_text(encoding="utf-8")
    section = page[page.index('id="kept-rules"') : page.index('class="hero"')]
    assert section.count("1. ALWAYS 5</pre>") == 2
    (tmp_path / "rules.jsonl").write_text(f"{text}[]\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"rules\.jsonl, line 4, cannot be read as the rules of a"):
        write_report(tmp_path)


def test_report_command_can_be_pasted(runs, tmp_path) -> None:
    folder = runs.write_run(tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    run["run"]["command_line"] = ["skescore", "tune", "my data.csv", "--target", "it's"]
    (folder / "run.json").write_text(json.dumps(run))
    page = html.unescape(write_report(folder).read_text(encoding="utf-8"))
    command = re.search(r"<dt>Command</dt><dd><code>(.*?)</code>", page)[1]
    assert shlex.split(command) == run["run"]["command_line"]


@pytest.mark.parametrize(
    "weights", ["balanced", {"setosa": 6.0, "versicolor": 1.0, "virginica": 3.0}]
)
def test_page_compares_by_class_weights(weights, tmp_path):
    iris = load_dataset("iris")
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    search = ExtractorSearchCV(
        tree, extractors=["cart"], n_trials=3, cv=2, class_weight=weights, random_state=0
    ).fit(iris.X, iris.y)
    page = write_report(search, path=tmp_path / "page.html")
    content = content_of(page)
    share = {"balanced": 1 / 3}.get(str(weights), 0.6)  # of setosa: 50 of 150 rows, 6 of 10 parts
    assert content["groups"][0]["always"]["share"] == pytest.approx(share)
    text = page.read_text(encoding="utf-8")
    assert "differ from the rules of the run" not in text
    phrase = (
        "all classes have the same weight"
        if weights == "balanced"
        else "classes have the given weights"
    )
    assert f"; {phrase}, on held-out rows" in text


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_page_compares_by_sample_weights(task, tmp_path):
    X = np.arange(60.0)[:, None]
    y = np.where(np.arange(60) < 20, "no", "yes") if task == "classification" else X[:, 0] ** 2
    weights = np.where(np.arange(60) < 20, 4.0, 1.0)
    tree = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    search = ExtractorSearchCV(
        tree(max_depth=4, random_state=0), extractors=["cart"], n_trials=3, cv=2, random_state=0
    ).fit(X, y, sample_weight=weights)
    page = write_report(search, path=tmp_path / "page.html")
    always = content_of(page)["groups"][0]["always"]
    if task == "classification":
        assert always == {"text": "no", "share": pytest.approx(80 / 120)}
    else:
        repeated = np.repeat(y, weights.astype(int))
        assert always["error"] == pytest.approx(np.abs(repeated - repeated.mean()).mean())
    text = page.read_text(encoding="utf-8")
    assert "differ from the rules of the run" not in text
    assert "; rows have the given weights, on held-out rows" in text
    with pytest.raises(ValueError, match="A search has its own rows"):
        write_report(search, X, y, path=tmp_path / "page.html")


def test_report_of_a_run_weights_rows_by_class(folder, tmp_path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    run = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    run["search"]["class_weight"] = {"setosa": 6.0, "versicolor": 1.0, "virginica": 3.0}
    (copy / "run.json").write_text(json.dumps(run), encoding="utf-8")
    always = content_of(write_report(copy))["groups"][0]["always"]
    assert always == {"text": "setosa", "share": pytest.approx(0.6)}


@pytest.mark.parametrize(
    ("task", "scoring", "performance", "label"),
    [
        ("classification", "ice", None, "weighted F1"),
        ("classification", "ice", "balanced_accuracy", "balanced accuracy"),
        ("classification", "neg_fire", "balanced_accuracy", "weighted F1"),
        ("regression", "ice", None, "R²"),
        ("classification", "cohen_kappa", "balanced_accuracy", "weighted F1"),
    ],
)
def test_heading_names_the_measure_of_predictions(
    task, scoring, performance, label, runs, tmp_path
):
    search = {"scoring": scoring, "performance": performance}
    folder = runs.write_run(tmp_path, search=search, about={"task": task, "checksum_sha256": ""})
    page = write_report(folder, path=tmp_path / "page.html")
    assert content_of(page)["groups"][0]["performance_name"] == label


def test_page_states_which_conditions_accept_missing_values(runs, tmp_path):
    page = write_report(runs.write_run(tmp_path))
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "a missing value, which only satisfies conditions with “or missing”" in text


def test_page_starts_with_the_limits_of_the_search(runs, tmp_path):
    folder = runs.write_run(tmp_path, search={"max_rules": 7, "min_fidelity": None})
    content = content_of(write_report(folder))
    assert content["start"]["max_rules"] == 7
    assert "min_fidelity" not in content["start"]


def test_report_counts_the_target_of_each_rule(runs, tmp_path):
    iris, rules = load_dataset("iris"), runs.iris_rules()
    view = content_of(write_report(rules, iris.X, iris.y, path=tmp_path / "a.html"))["views"]["-1"]
    assigned = rules.assign(iris.X)
    for k, one in enumerate(view["by_rule"]):
        labels = iris.y[assigned == (k if k < 3 else -1)].tolist()
        assert one["rows"] == len(labels)
        assert one["counts"] == [*(labels.count(name) for name in rules.classes), 0]


def test_report_counts_true_as_one(tmp_path):
    X, y = pd.DataFrame({"x": [0.0, 1.0, 2.0]}), pd.Series([True, False, True], name="y")
    rules = RuleSet([Rule([], 1)], ["x"], task="classification", classes=[0, 1])
    view = content_of(write_report(rules, X, y, path=tmp_path / "a.html"))["views"]["-1"]
    assert view["by_rule"][0]["counts"] == [1, 2, 0]


@pytest.mark.slow
def test_report_rebuilds_weighted_black_boxes(tmp_path):
    command = ["tune", "titanic", "--black-box", "decision-tree", "--extractors", "cart"]
    command += ["--trials", "1", "--cv", "2", "--class-weight", "balanced", "--quiet"]
    assert main([*command, "--output", str(tmp_path / "run"), "--report"]) == 0
    content = content_of(tmp_path / "run" / "report.html")
    assert len(content["views"]) > 1
    assert not [note for note in content["notes"] if "could not be extracted again" in note]


def test_comparison_names_every_difference(runs, tmp_path):
    one = runs.write_run(tmp_path / "a")
    two = runs.write_run(
        tmp_path / "b", about={"checksum_sha256": "0" * 64}, search={"class_weight": "balanced"}
    )
    content = content_of(write_report([one, two]))
    assert content["differences"] == [
        "The runs have different rows, so their measures are not comparable.",
        "Different weights of classes: none in a, balanced in b.",
    ]
    assert content_of(write_report([one, one]))["differences"] == []
    three = runs.write_run(tmp_path / "c", about={"rows": 3}, search={"time": "day", "groups": "g"})
    assert content_of(write_report([one, three]))["differences"] == [
        "The runs have different rows, so their measures are not comparable.",
        "Different groups of held-out rows: none in a, g in c.",
        "Different order of held-out rows: none in a, day in c.",
    ]


def test_comparison_counts_no_agreement_without_predictions(tmp_path):
    rules = RuleSet([Rule([Interval(0, upper=1)], "a")], ["x"], task="classification")
    page = write_report([rules, rules], [[0], [2]], ["a", "a"], path=tmp_path / "page.html")
    assert "Both make the same prediction for 1 of 2 rows." in page.read_text(encoding="utf-8")


def test_comparison_of_searches_names_different_rows(tmp_path):
    X = pd.DataFrame({"a": np.arange(40.0)})
    searches = [
        ExtractorSearchCV(DecisionTreeClassifier(), extractors=["cart"], n_trials=1, cv=2).fit(X, y)
        for y in (np.arange(40) < 20, np.arange(40) % 4 < 2)
    ]
    page = write_report(searches, path=tmp_path / "page.html")
    assert content_of(page)["differences"][0].startswith("The runs have different rows")
    page = write_report([searches[0]] * 2, path=tmp_path / "page.html")
    assert content_of(page)["differences"] == []
    search = clone(searches[0]).fit(X, np.arange(40) < 20, sample_weight=np.arange(40.0))
    page = write_report([searches[0], search], path=tmp_path / "page.html")
    (difference,) = content_of(page)["differences"]
    assert re.fullmatch(r"Different weights of rows: none in .*, given in .*\.", difference)


def assert_begins_with(text: str, warning: str) -> None:
    """Check that a page states a warning once, and in front of the rules."""
    escaped = html.escape(warning, quote=False).replace("'", "&#39;")
    markup = text.partition('<script type="application/json"')[0]
    assert markup.count(escaped) == 1
    assert markup.index("Read this first") < markup.index(escaped) < markup.index('id="rules"')


def test_page_of_a_run_begins_with_its_suspicions(folder) -> None:
    run = json.loads((folder / "run.json").read_text())
    warning = "'a' alone determines 'b' in 99 of 99 rows. Leave it out"
    run["suspicions"] = [f"{warning}: skescore tune t.csv --drop a"]
    run["notes"] = [f"{warning}: skescore tune /home/me/t.csv --drop a", "a note"]
    run["checks"] = {"leakage": 1, "few_rows": 0, "test_rows_in_training": 0}
    (folder / "run.json").write_text(json.dumps(run))
    text = write_report(folder).read_text(encoding="utf-8")
    assert_begins_with(text, run["suspicions"][0])
    assert "a note" in text
    assert "/home/me" not in text.partition("<script")[0]
    assert "2 checks of the data and the result: 1 reported something" in text
    assert "✓ not reported: there are fewer than 30 rows" in text


def test_page_of_a_search_begins_with_its_suspicions(tmp_path) -> None:
    random = np.random.default_rng(0)
    weight = random.normal(2900, 700, 120)
    X = pd.DataFrame({"age": random.integers(15, 45, 120), "bwt": weight})
    search = ExtractorSearchCV(DecisionTreeClassifier(), extractors=["cart"], n_trials=1, cv=2)
    search.fit(X, pd.Series(weight < 2500, name="low"))
    (suspicion,) = search.suspicions_
    text = write_report(search, path=tmp_path / "page.html").read_text(encoding="utf-8")
    assert_begins_with(text, str(suspicion))
    both = write_report([search, search], path=tmp_path / "both.html").read_text(encoding="utf-8")
    assert both.count(html.escape(str(suspicion), quote=False).replace("'", "&#39;")) == 2
    assert both.index("Read this first") < both.index("(A): ") < both.index(">Comparison<")


@pytest.mark.slow
def test_report_shows_a_verification_with_bars_and_witnesses(search, folder, tmp_path) -> None:
    iris = load_dataset("iris")
    model = search.best_extractor_.estimator_
    result = verify(search.rules_, model, iris.X, limits=VerificationLimits(max_samples=2000))
    page = write_report(search, path=tmp_path / "page.html", verification=result)
    text = html.unescape(page.read_text(encoding="utf-8"))
    section = text[text.index('<section id="verification"') :]
    section = section[: section.index("</section>")]
    for rule in result.rules:
        witnesses = {w.to_text() for w in (rule.witness, rule.worst) if w is not None}
        assert all(witness in section for witness in witnesses)
        assert f"{rule.near_disagreement} disagree" in section
        shares = rule.near_disagreement.bar(rule.near_proven.agreeing if rule.near_proven else 0)
        assert sum(shares.values()) == pytest.approx(1.0)
        for part, share in shares.items():
            assert f'class="part-{part}" style="width:{round(100 * share, 3)}%"' in section
    # The verification of a run is in its folder, and is ignored if it belongs to other rules.
    (folder / "verification.json").write_text(result.to_json(), encoding="utf-8")
    assert '<section id="verification"' in write_report(folder).read_text(encoding="utf-8")
    sampled = json.loads(result.to_json()) | {"engine": "samples", "reason": "It has no trees."}
    (folder / "verification.json").write_text(json.dumps(sampled), encoding="utf-8")
    assert "is proven. It has no trees. Disagreement" in write_report(folder).read_text("utf-8")
    other = verify(search.rules_[:1], model, iris.X, limits=VerificationLimits(max_samples=2000))
    (folder / "verification.json").write_text(other.to_json(), encoding="utf-8")
    page = write_report(folder)
    assert '<section id="verification"' not in page.read_text(encoding="utf-8")
    assert any("belongs to other rules" in note for note in content_of(page)["notes"])
    (folder / "verification.json").write_text("{}", encoding="utf-8")
    assert any("cannot be read" in note for note in content_of(write_report(folder))["notes"])
    with pytest.raises(ValueError, match="verification is only allowed with a search or rules"):
        write_report(folder, verification=result)


@pytest.mark.parametrize("labels", [["a", float("nan"), "b"], [0, 1, 0]])
def test_report_rejects_missing_labels_and_another_type(labels, tmp_path) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([], "b")], ["x"], task="classification"
    )
    with pytest.raises(ValueError, match="y must hold"):
        write_report(rules, [[1], [2], [3]], labels, path=tmp_path / "report.html")
