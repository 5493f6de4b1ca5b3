"""Search of ``skescore tune``: its progress, and the choice of the rules."""

from __future__ import annotations

import argparse
import datetime
import math
import sys
import textwrap
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from skescore._io import expand_home
from skescore._names import BLACK_BOX_NAMES
from skescore._quantities import MAX_DISAGREEMENT, limited_quantities
from skescore._scores import SCORE_SPECS
from skescore._splitters import make_group_splitter, make_time_splitter
from skescore._text import plural
from skescore.black_boxes import load_black_box
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._arguments import COMMAND, KEEP_COST, VERIFY_SECONDS, constraints_from
from skescore.cli._inputs import (
    StoredDifferentlyError,
    StoredSample,
    check_labels,
    draw_sample,
    is_source,
    null_classes,
    prepare_black_box,
    read_data,
    read_test_rows,
)
from skescore.cli._output import number, printable
from skescore.cli._rule_files import (
    BASELINE,
    STATE,
    make_baseline,
    output_folder,
    preparation_of,
    read_baseline,
    read_rules,
    write_files,
    write_page,
    write_verification,
)
from skescore.cli._trials import (
    LARGE_TABLE,
    TrialStorage,
    WorkerProcesses,
    is_alone,
    n_processes,
    note_earlier,
    open_trials,
    redact_passwords,
    study_name,
)
from skescore.cli._tune_result import (
    MAX_CLASSES,
    REVISED,
    choice_record,
    choice_text,
    figures_text,
    find_shortcomings,
    is_failed,
    json_text,
    make_result,
    revision_text,
    rules_text,
    score_label,
    score_sign,
    stated_limits,
    tune_text,
)
from skescore.registry import extractor_label, suitable_extractors
from skescore.report import alternatives_record
from skescore.rules import RuleSet
from skescore.scorers import evaluate_rules
from skescore.suspicions import (
    SUSPICION_CHECKS,
    ResultFacts,
    SuspiciousDataWarning,
    TableFacts,
    count_reports,
    find_suspicions,
)
from skescore.tuning import ExtractorSearchCV, SearchCallback, SearchProgress
from skescore.tuning.runner import is_counted

if TYPE_CHECKING:
    from skescore.certificates import Certificate
    from skescore.datasets import Dataset, Preparation
    from skescore.monitoring import Revision, RuleBaseline, RuleChange
    from skescore.suspicions import Suspicion
    from skescore.verification import VerifiedChoice


#: With fewer training rows, errors of models are explained by the number of rows.
_FEW_ROWS = 10


