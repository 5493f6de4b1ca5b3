"""Tests of the distributed files: wheel, sdist, conda recipe and citation file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import jinja2
import pytest
import yaml

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD_SYSTEM = PYPROJECT["project"], PYPROJECT["build-system"]
RECIPE = ROOT / "conda" / "recipe" / "meta.yaml"


def _python(*words: object, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from the sdist."""
    for tool in ("build", "hatchling", "twine", "check_wheel_contents"):
        pytest.importorskip(tool)
    folder = tmp_path_factory.mktemp("dist")
    _python("-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_distributions_pass_twine_checks(built):
    assert _python("-m", "twine", "check", "--strict", *built).count("PASSED") == 2
    assert "OK" in _python("-m", "check_wheel_contents", built[0])


@pytest.mark.slow
def test_distributions_contain_required_files(built):
    wheel, sdist = built
    assert wheel.name == f"skescore-{PROJECT['version']}-py3-none-any.whl"
    license = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        (license_file,) = (name for name in names if name.endswith("licenses/LICENSE"))
        assert files.read(license_file) == license
        assert {name.partition("/")[0] for name in names} == {
            "skescore",
            license_file.partition("/")[0],
        }
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "skescore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("skescore/")} == sources
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
        assert files.extractfile(f"skescore-{PROJECT['version']}/LICENSE").read() == license
    assert sources | {"CITATION.cff", "README.md", "tests/conftest.py", "docs/conf.py"} <= names


@pytest.mark.slow
def test_sdist_installs_and_runs(built, tmp_path):
    _python(
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        tmp_path,
        built[1],
    )
    words = ("-m", "skescore", "tune", "titanic", "--trials", "2", "--extractors", "cart")
    assert "IF sex = female THEN yes" in _python(*words, "--quiet", PYTHONPATH=str(tmp_path))


def test_conda_recipe_matches_pyproject():
    """The recipe also follows those rules of conda-forge's linter that need no network."""
    text = RECIPE.read_text(encoding="utf-8")
    stated = dict(re.findall(r'{% set (\w+) = "(.+?)" %}', text))
    assert stated["name"] == PROJECT["name"]
    assert stated["version"] == PROJECT["version"]
    assert PROJECT["requires-python"] == f">={stated['python_min']}"
    sections = re.findall(r"^(\w+):$", text, flags=re.M)
    assert sections == ["package", "source", "build", "requirements", "test", "about", "extra"]
    recipe = yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))
    assert list(recipe) == sections
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    everywhere = [need.partition(";")[0].strip() for need in PROJECT["dependencies"]]
    expected = [re.sub(r"(?=[<>=])", " ", need, count=1) for need in everywhere]
    assert recipe["requirements"]["run"] == [f"python >={stated['python_min']}", *expected]
    (build_requirement,) = BUILD_SYSTEM["requires"]
    assert build_requirement.replace(">=", " >=") in recipe["requirements"]["host"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["license"]
    assert [recipe["about"]["license_file"]] == PROJECT["license-files"]
    for line in text.splitlines():
        assert line == line.rstrip()
        assert "\t" not in line
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for rule in (
        "  number: 0",
        "  noarch: python",
        "    - pip check",
        "    - python {{ python_min }}",
        "  name: {{ name|lower }}",
    ):
        assert f"\n{rule}\n" in text, rule
    summary = re.search(r"^  summary: (.+)$", text, flags=re.M)[1]
    assert len(summary) < 100


def test_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in text
    assert f"\nlicense: {PROJECT['license']}\n" in text
    assert '- name: "The skescore developers"' in text
