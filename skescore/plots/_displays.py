"""Display objects in the style of scikit-learn, which can be drawn repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from skescore._validation import check_choice
from skescore.certificates import Certificate
from skescore.plots._bars import score_bars
from skescore.plots._boundaries import decision_boundaries
from skescore.plots._results import results_candidates
from skescore.plots._rules import overlap_matrix, parallel_rules, rule_boxes
from skescore.plots._trade_off import pareto_plot, proven_corridor, score_sensitivity, winner_map
from skescore.rules import RuleSet, as_ruleset
from skescore.tuning import Candidates

__all__ = [
    "CorridorDisplay",
    "DecisionBoundaryDisplay",
    "ParetoDisplay",
    "RulesDisplay",
    "ScoreBarsDisplay",
    "plot_search",
]


class _Display:
    """Base class of plots on single axes."""

    def _draw(self, ax: Any, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw the plot, possibly again.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of the function that draws the plot.

        Returns
        -------
        self
            The display with ``ax_`` and ``figure_``.
        """
        self.ax_ = self._draw(ax, options)
        self.figure_ = self.ax_.figure
        return self


class ParetoDisplay(_Display):
    """Plot of the candidates of a search, the Pareto front and its knee.

    Use :meth:`from_search` to create it; :func:`skescore.plots.pareto_plot` draws it.

    Parameters
    ----------
    candidates : Candidates
        Results to draw.
    x, y : str, default="n_rules", "loss"
        Objectives on the axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes with the plot.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from skescore.plots import ParetoDisplay
    >>> display = ParetoDisplay.from_search(search)  # doctest: +SKIP
    >>> display.figure_.savefig("front.svg")  # doctest: +SKIP
    """

    def __init__(self, candidates: Candidates, *, x: str = "n_rules", y: str = "loss") -> None:
        self.candidates, self.x, self.y = candidates, x, y

    @classmethod
    def from_search(
        cls, search: Any, *, x: str = "n_rules", y: str = "loss", ax: Any = None, **options: Any
    ) -> ParetoDisplay:
        """Draw the results of a search.

        Parameters
        ----------
        search : fitted search, Candidates or DataFrame
            Results that :func:`skescore.plots.pareto_plot` accepts.
        x, y : str, default="n_rules", "loss"
            Objectives on the axes.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of :func:`skescore.plots.pareto_plot`.

        Returns
        -------
        ParetoDisplay
            The drawn display.
        """
        return cls(results_candidates(search), x=x, y=y).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> Any:
        return pareto_plot(self.candidates, self.x, self.y, ax=ax, **options)


class CorridorDisplay(_Display):
    """Plot of the proven bounds on the best score for each number of rules, with the given rules.

    Use :meth:`from_certificate` to create it; :func:`skescore.plots.proven_corridor` draws it.

    Parameters
    ----------
    certificate : Certificate
        Results to draw.
    y : {"score", "loss"}, default="score"
        Measure on the y axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes with the plot.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from skescore.certificates import certify
    >>> from skescore.plots import CorridorDisplay
    >>> display = CorridorDisplay.from_certificate(certify(search, X))  # doctest: +SKIP
    """

    def __init__(self, certificate: Certificate, *, y: str = "score") -> None:
        self.certificate, self.y = certificate, y

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, *, y: str = "score", ax: Any = None, **options: Any
    ) -> CorridorDisplay:
        """Draw the bounds of a certificate.

        Parameters
        ----------
        certificate : Certificate
            Certificate of :func:`skescore.certificates.certify`.
        y : {"score", "loss"}, default="score"
            Measure on the y axis.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of :func:`skescore.plots.proven_corridor`.

        Returns
        -------
        CorridorDisplay
            The drawn display.
        """
        return cls(certificate, y=y).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> Any:
        return proven_corridor(self.certificate, self.y, ax=ax, **options)


class ScoreBarsDisplay(_Display):
    """Bar chart of the best score of each extractor, with its deviation between folds.

    Use :meth:`from_search` to create it; :func:`skescore.plots.score_bars` draws it.

    Parameters
    ----------
    results : Candidates or DataFrame
        Results to draw.
    score : str, default="ice"
        The score.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes with the plot.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from skescore.plots import ScoreBarsDisplay
    >>> display = ScoreBarsDisplay.from_search(search, "fire")  # doctest: +SKIP
    """

    def __init__(self, results: Any, *, score: str = "ice") -> None:
        self.results, self.score = results, score

    @classmethod
    def from_search(
        cls, search: Any, score: str = "ice", *, ax: Any = None, **options: Any
    ) -> ScoreBarsDisplay:
        """Draw the results of a search.

        Parameters
        ----------
        search : fitted search, Candidates or DataFrame
            Results that :func:`skescore.plots.score_bars` accepts.
        score : str, default="ice"
            The score.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of :func:`skescore.plots.score_bars`.

        Returns
        -------
        ScoreBarsDisplay
            The drawn display.
        """
        return cls(getattr(search, "candidates_", search), score=score).plot(ax=ax, **options)

    def _draw(self, ax: Any, options: dict[str, Any]) -> Any:
        return score_bars(self.results, self.score, ax=ax, **options)


_KINDS = ("parallel", "boxes", "overlap")


