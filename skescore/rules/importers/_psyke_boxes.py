"""Boxes of PSyKE's hypercube extractors and clusterers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from skescore._text import listed
from skescore._validation import python_value
from skescore.rules._conditions import Condition, Interval
from skescore.rules._domain import Domain
from skescore.rules._geometry import overlapping_pairs
from skescore.rules.importers._psyke_reading import (
    UNSET,
    Columns,
    Draft,
    Reading,
    decimals,
    known_labels,
)
from skescore.rules.importers._psyke_units import Units


def kinds(thing: Any) -> set[str]:
    """Names of the classes of PSyKE that something is an instance of."""
    return {c.__name__ for c in type(thing).__mro__ if c.__module__.partition(".")[0] == "psyke"}


def box_columns(extractor: Any) -> list[str]:
    """The columns that the extractor saw."""
    polynomial = getattr(extractor, "trained_poly", None)
    if polynomial is not None:
        return [str(name) for name in polynomial.feature_names_in_]
    cube = extractor._surrounding
    if cube is None:
        cube = extractor._hypercubes[0]
    return [str(name) for name in cube.dimensions]


def read_boxes(extractor: Any, feature_names: Sequence[str] | None) -> Reading:
    """Read an extractor or clusterer whose rules are hypercubes."""
    seen = box_columns(extractor)
    columns = Columns.of(seen, feature_names)
    cubes = list(extractor._hypercubes)
    linear = any("RegressionCube" in kinds(cube) for cube in cubes)
    labelled = extractor._output.name == "CLASSIFICATION" and not linear
    task = "classification" if labelled else "regression"
    notes: list[str] = []
    units = _units(extractor, seen, labelled, notes)
    labels: tuple[Any, ...] = ()
    if labelled:
        # A clusterer has no black box, but a nearest neighbour that knows the labels.
        labels = known_labels(
            getattr(extractor, "predictor", getattr(extractor, "_predictor", None)),
            [cube.output for cube in cubes],
        )
    ignored = _ignored(extractor, cubes, notes)
    drafts: list[Draft] = []
    impossible = 0
    for i, cube in enumerate(cubes):
        default = cube.is_default and i == len(cubes) - 1
        conditions = () if default else _conditions(cube, ignored, columns, units)
        if conditions is None:
            impossible += 1
            continue
        drafts.append(Draft(conditions, _output(cube, task, labels, columns, units)))
    if impossible:
        notes.append(
            f"{impossible} of the {len(cubes)} boxes of PSyKE's {type(extractor).__name__} can "
            "hold no row at all and were left out; the answers are the same without them."
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


def _units(extractor: Any, seen: Sequence[str], labelled: bool, notes: list[str]) -> Units:
    """What the user's normalization did, and where PSyKE reads it wrongly."""
    units = Units.of(extractor.normalization)
    if labelled:
        outputs = [cube.output for cube in extractor._hypercubes]
        if units.columns and not all(isinstance(output, str | None) for output in outputs):
            notes.append(
                "PSyKE rescales labels that are not text by the last entry of its normalization, "
                "so that its predict answers numbers that are no labels. The rules give the labels."
            )
        return units
    return checked_target(units, seen, notes)


def checked_target(units: Units, seen: Sequence[str], notes: list[str]) -> Units:
    """Leave the target alone if the last entry of a normalization is a feature's."""
    last = list(units.columns)[-1:]
    if last and last[0] in seen:
        notes.append(
            "PSyKE takes the last entry of a normalization for the target's, but here it is that "
            f"of the feature {last[0]!r}, by which its predict rescales what it answers. The rules "
            "give the numbers that were learnt. Put the target last, as ('target', (0, 1)) if it "
            "was not rescaled."
        )
        return Units(units.columns)
    return units


