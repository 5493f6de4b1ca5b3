"""Every printed figure of a search equals the one computed from its rows and predictions."""

from __future__ import annotations

import json
import re
import warnings
from typing import ClassVar

import numpy as np
import pytest
from figure_searches import FAST, QUICK, SLOW, python_search, run_search, write_files
from recomputed import NUMBER, is_rounded, predict, rule_of_rows, sampled_volume

from skescore.cli import main
from skescore.rules import RuleSet


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("figures"))


#: Rules of an alternative that are printed.
MAX_RULES = 12


def _text_of(rules):
    return str(RuleSet.from_json(json.dumps(rules)))


class PrintedFigures:
    """Checker of each line of the output of a search; unknown lines must have no number."""

    def __init__(self, text, run):
        self.lines, self.run, self.n_checked = text.splitlines(), run, 0
        self.lists = [(_text_of(one["rules"]), one) for one in self.records]
        if not any("best" in one["roles"] for one in self.records):
            self.lists.insert(0, (_text_of(run.rules), {"rules": run.rules, "roles": ["best"]}))
        self.current = None
        #: Whether each printed row of the leaderboard may satisfy the limits.
        self.within_limits = []

    @property
    def records(self):
        return self.run.record["alternatives"]["lists"]

    def equal(self, text, value):
        assert is_rounded(text, value), (text, value)
        self.n_checked += 1

    def check(self):
        position = 0
        while position < len(self.lines):
            position += self.check_at(position)

    def check_at(self, position):
        """Check what begins at a line; return the number of its lines."""
        k, lines, record = self.list_at(position)
        if lines:
            # Lists are in the order of their records, and equal rules may have several.
            del self.lists[: k + 1]
            self.check_rules(lines, record)
            return len(lines)
        line = self.lines[position]
        for pattern, method in self.patterns.items():
            if match := re.fullmatch(pattern, line):
                return method(self, position, *match.groups()) or 1
        assert not NUMBER.search(line), f"unchecked: {line}"
        return 1

    def check_rules(self, lines, record):
        self.current = record
        statistics = self.run.statistics(record["rules"])
        for line, own in zip(lines[: len(statistics)], statistics, strict=False):
            if line.startswith("... and "):
                break
            kind = "weighted rows?" if self.run.is_weighted else "rows?"
            rows = re.search(rf"\[([\d.]+) {kind}[,\]]", line)
            self.equal(rows[1], own["rows"])
            for pattern, name, scale in (
                (r"([<>]? ?[\d.]+) % agree with the model", "agree", 100),
                (r"([<>]? ?[\d.]+) % right \(data\)", "right", 100),
                (r"mean error ([\d.e-]+) \(model\)", "model_error", 1),
                (r"([\d.e-]+) \(data\)\]", "target_error", 1),
            ):
                if (printed := re.search(pattern, line)) and name in own:
                    self.equal(printed[1], scale * own[name])
            queried = " queried rows agree" in line
            assert queried or ("agree with the model" in line) == self.run.is_classification

    def check_header(self, _, rows, features, classes):
        self.equal(rows, len(self.run.y))
        self.equal(features, self.run.X.shape[1])
        for label, count in re.findall(r"(\w+) \((\d+)\)", classes):
            self.equal(count, int((self.run.y == label).sum()))
        for bound, value in zip(
            re.findall(r"from ([\d.]+) to ([\d.]+)", classes), [0], strict=False
        ):
            self.equal(bound[0], self.run.y.min() + value)
            self.equal(bound[1], self.run.y.max())

    def check_quality(self, _, figures, where):
        if self.run.trained_here:
            assert where.startswith(f"held-out rows, {len(self.run.folds)} folds")
        else:
            assert "may have been trained" in where
        quality = self.run.black_box_quality()
        for name, value in re.findall(r"([^\d,]+) (-?[\d.]+)", figures):
            self.equal(value, quality[name.strip()])
        assert (self.run.is_weighted) == ("same total weight" in where)

    def check_query_cost(self, _, rows, seconds, per_1000, unit):
        cost = self.run.record["search"]["query_cost"]
        self.equal(rows.replace(",", ""), cost["n_rows"])
        self.equal(seconds, cost["seconds"])
        scale = 1e6 if unit == "ms" else 1e3
        self.equal(per_1000, scale * cost["seconds"] / cost["n_rows"])

    def check_leaderboard(self, position, n_trials):
        self.equal(n_trials, len(self.run.board))
        board = self.run.board[self.run.board["state"] == "complete"]
        heading = re.split(r"\s{2,}", self.lines[position + 1].strip())
        names = {"rules": "n_rules", "space covered": "completeness_volume"}
        names |= {"rows covered": "completeness_instances", "±": "score_std"}
        search = self.run.record["search"]
        names |= {heading[1]: "score", heading[3]: "performance"}
        expected = (search["performance"] or "weighted F1").replace("_", " ")
        assert heading[3] == (expected if self.run.is_classification else "R²")
        n_lines = 2
        while self.lines[position + n_lines][:2].strip().isdigit():
            cells = re.split(r"\s{2,}", self.lines[position + n_lines].strip(), maxsplit=9)[1:]
            cells[:1] = cells[0].split(" ", 1) if cells[0][0].isdigit() else cells[:1]
            values = dict(zip(heading, cells, strict=False))
            alike = [
                row
                for _, row in board.iterrows()
                if all(is_rounded(values[h], abs(row[n])) for h, n in names.items())
            ]
            assert alike, self.lines[position + n_lines]
            self.within_limits.append({bool(row.get("within_limits", True)) for row in alike})
            self.n_checked += len(names)
            n_lines += 1
        if any(possible == {False} for possible in self.within_limits):
            assert any(line.startswith("(Beyond --") for line in self.lines)
        return n_lines

    def check_beyond(self, _, limits, rows):
        beyond = {int(row) for row in rows.split(", ")}
        for number, possible in enumerate(self.within_limits, 1):
            assert (number not in beyond) in possible
        search = self.run.record["search"]
        for name, value in re.findall(r"--([\w-]+) ([\d.]+)", limits):
            self.equal(value, search[name.replace("-", "_")])

    def check_trade_off(self, position, *_):
        n_lines = 2
        while NUMBER.match(self.lines[position + n_lines].strip()):
            rules, loss, covered = self.lines[position + n_lines].split()[:3]
            assert any(
                is_rounded(rules, row["n_rules"])
                and is_rounded(loss, row["loss"])
                and is_rounded(covered, row["completeness_volume"])
                for _, row in self.run.board.iterrows()
            ), self.lines[position + n_lines]
            n_lines += 1
        return n_lines

    def check_truth(self, position, truth):
        line, by_model = self.lines[position], self.run.record["search"]["reference"] == "black-box"
        is_generated = by_model and not self.run.trained_here
        assert ("rows generated from held-out rows" in line) == is_generated
        name = self.run.record["data"]["target"]
        assert truth == ("the model's predictions" if by_model else name)

    def check_winner(self, _, score, n_rules):
        self.equal(score, abs(self.run.record["best"]["score"]))
        self.equal(n_rules, len(self.run.rules["rules"]))

    def check_list(self, _, figures):
        record = self.current
        own = self.run.held_out(record["extractor"], record["params"])
        assert record["correctness"] == pytest.approx(own["correctness"], rel=1e-9)
        assert record["fidelity"] == pytest.approx(own["fidelity"], rel=1e-9)
        fidelity = self.run.record["alternatives"]["fidelity"]
        assert fidelity["generated"] == ("generated" in fidelity["rows"]) != self.run.trained_here
        scale = 100 if self.run.is_classification else 1
        printed = re.findall(r"(?:R² |right for |model on )([<>]? ?-?[\d.]+)", figures)
        self.equal(printed[0], scale * record["correctness"])
        self.equal(printed[1], scale * record["fidelity"])
        weighted = figures.count("weighted ")
        assert weighted == (1 + self.run.trained_here if self.run.is_weighted else 0)

    def check_gain(self, _, n_more, figures):
        following = self.current["next"]
        self.equal(n_more, round(following["n_rules"] - self.current["n_rules"]))
        numbers = [text for text in re.findall(r"([\d.]+)(?: %| instead|,|$)", figures) if text]
        scale = 100 if self.run.is_classification else 1
        for name, pair in zip(
            ("correctness", "fidelity"), zip(numbers[::2], numbers[1::2], strict=True), strict=True
        ):
            self.equal(pair[0], scale * following[name])
            self.equal(pair[1], scale * self.current[name])

    def check_all_rows(self, _, n_rows, fidelity, volume, covered):
        run = self.run
        ones = np.ones(len(run.y))
        self.equal(n_rows, len(run.y))
        self.equal(fidelity, run.agreement(run.answers, predict(run.rules, run.X), ones))
        self.equal(covered, float(np.mean(rule_of_rows(run.rules, run.X) >= 0)))
        assert abs(float(volume) - sampled_volume(self.run.rules)) < 0.04

    def check_test(self, _, n_rows, fidelity, rules, black_box, covered):
        test, ones = self.run.test, np.ones(len(self.run.test.y))
        answers = np.asarray(self.run.model.predict(test.X))
        predicted = predict(self.run.rules, test.X)
        self.equal(n_rows, len(test.y))
        self.equal(fidelity, test.agreement(answers, predicted, ones))
        self.equal(rules, test.agreement(test.y, predicted, ones))
        self.equal(black_box, test.agreement(test.y, answers, ones))
        self.equal(covered, float(np.mean(rule_of_rows(self.run.rules, test.X) >= 0)))

    def check_limit(self, _, limit):
        self.equal(limit, self.run.record["alternatives"]["max_rules"])

    def list_at(self, position):
        """Return the lines of the rules that stand at a line, and the record of the next list."""
        for k, (text, record) in enumerate(self.lists):
            lines = text.splitlines()
            n_more = len(record["rules"]["rules"]) - MAX_RULES
            if n_more > 0 and self.current is not None:
                noun = "rule" if n_more == 1 else "rules"
                note = f"... and {n_more} more {noun}, see run.json (--output)"
                lines = [*lines[:MAX_RULES], note, *lines[MAX_RULES + n_more :]]
            if self.lines[position : position + len(lines)] == lines:
                return k, lines, record
        return None, [], None

    def check_count(self, position, n_rules):
        self.equal(n_rules, self.list_at(position + 1)[2]["n_rules"])
        self.check_limits_of(self.lines[position])

    def check_limits_of(self, line):
        for limit in re.findall(r"at most (\d+) rule", line):
            self.equal(limit, self.run.record["alternatives"]["max_rules"])

    def check_low_fidelity(self, _, n_rules, figure):
        self.equal(n_rules or "1", len(self.run.rules["rules"]))
        best = self.run.board.iloc[0]
        self.equal(figure, best["fidelity"] * (100 if self.run.is_classification else 1))

    def ignore(self, *_):
        """Skip a line without figures of rules, such as numbers of rows to pick."""

    def check_unmet_limit(self, position, option, value):
        limit = self.run.record["search"][option.replace("-", "_")]
        self.equal(value, limit)
        assert not self.run.board["within_limits"].any()

    patterns: ClassVar = {
        r"\(No candidate satisfies --([a-z-]+) (\S+)\.\)": check_unmet_limit,
        r".*: (\d+) rows, (\d+) features?; (.*)": check_header,
        r"model .*?: (.*?) \((.*)\)": check_quality,
        r"leaderboard: (\d+) candidates.*": check_leaderboard,
        r"\(The search queried the model for ([\d,]+) rows, which took ([\d.]+) s, "
        r"([\d.]+) (m?s) per 1,000 rows\.\)": check_query_cost,
        r"\(Beyond (.*): rows? ([\d, ]+)\.\)": check_beyond,
        r"best trade-offs between loss, rules and completeness: .*": check_trade_off,
        r"\(\w+: (?:greater|less) is better.*compared with (.*?); ± is.*\)": check_truth,
        r"\([\w ]+: on (?:rows generated from )?held-out rows, compared with (.*?)"
        r"(?:; rows are weighted)?\. .*\)": check_truth,
        r"best: \w+ with [\w ]+ (-?[\d.]+); its (\d+) rules?, extracted from "
        r"all rows.*": check_winner,
        r"this list: (.*)": check_list,
        r"with (\d+) more rules?: (.*)": check_gain,
        r"it is also .* at most (\d+) rules?": check_limit,
        r"- .* with (\d+) rules?": check_count,
        r"on all (\d+) rows.*?: fidelity \([^)]*\) ([\d.-]+), completeness ([\d.]+) by volume, "
        r"([\d.]+) by rows": check_all_rows,
        r"on the (\d+) rows of .*: fidelity \([^)]*\) ([\d.-]+); .* of the rules ([\d.-]+), of the "
        r"model ([\d.-]+); completeness by rows ([\d.]+)": check_test,
        r"Warning: The (?:R² of the )?(?:rule|(\d+) rules) (?:agrees? with the model on|against "
        r"the model is) only ([\d.-]+)(?: % of| on) "
        r"(?:(?:weighted )?held-out rows|generated rows)\. .*": check_low_fidelity,
        r"   \w+: after \d+ trials? .*": ignore,
        r"\(The first (?:has the fewest rules of the|is the best of) \d+ .*\)": ignore,
        r"Note: .*": ignore,
    }


