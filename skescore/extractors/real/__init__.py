"""REAL: rules by generalizing single rows with queries to the black box."""

from skescore.extractors.real._real import REALExtractor

__all__ = ["REALExtractor"]
