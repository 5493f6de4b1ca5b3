"""Declaration of the models that can be read as rules: one record per kind of model.

``as_ruleset``, ``options_from_rows``, the command line and the table in the guide derive from these
records. Add a kind of model by writing its reader and appending a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


@dataclass(frozen=True)
class ModelReader:
    """A kind of model that can be read as rules.

    Parameters
    ----------
    name : str
        Name of the library or of the kind of model, as the documentation and messages give it.
    class_path : str
        Package, module or full name of the class. Subclasses belong to it as well. The library is
        never imported: whoever has a model has its library.
    function : str
        Reading function as ``"module:function"``, relative to this package. It takes the model and
        returns a RuleSet.
    models : str
        Models that the reader supports, for the documentation.
    options_from_rows : callable, optional
        Takes the model and rows, and returns options of `function` that the rows determine.
    """

    name: str
    class_path: str
    function: str
    models: str
    options_from_rows: Callable[[Any, Any], dict[str, Any]] | None = None

    def read(self, model: Any, **options: Any) -> RuleSet:
        """Read a model as rules."""
        module, _, function = self.function.partition(":")
        reader = getattr(import_module(f"skescore.rules.importers.{module}"), function)
        ruleset: RuleSet = reader(model, **options)
        return ruleset


def _missing_from_rows(model: Any, X: Any) -> dict[str, Any]:
    """Ask for rules on missing values if rows have any; trees do not store whether they saw any."""
    is_missing = pd.isna(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    return {"missing": True} if np.any(is_missing) else {}


def _rows_themselves(model: Any, X: Any) -> dict[str, Any]:
    """Pass the rows on: CatBoost stores only hashes of categories."""
    return {"X": X}


#: The first record whose class path fits a class, or else one of its base classes, reads the model.
MODEL_READERS = (
    ModelReader(
        "scikit-learn trees",
        "sklearn.tree._classes",
        "_sklearn:read_tree",
        "decision trees and extra trees",
        _missing_from_rows,
    ),
    ModelReader(
        "scikit-learn forests",
        "sklearn.ensemble._forest",
        "_sklearn:read_forest",
        "random forests and extra trees",
        _missing_from_rows,
    ),
    ModelReader(
        "scikit-learn gradient boosting",
        "sklearn.ensemble._gb",
        "_sklearn:read_boosted",
        "gradient boosting that starts from a constant",
    ),
    ModelReader(
        "scikit-learn AdaBoost",
        "sklearn.ensemble._weight_boosting",
        "_sklearn:read_boosted",
        "AdaBoost classifiers made of decision trees",
    ),
    ModelReader(
        "scikit-learn histogram gradient boosting",
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
        "_hist_gradient_boosting:read_hist_gradient_boosting",
        "gradient boosting on histograms, except for the losses poisson and gamma",
    ),
    ModelReader(
        "XGBoost",
        "xgboost",
        "_xgboost:read_xgboost",
        "models and boosters of trees with one output",
    ),
    ModelReader(
        "LightGBM",
        "lightgbm",
        "_lightgbm:read_lightgbm",
        "models and boosters without linear functions in their leaves",
    ),
    ModelReader(
        "CatBoost",
        "catboost",
        "_catboost:read_catboost",
        "models with one output, without text and embeddings",
        _rows_themselves,
    ),
    ModelReader(
        "PSyKE",
        "psyke",
        "_psyke:read_psyke",
        "all extractors, after `extract` or `fit`",
    ),
    ModelReader(
        "RuleKit",
        "rulekit",
        "_rulekit:read_rulekit",
        "classification and regression rules, expert rules included",
    ),
    ModelReader(
        "imodels",
        "imodels",
        "_imodels:read_imodels",
        "rule lists, rule sets, trees, FIGS, RuleFit and boosted rules",
    ),
    ModelReader(
        "decision-rules",
        "decision_rules",
        "_decision_rules:read_decision_rules",
        "classification and regression rule sets, and their JSON",
    ),
)


def find_reader(model: Any) -> ModelReader | None:
    """Return the reader for the class of a model; None if no record fits."""
    for parent in type(model).__mro__:
        if parent.__module__.partition(".")[0] == "skescore":
            return None  # extractors of this package have rules_, whatever class they derive from
        path = f"{parent.__module__}.{parent.__qualname__}."
        for reader in MODEL_READERS:
            if path.startswith(f"{reader.class_path}."):
                return reader
    return None


def reader_names() -> str:
    """Return the names of all readers as an enumeration."""
    *names, last = (reader.name for reader in MODEL_READERS)
    return f"{', '.join(names)} and {last}"
