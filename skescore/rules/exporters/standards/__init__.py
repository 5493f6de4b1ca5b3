"""Writers of rules in exchange standards: ONNX, PMML and DMN."""

from skescore.rules.exporters.standards._dmn import to_dmn
from skescore.rules.exporters.standards._onnx import to_onnx
from skescore.rules.exporters.standards._pmml import to_pmml

__all__ = ["to_dmn", "to_onnx", "to_pmml"]
