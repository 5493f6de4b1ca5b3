"""The page ranks like Python for all weights, and is accessible."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skescore.certificates import certify
from skescore.datasets import load_dataset
from skescore.optimal import SearchSpace, SolverLimits
from skescore.registry import extractor_label
from skescore.report import write_report
from skescore.scorers import SCORE_SPECS, ScoreSpec
from skescore.tuning import (
    SHARE_OF_ALL_ROWS,
    Candidate,
    Candidates,
    ExtractorSearchCV,
    FoldResult,
    SearchLimits,
    choose_winner,
    selection_scores,
)


def held_out_and_selection_scores(
    candidates: Candidates, settings: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores on held-out rows and those by which candidates are selected."""
    weights = {name: settings[name] for name in ("psi", "phi", "rho", "completeness")}
    sign = SCORE_SPECS[settings["score"]].sign
    signed = sign * candidates.scores(settings["score"], **weights)
    with_all_rows = sign * candidates.scores_with_all_rows(settings["score"], **weights)
    return signed, selection_scores(signed, with_all_rows)


def python_ranking(candidates: Candidates, settings: dict) -> tuple[np.ndarray, list[int], int]:
    """Return mean scores, the ranking and the candidate that a search would choose."""
    signed, by = held_out_and_selection_scores(candidates, settings)
    size, n_queries = candidates.means("size"), candidates.means("black_box_rows")
    order = np.lexsort([size, -signed.mean(axis=1)])
    best = choose_winner(by[order], size[order], n_queries[order], 1.0)
    scores = SCORE_SPECS[settings["score"]].sign * signed
    return scores.mean(axis=1), order.tolist(), int(order[best])


def test_slider_positions_give_the_scores_of_python(opened, runs) -> None:
    candidates = runs.random_candidates(60)
    browser = opened(candidates)
    random = np.random.default_rng(1)
    winners, weighed = set(), 0
    for number in range(36):
        score = ("ice", "fire", "q")[number % 3]
        completeness = ("volume", "instances")[number // 3 % 2]
        positions = {name: random.uniform(-1, 1) for name in ("phi", "rho", "psi")}
        settled_weights = browser.settled(
            """
            const [score, completeness, positions] = arguments;
            for (const name of [score, completeness]) {
              const input = document.querySelector(`input[value=${name}]`);
              input.checked = true;
              input.dispatchEvent(new Event("change"));
            }
            for (const [name, position] of Object.entries(positions)) {
              document.getElementById(name).value = position;
              document.getElementById(name).dispatchEvent(new Event("input"));
            }
            //then
            const { ranking, settings } = page.tradeOff;
            document.getElementById("show-all").click();
            const rows = [...document.querySelectorAll("#board tbody tr")];
            return {
              settings, scores: ranking.scored.map((entry) => entry.score), choice: ranking.choice,
              shown: rows.map((row) => Number(row.dataset.place)),
              ranks: rows.map((row) => Number(row.cells[0].textContent)),
              typed: ["phi", "rho", "psi"].map((name) =>
                Number(document.getElementById(name + "-number").value)),
              chosen: page.tradeOff.chosen,
            };
            """,
            score,
            completeness,
            positions,
        )
        settings = settled_weights["settings"]
        assert (settings["score"], settings["completeness"]) == (score, completeness)
        # Fields show the weight, not its rounding.
        assert settled_weights["typed"] == [settings[name] for name in ("phi", "rho", "psi")]
        for name, position in positions.items():
            assert settings[name] == pytest.approx(10**position, rel=0.02)
        scores, order, choice = python_ranking(candidates, settings)
        np.testing.assert_allclose(settled_weights["scores"], scores, rtol=1e-9, atol=1e-12)
        # After a change of the weights, the page shows the rules that the search would select.
        assert settled_weights["chosen"] == choice
        assert settled_weights["shown"] == order
        assert settled_weights["ranks"] == list(range(1, 61))
        assert settled_weights["choice"] == choice
        winners.add(order[0])
        signed, by = held_out_and_selection_scores(candidates, settings)
        is_known = np.isfinite(by).all(axis=1)
        assert 60 > is_known.sum() > 30  # otherwise all rows would not have been tested
        weighed += not np.isclose(by[is_known], signed[is_known], atol=0).all(axis=1).any()
    assert len(winners) > 3  # otherwise the weights would not have been tested
    assert weighed > 30
    assert browser.complaints() == []
    assert browser.requests() == []


def test_scores_for_extreme_weights_equal_python(usual, runs) -> None:
    candidates, browser = runs.random_candidates(20), usual
    queries = []
    for psi in (0.1, 0.3, 0.7, 1, 1.1, 2.5, 7, 30, 1e-6, 1e6):
        for phi, rho in ((psi, 1.0), (1e4, psi)):
            settings = {
                "psi": psi,
                "phi": phi,
                "rho": rho,
                "completeness": "volume",
                "score": "fire",
            }
            for score in SCORE_SPECS:
                settings["score"] = score
                queries.append(dict(settings))
    outcome = browser.run(
        "return arguments[0].map((settings) =>"
        "  rank(page.tradeOff.group, settings).scored.map((entry) => entry.score))",
        queries,
    )
    for settings, scores in zip(queries, outcome, strict=True):
        expected, _, _ = python_ranking(candidates, settings)
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-300)


