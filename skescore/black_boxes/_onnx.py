"""ONNX models as black boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore._optional import import_optional


class OnnxPredictor:
    """Function that predicts rows by an ONNX model; reading an ONNX file runs no code.

    Wrap it in :class:`CallableClassifier` or :class:`CallableRegressor`, as `load_black_box` does.

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
        floats = ("tensor(float)", "tensor(double)", "tensor(float16)")
        return self._session.get_outputs()[0].type not in floats

    def __call__(self, rows: Any) -> np.ndarray:
        """Predict rows."""
        inputs = self._session.get_inputs()
        if len(inputs) == 1 and not _is_column(inputs[0], rows):
            table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
            feeds = {inputs[0].name: self._make_input(table, inputs[0])}
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
            feeds = {field.name: self._make_input(rows[[field.name]], field) for field in inputs}
        (prediction,) = self._session.run([self._session.get_outputs()[0].name], feeds)
        prediction = np.asarray(prediction)
        return prediction[:, 0] if prediction.shape[1:] == (1,) else prediction

    def _make_input(self, table: pd.DataFrame, field: Any) -> np.ndarray:
        """Convert columns to the type of an input of the model."""
        kind = field.type.removeprefix("tensor(").removesuffix(")")
        if kind == "string":
            metadata = self._session.get_modelmeta().custom_metadata_map
            texts = table.astype(object).map(_text)
            return texts.where(table.notna(), metadata.get("missing_text", "")).to_numpy()
        dtype = np.dtype({"double": "float64", "float": "float32"}.get(kind, kind))
        numbers = table.apply(pd.to_numeric)
        floats = numbers.to_numpy(dtype=float, na_value=np.nan)
        if dtype.kind == "f":
            return np.ascontiguousarray(floats.astype(dtype))
        is_whole = np.isfinite(floats)
        result = numbers.where(is_whole, 0).astype(dtype)
        is_whole &= (result == numbers).to_numpy(dtype=bool, na_value=False)
        if not is_whole.all():
            row, column = np.argwhere(~is_whole)[0]
            raise ValueError(
                f"The input {field.name!r} of the ONNX model has the type {kind}, which cannot "
                f"represent {float(floats[row, column])} in column {table.columns[column]!r}. "
                "Remove such rows, or save the model with floating-point inputs."
            )
        return np.ascontiguousarray(result.to_numpy())


def _text(value: Any) -> str:
    """Return the text of a value; integers among missing values are stored as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_column(field: Any, rows: Any) -> bool:
    """Return whether the only input is one named column of the rows."""
    is_single = len(field.shape) != 2 or field.shape[1] == 1
    return is_single and isinstance(rows, pd.DataFrame) and field.name in rows.columns