def find_rules(options: argparse.Namespace, begin: datetime.datetime) -> str:
    """Search for the best rules, write the files, and return the text for standard output."""
    notes = output.Notes(options.quiet)
    model_file = None
    if not (options.black_box in BLACK_BOX_NAMES or options.black_box.startswith(COMMAND)):
        model_file = load_black_box(options.black_box, trust=options.trust)
        if not is_source(options.data):
            options.labels = [*options.labels, *null_classes(model_file)]
    stored = draw_sample(options, notes) if is_source(options.data) else None
    options.explains_labels = False
    earlier = None if options.from_run is None else EarlierRun.load(options.from_run)
    if stored is not None:
        dataset = stored.dataset
    elif earlier is not None:
        dataset = earlier.read(options)
    else:
        dataset = read_data(options, model_file)
    _choose_extractors(options, dataset, notes)
    inputs.check_features(dataset, options.features)
    test = read_test_rows(options, dataset, model_file, notes)
    suspicions = _find_table_suspicions(options, dataset, test, model_file)
    command = redact_passwords(options.command_line)
    for suspicion in suspicions:
        notes.warn(suspicion.with_command(command))
    notes.add_findings(dataset.name, dataset.findings)
    model, about_model = prepare_black_box(options, dataset, model_file)
    if options.workers == 0:
        trial_storage = TrialStorage(options.storage, study_name(options, dataset))
        _run_search(options, dataset, model, notes, trial_storage)
        return ""
    with (
        output_folder(options),
        open_trials(options, dataset, about_model, notes) as trial_storage,
    ):
        search = _run_search(options, dataset, model, notes, trial_storage)
        with notes.instead_of_warnings():
            finalists, idle = _select_best(options, dataset, search, stored)
            revision = None if earlier is None else earlier.revise(options, search)
            verified = verify_winner(options, search)
            all_rows = _evaluate_all_rows(options, search, stored, notes)
        for suspicion in (result_suspicions := _find_result_suspicions(search)):
            notes.warn(suspicion.with_command(command), is_shown=options.format == "json")
        suspicions += result_suspicions
        shortcomings = find_shortcomings(dataset, search, idle)
        for sentence in shortcomings:
            notes.add(sentence, is_shown=options.format == "json")
        baseline = make_baseline(options, search, test, notes)
        result = make_result(options, dataset, search) | {"notes": notes.texts}
        result["best"]["shortcomings"] = shortcomings
        result["suspicions"] = [suspicion.with_command(command) for suspicion in suspicions]
        result["checks"] = count_reports(suspicions)
        result["black_box"] |= about_model
        if verified is not None:
            result["verification"] = choice_record(verified)
        if revision is not None:
            result["revision"] = {"from": str(options.from_run), **revision.to_dict()}
        if all_rows is not None:
            result["all_rows"] = all_rows | {"finalists": finalists}
        if test is not None:
            result["test"] = _evaluate_test_rows(search, test)
        result["alternatives"] = alternatives_record(search)
        seconds = (datetime.datetime.now(datetime.UTC) - begin).total_seconds()
        start_time = begin.isoformat(timespec="seconds")
        result["run"] |= {"started": start_time, "seconds": round(seconds, 3)}
        certificate = None
        if options.certify is not None:
            certificate = _certify_rules(options, dataset, search, notes)
            result["certificate"] = certificate.to_text().split("\n")
        if options.output is not None:
            write_files(options, search, result, certificate, baseline)
            write_verification(options, verified)
    write_page(options, dataset, model)
    _report_limits(options, search)
    if options.format == "json":
        return json_text(search, result)
    text = tune_text(options, dataset, search, result)
    if verified is not None:
        text += f"\n{choice_text(verified)}\n"
    return text if revision is None else f"{text}\n{revision_text(options, revision)}"


def _find_table_suspicions(
    options: argparse.Namespace, dataset: Dataset, test: Dataset | None, model_file: Any
) -> list[Suspicion]:
    """Return the suspicions about the rows of the search and of the test."""
    suspicions = find_suspicions(
        TableFacts(
            dataset.X,
            dataset.y,
            dataset.task,
            groups=dataset.groups,
            is_shuffled=dataset.times is None,
            identifiers=dataset.identifiers,
            test=None if test is None else test.X,
        )
    )
    if model_file is None:
        return suspicions
    check_labels(options, model_file)
    # A fitted model knows the classes by their old names.
    return [replace(s, options=()) if s.options[:1] == ("--labels",) else s for s in suspicions]


def _find_result_suspicions(search: ExtractorSearchCV) -> list[Suspicion]:
    """Return the suspicions about the result of the search."""
    names = {check.name for check in SUSPICION_CHECKS if check.facts is ResultFacts}
    return [suspicion for suspicion in search.suspicions_ if suspicion.name in names]


def _report_limits(options: argparse.Namespace, search: ExtractorSearchCV) -> None:
    """Set the exit code, and write an error with --quiet, if no candidate satisfies the limits."""
    board = search.leaderboard_
    complete = board[board["state"] == "complete"]
    if "within_limits" not in board or complete["within_limits"].astype(bool).any():
        return
    options.exit_code = 1
    if options.quiet:  # otherwise the text of the result reports it
        sys.stderr.write(
            f"skescore: error: no candidate satisfies {stated_limits(options)}; the best of all is "
            "shown. Relax the limits, or try more candidates with --trials.\n"
        )


