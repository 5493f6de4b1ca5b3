"""Reading tables from files: text in several dialects, and Parquet.

What is read is handed on as it is in the file. Only what would be misread is refused here, with
the file, the line and the way out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import shlex
import warnings
import zlib
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from skescore._optional import import_optional
from skescore.datasets._tables import DatasetError, check_unique

__all__ = ["read_file"]

# The usual separator of each kind of text file; the header line may show another one.
TEXT_KINDS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET_KINDS = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
LINE_NOTE = "(the header is line 1)"


def read_file(path: Path, where: str) -> tuple[pd.DataFrame, str]:
    """Return the table as it is in the file, with rows numbered from 0, and the checksum.

    `where` names the file in errors, as its user did.

    Raises
    ------
    DatasetError
        The file cannot be read, or would be misread.
    FileNotFoundError
        There is no such file.
    """
    try:
        with path.open("rb") as raw:
            start = raw.read(4096)
            raw.seek(0)
            checksum = hashlib.file_digest(raw, "sha256").hexdigest()
    except FileNotFoundError:
        raise  # only the caller knows what else the name could have meant
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and path.is_dir():
            raise DatasetError(f"{where} is a folder: pass one of the files in it.") from error
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"{where} cannot be read: {reason}. Check its name and its access rights."
        ) from error
    if not start:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.")
    stem = path.name.lower().removesuffix(".gz")
    suffix, compressed = Path(stem).suffix, stem != path.name.lower()
    if suffix in PARQUET_KINDS and not compressed:
        return _read_parquet(path, where, start), checksum
    if suffix in TEXT_KINDS:
        return _read_text(path, where, TEXT_KINDS[suffix], compressed), checksum
    raise DatasetError(
        f"{where} has the unknown ending {path.suffix!r}: it must be .csv, .tsv, .tab, .txt (each "
        "also with .gz), .parquet or .pq. Save the table as CSV."
    )


def _read_parquet(path: Path, where: str, start: bytes) -> pd.DataFrame:
    if not start.startswith(b"PAR1"):
        raise DatasetError(f"{where} is not a Parquet file: rename it by what it is, such as .csv.")
    try:
        parquet = import_optional(
            "pyarrow.parquet", extra="parquet", purpose="Reading a Parquet file"
        )
    except ImportError as error:
        raise DatasetError(f"{where} cannot be read. {error}") from error
    # An open file, because from a path pyarrow would also read columns out of folder names.
    with path.open("rb") as raw:
        try:
            names = list(parquet.read_schema(raw).names)
            check_unique(names, where)
            raw.seek(0)
            table = pd.read_parquet(raw, engine="pyarrow")
        except DatasetError:
            raise
        except (ValueError, OSError, NotImplementedError) as error:
            raise DatasetError(f"{where} is a damaged Parquet file: {error}") from error
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    table.columns = pd.Index([str(column) for column in table.columns])
    return table.reset_index(drop=True)


def _read_text(path: Path, where: str, separator: str, compressed: bool) -> pd.DataFrame:
    opener: Any = gzip.open if compressed else open
    try:
        with opener(path, "rb") as raw:
            _refuse_binary(raw.read(4096), where)
        with opener(path, "rt", encoding="utf-8-sig", newline="") as text:
            separator, header = _sniff(text, separator)
        check_unique(header, where)
        with warnings.catch_warnings():
            # pandas only warns when all rows have more cells than the header, and cuts them off.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=separator,
                compression="gzip" if compressed else None,
                encoding="utf-8",
                engine="c",
                low_memory=False,  # one type per column, however long the file
                index_col=False,
                skipinitialspace=True,
            )
    except UnicodeDecodeError as error:
        raise DatasetError(_not_utf8(path, where, opener)) from error
    except pd.errors.EmptyDataError as error:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.") from error
    except pd.errors.ParserWarning as error:
        raise DatasetError(
            f"{where}: the data rows have more cells than the header, which has {len(header)}. "
            f"Name every column, and put cells that hold {separator!r} in quotation marks."
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise DatasetError(_malformed(str(error), where, separator)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{where} is damaged or cannot be read: {error}") from error


def _sniff(text: Any, usual: str) -> tuple[str, list[str]]:
    """Return the separator for which header and first row agree, and the names in the header."""
    heads: dict[str, list[list[str]]] = {}
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        text.seek(0)
        records = csv.reader(text, delimiter=separator, skipinitialspace=True)
        # Like pandas, skip blank lines; a line of nothing but separators is not blank.
        filled = (record for record in records if len(record) > 1 or any(record))
        heads[separator] = list(islice(filled, 2)) or [[]]
        widths = {len(record) for record in heads[separator]}
        if len(widths) == 1 and min(widths) > 1:
            return separator, heads[separator][0]
    best = max(heads, key=lambda separator: len(heads[separator][0]))
    return best, heads[best][0]


def _refuse_binary(start: bytes, where: str) -> None:
    disguises = {
        b"PAR1": "a Parquet file: rename it to end in .parquet",
        b"\x1f\x8b": "compressed with gzip: rename it to end in .gz",
        b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or save the sheet as CSV",
        b"\xff\xfe": "text in the encoding UTF-16: save it as UTF-8",
        b"\xfe\xff": "text in the encoding UTF-16: save it as UTF-8",
    }
    for magic, meaning in disguises.items():
        if start.startswith(magic):
            raise DatasetError(f"{where} is {meaning}.")
    if b"\0" in start:
        raise DatasetError(f"{where} is binary, not text: save the table as CSV in UTF-8.")


def _not_utf8(path: Path, where: str, opener: Any) -> str:
    """Find the first line that is not UTF-8; only read once the quick way has failed."""
    place = ""
    with opener(path, "rb") as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f": line {number} {LINE_NOTE} has the byte 0x{line[error.start]:02x}"
                break
    return (
        f"{where} is not in the encoding UTF-8{place}. Save it as UTF-8; if it comes from an older "
        f"Windows program: iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(where)}"
    )


def _malformed(message: str, where: str, separator: str) -> str:
    """Say the tokenizer's complaint in terms of the file."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if found:
        expected, line, saw = found.groups()
        return (
            f"{where}: line {line} {LINE_NOTE} has {saw} cells, the header {expected}. Put cells "
            f"that hold {separator!r} in quotation marks, or take the extra cell away."
        )
    found = re.search(r"EOF inside string starting at row (\d+)", message)
    if found:
        line = str(int(found[1]) + 1)
        return f"{where}: a quotation mark opened in line {line} {LINE_NOTE} is never closed."
    return f"{where} cannot be read as a table: {message.strip()}. Save it as CSV again."
