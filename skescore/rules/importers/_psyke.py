"""Rules of fitted extractors of PSyKE."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from skescore._text import listed
from skescore._validation import (
    check_label,
    check_number,
    check_sequence,
    label_order,
    python_value,
)
from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._row_table import RowTable
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules._volumes import overlapping_pairs
from skescore.rules.importers._scaling import interval_in
from skescore.rules.importers._sklearn import learned_from_missing, shortened_paths, tree_to_ruleset


class _Unset:
    """Marker for the output of a box to which PSyKE assigned no output."""

    def __repr__(self) -> str:
        return "no output"


UNSET = _Unset()


@dataclass(frozen=True)
class Draft:
    """Rule whose output may be a label of PSyKE, or UNSET.

    Class counts are in the order of :attr:`Reading.labels`.
    """

    conditions: tuple[Condition, ...]
    output: Any
    statistics: RuleStatistics | None = None


@dataclass(frozen=True)
class Columns:
    """Names of the features in the rules, and the index of the feature of each PSyKE column."""

    names: tuple[str, ...]
    index_of: Mapping[str, int]

    @classmethod
    def of(cls, column_names: Sequence[str], feature_names: Sequence[str] | None) -> Columns:
        """Match the columns of PSyKE's training rows with feature names."""
        if feature_names is None:
            return cls(tuple(column_names), {name: j for j, name in enumerate(column_names)})
        names = tuple(map(str, check_sequence("feature_names", feature_names, "names")))
        if set(column_names) <= set(names):
            return cls(names, {name: names.index(name) for name in column_names})
        if len(names) != len(column_names):
            raise ValueError(
                f"feature_names must have one name for each of PSyKE's {len(column_names)} "
                f"features, or contain their names ({listed(column_names)}), got {listed(names)}."
            )
        return cls(names, {name: j for j, name in enumerate(column_names)})


@dataclass(frozen=True)
class Reading:
    """Content of an extractor of PSyKE: its columns, rules, labels and domain.

    `notes` are texts of warnings to issue.
    """

    columns: Columns
    drafts: tuple[Draft, ...]
    task: str
    labels: tuple[Any, ...] = ()
    disjoint: bool = False
    domain: Domain | None = None
    notes: list[str] = field(default_factory=list)


def warn(text: str) -> None:
    """Issue a warning about a repaired rule.

    Importing PSyKE installs a filter that ignores all warnings of the process. This function
    bypasses the filter, because users must know about repairs.
    """
    with warnings.catch_warnings():
        if warnings.filters and warnings.filters[0] == ("ignore", None, Warning, None, 0):
            warnings.simplefilter("always", UserWarning)
        warnings.warn(text, UserWarning, stacklevel=3)


