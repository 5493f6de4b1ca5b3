"""Black-box explanations of single decisions by masking: B-ReX, and our certified variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skescore._random import child_generator
from skescore._text import did_you_mean
from skescore.attribution._bits import as_whole
from skescore.attribution._contrasts import row_keys, typical_row, with_threshold
from skescore.attribution._decisions import Crossroads
from skescore.attribution._flip_search import search_flip_sets
from skescore.attribution._masks import (
    BackgroundMasks,
    KleeneMasks,
    ReplacedMasks,
    SampledMasks,
    SupervaluationMasks,
)
from skescore.attribution._nearest import nearest_rows, taken
from skescore.attribution._refinement import (
    MOST_PROVEN,
    Certificates,
    Memo,
    counted,
    evidence,
    refine,
)
from skescore.attribution._responsibility import Responsibilities, responsibility
from skescore.attribution._result import Attribution

__all__ = [
    "BReX",
    "Settings",
    "explain",
    "is_signs",
    "one_of",
    "read_baseline",
    "read_rows",
    "read_settings",
]


# --- what B-ReX is told: presets, parameters that override them, and rows ------------------------

_MASKINGS = ("auto", "kleene", "supervaluation", "sampled", "baseline", "background")
_CONTEXTS = ("witness", "original")
_TYPICAL = ("mean", "median", "mode")
_MOST_BLOCKS = 8


class Settings(NamedTuple):
    """What a preset and the parameters that override it say.

    Parameters
    ----------
    n_blocks, n_iterations : int
        How features are cut, and how often.
    context : {"witness", "original"}
        Whether masks stay on while a block is refined.
    patience : int or None
        Passes without a new question after which a row is done.
    certified : bool
        Whether certificates count, and not the mean over passes.
    """

    n_blocks: int
    n_iterations: int
    context: str
    patience: int | None
    certified: bool


_PRESETS = {
    "certified": Settings(2, 30, "witness", 6, True),
    "paper": Settings(4, 1, "witness", None, False),
    "literal": Settings(4, 20, "original", None, False),
}


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check a choice.

    Parameters
    ----------
    name : str
        What the caller calls it.
    value : object
        What came.
    allowed : tuple of str
        What there is to choose from.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if value not in allowed:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}. "
            f"{did_you_mean(value, allowed)}".rstrip()
        )


def read_settings(params: Mapping[str, Any]) -> Settings:
    """Check the parameters that need no rows.

    Parameters
    ----------
    params : mapping
        Parameters of the explainer.

    Returns
    -------
    Settings
        The preset with what overrides it.

    Raises
    ------
    ValueError
        If something is not allowed.
    """
    one_of("preset", params["preset"], tuple(_PRESETS))
    one_of("masking", params["masking"], _MASKINGS)
    preset = _PRESETS[params["preset"]]
    given = {
        name: params[name]
        for name in ("n_blocks", "n_iterations", "context", "patience")
        if params[name] is not None
    }
    for name, low in (("n_blocks", 2), ("n_iterations", 1), ("patience", 1)):
        if name in given:
            given[name] = as_whole(name, given[name], low=low, remedy="Leave it to the preset.")
    settings = preset._replace(**given)
    if settings.n_blocks > _MOST_BLOCKS:
        raise ValueError(
            f"n_blocks must be at most {_MOST_BLOCKS}, as all sets of blocks are tried, got "
            f"{settings.n_blocks!r}. Take a few blocks and more iterations."
        )
    one_of("context", settings.context, _CONTEXTS)
    if settings.certified and settings.context == "original":
        raise ValueError(
            "context must be 'witness' with preset='certified', got 'original', in which no mask "
            "certifies anything. Pass preset='literal'."
        )
    if params["max_queries"] is not None:
        as_whole("max_queries", params["max_queries"], low=1, remedy="None stands for no limit.")
    as_whole("max_batch", params["max_batch"], low=1, remedy="8192 is the default.")
    as_whole("n_completions", params["n_completions"], low=0, remedy="16 is the default.")
    threshold = params["threshold"]
    if threshold is not None and not 0 < threshold <= 1:
        raise ValueError(
            f"threshold must be above 0 and at most 1, got {threshold!r}. It is a probability; "
            "leave it out to compare labels."
        )
    return settings


def read_rows(X: Any) -> tuple[Any, tuple[str, ...]]:
    """Check rows.

    Parameters
    ----------
    X : array-like or DataFrame
        One row or many.

    Returns
    -------
    tuple of (array or DataFrame, tuple of str)
        The rows, and the names of their columns.

    Raises
    ------
    ValueError, TypeError
        If it is no table of rows.
    """
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense, got a sparse matrix. Pass X.toarray().")
    if hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame):
        X = X.to_pandas()
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
            twice = rows.columns[rows.columns.duplicated()][0]
            raise ValueError(f"X must name its columns apart, got {twice!r} twice. Rename one.")
        return rows.reset_index(drop=True), tuple(map(str, rows.columns))
    return rows, tuple(f"x{i + 1}" for i in range(rows.shape[1]))


def is_signs(rows: Any) -> bool:
    """Tell whether rows are of -1 and +1.

    Parameters
    ----------
    rows : array or DataFrame
        The rows.

    Returns
    -------
    bool
        Whether there is nothing else, and some -1.
    """
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    return values.dtype.kind in "if" and bool(np.isin(values, (-1, 1)).all() and np.any(values < 0))


def read_baseline(params: Mapping[str, Any], n_features: int) -> Any:
    """Give the values of masked features.

    Parameters
    ----------
    params : mapping
        Parameters of the explainer.
    n_features : int
        How many are needed.

    Returns
    -------
    array-like or DataFrame
        One row.

    Raises
    ------
    ValueError
        If a word is unknown, or there is no background for it.
    """
    value = params["baseline"]
    if isinstance(value, str):
        one_of("baseline", value, _TYPICAL)
        if params["background"] is None:
            raise ValueError(
                f"background must be given for baseline={value!r}, got None. Pass some rows."
            )
        return typical_row(params["background"], value)
    return np.full(n_features, value) if np.ndim(value) == 0 else value


# --- how B-ReX goes about rows: settings checked, a way of masking chosen, block after bl --------

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


# --- Black-box explanations of single decisions by masking: B-ReX, and our certified vari --------


class BReX(BaseEstimator):
    """Explain decisions of any classifier by which features, masked, would change them.

    Use it to find the features that a single answer depends on, and how much: a feature has degree
    1 if it decides alone, and 1/(1+k) if k others must be masked (or flipped) first. No fitting: it
    asks the model about each row, all rows in common calls.

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier, or a function that answers rows with labels (or with one
        column of scores per class, of which the largest decides). Of a regressor, explain a
        question: ``lambda X: model.predict(X) > 10``.
    preset : {"certified", "paper", "literal"}, default="certified"
        ``"certified"`` keeps the best that some answer shows of each feature, and tells what is
        proven. ``"paper"`` is one pass of B-ReX with four blocks, in which masks stay on while a
        block is refined. ``"literal"`` is the mean of twenty passes in which they do not, as the
        paper's Algorithm 3 is written; its maps are zero now and then.
    masking : str, default="auto"
        What a masked feature is. ``"kleene"``: the model reads Unassigned itself
        (``evaluate_kleene``). ``"supervaluation"``: all flips are tried, which is exact, of at most
        16 features. ``"sampled"``: some flips are tried. ``"baseline"``: it has the value of
        `baseline`. ``"background"``: it has the values of `background` rows in turn, and most must
        keep the decision. ``"auto"`` is explained in the notes.
    n_blocks : int, optional
        Blocks that features are cut into, at most 8; that of the preset if not given.
    n_iterations : int, optional
        Passes; of the certified preset the most.
    context : {"witness", "original"}, optional
        Whether the masks that made the decision depend on a block stay on while it is refined.
    patience : int, optional
        Passes without a new question after which a row is done; all passes are made if neither
        this nor the preset (6 for ``"certified"``) says. Where every relevant feature must be
        found, 20 (with ``n_iterations=100``) takes more time, but hardly any more questions.
    max_queries : int, optional
        Masks (flips, if sampled) per row, at most. Unlimited if not given, but for the certified
        preset with sampled flips: 1000, or 10 per feature if that is more. Tables of all flips
        take what they take.
    inference : bool, optional
        Whether a part of a mask that keeps the decision is taken to keep it too, without asking.
        True for what this holds of, ``"kleene"`` and ``"supervaluation"``, with the certified
        preset, if not given.
    contrast : array-like or DataFrame, optional
        What a flipped feature becomes: one row, or one per explained row. The other value of
        two-valued rows (0 and 1, or -1 and 1), or else the nearest row of `background` with
        another decision, if not given.
    baseline : number, array-like, DataFrame, {"mean", "median", "mode"}, optional
        Values of masked features for ``masking="baseline"``: one for all, one each, or what is
        typical of `background`.
    background : array-like or DataFrame, optional
        Rows such as those that the model was fitted on.
    n_completions : int, default=16
        Random parts of a mask that are flipped to tell whether it keeps the decision, for
        ``masking="sampled"`` with other presets than ``"certified"``.
    threshold : float, optional
        Least probability of a decision; answers below it count as a decision of their own,
        "undecided".
    max_batch : int, default=8192
        Rows that the model is shown at once, at most. Results do not depend on it.
    random_state : int, Generator, SeedSequence or RandomState, optional
        What random cuts depend on, beside the values of the row: equal rows have equal
        explanations, whatever stands beside them.

    Notes
    -----
    ``masking="auto"`` takes ``"baseline"`` if `baseline` is given. Otherwise, with the certified
    preset, it takes ``"supervaluation"`` where all flips are affordable: one table of 2**d answers
    serves all rows of d <= 16 two-valued features, if that is no more than is expected without
    it (2 d questions per row for a read-once formula, 16 d for others). Failing this it takes
    ``"kleene"`` for models with ``evaluate_kleene`` on which it is exact (whose ``is_read_once``
    is not False), and ``"sampled"`` for all others.

    The certified preset differs from the paper's algorithm. Passes with two blocks end in
    certificates: masks under which the decision stays, until one more feature is masked. Of a mask,
    only features count that have certificates themselves, and the fewest count. Answers imply
    others in Kleene logic and supervaluation, which saves questions and proves values. With
    sampled flips it tries single features and pairs, then shrinks random flip sets, drawn around
    features that are in none yet and clear of the known ones, until nothing more can be left out;
    all parts of sets of up to four features are looked at.

    Plain baselines mislead on models that were fitted on complete rows: a masked row may look like
    nothing the model has seen. Prefer a contrast or a background with ``masking="sampled"``.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulae. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import BReX, Formula
    >>> formula = Formula.parse("x1 & (x2 | x3)", n_inputs=4)
    >>> BReX(formula, random_state=0).explain([[1, 1, 0, 0], [1, 1, 1, 1]]).values.tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0]]

    Any classifier, against the nearest row of another class:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X[:, 2:], y)
    >>> found = BReX(tree, background=X[:, 2:]).explain(X[[70, 120], 2:])
    >>> found.values.tolist()
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
        """Explain what the model decides about rows.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features), or one row
            The rows.

        Returns
        -------
        Attribution
            Degrees of responsibility, with questions asked, witnesses and flags.

        Raises
        ------
        ValueError
            If a parameter is not allowed, does not suit the model or the rows, or is missing.
        TypeError
            If the model is a regressor, or cannot be asked.
        """
        return explain(self.get_params(deep=False), X)
