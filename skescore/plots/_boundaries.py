"""Decision boundaries: predictions of a black box and rules in the plane of two features."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from skescore._validation import check_integer, label_order, python_value
from skescore.plots._features import Side, feature_counts, feature_index, side_of, two_features
from skescore.plots._style import (
    SEQUENTIAL,
    axes_or_new,
    colors_of,
    draw_rows,
    legend_beside,
    markers_of,
    matplotlib_module,
    number,
    pale,
    shorten,
)
from skescore.rules import RowTable, RuleSet, as_ruleset

__all__ = ["decision_boundaries", "decision_boundary"]


#: Largest number of values in memory at a time.
_BATCH_NUMBERS = 2_000_000
#: Number of pixels along each axis for determining which classes are visible in a slice.
_COARSE_RESOLUTION = 24
#: Largest number of fixed features that are listed with their values.
_MAX_LISTED = 3


@dataclass(frozen=True)
class Predictions:
    """Predictions of all pixels, and masks of covered pixels and of defined predictions."""

    values: np.ndarray
    covered: np.ndarray
    is_defined: np.ndarray

    def labels(self) -> list[Any]:
        """Return the distinct predictions."""
        return list(dict.fromkeys(self.values[self.is_defined].tolist()))


def rows_of_plane(
    X: Any,
    names: Sequence[str],
    sides: tuple[Side, Side],
    fixed: Sequence[Any],
    resolution: int,
) -> Callable[[], Iterator[Any]]:
    """Return a function that yields the rows of all pixels in batches, in the container of X.

    The lowest line of pixels comes first.
    """
    positions = [side.at(side.centers(resolution)) for side in sides]
    x, y = np.tile(positions[0], len(positions[1])), np.repeat(positions[1], len(positions[0]))
    size = max(1000, _BATCH_NUMBERS // max(1, len(names)))
    plane_columns = {sides[0].feature: x, sides[1].feature: y}

    def batches() -> Iterator[Any]:
        for start in range(0, len(x), size):
            rows = slice(start, min(start + size, len(x)))
            n = rows.stop - start
            columns = [
                plane_columns[j][rows] if j in plane_columns else _repeated(fixed[j], n)
                for j in range(len(names))
            ]
            yield _container(X, columns, names)

    return batches


def predictions_of(
    model: Any, batches: Callable[[], Iterator[Any]], *, ruleset: RuleSet | None
) -> Predictions:
    """Return the predictions of a model for all pixels, and a mask of covered pixels."""
    predictor = model
    is_silent = False
    if isinstance(model, RuleSet) and model.fallback is None and len(model):
        # `predict` requires an output for uncovered rows, which is not drawn.
        predictor, is_silent = model.with_arbitrary_fallback(), True
    predict = predictor.predict if hasattr(predictor, "predict") else predictor
    values, covered = [], []
    for rows in batches():
        y_pred = np.asarray(predict(rows))
        if y_pred.shape != (len(rows),):
            raise ValueError(
                f"{type(model).__name__} must predict one value per row, shape ({len(rows)},), got "
                f"{y_pred.shape}."
            )
        values.append(y_pred)
        n = len(rows)
        covered.append(np.ones(n, bool) if ruleset is None else ruleset.covers(rows))
    predictions = np.concatenate(values)
    covered_mask = np.concatenate(covered)
    defined_mask = covered_mask.copy() if is_silent else np.ones(len(covered_mask), bool)
    if predictions.dtype.kind == "f":
        defined_mask &= ~np.isnan(predictions)  # the rule set abstains
    return Predictions(predictions, covered_mask, defined_mask)


def _fixed_values(
    table: RowTable,
    names: Sequence[str],
    sides: tuple[Side, Side],
    fixed_by_user: Mapping[Any, Any] | None,
    rows: np.ndarray | None = None,
) -> list[Any]:
    values: list[Any] = []
    for j in range(len(names)):
        column = table.column(j) if rows is None else table.column(j)[rows]
        if column.dtype.kind in "OUSTb":
            modes = pd.Series(column).dropna().mode()
            values.append(modes.iloc[0] if len(modes) else None)
        else:
            numbers = column[np.isfinite(column)]
            values.append(float(np.median(numbers)) if len(numbers) else 0.0)
    for feature, value in (fixed_by_user or {}).items():
        j = feature_index(feature, names)
        if j in (sides[0].feature, sides[1].feature):
            raise ValueError(f"fixed_values must not name a feature of the plot, got {feature!r}.")
        values[j] = value
    return values


def _choose_slice(
    models: Mapping[str, Any],
    X: Any,
    table: RowTable,
    names: Sequence[str],
    sides: tuple[Side, Side],
    fixed_by_user: Mapping[Any, Any] | None,
) -> tuple[list[Any], str]:
    """Return the fixed values of the other features and a text on their origin.

    The values are medians of all rows, or of a predicted class if more classes are then visible.
    """
    medians = _fixed_values(table, names, sides, fixed_by_user)
    if len(names) == len(sides):
        return medians, ""
    first = next(iter(models.values()))
    if fixed_by_user or _is_regression(first):
        n_medians = len(names) - len(sides) - len(fixed_by_user or ())
        return (
            medians,
            "medians" if not fixed_by_user else f"given values{' and medians' * (n_medians > 0)}",
        )
    ruleset = _rules_of(first)
    predicted = predictions_of(first, lambda: iter([X]), ruleset=ruleset).values
    labels = list(dict.fromkeys(predicted.tolist()))

    def count_labels(fixed: list[Any]) -> int:
        rows = rows_of_plane(X, names, sides, fixed, _COARSE_RESOLUTION)
        return len(predictions_of(first, rows, ruleset=ruleset).labels())

    best, most_labels, origin = medians, count_labels(medians), "medians"
    for label in sorted(map(python_value, labels), key=label_order):
        if most_labels >= len(labels):
            break
        fixed = _fixed_values(table, names, sides, None, predicted == label)
        count = count_labels(fixed)
        if count > most_labels:
            best, most_labels, origin = fixed, count, f"medians of {shorten(label)}"
    return best, origin


def _slice_text(
    fixed: Sequence[Any], origin: str, names: Sequence[str], sides: Any, rulesets: Any, width: int
) -> str:
    """Return a text on the fixed values, in descending order of the numbers of conditions."""
    plane_features = {side.feature for side in sides}
    counts = sum((feature_counts(rules) for rules in rulesets), np.zeros(len(names)))
    order = [int(j) for j in np.argsort(-counts, kind="stable") if int(j) not in plane_features]
    value_texts = [
        f"{shorten(names[j], 22)} = {_value_text(fixed[j])}" for j in order[:_MAX_LISTED]
    ]
    more = f" and {len(order) - _MAX_LISTED} more" if len(order) > _MAX_LISTED else ""
    text = f"other features at {origin}: {', '.join(value_texts)}{more}"
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)


def _value_text(value: Any) -> str:
    if not isinstance(value, float):
        return shorten(value, 16)
    return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else number(value)


def _repeated(value: Any, n: int) -> np.ndarray:
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        return np.full(n, float(value))
    column = np.empty(n, dtype=object)
    column[:] = [value] * n
    return column


def _container(X: Any, columns: list[np.ndarray], names: Sequence[str]) -> Any:
    if not hasattr(X, "columns"):
        if all(column.dtype.kind == "f" for column in columns):
            return np.column_stack(columns)
        return np.column_stack([column.astype(object) for column in columns])
    kinds: Any = getattr(X, "dtypes", None)
    columns_by_name = {}
    labels = list(X.columns)
    for j, column in enumerate(columns):
        kind = kinds.iloc[j] if hasattr(kinds, "iloc") else None
        series = pd.Series(column)
        # Encoders of the black box require the original types of texts and categories.
        if column.dtype == object and kind is not None:
            series = series.astype(kind)
        columns_by_name[labels[j]] = series
    return pd.DataFrame(columns_by_name)


def decision_boundary(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    fixed_values: Mapping[str | int, Any] | None = None,
    resolution: int = 160,
    title: str | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the predictions of a model in the plane of two features.

    Use :func:`decision_boundaries` to see a black box and rules side by side.

    Parameters
    ----------
    model : estimator, RuleSet or callable
        Fitted black box or extractor, rules, or a function of rows.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that determine the ranges of the features, and are drawn as points.
    y : array-like of shape (n_rows,), optional
        True labels or numbers, for the colors of the points; without y, no points are drawn.
    features : sequence of two str or int, optional
        Features on the x axis and the y axis, by name or index; by default the two with the most
        conditions of the rules.
    fixed_values : mapping of str or int to value, optional
        Values of the other features; by default the median or the most frequent category of all
        rows or of the rows of a class, see Notes.
    resolution : int, default=160
        Number of pixels along numeric axes.
    title : str, optional
        Title of the axes.
    legend : bool, default=True
        Whether to draw a legend or color bar beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If a feature is unknown, the resolution is not a positive integer, or X does not match.

    Notes
    -----
    The plot is a slice: all other features have fixed values, which are stated below the plot. By
    default these are the medians of all rows, or of the rows of one predicted class if more classes
    are then visible. The legend lists classes that are not visible. Points have other values of
    these features, so a point may have another prediction than the color below it. Uncovered areas
    are hatched and have the prediction of the fallback; they are white without a prediction.

    Examples
    --------
    >>> from skescore.plots import decision_boundary
    >>> ax = decision_boundary(extractor, X, y, features=(2, 3))  # doctest: +SKIP
    """
    ax = axes_or_new(ax)
    drawn_axes = decision_boundaries(
        {title or "": model},
        X,
        y,
        features=features,
        fixed_values=fixed_values,
        resolution=resolution,
        legend=legend,
        axes=[ax],
    )
    return drawn_axes[0]


