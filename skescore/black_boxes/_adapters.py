"""Functions, networks, AutoML predictors, single outputs and commands as black boxes."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_array, check_consistent_length

from skescore._optional import import_optional
from skescore._processes import own_environment
from skescore._validation import check_choice, one_dimension
from skescore.black_boxes._fitting import black_box_task, finite_predictions, is_fitted, is_text


class _CallableEstimator(BaseEstimator):
    """Base of both adapters; the function is regarded as fitted and never copied."""

    function: Callable[[Any], Any]

    def _call(self, X: Any) -> np.ndarray:
        """Call the function; return one value or one row of scores per row."""
        if not callable(self.function) and not _is_keras_model(self.function):
            raise TypeError(
                f"function must be callable on rows, got {self.function!r}. Pass for example "
                f"{type(self).__name__}(model.predict)."
            )
        predictions = one_dimension("The result of function", self._query(X))
        n_rows = _num_samples(X)
        if predictions.ndim not in (1, 2) or len(predictions) != n_rows:
            raise ValueError(
                f"function must predict every row, but for {n_rows} rows it returned an array of "
                f"shape {predictions.shape}. Return one prediction per row, in the order of the "
                "rows."
            )
        return (
            predictions[:, 0]
            if predictions.ndim == 2 and predictions.shape[1] == 1
            else predictions
        )

    def _query(self, X: Any) -> Any:
        return _predict_function(self.function)(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        # scikit-learn deep-copies parameters, including the model of a bound method.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.target_tags.required = False
        # The function determines which rows are valid.
        tags.no_validation = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the length of y; nothing is learned."""
        check_consistent_length(X, y)
        return self


def _predict_function(model: Any) -> Callable[[Any], Any]:
    """Return a function that predicts rows with a callable, a torch module or a Keras model."""
    if _has_class(model, "torch.nn", "Module"):
        return partial(_torch_predictions, model)
    if _is_keras_model(model):
        return lambda rows: model.predict(np.asarray(rows, dtype="float32"), verbose=0)
    function: Callable[[Any], Any] = model
    return function


def _has_class(model: Any, package: str, name: str) -> bool:
    """Return whether a model is an instance of a class, without importing its package."""
    return any(c.__name__ == name and c.__module__.startswith(package) for c in type(model).__mro__)


def _is_keras_model(model: Any) -> bool:
    return _has_class(model, "keras", "Model")


def _torch_predictions(module: Any, rows: Any) -> np.ndarray:
    """Return the output of a torch module in evaluation mode, without gradients."""
    torch = import_optional("torch", extra="captum", purpose="A module of torch")
    parameter = next(module.parameters(), torch.zeros(0))
    table = np.array(rows, dtype=float)
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            inputs = torch.from_numpy(table).to(parameter.device, parameter.dtype)
            return np.asarray(module(inputs).detach().cpu().float().numpy())
    finally:
        module.train(was_training)


class CallableClassifier(ClassifierMixin, _CallableEstimator):
    """Fitted scikit-learn classifier around a function or network that predicts a class per row.

    Parameters
    ----------
    function : callable, torch.nn.Module or keras.Model
        Function of the rows (an array, or a frame if the extractor got one) that returns one label
        per row, or scores of shape (n_rows, n_classes); the class with the largest score is
        predicted. A torch module is called in evaluation mode with a tensor of numbers on its
        device.
    classes : sequence, optional
        The labels; required if the function returns scores, or if it may predict a class that does
        not occur in the training rows.
    threshold : float, optional
        For two classes and one score per row: the second class is predicted if the score exceeds
        this value. Use 0 for log odds, 0.5 for probabilities.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if the function does not predict every row or a score is NaN, if it returns
        scores and `classes` is missing or has another length, or if `threshold` is set without two
        classes.

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
        tags.classifier_tags.poor_score = True  # the function cannot learn the data of checks
        return tags

    @property
    def classes_(self) -> np.ndarray:
        """Declared labels."""
        if self.classes is None:
            raise AttributeError("CallableClassifier was made without classes=[...].")
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) < len(labels):
            raise ValueError(
                f"classes must list at least 2 labels, each of them once, got {self.classes!r}."
            )
        return labels

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels by calling the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, passed to the function unchanged.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        predictions = self._call(X)
        if self.threshold is not None:
            return self._apply_threshold(predictions)
        if predictions.ndim == 1:
            return self._convert_to_labels(predictions)
        n_known = 0 if self.classes is None else len(self.classes_)
        if predictions.shape[1] != n_known:
            raise ValueError(
                f"The function returned {predictions.shape[1]} scores per row, but classes lists "
                f"{n_known} labels. Pass CallableClassifier(function, classes=[...]) with one "
                "label per column."
            )
        scores = check_array(
            predictions,
            dtype=float,
            ensure_all_finite="allow-nan",
            input_name="the function's scores",
        )
        has_nan = np.isnan(scores).any(axis=1)
        if has_nan.any():
            raise ValueError(
                "The function returned NaN among the scores of row "
                f"{int(np.flatnonzero(has_nan)[0])} ({int(has_nan.sum())} of {len(scores)} rows), "
                "so no class has the largest score. Correct the function or leave out those rows."
            )
        return self.classes_[scores.argmax(axis=1)]

    def _query(self, X: Any) -> Any:
        """Call the function; a command's output is not read as numbers if the labels are texts."""
        names_labels = self.classes is not None and self.threshold is None
        if names_labels and isinstance(self.function, CommandFunction) and is_text(self.classes_):
            return np.array(self.function.read_lines(X), dtype=object)
        return super()._query(X)

    def _convert_to_labels(self, predictions: np.ndarray) -> np.ndarray:
        """Return the labels; texts are converted to labels if each of them matches one."""
        if self.classes is None or not len(predictions) or not is_text(predictions):
            return predictions
        label_of_text = {str(label): label for label in self.classes}
        if is_text(self.classes_) or not set(predictions.tolist()) <= label_of_text.keys():
            return predictions
        return np.array([label_of_text[text] for text in predictions.tolist()])

    def _apply_threshold(self, scores: np.ndarray) -> np.ndarray:
        """Predict the second class if the score exceeds the threshold."""
        if scores.ndim == 2 or self.classes is None or len(self.classes_) != 2:
            raise ValueError(
                f"threshold={self.threshold!r} requires one score per row and classes=[...] with "
                f"two labels, but the scores have the shape {scores.shape} and classes is "
                f"{self.classes!r}. Omit threshold for one column of scores per class."
            )
        return self.classes_[(finite_predictions(scores) > self.threshold).astype(np.intp)]


