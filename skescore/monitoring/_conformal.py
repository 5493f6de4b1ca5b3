"""Calibrated rules: sets of labels and intervals with a guaranteed coverage for each rule."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skescore._io import json_of
from skescore._validation import check_number, one_dimension, without_index
from skescore.metrics import check_label_types, has_default, predict_all_rows
from skescore.rules import Fallback, RowTable, Rule, RuleSet, as_ruleset
from skescore.rules.exporters._sql import find_dialect, translate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CalibratedRules"]

FORMAT, VERSION = "skescore calibrated rules", 1
_SEPARATOR = " | "


def conformal_rank(n_rows: int, level: float) -> int:
    """Return the rank, from 1, of the score that bounds a new one with probability `level`.

    A rank above `n_rows` means that no score of the sample is a bound.

    Examples
    --------
    >>> conformal_rank(99, 0.9), conformal_rank(8, 0.9)
    (90, 9)
    """
    return math.ceil((n_rows + 1) * level - 1e-9)


@dataclass(frozen=True)
class CalibratedRules:
    """Rules that predict sets of labels or intervals, with a guaranteed coverage for each rule.

    Attributes
    ----------
    ruleset : RuleSet
        Rules, one of which predicts each row.
    level : float
        Minimum probability that the set or interval contains the label.
    n_rows : tuple of int
        Number of calibration rows of each rule, and of uncovered rows.
    sets : tuple of tuple, optional
        Classification: labels that each rule predicts; the last set is for uncovered rows.
    half_widths : tuple of float, optional
        Regression: half the width of the interval around the prediction of each rule; infinite if
        there are too few calibration rows.

    Notes
    -----
    This is Mondrian split conformal prediction [1]_, [2]_: the calibration rows of each rule are a
    separate group. If the calibration rows and a new row are exchangeable, the set of a rule
    contains the label of a new row of this rule with a probability of at least `level`, on average
    over calibration samples. This requires at least ``level / (1 - level)`` rows of the rule, 9 for
    a level of 90 %; a rule with fewer rows predicts all labels, or an infinite interval. The score
    of a label is its rank among the classes: the predicted class first, then by frequency in the
    training statistics of the rule. A rule that predicts several labels abstains.

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer,
       2005, section 4.5.
    .. [2] A. N. Angelopoulos and S. Bates, "Conformal prediction: a gentle introduction",
       Foundations and Trends in Machine Learning 16(4), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.monitoring import CalibratedRules
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=0.5)], "no"), Rule([], "yes")], ["x"],
    ...     task="classification", ordered=True,
    ... )
    >>> x = np.linspace(0, 1, 200)[:, np.newaxis]
    >>> y = np.where(x[:, 0] > 0.4, "yes", "no")
    >>> calibrated = CalibratedRules.fit(rules, x, y, level=0.9)
    >>> print(calibrated)
    1. IF x ≤ 0.5 THEN no or yes (both possible)   [100 calibration rows]
    2. ELSE yes   [100 calibration rows]
    """

    ruleset: RuleSet
    level: float
    n_rows: tuple[int, ...]
    sets: tuple[tuple[Any, ...], ...] | None = None
    half_widths: tuple[float, ...] | None = None

    @classmethod
    def fit(cls, rules: Any, X: Any, y: Any, *, level: float = 0.9) -> CalibratedRules:
        """Calibrate rules on rows to which neither the rules nor the model were fitted.

        Parameters
        ----------
        rules : RuleSet or estimator
            Rules, one of which predicts each row.
        X : array-like or DataFrame of shape (n_rows, n_features)
            Calibration rows.
        y : array-like of shape (n_rows,)
            Labels of the rows.
        level : float, default=0.9
            Minimum probability that the set or interval contains the label.

        Returns
        -------
        CalibratedRules

        Raises
        ------
        ValueError
            If the rules vote, a label is missing or has another type, or so many labels of a rule's
            rows are no classes of the rules that no set of classes reaches the level.
        """
        ruleset = as_ruleset(rules)
        ruleset.check_one_rule_per_row("Calibration")
        level = check_number("level", level, above=0, below=1)
        table = RowTable.of(X, ruleset.feature_names)
        labels = _checked_labels(ruleset, y, len(table))
        rule = _groups(ruleset, table)
        n_rows = np.bincount(rule, minlength=len(ruleset) + 1)
        if ruleset.classes is None:
            half_widths = _needed_half_widths(predict_all_rows(ruleset, table), labels)
            widths = tuple(
                _bound(half_widths[rule == k], level)
                if k < len(ruleset) or has_default(ruleset)
                else math.inf
                for k in range(len(ruleset) + 1)
            )
            return cls(ruleset, level, tuple(n_rows.tolist()), None, widths)
        sets = []
        for k in range(len(ruleset) + 1):
            order = _order_classes(ruleset, k)
            ranks = np.full(len(ruleset.classes), len(order))
            ranks[order] = np.arange(len(order))
            codes = labels[rule == k]
            # A class that the rules do not know is in no set.
            scores = np.where(codes >= 0, ranks[codes], len(order))
            largest = _bound(scores.astype(float), level)
            if largest >= len(order) and (codes < 0).any():
                n_unknown, name = int((codes < 0).sum()), f"rule {k + 1}"
                raise ValueError(
                    f"y must contain classes of the rules, got other labels in {n_unknown} of "
                    f"{len(codes)} rows of {name if k < len(ruleset) else 'no rule'}, so no set of "
                    f"classes contains the label with a probability of {level:g}. Correct or "
                    "remove these rows, lower the level, or extract the rules again from rows with "
                    f"these labels. The classes are {list(ruleset.classes)}."
                )
            size = len(order) if math.isinf(largest) else min(int(largest) + 1, len(order))
            sets.append(tuple(ruleset.classes[code] for code in order[:size]))
        return cls(ruleset, level, tuple(n_rows.tolist()), tuple(sets))

    @property
    def abstains(self) -> tuple[bool, ...]:
        """Whether each rule predicts several labels, or an infinite interval."""
        if self.sets is not None:
            return tuple(len(labels) > 1 for labels in self.sets)
        assert self.half_widths is not None
        return tuple(math.isinf(width) for width in self.half_widths)

    def predict_set(self, X: Any) -> NDArray[Any]:
        """Return the possible labels of each row, as an array of tuples.

        Raises
        ------
        AttributeError
            If the rules are for regression.
        """
        if self.sets is None:
            raise AttributeError(
                "predict_set is for classification; a regression has predict_interval."
            )
        sets = np.empty(len(self.sets), dtype=object)
        sets[:] = self.sets
        result: NDArray[Any] = sets[_groups(self.ruleset, X)]
        return result

    def predict_interval(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper bounds of the intervals; they may be infinite.

        Raises
        ------
        AttributeError
            If the rules are for classification.
        """
        if self.half_widths is None:
            raise AttributeError(
                "predict_interval is for regression; a classification has predict_set."
            )
        table = RowTable.of(X, self.ruleset.feature_names)
        widths = np.array(self.half_widths)[_groups(self.ruleset, table)]
        predicted = predict_all_rows(self.ruleset, table)
        predicted = np.where(np.isinf(widths), 0.0, predicted)
        return predicted - widths, predicted + widths

    def coverage(self, X: Any, y: Any) -> pd.DataFrame:
        """Return the coverage of each rule on rows with labels, with its standard error.

        Returns
        -------
        DataFrame
            Per rule, and for uncovered rows: calibration rows, rows, share of rows whose label is
            covered, its standard error for a coverage of `level`, and size of the set or interval.
        """
        import pandas as pd

        table = RowTable.of(X, self.ruleset.feature_names)
        labels = _checked_labels(self.ruleset, y, len(table))
        rule = _groups(self.ruleset, table)
        if self.sets is None:
            lower, upper = self.predict_interval(table)
            is_covered = (lower <= labels) & (labels <= upper)
            size = [2 * width for width in self.half_widths or ()]
        else:
            codes = {label: code for code, label in enumerate(self.ruleset.classes or ())}
            member = np.zeros((len(self.sets), len(codes) + 1), dtype=bool)
            for k, labels_of_rule in enumerate(self.sets):
                member[k, [codes[label] for label in labels_of_rule]] = True
            is_covered = member[rule, labels]  # an unknown class has the code -1
            size = [float(len(labels_of_rule)) for labels_of_rule in self.sets]
        n = np.bincount(rule, minlength=len(self.n_rows))
        with np.errstate(invalid="ignore", divide="ignore"):
            covered = np.bincount(rule, is_covered, minlength=len(n)) / n
            error = np.sqrt(self.level * (1 - self.level) / n)
        index = pd.Index([*map(str, range(1, len(n))), "no rule"], name="rule")
        columns = {
            "calibration_rows": self.n_rows,
            "rows": n,
            "coverage": covered,
            "standard_error": error,
            "size": size,
        }
        return pd.DataFrame(columns, index=index)

    # --- output

    def set_ruleset(self) -> RuleSet:
        """Return rules whose labels are the sets as strings, such as ``no | yes``.

        All formats of :meth:`RuleSet.to` are available. For classification only.
        """
        if self.sets is None:
            raise AttributeError("set_ruleset is for classification.")
        return _with_outputs(self.ruleset, [_SEPARATOR.join(map(str, s)) for s in self.sets])

    def to_sql(
        self,
        *,
        dialect: str | None = None,
        table: str | Sequence[str] | None = None,
        exact: bool = False,
    ) -> str:
        """Export the sets or intervals as SQL.

        Parameters
        ----------
        dialect, exact
            See :meth:`RuleSet.to_sql`.
        table : str or sequence of str, optional
            Table to query, or the parts of its path. By default, the result is an expression for
            the set as a string such as ``no | yes``, or in regression two expressions,
            ``lower_bound`` and ``upper_bound``. An infinite bound is NULL.

        Returns
        -------
        str

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet([Rule([Interval(0, upper=2)], 1.5)], ["x"], task="regression")
        >>> print(CalibratedRules(rules, 0.9, (50, 0), half_widths=(0.5, float("inf"))).to_sql())
        CASE
          WHEN "x" <= 2 THEN 1.5e0
        END - CASE CASE
          WHEN "x" <= 2 THEN 1
        END WHEN 1 THEN 0.5e0 END AS lower_bound,
        CASE
          WHEN "x" <= 2 THEN 1.5e0
        END + CASE CASE
          WHEN "x" <= 2 THEN 1
        END WHEN 1 THEN 0.5e0 END AS upper_bound
        """
        if self.sets is not None:
            rules = self.set_ruleset()
            if table is None:
                return rules.to_sql(dialect=dialect, exact=exact)
            return rules.to_sql(
                dialect=dialect, table=table, output_name="prediction_set", exact=exact
            )
        assert self.half_widths is not None
        style = find_dialect(dialect, exact=exact)
        written = dialect if dialect in ("duckdb", "postgres", "sqlite") else None
        predicted = self.ruleset.to_sql(dialect=written, exact=exact)
        number = self.ruleset.to_sql(dialect=written, kind="assign", exact=exact)
        cases = [
            f"WHEN {k + 1} THEN {style.number(width)}"
            for k, width in enumerate(self.half_widths[:-1])
            if math.isfinite(width)
        ]
        if math.isfinite(self.half_widths[-1]):
            number = f"COALESCE({number}, 0)"
            cases.append(f"WHEN 0 THEN {style.number(self.half_widths[-1])}")
        width = f"CASE {number} {' '.join(cases)} END" if cases else "NULL"
        columns = ",\n".join(
            f"{predicted} {sign} {width} AS {name}"
            for sign, name in (("-", "lower_bound"), ("+", "upper_bound"))
        )
        if table is not None:
            parts = [table] if isinstance(table, str) else list(table)
            path = ".".join(style.identifier(part, "table") for part in parts)
            columns = f"SELECT *, {columns} FROM {path}"
        elif written != dialect:
            columns = f"SELECT {columns}"
        return translate(columns, style)

    def to_python(self, *, function_name: str = "predict_set") -> str:
        """Export a Python function of one row that requires no package.

        The function returns a tuple of labels, or the bounds of the interval.

        Parameters
        ----------
        function_name : str, default="predict_set"
            Name of the function.

        Returns
        -------
        str
        """
        numbers, level = list(range(1, len(self.ruleset) + 1)), f"{100 * self.level:g} %"
        rule_of = _with_outputs(self.ruleset, [*numbers, 0]).to_python(function_name="_rule_number")
        if self.sets is not None:
            values = {k: self.sets[k - 1] for k in (*numbers, 0)}
            return (
                f"{rule_of}\n\n#: Labels that each rule predicts; 0 stands for no rule.\n"
                f"_SETS = {values!r}\n\n\n"
                f"def {function_name}(row: Mapping[str, Any] | Sequence[Any]) -> tuple[Any, ...]:\n"
                f'    """Return the possible labels of a row; they contain the right one in '
                f'{level} of cases."""\n'
                f"    return _SETS[_rule_number(row)]\n"
            )
        assert self.half_widths is not None
        ruleset = self.ruleset
        if not has_default(ruleset):
            ruleset = ruleset.with_arbitrary_fallback()
        predict = ruleset.to_python(function_name="_predict")
        predict = predict[predict.index("def _predict") :]
        widths = ", ".join(f"{k}: {_python_number(self.half_widths[k - 1])}" for k in (*numbers, 0))
        return (
            f"{rule_of}\n\n{predict}\n\n#: Half the width of the interval of each rule; 0 stands "
            f"for no rule.\n_HALF_WIDTHS = {{{widths}}}\n\n\n"
            f"def {function_name}(row: Mapping[str, Any] | Sequence[Any]) -> tuple[float, float]:\n"
            f'    """Return an interval that contains the label in {level} of cases."""\n'
            f"    width = _HALF_WIDTHS[_rule_number(row)]\n"
            f'    predicted = 0.0 if width == float("inf") else _predict(row)\n'
            f"    return predicted - width, predicted + width\n"
        )

    def to_json(self) -> str:
        """Return the rules and their calibration as JSON."""
        widths = self.half_widths
        data = {
            "format": FORMAT,
            "version": VERSION,
            "level": self.level,
            "n_rows": list(self.n_rows),
            "sets": None if self.sets is None else [list(labels) for labels in self.sets],
            "half_widths": widths and [w if math.isfinite(w) else None for w in widths],
            "rules": json.loads(self.ruleset.to_json(indent=None)),
        }
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> CalibratedRules:
        """Restore rules from the result of :meth:`to_json`.

        Raises
        ------
        ValueError
            If the text is not JSON of calibrated rules.
        """
        data = json_of(text, finite=True)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"These are not calibrated rules: 'format' must be {FORMAT!r}.")
        if data.get("version") != VERSION:
            raise ValueError(f"'version' must be {VERSION}, got {data.get('version')!r}.")
        try:
            sets, widths = data["sets"], data["half_widths"]
            return cls(
                RuleSet.from_json(json.dumps(data["rules"])),
                check_number("level", data["level"], above=0, below=1),
                tuple(data["n_rows"]),
                None if sets is None else tuple(map(tuple, sets)),
                None if widths is None else tuple(math.inf if w is None else w for w in widths),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"The calibrated rules are damaged: {error!r}.") from error

    def __str__(self) -> str:
        """Return one line per rule."""
        lines = []
        for k in range(len(self.ruleset)):
            premise = self.ruleset.replace(
                rules=[Rule(r.conditions, r.output, None, r.weight) for r in self.ruleset.rules]
            ).line(k)
            lines.append(f"{k + 1}. {self._line(premise, k)}   [{self.n_rows[k]} calibration rows]")
        return "\n".join(lines)

    def _line(self, line: str, k: int) -> str:
        if self.sets is not None:
            head = line.rsplit(" THEN ", 1)[0] + " THEN" if " THEN " in line else "ELSE"
            text = f"{head} {' or '.join(map(str, self.sets[k]))}"
            n_labels = len(self.sets[k])
            if n_labels > 1:
                text += f" ({'both' if n_labels == 2 else f'all {n_labels}'} possible)"
            return text
        assert self.half_widths is not None
        if math.isinf(self.half_widths[k]):
            n_rows = self.n_rows[k]
            lacking = "rows" if conformal_rank(n_rows, self.level) > n_rows else "predictions"
            return f"{line} (too few {lacking} for an interval)"
        return f"{line} ± {self.half_widths[k]:.4g}"