def _select_best(
    options: argparse.Namespace,
    dataset: Dataset,
    search: ExtractorSearchCV,
    stored: StoredSample | None,
) -> tuple[list[dict[str, Any]] | None, Sequence[str]]:
    """Select the best candidate; return finalists compared on all rows, and idle features."""
    finalists = None
    if stored is not None and options.pick is None:
        finalists = _compare_finalists(options, search, stored)
    if options.pick is None:
        return finalists, search.avoid_idle_features()
    _pick(options, dataset, search)
    return finalists, search.best_extractor_.features_without_influence(dataset.X)


def _certify_rules(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, notes: output.Notes
) -> Certificate:
    """Prove how far the rules are from the best possible rules on all rows."""
    from skescore.certificates import certify
    from skescore.optimal import SolverLimits

    scoring: Any = arguments.scorer_from(options)
    certificate = certify(
        search,
        dataset.X,
        dataset.y if options.reference == "data" else None,
        scoring=scoring,
        tolerance=options.tolerance,
        sample_weight=inputs.class_weights_from(options, dataset),
        limits=SolverLimits(time_limit=0.7 * options.certify),
    )
    try:  # the search itself weights classes
        limits = SolverLimits(time_limit=0.3 * options.certify)
        return certificate.with_held_out(search, limits=limits)
    except ValueError as error:  # the proof remains valid
        notes.add(f"the best rules found are not measured on held-out rows: {error}")
        return certificate


def _pick(options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV) -> None:
    """Select the candidate of ``--pick`` as the best."""
    front = search.pareto_front_
    if options.pick > len(front):
        raise ValueError(
            f"--pick {options.pick}: the trade-off has only {plural(len(front), 'row')}. "
            f"Pass --pick 1 to --pick {len(front)}."
        )
    search.choose(front.iloc[options.pick - 1])


_SAMPLE_ONLY = (
    "the rules are evaluated on the sample only, not on all rows, because columns are converted "
    "when they are read (dates, words for missing values, numbers in texts, rows that are left "
    "out); convert these columns in the source, or leave them out with --drop"
)


def _evaluate_all_rows(
    options: argparse.Namespace,
    search: ExtractorSearchCV,
    stored: StoredSample | None,
    notes: output.Notes,
) -> dict[str, Any] | None:
    """Evaluate the rules on all rows of the data source; return None if that is not possible."""
    if stored is None:
        return None
    black_box = None if options.reference == "data" else search.best_extractor_.estimator_
    try:
        counts = stored.count_rows(search.rules_, black_box)
    except StoredDifferentlyError:
        notes.add(_SAMPLE_ONLY)
        return None
    evaluation = evaluate_rules(search.rules_, counts)
    scores = arguments.knowledge_scorer_from(options).score(evaluation)
    measure = "accuracy" if search.rules_.task == "classification" else "r2"
    return {
        "rows": sum(counts.n_rows),
        "scores": {
            name: spec.signed(scores[spec.scorer_name]) for name, spec in SCORE_SPECS.items()
        },
        measure: evaluation.performance(measure, "penalize"),
        "completeness_instances": scores["completeness_instances"],
    }


def _compare_finalists(
    options: argparse.Namespace, search: ExtractorSearchCV, stored: StoredSample
) -> list[dict[str, Any]] | None:
    """Select the finalist that is best on all rows; return None if counts cannot decide."""
    try:
        finalists = search.compare_on_source(stored)
    except StoredDifferentlyError:
        return None
    if finalists is None:
        return None
    finalists["score"] *= score_sign(options)
    records: list[Any] = finalists.to_dict(orient="records")
    return records


