"""One rule in the notation of RuleKit, read from left to right.

Names and values may hold anything, also what looks like a piece of a rule, so a reading that does
not lead to the end of the text is given up for the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from skescore._text import did_you_mean
from skescore.rules._conditions import Condition, Interval, OneOf

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_START = re.compile(r"\s*(?:r?\d+\s*:\s*)?IF(?=\s|$)")
_EQUALS = re.compile(r"\s*@?=\s*")
_BOUNDS = re.compile(rf"([<(])\s*(-inf|{_NUMBER})\s*,\s*(inf|{_NUMBER})\s*([>)])")
_ANYTHING = re.compile(r"Any\b|ANY\b")
_AND = re.compile(r"\s+AND\s+")
_THEN = re.compile(r"\s+THEN\s+")
_CONCLUSION = re.compile(r"(?P<label>.*?)\s*=\s*\{(?P<value>.*)\}(?P<rest>[^}]*)", re.DOTALL)
_RANGE = re.compile(rf"\s*\[\s*({_NUMBER}|NaN)\s*,\s*({_NUMBER}|NaN)\s*\]")
_STATISTICS = re.compile(r"\s*(?:\(([^()\[\]]*)\)|\[([^()\[\]]*)\])")
_BLANK = re.compile(r"\s+")
_PAIR = re.compile(r"\s*([A-Za-z-]+)\s*=\s*(\S+)\s*")

#: Conditions, name and value of the target, whether it has a range, statistics.
_Ending: TypeAlias = tuple[tuple[Condition, ...], str, str, bool, dict[str, float]]


@dataclass(frozen=True)
class Parsed:
    """What one text says."""

    place: str
    conditions: tuple[Condition, ...]
    label: str
    value: str
    #: Whether a range stands behind the value, as only numbers have.
    is_number: bool
    statistics: dict[str, float]

    @property
    def n_rows(self) -> float | None:
        """Training rows for which the rule held, if the text tells."""
        if {"p", "n"} <= self.statistics.keys():
            return self.statistics["p"] + self.statistics["n"]
        return None


class Line:
    """The text of one rule.

    Parameters
    ----------
    text : str
        The text.
    place : str
        Where it stands, for errors.
    names : sequence of str
        Names that the features may have.
    """

    def __init__(self, text: str, place: str, names: Sequence[str]) -> None:
        self.text = text
        self.place = place
        self.names = names
        self.known: dict[int, _Ending | None] = {}
        self.furthest = (0, "'IF'")
        #: Above 0 while a reading is tried that few texts mean; errors do not speak of those.
        self.doubts = 0

    def rule(self) -> Parsed:
        """Read the whole text.

        Raises
        ------
        ValueError
            If it is no rule, with the place of the fault and what was expected there.
        """
        start = _START.match(self.text)
        if start is None:
            self._fail()
        at = start.end()
        try:
            found = self._conclusion_at(_THEN.match(self.text, at)) or self._premise_at(at + 1)
            blank = _BLANK.match(self.text, at)
            if found is None and blank is not None:
                found = self._premise_at(blank.end())
        except RecursionError as error:
            raise ValueError(f"{self.place} has too many conditions to be read.") from error
        if found is None:
            self._fail()
        return Parsed(self.place, *found)

    def _premise_at(self, at: int) -> _Ending | None:
        """What is said from here, where a condition begins; None if that cannot be read."""
        if at not in self.known:
            found = [f for f in (self._from(*way) for way in self._features(at)) if f is not None]
            if len(found) > 1 and any(other != found[0] for other in found):
                raise ValueError(
                    f"{self.place}, column {at + 1}: the names of two features fit "
                    f"{self.text[at : at + 40]!r}. Rename them, or read the model itself instead."
                )
            self.known[at] = found[0] if found else None
        return self.known[at]

    def _features(self, at: int) -> Iterator[tuple[int, int, str]]:
        """The features that may be named here, where their values begin, and how they end."""
        opened = next((sign for sign in ("[[", "[") if self.text.startswith(sign, at)), "")
        known = False
        for sign in dict.fromkeys((opened, "")):
            begin = at + len(sign)
            for feature, name in enumerate(self.names):
                equals = _EQUALS.match(self.text, begin + len(name))
                if self.text.startswith(name, begin) and equals is not None:
                    known = True
                    yield feature, equals.end(), "]" * len(sign)
        if not known:
            self._expect(at, "the name of a feature and ' = '")

    def _from(self, feature: int, at: int, shut: str) -> _Ending | None:
        """What is said from the value of a feature on; the shortest value that leaves sense."""
        before = self.doubts
        try:
            for condition, end in self._values(feature, at):
                if not self.text.startswith(shut, end):
                    self._expect(end, repr(shut))
                    continue
                rest = self._rest(end + len(shut))
                if rest is not None:
                    return (condition + rest[0], *rest[1:])
                self.doubts += 1
        finally:
            self.doubts = before
        return None

    def _rest(self, at: int) -> _Ending | None:
        """What is said from the end of a condition on."""
        joint, close = _AND.match(self.text, at), _THEN.match(self.text, at)
        if joint is None and close is None:
            self._expect(at, "' AND ' or ' THEN '")
        if joint is not None:
            # A name may begin with blanks, so that only the first belongs to the word before.
            first = self.text.index("AND", at) + 4
            return self._premise_at(first) or (
                None if joint.end() == first else self._premise_at(joint.end())
            )
        return self._conclusion_at(close)

    def _values(self, feature: int, at: int) -> Iterator[tuple[tuple[Condition, ...], int]]:
        """The conditions that a value here may make, none for any value, and where they end."""
        bounds, anything = _BOUNDS.match(self.text, at), _ANYTHING.match(self.text, at)
        negated = self.text.startswith("!{", at)
        if bounds is not None:
            yield (self._interval(feature, bounds),), bounds.end()
        elif anything is not None:
            yield (), anything.end()
        elif not negated and not self.text.startswith("{", at):
            self._expect(at, "a value such as '<0.8, 1.75)', '{red}' or '!{red}'")
        else:
            begin = at + 1 + negated
            end = self.text.find("}", begin)
            if end < 0:
                self._expect(begin, "'}'")
            while end >= 0:
                yield (OneOf(feature, (self.text[begin:end],), negated=negated),), end + 1
                end = self.text.find("}", end + 1)

    def _interval(self, feature: int, bounds: re.Match[str]) -> Interval:
        left, lower, upper, right = bounds.groups()
        closed = {"lower_closed": left == "<", "upper_closed": right == ">"}
        try:
            return Interval(feature, float(lower), float(upper), **closed)
        except ValueError as error:
            raise ValueError(
                f"{self.place}, column {bounds.start() + 1}: no number lies in {bounds[0]!r} "
                "(rounding may have closed the gap). Read the model itself instead."
            ) from error

    def _conclusion_at(self, close: re.Match[str] | None) -> _Ending | None:
        """What is said from behind ' THEN ' on."""
        said = None if close is None else self._conclusion(close.end())
        return None if said is None else ((), *said)

    def _conclusion(self, at: int) -> tuple[str, str, bool, dict[str, float]] | None:
        found = _CONCLUSION.fullmatch(self.text, at)
        if found is None:
            self._expect(at, "a conclusion such as 'label = {a}'")
            return None
        at = found.start("rest")
        ranged = _RANGE.match(self.text, at)
        if ranged is not None:
            at = ranged.end()
        statistics: dict[str, float] = {}
        behind = _STATISTICS.match(self.text, at)
        if behind is not None:
            for piece in (behind[1] if behind[1] is not None else behind[2]).split(","):
                pair = _PAIR.fullmatch(piece)
                try:
                    assert pair is not None
                    statistics[pair[1]] = float(pair[2])
                except (AssertionError, ValueError):
                    self._expect(at, "statistics such as '(p=8.0, n=0.0, weight=0.9)'")
                    return None
            at = behind.end()
        if self.text[at:].strip():
            self._expect(at, "the end of the rule, or statistics such as '(p=8.0, weight=0.9)'")
            return None
        return found["label"], found["value"], ranged is not None, statistics

    def _expect(self, at: int, what: str) -> None:
        if at >= self.furthest[0] and not self.doubts:
            self.furthest = (at, what)

    def _fail(self) -> NoReturn:
        at, what = self.furthest
        rest = self.text[at : at + 40]
        came = f"{rest!r}" if rest.strip() else "the end"
        hint = ""
        if what.startswith("the name"):
            name = re.split(r"\s*@?=", self.text[at:].lstrip("["), maxsplit=1)[0]
            hint = f" {did_you_mean(name, self.names)}"
        raise ValueError(f"{self.place}, column {at + 1}: expected {what}, got {came}.{hint}")
