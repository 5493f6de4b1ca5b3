"""Tables of the tuners' comparison, from what has been measured so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from tuners_data import DATA, MARKS, SCORES, WEIGHTS

Rows = Mapping[tuple[str, ...], Mapping[str, Any]]
#: What is compared with all others, and those that search our extractors with the same budget:
#: ours must not be worse; all others it must beat.
SEARCHES = {
    "ours re-scored": ("joint re-scored", "grid"),
    "ours of 20 trials": ("joint of 20 trials", "grid of 20"),
}
EQUALS = tuple(rival for rivals in SEARCHES.values() for rival in rivals)
#: Ours may take this share of PEDRO's time.
TIME_SHARE = 0.1
SIGNIFICANT = 0.05
#: Differences below are those of rounding in the CSV.
EQUAL = 1e-5

Values = dict[tuple[str, str, str], dict[int, float]]


def print_tables(rows: Rows, ours: Sequence[str], psyke: Sequence[str]) -> int:
    """Print all tables as Markdown; 1 if some goal is not reached, else 0."""
    methods = [m for m in (*ours, *psyke) if any(key[2] == m for key in rows)]
    values = collect(rows, "value")
    failed = 0
    for score in SCORES:
        _print_score(score, values, rows, methods)
    _print_pairs(values, methods, psyke)
    for search, equals in SEARCHES.items():
        if search in methods:
            rivals = [m for m in methods if m not in SEARCHES and (m not in EQUALS or m in equals)]
            failed += _print_tests(search, values, rivals)
    failed += _print_times(rows, methods)
    failed += _print_marks(collect(rows, "marked"), methods)
    return 1 if failed else 0


def collect(rows: Rows, column: str) -> Values:
    """Finite numbers by data, method and score, then by seed."""
    values: Values = {}
    for (data, seed, method, score), row in rows.items():
        number = float(row[column] or "nan")
        if row["state"] == "done" and np.isfinite(number):
            values.setdefault((data, method, score), {})[int(seed)] = number
    return values


def better_by(score: str, ours: float, theirs: float) -> float:
    """Return the improvement of the first value over the second; FiRe is a loss."""
    return theirs - ours if score.startswith("fire") else ours - theirs


def title(score: str) -> str:
    weights = ", ".join(f"{name} = {value:g}" for name, value in WEIGHTS[score].items())
    kind = "FiRe, less is better" if score.startswith("fire") else "ICE, more is better"
    return f"{kind}: {weights}"


# --- tables --------------------------------------------------------------------------------------


def _print_score(score: str, values: Values, rows: Rows, methods: Sequence[str]) -> None:
    print(f"\n### {title(score)}\n")
    print("Means over the seeds with a winner; in brackets how many seeds had none.\n")
    _print_line(["data", "seeds", *methods], header=True)
    for data in DATA:
        seeds = {int(key[1]) for key in rows if key[0] == data and key[3] == score}
        means, cells = {}, {}
        for method in methods:
            by_seed = values.get((data, method, score), {})
            tried = sum(key[0] == data and key[2:] == (method, score) for key in rows)
            if by_seed:
                means[method] = float(np.mean(list(by_seed.values())))
            cells[method] = f"{means[method]:.4f}" if by_seed else "-"
            if tried > len(by_seed):
                cells[method] += f" ({tried - len(by_seed)})"
        best = max((better_by(score, mean, 0.0) for mean in means.values()), default=0.0)
        for method, mean in means.items():
            if better_by(score, mean, 0.0) >= best - EQUAL:
                cells[method] = f"**{cells[method]}**"
        if seeds:
            _print_line([data, str(len(seeds)), *cells.values()])


def _print_pairs(values: Values, methods: Sequence[str], psyke: Sequence[str]) -> None:
    print("\n### In all\n")
    print(
        "Runs (data, seed, rival, score) in which ours is better, equal and worse; cells (data, "
        "rival, score) in which its mean is worse; cells in which it is significantly better and "
        "worse.\n"
    )
    _print_line(
        ["search", "rivals", "runs", "worse by mean", "significantly better", "worse"], header=True
    )
    for search, equals in SEARCHES.items():
        groups = {
            "PSyKE's tuners": psyke,
            **{rival: [rival] for rival in equals},
            "untuned trees": ("cart", "cart of 3 leaves"),
        }
        for title_of_group, group in groups.items():
            runs, cells = [0, 0, 0], np.zeros(4, dtype=int)
            for (data, method, score), theirs in values.items():
                ours = values.get((data, search, score), {})
                differences = _differences(score, ours, theirs)
                if method not in group or not len(differences):
                    continue
                for index, is_counted in enumerate(
                    (differences > 0, differences == 0, differences < 0)
                ):
                    runs[index] += int(is_counted.sum())
                mean, significant = differences.mean(), paired_p(differences) < SIGNIFICANT
                cells += [1, mean < 0, significant and mean > 0, significant and mean < 0]
            if search in methods and cells[0]:
                shares = [f"{n} of {cells[0]}" for n in cells[1:]]
                _print_line([search, title_of_group, " / ".join(map(str, runs)), *shares])


def _differences(score: str, ours: dict[int, float], theirs: dict[int, float]) -> np.ndarray:
    """Return the improvement of ours by seed, ignoring rounding errors."""
    common = sorted(ours.keys() & theirs.keys())
    differences = np.array([better_by(score, ours[s], theirs[s]) for s in common])
    return np.where(np.abs(differences) < EQUAL, 0.0, differences)


def _print_tests(search: str, values: Values, rivals: Sequence[str]) -> int:
    print(f"\n### {search}, paired with each rival\n")
    print(
        "Mean difference over the seeds that both have a winner for (positive: ours is better); "
        "seeds won, equal and lost; p of Wilcoxon's signed-rank test. Worse means are marked.\n"
    )
    _print_line(["data", "rival", *SCORES], header=True)
    n_worse = n_significant = 0
    for data in DATA:
        for rival in rivals:
            cells = []
            for score in SCORES:
                ours = values.get((data, search, score), {})
                theirs = values.get((data, rival, score), {})
                differences = _differences(score, ours, theirs)
                if not len(differences):
                    cells.append("-")
                    continue
                won, lost = int((differences > 0).sum()), int((differences < 0).sum())
                p = paired_p(differences)
                # Equal will do against those that have the same extractors to choose from.
                reached = differences.mean() > 0 or (rival in EQUALS and differences.mean() == 0)
                n_worse += not reached
                n_significant += not reached and p < SIGNIFICANT
                equal = len(differences) - won - lost
                cell = f"{differences.mean():+.4f} {won}/{equal}/{lost} {p:.2g}"
                cells.append(cell if reached else f"**NO {cell}**")
            if any(cell != "-" for cell in cells):
                _print_line([data, rival, *cells])
    print(f"\n{n_worse} cells where {search} is not better, {n_significant} of them significantly")
    return n_worse


def paired_p(differences: np.ndarray) -> float:
    """Two-sided, 1 if there is no difference at all."""
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="pratt").pvalue)


def _print_times(rows: Rows, methods: Sequence[str]) -> int:
    """Seconds of one search each, beside PEDRO's."""
    print("\n### Seconds of one search, questions to the black box\n")
    seconds, calls = collect(rows, "seconds"), collect(rows, "calls")
    limited: dict[tuple[str, str], list[float]] = {}
    for (data, _, method, score), row in rows.items():
        if row["state"] in ("done", "timeout") and score == SCORES[0]:
            limited.setdefault((data, method), []).append(float(row["seconds"]))
    searches = [s for s in SEARCHES if s in methods]
    _print_line(["data", *methods, *(f"{s} / PEDRO" for s in searches)], header=True)
    n_over = 0
    for data in DATA:
        cells = []
        for method in methods:
            spent = limited.get((data, method), [])
            method_seconds = [
                v for s in SCORES for v in seconds.get((data, method, s), {}).values()
            ]
            method_calls = [v for s in SCORES for v in calls.get((data, method, s), {}).values()]
            cell = (
                f"{np.mean(method_seconds if method in SEARCHES else spent):.2f}" if spent else "-"
            )
            cells.append(cell + (f" ({np.mean(method_calls):.0f})" if method_calls else ""))
        if all(cell == "-" for cell in cells):
            continue
        for search in searches:
            ratio = time_ratio(search, data, seconds, limited)
            over = ratio is not None and ratio > TIME_SHARE
            n_over += over
            ratio_text = "-" if ratio is None else f"{ratio:.3f}"
            cells.append(f"**NO {ratio_text}**" if over else ratio_text)
        _print_line([data, *cells])
    print(f"\n{n_over} cells where ours takes more than {TIME_SHARE:g} of PEDRO's time")
    return n_over


