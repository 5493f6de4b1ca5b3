"""Export of rule sets as ONNX models.

All conditions are evaluated at once as a matrix of rows and conditions. Gates count how many of
their inputs hold (disjunctions, M-of-N, rules). The prediction is that of the first rule that
holds, or follows from sums of votes. The number of nodes does not depend on the number of rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._optional import import_optional
from skescore.rules._conditions import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    Missing,
    OneOf,
    truth_table,
)
from skescore.rules._rule import LinearOutput
from skescore.rules.exporters._common import (
    abstention,
    class_labels,
    class_votes,
    rules_in_order,
)
from skescore.rules.exporters.standards._fields import (
    Field,
    check_fallback,
    prediction_type,
    used_fields,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_OPSET, _ML_OPSET, _IR_VERSION = 17, 2, 8
_NEVER = (math.inf, -math.inf)
_ALWAYS = (-math.inf, math.inf)


class _Graph:
    """Graph under construction: nodes and constants, whose names differ from the inputs."""

    def __init__(self, onnx: Any, inputs: Iterable[str]) -> None:
        self.onnx = onnx
        self.inputs = set(inputs)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Add a constant and return its name."""
        array = np.asarray(values, dtype=dtype)
        name = self._name(f"constant_{len(self.constants)}")
        if array.dtype.kind in "OU":
            texts = [str(text).encode() for text in array.ravel()]
            strings = self.onnx.TensorProto.STRING
            tensor = self.onnx.helper.make_tensor(name, strings, array.shape, texts)
        else:
            tensor = self.onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = self._name(f"{operator}_{len(self.nodes)}")
        node = self.onnx.helper.make_node(
            operator, list(inputs), [name], name=name, domain=domain, **attributes
        )
        self.nodes.append(node)
        return name

    def _name(self, name: str) -> str:
        while name in self.inputs:
            name += "_"
        return name

    def gather(self, matrix: str, columns: Sequence[int]) -> str:
        """Select columns of a matrix."""
        return self.add("Gather", matrix, self.constant(columns, np.int64), axis=1)

    def concatenate(self, parts: Sequence[str]) -> str:
        """Join matrices with equal rows."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def integers(self, flags: str) -> str:
        """Convert truth values to 32-bit integers."""
        return self.add("Cast", flags, to=self.onnx.TensorProto.INT32)


@dataclass
class _Sums:
    """Linear functions of the numeric features, as columns of a matrix."""

    functions: list[tuple[float, tuple[tuple[int, float], ...]]] = field(default_factory=list)

    def add(self, intercept: float, terms: tuple[tuple[int, float], ...]) -> int:
        """Add a function and return its column."""
        self.functions.append((intercept, terms))
        return len(self.functions) - 1

    def build(self, graph: _Graph, numbers: str, columns: dict[int, int]) -> str:
        """Add the terms one after the other, so that sums are rounded as in `predict`."""
        total = graph.constant([[intercept for intercept, _ in self.functions]], np.float64)
        # Broadcasting repeats the constant for each row.
        zeros = graph.add("Mul", graph.gather(numbers, [0]), graph.constant(0.0))
        zeros = graph.add("Where", graph.add("IsNaN", zeros), graph.constant(0.0), zeros)
        total = graph.add("Add", total, zeros)
        for k in range(max(len(terms) for _, terms in self.functions)):
            has_term = [len(terms) > k for _, terms in self.functions]
            pairs = [terms[k] if len(terms) > k else (None, 0.0) for _, terms in self.functions]
            values = graph.gather(numbers, [columns.get(f, 0) for f, _ in pairs])  # type: ignore[arg-type]
            product = graph.add("Mul", values, graph.constant([[c for _, c in pairs]], np.float64))
            longer = graph.add("Add", total, product)
            total = graph.add("Where", graph.constant([has_term]), longer, total)
        return total


@dataclass
class _Gate:
    """Condition that holds if at least `m` of its inputs hold, or its negation."""

    inputs: tuple[int, ...]
    m: int
    negated: bool = False


class _Conditions:
    """Matrix of conditions: comparisons, followed by gates by depth."""

    def __init__(self, graph: _Graph, fields: dict[int, Field], missing: str) -> None:
        self.graph, self.fields, self.missing = graph, fields, missing
        self.columns = {j: k for k, j in enumerate(j for j, f in fields.items() if not f.is_text)}
        self.bounds: list[tuple[int, float, float, bool]] = []
        self.sum_bounds: list[tuple[int, float, float]] = []
        self.sums = _Sums()
        self.texts: list[tuple[int, str]] = []
        self._bits: dict[Any, Any] = {}

    # Until all comparisons are counted, a reference is a kind and an index, such as ("bounds", 3).

    def literal(self, kind: str, entry: Any) -> tuple[str, int]:
        """Return the reference of a comparison; add the comparison if it is new."""
        entries: list[Any] = getattr(self, kind)
        key = (kind, entry)
        if key not in self._bits:
            self._bits[key] = len(entries)
            entries.append(entry)
        return kind, self._bits[key]

    def interval(self, feature: int, low: float, high: float, missing: bool) -> tuple[str, int]:
        """Return the comparison of a number with closed bounds."""
        return self.literal("bounds", (feature, low, high, missing))

    def tree(self, condition: Condition) -> Any:
        """Convert a condition to nested gates: a reference, or (m, negated, parts)."""
        if isinstance(condition, AtLeast):
            return (condition.m, False, [self.tree(part) for part in condition.conditions])
        if isinstance(condition, Linear):
            column = self.sums.add(0.0, condition.terms)
            return self.literal("sum_bounds", (column, *_closed(condition)))
        accepts = truth_table(condition).missing
        if isinstance(condition, Interval):
            return self.interval(condition.feature, *_closed(condition), accepts)
        if isinstance(condition, Missing):
            return self._missing(condition.feature, accepts)
        return self._one_of(condition, accepts)

    def _missing(self, feature: int, accepts: bool) -> Any:
        if not self.fields[feature].is_text:
            return self.interval(feature, *(_NEVER if accepts else _ALWAYS), accepts)
        marker = self.literal("texts", (feature, self.missing))
        return (1, not accepts, [marker])

    def _one_of(self, condition: OneOf, accepts: bool) -> Any:
        feature = condition.feature
        if self.fields[feature].is_text:
            parts = [self.literal("texts", (feature, value)) for value in condition.values]
        else:
            values = [self.fields[feature].float_of(value) for value in condition.values]
            parts = [self.interval(feature, value, value, False) for value in values]
        if condition.negated:
            listed = (1, True, parts)
            return listed if accepts else (2, False, [listed, self._missing(feature, False)])
        return (1, False, [*parts, self._missing(feature, True)] if accepts else parts)

    def build(self, trees: Sequence[Any]) -> str:
        """Return the matrix of the given conditions, one column of 0 and 1 per condition."""
        graph = self.graph
        bits, n_bits, offsets = self._comparisons()
        level: list[tuple[Any, Any]] = []
        columns: dict[int, int] = {}
        depths = {id(tree): _depth(tree) for tree in _nodes(trees)}
        for depth in range(1, max(depths.values()) + 1):
            level = [n for n in _nodes(trees) if depths[id(n)] == depth]
            gates = []
            for m, negated, parts in level:  # type: ignore[misc]
                inputs = tuple(
                    offsets[part[0]] + part[1] if isinstance(part[0], str) else columns[id(part)]
                    for part in parts
                )
                gates.append(_Gate(inputs, m, negated))
            for position, node in enumerate(level):
                columns[id(node)] = n_bits + position
            bits = graph.concatenate([bits, self._gates(bits, n_bits, gates)])
            n_bits += len(gates)
        return graph.gather(bits, [columns[id(tree)] for tree in trees])

    def _gates(self, bits: str, n_bits: int, gates: Sequence[_Gate]) -> str:
        graph = self.graph
        width = max(1, max(len(gate.inputs) for gate in gates))
        pads, empty = graph.constant([0, 0, 0, 1], np.int64), graph.constant(0, np.int32)
        padded = graph.add("Pad", bits, pads, empty)
        indices = [[*gate.inputs, *[n_bits] * (width - len(gate.inputs))] for gate in gates]
        inputs = graph.gather(padded, np.ravel(indices).tolist())
        shape = graph.constant([0, len(gates), width], np.int64)
        axes = graph.constant([2], np.int64)
        counts = graph.add("ReduceSum", graph.add("Reshape", inputs, shape), axes, keepdims=0)
        enough = graph.constant([[gate.m for gate in gates]], np.int32)
        holds = graph.add("GreaterOrEqual", counts, enough)
        negated = graph.constant([[gate.negated for gate in gates]])
        return graph.integers(graph.add("Xor", holds, negated))

    def _comparisons(self) -> tuple[str, int, dict[str, int]]:
        """Return the matrix of elementary comparisons and the first column of each kind."""
        graph, parts = self.graph, []
        offsets, n_bits = {}, 0
        numbers = self._inputs(is_text=False)
        self.sum_matrix = ""
        if self.sums.functions:
            self.sum_matrix = self.sums.build(graph, numbers, self.columns)
        if self.bounds:
            values = graph.gather(numbers, [self.columns[b[0]] for b in self.bounds])
            parts.append(self._within(values, self.bounds))
            offsets["bounds"], n_bits = n_bits, n_bits + len(self.bounds)
        if self.sum_bounds:
            sums = graph.gather(self.sum_matrix, [column for column, *_ in self.sum_bounds])
            parts.append(self._within(sums, [(*bounds, False) for bounds in self.sum_bounds]))
            offsets["sum_bounds"], n_bits = n_bits, n_bits + len(self.sum_bounds)
        if self.texts:
            parts.append(self._equal_texts())
            offsets["texts"], n_bits = n_bits, n_bits + len(self.texts)
        if not parts:  # rules without conditions require only the number of rows
            parts.append(self._no_condition(numbers))
            n_bits = 1
        return graph.concatenate(parts), n_bits, offsets

    def _no_condition(self, numbers: str) -> str:
        if not numbers:
            self.texts.append((next(iter(self.fields)), self.missing))
            return self._equal_texts()
        values = self.graph.gather(numbers, [0])
        return self.graph.integers(self.graph.add("Less", values, values))

    def _inputs(self, *, is_text: bool) -> str:
        names = [f.name for f in self.fields.values() if f.is_text == is_text]
        return self.graph.concatenate(names) if names else ""

    def _within(self, values: str, bounds: Sequence[tuple[int, float, float, bool]]) -> str:
        graph = self.graph
        low = graph.constant([[b[1] for b in bounds]], np.float64)
        high = graph.constant([[b[2] for b in bounds]], np.float64)
        above = graph.add("GreaterOrEqual", values, low)
        within = graph.add("And", above, graph.add("LessOrEqual", values, high))
        accepts = graph.constant([[b[3] for b in bounds]])
        missing = graph.add("And", graph.add("IsNaN", values), accepts)
        return graph.integers(graph.add("Or", within, missing))

    def _equal_texts(self) -> str:
        """Compare codes of texts, which every version of the runtime supports."""
        graph, codes, parts = self.graph, {}, []
        features = [j for j, f in self.fields.items() if f.is_text]
        for position, feature in enumerate(features):
            values = dict.fromkeys(value for j, value in self.texts if j == feature)
            codes.update({(feature, value): k for k, value in enumerate(values)})
            encoded = graph.add(
                "LabelEncoder",
                self.fields[feature].name,
                domain="ai.onnx.ml",
                keys_strings=list(values),
                values_int64s=list(range(len(values))),
                default_int64=-1,
            )
            columns = [t for t in self.texts if features.index(t[0]) == position]
            expected = graph.constant([[codes[t] for t in columns]], np.int64)
            parts.append(graph.add("Equal", encoded, expected))
        order = sorted(range(len(self.texts)), key=lambda i: features.index(self.texts[i][0]))
        joined = graph.integers(graph.concatenate(parts))
        return graph.gather(joined, np.argsort(order).tolist())


def _closed(bounds: Interval | Linear) -> tuple[float, float]:
    """Return closed bounds that the same floats satisfy."""
    low, high = bounds.lower, bounds.upper
    if math.isfinite(low) and not bounds.lower_closed:
        low = math.nextafter(low, math.inf)
    if math.isfinite(high) and not bounds.upper_closed:
        high = math.nextafter(high, -math.inf)
    return low, high


def _constant(value: Any) -> float:
    """Return a number, or the constant part of a linear function."""
    return value.intercept if isinstance(value, LinearOutput) else float(value)


def _nodes(trees: Sequence[Any]) -> list[Any]:
    """Return all gates of nested conditions."""
    result = []
    for tree in trees:
        if not isinstance(tree[0], str):
            result += [tree, *_nodes(tree[2])]
    return result


def _depth(tree: Any) -> int:
    if isinstance(tree[0], str):
        return 0
    return 1 + max((_depth(part) for part in tree[2]), default=0)


class _Model:
    """Graph that computes the predictions of a rule set."""

    def __init__(self, ruleset: RuleSet, missing: str) -> None:
        self.onnx = import_optional("onnx", extra="onnx", purpose="Writing ONNX")
        self.ruleset = ruleset
        check_fallback(ruleset, "ONNX", needs_one=True)
        self.order = rules_in_order(ruleset)
        self.rules = [ruleset.rules[i] for i in self.order]
        self.fields = used_fields(ruleset, "ONNX")
        self.graph = _Graph(self.onnx, [entry.name for entry in self.fields.values()])
        for entry in self.fields.values():
            if missing in entry.values:
                raise ValueError(
                    f"missing={missing!r} represents a missing text, but it is a category of "
                    f"{entry.name!r}. Pass a text that is not a category."
                )
        self.conditions = _Conditions(self.graph, self.fields, missing)
        self.classes = class_labels(ruleset)
        self.missing = missing

    def build(self) -> bytes:
        """Return the serialized model."""
        trees = [
            (len(rule.conditions), False, [self.conditions.tree(c) for c in rule.conditions])
            for rule in self.rules
        ]
        linear = self._linear_columns()
        has_votes = self.ruleset.voting is not None and bool(self.rules)
        # The last column always holds, and represents the fallback.
        matrix = self.conditions.build(trees if has_votes else [*trees, (0, False, [])])
        outputs = self._votes(matrix, linear) if has_votes else self._first(matrix, linear)
        return self._serialized(outputs)

    def _linear_columns(self) -> dict[int, int]:
        """Add linear outputs and weights; return the column of each rule that has one."""
        columns = {}
        for position, rule in enumerate(self.rules):
            part = rule.weight if self.ruleset.classes is not None else rule.output
            is_read = self.ruleset.voting is not None or self.ruleset.classes is None
            if is_read and isinstance(part, LinearOutput) and part.terms:
                columns[position] = self.conditions.sums.add(part.intercept, part.terms)
        return columns

    def _fallback_value(self) -> Any:
        fallback, classes = self.ruleset.fallback, self.ruleset.classes
        if fallback is None:  # some rule always holds
            return 0.0 if classes is None else self.classes[0]
        if fallback.policy == "abstain":
            return math.nan if classes is None else abstention(self.ruleset)
        if classes is None:
            return float(fallback.output)
        return self.classes[classes.index(fallback.output)]

    def _labels(self, labels: Sequence[Any]) -> str:
        kind = prediction_type(self.ruleset, "ONNX")
        dtypes = {"text": object, "integer": np.int64, "number": np.float64, "flag": bool}
        return self.graph.constant(np.array(labels, dtype=dtypes[kind]))

    def _first(self, matrix: str, linear: dict[int, int]) -> dict[str, str]:
        """Add the prediction of the first rule that holds."""
        graph = self.graph
        index = graph.add("ArgMax", matrix, axis=1, keepdims=0)
        numbers = graph.constant([*self.order, -1], np.int64)
        outputs = {"rule": graph.add("Gather", numbers, index)}
        if self.ruleset.classes is not None:
            labels = [self.classes[self.ruleset.classes.index(rule.output)] for rule in self.rules]
            table = self._labels([*labels, self._fallback_value()])
            return {"prediction": graph.add("Gather", table, index), **outputs}
        constants = [_constant(rule.output) for rule in self.rules]
        table = graph.constant([*constants, self._fallback_value()], np.float64)
        result = graph.add("Gather", table, index)
        if linear:
            n_rules = len(self.rules)
            columns = graph.constant([linear.get(i, 0) for i in range(n_rules + 1)], np.int64)
            axes = graph.constant([1], np.int64)
            positions = graph.add("Unsqueeze", graph.add("Gather", columns, index), axes)
            sums = self.conditions.sum_matrix
            values = graph.add("GatherElements", sums, positions, axis=1)
            flags = graph.constant([i in linear for i in range(n_rules + 1)])
            is_linear = graph.add("Gather", flags, index)
            result = graph.add("Where", is_linear, graph.add("Squeeze", values, axes), result)
        return {"prediction": result, **outputs}

    def _values(self, constants: Sequence[float], linear: dict[int, int]) -> str:
        """Return the values of all rules: constants, or linear functions of the row."""
        table = self.graph.constant([constants], np.float64)
        if not linear:
            return table
        columns = [linear.get(i, 0) for i in range(len(self.rules))]
        sums = self.graph.gather(self.conditions.sum_matrix, columns)
        flags = self.graph.constant([[i in linear for i in range(len(self.rules))]])
        return self.graph.add("Where", flags, sums, table)

    def _sum(self, values: str) -> str:
        """Add values of rules one after the other, so that sums are rounded as in `predict`."""
        running = self.graph.add("CumSum", values, self.graph.constant(1, np.int64))
        last = self.graph.constant(len(self.rules) - 1, np.int64)
        return self.graph.add("Gather", running, last, axis=1)

    def _votes(self, matrix: str, linear: dict[int, int]) -> dict[str, str]:
        """Add the joint prediction of all rules that hold."""
        holds = self.graph.add("Cast", matrix, to=self.onnx.TensorProto.BOOL)
        if self.ruleset.classes is None:
            return {"prediction": self._number(matrix, holds, linear)}
        return {"prediction": self._class(matrix, holds, linear)}

    def _covered(self, matrix: str) -> str:
        highest = self.graph.add("ReduceMax", matrix, axes=[1], keepdims=0)
        return self.graph.add("Cast", highest, to=self.onnx.TensorProto.BOOL)

    def _number(self, matrix: str, holds: str, linear: dict[int, int]) -> str:
        graph = self.graph
        weights = graph.constant([[float(rule.weight) for rule in self.rules]], np.float64)  # type: ignore[arg-type]
        constants = [_constant(rule.output) for rule in self.rules]
        zero = graph.constant(0.0)
        products = graph.add("Mul", weights, self._values(constants, linear))
        total = self._sum(graph.add("Where", holds, products, zero))
        covered = self._covered(matrix)
        if self.ruleset.voting == "mean":
            weight = self._sum(graph.add("Where", holds, weights, zero))
            covered = graph.add("Greater", weight, zero)
            total = graph.add("Div", total, weight)
        return graph.add("Where", covered, total, graph.constant(self._fallback_value()))

    def _class(self, matrix: str, holds: str, linear: dict[int, int]) -> str:
        graph, n_classes = self.graph, len(self.classes)
        shares = np.zeros((len(self.rules), n_classes))
        for position, index in enumerate(self.order):
            for k, share in class_votes(self.ruleset, index):
                shares[position, k] = share
        constants = [_constant(rule.weight) for rule in self.rules]
        weights = self._values(constants, linear)
        if linear:
            weights = graph.add("Where", graph.add("IsNaN", weights), graph.constant(0.0), weights)
        axes = graph.constant([2], np.int64)
        products = graph.add(
            "Mul", graph.add("Unsqueeze", weights, axes), graph.constant(shares[None])
        )
        mask = graph.add(
            "And", graph.add("Unsqueeze", holds, axes), graph.constant(shares[None] != 0)
        )
        sums = self._sum(graph.add("Where", mask, products, graph.constant(0.0)))
        winner = graph.add("ArgMax", sums, axis=1, keepdims=0)
        if linear:  # infinite weights may give NaN; NumPy's argmax returns the first NaN
            unknown = graph.integers(graph.add("IsNaN", sums))
            first = graph.add("ArgMax", unknown, axis=1, keepdims=0)
            winner = graph.add("Where", self._covered(unknown), first, winner)
        none = graph.constant(n_classes, np.int64)
        code = graph.add("Where", self._covered(matrix), winner, none)
        return graph.add("Gather", self._labels([*self.classes, self._fallback_value()]), code)

    def _serialized(self, outputs: dict[str, str]) -> bytes:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        kind = prediction_type(self.ruleset, "ONNX")
        element = {
            "text": types.STRING,
            "integer": types.INT64,
            "number": types.DOUBLE,
            "flag": types.BOOL,
        }[kind]
        inputs = [
            helper.make_tensor_value_info(
                f.name, types.STRING if f.is_text else types.DOUBLE, [None, 1]
            )
            for f in self.fields.values()
        ]
        used_names = {f.name for f in self.fields.values()}
        declared = []
        for name, node in outputs.items():
            while name in used_names:
                name += "_"
            self.graph.nodes.append(helper.make_node("Identity", [node], [name], name=name))
            element_type = types.INT64 if name.startswith("rule") else element
            declared.append(helper.make_tensor_value_info(name, element_type, [None]))
        graph = helper.make_graph(self.graph.nodes, "rules", inputs, declared, self.graph.constants)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=versions, ir_version=_IR_VERSION, producer_name="skescore"
        )
        helper.set_model_props(model, {"missing_text": self.missing})
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


def to_onnx(ruleset: RuleSet, missing: str = "<missing>") -> bytes:
    """Write a rule set as an ONNX model.

    Use it to serve rules with ONNX Runtime. Predictions are bit-identical to those of
    :meth:`skescore.rules.RuleSet.predict`.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, with a fallback unless one of them always holds.
    missing : str, default="<missing>"
        Text that represents a missing value, because tensors of texts have no missing values.
        Missing numbers are NaN.

    Returns
    -------
    bytes
        The model, with opset 17. For each feature that the rules use, it has an input of the same
        name with shape (n_rows, 1): 64-bit floats or texts. The output ``prediction`` of shape
        (n_rows,) holds labels or numbers. Unless rules vote, the output ``rule`` holds the index of
        the assigned rule, or -1. A feature that rules only test for missing values is a text if the
        domain of the rules lists its categories, otherwise a number. The metadata contain `missing`
        as ``missing_text``.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    ValueError
        If there is no fallback, if it is the nearest rule, or if the classes, or the categories of
        a feature, have different types.

    Examples
    --------
    >>> import onnxruntime as ort  # doctest: +SKIP
    >>> session = ort.InferenceSession(rules.to("onnx"))  # doctest: +SKIP
    >>> feeds = {}
    >>> for entry in session.get_inputs():  # doctest: +SKIP
    ...     column = X[[entry.name]]
    ...     if entry.type == "tensor(string)":
    ...         column = column.astype(object)
    ...         feeds[entry.name] = column.where(column.notna(), "<missing>").to_numpy()
    ...     else:  # also integers and booleans
    ...         feeds[entry.name] = column.astype(float).to_numpy()
    >>> (prediction,) = session.run(["prediction"], feeds)  # doctest: +SKIP
    """
    return _Model(ruleset, missing).build()