class CallableRegressor(RegressorMixin, _CallableEstimator):
    """Fitted scikit-learn regressor around a function or network that predicts a number per row.

    Parameters
    ----------
    function : callable, torch.nn.Module or keras.Model
        Function of the rows (an array, or a frame if the extractor got one) that returns one number
        per row. A torch module is called in evaluation mode with a tensor of numbers on its device.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if the function does not return one finite number per row.

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
        tags.regressor_tags.poor_score = True  # the function cannot learn the data of checks
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Predict numbers by calling the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, passed to the function unchanged.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers.
        """
        predictions = self._call(X)
        if predictions.ndim == 2:
            raise ValueError(
                f"function must predict one number per row, but it gave an array of shape "
                f"{predictions.shape}. Extract rules for one output at a time: "
                "CallableRegressor(lambda rows: function(rows)[:, 0])."
            )
        return finite_predictions(predictions)


def as_black_box(model: Any, *, classes: Sequence[Any] | None = None) -> Any:
    """Wrap a fitted model as a black box that extractors and searches do not fit again.

    Parameters
    ----------
    model : estimator, AutoML, TabularPredictor or results of statsmodels
        Fitted estimator of scikit-learn, AutoML of FLAML, TabularPredictor of AutoGluon, or results
        of a statsmodels model.
    classes : sequence, optional
        Labels of a statsmodels classifier, in the order of its codes; by default the codes 0 and 1
        of a binary model. Not used for other models.

    Returns
    -------
    FrozenEstimator, CallableClassifier or CallableRegressor
        The black box. A binary statsmodels model predicts the second class above 0.5.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If the model is of another kind.
    ValueError
        If a multinomial model of statsmodels lacks `classes`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skescore.black_boxes import as_black_box
    >>> as_black_box(GaussianNB().fit(*load_iris(return_X_y=True)))
    FrozenEstimator(estimator=GaussianNB())
    """
    if _has_class(model, "statsmodels", "ResultsWrapper"):
        return _wrap_statsmodels(model, classes)
    if _has_class(model, "flaml", "AutoML"):
        _require_fitted(model, model.model is not None)
        return _wrap_predictor(model.predict, getattr(model, "classes_", None))
    if _has_class(model, "autogluon", "TabularPredictor"):
        _require_fitted(model, model.is_fit)
        return _wrap_predictor(model.predict, model.class_labels)
    black_box_task(model)
    _require_fitted(model, is_fitted(model))
    return model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)


def _require_fitted(model: Any, fitted: bool) -> None:
    if not fitted:
        raise NotFittedError(f"model must be fitted, but the {type(model).__name__} is not.")


def _wrap_predictor(predict: Callable[[Any], Any], classes: Any) -> Any:
    """Wrap a function that predicts labels, or numbers if there are no classes."""
    if classes is None:
        return CallableRegressor(predict)
    return CallableClassifier(predict, classes=np.asarray(classes).tolist())


