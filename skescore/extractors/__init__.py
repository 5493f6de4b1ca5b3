"""Extractors: scikit-learn estimators that turn a black box into rules."""

from skescore._deadline import ExtractionTimeoutError, QueryLimitError, time_limit
from skescore._rows import repeated_rows
from skescore.extractors._base import BaseExtractor
from skescore.extractors._binned import (
    Column,
    HistogramSource,
    LabelMoments,
    MeasuredColumn,
)
from skescore.extractors._cart import PATH_LEAVES, CARTExtractor
from skescore.extractors._discretizer import Discretizer
from skescore.extractors._input import (
    CategoryEncoder,
    category_order,
    has_categories,
    is_categorical,
)
from skescore.extractors._optimal import OptimalListExtractor, OptimalTreeExtractor
from skescore.extractors._oracle import CachedBlackBox, Oracle, ResultCache
from skescore.extractors._revised import RevisedRulesExtractor
from skescore.extractors._sampling import N_QUERIES, SAMPLINGS, RowGenerator, generate_rows
from skescore.extractors._subtrees import equal_siblings, first_leaves, without_equal_siblings
from skescore.extractors._surrogate import SurrogateExtractor
from skescore.extractors.cream import (
    CREAMClusterer,
    CREAMExtractor,
    ExACTClusterer,
    ExACTExtractor,
)
from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.extractors.gridex._gridrex import GridRExExtractor
from skescore.extractors.iter import ITERExtractor
from skescore.extractors.real._real import REALExtractor
from skescore.extractors.trepan import TrepanExtractor

__all__ = [
    "N_QUERIES",
    "PATH_LEAVES",
    "SAMPLINGS",
    "BaseExtractor",
    "CARTExtractor",
    "CREAMClusterer",
    "CREAMExtractor",
    "CachedBlackBox",
    "CategoryEncoder",
    "Column",
    "Discretizer",
    "ExACTClusterer",
    "ExACTExtractor",
    "ExtractionTimeoutError",
    "GridExExtractor",
    "GridRExExtractor",
    "HistogramSource",
    "ITERExtractor",
    "LabelMoments",
    "MeasuredColumn",
    "OptimalListExtractor",
    "OptimalTreeExtractor",
    "Oracle",
    "QueryLimitError",
    "REALExtractor",
    "ResultCache",
    "RevisedRulesExtractor",
    "RowGenerator",
    "SurrogateExtractor",
    "TrepanExtractor",
    "category_order",
    "equal_siblings",
    "first_leaves",
    "generate_rows",
    "has_categories",
    "is_categorical",
    "repeated_rows",
    "time_limit",
    "without_equal_siblings",
]
