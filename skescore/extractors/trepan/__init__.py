"""Trepan: a tree of M-of-N tests on rows and on instances drawn along the way."""

from skescore.extractors.trepan._trepan import TrepanExtractor

__all__ = ["TrepanExtractor"]