class RulesDisplay:
    """Plot of rules: their conditions row by row, boxes in a plane, or their overlap.

    Use :meth:`from_rules` to create it; :func:`skescore.plots.parallel_rules`,
    :func:`skescore.plots.rule_boxes` or :func:`skescore.plots.overlap_matrix` draws it.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows to draw, or to count.
    y : array-like of shape (n_rows,), optional
        True labels or numbers of the rows.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes with the plot.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from skescore.plots import RulesDisplay
    >>> display = RulesDisplay.from_rules(search, X, y, kind="boxes")  # doctest: +SKIP
    """

    def __init__(self, rules: RuleSet, X: Any = None, y: Any = None) -> None:
        self.rules, self.X, self.y = rules, X, y

    @classmethod
    def from_rules(
        cls,
        rules: Any,
        X: Any = None,
        y: Any = None,
        *,
        kind: str = "parallel",
        ax: Any = None,
        **options: Any,
    ) -> RulesDisplay:
        """Draw rules.

        Parameters
        ----------
        rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
            The rules.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows to draw, or to count.
        y : array-like of shape (n_rows,), optional
            True labels or numbers of the rows, for the colors of points.
        kind : {"parallel", "boxes", "overlap"}, default="parallel"
            Kind of plot.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of the function that draws the plot.

        Returns
        -------
        RulesDisplay
            The drawn display.
        """
        return cls(as_ruleset(rules), X, y).plot(kind, ax=ax, **options)

    def plot(self, kind: str = "parallel", ax: Any = None, **options: Any) -> RulesDisplay:
        """Draw the plot, possibly again.

        Parameters
        ----------
        kind : {"parallel", "boxes", "overlap"}, default="parallel"
            Kind of plot.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure.
        **options
            Options of the function that draws the plot.

        Returns
        -------
        self
            The display with ``ax_`` and ``figure_``.
        """
        check_choice("kind", kind, _KINDS)
        if kind == "boxes":
            self.ax_ = rule_boxes(self.rules, self.X, self.y, ax=ax, **options)
        else:
            draw = parallel_rules if kind == "parallel" else overlap_matrix
            self.ax_ = draw(self.rules, self.X, ax=ax, **options)
        self.figure_ = self.ax_.figure
        return self


class DecisionBoundaryDisplay:
    """Plots of the predictions of a black box and rules in the plane of two features.

    Use :meth:`from_models` to create it; :func:`skescore.plots.decision_boundaries` draws it.

    Parameters
    ----------
    models : fitted extractor or search, mapping of str to model, or sequence of models
        Results to draw.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that determine the ranges of the features.
    y : array-like of shape (n_rows,), optional
        True labels or numbers, for the colors of the points.

    Attributes
    ----------
    axes_ : ndarray of matplotlib.axes.Axes
        The axes, one for each model.
    ax_ : matplotlib.axes.Axes
        The last axes.
    figure_ : matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from skescore.plots import DecisionBoundaryDisplay
    >>> display = DecisionBoundaryDisplay.from_models(search, X, y)  # doctest: +SKIP
    """

    def __init__(self, models: Any, X: Any, y: Any = None) -> None:
        self.models, self.X, self.y = models, X, y

    @classmethod
    def from_models(
        cls,
        models: Any,
        X: Any,
        y: Any = None,
        *,
        axes: Sequence[Any] | None = None,
        **options: Any,
    ) -> DecisionBoundaryDisplay:
        """Draw the predictions of models.

        Parameters
        ----------
        models : fitted extractor or search, mapping of str to model, or sequence of models
            Models that :func:`skescore.plots.decision_boundaries` accepts.
        X : array-like or DataFrame of shape (n_rows, n_features)
            Rows that determine the ranges of the features.
        y : array-like of shape (n_rows,), optional
            True labels or numbers, for the colors of the points.
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to draw on, one for each model; by default a new figure.
        **options
            Options of :func:`skescore.plots.decision_boundaries`.

        Returns
        -------
        DecisionBoundaryDisplay
            The drawn display.
        """
        return cls(models, X, y).plot(axes=axes, **options)

    def plot(self, axes: Sequence[Any] | None = None, **options: Any) -> DecisionBoundaryDisplay:
        """Draw the plot, possibly again.

        Parameters
        ----------
        axes : sequence of matplotlib.axes.Axes, optional
            Axes to draw on, one for each model; by default a new figure.
        **options
            Options of :func:`skescore.plots.decision_boundaries`.

        Returns
        -------
        self
            The display with ``axes_``, ``ax_`` and ``figure_``.
        """
        self.axes_ = decision_boundaries(self.models, self.X, self.y, axes=axes, **options)
        self.ax_ = self.axes_[-1]
        self.figure_ = self.ax_.figure
        return self


_PLOTS: dict[str, Callable[..., Any]] = {
    "trade_off": pareto_plot,
    "scores": score_bars,
    "winners": winner_map,
    "sensitivity": score_sensitivity,
    "rules": parallel_rules,
}


def plot_search(search: Any, kind: str = "trade_off", *, ax: Any = None, **options: Any) -> Any:
    """Draw one of the plots of a fitted search.

    Parameters
    ----------
    search : fitted search
        The search.
    kind : {"trade_off", "scores", "winners", "sensitivity", "rules"}, default="trade_off"
        The plot, drawn by :func:`pareto_plot`, :func:`score_bars`, :func:`winner_map`,
        :func:`score_sensitivity` or :func:`parallel_rules`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.
    **options
        Options of the function that draws the plot.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> from skescore.plots import plot_search
    >>> ax = plot_search(search, "winners")  # doctest: +SKIP
    """
    check_choice("kind", kind, _PLOTS)
    return _PLOTS[kind](search, ax=ax, **options)
