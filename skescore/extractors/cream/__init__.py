"""CREAM and ExACT: explainable clustering, as clusterers and as extractors."""

from skescore.extractors.cream._clusterers import CREAMClusterer, ExACTClusterer
from skescore.extractors.cream._cream import CREAMExtractor, ExACTExtractor

__all__ = ["CREAMClusterer", "CREAMExtractor", "ExACTClusterer", "ExACTExtractor"]
