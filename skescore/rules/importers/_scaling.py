"""Conversion of rules on preprocessed columns to the original columns and units.

Transformers that compute ``x * scale + offset`` for each column, or select or reorder columns, are
inverted: exactly if the transformer is passed, otherwise up to rounding (a row within a relative
distance of about 1e-15 from a bound may change sides). Encoders replace each label of a column by
codes, so a condition on a code becomes a condition on the labels whose codes satisfy it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from skescore._validation import python_value
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, Missing, OneOf
from skescore.rules._domain import Domain
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules._ruleset import RuleSet


@dataclass(frozen=True)
class CodeTable:
    """Codes that preprocessing computes from the labels of a column.

    Parameters
    ----------
    labels : tuple
        The labels that the encoder knows, without missing values.
    codes : tuple of float
        Code of each label.
    unknown, missing : float or None, default=None
        Code of all other labels, and of missing values; None if the encoder rejects them. If the
        encoder knows None or NaN as a label, its code is that of all missing values.
    """

    labels: tuple[Any, ...]
    codes: tuple[float, ...] = ()
    unknown: float | None = None
    missing: float | None = None

    def accepted(self, condition: Condition) -> np.ndarray:
        """Return whether a condition on the codes holds for each label, others and missing values.

        The result has two more entries than there are labels.
        """
        codes = [*self.codes, *(0.0 if c is None else c for c in (self.unknown, self.missing))]
        return np.asarray(condition.holds(lambda _: np.array(codes)))

    def to_condition(self, accepted: np.ndarray, source: int) -> Condition | bool:
        """Return the condition that column `source` has an accepted label.

        Return True or False if this holds for all labels or for none.
        """
        inside = [label for label, holds in zip(self.labels, accepted, strict=False) if holds]
        outside = [label for label, holds in zip(self.labels, accepted, strict=False) if not holds]
        unknown = None if self.unknown is None else bool(accepted[-2])
        missing = None if self.missing is None else bool(accepted[-1])
        if not outside and unknown is not False:
            return Missing(source, negated=True) if missing is False else True
        if not inside and unknown is not True:
            return Missing(source) if missing else False
        negated = len(outside) < len(inside) if unknown is None else unknown
        return OneOf(source, tuple(outside if negated else inside), negated, bool(missing))


@dataclass(frozen=True)
class AffineMap:
    """Affine map of columns: output k is ``scale[k] * input[source[k]] + offset[k]``.

    Columns that an encoder computes have a table of codes instead.

    Parameters
    ----------
    source : ndarray of int, shape (n_outputs,)
        Index of the input column of each output column.
    scale, offset : ndarray of shape (n_outputs,)
        Factor and summand of each output column.
    input_names : tuple of str
        Names of the input columns.
    filled : tuple, default=()
        For each output column, the value by which an imputer replaces missing inputs, or None if
        missing inputs remain missing. By default None for all columns.
    tables : tuple of CodeTable or None, default=()
        For each output column, the codes of the input's labels, or None if it is not encoded. By
        default None for all columns.

    Examples
    --------
    >>> from skescore.rules.importers import AffineMap
    >>> mapping = AffineMap.identity(("length", "width")).then(0.1, 2.0)
    >>> mapping.source, mapping.scale, mapping.take([1]).offset
    (array([0, 1]), array([0.1, 0.1]), array([2.]))
    """

    source: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    input_names: tuple[str, ...]
    filled: tuple[Any, ...] = field(default=(), repr=False)
    tables: tuple[CodeTable | None, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("filled", "tables"):
            if not getattr(self, name):
                object.__setattr__(self, name, (None,) * len(self.source))

    @classmethod
    def identity(cls, names: tuple[str, ...]) -> AffineMap:
        """Return the identity map."""
        n = len(names)
        return cls(np.arange(n), np.ones(n), np.zeros(n), names)

    def then(self, scale: Any, offset: Any) -> AffineMap:
        """Return the map followed by a further scaling and shift."""
        factors, summands = (np.broadcast_to(v, self.scale.shape).tolist() for v in (scale, offset))
        filled = tuple(
            value if value is None or table else value * factor + summand
            for value, table, factor, summand in zip(
                self.filled, self.tables, factors, summands, strict=True
            )
        )
        return replace(
            self, scale=self.scale * scale, offset=self.offset * scale + offset, filled=filled
        )

    def take(self, columns: Any) -> AffineMap:
        """Return the map followed by a selection of columns."""
        selected = np.arange(len(self.source))[columns]
        filled = tuple(self.filled[k] for k in selected.tolist())
        tables = tuple(self.tables[k] for k in selected.tolist())
        parts = self.source[selected], self.scale[selected], self.offset[selected]
        return AffineMap(*parts, self.input_names, filled, tables)

    def fill(self, values: Sequence[Any]) -> AffineMap:
        """Return the map followed by an imputation with one value per column."""
        filled = (
            new if current is None else current
            for new, current in zip(values, self.filled, strict=True)
        )
        return replace(self, filled=tuple(filled))

    def encode(self, labels: Sequence[Any], n_outputs: Sequence[int]) -> AffineMap:
        """Return the map followed by an encoder; `tabulate` then computes its codes.

        Parameters
        ----------
        labels : sequence of array
            Labels that the encoder knows, one array per column.
        n_outputs : sequence of int
            Number of columns that the encoder computes from each column.
        """
        is_number = (self.scale == 1) & (self.offset == 0)
        if not is_number.all() or any(self.tables):
            raise _not_inverted("An encoder of columns that another step computes")
        columns = np.repeat(np.arange(len(self.source)), n_outputs)
        tables = []
        for column in columns.tolist():
            known = [python_value(label) for label in labels[column]]
            if None in known and any(label != label for label in known):
                raise _not_inverted("An encoder that distinguishes None from NaN")
            tables.append(CodeTable(tuple(known)))
        return replace(self.take(columns), tables=tuple(tables))

    def input_rows(self, transformer: Any, n_rows: int, columns: dict[int, Any]) -> Any:
        """Return rows for a transformer; columns that are not given hold 0 or the first label."""
        first = {
            int(source): next(iter(table.labels), np.nan)
            for source, table in zip(self.source, self.tables, strict=True)
            if table is not None
        }
        values = [
            columns[j] if j in columns else _repeat(first.get(j, 0.0), n_rows)
            for j in range(len(self.input_names))
        ]
        if hasattr(_first_step(transformer), "feature_names_in_"):
            return pd.DataFrame(dict(zip(self.input_names, values, strict=True)))
        return np.column_stack([np.asarray(v, dtype=object if first else float) for v in values])

    def transform_numbers(self, transformer: Any, rows: np.ndarray) -> np.ndarray:
        """Transform rows of numbers, with the first label in encoded columns."""
        encoded = {
            int(j) for j, table in zip(self.source, self.tables, strict=True) if table is not None
        }
        numbers = {j: rows[:, j] for j in range(rows.shape[1]) if j not in encoded}
        return _transform(transformer, self.input_rows(transformer, len(rows), numbers))

    def tabulate(self, transformer: Any) -> AffineMap:
        """Return the map with the codes that a transformer computes from labels."""
        tables = list(self.tables)
        encoded = {k: table for k, table in enumerate(tables) if table is not None}
        for source in {int(self.source[k]) for k in encoded}:
            outputs = [k for k in encoded if self.source[k] == source]
            known = encoded[outputs[0]].labels
            labels = tuple(label for label in known if not pd.isna(label))
            missing_value = next((label for label in known if pd.isna(label)), np.nan)
            is_text = any(isinstance(label, str) for label in labels)

            def codes(
                values: list[Any], source: int = source, is_text: bool = is_text
            ) -> np.ndarray:
                column = np.array(values, dtype=object if is_text else None)
                rows = self.input_rows(transformer, len(values), {source: column})
                return _transform(transformer, rows)

            known_codes = codes(list(labels))
            unknown = _codes_or_none(codes, _unknown_label(labels))
            missing = _codes_or_none(codes, missing_value)
            for k in outputs:
                tables[k] = CodeTable(
                    labels,
                    tuple(known_codes[:, k].tolist()),
                    None if unknown is None else float(unknown[k]),
                    None if missing is None else float(missing[k]),
                )
        return replace(self, tables=tuple(tables))


def _repeat(value: Any, n: int) -> np.ndarray:
    return np.full(n, value, dtype=object if isinstance(value, str) else None)


def _unknown_label(labels: Sequence[Any]) -> Any:
    """Return a label of the same type that is not among the given ones."""
    if all(isinstance(label, str) for label in labels):
        return "".join(sorted(labels)[-1:]) + "?"
    return 2 * max(abs(label) for label in labels if not isinstance(label, str)) + 1


def _codes_or_none(codes: Callable[[list[Any]], np.ndarray], label: Any) -> np.ndarray | None:
    """Return the codes of a label, or None if the encoder rejects it."""
    try:
        return np.asarray(codes([label])[0])
    except (TypeError, ValueError):
        return None


def _transform(transformer: Any, rows: Any) -> np.ndarray:
    """Return transformed rows as a dense array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitting has issued the same warnings
        result = transformer.transform(rows)
    dense = result.toarray() if sparse.issparse(result) else result
    return np.asarray(dense, dtype=float)


