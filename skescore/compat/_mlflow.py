"""Rules as MLflow models of the flavor ``python_function``."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from skescore._optional import import_optional
from skescore.rules import RuleSet, as_ruleset

_LOADER = "skescore.compat._mlflow"
_FILE = "rules.json"


class _ServedRules:
    """What MLflow calls to predict."""

    def __init__(self, ruleset: RuleSet) -> None:
        self.ruleset = ruleset

    def predict(self, model_input: Any, params: Any = None) -> Any:
        """Predict the rows of a table."""
        prediction = self.ruleset.predict(model_input)
        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        return pd.Series(prediction, index=index, name="prediction")


def _load_pyfunc(path: str) -> _ServedRules:
    """Load a saved model; MLflow calls this function."""
    file = Path(path)
    return _ServedRules(RuleSet.load(file / _FILE if file.is_dir() else file))


def save_mlflow_model(rules: Any, path: str | os.PathLike[str], X: Any, **options: Any) -> None:
    """Save rules as an MLflow model with a signature and an input example.

    The model contains the rules as JSON, no pickled code, and needs skescore where it is loaded.

    Parameters
    ----------
    rules : RuleSet or model
        The rules, or a model that :func:`skescore.as_ruleset` reads.
    path : str or path-like
        Folder of the model, which must not exist.
    X : DataFrame of shape (n_rows, n_features)
        Rows that show the types of the columns; the first five are the input example.
    **options
        Further parameters of ``mlflow.pyfunc.save_model``, such as ``metadata``.

    Raises
    ------
    ImportError
        If MLflow is not installed.
    TypeError
        If `X` is no DataFrame.

    Examples
    --------
    >>> save_mlflow_model(search, "model", X)  # doctest: +SKIP
    >>> import mlflow  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("model").predict(X)  # doctest: +SKIP
    """
    ruleset = as_ruleset(rules)
    if not isinstance(X, pd.DataFrame):
        raise TypeError(
            f"X must be a DataFrame, whose columns make the signature, got {type(X).__name__}. "
            "Pass pd.DataFrame(X, columns=rules.feature_names)."
        )
    pyfunc = import_optional("mlflow.pyfunc", extra="mlflow", purpose="Saving an MLflow model")
    models = import_optional("mlflow.models", extra="mlflow", purpose="Saving an MLflow model")
    example = X[list(ruleset.feature_names)].head(5)
    signature = models.infer_signature(example, _ServedRules(ruleset).predict(example))
    with tempfile.TemporaryDirectory() as folder:
        ruleset.save(Path(folder) / _FILE)
        pyfunc.save_model(
            path=os.fspath(path),
            loader_module=_LOADER,
            data_path=os.fspath(Path(folder) / _FILE),
            signature=options.pop("signature", signature),
            input_example=options.pop("input_example", example),
            pip_requirements=options.pop("pip_requirements", [f"skescore=={version('skescore')}"]),
            **options,
        )


def load_mlflow_rules(path: str | os.PathLike[str]) -> RuleSet:
    """Load the rules of a model of :func:`save_mlflow_model`.

    Parameters
    ----------
    path : str or path-like
        Folder of the model.

    Returns
    -------
    RuleSet

    Raises
    ------
    FileNotFoundError
        If the folder holds no such model.
    """
    files = sorted(Path(path).rglob(_FILE))
    if not files:
        raise FileNotFoundError(f"{path} holds no rules; name a folder of save_mlflow_model.")
    return RuleSet.load(files[0])