def decision_boundaries(
    models: Any,
    X: Any,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    fixed_values: Mapping[str | int, Any] | None = None,
    resolution: int = 160,
    legend: bool = True,
    axes: Any = None,
) -> Any:
    """Draw the predictions of several models in the plane of two features, side by side.

    Use it to see where rules differ from the black box.

    Parameters
    ----------
    models : fitted extractor or search, mapping of str to model, or sequence of models
        Models are estimators, rule sets or functions of rows; the keys of a mapping are the titles.
        For a single extractor, its black box is also drawn.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that determine the ranges of the features, and are drawn as points.
    y : array-like of shape (n_rows,), optional
        True labels or numbers, for the colors of the points; without y, no points are drawn.
    features : sequence of two str or int, optional
        Features on the x axis and the y axis, by name or index; by default the two with the most
        conditions of the rules.
    fixed_values : mapping of str or int to value, optional
        Values of the other features; by default the median, or the most frequent category.
    resolution : int, default=160
        Number of pixels along numeric axes.
    legend : bool, default=True
        Whether to draw a legend or color bar beside the last axes.
    axes : sequence of matplotlib.axes.Axes, optional
        Axes to draw on, one for each model; by default a new figure with one row.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there is no model, a feature is unknown, the numbers of axes and models differ, or
        classifiers are mixed with regressors.

    Notes
    -----
    See :func:`decision_boundary`. Compare Figure 5 of F. Sabbatini, R. Calegari: Symbolic
    knowledge-extraction evaluation metrics: the FiRe score. ECAI 2023, doi:10.3233/FAIA230496.

    Examples
    --------
    >>> from skescore.plots import decision_boundaries
    >>> axes = decision_boundaries(extractor, X, y)  # doctest: +SKIP
    >>> axes[0].figure.savefig("boundaries.png")  # doctest: +SKIP
    """
    models = _name_models(models)
    check_integer("resolution", resolution, 2)
    rulesets = [rules for model in models.values() if (rules := _rules_of(model)) is not None]
    names = _feature_names(X, rulesets)
    table = RowTable(X, names)
    if not len(table):
        raise ValueError("X must hold at least one row to find ranges, got 0 rows.")
    pair = two_features(features, names, [r for r in rulesets if r.feature_names == names])
    sides = [side_of(feature, names, table=table) for feature in pair]
    tasks = {_is_regression(model) for model in models.values()}
    if len(tasks) > 1:
        raise ValueError(
            f"models must be all classifiers or all regressors, got {list(models)}. Draw "
            "classifiers and regressors separately."
        )
    fixed, origin = _choose_slice(models, X, table, names, (sides[0], sides[1]), fixed_values)
    rows = rows_of_plane(X, names, (sides[0], sides[1]), fixed, resolution)
    predictions_by_model = [
        predictions_of(model, rows, ruleset=_rules_of(model)) for model in models.values()
    ]
    truth = _checked_truth(y, len(table))
    all_axes = _axes_for(axes, len(models))
    shape = (len(sides[1].centers(resolution)), len(sides[0].centers(resolution)))
    centers = [side.centers(resolution) for side in sides]
    positions = [side.scattered(table.column(side.feature), k) for k, side in enumerate(sides)]
    paint = (_NumberPainter if tasks == {True} else _LabelPainter)(
        models, predictions_by_model, truth
    )
    for (name, _), predictions, ax in zip(
        models.items(), predictions_by_model, all_axes, strict=True
    ):
        paint.panel(ax, centers, predictions, shape)
        if truth is not None:
            draw_rows(ax, positions[0], positions[1], truth, labels=paint.labels, norm=paint.norm)
        _draw_hatches(ax, centers, ~predictions.covered.reshape(shape))
        sides[0].label_axis(ax.xaxis)
        sides[1].label_axis(ax.yaxis)
        ax.set_xlim(sides[0].low, sides[0].high)
        ax.set_ylim(sides[1].low, sides[1].high)
        if axes is None:
            ax.label_outer()
        if name:
            ax.set_title(shorten(name, 40))
    if origin:
        has_own_figure = axes is None and len(all_axes) > 1
        matching_rulesets = [r for r in rulesets if r.feature_names == names]
        text = _slice_text(
            fixed,
            origin,
            names,
            sides,
            matching_rulesets,
            60 * len(all_axes) if has_own_figure else 60,
        )
        if has_own_figure:
            all_axes[0].figure.supxlabel(text, fontsize="small", color="0.3")
        else:
            first = all_axes[0].xaxis.get_label_text()
            all_axes[0].set_xlabel(f"{first}\n{text}")
    if legend:
        paint.legend(
            all_axes, any(not predictions.covered.all() for predictions in predictions_by_model)
        )
    return all_axes


