"""Contents of the page: a run's folder, a search or rules as one dictionary."""

from __future__ import annotations

import csv
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from skescore._io import check_regular, json_of
from skescore._names import NO_RUN_TEXT, metric_label
from skescore._quantities import limited_quantities, measured_quantities
from skescore._text import cell_text, listed
from skescore._validation import one_dimension, own_rows
from skescore.black_boxes import fit_weighted, is_prefit
from skescore.certificates import Certificate
from skescore.datasets import BUILT_IN, Dataset, Preparation, load_dataset
from skescore.registry import extractor_label, make_extractor
from skescore.report._alternatives import alternatives_record
from skescore.report._bench_rows import find_rows, groups_of, kept_rules
from skescore.report._candidates_file import SavedCandidates, kept_names, read_candidates
from skescore.report._editing import editing_view
from skescore.report._rule_views import rule_view, sample_rows
from skescore.report._verification_view import verification_of_run, verification_view
from skescore.rules import RuleSet
from skescore.rules._text import format_label
from skescore.scorers import COMPLETENESSES, SCORE_SPECS, Weight, all_weights
from skescore.suspicions import SUSPICION_CHECKS, count_reports
from skescore.tuning import (
    SHARE_OF_ALL_ROWS,
    Candidate,
    Candidates,
    ExtractorSearchCV,
    SearchLimits,
    SearchObjective,
    choose_winner,
    pareto_mask,
    selection_scores,
)
from skescore.verification import Verification

__all__ = [
    "RemakeSettings",
    "data_of_arrays",
    "data_of_run",
    "front_of",
    "gather",
    "remake_rules",
]

#: Number of positions of the slider, which multiplies or divides each weight by at most ten, see
#: :attr:`skescore.scorers.Weight.direction`.
SLIDER_STEPS = 41


def front_of(candidates: Candidates) -> list[int]:
    """Return the indices of the best trade-offs between loss, size and completeness."""
    if not len(candidates):
        return []
    losses = np.column_stack(
        [
            candidates.means("loss"),
            candidates.means("size"),
            1 - candidates.means("completeness_volume"),
        ]
    )
    front = np.flatnonzero(pareto_mask(losses))
    return [int(index) for index in front[np.lexsort([losses[front, 0], losses[front, 1]])]]


def slider_stops(
    saved: SavedCandidates,
    score: str,
    completeness: str,
    weights: Mapping[str, float],
    limits: Mapping[str, float] | None = None,
) -> list[int]:
    """Return the indices of the candidates that the page's slider leads to, within the limits."""
    spec = SCORE_SPECS.get(score)
    if spec is None or spec.expression is None or not spec.weights or not len(saved.candidates):
        return []
    search_limits, candidates = SearchLimits(**(limits or {})), saved.candidates
    allowed_indices = np.flatnonzero([search_limits.allow(c.folds, c.all_rows) for c in candidates])
    stops: dict[int, None] = {}
    if not len(allowed_indices):
        return []
    for position in np.linspace(-1, 1, SLIDER_STEPS):
        shifted_weights = {
            weight.name: weights[weight.name] * 10 ** (position * weight.direction)
            for weight in spec.weights
        }
        choice: dict[str, Any] = {"score": score, "completeness": completeness, **shifted_weights}
        scores = spec.signed(saved.candidates.scores(**choice))
        size = saved.candidates.means("size")
        order = np.lexsort([size, -scores.mean(axis=1)])
        order = order[np.isin(order, allowed_indices)]
        with_all_rows = spec.signed(saved.candidates.scores_with_all_rows(**choice))
        best = choose_winner(
            selection_scores(scores, with_all_rows)[order],
            size[order],
            saved.candidates.means("black_box_rows")[order],
            saved.standard_errors,
        )
        stops[int(order[best])] = None
    return list(stops)


@dataclass(frozen=True)
class RemakeSettings:
    """Settings with which the rules of candidates are extracted again.

    `make` returns the extractor of a candidate; without it, extractors are made from the registry.
    """

    black_box: Any
    time_limit: float
    make: Callable[[Candidate], Any] | None = None
    row_weights: np.ndarray | None = None

    @property
    def fit_params(self) -> dict[str, Any]:
        """Keyword arguments of ``fit``."""
        return {} if self.row_weights is None else {"sample_weight": self.row_weights}


