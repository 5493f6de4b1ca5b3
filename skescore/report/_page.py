"""One self-contained HTML file that shows a run and needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skescore._io import write_atomically
from skescore._names import metric_label
from skescore._optional import import_optional
from skescore._validation import check_instance
from skescore.certificates import Certificate
from skescore.datasets import Dataset
from skescore.metrics import labels_of_rules
from skescore.registry import extractor_label
from skescore.report._gathering import data_of_arrays, gather, page_weights, quantities_of_page
from skescore.report._rule_views import plain, predictions_on
from skescore.rules import RuleSet
from skescore.tuning import ExtractorSearchCV
from skescore.verification import Verification

__all__ = ["embedded_page", "write_report"]

#: Scripts of the page, each after the scripts that it uses.
SCRIPTS = (
    "scores.js",
    "rules.js",
    "counterfactuals.js",
    "dom.js",
    "scatter.js",
    "leaderboard.js",
    "alternatives.js",
    "trade_off.js",
    "certificate.js",
    "quality.js",
    "rule_cards.js",
    "pictures.js",
    "try_row.js",
    "edits.js",
    "intervals.js",
    "editor.js",
    "comparison.js",
    "notebook.js",
    "page.js",
)
#: Characters that could end a script early, or that end a line in older versions of JavaScript.
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_PURPOSE = "Writing a report"


def write_report(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    path: str | Path | None = None,
    title: str | None = None,
    data: Dataset | None = None,
    black_box: Any = None,
    time_limit: float = 30.0,
    rankings: Sequence[Mapping[str, Any]] = (),
    certificate: Certificate | None = None,
    verification: Verification | None = None,
) -> Path:
    """Write a run, a search or rules as one self-contained HTML file.

    The page is for people who have neither Python nor the data: they can read the rules and their
    quality, see where rules fail, try rows, and choose between fewer rules and fewer errors.

    Parameters
    ----------
    source : str, Path, ExtractorSearchCV, RuleSet or sequence of two
        The folder that ``skescore tune --output`` or ``skescore bench --output`` wrote, a fitted
        search, or rules. Two of them are compared side by side if neither is a benchmark.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows on which rules are measured. A search has its own rows.
    y : array-like of shape (n_rows,), optional
        Their labels or numbers.
    path : str or Path, optional
        The file; by default ``report.html`` (``comparison.html`` for two sources) in the folder of
        the first run, or in the current one. An existing file is replaced.
    title : str, optional
        The title of the page; by default, it names the data.
    data : Dataset, optional
        The rows of a run's folder, see :func:`skescore.datasets.load_dataset`; by default, the data
        of the run if they are built in or can be read again. Without rows, the page has no measures
        of single rules.
    black_box : estimator, optional
        The black box of a run's folder, either fitted and wrapped in ``FrozenEstimator`` or not
        fitted. With it and the rows, the rules of the other candidates on the front are extracted
        again for the page. A search has its own.
    time_limit : float, default=30.0
        Seconds after which no further rules are extracted again.
    rankings : sequence of mapping, default=()
        Ranks of a bench's extractors over its data sets, shown without changes; each with ``task``,
        ``score_name``, ``extractors`` (``extractor``, ``rank``, ``wins``), ``ranks`` (by data set
        and extractor), ``verdict``, ``caveat`` and ``left_out``, and optionally a picture,
        ``diagram`` (the text of an SVG file).
    certificate : Certificate, optional
        Bounds on how much better other rules can be than the rules of ``source``, a search or
        rules. The folder of a run has its own.
    verification : Verification, optional
        Where rules agree with the model, see :func:`skescore.verification.verify`. The folder of a
        run has its own, ``verification.json``, if ``skescore verify`` wrote it there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError, FileNotFoundError
        If a folder is not the folder of a run or is damaged, if X is passed without y or for a
        source other than rules, or if the file cannot be written.
    ImportError
        If jinja2 is missing.

    Notes
    -----
    The page computes scores, predictions and counterfactuals itself, by the formulas of
    :mod:`skescore.metrics` and :mod:`skescore.rules`. A policy in the page forbids it to load or
    send anything.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.report import write_report
    >>> from skescore.rules import as_ruleset
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> rules = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(rules, X, y, path=f"{folder}/iris.html", title="Three irises")
    ...     "<h1>Three irises</h1>" in page.read_text(encoding="utf-8")
    True
    """
    if not time_limit >= 0:
        raise ValueError(f"time_limit must be 0 seconds or more, got {time_limit!r}.")
    _check_rows(X, y)
    sources = list(source) if isinstance(source, list | tuple) else [source]
    jinja2 = import_optional("jinja2", extra="report", purpose=_PURPOSE)
    check_instance("certificate", certificate, Certificate, optional=True)
    check_instance("verification", verification, Verification, optional=True)
    if not 1 <= len(sources) <= 2:
        raise ValueError(f"source must be one run or two, got {len(sources)}.")
    contents, tables = [], []
    for one in sources:
        rows = _rows_of(one, X, y, title) or data
        with _naming_damaged_run(one):
            content, rows = gather(one, rows, black_box, time_limit, certificate, verification)
        contents.append(content | _settings_of_page(content))
        tables.append(rows)
    content = contents[0] if len(contents) == 1 else _side_by_side(sources, contents, tables)
    if path is None:
        folder = sources[0] if isinstance(sources[0], str | Path) else "."
        path = Path(folder) / ("report.html" if len(contents) == 1 else "comparison.html")
    path = Path(path)
    with _naming_damaged_run(sources[0], jinja2.TemplateError):
        page = _rendered(jinja2, content, title, rankings)
    try:
        write_atomically(path, page)
    except OSError as error:
        raise ValueError(
            f"The report cannot be written to {path}: {error.strerror or error}. Name another file."
        ) from error
    return path


def _check_rows(X: Any, y: Any) -> None:
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together, but one is None.")


def _rows_of(source: Any, X: Any, y: Any, title: str | None) -> Dataset | None:
    """Return the rows of a search, or the rows that were passed with rules; None without rows."""
    if X is not None:
        if not isinstance(source, RuleSet):
            raise ValueError(
                "X and y belong to rules. A search has its own rows; pass the rows of a run's "
                "folder as data."
            )
        labels_of_rules(source, "y", y)  # raises an error for missing labels, and another type
        return data_of_arrays(source, X, y, title)
    if isinstance(source, ExtractorSearchCV) and source.data_.y is not None:
        return data_of_arrays(source.rules_, source.data_.X, source.data_.y, title)
    return None


def embedded_page(
    source: ExtractorSearchCV | RuleSet,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    black_box: Any = None,
    time_limit: float = 30.0,
) -> tuple[str, dict[str, Any]]:
    """Return a page whose script reports choices and edits to the window that contains it.

    Parameters
    ----------
    source : ExtractorSearchCV or RuleSet
        A fitted search, or rules.
    X, y, title, black_box, time_limit
        See :func:`write_report`.

    Returns
    -------
    page : str
        The HTML.
    content : dict
        Its contents, with the rules of candidates as ``views``.
    """
    jinja2 = import_optional("jinja2", extra="report", purpose="Showing a page in a notebook")
    _check_rows(X, y)
    content, _ = gather(source, _rows_of(source, X, y, title), black_box, time_limit)
    content |= {"embedded": True} | _settings_of_page(content)
    return _rendered(jinja2, dict(content), title, ()), content


def _settings_of_page(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights, quantities and limits that a page offers."""
    weights = page_weights(content.get("scores", {}))
    return {"directions": {one.name: one.direction for one in weights}} | quantities_of_page()


