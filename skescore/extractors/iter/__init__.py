"""ITER: boxes that grow step by step towards what is most like them."""

from skescore.extractors.iter._iter import ITERExtractor

__all__ = ["ITERExtractor"]