def remake_rules(
    saved: SavedCandidates,
    indices: Iterable[int],
    winners_rules: RuleSet,
    data: Dataset,
    settings: RemakeSettings,
) -> tuple[dict[int, RuleSet], str]:
    """Extract the rules of candidates again from all rows, as the search did for its winner.

    Returns
    -------
    dict
        The rules by index of the candidate.
    str
        Why some or all rules are missing; empty if none are.
    """
    begin = time.perf_counter()
    if saved.winner is None or (saved.extractor_seed is None and settings.make is None):
        return {}, "the run does not state how its rules can be extracted again"
    rules_by_index: dict[int, RuleSet] = {}
    requested = [saved.winner, *(index for index in indices if index != saved.winner)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The run has shown these warnings.
        try:
            model = _fit_black_box(data, settings)
        except Exception as error:
            return {}, f"the model could not be fitted again: {error}"
        for index in requested:
            if rules_by_index and time.perf_counter() - begin > settings.time_limit:
                return (
                    rules_by_index,
                    f"extracting them again took longer than the limit of {settings.time_limit:g} "
                    "s",
                )
            try:
                extractor = _make_extractor(saved, index, model, settings)
                rules_by_index[index] = extractor.fit(data.X, data.y, **settings.fit_params).rules_
            except Exception as error:
                if index == saved.winner:
                    return {}, f"the winner's rules could not be extracted again: {error}"
                continue
            if index == saved.winner and not _are_same(rules_by_index[index], winners_rules):
                return {}, (
                    "the winner's rules differ from the rules of the run (another machine, or "
                    "other versions), so other rules would not be trustworthy"
                )
    is_complete = len(rules_by_index) == len(requested)
    return rules_by_index, "" if is_complete else "some could not be extracted again"


def _are_same(one: RuleSet, other: RuleSet) -> bool:
    """Return whether rules are equal or have the same text."""
    return one == other or one.to_text() == other.to_text()


def _fit_black_box(data: Dataset, settings: RemakeSettings) -> Any:
    """Return a fitted black box, which all candidates explain."""
    if is_prefit(settings.black_box):
        return settings.black_box
    from sklearn.frozen import FrozenEstimator

    model = fit_weighted(settings.black_box, data.X, data.y, settings.row_weights)
    return FrozenEstimator(model)


def _make_extractor(
    saved: SavedCandidates, index: int, model: Any, settings: RemakeSettings
) -> Any:
    """Return the extractor of a candidate, not fitted yet, for a fitted black box."""
    candidate = saved.candidates[index]
    if settings.make is not None:
        return settings.make(candidate).set_params(estimator=model)
    extractor = make_extractor(candidate.extractor, model)
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=saved.extractor_seed)
    return extractor.set_params(**candidate.params)


#: Maximum number of characters that the rules of candidates other than the winner take in the page.
_MAX_OTHER_RULES_LENGTH = 700_000
_FAILED = ("fail", "pruned")


def gather(
    source: Any,
    data: Dataset | None,
    black_box: Any,
    time_limit: float,
    certificate: Certificate | None = None,
    verification: Verification | None = None,
) -> tuple[dict[str, Any], Dataset | None]:
    """Read a run, a search or rules; return the page's contents and the rows."""
    proofs = {
        "certificate": None if certificate is None else certificate_view(certificate),
        "verification": None if verification is None else verification_view(verification),
    }
    if isinstance(source, RuleSet):
        return _gather_rules(source, data, black_box) | proofs, data
    if isinstance(source, ExtractorSearchCV):
        return _gather_search(source, data, time_limit) | proofs, data
    for name, content in proofs.items():
        if content is not None:
            raise ValueError(
                f"{name} is only allowed with a search or rules; the folder of a run has its own."
            )
    folder = Path(source)
    if not folder.is_dir():
        raise FileNotFoundError(NO_RUN_TEXT.format(folder))
    if (folder / "candidates.json").exists():
        return _gather_run(folder, data, black_box, time_limit)
    rows = find_rows(folder)
    if rows is not None:
        if not len(rows):
            raise ValueError(f"{folder} contains a bench run without any rows yet. Resume it.")
        return _gather_bench(folder, rows), None
    file_names = sorted(path.name for path in folder.iterdir())
    if "rules.json" in file_names and "run.json" in file_names:
        raise ValueError(
            f"{folder} contains a run of an earlier version, without candidates.json. Repeat it: "
            "skescore tune ... --output DIR."
        )
    raise ValueError(
        f"{folder} is not the folder of a run: it must contain candidates.json (skescore tune "
        f"--output) or the rows of a bench as CSV, and contains {listed(file_names) or 'nothing'}."
    )


