"""What has been read of a PSyKE extractor, on its way to a rule set."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skescore._text import listed
from skescore._validation import check_label, label_order, python_value
from skescore.rules._columns import Table
from skescore.rules._conditions import Condition
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet


class _Unset:
    """The output of a box that PSyKE never gave one."""

    def __repr__(self) -> str:
        return "no output"


UNSET = _Unset()


@dataclass(frozen=True)
class Draft:
    """A rule whose label is still PSyKE's.

    Parameters
    ----------
    conditions : tuple of conditions
        The premise.
    output : object
        PSyKE's label, a number, an affine function, or UNSET.
    statistics : RuleStatistics, optional
        Class counts in the order of :attr:`Reading.labels`.
    """

    conditions: tuple[Condition, ...]
    output: Any
    statistics: RuleStatistics | None = None


@dataclass(frozen=True)
class Columns:
    """The features of the rules, and where among them those are that PSyKE knows.

    Parameters
    ----------
    names : tuple of str
        Names of the rules' features.
    place : mapping of str to int
        Index of each of PSyKE's features.
    """

    names: tuple[str, ...]
    place: Mapping[str, int]

    @classmethod
    def of(cls, seen: Sequence[str], feature_names: Sequence[str] | None) -> Columns:
        """Put names to what PSyKE saw.

        Parameters
        ----------
        seen : sequence of str
            PSyKE's names, in order.
        feature_names : sequence of str, optional
            If PSyKE's names are all among them, they say which columns there are, in which order.
            Otherwise they are new names, in PSyKE's order.
        """
        if feature_names is None:
            return cls(tuple(seen), {name: j for j, name in enumerate(seen)})
        if isinstance(feature_names, str):
            raise TypeError(f"feature_names must be a sequence of names, got {feature_names!r}.")
        names = tuple(map(str, feature_names))
        if set(seen) <= set(names):
            return cls(names, {name: names.index(name) for name in seen})
        if len(names) != len(seen):
            raise ValueError(
                f"feature_names must name the {len(seen)} features that PSyKE saw "
                f"({listed(seen)}) or hold these names, got {listed(names)}."
            )
        return cls(names, {name: j for j, name in enumerate(seen)})


@dataclass(frozen=True)
class Reading:
    """Everything that was read.

    Parameters
    ----------
    columns : Columns
        The features.
    drafts : tuple of Draft
        The rules, in order.
    task : str
        ``"classification"`` or ``"regression"``.
    labels : tuple
        Labels that the black box is known to give, in its order.
    disjoint : bool, default=False
        Whether no two rules hold together; otherwise the first that holds answers.
    domain : Domain, optional
        Box of the training rows.
    notes : list of str
        What was repaired, for the user to be told.
    """

    columns: Columns
    drafts: tuple[Draft, ...]
    task: str
    labels: tuple[Any, ...] = ()
    disjoint: bool = False
    domain: Domain | None = None
    notes: list[str] = field(default_factory=list)


def warn(text: str) -> None:
    """Tell the caller's caller of a repair.

    Importing PSyKE puts a filter in front that ignores all warnings of the process. What was
    repaired must not go unseen, so this one is passed over.
    """
    with warnings.catch_warnings():
        if warnings.filters and warnings.filters[0] == ("ignore", None, Warning, None, 0):
            warnings.simplefilter("always", UserWarning)
        warnings.warn(text, UserWarning, stacklevel=3)


def known_labels(black_box: Any, seen: Iterable[Any]) -> tuple[Any, ...]:
    """The classes of a black box, if it names them and has given the labels seen; else none."""
    try:
        array = np.asarray(getattr(black_box, "classes_", ()))
    except ValueError:  # a list of arrays of different length
        return ()
    labels = tuple(array.tolist()) if array.ndim == 1 else ()
    given = {python_value(label) for label in seen} - {None, ""}
    return labels if given <= set(labels) else ()


def decimals() -> int:
    """Decimals to which PSyKE rounds the numbers that it predicts."""
    utils = sys.modules.get("psyke.utils")
    return 6 if utils is None else int(utils.get_int_precision())


class Labels:
    """From PSyKE's labels to the rule set's.

    Parameters
    ----------
    reading : Reading
        A classification.
    classes : mapping, optional
        PSyKE's labels and what they stand for.
    further : iterable
        Labels of the rule set that also occur.
    """

    def __init__(
        self, reading: Reading, classes: Mapping[Any, Any] | None, further: Sequence[Any]
    ) -> None:
        outputs = [python_value(d.output) for d in reading.drafts if d.output is not UNSET]
        if classes is not None:
            if not isinstance(classes, Mapping):
                raise TypeError(
                    "classes must map PSyKE's labels to yours, such as {'0': 0, '1': 1}, or be "
                    f"None, got {classes!r}."
                )
            self.map = {python_value(k): check_label("classes", v) for k, v in classes.items()}
            lacking = [o for o in [*outputs, *reading.labels] if o not in self.map]
            if lacking:
                raise ValueError(
                    f"classes must have an entry for every label that PSyKE knows; {lacking[0]!r} "
                    f"is missing in {dict(classes)!r}."
                )
            if len(set(self.map.values())) < len(self.map):
                raise ValueError(
                    f"classes must map different labels to different ones, got {dict(classes)!r}."
                )
            self.classes = tuple(self.map.values())
            return
        self.map = {check_label("PSyKE's label", o): o for o in [*reading.labels, *outputs]}
        known = tuple(reading.labels)
        if not {*outputs, *further} <= set(known):
            known = tuple(sorted({*known, *outputs, *further}, key=label_order))
        self.classes = known

    def statistics(
        self, statistics: RuleStatistics | None, labels: tuple[Any, ...]
    ) -> RuleStatistics | None:
        """Counts in the order of the rule set's classes."""
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
    answers: Any,
    domain: Domain | None,
    fallback: Fallback | None,
) -> RuleSet:
    """Turn a reading into a rule set; see :func:`skescore.rules.importers.read_psyke`."""
    if answers is not None:
        if X is None:
            raise ValueError("answers belong to rows: pass X as well.")
        flat = answers.ravel() if isinstance(answers, np.ndarray) else answers
        answers = [python_value(answer) for answer in flat]
    settings: dict[str, Any] = {
        "task": reading.task,
        "domain": reading.domain if domain is None else domain,
        "ordered": not reading.disjoint,
        "disjoint": reading.disjoint,
        "fallback": fallback,
    }
    drafts, names = list(reading.drafts), reading.columns.names
    if reading.task == "regression" and classes is not None:
        raise ValueError(
            f"classes belong to classification, but these rules of PSyKE answer numbers, got "
            f"{classes!r}. Pass classes=None."
        )
    if reading.task == "classification":
        further = list(answers or ())
        if fallback is not None:
            further.append(fallback.output)
        labels = Labels(reading, classes, further)
        settings["classes"] = labels.classes
        drafts = [
            Draft(
                d.conditions,
                d.output if d.output is UNSET else labels.map[python_value(d.output)],
                labels.statistics(d.statistics, reading.labels),
            )
            for d in drafts
        ]
    table = None if X is None else Table(X, names)
    drafts = _with_outputs(drafts, table, answers, names, settings, reading.notes)
    rules = [Rule(d.conditions, d.output, d.statistics) for d in drafts]
    ruleset = RuleSet(rules, names, **settings)
    if table is None:
        return ruleset
    found = _statistics(ruleset.assign(table), len(rules), answers, settings.get("classes"))
    return ruleset.replace(
        rules=[replace(rule, statistics=s) for rule, s in zip(rules, found, strict=True)]
    )