class _LabelPainter:
    """Painter of predicted labels."""

    norm = None

    def __init__(
        self, models: Any, all_predictions: list[Predictions], truth: np.ndarray | None
    ) -> None:
        labels: dict[Any, None] = {}
        for model, predictions in zip(models.values(), all_predictions, strict=True):
            model_labels = getattr(_rules_of(model), "classes", None)
            model_labels = getattr(model, "classes_", ()) if model_labels is None else model_labels
            for label in (*np.asarray(model_labels, dtype=object).tolist(), *predictions.labels()):
                labels[python_value(label)] = None
        true_labels = [] if truth is None else [python_value(v) for v in truth.tolist()]
        self.labels = sorted({*labels, *true_labels}, key=label_order)
        visible_labels = {python_value(v) for p in all_predictions for v in p.labels()}
        self._unseen = ", ".join(shorten(v, 16) for v in self.labels if v not in visible_labels)
        self._code = {label: code for code, label in enumerate(self.labels)}
        self.colors = colors_of(len(self.labels))
        self._markers = markers_of(len(self.labels))
        self._with_points = truth is not None

    def panel(self, ax: Any, centers: Any, predictions: Predictions, shape: Any) -> None:
        colors = matplotlib_module("colors")
        values, defined = predictions.values.tolist(), predictions.is_defined.tolist()
        codes = np.array(
            [
                self._code[python_value(v)] if is_defined else -1
                for v, is_defined in zip(values, defined, strict=True)
            ]
        ).reshape(shape)
        ax.pcolormesh(
            *centers,
            np.ma.masked_less(codes, 0),
            shading="nearest",
            rasterized=True,
            cmap=colors.ListedColormap([pale(color) for color in self.colors]),
            vmin=-0.5,
            vmax=len(self.labels) - 0.5,
        )
        for code in np.unique(codes)[1:]:
            ax.contour(*centers, codes >= code, levels=[0.5], colors="black", linewidths=0.7)

    def legend(self, axes: Any, hatched: bool) -> None:
        lines, patches = matplotlib_module("lines"), matplotlib_module("patches")
        handles = [
            lines.Line2D(
                [],
                [],
                ls="",
                marker=marker if self._with_points else "s",
                color=color,
                mec="black",
                mew=0.5,
                label=shorten(label),
            )
            for label, color, marker in zip(self.labels, self.colors, self._markers, strict=True)
        ]
        if hatched:
            handles.append(patches.Patch(fc="white", ec="0.3", hatch="///", label="no rule holds"))
        if self._unseen:
            handles.append(lines.Line2D([], [], ls="", label=f"not in this slice: {self._unseen}"))
        legend_beside(axes[-1], None, handles)


