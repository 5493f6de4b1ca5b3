"""Best decision trees under arbitrary constraints, by enumeration in the order of their loss."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skescore.certificates import bound_weighted_f1
from skescore.constraints import Constraints, UndecidableError, violations
from skescore.editing._premises import are_disjoint
from skescore.optimal import Cuts, F1Bound
from skescore.rules import Condition, Fallback, Interval, RowTable, Rule, RuleSet

#: Maximum number of enumerated trees of one size, and of sums over groups of rows.
MAX_TREES, MAX_SUMS = 6_000_000, 2e10
#: Maximum number of leaves of an enumerated tree.
MAX_LEAVES = 4
#: Maximum number of assignments of classes to the leaves of a tree.
MAX_LABELINGS = 20_000
#: Maximum number of trees of one size whose constraints are checked.
MAX_CHECKS = 100_000


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Rows of a constrained search: their table, target and weights.

    Parameters
    ----------
    table : RowTable
        The rows.
    target : ndarray of shape (n_rows,)
        Class codes, or numbers.
    weights : ndarray of shape (n_rows,)
        Weight of each row.
    classes : tuple or None
        Labels by code; None in regression.
    """

    table: RowTable
    target: np.ndarray
    weights: np.ndarray
    classes: tuple[Any, ...] | None

    @cached_property
    def moments(self) -> np.ndarray:
        """Columns whose sums over the rows of a leaf determine its loss."""
        if self.classes is not None:
            one_hot = np.eye(len(self.classes))[self.target]
            return np.asarray(one_hot * self.weights[:, None])
        y, w = self.target - self.target.mean(), self.weights
        return np.column_stack([w, w * y, w * y**2])

    def losses(self, sums: np.ndarray) -> np.ndarray:
        """Return the loss of the best outputs of leaves; infinite for leaves without weight."""
        if self.classes is not None:
            total = sums.sum(axis=-1)
            loss = total - sums.max(axis=-1)
        else:
            total = sums[..., 0]
            safe = np.where(total > 0, total, 1)
            loss = np.maximum(sums[..., 2] - sums[..., 1] * (sums[..., 1] / safe), 0)
        return np.where(total > 0, loss, np.inf)


@dataclass(frozen=True, eq=False)
class Tree:
    """Tree as leaves: premises, and sums of the moments of their rows."""

    premises: tuple[tuple[Condition, ...], ...]
    sums: np.ndarray


