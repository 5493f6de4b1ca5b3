"""Texts with tokens taken out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.metrics.attribution._containers import Pieces

__all__ = ["Texts", "is_text", "text_tokens"]

Bools = NDArray[np.bool_]


def is_text(X: Any) -> bool:
    """Whether X is a collection of texts or of lists of tokens, rather than a table."""
    if isinstance(X, str) or hasattr(X, "columns"):
        return isinstance(X, str)
    if hasattr(X, "dtype") and getattr(X, "ndim", 1) != 1:
        return False
    if not hasattr(X, "__len__") or not len(X):
        return False
    rows = list(X)
    if all(isinstance(row, str) for row in rows):
        return True
    if any(isinstance(row, np.ndarray) and row.dtype.kind in "iufb" for row in rows):
        return False
    return all(
        isinstance(row, (list, tuple, np.ndarray)) and all(isinstance(token, str) for token in row)
        for row in rows
    ) and any(len(row) for row in rows)


def text_tokens(
    model: Any, texts: Sequence[Any], *, tokenizer: Callable[[str], Sequence[str]] | None = None
) -> list[list[str]]:
    """Split texts into the tokens that :func:`faithfulness` removes.

    Use it to see which tokens attributions have to be aligned to, one number for each.

    Parameters
    ----------
    model : estimator or callable
        A scikit-learn pipeline with a vectoriser, or its ``predict_proba``.
    texts : sequence of str or of lists of str
        The texts; lists of tokens stay as they are.
    tokenizer : callable, default=None
        Splits a text into tokens. By default the vectoriser's own one, after its preprocessing.

    Returns
    -------
    list of lists of str
        The tokens of each text in their order, repeated ones included.

    Raises
    ------
    TypeError
        If `texts` is a single text, or holds something else.
    ValueError
        If there is no tokenizer and the model has no vectoriser of words.

    Notes
    -----
    Stop words are tokens like others: the model knows how to ignore them. N-grams are not tokens;
    they go when one of their words does.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skescore.metrics.attribution import text_tokens
    >>> model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB())
    >>> text_tokens(model, ["A good, good film!"])
    [['good', 'good', 'film']]
    """
    if isinstance(texts, str):
        raise TypeError("X must be a list of texts, got a single text. Pass [text].")
    split: Callable[[str], Sequence[str]] | None = None
    found = []
    for number, text in enumerate(texts):
        if isinstance(text, str):
            split = split or tokenizer or _vectoriser_tokenizer(model)
            found.append([str(token) for token in split(text)])
        elif isinstance(text, (list, tuple, np.ndarray)) and all(
            isinstance(token, str) for token in text
        ):
            found.append([str(token) for token in text])
        else:
            raise TypeError(
                f"X must hold texts or lists of tokens, got {text!r:.80} in row {number}."
            )
    return found


def _vectoriser_tokenizer(model: Any) -> Callable[[str], Sequence[str]]:
    owner = getattr(model, "__self__", model)
    # A search answers by the pipeline that it found to be the best.
    pipeline = getattr(owner, "best_estimator_", owner)
    steps = [step for _, step in getattr(pipeline, "steps", [])]
    for step in steps:
        if hasattr(step, "build_tokenizer") and not callable(step.analyzer):
            prepare, split = step.build_preprocessor(), step.build_tokenizer()
            return lambda text: split(prepare(text))
    raise ValueError(
        "tokenizer must be given, as no vectoriser of words was found in "
        f"{type(owner).__name__}. Pass a function from a text to its tokens, or lists of tokens as "
        "X, or a pipeline's own predict_proba."
    )


class Texts:
    """Texts as units that can be deleted or masked, one by one or together."""

    copies = 1

    def __init__(
        self,
        rows: Sequence[Pieces],
        *,
        join: str | None,
        mask_token: str | None,
    ) -> None:
        self.rows = list(rows)
        self.join = join
        self.mask_token = mask_token

    @classmethod
    def of_tokens(cls, tokens: Sequence[list[str]], **settings: Any) -> Texts:
        """Every token is a unit."""
        rows = [
            Pieces(row, [np.array([i], dtype=np.intp) for i in range(len(row))]) for row in tokens
        ]
        return cls(rows, **settings)

    def __len__(self) -> int:
        return len(self.rows)

    def sizes(self) -> list[int]:
        """How many attributions each text needs."""
        return [len(row.units) for row in self.rows]

    def unit_scores(self, row: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores

    def parts(self, row: int, removed: Bools) -> Bools:
        """Every unit of a text is a part of its own."""
        return removed

    def leave_one_out(self, row: int) -> tuple[NDArray[np.intp], Bools]:
        n = len(self.rows[row].units)
        return np.arange(n), np.eye(n, dtype=bool)

    def originals(self, rows: Sequence[int]) -> list[Any]:
        return [self._text(self.rows[row].pieces) for row in rows]

    def build(self, blocks: Sequence[tuple[int, Bools]]) -> list[Any]:
        """Texts without the units that are marked."""
        return [self._without(self.rows[row], mask) for row, masks in blocks for mask in masks]

    def _without(self, row: Pieces, mask: Bools) -> Any:
        taken = {int(i) for unit in np.flatnonzero(mask) for i in row.units[unit]}
        if self.mask_token is None:
            return self._text([piece for i, piece in enumerate(row.pieces) if i not in taken])
        return self._text(
            [self._masked(piece) if i in taken else piece for i, piece in enumerate(row.pieces)]
        )

    def _masked(self, piece: str) -> str:
        """The mask in place of the word, with the blanks around it that explainers keep."""
        core = piece.strip()
        assert self.mask_token is not None
        return piece.replace(core, self.mask_token, 1) if core else piece

    def _text(self, pieces: list[str]) -> Any:
        return list(pieces) if self.join is None else self.join.join(pieces)
