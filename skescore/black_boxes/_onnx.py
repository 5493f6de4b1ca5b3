"""ONNX models as black boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore._optional import import_optional

_DTYPES = {
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


class OnnxPredictor:
    """Function that predicts rows by an ONNX model; reading an ONNX file runs no code.

    Wrap it in :class:`CallableClassifier` or :class:`CallableRegressor`, like `load_black_box`.

    Parameters
    ----------
    content : bytes
        The serialized model. It has one input for all features, in order, or for each feature an
        input of one column with its name. Its first output is the prediction.

    Raises
    ------
    ImportError
        If onnxruntime is not installed.

    Notes
    -----
    Missing numbers are NaN. Missing texts are replaced by the entry ``missing_text`` of the model's
    metadata, as in rules that skescore exports, or by empty texts.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        runtime = import_optional("onnxruntime", extra="onnx", purpose="Running an ONNX model")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )

    def __getstate__(self) -> bytes:
        return self.content

    def __setstate__(self, content: bytes) -> None:
        self.__init__(content)  # type: ignore[misc]

    @property
    def is_classifier(self) -> bool:
        """True if the predictions are labels instead of floating-point numbers."""
        return self._session.get_outputs()[0].type not in ("tensor(float)", "tensor(double)")

    def __call__(self, rows: Any) -> np.ndarray:
        """Predict rows."""
        inputs = self._session.get_inputs()
        if len(inputs) == 1 and not _is_column(inputs[0], rows):
            values = np.asarray(rows)
            feeds = {inputs[0].name: self._tensor(values, inputs[0].type)}
        else:
            if not isinstance(rows, pd.DataFrame):
                raise TypeError(
                    "This ONNX model has one input per feature, identified by name: "
                    f"pass rows as a DataFrame, got {type(rows).__name__}."
                )
            absent = [field.name for field in inputs if field.name not in rows.columns]
            if absent:
                raise ValueError(
                    f"The ONNX model has the input {absent[0]!r}, but the rows have the columns "
                    f"{list(rows.columns)}. Rename the columns."
                )
            feeds = {f.name: self._tensor(rows[[f.name]].to_numpy(), f.type) for f in inputs}
        (prediction,) = self._session.run([self._session.get_outputs()[0].name], feeds)
        prediction = np.asarray(prediction)
        return prediction[:, 0] if prediction.ndim == 2 else prediction

    def _tensor(self, values: np.ndarray, type_name: str) -> np.ndarray:
        if type_name == "tensor(string)":
            metadata = self._session.get_modelmeta().custom_metadata_map
            texts = np.where(pd.isna(values), metadata.get("missing_text", ""), values)
            return np.asarray(texts, dtype=object)
        numbers = pd.DataFrame(values).apply(pd.to_numeric).to_numpy(dtype=float, na_value=np.nan)
        return np.ascontiguousarray(numbers.astype(_DTYPES.get(type_name, np.float32)))


def _is_column(field: Any, rows: Any) -> bool:
    """Return whether the only input is one named column of the rows."""
    return isinstance(rows, pd.DataFrame) and field.name in rows.columns
