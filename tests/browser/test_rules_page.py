"""Rules in the page predict, explain and are copied as those of Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skescore.datasets import load_dataset
from skescore.report import rule_view
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

NAMES = ["a", "b", "colour", "d"]
COLOURS = ("blue", "green", "red")
DOMAIN = Domain((0, -5, 0, 0), (10, 5, 3, 1), [(2, COLOURS)])
#: Scripts of the page, called on a rule set that came as JSON.
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
    """Rules with every kind of condition that `kinds` names."""
    made = []
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
            some = random.choice(COLOURS, int(random.integers(1, 3)), replace=False).tolist()
            flags = {"negated": bool(random.integers(2))}
            if "g" in kinds:
                flags["missing"] = bool(random.integers(2))
            conditions.append(OneOf(2, some, **flags))
        elif "g" in kinds and random.random() < 0.3:
            conditions.append(Missing(2, negated=bool(random.integers(2))))
        if "m" in kinds and random.random() < 0.5:
            parts = [
                Interval(0, upper=float(random.integers(1, 9))), Interval(1, lower=0.5),
                OneOf(2, ["red"]),
            ]  # fmt: skip
            conditions.append(AtLeast(int(random.integers(1, 4)), parts))
        if "l" in kinds and random.random() < 0.4:
            conditions.append(
                Linear([(0, 0.5), (1, -1.25), (3, 2.0)], upper=float(random.normal()))
            )
        if not conditions:  # a rule that always holds leaves the others nothing to say
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
        made.append(Rule(conditions, output, statistics, weight))
    return made


def rule_sets() -> dict[str, RuleSet]:
    """Rule sets of every way to predict."""
    random = np.random.default_rng(11)
    classes = ["maybe", "no", "yes"]
    votes = {
        "classification": ("votes", "probabilities", "logistic"),
        "regression": ("mean", "sum"),
    }
    found = {}
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
            found[f"{task}, {name}"] = RuleSet(rules, NAMES, **common, **options)
    return found


def random_rows(ruleset: RuleSet, random: np.random.Generator, count: int) -> list[list[Any]]:
    """Rows in and around the domain, at bounds of rules, and with missing values."""
    bounds = ruleset.boxes
    rows: list[list[Any]] = []
    for _ in range(count):
        row: list[Any] = [
            float(random.uniform(-2, 12)), float(random.uniform(-6, 6)),
            str(random.choice([*COLOURS, "violet"])), float(random.uniform(-0.2, 1.2)),
        ]  # fmt: skip
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
def test_rows_are_answered_and_explained_as_in_python(name, usual) -> None:
    ruleset = SETS[name]
    rows = random_rows(ruleset, np.random.default_rng(3), 60)
    found = usual.run(EXPLAIN, rule_view(ruleset, None), rows)
    counterfactuals = 0
    for row, said in zip(rows, found, strict=True):
        try:
            expected = ruleset.explain(row)
        except ValueError:  # no rule, no fallback
            assert said["prediction"] is None
            assert ruleset.fallback is None
            continue
        assert same(expected.prediction, said["prediction"]), row
        assert said["held"] == [held.index for held in expected.held], row
        assert said["rule"] == (-1 if expected.rule is None else expected.rule), row
        assert said["reason"] == expected.reason, row
        assert said["conditions"] == [as_dict(c) for c in expected.conditions], row
        if expected.reason == "vote" and ruleset.classes is not None:
            assert said["sums"] == pytest.approx(list(expected.sums.values()), rel=1e-12, abs=1e-15)
        other, told = expected.counterfactual, said["other"]
        assert (other is None) == (told is None), row
        if other is None:
            continue
        counterfactuals += 1
        assert told["distance"] == pytest.approx(other.distance, rel=1e-9), row
        changes = [[c.feature, c.before, c.after] for c in other.changes]
        assert told["changes"] == changes, row
        assert same(other.prediction, told["prediction"]), row
        assert told["rule"] == (-1 if other.rule is None else other.rule), row
        assert told["rules"] == list(other.rules), row
    assert counterfactuals > 5


def test_typing_a_row_tells_who_answers_and_what_would_change_it(usual, runs) -> None:
    browser, rules = usual, runs.iris_rules()
    assert browser.texts("#row-form label") == ["petal length (cm)", "petal width (cm)"]
    length, width = (browser.element(f"#value-{j}") for j in (2, 3))
    for row in ((1.0, 0.2), (4.5, 1.5), (6.0, 2.5), (2.48, 1.7), (4.9, None)):
        for field, value in ((length, row[0]), (width, row[1])):
            field.clear()
            if value is not None:
                field.send_keys(str(value))
        expected = rules.explain([5.0, 3.0, *row])
        said = browser.wait_for(
            "#prediction", f"Nearest other prediction: {expected.counterfactual.prediction}"
        )
        assert f"Prediction: {expected.prediction}" in said
        if expected.rule is None:
            assert "by the fallback, since no rule holds" in said
        else:
            assert f"by rule {expected.rule + 1}, the first that holds" in said
        for change in expected.counterfactual.changes:
            before = "missing" if change.before is None else f"{change.before:g}"
            assert f"{change.feature} were {change.after:g} instead of {before}" in said
    browser.run("byId('next-row').click()")
    assert length.get_attribute("value") != "4.9"
    width.clear()
    width.send_keys("1e")  # a number that is not finished
    assert "not a number" in browser.text("#prediction")
    assert width.get_attribute("aria-invalid") == "true"


def test_rules_and_their_measures_are_those_of_python(usual, runs) -> None:
    from skescore.datasets import load_dataset
    from skescore.metrics import rule_report

    iris, rules = load_dataset("iris"), runs.iris_rules()
    report = rule_report(rules, iris.X, iris.y, assigned=True)
    heads = usual.texts("#rule-table thead th")
    rows = usual.run(
        "return [...document.querySelectorAll('#rule-table tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert [row[0] for row in rows] == ["1", "2", "3"]
    held = rules.match(iris.X)
    for i, row in enumerate(rows):
        cells = dict(zip(heads, row, strict=True))
        assert cells["If"] == rules.rules[i].premise_text(rules.feature_names, rules.number)
        assert cells["Then"] == rules.rules[i].output
        assert int(cells["Holds for"]) == held[:, i].sum()
        assert int(cells["Assigned rows"]) == (rules.assign(iris.X) == i).sum()
        for title, column in (("Precision", "precision"), ("Coverage", "coverage"), ("C2", "c2")):
            assert float(cells[title]) == pytest.approx(report[column].iloc[i], abs=6e-4)
        assert cells["Significant"] == "yes"
        alone = held[:, i] & (held.sum(axis=1) == 1)
        assert int(cells["Only it"]) == alone.sum()
        assert float(cells["Overlap"]) == pytest.approx(
            1 - alone.sum() / held[:, i].sum(), abs=6e-4
        )
    assert "rows of 150 without a rule" in usual.text("#rule-closing")


def test_rows_of_a_rule_are_rows_of_the_data_that_it_holds_for(usual, runs) -> None:
    from skescore.datasets import load_dataset

    iris, rules = load_dataset("iris"), runs.iris_rules()
    held = rules.match(iris.X)
    for i in range(3):
        usual.run("document.querySelectorAll('#rule-table button')[arguments[0]].click()", i)
        rows = usual.run(
            "return [...document.querySelectorAll('#rule-rows tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        assert 10 <= len(rows) <= 30
        for number, length, width, species, answer, _ in rows:
            row = int(number) - 1
            assert held[row, i]
            assert [float(length), float(width)] == iris.X.iloc[row, 2:].tolist()
            assert species == iris.y.iloc[row]
            assert answer == rules.predict(iris.X.iloc[[row]])[0]
        assert f"{len(rows)} of the {held[:, i].sum()} rows" in usual.text("#rule-rows caption")
    usual.run("document.querySelector('#rule-rows tbody button').click()")
    assert usual.run("return byId('value-2').value") == rows[0][1]


def test_copied_texts_are_the_exports_of_python(usual, runs) -> None:
    browser, rules = usual, runs.iris_rules()
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    browser.run("document.querySelectorAll('#exports details').forEach((d) => { d.open = true; })")
    expected = {"SQL": rules.to_sql(), "Python": rules.to_python(), "Prolog": rules.to_prolog()}
    for name, text in expected.items():
        assert browser.run(
            "return document.querySelector(`[data-export=${arguments[0]}]`)"
            ".closest('details').querySelector('code').textContent",
            name,
        ) == text  # fmt: skip
        browser.element(f"[data-export={name}]").click()
        copied = browser.driver.execute_async_script(
            "const done = arguments[0];"
            "setTimeout(() => navigator.clipboard.readText().then(done), 50)"
        )
        assert copied == text
    # Without the modern way, the old one is tried.
    browser.run(
        "Object.defineProperty(navigator, 'clipboard', { value: null, configurable: true })"
    )
    browser.element("[data-export=SQL]").click()
    assert "Copied." in browser.text("#exports")
    browser.run("delete navigator.clipboard")


NASTY = (
    "<script>window.hacked = 1</script>", "\"quotes' & <b>tags</b>", "</script><!--", "\u2028 line",
)  # fmt: skip


def test_names_cannot_become_code(opened, runs) -> None:
    from skescore.tuning import Candidate, Candidates

    plain = runs.random_candidates(3)
    candidates = Candidates(
        Candidate(NASTY[k], {NASTY[0]: NASTY[1], "img": "<img src=x onerror=hacked()>"}, k, c.folds)
        for k, c in enumerate(plain)
    )
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], NASTY[0]), Rule([OneOf(2, [NASTY[2], "x"])], NASTY[2])],
        list(NASTY), task="classification", fallback=Fallback(NASTY[1]),
        domain=Domain((0, 0, 0, 0), (1, 1, 2, 1), [(2, (NASTY[2], "x"))]),
    )  # fmt: skip
    about = {
        "name": NASTY[0], "source": NASTY[2], "checksum_sha256": "0", "target": NASTY[1],
        "features": list(NASTY),
    }  # fmt: skip
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
    browser.run(
        "byId('plot').emit('plotly_hover', { points: [{ customdata: 0 }],"
        "  event: { clientX: 300, clientY: 300 } })"
    )
    assert NASTY[0] in browser.text("#tip")
    assert "<img src=x onerror=hacked()>" in browser.text("#tip")
    assert browser.run("return document.querySelectorAll('main img, main b').length") == 0


def test_linear_formulae_and_all_measures_fit_beside_each_other(opened, runs) -> None:
    """At the width of a laptop no column of the rules is cut off, and no word broken."""
    names = load_dataset("iris").X.columns
    terms = [(j, 0.1234 * (j + 1)) for j in range(4)]
    rules = RuleSet(
        [
            Rule([Interval(2, upper=2.5)], LinearOutput(1.5, terms)),
            Rule([Interval(2, lower=2.5)], LinearOutput(-2.5, terms)),
        ],
        list(names),
        task="regression",
        fallback=Fallback(1.0),
    )
    view = rule_view(rules, None)
    browser = opened()
    # Iris is no regression: the page is given the measures of its own rules for these.
    found = browser.settled(
        """
        const rules = new Rules({ ...page.content.views["0"], ...arguments[0] });
        rules.view.report = Object.fromEntries(Object.entries(page.rules.view.report)
          .map(([name, values]) => [name, Array.isArray(values) ? values.slice(0, 2) : values]));
        rules.view.holds = [347, 95];
        rules.view.assigned = [347, 95];
        showRules(rules, page.content.rows, true, "gridrex");
        //then
        const table = document.getElementById("rule-table"), box = table.parentElement;
        const lines = (cell) => cell.getClientRects().length && cell.offsetHeight;
        return { wide: table.scrollWidth, room: box.clientWidth,
                 heads: [...table.tHead.rows[0].cells].map((cell) => cell.textContent),
                 buttons: [...table.querySelectorAll("button")].map((b) => b.offsetHeight),
                 tall: lines(table.tBodies[0].rows[0].cells[2]) };
        """,
        view,
    )
    assert {"Then", "Significant", "Rows"} <= set(found["heads"])
    assert found["wide"] <= found["room"]
    assert found["tall"] < 250
    assert max(found["buttons"]) < 40  # one line
