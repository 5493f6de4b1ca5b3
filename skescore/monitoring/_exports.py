"""Metrics of a monitor for Prometheus and MLflow."""

from __future__ import annotations

import math
import re
from typing import Any

from skescore._optional import import_optional
from skescore.monitoring._monitor import MONITOR_KINDS, RuleMonitor


def prometheus_text(monitor: RuleMonitor) -> str:
    """Return the rates and alarms of a monitor in the text format of Prometheus.

    Parameters
    ----------
    monitor : RuleMonitor
        The monitor.

    Returns
    -------
    str
        Text for the textfile collector of the node exporter.

    Examples
    --------
    >>> from skescore.monitoring import RuleBaseline, RuleMonitor, prometheus_text
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> baseline = RuleBaseline.from_rows(rules, [[1], [3]], ["low", "high"])
    >>> print(prometheus_text(RuleMonitor(rules, baseline)).splitlines()[2])
    skescore_rows_total 0
    """
    lines = [
        "# HELP skescore_rows_total Rows so far.",
        "# TYPE skescore_rows_total counter",
        f"skescore_rows_total {monitor.n_rows}",
        "# HELP skescore_labels_total Labels so far.",
        "# TYPE skescore_labels_total counter",
        f"skescore_labels_total {monitor.n_labels}",
    ]
    frame = monitor.to_frame()
    alarms = {(c.rule, c.kind) for c in monitor.changes()}
    for name, help_text, value_of in (
        ("rate", "Rate so far.", lambda line, kind, _: line[kind]),
        ("baseline_rate", "Held-out rate.", lambda line, kind, _: line[f"baseline_{kind}"]),
        (
            "false_alarm_probability",
            "Upper bound on the probability of this evidence without a change.",
            lambda line, kind, _: line[f"false_alarm_probability_{kind}"],
        ),
        ("alarm", "1 after an alarm.", lambda _, kind, rule: int((rule, kind) in alarms)),
    ):
        lines += [f"# HELP skescore_{name} {help_text}", f"# TYPE skescore_{name} gauge"]
        for rule, line in frame.iterrows():
            for kind in monitor.kinds:
                if math.isnan(line[f"false_alarm_probability_{kind}"]):
                    continue
                value = value_of(line, kind, rule)
                text = "NaN" if math.isnan(value) else f"{value:.10g}"
                lines.append(f'skescore_{name}{{rule="{rule}",kind="{kind}"}} {text}')
    lines.append(
        f'skescore_alarm{{rule="all rows",kind="any"}} {int(("all rows", "any") in alarms)}'
    )
    return "\n".join(lines) + "\n"


def log_to_mlflow(monitor: RuleMonitor, run_id: str) -> None:
    """Log the rates and alarms of a monitor as metrics of an MLflow run; the step counts rows.

    Parameters
    ----------
    monitor : RuleMonitor
        The monitor.
    run_id : str
        ID of the run, in the tracking store for which MLflow is configured.

    Raises
    ------
    ImportError
        If MLflow is not installed.
    """
    mlflow = import_optional("mlflow", extra="mlflow", purpose="Logging to MLflow")
    metrics: dict[str, Any] = {"n_labels": monitor.n_labels, "alarms": len(monitor.changes())}
    for rule, line in monitor.to_frame().iterrows():
        for kind in MONITOR_KINDS:
            if kind in line and not math.isnan(line[kind]):
                metrics[re.sub(r"\W", "_", f"{rule}_{kind}")] = float(line[kind])
    client = mlflow.tracking.MlflowClient()
    for name, value in metrics.items():
        client.log_metric(run_id, name, value, step=monitor.n_rows)
