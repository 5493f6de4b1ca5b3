"""Rules from the extractors of PSyKE that a user has fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from sklearn.exceptions import NotFittedError

from skescore._validation import python_value
from skescore.rules._columns import Table
from skescore.rules._domain import Domain, Fallback
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._psyke_boxes import box_columns, kinds, read_boxes
from skescore.rules.importers._psyke_columns import Discretisation
from skescore.rules.importers._psyke_reading import Columns, Reading, make_ruleset, warn
from skescore.rules.importers._psyke_trees import (
    cart_columns,
    literal_columns,
    read_cart,
    read_literals,
)
from skescore.rules.importers._psyke_units import Units

__all__ = ["psyke_predictions", "read_psyke"]

_FAMILIES = ("HyperCubePredictor", "Cart", "REAL", "Trepan")


def _family(extractor: Any) -> str:
    """Which kind of rules an extractor of PSyKE holds, after a look whether it holds any."""
    found = kinds(extractor)
    family = next((name for name in _FAMILIES if name in found), None)
    name = type(extractor).__name__
    if family is None:
        if not found:
            raise TypeError(f"extractor must be a fitted extractor of PSyKE, got {extractor!r}.")
        hint = (
            " It searches for parameters: fit an extractor with those that it found."
            if "Optimizer" in found
            else ""
        )
        raise TypeError(
            f"PSyKE's {name} holds no rules.{hint} Those of GridEx, GridREx, ITER, HEx, DiViNE, "
            "COSMiK, GInGER, CReEPy, ExACT, CREAM, CART, REAL and Trepan can be read."
        )
    if family == "HyperCubePredictor":
        fitted = extractor._surrounding is not None or bool(extractor._hypercubes)
    elif family == "Cart":
        tree = extractor._cart_predictor.predictor
        fitted = hasattr(tree, "tree_") or getattr(tree, "root", None) is not None
    elif family == "REAL":
        fitted = bool(extractor._ruleset)
    else:
        fitted = hasattr(extractor, "_root")
    if not fitted:
        raise NotFittedError(
            f"This {name} of PSyKE has no rules yet: call its "
            f"{'fit' if 'Clustering' in found else 'extract'}(dataframe) before reading them."
        )
    return family


def read_psyke(
    extractor: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Mapping[Any, Any] | None = None,
    X: Any = None,
    answers: Any = None,
    domain: Domain | None = None,
    fallback: Fallback | None = None,
    discretisation: Iterable[Any] | None = None,
) -> RuleSet:
    """Turn an extractor of PSyKE that has been fitted into a rule set.

    Use it to score, search, simplify and export rules that PSyKE has extracted. The rules answer
    like the extractor's ``predict``, except for the faults listed in the notes.

    Parameters
    ----------
    extractor : psyke.Extractor or psyke.Clustering
        GridEx, GridREx, ITER, HEx, DiViNE, COSMiK, GInGER, CReEPy, CART, REAL or Trepan after its
        ``extract``, or ExACT or CREAM after its ``fit``. It is not changed.
    feature_names : sequence of str, optional
        By default PSyKE's names, in its order. If these are all among the given names, the given
        ones say which columns there are and in which order; otherwise they are new names for
        PSyKE's columns, one for each, in its order.
    classes : mapping, optional
        Your label for each of PSyKE's, such as ``{"0": 0, "1": 1}``, since PSyKE wants text. By
        default its labels are yours.
    X : array-like or DataFrame, optional
        Rows as the rules see them, usually the training rows; they give the rules their statistics.
    answers : array-like, optional
        The black box's answers to these rows: your labels, or numbers in your units.
    domain : Domain, optional
        The box in which the rules are meant to answer. By default PSyKE's own, which it draws
        2e-6 around the training rows; CART and discretised columns have none without `X`.
    fallback : Fallback, optional
        What to say where PSyKE answers None. Without it :meth:`RuleSet.predict` raises there.
    discretisation : iterable of psyke.schema.DiscreteFeature, optional
        What the columns of 0 and 1 stand for that REAL, Trepan and CART learnt from: the rules are
        then on the features behind them. By default what the extractor was given. An empty one
        leaves the rules on the columns.

    Returns
    -------
    RuleSet
        Boxes that have no row in common stand by themselves, all others in PSyKE's order. A default
        rule of PSyKE is the last rule, without conditions.

    Raises
    ------
    TypeError
        If the object holds no rules of PSyKE.
    sklearn.exceptions.NotFittedError
        If the extractor has not extracted anything yet.
    ValueError
        If a label, name or column does not fit, or a rule of GInGER is not affine in the features.

    Warns
    -----
    UserWarning
        Where PSyKE's own answers are at fault, as told below.

    Notes
    -----
    If the extractor was given a `normalization`, rules are in the units before it. Bounds are moved
    to the very float at which PSyKE's answer changes, so that no row changes sides.

    Numbers that boxes answer are rounded to 6 decimals as in PSyKE's predict (before a
    normalization is undone). Affine ones cannot be: they agree within 5e-7 (times the target's
    scale). CART answers its numbers unrounded, here as there.

    PSyKE's predict does not always follow PSyKE's rules. What is done about it:

    - GridEx, GridREx and HEx pass over all bounds on a feature that some level of the grid left
      whole. The rules keep these bounds, with a warning.
    - ITER fills gaps with boxes that never get a label, and predicts an empty text; ExACT and CREAM
      that find nothing to split answer None or 0. Such rules answer the majority (or mean) of the
      `answers` there, if these are given, or are left out, with a warning.
    - CART takes labels that are not text for numbers. Its rules are those of that regression, with
      a warning.
    - With a `normalization` whose last entry is a feature's, predict rescales its numbers by that
      feature; it also rescales labels that are not text. The rules do neither, with a warning.
    - CART prints rules with thresholds of 6 decimals and with ``a <= x < b`` for ``a < x <= b``,
      and explains predictions by them. The rules are the tree's that predict uses.
    - A missing value passes an open face in PSyKE, and goes somewhere in its trees. Here it
      satisfies no condition.
    - Affine rules take the columns of a frame by position in PSyKE, but bounds by name. Here names
      count.
    - A constant of a discretisation stands for all numbers within a relative 1e-9 of it in PSyKE,
      for itself here.
    """
    family = _family(extractor)
    reading = _read(extractor, family, feature_names, discretisation)
    if domain is None and reading.domain is None and X is not None:
        domain = _discretisation(extractor, family, discretisation).domain(reading.columns.names, X)
    ruleset = make_ruleset(
        reading, classes=classes, X=X, answers=answers, domain=domain, fallback=fallback
    )
    for note in reading.notes:
        warn(note)
    return ruleset


def _discretisation(extractor: Any, family: str, given: Iterable[Any] | None) -> Discretisation:
    if family == "HyperCubePredictor":
        if given is not None:
            raise ValueError(
                f"discretisation is for REAL, Trepan and CART; the boxes of "
                f"{type(extractor).__name__} are on the columns themselves. Leave it out."
            )
        return Discretisation(())
    return Discretisation.of(extractor, given)


def _read(
    extractor: Any,
    family: str,
    feature_names: Sequence[str] | None,
    discretisation: Iterable[Any] | None,
) -> Reading:
    meanings = _discretisation(extractor, family, discretisation)
    if family == "HyperCubePredictor":
        return read_boxes(extractor, feature_names)
    if family == "Cart":
        return read_cart(extractor, feature_names, meanings)
    return read_literals(extractor, family, feature_names, meanings)


def psyke_predictions(
    extractor: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Mapping[Any, Any] | None = None,
    discretisation: Iterable[Any] | None = None,
) -> pd.DataFrame:
    """Let PSyKE's own ``predict`` answer rows that are in your units.

    Use it to compare a rule set with the extractor that it was read from.

    Parameters
    ----------
    extractor : psyke.Extractor or psyke.Clustering
        See :func:`read_psyke`.
    X : array-like or DataFrame
        Rows as the rules see them: before a `normalization` and before a discretisation.
    feature_names, classes, discretisation
        As for :func:`read_psyke`.

    Returns
    -------
    pandas.DataFrame
        One row per row of X: ``answer`` holds your label or a number, None where PSyKE gives none,
        and ``covered`` tells whether it gave one.

    Raises
    ------
    TypeError, ValueError
        As :func:`read_psyke`.
    """
    family = _family(extractor)
    meanings = _discretisation(extractor, family, discretisation)
    if family == "HyperCubePredictor":
        seen = box_columns(extractor)
    elif family == "Cart":
        seen = cart_columns(extractor)
    else:
        seen = literal_columns(extractor, family)
    columns = Columns.of(meanings.names or seen, feature_names)
    table = Table(X, columns.names)
    if meanings.features:
        frame = meanings.frame(table, columns.names)
    else:
        frame = pd.DataFrame({name: table.column(columns.place[name]) for name in seen})
    if family == "Cart":
        frame = frame[seen]
    units = Units.of(extractor.normalization)
    for name in frame.columns:
        frame[name] = units.scaled(name, frame[name])
    found = [python_value(answer) for answer in _predict(extractor, frame)]
    covered = [answer is not None for answer in found]
    if classes is not None:
        found = [None if answer is None else classes.get(answer, answer) for answer in found]
    result = pd.DataFrame({"answer": pd.Series(found, dtype=object), "covered": covered})
    result["covered"] = result["covered"].astype(bool)
    return result


def _predict(extractor: Any, frame: pd.DataFrame) -> Any:
    """PSyKE's predict, which fails if it has to undo a normalization of no answers at all."""
    if not len(frame):
        return []
    try:
        with warnings.catch_warnings():
            # PSyKE asks copies of its linear models, which have forgotten the names.
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)
            return extractor.predict(frame)
    except IndexError:
        raw = list(extractor._predict(frame))
        if any(answer is not None for answer in raw):
            raise
        return raw
