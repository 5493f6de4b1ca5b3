"""Scoring and extraction of rules on rows in databases, in files and in batches."""

from __future__ import annotations

from skescore.sources._data_source import DataSource
from skescore.sources._decision_counts import count_source_decisions
from skescore.sources._extraction import SourceExtraction, extract_source
from skescore.sources._sampling import SourceSample, sample_source
from skescore.sources._scoring import SourceScore, count_source, score_source
from skescore.sources._tables import SourceError

__all__ = [
    "DataSource",
    "SourceError",
    "SourceExtraction",
    "SourceSample",
    "SourceScore",
    "count_source",
    "count_source_decisions",
    "extract_source",
    "sample_source",
    "score_source",
]