def known_labels(black_box: Any, label_values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the classes of a black box; () if they do not include all labels of the rules."""
    try:
        array = np.asarray(getattr(black_box, "classes_", ()))
    except ValueError:  # arrays of different lengths
        return ()
    labels = tuple(array.tolist()) if array.ndim == 1 else ()
    distinct_labels = {python_value(label) for label in label_values} - {None, ""}
    return labels if distinct_labels <= set(labels) else ()


def decimals() -> int:
    """Return the number of decimals to which PSyKE rounds its predictions."""
    utils = sys.modules.get("psyke.utils")
    return 6 if utils is None else int(utils.get_int_precision())


class Labels:
    """Mapping from PSyKE's labels to the classes of the rule set.

    Without the user's `classes`, the classes also include `other_labels`.
    """

    def __init__(
        self, reading: Reading, classes: Mapping[Any, Any] | None, other_labels: Sequence[Any]
    ) -> None:
        outputs = [python_value(d.output) for d in reading.drafts if d.output is not UNSET]
        if classes is not None:
            if not isinstance(classes, Mapping):
                raise TypeError(
                    "classes must be None, or map PSyKE's labels to your labels, such as "
                    f"{{'0': 0, '1': 1}}, got {classes!r}."
                )
            self.map = {python_value(k): check_label("classes", v) for k, v in classes.items()}
            unmapped = [o for o in [*outputs, *reading.labels] if o not in self.map]
            if unmapped:
                raise ValueError(
                    f"classes must have an entry for every label of PSyKE's rules; {unmapped[0]!r} "
                    f"is missing in {dict(classes)!r}."
                )
            if len(set(self.map.values())) < len(self.map):
                raise ValueError(
                    f"classes must map each label to a different label, got {dict(classes)!r}."
                )
            self.classes = tuple(self.map.values())
            return
        self.map = {check_label("PSyKE's label", o): o for o in [*reading.labels, *outputs]}
        all_labels = tuple(reading.labels)
        if not {*outputs, *other_labels} <= set(all_labels):
            all_labels = tuple(sorted({*all_labels, *outputs, *other_labels}, key=label_order))
        self.classes = all_labels

    def statistics(
        self, statistics: RuleStatistics | None, labels: tuple[Any, ...]
    ) -> RuleStatistics | None:
        """Return counts in the order of the rule set's classes."""
        if statistics is None or statistics.class_counts is None:
            return statistics
        counts = dict.fromkeys(self.classes, 0.0)
        for label, count in zip(labels, statistics.class_counts, strict=True):
            counts[self.map[label]] = count
        return replace(statistics, class_counts=tuple(counts.values()))


def make_ruleset(
    reading: Reading,
    *,
    classes: Mapping[Any, Any] | None,
    X: Any,
    y_black_box: Any,
    domain: Domain | None,
    fallback: Fallback | None,
) -> RuleSet:
    """Convert a reading to a rule set; see :func:`skescore.rules.importers.read_psyke`."""
    if y_black_box is not None:
        if X is None:
            raise ValueError("y_black_box needs the rows of its predictions, got X=None. Pass X.")
        flat = y_black_box.ravel() if isinstance(y_black_box, np.ndarray) else y_black_box
        y_black_box = [python_value(value) for value in flat]
    settings: dict[str, Any] = {
        "task": reading.task,
        "domain": reading.domain if domain is None else domain,
        "ordered": not reading.disjoint,
        "disjoint": reading.disjoint,
        "fallback": fallback,
        "reference": "black_box",
    }
    drafts, names = list(reading.drafts), reading.columns.names
    if reading.task == "regression" and classes is not None:
        raise ValueError(
            f"classes must be None for these rules of PSyKE, which predict numbers, got "
            f"{classes!r}."
        )
    if reading.task == "classification":
        other_labels = list(y_black_box or ())
        if fallback is not None:
            other_labels.append(fallback.output)
        labels = Labels(reading, classes, other_labels)
        settings["classes"] = labels.classes
        drafts = [
            Draft(
                d.conditions,
                d.output if d.output is UNSET else labels.map[python_value(d.output)],
                labels.statistics(d.statistics, reading.labels),
            )
            for d in drafts
        ]
    table = None if X is None else RowTable(X, names)
    drafts = _with_outputs(drafts, table, y_black_box, names, settings, reading.notes)
    rules = [Rule(d.conditions, d.output, d.statistics) for d in drafts]
    ruleset = RuleSet(rules, names, **settings)
    if table is None:
        return ruleset
    statistics = _statistics(
        ruleset.assign(table), len(rules), y_black_box, settings.get("classes")
    )
    return ruleset.replace(
        rules=[replace(rule, statistics=s) for rule, s in zip(rules, statistics, strict=True)]
    )


def _with_outputs(
    drafts: list[Draft],
    table: RowTable | None,
    y_black_box: list[Any] | None,
    names: Sequence[str],
    settings: dict[str, Any],
    notes: list[str],
) -> list[Draft]:
    """Set missing outputs of rules from their rows; drop rules without rows."""
    unset = [i for i, draft in enumerate(drafts) if draft.output is UNSET]
    if not unset:
        return drafts
    n_repaired, classes = 0, settings.get("classes")
    if table is not None and y_black_box:
        any_output: Any = 0.0 if classes is None else classes[0]
        rules = [Rule(d.conditions, any_output) for d in drafts]
        index = RuleSet(rules, names, **settings).assign(table)
        statistics = _statistics(index, len(rules), y_black_box, classes)
        for i in unset:
            counts = statistics[i].class_counts
            output = statistics[i].mean
            if classes is not None and counts is not None and any(counts):
                output = classes[int(np.argmax(counts))]
            if output is not None:
                drafts[i] = replace(drafts[i], output=output)
                n_repaired += 1
    complete_drafts = [draft for draft in drafts if draft.output is not UNSET]
    actions = []
    if n_repaired:
        subject = "1 now predicts" if n_repaired == 1 else f"{n_repaired} now predict"
        actions.append(f"{subject} the majority or mean of y_black_box on the rows of the rule")
    if len(complete_drafts) < len(drafts):
        n_dropped = len(drafts) - len(complete_drafts)
        actions.append(f"{n_dropped} {'was' if n_dropped == 1 else 'were'} dropped")
    if y_black_box is None:
        actions[-1] += (
            "; pass X and y_black_box, rows and the predictions of the black box, to assign outputs"
        )
    notes.append(
        f"PSyKE never gave an output to {len(unset)} of its {len(drafts)} rules, although its "
        f"predict uses them. Of these, {' and '.join(actions)}."
    )
    return complete_drafts


def _statistics(
    index: np.ndarray, n_rules: int, y_black_box: list[Any] | None, classes: Sequence[Any] | None
) -> list[RuleStatistics]:
    """Return the statistics of the rows that each rule predicts."""
    if y_black_box is None:
        n_rows = np.bincount(index[index >= 0], minlength=n_rules)
        return [RuleStatistics(n) for n in n_rows.tolist()]
    if len(y_black_box) != len(index):
        raise ValueError(
            f"y_black_box must have one entry per row of X ({len(index)}), got {len(y_black_box)}."
        )
    members = [np.flatnonzero(index == i) for i in range(n_rules)]
    if classes is not None:
        code_of = {label: k for k, label in enumerate(classes)}
        unknown = [label for label in y_black_box if label not in code_of]
        if unknown:
            raise ValueError(
                f"y_black_box must contain only the classes {list(classes)}, got {unknown[0]!r}. "
                "Pass labels of the rule set; classes=... maps PSyKE's labels to yours."
            )
        codes = np.array([code_of[label] for label in y_black_box], dtype=np.intp)
        counts = [np.bincount(codes[rows], minlength=len(classes)) for rows in members]
        return [RuleStatistics(int(c.sum()), tuple(c.tolist())) for c in counts]
    values = np.asarray(y_black_box, dtype=float)
    return [
        RuleStatistics(
            len(rows), mean=float(values[rows].mean()), standard_deviation=float(values[rows].std())
        )
        if len(rows)
        else RuleStatistics(0)
        for rows in members
    ]


# PSyKE's REAL and Trepan, and optionally CART, learn from columns of 0 and 1. PSyKE's
# ``DiscreteFeature`` states which values each column represents, so literals on these columns can
# be converted to conditions on features.

#: Position between two numbers: a number, and 0 for just before it or 1 for just after it.
_Cut: TypeAlias = tuple[float, int]
#: Disjoint ordered pieces of the line, each from one position to another; they do not touch.
_Region: TypeAlias = list[tuple[_Cut, _Cut]]

_ALL_NUMBERS: _Region = [((-math.inf, 0), (math.inf, 1))]

#: A column, and whether its value must be 1.
Literal: TypeAlias = tuple[str, bool]


def _complement(region: _Region) -> _Region:
    cuts = [(-math.inf, 0), *(cut for piece in region for cut in piece), (math.inf, 1)]
    return [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=True) if a < b]