def _first_step(transformer: Any) -> Any:
    """Return the first step of a Pipeline that changes rows, or the transformer itself."""
    while isinstance(transformer, Pipeline):
        transformer = next((step for step in transformer if not does_nothing(step)), None)
    return transformer


def affine_map(transformer: Any) -> AffineMap:
    """Return the affine map that a fitted transformer applies to the columns.

    Parameters
    ----------
    transformer : transformer
        A fitted scaler, selector, imputer or encoder of scikit-learn, or a ``Pipeline`` or
        ``ColumnTransformer`` of such transformers.

    Returns
    -------
    AffineMap
        The map from the input columns to the output columns.

    Raises
    ------
    TypeError
        If the transformer, or a part of it, cannot be inverted column by column.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from skescore.rules.importers import affine_map
    >>> affine_map(MinMaxScaler().fit([[10.0], [30.0]]))
    AffineMap(source=array([0]), scale=array([0.05]), offset=array([-0.5]), input_names=('x0',))
    """
    first = _first_step(transformer)
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(first.n_features_in_)]
    mapping = _apply(transformer, AffineMap.identity(tuple(map(str, names))))
    return mapping.tabulate(transformer) if any(mapping.tables) else mapping


def does_nothing(transformer: Any) -> bool:
    """Return whether a step is None or passthrough, or a Pipeline of such steps."""
    if isinstance(transformer, Pipeline):
        return all(map(does_nothing, transformer))
    return transformer is None or transformer == "passthrough"


