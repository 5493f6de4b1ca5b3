"""Black boxes: models by name or from files, adapters for functions, and fitting."""

from skescore.black_boxes._adapters import (
    CallableClassifier,
    CallableRegressor,
    CommandFunction,
    as_black_box,
    select_output,
)
from skescore.black_boxes._catalog import (
    BLACK_BOXES,
    BlackBoxSpec,
    CategoricalColumns,
    LabelCodingClassifier,
    make_black_box,
)
from skescore.black_boxes._compatibility import check_matches, type_name
from skescore.black_boxes._errors import BlackBoxError, SavedModelError, UnknownEndingError
from skescore.black_boxes._fitting import (
    QueryCost,
    accepts_groups,
    black_box_task,
    encode_labels,
    explained_refusal,
    finite_predictions,
    fit_black_box,
    fit_weighted,
    is_fitted,
    is_prefit,
    is_unsupervised,
    observed_classes,
)
from skescore.black_boxes._loading import load_black_box, load_model, model_checksum, read_bytes
from skescore.black_boxes._onnx import OnnxPredictor

__all__ = [
    "BLACK_BOXES",
    "BlackBoxError",
    "BlackBoxSpec",
    "CallableClassifier",
    "CallableRegressor",
    "CategoricalColumns",
    "CommandFunction",
    "LabelCodingClassifier",
    "OnnxPredictor",
    "QueryCost",
    "SavedModelError",
    "UnknownEndingError",
    "accepts_groups",
    "as_black_box",
    "black_box_task",
    "check_matches",
    "encode_labels",
    "explained_refusal",
    "finite_predictions",
    "fit_black_box",
    "fit_weighted",
    "is_fitted",
    "is_prefit",
    "is_unsupervised",
    "load_black_box",
    "load_model",
    "make_black_box",
    "model_checksum",
    "observed_classes",
    "read_bytes",
    "select_output",
    "type_name",
]
