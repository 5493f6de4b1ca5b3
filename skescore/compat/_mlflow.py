"""Rules as MLflow models of the flavor ``python_function``, and searches as MLflow runs."""

from __future__ import annotations

import functools
import math
import os
import tempfile
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from skescore._optional import import_optional
from skescore._quantities import measured_quantities
from skescore.black_boxes import is_prefit
from skescore.rules import RuleSet, as_ruleset

if TYPE_CHECKING:
    from skescore.tuning import ExtractorSearchCV

_LOADER = "skescore.compat._mlflow"
_FILE = "rules.json"
_SAVING = "Saving an MLflow model"
_LOGGING = "Logging a search to MLflow"
#: Largest number of characters of a parameter that all versions of MLflow allow.
_MAX_PARAM_LENGTH = 500


class _ServedRules:
    """Model that MLflow calls to predict."""

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

    The model contains the rules as JSON instead of pickled code. Loading it requires skescore.

    Parameters
    ----------
    rules : RuleSet or model
        The rules, or a model that :func:`skescore.as_ruleset` reads.
    path : str or path-like
        Folder of the model, which must not exist.
    X : DataFrame of shape (n_rows, n_features)
        Rows that determine the types of the columns; the first five are the input example. Pass
        rows with missing values if later rows may have some, because MLflow otherwise rejects them
        in columns of integers. MLflow checks neither categorical columns nor columns of nullable
        integers or booleans with missing values.
    **options
        Other parameters of ``mlflow.pyfunc.save_model``, such as ``metadata``.

    Raises
    ------
    ImportError
        If MLflow is not installed.
    TypeError
        If `X` is not a DataFrame.

    Examples
    --------
    >>> save_mlflow_model(search, "model", X)  # doctest: +SKIP
    >>> import mlflow  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("model").predict(X)  # doctest: +SKIP
    """
    ruleset = as_ruleset(rules)
    if not isinstance(X, pd.DataFrame):
        raise TypeError(
            f"X must be a DataFrame, whose columns define the signature, got {type(X).__name__}. "
            "Pass pd.DataFrame(X, columns=rules.feature_names)."
        )
    pyfunc = import_optional("mlflow.pyfunc", extra="mlflow", purpose=_SAVING)
    with tempfile.TemporaryDirectory() as folder:
        settings = _model_settings(ruleset, X, folder)
        pyfunc.save_model(path=os.fspath(path), **(settings | options))


def _model_settings(ruleset: RuleSet, X: pd.DataFrame, folder: str) -> dict[str, Any]:
    """Write the rules to a folder, and return MLflow's settings for storing the model."""
    rows = _without_categorical(X[list(ruleset.feature_names)])
    example = rows.head(5)
    ruleset.save(Path(folder) / _FILE)
    return {
        "loader_module": _LOADER,
        "data_path": os.fspath(Path(folder) / _FILE),
        "signature": _signature(
            X[list(ruleset.feature_names)], _ServedRules(ruleset).predict(rows)
        ),
        "input_example": example,
        "pip_requirements": [f"skescore=={version('skescore')}"],
    }


def _without_categorical(X: pd.DataFrame) -> pd.DataFrame:
    """Convert categorical columns to columns of their values."""
    columns = X.columns[[isinstance(dtype, pd.CategoricalDtype) for dtype in X.dtypes]]
    return X.astype(dict.fromkeys(columns, object))


def _signature(X: pd.DataFrame, predictions: pd.Series) -> Any:
    """Return a signature for which MLflow accepts the rows from which it is inferred."""
    models = import_optional("mlflow.models", extra="mlflow", purpose=_SAVING)
    schemas = import_optional("mlflow.types.schema", extra="mlflow", purpose=_SAVING)
    columns = []
    for name in X.columns:
        column = X[[name]]
        spec = None
        if not _is_refused(X[name]):
            (spec,) = models.infer_signature(column).inputs.inputs
        if spec is None or spec.name is None:  # MLflow found several types
            is_required = bool(X[name].notna().all())
            spec = schemas.ColSpec(schemas.AnyType(), name, required=is_required)
        columns.append(spec)
    outputs = models.infer_signature(X.iloc[:0], predictions).outputs
    return models.ModelSignature(schemas.Schema(columns), outputs)