def time_ratio(
    search: str, data: str, seconds: Values, limited: Mapping[Any, list[float]]
) -> float | None:
    """Our mean seconds per search over those of the PEDRO that is meant for the data."""
    reference_tuner = "PEDRO GridREx" if (data, "PEDRO GridREx") in limited else "PEDRO GridEx"
    ours = [v for s in SCORES for v in seconds.get((data, search, s), {}).values()]
    theirs = limited.get((data, reference_tuner), [])
    return float(np.mean(ours) / np.mean(theirs)) if ours and theirs else None


def _print_marks(marked: Values, methods: Sequence[str]) -> int:
    print("\n### Marks of seed 0\n")
    print(
        "In the marks' units: loss and performance are both accuracy for iris, both weighted F1 "
        "for wine and breast_cancer, mean absolute error and R² for numbers.\n"
    )
    _print_line(["data", "score", "mark", *methods, "beaten by ours"], header=True)
    n_missed = 0
    for data, references in MARKS.items():
        for score, mark in zip(("fire1", "ice11"), references, strict=True):
            by_method = {m: marked.get((data, m, score), {}).get(0) for m in methods}
            ours = by_method.get("ours re-scored")
            if ours is None:
                continue
            gained = better_by(score, ours, mark)
            missed = gained < EQUAL
            n_missed += missed
            verdict = f"**NO {gained:+.4f}**" if missed else f"yes {gained:+.4f}"
            cells = ["-" if v is None else f"{v:.4f}" for v in by_method.values()]
            _print_line([data, score, f"{mark:.4f}", *cells, verdict])
    print(f"\n{n_missed} marks not beaten")
    return n_missed


def _print_line(cells: Sequence[str], header: bool = False) -> None:
    print("| " + " | ".join(cells) + " |")
    if header:
        print("| :-- |" + " --: |" * (len(cells) - 1))
