"""REAL's course: from one row without a rule to the next, with questions along the way.

How precise rules must be decides the course; how many are wanted, and for how many rows, only
where it ends. So candidates of a search that differ in the latter go the same way, and each begins
where the longest course so far has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skescore.extractors._discretiser import Discretiser
from skescore.extractors._extraction import Extraction
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.real._codes import CodedFeature, Evidence, variants
from skescore.extractors.real._literals import Grower, Premise, inside


@dataclass(frozen=True, eq=False)
class CodedRows:
    """The training rows in codes.

    Parameters
    ----------
    discretiser : Discretiser or None
        Cuts the numeric features; None if there are none.
    features : tuple of CodedFeature
        How each feature is coded.
    rows : Evidence
        The distinct rows.
    first : ndarray of int
        Index of the first row of each.
    purity : ndarray of float
        Share of each one's class among the rows with its codes.
    """

    discretiser: Discretiser | None
    features: tuple[CodedFeature, ...]
    rows: Evidence
    first: np.ndarray
    purity: np.ndarray


@dataclass(frozen=True, eq=False)
class Turn:
    """What came of one row: the weight that waited before, points asked about, and the rule."""

    waited: float
    n_asked: int
    premise: tuple[np.ndarray, ...] | None
    output: int


@dataclass(frozen=True, eq=False)
class Course:
    """The rows looked at so far, those that wait, and what the black box was asked."""

    turns: tuple[Turn, ...]
    waiting: np.ndarray
    asked: Evidence


class RuleMaker:
    """Makes rules that cover the rows, most typical rows first.

    Parameters
    ----------
    extraction : Extraction
        The rows, and the black box to ask.
    coded : CodedRows
        The rows in codes.
    least : float
        Least share of either kind of evidence that must agree with a rule.
    n_queries : int
        Most variants of a row to ask about.
    sharing : Sharing or None
        Where others that have the same coded rows find what was done here.
    """

    def __init__(
        self,
        extraction: Extraction,
        coded: CodedRows,
        least: float,
        n_queries: int,
        sharing: Sharing | None,
    ) -> None:
        self._extraction, self._coded, self._sharing = extraction, coded, sharing
        self._least, self._n_queries = least, n_queries
        self._grower = Grower(coded.features, coded.rows, least)

    def make(self, max_rules: int | None, tolerance: float) -> tuple[list[Premise], np.ndarray]:
        """Make rules until few rows are left.

        Parameters
        ----------
        max_rules : int or None
            Most rules.
        tolerance : float
            Share of the rows that may be left without one.

        Returns
        -------
        premises : list of premises
            The rules.
        outputs : ndarray of int, shape (n_rules,)
            Their classes.
        """
        weights, oracle = self._coded.rows.weights, self._extraction.oracle
        enough = tolerance * weights.sum()
        key = "REAL's course", self._least, self._n_queries
        course = once(self._sharing, key, self._start)
        known = len(course.turns)
        premises: list[Premise] = []
        outputs: list[int] = []
        number = 0
        while max_rules is None or len(premises) < max_rules:
            is_new = number == len(course.turns)
            waits = weights[course.waiting].sum() if is_new else course.turns[number].waited
            if not waits > enough:
                break
            if is_new:
                course = self._turn(course, float(waits))
            elif course.turns[number].n_asked:
                oracle.count_again(course.turns[number].n_asked)
            turn = course.turns[number]
            if turn.premise is not None:
                premises.append(list(turn.premise))
                outputs.append(turn.output)
            number += 1
        if self._sharing is not None and len(course.turns) > known:
            self._sharing.put(key, course)
        return premises, np.array(outputs, dtype=np.intp)

    def _start(self) -> Course:
        coded = self._coded
        waiting = np.argsort(-_typicality(coded.features, coded.rows), kind="stable")
        waiting = waiting[coded.purity[waiting] >= self._least * (1 - 1e-12)]
        empty = np.empty((len(coded.features), 0), dtype=coded.rows.codes.dtype)
        return Course((), waiting, Evidence(empty, np.empty(0, dtype=np.intp), np.empty(0)))

    def _turn(self, course: Course, waited: float) -> Course:
        """Look at the row that comes next."""
        rows, asked = self._coded.rows, course.asked
        seed, waiting = course.waiting[0], course.waiting[1:]
        codes, output = rows.codes[:, seed], int(rows.answers[seed])
        turn = Turn(waited, 0, None, output)
        # Points asked about for other rows may contradict even the full conjunction.
        if self._grower.allows(codes, output, asked):
            new = self._ask(codes, int(self._coded.first[seed]))
            asked = asked.joined(new) if len(new) else asked
            premise = self._grower.grow(codes, output, asked)
            turn = replace(turn, n_asked=len(new))
            if premise is not None:  # else the black box answers the same row differently
                turn = replace(turn, premise=tuple(premise))
                held = np.zeros(len(rows), dtype=bool)
                held[inside(rows, premise)] = True
                waiting = waiting[~(held[waiting] & (rows.answers[waiting] == output))]
        return Course((*course.turns, turn), waiting, asked)

    def _ask(self, codes: np.ndarray, row: int) -> Evidence:
        """Ask about variants of a row."""
        key = "REAL's variants", self._n_queries, row
        known: Evidence | None = None if self._sharing is None else self._sharing.get(key)
        if known is not None:
            if len(known):
                self._extraction.oracle.count_again(len(known))
            return known
        features, X = self._coded.features, self._extraction.X
        changed, differs = variants(codes, features, self._n_queries)
        points = np.repeat(X[row][None, :], len(changed), axis=0)
        for j, feature in enumerate(features):
            at = differs[:, j]
            points[at, j] = feature.examples[changed[at, j]]
        answers = np.empty(0, dtype=np.intp)
        if len(points):
            answers = self._extraction.ask(points, remember=False)
        new = Evidence(changed.T.astype(codes.dtype), answers, np.ones(len(answers)))
        if self._sharing is not None:
            self._sharing.put(key, new)
        return new


def _typicality(features: tuple[CodedFeature, ...], rows: Evidence) -> np.ndarray:
    """How much the values of each distinct row are those of its class."""
    result = np.zeros(len(rows))
    for codes, feature in zip(rows.codes, features, strict=True):
        n_codes = len(feature.counts)
        cell = rows.answers * n_codes + codes
        result += np.log(np.bincount(cell, weights=rows.weights)[cell])
    return np.round(result, 9)  # so that rounding does not put one of two equal rows first
