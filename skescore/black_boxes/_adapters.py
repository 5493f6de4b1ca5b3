"""Functions, networks, single outputs and commands as black boxes."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import _num_samples, check_array, check_consistent_length

from skescore._optional import import_optional
from skescore._processes import own_environment
from skescore._validation import check_choice, one_dimension
from skescore.black_boxes._fitting import black_box_task, finite_predictions, is_text


class _CallableEstimator(BaseEstimator):
    """What both adapters share. A function is always fitted, and never copied."""

    function: Callable[[Any], Any]

    def _call(self, X: Any) -> np.ndarray:
        """Call the function; what it gives per row, in an array of one or two dimensions."""
        if not callable(self.function) and not _of_keras(self.function):
            raise TypeError(
                f"function must be callable on rows, got {self.function!r}. Pass for example "
                f"{type(self).__name__}(model.predict)."
            )
        given = one_dimension("What function gives", _predict_function(self.function)(X))
        n_rows = _num_samples(X)
        if given.ndim not in (1, 2) or len(given) != n_rows:
            raise ValueError(
                f"function must predict every row, but for {n_rows} rows it gave an array of shape "
                f"{given.shape}. Let it return one prediction per row, in order."
            )
        return given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        # A deep copy, as scikit-learn makes of parameters, would copy the model behind a method.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.target_tags.required = False
        # What it takes and predicts is up to the function.
        tags.no_validation = True
        tags.input_tags.sparse = True
        return tags


def _predict_function(model: Any) -> Callable[[Any], Any]:
    """The function behind a function, or behind a module of torch or Keras."""
    if _is_from(model, "torch.nn", "Module"):
        return partial(_torch_predictions, model)
    if _of_keras(model):
        return lambda rows: model.predict(np.asarray(rows, dtype="float32"), verbose=0)
    function: Callable[[Any], Any] = model
    return function


def _is_from(model: Any, package: str, name: str) -> bool:
    """Whether a model is of a class of a package, which need not be installed."""
    return any(c.__name__ == name and c.__module__.startswith(package) for c in type(model).__mro__)


def _of_keras(model: Any) -> bool:
    return _is_from(model, "keras", "Model")


def _torch_predictions(module: Any, rows: Any) -> np.ndarray:
    """What a module of torch gives for rows, without gradients, dropout and the like."""
    torch = import_optional("torch", extra="captum", purpose="A module of torch")
    parameter = next(module.parameters(), torch.zeros(0))
    table = np.array(rows, dtype=float)
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            inputs = torch.from_numpy(table).to(parameter.device, parameter.dtype)
            return np.asarray(module(inputs).detach().cpu().float().numpy())
    finally:
        module.train(training)


class CallableClassifier(ClassifierMixin, _CallableEstimator):
    """A function or network that gives a class for each row, as a fitted scikit-learn classifier.

    Parameters
    ----------
    function : callable, torch.nn.Module or keras.Model
        Called with the rows (an array, or a frame where the extractor was given one). Returns one
        label per row, or scores of shape (n_rows, n_classes), of which the largest wins. A module
        is called in evaluation mode with a tensor of numbers on its device.
    classes : sequence, optional
        The labels. Needed where the function gives scores, and where it may predict a class that
        the training rows do not show.
    threshold : float, optional
        For two classes and one score per row: the second class is predicted where the score is
        greater. 0 suits log odds, 0.5 probabilities.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if the function does not predict every row, or gives scores and `classes` is
        missing or of another length, or `threshold` is given for other than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.black_boxes import CallableClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> X = np.linspace(0, 1, 101).reshape(-1, 1)
    >>> black_box = CallableClassifier(lambda rows: np.where(rows[:, 0] > 0.5, "high", "low"))
    >>> print(CARTExtractor(black_box).fit(X).rules_)
    1. IF x0 ≤ 0.505 THEN low   [51 rows, 100 % agree with the model]
    2. ELSE high   [50 rows, 100 % agree with the model]
    """

    def __init__(
        self,
        function: Any,
        *,
        classes: Sequence[Any] | None = None,
        threshold: float | None = None,
    ) -> None:
        self.function = function
        self.classes = classes
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the function may know nothing of a table
        return tags

    def fit(self, X: Any, y: Any = None) -> CallableClassifier:
        """Learn nothing, as the function knows what it knows; y must be as long as X."""
        check_consistent_length(X, y)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The declared labels."""
        if self.classes is None:
            raise AttributeError("CallableClassifier was made without classes=[...].")
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) < len(labels):
            raise ValueError(
                f"classes must list at least 2 labels, each of them once, got {self.classes!r}."
            )
        return labels

    def predict(self, X: Any) -> np.ndarray:
        """Call the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, handed on as they are.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        given = self._call(X)
        if self.threshold is not None:
            return self._above(given)
        if given.ndim == 1:
            return self._as_labels(given)
        n_known = 0 if self.classes is None else len(self.classes_)
        if given.shape[1] != n_known:
            raise ValueError(
                f"The function gave {given.shape[1]} scores per row, but classes lists "
                f"{n_known} labels. Pass CallableClassifier(function, classes=[...]) with one "
                "label per column."
            )
        scores = check_array(
            given, dtype=float, ensure_all_finite="allow-nan", input_name="the function's scores"
        )
        unsure = np.isnan(scores).any(axis=1)
        if unsure.any():
            raise ValueError(
                f"The function gave NaN among the scores of row {int(np.flatnonzero(unsure)[0])} "
                f"({int(unsure.sum())} of {len(scores)} rows), so no class is the largest there. "
                "Mend the function or leave out those rows."
            )
        return self.classes_[scores.argmax(axis=1)]

    def _as_labels(self, given: np.ndarray) -> np.ndarray:
        """The labels; where all came as texts of labels that are none, the labels meant."""
        if self.classes is None or not len(given) or not is_text(given):
            return given
        meant = {str(label): label for label in self.classes}
        if is_text(self.classes_) or not set(given.tolist()) <= meant.keys():
            return given
        return np.array([meant[text] for text in given.tolist()])

    def _above(self, scores: np.ndarray) -> np.ndarray:
        """The second class where the one score is greater than the threshold."""
        if scores.ndim == 2 or self.classes is None or len(self.classes_) != 2:
            raise ValueError(
                f"threshold={self.threshold!r} is for one score per row and classes=[...] of two "
                f"labels, but the scores have the shape {scores.shape} and classes is "
                f"{self.classes!r}. Leave it out for one column of scores per class."
            )
        return self.classes_[(finite_predictions(scores) > self.threshold).astype(np.intp)]


class CallableRegressor(RegressorMixin, _CallableEstimator):
    """A function or network that gives a number for each row, as a fitted scikit-learn regressor.

    Parameters
    ----------
    function : callable, torch.nn.Module or keras.Model
        Called with the rows (an array, or a frame where the extractor was given one). Returns one
        number per row. A module is called in evaluation mode with a tensor of numbers on its
        device.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if it does not give one finite number per row.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.black_boxes import CallableRegressor
    >>> CallableRegressor(lambda rows: 2 * rows[:, 0]).predict(np.array([[1.0], [2.0]])).tolist()
    [2.0, 4.0]
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the function may know nothing of a table
        return tags

    def fit(self, X: Any, y: Any = None) -> CallableRegressor:
        """Learn nothing, as the function knows what it knows; y must be as long as X."""
        check_consistent_length(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Call the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, handed on as they are.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers.
        """
        given = self._call(X)
        if given.ndim == 2:
            raise ValueError(
                f"function must predict one number per row, but it gave an array of shape "
                f"{given.shape}. Extract rules for one output at a time: "
                "CallableRegressor(lambda rows: function(rows)[:, 0])."
            )
        return finite_predictions(given)


def select_output(
    estimator: Any, output: Any, *, names: Sequence[str] | None = None
) -> CallableClassifier | CallableRegressor:
    """Choose one output of a fitted model with several, as a black box of its own.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier or regressor that predicts several columns.
    output : str or int
        The output's name, or its index from 0.
    names : sequence of str, optional
        The names of the outputs. Needed for a name, unless the model predicts a data frame.

    Returns
    -------
    CallableClassifier or CallableRegressor
        Predicts this output.

    Raises
    ------
    ValueError
        If there is no such output; at ``predict``, if the model has not several.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [[0.0, 5.0], [1.0, 7.0]])
    >>> price = select_output(model, "price", names=["rooms", "price"])
    >>> price.predict([[0.5]]).round(6).tolist()
    [6.0]
    """
    task = black_box_task(estimator)
    if names is not None and not isinstance(output, int):
        check_choice("output", output, list(names))
        output = list(names).index(output)
    if not isinstance(output, int):
        raise ValueError(
            f"output={output!r} is a name: pass the names of all outputs, names=[...]."
        )
    function = partial(_one_column, estimator, output)
    if task == "regression":
        return CallableRegressor(function)
    classes = getattr(estimator, "classes_", None)
    known = classes[output] if isinstance(classes, list) else classes
    return CallableClassifier(
        function, classes=None if known is None else np.asarray(known).tolist()
    )


def _one_column(estimator: Any, index: int, rows: Any) -> np.ndarray:
    unnamed = getattr(estimator, "feature_names_in_", None) is None
    if unnamed and hasattr(estimator, "n_features_in_"):  # scikit-learn's, fitted on an array
        rows = np.asarray(rows)
    given = one_dimension("What the model predicts", estimator.predict(rows))
    if given.ndim != 2 or not 0 <= index < given.shape[1]:
        raise ValueError(
            f"output={index} must be the index of one of the model's outputs, but it predicts an "
            f"array of shape {given.shape}."
        )
    return given[:, index]


class CommandFunction:
    """A function that pipes rows to a command and reads its predictions.

    Wrap it in :class:`CallableClassifier` or :class:`CallableRegressor` to explain a model of
    another language or machine.

    Parameters
    ----------
    command : str or sequence of str
        The command and its arguments. It is run as it is, without a shell. It reads CSV with a
        header from its standard input, a missing value being an empty cell, and writes one
        prediction per row to its standard output, line by line; a first line more is a header.
    timeout : float, optional
        Seconds after which a call is given up.

    Raises
    ------
    ValueError
        When called, if the command fails, takes too long, or does not predict every row.

    Examples
    --------
    >>> import sys
    >>> program = "import sys; [print(float(row) > 1) for row in [*sys.stdin][1:]]"
    >>> CommandFunction([sys.executable, "-c", program])([[0.5], [2.0]]).tolist()
    ['False', 'True']
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float | None = None) -> None:
        self.command = command
        self.timeout = timeout

    def __call__(self, X: Any) -> np.ndarray:
        """Predict rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers where all predictions are numbers, else text.
        """
        if isinstance(X, pd.DataFrame):
            rows = X
        elif hasattr(X, "columns"):  # of polars
            rows = pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
        else:
            array = np.asarray(X)
            rows = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        given = self.command
        parts = shlex.split(given) if isinstance(given, str) else [str(part) for part in given]
        try:
            done = subprocess.run(
                parts,
                input=rows.to_csv(index=False),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=self.timeout,
                check=False,
                env=own_environment(),
            )
        except (OSError, IndexError) as error:
            raise ValueError(
                f"The command {given!r} cannot be run ({error}). Pass a program that is there and "
                "its arguments."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ValueError(
                f"The command {given!r} gave no predictions for {len(rows)} rows within "
                f"{self.timeout} seconds. Raise timeout, or lower the extractor's batch_size."
            ) from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise ValueError(
                f"The command {given!r} failed with status {done.returncode}"
                f"{': ' + said[-1] if said else ''}. Run it by hand on a CSV file to see why."
            )
        lines = [row[0].strip() for row in csv.reader(io.StringIO(done.stdout)) if row]
        if len(lines) == len(rows) + 1:
            lines = lines[1:]
        if len(lines) != len(rows):
            raise ValueError(
                f"The command {given!r} gave {len(lines)} lines for {len(rows)} rows. It must "
                "write one prediction per row, each on a line of its own, and nothing else."
            )
        return _values(lines)

    def __repr__(self) -> str:
        return f"CommandFunction({self.command!r})"


def _values(lines: Sequence[str]) -> np.ndarray:
    """Read predictions: whole numbers, numbers, or text."""
    for kind in (int, float):
        try:
            return np.array([kind(line) for line in lines])
        except ValueError:
            continue
    return np.array(lines, dtype=object)
