"""Tables of the paper on Boolean attributions, and the methods compared with it."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skescore.attribution import Formula, all_assignments, random_formula
from skescore.cli import main
from skescore.metrics.attribution import jensen_shannon_divergence
from skescore.reproduce import (
    BREX_METHODS,
    BREX_TABLES,
    BREX_TITLES,
    BenchmarkFormula,
    BrexRow,
    BrexRun,
    TableLine,
    benchmark_formulas,
    completion_shapley,
    figure_verdicts,
    half_width,
    kleene_shapley,
    plot_divergence,
    reproduce_brex,
    sampled_shapley,
    shapley_of_tables,
    table_lines,
)

CHEAP = ["shapley-unassigned", "shapley-sampled"]
SMALL: dict[str, Any] = {
    "arities": [3, 5],
    "formulas": 2,
    "assignments": 12,
    "methods": CHEAP,
    "network_formulas": 0,
}


@pytest.fixture(scope="module")
def small_run() -> BrexRun:
    return reproduce_brex(**SMALL)


# --- printed figures -----------------------------------------------------------------------------


def test_brex_tables_match_the_paper() -> None:
    # arXiv:2509.09982: the abstract names B-ReX's 0.072; the others are cells of Tables 1 to 5.
    assert BREX_TABLES[3]["B-ReX"]["10"] == 0.072
    assert BREX_TABLES[4]["B-ReX"]["10"] == 0.046
    assert BREX_TABLES[3]["InputXGrad"]["6"] == 0.4
    assert BREX_TABLES[4]["IntegratedGrad"]["3"] == 0.047
    assert BREX_TABLES[1]["Saliency"]["9"] == 0.4
    assert BREX_TABLES[2]["DeepLift"]["8"] == 0.65
    assert BREX_TABLES[5]["B-ReX"] == {"and": 0.992, "or": 0.986, "xor": 1.0, "xor-and-xor": 0.638}
    assert [len(BREX_TABLES[table]) for table in range(1, 6)] == [6, 6, 7, 7, 6]
    for table, rows in BREX_TABLES.items():
        for figures in rows.values():
            assert len(figures) == (4 if table == 5 else 8)
            assert all(0 <= figure <= 1 for figure in figures.values())


def test_brex_methods_give_reasons_for_differences() -> None:
    for table in BREX_TITLES:
        for method in BREX_METHODS.values():
            assert method.why_different(table).endswith(".")
            assert method.printed in BREX_TABLES[3]


# --- formulas ------------------------------------------------------------------------------------


def test_benchmark_formulas_match_the_paper() -> None:
    created = {unit.key: unit for unit in benchmark_formulas([4], 2, 16, 0, [1, 2, 3, 4, 5])}
    assert len(created) == 2 * 2 + 2 + 4
    assert str(created["chain", "non-monotone", "4", 0].formula) == "((x1 ^ x2) & x3) ^ x4"
    assert str(created["chain", "monotone", "4", 0].formula) == "((x1 & x2) | x3) & x4"
    assert str(created["small", "small", "xor-and-xor", 0].formula) == "(x1 ^ x2) & (x3 ^ x4)"
    drawn = [unit for unit in created.values() if unit.kind == "random"]
    assert len({str(unit.formula) for unit in drawn}) == 4
    for unit in drawn:
        assert unit.formula.arity == 4
        assert unit.formula.is_monotone or unit.family == "non-monotone"
        assert len(np.unique(unit.inputs, axis=0)) == 16


def test_benchmark_formula_takes_all_assignments_once() -> None:
    unit = BenchmarkFormula("random", "monotone", "3", 0, 0, 9999)
    assert len(np.unique(unit.inputs, axis=0)) == 4096 == len(unit.inputs)
    assert {tuple(row) for row in unit.inputs.tolist()} == {
        tuple(map(bool, row)) for row in all_assignments(12).tolist()
    }


def test_benchmark_formulas_do_not_depend_on_the_run(small_run: BrexRun) -> None:
    more = reproduce_brex(**{**SMALL, "arities": [5], "formulas": 3, "methods": CHEAP[1:]})
    rows_by_key = {row.key: row for row in small_run.rows}
    pair = [row for row in more.rows if row.key in rows_by_key]
    assert len(pair) == 2 * 2 + 2 + 4
    assert all(rows_by_key[row.key] == row for row in pair)
    other = reproduce_brex(**{**SMALL, "arities": [5], "seed": 1, "tables": [3]})
    assert {row.formula for row in other.rows} & {row.formula for row in more.rows} == set()


# --- measures ------------------------------------------------------------------------------------


def test_figures_match_manual_results(small_run: BrexRun) -> None:
    row = next(r for r in small_run.rows if r.kind == "random" and r.method == CHEAP[0])
    unit = BenchmarkFormula(row.kind, row.family, row.column, row.number, 0, 12)
    explain = BREX_METHODS[row.method].explain
    assert explain is not None
    values = np.maximum(explain(unit.formula, unit.inputs, 0).values, 0)
    divergences, hits = [], []
    for result, true in zip(values, unit.truth, strict=True):
        divergences.append(float(jensen_shannon_divergence(result, true)))
        least, most = result[true > 0].min(), result[true == 0].max()
        hits.append(least > most)
    assert row.jsd == pytest.approx(np.mean(divergences))
    assert row.top_k_strict == pytest.approx(np.mean(hits))
    assert row.zero_maps == 0
    assert row.jsd == row.jsd_without_zero_maps
    assert row.queries == 2 ** int(row.column)


def test_table_lines_are_means_over_formulas(small_run: BrexRun) -> None:
    lines = table_lines(small_run)
    assert list(lines) == [1, 2, 3, 4, 5]
    line = next(one for one in lines[4] if one.method == "shapley-sampled")
    figures = [
        r.jsd
        for r in small_run.rows
        if (r.table, r.column, r.method) == (4, "5", "shapley-sampled")
    ]
    assert line.values["5"] == pytest.approx(sum(figures) / 2)
    # With two figures, the standard error is half of their distance.
    assert line.half_widths["5"] == pytest.approx(1.96 * abs(figures[0] - figures[1]) / 2, rel=1e-4)
    assert line.formulas == {"3": 2, "5": 2}
    alone = BrexRun([r for r in small_run.rows if r.number == 0], small_run.methods, {}, {})
    line = next(one for one in table_lines(alone)[4] if one.method == "shapley-sampled")
    assert math.isnan(line.half_widths["5"])
    assert [one.label for one in lines[3]][:2] == ["B-ReX (paper)", "ShapleyValues (paper)"]
    assert lines[3][2].printed == "ShapleyValues"
    assert lines[5][0].values == dict(BREX_TABLES[5]["B-ReX"])


def test_table_lines_can_exclude_rows_without_attributions() -> None:
    rows = [
        BrexRow(
            3,
            "random",
            "non-monotone",
            "3",
            number,
            "x1",
            name,
            40,
            0.5,
            without,
            0.4,
            0.0,
            0.0,
            9.0,
            None,
        )
        for name in ("brex-paper", "brex-literal")
        for number, without in enumerate((0.1, math.nan, 0.3))
    ]
    run = BrexRun(rows, ("brex-paper", "brex-literal"), {}, {})
    values = {line.method: line.values.get("3") for line in table_lines(run)[3]}
    assert values["brex-paper"] == pytest.approx(0.5)
    assert values["brex-literal"] == pytest.approx(0.2)


@pytest.mark.slow
def test_brex_certified_improves_on_brex() -> None:
    run = reproduce_brex(
        arities=[3, 6],
        formulas=4,
        assignments=20,
        tables=[4, 5],
        network_formulas=0,
        methods=["brex-paper", "brex-literal", "brex-certified"],
    )
    lines = {
        (one.table, one.method): one.values for some in table_lines(run).values() for one in some
    }
    # Spread between sets of formulas is up to .02 around .007 and .042.
    assert lines[4, "brex-paper"]["3"] == pytest.approx(0.007, abs=0.03)
    assert lines[4, "brex-paper"]["6"] == pytest.approx(0.042, abs=0.04)
    assert max(lines[4, "brex-certified"].values()) < 0.01
    assert lines[4, "brex-certified"]["6"] < lines[4, "brex-paper"]["6"]
    assert lines[5, "brex-certified"]["xor"] == 1.0
    assert lines[5, "brex-literal"]["and"] > 0.9


# --- Shapley values of Boolean games, against the average over all orders -----------------------

XOR = Formula.parse("(x1 ^ x3) & x4", n_inputs=5)


def by_orders(worth: NDArray[np.float64], n_players: int) -> list[float]:
    """Return the mean contribution of each player over all orders."""
    total = [0.0] * n_players
    for order in permutations(range(n_players)):
        coalition = 0
        for player in order:
            total[player] += worth[coalition | 1 << player] - worth[coalition]
            coalition |= 1 << player
    return [value / math.factorial(n_players) for value in total]


def test_shapley_of_tables_equals_all_orders() -> None:
    worth = np.random.default_rng(0).normal(size=(6, 16))
    values = shapley_of_tables(worth)
    for game in range(len(worth)):
        assert values[game] == pytest.approx(by_orders(worth[game], 4), abs=1e-12)
    assert values.sum(axis=1) == pytest.approx(worth[:, -1] - worth[:, 0])


def test_shapley_of_tables_solves_a_known_game() -> None:
    # Two pairs of gloves: one left glove, two right ones (Shapley 1953: 2/3, 1/6, 1/6).
    worth = np.array([[0, 0, 0, 1, 0, 1, 0, 1]], dtype=float)
    assert shapley_of_tables(worth)[0] == pytest.approx([2 / 3, 1 / 6, 1 / 6])


@pytest.mark.parametrize("formula", [XOR, random_formula(4, n_inputs=5, random_state=3)], ids=str)
def test_shapley_of_formulas_equals_all_orders(formula: Formula) -> None:
    n = formula.n_inputs
    X = np.array(list(product([False, True], repeat=n)))[::3]
    kleene, completed = kleene_shapley(formula, X), completion_shapley(formula, X)
    everything = np.array(list(product([False, True], repeat=n)))
    for row, x in enumerate(X):
        sign = 1 if formula.evaluate(x[None])[0] else -1
        worths = np.zeros((2, 1 << n))
        for coalition in range(1 << n):
            present = (coalition >> np.arange(n) & 1).astype(bool)
            worths[0, coalition] = sign * formula.kleene(x[None], ~present[None])[0]
            agreeing = everything[(everything[:, present] == x[present]).all(axis=1)]
            worths[1, coalition] = np.mean((formula.evaluate(agreeing) * 2 - 1) == sign)
        assert kleene[row] == pytest.approx(by_orders(worths[0], n), abs=1e-12)
        assert completed[row] == pytest.approx(by_orders(worths[1], n), abs=1e-12)


def test_sampled_shapley_is_unbiased() -> None:
    X = np.array([[1, 0, 0, 1, 1], [0, 0, 1, 0, 1]], dtype=bool)
    values, queries = sampled_shapley(XOR, X, 400, np.random.default_rng(1))
    assert values == pytest.approx(kleene_shapley(XOR, X), abs=0.06)
    # Each walk sums to the worth of all players minus that of none, so that all of them do.
    assert values.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert queries == 2 + 2 * 400 * 4


# --- interruptions -------------------------------------------------------------------------------


def test_interrupted_run_is_resumed(tmp_path: Path, small_run: BrexRun) -> None:
    steps: list[tuple[int, int, str]] = []

    class StopError(Exception):
        pass

    def stop(done: int, total: int, text: str) -> None:
        if done == 5:
            raise StopError

    with pytest.raises(StopError):
        reproduce_brex(**SMALL, output=tmp_path, progress=stop)
    path = tmp_path / "brex.cells.jsonl"
    written = path.read_bytes()
    assert written.count(b"\n") == 1 + 5 * len(CHEAP)
    path.write_bytes(written[:-9])  # the last line was being written
    run = reproduce_brex(**SMALL, output=tmp_path, progress=lambda *step: steps.append(step))
    assert [step[0] for step in steps[:2]] == [4, 5]
    assert run.rows == small_run.rows
    # Everything is stored now, and is read unchanged.
    second_result = reproduce_brex(
        **SMALL, output=tmp_path, progress=lambda *step: steps.append(step)
    )
    assert second_result == run
    assert steps[-1] == steps[-2] == (len(run.rows) // 2, len(run.rows) // 2, "done")


def test_results_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    few = {**SMALL, "tables": [5]}
    reproduce_brex(**few, output=tmp_path)
    with pytest.raises(ValueError, match=r"assignments 12 instead of 13\. Name another folder"):
        reproduce_brex(**{**few, "assignments": 13}, output=tmp_path)
    (tmp_path / "brex.cells.jsonl").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a file of this command: move it away"):
        reproduce_brex(**few, output=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arities": [2]}, r"from 3 to 10, got \[2\]"),
        ({"tables": []}, r"from 1 to 5, got \[\]"),
        ({"formulas": 0}, "formulas must be an integer of 1 or more, got 0"),
        ({"seed": True}, "seed must be an integer of 0 or more, got True"),
        ({"methods": ["brex"]}, "got 'brex'. Did you mean 'brex-paper'|got 'brex'"),
        ({"methods": []}, "methods must hold at least one of"),
    ],
    ids=["arities", "tables", "formulas", "seed", "methods", "no methods"],
)
def test_reproduce_brex_rejects_invalid_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        reproduce_brex(**{**SMALL, **options})


def test_chance_is_one_over_the_number_of_choices() -> None:
    """Printed top-k figures of KernelShap are those of a method that ignores the row."""
    run = reproduce_brex(tables=[5], methods=["chance"], assignments=4096)
    figures = {row.column: row.top_k for row in run.rows}
    # x1 & x2: one responsible input where they differ, otherwise two; x1 ^ x2: always two.
    expected = {"and": (1 / 12 + 1 / math.comb(12, 2)) / 2, "xor": 1 / math.comb(12, 2)}
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    assert figures["or"] == pytest.approx(expected["and"])
    for column, printed in BREX_TABLES[5]["KernelShap"].items():
        deviation = math.sqrt(figures[column] * (1 - figures[column]) / 500)
        assert abs(printed - figures[column]) < 2.5 * deviation


# --- other packages ------------------------------------------------------------------------------


def needs(package: str) -> None:
    """Skip where a package is missing, unless the environment was made for it."""
    if package not in os.environ.get("SKESCORE_ENGINES", "").split(","):
        pytest.importorskip(package)


def test_methods_of_missing_packages_are_skipped(
    monkeypatch: pytest.MonkeyPatch, on_the_command_line: Any
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text, err = on_the_command_line(
        "--tables",
        "5",
        "--assignments",
        "4",
        "--quiet",
        "--methods",
        "shapley-unassigned,kernel-shap-25,Saliency:three-valued",
    )
    assert "Shapley, exact" in text
    assert "captum" not in text
    assert 'kernel-shap-25. Run: pip install "shap>=0.46"' in err
    assert 'Saliency:three-valued. Run: pip install "captum>=0.7" "torch>=2.2"' in err


def test_kernel_shap_is_near_exact_values() -> None:
    needs("shap")
    unit = BenchmarkFormula("random", "non-monotone", "4", 0, 0, 3)
    explain, exact = BREX_METHODS["kernel-shap"].explain, BREX_METHODS["shapley-unassigned"].explain
    assert explain is not None
    assert exact is not None
    state = np.random.get_state()[1].tolist()
    explanation = explain(unit.formula, unit.inputs, 7)
    assert np.random.get_state()[1].tolist() == state
    true = exact(unit.formula, unit.inputs, 7)
    assert explanation.values == pytest.approx(true.values, abs=0.05)
    assert (explain(unit.formula, unit.inputs, 7).values == explanation.values).all()
    assert 1000 < explanation.queries < 4096


def test_networks_accept_inputs_of_zero_and_one() -> None:
    needs("captum")
    from skescore.reproduce import captum_maps, train_network

    unit = BenchmarkFormula("small", "small", "and", 0, 0, 16)
    network = train_network(unit.formula, "zero-one", 3)
    assert network.accuracy == 1
    maps = captum_maps(network, unit.inputs, "InputXGrad", 0)
    assert (maps[~unit.inputs] == 0).all()
    assert (maps[unit.inputs] != 0).any()


def test_captum_maps_of_a_network_are_reproducible() -> None:
    needs("captum")
    import torch

    from skescore.reproduce import CAPTUM, captum_maps, train_network

    unit = BenchmarkFormula("random", "monotone", "3", 0, 0, 6)
    before = torch.random.get_rng_state(), torch.get_num_threads()
    network = train_network(unit.formula, "three-valued", 3)
    assert network.accuracy == 1
    rows = torch.tensor(np.where(unit.inputs, 1.0, -1.0), dtype=torch.float32)
    with torch.no_grad():
        answers = network.model(rows)
        # An empty row is unknown: the class in the middle is "Unassigned".
        nothing = network.model(torch.zeros(1, 12))
    assert int(nothing.argmax()) == 1
    target = np.where(unit.formula.evaluate(unit.inputs), 2, 0)
    assert answers.argmax(1).numpy().tolist() == target.tolist()
    maps = {name: captum_maps(network, unit.inputs, name, 5) for name in CAPTUM}
    # Integrated gradients and Shapley values divide the gain of the row over the empty one.
    gain = answers.numpy()[np.arange(6), target] - nothing.numpy()[0, target]
    assert maps["IntegratedGrad"].sum(axis=1) == pytest.approx(gain, rel=0.05)
    assert maps["ShapleyValues"].sum(axis=1) == pytest.approx(gain, rel=1e-3)
    assert (maps["Saliency"] >= 0).all()
    assert np.abs(maps["InputXGrad"]) == pytest.approx(maps["Saliency"], rel=1e-5)
    for name, values in maps.items():
        assert values.shape == (6, 12)
        assert (captum_maps(network, unit.inputs, name, 5) == values).all()
    assert (torch.random.get_rng_state() == before[0]).all()
    assert torch.get_num_threads() == before[1]


def test_plot_divergence_shows_lines_of_tables(small_run: BrexRun) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = plot_divergence(small_run, axes=Figure().subplots(1, 2, sharey=True))
    for ax, table in zip(axes, (3, 4), strict=True):
        drawn = {
            line.get_label(): line.get_ydata().tolist()
            for line in ax.lines
            if not str(line.get_label()).startswith("_")
        }
        assert drawn["ShapleyValues (paper)"] == [
            BREX_TABLES[table]["ShapleyValues"][c] for c in "35"
        ]
        highest = max(max(values) for values in drawn.values())
        assert ax.get_ylim()[0] == 0 < highest <= ax.get_ylim()[1]
        bars = {container.get_label(): container for container in ax.containers}
        lines = {line.label: line for line in table_lines(small_run)[table] if line.method}
        assert set(bars) == set(lines)
        for label, line in lines.items():
            points = bars[label][0].get_ydata()
            assert np.asarray(points).tolist() == list(line.values.values())
    with pytest.raises(ValueError, match="no results for Figure 2 with kinds='two-valued'"):
        plot_divergence(small_run, kinds="two-valued")


# --- command line --------------------------------------------------------------------------------


@pytest.fixture
def on_the_command_line(capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the command; gives standard output and standard error."""

    def called(*arguments: str) -> tuple[str, str]:
        assert main(["reproduce", "brex", *arguments]) == 0
        captured = capsys.readouterr()
        return captured.out, captured.err

    return called