def _evaluate_test_rows(search: ExtractorSearchCV, test: Dataset) -> dict[str, Any]:
    """Evaluate the best rules and the black box on the test rows."""
    extractor = search.best_extractor_
    measure = accuracy_score if test.task == "classification" else r2_score
    return {
        "source": test.source,
        "checksum_sha256": test.checksum,
        "rows": len(test.X),
        "fidelity": extractor.fidelity(test.X),
        "rules": extractor.score(test.X, test.y),
        "black_box": float(measure(test.y, extractor.oracle_.query(test.X))),
        "completeness_instances": float(search.rules_.covers(test.X).mean()),
    }


def _choose_extractors(options: argparse.Namespace, dataset: Dataset, notes: output.Notes) -> None:
    if options.extractors is None:
        names = suitable_extractors(
            dataset.task, categories=bool(dataset.categories), n_rows=len(dataset.X)
        )
        options.extractors = names[: options.trials]
        if left_out := names[options.trials :]:
            notes.add(
                f"with {plural(options.trials, 'trial')} the following extractors are not tried: "
                f"{', '.join(left_out)}"
            )


def make_splitter(dataset: Dataset, cv: int, seed: int, notes: output.Notes) -> Any:
    """Make folds: in the order of time, of whole groups, or shuffled.

    Shuffled folds and groups are stratified if a class has enough rows.
    """
    n_rows = len(dataset.X)
    if dataset.times is not None:
        return make_time_splitter(cv, n_rows)
    if dataset.groups is not None:
        labels = dataset.y if dataset.class_counts else None
        return make_group_splitter(cv, dataset.groups, labels, random_state=seed)
    if cv > n_rows:
        raise ValueError(
            f"--cv {cv} needs more rows than {dataset.name} has ({n_rows}). Pass at most "
            f"--cv {n_rows}."
        )
    counts = dataset.class_counts
    if not counts or max(counts.values()) < cv:
        return KFold(cv, shuffle=True, random_state=seed)
    rare = [f"{label!r} ({count})" for label, count in counts.items() if count < cv]
    if rare:
        more = f" and {len(rare) - MAX_CLASSES} more" if len(rare) > MAX_CLASSES else ""
        notes.add(
            f"classes with fewer rows than there are folds ({cv}): "
            f"{', '.join(rare[:MAX_CLASSES])}{more}; they are missing in some folds"
        )
    return StratifiedKFold(cv, shuffle=True, random_state=seed)


def _make_search(
    options: argparse.Namespace,
    dataset: Dataset,
    model: Any,
    trial_storage: TrialStorage,
    folds: Any,
    progress: SearchProgress,
) -> ExtractorSearchCV:
    """Make the search with the options of the command."""
    limits = {limit: getattr(options, limit) for limit in limited_quantities()}
    uses_own_threads = options.n_jobs is None and is_alone(options)
    return ExtractorSearchCV(
        model,
        extractors=options.extractors,
        scoring=arguments.search_scoring_from(options),
        n_trials=options.trials,
        timeout=options.timeout,
        max_queries=options.max_queries,
        cv=folds,
        measures=options.measures,
        allocation=options.allocation,
        n_repeats=options.repeats,
        class_weight=options.class_weight,
        features=options.features,
        constraints=constraints_from(options, dataset.X, dataset.y),
        **limits,
        refit=options.workers != 0,
        n_jobs=n_processes(options),
        random_state=options.seed,
        storage=trial_storage.storage,
        study_name=trial_storage.study,
        callbacks=[progress] if options.quiet else [progress, FirstRules(options, limits)],
        keep_folds=True,  # the baseline and certificates evaluate the winner on them
        fit_n_jobs=(-1 if dataset.X.size >= LARGE_TABLE else 1) if uses_own_threads else None,
    )


