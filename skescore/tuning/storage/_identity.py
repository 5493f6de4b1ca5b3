"""Identity of a search, stored in its studies."""

from __future__ import annotations

import hashlib
import inspect
import json
import textwrap
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import optuna
import pandas as pd

from skescore.tuning._folds import Fold

# The identity prevents one search from being resumed as another. Texts and digests depend neither
# on memory addresses nor on hash seeds, so equal searches have equal identities in every process.

#: User attribute of a study with the identity of its search.
SETTINGS = "skescore"
#: Number of rows with permuted columns on which models are compared: equal predictions on the
#: original rows are not enough.
_N_PERMUTED_ROWS = 200
#: Parameters that change no prediction.
_IRRELEVANT_PARAMS = frozenset(
    {"n_jobs", "nthread", "num_threads", "pre_dispatch", "thread_count", "verbose", "verbosity"}
)
#: Decimals to which scaled predictions of a model agree on different machines.
_N_DECIMALS = 6
_MAX_TEXT_LENGTH = 120


def search_identity(estimator: Any, folds: Sequence[Fold], all_rows: Fold) -> dict[str, Any]:
    """Return digests that identify the rows, targets, splits and black box of a search.

    Parameters
    ----------
    estimator : estimator
        The black box.
    folds : sequence of Fold
        The splits with their fitted black boxes.
    all_rows : Fold
        All rows with the black box fitted on them.

    Returns
    -------
    dict
        ``rows``: a digest; ``black_box``: a readable text, and digests of its parameters and of its
        predictions.
    """
    parameters = stable_text(estimator)
    return {
        "rows": _rows_digest([*folds, all_rows]),
        "black_box": {
            "is": textwrap.shorten(parameters, _MAX_TEXT_LENGTH, placeholder=" …"),
            "parameters": _short_digest(hashlib.sha256(parameters.encode())),
            "predictions": _predictions_digest(folds, all_rows),
        },
    }


def check_identity(
    study: optuna.Study, identity: Mapping[str, Any], *, only: Collection[str] | None = None
) -> None:
    """Store the identity of a search in a study; raise an error if the study has another one.

    Parameters
    ----------
    study : optuna.Study
        The study.
    identity : mapping
        Parts of the identity by name.
    only : collection of str, optional
        Parts that have to be equal if they are stored; by default all parts.

    Raises
    ------
    ValueError
        If the study belongs to another search; the message names the differences.
    """
    identity = json.loads(json.dumps(identity, default=repr))
    stored = study.user_attrs.get(SETTINGS)
    if stored is None:
        study.set_user_attr(SETTINGS, identity)
        return
    keys = identity if only is None else [key for key in identity if key in only and key in stored]
    changed_keys = [key for key in keys if stored.get(key) != identity[key]]
    if changed_keys:
        differences = "; ".join(
            _describe_difference(key, stored.get(key), identity[key]) for key in changed_keys
        )
        raise ValueError(
            f"The stored study {study.study_name!r} belongs to another search ({differences}). "
            "Choose another study name for this search, or repeat that search with the same data, "
            "black box (with its random_state), folds, scoring, spaces and seed."
        )


def _describe_difference(key: str, stored: Any, current: Any) -> str:
    if key == "rows":
        return "different rows, target or folds"
    if key != "black_box":
        return f"{key} {stored!r}, now {current!r}"
    if not isinstance(stored, dict) or "is" not in stored:
        return f"black_box not recorded by an earlier version, now {current['is']}"
    if stored.get("parameters") != current["parameters"]:
        return f"black_box {stored['is']}, now {current['is']}"
    return f"black_box {stored['is']}, now with equal parameters but different predictions"


def stable_text(value: Any, without: Collection[str] = ()) -> str:
    """Return a text of an object that is equal for equal objects in every process.

    Parameters
    ----------
    value : object
        An estimator with its parameters, or another object. Functions are named; other objects
        without a stable text are written as their type.
    without : collection of str, default=()
        Parameters to leave out.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> stable_text(KNeighborsClassifier(3, n_jobs=2))
    'KNeighborsClassifier(n_neighbors=3)'
    """
    return _Writer().text(value, without)


