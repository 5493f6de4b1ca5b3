from __future__ import annotations

from skescore.bench import BenchProgress

ROW = {"data": "iris", "black_box": "knn", "extractor": "cart", "state": "complete"}


def test_progress_writes_lines_with_remaining_time(capsys):
    clock = iter([0.0, *range(1, 101)])
    with BenchProgress(clock=lambda: float(next(clock))) as progress:
        progress.on_start(20, 40)
        for number in range(40):
            progress.on_row(ROW | ({"state": "failed"} if number == 3 else {}))
    assert capsys.readouterr().err.splitlines() == [
        "resuming after 20 of 60 rows",
        "30 of 60 rows, 1 failed, 10 s, about 30 s left",
        "40 of 60 rows, 1 failed, 20 s, about 20 s left",
        "50 of 60 rows, 1 failed, 30 s, about 10 s left",
        "60 of 60 rows, 1 failed, 40 s",
    ]


def test_progress_of_first_row_has_no_estimate(capsys):
    clock = iter([0.0, 100.0])
    with BenchProgress(clock=lambda: next(clock)) as progress:
        progress.on_start(0, 1000)
        progress.on_row(ROW)
    assert capsys.readouterr().err == "1 of 1000 rows, 1 min 40 s\n"


def test_progress_disabled_is_silent(capsys):
    with BenchProgress(enabled=False) as progress:
        progress.on_start(0, 1)
        progress.on_row(ROW)
    assert capsys.readouterr().err == ""
    assert progress.n_measured == 1
