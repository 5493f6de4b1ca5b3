"""REAL: rules that generalize single rows by queries to the black box."""

from skescore.extractors.real._real import REALExtractor

__all__ = ["REALExtractor"]
