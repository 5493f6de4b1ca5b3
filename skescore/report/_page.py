"""One HTML file that shows a run and needs nothing else, no network above all."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from skescore._io import write_atomically
from skescore._optional import import_optional
from skescore.datasets import Dataset
from skescore.report._gathering import gather, page_weights
from skescore.report._rule_views import plain

__all__ = ["write_report"]

#: Our own script, in the order in which its parts need each other.
SCRIPTS = (
    "scores.js", "rules.js", "counterfactuals.js", "dom.js", "trade_off.js", "rule_views.js",
    "page.js",
)  # fmt: skip
#: Signs that could end a script early or that JavaScript once took for the end of a line.
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_PURPOSE = "Writing a report"
#: How measures are called in the summary.
_QUALITY_NAMES = {
    "accuracy": "accuracy", "f1_weighted": "weighted F1", "r2": "R²", "quality": "performance",
}  # fmt: skip


def write_report(
    folder: str | Path,
    path: str | Path | None = None,
    *,
    data: Dataset | None = None,
    black_box: Any = None,
    time_limit: float = 30.0,
    rankings: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """Write a run as one self-contained HTML file.

    Use it to hand a search or a benchmark to people who have neither Python nor the data: they can
    move the weights of the scores and see who wins, read the rules and try rows.

    Parameters
    ----------
    folder : str or Path
        What ``skescore tune --output`` or ``skescore bench --output`` wrote.
    path : str or Path, optional
        The file; by default ``report.html`` in the folder. Replaced if it is there.
    data : Dataset, optional
        The rows, see :func:`skescore.datasets.load_dataset`. By default those of the run, if they
        are built in or still where they were. Without rows there are no measures of single rules.
    black_box : estimator, optional
        The run's black box, fitted in ``FrozenEstimator`` or not fitted. With it (and the rows) the
        rules of the other candidates on the front are made again and are part of the page.
    time_limit : float, default=30.0
        Seconds after which no further rules are made again.
    rankings : sequence of mapping, default=()
        Ranks of a bench's extractors over its data sets, which the page shows as they come; each
        with ``task``, ``score_name``, ``extractors`` (``extractor``, ``rank``, ``wins``), ``ranks``
        (by data set and extractor), ``verdict``, ``caveat`` and ``left_out``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError, FileNotFoundError
        If the folder is not that of a run, is damaged, or the file cannot be written.
    ImportError
        If jinja2 or plotly is missing.

    Notes
    -----
    The page computes scores, predictions and counterfactuals itself, by the formulas of
    :mod:`skescore.metrics` and :mod:`skescore.rules`; tests hold both against each other.
    A policy in the page forbids it to load or send anything.
    """
    if not time_limit >= 0:
        raise ValueError(f"time_limit must be 0 seconds or more, got {time_limit!r}.")
    folder = Path(folder)
    jinja2 = import_optional("jinja2", extra="report", purpose=_PURPOSE)
    offline = import_optional("plotly.offline", extra="report", purpose=_PURPOSE)
    content = gather(folder, data, black_box, time_limit)
    parts = files("skescore.report").joinpath("static")
    library = str(offline.get_plotlyjs())
    own = "\n".join(parts.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    scripts = [_as_script(text) for text in (library, own)]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        parts.joinpath("page.html.jinja").read_text(encoding="utf-8")
    )
    html = template.render(
        title=_title(content),
        kind=content["kind"],
        groups=content["groups"],
        run=content["run"],
        notes=content["notes"],
        rankings=rankings,
        scores=content["scores"],
        weights=page_weights(content["scores"]),
        command=shlex.join(map(str, (content["run"].get("run") or {}).get("command_line") or ())),
        quality_names=_QUALITY_NAMES,
        winners_text=_winners_text(content),
        policy=_policy(scripts),
        style=parts.joinpath("style.css").read_text(encoding="utf-8"),
        library=scripts[0],
        own=scripts[1],
        content=_as_json(content),
        version=_version(),
    )
    path = folder / "report.html" if path is None else Path(path)
    try:
        write_atomically(path, html)
    except OSError as error:
        raise ValueError(
            f"The report cannot be written to {path}: {error.strerror or error}. Name another file."
        ) from error
    return path


def _title(content: dict[str, Any]) -> str:
    names = list(dict.fromkeys(group["data"] for group in content["groups"]))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"Benchmark on {shown}" if content["kind"] == "bench" else f"Rules for {shown}"


def _winners_text(content: dict[str, Any]) -> str:
    """The winner's rules for readers whose browser runs no scripts."""
    winner = content["groups"][0]["winner"] if content["groups"] else None
    view = content["views"].get(str(-1 if winner is None else winner))
    return "" if view is None else str(view["text"])


def _as_json(content: Any) -> str:
    text = json.dumps(_ready(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escaped in _ESCAPES.items():
        text = text.replace(sign, escaped)
    return text


def _ready(value: Any) -> Any:
    """Replace what JSON does not know: parameters may be anything, and numbers not finite."""
    if isinstance(value, dict):
        return {str(name): _ready(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_ready(item) for item in value]
    return plain(value)


def _as_script(text: str) -> str:
    """A script as it stands in the page, where nothing in it may look like its end."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: list[str]) -> str:
    """What the page may do: run these very scripts, and load nothing."""
    hashes = [
        base64.b64encode(hashlib.sha256(f"\n{text}\n".encode()).digest()).decode()
        for text in scripts
    ]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _version() -> str:
    try:
        return version("skescore")
    except PackageNotFoundError:
        return ""