def test_page_judges_candidates_like_python(usual, runs) -> None:
    candidates, browser = runs.random_candidates(20), usual
    queries = [
        {"score": score, "psi": psi, "phi": psi, "rho": 0.5, "completeness": completeness}
        for score in SCORE_SPECS
        for psi in (0.7, 1, 2.5, 7)
        for completeness in ("volume", "instances")
    ]
    outcome = browser.run(
        """
        return arguments[0].map((settings) => {
          const { group } = page.tradeOff;
          const { scored } = rank(group, settings);
          const sign = SCORES[settings.score].greater ? 1 : -1;
          return comparedScores(group, settings, scored, scored.map((one) => one.place), sign);
        });
        """,
        queries,
    )
    for settings, compared in zip(queries, outcome, strict=True):
        signed, by = held_out_and_selection_scores(candidates, settings)
        sign = SCORE_SPECS[settings["score"]].sign
        indices = np.flatnonzero(np.isfinite(by).all(axis=1))
        assert [one["place"] for one in compared] == indices.tolist()
        np.testing.assert_allclose(
            [one["folds"] for one in compared], sign * by[indices], rtol=1e-9
        )
        assert not np.isclose(by[indices], signed[indices]).all()


def test_page_starts_with_the_weights_of_the_search(opened, runs) -> None:
    search = {
        "scoring": "neg_fire",
        "weights": {"psi": 3.0, "phi": 1.0, "rho": 2.0},
        "completeness": "instances",
    }
    browser = opened(search=search)
    settings = browser.run("return page.tradeOff.settings")
    assert settings == {
        "score": "fire",
        "psi": 3,
        "phi": 1,
        "rho": 2,
        "completeness": "instances",
        "max_rules": None,
        "min_performance": None,
        "min_fidelity": None,
    }
    outcome = browser.run("return ['phi', 'rho', 'psi'].map((n) => byId('field-' + n).hidden)")
    assert outcome == [True, True, False]
    browser.run(
        "const n = byId('psi-number'); n.value = '7.5'; n.dispatchEvent(new Event('input'));"
    )
    assert browser.run("return page.tradeOff.settings.psi") == 7.5
    assert float(browser.run("return byId('psi').value")) == pytest.approx(np.log10(7.5), abs=0.006)
    for wrong in ("0", "-1", ""):
        browser.run(
            "const n = byId('psi-number'); n.value = arguments[0];"
            "n.dispatchEvent(new Event('input'));",
            wrong,
        )
        assert browser.run("return byId('psi-number').getAttribute('aria-invalid')") == "true"
        assert browser.run("return page.tradeOff.settings.psi") == 7.5
    browser.element("#reset").click()
    assert browser.settled("//then return page.tradeOff.settings.psi") == 3
    assert browser.run("return byId('psi-number').getAttribute('aria-invalid')") == "false"