def _intersection(one: _Region, other: _Region) -> _Region:
    pieces = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return sorted((a, b) for a, b in pieces if a < b)


def _region_of_value(value: Any) -> _Region | None:
    """Return the intervals of numbers of a PSyKE value; None for a single label or number."""
    kind = type(value).__name__
    if kind == "Constant" or not hasattr(value, "is_in"):
        return None
    first = int(not value.standard)
    low, high = (float(value.lower), first), (float(value.upper), first)
    if kind == "LessThan":
        return [((-math.inf, 0), (high[0], int(value.standard)))]
    if kind == "GreaterThan":
        return [((low[0], int(value.standard)), (math.inf, 1))]
    if kind in ("Between", "Outside"):
        inside = [(low, high)] if low < high else []
        return inside if kind == "Between" else _complement(inside)
    raise TypeError(
        f"A DiscreteFeature must have values of PSyKE's kinds (LessThan, GreaterThan, Between, "
        f"Outside, Constant), got {value!r}."
    )


def _constant(value: Any) -> Any:
    """Return the label or number that a constant represents."""
    return check_label("a DiscreteFeature's value", getattr(value, "value", value))


def _piece(feature: int, start: _Cut, stop: _Cut) -> Interval:
    return Interval(feature, start[0], stop[0], start[1] == 0, stop[1] == 1)


@dataclass(frozen=True)
class Discretization:
    """Meaning of columns of 0 and 1; without `features`, the columns are themselves features."""

    features: Sequence[Any]

    @classmethod
    def of(cls, extractor: Any, discretization: Iterable[Any] | None) -> Discretization:
        """Return the caller's discretization; if it is None, the extractor's."""
        if discretization is None:
            discretization = extractor.discretization or ()
        features = list(discretization)
        for feature in features:
            if not hasattr(feature, "admissible_values"):
                raise TypeError(
                    f"discretization must hold PSyKE's DiscreteFeature objects, got {feature!r}."
                )
        columns = [column for feature in features for column in feature.admissible_values]
        repeated = sorted({column for column in columns if columns.count(column) > 1})
        if repeated:
            raise ValueError(
                f"discretization must name each column once, got {listed(repeated)} several times."
            )
        return cls(features)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [str(feature.name) for feature in self.features]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, sorted as in PSyKE."""
        return sorted(str(c) for feature in self.features for c in feature.admissible_values)

    def check(self, columns: Iterable[str]) -> None:
        """Raise a ValueError for a column that belongs to no feature."""
        column_names = set(self.column_names)
        unknown = [column for column in columns if column not in column_names]
        if unknown:
            raise ValueError(
                f"discretization must contain every column; {unknown[0]!r} is missing. "
                "Pass discretization=() for conditions on the columns themselves."
            )

    def conditions(
        self, literals: Iterable[Literal], feature_index: Mapping[str, int]
    ) -> tuple[Condition, ...] | None:
        """Convert literals on columns to conditions on features; None if these never hold."""
        required_values = dict(literals)
        conditions: list[Condition] = []
        for feature in self.features:
            requirements = [
                (value, required_values[str(column)])
                for column, value in feature.admissible_values.items()
                if str(column) in required_values
            ]
            if not requirements:
                continue
            index = feature_index[str(feature.name)]
            if all(_region_of_value(value) is None for value in feature.admissible_values.values()):
                feature_conditions = _label_conditions(index, requirements)
            else:
                feature_conditions = _number_conditions(index, requirements)
            if feature_conditions is None:
                return None
            conditions += feature_conditions
        return tuple(conditions)

    def domain(self, names: Sequence[str], X: Any) -> Domain | None:
        """Return the box around rows; None without rows, or if numbers are missing or texts."""
        table = RowTable(X, names)
        by_name = {str(feature.name): feature for feature in self.features}
        matrix, categories = np.zeros((len(table), len(names))), {}
        for j, name in enumerate(names):
            feature = by_name.get(name)
            values = feature.admissible_values.values() if feature is not None else ()
            if values and all(_region_of_value(value) is None for value in values):
                labels = [_constant(value) for value in values]
                row_labels = pd.unique(pd.Series(table.column(j)).dropna()).tolist()
                categories[j] = list(dict.fromkeys([*labels, *sorted(row_labels, key=str)]))
                continue
            try:
                matrix[:, j] = table.numbers(j, slice(None))
            except ValueError:
                return None
        if not len(table) or np.isnan(matrix).any():
            return None
        return Domain.around(matrix, categories=categories)


def _label_conditions(
    feature: int, requirements: Sequence[tuple[Any, bool]]
) -> list[Condition] | None:
    """Return conditions on a feature whose columns represent one label each."""
    included = tuple({_constant(value) for value, is_required in requirements if is_required})
    excluded = tuple({_constant(value) for value, is_required in requirements if not is_required})
    if len(included) > 1 or set(included) & set(excluded):
        return None
    return [OneOf(feature, included)] if included else [OneOf(feature, excluded, negated=True)]


def _number_conditions(
    feature: int, requirements: Sequence[tuple[Any, bool]]
) -> list[Condition] | None:
    """Return conditions on a feature whose columns represent parts of its range."""
    region = _ALL_NUMBERS
    for value, is_required in requirements:
        part = _region_of_value(value)
        if part is None:
            number = float(_constant(value))
            part = [((number, 0), (number, 1))]
        region = _intersection(region, part if is_required else _complement(part))
    if not region:
        return None
    pieces = [_piece(feature, start, stop) for start, stop in region]
    if len(pieces) > 1:
        return [AtLeast(1, tuple(pieces))]
    return [piece for piece in pieces if not piece.is_trivial]


# For standardized data, users of PSyKE pass the map ``{column: (mean, scale)}`` to an extractor.
# Its columns are then ``(x - mean) / scale``.


@dataclass(frozen=True)
class Units:
    """Means and scales of the standardized columns and target of an extractor."""

    columns: Mapping[str, tuple[float, float]]
    target: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, normalization: Mapping[str, tuple[float, float]] | None) -> Units:
        """Read the user's `normalization` of an extractor; its last entry is for the target."""
        scaling = {}
        for name, (mean, scale) in (normalization or {}).items():
            mean = check_number(f"the mean of {name!r}", mean, finite=True)
            scale = check_number(f"the scale of {name!r}", scale, finite=True)
            if scale <= 0:
                raise ValueError(
                    f"The scales in the extractor's normalization must be above 0, got {scale!r} "
                    f"for {name!r}. Rules with this scale cannot be converted to original units."
                )
            scaling[str(name)] = mean, scale
        return cls(scaling, list(scaling.values())[-1] if scaling else (0.0, 1.0))

    def interval(self, name: str, interval: Interval) -> Interval:
        """Return bounds on a column in the original units, up to rounding."""
        return interval_in(interval, interval.feature, lambda value: self.number(name, value))

    def number(self, name: str, value: float) -> float:
        """Return a value of a column in the original units."""
        mean, scale = self.columns.get(name, (0.0, 1.0))
        return value * scale + mean

    def output(self, value: Any) -> Any:
        """Return a predicted number in the original units, computed as in PSyKE."""
        mean, scale = self.target
        return value if self.target == (0.0, 1.0) else value * scale + mean

    def linear(self, intercept: float, terms: Iterable[tuple[str, int, float]]) -> LinearOutput:
        """Return an affine prediction in the original units."""
        mean_out, scale_out = self.target
        pairs = []
        for name, feature, coefficient in terms:
            mean, scale = self.columns.get(name, (0.0, 1.0))
            intercept -= coefficient * mean / scale
            pairs.append((feature, coefficient / scale * scale_out))
        return LinearOutput(intercept * scale_out + mean_out, tuple(pairs))


