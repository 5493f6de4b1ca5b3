"""Trees and literal rules of PSyKE: CART, Trepan and REAL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from skescore._validation import python_value
from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules.importers._psyke_boxes import checked_target
from skescore.rules.importers._psyke_columns import Discretisation, Literal
from skescore.rules.importers._psyke_reading import Columns, Draft, Reading, known_labels
from skescore.rules.importers._psyke_units import Units
from skescore.rules.importers._trees import shortened_paths, tree_to_ruleset


def cart_columns(extractor: Any) -> list[str]:
    """The columns of PSyKE's CART; of its fair trees, those that are known."""
    tree = extractor._cart_predictor.predictor
    if hasattr(tree, "feature_names_in_"):
        return [str(name) for name in tree.feature_names_in_]
    used = dict.fromkeys(node.feature for node, _ in _fair_steps(tree.root))
    return _known_columns(extractor, [str(name) for name in used])


def _known_columns(extractor: Any, used: Sequence[str]) -> list[str]:
    """The columns of an extractor that does not keep them."""
    for names in (
        [str(n) for n in getattr(extractor.predictor, "feature_names_in_", ())],
        Discretisation.of(extractor, None).column_names,
    ):
        if set(used) <= set(names):
            return names
    return sorted(used)


def literal_columns(extractor: Any, name: str) -> list[str]:
    """The columns of 0 and 1 that PSyKE's REAL or Trepan saw."""
    if name == "Trepan":
        return [str(column) for column in extractor._root.samples.columns[:-1]]
    used = {
        str(column)
        for _, rule in extractor._ruleset.flatten()
        for column in (*rule.true_predicates, *rule.false_predicates)
    }
    return _known_columns(extractor, sorted(used))


# --- CART ----------------------------------------------------------------------------------------


def _fair_steps(node: Any) -> Iterable[tuple[Any, int]]:
    """Inner nodes of a fair tree with a number each, parents before their children."""
    waiting, number = [node], 0
    while waiting:
        node = waiting.pop(0)
        if not node.is_leaf_node():
            yield node, number
            number += 1
            waiting += [node.left, node.right]


def _fair_rules(tree: Any, place: dict[str, int], simplify: bool) -> list[Rule]:
    """Leaves of a fair tree, from left to right; it compares the rows' own numbers."""
    numbers = {id(node): number for node, number in _fair_steps(tree.root)}
    nodes = {number: node for node, number in _fair_steps(tree.root)}
    leaves: dict[int, list[tuple[int, bool]]] = {}
    outputs: list[Any] = []
    waiting: list[tuple[Any, list[tuple[int, bool]]]] = [(tree.root, [])]
    while waiting:
        node, path = waiting.pop()
        if node.is_leaf_node():
            leaves[len(outputs)] = path
            outputs.append(python_value(node.value))
            continue
        number = numbers[id(node)]
        waiting += [(node.right, [*path, (number, False)]), (node.left, [*path, (number, True)])]
    rules = []
    for leaf, path in (shortened_paths(leaves) if simplify else leaves).items():
        conditions = []
        for number, left in path:
            feature, cut = place[str(nodes[number].feature)], float(nodes[number].threshold)
            conditions.append(
                Interval(feature, upper=cut) if left else Interval(feature, lower=cut)
            )
        rules.append(Rule(tuple(conditions), outputs[leaf]))
    return rules


def read_cart(
    extractor: Any, feature_names: Sequence[str] | None, discretisation: Discretisation
) -> Reading:
    """Read PSyKE's CART from the tree that answers its predict."""
    predictor, seen = extractor._cart_predictor.predictor, cart_columns(extractor)
    place = {name: j for j, name in enumerate(seen)}
    simplify = bool(extractor._simplify)
    fair = hasattr(predictor, "root")
    if fair:
        rules = _fair_rules(predictor, place, simplify)
        labelled = type(predictor).__name__ == "FairTreeClassifier"
        given = {rule.output for rule in rules}
    else:
        rules = list(tree_to_ruleset(predictor, feature_names=seen, simplify=simplify).rules)
        labelled = hasattr(predictor, "classes_")
        given = set(predictor.classes_.tolist()) if labelled else set()
    notes: list[str] = []
    units = Units.of(extractor.normalization)
    labels: tuple[Any, ...] = ()
    if labelled:
        labels = known_labels(extractor.predictor, given)
        labels = labels or tuple(sorted(given))
    else:
        units = checked_target(units, seen, notes)
        if hasattr(extractor.predictor, "classes_"):
            notes.append(
                "PSyKE's CART takes labels that are not text for numbers: it has fitted a "
                "regression, whose rules answer means of labels. Give PSyKE text labels, and pass "
                "classes={'0': 0, ...} to get yours back."
            )
    discretisation.check(seen if discretisation.features else ())
    columns = Columns.of(discretisation.names or seen, feature_names)
    drafts: list[Draft] = []
    for rule in rules:
        conditions = _cart_conditions(rule, seen, columns, units, discretisation)
        if conditions is not None:
            output = rule.output if labelled else float(units.answer(rule.output))
            drafts.append(
                Draft(conditions, output, _cart_statistics(rule, predictor, labels, units))
            )
    notes += _missing(len(rules) - len(drafts), len(rules), "CART")
    return Reading(
        columns,
        tuple(drafts),
        "classification" if labelled else "regression",
        labels,
        disjoint=not simplify,
        notes=notes,
    )


