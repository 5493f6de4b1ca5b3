"""Which candidate wins for which weights: the question that the papers of FiRe and ICE leave open.

A search measures every candidate once, and any weights can judge it afterwards. So instead of
guessing weights first, one can look at all of them: few candidates ever win, and each for a whole
region of weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skescore.tuning._candidates import Candidate, Candidates, as_candidates
from skescore.tuning.weights._common import (
    WEIGHTS,
    check_score,
    ranges_of,
    undominated,
    weight,
    weights_of,
)
from skescore.tuning.weights._fire import fire_scores, fire_steps, first_best
from skescore.tuning.weights._ice import IcePlane
from skescore.tuning.weights._plot import plot_intervals, plot_plane
from skescore.tuning.weights._tree import Region, along_line, regions

__all__ = ["WinningRegions", "winning_regions"]

_DOMINATED = "another is at least as good on every fold"
_BEATEN = {
    "fire": "on every step of psi within the range another is better",
    "ice": "bounds prove that everywhere within the range another is better",
}
_UNDECIDED = "not decided: too much alike others"


def winning_regions(
    candidates: Any,
    score: str = "ice",
    *,
    within: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    completeness: str = "volume",
    tolerance: float = 0.01,
) -> WinningRegions:
    r"""Find for which weights each candidate of a search wins.

    Use it before deciding for weights: often one candidate wins for all that seem sensible, or two
    candidates remain, and the choice is between them and no longer between numbers.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate or fitted search
        What was measured. As in the search, the score of a candidate is the mean over the folds of
        its scores on them.
    score : {"ice", "fire"}, default="ice"
        ICE has the weights phi and rho, FiRe has psi.
    within : (float, float) or dict of str to (float, float), optional
        Least and greatest weight, or for ICE one pair for ``"phi"`` and one for ``"rho"``; from
        0.1 to 10 for ICE and to 100 for FiRe by default.
    completeness : {"volume", "instances"}, default="volume"
        How completeness is measured, for ICE.
    tolerance : float, default=0.01
        Share of the area of (phi, rho) that may be left undecided along the boundaries. It bounds
        the error of the shares of the area only, which is much smaller for most candidates.

    Returns
    -------
    WinningRegions
        The table of winners, the winner for given weights, intervals, and a plot.

    Raises
    ------
    TypeError, ValueError
        If there are no candidates, or a name, weight or measure is out of its range.

    Notes
    -----
    Of equally good candidates (to a relative 1e-12) the one with fewer rules wins, then the earlier
    one.

    *FiRe* is a step function of psi: :math:`\lceil r/\psi \rceil` changes at
    :math:`\psi = r, r/2, r/3, \dots` only, where it has the lower value already. So the table is
    exact: intervals closed below and open above.

    *ICE* falls smoothly in :math:`\log\varphi` and :math:`\log\rho`, with slopes that can be
    bounded on a box. The rectangle is halved into boxes until bounds prove in each that one
    candidate wins all over it; along the boundaries boxes remain undecided, and their area is what
    the error of a share may be. Nothing is overlooked between the points of a raster. Candidates
    that win nowhere are proven to, either because another one is as good on every fold, or by the
    bounds. Intervals of one weight at a fixed value of the other end at zeros of the difference of
    two scores, which are isolated in the same way and then found to 1e-9 of the log-weight.

    Shares are of the logarithmic range, in which doubling a weight counts like halving it.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496. ICE: an evaluation metric to assess symbolic knowledge
    quality. 2024.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import winning_regions
    >>> def measured(place, performance, n_rules):
    ...     fold = dict(performance=performance, loss=1 - performance, loss_q=1 - performance,
    ...                 n_rules=n_rules, size=n_rules, completeness_volume=1.0,
    ...                 completeness_instances=1.0)
    ...     return Candidate("cart", {"max_leaf_nodes": n_rules}, place, (fold,))
    >>> found = Candidates([measured(0, 0.75, 1), measured(1, 0.95, 4), measured(2, 0.97, 12)])
    >>> by_psi = winning_regions(found, "fire")
    >>> by_psi.table[["low", "high", "n_rules", "loss", "share"]].round(2)
        low   high  n_rules  loss  share
    0   0.1   12.0      4.0  0.05   0.69
    1  12.0  100.0     12.0  0.03   0.31
    >>> by_ice = winning_regions(found)
    >>> by_ice.intervals(phi=1)[["low", "high", "n_rules"]].round(2)
        low   high  n_rules
    0  0.10   1.06      4.0
    1  1.06  10.00      1.0
    """
    found = as_candidates(candidates)
    check_score(score, completeness)
    share = weight("tolerance", tolerance)
    ranges = ranges_of(score, within)
    return WinningRegions(found, score, ranges, completeness, share)


class WinningRegions:
    """Which candidate wins for which weights, as :func:`winning_regions` finds it.

    Use the function to make one.

    Parameters
    ----------
    candidates : Candidates
        The candidates.
    score : {"ice", "fire"}
        What decides.
    within : dict of str to (float, float)
        Range of each weight.
    completeness : {"volume", "instances"}
        How completeness is measured.
    tolerance : float
        Share of the area that may be left undecided.

    Attributes
    ----------
    table : pandas.DataFrame
        The winners. For FiRe one row per interval of psi, by psi: ``low``, ``high``,
        ``closed_low``, ``closed_high``, ``candidate`` (its place), ``extractor``, ``n_rules``,
        ``loss`` and ``share`` of the log-range. For ICE one row per winner, the widest region
        first: ``candidate``, ``extractor``, ``n_rules``, ``performance``, ``completeness``,
        ``share`` of the area and ``share_error``, which it cannot be off by more than, a point
        ``phi``, ``rho`` of the region, and its extent ``phi_low``, ``phi_high``, ``rho_low`` and
        ``rho_high``, known to 1e-6 of the log-weight. Measures are means over the folds.
    nowhere : pandas.DataFrame
        The other candidates, why they win nowhere within the range, and by whom they are beaten
        if it is one candidate for all weights.
    candidates : Candidates
        The candidates.
    score : str
        What decides.
    within : dict of str to (float, float)
        Range of each weight.
    """

    def __init__(
        self,
        candidates: Candidates,
        score: str,
        within: dict[str, tuple[float, float]],
        completeness: str,
        tolerance: float,
    ) -> None:
        self.candidates = candidates
        self.score = score
        self.within = within
        self._completeness = completeness
        self._tolerance = tolerance
        self._places, self._better = undominated(candidates, score, completeness)
        if score == "ice":
            self._plane = IcePlane(candidates, completeness, self._places)

    @cached_property
    def _regions(self) -> tuple[list[Region], list[int]]:
        low, high = np.log(np.array(list(self.within.values())).T)
        return regions(self._plane, low, high, self._tolerance)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The winners; see the attributes of the class."""
        return self._fire_table() if self.score == "fire" else self._ice_table(self._regions[0])

    @cached_property
    def nowhere(self) -> pd.DataFrame:
        """Those who win nowhere; see the attributes of the class."""
        members = self._regions[1] if self.score == "ice" else []
        undecided = {int(self._places[member]) for member in members}
        winners = set(self.table["candidate"])
        places = [p for p in range(len(self.candidates)) if p not in winners]
        why = [
            _DOMINATED if place in self._better
            else _UNDECIDED if place in undecided
            else _BEATEN[self.score]
            for place in places
        ]  # fmt: skip
        by = pd.array([self._better.get(place) for place in places], dtype="Int64")
        return self._described(np.array(places, dtype=int)).assign(reason=why, beaten_by=by)

    def _fire_table(self) -> pd.DataFrame:
        low, high = self.within["psi"]
        steps = fire_steps(self.candidates, self._places, low, high)
        winners = self._places[steps.winners]
        first = np.flatnonzero(np.append(True, winners[1:] != winners[:-1]))
        edges = np.append(steps.edges[first], high)
        is_last = np.arange(len(first)) == len(first) - 1
        # The greatest psi is in the last interval, also where that begins and ends there.
        table = pd.DataFrame({
            "low": edges[:-1], "high": edges[1:], "closed_low": True, "closed_high": is_last,
        })  # fmt: skip
        shown = self._described(winners[first], "loss")
        share = np.log(edges[1:] / edges[:-1]) / math.log(high / low)
        return table.join(shown).assign(share=share)

    def _ice_table(self, found: list[Region]) -> pd.DataFrame:
        places = self._places[[region.member for region in found]]
        table = self._described(places, "performance", f"completeness_{self._completeness}")
        table = table.rename(columns={f"completeness_{self._completeness}": "completeness"})
        table["share"] = [region.share for region in found]
        table["share_error"] = [region.error for region in found]
        ends = {"": "point", "_low": "low", "_high": "high"}
        columns = {
            f"{name}{end}": [math.exp(getattr(region, of)[axis]) for region in found]
            for end, of in ends.items()
            for axis, name in enumerate(WEIGHTS["ice"])
        }
        order = ["phi", "rho", "phi_low", "phi_high", "rho_low", "rho_high"]
        return table.join(pd.DataFrame(columns)[order])

    def _described(self, places: np.ndarray, *measures: str) -> pd.DataFrame:
        table = pd.DataFrame({
            "candidate": places,
            "extractor": [self.candidates[int(place)].extractor for place in places],
        })  # fmt: skip
        for name in ("n_rules", *measures):
            table[name] = self.candidates.means(name)[places]
        return table

    def winner(self, **weights: float) -> Candidate:
        """Give the winner for some weights, which may be outside the range of the table.

        Parameters
        ----------
        **weights : float
            ``psi`` for FiRe; ``phi`` and ``rho`` for ICE.

        Returns
        -------
        Candidate
            The winner.

        Raises
        ------
        TypeError, ValueError
            If a weight is missing, unknown or not positive.
        """
        return self.candidates[self.place(**weights)]

    def place(self, **weights: float) -> int:
        """Give the place of the winner among the candidates for some weights.

        Parameters
        ----------
        **weights : float
            ``psi`` for FiRe; ``phi`` and ``rho`` for ICE.

        Returns
        -------
        int
            The place, as in the column ``candidate`` of the table.

        Raises
        ------
        TypeError, ValueError
            If a weight is missing, unknown or not positive.
        """
        checked = weights_of(self.score, weights)
        if self.score == "fire":
            scores = fire_scores(self.candidates, self._places, checked["psi"])
            return int(self._places[first_best(scores)[0]])
        point = np.log([[checked["phi"], checked["rho"]]])
        return int(self._places[self._plane.winners(point)[0]])

    def intervals(self, **fixed: float) -> pd.DataFrame:
        """Give the winners along one weight of ICE while the other one is fixed.

        Parameters
        ----------
        **fixed : float
            Either ``phi`` or ``rho``.

        Returns
        -------
        pandas.DataFrame
            One row per interval of the other weight, ascending: ``low``, ``high``, ``candidate``,
            ``extractor``, ``n_rules``, ``performance`` and ``share`` of the log-range. At the ends
            between them the scores of both neighbours are equal.

        Raises
        ------
        TypeError, ValueError
            If not one of the two is fixed, or not at a positive number.
        """
        if self.score == "fire":
            raise TypeError(
                "intervals fixes one of the two weights of ICE, but FiRe has psi alone. Its "
                "intervals are the rows of `table`."
            )
        if len(fixed) != 1 or set(fixed) - set(WEIGHTS["ice"]):
            raise TypeError(f"intervals needs either phi or rho, got {fixed!r}.")
        ((name, value),) = fixed.items()
        (other,) = set(WEIGHTS["ice"]) - {name}
        axis = WEIGHTS["ice"].index(other)
        ends = np.full((2, 2), math.log(weight(name, value)))
        ends[:, axis] = np.log(self.within[other])
        pieces = along_line(self._plane, *ends)
        cuts = np.array([piece[0] for piece in pieces] + [pieces[-1][1]])
        edges = np.exp(cuts)
        edges[[0, -1]] = self.within[other]
        table = pd.DataFrame({"low": edges[:-1], "high": edges[1:]})
        shown = self._described(self._places[[piece[2] for piece in pieces]], "performance")
        return table.join(shown).assign(share=np.diff(cuts) / (cuts[-1] - cuts[0]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the regions: a strip of psi for FiRe, the plane of phi and rho for ICE.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn on.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        winners = self.table["candidate"].drop_duplicates().to_numpy()
        labels = {int(place): _label(self.candidates[int(place)]) for place in winners}
        if self.score == "fire":
            return plot_intervals(self.table, labels, ax)
        plane = IcePlane(
            self.candidates, self._completeness, np.array([p for p in self._places if p in labels])
        )
        return plot_plane(plane, self.within, self.table, labels, ax)

    def __repr__(self) -> str:
        n_winners = self.table["candidate"].nunique()
        ranges = ", ".join(f"{n} {a:g} to {b:g}" for n, (a, b) in self.within.items())
        return (
            f"<{type(self).__name__} of {self.score}: {n_winners} of {len(self.candidates)} "
            f"candidates win, {ranges}>"
        )


def _label(candidate: Candidate) -> str:
    n_rules = candidate.mean("n_rules")
    return f"{candidate.extractor}, {n_rules:.3g} {'rule' if n_rules == 1 else 'rules'}"
