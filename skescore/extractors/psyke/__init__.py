"""PSyKE's own extractors behind the interface of all others."""

from skescore.extractors.psyke._psyke import PSyKEExtractor

__all__ = ["PSyKEExtractor"]