class _NumberPainter:
    """Painter of predicted numbers."""

    labels = None

    def __init__(
        self, models: Any, all_predictions: list[Predictions], truth: np.ndarray | None
    ) -> None:
        values = [
            predictions.values[predictions.is_defined].astype(float)
            for predictions in all_predictions
        ]
        if truth is not None:
            values.append(truth.astype(float))
        numbers = np.concatenate(values)
        numbers = numbers[np.isfinite(numbers)]
        ends = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0)
        self.norm = matplotlib_module("colors").Normalize(float(ends[0]), float(ends[1]))
        self._image: Any = None

    def panel(self, ax: Any, centers: Any, predictions: Predictions, shape: Any) -> None:
        values = (
            np.where(predictions.is_defined, predictions.values, np.nan)
            .astype(float)
            .reshape(shape)
        )
        self._image = ax.pcolormesh(
            *centers, values, shading="nearest", rasterized=True, cmap=SEQUENTIAL, norm=self.norm
        )

    def legend(self, axes: Any, hatched: bool) -> None:
        label = "prediction" + (" (hatched: no rule holds)" if hatched else "")
        axes[-1].figure.colorbar(self._image, ax=list(axes), label=label)


def _draw_hatches(ax: Any, centers: Any, mask: np.ndarray) -> None:
    if not mask.any():
        return
    if mask.all():  # there is no boundary line
        ax.fill_between(
            ax.get_xlim(), *ax.get_ylim(), facecolor="none", edgecolor="0.3", hatch="///", lw=0
        )
        return
    shading = ax.contourf(*centers, mask, levels=[0.5, 1.5], colors="none", hatches=["///"])
    shading.set_edgecolor("0.3")
    shading.set_linewidth(0)


