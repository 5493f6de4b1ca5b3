"""Figures of the page of a run, compared with those that its rows and predictions give."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
from recomputed import (
    Run,
    condition_holds,
    explained,
    fire,
    ice,
    is_rounded,
    paired_means,
    paired_shares,
    predict,
    rule_of_rows,
    share_equal,
    weighted_f1,
)

__all__ = ["PageFigures"]

#: Numbers of texts, without those in names.
_FIGURE = r"([<>]? ?-?\d[\d.]*(?:e-?\d+)?)"
#: Figures that may be undefined.
_VALUE = r"(–|[<>]? ?-?\d[\d.]*(?:e-?\d+)?)"
#: Parts of the page whose numbers are no figures of the rules: axes, weights, names of columns and
#: settings, values of rows, and conditions, which are compared with the rules as a whole.
OTHER_NUMBERS = (
    *("h1", "#headline b", "#plot", "#formula", ".premise", ".outcome", ".number-sign"),
    *(".glance-number", ".glance-output", "#about > p", "#about dl:not(#facts)"),
    *("#failures", "td.params", "td.seconds", "#warnings", "#edit ol", "select"),
    *(
        ".condition",
        "button.choose",
        "label",
        "#announcer",
        ".rule-details summary",
    ),
)
#: Notes on what the page does not hold.
OWN_NOTES = ("This page leaves out some rule sets of the front, to limit its size.",)
#: Returns the texts with digits outside of the given elements.
_REMAINING = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), texts = [];
while (walker.nextNode()) {
  const { data, parentElement } = walker.currentNode;
  if (!/[0-9]/.test(data) || parentElement.closest("script, style, noscript, [hidden]")) continue;
  if (parentElement.closest(arguments[0])) continue;
  texts.push(parentElement.closest("p, li, td, th, dd, figcaption, summary, div").textContent);
}
return texts;
"""


