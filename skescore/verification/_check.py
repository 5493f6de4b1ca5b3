"""Independent check of a verification: a simpler program that shares no search with it.

Witnesses are checked by calling the model and the rules. In small cases all cells between the cuts
of model and rules are enumerated, and the model is called once in each of them, which confirms or
refutes every share and every trusted part. In larger cases fresh rows can only refute.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skescore._io import json_of
from skescore._validation import check_integer
from skescore.extractors import Oracle
from skescore.rules import Interval, LinearOutput, RuleSet
from skescore.rules._volumes import clopper_pearson
from skescore.verification._ensemble import read_model
from skescore.verification._grid import UnreadableModelError, half_open
from skescore.verification._regions import flat_conditions
from skescore.verification._result import JSON_FORMAT

#: Error of sums of weights.
_ROUNDING = 1e-6
#: Risk that fresh rows refute a correct share.
_RISK = 1e-9


@dataclass(frozen=True)
class VerificationCheck:
    """Result of a check.

    Parameters
    ----------
    verdict : {"confirmed", "not refuted", "rejected"}
        "confirmed" if all cells were enumerated, "not refuted" if only fresh rows were drawn.
    findings : tuple of str
        Statements that are wrong; empty unless rejected.
    method : str
        What was compared.
    """

    verdict: str
    findings: tuple[str, ...]
    method: str

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.method}"]
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

    Parameters
    ----------
    text : str
        JSON of :meth:`Verification.to_json`.
    black_box : estimator
        The fitted model.
    X : array-like or DataFrame
        The rows that the verification was made with.
    max_cells : int, default=200_000
        Largest number of cells that are enumerated.
    n_rows : int, default=1_000_000
        Number of fresh rows otherwise: half uniform in the domain, half near the data.
    random_state : int, default=0
        Seed of the fresh rows.

    Returns
    -------
    VerificationCheck
        The verdict with the wrong statements.

    Raises
    ------
    ValueError
        If the text is no verification.

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
    confirmed: 2 witnesses by the model, all 3 cells of the domain
    """
    check_integer("max_cells", max_cells, 1)
    check_integer("n_rows", n_rows, 2)
    try:
        data = json_of(text)
        if data["format"] != JSON_FORMAT:
            raise ValueError("another format")
        rules = RuleSet.from_json(json.dumps(data["ruleset"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("The text is not the JSON of a verification.") from error
    rows = _table(X, data["domain"])
    checker = _Checker(data, rules, black_box, rows, X)
    columns = checker.columns_of_cells(max_cells)
    if columns is not None:
        cells = _enumerate(columns, rows, X)
        checker.check_cells(cells)
        method = f"all {len(cells.rows)} cells of the domain"
    else:
        checker.check_fresh_rows(n_rows, np.random.default_rng(random_state))
        method = f"{n_rows:,} fresh rows, which can only refute"
    n_witnesses = checker.check_witnesses()
    verdict = "not refuted" if columns is None else "confirmed"
    return VerificationCheck(
        "rejected" if checker.findings else verdict,
        tuple(checker.findings),
        f"{n_witnesses} witnesses by the model, {method}",
    )


def _table(X: Any, domain: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows as a data frame with the columns of the domain."""
    if hasattr(X, "columns"):
        return pd.DataFrame({str(name): np.asarray(X[name], dtype=object) for name in X.columns})
    names = [column["name"] for column in domain]
    return pd.DataFrame(np.asarray(X), columns=names).astype(object)


@dataclass(frozen=True)
class _ColumnCells:
    """Cells of a column: representative values, and by cell a function of the row's mass."""

    values: list[Any]
    weights: np.ndarray
    near: np.ndarray


@dataclass(frozen=True)
class _Cells:
    """Cells of the domain with representative rows."""

    rows: pd.DataFrame
    volume: np.ndarray
    near: np.ndarray


def _enumerate(columns: Sequence[_ColumnCells], rows: pd.DataFrame, like: Any) -> _Cells:
    """Combine the cells of all columns."""
    positions = [
        grid.ravel()
        for grid in np.meshgrid(*(np.arange(len(c.values)) for c in columns), indexing="ij")
    ]
    volume, near = np.ones(len(positions[0])), np.zeros(len(positions[0]))
    table = {}
    for name, column, position in zip(rows.columns, columns, positions, strict=True):
        values = np.empty(len(column.values), dtype=object)
        values[:] = column.values
        table[name] = values[position]
        volume *= column.weights[position]
    for r in range(len(rows)):
        products = np.ones(len(near))
        for column, position in zip(columns, positions, strict=True):
            products *= column.near[r][position]
        near += products
    return _Cells(pd.DataFrame(table), volume, near)


class _Checker:
    """Check the parts of a verification; collects wrong statements in `findings`."""

    def __init__(
        self, data: Any, rules: RuleSet, black_box: Any, rows: pd.DataFrame, X: Any
    ) -> None:
        self.data = data
        self.rules = rules
        self.rows = rows
        self.like = X
        self.findings: list[str] = []
        self._black_box = black_box
        self._oracle = Oracle(black_box, like=X)

    def restored(self, table: pd.DataFrame) -> Any:
        """Return a table in the container and with the types of the original rows."""
        if hasattr(self.like, "dtypes") and hasattr(self.like, "iloc"):
            result = table.copy()
            for name, original in zip(result.columns, self.like.columns, strict=True):
                dtype = self.like[original].dtype
                if pd.api.types.is_integer_dtype(dtype) and result[name].isna().any():
                    dtype = "float64"
                result[name] = result[name].astype(dtype)
            return result.set_axis(list(self.like.columns), axis=1)
        return table.to_numpy(dtype=float)

    def _compare(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rule of each row, whether rules and model differ, and the predictions."""
        container = self.restored(table)
        predictions = self._oracle.query(container, cache=False)
        matched = table.set_axis(self._rule_names(table), axis=1)
        assigned = self.rules.assign(matched)
        is_predicted = (assigned >= 0) | (self.rules.fallback is not None)
        wrong = np.zeros(len(table), dtype=bool)
        if is_predicted.any():
            outputs = self.rules.predict(matched[is_predicted])
            if self.data["tolerance"] is None:
                wrong[is_predicted] = predictions[is_predicted] != outputs
            else:
                deviations = np.abs(predictions[is_predicted].astype(float) - outputs)
                wrong[is_predicted] = ~(deviations <= self.data["tolerance"])
        return assigned, wrong, predictions

    def _rule_names(self, table: pd.DataFrame) -> list[str]:
        """Return names of the columns by which the rules recognize them."""
        names = [str(name) for name in table.columns]
        if set(self.rules.feature_names) <= set(names):
            return names
        return list(self.rules.feature_names)

    def check_witnesses(self) -> int:
        """Call rules and model for every witness; return the number of witnesses."""
        count = 0
        for record in self.data["rules"]:
            witnesses = [w for w in (record["witness"], record["worst"]) if w]
            for witness in witnesses:
                count += 1
                table = pd.DataFrame([witness["row"]], dtype=object)
                table = table.where(table.notna(), np.nan)
                assigned, wrong, predictions = self._compare(table)
                label = f"witness of rule {record['index'] + 1}"
                if assigned[0] != record["index"]:
                    self.findings.append(f"The {label} is predicted by rule {assigned[0] + 1}.")
                elif not wrong[0]:
                    self.findings.append(f"On the {label}, rules and model agree.")
                elif not _same(predictions[0], witness["prediction"]):
                    self.findings.append(f"For the {label} the model predicts {predictions[0]!r}.")
        return count

    def columns_of_cells(self, max_cells: int) -> list[_ColumnCells] | None:
        """Return the cells of each column.

        None if there are too many, no cuts are known, or predictions of rules vary in the cells.
        """
        if any(isinstance(rule.output, LinearOutput) for rule in self.rules.rules):
            return None
        try:
            read = read_model(self._black_box, self.like, list(self.rows.columns))
        except UnreadableModelError:
            return None
        cuts: list[set[float]] = [set() for _ in self.rows.columns]
        names = list(self.rows.columns)
        positions = (
            [names.index(name) for name in self.rules.feature_names]
            if set(self.rules.feature_names) <= set(names)
            else list(range(len(names)))
        )
        for ruleset, columns in ((self.rules, positions), (read.ruleset, read.columns)):
            for rule in ruleset.rules:
                for condition in flat_conditions(rule.conditions):
                    if isinstance(condition, Interval):
                        cuts[columns[condition.feature]].update(half_open(condition))
        cells: list[_ColumnCells] = []
        n_cells = 1
        for column, column_cuts in zip(self.data["domain"], cuts, strict=True):
            edges = sorted(cut for cut in column_cuts if math.isfinite(cut))
            if n_cells * (len(edges) + 1) > 4 * max_cells * len(self.rows):
                return None
            cells.append(self._cells_of(column, edges))
            n_cells *= len(cells[-1].values)
            if n_cells > max_cells:
                return None
        return cells

    def _cells_of(self, column: dict[str, Any], edges: Sequence[float]) -> _ColumnCells:
        """Return the cells of one column."""
        values = self.rows[column["name"]]
        is_missing = values.isna().to_numpy()
        share = column["missing"]
        cells: list[tuple[Any, float, np.ndarray]] = []
        if share > 0 or is_missing.any():
            cells.append((np.nan, share, is_missing * 1.0))
        if column["kind"] == "category":
            weight = (1 - share) / max(len(column["values"]), 1)
            for value in column["values"]:
                cells.append((value, weight, (values == value).to_numpy() * 1.0))
        else:
            cells += self._number_cells(column, values.to_numpy(dtype=float), edges)
        return _ColumnCells(
            [cell[0] for cell in cells],
            np.array([cell[1] for cell in cells]),
            np.array([cell[2] for cell in cells]).T,
        )

    def _number_cells(
        self, column: dict[str, Any], values: np.ndarray, edges: Sequence[float]
    ) -> list[tuple[float, float, np.ndarray]]:
        """Return the intervals of a column of numbers, or its integers."""
        share, lower, upper = 1 - column["missing"], column["lower"], column["upper"]
        low, high = self._ranges(column, values)
        bottom = min(lower, np.nanmin(values)) if not np.isnan(values).all() else lower
        top = max(upper, np.nanmax(values)) if not np.isnan(values).all() else upper
        inner = [edge for edge in edges if bottom < edge <= top]
        cells = []
        for start, stop in itertools.pairwise([bottom, *inner, math.inf]):
            if column["kind"] == "integer":
                first, last = math.ceil(start), min(top, math.ceil(min(stop, top + 1)) - 1)
                if first > last:
                    continue
                n = max(min(last, upper) - max(first, lower) + 1, 0)
                weight = share * n / (upper - lower + 1)
                overlap = np.minimum(last, high) - np.maximum(first, low) + 1
                near = np.maximum(overlap, 0) / (high - low + 1)
                cells.append((float(first), weight, np.nan_to_num(near)))
                continue
            end = min(stop, top)
            length = upper - lower
            is_point = start <= lower < stop
            weight = max(min(end, upper) - max(start, lower), 0) / length if length else is_point
            overlap = np.maximum(np.minimum(end, high) - np.maximum(start, low), 0)
            with np.errstate(invalid="ignore", divide="ignore"):
                inside = (start <= low) & (low < stop)
                near = np.where(high > low, overlap / (high - low), inside * 1.0)
            cells.append((start, share * weight, np.nan_to_num(near)))
        return cells

    def _ranges(self, column: dict[str, Any], values: np.ndarray) -> tuple[Any, Any]:
        """Return the range of the neighborhood of each row in a column."""
        spread = float(np.nanstd(values)) if not np.isnan(values).all() else 0.0
        reach = self.data["radius"] * (spread or 1.0)
        with np.errstate(invalid="ignore"):
            low = np.maximum(values - reach, np.nanmin(values) if spread else values)
            high = np.minimum(values + reach, np.nanmax(values) if spread else values)
        if column["kind"] == "integer":
            return np.ceil(low), np.floor(high)
        return low, high

    def check_cells(self, cells: _Cells) -> None:
        """Compare all statements with the enumerated cells."""
        assigned, wrong, _ = self._compare(cells.rows)
        for name, weights in (("volume", cells.volume), ("near", cells.near)):
            has_output = (assigned >= 0) | (self.rules.fallback is not None)
            self._check_share(f"{name}_disagreement", self.data, weights, wrong, has_output)
            for record in self.data["rules"]:
                own = assigned == record["index"]
                self._check_share(f"{name}_disagreement", record, weights, wrong, own)
        self._check_trusted(cells.rows, assigned, wrong)

    def _check_share(
        self, name: str, record: Any, weights: np.ndarray, wrong: np.ndarray, own: np.ndarray
    ) -> None:
        """Compare an interval with an exact share."""
        interval, total = record[name], float(weights[own].sum())
        if interval["lower"] is None or total < _ROUNDING:
            return
        share = float(weights[own & wrong].sum()) / total
        proven = interval["proven_lower"] - _ROUNDING, interval["proven_upper"] + _ROUNDING
        sampled = interval["lower"] - _ROUNDING, interval["upper"] + _ROUNDING
        for low, high in (proven, sampled):
            if not low <= share <= high:
                self.findings.append(f"{_name(record)}: {name} is {share:.6g}, not as stated.")

    def _check_trusted(self, table: pd.DataFrame, assigned: np.ndarray, wrong: np.ndarray) -> None:
        """Look for disagreement in the trusted parts."""
        for record in self.data["rules"]:
            if not record["trusted"]:
                continue
            part = RuleSet.from_json(json.dumps(record["trusted"]["rules"]))
            bad = (assigned == record["index"]) & wrong
            if bad.any() and part.covers(table[bad]).any():
                self.findings.append(f"{_name(record)}: the trusted part has disagreements.")

    def check_fresh_rows(self, n_rows: int, rng: np.random.Generator) -> None:
        """Compare all statements with fresh rows."""
        for name, size in (("volume", n_rows // 2), ("near", n_rows - n_rows // 2)):
            table = self._draw(size, rng, near=name == "near")
            assigned, wrong, _ = self._compare(table)
            has_output = (assigned >= 0) | (self.rules.fallback is not None)
            self._check_estimate(name, self.data, wrong, has_output)
            for record in self.data["rules"]:
                self._check_estimate(name, record, wrong, assigned == record["index"])
            self._check_trusted(table, assigned, wrong)

    def _check_estimate(self, name: str, record: Any, wrong: np.ndarray, own: np.ndarray) -> None:
        """Compare an interval with that of fresh rows."""
        interval, n = record[f"{name}_disagreement"], int(own.sum())
        if interval["lower"] is None or not n:
            return
        low, high = clopper_pearson(int((own & wrong).sum()), n, 1 - _RISK)
        if low > interval["upper"] + _ROUNDING or high < interval["lower"] - _ROUNDING:
            self.findings.append(
                f"{_name(record)}: {name}_disagreement lies in {low:.4g} to {high:.4g} by fresh "
                "rows, not as stated."
            )

    def _draw(self, n: int, rng: np.random.Generator, *, near: bool) -> pd.DataFrame:
        """Draw rows of the domain, or near the data."""
        table = {}
        origin = rng.integers(0, len(self.rows), n)
        for column in self.data["domain"]:
            values = self.rows[column["name"]].to_numpy()
            if column["kind"] == "category":
                listed_values = np.empty(len(column["values"]), dtype=object)
                listed_values[:] = column["values"]
                drawn = values[origin]
                if not near and len(listed_values):
                    drawn = listed_values[rng.integers(0, len(listed_values), n)]
            else:
                numbers = values.astype(float)
                low, high = np.full(n, column["lower"]), np.full(n, column["upper"])
                if near:
                    low, high = (bound[origin] for bound in self._ranges(column, numbers))
                drawn = low + rng.random(n) * (high - low)
                if column["kind"] == "integer":
                    drawn = np.minimum(low + np.floor(rng.random(n) * (high - low + 1)), high)
                drawn = drawn.astype(object)
            if not near:
                drawn = np.where(rng.random(n) < column["missing"], np.nan, drawn)
            table[column["name"]] = drawn
        return pd.DataFrame(table)


def _name(record: Any) -> str:
    """Return the name of the rule of a record, or of the whole list."""
    if "index" not in record:
        return "The list"
    return f"Rule {record['index'] + 1}" if record["index"] >= 0 else "The fallback"


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, float):
        return math.isclose(float(one), other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
