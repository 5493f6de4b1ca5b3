"""How far a search is, on a terminal and beside one."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import optuna
import pytest

from skescore.tuning import SearchProgress


def trials(progress: SearchProgress, name: str, values: list[float | None]) -> None:
    for value in values:
        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        attributes = {} if value is None else {"score": value}
        progress(
            SimpleNamespace(study_name=f"wine/{name}"),
            SimpleNamespace(state=state, user_attrs=attributes),
        )


@pytest.mark.parametrize(("sign", "best"), [(1, "0.5"), (-1, "-0.5")])
def test_progress_writes_final_lines(
    sign: int, best: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with SearchProgress(5, "ICE", sign) as progress:
        trials(progress, "cart", [0.25, None, 0.5])
        trials(progress, "gridex", [None])
        assert capsys.readouterr().err == ""
    assert capsys.readouterr() == ("", f"3 trials of CART, best ICE {best}\n1 trial of GridEx\n")


def test_progress_writes_regular_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with SearchProgress(5, "ICE", seconds=0.05) as progress:
        trials(progress, "cart", [0.25, 0.5])
        for _ in range(200):
            if "2 of 5" in (told := capsys.readouterr().err):
                break
            time.sleep(0.05)
        assert re.search(r"^2 of 5 trials after \d+ s; CART, best ICE 0.5$", told, re.MULTILINE)
    assert capsys.readouterr().err.endswith("2 trials of CART, best ICE 0.5\n")


def test_progress_of_interrupted_search(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        with SearchProgress(5, "ICE", 1) as progress:
            trials(progress, "cart", [0.25])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr() == ("", "")


def test_progress_disabled_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with SearchProgress(5, "ICE", 1, enabled=False) as progress:
        trials(progress, "cart", [0.25])
    assert capsys.readouterr() == ("", "")
