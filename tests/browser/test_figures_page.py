"""Figures of the page equal those of rows and predictions, and those of the run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from figure_searches import FAST, SLOW, run_search, write_files
from page_figures import PageFigures

from skescore.cli import main
from skescore.report import write_report
from skescore.rules import AtLeast, Domain, Interval, Rule, RuleSet, RuleStatistics
from skescore.tuning import Candidates

#: Search whose page is checked in every run.
IN_EVERY_RUN = "weighted"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("figures"))


def check_page(arguments, browser, files, out) -> None:
    run = run_search(arguments, files, out, "--report")
    browser.open(out / "report.html")
    page = PageFigures(browser, run)
    page.check()
    assert page.n_checked > 40
    assert browser.violations() == []
    assert browser.complaints() == []


# The other searches of FAST run in `tests/cli/test_consistent_figures.py`, without a browser.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == IN_EVERY_RUN else pytest.mark.slow) for name in FAST],
)
def test_page_figures_equal_recomputed_ones(name, browser, files, tmp_path) -> None:
    check_page(FAST[name], browser, files, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_page_figures_of_more_searches_equal_recomputed_ones(
    name, browser, files, tmp_path
) -> None:
    check_page(SLOW[name], browser, files, tmp_path / "run")


def test_page_shows_serious_warnings_first(browser, runs, tmp_path) -> None:
    folder = runs.write_run(tmp_path)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record.setdefault("best", {})["shortcomings"] = ["the rules never predict 'a'"]
    record["notes"] = ["the rules never predict 'a'", "another note"]
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["report", str(folder), "--quiet"]) == 0
    browser.open(folder / "report.html")
    assert browser.texts("#warnings li") == ["the rules never predict 'a'"]
    assert "the rules never" not in "".join(browser.texts(".notes li"))
    is_first = "return byId('warnings').getBoundingClientRect().top < "
    assert browser.run(f"{is_first} byId('rules').getBoundingClientRect().top")
    assert browser.violations() == []


def test_comparison_of_different_runs_omits_scores(browser, runs, tmp_path) -> None:
    one = runs.write_run(tmp_path / "a")
    two = runs.write_run(tmp_path / "b", search={"reference": "black-box"})
    assert main(["report", str(one), str(two), "--quiet"]) == 0
    browser.open(one / "comparison.html")
    assert "Different reference: the data in a, the predictions of the model in b." in (
        browser.text("#differences")
    )
    names = browser.texts("#versus tbody th")
    assert "Rules" in names
    assert "ICE" not in names
    assert browser.run("return byId('both').hidden")
    assert browser.violations() == []


def test_else_row_picture_marks_failed_conditions(browser, tmp_path) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2.0)], "a"), Rule([Interval(1, lower=5.0)], "b"), Rule([], "c")],
        ["size", "age"],
        task="classification",
        classes=["a", "b", "c"],
        domain=Domain([0.0, 0.0], [9.0, 9.0]),
        ordered=True,
    )
    X, y = [[4.0, 3.0], [1.0, 1.0], [3.0, 6.0]], ["c", "a", "b"]
    browser.open(write_report(rules, X, y, path=tmp_path / "page.html"))
    assert browser.texts(".row-path .step") == ["1 ✗", "2 ✗", "3 ✓"]
    assert browser.texts(".row-name") == ["size (rule 1)", "age (rule 2)"]
    outside = (
        "return [...document.querySelectorAll('.row-track')].every((track) => {"
        "const [mark, inside] = ['.mark', '.inside'].map((one) => "
        "track.querySelector(one).getBoundingClientRect());"
        "return mark.right < inside.left || mark.left > inside.right; })"
    )
    assert browser.run(outside)


def test_row_picture_marks_row_on_its_conditions(usual) -> None:
    marks = usual.run("return document.querySelectorAll('.row-picture .mark').length")
    tracks = usual.run("return document.querySelectorAll('.row-picture .inside').length")
    assert marks == tracks > 0
    assert usual.text(".row-path .step.holds").endswith("✓")


def test_row_picture_shows_all_failing_parts(browser, tmp_path) -> None:
    two_of_three = AtLeast(2, [Interval(j, lower=5.0) for j in range(3)])
    rules = RuleSet(
        [Rule([two_of_three], "a"), Rule([], "b")],
        ["size", "age", "mass"],
        task="classification",
        classes=["a", "b"],
        domain=Domain([0.0] * 3, [9.0] * 3),
        ordered=True,
    )
    browser.open(
        write_report(
            rules, [[6.0, 1.0, 2.0], [7.0, 6.0, 1.0]], ["b", "a"], path=tmp_path / "p.html"
        )
    )
    assert browser.texts(".row-path .step") == ["1 ✗", "2 ✓"]
    assert browser.texts(".row-name") == ["age (rule 1)", "mass (rule 1)"]


@pytest.mark.parametrize("n_rules", [1, 2, 4])
def test_short_lists_show_row_next_to_rules(opened, runs, n_rules) -> None:
    usual = runs.iris_rules()
    selected = [*usual.rules, usual.rules[0]][:n_rules]
    if n_rules == 1:
        selected = [Rule([], "setosa", RuleStatistics(150, (50, 50, 50)))]
    rules = RuleSet(
        selected,
        usual.feature_names,
        task=usual.task,
        classes=usual.classes,
        domain=usual.domain,
        fallback=usual.fallback,
        ordered=True,
    )
    page = opened(rules=rules)
    assert bool(page.run("return document.querySelector('.left > #try')")) == (n_rules < 4)
    assert page.run("return document.querySelectorAll('#glance .glance-part').length") > 0
    ends = "const end = (id) => document.querySelector(id).getBoundingClientRect().bottom;"
    left, right = page.run(f"{ends} return [end('.left'), end('#trade-off')];")
    if n_rules < 4:
        assert left > 0.75 * right
    assert page.run("return byId('next-row').hidden") == (n_rules == 1)
    assert page.violations() == []


def test_plot_shows_nearly_equal_errors(opened, runs) -> None:
    loss = 0.1 + 0.2  # 0.30000000000000004
    candidates = Candidates(
        replace(one, folds=tuple(fold.replace(loss=loss if k else 0.3) for fold in one.folds))
        for k, one in enumerate(runs.random_candidates(2))
    )
    page = opened(candidates)
    assert page.texts("#plot .tick")
    assert page.complaints() == []


def test_page_shows_score_named_like_a_measure(opened, runs) -> None:
    candidates = Candidates(
        replace(one, folds=tuple(fold.replace(score=0.8, fidelity=0.8) for fold in one.folds))
        for one in runs.random_candidates(4)
    )
    page = opened(candidates, search={"scoring": "fidelity", "reference": "black-box"})
    assert page.run("return page.tradeOff.settings.score") == "fidelity"
    assert "choice: fidelity " in page.text("#chosen-by")
    assert page.complaints() == []