def _ignored(extractor: Any, cubes: Sequence[Any], notes: list[str]) -> set[str]:
    """Features that no rule looks at, whatever the bounds of its box.

    GridEx and its kin note every feature that some level leaves whole and never forget it, so that
    their predict also drops the bounds that other levels have put on it.
    """
    ignored = {str(name) for name in extractor._dimensions_to_ignore}
    if "GridEx" not in kinds(extractor):
        return ignored
    bounded = sorted(
        name for name in ignored if any(_interval(cube, name, 0) != () for cube in cubes)
    )
    if bounded:
        notes.append(
            f"PSyKE's predict passes over the bounds that its own boxes have on {listed(bounded)}, "
            "because a level of its grid, or an earlier extract, left "
            f"{'it' if len(bounded) == 1 else 'them'} whole. The rules keep these bounds, and "
            "answer by the right box where PSyKE takes another."
        )
    return set()


def _interval(cube: Any, name: str, feature: int) -> tuple[Interval, ...] | None:
    """The sides of a cube along one feature: none if free, None if no number is between them."""
    low, high = (float(bound) for bound in cube.dimensions[name])
    open_sides = cube._infinite_dimensions.get(name, ())
    low = -math.inf if "-" in open_sides else low
    high = math.inf if "+" in open_sides else high
    if low == -math.inf and high == math.inf:
        return ()
    closed = "ClosedCube" in kinds(cube)
    if low > high or (low == high and not closed):
        return None
    return (Interval(feature, low, high, lower_closed=True, upper_closed=closed),)


def _conditions(
    cube: Any, ignored: set[str], columns: Columns, units: Units
) -> tuple[Condition, ...] | None:
    """The premise of a cube; None if it can never hold."""
    conditions: list[Condition] = []
    for name in map(str, cube.dimensions):
        if name in ignored:
            continue
        sides = _interval(cube, name, columns.place.get(name, 0))
        if sides is None:
            return None
        for side in sides:
            if name not in columns.place:
                raise ValueError(
                    f"A box of PSyKE has bounds on {name!r}, which is no column but made of some: "
                    "such a rule cannot be held. Use max_poly=1."
                )
            interval = units.interval(name, side)
            if interval is None:
                return None
            conditions.append(interval)
    return tuple(conditions)


def _output(cube: Any, task: str, labels: Sequence[Any], columns: Columns, units: Units) -> Any:
    """What a cube answers, as PSyKE's predict gives it."""
    output, names = cube.output, kinds(cube)
    if "RegressionCube" in names:
        return _linear(cube, columns, units)
    if task == "classification":
        # A box that was never updated holds "" or None.
        known = output is not None and (output != "" or "" in labels)
        return python_value(output) if known else UNSET
    if "ClosedCube" in names and not cube.barycenter.dimensions:
        return UNSET
    return float(units.answer(round(output, decimals())))


def _linear(cube: Any, columns: Columns, units: Units) -> Any:
    if not hasattr(cube.output, "coef_"):
        return UNSET
    coefficients = np.ravel(cube.output.coef_).astype(float).tolist()
    terms = []
    for name, coefficient in zip(map(str, cube.dimensions), coefficients, strict=True):
        if name in columns.place:
            terms.append((name, columns.place[name], coefficient))
        elif coefficient != 0:
            raise ValueError(
                f"PSyKE's rule answers with a multiple of {name!r}, which is no column but made of "
                "some: a rule's output is affine in the features. Use max_poly=1, or "
                "output=Target.CONSTANT."
            )
    return units.linear(float(np.ravel(cube.output.intercept_)[0]), terms)


def _disjoint(cubes: Sequence[Any], drafts: Sequence[Draft], n_features: int) -> bool:
    """Whether no two boxes have a row in common; rounded cells may overlap by a hair."""
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
    """PSyKE's box of the training rows; a column that it did not see counts as constant."""
    if extractor._surrounding is None:
        return None
    lower, upper = [0.0] * len(columns.names), [0.0] * len(columns.names)
    for name, (low, high) in extractor._surrounding.dimensions.items():
        if str(name) not in columns.place:
            continue
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        at = columns.place[str(name)]
        lower[at], upper[at] = (float(units.number(str(name), float(v))) for v in (low, high))
    return Domain(tuple(lower), tuple(upper))