def kinds(instance: Any) -> set[str]:
    """Return the names of the classes of PSyKE to which an object belongs."""
    return {c.__name__ for c in type(instance).__mro__ if c.__module__.partition(".")[0] == "psyke"}


def box_columns(extractor: Any) -> list[str]:
    """Return the columns of an extractor's training rows."""
    polynomial = getattr(extractor, "trained_poly", None)
    if polynomial is not None:
        return [str(name) for name in polynomial.feature_names_in_]
    cube = extractor._surrounding
    if cube is None:
        cube = extractor._hypercubes[0]
    return [str(name) for name in cube.dimensions]


def read_boxes(extractor: Any, feature_names: Sequence[str] | None) -> Reading:
    """Read an extractor or clusterer whose rules are hypercubes."""
    column_names = box_columns(extractor)
    columns = Columns.of(column_names, feature_names)
    cubes = list(extractor._hypercubes)
    linear = any("RegressionCube" in kinds(cube) for cube in cubes)
    labeled = extractor._output.name == "CLASSIFICATION" and not linear
    task = "classification" if labeled else "regression"
    notes: list[str] = []
    units = _units(extractor, column_names, labeled, notes)
    labels: tuple[Any, ...] = ()
    if labeled:
        # A clusterer has a nearest-neighbor model with the labels instead of a black box.
        labels = known_labels(
            getattr(extractor, "predictor", getattr(extractor, "_predictor", None)),
            [cube.output for cube in cubes],
        )
    ignored = _ignored(extractor, cubes, notes)
    drafts: list[Draft] = []
    n_empty = 0
    for i, cube in enumerate(cubes):
        is_default = cube.is_default and i == len(cubes) - 1
        conditions = () if is_default else _conditions(cube, ignored, columns, units)
        if conditions is None:
            n_empty += 1
            continue
        drafts.append(Draft(conditions, _output(cube, task, labels, columns, units)))
    if n_empty:
        notes.append(
            f"{n_empty} of the {len(cubes)} boxes of PSyKE's {type(extractor).__name__} cannot "
            "contain any row and were dropped; this changes no prediction."
        )
    return Reading(
        columns,
        tuple(drafts),
        task,
        labels,
        disjoint=_disjoint(cubes, drafts, len(columns.names)),
        domain=_domain(extractor, columns, units),
        notes=notes,
    )


