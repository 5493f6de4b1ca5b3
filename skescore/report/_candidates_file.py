"""``candidates.json``: what was measured of every candidate, so that any weights can judge it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from skescore._io import json_of
from skescore.scorers import measured_quantities
from skescore.tuning import Candidate, Candidates

__all__ = [
    "FORMAT",
    "SavedCandidates",
    "candidates_json",
    "kept_names",
    "read_candidates",
]

FORMAT = "skescore.candidates"
VERSION = 1
#: Columns without which a candidate cannot be judged by other weights of the built-in scores.
NEEDED = tuple(measured_quantities(costs=False))


def kept_names(*, all_rows: bool = False) -> tuple[str, ...]:
    """Return the names of the measures stored for every fold, or for the rules of all rows."""
    names = measured_quantities(costs=False)
    costs = () if all_rows else (name for name in measured_quantities() if name not in names)
    return (*dict.fromkeys((*NEEDED, *names)), "score", *costs)


@dataclass(frozen=True)
class SavedCandidates:
    """Candidates of a search and the settings by which it chose among them."""

    candidates: Candidates
    winner: int | None
    standard_errors: float
    extractor_seed: int | None
    picked: bool = False


def candidates_json(
    candidates: Candidates,
    *,
    winner: tuple[str, int] | None,
    standard_errors: float,
    extractor_seed: int | None = None,
    picked: bool = False,
) -> str:
    """Write candidates with their measures on every fold, as ``candidates.json`` holds them.

    Parameters
    ----------
    candidates : Candidates
        Of a search.
    winner : tuple of (str, int) or None
        Extractor and trial of the search's winner.
    standard_errors : float
        How far from the best mean the winner might be.
    extractor_seed : int, optional
        The ``random_state`` of all extractors.
    picked : bool, default=False
        Whether the winner was picked by its user, not chosen by the search.

    Returns
    -------
    str
        What :func:`read_candidates` reads back.

    Examples
    --------
    >>> fold = dict(performance=0.9, loss=0.1, loss_q=0.1, n_rules=3, size=3,
    ...             completeness_volume=1.0, completeness_instances=1.0)
    >>> text = candidates_json(
    ...     Candidates([Candidate.from_measures("cart", {"max_leaf_nodes": 3}, 0, (fold,))]),
    ...     winner=("cart", 0), standard_errors=1.0,
    ... )
    >>> kept = read_candidates(text)
    >>> kept.candidates[0].params, kept.winner
    ({'max_leaf_nodes': 3}, 0)
    """
    lines = []
    for candidate in candidates:
        folds = {
            name: [_number(fold[name]) for fold in candidate.folds]
            for name in kept_names()
            if candidate.folds and all(name in fold for fold in candidate.folds)
        }
        record = {
            "extractor": candidate.extractor,
            "trial": candidate.trial,
            "params": candidate.params,
            "folds": folds,
        }
        if candidate.all_rows is not None:
            all_rows = candidate.all_rows
            names = kept_names(all_rows=True)
            record["all_rows"] = {name: _number(all_rows.get(name, math.nan)) for name in names}
        lines.append("  " + _dumps(record))
    head = {
        "format": FORMAT,
        "version": VERSION,
        "winner": None if winner is None else {"extractor": winner[0], "trial": winner[1]},
        "standard_errors": standard_errors,
        "extractor_seed": extractor_seed,
        "picked": picked,
    }
    body = ",\n".join(lines)
    return f'{_dumps(head)[:-1]}, "candidates": [\n{body}\n]}}\n'


def _number(value: Any) -> Any:
    """Return a plain number; null for what JSON does not know."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's; a parameter of any other type by what it shows of itself."""
    return value.item() if hasattr(value, "item") else repr(value)


def read_candidates(text: str) -> SavedCandidates:
    """Read what :func:`candidates_json` wrote.

    Parameters
    ----------
    text : str
        The content of ``candidates.json``.

    Returns
    -------
    SavedCandidates
        The candidates, and how the search chose among them.

    Raises
    ------
    ValueError
        If it is not JSON, of another format or version, or a candidate lacks a measure.
    """
    try:
        data = json_of(text, finite=True)
    except ValueError as error:
        raise ValueError(f"This is not JSON: {error}.") from error
    file_format = data.get("format") if isinstance(data, dict) else type(data).__name__
    if file_format != FORMAT or data.get("version") != VERSION:
        version = data.get("version") if isinstance(data, dict) else None
        raise ValueError(
            f"candidates.json must have the format {FORMAT!r} in version {VERSION}, got "
            f"{file_format!r} in version {version!r}. Make the run again with this skescore."
        )
    try:
        return _parse_candidates(data)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"candidates.json must tell candidates and the winner: {error!r}. Make the run again."
        ) from error


def _parse_candidates(data: dict[str, Any]) -> SavedCandidates:
    read = []
    for number, record in enumerate(data.get("candidates", []), 1):
        try:
            read.append(_candidate(record))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(
                f"Candidate {number} must have an extractor, params, a trial and, for every fold, "
                f"{', '.join(NEEDED)}; it has not: {error}. Make the run again."
            ) from error
    chosen = data.get("winner")
    winner_indices = [
        index
        for index, candidate in enumerate(read)
        if chosen
        and (candidate.extractor, candidate.trial) == (chosen["extractor"], chosen["trial"])
    ]
    return SavedCandidates(
        Candidates(read),
        winner_indices[0] if winner_indices else None,
        float(data.get("standard_errors", 1.0)),
        data.get("extractor_seed"),
        bool(data.get("picked", False)),
    )


def _candidate(record: dict[str, Any]) -> Candidate:
    columns = record["folds"]
    for name in NEEDED:
        if not columns[name] or not all(math.isfinite(value) for value in columns[name]):
            raise ValueError(f"{name} must be finite numbers, got {columns[name]!r}")
    names = list(columns)
    rows = [
        {name: _number_read(v) for name, v in zip(names, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]
    all_rows = record.get("all_rows")
    if all_rows is not None:
        all_rows = {name: _number_read(all_rows[name]) for name in (*NEEDED, *all_rows)}
    return Candidate.from_measures(
        str(record["extractor"]),
        dict(record["params"]),
        int(record["trial"]),
        rows,
        all_rows,
    )


def _number_read(value: float | None) -> float:
    return math.nan if value is None else float(value)
