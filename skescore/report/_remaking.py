"""Rules of candidates that a search measured but did not keep, made again from its seeds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from skescore.datasets._loading import Dataset
from skescore.extractors import is_prefit
from skescore.registry import make_extractor
from skescore.report._candidates_file import Kept
from skescore.rules import RuleSet
from skescore.tuning._candidates import Candidates
from skescore.tuning._pareto import pareto_mask

__all__ = ["front_of", "remake_rules"]


def front_of(candidates: Candidates) -> list[int]:
    """Places of the candidates that no other beats in loss, size and either incompleteness.

    Parameters
    ----------
    candidates : Candidates
        Of one search.

    Returns
    -------
    list of int
        Those with the fewest rules first.
    """
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
    """Extract the rules of candidates once more, from all rows as the search did for its winner.

    Parameters
    ----------
    kept : Kept
        What the search kept.
    places : iterable of int
        Whose rules are wanted, the most wanted first.
    winners_rules : RuleSet
        The winner's rules as the search wrote them. They are made first: if they come out
        otherwise, the black box or the data are not those of the search.
    data : Dataset
        The rows of the search.
    black_box : estimator
        Its black box; cloned and fitted unless it comes frozen.
    time_limit : float
        Seconds after which no further extraction starts.

    Returns
    -------
    rules : dict of int to RuleSet
        By place.
    note : str
        Why some are missing; empty if none is.
    """
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
                # Fitted once: every candidate is asked to explain the same model.
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
