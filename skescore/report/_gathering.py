"""What a run's folder holds, as one dictionary for the page."""

from __future__ import annotations

import csv
import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from skescore._text import listed
from skescore.datasets import BUILT_IN, Dataset, Preparation, load_dataset
from skescore.extractors import is_prefit
from skescore.registry import make_extractor
from skescore.report._bench_rows import find_rows, groups_of
from skescore.report._candidates_file import PAGE_SCORES, Kept, kept_names, read_candidates
from skescore.report._rule_views import rule_view, sample_rows
from skescore.rules import RuleSet
from skescore.scorers import SCORE_SPECS, Weight
from skescore.scorers._specs import all_weights
from skescore.tuning import SHARE_OF_ALL_ROWS
from skescore.tuning._candidates import Candidates
from skescore.tuning._pareto import pareto_mask

__all__ = ["data_of_run", "front_of", "gather", "remake_rules"]


# --- rules made again ----------------------------------------------------------------------------


def front_of(candidates: Candidates) -> list[int]:
    """Places of the candidates that no other beats in loss, size and either incompleteness."""
    if not len(candidates):
        return []
    losses = np.column_stack(
        [
            candidates.means("loss"),
            candidates.means("size"),
            1 - candidates.means("completeness_volume"),
        ]
    )
    found = np.flatnonzero(pareto_mask(losses))
    return [int(place) for place in found[np.lexsort([losses[found, 0], losses[found, 1]])]]