def certificate_view(certificate: Certificate) -> dict[str, Any]:
    """Return the contents of a certificate from which the page draws its bounds for any weights."""
    scores: dict[str, dict[str, Any]] = {}
    for name, spec in SCORE_SPECS.items():
        if spec.expression is None:
            continue
        try:
            one = certificate.with_score(name)
        except ValueError:  # depends on another loss, or is undefined for the given rules
            continue
        scores[name] = {
            "given": one.given_prediction(),
            "kinds": [
                [list(bounds) for bounds in one.prediction_bounds(kind)] for kind in one.kinds
            ],
        }
    return {
        "sentences": certificate.to_text().split("\n"),
        "score": certificate.score,
        "settings": {
            "completeness": certificate.settings["completeness"],
            **all_weights(),
            **certificate.settings["weights"],
        },
        "loss": certificate.frontiers[0].loss.replace("_", " "),
        "kinds": [
            {
                "kind": frontier.kind,
                "lower": frontier.lower.tolist(),
                "upper": frontier.upper.tolist(),
                "status": [status.replace("_", " ") for status in frontier.status],
            }
            for frontier in certificate.frontiers
        ],
        "given": {
            name: value
            for name, value in certificate.given_rules.items()
            if name not in ("metrics", "rules")
        },
        "scores": scores,
    }


