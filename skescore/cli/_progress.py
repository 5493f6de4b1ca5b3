"""Progress of a search on standard error: the black box, the first rules, and improvements."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable, Collection
from typing import Any

from sklearn.base import is_classifier

from skescore._quantities import limited_quantities
from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli._alternatives import figures_text
from skescore.cli._output import number, printable
from skescore.registry import extractor_label
from skescore.rules import RuleSet
from skescore.tuning import ExtractorSearchCV, SearchProgress

__all__ = ["FirstRules", "ReportingSearch", "describe_start"]

#: Seconds of the search after which the best candidate so far is shown with its rules.
_SECONDS_OF_COLLECTION = 0.5
#: Largest number of rules that are written before the search has ended.
_MAX_RULES = 8


def describe_start(options: argparse.Namespace, n_rows: int, n_all: int, *, is_fitted: bool) -> str:
    """Return a line on the black box: which rows it is fitted on, or asked about.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command.
    n_rows, n_all : int
        Number of rows of the search, and of the table.
    is_fitted : bool
        Whether the black box is given with its predictions.

    Returns
    -------
    str
        The line.
    """
    rows = plural(n_all, "row")
    if n_rows < n_all:
        rows = f"a sample of {n_rows} of {rows}"
    name = arguments.without_passwords(options.black_box)
    if is_fitted:
        return f"asking {name} for its predictions on {rows} ..."
    folds = f"{options.cv} folds of {'them' if n_rows == n_all else 'it'}"
    return f"fitting {name} on {rows}, and on {folds} ..."


class FirstRules:
    """Callback of a search that writes when the black box is ready, first rules, and improvements.

    Parameters
    ----------
    label : str
        Name of the score.
    sign : int
        -1 if the search maximizes the negative of the score.
    limits : dict of str to float
        Limits of the search by their parameters; None where there is no limit.
    """

    def __init__(self, label: str, sign: int, limits: dict[str, float | None]) -> None:
        self._label, self._sign = label, sign
        self._limits = limits
        self._extract: Callable[[str, dict[str, Any]], RuleSet] | None = None
        self._best: tuple[float, float] = (-math.inf, -math.inf)
        self._best_trial: tuple[str, Any] | None = None
        self._start = time.perf_counter()
        self._has_shown_rules = False
        self._measure = "accuracy"
        self._weighted: Collection[str] = ()

    def begin(
        self,
        extract: Callable[[str, dict[str, Any]], RuleSet],
        measure: str,
        weighted: Collection[str] = (),
    ) -> None:
        """Report that the black box is ready and begin to compare candidates.

        `extract` returns the rules of a candidate from all rows, `measure` is the measure of
        agreement, and `weighted` names the figures of weighted rows.
        """
        self._extract, self._measure, self._weighted = extract, measure, weighted
        sys.stderr.write(f"black box ready after {time.perf_counter() - self._start:.1f} s\n")
        self._start = time.perf_counter()

    def __call__(self, study: Any, trial: Any) -> None:
        """Write about a finished trial if it is the best so far."""
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
        if self._has_shown_rules:
            if is_better:
                sys.stderr.write(printable(f"better: {self._describe(name, attrs)}\n"))
        elif self._best_trial is not None and (
            name != "cart" or time.perf_counter() - self._start >= _SECONDS_OF_COLLECTION
        ):
            self._show_rules()

    def _keeps_limits(self, attrs: dict[str, Any]) -> bool:
        for parameter, quantity in limited_quantities().items():
            limit, value = self._limits.get(parameter), attrs.get(quantity.name, math.nan)
            if limit is not None and quantity.sign * (value - limit) < -1e-9:
                return False
        return True

    def _show_rules(self) -> None:
        if self._extract is None or self._best_trial is None:
            return
        self._has_shown_rules = True
        name, trial = self._best_trial
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rules = self._extract(name, dict(trial.params))
        except Exception:  # an aid for the reader that must not end the search
            return
        lines = str(rules).splitlines()
        if len(lines) > _MAX_RULES:
            lines = [*lines[:_MAX_RULES], f"... {plural(len(lines) - _MAX_RULES, 'more rule')}"]
        text = "\n".join(f"   {line}" for line in lines)
        heading = f"first rules: {self._describe(name, trial.user_attrs)}"
        sys.stderr.write(printable(f"{heading}\n{text}\n"))

    def _describe(self, name: str, attrs: dict[str, Any]) -> str:
        n_rules = attrs.get("n_rules", math.nan)
        count = f"{n_rules:.3g} rule{'' if n_rules == 1 else 's'}"
        figures = {
            key: None if math.isnan(attrs.get(key, math.nan)) else float(attrs[key])
            for key in ("correctness", "fidelity")
        }
        agreement = figures_text(
            figures["correctness"], figures["fidelity"], self._measure, weighted=self._weighted
        )
        score = number(self._sign * attrs["score"], 4)
        parts = [f"{extractor_label(name)} with {count}", f"{self._label} {score}", agreement]
        return ", ".join(filter(None, parts))


class ReportingSearch(ExtractorSearchCV):
    """Search whose callbacks can extract the rules of a candidate before the search has ended."""

    _retains_folds = True  # the baseline and certificates evaluate the winner on them
    _options: argparse.Namespace | None = None

    def announce_black_boxes(self, options: argparse.Namespace) -> None:
        """Write a line before the black box is fitted on the rows of the search or of the table."""
        self._options = options

    def fit_forests_by(self, n_threads: int) -> None:
        """Fit black boxes with this number of threads; -1 uses all cores.

        It does not change the number of processes that evaluate candidates.
        """
        self._black_box_n_jobs = n_threads

    def _fit_black_boxes(self, data: Any) -> Any:
        if self._options is not None:
            text = describe_start(
                self._options,
                len(data.target),
                len(self.data_.target),
                is_fitted=self.data_.is_fitted,
            )
            sys.stderr.write(printable(f"{text}\n"))
        verb = "querying" if self.data_.is_fitted else "fitting"
        self._show_activity(f"{verb} the black box")
        return super()._fit_black_boxes(data)

    def _show_activity(self, text: str) -> None:
        """Show what the search does before its first trial instead of the number of trials."""
        callbacks: Any = self.callbacks or ()
        for callback in callbacks:
            if isinstance(callback, SearchProgress):
                callback.activity = text

    def _fit_black_box_on_all_rows(self) -> Any:
        if self._options is None or self.data_.is_fitted:
            return super()._fit_black_box_on_all_rows()
        begin = time.perf_counter()
        name = arguments.without_passwords(self._options.black_box)
        rows = plural(len(self.data_.target), "row")
        sys.stderr.write(printable(f"fitting {name} on all {rows} ...\n"))
        fold = super()._fit_black_box_on_all_rows()
        sys.stderr.write(f"black box of all rows ready after {time.perf_counter() - begin:.1f} s\n")
        return fold

    def _run(self, runner: Any, score_name: str) -> KeyboardInterrupt | None:
        fold = runner.evaluator.all_rows
        self._show_activity("")
        for callback in runner.callbacks:
            if fold is not None and isinstance(callback, FirstRules):
                measure = "accuracy" if is_classifier(self.estimator) else "r2"
                weighted = [] if self.data_.row_weights is None else ["correctness", "fidelity"]
                callback.begin(
                    self._extract_from(fold), measure, weighted[: 1 if self.data_.is_fitted else 2]
                )
        return super()._run(runner, score_name)

    def _extract_from(self, fold: Any) -> Callable[[str, dict[str, Any]], RuleSet]:
        """Return a function that extracts rules from the rows of a fold."""

        def extract(name: str, params: dict[str, Any]) -> RuleSet:
            candidate = self._seeded(name).set_params(estimator=fold.black_box, **params)
            options = {} if fold.train_weight is None else {"sample_weight": fold.train_weight}
            target = fold.y_test if fold.has_target else None  # all rows are test rows
            rules: RuleSet = candidate.fit(fold.X_train, target, **options).rules_
            return rules

        return extract
