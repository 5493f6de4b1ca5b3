"""Tests of the README and the documentation: programs, links, tables and figures."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path

import optuna
import pytest
from markdown_it import MarkdownIt

from skescore import ice_score
from skescore.cli import main
from skescore.metrics import ice_performance, ice_readability
from skescore.registry import EXTRACTORS

ROOT = Path(__file__).parent.parent
FILES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(FILES)}
PARSER = MarkdownIt("commonmark").enable("table")
#: Pages created when the documentation is built.
GENERATED = {"api/index", "gallery/index"}


def _blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], flags=re.DOTALL)


def _table(title: str, page: str = "README.md") -> list[list[str]]:
    """Return the cells of the first table below a heading, without its header."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGES[page], flags=re.M | re.S)[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


# Content of the pages -----------------------------------------------------------------------------


#: The README's programs run separately; the programs of another page run one after the other.
PROGRAMS = [
    *((source,) for source in _blocks("python")),
    *(tuple(_blocks("python", page)) for page in PAGES if page != "README.md"),
]


@pytest.mark.slow
@pytest.mark.parametrize("programs", [each for each in PROGRAMS if each])
def test_readme_python_examples_run(programs, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # later runs must not find files written by an example
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    names = {}
    try:
        for source in programs:
            exec(compile(source, "an example", "exec"), names)
            output = capsys.readouterr().out
            assert "IF " in output if source in PAGES["README.md"] else output.strip()
    finally:
        optuna.logging.set_verbosity(before)


@pytest.mark.parametrize("page", PAGES)
def test_links_have_targets(page):
    folder = (ROOT / page).parent
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", PAGES[page]):
        if "://" in target or target.removeprefix("../") in GENERATED:
            continue
        file = folder / target if target else ROOT / page
        assert file.exists(), target
        if anchor:
            text = file.read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_tables_render_as_markdown(page):
    """All lines that look like rows belong to a table with the same number of cells."""
    text = re.sub(r"^ *(```+|~~~+|:::+).*?^ *\1", "", PAGES[page], flags=re.M | re.S)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    tokens = PARSER.parse(text)
    rendered = [token for token in tokens if token.type == "tr_open"]
    rules = [row for row in rows if re.fullmatch(r"[|\s:-]+", row)]
    assert len(rendered) == len(rows) - len(rules)
    assert len([token for token in tokens if token.type == "table_open"]) == len(rules)
    width = None
    for row, following in zip(rows, [*rows[1:], ""], strict=False):
        cells = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) - 1
        if following in rules:
            width = cells
        assert cells == width, row


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_name_a_language(page):
    """The documentation would run a block without a language as Python."""
    fences = [token for token in PARSER.parse(PAGES[page]) if token.type == "fence"]
    assert all(fence.info for fence in fences), [f.map for f in fences if not f.info]


@pytest.mark.parametrize("page", PAGES)
def test_sections_are_not_empty(page):
    tokens = [token for token in PARSER.parse(PAGES[page]) if token.level == 0]
    blocks = [t for t in tokens if t.type.endswith("_open") or t.nesting == 0]
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.type != "heading_open":
            continue
        deeper = following is not None and (
            following.type != "heading_open" or following.tag > block.tag
        )
        assert deeper, f"nothing below the heading in line {block.map[0] + 1}"


def test_readme_lists_all_extractors_with_tasks():
    rows = {row[0].strip("`"): row for row in _table("Extractors")}
    assert list(rows)[:-1] == sorted(EXTRACTORS)
    for name, spec in EXTRACTORS.items():
        assert rows[name][2] == ", ".join(spec.tasks), name
    guide = {row[0].strip("`"): row for row in _table_of("docs/guide/extractors.md")}
    assert {name: (row[2], row[3], row[4]) for name, row in guide.items()} == {
        name: tuple(rows[name][1:]) for name in EXTRACTORS
    }