def _units(extractor: Any, column_names: Sequence[str], labeled: bool, notes: list[str]) -> Units:
    """Return the original units; add notes if PSyKE misinterprets the normalization."""
    units = Units.of(extractor.normalization)
    if labeled:
        outputs = [cube.output for cube in extractor._hypercubes]
        if units.columns and not all(isinstance(output, str | None) for output in outputs):
            notes.append(
                "PSyKE rescales labels that are not text by the last entry of its normalization, "
                "so its predict returns numbers that are not labels. The rules predict the labels."
            )
        return units
    return check_target(units, column_names, notes)


def check_target(units: Units, column_names: Sequence[str], notes: list[str]) -> Units:
    """Return units that do not rescale the target if the last entry belongs to a feature."""
    last = list(units.columns)[-1:]
    if last and last[0] in column_names:
        notes.append(
            "PSyKE interprets the last entry of a normalization as that of the target, but here it "
            f"belongs to the feature {last[0]!r}, so its predict rescales the output by this "
            "feature. The rules predict the numbers that were learned. Put the target last, as "
            "('target', (0, 1)) if it was not rescaled."
        )
        return Units(units.columns)
    return units


def _ignored(extractor: Any, cubes: Sequence[Any], notes: list[str]) -> set[str]:
    """Return the features whose bounds the rules ignore, as PSyKE's predict does.

    GridEx, GridREx and HEx also ignore bounds on a feature that only some levels of the grid do not
    divide. The rules keep these bounds, and a note states this.
    """
    ignored = {str(name) for name in extractor._dimensions_to_ignore}
    if "GridEx" not in kinds(extractor):
        return ignored
    bounded = sorted(
        name for name in ignored if any(_interval(cube, name, 0) != () for cube in cubes)
    )
    if bounded:
        notes.append(
            f"PSyKE's predict ignores the bounds that its own boxes have on {listed(bounded)}, "
            "because a level of its grid, or an earlier call of extract, did not divide "
            f"{'it' if len(bounded) == 1 else 'them'}. The rules keep these bounds, and predict "
            "with the box that contains the row where PSyKE uses another box."
        )
    return set()


def _interval(cube: Any, name: str, feature: int) -> tuple[Interval, ...] | None:
    """Return the interval of a cube on a feature; () if it has no bounds, None if it is empty."""
    low, high = (float(bound) for bound in cube.dimensions[name])
    open_sides = cube._infinite_dimensions.get(name, ())
    low = -math.inf if "-" in open_sides else low
    high = math.inf if "+" in open_sides else high
    if low == -math.inf and high == math.inf:
        return ()
    is_closed = "ClosedCube" in kinds(cube)
    if low > high or (low == high and not is_closed):
        return None
    return (Interval(feature, low, high, lower_closed=True, upper_closed=is_closed),)


def _conditions(
    cube: Any, ignored: set[str], columns: Columns, units: Units
) -> tuple[Condition, ...] | None:
    """Return the conditions of a cube; None if no row can satisfy them."""
    conditions: list[Condition] = []
    for name in map(str, cube.dimensions):
        if name in ignored:
            continue
        sides = _interval(cube, name, columns.index_of.get(name, 0))
        if sides is None:
            return None
        for side in sides:
            if name not in columns.index_of:
                raise ValueError(
                    f"A box of PSyKE has bounds on {name!r}, a product or power of columns, which "
                    "a RuleSet cannot express. Use max_poly=1."
                )
            conditions.append(units.interval(name, side))
    return tuple(conditions)


def _output(cube: Any, task: str, labels: Sequence[Any], columns: Columns, units: Units) -> Any:
    """Return the output of a cube, computed as in PSyKE's ``predict``."""
    output, names = cube.output, kinds(cube)
    if "RegressionCube" in names:
        return _linear(cube, columns, units)
    if task == "classification":
        # The output of a box is "" or None if none was assigned.
        has_output = output is not None and (output != "" or "" in labels)
        return python_value(output) if has_output else UNSET
    if "ClosedCube" in names and not cube.barycenter.dimensions:
        return UNSET
    return float(units.output(round(output, decimals())))


def _linear(cube: Any, columns: Columns, units: Units) -> Any:
    if not hasattr(cube.output, "coef_"):
        return UNSET
    coefficients = np.ravel(cube.output.coef_).astype(float).tolist()
    terms = []
    for name, coefficient in zip(map(str, cube.dimensions), coefficients, strict=True):
        if name in columns.index_of:
            terms.append((name, columns.index_of[name], coefficient))
        elif coefficient != 0:
            raise ValueError(
                f"PSyKE's rule predicts a multiple of {name!r}, a product or power of columns. "
                "Outputs of rules must be affine in the features. Use max_poly=1 or "
                "output=Target.CONSTANT."
            )
    return units.linear(float(np.ravel(cube.output.intercept_)[0]), terms)


def _disjoint(cubes: Sequence[Any], drafts: Sequence[Draft], n_features: int) -> bool:
    """Return whether no two boxes overlap; cells with rounded bounds may overlap slightly."""
    if len(drafts) < 2:
        return True
    if any("ClosedCube" in kinds(cube) for cube in cubes):
        return False
    lower = np.full((len(drafts), n_features), -np.inf)
    upper = np.full((len(drafts), n_features), np.inf)
    for i, draft in enumerate(drafts):
        for condition in draft.conditions:
            assert isinstance(condition, Interval)
            lower[i, condition.feature] = condition.lower
            upper[i, condition.feature] = condition.upper
    return not len(overlapping_pairs(lower, upper))