def _wrap_statsmodels(results: Any, classes: Sequence[Any] | None) -> Any:
    """Wrap results of statsmodels, whose classifiers predict probabilities."""
    model = results.model
    if _has_class(model, "statsmodels", "MultinomialModel"):
        if classes is None:
            raise ValueError(
                "classes must list the labels of a multinomial model in the order of its codes, "
                "got None. Pass as_black_box(model, classes=[...])."
            )
        return CallableClassifier(results.predict, classes=classes)
    family = getattr(model, "family", None)
    if _has_class(model, "statsmodels", "BinaryModel") or _has_class(
        family, "statsmodels", "Binomial"
    ):
        labels = [0, 1] if classes is None else classes
        return CallableClassifier(results.predict, classes=labels, threshold=0.5)
    return CallableRegressor(results.predict)


def select_output(
    estimator: Any, output: Any, *, names: Sequence[str] | None = None
) -> CallableClassifier | CallableRegressor:
    """Return a black box for one output of a fitted model with several outputs.

    Parameters
    ----------
    estimator : estimator
        Fitted classifier or regressor that predicts several columns.
    output : str or int
        Name of the output, or its index from 0.
    names : sequence of str, optional
        Names of the outputs; required if `output` is a name and the model predicts no data frame.

    Returns
    -------
    CallableClassifier or CallableRegressor
        Black box for this output.

    Raises
    ------
    ValueError
        If there is no such output; at ``predict``, if the model has only one output.

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
    function = partial(_predict_output, estimator, output)
    if task == "regression":
        return CallableRegressor(function)
    classes = getattr(estimator, "classes_", None)
    labels = classes[output] if isinstance(classes, list) else classes
    return CallableClassifier(
        function, classes=None if labels is None else np.asarray(labels).tolist()
    )


def _predict_output(estimator: Any, index: int, rows: Any) -> np.ndarray:
    unnamed = getattr(estimator, "feature_names_in_", None) is None
    if unnamed and hasattr(estimator, "n_features_in_"):  # scikit-learn's, fitted on an array
        rows = np.asarray(rows)
    model = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    predict = model.function if isinstance(model, _CallableEstimator) else estimator.predict
    predictions = one_dimension("The prediction of the model", predict(rows))
    if predictions.ndim != 2 or not 0 <= index < predictions.shape[1]:
        raise ValueError(
            f"output={index} must be the index of one of the model's outputs, but it predicts an "
            f"array of shape {predictions.shape}."
        )
    return predictions[:, index]


class CommandFunction:
    """Function that pipes rows to a command and reads its predictions.

    Wrap it in :class:`CallableClassifier` or :class:`CallableRegressor` to explain a model in
    another language or on another machine.

    Parameters
    ----------
    command : str or sequence of str
        Command with its arguments, which is run without a shell. It reads CSV with a header from
        standard input, with empty cells for missing values, and writes one prediction per line to
        standard output, optionally after a header line.
    timeout : float, optional
        Time limit of a call in seconds.

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
            Predictions: numbers if all of them are numbers, otherwise text.
        """
        return _parse_predictions(self.read_lines(X))

    def read_lines(self, X: Any) -> list[str]:
        """Run the command on rows, and return its predictions as texts.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        list of str
            One text per row, without quotation marks and surrounding blanks.
        """
        if isinstance(X, pd.DataFrame):
            rows = X
        elif hasattr(X, "columns"):  # a polars frame
            rows = pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
        else:
            array = np.asarray(X)
            rows = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        command = self.command
        arguments = (
            shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
        )
        try:
            process = subprocess.run(
                arguments,
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
                f"The command {command!r} cannot be run ({error}). Pass an existing program and "
                "its arguments."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise ValueError(
                f"The command {command!r} returned no predictions for {len(rows)} rows within "
                f"{self.timeout} seconds. Raise timeout, or lower the extractor's batch_size."
            ) from error
        if process.returncode != 0:
            error_lines = process.stderr.strip().splitlines()
            raise ValueError(
                f"The command {command!r} failed with status {process.returncode}"
                f"{': ' + error_lines[-1] if error_lines else ''}. Run it on a CSV file to see why."
            )
        lines: list[str] = []
        for cells in csv.reader(io.StringIO(process.stdout.strip("\n"))):
            if len(cells) != 1:
                actual = f"{len(cells)} columns ({','.join(cells)})" if cells else "no prediction"
                raise ValueError(
                    f"Line {len(lines) + 1} of the output of the command {command!r} has {actual}. "
                    "It must have one prediction: without row numbers, with a decimal point, and "
                    "in quotation marks if it contains a comma."
                )
            lines.append(cells[0].strip())
        if len(lines) == len(rows) + 1:
            lines = lines[1:]
        if len(lines) != len(rows):
            raise ValueError(
                f"The command {command!r} returned {len(lines)} lines for {len(rows)} rows. It "
                "must write one prediction per row, each on a line of its own, and nothing else."
            )
        return lines

    def __repr__(self) -> str:
        return f"CommandFunction({self.command!r})"


def _parse_predictions(lines: Sequence[str]) -> np.ndarray:
    """Read predictions: whole numbers, numbers, or text."""
    for kind in (int, float):
        try:
            return np.array([kind(line) for line in lines])
        except ValueError:
            continue
    return np.array(lines, dtype=object)