def _run_search(
    options: argparse.Namespace,
    dataset: Dataset,
    model: Any,
    notes: output.Notes,
    trial_storage: TrialStorage,
) -> ExtractorSearchCV:
    folds = make_splitter(dataset, options.cv, options.seed, notes)
    n_left = max(options.trials - note_earlier(trial_storage, options.extractors, notes), 0)
    progress = SearchProgress(
        n_left, score_label(options), score_sign(options), enabled=not options.quiet
    )
    search = _make_search(options, dataset, model, trial_storage, folds, progress)
    # Rare classes are reported in a separate note with their names.
    # A constant is reported by its shortcomings, and the alternatives are printed.
    # Proofs are the task of --certify.
    ignored_messages = (
        "The least populated class",
        "The best candidate by .* is a constant",
        "The rules are not proven to be optimal",
    )
    with notes.instead_of_warnings(*ignored_messages):
        warnings.simplefilter("ignore", SuspiciousDataWarning)  # reported before the notes
        try:
            with WorkerProcesses(options, trial_storage, notes), progress:
                # Labels that the model assigns are not a target to compare with.
                y = None if options.explains_labels else dataset.y
                search.fit(dataset.X, y, groups=dataset.groups)
        except KeyboardInterrupt:
            if not hasattr(search, "best_extractor_"):
                raise
            options.exit_code = 1
            notes.add(
                f"interrupted after {_count_budgeted(search)} of "
                f"{plural(options.trials, 'trial')}; repeat the command to run the remaining trials"
            )
        except ValueError as error:
            n_rows = len(dataset.X)
            if n_rows - math.ceil(n_rows / options.cv) >= _FEW_ROWS:
                raise
            complaint = str(error).rstrip(".")
            raise ValueError(
                f"{complaint}. There are only {n_rows} rows, to be split into {options.cv} folds. "
                "Use more rows, or another --black-box."
            ) from error
    _note_search(options, dataset, search, notes)
    return search


def _note_search(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, notes: output.Notes
) -> None:
    """Report sampling, failed trials and trials that were not started."""
    if search.n_rows_sampled_ is not None:
        notes.add(
            f"candidates were evaluated on a sample of {search.n_rows_sampled_} of the "
            f"{len(dataset.X)} rows, and the best three then on all of them"
        )
    board = search.leaderboard_
    failed_trials = board[is_failed(board)]
    if len(failed_trials):
        error_text = failed_trials["error"].iloc[0]
        reason = error_text.partition("undefined on some fold: ")[2] or error_text
        # The remedy in Python does not apply to the command line.
        reason = reason.partition(" Pass undefined=...")[0]
        suffix = ", the first" if len(failed_trials) > 1 else ""
        notes.add(
            f"{len(failed_trials)} of {plural(len(board), 'candidate')} gave no score{suffix}: "
            f"{textwrap.shorten(reason, 120, placeholder=' ...')}"
        )
    n_started = _count_budgeted(search)
    if n_started < options.trials and not options.exit_code:
        budget = "--timeout" if options.max_queries is None else "--max-queries"
        notes.add(f"{n_started} of {options.trials} trials were started within {budget}")


def _count_budgeted(search: ExtractorSearchCV) -> int:
    """Count the finished trials of the budget, which does not include the baselines."""
    return sum(
        trial.state.is_finished() and is_counted(trial)
        for study in search.studies_.values()
        for trial in study.get_trials(deepcopy=False)
    )


def verify_winner(options: argparse.Namespace, search: ExtractorSearchCV) -> VerifiedChoice | None:
    """Verify the winner, or find the first candidate within the limit; None without options."""
    from skescore.verification import VerificationLimits, choose_verified

    if options.verify is None and options.max_disagreement is None:
        return None
    limits = VerificationLimits(time_limit=options.verify or VERIFY_SECONDS)
    try:
        choice = choose_verified(
            search,
            max_disagreement=options.max_disagreement,
            use_witnesses=options.witnesses,
            limits=limits,
            random_state=options.seed,
        )
    except ValueError as error:  # the rules of the search are not lost
        options.exit_code = 1
        sys.stderr.write(f"skescore: error: the rules are not verified. {error}\n")
        return None
    if not choice.is_within_limit:
        options.exit_code = 1
        limit = MAX_DISAGREEMENT.text.format(value=options.max_disagreement)
        sys.stderr.write(
            f"skescore: error: none of {choice.n_verified} verified candidates has {limit}; the "
            "best of them is shown. Allow more rules, or a larger --max-disagreement.\n"
        )
    return choice