def test_sliders_move_by_keys(usual) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = usual
    browser.run("byId('advanced').open = true")
    slider = browser.element("#phi")
    before = browser.run("return page.tradeOff.settings.phi")
    slider.send_keys(Keys.ARROW_RIGHT * 5)
    after = browser.settled("//then return page.tradeOff.settings.phi")
    assert before == 1
    assert after == pytest.approx(10**0.05, rel=0.01)
    assert slider.get_attribute("aria-valuetext") == str(after)
    slider.send_keys(Keys.HOME)
    assert browser.settled("//then return page.tradeOff.settings.phi") == 0.1


def test_slider_leads_from_fewer_rules_to_fewer_errors(usual, runs) -> None:
    candidates, browser = runs.random_candidates(20), usual
    for position in (-1, -0.4, 0.35, 1):
        settled_weights = browser.settled(
            "const s = byId('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));"
            "//then const { settings, ranking, chosen } = page.tradeOff;"
            "return { settings, choice: ranking.choice, chosen,"
            "  said: byId('slider').getAttribute('aria-valuetext') }",
            position,
        )
        settings = settled_weights["settings"]
        assert settings["phi"] == pytest.approx(10**position, rel=0.01)
        assert settings["rho"] == pytest.approx(10**-position, rel=0.01)
        assert (
            settled_weights["chosen"]
            == settled_weights["choice"]
            == python_ranking(candidates, settings)[2]
        )
        assert (
            f"{100 * (1 - candidates.means('loss')[settled_weights['chosen']]):.0f} of 100"
            in settled_weights["said"]
        )


@pytest.mark.slow
def test_rules_exist_for_all_slider_positions(browser, tmp_path) -> None:
    from selenium.webdriver.common.keys import Keys

    iris = load_dataset("iris")
    search = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=("cart", "cream"), n_trials=12, cv=3, random_state=1
    ).fit(iris.X, iris.y)
    browser.open(search.report(path=tmp_path / "page.html"))
    outcome = browser.run(
        """
        const found = new Set(), { tradeOff, content } = page;
        for (let k = 0; k <= 40; k++) {
          const settings = { ...tradeOff.settings };
          for (const name of tradeOff.sliderWeights) {
            settings[name] = 10 ** ((k - 20) / 20 * content.directions[name]);
          }
          found.add(rank(tradeOff.group, settings).choice);
        }
        return [[...found], Object.keys(content.views).map(Number)];
        """
    )
    assert len(outcome[0]) > 1  # otherwise the slider would have no effect
    assert set(outcome[0]) <= set(outcome[1])
    slider = browser.element("#slider")
    headlines = {browser.text("#headline")}
    for key in (Keys.HOME, Keys.END):
        slider.send_keys(key)
        browser.settled("//then return 0")
        assert browser.run("return byId('no-rules').hidden")
        headlines.add(browser.text("#headline"))
    assert len(headlines) > 1