def _cart_conditions(
    rule: Rule,
    seen: Sequence[str],
    columns: Columns,
    units: Units,
    discretisation: Discretisation,
) -> tuple[Condition, ...] | None:
    """A leaf's conditions in the user's units, or on the features behind the columns."""
    found: list[Condition] = []
    literals: list[Literal] = []
    for interval in rule.intervals:
        name = seen[interval.feature]
        undone = units.interval(name, interval)
        if undone is None:
            return None
        if not discretisation.features:
            side = undone
            found.append(
                Interval(
                    columns.place[name],
                    side.lower,
                    side.upper,
                    side.lower_closed,
                    side.upper_closed,
                )
            )
            continue
        zero, one = undone.holds(lambda _: np.array([0.0, 1.0])).tolist()
        if not (zero or one):
            return None
        if not (zero and one):
            literals.append((name, one))
    return tuple(found) if found else discretisation.conditions(literals, columns.place)


def _cart_statistics(
    rule: Rule, predictor: Any, labels: Sequence[Any], units: Units
) -> RuleStatistics | None:
    """What the tree saw in a leaf, with counts in the order of the labels."""
    statistics = rule.statistics
    if statistics is None:
        return None
    if statistics.class_counts is not None:
        counts = dict(zip(predictor.classes_.tolist(), statistics.class_counts, strict=True))
        return RuleStatistics(statistics.n_rows, tuple(counts.get(label, 0.0) for label in labels))
    assert statistics.mean is not None
    assert statistics.spread is not None
    return RuleStatistics(
        statistics.n_rows,
        mean=float(units.answer(statistics.mean)),
        spread=statistics.spread * units.target[1],
    )


def _missing(n_missing: int, n_rules: int, name: str) -> list[str]:
    if not n_missing:
        return []
    return [
        f"{n_missing} of the {n_rules} rules of PSyKE's {name} can hold for no row and were left "
        "out; the answers are the same without them."
    ]


# --- REAL and Trepan -----------------------------------------------------------------------------


def read_literals(
    extractor: Any, name: str, feature_names: Sequence[str] | None, discretisation: Discretisation
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
    else:  # children come before their parent, which answers for what they leave over
        rules = [
            ([(str(c), value == 1) for c, value in node.constraints], python_value(node.dominant))
            for node in extractor._root
        ]
    seen = literal_columns(extractor, name)
    if discretisation.features:
        discretisation.check(column for literals, _ in rules for column, _ in literals)
    columns = Columns.of(discretisation.names or seen, feature_names)
    drafts = []
    for literals, label in rules:
        conditions: tuple[Condition, ...] | None
        if discretisation.features:
            conditions = discretisation.conditions(literals, columns.place)
        else:
            conditions = tuple(_on_column(name, columns.place[c], held) for c, held in literals)
        if conditions is not None:
            drafts.append(Draft(conditions, label))
    notes = _missing(len(rules) - len(drafts), len(rules), name)
    labels = known_labels(extractor.predictor, [label for _, label in rules])
    domain = None
    if not discretisation.features:
        width = len(columns.names)
        pairs = [(j, (0, 1)) for j in range(width)]
        domain = Domain((0.0,) * width, (2.0,) * width, tuple(pairs))
    return Reading(columns, tuple(drafts), "classification", labels, domain=domain, notes=notes)


def _on_column(name: str, feature: int, held: bool) -> OneOf:
    """REAL takes everything but 1 for 0; Trepan wants the number itself."""
    if name == "REAL":
        return OneOf(feature, (1,), negated=not held)
    return OneOf(feature, (int(held),))