def _table_of(page: str) -> list[list[str]]:
    lines = [line for line in PAGES[page].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _measured(learner: str, data: str) -> list[str] | None:
    """Return ICE, FiRe, rules, fidelity, ... of a learner in benchmarks/README.md."""
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {data}, 3 splits\n(.*?)(?=^##|\Z)", page, flags=re.M | re.S)[1]
    line = re.search(rf"^\| {re.escape(learner)} \| (.*)$", section, flags=re.M)
    return None if line is None or line[1].startswith("-") else line[1].split(" | ")


COMPARED = ("iris", "wine", "breast_cancer", "diabetes", "friedman10")


def test_readme_figures_match_the_benchmarks():
    rows = _table("Compared with other tools")
    assert {"skescore search", "skescore CART", "PSyKE CART", "RuleKit"} <= {row[0] for row in rows}
    for learner, *cells in rows:
        for data, cell in zip(COMPARED, cells, strict=True):
            figures = _measured(learner, data)
            if figures is None:
                assert cell == "-", (learner, data)
                continue
            ice, _, n_rules, fidelity, *_ = figures
            start, _, agreement = cell.strip(")").rpartition(", ")
            assert start == f"{float(ice):.3f} ({float(n_rules):.1f}"
            assert abs(float(agreement) - float(fidelity)) <= 0.0055  # both are rounded


def test_paper_figures_match_the_benchmarks():
    paper = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ((?:skescore|PSyKE|RuleKit|imodels)[^|]*?)(?:, defaults)? \|(.*)\|$", paper, re.M
    )
    assert len(rows) == 5
    for learner, cells in rows:
        for data, cell in zip(COMPARED, cells.split("|"), strict=False):
            ice, _, n_rules, *_ = _measured(learner, data)
            assert cell.strip() == f"{float(ice):.3f} ({float(n_rules):.1f})"


def test_paper_states_the_measured_runs_and_speeds():
    """Searches and speeds in the paper equal the tables of the benchmarks."""
    paper = " ".join((ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split())
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")

    def cells(start: str) -> list[str]:
        return re.search(rf"^\| {re.escape(start)} \| (.*) \|$", page, flags=re.M)[1].split(" | ")

    runs, worse, *_ = cells("ours re-scored | PSyKE's tuners")
    better, equal, behind = map(int, runs.split(" / "))
    total = better + equal + behind
    assert f"in {better} of {total} runs, equal in {equal} and worse in {behind}" in paper
    assert worse == "0 of 132"
    runs, _, significant, significantly_worse = cells("ours re-scored | joint re-scored")
    better, equal, behind = map(int, runs.split(" / "))
    assert f"better in {better} runs, equal in {equal} and worse in {behind}" in paper
    assert f"significant in {significant} combinations" in paper
    assert significantly_worse == "0 of 30"
    ours, theirs, *_, queries = cells("GridEx | 10000")[:8]
    n_queries = queries.split()[0]
    assert f"took {float(ours) * 1000:.0f} ms and one query" in paper
    assert f"took {float(theirs):.1f} s and {n_queries} queries" in paper
    assert f"is {float(cells('GridREx | 100000')[2]):.0f} times as fast" in paper
    assert f"CART {cells('CART | 100000')[2]} times" in paper


def test_readme_ice_factors_match_the_formulas():
    performance, size = (row[2] for row in _table("Meaning of the score")[:2])
    assert f"{ice_performance(0.761):.3f}" == performance
    assert f"{ice_readability(2):.3f}" == size
    assert f"{ice_score(0.761, 2, 1.0):.3f}" == "0.966"


@pytest.mark.parametrize("line", re.findall(r"\[`(tests/.*?)`\]\((.*?)\)", "".join(PAGES.values())))
def test_promises_name_existing_tests(line):
    name, link = line
    file, _, function = name.partition("::")
    assert link.endswith(file)
    assert not function or f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")))
def test_notebooks_contain_outputs(path):
    """`pytest --nbmake --overwrite notebooks` updates the outputs."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output.get("name") != "stderr" for cell in code for output in cell["outputs"])


# Commands -----------------------------------------------------------------------------------------


def test_ci_runs_the_readme_test_command():
    script = ROOT / ".ci" / "run"
    command = _blocks("bash")[1].strip()
    assert command.endswith("tox")
    assert command in script.read_text(encoding="utf-8").splitlines()
    assert os.access(script, os.X_OK)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "shown"), [([], False), (["--scoring", "accuracy"], True)])
def test_readme_first_command_prints_the_shown_rules(options, shown, capsys):
    words = _blocks("bash")[0].strip().split("&& ")[-1].split()
    assert words[0] == ".venv/bin/skescore"
    assert main([*words[1:], *options, "--quiet"]) == 0
    output = capsys.readouterr().out
    if shown:
        assert _blocks("text")[0].strip() in output
        # Lines are wrapped to the width of the terminal.
        assert "fidelity (accuracy against the model) 1.000" in " ".join(output.split())
    else:
        assert "Trepan with ICE 0.9663; its 2 rules" in output


@pytest.mark.slow
def test_tune_wine_reaches_the_promised_ice(capsys):
    """The project promises a cross-validated ICE of at least 0.965 on wine."""
    assert main(["tune", "wine", "--black-box", "random-forest", "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["best"]["score"] >= 0.965
    assert len(result["leaderboard"]) >= 20  # and the trees of up to 32 leaves


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "examples").glob("plot_*.py")))
def test_gallery_examples_run(path, monkeypatch, tmp_path, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    with pyplot.rc_context({"backend": "agg"}):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        assert pyplot.get_fignums()
        pyplot.close("all")
