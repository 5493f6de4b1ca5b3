"""Rules in the page predict, explain and export like those of Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skescore.datasets import load_dataset
from skescore.metrics import rule_overlap, rule_report
from skescore.report import rule_view, write_report
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

NAMES = ["a", "b", "color", "d"]
COLORS = ("blue", "green", "red")
DOMAIN = Domain((0, -5, 0, 0), (10, 5, 3, 1), [(2, COLORS)])
#: Scripts of the page, called for a rule set from JSON.
EXPLAIN = """
const rules = new Rules(arguments[0]);
const said = (prediction) => !prediction.predicted ? null
  : rules.regression ? (Number.isNaN(prediction.value) ? "NaN" : prediction.value) :
  rules.label(prediction);
const value = (v) => typeof v === "number" && !Number.isFinite(v) ? String(v) : v;
return arguments[1].map((row) => {
  const found = explainRow(rules, row), other = found.counterfactual;
  return {
    prediction: said(found.prediction), rule: found.prediction.rule, held: found.held, reason:
    found.reason, conditions: found.conditions, sums: found.prediction.sums || null,
    other: other && { prediction: said(other.prediction), rule: other.rule, rules: other.rules,
      distance: other.distance,
      changes: other.changes.map((c) =>
        [rules.names[c.feature], value(c.before), value(c.after)]) },
  };
});
"""


def random_rules(random: np.random.Generator, regression: bool, kinds: str) -> list[Rule]:
    """Return rules with every kind of condition in `kinds`."""
    created = []
    for _ in range(int(random.integers(3, 9))):
        conditions: list[Any] = []
        for feature, low, high in ((0, 0, 10), (1, -5, 5), (3, 0, 1)):
            if random.random() < 0.6:
                bounds = sorted(np.round(random.uniform(low, high, 2), int(random.integers(0, 4))))
                if bounds[0] == bounds[1]:
                    bounds[1] += 0.5
                which = int(random.integers(3))
                conditions.append(
                    Interval(
                        feature,
                        -math.inf if which == 0 else bounds[0],
                        math.inf if which == 1 else bounds[1],
                        lower_closed=bool(random.integers(2)),
                        upper_closed=bool(random.integers(2)),
                        missing="g" in kinds and bool(random.integers(2)),
                    )
                )
            elif "g" in kinds and random.random() < 0.3:
                conditions.append(Missing(feature, negated=bool(random.integers(2))))
        if "c" in kinds and random.random() < 0.5:
            values = random.choice(COLORS, int(random.integers(1, 3)), replace=False).tolist()
            flags = {"negated": bool(random.integers(2))}
            if "g" in kinds:
                flags["missing"] = bool(random.integers(2))
            conditions.append(OneOf(2, values, **flags))
        elif "g" in kinds and random.random() < 0.3:
            conditions.append(Missing(2, negated=bool(random.integers(2))))
        if "m" in kinds and random.random() < 0.5:
            parts = [
                Interval(0, upper=float(random.integers(1, 9))),
                Interval(1, lower=0.5),
                OneOf(2, ["red"]),
            ]
            conditions.append(AtLeast(int(random.integers(1, 4)), parts))
        if "l" in kinds and random.random() < 0.4:
            conditions.append(
                Linear([(0, 0.5), (1, -1.25), (3, 2.0)], upper=float(random.normal()))
            )
        if not conditions:  # a rule that always holds makes later ones useless
            conditions.append(Interval(0, upper=6.5))
        output: Any = str(random.choice(["no", "yes", "maybe"]))
        statistics = RuleStatistics(
            int(random.integers(1, 50)), tuple(random.integers(0, 20, 3).tolist())
        )
        if regression:
            output = float(np.round(random.normal(), 2))
            if random.random() < 0.4:
                output = LinearOutput(output, [(0, 0.5), (3, -1.5)])
            statistics = None
        weight: Any = float(np.round(random.uniform(-0.5, 2), 2)) if "w" in kinds else 1.0
        if "w" in kinds and not regression and random.random() < 0.3:
            weight = LinearOutput(0.5, [(1, 0.25)])
        created.append(Rule(conditions, output, statistics, weight))
    return created


def rule_sets() -> dict[str, RuleSet]:
    """Return rule sets for every way to predict."""
    random = np.random.default_rng(11)
    classes = ["maybe", "no", "yes"]
    votes = {
        "classification": ("votes", "probabilities", "logistic"),
        "regression": ("mean", "sum"),
    }
    results = {}
    for task in ("classification", "regression"):
        regression = task == "regression"
        label: Any = 0.25 if regression else "no"
        common = {"task": task, "classes": None if regression else classes}
        fallback = {"domain": DOMAIN, "fallback": Fallback(label)}
        settings: dict[str, tuple[str, dict[str, Any]]] = {
            "ordered": ("", fallback),
            "ordered with all kinds": ("cml", fallback),
            "on missing values": ("cmg", fallback),
            "nearest on missing values": (
                "cg",
                {"domain": DOMAIN, "fallback": Fallback(label, "nearest")},
            ),
            "purest": ("c", {"ordered": False, **fallback}),
            "nearest": ("c", {"domain": DOMAIN, "fallback": Fallback(label, "nearest")}),
            "nearest without domain": ("", {"fallback": Fallback(label, "nearest")}),
            "abstain": ("", {"domain": DOMAIN, "fallback": Fallback(label, "abstain")}),
            "no fallback": ("c", {"domain": DOMAIN}),
        }
        for voting in votes[task]:
            settings[voting] = ("cmw", {"ordered": False, "voting": voting, **fallback})
        for name, (kinds, options) in settings.items():
            rules = random_rules(random, regression, kinds)
            results[f"{task}, {name}"] = RuleSet(rules, NAMES, **common, **options)
    return results


def random_rows(ruleset: RuleSet, random: np.random.Generator, count: int) -> list[list[Any]]:
    """Return rows in and around the domain, at bounds of rules, and with missing values."""
    bounds = ruleset.boxes
    rows: list[list[Any]] = []
    for _ in range(count):
        row: list[Any] = [
            float(random.uniform(-2, 12)),
            float(random.uniform(-6, 6)),
            str(random.choice([*COLORS, "violet"])),
            float(random.uniform(-0.2, 1.2)),
        ]
        for j in (0, 1, 3):
            cuts = np.concatenate([bounds.lower[:, j], bounds.upper[:, j]])
            cuts = cuts[np.isfinite(cuts)]
            if len(cuts) and random.random() < 0.3:
                row[j] = float(random.choice(cuts))
        gaps = 0.3 if "missing" in str(ruleset) else 0.06
        for j in range(4):
            if random.random() < gaps:
                row[j] = None
        rows.append(row)
    return rows


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return b == "NaN"
    if isinstance(a, float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


def as_dict(checked: Any) -> dict[str, Any]:
    return {"holds": checked.holds, "parts": [as_dict(part) for part in checked.parts]}


SETS = rule_sets()


@pytest.mark.parametrize("name", SETS)
def test_page_explains_rows_like_python(name, usual) -> None:
    ruleset = SETS[name]
    rows = random_rows(ruleset, np.random.default_rng(3), 60)
    outcome = usual.run(EXPLAIN, rule_view(ruleset, None), rows)
    counterfactuals = 0
    for row, explanation in zip(rows, outcome, strict=True):
        try:
            expected = ruleset.explain(row)
        except ValueError:  # no rule, no fallback
            assert explanation["prediction"] is None
            assert ruleset.fallback is None
            continue
        assert same(expected.prediction, explanation["prediction"]), row
        assert explanation["held"] == [rule.index for rule in expected.matching_rules], row
        assert explanation["rule"] == (-1 if expected.rule is None else expected.rule), row
        assert explanation["reason"] == expected.reason, row
        assert explanation["conditions"] == [as_dict(c) for c in expected.conditions], row
        if expected.reason == "vote" and ruleset.classes is not None:
            assert explanation["sums"] == pytest.approx(
                list(expected.sums.values()), rel=1e-12, abs=1e-15
            )
        other, counterfactual = expected.counterfactual, explanation["other"]
        assert (other is None) == (counterfactual is None), row
        if other is None:
            continue
        counterfactuals += 1
        assert counterfactual["distance"] == pytest.approx(other.distance, rel=1e-9), row
        changes = [[c.feature, c.before, c.after] for c in other.changes]
        assert counterfactual["changes"] == changes, row
        assert same(other.prediction, counterfactual["prediction"]), row
        assert counterfactual["rule"] == (-1 if other.rule is None else other.rule), row
        assert counterfactual["rules"] == list(other.rules), row
    assert counterfactuals > 5


def test_page_predicts_and_explains_a_typed_row(usual, runs) -> None:
    browser, rules = usual, runs.iris_rules()
    assert browser.texts("#row-form label") == ["petal length (cm)", "petal width (cm)"]
    length, width = (browser.element(f"#value-{j}") for j in (2, 3))
    for row in ((1.0, 0.2), (4.5, 1.5), (6.0, 2.5), (2.48, 1.7), (4.9, None)):
        for field, value in ((length, row[0]), (width, row[1])):
            field.clear()
            if value is not None:
                field.send_keys(str(value))
        expected = rules.explain([5.0, 3.0, *row])
        text = browser.wait_for(
            "#prediction", f"Nearest other prediction: {expected.counterfactual.prediction}"
        )
        assert f"Prediction: {expected.prediction}" in text
        if expected.rule is None:
            assert "by the fallback, because no rule holds" in text
        else:
            assert f"by rule {expected.rule + 1}, the first that holds" in text
        for change in expected.counterfactual.changes:
            before = "missing" if change.before is None else f"{change.before:g}"
            assert f"{change.feature} were {change.after:g} instead of {before}" in text
    browser.run("byId('next-row').click()")
    assert length.get_attribute("value") != "4.9"
    width.clear()
    width.send_keys("1e")  # an incomplete number
    assert "not a number" in browser.text("#prediction")
    assert width.get_attribute("aria-invalid") == "true"


def test_rule_cards_equal_python(usual, runs) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    report = rule_report(rules, iris.X, iris.y, assigned=True)
    cards = usual.run(
        "return [...document.querySelectorAll('#cards > .card')].map((card) => ({"
        "  premise: card.querySelector('.premise').textContent.trim().replace(/\\s+/g, ' '),"
        "  outcome: card.querySelector('.outcome strong')?.textContent,"
        "  record: card.querySelector('.record').textContent }))"
    )
    sentences = rules.to_sentences().splitlines()
    matches, assigned = rules.match(iris.X), rules.assign(iris.X)
    for i, card in enumerate(cards[:3]):
        # Same words as in the sentences, except for commas.
        words = sentences[i].split(".", 1)[1].split(", then")[0].strip()
        premise = card["premise"].replace("Else if", "Otherwise, if")
        assert premise.replace(",", "") == words.replace(",", "")
        assert card["outcome"] == rules.rules[i].output
        wrong = int((assigned == i).sum() - report["p"].iloc[i])
        errors = "all right" if not wrong else f"{wrong} wrong"
        assert card["record"] == f"predicts {(assigned == i).sum()} of 150 rows, {errors}"
        usual.run("document.querySelectorAll('.rule-details')[arguments[0]].open = true", i)
        figures = usual.wait_until(
            "const box = document.querySelectorAll('.rule-details')[arguments[0]]"
            "  .querySelector('.figures'); return box && Object.fromEntries("
            "  [...box.children].map((row) => [row.children[0].textContent,"
            "    row.children[1].textContent]))".replace("arguments[0]", str(i))
        )
        assert figures["Right"].startswith(f"{report['p'].iloc[i]:g} of ")
        assert float(figures["Right"].split()[-1]) == pytest.approx(
            report["precision"].iloc[i], abs=6e-4
        )
        assert float(figures["Share of its class"].split()[-1]) == pytest.approx(
            report["coverage"].iloc[i], abs=6e-4
        )
        assert float(figures["Combined measure"].split()[0]) == pytest.approx(
            report["c2"].iloc[i], abs=6e-4
        )
        assert figures["Could be chance"].startswith("no")
        assert figures["Covers"].startswith(f"{matches[:, i].sum()} rows")
    assert cards[3]["premise"] == sentences[3]
    alone = ~matches.any(axis=1)
    wrong = (rules.predict(iris.X) != iris.y)[alone].sum()
    assert cards[3]["record"] == f"predicts {alone.sum()} of 150 rows, {wrong} wrong"


def test_rows_of_a_rule_begin_with_its_own_columns(usual, runs) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    assigned = rules.assign(iris.X)
    for i in range(3):
        usual.run("document.querySelectorAll('.rule-details')[arguments[0]].open = true", i)
        usual.wait_until(f"return document.querySelectorAll('.rule-rows').length > {i} || null")
        heads, rows = usual.run(
            "const table = document.querySelectorAll('.rule-rows')[arguments[0]];"
            "const texts = (row) => [...row.cells].map((cell) => cell.textContent);"
            "return [texts(table.tHead.rows[0]), [...table.tBodies[0].rows].map(texts)]",
            i,
        )
        own_ordered = sorted({j for c in rules.rules[i].conditions for j in c.features})
        assert heads[1 : 1 + len(own_ordered)] == [iris.X.columns[j] for j in own_ordered]
        assert 10 <= len(rows) <= 30
        for cells in rows:
            cells = dict(zip(heads, cells, strict=True))
            row = int(cells["Row"]) - 1
            assert assigned[row] == i
            for j in (2, 3):
                assert float(cells[iris.X.columns[j]]) == iris.X.iloc[row, j]
            assert cells["species"] == iris.y.iloc[row]
            wrong = iris.y.iloc[row] != rules.rules[i].output
            assert cells["Rules predict"] == rules.rules[i].output + " ✗" * wrong
        assert (
            f"{len(rows)} of the {(assigned == i).sum()} rows"
            in usual.texts(".rule-rows caption")[i]
        )
    usual.run("document.querySelectorAll('.rule-rows')[2].querySelector('tbody button').click()")
    assert usual.run("return byId('value-2').value") == cells_of_first(usual, 2)


def cells_of_first(browser: Any, i: int) -> str:
    """Return petal length in the first row of the table of a rule."""
    return str(
        browser.run(
            "const row = document.querySelectorAll('.rule-rows')[arguments[0]].tBodies[0].rows[0];"
            "return row.querySelector('[data-label=\"petal length (cm)\"]').textContent",
            i,
        )
    )


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        ((0.0, 1.0), ["0.0", "1.0"]),
        ((False, True), ["False", "True"]),
        (("a, b", " c"), ['"a, b"', '" c"']),
        ((2**53, 2**53 + 1), ["9007199254740992", "9007199254740993"]),
    ],
)
def test_page_compares_labels_of_any_type(labels, texts, browser, tmp_path) -> None:
    X = np.array([[1.0], [2.0], [3.0], [math.inf], [-math.inf]])
    below, above = labels
    rules = RuleSet(
        [Rule([Interval(0, upper=2.5)], below), Rule([Interval(0, lower=2.5)], above)],
        ["x"],
        task="classification",
        classes=labels,
        fallback=Fallback(above),
    )
    y = [below, below, above, above, above]
    browser.open(write_report(rules, X, y, path=tmp_path / "page.html"))
    browser.run("document.querySelectorAll('.rule-details').forEach((one) => { one.open = true; })")
    browser.wait_until("return document.querySelectorAll('.rule-rows').length > 1 || null")
    first, second = texts
    messages = [["1", "1", first, first], ["2", "2", first, first], ["3", "3", second, second]]
    rows = "[...document.querySelectorAll('.rule-rows tbody tr')]"
    assert (
        browser.run(
            f"return {rows}.map((row) => [...row.cells].slice(0, 4).map((c) => c.textContent))"
        )
        == messages
    )


def test_quality_section_compares_classes_and_models(usual, runs) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    predicted = rules.predict(iris.X)
    rows = usual.run(
        "return [...document.querySelectorAll('#class-table tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    for name, count, result, trusted in rows:
        right = ((predicted == iris.y) & (iris.y == name)).sum()
        assert int(count) == (iris.y == name).sum()
        assert float(result.split()[0]) == pytest.approx(100 * right / 50, abs=0.51)
        assert float(trusted.split()[0]) == pytest.approx(
            100 * right / (predicted == name).sum(), abs=0.51
        )
    left_out = usual.texts("#left-out tbody td")
    met = rule_overlap(rules, iris.X)
    shares = [met.uncovered, met.overlap, met.negative_overlap]
    assert [float(text.split()[0]) for text in left_out[2:5]] == pytest.approx(
        [100 * share for share in shares], abs=0.51
    )
    loss = runs.random_candidates(20).means("loss")[0]
    beside = usual.texts(".bars .bar-value")
    assert [float(text.split()[0]) for text in beside] == [round(100 * (1 - loss)), 95, 33]
    assert usual.texts(".bars .bar-name") == ["These rules", "Model (knn)", "Always “setosa”"]
    assert usual.text(".tile strong") == str(round(100 * (1 - loss)))


def test_copied_texts_equal_exports_of_python(usual, runs) -> None:
    browser, rules = usual, runs.iris_rules()
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    browser.run("document.querySelectorAll('#exports details').forEach((d) => { d.open = true; })")
    expected = {"SQL": rules.to_sql(), "Python": rules.to_python(), "Prolog": rules.to_prolog()}
    for name, text in expected.items():
        assert (
            browser.run(
                "return document.querySelector(`[data-export=${arguments[0]}]`)"
                ".closest('details').querySelector('code').textContent",
                name,
            )
            == text
        )
        browser.element(f"[data-export={name}]").click()
        copied = browser.driver.execute_async_script(
            "const done = arguments[0];"
            "setTimeout(() => navigator.clipboard.readText().then(done), 50)"
        )
        assert copied == text
    # Without the modern interface, the old one is tried.
    browser.run(
        "Object.defineProperty(navigator, 'clipboard', { value: null, configurable: true })"
    )
    browser.element("[data-export=SQL]").click()
    assert "Copied." in browser.text("#exports")
    browser.run("delete navigator.clipboard")


NASTY = (
    "<script>window.hacked = 1</script>",
    "\"quotes' & <b>tags</b>",
    "</script><!--",
    "\u2028 line",
)


def test_names_cannot_become_code(opened, runs) -> None:
    from skescore.tuning import Candidate, Candidates

    plain = runs.random_candidates(3)
    candidates = Candidates(
        Candidate(NASTY[k], {NASTY[0]: NASTY[1], "img": "<img src=x onerror=hacked()>"}, k, c.folds)
        for k, c in enumerate(plain)
    )
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], NASTY[0]), Rule([OneOf(2, [NASTY[2], "x"])], NASTY[2])],
        list(NASTY),
        task="classification",
        fallback=Fallback(NASTY[1]),
        domain=Domain((0, 0, 0, 0), (1, 1, 2, 1), [(2, (NASTY[2], "x"))]),
    )
    about = {
        "name": NASTY[0],
        "source": NASTY[2],
        "checksum_sha256": "0",
        "target": NASTY[1],
        "features": list(NASTY),
    }
    browser = opened(candidates, rules, about=about)
    assert browser.run("return window.hacked || null") is None
    assert browser.complaints() == []
    assert browser.text("h1") == f"Rules for {NASTY[0]}"
    assert NASTY[0] in browser.text("#board")
    assert set(browser.texts("#row-form label")) == {NASTY[0], NASTY[2]}
    browser.run(
        "const s = byId('value-2'); s.value = '0'; s.dispatchEvent(new Event('input'));"
        "const n = byId('value-0'); n.value = '5'; n.dispatchEvent(new Event('input'));"
    )
    assert f"Prediction: {rules.predict([[5, 0, NASTY[2], 0]])[0]}" in browser.text("#prediction")
    browser.run("const { scatter } = page.tradeOff; scatter.showTip(scatter.data.points[0])")
    assert any(name in browser.text("#plot .tip") for name in NASTY)
    assert browser.run("return document.querySelectorAll('main img, main b').length") == 0


def test_page_expands_many_rules_on_demand_and_for_print(opened, runs) -> None:
    names = list(load_dataset("iris").X.columns)
    many = RuleSet(
        [
            Rule([Interval(2, k / 4, k / 4 + 0.25)], ("setosa", "versicolor")[k % 2])
            for k in range(30)
        ],
        names,
        task="classification",
        fallback=Fallback("virginica"),
    )
    browser = opened(rules=many)
    seen = (
        "return [...document.querySelectorAll('#cards > .card')]"
        ".filter((card) => card.offsetHeight).length"
    )
    assert browser.run(seen) == 12
    browser.command("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.run(seen) == 31
    browser.command("Emulation.setEmulatedMedia", media="screen", features=[])
    browser.run("document.querySelector('.more button').click()")
    assert browser.run(seen) == 31


def test_page_brackets_disjunctions(browser, tmp_path) -> None:
    young, short = Interval(0, upper=2, missing=True), OneOf(2, ["blue", "red"])
    rules = RuleSet(
        [Rule([young, short, Interval(3, 1)], "x"), Rule([young], "y")],
        NAMES,
        task="classification",
        fallback=Fallback("x"),
        domain=DOMAIN,
    )
    browser.open(write_report(rules, path=tmp_path / "rules.html"))
    messages = [" ".join(text.split()) for text in browser.texts("#cards .premise")[:2]]
    assert messages == [
        "If (a is at most 2 or missing) and d is above 1 and (color is blue or red)",
        "Else if a is at most 2 or missing",
    ]
    assert browser.texts("#cards .premise b") == ["a", "d", "color", "a"]


def test_page_shows_rules_alone_and_two_runs(browser, runs, tmp_path) -> None:
    iris, rules = load_dataset("iris"), runs.iris_rules()
    browser.open(write_report(rules, iris.X, iris.y, path=tmp_path / "rules.html"))
    right = (rules.predict(iris.X) == iris.y).sum()
    assert browser.text(".tile strong") == f"{100 * right / 150:.0f}"
    assert browser.run("return byId('trade-off').hidden && byId('all').hidden")
    assert browser.violations() == []
    assert f"Prediction: {rules.predict(iris.X.iloc[[0]])[0]}" in browser.text("#prediction")
    one = runs.write_run(tmp_path / "a")
    two = runs.write_run(tmp_path / "b", runs.random_candidates(9, seed=3), rules[:1], winner=2)
    browser.open(write_report([one, two]))
    assert browser.texts("h2 ~ .cards .number-sign") == ["1", "2", "3", "–", "1", "–"]
    figures = dict(
        browser.run(
            "return [...document.querySelectorAll('#versus tbody tr')]"
            ".map((row) => [row.cells[0].textContent, [row.cells[1].textContent,"
            "  row.cells[2].textContent]])"
        )
    )
    assert figures["Rules"] == ["3", "1"]
    scores = [
        runs.random_candidates(20).scores("ice").mean(axis=1)[0],
        runs.random_candidates(9, seed=3).scores("ice").mean(axis=1)[2],
    ]
    assert [float(text) for text in figures["ICE"]] == pytest.approx(scores, abs=6e-5)
    assert browser.violations() == []
    assert browser.complaints() == []


def test_page_states_that_parts_are_counted_on_a_sample(browser, tmp_path) -> None:
    X = np.arange(6000.0)[:, None]
    y = np.where((X[:, 0] < 1500) & (X[:, 0] % 2 == 0), "in", "out")
    rule = Rule([Interval(0, upper=100)], "in")
    rules = RuleSet([rule], ["a"], task="classification", fallback=Fallback("out"))
    browser.open(write_report(rules, X, y, path=tmp_path / "page.html"))
    for panel in ("#segments", "#left-out"):
        (hint,) = browser.texts(f"{panel} .hint")
        assert hint.endswith(" Counted on a sample of 5000 rows."), hint
    browser.open(write_report(rules, X[:900], y[:900], path=tmp_path / "small.html"))
    assert "sample" not in browser.text("#left-out .hint")
