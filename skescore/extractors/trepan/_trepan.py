"""Trepan: a tree of M-of-N tests on rows and on instances that the black box is queried about."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from skescore import _validation as check
from skescore._random import draw_seed
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._docstrings import documented
from skescore.extractors._sharing import Sharing
from skescore.extractors.trepan._tests import MofNSearch, Region
from skescore.extractors.trepan._tree import Tree, TreeGrower
from skescore.rules import Rule, RuleSet, RuleStatistics
from skescore.rules.importers._sklearn import shortened_paths

#: Distances between larger numbers would overflow.
_LARGEST = 1e300


@documented
class TrepanExtractor(BaseExtractor):
    """Rules from a tree of M-of-N tests, with queries to the black box wherever rows are few.

    For classifiers. Choose it where a class depends on how many of several conditions hold, or
    where there are few rows: below the first tests an ordinary tree looks at a handful of rows,
    Trepan at `min_sample` of them, most of which it draws itself and has the black box predict.
    Numbers and categories may be mixed.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier`.
    max_leaf_nodes : int or None, default=None
        Most leaves, that is rules; at least 2. None: no limit but `max_nodes`.
    max_nodes : int or None, default=15
        Most tests in the tree; None for no limit.
    max_depth : int or None, default=None
        Most tests on the way to a leaf; None for no limit.
    min_sample : int, default=1000
        Rows wanted at every node, before its class or its test is chosen: where training rows are
        fewer, instances are drawn. 0: nothing is drawn, and the black box is queried once.
    min_samples_leaf : int, default=1
        Least training rows on either side of a test. 0 allows leaves that only drawn instances
        reach.
    max_literals : int, default=4
        Most conditions that one test may count, the N of M-of-N; 1 for ordinary tests.
    beam_width : int, default=2
        M-of-N tests that the search keeps in each round; 1 is hill climbing.
    purity : float, default=0.99
        A node is not split any more once a class has at least this share of it ...
    confidence : float, default=0.95
        ... with this confidence.
    significance : float, default=0.05
        Level of the tests by which M-of-N tests are extended and new models are made; see Notes.
    min_gain : float, default=0.0
        Information (bits per instance) that a test must gain, more than this.
    simplify : bool, default=True
        True: an ordered list, read from the top, without the conditions that the rules before make
        superfluous. False: one rule per leaf, each of which stands by itself.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the instances. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. Their ``n_rows`` count training rows, their ``class_counts`` the black box's
        predictions on those and on the instances drawn.
    n_rules_ : int
        Their number.
    n_splits_ : int
        Nodes that were split, before leaves of one class were joined. The black box is queried once
        about the rows, once for the root and once for each of these at most.
    coverage_ : float
        Share of the training rows that some rule covers: 1.
    completeness_ : float
        Share of the domain's volume that some rule covers: 1.
    {fitted}

    Notes
    -----
    The tree grows best first: always the leaf with the largest ``reach * (1 - fidelity)``, where
    reach is the share of the training rows that come there and fidelity the share of the leaf's
    majority class. In the end, siblings that conclude the same class are joined.

    *Instances.* A node with fewer than `min_sample` rows draws the rest from a model that takes
    features to be independent: for numbers the mean of normal densities around the rows, with
    standard deviation ``s / sqrt(m)`` for m rows of standard deviation s, cut off at the limits of
    the training rows; for categories, and for numbers with 10 different values at most, the rows'
    frequencies. What is drawn satisfies all tests on the path; no draw is ever rejected. A node
    makes a model of its own, from its own rows, where they differ significantly from those of the
    model above (Kolmogorov-Smirnov or chi-squared test per feature, Bonferroni's correction);
    otherwise it goes on with that model, and with its instances. Models use 10 000 rows at most.

    *Tests.* The best test of one feature by information gain is the seed: a cut half-way between
    neighbouring values where the class changes (255 of them at most), or a set of categories. The
    beam search extends m-of-n to m-of-(n+1) or (m+1)-of-(n+1) by a further condition. An extension
    must gain significantly more: ``2 N ln(2) (gain' - gain)`` must exceed the chi-squared quantile
    with one degree of freedom per class but one, for N instances, at the level `significance`
    divided by the number of ways to extend. No feature is used twice in one such test, or in two
    such tests on one path, which keeps rules readable. The false side of "at least m of n hold" is
    written as "at least n - m + 1 of the n opposites hold".

    Unlike the published algorithm, tests without training rows on one side are left out
    (`min_samples_leaf`): they would spend rules on what never occurs.

    *Beside PSyKE.* Its Trepan asks nothing of instances and counts no conditions: that is
    ``min_sample=0, max_literals=1, max_depth=3``, which has the fidelity of PSyKE's on held-out
    rows in six of six splits of one-hot columns of iris (3 nearest neighbours; mean 0.971, ours by
    default 0.970, from 0.89 to 1 by split and seed). Instances cost fidelity where features depend
    on each other: pass a column of categories rather than its one-hot columns, which are drawn as
    if a value could be two at once.

    References
    ----------
    M. Craven, J. Shavlik: Extracting tree-structured representations of trained networks. Advances
    in Neural Information Processing Systems 8, 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import TrepanExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = TrepanExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) ≤ 2.466 THEN setosa   [50 rows, 100 % pure]
    2. ELSE IF at least 1 of (petal length (cm) > 5.077; petal width (cm) > 1.993) THEN virginica
       [44 rows, 99.1 % pure]
    3. ELSE versicolor   [56 rows, 94 % pure]
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    takes_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: int | None = None,
        max_nodes: int | None = 15,
        max_depth: int | None = None,
        min_sample: int = 1000,
        min_samples_leaf: int = 1,
        max_literals: int = 4,
        beam_width: int = 2,
        purity: float = 0.99,
        confidence: float = 0.95,
        significance: float = 0.05,
        min_gain: float = 0.0,
        simplify: bool = True,
        features: Any = None,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_leaf_nodes = max_leaf_nodes
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self.min_sample = min_sample
        self.min_samples_leaf = min_samples_leaf
        self.max_literals = max_literals
        self.beam_width = beam_width
        self.purity = purity
        self.confidence = confidence
        self.significance = significance
        self.min_gain = min_gain
        self.simplify = simplify
        self.features = features
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_integer("max_depth", self.max_depth, 1, optional=True)
        check.check_integer("min_sample", self.min_sample, 0)
        check.check_integer("min_samples_leaf", self.min_samples_leaf, 0)
        check.check_integer("max_literals", self.max_literals, 1)
        check.check_integer("beam_width", self.beam_width, 1)
        check.check_number("purity", self.purity, 0.0, 1.0)
        check.check_number("confidence", self.confidence, 0.0, 1.0)
        check.check_number("significance", self.significance, 0.0, 1.0)
        check.check_number("min_gain", self.min_gain, 0.0)
        check.check_flag("simplify", self.simplify)

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(_LARGEST, "distances between them would overflow")
        n_classes = len(np.unique(extraction.predictions))
        if self.max_leaf_nodes is not None and self.max_leaf_nodes < n_classes:
            warnings.warn(
                f"max_leaf_nodes={self.max_leaf_nodes} is less than the {n_classes} classes that "
                "the black box predicts, so no rule can conclude some of them.",
                UserWarning,
                stacklevel=3,
            )
        sharing = None
        if self.random_state is not None:  # a seed of None is never used again
            sharing = Sharing.of(extraction)
        tree = TreeGrower(
            extraction=extraction,
            search=MofNSearch(
                self.max_literals,
                self.beam_width,
                self.significance,
                self.min_gain,
                self.min_samples_leaf,
            ),
            max_nodes=self.max_nodes,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_sample=self.min_sample,
            purity=self.purity,
            confidence=self.confidence,
            significance=self.significance,
            seed=draw_seed(self.random_state),
            sharing=sharing,
        ).grow()
        self.n_splits_ = tree.n_splits
        tree.collapse()
        return self._read(tree, extraction)

    def _read(self, tree: Tree, extraction: Extraction) -> RuleSet:
        """Read the leaves as rules."""
        classes, categories = extraction.settings["classes"], extraction.categories
        everything = Region.everything(
            extraction.X.shape[1], {j: len(values) for j, values in categories.items()}
        )
        paths = shortened_paths(tree.paths()) if self.simplify else tree.paths()
        rules = []
        for number, path in paths.items():
            tests = []
            for above, holds in path:
                test = tree.nodes[above].test
                assert test is not None
                tests.append(test if holds else test.negated())
            leaf = tree.nodes[number]
            statistics = RuleStatistics(leaf.n_rows, tuple(leaf.counts.tolist()))
            conditions = everything.after(tests).conditions(categories)
            rules.append(Rule(tuple(conditions), classes[leaf.label], statistics))
        return RuleSet(
            rules, ordered=self.simplify, disjoint=not self.simplify, **extraction.settings
        )