def _certificate_of_run(
    folder: Path, run: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the certificate of a run, or None with notes that state why it cannot be shown."""
    if "certificate" not in run:
        return None, []
    path = folder / "certificate.json"
    try:
        view = certificate_view(Certificate.from_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        return None, [f"The certificate of the run cannot be read: {error}"]
    if view["sentences"] != run["certificate"]:
        return None, [f"{path.name} is not the certificate of this run, so it is not shown."]
    return view, []


def data_of_arrays(ruleset: RuleSet, X: Any, y: Any, name: str | None) -> Dataset:
    """Make a data set of X and y; unknown column names become the feature names of the rules."""
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(np.asarray(X))
    if X.shape[1] == ruleset.n_features and set(X.columns) != set(ruleset.feature_names):
        X = X.set_axis(list(ruleset.feature_names), axis=1)
    if len(y) != len(X):
        raise ValueError(f"y must have as many rows as X, {len(X)}, got {len(y)}.")
    labels = one_dimension("y", y)
    y = pd.Series(labels, index=X.index, name=getattr(y, "name", None) or "target")
    task: Literal["classification", "regression"] = (
        "regression" if ruleset.task == "regression" else "classification"
    )
    return Dataset(X, y, task, name or str(y.name), "arrays", "")


def _gather_rules(ruleset: RuleSet, data: Dataset | None, black_box: Any) -> dict[str, Any]:
    """Return the page's contents for rules without a search."""
    name = "rules" if data is None else data.name
    group: dict[str, Any] = {
        "name": name,
        "data": name,
        "black_box": None,
        "task": ruleset.task,
        "quality": {},
        "candidates": [],
        "winner": None,
        "failures": [],
        "standard_errors": None,
        "share_of_all_rows": SHARE_OF_ALL_ROWS,
    }
    return {
        "kind": "rules",
        "run": {},
        "groups": [group],
        "scores": page_scores([]),
        "start": {"score": "ice", "completeness": "volume", **all_weights()},
        "views": {"-1": rule_view(ruleset, data)},
        "editing": _editing(ruleset, data, black_box, "-1"),
        "rows": None if data is None else sample_rows(data, ruleset),
        "target": None if data is None else str(data.y.name),
        "notes": []
        if data is not None
        else ["Without rows, the page cannot show the quality of the rules; pass X and y."],
    }


def _editing(
    ruleset: RuleSet, data: Dataset | None, black_box: Any, view: str
) -> dict[str, Any] | None:
    """Return the contents for editing a view, or None; only a fitted black box is queried."""
    model = None
    if data is not None and black_box is not None and is_prefit(black_box):
        model = np.asarray(black_box.predict(own_rows(data.X)))
    editing = editing_view(ruleset, data, model)
    return None if editing is None else editing | {"view": view}


def _gather_search(
    search: ExtractorSearchCV, data: Dataset | None, time_limit: float
) -> dict[str, Any]:
    """Return the page's contents for a search that is in memory."""
    check_is_fitted(search, "leaderboard_")
    board = search.leaderboard_
    first = board.iloc[0]
    trial = int(first["trial"] if pd.isna(first["same_as"]) else first["same_as"])
    keys = [(c.extractor, c.trial) for c in search.candidates_]
    key = (str(first["extractor"]), trial)
    saved = SavedCandidates(
        search.candidates_,
        keys.index(key) if key in keys else None,
        search.standard_errors_,
        search.extractor_seed_,
        search.picked_,
    )
    failed = board[board["state"].isin([*_FAILED])]
    return _run_content(
        _describe_search(search, data),
        saved,
        search.rules_,
        data,
        remake=RemakeSettings(
            search.estimator,
            time_limit,
            make=search.make_candidate,
            row_weights=None if data is None else search.data_.row_weights,
        ),
        failures=_count_failures(failed.to_dict("records")),
        notes=[],
        missing_inputs="" if data is not None else "a target",
    )


def _describe_search(search: ExtractorSearchCV, data: Dataset | None) -> dict[str, Any]:
    """Describe a search in memory as ``run.json`` describes a run."""
    reference = "black_box" if is_prefit(search.estimator) else None
    objective = SearchObjective.of(search.scoring, reference=reference)
    settings = getattr(objective.scorer, "settings", {})
    completeness = settings.get("completeness")
    black_box = search.estimator
    inner = black_box.estimator if is_prefit(black_box) else black_box
    name = None if data is None else data.name
    return {
        "data": {
            "name": name or "this data",
            "task": search.rules_.task,
            "rows": None if data is None else len(data.X),
            "features": list(search.rules_.feature_names),
            "rows_dropped": 0,
            "target": None if data is None else str(data.y.name),
        },
        "black_box": {
            "name": type(inner).__name__,
            "trained_here": not is_prefit(black_box),
            "quality": search.black_box_quality_,
        },
        "search": {
            "scoring": list(objective.minimized) or objective.name,
            "weights": {name: settings[name] for name in all_weights() if name in settings},
            "completeness": completeness if completeness in COMPLETENESSES else "volume",
            "reference": getattr(objective.scorer, "reference", "data").replace("_", "-"),
            "extractors": list(search.extractors_),
            "trials": len(search.leaderboard_),
            "cv": max((len(c.folds) for c in search.candidates_), default=0),
            "groups": None if search.data_.groups is None else "given",
            "class_weight": search.class_weight,
            "performance": settings.get("performance"),
            **{name: getattr(search, name) for name in limited_quantities()},
            "sample_weight": search.data_.is_weighted,
            "seed": search.random_state if isinstance(search.random_state, int) else None,
            "seconds": search.search_seconds_,
            "query_cost": asdict(search.query_cost_),
        },
        "alternatives": alternatives_record(search),
        "suspicions": [str(suspicion) for suspicion in search.suspicions_],
        "checks": count_reports(search.suspicions_),
    }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        check_regular(path, str(path))
        value = json_of(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {path}, which every run has. Repeat the run."
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Repeat the run.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must contain an object, got {type(value).__name__}.")
    return value


def _gather_run(
    folder: Path, data: Dataset | None, black_box: Any, time_limit: float
) -> tuple[dict[str, Any], Dataset | None]:
    run = _read_json(folder / "run.json")
    try:
        saved = read_candidates((folder / "candidates.json").read_text(encoding="utf-8"))
        rules = RuleSet.from_json((folder / "rules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: {error}") from error
    notes: list[str] = []
    if data is None:
        data, note = data_of_run(run["data"])
        notes += [note] if note else []
    same = data is not None and data.checksum == run["data"]["checksum_sha256"]
    if data is not None and not same:
        notes.append(
            f"The displayed rows and the measures of the rules are from {data.source}, not from "
            "the data of the search."
        )
    certificate, certificate_notes = _certificate_of_run(folder, run)
    verification, verification_notes = verification_of_run(folder, rules)
    notes += certificate_notes + verification_notes
    class_weight = run["search"].get("class_weight")
    weights = None
    if class_weight is not None and data is not None:
        weights = compute_sample_weight(class_weight, data.y)
    missing_inputs = "" if black_box is not None else "its model"
    if not same:
        missing_inputs = "its data and model"
    content = _run_content(
        run,
        saved,
        rules,
        data,
        remake=RemakeSettings(black_box, time_limit, row_weights=weights),
        failures=_failures(folder / "leaderboard.csv"),
        notes=notes,
        missing_inputs=missing_inputs,
    )
    return content | {"certificate": certificate, "verification": verification}, data


def _run_content(
    run: dict[str, Any],
    saved: SavedCandidates,
    rules: RuleSet,
    data: Dataset | None,
    *,
    remake: RemakeSettings,
    failures: list[dict[str, Any]],
    notes: list[str],
    missing_inputs: str,
) -> dict[str, Any]:
    """Return the page's contents for a search: its candidates and the rules of the front.

    `missing_inputs` names what is missing to extract the rules of other candidates again; it is
    empty if nothing is.
    """
    about, search = run["data"], run["search"]
    score, recorded = _score_of(search["scoring"])
    weights = {**all_weights(), **search["weights"]}
    limits = {name: search[name] for name in limited_quantities() if search.get(name) is not None}
    serious_warnings = [
        *run.get("suspicions", ()),
        *(run.get("best") or {}).get("shortcomings", ()),
    ]
    stops = slider_stops(saved, score, search["completeness"], weights)
    if limits:
        stops += slider_stops(saved, score, search["completeness"], weights, limits)
    alternatives, offered_rules = _alternatives(run, saved)
    other_indices = [
        index
        for index in dict.fromkeys([*front_of(saved.candidates), *stops])
        if index != saved.winner and index not in offered_rules
    ]
    other_rules: dict[int, RuleSet] = {}
    if other_indices and data is not None and not missing_inputs:
        other_rules, reason = remake_rules(saved, other_indices, rules, data, remake)
        other_rules = {i: other for i, other in other_rules.items() if i != saved.winner}
        if reason:
            notes.append(f"This page does not contain all rules of the front: {reason}.")
    elif other_indices:
        only = (
            "Only the rules of the buttons are" if offered_rules else "Only the winner's rules are"
        )
        notes.append(
            f"{only} in this page, because extracting the rules of other candidates again needs "
            f"{missing_inputs}."
        )
    other_rules = offered_rules | other_rules
    views = _short_views(other_rules, data)
    if len(views) < len(other_rules):
        notes.append("This page leaves out some rule sets of the front, to limit its size.")
    included_rules = [other_rules[index] for index in views]
    views = {-1 if saved.winner is None else saved.winner: rule_view(rules, data), **views}
    group = {
        "name": about["name"],
        "data": about["name"],
        "black_box": run["black_box"]["name"],
        "task": about["task"],
        "quality": run["black_box"]["quality"],
        "trained_here": bool(run["black_box"].get("trained_here", True)),
        "reference": search.get("reference", "data"),
        "performance_name": performance_label(about["task"], search),
        "weighed": bool(search.get("class_weight") or search.get("sample_weight")),
        "always": _measure_constant(data, remake.row_weights),
        "candidates": [
            _candidate(saved, index, score, recorded) for index in range(len(saved.candidates))
        ],
        "winner": saved.winner,
        "picked": saved.picked,
        "alternatives": alternatives,
        "scored_by": score_label(search["scoring"]),
        "fidelity_weighed": bool(
            (run.get("alternatives") or {}).get("fidelity", {}).get("weighted")
        ),
        "unseen_generated": _has_generated_rows(run),
        "failures": failures,
        "standard_errors": saved.standard_errors,
        "share_of_all_rows": SHARE_OF_ALL_ROWS,
    }
    return {
        "kind": "tune",
        "run": run,
        "groups": [group],
        "scores": page_scores([group], recorded),
        "start": {"score": score, "completeness": search["completeness"], **weights, **limits},
        "views": {str(index): view for index, view in views.items()},
        "editing": _editing(
            rules, data, remake.black_box, str(-1 if saved.winner is None else saved.winner)
        ),
        "rows": None if data is None else sample_rows(data, rules, included_rules),
        "target": about["target"],
        "warnings": serious_warnings,
        "checks": _checks(run),
        "notes": [*_further_notes(run.get("notes", []), serious_warnings), *notes],
    }


def _checks(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the checks of the data and the result look for, and whether they reported it."""
    reports = run.get("checks") or {}
    return [
        {"text": check.when, "reported": reports[check.name] > 0}
        for check in SUSPICION_CHECKS
        if check.name in reports and (check.name != "test_rows_in_training" or "test" in run)
    ]


def _further_notes(notes: Sequence[str], warnings: Sequence[str]) -> list[str]:
    """Return the notes that are not also warnings; suggested commands are not compared."""
    warning_texts = {warning.partition(": skescore ")[0] for warning in warnings}
    return [note for note in notes if note.partition(": skescore ")[0] not in warning_texts]


def performance_label(task: str, search: Mapping[str, Any]) -> str:
    """Return the name of the measure of predictions in the column ``performance``.

    Parameters
    ----------
    task : {"classification", "regression"}
        Task of the search.
    search : mapping
        Settings of the search, as ``run.json`` holds them.

    Returns
    -------
    str
        Such as ``weighted F1``, or the measure that replaces it in the score of the search.
    """
    default = "r2" if task == "regression" else "f1_weighted"
    name, _ = _score_of(search["scoring"])
    spec = SCORE_SPECS.get(name)
    measure = search.get("performance")
    if not isinstance(measure, str) or spec is None or spec.prediction != "performance":
        measure = default
    return metric_label(measure)


def _alternatives(
    run: Mapping[str, Any], saved: SavedCandidates
) -> tuple[list[dict[str, Any]], dict[int, RuleSet]]:
    """Return the lists that the run offers, and the rules of those other than the winner."""
    index_by_key = {(c.extractor, c.trial): index for index, c in enumerate(saved.candidates)}
    lists: list[dict[str, Any]] = []
    rules: dict[int, RuleSet] = {}
    for record in (run.get("alternatives") or {}).get("lists", ()):
        position = index_by_key.get((record["extractor"], record["trial"]))
        if "best" in record["roles"]:
            position = saved.winner
        elif position is not None and position != saved.winner:
            rules[position] = RuleSet.from_json(json.dumps(record["rules"]))
        if position is not None:
            names = ("roles", "n_rules", "correctness", "fidelity", "next")
            lists.append({"place": position} | {name: record.get(name) for name in names})
    return lists, rules


def _has_generated_rows(run: Mapping[str, Any]) -> bool:
    """Return whether agreement with the model was measured on generated rows."""
    fidelity = (run.get("alternatives") or {}).get("fidelity", {})
    trained_elsewhere = not run["black_box"].get("trained_here", True)  # for older runs
    return bool(fidelity.get("generated", trained_elsewhere))


def score_label(scoring: Any) -> str | None:
    """Return the label of the score of a search; None for several measures."""
    if not isinstance(scoring, str):
        return None
    name, recorded = _score_of(scoring)
    return SCORE_SPECS[name].label if recorded is None else recorded.label


def _short_views(
    rules_by_index: Mapping[int, RuleSet], data: Dataset | None
) -> dict[int, dict[str, Any]]:
    """Return the contents of the first rule sets for which the page has room."""
    remaining_length = _MAX_OTHER_RULES_LENGTH
    views: dict[int, dict[str, Any]] = {}
    for index, ruleset in rules_by_index.items():
        view = rule_view(ruleset, data)
        remaining_length -= len(json.dumps(view))
        if remaining_length < 0:
            break
        views[index] = view
    return views


def _measure_constant(data: Dataset | None, weights: np.ndarray | None) -> dict[str, Any] | None:
    """Measure the best constant prediction on weighted rows; None without weights."""
    if weights is None or data is None:
        return None
    if data.task == "regression":
        y = data.y.to_numpy(float)
        errors = np.abs(y - np.average(y, weights=weights))
        return {"text": None, "error": float(np.average(errors, weights=weights))}
    shares = {name: np.average(data.y == name, weights=weights) for name in data.class_counts}
    majority = max(shares, key=lambda name: round(shares[name], 9))
    return {"text": format_label(majority), "share": float(shares[majority])}


def how_read(about: dict[str, Any], *, missing: str) -> dict[str, Any]:
    """Return the options of `load_dataset` with which a run read its rows (few in older runs)."""
    reading = about.get("reading", {"missing": missing})
    if about.get("table") is None:
        return {**reading, "categories": about["categories"]}
    return {**reading, "preparation": Preparation.from_dict(about["table"])}


def data_of_run(about: dict[str, Any]) -> tuple[Dataset | None, str]:
    """Read the data of a run again, if they are still where they were."""
    built_in = about["name"] in BUILT_IN and about["source"] == BUILT_IN[about["name"]].source
    source = about["name"] if built_in else about["source"]
    hint = "Without the rows, the page has no measures of single rules; pass --data."
    try:
        data = load_dataset(
            source,
            target=about["target"],
            task=about["task"],
            features=about["features"],
            **how_read(about, missing="drop" if about["rows_dropped"] else "error"),
        )
    except (ValueError, OSError, ImportError) as error:
        return None, f"The data of the run cannot be read again: {error} {hint}"
    if data.checksum != about["checksum_sha256"]:
        return None, f"{source} has changed since the run. {hint}"
    return data, ""


def _candidate(
    saved: SavedCandidates, index: int, score: str, recorded: Recorded | None
) -> dict[str, Any]:
    candidate = saved.candidates[index]
    folds = {
        name: [_finite(fold[name]) for fold in candidate.folds]
        for name in kept_names()
        if all(name in fold for fold in candidate.folds)
    }
    names = [name for name in kept_names(all_rows=True) if name in folds]
    all_rows = candidate.all_rows and {
        name: [_finite(candidate.all_rows.get(name))] for name in names
    }
    if recorded is not None and "score" in folds:
        for columns in (folds, all_rows) if all_rows else (folds,):
            columns[score] = [None if v is None else recorded.sign * v for v in columns["score"]]
    return {
        "extractor": extractor_label(candidate.extractor),
        "params": candidate.params,
        "trial": candidate.trial,
        "folds": folds,
        "all_rows": all_rows,
        "missing": 0,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Recorded(NamedTuple):
    """A score without a formula; the page shows the values that the search recorded."""

    name: str
    label: str
    sign: float


def _score_of(scoring: Any) -> tuple[str, Recorded | None]:
    """Return the score with which the page starts, and its record if it has no formula."""
    if not isinstance(scoring, str):
        return "ice", None  # A search by several measures has no score of its own.
    name = scoring.removeprefix("neg_")
    spec = SCORE_SPECS.get(name)
    if spec is not None and spec.expression is not None:
        return name, None
    sign = -1.0 if scoring.startswith("neg_") else 1.0
    return name, Recorded(name, spec.label if spec else name.replace("_", " "), sign)


def page_scores(
    groups: list[dict[str, Any]], recorded: Recorded | None = None
) -> dict[str, dict[str, Any]]:
    """Describe the scores that the page can compute or has recorded values of."""
    folds = [candidate["folds"] for group in groups for candidate in group["candidates"]]
    recorded_scores: dict[str, dict[str, Any]] = {}
    if recorded is not None and any(recorded.name in columns for columns in folds):
        recorded_scores[recorded.name] = {
            "label": recorded.label,
            "greater": recorded.sign > 0,
            "prediction": "performance",
            "kept_as": recorded.name,
            "completeness": False,
            "least_size": 0.0,
            "weights": [],
            "text": "",
            "formula": None,
            "recorded": True,
        }
    return recorded_scores | {
        name: {
            "label": spec.label,
            "greater": spec.greater_is_better,
            "prediction": spec.prediction,
            "kept_as": spec.kept_as,
            "completeness": spec.uses_completeness,
            "least_size": spec.least_size,
            "weights": list(spec.weight_names) if spec.expression is not None else [],
            "text": spec.text,
            "formula": None if spec.expression is None else spec.expression.to_json(),
        }
        for name, spec in SCORE_SPECS.items()
        if (
            any(name in columns for columns in folds)
            if spec.expression is None
            else all(spec.kept_as in columns for columns in folds if columns)
        )
    }


def quantities_of_page() -> dict[str, Any]:
    """Return the headings of the measured quantities, and the limits that the page can set."""
    return {
        "headings": {name: q.heading for name, q in measured_quantities().items()},
        "limits": [
            {
                "id": parameter.replace("_", "-"),
                "parameter": parameter,
                "quantity": quantity.name,
                "heading": quantity.heading,
                "sign": quantity.sign,
                "smallest": quantity.limit.smallest,
                "of_final_rules": quantity.limit.of_final_rules,
            }
            for parameter, quantity in limited_quantities().items()
            if quantity.limit is not None
        ],
    }


def page_weights(scores: Iterable[str]) -> list[Weight]:
    """Return the weights that users can move on the page."""
    return list(
        {
            weight.name: weight
            for name, spec in SCORE_SPECS.items()
            if name in scores and spec.expression is not None
            for weight in spec.weights
        }.values()
    )


def _failures(path: Path) -> list[dict[str, Any]]:
    """Return trials without a score, by extractor, with the first error of each."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return _count_failures(
                {name: cell_text(c) if isinstance(c, str) else c for name, c in row.items()}
                for row in csv.DictReader(file)
                if row.get("state") in _FAILED
            )
    except (OSError, ValueError, csv.Error):
        return []


def _count_failures(rows: Iterable[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    failures: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = str(row.get("extractor"))
        entry = failures.setdefault(
            name, {"extractor": name, "count": 0, "error": row.get("error") or ""}
        )
        entry["count"] += 1
    return list(failures.values())


def _gather_bench(folder: Path, rows: Any) -> dict[str, Any]:
    path = folder / "run.json"
    run = _read_json(path) if path.exists() else {}
    groups = groups_of(rows)
    saved_rules = kept_rules(folder, rows)
    return {
        "kind": "bench",
        "kept_rules": saved_rules,
        "run": run,
        "groups": groups,
        "scores": page_scores(groups),
        "start": {"score": "ice", "completeness": "volume", **all_weights()},
        "views": {},
        "rows": None,
        "target": None,
        "notes": [
            *(
                []
                if saved_rules
                else [
                    "This bench saved the measurements, but not the rules (on the command line: "
                    "--keep-rules)."
                ]
            ),
            *_left_out(run),
        ],
    }


def _left_out(run: dict[str, Any]) -> list[str]:
    """Write a note for each extractor or model and reason why it was not measured on data sets."""
    data_by_reason: dict[tuple[str, str], list[str]] = {}
    for pair in run.get("not_applicable") or ():
        name = str(pair.get("extractor") or pair.get("black_box"))
        if pair.get("why") != "not requested":
            data_by_reason.setdefault((name, str(pair.get("why"))), []).append(
                str(pair.get("data"))
            )
    return [
        f"{name} is left out on {', '.join(data)}: {why}."
        for (name, why), data in data_by_reason.items()
    ]