def _name_models(models: Any) -> dict[str, Any]:
    extractor = getattr(models, "best_extractor_", models)
    if hasattr(extractor, "rules_") and hasattr(extractor, "estimator_"):
        return {"black box": extractor.estimator_, "rules": extractor}
    if isinstance(models, Mapping):
        named_models = {str(name): model for name, model in models.items()}
    elif isinstance(models, (Sequence, np.ndarray)) and not isinstance(models, (RuleSet, Pipeline)):
        named_models = {f"{i}. {type(model).__name__}": model for i, model in enumerate(models, 1)}
    else:
        named_models = {type(models).__name__: models}
    if not named_models:
        raise ValueError("models must hold at least one model, got none.")
    for name, model in named_models.items():
        if not (hasattr(model, "predict") or callable(model)) or isinstance(model, type):
            raise TypeError(
                f"models must have a method predict or be functions of rows, got {model!r} for "
                f"{name!r}."
            )
    return named_models


def _rules_of(model: Any) -> RuleSet | None:
    """Return the rules of a model that consists of rules; None for others, such as forests."""
    last = model[-1] if isinstance(model, Pipeline) and len(model) else model
    last = getattr(last, "best_estimator_", last)
    if isinstance(last, RuleSet) or isinstance(getattr(last, "rules_", None), RuleSet):
        return as_ruleset(model)
    return None


def _is_regression(model: Any) -> bool:
    rules = _rules_of(model)
    if rules is not None:
        return rules.task == "regression"
    return bool(hasattr(model, "predict") and is_regressor(model))


def _feature_names(X: Any, rulesets: list[RuleSet]) -> tuple[str, ...]:
    if hasattr(X, "columns") and any(isinstance(c, str) for c in X.columns):
        return tuple(map(str, X.columns))
    if rulesets:
        return rulesets[0].feature_names
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X must be two-dimensional (rows, features), got shape {shape}.")
    return tuple(f"x{j}" for j in range(shape[1]))


def _checked_truth(y: Any, n_rows: int) -> np.ndarray | None:
    truth = None if y is None else np.asarray(y)
    if truth is not None and truth.shape != (n_rows,):
        raise ValueError(f"y must hold one value per row, {n_rows}, got {truth.shape}.")
    return truth


def _axes_for(axes: Any, n: int) -> np.ndarray:
    if axes is None:
        pyplot = matplotlib_module("pyplot")
        size = (3.4 * n + 1.6, 3.4)
        figure = pyplot.figure(figsize=size, layout="constrained")
        return np.asarray(figure.subplots(1, n, sharex=True, sharey=True, squeeze=False)[0])
    axes_array = np.empty(np.size(axes), dtype=object)
    axes_array[:] = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(axes_array) != n:
        raise ValueError(f"axes must hold one Axes per model, {n}, got {len(axes_array)}.")
    for ax in axes_array:
        axes_or_new(ax)
    return axes_array
