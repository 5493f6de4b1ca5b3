"""CREAM and ExACT: explainable clustering, as clusterers and as extractors."""

from skescore.extractors.cream._cream import (
    CREAMClusterer,
    CREAMExtractor,
    ExACTClusterer,
    ExACTExtractor,
)

__all__ = ["CREAMClusterer", "CREAMExtractor", "ExACTClusterer", "ExACTExtractor"]
