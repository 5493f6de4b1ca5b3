"""Files that survive a crash, through what uses them and by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skescore._io import LineFile, try_lock, write_atomically


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "old ± \udcff\n")
    assert path.read_bytes() == b"old \xc2\xb1 \\udcff\n"
    with pytest.raises(TypeError):
        write_atomically(path, 3)  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_lines_are_found_again_however_the_file_was_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole.txt"
    for line in ("one", "two \x0b ±", ""):
        LineFile(whole, "head").append(line)
    content = whole.read_bytes()
    for cut in range(len(content) + 1):
        path = tmp_path / "cut.txt"
        path.write_bytes(content[:cut])
        lines = LineFile(path, "head").lines
        assert lines == ["one", "two \x0b ±", ""][: max(content[:cut].count(b"\n") - 1, 0)]
        LineFile(path, "head").append("more")
        assert LineFile(path, "head").lines == [*lines, "more"]


def test_a_lock_keeps_other_processes_out_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = "import sys; from pathlib import Path; from skescore._io import try_lock\n"
    program += "with try_lock(Path(sys.argv[1])) as free: print(free)"

    def other() -> str:
        run = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
        )
        return run.stdout.strip()

    with try_lock(path) as free:
        assert free
        assert other() == "False"
    assert other() == "True"
    assert not path.exists()