def test_page_applies_limits_like_python(usual, runs) -> None:
    candidates, browser = runs.random_candidates(20), usual
    for most, least in ((12, None), (None, 0.6), (20, 0.55)):
        settled_weights = browser.settled(
            "['max-rules', 'min-performance'].forEach((id, k) => {"
            "  byId(id).value = arguments[k] === null ? '' : arguments[k];"
            "  byId(id).dispatchEvent(new Event('input')); });"
            "//then const { settings, ranking, chosen } = page.tradeOff;"
            "return { settings, chosen, order: ranking.order, text: byId('beyond').textContent,"
            "  within: ranking.order.filter((p) => !ranking.scored[p].beyond).length }",
            most,
            least,
        )
        limits = SearchLimits(max_rules=most, min_performance=least)
        within = [k for k, c in enumerate(candidates) if limits.allow(c.folds, c.all_rows)]
        assert 0 < len(within) < 20
        assert sorted(settled_weights["order"][: settled_weights["within"]]) == within
        retained = candidates.within(limits)
        assert (
            settled_weights["chosen"]
            == within[python_ranking(retained, settled_weights["settings"])[2]]
        )
        assert settled_weights["text"] == ""
    browser.settled(
        "byId('max-rules').value = 1; byId('max-rules').dispatchEvent(new Event('input'));"
        "byId('min-performance').value = 2;"
        "byId('min-performance').dispatchEvent(new Event('input')); //then return 0"
    )
    assert "No candidate satisfies these limits" in browser.text("#beyond")


def test_tab_reaches_every_control_and_shows_focus(usual) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser = usual
    browser.run("byId('advanced').open = true; document.querySelector('a, button, input').focus()")
    recorded = []
    for _ in range(44):
        active = browser.driver.switch_to.active_element
        name = active.get_attribute("id") or active.get_attribute("class") or active.tag_name
        outline = browser.run(
            "const node = document.activeElement;"
            "const shown = node.closest('.point') ? node.querySelector('.reach') : node;"
            "const style = getComputedStyle(shown); return shown === node ? style.outlineWidth"
            "  : style.stroke === 'none' ? '0px' : style.strokeWidth"
        )
        if active.tag_name != "body" and active.get_attribute("type") != "radio":
            assert outline not in ("0px", ""), name
        recorded.append(name)
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    for expected in (
        "skip",
        "slider",
        "max-rules",
        "phi",
        "phi-number",
        "reset",
        "next-row",
        "sort",
        "choose",
        "scroll board",
        "summary",
    ):
        assert expected in recorded, expected
    assert any("point" in name for name in recorded)


def test_arrow_keys_select_candidates_in_the_plot(usual, runs) -> None:
    from selenium.webdriver.common.keys import Keys

    browser, means = usual, runs.random_candidates(20)
    front = browser.run("return page.tradeOff.front")
    size, loss = means.means("size"), means.means("loss")
    for index in front:  # none has fewer rules and fewer errors
        assert not ((size <= size[index]) & (loss < loss[index])).any()
        assert not ((size < size[index]) & (loss <= loss[index])).any()
    first = browser.element(f"#plot [data-point='{front[0]}']")
    browser.run("arguments[0].focus()", first)
    first.send_keys(Keys.ENTER)
    assert browser.run("return page.tradeOff.chosen") == front[0]
    first.send_keys(Keys.ARROW_RIGHT)
    assert browser.run("return page.tradeOff.chosen") == front[1]
    active = browser.driver.switch_to.active_element
    assert active.get_attribute("data-point") == str(front[1])
    assert active.get_attribute("aria-checked") == "true"
    assert f"{100 * (1 - loss[front[1]]):.0f} of 100 right" in active.get_attribute("aria-label")


def test_leaderboard_sorts_by_any_column(usual, runs) -> None:
    candidates, browser = runs.random_candidates(20), usual
    loss = candidates.means("loss")
    for turn in (1, -1):
        browser.run("page.tradeOff.board.columns.find((c) => c.key === 'loss').button.click()")
        outcome = browser.run(
            "return [...document.querySelectorAll('#board tbody tr')]"
            ".map((row) => Number(row.dataset.place))"
        )
        assert (np.diff(turn * loss[outcome]) >= 0).all()
        state = browser.run(
            "return [...document.querySelectorAll('#board th[aria-sort]')]"
            ".map((h) => [h.textContent, h.getAttribute('aria-sort')])"
        )
        assert state == [["1 − accuracy", "ascending" if turn > 0 else "descending"]]
    ranks = [int(text) for text in browser.texts("#board tbody td.rank")]
    assert sorted(ranks) == list(range(1, 21))


