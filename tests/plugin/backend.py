"""A build backend for this one package: a wheel is a zip file of the modules and their metadata."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None
) -> str:
    """Build the wheel; pip calls this."""
    table = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = table["name"].replace("-", "_"), table["version"]
    info = f"{name}-{version}.dist-info"
    groups = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in table["entry-points"].items()
    )
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {table['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": groups,
    }
    for path in sorted((HERE / name).glob("*.py")):
        files[f"{name}/{path.name}"] = path.read_text(encoding="utf-8")
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for file, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(file, text)
    return wheel