def check_case(arguments, files, tmp_path, capsys):
    run = run_search(arguments, files, tmp_path / "run")
    text = capsys.readouterr().out
    printed = PrintedFigures(text, run)
    printed.check()
    assert printed.n_checked > 25
    check_winner(run)


def check_winner(run):
    """Compare the first row of the leaderboard with rules that are extracted again."""
    winner, record = run.board.iloc[0], run.record["best"]
    ones = np.ones(len(run.y))
    fidelity = run.agreement(run.answers, predict(run.rules, run.X), ones)
    assert record["fidelity"] == pytest.approx(fidelity, rel=1e-9)
    covered = float(np.mean(rule_of_rows(run.rules, run.X) >= 0))
    assert record["completeness_instances"] == pytest.approx(covered, rel=1e-9)
    names = {"accuracy": "accuracy", "f1_weighted": "weighted F1", "r2": "R²"}
    quality = run.black_box_quality()
    for name, value in run.record["black_box"]["quality"].items():
        assert value == pytest.approx(quality[names[name]], rel=1e-9), name
    own = run.held_out(record["extractor"], record["params"])
    for name in ("completeness_instances", "n_rules", "correctness", "performance", "loss"):
        assert winner[name] == pytest.approx(own[name], rel=1e-9, abs=1e-12), name
    assert winner["completeness_volume"] == pytest.approx(own["completeness_volume"], abs=0.04)
    expected = own["fidelity"] if run.record["search"]["scoring"] == "fidelity" else own["score"]
    is_whole = own["completeness_volume"] == winner["completeness_volume"] == 1
    tolerance = 1e-9 if is_whole else 0.04
    assert winner["score"] == pytest.approx(expected, abs=tolerance)
    assert record["score"] == pytest.approx(winner["score"], rel=1e-9)


