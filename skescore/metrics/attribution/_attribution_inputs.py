"""What faithfulness is measured on: rows of a table or texts, together with their attributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skescore.metrics.attribution._attribution_text import Texts, is_text, text_tokens
from skescore.metrics.attribution._containers import Explained, open_attributions
from skescore.metrics.attribution._maps import check_choice
from skescore.metrics.attribution._removal import (
    SparseRows,
    TableRows,
    find_fill,
    find_units,
)

__all__ = ["after_vectoriser", "open_inputs"]


def after_vectoriser(predict_proba: Any, X: Any, classes: Any) -> tuple[Any, Any, Any]:
    """A pipeline of texts as its last step, and the columns that this step sees."""
    method = getattr(predict_proba, "__name__", None)
    owner = getattr(predict_proba, "__self__", predict_proba)
    owner = getattr(owner, "best_estimator_", owner)
    if len(getattr(owner, "steps", ())) < 2:
        raise TypeError(
            "align='columns' needs a pipeline that turns texts into columns, got "
            f"{type(predict_proba).__name__}. Or pass the columns as X."
        )
    last = owner[-1]
    matrix = owner[:-1].transform(X)
    asked = getattr(last, method) if method in ("predict_proba", "decision_function") else last
    return asked, matrix, classes


def open_inputs(
    model: Any,
    X: Any,
    attributions: Any,
    *,
    removal: Any,
    reference: Any,
    groups: Any,
    features: str,
    tokenizer: Any,
    join: str | None,
    mask_token: str,
    loo_removal: str | None,
) -> tuple[Any, Any, Explained]:
    """The rows with things to remove, the same for leaving one out, and the attributions."""
    if isinstance(X, str):
        raise TypeError("X must be a list of texts, got a single text. Pass [text].")
    if is_text(X):
        if groups is not None or reference is not None:
            raise ValueError("groups and reference are for tables, but X holds texts.")
        kinds = ("delete", "mask")
        removal = "delete" if removal is None else removal
        check_choice("removal", removal, kinds)
        if loo_removal is not None:
            check_choice("loo_removal", loo_removal, kinds)
        texts = list(X)
        explained = open_attributions(attributions, len(texts))

        def build(kind: str) -> Texts:
            mask = mask_token if kind == "mask" else None
            if explained.pieces is not None:
                _check_pieces(explained, texts)
                glue = "" if isinstance(texts[0], str) else join
                return Texts(explained.pieces, join=glue, mask_token=mask)
            tokens = text_tokens(model, texts, tokenizer=tokenizer)
            return Texts.of_tokens(tokens, join=join, mask_token=mask)

        inputs = build(removal)
        other = loo_removal is not None and loo_removal != removal
        return inputs, build(str(loo_removal)) if other else inputs, explained
    if loo_removal is not None:
        raise ValueError("loo_removal is for texts, but X is a table.")
    rows = _table(X, removal, reference, groups, features)
    return rows, rows, open_attributions(attributions, len(rows))


def _table(X: Any, removal: Any, reference: Any, groups: Any, features: str) -> Any:
    changed_only = features == "changed"
    if sparse.issparse(X):
        if removal is not None and (np.ndim(removal) or isinstance(removal, str) or removal != 0):
            raise ValueError(
                f"removal of sparse rows must be 0, got {removal!r}. Use X.toarray() for others."
            )
        return SparseRows(X, find_units(groups, X), changed_only)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X.detach().cpu().numpy() if hasattr(X, "detach") else X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must be rows of features, a list of texts or of lists of tokens, got shape "
            f"{X.shape}. A single row is a list of one."
        )
    if not isinstance(X, pd.DataFrame) and X.dtype.kind not in "iufbO":
        raise TypeError(
            f"X must hold numbers, got {X.dtype}. Pass a DataFrame for columns of text, or a list "
            "of texts for documents."
        )
    removal = 0 if removal is None else removal
    fill = find_fill(removal, reference, X)
    return TableRows(X, fill, find_units(groups, X), changed_only)


def _check_pieces(explained: Explained, texts: list[Any]) -> None:
    """An explanation that brings its own tokens must be of the very texts."""
    assert explained.pieces is not None
    for number, (pieces, text) in enumerate(zip(explained.pieces, texts, strict=True)):
        if isinstance(text, str):
            same = _squeezed("".join(pieces.pieces)) == _squeezed(text)
        else:
            same = [piece.strip() for piece in pieces.pieces] == [str(token) for token in text]
        if not same:
            raise ValueError(
                f"attributions must be of the texts in X, but row {number} explains "
                f"{''.join(pieces.pieces)!r:.80}. Explain the same texts, or pass lists of tokens "
                "as X and plain arrays."
            )


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()
