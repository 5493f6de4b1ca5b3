"""Independent check of a verification by a simpler program that shares no search code with it.

Statements about the rows, and witnesses, are recomputed by calling the model and the rules. In
small cases, all cells between the cuts of model and rules are enumerated and the model is called
once in each, which confirms or refutes every share, bound and trusted part. In larger cases, fresh
rows can only refute.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from skescore._io import json_of
from skescore._validation import check_integer, python_value
from skescore.black_boxes import finite_predictions, type_name
from skescore.extractors import Oracle
from skescore.extractors._input import column_numbers, frame_column
from skescore.rules import (
    AtLeast,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    convert_rows,
)
from skescore.verification._check_cells import (
    Cells,
    Column,
    ColumnCells,
    cells_of_column,
    read_columns,
)
from skescore.verification._check_structure import find_malformed_fields
from skescore.verification._ensemble import ReadModel, read_model
from skescore.verification._grid import UnreadableModelError, half_open
from skescore.verification._regions import flat_conditions
from skescore.verification._result import JSON_FORMAT
from skescore.verification._rows import column_positions

#: Tolerance for sums of weights, and for a sum relative to the sum of all weights.
_ROUNDING, _SUM_ROUNDING = 1e-6, 1e-12
#: Tolerance for the bounds of a trusted part, in ranges of the column.
_BOUND_ROUNDING = 2e-6
#: Probability that fresh rows refute a correct statement.
_RISK = 1e-9
#: Number of rows per rule whose probabilities are computed, and of points per side of the picture.
_N_PROBABILITIES, _PICTURE_SIDE = 1000, 32
_MEASURES = ("volume", "near")
_BOUNDS = ("lower", "upper", "proven_lower", "proven_upper")


@dataclass(frozen=True)
class VerificationCheck:
    """Result of a check.

    Parameters
    ----------
    verdict : {"confirmed", "not refuted", "rejected"}
        "confirmed" if all cells were enumerated, "not refuted" if only fresh rows were drawn.
    findings : tuple of str
        Wrong statements; empty unless rejected.
    method : str
        Description of the comparison.
    unchecked : dict of str to str, default={}
        Fields of the JSON that the verdict does not cover, with the reason. Empty if rejected.
    """

    verdict: str
    findings: tuple[str, ...]
    method: str
    unchecked: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.method}"]
        fields_by_reason: dict[str, list[str]] = {}
        for name, reason in self.unchecked.items():
            fields_by_reason.setdefault(reason, []).append(name)
        for reason, names in fields_by_reason.items():
            lines.append(f"not checked: {', '.join(_with_joined_indices(names))} ({reason})")
        return "\n".join([*lines, *(f"- {finding}" for finding in self.findings)])


def check_verification(
    text: str,
    black_box: Any,
    X: Any,
    *,
    max_cells: int = 200_000,
    n_rows: int = 1_000_000,
    random_state: int = 0,
) -> VerificationCheck:
    """Check the JSON of a verification.

    Every field is recomputed and compared, or listed in `unchecked`. Bounds are checked as bounds,
    so weaker bounds are also correct.

    Parameters
    ----------
    text : str
        JSON of :meth:`Verification.to_json`.
    black_box : estimator
        The fitted model.
    X : array-like or DataFrame
        Rows of the verification.
    max_cells : int, default=200_000
        Largest number of cells to enumerate.
    n_rows : int, default=1_000_000
        Number of fresh rows to draw if there are more cells: half of them uniform in the domain,
        half near the data.
    random_state : int, default=0
        Seed of the fresh rows.

    Returns
    -------
    VerificationCheck
        Verdict with the wrong statements.

    Raises
    ------
    ValueError
        If the text is not the JSON of a verification.

    Notes
    -----
    The verdict is about the rules and the settings in the text, `ruleset`, `radius`, `tolerance`
    and `confidence`; compare them with yours. Numbers are compared with a tolerance of 10⁻⁶.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.verification import check_verification, verify
    >>> X = np.linspace(0, 10, 41)[:, None]
    >>> model = DecisionTreeClassifier().fit(X, X[:, 0] > 4)
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=5)], False), Rule([], True)],
    ...     ["x"],
    ...     task="classification",
    ... )
    >>> print(check_verification(verify(rules, model, X).to_json(), model, X))
    confirmed: compared with the model on 2 witnesses and all 3 cells of the domain
    not checked: ruleset, radius, confidence (inputs of the verification)
    not checked: n_queries, seconds (the work is not repeated)
    """
    check_integer("max_cells", max_cells, 1)
    check_integer("n_rows", n_rows, 2)
    try:
        data = json_of(text, finite=True)
        if data["format"] != JSON_FORMAT:
            raise ValueError("another format")
        rules = RuleSet.from_json(json.dumps(data["ruleset"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("The text is not the JSON of a verification.") from error
    findings = find_malformed_fields(data)
    if findings:
        return VerificationCheck("rejected", tuple(findings), "names and types of the fields")
    checker = _Checker(data, rules, black_box, X)
    checker.check_setting()
    if checker.findings:
        return checker.result("rejected", "rules, columns and records")
    columns = checker.columns_of_cells(max_cells)
    cells = None if columns is None else Cells.combine(list(checker.rows.columns), columns)
    checker.check_rows()
    if cells is None:
        checker.check_fresh_rows(n_rows, np.random.default_rng(random_state))
        method = f"{n_rows:,} fresh rows, which can only refute"
    else:
        checker.check_cells(cells)
        method = f"all {len(cells.rows)} cells of the domain"
    n_witnesses = checker.check_witnesses()
    checker.check_picture()
    verdict = "not refuted" if cells is None else "confirmed"
    return checker.result(
        verdict, f"compared with the model on {n_witnesses} witnesses and {method}"
    )


def _with_joined_indices(names: Sequence[str]) -> list[str]:
    """Merge the same field of several rules: `rules[0, 1].witness`."""
    indices_by_field: dict[str, list[str]] = {}
    for name in names:
        head, _, tail = name.partition("].")
        prefix, _, index = head.partition("[")
        indices_by_field.setdefault(f"{prefix}[{{}}].{tail}" if tail else name, []).append(index)
    return [name.format(", ".join(indices)) for name, indices in indices_by_field.items()]


def _table(X: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return rows as a data frame of objects with strings as column names."""
    if hasattr(X, "columns"):
        columns = {str(name): frame_column(X, j) for j, name in enumerate(X.columns)}
        return pd.DataFrame({name: _objects(column) for name, column in columns.items()})
    array = np.asarray(X)
    if len(names) != array.shape[1]:
        names = [f"x{j}" for j in range(array.shape[1])]
    return pd.DataFrame(array, columns=list(names)).astype(object)


