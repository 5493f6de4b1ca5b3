"""Rows that are scored where they lie: databases, Parquet files, lazy frames, batches."""

from __future__ import annotations

from skescore.sources._scoring import SourceScore, count_source, score_source
from skescore.sources._tables import SourceError

__all__ = ["SourceError", "SourceScore", "count_source", "score_source"]