def _python_number(value: float) -> str:
    return repr(value) if math.isfinite(value) else 'float("inf")'


def _groups(ruleset: RuleSet, X: Any) -> NDArray[np.intp]:
    """Return the index of the rule of each row; the number of rules for uncovered rows."""
    rule = np.asarray(ruleset.assign(RowTable.of(X, ruleset.feature_names)), dtype=np.intp)
    rule[rule < 0] = len(ruleset)
    return rule


def _checked_labels(ruleset: RuleSet, y: Any, n_rows: int) -> NDArray[Any]:
    """Return numbers, or the codes of classes; unknown classes have the code -1."""
    import pandas as pd

    y = one_dimension("y", without_index(y))
    if y.shape != (n_rows,):
        raise ValueError(f"y must hold one label for each of {n_rows} rows, got shape {y.shape}.")
    if np.asarray(pd.isna(y)).any():
        raise ValueError(
            f"y must hold a label in every row, got {int(pd.isna(y).sum())} missing ones. Drop "
            "these rows."
        )
    if ruleset.classes is None:
        return y.astype(float)
    classes = pd.Index(list(ruleset.classes), dtype=object)
    codes = classes.get_indexer(pd.Index(y, dtype=object))
    check_label_types(ruleset, "y", y[codes < 0])
    return np.asarray(codes)


