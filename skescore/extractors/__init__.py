"""Extractors: scikit-learn estimators that turn a black box into rules."""

from skescore.extractors._base import BaseExtractor
from skescore.extractors._oracle import Oracle, RememberingBlackBox
from skescore.extractors.adapters import CallableClassifier, CallableRegressor
from skescore.extractors.black_box import black_box_task, is_fitted, is_prefit
from skescore.extractors.cart import CARTExtractor
from skescore.extractors.gridex import GridExExtractor

__all__ = [
    "BaseExtractor",
    "CARTExtractor",
    "CallableClassifier",
    "CallableRegressor",
    "GridExExtractor",
    "Oracle",
    "RememberingBlackBox",
    "black_box_task",
    "is_fitted",
    "is_prefit",
]
