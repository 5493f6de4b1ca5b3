"""Declarations of the readers of rules: one record per kind of model or file.

``as_ruleset``, ``options_from_rows``, ``skescore import`` and its help derive from these records.
To add a kind, write its reader and append a record. The module is cheap to import, so that the
command line can list the kinds quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

#: Value of the field ``format`` in JSON of rule sets.
RULESET_FORMAT = "skescore.RuleSet"


@dataclass(frozen=True)
class ModelReader:
    """Reader of a kind of model as rules.

    Parameters
    ----------
    name : str
        Name of the library or of the kind of model in documentation and messages.
    class_path : str
        Package, module or full name of the class; subclasses match too. The library is never
        imported, because a model can only exist if its library has been imported.
    function : str
        Reading function as ``"module:function"``, relative to ``skescore.rules.importers``. It
        takes the model and returns a RuleSet.
    models : str
        Models that the reader supports, for the documentation.
    options_from_rows : callable, optional
        Function of the model and rows that returns options of `function`.
    """

    name: str
    class_path: str
    function: str
    models: str
    options_from_rows: Callable[[Any, Any], dict[str, Any]] | None = None

    def read(self, model: Any, **options: Any) -> Any:
        """Read a model as rules."""
        return _reading_function(self.function)(model, **options)


@dataclass(frozen=True)
class RuleFileReader:
    """A kind of file with rules.

    Parameters
    ----------
    kind : str
        Name of the kind, a value of ``--kind``.
    description : str
        Content of such a file, for the help text of the command line.
    title : str
        Name of its rules in results.
    function : str
        Reading function as ``"module:function"``, relative to ``skescore.rules.importers``. It
        takes the text of the file, or the table, and returns a RuleSet.
    options : tuple of {"feature_names", "voting"}, default=()
        Parameters of the function that the command line passes.
    extensions : tuple of str, default=()
        Extensions of such files; JSON is recognized by its content.
    fields : mapping of str to str or None, default={}
        Fields by which its JSON is recognized, with the required value or None.
    is_list : bool, default=False
        Whether its JSON may be a list of objects, one of which must have the fields.
    """

    kind: str
    description: str
    title: str
    function: str
    options: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    fields: Mapping[str, str | None] = field(default_factory=dict)
    is_list: bool = False

    def recognizes(self, data: Any) -> bool:
        """Return whether parsed JSON is of this kind."""
        records = data if self.is_list and isinstance(data, list) else [data]
        return bool(self.fields) and any(
            isinstance(record, dict)
            and all(
                name in record and value in (None, record[name])
                for name, value in self.fields.items()
            )
            for record in records
        )

    def read(self, content: Any, **options: Any) -> Any:
        """Read the content of a file as rules."""
        return _reading_function(self.function)(content, **options)


def _reading_function(location: str) -> Callable[..., Any]:
    module, _, path = location.partition(":")
    function: Any = import_module(f"skescore.rules.importers.{module}")
    for name in path.split("."):
        function = getattr(function, name)
    return function


def _missing_from_rows(model: Any, X: Any) -> dict[str, Any]:
    """Request rules on missing values if rows have any; trees do not store this information."""
    import numpy as np
    import pandas as pd

    is_missing = pd.isna(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    return {"missing": True} if np.any(is_missing) else {}


def _rows_themselves(model: Any, X: Any) -> dict[str, Any]:
    """Pass the rows, as CatBoost stores only hashes of categories, and interpret only texts."""
    return {"X": X}


def _rows_with_categories(model: Any, X: Any) -> dict[str, Any]:
    """Pass rows if their categorical columns match the labels that LightGBM stores by position."""
    import pandas as pd

    booster = model if hasattr(model, "dump_model") else model.booster_
    if not isinstance(X, pd.DataFrame) or X.shape[1] != booster.num_feature():
        return {}
    n_categorical = sum(not pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
    return {"X": X} if n_categorical == len(booster.pandas_categorical or []) else {}


def _reject_sparse_rows(model: Any, X: Any) -> dict[str, Any]:
    """Reject sparse matrices, whose absent entries are missing for XGBoost and 0 for rules."""
    if hasattr(X, "tocsr"):
        raise ValueError(
            "X is a sparse matrix, whose absent entries are missing values for XGBoost and 0 for "
            "rules. Pass an array or a data frame in which these entries are NaN."
        )
    return {}


#: The first record whose class path matches a class, or one of its base classes, reads the model.
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
        _reject_sparse_rows,
    ),
    ModelReader(
        "LightGBM",
        "lightgbm",
        "_lightgbm:read_lightgbm",
        "models and boosters without linear functions in their leaves",
        _rows_with_categories,
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
        "classification and regression rules, including expert rules",
    ),
    ModelReader(
        "imodels",
        "imodels",
        "_imodels:read_imodels",
        "rule lists, rule sets, trees, FIGS, RuleFit and boosted rules",
    ),
    ModelReader(
        "interpret",
        "interpret.glassbox",
        "_ebm:read_ebm",
        "explainable boosting machines (EBM), as rules that add up",
        _rows_themselves,
    ),
    ModelReader(
        "wittgenstein",
        "wittgenstein",
        "_wittgenstein:read_wittgenstein",
        "RIPPER and IREP",
    ),
    ModelReader(
        "skope-rules",
        "skescore.compat",
        "_skope_rules:read_skope_rules",
        "`SkopeRules` of `skescore.compat`",
    ),
    ModelReader(
        "skope-rules 1.0.1",
        "skrules",
        "_skope_rules:read_skope_rules",
        "`SkopeRules` of the package skope-rules",
    ),
    ModelReader(
        "decision-rules",
        "decision_rules",
        "_decision_rules:read_decision_rules",
        "classification and regression rule sets, and their JSON",
    ),
)


#: Files with rules by kind, in the order in which JSON is recognized.
RULE_FILE_READERS = {
    reader.kind: reader
    for reader in (
        RuleFileReader(
            "rules",
            "JSON of skescore",
            "skescore's own",
            "_as_ruleset:RuleSet.from_json",
            fields={"format": RULESET_FORMAT},
        ),
        RuleFileReader(
            "table",
            "one row per condition, as CSV, TSV, Parquet or JSON",
            "a table of conditions",
            "_tables:read_table",
            ("feature_names", "voting"),
            (".csv", ".tsv", ".tab", ".parquet", ".pq"),
            {"rule": None, "feature": None, "operator": None, "value": None},
            is_list=True,
        ),
        RuleFileReader(
            "rulekit",
            "rule text of RuleKit (.txt, .rules)",
            "rule text of RuleKit",
            "_rulekit:read_rulekit_text",
            ("feature_names",),
            (".txt", ".rules"),
        ),
        RuleFileReader(
            "decision-rules",
            "JSON of decision-rules",
            "of decision-rules",
            "_decision_rules:read_decision_rules",
            fields={"rules": None, "meta": None},
        ),
    )
}


def reader_names() -> str:
    """Return the names of all readers as an enumeration."""
    *names, last = (reader.name for reader in MODEL_READERS)
    return f"{', '.join(names)} and {last}"
