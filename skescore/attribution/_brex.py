"""Black-box explanations of single decisions by masking: B-ReX, and a certified variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skescore._random import child_generator
from skescore._validation import as_pandas, check_choice, check_integer, check_number
from skescore.attribution._contrasts import (
    ContrastPairs,
    batches,
    nearest_rows,
    select_values,
    typical_row,
    with_threshold,
)
from skescore.attribution._flip_search import search_flip_sets
from skescore.attribution._masks import (
    BackgroundMasks,
    KleeneMasks,
    ReplacedMasks,
    SampledMasks,
    SupervaluationMasks,
    row_keys,
)
from skescore.attribution._refinement import (
    MOST_PROVEN,
    Certificates,
    MaskCache,
    evidence,
    fewest_masked,
    refine,
)
from skescore.attribution._responsibility import Responsibilities, responsibility
from skescore.attribution._result import Attribution

__all__ = ["BReX"]

_MASKINGS = ("auto", "kleene", "supervaluation", "sampled", "baseline", "background")
_CONTEXTS = ("witness", "original")
_TYPICAL = ("mean", "median", "mode")
#: Maximum number of blocks, as all sets of blocks are tried.
_MAX_BLOCKS = 8
#: Maximum number of features for which all flips are tried.
_TABLE_LIMIT = 16
#: Expected number of queries per row and feature without a table.
_EXPECTED_MASKS, _EXPECTED_FLIPS = 2, 16
#: Stream of random numbers of this explainer.
_STREAM = 2
#: Rows per block; fewer if the witnesses of wide rows would need too much memory.
_BLOCK, _CELLS = 4096, 1 << 24


class _Settings(NamedTuple):
    """Settings of a preset after the overriding parameters are applied."""

    n_blocks: int
    n_iterations: int
    context: str
    #: Number of passes without a new query after which a row is finished.
    patience: int | None
    #: Whether values come from certificates instead of the mean over passes.
    certified: bool


_PRESETS = {
    "certified": _Settings(2, 30, "witness", 6, True),
    "paper": _Settings(4, 1, "witness", None, False),
    "literal": _Settings(4, 20, "original", None, False),
}


class BReX(BaseEstimator):
    """Explain decisions of a classifier by the features whose masking changes them.

    Use it to find the features that a single prediction depends on, and how much. A feature has
    degree 1 if it alone changes the decision, and 1/(1+k) if k other features must be masked (or
    flipped) first. There is no ``fit``; the queries for all rows share batches.

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier, or a function that predicts labels of rows (or one column of
        scores per class; the largest decides). For a regressor, explain a comparison: ``lambda X:
        model.predict(X) > 10``.
    preset : {"certified", "paper", "literal"}, default="certified"
        ``"certified"`` keeps the largest proven degree of each feature, and reports which values
        are exact. ``"paper"`` is one pass of B-ReX with four blocks, in which masks remain active
        while a block is refined. ``"literal"`` is Algorithm 3 of the paper as written: the mean of
        twenty passes in which masks do not remain active. Some of its values are zero by chance.
    masking : str, default="auto"
        Meaning of masking. ``"kleene"``: the model accepts unassigned inputs (``evaluate_kleene``).
        ``"supervaluation"``: all flips are tried, which is exact, for at most 16 features.
        ``"sampled"``: some flips are tried. ``"baseline"``: the feature takes the value in
        `baseline`. ``"background"``: it takes the values of `background` rows in turn, most of
        which must keep the decision. The notes describe ``"auto"``.
    n_blocks : int, optional
        Number of blocks into which features are divided, from 2 to 8; by default 2 for
        ``"certified"``, otherwise 4.
    n_iterations : int, optional
        Number of passes, or their maximum for the certified preset; by default 30 for
        ``"certified"``, 1 for ``"paper"`` and 20 for ``"literal"``.
    context : {"witness", "original"}, optional
        Whether the masks that make the decision depend on a block remain active while it is refined
        (``"witness"``) or not (``"original"``); by default ``"original"`` for ``"literal"``,
        otherwise ``"witness"``. The certified preset requires ``"witness"``.
    patience : int, optional
        Number of passes without a new query after which a row is finished; by default 6 for
        ``"certified"``, and no limit for other presets. To find every relevant feature, use 20 with
        ``n_iterations=100``, which takes more time but hardly more queries.
    max_queries : int, optional
        Maximum number of masks (flips, if sampled) per row. By default there is no limit, except
        for the certified preset with sampled flips: 1000, or 10 per feature if that is more. Does
        not apply to tables of all flips.
    inference : bool, optional
        Whether subsets of a mask that keeps the decision are assumed to keep it too, without a
        query. By default True where this is guaranteed: for ``"kleene"`` and ``"supervaluation"``
        with the certified preset.
    contrast : array-like or DataFrame, optional
        Values that flipped features take: one row, or one per explained row. By default, the other
        value of two-valued rows (0 and 1, or -1 and 1), otherwise the nearest row of `background`
        with another decision.
    baseline : number, array-like, DataFrame, {"mean", "median", "mode"}, optional
        Values of masked features for ``masking="baseline"``: one for all features, one for each, or
        a statistic of `background`.
    background : array-like or DataFrame, optional
        Reference rows, such as the training rows.
    n_completions : int, default=16
        Number of random subsets of a mask that are flipped to estimate whether it keeps the
        decision, for ``masking="sampled"`` with presets other than ``"certified"``.
    threshold : float, optional
        Minimum probability of a decision; rows with a smaller probability have the separate
        decision "undecided".
    max_batch : int, default=8192
        Maximum number of rows per query of the model. Results do not depend on it.
    random_state : int, Generator, SeedSequence or RandomState, optional
        Seed of random cuts, together with the values of the row: equal rows have equal
        explanations, whichever rows are explained with them.

    Notes
    -----
    ``masking="auto"`` selects ``"baseline"`` if `baseline` is given. Otherwise, with the certified
    preset, it selects ``"supervaluation"`` if all flips are affordable. A table of 2**d predictions
    then serves all rows of d <= 16 two-valued features. It is affordable if it is not larger than
    the expected number of queries without it (2 d per row for a read-once formula, 16 d for other
    models). Otherwise, ``"auto"`` selects ``"kleene"`` for models with ``evaluate_kleene`` on which
    this is exact (whose ``is_read_once`` is not False), and ``"sampled"`` for all other models.

    The certified preset differs from the algorithm in the paper. Passes with two blocks end in
    certificates: masks that keep the decision until one more feature is masked. The size of a mask
    counts only features that have certificates themselves, and the smallest mask is used. In Kleene
    logic and supervaluation, predictions imply others, which saves queries and proves values. With
    sampled flips, single features and pairs are tried first. Then random sets that contain no known
    flip set are drawn around features that are in no flip set yet, and reduced to minimal flip
    sets. All subsets of flip sets of up to four features are tested.

    Plain baselines are misleading for models that were fitted on complete rows, because a masked
    row may be unlike any training row. Prefer a contrast or a background with
    ``masking="sampled"``.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import BReX, Formula
    >>> formula = Formula.parse("x1 & (x2 | x3)", n_inputs=4)
    >>> BReX(formula, random_state=0).explain([[1, 1, 0, 0], [1, 1, 1, 1]]).values.tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0]]

    For any classifier, with the nearest row of another class as contrast:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X[:, 2:], y)
    >>> result = BReX(tree, background=X[:, 2:]).explain(X[[70, 120], 2:])
    >>> result.values.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        model: Any,
        *,
        preset: str = "certified",
        masking: str = "auto",
        n_blocks: int | None = None,
        n_iterations: int | None = None,
        context: str | None = None,
        patience: int | None = None,
        max_queries: int | None = None,
        inference: bool | None = None,
        contrast: Any = None,
        baseline: Any = None,
        background: Any = None,
        n_completions: int = 16,
        threshold: float | None = None,
        max_batch: int = 8192,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.preset = preset
        self.masking = masking
        self.n_blocks = n_blocks
        self.n_iterations = n_iterations
        self.context = context
        self.patience = patience
        self.max_queries = max_queries
        self.inference = inference
        self.contrast = contrast
        self.baseline = baseline
        self.background = background
        self.n_completions = n_completions
        self.threshold = threshold
        self.max_batch = max_batch
        self.random_state = random_state

    def explain(self, X: Any) -> Attribution:
        """Explain the decisions of the model on the given rows.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features), or one row
            Rows whose decisions are explained.

        Returns
        -------
        Attribution
            Degrees of responsibility, with numbers of queries, witnesses and flags.

        Raises
        ------
        ValueError
            If a parameter is invalid, missing, or does not fit the model or the rows.
        TypeError
            If the model is a regressor, or cannot be queried.
        """
        settings = self._settings()
        rows = _Rows(self, X)
        masking = self._masking(rows, settings)
        if settings.certified and masking == "supervaluation":
            attribution = self._from_table(rows)
        else:
            length = min(_BLOCK, _CELLS // rows.n_features**2)
            if masking == "supervaluation":
                length = min(length, _CELLS >> rows.n_features)
            by_flips = settings.certified and masking == "sampled"
            attribution = _concatenated(
                [
                    self._from_flips(rows, block)
                    if by_flips
                    else self._from_passes(rows, block, masking, settings)
                    for block in batches(rows.n_rows, length)
                ]
            )
        return replace(attribution, n_model_rows=attribution.n_model_rows + rows.n_model_rows)

    def _settings(self) -> _Settings:
        """Check the parameters that do not depend on rows, and apply them to the preset."""
        check_choice("preset", self.preset, tuple(_PRESETS))
        check_choice("masking", self.masking, _MASKINGS)
        overrides: dict[str, Any] = {}
        for name, low in (("n_blocks", 2), ("n_iterations", 1), ("patience", 1)):
            if (value := getattr(self, name)) is not None:
                overrides[name] = check_integer(name, value, low, remedy="None uses the preset.")
        if self.context is not None:
            overrides["context"] = self.context
        settings = _PRESETS[self.preset]._replace(**overrides)
        if settings.n_blocks > _MAX_BLOCKS:
            raise ValueError(
                f"n_blocks must be at most {_MAX_BLOCKS}, because all sets of blocks are tried, "
                f"got {settings.n_blocks!r}. Pass fewer blocks and more iterations."
            )
        check_choice("context", settings.context, _CONTEXTS)
        if settings.certified and settings.context == "original":
            raise ValueError(
                "context must be 'witness' with preset='certified', got 'original'. With "
                "context='original', masks prove nothing. Pass preset='literal' to use it."
            )
        check_integer(
            "max_queries", self.max_queries, 1, optional=True, remedy="None means no limit."
        )
        check_integer("max_batch", self.max_batch, 1, remedy="8192 is the default.")
        check_integer("n_completions", self.n_completions, 0, remedy="16 is the default.")
        check_number(
            "threshold",
            self.threshold,
            above=0,
            high=1,
            optional=True,
            remedy="It is a probability; omit it to compare labels.",
        )
        return settings

    def _masking(self, rows: _Rows, settings: _Settings) -> str:
        """Return the masking method, resolving "auto"."""
        kleene = hasattr(self.model, "evaluate_kleene")
        if self.masking == "kleene" and not kleene:
            raise ValueError(
                "masking='kleene' needs a model with evaluate_kleene, such as Formula, got "
                f"{type(self.model).__name__}. Pass masking='sampled', or the value that your "
                "model treats as unassigned: masking='baseline', baseline=0."
            )
        for name, value in (("baseline", self.baseline), ("background", self.background)):
            if self.masking == name and value is None:
                raise ValueError(f"{name} must be given for masking={name!r}, got None.")
        if self.masking == "supervaluation":
            widest = int(rows.pairs().differs.sum(axis=1).max())
            if widest > _TABLE_LIMIT:
                raise ValueError(
                    f"masking='supervaluation' requires rows that differ from their contrast in at "
                    f"most {_TABLE_LIMIT} features, got {widest!r}. Pass masking='sampled'."
                )
        if self.masking != "auto":
            return self.masking
        if self.baseline is not None:
            return "baseline"
        exact = kleene and getattr(self.model, "is_read_once", True)
        exact = exact and self.contrast is None and self.threshold is None
        if settings.certified and self._should_tabulate(rows, exact):
            return "supervaluation"
        if exact or (kleene and not settings.certified):
            return "kleene"
        return "sampled"

    def _should_tabulate(self, rows: _Rows, exact: bool) -> bool:
        """Return whether a table of all flips needs no more queries than B-ReX without a table."""
        pairs = rows.pairs()
        counts = pairs.differs.sum(axis=1)
        if counts.max() > _TABLE_LIMIT:
            return False
        table = sum(1 << count for count in counts.tolist())
        if len(columns := pairs.two_valued()):
            table = min(table, 1 << len(columns))
        n_expected = (_EXPECTED_MASKS if exact else _EXPECTED_FLIPS) * int(counts.sum())
        if self.max_queries is not None:
            n_expected = min(n_expected, self.max_queries * rows.n_rows)
        return table <= n_expected

    def _replacement(self, n_features: int) -> Any:
        """Return the values of masked features for masking="baseline"."""
        if not isinstance(self.baseline, str):
            scalar = np.ndim(self.baseline) == 0
            return np.full(n_features, self.baseline) if scalar else self.baseline
        check_choice("baseline", self.baseline, _TYPICAL)
        if self.background is None:
            raise ValueError(
                f"background must be given for baseline={self.baseline!r}, got None. Pass some "
                "rows."
            )
        return typical_row(self.background, self.baseline)

    def _from_table(self, rows: _Rows) -> Attribution:
        """Compute exact values from all flips."""
        exact = responsibility(
            rows.decide,
            rows.table,
            method="exhaustive",
            contrast=rows.contrast,
            max_batch=self.max_batch,
            return_witnesses=True,
        )
        assert isinstance(exact, Responsibilities)  # because witnesses were requested
        pairs = rows.pairs()
        queries = 1 << pairs.differs.sum(axis=1).astype(np.int64)
        shared = len(pairs.two_valued())
        if shared and 1 << shared <= queries.sum():
            queries[:] = 1 << shared
        return Attribution(
            exact.values,
            rows.names,
            queries,
            exact.n_queries,
            exact.witnesses,
            exact.resolved,
            exact.upper,
            np.zeros(rows.n_rows, dtype=np.bool_),
            "supervaluation",
        )

    def _from_flips(self, rows: _Rows, block: slice) -> Attribution:
        """Compute values from a search for flip sets."""
        limit = self.max_queries
        limit = max(1000, 10 * rows.n_features) if limit is None else int(limit)
        pairs = rows.pairs(block)
        # The row itself is the first query.
        searches = search_flip_sets(pairs, rows.keys[block], limit - 1)
        n, d = pairs.differs.shape
        sizes = np.zeros((n, d), dtype=np.int64)
        resolved = ~pairs.differs
        witnesses: list[tuple[Any, ...]] = []
        complete = np.array([search.complete for search in searches])
        for row, search in enumerate(searches):
            witness: list[tuple[int, ...] | None] = [None] * d
            for members, exact in zip(search.sets, search.exact, strict=True):
                for i in members:
                    if not sizes[row, i] or len(members) < sizes[row, i]:
                        sizes[row, i] = len(members)
                        witness[i] = tuple(j for j in members if j != i)
                        resolved[row, i] = exact and len(members) <= search.complete + 1
            if search.complete >= pairs.differs[row].sum():
                resolved[row] = True
            witnesses.append(tuple(witness))
        values = _degrees(sizes - 1)
        upper = np.where(resolved, values, 1.0 / (complete[:, None] + 1))
        return Attribution(
            values,
            rows.names,
            np.array([search.queries + 1 for search in searches]),
            pairs.n_queries,
            tuple(witnesses),
            resolved,
            np.maximum(upper, values),
            np.array([search.exhausted for search in searches]),
            "sampled",
        )

    def _masker(self, rows: _Rows, block: slice, masking: str) -> KleeneMasks | ReplacedMasks:
        table = rows.table[block]
        if masking == "kleene":
            values = table.to_numpy() if isinstance(table, pd.DataFrame) else table
            return KleeneMasks(self.model, values, self.max_batch)
        if masking == "background":
            return BackgroundMasks(rows.decide, table, self.background, self.max_batch)
        if masking == "baseline":
            other = self._replacement(rows.n_features)
            return ReplacedMasks(ContrastPairs(rows.decide, table, other, self.max_batch))
        if masking == "supervaluation":
            return SupervaluationMasks(rows.pairs(block))
        return SampledMasks(rows.pairs(block), rows.keys[block], int(self.n_completions))

    def _from_passes(
        self, rows: _Rows, block: slice, masking: str, settings: _Settings
    ) -> Attribution:
        """Compute values from passes over blocks of features."""
        masker, keys = self._masker(rows, block, masking), rows.keys[block]
        n, d = len(keys), rows.n_features
        inference = settings.certified and masker.antitone
        if self.inference is not None:
            inference = bool(self.inference)
        query, max_queries = masker.keeps_decision, self.max_queries
        cache = MaskCache(query, n, d, inference=inference, max_queries=max_queries)
        active = np.arange(n)
        if masker.antitone:  # if masking everything keeps the decision, it depends on no feature
            everything = cache.keeps_decision(active, np.ones((n, d), dtype=np.bool_))
            active = active[everything != 1]
        sums, n_idle = np.zeros((n, d)), np.zeros(n, dtype=np.int64)
        n_passes = np.zeros((n, 1), dtype=np.int64)
        empty = np.empty(0, dtype=np.int64)
        passes = [Certificates(empty, empty, np.zeros((0, d), dtype=np.bool_))]
        for number in range(settings.n_iterations):
            if not len(active):
                break
            before = cache.queries[active]
            values, certificates = refine(
                cache,
                active,
                keys[active],
                sums[active],
                stream=number,
                n_blocks=settings.n_blocks,
                keep_witness=settings.context == "witness",
            )
            sums[active] += values
            n_passes[active] += 1
            passes.append(certificates)
            n_idle[active] = np.where(cache.queries[active] > before, 0, n_idle[active] + 1)
            if settings.patience is not None:
                active = active[n_idle[active] < settings.patience]
        resolved, upper = np.zeros((n, d), dtype=np.bool_), np.ones((n, d))
        witnesses = None
        if settings.certified:
            all_certificates = Certificates(*(np.concatenate(c) for c in zip(*passes, strict=True)))
            sizes, sets = fewest_masked(all_certificates, n, d)
            if inference and masker.antitone and d <= MOST_PROVEN:
                proof = evidence(cache, sizes, sets)
                sizes, sets = proof.sizes, proof.witnesses
                resolved, upper = proof.proven, _degrees(proof.min_sizes)
            values, witnesses = _degrees(sizes), _as_tuples(sizes, sets)
        else:
            values = sums / np.maximum(n_passes, 1)
        return Attribution(
            values,
            rows.names,
            cache.queries,
            masker.n_model_rows,
            witnesses,
            resolved,
            upper,
            cache.exhausted,
            masking,
        )


class _Rows:
    """The rows of one call and their contrasts, which are computed when needed."""

    def __init__(self, brex: BReX, X: Any) -> None:
        self.table, self.names = _read_rows(X)
        self.n_rows, self.n_features = self.table.shape
        decide = brex.model
        if brex.threshold is not None:
            decide = with_threshold(brex.model, brex.threshold)
        elif hasattr(decide, "evaluate_kleene") and not isinstance(decide, type):
            decide = decide.predict  # a formula is queried like any other black box
        self.decide = decide
        generator = child_generator(brex.random_state, _STREAM)
        self.keys = row_keys(self.table, int(generator.integers(1 << 63)))
        self.n_model_rows = 0
        self._given, self._background = brex.contrast, brex.background
        self._max_batch = int(brex.max_batch)

    @cached_property
    def contrast(self) -> Any:
        """Return the values of flipped features; None if 0 and 1 are exchanged."""
        if self._given is not None:
            return self._given
        if _is_signs(self.table):
            return -self.table
        if self._background is None:
            return None
        all_rows, chosen = nearest_rows(self.decide, self.table, self._background, self._max_batch)
        self.n_model_rows += len(all_rows)
        return select_values(all_rows, chosen[:, 0])

    def pairs(self, block: slice = slice(None)) -> ContrastPairs:
        """Return a block of rows with their contrasts."""
        contrast = self.contrast
        part = self.table[block]
        of_each = np.ndim(contrast) == 2 and len(contrast) == self.n_rows
        if of_each and len(part) < self.n_rows:
            contrast = contrast[block]
        return ContrastPairs(self.decide, part, contrast, self._max_batch)


def _read_rows(X: Any) -> tuple[Any, tuple[str, ...]]:
    """Return rows as a frame or matrix, and the names of the columns."""
    X = as_pandas(X)
    if isinstance(X, pd.Series):
        raise TypeError("X must be rows, got a Series. Pass one row of a frame as X.iloc[[0]].")
    rows: Any = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim == 1 and len(rows):
        rows = rows[None, :]
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(
            f"X must be rows of features, got shape {rows.shape!r}. Pass at least one row."
        )
    if isinstance(rows, pd.DataFrame):
        if not rows.columns.is_unique:
            name = rows.columns[rows.columns.duplicated()][0]
            raise ValueError(f"X must have distinct column names, got {name!r} twice. Rename one.")
        return rows.reset_index(drop=True), tuple(map(str, rows.columns))
    return rows, tuple(f"x{i + 1}" for i in range(rows.shape[1]))


def _is_signs(rows: Any) -> bool:
    """Return whether all values are -1 or +1."""
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    return values.dtype.kind in "if" and bool(np.isin(values, (-1, 1)).all() and np.any(values < 0))


def _degrees(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(sizes >= 0, 1.0 / (1 + np.maximum(sizes, 0)), 0.0)


def _as_tuples(sizes: NDArray[np.int64], sets: NDArray[np.bool_]) -> tuple[Any, ...]:
    """Return witnesses as tuples of features; None for a feature without witness."""
    n, d = sizes.shape
    witnesses: list[list[tuple[int, ...] | None]] = [[None] * d for _ in range(n)]
    members: dict[tuple[int, int], list[int]] = {}
    for row, feature, other in np.argwhere(sets).tolist():
        members.setdefault((row, feature), []).append(other)
    for row, feature in np.argwhere(sizes >= 0).tolist():
        witnesses[row][feature] = tuple(members.get((row, feature), ()))
    return tuple(map(tuple, witnesses))


def _concatenated(parts: Sequence[Attribution]) -> Attribution:
    if len(parts) == 1:
        return parts[0]
    witnesses = None
    if parts[0].witnesses is not None:
        witnesses = tuple(row for part in parts for row in part.witnesses or ())
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("values", "queries", "resolved", "upper", "exhausted")
    }
    n_model_rows = sum(part.n_model_rows for part in parts)
    return replace(parts[0], n_model_rows=n_model_rows, witnesses=witnesses, **columns)