def _domain(extractor: Any, columns: Columns, units: Units) -> Domain | None:
    """Return the domain from PSyKE's box around the training rows; None if it is not bounded.

    Features that are not columns of PSyKE are constant 0 in the domain.
    """
    if extractor._surrounding is None:
        return None
    lower, upper = [0.0] * len(columns.names), [0.0] * len(columns.names)
    for name, (low, high) in extractor._surrounding.dimensions.items():
        if str(name) not in columns.index_of:
            continue
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        index = columns.index_of[str(name)]
        lower[index], upper[index] = (float(units.number(str(name), float(v))) for v in (low, high))
    return Domain(tuple(lower), tuple(upper))


def cart_columns(extractor: Any) -> list[str]:
    """Return the columns of PSyKE's CART; for a fair tree, those that can be determined."""
    tree = extractor._cart_predictor.predictor
    if hasattr(tree, "feature_names_in_"):
        return [str(name) for name in tree.feature_names_in_]
    used = dict.fromkeys(node.feature for node, _ in _walk_fair_tree(tree.root))
    return _known_columns(extractor, [str(name) for name in used])


def _known_columns(extractor: Any, used: Sequence[str]) -> list[str]:
    """Return the columns of an extractor that does not store them."""
    for names in (
        [str(n) for n in getattr(extractor.predictor, "feature_names_in_", ())],
        Discretization.of(extractor, None).column_names,
    ):
        if set(used) <= set(names):
            return names
    return sorted(used)


def literal_columns(extractor: Any, name: str) -> list[str]:
    """Return the binary columns from which PSyKE's REAL or Trepan learned."""
    if name == "Trepan":
        return [str(column) for column in extractor._root.samples.columns[:-1]]
    used = {
        str(column)
        for _, rule in extractor._ruleset.flatten()
        for column in (*rule.true_predicates, *rule.false_predicates)
    }
    return _known_columns(extractor, sorted(used))


def _walk_fair_tree(node: Any) -> Iterable[tuple[Any, int]]:
    """Yield the inner nodes of a fair tree with consecutive numbers, parents before children."""
    queue, number = [node], 0
    while queue:
        node = queue.pop(0)
        if not node.is_leaf_node():
            yield node, number
            number += 1
            queue += [node.left, node.right]


def _fair_rules(tree: Any, column_index: dict[str, int], simplify: bool) -> list[Rule]:
    """Return the leaves of a fair tree as rules, from left to right."""
    numbers = {id(node): number for node, number in _walk_fair_tree(tree.root)}
    nodes = {number: node for node, number in _walk_fair_tree(tree.root)}
    leaves: dict[int, list[tuple[int, bool]]] = {}
    outputs: list[Any] = []
    stack: list[tuple[Any, list[tuple[int, bool]]]] = [(tree.root, [])]
    while stack:
        node, path = stack.pop()
        if node.is_leaf_node():
            leaves[len(outputs)] = path
            outputs.append(python_value(node.value))
            continue
        number = numbers[id(node)]
        stack += [(node.right, [*path, (number, False)]), (node.left, [*path, (number, True)])]
    rules = []
    for leaf, path in (shortened_paths(leaves) if simplify else leaves).items():
        conditions = []
        for number, is_left in path:
            feature, cut = column_index[str(nodes[number].feature)], float(nodes[number].threshold)
            conditions.append(
                Interval(feature, upper=cut) if is_left else Interval(feature, lower=cut)
            )
        rules.append(Rule(tuple(conditions), outputs[leaf]))
    return rules


def read_cart(
    extractor: Any, feature_names: Sequence[str] | None, discretization: Discretization
) -> Reading:
    """Read PSyKE's CART from the tree that its ``predict`` uses."""
    predictor, column_names = extractor._cart_predictor.predictor, cart_columns(extractor)
    column_index = {name: j for j, name in enumerate(column_names)}
    simplify = bool(extractor._simplify)
    is_fair = hasattr(predictor, "root")
    if is_fair:
        rules = _fair_rules(predictor, column_index, simplify)
        labeled = type(predictor).__name__ == "FairTreeClassifier"
        outputs = {rule.output for rule in rules}
    else:
        missing = learned_from_missing(predictor)
        tree_rules = tree_to_ruleset(
            predictor, feature_names=column_names, simplify=simplify, missing=missing
        )
        rules = list(tree_rules.rules)
        labeled = hasattr(predictor, "classes_")
        outputs = set(predictor.classes_.tolist()) if labeled else set()
    notes: list[str] = []
    units = Units.of(extractor.normalization)
    labels: tuple[Any, ...] = ()
    if labeled:
        labels = known_labels(extractor.predictor, outputs)
        labels = labels or tuple(sorted(outputs))
    else:
        units = check_target(units, column_names, notes)
        if hasattr(extractor.predictor, "classes_"):
            notes.append(
                "PSyKE's CART treats labels that are not text as numbers: it has fitted a "
                "regression, whose rules predict means of labels. Pass text labels to PSyKE, and "
                "classes={'0': 0, ...} to this function to restore your labels."
            )
    discretization.check(column_names if discretization.features else ())
    columns = Columns.of(discretization.names or column_names, feature_names)
    drafts: list[Draft] = []
    for rule in rules:
        conditions = _cart_conditions(rule, column_names, columns, units, discretization)
        if conditions is not None:
            output = rule.output if labeled else float(units.output(rule.output))
            drafts.append(
                Draft(conditions, output, _cart_statistics(rule, predictor, labels, units))
            )
    notes += _dropped_note(len(rules) - len(drafts), len(rules), "CART")
    return Reading(
        columns,
        tuple(drafts),
        "classification" if labeled else "regression",
        labels,
        disjoint=not simplify,
        notes=notes,
    )