def _apply(transformer: Any, so_far: AffineMap) -> AffineMap:
    if does_nothing(transformer):
        return so_far
    if isinstance(transformer, Pipeline):
        for step in transformer:
            so_far = _apply(step, so_far)
        return so_far
    if isinstance(transformer, StandardScaler):
        scale = 1.0 if transformer.scale_ is None else 1 / transformer.scale_
        mean = 0.0 if not transformer.with_mean else transformer.mean_
        return so_far.then(scale, -mean * scale)
    if isinstance(transformer, MinMaxScaler) and not transformer.clip:
        return so_far.then(transformer.scale_, transformer.min_)
    if isinstance(transformer, MaxAbsScaler):
        return so_far.then(1 / transformer.scale_, 0.0)
    if isinstance(transformer, RobustScaler):
        scale = 1.0 if transformer.scale_ is None else 1 / transformer.scale_
        center = 0.0 if transformer.center_ is None else transformer.center_
        return so_far.then(scale, -center * scale)
    if isinstance(transformer, OneHotEncoder):
        return so_far.encode(transformer.categories_, transformer._n_features_outs)
    if isinstance(transformer, OrdinalEncoder | TargetEncoder):
        is_repeated = getattr(transformer, "target_type_", None) == "multiclass"
        n_outputs = len(transformer.classes_) if is_repeated else 1
        return so_far.encode(transformer.categories_, [n_outputs] * len(transformer.categories_))
    if isinstance(transformer, SelectorMixin):
        return so_far.take(transformer.get_support())
    if (
        isinstance(transformer, SimpleImputer)
        and not transformer.add_indicator
        and pd.isna(transformer.missing_values)
    ):
        dropped = np.array([v is np.nan or v != v for v in transformer.statistics_], dtype=bool)
        so_far = so_far.fill([python_value(v) for v in transformer.statistics_])
        return so_far.take(~dropped)
    if isinstance(transformer, FunctionTransformer) and transformer.func is None:
        return so_far
    if isinstance(transformer, ColumnTransformer):
        return _column_transformer(transformer, so_far)
    raise _not_inverted(type(transformer).__name__)