FEW = ("--arity", "3,5", "--formulas", "2", "--assignments", "12", "--methods", ",".join(CHEAP))


def test_command_prints_tables(
    tmp_path: Path, on_the_command_line: Any, small_run: BrexRun
) -> None:
    out, err = on_the_command_line(*FEW, "--format", "json", "--output", str(tmp_path))
    data = json.loads(out)
    assert err.splitlines()[-1].endswith(" s")
    assert data["settings"]["arities"] == [3, 5]
    assert list(data["tables"]) == ["1", "2", "3", "4", "5"]
    lines = data["tables"]["4"]["lines"]
    expected = {one.label: one.values for one in table_lines(small_run)[4]}
    assert {one["label"]: one["values"] for one in lines} == expected
    for name in data["files"]:
        assert (tmp_path / name).stat().st_size > 0
    assert json.loads((tmp_path / "brex_tables.json").read_text()) == data
    markdown, _ = on_the_command_line(*FEW, "--format", "markdown", "--output", str(tmp_path))
    assert markdown == (tmp_path / "brex_tables.md").read_text()
    assert "| B-ReX (paper) | 0.009 | 0.025 |" in markdown
    text, err = on_the_command_line(*FEW, "--quiet", "--tables", "4", "--arity", "3-5")
    assert err == ""
    values = expected["Shapley, exact, Unassigned"]
    assert f"{values['3']:.3f} ±" in text
    assert "samples them for a trained network" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arity", "2"], "arity must be from 3 to 10, got '2'"),
        (["--arity", "8-x"], "such as 3,10 or 3-10, got '8-x'"),
        (["--tables", "6"], "table must be from 1 to 5, got '6'"),
        (["--formulas", "-1"], "--formulas"),
        (["--methods", "brex-papr"], "there is no method 'brex-papr'. Did you mean 'brex-paper'"),
    ],
    ids=["arity", "range", "table", "count", "method"],
)
def test_command_rejects_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["reproduce", "brex", *arguments])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_brex_patient_finds_more_with_few_queries() -> None:
    run = reproduce_brex(
        arities=[10], tables=[1], methods=["brex-certified", "brex-patient"], assignments=40
    )
    hasty, patient = run.rows
    assert (hasty.method, patient.method) == ("brex-certified", "brex-patient")
    assert hasty.top_k < patient.top_k
    assert patient.top_k > 0.97
    assert patient.queries - hasty.queries < 1
    assert all(line.why for line in table_lines(run)[1] if line.method is not None)


