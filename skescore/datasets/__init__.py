"""Data sets by name or from a file, checked before they are used."""

from skescore.datasets._files import Conversion, DatasetError
from skescore.datasets._loading import (
    BUILT_IN,
    BuiltIn,
    Dataset,
    DatasetNotFoundError,
    load_dataset,
)
from skescore.datasets._packaged import archive_content, fetch_archive, read_packaged
from skescore.datasets._reading import (
    ColumnReading,
    Preparation,
    ReadingOptions,
    Table,
    read_table,
)

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "ColumnReading",
    "Conversion",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "Preparation",
    "ReadingOptions",
    "Table",
    "archive_content",
    "fetch_archive",
    "load_dataset",
    "read_packaged",
    "read_table",
]