class _Writer:
    """Writer of objects as texts that stops at recursive references."""

    def __init__(self) -> None:
        self._open_ids: list[int] = []

    def text(self, value: Any, without: Collection[str] = ()) -> str:
        if id(value) in self._open_ids:
            return "..."
        self._open_ids.append(id(value))
        try:
            return self._text(value, without)
        finally:
            self._open_ids.pop()

    def _text(self, value: Any, without: Collection[str]) -> str:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return repr(value)
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(map(self.text, value)))}}}"
        if isinstance(value, Mapping):
            texts = sorted(f"{self.text(key)}: {self.text(value[key])}" for key in value)
            return f"{{{', '.join(texts)}}}"
        if isinstance(value, np.ndarray):
            return f"array {_short_digest(hashlib.sha256(_array_bytes(value)))}"
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            return f"{type(value).__name__} {self.text(value.to_numpy())}"
        if isinstance(value, np.random.RandomState):
            return f"RandomState({self.text(value.get_state(legacy=False))})"
        if isinstance(value, np.random.Generator):
            return f"Generator({self.text(value.bit_generator.state)})"
        if isinstance(value, partial):
            components = (value.func, value.args, value.keywords)
            return f"partial({', '.join(map(self.text, components))})"
        if hasattr(value, "get_params") and not isinstance(value, type):
            return f"{type(value).__name__}({', '.join(self._parameters(value, without))})"
        owner = getattr(value, "__self__", None)
        name = getattr(value, "__qualname__", None)
        if name is None:
            return type(value).__qualname__
        return name if owner is None or isinstance(owner, type) else f"{self.text(owner)}.{name}"

    def _parameters(self, estimator: Any, without: Collection[str]) -> list[str]:
        """Return the texts of the parameters that differ from their defaults."""
        try:
            params = estimator.get_params(deep=False)
            defaults = inspect.signature(type(estimator).__init__).parameters
        except Exception:  # not scikit-learn's interface: predictions identify such a model
            return []
        texts = []
        for name in sorted(set(params) - _IRRELEVANT_PARAMS - set(without)):
            text = self.text(params[name])
            if name not in defaults or text != self.text(defaults[name].default):
                texts.append(f"{name}={text}")
        return texts


def _rows_digest(folds: Sequence[Fold]) -> str:
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(np.asarray(fold.test, dtype=np.int64).tobytes())
        weights = () if fold.test_weight is None else (fold.test_weight,)
        for values in (fold.X_test, fold.y_test, *weights):
            digest.update(_array_bytes(np.asarray(values)))
    return _short_digest(digest)


def _predictions_digest(folds: Sequence[Fold], all_rows: Fold) -> str:
    """Return a digest of the predictions on held-out rows and on rows with permuted columns."""
    digest = hashlib.sha256()
    for fold in (*folds, all_rows):
        digest.update(_array_bytes(_round_predictions(fold.black_box.predict(fold.X_test))))
    probes = _permute_columns(all_rows.X_test)
    if probes is not None:
        try:
            digest.update(_array_bytes(_round_predictions(all_rows.black_box.predict(probes))))
        except Exception:  # a model that rejects these rows does so in every process
            digest.update(b"refused")
    return _short_digest(digest)


def _round_predictions(predictions: np.ndarray) -> np.ndarray:
    """Round floats, because their last digits depend on the machine."""
    if predictions.dtype.kind != "f":
        return predictions
    largest = np.abs(predictions[np.isfinite(predictions)]).max(initial=0.0)
    return np.round(predictions / largest, _N_DECIMALS) + 0.0 if largest > 0 else predictions


def _permute_columns(X: Any) -> Any:
    """Return rows whose columns are permuted independently; None for data without columns."""
    if not isinstance(X, np.ndarray | pd.DataFrame) or X.ndim != 2 or not X.shape[1]:
        return None
    random = np.random.default_rng(0)
    row_orders = [random.permutation(len(X))[:_N_PERMUTED_ROWS] for _ in range(X.shape[1])]
    if isinstance(X, np.ndarray):
        return np.stack([X[rows, j] for j, rows in enumerate(row_orders)], axis=1)
    columns = [X.iloc[rows, j].reset_index(drop=True) for j, rows in enumerate(row_orders)]
    return pd.concat(columns, axis=1)


def _array_bytes(array: np.ndarray) -> bytes:
    # The bytes of an object array are memory addresses.
    return repr(array.tolist()).encode() if array.dtype.kind in "OUS" else array.tobytes()


def _short_digest(digest: Any) -> str:
    text: str = digest.hexdigest()
    return text[:16]