def _objects(column: pd.Series) -> np.ndarray:
    """Return the values of a column as objects, missing ones as NaN and dates as numbers."""
    if column.dtype.kind in "mM":
        return column_numbers(column).astype(object)
    values = np.array(column, dtype=object)
    values[column.isna().to_numpy()] = np.nan
    return values


class _Checker:
    """Checks of the parts of a verification; `findings` collects wrong statements."""

    def __init__(self, data: Any, rules: RuleSet, black_box: Any, X: Any) -> None:
        self.data = data
        self.rules = rules
        self.like = convert_rows(X)
        self.rows = _table(self.like, rules.feature_names)
        self.findings: list[str] = []
        self.unchecked: dict[str, str] = {}
        self._black_box = black_box
        self._oracle = Oracle(black_box, like=self.like)
        self._has_fallback = rules.fallback is not None and rules.fallback.policy == "default"
        self._read = self._read_model()
        self._positions: list[int] = []
        self._columns: list[Column] = []
        self._assigned = np.empty(0, dtype=np.intp)
        self._wrong = np.empty(0, dtype=bool)
        self._outputs = np.empty(0)

    def result(self, verdict: str, method: str) -> VerificationCheck:
        """Return the result of the check."""
        if self.findings:
            return VerificationCheck("rejected", tuple(self.findings), method)
        choices = ["ruleset", "radius", "tolerance", "confidence"]
        reason = "inputs of the verification"
        fields = {name: reason for name in choices if self.data[name] is not None}
        work = "the work is not repeated"
        fields |= dict.fromkeys(("n_queries", "seconds"), work)
        if self.data["engine"] == "sampling":
            fields["reason"] = work
        return VerificationCheck(verdict, (), method, {**fields, **self.unchecked})

    def _expect(self, holds: Any, finding: str) -> bool:
        """Add a finding unless a statement holds."""
        if not holds:
            self.findings.append(finding)
        return bool(holds)

    def _read_model(self) -> ReadModel | None:
        try:
            return read_model(self._black_box, self.like, list(self.rows.columns))
        except UnreadableModelError:
            return None

    def check_setting(self) -> None:
        """Compare rules, domain, columns and records with the rows and the model."""
        try:
            with _warnings_as_errors():
                self._check_rules()
        except (KeyError, TypeError, ValueError, OverflowError, UserWarning) as error:
            self.findings.append(f"Rules, model and rows do not match: {error}")
            return
        data, is_exact = self.data, self.data["engine"] == "leaf boxes"
        name = type_name(self._black_box).rpartition(".")[2]
        self._expect(data["model"] == name, f"The model is a {name}.")
        is_regression = self.rules.task == "regression"
        self._expect(
            (data["tolerance"] is not None) == is_regression,
            "tolerance must be a number for a regression, and null for a classification.",
        )
        self._expect(
            (data["reason"] == "") == is_exact and not (is_exact and self._read is None),
            "engine and reason contradict each other or the model.",
        )
        domain = [column.to_dict() for column in self._columns]
        # Adding 0 converts -0.0, which rounding may produce, to 0.
        stated_domain = [
            {key: v + 0.0 if type(v) is float else v for key, v in column.items()}
            for column in data["domain"]
        ]
        self._expect(_as_text(domain) == _as_text(stated_domain), f"The domain is {domain}.")
        self._expect(
            _as_text(json.loads(self.rules.to_json())) == _as_text(data["ruleset"]),
            "ruleset has fields that are not part of a rule set.",
        )
        indices = [record["index"] for record in data["rules"]]
        expected = list(range(len(self.rules)))
        # A fallback without a region in the domain has no record.
        if self._has_fallback and (-1 in indices or -1 in self._assigned):
            expected.append(-1)
        self._expect(
            indices == expected,
            f"There are records of the rules {indices}, but there must be records of {expected}.",
        )

    def _check_rules(self) -> None:
        """Apply the rules and the model to the rows; raise a ValueError if they do not match."""
        self.rules.check_one_rule_per_row("verify")
        if self.rules.fallback is not None and self.rules.fallback.policy == "nearest":
            raise ValueError("a fallback with the policy 'nearest' cannot be verified")
        conditions = [c for rule in self.rules.rules for c in flat_conditions(rule.conditions)]
        if any(isinstance(condition, Linear) for condition in conditions):
            raise ValueError("oblique conditions cannot be verified")
        self._positions = column_positions(self.rules.feature_names, list(self.rows.columns))
        listed = {self._positions[c.feature] for c in conditions if isinstance(c, OneOf)}
        if self._read is not None:
            listed |= {
                self._read.columns[condition.feature]
                for rule in self._read.ruleset.rules
                for condition in flat_conditions(rule.conditions)
                if isinstance(condition, OneOf)
            }
        self._columns = read_columns(self.rules, self._positions, self.rows, self.like, listed)
        self._assigned, self._wrong, self._outputs = self._compare(self.rows)

    def restored(self, table: pd.DataFrame) -> Any:
        """Return a table in the container and with the types of the original rows."""
        if hasattr(self.like, "dtypes") and hasattr(self.like, "iloc"):
            result = table.copy()
            for name, original in zip(result.columns, self.like.columns, strict=True):
                dtype = self.like[original].dtype
                is_integer = pd.api.types.is_integer_dtype(dtype)
                # The model of a verification also gets dates as numbers.
                if dtype.kind in "mM" or (is_integer and result[name].isna().any()):
                    dtype = "float64"
                result[name] = result[name].astype(dtype)
            return result.set_axis(list(self.like.columns), axis=1)
        if hasattr(self.like, "schema"):  # a polars frame
            values = {name: table[name].where(table[name].notna(), None) for name in table}
            columns = {name: column.tolist() for name, column in values.items()}
            return type(self.like)(columns, strict=False).cast(dict(self.like.schema))
        return table.to_numpy(dtype=float)

    def _compare(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rule of each row, whether rules and model differ, and the predictions."""
        predictions = self._oracle.query(self.restored(table), cache=False)
        if self.rules.task == "regression":
            predictions = finite_predictions(predictions)
        assigned, outputs = self._apply_rules(table)
        is_predicted = self._is_predicted(assigned)
        wrong = np.zeros(len(table), dtype=bool)
        if self.rules.task == "classification":
            wrong[is_predicted] = predictions[is_predicted] != outputs[is_predicted]
        elif is_predicted.any():
            predictions = predictions.astype(float)
            deviations = np.abs(predictions[is_predicted] - outputs[is_predicted].astype(float))
            wrong[is_predicted] = ~(deviations <= (self.data["tolerance"] or 0.0))
        return assigned, wrong, predictions

    def _apply_rules(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the rule of each row and its prediction; None for no prediction."""
        matched = table.set_axis(self._rule_names(table), axis=1)
        assigned = self.rules.assign(matched)
        outputs = np.full(len(table), None, dtype=object)
        is_predicted = self._is_predicted(assigned)
        if is_predicted.any():
            outputs[is_predicted] = self.rules.predict(matched[is_predicted])
        return assigned, outputs

    def _is_predicted(self, assigned: np.ndarray) -> np.ndarray:
        return np.asarray((assigned >= 0) | self._has_fallback)

    def _rule_names(self, table: pd.DataFrame) -> list[str]:
        """Return the names of the columns that the rules expect."""
        names = [str(name) for name in table.columns]
        for feature, j in enumerate(self._positions):
            names[j] = self.rules.feature_names[feature]
        return names

    def _output(self, record: Any) -> Any:
        """Return the output of the rule of a record."""
        if record["index"] >= 0:
            return self.rules.rules[record["index"]].output
        assert self.rules.fallback is not None
        return self.rules.fallback.output

    def check_rows(self) -> None:
        """Check statements about the rows, and statements that follow from others."""
        records = self.data["rules"]
        confidence = 1 - (1 - self.data["confidence"]) / max(len(records), 1)
        for record in records:
            own = self._assigned == record["index"]
            n = int(own.sum())
            self._expect(record["n_rows"] == n, f"{_name(record)} predicts {n} rows.")
            for measure in _MEASURES:
                mass = record["volume" if measure == "volume" else "near_rows"]
                self._check_interval(record, measure, mass, confidence)
            self._check_range_of_rows(record, own)
            if record["trusted"]:
                self._check_trusted_rows(record, own)
            elif self.data["engine"] == "leaf boxes":
                self._leave(record, "trusted", "the search found none")
            if self.data["engine"] == "sampling":
                self._check_absence_of_proofs(record)
        for measure in _MEASURES:
            self._check_pooled(measure)

    def _leave(self, record: Any, part: str, reason: str) -> None:
        """List a part of a record as unchecked."""
        position = self.data["rules"].index(record)
        self.unchecked[f"rules[{position}].{part}"] = reason

    def _check_interval(self, record: Any, measure: str, mass: float, confidence: float) -> None:
        """Compare an interval with the proven shares and with counts of samples."""
        interval, proven = record[f"{measure}_disagreement"], record[f"{measure}_proven"]
        name = f"{_name(record)}: {measure}_disagreement"
        bounds = [interval[bound] for bound in _BOUNDS]
        is_sampled = interval["n_samples"] > 0
        self._expect(
            (interval["method"] == "sampled") == is_sampled, f"{name}: method and n_samples differ."
        )
        expected = confidence if is_sampled else 1.0
        self._expect(
            _is_close(interval["confidence"], expected, 1e-12), f"{name}: confidence is {expected}."
        )
        if mass == 0:
            is_empty = proven is None and bounds == [None] * 4 and not is_sampled
            self._expect(is_empty, f"{name} must be null, because the region is empty.")
            return
        if not self._expect(
            proven is not None and None not in bounds,
            f"{name} is null, although the region is not empty.",
        ):
            return
        lower, upper, proven_lower, proven_upper = bounds
        disagreeing, unknown = proven["disagreeing"], proven["unknown"]
        self._expect(
            _is_close(sum(proven.values()), 1.0)
            and _is_close(proven_lower, disagreeing)
            and _is_close(proven_upper, min(disagreeing + unknown, 1.0)),
            f"{name} contradicts {measure}_proven.",
        )
        if not is_sampled:
            is_same = (lower, upper) == (proven_lower, proven_upper)
            self._expect(is_same, f"{name}: bounds and proven bounds differ without samples.")
            return
        low, high = _nearest_sample(lower, disagreeing, unknown, interval["n_samples"], expected)
        self._expect(
            _is_close(lower, disagreeing + low * unknown)
            and _is_close(upper, disagreeing + high * unknown),
            f"{name} is not an interval of {interval['n_samples']} samples.",
        )
        reason = "the samples are not drawn again"
        self._leave(record, f"{measure}_disagreement.n_samples", reason)

    def _check_pooled(self, measure: str) -> None:
        """Check the joint interval of all rules against the intervals of single rules."""
        stated_interval = self.data[f"{measure}_disagreement"]
        key = "volume" if measure == "volume" else "near_rows"
        pairs = [
            (record[f"{measure}_disagreement"], record[key])
            for record in self.data["rules"]
            if record[key] > 0 and record[f"{measure}_disagreement"]["lower"] is not None
        ]
        total = math.fsum(mass for _, mass in pairs)
        n_samples = sum(interval["n_samples"] for interval, _ in pairs)
        expected_interval: dict[str, Any] = dict.fromkeys(_BOUNDS)
        if total:
            for bound in _BOUNDS:
                weighted = math.fsum((interval[bound] or 0) * mass for interval, mass in pairs)
                expected_interval[bound] = weighted / total
        is_same = (stated_interval["method"], stated_interval["n_samples"]) == (
            "sampled" if n_samples else "proven",
            n_samples,
        )
        expected_interval["confidence"] = self.data["confidence"] if n_samples else 1.0
        for bound, value in expected_interval.items():
            is_same &= _same(value, stated_interval[bound])
        self._expect(is_same, f"{measure}_disagreement differs from the disagreement of its rules.")

    def _check_range_of_rows(self, record: Any, own: np.ndarray) -> None:
        """Check the range of outputs against the rule's rows."""
        stated_range, name = record["output_range"], f"{_name(record)}: output_range"
        proven = stated_range["lower"], stated_range["upper"]
        observed_bounds = stated_range["observed_lower"], stated_range["observed_upper"]
        for low, high in (proven, observed_bounds):
            if not self._expect((low is None) == (high is None), f"{name} has only one bound."):
                return
            if low is not None and not self._expect(low <= high, f"{name} is no range."):
                return
        deviation = record["max_deviation"]
        is_linear = isinstance(self._output(record), LinearOutput)
        if self.rules.task == "classification":
            self._expect(deviation is None, f"{_name(record)}: max_deviation must be null.")
            if proven[0] is None:
                for bound in ("lower", "upper"):
                    self._leave(record, f"output_range.{bound}", "nothing is stated")
        elif proven[0] is not None and self._expect(
            deviation is not None and not is_linear, f"{name} and max_deviation differ."
        ):
            output = self._output(record)
            expected, error = max(proven[1] - output, output - proven[0]), 1e-9 * abs(output)
            self._expect(
                abs(deviation - expected) <= error + 1e-9 * max(deviation, 1.0),
                f"{_name(record)}: max_deviation is {expected}.",
            )
        elif deviation is not None and not is_linear:
            self._expect(proven[0] is not None, f"{name} and max_deviation differ.")
        outputs = self._outputs_of_rows(record, own)
        if not len(outputs):
            return
        if not self._expect(observed_bounds[0] is not None, f"{name}: observed bounds are absent."):
            return
        low, high = float(outputs.min()), float(outputs.max())
        for bound, stated_bound, value in zip(
            ("observed_lower", "observed_upper"), observed_bounds, (low, high), strict=True
        ):
            if not _is_close(stated_bound, value):
                self._leave(record, f"output_range.{bound}", "its row is not stored")
        self._expect(
            observed_bounds[0] <= low + _margin(low) and high <= observed_bounds[1] + _margin(high),
            f"{name}: the rows have outputs from {low} to {high}.",
        )

    def _outputs_of_rows(self, record: Any, own: np.ndarray) -> np.ndarray:
        """Return the outputs for the rule's rows whose range is stated as observed."""
        if self.rules.task == "regression":
            return np.asarray(self._outputs[own], dtype=float)
        agreeing, wrong = np.flatnonzero(own & ~self._wrong), np.flatnonzero(own & self._wrong)
        rows = np.concatenate([agreeing, wrong])[:_N_PROBABILITIES]
        return self._probabilities_of(record, self.rows.iloc[rows])

    def _probabilities(self, table: pd.DataFrame) -> np.ndarray | None:
        """Return the probabilities of the classes; None if the model has none."""
        if self.rules.task == "regression" or not hasattr(self._black_box, "predict_proba"):
            return None
        rows = self.restored(table)
        names = getattr(self._black_box, "feature_names_in_", None)
        if names is not None and hasattr(rows, "columns") and set(names) <= set(rows.columns):
            rows = rows[list(names)]
        elif names is not None and not hasattr(rows, "columns"):
            rows = pd.DataFrame(rows, columns=list(names))
        elif names is None and hasattr(self._black_box, "n_features_in_"):
            rows = np.asarray(rows)
        return np.asarray(self._black_box.predict_proba(rows), dtype=float)

    def _probabilities_of(self, record: Any, table: pd.DataFrame) -> np.ndarray:
        """Return the probability of the rule's class in each row; empty if there is none."""
        probabilities = self._probabilities(table) if len(table) else None
        output = self._output(record)
        if probabilities is None or output not in self._classes:
            return np.empty(0)
        return probabilities[:, self._classes.index(output)]

    @property
    def _classes(self) -> list[Any]:
        return list(np.asarray(self._black_box.classes_).tolist())

    def _check_absence_of_proofs(self, record: Any) -> None:
        """Check that nothing is proven about a model that was only sampled."""
        has_proof = record["trusted"] or record["max_deviation"] is not None
        has_proof |= record["output_range"]["lower"] is not None
        for measure in _MEASURES:
            proven = record[f"{measure}_proven"]
            has_proof |= proven is not None and proven["unknown"] < 1
        self._expect(not has_proof, f"{_name(record)}: nothing is proven by sampling.")

    def _trusted_conditions(self, record: Any) -> list[Any] | None:
        """Return the conditions of a trusted part; None if it is not a part of the rule."""
        stated_rules = record["trusted"]["rules"]
        try:
            trusted_rules = RuleSet.from_json(json.dumps(stated_rules))
        except (KeyError, TypeError, ValueError):
            trusted_rules = None
        if trusted_rules is None or len(trusted_rules) != 1:
            return None
        output = self._output(record)
        if isinstance(output, LinearOutput):
            terms = [(self._positions[feature], value) for feature, value in output.terms]
            output = LinearOutput(output.intercept, tuple(terms))
        conditions = trusted_rules.rules[0].conditions
        expected = RuleSet(
            [Rule(conditions, output)],
            list(self.rows.columns),
            task=self.rules.task,
            classes=self.rules.classes,
        )
        is_box = all(self._suits_column(condition) for condition in conditions)
        is_same = _as_text(json.loads(expected.to_json())) == _as_text(stated_rules)
        return list(conditions) if is_box and is_same else None

    def _suits_column(self, condition: Any) -> bool:
        """Return whether a condition of a trusted part fits the type of its column."""
        if isinstance(condition, AtLeast | Linear) or condition.feature >= len(self._columns):
            return False
        column = self._columns[condition.feature]
        if isinstance(condition, OneOf):
            return column.kind == "category" and all(map(column.accepts, condition.values))
        return isinstance(condition, Missing) or column.kind != "category"

    def _in_trusted(self, record: Any, table: pd.DataFrame) -> np.ndarray:
        """Return which rows are in the trusted part of a record."""
        return RuleSet.from_json(json.dumps(record["trusted"]["rules"])).covers(table)

    def _check_trusted_rows(self, record: Any, own: np.ndarray) -> None:
        """Check a trusted part on the rows."""
        trusted, name = record["trusted"], f"{_name(record)}: the trusted part"
        if not self._expect(
            self._trusted_conditions(record) is not None, f"{name} is no part of the rule."
        ):
            record["trusted"] = None
            return
        covered = own & self._in_trusted(record, self.rows)
        self._expect(not (covered & self._wrong).any(), f"{name} has disagreements.")
        n = int(covered.sum())
        self._expect(trusted["n_rows"] == n, f"{name} has {n} rows.")
        share = n / max(int(own.sum()), 1)
        self._expect(_is_close(trusted["row_share"], share), f"{name}: row_share is {share:.6g}.")

    def check_witnesses(self) -> int:
        """Check every witness with the rules and the model; return the number of witnesses."""
        count = 0
        for record in self.data["rules"]:
            disagrees = bool(((self._assigned == record["index"]) & self._wrong).any())
            witness, worst = record["witness"], record["worst"]
            self._expect(
                witness is not None or not disagrees,
                f"{_name(record)}: rules and model disagree on a row, but no witness is stated.",
            )
            has_worst = witness is not None and (
                self.rules.task == "regression" or hasattr(self._black_box, "predict_proba")
            )
            problem = "missing" if has_worst else "unexpected"
            self._expect((worst is not None) == has_worst, f"{_name(record)}: worst is {problem}.")
            for part in ("witness", "worst"):
                if record[part] is not None:
                    count += 1
                    self._check_witness(record, part)
        return count

    def _check_witness(self, record: Any, part: str) -> None:
        """Recompute all statements about a witness."""
        witness, label = record[part], f"the {part} of {_name(record).lower()}"
        row = witness["row"]
        if not self._expect(
            list(row) == list(self.rows.columns)
            and all(column.accepts(row[column.name]) for column in self._columns),
            f"The row of {label} is not in the domain.",
        ):
            record[part] = None
            return
        table = _row_table(row)
        assigned, wrong, predictions = self._compare(table)
        _, outputs = self._apply_rules(table)
        prediction, output = python_value(predictions[0]), python_value(outputs[0])
        self._expect(
            assigned[0] == record["index"], f"The row of {label} belongs to rule {assigned[0] + 1}."
        )
        self._expect(wrong[0], f"For {label}, rules and model agree.")
        self._expect(
            _same(prediction, witness["prediction"]), f"For {label} the model gives {prediction!r}."
        )
        self._expect(_same(output, witness["rule_output"]), f"For {label} the rules give {output}.")
        probabilities, probability = self._probabilities(table), None
        if probabilities is not None and prediction in self._classes:
            probability = float(probabilities[0, self._classes.index(prediction)])
        self._expect(
            _same(probability, witness["probability"]), f"The probability of {label} is wrong."
        )
        self._check_nearest_row(witness, table, label)

    def _check_nearest_row(self, witness: Any, table: pd.DataFrame, label: str) -> None:
        """Recompute the distance of a witness to the rows."""
        distances = np.zeros(len(self.rows))
        for j, column in enumerate(self._columns):
            distances += _differences(column, table.iloc[0, j], self.rows.iloc[:, j])
        nearest, smallest = witness["nearest_row"], float(distances.min())
        if not self._expect(
            nearest < len(self.rows)
            and _is_close(witness["distance"], smallest)
            and distances[nearest] <= smallest + 1e-9,
            f"The nearest row of {label} is row {int(distances.argmin())}, at {smallest:.6g}.",
        ):
            return
        changes = {}
        for j, column in enumerate(self._columns):
            value = _plain(self.rows.iloc[nearest, j], column)
            if not _is_equal(value, witness["row"][column.name]):
                changes[column.name] = value
        first = next(
            i
            for i in np.flatnonzero(distances <= smallest + 1e-9).tolist()
            if i == nearest or self._rows_are_equal(i, nearest)
        )
        self._expect(
            first == nearest
            and list(changes) == list(witness["changes"])
            and all(_is_equal(v, witness["changes"][name]) for name, v in changes.items()),
            f"The changes of {label} are {changes} from row {first}.",
        )

    def _rows_are_equal(self, i: int, k: int) -> bool:
        return all(
            _is_equal(_plain(self.rows.iloc[i, j], column), _plain(self.rows.iloc[k, j], column))
            for j, column in enumerate(self._columns)
        )

    def check_picture(self) -> None:
        """Compute the picture again, and compare it with the stated one."""
        picture, record = self.data["picture"], self._pictured_record()
        point = None if record is None else (record["worst"] or record["witness"])["row"]
        usable = [
            column
            for column in self._columns
            if point is not None
            and column.kind != "category"
            and point[column.name] is not None
            and column.bottom < column.top
        ]
        if picture is None or record is None or len(usable) < 2:
            has_picture = record is not None and len(usable) >= 2
            self._expect((picture is not None) == has_picture, "picture is absent or unexpected.")
            return
        assert point is not None
        column_of = {column.name: column for column in usable}
        features = picture["features"]
        sides = [len(picture["x_values"]), len(picture["y_values"])]
        is_sound = (
            picture["rule"] == record["index"]
            and len(features) == len(set(features)) == 2
            and set(features) <= set(column_of)
            and picture["point"] == [float(point[name]) for name in features]
            and sides == [_PICTURE_SIDE] * 2
            and [len(row) for row in picture["states"]] == [_PICTURE_SIDE] * _PICTURE_SIDE
        )
        if not self._expect(is_sound, "picture is not about the worst row of its rule."):
            return
        for name, key in zip(features, ("x_values", "y_values"), strict=True):
            column = column_of[name]
            values = np.linspace(column.bottom, column.top, _PICTURE_SIDE)
            values = np.round(values) if column.kind == "integer" else values
            if not self._expect(
                np.allclose(picture[key], values, rtol=1e-9), f"picture: {key} are wrong."
            ):
                return
        table = pd.concat([_row_table(point)] * _PICTURE_SIDE**2, ignore_index=True)
        table[features[0]] = np.tile(picture["x_values"], _PICTURE_SIDE).astype(object)
        table[features[1]] = np.repeat(picture["y_values"], _PICTURE_SIDE).astype(object)
        assigned, wrong, _ = self._compare(table)
        states = np.where(assigned == record["index"], wrong * 1, 2).tolist()
        flat_states = [state for row in picture["states"] for state in row]
        self._expect(flat_states == states, "picture: states are wrong.")

    def _pictured_record(self) -> Any:
        """Return the record with a witness and the most disagreement near the data."""
        by_index = {record["index"]: record for record in self.data["rules"]}
        best, largest_mass = None, 0.0
        for index in [*self.rules.assignment_order.tolist(), -1]:
            record = by_index.get(index)
            if record is None or not record["witness"]:
                continue
            mass = record["near_rows"] * (record["near_disagreement"]["lower"] or 0.0)
            if mass > largest_mass:
                best, largest_mass = record, mass
        return best

    def columns_of_cells(self, max_cells: int) -> list[ColumnCells] | None:
        """Return the cells of each column.

        None if there are too many, the cuts are unknown, or predictions of rules vary in cells.
        """
        if any(isinstance(rule.output, LinearOutput) for rule in self.rules.rules):
            return None
        if self._read is None:
            return None
        cuts: list[set[float]] = [set() for _ in self._columns]
        parts = ((self.rules, self._positions), (self._read.ruleset, self._read.columns))
        for ruleset, columns in parts:
            for rule in ruleset.rules:
                for condition in flat_conditions(rule.conditions):
                    if isinstance(condition, Interval):
                        cuts[columns[condition.feature]].update(half_open(condition))
        cells: list[ColumnCells] = []
        n_cells = 1
        for column, column_cuts in zip(self._columns, cuts, strict=True):
            edges = sorted(cut for cut in column_cuts if math.isfinite(cut))
            if n_cells * (len(edges) + 1) > 4 * max_cells * len(self.rows):
                return None
            values = self.rows[column.name]
            cells.append(cells_of_column(column, values, edges, self.data["radius"]))
            n_cells *= len(cells[-1].values)
            if n_cells > max_cells:
                return None
        return cells

    def check_cells(self, cells: Cells) -> None:
        """Check all statements on the enumerated cells."""
        assigned, wrong, predictions = self._compare(cells.rows)
        for record in self.data["rules"]:
            own = assigned == record["index"]
            for measure, key in zip(_MEASURES, ("volume", "near_rows"), strict=True):
                weights = getattr(cells, measure)
                total = float(weights[own].sum())
                if self._expect(
                    _is_close(record[key], total, _ROUNDING * min(max(total, 1e-3), 1.0)),
                    f"{_name(record)}: {key} is {total:.6g}.",
                ):
                    self._check_share(record, measure, weights, wrong, own)
            outputs = self._check_outputs(record, cells.rows[own], predictions[own])
            self._check_observed(record, outputs)
            if record["output_range"]["lower"] is not None and not len(outputs):
                is_known = own.any() and not hasattr(self._black_box, "predict_proba")
                if self._expect(is_known, f"{_name(record)}: output_range must be null."):
                    self._leave(record, "output_range", "the model states no probabilities")
            if self.data["engine"] == "leaf boxes" and self.rules.task == "regression":
                has_bound = record["max_deviation"] is not None
                self._expect(has_bound == own.any(), f"{_name(record)}: max_deviation is absent.")
            if record["witness"] is None and (own & wrong).any():
                self._leave(record, "witness", "the search found none")
            if record["trusted"]:
                self._check_trusted_cells(cells, record, own, wrong)
        is_stated = any(record["index"] == -1 for record in self.data["rules"])
        if self._has_fallback:
            has_region = bool((assigned == -1).any())
            self._expect(is_stated == has_region, "The record of the fallback is wrong.")

    def _check_share(
        self, record: Any, measure: str, weights: np.ndarray, wrong: np.ndarray, own: np.ndarray
    ) -> None:
        """Check an interval and proven shares against an exact share."""
        interval, total = record[f"{measure}_disagreement"], float(weights[own].sum())
        name = f"{_name(record)}: {measure}_disagreement"
        proven = record[f"{measure}_proven"]
        if proven is None or None in (interval[bound] for bound in _BOUNDS):
            # A tiny mass vanishes in the sums of a verification.
            self._expect(
                total < _SUM_ROUNDING, f"{name} is null, although the region is not empty."
            )
            return
        if not self._expect(total > 0, f"{name} must be null, because the region is empty."):
            return
        share = float(weights[own & wrong].sum()) / total
        error = _ROUNDING + _SUM_ROUNDING * max(float(weights.sum()), 1.0) / total
        for low, high in (_BOUNDS[:2], _BOUNDS[2:]):
            if not interval[low] - error <= share <= interval[high] + error:
                self.findings.append(f"{name} is {share:.6g}, not as stated.")
        self._expect(
            proven["agreeing"] <= 1 - share + error and proven["disagreeing"] <= share + error,
            f"{_name(record)}: {measure}_proven contradicts a share of {share:.6g}.",
        )

    def _check_outputs(
        self, record: Any, table: pd.DataFrame, predictions: np.ndarray
    ) -> np.ndarray:
        """Check bounds of the model's output for rows, and return the outputs."""
        if self.rules.task == "regression":
            outputs = np.asarray(predictions, dtype=float)
        else:
            outputs = self._probabilities_of(record, table)
        stated_range, name = record["output_range"], f"{_name(record)}: output_range"
        if not len(outputs):
            return outputs
        low, high = float(outputs.min()), float(outputs.max())
        if None not in (stated_range["lower"], stated_range["upper"]):
            self._expect(
                stated_range["lower"] <= low + _margin(low)
                and high <= stated_range["upper"] + _margin(high),
                f"{name} does not include {low:.6g} to {high:.6g}.",
            )
        if record["max_deviation"] is not None and self.rules.task == "regression":
            _, rule_outputs = self._apply_rules(table)
            deviation = float(np.abs(outputs - rule_outputs.astype(float)).max())
            self._expect(
                deviation <= record["max_deviation"] + _margin(deviation),
                f"{_name(record)}: max_deviation is {deviation:.6g} or more.",
            )
        return outputs

    def _check_observed(self, record: Any, outputs: np.ndarray) -> None:
        """Check that the model has the observed outputs somewhere in the region."""
        for bound in ("observed_lower", "observed_upper"):
            value = record["output_range"][bound]
            if value is not None:
                is_attained = (np.abs(outputs - value) <= _margin(value)).any()
                self._expect(is_attained, f"{_name(record)}: {bound} is no output of the model.")

    def _check_trusted_cells(
        self, cells: Cells, record: Any, own: np.ndarray, wrong: np.ndarray
    ) -> None:
        """Check that all cells of a trusted part agree, and check its volume."""
        name = f"{_name(record)}: the trusted part"
        conditions = self._trusted_conditions(record) or []
        is_trusted = own & cells.meets(conditions)
        self._expect(not (is_trusted & wrong).any(), f"{name} has disagreements.")
        self._expect(self._follows_cuts(cells, conditions), f"{name} does not end at cuts.")
        total = float(cells.volume[own].sum())
        share = float(cells.volume[is_trusted].sum()) / total if total else 0.0
        error = _ROUNDING + _SUM_ROUNDING / max(total, _SUM_ROUNDING)
        stated_share = record["trusted"]["volume_share"]
        self._expect(abs(stated_share - share) <= error, f"{name}: volume_share is {share:.6g}.")

    def _follows_cuts(self, cells: Cells, conditions: Sequence[Any]) -> bool:
        """Return whether conditions include whole cells, up to the rounding of their bounds.

        Otherwise, the cells would differ in volume from the conditions.
        """
        for j, (column, parts) in enumerate(zip(self._columns, cells.columns, strict=True)):
            own = [c for c in conditions if c.features == (j,) and isinstance(c, Interval)]
            if own and not parts.are_covered(own, _BOUND_ROUNDING * (column.top - column.bottom)):
                return False
        return True

    def check_fresh_rows(self, n_rows: int, rng: np.random.Generator) -> None:
        """Check all statements on fresh rows."""
        for measure, size in (("volume", n_rows // 2), ("near", n_rows - n_rows // 2)):
            table = self._draw(size, rng, near=measure == "near")
            assigned, wrong, predictions = self._compare(table)
            for record in self.data["rules"]:
                own = assigned == record["index"]
                self._check_estimates(record, measure, table, own, wrong)
                self._check_outputs(record, table[own], predictions[own])
            if self._has_fallback and (assigned == -1).any():
                is_stated = any(record["index"] == -1 for record in self.data["rules"])
                self._expect(is_stated, "The record of the fallback is absent.")
        for record in self.data["rules"]:
            if record["witness"] is None:
                self._leave(record, "witness", "the search found none")

    def _check_estimates(
        self, record: Any, measure: str, table: pd.DataFrame, own: np.ndarray, wrong: np.ndarray
    ) -> None:
        """Check masses and shares on fresh rows."""
        name, n = _name(record), int(own.sum())
        key, scale = ("volume", 1) if measure == "volume" else ("near_rows", len(self.rows))
        self._check_count(f"{name}: {key}", record[key] / scale, record[key] / scale, n, len(own))
        if record["trusted"]:
            is_trusted = own & self._in_trusted(record, table)
            has_disagreement = (is_trusted & wrong).any()
            self._expect(not has_disagreement, f"{name}: the trusted part has disagreements.")
            if measure == "volume":
                share = record["trusted"]["volume_share"]
                label = f"{name}: volume_share of the trusted part"
                self._check_count(label, share, share, int(is_trusted.sum()), n)
        interval = record[f"{measure}_disagreement"]
        if None in (interval[bound] for bound in _BOUNDS) or not n:
            return
        hits = int((own & wrong).sum())
        bounds = max(interval["lower"], interval["proven_lower"]), interval["upper"]
        self._check_count(f"{name}: {measure}_disagreement", *bounds, hits, n)

    def _check_count(self, label: str, lower: float, upper: float, hits: int, n: int) -> None:
        """Check bounds of a share against the number of hits among fresh rows."""
        if not n:
            return
        low, high = _exact_interval(hits, n, 1 - _RISK)
        if low > upper + _ROUNDING or high < lower - _ROUNDING:
            self.findings.append(
                f"{label} lies in {low:.4g} to {high:.4g} by fresh rows, not as stated."
            )

    def _draw(self, n: int, rng: np.random.Generator, *, near: bool) -> pd.DataFrame:
        """Draw rows of the domain, or near the data."""
        table = {}
        origin = rng.integers(0, len(self.rows), n)
        for column in self._columns:
            values = self.rows[column.name].to_numpy()
            if column.kind == "category":
                listed_values = np.empty(len(column.categories), dtype=object)
                listed_values[:] = column.categories
                draws = values[origin]
                if not near and len(listed_values):
                    draws = listed_values[rng.integers(0, len(listed_values), n)]
            else:
                numbers = values.astype(float)
                low, high = np.full(n, column.lower), np.full(n, column.upper)
                if near:
                    ranges = column.ranges(numbers, self.data["radius"])
                    low, high = (bound[origin] for bound in ranges)
                draws = low + rng.random(n) * (high - low)
                if column.kind == "integer":
                    draws = np.minimum(low + np.floor(rng.random(n) * (high - low + 1)), high)
                draws = draws.astype(object)
            if not near:
                draws = np.where(rng.random(n) < column.missing, np.nan, draws)
            table[column.name] = draws
        return pd.DataFrame(table)


@contextmanager
def _warnings_as_errors() -> Iterator[None]:
    """Raise warnings as errors, for example if conditions do not fit the type of a column."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def _nearest_sample(
    lower: float, disagreeing: float, unknown: float, n_samples: int, confidence: float
) -> tuple[float, float]:
    """Return the interval of a sample whose lower bound is closest to a stated one."""
    share = (lower - disagreeing) / unknown if unknown > 0 else 0.0
    first, last = 0, n_samples
    while first < last:
        middle = (first + last) // 2
        if _exact_interval(middle, n_samples, confidence)[0] < share:
            first = middle + 1
        else:
            last = middle
    intervals = [
        _exact_interval(hits, n_samples, confidence) for hits in {max(first - 1, 0), first}
    ]
    return min(intervals, key=lambda interval: abs(interval[0] - share))


def _exact_interval(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share."""
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(1 - tail, hits + 1, n - hits))
    return low, high


def _differences(column: Column, value: Any, values: pd.Series) -> np.ndarray:
    """Return the distance of a value from the values of all rows in a column."""
    is_missing = values.isna().to_numpy()
    if pd.isna(value):
        return np.where(is_missing, 0.0, 1.0)
    if column.kind == "category":
        return np.where((values == value).to_numpy(dtype=bool, na_value=False), 0.0, 1.0)
    differences = np.abs(float(value) - values.to_numpy(dtype=float)) / column.spread
    return np.where(is_missing, 1.0, differences)


def _row_table(row: Mapping[str, Any]) -> pd.DataFrame:
    """Return a table with one row of a witness."""
    table = pd.DataFrame([dict(row)], dtype=object)
    return table.where(table.notna(), np.nan)


def _plain(value: Any, column: Column) -> Any:
    """Return a value of a row as in the JSON; None if it is missing."""
    if pd.isna(value):
        return None
    if column.kind == "category":
        value = python_value(value)
        # Witnesses have 0 instead of False if the column has the category 0.
        return next((v for v in map(python_value, column.categories) if v == value), value)
    return int(value) if column.kind == "integer" else float(value)


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _name(record: Any) -> str:
    """Return the name of the rule of a record."""
    return f"Rule {record['index'] + 1}" if record["index"] >= 0 else "The fallback"


def _margin(value: float) -> float:
    """Return the rounding error of an output of the model."""
    return _ROUNDING * max(abs(value), 1.0)


def _is_close(one: float, other: float, error: float = 1e-9) -> bool:
    return math.isclose(one, other, rel_tol=error, abs_tol=error)


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, where true and 1 differ."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal, numbers up to rounding."""
    if any(value is None or isinstance(value, str | bool) for value in (one, other)):
        return _is_equal(one, other)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
