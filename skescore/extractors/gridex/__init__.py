"""GridEx and GridREx: grids over the domain, refined where the black box's predictions differ."""

from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.extractors.gridex._gridrex import GridRExExtractor

__all__ = ["GridExExtractor", "GridRExExtractor"]