class PageFigures:
    """Checks the figures of an opened page of a run.

    Parameters
    ----------
    browser : Browser
        Shows the page.
    run : Run
        The run of the page.
    """

    def __init__(self, browser: Any, run: Run) -> None:
        self.browser, self.run, self.n_checked = browser, run, 0
        self.ones = np.ones(len(run.y))
        self.scale = 100 if run.is_classification else 1
        self.assigned, self.predicted = rule_of_rows(run.rules, run.X), predict(run.rules, run.X)
        record = run.record["best"]
        self.own = run.held_out(record["extractor"], record["params"])
        self.checked: list[str] = []

    def equal(self, text: str, value: float) -> None:
        assert is_rounded(text, value), (text, value)
        self.n_checked += 1

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements, whose numbers are checked by the caller."""
        self.checked.append(selector)
        return [str(text) for text in self.browser.texts(selector)]

    def figures(self, text: str, pattern: str, values: list[float]) -> None:
        """Compare the groups of a pattern in a text with values."""
        found = re.search(pattern, text)
        assert found, (pattern, text)
        for group, value in zip(found.groups(), values, strict=True):
            if group in (None, "–"):
                assert math.isnan(value), text
            else:
                self.equal(group, value)

    def check(self) -> None:
        self.check_tiles()
        self.check_glance()
        self.check_cards()
        self.check_panels()
        self.check_alternatives()
        self.check_board()
        self.check_chosen()
        self.check_tried_row()
        self.check_editor()
        self.check_exports()
        self.check_about()
        self.check_notes()
        self.check_hints()
        known = ", ".join([*OTHER_NUMBERS, *self.checked])
        unchecked = self.browser.run(_REMAINING, known)
        assert unchecked == [], unchecked

    # --- figures of all rules -------------------------------------------------------------------

    def check_tiles(self) -> None:
        tiles = self.texts("#tiles .tile")
        (self.check_shares if self.run.is_classification else self.check_errors)(tiles[0], tiles[1])
        assert not any("new rows" in text for text in tiles)
        total = len(self.run.y)
        without = 100 * float(np.mean(self.assigned < 0))
        pattern = (
            rf"^{_FIGURE} of 100rows are not covered by a ruleof all {_FIGURE} rows of the table"
        )
        self.figures(tiles[2], pattern, [without, total])
        names = [re.match(r"(.*?)(?=using|$)", tiles[3])[1]]
        self.figures(names[0], rf"^{_FIGURE}\s*rules?$", [len(self.run.rules["rules"])])
        parts = [part for rule in self.run.rules["rules"] for part in rule["if"]]
        parts = [inner for part in parts for inner in part.get("conditions", [part])]
        used = {part["feature"] for part in parts}
        for rule in self.run.rules["rules"]:
            if isinstance(rule["then"], dict):
                used |= {term[0] for term in rule["then"]["terms"] if term[1]}
        columns = self.run.X.shape[1]
        self.figures(tiles[3], rf"using {_FIGURE} of {_FIGURE} columns?", [len(used), columns])

    def check_shares(self, right: str, agrees: str) -> None:
        run, own = self.run, self.own
        fidelity = 100 * own["fidelity"]
        if run.test is not None:
            rules, box, faithful = self.on_test()
            held_out = rf"held-out rows.*?: {_FIGURE} · model on test rows: {_FIGURE}$"
            values = [100 * rules, len(run.test.y), 100 * own["correctness"], 100 * box]
            pattern = rf"^{_FIGURE} %of {_FIGURE} test rows are right \(data\){held_out}"
            self.figures(right, pattern, values)
            pattern = rf"^{_FIGURE} %of {_FIGURE} test rows: agree with the model.*: {_FIGURE}$"
            self.figures(agrees, pattern, [100 * faithful, len(run.test.y), fidelity])
        else:
            self.figures(right, rf"^{_FIGURE} of 100held-out", [100 * own["correctness"]])
            if always := re.search(rf"always .* \(all rows\): {_FIGURE}$", right):
                self.equal(always[1], 100 * self.constant_share())
            if box := re.search(rf"model[^:]*: {_FIGURE}", right):
                self.equal(box[1], 100 * run.black_box_quality()["accuracy"])
                assert ("on which it may have been trained" in right) == (not run.trained_here)
            self.figures(agrees, rf"^{_FIGURE} of 100agree with the model", [fidelity])
            assert ("generated rows" in agrees) == (not run.trained_here)
        assert ("with weighted rows" in right) == run.is_weighted

    def check_errors(self, error: str, agrees: str) -> None:
        run, own = self.run, self.own
        fidelity = own["fidelity"]
        by_model = run.record["search"]["reference"] == "black-box"
        mean_error = own["model_error" if by_model else "error"]
        if run.test is not None:
            rules, box, faithful = self.on_test()
            notes = rf".*: ± {_FIGURE} · model on test rows: {_FIGURE}$"
            pattern = rf"^{_FIGURE}R² on {_FIGURE} test rows \(data\){notes}"
            self.figures(error, pattern, [rules, len(run.test.y), mean_error, box])
            pattern = rf"^{_FIGURE}R² against the model on {_FIGURE} test rows.*: {_FIGURE}$"
            self.figures(agrees, pattern, [faithful, len(run.test.y), fidelity])
            return
        self.figures(error, rf"^± {_FIGURE}average ", [mean_error])
        assert ("difference from the model" in error) == by_model
        if always := re.search(rf"always the mean \(all rows\): ± {_FIGURE}$", error):
            self.equal(always[1], float(np.mean(np.abs(run.y - run.y.mean()))))
        self.figures(agrees, rf"^{_FIGURE}R² against the model", [fidelity])

    def on_test(self) -> tuple[float, float, float]:
        """Return correctness of rules and black box on the rows of --test, and fidelity."""
        test = self.run.test
        assert test is not None
        ones = np.ones(len(test.y))
        predicted, answers = (
            predict(self.run.rules, test.X),
            np.asarray(self.run.model.predict(test.X)),
        )
        return (
            test.agreement(test.y, predicted, ones),
            test.agreement(test.y, answers, ones),
            test.agreement(answers, predicted, ones),
        )

    def constant_share(self) -> float:
        """Return the largest share of a class, as rows are weighed."""
        run = self.run
        return max(run.weights[run.y == label].sum() for label in set(run.y)) / run.weights.sum()

    # --- figures of each rule -------------------------------------------------------------------

    def check_glance(self) -> None:
        lines = self.texts("#glance .glance-text")
        caption = self.texts("#glance figcaption")
        if not lines:
            return
        self.figures(caption[0], rf"All {_FIGURE} rows of the table", [len(self.run.y)])
        n_rules = len(self.run.rules["rules"])
        for k, line in enumerate(lines):
            own = self.assigned == (k if k < n_rules else -1)
            if self.run.is_classification:
                right = int((self.run.y[own] == self.predicted[own]).sum())
                assert (
                    line
                    == f"{right} of {own.sum()} row{'' if own.sum() == 1 else 's'} right (data)"
                )
            elif own.any():
                median = float(np.median(self.run.y[own]))
                pattern = rf"^{_FIGURE} rows?, median {_FIGURE} \(data\)$"
                self.figures(line, pattern, [int(own.sum()), median])
            self.n_checked += 1

    def check_cards(self) -> None:
        self.browser.run(
            "document.querySelectorAll('.rule-details').forEach((e) => { e.open = true; })"
        )
        self.browser.settled("//then return 1")
        records = self.texts("#cards .card:not(.otherwise) .record:not(.weighted-record)")
        facts = self.browser.run(
            "return [...document.querySelectorAll('#cards .rule-more')].map((box) => "
            "[...box.querySelectorAll('dl.figures > div')].map((one) => one.textContent))"
        )
        self.checked += ["dl.figures", "#cards .rule-more .hint", "#cards caption"]
        weighted = self.run.statistics(self.run.rules)
        assert len(records) == len(weighted) == len(self.run.rules["rules"])
        for k, record in enumerate(records):
            own = self.assigned == k
            pattern = rf"predicts {_FIGURE} of {_FIGURE} rows"
            self.figures(record, pattern, [int(own.sum()), len(self.run.y)])
            check = self.check_class_card if self.run.is_classification else self.check_number_card
            check(record, own, weighted[k])
        self.check_weighted_cards(weighted)
        for own, measures in zip(facts, self.run.rule_measures(), strict=True):
            self.check_facts(own, measures)
        self.check_rows_of_rules()
        self.check_otherwise()

    def check_class_card(self, record: str, own: np.ndarray, weighted: dict[str, float]) -> None:
        wrong = int(own.sum()) - int((self.run.y[own] == self.predicted[own]).sum())
        assert f"{wrong} wrong" in record or (not wrong and "right" in record), record
        if "agree with the model" in record and " queried rows agree" not in record:
            self.figures(record, rf"· {_FIGURE} % agree with the model", [100 * weighted["agree"]])
        # A share of the weight must not stand beside counts of rows.
        assert "weighed" not in record
        assert not (self.run.is_weighted and "agree" in record)

    def check_weighted_cards(self, weighted: list[dict[str, float]]) -> None:
        """Check the lines of rules that count rows by their weights."""
        records = self.texts("#cards .card:not(.otherwise) .weighted-record")
        assert len(records) == (len(weighted) if self.run.is_weighted else 0)
        for record, own in zip(records, weighted, strict=False):
            pattern = rf"^with weights: {_FIGURE} weighted rows?, {_FIGURE} % agree with the"
            if " queried rows agree" in record:
                self.figures(record, rf": {_FIGURE} weighted rows?,", [own["rows"]])
            else:
                self.figures(record, pattern, [own["rows"], 100 * own["agree"]])
            self.figures(record, rf", {_FIGURE} % right \(data\)$", [100 * own["right"]])

    def check_number_card(self, record: str, own: np.ndarray, weighted: dict[str, float]) -> None:
        if own.any():
            pattern = rf"mean error {_FIGURE} \(data\), {_FIGURE} \(model"
            self.figures(record, pattern, [weighted["target_error"], weighted["model_error"]])

    def check_facts(self, facts: list[str], own: dict[str, float]) -> None:
        """Check the measures of a rule that are shown on demand."""
        is_classification = self.run.is_classification
        near = "" if is_classification else " near its value"
        whose = "of its class" if is_classification else "of the rows near its value"
        names = ["Right", f"Share {whose}", "Could be chance", "Combined measure"]
        names += [] if self.run.rules["ordered"] else ["Covered by no other rule"]
        assert len(facts) == len(names) + 1, facts
        for fact, name in zip(facts, [*names, "Covers"], strict=True):
            assert fact.startswith(name), fact
        right, finds, chance, both = (
            fact.removeprefix(name) for fact, name in zip(facts[:4], names[:4], strict=True)
        )
        values = [own["p"], own["rows"], own["precision"]]
        self.figures(right, rf"^{_FIGURE} of {_FIGURE}{near} precision {_VALUE}$", values)
        pattern = rf"^(?:–|{_FIGURE}) of 100 coverage {_VALUE}$"
        self.figures(finds, pattern, [100 * own["coverage"], own["coverage"]])
        self.figures(chance, rf"corrected p-value {_VALUE}$", [own["fdr"]])
        assert chance.startswith("no") == (own["fdr"] <= 0.05), (chance, own)
        self.figures(both, rf"^{_VALUE} C2, at most 1$", [own["c2"]])
        if not self.run.rules["ordered"]:
            shared = 1 - own["unique_rows"] / own["holds"] if own["holds"] else math.nan
            pattern = rf"^Covered by no other rule{_FIGURE} rows? overlap {_VALUE}$"
            self.figures(facts[4], pattern, [own["unique_rows"], shared])
        self.figures(facts[-1], rf"^Covers{_FIGURE} rows?", [own["holds"]])

    def check_rows_of_rules(self) -> None:
        """Compare the tables of rows below each rule with the data and own predictions."""
        tables = self.browser.run(
            "return [...document.querySelectorAll('table.rule-rows')].map((table) => "
            "[table.caption.textContent, [...table.tHead.rows[0].cells].map((c) => c.textContent), "
            "...[...table.tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent))])"
        )
        self.checked.append("table.rule-rows")
        run = self.run
        assert len(tables) == len(run.rules["rules"])
        for k, (caption, heads, *rows) in enumerate(tables):
            total = int((self.assigned == k).sum())
            pattern = rf"^{_FIGURE} of the {_FIGURE} rows? that rule {_FIGURE} predicts"
            self.figures(caption, pattern, [len(rows), total, k + 1])
            said_at = heads.index("Rules predict")
            for cells in rows:
                row = int(cells[0]) - 1
                assert self.assigned[row] == k
                said = cells[said_at].removesuffix(" ✗")
                self.same(cells[said_at - 1], run.y[row])
                self.same(said, self.predicted[row])
                is_wrong = run.is_classification and run.y[row] != self.predicted[row]
                assert cells[said_at].endswith(" ✗") == is_wrong
                for name, text in zip(heads[1:], cells[1:], strict=True):
                    if name in run.X:
                        self.same(text, run.X[name].iloc[row])

    def same(self, text: str, value: Any) -> None:
        """Compare a text with a number or label."""
        if isinstance(value, str):
            assert text == value
        else:
            self.equal(text, float(value))
        self.n_checked += 1

    def check_otherwise(self) -> None:
        for text in self.texts("#cards .otherwise .record"):
            uncovered = self.assigned < 0
            if uncovered.any():
                self.figures(text, rf"predicts {_FIGURE} of", [int(uncovered.sum())])
                if match := re.search(r", (\d+) wrong", text):
                    self.equal(match[1], (self.run.y != self.predicted)[uncovered].sum())

    # --- panels, alternatives, leaderboard ------------------------------------------------------

    def check_panels(self) -> None:
        run, own = self.run, self.own
        texts = dict.fromkeys(("#right-panel", "#agreement-panel", "#test-panel"), "")
        for selector in texts:
            texts[selector] = "\n".join(self.texts(f"{selector} li, {selector} p, {selector} h3"))
        right, agrees, on_test = texts.values()
        unit = " of 100" if run.is_classification else " %"
        name = "correctness" if run.is_classification else "explained"
        if right and not (right.startswith("Share of the variance") and own[name] < 0):
            self.figures(right, rf"These rules{_FIGURE}{unit}", [100 * own[name]])
        quality = run.black_box_quality()["accuracy" if run.is_classification else "R²"]
        if match := re.search(rf"Model[^\n]*?{_FIGURE}{unit}(?:\n|$)", right):
            self.equal(match[1], 100 * quality)
        if match := re.search(rf"Always “[^\n]*”{_FIGURE} of 100", right):
            self.equal(match[1], 100 * self.constant_share())
        assert ("may have been trained" in right) == (not run.trained_here or not right)
        fidelity = own["fidelity"]
        if agrees:
            before = "These rules" if run.is_classification else "These rulesR² "
            self.figures(agrees, rf"{before}{_FIGURE}", [self.scale * fidelity])
        if run.test is not None:
            box, middle = "Model [^\n]*: right [(]data[)](?:R² )?", "(?:R² )?"
            pattern = (
                rf"right \(data\){middle}{_FIGURE}[^$]*{box}{_FIGURE}[^$]*agree with the model"
                rf"{middle}{_FIGURE}"
            )
            self.figures(on_test, pattern, [self.scale * value for value in self.on_test()])
            covered = 100 * float(np.mean(rule_of_rows(run.rules, run.test.X) >= 0))
            self.figures(on_test, rf"{_FIGURE} of 100 are covered by a rule", [covered])
        self.check_classes()
        self.check_segments()
        self.check_limits()

    def check_classes(self) -> None:
        rows = self.browser.run(
            "return [...document.querySelectorAll('#class-table tbody tr')].map((row) => "
            "[...row.children].map((cell) => cell.textContent))"
        )
        self.checked += ["#class-table", "#class-table + p", ".panel:has(#class-table) > p"]
        for name, count, found, correct in rows:
            truth = np.array([str(label) == name for label in self.run.y])
            said = np.array([str(label) == name for label in self.predicted])
            self.equal(count, truth.sum())
            both = int((truth & said).sum())
            self.figures(found, rf"^{_FIGURE} of 100$", [100 * both / truth.sum()])
            if said.any():
                self.figures(correct, rf"^{_FIGURE} of 100$", [100 * both / said.sum()])
            else:
                assert correct == "never predicted"

    def check_segments(self) -> None:
        """Check the error of all rows and those of rules; other segments are conditions of rows."""
        hints = self.texts("#segments > p.hint")
        errors = self.run.y != self.predicted
        if not self.run.is_classification:
            errors = np.abs(self.run.y - self.predicted)
        for hint in hints:
            mean = float(np.mean(errors)) * self.scale
            pattern = rf"all {_FIGURE} rows: (?:average error )?{_FIGURE}"
            self.figures(hint, pattern, [len(self.run.y), mean])
        segments = self.browser.run(
            "return [...document.querySelectorAll('#segments li')].map((one) => "
            "[...one.children].map((part) => part.textContent))"
        )
        self.checked.append("#segments li")
        for name, error, n_rows in segments:
            rule = re.match(r"rule (\d+) predicts", name)
            own = self.assigned == int(rule[1]) - 1 if rule else self.rows_of_segment(name)
            mean = float(np.mean(errors[own])) * self.scale
            self.figures(error, rf"^(?:average error )?{_FIGURE}(?: of 100 wrong)?$", [mean])
            self.figures(n_rows, rf"^ {_FIGURE} rows?$", [int(own.sum())])

    def rows_of_segment(self, text: str) -> np.ndarray:
        """Return the rows of a segment that is written as a condition on one column."""
        name = max((n for n in self.run.X if text.startswith(n)), key=len)
        column = self.run.X[name]
        if match := re.search(r"above ([\d.]+?) and at most ([\d.]+)", text):
            return ((column > float(match[1])) & (column <= float(match[2]))).to_numpy()
        if match := re.search(r"above ([\d.]+)", text):
            return (column > float(match[1])).to_numpy()
        if match := re.search(r"at most ([\d.]+)", text):
            return (column <= float(match[1])).to_numpy()
        return np.array([text.startswith(f"{name} is {value}") for value in column])

    def check_limits(self) -> None:
        """Check the shares of rows without a rule and with several ones."""
        rows = self.browser.run(
            "return [...document.querySelectorAll('#left-out tbody tr')].map((row) => "
            "[...row.children].map((cell) => cell.textContent))"
        )
        self.checked.append("#left-out")
        rules = self.run.rules["rules"]
        holds = np.array(
            [
                np.all([condition_holds(c, self.run.X) for c in rule["if"]], axis=0)
                if rule["if"]
                else self.ones > 0
                for rule in rules
            ]
        )
        several = float(np.mean(holds.sum(axis=0) > 1))
        for text, value in rows:
            if text == "rows without a rule":
                self.figures(value, rf"^{_FIGURE} of", [100 * float(np.mean(self.assigned < 0))])
            elif text == "rows that several rules cover":
                self.figures(value, rf"^{_FIGURE} of", [100 * several])

    def check_alternatives(self) -> None:
        lists = self.run.record["alternatives"]["lists"]
        buttons = self.texts("#alternatives button")
        for button, record in zip(buttons, lists, strict=True):
            values = [record["n_rules"], record["correctness"], record["fidelity"]]
            own = self.run.held_out(record["extractor"], record["params"])
            assert own["correctness"] == record["correctness"] or np.isclose(
                own["correctness"], record["correctness"], rtol=1e-9
            )
            numbers = re.search(
                rf"{_FIGURE} rules? · (?:R² )?{_FIGURE}[^·]*· (?:R² )?{_FIGURE}", button
            )
            assert numbers, button
            self.equal(numbers[1], values[0])
            self.equal(numbers[2], self.scale * values[1])
            self.equal(numbers[3], self.scale * values[2])
            gain = re.search(
                rf"with {_FIGURE} more rules?: (?:R² )?{_FIGURE}[^·]*· (?:R² )?{_FIGURE}", button
            )
            assert bool(gain) == (record["next"] is not None)
            if gain:
                self.equal(gain[1], round(record["next"]["n_rules"] - record["n_rules"]))
                self.equal(gain[2], self.scale * record["next"]["correctness"])
                self.equal(gain[3], self.scale * record["next"]["fidelity"])

    def check_board(self) -> None:
        """Compare the leaderboard of the page with that of the run."""
        self.browser.run("if (!byId('show-all').hidden) byId('show-all').click()")
        heads, *rows = self.browser.run(
            "return [...document.querySelectorAll('#board tr')].map((row) => "
            "[...row.children].map((cell) => cell.textContent))"
        )
        self.checked += ["#board", "#show-all", "#board-print", "#chosen-body"]
        board = self.run.board[self.run.board["state"] == "complete"]
        assert len(rows) == len(board)
        expected = (self.run.record["search"]["performance"] or "weighted F1").replace("_", " ")
        performance = expected if self.run.is_classification else "R²"
        names = {"Rules": "n_rules", "space covered": "completeness_volume", "±": "score_std"}
        names |= {"rows covered": "completeness_instances", "Fidelity": "fidelity"}
        names |= {heads[2]: "score", performance: "performance"}
        shown = [dict(zip(heads, row, strict=True)) for row in rows]
        assert performance in heads
        assert "F1" not in heads
        for _, row in board.iterrows():
            assert any(
                all(
                    is_rounded(own[head], abs(row[name]) if name == "score" else row[name])
                    for head, name in names.items()
                    if head in own
                )
                for own in shown
            ), row.to_dict()
            self.n_checked += len(names)

    def check_chosen(self) -> None:
        """Check the figures of the chosen candidate, also fold by fold, and the sentence on it."""
        run, record = self.run, self.run.record["best"]
        folds = run.on_folds(record["extractor"], record["params"])
        if run.record["search"]["scoring"] == "fidelity":
            folds["score"] = folds["fidelity"]
        texts = self.browser.run(
            "return [...document.querySelectorAll('#chosen-body dl.facts > div')].map((one) => "
            "[...one.children].map((part) => part.textContent))"
        )
        by_name = dict(texts)
        heading = "ICE" if "ICE" in by_name else "fidelity"
        n_candidates = int((run.board["state"] == "complete").sum())
        pattern = rf"^{_FIGURE} ± {_FIGURE}, rank \d+ of {_FIGURE}$"
        mean, deviation = np.mean(folds["score"]), np.std(folds["score"])
        values = [float(mean), float(deviation), n_candidates]
        is_sampled = min(folds["completeness_volume"]) < 1
        if not is_sampled:  # else the volume is only estimated here, and compared below
            self.figures(by_name[heading], pattern, values)
        names = ("performance", "loss", "n_rules")
        held_out = next(text for name, text in texts if name.endswith("rows"))
        pattern = rf" {_FIGURE}, [^\d]*?(?:1 − accuracy |error ){_FIGURE}, {_FIGURE} rules"
        self.figures(held_out, pattern, [float(np.mean(folds[name])) for name in names])
        covered = float(np.mean(folds["completeness_instances"]))
        self.figures(held_out, rf"and {_FIGURE} by rows$", [covered])
        self.check_folds(folds, is_sampled)
        verdict = self.texts("#verdict")[0]
        assert "No candidate" in verdict or self.browser.texts("#verdict strong")
        self.checked += ["#chosen-body dl.facts", "#chosen-body table"]

    def check_folds(self, folds: dict[str, list[float]], is_sampled: bool) -> None:
        """Compare the table of the folds with the figures of each fold."""
        rows = self.browser.run(
            "return [...document.querySelectorAll('#chosen-body tbody tr')].map((row) => "
            "[...row.cells].map((cell) => cell.textContent))"
        )
        names = ["score", "performance", "loss", "n_rules"]
        names += ["completeness_volume", "completeness_instances"]
        for (heading, *texts), name in zip(rows, names, strict=True):
            for text, value in zip(texts, folds[name], strict=True):
                if is_sampled and name in ("score", "completeness_volume"):
                    assert abs(float(text) - value) < 0.06, (heading, text, value)
                else:
                    self.equal(text, value)

    def check_tried_row(self) -> None:
        """Check predictions of sample rows, and those of the nearest changes."""
        self.checked.append("#try")
        n_rows = self.browser.run("return tryRow.rows.numbers.length")
        for _ in range(min(n_rows, 6)):
            row = self.browser.run("return tryRow.read()")
            text = self.browser.text("#prediction .verdict")
            frame = self.frame_of(row)
            rule, said = rule_of_rows(self.run.rules, frame)[0], predict(self.run.rules, frame)[0]
            match = re.match(r"Prediction: (.*), by (?:rule (\d+)|the fallback)", text)
            assert match, text
            self.same(match[1], said)
            assert int(match[2] or 0) - 1 == rule
            change = self.browser.run("return tryRow.explanation.counterfactual")
            if change:
                changed = list(row)
                for one in change["changes"]:
                    changed[one["feature"]] = one["after"]
                frame = self.frame_of(changed)
                assert rule_of_rows(self.run.rules, frame)[0] == change["rule"]
                other = predict(self.run.rules, frame)[0]
                assert other != said
                nearest = next(
                    line for line in self.browser.texts("#prediction p") if "Nearest" in line
                )
                match = re.match(r"Nearest other prediction: (.*?)(?:, by rule \d+)?, if", nearest)
                self.same(match[1], other)
            self.browser.settled("byId('next-row').click() //then return 1")

    def frame_of(self, row: list[Any]) -> pd.DataFrame:
        """Return a row of the page as a table with the types of the data."""
        return pd.DataFrame([row], columns=self.run.X.columns).astype(
            dict.fromkeys(self.run.X.select_dtypes("number"), float)
        )

    def check_editor(self) -> None:
        """Check the figures of the rules as they are, and after a rule was dropped."""
        rows = self.editor_rows()
        for before, now, change, interval in rows.values():
            assert (before, change, interval) == (now, "0", "")
        self.compare_editor({name: one[0] for name, one in rows.items()}, self.run.rules)
        assert self.texts(".edit-table th[scope=col]")[-1] == "95 % interval of the change"
        caption = self.texts(".edit-table caption")[0]
        assert ("each row counts once" in caption) == self.run.is_weighted, caption
        if len(self.run.rules["rules"]) > 1:
            self.browser.settled("document.querySelector('#edit-rules button').click() //then 1")
            edited = json.loads(self.browser.run("return JSON.stringify(page.editor.log.set)"))
            rows = self.editor_rows()
            self.compare_editor({name: one[1] for name, one in rows.items()}, edited)
            self.compare_intervals({name: one[3] for name, one in rows.items()}, edited)
            self.check_changes(edited)
            self.browser.settled("byId('edit-undo').click() //then return 1")
        self.checked += ["#edit-figures", "#edit-rules", "#edit-changes", "#edit-steps"]

    def editor_rows(self) -> dict[str, list[str]]:
        """Return the figures of the editor by their names: before, now and the change."""
        rows = self.browser.run(
            "return [...document.querySelectorAll('#edit-figures tr')].map((row) => "
            "[...row.children].map((cell) => cell.textContent))"
        )
        return {name: cells for name, *cells in rows}

    def compare_editor(self, texts: dict[str, str], rules: dict[str, Any]) -> None:
        """Compare the figures of the editor with those of rules, each row counted once."""
        run, ones = self.run, self.ones
        predicted, covered = predict(rules, run.X), rule_of_rows(rules, run.X) >= 0
        performance = weighted_f1 if run.is_classification else explained
        quality = performance(run.y[covered], predicted[covered], ones[covered])
        n_rules = len(rules["rules"])
        loss = run.loss(run.y, predicted, covered, ones)
        expected = {
            "rules": n_rules,
            "ICE (completeness by rows)": ice(quality, n_rules, float(covered.mean())),
            "FiRe": fire(loss, n_rules),
        }
        answers = () if run.trained_here else (("agree with the model", "model", run.answers),)
        for label, reference, truth in (("right (data)", "data", run.y), *answers):
            if run.is_classification:
                expected[label] = 100 * share_equal(truth, predicted, ones)
            else:
                error = float(np.mean(np.abs(truth - predicted)))
                expected[f"mean error ({reference})"] = error
        assert set(texts) == set(expected)
        for name, value in expected.items():
            self.equal(texts[name].removesuffix(" %"), value)

    def compare_intervals(self, texts: dict[str, str], edited: dict[str, Any]) -> None:
        """Compare the intervals of the changes with those of an edited rule set."""
        run, now = self.run, predict(edited, self.run.X)
        is_changed = (now != self.predicted).any()
        references = {"right (data)": run.y, "mean error (data)": run.y}
        references |= {"agree with the model": run.answers, "mean error (model)": run.answers}
        for name, text in texts.items():
            if name not in references or not is_changed:
                assert text == "", name
                continue
            truth = references[name]
            if run.is_classification:
                ends = paired_shares(self.predicted == truth, now == truth)
            else:
                errors = [np.abs(truth - values) for values in (self.predicted, now)]
                ends = paired_means(*errors)
            shown = text.replace("−", "-").replace("+", "").replace(" %", "").split(" to ")
            for one, end in zip(shown, ends, strict=True):
                self.equal(one, end * self.scale)

    def check_changes(self, edited: dict[str, Any]) -> None:
        """Check how many predictions edited rules change, better and worse."""
        now, y = predict(edited, self.run.X), self.run.y
        changed = now != self.predicted
        if self.run.is_classification:
            gain = (now == y).astype(float) - (self.predicted == y)
        else:
            gain = np.abs(self.predicted - y) - np.abs(now - y)
        text = self.browser.text("#edit-changes")
        if not changed.any():
            assert text.startswith("No prediction changes.")
            return
        pattern = (
            rf"^{_FIGURE} rows? of {_FIGURE} with another prediction: better for {_FIGURE}, "
            rf"worse for {_FIGURE}\."
        )
        counts = [int(changed.sum()), len(y)]
        better = [int((gain[changed] > 0).sum()), int((gain[changed] < 0).sum())]
        self.figures(text, pattern, counts + better)

    def check_exports(self) -> None:
        """Check the figures in the comments of programs; the programs are run by other tests."""
        self.checked.append("#exports")
        own = self.run.statistics(self.run.rules)
        kind = "weighted rows?" if self.run.is_weighted else "rows?"
        rounded = r"([<>]? ?[\d.]+)"
        for text in self.browser.texts("#exports code"):
            comments = re.findall(rf"([\d.]+) {kind}[,\]]([^\]\n]*)", text)
            if not comments:
                assert "% agree" not in text
                assert "mean error" not in text
                continue
            assert len(comments) == len(own)
            for (rows, figures), values in zip(comments, own, strict=True):
                self.equal(rows, values["rows"])
                for pattern, name, scale in (
                    (rf"{rounded} % agree with the model", "agree", 100),
                    (rf"{rounded} % right \(data\)", "right", 100),
                    (r"mean error ([\d.e-]+) \(model\)", "model_error", 1),
                    (r"([\d.e-]+) \(data\)$", "target_error", 1),
                ):
                    if (found := re.search(pattern, figures)) and name in values:
                        self.equal(found[1], scale * values[name])

    def check_about(self) -> None:
        """Check the facts about data, black box and search."""
        data, black_box, search = self.texts("#facts dd")
        run, record = self.run, self.run.record["search"]
        shape = [len(run.y), run.X.shape[1]]
        self.figures(data, rf": {_FIGURE} rows, {_FIGURE} features", shape)
        quality = run.black_box_quality()
        for name, value in re.findall(r"(accuracy|weighted F1|R²) (-?[\d.]+)", black_box):
            self.equal(value, quality[name])
        held_out = "on held-out rows, mean of the folds"
        assert (held_out in " ".join(black_box.split())) == run.trained_here
        pattern = rf"^{_FIGURE} trials of [^;]*;\s*{_FIGURE} folds, seed {_FIGURE},"
        self.figures(search, pattern, [len(run.board), record["cv"], record["seed"]])

    def check_notes(self) -> None:
        """Notes and warnings are those that the run records, word by word, or of the page alone."""
        shown = [" ".join(text.split()) for text in self.texts(".notes:not(.checks) li")]
        shown += [" ".join(text.split()) for text in self.texts("#warnings li")]
        recorded = " ".join(json.dumps(self.run.record, ensure_ascii=False).split())
        for text in shown:
            if text in OWN_NOTES:
                continue
            assert json.dumps(text, ensure_ascii=False)[1:-1] in recorded, text
        reported = {name for name, count in self.run.record["checks"].items() if count}
        marks = [text[0] for text in self.texts(".checks li")]
        assert marks.count("!") == len(reported)
        assert len(marks) == len(self.run.record["checks"]) - (self.run.test is None)
        summary = self.texts(".checks summary")[0]
        self.figures(summary, rf"^{_FIGURE} checks of the data", [len(marks)])
        if reported:
            self.figures(summary, rf": {_FIGURE} reported something", [len(reported)])
        notes = self.texts(".notes:not(.checks) summary")
        for text in notes:
            n_notes = len(self.browser.texts(".notes:not(.checks) li"))
            self.figures(text, rf"^{_FIGURE} notes? on", [n_notes])

    def check_hints(self) -> None:
        """Check the numbers of rows and rules in sentences, and the rank of the choice."""
        n_rows, n_rules = len(self.run.y), len(self.run.rules["rules"])
        self.figures(self.texts("#headline")[0], rf"^{_FIGURE} rules? that predict", [n_rules])
        for hint in self.texts("#rules-hint"):
            self.figures(hint, rf"in {_FIGURE} rows", [n_rows])
        for hint in self.texts("#edit > .hint"):
            self.figures(hint, rf"on\s+all {_FIGURE} rows", [n_rows])
        sentence = self.texts("#chosen-by")[0]
        board = self.run.board[self.run.board["state"] == "complete"]
        pattern = rf" {_FIGURE}, rank {_FIGURE} of {_FIGURE} candidates?"
        match = re.search(pattern, sentence)
        assert match, sentence
        self.equal(match[1], abs(self.run.record["best"]["score"]))
        self.equal(match[3], len(board))
        is_within = "within_limits" not in board or bool(self.run.board["within_limits"].iloc[0])
        assert ("beyond the limits" in sentence) != is_within
        if best := re.search(rf"The best has {_FIGURE},", sentence):
            assert any(is_rounded(best[1], abs(score)) for score in board["score"])
        limit = self.run.record["search"]["max_rules"]
        shown = self.browser.run("return byId('max-rules').value")
        assert shown == ("" if limit is None else str(limit))
        assert json.dumps(self.run.record["alternatives"]["max_rules"]) != "0"