@dataclass(frozen=True)
class EarlierRun:
    """Rules of an earlier run, their held-out counts, and the preparation of its table."""

    path: Path
    ruleset: RuleSet
    baseline: RuleBaseline
    preparation: Preparation

    @classmethod
    def load(cls, folder: Path) -> EarlierRun:
        """Read a run; raise a ValueError if it has no baseline."""
        path = expand_home(folder) / "rules.json"
        ruleset = read_rules(path)
        baseline = read_baseline(path, ruleset)
        if baseline is None:
            raise ValueError(
                f"--from {folder} has no {BASELINE}, so changes of its rules cannot be detected. "
                "Repeat that run with this version of skescore."
            )
        return cls(path, ruleset, baseline, preparation_of(path, ruleset))

    def read(self, options: argparse.Namespace) -> Dataset:
        """Read the new rows as the earlier table was read."""
        return inputs.data_from(
            options,
            task=self.ruleset.task,
            features=list(self.ruleset.feature_names),
            preparation=self.preparation,
        )

    def revise(self, options: argparse.Namespace, search: ExtractorSearchCV) -> Revision:
        """Revise the rules, and make them the winner of the search unless they cost too much."""
        from skescore.monitoring import find_changes, revise_rules

        changes = find_changes(self.ruleset, self.baseline, search)
        names = {(change.rule, change.kind) for change in changes}
        changes += [c for c in self._alarms() if (c.rule, c.kind) not in names]
        cost = KEEP_COST if options.keep_cost is None else options.keep_cost
        revision = revise_rules(search, self.ruleset, changes=changes, max_cost=cost)
        if revision.is_accepted:
            search.adopt(revision.extractor, name=REVISED)
        return revision

    def _alarms(self) -> list[RuleChange]:
        """Return the current alarms of `skescore watch`."""
        from skescore.monitoring import WatchState

        try:
            state = WatchState.load(self.path.with_name(STATE), self.ruleset)
        except (FileNotFoundError, ValueError):
            return []  # the rules are not watched, or their state is in another file
        return state.monitor.changes()


#: Seconds of the search after which the best candidate so far is shown with its rules.
_SECONDS_OF_COLLECTION = 0.5
#: Largest number of rules that are written before the search has ended.
_MAX_RULES = 8


def describe_start(options: argparse.Namespace, n_rows: int, n_all: int, *, is_fitted: bool) -> str:
    """Return a line about the rows on which the black box is fitted, or which it predicts.

    The search uses `n_rows` of the `n_all` rows of the table.
    """
    rows = plural(n_all, "row")
    if n_rows < n_all:
        rows = f"a sample of {n_rows} of {rows}"
    name = arguments.without_passwords(options.black_box)
    if is_fitted:
        return f"querying {name} for its predictions on {rows} ..."
    folds = f"{options.cv} folds of {'these rows' if n_rows == n_all else 'this sample'}"
    return f"fitting {name} on {rows}, and on {folds} ..."


