"""Black-box explanations of single decisions by masking: B-ReX, and our certified variant."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from skescore.attribution._explaining import explain
from skescore.attribution._result import Attribution

__all__ = ["BReX"]


class BReX(BaseEstimator):
    """Explain decisions of any classifier by which features, masked, would change them.

    Use it to find the features that a single answer depends on, and how much: a feature has degree
    1 if it decides alone, and 1/(1+k) if k others must be masked (or flipped) first. No fitting: it
    asks the model about each row, all rows in common calls.

    Parameters
    ----------
    model : Formula, estimator or callable
        A formula, a fitted classifier, or a function that answers rows with labels (or with one
        column of scores per class, of which the largest decides). Of a regressor, explain a
        question: ``lambda X: model.predict(X) > 10``.
    preset : {"certified", "paper", "literal"}, default="certified"
        ``"certified"`` keeps the best that some answer shows of each feature, and tells what is
        proven. ``"paper"`` is one pass of B-ReX with four blocks, in which masks stay on while a
        block is refined. ``"literal"`` is the mean of twenty passes in which they do not, as the
        paper's Algorithm 3 is written; its maps are zero now and then.
    masking : str, default="auto"
        What a masked feature is. ``"kleene"``: the model reads Unassigned itself
        (``evaluate_kleene``). ``"supervaluation"``: all flips are tried, which is exact, of at most
        16 features. ``"sampled"``: some flips are tried. ``"baseline"``: it has the value of
        `baseline`. ``"background"``: it has the values of `background` rows in turn, and most must
        keep the decision. ``"auto"`` is explained in the notes.
    n_blocks : int, optional
        Blocks that features are cut into, at most 8; that of the preset if not given.
    n_iterations : int, optional
        Passes; of the certified preset the most.
    context : {"witness", "original"}, optional
        Whether the masks that made the decision depend on a block stay on while it is refined.
    patience : int, optional
        Passes without a new question after which a row is done; all passes are made if neither
        this nor the preset (6 for ``"certified"``) says. Where every relevant feature must be
        found, 20 (with ``n_iterations=100``) takes more time, but hardly any more questions.
    max_queries : int, optional
        Masks (flips, if sampled) per row, at most. Unlimited if not given, but for the certified
        preset with sampled flips: 1000, or 10 per feature if that is more. Tables of all flips
        take what they take.
    inference : bool, optional
        Whether a part of a mask that keeps the decision is taken to keep it too, without asking.
        True for what this holds of, ``"kleene"`` and ``"supervaluation"``, with the certified
        preset, if not given.
    contrast : array-like or DataFrame, optional
        What a flipped feature becomes: one row, or one per explained row. The other value of
        two-valued rows (0 and 1, or -1 and 1), or else the nearest row of `background` with
        another decision, if not given.
    baseline : number, array-like, DataFrame, {"mean", "median", "mode"}, optional
        Values of masked features for ``masking="baseline"``: one for all, one each, or what is
        typical of `background`.
    background : array-like or DataFrame, optional
        Rows such as those that the model was fitted on.
    n_completions : int, default=16
        Random parts of a mask that are flipped to tell whether it keeps the decision, for
        ``masking="sampled"`` with other presets than ``"certified"``.
    threshold : float, optional
        Least probability of a decision; answers below it count as a decision of their own,
        "undecided".
    max_batch : int, default=8192
        Rows that the model is shown at once, at most. Results do not depend on it.
    random_state : int, Generator, SeedSequence or RandomState, optional
        What random cuts depend on, beside the values of the row: equal rows have equal
        explanations, whatever stands beside them.

    Notes
    -----
    ``masking="auto"`` takes ``"baseline"`` if `baseline` is given. Otherwise, with the certified
    preset, it takes ``"supervaluation"`` where all flips are affordable: one table of 2**d answers
    serves all rows of d <= 16 two-valued features, if that is no more than is expected without
    it (2 d questions per row for a read-once formula, 16 d for others). Failing this it takes
    ``"kleene"`` for models with ``evaluate_kleene`` on which it is exact (whose ``is_read_once``
    is not False), and ``"sampled"`` for all others.

    The certified preset differs from the paper's algorithm. Passes with two blocks end in
    certificates: masks under which the decision stays, until one more feature is masked. Of a mask,
    only features count that have certificates themselves, and the fewest count. Answers imply
    others in Kleene logic and supervaluation, which saves questions and proves values. With
    sampled flips it tries single features and pairs, then shrinks random flip sets, drawn around
    features that are in none yet and clear of the known ones, until nothing more can be left out;
    all parts of sets of up to four features are looked at.

    Plain baselines mislead on models that were fitted on complete rows: a masked row may look like
    nothing the model has seen. Prefer a contrast or a background with ``masking="sampled"``.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulae. 2025, arXiv:2509.09982.

    Examples
    --------
    >>> from skescore.attribution import BReX, Formula
    >>> formula = Formula.parse("x1 & (x2 | x3)", n_inputs=4)
    >>> BReX(formula, random_state=0).explain([[1, 1, 0, 0], [1, 1, 1, 1]]).values.tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0]]

    Any classifier, against the nearest row of another class:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X[:, 2:], y)
    >>> found = BReX(tree, background=X[:, 2:]).explain(X[[70, 120], 2:])
    >>> found.values.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        model: Any,
        *,
        preset: str = "certified",
        masking: str = "auto",
        n_blocks: int | None = None,
        n_iterations: int | None = None,
        context: str | None = None,
        patience: int | None = None,
        max_queries: int | None = None,
        inference: bool | None = None,
        contrast: Any = None,
        baseline: Any = None,
        background: Any = None,
        n_completions: int = 16,
        threshold: float | None = None,
        max_batch: int = 8192,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.preset = preset
        self.masking = masking
        self.n_blocks = n_blocks
        self.n_iterations = n_iterations
        self.context = context
        self.patience = patience
        self.max_queries = max_queries
        self.inference = inference
        self.contrast = contrast
        self.baseline = baseline
        self.background = background
        self.n_completions = n_completions
        self.threshold = threshold
        self.max_batch = max_batch
        self.random_state = random_state

    def explain(self, X: Any) -> Attribution:
        """Explain what the model decides about rows.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_rows, n_features), or one row
            The rows.

        Returns
        -------
        Attribution
            Degrees of responsibility, with questions asked, witnesses and flags.

        Raises
        ------
        ValueError
            If a parameter is not allowed, does not suit the model or the rows, or is missing.
        TypeError
            If the model is a regressor, or cannot be asked.
        """
        return explain(self.get_params(deep=False), X)