def test_figure_verdicts_compare_with_interval() -> None:
    def line(label, method, values, widths):
        return TableLine(3, "B-ReX", label, method, values, widths, {}, None, "")

    columns = ["3", "4", "5"]
    paper = line("B-ReX (paper)", None, dict(zip(columns, [0.02, 0.1, 0.3], strict=True)), {})
    ours = line("ours", "a", {"3": 0.034, "4": 0.2}, {"3": 0.01, "4": 0.01})
    other = line("other", "b", {"3": 0.02, "4": 0.1004}, {"3": math.nan, "4": math.nan})
    first, second = figure_verdicts({3: [paper, ours, other]})
    # The difference of .014 is within the square root of 2 times the half width of .01.
    assert (first.column, first.is_reproduced, first.label) == ("3", True, "ours")
    assert (second.column, second.is_reproduced, second.label) == ("4", True, "other")
    (alone,) = figure_verdicts({3: [replace(paper, values={"4": 0.1}), ours]})
    assert (alone.is_reproduced, alone.label, alone.measured) == (False, "ours", 0.2)


def test_half_width_of_one_share_is_binomial() -> None:
    assert half_width([0.3], 500) == pytest.approx(1.96 * math.sqrt(0.3 * 0.7 / 500), rel=1e-3)
    assert math.isnan(half_width([0.3]))