class FirstRules(SearchCallback):
    """Callback that reports fitted black boxes, the first rules, and improvements."""

    def __init__(self, options: argparse.Namespace, limits: dict[str, float | None]) -> None:
        self._options, self._limits = options, limits
        self._label, self._sign = score_label(options), score_sign(options)
        self._search: Any = None
        self._best: tuple[float, float] = (-math.inf, -math.inf)
        self._best_trial: tuple[str, Any] | None = None
        #: Last description of a candidate that was written.
        self._description = ""
        self._start = math.nan
        self._stage = ""
        self._has_shown_rules = False

    def on_stage(self, search: Any, stage: str) -> None:
        """Report that the black box is fitted next, or that it is ready."""
        if stage == "rows":
            return
        data, name = search.data_, arguments.without_passwords(self._options.black_box)
        seconds = time.perf_counter() - self._start
        if stage == "black_boxes":
            n_rows, n_all = search.n_rows_sampled_ or len(data), len(data)
            text = describe_start(self._options, n_rows, n_all, is_fitted=data.is_fitted)
            sys.stderr.write(printable(f"{text}\n"))
        elif stage == "trials":
            self._search = search
            sys.stderr.write(f"model ready after {seconds:.1f} s\n")
        elif stage == "all_rows" and not data.is_fitted:
            sys.stderr.write(printable(f"fitting {name} on all {plural(len(data), 'row')} ...\n"))
        elif stage == "winner" and self._stage == "all_rows" and not data.is_fitted:
            sys.stderr.write(f"model of all rows ready after {seconds:.1f} s\n")
        self._stage, self._start = stage, time.perf_counter()

    def __call__(self, study: Any, trial: Any) -> None:
        """Report a finished trial if it is the best so far."""
        name = study.study_name.rpartition("/")[2]
        attrs = trial.user_attrs
        score = attrs.get("score", math.nan)
        is_candidate = trial.state.name == "COMPLETE" and not math.isnan(score)
        is_better = False
        is_constant = name == "cart" and trial.params.get("max_leaf_nodes") == 1
        if is_candidate and not is_constant and self._keeps_limits(attrs):
            rank = (round(score, 12), -attrs.get("n_rules", math.inf))
            is_better = rank > self._best
            if is_better:
                self._best, self._best_trial = rank, (name, trial)
        if not self._has_shown_rules:
            is_time = time.perf_counter() - self._start >= _SECONDS_OF_COLLECTION
            if self._best_trial is not None and (is_time or name != "cart"):
                self._show_rules()
        elif is_better:
            earlier, self._description = self._description, self._describe(name, attrs)
            if self._description != earlier:  # not equal up to rounding
                sys.stderr.write(printable(f"better: {self._description}\n"))

    def _keeps_limits(self, attrs: dict[str, Any]) -> bool:
        for parameter, quantity in limited_quantities().items():
            limit, value = self._limits.get(parameter), attrs.get(quantity.name, math.nan)
            if limit is not None and quantity.sign * (value - limit) < -1e-9:
                return False
        return True

    def _show_rules(self) -> None:
        assert self._best_trial is not None
        self._has_shown_rules = True
        name, trial = self._best_trial
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                candidate = {"extractor": name, "params": dict(trial.params)}
                rules = self._search.fit_candidate(candidate).rules_
        except Exception:  # an aid for the reader that must not end the search
            return
        text = textwrap.indent(rules_text(rules, _MAX_RULES), "   ")
        self._description = self._describe(name, trial.user_attrs, len(rules))
        sys.stderr.write(printable(f"first rules: {self._description}\n{text}\n"))

    def _describe(self, name: str, attrs: dict[str, Any], n_rules: int | None = None) -> str:
        """Describe a candidate, by default with its mean number of rules over the folds."""
        n = attrs.get("n_rules", math.nan) if n_rules is None else n_rules
        count = f"{n:.3g} rule{'' if n == 1 else 's'}{'' if n % 1 == 0 else ' on average'}"
        correctness, fidelity = (
            None if math.isnan(attrs.get(key, math.nan)) else float(attrs[key])
            for key in ("correctness", "fidelity")
        )
        data = self._search.data_
        held_out_rows = f"{'' if data.row_weights is None else 'weighted '}held-out rows"
        agreement = figures_text(
            correctness,
            fidelity,
            "accuracy" if is_classifier(self._search.estimator) else "r2",
            rows={"correctness": held_out_rows, "fidelity": data.fidelity_rows_label},
        )
        score = number(self._sign * attrs["score"], 4)
        parts = [f"{extractor_label(name)} with {count}", f"{self._label} {score}", agreement]
        return ", ".join(filter(None, parts))