def _needed_half_widths(
    predicted: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return half widths whose intervals around predictions contain the labels after rounding.

    The bounds are floats, so ``predicted - |label - predicted|`` may exceed a smaller label.
    Rounding is monotone, so larger half widths contain the label too. Without a prediction, as for
    a linear output with a missing value, only an infinite interval contains the label.
    """
    widths = np.abs(labels - predicted)
    spacing = np.spacing(np.maximum(np.abs(labels), np.abs(predicted)))
    for wider in (np.nextafter(widths, np.inf), widths + spacing):
        is_missed = (predicted - widths > labels) | (predicted + widths < labels)
        widths = np.where(is_missed, wider, widths)
    return np.where(np.isnan(predicted), np.inf, widths)


def _bound(scores: NDArray[np.float64], level: float) -> float:
    """Return the score that bounds a new one; infinity if the sample is too small."""
    rank = conformal_rank(len(scores), level)
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else math.inf


def _order_classes(ruleset: RuleSet, k: int) -> list[int]:
    """Return class codes by decreasing frequency in rule `k`; the output of the rule is first."""
    classes = list(ruleset.classes or ())
    counts: Any = None
    if k < len(ruleset):
        rule = ruleset.rules[k]
        first = classes.index(rule.output)
        counts = rule.statistics and rule.statistics.class_counts
    elif ruleset.fallback is not None:
        first = classes.index(ruleset.fallback.output)
        counts = ruleset.fallback.class_counts
    else:
        first = 0
    if counts is None:
        counts = [0.0] * len(classes)
        for rule in ruleset.rules:
            if rule.statistics is not None and rule.statistics.class_counts is not None:
                counts = np.add(counts, rule.statistics.class_counts)
    return sorted(range(len(classes)), key=lambda code: (code != first, -counts[code], code))


def _with_outputs(ruleset: RuleSet, outputs: Sequence[Any]) -> RuleSet:
    """Return classification rules with other outputs; the last one is for uncovered rows."""
    rules = [
        Rule(rule.conditions, output)
        for rule, output in zip(ruleset.rules, outputs[:-1], strict=True)
    ]
    return RuleSet(
        [rules[i] for i in ruleset.assignment_order],
        ruleset.feature_names,
        task="classification",
        classes=list(dict.fromkeys(outputs)),
        ordered=True,
        domain=ruleset.domain,
        fallback=Fallback(outputs[-1]),
    )