@contextmanager
def _naming_damaged_run(source: Any, *kinds: type[Exception]) -> Iterator[None]:
    """Name ``run.json`` in errors that its malformed contents cause."""
    caught: tuple[type[Exception], ...] = (
        AttributeError,
        LookupError,
        OverflowError,
        TypeError,
        *kinds,
    )
    try:
        yield
    except caught as error:
        if not isinstance(source, str | Path):
            raise
        raise ValueError(
            f"{Path(source) / 'run.json'} is not the record of a run ({type(error).__name__}: "
            f"{error}). Repeat the run."
        ) from error


def _rendered(
    jinja2: Any,
    content: dict[str, Any],
    title: str | None,
    rankings: Sequence[Mapping[str, Any]],
) -> str:
    parts = files("skescore.report").joinpath("static")
    script = _as_script(
        "\n".join(parts.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["label"] = extractor_label
    environment.filters["picture"] = _picture
    template = environment.from_string(
        parts.joinpath("page.html.jinja").read_text(encoding="utf-8")
    )
    compared = content["kind"] == "compare"
    kept_rules = content.pop("kept_rules", [])
    run = {} if compared else content["run"]
    text = template.render(
        title=title or _title(content),
        kind=content["kind"],
        embedded=content.get("embedded", False),
        names=content["names"] if compared else (),
        agreement=content["agreement"] if compared else "",
        groups=content.get("groups", ()),
        run=run,
        picked=any(group.get("picked", False) for group in content.get("groups", ())),
        notes=content["notes"],
        warnings=content.get("warnings", ()),
        checks=content.get("checks", ()),
        differences=content.get("differences", ()),
        certificate=content.get("certificate"),
        editing=content.get("editing"),
        verification=content.pop("verification", None),
        rankings=rankings,
        kept_rules=kept_rules,
        scores=content.get("scores", {}),
        limits=content.get("limits", ()),
        weights=page_weights(content.get("scores", {})),
        command=shlex.join(map(str, (run.get("run") or {}).get("command_line") or ())),
        metric_label=metric_label,
        scored_by=content.get("scored_by"),
        winners_text="\n\n".join(map(_winners_text, content["runs"] if compared else [content])),
        policy=_policy(script),
        style=parts.joinpath("style.css").read_text(encoding="utf-8"),
        own=script,
        content=_as_json(content),
        version=_version(),
    )
    return str(text)


def _picture(svg: str) -> str:
    """Return an SVG file as a data URL; scripts in it do not run."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _side_by_side(
    sources: Sequence[Any], contents: list[dict[str, Any]], tables: Sequence[Dataset | None]
) -> dict[str, Any]:
    """Build the page that compares two runs."""
    for content in contents:
        if content["kind"] == "bench":
            raise ValueError(
                "Two runs are compared by their rules, which a bench does not contain. Write one "
                "report for each, or name folders of skescore tune."
            )
    names = [
        Path(one).resolve().name if isinstance(one, str | Path) else content["groups"][0]["name"]
        for one, content in zip(sources, contents, strict=True)
    ]
    if names[0] == names[1]:
        names = [f"{name} ({letter})" for name, letter in zip(names, "AB", strict=True)]
    for content in contents:
        winner = content["groups"][0]["winner"]
        first = str(-1 if winner is None else winner)
        content["views"] = {first: content["views"][first]}
    return {
        "kind": "compare",
        "runs": contents,
        "names": names,
        "agreement": _agreement(contents, tables),
        "differences": _differences(contents, names, tables),
        "warnings": [
            f"{name}: {warning}"
            for name, content in zip(names, contents, strict=True)
            for warning in content.get("warnings", ())
        ],
        "notes": [
            f"{name}: {note}"
            for name, content in zip(names, contents, strict=True)
            for note in content["notes"]
            if not note.startswith("Only the winner's rules")
        ],
    }


#: Settings that must be equal for figures of two runs to be comparable, by their name in the page.
_COMPARED = {
    "target": ("data", "target"),
    "groups of held-out rows": ("search", "groups"),
    "order of held-out rows": ("search", "time"),
    "reference": ("search", "reference"),
    "measure of predictions": ("groups", "performance_name"),
    "completeness": ("search", "completeness"),
    "weights of classes": ("search", "class_weight"),
    "weights of rows": ("search", "sample_weight"),
    "weights of the score": ("search", "weights"),
}


def _have_same_rows(contents: Sequence[dict[str, Any]], tables: Sequence[Dataset | None]) -> bool:
    """Return whether two runs have the same rows of a file, apart from an order by time."""
    one, other = (content["run"]["data"] for content in contents)
    if any(one.get(name) != other.get(name) for name in ("checksum_sha256", "rows")):
        return False
    orders = {content["run"]["search"].get("time") for content in contents}
    codes = [pd.factorize(table.y)[0] for table in tables if table is not None]
    return len(orders) == 2 or len(codes) < 2 or np.array_equal(codes[0], codes[1])


def _differences(
    contents: Sequence[dict[str, Any]], names: Sequence[str], tables: Sequence[Dataset | None]
) -> list[str]:
    """Write a sentence for each setting by which the figures of two runs are not comparable."""
    if any(content["kind"] != "tune" for content in contents):
        return []
    sentences = []
    if not _have_same_rows(contents, tables):
        sentences.append("The runs have different rows, so their measures are not comparable.")
    for label, (part, name) in _COMPARED.items():
        values = [
            content["groups"][0].get(name)
            if part == "groups"
            else content["run"][part].get(name) or None
            for content in contents
        ]
        if values[0] != values[1]:
            texts = [f"{_setting_text(v)} in {n}" for v, n in zip(values, names, strict=True)]
            sentences.append(f"Different {label}: {', '.join(texts)}.")
    return sentences


def _setting_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={number:g}" for name, number in value.items())
    texts = {None: "none", True: "given", "data": "the data"}
    return (texts | {"black-box": "the predictions of the model"}).get(value, str(value))


def _agreement(contents: list[dict[str, Any]], tables: Sequence[Dataset | None]) -> str:
    """Write on how many rows two rule sets agree, if both have the same rows."""
    one, other = tables
    if one is None or other is None or not one.X.equals(other.X):
        return "Two rule sets side by side."
    predictions = []
    for content, data in zip(contents, (one, other), strict=True):
        view = next(iter(content["views"].values()))
        predicted, unpredicted = predictions_on(RuleSet.from_json(json.dumps(view["set"])), data)
        predictions.append(
            [None if s else v for v, s in zip(predicted.tolist(), unpredicted, strict=True)]
        )
    same = sum(a == b and a is not None for a, b in zip(*predictions, strict=True))
    return f"Both make the same prediction for {same} of {len(one.X)} rows."


def _title(content: dict[str, Any]) -> str:
    if content["kind"] == "compare":
        return " and ".join(content["names"])
    names = list(dict.fromkeys(group["data"] for group in content["groups"]))
    shown_names = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"Benchmark on {shown_names}" if content["kind"] == "bench" else f"Rules for {shown_names}"
    )


def _winners_text(content: dict[str, Any]) -> str:
    """Return the winner's rules for readers whose browser runs no scripts."""
    winner = content["groups"][0]["winner"] if content["groups"] else None
    view = content["views"].get(str(-1 if winner is None else winner))
    return "" if view is None else str(view["text"])


def _as_json(content: Any) -> str:
    text = json.dumps(
        _to_json_values(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    for character, escaped in _ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def _to_json_values(value: Any) -> Any:
    """Replace values that JSON cannot represent: non-finite numbers, and objects as parameters."""
    if isinstance(value, dict):
        return {str(name): _to_json_values(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_values(item) for item in value]
    return plain(value)


def _as_script(text: str) -> str:
    """Return a script for the page, without texts that HTML takes for the end of a script."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(script: str) -> str:
    """Write the content security policy: run only this script, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _version() -> str:
    try:
        return version("skescore")
    except PackageNotFoundError:
        return ""