def remake_rules(
    kept: Kept,
    places: Iterable[int],
    winners_rules: RuleSet,
    *,
    data: Dataset,
    black_box: Any,
    time_limit: float,
) -> tuple[dict[int, RuleSet], str]:
    """Extract the rules of candidates once more, from all rows as the search did for its winner."""
    begin = time.perf_counter()
    if kept.winner is None or kept.extractor_seed is None:
        return {}, "the run does not say how its rules can be made again"
    found: dict[int, RuleSet] = {}
    wanted = [kept.winner, *(place for place in places if place != kept.winner)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has told them
        try:
            model = black_box
            if not is_prefit(black_box):
                # Fitted once: every candidate explains the same model.
                from sklearn.frozen import FrozenEstimator

                model = FrozenEstimator(clone(black_box).fit(data.X, data.y))
        except Exception as error:
            return {}, f"the black box could not be made again: {error}"
        for place in wanted:
            if found and time.perf_counter() - begin > time_limit:
                return found, f"the time for making them again ({time_limit:g} s) was over"
            candidate = kept.candidates[place]
            try:
                extractor = make_extractor(candidate.extractor, model)
                if "random_state" in extractor.get_params(deep=False):
                    extractor.set_params(random_state=kept.extractor_seed)
                found[place] = extractor.set_params(**candidate.params).fit(data.X).rules_
            except Exception as error:
                if place == kept.winner:
                    return {}, f"the winner's rules could not be made again: {error}"
                continue
            if place == kept.winner and found[place].to_text() != winners_rules.to_text():
                return {}, (
                    "the winner's rules came out otherwise than in the run, so that others would "
                    "not be trustworthy (another machine, or other versions)"
                )
    return found, "" if len(found) == len(wanted) else "some could not be extracted again"


# --- the content of the page ---------------------------------------------------------------------

#: Rules of candidates other than the winner may take so many signs in the page.
_OTHERS_AT_MOST = 700_000
_FAILED = ("fail", "pruned")


def gather(folder: Path, data: Dataset | None, black_box: Any, time_limit: float) -> dict[str, Any]:
    """Read a run and all that belongs to it."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder}. Name the folder that `skescore tune --output` or "
            "`skescore bench --output` wrote."
        )
    if (folder / "candidates.json").exists():
        return _tune(folder, data, black_box, time_limit)
    rows = find_rows(folder)
    if rows is not None:
        if not len(rows):
            raise ValueError(f"{folder} holds a bench run without any rows yet. Go on with it.")
        return _bench(folder, rows)
    there = sorted(path.name for path in folder.iterdir())
    if "rules.json" in there and "run.json" in there:
        raise ValueError(
            f"{folder} holds a run of an earlier skescore, without candidates.json. Make it again: "
            "skescore tune ... --output DIR."
        )
    raise ValueError(
        f"{folder} is not the folder of a run: it must hold candidates.json (skescore tune "
        f"--output) or the rows of a bench as CSV, and holds {listed(there) or 'nothing'}."
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {path}, which every run has. Make the run again."
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Make the run again.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold an object, got {type(value).__name__}.")
    return value


# --- a search ------------------------------------------------------------------------------------


def _tune(folder: Path, data: Dataset | None, black_box: Any, time_limit: float) -> dict[str, Any]:
    run = _read_json(folder / "run.json")
    try:
        kept = read_candidates((folder / "candidates.json").read_text(encoding="utf-8"))
        rules = RuleSet.from_json((folder / "rules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: {error}") from error
    notes: list[str] = []
    about, search = run["data"], run["search"]
    if data is None:
        data, note = data_of_run(about)
        notes += [note] if note else []
    same = data is not None and data.checksum == about["checksum_sha256"]
    if data is not None and not same:
        notes.append(
            f"The rows shown, and the measures of the rules, are of {data.source}, not of the data "
            "of the search."
        )
    places = [place for place in front_of(kept.candidates) if place != kept.winner]
    others: dict[int, RuleSet] = {}
    if places and same and data is not None and black_box is not None:
        made, why = remake_rules(
            kept, places, rules, data=data, black_box=black_box, time_limit=time_limit
        )
        others = {place: found for place, found in made.items() if place != kept.winner}
        if why:
            notes.append(f"Not all rules of the front are in this page: {why}.")
    elif places:
        lacking = "its black box" if same else "its data and black box"
        notes.append(
            f"Only the winner's rules are in this page: the run was read without {lacking}, by "
            "which others could be made again."
        )
    views = {kept.winner if kept.winner is not None else -1: rule_view(rules, data)}
    left = _OTHERS_AT_MOST
    shown: list[RuleSet] = []
    for place, ruleset in others.items():
        view = rule_view(ruleset, data)
        left -= len(json.dumps(view))
        if left < 0:
            notes.append("Some longer rule sets of the front are left out of this page.")
            break
        views[place] = view
        shown.append(ruleset)
    score = _score_of(search["scoring"])
    groups = [
        {
            "name": about["name"],
            "data": about["name"],
            "black_box": run["black_box"]["name"],
            "task": about["task"],
            "quality": run["black_box"]["quality"],
            "candidates": [_candidate(kept, place, score) for place in range(len(kept.candidates))],
            "winner": kept.winner,
            "failures": _failures(folder / "leaderboard.csv"),
            "standard_errors": kept.standard_errors,
            "share_of_all_rows": SHARE_OF_ALL_ROWS,
        }
    ]
    scores = page_scores(groups)
    return {
        "kind": "tune",
        "run": run,
        "groups": groups,
        "scores": scores,
        "start": {
            "score": score if score in scores else "ice",
            "completeness": search["completeness"],
            **all_weights(),
            **search["weights"],
        },
        "views": {str(place): view for place, view in views.items()},
        "rows": None if data is None else sample_rows(data, rules, shown),
        "notes": [*run.get("notes", []), *notes],
    }


def how_read(about: dict[str, Any], *, missing: str) -> dict[str, Any]:
    """Options of `load_dataset` that read rows as those of a run were; older runs kept few."""
    known = about.get("reading", {"missing": missing})
    if about.get("table") is None:
        return {**known, "categories": about["categories"]}
    return {**known, "preparation": Preparation.from_dict(about["table"])}


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


def _candidate(kept: Kept, place: int, score: str) -> dict[str, Any]:
    candidate = kept.candidates[place]
    folds = {
        name: [_finite(fold[name]) for fold in candidate.folds]
        for name in kept_names()
        if all(name in fold for fold in candidate.folds)
    }
    if score not in PAGE_SCORES and "score" in folds:
        spec = SCORE_SPECS[score]
        folds[score] = [None if v is None else spec.signed(v) for v in folds["score"]]
    names = kept_names(all_rows=True)
    return {
        "extractor": candidate.extractor,
        "params": candidate.params,
        "trial": candidate.trial,
        "folds": folds,
        "all_rows": candidate.all_rows
        and {name: [_finite(candidate.all_rows.get(name))] for name in names if name in folds},
        "missing": 0,
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _score_of(scoring: Any) -> str:
    """The score that the page starts with: the search's own, if it is one of rule sets."""
    name = scoring.removeprefix("neg_") if isinstance(scoring, str) else ""
    return name if name in SCORE_SPECS else "ice"


def page_scores(groups: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the page is told of the scores that it can show: computed there, or recorded."""
    folds = [candidate["folds"] for group in groups for candidate in group["candidates"]]
    return {
        name: {
            "label": spec.label,
            "greater": spec.greater_is_better,
            "prediction": spec.prediction,
            "kept_as": spec.kept_as,
            "completeness": spec.uses_completeness,
            "least_size": spec.least_size,
            "weights": list(spec.weight_names) if name in PAGE_SCORES else [],
            "text": spec.text,
        }
        for name, spec in SCORE_SPECS.items()
        if name in PAGE_SCORES or any(name in some for some in folds)
    }


def page_weights(scores: Iterable[str]) -> list[Weight]:
    """The weights that can be moved on the page."""
    return list({w.name: w for n in scores if n in PAGE_SCORES
                 for w in SCORE_SPECS[n].weights}.values())  # fmt: skip


def _failures(path: Path) -> list[dict[str, Any]]:
    """Trials without a score, by extractor, with the first error of each."""
    failures: dict[str, dict[str, Any]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.get("state") in _FAILED:
                    name = str(row.get("extractor"))
                    entry = failures.setdefault(
                        name, {"extractor": name, "count": 0, "error": row.get("error") or ""}
                    )
                    entry["count"] += 1
    except (OSError, ValueError, csv.Error):
        return []
    return list(failures.values())


# --- a bench -------------------------------------------------------------------------------------


def _bench(folder: Path, rows: Any) -> dict[str, Any]:
    path = folder / "run.json"
    run = _read_json(path) if path.exists() else {}
    groups = groups_of(rows)
    return {
        "kind": "bench",
        "run": run,
        "groups": groups,
        "scores": page_scores(groups),
        "start": {"score": "ice", "completeness": "volume", **all_weights()},
        "views": {},
        "rows": None,
        "notes": [
            "A bench keeps what was measured, not the rules. skescore tune keeps rules.",
            *_left_out(run),
        ],
    }


def _left_out(run: dict[str, Any]) -> list[str]:
    """What was not measured, since it suits some data sets only; one note for each reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for pair in run.get("not_applicable") or ():
        name = str(pair.get("extractor") or pair.get("black_box"))
        if pair.get("why") != "not wanted":
            found.setdefault((name, str(pair.get("why"))), []).append(str(pair.get("data")))
    return [
        f"{name} is left out on {', '.join(data)}: {why}." for (name, why), data in found.items()
    ]
