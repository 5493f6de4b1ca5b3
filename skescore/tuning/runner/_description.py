"""Descriptions of studies for people who look at their storage."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning

#: Labels of measures whose names are meant for programs.
_MEASURE_LABELS = {"n_rules": "rules"}
#: Length of the longest text that fits in a table of studies.
_MAX_CHARACTERS = 200


def describe_study(
    study: optuna.Study,
    *,
    scoring: Any,
    extractor: str | None = None,
    task: str | None = None,
    data: str | None = None,
    X: Any = None,
    cv: Any = None,
) -> None:
    """Name the objectives of a study and describe the study in short texts for people.

    Call it once after creating a study that others will look at. Further workers may call it
    again: only new or different texts are stored.

    Parameters
    ----------
    study : optuna.Study
        The study.
    scoring : str, scorer or sequence of str
        Meaning of the values of the trials: one score, such as ``"ice"``, or one measure per
        objective of the study, such as ``("loss", "n_rules", "incompleteness")``.
    extractor : str, optional
        Name of the extractor.
    task : str, optional
        ``"classification"`` or ``"regression"``.
    data : str, optional
        Name of the data.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows; only their number and the number of features are stored.
    cv : int, splitter or iterable, optional
        Cross-validation, as in scikit-learn.

    Raises
    ------
    ValueError
        If the number of names in `scoring` differs from the number of objectives.

    Notes
    -----
    The names become the study's ``metric_names``, which plots and tables show. The other texts
    become its user attributes ``scoring``, ``extractor``, ``task``, ``data`` and ``cv``.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(directions=["minimize"] * 3)
    >>> describe_study(study, scoring=("loss", "n_rules", "incompleteness"), data="iris",
    ...                X=np.zeros((150, 4)), cv=5)
    >>> study.metric_names
    ['loss', 'rules', 'incompleteness']
    >>> study.user_attrs["data"]
    'iris (150 rows, 4 features)'
    """
    is_single = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    names = [_objective_name(part) for part in ([scoring] if is_single else scoring)]
    if len(names) != len(study.directions):
        raise ValueError(
            f"scoring must name each of the study's {len(study.directions)} objectives, got "
            f"{scoring!r}."
        )
    if study.metric_names != names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names(names)
    texts = {
        # The representation of a scorer shows its settings as well.
        "scoring": str(scoring) if is_single else ", ".join(names),
        "extractor": extractor,
        "task": task,
        "data": _data_text(data, X),
        "cv": _cv_text(cv),
    }
    attrs = study.user_attrs
    for key, text in texts.items():
        if text is not None and attrs.get(key) != (text := _shorten(text)):
            study.set_user_attr(key, text)


def _objective_name(scoring: Any) -> str:
    if isinstance(scoring, str):
        return _MEASURE_LABELS.get(scoring, scoring)
    for attribute in ("name", "__name__"):
        if isinstance(name := getattr(scoring, attribute, None), str):
            return name
    return str(scoring)


def _data_text(name: str | None, X: Any) -> str | None:
    if X is None:
        return name
    shape = getattr(X, "shape", None) or (len(X), len(X[0]) if len(X) else 0)
    text = f"{shape[0]} rows, {shape[1]} features"
    return text if name is None else f"{name} ({text})"


def _cv_text(cv: Any) -> str | None:
    if cv is None or isinstance(cv, str):
        return cv
    if isinstance(cv, int):
        return f"{cv} folds"
    if hasattr(cv, "split"):
        return " ".join(str(cv).split())  # the representation may have several lines
    return f"{len(cv)} given splits" if hasattr(cv, "__len__") else "given splits"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
