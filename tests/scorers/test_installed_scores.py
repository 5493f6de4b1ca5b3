"""Scores that installed packages add by the entry-point group ``skescore.scores``."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor
from skescore.scorers import SCORE_SPECS, SCORERS, register_installed_scores

PLUGIN = Path(__file__).parents[1] / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    build = "import backend, sys; print(backend.build_wheel(sys.argv[1]))"
    outcome = subprocess.run(
        [sys.executable, "-c", build, str(folder)],
        cwd=PLUGIN,
        check=True,
        capture_output=True,
        text=True,
    )
    zipfile.ZipFile(folder / outcome.stdout.strip()).extractall(folder)
    return folder


@pytest.mark.slow
def test_score_command_computes_installed_scores(site: Path, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    rules = CARTExtractor(DecisionTreeClassifier(random_state=0), max_leaf_nodes=3).fit(X, y).rules_
    (tmp_path / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    X.assign(target=y).to_csv(tmp_path / "iris.csv", index=False)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    words = ["score", "rules.json", "iris.csv", "--target", "target", "--format", "json"]
    outcome = subprocess.run(
        [sys.executable, "-m", "skescore", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        check=True,
        capture_output=True,
        text=True,
    )
    errors = (rules.predict(X) != y).mean()
    assert json.loads(outcome.stdout)["scores"]["brief"] == pytest.approx(errors + 0.03)


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        (
            "math:pi",
            TypeError,
            "score 'odd' of the package 'odd' .* must be a skescore",
        ),
        (
            "no_such_module_at_all:X",
            ImportError,
            "score 'odd' .* cannot be imported",
        ),
        ("skescore.scorers:SurvivalScorer", TypeError, "must be a skescore.scorers.ScoreSpec"),
    ],
)
def test_register_installed_scores_rejects_invalid_entries(
    target: str, kind: type, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "odd-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[skescore.scores]\nodd = {target}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(kind, match=message):
        register_installed_scores()


def test_register_installed_scores_adds_scores_and_scorers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brief_one.py").write_text(
        "from dataclasses import replace\n"
        "from skescore.scorers import SCORE_SPECS\n"
        "score = replace(SCORE_SPECS['fire'], name='brief', kept_as='', label='')\n"
    )
    info = tmp_path / "brief-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brief\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[skescore.scores]\nshort = brief_one:score\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(SCORE_SPECS), dict(SCORERS)
    try:
        assert register_installed_scores() == ("brief",)
        assert "brief" in SCORE_SPECS
        assert SCORERS["neg_brief"].name == "neg_brief"
    finally:
        for table, content in zip((SCORE_SPECS, SCORERS), before, strict=True):
            table.clear()
            table.update(content)
