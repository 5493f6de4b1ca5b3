"""``skescore doctor`` lists what is installed and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def site(tmp_path):
    """Return a folder that Python searches first."""
    return tmp_path


def install(site, name, version, *lines, source="", entry_points=""):
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join([f"Name: {name}", f"Version: {version}", *lines, ""]))
    (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
    (site / name.replace("-", "_")).mkdir()
    (site / name.replace("-", "_") / "__init__.py").write_text(textwrap.dedent(source))


def doctor(site, code):
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-m", "skescore", "doctor"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (code, "")
    return [line.strip() for line in run.stdout.splitlines()]


@pytest.mark.slow
def test_doctor_lists_versions_and_java(site, monkeypatch):
    folder = site / "java" / "bin"
    folder.mkdir(parents=True)
    (folder / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    (folder / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(site / "java"))
    lines = doctor(site, 0)
    assert lines[2] == f"Java: 11.0.1 ({folder / 'java'})"
    assert lines[0].startswith(f"skescore {importlib.metadata.version('skescore')} in ")
    for name in ("numpy", "scikit-learn", "optuna"):
        assert f"{name} {importlib.metadata.version(name)}" in lines
    extras = importlib.metadata.metadata("skescore").get_all("Provides-Extra")
    assert all(any(line.startswith(f"{extra}: ") for line in lines) for extra in extras)


def test_doctor_states_commands_for_problems(site):
    (site / "skescore-1.0.dist-info").mkdir()
    needs = ["no-such-package>=1.5", "old>=2", "broken", "joblib", "one[fast]<2,>=1; extra == 'a'"]
    needs += ["absent; extra == 'b'", "one>=2; extra == 'c'", "odd; python_version < '3'"]
    (site / "skescore-1.0.dist-info" / "METADATA").write_text(
        "Name: skescore\nVersion: 1.0\nRequires-Python: >=99\n"
        + "".join(f"Provides-Extra: {extra}\n" for extra in ("a", "b", "c", "psyke"))
        + "".join(f"Requires-Dist: {need}\n" for need in needs)
    )
    install(site, "old", "1.0")
    install(site, "one", "1.5")
    install(site, "broken", "1.0", source="raise ImportError('half of it is missing')")
    install(
        site,
        "plug-in",
        "1.0",
        source="""
        class Good:
            "Extracts."
            tasks = ("classification",)
            def fit(self, X, y=None):
                return self
        """,
        entry_points="[skescore.extractors]\ngood = plug_in:Good\nbad = plug_in.gone:Bad\n",
    )
    lines = doctor(site, 1)
    assert any("skescore needs >=99" in line for line in lines)
    assert 'no-such-package is missing. Run: pip install "no-such-package>=1.5"' in lines
    assert 'old 1.0 is not >=2. Run: pip install --upgrade "old>=2"' in lines
    (line,) = (line for line in lines if line.startswith("broken 1.0"))
    assert "ImportError: half of it is missing" in line
    assert line.endswith('Run: pip install --force-reinstall "broken"')
    assert f"joblib {importlib.metadata.version('joblib')}" in lines
    assert "a: one 1.5" in lines
    assert "b: absent is missing. Run: pip install absent" in lines
    assert 'c: one 1.5 is not >=2. Run: pip install --upgrade "one>=2"' in lines
    assert not any(line.startswith("odd") for line in lines)
    (line,) = (line for line in lines if line.startswith("psyke: "))
    assert line.startswith("psyke: psyke 1.0.4") or line.endswith(
        'Run: pip install ".[psyke]" && pip install --no-deps --ignore-requires-python psyke==1.0.4'
    )
    assert "good of plug-in (plug_in:Good)" in lines
    assert any(line.startswith("bad of plug-in (plug_in.gone:Bad) is broken") for line in lines)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00 nonsense", b"Requires-Dist: ((("])
def test_doctor_reports_damaged_metadata_without_traceback(content, site):
    (site / "skescore-1.0.dist-info").mkdir()
    (site / "skescore-1.0.dist-info" / "METADATA").write_bytes(content)
    assert "Run: pip install --force-reinstall skescore" in " ".join(doctor(site, 1))


@pytest.mark.slow
def test_commands_recommend_doctor_for_broken_packages(site):
    (site / "rich.py").write_text("raise ImportError('half of it is missing')")
    for words, code in ((["tune", "iris"], 1), (["--help"], 0), (["--version"], 0)):
        run = subprocess.run(
            [sys.executable, "-m", "skescore", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(site)},
            check=False,
        )
        assert run.returncode == code
        assert run.stderr.strip() == (
            "skescore: error: half of it is missing. To find the cause: skescore doctor"
            if code
            else ""
        )
