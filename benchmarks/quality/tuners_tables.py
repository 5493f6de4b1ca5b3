"""Tables of the comparison of tuners, computed from the stored measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from tuners_data import DATA, MARKS, SCORES, WEIGHTS

Rows = Mapping[tuple[str, ...], Mapping[str, Any]]
#: Our searches, and the rivals that use our extractors with the same budget. Our searches must be
#: at least as good as these rivals and better than all other methods.
SEARCHES = {
    "ours re-scored": ("joint re-scored", "grid"),
    "ours of 20 trials": ("joint of 20 trials", "grid of 20"),
}
EQUAL_RIVALS = tuple(rival for rivals in SEARCHES.values() for rival in rivals)
#: Largest share of PEDRO's time that our search may take.
TIME_SHARE = 0.1
SIGNIFICANCE_LEVEL = 0.05
#: Smaller differences are rounding errors of the CSV.
ROUNDING_ERROR = 1e-5

Values = dict[tuple[str, str, str], dict[int, float]]


def print_tables(rows: Rows, ours: Sequence[str], psyke: Sequence[str]) -> int:
    """Print all tables as Markdown; return 1 if any goal is not reached, else 0."""
    methods = [m for m in (*ours, *psyke) if any(key[2] == m for key in rows)]
    values = collect_values(rows, "value")
    n_failed = 0
    for score in SCORES:
        _print_score(score, values, rows, methods)
    _print_pairs(values, methods, psyke)
    for search, equal_rivals in SEARCHES.items():
        if search in methods:
            rivals = [
                m
                for m in methods
                if m not in SEARCHES and (m not in EQUAL_RIVALS or m in equal_rivals)
            ]
            n_failed += _print_tests(search, values, rivals)
    n_failed += _print_times(rows, methods)
    n_failed += _print_marks(collect_values(rows, "marked"), methods)
    return 1 if n_failed else 0


def collect_values(rows: Rows, column: str) -> Values:
    """Return the finite values of a column by data, method and score, then by seed."""
    values: Values = {}
    for (data, seed, method, score), row in rows.items():
        number = float(row[column] or "nan")
        if row["state"] == "done" and np.isfinite(number):
            values.setdefault((data, method, score), {})[int(seed)] = number
    return values


def improvement(score: str, ours: float, theirs: float) -> float:
    """Return the improvement of the first value over the second; FiRe is a loss."""
    return theirs - ours if score.startswith("fire") else ours - theirs


def title(score: str) -> str:
    weights = ", ".join(f"{name} = {value:g}" for name, value in WEIGHTS[score].items())
    kind = "FiRe, smaller is better" if score.startswith("fire") else "ICE, greater is better"
    return f"{kind}: {weights}"


# --- tables --------------------------------------------------------------------------------------


def _print_score(score: str, values: Values, rows: Rows, methods: Sequence[str]) -> None:
    print(f"\n### {title(score)}\n")
    print("Means over seeds with a winner; the number of seeds without one is in parentheses.\n")
    _print_line(["data", "seeds", *methods], header=True)
    for data in DATA:
        seeds = {int(key[1]) for key in rows if key[0] == data and key[3] == score}
        means, cells = {}, {}
        for method in methods:
            by_seed = values.get((data, method, score), {})
            n_tried = sum(key[0] == data and key[2:] == (method, score) for key in rows)
            if by_seed:
                means[method] = float(np.mean(list(by_seed.values())))
            cells[method] = f"{means[method]:.4f}" if by_seed else "-"
            if n_tried > len(by_seed):
                cells[method] += f" ({n_tried - len(by_seed)})"
        best = max((improvement(score, mean, 0.0) for mean in means.values()), default=0.0)
        for method, mean in means.items():
            if improvement(score, mean, 0.0) >= best - ROUNDING_ERROR:
                cells[method] = f"**{cells[method]}**"
        if seeds:
            _print_line([data, str(len(seeds)), *cells.values()])


def _print_pairs(values: Values, methods: Sequence[str], psyke: Sequence[str]) -> None:
    print("\n### Totals\n")
    print(
        "Runs (data, seed, rival, score) in which our search is better, equal and worse; cells "
        "(data, rival, score) in which its mean is worse; cells in which it is significantly "
        "better and worse.\n"
    )
    _print_line(
        ["search", "rivals", "runs", "worse by mean", "significantly better", "worse"], header=True
    )
    for search, equal_rivals in SEARCHES.items():
        groups = {
            "PSyKE's tuners": psyke,
            **{rival: [rival] for rival in equal_rivals},
            "untuned trees": ("cart", "cart of 3 leaves"),
        }
        for group_name, group in groups.items():
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
                mean, significant = differences.mean(), paired_p(differences) < SIGNIFICANCE_LEVEL
                cells += [1, mean < 0, significant and mean > 0, significant and mean < 0]
            if search in methods and cells[0]:
                shares = [f"{n} of {cells[0]}" for n in cells[1:]]
                _print_line([search, group_name, " / ".join(map(str, runs)), *shares])


def _differences(score: str, ours: dict[int, float], theirs: dict[int, float]) -> np.ndarray:
    """Return the improvement of ours by seed, ignoring rounding errors."""
    common = sorted(ours.keys() & theirs.keys())
    differences = np.array([improvement(score, ours[s], theirs[s]) for s in common])
    return np.where(np.abs(differences) < ROUNDING_ERROR, 0.0, differences)


def _print_tests(search: str, values: Values, rivals: Sequence[str]) -> int:
    print(f"\n### {search}, paired with each rival\n")
    print(
        "Mean difference over the seeds for which both have a winner (positive: ours is better); "
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
                n_won, n_lost = int((differences > 0).sum()), int((differences < 0).sum())
                p = paired_p(differences)
                # Our search need not beat rivals that use the same extractors.
                is_reached = differences.mean() > 0 or (
                    rival in EQUAL_RIVALS and differences.mean() == 0
                )
                n_worse += not is_reached
                n_significant += not is_reached and p < SIGNIFICANCE_LEVEL
                n_equal = len(differences) - n_won - n_lost
                cell = f"{differences.mean():+.4f} {n_won}/{n_equal}/{n_lost} {p:.2g}"
                cells.append(cell if is_reached else f"**NO {cell}**")
            if any(cell != "-" for cell in cells):
                _print_line([data, rival, *cells])
    print(
        f"\n{n_worse} cells where {search} is not better, "
        f"{n_significant} of them significantly worse"
    )
    return n_worse


def paired_p(differences: np.ndarray) -> float:
    """Return the two-sided p value of the signed-rank test; 1 if all differences are 0."""
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method="pratt").pvalue)


def _print_times(rows: Rows, methods: Sequence[str]) -> int:
    """Print the seconds of one search, and the ratio of our time to PEDRO's."""
    print("\n### Seconds and black-box queries of one search\n")
    seconds, calls = collect_values(rows, "seconds"), collect_values(rows, "calls")
    first_score_seconds: dict[tuple[str, str], list[float]] = {}
    for (data, _, method, score), row in rows.items():
        if row["state"] in ("done", "timeout") and score == SCORES[0]:
            first_score_seconds.setdefault((data, method), []).append(float(row["seconds"]))
    searches = [s for s in SEARCHES if s in methods]
    _print_line(["data", *methods, *(f"{s} / PEDRO" for s in searches)], header=True)
    n_over = 0
    for data in DATA:
        cells = []
        for method in methods:
            method_first_seconds = first_score_seconds.get((data, method), [])
            method_seconds = [
                v for s in SCORES for v in seconds.get((data, method, s), {}).values()
            ]
            method_calls = [v for s in SCORES for v in calls.get((data, method, s), {}).values()]
            cell = (
                f"{np.mean(method_seconds if method in SEARCHES else method_first_seconds):.2f}"
                if method_first_seconds
                else "-"
            )
            cells.append(cell + (f" ({np.mean(method_calls):.0f})" if method_calls else ""))
        if all(cell == "-" for cell in cells):
            continue
        for search in searches:
            ratio = time_ratio(search, data, seconds, first_score_seconds)
            is_over = ratio is not None and ratio > TIME_SHARE
            n_over += is_over
            ratio_text = "-" if ratio is None else f"{ratio:.3f}"
            cells.append(f"**NO {ratio_text}**" if is_over else ratio_text)
        _print_line([data, *cells])
    print(f"\n{n_over} cells where ours takes more than {TIME_SHARE:g} of PEDRO's time")
    return n_over


