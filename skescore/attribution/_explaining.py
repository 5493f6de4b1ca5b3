"""How B-ReX goes about rows: settings checked, a way of masking chosen, block after block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._random_streams import child_generator
from skescore.attribution._brex_settings import (
    is_signs,
    read_baseline,
    read_rows,
    read_settings,
)
from skescore.attribution._certificates import MOST_PROVEN, counted, evidence
from skescore.attribution._contrasts import row_keys, with_threshold
from skescore.attribution._decisions import Crossroads
from skescore.attribution._flip_search import search_flip_sets
from skescore.attribution._masks import (
    BackgroundMasks,
    KleeneMasks,
    ReplacedMasks,
    SampledMasks,
    SupervaluationMasks,
)
from skescore.attribution._memo import Memo
from skescore.attribution._nearest import nearest_rows, taken
from skescore.attribution._refinement import Certificates, refine
from skescore.attribution._responsibility import Responsibilities, responsibility
from skescore.attribution._result import Attribution

__all__ = ["explain"]

#: Features of which all flips are tried.
_TABLE_LIMIT = 16
#: Questions about one row that are expected per feature, without a table.
_EXPECTED_MASKS, _EXPECTED_FLIPS = 2, 16
#: Stream of random numbers of this explainer.
_STREAM = 2
#: Rows are worked on in blocks of so many, or fewer where witnesses of wide rows fill the memory.
_BLOCK, _CELLS = 4096, 1 << 24

Masker = KleeneMasks | ReplacedMasks | BackgroundMasks | SupervaluationMasks


class _Task:
    """Rows, the model, and how features are masked."""

    def __init__(self, params: Mapping[str, Any], X: Any) -> None:
        self.settings = read_settings(params)
        self.params = params
        self.rows, self.names = read_rows(X)
        self.n_rows, self.n_features = self.rows.shape
        self.max_batch = int(params["max_batch"])
        model, threshold = params["model"], params["threshold"]
        self.model = model
        self.ask = model if threshold is None else with_threshold(model, threshold)
        if not isinstance(self.ask, type) and hasattr(self.ask, "evaluate_kleene"):
            self.ask = self.ask.predict  # a formula is asked like any other black box
        self.n_model_rows = 0
        self._contrast: Any = None
        self._has_contrast = False
        self.keys = row_keys(
            self.rows, int(child_generator(params["random_state"], _STREAM).integers(1 << 63))
        )
        self.masking = self._choose(params["masking"])

    # --- how to mask -------------------------------------------------------------------------

    def _choose(self, masking: str) -> str:
        kleene = hasattr(self.model, "evaluate_kleene")
        if masking == "kleene" and not kleene:
            raise ValueError(
                "masking='kleene' needs a model with evaluate_kleene, such as Formula, got "
                f"{type(self.model).__name__}. Pass masking='sampled', or the value that your "
                "model reads as Unassigned: masking='baseline', baseline=0."
            )
        for name in ("baseline", "background"):
            if masking == name and self.params[name] is None:
                raise ValueError(f"{name} must be given for masking={name!r}, got None.")
        if masking == "supervaluation":
            widest = int(self.roads(slice(None)).differs.sum(axis=1).max())
            if widest > _TABLE_LIMIT:
                raise ValueError(
                    f"masking='supervaluation' takes rows that differ from their contrast in at "
                    f"most {_TABLE_LIMIT} features, got {widest!r}. Pass masking='sampled'."
                )
        if masking != "auto":
            return masking
        if self.params["baseline"] is not None:
            return "baseline"
        exact = kleene and getattr(self.model, "is_read_once", True)
        exact = exact and self.params["contrast"] is None and self.params["threshold"] is None
        if self.settings.certified and self._table_pays(exact):
            return "supervaluation"
        if exact or (kleene and not self.settings.certified):
            return "kleene"
        return "sampled"

    def _table_pays(self, exact: bool) -> bool:
        roads = self.roads(slice(None))
        counts = roads.differs.sum(axis=1)
        columns = roads.two_valued()
        if counts.max() > _TABLE_LIMIT:
            return False
        table = sum(1 << count for count in counts.tolist())
        if len(columns):
            table = min(table, 1 << len(columns))
        expected = (_EXPECTED_MASKS if exact else _EXPECTED_FLIPS) * int(counts.sum())
        if self.params["max_queries"] is not None:
            expected = min(expected, self.params["max_queries"] * self.n_rows)
        return table <= expected

    def contrast(self) -> Any:
        """What flipped features become; None for the other of 0 and 1."""
        if not self._has_contrast:
            self._has_contrast = True
            self._contrast = self.params["contrast"]
            if self._contrast is None and is_signs(self.rows):
                self._contrast = -self.rows
            elif self._contrast is None and self.params["background"] is not None:
                both, chosen, asked = nearest_rows(
                    self.ask, self.rows, self.params["background"], self.max_batch
                )
                self._contrast = taken(both, chosen[:, 0])
                self.n_model_rows += asked
        return self._contrast

    def roads(self, block: slice) -> Crossroads:
        """The model between a block of rows and their contrasts."""
        contrast = self.contrast()
        whole = len(range(self.n_rows)[block]) == self.n_rows
        of_each = contrast is not None and np.ndim(contrast) == 2 and len(contrast) == self.n_rows
        if of_each and not whole:
            contrast = contrast[block]
        return Crossroads(self.ask, self.rows[block], contrast, self.max_batch)

    def masker(self, block: slice) -> Masker:
        """Who tells what masks do to a block of rows."""
        rows = self.rows[block]
        if self.masking == "kleene":
            values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
            return KleeneMasks(self.model, values, self.max_batch)
        if self.masking == "background":
            return BackgroundMasks(self.ask, rows, self.params["background"], self.max_batch)
        if self.masking == "baseline":
            return ReplacedMasks(
                Crossroads(
                    self.ask, rows, read_baseline(self.params, self.n_features), self.max_batch
                )
            )
        roads = self.roads(block)
        if self.masking == "supervaluation":
            return SupervaluationMasks(roads)
        return SampledMasks(roads, self.keys[block], int(self.params["n_completions"]))

    # --- explanations ------------------------------------------------------------------------

    def table(self) -> Attribution:
        """Exact values from all flips."""
        found = responsibility(
            self.ask, self.rows, method="exhaustive", contrast=self.contrast(),
            max_batch=self.max_batch, return_witnesses=True,
        )  # fmt: skip
        assert isinstance(found, Responsibilities)  # as witnesses were asked for
        roads = self.roads(slice(None))
        queries = 1 << roads.differs.sum(axis=1).astype(np.int64)
        shared = len(roads.two_valued())
        if shared and 1 << shared <= queries.sum():
            queries[:] = 1 << shared
        return Attribution(
            found.values, self.names, queries, self.n_model_rows + found.n_queries,
            found.witnesses, found.resolved, found.upper, np.zeros(self.n_rows, dtype=np.bool_),
            self.masking,
        )  # fmt: skip

    def flips(self, block: slice) -> Attribution:
        """Values from a search of flip sets."""
        limit = self.params["max_queries"]
        limit = max(1000, 10 * self.n_features) if limit is None else int(limit)
        roads = self.roads(block)
        # The row itself is the first question.
        searches = search_flip_sets(roads, self.keys[block], limit - 1)
        n, d = roads.differs.shape
        sizes = np.zeros((n, d), dtype=np.int64)
        resolved = ~roads.differs
        witnesses: list[tuple[Any, ...]] = []
        complete = np.array([search.complete for search in searches])
        for place, search in enumerate(searches):
            witness: list[tuple[int, ...] | None] = [None] * d
            for members, exact in zip(search.sets, search.exact, strict=True):
                names = [i for i in range(members.bit_length()) if members >> i & 1]
                for i in names:
                    if not sizes[place, i] or len(names) < sizes[place, i]:
                        sizes[place, i] = len(names)
                        witness[i] = tuple(j for j in names if j != i)
                        resolved[place, i] = exact and len(names) <= search.complete + 1
            if search.complete >= roads.differs[place].sum():
                resolved[place] = True
            witnesses.append(tuple(witness))
        values = _degrees(sizes - 1)
        upper = np.where(resolved, values, 1.0 / (complete[:, None] + 1))
        return Attribution(
            values, self.names, np.array([search.queries + 1 for search in searches]),
            roads.n_queries, tuple(witnesses), resolved, np.maximum(upper, values),
            np.array([search.exhausted for search in searches]), self.masking,
        )  # fmt: skip

    def passes(self, block: slice) -> Attribution:
        """Values from passes of B-ReX."""
        masker = self.masker(block)
        settings, keys = self.settings, self.keys[block]
        n, d = len(keys), self.n_features
        inference = self.params["inference"]
        if inference is None:
            inference = settings.certified and masker.antitone
        memo = Memo(
            masker.same, n, d, inference=bool(inference), max_queries=self.params["max_queries"]
        )
        active = np.arange(n)
        if masker.antitone:  # what keeps the decision when all is masked depends on nothing
            everything = memo.same(active, np.ones((n, d), dtype=np.bool_))
            active = active[everything != 1]
        total, stale = np.zeros((n, d)), np.zeros(n, dtype=np.int64)
        n_passes = np.zeros((n, 1), dtype=np.int64)
        empty = np.empty(0, dtype=np.int64)
        found = [Certificates(empty, empty, np.zeros((0, d), dtype=np.bool_))]
        for number in range(settings.n_iterations):
            if not len(active):
                break
            before = memo.queries[active]
            values, certificates = refine(
                memo, active, keys[active], total[active], stream=number,
                n_blocks=settings.n_blocks, keep_witness=settings.context == "witness",
            )  # fmt: skip
            total[active] += values
            n_passes[active] += 1
            found.append(certificates)
            stale[active] = np.where(memo.queries[active] > before, 0, stale[active] + 1)
            if settings.patience is not None:
                active = active[stale[active] < settings.patience]
        resolved = np.zeros((n, d), dtype=np.bool_)
        upper = np.ones((n, d))
        if not settings.certified:
            values = total / np.maximum(n_passes, 1)
            return self._attribution(values, memo, masker, None, resolved, upper)
        certificates = Certificates(*(np.concatenate(c) for c in zip(*found, strict=True)))
        sizes, sets = counted(certificates, n, d)
        if inference and masker.antitone and d <= MOST_PROVEN:
            proof = evidence(memo, np.arange(n), sizes, sets)
            sizes, sets = proof.sizes, proof.witnesses
            resolved, upper = proof.proven, _degrees(proof.least)
        witnesses = _as_tuples(sizes, sets)
        return self._attribution(_degrees(sizes), memo, masker, witnesses, resolved, upper)

    def _attribution(
        self,
        values: NDArray[np.float64],
        memo: Memo,
        masker: Masker,
        witnesses: tuple[Any, ...] | None,
        resolved: NDArray[np.bool_],
        upper: NDArray[np.float64],
    ) -> Attribution:
        return Attribution(
            values, self.names, memo.queries, masker.n_model_rows, witnesses, resolved, upper,
            memo.exhausted, self.masking,
        )  # fmt: skip


def _degrees(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(sizes >= 0, 1.0 / (1 + np.maximum(sizes, 0)), 0.0)


def _as_tuples(sizes: NDArray[np.int64], sets: NDArray[np.bool_]) -> tuple[Any, ...]:
    n, d = sizes.shape
    witnesses: list[list[tuple[int, ...] | None]] = [[None] * d for _ in range(n)]
    members: dict[tuple[int, int], list[int]] = {}
    for place, feature, other in np.argwhere(sets).tolist():
        members.setdefault((place, feature), []).append(other)
    for place, feature in np.argwhere(sizes >= 0).tolist():
        witnesses[place][feature] = tuple(members.get((place, feature), ()))
    return tuple(map(tuple, witnesses))


def explain(params: Mapping[str, Any], X: Any) -> Attribution:
    """Explain rows.

    Parameters
    ----------
    params : mapping
        Parameters of the explainer.
    X : array-like or DataFrame
        The rows.

    Returns
    -------
    Attribution
        The explanations.
    """
    task = _Task(params, X)
    if task.masking == "supervaluation" and task.settings.certified:
        return task.table()
    work = task.passes
    if task.masking == "sampled" and task.settings.certified:
        work = task.flips
    length = max(1, min(_BLOCK, _CELLS // task.n_features**2))
    if task.masking == "supervaluation":
        length = min(length, max(1, _CELLS >> task.n_features))
    blocks = [slice(start, start + length) for start in range(0, task.n_rows, length)]
    parts = [work(block) for block in blocks]
    if len(parts) == 1:
        joined = parts[0]
    else:
        witnesses = None
        if parts[0].witnesses is not None:
            witnesses = tuple(row for part in parts for row in part.witnesses or ())
        joined = Attribution(
            np.concatenate([part.values for part in parts]), task.names,
            np.concatenate([part.queries for part in parts]),
            sum(part.n_model_rows for part in parts), witnesses,
            np.concatenate([part.resolved for part in parts]),
            np.concatenate([part.upper for part in parts]),
            np.concatenate([part.exhausted for part in parts]), task.masking,
        )  # fmt: skip
    object.__setattr__(joined, "n_model_rows", joined.n_model_rows + task.n_model_rows)
    return joined