def _cart_conditions(
    rule: Rule,
    column_names: Sequence[str],
    columns: Columns,
    units: Units,
    discretization: Discretization,
) -> tuple[Condition, ...] | None:
    """Return the conditions of a leaf in the original units, or on the discretized features."""
    conditions: list[Condition] = []
    literals: list[Literal] = []
    for interval in rule.intervals:
        name = column_names[interval.feature]
        original = units.interval(name, interval)
        if not discretization.features:
            conditions.append(replace(original, feature=columns.index_of[name]))
            continue
        accepts_zero, accepts_one = original.holds(lambda _: np.array([0.0, 1.0])).tolist()
        if not (accepts_zero or accepts_one):
            return None
        if not (accepts_zero and accepts_one):
            literals.append((name, accepts_one))
    return (
        tuple(conditions) if conditions else discretization.conditions(literals, columns.index_of)
    )


def _cart_statistics(
    rule: Rule, predictor: Any, labels: Sequence[Any], units: Units
) -> RuleStatistics | None:
    """Return the training statistics of a leaf, with counts in the order of the labels."""
    statistics = rule.statistics
    if statistics is None:
        return None
    if statistics.class_counts is not None:
        counts = dict(zip(predictor.classes_.tolist(), statistics.class_counts, strict=True))
        return RuleStatistics(statistics.n_rows, tuple(counts.get(label, 0.0) for label in labels))
    assert statistics.mean is not None
    assert statistics.standard_deviation is not None
    return RuleStatistics(
        statistics.n_rows,
        mean=float(units.output(statistics.mean)),
        standard_deviation=statistics.standard_deviation * units.target[1],
    )


def _dropped_note(n_dropped: int, n_rules: int, name: str) -> list[str]:
    if not n_dropped:
        return []
    return [
        f"{n_dropped} of the {n_rules} rules of PSyKE's {name} cannot hold for any row and were "
        "dropped; this changes no prediction."
    ]


def read_literals(
    extractor: Any, name: str, feature_names: Sequence[str] | None, discretization: Discretization
) -> Reading:
    """Read PSyKE's REAL or Trepan, whose rules are literals on columns of 0 and 1."""
    rules: list[tuple[list[Literal], Any]]
    if name == "REAL":
        rules = [
            (
                [(str(c), True) for c in rule.true_predicates]
                + [(str(c), False) for c in rule.false_predicates],
                python_value(label),
            )
            for label, rule in extractor._ruleset.flatten()
        ]
    else:  # children precede their parent, which covers the remaining rows
        rules = [
            ([(str(c), value == 1) for c, value in node.constraints], python_value(node.dominant))
            for node in extractor._root
        ]
    column_names = literal_columns(extractor, name)
    if discretization.features:
        discretization.check(column for literals, _ in rules for column, _ in literals)
    columns = Columns.of(discretization.names or column_names, feature_names)
    drafts = []
    for literals, label in rules:
        conditions: tuple[Condition, ...] | None
        if discretization.features:
            conditions = discretization.conditions(literals, columns.index_of)
        else:
            conditions = tuple(
                _on_column(name, columns.index_of[c], value) for c, value in literals
            )
        if conditions is not None:
            drafts.append(Draft(conditions, label))
    notes = _dropped_note(len(rules) - len(drafts), len(rules), name)
    labels = known_labels(extractor.predictor, [label for _, label in rules])
    domain = None
    if not discretization.features:
        width = len(columns.names)
        pairs = [(j, (0, 1)) for j in range(width)]
        domain = Domain((0.0,) * width, (2.0,) * width, tuple(pairs))
    return Reading(columns, tuple(drafts), "classification", labels, domain=domain, notes=notes)


def _on_column(name: str, feature: int, is_one: bool) -> OneOf:
    """Return the condition of PSyKE's REAL or Trepan that a column is 1 or not."""
    if name == "REAL":
        return OneOf(feature, (1,), negated=not is_one)
    return OneOf(feature, (int(is_one),))


_FAMILIES = ("HyperCubePredictor", "Cart", "REAL", "Trepan")


def family_of(extractor: Any) -> str:
    """Return the family of an extractor of PSyKE; raise an error if it has no rules."""
    class_names = kinds(extractor)
    family = next((name for name in _FAMILIES if name in class_names), None)
    name = type(extractor).__name__
    if family is None:
        if not class_names:
            raise TypeError(f"extractor must be a fitted extractor of PSyKE, got {extractor!r}.")
        hint = (
            " It searches for parameters; fit an extractor with the parameters that it returns."
            if "Optimizer" in class_names
            else ""
        )
        raise TypeError(
            f"PSyKE's {name} has no rules.{hint} The rules of GridEx, GridREx, ITER, HEx, DiViNE, "
            "COSMiK, GInGER, CReEPy, ExACT, CREAM, CART, REAL and Trepan can be read."
        )
    if family == "HyperCubePredictor":
        is_fitted = extractor._surrounding is not None or bool(extractor._hypercubes)
    elif family == "Cart":
        tree = extractor._cart_predictor.predictor
        is_fitted = hasattr(tree, "tree_") or getattr(tree, "root", None) is not None
    elif family == "REAL":
        is_fitted = bool(extractor._ruleset)
    else:
        is_fitted = hasattr(extractor, "_root")
    if not is_fitted:
        raise NotFittedError(
            f"This {name} of PSyKE has no rules yet: call its "
            f"{'fit' if 'Clustering' in class_names else 'extract'}(dataframe) before reading them."
        )
    return family