def _not_inverted(transformer: str) -> TypeError:
    """Return the error for a transformer that cannot be inverted column by column."""
    return TypeError(
        f"{transformer} cannot be inverted, so rules on its output cannot be converted to the "
        "units of its input. Use scalers, selectors, imputers of NaN and encoders, or use the "
        "attribute rules_ of the extractor, which is in the units of the output."
    )


def _column_transformer(transformer: ColumnTransformer, so_far: AffineMap) -> AffineMap:
    parts = []
    for name, inner, _ in transformer.transformers_:
        if inner == "drop":
            continue
        columns = np.asarray(transformer._transformer_to_input_indices[name], dtype=int)
        if len(columns):  # a transformer without columns is not fitted
            part = _apply(inner, so_far.take(columns))
            weight = (transformer.transformer_weights or {}).get(name)
            parts.append(part if weight is None else part.then(weight, 0.0))
    return AffineMap(
        np.concatenate([p.source for p in parts]),
        np.concatenate([p.scale for p in parts]),
        np.concatenate([p.offset for p in parts]),
        so_far.input_names,
        tuple(value for p in parts for value in p.filled),
        tuple(table for p in parts for table in p.tables),
    )


def interval_in(interval: Interval, feature: int, undo: Callable[[float], float]) -> Interval:
    """Convert an interval of an output column to an interval of its input feature."""
    low, high = undo(interval.lower), undo(interval.upper)
    closed_flags = interval.lower_closed, interval.upper_closed
    if low > high:
        low, high, closed_flags = high, low, closed_flags[::-1]
    if low == high:  # because of rounding, a narrow interval contains only one number
        closed_flags = True, True
    return Interval(feature, low, high, *closed_flags, missing=interval.missing)


def _exact_bounds(
    ruleset: RuleSet, mapping: AffineMap, transform: Callable[[np.ndarray], Any]
) -> dict[tuple[int, float], tuple[float, float]]:
    """Compute the inputs on both sides of each bound without rounding errors.

    A scaler and its inverse both round. Because boosted trees split at values of training rows,
    these rows would change sides.

    Returns
    -------
    dict
        For each output column and bound, a pair of inputs in ascending order: the last input that
        the transformer maps to the bound or before it, and the first that it maps to the bound or
        after it. With a negative scale, "before" means a larger output.
    """
    bounds = {
        (condition.feature, bound)
        for condition in _leaves(c for rule in ruleset.rules for c in rule.conditions)
        if isinstance(condition, Interval) and mapping.tables[condition.feature] is None
        for bound in (condition.lower, condition.upper)
        if math.isfinite(bound)
    }
    if not bounds:
        return {}
    keys = sorted(bounds)
    last, first = _turning_points(mapping, transform, keys)
    return dict(zip(keys, zip(last.tolist(), first.tolist(), strict=True), strict=True))


def _exact_fillings(mapping: AffineMap, transform: Callable[[np.ndarray], Any]) -> tuple[Any, ...]:
    """Return the values that replace missing inputs, with the rounding of the scalers."""
    if all(value is None for value in mapping.filled):
        return mapping.filled
    (row,) = np.asarray(transform(np.full((1, len(mapping.input_names)), np.nan)))
    return tuple(
        None if value is None else exact
        for value, exact in zip(mapping.filled, row.tolist(), strict=True)
    )