def time_ratio(
    search: str, data: str, seconds: Values, first_score_seconds: Mapping[Any, list[float]]
) -> float | None:
    """Return our mean seconds per search divided by PEDRO's for the same task; None if missing."""
    reference_tuner = (
        "PEDRO GridREx" if (data, "PEDRO GridREx") in first_score_seconds else "PEDRO GridEx"
    )
    ours = [v for s in SCORES for v in seconds.get((data, search, s), {}).values()]
    theirs = first_score_seconds.get((data, reference_tuner), [])
    return float(np.mean(ours) / np.mean(theirs)) if ours and theirs else None


def _print_marks(marked: Values, methods: Sequence[str]) -> int:
    print("\n### Reference values of seed 0\n")
    print(
        "Loss and performance use accuracy for iris, weighted F1 for wine and breast_cancer, and "
        "the mean absolute error and R² in regression.\n"
    )
    _print_line(["data", "score", "reference", *methods, "exceeded by ours"], header=True)
    n_missed = 0
    for data, marks in MARKS.items():
        for score, mark in zip(("fire1", "ice11"), marks, strict=True):
            by_method = {m: marked.get((data, m, score), {}).get(0) for m in methods}
            ours = by_method.get("ours re-scored")
            if ours is None:
                continue
            gain = improvement(score, ours, mark)
            is_missed = gain < ROUNDING_ERROR
            n_missed += is_missed
            verdict = f"**NO {gain:+.4f}**" if is_missed else f"yes {gain:+.4f}"
            cells = ["-" if v is None else f"{v:.4f}" for v in by_method.values()]
            _print_line([data, score, f"{mark:.4f}", *cells, verdict])
    print(f"\n{n_missed} reference values not exceeded")
    return n_missed


def _print_line(cells: Sequence[str], header: bool = False) -> None:
    print("| " + " | ".join(cells) + " |")
    if header:
        print("| :-- |" + " --: |" * (len(cells) - 1))
