"""Data sets by name or from a file, checked before a model or an extractor sees them."""

from skescore.datasets._loading import (
    BUILT_IN,
    BuiltIn,
    Dataset,
    DatasetError,
    DatasetNotFoundError,
    load_dataset,
)

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "load_dataset",
]