def _with_outputs(
    drafts: list[Draft],
    table: Table | None,
    answers: list[Any] | None,
    names: Sequence[str],
    settings: dict[str, Any],
    notes: list[str],
) -> list[Draft]:
    """Give the rules without an output that of their rows; leave out those that have none."""
    unset = [i for i, draft in enumerate(drafts) if draft.output is UNSET]
    if not unset:
        return drafts
    repaired, classes = 0, settings.get("classes")
    if table is not None and answers:
        any_output: Any = 0.0 if classes is None else classes[0]
        rules = [Rule(d.conditions, any_output) for d in drafts]
        index = RuleSet(rules, names, **settings).assign(table)
        seen = _statistics(index, len(rules), answers, classes)
        for i in unset:
            counts = seen[i].class_counts
            output = seen[i].mean
            if classes is not None and counts is not None and any(counts):
                output = classes[int(np.argmax(counts))]
            if output is not None:
                drafts[i] = replace(drafts[i], output=output)
                repaired += 1
    kept = [draft for draft in drafts if draft.output is not UNSET]
    done = []
    if repaired:
        done.append(f"{repaired} now answer{'s' * (repaired == 1)} what their rows of X got")
    if len(kept) < len(drafts):
        n_left = len(drafts) - len(kept)
        done.append(f"{n_left} {'was' if n_left == 1 else 'were'} left out")
    if answers is None:
        done[-1] += "; pass X and answers, rows and the black box's answers, to give them one"
    notes.append(
        f"PSyKE never gave an output to {len(unset)} of its {len(drafts)} rules, although its "
        f"predict uses them. Of these, {' and '.join(done)}."
    )
    return kept


def _statistics(
    index: np.ndarray, n_rules: int, answers: list[Any] | None, classes: Sequence[Any] | None
) -> list[RuleStatistics]:
    """What was seen where each rule answers."""
    if answers is None:
        n_rows = np.bincount(index[index >= 0], minlength=n_rules)
        return [RuleStatistics(n) for n in n_rows.tolist()]
    if len(answers) != len(index):
        raise ValueError(
            f"answers must have one entry per row of X ({len(index)}), got {len(answers)}."
        )
    members = [np.flatnonzero(index == i) for i in range(n_rules)]
    if classes is not None:
        code = {label: k for k, label in enumerate(classes)}
        strange = [a for a in answers if a not in code]
        if strange:
            raise ValueError(
                f"answers must be among the classes {list(classes)}, got {strange[0]!r}."
            )
        codes = np.array([code[a] for a in answers], dtype=np.intp)
        counts = [np.bincount(codes[rows], minlength=len(classes)) for rows in members]
        return [RuleStatistics(int(c.sum()), tuple(c.tolist())) for c in counts]
    values = np.asarray(answers, dtype=float)
    return [
        RuleStatistics(len(rows), mean=float(values[rows].mean()), spread=float(values[rows].std()))
        if len(rows)
        else RuleStatistics(0)
        for rows in members
    ]
