"""GridEx and GridREx: grids over the domain, refined where the black box is not of one mind."""

from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.extractors.gridex._gridrex import GridRExExtractor

__all__ = ["GridExExtractor", "GridRExExtractor"]
