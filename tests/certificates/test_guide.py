"""The guide to certificates states where the checker meets each proof obligation."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

SCRIPT = Path(__file__).parents[2] / "docs" / "obligation_lines.py"


def test_the_guide_states_the_lines_of_the_proof_obligations() -> None:
    script = run_path(str(SCRIPT))
    page = script["PAGE"].read_text(encoding="utf-8")
    assert page.count("\n| The ") > 5
    assert script["page_with_lines"](page) == page, "run python docs/obligation_lines.py"
