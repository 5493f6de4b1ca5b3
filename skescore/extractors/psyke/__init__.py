"""PSyKE's algorithms with the interface of all extractors, and the packages that they require."""

from skescore.extractors.psyke._algorithms import ALGORITHMS, PARAMETERS, check_parameters
from skescore.extractors.psyke._psyke import PSyKEExtractor
from skescore.extractors.psyke._runtime import (
    check_installation,
    contained,
    java_library,
    load_psyke,
    missing_packages,
)

__all__ = [
    "ALGORITHMS",
    "PARAMETERS",
    "PSyKEExtractor",
    "check_installation",
    "check_parameters",
    "contained",
    "java_library",
    "load_psyke",
    "missing_packages",
]
