"""``candidates.json``: measures of all candidates, which determine scores with any weights."""

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
#: Columns that are required to compute built-in scores with other weights.
NEEDED = tuple(measured_quantities(costs=False))


def kept_names(*, all_rows: bool = False) -> tuple[str, ...]:
    """Return the names of the measures stored for every fold, or for rules from all rows."""
    names = measured_quantities(costs=False)
    costs = () if all_rows else (name for name in measured_quantities() if name not in names)
    return (*dict.fromkeys((*NEEDED, *names)), "score", *costs)


@dataclass(frozen=True)
class SavedCandidates:
    """Candidates of a search, its winner, and the settings by which the winner was chosen."""

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
    """Return the text of ``candidates.json``: candidates with their measures on every fold.

    Parameters
    ----------
    candidates : Candidates
        Candidates of a search.
    winner : tuple of (str, int) or None
        Extractor and trial of the winner.
    standard_errors : float
        Largest distance of the winner from the best mean score, in standard errors.
    extractor_seed : int, optional
        The ``random_state`` of all extractors.
    picked : bool, default=False
        Whether the user, not the search, picked the winner.

    Returns
    -------
    str
        JSON that :func:`read_candidates` reads.

    Examples
    --------
    >>> fold = dict(performance=0.9, loss=0.1, loss_q=0.1, n_rules=3, size=3,
    ...             completeness_volume=1.0, completeness_instances=1.0)
    >>> text = candidates_json(
    ...     Candidates([Candidate.from_measures("cart", {"max_leaf_nodes": 3}, 0, (fold,))]),
    ...     winner=("cart", 0), standard_errors=1.0,
    ... )
    >>> saved = read_candidates(text)
    >>> saved.candidates[0].params, saved.winner
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
    header = {
        "format": FORMAT,
        "version": VERSION,
        "winner": None if winner is None else {"extractor": winner[0], "trial": winner[1]},
        "standard_errors": standard_errors,
        "extractor_seed": extractor_seed,
        "picked": picked,
    }
    body = ",\n".join(lines)
    return f'{_dumps(header)[:-1]}, "candidates": [\n{body}\n]}}\n'


def _number(value: Any) -> Any:
    """Return a Python number; None for infinite numbers and NaN, which JSON cannot express."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python scalar, and any other object to its repr."""
    return value.item() if hasattr(value, "item") else repr(value)


def read_candidates(text: str) -> SavedCandidates:
    """Read candidates from the JSON that :func:`candidates_json` wrote.

    Parameters
    ----------
    text : str
        The content of ``candidates.json``.

    Returns
    -------
    SavedCandidates
        The candidates, and the settings by which the search chose its winner.

    Raises
    ------
    ValueError
        If the text is not JSON, has another format or version, or a candidate lacks a measure.
    """
    try:
        data = json_of(text, finite=True)
    except ValueError as error:
        raise ValueError(f"candidates.json must be JSON: {error}.") from error
    file_format = data.get("format") if isinstance(data, dict) else type(data).__name__
    if file_format != FORMAT or data.get("version") != VERSION:
        version = data.get("version") if isinstance(data, dict) else None
        raise ValueError(
            f"candidates.json must have the format {FORMAT!r} in version {VERSION}, got "
            f"{file_format!r} in version {version!r}. Repeat the search with this version of "
            "skescore."
        )
    try:
        return _parse_candidates(data)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"candidates.json must contain the candidates and the winner, but reading it raised "
            f"{error!r}. Repeat the search."
        ) from error


def _parse_candidates(data: dict[str, Any]) -> SavedCandidates:
    candidates = []
    for number, record in enumerate(data.get("candidates", []), 1):
        try:
            candidates.append(_candidate(record))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(
                f"Candidate {number} must have an extractor, params, a trial and, for each fold, "
                f"{', '.join(NEEDED)}, but one is invalid: {error}. Repeat the search."
            ) from error
    winner = data.get("winner")
    winner_indices = [
        index
        for index, candidate in enumerate(candidates)
        if winner
        and (candidate.extractor, candidate.trial) == (winner["extractor"], winner["trial"])
    ]
    return SavedCandidates(
        Candidates(candidates),
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