class TreeEnumeration:
    """Trees of one size by increasing loss of their best outputs.

    Parameters
    ----------
    rows : TreeRows
        The rows.
    cuts : Cuts
        Possible cuts of the features.
    """

    def __init__(self, rows: TreeRows, cuts: Cuts) -> None:
        self.rows = rows
        pairs, masks = [], []
        for pair in cuts.pairs():
            holds = rows.table.holds(pair[0])
            if holds.any() and not holds.all():
                pairs.append(pair)
                masks.append(holds)
        self.pairs = pairs
        holds = np.array(masks, dtype=bool).reshape(len(masks), len(rows.table))
        # Rows that no cut separates are always in the same leaf.
        groups, group_of_row = np.unique(np.packbits(holds, axis=0), axis=1, return_inverse=True)
        n_groups = max(1, groups.shape[1])
        first_rows = np.zeros(n_groups, dtype=np.intp)
        first_rows[group_of_row.ravel()[::-1]] = np.arange(len(rows.table))[::-1]
        self.holds = holds[:, first_rows].astype(float)
        self.moments = np.zeros((n_groups, rows.moments.shape[1]))
        np.add.at(self.moments, group_of_row.ravel(), rows.moments)

    def is_feasible(self, n_leaves: int) -> bool:
        """Return whether there are few enough trees of a size to enumerate them."""
        n = len(self.pairs)
        n_trees = {1: 1, 2: n, 3: 2 * n**2}.get(n_leaves, 5 * n**3)
        return n_trees <= MAX_TREES and n_trees * self.moments.size <= MAX_SUMS

    def ordered(self, n_leaves: int, limit: float) -> tuple[np.ndarray, Callable[[int], Tree]]:
        """Return the sorted losses below a limit, and a function that builds the trees."""
        losses = np.concatenate([part.ravel() for part in self._losses(n_leaves)])
        index = np.flatnonzero(losses < limit)
        index = index[np.argsort(losses[index], kind="stable")]
        return losses[index], lambda position: self._build(n_leaves, int(index[position]))

    def _sums(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of both sides of every cut within some rows."""
        moments = self.moments * mask[:, None]
        inside = self.holds @ moments
        return inside, moments.sum(axis=0) - inside

    def _stump_losses(self, mask: np.ndarray) -> np.ndarray:
        inside, outside = self._sums(mask)
        return self.rows.losses(inside) + self.rows.losses(outside)

    def _sides(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the masks of the rows on one side of a cut, and on the other."""
        for holds in self.holds:
            yield holds, 1 - holds
            yield 1 - holds, holds

    def _leaf_loss(self, mask: np.ndarray) -> float:
        return float(self.rows.losses(mask @ self.moments))

    def _losses(self, n_leaves: int) -> Iterator[np.ndarray]:
        """Yield the losses in the order in which `_build` numbers the trees."""
        all_rows = np.ones(len(self.moments))
        if n_leaves == 1:
            yield np.array([self._leaf_loss(all_rows)])
        elif n_leaves == 2:
            yield self._stump_losses(all_rows)
        elif n_leaves == 3:
            for side, other in self._sides():
                yield self._stump_losses(side) + self._leaf_loss(other)
        else:
            for side, other in self._sides():  # chains: a leaf, a leaf, and a stump
                first_loss = self._leaf_loss(other)
                for inner, inner_other in self._sides():
                    loss = first_loss + self._leaf_loss(side * inner_other)
                    yield loss + self._stump_losses(side * inner)
            for holds in self.holds:  # a stump on both sides
                left, right = self._stump_losses(holds), self._stump_losses(1 - holds)
                yield left[:, None] + right[None, :]

    def _build(self, n_leaves: int, number: int) -> Tree:
        """Return the tree with a number in the order of `_losses`."""
        n = len(self.pairs)
        if n_leaves == 1:
            paths: list[list[tuple[int, bool]]] = [[]]
        elif n_leaves == 2:
            paths = [[(number, True)], [(number, False)]]
        elif n_leaves == 3:
            side, cut = divmod(number, n)
            root = (side // 2, side % 2 == 0)
            paths = [[_opposite_side(root)], [root, (cut, True)], [root, (cut, False)]]
        elif number < 4 * n**3:
            side, remainder = divmod(number, 2 * n * n)
            inner_side, cut = divmod(remainder, n)
            root = (side // 2, side % 2 == 0)
            inner = (inner_side // 2, inner_side % 2 == 0)
            paths = [
                [_opposite_side(root)],
                [root, _opposite_side(inner)],
                [root, inner, (cut, True)],
                [root, inner, (cut, False)],
            ]
        else:
            holds, remainder = divmod(number - 4 * n**3, n * n)
            left, right = divmod(remainder, n)
            paths = [
                [(holds, side), (cut, inner)]
                for side, cut in ((True, left), (False, right))
                for inner in (True, False)
            ]
        return self._tree(paths)

    def _tree(self, paths: Sequence[Sequence[tuple[int, bool]]]) -> Tree:
        premises, sums = [], []
        for path in paths:
            mask = np.ones(len(self.moments))
            for cut, is_true in path:
                mask = mask * (self.holds[cut] if is_true else 1 - self.holds[cut])
            conditions = [self.pairs[cut][0 if is_true else 1] for cut, is_true in path]
            premises.append(Rule(tuple(conditions), 0).conditions)
            sums.append(mask @ self.moments)
        return Tree(tuple(premises), np.array(sums))


def _opposite_side(side: tuple[int, bool]) -> tuple[int, bool]:
    return side[0], not side[1]


@dataclass
class SizeBounds:
    """Bounds on the loss of constrained trees with a fixed number of leaves.

    Parameters
    ----------
    lower : float
        Proven lower bound; infinite if no such tree satisfies the constraints.
    upper : float
        Loss of `rules`; infinite if `rules` is None.
    rules : RuleSet or None
        Best known rules that satisfy the constraints.
    """

    lower: float
    upper: float = np.inf
    rules: RuleSet | None = None


@dataclass
class ConstrainedTrees:
    """Search for the best trees that satisfy constraints.

    Trees, and the outputs of their leaves, are checked in the order of their loss. The first that
    satisfies all constraints is optimal. A search that stops earlier has proven that no feasible
    tree has a smaller loss than the next one in this order.

    Parameters
    ----------
    rows : TreeRows
        The rows.
    cuts : Cuts
        Possible cuts of the features.
    constraints : Constraints
        The constraints.
    X : array-like
        The rows in the form that constraints read.
    deadline : float
        Time of ``time.monotonic()`` at which the search ends.
    max_checks : float
        Number of trees, and of checks of their constraints, after which the search ends.
    """

    rows: TreeRows
    cuts: Cuts
    constraints: Constraints
    X: Any
    deadline: float
    max_checks: float
    _n_checks: int = 0
    _rejected: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.enumeration = TreeEnumeration(self.rows, self.cuts)
        self.labels = (
            self.rows.target
            if self.rows.classes is None
            else np.array(self.rows.classes, dtype=object)[self.rows.target]
        )

    def _is_feasible(self, n_leaves: int) -> bool:
        n_labelings = len(self.rows.classes or ()) ** n_leaves
        is_small = n_leaves <= MAX_LEAVES and n_labelings <= MAX_LABELINGS
        return is_small and self.enumeration.is_feasible(n_leaves)

    def _is_late(self, position: int) -> bool:
        """Return whether a limit ends the search before the tree at a position."""
        self._n_checks += 1
        is_late = position >= MAX_CHECKS or self._n_checks > self.max_checks
        return is_late or time.monotonic() > self.deadline

    def solve(self, n_leaves: int, limit: float) -> SizeBounds | None:
        """Search trees with exactly `n_leaves` leaves and a loss below a limit.

        Parameters
        ----------
        n_leaves : int
            Number of leaves.
        limit : float
            Trees with at least this loss are ignored.

        Returns
        -------
        SizeBounds or None
            None if there are too many trees.
        """
        if not self._is_feasible(n_leaves):
            return None
        if not self.enumeration.pairs and n_leaves > 1:
            return SizeBounds(np.inf)
        losses, build = self.enumeration.ordered(n_leaves, limit)
        best = SizeBounds(np.inf)
        for position, loss in enumerate(losses.tolist()):
            if loss >= best.upper:
                break
            if self._is_late(position):
                return SizeBounds(loss, best.upper, best.rules)
            improvement = self._best_outputs(build(position), best.upper)
            if improvement is not None:
                best = SizeBounds(improvement[0], improvement[0], improvement[1])
        return best

    def _best_outputs(self, tree: Tree, limit: float) -> tuple[float, RuleSet] | None:
        """Return the smallest loss below a limit of outputs that satisfy constraints, or None."""
        pairs = self._ordered_leaves(tree)
        ranks = self._class_ranks
        for loss, outputs in self._outputs(tree):
            if loss >= limit:
                return None
            values = outputs if ranks is None else [ranks[int(code)] for code in outputs]
            if any(values[a] > values[b] for a, b in pairs):
                continue
            rules = self._rules_if_feasible(tree, outputs)
            if rules is not None:
                return loss, rules
        return None

    def solve_f1(self, n_leaves: int, known_f1: float, tolerance: float) -> F1Bound | None:
        """Search the constrained trees with exactly `n_leaves` leaves for the largest weighted F1.

        Trees are checked in the order of their errors, until the errors allow no larger F1.

        Parameters
        ----------
        n_leaves : int
            Number of leaves.
        known_f1 : float
            Trees with at most this F1 are ignored.
        tolerance : float
            Largest difference between the bound and the best F1 at which the search may stop.

        Returns
        -------
        F1Bound or None
            The bound, and the best known rules; None if there are too many trees.
        """
        if not self._is_feasible(n_leaves):
            return None
        best, rules = known_f1, None
        if n_leaves > 1 and not self.enumeration.pairs:
            return F1Bound(n_leaves, best, best, None, {}, 0.0)
        class_weights = self.rows.moments.sum(axis=0)
        losses, build = self.enumeration.ordered(n_leaves, np.inf)
        for position, loss in enumerate(losses.tolist()):
            bound = bound_weighted_f1(class_weights.tolist(), loss, n_leaves)
            if bound <= best + tolerance or self._is_late(position):
                return F1Bound(n_leaves, max(bound, best), best, rules, {}, 0.0)
            tree = build(position)
            improvement = self._best_f1(tree, class_weights, best)
            if improvement is not None:
                best, rules = improvement
        return F1Bound(n_leaves, best, best, rules, {}, 0.0)

    def _best_f1(
        self, tree: Tree, class_weights: np.ndarray, known_f1: float
    ) -> tuple[float, RuleSet] | None:
        """Return the largest F1 above `known_f1` of outputs that satisfy constraints, or None."""
        labelings = _labelings(len(class_weights), len(tree.sums))
        one_hot = np.eye(len(class_weights))[labelings]
        hits = (one_hot * tree.sums).sum(axis=1)
        predicted = (one_hot * tree.sums.sum(axis=1)[:, None]).sum(axis=1)
        sizes = predicted + class_weights
        f1 = 2 * hits / np.where(sizes > 0, sizes, 1)
        weighted = f1 @ class_weights / class_weights.sum()
        pairs, ranks = self._ordered_leaves(tree), np.array(self._class_ranks)
        order = np.argsort(-weighted, kind="stable")
        for index in order[weighted[order] > known_f1 + 1e-12].tolist():
            values = ranks[labelings[index]]
            if any(values[a] > values[b] for a, b in pairs):
                continue
            rules = self._rules_if_feasible(tree, tuple(labelings[index].tolist()))
            if rules is not None:
                return float(weighted[index]), rules
        return None

    def _outputs(self, tree: Tree) -> list[tuple[float, tuple[float, ...]]]:
        """Return the outputs of the leaves that may be best, by increasing loss."""
        if self.rows.classes is not None:
            costs = tree.sums.sum(axis=1, keepdims=True) - tree.sums
            codes = range(costs.shape[1])
            choices: list[tuple[float, tuple[float, ...]]] = [
                (float(sum(costs[leaf, code] for leaf, code in enumerate(labels))), labels)
                for labels in itertools.product(codes, repeat=len(costs))
            ]
        else:
            choices = [_block_means(tree.sums, blocks) for blocks in _partitions(len(tree.sums))]
        return sorted(choices, key=lambda choice: choice[0])

    def _rules_if_feasible(self, tree: Tree, outputs: tuple[float, ...]) -> RuleSet | None:
        """Return the rules if they satisfy all constraints, otherwise None."""
        key = frozenset(zip(tree.premises, outputs, strict=True))
        if key in self._rejected:
            return None
        self._n_checks += 1
        rules = self._rules(tree, outputs)
        try:
            is_violated = bool(violations(rules, self.constraints, self.X, self.labels))
        except UndecidableError:
            is_violated = True
        if is_violated:
            self._rejected.add(key)
        return None if is_violated else rules

    def _rules(self, tree: Tree, outputs: tuple[float, ...]) -> RuleSet:
        classes, mean = self.rows.classes, float(self.rows.target.mean())
        values = [classes[int(value)] if classes is not None else value + mean for value in outputs]
        rules = RuleSet(
            [Rule(p, value) for p, value in zip(tree.premises, values, strict=True)],
            self.rows.table.names,
            task="regression" if classes is None else "classification",
            classes=classes,
            ordered=False,
            disjoint=True,
        )
        # Rows with unknown categories get the output of the largest leaf.
        largest = int(np.argmax(tree.sums.sum(axis=1) if classes else tree.sums[:, 0]))
        return rules.replace(domain=rules.domain_around(self.X), fallback=Fallback(values[largest]))

    def _ordered_leaves(self, tree: Tree) -> list[tuple[int, int]]:
        """Return pairs of leaves whose outputs must not decrease; only a necessary condition."""
        pairs = set()
        for name, direction in self.constraints.monotone.items():
            j = self.rows.table.names.index(name)
            for a, b in itertools.permutations(range(len(tree.premises)), 2):
                if _has_lower_point(tree.premises[a], tree.premises[b], j):
                    pairs.add((a, b) if direction == "+" else (b, a))
        return sorted(pairs)

    @cached_property
    def _class_ranks(self) -> list[int] | None:
        classes = self.rows.classes
        if classes is None:
            return None
        order = list(self.constraints.class_order or classes)
        return [order.index(label) for label in classes]


def _has_lower_point(one: Sequence[Condition], other: Sequence[Condition], feature: int) -> bool:
    """Return whether a point of one premise is below a point of the other in `feature` only."""
    intervals = []
    for premise in (one, other):
        on_feature = [c for c in premise if feature in c.features]
        if not all(isinstance(c, Interval) for c in on_feature):
            return False  # rows without the feature are not compared
        intervals.append(on_feature[0] if on_feature else Interval(feature))
    low, high = intervals
    others = [[c for c in premise if feature not in c.features] for premise in (one, other)]
    assert isinstance(low, Interval)
    assert isinstance(high, Interval)
    return low.lower < high.upper and not are_disjoint(*others)


@lru_cache
def _labelings(n_classes: int, n_leaves: int) -> np.ndarray:
    """Return all assignments of classes to leaves, one per row."""
    return np.array(list(itertools.product(range(n_classes), repeat=n_leaves)))


def _partitions(n: int) -> Iterator[list[list[int]]]:
    """Yield all partitions of the numbers below n."""
    if n == 0:
        yield []
        return
    for partition in _partitions(n - 1):
        for i in range(len(partition)):
            yield [[*block, n - 1] if i == k else block for k, block in enumerate(partition)]
        yield [*partition, [n - 1]]


def _block_means(
    sums: np.ndarray, blocks: Sequence[Sequence[int]]
) -> tuple[float, tuple[float, ...]]:
    """Return the squared loss and the means of leaves that share a mean in each block."""
    outputs = [0.0] * len(sums)
    loss = 0.0
    for block in blocks:
        weight, total, squares = sums[list(block)].sum(axis=0)
        mean = total / weight
        loss += max(0.0, float(squares - total * mean))
        for leaf in block:
            outputs[leaf] = float(mean)
    return loss, tuple(outputs)