def test_verdict_distinguishes_best_from_winner(opened, runs) -> None:
    candidates = runs.random_candidates(20)
    scores = candidates.scores("ice").mean(axis=1)
    order = np.argsort(-scores, kind="stable")
    loser = int(order[-1])
    browser = opened(candidates, winner=loser)
    verdict = browser.text("#verdict")
    assert f"has rank {int((order == loser).argmax()) + 1} of 20" in verdict
    assert f"Best score: {candidates[int(order[0])].extractor}" in verdict
    assert browser.text("#board tbody tr.winner .marks") == "search's winner"
    assert "best score" in browser.text("#board tbody tr.best .marks")
    # The rules of the winner are shown first; others state that their rules are missing.
    assert browser.run("return page.tradeOff.chosen") == loser
    assert not browser.run("return byId('cards').hidden")
    browser.element("#board tbody tr.best button").click()
    assert browser.run("return byId('cards').hidden && !byId('no-rules').hidden")


def test_live_region_announces_changes(usual) -> None:
    browser = usual
    region = browser.element("#announcer")
    assert (region.get_attribute("aria-live"), region.get_attribute("role")) == ("polite", "status")
    browser.run("byId('rho').value = 1; byId('rho').dispatchEvent(new Event('input'))")
    announcement = browser.driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => done(byId('announcer').textContent), 700)"
    )
    assert announcement == browser.text("#verdict")
    assert announcement.startswith("Best score: ")


def test_page_has_accessible_structure(usual) -> None:
    browser = usual
    faults = browser.run(
        """
        const faults = [];
        if (document.documentElement.lang !== "en") faults.push("lang");
        for (const table of document.querySelectorAll("table")) {
          if (!table.caption?.textContent.trim()) faults.push("caption " + table.id);
          for (const head of table.querySelectorAll("th")) {
            if (!head.getAttribute("scope")) faults.push("scope " + head.textContent);
          }
        }
        for (const input of document.querySelectorAll("input, select, textarea")) {
          if (input.closest("[hidden]")) continue;
          const named = input.labels.length || input.getAttribute("aria-label");
          if (!named) faults.push("label " + input.id);
        }
        const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
        if (new Set(ids).size !== ids.length) faults.push("repeated id");
        const heads = [...document.querySelectorAll("h1, h2, h3")];
        const levels = heads.map((head) => Number(head.tagName[1]));
        levels.forEach((level, k) => {
          if (level - (k ? levels[k - 1] : 0) > 1) faults.push("heading " + k);
        });
        for (const button of document.querySelectorAll("button")) {
          const name = button.getAttribute("aria-label") || button.textContent.trim();
          if (!name && !button.closest("[hidden]") && !button.hidden) faults.push("button");
        }
        return faults;
        """
    )
    assert faults == []


