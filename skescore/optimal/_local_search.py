"""Local search for decision trees: good incumbents, without a proof.

Trees are changed one node at a time: the cut of a split is optimized while the rest of the tree is
fixed; a split is removed and another leaf is split; or a subtree is replaced by a new, partly
random one. Changes are accepted if they do not increase the loss.

References
----------
M. Á. Carreira-Perpiñán, P. Tavallali: Alternating optimization of decision trees, with application
to learning sparse oblique trees. NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: Largest number of passes over a tree in which its cuts are optimized.
_MAX_PASSES = 20
#: Number of columns with the largest gains among which a random split is drawn.
_N_RANDOM_COLUMNS = 4
#: Number of rounds without an improvement after which the search returns to the best tree.
_PATIENCE = 12
#: Number of removals with the smallest increase of the loss that are tried per round.
_N_REMOVALS = 3


class TreePart:
    """Leaf or split of a tree, which local search changes in place.

    Parameters
    ----------
    output : int or float
        Prediction of the points that reach this part, if it is a leaf.
    cut : int, optional
        Index of the cut; None for a leaf.
    left, right : TreePart, optional
        Children for the points below the cut and for the other points.
    """

    __slots__ = ("cut", "left", "output", "right")

    def __init__(
        self,
        output: Any,
        cut: int | None = None,
        left: TreePart | None = None,
        right: TreePart | None = None,
    ) -> None:
        self.output, self.cut, self.left, self.right = output, cut, left, right

    @classmethod
    def from_tuple(cls, tree: Any) -> TreePart:
        """Convert nested tuples (cut, left, right) to a tree without outputs."""
        if tree is None:
            return cls(None)
        cut, left, right = tree
        return cls(None, cut, cls.from_tuple(left), cls.from_tuple(right))

    def to_tuple(self) -> Any:
        """Return the tree as nested tuples (cut, left, right); a leaf is None."""
        if self.left is None or self.right is None:
            return None
        return self.cut, self.left.to_tuple(), self.right.to_tuple()

    def copy(self) -> TreePart:
        """Return a copy of this part and all parts below it."""
        if self.left is None or self.right is None:
            return TreePart(self.output)
        return TreePart(self.output, self.cut, self.left.copy(), self.right.copy())

    def become(self, other: TreePart) -> None:
        """Replace this part by another one."""
        self.output, self.cut = other.output, other.cut
        self.left, self.right = other.left, other.right

    def children(self) -> tuple[TreePart, TreePart]:
        """Return both children of a split."""
        assert self.left is not None
        assert self.right is not None
        return self.left, self.right

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        if self.cut is None:
            return 1
        return sum(child.n_leaves for child in self.children())


class LocalTreeSearch:
    """Local search over trees of cuts.

    Parameters
    ----------
    points : _Subset
        All points with their levels.
    loss : Misclassification, _SquaredLoss or _AbsoluteLoss
        Loss of the leaves.
    spend : callable
        Adds the work of a step in CPU seconds, and returns whether the search must stop.
    """

    def __init__(self, points: Any, loss: Any, spend: Callable[[float], bool]) -> None:
        self._levels, self._loss, self._spend = points.levels, loss, spend
        self._cut_levels = points.cut_levels
        columns = points.columns
        self._column_of_cut = columns
        self._first_levels = points.first_levels
        self._first_cuts = np.flatnonzero(np.append(True, columns[1:] != columns[:-1]))
        self._n_levels = len(points.cut_of_level)
        self._all = np.arange(len(points.index))
        self._random = np.random.default_rng(0)
        self.is_stopped = False
        #: Number of random changes.
        self.n_rounds = 0

    # --- elementary steps ---

    def _sums_below(self, index: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sum values of some points below each cut, per column of the values."""
        n_columns, n_values = self._levels.shape[1], values.shape[1]
        seconds = 3e-9 * (len(index) * n_columns + self._n_levels) * (n_values + 1) + 4e-5
        self.is_stopped = self._spend(seconds) or self.is_stopped
        flat = self._levels[index].ravel()
        sums = np.empty((len(self._cut_levels), n_values))
        total = np.zeros(self._n_levels + 1)
        for k in range(n_values):
            repeated = np.repeat(values[:, k], n_columns)
            np.cumsum(np.bincount(flat, repeated, minlength=self._n_levels), out=total[1:])
            sums[:, k] = total[self._cut_levels + 1] - total[self._first_levels]
        return sums

    def _is_below(self, cut: int, index: np.ndarray) -> np.ndarray:
        """Return the mask of the points below a cut."""
        mask: np.ndarray = self._levels[index, self._column_of_cut[cut]] <= self._cut_levels[cut]
        return mask

    def _fit_outputs(self, part: TreePart, index: np.ndarray, default: Any = None) -> float:
        """Fit the outputs of the leaves, and return the loss."""
        part.output = self._loss.fit_output(index) if len(index) else default
        if part.cut is None:
            costs = self._loss.costs_of_output(index, part.output)
            return float(costs.sum()) if len(index) else 0.0
        below = self._is_below(part.cut, index)
        left, right = part.children()
        return self._fit_outputs(left, index[below], part.output) + self._fit_outputs(
            right, index[~below], part.output
        )

    def _costs(self, part: TreePart, index: np.ndarray) -> np.ndarray:
        """Return the cost of each point if it reaches a part, with the current outputs."""
        if part.cut is None:
            costs: np.ndarray = self._loss.costs_of_output(index, part.output)
            return costs
        below = self._is_below(part.cut, index)
        costs = np.empty(len(index))
        for child, mask in zip(part.children(), (below, ~below), strict=True):
            costs[mask] = self._costs(child, index[mask])
        return costs

    def _argmin(self, costs: np.ndarray) -> int:
        """Return the position of the smallest cost; ties are broken at random."""
        smallest = costs.min()
        ties = np.flatnonzero(costs <= smallest + 1e-12 * abs(smallest))
        return int(ties[0] if len(ties) == 1 else self._random.choice(ties))

    def _move_cut(self, part: TreePart, index: np.ndarray) -> None:
        """Move a split to the best cut, with both children fixed."""
        left, right = part.children()
        if left.cut is None and right.cut is None and self._loss.sums_determine_loss:
            stats = self._loss.stats[index]
            sums = self._sums_below(index, stats)
            loss_of = self._loss.loss_of_sums
            costs = loss_of(sums) + loss_of(stats.sum(axis=0) - sums)
        else:
            difference = self._costs(left, index) - self._costs(right, index)
            costs = self._sums_below(index, difference[:, None])[:, 0]
        position = self._argmin(costs)
        assert part.cut is not None
        if costs[position] <= costs[part.cut]:
            part.cut = position

    def _move_all_cuts(self, part: TreePart, index: np.ndarray) -> None:
        """Move the splits of a tree, from the root to the leaves."""
        if part.cut is None or not len(index) or self.is_stopped:
            return
        self._move_cut(part, index)
        below = self._is_below(part.cut, index)
        for child, mask in zip(part.children(), (below, ~below), strict=True):
            if child.cut is None and mask.any():
                child.output = self._loss.fit_output(index[mask])
            self._move_all_cuts(child, index[mask])

    def optimize(self, tree: TreePart) -> float:
        """Move splits as long as that reduces the loss, and return the loss."""
        loss = self._fit_outputs(tree, self._all)
        for _ in range(_MAX_PASSES):
            self._move_all_cuts(tree, self._all)
            previous, loss = loss, self._fit_outputs(tree, self._all)
            if self.is_stopped or not loss < previous - 1e-12 * abs(previous):
                break
        return loss

    # --- growth and removal ---

    def _best_split(self, index: np.ndarray, criterion: str, *, is_random: bool) -> tuple[Any, ...]:
        """Return the gain and the cut of the best split, or of one drawn among good columns."""
        stats = self._loss.growth_stats[index]
        sums, total = self._sums_below(index, stats), stats.sum(axis=0)
        impurity = self._loss.impurities
        children = impurity(sums, criterion) + impurity(total - sums, criterion)
        gains = float(impurity(total, criterion)) - children
        if not is_random:
            position = int(gains.argmax())
            return float(gains[position]), position
        best_gains = np.maximum.reduceat(gains, self._first_cuts)
        columns = np.argsort(-best_gains, kind="stable")[:_N_RANDOM_COLUMNS]
        column = int(columns[int(len(columns) * self._random.random() ** 2)])
        begin = int(self._first_cuts[column])
        ends = [*self._first_cuts[1:], len(gains)]
        position = begin + int(gains[begin : int(ends[column])].argmax())
        return float(gains[position]), position

    def grow(self, index: np.ndarray, n_leaves: int, *, is_random: bool = True) -> TreePart:
        """Grow a tree best-first, by default with a random criterion and some random splits."""
        names = self._loss.criteria
        criterion = names[int(self._random.integers(len(names)))] if is_random else names[0]

        def candidate(part: TreePart, points: np.ndarray) -> tuple[Any, ...]:
            takes_random_split = is_random and self._random.random() < 0.5
            gain, cut = self._best_split(points, criterion, is_random=takes_random_split)
            return gain, cut, part, points

        root = TreePart(None)
        open_leaves = [candidate(root, index)]
        for _ in range(n_leaves - 1):
            best = max(range(len(open_leaves)), key=lambda i: open_leaves[i][0])
            gain, cut, part, points = open_leaves.pop(best)
            if gain <= 0 or self.is_stopped:
                break
            part.cut, part.left, part.right = cut, TreePart(None), TreePart(None)
            below = self._is_below(cut, points)
            for child, mask in zip(part.children(), (below, ~below), strict=True):
                open_leaves.append(candidate(child, points[mask]))
        return root

    def _walk(self, part: TreePart, index: np.ndarray) -> Iterator[tuple[TreePart, np.ndarray]]:
        """Yield all parts of a tree with their points."""
        yield part, index
        if part.cut is not None:
            below = self._is_below(part.cut, index)
            for child, mask in zip(part.children(), (below, ~below), strict=True):
                yield from self._walk(child, index[mask])

    def remove_split(self, tree: TreePart, rank: int = 0) -> bool:
        """Replace the split with the smallest effect on the loss by one of its children.

        Parameters
        ----------
        tree : TreePart
            The tree, which is modified.
        rank : int, default=0
            Rank of the removal; 0 is the removal with the smallest increase of the loss.

        Returns
        -------
        bool
            Whether a split was removed.
        """
        removals: list[tuple[float, int, TreePart, TreePart]] = []
        for part, index in self._walk(tree, self._all):
            if part.cut is None:
                continue
            below = self._is_below(part.cut, index)
            left, right = part.children()
            costs = self._costs(left, index), self._costs(right, index)
            current = float(costs[0][below].sum() + costs[1][~below].sum())
            removals += [
                (float(costs[side].sum()) - current, len(removals) + side, part, child)
                for side, child in enumerate((left, right))
            ]
        if not removals:
            return False
        removals.sort(key=lambda removal: removal[:2])
        *_, part, child = removals[min(rank, len(removals) - 1)]
        part.become(child)
        return True

    def add_splits(self, tree: TreePart, n_leaves: int) -> None:
        """Split the leaves with the largest reduction of the loss until there are `n_leaves`."""
        while tree.n_leaves < n_leaves and not self.is_stopped:
            leaf, cut = self._best_leaf_to_split(tree)
            if leaf is None:
                return
            leaf.cut, leaf.left, leaf.right = cut, TreePart(leaf.output), TreePart(leaf.output)
            self._fit_outputs(tree, self._all)

    def _best_leaf_to_split(self, tree: TreePart) -> tuple[TreePart | None, int]:
        """Return the leaf and cut that reduce the loss most, or an impurity if no cut does."""
        leaves = [
            (part, index)
            for part, index in self._walk(tree, self._all)
            if part.cut is None and len(index)
        ]
        for criterion in self._loss.criteria[::-1]:
            splits = [self._best_split(index, criterion, is_random=False) for _, index in leaves]
            best = max(range(len(leaves)), key=lambda i: splits[i][0])
            gain, cut = splits[best]
            if gain > 0:
                return leaves[best][0], cut
        return None, 0

    # --- the search ---

    def load(self, tree: Any) -> TreePart:
        """Convert a tree of nested tuples, and fit its outputs."""
        part = TreePart.from_tuple(tree)
        self._fit_outputs(part, self._all)
        return part

    def polish(self, tree: Any, n_leaves: int) -> tuple[float, Any]:
        """Optimize the cuts of a tree, and add splits until it has the largest number of leaves.

        Parameters
        ----------
        tree : tuple or None
            Nested tuples ``(cut, left, right)``; None for a leaf.
        n_leaves : int
            Largest number of leaves.

        Returns
        -------
        tuple
            Loss and improved tree; the loss is at most the loss of the initial tree.
        """
        part = TreePart.from_tuple(tree)
        self.optimize(part)
        if part.n_leaves < n_leaves:
            self.add_splits(part, n_leaves)
            self.optimize(part)
        return self._fit_outputs(part, self._all), part.to_tuple()

    def improve(self, tree: Any, n_leaves: int, n_rounds: float) -> tuple[float, Any]:
        """Improve a tree by random changes, each followed by an optimization of all splits.

        Parameters
        ----------
        tree : tuple or None
            Initial tree: nested tuples ``(cut, left, right)``; None for a leaf.
        n_leaves : int
            Largest number of leaves.
        n_rounds : float
            Largest number of changes; if infinite, `spend` ends the search.

        Returns
        -------
        tuple
            Loss and improved tree; the loss is at most the loss of the initial tree.
        """
        current = TreePart.from_tuple(tree)
        best_loss = loss = self._fit_outputs(current, self._all)
        best, n_failures = current.copy(), 0
        while self.n_rounds < n_rounds and best_loss > 0 and not self.is_stopped:
            self.n_rounds += 1
            changed = self._perturb(current.copy(), n_leaves)
            changed_loss = self.optimize(changed)
            if self.is_stopped:
                changed_loss = self._fit_outputs(changed, self._all)
            n_failures += 1
            if changed_loss <= loss:
                current, loss = changed, changed_loss
            if changed_loss < best_loss:
                best, best_loss, n_failures = changed.copy(), changed_loss, 0
            elif n_failures % _PATIENCE == 0:
                is_restart = n_failures % (4 * _PATIENCE) == 0
                current = self.grow(self._all, n_leaves) if is_restart else best.copy()
                loss = self.optimize(current)
                if loss < best_loss:
                    best, best_loss, n_failures = current.copy(), loss, 0
        return best_loss, best.to_tuple()

    def _perturb(self, tree: TreePart, n_leaves: int) -> TreePart:
        """Move a leaf to another part of a tree, or replace a random subtree."""
        if self._random.random() < 0.5:
            if self.remove_split(tree, int(self._random.integers(_N_REMOVALS))):
                self._fit_outputs(tree, self._all)
                self.optimize(tree)
            self.add_splits(tree, n_leaves)
            return tree
        splits = [
            (part, index)
            for part, index in self._walk(tree, self._all)
            if part.cut is not None and len(index)
        ]
        if not splits:
            return self.grow(self._all, n_leaves)
        part, index = splits[int(self._random.integers(len(splits)))]
        n_free = n_leaves - tree.n_leaves
        part.become(self.grow(index, part.n_leaves + n_free))
        return tree