def read_psyke(
    extractor: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Mapping[Any, Any] | None = None,
    X: Any = None,
    y_black_box: Any = None,
    domain: Domain | None = None,
    fallback: Fallback | None = None,
    discretization: Iterable[Any] | None = None,
) -> RuleSet:
    """Convert a fitted extractor of PSyKE to a rule set.

    Use it to score, search, simplify and export rules that PSyKE has extracted. The rules predict
    the same as the extractor's ``predict``, except in the cases listed in the notes.

    Parameters
    ----------
    extractor : psyke.Extractor or psyke.Clustering
        GridEx, GridREx, ITER, HEx, DiViNE, COSMiK, GInGER, CReEPy, CART, REAL or Trepan after its
        ``extract``, or ExACT or CREAM after its ``fit``. It is not changed.
    feature_names : sequence of str, optional
        Names of the features of the rules; by default PSyKE's names, in PSyKE's order. If they
        include all of PSyKE's names, they are the columns of your table, in order. Otherwise, they
        are new names for all of PSyKE's columns, in PSyKE's order.
    classes : mapping, optional
        Your label for each of PSyKE's labels, which are texts, such as ``{"0": 0, "1": 1}``. By
        default PSyKE's labels are used.
    X : array-like or DataFrame, optional
        Rows with the features of the rules, usually the training rows, for statistics.
    y_black_box : array-like, optional
        Predictions of the black box for these rows: your labels, or numbers in the original units.
    domain : Domain, optional
        Box for which the rules are intended. By default PSyKE's box, which exceeds the range of the
        training rows by 2e-6. CART and discretized columns have no domain without `X`.
    fallback : Fallback, optional
        Prediction for rows for which PSyKE predicts None. Without it, :meth:`RuleSet.predict`
        raises an error for these rows.
    discretization : iterable of psyke.schema.DiscreteFeature, optional
        Meaning of the columns of 0 and 1 from which REAL, Trepan and CART learned; conditions are
        then on the original features. By default the discretization of the extractor. If it is
        empty, conditions are on the columns of 0 and 1.

    Returns
    -------
    RuleSet
        If no two boxes overlap, the rules are disjoint; otherwise they are an ordered list in
        PSyKE's order. A default rule of PSyKE is the last rule, without conditions.

    Raises
    ------
    TypeError
        If the object has no rules of PSyKE.
    sklearn.exceptions.NotFittedError
        If the extractor is not fitted.
    ValueError
        If a label, name or column does not match, or a rule of GInGER is not affine.

    Warns
    -----
    UserWarning
        If PSyKE's own predictions are wrong; see the notes.

    Notes
    -----
    If the extractor has a `normalization`, the rules are in the original units. Rounding moves
    bounds by a relative 1e-15, so a row on a bound may change sides.

    Constant outputs of boxes are rounded to 6 decimals as in PSyKE's predict, before the
    normalization is inverted. Affine outputs are not rounded and agree within 5e-7 times the scale
    of the target. CART's outputs are not rounded, here and in PSyKE.

    PSyKE's predict does not always follow PSyKE's rules. These cases are treated as follows:

    - GridEx, GridREx and HEx ignore all bounds on a feature that some level of the grid does not
      divide. The rules keep these bounds, with a warning.
    - ITER fills gaps with boxes without a label and predicts an empty text; ExACT and CREAM predict
      None or 0 if they find no split. If `y_black_box` is passed, such rules predict its majority
      or mean on their rows; otherwise they are dropped, with a warning.
    - CART treats labels that are not text as numbers. The rules are those of this regression.
    - If the last entry of a `normalization` belongs to a feature, predict rescales its outputs by
      that feature. It also rescales labels that are not text. The rules do neither, with a warning.
    - CART prints rules with thresholds of 6 decimals and with ``a <= x < b`` instead of ``a < x <=
      b``, and explains predictions by them. The rules are those that predict uses.
    - In PSyKE, a missing value satisfies an interval without a lower or an upper bound, and reaches
      some leaf of a tree. Here it satisfies no condition.
    - In PSyKE, affine rules use the columns of a frame by position, and bounds use them by name.
      Here names are used.
    - In PSyKE, a constant of a discretization represents all numbers within a relative 1e-9. Here,
      it represents only itself.
    """
    family = family_of(extractor)
    meanings = discretization_of(extractor, family, discretization)
    if family == "HyperCubePredictor":
        reading = read_boxes(extractor, feature_names)
    elif family == "Cart":
        reading = read_cart(extractor, feature_names, meanings)
    else:
        reading = read_literals(extractor, family, feature_names, meanings)
    if domain is None and reading.domain is None and X is not None:
        domain = discretization_of(extractor, family, discretization).domain(
            reading.columns.names, X
        )
    ruleset = make_ruleset(
        reading, classes=classes, X=X, y_black_box=y_black_box, domain=domain, fallback=fallback
    )
    for note in reading.notes:
        warn(note)
    return ruleset


def discretization_of(
    extractor: Any, family: str, discretization: Iterable[Any] | None
) -> Discretization:
    """Return the discretization of an extractor; only REAL, Trepan and CART have one."""
    if family == "HyperCubePredictor":
        if discretization is not None:
            raise ValueError(
                f"discretization must be None for {type(extractor).__name__}, whose boxes are on "
                "the columns themselves; it is for REAL, Trepan and CART. Omit it."
            )
        return Discretization(())
    return Discretization.of(extractor, discretization)