@pytest.mark.parametrize("width", [1400, 768, 400])
def test_axe_finds_no_violations_in_any_theme_or_width(width, usual) -> None:
    browser, papers = usual, set()
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 600,
    )
    for scheme in ("light", "dark"):
        browser.command(
            "Emulation.setEmulatedMedia",
            media="screen",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        assert browser.violations() == [], scheme
        papers.add(browser.run("return getComputedStyle(document.body).backgroundColor"))
        # The rules begin on the first screen, below the warnings and the plot.
        top = browser.run(
            "return document.querySelector('#cards .card').getBoundingClientRect().top"
        )
        assert top + browser.run("return scrollY") < 800
    assert len(papers) == 2


def test_printed_page_is_white(usual) -> None:
    usual.command(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    paper, text = usual.run(
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    assert (paper, text) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")


def test_narrow_page_needs_no_horizontal_scrolling(usual) -> None:
    for width in (768, 390, 320):
        usual.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=True,
        )
        wide = usual.driver.execute_async_script(
            """
            const [width, done] = arguments, begin = performance.now();
            const look = () => {  // the plot follows the window after a moment
              const wide = document.documentElement.scrollWidth;
              if (wide <= width || performance.now() - begin > 5000) done(wide);
              else setTimeout(look, 50);
            };
            setTimeout(look, 50);
            """,
            width,
        )
        assert wide <= width


def test_content_policy_blocks_external_requests(usual) -> None:
    browser = usual
    assert (
        browser.run("return document.querySelectorAll('[src], link[rel=stylesheet]').length") == 0
    )
    refused = browser.driver.execute_async_script(
        """
        const done = arguments[0], found = [];
        document.addEventListener("securitypolicyviolation", (event) =>
          found.push(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => 0);
        const image = new Image(); image.src = "http://127.0.0.1:9/a.png";
        const script = document.createElement("script"); script.textContent = "window.bad = 1";
        document.body.append(script);
        setTimeout(() => done([found.sort(), window.bad || null]), 300);
        """
    )
    assert refused == [["connect-src", "img-src", "script-src-elem"], None]


def test_page_averages_bench_by_data_and_black_box(browser, tmp_path) -> None:
    import pandas as pd

    random = np.random.default_rng(0)
    rows = [
        {
            "data": data,
            "task": "classification",
            "black_box": box,
            "extractor": name,
            "params": "{}" if name == "cart" else '{"n_slices": 3}',
            "seed": seed,
            "fold": fold,
            "state": "complete",
            "error": "",
            "n_rules": 4,
            "size": 4 + fold,
            "performance": random.uniform(0.5, 1),
            "loss": random.uniform(0, 0.5),
            "loss_q": 0.1,
            "completeness_volume": 0.9,
            "completeness_instances": 1.0,
            "fidelity": 0.9,
            "black_box_quality": 0.96,
            "seconds": 0.1,
            "black_box_rows": 10,
        }
        for data in ("iris", "wine")
        for box in ("knn", "svm")
        for name in ("cart", "gridex")
        for seed in (0, 1)
        for fold in (0, 1, 2)
    ]
    rows[1] |= {"state": "failed", "error": "no <b>rules</b>", "loss": np.nan, "size": np.nan}
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "rows.csv", index=False)
    browser.open(write_report(tmp_path))
    assert browser.texts("#group option") == [
        "iris · knn",
        "iris · svm",
        "wine · knn",
        "wine · svm",
    ]
    for at, (data, box) in enumerate(
        [("iris", "knn"), ("iris", "svm"), ("wine", "knn"), ("wine", "svm")]
    ):
        browser.run(
            "const s = byId('group'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
            str(at),
        )
        part = table[(table["data"] == data) & (table["black_box"] == box)]
        part = part[part["state"] == "complete"]
        means = part.groupby("extractor", sort=False)["loss"].mean()
        outcome = browser.run(
            "return page.tradeOff.group.candidates.map((c) => [c.extractor, c.means.loss, c.count])"
        )
        assert [name for name, _, _ in outcome] == list(map(extractor_label, means.index))
        np.testing.assert_allclose([loss for _, loss, _ in outcome], means.to_numpy(), rtol=1e-12)
        assert [count for _, _, count in outcome] == part["extractor"].value_counts(
            sort=False
        ).tolist()
        if at == 0:
            assert "no <b>rules</b>" in browser.text("#failures")
            assert "1 missing" in browser.text("#board")
    assert browser.complaints() == []


def test_points_without_errors_have_no_spread(browser, tmp_path) -> None:
    import pandas as pd

    row = {
        "data": "iris",
        "task": "classification",
        "black_box": "knn",
        "params": "{}",
        "seed": 0,
        "error": "",
        "n_rules": 2,
        "size": 2,
        "performance": 1.0,
        "loss": 0.0,
        "loss_q": 0.0,
        "completeness_volume": 1.0,
        "completeness_instances": 1.0,
    }
    rows = [
        row | {"extractor": name, "fold": fold, "state": state}
        for name, state in (("cart", "complete"), ("gridex", "failed"))
        for fold in (0, 1)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    browser.open(write_report(tmp_path))
    top, height = browser.run(
        "const dot = document.querySelector('.point .dot'); return [dot.getBBox().y,"
        "  page.tradeOff.scatter.height]"
    )
    assert 0 < top < height
    # Bench entries without parameters need no column for them.
    assert "Parameters" not in browser.texts("#board thead th")
    (measured, failed) = browser.run(
        "return [...document.querySelectorAll('#board tbody tr')]"
        ".map((row) => [row.querySelector('.score').textContent,"
        "  row.querySelector('.spread').textContent])"
    )
    assert measured[1] == "0.0000"
    assert failed == ["–", "–"]
    assert browser.complaints() == []


def test_page_states_that_a_candidate_was_picked(opened) -> None:
    browser = opened(winner=3, picked=True)
    rank = browser.run("return page.tradeOff.ranking.scored[3].rank")
    assert rank > 1
    text = browser.text("#chosen-by")
    assert text.startswith("Selected by the user: ICE ")
    assert f"rank {rank} of 20" in text
    assert "size" not in text
    assert "The best has" in text
    assert browser.text("#board tbody tr.winner .marks") == "selected candidate"
    assert "The selected candidate, whose rules were saved, has rank" in browser.run(
        "return byId('verdict').textContent"
    )
    assert "s choice" not in browser.run("return document.body.innerText")
    assert browser.complaints() == []


def test_page_states_that_the_knee_was_chosen(opened) -> None:
    browser = opened(winner=3, search={"scoring": ["loss", "n_rules", "incompleteness"]})
    assert browser.run("return page.tradeOff.ranking.scored[3].rank") > 1
    text = browser.text("#chosen-by")
    assert text.endswith("chose the knee of their trade-off.")
    assert "due to chance" not in text


def test_recorded_score_ranks_like_the_search(opened, runs) -> None:
    random = np.random.default_rng(4)

    def scored(result: FoldResult) -> FoldResult:
        return result.replace(score=float(random.uniform(0.4, 0.9)))

    def told(one: Candidate) -> Candidate:
        folds = tuple(map(scored, one.folds))
        return replace(one, folds=folds, all_rows=scored(one.all_rows or one.folds[0]))

    candidates = Candidates(
        told(one)
        for one in runs.random_candidates(12)
        if one.all_rows is None or not one.all_rows.failure
    )
    heldout = np.array([[fold["score"] for fold in one.folds] for one in candidates])
    all_rows = np.array([one.all_rows["score"] for one in candidates])
    by = (1 - SHARE_OF_ALL_ROWS) * heldout + SHARE_OF_ALL_ROWS * all_rows[:, None]
    size, n_queries = candidates.means("size"), candidates.means("black_box_rows")
    order = np.lexsort([size, -heldout.mean(axis=1)])
    winner = int(order[choose_winner(by[order], size[order], n_queries[order], 1.0)])
    browser = opened(candidates, winner=winner, search={"scoring": "kappa"})
    outcome = browser.run(
        "const { settings, ranking, axis } = page.tradeOff; return { score: settings.score,"
        "  order: ranking.order, choice: ranking.choice, axis: axis.title }"
    )
    assert outcome == {"score": "kappa", "order": order.tolist(), "choice": winner, "axis": "kappa"}
    rank = order.tolist().index(winner) + 1
    text = f"choice: kappa {heldout[winner].mean():.3f}, rank {rank} of"
    assert text in browser.text("#chosen-by")
    # Without weights, the slider follows the front.
    for at, index in enumerate(browser.run("return page.tradeOff.front")):
        browser.run(
            "byId('slider').value = arguments[0]; byId('slider').dispatchEvent(new Event('input'))",
            at,
        )
        assert browser.run("return page.tradeOff.chosen") == index


def test_page_shows_recorded_score_without_formula(opened, runs, monkeypatch) -> None:
    terse = ScoreSpec(
        "terse",
        lambda loss, size: loss + 0.1 * size,
        greater_is_better=False,
        label="Terse",
        prediction="loss",
        uses_completeness=False,
        metrics={"classification": "accuracy", "regression": "mean_squared_error"},
    )
    monkeypatch.setitem(SCORE_SPECS, "terse", terse)
    candidates = Candidates(
        replace(
            one, folds=tuple(fold.replace(score=-index - k) for k, fold in enumerate(one.folds))
        )
        for index, one in enumerate(runs.random_candidates(12))
    )
    browser = opened(candidates, search={"scoring": "neg_terse"})
    outcome = browser.run(
        "const { settings, ranking } = page.tradeOff; return { settings, order: ranking.order,"
        "  scores: ranking.scored.map((entry) => entry.score), choice: ranking.choice,"
        "  formulas: Object.keys(SCORES).filter(formulaOf) }"
    )
    assert outcome["settings"]["score"] == "terse"
    assert outcome["order"] == list(range(12))
    assert outcome["scores"] == [index + 2 for index in range(12)]
    assert outcome["choice"] is None
    assert browser.text("#formula") == "Terse, as the run recorded it; smaller is better."
    # The page computes these scores and no others.
    assert set(outcome["formulas"]) == set(SCORE_SPECS) - {"terse"}


def test_corridor_follows_the_weights_like_python(browser, runs, tmp_path) -> None:
    iris = load_dataset("iris")
    rules = runs.iris_rules()
    certificate = certify(
        rules, iris.X, iris.y, space=SearchSpace(4, cuts=2), limits=SolverLimits(max_nodes=2)
    )
    folder = runs.write_run(tmp_path / "run", rules=rules)
    run = json.loads((folder / "run.json").read_text())
    messages = {"certificate": certificate.to_text().split("\n")}
    (folder / "run.json").write_text(json.dumps(run | messages))
    (folder / "certificate.json").write_text(certificate.to_json())
    browser.open(write_report(folder))
    random = np.random.default_rng(2)
    for number in range(12):
        score = ("ice", "fire", "q")[number % 3]
        positions = {
            name: float(random.uniform(-0.5, 1)) for name in SCORE_SPECS[score].weight_names
        }
        settled_weights = browser.settled(
            """
            const [score, positions] = arguments;
            const input = document.querySelector(`input[value=${score}]`);
            input.checked = true;
            input.dispatchEvent(new Event("change"));
            for (const [name, position] of Object.entries(positions)) {
              document.getElementById(name).value = position;
              document.getElementById(name).dispatchEvent(new Event("input"));
            }
            //then
            const { kinds, own, settings } = page.provenBounds;
            return { own, settings, bounds: kinds.map((kind) => kind.bounds),
                     gaps: kinds.map((kind) => page.provenBounds.gap(kind)),
                     dots: document.querySelectorAll("#corridor .dot").length };
            """,
            score,
            positions,
        )
        weights = {name: settled_weights["settings"][name] for name in positions}
        one = certificate.with_score(score, **weights)
        assert settled_weights["own"] == pytest.approx(one.given_score())
        for kind, bounds, gap in zip(
            one.kinds, settled_weights["bounds"], settled_weights["gaps"], strict=True
        ):
            assert np.array(bounds) == pytest.approx(np.array(one.corridor(kind)))
            assert gap == pytest.approx(one.gap(kind), abs=1e-12)
        assert settled_weights["dots"] == 6  # of two kinds with 2, 3 and 4 rules
        text = browser.text("#corridor-text")
        assert f"have {SCORE_SPECS[score].label} " in text
    assert browser.violations() == []