def _turning_points(
    mapping: AffineMap,
    transform: Callable[[np.ndarray], Any],
    keys: Sequence[tuple[int, float]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the last inputs at or before bounds, and the first inputs at or after them.

    A bound is a pair of an output column and a number. All bounds are searched at the same time:
    a transformed row contains one bound of each input column.
    """
    outputs = np.array([k for k, _ in keys])
    bounds = np.array([bound for _, bound in keys])
    sources = mapping.source[outputs]
    scales, offsets = mapping.scale[outputs], mapping.offset[outputs]
    signs = np.sign(scales)
    at = np.zeros(len(keys), dtype=np.intp)
    for source in np.unique(sources):
        is_source = sources == source
        at[is_source] = np.arange(is_source.sum())

    def image(inputs: np.ndarray) -> np.ndarray:
        rows = np.zeros((at.max() + 1, len(mapping.input_names)))
        rows[at, sources] = inputs
        return np.asarray(signs * np.asarray(transform(rows), dtype=float)[at, outputs])

    start = (bounds - offsets) / scales
    width = 1e-12 * (np.abs(start) + np.abs(offsets / scales)) + 1e-300
    last = _last(lambda inputs: image(inputs) <= signs * bounds, start, width)
    before = _last(lambda inputs: image(inputs) < signs * bounds, start, width)
    return last, np.nextafter(before, np.inf)


def _leaves(conditions: Iterable[Condition]) -> Iterable[Condition]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _leaves(condition.conditions)
        else:
            yield condition


def _last(
    holds: Callable[[np.ndarray], np.ndarray], start: np.ndarray, width: np.ndarray
) -> np.ndarray:
    """Find the largest number near `start` for which a monotone condition still holds."""
    low, high = start - width, start + width
    for _ in range(64):
        bad_low, bad_high = ~holds(low), holds(high)
        if not (bad_low.any() or bad_high.any()):
            break
        width = 2 * width
        low, high = np.where(bad_low, low - width, low), np.where(bad_high, high + width, high)
    while True:
        middle = low + (high - low) / 2
        apart = (low < middle) & (middle < high)
        if not apart.any():
            return low
        inside = holds(middle)
        low = np.where(apart & inside, middle, low)
        high = np.where(apart & ~inside, middle, high)


def in_user_units(
    ruleset: RuleSet,
    mapping: Any,
    transform: Callable[[np.ndarray], Any] | None = None,
) -> RuleSet:
    """Convert rules on a transformer's output to rules on its input.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    mapping : AffineMap or transformer
        The fitted transformer, or its map from :func:`affine_map`.
    transform : callable, optional
        Method of the transformer that transforms rows, used only if `mapping` is a map. With it,
        the conversion is exact. Without it, rows next to a bound may change sides because of
        rounding.

    Returns
    -------
    RuleSet
        The rules in the units of the input, with the names of its columns.

    Raises
    ------
    TypeError
        If the transformer cannot be inverted column by column, or if the rules contain sums with
        an encoded column.
    ValueError
        If the number of the transformer's output columns is not the number of features, or the
        scale of a column is 0 or not finite.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.rules.importers import affine_map, in_user_units
    >>> scaled = RuleSet([Rule([Interval(0, upper=0.5)], 1.0)], ["x0"], task="regression")
    >>> print(in_user_units(scaled, affine_map(MinMaxScaler().fit([[10.0], [30.0]]))))
    1. IF x0 ≤ 20 THEN 1
    """
    if not isinstance(mapping, AffineMap):
        transformer, mapping = mapping, affine_map(mapping)
        try:
            return in_user_units(
                ruleset, mapping, lambda rows: mapping.transform_numbers(transformer, rows)
            )
        except (TypeError, ValueError) as error:  # the transformer requires text in other columns
            converted = in_user_units(ruleset, mapping)
            warnings.warn(
                "The bounds are only converted up to rounding, so rows next to a bound may change "
                f"sides. The transformer cannot transform numbers: {error}",
                UserWarning,
                stacklevel=2,
            )
            return converted
    if len(mapping.source) != ruleset.n_features:
        raise ValueError(
            f"mapping must have one output column per feature of the rules, {ruleset.n_features}, "
            f"got {len(mapping.source)}. Pass the map of the transformer in front of the extractor."
        )
    if not (np.isfinite(mapping.scale).all() and mapping.scale.all()):
        raise ValueError(
            f"mapping.scale must be finite and not 0, got {mapping.scale!r}. Drop the columns "
            "with another scale."
        )

    bounds = {}
    if transform is not None:
        bounds = _exact_bounds(ruleset, mapping, transform)
        mapping = replace(mapping, filled=_exact_fillings(mapping, transform))
    conversion = _UnitConversion(mapping, bounds)
    domain = ruleset.domain
    rules = [conversion.convert_rule(rule) for rule in ruleset.rules]
    return ruleset.replace(
        rules=[rule for rule in rules if rule is not None],
        feature_names=mapping.input_names,
        domain=None if domain is None else conversion.convert_domain(domain),
    )


@dataclass(frozen=True)
class _UnitConversion:
    """Conversion of rules on a transformer's output to rules on its input.

    `exact_bounds` is the result of :func:`_exact_bounds`; without it, bounds are computed by the
    inverse of the affine map.
    """

    mapping: AffineMap
    exact_bounds: dict[tuple[int, float], tuple[float, float]]
    accepted_labels: dict[Condition, np.ndarray] = field(default_factory=dict)

    def convert_rule(self, rule: Rule) -> Rule | None:
        """Convert the conditions, the output and the weight of a rule; None if it never holds."""
        conditions: list[Condition | bool] = []
        accepted: dict[int, tuple[CodeTable, np.ndarray]] = {}
        for condition in rule.conditions:
            table = self._table(condition)
            if table is None:
                conditions.append(self._convert_condition(condition))
                continue
            # Conditions on several codes of the same label are one condition on the label.
            source = self._source(condition.features[0])
            labels = self._accepted_labels(table, condition)
            before = accepted.get(source)
            accepted[source] = table, labels if before is None else labels & before[1]
        conditions += [table.to_condition(labels, j) for j, (table, labels) in accepted.items()]
        if any(condition is False for condition in conditions):
            return None
        return Rule(
            tuple(condition for condition in conditions if not isinstance(condition, bool)),
            self._convert_output(rule.output),
            rule.statistics,
            self._convert_output(rule.weight),
        )

    def convert_domain(self, domain: Domain) -> Domain:
        """Convert the domain."""
        # Columns that the transformer drops are constant, so volumes do not depend on them.
        lower, upper, missing = np.zeros((3, len(self.mapping.input_names)))
        categorical = {feature for feature, _ in domain.categories}
        for feature in range(len(domain.lower)):
            bounds = domain.lower[feature], domain.upper[feature]
            if self.mapping.tables[feature] is not None:
                continue
            if feature not in categorical:  # the bounds of categorical columns count values
                bounds = self._unscale(feature, bounds[0]), self._unscale(feature, bounds[1])
            source = self._source(feature)
            lower[source], upper[source] = min(bounds), max(bounds)
            missing[source] = domain.missing[feature]
        categories = {
            self._source(feature): self._convert_values(feature, values)
            for feature, values in domain.categories
        }
        for feature, table in enumerate(self.mapping.tables):
            if table is not None:
                source = self._source(feature)
                lower[source], upper[source] = 0.0, len(table.labels)
                categories[source] = table.labels
        return Domain(tuple(lower), tuple(upper), tuple(categories.items()), tuple(missing))

    def _table(self, condition: Condition) -> CodeTable | None:
        """Return the codes of the column that a condition tests; None if it is not encoded."""
        if isinstance(condition, AtLeast | Linear):
            return None
        return self.mapping.tables[condition.feature]

    def _accepted_labels(self, table: CodeTable, condition: Condition) -> np.ndarray:
        """Return :meth:`CodeTable.accepted`, cached because leaves of a tree share conditions."""
        if condition not in self.accepted_labels:
            self.accepted_labels[condition] = table.accepted(condition)
        return self.accepted_labels[condition]

    def _source(self, feature: int) -> int:
        """Return the input column from which an output column is computed."""
        return int(self.mapping.source[feature])

    def _unscale(self, feature: int, value: float) -> float:
        return float((value - self.mapping.offset[feature]) / self.mapping.scale[feature])

    def _convert_values(self, feature: int, values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(v if isinstance(v, str | bool) else self._unscale(feature, v) for v in values)

    def _convert_condition(self, condition: Condition) -> Condition | bool:
        """Convert a condition; True or False if it has this value for each row."""
        if isinstance(condition, AtLeast):
            inner = [self._convert_condition(part) for part in condition.conditions]
            m = condition.m - sum(part is True for part in inner)
            parts = tuple(part for part in inner if not isinstance(part, bool))
            return AtLeast(m, parts) if 0 < m <= len(parts) else m <= 0
        table = self._table(condition)
        if table is not None:
            accepted = self._accepted_labels(table, condition)
            return table.to_condition(accepted, self._source(condition.features[0]))
        if isinstance(condition, Interval | OneOf):
            condition = self._accept_imputed(condition)
        if isinstance(condition, Interval):
            return self._convert_interval(condition)
        if isinstance(condition, OneOf):
            values = self._convert_values(condition.feature, condition.values)
            return replace(condition, feature=self._source(condition.feature), values=values)
        if isinstance(condition, Missing):
            return replace(condition, feature=self._source(condition.feature))
        self._check_sum(condition.terms)
        scale, offset = self.mapping.scale, self.mapping.offset
        shift = sum(coefficient * offset[feature] for feature, coefficient in condition.terms)
        terms = tuple(
            (self._source(feature), float(coefficient * scale[feature]))
            for feature, coefficient in condition.terms
        )
        lower, upper = condition.lower - shift, condition.upper - shift
        return replace(condition, terms=terms, lower=lower, upper=upper)

    def _check_sum(self, terms: Iterable[tuple[int, float]]) -> None:
        """Raise a TypeError if a sum contains an encoded column."""
        encoded = [
            self.mapping.input_names[self._source(feature)]
            for feature, _ in terms
            if self.mapping.tables[feature] is not None
        ]
        if encoded:
            raise TypeError(
                f"The rules contain sums with codes of the column {encoded[0]!r}, which cannot be "
                "stated in its labels. Use the attribute rules_ of the extractor, which is in the "
                "units of the output of the encoder, or extract rules without sums."
            )

    def _accept_imputed(self, condition: Interval | OneOf) -> Interval | OneOf:
        """Include missing values in a condition if it holds for the value that replaces them."""
        imputed = self.mapping.filled[condition.feature]
        if imputed is None:
            return condition
        column = np.array([imputed])
        return replace(condition, missing=bool(condition.holds(lambda _: column)[0]))

    def _convert_interval(self, interval: Interval) -> Interval:
        feature, source = interval.feature, self._source(interval.feature)
        if not self.exact_bounds:
            return interval_in(interval, source, lambda value: self._unscale(feature, value))
        ends = [(interval.lower, interval.lower_closed), (interval.upper, interval.upper_closed)]
        sign = float(np.copysign(1, self.mapping.scale[feature]))
        if sign < 0:
            ends = [(-bound, is_closed) for bound, is_closed in reversed(ends)]
        (lower, lower_closed), (upper, upper_closed) = ends
        # Closed ends include the bound, which several inputs may map to.
        lower = self._exact_bound(feature, sign, lower)[1 if lower_closed else 0]
        upper = self._exact_bound(feature, sign, upper)[0 if upper_closed else 1]
        if lower > upper or (lower == upper and not (lower_closed and upper_closed)):
            # No input is mapped into the interval, and there is no float between these bounds.
            lower, lower_closed, upper_closed = math.nextafter(upper, -math.inf), False, False
        return Interval(source, lower, upper, lower_closed, upper_closed, interval.missing)

    def _exact_bound(self, feature: int, sign: float, bound: float) -> tuple[float, float]:
        return self.exact_bounds.get((feature, sign * bound), (bound, bound))

    def _convert_output(self, output: Any) -> Any:
        """Convert a linear output or weight; return constants as they are."""
        if not isinstance(output, LinearOutput):
            return output
        self._check_sum(output.terms)
        coefficients: dict[int, float] = {}
        intercept = output.intercept
        for feature, coefficient in output.terms:
            source = self._source(feature)
            scaled = float(coefficient * self.mapping.scale[feature])
            coefficients[source] = coefficients.get(source, 0.0) + scaled
            intercept += float(coefficient * self.mapping.offset[feature])
        return LinearOutput(intercept, tuple(coefficients.items()))
