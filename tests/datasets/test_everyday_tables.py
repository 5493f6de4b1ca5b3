"""Exports of statistics programs and spreadsheets are read as they are."""

from __future__ import annotations

import pytest
from everyday_tables import EXCEL_TABLES, TEXT_TABLES, EverydayTable

from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.suspicions import TableFacts, find_suspicions

TABLES = {**TEXT_TABLES, **{f"{name}.xlsx": table for name, table in EXCEL_TABLES.items()}}
#: A search of one tree, so that reading is most of the work.
SHORT = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", "1", "--cv", "3")


@pytest.fixture(params=TABLES)
def table(request) -> EverydayTable:
    if request.param.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    return TABLES[request.param]


def test_load_dataset_reads_everyday_table_as_it_is(table, tmp_path):
    dataset = load_dataset(table.write(tmp_path), target=table.target)
    assert set(table.features) <= set(dataset.X)
    assert {name.partition(": days")[0] for name in dataset.X} <= {
        *table.features,
        *(name.partition(": ")[0] for name in table.features),
    }
    assert len(dataset.X) == table.n_rows
    assert any(table.finding in text for text in dataset.findings)
    facts = TableFacts(dataset.X, dataset.y, dataset.task, identifiers=dataset.identifiers)
    names = [suspicion.name for suspicion in find_suspicions(facts)]
    assert names == ([table.suspicion] if table.suspicion else [])


@pytest.mark.slow
def test_tune_accepts_everyday_table_as_it_is(table, tmp_path, capsys):
    path = table.write(tmp_path)
    assert main(["tune", str(path), "--target", table.target, *SHORT]) == 0
    out, err = capsys.readouterr()
    assert table.finding in out + err
    warnings = [line for line in out.splitlines() if line.startswith("Warning: ")]
    assert len([line for line in warnings if "model" not in line]) == bool(table.suspicion)
    assert "best: " in out
