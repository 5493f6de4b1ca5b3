"""Progress of a search on a terminal and without one."""

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
            if "2 of 5" in (text := capsys.readouterr().err):
                break
            time.sleep(0.05)
        assert re.search(r"^2 of 5 trials after \d+ s; CART, best ICE 0.5$", text, re.MULTILINE)
    assert capsys.readouterr().err.endswith("2 trials of CART, best ICE 0.5\n")


@pytest.mark.parametrize(
    ("stage", "activity"),
    [
        ("rows", "checking the rows"),
        ("black_boxes", "fitting the model"),
        ("trials", "1 of 5 trials"),
        ("finalists", "comparing the best candidates on other folds"),
        ("all_rows", "fitting the model on all rows"),
        ("winner", "choosing the winner"),
    ],
)
def test_progress_names_the_work_of_each_stage(
    stage: str, activity: str, capsys: pytest.CaptureFixture[str]
) -> None:
    search = SimpleNamespace(data_=SimpleNamespace(is_fitted=False))
    with SearchProgress(5, "ICE", seconds=0.05) as progress:
        trials(progress, "cart", [0.25])
        progress.on_stage(search, stage)
        for _ in range(200):
            if activity in (text := capsys.readouterr().err):
                break
            time.sleep(0.05)
    assert re.search(f"^{activity},? after [0-9]+ s", text, re.MULTILINE)
    assert capsys.readouterr().err.endswith("1 trial of CART, best ICE 0.25\n")


def test_progress_counts_trees_and_trials(capsys: pytest.CaptureFixture[str]) -> None:
    with SearchProgress(5, "ICE", seconds=0.05) as progress:
        tree = SimpleNamespace(
            state=optuna.trial.TrialState.COMPLETE,
            user_attrs={"score": 0.5, "baseline": 0},
        )
        progress(SimpleNamespace(study_name="wine/cart"), tree)
        trials(progress, "gridex", [0.25])
        for _ in range(200):
            if "after" in (text := capsys.readouterr().err):
                break
            time.sleep(0.05)
    assert text.startswith("1 tree and 1 of 5 trials after 0 s; CART, best ICE 0.5\n")


def test_progress_of_interrupted_search_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_progress_updates_an_executed_notebook() -> None:
    nbformat, nbclient = map(pytest.importorskip, ("nbformat", "nbclient"))
    code = (
        "import time\nfrom types import SimpleNamespace\nimport optuna\n"
        "from skescore.tuning import SearchProgress\n"
        "complete = optuna.trial.TrialState.COMPLETE\n"
        "with SearchProgress(3, 'ICE') as progress:\n"
        "    for score in (0.25, 0.5, 0.375):\n"
        "        trial = SimpleNamespace(state=complete, user_attrs={'score': score})\n"
        "        progress(SimpleNamespace(study_name='wine/cart'), trial)\n"
        "        time.sleep(0.7)\n"
    )
    updates: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc]
        def process_message(self, message: dict, cell: dict, index: int) -> object:
            if message["msg_type"] == "update_display_data":
                updates.append(message["content"]["data"]["text/plain"])
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    Client(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [out for out in notebook.cells[0].outputs if out["output_type"] == "display_data"]
    assert len(outputs) == 1  # one output, which was replaced
    assert re.fullmatch(r"3 of 3 trials after \d s; CART, best ICE 0.5", updates[-1])
    assert any(text.startswith("1 of 3 trials") for text in updates)
    assert '<progress value="3" max="3">' in outputs[0]["data"]["text/html"]
