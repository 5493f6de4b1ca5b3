"""Descriptions of studies for people who look at their storage."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning

#: Measures whose names here are better known to programs than to people.
_SHOWN = {"n_rules": "rules"}
#: What a table of studies has room for.
_MOST_LETTERS = 200


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
    """Name a study's objectives, and note what it is about, as short texts for people.

    Use it once after making a study that others will look at. Workers that join may call it again:
    only what is new or different is written.

    Parameters
    ----------
    study : optuna.Study
        The study.
    scoring : str, scorer or sequence of str
        What the trials' values are: one score, such as ``"ice"``, or as many measures as the study
        has objectives, such as ``("loss", "n_rules", "incompleteness")``.
    extractor : str, optional
        Name of the extractor.
    task : str, optional
        Such as ``"classification"``.
    data : str, optional
        Name of the data.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows, of which only the numbers of rows and features are noted.
    cv : int, splitter or iterable, optional
        Cross-validation, as in scikit-learn.

    Raises
    ------
    ValueError
        If `scoring` names more or fewer values than the study has objectives.

    Notes
    -----
    The names are the study's ``metric_names``, which plots and tables show. The rest are its user
    attributes ``scoring``, ``extractor``, ``task``, ``data`` and ``cv``.

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
    single = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    names = [_name_of(part) for part in ([scoring] if single else scoring)]
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
        # A scorer's settings matter, and only its representation shows them.
        "scoring": str(scoring) if single else ", ".join(names),
        "extractor": extractor,
        "task": task,
        "data": _data_text(data, X),
        "cv": _cv_text(cv),
    }
    known = study.user_attrs
    for key, text in texts.items():
        if text is not None and known.get(key) != (text := _shortened(text)):
            study.set_user_attr(key, text)


def _name_of(scoring: Any) -> str:
    if isinstance(scoring, str):
        return _SHOWN.get(scoring, scoring)
    for attribute in ("name", "__name__"):
        if isinstance(found := getattr(scoring, attribute, None), str):
            return found
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
        return " ".join(str(cv).split())  # scikit-learn's splitters name their parameters
    return f"{len(cv)} given splits" if hasattr(cv, "__len__") else "given splits"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
