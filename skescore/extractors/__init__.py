"""Extractors: scikit-learn estimators that turn a black box into rules."""

from skescore.extractors._base import BaseExtractor
from skescore.extractors._categories import has_categories
from skescore.extractors._oracle import Oracle, RememberingBlackBox
from skescore.extractors.adapters import CallableClassifier, CallableRegressor
from skescore.extractors.black_box import black_box_task, is_fitted, is_prefit
from skescore.extractors.cart import CARTExtractor
from skescore.extractors.clusterers import CREAMClusterer, ExACTClusterer
from skescore.extractors.cream import CREAMExtractor, ExACTExtractor
from skescore.extractors.discretiser import Discretiser
from skescore.extractors.gridex import GridExExtractor
from skescore.extractors.gridrex import GridRExExtractor
from skescore.extractors.iter import ITERExtractor
from skescore.extractors.psyke import PSyKEExtractor
from skescore.extractors.real import REALExtractor
from skescore.extractors.trepan import TrepanExtractor

__all__ = [
    "BaseExtractor",
    "CARTExtractor",
    "CREAMClusterer",
    "CREAMExtractor",
    "CallableClassifier",
    "CallableRegressor",
    "Discretiser",
    "ExACTClusterer",
    "ExACTExtractor",
    "GridExExtractor",
    "GridRExExtractor",
    "ITERExtractor",
    "Oracle",
    "PSyKEExtractor",
    "REALExtractor",
    "RememberingBlackBox",
    "TrepanExtractor",
    "black_box_task",
    "has_categories",
    "is_fitted",
    "is_prefit",
]