@pytest.mark.parametrize("name", FAST)
def test_printed_figures_equal_recomputed_ones(name, files, tmp_path, capsys):
    check_case(FAST[name], files, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_printed_figures_of_more_searches_equal_recomputed_ones(name, files, tmp_path, capsys):
    check_case(SLOW[name], files, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_python_search_equals_the_command(name, files, tmp_path, capsys):
    run = run_search((FAST | SLOW)[name], files, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command has reported them
        search = python_search(run)
        lists = search.alternatives_
    assert json.loads(search.rules_.to_json()) == run.rules
    board, recorded = search.leaderboard_, run.board
    assert len(board) == len(recorded)
    for column in set(board.select_dtypes("number")) & set(recorded) - {"seconds"}:
        np.testing.assert_allclose(board[column], recorded[column], rtol=1e-9, err_msg=column)
    records = run.record["alternatives"]["lists"]
    assert [list(one.roles) for one in lists] == [record["roles"] for record in records]
    for one, record in zip(lists, records, strict=True):
        assert json.loads(one.rules.to_json()) == record["rules"]
        assert one.correctness == pytest.approx(record["correctness"], rel=1e-9)
        assert one.fidelity == pytest.approx(record["fidelity"], rel=1e-9)


def test_run_records_every_setting_of_the_search(tmp_path, capsys):
    command = ("tune", "iris", *QUICK, "--max-rules", "3", "--min-performance", "0.2")
    more = ("--min-fidelity", "0.3", "--features", "petal length (cm)", "--measures", "c2")
    settings = ("--performance", "balanced_accuracy", "--seed", "4", "--allocation", "even")
    assert main([*command, *more, *settings, "--output", str(tmp_path / "run"), "--quiet"]) == 0
    capsys.readouterr()
    search = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["search"]
    expected = {
        "max_rules": 3,
        "min_performance": 0.2,
        "min_fidelity": 0.3,
        "features": ["petal length (cm)"],
        "measures": ["mean_rule_c2"],
        "performance": "balanced_accuracy",
        "seed": 4,
        "allocation": "even",
        "n_trials": 1,
        "cv": 2,
        "pick": None,
        "certify": None,
        "tolerance": None,
        "timeout": None,
        "class_weight": None,
    }
    assert {name: search[name] for name in expected} == expected