def _is_refused(column: pd.Series) -> bool:
    """Return whether MLflow would reject the column with the type that it infers."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return True
    is_number = pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    return is_number and bool(column.isna().any())


def load_mlflow_rules(path: str | os.PathLike[str]) -> RuleSet:
    """Load the rules of a model that :func:`save_mlflow_model` saved.

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
        If the folder contains no such model.
    """
    files = sorted(Path(path).rglob(_FILE))
    if not files:
        raise FileNotFoundError(
            f"{path} holds no rules; pass a folder that save_mlflow_model wrote."
        )
    return RuleSet.load(files[0])


# --- searches as runs ----------------------------------------------------------------------------


def log_mlflow_search(
    search: ExtractorSearchCV, *, model: bool = True, report: bool = True, time_limit: float = 10.0
) -> str:
    """Log a fitted search to the active MLflow run, or to a new one.

    Parameters are those of the search and, with the prefix ``best_``, those of the best candidate.
    Metrics are those of the best candidate on held-out rows, as in the leaderboard. Artifacts are
    the rules as JSON and text, the leaderboard, the report and the rules as a model.

    Parameters
    ----------
    search : ExtractorSearchCV
        A fitted search.
    model : bool, default=True
        Whether to log the rules as a model, which ``mlflow.pyfunc.load_model`` loads.
    report : bool, default=True
        Whether to log the report, which requires jinja2.
    time_limit : float, default=10.0
        Time limit in seconds for adding the rules of other candidates to the report.

    Returns
    -------
    str
        Identifier of the run.

    Raises
    ------
    ImportError
        If MLflow is not installed.

    Examples
    --------
    >>> from skescore.compat import log_mlflow_search
    >>> run_id = log_mlflow_search(search)  # doctest: +SKIP
    """
    mlflow = import_optional("mlflow", extra="mlflow", purpose=_LOGGING)
    pyfunc = import_optional("mlflow.pyfunc", extra="mlflow", purpose=_LOGGING)
    rules = search.rules_
    is_nested_in_run = mlflow.active_run() is not None
    run = mlflow.active_run() or mlflow.start_run()
    try:
        mlflow.set_tag("skescore.version", version("skescore"))
        mlflow.log_params(_params_of(search))
        mlflow.log_metrics(_metrics_of(search))
        with tempfile.TemporaryDirectory() as folder:
            _write_artifacts(search, Path(folder), time_limit if report else None)
            mlflow.log_artifacts(folder)
        if model:
            X = search.data_.X
            if not isinstance(X, pd.DataFrame):
                X = pd.DataFrame(X, columns=list(rules.feature_names))
            with tempfile.TemporaryDirectory() as folder:
                pyfunc.log_model(name="rules", **_model_settings(rules, X, folder))
    finally:
        if not is_nested_in_run:
            mlflow.end_run()
    return str(run.info.run_id)


def autolog_mlflow(enabled: bool = True, **options: Any) -> None:
    """Log all subsequently fitted searches to MLflow.

    If logging fails, the search is fitted nevertheless, and a warning states the reason.

    Parameters
    ----------
    enabled : bool, default=True
        Whether to log searches; False ends the logging.
    **options
        Options of :func:`log_mlflow_search`.

    Raises
    ------
    ImportError
        If MLflow is not installed.

    Examples
    --------
    >>> from skescore.compat import autolog_mlflow
    >>> autolog_mlflow()  # doctest: +SKIP
    >>> search.fit(X, y)  # doctest: +SKIP
    """
    # Imported here, because programs that only load a model do not need the packages of searches.
    from skescore.tuning import ExtractorSearchCV

    original = getattr(ExtractorSearchCV.fit, "__wrapped__", ExtractorSearchCV.fit)
    if not enabled:
        ExtractorSearchCV.fit = original  # type: ignore[method-assign]
        return
    import_optional("mlflow", extra="mlflow", purpose=_LOGGING)
    searches_in_fit: set[int] = set()

    @functools.wraps(original)
    def fit(self: ExtractorSearchCV, *args: Any, **kwargs: Any) -> ExtractorSearchCV:
        if id(self) in searches_in_fit:  # a search on a data source calls `fit` with a sample
            return original(self, *args, **kwargs)
        searches_in_fit.add(id(self))
        try:
            original(self, *args, **kwargs)
        finally:
            searches_in_fit.discard(id(self))
        try:
            log_mlflow_search(self, **options)
        except Exception as error:
            warnings.warn(
                f"The search was not logged to MLflow ({type(error).__name__}: {error}). "
                "log_mlflow_search(search) logs it later.",
                stacklevel=2,
            )
        return self

    ExtractorSearchCV.fit = fit  # type: ignore[method-assign]


def _params_of(search: ExtractorSearchCV) -> dict[str, str]:
    black_box = search.estimator.estimator if is_prefit(search.estimator) else search.estimator
    values = search.get_params(deep=False) | {
        "estimator": type(black_box).__name__,
        "extractors": ", ".join(search.extractors_),
        "best_extractor": search.best_name_,
        **{f"best_{name}": value for name, value in search.best_params_.items()},
    }
    return {
        name: str(value)[:_MAX_PARAM_LENGTH] for name, value in values.items() if value is not None
    }


def _metrics_of(search: ExtractorSearchCV) -> dict[str, float]:
    best = search.leaderboard_.iloc[0]
    names = ["score", "score_std", *measured_quantities()]
    values = {name: float(best[name]) for name in names if name in best and pd.notna(best[name])}
    values |= {f"black_box_{name}": value for name, value in search.black_box_quality_.items()}
    values |= {"n_trials": len(search.leaderboard_), "search_seconds": search.search_seconds_}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _write_artifacts(search: ExtractorSearchCV, folder: Path, time_limit: float | None) -> None:
    """Write the files of a run; the report only with a time limit."""
    search.rules_.save(folder / _FILE)
    (folder / "rules.txt").write_text(search.rules_.to_text() + "\n", encoding="utf-8")
    search.leaderboard_.to_csv(folder / "leaderboard.csv", index=False)
    if search.suspicions_:
        text = "".join(f"{suspicion}\n" for suspicion in search.suspicions_)
        (folder / "warnings.txt").write_text(text, encoding="utf-8")
    if time_limit is not None and find_spec("jinja2") is not None:
        search.report(path=folder / "report.html", time_limit=time_limit)
